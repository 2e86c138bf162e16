// memory.c - what the ranks of a plan hold at least: weights, gradients and states, and what forwards have kept
// for their backwards when most microbatches are on their way.
//
// Idea: on the n = dp x tp ranks of a place a tensor is split n ways at most, so some rank holds at least the
// mean. Weights, unless ZeRO 3 shards them, are there once for each data rank. Values kept by the forward of one
// microbatch (plan_kept) are there from its end to the beginning of its backward, and the schedule says how
// many microbatches are between the two (plan_live). Gradients count if they are accumulated, for then they
// are there all the time; else they come when activations go.
//
// Where backwards compute something again, that is there besides: all that a call keeps where calls are computed
// again whole, a value at least where they are in parts, with what is kept of the instructions before it.
#include "search/internal.h"

// Sums are kept by instruction of main, so that a stage [from, to) costs a few additions.
typedef struct {
  double *before; // of what instructions before number i keep
  u32 *begin,
      *item;       // values made before number i and first read there or later: item[begin[i]..begin[i + 1])
  double *again;   // of what the backward of an instruction computes again; NULL: nothing
  u32 *last_again; // before number i: the last instruction, + 1, with any
  plan_kept_value *v;
} kept_sums;
struct memory_bounds {
  double *weights, *trained, *states; // of weights whose first reader is before instruction i
  kept_sums kept[8];                  // by what is recomputed
};

static void list_weights(memory_bounds *b, arena *a, const prog *p, const optim_opts *o) {
  const func_info *m = func_get(p, p->main);
  const u32 n = m->body.n;
  u32 *first = ZNEWN(a, u32, m->nparams + 1);
  for (u32 i = n; i-- > 0;)
    for (u32 k = 0; k < m->body.v[i].nopd; k++)
      if (opd_of(m, &m->body.v[i], k) <= m->nparams) first[opd_of(m, &m->body.v[i], k)] = i;
  b->weights = ZNEWN(a, double, n + 2), b->trained = ZNEWN(a, double, n + 2);
  b->states = ZNEWN(a, double, n + 2);
  for (u32 i = 0; i < m->nparams; i++) {
    if (m->params.v[i].r != ROLE_WEIGHT) continue;
    shape x = val_type(p, m, i + 1)->s;
    const u32 at = first[i + 1] + 1;
    b->weights[at] += (double)shape_bytes(&x);
    if (dtype_kind_of(x.t) != DK_FLOAT) continue;
    b->trained[at] += (double)shape_bytes(&x);
    const u32 states = optim_states(o, x.t);
    x.t = optim_state_type(x.t);
    b->states[at] += states * (double)shape_bytes(&x);
  }
  for (u32 i = 1; i <= n; i++)
    b->weights[i] += b->weights[i - 1], b->trained[i] += b->trained[i - 1], b->states[i] += b->states[i - 1];
}

static void list_kept(kept_sums *x, arena *a, u32 nbody, u32 n, plan_kept_value *v) {
  x->v = v;
  x->before = ZNEWN(a, double, nbody + 2), x->begin = ZNEWN(a, u32, nbody + 3);
  for (u32 k = 0; k < n; k++) x->before[v[k].def + 1] += v[k].bytes;
  for (u32 i = 1; i <= nbody; i++) x->before[i] += x->before[i - 1];
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 k = 0; k < n; k++)
      for (u32 i = v[k].def + 1; i <= v[k].use; i++) {
        if (pass) x->item[x->begin[i + 1]] = k;
        x->begin[i + 1 + !pass]++;
      }
    if (pass) break;
    for (u32 i = 0; i < nbody + 2; i++) x->begin[i + 1] += x->begin[i];
    x->item = NEWN(a, u32, x->begin[nbody + 2] + 1);
  }
}

// Of what is kept where nothing is computed again: `whole` all values of a call, else the largest.
static void list_again(kept_sums *x, arena *a, const prog *p, u32 n, const plan_kept_value *none,
                       bool whole) {
  const func_info *m = func_get(p, p->main);
  x->again = ZNEWN(a, double, m->body.n + 1), x->last_again = ZNEWN(a, u32, m->body.n + 1);
  for (u32 k = 0; k < n; k++) {
    double *to = &x->again[none[k].def];
    if (m->body.v[none[k].def].op != OP_call || none[k].use != none[k].def) continue;
    *to = whole ? *to + none[k].bytes : MAX(*to, none[k].bytes);
  }
  for (u32 i = 1; i <= m->body.n; i++) x->last_again[i] = x->again[i - 1] > 0 ? i : x->last_again[i - 1];
}

const memory_bounds *memory_bounds_make(arena *a, planner *pl, const search_opts *o) {
  memory_bounds *b = ZNEWN(a, memory_bounds, 1);
  const prog *p = planner_source(pl);
  const u32 nbody = func_get(p, p->main)->body.n;
  plan_kept_value *none = NULL;
  list_weights(b, a, p, &o->optim);
  for (u32 r = 0, nnone = 0; o->train && r < MIN(choice_words(CHOICE_recompute), (u32)COUNT_OF(b->kept));
       r++) {
    plan *pn = plan_single(a, p, true, &o->optim);
    const choice_value what = {.n = r};
    plan_kept_value *v;
    policy_recompute(pl, a, pn, what);
    const u32 n = plan_kept(pl, pn, a, &v);
    if (!r) none = v, nnone = n;
    list_kept(&b->kept[r], a, nbody, n, v);
    if (r) list_again(&b->kept[r], a, p, nnone, none, choice_is(CHOICE_recompute, what, "full"));
  }
  return b;
}

// Of values made in [from, i) those that are read first in [from, to), if at all.
static double kept_in(const kept_sums *x, u32 from, u32 i, u32 to) {
  double sum = x->before[i] - x->before[from];
  for (u32 k = x->begin[to]; k < x->begin[to + 1]; k++) {
    const plan_kept_value *v = &x->v[x->item[k]];
    if (v->def >= from && v->def < i) sum -= v->bytes;
  }
  return sum;
}

// On the mean rank of a place, for one of its stages.
static double in_stage(const memory_bounds *b, const strategy *s, const plan *pn, u32 stage) {
  const u32 from = pn->segments[stage].from - 1, to = pn->segments[stage].to, zero = s->zero.n;
  const double dp = s->dp.n, tp = s->tp.n;
  const u32 live = pn->made.live ? pn->made.live[stage] : 0;
  double bytes = (b->weights[to] - b->weights[from]) / tp / (zero >= 3 ? dp : 1);
  if (!pn->train) return bytes;
  bytes += (b->states[to] - b->states[from]) / tp / (zero >= 1 ? dp : 1);
  if (s->mb.n > 1) bytes += (b->trained[to] - b->trained[from]) / tp / (zero >= 2 ? dp : 1);
  if (!live || pn->batchnorm_groups) return bytes;
  const kept_sums *x = &b->kept[s->recompute.n];
  const double all = kept_in(x, from, to, to);
  double most = all; // of the microbatch whose backward comes next
  const u32 last = x->again && s->v.n == 1 ? x->last_again[to] : 0;
  if (last > from) most = MAX(most, kept_in(x, from, last - 1, to) + x->again[last - 1]);
  return bytes + (all * (live - 1) + most) / dp / tp / s->mb.n;
}

double memory_bound(const memory_bounds *b, arena *a, const strategy *s, const plan *pn) {
  double *place = ZNEWN(a, double, s->pp.n + 1), most = 0;
  for (u32 k = 0; k < pn->nsegments; k++) {
    const u32 at = pn->segments[k].on.nfix ? pn->segments[k].on.fix[0].at : 0;
    if (at < s->pp.n) place[at] += in_stage(b, s, pn, k);
  }
  for (u32 q = 0; q < s->pp.n; q++) most = MAX(most, place[q]);
  return most;
}
