// hybrid.c - data x tensor x pipeline x microbatches with ZeRO and recompute: the parts of a plan put
// together from the mechanism's primitives.
#include "plan/plan.h"

// ---- the batch over an axis -------------------------------------------------------------------------------
// The batch is the index of the most major atom of the first input's first dimension; every input is split
// wherever that index occurs.
bool policy_batch(planner *pl, arena *a, plan *pn, u8 axis) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  const classes *k = planner_classes(pl);
  u32 batch = 0, n = pn->axes[axis - 1].size, first = 0;
  plan_trans *more = NEWN(a, plan_trans, pn->ntrans + m->nparams + 1);
  if (pn->ntrans) memcpy(more, pn->trans, sizeof *more * pn->ntrans);
  pn->trans = more;
  bool ok = true;
  for (u32 i = 0; i < m->nparams && ok; i++) {
    if (m->params.v[i].r != ROLE_INPUT && m->params.v[i].r != ROLE_LABEL) continue;
    const shape *s = &val_type(p, m, i + 1)->s;
    for (u32 d = 0; d < s->nd; d++) {
      u32 id[16], na = classes_dim(k, p->main, i + 1, d, id, 16);
      if (!first) first = i + 1, batch = na ? id[0] : 0;
      i64 inner = s->dim[d];
      for (u32 j = 0; j < na; j++) {
        i64 e = classes_get(k, id[j])->extent;
        inner /= e;
        if (id[j] != batch) continue;
        i64 left = e; // of the batch after the axes that split it already
        for (u32 t = 0; t < pn->ntrans; t++)
          if (pn->trans[t].fn.i == p->main.i && !pn->trans[t].instr && pn->trans[t].index == i &&
              pn->trans[t].dim == d)
            left /= pn->axes[pn->trans[t].axis - 1].size;
        if (left % n) {
          diag(p->c, E_DIVIDE, m->where, "a batch of %lld leaves %lld, which cannot be split %u ways over %s",
               (long long)e, (long long)left, n, sym_str(p->c, pn->axes[axis - 1].name));
          diag_hint(p->c, "choose a batch that is a multiple of data x microbatches");
          ok = false;
          break;
        }
        pn->trans[pn->ntrans++] =
            (plan_trans){.fn = p->main, .index = i, .dim = (u8)d, .axis = axis, .stride = inner * (left / n)};
      }
    }
  }
  if (!ok || batch) return ok;
  const char *name = first ? sym_str(p->c, val(m, first)->name) : "";
  if (!first)
    diag(p->c, E_PLAN, m->where, "the model has no input with a batch to split");
  else
    diag(p->c, E_DIVIDE, m->where,
         "the batch, the first extent of input %s, is 1: it cannot be split %u ways over %s", name, n,
         sym_str(p->c, pn->axes[axis - 1].name));
  if (first) diag_hint(p->c, "a larger batch, or --tensor");
  return false;
}

// ---- stages -----------------------------------------------------------------------------------------------
static double func_flops(planner *pl, arena *a, func f, double *memo) {
  if (memo[f.i] >= 0) return memo[f.i];
  prog *p = planner_source(pl);
  const func_info *fi = func_get(p, f);
  double sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call)
      sum += func_flops(pl, a, in->callee, memo);
    else if (op_row_of(in->op)->flags & OPF_GEMM)
      sum += op_flops(in->op, attrs_get(p, in->at), plan_law(pl, f, i));
  }
  return memo[f.i] = sum;
}

static i64 crossing(const prog *p, const func_info *m, const u32 *last,
                    u32 at) { // bytes alive between instruction at and the next
  i64 bytes = 0;
  for (value v = 1; v < m->values.n; v++)
    if (m->values.v[v].def && m->values.v[v].def <= at && last[v] > at)
      bytes += shape_bytes(&val_type(p, m, v)->s);
  return bytes;
}

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

bool policy_stages(planner *pl, arena *a, plan *pn, u8 axis, u32 P) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  u32 n = m->body.n, heavy = 0;
  arena *tmp = arena_new();
  double *w = NEWN(tmp, double, n), *memo = NEWN(tmp, double, p->funcs.n), total = 0, hi, lo = 0;
  for (u32 f = 0; f < p->funcs.n; f++) memo[f] = -1;
  for (u32 i = 0; i < n; i++) {
    const instr *in = &m->body.v[i];
    w[i] = in->op == OP_call ? func_flops(pl, tmp, in->callee, memo)
           : op_row_of(in->op)->flags & OPF_GEMM
               ? op_flops(in->op, attrs_get(p, in->at), plan_law(pl, p->main, i))
               : 0;
    total += w[i], lo = MAX(lo, w[i]), heavy += w[i] > 0;
  }
  if (heavy < P) {
    diag(p->c, E_DIVIDE, m->where, "%u stages, but the model has only %u blocks or products to deal out", P,
         heavy);
    arena_free(tmp);
    return false;
  }
  hi = total;
  for (u32 it = 0; it < 60; it++) {
    double mid = (lo + hi) / 2;
    if (stages_under(w, n, mid, NULL) <= P)
      hi = mid;
    else
      lo = mid;
  }
  u32 *ends = NEWN(tmp, u32, n + 1), *firsts = NEWN(tmp, u32, n + 1), *last = ZNEWN(tmp, u32, m->values.n),
      got = stages_under(w, n, hi, firsts);
  for (u32 s = 0; s < got; s++) ends[s] = s + 1 == got ? n : firsts[got - 2 - s];
  while (got < P) { // more stages than the balance needs: split the stage with the most heavy instructions
    u32 best = 0, most = 0;
    for (u32 s = 0; s < got; s++) {
      u32 c = 0;
      for (u32 i = s ? ends[s - 1] : 0; i < ends[s]; i++) c += w[i] > 0;
      if (c > most) most = c, best = s;
    }
    u32 from = best ? ends[best - 1] : 0, c = 0, at = from;
    for (u32 i = from; i < ends[best]; i++)
      if (w[i] > 0 && ++c == most / 2 + 1) at = i;
    memmove(ends + best + 1, ends + best, (got - best) * sizeof *ends);
    ends[best] = at;
    got++;
  }
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < m->body.v[i].nopd; k++) last[opd_of(m, &m->body.v[i], k)] = i + 1;
  pn->nsegments = P;
  pn->segments = ZNEWN(a, plan_segment, P);
  u32 from = 1;
  for (u32 s = 0; s < P; s++) {
    u32 to = s + 1 == P ? n : ends[s];
    if (s + 1 < P) { // the cheapest place to cut between the last heavy instruction and the next one
      u32 lo_at = to;
      while (lo_at > from && w[lo_at - 1] == 0) lo_at--;
      i64 least = crossing(p, m, last, to);
      for (u32 at = to; at-- > lo_at;) {
        if (at < from) break;
        i64 c = crossing(p, m, last, at);
        if (c < least) least = c, to = at;
      }
    }
    plan_segment *ps = &pn->segments[s];
    ps->from = from, ps->to = to;
    if (axis) ps->place.nfix = 1, ps->place.fix[0] = (plan_fix){axis, s};
    from = to + 1;
  }
  arena_free(tmp);
  return true;
}

// ---- schedules --------------------------------------------------------------------------------------------
// One place per segment, tasks in the exact orders of GPipe (all forwards, then all backwards) and 1F1B
// (PipeDream-Flush: min(P-1-r, K) warm-up forwards, then one forward and one backward in turn, then the
// remaining backwards).
bool policy_schedule(planner *pl, arena *a, plan *pn, int schedule) {
  (void)pl;
  u32 P = pn->nsegments, K = pn->time ? pn->axes[pn->time - 1].size : 1;
  pn->nseqs = P;
  pn->seqs = NEWN(a, task_seq, P);
  for (u32 s = 0; s < P; s++) {
    task *t = NEWN(a, task, 2 * K);
    u32 n = 0, warm = !pn->train ? K : schedule == SCHED_GPIPE ? K : MIN(P - 1 - s, K);
    for (u32 i = 0; i < warm; i++) t[n++] = (task){(u16)s, TASK_F, i};
    for (u32 i = warm; i < K; i++) {
      t[n++] = (task){(u16)s, TASK_F, i};
      t[n++] = (task){(u16)s, TASK_B, i - warm};
    }
    for (u32 i = K - warm; pn->train && i < K; i++) t[n++] = (task){(u16)s, TASK_B, i};
    pn->seqs[s] = (task_seq){n, t};
  }
  return true;
}

// ---- memory -----------------------------------------------------------------------------------------------
void policy_zero(plan *pn, u8 axis, u32 level) { // 1: optimiser states, 2: gradients too, 3: weights too
  static const rest_what what[] = {REST_STATE, REST_GRAD, REST_WEIGHT};
  for (u32 i = 0; i < level && i < 3; i++) pn->rest[what[i]][pn->nrest[what[i]]++] = axis;
}

// Full: every call of a function of main keeps its inputs only. Selective: products of activations with
// activations and what lies between them (attention scores, softmax) are computed again.
bool policy_recompute(planner *pl, arena *a, plan *pn, int what) {
  prog *p = planner_source(pl);
  if (what == RECOMPUTE_NONE) return true;
  u32 total = 0;
  for (u32 f = 1; f < planner_funcs(pl); f++) total += p->funcs.v[f]->body.n;
  pn->recompute = arena_alloc(a, sizeof *pn->recompute * (total + 1));
  const func_info *m = func_get(p, p->main);
  for (u32 i = 0; what == RECOMPUTE_FULL && i < m->body.n; i++)
    if (m->body.v[i].op == OP_call)
      pn->recompute[pn->nrecompute].fn = p->main, pn->recompute[pn->nrecompute++].instr = i + 1;
  for (u32 f = 1; what == RECOMPUTE_SELECTIVE && f < planner_funcs(pl); f++) {
    const func_info *fi = p->funcs.v[f];
    bool *scores =
        ZNEWN(a, bool, fi->values.n); // depends on a product of activations, by cheap instructions only
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      bool gemm = op_row_of(in->op)->flags & OPF_GEMM, from = false, weight = false;
      for (u32 k = 0; k < instr_nopd(fi, in); k++) {
        value v = opd_of(fi, in, k);
        from |= scores[v];
        weight |= !fi->values.v[v].def && fi->params.v[v - 1].r == ROLE_WEIGHT;
      }
      bool again = in->op != OP_call && ((gemm && !weight) || (!gemm && from));
      for (u32 k = 0; k < in->nres; k++) scores[in->res + k] = again && !(gemm && from);
      if (again && in->nres)
        pn->recompute[pn->nrecompute].fn = (func){f}, pn->recompute[pn->nrecompute++].instr = i + 1;
    }
  }
  return true;
}

// ---- all together -----------------------------------------------------------------------------------------
static u8 add_axis(ctx *c, plan *pn, const char *name, u32 size, bool temporal) {
  pn->axes[pn->naxes++] = (plan_axis){sym_of(c, name), size, temporal};
  return (u8)pn->naxes;
}

plan *policy_hybrid(planner *pl, arena *a, const hybrid_opts *o) {
  prog *p = planner_source(pl);
  ctx *c = p->c;
  plan *pn = NEW(a, plan);
  pn->train = o->train, pn->optim = o->optim, pn->keep_gradients = o->keep_gradients;
  pn->axes = NEWN(a, plan_axis, 8);
  pn->meshes = ZNEWN(a, plan_mesh, 1);
  pn->nmeshes = 1;
  u8 pp = add_axis(c, pn, "pp", o->pipeline, false), dp = add_axis(c, pn, "dp", o->data, false),
     tp = add_axis(c, pn, "tp", o->tensor, false);
  pn->meshes[0] = (plan_mesh){.name = sym_of(c, "m"), .naxes = 3, .axis = {pp, dp, tp}};
  if (o->overlap) pn->send_stream = sym_of(c, "pp");
  if (o->micro > 1) pn->time = add_axis(c, pn, "mb", o->micro, true);
  if (o->data > 1 && !policy_batch(pl, a, pn, dp)) return NULL;
  if (o->micro > 1 && !policy_batch(pl, a, pn, pn->time)) return NULL;
  if (o->tensor > 1 && !policy_tensor(pl, a, pn, tp, o->whole_tables)) return NULL;
  if (o->tensor > 1 && o->sequence && !policy_sequence(pl, a, pn, tp)) return NULL;
  if (!policy_stages(pl, a, pn, pp, o->pipeline)) return NULL;
  if (o->data > 1) policy_zero(pn, dp, o->zero);
  if (!policy_recompute(pl, a, pn, o->recompute) || !policy_schedule(pl, a, pn, o->schedule)) return NULL;
  strbuf s = {.a = a};
  sb_fmt(&s, "D%u T%u P%u K%u", o->data, o->tensor, o->pipeline, o->micro);
  if (o->pipeline > 1 && o->train) sb_fmt(&s, " %s", o->schedule == SCHED_GPIPE ? "gpipe" : "1f1b");
  if (o->zero && o->data > 1) sb_fmt(&s, " zero%u", o->zero);
  if (o->recompute) sb_put(&s, o->recompute == RECOMPUTE_FULL ? " recompute" : " selective");
  if (o->sequence && o->tensor > 1) sb_put(&s, " sp");
  pn->name = sym_of(c, sb_str(&s));
  return pn;
}
