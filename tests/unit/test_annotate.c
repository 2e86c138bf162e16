// test_annotate.c - annotations become plans: which segments on which ranks, and that random ones compute
// what the model computes. What refusals say: tests/golden/cli/annotate.t.
#include "heddle.h"
#include "plan/annotations.h"
#include "test.h"

static char *text_of(arena *a, const char *path) {
  ctx *c = ctx_new();
  file_view f;
  char *text = NULL;
  if (file_map(c, path, &f)) {
    text = arena_zalloc(a, f.size + 1);
    memcpy(text, f.data, f.size);
    file_unmap(&f);
  }
  ctx_free(c);
  return text;
}

TEST(annotate_settings_are_documented) {
  arena *a = arena_new();
  const char *doc = text_of(a, "docs/annotations.md");
  setting_row r;
  REQUIRE(doc);
  for (u32 i = 0; annotation_setting_get(a, i, &r); i++) {
    const char *row = strstr(doc, arena_printf(a, "| `%s`", r.key));
    if (row) row = arena_printf(a, "%.*s", (int)strcspn(row, "\n"), row);
    CHECK(row && strstr(row, arena_printf(a, "| %s |", *r.dflt ? r.dflt : "empty")));
    CHECK(row && strstr(row, r.meaning));
    CHECK(!strncmp(r.env, "EPL_", 4));
  }
  CHECK(!annotation_setting_get(a, SETTING_COUNT, &r));
  arena_free(a);
}

// The plan of annotations of an MLP of so many layers, as text; NULL: refused.
static const char *planned(heddle_session *s, u32 layers, u32 devices, const char *text) {
  char model[64];
  snprintf(model, sizeof model, "mlp-xs:layers=%u,hidden=16", layers);
  heddle_program *p = heddle_program_load(s, model, &(heddle_load_options){.batch = 48, .loss = true});
  return heddle_plan_print(heddle_plan_annotated(p, "test.yaml", text, strlen(text),
                                                 &(heddle_plan_options){.train = true, .devices = devices}));
}

static bool says(const char *text, const char *what) { return text && strstr(text, what); }

TEST(annotate_one_task_graph_is_data_parallelism) {
  heddle_session *s = heddle_session_new();
  const char *p = planned(s, 4, 4, "heddle-annotate: 1\ndefault: {replicate: 1}");
  CHECK(says(p, "axes: {rep: 4, dp1: 1, tg: 1}"));
  CHECK(says(p, "  - {from: 1, to: 8, on: m, at: {tg: 0}}\ntrans"));
  heddle_session_free(s);
}

TEST(annotate_two_task_graphs_are_a_pipeline_with_replicas) {
  heddle_session *s = heddle_session_new();
  const char *p =
      planned(s, 4, 4,
              "heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}, {layers: 2-3, replicate: 1}]\n"
              "config: {num_micro_batch: 4}");
  CHECK(says(p, "axes: {rep: 2, dp1: 1, tg: 2}"));
  CHECK(says(p, "  m: {axes: [rep, tg, dp1]}\n"));
  CHECK(says(p, "  - {from: 1, to: 2, on: m, at: {tg: 0}}\n  - {from: 3, to: 8, on: m, at: {tg: 1}}\n"));
  CHECK(says(p, "order:\n  - \"F0.0*2 (B0.0 F0.2)*2 B0.2*2\"\n  - \"(F1.0 B1.0)*4\"\n"));
  heddle_session_free(s);
}

TEST(annotate_a_scope_of_one_name_adds_no_task_graph) {
  heddle_session *s = heddle_session_new();
  const char *p =
      planned(s, 4, 2,
              "heddle-annotate: 1\nscopes: [{name: a, layers: 0, replicate: 1}, {name: b, layers: 1, "
              "replicate: 1}, {name: a, layers: 2, replicate: 1}]");
  CHECK(says(p, "axes: {rep: 1, dp1: 1, tg: 2}")); // layer 3 and the loss join the last
  CHECK(says(p, "{from: 3, to: 8, on: m, at: {tg: 0}}"));
  heddle_session_free(s);
}

// How many warnings W0505 there are of annotations of ten layers, and the first of them.
static u32 blocks_warned(const char *text, char first[200]) {
  heddle_session *s = heddle_session_new();
  u32 n = 0;
  heddle_diagnostic d;
  CHECK(planned(s, 10, 2, text));
  for (u32 k = 0; heddle_session_diagnostic(s, k, &d); k++)
    if (!strcmp(d.code, "W0505") && !n++)
      snprintf(first, 200, "%s:%u:%u %s", d.file, d.line, d.column, d.message);
  heddle_session_free(s);
  return n;
}

TEST(annotate_says_which_blocks_no_scope_names) {
  char first[200] = "";
  CHECK_EQ_I64(
      blocks_warned("heddle-annotate: 1\nscopes: [{layers: 2-3, replicate: 1}, {layers: 6-9, replicate: 1}]",
                    first),
      1);
  CHECK_STR(first, "test.yaml:2:19 `layers 2-3` also takes blocks among 0-5, which no scope names");
  CHECK_EQ_I64(
      blocks_warned("heddle-annotate: 1\nscopes: [{layers: 0-3, replicate: 1}, {layers: 5-9, replicate: 1}]",
                    first),
      1);
  CHECK_STR(first, "test.yaml:2:19 `layers 0-3` also takes block 4, which no scope names");
  // All are named, or there is something for the rest.
  CHECK_EQ_I64(
      blocks_warned("heddle-annotate: 1\nscopes: [{layers: 0-4, replicate: 1}, {layers: 5-9, replicate: 1}]",
                    first),
      0);
  CHECK_EQ_I64(
      blocks_warned("heddle-annotate: 1\ndefault: {replicate: 1}\nscopes: [{layers: 2-3, replicate: 1}]",
                    first),
      0);
}

TEST(annotate_drawn_task_graphs_are_equal) {
  heddle_session *s = heddle_session_new();
  const char *text = "heddle-annotate: 1\nconfig: {auto.auto_parallel: true, pipeline.num_stages: 4}", *p;
  p = planned(s, 8, 4, text);
  CHECK(says(p, "{from: 1, to: 2,") && says(p, "{from: 3, to: 4,") && says(p, "{from: 5, to: 6,"));
  p = planned(s, 12, 4, text);
  CHECK(says(p, "{from: 1, to: 3,") && says(p, "{from: 4, to: 6,") && says(p, "{from: 7, to: 9,"));
  p = planned(s, 6, 4, text); // no stage has more than two of six
  CHECK(says(p, "tg: 3}}") && !says(p, "from: 1, to: 3") && !says(p, "from: 2, to: 4"));
  heddle_session_free(s);
}

TEST(annotate_a_plan_is_the_same_every_time) {
  heddle_session *s = heddle_session_new();
  const char *text = "heddle-annotate: 1\nscopes: [{layers: 0-1, split: 2}, {layers: 2-3, replicate: 4}]";
  const char *p = planned(s, 4, 12, text), *q = planned(s, 4, 12, text);
  CHECK(p && q && !strcmp(p, q));
  heddle_session_free(s);
}

// On shared devices what moves between task graphs takes time: a send from a rank to itself would not.
TEST(annotate_bridges_on_shared_devices_have_a_price) {
  heddle_session *s = heddle_session_new();
  static const char text[] =
      "heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 4}, {layers: 2-3, split: 4}]\n"
      "config: {cluster.colocate_split_and_replicate: true}";
  heddle_program *p =
      heddle_program_load(s, "mlp-xs:layers=4", &(heddle_load_options){.batch = 64, .loss = true});
  heddle_machine *m = heddle_machine_load(s, "1x4 a100");
  const heddle_plan_options o = {.train = true, .machine = m};
  heddle_plan *b = heddle_plan_annotated(p, "test.yaml", text, strlen(text), &o);
  REQUIRE(heddle_plan_on(b, m, NULL));
  const char *r = heddle_result_report(heddle_result_run(heddle_plan_apply(b), m, NULL), HEDDLE_JSON);
  CHECK(says(r, "\"forward_bytes\": 393216, \"backward_bytes\": 0, \"fused\": false")); // 3 x 64 x 512 x 4
  CHECK(says(r, "\"op\": \"all_gather\""));
  heddle_session_free(s);
}

// A rank that sends its part of what it has whole sends that part; weights that two task graphs read are no bridge.
TEST(annotate_bridges_count_what_leaves_a_rank) {
  static const struct {
    const char *model;
    u32 seq;
    const char *text, *machine, *says;
  } row[] = {
      {"mlp-xs:layers=4", 0, "[{layers: 0-1, split: 4}, {layers: 2-3, replicate: 2}]", "1x6 a100",
       "\"forward_bytes\": 131072, \"backward_bytes\": 524288, "}, // 64 x 512 x 4; a whole one for each of 4
      {"gpt2:layers=2,hidden=64,heads=2,vocab=512", 8,
       "[{layers: 0, replicate: 2}, {layers: 1, replicate: 1}]", "1x3 a100",
       "\"forward_bytes\": 131072, \"backward_bytes\": 131072, "}, // 64 x 8 x 64 x 4
  };
  for (u32 k = 0; k < COUNT_OF(row); k++)
    for (u32 n = 1; n <= 2; n++) {
      heddle_session *s = heddle_session_new();
      char text[200];
      snprintf(text, sizeof text, "heddle-annotate: 1\nscopes: %s\nconfig: {num_micro_batch: %u}",
               row[k].text, n);
      heddle_program *p = heddle_program_load(
          s, row[k].model, &(heddle_load_options){.batch = 64, .seq = row[k].seq, .loss = true});
      heddle_machine *m = heddle_machine_load(s, row[k].machine);
      heddle_plan *b = heddle_plan_annotated(p, "test.yaml", text, strlen(text),
                                             &(heddle_plan_options){.train = true, .machine = m});
      REQUIRE(heddle_plan_on(b, m, NULL));
      const char *r = heddle_result_report(heddle_result_run(heddle_plan_apply(b), m, NULL), HEDDLE_JSON);
      const char *bridges = strstr(r, "\"bridges\"");
      CHECK(says(r, row[k].says));
      CHECK(bridges && !strstr(strstr(bridges, "\"from\"") + 1, "\"from\"")); // no other
      heddle_session_free(s);
    }
}

static u32 below(u64 *seed, u32 n) { return (u32)(rng_next(seed) % n); }

// Scopes over stretches of six layers, some without any; kinds, sizes, devices, microbatches, what is stored
// and in which order, at random.
enum { NO_SHARES, EQUAL_SHARES, SOME_SHARES, CHOICES_BESIDE };
static const char *random_annotations(arena *a, u64 *seed, u32 *devices, int shares) {
  static const u32 sizes[] = {1, 2, 2, 4};
  const bool colocated = !below(seed, 4);
  const u32 common = sizes[below(seed, 4)];
  u32 sum = 0, n = 0;
  strbuf b = {.a = a};
  sb_put(&b, "heddle-annotate: 1\n");
  const bool dflt = !below(seed, 3);
  if (dflt)
    sb_fmt(&b, "default: {replicate: %u%s}\n", common, shares == EQUAL_SHARES ? ", shares: equal" : "");
  if (shares == EQUAL_SHARES) sb_put(&b, "replicas: equal\n");
  if (shares == SOME_SHARES && !below(seed, 3)) sb_put(&b, "replicas: [2, 1]\n");
  sb_put(&b, "scopes: [");
  for (u32 at = below(seed, 2); at < 6;) {
    const u32 end = at + below(seed, 3), to = MIN(end, 5), d = colocated ? common : sizes[below(seed, 4)];
    const bool split = below(seed, 2);
    sb_fmt(&b, "%s{layers: %u-%u, %s: %u", n++ ? ", " : "", at, to, split ? "split" : "replicate", d);
    const char *const parts[] = {"", "[7]", "[1, 2]", "", "[1, 1, 2, 2]"};
    if (shares == EQUAL_SHARES) sb_put(&b, ", shares: equal");
    if (shares == SOME_SHARES && below(seed, 2))
      sb_fmt(&b, ", shares: %s", d == 4 && split ? "[1, 3, 2, 2]" : parts[d]);
    if (!split && d > 1 && !below(seed, 3)) sb_fmt(&b, ", scopes: [{layers: %u, split: %u}]", at, d);
    sb_char(&b, '}');
    sum += d;
    at = to + 1 + below(seed, 2);
  }
  const char *const order[] = {"PreferForward", "PreferBackward"}, *const zero[] = {"v0", "v1", "\"\""};
  sb_put(&b, "]\nconfig: {");
  const u32 mb = 1 + below(seed, 3), which = below(seed, 2), level = below(seed, 3);
  if (shares != CHOICES_BESIDE)
    sb_fmt(&b, "num_micro_batch: %u, pipeline.strategy: %s, zero.level: %s, ", mb, order[which], zero[level]);
  sb_fmt(&b, "cluster.colocate_split_and_replicate: %s, cluster.device_place_prefer_intra_node: %s}\n",
         colocated ? "true" : "false", below(seed, 2) ? "true" : "false");
  *devices = below(seed, 3) ? 0 : (colocated ? common : sum + dflt * common) * 2;
  return sb_str(&b);
}

static const char machine_text[] = "1x2 v100 + 1x8 p100 + 1x6 v100 ib=50Gb/s";

// What annotations do not say.
static const char *random_choices(arena *a, u64 *seed) {
  static const char *const again[] = {"none", "selective", "full"},
                           *const order[] = {"gpipe", "1f1b", "zb-h1", "bfs"},
                           *const channel[] = {"", " overlap=none", " channels=one", " channels=pass"};
  strbuf b = {.a = a};
  sb_fmt(&b, "mb=%u zero=%u recompute=%s schedule=%s", 1 + below(seed, 3), below(seed, 4),
         again[below(seed, 3)], order[below(seed, 4)]);
  sb_fmt(&b, "%s%s%s", channel[below(seed, 4)], below(seed, 2) ? " grads=f32" : "",
         below(seed, 2) ? " tables=whole" : "");
  return sb_str(&b);
}

// How many of 60 can be planned; on: a machine, or NULL.
static u32 plan_randomly(u64 from, const char *on, int shares) {
  u32 planned_well = 0;
  for (u64 k = from; k < from + 60; k += test_step()) {
    arena *a = arena_new();
    u64 seed = k;
    u32 devices;
    const char *text = random_annotations(a, &seed, &devices, shares);
    heddle_session *s = heddle_session_new();
    const bool tied = shares == CHOICES_BESIDE; // a weight that task graphs of every kind read
    heddle_program *p = heddle_program_load(
        s, tied ? "gpt2:layers=6,hidden=16,heads=4,vocab=24,positions=6,ffn=32" : "mlp-xs:layers=6,hidden=16",
        &(heddle_load_options){
            .batch = on ? 288 : 48, .seq = tied ? 4 : 0, .loss = true, .dtype = tied ? "f16" : NULL});
    heddle_machine *m = on ? heddle_machine_load(s, on) : NULL;
    const char *choices = shares == CHOICES_BESIDE ? random_choices(a, &seed) : NULL;
    heddle_plan *b = heddle_plan_annotated(
        p, "random.yaml", text, strlen(text),
        &(heddle_plan_options){
            .train = true, .devices = devices, .machine = devices ? m : NULL, .strategy = choices});
    heddle_check *x = heddle_check_run(b, NULL);
    if (b && !heddle_check_passed(x)) printf("%s%s\n", text, heddle_session_messages(s));
    CHECK(!b || heddle_check_passed(x));
    const char *plan_text = heddle_plan_print(b);
    heddle_plan *again = plan_text ? heddle_plan_parse(p, "again.plan", plan_text, strlen(plan_text)) : NULL;
    CHECK(!b || says(heddle_plan_print(again), plan_text)); // reads back as the same plan
    CHECK(!b || heddle_program_validate(heddle_plan_apply(b)));
    planned_well += b != NULL;
    heddle_session_free(s);
    arena_free(a);
  }
  return planned_well;
}

TEST(annotate_random_plans_compute_what_the_model_computes) {
  CHECK(plan_randomly(0, NULL, NO_SHARES) > 50 / test_step());
}
TEST(annotate_random_shares_compute_what_the_model_computes) {
  const u32 some = plan_randomly(100, NULL, SOME_SHARES),
            by_time = plan_randomly(200, machine_text, NO_SHARES);
  CHECK_MSG(some > 20 / test_step() && by_time > 50 / test_step(),
            "%u with shares that are said, %u with shares by time", some, by_time);
}

TEST(annotate_random_choices_beside_compute_what_the_model_computes) {
  const u32 n = plan_randomly(500, NULL, CHOICES_BESIDE);
  CHECK_MSG(n > 40 / test_step(), "%u", n);
}

static double step_ms(heddle_program *p, heddle_machine *m, const char *text, u32 devices) {
  heddle_plan *b =
      heddle_plan_annotated(p, "random.yaml", text, strlen(text),
                            &(heddle_plan_options){.train = true, .devices = devices, .machine = m});
  heddle_plan_on(b, m, NULL);
  heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
  return r ? (double)heddle_result_time_ps(r) * 1e-9 : 0;
}

TEST(annotate_shares_by_time_are_faster_than_equal_ones) {
  u32 seen = 0, faster = 0;
  double sum = 0, worst = 0;
  for (u64 k = 300; k < 400; k += test_step()) {
    arena *a = arena_new();
    u64 seed = k, again = k;
    u32 devices;
    const char *by_time = random_annotations(a, &seed, &devices, NO_SHARES),
               *equal = random_annotations(a, &again, &devices, EQUAL_SHARES);
    heddle_session *s = heddle_session_new();
    heddle_program *p = heddle_program_load(s, "mlp-xs:layers=6,hidden=4096",
                                            &(heddle_load_options){.batch = 46080, .loss = true});
    heddle_machine *m = heddle_machine_load(s, machine_text);
    const double one = devices ? step_ms(p, m, by_time, devices) : 0,
                 other = one > 0 ? step_ms(p, m, equal, devices) : 0;
    if (other > 0) {
      seen++, faster += one < other;
      sum += one / other, worst = MAX(worst, one / other);
      if (one > other) printf("%s%g ms, %g ms with equal shares\n", by_time, one, other);
    }
    heddle_session_free(s);
    arena_free(a);
  }
  CHECK_MSG(worst <= 1 && (!test_all_cases() || (seen > 20 && faster > 4)),
            "%u seen, %u faster, on average %.3f of the time, at worst %.3f", seen, faster, sum / seen,
            worst);
}

// A pipeline of two task graphs whose replicas are on V100s and on P100s: every way to deal out its samples.
TEST(annotate_shares_of_replicas_are_near_the_best_of_all) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, "mlp-xs:layers=4,hidden=4096",
                                          &(heddle_load_options){.batch = 4 * 96, .loss = true});
  heddle_machine *m = heddle_machine_load(s, "1x2 v100 + 1x2 p100 ib=50Gb/s");
  static const char text[] =
      "heddle-annotate: 1\nscopes: [{layers: 0-1, replicate: 1}, {layers: 2-3, replicate: 1}]\n"
      "config: {num_micro_batch: 4}\n";
  const double by_time = step_ms(p, m, text, 4);
  double best = by_time;
  for (u32 a = 48; a < 96; a++) {
    char said[300];
    snprintf(said, sizeof said, "%sreplicas: [%u, %u]\n", text, a, 96 - a);
    best = MIN(best, step_ms(p, m, said, 4));
  }
  CHECK_MSG(by_time > 0 && by_time < 1.02 * best, "%g ms, the best of all takes %g ms", by_time, best);
  heddle_session_free(s);
}

TEST(annotate_any_text_ends_in_a_plan_or_a_diagnostic) {
  static const char good[] =
      "heddle-annotate: 1\ndevices: 8\ndefault: {replicate: 2, name: d}\n"
      "scopes: [{layers: 0-1, replicate: 2, scopes: [{op: matmul, split: 2}]}, {match: \"h.2*\", split: 4}]\n"
      "config: {pipeline: {num_micro_batch: 2, strategy: PreferForward}, zero.level: v1, auto_parallel: "
      "false}\n";
  static const char other[] = "0129:,{}[]-\" \nascoplit";
  heddle_session *s = NULL;
  heddle_program *p = NULL;
  for (u64 k = 0; k < 3000; k++) {
    char text[sizeof good];
    u64 seed = k;
    if (k % 100 == 0) {
      heddle_session_free(s);
      s = heddle_session_new();
      p = heddle_program_load(s, "mlp-xs:layers=4,hidden=16",
                              &(heddle_load_options){.batch = 48, .loss = true});
    }
    memcpy(text, good, sizeof good);
    for (u32 n = below(&seed, 4); n-- > 0;)
      text[below(&seed, sizeof good - 1)] = other[below(&seed, sizeof other - 1)];
    const u32 len = below(&seed, 8) ? sizeof good - 1 : below(&seed, sizeof good);
    heddle_diagnostic d;
    u32 before = 0;
    while (heddle_session_diagnostic(s, before, &d)) before++;
    heddle_plan *b =
        heddle_plan_annotated(p, "mutant.yaml", text, len, &(heddle_plan_options){.train = true});
    CHECK(b || heddle_session_diagnostic(s, before, &d));
    CHECK(!b || heddle_plan_apply(b) || heddle_session_diagnostic(s, before, &d));
    heddle_plan_free(b);
  }
  heddle_session_free(s);
}
