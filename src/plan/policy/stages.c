// stages.c - which instructions of main each pipeline stage runs.
//
// Idea: what is dealt out is heavy: the calls of main and its products, or the calls alone where layers are
// counted. That decides the last heavy instruction of every stage. What lies between it and the next heavy
// one may go to either: the cut is where the fewest bytes cross.
#include "plan/plan.h"

typedef struct {
  planner *pl;
  prog *p;
  const func_info *m;
  arena *tmp;
  const sched *file; // that has the places of the stages; NULL: stage s lies on place s mod places
  u32 n, P, places;  // instructions of main; stages; places
  double *w;         // per instruction: its work; 0: not heavy
  u32 *first, *cut;  // per stage but the last: it may be cut after first[s] to cut[s] instructions
} dealing;

// ---- work ---------------------------------------------------------------------------------------------
static double func_flops(planner *pl, func f, double *memo) {
  if (memo[f.i] >= 0) return memo[f.i];
  prog *p = planner_source(pl);
  const func_info *fi = func_get(p, f);
  double sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call)
      sum += func_flops(pl, in->callee, memo);
    else if (op_row_of(in->op)->flags & OPF_GEMM)
      sum += op_flops(in->op, attrs_get(p, in->at), plan_law(pl, f, i));
  }
  return memo[f.i] = sum;
}

static u32 weigh(dealing *d) { // returns how many instructions are heavy
  double *memo = NEWN(d->tmp, double, d->p->funcs.n);
  u32 heavy = 0;
  for (u32 f = 0; f < d->p->funcs.n; f++) memo[f] = -1;
  for (u32 i = 0; i < d->n; i++) {
    const instr *in = &d->m->body.v[i];
    d->w[i] = in->op == OP_call ? func_flops(d->pl, in->callee, memo)
              : op_row_of(in->op)->flags & OPF_GEMM
                  ? op_flops(in->op, attrs_get(d->p, in->at), plan_law(d->pl, d->p->main, i))
                  : 0;
    heavy += d->w[i] > 0;
  }
  return heavy;
}

// ---- by cost ------------------------------------------------------------------------------------------
// Stages of at most `most` work, filled from the last one: the first stage, which keeps the most activations
// alive, gets what is left. Returns how many; firsts[k] is the first instruction of the k-th stage from the
// end.
static u32 stages_under(const double *w, u32 n, double most, u32 *firsts) {
  u32 k = 0;
  double sum = 0;
  for (u32 i = n; i-- > 0;) {
    if (sum > 0 && sum + w[i] > most) {
      if (firsts) firsts[k] = i + 1;
      k++, sum = 0;
    }
    sum += w[i];
  }
  if (firsts) firsts[k] = 0;
  return k + 1;
}

// The least work of the largest stage, by bisection.
static double least_most(const dealing *d) {
  double lo = 0, hi = 0;
  for (u32 i = 0; i < d->n; i++) hi += d->w[i], lo = MAX(lo, d->w[i]);
  for (u32 it = 0; it < 60; it++) {
    double mid = (lo + hi) / 2;
    if (stages_under(d->w, d->n, mid, NULL) <= d->P)
      hi = mid;
    else
      lo = mid;
  }
  return hi;
}

// Splits the stage with the most heavy instructions in two. ends: of `got` stages.
static void split_one(const dealing *d, u32 *ends, u32 got) {
  u32 best = 0, most = 0;
  for (u32 s = 0; s < got; s++) {
    u32 c = 0;
    for (u32 i = s ? ends[s - 1] : 0; i < ends[s]; i++) c += d->w[i] > 0;
    if (c > most) most = c, best = s;
  }
  u32 from = best ? ends[best - 1] : 0, c = 0, at = from;
  for (u32 i = from; i < ends[best]; i++)
    if (d->w[i] > 0 && ++c == most / 2 + 1) at = i;
  memmove(ends + best + 1, ends + best, (got - best) * sizeof *ends);
  ends[best] = at;
}

static bool deal_by_cost(dealing *d) {
  u32 heavy = weigh(d);
  if (d->P > 1 && heavy < d->P) {
    diag(d->p->c, E_DIVIDE, d->m->where, "%u pipeline stages, but the model has only %u blocks and matmuls",
         d->P, heavy);
    diag_hint(d->p->c, "pp=%u%s", MAX(heavy, 1u), heavy > 1 ? " at most" : "");
    return false;
  }
  u32 *ends = NEWN(d->tmp, u32, d->n + 1), *firsts = NEWN(d->tmp, u32, d->n + 1),
      got = stages_under(d->w, d->n, least_most(d), firsts);
  for (u32 s = 0; s < got; s++) ends[s] = s + 1 == got ? d->n : firsts[got - 2 - s];
  while (got < d->P) split_one(d, ends, got++); // more stages than the balance needs
  for (u32 s = 0; s + 1 < d->P; s++) {
    d->cut[s] = d->first[s] = ends[s];
    while (d->first[s] > 0 && d->w[d->first[s] - 1] == 0) d->first[s]--;
  }
  return true;
}

// ---- by numbers ---------------------------------------------------------------------------------------
// Every layer, a call of main, is in one stage: part[s] of them in stage s.
static void deal_layers(dealing *d, const u32 *part) {
  u32 s = 0, left = part[0];
  for (u32 i = 0; i < d->n; i++) {
    if (d->m->body.v[i].op != OP_call) continue;
    if (!left) d->cut[s++] = i, left = part[s];
    if (!--left && s + 1 < d->P) d->first[s] = i + 1;
  }
}

static u32 count_layers(const func_info *m) {
  u32 n = 0;
  for (u32 i = 0; i < m->body.n; i++) n += m->body.v[i].op == OP_call;
  return n;
}

// Of n layers, numbers that differ by one at most, the larger ones first.
static bool deal_equal(dealing *d, loc at) {
  u32 n = count_layers(d->m), *part = NEWN(d->tmp, u32, d->P);
  assert(d->P > 0);
  if (n < d->P) {
    diag(d->p->c, E_DIVIDE, at, "layers=equal: %u stages, but the model has %u repeated layers", d->P, n);
    diag_hint(d->p->c, "layers=cost distributes single matmuls too%s", n > 1 ? ", or use fewer stages" : "");
    return false;
  }
  for (u32 s = 0; s < d->P; s++) part[s] = n / d->P + (s < n % d->P);
  deal_layers(d, part);
  return true;
}

static bool deal_numbers(dealing *d, choice_value layers, loc at) {
  u32 n = count_layers(d->m);
  u64 sum = 0;
  for (u32 s = 0; s < layers.nparts; s++) sum += layers.part[s];
  if (layers.nparts != d->P) {
    diag(d->p->c, E_DIVIDE, at, "layers has %u number%s, but there are %u stages (pp=%u)", layers.nparts,
         layers.nparts == 1 ? "" : "s", d->P, d->P);
    diag_hint(d->p->c, "one number for each stage, or pp=%u", layers.nparts);
    return false;
  }
  if (sum != n) {
    diag(d->p->c, E_DIVIDE, at, "layers adds up to %llu, but the model has %u layers",
         (unsigned long long)sum, n);
    diag_hint(d->p->c, "use numbers that add up to %u, or layers=equal", n);
    return false;
  }
  deal_layers(d, layers.part);
  return true;
}

// ---- cuts ---------------------------------------------------------------------------------------------
// Bytes alive between instruction `at` and the next.
static i64 crossing(const prog *p, const func_info *m, const u32 *last, u32 at) {
  i64 bytes = 0;
  for (value v = 1; v < m->values.n; v++)
    if (m->values.v[v].def && m->values.v[v].def <= at && last[v] > at)
      bytes += shape_bytes(&val_type(p, m, v)->s);
  return bytes;
}

// Of the places where stage s may be cut, the last of the cheapest.
static u32 cheapest_cut(const dealing *d, const u32 *last, u32 s, u32 from) {
  u32 to = d->cut[s];
  i64 least = crossing(d->p, d->m, last, to);
  for (u32 at = to; at-- > d->first[s] && at >= from;) {
    i64 c = crossing(d->p, d->m, last, at);
    if (c < least) least = c, to = at;
  }
  return to;
}

static u32 place_of(const dealing *d, u32 stage) {
  return d->file ? d->file->at[stage].v[0] : stage % d->places;
}

static const u32 *ends_of(dealing *d, const strategy *s) {
  u32 *last = ZNEWN(d->tmp, u32, d->m->values.n), *end = NEWN(d->tmp, u32, d->P), from = 1;
  for (u32 i = 0; i < d->n; i++)
    for (u32 k = 0; k < d->m->body.v[i].nopd; k++) last[opd_of(d->m, &d->m->body.v[i], k)] = i + 1;
  for (u32 k = 0; k < d->P; k++) {
    end[k] = k + 1 == d->P ? d->n : cheapest_cut(d, last, k, from);
    from = end[k] + 1;
  }
  planner_keep_ends(d->pl, d->P, s->layers, end);
  return end;
}

static const u32 *deal(dealing *d, const strategy *s, loc at) {
  d->w = ZNEWN(d->tmp, double, d->n + 1);
  d->first = ZNEWN(d->tmp, u32, d->P), d->cut = ZNEWN(d->tmp, u32, d->P);
  bool ok = s->layers.nparts                               ? deal_numbers(d, s->layers, at)
            : choice_is(CHOICE_layers, s->layers, "equal") ? deal_equal(d, at)
                                                           : deal_by_cost(d);
  return ok ? ends_of(d, s) : NULL;
}

bool policy_stages(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s, const sched *file, loc at) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  arena *tmp = arena_new();
  dealing d = {.pl = pl,
               .p = p,
               .m = m,
               .tmp = tmp,
               .file = file,
               .n = m->body.n,
               .P = s->pp.n * s->v.n,
               .places = s->pp.n};
  const u64 key = hash_u64((u64)d.P << 32 | s->layers.n, s->layers.nparts + 2);
  const u32 *end = planner_kept_ends(pl, d.P, s->layers), said = diag_count(p->c);
  if (!end && (s->layers.nparts || !planner_refused(pl, key))) {
    end = deal(&d, s, at.i ? at : m->where);
    if (!end && !s->layers.nparts) planner_keep_refusal(pl, key, said);
  }
  pn->nsegments = end ? d.P : 0;
  pn->segments = ZNEWN(a, plan_segment, pn->nsegments + 1);
  for (u32 k = 0; k < pn->nsegments; k++) {
    plan_segment *ps = &pn->segments[k];
    ps->from = k ? end[k - 1] + 1 : 1, ps->to = end[k];
    if (axis) ps->on.nfix = 1, ps->on.fix[0] = (plan_fix){axis, place_of(&d, k)};
  }
  arena_free(tmp);
  return end != NULL;
}
