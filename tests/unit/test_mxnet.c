// test_mxnet.c - MXNet's profiler, and with it what all timelines in Chrome's format have: pairs, odd times, damage.
#include "rare.h"

TEST(mxnet_operators) {
  trace_file r = rare_read("tests/rare/mxnet/profile.json", TRACE_FORMAT_mxnet, TRACE_NONE);
  REQUIRE(r.ok);
  CHECK(r.about.events == 54 && r.about.skipped == 0 &&
        r.t.n == 54); // 29 pairs B, E; 24 of b, e; one instant
  i64 kernels, copies;
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, NULL, &kernels), 16);
  CHECK_EQ_I64(rare_count(&r, TRACE_COPY, "CopyCPU2GPU", &copies), 8);
  CHECK_EQ_I64(kernels + copies, 4560 * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_NOTE, NULL, NULL), 25);
  i64 ps;
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "MXNDArrayWaitAll", &ps), 1);
  CHECK_EQ_I64(ps, 900 * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "SetupExec", NULL), 4);
  CHECK_EQ_I64(r.t.processes.v[0].base_ns, 1523399668368495000);
  for (u32 e = 0; e < r.t.n; e++)
    if (r.t.is[e] == TRACE_KERNEL) CHECK(r.t.lanes.v[r.t.lane[e]].of <= 1 && r.t.lanes.v[r.t.lane[e]].device);
  trace_file_close(&r);
}

TEST(mxnet_cut_off) { rare_cut("tests/rare/mxnet/profile.json", TRACE_FORMAT_mxnet); }

static trace_file events(const char *list) {
  char text[2000];
  const int n = snprintf(text, sizeof text, "{\"traceEvents\": [%s]}", list);
  return rare_text(text, (size_t)n, TRACE_FORMAT_mxnet);
}

TEST(chrome_pairs) {
  // Of one name the last that began; an end without a name ends the last; ends of nothing are counted.
  trace_file r = events("{\"ph\":\"B\",\"name\":\"a\",\"ts\":10,\"pid\":0,\"tid\":1},"
                        "{\"ph\":\"B\",\"name\":\"b\",\"ts\":20,\"pid\":0,\"tid\":1},"
                        "{\"ph\":\"B\",\"name\":\"a\",\"ts\":30,\"pid\":0,\"tid\":2},"
                        "{\"ph\":\"E\",\"name\":\"a\",\"ts\":40.5,\"pid\":0,\"tid\":1},"
                        "{\"ph\":\"E\",\"ts\":50,\"pid\":0,\"tid\":1},"
                        "{\"ph\":\"E\",\"name\":\"c\",\"ts\":60,\"pid\":0,\"tid\":2}");
  REQUIRE(r.ok && r.t.n == 3);
  CHECK(r.t.dur_ps[0] == 30500000 && r.t.dur_ps[1] == 30000000 && r.t.dur_ps[2] == -1);
  CHECK(r.about.events == 4 && r.about.skipped == 1);
  trace_file_close(&r);
}

TEST(chrome_odd_events) {
  // Unsorted; there twice; a year away; without a time; a time that is no number; a phase that nobody knows; no object.
  trace_file r = events("{\"ph\":\"X\",\"name\":\"late\",\"ts\":1500000000000900,\"dur\":5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"early\",\"ts\":1500000000000100.25,\"dur\":7.5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"early\",\"ts\":1500000000000100.25,\"dur\":7.5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"far\",\"ts\":1600000000000000,\"dur\":5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"timeless\",\"dur\":5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"odd\",\"ts\":\"soon\",\"dur\":5,\"pid\":1},"
                        "{\"ph\":\"X\",\"name\":\"back\",\"ts\":1500000000000100,\"dur\":-5,\"pid\":1},"
                        "{\"ph\":\"?\",\"name\":\"what\",\"ts\":1500000000000100,\"pid\":1}, 7, {}");
  REQUIRE(r.ok && r.t.n == 2);
  CHECK(r.about.events == 9 && r.about.skipped == 7);
  CHECK_EQ_I64(r.t.processes.v[0].base_ns, 1500000000000100000);
  CHECK(r.t.start_ps[0] == 800000000 && r.t.start_ps[1] == 250000 && r.t.dur_ps[1] == 7500000);
  trace_file_close(&r);
}

TEST(chrome_damage) {
  static const char *const none[] = {"",         "{", "[", "{\"traceEvents\": 3}", "{\"other\": []}",
                                     "\"text\"", "7"};
  for (u32 k = 0; k < COUNT_OF(none); k++) {
    trace_file r = rare_text(none[k], strlen(none[k]), TRACE_FORMAT_mxnet);
    CHECK_MSG(r.t.n == 0 && diag_count(r.c) > 0, "%s", none[k]);
    CHECK_MSG(r.ok == (*none[k] == '['), "%s", none[k]);
    trace_file_close(&r);
  }
  trace_file r = events("{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},{\"ph\":\"X\" oh");
  CHECK(r.ok && r.t.n == 1 && diag_count(r.c) >= 1);
  trace_file_close(&r);
  // Two processes wrote one file: the event in the middle is lost, the next is there.
  r = events("{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"na{\"ph\":\"X\",\"name\":"
             "\"b\",\"ts\":2,"
             "\"dur\":1},{\"ph\":\"X\",\"name\":\"c\",\"ts\":3,\"dur\":1}");
  CHECK(r.ok && r.t.n >= 2 && r.about.skipped >= 1 && diag_count(r.c) == 1);
  CHECK_STR(trace_file_name(&r, r.t.n - 1), "c");
  trace_file_close(&r);
  r = events("");
  CHECK(r.ok && r.t.n == 0 && diag_count(r.c) == 0 && r.t.processes.n == 1);
  trace_file_close(&r);
}
