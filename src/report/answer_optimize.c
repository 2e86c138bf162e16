// answer_optimize.c - heddle trace optimize: plans that people use beside the best that was found, and what to set.
#include "report/internal.h"

static void put_job(report *r, const tuning *t) {
  const tune_job *j = &t->job;
  const double bw = j->link.ps_per_byte > 0 ? 1e12 / j->link.ps_per_byte : 0;
  report_fact(r, "rank", "rank", t->rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, t->rank));
  report_fact(r, "steps", "step", t->steps ? cell_text(t->steps) : cell_none());
  report_fact(r, "workers", "workers", cell_i(CELL_INT, j->link.workers));
  report_fact(r, "recorded_ps", "recorded", cell_i(CELL_PS, t->recorded_ps));
  report_fact(r, "modelled_ps", "device alone", cell_i(CELL_PS, t->modelled_ps));
  report_fact(r, "kernels", "kernels", cell_i(CELL_INT, j->nops));
  report_fact(r, "all_reduces", "all-reduces", cell_i(CELL_INT, t->nbuckets));
  report_fact(r, "start_ps", "  start", t->one_size ? cell_none() : cell_i(CELL_PS, j->link.start_ps));
  report_fact(r, "bandwidth", "  bandwidth", bw > 0 ? cell_x(CELL_RATE, bw) : cell_none());
  report_fact(r, "fit_error_ps", "  error of both", cell_i(CELL_PS, (i64)(t->fit_error_ps + 0.5)));
  if (!t->sized)
    report_line(r, "gradients",
                "their sizes are not recorded: each all-reduce is spread over the kernels before it");
  if (t->one_size)
    report_line(r, "start", "all have the same size: what starting one takes is not known, and taken for 0");
  report_fact(r, "communications_partial", NULL, cell_i(CELL_INT, t->partial));
  if (t->partial)
    report_line(r, "peers",
                "members of %u communication%s were not recorded: times include waiting for them, and starts "
                "come out too long",
                t->partial, t->partial == 1 ? "" : "s");
  if (t->beside)
    report_line(r, "beside",
                "%u operations of other threads, such as copies ahead, run beside and are left out",
                t->beside);
  if (t->other)
    report_line(r, "left out", "%u communication%s that carry no gradients, or that the backward waits for",
                t->other, t->other == 1 ? "" : "s");
  if ((double)t->modelled_ps < 0.9 * (double)t->recorded_ps)
    report_line(
        r, "hosts",
        "%.0f %% of the step wait for hosts or peers, which no plan below changes: see heddle trace blame",
        100 - 100 * (double)t->modelled_ps / (double)t->recorded_ps);
}

static void put_plan(report *r, const tuning *t, const char *name, i64 ps, const char *about) {
  const i64 was = t->modelled_ps;
  report_row(r,
             (cell[]){cell_text(name), cell_i(CELL_PS, ps), cell_signed(cell_i(CELL_PS, ps - was)),
                      ps > 0 ? cell_x(CELL_TIMES, (double)was / (double)ps) : cell_none(), cell_text(about)});
}

static void put_plans(report *r, const tuning *t, const tune_result *x) {
  static const column cols[] = {{"plan", "plan"},
                                {"step_ps", "step"},
                                {"change_ps", "change"},
                                {"times_faster", "faster"},
                                {"about", "what it does"}};
  report_table(r, "plans", cols, COUNT_OF(cols));
  put_plan(r, t, "found", x->ps, "best");
  put_plan(r, t, "as recorded", t->modelled_ps, "buckets of the recording");
  for (u32 b = 0; b < TUNE_BASELINES; b++)
    put_plan(r, t, tune_baseline_rows[b].name, x->base_ps[b], tune_baseline_rows[b].about);
}

static void put_buckets(report *r, const tuning *t, const tune_result *x, arena *a, u32 top) {
  static const column cols[] = {{"bucket", "bucket"},  {"bytes", "bytes"},    {"pieces", "pieces"},
                                {"ready_ps", "ready"}, {"start_ps", "start"}, {"end_ps", "end"}};
  const tune_step s = tune_step_of(a, &t->job, &x->plan, TUNE_ONE_WORKER);
  u32 n = 0;
  report_table(r, "buckets", cols, COUNT_OF(cols));
  for (u32 k = 0, end; k < t->job.ntensors; k = end) {
    const i64 bytes = tune_bucket_bytes(&t->job, &x->plan, k, &end);
    report_row(r, (cell[]){cell_i(CELL_INT, ++n), cell_i(CELL_BYTES, bytes), cell_i(CELL_INT, x->plan.cut[k]),
                           cell_i(CELL_PS, s.ready_ps[end - 1]), cell_i(CELL_PS, s.start_ps[k]),
                           cell_i(CELL_PS, s.end_ps[k])});
  }
  report_top(r, top ? top : 10);
}

static void put_passes(report *r, const tune_result *x, const trace_ask *q, u32 passes) {
  static const column cols[] = {{"pass", "pass"}, {"kept", "proposals kept"}, {"about", "what it does"}};
  report_table(r, "passes", cols, COUNT_OF(cols));
  for (u32 k = 0; k < TUNE_PASSES + q->npasses; k++) {
    const tune_pass *p = k < TUNE_PASSES ? &tune_passes[k] : &q->pass[k - TUNE_PASSES];
    if (k >= TUNE_PASSES || passes >> k & 1)
      report_row(r, (cell[]){cell_text(p->id), cell_i(CELL_INT, x->kept[k]), cell_text(p->about)});
  }
}

// What passes that are not usual take for granted.
static void put_assumed(report *r, const tuning *t, const tune_result *x, u32 passes) {
  u32 half = 0, compressed = 0;
  for (u32 k = 0; k < t->job.nops; k++) half += x->plan.half[k];
  for (u32 k = 0; k < t->job.ntensors; k++) compressed += x->plan.compressed[k];
  if (passes >> TUNE_PASS_half & 1) report_fact(r, "found_half", NULL, cell_i(CELL_INT, half));
  if (passes >> TUNE_PASS_compress & 1)
    report_fact(r, "found_compressed", NULL, cell_i(CELL_INT, compressed));
  if (passes >> TUNE_PASS_priority & 1)
    report_fact(r, "found_priority", NULL, cell_i(CELL_INT, x->plan.priority));
  if (half)
    report_line(r, "half",
                "%u matmuls and the like are taken to need %.0f %% of their time in half precision", half,
                100 * TUNING_HALF_TIME);
  if (compressed)
    report_line(r, "compressed", "gradients have 16 bits on the wire; to convert a byte takes %.0f ps",
                TUNING_COMPRESS_PS_PER_BYTE);
  if (x->plan.priority)
    report_line(
        r, "priority",
        "the next forward begins when what it reads first is there (BytePS, ByteScheduler); the step and its "
        "times count from the start of the backward");
}

static void put_setting(report *r, arena *a, const tuning *t, const char *framework, const char *set,
                        i64 ps) {
  if (ps < t->modelled_ps)
    report_line(r, framework, "%s: %s", set, time_text(a, ps));
  else
    report_line(r, framework, "no setting is faster than the recording; the best is %s", set);
}

// What the frameworks can be told, and what that gives: buckets of one size only.
static void put_settings(report *r, const tuning *t, const tune_result *x, arena *a) {
  const tune_setting ddp = tune_best_ddp(a, &t->job), hvd = tune_best_horovod(a, &t->job);
  u32 n = 0, fused = 0;
  for (u32 k = 0; k < t->job.ntensors; k++) n += !x->plan.bucketed[k];
  for (u32 k = 0; k < t->job.nops; k++) fused += x->plan.joined[k];
  report_fact(r, "found_buckets", NULL, cell_i(CELL_INT, n));
  report_fact(r, "found_fused", NULL, cell_i(CELL_INT, fused));
  report_fact(r, "ddp_cap_bytes", NULL, cell_i(CELL_BYTES, ddp.bytes));
  report_fact(r, "ddp_ps", NULL, cell_i(CELL_PS, ddp.ps));
  report_fact(r, "horovod_threshold_bytes", NULL, cell_i(CELL_BYTES, hvd.bytes));
  report_fact(r, "horovod_cycle_ps", NULL, cell_i(CELL_PS, hvd.cycle_ps));
  report_fact(r, "horovod_ps", NULL, cell_i(CELL_PS, hvd.ps));
  put_setting(r, a, t, "PyTorch DDP", arena_printf(a, "bucket_cap_mb=%lld", (long long)(ddp.bytes >> 20)),
              ddp.ps);
  put_setting(r, a, t, "Horovod",
              arena_printf(a, "HOROVOD_FUSION_THRESHOLD=%lld HOROVOD_CYCLE_TIME=%lld", (long long)hvd.bytes,
                           (long long)(hvd.cycle_ps / 1000000000)),
              hvd.ps);
  if (fused)
    report_line(r, "kernels", "%u element-wise kernels fused with the one before, as torch.compile does",
                fused);
}

static const char *size_text(arena *a, i64 bytes) { return text_bytes(a, (double)bytes); }

// What the job takes, and ways to make it fit.
static void put_memory(report *r, const tuning *t, const tune_result *x, arena *a, i64 limit) {
  const i64 peak = t->job.peak_bytes;
  report_fact(r, "memory_peak_bytes", NULL, peak ? cell_i(CELL_BYTES, peak) : cell_none());
  if (!peak) return;
  const tuning_peak *of = &t->memory.peak;
  report_fact(r, "memory_peak_rank", NULL, of->rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, of->rank));
  report_fact(r, "memory_peak_step", NULL, of->step == TRACE_NONE ? cell_none() : cell_i(CELL_INT, of->step));
  report_fact(r, "memory_before_bytes", NULL, cell_i(CELL_BYTES, t->memory.before_bytes));
  report_fact(r, "memory_kept_bytes", NULL, cell_i(CELL_BYTES, t->memory.kept_bytes));
  i64 weights = 0; // are as large as their gradients
  for (u32 k = 0; k < t->job.ntensors; k++) weights += t->job.tensor[k].bytes;
  report_fact(r, "memory_weights_bytes", NULL, cell_i(CELL_BYTES, weights));
  report_line(r, "memory", "%s at the most, over all ranks and steps recorded%s%s", size_text(a, peak),
              of->rank == TRACE_NONE ? "" : arena_printf(a, ": on rank %u", of->rank),
              of->step == TRACE_NONE ? "" : arena_printf(a, " in step %u", of->step));
  report_line(r, "",
              "in the step that is tuned %s before it, of these %s weights, as large as their gradients; %s "
              "kept by the "
              "forward for the backward",
              size_text(a, t->memory.before_bytes), size_text(a, weights),
              size_text(a, t->memory.kept_bytes));
  if (!limit) return;
  if (!x->nmemory) {
    report_line(r, "limit", "%s: it fits as it is", size_text(a, limit));
    return;
  }
  if (t->memory.no_recompute) report_line(r, "recompute", "not tried: %s", t->memory.no_recompute);
  report_line(r, "limit",
              x->fits ? "%s: the plans below take the fastest way that fits"
                      : "%s: nothing that was tried fits",
              size_text(a, limit));
  report_gap(r);
  static const column cols[] = {{"way", "to fit"}, {"step_ps", "step"}, {"bytes", "peak"}, {"fits", "fits"}};
  report_table(r, "memory", cols, COUNT_OF(cols));
  for (u32 k = 0; k < x->nmemory; k++)
    report_row(r,
               (cell[]){cell_text(x->memory[k].name), cell_i(CELL_PS, x->memory[k].ps),
                        cell_i(CELL_BYTES, x->memory[k].bytes), cell_text(x->memory[k].fits ? "yes" : "no")});
}

bool answer_optimize(report *r, ctx *c, arena *a, const trace_ask *q) {
  const u32 passes = q->use_passes ? tune_passes_named(c, q->use_passes) : tune_passes_usual();
  if (!passes) return false;
  job *j = job_open(c, a, q->npaths, q->path);
  tuning t;
  if (!j || !tuning_of(j, q->steps, a, &t)) return false;
  if (q->memory_bytes && !t.job.peak_bytes) {
    diag(c, E_TRACE, (loc){0}, "--memory: the recording does not say how much the job takes: %s",
         t.memory.unknown);
    diag_hint(c, "record with PyTorch's profile_memory=True");
    return false;
  }
  const u32 gone = t.no_half ? passes & (1u << TUNE_PASS_half | 1u << TUNE_PASS_compress) : 0;
  if (gone) {
    diag(c, E_TRACE, (loc){0}, "--passes: %s has no use: %s",
         gone >> TUNE_PASS_half & 1 ? "half" : "compress", t.no_half);
    diag_hint(c, "leave it out");
    return false;
  }
  const tune_result x = tune_search(
      a, &t.job,
      &(tune_opts){.memory_bytes = q->memory_bytes, .passes = passes, .nown = q->npasses, .own = q->pass});
  put_job(r, &t);
  put_memory(r, &t, &x, a, q->memory_bytes);
  report_gap(r);
  put_plans(r, &t, &x);
  report_gap(r);
  put_settings(r, &t, &x, a);
  put_assumed(r, &t, &x, passes);
  report_gap(r);
  put_passes(r, &x, q, passes);
  report_gap(r);
  put_buckets(r, &t, &x, a, q->top);
  return true;
}
