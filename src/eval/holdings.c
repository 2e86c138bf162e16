// holdings.c - which elements of a tensor every member holds, and copying between two pieces.
//
// Idea: a layout is a product of index maps, one per dimension, so two pieces meet in a product too: what one
// holds of the other is found per dimension. Places are kept per type, group and temporal point.
#include "eval/internal.h"
#include <stdlib.h>

// ---- maps and holdings ---------------------------------------------------------------------------------

static const imap *map_intern(interp *m, const i64 *index, i64 n, i64 extent) {
  bool whole = n == extent;
  for (i64 k = 0; k < n && whole; k++) whole = index[k] == k;
  if (whole) return NULL;
  u64 h = hash_bytes(index, sizeof *index * (size_t)n, (u64)extent + 1);
  u32 it = 0, id;
  while (hmap_next(&m->map_index, h, &it, &id)) {
    const imap *x = m->maps.v[id];
    if (x->n == n && x->extent == extent && !memcmp(x->index, index, sizeof *index * (size_t)n)) return x;
  }
  imap *x = NEW(m->a, imap);
  *x = (imap){.n = n,
              .extent = extent,
              .index = arena_dup(m->a, index, sizeof *index * (size_t)n),
              .inverse = NEWN(m->a, i64, extent)};
  for (i64 g = 0; g < extent; g++) x->inverse[g] = -1;
  for (i64 k = n; k-- > 0;) x->inverse[index[k]] = k;
  if (m->link) x->has = ranges_of(m->a, arena_dup(m->a, index, sizeof *index * (size_t)n), n);
  hmap_add(m->a, &m->map_index, h, m->maps.n);
  *vec_push(m->a, &m->maps) = x;
  return x;
}

static spot spot_of(interp *m, const type_info *t, const layout_info *l, const coords *c) {
  spot s = {.elems = 1};
  for (u32 d = 0; d < t->s.nd; d++) {
    i64 extent = t->s.dim[d], n = extent;
    bool split = false;
    for (u32 k = 0; k < l->nsplit; k++) split = split || l->split[k].dim == d;
    if (split) {
      arena_mark_t mark = arena_mark(m->scratch);
      i64 *index =
          NEWN(m->scratch, i64, MAX(extent, layout_local_extent(m->p->sp, t->lay, (u8)d, extent, c)));
      n = layout_index(m->p->sp, t->lay, (u8)d, extent, c, index);
      s.map[d] = map_intern(m, index, n, extent);
      arena_release(m->scratch, mark);
    }
    s.dim[d] = n;
    s.elems *= n;
  }
  return s;
}

// The temporal axes that split a layout, their coordinates as one word; false if one is not fixed. A sum over
// time needs no coordinate: it has the same extents at all of them.
static bool temporal_key(interp *m, const layout_info *l, const point *at, loc where, u64 *key) {
  const space *sp = m->p->sp;
  *key = 0;
  for (u32 k = 0; k < l->nsplit; k++) {
    u8 axis = l->split[k].axis;
    if (!axis_get(sp, axis)->temporal) continue;
    if (!(at->fixed >> axis & 1)) {
      diag(m->c, E_LAYOUT, where, "a value lies along the temporal axis %s, which is not fixed here",
           sym_str(m->c, axis_get(sp, axis)->name));
      diag_hint(m->c, "order expands temporal axes into calls that fix a coordinate: @%s=0, @%s=1, ...",
                sym_str(m->c, axis_get(sp, axis)->name), sym_str(m->c, axis_get(sp, axis)->name));
      return false;
    }
    *key = hash_u64(*key + at->at.at[axis] + 1, axis);
  }
  return true;
}

const holdings *eval_holdings(interp *m, type t, group bound, const point *at, loc where) {
  const type_info *ti = type_get(m->p, t);
  const layout_info *l = layout_get(m->p->sp, ti->lay);
  group g = group_bind(ti->g, bound);
  u64 key[3] = {t.i, g.i, 0};
  if (!temporal_key(m, l, at, where, &key[2])) return NULL;
  u64 h = hash_bytes(key, sizeof key, 1);
  u32 it = 0, id;
  while (hmap_next(&m->holdings_index, h, &it, &id))
    if (!memcmp(&m->holdings_key.v[3 * id], key, sizeof key)) return m->holdings.v[id];
  holdings *p = NEW(m->a, holdings);
  bool flt = dtype_kind_of(ti->s.t) == DK_FLOAT;
  *p = (holdings){ti, m->o.as_f64 && flt ? DT_F64 : ti->s.t, layout_is_even(m->p->sp, ti->lay),
                  eval_members(m, g), NULL};
  p->at = NEWN(m->a, spot, p->n);
  for (u32 k = 0; k < p->n; k++) {
    coords c = at->at;
    if (g.i) coords_of(m->p->sp, g, k, &at->at, &c);
    p->at[k] = spot_of(m, ti, l, &c);
  }
  hmap_add(m->a, &m->holdings_index, h, m->holdings.n);
  *vec_push(m->a, &m->holdings) = p;
  memcpy(vec_push_n(m->a, &m->holdings_key, 3), key, sizeof key);
  return p;
}

bool eval_same(const spot *x, const spot *y, u32 nd) {
  for (u32 d = 0; d < nd; d++)
    if (x->map[d] != y->map[d] || x->dim[d] != y->dim[d]) return false;
  return true;
}

ker_tensor eval_tensor(const holdings *p, u32 member, void *data) {
  const spot *s = &p->at[member];
  ker_tensor t = {.t = p->stored, .nd = p->t->s.nd, .data = data};
  for (u32 d = 0; d < t.nd; d++) {
    t.dim[d] = s->dim[d];
    t.whole[d] = p->t->s.dim[d];
    t.index[d] = s->map[d] ? s->map[d]->index : NULL;
  }
  return t;
}

// ---- between two pieces --------------------------------------------------------------------------------

// The elements of box b, one by one, leaving those alone that are done.
static i64 copy_undone(const ker_box *b, size_t bytes, char *dst, const char *src, u8 *done) {
  i64 k[DIMS_MAX] = {0}, copied = 0;
  for (;;) {
    i64 to = 0, from = 0;
    bool held_there = true;
    for (u32 d = 0; d < b->nd; d++) {
      i64 s = b->sat[d] ? b->sat[d][k[d]] : k[d];
      held_there = held_there && s >= 0;
      to = to * b->ddim[d] + k[d];
      from = from * b->sdim[d] + s;
    }
    if (held_there && !done[to]) {
      memcpy(dst + (size_t)to * bytes, src + (size_t)from * bytes, bytes);
      done[to] = 1;
      copied++;
    }
    u32 d = b->nd;
    while (d-- > 0) {
      if (++k[d] < b->n[d]) break;
      k[d] = 0;
    }
    if (d == (u32)-1) return copied;
  }
}

i64 eval_copy(interp *m, const holdings *dp, u32 d, void *dst, const holdings *sp, u32 s, const void *src,
              u8 *done) {
  const spot *to = &dp->at[d], *from = &sp->at[s];
  u32 nd = dp->t->s.nd;
  ker_box b = {.nd = nd};
  i64 count = 1;
  arena_mark_t mark = arena_mark(m->scratch);
  for (u32 k = 0; k < nd && count; k++) {
    b.n[k] = b.ddim[k] = to->dim[k];
    b.sdim[k] = from->dim[k];
    i64 both = to->dim[k];
    if (from->map[k] && from->map[k] != to->map[k]) {
      i64 *at = NEWN(m->scratch, i64, to->dim[k]);
      both = 0;
      for (i64 j = 0; j < to->dim[k]; j++) {
        at[j] = from->map[k]->inverse[to->map[k] ? to->map[k]->index[j] : j];
        both += at[j] >= 0;
      }
      b.sat[k] = at;
    } else if (!from->map[k] && to->map[k])
      b.sat[k] = to->map[k]->index;
    count *= both;
  }
  if (count) {
    if (done)
      count = copy_undone(&b, dtype_bytes(dp->stored), dst, src, done);
    else
      ker_pick(&b, dtype_bytes(dp->stored), dst, src, m->scratch);
  }
  arena_release(m->scratch, mark);
  return count;
}
