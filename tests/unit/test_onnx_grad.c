// test_onnx_grad.c - gradient operators of training exports against central differences of their forward
// operators.
#include "eval/eval.h"
#include "onnx_writer.h"
#include <math.h>

// A forward node of x (and g), which makes y, and a gradient node of dy, which makes dx.
typedef struct {
  const char *forward, *in, *out, *backward, *back_in;
  i64 axis; // NO_AXIS: neither node has one
} grad_case;
enum { NO_AXIS = 100 };

static const grad_case cases[] = {
    {"Relu", "x", "y", "ReluGrad", "dy,y", NO_AXIS},
    {"Sigmoid", "x", "y", "SigmoidGrad", "dy,y", NO_AXIS},
    {"Tanh", "x", "y", "TanhGrad", "dy,y", NO_AXIS},
    {"ms Gelu", "x", "y", "GeluGrad", "dy,x", NO_AXIS},
    {"ms FastGelu", "x", "y", "FastGeluGrad", "dy,x", NO_AXIS},
    {"ms BiasGelu", "x,g", "y", "BiasGeluGrad_dX", "dy,x,g", NO_AXIS},
    {"ms FastGelu", "x,g", "y", "BiasFastGeluGrad_dX", "dy,x,g", NO_AXIS},
    {"Softmax", "x", "y", "SoftmaxGrad_13", "dy,y", 0},
    {"Softmax", "x", "y", "SoftmaxGrad_13", "dy,y", -1},
    {"LogSoftmax", "x", "y", "LogSoftmaxGrad_13", "dy,y", 1},
    {"old Softmax", "x", "y", "SoftmaxGrad", "dy,y", 1},
    {"old LogSoftmax", "x", "y", "LogSoftmaxGrad", "dy,y", 1},
    {"LayerNormalization", "x,g,b", "y,mean,inv", "LayerNormalizationGrad", "dy,x,g,mean,inv", -1},
    {"SimplifiedLayerNormalization", "x,g", "y,inv", "SimplifiedLayerNormalizationGrad", "dy,x,g,inv", -1},
    {"Gather", "x,at", "y", "GatherGrad", "extents,at,dy", 1},
    {"GatherElements", "x,each", "y", "GatherElementsGrad", "dy,extents,each", 1},
    {"ms SoftmaxCrossEntropyLossInternal", "x,label,,none", "y,log", "SoftmaxCrossEntropyLossInternalGrad",
     "dy,log,label,,none", NO_AXIS},
    {"ms ConcatTraining", "x,x", "y,sizes", "SplitTraining", "dy,sizes", 2},
};

static msg operator_of(const char *name, const char *in, const char *out, i64 axis) {
  bool ms = !strncmp(name, "ms ", 3), old = !strncmp(name, "old ", 4);
  msg n = node_of(name + (ms ? 3 : old ? 4 : 0), in, out);
  if (axis != NO_AXIS) n = with_int(n, "axis", axis);
  return ms ? in_domain(n, "com.microsoft") : n;
}

static msg model_with(const grad_case *k) {
  static const double gain[] = {0.5, -1, 2, 1.5}, bias[] = {1, 0, -1, 0.25};
  static const i64 at[] = {2, 0, 2}, extents[] = {2, 3, 4};
  static const i64 none = -1, label[8] = {0, 2, -1, 1, 2, 2, -1, 0};
  static const i64 each[16] = {0, 1, 2, 0, 1, 1, 1, 1, 2, 0, 2, 0, 0, 0, 1, 2};
  bool parts = strstr(k->forward, "Concat"), old = !strncmp(k->forward, "old", 3);
  msg g = m_new();
  const char *of = strstr(k->forward, "Loss")              ? ""
                   : !strcmp(k->forward, "GatherElements") ? "2,2,4"
                   : parts                                 ? "2,3,8"
                                                           : "2,3,4";
  m_msg(&g, 11, value_of("x", 11, "2,3,4")), m_msg(&g, 11, value_of("dy", 11, of));
  m_msg(&g, 5, tensor("g", 11, "4", gain, sizeof gain)),
      m_msg(&g, 5, tensor("b", 11, "4", bias, sizeof bias));
  m_msg(&g, 5, tensor("at", 7, "3", at, sizeof at)),
      m_msg(&g, 5, tensor("extents", 7, "3", extents, sizeof extents));
  m_msg(&g, 5, tensor("each", 7, "2,2,4", each, sizeof each));
  m_msg(&g, 5, tensor("none", 7, "", &none, 8)), m_msg(&g, 5, tensor("label", 7, "2,4", label, sizeof label));
  m_msg(&g, 1, operator_of(k->forward, k->in, k->out, k->axis));
  msg back = node_of(k->backward, k->back_in,
                     parts                                      ? "d0,d1"
                     : strstr(k->backward, "NormalizationGrad") ? "dx,dg,db"
                                                                : "dx");
  if (k->axis != NO_AXIS) back = with_int(back, "axis", k->axis);
  m_msg(&g, 1, in_domain(back, "com.microsoft"));
  if (parts) m_msg(&g, 1, node_of("Add", "d0,d1", "dx"));
  m_msg(&g, 12, value_of("y", 11, of)), m_msg(&g, 12, value_of("dx", 11, "2,3,4"));
  return also_opset(model_of(g, old ? 12 : 14), "com.microsoft", 1);
}

static eval_array array(const double *v, const prog *p, u32 param) {
  return (eval_array){.s = eval_param_shape(p, param), .data = (void *)v};
}

// x and dy to y and dx.
static bool evaluated(const prog *p, const double *x, const double *dy, eval_array out[2]) {
  const func_info *f = func_get(p, p->main);
  eval_array in[6];
  for (u32 k = 0; k < f->nparams; k++) {
    u32 data = f->params.v[k].data;
    const char *name = sym_str(p->c, val(f, k + 1)->name);
    in[k] = array(!strcmp(name, "x") ? x : !strcmp(name, "dy") ? dy : NULL, p, k);
    if (data) in[k].data = arena_dup(mem, p->data.v[data].bytes, (size_t)p->data.v[data].size);
  }
  return eval_run(p, &(eval_opts){0}, in, f->nparams, out, 2, mem);
}

static double dot(const eval_array *y, const double *dy) {
  double sum = 0;
  for (i64 i = 0; i < shape_elems(&y->s); i++) sum += ((const double *)y->data)[i] * dy[i];
  return sum;
}

TEST(onnx_gradients_of_exports) {
  enum { N = 24 };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    BEGIN
    double x[N], dy[2 * N], h = 1e-5;
    u64 rng = i + 1;
    for (u32 k = 0; k < N; k++) x[k] = (rng_unit(&rng) - 0.5) * 3;
    for (u32 k = 0; k < 2 * N; k++) dy[k] = rng_unit(&rng) - 0.3;
    prog *p = load(c, model_with(&cases[i]), NULL);
    CHECK_MSG(p, "%s: %s", cases[i].backward, errors(c));
    eval_array at[2], up[2], down[2];
    bool ok = p && evaluated(p, x, dy, at);
    CHECK_MSG(ok, "%s: %s", cases[i].backward, errors(c));
    for (u32 k = 0; ok && k < N; k++) {
      double was = x[k];
      x[k] = was + h;
      REQUIRE(evaluated(p, x, dy, up));
      x[k] = was - h;
      REQUIRE(evaluated(p, x, dy, down));
      x[k] = was;
      double fd = (dot(&up[0], dy) - dot(&down[0], dy)) / (2 * h), got = ((const double *)at[1].data)[k];
      if (!CHECK_MSG(fabs(fd - got) <= 1e-7 * (1 + fabs(fd)), "%s: dx[%u] is %.9g, differences give %.9g",
                     cases[i].backward, k, got, fd))
        break;
    }
    if (p) prog_free(p);
    END
  }
}

// The mask of a dropout, and its ratio, decide what its gradient lets pass.
TEST(onnx_dropout_gradient) {
  BEGIN
  static const float ratio = 0.75;
  static const u8 yes = 1, mask[] = {1, 0, 1, 1};
  msg g = m_new();
  m_msg(&g, 11, value_of("dy", 1, "4")), m_msg(&g, 5, tensor("mask", 9, "4", mask, 4));
  m_msg(&g, 5, tensor("ratio", 1, "", &ratio, 4)), m_msg(&g, 5, tensor("on", 9, "", &yes, 1));
  m_msg(&g, 1, in_domain(node_of("DropoutGrad", "dy,mask,ratio,on", "dx"), "com.microsoft"));
  m_msg(&g, 1, in_domain(node_of("DropoutGrad", "dy,mask", "same"), "com.microsoft"));
  m_msg(&g, 12, value_of("dx", 1, "4")), m_msg(&g, 12, value_of("same", 1, "4"));
  prog *p = load(c, also_opset(model_of(g, 14), "com.microsoft", 1), NULL);
  CHECK_MSG(p, "%s", errors(c));
  float dy[] = {1, 2, 3, 4};
  eval_array out[2], in = {.s = {.t = DT_F32, .nd = 1, .dim = {4}}, .data = dy};
  if (p && CHECK(eval_run(p, &(eval_opts){0}, &in, 1, out, 2, mem)))
    for (u32 k = 0; k < 4; k++) {
      CHECK_CLOSE(((float *)out[0].data)[k], mask[k] ? 4 * dy[k] : 0, 0);
      CHECK_CLOSE(((float *)out[1].data)[k], dy[k], 0);
    }
  if (p) prog_free(p);
  END
}

// Of scale and bias: sums over rows of dy times the normalised x, which is (y - bias) / scale, and of dy.
TEST(onnx_layernorm_gradients_of_weights) {
  enum { ROWS = 3, N = 4 };
  BEGIN
  static const float gain[] = {0.5f, -1, 2, 1.5f}, bias[] = {1, 0, -1, 0.25f};
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "3,4")), m_msg(&g, 11, value_of("dy", 1, "3,4"));
  m_msg(&g, 5, tensor("g", 1, "4", gain, sizeof gain)), m_msg(&g, 5, tensor("b", 1, "4", bias, sizeof bias));
  m_msg(&g, 1, node_of("LayerNormalization", "x,g,b", "y,mean,inv"));
  m_msg(&g, 1, in_domain(node_of("LayerNormalizationGrad", "dy,x,g,mean,inv", "dx,dg,db"), "com.microsoft"));
  m_msg(&g, 12, value_of("y", 1, "3,4")), m_msg(&g, 12, value_of("dg", 1, "4"));
  m_msg(&g, 12, value_of("db", 1, "4"));
  prog *p = load(c, also_opset(model_of(g, 14), "com.microsoft", 1), NULL);
  CHECK_MSG(p, "%s", errors(c));
  eval_array in[4], out[3];
  if (p && CHECK(eval_random(p, 5, in, 4, mem) && eval_run(p, &(eval_opts){0}, in, 4, out, 3, mem)))
    for (u32 k = 0; k < N; k++) {
      double dg = 0, db = 0;
      for (u32 i = 0; i < ROWS; i++) {
        double dy = ((float *)in[1].data)[i * N + k], y = ((float *)out[0].data)[i * N + k];
        db += dy, dg += dy * (y - bias[k]) / gain[k];
      }
      CHECK_CLOSE(((float *)out[1].data)[k], dg, 1e-5), CHECK_CLOSE(((float *)out[2].data)[k], db, 1e-5);
    }
  if (p) prog_free(p);
  END
}
