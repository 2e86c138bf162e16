// import.c - from files and names to programs: one row per figure, "name  value unit  required".
#include "front/front.h"
#include "pass/pass.h"
#include <stdlib.h>
#include <time.h>

enum { RUNS = 15 };

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

// Of this thread, so that a busy machine does not count: reading, inference, outlining.
static double thread_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool import_ms(const char *path, const front_opts *o, bool outline, double *median,
                      u32 *instructions) {
  double ms[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    ctx *c = ctx_new();
    double start = thread_ms();
    prog *p = front_load(c, path, o);
    if (p && outline) pass_outline(p);
    ms[i] = thread_ms() - start;
    if (p) *instructions = func_get(p, p->main)->body.n;
    prog_free(p);
    ctx_free(c);
    if (!p) return false;
  }
  qsort(ms, RUNS, sizeof *ms, by_value);
  *median = ms[RUNS / 2];
  return true;
}

int main(void) {
  const char *data = getenv("HEDDLE_DATA");
  char path[1000];
  const front_dim dims[] = {{"batch_size", 2}};
  const front_opts o = {.dims = dims, .ndims = 1};
  double ms;
  u32 n = 0;
  snprintf(path, sizeof path, "%s/onnx/srijanie_ortgraphs__torchtune_llama2_forward.onnx",
           data ? data : "../shared/data");
  if (import_ms(path, &o, true, &ms, &n))
    printf("%-55s %10.3f ms  required 50\n", "ONNX Llama-2-7B, 9,878 nodes: import, infer, outline", ms);
  else
    printf("skipped: %s is not there\n", path);
  if (import_ms("gpt3-175b", NULL, false, &ms, &n)) printf("%-55s %10.3f ms\n", "built-in gpt3-175b", ms);
}
