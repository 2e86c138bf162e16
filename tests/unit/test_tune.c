// Plans of data-parallel jobs: replays of one worker and of all, memory, the search against enumeration.
#include "cost/cost.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"
#include "tune/fuse.h"
#include "tune/tune.h"

// A job of layers that are alike: a forward op, two of the backward, one gradient each; and an update.
static tune_job *layers(arena *a, u32 n, u64 *seed, const tune_link *l) {
  tune_job *j = NEW(a, tune_job);
  *j = (tune_job){.nops = 4 * n + 1,
                  .op = ZNEWN(a, tune_op, 4 * n + 1),
                  .ntensors = n,
                  .tensor = ZNEWN(a, tune_tensor, n + 1),
                  .nblocks = n,
                  .kind = ZNEWN(a, u32, n + 1),
                  .input_bytes = ZNEWN(a, i64, n + 1),
                  .fixed_bytes = 1000,
                  .peak_bytes = 1,
                  .link = *l};
  for (u32 k = 0; k < n; k++) {
    const i64 t = 1000 + (i64)(rng_next(seed) % 9000), s = (i64)(rng_next(seed) % 900);
    const u32 b = 2 * n + 2 * (n - 1 - k);
    j->op[2 * k] = (tune_op){
        .phase = TUNE_FORWARD, .heavy = true, .ps = t, .keeps_bytes = 400, .result_bytes = 400, .block = k};
    j->op[2 * k + 1] =
        (tune_op){.phase = TUNE_FORWARD, .ps = t / 2, .saved_ps = s, .keeps_bytes = 600, .block = k};
    j->op[b] = (tune_op){.phase = TUNE_BACKWARD, .ps = t, .saved_ps = s, .block = k};
    j->op[b + 1] = (tune_op){.phase = TUNE_BACKWARD, .ps = t / 2, .saved_ps = s / 2, .block = k};
    j->tensor[n - 1 - k] = (tune_tensor){
        .bytes = 100 + (i64)(rng_next(seed) % 20000), .op = b + rng_next(seed) % 2, .read_by = 2 * k};
    j->kind[k] = k, j->input_bytes[k] = 100;
  }
  j->op[4 * n] = (tune_op){.phase = TUNE_UPDATE, .ps = 500, .block = n - 1};
  return j;
}

static tune_link link_of(tune_sync sync, u32 workers) {
  return (tune_link){.sync = sync,
                     .workers = workers,
                     .servers = 2,
                     .start_ps = 700,
                     .step_ps = 60,
                     .ps_per_byte = 0.5,
                     .sum_ps_per_byte = 0.1};
}

static void random_plan(const tune_job *j, tune_plan *p, u64 *seed) {
  for (u32 k = 1; k < j->nops; k++) p->joined[k] = tune_may_join(j, k) && rng_next(seed) % 2;
  for (u32 k = 0; k < j->ntensors; k++)
    p->bucketed[k] = k && rng_next(seed) % 2, p->cut[k] = 1 + rng_next(seed) % 3;
  for (u32 k = 0; k < j->nblocks; k++) p->recompute[k] = rng_next(seed) % 3;
  p->accumulate = 1 + rng_next(seed) % 3;
  p->cycle_ps = rng_next(seed) % 2 ? 0 : 3000;
  p->priority = !p->cycle_ps && rng_next(seed) % 2;
}

TEST(tune_one_worker_stands_for_all) {
  u64 seed = 7;
  for (u32 i = 0; i < 200; i++) {
    arena *a = arena_new();
    const tune_link l = link_of(i % 2 ? TUNE_SERVERS : TUNE_ALL_REDUCE, 1 + i % 5);
    const tune_job *j = layers(a, 2 + i % 6, &seed, &l);
    tune_plan p = tune_plan_new(a, j);
    random_plan(j, &p, &seed);
    CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), tune_time(j, &p, TUNE_ALL_WORKERS));
    arena_free(a);
  }
}

// The best cut is the best of all that are tried one by one.
TEST(tune_best_cut_of_all) {
  u64 seed = 9;
  arena *a = arena_new();
  for (u32 i = 0; i < 60; i++) {
    tune_link l = link_of(TUNE_SERVERS, 2 + i % 5);
    l.servers = 1 + i % 4, l.start_ps = (i64)(rng_next(&seed) % 3000);
    const tune_job *j = layers(a, 2, &seed, &l);
    const i64 bytes = (i64)(rng_next(&seed) % 200000);
    u32 best = 1;
    for (u32 k = 2; k <= 64; k++)
      if (tune_sync_ps(j, bytes, k, TUNE_ALL_WORKERS) < tune_sync_ps(j, bytes, best, TUNE_ALL_WORKERS))
        best = k;
    CHECK_EQ_I64(tune_best_cut(j, bytes, TUNE_ONE_WORKER), best);
  }
  arena_free(a);
}

// The same of 1 to 100 MiB over 100 Gb/s, as gradients are.
TEST(tune_best_cut_of_gradients) {
  arena *a = arena_new();
  u64 seed = 9;
  u32 most = 0;
  for (u32 servers = 1; servers <= 16; servers *= 4) {
    const tune_link l = {.sync = TUNE_SERVERS,
                         .workers = 8,
                         .servers = servers,
                         .start_ps = 50000000,
                         .step_ps = 5000000,
                         .ps_per_byte = 80,
                         .sum_ps_per_byte = 20};
    const tune_job *j = layers(a, 1, &seed, &l);
    for (i64 mib = 1; mib <= 100; mib++) {
      u32 best = 1;
      i64 least = INT64_MAX;
      for (u32 k = 1; k <= 64; k++) {
        const i64 ps = tune_sync_ps(j, mib << 20, k, TUNE_ONE_WORKER);
        if (ps < least) least = ps, best = k;
      }
      CHECK_EQ_I64(tune_best_cut(j, mib << 20, TUNE_ONE_WORKER), best);
      most = MAX(most, best);
    }
  }
  CHECK(most > 8);
  arena_free(a);
}

// What people use, by hand: 60 gradients of 1 MiB, one every 3 ms of the backward; sending takes 1 ms to start and 1 ms
// for each MiB.
TEST(tune_baselines_by_hand) {
  enum { N = 60, MIB = 1 << 20 };
  const i64 ms = 1000000000;
  arena *a = arena_new();
  tune_job j = {.nops = N,
                .op = ZNEWN(a, tune_op, N),
                .ntensors = N,
                .tensor = ZNEWN(a, tune_tensor, N),
                .nblocks = 1,
                .kind = ZNEWN(a, u32, 1),
                .input_bytes = ZNEWN(a, i64, 1),
                .link = {.workers = 2, .start_ps = ms, .ps_per_byte = (double)ms / MIB}};
  for (u32 k = 0; k < N; k++) {
    j.op[k] = (tune_op){.phase = TUNE_BACKWARD, .ps = 3 * ms, .saved_ps = k % 2 ? ms : 0};
    j.tensor[k] = (tune_tensor){.bytes = MIB, .op = k};
  }
  i64 took[TUNE_BASELINES];
  for (u32 b = 0; b < TUNE_BASELINES; b++) {
    const tune_plan p = tune_baseline_of(a, &j, (tune_baseline)b);
    took[b] = tune_time(&j, &p, TUNE_ONE_WORKER);
  }
  CHECK_EQ_I64(took[TUNE_BASE_none], (3 * N + 2) * ms);
  CHECK_EQ_I64(took[TUNE_BASE_fuse_all], (5 * N / 2 + 4) * ms); // pairs of 5 ms, two gradients after the last
  CHECK_EQ_I64(took[TUNE_BASE_one_bucket], (3 * N + N + 1) * ms);
  CHECK_EQ_I64(took[TUNE_BASE_ddp], (3 * N + 9 + 1) * ms); // buckets of 1, 25, 25 and 9
  // Every 5 ms what is there: the last gradient is ready at 180, which is a cycle, after one at 177.
  CHECK_EQ_I64(took[TUNE_BASE_horovod], (3 * N + 3) * ms);
  CHECK_EQ_I64(took[TUNE_BASE_byteps], took[TUNE_BASE_none]); // none is larger than 4 MB
  j.tensor[N - 1].bytes = 8192000;                            // two pieces
  const tune_plan p = tune_baseline_of(a, &j, TUNE_BASE_byteps);
  CHECK(p.cut[N - 1] == 2 && p.cut[0] == 1);
  arena_free(a);
}

// By hand: 2 layers, no fusion; forward, backward, a ring of 4 for each gradient on one channel, the update.
TEST(tune_time_by_hand) {
  arena *a = arena_new();
  u64 seed = 3;
  const tune_link l = link_of(TUNE_ALL_REDUCE, 4);
  const tune_job *j = layers(a, 2, &seed, &l);
  tune_plan p = tune_plan_new(a, j);
  i64 at = 0, free = 0;
  for (u32 k = 0, t = 0; k < j->nops - 1; k++) {
    at += j->op[k].ps;
    for (; t < 2 && j->tensor[t].op == k; t++) {
      const i64 chunk = (i64)((double)((j->tensor[t].bytes + 3) / 4) * 0.5 + 0.5);
      free = MAX(free, at) + 700 + 6 * (60 + chunk);
    }
  }
  CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), MAX(at, free) + 500);
  arena_free(a);
}

static i64 sync_of(const void *job, i64 bytes) { return tune_sync_ps(job, bytes, 1, TUNE_ONE_WORKER); }

// Buckets that start with cycles end when Horovod's own rule says.
TEST(tune_cycles_hold_the_channel) {
  u64 seed = 13;
  for (u32 i = 0; i < 100; i++) {
    arena *a = arena_new();
    const tune_link l = link_of(TUNE_ALL_REDUCE, 2 + i % 4);
    const tune_job *j = layers(a, 2 + i % 7, &seed, &l);
    tune_plan p = tune_plan_new(a, j);
    const tune_step s = tune_step_of(a, j, &p, TUNE_ONE_WORKER);
    fuse_gradient *g = NEWN(a, fuse_gradient, j->ntensors);
    i64 compute = 0;
    for (u32 k = 0; k + 1 < j->nops; k++) compute += j->op[k].ps;
    for (u32 k = 0; k < j->ntensors; k++) g[k] = (fuse_gradient){s.ready_ps[k], j->tensor[k].bytes};
    p.cycle_ps = 1000 + (i64)(rng_next(&seed) % 9000);
    const fuse_plan f = fuse_by_cycle(a, g, j->ntensors, &(fuse_cost){sync_of, j}, p.cycle_ps, 15000);
    for (u32 b = 0; b < f.n; b++)
      for (u32 k = f.first[b] + 1; k < f.first[b + 1]; k++) p.bucketed[k] = 1;
    CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), MAX(compute, f.ends_ps) + 500);
    CHECK_EQ_I64(tune_time(j, &p, TUNE_ALL_WORKERS), MAX(compute, f.ends_ps) + 500);
    arena_free(a);
  }
}

// Every plan of fused operations and buckets.
static i64 best_of_all(arena *a, const tune_job *j) {
  i64 best = INT64_MAX;
  u32 may[32], n = 0;
  for (u32 k = 1; k < j->nops; k++)
    if (tune_may_join(j, k)) may[n++] = k;
  for (u64 x = 0; x < 1ull << (n + j->ntensors - 1); x++) {
    tune_plan p = tune_plan_new(a, j);
    for (u32 k = 0; k < n; k++) p.joined[may[k]] = x >> k & 1;
    for (u32 k = 1; k < j->ntensors; k++) p.bucketed[k] = x >> (n + k - 1) & 1;
    best = MIN(best, tune_time(j, &p, TUNE_ONE_WORKER));
  }
  return best;
}

TEST(tune_search_finds_the_best_of_all) {
  u64 seed = 11;
  u32 exact = 0, n = 0;
  double worst = 1;
  for (u32 i = 0; i < 40; i++) {
    arena *a = arena_new();
    const tune_link l = link_of(TUNE_ALL_REDUCE, 2 + i % 6);
    const tune_job *j = layers(a, 2, &seed, &l);
    const tune_result r = tune_search(a, j, &(tune_opts){0});
    const i64 best = best_of_all(a, j);
    CHECK_MSG(r.ps >= best, "found %lld, best %lld", (long long)r.ps, (long long)best);
    n++, exact += r.ps == best, worst = MAX(worst, (double)r.ps / (double)best);
    for (u32 b = 0; b < TUNE_BASELINES; b++) CHECK(r.ps <= r.base_ps[b]);
    CHECK_EQ_I64(tune_time(j, &r.plan, TUNE_ALL_WORKERS), r.ps);
    arena_free(a);
  }
  CHECK_MSG(exact == n, "%u of %u are the best; the worst is %.4f times as long", exact, n, worst);
}

TEST(tune_memory_by_hand) {
  arena *a = arena_new();
  u64 seed = 5;
  const tune_link l = link_of(TUNE_ALL_REDUCE, 2);
  tune_job *j = layers(a, 3, &seed, &l);
  for (u32 k = 0; k < 3; k++) j->tensor[k].bytes = 50;
  tune_plan p = tune_plan_new(a, j);
  // 3 layers keep 1000 each; the first gradient is there while the last layer's values still are.
  CHECK_EQ_I64(tune_bytes(j, &p), 1000 + 3000 + 50);
  memset(p.recompute, TUNE_WHOLE, 3); // 100 each; one at a time is there again
  CHECK_EQ_I64(tune_bytes(j, &p), 1000 + 300 - 100 + 1000 + 50);
  memset(p.recompute, TUNE_CHEAP, 3); // the heavy one's 400 as well
  CHECK_EQ_I64(tune_bytes(j, &p), 1000 + 1500 - 500 + 1000 + 50);
  memset(p.recompute, TUNE_KEEP, 3);
  p.accumulate = 2; // half of everything, and the gradients of the first half
  CHECK_EQ_I64(tune_bytes(j, &p), 1000 + 1500 + 150);
  // Limits: what fits is taken, the faster one of it.
  const tune_result none = tune_search(a, j, &(tune_opts){.memory_bytes = 4050});
  CHECK(none.fits && !none.nmemory);
  const tune_result r = tune_search(a, j, &(tune_opts){.memory_bytes = 3600});
  CHECK(r.fits && r.bytes <= 3600 && r.nmemory);
  const tune_result no = tune_search(a, j, &(tune_opts){.memory_bytes = 900});
  CHECK(!no.fits);
  arena_free(a);
}

static tune_job *job_of_model(ctx *c, arena *a, const char *name, i64 batch, i64 seq, const tune_link *l) {
  const front_opts fo = {.batch = batch, .seq = seq, .loss = true};
  prog *p = front_load(c, name, &fo);
  const optim_opts o = optim_default(OPTIM_ADAM);
  machine *m = machine_load(c, a, "1x1 v100");
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  tune_job *j = p && k && pass_loss(p) && pass_train(p, &o, false) ? tune_of_program(c, a, p, k, l) : NULL;
  CHECK_MSG(j && tune_verify(j), "%s", diag_render(c, a));
  REQUIRE(j);
  prog_free(p);
  return j;
}

TEST(tune_of_models) {
  static const char *const name[] = {"resnet50", "vgg16", "inception-v3", "bert-base:positions=128"};
  static const double params[] = {25.6e6, 138.4e6, 23.8e6, 110e6}; // their papers'
  for (u32 i = 0; i < COUNT_OF(name); i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    const tune_link l = link_of(TUNE_ALL_REDUCE, 16);
    const tune_job *j = job_of_model(c, a, name[i], 32, 0, &l);
    i64 bytes = 0;
    for (u32 k = 0; k < j->ntensors; k++) bytes += j->tensor[k].bytes;
    CHECK_MSG((double)bytes > 4 * 0.98 * params[i] && (double)bytes < 4 * 1.02 * params[i], "%s: %lld",
              name[i], (long long)bytes);
    arena_free(a);
    ctx_free(c);
  }
}
