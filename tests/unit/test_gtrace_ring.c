// test_gtrace_ring.c - rings of several workers in dPRO's traces: NCCL's graphs beside them, in one file and in one each, with
// messages that are missing or there twice.
#include "diagnose/diagnose.h"
#include "rare.h"
#include <stdlib.h>
#include <sys/stat.h>

enum { STEPS = 2, WORKERS_MOST = 8 };
typedef struct {
  u32 n;                                  // workers
  u32 dropped, doubled;                   // RECVs of worker 1: so many of the first
  bool graphs;                            // are there?
  char dir[120], path[WORKERS_MOST][160]; // [n]: of each worker's own file
  const char *file[WORKERS_MOST];
} ring;

// The ring goes up in even numbers and down in odd ones, so that no worker's next is its neighbour: 0 2 4 .. 5 3 1.
static u32 at_place(const ring *r, u32 k) {
  const u32 up = (r->n + 1) / 2;
  return k < up ? 2 * k : 2 * (r->n - k) - 1;
}
static u32 next_of(const ring *r, u32 w, u32 by) {
  u32 k = 0;
  while (at_place(r, k) != w) k++;
  return at_place(r, (k + by) % r->n);
}

static void put_graph(const ring *r, u32 w) {
  char path[200];
  snprintf(path, sizeof path, "%s/h/%u/nccl_rank_graph.json", r->dir, w);
  FILE *f = fopen(path, "w");
  REQUIRE(f);
  fprintf(
      f,
      "{\"Tree\": {\"-1\": \"[0] 1/-1/-1->0->-1|-1->0->1/-1/-1\"}, \"RealRing\": {\"0\": \"%u[1] -> %u[2] "
      "[receive] via NET/IB/0,%u[2] -> %u[3] via P2P/IPC\"}}",
      next_of(r, w, r->n - 1), w, w, next_of(r, w, 1));
  REQUIRE(!fclose(f));
}

static void put_messages(const ring *r, FILE *f, u32 w, bool alone, bool *first) {
  u32 dropped = w == 1 ? r->dropped : 0, doubled = w == 1 ? r->doubled : 0;
  for (u32 step = 0; step < STEPS; step++)
    for (u32 chunk = 0; chunk < 2 * (r->n - 1); chunk++)
      for (u32 receives = 0; receives < 2; receives++) {
        u32 times = 1;
        if (receives && dropped) times = 0, dropped--;
        if (receives && times && doubled) times = 2, doubled--;
        for (; times; times--, *first = false) {
          fprintf(f, "%s{\"ph\":\"X\",\"ts\":%llu,\"dur\":%u,\"cat\":\"Comm\",", *first ? "" : ",",
                  1612345678000000ULL + 5000 * step + 100 * chunk + times, receives ? 40 : 20);
          if (alone)
            fprintf(f, "\"pid\":\"comm_detail_r%u_lr%u\",\"tid\":\"none\",\"name\":\"%u->Comm.g.%s\",", w, w,
                    step, receives ? "RECV" : "SEND");
          else
            fprintf(f, "\"pid\":\"h.rank%u\",\"tid\":\"c\",\"name\":\"Comm.g.%s\",", w,
                    receives ? "RECV" : "SEND");
          fprintf(f,
                  "\"args\":{\"name\":\"%u->Comm.g.%s\",\"loopId\":0,\"channelId\":0,\"chunkId\":%u,"
                  "\"sliceId\":0}}",
                  step, receives ? "RECV" : "SEND", chunk);
        }
      }
}

// In r->dir one file of all, and below it one of each worker; their graphs are where both look for them.
static void put_ring(ring *r) {
  char path[200];
  bool first = true;
  snprintf(r->dir, sizeof r->dir, "%s/ring-%d", test_build(), (int)getpid());
  snprintf(path, sizeof path, "%s/h", r->dir);
  REQUIRE(!mkdir(r->dir, 0777) && !mkdir(path, 0777));
  snprintf(path, sizeof path, "%s/all.json", r->dir);
  FILE *all = fopen(path, "w");
  REQUIRE(all);
  fputs("[", all);
  for (u32 w = 0; w < r->n; w++) {
    bool alone = true;
    snprintf(path, sizeof path, "%s/h/%u", r->dir, w);
    REQUIRE(!mkdir(path, 0777));
    snprintf(r->path[w], sizeof r->path[w], "%s/h/%u/comm_detail.json", r->dir, w);
    FILE *f = fopen(r->file[w] = r->path[w], "w");
    REQUIRE(f);
    fputs("{\"traceEvents\": [", f);
    put_messages(r, f, w, true, &alone);
    fputs("]}", f);
    REQUIRE(!fclose(f));
    put_messages(r, all, w, false, &first);
    if (r->graphs) put_graph(r, w);
  }
  fputs("]", all);
  REQUIRE(!fclose(all));
}
static void drop_ring(const ring *r) {
  char path[200];
  for (u32 w = 0; w < r->n; w++) {
    unlink(r->path[w]);
    snprintf(path, sizeof path, "%s/h/%u/nccl_rank_graph.json", r->dir, w), unlink(path);
    snprintf(path, sizeof path, "%s/h/%u", r->dir, w), rmdir(path);
  }
  snprintf(path, sizeof path, "%s/all.json", r->dir), unlink(path);
  snprintf(path, sizeof path, "%s/h", r->dir), rmdir(path), rmdir(r->dir);
}

typedef struct {
  u32 tied, wrong, problems, edges, told;
  char text[400];
} seen;

// Both ends of a message: the right workers, one step of the ring, one step of training.
static seen look(const ring *r, bool one_each) {
  char all[200];
  snprintf(all, sizeof all, "%s/all.json", r->dir);
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *one = all;
  job *j = job_open(c, a, one_each ? r->n : 1, one_each ? r->file : &one);
  REQUIRE(j);
  seen s = {0};
  const match *m = match_job(j, a);
  REQUIRE(m);
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *row = &m->row.v[k];
    if (row->n != 2) continue;
    const match_member *v = &m->member.v[row->first];
    const u32 from = m->places.v[v[0].place].rank, to = m->places.v[v[1].place].rank;
    s.tied++, s.wrong += next_of(r, from, 1) != to || llabs(v[0].start_ps - v[1].start_ps) > 1000000;
  }
  s.problems = m->problem.n, s.told = diag_count(c);
  snprintf(s.text, sizeof s.text, "%s", s.told ? diag_render(c, a) : "");
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    REQUIRE(t);
    s.edges += t->edges.n;
    job_unload(j, k);
  }
  arena_free(a);
  ctx_free(c);
  return s;
}

TEST(gtrace_ring_of_several_workers) {
  static const u32 workers[] = {2, 3, 4, 8};
  for (u32 k = 0; k < COUNT_OF(workers); k++) {
    ring r = {.n = workers[k], .graphs = true};
    const u32 n = r.n, chunks = 2 * (n - 1), all = STEPS * n * chunks;
    put_ring(&r);
    for (u32 each = 0; each < 2; each++) {
      const seen s = look(&r, each);
      CHECK_MSG(s.tied == all && !s.wrong && !s.problems && !s.told, "%u workers: %u tied, %u wrong: %s", n,
                s.tied, s.wrong, s.text);
      CHECK_EQ_I64(s.edges, STEPS * n * (chunks - 1)); // a step waits for the one before
    }
    drop_ring(&r);
  }
}

TEST(gtrace_ring_dropped_and_doubled) {
  ring r = {.n = 4, .graphs = true, .dropped = 3, .doubled = 2};
  const u32 all = STEPS * 4 * 6;
  put_ring(&r);
  seen s = look(&r, false);
  CHECK(s.tied == all - 3 && !s.wrong && s.told == 1);
  CHECK_MSG(strstr(s.text, "of 95 messages 3 have no other end here and 2 are there twice"), "%s", s.text);
  s = look(&r, true); // who sent what was dropped has another file
  CHECK_MSG(s.tied == all - 3 - 2 + 2 && !s.wrong, "%u tied, %u wrong", s.tied, s.wrong);
  CHECK_MSG(s.told == 1 && strstr(s.text, "of 23 messages 0 have no other end here and 2 are there twice"),
            "%s", s.text);
  CHECK_EQ_I64(s.problems, 3 + 2);
  drop_ring(&r);
}

// Of more than two workers nobody can say who is next without NCCL's graphs; of two it is the other.
TEST(gtrace_ring_without_graphs) {
  for (u32 n = 2; n < 4; n++) {
    ring r = {.n = n};
    put_ring(&r);
    const seen s = look(&r, false);
    CHECK(s.tied == (n == 2 ? STEPS * 2 * 2 : 0) && !s.wrong && !s.told);
    CHECK_EQ_I64(s.edges, STEPS * n * (2 * (n - 1) - 1));
    drop_ring(&r);
  }
}

// Graphs that are no JSON, that have no rings, or of another job: told, with their place.
TEST(gtrace_ring_odd_graphs) {
  static const struct {
    const char *graph, *says;
  } odd[] = {
      {"{\"RealRing\": {\"0\": \"2[1] -> 0[2] [receive] via X", "not JSON"},
      {"{\"Tree\": {}}", "it does not say which rank is next in NCCL's rings"},
      {"{\"RealRing\": {\"0\": \"from -> to\"}}", "it does not say which rank is next in NCCL's rings"},
      {"{\"RealRing\": {\"-1\": \"0[1] -> 1[1] via X\"}}",
       "it does not say which rank is next in NCCL's rings"},
      {"{\"RealRing\": {\"0\": \"1[1] -> 2[1] via X\"}}",
       "it is the graph of rank 1, which is not the rank of its worker"},
      {"{\"RealRing\": {\"0\": \"7[1] -> 2[1] via X\"}}",
       "it is the graph of rank 7, which is not the rank of its worker"},
  };
  ring r = {.n = 3, .graphs = true};
  put_ring(&r);
  char path[200];
  snprintf(path, sizeof path, "%s/h/2/nccl_rank_graph.json", r.dir);
  for (u32 k = 0; k < COUNT_OF(odd); k++) {
    FILE *f = fopen(path, "w");
    REQUIRE(f && fputs(odd[k].graph, f) >= 0 && !fclose(f));
    char all[200];
    snprintf(all, sizeof all, "%s/all.json", r.dir);
    trace_file t = trace_file_read(all, TRACE_FORMAT_gtrace, TRACE_NONE);
    CHECK(t.ok == (k > 0) && diag_count(t.c) == 1);
    const char *told = diag_render(t.c, t.a);
    CHECK_MSG(strstr(told, path) && (!k || strstr(told, odd[k].says)), "%s", told);
    for (u32 e = 0; e < t.t.n; e++) CHECK(!t.t.match[e]);
    trace_file_close(&t);
  }
  drop_ring(&r);
}

// Files beside a trace with any bytes: read, or told with their place.
TEST(gtrace_ring_files_of_any_bytes) {
  static const char *const beside[] = {"nccl_rank_graph.json", "gradient_name_list.json"};
  static const char *const text[] = {
      "{\"Tree\": {\"-1\": \"[0] 1/-1/-1->0\"}, \"RealRing\": {\"0\": \"2[1] -> 0[2] [receive] via X,0[2] -> "
      "1[3] via P\"}}",
      "{\"gradient_name_list\": [\"w;shape=(512, 1024);dtype=float16\", \"b;shape=(8,);dtype=float32\"]}"};
  u64 rng = 7;
  u32 whole = 0, refused = 0;
  ring r = {.n = 3, .graphs = true};
  put_ring(&r);
  for (u32 k = 0; k < 600 / test_step(); k++) {
    const char *of = text[k % 2];
    char path[200], bytes[200];
    size_t n = strlen(of);
    memcpy(bytes, of, n);
    for (u32 i = 0; i < 1 + k % 5; i++) {
      char *at = &bytes[rng_next(&rng) % n];
      *at = k % 3 ? "0[]->,;\"{}-=:9e+"[rng_next(&rng) % 16] : (char)rng_next(&rng);
    }
    if (k % 7 == 0) n = rng_next(&rng) % n;
    snprintf(path, sizeof path, "%s/h/0/%s", r.dir, beside[k % 2]);
    FILE *f = fopen(path, "w");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
    char all[200];
    snprintf(all, sizeof all, "%s/all.json", r.dir);
    trace_file t = trace_file_read(all, TRACE_FORMAT_gtrace, TRACE_NONE);
    whole += t.ok, refused += !t.ok;
    CHECK(t.ok || (diag_count(t.c) && strstr(diag_render(t.c, t.a), beside[k % 2])));
    trace_file_close(&t);
    if (k % 2) unlink(path);
    if (!(k % 2)) put_graph(&r, 0);
  }
  CHECK(whole > 50 / test_step() && refused > 50 / test_step());
  drop_ring(&r);
}
