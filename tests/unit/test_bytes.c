// test_bytes.c - which memory a result takes over, whose values a peak is made of, and probes whose layers do not stand for others.
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "test.h"

static u32 at_once(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)p, (void)f, (void)i, (void)g;
  ps[0] = 0;
  return 1;
}

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  sim_result r;
} bed;

static bed bed_open(const char *text) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.p = ir_parse(b.c, sym_of(b.c, "t.heddle"), text, strlen(text));
  CHECK_MSG(b.p != NULL, "%s", diag_render(b.c, b.a));
  REQUIRE(b.p != NULL);
  const sim_opts o = {.mode = SIM_FOLDED, .cost = at_once};
  const bool ok = sim_run(b.c, b.a, b.p, NULL, &o, &b.r);
  CHECK_MSG(ok, "%s", diag_render(b.c, b.a));
  REQUIRE(ok);
  return b;
}
static void bed_close(bed *b) {
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static i64 peak_of(const char *text) {
  bed b = bed_open(text);
  const i64 n = b.r.peak_bytes;
  bed_close(&b);
  return n;
}

// A sum over ranks takes place where its operand lies, but for one that the caller of main still has.
TEST(bytes_of_sums_of_what_is_lent) {
#define SUM(x, more)                                                                                         \
  "mesh @m [d=2]\nfunc @main(%x: f32[256]+d @m) -> (f32[256] @m) {\n" more "  %c = all_reduce " x            \
  " over d @m : f32[256]\n  return %c\n}\n"
  CHECK_EQ_I64(peak_of(SUM("%x", "")), 2 << 10);
  CHECK_EQ_I64(peak_of(SUM("!%x", "")), 1 << 10);
  CHECK_EQ_I64(peak_of(SUM("%a", "  %a = neg %x @m : f32[256]+d\n")), 2 << 10);
}

// What is broadcast has no room for the result, though it is donated.
TEST(bytes_of_a_result_that_is_larger) {
  CHECK_EQ_I64(peak_of("mesh @m [d=1]\nfunc @main(%x: f32[4,256] @m, %w: f32[256] @m) -> (f32[4,256] @m) {\n"
                       "  %b = neg %w @m\n  %c = add !%b, %x @m\n  return %c\n}\n"),
               (4 + 1 + 1 + 4) << 10);
  CHECK_EQ_I64(peak_of("mesh @m [d=1]\nfunc @main(%x: f32[4,256] @m, %w: f32[256] @m) -> (f32[4,256] @m) {\n"
                       "  %b = neg %x @m\n  %c = add !%b, %w @m\n  return %c\n}\n"),
               (4 + 1 + 4) << 10);
}

// A value of two groups that goes in a call: either rank's memory is its own group's value.
TEST(bytes_of_two_groups_have_their_names) {
  bed b = bed_open("mesh @m [p=2]\n"
                   "func @low(%q: f32[256]+p @m) -> (f32[256]+p @m) {\n"
                   "  %r = neg %q @m : f32[256]+p\n  return %r\n}\n"
                   "func @main(%x: f32[256] @m[p=0], %y: f32[256] @m[p=1]) -> (f32[256]+p @m) {\n"
                   "  %a = neg %x @m[p=0] : f32[256]\n  %b = exp %y @m[p=1] : f32[256]\n"
                   "  %j = join %a, %b over p @m : f32[256]+p\n"
                   "  %s = call @low(!%j) @m : f32[256]+p\n  return %s\n}\n");
  for (u32 r = 0; r < 2; r++) {
    const sim_class *u = &b.r.cls[b.r.class_of_rank[r]];
    bool own = false, other = false;
    for (u32 k = 0; k < u->ntop; k++) {
      const mem_item *t = &u->top[k];
      if (t->f.i != b.p->main.i || !t->v) continue;
      const char *name = sym_str(b.c, val(func_get(b.p, t->f), t->v)->name);
      own |= !strcmp(name, r ? "b" : "a"), other |= !strcmp(name, r ? "a" : "b");
    }
    CHECK_EQ_I64(u->peak_bytes, 3 << 10);
    CHECK_MSG(own && !other, "rank %u", r);
  }
  bed_close(&b);
}

// Layers of a forward and of its backward stand for as many others; a probe where they do not is none: what the others saved would
// never go.
TEST(bytes_of_layers_that_do_not_go) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, "gpt2:layers=9,hidden=16,heads=4,vocab=17,positions=9,ffn=20",
                         &(front_opts){.batch = 8, .seq = 8, .loss = true});
  REQUIRE(src && pass_loss(src));
  planner *pl = planner_new(src);
  cost_model *k = cost_model_new(c, a, machine_load(c, a, "1x4 v100"), NULL);
  const hybrid_opts h = {.s = strategy_of("mb=2"), .train = true, .optim = optim_default(OPTIM_SGD)};
  const plan *pn = policy_hybrid(pl, a, &h);
  plan_probed about;
  prog *probe = pn ? plan_probe(pl, pn, k, a, false, &about) : NULL;
  CHECK_MSG(probe != NULL, "%s", diag_render(c, a));
  REQUIRE(probe != NULL);
  const sim_opts o = {.mode = SIM_FOLDED, .peak_only = true};
  sim_pipeline *x = &about.pipeline;
  CHECK(x->nspans >= 2);
  CHECK(sim_stages_of(c, a, probe, k, &o, x) != NULL);
  sim_span *span = arena_dup(a, x->span, x->nspans * sizeof *span);
  x->span = span;
  for (u32 j = 0; j < x->nspans; j++) {
    span[j].more--;
    CHECK_MSG(!sim_stages_of(c, a, probe, k, &o, x), "span %u", j);
    span[j].more++;
  }
  prog_free(probe), planner_free(pl), prog_free(src);
  arena_free(a), ctx_free(c);
}
