// test_profile.c - measured times of layers: a plan takes what was measured, whatever the cost model says of
// its instructions, in all ways of simulating it.
#include <math.h>
#include "front/front.h"
#include "plan/plan.h"
#include "profiles.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  machine *m;
  cost_model *k;
} bed;

static bed open_bed(const char *model, i64 batch, const char *spec, const char *rows) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = batch, .seq = 16, .loss = true});
  b.m = machine_load(b.c, b.a, spec);
  REQUIRE(b.src && b.m);
  const char *text =
      arena_printf(b.a, "layer,device,samples,tensor,forward_us,backward_us,update_us\n%s", rows);
  const bool ok = machine_profile_parse(b.m, b.a, sym_of(b.c, "t.csv"), text, strlen(text));
  CHECK_MSG(ok, "%s", diag_render(b.c, b.a));
  REQUIRE(ok);
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, b.m, NULL);
  return b;
}

static void close_bed(bed *b) {
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

// us of a step; below 0: refused.
static double takes(bed *b, const char *line) {
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = true, .optim = optim_default(OPTIM_SGD), .k = b->k};
  sim_result r;
  const bool ok = strategy_parse(b->c, b->a, line, &said) && strategy_one(b->c, &said, &h.s) &&
                  strategy_settle(b->c, &said, policy_batch_extent(b->pl), true, &h.s);
  plan *pn = ok ? policy_hybrid(b->pl, b->a, &h) : NULL;
  prog *p = pn ? plan_apply(b->pl, pn, b->k) : NULL;
  const bool ran = p && sim_run(b->c, b->a, p, b->k, &(sim_opts){.mode = SIM_FOLDED}, &r);
  prog_free(p);
  return ran ? (double)r.makespan_ps * 1e-6 : -1;
}

static const char three[] =
    "first,v100,1,1,100,50,300\nlayer,v100,1,1,1000,2000,400\nlast,v100,1,1,500,700,600\n"
    "first,v100,2,1,150,80,300\nlayer,v100,2,1,1900,3800,400\nlast,v100,2,1,900,1300,600\n"
    "first,v100,2,2,150,80,150\nlayer,v100,2,2,1100,2100,200\nlast,v100,2,2,600,700,300\n";
static const char model[] = "gpt2:layers=3,hidden=64,heads=8,vocab=512";

// Beside it there is what belongs to no layer, such as the 1 that the gradient begins with: launches.
static void check_takes(bed *b, const char *line, double want, double launches) {
  const double us = takes(b, line);
  CHECK_MSG(us >= want * (1 - 1e-6) && us <= want + launches * 5.001, "%s: %.6f us, not %g", line, us, want);
}

TEST(profile_is_what_one_device_takes) {
  bed b = open_bed(model, 2, "2 v100", three);
  const double step = 150 + 80 + 3 * (1900 + 3800) + 900 + 1300, update = 300 + 3 * 400 + 600;
  check_takes(&b, "dp=1", step + update, 1);
  // Recomputation is a forward more of the layers, but for the sum at the end of each, which no gradient
  // needs.
  const double again = takes(&b, "dp=1 recompute=full") - takes(&b, "dp=1");
  CHECK_MSG(again > 0.8 * 3 * 1900 && again < 3 * 1900, "recomputation takes %g us, not %d", again, 3 * 1900);
  // Two ranks that share every operator: what was measured has their communication in it.
  check_takes(&b, "tp=2", 150 + 80 + 3 * (1100 + 2100) + 600 + 700 + 150 + 3 * 200 + 300, 1);
  close_bed(&b);
}

// Two microbatches of one sample. What gradients are added up in begins as 0, 40 of them.
TEST(profile_is_of_a_microbatch) {
  bed b = open_bed(model, 2, "2 v100", three);
  const double one = 100 + 50 + 3 * 3000 + 500 + 700, update = 300 + 3 * 400 + 600;
  check_takes(&b, "mb=2", 2 * one + update, 50);
  close_bed(&b);
  b = open_bed(model, 3, "2 v100", three); // half as much again as was measured: along the line
  check_takes(&b, "dp=1", 200 + 110 + 3 * (2800 + 5600) + 1300 + 1900 + update, 1);
  close_bed(&b);
}

// On devices of two kinds each takes its own times: the slower one decides. With two data ranks gradients are
// added up.
TEST(profile_is_of_a_kind) {
  bed b = open_bed(model, 2, "1x1 v100 + 1x1 t4 ib=100Gb/s",
                   "first,v100,1,1,100,50,0\nlayer,v100,1,1,1000,2000,0\nlast,v100,1,1,500,700,0\n"
                   "first,t4,1,1,10,5,0\nlayer,t4,1,1,100,200,0\nlast,t4,1,1,50,70,0\n");
  const double slow = 150 + 3 * 3000 + 1200, dp = takes(&b, "dp=2"), pp = takes(&b, "pp=2 layers=1/2");
  CHECK_MSG(dp > slow && dp < slow + 1500, "dp=2: %g us, not %g", dp, slow);
  CHECK_MSG(pp > 150 + 3000 + 2 * 300 + 120 && pp < 150 + 3000 + 2 * 300 + 120 + 500, "pp=2: %g us", pp);
  close_bed(&b);
}

// What so many samples take a device over what one takes, where a layer of one sample takes so many us.
static double proportion(const char *us) {
  char text[300];
  snprintf(text, sizeof text, "first,v100,1,1,%s,%s,0\nlayer,v100,1,1,%s,%s,0\nlast,v100,1,1,%s,%s,0\n", us,
           us, us, us, us, us);
  bed b = open_bed(model, 4, "2 v100", text);
  const double four = takes(&b, "dp=1"), one = takes(&b, "mb=4") / 4;
  close_bed(&b);
  return four / one;
}

// One number of samples was measured: others take longer as they do by the cost model, whatever one takes.
TEST(profile_of_one_number_of_samples) {
  const double some = proportion("1e5"), many = proportion("1e6");
  CHECK_MSG(some > 1.01 && some < 4, "four samples take %g times what one takes", some);
  CHECK_MSG(fabs(some / many - 1) < 0.01, "%g times, and %g where all takes ten times as long", some, many);
}

static void refused(bed *b, const char *line, const char *what) {
  CHECK(takes(b, line) < 0);
  const char *said = diag_render(b->c, b->a);
  CHECK_MSG(strstr(said, what), "%s: %s", line, said);
  diag_clear(b->c);
}

TEST(profile_refuses) {
  bed b = open_bed(model, 8, "8 v100", three);
  refused(&b, "tp=4 mb=4", "no times of layer 'first' on 4 v100 together");
  refused(&b, "dp=1", "near 8 samples on 1 v100");
  CHECK(takes(&b, "dp=2 mb=2") > 0);
  close_bed(&b);
  b = open_bed(model, 2, "2 v100", "layer,v100,1,1,1,1,1\nlast,v100,1,1,1,1,1\n");
  refused(&b, "dp=1", "the layers of this model are first, layer, last");
  close_bed(&b);
}
