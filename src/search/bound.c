// bound.c - what no plan of a strategy can beat: a proven lower bound on its time. On its memory: memory.c.
//
// Idea: whatever a plan is, its ranks compute the products (matmul, einsum, conv) of the single-device
// program, at the best rate of any device and in any shape at most. That work W, with K microbatches on n =
// dp x tp ranks of each of P places, is w = W / n / K for one microbatch and one rank of every place on
// average.
//
// - Some place has the mean of the work: its ranks compute for K w / P at least. Of ranks of several kinds: whatever
//   each is given, one of them takes W / (sum of the best rates of all) at least, W being the products of one type.
// - Where the products of the model form a chain (each needs all before it, and so do their gradients the other
//   way round), stage s starts when a microbatch has passed the stages before it, and these have a backward left
//   when s has ended its last one, for a gradient is sent when the backward has ended. So the step takes at least
//   K w_s + sum of w_r, r < s, for every s, w_s being the part of w on stage s; that is least when it is equal
//   for all s: w / (1 - (1 - 1/K)^P).
// - Where weight gradients are tasks of their own they may run late, beside the next step's first forwards: then
//   nothing is said of filling, nor where there are several stages on a place.
//
// Work that is measured instead, and stages as they are: work.c.
#include "search/internal.h"
#include <math.h>

// ---- products -------------------------------------------------------------------------------------------
typedef struct {
  const prog *p;
  const machine *m;
  const cost_model *k;
  double *memo; // seconds by function; below 0: not known yet
  arena *a;
  u32 first, mean; // the rate is the mean over so many ranks from `first` on; mean 0: the best of any
  dtype only;      // products of this type alone; DT_NONE: all
} counting;

static bool is_product(const instr *i) { return op_row_of(i->op)->flags & OPF_GEMM; }

static double product_time(const counting *x, const func_info *f, const instr *i) {
  prog *p = (prog *)(uintptr_t)x->p; // its session takes diagnostics, of which there are none
  const u32 n = instr_nopd(f, i);
  shape in[8], out[4];
  u32 nres = i->nres;
  double rate = 0;
  if (machine_is_measured(x->m)) return 0; // devices take what was measured, whatever their rates
  if (!n || n > COUNT_OF(in) || nres > COUNT_OF(out)) return 0;
  for (u32 k = 0; k < n; k++) in[k] = val_type(p, f, opd_of(f, i, k))->s;
  for (u32 k = 0; k < nres; k++) out[k] = val_type(p, f, i->res + k)->s;
  if (x->only != DT_NONE && in[0].t != x->only) return 0;
  for (u32 k = 0; k < x->m->nkinds && !x->mean; k++)
    rate = MAX(rate, cost_top_flops(x->k, &x->m->kind[k], in[0].t));
  for (u32 r = x->first; r < x->first + x->mean; r++)
    rate += cost_top_flops(x->k, machine_kind_of(x->m, r), in[0].t) / x->mean;
  const attrs at = attrs_get(p, i->at);
  const law *l = rate > 0 ? op_law(p->c, x->a, i->op, at, n, in, &nres, out, i->where) : NULL;
  return l ? op_flops(i->op, at, l) / rate : 0;
}

static double products_time(const counting *x, func f) {
  if (x->memo[f.i] >= 0) return x->memo[f.i];
  const func_info *fi = func_get(x->p, f);
  double sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    sum += in->op == OP_call ? products_time(x, in->callee) : is_product(in) ? product_time(x, fi, in) : 0;
  }
  return x->memo[f.i] = sum;
}

static counting counting_new(arena *a, const prog *p, const machine *m, const cost_model *k) {
  counting x = {p, m, k, NEWN(a, double, p->funcs.n), a, 0, 0, DT_NONE};
  for (u32 i = 0; i < p->funcs.n; i++) x.memo[i] = -1;
  return x;
}

// ---- chains -----------------------------------------------------------------------------------------------
enum { LOOKS_MOST = 1 << 20 }; // instructions looked at; more: no chain

typedef struct {
  counting *x;
  arena *a;
  u32 left;
} chains;

// Does a gradient pass the operator?
static bool passes(const chains *w, const func_info *f, const instr *i, u32 result) {
#define OP(name, min, max, res, law, lin, types, attrs, red, flops, flags, kernel, grad, doc)                \
  [OP_##name] = sizeof #grad == sizeof "zero" && #grad[0] == 'z',
  static const bool stops[OP_COUNT] = {
#include "op/ops.def"
  };
#undef OP
  const type_info *t = val_type(w->x->p, f, i->res + result);
  const bool stop = i->op < OP_COUNT ? stops[i->op] : !strcmp(op_row_of((opcode)i->op)->grad, "zero");
  return !stop && !t->tuple && dtype_kind_of(t->s.t) == DK_FLOAT;
}

static bool look(chains *w) { return w->left && w->left--; }

// in: which parameters depend on something; out: which results then do. Does every product?
static bool depend(chains *w, func f, const bool *in, bool *out) {
  const func_info *fi = func_get(w->x->p, f);
  bool *dep = ZNEWN(w->a, bool, fi->values.n), all = true;
  memcpy(dep + 1, in, fi->nparams * sizeof *dep);
  for (u32 i = 0; i < fi->body.n && all; i++) {
    const instr *x = &fi->body.v[i];
    const u32 n = instr_nopd(fi, x);
    bool *opd = ZNEWN(w->a, bool, n + 1), any = false;
    for (u32 k = 0; k < n; k++) any |= opd[k] = dep[opd_of(fi, x, k)];
    if (x->op == OP_call) {
      all = depend(w, x->callee, opd, dep + x->res);
      continue;
    }
    all = look(w) && (any || !is_product(x));
    for (u32 r = 0; r < x->nres; r++) dep[x->res + r] = any && passes(w, fi, x, r);
  }
  for (u32 r = 0; r < fi->rets.n; r++) out[r] = dep[fi->rets.v[r]];
  return all;
}

// out: some results; in: which parameters these depend on. Do they depend on every product?
static bool reach(chains *w, func f, const bool *out, bool *in) {
  const func_info *fi = func_get(w->x->p, f);
  bool *need = ZNEWN(w->a, bool, fi->values.n), all = true;
  for (u32 r = 0; r < fi->rets.n; r++) need[fi->rets.v[r]] |= out[r];
  for (u32 i = fi->body.n; i-- > 0 && all;) {
    const instr *x = &fi->body.v[i];
    const u32 n = instr_nopd(fi, x);
    bool *opd = ZNEWN(w->a, bool, n + 1), any = false;
    if (x->op == OP_call) {
      all = reach(w, x->callee, need + x->res, opd);
    } else {
      for (u32 r = 0; r < x->nres; r++) any |= need[x->res + r] && passes(w, fi, x, r);
      all = look(w) && (any || !is_product(x));
      for (u32 k = 0; k < n; k++) opd[k] = any;
    }
    for (u32 k = 0; k < n; k++) need[opd_of(fi, x, k)] |= opd[k];
  }
  if (in) memcpy(in, need + 1, fi->nparams * sizeof *in);
  return all;
}

// A call with products: do all of them depend on the values in `after`? Then `after` are the results that
// depend on all of them.
static bool extend_by_call(chains *w, const func_info *m, const instr *i, bool first, bool *after) {
  const func_info *callee = func_get(w->x->p, i->callee);
  bool *in = ZNEWN(w->a, bool, callee->nparams + 1), *one = ZNEWN(w->a, bool, i->nres + 1);
  for (u32 k = 0; k < callee->nparams; k++) in[k] = after[opd_of(m, i, k)];
  if (!first && !depend(w, i->callee, in, one)) return false;
  memset(after, 0, m->values.n * sizeof *after);
  for (u32 r = 0; r < i->nres; r++) {
    memset(one, 0, i->nres * sizeof *one);
    one[r] = true;
    after[i->res + r] = reach(w, i->callee, one, NULL);
  }
  return true;
}

// Does every product of main (or call with products) need all those before it, by a way that gradients take,
// too? until: the value that needs them all in the end; 0: none.
static bool is_chain(chains *w, value until) {
  const prog *p = w->x->p;
  const func_info *m = func_get(p, p->main);
  bool *after = ZNEWN(w->a, bool, m->values.n), first = true;
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *x = &m->body.v[i];
    bool any = false;
    for (u32 k = 0; k < instr_nopd(m, x); k++) any |= after[opd_of(m, x, k)];
    const bool call = x->op == OP_call && products_time(w->x, x->callee) > 0, product = call || is_product(x);
    if (product && !first && !any) return false;
    if (call && !extend_by_call(w, m, x, first, after)) return false;
    if (call) {
      first = false;
      continue;
    }
    if (x->op == OP_call) {
      bool *in = ZNEWN(w->a, bool, instr_nopd(m, x) + 1);
      for (u32 k = 0; k < instr_nopd(m, x); k++) in[k] = after[opd_of(m, x, k)];
      if (!depend(w, x->callee, in, after + x->res)) return false;
      continue;
    }
    if (product) memset(after, 0, m->values.n * sizeof *after), first = false;
    for (u32 r = 0; r < x->nres; r++) after[x->res + r] = (any || product) && passes(w, m, x, r);
  }
  return !until || after[until];
}

// ---- one search -------------------------------------------------------------------------------------------
void bounds_make(arena *keep, const search *s, bounds *b) {
  planner *pl = s->w[0].pl;
  cost_model *k = s->w[0].k;
  const machine *m = s->m;
  const search_opts *o = s->o;
  prog *src = planner_source(pl);
  const func_info *f = func_get(src, src->main);
  arena *a = arena_new();
  *b = (bounds){.train = o->train, .memory = memory_bounds_make(keep, pl, o)};
  b->nwindows = space_windows(m, o, s->ranks, b->window);
  counting x = counting_new(a, src, m, k);
  const double forward = products_time(&x, src->main); // what nobody uses included
  prog *whole = plan_apply(pl, plan_single(a, src, o->train, &o->optim), NULL);
  if (whole) { // else no plan can be made
    counting y = counting_new(a, whole, m, k);
    b->work = products_time(&y, whole->main);
    for (u32 w = 0; w < b->nwindows; w++) {
      rank_window *of = &b->window[w];
      of->spread = b->work;
      for (u32 t = 1; s->several && t < DT_COUNT; t++) { // kinds may be good at different types
        counting z = counting_new(a, whole, m, k);
        z.first = of->first, z.mean = of->n, z.only = (dtype)t;
        of->spread = MAX(products_time(&z, whole->main), of->spread);
      }
    }
    prog_free(whole);
  }
  double *before = b->forward = NEWN(keep, double, f->body.n + 1);
  before[0] = 0;
  for (u32 i = 0; i < f->body.n; i++) {
    const instr *in = &f->body.v[i];
    before[i + 1] = before[i] + (in->op == OP_call ? products_time(&x, in->callee)
                                 : is_product(in)  ? product_time(&x, f, in)
                                                   : 0);
  }
  b->missing = MAX(3 * forward - b->work, 0);
  chains w = {&x, a, LOOKS_MOST};
  b->chain = is_chain(&w, o->train && f->rets.n ? f->rets.v[0] : 0) && b->work <= 3 * forward * (1 + 1e-9);
  diag_clear(src->c);
  arena_free(a);
}

// ---- one strategy -----------------------------------------------------------------------------------------
// The least that the largest of K w_s + sum of w_r, r < s, can be over P stages with w in all.
static double filled(double w, double P, double K) { return w / (1 - pow(1 - 1 / K, P)); }

bool bound_places(const strategy *s) {
  return !s->schedule.path && !s->replicas.nparts && !sched_is_asynchronous(sched_row_of(s->schedule.n));
}

u32 bound_replicas(const strategy *s) { return sched_replicas(sched_row_of(s->schedule.n)); }

bool bound_splits(const bounds *b, const strategy *s) { return b->train && policy_splits_backward(s, true); }
bool bound_fills(const bounds *b, const strategy *s) {
  return b->chain && !bound_splits(b, s) && bound_places(s);
}

// And of it, the time of the products spread evenly.
static double seconds(const bounds *b, const strategy *s, double *even) {
  const u64 ranks = strategy_ranks(s);
  double all = b->work;
  for (u32 k = 0; k < b->nwindows; k++)
    if (b->window[k].first == s->skip.n && b->window[k].n == ranks) all = b->window[k].spread;
  const double K = s->mb.n, P = s->pp.n, w = b->work / s->dp.n / s->tp.n / K, mean = all / (double)ranks;
  *even = mean;
  if (s->pp.n == 1 || s->v.n > 1 || !bound_fills(b, s) || bound_replicas(s) > 1) return mean;
  if (policy_is_interlaced(s)) return mean; // what lies on all places does not wait for the others
  return MAX(mean, filled(w, P, K));
}

i64 bound_of_all(const bounds *b) {
  double least = INFINITY;
  for (u32 w = 0; w < b->nwindows; w++) least = MIN(least, b->window[w].spread / b->window[w].n);
  return (i64)(least * 1e12 * 0.999999);
}

void bound(const bounds *b, search_point *p) {
  double even;
  const strategy s = search_strategy(p);
  p->bound_ps = p->products_ps = (i64)(seconds(b, &s, &even) * 1e12 * 0.999999);
  p->bound_fill_ps = MAX(p->bound_ps - (i64)(even * 1e12 * 0.999999), 0);
}

double bound_products(const bounds *b, const strategy *s, bool splits, u32 from, u32 to) {
  const double forward = b->forward[to] - b->forward[from];
  const double all = b->train && !splits ? MAX(forward, 3 * forward - b->missing) : forward;
  return all / s->dp.n / s->tp.n / s->mb.n * 1e12;
}
