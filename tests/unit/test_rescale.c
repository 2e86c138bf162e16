// test_rescale.c - a recorded job with more data ranks: the expected maximum against every possible draw, a job at its
// own size, and data ranks of a real job left out and predicted from the others.
#include "diagnose/diagnose.h"
#include "machine/machine.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

TEST(rescale_expected_maximum_is_that_of_all_draws) {
  static const double v[] = {-3, -1, 0, 2, 2, 7};
  static const double most[] = {-5, -1, 1, 2, 7, 9};
  const u32 n = COUNT_OF(v);
  for (u32 m = 0; m < COUNT_OF(most); m++)
    for (u32 more = 0; more < 5; more++) {
      double sum = 0;
      u32 all = 1;
      for (u32 k = 0; k < more; k++) all *= n;
      for (u32 draw = 0; draw < all; draw++) {
        double max = most[m];
        for (u32 k = 0, d = draw; k < more; k++, d /= n) max = fmax(max, v[d % n]);
        sum += max;
      }
      const double got = rescale_expected(v, n, most[m], more);
      CHECK_MSG(fabs(got - sum / all) < 1e-12, "%u draws above %g: %g, not %g", more, most[m], got,
                sum / all);
    }
}

TEST(rescale_ratio_without_a_machine_is_that_of_rings) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const u32 size[2] = {4, 16};
  rescale_model *k = rescale_model_new(c, a, NULL, size, 1, (const u32 *const[2]){NULL, NULL});
  CHECK(k && fabs(rescale_ratio(k, "all_gather", -1, 1000) - (15. / 16) / (3. / 4)) < 1e-12);
  CHECK(fabs(rescale_ratio(k, "all_reduce", -1, 1000) - (15. / 16) / (3. / 4)) < 1e-12);
  arena_free(a);
  ctx_free(c);
}

// With a machine the same transfer among more nodes takes longer, and among as many members as long.
TEST(rescale_ratio_with_a_machine_only_extrapolates) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, "8x4 a100 nvlink=300GB/s ib=1x100Gb/s");
  REQUIRE(m);
  u32 place[32];
  for (u32 k = 0; k < 32; k++) place[k] = k;
  for (u32 n = 4; n <= 32; n *= 2) {
    const u32 size[2] = {4, n};
    rescale_model *k = rescale_model_new(c, a, m, size, 1, (const u32 *const[2]){place, place});
    REQUIRE(k);
    for (i64 us = 100; us <= 100000; us *= 10) {
      const double known = rescale_ratio(k, "all_reduce", 1 << 26, us * 1000000),
                   unknown = rescale_ratio(k, "all_reduce", -1, us * 1000000);
      CHECK_MSG(n == 4 ? unknown == 1 && known == 1 : unknown > 1 && known > 1, "%u members: %g, %g", n,
                known, unknown);
    }
  }
  arena_free(a);
  ctx_free(c);
}

// ---- pipelined jobs -------------------------------------------------------------------------------------
// The events of data ranks whose bit is set, these numbered anew.
static const trace *without(arena *a, const trace *t, u32 keep) {
  trace *y = NEW(a, trace);
  u32 *process = NEWN(a, u32, t->processes.n), number[32], D = 0, tensors = 1;
  for (u32 d = 0; d < 32; d++) number[d] = D, D += keep >> d & 1;
  if (t->processes.n > 1) tensors = t->processes.v[1].rank - t->processes.v[0].rank;
  for (u32 k = 0; k < t->processes.n; k++) {
    trace_process p = t->processes.v[k];
    process[k] = TRACE_NONE;
    if (!(keep >> p.data & 1)) continue;
    process[k] = y->processes.n;
    p.data = number[p.data], p.rank = (p.stage * D + p.data) * tensors + p.tensor;
    *vec_push(a, &y->processes) = p;
  }
  for (u32 e = 0; e < t->n; e++) {
    const trace_lane *l = &t->lanes.v[t->lane[e]];
    if (process[l->process] == TRACE_NONE) continue;
    const u32 lane = trace_lane_of(a, y, process[l->process], l->device, l->of, l->id);
    const u32 n = trace_add(a, y, (trace_is)t->is[e], lane, trace_name(t, e), t->start_ps[e], t->dur_ps[e]);
    y->flags[n] = t->flags[e], y->step[n] = t->step[e], y->microbatch[n] = t->microbatch[e];
    y->chunk[n] = t->chunk[e];
    if (t->comm[e] == TRACE_NONE) continue;
    y->comm[n] = y->comms.n;
    *vec_push(a, &y->comms) = t->comms.v[t->comm[e]];
  }
  return y;
}

typedef struct {
  ctx *c;
  arena *a;
  job *j;
  const trace *t;
} bed;
static bed open_bed(const char *path) {
  bed x = {.c = ctx_new(), .a = arena_new()};
  x.j = job_open(x.c, x.a, 1, &path);
  REQUIRE(x.j);
  x.t = job_load(x.j, 0, 0);
  REQUIRE(x.t);
  return x;
}
static void close_bed(bed *x) {
  job_close(x->j);
  arena_free(x->a);
  ctx_free(x->c);
}
static job_rescale rescaled(bed *x, u32 keep, u32 ranks) {
  job_rescale r = {.n = 0};
  arena *a = arena_new();
  const straggler *s = straggler_new(x->c, a, without(a, x->t, keep), (sym){0}, NULL);
  CHECK_MSG(s && straggler_rescale(x->c, x->a, s, ranks, NULL, (loc){0}, &r), "%s", diag_render(x->c, x->a));
  arena_free(a);
  REQUIRE(r.replayed_ps > 0);
  return r;
}

TEST(rescale_to_its_own_size_is_the_replay) {
  bed x = open_bed("examples/traces/pipeline/timeline.json.gz");
  const job_rescale r = rescaled(&x, 3, 8);
  CHECK(r.predicted_ps == r.replayed_ps && r.transfer_ps == r.replayed_ps && r.late_ps == r.replayed_ps);
  const job_rescale more = rescaled(&x, 3, 64);
  CHECK(more.predicted_ps > more.replayed_ps && more.data[0] == 2 && more.data[1] == 16);
  for (u32 k = 0; k < more.n; k++)
    CHECK(more.row[k].late_ps >= 0 && more.row[k].after_ps >= more.row[k].before_ps);
  close_bed(&x);
}

// Two or three of four data ranks of a job of 64 GPUs predict all four. Its slowness is one worker of data rank 0: who
// has recorded that rank predicts the step, who has not cannot.
TEST(rescale_of_a_job_of_64_with_data_ranks_left_out) {
  const char *path = test_data("traces/bytedance_straggler/data__timeline-AR.json.gz");
  bed x = open_bed(path);
  static const u32 jobs[] = {15, 14}; // all data ranks; those without the slow worker
  u32 n = 0;
  for (u32 w = 0; w < COUNT_OF(jobs); w++) {
    const u32 D = (u32)__builtin_popcount(jobs[w]);
    const double whole = rescaled(&x, jobs[w], 16 * D).replayed_ps;
    for (u32 kept = 2; kept < D; kept++)
      for (u32 keep = 1; keep < 16; keep++) {
        if ((u32)__builtin_popcount(keep) != kept || keep & ~jobs[w]) continue;
        const job_rescale r = rescaled(&x, keep, 16 * D);
        const double error = r.predicted_ps / whole - 1, before = r.replayed_ps / whole - 1;
        if (getenv("HEDDLE_SHOW"))
          printf("| %u of %u | %s%s%s%s| %.2f s | %.2f s | %.2f s | %+.1f %% | %+.1f %% |\n", kept, D,
                 keep & 1 ? "0 " : "", keep & 2 ? "1 " : "", keep & 4 ? "2 " : "", keep & 8 ? "3 " : "",
                 r.replayed_ps * 1e-12, r.predicted_ps * 1e-12, whole * 1e-12, 100 * before, 100 * error);
        if (keep & 1 || w)
          CHECK_MSG(fabs(error) < 0.03, "ranks %x: %.3f", keep, error);
        else
          CHECK_MSG(error < -0.4, "ranks %x: %.3f", keep, error);
        n++;
      }
  }
  CHECK_EQ_I64(n, 13);
  close_bed(&x);
}

// Eight ranks of a step whose time is hosts' and waiting: every window of k of them predicts all eight. (They are tensor
// ranks; for the waiting of ranks for each other that is the same.)
TEST(rescale_of_eight_ranks_with_some_left_out) {
  const char *folder = test_data("traces/astrasim_24S");
  ctx *c = ctx_new();
  arena *a = arena_new();
  double whole = 0;
  for (u32 kept = 8; kept >= 2; kept--) {
    double mean = 0, worst = 0;
    for (u32 first = 0; first < (kept == 8 ? 1 : 8); first += test_step()) {
      const char *path[8];
      for (u32 k = 0; k < kept; k++)
        path[k] = arena_printf(a, "%s/megatron_kineto_%u.json.gz", folder, (first + k) % 8);
      job *j = job_open(c, a, kept, path);
      job_rescale r;
      const bool ok = j && job_rescale_of(j, NULL, 8, NULL, a, &r);
      job_close(j);
      CHECK_MSG(ok, "%s", diag_render(c, a));
      REQUIRE(ok);
      if (kept == 8) {
        CHECK(r.predicted_ps == r.replayed_ps);
        whole = r.predicted_ps;
        continue;
      }
      const double error = fabs(r.predicted_ps / whole - 1);
      mean += error * test_step() / 8, worst = fmax(worst, error);
    }
    if (getenv("HEDDLE_SHOW")) printf("| %u of 8 | %.1f %% | %.1f %% |\n", kept, 100 * mean, 100 * worst);
    CHECK_MSG(worst < (kept < 4 ? 0.09 : 0.03), "%u of 8: %.3f", kept, worst);
  }
  arena_free(a);
  ctx_free(c);
}
