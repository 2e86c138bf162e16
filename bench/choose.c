// choose.c - of a search's best plans, run here, is the one that it chose the fastest? With events measured one by one; and how
// long measuring them takes beside running as many plans. Two models, or six with FULL=1 in the environment.
//
// Wall clock: ranks wait for each other. What else runs on the machine counts.
#include "command.h"
#include <unistd.h>

static const char *const models[] = {GPT, MLP, BERT, T5, RESNET, MOE};
enum { FEW = 2, PLANS = 15, MEASURED = 10, STEPS = 23 };

static char folder[] = "/tmp/heddle-choose-XXXXXX";

static double wall_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The strategies of the best plans by the machine's figures.
static u32 best_plans(arena *a, const char *model, const char *v[PLANS]) {
  const char *text = answer("plan %s --train --machine %s/here.yaml --top %d --json", model, folder, PLANS);
  u32 n = 0;
  while (n < PLANS && (text = behind(text, "strategy"))) {
    const size_t len = strcspn(text + 1, "\"");
    v[n++] = arena_printf(a, "%.*s", (int)len, text + 1);
  }
  return n;
}

// Seconds of measuring the events of these plans, in one job, and of running each.
static bool weigh(const char *model, u32 n, const char *const *plan, double s[2]) {
  const double begin = wall_s();
  if (!answer("profile %s --train --top %d --machine %s/here.yaml -o %s/times.db --json", model, PLANS,
              folder, folder))
    return false;
  const double profiled = wall_s();
  for (u32 k = 0; k < n; k++)
    if (!answer("run %s --strategy '%s' --machine %s/here.yaml --steps %d --json", model, plan[k], folder,
                STEPS))
      return false;
  s[0] = profiled - begin, s[1] = wall_s() - profiled;
  return true;
}

// By how much the plan that the search chose is behind the fastest of those that were run, in %; below 0: it failed.
static double behind_fastest(const char *model) {
  const char *text =
      behind(answer("plan %s --train --machine %s/here.yaml --profiles %s/times.db --measure %d --json",
                    model, folder, folder, MEASURED),
             "measured_plans");
  double least = INFINITY, chosen = -1;
  for (double ps; (ps = number(text, "measured_ps")) > 0;) {
    text = behind(text, "measured_ps");
    least = fmin(least, ps);
    if (number(text, "predicted_rank") == 1) chosen = ps;
  }
  return chosen < 0 ? -1 : (chosen / least - 1) * 100;
}

int main(void) {
  arena *a = arena_new();
  const u32 n = getenv("FULL") ? COUNT_OF(models) : FEW;
  double worst = 0, of[2] = {0};
  if (!mkdtemp(folder)) return 1;
  if (!answer("machines probe -o %s/here.yaml", folder)) {
    puts("choose: skipped, there is no MPI");
    return 0;
  }
  for (u32 k = 0; k < n; k++) {
    const char *plan[PLANS];
    double s[2];
    const u32 plans = best_plans(a, models[k], plan);
    if (!plans || !weigh(models[k], plans, plan, s)) return 1;
    const double off = behind_fastest(models[k]);
    if (off < 0) return 1;
    printf("%-78s %2u plans: profiled %.1f s, run %.1f s; chosen %.1f %% behind the fastest of %d\n",
           models[k], plans, s[0], s[1], off, MEASURED);
    fflush(stdout);
    worst = fmax(worst, off), of[0] += s[0], of[1] += s[1];
    unlink(arena_printf(a, "%s/times.db", folder));
  }
  unlink(arena_printf(a, "%s/here.yaml", folder)), rmdir(folder);
  bench_add((bench_row){"the plan that a search chose: behind the fastest that was run, at worst", "%", worst,
                        3, "", false});
  bench_add((bench_row){"profiling a search's 15 best plans: of the time that running them takes", "x",
                        of[0] / of[1], 0.13, "DistSim .13", false});
  arena_free(a);
  return bench_end();
}
