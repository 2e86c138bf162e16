// test_wide.c - stages on several places (interlaced pipelines): how long the busiest rank works, against what the ranks of the whole
// program do.
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  cost_model *k;
} bed;

static bed bed_open(const char *spec) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, "gpt2:layers=4,hidden=2048,heads=4,vocab=32768,positions=8",
                     &(front_opts){.batch = 12, .seq = 8, .loss = true});
  REQUIRE(b.src && pass_loss(b.src));
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, machine_load(b.c, b.a, spec), NULL);
  return b;
}
static void bed_close(bed *b) {
  planner_free(b->pl), prog_free(b->src);
  arena_free(b->a), ctx_free(b->c);
}

// The most that a rank has to do on its compute stream, instruction by instruction. Before the tasks it fills accumulators with
// zeros, which do not count.
static i64 busiest(const bed *b, const prog *p) {
  enum { RANKS = 8 };
  i64 busy[RANKS] = {0}, most = 0;
  bool began[RANKS] = {0};
  sim_result r;
  const sim_opts o = {.mode = SIM_FLAT, .no_bytes = true, .timeline = true};
  const bool ok = sim_run(b->c, b->a, p, b->k, &o, &r);
  REQUIRE(ok);
  const trace *t = trace_collect(b->a, r.timeline);
  for (u32 e = 0; e < t->n; e++) {
    const trace_lane *l = &t->lanes.v[t->lane[e]];
    if (l->id) continue;
    began[l->process] |= strcmp(sym_str(b->c, trace_name(t, e)), "full") != 0;
    if (began[l->process]) busy[l->process] += t->dur_ps[e];
  }
  for (u32 k = 0; k < RANKS; k++) most = MAX(most, busy[k]);
  return most;
}

static void hold_busiest(const char *spec) {
  static const char *const lines[] = {"pp=2 mb=3 schedule=interlaced overlap=pp",
                                      "pp=4 mb=4 overlap=pp",
                                      "pp=4 mb=4 schedule=interlaced overlap=pp",
                                      "pp=2 mb=3 schedule=interlaced-block overlap=pp",
                                      "dp=2 pp=2 mb=3 schedule=interlaced overlap=pp",
                                      "pp=2 mb=3 overlap=pp",
                                      "pp=4 mb=6 schedule=interlaced overlap=pp recompute=full"};
  bed b = bed_open(spec);
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    const hybrid_opts h = {
        .s = strategy_of("%s", lines[k]), .train = true, .optim = optim_default(OPTIM_ADAM), .k = b.k};
    const plan *pn = policy_hybrid(b.pl, b.a, &h);
    plan_probed about;
    prog *probe = pn ? plan_probe(b.pl, pn, b.k, b.a, false, &about) : NULL,
         *p = probe ? plan_apply(b.pl, pn, b.k) : NULL;
    CHECK_MSG(p != NULL, "%s: %s", lines[k], diag_render(b.c, b.a));
    REQUIRE(p != NULL);
    CHECK(plan_lies_wide(pn) == (strstr(lines[k], "interlaced") != NULL));
    i64 told = 0, most = busiest(&b, p);
    sim_opts o = {.mode = SIM_FOLDED, .busiest_ps = &told, .enough_ps = INT64_MAX};
    CHECK_MSG(sim_stages_of(b.c, b.a, probe, b.k, &o, &about.pipeline) != NULL, "%s", lines[k]);
    CHECK_MSG(told == most, "%s: %lld ps, not %lld", lines[k], (long long)told, (long long)most);
    o.enough_ps = most - 1;
    CHECK(!sim_stages_of(b.c, b.a, probe, b.k, &o, &about.pipeline));
    prog_free(probe), prog_free(p);
  }
  bed_close(&b);
}

TEST(wide_busiest_rank) {
  hold_busiest("1x8 v100");
  hold_busiest("1x1 v100 ib=100Gb/s + 1x7 t4 ib=100Gb/s"); // not one of the first place
}
