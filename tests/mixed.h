// mixed.h - machines of several kinds of devices and random strategies with shares for tiny models, shared by the
// property tests of both. Included by tests only.
#ifndef HEDDLE_TEST_MIXED_H
#define HEDDLE_TEST_MIXED_H
#include "front/front.h"
#include "plans.h"
#include "search/search.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static const struct {
  const char *name, *spec;
  i64 batch, seq;
  dtype t;
} models[] = {
    {"mlp", "mlp-xs:layers=5,hidden=24", 24, 0, DT_NONE},
    {"gpt", "gpt2:layers=4,hidden=24,heads=6,vocab=36,positions=6,ffn=36", 12, 6, DT_NONE},
    {"llama", "llama2-7b:layers=3,hidden=24,heads=6,kv_heads=3,head_dim=4,ffn=36,vocab=24", 12, 6, DT_F16},
    {"t5", "t5-small:layers=2,hidden=12,heads=6,head_dim=2,ffn=24,vocab=24", 12, 6, DT_NONE},
    {"bert", "bert-base:layers=3,hidden=12,heads=6,vocab=18,positions=6,ffn=24", 12, 6, DT_NONE},
    {"moe", "moe-8x125m:layers=2,hidden=12,heads=6,vocab=12,experts=4,ffn=24,positions=6", 12, 6, DT_NONE},
    {"resnet", "resnet50:hidden=4,vocab=12", 6, 16, DT_NONE},
    {"vit", "vit-base:layers=3,hidden=12,heads=6,vocab=12,ffn=24", 6, 32, DT_NONE},
    {"gnmt", "gnmt:layers=3,hidden=12,vocab=24", 12, 3, DT_NONE},
    {"batchnorm", "examples/batchnorm.heddle", 24, 0, DT_NONE},
};
enum { EACH = 24, MOST_KINDS = 4 }; // plans of every model

static inline u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static inline bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }
static inline u32 wanted(u32 n) { return getenv("PLANS") ? (u32)atoi(getenv("PLANS")) : test_cases(n); }

// ---- machines ---------------------------------------------------------------------------------------------
typedef struct {
  u32 kinds, nodes;
  u32 gflops[MOST_KINDS], gbytes[MOST_KINDS], mib[MOST_KINDS], us[MOST_KINDS];
  u32 devices[12][2], kind[12][2]; // of a node: so many of one kind, then so many of another
  u32 latency;                     // 0: nothing takes longer than its work
} figures;

static inline u32 ranks_of(const figures *x) {
  u32 n = 0;
  for (u32 i = 0; i < x->nodes; i++) n += x->devices[i][0] + x->devices[i][1];
  return n;
}

// From 2 to 4 kinds (or one), from 2 to 12 ranks, nodes of one kind or of two.
static inline figures random_figures(u64 *rng, u32 kinds, bool latency) {
  figures x = {.kinds = kinds, .latency = latency};
  for (u32 k = 0; k < kinds; k++) {
    x.gflops[k] = 1u << pick(rng, 4), x.gflops[k] = x.gflops[k] * 10 + pick(rng, 7);
    x.gbytes[k] = 3 + pick(rng, 30), x.mib[k] = 64 + pick(rng, 200), x.us[k] = latency ? pick(rng, 4) : 0;
  }
  const u32 most = kinds + pick(rng, 13 - kinds);
  for (u32 k = 0; k < kinds || (x.nodes < 12 && ranks_of(&x) < most); k++) {
    const u32 left = MAX(most, ranks_of(&x) + 1) - ranks_of(&x), i = x.nodes;
    x.kind[i][0] = k < kinds ? k : pick(rng, kinds), x.kind[i][1] = pick(rng, kinds);
    x.devices[i][0] = 1 + pick(rng, MIN(left, 3));
    if (left > x.devices[i][0] + kinds && chance(rng, 3)) x.devices[i][1] = 1;
    if (ranks_of(&x) + (k < kinds ? kinds - 1 - k : 0) > 12) x.devices[i][0] = 1, x.devices[i][1] = 0;
    x.nodes++;
  }
  return x;
}

static inline const char *machine_text(const figures *x, u32 faster, bool backwards, arena *a) {
  strbuf b = {.a = a};
  sb_put(&b, "name: mixed\ndevices:\n");
  for (u32 k = 0; k < x->kinds; k++) {
    const u32 f = x->gflops[k] * faster;
    sb_fmt(
        &b,
        "  k%u: {rate: {f16: %u GFLOP/s, f32: %u GFLOP/s}, vector: %u GFLOP/s, memory: %u MiB, bandwidth: %u "
        "GB/s, launch: %u us}\n",
        k, 2 * f, f, f, x->mib[k], x->gbytes[k] * faster, x->us[k]);
  }
  sb_put(&b, "nodes:\n");
  for (u32 n = 0; n < x->nodes; n++) {
    const u32 i = backwards ? x->nodes - 1 - n : n, us = x->latency ? 5 : 0;
    sb_fmt(&b, "  - {count: 1, devices: %u k%u", x->devices[i][0], x->kind[i][0]);
    if (x->devices[i][1]) sb_fmt(&b, " + %u k%u", x->devices[i][1], x->kind[i][1]);
    sb_fmt(&b,
           ", link: {kind: switch, bandwidth: %u MB/s, start: %u us, step: 0 us}, host: {bandwidth: %u MB/s, "
           "start: "
           "%u us, step: 0 us}, nics: %u Mb/s}\n",
           2000 * faster, us, 2000 * faster, us, 4000 * faster);
  }
  sb_fmt(&b, "fabric: {efficiency: 1, start: %u us, step: %u us}\n", x->latency ? 10 : 0, x->latency ? 2 : 0);
  return sb_str(&b);
}

static inline machine *machine_of(ctx *c, arena *a, const char *text) {
  machine *m = machine_parse(c, a, sym_of(c, "mixed"), text, strlen(text));
  CHECK_MSG(m, "%s\n%s", diag_render(c, a), text);
  REQUIRE(m);
  return m;
}

static inline void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }
static const cost_opts costs = {.extrapolated = quiet};

// ---- models -----------------------------------------------------------------------------------------------
typedef struct {
  u32 index;
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  u32 calls;
} model;

static inline model open_model(u32 index) {
  model m = {.index = index, .c = ctx_new(), .a = arena_new()};
  const bool file = strstr(models[index].spec, ".heddle"); // says its batch and loss itself
  const front_opts o = {
      .batch = file ? 0 : models[index].batch, .seq = models[index].seq, .loss = !file, .t = models[index].t};
  m.src = front_load(m.c, models[index].spec, &o);
  REQUIRE(m.src && (file || pass_loss(m.src)));
  for (u32 f = 1; f < m.src->funcs.n; f++) // constants as random as weights
    for (u32 k = 0; k < m.src->funcs.v[f]->nparams; k++) m.src->funcs.v[f]->params.v[k].data = 0;
  m.pl = planner_new(m.src);
  const func_info *f = func_get(m.src, m.src->main);
  for (u32 i = 0; i < f->body.n; i++) m.calls += f->body.v[i].op == OP_call;
  return m;
}

static inline void close_model(model *m) {
  planner_free(m->pl);
  prog_free(m->src);
  arena_free(m->a);
  ctx_free(m->c);
}

// ---- strategies -------------------------------------------------------------------------------------------
static inline choice_value word_of(choice_id id, const char *word) {
  choice_value x;
  REQUIRE(choice_read(id, NULL, word, strlen(word), &x));
  return x;
}

// n numbers from 1 that add up to `sum`.
static inline choice_value parts_of(u64 *rng, u32 n, u32 sum, arena *a) {
  u32 *v = NEWN(a, u32, n);
  for (u32 k = 0; k < n; k++) v[k] = 1;
  for (u32 left = sum - n; left > 0; left--) v[pick(rng, n)]++;
  return (choice_value){.nparts = n, .part = v};
}

// The same as shares, which have no common factor.
static inline choice_value shares_in(u64 *rng, u32 n, u32 sum, arena *a) {
  strbuf b = {.a = a};
  const choice_value v = parts_of(rng, n, sum, a);
  choice_value x;
  choice_print(CHOICE_dp_shares, v, &b);
  REQUIRE(choice_read(CHOICE_dp_shares, a, b.v, b.n, &x));
  return x;
}

static inline u32 divisor(u64 *rng, u32 n, u32 least) { // of n, at least so much; 0: there is none
  u32 v[64], k = 0;
  for (u32 d = MAX(least, 1); d <= n && k < 64; d++)
    if (n % d == 0) v[k++] = d;
  return k ? v[pick(rng, k)] : 0;
}

// Tensor degrees by place, with shares for their ranks where the strategy has any.
static inline void by_degree(strategy *s, u32 micro, u64 *rng, arena *a) {
  u32 *v = NEWN(a, u32, s->pp.n);
  for (u32 q = 0; q < s->pp.n; q++) v[q] = divisor(rng, s->dp.n * s->tp.n, 1);
  s->tp_stages = (choice_value){.nparts = s->pp.n, .part = v};
  const u32 data = strategy_shares_needed(s, CHOICE_dp_shares),
            tensor = strategy_shares_needed(s, CHOICE_tp_shares), sum = divisor(rng, micro, data);
  if (s->dp_shares.nparts)
    s->dp_shares = sum ? shares_in(rng, data, sum, a) : choice_default(CHOICE_dp_shares);
  if (s->tp_shares.nparts && tensor <= 6) s->tp_shares = shares_in(rng, tensor, 6, a);
}

static inline strategy random_strategy(const model *m, u32 ranks, bool train, u64 *rng, arena *a) {
  strategy s = strategy_default();
  const u32 batch = (u32)models[m->index].batch;
  do {
    s.dp.n = 1 + pick(rng, 4), s.tp.n = 1 + pick(rng, 3), s.pp.n = 1 + pick(rng, 3);
  } while (s.dp.n * s.tp.n * s.pp.n > ranks || s.dp.n * s.tp.n * s.pp.n == 1);
  s.mb.n = divisor(rng, batch / (chance(rng, 3) ? s.dp.n : 2 * s.dp.n), 1);
  s.mb.n = MAX(s.mb.n, 1);
  const u32 micro = batch / s.mb.n;
  if (s.dp.n > 1) {
    const u32 sum = divisor(rng, micro, s.dp.n);
    if (chance(rng, 2))
      s.dp_shares = word_of(CHOICE_dp_shares, "auto");
    else if (sum)
      s.dp_shares = shares_in(rng, s.dp.n, sum, a);
  }
  if (s.tp.n > 1) {
    if (chance(rng, 4))
      s.tp_shares = word_of(CHOICE_tp_shares, "auto");
    else if (!chance(rng, 4))
      s.tp_shares = shares_in(rng, s.tp.n, s.tp.n == 2 ? 3 : 6, a);
    s.sp.n = pick(rng, 2), s.tables.n = pick(rng, 2);
  }
  if (s.pp.n > 1) {
    if (chance(rng, 3) && 2 * s.pp.n <= m->calls) s.v.n = 2;
    s.schedule.n = pick(rng, 5), s.channels.n = pick(rng, 3), s.overlap.n = pick(rng, 3) > 0;
    if (!(s.overlap.n & OVERLAP_PP)) s.channels.n = 0;
    const u32 how = pick(rng, 4), stages = s.pp.n * s.v.n;
    if (how < 2)
      s.layers = word_of(CHOICE_layers, "auto");
    else if (how == 2 && m->calls >= stages)
      s.layers = parts_of(rng, stages, m->calls, a);
  }
  if (train && s.dp.n > 1) s.zero.n = pick(rng, 4);
  if (train) s.recompute.n = pick(rng, 3), s.bn.n = pick(rng, 2);
  if (s.pp.n > 1 && s.dp.n * s.tp.n > 1 && !chance(rng, 3)) by_degree(&s, batch / s.mb.n, rng, a);
  return s;
}

static inline const u32 *shares_of(const plan *pn, u32 axis) { return pn->axes[axis].shares; }
#endif
