// splits_tensor.c - what the states of a tensor cost: conversions between them, what a weight takes with its gradient and its
// update, what a result takes when the step has ended. Operators are splits_cost.c's.
//
// Idea: what a plan would write (copies of pieces, communication, accumulation, update) is written into the program of prices and
// asked for its price, as `heddle sim` asks.
#include "cost/cost.h"
#include "plan/splits_ops.h"

i64 splits_slowest(const splits_prices *x, u32 n) {
  i64 most = 0;
  for (u32 i = 0; i < n; i++) most = MAX(most, x->ps[i]);
  return most;
}

// ---- states ------------------------------------------------------------------------------------------------
u8 splits_state(splits_lies *s, layout l) {
  for (u32 k = 0; k < s->n; k++)
    if (s->lay[k].i == l.i) return (u8)k;
  if (s->n == LIES_MOST) return LIES_NONE;
  s->lay[s->n] = l;
  return (u8)s->n++;
}

layout splits_dealt(const splits_prices *x, func fn, value v) {
  const prog *src = x->m->pl->src;
  const shape *s = &val_type(src, func_get(src, fn), v)->s;
  const i64 parts = x->time ? axis_size(x->p->sp, x->time) : 1;
  for (u32 d = 0; x->time && d < s->nd; d++) {
    u32 id[16], n = classes_dim(x->m->k, fn, v, d, id, COUNT_OF(id));
    i64 inner = s->dim[d];
    for (u32 j = 0; j < n; j++) {
      const i64 e = classes_get(x->m->k, id[j])->extent;
      inner /= e;
      if (id[j] == x->m->batch && e % parts == 0)
        return layout_with_split(x->p->sp, (layout){0}, x->time, (u8)d, inner * (e / parts));
    }
  }
  return (layout){0};
}

splits_lies splits_lies_of(const splits_prices *x, func fn, value v) {
  const layout l = splits_dealt(x, fn, v);
  return (splits_lies){{l, layout_with_part(x->p->sp, l, x->axis, RED_SUM)}, 2};
}

i64 splits_local_bytes(const splits_prices *x, const shape *s, layout l) {
  return layout_local_elems(x->p->sp, l, s->nd, s->dim) * dtype_bytes(s->t);
}

i64 splits_held(const splits_prices *x) { return x->t.offload & OFFLOAD_ACTS ? 0 : x->t.held; }

// Of an element of a weight.
static double stored_each(const splits_terms *t, const shape *s) {
  const double own = dtype_bytes(s->t);
  double states = 0;
  for (u32 k = 0; t->train && k < OPTIM_STATES; k++) {
    optim_state st;
    if (optim_state_find(&t->optim, s, k, &st))
      states += (double)shape_bytes(&st.s) / (double)MAX(shape_elems(s), 1);
  }
  double each = t->offload & OFFLOAD_PARAMS ? 0 : own / (t->zero > 2 ? t->data : 1);
  if (t->train && !(t->offload & OFFLOAD_GRADS)) each += own / (t->zero > 1 ? t->data : 1);
  if (!(t->offload & OFFLOAD_STATES)) each += states / (t->zero > 0 ? t->data : 1);
  return each;
}

i64 splits_stored_bytes(const splits_prices *x, const splits_terms *t, const shape *s, layout l) {
  return (i64)((double)layout_local_elems(x->p->sp, l, s->nd, s->dim) * stored_each(t, s));
}

i64 splits_least_stored_bytes(const splits_terms *t, const shape *s) {
  return (i64)((double)(shape_elems(s) / t->ways) * stored_each(t, s));
}

// ---- prices of what is written -------------------------------------------------------------------------------
static value tensor_in(splits_prices *x, func f, const shape *s, layout l) {
  return func_param(x->p, f, type_tensor(x->p, s, l, (group){0}), (sym){0}, ROLE_INPUT);
}

static func new_func(splits_prices *x) { return func_new(x->p, sym_of(x->p->c, "price"), (loc){0}); }

// ps of all that stands in a function, one after the other. Below 0: there is no price.
static i64 price_of(splits_prices *x, func fn) {
  const func_info *f = func_get(x->p, fn);
  i64 ps = 0;
  for (u32 i = 0; i < f->body.n; i++) {
    const u32 n = cost_instr(x->k, x->p, f, &f->body.v[i], x->all, x->ps);
    if (!n) return -1;
    ps += splits_slowest(x, n);
  }
  return ps;
}

static i64 sum_of(i64 x, i64 y) { return x < 0 || y < 0 ? -1 : x + y; }

// The steps that a plan writes between two layouts: cuts of what is whole are copies, too.
static i64 convert_ps(splits_prices *x, const shape *s, layout from, layout to) {
  layout_step steps[PATH_STEPS];
  double moved;
  if (from.i == to.i) return 0;
  const int n = plan_path(x->p, x->k, x->t.materialise, s, from, to, x->all, steps, &moved);
  if (n < 0 || !(moved < 1e18)) return -1;
  builder b = builder_at(x->p, new_func(x));
  value v = tensor_in(x, b.f, s, from);
  for (int k = 0; k < n; k++) {
    const attr over = attr_x(A_over, steps[k].axis, steps[k].naxes);
    const type t = type_tensor(x->p, s, steps[k].to, (group){0});
    v = emit_res(x->p, b.f, emit(&b, step_op[steps[k].kind], attrs_of(x->p, &over, 1), &v, 1, &t, 1));
  }
  return price_of(x, b.f);
}

// ---- tables by shape and states ----------------------------------------------------------------------------
typedef i64 pair_price(splits_prices *x, const shape *s, const layout *from, layout to); // NULL: from nothing

// [from * n + to], kept by what it is of. A last row from nothing, of what has that.
static const i64 *table_of(splits_prices *x, const shape *s, const splits_lies *l, pair_price *price,
                           u64 what) {
  key_words key = {0};
  *vec_push(x->a, &key) = what;
  key_put_bytes(x->a, &key, l->lay, sizeof *l->lay * l->n);
  key_put_bytes(x->a, &key, s->dim, sizeof *s->dim * s->nd);
  *vec_push(x->a, &key) = s->t;
  const u32 at = key_find(&x->table_keys, &key);
  if (at) return x->tables.v[at - 1];
  i64 *v = NEWN(x->a, i64, l->n * (l->n + 1));
  for (u32 i = 0; i <= l->n; i++)
    for (u32 j = 0; j < l->n; j++) v[i * l->n + j] = price(x, s, i < l->n ? &l->lay[i] : NULL, l->lay[j]);
  key_add(x->a, &x->table_keys, &key);
  *vec_push(x->a, &x->tables) = v;
  return v;
}

static i64 way_ps(splits_prices *x, const shape *s, const layout *from, layout to) {
  return from ? convert_ps(x, s, *from, to) : 0;
}

const i64 *splits_converts(splits_prices *x, const shape *s, const splits_lies *l) {
  return table_of(x, s, l, way_ps, 0);
}

// The update of a weight that lies so, on one data rank.
static i64 update_ps(splits_prices *x, const shape *s, layout l) {
  builder b = builder_at(x->p, new_func(x));
  shape g = *s;
  g.t = grad_acc_type(x->t.wide ? GRAD_ACC_F32 : GRAD_ACC, s->t);
  value state[OPTIM_STATES], result[2 + OPTIM_STATES];
  const value w = tensor_in(x, b.f, s, l), dw = tensor_in(x, b.f, &g, l);
  optim_state st;
  for (u32 k = 0; optim_state_find(&x->t.optim, s, k, &st); k++)
    state[k] = tensor_in(x, b.f, &st.s, st.s.nd == s->nd ? l : (layout){0});
  optim_emit(&b, &x->t.optim, w, dw, state, result);
  return price_of(x, b.f);
}

static i64 zero_ps(splits_prices *x, const shape *s, layout l) {
  builder b = builder_at(x->p, new_func(x));
  const type t = type_tensor(x->p, s, l, (group){0});
  const attr at[] = {attr_t(A_dtype, s->t), attr_v(A_shape, s->dim, s->nd)};
  emit(&b, OP_full, attrs_of(x->p, at, COUNT_OF(at)), NULL, 0, &t, 1);
  return price_of(x, b.f);
}

static i64 accumulate_ps(splits_prices *x, const shape *sum, const shape *more, layout l) {
  builder b = builder_at(x->p, new_func(x));
  u32 opd[] = {tensor_in(x, b.f, sum, l) | OPD_DONATED, tensor_in(x, b.f, more, l)};
  const type t = type_tensor(x->p, sum, l, (group){0});
  emit(&b, sum->t == more->t ? OP_add : OP_accumulate, (attrset){0}, opd, COUNT_OF(opd), &t, 1);
  return price_of(x, b.f);
}

// A microbatch's gradient that is added to the accumulator; once a step the accumulator, which is zero first, becomes what
// the weight's ranks need, and the weight is updated. Without a gradient it is updated with zero.
static i64 settle_ps(splits_prices *x, const shape *s, const layout *from, layout to) {
  shape g = *s;
  g.t = grad_acc_type(x->t.wide ? GRAD_ACC_F32 : GRAD_ACC, s->t);
  if (layout_part_of(x->p->sp, to, x->axis) != RED_NONE) to = layout_without(x->p->sp, to, x->axis);
  const i64 update = update_ps(x, s, to), micro = MAX(x->t.micro, 1);
  const bool adds = from && micro > 1;
  i64 once = sum_of(from ? convert_ps(x, &g, *from, to) : zero_ps(x, &g, to),
                    update < 0 ? -1 : update / (x->t.zero ? (i64)x->t.data : 1));
  if (adds) once = sum_of(once, zero_ps(x, &g, *from));
  return sum_of(adds ? accumulate_ps(x, &g, s, *from) : 0, once < 0 ? -1 : once / micro);
}

const i64 *splits_settles(splits_prices *x, const shape *s, const splits_lies *l) {
  return table_of(x, s, l, settle_ps, 1);
}

// What main's first result takes when all microbatches have been, by state: sums are completed then.
const i64 *splits_endings(splits_prices *x, const shape *s, const splits_lies *l) {
  i64 *ps = ZNEWN(x->a, i64, l->n + 1);
  for (u32 k = 0; k < l->n; k++) {
    const layout whole = x->time ? layout_without(x->p->sp, l->lay[k], x->time) : l->lay[k];
    if (layout_part_of(x->p->sp, whole, x->axis) != RED_NONE)
      ps[k] = convert_ps(x, s, whole, layout_without(x->p->sp, whole, x->axis));
    if (ps[k] > 0) ps[k] /= MAX(x->t.micro, 1);
  }
  return ps;
}
