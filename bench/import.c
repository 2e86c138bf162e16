// import.c - from files and names to programs: reading, inference and outlining.
#include "bench.h"
#include "front/front.h"
#include "pass/pass.h"

enum { RUNS = 15 };

static bool import_ms(const char *path, const front_opts *o, bool outline, double *fastest,
                      u32 *instructions) {
  double ms[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    ctx *c = ctx_new();
    double start = bench_ms();
    prog *p = front_load(c, path, o);
    if (p && outline) pass_outline(p);
    ms[i] = bench_ms() - start;
    if (p) *instructions = func_get(p, p->main)->body.n;
    prog_free(p);
    ctx_free(c);
    if (!p) return false;
  }
  *fastest = bench_fastest(ms, RUNS);
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
    bench_add(
        (bench_row){"ONNX Llama-2-7B, 9,878 nodes: import, inference, outlining", "ms", ms, 50, "", false});
  else
    printf("skipped: %s is not there\n", path);
  if (import_ms("gpt3-175b", NULL, false, &ms, &n))
    bench_add((bench_row){"built-in gpt3-175b", "ms", ms, 0, "", false});
  return bench_end();
}
