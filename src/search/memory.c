// memory.c - what the ranks of a plan hold at least: weights, gradients and states, and what forwards have
// kept for their backwards when most microbatches are on their way.
//
// Idea: on the n = dp x tp ranks of a place a tensor is split n ways at most, so some rank holds at least the
// mean. Weights, unless ZeRO 3 shards them, are there once for each data rank. Values kept by the forward of
// one microbatch (plan_kept, of the same choices without data ranks, microbatches and stages, which split the
// batch and nothing else) are there from its end to the beginning of its backward, and the schedule says how
// many microbatches are between the two (plan_live). Gradients count if they are accumulated, for then they
// are there all the time; else they come when activations go.
//
// Where backwards compute something again, that is there besides: all that a call keeps where calls are
// computed again whole, a value at least where they are in parts, with what is kept of the instructions
// before it.
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
  u32 *first;                         // memory_readers
  u32 nbody;                          // instructions of main
  double *weights, *trained, *states; // of weights whose first reader is before instruction i
  bool distir;                        // by DistIR's rules: nothing is said but of weights
};
// By what decides how activations are split and which are kept.
struct known_kept {
  strategy s;
  kept_sums sums;
  u32 n;
  plan_kept_value *v;
  double *grads; // of accumulators of weights whose first reader is before instruction i
  struct known_kept *next;
};

u32 *memory_readers(arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  u32 *first = ZNEWN(a, u32, m->nparams + 2);
  for (u32 i = m->body.n; i-- > 0;)
    for (u32 k = 0; k < m->body.v[i].nopd; k++)
      if (opd_of(m, &m->body.v[i], k) <= m->nparams) first[opd_of(m, &m->body.v[i], k)] = i + 1;
  return first;
}

static void list_weights(memory_bounds *b, arena *a, const prog *p, const optim_opts *o) {
  const func_info *m = func_get(p, p->main);
  const u32 n = m->body.n;
  const u32 *first = b->first = memory_readers(a, p);
  b->weights = ZNEWN(a, double, n + 2), b->trained = ZNEWN(a, double, n + 2);
  b->states = ZNEWN(a, double, n + 2);
  for (u32 i = 0; i < m->nparams; i++) {
    if (m->params.v[i].r != ROLE_WEIGHT) continue;
    shape x = val_type(p, m, i + 1)->s;
    const u32 at = MAX(first[i + 1], 1u); // what nobody reads is on the first stage
    b->weights[at] += (double)shape_bytes(&x);
    if (dtype_kind_of(x.t) != DK_FLOAT) continue;
    b->trained[at] += (double)shape_bytes(&x);
    optim_state st;
    for (u32 k = 0; optim_state_find(o, &x, k, &st); k++) b->states[at] += (double)shape_bytes(&st.s);
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
  b->nbody = func_get(planner_source(pl), planner_source(pl)->main)->body.n;
  b->distir = o->bytes == SIM_BYTES_DISTIR;
  list_weights(b, a, planner_source(pl), &o->optim);
  return b;
}

bool memory_has_states(const memory_bounds *b) { return b->states[b->nbody] > 0; }

static void list_grads(const memory_bounds *b, known_kept *x, arena *a, const prog *p, bool wide,
                       const bool *accumulates) {
  const func_info *m = func_get(p, p->main);
  x->grads = ZNEWN(a, double, m->body.n + 2);
  const bool *behind = accumulates ? plan_behind_loss(p, a) : NULL;
  for (u32 i = 0; accumulates && i < m->nparams; i++) {
    const u32 first = b->first[i + 1];
    bool has = !first; // else: which stage has the gradient is not said here
    for (u32 r = 0; first && r < m->body.v[first - 1].nres; r++) has |= behind[m->body.v[first - 1].res + r];
    if (!has) continue;
    shape s = val_type(p, m, i + 1)->s;
    s.t = grad_acc_type(wide ? GRAD_ACC_F32 : GRAD_ACC, s.t);
    if (accumulates[i]) x->grads[MAX(first, 1u)] += (double)shape_bytes(&s);
  }
  for (u32 i = 1; i <= m->body.n; i++) x->grads[i] += x->grads[i - 1];
}

static known_kept *kept_of(const memory_bounds *b, worker *w, const search_opts *o, const strategy *s) {
  enum { OTHERS = CHOICES_OF_LINE | 1 << CHOICE_OF_DEALT | 1 << CHOICE_OF_KEPT | 1 << CHOICE_OF_DEGREE };
  for (known_kept *x = w->kept; x; x = x->next)
    if (x->s.tp.n == s->tp.n && x->s.recompute.n == s->recompute.n && x->s.sp.n == s->sp.n &&
        strategy_same_but(&x->s, s, OTHERS))
      return x;
  strategy of = strategy_of_stages(s); // on tp ranks that have all of the model
  of = strategy_without(&of, CHOICE_OF_DEALT), of = strategy_without(&of, CHOICE_OF_KEPT);
  of.dp = choice_default(CHOICE_dp), of.pp = choice_default(CHOICE_pp);
  of.schedule = choice_default(CHOICE_schedule); // of a file
  for (known_kept *x = w->kept; x; x = x->next)
    if (!strategy_compare(&x->s, &of)) return x;
  known_kept *x = ZNEWN(w->a, known_kept, 1);
  x->s = of, x->next = w->kept, w->kept = x;
  const u32 before = diag_count(w->c),
            nbody = func_get(planner_source(w->pl), planner_source(w->pl)->main)->body.n;
  hybrid_opts h = search_hybrid(o, &of);
  h.k = w->k;
  arena *tmp = arena_new();
  const plan *pn = policy_hybrid(w->pl, tmp, &h);
  const bool wide = pn && pn->wide_gradients;
  bool *accumulates = NULL;
  if (pn && !pn->batchnorm_groups) x->n = plan_kept(w->pl, pn, w->k, w->a, &x->v, &accumulates);
  arena_free(tmp);
  diag_truncate(w->c, before);
  list_kept(&x->sums, w->a, nbody, x->n, x->v);
  list_grads(b, x, w->a, planner_source(w->pl), wide, accumulates);
  if (!s->recompute.n) return x;
  strategy less = of;
  less.recompute = choice_default(CHOICE_recompute);
  const known_kept *none = kept_of(b, w, o, &less);
  list_again(&x->sums, w->a, planner_source(w->pl), none->n, none->v,
             choice_is(CHOICE_recompute, s->recompute, "full"));
  return x;
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

// On the mean rank of a place: while microbatches are on their way, and when all gradients are there. With sums beside the
// last backwards only a data rank's piece of those of other stages may be left by then.
typedef struct {
  double tasks, update;
  double again;       // of tasks: what the next backward makes again, beside what is kept
  double grads, most; // of all stages, of one
  u32 stages;         // that keep anything; of several it is not known whose backward comes next
} held;

static void add_stage(held *to, const memory_bounds *b, const known_kept *of, const strategy *s,
                      const plan *pn, u32 stage, u32 replica) {
  const u32 from = pn->segments[stage].from - 1, to_instr = pn->segments[stage].to, zero = s->zero.n;
  const double dp = s->dp.n, tp = s->tp.n;
  const bool states_once = zero >= 1 || choice_is(CHOICE_sync, s->sync, "ps");
  const u32 live = pn->made.live ? pn->made.live[replica * pn->nsegments + stage] : 0;
  const u8 away = pn->offload; // is on the device for a moment only
  double bytes =
      away & OFFLOAD_PARAMS ? 0 : (b->weights[to_instr] - b->weights[from]) / tp / (zero >= 3 ? dp : 1);
  if (pn->train && !b->distir && !(away & OFFLOAD_STATES))
    bytes += (b->states[to_instr] - b->states[from]) / tp / (states_once ? dp : 1);
  to->tasks += bytes, to->update += bytes;
  if (!pn->train || b->distir) return;
  const double grads = (b->trained[to_instr] - b->trained[from]) / tp / (zero >= 2 ? dp : 1);
  if (!(away & OFFLOAD_GRADS)) to->grads += grads, to->most = MAX(to->most, grads);
  if (!of) return;
  const kept_sums *x = &of->sums;
  if (s->mb.n > 1 && !(away & OFFLOAD_GRADS))
    to->tasks += (of->grads[to_instr] - of->grads[from]) / tp / (zero >= 2 ? dp : 1);
  if (!live || away & OFFLOAD_ACTS) return;
  const double all = kept_in(x, from, to_instr, to_instr);
  double most = all; // of the microbatch whose backward comes next
  const u32 last = x->again ? x->last_again[to_instr] : 0;
  if (last > from) most = MAX(most, kept_in(x, from, last - 1, to_instr) + x->again[last - 1]);
  to->tasks += all * live / dp / s->mb.n;
  to->again = (most - all) / dp / s->mb.n, to->stages++;
}

double memory_bound(const memory_bounds *b, worker *w, const search_opts *o, arena *a, const strategy *s,
                    const plan *pn) {
  const bool keeps = pn->train && !pn->batchnorm_groups && !b->distir;
  const known_kept *x = keeps ? kept_of(b, w, o, s) : NULL;
  held *place = ZNEWN(a, held, s->pp.n + 1);
  double most = 0;
  if (s->tp_stages.nparts || (pn->nreplicas > 1 && !bound_places(s))) return 0; // degrees differ by place
  if (sched_is_asynchronous(pn->made.row)) return 0;                            // nothing accumulates
  for (u32 r = 0; r < MAX(pn->nreplicas, 1u); r++)
    for (u32 k = 0; k < pn->nsegments; k++) {
      const u32 at = search_place(pn, r, k);
      const bool wide = policy_is_interlaced(s) && !pn->segments[k].on.nfix; // on all places
      if (at < s->pp.n && !wide) add_stage(&place[at], b, x, s, pn, k, r);
    }
  for (u32 q = 0; q < s->pp.n; q++) {
    held *h = &place[q];
    const bool in_pieces = s->zero.n == 1 && s->overlap.n & OVERLAP_DP;
    h->update += in_pieces ? MAX(h->grads / s->dp.n, h->most) : h->grads;
    most = MAX(most, MAX(h->tasks + (h->stages == 1 ? h->again : 0), h->update));
  }
  return most;
}
