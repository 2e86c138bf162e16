// test_inspector.c - lines of NCCL Inspector: communicators, numbers, times, and the same calls on two ranks.
#include "diagnose/diagnose.h"
#include "rare.h"

TEST(inspector_times) {
  trace_file r = rare_read("tests/rare/inspector/node0-pid4242.log", TRACE_FORMAT_inspector, 9);
  REQUIRE(r.ok && r.t.n == 7);
  CHECK(r.about.events == 7 && r.about.skipped == 0 && diag_count(r.c) == 0);
  const trace_process *p = r.t.processes.v;
  CHECK(p->rank == 0 && p->world_size == 2 && p->pid == 4242); // the file says, whatever its name
  CHECK_STR(sym_str(r.c, p->host), "node0");
  CHECK_EQ_I64(p->base_ns, 1752867229235000000);
  CHECK(r.t.start_ps[4] == 8300000000 && r.t.dur_ps[4] == 600000000); // the earlier of two channels
  const trace_comm *m = &r.t.comms.v[r.t.comm[4]], *scatter = &r.t.comms.v[r.t.comm[5]],
                   *send = &r.t.comms.v[r.t.comm[6]];
  CHECK_STR(sym_str(r.c, m->op), "all_reduce");
  CHECK(m->seq == 2 && m->size == 2 && m->bytes == 67108864);
  CHECK_STR(sym_str(r.c, scatter->op), "reduce_scatter");
  CHECK_EQ_I64(scatter->bytes, 2 * 33554432); // what goes in
  CHECK(send->peer == 1 && send->bytes == 65536 && !strcmp(sym_str(r.c, send->op), "send"));
  trace_file_close(&r);
}

// Bytes are what the plugin takes for bandwidths. The figures are of NVIDIA's manual: 2 GiB in 41,057 us on 8 ranks.
TEST(inspector_bandwidth) {
  static const char text[] = "{\"header\":{\"id\":\"0x1\",\"rank\":2,\"n_ranks\":8,\"nnodes\":1},"
                             "\"metadata\":{\"pid\":1},\"coll_perf\":{\"coll\":"
                             "\"ReduceScatter\",\"coll_sn\":1231,\"coll_msg_size_bytes\":2147483648,\"coll_"
                             "exec_time_us\":41057,\"coll_algobw_gbs\":"
                             "418.439467}}\n";
  trace_file r = rare_text(text, sizeof text - 1, TRACE_FORMAT_inspector);
  REQUIRE(r.ok && r.t.n == 1);
  const double bw = (double)r.t.comms.v[r.t.comm[0]].bytes / ((double)r.t.dur_ps[0] * 1e-12) / 1e9;
  CHECK_MSG(bw > 418.439 && bw < 418.440, "%f", bw);
  CHECK_EQ_I64(r.t.comms.v[r.t.comm[0]].seq, 1231);
  trace_file_close(&r);
}

// v4.3: the communicator is said once for the lines that follow. Without starts one comes after the other.
TEST(inspector_markers) {
  trace_file r = rare_read("tests/rare/inspector/untimed.jsonl.gz", TRACE_FORMAT_inspector, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 3);
  CHECK(r.about.events == 3 && r.about.skipped == 0 && diag_count(r.c) == 2); // no starts; five dropped
  const trace_process *p = r.t.processes.v;
  CHECK(p->rank == 3 && p->world_size == 8 && p->base_ns == 0);
  CHECK(r.t.start_ps[1] == 100000000 && r.t.start_ps[2] == 201000000 && r.t.dur_ps[2] == 12000000);
  CHECK_EQ_I64(r.t.comms.v[r.t.comm[0]].bytes, 8 << 20);
  CHECK(r.t.comms.v[r.t.comm[2]].peer == TRACE_NONE); // numbered in a communicator of two
  CHECK_STR(sym_str(r.c, r.t.lanes.v[r.t.lane[2]].name), "TP Group 1");
  trace_file_close(&r);
}

TEST(inspector_damage) {
  static const char text[] = "{\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,\"coll_exec_time_us\":5}}"
                             "\n" // of no communicator
                             "{\"header\":{\"id\":\"a\",\"rank\":4,\"n_ranks\":2},\"coll_perf\":{\"coll\":"
                             "\"AllReduce\",\"coll_exec_time_us\":5}}\n"
                             "{\"header\":{\"id\":\"a\",\"rank\":1,\"n_ranks\":2},\"coll_perf\":{\"coll\":"
                             "\"AllReduce\"}}\n" // no time
                             "[1]\n"
                             "{\"header\":{\"id\":\"a\",\"rank\":1,\"n_ranks\":2},\"coll_perf\":{\"coll\":"
                             "\"AllReduce\",\"coll_exec_time_us\":5}}\n"
                             "{\"header\":{\"id\":\"a\",\"rank\":1";
  trace_file r = rare_text(text, sizeof text - 1, TRACE_FORMAT_inspector);
  CHECK(r.ok && r.t.n == 1 && r.about.events == 5 && r.about.skipped == 4 && r.about.truncated);
  CHECK(r.t.comms.n == 1 && r.t.comms.v[0].seq == -1 && r.t.comms.v[0].bytes == -1);
  trace_file_close(&r);
  static const char *const none[] = {"", "\n\n", "{\"header\""};
  for (u32 k = 0; k < COUNT_OF(none); k++) {
    r = rare_text(none[k], strlen(none[k]), TRACE_FORMAT_inspector);
    CHECK_MSG(!r.ok && diag_errors(r.c) == 1, "%s", none[k]);
    trace_file_close(&r);
  }
}

TEST(inspector_cut_off) { rare_cut("tests/rare/inspector/node0-pid4242.log", TRACE_FORMAT_inspector); }

// The calls of two ranks: six collectives by their numbers, which count those of one function; a message by its ends.
TEST(inspector_matches) {
  static const char *const paths[] = {"tests/rare/inspector/node0-pid4242.log",
                                      "tests/rare/inspector/node0-pid4243.log"};
  ctx *c = ctx_new();
  arena *a = arena_new();
  job *j = job_open(c, a, 2, paths);
  REQUIRE(j != NULL);
  const match *m = match_job(j, a);
  REQUIRE(m != NULL);
  CHECK_EQ_I64(m->row.n, 7);
  CHECK_EQ_I64(m->problem.n, 0);
  u32 late = 0;
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *r = &m->row.v[k];
    CHECK_EQ_I64(r->n, 2);
    for (u32 i = 0; i < r->n; i++) {
      const i64 wait = m->member.v[r->first + i].wait_ps;
      if (wait) CHECK(wait == 300000000 && m->places.v[m->member.v[r->first + i].place].rank == 1), late++;
    }
  }
  CHECK_EQ_I64(late, 1); // rank 0 came 300 us after rank 1 to the fifth
  job_close(j);
  arena_free(a);
  ctx_free(c);
}
