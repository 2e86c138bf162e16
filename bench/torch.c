// torch.c - training steps beside PyTorch's, eager on the CPU, of the same models: how often PyTorch's time ours goes
// into. The evaluator on one thread by processor time; by the clock `heddle run` on all cores, and on two data ranks of one
// thread each beside DistributedDataParallel over gloo. Both sides have as many weights, and first losses that are near
// each other, as both guess. Without PyTorch nothing is measured. PyTorch multiplies with whichever BLAS it finds, as we do.
// Usage: torch [WORD]: rows whose name has it. RUNS: measured steps of each, 2.
#include "bench.h"
#include "eval/eval.h"
#include "front/front.h"
#include "kernel/kernel.h"
#include "pass/pass.h"
#include <sys/wait.h>

enum { RUNS_MOST = 16, NO_TORCH = 77 };
static const char *wanted = "";
static int runs = 2;

typedef struct {
  double wall_ms, cpu_ms, loss; // loss: of the first step
  long long weights;
} step_time;

// Of `steps` steps after the first. False: there is no PyTorch.
static bool torch_step(const char *model, const char *load, const char *update, int threads, int ranks,
                       int steps, step_time *t) {
  char line[512];
  snprintf(
      line, sizeof line,
      "OMP_NUM_THREADS=%d OPENBLAS_NUM_THREADS=%d /usr/bin/python3 bench/torch_step.py %s %s %s %d %d %d",
      threads, threads, model, load, update, threads, steps + 1, ranks);
  FILE *f = popen(line, "r");
  const bool read = f && fscanf(f, "%lf %lf %lf %lld", &t->wall_ms, &t->cpu_ms, &t->loss, &t->weights) == 4;
  const int status = f ? pclose(f) : -1;
  if (read) return true;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != NO_TORCH) fprintf(stderr, "%s: failed\n", line);
  return false;
}

// Batch and sequence, or side, are those of `load`.
static double eval_ms(const char *model, i64 batch, i64 seq, bool wide) {
  ctx *c = ctx_new();
  const front_opts fo = {.batch = batch, .seq = seq, .t = DT_F32, .loss = true};
  prog *p = front_load(c, model, &fo);
  const optim_opts sgd = optim_default(OPTIM_SGD);
  if (!p || !pass_train(p, &sgd, false)) {
    fputs(diag_render(c, ctx_arena(c)), stderr);
    exit(1);
  }
  arena *a = arena_new();
  const func_info *f = func_get(p, p->main);
  eval_array *in = NEWN(a, eval_array, f->nparams), *out = NEWN(a, eval_array, f->rets.n);
  double ms[RUNS_MOST];
  bool ok = eval_random(p, 1, in, f->nparams, a);
  for (u32 k = 0; k < f->nparams && wide; k++) { // as PyTorch's model is f64 as well
    if (dtype_kind_of(in[k].s.t) != DK_FLOAT) continue;
    const i64 n = shape_elems(&in[k].s);
    double *x = NEWN(a, double, n);
    ker_load_f64(x, in[k].s.t, in[k].data, n);
    in[k].data = x, in[k].s.t = DT_F64;
  }
  for (u32 k = 0; k < (u32)runs; k++) {
    arena *o = arena_new();
    const double start = bench_ms();
    ok = ok && eval_run(p, &(eval_opts){.as_f64 = wide, .threads = 1}, in, f->nparams, out, f->rets.n, o);
    ms[k] = bench_ms() - start;
    arena_free(o);
  }
  if (!ok) {
    fputs(diag_render(c, ctx_arena(c)), stderr);
    exit(1);
  }
  arena_free(a);
  ctx_free(c);
  return bench_median(ms, (u32)runs);
}

static long long weights_of(const char *model, i64 batch, i64 seq) {
  ctx *c = ctx_new();
  const front_opts fo = {.batch = batch, .seq = seq, .t = DT_F32, .loss = true};
  const prog *p = front_load(c, model, &fo);
  const func_info *f = p ? func_get(p, p->main) : NULL;
  i64 n = 0;
  for (u32 k = 0; f && k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_WEIGHT) n += shape_elems(&type_get(p, f->values.v[k + 1].ty)->s);
  ctx_free(c);
  return n;
}

// The median that `heddle run` prints, and the loss of its first step.
static double run_ms(const char *model, const char *load, const char *update, const char *strategy, int steps,
                     double *loss) {
  char line[512];
  const char *heddle = getenv("HEDDLE");
  snprintf(line, sizeof line, "%s run %s %s --train --optimizer %s --strategy %s --steps %d --json",
           heddle ? heddle : "build/heddle", model, load, update, strategy, steps + 1);
  FILE *f = popen(line, "r");
  char text[1 << 14] = "";
  const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  text[n] = 0;
  const char *at = strstr(text, "\"step_ms\": "), *first = strstr(text, "\"loss\": ");
  if (f) pclose(f);
  *loss = first ? atof(first + strlen("\"loss\": ")) : 0;
  return at ? atof(at + strlen("\"step_ms\": ")) : 0;
}

// `heddle run` beside PyTorch, by the clock. ranks: of one thread each; 1: on all cores.
static void beside(const char *name, const char *model, i64 batch, i64 seq, const char *update, int ranks,
                   double required) {
  char load[64], ours[64];
  snprintf(load, sizeof load, "%lld %lld f32", (long long)batch, (long long)seq);
  snprintf(ours, sizeof ours, "--batch %lld --seq %lld", (long long)batch, (long long)seq);
  step_time t;
  double loss;
  if (!strstr(name, wanted) || !torch_step(model, load, update, ranks > 1 ? 1 : cpu_count(), ranks, runs, &t))
    return;
  const double ms = run_ms(model, ours, update, ranks > 1 ? "dp=2" : "dp=1", runs, &loss);
  const long long weights = weights_of(model, batch, seq);
  printf("%s: %lld weights, PyTorch %lld; first loss %.3f, PyTorch %.3f; %.0f ms, PyTorch %.0f\n", name,
         weights, t.weights, loss, t.loss, ms, t.wall_ms);
  if (weights != t.weights) exit(1);
  bench_add((bench_row){name, "x", ms > 0 ? t.wall_ms / ms : 0, required,
                        ranks > 1 ? "PyTorch DDP, gloo, 2 x 1 thread" : "PyTorch eager, all cores", true});
}

// The evaluator beside PyTorch, by processor time.
static void evaluated(const char *name, const char *model, i64 batch, i64 seq, bool wide, double required) {
  char load[64];
  snprintf(load, sizeof load, "%lld %lld %s", (long long)batch, (long long)seq, wide ? "f64" : "f32");
  step_time t;
  if (!strstr(name, wanted) || !torch_step(model, load, "sgd", 1, 1, runs, &t)) return;
  bench_add((bench_row){name, "x", t.cpu_ms / eval_ms(model, batch, seq, wide), required,
                        "PyTorch eager, 1 thread", true});
}

int main(int argc, char **argv) {
  static const char gpt[] = "gpt2:layers=2,vocab=5000", tiny[] = "gpt2:layers=1,hidden=8,heads=1,vocab=8";
  step_time t;
  if (!torch_step(tiny, "1 8 f32", "sgd", 1, 1, 1, &t)) {
    puts("skipped: there is no PyTorch at /usr/bin/python3 to measure against");
    return 0;
  }
  if (argc > 1) wanted = argv[1];
  if (getenv("RUNS")) runs = MAX(1, MIN(atoi(getenv("RUNS")), RUNS_MOST));
  printf("BLAS: %s\n", kernel_set_blas(true) ? "OpenBLAS" : "none");
  evaluated("evaluator, GPT-2 of 2 layers, 4 x 512, f32: PyTorch's time by ours", gpt, 4, 512, false, 1);
  evaluated("evaluator, GPT-2 of 2 layers, 4 x 512, f64: PyTorch's time by ours", gpt, 4, 512, true, 1);
  evaluated("evaluator, ResNet-50, 4 x 224 x 224, f32: PyTorch's time by ours", "resnet50", 4, 224, false,
            0.7);
  beside("heddle run, ResNet-50, 4 x 224 x 224, f32: PyTorch's time by ours", "resnet50", 4, 224, "sgd", 1,
         0.7);
  if (getenv("FULL")) {
    beside("heddle run, GPT-2 124M, 4 x 512, f32: PyTorch's time by ours", "gpt2", 4, 512, "adamw", 1, 1);
    beside("heddle run, 2 ranks, GPT-2 124M, 4 x 512, f32: DDP's time by ours", "gpt2", 4, 512, "adamw", 2,
           1);
  } else {
    beside("heddle run, GPT-2 of 2 layers, 4 x 512, f32: PyTorch's time by ours", gpt, 4, 512, "adamw", 1, 1);
    beside("heddle run, 2 ranks, GPT-2 of 2 layers, 4 x 512, f32: DDP's time by ours", gpt, 4, 512, "adamw",
           2, 1);
  }
  return bench_end();
}
