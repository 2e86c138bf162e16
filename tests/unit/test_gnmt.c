// test_gnmt.c - GNMT: what it computes, held against LSTM layers and attention written as loops.
#include "eval/eval.h"
#include "front/front.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

enum { B = 2, H = 3, V = 5 };
typedef struct {
  const prog *p;
  const eval_array *in;
  arena *a;
  i64 s;
} model;

static const double *named(const model *m, const char *name) {
  const func_info *f = func_get(m->p, m->p->main);
  for (u32 k = 0; k < f->nparams; k++)
    if (!strcmp(sym_str(m->p->c, val(f, k + 1)->name), name)) return m->in[k].data;
  CHECK_MSG(false, "no parameter %s", name);
  test_leave();
  return NULL;
}

static const double *weight(const model *m, const char *layer, const char *name) {
  return named(m, arena_printf(m->a, "%s.%s", layer, name));
}

// y[n] += x[k] w[k,n]
static void add_product(double *y, const double *x, const double *w, i64 k, i64 n) {
  for (i64 i = 0; i < k; i++)
    for (i64 j = 0; j < n; j++) y[j] += x[i] * w[i * n + j];
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// Gates in, forget, candidate, out.
static void lstm(const double *z, double *h, double *c) {
  for (i64 i = 0; i < H; i++) {
    c[i] = sigmoid(z[H + i]) * c[i] + sigmoid(z[i]) * tanh(z[2 * H + i]);
    h[i] = sigmoid(z[3 * H + i]) * tanh(c[i]);
  }
}

// Of one sequence: x[s,in] and contexts [s,H] (or NULL) to y[s,H].
static double *layer(const model *m, const char *name, const double *x, i64 in, const double *context,
                     bool backwards, bool add) {
  double *y = NEWN(m->a, double, m->s *H), h[H] = {0}, c[H] = {0};
  for (i64 i = 0; i < m->s; i++) {
    const i64 t = backwards ? m->s - 1 - i : i;
    double z[4 * H];
    memcpy(z, weight(m, name, "bias"), sizeof z);
    add_product(z, x + t * in, weight(m, name, "w"), in, 4 * H);
    if (context) add_product(z, context + t * H, weight(m, name, "v"), H, 4 * H);
    add_product(z, h, weight(m, name, "u"), H, 4 * H);
    lstm(z, h, c);
    for (i64 j = 0; j < H; j++) y[t * H + j] = h[j] + (add ? x[t * in + j] : 0);
  }
  return y;
}

// Attention from the state before: score . tanh(memory key + h query), over positions.
static void attend(const model *m, const double *h, const double *memory, double *context) {
  double *like = NEWN(m->a, double, m->s), sum = 0;
  for (i64 t = 0; t < m->s; t++) {
    double e[H] = {0}, x = 0;
    add_product(e, memory + t * H, weight(m, "decoder.0", "key"), H, H);
    add_product(e, h, weight(m, "decoder.0", "step.query"), H, H);
    for (i64 j = 0; j < H; j++) x += weight(m, "decoder.0", "step.score")[j] * tanh(e[j]);
    like[t] = exp(x), sum += like[t];
  }
  memset(context, 0, H * sizeof *context);
  for (i64 t = 0; t < m->s; t++)
    for (i64 j = 0; j < H; j++) context[j] += like[t] / sum * memory[t * H + j];
}

static double *first_layer(const model *m, const double *x, const double *memory, double *contexts) {
  double *y = NEWN(m->a, double, m->s *H), h[H] = {0}, c[H] = {0};
  for (i64 t = 0; t < m->s; t++) {
    double z[4 * H];
    attend(m, h, memory, contexts + t * H);
    memcpy(z, weight(m, "decoder.0", "bias"), sizeof z);
    add_product(z, x + t * H, weight(m, "decoder.0", "w"), H, 4 * H);
    add_product(z, contexts + t * H, weight(m, "decoder.0", "step.v"), H, 4 * H);
    add_product(z, h, weight(m, "decoder.0", "step.u"), H, 4 * H);
    lstm(z, h, c);
    memcpy(y + t * H, h, sizeof h);
  }
  return y;
}

static double *words(const model *m, const char *table, const char *ids, i64 b) {
  double *x = NEWN(m->a, double, m->s *H);
  const i64 *id = (const i64 *)(const void *)named(m, ids) + b * m->s;
  for (i64 t = 0; t < m->s; t++) memcpy(x + t * H, named(m, table) + id[t] * H, H * sizeof *x);
  return x;
}

// Scores [s,V] of one sequence by a model of three layers.
static double *scores(const model *m, i64 b) {
  const i64 s = m->s;
  const double *x = words(m, "source.word", "source", b);
  const double *ahead = layer(m, "encoder.0.forward", x, H, NULL, false, false),
               *back = layer(m, "encoder.0.backward", x, H, NULL, true, false);
  double *both = NEWN(m->a, double, s * 2 * H), *contexts = NEWN(m->a, double, s *H), *y;
  for (i64 t = 0; t < s; t++) {
    memcpy(both + t * 2 * H, ahead + t * H, H * sizeof *both);
    memcpy(both + t * 2 * H + H, back + t * H, H * sizeof *both);
  }
  const double *memory = layer(m, "encoder.1", both, 2 * H, NULL, false, false);
  memory = layer(m, "encoder.2", memory, H, NULL, false, true);
  y = first_layer(m, words(m, "target.word", "target", b), memory, contexts);
  y = layer(m, "decoder.1", y, H, contexts, false, false);
  y = layer(m, "decoder.2", y, H, contexts, false, true);
  double *out = arena_zalloc(m->a, (size_t)(s * V) * sizeof *out);
  for (i64 t = 0; t < s; t++) add_product(out + t * V, y + t * H, named(m, "head"), H, V);
  return out;
}

TEST(gnmt_is_lstm_layers) {
  static const i64 lengths[] = {1, 4, 65, 130}; // in one, two and three stretches
  for (u32 k = 0; k < COUNT_OF(lengths); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    const i64 s = lengths[k];
    prog *p =
        front_family(c, "gnmt:layers=3,hidden=3,vocab=5", &(front_opts){.batch = B, .seq = s, .t = DT_F64});
    if (!CHECK_MSG(p && ir_verify(p), "%s", diag_render(c, a))) test_leave();
    const u32 n = func_get(p, p->main)->nparams;
    eval_array *in = NEWN(a, eval_array, n), y;
    bool ok = eval_random(p, 5, in, n, a) && eval_run(p, &(eval_opts){0}, in, n, &y, 1, a);
    if (!CHECK_MSG(ok, "%s", diag_render(c, a))) test_leave();
    const model m = {p, in, a, s};
    for (i64 b = 0; b < B; b++) {
      const double *want = scores(&m, b), *got = (double *)y.data + b * s * V;
      for (i64 i = 0; i < s * V; i++)
        if (!CHECK_MSG(fabs(got[i] - want[i]) <= 1e-12, "length %lld, score %lld: %.17g, not %.17g",
                       (long long)s, (long long)i, got[i], want[i]))
          break;
    }
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

TEST(gnmt_refuses) {
  ctx *c = ctx_new();
  CHECK(!front_family(c, "gnmt:layers=1", NULL));
  CHECK(!front_family(c, "gnmt", &(front_opts){.seq = 4097}));
  CHECK_STR(diag_render(c, ctx_arena(c)),
            "error[E0115]: layers=1, but the first layer of GNMT has another one above\n  --> gnmt\n"
            "  hint: gnmt:layers=2\n"
            "error[E0901]: a sequence of 4097 steps; at most 4096 are written out\n  --> gnmt\n"
            "  hint: --seq 4096\n");
  ctx_free(c);
}
