// test_tensorflow.c - timelines of TensorFlow's profiler, of RunMetadata and of smdebug. Figures of recorded files were
// counted in Python from their JSON.
#include "rare.h"

TEST(tensorflow_devices_streams_steps) {
  trace_file r = rare_read("tests/rare/tensorflow/worker.trace.json.gz", TRACE_FORMAT_tensorflow, TRACE_NONE);
  REQUIRE(r.ok);
  CHECK(r.about.events == 36 && r.about.skipped == 0 && !r.about.truncated && r.t.n == 36);
  i64 ps;
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, NULL, &ps), 12);
  CHECK_EQ_I64(ps, (6 * 300 + 3 * 200 + 3 * 250) * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_COPY, "MemcpyH2D", &ps), 6);
  CHECK_EQ_I64(ps, 6 * (i64)30125000);
  CHECK_EQ_I64(rare_count(&r, TRACE_STEP, "train", &ps), 3); // of the host; those of devices say the same
  CHECK_EQ_I64(ps, 3 * (i64)900250000);
  CHECK_EQ_I64(rare_count(&r, TRACE_NOTE, NULL, NULL), 12);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "MatMul", NULL), 3);
  u32 comms = 0;
  for (u32 e = 0; e < r.t.n; e++) {
    const trace_lane *l = &r.t.lanes.v[r.t.lane[e]];
    if (r.t.is[e] == TRACE_KERNEL) CHECK(l->device && l->id == 13 && l->of >= 0 && l->of <= 1);
    if (r.t.is[e] == TRACE_COPY) CHECK(l->device && l->id == 20);
    if (r.t.comm[e] == TRACE_NONE) continue;
    comms++;
    CHECK_STR(sym_str(r.c, r.t.comms.v[r.t.comm[e]].op), "all_reduce");
  }
  CHECK_EQ_I64(comms, 6);
  CHECK(r.t.processes.n == 1 && r.t.processes.v[0].base_ns == 0);
  trace_file_close(&r);
}

// Streams are told apart, so "stream:all" says the same again; the device's own process is the host's part.
TEST(tensorflow_of_run_metadata) {
  trace_file r = rare_read("tests/rare/tensorflow/timeline.json", TRACE_FORMAT_tensorflow, 3);
  REQUIRE(r.ok && r.t.n == 6);
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, NULL, NULL), 2);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, NULL, NULL), 2);
  CHECK_EQ_I64(r.t.processes.v[0].base_ns, 1600000000000500000);
  CHECK(r.t.processes.v[0].rank == 3 && r.t.start_ps[0] == 0);
  trace_file_close(&r);
}

TEST(tensorflow_cut_off) { rare_cut("tests/rare/tensorflow/worker.trace.json.gz", TRACE_FORMAT_tensorflow); }

static void totals(const char *path, u64 events, i64 ps, u32 lanes) {
  trace_file r = rare_read(path, TRACE_FORMAT_tensorflow, TRACE_NONE);
  REQUIRE(r.ok);
  i64 sum;
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, NULL, &sum), (i64)events);
  CHECK(r.about.events == events && r.about.skipped == 0 && r.t.n == events);
  CHECK_EQ_I64(sum, ps);
  CHECK_EQ_I64(r.t.lanes.n, lanes);
  trace_file_close(&r);
}
#define SMDEBUG "traces/smdebug/tests__profiler__resources__"
#define PROFILE                                                                                              \
  "__framework__tensorflow__detailed_profiling__2020080513__000000000__plugins__profile__2020_08_05_13_37_"  \
  "44__"
TEST(tensorflow_recorded) {
  totals(test_data(SMDEBUG "tfprofiler_local_missing_metadata" PROFILE "ip-172-31-19-241.trace.json.gz"), 256,
         191833789000, 1);
  totals(test_data(SMDEBUG "tfprofiler_timeline_traces" PROFILE "8c859046be41.ant.amazon.com.trace.json.gz"),
         798, 983753000149, 8);
}

// Steps of training and of evaluation count from 0 each: the first kind is the job's.
TEST(tensorflow_smdebug) {
  trace_file r =
      rare_read(test_data(SMDEBUG "merge_traces__framework__pevents__2020071317__1594662624718694_905-"
                                  "b88ab1bb8259_pythontimeline.json"),
                TRACE_FORMAT_tensorflow, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 40);
  i64 ps;
  CHECK_EQ_I64(rare_count(&r, TRACE_STEP, "Step:ModeKeys.TRAIN", &ps), 30);
  CHECK_EQ_I64(ps, 11465583 * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "Step:ModeKeys.EVAL", NULL), 10);
  CHECK_EQ_I64(r.t.processes.v[0].base_ns, 1594662605425850000);
  trace_file_close(&r);
}
