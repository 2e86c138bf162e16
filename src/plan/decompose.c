// decompose.c - decomposes operators that need a dimension whole into ones that do not: what is computed when
// softmax or cross entropy meets scores whose classes lie on several ranks, or batch norm samples that do.
// Not when that is (shard.c).
//
// Idea: the function has the instruction's operands and results and is sharded like any other, so its
// communication (a maximum and two sums of one number a position, instead of all scores) comes from the laws.
#include "plan/decompose.h"

static value along(decomposition *e, opcode op, value x, i64 axis, bool keep) {
  attr at[2] = {attr_v(A_axes, &axis, 1), attr_i(A_keepdims, keep)};
  return build(&e->b, op, &x, 1, at, 2);
}

// log(sum(exp(x))) over the last dimension.
static value log_sum_exp(decomposition *e, value x) {
  value m = along(e, OP_reduce_max, x, e->nd - 1, false);
  value s = build(&e->b, OP_sum_exp, (value[]){x, m}, 2, NULL, 0);
  return build(&e->b, OP_add, (value[]){build1(&e->b, OP_log, s), m}, 2, NULL, 0);
}

static value cross_entropy(decomposition *e) {
  const attr *how = attr_get(e->at, A_reduce);
  const char *reduce = how ? sym_str(e->b.p->c, how->u.s) : "mean";
  if (attr_get(e->at, A_ignore)) return 0; // how many count is known to nobody before all labels are seen
  value picked = build(&e->b, OP_pick, e->x, 2, NULL, 0);
  value each = build(&e->b, OP_sub, (value[]){log_sum_exp(e, e->x[0]), picked}, 2, NULL, 0);
  attr flat = attr_i(A_keepdims, 0);
  if (strcmp(reduce, "none") == 0) return each;
  return build(&e->b, strcmp(reduce, "sum") == 0 ? OP_reduce_sum : OP_reduce_mean, &each, 1, &flat, 1);
}

static value cross_entropy_dx(decomposition *e) {
  if (e->nopd > 3) return 0;
  value lse = log_sum_exp(e, e->x[1]);
  return build(&e->b, OP_cross_entropy_dx, (value[]){e->x[0], e->x[1], e->x[2], lse}, 4, e->at.v, e->at.n);
}

static i64 axis_of(const decomposition *e) { return attr_int(e->at, A_axis, -1); }

static value minus_largest(decomposition *e) {
  value m = along(e, OP_reduce_max, e->x[0], axis_of(e), true);
  return build(&e->b, OP_sub, (value[]){e->x[0], m}, 2, NULL, 0);
}

static value softmax(decomposition *e) {
  value y = build1(&e->b, OP_exp, minus_largest(e));
  return build(&e->b, OP_div, (value[]){y, along(e, OP_reduce_sum, y, axis_of(e), true)}, 2, NULL, 0);
}

static value log_softmax(decomposition *e) {
  value y = minus_largest(e), s = along(e, OP_reduce_sum, build1(&e->b, OP_exp, y), axis_of(e), true);
  return build(&e->b, OP_sub, (value[]){y, build1(&e->b, OP_log, s)}, 2, NULL, 0);
}

static value softmax_dx(decomposition *e) { // y (dy - sum(dy y))
  value s = along(e, OP_reduce_sum, build(&e->b, OP_mul, e->x, 2, NULL, 0), axis_of(e), true);
  value d = build(&e->b, OP_sub, (value[]){e->x[0], s}, 2, NULL, 0);
  return build(&e->b, OP_mul, (value[]){e->x[1], d}, 2, NULL, 0);
}

// One of the two makes the results: one, or as many as the row has.
static const struct {
  opcode op;
  u32 scores; // the operand whose letter is whole
  value (*build)(decomposition *e);
  bool (*build_all)(decomposition *e, value *y);
} rows[] = {{OP_cross_entropy, 0, cross_entropy, NULL},
            {OP_cross_entropy_dx, 1, cross_entropy_dx, NULL},
            {OP_softmax, 0, softmax, NULL},
            {OP_log_softmax, 0, log_softmax, NULL},
            {OP_softmax_dx, 0, softmax_dx, NULL},
            {OP_batchnorm_train, 0, NULL, decompose_batchnorm},
            {OP_batchnorm_dx, 1, NULL, decompose_batchnorm_dx}};

static u32 results_of(decomposition *e, u32 row, value *y) { // 0: there is no such function
  if (rows[row].build_all) return rows[row].build_all(e, y) ? DECOMPOSE_RESULTS : 0;
  y[0] = rows[row].build(e);
  return y[0] ? 1 : 0;
}

func planner_decompose(planner *pl, func f, u32 index) {
  prog *p = pl->src;
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  u32 row = 0, n = instr_nopd(fi, in);
  while (row < COUNT_OF(rows) && rows[row].op != in->op) row++;
  if (row == COUNT_OF(rows) || n > COUNT_OF(((decomposition *)0)->x)) return (func){0};
  u64 word[2 + COUNT_OF(((decomposition *)0)->x)] = {(u64)in->op << 32 | in->at.i, in->flags};
  for (u32 k = 0; k < n; k++) word[2 + k] = fi->values.v[opd_of(fi, in, k)].ty.i;
  const key_words key = {word, 2 + n, 2 + n};
  const u32 hit = key_find(&pl->decompose_keys, &key);
  if (hit) return pl->decomposed.v[hit - 1];
  func g = func_new(p, sym_with(p->c, sym_of(p->c, op_row_of(in->op)->name), ".split"), in->where);
  decomposition e = {.b = builder_at(p, g), .f = func_get(p, g), .at = attrs_get(p, in->at), .nopd = n};
  e.b.flags = in->flags;
  e.b.where = in->where;
  for (u32 k = 0; k < n; k++)
    e.x[k] = func_param(p, g, fi->values.v[opd_of(fi, in, k)].ty, (sym){0}, ROLE_INPUT);
  e.nd = val_type(p, e.f, e.x[rows[row].scores])->s.nd;
  value y[DECOMPOSE_RESULTS];
  u32 nres = results_of(&e, row, y);
  if (nres) func_return(p, g, y, nres);
  *vec_push(pl->a, &pl->decomposed) = nres ? g : (func){0};
  key_add(pl->a, &pl->decompose_keys, &key);
  return pl->decomposed.v[pl->decomposed.n - 1];
}
