// train.c - loss and optimizer: from a model to the program of one training step on a single device.
//
// Idea: loss and optimizer are instructions like all others. The step is main's forward and backward bodies,
// one after the other, then the updates, so that loss, gradients and updates are values of one function.
#include "pass/internal.h"
#include <math.h>

static bool is_float(const type_info *t) { return !t->tuple && dtype_kind_of(t->s.t) == DK_FLOAT; }

// ---- loss ------------------------------------------------------------------------------------------------
// The dimension of classes: the last one; of an image of one pixel, [n,c,1,1], that of channels.
static u32 class_dim(const shape *y) {
  const bool pixel = y->nd == 4 && y->dim[2] == 1 && y->dim[3] == 1;
  return pixel ? 1 : y->nd - 1;
}

// Are these scores of classes or a quantity of the model's own? Something as large as an input is a reconstruction; vectors have no
// classes, and one class is none: its cross entropy is 0.
static bool is_logits(const prog *p, const func_info *f, const shape *y) {
  if (y->nd < 2 || y->dim[class_dim(y)] == 1) return false;
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_INPUT && shape_same(&val_type(p, f, k + 1)->s, y)) return false;
  return true;
}

// What a model's final softmax was applied to: cross entropy takes scores, not probabilities.
static value before_softmax(const prog *p, const func_info *f, value y, u32 dim) {
  u32 def = val(f, y)->def;
  const instr *in = def ? &f->body.v[def - 1] : NULL;
  if (!in || in->op != OP_softmax) return y;
  u32 nd = val_type(p, f, y)->s.nd;
  i64 axis = attr_int(attrs_get(p, in->at), A_axis, -1);
  return (axis < 0 ? axis + (i64)nd : axis) == (i64)dim ? opd_of(f, in, 0) : y;
}

static value cross_entropy(builder *b, value y, value label) {
  prog *p = b->p;
  if (dtype_bytes(val_type(p, func_get(p, b->f), y)->s.t) < 4) { // half precision does not hold the sum
    attr t = attr_t(A_dtype, DT_F32);
    y = build(b, OP_cast, &y, 1, &t, 1);
  }
  attr mean = attr_s(A_reduce, sym_of(p->c, "mean"));
  return build(b, OP_cross_entropy, (value[]){y, label}, 2, &mean, 1);
}

static value mean_squares(builder *b, value y, value target) {
  value d = build2(b, OP_sub, y, target), sq = build2(b, OP_mul, d, d);
  attr flat = attr_i(A_keepdims, 0);
  return build(b, OP_reduce_mean, &sq, 1, &flat, 1);
}

bool pass_loss(prog *p) {
  const func_info *old = func_get(p, p->main);
  const type_info *t = old->rets.n ? val_type(p, old, old->rets.v[0]) : NULL;
  if (!t || !is_float(t)) {
    diag(p->c, E_NOGRAD, old->where, "the first result of @%s is %s: there is nothing to train",
         sym_str(p->c, old->name), t ? ir_type_str(p, val(old, old->rets.v[0])->ty) : "missing");
    diag_hint(p->c, "return a scalar loss, or floating-point scores or values, first");
    return false;
  }
  if (t->s.nd == 0) return true;
  value y = old->rets.v[0];
  shape label = t->s;
  bool logits = is_logits(p, old, &t->s);
  const shape scores = t->s;
  const u32 dim = class_dim(&scores);
  if (logits) label.t = DT_I64, label.nd = dim, y = before_softmax(p, old, y, dim);

  func made = func_new(p, old->name, old->where);
  u32 at = old->nparams; // behind the inputs
  for (u32 k = 0; k < old->nparams; k++)
    if (old->params.v[k].r == ROLE_INPUT) at = k + 1;
  value *args = NEWN(p->a, value, old->nparams), given = 0, *rets = NEWN(p->a, value, old->rets.n + 1);
  for (u32 k = 0; k <= old->nparams; k++) {
    if (k == at)
      given = func_param(p, made, type_tensor(p, &label, (layout){0}, (group){0}),
                         sym_of(p->c, logits ? "labels" : "target"), ROLE_LABEL);
    if (k < old->nparams) args[k] = pass_param_like(p, made, old, k);
  }
  builder b = builder_at(p, made);
  *vec_push(p->a, &func_get(p, p->main)->rets) = y; // what the loss is taken of
  pass_splice(&b, p->main, args, rets, true, NULL);
  u32 n = old->rets.n - 1;
  b.where = old->where;
  if (logits && dim + 1 < scores.nd) {
    const attr to = attr_v(A_shape, scores.dim, dim + 1);
    rets[n] = build(&b, OP_reshape, &rets[n], 1, &to, 1);
  }
  rets[0] = logits ? cross_entropy(&b, rets[n], given) : mean_squares(&b, rets[n], given);
  assert(!b.failed);
  func_return(p, made, rets, n);
  pass_replace(p, p->main, made);
  pass_dce(p);
  IR_VERIFY_PASS(p);
  return true;
}

// ---- optimizers ------------------------------------------------------------------------------------------
static const struct {
  const char *name;
  opcode op;
  u32 states; // with the weight's extents
  const char *state[2];
  optim_opts dflt;
} optims[] = {
    {"sgd", OP_sgd, 0, {0}, {OPTIM_SGD, true, 0.01, 0, 0, 0, 0, 0}},
    {"momentum", OP_momentum, 1, {".m"}, {OPTIM_MOMENTUM, true, 0.01, 0.9, 0, 0, 0, 0}},
    {"adam", OP_adam, 2, {".m", ".v"}, {OPTIM_ADAM, true, 0.001, 0, 0.9, 0.999, 1e-8, 0}},
    {"adamw", OP_adamw, 2, {".m", ".v"}, {OPTIM_ADAMW, true, 0.001, 0, 0.9, 0.999, 1e-8, 0.01}},
    {"adafactor", OP_adafactor, 0, {0}, {OPTIM_ADAFACTOR, true, 0.01, 0, 0, 0.999, 1e-30, 0}},
};

optim_opts optim_default(optimizer k) { return optims[k].dflt; }

const char *optim_wrong(const optim_opts *o, arena *a) {
  const struct {
    const char *name;
    double x, below; // from 0, and less than this
  } of[] = {{"lr", o->lr, INFINITY},   {"momentum", o->momentum, 1},
            {"beta1", o->beta1, 1},    {"beta2", o->beta2, 1},
            {"eps", o->eps, INFINITY}, {"weight-decay", o->weight_decay, INFINITY}};
  for (u32 k = 0; k < COUNT_OF(of); k++) {
    if (of[k].x >= 0 && of[k].x < of[k].below) continue;
    return of[k].below == 1
               ? arena_printf(a, "%s = %g is not in the range from 0 to below 1", of[k].name, of[k].x)
               : arena_printf(a, "%s = %g must be 0 or more, and finite", of[k].name, of[k].x);
  }
  return NULL;
}
const char *optim_name(optimizer k) { return optims[k].name; }

bool optim_find(const char *name, optimizer *out) {
  for (u32 k = 0; k < COUNT_OF(optims); k++)
    if (!strcmp(optims[k].name, name)) return *out = (optimizer)k, true;
  return false;
}

static dtype optim_state_type(dtype weight) { return dtype_bytes(weight) < 4 ? DT_F32 : weight; }
bool optim_has_master(const optim_opts *o, dtype weight) {
  return o->master && dtype_kind_of(weight) == DK_FLOAT && dtype_bytes(weight) < 4;
}

// Adafactor: of a matrix means over rows and columns (more dimensions are many matrices), of a vector all.
static bool is_factored(const optim_opts *o, const shape *w) {
  return o->kind == OPTIM_ADAFACTOR && w->nd >= 2;
}
static u32 statistics_of(const optim_opts *o, const shape *w) {
  return is_factored(o, w) ? 2 : o->kind == OPTIM_ADAFACTOR ? 1 : optims[o->kind].states;
}

bool optim_state_find(const optim_opts *o, const shape *w, u32 k, optim_state *out) {
  const u32 n = statistics_of(o, w);
  if (k >= n + optim_has_master(o, w->t)) return false;
  *out = (optim_state){".master", *w, OPTIM_WHOLE};
  out->s.t = optim_state_type(w->t);
  if (k == n) return true;
  out->suffix = o->kind != OPTIM_ADAFACTOR ? optims[o->kind].state[k] : n == 1 ? ".v" : k ? ".c" : ".r";
  if (!is_factored(o, w)) return true;
  out->without = w->nd - 1 - k;
  out->s.nd--;
  if (k) out->s.dim[w->nd - 2] = w->dim[w->nd - 1];
  return true;
}

// x and states to x' and states: one instruction, states after the gradient.
static void update_at_once(builder *b, const optim_opts *o, value x, value g, const value *state, u32 states,
                           value *results) {
  prog *p = b->p;
  const func_info *f = func_get(p, b->f);
  attr at[6] = {attr_f(A_lr, o->lr), attr_f(A_weight_decay, o->weight_decay)};
  u32 n = 2, opd[4] = {x | OPD_DONATED, g};
  type res[OPTIM_STATES] = {val(f, x)->ty};
  if (states == 1) at[n++] = attr_f(A_momentum, o->momentum);
  if (states == 2)
    at[n++] = attr_f(A_beta1, o->beta1), at[n++] = attr_f(A_beta2, o->beta2), at[n++] = attr_f(A_eps, o->eps);
  for (u32 k = 0; k < states; k++) opd[2 + k] = state[k] | OPD_DONATED, res[1 + k] = val(f, state[k])->ty;
  const value r =
      emit_res(p, b->f, emit(b, optims[o->kind].op, attrs_of(p, at, n), opd, 2 + states, res, 1 + states));
  for (u32 k = 0; k <= states; k++) results[k] = r + k;
}

// The statistics; the size of the update, which is a sum over all of it; the update. Sums over what ranks
// have pieces of lie between these instructions.
static void update_in_steps(builder *b, const optim_opts *o, value x, value g, const value *state, u32 states,
                            value *results) {
  prog *p = b->p;
  const bool factored = states == 2;
  shape one = val_type(p, func_get(p, b->f), state[0])->s, mean = one;
  one.nd = 0, mean.nd--;
  const type number = type_tensor(p, &one, (layout){0}, (group){0}), wt = val(func_get(p, b->f), x)->ty;
  attr at[] = {attr_f(A_beta2, o->beta2), attr_f(A_eps, o->eps)};
  u32 opd[7] = {x, g}, nres = 1 + states;
  type res[4] = {number};
  for (u32 k = 0; k < states; k++)
    opd[2 + k] = state[k] | OPD_DONATED, res[1 + k] = val(func_get(p, b->f), state[k])->ty;
  if (factored) res[nres++] = type_tensor(p, &mean, (layout){0}, (group){0});
  const value r = emit_res(
      p, b->f,
      emit(b, factored ? OP_adafactor_rc : OP_adafactor_v, attrs_of(p, at, 2), opd, 2 + states, res, nres));
  for (u32 k = 0; k < states; k++) results[1 + k] = r + 1 + k;

  opd[0] = r + 1, opd[1] = g, opd[2] = r + 2, opd[3] = r + 3;
  const value size =
      emit_res(p, b->f, emit(b, OP_adafactor_norm, (attrset){0}, opd, factored ? 4 : 2, &number, 1));

  attr how[] = {attr_f(A_lr, o->lr), attr_f(A_weight_decay, o->weight_decay)};
  opd[0] = x | OPD_DONATED, opd[1] = g, opd[2] = size, opd[3] = r;
  for (u32 k = 0; k + 1 < nres; k++) opd[4 + k] = r + 1 + k;
  results[0] = emit_res(p, b->f, emit(b, OP_adafactor, attrs_of(p, how, 2), opd, 4 + nres - 1, &wt, 1));
}

void optim_emit(builder *b, const optim_opts *o, value w, value g, const value *state, value *results) {
  prog *p = b->p;
  const type_info *t = val_type(p, func_get(p, b->f), w);
  const type wt = val(func_get(p, b->f), w)->ty;
  const u32 states = statistics_of(o, &t->s);
  const bool master = optim_has_master(o, t->s.t);
  const value x = master ? state[states] : w; // what is updated
  u8 flags = b->flags;
  b->flags |= INSTR_UPDATE;
  (o->kind == OPTIM_ADAFACTOR ? update_in_steps : update_at_once)(b, o, x, g, state, states, results);
  if (master) {
    results[states + 1] = results[0];
    u32 put[2] = {w | OPD_DONATED, results[0]};
    results[0] = emit_res(p, b->f, emit(b, OP_assign, (attrset){0}, put, 2, &wt, 1));
  }
  b->flags = flags;
}

// ---- one step --------------------------------------------------------------------------------------------
typedef struct {
  u32 n, *param; // parameter numbers of main
} weights;

static bool main_gradients(prog *p, weights *w, grad_pair *pair) {
  const func_info *f = func_get(p, p->main);
  u8 *mark = ZNEWN(p->a, u8, f->nparams);
  bool *has_dy = ZNEWN(p->a, bool, f->rets.n);
  w->param = NEWN(p->a, u32, f->nparams);
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_WEIGHT && is_float(val_type(p, f, k + 1)))
      mark[k] = GRAD_PLAIN, w->param[w->n++] = k;
  has_dy[0] = true;
  return pass_grad(p, p->main, &(grad_opts){.mark = mark, .has_dy = has_dy}, pair);
}

static value zeros_like(builder *b, value w) { // the gradient of a weight that the loss does not depend on
  const shape s = val_type(b->p, func_get(b->p, b->f), w)->s;
  attr at[] = {attr_t(A_dtype, s.t), attr_v(A_shape, s.dim, s.nd)};
  return build(b, OP_full, NULL, 0, at, COUNT_OF(at));
}

static void name_as(builder *b, value v, value of, const char *suffix) {
  sym name = val(func_get(b->p, b->f), of)->name;
  if (name.i) value_name(b->p, b->f, v, sym_with(b->p->c, name, suffix));
}

// Two weights that are added up have one gradient; as results these are two.
static void return_gradient(builder *b, value *rets, u32 k, value grad, value weight) {
  bool again = false;
  for (u32 j = 0; j < k; j++) again = again || rets[j] == grad;
  rets[k] = again ? build1(b, OP_identity, grad) : grad;
  name_as(b, rets[k], weight, ".grad");
}

bool pass_train(prog *p, const optim_opts *o, bool return_gradients) {
  weights w = {0};
  grad_pair pair;
  if (!pass_loss(p) || !main_gradients(p, &w, &pair)) return false;
  const func_info *old = func_get(p, p->main), *fwd = func_get(p, pair.fwd), *bwd = func_get(p, pair.bwd);
  u32 np = old->nparams, nstates = 0, n = 0;
  func made = func_new(p, old->name, old->where);
  value *param = NEWN(p->a, value, np), *state = NEWN(p->a, value, w.n * OPTIM_STATES + 1);
  for (u32 k = 0; k < np; k++) param[k] = pass_param_like(p, made, old, k);
  for (u32 k = 0; k < w.n; k++) {
    const value_info *v = val(old, w.param[k] + 1);
    optim_state st;
    for (u32 i = 0; optim_state_find(o, &type_get(p, v->ty)->s, i, &st); i++) {
      sym name = sym_with(p->c, v->name, st.suffix);
      type t = type_tensor(p, &st.s, (layout){0}, type_get(p, v->ty)->g);
      state[nstates++] = func_param(p, made, t, v->name.i ? name : (sym){0}, ROLE_STATE);
    }
  }

  builder b = builder_at(p, made);
  b.where = old->where;
  value *y = NEWN(p->a, value, fwd->rets.n), *args = NEWN(p->a, value, bwd->nparams);
  pass_splice(&b, pair.fwd, param, y, true, NULL);
  for (u32 k = 0; k < pair.nneed; k++) args[n++] = param[pair.need[k]];
  for (u32 k = 0; k < pair.nsaved; k++) args[n++] = y[old->rets.n + k];
  const shape *s = &val_type(p, old, old->rets.v[0])->s;
  attr one[] = {attr_t(A_dtype, s->t), attr_v(A_shape, NULL, 0), attr_f(A_value, 1)};
  b.flags = INSTR_BACKWARD;
  args[n++] = build(&b, OP_full, NULL, 0, one, COUNT_OF(one));
  value *made_of = NEWN(p->a, value, bwd->rets.n + 1), *grad = NEWN(p->a, value, w.n + 1);
  pass_splice(&b, pair.bwd, args, made_of, false, NULL);
  for (u32 k = 0, i = 0; k < w.n; k++) {
    const bool has = i < pair.nacc && pair.acc[i] == w.param[k];
    grad[k] = has ? made_of[i++] : zeros_like(&b, param[w.param[k]]);
  }

  attr by1 = attr_f(A_alpha, 1);
  if (y[0] <= np)
    y[0] = build(&b, OP_scale, y, 1, &by1, 1); // a weight as the loss: its update takes the weight over
  value *rets = NEWN(p->a, value, 1 + 2 * w.n + nstates), *at = rets;
  if (!val(func_get(p, made), y[0])->name.i) value_name(p, made, y[0], sym_of(p->c, "loss"));
  *at++ = y[0];
  for (u32 k = 0; k < w.n && return_gradients; k++) return_gradient(&b, at, k, grad[k], param[w.param[k]]);
  if (return_gradients) at += w.n;
  b.flags = 0;
  for (u32 k = 0, first = 0; k < w.n; k++) {
    value x = param[w.param[k]], res[1 + OPTIM_STATES] = {0};
    optim_emit(&b, o, x, grad[k], state + first, res);
    at[k] = res[0];
    name_as(&b, res[0], x, IR_NEW);
    for (u32 i = 0; i < OPTIM_STATES && res[1 + i]; i++, first++) {
      at[w.n + first] = res[1 + i];
      name_as(&b, res[1 + i], state[first], IR_NEW);
    }
  }
  assert(!b.failed);
  func_return(p, made, rets, (u32)(at - rets) + w.n + nstates);
  pass_replace(p, p->main, made);
  pass_compact(p);
  IR_VERIFY_PASS(p);
  return true;
}
