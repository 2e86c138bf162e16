// gain.c - data-parallel jobs of two ranks on a link of a given rate (bench/link.sh), recorded: how well the recording is
// replayed, at its rate and at half of it, beside Daydream's coarse model; how much of what the optimiser predicts is gained when
// its plan is run; and whether a clock shifted on purpose is found.
//
// The optimiser's job is the model's, with the times that `heddle profile` has measured on that link; its link is a line
// through these times. Of its passes only tensor_fusion is on, for of what it proposes `heddle run` can do this: sum all
// gradients when the backward has ended, or each as soon as it is made (overlap=dp). So its buckets are run as gradients
// that are summed one by one, which its model says is as fast if a start costs little. A layer is one call of a plan: its
// gradients are there when its backward has ended.
//
// Wall clock, unlike other measurements: nothing else may run meanwhile. Without root and MPI nothing is measured.
#include "command.h"
#include "job.h"
#include <unistd.h>

typedef struct {
  const char *name, *model;
  i64 batch, seq; // of both ranks together; seq 0: it has none
  int mbit;
} job;
static const job jobs[] = {
    {"MLP of 6 layers", "mlp-xs:layers=6,hidden=512", 1536, 0, 250},
    {"GPT-2 of 4 layers", "gpt2:layers=4,hidden=256,heads=8,vocab=2048,positions=64", 8, 64, 500},
    {"MLP of 6 layers, large batch", "mlp-xs:layers=6,hidden=512", 4096, 0,
     250}, // computes longer than it sends
};
enum { ROUNDS = 3, STEPS = 12, SHIFT_US = 5000 };

static char folder[] = "/tmp/heddle-gain-XXXXXX";
static arena *bench_arena;

static const char *there(int mbit, const char *fmt, ...) PRINTF_LIKE(2, 3);
static const char *there(int mbit, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = answer_of(arena_printf(bench_arena, "bench/link.sh %d", mbit), fmt, ap);
  va_end(ap);
  return text;
}

static const char *machine_of(const job *x) {
  return arena_printf(bench_arena, "2x1 cpu-core ib=%dMb/s", x->mbit);
}

// The machine says that a rank has one core: alone at its end of the link it would take all.
static const char *load_of(const job *x) {
  return arena_printf(
      bench_arena, "%s --batch %lld%s --optimizer sgd --machine '%s'", x->model, (long long)x->batch,
      x->seq ? arena_printf(bench_arena, " --seq %lld", (long long)x->seq) : "", machine_of(x));
}

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "gain: %s failed\n", what);
  exit(1);
}

// Milliseconds of a step; the least is kept, as another guest of the machine only adds.
static double step_ms(const job *x, int mbit, const char *strategy, const char *more) {
  const double ms =
      number(there(mbit, "run %s --strategy '%s' --steps %d --json %s", load_of(x), strategy, STEPS, more),
             "step_ms");
  if (ms <= 0) fail(strategy);
  return ms;
}

// What an all-reduce takes on the link: a line through the measured ones, least and most bytes.
static tune_link link_of(const machine_events *e, ctx *c, arena *a) {
  i64 bytes[2] = {INT64_MAX, 0}, ps[2] = {0};
  for (u32 k = 0; k < e->n; k++) {
    cost_event x;
    if (!cost_event_parse(c, a, e->row[k].key, &x) || x.op != OP_all_reduce) continue;
    if (x.size < bytes[0]) bytes[0] = x.size, ps[0] = e->row[k].ps;
    if (x.size > bytes[1]) bytes[1] = x.size, ps[1] = e->row[k].ps;
  }
  if (bytes[0] >= bytes[1]) fail("a line through measured all-reduces");
  tune_link l = {.workers = 2, .ps_per_byte = (double)(ps[1] - ps[0]) / (double)(bytes[1] - bytes[0])};
  l.start_ps = MAX(0, ps[0] - (i64)(l.ps_per_byte * (double)bytes[0]));
  return l;
}

// Gradients leave the backward of a layer together.
static void leave_with_layers(tune_job *j) {
  for (u32 k = 0; k < j->ntensors; k++) {
    u32 *op = &j->tensor[k].op;
    while (*op + 1 < j->nops && j->op[*op + 1].phase == TUNE_BACKWARD &&
           j->op[*op + 1].block == j->op[*op].block)
      ++*op;
  }
  if (!tune_verify(j)) fail("gradients by layers");
}

typedef struct {
  double daydream_ms[2];   // at the job's rate, at half of it
  double after_ms, own_ms; // gradients summed after the backward; each as soon as it is made
  double found_ms;         // the optimiser's plan
  u32 ngradients, nbuckets;
  double start_ms, mb_per_s;
} predicted;

static predicted predict(const job *x) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *on = machine_of(x), *times = arena_printf(a, "%s/times.db", folder);
  const front_opts fo = {.batch = x->batch / 2, .seq = x->seq, .t = DT_F32, .loss = true};
  machine *m = machine_load(c, a, on);
  tune_link l = {.workers = 2};
  if (m && machine_events_read(m, a, times)) l = link_of(m->events, c, a);
  tune_job *j = job_of_model(c, a, x->model, &fo, OPTIM_SGD, on, times, &l);
  if (!j) {
    fputs(diag_render(c, a), stderr);
    exit(1);
  }
  predicted p = {0};
  for (u32 k = 0; k < 2; k++) p.daydream_ms[k] = (double)daydream_ps(a, j, 8e6 / x->mbit * (1 + k)) / 1e9;
  leave_with_layers(j);
  const tune_result r = tune_search(a, j, &(tune_opts){.passes = 1u << TUNE_PASS_tensor_fusion});
  p.after_ms = (double)r.base_ps[TUNE_BASE_one_bucket] / 1e9;
  p.own_ms = (double)r.unchanged_ps / 1e9, p.found_ms = (double)r.ps / 1e9;
  p.ngradients = j->ntensors;
  p.start_ms = (double)l.start_ps / 1e9, p.mb_per_s = 1e6 / l.ps_per_byte;
  for (u32 k = 0; k < j->ntensors; k++) p.nbuckets += !r.plan.bucketed[k];
  arena_free(a);
  ctx_free(c);
  return p;
}

static double off(double ms, double of) { return fabs(ms / of - 1) * 100; }
static const char *named(const job *x, const char *what) {
  return arena_printf(bench_arena, "%s, %d Mbit/s: %s", x->name, x->mbit, what);
}

// Recorded steps, replayed: milliseconds of a step, and of one whose all-reduces take twice as long.
static void replayed(double recorded_ms, double ms[2]) {
  const char *text = answer("trace replay %s/traces --json", folder);
  const double recorded = known(text, "recorded_ps"), again = known(text, "replayed_ps");
  ms[0] = recorded_ms * again / recorded;
  text = answer("trace whatif %s/traces --set 'all_reduce x 2' --json", folder);
  ms[1] = ms[0] * known(text, "changed_ps") / known(text, "replayed_ps");
}

// Microseconds by which what `align` finds differs from what rank 1's clock was moved by.
static double clock_off_us(void) {
  const char *at = behind(answer("trace align %s/traces --set clocks=process --json", folder), "alignment");
  const double before = number(at ? strstr(at, "\"rank\": 1") : NULL, "offset_ps");
  char line[512];
  snprintf(
      line, sizeof line,
      "cd %s && mkdir -p moved && cp traces/rank0.json moved && "
      "python3 -c \"import re; t = open('traces/rank1.json').read(); open('moved/rank1.json', 'w').write("
      "re.sub(r'(\\\"baseTimeNanoseconds\\\": *)([0-9]+)', lambda m: m[1] + str(int(m[2]) + %d000), t))\"",
      folder, SHIFT_US);
  if (system(line)) fail("moving a clock");
  at = behind(answer("trace align %s/moved --set clocks=process --json", folder), "alignment");
  const double after = number(at ? strstr(at, "\"rank\": 1") : NULL, "offset_ps");
  return fabs((after - before) / 1e6 - SHIFT_US);
}

static predicted profile_and_predict(const job *x) {
  unlink(arena_printf(bench_arena, "%s/times.db", folder));
  if (!there(x->mbit, "profile %s --strategy dp=2 -o %s/times.db", load_of(x), folder)) fail("profile");
  return predict(x);
}

static void try_job(const job *x) {
  double before = INFINITY, after = INFINITY, slow = INFINITY, recorded = 0;
  predicted p = {.after_ms = INFINITY};
  for (u32 k = 0; k < ROUNDS; k++) {
    const predicted now = profile_and_predict(x);
    if (now.after_ms < p.after_ms) p = now; // events that were measured undisturbed
    const double ms = step_ms(x, x->mbit, "dp=2", arena_printf(bench_arena, "--trace %s/again", folder));
    if (ms < before) { // the recording of the fastest
      before = recorded = ms;
      if (system(
              arena_printf(bench_arena, "rm -rf %s/traces; mv %s/again %s/traces", folder, folder, folder)))
        fail("mv");
    }
    const double beside = step_ms(x, x->mbit, "dp=2 overlap=dp", ""),
                 half = step_ms(x, x->mbit / 2, "dp=2", "");
    printf("%s, round %u: %.1f ms, beside %.1f, half the rate %.1f\n", x->name, k + 1, ms, beside, half);
    after = fmin(after, beside), slow = fmin(slow, half);
  }
  double replay[2];
  replayed(recorded, replay);
  printf("%s, %d Mbit/s (%.1f MB/s, %.2f ms a start): %u gradients in %u buckets\n", x->name, x->mbit,
         p.mb_per_s, p.start_ms, p.ngradients, p.nbuckets);
  printf("  a step                    measured   replayed  Daydream  predicted\n");
  printf("  summed after the backward %8.1f  %8.1f  %8.1f   %8.1f ms\n", before, replay[0], p.daydream_ms[0],
         p.after_ms);
  printf("  the same at half the rate %8.1f  %8.1f  %8.1f ms\n", slow, replay[1], p.daydream_ms[1]);
  printf("  each as soon as it is made %7.1f            %8.1f   %8.1f ms; as found %.1f ms\n", after,
         p.daydream_ms[0], p.own_ms, p.found_ms);
  const double error[2] = {off(replay[0], before), off(replay[1], slow)};
  bench_add(
      (bench_row){named(x, "replay of its own recording, error"), "%", error[0], 5, "dPRO: 5 %", false});
  bench_add((bench_row){named(x, "Daydream's error less replay's"), "%",
                        off(p.daydream_ms[0], before) - error[0], 0.01, "dPRO, Table 2: 21 to 25 %", true});
  bench_add((bench_row){named(x, "replayed with half the rate, error"), "%", error[1], 5, "", false});
  bench_add((bench_row){named(x, "Daydream's less that"), "%", off(p.daydream_ms[1], slow) - error[1], 0.01,
                        "", true});
  bench_add((bench_row){named(x, "gained by the optimiser's plan, of what it predicts"), "",
                        (before - after) / (p.after_ms - p.found_ms), 0.9, "", true});
  bench_add((bench_row){named(x, "a clock moved by 5 ms is found within"), "us", clock_off_us(), 15,
                        "align: 15 us", false});
}

int main(void) {
  bench_arena = arena_new();
  if (!mkdtemp(folder)) return 1;
  if (geteuid() || !there(jobs[0].mbit, "run mlp-xs --batch 4 --strategy dp=2 --steps 1")) {
    puts("gain: skipped, there is no MPI, or no right to make a link");
    return rmdir(folder) != 0;
  }
  const char *one = getenv("JOB"); // that one alone, from 0
  for (u32 k = 0; k < COUNT_OF(jobs); k++)
    if (!one || (u32)atoi(one) == k) try_job(&jobs[k]);
  if (system(arena_printf(bench_arena, "rm -rf %s", folder))) return 1;
  return bench_end();
}
