// test_replay.c - replay against jobs that a simulator of the test's own has "recorded": one latency a class, so
// that what is inferred from the recording must give it back exactly, and scenarios must come out as simulated.
#include "diagnose/diagnose.h"
#include "test.h"

enum { PROCESSES = 4, STREAMS = 3, ACTIONS = 60 };
static const i64 US = 1000000, LAUNCH = 5000000, QUEUE = 1000000, CROSS = 2000000, SYNC = 7000000;

// A program that all processes run: what it launches is the same, host times and durations are their own.
typedef struct {
  enum { RUN, WAIT, STOP } what; // launch, a stream waits for the others, the host waits for all
  u32 stream;
  bool comm;
} action;
typedef struct {
  u32 n;
  action a[ACTIONS];
  i64 host[PROCESSES][ACTIONS], dur[PROCESSES][ACTIONS], begin[PROCESSES]; // host: before the action
  // simulated
  i64 call[PROCESSES][ACTIONS], start[PROCESSES][ACTIONS], end[PROCESSES][ACTIONS];
} random_job;

static random_job make_job(u64 *seed, bool stops) {
  random_job j = {.n = 20 + (u32)(rng_next(seed) % (ACTIONS - 20))};
  for (u32 k = 0; k < j.n; k++) {
    const u32 what = (u32)(rng_next(seed) % 12);
    j.a[k].what = k > 2 && what == 0 && stops ? STOP : what < 3 ? WAIT : RUN;
    j.a[k].comm = j.a[k].what == RUN && what == 3;
    j.a[k].stream = j.a[k].comm ? 2 : (u32)(rng_next(seed) % 2);
  }
  j.a[0] = (action){RUN, 0, false},
  j.a[1] = (action){RUN, 2, true}; // all lanes are there, and a launch when idle
  for (u32 p = 0; p < PROCESSES; p++) {
    j.begin[p] = (i64)(rng_next(seed) % 200) * US;
    for (u32 k = 0; k < j.n; k++) {
      j.host[p][k] = (i64)(3 + rng_next(seed) % 40) * US;
      j.dur[p][k] = (i64)(2 + rng_next(seed) % 60) * US;
    }
  }
  return j;
}

// The simulator: every action of every process in turn; a communication when all processes have come to it.
static i64 simulate(random_job *j) {
  i64 clock[PROCESSES], free[PROCESSES][STREAMS], all = 0;
  bool told[PROCESSES] = {false};
  for (u32 p = 0; p < PROCESSES; p++) {
    clock[p] = j->begin[p];
    for (u32 s = 0; s < STREAMS; s++) free[p][s] = INT64_MIN / 2;
  }
  for (u32 k = 0; k < j->n; k++) {
    i64 last = INT64_MIN;
    for (u32 p = 0; p < PROCESSES; p++) {
      i64 idle = INT64_MIN / 2;
      for (u32 s = 0; s < STREAMS; s++) idle = MAX(idle, free[p][s]);
      j->call[p][k] = clock[p] + j->host[p][k] - US; // a call of one microsecond ends the host's work
      clock[p] += j->host[p][k];
      if (j->a[k].what == WAIT) told[p] = true;
      if (j->a[k].what == STOP) clock[p] = MAX(clock[p], idle + SYNC);
      if (j->a[k].what != RUN) {
        j->end[p][k] = clock[p];
        continue;
      }
      const u32 own = j->a[k].stream;
      i64 t = MAX(clock[p] + LAUNCH, free[p][own] + QUEUE);
      for (u32 s = 0; s < STREAMS && told[p]; s++)
        if (s != own) t = MAX(t, free[p][s] + CROSS);
      told[p] = false;
      j->start[p][k] = t, last = MAX(last, t);
    }
    for (u32 p = 0; p < PROCESSES && j->a[k].what == RUN; p++) {
      j->end[p][k] = (j->a[k].comm ? last : j->start[p][k]) + j->dur[p][k];
      free[p][j->a[k].stream] = j->end[p][k];
      all = MAX(all, j->end[p][k]);
    }
  }
  return all;
}

static trace *record(ctx *c, arena *a, const random_job *j, u32 p) {
  trace *t = NEW(a, trace);
  *vec_push(a, &t->processes) = (trace_process){.rank = p, .world_size = PROCESSES, .base_ns = 1000000};
  const u32 host = trace_lane_of(a, t, 0, false, -1, 1);
  for (u32 k = 0; k < j->n; k++) {
    const char *name = j->a[k].what == RUN    ? "cudaLaunchKernel"
                       : j->a[k].what == WAIT ? "cudaStreamWaitEvent"
                                              : "cudaDeviceSynchronize";
    const i64 ends = j->a[k].what == STOP ? j->end[p][k] : j->call[p][k] + US;
    const u32 call = trace_add(a, t, TRACE_CALL, host, sym_of(c, name), j->call[p][k], ends - j->call[p][k]);
    if (j->a[k].what != RUN) continue;
    const u32 lane = trace_lane_of(a, t, 0, true, 0, j->a[k].stream);
    const u32 e =
        trace_add(a, t, TRACE_KERNEL, lane, sym_of(c, j->a[k].comm ? "ncclDevKernel_AllReduce" : "gemm"),
                  j->start[p][k], j->end[p][k] - j->start[p][k]);
    t->cause[e] = call;
    if (j->a[k].comm) t->flags[e] |= TRACE_COMM;
  }
  return t;
}

typedef struct {
  ctx *c;
  arena *a;
  job_work *w[PROCESSES];
  u32 *coll[PROCESSES];
  replay_meeting *meet;
  replay *r;
  replay_times t;
} replayed;

// Who came last, and how much later than the one before.
static void put_meetings(replayed *x, u32 n) {
  x->meet = ZNEWN(x->a, replay_meeting, n + 1);
  for (u32 c = 1; c <= n; c++) {
    i64 last = INT64_MIN, second = INT64_MIN;
    for (u32 p = 0; p < PROCESSES; p++)
      for (u32 k = 0; k < x->w[p]->nops; k++) {
        const i64 at = x->w[p]->base_ns * 1000 + x->w[p]->op[k].start_ps;
        if (x->coll[p][k] != c) continue;
        second = MAX(second, MIN(at, last));
        if (at > last) last = at, x->meet[c].process = p, x->meet[c].late_op = k;
      }
    x->meet[c].ahead_ps = last - second;
  }
}

static bool replay_job(replayed *x, const random_job *j) {
  replay_input in = {.n = PROCESSES, .w = x->w, .coll = x->coll};
  for (u32 p = 0; p < PROCESSES; p++) {
    x->w[p] = job_work_of(x->c, x->a, record(x->c, x->a, j, p), 0, j->begin[p], INT64_MAX);
    x->coll[p] = ZNEWN(x->a, u32, x->w[p]->nops + 1);
    u32 n = 0;
    for (u32 k = 0; k < x->w[p]->nops; k++)
      if (x->w[p]->op[k].comm) x->coll[p][k] = ++n;
    in.ncolls = n;
  }
  put_meetings(x, in.ncolls);
  in.meet = x->meet;
  x->r = replay_new(x->c, x->a, &in);
  if (!x->r) return false;
  x->t = replay_recorded(x->r, x->a);
  return true;
}

static bool classes_seen(const replayed *x) { // each class of latency occurs, so that it could be measured
  const replay_latency *l = replay_latencies(x->r);
  return l->launch_ps[LAUNCH_KERNEL] == LAUNCH && l->queue_ps == QUEUE && l->cross_ps == CROSS;
}

TEST(replay_gives_back_what_was_recorded) {
  u64 seed = 5;
  u32 held = 0;
  for (u32 n = 0; n < 200; n++) {
    random_job j = make_job(&seed, true);
    const i64 end = simulate(&j);
    i64 first = INT64_MAX;
    for (u32 p = 0; p < PROCESSES; p++) first = MIN(first, j.begin[p]);
    replayed x = {.c = ctx_new(), .a = arena_new()};
    if (CHECK(replay_job(&x, &j)) && classes_seen(&x) && replay_latencies(x.r)->sync_ps == SYNC) {
      i64 *ends[PROCESSES];
      for (u32 p = 0; p < PROCESSES; p++) ends[p] = NEWN(x.a, i64, x.w[p]->nops + 1);
      CHECK_EQ_I64(replay_run(x.r, &x.t, NULL, ends), end - first);
      for (u32 p = 0; p < PROCESSES; p++)
        for (u32 k = 0, op = 0; k < j.n; k++)
          if (j.a[k].what == RUN) CHECK_EQ_I64(ends[p][op++], j.end[p][k] - first);
      held++;
    }
    arena_free(x.a);
    ctx_free(x.c);
  }
  CHECK_MSG(held > 100, "only %u of 200 jobs have all classes of latencies", held);
}

// Other times than those recorded: what the simulator says of them.
TEST(replay_scenarios_are_as_simulated) {
  u64 seed = 9;
  u32 held = 0;
  for (u32 n = 0; n < 200; n++) {
    random_job j = make_job(&seed, false);
    i64 first = INT64_MAX;
    simulate(&j);
    for (u32 p = 0; p < PROCESSES; p++) first = MIN(first, j.begin[p]);
    replayed x = {.c = ctx_new(), .a = arena_new()};
    if (CHECK(replay_job(&x, &j)) && classes_seen(&x)) {
      random_job other = j;
      const u32 slow = (u32)(rng_next(&seed) % PROCESSES);
      for (u32 k = 0, op = 0; k < j.n; k++) {
        other.host[slow][k] *= 3;
        other.dur[(slow + 1) % PROCESSES][k] /= 2;
        if (j.a[k].what != RUN) continue;
        x.t.op[(slow + 1) % PROCESSES][op++] /= 2;
      }
      for (u32 i = 0; i < x.w[slow]->nitems; i++) x.t.host[slow][i] *= 3;
      CHECK_EQ_I64(replay_run(x.r, &x.t, NULL, NULL), simulate(&other) - first);
      held++;
    }
    arena_free(x.a);
    ctx_free(x.c);
  }
  CHECK_MSG(held > 60, "only %u of 200 jobs have all classes of latencies", held);
}

// One process whose host is slower than that of the others: repairing it gives back what the job takes without it.
TEST(late_process_is_found) {
  u64 seed = 31;
  random_job j = make_job(&seed, false);
  for (u32 p = 1; p < PROCESSES; p++) {
    j.begin[p] = j.begin[0];
    memcpy(j.host[p], j.host[0], sizeof j.host[0]);
  }
  const i64 even = simulate(&j);
  for (u32 k = 0; k < j.n; k++) j.host[2][k] *= 4;
  const i64 slow = simulate(&j);
  replayed x = {.c = ctx_new(), .a = arena_new()};
  REQUIRE(replay_job(&x, &j) && classes_seen(&x));
  const late_report l = late_of(x.r, x.a);
  CHECK_EQ_I64(l.replayed_ps, slow - j.begin[0]);
  CHECK_EQ_I64((i64)l.late[0], 2);
  CHECK(l.process[2].last == l.ncolls && l.ncolls > 0);
  CHECK_EQ_I64(l.process[2].repaired_ps, even - j.begin[0]);
  CHECK_EQ_I64(l.process[1].repaired_ps, slow - j.begin[0]);
  CHECK(l.no_host_ps < l.all_ps && l.error.most_ps == 0);
  CHECK(l.path.begin_ps + l.path.host_ps + l.path.device_ps + l.path.transfer_ps + l.path.latency_ps ==
        l.replayed_ps);
  arena_free(x.a);
  ctx_free(x.c);
}

// Communications in another order on two processes: no replay, and a message.
TEST(replay_refuses_communications_in_another_order) {
  u64 seed = 4;
  random_job j = make_job(&seed, false);
  simulate(&j);
  replayed x = {.c = ctx_new(), .a = arena_new()};
  REQUIRE(replay_job(&x, &j));
  u32 at[2], n = 0;
  for (u32 k = 0; k < x.w[0]->nops && n < 2; k++)
    if (x.coll[0][k]) at[n++] = k;
  REQUIRE(n == 2);
  const u32 was = x.coll[0][at[0]];
  x.coll[0][at[0]] = x.coll[0][at[1]], x.coll[0][at[1]] = was;
  const replay_input in = {PROCESSES, x.w, replay_input_of(x.r)->ncolls, x.coll, x.meet, 0};
  CHECK(!replay_new(x.c, x.a, &in) && diag_errors(x.c) == 1);
  arena_free(x.a);
  ctx_free(x.c);
}

// A tensor-parallel inference step of eight A100. The gains were worked out with a replay of its own.
TEST(replay_of_a_real_job) {
  const char *folder = test_data("traces/astrasim_24S");
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *path[8];
  for (u32 k = 0; k < 8; k++) path[k] = arena_printf(a, "%s/megatron_kineto_%u.json.gz", folder, k);
  job *j = job_open(c, a, 8, path);
  job_input in;
  REQUIRE(j && job_input_of(j, "3", &in) && in.lone == 0 && in.replay.ncolls == 84);
  replay *r = replay_new(c, a, &in.replay);
  REQUIRE(r != NULL);
  const late_report l = late_of(r, a);
  CHECK_EQ_I64((i64)l.error.n, 6216);
  CHECK_MSG(l.error.mean_ps < 3e6, "mean error of %.1f us", l.error.mean_ps / 1e6);
  CHECK_MSG(l.error.below_99_ps < 8000000, "99 of 100 errors below %.1f us",
            (double)l.error.below_99_ps / 1e6);
  CHECK_EQ_I64(l.hosts, 8);
  REQUIRE(l.late[0] != TRACE_NONE && l.late[1] != TRACE_NONE);
  CHECK(l.process[l.late[0]].rank == 0 && l.process[l.late[0]].last == 32);
  CHECK(l.process[l.late[1]].rank == 6 && l.process[l.late[1]].last == 28);
  const double whole = (double)l.replayed_ps;
  const double one = 1 - (double)l.process[l.late[0]].repaired_ps / whole,
               both = 1 - (double)l.both_ps / whole;
  CHECK_MSG(one > .0105 && one < .0115, "rank 0 repaired gains %.2f %%", 100 * one);
  CHECK_MSG(both > .027 && both < .029, "both repaired gain %.2f %%", 100 * both);
  CHECK_MSG(whole / (double)l.all_ps > 2.85 && whole / (double)l.all_ps < 2.95, "all repaired: %.2f times",
            whole / (double)l.all_ps);
  CHECK_MSG(l.no_host_ps > 213000000000 && l.no_host_ps < 217000000000, "without host times %.1f ms",
            (double)l.no_host_ps / 1e9);
  job_close(j);
  arena_free(a);
  ctx_free(c);
}
