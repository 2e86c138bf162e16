// eval.c - the interpreter: functions, calls, and one kernel per member for everything that computes.
//
// Idea: instructions run in program order, one after the other on all their members, which is an order that
// every rank's own order allows. A value is dropped after its last use, an operand that ends there may lend
// its storage to the result, and members that see the very same pieces compute once.
#include "eval/internal.h"
#include <math.h>
#include <stdlib.h>

// ---- values --------------------------------------------------------------------------------------------

// Room for a value of this type; pieces not yet there.
held eval_held_new(interp *m, type t, group bound) {
  const type_info *ti = type_get(m->p, t);
  held h = {.g = ti->tuple ? (group){0} : group_bind(ti->g, bound)}; // a tuple lies where its elements lie
  if (ti->tuple) {
    h.n = ti->n;
    h.elem = ZNEWN(m->stack, held, h.n);
    for (u32 k = 0; k < h.n; k++) h.elem[k] = eval_held_new(m, ti->elem[k], bound);
  } else {
    h.n = eval_members(m, h.g);
    h.piece = ZNEWN(m->stack, buf *, h.n);
  }
  return h;
}

void eval_held_drop(interp *m, held *h) {
  for (u32 k = 0; k < h->n; k++) {
    if (h->elem)
      eval_held_drop(m, &h->elem[k]);
    else if (h->piece) {
      eval_drop(m, h->piece[k]);
      h->piece[k] = NULL;
    }
  }
}

void eval_held_share(held *to, const held *from) {
  assert(to->n == from->n);
  for (u32 k = 0; k < to->n; k++)
    if (to->elem)
      eval_held_share(&to->elem[k], &from->elem[k]);
    else if (from->piece[k])
      to->piece[k] = buf_share(from->piece[k]);
}

static bool held_alike(const held *x, const held *y) {
  bool alike = x->n == y->n && !x->elem == !y->elem && (x->elem || x->g.i == y->g.i);
  for (u32 k = 0; alike && x->elem && k < x->n; k++) alike = held_alike(&x->elem[k], &y->elem[k]);
  return alike;
}

// ---- computation ---------------------------------------------------------------------------------------

typedef struct {
  const instr *i;
  u32 nopd, nres;
  group g;
  const held **in;
  const holdings **inp, **outp;
  held *out;
} step;

static bool wrong_size(interp *m, const step *s, u32 opd, u32 member, i64 want) {
  diag(m->c, E_LAYOUT, s->i->where, "%s: operand %u has %lld bytes on rank %u, its type says %lld",
       op_row_of(s->i->op)->name, opd + 1, (long long)s->in[opd]->piece[member]->bytes,
       eval_rank_of(m, s->g, member), (long long)want);
  return false;
}

// Does an earlier member see the same pieces for the same results? Then its results are this one's.
static bool repeats(const step *s, u32 member, u32 earlier) {
  for (u32 k = 0; k < s->nopd; k++)
    if (s->in[k]->piece[member] != s->in[k]->piece[earlier] || !s->in[k]->piece[member]) return false;
  for (u32 k = 0; k < s->nopd; k++)
    if (!eval_same(&s->inp[k]->at[member], &s->inp[k]->at[earlier], s->inp[k]->t->s.nd)) return false;
  for (u32 k = 0; k < s->nres; k++)
    if (!eval_same(&s->outp[k]->at[member], &s->outp[k]->at[earlier], s->outp[k]->t->s.nd)) return false;
  return true;
}

// The storage of an operand as result r's: a view shares it. In place only where the program donates what the result
// continues, and nothing else holds it: what memory a step takes is the program's to say, as a simulation reads it.
static buf *lent(const frame *f, const step *s, u32 member, u32 r) {
  const bool view = op_row_of(s->i->op)->flags & OPF_VIEW;
  const u32 k = view ? op_continues(s->i->op, r) : live_taken(f->f, s->i, f->last, r);
  if (k >= s->nopd) return NULL;
  const holdings *x = s->inp[k], *y = s->outp[r];
  buf *b = s->in[k]->piece[member];
  if (x->stored != y->stored || x->at[member].elems != y->at[member].elems) return NULL;
  if (view) return r ? NULL : buf_share(b);
  return b->refs > 1 || b->of || !eval_same(&x->at[member], &y->at[member], y->t->s.nd) ? NULL : buf_share(b);
}

// The number of the optimizer's update that runs; 0: what the instruction says.
static i64 update_number(const interp *m, attrs at) {
  if (m->update <= 1) return m->o.step;
  return (m->o.step ? m->o.step : attr_int(at, A_step, 1)) + m->update - 1;
}

static bool compute_member(interp *m, const frame *f, const step *s, u32 member, const ker_tensor *blob) {
  ker_tensor *x = NEWN(m->scratch, ker_tensor, s->nopd), *y = NEWN(m->scratch, ker_tensor, s->nres);
  for (u32 k = 0; k < s->nopd; k++) {
    buf *b = s->in[k]->piece[member];
    if (b->bytes != spot_bytes(s->inp[k], member))
      return wrong_size(m, s, k, member, spot_bytes(s->inp[k], member));
    x[k] = eval_tensor(s->inp[k], member, b->data);
  }
  for (u32 k = 0; k < s->nres; k++) {
    buf *b = lent(f, s, member, k);
    if (!b) b = eval_buf(m, spot_bytes(s->outp[k], member));
    s->out[k].piece[member] = b;
    y[k] = eval_tensor(s->outp[k], member, b->data);
  }
  if (eval_is_dry(m) || (op_row_of(s->i->op)->flags & OPF_VIEW && s->nopd && x[0].data == y[0].data))
    return true;
  const attrs at = attrs_get(m->p, s->i->at);
  ker_args args = {.op = s->i->op,
                   .at = at,
                   .nopd = s->nopd,
                   .nres = s->nres,
                   .opd = x,
                   .res = y,
                   .blob = blob,
                   .scratch = m->scratch,
                   .temps = m->temps,
                   .threads = m->o.threads,
                   .step = update_number(m, at)};
  u32 before = diag_count(m->c);
  if (kernel_run(m->c, &args, s->i->where)) return true;
  if (eval_members(m, s->g) > 1 && diag_count(m->c) > before)
    diag_note(m->c, s->i->where, "on rank %u", eval_rank_of(m, s->g, member));
  return false;
}

static bool compute(interp *m, frame *f, const instr *i, const point *at) {
  arena_mark_t mark = arena_mark(m->scratch);
  step s = {.i = i,
            .nopd = instr_nopd(f->f, i),
            .nres = i->nres,
            .g = group_bind(i->g, f->g),
            .out = &f->v[i->res]};
  s.in = NEWN(m->scratch, const held *, s.nopd);
  s.inp = NEWN(m->scratch, const holdings *, s.nopd);
  s.outp = NEWN(m->scratch, const holdings *, s.nres);
  bool ok = true;
  for (u32 k = 0; k < s.nopd && ok; k++) {
    value v = opd_of(f->f, i, k);
    s.in[k] = &f->v[v];
    s.inp[k] = eval_holdings(m, val(f->f, v)->ty, f->g, at, i->where);
    ok = s.inp[k];
    for (u32 r = 0; ok && r < s.in[k]->n; r++) ok = eval_ready(m, s.in[k]->piece[r]);
    if (ok && s.in[k]->g.i != s.g.i) {
      diag(m->c, E_LAYOUT, i->where, "%s: operand %u is on another group than the instruction",
           op_row_of(i->op)->name, k + 1);
      ok = false;
    }
  }
  for (u32 k = 0; k < s.nres && ok; k++)
    ok = (s.outp[k] = eval_holdings(m, val(f->f, i->res + k)->ty, f->g, at, i->where));
  ker_tensor blob;
  const attr *data = attr_get(attrs_get(m->p, i->at), A_data);
  if (data) {
    const data_info *d = &m->p->data.v[data->u.data];
    shape sh = {.t = d->t, .nd = d->nd};
    memcpy(sh.dim, d->dim, sizeof sh.dim);
    blob = ker_whole(&sh, (void *)(uintptr_t)d->bytes);
  }
  for (u32 k = 0, n = eval_members(m, s.g); k < n && ok; k++) {
    u32 j = 0;
    if (!eval_mine(m, s.g, k)) continue;
    while (j < k && !(eval_mine(m, s.g, j) && repeats(&s, k, j))) j++;
    if (j == k)
      ok = compute_member(m, f, &s, k, data ? &blob : NULL);
    else
      for (u32 q = 0; q < s.nres; q++) s.out[q].piece[k] = buf_share(s.out[q].piece[j]);
  }
  arena_release(m->scratch, mark);
  return ok;
}

// ---- movement ------------------------------------------------------------------------------------------

// A join's operand k lies at coordinate k of the axes (major first), a part's result where it says.
static point along(const interp *m, const point *at, const attr *over, i64 k) {
  point q = *at;
  for (u32 j = over ? over->n : 0; j-- > 0;) {
    u8 axis = over->u.axes[j];
    u32 n = axis_size(m->p->sp, axis);
    if (!axis_get(m->p->sp, axis)->temporal) continue;
    q.at.at[axis] = (u16)(k % n);
    q.fixed |= (u64)1 << axis;
    k /= n;
  }
  return q;
}

// An all-reduce takes place in its operand where that ends, as it does in every framework: what this rank has of the
// result lies there.
static void lend_to_sum(interp *m, const frame *f, const instr *i, const end *in, const end *out) {
  for (u32 r = 0; m->link && r < i->nres; r++) {
    const u32 from = live_taken(f->f, i, f->last, r);
    if (from == LIVE_NOWHERE) continue;
    const end *x = &in[from], *y = &out[r];
    const int k = eval_member(m, y->g, m->link->rank);
    if (k < 0 || x->g.i != y->g.i || x->p->stored != y->p->stored) continue;
    buf *b = x->v->piece[k];
    if (b->refs == 1 && !b->of && eval_same(&x->p->at[k], &y->p->at[k], y->p->t->s.nd))
      y->v->piece[k] = buf_share(b);
  }
}

static bool communicate(interp *m, frame *f, const instr *i, u32 index, const point *at) {
  arena_mark_t mark = arena_mark(m->scratch);
  attrs a = attrs_get(m->p, i->at);
  const attr *over = attr_get(a, A_over);
  u32 nopd = instr_nopd(f->f, i);
  end *in = NEWN(m->scratch, end, nopd), *out = NEWN(m->scratch, end, i->nres);
  bool ok = true;
  for (u32 k = 0; k < nopd + i->nres && ok; k++) {
    bool is_out = k >= nopd;
    u32 j = is_out ? k - nopd : k;
    value v = is_out ? i->res + j : opd_of(f->f, i, j);
    point q = !is_out && i->op == OP_join  ? along(m, at, over, j)
              : is_out && i->op == OP_part ? along(m, at, over, attr_int(a, A_at, 0))
                                           : *at;
    const holdings *p = eval_holdings(m, val(f->f, v)->ty, f->g, &q, i->where);
    *(is_out ? &out[j] : &in[j]) = (end){f->v[v].g, p, &f->v[v]};
    ok = p;
    for (u32 r = 0; ok && !is_out && r < p->n; r++) ok = eval_ready(m, f->v[v].piece[r]);
    for (u32 r = 0; ok && !is_out && r < p->n; r++)
      if (eval_mine(m, f->v[v].g, r) && f->v[v].piece[r]->bytes != spot_bytes(p, r)) {
        diag(m->c, E_LAYOUT, i->where, "%s: operand %u has %lld bytes on rank %u, its type says %lld",
             op_row_of(i->op)->name, j + 1, (long long)f->v[v].piece[r]->bytes, eval_rank_of(m, f->v[v].g, r),
             (long long)spot_bytes(p, r));
        ok = false;
      }
  }
  if (ok) lend_to_sum(m, f, i, in, out);
  ok = ok && eval_move(m, i, at, in, nopd, out, i->nres, f->parts ? &f->parts[index] : NULL);
  if (ok && i->op == OP_copy && !strcmp(sym_str(m->c, attr_get(a, A_to)->u.s), "host"))
    for (u32 k = 0; k < i->nres; k++)
      for (u32 r = 0; r < out[k].p->n; r++)
        if (out[k].v->piece[r]) storage_on_host(m, out[k].v->piece[r]);
  arena_release(m->scratch, mark);
  return ok;
}

// ---- functions -----------------------------------------------------------------------------------------

static bool run_func(interp *m, func fn, group g, const point *at, held *args, held *results);

static point merged(const interp *m, const point *outer, u32 coord) {
  point q = *outer;
  u64 fixed = m->p->fixed.v[coord];
  for (u64 left = fixed; left; left &= left - 1) {
    u32 axis = (u32)__builtin_ctzll(left);
    q.at.at[axis] = m->p->points.v[coord].at[axis];
  }
  q.fixed |= fixed;
  return q;
}

static void drop_operands(interp *m, frame *f, u32 index) {
  const instr *i = &f->f->body.v[index];
  for (u32 k = 0, n = instr_nopd(f->f, i); k < n; k++)
    if (f->last[opd_of(f->f, i, k)] == index + 1) eval_held_drop(m, &f->v[opd_of(f->f, i, k)]);
}

static bool call(interp *m, frame *f, const instr *i, u32 index, const point *at) {
  const func_info *callee = func_get(m->p, i->callee);
  group g = group_bind(i->g, f->g);
  u32 n = instr_nopd(f->f, i);
  if (n != callee->nparams || i->nres != callee->rets.n) {
    diag(m->c, E_ARITY, i->where, "call of @%s with %u operands and %u results; it has %u and %u",
         sym_str(m->c, callee->name), n, i->nres, callee->nparams, callee->rets.n);
    return false;
  }
  arena_mark_t mark = arena_mark(m->stack);
  held *args = ZNEWN(m->stack, held, n);
  bool ok = true;
  for (u32 k = 0; k < n && ok; k++) {
    const held *x = &f->v[opd_of(f->f, i, k)];
    args[k] = eval_held_new(m, callee->values.v[k + 1].ty, g);
    ok = held_alike(&args[k], x);
    if (ok)
      eval_held_share(&args[k], x);
    else
      diag(m->c, E_LAYOUT, i->where, "call of @%s: operand %u is on another group than the parameter",
           sym_str(m->c, callee->name), k + 1);
  }
  // What ends here ends before the callee runs, which may then work in its storage.
  if (ok) drop_operands(m, f, index);
  const i64 outer = m->update;
  m->update = attr_int(attrs_get(m->p, i->at), A_update, outer);
  ok = ok && run_func(m, i->callee, g, at, args, &f->v[i->res]);
  m->update = outer;
  for (u32 k = 0; k < n; k++) eval_held_drop(m, &args[k]);
  arena_release(m->stack, mark);
  return ok;
}

bool eval_exec(interp *m, frame *f, u32 index) {
  const instr *i = &f->f->body.v[index];
  if (m->link) {
    m->where.at = (u64)f->fn.i << 32 | (index + 1);
    if (f->fn.i == m->p->main.i) m->where.top = index + 1;
    m->where.count++;
  }
  point at = i->coord ? merged(m, &f->at, i->coord) : f->at;
  for (u32 k = 0; k < i->nres; k++)
    if (!f->v[i->res + k].n) f->v[i->res + k] = eval_held_new(m, val(f->f, i->res + k)->ty, f->g);
  const op_row *row = op_row_of(i->op);
  if (i->op == OP_call) return call(m, f, i, index, &at);
  if (i->op == OP_pack) {
    held *t = &f->v[i->res];
    for (u32 k = 0; k < t->n; k++) eval_held_share(&t->elem[k], &f->v[opd_of(f->f, i, k)]);
    return true;
  }
  if (i->op == OP_unpack) {
    const held *t = &f->v[opd_of(f->f, i, 0)];
    for (u32 k = 0; k < i->nres; k++) eval_held_share(&f->v[i->res + k], &t->elem[k]);
    return true;
  }
  if (i->op == OP_opaque) {
    diag(m->c, E_VALUE, i->where,
         "opaque stands for a cost, not for numbers: such a program cannot be evaluated");
    return false;
  }
  if (row->flags & OPF_COMM || i->op == OP_join || i->op == OP_part) return communicate(m, f, i, index, &at);
  return compute(m, f, i, &at);
}

// A send whose value is received later: there is room for it from where it stands, as it may come from then on.
static bool expect(interp *m, frame *f, u32 index) {
  const instr *i = &f->f->body.v[index];
  const point at = i->coord ? merged(m, &f->at, i->coord) : f->at;
  held *v = &f->v[i->res];
  *v = eval_held_new(m, val(f->f, i->res)->ty, f->g);
  const holdings *p = eval_holdings(m, val(f->f, i->res)->ty, f->g, &at, i->where);
  const int self = eval_member(m, v->g, m->link->rank);
  if (p) v->piece[self] = eval_buf(m, spot_bytes(p, (u32)self));
  *vec_push(m->stack, &f->waiting) =
      (waiting){index, m->record && !eval_is_dry(m) ? record_number(m->record) : 0};
  return p;
}

// number: what the recording of it has, of an instruction that stands further up; 0: the next one.
static bool run_one(interp *m, frame *f, u32 i, u32 number) {
  const instr *in = &f->f->body.v[i];
  const bool dry = eval_is_dry(m);
  const bool ok = m->record && !dry ? record_exec(m->record, m, f, i, number) : eval_exec(m, f, i);
  if (!m->link) progress_step(&m->bar, m->done += eval_members(m, group_bind(in->g, f->g)));
  drop_operands(m, f, i);
  for (u32 v = in->res; v < in->res + in->nres; v++)
    if (f->last[v] == i + 1) eval_held_drop(m, &f->v[v]);
  if (m->watch && !dry) m->watch(m->watcher, f->f, in, group_bind(in->g, f->g));
  return ok;
}

static bool receive_due(interp *m, frame *f, const instr *before) {
  const u32 n = eval_due(m, f, before);
  bool ok = true;
  for (u32 k = 0; k < n && ok; k++) ok = run_one(m, f, f->waiting.v[k].index, f->waiting.v[k].number);
  f->waiting.n -= n;
  memmove(f->waiting.v, f->waiting.v + n, f->waiting.n * sizeof *f->waiting.v);
  return ok;
}

// Takes the arguments' pieces (the caller drops what is left of them) and fills `results`.
static bool run_func(interp *m, func fn, group g, const point *at, held *args, held *results) {
  if (!m->last[fn.i]) m->last[fn.i] = live_of(m->a, func_get(m->p, fn)).last;
  frame f = {fn,
             func_get(m->p, fn),
             g,
             *at,
             ZNEWN(m->stack, held, func_get(m->p, fn)->values.n),
             m->last[fn.i],
             {0},
             m->link ? parts_of(m, fn, g) : NULL};
  for (u32 k = 0; k < f.f->nparams; k++) {
    f.v[k + 1] = args[k];
    args[k] = (held){0};
  }
  bool ok = true;
  for (u32 i = 0; i < f.f->body.n && ok; i++) {
    const instr *in = &f.f->body.v[i];
    if (f.waiting.n) ok = receive_due(m, &f, in);
    if (ok && m->link && eval_receives_only(m, &f, in))
      ok = expect(m, &f, i);
    else
      ok = ok && run_one(m, &f, i, 0);
  }
  if (ok && f.waiting.n) ok = receive_due(m, &f, NULL);
  for (u32 k = 0; k < f.f->rets.n && ok; k++) {
    const held *v = &f.v[f.f->rets.v[k]];
    if (!held_alike(&results[k], v)) {
      diag(m->c, E_LAYOUT, f.f->where, "@%s returns a value on another group than the call expects",
           sym_str(m->c, f.f->name));
      ok = false;
    } else
      eval_held_share(&results[k], v);
  }
  for (u32 v = 1; v < f.f->values.n; v++) eval_held_drop(m, &f.v[v]);
  return ok;
}

// ---- main ----------------------------------------------------------------------------------------------

static bool input_fits(interp *m, u32 k, const type_info *t, const eval_array *x, loc where) {
  bool dims = !t->tuple && t->s.nd == x->s.nd && !memcmp(t->s.dim, x->s.dim, sizeof(i64) * t->s.nd);
  bool kind = (dtype_kind_of(t->s.t) == DK_FLOAT) == (dtype_kind_of(x->s.t) == DK_FLOAT);
  if (dims && kind && (x->data || shape_elems(&x->s) == 0)) return true;
  if (!dims)
    diag(m->c, E_SHAPE, where, "input %u has other extents than parameter %u of main", k, k);
  else if (!kind)
    diag(m->c, E_DTYPE, where, "input %u is %s, parameter %u of main is %s", k, dtype_name(x->s.t), k,
         dtype_name(t->s.t));
  else
    diag(m->c, E_VALUE, where, "input %u of main has no elements", k);
  return false;
}

bool eval_enter_one(interp *m, u32 k, const eval_array *x, held *arg) {
  const func_info *f = func_get(m->p, m->p->main);
  const point at = {0};
  const type t = f->values.v[k + 1].ty;
  if (!input_fits(m, k, type_get(m->p, t), x, f->where)) return false;
  const holdings *pl = eval_holdings(m, t, (group){0}, &at, f->where);
  if (!pl) return false;
  if (!arg->n) *arg = eval_held_new(m, t, (group){0});
  return eval_cut(m, pl, x, arg, f->where);
}

bool eval_enter(interp *m, const eval_array *in, held *args) {
  for (u32 k = 0; k < func_get(m->p, m->p->main)->nparams; k++)
    if (!eval_enter_one(m, k, &in[k], &args[k])) return false;
  return true;
}

bool eval_main(interp *m, held *args, held *results) {
  const func_info *f = func_get(m->p, m->p->main);
  const point at = {0};
  for (u32 k = 0; k < f->rets.n; k++) results[k] = eval_held_new(m, f->values.v[f->rets.v[k]].ty, (group){0});
  return run_func(m, m->p->main, (group){0}, &at, args, results);
}

static bool run_main(interp *m, const eval_array *in, eval_array *out, arena *a) {
  const prog *p = m->p;
  const func_info *f = func_get(p, p->main);
  const point at = {0};
  held *args = ZNEWN(m->stack, held, f->nparams), *results = ZNEWN(m->stack, held, f->rets.n);
  if (!eval_enter(m, in, args) || !eval_main(m, args, results)) return false;
  for (u32 k = 0; k < f->rets.n; k++) {
    type t = f->values.v[f->rets.v[k]].ty;
    if (type_get(p, t)->tuple) {
      diag(m->c, E_VERIFY, f->where, "result %u of main is a tuple: only tensors can be yielded", k);
      return false;
    }
    const holdings *pl = eval_holdings(m, t, (group){0}, &at, f->where);
    if (!pl || !eval_assemble(m, pl, &results[k], &out[k], a, f->where)) return false;
    eval_held_drop(m, &results[k]);
  }
  return true;
}

void eval_open(interp *m) {
  m->a = arena_new(), m->stack = arena_new(), m->scratch = arena_new();
  m->last = ZNEWN(m->a, const u32 *, m->p->funcs.n);
  m->temps = ZNEWN(m->a, arena *, MAX(m->o.threads, 1));
  for (int t = 1; t < m->o.threads; t++) m->temps[t - 1] = arena_new();
}

void eval_close(interp *m) {
  beside_close(m);
  while (m->live) {
    m->live->refs = 1;
    eval_drop(m, m->live);
  }
  eval_drop_kept(m);
  storage_free(m->storage);
  for (int t = 1; t < m->o.threads && m->temps; t++) arena_free(m->temps[t - 1]);
  arena_free(m->scratch), arena_free(m->stack), arena_free(m->a);
}

// Out of memory must pass through here, because pieces are not in an arena. False in *whole: it did.
static bool run_or_clean(interp *m, const eval_array *in, eval_array *out, arena *a, bool *whole) {
  jmp_buf here, *outer = base_oom;
  volatile bool ok = false;
  if (setjmp(here) == 0) {
    base_oom = &here;
    eval_open(m);
    progress_begin(&m->bar, m->o.title ? m->o.title : "evaluating", (u64)eval_executions(m->p));
    ok = run_main(m, in, out, a);
    *whole = true;
  }
  base_oom = outer;
  progress_end(&m->bar);
  eval_close(m);
  return *whole && ok;
}

// How often instructions run in one call of a function on a rank.
static double inside(const prog *p, func f, double *memo) {
  const func_info *fi = func_get(p, f);
  if (memo[f.i] > 0) return memo[f.i];
  double n = 1;
  for (u32 k = 0; k < fi->body.n; k++)
    n += fi->body.v[k].op == OP_call ? inside(p, fi->body.v[k].callee, memo) : 1;
  return memo[f.i] = n;
}

double eval_executions(const prog *p) {
  const func_info *m = func_get(p, p->main);
  arena *a = arena_new();
  double n = 0, *memo = ZNEWN(a, double, p->funcs.n);
  for (u32 k = 0; k < m->body.n; k++) {
    const instr *i = &m->body.v[k];
    n += (i->op == OP_call ? inside(p, i->callee, memo) : 1) * group_size(p->sp, i->g);
  }
  arena_free(a);
  return n;
}

bool eval_run(const prog *p, const eval_opts *o, const eval_array *in, u32 nin, eval_array *out, u32 nout,
              arena *a) {
  const func_info *f = func_get(p, p->main);
  if (nin != f->nparams || nout != f->rets.n) {
    diag(p->c, E_ARITY, f->where, "main takes %u inputs and yields %u; %u and %u were asked for", f->nparams,
         f->rets.n, nin, nout);
    return false;
  }
  if (!ir_check_whole(p, "evaluated")) return false;
  interp m = {.p = p, .c = p->c, .o = *o};
  bool whole = false, ok = run_or_clean(&m, in, out, a, &whole);
  if (!whole) base_out_of_memory(0);
  return ok;
}

shape eval_param_shape(const prog *p, u32 k) {
  const func_info *f = func_get(p, p->main);
  return val_type(p, f, k + 1)->s;
}

shape eval_result_shape(const prog *p, u32 k) {
  const func_info *f = func_get(p, p->main);
  return val_type(p, f, f->rets.v[k])->s;
}
