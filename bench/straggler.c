// straggler.c - a pipelined job of 512 GPUs (16 data ranks x 8 stages, 32 microbatches): how fast steps are replayed
// with other durations, and how long it takes to blame every worker. The job is made up in memory; what its operations
// take does not matter for how long the analysis takes.
#include "bench.h"
#include "diagnose/diagnose.h"

enum { DATA = 16, STAGES = 8, MICROBATCHES = 32, STEPS = 8, RUNS = 9 };
static const i64 MS = 1000000000;

typedef struct {
  ctx *c;
  arena *a;
  trace t;
  sym name[STRAGGLER_TYPES];
} recording;

static void put(recording *r, u32 step, u32 worker, straggler_type type, u32 mb, i64 start_ps, i64 dur_ps) {
  const u32 lane = trace_lane_of(r->a, &r->t, worker, true, 0, 0);
  const u32 e = trace_add(r->a, &r->t, TRACE_KERNEL, lane, r->name[type], start_ps, dur_ps);
  r->t.step[e] = step, r->t.microbatch[e] = mb, r->t.chunk[e] = 0;
}

// 1F1B: computation k of a worker is at k ms, its receive before it, its send behind it.
static void put_worker(recording *r, u32 step, u32 worker, u64 *seed) {
  const u32 stage = worker / DATA, warm = STAGES - 1 - stage;
  i64 at = MS;
  put(r, step, worker, STRAGGLER_GATHER, TRACE_NONE, 0, MS / 2);
  for (u32 k = 0, f = 0, b = 0; k < 2 * MICROBATCHES; k++, at += MS) {
    const bool is_forward = f < MICROBATCHES && f <= b + warm;
    const u32 mb = is_forward ? f++ : b++;
    const bool recv = is_forward ? stage > 0 : stage + 1 < STAGES,
               send = is_forward ? stage + 1 < STAGES : stage > 0;
    put(r, step, worker, is_forward ? STRAGGLER_FORWARD : STRAGGLER_BACKWARD, mb, at,
        MS / 2 + (i64)(rng_next(seed) % (u64)(MS / 4)));
    if (recv)
      put(r, step, worker, is_forward ? STRAGGLER_FORWARD_RECV : STRAGGLER_BACKWARD_RECV, TRACE_NONE,
          at - MS / 8, MS / 9);
    if (send)
      put(r, step, worker, is_forward ? STRAGGLER_FORWARD_SEND : STRAGGLER_BACKWARD_SEND, TRACE_NONE,
          at + MS * 4 / 5, MS / 9);
  }
  put(r, step, worker, STRAGGLER_REDUCE, TRACE_NONE, at + MS, MS);
  put(r, step, worker, STRAGGLER_CLIP, TRACE_NONE, at + 3 * MS, MS / 9);
  put(r, step, worker, STRAGGLER_UPDATE, TRACE_NONE, at + 4 * MS, MS);
}

int main(void) {
  recording r = {.c = ctx_new(), .a = arena_new()};
  u64 seed = 1;
  for (u32 k = 0; k < STRAGGLER_TYPES; k++) r.name[k] = sym_of(r.c, straggler_types[k].name);
  for (u32 k = 0; k < DATA * STAGES; k++)
    *vec_push(r.a, &r.t.processes) =
        (trace_process){.rank = k, .placed = true, .data = k % DATA, .stage = k / DATA};
  for (u32 i = 0; i < STEPS; i++)
    for (u32 k = 0; k < DATA * STAGES; k++) put_worker(&r, i, k, &seed);
  double took[RUNS], start = bench_ms();
  straggler *s = straggler_new(r.c, r.a, &r.t, sym_of(r.c, "made up"), NULL);
  if (!s) {
    fputs(diag_render(r.c, r.a), stderr);
    return 1;
  }
  bench_add((bench_row){.name = "pipelined job of 128 workers x 8 steps: graph from events",
                        .unit = "ms",
                        .value = bench_ms() - start,
                        .anchor = ""});
  i64 *step = NEWN(r.a, i64, s->nsteps);
  for (u32 k = 0; k < RUNS; k++) {
    start = bench_ms();
    straggler_replay(s, s->recorded_ps, step);
    took[k] = bench_ms() - start;
  }
  bench_add((bench_row){.name = "  a replay with other durations, in nodes of the graph",
                        .unit = "M/s",
                        .value = (double)s->n * s->nsteps / bench_fastest(took, RUNS) / 1e3,
                        .required = 5,
                        .anchor = "0.007 to 0.016 (dPRO)",
                        .more = true});
  arena_free(r.a);
  ctx_free(r.c);
  return bench_end();
}
