// test_gtrace.c - dPRO's traces: workers and their ranks, tensors and parts of messages.
#include "rare.h"

TEST(gtrace_of_four_workers) {
  trace_file r = rare_read("tests/rare/gtrace/bps_trace_final.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  REQUIRE(r.ok);
  CHECK(r.about.events == 180 && r.about.skipped == 0 && r.t.n == 180 && r.t.processes.n == 4);
  static const char *const host[] = {"host0", "host0", "host1", "host1"};
  u32 events[4] = {0};
  i64 computes = 0;
  for (u32 p = 0; p < 4; p++) {
    CHECK(r.t.processes.v[p].rank == p && r.t.processes.v[p].world_size == 4);
    CHECK_STR(sym_str(r.c, r.t.processes.v[p].host), host[p]);
    CHECK_EQ_I64(r.t.processes.v[p].base_ns, 1612345678000000000);
  }
  u32 backward = 0, update = 0;
  for (u32 e = 0; e < r.t.n; e++) {
    const u32 p = r.t.lanes.v[r.t.lane[e]].process;
    events[p]++;
    backward += r.t.flags[e] & TRACE_BACKWARD ? 1 : 0, update += r.t.flags[e] & TRACE_UPDATE ? 1 : 0;
    if (p == 3 && r.t.is[e] == TRACE_KERNEL && !(r.t.flags[e] & TRACE_COMM)) computes += r.t.dur_ps[e];
    CHECK(r.t.step[e] <= 2);
  }
  CHECK(events[0] == 45 && events[1] == 45 && events[2] == 45 && events[3] == 45);
  CHECK(backward == 12 && update == 24);
  CHECK_EQ_I64(computes, 8670 * (i64)1000000);
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, "Comm.3+4.SEND", NULL), 36);
  CHECK_EQ_I64(rare_count(&r, TRACE_COPY, NULL, NULL), 12);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "Comm.3+4.Sync", NULL), 12);
  CHECK_EQ_I64(rare_count(&r, TRACE_OP, "I/O_0", NULL), 12);
  trace_file_close(&r);
}

// The parts of messages: from the long name, and from args where there is none.
TEST(gtrace_parts) {
  trace_file r = rare_read("tests/rare/gtrace/worker1.json.gz", TRACE_FORMAT_gtrace, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 45);
  CHECK_EQ_I64(r.t.processes.v[0].rank, 1);
  u32 seen[3][3] = {{0}}, sends = 0;
  for (u32 e = 0; e < r.t.n; e++) {
    if (strcmp(trace_file_name(&r, e), "Comm.3+4.SEND")) continue;
    const trace_comm *m = &r.t.comms.v[r.t.comm[e]];
    int chunk = -1;
    sends++;
    CHECK(sscanf(sym_str(r.c, m->group), "3+4 0_1_%d_0 host0.rank1", &chunk) == 1 && chunk >= 0 && chunk < 3);
    CHECK(m->seq >= 0 && m->seq < 3 && m->peer == TRACE_NONE && !strcmp(sym_str(r.c, m->op), "send"));
    if (chunk >= 0 && chunk < 3 && m->seq >= 0 && m->seq < 3) seen[m->seq][chunk]++;
  }
  CHECK_EQ_I64(sends, 9);
  for (u32 k = 0; k < 9; k++) CHECK_EQ_I64(seen[k / 3][k % 3], 1);
  trace_file_close(&r);
  static const char text[] =
      "[{\"name\":\"Comm.7.RECV\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":\"comm_detail_r3_lr1\",\"tid\":"
      "\"none\",\"cat\":\"Comm\",\"args\":{\"name\":\"Comm.7\",\"loopId\":\"2\",\"channelId\":\"0\","
      "\"chunkId\":\"6\",\"sliceId\":\"1\"}}]";
  r = rare_text(text, sizeof text - 1, TRACE_FORMAT_gtrace);
  REQUIRE(r.ok && r.t.n == 1 && r.t.comm[0] != TRACE_NONE);
  CHECK_STR(sym_str(r.c, r.t.comms.v[r.t.comm[0]].group), "7 2_0_6_1 comm_detail_r3_lr1");
  CHECK(r.t.processes.v[0].rank == 3 && r.t.comms.v[r.t.comm[0]].seq == -1);
  trace_file_close(&r);
}

TEST(gtrace_hosts_in_order_of_their_numbers) {
  static const char text[] =
      "[{\"name\":\"FW.a\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":\"node10.rank0\",\"tid\":\"operator0\"},"
      "{\"name\":\"FW.a\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":\"node9.rank1\",\"tid\":\"operator0\"},"
      "{\"name\":\"Comm.g.PUSH_REQ~>worker_0::server_0::1\",\"ph\":\"X\",\"ts\":5,\"dur\":2,\"pid\":"
      "\"worker_0::server_0\",\"tid\":0}]";
  trace_file r = rare_text(text, sizeof text - 1, TRACE_FORMAT_gtrace);
  REQUIRE(r.ok && r.t.n == 3 && r.t.processes.n == 3);
  CHECK(r.t.processes.v[0].rank == 1 && r.t.processes.v[1].rank == 0 &&
        r.t.processes.v[2].rank == TRACE_NONE);
  CHECK_STR(sym_str(r.c, r.t.comms.v[r.t.comm[2]].group), "g worker_0::server_0::1");
  CHECK_STR(sym_str(r.c, r.t.processes.v[2].host), "worker_0::server_0");
  trace_file_close(&r);
}

TEST(gtrace_messages_of_byteps) {
  trace_file r = rare_read("tests/rare/gtrace/comm_timeline.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 16 && r.t.processes.n == 2);
  i64 ps;
  CHECK_EQ_I64(rare_count(&r, TRACE_KERNEL, "byteps.gradient_0~PART1.PUSH", &ps), 4);
  CHECK_EQ_I64(ps, 1000 * (i64)1000000);
  CHECK_STR(sym_str(r.c, r.t.processes.v[1].host), "server_1 -> worker_0");
  CHECK_STR(sym_str(r.c, r.t.comms.v[r.t.comm[0]].group), "byteps.gradient_0~PART0");
  trace_file_close(&r);
}

TEST(gtrace_cut_off) { rare_cut("tests/rare/gtrace/bps_trace_final.json", TRACE_FORMAT_gtrace); }

// ---- transaction ids --------------------------------------------------------------------------------------
static u32 waits_for(const trace_file *r, u32 e, u32 *first) {
  u32 n = 0;
  for (u32 k = 0; k < r->t.edges.n; k++)
    if (r->t.edges.v[k].event == e && !n++) *first = r->t.edges.v[k].after;
  return n;
}

// Two workers: both ends of every step of the ring, the next step for what came in, BytePS' answers for its requests.
TEST(gtrace_messages_by_their_ids) {
  trace_file r = rare_read("tests/rare/gtrace/pair.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  REQUIRE(r.ok && r.t.n == 72 && !diag_count(r.c));
  u32 ends[128] = {0}, sends = 0, passed_on = 0, answers = 0, pulled = 0;
  for (u32 e = 0; e < r.t.n; e++) {
    const char *word = strrchr(trace_file_name(&r, e), '.') + 1;
    u32 on = 0;
    const u32 n = waits_for(&r, e, &on);
    if (strcmp(word, "SEND") && strcmp(word, "RECV") && strncmp(word, "PU", 2)) continue;
    REQUIRE(r.t.match[e] && r.t.match[e] < COUNT_OF(ends));
    ends[r.t.match[e]]++;
    if (!strcmp(word, "SEND")) {
      sends++, passed_on += n;
      for (u32 o = 0; o < r.t.n; o++) // the other end: another worker's, of the same chunk and step
        if (o != e && r.t.match[o] == r.t.match[e])
          CHECK(!strcmp(trace_file_name(&r, o), "Comm.3.RECV") && r.t.step[o] == r.t.step[e] &&
                trace_process_of(&r.t, o)->rank == 1 - trace_process_of(&r.t, e)->rank);
      if (n)
        CHECK(!strcmp(trace_file_name(&r, on), "Comm.3.RECV") &&
              trace_process_of(&r.t, on)->rank == trace_process_of(&r.t, e)->rank &&
              r.t.start_ps[on] < r.t.start_ps[e]);
    }
    if (!strcmp(word, "PUSH_RES")) answers += n;
    if (!strcmp(word, "PULL_RES")) {
      CHECK_EQ_I64(n, 3); // its request, and the pushes of both workers
      pulled++;
      for (u32 k = 0; k < r.t.edges.n; k++) {
        if (r.t.edges.v[k].event != e) continue;
        const u32 o = r.t.edges.v[k].after;
        CHECK(r.t.step[o] == r.t.step[e] && r.t.start_ps[o] + r.t.dur_ps[o] <= r.t.start_ps[e]);
      }
    }
  }
  CHECK(sends == 16 && passed_on == 8 && answers == 8 && pulled == 8);
  for (u32 k = 1; k < COUNT_OF(ends); k++) CHECK(ends[k] == (k <= 48 ? ends[k] : 0) && ends[k] <= 2);
  trace_file_close(&r);
  // Of four workers who is next in the ring is not said: what is passed on is known all the same.
  r = rare_read("tests/rare/gtrace/bps_trace_final.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  CHECK(r.ok && !diag_count(r.c));
  CHECK_EQ_I64(r.t.edges.n, 4 * 3 * 2); // 2 of 3 steps
  for (u32 e = 0; e < r.t.n; e++) CHECK(!r.t.match[e]);
  trace_file_close(&r);
  // Steps that are not said are counted: two of each part.
  r = rare_read("tests/rare/gtrace/comm_timeline.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  CHECK(r.ok && !diag_count(r.c));
  CHECK_EQ_I64(r.t.edges.n, 4 * (1 + 1 + 2));
  trace_file_close(&r);
}

// What has no other end, and what is there twice, is told and tied to nothing.
TEST(gtrace_orphans_and_duplicates) {
#define MESSAGE(name, ends, at, cnt)                                                                         \
  "{\"name\":\"Comm.g." name "\",\"ph\":\"X\",\"ts\":" #at ",\"dur\":5,\"pid\":\"" ends                      \
  "\",\"tid\":0,\"args\":"                                                                                   \
  "{\"name\":\"Comm.g." name "~>" ends "::0\",\"cnt\":" #cnt "}}"
  static const char text[] = "[" MESSAGE("PUSH_REQ", "worker_0::server_0", 100, 0) "," MESSAGE(
      "PUSH_RES", "server_0::worker_0", 110,
      0) "," MESSAGE("PUSH_RES", "server_0::worker_0", 120,
                     0) "," MESSAGE("PUSH_RES", "server_0::worker_1", 130,
                                    0) "," MESSAGE("PULL_REQ", "worker_0::server_0", 140,
                                                   7) "," MESSAGE("PULL_RES", "server_1::worker_0", 150,
                                                                  7) "]";
#undef MESSAGE
  trace_file r = rare_text(text, sizeof text - 1, TRACE_FORMAT_gtrace);
  REQUIRE(r.ok && r.t.n == 6);
  CHECK_EQ_I64(r.t.edges.n, 1); // the first answer for its request
  CHECK(r.t.edges.v[0].event == 1 && r.t.edges.v[0].after == 0);
  CHECK_EQ_I64(diag_count(r.c), 1);
  const char *told = diag_render(r.c, r.a);
  CHECK_MSG(strstr(told, "of 6 messages 3 have no other end here and 1 is there twice") ||
                strstr(told, "of 6 messages 3 have no other end here and 1 are there twice"),
            "%s", told);
  trace_file_close(&r);
}

// Written as a graph, messages are tied besides the order of their threads.
TEST(gtrace_written_as_chakra) {
  trace_file r = rare_read("tests/rare/gtrace/pair.json", TRACE_FORMAT_gtrace, TRACE_NONE);
  REQUIRE(r.ok);
  char path[200];
  snprintf(path, sizeof path, "%s/test_gtrace-%d.et", test_build(), (int)getpid());
  u64 nodes;
  REQUIRE(trace_write_chakra(r.c, &r.t, 0, path, &nodes));
  trace_file w = trace_file_open(path, TRACE_FORMAT_chakra);
  u32 after_recv = 0, in_order = 0;
  CHECK_EQ_I64((i64)nodes, w.t.n);
  for (u32 k = 0; k < w.t.edges.n; k++) {
    REQUIRE(w.t.edges.v[k].after != TRACE_NONE);
    const char *to = trace_file_name(&w, w.t.edges.v[k].event),
               *on = trace_file_name(&w, w.t.edges.v[k].after);
    if (w.t.edges.v[k].data)
      after_recv += !strcmp(to, "Comm.3.SEND") && !strcmp(on, "Comm.3.RECV");
    else
      in_order++;
  }
  CHECK(after_recv == 4 && in_order == w.t.n - 2); // two threads
  trace_file_close(&w);
  trace_file_close(&r);
  unlink(path);
}
