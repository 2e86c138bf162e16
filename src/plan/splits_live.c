// splits_live.c - the steps of splits_live.h, and the cost of a whole assignment, made of them.
#include "plan/splits_live.h"

static i64 way(const splits_tensor *t, u32 from, u32 to, step *s) {
  const i64 ps = from == to ? 0 : t->convert[from * t->nstates + to];
  s->possible = s->possible && ps >= 0;
  return MAX(ps, 0);
}

static i64 kept(const splits_tensor *t, u32 lies) { return t->bytes ? t->bytes[lies] : 0; }

static void read_forward(const splits_problem *p, const splits_tensor *t, live *x, u32 need, step *s) {
  if (x->made == LIES_NONE) { // a weight lies as it is read first
    x->made = x->base = x->back = need == LIES_SUM ? LIES_WHOLE : (u8)need;
    s->bytes += kept(t, x->made);
  }
  if (need == x->made || x->has[0] >> need & 1) return;
  s->time_ps += p->forwards * way(t, x->base, need, s);
  x->has[0] |= (u16)(1u << need);
  if (x->base != LIES_SUM || t->weight) return;
  x->base = (u8)need; // the sum is kept, not the summands
  s->bytes += kept(t, need);
}

static void read_backward(const splits_tensor *t, live *x, u32 need, step *s) {
  if (need == LIES_SUM || need == x->base || x->has[1] >> need & 1) return;
  s->time_ps += way(t, x->base, need, s);
  x->has[1] |= (u16)(1u << need);
}

static void add_gradient(const splits_tensor *t, live *x, u32 grad, step *s) {
  const u32 was = x->grad;
  if (was == LIES_NONE || was == grad) {
    x->grad = (u8)grad;
    return;
  }
  const u32 both = was >= LIES_PIECES ? was : grad >= LIES_PIECES ? grad : (u32)LIES_WHOLE;
  s->time_ps += way(t, was, both, s) + way(t, grad, both, s);
  x->grad = (u8)both;
}

void splits_end(const splits_tensor *t, const live *x, step *s) {
  if (!t->weight && x->base == LIES_SUM) s->bytes += kept(t, LIES_SUM); // nobody took the sum
  if (t->weight && t->settle) {
    const i64 ps = t->settle[(x->grad == LIES_NONE ? t->nstates : x->grad) * t->nstates + x->made];
    s->time_ps += MAX(ps, 0);
    s->possible = s->possible && ps >= 0;
    return;
  }
  if (!t->gradient || x->grad == LIES_NONE) return;
  if (x->back == LIES_SUM) // as it comes
    s->possible = s->possible && x->grad == LIES_SUM;
  else
    s->time_ps += way(t, x->grad, x->back, s);
}

live splits_begin(const splits_tensor *t, const splits_option *o, u32 result, step *s) {
  const u8 made = o->made[result], back = o->grads_come ? LIES_SUM : made == LIES_SUM ? LIES_WHOLE : made;
  if (made != LIES_NONE && made != LIES_SUM) s->bytes += kept(t, made);
  return (live){.made = made, .base = made, .grad = LIES_NONE, .back = back};
}

void splits_read(const splits_problem *p, const splits_tensor *t, live *l, const splits_op *x, u32 operand,
                 const splits_option *o, step *s) {
  const u32 need = o->need[operand], grad = o->grad[operand];
  if (o->as_comes && l->made != LIES_NONE && (l->made != need || l->base != need)) s->possible = false;
  read_forward(p, t, l, need, s);
  if (x->again && x->again[operand]) read_backward(t, l, need, s);
  if (t->gradient && grad != LIES_NONE) add_gradient(t, l, grad, s);
}

void splits_readers_of(arena *a, const splits_problem *p, splits_readers *out) {
  u32 n = 0;
  for (u32 i = 0; i < p->nops; i++) n += p->op[i].nopd;
  *out = (splits_readers){.begin = ZNEWN(a, u32, p->ntensors + 2),
                          .reader = NEWN(a, u32, n + 1),
                          .operand = NEWN(a, u32, n + 1),
                          .maker = ZNEWN(a, u32, p->ntensors + 1),
                          .result = ZNEWN(a, u32, p->ntensors + 1)};
  u32 *at = out->begin;
  for (u32 i = 0; i < p->nops; i++)
    for (u32 k = 0; k < p->op[i].nopd; k++) at[p->op[i].opd[k] + 1]++;
  for (u32 t = 0; t < p->ntensors; t++) at[t + 1] += at[t];
  u32 *next = NEWN(a, u32, p->ntensors + 1);
  memcpy(next, at, sizeof *next * p->ntensors);
  for (u32 i = 0; i < p->nops; i++) {
    const splits_op *x = &p->op[i];
    for (u32 k = 0; k < x->nopd; k++) {
      const u32 q = next[x->opd[k]]++;
      out->reader[q] = i, out->operand[q] = k;
    }
    for (u32 k = 0; k < x->nres; k++) out->maker[x->res[k]] = i + 1, out->result[x->res[k]] = k;
  }
}

step splits_tensor_cost(const splits_problem *p, const splits_readers *r, u32 tensor, const u16 *option) {
  const splits_tensor *t = &p->tensor[tensor];
  step s = {.possible = true};
  live l = {.made = LIES_NONE, .base = LIES_NONE, .grad = LIES_NONE};
  if (r->maker[tensor]) {
    const u32 i = r->maker[tensor] - 1;
    l = splits_begin(t, &p->op[i].option[option[i]], r->result[tensor], &s);
  }
  for (u32 q = r->begin[tensor]; q < r->begin[tensor + 1]; q++) {
    const u32 i = r->reader[q];
    splits_read(p, t, &l, &p->op[i], r->operand[q], &p->op[i].option[option[i]], &s);
  }
  if (l.made != LIES_NONE) splits_end(t, &l, &s);
  return s;
}

static bool is_own(const splits_problem *p, const splits_readers *r, u32 tensor) {
  const u32 from = r->begin[tensor], end = r->begin[tensor + 1];
  bool own = p->tensor[tensor].weight && !r->maker[tensor];
  for (u32 q = from; q < end; q++) own = own && r->reader[q] == r->reader[from];
  return own;
}

static void fold_op(arena *a, const splits_problem *p, const splits_readers *r, u32 i, u16 *option,
                    splits_op *op, bool *never) {
  const splits_op *x = &p->op[i];
  u32 *opd = NEWN(a, u32, x->nopd + 1), *from = NEWN(a, u32, x->nopd + 1);
  bool *again = NEWN(a, bool, x->nopd + 1);
  splits_option *o = NEWN(a, splits_option, x->noptions + 1);
  *op = *x;
  op->nopd = 0;
  for (u32 k = 0; k < x->nopd; k++) {
    if (is_own(p, r, x->opd[k])) continue;
    opd[op->nopd] = x->opd[k], again[op->nopd] = x->again && x->again[k], from[op->nopd++] = k;
  }
  for (option[i] = 0; option[i] < x->noptions; option[i]++) {
    splits_option *y = &o[option[i]];
    u8 *need = NEWN(a, u8, op->nopd + 1), *grad = NEWN(a, u8, op->nopd + 1);
    *y = x->option[option[i]];
    for (u32 k = 0; k < op->nopd; k++) need[k] = y->need[from[k]], grad[k] = y->grad[from[k]];
    for (u32 k = 0; k < x->nopd; k++) {
      bool first = is_own(p, r, x->opd[k]);
      for (u32 j = 0; j < k; j++) first = first && x->opd[j] != x->opd[k];
      if (!first) continue;
      const step c = splits_tensor_cost(p, r, x->opd[k], option);
      y->time_ps += c.time_ps, y->bytes += c.bytes, never[option[i]] |= !c.possible;
    }
    y->need = need, y->grad = grad;
  }
  option[i] = 0;
  op->opd = opd, op->again = again, op->option = o;
}

void splits_fold(arena *a, const splits_problem *p, const splits_readers *r, splits_folded *out) {
  splits_op *op = NEWN(a, splits_op, p->nops + 1);
  const bool **never = NEWN(a, const bool *, p->nops + 1);
  u16 *option = ZNEWN(a, u16, p->nops + 1);
  for (u32 i = 0; i < p->nops; i++) {
    bool *of = ZNEWN(a, bool, p->op[i].noptions + 1);
    fold_op(a, p, r, i, option, &op[i], of);
    never[i] = of;
  }
  *out = (splits_folded){.p = *p, .never = never};
  out->p.op = op;
}

i64 splits_slack(const splits_problem *p, double ps_per_byte) {
  i64 slack = 0;
  for (u32 i = 0; i < p->nops; i++) {
    const splits_op *x = &p->op[i];
    for (u32 k = 0; x->named && k < x->nopd + x->nres; k++) {
      const splits_tensor *t = &p->tensor[k < x->nopd ? x->opd[k] : x->res[k - x->nopd]];
      i64 most = 0, bytes = 0;
      for (u32 q = 0; q < t->nstates * t->nstates; q++) most = MAX(most, t->convert[q]);
      for (u32 q = 0; q < t->nstates && t->bytes; q++) bytes = MAX(bytes, t->bytes[q]);
      slack += (p->forwards + 2) * most + (i64)(ps_per_byte * (double)bytes);
    }
  }
  return slack;
}

// One operator with one option, on the live tensors.
static step take(const splits_problem *p, u32 op, const splits_option *o, live *of) {
  const splits_op *x = &p->op[op];
  step s = {o->time_ps, o->bytes, true};
  for (u32 k = 0; k < x->nopd; k++) splits_read(p, &p->tensor[x->opd[k]], &of[x->opd[k]], x, k, o, &s);
  for (u32 k = 0; k < x->nres; k++) of[x->res[k]] = splits_begin(&p->tensor[x->res[k]], o, k, &s);
  return s;
}

bool splits_price(const splits_problem *p, const u16 *option, i64 *time_ps, i64 *bytes) {
  arena *a = arena_new();
  live *of = NEWN(a, live, p->ntensors + 1);
  bool ok = true;
  *time_ps = *bytes = 0;
  for (u32 t = 0; t < p->ntensors; t++)
    of[t] = (live){.made = LIES_NONE, .base = LIES_NONE, .grad = LIES_NONE};
  for (u32 i = 0; i < p->nops && ok; i++) {
    const step s = take(p, i, &p->op[i].option[option[i]], of);
    *time_ps += s.time_ps, *bytes += s.bytes, ok = s.possible;
  }
  for (u32 t = 0; t < p->ntensors && ok; t++) {
    step s = {.possible = true};
    if (of[t].made != LIES_NONE) splits_end(&p->tensor[t], &of[t], &s);
    *time_ps += s.time_ps, *bytes += s.bytes, ok = s.possible;
  }
  arena_free(a);
  return ok;
}
