// record.c - what recording costs a rank: the same steps with and without, in turn. The rank is alone: what it sends is
// dropped, what it receives is zeros, so that nothing but its own work counts.
#include "bench.h"
#include "heddle.h"

static bool drop(void *arg, uint32_t to, const void *data, int64_t bytes) {
  (void)arg, (void)to, (void)data, (void)bytes;
  return true;
}
static bool zeros(void *arg, uint32_t from, void *data, int64_t bytes) {
  (void)arg, (void)from;
  memset(data, 0, (size_t)bytes);
  return true;
}

static int by_size(const void *x, const void *y) {
  const double *a = x, *b = y;
  return *a < *b ? -1 : *a > *b;
}

// One step of each: took gets its time added, least is the shortest of the one that does not record.
static void step_pair(heddle_run **r, u32 first, double *took, double *least) {
  for (u32 i = 0; i < 2; i++) {
    const u32 of = (i + first) % 2;
    const double since = bench_ms();
    if (!heddle_run_step(r[of])) exit(1);
    const double ms = bench_ms() - since;
    took[of] += ms;
    if (!of) *least = fmin(*least, ms);
  }
}

enum { WARM = 3, RUNS = 8, TURNS = 5, TURN_MS = 300 };

// A turn is as many pairs of steps as take TURN_MS, so that what recording does now and then, such as to take memory,
// counts in every turn; who is first alternates. ratio: of every turn.
static void run_turns(heddle_run **r, double *ratio, double *least) {
  for (u32 k = 0; k < WARM; k++) step_pair(r, k % 2, (double[2]){0}, least);
  const u32 pairs = (u32)(TURN_MS / 2 / *least) + 1;
  for (u32 k = 0; k < TURNS; k++) {
    double took[2] = {0};
    for (u32 j = 0; j < pairs; j++) step_pair(r, (j + k) % 2, took, least);
    ratio[k] = took[1] / took[0];
  }
}

// Runs are made anew, the one that records now first and now second: where their memory lies makes a difference, too. The
// median of all turns: neighbours on the machine slow both alike.
static void measure(const char *name, const char *model, i64 batch, i64 seq, const char *strategy) {
  enum { ALL = RUNS * TURNS };
  heddle_session *s = heddle_session_new();
  const heddle_load_options lo = {.batch = batch, .seq = seq, .loss = true};
  const heddle_plan_options po = {.train = true, .optimizer = {.name = "adam"}};
  heddle_program *d = heddle_plan_apply(heddle_plan_make(heddle_program_load(s, model, &lo), strategy, &po));
  const heddle_link link = {.rank = 0, .send = drop, .receive = zeros};
  double ratio[ALL], least = INFINITY;
  for (u32 k = 0; k < RUNS; k++) {
    heddle_run *r[2];
    for (u32 i = 0; i < 2; i++) r[(i + k) % 2] = heddle_run_new(d, &link, heddle_tensors_random(d, 7));
    if (!r[0] || !r[1] || !heddle_run_record(r[1], 0)) {
      fputs(heddle_session_messages(s), stderr);
      exit(1);
    }
    run_turns(r, &ratio[k * TURNS], &least);
    heddle_run_free(r[0]), heddle_run_free(r[1]);
  }
  qsort(ratio, ALL, sizeof *ratio, by_size);
  printf("a step takes %.2f ms; half of the turns say %+.2f to %+.2f %%\n", least, (ratio[ALL / 4] - 1) * 100,
         (ratio[ALL - 1 - ALL / 4] - 1) * 100);
  bench_add((bench_row){.name = name,
                        .unit = "%",
                        .value = ((ratio[ALL / 2 - 1] + ratio[ALL / 2]) / 2 - 1) * 100,
                        .required = 2,
                        .anchor = ""});
  heddle_session_free(s);
}

int main(void) {
  measure("recording a rank of GPT-2 (4 layers, hidden 128, batch 8 x 64), dp=2: more time",
          "gpt2:layers=4,hidden=128,heads=4,vocab=1024", 8, 64, "dp=2");
  measure("recording a rank of GPT-2 (4 layers, hidden 64, batch 8 x 32), dp=2 pp=2 mb=4: more time",
          "gpt2:layers=4,hidden=64,heads=4,vocab=512", 8, 32, "dp=2 pp=2 mb=4");
  return bench_end();
}
