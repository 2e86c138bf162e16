// test_run.c - ranks that run in threads of their own, joined by messages: after some steps every parameter and state is
// what the evaluator of all ranks has, and so is the loss; what happens when a rank is gone; and what ranks record.
#include "diagnose/diagnose.h"
#include "eval/ticks.h"
#include "mailbox.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 3 };

// ---- one rank ----------------------------------------------------------------------------------------------
typedef struct {
  mailbox box, aside; // aside: of what goes on beside computation
  const char *model, *strategy, *optimizer;
  heddle_load_options load;
  u32 leaves_after;      // steps; 0: it stays
  const char *record;    // folder; NULL: nothing is recorded
  u64 most;              // events
  i64 ring;              // bytes of chunks; 0: from each to each
  bool waits;            // nothing goes on beside computation
  heddle_session *s;     // of rank 0, kept: with the answers
  heddle_tensors *after; // parameters
  double loss[STEPS];
  bool ok;
  char why[256];
} rank_job;

static heddle_program *distributed(heddle_session *s, const rank_job *j) {
  heddle_program *p = heddle_program_load(s, j->model, &j->load);
  const heddle_plan_options o = {.train = true, .optimizer = {.name = j->optimizer}};
  return heddle_plan_apply(heddle_plan_make(p, j->strategy, &o));
}

static void *run_rank(void *arg) {
  rank_job *j = arg;
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  const heddle_link beside = {
      .rank = j->box.rank, .arg = &j->aside, .send = send_to, .receive = receive_from};
  heddle_link link = beside;
  link.arg = &j->box, link.beside = j->waits ? NULL : &beside;
  heddle_run *r = heddle_run_new(d, &link, heddle_tensors_random(d, 7));
  heddle_run_ring(r, j->ring);
  j->ok = r && (!j->record || heddle_run_record(r, j->most));
  for (u32 k = 0; k < STEPS && j->ok && !(j->leaves_after && k == j->leaves_after); k++)
    j->ok = heddle_run_step(r) && heddle_run_loss(r, &j->loss[k]);
  if (!j->leaves_after && j->ok) j->after = heddle_run_parameters(r), j->ok = j->after;
  if (j->ok && j->record) j->ok = heddle_run_recorded(r, j->record);
  snprintf(j->why, sizeof j->why, "%s", heddle_session_messages(s));
  leave(j->box.p, j->box.rank), leave(j->aside.p, j->box.rank);
  if (j->box.rank)
    heddle_session_free(s);
  else
    j->s = s;
  return NULL;
}

static void run_all(rank_job *j, post *p, u32 ranks) {
  pthread_t t[RANKS];
  post aside;
  *p = aside = (post){.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  for (u32 k = 1; k < ranks; k++) {
    const u32 leaves = j[k].leaves_after;
    j[k] = j[0], j[k].leaves_after = leaves;
  }
  for (u32 k = 0; k < ranks; k++) j[k].box = (mailbox){p, k}, j[k].aside = (mailbox){&aside, k};
  for (u32 k = 0; k < ranks; k++) pthread_create(&t[k], NULL, run_rank, &j[k]);
  for (u32 k = 0; k < ranks; k++) pthread_join(t[k], NULL);
  post_free(p), post_free(&aside);
}

// ---- the reference: all ranks in one evaluator ---------------------------------------------------------------
static float *elements(const heddle_tensor *t, int64_t *n) {
  *n = 1;
  for (u32 d = 0; d < t->ndims; d++) *n *= t->dims[d];
  return (float *)(uintptr_t)t->data;
}

static void equals_evaluator(const rank_job *j, const char *what) {
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  heddle_tensors *in = heddle_tensors_random(d, 7);
  heddle_tensor x, y;
  int64_t n;
  double loss[STEPS];
  REQUIRE(heddle_tensors_train(in, d, NULL, STEPS, loss));
  for (u32 k = 0; k < STEPS; k++)
    CHECK_MSG(j->loss[k] == loss[k], "%s: loss %.9g in step %u, the evaluator's is %.9g", what, j->loss[k], k,
              loss[k]);
  u32 floats = 0;
  for (u32 k = 0; heddle_tensors_get(in, k, &x); k++) {
    REQUIRE(heddle_tensors_get(j->after, k, &y));
    CHECK_STR(x.name, y.name);
    if (strcmp(x.dtype, "f32") != 0) continue;
    const float *a = elements(&x, &n), *b = elements(&y, &n);
    for (int64_t i = 0; i < n; i++, floats++)
      if (a[i] != b[i]) {
        CHECK_MSG(false, "%s: %s[%lld] is %.9g, the evaluator has %.9g", what, x.name, (long long)i,
                  (double)b[i], (double)a[i]);
        break;
      }
  }
  CHECK(floats > 1000 && j->loss[STEPS - 1] != j->loss[0]); // moments are random, too: it may rise at first
  heddle_session_free(s);
}

// To the bit, whatever the plan does: the same sums in the same order.
TEST(run_equals_the_evaluator) {
  static const char mlp[] = "mlp-xs:layers=4,hidden=32";
  static const char *const gpt = "gpt2:layers=4,hidden=32,heads=4,vocab=64";
  static const char evoformer[] = "alphafold2:layers=2,hidden=16,heads=2,head_dim=8,ffn=24,vocab=12,msa=2,"
                                  "pair=16,positions=8,recycle=3";
  static const struct {
    const char *model, *strategy, *optimizer;
    u32 ranks;
  } cases[] = {
      {mlp, "dp=2", "sgd", 2},
      {gpt, "dp=2 zero=1", "adam", 2},
      {gpt, "tp=2 sp", "adam", 2},
      {gpt, "pp=2 mb=4", "adamw", 2},
      {gpt, "pp=2 v=2 mb=4 schedule=interleaved recompute=full", "adam", 2},
      {gpt, "dp=2 tp=2 zero=3 recompute=selective", "momentum", 4},
      {gpt, "dp=2 pp=2 mb=2 zero=2 schedule=zb-h1", "adam", 4},
      {gpt, "pp=4 mb=4 schedule=chimera", "adam", 4},
      {gpt, "dp=2 dp.shares=3/1 pp=2 mb=2", "adam", 4},
      {"bert-large:layers=2,hidden=32,heads=2,vocab=64", "tp=2 pp=2 mb=2", "adafactor", 4},
      {gpt, "dp=2 zero=3 offload=params+grads+states+acts prefetch=1", "adam", 2},
      {gpt, "pp=2 mb=4 offload=params+grads+states+acts", "adam", 2},
      {gpt, "dp=2 sync=ps", "adam", 2},
      {gpt, "dp=2 pp=2 mb=2 sync=ps", "momentum", 4},
      {gpt, "dp=4 sync=ps", "adam", 4},
      {gpt, "pp=2 mb=4 schedule=pipedream", "adam", 2},
      {gpt, "pp=4 mb=8 schedule=pipedream recompute=full", "sgd", 4},
      {gpt, "dp=2 pp=2 mb=4 schedule=pipedream-2bw zero=1", "adam", 4},
      {gpt, "tp=2 dp=2 materialise=p2p", "adam", 4},
      {gpt, "tp=2 pp=2 mb=2 materialise=intra", "adam", 4},
      {gpt, "tp=2 coshard=2", "adam", 2},
      {gpt, "dp=2 tp=2 sp attention=fused", "adam", 4},
      {gpt, "pp=2 mb=2 recompute=full attention=fused", "adam", 2},
      {"t5-small:layers=2,hidden=32,heads=4,ffn=32,vocab=32", "tp=2 mb=2 attention=fused", "adam", 2},
      {gpt, "pp=2 mb=4 schedule=interlaced", "adam", 2},
      {gpt, "pp=4 mb=4 schedule=interlaced-block", "adam", 4},
      {gpt, "pp=2 mb=4 schedule=dualpipe", "adam", 2},
      {gpt, "pp=2 mb=4 schedule=gems", "adam", 2},
      {evoformer, "tp=2 axial", "adam", 2},
      {evoformer, "pp=2 mb=4 schedule=3f1b", "adam", 2},
  };
  for (u32 k = 0; k < COUNT_OF(cases); k += test_step()) {
    post p;
    rank_job j[RANKS] = {{.model = cases[k].model,
                          .strategy = cases[k].strategy,
                          .optimizer = cases[k].optimizer,
                          .load = {.batch = 8, .seq = cases[k].model == mlp ? 0 : 8, .loss = true}}};
    run_all(j, &p, cases[k].ranks);
    bool ok = true;
    for (u32 r = 0; r < cases[k].ranks; r++) {
      ok = ok && j[r].ok;
      CHECK_MSG(j[r].ok, "%s: rank %u: %s", cases[k].strategy, r, j[r].why);
    }
    if (ok) equals_evaluator(&j[0], cases[k].strategy);
    heddle_session_free(j[0].s);
  }
}

// The largest difference of a float of rank 0 from the evaluator's, over the root mean square of its tensor.
static double off_evaluator(const rank_job *j) {
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  heddle_tensors *in = heddle_tensors_random(d, 7);
  heddle_tensor x, y;
  int64_t n;
  double loss[STEPS], worst = 0;
  if (!heddle_tensors_train(in, d, NULL, STEPS, loss)) worst = INFINITY;
  for (u32 k = 0; k < STEPS; k++) worst = fmax(worst, fabs(j->loss[k] - loss[k]) / loss[k]);
  for (u32 k = 0; heddle_tensors_get(in, k, &x) && heddle_tensors_get(j->after, k, &y); k++) {
    if (strcmp(x.dtype, "f32") != 0) continue;
    const float *a = elements(&x, &n), *b = elements(&y, &n);
    double square = 0;
    for (int64_t i = 0; i < n; i++) square += (double)a[i] * (double)a[i];
    for (int64_t i = 0; i < n; i++)
      worst = fmax(worst, fabs((double)a[i] - (double)b[i]) / sqrt(square / (double)n));
  }
  heddle_session_free(s);
  return worst;
}

// Around a ring sums are of another order: next to the evaluator. Momentum, for Adam makes 1 of a gradient of rounding.
TEST(run_around_a_ring) {
  static const struct {
    const char *strategy;
    u32 ranks;
  } cases[] = {
      {"dp=2", 2},        {"dp=2 zero=3", 2}, {"tp=2 sp", 2},          {"dp=3", 3},
      {"dp=3 zero=2", 3}, {"dp=4 zero=1", 4}, {"dp=2 tp=2 zero=3", 4}, {"dp=2 dp.shares=2/1 pp=2 mb=2", 4}};
  static const i64 chunks[] = {100, 1 << 20};
  for (u32 k = 0; k < COUNT_OF(cases); k += test_step())
    for (u32 i = 0; i < COUNT_OF(chunks); i++) {
      post p;
      rank_job j[RANKS] = {{.model = "gpt2:layers=2,hidden=36,heads=6,vocab=60",
                            .strategy = cases[k].strategy,
                            .optimizer = "momentum",
                            .ring = chunks[i],
                            .load = {.batch = 12, .seq = 8, .loss = true}}};
      run_all(j, &p, cases[k].ranks);
      bool ok = true;
      for (u32 r = 0; r < cases[k].ranks; r++) {
        ok = ok && j[r].ok;
        CHECK_MSG(j[r].ok, "%s: rank %u: %s", cases[k].strategy, r, j[r].why);
      }
      const double off = ok ? off_evaluator(&j[0]) : 0;
      CHECK_MSG(off <= 1e-5, "%s in chunks of %lld: off by %g", cases[k].strategy, (long long)chunks[i], off);
      heddle_session_free(j[0].s);
    }
}

TEST(run_tells_who_is_gone) {
  post p;
  rank_job j[RANKS] = {
      {.model = "mlp-xs:layers=4,hidden=32", .strategy = "pp=2 mb=2", .load = {.batch = 8, .loss = true}}};
  j[1].leaves_after = 1;
  run_all(j, &p, 2);
  CHECK(!j[0].ok && strstr(j[0].why, "error[E0703]: rank 0 does not hear rank 1 any more"));
  heddle_session_free(j[0].s);
}

TEST(run_needs_ranks) {
  heddle_session *s = heddle_session_new();
  heddle_program *m = heddle_program_load(s, "mlp-xs:layers=2,hidden=16", &(heddle_load_options){.batch = 4});
  const heddle_link none = {.rank = 0};
  heddle_tensors *in = heddle_tensors_random(m, 1);
  CHECK(in && !heddle_run_new(m, &none, in) && heddle_session_errors(s) == 1);
  CHECK(!heddle_run_new(NULL, &none, in) && !heddle_run_step(NULL) && !heddle_run_parameters(NULL));
  heddle_session_free(s);
}

// ---- recordings --------------------------------------------------------------------------------------------
static const char *folder_of(char *path, size_t size, const char *name) {
  snprintf(path, size, "%s/tests/recorded-%d-%s", test_build(), (int)getpid(), name);
  return path;
}
static void remove_folder(const char *dir) {
  char path[1200];
  for (u32 r = 0; r < RANKS; r++) snprintf(path, sizeof path, "%s/rank%u.json", dir, r), unlink(path);
  rmdir(dir);
}

static void record_all(rank_job *j, u32 ranks, const char *dir) {
  post p;
  j->record = dir;
  run_all(j, &p, ranks);
  for (u32 r = 0; r < ranks; r++) CHECK_MSG(j[r].ok, "%s: rank %u: %s", j->strategy, r, j[r].why);
  heddle_session_free(j[0].s);
}

// Every communication is there on all of its members, and nothing arrives before it was sent.
static void all_are_tied(ctx *c, arena *a, const char *dir, const char *what, u32 ranks) {
  job *of = job_open(c, a, 1, &dir);
  REQUIRE(of && of->n == ranks);
  const match *m = match_job(of, a);
  REQUIRE(m);
  u32 lone = 0, messages = 0, late = 0, several = 0, pushed = 0, pulled = 0;
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *r = &m->row.v[k];
    const match_member *v = &m->member.v[r->first];
    const bool pair = comm_who_of(c, r->op) == COMM_WHO_MESSAGE;
    lone += r->n < 2 || (r->size && r->n != r->size) || (pair && r->n != 2);
    several += !pair, messages += pair;
    pushed += !strcmp(sym_str(c, r->group), "PUSH"), pulled += !strcmp(sym_str(c, r->group), "PULL");
    CHECK(!pair || (v[0].leaves && !v[1].leaves && !strcmp(sym_str(c, r->op), "send")));
    for (u32 i = 0; i < r->n; i++) late += v[pair ? 1 : i].end_ps < v[pair ? 0 : r->late].start_ps;
  }
  CHECK_MSG(!lone && !late && !m->problem.n,
            "%s: %u without all members, %u end before others begin, %u problems", what, lone, late,
            m->problem.n);
  CHECK_MSG(m->row.n > 0 && (strstr(what, "pp=") ? messages > 0 : several + messages > 0),
            "%s: nothing was sent", what);
  CHECK_MSG(strstr(what, "sync=ps") ? pushed > 20 && pulled >= pushed : !pushed && !pulled,
            "%s: %u gradients pushed, %u weights pulled", what, pushed, pulled);
  job_close(of);
}

// As often as the simulation of the same program has it, in every step: what executes is what is predicted.
static void as_often_as_predicted(const rank_job *j, const char *dir) {
  heddle_session *s = heddle_session_new();
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_result *p = heddle_result_run(distributed(s, j), m, &(heddle_simulate_options){.timeline = true});
  const heddle_trace_options o = {.predicted = p, .steps = "1"};
  const char *text = heddle_trace_ask(s, "compare", 1, &dir, &o, HEDDLE_JSON), *at = text ? text : "";
  u32 rows = 0;
  CHECK_MSG(text, "%s: %s", j->strategy, heddle_session_messages(s));
  for (double measured, predicted; (at = strstr(at, "\"measured_count\": ")); at++) {
    REQUIRE(sscanf(at, "\"measured_count\": %lf, \"predicted_count\": %lf", &measured, &predicted) == 2);
    CHECK_MSG(!predicted || measured == predicted, "%s: %g of %g: %.200s", j->strategy, measured, predicted,
              at - 100);
    rows += predicted > 0;
  }
  CHECK(rows > 20);
  heddle_session_free(s);
}

static double figure(const char *answer, const char *key) {
  const char *at = answer ? strstr(answer, key) : NULL;
  return at ? strtod(at + strlen(key) + 3, NULL) : NAN; // "key": 1
}

TEST(record_ties_the_ends_of_everything) {
  static const struct {
    const char *strategy;
    u32 ranks;
    i64 ring;
  } cases[] = {{"dp=2 zero=1", 2, 0},
               {"dp=2 zero=1", 2, 1000},
               {"dp=2 tp=2 zero=3", 4, 4000},
               {"dp=2 dp.shares=3/1 pp=2 mb=2", 4, 1 << 20},
               {"dp=4 sync=ps", 4, 0},
               {"dp=2 pp=2 mb=2 sync=ps", 4, 0},
               {"pp=2 mb=4", 2, 0},
               {"dp=2 tp=2 zero=3", 4, 0},
               {"dp=2 pp=2 mb=2 zero=2 schedule=zb-h1", 4, 0},
               {"pp=4 mb=4 schedule=chimera", 4, 0},
               {"dp=2 dp.shares=3/1 pp=2 mb=2", 4, 0}};
  char dir[1024];
  folder_of(dir, sizeof dir, "ties");
  for (u32 k = 0; k < COUNT_OF(cases); k += test_step()) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    rank_job j[RANKS] = {{.model = "gpt2:layers=4,hidden=32,heads=4,vocab=64",
                          .strategy = cases[k].strategy,
                          .optimizer = "adam",
                          .ring = cases[k].ring,
                          .waits = true,
                          .load = {.batch = 8, .seq = 8, .loss = true}}};
    record_all(j, cases[k].ranks, dir);
    all_are_tied(c, a, dir, cases[k].strategy, cases[k].ranks);
    as_often_as_predicted(&j[0], dir);
    heddle_session *s = heddle_session_new();
    const char *path = dir, *text = heddle_trace_ask(s, "replay", 1, &path, NULL, HEDDLE_JSON);
    const double was = figure(text, "recorded_ps"), is = figure(text, "replayed_ps");
    CHECK_MSG(fabs(is - was) <= 0.05 * was, "%s: replayed %g, recorded %g", cases[k].strategy, is, was);
    CHECK(figure(text, "communications_alone") == 0 && figure(text, "operations_left_out") == 0);
    heddle_session_free(s);
    remove_folder(dir);
    arena_free(a);
    ctx_free(c);
  }
}

// What goes on beside computation has a call that began it and one that waits for it, and both ends of every message.
TEST(record_beside_computation) {
  char dir[1024];
  folder_of(dir, sizeof dir, "beside");
  ctx *c = ctx_new();
  arena *a = arena_new();
  rank_job j[RANKS] = {{.model = "gpt2:layers=4,hidden=32,heads=4,vocab=64",
                        .strategy = "dp=2 sync=ps",
                        .optimizer = "adam",
                        .load = {.batch = 8, .seq = 8, .loss = true}}};
  record_all(j, 2, dir);
  all_are_tied(c, a, dir, j->strategy, 2);
  as_often_as_predicted(&j[0], dir);
  heddle_session *s = heddle_session_new();
  const char *path = dir, *text = heddle_trace_ask(s, "replay", 1, &path, NULL, HEDDLE_JSON);
  CHECK(figure(text, "communications_alone") == 0 && figure(text, "operations_left_out") == 0);
  heddle_session_free(s);
  remove_folder(dir);
  arena_free(a);
  ctx_free(c);
}

// Where the processor has no counter that can be used.
TEST(record_by_the_clock_alone) {
  char dir[1024];
  folder_of(dir, sizeof dir, "clock");
  ticks_choose();
  const bool is = ticks_of_processor;
  ctx *c = ctx_new();
  arena *a = arena_new();
  rank_job j[RANKS] = {{.model = "gpt2:layers=4,hidden=32,heads=4,vocab=64",
                        .strategy = "dp=2 pp=2 mb=2",
                        .optimizer = "adam",
                        .load = {.batch = 8, .seq = 8, .loss = true}}};
  ticks_of_processor = false;
  record_all(j, 4, dir);
  ticks_of_processor = is;
  all_are_tied(c, a, dir, j->strategy, 4);
  as_often_as_predicted(&j[0], dir);
  remove_folder(dir);
  arena_free(a);
  ctx_free(c);
}

// Rank 1 on another host whose clock is 50 ms ahead: found from what the ranks sent each other.
TEST(record_clocks_are_found) {
  char dir[1024], path[1200];
  rank_job j[RANKS] = {
      {.model = "gpt2:layers=4,hidden=96,heads=4,vocab=64", // longer than the clocks are apart
       .strategy = "dp=2 pp=2 mb=2",
       .optimizer = "sgd",
       .load = {.batch = 32, .seq = 64, .loss = true}}};
  folder_of(dir, sizeof dir, "clocks");
  record_all(j, 4, dir);
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view f;
  snprintf(path, sizeof path, "%s/rank1.json", dir);
  REQUIRE(file_map(c, path, &f));
  char *text = arena_strndup(a, (const char *)f.data, f.size), *rest;
  file_unmap(&f);
  char *base = strstr(text, "\"baseTimeNanoseconds\":"), *host = strstr(text, "\"host\":\"");
  REQUIRE(base && host);
  const long long ns = strtoll(base + 22, &rest, 10);
  host[8] = '#'; // another name, of the same length
  *base = 0;
  strbuf b = {.a = a};
  sb_fmt(&b, "%s\"baseTimeNanoseconds\":%lld%s", text, ns + 50000000, rest);
  REQUIRE(file_write(c, path, b.v, b.n));
  heddle_session *s = heddle_session_new();
  const char *from = dir, *answer = heddle_trace_ask(s, "align", 1, &from, NULL, HEDDLE_JSON);
  const char *rank1 = answer ? strstr(answer, "\"rank\": 1,") : NULL;
  const double off = figure(rank1, "offset_ps");
  CHECK_MSG(fabs(off - 50e9) < 3e9, "offset %g ps, 50 ms was added", off);
  answer = heddle_trace_ask(s, "replay", 1, &from, NULL, HEDDLE_JSON);
  CHECK_MSG(figure(answer, "clocks_corrected_ps") > 45e9, "%s", answer ? answer : heddle_session_messages(s));
  heddle_session_free(s);
  remove_folder(dir);
  arena_free(a);
  ctx_free(c);
}

// A step is recorded whole or not at all.
TEST(record_keeps_so_many_events) {
  char dir[1024];
  rank_job j[RANKS] = {{.model = "mlp-xs:layers=4,hidden=32",
                        .strategy = "dp=2",
                        .optimizer = "sgd",
                        .load = {.batch = 8, .loss = true},
                        .most = 100}};
  folder_of(dir, sizeof dir, "most");
  record_all(j, 2, dir);
  CHECK_MSG(strstr(j[0].why, "warning[W0102]") && strstr(j[0].why, "not the 1 after"), "%s", j[0].why);
  CHECK(!*j[1].why);
  heddle_session *s = heddle_session_new();
  const char *from = dir, *answer = heddle_trace_ask(s, "info", 1, &from, NULL, HEDDLE_JSON);
  CHECK(answer && strstr(answer, "\"steps\": \"1-2\""));
  CHECK(!heddle_run_record(NULL, 0) && !heddle_run_recorded(NULL, from));
  heddle_session_free(s);
  remove_folder(dir);
}
