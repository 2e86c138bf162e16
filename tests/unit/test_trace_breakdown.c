// test_trace_breakdown.c - where the time goes: on a timeline small enough for a pencil, and against the figures of
// HolisticTraceAnalysis for recorded files.
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

enum { US = 1000000 };

typedef struct {
  ctx *c;
  arena *a;
  trace *t;
  job_steps *steps;
  u32 n, *event; // of the steps that count
} recorded;

// ---- by hand ------------------------------------------------------------------------------------------------
typedef struct {
  trace_is is;
  i64 lane, start, dur; // lane: of a stream, or -1: the host
  int cause;            // -1: none
  const char *comm;
  u32 step;
} row;

static recorded timeline(const row *rows, u32 n) {
  recorded r = {.c = ctx_new(), .a = arena_new()};
  r.t = NEW(r.a, trace);
  *vec_push(r.a, &r.t->processes) = (trace_process){.rank = 0, .pid = -1};
  r.event = NEWN(r.a, u32, n);
  for (u32 k = 0; k < n; k++) {
    const u32 lane = trace_lane_of(r.a, r.t, 0, rows[k].lane >= 0, rows[k].lane >= 0 ? 0 : -1, rows[k].lane);
    const u32 e =
        trace_add(r.a, r.t, rows[k].is, lane, sym_of(r.c, "x"), rows[k].start * US, rows[k].dur * US);
    if (rows[k].cause >= 0) r.t->cause[e] = (u32)rows[k].cause;
    if (rows[k].is == TRACE_STEP) r.t->step[e] = rows[k].step;
    if (rows[k].comm) {
      *vec_push(r.a, &r.t->comms) = (trace_comm){.op = sym_of(r.c, rows[k].comm)};
      r.t->comm[e] = r.t->comms.n - 1, r.t->flags[e] = TRACE_COMM;
    }
    r.event[r.n++] = e;
  }
  return r;
}
static void done(recorded *r) {
  arena_free(r->a);
  ctx_free(r->c);
}

TEST(breakdown_counts_every_instant_once) {
  const row rows[] = {
      {TRACE_CALL, -1, 0, 1, -1, NULL, 0},           // 0
      {TRACE_CALL, -1, 205, 1, -1, NULL, 0},         // 1
      {TRACE_KERNEL, 7, 10, 20, 0, NULL, 0},         // 10 to 30 computes
      {TRACE_KERNEL, 9, 20, 30, 0, "all_reduce", 0}, // 20 to 50: 10 hidden, 20 exposed
      {TRACE_KERNEL, 8, 40, 15, 0, "send", 0},       // 40 to 55: 5 exposed, all_reduce comes first
      {TRACE_COPY, 7, 50, 10, 0, NULL, 0},           // 55 to 60
      {TRACE_KERNEL, 7, 80, 10, 0, NULL, 0},         // 60 to 80 idle: launched, less than 30
      {TRACE_KERNEL, 7, 130, 10, 0, NULL, 0},        // 90 to 130 idle: launched long ago
      {TRACE_FILL, 7, 210, 5, 1, NULL, 0},           // 140 to 210 idle: launched at 205
  };
  recorded r = timeline(rows, COUNT_OF(rows));
  const breakdown b = breakdown_of(r.c, r.a, r.t, r.n, r.event);
  CHECK_EQ_I64(b.events, 7);
  CHECK_EQ_I64(b.span_ps, 205 * US);
  CHECK_EQ_I64(b.compute_ps, 40 * US);
  CHECK_EQ_I64(b.comm_ps, 35 * US);
  CHECK_EQ_I64(b.overlap_ps, 10 * US);
  CHECK_EQ_I64(b.exposed_ps[0], 20 * US);
  CHECK_EQ_I64(breakdown_exposed_ps(&b), 25 * US);
  CHECK_EQ_I64(b.copy_ps, 10 * US);
  CHECK_EQ_I64(b.idle_ps[IDLE_KERNEL], 20 * US);
  CHECK_EQ_I64(b.idle_ps[IDLE_OTHER], 40 * US);
  CHECK_EQ_I64(b.idle_ps[IDLE_HOST], 70 * US);
  CHECK_EQ_I64(b.compute_ps + breakdown_exposed_ps(&b) + b.copy_ps + breakdown_idle_ps(&b), b.span_ps);
  const stream_times s = stream_times_of(r.a, r.t, r.t->lane[2], r.n, r.event);
  CHECK_EQ_I64(s.events, 5);
  CHECK_EQ_I64(s.busy_ps, 55 * US);
  CHECK_EQ_I64(s.idle_ps[IDLE_KERNEL], 40 * US);
  CHECK_EQ_I64(s.queue_max, 4);
  CHECK_EQ_I64(s.queue_n, 10);
  done(&r);
}

TEST(breakdown_of_nothing_is_zero) {
  const row rows[] = {{TRACE_CALL, -1, 0, 1, -1, NULL, 0}};
  recorded r = timeline(rows, 1);
  const breakdown b = breakdown_of(r.c, r.a, r.t, r.n, r.event);
  CHECK(b.events == 0 && b.span_ps == 0 && breakdown_idle_ps(&b) == 0);
  done(&r);
}

// Work belongs to the step that launched it, also if it runs in a later one; the last of several is left out.
TEST(steps_are_those_of_the_launch) {
  const row rows[] = {
      {TRACE_STEP, -1, 100, 50, -1, NULL, 4}, {TRACE_STEP, -1, 10, 80, -1, NULL, 3},
      {TRACE_CALL, -1, 85, 1, -1, NULL, 0},   {TRACE_KERNEL, 7, 120, 5, 2, NULL, 0},
      {TRACE_KERNEL, 7, 130, 5, -1, NULL, 0}, // nobody knows who launched it
      {TRACE_OP, -1, 5, 1, -1, NULL, 0},      {TRACE_OP, -1, 500, 1, -1, NULL, 0},
  };
  recorded r = timeline(rows, COUNT_OF(rows));
  const job_steps *s = steps_of(r.a, r.t, 0);
  REQUIRE(s->n == 2);
  CHECK(s->step[0].number == 3 && s->step[1].number == 4);
  CHECK(s->of[3] == 0 && s->of[4] == TRACE_NONE && s->of[5] == TRACE_NONE && s->of[6] == 1);
  bool chosen[2];
  CHECK(steps_choose(r.c, NULL, s, chosen, "a") && chosen[0] && !chosen[1]);
  CHECK(steps_choose(r.c, "1-2,4", s, chosen, "a") && !chosen[0] && chosen[1]);
  static const char *const wrong[] = {"", "x", "3-", "4-3", "3,,4", "-1", "7-9", "99999999999999999999"};
  for (u32 k = 0; k < COUNT_OF(wrong); k++) {
    const u32 before = diag_errors(r.c);
    CHECK_MSG(!steps_choose(r.c, wrong[k], s, chosen, "a") && diag_errors(r.c) == before + 1, "%s", wrong[k]);
  }
  done(&r);
}

TEST(kernels_are_counted_by_name_and_communications_by_size) {
  const row rows[] = {
      {TRACE_KERNEL, 7, 10, 20, -1, NULL, 0},          {TRACE_KERNEL, 7, 40, 10, -1, NULL, 0},
      {TRACE_KERNEL, 9, 20, 30, -1, "all_reduce", 0},  {TRACE_KERNEL, 9, 60, 50, -1, "all_reduce", 0},
      {TRACE_KERNEL, 9, 120, 40, -1, "all_reduce", 0}, {TRACE_COPY, 7, 200, 5, -1, NULL, 0},
      {TRACE_CALL, -1, 0, 500, -1, NULL, 0},
  };
  recorded r = timeline(rows, COUNT_OF(rows));
  for (u32 k = 0; k < r.t->comms.n; k++) r.t->comms.v[k].bytes = k == 2 ? 8 : 4, r.t->comms.v[k].size = 4;
  kernel_uses u = {0};
  kernel_uses_add(r.a, &u, r.t, r.n, r.event);
  kernel_uses_sort(&u);
  REQUIRE(u.kernels.n == 2 && u.comms.n == 2); // all kernels are called x
  CHECK(u.kernels.v[0].count == 5 && u.kernels.v[0].total_ps == 150 * (i64)US &&
        u.kernels.v[0].max_ps == 50 * US);
  CHECK(u.kernels.v[1].is == TRACE_COPY && u.kernels.v[1].min_ps == 5 * US);
  CHECK(u.comms.v[0].bytes == 4 && u.comms.v[0].dur_ps.n == 2 && u.comms.v[0].dur_ps.v[0] == 30 * US);
  done(&r);
}

TEST(bus_bandwidths_count_as_nccl_tests_do) {
  CHECK(comm_bus_factor("all_reduce", 8) == 1.75 && comm_bus_factor("all_gather", 8) == 0.875);
  CHECK(comm_bus_factor("reduce_scatter", 4) == 0.75 && comm_bus_factor("all_to_all", 2) == 0.5);
  CHECK(comm_bus_factor("broadcast", 8) == 1 && comm_bus_factor("send", 0) == 1);
  CHECK(comm_bus_factor("all_reduce", 0) == 0 && comm_bus_factor("barrier", 8) == 0);
  for (u32 k = 0; k < COMM_KINDS; k++) {
    CHECK(comm_kind_named(comm_kind_rows[k].name) == k);
    for (u32 i = 0; i < k; i++)
      CHECK(comm_kind_rows[i].chakra < 0 || comm_kind_rows[i].chakra != comm_kind_rows[k].chakra);
  }
  CHECK(comm_kind_named("all_reduce_coalesced") == COMM_OTHER && comm_kind_named("") == COMM_OTHER);
}

TEST(lists_of_ranks_are_short) {
  arena *a = arena_new();
  CHECK_STR(number_list(a, NULL, 0), "");
  CHECK_STR(number_list(a, (u32[]){7}, 1), "7");
  CHECK_STR(number_list(a, (u32[]){0, 1, 2, 5, 6, 9}, 6), "0-2,5,6,9");
  CHECK_STR(number_list(a, (u32[]){0, 2, 4, 6, 8, 10, 12, 14, 16}, 9), "0,2,4,6,8,10,12,14,..");
  arena_free(a);
}

// ---- against HolisticTraceAnalysis --------------------------------------------------------------------------
static const struct {
  const char *name, *file;
} files[] = {
    {"df_index_resolver", "hta/tests__data__df_index_resolver__df_index_resolver.json.gz"},
    {"nccl_data", "hta/tests__data__nccl_parser_config__nccl_data.json.gz"},
    {"control", "hta/tests__data__trace_diff__control__control.json.gz"},
    {"sampled0", "hta/tests__data__trace_filter__sampled_rank-0.json.gz"},
    {"sampled1", "hta/tests__data__trace_filter__sampled_rank-1.json.gz"},
    {"megatron", "astrasim_24S/megatron_kineto_%s.json.gz"},
    {"simple_add",
     "hta/tests__data__critical_path__simple_add__benchmark_result_493459_1694039959_trace.json.gz"},
    {"tb_resnet50_234c", "kineto/tb_resnet50_234cf25df597fb99765ee2a49978f5f3c4bbbaf9.json.gz"},
    {"resnet_mi300", "tracelens/tests__traces__mi300__resnet_act_checkpoint.json.gz"},
};

static i64 floor_us(i64 ps) { return ps / US * US; }

// The tool counts in whole microseconds: starts up, ends down.
static void round_as_the_tool(trace *t) {
  const i64 base_ps = t->processes.v[0].base_ns % 1000 * 1000;
  for (u32 e = 0; e < t->n; e++) {
    const i64 start = t->start_ps[e] + base_ps, end = start + MAX(t->dur_ps[e], 0);
    t->start_ps[e] = floor_us(start + US - 1);
    if (t->dur_ps[e] >= 0) t->dur_ps[e] = MAX(floor_us(end) - t->start_ps[e], 0);
  }
}

// What was launched in all steps but the last, which the tool leaves out.
static recorded open_file(const char *name, const char *rank, bool all_steps) {
  recorded r = {.c = ctx_new(), .a = arena_new()};
  u32 k = 0;
  while (k + 1 < COUNT_OF(files) && strcmp(files[k].name, name)) k++;
  char file[256], path[300];
  const char *percent = strchr(files[k].file, '%');
  snprintf(file, sizeof file, "%.*s%s%s",
           percent ? (int)(percent - files[k].file) : (int)strlen(files[k].file), files[k].file,
           percent ? rank : "", percent ? percent + 2 : "");
  snprintf(path, sizeof path, "traces/%s", file);
  const char *full = test_data(path);
  trace_read_about about;
  r.t = NEW(r.a, trace);
  REQUIRE(trace_read(r.c, r.a, full, TRACE_FORMAT_kineto, &(trace_want){0}, TRACE_NONE, r.t, &about));
  round_as_the_tool(r.t);
  r.steps = steps_of(r.a, r.t, 0);
  bool *chosen = ZNEWN(r.a, bool, r.steps->n + 1);
  REQUIRE(steps_choose(r.c, NULL, r.steps, chosen, "a"));
  for (u32 i = 0; i < r.steps->n; i++) chosen[i] |= all_steps;
  r.event = NEWN(r.a, u32, r.t->n);
  r.n = steps_events(r.t, 0, r.steps, chosen, r.event);
  return r;
}

// The file of a row; rows of one file lie together, so the one of the row before is kept.
static void reopen(recorded *r, char last[160], const char *name, const char *rank, bool all_steps) {
  char of[160];
  snprintf(of, sizeof of, "%s %s", name, rank);
  if (!strcmp(of, last)) return;
  if (*last) done(r);
  *r = open_file(name, rank, all_steps);
  memcpy(last, of, sizeof of);
}

typedef struct {
  char cell[8][64];
} line;
static FILE *open_csv(const char *name, char *head, size_t n) {
  char path[128];
  snprintf(path, sizeof path, "traces/expected/%s", name);
  FILE *f = fopen(test_data(path), "r");
  REQUIRE(f && fgets(head, (int)n, f));
  return f;
}
static bool next_line(FILE *f, line *x) {
  char text[512];
  if (!fgets(text, sizeof text, f)) return false;
  text[strcspn(text, "\r\n")] = 0;
  memset(x, 0, sizeof *x);
  u32 k = 0;
  for (char *p = text; p && k < 8; k++) {
    char *comma = strchr(p, ',');
    if (comma) *comma = 0;
    snprintf(x->cell[k], sizeof x->cell[k], "%.63s", p);
    p = comma ? comma + 1 : NULL;
  }
  return true;
}

TEST(breakdown_equals_the_figures_of_hta) {
  char head[512];
  line x;
  u32 rows = 0;
  FILE *f = open_csv("hta_breakdown.csv", head, sizeof head);
  for (; next_line(f, &x); rows++) {
    recorded r = open_file(x.cell[0], x.cell[1], false);
    const breakdown b = breakdown_of(r.c, r.a, r.t, r.n, r.event);
    const char *of = x.cell[0];
    const i64 got[] = {breakdown_idle_ps(&b), b.compute_ps, breakdown_exposed_ps(&b) + b.copy_ps, b.span_ps};
    for (u32 k = 0; k < 4; k++)
      CHECK_MSG(got[k] == atoll(x.cell[2 + k]) * US, "%s %s, column %u: %lld ps", of, x.cell[1], k,
                (long long)got[k]);
    char percent[32] = "nan";
    if (b.comm_ps)
      snprintf(percent, sizeof percent, "%.2f", 100.0 * (double)b.overlap_ps / (double)b.comm_ps);
    CHECK_MSG(strtod(percent, NULL) == strtod(x.cell[6], NULL) || !strcmp(percent, x.cell[6]),
              "%s: overlap %s", of, percent);
    char steps[64] = "";
    for (u32 k = 0; k + (r.steps->n > 1) < r.steps->n; k++)
      snprintf(steps + strlen(steps), sizeof steps - strlen(steps), "%s%u", k ? " " : "",
               r.steps->step[k].number);
    CHECK_STR(steps, x.cell[7]);
    done(&r);
  }
  fclose(f);
  CHECK_EQ_I64(rows, 14);
}

static u32 lane_of_stream(const recorded *r, const char *stream) {
  for (u32 l = 0; l < r->t->lanes.n; l++)
    if (r->t->lanes.v[l].device && r->t->lanes.v[l].id == atoll(stream)) return l;
  return TRACE_NONE;
}

TEST(idle_time_equals_the_figures_of_hta) {
  static const char *const names[IDLE_KINDS] = {"host_wait", "kernel_wait", "other"};
  char head[512];
  line x;
  u32 rows = 0;
  FILE *f = open_csv("hta_idle.csv", head, sizeof head);
  recorded r = {0};
  char last[160] = "";
  for (; next_line(f, &x); rows++) {
    reopen(&r, last, x.cell[0], x.cell[1], false);
    const u32 lane = lane_of_stream(&r, x.cell[2]);
    REQUIRE(lane != TRACE_NONE);
    const stream_times s = stream_times_of(r.a, r.t, lane, r.n, r.event);
    u32 k = 0;
    while (k + 1 < IDLE_KINDS && strcmp(names[k], x.cell[3])) k++;
    CHECK_MSG(s.idle_ps[k] == atoll(x.cell[4]) * US, "%s %s stream %s %s: %lld ps", x.cell[0], x.cell[1],
              x.cell[2], x.cell[3], (long long)s.idle_ps[k]);
  }
  if (*last) done(&r);
  fclose(f);
  CHECK_EQ_I64(rows, 60);
}

// The tool sorts launches and begins of the same instant as they happen to lie, so where there are such its mean is
// between those of the two orders; and it leaves no step out where the device has annotations of steps (MI300).
TEST(queues_equal_the_figures_of_hta) {
  char head[512];
  line x;
  u32 rows = 0, exact = 0;
  FILE *f = open_csv("hta_queue.csv", head, sizeof head);
  recorded r = {0};
  char last[160] = "";
  for (; next_line(f, &x); rows++) {
    char *slash = strchr(x.cell[1], '/');
    *slash = 0;
    reopen(&r, last, x.cell[0], x.cell[1], !strcmp(x.cell[0], "resnet_mi300"));
    const u32 lane = lane_of_stream(&r, slash + 1);
    REQUIRE(lane != TRACE_NONE);
    const stream_times s = stream_times_of(r.a, r.t, lane, r.n, r.event);
    const double mean = strtod(x.cell[3], NULL), rounding = 5.1e-7;
    CHECK_MSG(s.queue_n == (u32)atoi(x.cell[2]), "%s: %u", x.cell[0], s.queue_n);
    CHECK_MSG(s.queue_max == (u32)atoi(x.cell[6]), "%s: longest %u", x.cell[0], s.queue_max);
    CHECK_MSG(s.queue_median == strtod(x.cell[5], NULL), "%s: median %g", x.cell[0], s.queue_median);
    CHECK_MSG(mean <= s.queue_mean + rounding && mean >= s.queue_mean_begin - rounding, "%s %s: mean %.6f",
              x.cell[0], slash + 1, s.queue_mean);
    if (s.queue_mean == s.queue_mean_begin) {
      exact++;
      CHECK_MSG(fabs(s.queue_std - strtod(x.cell[4], NULL)) < rounding, "%s %s: deviation %.6f", x.cell[0],
                slash + 1, s.queue_std);
    }
  }
  if (*last) done(&r);
  fclose(f);
  CHECK_EQ_I64(rows, 24);
  CHECK_EQ_I64(exact, 15);
}
