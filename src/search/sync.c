// sync.c - how long the data ranks of a place need at least to sum their gradients, and to gather weights that
// ZeRO shards.
//
// Idea: every data rank has the gradients of its place's weights, split over its tensor ranks at most, and
// each of them is reduced over all data ranks once a step at least: by an all-reduce, or by a reduce-scatter
// with an all-gather of the weights. Under ZeRO 2 and 3 gradients that can be sharded are reduce-scattered for every
// microbatch, and under ZeRO 3 their weights are gathered for each. One such communication of all bytes takes no
// longer than many of parts, for each algorithm takes a start and a time in proportion, and the fastest is taken. It
// is on the compute stream, so what a rank computes comes besides.
#include "search/internal.h"

typedef struct {
  u32 first;    // instruction of main that reads it first
  double bytes; // of its gradient: summed_bytes
  u32 nd;
  i64 dim[DIMS_MAX];
} sync_weight;
typedef struct {
  u32 dp, tp;
  double *before,
      *sharded; // bytes of weights first read before instruction i; of those that dp ranks can shard
} sync_split;
struct syncs {
  u32 n;
  sync_weight *w;
  VEC(sync_split) split;
};

// Of a function, by value: does it depend on weights and constants alone?
typedef struct {
  const prog *p;
  arena *tmp;
  bool **plain; // by function; NULL: not known yet
} readings;

static const bool *plain_in(readings *x, func f) {
  const func_info *m = func_get(x->p, f);
  bool **of = &x->plain[f.i];
  if (*of) return *of;
  *of = ZNEWN(x->tmp, bool, m->values.n);
  for (u32 i = 0; i < m->nparams; i++) (*of)[i + 1] = m->params.v[i].r == ROLE_WEIGHT;
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    bool all = in->op != OP_call;
    for (u32 k = 0; k < in->nopd; k++) all &= (*of)[opd_of(m, in, k)];
    for (u32 r = 0; r < in->nres; r++) (*of)[in->res + r] = all;
  }
  return *of;
}

// Bytes of the gradient of v that data ranks sum at least. Where only rows of a weight are read (the positions of a
// short sequence), their gradient may be summed before it becomes a part of the weight's.
static double summed_bytes(readings *x, func f, value v) {
  const func_info *m = func_get(x->p, f);
  const shape s = val_type(x->p, m, v)->s;
  const double own = (double)shape_bytes(&s);
  const bool *plain = plain_in(x, f);
  double read = 0;
  for (u32 i = 0; i < m->body.n && read < own; i++) {
    const instr *in = &m->body.v[i];
    for (u32 k = 0; k < in->nopd; k++) {
      if (opd_of(m, in, k) != v) continue;
      if (in->op == OP_call)
        read += summed_bytes(x, in->callee, k + 1);
      else if (!in->nres || !plain[in->res])
        read += own;
      else
        for (u32 r = 0; r < in->nres; r++) read += summed_bytes(x, f, in->res + r);
    }
  }
  return MIN(own, read); // what is only returned is read elsewhere, or nowhere
}

syncs *syncs_make(arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  syncs *x = ZNEWN(a, syncs, 1);
  const u32 *first = memory_readers(a, p);
  arena *tmp = arena_new();
  readings how = {.p = p, .tmp = tmp, .plain = ZNEWN(tmp, bool *, p->funcs.n)};
  x->w = ZNEWN(a, sync_weight, m->nparams + 1);
  for (u32 i = 0; i < m->nparams; i++) {
    const shape s = val_type(p, m, i + 1)->s;
    if (m->params.v[i].r != ROLE_WEIGHT || dtype_kind_of(s.t) != DK_FLOAT || !first[i + 1]) continue;
    sync_weight *w = &x->w[x->n++];
    *w = (sync_weight){.first = first[i + 1] - 1, .bytes = summed_bytes(&how, p->main, i + 1), .nd = s.nd};
    for (u32 d = 0; d < s.nd; d++) w->dim[d] = s.dim[d];
  }
  arena_free(tmp);
  return x;
}

// What each of tp ranks has at least: a dimension that does not divide is dealt out in pieces that differ by one.
static double least_part(const sync_weight *w, u32 tp) {
  double least = 1;
  for (u32 d = 0; d < w->nd; d++)
    if (w->dim[d] >= tp) least = MIN(least, (double)(w->dim[d] / tp * tp) / (double)w->dim[d]);
  return w->bytes * least / tp;
}

// Can dp ranks shard it, whichever dimension tp splits?
static bool is_sharded(const sync_weight *w, u32 dp, u32 tp) {
  u32 long_enough = 0;
  for (u32 d = 0; d < w->nd; d++) long_enough += w->dim[d] >= dp;
  return long_enough > (tp > 1);
}

static const sync_split *split_of(const syncs *x, u32 dp, u32 tp) {
  for (u32 k = 0; k < x->split.n; k++)
    if (x->split.v[k].dp == dp && x->split.v[k].tp == tp) return &x->split.v[k];
  return NULL;
}

void sync_prepare(syncs *x, arena *a, u32 nbody, u32 dp, u32 tp) {
  if (split_of(x, dp, tp)) return;
  double *before = ZNEWN(a, double, nbody + 1), *part = ZNEWN(a, double, nbody + 1);
  for (u32 i = 0; i < x->n; i++) {
    const sync_weight *w = &x->w[i];
    const double bytes = least_part(w, tp);
    before[w->first + 1] += bytes;
    if (is_sharded(w, dp, tp)) part[w->first + 1] += bytes;
  }
  for (u32 i = 1; i <= nbody; i++) before[i] += before[i - 1], part[i] += part[i - 1];
  *vec_push(a, &x->split) = (sync_split){dp, tp, before, part};
}

void sync_add(const syncs *x, u32 from, u32 to, u32 dp, u32 tp, sync_bytes *out) {
  const sync_split *s = split_of(x, dp, tp);
  if (!s) return;
  out->all += s->before[to] - s->before[from];
  out->sharded += s->sharded[to] - s->sharded[from];
}

// ps of each of these, of so many bytes; 0: nothing is known.
enum { REDUCE, SCATTER, GATHER, SYNCS };
static void price(worker *w, const u32 *ranks, u32 dp, u32 tp, double bytes, i64 ps[SYNCS]) {
  static const opcode op[SYNCS] = {OP_all_reduce, OP_reduce_scatter, OP_all_gather};
  memset(ps, 0, SYNCS * sizeof *ps);
  if (cost_model_machine(w->k)->events) return; // what was measured may be shorter
  if (bytes >= 1 && !cost_beside(w->k, op, SYNCS, (i64)bytes, ranks, tp, dp, ps))
    memset(ps, 0, SYNCS * sizeof *ps); // told by who evaluates it
}

sync_time sync_ps(worker *w, arena *tmp, u32 first, const strategy *s, const sync_bytes *bytes) {
  const u32 dp = s->dp.n, tp = s->tp.n;
  sync_time t = {0, 0};
  i64 ps[SYNCS];
  // servers, and sums beside the backward: on other streams; plain sends may take fewer steps
  if (dp < 2 || bytes->all < 1 || s->overlap.n & OVERLAP_DP || choice_is(CHOICE_sync, s->sync, "ps") ||
      s->materialise.n == MATERIALISE_P2P)
    return t;
  u32 *ranks = NEWN(tmp, u32, dp * tp);
  for (u32 j = 0; j < tp; j++)
    for (u32 i = 0; i < dp; i++) ranks[j * dp + i] = first + i * tp + j;
  if (s->zero.n >= 2) {
    price(w, ranks, dp, tp, bytes->sharded, ps);
    t.micro = (double)(ps[SCATTER] + (s->zero.n > 2 ? ps[GATHER] : 0));
    if (s->zero.n == 2) t.step = (double)ps[GATHER];
    return t;
  }
  price(w, ranks, dp, tp, bytes->all, ps);
  t.step = (double)MIN(ps[REDUCE], ps[SCATTER] + ps[GATHER]);
  return t;
}
