// predict.c - the step that `heddle sim` predicts against the step that `heddle run` takes, here: with events that were
// measured one by one, and by the machine file of `heddle machines probe` alone. Small plans, one and two ranks.
//
// Wall clock, unlike other measurements: ranks wait for each other. What else runs on the machine counts.
#include "bench.h"
#include <stdio.h>
#include <unistd.h>

typedef struct {
  const char *model, *strategy;
  u32 steps; // of a run; 0: STEPS
} tried;
static const tried plans[] = {
    {"mlp-xs:layers=4,hidden=256 --batch 64", "dp=1", 0},
    {"mlp-xs:layers=4,hidden=256 --batch 64", "dp=2", 0},
    {"mlp-xs:layers=4,hidden=256 --batch 64", "tp=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=1", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=1 recompute=full", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=2 zero=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "tp=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "pp=2 mb=4", 0},
    {"bert-base:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=2 zero=2", 0},
    {"t5-small:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=2 recompute=full", 0},
    {"resnet50 --batch 2 --seq 32", "dp=1", 5},
    {"resnet50 --batch 2 --seq 32", "dp=2", 5},
    {"moe-8x125m:layers=2,hidden=64,heads=4,vocab=256,experts=4 --batch 8 --seq 16", "dp=2", 0},
};
enum { PLANS = COUNT_OF(plans), ROUNDS = 3, STEPS = 25 };

static char folder[] = "/tmp/heddle-predict-XXXXXX";

// The number behind "key": in what a command prints; below 0: it failed.
static double ask(const char *key, const char *fmt, ...) PRINTF_LIKE(2, 3);
static double ask(const char *key, const char *fmt, ...) {
  static char out[1 << 20];
  char line[2048], word[64];
  const char *program = getenv("HEDDLE");
  va_list ap;
  int n = snprintf(line, sizeof line, "%s ", program ? program : "build/heddle");
  va_start(ap, fmt);
  vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
  va_end(ap);
  FILE *f = popen(line, "r");
  if (!f) return -1;
  const size_t got = fread(out, 1, sizeof out - 1, f);
  out[got] = 0;
  if (pclose(f)) return -1;
  snprintf(word, sizeof word, "\"%s\":", key);
  const char *at = strstr(out, word);
  return at ? atof(at + strlen(word)) : -1;
}

static double spearman(const double *x, const double *y, u32 n) {
  double sum = 0;
  for (u32 i = 0; i < n; i++) {
    double rx = 0, ry = 0;
    for (u32 j = 0; j < n; j++) {
      rx += (x[j] < x[i]) + 0.5 * (x[j] == x[i]);
      ry += (y[j] < y[i]) + 0.5 * (y[j] == y[i]);
    }
    sum += (rx - ry) * (rx - ry);
  }
  return 1 - 6 * sum / (n * ((double)n * n - 1));
}

// Rounds of measuring, predicting and running, each with a database of its own; of every column the fastest, as of all
// that is measured here.
static bool try_plan(const tried *t, double ms[3]) {
  double took[3][ROUNDS];
  for (u32 k = 0; k < ROUNDS; k++) {
    const char *const m = t->model, *const s = t->strategy;
    if (ask("events", "profile %s --strategy '%s' --machine %s/here.yaml -o %s/%u.db --json", m, s, folder,
            folder, k) < 0)
      return false;
    took[0][k] =
        ask("time_ps", "sim %s --train --strategy '%s' --machine %s/here.yaml --profiles %s/%u.db --json", m,
            s, folder, folder, k) *
        1e-9;
    took[1][k] =
        ask("time_ps", "sim %s --train --strategy '%s' --machine %s/here.yaml --json", m, s, folder) * 1e-9;
    took[2][k] = ask("step_ms", "run %s --strategy '%s' --machine %s/here.yaml --steps %u --json", m, s,
                     folder, t->steps ? t->steps : STEPS);
    ask("", "version >/dev/null; rm %s/%u.db", folder, k);
  }
  for (u32 i = 0; i < 3; i++) ms[i] = bench_fastest(took[i], ROUNDS);
  return ms[0] > 0 && ms[1] > 0 && ms[2] > 0;
}

int main(void) {
  double of[3][PLANS], error[2] = {0};
  u32 n = 0;
  if (!mkdtemp(folder)) return 1;
  if (ask("", "machines probe -o %s/here.yaml && echo '\"\": 1'", folder) < 0) {
    puts("predict: skipped, there is no MPI");
    return 0;
  }
  printf("%-70s %-20s %9s %9s %7s %9s %7s\n", "model", "strategy", "run", "measured", "error", "roofline",
         "error");
  for (u32 k = 0; k < PLANS; k++) {
    double ms[3];
    if (!try_plan(&plans[k], ms)) {
      printf("%-70s %-20s failed\n", plans[k].model, plans[k].strategy);
      continue;
    }
    for (u32 i = 0; i < 3; i++) of[i][n] = ms[i];
    for (u32 i = 0; i < 2; i++) error[i] += fabs(ms[i] / ms[2] - 1) * 100;
    n++;
    printf("%-70s %-20s %6.2f ms %6.2f ms %+6.1f%% %6.2f ms %+6.1f%%\n", plans[k].model, plans[k].strategy,
           ms[2], ms[0], (ms[0] / ms[2] - 1) * 100, ms[1], (ms[1] / ms[2] - 1) * 100);
    fflush(stdout);
  }
  if (n < 3) return 1;
  const char *anchor = "DistSim: 3.5 % mean";
  bench_add(
      (bench_row){"predicted step, measured events: mean error", "%", error[0] / n, 3.5, anchor, false});
  bench_add((bench_row){"predicted step, measured events: Spearman", "", spearman(of[0], of[2], n), 0.97, "",
                        true});
  bench_add((bench_row){"predicted step, probed machine alone: mean error", "%", error[1] / n, 0, "", false});
  bench_add((bench_row){"predicted step, probed machine alone: Spearman", "", spearman(of[1], of[2], n), 0,
                        "", true});
  return bench_end();
}
