// grad.c - gradients against finite differences, in f64: every row of ops.def that has one, and whole models.
// Also that what plans ask for (accumulators, recomputation, weight gradients apart) changes no number.
#include "eval/eval.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"
#include <math.h>

// ---- rows ------------------------------------------------------------------------------------------------
// The body of a function that computes %y. Operands that get a gradient are weights: their elements lie in
// +-(0.2, 1.5), or in (0.2, 1.5) if the case says so, 0.05 apart where that matters; or every third is 0.
enum { POSITIVE = 1, ZEROS = 2 };
typedef struct {
  const char *op, *params, *body;
  int elements;
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
    {"tan", X34, "%z = scale %x {alpha=0.6}\n  %y = tan %z", 0},
    {"asin", X34, "%z = scale %x {alpha=0.6}\n  %y = asin %z", 0},
    {"acos", X34, "%z = scale %x {alpha=0.6}\n  %y = acos %z", 0},
    {"atan", X34, "%y = atan %x", 0},
    {"sinh", X34, "%y = sinh %x", 0},
    {"cosh", X34, "%y = cosh %x", 0},
    {"asinh", X34, "%y = asinh %x", 0},
    {"acosh", X34, "%z = offset %x {alpha=1}\n  %y = acosh %z", POSITIVE},
    {"atanh", X34, "%z = scale %x {alpha=0.6}\n  %y = atanh %z", 0},
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
    {"mod", X34 ", %z: f64[4] weight", "%y = mod %x, %z", 0},
    {"mod", X34 ", %z: f64[4] weight", "%y = mod %x, %z {mode=\"fmod\"}", 0},
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
    {"attention", "%q: f64[2,3,2,4] weight, %k: f64[2,5,2,4] weight, %v: f64[2,5,2,3] weight",
     "%y, %l = attention %q, %k, %v {law=\"bshd,bthd,bthe->bshe\", alpha=0.7}", 0},
    {"attention", "%q: f64[2,3,2,2,4] weight, %k: f64[2,3,2,4] weight, %v: f64[2,3,2,3] weight",
     "%y, %l = attention %q, %k, %v {law=\"bsgrd,btgd,btge->bsgre\", causal=\"s\"}", 0},
    {"attention",
     "%q: f64[3,4] weight, %k: f64[2,4,5] weight, %v: f64[2,5,3] weight, %b: f64[2,1,5] weight, %u: f64[3,5]",
     "%z = full {dtype=f64, shape=[], value=-0.6}\n  %m = gt %u, %z\n  %y, %l = attention %q, %k, %v, %b, %m "
     "{law=\"sd,bdt,bte,bst,st->bse\", value=-0.5}",
     0},
    {"attention", "%q: f64[2,3,4] weight, %k: f64[2,5,4] weight, %v: f64[2,5,3] weight, %b: f64[3,5] weight",
     "%y, %l = attention %q, %k, %v, %b {law=\"bsd,btd,bte,st->bse\", causal=\"s\", value=-1}", 0},
    {"einsum", X34 ", %w: f64[3,4] weight", "%y = einsum %x, %w {law=\"ab, ab -> b\"}", 0},
    {"conv", "%x: f64[2,3,5,5] weight, %w: f64[4,3,3,3] weight",
     "%y = conv %x, %w {strides=[2,1], pads=[1,0,1,2]}", 0},
    {"conv", "%x: f64[2,4,6] weight, %w: f64[4,2,3] weight, %b: f64[4] weight",
     "%y = conv %x, %w, %b {group=2, dilations=[2]}", 0},
    {"conv_dx", "%x: f64[2,4,5] weight, %w: f64[4,3,3] weight",
     "%y = conv_dx %x, %w {shape=[2,3,10], strides=[2], pads=[1,1]}", 0},
    {"conv_dx", "%x: f64[2,4,5] weight, %w: f64[4,3,3] weight",
     "%y = conv_dx %x, %w {shape=[2,6,7], group=2}", 0},
    {"conv_dx", "%x: f64[1,2,3,3] weight, %w: f64[2,2,2,3] weight",
     "%y = conv_dx %x, %w {shape=[1,2,4,6], strides=[1,2], dilations=[2,1], pads=[0,1,1,0]}", 0},
    {"reduce_sum", X34, "%y = reduce_sum %x {axes=[0], keepdims=0}", 0},
    {"reduce_sum", X34, "%y = reduce_sum %x {axes=[-1]}", 0},
    {"reduce_mean", X34, "%y = reduce_mean %x {axes=[1], keepdims=0}", 0},
    {"reduce_mean", X34, "%y = reduce_mean %x {keepdims=0}", 0},
    {"reduce_max", X34, "%y = reduce_max %x {axes=[1]}", 0},
    {"reduce_min", X34, "%y = reduce_min %x {axes=[0], keepdims=0}", 0},
    {"reduce_prod", X34, "%y = reduce_prod %x {axes=[1]}", 0},
    {"reduce_prod", X34, "%y = reduce_prod %x {axes=[0], keepdims=0}", ZEROS},
    {"reduce_prod", X34, "%y = reduce_prod %x {axes=[1], keepdims=0}", ZEROS},
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
    {"pad", "%x: f64[4,5] weight", "%y = pad %x {pads=[2,1,3,4], mode=\"reflect\"}", 0},
    {"pad", "%x: f64[4,5] weight", "%y = pad %x {pads=[2,-1,3,4], mode=\"edge\"}", 0},
    {"pad", "%x: f64[4,5] weight", "%y = pad %x {pads=[6,-1,3,0], mode=\"wrap\"}", 0},
    {"tile", X34, "%y = tile %x {sizes=[2,3]}", 0},
    {"gather", X34 ", %i: i64[2,5]", "%y = gather %x, %i", 0},
    {"gather", X34 ", %i: i64[2]", "%y = gather %x, %i {axis=1}", 0},
    {"take", X34 ", %i: i64[3,2]", "%y = take %x, %i {axis=1}", 0},
    {"put", "%x: f64[3,5] weight, %u: f64[3,2] weight",
     "%i = iota {dtype=i64, shape=[3,2], axis=1, alpha=2}\n  %y = put %x, %i, %u {axis=1}", 0},
    {"put", "%x: f64[3,5] weight, %i: i64[2,4], %u: f64[2,4] weight",
     "%y = put %x, %i, %u {axis=1, scatter=\"add\"}", 0},
    {"gather_nd", "%x: f64[3,4,2] weight, %i: i64[5,2]", "%y = gather_nd %x, %i", 0},
    {"scatter_nd", "%x: f64[4,2] weight, %u: f64[2,2] weight",
     "%i = iota {dtype=i64, shape=[2,1], axis=0, alpha=3}\n  %y = scatter_nd %x, %i, %u", 0},
    {"scatter_nd", "%x: f64[4,2] weight, %i: i64[5,1], %u: f64[5,2] weight",
     "%y = scatter_nd %x, %i, %u {scatter=\"add\"}", 0},
    {"reverse", "%x: f64[4,3,2] weight, %n: i64[3]", "%y = reverse %x, %n", 0},
    {"depth_to_space", "%x: f64[2,12,2,3] weight", "%y = depth_to_space %x {size=2}", 0},
    {"depth_to_space", "%x: f64[2,12,2,3] weight", "%y = depth_to_space %x {size=2, mode=\"CRD\"}", 0},
    {"resize", "%x: f64[1,2,3,4] weight", "%y = resize %x {shape=[1,2,5,2]}", 0},
    {"resize", "%x: f64[2,4] weight", "%y = resize %x {shape=[2,9], nearest=\"ceil\", coord=\"asymmetric\"}",
     0},
    {"resize", "%x: f64[2,4] weight", "%y = resize %x {shape=[4,10], mode=\"linear\", scales=[2,2.6]}", 0},
    {"resize", "%x: f64[2,7] weight", "%y = resize %x {shape=[2,4], mode=\"linear\", antialias=1}", 0},
    {"resize", "%x: f64[3,4] weight",
     "%y = resize %x {shape=[5,3], mode=\"linear\", coord=\"align_corners\"}", 0},
    {"resize", "%x: f64[2,5] weight",
     "%y = resize %x {shape=[3,9], mode=\"linear\", coord=\"half_pixel_symmetric\", scales=[1.5,1.9]}", 0},
    {"resize", "%x: f64[3,5] weight",
     "%y = resize %x {shape=[3,8], mode=\"linear\", coord=\"tf_crop_and_resize\", roi=[0,-0.2,1,0.9], "
     "value=3}",
     0},
    {"resize", "%x: f64[4,5] weight", "%y = resize %x {shape=[7,3], mode=\"cubic\", alpha=-0.5}", 0},
    {"resize", "%x: f64[2,9] weight",
     "%y = resize %x {shape=[2,5], mode=\"cubic\", exclude=1, antialias=1, coord=\"pytorch_half_pixel\"}", 0},
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
    {"batchnorm_train", "%x: f64[6,3,2] weight, %g: f64[3] weight, %b: f64[3] weight",
     "%y, %m, %v = batchnorm_train %x, %g, %b {bn_groups=3}", 0},
    {"groupnorm", "%x: f64[2,6,3] weight, %g: f64[6] weight, %b: f64[6] weight",
     "%y = groupnorm %x, %g, %b {groups=3, eps=0.1}", 0},
    {"groupnorm", "%x: f64[2,3,2,2] weight, %g: f64[3] weight, %b: f64[3] weight",
     "%y = groupnorm %x, %g, %b", 0},
    {"lrn", "%x: f64[2,5,3] weight", "%y = lrn %x {size=3, alpha=0.4}", 0},
    {"lrn", "%x: f64[2,5] weight", "%y = lrn %x {size=4, alpha=0.4, beta=0.5, value=2}", 0},
    {"dropout", "%x: f64[6,7] weight", "%y, %m = dropout %x {ratio=0.4, seed=7}", 0},
    {"cross_entropy", X34 ", %l: i64[3]", "%y = cross_entropy %x, %l", 0},
    {"cross_entropy", "%x: f64[2,3,4] weight, %l: i64[2,3]", "%y = cross_entropy %x, %l {reduce=\"sum\"}", 0},
    {"cross_entropy", "%x: f64[2,3,4] weight, %l: i64[2,3]",
     "%y = cross_entropy %x, %l {reduce=\"none\", ignore=1}", 0},
    {"cross_entropy", "%x: f64[6,3] weight, %l: i64[6]", "%y = cross_entropy %x, %l {ignore=1}", 0},
    {"nll", "%x: f64[4,5] weight, %l: i64[4]", "%y = nll %x, %l", 0},
    {"nll", "%x: f64[2,5,3] weight, %l: i64[2,3]", "%y = nll %x, %l {reduce=\"none\"}", 0},
    {"nll", "%x: f64[2,5,3] weight, %l: i64[2,3], %w: f64[5]", "%y = nll %x, %l, %w {ignore=2}", 0},
    {"nll", "%x: f64[6,3] weight, %l: i64[6]", "%y = nll %x, %l {ignore=1, reduce=\"sum\"}", 0},
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

// ---- numbers ---------------------------------------------------------------------------------------------
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
static void fill(eval_array *x, u64 *rng, int elements) {
  double *v = x->data;
  i64 n = shape_elems(&x->s);
  for (i64 i = 0; i < n; i++) v[i] = 0.2 + 1.3 * ((double)i + 0.3 * rng_unit(rng)) / (double)n;
  for (i64 i = n - 1; i > 0; i--) {
    i64 k = (i64)(rng_next(rng) % (u64)(i + 1));
    double t = v[i];
    v[i] = v[k], v[k] = t;
  }
  for (i64 i = 0; i < n && elements != POSITIVE; i++)
    if (rng_next(rng) & 1) v[i] = -v[i];
  for (i64 i = 0; i < n && elements == ZEROS; i += 3) v[i] = 0;
}

// Every element of every weight: the gradient that pass_train returns against central differences.
static void check_elements(prog *p, const char *what, int elements, u64 seed) {
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
    if (dtype_kind_of(in[k].s.t) == DK_FLOAT) fill(&in[k], &seed, elements);
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
      for (u64 seed = 1; seed < 3; seed++) check_elements(p, text, rc->elements, seed);
      prog_free(p);
    }
    covered[op_find(rc->op, strlen(rc->op))] = true;
    ctx_free(c);
  }
  for (u32 op = 1; op < OP_COUNT; op++)
    if (rule_exists((opcode)op))
      CHECK_MSG(covered[op], "%s has a gradient and no case", op_row_of((opcode)op)->name);
}

// ---- whole models ----------------------------------------------------------------------------------------
static const char *const models[] = {
    "mlp-xs:layers=3,hidden=8",
    "gpt2:layers=2,hidden=16,heads=2,vocab=32,positions=8",
    "bert-base:layers=2,hidden=16,heads=2,vocab=32,positions=8",
    "llama2-70b:layers=2,hidden=16,heads=4,kv_heads=2,ffn=24,vocab=32,positions=8",
    "moe-8x125m:layers=2,hidden=16,heads=2,vocab=32,positions=8,experts=4",
    "t5-small:layers=2,hidden=16,heads=2,head_dim=8,vocab=32,positions=8",
    "m6-10b:layers=2,hidden=16,heads=2,vocab=32,positions=8",
    "m6-moe-100b:layers=1,hidden=16,heads=2,vocab=32,positions=8,experts=4",
    "gnmt:layers=3,hidden=8,vocab=32,positions=5",
    "vit-base:layers=2,hidden=16,heads=2,positions=32",
    "mbart-large:layers=1,hidden=16,heads=2,vocab=32,positions=8",
    "swin-t:layers=7,hidden=8,heads=2,window=2,vocab=8,positions=64",
    "alphafold2:layers=1,hidden=16,heads=2,ffn=32,vocab=8,msa=3,pair=16,positions=5",
    "resnet50:hidden=4,positions=32",
    "inception-v3:hidden=2,positions=75",
};

typedef enum { PLAIN, ACCUMULATE, SPLIT, RECOMPUTE_CALLS, RECOMPUTE_ANY, ALL_OF_IT, VARIANTS } variant;

static void donate(builder *b, u32 n) { // the last operands of the latest instruction
  func_info *f = func_get(b->p, b->f);
  for (u32 k = 0; k < n; k++) f->opds.v[f->opds.n - 1 - k] |= OPD_DONATED;
}

// A step made of fwd, bwd and wgt as a plan uses them: main(x.., acc..) -> (loss, dx.., acc'..).
static bool make_step(prog *p, variant how, u64 *rng, u32 *ndx) {
  const func_info *old = func_get(p, p->main);
  bool acc = how == ACCUMULATE || how == ALL_OF_IT, split = how == SPLIT || how == ALL_OF_IT;
  u8 *mark = ZNEWN(p->a, u8, old->nparams);
  bool *has_dy = ZNEWN(p->a, bool, old->rets.n);
  has_dy[0] = true;
  for (u32 k = 0; k < old->nparams; k++)
    if (dtype_kind_of(val_type(p, old, k + 1)->s.t) == DK_FLOAT)
      mark[k] = old->params.v[k].r == ROLE_WEIGHT  ? (acc ? GRAD_ACC : GRAD_PLAIN)
                : old->params.v[k].r == ROLE_INPUT ? GRAD_INPUT
                                                   : GRAD_NONE;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      instr *in = &p->funcs.v[f]->body.v[k];
      bool any = (how == RECOMPUTE_ANY || how == ALL_OF_IT) && rng_next(rng) % 2;
      if (any || (how == RECOMPUTE_CALLS && in->op == OP_call)) in->flags |= INSTR_RECOMPUTE;
    }
  grad_pair g;
  if (!pass_grad(p, p->main, &(grad_opts){.mark = mark, .has_dy = has_dy, .split = split}, &g)) return false;

  func made = func_new(p, sym_of(p->c, "step"), (loc){0});
  u32 np = old->nparams, n = 0, nret = 0, nacc = 0;
  u32 most = func_get(p, g.bwd)->nparams + (split ? func_get(p, g.wgt)->nparams : 0);
  value *x = NEWN(p->a, value, np), *in = NEWN(p->a, value, most), *ret = NEWN(p->a, value, 1 + 2 * np);
  value *accs = NEWN(p->a, value, np);
  for (u32 k = 0; k < np; k++)
    x[k] = func_param(p, made, val(old, k + 1)->ty, val(old, k + 1)->name, old->params.v[k].r);
  for (u32 k = 0; k < np; k++) func_get(p, made)->params.v[k].data = old->params.v[k].data;
  for (u32 k = 0; acc && k < g.nacc; k++)
    accs[nacc++] = func_param(p, made, val(old, g.acc[k] + 1)->ty, (sym){0}, ROLE_STATE);
  builder b = builder_at(p, made);
  value y = build_call(&b, g.fwd, x, np);
  const shape *s = &val_type(p, old, old->rets.v[0])->s;
  attr one[] = {attr_t(A_dtype, s->t), attr_v(A_shape, NULL, 0), attr_f(A_value, 1)};
  value dy = build(&b, OP_full, NULL, 0, one, 3);
  for (u32 k = 0; k < g.nneed; k++) in[n++] = x[g.need[k]];
  for (u32 k = 0; k < g.nsaved; k++) in[n++] = y + old->rets.n + k;
  for (u32 k = 0; k < g.ndy; k++) in[n++] = dy;
  for (u32 k = 0; !split && k < nacc; k++) in[n++] = accs[k];
  value dx = build_call(&b, g.bwd, in, n), out = dx + g.ndx;
  if (!split) donate(&b, nacc);
  if (split) {
    n = 0;
    for (u32 k = 0; k < g.nneed_w; k++) in[n++] = x[g.need_w[k]];
    for (u32 k = 0; k < g.ncarry; k++) in[n++] = dx + g.ndx + k;
    for (u32 k = 0; k < nacc; k++) in[n++] = accs[k];
    out = build_call(&b, g.wgt, in, n);
    donate(&b, nacc);
  }
  if (b.failed) return false;
  ret[nret++] = y;
  for (u32 k = 0; k < g.ndx; k++) ret[nret++] = dx + k;
  for (u32 k = 0; k < g.nacc; k++) ret[nret++] = out + k;
  func_return(p, made, ret, nret);
  p->main = made;
  *ndx = g.ndx;
  return ir_verify(p);
}

typedef struct {
  u32 nin, nout, ndx, nacc; // nacc: accumulators among the inputs, the last ones
  eval_array *in, *out;
} numbers;

static numbers step_numbers(const prog *model, variant how, u64 seed, arena *a) {
  prog *p = prog_clone(model, model->c);
  numbers r = {0};
  u64 rng = seed;
  bool ok = make_step(p, how, &rng, &r.ndx);
  show(p->c, "step");
  REQUIRE(ok);
  pass_compact(p);
  r.nin = func_get(p, p->main)->nparams, r.nout = func_get(p, p->main)->rets.n;
  r.nacc = r.nin - func_get(model, model->main)->nparams;
  r.in = NEWN(a, eval_array, r.nin), r.out = NEWN(a, eval_array, r.nout);
  CHECK(eval_random(p, 11, r.in, r.nin, a) &&
        eval_run(p, &(eval_opts){.as_f64 = true}, r.in, r.nin, r.out, r.nout, a));
  show(p->c, "step");
  prog_free(p);
  return r;
}

// Loss and gradients of a variant are those of the plain step; accumulators have grown by them.
static void compare(const numbers *x, const numbers *y, const char *what) {
  REQUIRE(x->nout == y->nout);
  for (u32 k = 0; k < x->nout; k++) {
    u32 acc = y->nin - y->nacc + k - 1 - y->ndx;
    const double *g = x->out[k].data, *h = y->out[k].data,
                 *was = y->nacc && k > y->ndx ? y->in[acc].data : NULL;
    double off = 0, most = 1e-9;
    for (i64 i = 0; i < shape_elems(&x->out[k].s); i++) {
      off = fmax(off, fabs(h[i] - (was ? was[i] : 0) - g[i]));
      most = fmax(most, fmax(fabs(g[i]), was ? fabs(was[i]) : 0));
    }
    CHECK_MSG(off <= 1e-11 * most, "%s: result %u is off by %.3g of %.3g", what, k, off, most);
  }
}

// Along a random direction of all weights and inputs.
static void check_direction(const prog *p, const numbers *x, const char *what, arena *a) {
  const func_info *f = func_get(p, p->main);
  double slope = 0, h = 1e-6, loss[2];
  u64 rng = 5;
  u32 w = 1 + x->ndx, d = 1;
  eval_array *in = arena_dup(a, x->in, f->nparams * sizeof *in);
  double **way = ZNEWN(a, double *, f->nparams);
  for (u32 k = 0; k < f->nparams; k++) {
    role r = f->params.v[k].r;
    if (dtype_kind_of(in[k].s.t) != DK_FLOAT || (r != ROLE_WEIGHT && r != ROLE_INPUT)) continue;
    const double *g = x->out[r == ROLE_WEIGHT ? w++ : d++].data;
    i64 n = shape_elems(&in[k].s);
    way[k] = NEWN(a, double, n);
    for (i64 i = 0; i < n; i++) way[k][i] = rng_unit(&rng) - 0.5, slope += way[k][i] * g[i];
  }
  for (u32 up = 0; up < 2; up++) {
    for (u32 k = 0; k < f->nparams; k++) {
      if (!way[k]) continue;
      i64 n = shape_elems(&in[k].s);
      double *v = NEWN(a, double, n);
      for (i64 i = 0; i < n; i++) v[i] = ((double *)x->in[k].data)[i] + (up ? h : -h) * way[k][i];
      in[k].data = v;
    }
    loss[up] = loss_of(p, in, f->nparams, a);
  }
  double fd = (loss[1] - loss[0]) / (2 * h);
  CHECK_MSG(fabs(fd - slope) <= 1e-5 * fmax(fabs(fd), 1e-3), "%s: slope %.9g, differences give %.9g", what,
            slope, fd);
}

TEST(models) {
  for (u32 k = 0; k < COUNT_OF(models); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    front_opts o = {.batch = 2, .loss = true, .t = DT_F64};
    prog *p = front_family(c, models[k], &o);
    show(c, models[k]);
    REQUIRE(p != NULL);
    numbers plain = step_numbers(p, PLAIN, 1, a);
    check_direction(p, &plain, models[k], a);
    for (variant how = ACCUMULATE; how < VARIANTS; how++)
      for (u64 seed = 1; seed < 3; seed++) {
        numbers other = step_numbers(p, how, seed, a);
        compare(&plain, &other, arena_printf(a, "%s, variant %d", models[k], (int)how));
      }
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

// Ways to use a value that need care: several times, in one call, as a result itself.
static const char *const odd[] = {
    "func @main(%x: f64[3,3] weight, %w: f64[3,3] weight) -> (f64[]) {\n"
    "  %a = call @f(%x, %w, %w) : f64[3,3]\n  %b = call @f(%a, %w, %x) : f64[3,3]\n  %c = mul %b, %w\n"
    "  %s = reduce_sum %c {keepdims=0}\n  return %s\n}\n"
    "func @f(%x: f64[3,3], %v: f64[3,3] weight, %w: f64[3,3] weight) -> (f64[3,3]) {\n"
    "  %y = matmul %x, %v\n  %z = mul %y, %w\n  return %z\n}\n",
    "func @main(%x: f64[4] weight) -> (f64[]) {\n  %a, %b, %c = call @f(%x) : f64[4], f64[4], f64[4]\n"
    "  %d = mul %a, %b\n  %e = mul %d, %c\n  %s = reduce_sum %e {keepdims=0}\n  return %s\n}\n"
    "func @f(%x: f64[4]) -> (f64[4], f64[4], f64[4]) {\n  %y = exp %x\n  return %x, %y, %y\n}\n",
    "func @main(%x: f64[4] weight, %u: f64[4] weight) -> (f64[]) {\n  %a, %b = call @f(%x) : f64[4], f64[4]\n"
    "  %s = reduce_sum %a {keepdims=0}\n  return %s\n}\n" // one result without a gradient, one weight unused
    "func @f(%x: f64[4]) -> (f64[4], f64[4]) {\n  %y = exp %x\n  %z = sin %y\n  return %z, %y\n}\n",
    "func @main(%x: f64[] weight) -> (f64[]) {\n  return %x\n}\n",
};

TEST(odd_uses) {
  for (u32 k = 0; k < COUNT_OF(odd); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = ir_parse(c, sym_of(c, "odd"), odd[k], strlen(odd[k]));
    show(c, odd[k]);
    REQUIRE(p != NULL);
    check_elements(p, odd[k], 0, 1);
    numbers plain = step_numbers(p, PLAIN, 1, a);
    for (variant how = ACCUMULATE; how < VARIANTS; how++) {
      numbers other = step_numbers(p, how, 1, a);
      compare(&plain, &other, odd[k]);
    }
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

// ---- a model from elsewhere ------------------------------------------------------------------------------
static const eval_named *item(const eval_named *items, u32 n, const char *name) {
  for (u32 k = 0; k < n; k++)
    if (!strcmp(items[k].name, name)) return &items[k];
  return NULL;
}

// Loss and every gradient of a GPT as PyTorch computed them in f32: largest difference by largest element.
static void check_reference(ctx *c, prog *p, const eval_named *items, u32 n) {
  arena *a = arena_new();
  optim_opts o = optim_default(OPTIM_SGD);
  const func_info *old = func_get(p, p->main);
  u32 nin = old->nparams, nw = 0;
  eval_array *in = NEWN(a, eval_array, nin);
  REQUIRE(eval_random(p, 1, in, nin, a));
  const char **weight = NEWN(a, const char *, nin);
  for (u32 k = 0; k < nin; k++) {
    const char *name = sym_str(c, val(old, k + 1)->name);
    if (old->params.v[k].r == ROLE_WEIGHT)
      weight[nw++] = name;
    else if (item(items, n, name))
      in[k] = item(items, n, name)->x;
  }
  REQUIRE(pass_train(p, &o, true));
  u32 nout = func_get(p, p->main)->rets.n;
  eval_array *out = NEWN(a, eval_array, nout);
  REQUIRE(eval_run(p, &(eval_opts){.as_f64 = false}, in, nin, out, nout, a));
  u32 found = 0;
  for (u32 k = 0; k <= nw; k++) {
    const char *name = k ? arena_printf(a, "grad/%s", weight[k - 1]) : "loss";
    const eval_named *want = item(items, n, name);
    if (!want) continue; // a constant of the graph
    REQUIRE(shape_same(&want->x.s, &out[k].s));
    found++;
    const float *x = out[k].data, *y = want->x.data;
    double most = 0, off = 0;
    for (i64 i = 0; i < shape_elems(&out[k].s); i++)
      most = fmax(most, fabs(y[i])), off = fmax(off, fabs(x[i] - y[i]));
    CHECK_MSG(off <= 1e-4 * most, "%s: off by %.3g of %.3g", name, off, most);
  }
  CHECK_EQ_I64(found, n - 2); // but ids and labels
  arena_free(a);
}

TEST(reference_gpt) {
  const char *onnx = test_data("reference/gpt_small_loss_train.onnx");
  const char *npz = test_data("reference/gpt_small_loss_grads.npz");
  for (u32 outlined = 0; outlined < 2; outlined++) {
    ctx *c = ctx_new();
    eval_named *items = NULL;
    u32 n = 0;
    prog *p = front_load(c, onnx, NULL);
    if (CHECK(p && npz_read(c, ctx_arena(c), npz, &items, &n))) {
      if (outlined) CHECK_EQ_I64(pass_outline(p), 1);
      check_reference(c, p, items, n);
      prog_free(p);
    }
    show(c, onnx);
    ctx_free(c);
  }
}
