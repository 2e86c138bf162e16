// torch.c - training steps beside PyTorch's, eager on the CPU, of the same models: how often PyTorch's time ours goes
// into. The evaluator on one thread by processor time, `heddle run` on all cores by the clock. Without PyTorch
// nothing is measured. PyTorch multiplies with whichever BLAS it finds, as we do.
#include "bench.h"
#include "eval/eval.h"
#include "front/front.h"
#include "kernel/kernel.h"
#include "pass/pass.h"
#include <sys/wait.h>

enum { RUNS = 2, NO_TORCH = 77 };

typedef struct {
  double wall_ms, cpu_ms;
} step_time;

// Of `steps` steps after the first. False: there is no PyTorch.
static bool torch_step(const char *model, const char *load, const char *update, int threads, int steps,
                       step_time *t) {
  char line[512];
  snprintf(line, sizeof line,
           "OMP_NUM_THREADS=%d OPENBLAS_NUM_THREADS=%d /usr/bin/python3 bench/torch_step.py %s %s %s %d %d",
           threads, threads, model, load, update, threads, steps + 1);
  FILE *f = popen(line, "r");
  const bool read = f && fscanf(f, "%lf %lf", &t->wall_ms, &t->cpu_ms) == 2;
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
  double ms[RUNS];
  bool ok = eval_random(p, 1, in, f->nparams, a);
  for (u32 k = 0; k < f->nparams && wide; k++) { // as PyTorch's model is f64 as well
    if (dtype_kind_of(in[k].s.t) != DK_FLOAT) continue;
    const i64 n = shape_elems(&in[k].s);
    double *x = NEWN(a, double, n);
    ker_load_f64(x, in[k].s.t, in[k].data, n);
    in[k].data = x, in[k].s.t = DT_F64;
  }
  for (u32 k = 0; k < RUNS; k++) {
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
  return bench_fastest(ms, RUNS);
}

// The median that `heddle run` prints.
static double run_ms(const char *model, const char *load, int steps) {
  char line[512];
  const char *heddle = getenv("HEDDLE");
  snprintf(line, sizeof line, "%s run %s %s --train --optimizer adamw --strategy dp=1 --steps %d --json",
           heddle ? heddle : "build/heddle", model, load, steps + 1);
  FILE *f = popen(line, "r");
  char text[1 << 14] = "";
  const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  text[n] = 0;
  const char *at = strstr(text, "\"step_ms\": ");
  if (f) pclose(f);
  return at ? atof(at + strlen("\"step_ms\": ")) : 0;
}

int main(void) {
  static const char gpt[] = "gpt2:layers=2,vocab=5000";
  step_time t;
  if (!torch_step(gpt, "4 512 f32", "sgd", 1, RUNS, &t)) {
    puts("skipped: there is no PyTorch at /usr/bin/python3 to measure against");
    return 0;
  }
  printf("BLAS: %s\n", kernel_set_blas(true) ? "OpenBLAS" : "none");
  bench_add((bench_row){"evaluator, GPT-2 of 2 layers, 4 x 512, f32: PyTorch's time by ours", "x",
                        t.cpu_ms / eval_ms(gpt, 4, 512, false), 1, "PyTorch eager, 1 thread", true});
  if (torch_step(gpt, "4 512 f64", "sgd", 1, RUNS, &t))
    bench_add((bench_row){"evaluator, GPT-2 of 2 layers, 4 x 512, f64: PyTorch's time by ours", "x",
                          t.cpu_ms / eval_ms(gpt, 4, 512, true), 1, "PyTorch eager, 1 thread", true});
  if (torch_step("resnet50", "4 224 f32", "sgd", 1, RUNS, &t))
    bench_add((bench_row){"evaluator, ResNet-50, 4 x 224 x 224, f32: PyTorch's time by ours", "x",
                          t.cpu_ms / eval_ms("resnet50", 4, 224, false), 0.7, "PyTorch eager, 1 thread",
                          true});
  const char *big = getenv("FULL") ? "gpt2" : gpt;
  if (torch_step(big, "4 512 f32", "adamw", cpu_count(), RUNS, &t)) {
    const double ours = run_ms(big, "--batch 4 --seq 512", RUNS);
    bench_add((bench_row){getenv("FULL")
                              ? "heddle run, GPT-2 124M, 4 x 512, f32: PyTorch's time by ours"
                              : "heddle run, GPT-2 of 2 layers, 4 x 512, f32: PyTorch's time by ours",
                          "x", ours > 0 ? t.wall_ms / ours : 0, 1, "PyTorch eager, all cores", true});
  }
  return bench_end();
}
