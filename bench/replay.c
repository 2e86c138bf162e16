// replay.c - replaying the traces of a job: operations of hosts and devices a second, over one graph made once. And steps of
// `heddle run`, replayed from their own recordings: how far off.
#include "command.h"
#include "diagnose/diagnose.h"
#include <unistd.h>

enum { PROCESSES = 8, OPS = 50000, STREAMS = 2, RUNS = 5, COMM_EVERY = 9 };

// A process of which every ninth op is a communication on a stream of its own.
static job_work *make_work(ctx *c, arena *a, u32 rank, u64 *seed) {
  job_work *w = NEW(a, job_work);
  const sym name = sym_of(c, "gemm");
  u32 *after = NEWN(a, u32, 2 * OPS);
  *w =
      (job_work){.rank = rank, .base_ns = 1, .nitems = OPS, .nops = OPS, .nstreams = STREAMS, .after = after};
  w->item = ZNEWN(a, work_item, OPS + 1), w->op = ZNEWN(a, work_op, OPS + 1);
  i64 t = 0;
  u32 n = 0, last[STREAMS] = {0};
  for (u32 k = 0; k < OPS; k++) {
    const i64 host = 1000000 + (i64)(rng_next(seed) % 20000000),
              dur = 1000000 + (i64)(rng_next(seed) % 30000000);
    const bool comm = k % COMM_EVERY == COMM_EVERY - 1, waits = comm || k % COMM_EVERY == 0;
    t += host;
    w->item[k] = (work_item){.start_ps = t - 1000000, .end_ps = t, .host_ps = host};
    w->op[k] = (work_op){.item = k, .stream = comm, .comm = comm, .name = name, .start_ps = t, .dur_ps = dur};
    w->op[k].first_after = n;
    if (k && waits) after[n++] = last[!comm];
    last[comm] = k;
  }
  w->op[OPS].first_after = n;
  return w;
}

// Every step by itself but the first, the one that is furthest off. False: nothing could be recorded.
static bool add_recorded(const char *strategy) {
  enum { STEPS = 10 };
  char folder[] = "/tmp/heddle-replay-XXXXXX", path[64];
  static char name[8][96]; // until bench_end
  static u32 n;
  double most = 0;
  if (!mkdtemp(folder)) return false;
  bool ok = answer("run %s --strategy '%s' --steps %d --trace %s --json", GPT, strategy, STEPS, folder);
  for (u32 k = 2; ok && k <= STEPS; k++) {
    const char *text = answer("trace replay %s --steps %u --json", folder, k);
    const double recorded = number(text, "recorded_ps"), replayed = number(text, "replayed_ps");
    ok = recorded > 0 && replayed > 0;
    most = fmax(most, fabs(replayed / recorded - 1) * 100);
  }
  for (u32 k = 0; k < 2; k++) snprintf(path, sizeof path, "%s/rank%u.json", folder, k), unlink(path);
  rmdir(folder);
  if (!ok) return false;
  snprintf(name[n], sizeof *name, "replayed step against the recorded one, %s: off by at most", strategy);
  bench_add((bench_row){name[n++], "%", most, 5, "", false});
  return true;
}

int main(void) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  u64 seed = 1;
  job_work *w[PROCESSES];
  u32 *coll[PROCESSES];
  for (u32 p = 0; p < PROCESSES; p++) {
    w[p] = make_work(c, a, p, &seed);
    coll[p] = ZNEWN(a, u32, OPS + 1);
    for (u32 k = 0; k < OPS; k++) coll[p][k] = w[p]->op[k].comm ? k / COMM_EVERY + 1 : 0;
  }
  replay_meeting *meet = ZNEWN(a, replay_meeting, OPS / COMM_EVERY + 2); // all have the same ops
  for (u32 k = 0; k < OPS; k++) {
    replay_meeting *m = &meet[coll[0][k]];
    if (!coll[0][k]) continue;
    m->late_op = k;
    for (u32 p = 1; p < PROCESSES; p++)
      if (w[p]->op[k].start_ps > w[m->process]->op[k].start_ps) m->process = p;
  }
  const replay_input in = {
      .n = PROCESSES, .w = w, .ncolls = OPS / COMM_EVERY + 1, .coll = coll, .meet = meet};
  const double start = bench_ms();
  replay *r = replay_new(c, a, &in);
  if (!r) return 1;
  const double made = bench_ms() - start, n = 2.0 * PROCESSES * OPS;
  const replay_times t = replay_recorded(r, a);
  double ms[RUNS];
  for (u32 k = 0; k < RUNS; k++) {
    const double from = bench_ms();
    if (!replay_run(r, &t, NULL, NULL)) return 1;
    ms[k] = bench_ms() - from;
  }
  bench_add((bench_row){"replay of traces: operations a second", "million", n / bench_fastest(ms, RUNS) / 1e3,
                        5, "dPRO 0.007 to 0.016", true});
  bench_add((bench_row){"replay of traces: its graph, operations a second", "million", n / made / 1e3, 0, "",
                        true});
  arena_free(a);
  ctx_free(c);
  if (!answer("run mlp-xs --batch 4 --strategy dp=2 --steps 1 --json"))
    puts("skipped: replay of recordings: there is no MPI");
  else if (!add_recorded("dp=2") || !add_recorded("dp=2 overlap=dp") || !add_recorded("dp=2 sync=ps"))
    return 1;
  return bench_end();
}
