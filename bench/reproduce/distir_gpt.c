// distir_gpt.c - DistIR's GPT-2 inference, operator by operator as PyTorch exported it to ONNX at the time:
// normalisation and GELU in single steps, products as Gemm, and the arithmetic on shapes before every view,
// which DistIR charges a launch for each.
//
// It is the model zoo's gpt2-10 made larger: a table of 1024 positions, and in every layer a causal mask of
// 1024 x 1024 elements of the program's type, both of which its eight tokens use a corner of. Its pipeline is
// cut after the last product of a layer, so what follows the last layer is a block of its own and the sum
// that ends a layer is the next stage's: two tensors go from stage to stage.
//
// How many launches for shapes: a Conv1D computes two (Shape 3, Gather 3, Unsqueeze 3, Concat 2, Reshape 2 =
// 13, four a layer), splitting heads one (3 + 3 + 3 + 1 = 10, three times), merging them one (4 + 4 + 3 + 1 =
// 12), scores three sizes, for their scale and the mask, a slice for every dimension of the mask and a
// product with it (Shape 3, Gather 3, Unsqueeze 3, Slice 4, Mul 1 = 14; one Slice is an operator below): 108.
// Sizes that the model fixes are constants and parameters, unsqueezed already (their paper's figure 4). What
// only the cached keys and values need is cut off. Constants and arithmetic on scalars are free there.
#include "reproduce.h"

enum { CONV1D = 13, HEADS = 10, MERGE = 12, MASK = 13, SEQ = 8, POSITIONS = 1024 };

typedef struct {
  strbuf s;
  const char *e; // element type
  long long b, d, h;
  u32 next;     // number of the next value
  u32 launched; // the last of a block's launches
} text;

// One line "%n = <format>"; returns n.
static u32 line(text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static u32 line(text *t, const char *fmt, ...) {
  char buf[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(buf, sizeof buf, fmt, ap);
  va_end(ap);
  sb_fmt(&t->s, "  %%v%u = %s\n", t->next, buf);
  return t->next++;
}

static void launches(text *t, u32 n) { // a chain: each frees the one before
  for (u32 i = 0; i < n; i++)
    t->launched =
        t->launched ? line(t, "neg %%v%u", t->launched) : line(t, "full {shape=[1], dtype=i64, value=0}");
}

static u32 layernorm(text *t, u32 x, const char *name) {
  u32 c = line(t, "sub %%v%u, %%v%u", x, line(t, "reduce_mean %%v%u {axes=[2], keepdims=1}", x));
  u32 v = line(t, "reduce_mean %%v%u {axes=[2], keepdims=1}", line(t, "pow %%v%u, %%two", c));
  u32 y = line(t, "div %%v%u, %%v%u", c, line(t, "sqrt %%v%u", line(t, "add %%v%u, %%eps", v)));
  return line(t, "add %%v%u, %%%s.b", line(t, "mul %%v%u, %%%s.g", y, name), name);
}

static u32 gemm(text *t, u32 x, const char *name) {
  launches(t, CONV1D);
  return line(t, "add %%v%u, %%%s.bias", line(t, "matmul %%v%u, %%%s", x, name), name);
}

static u32 gelu(text *t, u32 x) { // x/2 (1 + tanh(root (x + cubic x^3)))
  u32 half = line(t, "mul %%v%u, %%half", x);
  u32 c = line(t, "mul %%v%u, %%cubic", line(t, "pow %%v%u, %%three", x));
  u32 u = line(t, "mul %%v%u, %%root", line(t, "add %%v%u, %%v%u", x, c));
  return line(t, "mul %%v%u, %%v%u", half, line(t, "add %%v%u, %%one", line(t, "tanh %%v%u", u)));
}

static u32 heads(text *t, u32 x, const char *perm) {
  launches(t, HEADS);
  u32 r = line(t, "reshape %%v%u {shape=[%lld, %d, %lld, %lld]}", x, t->b, SEQ, t->h, t->d / t->h);
  return line(t, "transpose %%v%u {perm=[%s]}", r, perm);
}

static u32 attention(text *t, u32 x) {
  u32 qkv = gemm(t, x, "attn.qkv"), part = t->next;
  sb_fmt(&t->s, "  %%v%u, %%v%u, %%v%u = split %%v%u {axis=2, sizes=[%lld, %lld, %lld]}\n", part, part + 1,
         part + 2, qkv, t->d, t->d, t->d);
  t->next += 3;
  u32 q = heads(t, part, "0, 2, 1, 3"), k = heads(t, part + 1, "0, 2, 3, 1"),
      v = heads(t, part + 2, "0, 2, 1, 3");
  launches(t, MASK);
  u32 w = line(t, "div %%v%u, %%scale", line(t, "matmul %%v%u, %%v%u", q, k));
  u32 seen = line(t, "slice %%mask {starts=[0, 0], ends=[%d, %d], axes=[0, 1]}", SEQ, SEQ);
  w = line(t, "softmax %%v%u", line(t, "sub %%v%u, %%hidden", line(t, "mul %%v%u, %%v%u", w, seen)));
  u32 y = line(t, "transpose %%v%u {perm=[0, 2, 1, 3]}", line(t, "matmul %%v%u, %%v%u", w, v));
  launches(t, MERGE);
  return gemm(t, line(t, "reshape %%v%u {shape=[%lld, %d, %lld]}", y, t->b, SEQ, t->d), "attn.out");
}

// rows, cols: times `unit`, or the width where that is 0; 0: no such dimension.
typedef struct {
  const char *name;
  int rows, cols, unit;
} weight;
static const weight weights[] = {
    {"two", 0, 0, 0},      {"three", 0, 0, 0},         {"half", 0, 0, 0},     {"cubic", 0, 0, 0},
    {"root", 0, 0, 0},     {"one", 0, 0, 0},           {"eps", 0, 0, 0},      {"scale", 0, 0, 0},
    {"hidden", 1, 1, SEQ}, {"mask", 1, 1, POSITIONS},  {"ln1.g", 0, 1, 0},    {"ln1.b", 0, 1, 0},
    {"attn.qkv", 1, 3, 0}, {"attn.qkv.bias", 0, 3, 0}, {"attn.out", 1, 1, 0}, {"attn.out.bias", 0, 1, 0},
    {"ln2.g", 0, 1, 0},    {"ln2.b", 0, 1, 0},         {"mlp.up", 1, 4, 0},   {"mlp.up.bias", 0, 4, 0},
    {"mlp.down", 4, 1, 0}, {"mlp.down.bias", 0, 1, 0}};
static const weight last_weights[] = {
    {"two", 0, 0, 0}, {"eps", 0, 0, 0}, {"lnf.g", 0, 1, 0}, {"lnf.b", 0, 1, 0}};

static void parameter(text *t, const char *prefix, const weight *w) {
  const long long unit = w->unit ? w->unit : t->d;
  sb_fmt(&t->s, ",\n  %%%s%s: %s[", prefix, w->name, t->e);
  if (w->rows) sb_fmt(&t->s, "%lld,", w->rows * unit);
  if (w->cols) sb_fmt(&t->s, "%lld", w->cols * unit);
  sb_put(&t->s, "] weight");
}

// One block: up to the last product of a layer. The sum after it is the next block's.
static void block(text *t, bool first) {
  sb_fmt(&t->s, "func @%s(%%v0: %s[%lld,%d,%lld]", first ? "first" : "block", t->e, t->b, SEQ, t->d);
  if (!first) sb_fmt(&t->s, ", %%v1: %s[%lld,%d,%lld]", t->e, t->b, SEQ, t->d);
  for (u32 i = 0; i < COUNT_OF(weights); i++) parameter(t, "", &weights[i]);
  sb_fmt(&t->s, ") -> (%s[%lld,%d,%lld], %s[%lld,%d,%lld]) {\n", t->e, t->b, SEQ, t->d, t->e, t->b, SEQ,
         t->d);
  t->next = first ? 1 : 2, t->launched = 0;
  u32 x = first ? 0 : line(t, "add %%v0, %%v1");
  x = line(t, "add %%v%u, %%v%u", x, attention(t, layernorm(t, x, "ln1")));
  u32 y = gemm(t, gelu(t, gemm(t, layernorm(t, x, "ln2"), "mlp.up")), "mlp.down");
  sb_fmt(&t->s, "  return %%v%u, %%v%u\n}\n", x, y);
}

prog *distir_gpt(ctx *c, i64 layers, i64 width, i64 nheads, i64 batch, dtype e) {
  text t = {.s = {.a = arena_new()}, .e = e == DT_F16 ? "f16" : "f32", .b = batch, .d = width, .h = nheads};
  strbuf *s = &t.s;
  block(&t, true);
  block(&t, false);
  sb_fmt(s,
         "func @main(%%tokens: i64[%lld,%d],\n  %%wte: %s[50257,%lld] weight,\n  %%wpe: %s[%d,%lld] weight",
         t.b, SEQ, t.e, t.d, t.e, POSITIONS, t.d);
  char prefix[16];
  for (i64 l = 0; l < layers; l++) {
    snprintf(prefix, sizeof prefix, "h%d.", (int)l);
    for (u32 i = 0; i < COUNT_OF(weights); i++) parameter(&t, prefix, &weights[i]);
  }
  for (u32 i = 0; i < COUNT_OF(last_weights); i++) parameter(&t, "", &last_weights[i]);
  sb_fmt(s, ") -> (%s[%lld,%d,%lld]) {\n", t.e, t.b, SEQ, t.d);
  t.next = 0;
  u32 x = line(&t, "gather %%wte, %%tokens");
  x = line(&t, "add %%v%u, %%v%u", x, line(&t, "slice %%wpe {starts=[0], ends=[%d], axes=[0]}", SEQ));
  for (i64 l = 0; l < layers; l++) {
    sb_fmt(s, "  %%v%u, %%v%u = call @%s(%%v%u", t.next, t.next + 1, l ? "block" : "first", x);
    if (l) sb_fmt(s, ", %%v%u", x + 1);
    for (u32 i = 0; i < COUNT_OF(weights); i++) sb_fmt(s, ", %%h%d.%s", (int)l, weights[i].name);
    sb_put(s, ")\n");
    x = t.next, t.next += 2;
  }
  sb_fmt(s, "  return %%v%u\n}\n", layernorm(&t, line(&t, "add %%v%u, %%v%u", x, x + 1), "lnf"));
  prog *p = ir_parse(c, sym_of(c, "gpt"), s->v, s->n);
  arena_free(s->a);
  return p;
}
