// splits_answer.c - what a solution of the problems of splits_cost.c says: a plan's splits, the rows of a report, and what every
// layer takes, to cut stages by.
#include "plan/splits_live.h"
#include "plan/splits_ops.h"

// Of every function, which choice of its solution main's choice means; ~0: it is not called.
static u32 *choices_of(const splits_prices *x, const splits_answer *s, u32 pick, arena *a) {
  const u32 nf = planner_funcs(x->m->pl);
  const func_info *m = func_get(x->m->pl->src, s->main->f);
  u32 *of = NEWN(a, u32, nf + 1);
  memset(of, 0xff, sizeof *of * (nf + 1));
  for (u32 k = 0; k < s->main->p.nops; k++) {
    const u32 i = s->main->instr[k];
    if (i && m->body.v[i - 1].op == OP_call) of[m->body.v[i - 1].callee.i] = s->main->s.v[pick].option[k];
  }
  of[s->main->f.i] = pick;
  return of;
}

u32 splits_rows(const splits_prices *x, const splits_answer *s, u32 pick, arena *a, splits_row **out) {
  const u32 *of = choices_of(x, s, pick, a), nf = planner_funcs(x->m->pl);
  VEC(splits_row) v = {0};
  for (u32 f = 1; f < nf; f++) {
    const splits_sheet *y = &s->fn[f];
    if (of[f] == ~0u) continue;
    const splits_func *w = &x->m->fn[f];
    for (u32 k = 0; k < y->p.nops; k++) {
      const u32 i = y->instr[k];
      if (!i || !y->way[k]) continue;
      const splits_way *way = &w->v[i - 1].way[y->way[k][y->s.v[of[f]].option[k]]];
      for (u32 j = i - 1; j < func_get(x->m->pl->src, (func){f})->body.n; j++) {
        if (y->leader[j] != i - 1) continue;
        splits_way *own = NEW(a, splits_way);
        *own = j == i - 1 ? *way : splits_way_of_follower(&w->v[i - 1], &w->v[j], way);
        *vec_push(a, &v) = (splits_row){{f}, j + 1, &w->v[j], own};
      }
    }
  }
  *out = v.v;
  return v.n;
}

static bool trans_of(const splits_prices *x, const splits_row *q, u8 axis, plan_trans *t) {
  const splits_instr *i = q->x;
  letter_split at;
  *t = (plan_trans){.fn = q->fn, .instr = q->instr, .axis = axis};
  if (q->way->kind == WAY_APART || q->way->kind == WAY_UNSAID) return false; // it follows its operands
  if (q->way->kind != WAY_INDEX) {
    t->dim = q->way->kind == WAY_SUM ? TRANS_SUM : TRANS_WHOLE;
    return true;
  }
  if (!splits_letter_of(x, i, q->way, &at)) return false;
  for (u32 k = 0; k < i->l->nopd + i->l->nres; k++) {
    const bool opd = k < i->l->nopd;
    lay_split sl;
    if (!ir_split_of(x->p, i->l, opd ? &i->l->opd[k] : &i->l->res[k - i->l->nopd], x->axis, &at, &sl))
      continue;
    t->result = !opd, t->index = opd ? k : k - i->l->nopd, t->dim = sl.dim;
    t->stride = at.table ? 0 : sl.stride, t->uneven = at.table;
    return true;
  }
  return false;
}

bool splits_is_like(const splits_prices *x, const splits_instr *i, const splits_way *w, const plan_trans *t) {
  letter_split at;
  if (w->kind != WAY_INDEX || !splits_letter_of(x, i, w, &at)) return false;
  const u32 n = t->result ? i->l->nres : i->l->nopd;
  lay_split sl;
  if (t->index >= n) return false;
  if (!ir_split_of(x->p, i->l, t->result ? &i->l->res[t->index] : &i->l->opd[t->index], x->axis, &at, &sl))
    return false;
  return sl.dim == t->dim && (t->stride ? sl.stride == t->stride : at.table || t->uneven);
}

u32 splits_trans(const splits_prices *x, const splits_answer *s, u32 pick, u8 axis, arena *a,
                 plan_trans **out) {
  splits_row *v;
  const u32 n = splits_rows(x, s, pick, a, &v);
  plan_trans *t = NEWN(a, plan_trans, n + 1);
  u32 nt = 0;
  for (u32 k = 0; k < n; k++) nt += trans_of(x, &v[k], axis, &t[nt]);
  *out = t;
  return nt;
}

// What weights take under a choice, as their first reader needs them.
static i64 fixed_of(const splits_prices *x, const splits_terms *t, const splits_sheet *y, u32 pick) {
  const prog *src = x->m->pl->src;
  arena *tmp = arena_new();
  bool *seen = ZNEWN(tmp, bool, y->p.ntensors + 1);
  i64 sum = 0;
  for (u32 k = 0; k < y->p.nops; k++) {
    const splits_op *op = &y->p.op[k];
    for (u32 j = 0; j < op->nopd; j++) {
      const value v = op->opd[j];
      if (!y->p.tensor[v].weight || seen[v]) continue;
      seen[v] = true;
      const u32 lies = op->option[y->s.v[pick].option[k]].need[j];
      sum += splits_stored_bytes(x, t, &val_type(src, func_get(src, y->f), v)->s, y->lies[v].lay[lies]);
    }
  }
  arena_free(tmp);
  return sum;
}

// The same at least, of a function's own operators: every weight in as many pieces as there are ranks.
static i64 least_fixed_of(const splits_model *m, const splits_terms *t, func fn) {
  const func_info *f = func_get(m->pl->src, fn);
  arena *tmp = arena_new();
  bool *read = ZNEWN(tmp, bool, f->values.n + 1);
  i64 sum = 0;
  for (u32 i = 0; i < f->body.n; i++)
    for (u32 k = 0; f->body.v[i].op != OP_call && k < instr_nopd(f, &f->body.v[i]); k++)
      read[opd_of(f, &f->body.v[i], k)] |= !m->fn[fn.i].v[i].fixed;
  for (u32 k = 0; k < f->nparams; k++)
    if (read[k + 1] && f->params.v[k].r == ROLE_WEIGHT)
      sum += splits_least_stored_bytes(t, &val_type(m->pl->src, f, k + 1)->s);
  arena_free(tmp);
  return sum;
}

i64 splits_least_fixed(const splits_model *m, const splits_terms *t) {
  const func main = m->pl->src->main;
  const func_info *f = func_get(m->pl->src, main);
  i64 sum = least_fixed_of(m, t, main);
  for (u32 i = 0; i < f->body.n; i++)
    if (f->body.v[i].op == OP_call) sum += least_fixed_of(m, t, f->body.v[i].callee);
  return sum;
}

// Main's operators by the nearest call: its number, or n + 0 before the first one and n + 1 behind the last one.
static u32 *near_calls(const splits_sheet *y, const func_info *m, u32 n, arena *a) {
  u32 *near = NEWN(a, u32, y->p.nops + 1), *at = NEWN(a, u32, m->body.n + 1);
  for (u32 i = 0, calls = 0; i < m->body.n; i++) {
    calls += m->body.v[i].op == OP_call;
    at[i] = !calls ? n : m->body.v[i].op == OP_call || calls < n ? calls - 1 : n + 1;
  }
  for (u32 k = 0; k < y->p.nops; k++) near[k] = y->instr[k] ? at[y->instr[k] - 1] : n + !y->p.op[k].nres;
  return near;
}

// Of what main does beside its calls, what an operator takes is its own, what a tensor takes that of whoever makes it, or reads it
// first.
splits_by_layer splits_layers(const splits_prices *x, const splits_terms *t, const splits_answer *s, u32 pick,
                              arena *a) {
  const prog *src = x->m->pl->src;
  const func_info *m = func_get(src, s->main->f);
  const splits_sheet *y = s->main;
  const u32 *of = choices_of(x, s, pick, a);
  const u16 *option = y->s.v[pick].option;
  u32 n = 0;
  for (u32 i = 0; i < m->body.n; i++) n += m->body.v[i].op == OP_call;
  splits_by_layer l = {n, ZNEWN(a, i64, n + 2), ZNEWN(a, i64, n + 2), ZNEWN(a, i64, n + 2)};
  const i64 held = MAX(x->t.held, 1);
  for (u32 i = 0, k = 0; i < m->body.n; i++) {
    if (m->body.v[i].op != OP_call) continue;
    const splits_sheet *g = &s->fn[m->body.v[i].callee.i];
    const splits_choice *c = &g->s.v[of[g->f.i]];
    l.time_ps[k] = c->time_ps, l.fixed[k] = fixed_of(x, t, g, of[g->f.i]);
    l.kept[k++] = (c->bytes - fixed_of(x, &x->t, g, of[g->f.i])) / held;
  }
  const u32 *near = near_calls(y, m, n, a);
  splits_readers r;
  splits_readers_of(a, &y->p, &r);
  for (u32 k = 0; k < y->p.nops; k++) {
    if (y->instr[k] && !y->way[k]) continue; // a call
    l.time_ps[near[k]] += y->p.op[k].option[option[k]].time_ps;
    l.kept[near[k]] += y->p.op[k].option[option[k]].bytes / held;
  }
  for (u32 v = 1; v < y->p.ntensors; v++) {
    if (!r.maker[v] && r.begin[v] == r.begin[v + 1]) continue;
    const step c = splits_tensor_cost(&y->p, &r, v, option);
    const u32 op = r.maker[v] ? r.maker[v] - 1 : r.reader[r.begin[v]];
    l.time_ps[near[op]] += c.time_ps;
    if (y->p.tensor[v].weight) {
      const u32 lies = y->p.op[op].option[option[op]].need[r.operand[r.begin[v]]];
      l.fixed[near[op]] += splits_stored_bytes(x, t, &val_type(src, m, v)->s, y->lies[v].lay[lies]);
    } else
      l.kept[near[op]] += c.bytes / held;
  }
  if (t->offload & OFFLOAD_ACTS) memset(l.kept, 0, sizeof *l.kept * (n + 2));
  return l;
}
