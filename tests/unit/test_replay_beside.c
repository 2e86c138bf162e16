// test_replay_beside.c - replay of processes that run their events themselves while a thread of each communicates: against jobs
// that a simulator of the test's own has "recorded". What threads and hosts need to wake is any time, never a class's.
#include "diagnose/diagnose.h"
#include "test.h"

enum { PROCESSES = 2, ACTIONS = 40, PARTS = 2, OPS = ACTIONS * PARTS };
static const i64 US = 1000000;

// Both run the same. A communication is a message to the other and one from it, on the thread; the host waits for all
// communications in the order in which they began.
typedef enum { COMPUTE, BEGIN, WAIT } act;
typedef struct {
  u32 n;
  act what[ACTIONS];
  // host: before the action; wake: until the thread has begun, or the host that has waited goes on
  i64 host[PROCESSES][ACTIONS], dur[PROCESSES][ACTIONS][PARTS], wake[PROCESSES][ACTIONS], begin[PROCESSES];
  // simulated
  i64 call[PROCESSES][ACTIONS], returns[PROCESSES][ACTIONS];
  i64 start[PROCESSES][ACTIONS][PARTS], end[PROCESSES][ACTIONS][PARTS];
} random_job;

static random_job make_job(u64 *seed) {
  random_job j = {.n = 0};
  u32 begun = 0, waited = 0;
  for (u32 k = 0; k < ACTIONS; k++) {
    const u32 what = (u32)(rng_next(seed) % 6), left = ACTIONS - k;
    const bool must = begun - waited == left, may_begin = begun - waited + 2 <= left;
    j.what[j.n] = must || (what == 0 && waited < begun) ? WAIT : what < 3 && may_begin ? BEGIN : COMPUTE;
    begun += j.what[j.n] == BEGIN, waited += j.what[j.n] == WAIT, j.n++;
  }
  for (u32 p = 0; p < PROCESSES; p++) {
    j.begin[p] = (i64)(rng_next(seed) % 50) * US;
    for (u32 k = 0; k < j.n; k++) {
      j.host[p][k] = (i64)(rng_next(seed) % 3) * US, j.wake[p][k] = (i64)(rng_next(seed) % 90) * US;
      for (u32 i = 0; i < PARTS; i++) j.dur[p][k][i] = (i64)(1 + rng_next(seed) % 40) * US;
    }
  }
  return j;
}

// The thread of every process has come to the communication of action k: what is sent leaves, what is received takes from when
// both ends are there.
static void communicate(random_job *j, u32 k, i64 *thread, bool as_recorded) {
  i64 *const end[PROCESSES] = {j->end[0][k], j->end[1][k]}, *const start[PROCESSES] = {j->start[0][k],
                                                                                       j->start[1][k]};
  for (u32 p = 0; p < PROCESSES; p++) {
    const bool slept = j->returns[p][k] > thread[p];
    if (!as_recorded && !slept) j->wake[p][k] = 0;
    start[p][0] = MAX(j->returns[p][k], thread[p]) + j->wake[p][k];
    end[p][0] = start[p][1] = start[p][0] + j->dur[p][k][0];
  }
  for (u32 p = 0; p < PROCESSES; p++)
    thread[p] = end[p][1] = MAX(start[p][1], start[1 - p][0]) + j->dur[p][k][1];
}

// Returns when the last of all ends. as_recorded: who slept then sleeps again; else who waits sleeps.
static i64 simulate(random_job *j, bool as_recorded) {
  i64 clock[PROCESSES], thread[PROCESSES] = {0}, all = 0;
  u32 first = 0; // communication that was not waited for
  memcpy(clock, j->begin, sizeof clock);
  for (u32 k = 0; k < j->n; k++) {
    while (j->what[k] == WAIT && j->what[first] != BEGIN) first++;
    for (u32 p = 0; p < PROCESSES; p++) {
      j->call[p][k] = clock[p] += j->host[p][k];
      if (j->what[k] == BEGIN) clock[p] += US;
      if (j->what[k] == COMPUTE) j->start[p][k][0] = clock[p], j->end[p][k][0] = clock[p] += j->dur[p][k][0];
      if (j->what[k] == WAIT) {
        if (!as_recorded && clock[p] >= j->end[p][first][1]) j->wake[p][k] = 0;
        clock[p] = MAX(clock[p], j->end[p][first][1]) + j->wake[p][k];
      }
      j->returns[p][k] = clock[p];
      if (j->what[k] == COMPUTE) all = MAX(all, clock[p]);
    }
    if (j->what[k] == BEGIN) communicate(j, k, thread, as_recorded);
    first += j->what[k] == WAIT;
  }
  return MAX(all, MAX(thread[0], thread[1]));
}

static trace *record(ctx *c, arena *a, const random_job *j, u32 p) {
  trace *t = NEW(a, trace);
  *vec_push(a, &t->processes) =
      (trace_process){.rank = p, .world_size = 2, .base_ns = 1000000, .serial = true};
  const u32 main = trace_lane_of(a, t, 0, true, 0, 0), beside = trace_lane_of(a, t, 0, true, 0, 1),
            host = trace_lane_of(a, t, 0, false, -1, 1);
  for (u32 k = 0; k < j->n; k++) {
    if (j->what[k] == COMPUTE) {
      const u32 e =
          trace_add(a, t, TRACE_KERNEL, main, sym_of(c, "matmul"), j->start[p][k][0], j->dur[p][k][0]);
      t->cause[e] = e;
      continue;
    }
    const char *name = j->what[k] == BEGIN ? "begin communication" : "wait for communication";
    const u32 call =
        trace_add(a, t, TRACE_CALL, host, sym_of(c, name), j->call[p][k], j->returns[p][k] - j->call[p][k]);
    for (u32 i = 0; j->what[k] == BEGIN && i < PARTS; i++) {
      const u32 e = trace_add(a, t, TRACE_KERNEL, beside, sym_of(c, "all_reduce"), j->start[p][k][i],
                              j->end[p][k][i] - j->start[p][k][i]);
      t->cause[e] = call, t->flags[e] = TRACE_COMM | (i ? 0 : TRACE_LEAVES);
    }
  }
  return t;
}

typedef struct {
  ctx *c;
  arena *a;
  job_work *w[PROCESSES];
  u32 *coll[PROCESSES];
  replay *r;
  replay_times t;
} replayed;

// The k-th message of one belongs to the k-th of the other: what is sent to what is received.
static bool replay_job(replayed *x, const random_job *j) {
  replay_input in = {.n = PROCESSES, .w = x->w, .coll = x->coll};
  for (u32 p = 0; p < PROCESSES; p++) {
    x->w[p] = job_work_of(x->c, x->a, record(x->c, x->a, j, p), 0, j->begin[p], INT64_MAX);
    x->coll[p] = ZNEWN(x->a, u32, x->w[p]->nops + 1);
    in.ncolls = 0;
    for (u32 k = 0; k < x->w[p]->nops; k++) {
      if (!x->w[p]->op[k].comm) continue;
      x->coll[p][k] = ++in.ncolls;
      if (p) x->coll[p][k] += in.ncolls % 2 ? 1 : -1;
    }
  }
  replay_meeting *meet = ZNEWN(x->a, replay_meeting, in.ncolls + 1);
  i64 *last = NEWN(x->a, i64, in.ncolls + 1);
  for (u32 k = 0; k <= in.ncolls; k++) last[k] = INT64_MIN;
  for (u32 p = 0; p < PROCESSES; p++)
    for (u32 k = 0; k < x->w[p]->nops; k++) {
      const u32 at = x->coll[p][k];
      if (at && x->w[p]->op[k].start_ps > last[at])
        last[at] = x->w[p]->op[k].start_ps, meet[at].process = p, meet[at].late_op = k;
    }
  in.meet = meet;
  x->r = replay_new(x->c, x->a, &in);
  if (!x->r) return false;
  x->t = replay_recorded(x->r, x->a);
  return true;
}

static void check_ends(const replayed *x, i64 *const *end, const random_job *j, i64 first) {
  for (u32 p = 0; p < PROCESSES; p++)
    for (u32 k = 0, op = 0; k < j->n; k++)
      for (u32 i = 0; j->what[k] != WAIT && i < (j->what[k] == BEGIN ? PARTS : 1u); i++)
        CHECK_EQ_I64(end[p][op++], j->end[p][k][i] - first);
  (void)x;
}

// As recorded, then with half of what the second one computes, and with communication that takes no time.
TEST(replay_beside_computation) {
  u64 seed = 3;
  for (u32 n = 0; n < 200; n++) {
    random_job j = make_job(&seed);
    const i64 first = MIN(j.begin[0], j.begin[1]), whole = simulate(&j, false);
    replayed x = {.c = ctx_new(), .a = arena_new()};
    REQUIRE(replay_job(&x, &j));
    i64 *end[PROCESSES] = {NEWN(x.a, i64, OPS), NEWN(x.a, i64, OPS)};
    CHECK_EQ_I64(replay_run(x.r, &x.t, NULL, end), whole - first);
    check_ends(&x, end, &j, first);
    const replay_latency *l = replay_latencies(x.r);
    CHECK(!l->launch_ps[LAUNCH_KERNEL] && !l->queue_ps && !l->cross_ps && !l->sync_ps);
    for (u32 k = 0, op = 0; k < j.n; k++) {
      if (j.what[k] == COMPUTE) j.dur[1][k][0] /= 2, x.t.op[1][op++] /= 2;
      if (j.what[k] == BEGIN) op += PARTS;
    }
    CHECK_EQ_I64(replay_run(x.r, &x.t, NULL, end), simulate(&j, true) - first);
    check_ends(&x, end, &j, first);
    for (u32 p = 0; p < PROCESSES; p++) {
      for (u32 k = 0; k < x.w[p]->nops; k++)
        if (x.w[p]->op[k].comm) x.t.op[p][k] = 0;
      for (u32 k = 0; k < j.n; k++)
        if (j.what[k] == BEGIN) j.dur[p][k][0] = j.dur[p][k][1] = 0;
    }
    const i64 without = replay_run(x.r, &x.t, NULL, end);
    CHECK_EQ_I64(without, simulate(&j, true) - first);
    CHECK(without < whole - first);
    arena_free(x.a);
    ctx_free(x.c);
  }
}
