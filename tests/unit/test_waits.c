// test_waits.c - events of synchronisation in Kineto's files (cuda_sync): what waits for what, and what a replay makes
// of it; and single figures that HolisticTraceAnalysis' own tests of its critical path have for the same recordings.
#include "diagnose/diagnose.h"
#include "trace_file.h"
#include <unistd.h>

// The first event from `from_ps` on whose name starts so.
static u32 next_of(const trace_file *f, const char *start, i64 from_ps) {
  u32 found = TRACE_NONE;
  for (u32 e = 0; e < f->t.n; e++)
    if (f->t.start_ps[e] >= from_ps && !strncmp(trace_file_name(f, e), start, strlen(start)) &&
        (found == TRACE_NONE || f->t.start_ps[e] < f->t.start_ps[found]))
      found = e;
  CHECK_MSG(found != TRACE_NONE, "no %s", start);
  REQUIRE(found != TRACE_NONE);
  return found;
}
static i64 end_of(const trace_file *f, u32 e) { return f->t.start_ps[e] + f->t.dur_ps[e]; }

// ---- what the recordings say ------------------------------------------------------------------------------
TEST(waits_of_the_host_for_an_event) {
  const char *path =
      test_data("traces/hta/tests__data__critical_path__cuda_event_sync__event_sync_trace.json.gz");
  trace_file f = trace_file_open(path, TRACE_FORMAT_kineto);
  const trace *t = &f.t;
  u32 of_no_stream = 0;
  for (u32 e = 0; e < t->n; e++) of_no_stream += t->is[e] == TRACE_WAIT && t->lanes.v[t->lane[e]].id == -1;
  CHECK_EQ_I64(of_no_stream, 3);
  const u32 spin = next_of(&f, "at::cuda::(anonymous namespace)::spin_kernel", 0);
  const char *const by[] = {"cudaEventSynchronize", "cudaEventQuery"};
  CHECK_EQ_I64(t->edges.n, COUNT_OF(by));
  for (u32 i = 0; i < t->edges.n && i < COUNT_OF(by); i++) {
    CHECK_EQ_I64(t->edges.v[i].after, spin);
    CHECK_STR(trace_file_name(&f, t->cause[t->edges.v[i].event]), by[i]);
  }
  const job_work *w = job_work_of(f.c, f.a, t, 0, INT64_MIN, INT64_MAX);
  const i64 sync = t->start_ps[next_of(&f, "cudaEventSynchronize", 0)];
  u32 seen = 0;
  for (u32 k = 0; k < w->nitems; k++) {
    if (w->item[k].start_ps != sync) continue;
    seen++;
    CHECK(w->item[k].waited);
    CHECK_EQ_I64(w->item[k + 1].first_wait - w->item[k].first_wait, 1);
    CHECK_EQ_I64(w->op[w->wait[w->item[k].first_wait]].event, spin);
  }
  CHECK_EQ_I64(seen, 1);
  trace_file_close(&f);
}

// Microseconds between the starts and ends of three operators that are nested, of a launch, and between two kernels.
TEST(waits_intervals_are_those_of_a_published_critical_path) {
  const char *path = test_data(
      "traces/hta/tests__data__critical_path__simple_add__benchmark_result_493459_1694039959_trace.json.gz");
  trace_file f = trace_file_open(path, TRACE_FORMAT_kineto);
  const trace *t = &f.t;
  const char *forward = "[param|pytorch.model.alex_net|0|0|0|measure|forward]";
  const i64 from = t->start_ps[next_of(&f, forward, t->start_ps[next_of(&f, forward, 0)] + 1)]; // the second
  const u32 relu = next_of(&f, "aten::relu_", from), clamp = next_of(&f, "aten::clamp_min_", from);
  const u32 launch = next_of(&f, "cudaLaunchKernel", t->start_ps[clamp]);
  const i64 us = 1000000;
  CHECK_EQ_I64(t->start_ps[clamp] - t->start_ps[relu], 15 * us);
  CHECK_EQ_I64(t->start_ps[launch] - t->start_ps[clamp], 14 * us);
  CHECK_EQ_I64(t->dur_ps[launch], 17 * us);
  CHECK_EQ_I64(end_of(&f, clamp) - end_of(&f, launch), 15 * us);
  CHECK_EQ_I64(end_of(&f, relu) - end_of(&f, clamp), 32 * us);
  const u32 fft = next_of(&f, "void fft2d_r2c_32x32<float, false, 0u, false>", from);
  CHECK(t->cause[fft] != TRACE_NONE);
  CHECK_EQ_I64(t->start_ps[fft] - t->start_ps[t->cause[fft]], 27 * us);
  u32 next = TRACE_NONE; // on its stream
  for (u32 e = 0; e < t->n; e++)
    if (t->lane[e] == t->lane[fft] && t->is[e] == TRACE_KERNEL && t->start_ps[e] > t->start_ps[fft] &&
        (next == TRACE_NONE || t->start_ps[e] < t->start_ps[next]))
      next = e;
  REQUIRE(next != TRACE_NONE);
  CHECK_EQ_I64(t->start_ps[next] - end_of(&f, fft), 7 * us);
  trace_file_close(&f);
}

// The same path has 315 nodes, 314 edges between them and 159 events, as published. Its nodes are starts and ends of operators
// and calls that take time, and of what devices ran. From the device op that ends last it goes back along the stream while
// these had been launched before the one before them ended, then to a launch, and from there back over all that its thread began or
// ended.
TEST(waits_nodes_are_those_of_a_published_critical_path) {
  const char *path = test_data(
      "traces/hta/tests__data__critical_path__simple_add__benchmark_result_493459_1694039959_trace.json.gz");
  trace_file f = trace_file_open(path, TRACE_FORMAT_kineto);
  const trace *t = &f.t;
  const char *forward = "[param|pytorch.model.alex_net|0|0|0|measure|forward]";
  const u32 window = next_of(&f, forward, t->start_ps[next_of(&f, forward, 0)] + 1); // the second
  const i64 from = t->start_ps[window], to = end_of(&f, window);
#define LAUNCHED(e)                                                                                          \
  (TRACE_ON_DEVICE >> t->is[e] & 1 && t->cause[e] != TRACE_NONE && t->start_ps[t->cause[e]] >= from &&       \
   t->start_ps[t->cause[e]] <= to)
  u32 at = TRACE_NONE, device = 0, nodes = 0, events = 0;
  for (u32 e = 0; e < t->n; e++)
    if (LAUNCHED(e) && (at == TRACE_NONE || end_of(&f, e) > end_of(&f, at))) at = e;
  REQUIRE(at != TRACE_NONE);
  for (u32 before = at; before != TRACE_NONE; device++) {
    at = before, before = TRACE_NONE;
    for (u32 e = 0; e < t->n; e++)
      if (LAUNCHED(e) && t->lane[e] == t->lane[at] && t->start_ps[e] < t->start_ps[at] &&
          (before == TRACE_NONE || t->start_ps[e] > t->start_ps[before]))
        before = e;
    if (before != TRACE_NONE && t->start_ps[t->cause[at]] >= end_of(&f, before)) before = TRACE_NONE;
  }
#undef LAUNCHED
  const i64 launch = t->start_ps[t->cause[at]];
  for (u32 e = 0; e < t->n; e++) {
    if (t->lane[e] != t->lane[t->cause[at]] || (t->is[e] != TRACE_OP && t->is[e] != TRACE_CALL) ||
        !t->dur_ps[e] || t->start_ps[e] < from || t->start_ps[e] > launch)
      continue;
    events++, nodes += 1 + (end_of(&f, e) <= launch);
  }
  CHECK_EQ_I64(device, 6);
  CHECK_EQ_I64(nodes + 2 * device, 315);
  CHECK_EQ_I64(events + device, 159);
  trace_file_close(&f);
}

// ---- an answer that they change ---------------------------------------------------------------------------
// A long kernel on stream 7, a short one on 8, and one on 9 that waits for the short one and is launched late. The
// long one had ended by then, so the times do not tell that nobody waits for it. told: 0 no events of
// synchronisation, 1 with the call that recorded, 2 without.
static i64 replay_with_long_kernel_x3(u32 told, u32 *guessed) {
  static const char call[] =
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":4,"
      "\"args\":{\"correlation\":%u}},\n";
  static const char kernel[] =
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":%u,\"ts\":%u,\"dur\":%u,"
      "\"args\":{\"device\":0,\"stream\":%u,\"correlation\":%u}},\n";
  char path[64];
  snprintf(path, sizeof path, "/tmp/heddle-waits-%d.json", (int)getpid());
  FILE *out = fopen(path, "wb");
  REQUIRE(out);
  fprintf(out, "{\"traceEvents\":[\n");
  fprintf(out, call, "cudaLaunchKernel", 1000, 1);
  fprintf(out, call, "cudaLaunchKernel", 1010, 2);
  fprintf(out, call, "cudaEventRecord", 1020, 3);
  fprintf(out, call, "cudaStreamWaitEvent", 1030, 4);
  fprintf(out, call, "cudaLaunchKernel", 1600, 5);
  fprintf(out, kernel, "long", 7, 1010, 400, 7, 1);
  fprintf(out, kernel, "short", 8, 1020, 20, 8, 2);
  fprintf(out, kernel, "late", 9, 1610, 1000, 9, 5);
  if (told) {
    fprintf(out, "{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait "
                 "Event\",\"pid\":0,\"tid\":9,\"ts\":1031,\"dur\":1,"
                 "\"args\":{\"cuda_sync_kind\":\"Stream Wait "
                 "Event\",\"device\":0,\"stream\":9,\"correlation\":4,\"wait_on_stream\":8");
    fprintf(out, "%s}},\n", told == 1 ? ",\"wait_on_cuda_event_record_corr_id\":3" : "");
  }
  fprintf(out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}]}\n");
  CHECK(!fclose(out));
  trace_file f = trace_file_open(path, TRACE_FORMAT_kineto);
  unlink(path);
  CHECK_EQ_I64(f.t.edges.n, told > 0);
  job_work *w = job_work_of(f.c, f.a, &f.t, 0, INT64_MIN, INT64_MAX);
  *guessed = w->guessed;
  u32 *coll = ZNEWN(f.a, u32, w->nops + 1);
  const replay_input in = {.n = 1, .w = &w, .coll = &coll};
  replay *r = replay_new(f.c, f.a, &in);
  REQUIRE(r && w->nops == 3);
  replay_times x = replay_recorded(r, f.a);
  CHECK_EQ_I64(replay_run(r, &x, NULL, NULL), 1610000000); // as recorded, from the first call on
  x.op[0][0] *= 3;
  const i64 end = replay_run(r, &x, NULL, NULL);
  trace_file_close(&f);
  return end;
}

TEST(waits_that_are_told_change_what_a_replay_says) {
  u32 guessed;
  CHECK_EQ_I64(replay_with_long_kernel_x3(1, &guessed), 1610000000); // nobody waits for the long one
  CHECK_EQ_I64(guessed, 0);
  CHECK_EQ_I64(replay_with_long_kernel_x3(2, &guessed), 1610000000);
  CHECK_EQ_I64(guessed, 0);
  CHECK(replay_with_long_kernel_x3(0, &guessed) >= 2210000000); // it may have been for this one
  CHECK_EQ_I64(guessed, 2);
}
