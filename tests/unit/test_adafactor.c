// test_adafactor.c - Adafactor: that a step is the published one, what its statistics take in bytes, and that
// plans compute with them what one device computes.
#include "eval/eval.h"
#include "front/front.h"
#include "kernel/kernel.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

// ---- numbers ------------------------------------------------------------------------------------------
// Algorithms 4 (matrices) and 5 (vectors) of Shazeer and Stern (2018), line by line and with their sums.
// State r of [many, rows, cols] is the sum over columns, c the sum over rows. A vector is one row, with v in
// c.
typedef struct {
  i64 many, rows, cols;
  bool vector;
  double *x, *g, *r, *c;
} weight;

static double root_mean_square(const double *x, i64 n) {
  double sum = 0;
  for (i64 i = 0; i < n; i++) sum += x[i] * x[i];
  return sqrt(sum / (double)n);
}

static void published_step(weight *w, double rho, double beta2, double eps1, double eps2, double d,
                           double *u) {
  const i64 n = w->rows, m = w->cols, all = w->many * n * m;
  const double alpha = fmax(eps2, root_mean_square(w->x, all)) * rho;
  for (i64 o = 0; o < w->many; o++) {
    const double *g = w->g + o * n * m;
    double *r = w->r + o * n, *c = w->c + o * m, total = 0;
    for (i64 i = 0; i < n; i++) r[i] *= beta2;
    for (i64 j = 0; j < m; j++) c[j] *= beta2;
    for (i64 i = 0; i < n; i++)
      for (i64 j = 0; j < m; j++) {
        r[i] += (1 - beta2) * (g[i * m + j] * g[i * m + j] + eps1);
        c[j] += (1 - beta2) * (g[i * m + j] * g[i * m + j] + eps1);
      }
    for (i64 i = 0; i < n; i++) total += r[i];
    for (i64 i = 0; i < n; i++)
      for (i64 j = 0; j < m; j++) {
        const double v = w->vector ? c[j] : r[i] * c[j] / total;
        u[(o * n + i) * m + j] = g[i * m + j] / sqrt(v);
      }
  }
  const double less = fmax(1, root_mean_square(u, all) / d);
  for (i64 i = 0; i < all; i++) w->x[i] -= alpha * u[i] / less;
}

enum { STEPS = 4 };
static double *random_numbers(arena *a, u64 key, i64 n, double scale) {
  double *x = NEWN(a, double, n);
  for (i64 i = 0; i < n; i++) x[i] = scale * ker_normal(key, (u64)i);
  return x;
}

static bool near(const char *what, const double *got, const double *want, i64 n, double scale) {
  for (i64 i = 0; i < n; i++)
    if (!CHECK_MSG(fabs(got[i] - want[i] * scale) <= 1e-12 * fabs(want[i] * scale) + 1e-300,
                   "%s: element %lld is %.17g, not %.17g", what, (long long)i, got[i], want[i] * scale))
      return false;
  return true;
}

// The gradient of sum(x w) for w is x: an input.
static void check_steps(const char *dims, i64 many, i64 rows, i64 cols, bool vector, double size) {
  const double rho = 0.02, beta2 = 0.9, eps1 = 1e-3, eps2 = 1e-3;
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *text = arena_printf(a,
                                  "func @main(%%x: f64[%s], %%w: f64[%s] weight) -> (f64[]) {\n"
                                  "  %%1 = mul %%x, %%w\n  %%2 = reduce_sum %%1 {keepdims=0}\n"
                                  "  return %%2\n}\n",
                                  dims, dims);
  prog *p = ir_parse(c, sym_of(c, "model"), text, strlen(text));
  optim_opts o = optim_default(OPTIM_ADAFACTOR);
  o.lr = rho, o.beta2 = beta2, o.eps = eps1;
  if (!CHECK_MSG(p && pass_train(p, &o, false), "%s", diag_render(c, a))) test_leave();
  const u32 n = func_get(p, p->main)->nparams;
  CHECK_EQ_I64(n, vector ? 3 : 4);
  const i64 all = many * rows * cols;
  weight w = {.many = many, .rows = rows, .cols = cols, .vector = vector};
  w.x = random_numbers(a, 1, all, size);
  w.r = arena_zalloc(a, sizeof(double) * (size_t)(many * rows));
  w.c = arena_zalloc(a, sizeof(double) * (size_t)(many * cols));
  double *u = NEWN(a, double, all);
  eval_array in[4], out[4];
  REQUIRE(eval_random(p, 1, in, n, a));
  memcpy(in[1].data, w.x, sizeof *w.x * (size_t)all);
  for (u32 k = 2; k < n; k++) memset(in[k].data, 0, (size_t)shape_bytes(&in[k].s));
  for (u64 step = 0; step < STEPS; step++) {
    w.g = random_numbers(a, 10 + step, all, step % 2 ? 3 : 0.1); // clipped; and not
    memcpy(in[0].data, w.g, sizeof *w.g * (size_t)all);
    if (!CHECK_MSG(eval_run(p, &(eval_opts){0}, in, n, out, n, a), "%s", diag_render(c, a))) break;
    published_step(&w, rho, beta2, eps1, eps2, 1, u);
    near("w", out[1].data, w.x, all, 1); // loss, w, then r and c or v
    if (vector) near("v", out[2].data, w.c, all, 1);
    if (!vector) {
      CHECK_EQ_I64(shape_elems(&out[2].s), many * rows);
      CHECK_EQ_I64(shape_elems(&out[3].s), many * cols);
      near("r", out[2].data, w.r, many * rows, 1 / (double)cols);
      near("c", out[3].data, w.c, many * cols, 1 / (double)rows);
    }
    for (u32 k = 1; k < n; k++) in[k] = out[k];
  }
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

TEST(adafactor_steps_as_published) {
  check_steps("6,4", 1, 6, 4, false, 0.5);
  check_steps("1,5", 1, 1, 5, false, 0.5);
  check_steps("3,4,5", 3, 4, 5, false, 0.5);
  check_steps("2,3,4,2", 6, 4, 2, false, 0.5);
  check_steps("7", 1, 1, 7, true, 0.5);
  check_steps("", 1, 1, 1, true, 0.5);
  check_steps("6,4", 1, 6, 4, false, 1e-6); // the scale of a step is at least 1e-3
}

// ---- bytes --------------------------------------------------------------------------------------------
static i64 state_elements(dtype t, const char *dims, bool master) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *name = dtype_name(t);
  const char *text = arena_printf(a,
                                  "func @main(%%x: %s[%s], %%w: %s[%s] weight) -> (%s[]) {\n"
                                  "  %%1 = mul %%x, %%w\n  %%2 = reduce_sum %%1 {keepdims=0}\n"
                                  "  return %%2\n}\n",
                                  name, dims, name, dims, name);
  prog *p = ir_parse(c, sym_of(c, "model"), text, strlen(text));
  optim_opts o = optim_default(OPTIM_ADAFACTOR);
  o.master = master;
  REQUIRE(p && pass_train(p, &o, false));
  const func_info *f = func_get(p, p->main);
  i64 n = 0;
  for (u32 k = 0; k < f->nparams; k++) {
    const shape *s = &val_type(p, f, k + 1)->s;
    if (f->params.v[k].r != ROLE_STATE) continue;
    CHECK(s->t == DT_F32);
    n += shape_elems(s);
  }
  prog_free(p);
  arena_free(a);
  ctx_free(c);
  return n;
}

TEST(adafactor_keeps_rows_and_columns) {
  CHECK_EQ_I64(state_elements(DT_F32, "300,200", true), 300 + 200);
  CHECK_EQ_I64(state_elements(DT_F32, "8,300,200", true), 8 * (300 + 200));
  CHECK_EQ_I64(state_elements(DT_F32, "200", true), 200);
  CHECK_EQ_I64(state_elements(DT_BF16, "300,200", true), 300 + 200 + 300 * 200);
  CHECK_EQ_I64(state_elements(DT_BF16, "300,200", false), 300 + 200);
}

enum { WAYS = 4 };
TEST(adafactor_bytes_of_a_plan) {
  for (u32 zero = 0; zero <= 3; zero++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *src = front_load(c, "mlp-xs:layers=2", &(front_opts){.batch = 32, .loss = true});
    machine *m = machine_load(c, a, "dgx-h100");
    planner *pl = src ? planner_new(src) : NULL;
    cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
    REQUIRE(pl && k);
    hybrid_opts h = {.s = strategy_of("dp=%u mb=2 zero=%u", WAYS, zero), .train = true};
    h.optim = optim_default(OPTIM_ADAFACTOR);
    plan *pn = policy_hybrid(pl, a, &h);
    prog *p = pn ? plan_apply(pl, pn, k) : NULL;
    sim_result r;
    bool ok = p && sim_run(c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r);
    if (!CHECK_MSG(ok, "%s", diag_render(c, a))) test_leave();
    const i64 states = 2 * (512 + 512) * 4 / (zero ? WAYS : 1), weights = 2 * 512 * 512 * 4;
    // at the peak, in the update, numbers that are sums of squares or means stand beside them
    CHECK(r.cls[0].peak_kind[MEM_STATE] >= states &&
          r.cls[0].peak_kind[MEM_STATE] <= states + 2 * 512 * 4 + 64);
    if (zero < 3) CHECK(llabs(r.cls[0].peak_kind[MEM_PARAM] - weights) <= 64);
    if (zero < 2) CHECK_EQ_I64(r.cls[0].peak_kind[MEM_GRAD], weights);
    prog_free(p);
    planner_free(pl);
    prog_free(src);
    arena_free(a);
    ctx_free(c);
  }
}

// ---- plans --------------------------------------------------------------------------------------------
static void check_plans(const char *model, i64 seq, dtype t, const char *const *line, u32 n) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, model, &(front_opts){.batch = 12, .seq = seq, .loss = true, .t = t});
  if (!CHECK_MSG(src, "%s", diag_render(c, a))) test_leave();
  planner *pl = planner_new(src);
  for (u32 k = 0; k < n; k++) {
    hybrid_opts h = {.s = strategy_of("%s", line[k]), .train = true};
    h.optim = optim_default(OPTIM_ADAFACTOR), h.optim.weight_decay = 0.1, h.optim.beta2 = 0.9;
    diag_clear(c);
    plan *pn = policy_hybrid(pl, a, &h);
    prog *p = pn ? plan_apply(pl, pn, NULL) : NULL;
    verify_report r;
    bool ok = p && ir_verify(p) && plan_validate(p) &&
              plan_verify(pl, pn, NULL, &(verify_opts){.seed = 3}, a, &r) && r.passed;
    CHECK_MSG(ok, "%s, %s: %s", model, line[k], diag_render(c, a));
    if (p) prog_free(p);
  }
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
}

static const char *const strategies[] = {
    "dp=1",
    "dp=4",
    "tp=2",
    "pp=2 mb=2",
    "dp=2 mb=3",
    "dp=2 zero=1",
    "dp=3 mb=2 zero=2",
    "dp=2 zero=3",
    "dp=4 zero=1",
    "dp=6 zero=3",
    "dp=2 tp=2 zero=1",
    "dp=2 tp=2 pp=2 mb=3 zero=2",
    "dp=3 tp=2 pp=2 mb=2 zero=3",
    "dp=2 tp=2 sp=on zero=3",
};

TEST(adafactor_plans_gpt) {
  check_plans("gpt2:layers=2,hidden=16,heads=4,vocab=24,positions=8,ffn=20", 8, DT_NONE, strategies,
              COUNT_OF(strategies));
}

TEST(adafactor_plans_bert) {
  check_plans("bert-base:layers=2,hidden=12,heads=2,vocab=24,positions=6,ffn=24", 4, DT_NONE, strategies,
              COUNT_OF(strategies));
}

// Rows and columns that do not divide, and masters; experts (many matrices); convolutions (very many).
TEST(adafactor_plans_others) {
  static const char *const some[] = {"dp=4 zero=1", "dp=4 zero=3", "tp=2", "dp=2 tp=2 zero=2"};
  check_plans("gpt2:layers=2,hidden=16,heads=4,vocab=17,positions=9,ffn=20", 8, DT_F16, some, COUNT_OF(some));
  check_plans("moe-8x125m:layers=2,hidden=12,heads=2,vocab=12,experts=4,ffn=24,positions=10", 8, DT_NONE,
              some, COUNT_OF(some));
  check_plans("resnet50:hidden=4,vocab=12", 16, DT_NONE, some, 2);
}

// As Whale trains it: stages, microbatches, data ranks, recomputation.
TEST(adafactor_plans_m6) {
  static const char *const some[] = {"pp=2 mb=3 dp=2 recompute=full", "dp=2 tp=2 zero=1", "dp=3 zero=3"};
  check_plans("m6-10b:layers=2,hidden=12,heads=4,vocab=24,positions=6,ffn=24", 4, DT_NONE, some,
              COUNT_OF(some));
  check_plans("m6-moe-100b:layers=2,hidden=12,heads=4,vocab=24,positions=6,ffn=24,experts=4", 4, DT_NONE,
              some, COUNT_OF(some));
}

TEST(adafactor_in_plan_text) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = front_family(c, "mlp-xs", &(front_opts){.batch = 32, .loss = true});
  planner *pl = planner_new(p);
  hybrid_opts h = {.s = strategy_of("dp=2 zero=1"), .train = true, .optim = optim_default(OPTIM_ADAFACTOR)};
  plan *pn = policy_hybrid(pl, a, &h);
  strbuf text = {.a = a}, again = {.a = a};
  REQUIRE(pn != NULL);
  plan_print(planner_source(pl), pn, &text);
  CHECK(strstr(sb_str(&text), "train: {optimizer: adafactor, lr: 0.01,") != NULL);
  plan *q = plan_parse(a, planner_source(pl), NULL, sym_of(c, "printed"), sb_str(&text), text.n);
  REQUIRE(q != NULL);
  CHECK(!memcmp(&q->optim.lr, &pn->optim.lr, 6 * sizeof(double)) && q->optim.kind == OPTIM_ADAFACTOR);
  plan_print(planner_source(pl), q, &again);
  CHECK_STR(sb_str(&again), sb_str(&text));
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}
