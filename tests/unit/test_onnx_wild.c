// test_onnx_wild.c - ONNX as it is found: attributes out of bounds, nodes out of order, forms of training
// exports.
#include "eval/eval.h"
#include "onnx_writer.h"
#include "pass/pass.h"
#include <math.h>

// ---- attributes out of bounds --------------------------------------------------------------------------
typedef struct {
  const char *op, *in, *attr; // in: extents of the inputs a, b, c; attr: name:count, 0 for a single integer
  i64 opset;
} extreme;

static const extreme extremes[] = {
    {"Conv", "1,4,6,6 4,2,3,3", "group:0 strides:2 dilations:2 pads:4 kernel_shape:2", 17},
    {"ConvTranspose", "1,4,6,6 4,2,3,3",
     "group:0 strides:2 dilations:2 pads:4 kernel_shape:2 output_padding:2 output_shape:2", 17},
    {"MaxPool", "1,4,6,6", "kernel_shape:2 strides:2 dilations:2 pads:4 ceil_mode:0 storage_order:0", 17},
    {"AveragePool", "1,4,6,6", "kernel_shape:2 strides:2 dilations:2 pads:4 ceil_mode:0", 19},
    {"LpPool", "1,4,6,6", "kernel_shape:2 strides:2 pads:4 p:0", 17},
    {"LRN", "1,4,6,6", "size:0", 17},
    {"LayerNormalization", "2,6 6 6", "axis:0 stash_type:0", 17},
    {"GroupNormalization", "2,6,4 6 6", "num_groups:0", 21},
    {"GroupNormalization", "2,6,4 6 6", "num_groups:0", 18},
    {"BatchNormalization", "2,6,4 6 6 6 6", "training_mode:0", 15},
    {"Transpose", "2,3", "perm:2", 17},
    {"Softmax", "2,3", "axis:0", 17},
    {"Softmax", "2,3", "axis:0", 11},
    {"Flatten", "2,3", "axis:0", 17},
    {"Concat", "2,3 2,3", "axis:0", 17},
    {"Split", "2,6", "axis:0 split:1", 11},
    {"Squeeze", "1,3", "axes:1", 11},
    {"Unsqueeze", "1,3", "axes:1", 11},
    {"Slice", "6,6", "starts:2 ends:2 axes:2", 9},
    {"Pad", "6,6", "pads:4", 10},
    {"ReduceSum", "2,3", "axes:1 keepdims:0", 11},
    {"ArgMax", "2,3", "axis:0 select_last_index:0", 17},
    {"DepthToSpace", "1,4,2,2", "blocksize:0", 17},
    {"SpaceToDepth", "1,4,2,2", "blocksize:0", 17},
    {"TopK", "2,6", "axis:0 k:0", 9},
    {"LpNormalization", "2,6", "axis:0 p:0", 17},
    {"MeanVarianceNormalization", "2,6,2,2", "axes:3", 17},
    {"Shape", "2,6", "start:0 end:0", 17},
    {"Gather", "2,6 2", "axis:0", 17},
    {"Cast", "2,6", "to:0", 17},
    {"RandomNormal", "", "shape:2 dtype:0", 17},
    {"EyeLike", "4,4", "k:0 dtype:0", 17},
    {"HannWindow", "", "periodic:0", 17},
};

// One node with one attribute set to v; what is accepted is a program that verifies.
static void try_extreme(const extreme *e, const char *name, u32 count, i64 v, bool one_only) {
  BEGIN
  msg g = m_new();
  char in[16] = "";
  u32 nin = 0;
  m_str(&g, 2, "g");
  for (const char *s = e->in; *s; nin++) {
    char dim[64], input[2] = {(char)('a' + nin), 0};
    size_t n = strcspn(s, " ");
    snprintf(dim, sizeof dim, "%.*s", (int)n, s);
    m_msg(&g, 11, value_of(input, 1, dim));
    strcat(in, nin ? "," : ""), strcat(in, input);
    s += n + (s[n] == ' ');
  }
  i64 list[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (u32 k = 0; k < (one_only ? 1 : count); k++) list[k] = v;
  msg n = node_of(e->op, in, "y");
  if (count)
    n = with_ints(n, name, list, count);
  else
    n = with_int(n, name, v);
  m_msg(&g, 1, n), m_msg(&g, 12, value_of("y", 1, ""));
  prog *p = load(c, model_of(g, e->opset), NULL);
  CHECK_MSG(!p == (diag_errors(c) > 0), "%s, %s = %lld", e->op, name, (long long)v);
  if (!p)
    CHECK_MSG(told(c, "test.onnx: g/"), "%s, %s = %lld: not located: %s", e->op, name, (long long)v,
              errors(c));
  if (p) CHECK_MSG(ir_verify(p), "%s, %s = %lld: %s", e->op, name, (long long)v, errors(c));
  if (p) prog_free(p);
  END
}

TEST(onnx_extreme_attributes) {
  static const i64 values[] = {INT64_MIN, INT64_MIN + 1, -((i64)1 << 62), INT32_MIN,    -1,       0, 2, 3,
                               INT32_MAX, (i64)1 << 32,  (i64)1 << 61,    (i64)1 << 62, INT64_MAX};
  for (u32 i = 0; i < COUNT_OF(extremes); i++)
    for (const char *s = extremes[i].attr; *s;) {
      char name[32];
      int used = 0;
      u32 count = 0;
      REQUIRE(sscanf(s, "%31[^:]:%u%n", name, &count, &used) == 2);
      s += used + (s[used] == ' ');
      for (u32 k = 0; k < COUNT_OF(values); k++)
        for (u32 one = 0; one <= (count > 1); one++) try_extreme(&extremes[i], name, count, values[k], one);
    }
}

// What a transposed convolution says of numbers that do not fit.
TEST(onnx_transposed_channels) {
  BEGIN
  static const struct {
    i64 group;
    const char *x;
  } cases[] = {{INT64_MIN, "1,4,6"}, {0, "1,4,6"}, {3, "1,4,6"}, {2, "1,6,6"}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    msg g = m_new();
    m_str(&g, 2, "g"), m_msg(&g, 11, value_of("x", 1, cases[i].x)), m_msg(&g, 11, value_of("w", 1, "4,2,3"));
    m_msg(&g, 1, with_int(node_of("ConvTranspose", "x,w", "y"), "group", cases[i].group));
    m_msg(&g, 12, value_of("y", 1, ""));
    CHECK(!load(c, model_of(g, 17), NULL));
  }
  static const i64 far[] = {INT32_MAX};
  msg g = m_new();
  m_str(&g, 2, "g"), m_msg(&g, 11, value_of("x", 1, "1,4,2000000000")),
      m_msg(&g, 11, value_of("w", 1, "4,2,3"));
  m_msg(&g, 1, with_ints(node_of("ConvTranspose", "x,w", "y"), "strides", far, 1));
  m_msg(&g, 12, value_of("y", 1, ""));
  CHECK(!load(c, model_of(g, 17), NULL));
  CHECK_GOLDEN("onnx/transposed.txt", errors(c));
  END
}

// ---- nodes out of order --------------------------------------------------------------------------------
TEST(onnx_any_order) { // also where a branch of an If reads what a later node makes
  BEGIN
  static const u8 yes = 1;
  msg g = m_new(), then = m_new();
  m_str(&g, 2, "g"), m_msg(&g, 11, value_of("x", 1, "4")), m_msg(&g, 5, tensor("cond", 9, "", &yes, 1));
  m_msg(&then, 1, node_of("Add", "t,b", "u")), m_msg(&then, 1, node_of("Abs", "b", "t"));
  m_msg(&then, 12, value_of("u", 1, "4"));
  m_msg(&g, 1, with_graph(with_graph(node_of("If", "cond", "y"), "then_branch", then), "else_branch", then));
  m_msg(&g, 1, node_of("Exp", "a", "b")), m_msg(&g, 1, node_of("Neg", "x", "a"));
  m_msg(&g, 12, value_of("y", 1, "4"));
  prog *p = load(c, model_of(g, 17), NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    static const opcode want[] = {OP_neg, OP_exp, OP_abs, OP_add};
    const func_info *f = func_get(p, p->main);
    REQUIRE(f->body.n == COUNT_OF(want));
    for (u32 k = 0; k < COUNT_OF(want); k++) CHECK_EQ_I64(f->body.v[k].op, want[k]);
    prog_free(p);
  }
  END
}

static msg ring(u32 n) { // y0 = x + y1, y1 = x + y2, ...
  msg g = m_new();
  char in[32], out[16];
  m_str(&g, 2, "g"), m_msg(&g, 11, value_of("x", 1, "4"));
  for (u32 k = 0; k < n; k++) {
    snprintf(in, sizeof in, "x,y%u", (k + 1) % n), snprintf(out, sizeof out, "y%u", k);
    m_msg(&g, 1, node_of("Add", in, out));
  }
  m_msg(&g, 12, value_of("y0", 1, "4"));
  return g;
}

TEST(onnx_cycles) {
  BEGIN
  CHECK(!load(c, model_of(ring(1), 17), NULL));
  CHECK(!load(c, model_of(ring(3), 17), NULL));
  CHECK(!load(c, model_of(ring(20), 17), NULL));
  CHECK_EQ_I64(diag_errors(c), 3);
  CHECK_GOLDEN("onnx/cycles.txt", errors(c));
  END
}

// A chain of nodes, last first, is no deep recursion.
TEST(onnx_backwards_chain) {
  BEGIN
  enum { LONG = 20000 };
  msg g = m_new();
  char in[16], out[16];
  m_msg(&g, 11, value_of("y0", 1, "4"));
  for (u32 k = LONG; k > 0; k--) {
    snprintf(in, sizeof in, "y%u", k - 1), snprintf(out, sizeof out, "y%u", k);
    m_msg(&g, 1, node_of("Neg", in, out));
  }
  m_msg(&g, 12, value_of("y20000", 1, "4"));
  prog *p = load(c, model_of(g, 17), NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(func_get(p, p->main)->body.n, LONG);
  if (p) prog_free(p);
  END
}

// ---- training exports ----------------------------------------------------------------------------------
static const double *evaluated(prog *p, ctx *c, const void *x, u32 result) {
  const func_info *f = func_get(p, p->main);
  eval_array in[4] = {0}, out[4] = {0};
  for (u32 k = 0; k < f->nparams; k++) {
    u32 data = f->params.v[k].data; // in the file, aligned to nothing
    in[k].s = eval_param_shape(p, k);
    in[k].data = arena_dup(mem, data ? p->data.v[data].bytes : x, (size_t)shape_bytes(&in[k].s));
  }
  bool ok = eval_run(p, &(eval_opts){0}, in, f->nparams, out, f->rets.n, mem);
  CHECK_MSG(ok, "%s", errors(c));
  if (!ok) return NULL;
  i64 n = shape_elems(&out[result].s);
  double *v = NEWN(mem, double, n);
  for (i64 i = 0; i < n; i++) v[i] = ((const float *)out[result].data)[i];
  return v;
}

TEST(onnx_scale_by_an_integer) {
  BEGIN
  static const i64 four = 4;
  static const float x[] = {1, 2, 6};
  for (i64 down = 0; down < 2; down++) {
    msg g = m_new();
    m_msg(&g, 11, value_of("x", 1, "3")), m_msg(&g, 5, tensor("n", 7, "", &four, 8));
    m_msg(&g, 1, in_domain(with_int(node_of("Scale", "x,n", "y"), "scale_down", down), "com.microsoft"));
    m_msg(&g, 12, value_of("y", 1, "3"));
    prog *p = load(c, also_opset(model_of(g, 14), "com.microsoft", 1), NULL);
    CHECK_MSG(p, "%s", errors(c));
    const double *y = p ? evaluated(p, c, x, 0) : NULL;
    for (u32 k = 0; y && k < 3; k++) CHECK_CLOSE(y[k], down ? x[k] / 4 : x[k] * 4, 0);
    if (p) prog_free(p);
  }
  END
}

// A name of the standard domain before the standard had it, with the results that its gradient reads.
TEST(onnx_layernorm_of_opset_14) {
  BEGIN
  static const float gain[] = {1, 2, 3, 4}, bias[] = {0, 1, 0, 1}, x[] = {1, 2, 3, 6};
  const double mean = 3, inv = 1 / sqrt(3.5 + 0.5);
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "1,4"));
  m_msg(&g, 5, tensor("g", 1, "4", gain, sizeof gain)), m_msg(&g, 5, tensor("b", 1, "4", bias, sizeof bias));
  m_msg(&g, 1,
        with_float(with_int(node_of("LayerNormalization", "x,g,b", "y,mean,inv"), "axis", -1), "epsilon",
                   0.5f));
  m_msg(&g, 12, value_of("y", 1, "1,4")), m_msg(&g, 12, value_of("mean", 1, "1,1")),
      m_msg(&g, 12, value_of("inv", 1, "1,1"));
  prog *p = load(c, model_of(g, 14), NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    const double *y = evaluated(p, c, x, 0), *m = evaluated(p, c, x, 1), *s = evaluated(p, c, x, 2);
    for (u32 k = 0; y && k < 4; k++) CHECK_CLOSE(y[k], (x[k] - mean) * inv * gain[k] + bias[k], 1e-6);
    if (m && s) CHECK_CLOSE(m[0], mean, 1e-6), CHECK_CLOSE(s[0], inv, 1e-6);
    prog_free(p);
  }
  END
}

// How much the classes count is stored as weights are, and is none.
TEST(onnx_class_weights) {
  static const char *const ops[] = {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"};
  for (u32 i = 0; i < COUNT_OF(ops); i++) {
    BEGIN
    static const float w[] = {1, 2, 3}, k[] = {1, 2, 3};
    msg g = m_new();
    m_msg(&g, 11, value_of("x", 1, "4,3")), m_msg(&g, 11, value_of("l", 7, "4"));
    m_msg(&g, 5, tensor("k", 1, "3", k, sizeof k)), m_msg(&g, 5, tensor("w", 1, "3", w, sizeof w));
    m_msg(&g, 1, node_of("Mul", "x,k", "z")), m_msg(&g, 1, node_of(ops[i], "z,l,w", "y"));
    m_msg(&g, 12, value_of("y", 1, ""));
    prog *p = load(c, model_of(g, 13), NULL);
    CHECK_MSG(p, "%s", errors(c));
    optim_opts o = optim_default(OPTIM_SGD);
    bool ok = p && pass_train(p, &o, true);
    CHECK_MSG(ok, "%s", errors(c));
    if (p) prog_free(p);
    END
  }
}

// Statistics of half precision are f32, as the operator has it.
TEST(onnx_layernorm_statistics_of_half) {
  BEGIN
  static const u16 gain[] = {0x3c00, 0x3c00};
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 10, "3,2")), m_msg(&g, 5, tensor("g", 10, "2", gain, sizeof gain));
  m_msg(&g, 1, node_of("LayerNormalization", "x,g", "y,mean,inv"));
  m_msg(&g, 12, value_of("y", 10, "3,2")), m_msg(&g, 12, value_of("mean", 1, "3,1"));
  prog *p = load(c, model_of(g, 17), NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(eval_result_shape(p, 0).t, DT_F16), CHECK_EQ_I64(eval_result_shape(p, 1).t, DT_F32);
  if (p) prog_free(p);
  END
}
