// test_byteps.c - BytePS: the queues of a worker's tensors, the requests of a server.
#include "rare.h"

static u32 of_op(const trace_file *r, const char *op) {
  u32 n = 0;
  for (u32 e = 0; e < r->t.n; e++)
    n += r->t.comm[e] != TRACE_NONE && !strcmp(sym_str(r->c, r->t.comms.v[r->t.comm[e]].op), op);
  return n;
}

TEST(byteps_worker) {
  trace_file r = rare_read("tests/rare/byteps/1/comm.json", TRACE_FORMAT_byteps, TRACE_NONE);
  REQUIRE(r.ok);
  CHECK(r.about.events == 32 && r.about.skipped == 0 && r.t.n == 32);
  CHECK(of_op(&r, "send") == 3 && of_op(&r, "recv") == 3 && of_op(&r, "reduce") == 3 &&
        of_op(&r, "broadcast") == 3);
  i64 one, two;
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, "Comm.byteps.gradient_0.PUSH", &one), 1);
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, "Comm.byteps.gradient_1.PUSH", &two), 2);
  CHECK_EQ_I64(one + two, 1200 * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_COPY, NULL, NULL), 6);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, NULL, NULL), 12);
  CHECK_EQ_I64(rare_count(&r, TRACE_NOTE, NULL, NULL), 2); // the whole way of a tensor
  CHECK_EQ_I64(r.t.processes.v[0].base_ns, 1574685984662375000);
  CHECK_EQ_I64(r.t.processes.v[0].rank, 1); // of its folder
  const u32 push = 3;                       // the second part of gradient_1 is told apart from the first
  for (u32 e = 0, n = 0; e < r.t.n && n < push; e++) {
    if (strcmp(trace_file_name(&r, e), n < 2 ? "Comm.byteps.gradient_1.PUSH" : "Comm.byteps.gradient_0.PUSH"))
      continue;
    static const char *const group[] = {"Comm.byteps.gradient_1 key 65536",
                                        "Comm.byteps.gradient_1 key 65537", "Comm.byteps.gradient_0 key 0"};
    CHECK_STR(sym_str(r.c, r.t.comms.v[r.t.comm[e]].group), group[n++]);
  }
  trace_file_close(&r);
}

TEST(byteps_one_of_several_gpus) {
  trace_file r = rare_read("tests/rare/byteps/0/comm.json", TRACE_FORMAT_byteps, 5);
  REQUIRE(r.ok && r.t.n == 8);
  CHECK(of_op(&r, "send") == 0 && of_op(&r, "reduce") == 3 && r.t.processes.v[0].rank == 5);
  trace_file_close(&r);
}

TEST(byteps_server) {
  trace_file r = rare_read("tests/rare/byteps/server_profile.json", TRACE_FORMAT_byteps, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 3);
  CHECK(!strcmp(trace_file_name(&r, 0), "push-9") && r.t.dur_ps[0] == 36000000 &&
        r.t.start_ps[2] == 156000000);
  CHECK(r.t.lanes.n == 1 && r.t.lanes.v[0].id == 27000832 && r.t.processes.v[0].rank == TRACE_NONE);
  trace_file_close(&r);
}

TEST(byteps_cut_off) { rare_cut("tests/rare/byteps/1/comm.json", TRACE_FORMAT_byteps); }
