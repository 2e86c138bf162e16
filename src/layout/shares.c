// shares.c - uneven pieces made of shares, and of one factor of a dimension. Not how pieces lie in a layout
// (layout.c).
//
// Idea: a dimension of several factors (3 x heads x 64) is cut through one of them as that factor is cut,
// once for every coordinate of the factors before it. So a split of heads is one table of heads, whatever
// tensor they are in; the tables of dimensions are made of it, and it is found in them again.
#include "layout/internal.h"

pieces pieces_shared(space *s, u32 n, const u32 *share, i64 block, i64 extent) {
  i64 sum = 0;
  for (u32 k = 0; k < n; k++) sum += share[k];
  assert(sum > 0 && block > 0 && block % sum == 0 && extent % block == 0);
  const u32 blocks = (u32)(extent / block);
  arena *tmp = arena_new();
  u32 *begin = NEWN(tmp, u32, n + 1);
  i64 *bound = NEWN(tmp, i64, 2 * (size_t)n * blocks + 1), at = 0;
  begin[0] = 0;
  for (u32 k = 0; k < n; k++) {
    const i64 len = block / sum * share[k];
    begin[k + 1] = begin[k];
    for (u32 b = 0; len && b < blocks; b++) {
      i64 *x = bound + 2 * (size_t)begin[k + 1]++;
      x[0] = b * block + at, x[1] = x[0] + len;
    }
    at += len;
  }
  pieces p = pieces_of(s, n, begin, bound, extent);
  arena_free(tmp);
  return p;
}

pieces pieces_near(space *s, u32 n, const u32 *share, i64 extent) {
  i64 sum = 0, before = 0, at = 0;
  for (u32 k = 0; k < n; k++) sum += share[k];
  assert(sum > 0);
  arena *tmp = arena_new();
  u32 *begin = NEWN(tmp, u32, n + 1);
  i64 *bound = NEWN(tmp, i64, 2 * (size_t)n);
  for (u32 k = 0; k < n; k++) {
    before += share[k];
    const i64 end = extent / sum * before + extent % sum * before / sum;
    begin[k] = k, bound[2 * k] = at, bound[2 * k + 1] = at = end;
  }
  begin[n] = n;
  pieces p = pieces_of(s, n, begin, bound, extent);
  arena_free(tmp);
  return p;
}

// ---- through one factor ---------------------------------------------------------------------------------
static u64 tile_key(pieces p, i64 outer, i64 inner, bool back) {
  return hash_u64((u64)inner, hash_u64((u64)outer, (u64)p.i << 1 | back));
}

static const piece_tile *tile_find(const space *s, pieces p, i64 outer, i64 inner, bool back) {
  for (u32 it = 0, id; hmap_next(&s->tile_map, tile_key(p, outer, inner, back), &it, &id);) {
    const piece_tile *x = &s->tiles.v[id];
    if (x->from.i == p.i && x->outer == outer && x->inner == inner && x->back == back) return x;
  }
  return NULL;
}

static pieces tile_keep(space *s, pieces p, i64 outer, i64 inner, bool back, pieces to) {
  hmap_add(s->a, &s->tile_map, tile_key(p, outer, inner, back), s->tiles.n);
  *vec_push(s->a, &s->tiles) = (piece_tile){p, to, outer, inner, back};
  return to;
}

pieces pieces_tile(space *s, pieces p, i64 outer, i64 inner) {
  if (outer == 1 && inner == 1) return p;
  const piece_tile *known = tile_find(s, p, outer, inner, false);
  if (known) return known->to;
  const pieces_info t = *pieces_get(s, p);
  arena *tmp = arena_new();
  u32 *begin = NEWN(tmp, u32, t.npieces + 1);
  i64 *bound = NEWN(tmp, i64, 2 * (size_t)t.begin[t.npieces] * (size_t)outer + 1);
  begin[0] = 0;
  for (u32 k = 0; k < t.npieces; k++) {
    begin[k + 1] = begin[k];
    for (i64 o = 0; o < outer; o++)
      for (u32 i = t.begin[k]; i < t.begin[k + 1]; i++) {
        i64 *x = bound + 2 * (size_t)begin[k + 1]++;
        x[0] = (o * t.extent + t.bound[2 * i]) * inner, x[1] = (o * t.extent + t.bound[2 * i + 1]) * inner;
      }
  }
  pieces to = pieces_of(s, t.npieces, begin, bound, t.extent * outer * inner);
  arena_free(tmp);
  return tile_keep(s, p, outer, inner, false, to);
}

pieces pieces_untile(space *s, pieces p, i64 outer, i64 inner) {
  if (outer == 1 && inner == 1) return p;
  const piece_tile *known = tile_find(s, p, outer, inner, true);
  if (known) return known->to;
  const pieces_info t = *pieces_get(s, p);
  const i64 extent = t.extent / outer / inner;
  arena *tmp = arena_new();
  u32 *begin = NEWN(tmp, u32, t.npieces + 1), n = 0;
  i64 *bound = NEWN(tmp, i64, 2 * (size_t)t.begin[t.npieces] + 1);
  bool ok = extent * outer * inner == t.extent;
  begin[0] = 0;
  for (u32 k = 0; k < t.npieces; k++) { // what is in the first of the outer coordinates
    for (u32 i = t.begin[k]; i < t.begin[k + 1]; i++) {
      const i64 lo = t.bound[2 * i], hi = t.bound[2 * i + 1];
      ok = ok && lo % inner == 0 && hi % inner == 0;
      if (lo >= extent * inner) continue;
      ok = ok && hi <= extent * inner;
      bound[2 * n] = lo / inner, bound[2 * n++ + 1] = hi / inner;
    }
    begin[k + 1] = n;
  }
  pieces to = ok ? pieces_of(s, t.npieces, begin, bound, extent) : (pieces){0};
  arena_free(tmp);
  if (ok && pieces_tile(s, to, outer, inner).i != p.i) to.i = 0;
  return tile_keep(s, p, outer, inner, true, to);
}
