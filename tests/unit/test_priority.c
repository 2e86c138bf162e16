// test_priority.c - gradients in the order in which the next forward reads them: by hand, against a simulation of its own, and
// the search against every plan of small jobs.
#include "test.h"
#include "tune/tune.h"

enum { MOST = 3 };
// n layers: a forward op, a backward op with a gradient, and an update of them all. 2 workers: a byte takes 1 ps.
static tune_job *layers(arena *a, u32 n, const i64 *forward, const i64 *backward, const i64 *bytes,
                        i64 update_ps) {
  tune_job *j = NEW(a, tune_job);
  *j = (tune_job){.nops = 2 * n + 1,
                  .op = ZNEWN(a, tune_op, 2 * n + 1),
                  .ntensors = n,
                  .tensor = ZNEWN(a, tune_tensor, n + 1),
                  .nblocks = n,
                  .kind = ZNEWN(a, u32, n + 1),
                  .input_bytes = ZNEWN(a, i64, n + 1),
                  .link = {.workers = 2, .servers = 1, .ps_per_byte = 1}};
  for (u32 k = 0; k < n; k++) {
    const u32 b = 2 * n - 1 - k;
    j->op[k] = (tune_op){.phase = TUNE_FORWARD, .ps = forward[k], .block = k};
    j->op[b] = (tune_op){.phase = TUNE_BACKWARD, .ps = backward[k], .block = k};
    j->tensor[n - 1 - k] = (tune_tensor){.bytes = bytes[k], .op = b, .read_by = k};
    j->kind[k] = k;
  }
  j->op[2 * n] = (tune_op){.phase = TUNE_UPDATE, .ps = update_ps};
  return j;
}

// Three layers, each 10 forward and 10 backward. The gradient of the last takes 40, that of the others 10 and 10.
// As they come: 10-50, 50-60, 60-70, then update and forward: 70 + 6 + 30 = 106.
// By readers: the last goes first, as nothing else is there; then the first layer's overtakes the second's:
// 10-50, 50-60 (first), 60-70 (second). Updates take 2 each by bytes 1 : 1 : 4, so 1, 1, 4: the first layer is updated and
// computed from 60 to 71, the second to 82, the third to 96.
// In 4 pieces of 10 the large one lets both pass: a piece to 20, the second layer's to 30, the first's to 40, pieces to 70: the
// device has the first layer from 40 to 51, the second to 62, and the third from 70 to 84.
TEST(priority_by_hand) {
  arena *a = arena_new();
  const i64 tens[] = {10, 10, 10}, bytes[] = {10, 10, 40};
  const tune_job *j = layers(a, 3, tens, tens, bytes, 6);
  tune_plan p = tune_plan_new(a, j);
  CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), 30 + 70 + 6);
  p.priority = true;
  const tune_step s = tune_step_of(a, j, &p, TUNE_ALL_WORKERS);
  CHECK(s.start_ps[0] == 10 && s.start_ps[2] == 50 && s.start_ps[1] == 60);
  CHECK_EQ_I64(s.ps, 96);
  CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), 96);
  p.cut[0] = 4;
  const tune_step t = tune_step_of(a, j, &p, TUNE_ALL_WORKERS);
  CHECK(t.start_ps[1] == 20 && t.start_ps[2] == 30 && t.end_ps[1] == 30 && t.end_ps[0] == 70);
  CHECK_EQ_I64(t.ps, 84);
  CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), 84);
  // Where nobody knows who reads a gradient, the forward waits for it before it begins.
  for (u32 k = 0; k < 3; k++) j->tensor[k].read_by = TUNE_NONE;
  p.cut[0] = 1;
  CHECK_EQ_I64(tune_time(j, &p, TUNE_ONE_WORKER), 70 + 6 + 30);
  arena_free(a);
}

// The step from backward to forward with gradients sent in an order that is given, none before it is there: n layers, no fusion.
static i64 in_order(const tune_job *j, u32 n, const u32 *order) {
  i64 ready[8], there[8], free = 0, at = 0, all = 0, done = 0;
  for (u32 t = 0; t < n; t++) ready[t] = at += j->op[j->tensor[t].op].ps, all += j->tensor[t].bytes;
  for (u32 k = 0; k < n; k++) {
    const u32 t = order[k];
    free = there[t] = MAX(free, ready[t]) + 2 * ((j->tensor[t].bytes + 1) / 2);
  }
  for (u32 k = 0; k < n; k++) {
    const u32 t = n - 1 - k;
    const i64 u = j->op[2 * n].ps, bytes = done + j->tensor[t].bytes;
    at = MAX(at, there[t]) + (i64)((double)u * ((double)bytes / (double)all)) -
         (i64)((double)u * ((double)done / (double)all));
    at += j->op[k].ps, done = bytes;
  }
  return at;
}

// Of what is ready the one that is read first: an order made again without queues, and all the others.
static i64 by_reader(const tune_job *j, u32 n) {
  u32 order[8];
  bool sent[8] = {false};
  i64 ready[8], at = 0, free = 0;
  for (u32 t = 0; t < n; t++) ready[t] = at += j->op[j->tensor[t].op].ps;
  for (u32 k = 0; k < n; k++) {
    u32 best = n, first = n;
    for (u32 t = 0; t < n; t++)
      if (!sent[t] && (first == n || ready[t] < ready[first])) first = t;
    for (u32 t = 0; t < n; t++) // a later gradient is of an earlier layer
      if (!sent[t] && ready[t] <= MAX(free, ready[first])) best = t;
    order[k] = best, sent[best] = true;
    free = MAX(free, ready[best]) + 2 * ((j->tensor[best].bytes + 1) / 2);
  }
  return in_order(j, n, order);
}

static i64 best_order(const tune_job *j, u32 n, u32 *order, u32 k) {
  if (k == n) return in_order(j, n, order);
  i64 best = INT64_MAX;
  for (u32 i = k; i < n; i++) {
    u32 x = order[k];
    order[k] = order[i], order[i] = x;
    best = MIN(best, best_order(j, n, order, k + 1));
    x = order[k], order[k] = order[i], order[i] = x;
  }
  return best;
}

// Jobs of up to 7 operations: the graph does what the rule says. No order is better than the best of all; the rule finds it
// in nearly half of these jobs, and in the others is little worse: it never waits for what is about to come.
TEST(priority_against_every_order) {
  u64 seed = 5;
  u32 n_best = 0, n_jobs = 0;
  double over = 0;
  for (u32 i = 0; i < 500; i++) {
    arena *a = arena_new();
    i64 f[MOST], b[MOST], bytes[MOST];
    u32 order[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const u32 n = 2 + i % (MOST - 1);
    for (u32 k = 0; k < n; k++) {
      f[k] = 1 + (i64)(rng_next(&seed) % 50), b[k] = 1 + (i64)(rng_next(&seed) % 50);
      bytes[k] = 1 + (i64)(rng_next(&seed) % 100);
    }
    const tune_job *j = layers(a, n, f, b, bytes, (i64)(rng_next(&seed) % 20));
    tune_plan p = tune_plan_new(a, j);
    p.priority = true;
    const i64 ps = tune_time(j, &p, TUNE_ONE_WORKER), best = best_order(j, n, order, 0);
    CHECK_EQ_I64(ps, by_reader(j, n));
    CHECK_EQ_I64(tune_time(j, &p, TUNE_ALL_WORKERS), ps);
    CHECK(ps >= best);
    n_jobs++, n_best += ps == best, over += (double)ps / (double)best;
    p.priority = false;
    CHECK(tune_time(j, &p, TUNE_ONE_WORKER) >= ps); // one channel is never idle for it
    arena_free(a);
  }
  CHECK_MSG(n_best > n_jobs / 3 && over < 1.1 * n_jobs, "%u of %u, %.4f times as long on average", n_best,
            n_jobs, over / n_jobs);
}

// Every plan of fused operations, buckets, pieces of 2, with and without priorities, of jobs of 7 operations.
static i64 best_of_all(arena *a, const tune_job *j) {
  i64 best = INT64_MAX;
  u32 may[8], n = 0;
  const u32 g = j->ntensors;
  for (u32 k = 1; k < j->nops; k++)
    if (tune_may_join(j, k)) may[n++] = k;
  for (u64 x = 0; x < 2ull << (n + g - 1 + g); x++) {
    tune_plan p = tune_plan_new(a, j);
    p.priority = x & 1;
    for (u32 k = 0; k < n; k++) p.joined[may[k]] = x >> (k + 1) & 1;
    for (u32 k = 1; k < g; k++) p.bucketed[k] = x >> (n + k) & 1;
    for (u32 k = 0; k < g; k++) p.cut[k] = 1 + (x >> (n + g + k) & 1);
    best = MIN(best, tune_time(j, &p, TUNE_ONE_WORKER));
  }
  return best;
}

TEST(priority_search_against_every_plan) {
  u64 seed = 17;
  u32 found = 0, with = 0;
  double worst = 1;
  enum { JOBS = 40 };
  for (u32 i = 0; i < JOBS; i++) {
    arena *a = arena_new();
    i64 f[MOST], b[MOST], bytes[MOST];
    for (u32 k = 0; k < MOST; k++) {
      f[k] = 20 + (i64)(rng_next(&seed) % 200), b[k] = 20 + (i64)(rng_next(&seed) % 200);
      bytes[k] = 20 + (i64)(rng_next(&seed) % 400);
    }
    tune_job *j = layers(a, MOST, f, b, bytes, 10);
    j->link.start_ps = (i64)(rng_next(&seed) % 30);
    for (u32 k = 1; k < j->nops; k++) j->op[k].saved_ps = (i64)(rng_next(&seed) % 10);
    const tune_result r = tune_search(a, j, &(tune_opts){.passes = (1u << TUNE_PASSES) - 1}),
                      usual = tune_search(a, j, &(tune_opts){0});
    const i64 best = best_of_all(a, j);
    CHECK(r.ps <= usual.ps && !usual.plan.priority);
    found += r.ps <= best, with += r.plan.priority; // it may cut into more than 2 pieces
    worst = MAX(worst, (double)r.ps / (double)best);
    CHECK_EQ_I64(tune_time(j, &r.plan, TUNE_ALL_WORKERS), r.ps);
    arena_free(a);
  }
  CHECK_MSG(found >= JOBS * 9 / 10 && worst < 1.03, "%u of %u, worst %.4f", found, JOBS, worst);
  CHECK(with > JOBS / 2);
}
