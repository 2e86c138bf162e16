// sync.c - how long the data ranks of a place need at least to sum their gradients, and to gather weights that
// ZeRO shards.
//
// Idea: every data rank has the gradients of its place's weights, split over its tensor ranks at most, and
// each of them is reduced over all data ranks once a step at least: by an all-reduce, or by a reduce-scatter
// with an all-gather of the weights. One such communication of all bytes takes no longer than many of parts,
// for each algorithm takes a start and a time in proportion, and the fastest is taken. It is on the compute
// stream, so what a rank computes comes besides.
#include "search/internal.h"

typedef struct {
  u32 first;    // instruction of main that reads it first
  double bytes; // of its gradient
  u32 nd;
  i64 dim[DIMS_MAX];
} sync_weight;
typedef struct {
  u32 tp;
  double *before; // bytes of weights first read before instruction i
} sync_split;
struct syncs {
  u32 n;
  sync_weight *w;
  VEC(sync_split) split;
};

syncs *syncs_make(arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  syncs *x = ZNEWN(a, syncs, 1);
  const u32 *first = memory_readers(a, p);
  x->w = ZNEWN(a, sync_weight, m->nparams + 1);
  for (u32 i = 0; i < m->nparams; i++) {
    const shape s = val_type(p, m, i + 1)->s;
    if (m->params.v[i].r != ROLE_WEIGHT || dtype_kind_of(s.t) != DK_FLOAT || !first[i + 1]) continue;
    sync_weight *w = &x->w[x->n++];
    *w = (sync_weight){.first = first[i + 1] - 1, .bytes = (double)shape_bytes(&s), .nd = s.nd};
    for (u32 d = 0; d < s.nd; d++) w->dim[d] = s.dim[d];
  }
  return x;
}

// What each of tp ranks has at least: a dimension that does not divide is dealt out in pieces that differ by one.
static double least_part(const sync_weight *w, u32 tp) {
  double least = 1;
  for (u32 d = 0; d < w->nd; d++)
    if (w->dim[d] >= tp) least = MIN(least, (double)(w->dim[d] / tp * tp) / (double)w->dim[d]);
  return w->bytes * least / tp;
}

void sync_prepare(syncs *x, arena *a, u32 nbody, u32 tp) {
  for (u32 k = 0; k < x->split.n; k++)
    if (x->split.v[k].tp == tp) return;
  double *before = ZNEWN(a, double, nbody + 1);
  for (u32 i = 0; i < x->n; i++) before[x->w[i].first + 1] += least_part(&x->w[i], tp);
  for (u32 i = 1; i <= nbody; i++) before[i] += before[i - 1];
  *vec_push(a, &x->split) = (sync_split){tp, before};
}

double sync_bytes(const syncs *x, u32 from, u32 to, u32 tp) {
  for (u32 k = 0; k < x->split.n; k++)
    if (x->split.v[k].tp == tp) return x->split.v[k].before[to] - x->split.v[k].before[from];
  return 0;
}

double sync_ps(worker *w, arena *tmp, u32 first, u32 dp, u32 tp, double bytes) {
  static const opcode op[] = {OP_all_reduce, OP_reduce_scatter, OP_all_gather};
  i64 ps[COUNT_OF(op)];
  if (dp < 2 || bytes < 1) return 0;
  u32 *ranks = NEWN(tmp, u32, dp * tp);
  for (u32 j = 0; j < tp; j++)
    for (u32 i = 0; i < dp; i++) ranks[j * dp + i] = first + i * tp + j;
  if (!cost_beside(w->k, op, COUNT_OF(op), (i64)bytes, ranks, tp, dp, ps))
    return 0; // told by who evaluates it
  return (double)MIN(ps[0], ps[1] + ps[2]);
}
