// test_messages.c - jobs recorded as operators and messages: their graph, its replay, and as a job to be tuned.
#include "diagnose/diagnose.h"
#include "rare.h"

typedef struct {
  ctx *c;
  arena *a;
  job *j;
} opened;
static opened open_job(const char *path) {
  opened o = {ctx_new(), arena_new(), NULL};
  o.j = job_open(o.c, o.a, 1, &path);
  REQUIRE(o.j && message_job(o.j));
  return o;
}
static void close_job(const opened *o) {
  job_close(o->j);
  arena_free(o->a);
  ctx_free(o->c);
}

// What a recording of so many lines says, each an event: name, process, start and duration in us, step.
static opened open_events(const char *const *line, u32 n) {
  static char path[200];
  snprintf(path, sizeof path, "%s/messages-%d.json", test_build(), (int)getpid());
  FILE *f = fopen(path, "w");
  REQUIRE(f);
  fputs("[", f);
  for (u32 k = 0; k < n; k++) {
    char name[64], pid[64], part[64];
    int start, dur;
    REQUIRE(sscanf(line[k], "%63s %63s %d %d %63s", name, pid, &start, &dur, part) >= 4);
    fprintf(f,
            "%s{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%lld,\"dur\":%d,\"pid\":\"%s\",\"tid\":\"%s\",\"args\":{"
            "\"name\":"
            "\"%s~>%s\",\"cnt\":0,\"step\":0}}",
            k ? "," : "", name, 1612345678000000LL + start, dur, pid, strncmp(name, "Comm", 4) ? "o" : "c",
            name, part);
  }
  fputs("]", f);
  REQUIRE(!fclose(f));
  return open_job(path);
}

static bool waits_for(const message_graph *g, const char *name, const char *after, u32 rank) {
  for (u32 k = 0; k < g->nedges; k++) {
    const message_node *x = &g->node[g->edge[k].node], *on = &g->node[g->edge[k].after];
    if (!strcmp(sym_str(g->j->c, x->name), name) && !strcmp(sym_str(g->j->c, on->name), after) &&
        g->m->places.v[on->place].rank == rank)
      return true;
  }
  return false;
}

// Two workers, by hand: the ring begins when the slower one is ready, and both update 5 us after its last message.
static const char *const by_hand[] = {
    "FW.a h0.rank0 0 100 -",
    "BW.a h0.rank0 100 200 -",
    "UPDATE_0 h0.rank0 485 50 -",
    "FW.a h1.rank0 0 100 -",
    "BW.a h1.rank0 100 300 -",
    "UPDATE_0 h1.rank0 485 50 -",
    "Comm.0.SEND h0.rank0 400 30 0_0_0_0",
    "Comm.0.RECV h1.rank0 400 40 0_0_0_0",
    "Comm.0.SEND h1.rank0 400 30 0_0_0_0",
    "Comm.0.RECV h0.rank0 400 40 0_0_0_0",
    "Comm.0.SEND h0.rank0 440 30 0_0_1_0",
    "Comm.0.RECV h1.rank0 440 40 0_0_1_0",
    "Comm.0.SEND h1.rank0 440 30 0_0_1_0",
    "Comm.0.RECV h0.rank0 440 40 0_0_1_0",
};

TEST(messages_by_hand) {
  opened o = open_events(by_hand, COUNT_OF(by_hand));
  const message_graph *g = message_graph_of(o.j, NULL);
  REQUIRE(g && g->n == 10 && g->nmessages == 4 && g->workers == 2 && g->nres == 4 && g->ring && !g->servers);
  CHECK(waits_for(g, "Comm.0.SEND", "BW.a", 0) && waits_for(g, "Comm.0.SEND", "BW.a", 1));
  CHECK(waits_for(g, "UPDATE_0", "Comm.0.SEND", 0) && waits_for(g, "UPDATE_0", "Comm.0.SEND", 1));
  CHECK(!waits_for(g, "UPDATE_0", "FW.a", 0) && waits_for(g, "UPDATE_0", "BW.a", 0));
  message_replay r;
  REQUIRE(message_replay_of(g, o.a, &r));
  CHECK_EQ_I64(r.error.recorded_ps, 535 * (i64)1000000);
  CHECK_EQ_I64(r.path_operators_ps, 450 * (i64)1000000); // of the slower one
  CHECK_EQ_I64(r.path_messages_ps, 80 * (i64)1000000);
  CHECK_EQ_I64(r.replayed_ps, r.path_operators_ps + r.path_messages_ps + r.path_latency_ps);
  CHECK_MSG(r.error.most_ps <= 1000000, "%lld", (long long)r.error.most_ps); // whole microseconds
  close_job(&o);
}

// Without the slower worker's last 100 us the ring begins as much earlier: the replay follows what waits, not the clock.
TEST(messages_follow_what_waits) {
  opened o = open_events(by_hand, COUNT_OF(by_hand));
  message_graph *g = message_graph_of(o.j, NULL);
  message_replay before, after;
  REQUIRE(g && message_replay_of(g, o.a, &before));
  for (u32 k = 0; k < g->n; k++) {
    message_node *x = &g->node[k];
    const bool slower = x->place == 1 && x->phase == TUNE_BACKWARD && x->is == MESSAGE_OPERATOR;
    if (slower)
      x->dur_ps -= 100 * (i64)1000000, x->end_ps -= 100 * (i64)1000000;
    else if (x->end_ps > g->node[1].start_ps + 250 * (i64)1000000)
      x->start_ps -= 100 * (i64)1000000, x->end_ps -= 100 * (i64)1000000;
  }
  REQUIRE(message_replay_of(g, o.a, &after));
  CHECK_EQ_I64(before.replayed_ps - after.replayed_ps, 100 * (i64)1000000);
  close_job(&o);
}

TEST(messages_of_a_ring) {
  opened o = open_job("tests/rare/gtrace/ring/bps_trace_final.json");
  const message_graph *g = message_graph_of(o.j, NULL);
  message_replay r;
  REQUIRE(g && g->workers == 4 && g->nmessages == 144 && g->n == 144 + 48 && message_replay_of(g, o.a, &r));
  CHECK_EQ_I64(g->clocks_by_ps, 3000 * (i64)1000000);
  CHECK_MSG(r.error.mean_ps < 5e6 && r.error.most_ps < 15000000, "%.0f %lld", r.error.mean_ps,
            (long long)r.error.most_ps);
  tuning t;
  REQUIRE(tuning_of(o.j, NULL, o.a, &t));
  CHECK(t.rank == 3 && t.job.link.workers == 4 && t.job.ntensors == 2 && t.job.nops == 4 && t.sized &&
        !t.one_size);
  CHECK_EQ_I64(t.job.tensor[0].bytes, 2 << 20);
  CHECK_EQ_I64(t.job.tensor[1].bytes, 1 << 20);
  CHECK(t.job.tensor[0].op == 1 && t.job.tensor[1].op == 2 && t.fit_error_ps < 1);
  CHECK_EQ_I64((i64)(t.job.link.ps_per_byte * (1 << 18) + 0.5),
               15 * (i64)1000000); // 40 us of 512 KiB, 25 of 256
  close_job(&o);
}

TEST(messages_to_servers) {
  opened o = open_job("tests/rare/gtrace/servers.json");
  const message_graph *g = message_graph_of(o.j, NULL);
  message_replay r;
  REQUIRE(g && g->servers && !g->ring && g->nmessages == 48 && message_replay_of(g, o.a, &r));
  CHECK(waits_for(g, "Comm.g1.PUSH_REQ", "BW.fc1", 0) && waits_for(g, "Comm.g0.PUSH_REQ", "BW.fc0", 1));
  CHECK_MSG(r.error.most_ps < 30000000, "%lld", (long long)r.error.most_ps);
  close_job(&o);
}

// What cannot be replayed, and why.
TEST(messages_refused) {
  static const struct {
    u32 without; // of the lines by hand
    const char *instead, *says;
  } bad[] = {
      {7, "FW.b h0.rank0 600 1 -",
       "of 7 ends of messages 1 has no other end, such as Comm.0.SEND of tensor 0"},
      {0, "Comm.0.PUSH_REQ worker_0::server_0 400 5 worker_0::server_0::0",
       "messages of rings and of servers"},
  };
  for (u32 k = 0; k < COUNT_OF(bad); k++) {
    const char *line[COUNT_OF(by_hand)];
    memcpy(line, by_hand, sizeof line);
    line[bad[k].without] = bad[k].instead;
    opened o = open_events(line, COUNT_OF(line));
    CHECK(!message_graph_of(o.j, NULL));
    const char *told = diag_render(o.c, o.a);
    CHECK_MSG(strstr(told, bad[k].says) && strstr(told, "messages-"), "%s", told);
    close_job(&o);
  }
  opened o = open_events(by_hand, 6);
  CHECK(!message_graph_of(o.j, NULL) && strstr(diag_render(o.c, o.a), "it has no messages"));
  close_job(&o);
  static const char *const three[] = {"BW.a h0.rank0 100 200 -", "BW.a h1.rank0 100 200 -",
                                      "Comm.g.PUSH_REQ worker_2::server_0 400 5 worker_2::server_0::0",
                                      "Comm.g.PUSH_RES server_0::worker_2 410 5 server_0::worker_2::0"};
  o = open_events(three, COUNT_OF(three));
  CHECK(!message_graph_of(o.j, NULL) &&
        strstr(diag_render(o.c, o.a), "its operators are of 2 hosts, its messages of 3 workers"));
  close_job(&o);
}
