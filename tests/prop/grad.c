// grad.c - gradients against finite differences, in f64: every row of ops.def that has one, and whole models.
// Also that what plans ask for (accumulators, recomputation, weight gradients apart) changes no number.
#include "eval/eval.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"
#include <math.h>

// ---- rows
// -------------------------------------------------------------------------------------------------- The body
// of a function that computes %y. Operands that get a gradient are weights: their elements lie in
// +-(0.2, 1.5), or in (0.2, 1.5) if the case says so, 0.05 apart where that matters.
typedef struct {
  const char *op, *params, *body;
  bool positive;
} row_case;
#define X34 "%x: f64[3,4] weight"
static const row_case cases[] = {
    {"identity", X34, "%y = identity %x", 0},
    {"cast", X34, "%y = cast %x {dtype=f64}", 0},
    {"neg", X34, "%y = neg %x", 0},
    {"abs", X34, "%y = abs %x", 0},
    {"exp", X34, "%y = exp %x", 0},
    {"log", X34, "%y = log %x", 1},
    {"sqrt", X34, "%y = sqrt %x", 1},
    {"rsqrt", X34, "%y = rsqrt %x", 1},
    {"recip", X34, "%y = recip %x", 0},
    {"tanh", X34, "%y = tanh %x", 0},
    {"sigmoid", X34, "%y = sigmoid %x", 0},
    {"relu", X34, "%y = relu %x", 0},
    {"leaky_relu", X34, "%y = leaky_relu %x {alpha=0.3}", 0},
    {"gelu", X34, "%y = gelu %x", 0},
    {"gelu", X34, "%y = gelu %x {approx=1}", 0},
    {"silu", X34, "%y = silu %x", 0},
    {"erf", X34, "%y = erf %x", 0},
    {"sin", X34, "%y = sin %x", 0},
    {"cos", X34, "%y = cos %x", 0},
    {"softplus", X34, "%y = softplus %x", 0},
    {"scale", X34, "%y = scale %x {alpha=-3}", 0},
    {"offset", X34, "%y = offset %x {alpha=2}", 0},
    {"add", X34 ", %z: f64[4] weight", "%y = add %x, %z", 0},
    {"add", X34, "%y = add %x, %x", 0},
    {"sub", "%x: f64[3,1] weight, %z: f64[2,3,4] weight", "%y = sub %x, %z", 0},
    {"mul", X34 ", %z: f64[1,4] weight", "%y = mul %x, %z", 0},
    {"mul", X34, "%y = mul %x, %x", 0},
    {"div", X34 ", %z: f64[] weight", "%y = div %x, %z", 0},
    {"div", "%x: f64[4] weight, %z: f64[3,4] weight", "%y = div %x, %z", 0},
    {"pow", X34 ", %z: f64[4] weight", "%y = pow %x, %z", 1},
    {"max", X34 ", %z: f64[3,4] weight", "%y = max %x, %z", 0},
    {"min", X34 ", %z: f64[4] weight", "%y = min %x, %z", 0},
    {"where", X34 ", %z: f64[4] weight, %u: f64[3,4]", "%c = gt %u, %x\n  %y = where %c, %x, %z", 0},
    {"where", X34 ", %z: f64[4], %u: f64[3,4]", "%c = gt %u, %z\n  %y = where %c, %z, %x", 0},
    {"matmul", X34 ", %w: f64[4,5] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[2,3,4] weight, %w: f64[4,5] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[2,1,3,4] weight, %w: f64[3,4,5] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[1,3,4] weight, %w: f64[2,4,5] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[4] weight, %w: f64[2,4,5] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[2,3,4] weight, %w: f64[4] weight", "%y = matmul %x, %w", 0},
    {"matmul", "%x: f64[4] weight, %w: f64[4] weight", "%y = matmul %x, %w", 0},
    {"einsum", "%x: f64[2,3,4] weight, %w: f64[2,5,4] weight", "%y = einsum %x, %w {law=\"bsk,btk->bst\"}",
     0},
    {"einsum", "%x: f64[2,3,4] weight, %w: f64[5,4] weight", "%y = einsum %x, %w {law=\"xsk,tk->ts\"}", 0},
    {"einsum", X34 ", %w: f64[3,4] weight", "%y = einsum %x, %w {law=\"ab, ab -> b\"}", 0},
    {"conv", "%x: f64[2,3,5,5] weight, %w: f64[4,3,3,3] weight",
     "%y = conv %x, %w {strides=[2,1], pads=[1,0,1,2]}", 0},
    {"conv", "%x: f64[2,4,6] weight, %w: f64[4,2,3] weight, %b: f64[4] weight",
     "%y = conv %x, %w, %b {group=2, dilations=[2]}", 0},
    {"reduce_sum", X34, "%y = reduce_sum %x {axes=[0], keepdims=0}", 0},
    {"reduce_sum", X34, "%y = reduce_sum %x {axes=[-1]}", 0},
    {"reduce_mean", X34, "%y = reduce_mean %x {axes=[1], keepdims=0}", 0},
    {"reduce_mean", X34, "%y = reduce_mean %x {keepdims=0}", 0},
    {"reduce_max", X34, "%y = reduce_max %x {axes=[1]}", 0},
    {"reduce_min", X34, "%y = reduce_min %x {axes=[0], keepdims=0}", 0},
    {"cumsum", X34, "%y = cumsum %x {axis=1}", 0},
    {"cumsum", X34, "%y = cumsum %x {axis=0, exclusive=1, reverse=1}", 0},
    {"topk", X34, "%y, %i = topk %x {k=2}", 0},
    {"topk", X34, "%y, %i = topk %x {k=2, axis=0, largest=0}", 0},
    {"reshape", X34, "%y = reshape %x {shape=[2,6]}", 0},
    {"transpose", "%x: f64[2,3,4] weight", "%y = transpose %x {perm=[2,0,1]}", 0},
    {"expand", "%x: f64[3,1] weight", "%y = expand %x {shape=[2,3,4]}", 0},
    {"concat", X34 ", %z: f64[3,2] weight", "%y = concat %x, %z {axis=1}", 0},
    {"split", X34, "%y, %z = split %x {axis=1, sizes=[3,1]}", 0},
    {"slice", X34, "%y = slice %x {starts=[1,0], ends=[3,3], axes=[0,1]}", 0},
    {"slice", "%x: f64[9,4] weight", "%y = slice %x {starts=[1,3], ends=[8,-1], axes=[0,1], steps=[3,-1]}",
     0},
    {"slice", "%x: f64[9] weight", "%y = slice %x {starts=[8], ends=[-1], axes=[0], steps=[-3]}", 0},
    {"slice", "%x: f64[8] weight", "%y = slice %x {starts=[0], ends=[8], axes=[0], steps=[3]}", 0},
    {"pad", X34, "%y = pad %x {pads=[1,0,2,-1]}", 0},
    {"tile", X34, "%y = tile %x {sizes=[2,3]}", 0},
    {"gather", X34 ", %i: i64[2,5]", "%y = gather %x, %i", 0},
    {"gather", X34 ", %i: i64[2]", "%y = gather %x, %i {axis=1}", 0},
    {"take", X34 ", %i: i64[3,2]", "%y = take %x, %i {axis=1}", 0},
    {"trilu", X34, "%y = trilu %x {upper=0, k=1}", 0},
    {"softmax", X34, "%y = softmax %x", 0},
    {"softmax", X34, "%y = softmax %x {axis=0}", 0},
    {"log_softmax", X34, "%y = log_softmax %x {axis=0}", 0},
    {"layernorm", X34 ", %g: f64[4] weight, %b: f64[4] weight", "%y = layernorm %x, %g, %b", 0},
    {"layernorm", "%x: f64[2,3,4] weight, %g: f64[3,4] weight, %b: f64[3,4] weight",
     "%y = layernorm %x, %g, %b {axis=1, eps=0.1}", 0},
    {"rmsnorm", X34 ", %g: f64[4] weight", "%y = rmsnorm %x, %g {eps=0.01}", 0},
    {"batchnorm",
     "%x: f64[2,3,4] weight, %g: f64[3] weight, %b: f64[3] weight, %m: f64[3] weight, %v: f64[3] weight",
     "%y = batchnorm %x, %g, %b, %m, %v", 1},
    {"batchnorm_train", "%x: f64[4,3,2] weight, %g: f64[3] weight, %b: f64[3] weight",
     "%y, %m, %v = batchnorm_train %x, %g, %b", 0},
    {"dropout", "%x: f64[6,7] weight", "%y, %m = dropout %x {ratio=0.4, seed=7}", 0},
    {"cross_entropy", X34 ", %l: i64[3]", "%y = cross_entropy %x, %l", 0},
    {"cross_entropy", "%x: f64[2,3,4] weight, %l: i64[2,3]", "%y = cross_entropy %x, %l {reduce=\"sum\"}", 0},
    {"cross_entropy", "%x: f64[2,3,4] weight, %l: i64[2,3]",
     "%y = cross_entropy %x, %l {reduce=\"none\", ignore=1}", 0},
    {"cross_entropy", "%x: f64[6,3] weight, %l: i64[6]", "%y = cross_entropy %x, %l {ignore=1}", 0},
    {"maxpool", "%x: f64[2,3,7] weight", "%y = maxpool %x {window=[3], strides=[2], pads=[1,1]}", 0},
    {"avgpool", "%x: f64[2,3,5,5] weight", "%y = avgpool %x {window=[3,2], strides=[2,1], pads=[1,0,1,0]}",
     0},
    {"moe_gate", "%x: f64[2,5,4] weight", "%s, %y = moe_gate %x {k=2, capacity=2}", 1},
    {"moe_gate", "%x: f64[2,5,4] weight", "%s, %y = moe_gate %x {k=2, capacity=1}", 1},
    {"moe_dispatch", "%x: f64[2,5,3] weight, %p: f64[2,5,4]",
     "%s, %w = moe_gate %p {k=2, capacity=2}\n  %y = moe_dispatch %x, %s {experts=4, capacity=2}", 0},
    {"moe_combine", "%x: f64[2,4,2,3] weight, %p: f64[2,5,4], %w: f64[2,5,2] weight",
     "%s, %v = moe_gate %p {k=2, capacity=2}\n  %y = moe_combine %x, %s, %w", 0},
    {"pack", X34 ", %z: f64[2] weight",
     "%t = pack %x, %z\n  %a, %b = unpack %t\n  %c, %e = unpack %t\n  %d = reduce_sum %b {keepdims=0}\n  %u "
     "= mul %a, %d\n  %y = add %u, %c",
     0},
    {"unpack", X34 ", %z: f64[2] weight",
     "%t = pack %x, %z\n  %a, %b = unpack %t\n  %d = reduce_sum %b {keepdims=0}\n  %y = mul %a, %d", 0},
};

static bool rule_exists(opcode op) {
#define OP(name, a, b, c, law, lin, types, attrs, red, fl, flags, kernel, grad, doc) [OP_##name] = #grad,
  static const char *const cell[OP_COUNT] = {
#include "op/ops.def"
  };
#undef OP
  return cell[op] && strcmp(cell[op], "no") && strcmp(cell[op], "zero") && strcmp(cell[op], "call");
}

// ---- numbers
// -----------------------------------------------------------------------------------------------
static void show(ctx *c, const char *what) {
  arena *a = arena_new();
  if (diag_count(c)) CHECK_MSG(false, "%s: %s", what, diag_render(c, a));
  diag_clear(c);
  arena_free(a);
}

static double loss_of(const prog *p, const eval_array *in, u32 nin, arena *a) {
  arena_mark_t m = arena_mark(a);
  eval_array *out = NEWN(a, eval_array, func_get(p, p->main)->rets.n);
  bool ok = eval_run(p, &(eval_opts){.as_f64 = true}, in, nin, out, func_get(p, p->main)->rets.n, a);
  double y = ok ? *(double *)out[0].data : NAN;
  arena_release(a, m);
  return y;
}

// Elements of a case: away from 0 and from each other.
static void fill(eval_array *x, u64 *rng, bool positive) {
  double *v = x->data;
  i64 n = shape_elems(&x->s);
  for (i64 i = 0; i < n; i++) v[i] = 0.2 + 1.3 * ((double)i + 0.3 * rng_unit(rng)) / (double)n;
  for (i64 i = n - 1; i > 0; i--) {
    i64 k = (i64)(rng_next(rng) % (u64)(i + 1));
    double t = v[i];
    v[i] = v[k], v[k] = t;
  }
  for (i64 i = 0; i < n && !positive; i++)
    if (rng_next(rng) & 1) v[i] = -v[i];
}

// Every element of every weight: the gradient that pass_train returns against central differences.
static void check_elements(prog *p, const char *what, bool positive, u64 seed) {
  ctx *c = p->c;
  arena *a = arena_new();
  prog *t = prog_clone(p, c);
  optim_opts o = optim_default(OPTIM_SGD);
  const func_info *f = func_get(p, p->main);
  u32 nin = f->nparams, nw = 0;
  eval_array *in = NEWN(a, eval_array, nin);
  bool ok = eval_random(p, seed, in, nin, a) && pass_train(t, &o, true) && ir_verify(t);
  u32 nout = ok ? func_get(t, t->main)->rets.n : 0;
  eval_array *out = NEWN(a, eval_array, nout);
  for (u32 k = 0; ok && k < nin; k++)
    if (dtype_kind_of(in[k].s.t) == DK_FLOAT) fill(&in[k], &seed, positive);
  ok = ok && eval_run(t, &(eval_opts){.as_f64 = true}, in, nin, out, nout, a);
  CHECK_MSG(ok, "%s", what);
  show(c, what);
  for (u32 k = 0; ok && k < nin; k++) {
    if (f->params.v[k].r != ROLE_WEIGHT) continue;
    const double *g = out[1 + nw++].data;
    double *x = in[k].data, h = 1e-5;
    for (i64 i = 0; i < shape_elems(&in[k].s); i++) {
      double was = x[i];
      x[i] = was + h;
      double up = loss_of(p, in, nin, a);
      x[i] = was - h;
      double down = loss_of(p, in, nin, a);
      x[i] = was;
      double fd = (up - down) / (2 * h);
      if (!CHECK_MSG(fabs(fd - g[i]) <= 1e-6 * (1 + fabs(fd)),
                     "%s: d/d%s[%lld] is %.9g, differences give %.9g", what, sym_str(c, val(f, k + 1)->name),
                     (long long)i, g[i], fd))
        break;
    }
  }
  prog_free(t);
  arena_free(a);
}

// A scalar whose gradient differs from element to element of %y.
static const char program[] =
    "func @main(%s) -> (f64[]) {\n  %s\n  %%s1 = scale %%y {alpha=0.7}\n  %%s2 = exp %%s1\n"
    "  %%s3 = reduce_sum %%s2 {keepdims=0}\n  return %%s3\n}\n";

TEST(rows) {
  bool covered[OP_COUNT] = {false};
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    const row_case *rc = &cases[k];
    ctx *c = ctx_new();
    char *text = arena_printf(ctx_arena(c), program, rc->params, rc->body);
    prog *p = ir_parse(c, sym_of(c, rc->op), text, strlen(text));
    show(c, text);
    if (CHECK(p != NULL)) {
      for (u64 seed = 1; seed < 3; seed++) check_elements(p, text, rc->positive, seed);
      prog_free(p);
    }
    covered[op_find(rc->op, strlen(rc->op))] = true;
    ctx_free(c);
  }
  for (u32 op = 1; op < OP_COUNT; op++)
    if (rule_exists((opcode)op))
      CHECK_MSG(covered[op], "%s has a gradient and no case", op_row_of((opcode)op)->name);
}
