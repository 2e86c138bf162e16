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

// The median of what each turn says: neighbours have the machine alike.
static void measure(const char *name, const char *model, i64 batch, i64 seq, const char *strategy) {
  enum { WARM = 3, TURNS = 60 };
  heddle_session *s = heddle_session_new();
  const heddle_load_options lo = {.batch = batch, .seq = seq, .loss = true};
  const heddle_plan_options po = {.train = true, .optimizer = {.name = "adam"}};
  heddle_program *d = heddle_plan_apply(heddle_plan_make(heddle_program_load(s, model, &lo), strategy, &po));
  const heddle_link link = {.rank = 0, .send = drop, .receive = zeros};
  heddle_run *r[2] = {heddle_run_new(d, &link, heddle_tensors_random(d, 7)),
                      heddle_run_new(d, &link, heddle_tensors_random(d, 7))};
  double took[2], ratio[TURNS], least = INFINITY;
  if (!r[0] || !r[1] || !heddle_run_record(r[1], 0)) {
    fputs(heddle_session_messages(s), stderr);
    exit(1);
  }
  for (u32 k = 0; k < WARM + TURNS; k++)
    for (u32 i = 0; i < 2; i++) {
      const u32 of = (i + k) % 2;
      const double since = bench_ms();
      if (!heddle_run_step(r[of])) exit(1);
      took[of] = bench_ms() - since;
      if (k >= WARM && i) ratio[k - WARM] = took[1] / took[0], least = fmin(least, took[0]);
    }
  qsort(ratio, TURNS, sizeof *ratio, by_size);
  printf("a step takes %.2f ms\n", least);
  bench_add((bench_row){
      .name = name, .unit = "%", .value = (ratio[TURNS / 2] - 1) * 100, .required = 2, .anchor = ""});
  heddle_session_free(s);
}

int main(void) {
  measure("recording a rank of GPT-2 (4 layers, hidden 128, batch 8 x 64), dp=2: more time",
          "gpt2:layers=4,hidden=128,heads=4,vocab=1024", 8, 64, "dp=2");
  measure("recording a rank of GPT-2 (4 layers, hidden 64, batch 8 x 32), dp=2 pp=2 mb=4: more time",
          "gpt2:layers=4,hidden=64,heads=4,vocab=512", 8, 32, "dp=2 pp=2 mb=4");
  return bench_end();
}
