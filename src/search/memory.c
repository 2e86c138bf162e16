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

struct memory_bounds {
  u32 nweights, nkept[8];
  struct weight_of {
    u32 at; // the first instruction that reads it
    double bytes, states;
    bool trained;
  } * weight;
  plan_kept_value *kept[8]; // by what is recomputed
  u32 nbody;
  double *again[8]; // per instruction of main: of what its backward computes again, the whole batch
};

static void list_weights(memory_bounds *b, arena *a, const prog *p, const optim_opts *o) {
  const func_info *m = func_get(p, p->main);
  u32 *first = ZNEWN(a, u32, m->nparams + 1);
  for (u32 i = m->body.n; i-- > 0;)
    for (u32 k = 0; k < m->body.v[i].nopd; k++)
      if (opd_of(m, &m->body.v[i], k) <= m->nparams) first[opd_of(m, &m->body.v[i], k)] = i;
  b->weight = arena_alloc(a, sizeof *b->weight * (m->nparams + 1));
  for (u32 i = 0; i < m->nparams; i++) {
    if (m->params.v[i].r != ROLE_WEIGHT) continue;
    shape x = val_type(p, m, i + 1)->s;
    struct weight_of w = {.at = first[i + 1], .bytes = (double)shape_bytes(&x)};
    w.trained = dtype_kind_of(x.t) == DK_FLOAT;
    const u32 states = w.trained ? optim_states(o, x.t) : 0;
    x.t = optim_state_type(x.t);
    w.states = states * (double)shape_bytes(&x);
    b->weight[b->nweights++] = w;
  }
}

// Of what is kept where nothing is computed again: `whole` all values of a call, else the largest.
static double *made_again(const memory_bounds *b, arena *a, const prog *p, bool whole) {
  const func_info *m = func_get(p, p->main);
  double *x = ZNEWN(a, double, m->body.n + 1);
  for (u32 k = 0; k < b->nkept[0]; k++) {
    const plan_kept_value *v = &b->kept[0][k];
    if (m->body.v[v->def].op != OP_call || v->use != v->def) continue;
    x[v->def] = whole ? x[v->def] + v->bytes : MAX(x[v->def], v->bytes);
  }
  return x;
}

const memory_bounds *memory_bounds_make(arena *a, planner *pl, const search_opts *o) {
  memory_bounds *b = ZNEWN(a, memory_bounds, 1);
  list_weights(b, a, planner_source(pl), &o->optim);
  for (u32 r = 0; o->train && r < MIN(choice_words(CHOICE_recompute), (u32)COUNT_OF(b->kept)); r++) {
    plan *pn = plan_single(a, planner_source(pl), true, &o->optim);
    policy_recompute(pl, a, pn, (choice_value){.n = r});
    b->nkept[r] = plan_kept(pl, pn, a, &b->kept[r]);
    const choice_value what = {.n = r};
    if (r) b->again[r] = made_again(b, a, planner_source(pl), choice_is(CHOICE_recompute, what, "full"));
  }
  return b;
}

// Of one microbatch, in the backward of the stage [from, to) of main.
static double in_backward(const memory_bounds *b, arena *a, const strategy *s, u32 from, u32 to) {
  const double *again = b->again[s->recompute.n];
  const plan_kept_value *v = b->kept[s->recompute.n];
  double before = 0, most = 0;
  if (!again) return 0;
  double *at = ZNEWN(a, double, to - from + 1); // kept of every instruction
  for (u32 k = 0; k < b->nkept[s->recompute.n]; k++)
    if (v[k].def >= from && v[k].use < to) at[v[k].def - from] += v[k].bytes;
  for (u32 i = from; i < to; i++) {
    most = MAX(most, before + again[i]);
    before += at[i - from];
  }
  return most;
}

// On the mean rank of every place, for those of its stages.
static void add_stage(const memory_bounds *b, arena *a, const strategy *s, const plan *pn, u32 stage,
                      double *place) {
  const u32 from = pn->segments[stage].from - 1, to = pn->segments[stage].to, zero = s->zero.n;
  const double dp = s->dp.n, tp = s->tp.n;
  double weights = 0, trained = 0, states = 0, kept = 0;
  for (u32 k = 0; k < b->nweights; k++) {
    const struct weight_of *w = &b->weight[k];
    if (w->at < from || w->at >= to) continue;
    weights += w->bytes, states += w->states, trained += w->trained ? w->bytes : 0;
  }
  double bytes = weights / tp / (zero >= 3 ? dp : 1);
  if (pn->train) bytes += states / tp / (zero >= 1 ? dp : 1);
  if (pn->train && s->mb.n > 1) bytes += trained / tp / (zero >= 2 ? dp : 1);
  const plan_kept_value *v = b->kept[s->recompute.n];
  for (u32 k = 0; pn->train && !pn->batchnorm_groups && k < b->nkept[s->recompute.n]; k++)
    if (v[k].def >= from && v[k].use < to) kept += v[k].bytes;
  if (pn->made.live && pn->made.live[stage]) {
    const double most = MAX(kept, in_backward(b, a, s, from, to));
    bytes += (kept * (pn->made.live[stage] - 1) + (s->v.n == 1 ? most : kept)) / dp / tp / s->mb.n;
  }
  *place += bytes;
}

double memory_bound(const memory_bounds *b, arena *a, const strategy *s, const plan *pn) {
  double *place = ZNEWN(a, double, s->pp.n + 1), most = 0;
  for (u32 k = 0; k < pn->nsegments; k++) {
    const u32 at = pn->segments[k].place.nfix ? pn->segments[k].place.fix[0].at : 0;
    if (at < s->pp.n) add_stage(b, a, s, pn, k, &place[at]);
  }
  for (u32 q = 0; q < s->pp.n; q++) most = MAX(most, place[q]);
  return most;
}
