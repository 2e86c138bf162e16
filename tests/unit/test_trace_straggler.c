// test_trace_straggler.c - pipelined jobs: the published analysis of two real ones, figure by figure; the made-up ones
// of the repository, whose times were worked out elsewhere by the same rules; and files that are damaged.
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <zlib.h>

typedef struct {
  ctx *c;
  arena *a;
  straggler *s;
  straggler_blame *b;
} bed;

static bed open_bed(const char *path, const char *steps) {
  bed x = {.c = ctx_new(), .a = arena_new()};
  job *j = job_open(x.c, x.a, 1, &path);
  x.s = j ? straggler_of_job(j, x.a, steps) : NULL;
  job_close(j);
  CHECK_MSG(x.s, "%s", diag_render(x.c, x.a));
  REQUIRE(x.s);
  x.b = straggler_blame_of(x.a, x.s);
  return x;
}
static void close_bed(bed *x) {
  arena_free(x->a);
  ctx_free(x->c);
}

// ---- the published figures ------------------------------------------------------------------------------
static const json *read_json(bed *x, const char *path) {
  file_view f;
  REQUIRE(file_map(x->c, path, &f));
  const json *j = json_parse(x->c, x->a, sym_of(x->c, path), (const char *)f.data, f.size);
  CHECK_MSG(j, "%s", diag_render(x->c, x->a));
  REQUIRE(j);
  return j;
}
static double figure(const json *j, const char *key) {
  const json *v = json_get(j, key);
  CHECK_MSG(v && v->kind == JSON_NUM, "no %s", key);
  REQUIRE(v && v->kind == JSON_NUM);
  return v->num;
}
static const json *part_of(const json *j, const char *key) {
  const json *v = json_get(j, key);
  CHECK_MSG(v && v->kind == JSON_OBJ, "no %s", key);
  REQUIRE(v && v->kind == JSON_OBJ);
  return v;
}

static void check_scores(const bed *x, const json *want, const straggler_score *got, u32 n) {
  CHECK_EQ_I64(n, want->n);
  for (u32 k = 0; k < n; k++)
    CHECK_CLOSE(got[k].alone_ps / x->b->ideal_ps, figure(want, arena_printf(x->a, "%u", k)), 1e-6);
}

// file: of the job. whole: it has the start of its steps, so they take as long as recorded.
static void check_published(const char *name, const char *file, bool whole) {
  char path[256];
  snprintf(path, sizeof path, "traces/bytedance_straggler/%s", file);
  bed x = open_bed(test_data(path), NULL);
  const straggler *s = x.s;
  const straggler_blame *b = x.b;
  snprintf(path, sizeof path, "traces/bytedance_straggler/data__result-%s.json", name);
  const json *want = read_json(&x, test_data(path)), *base = part_of(want, "step_t_nodelay"),
             *ideal = part_of(want, "step_t_noblk"), *slow = part_of(want, "blocking_step_slowdown"),
             *recorded = part_of(want, "step_t_base");
  CHECK_EQ_I64(s->nsteps, base->n);
  CHECK_EQ_I64(s->left_out, 0);
  for (u32 i = 0; i < s->nsteps; i++) {
    const char *step = arena_printf(x.a, "%u", s->step[i]);
    CHECK_CLOSE((double)s->span_ps[i] / 1e12, figure(recorded, step), whole ? 1e-6 : 2e-4);
    CHECK_CLOSE((double)b->replayed_step_ps[i] / 1e12, figure(base, step), 2e-6);
    CHECK_CLOSE((double)b->ideal_step_ps[i] / 1e12, figure(ideal, step), 2e-6);
    CHECK_CLOSE((double)b->replayed_step_ps[i] / (double)b->ideal_step_ps[i], figure(slow, step), 2e-6);
  }
  CHECK_CLOSE(b->replayed_ps / b->ideal_ps, figure(want, "blocking_slowdown"), 1e-6);
  check_scores(&x, part_of(want, "blocking_decompose_by_dp_rank"), b->data, s->ndata);
  check_scores(&x, part_of(want, "blocking_decompose_by_stage"), b->stage, s->nstages);
  const json *types = part_of(want, "blocking_decompose_by_optype");
  CHECK_EQ_I64(b->ngroups, types->n);
  for (u32 k = 0; k < b->ngroups; k++)
    CHECK_CLOSE(b->type[k].alone_ps / b->ideal_ps, figure(types, b->group[k]), 1e-6);
  const double lost = b->replayed_ps - b->ideal_ps;
  snprintf(path, sizeof path, "traces/bytedance_straggler/data__mw-%s.json", name);
  const json *mw = read_json(&x, test_data(path));
  CHECK_CLOSE((b->replayed_ps - b->workers_repaired_ps) / lost, figure(mw, "Mw"), 1e-5);
  CHECK_CLOSE(b->workers_repaired_ps / 1e12, figure(mw, "trem"), 2e-6);
  CHECK_CLOSE(b->worker[b->slowest[0]].alone_ps / 1e12, figure(mw, "tadd"), 2e-6);
  snprintf(path, sizeof path, "traces/bytedance_straggler/data__ms-%s.json", name);
  const json *ms = read_json(&x, test_data(path));
  const straggler_score last = b->stage[s->nstages - 1];
  CHECK_CLOSE((b->replayed_ps - last.repaired_ps) / lost, figure(ms, "Ms"), 1e-5);
  CHECK_CLOSE(last.repaired_ps / 1e12, figure(ms, "trem"), 2e-6);
  CHECK_CLOSE(last.alone_ps / 1e12, figure(ms, "tadd"), 2e-6);
  close_bed(&x);
}
TEST(straggler_slow_stage_has_the_published_figures) {
  check_published("ST", "data__timeline-ST.json.gz", false);
}
TEST(straggler_slow_worker_has_the_published_figures) {
  check_published("AR", "data__timeline-AR.json.gz", false);
}
TEST(straggler_table_of_a_slow_stage_has_the_published_figures) {
  check_published("ST", "data__trace-ST.parquet", true);
}
TEST(straggler_table_of_a_slow_worker_has_the_published_figures) {
  check_published("AR", "data__trace-AR.parquet", true);
}

// The published ideal timeline, read as a recording, is ours: nobody is late in it, and steps take as long.
TEST(straggler_ideal_timeline_is_the_published_one) {
  bed x = open_bed(test_data("traces/bytedance_straggler/data__timeline-ST.json.gz"), NULL);
  bed y = open_bed(test_data("traces/bytedance_straggler/data__ideal-timeline-ST.json.gz"), NULL);
  CHECK_EQ_I64(y.s->n, x.s->n);
  CHECK_CLOSE(y.b->replayed_ps, x.b->ideal_ps, 2e-6);
  CHECK_CLOSE(y.b->replayed_ps / y.b->ideal_ps, 1, 2e-6);
  for (u32 i = 0; i < y.s->nsteps; i++) CHECK_CLOSE((double)y.s->span_ps[i], x.b->ideal_ps, 1e-5);
  close_bed(&x), close_bed(&y);
}

// ---- made-up jobs ---------------------------------------------------------------------------------------
// Their times were worked out by tools/make-pipeline-trace.py: a replay gives them again, to the picosecond.
static void check_again(const char *path, u32 nsteps, u32 nops) {
  bed x = open_bed(path, NULL);
  CHECK_EQ_I64(x.s->nsteps, nsteps);
  CHECK_EQ_I64(x.s->nops, nops);
  CHECK_EQ_I64(x.s->nmicro, 4);
  for (u32 i = 0; i < x.s->nsteps; i++) CHECK_EQ_I64(x.b->replayed_step_ps[i], x.s->span_ps[i]);
  CHECK_EQ_I64(x.b->slowest[0], 3);
  close_bed(&x);
}
TEST(straggler_made_up_job_takes_what_was_worked_out) {
  check_again("examples/traces/pipeline/timeline.json.gz", 3, 212);
}
TEST(straggler_interleaved_job_takes_what_was_worked_out) {
  check_again("tests/interleaved/timeline.json.gz", 1, 452);
}

TEST(straggler_changes_do_what_they_say) {
  bed x = open_bed("examples/traces/pipeline/timeline.json.gz", NULL);
  const straggler *s = x.s;
  const size_t all = (size_t)s->nsteps * s->n;
  i64 *dur = NEWN(x.a, i64, all), *step = NEWN(x.a, i64, s->nsteps);
  static const struct {
    const char *text;
    u32 touched;
  } row[] = {{"worker 3 = ideal", 30},
             {"all = ideal", 212},
             {"stage 1 = ideal", 60},
             {"data 1 = ideal", 106},
             {"all = 0", 212},
             {"forward-compute x 2", 32},
             {"stage 0,3 embedding* = 0", 4},
             {"all x 3", 212},
             {"microbatch 2 worker 3 x 0.5", 6},
             {"rank 0-2 optimizer = 3 ms", 3},
             {"backward-* x 1", 32 + 48},
             {"all x 1", 212}};
  job_change ch;
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    memcpy(dur, s->recorded_ps, all * sizeof *dur);
    REQUIRE(changes_parse(x.c, x.a, 1, &row[k].text, &ch));
    CHECK_MSG(straggler_apply(x.c, s, &ch, dur) == row[k].touched, "%s", row[k].text);
    u32 differ = 0;
    for (u32 i = 0; i < s->n; i++) differ += dur[i] != s->recorded_ps[i];
    CHECK_MSG(differ <= row[k].touched && (differ || strstr(row[k].text, "x 1")), "%s: %u", row[k].text,
              differ);
    straggler_replay(s, dur, step);
    const double mean = straggler_mean(s, step);
    if (!k) CHECK(mean == x.b->worker[3].repaired_ps);
    if (k == 1) CHECK(mean == x.b->ideal_ps);
    if (k == 2) CHECK(mean == x.b->stage[1].repaired_ps);
    if (k == 3) CHECK(mean == x.b->data[1].repaired_ps);
    if (k == 4) CHECK(mean == 0);
    if (k == 7) CHECK(mean == 3 * x.b->replayed_ps);
    if (k == 11) CHECK(mean == x.b->replayed_ps);
  }
  close_bed(&x);
}

// ---- damaged files --------------------------------------------------------------------------------------
static char *unpacked(arena *a, const char *path, size_t *n) {
  gzFile f = gzopen(path, "rb");
  REQUIRE(f);
  char *text = NEWN(a, char, 1 << 20);
  const int got = gzread(f, text, (1 << 20) - 1);
  gzclose(f);
  REQUIRE(got > 0);
  text[got] = 0;
  *n = (size_t)got;
  return text;
}

typedef struct {
  ctx *c;
  arena *a;
  const char *path;
  char *text;
  size_t n;
  trace t;
  trace_read_about about;
} file;
static file open_file(const char *name) {
  file f = {.c = ctx_new(), .a = arena_new()};
  f.text = unpacked(f.a, "examples/traces/pipeline/timeline.json.gz", &f.n);
  f.path = arena_printf(f.a, "%s/test_straggler-%s.json", test_build(), name);
  return f;
}
static bool reread(file *f, size_t n) {
  f->t = (trace){0};
  REQUIRE(file_write(f->c, f->path, f->text, n));
  const trace_format is = trace_format_of(f->c, f->path);
  return is == TRACE_FORMAT_straggler &&
         trace_read(f->c, f->a, f->path, is, NULL, TRACE_NONE, &f->t, &f->about);
}
static void close_file(file *f) {
  remove(f->path);
  arena_free(f->a);
  ctx_free(f->c);
}

TEST(straggler_columns_are_what_the_file_says) {
  file f = open_file("columns");
  REQUIRE(reread(&f, f.n));
  CHECK_EQ_I64(f.t.n, 636);
  CHECK_EQ_I64((i64)f.about.events, 636);
  CHECK_EQ_I64((i64)f.about.skipped, 0);
  CHECK_EQ_I64(f.t.processes.n, 8);
  u32 comms = 0;
  for (u32 e = 0; e < f.t.n; e++) {
    const trace_process *p = trace_process_of(&f.t, e);
    CHECK(p->placed && p->rank == p->stage * 2 + p->data && f.t.step[e] >= 10 && f.t.step[e] <= 12);
    const bool comm = f.t.flags[e] & TRACE_COMM;
    CHECK(comm == (f.t.comm[e] != TRACE_NONE));
    comms += comm;
    if (!comm) continue;
    const trace_comm *m = &f.t.comms.v[f.t.comm[e]];
    const char *op = sym_str(f.c, m->op), *name = sym_str(f.c, trace_name(&f.t, e));
    CHECK_MSG(!strcmp(op, "send") == (strstr(name, "-send") != NULL), "%s is %s", name, op);
    if (!strcmp(name, "forward-send")) CHECK_EQ_I64(m->peer, p->rank + 2);
    if (!strcmp(name, "backward-send")) CHECK_EQ_I64(m->peer, p->rank - 2);
    if (!strcmp(name, "optimizer-clip-main-grad")) CHECK_STR(sym_str(f.c, m->members), "0,1,2,3,4,5,6,7");
    if (!strcmp(name, "embedding-grads-all-reduce"))
      CHECK_STR(sym_str(f.c, m->members), p->data ? "1,7" : "0,6");
  }
  CHECK_EQ_I64(comms, 636 - 3 * 8 * (4 + 4 + 2));
  close_file(&f);
}

// Cut off at any place: what comes before is there, or there is a diagnostic.
TEST(straggler_files_may_be_cut_anywhere) {
  file f = open_file("cut");
  u32 read = 0;
  for (size_t n = 0; n < f.n; n += 1 + n / 7) {
    const u32 before = diag_count(f.c);
    if (reread(&f, n)) {
      read++;
      CHECK(f.about.truncated && f.t.n == f.about.events - f.about.skipped && diag_count(f.c) == before + 1);
    } else {
      CHECK(f.t.n == 0);
    }
  }
  CHECK(read > 10);
  close_file(&f);
}

// Bytes that are no JSON cost the element that they are in, and nothing is said of it but a count.
TEST(straggler_bad_elements_are_counted) {
  file f = open_file("bad");
  char *at = strstr(f.text, "\"ts\"");
  REQUIRE(at);
  memcpy(at, "\"tx\"", 4); // no time
  at = strstr(at + 400, "\"dur\":");
  REQUIRE(at);
  at[6] = '?';
  const u32 before = diag_count(f.c);
  REQUIRE(reread(&f, f.n));
  CHECK_EQ_I64(f.t.n, 634);
  CHECK_EQ_I64((i64)f.about.skipped, 2);
  CHECK_EQ_I64(diag_count(f.c), before);
  close_file(&f);
}

// Without the names of threads, stages are the workers of a data rank in order.
TEST(straggler_stages_without_names) {
  file f = open_file("names");
  for (char *at = f.text; (at = strstr(at, "thread_name"));) memcpy(at, "thread_nome", 11);
  REQUIRE(reread(&f, f.n));
  CHECK_EQ_I64(f.t.processes.n, 8);
  straggler *s = straggler_new(f.c, f.a, &f.t, sym_of(f.c, f.path), NULL);
  CHECK_MSG(s, "%s", diag_render(f.c, f.a));
  REQUIRE(s);
  for (u32 i = 0; i < s->nsteps; i++) {
    i64 *step = NEWN(f.a, i64, s->nsteps);
    straggler_replay(s, s->recorded_ps, step);
    CHECK_EQ_I64(step[i], s->span_ps[i]);
  }
  close_file(&f);
}

// A step with other operations than most is left out; a job without one of its workers is refused.
TEST(straggler_odd_steps_are_left_out) {
  file f = open_file("odd");
  char *at = strstr(f.text, "\"step\":11");
  REQUIRE(at);
  memcpy(at, "\"step\":55", 9);
  REQUIRE(reread(&f, f.n));
  straggler *s = straggler_new(f.c, f.a, &f.t, sym_of(f.c, f.path), NULL);
  REQUIRE(s);
  CHECK_EQ_I64(s->nsteps, 2);
  CHECK_EQ_I64(s->left_out, 2);
  CHECK_EQ_I64(s->step[0], 10);
  CHECK_EQ_I64(s->step[1], 12);
  for (u32 k = 0; k < f.t.processes.n; k++)
    if (f.t.processes.v[k].rank == 6) f.t.processes.v[k].placed = false;
  CHECK(!straggler_new(f.c, f.a, &f.t, sym_of(f.c, f.path), NULL));
  CHECK_STR(diag_get(f.c, diag_count(f.c) - 1).message, "stage 3 of data rank 0 is not recorded");
  close_file(&f);
}
