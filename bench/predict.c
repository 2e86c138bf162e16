// predict.c - the step that `heddle sim` predicts against the step that `heddle run` takes, here: with events that were
// measured one by one, and by the machine file of `heddle machines probe` alone. Small plans, one and two ranks.
//
// Wall clock, unlike other measurements: ranks wait for each other. What else runs on the machine counts.
#include "command.h"
#include <unistd.h>

typedef struct {
  const char *model, *strategy;
  u32 steps; // of a run; 0: STEPS
} tried;
// Steps of the second list take a few milliseconds.
static const tried usual[] = {
    {MLP, "dp=1", 0},          {MLP, "dp=2", 0},
    {MLP, "tp=2", 0},          {MLP, "pp=2 mb=4", 0},
    {GPT, "dp=1", 0},          {GPT, "dp=1 recompute=full", 0},
    {GPT, "dp=2", 0},          {GPT, "dp=2 zero=2", 0},
    {GPT, "tp=2", 0},          {GPT, "pp=2 mb=4", 0},
    {BERT, "dp=1", 0},         {BERT, "dp=2 zero=2", 0},
    {BERT, "tp=2 sp", 0},      {BERT, "pp=2 mb=4 schedule=gpipe", 0},
    {T5, "dp=1", 0},           {T5, "dp=2 recompute=full", 0},
    {T5, "tp=2", 0},           {T5, "pp=2 mb=2", 0},
    {RESNET, "dp=1", 10},      {RESNET, "dp=2", 10},
    {RESNET, "pp=2 mb=2", 10}, {MOE, "dp=1", 0},
    {MOE, "dp=2", 0},          {MOE, "tp=2", 0},
};
static const tried small[] = {
    {"mlp-xs:layers=4,hidden=256 --batch 64", "dp=1", 0},
    {"mlp-xs:layers=4,hidden=256 --batch 64", "dp=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=1", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "dp=2 zero=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "tp=2", 0},
    {"gpt2:layers=2,hidden=64,heads=4,vocab=256 --batch 8 --seq 32", "pp=2 mb=4", 0},
};
enum { MOST = COUNT_OF(usual), ROUNDS = 3, STEPS = 20 };

static char folder[] = "/tmp/heddle-predict-XXXXXX";
static arena *bench_arena;

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

typedef struct {
  double ms[3];               // predicted by measured events, by the machine alone; run. 0: not known
  double activity[2][ROUNDS]; // of each round
} found;

// Of the least a file or folder is kept.
static void keep_least(double *x, double y, const char *from, u32 plan, const char *to) {
  if (*x > 0 && y >= *x) return;
  *x = y;
  if (system(arena_printf(bench_arena, "rm -rf %s/%u%s && mv %s/%s %s/%u%s", folder, plan, to, folder, from,
                          folder, plan, to)))
    abort();
}

static const char *on_of(const tried *t) {
  return arena_printf(bench_arena, "%s --strategy '%s' --machine %s/here.yaml", t->model, t->strategy,
                      folder);
}
// Events are measured into a database of their own, and the plan is run and recorded.
static bool try_plan(const tried *t, u32 plan, u32 round, found *x) {
  const char *const on = on_of(t);
  const bool ok = answer("profile %s -o %s/events.db --json", on, folder);
  const char *text = ok ? answer("compare %s --profiles %s/events.db --steps %u --trace %s/trace --json", on,
                                 folder, t->steps ? t->steps : STEPS, folder)
                        : NULL;
  if (text) {
    const double predicted = known(text, "predicted_ps"), measured = known(text, "measured_ps");
    x->activity[0][round] = 100 * known(text, "activity");
    x->activity[1][round] = 100 * known(text, "activity_median");
    keep_least(&x->ms[0], predicted * 1e-9, "events.db", plan, ".db");
    keep_least(&x->ms[2], measured * 1e-9, "trace", plan, "");
    if (!x->ms[1]) x->ms[1] = known(answer("sim %s --train --json", on), "time_ps") * 1e-9;
  }
  if (system(arena_printf(bench_arena, "rm -rf %s/events.db %s/trace", folder, folder))) abort();
  return text;
}

// How far starts and ends are off between the prediction and the recording that the step's error is of.
static void activity_of(const tried *t, u32 plan, double own[2]) {
  const char *text = answer("trace compare %s/%u %s --train --profiles %s/%u.db --json", folder, plan,
                            on_of(t), folder, plan);
  own[0] = 100 * known(text, "activity"), own[1] = 100 * known(text, "activity_median");
  if (system(arena_printf(bench_arena, "rm -rf %s/%u %s/%u.db", folder, plan, folder, plan))) abort();
}

// Means over plans: errors of both predictions and of instructions' starts and ends, in %. How many plans there are in of[column].
// Round after round over all plans, of every time the least, as of all that is measured here: some other guest of the machine is in
// the way for minutes. How far starts and ends are off is that of the same prediction and the same recording; beside it the middle one of the
// rounds, each with its own. activity: mean and median of these, then of those.
static u32 try_plans(const tried *plan, u32 plans, double of[3][MOST], double error[2], double activity[4]) {
  found x[MOST] = {0};
  u32 n = 0;
  bool failed[MOST] = {false};
  error[0] = error[1] = 0;
  for (u32 i = 0; i < 4; i++) activity[i] = 0;
  for (u32 r = 0; r < ROUNDS; r++)
    for (u32 k = 0; k < plans; k++) failed[k] |= !try_plan(&plan[k], k, r, &x[k]);
  for (u32 k = 0; k < plans; k++) {
    const double *ms = x[k].ms;
    double own[4];
    if (failed[k]) {
      printf("%-78s %-24s failed\n", plan[k].model, plan[k].strategy);
      continue;
    }
    for (u32 i = 0; i < 3; i++) of[i][n] = ms[i];
    activity_of(&plan[k], k, own);
    for (u32 i = 0; i < 2; i++) own[2 + i] = bench_median(x[k].activity[i], ROUNDS);
    for (u32 i = 0; i < 2; i++) error[i] += fabs(ms[i] / ms[2] - 1) * 100;
    for (u32 i = 0; i < 4; i++) activity[i] += own[i];
    n++;
    printf("%-78s %-24s %6.2f ms %6.2f ms %+6.1f%% %6.2f ms %+6.1f%% %7.1f%% %6.1f%% %7.1f%% %6.1f%%\n",
           plan[k].model, plan[k].strategy, ms[2], ms[0], (ms[0] / ms[2] - 1) * 100, ms[1],
           (ms[1] / ms[2] - 1) * 100, own[0], own[1], own[2], own[3]);
  }
  fflush(stdout);
  for (u32 i = 0; i < 2; i++) error[i] /= MAX(n, 1u);
  for (u32 i = 0; i < 4; i++) activity[i] /= MAX(n, 1u);
  return n;
}

int main(void) {
  double of[3][MOST], error[2], activity[4];
  bench_arena = arena_new();
  if (!mkdtemp(folder)) return 1;
  if (!answer("machines probe -o %s/here.yaml", folder)) {
    puts("predict: skipped, there is no MPI");
    return 0;
  }
  printf("%-78s %-24s %9s %9s %7s %9s %7s %8s %7s %8s %7s\n", "model", "strategy", "run", "measured", "error",
         "roofline", "error", "activity", "median", "rounds", "median");
  u32 n = try_plans(usual, COUNT_OF(usual), of, error, activity);
  if (n < COUNT_OF(usual)) return 1;
  const char *anchor = "DistSim: 3.5 % mean";
  bench_add((bench_row){"predicted step, measured events: mean error", "%", error[0], 3.5, anchor, false});
  bench_add((bench_row){"predicted step, measured events: Spearman", "", spearman(of[0], of[2], n), 0.97, "",
                        true});
  bench_add((bench_row){"predicted step, probed machine alone: mean error", "%", error[1], 0,
                        "DistSim: 26.1 %", false});
  bench_add((bench_row){"predicted step, probed machine alone: Spearman", "", spearman(of[1], of[2], n), 0,
                        "", true});
  bench_add((bench_row){"starts and ends of instructions, off by, of the step: mean", "%", activity[0], 4.2,
                        "DistSim: 4.2 % at worst", false});
  bench_add((bench_row){"the same, median of the worst stage: mean of plans", "%", activity[1], 1.7,
                        "DistSim: 1.7 % at worst", false});
  bench_add(
      (bench_row){"the same two, the middle one of three rounds: mean", "%", activity[2], 0, "", false});
  bench_add(
      (bench_row){"                                              median", "%", activity[3], 0, "", false});
  n = try_plans(small, COUNT_OF(small), of, error, activity);
  if (n < COUNT_OF(small)) return 1;
  if (system(arena_printf(bench_arena, "rm -rf %s", folder))) return 1;
  bench_add((bench_row){"the same, steps of a few ms: mean error", "%", error[0], 0, "", false});
  return bench_end();
}
