// test_stages.c - which layers a stage gets: as many as the strategy says, every layer in exactly one stage.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  planner *pl;
} bed;

static bed open_bed(const char *name, i64 batch, i64 seq) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.p = front_load(b.c, name, &(front_opts){.batch = batch, .seq = seq});
  REQUIRE(b.p);
  b.pl = planner_new(b.p);
  return b;
}
static void close_bed(bed *b) {
  planner_free(b->pl);
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static const plan *planned(bed *b, const char *line) {
  strategy_set *said = NEW(b->a, strategy_set);
  hybrid_opts o = {.said = said};
  bool ok = strategy_parse(b->c, b->a, line, said) && strategy_one(b->c, said, &o.s);
  return ok ? policy_hybrid(b->pl, b->a, &o) : NULL;
}

// "3/3/2": calls of each stage; segments must cover main without a gap.
static const char *layers_of(bed *b, const char *line) {
  const plan *pn = planned(b, line);
  const func_info *m = func_get(planner_source(b->pl), planner_source(b->pl)->main);
  if (!CHECK_MSG(pn, "%s: %s", line, diag_render(b->c, b->a))) return "";
  strbuf s = {.a = b->a};
  u32 at = 1;
  for (u32 k = 0; k < pn->nsegments; k++) {
    u32 n = 0;
    CHECK_EQ_I64(pn->segments[k].from, at);
    CHECK(pn->segments[k].to >= pn->segments[k].from);
    for (u32 i = pn->segments[k].from; i <= pn->segments[k].to; i++) n += m->body.v[i - 1].op == OP_call;
    at = pn->segments[k].to + 1;
    sb_fmt(&s, "%s%u", k ? "/" : "", n);
  }
  CHECK_EQ_I64(at, m->body.n + 1);
  return sb_str(&s);
}

TEST(stages_have_the_layers_that_were_said) {
  bed b = open_bed("gpt2:layers=10,hidden=32,heads=4,vocab=64", 8, 16);
  CHECK_STR(layers_of(&b, "pp=4 layers=1/2/3/4"), "1/2/3/4");
  CHECK_STR(layers_of(&b, "pp=4 layers=4/3/2/1"), "4/3/2/1");
  CHECK_STR(layers_of(&b, "pp=2 layers=9/1"), "9/1");
  CHECK_STR(layers_of(&b, "pp=10 layers=equal"), "1/1/1/1/1/1/1/1/1/1");
  CHECK_STR(layers_of(&b, "pp=5 layers=equal"), "2/2/2/2/2");
  CHECK_STR(layers_of(&b, "pp=4 layers=equal"), "3/3/2/2"); // the first have one more
  CHECK_STR(layers_of(&b, "pp=1"), "10");
  close_bed(&b);
}

// 8 equal layers and nothing else that is heavy.
TEST(stages_by_cost_are_equal_where_layers_are) {
  bed b = open_bed("mlp-xs", 8, 0);
  CHECK_STR(layers_of(&b, "pp=4 layers=cost"), layers_of(&b, "pp=4 layers=equal"));
  CHECK_STR(layers_of(&b, "pp=4"), "2/2/2/2");
  close_bed(&b);
}

// Blocks of several kinds, and models of two halves.
TEST(stages_of_any_model) {
  static const char *const models[] = {"resnet50:hidden=4,vocab=12", "t5-small:layers=2,hidden=12,vocab=24",
                                       "llama2-7b:layers=6,hidden=24,heads=4,kv_heads=2,ffn=36,vocab=24"};
  for (u32 k = 0; k < COUNT_OF(models); k++) {
    bed b = open_bed(models[k], 4, 32);
    const char *all = layers_of(&b, "pp=1");
    u32 n = (u32)strtoul(all, NULL, 10), a, c, d;
    REQUIRE(n >= 4);
    REQUIRE(sscanf(layers_of(&b, "pp=3 layers=equal"), "%u/%u/%u", &a, &c, &d) == 3);
    CHECK(a + c + d == n && a >= c && c >= d && a - d <= 1);
    REQUIRE(sscanf(layers_of(&b, "pp=3 layers=cost"), "%u/%u/%u", &a, &c, &d) == 3);
    CHECK_EQ_I64(a + c + d, n);
    const char *line = arena_printf(b.a, "pp=3 layers=1/%u/1", n - 2);
    CHECK_STR(layers_of(&b, line), line + strlen("pp=3 layers="));
    close_bed(&b);
  }
}

static void refused(const char *line, const char *message, u32 column) {
  bed b = open_bed("mlp-xs:layers=6", 8, 0);
  CHECK_MSG(!planned(&b, line), "%s", line);
  const char *said = diag_render(b.c, b.a);
  CHECK_MSG(strstr(said, message), "%s: %s", line, said);
  const char *place = arena_printf(b.a, "--strategy:1:%u\n", column);
  CHECK_MSG(strstr(said, place), "%s: %s", line, said);
  close_bed(&b);
}

TEST(stages_refuse_wrong_sums) {
  refused("pp=2 layers=3/4", "layers adds up to 7, but the model has 6", 6);
  refused("layers=3/2 pp=2", "layers adds up to 5, but the model has 6", 1);
  refused("pp=2 layers=2/2/2", "layers has 3 numbers, but there are 2 stages (pp=2)", 6);
  refused("pp=2 layers=1048576/1048576", "layers adds up to 2097152", 6);
  refused("pp=7 layers=equal", "7 stages, but the model has 6 repeated layers", 6);
}

// What one planner keeps for the tensor axis of one plan is not taken for that of another: plans by tp.stages
// have theirs at other places. Degree 3 at axis 3 and 6 at axis 6 differ in nothing else.
static void check_alone(const char *const *line, u32 n) {
  static const char model[] = "llama2-7b:layers=6,hidden=96,heads=12,ffn=192,vocab=96";
  bed b = open_bed(model, 24, 24), fresh;
  for (u32 i = 0; i < n; i++) {
    fresh = open_bed(model, 24, 24);
    const plan *pn = planned(&b, line[i]), *alone = planned(&fresh, line[i]);
    if (!CHECK_MSG(pn && alone, "%s: %s", line[i], diag_render(b.c, b.a))) continue;
    CHECK_MSG(pn->ntrans == alone->ntrans, "%s: %u splits, alone %u", line[i], pn->ntrans, alone->ntrans);
    for (u32 k = 0; k < pn->ntrans && k < alone->ntrans; k++) {
      CHECK_EQ_I64(pn->trans[k].axis, alone->trans[k].axis);
      CHECK_EQ_I64(pn->trans[k].instr, alone->trans[k].instr);
    }
    close_bed(&fresh);
  }
  close_bed(&b);
}

TEST(stages_of_several_degrees_keep_their_axes) {
  static const char *const line[] = {"pp=2 tp=6 tp.stages=2/6",
                                     "tp=3",
                                     "pp=2 tp=6 tp.stages=6/2",
                                     "tp=6",
                                     "pp=3 tp=6 tp.stages=1/2/6",
                                     "tp=3 sp=on",
                                     "tp=2"};
  check_alone(line, COUNT_OF(line));
}

// What lies on all places is split over them behind what tensor ranks split: with fewer of these, more is.
TEST(stages_on_all_places_keep_their_splits) {
  static const char *const line[] = {"pp=2 tp=2 mb=2 schedule=interlaced", "pp=2 mb=2 schedule=interlaced",
                                     "pp=2 tp=4 mb=2 schedule=interlaced",
                                     "pp=2 mb=2 schedule=interlaced-block",
                                     "pp=2 tp=2 mb=2 sp schedule=interlaced"};
  check_alone(line, COUNT_OF(line));
}

// Of a file that was read the value says that its first and its last stage lie on all places, apart from how many words
// there are.
static void check_value(bed *b, const char *schedule, bool wide) {
  const char *path = arena_printf(b->a, "%s/tests/stages.csv", test_build());
  const sched_shape form = {.places = 2, .chunks = 1, .micro = 2};
  const sched *s = sched_make(b->c, b->a, schedule, &form, (loc){0});
  strategy_set set;
  schedule_files files;
  strbuf out = {.a = b->a};
  REQUIRE(s != NULL);
  sched_print(s, &out);
  FILE *f = fopen(path, "w");
  REQUIRE(f != NULL);
  fputs(sb_str(&out), f);
  fclose(f);
  REQUIRE(strategy_parse(b->c, b->a, arena_printf(b->a, "schedule=%s", path), &set) &&
          policy_schedule_files(b->c, b->a, &set, &files));
  const choice_value x = set.of[CHOICE_schedule].v[0];
  CHECK(x.n == choice_words(CHOICE_schedule) && x.wide == wide && choice_is_interlaced(x) == wide);
}

TEST(schedule_files_say_whether_ends_lie_on_all_places) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  check_value(&b, "interlaced", true);
  check_value(&b, "gpipe", false);
  arena_free(b.a);
  ctx_free(b.c);
}

// ---- times of stages (plan_stage_times) -------------------------------------------------------------------
static const plan *trained(bed *b, const char *line) {
  strategy_set *said = NEW(b->a, strategy_set);
  hybrid_opts o = {.said = said, .train = true};
  bool ok = strategy_parse(b->c, b->a, line, said) && strategy_one(b->c, said, &o.s);
  return ok ? policy_hybrid(b->pl, b->a, &o) : NULL;
}

// In a pipeline whose sends do not follow each other closely a step is what its stages take in the order of the plan, and
// what comes after the tasks: to the picosecond the same whatever the order.
TEST(stages_have_times) {
  static const char *const name[] = {"zb-h1", "zb-h2", "zb-1p", "zb-2p"};
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.p = front_load(b.c, "mlp-xs:layers=8", &(front_opts){.batch = 64, .loss = true});
  REQUIRE(b.p);
  b.pl = planner_new(b.p);
  machine *m = machine_load(b.c, b.a, "4x1 v100 ib=100Gb/s");
  REQUIRE(m);
  cost_model *k = cost_model_new(b.c, b.a, m, &(cost_opts){0});
  i64 after = 0;
  for (u32 i = 0; i < COUNT_OF(name); i++) {
    const plan *pn = trained(&b, arena_printf(b.a, "pp=4 mb=8 schedule=%s", name[i]));
    sched_stages of;
    sim_pipe_result r;
    sched_times t;
    REQUIRE(pn && plan_stage_times(b.pl, pn, k, b.a, &of));
    REQUIRE(plan_price_stages(b.pl, pn, k, b.a, &(sim_opts){.mode = SIM_FOLDED}, &r));
    const sched *s = sched_make(
        b.c, b.a, name[i], &(sched_shape){.places = 4, .chunks = 1, .micro = 8, .backward = true}, (loc){0});
    REQUIRE(s && sched_time_of(b.c, b.a, s, &of.cost, (loc){0}, &t));
    if (!i) after = r.makespan_ps - (i64)t.makespan;
    CHECK_EQ_I64(r.makespan_ps - (i64)t.makespan, after);
    CHECK(after > 0 && after < (i64)of.cost.task[TASK_W][0]);
    CHECK(of.nstages == 4 && of.nplaces == 4 && of.nedges == 3 && !of.cost.task[TASK_I][0]);
    strbuf text = {.a = b.a};
    sched_stages again;
    sched_stages_print(&of, &text);
    REQUIRE(sched_stages_parse(b.c, b.a, sym_of(b.c, "again.csv"), sb_str(&text), text.n, &again));
    for (u32 q = 0; q < 4; q++) {
      CHECK(again.at[q].n == 1 && again.at[q].v[0] == q && again.cost.memory[q] == of.cost.memory[q]);
      CHECK(again.cost.send[q] == of.cost.send[q]);
      for (u32 kind = 0; kind < TASK_KINDS; kind++) CHECK(again.cost.task[kind][q] == of.cost.task[kind][q]);
    }
  }
  close_bed(&b);
}
