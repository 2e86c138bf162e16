// blocks.c - in which order plans are evaluated where none is ruled out, and which of them together. Not with
// bounds: there the least bound is next (search.c).
//
// Idea: a line of tasks depends on pp, v, the microbatches and the order of a plan, a set of stages on pp, v, the
// microbatches and all that is not about order and sends. So plans with these three numbers alike are put together,
// apart by replicas and by whether their backwards are in two parts, and cut into blocks of no more sets than a worker keeps.
// Within a block those of one order follow each other. Then every set is made once, every line once for a block, one
// line is alive at a time, and passes over a line have all plans of the block to fill their lanes with.
#include "search/internal.h"
#include <stdlib.h>

typedef struct {
  search_point *p;
  u32 shape[4];   // pp, v, microbatches, form: replicas, and whether backwards are in two parts
  u32 set, order; // of its stages, its order: numbers of those that have the same
} placed;

// Several threads: so many blocks for each at least, where there are as many sets.
enum { BLOCKS_EACH = 8 };

static int by_set(const void *x, const void *y) {
  const placed *a = x, *b = y;
  for (u32 k = 0; k < COUNT_OF(a->shape); k++)
    if (a->shape[k] != b->shape[k]) return a->shape[k] < b->shape[k] ? -1 : 1;
  if (a->set != b->set) return a->set < b->set ? -1 : 1;
  return a->p < b->p ? -1 : a->p > b->p;
}

static int by_order(const void *x, const void *y) {
  const placed *a = x, *b = y;
  if (a->order != b->order) return a->order < b->order ? -1 : 1;
  if (a->set != b->set) return a->set < b->set ? -1 : 1;
  return a->p < b->p ? -1 : a->p > b->p;
}

// By its hash alone: two that share one would be neighbours, no more.
static u32 number_of(arena *tmp, hmap *m, u64 hash) {
  u32 it = 0, id;
  if (hmap_next(m, hash, &it, &id)) return id;
  hmap_add(tmp, m, hash, m->n);
  return m->n - 1;
}

static placed *place_all(const search *s, arena *tmp, search_point *const *all, u32 n) {
  placed *v = NEWN(tmp, placed, n + 1);
  hmap sets = {0}, orders = {0};
  for (u32 i = 0; i < n; i++) {
    const strategy is = search_strategy(all[i]), of = search_set(&is, is.overlap.n & OVERLAP_DP);
    const u32 replicas = choice_file(is.schedule) ? 0 : sched_replicas(sched_row_of(is.schedule.n)),
              form = replicas << 1 | (s->o->train && policy_splits_backward(&is, false));
    v[i] = (placed){.p = all[i],
                    .shape = {is.pp.n, is.v.n, is.mb.n, form},
                    .set = number_of(tmp, &sets, strategy_hash(&of)),
                    .order = number_of(tmp, &orders, strategy_hash_but(&is, ~(1u << CHOICE_OF_ORDER)))};
  }
  return v;
}

static bool same_shape(const placed *x, const placed *y) {
  return !memcmp(x->shape, y->shape, sizeof x->shape);
}

static bool same_set(const placed *x, const placed *y) { return x->set == y->set && same_shape(x, y); }

// Of sets in their order those of this part. Parts share sets out, not plans: else each would make nearly all of them.
static u32 keep_ours(const search_opts *o, placed *v, u32 n, u32 *nsets) {
  u32 k = 0, set = 0;
  *nsets = 0;
  for (u32 i = 0, end; i < n; i = end, set++) {
    for (end = i + 1; end < n && same_set(&v[i], &v[end]);) end++;
    if (!search_is_ours(o, set)) continue;
    memmove(v + k, v + i, (end - i) * sizeof *v);
    k += end - i, ++*nsets;
  }
  return k;
}

// The end of the block that begins at i.
static u32 block_end(const placed *v, u32 n, u32 i, u32 most) {
  u32 end = i, sets = 0;
  while (end < n && same_shape(&v[i], &v[end])) {
    if (end == i || !same_set(&v[end - 1], &v[end])) sets++;
    if (sets > most) break;
    end++;
  }
  return end;
}

u32 blocks_make(search *s, search_point **all, u32 n) {
  arena *tmp = arena_new();
  u32 nsets, nblocks = 0;
  placed *v = place_all(s, tmp, all, n);
  qsort(v, n, sizeof *v, by_set);
  n = keep_ours(s->o, v, n, &nsets);
  const u32 share = s->threads > 1 ? (u32)ceil_div(nsets, BLOCKS_EACH * s->threads) : nsets;
  const u32 most = MAX(MIN(share, (u32)SETS_TOGETHER), 1u);
  s->block = NEWN(s->a, u32, n + 1);
  for (u32 i = 0, end; i < n; i = end) {
    end = block_end(v, n, i, most);
    qsort(v + i, end - i, sizeof *v, by_order);
    s->block[nblocks++] = i;
  }
  s->block[nblocks] = n, s->nblocks = nblocks;
  for (u32 i = 0; i < n; i++) all[i] = v[i].p;
  arena_free(tmp);
  return n;
}
