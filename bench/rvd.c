// rvd.c - layouts and ways between them.
#include "bench.h"
#include "layout/layout.h"

enum { RUNS = 50, CALLS = 20000 };

// The graph of a 3-D tensor on 32 devices and all its shortest paths: milliseconds, the fastest run.
static double graph_ms(void) {
  static const i64 dims[] = {256, 256, 256};
  double ms[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    arena *a = arena_new();
    double start = bench_ms();
    rvd_graph g = rvd_all_paths(a, 32, 3, dims, step_cost_elements, NULL);
    ms[i] = bench_ms() - start;
    if (g.n != 126) abort();
    arena_free(a);
  }
  return bench_fastest(ms, RUNS);
}

typedef struct {
  ctx *c;
  space *s;
  group g;
  u8 dp, tp, sp;
} bed;

static bed bed_new(void) {
  bed b = {.c = ctx_new()};
  b.s = space_new(b.c, ctx_arena(b.c));
  u8 pp = axis_add(b.s, sym_of(b.c, "pp"), 4, false);
  b.dp = axis_add(b.s, sym_of(b.c, "dp"), 8, false);
  b.sp = axis_add(b.s, sym_of(b.c, "sp"), 2, false);
  b.tp = axis_add(b.s, sym_of(b.c, "tp"), 4, false);
  mesh m = mesh_add(b.s, sym_of(b.c, "m"), (u8[]){pp, b.dp, b.sp, b.tp}, 4, 0, NULL);
  b.g = group_fix(b.s, group_all(b.s, m), pp, 1);
  return b;
}

static const i64 shape[3] = {64, 2048, 4096};

static layout read_layout(bed *b, const char *text) {
  u32 nd;
  i64 dims[DIMS_MAX];
  layout l;
  const char *error;
  if (!layout_parse(b->s, &text, &nd, dims, &l, &error)) abort();
  return l;
}

static double path_us(bed *b, const char *from_text, const char *to_text) {
  layout from = read_layout(b, from_text), to = read_layout(b, to_text);
  layout_step step[16];
  double cost, us[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    u64 start = clock_ns();
    for (u32 k = 0; k < CALLS / RUNS; k++)
      if (layout_path(b->s, b->g, 3, shape, from, to, step_cost_elements, NULL, step, 16, &cost) < 0) abort();
    us[i] = (double)(clock_ns() - start) / 1e3 / (CALLS / RUNS);
  }
  return bench_fastest(us, RUNS);
}

// One more split, of a layout that exists: nanoseconds.
static double intern_ns(bed *b) {
  layout l = read_layout(b, "[64{dp},2048,4096]+tp");
  u64 start = clock_ns();
  u32 sum = 0;
  for (u32 i = 0; i < CALLS * RUNS; i++) sum += layout_with_split(b->s, l, b->sp, 1, 1024).i;
  if (!sum) abort();
  return (double)(clock_ns() - start) / (CALLS * RUNS);
}

static double local_dims_ns(bed *b) {
  layout l = read_layout(b, "[64{dp},2048{sp},4096{tp}]");
  i64 out[3], sum = 0;
  u64 start = clock_ns();
  for (u32 i = 0; i < CALLS * RUNS; i++) {
    layout_local_dims(b->s, l, 3, shape, NULL, out);
    sum += out[i % 3];
  }
  if (!sum) abort();
  return (double)(clock_ns() - start) / (CALLS * RUNS);
}

static double group_ns(bed *b) {
  const group_info *g = group_get(b->s, b->g);
  mesh m = g->m;
  u8 pp = g->axis[0].axis;
  u64 start = clock_ns();
  u32 sum = 0;
  for (u32 i = 0; i < CALLS * RUNS; i++)
    sum += group_of(b->s, m, (group_axis[]){{.axis = pp, .at = (int)(i % 4)}}, 1).i;
  if (!sum) abort();
  return (double)(clock_ns() - start) / (CALLS * RUNS);
}

int main(void) {
  static const char *const way[][3] = {
      {"partial to replicated", "[64{dp},2048,4096]+tp", "[64{dp},2048,4096]"},
      {"partial to split", "[64{dp},2048,4096]+tp", "[64{dp},2048{tp},4096]"},
      {"split to replicated, all axes busy", "[64{dp},2048{sp},4096{tp}]", "[64{dp},2048{sp},4096]"},
      {"split to split", "[64{dp},2048{tp},4096]", "[64{dp},2048,4096{tp}]"},
      {"gradient: partial over two axes", "[64,2048,4096{tp}]+dp,+sp", "[64,2048,4096{tp}]"},
      {"two axes change", "[64{dp},2048{sp},4096]+tp", "[64{dp},2048{tp},4096{sp}]"},
      {"three axes change", "[64{dp},2048{sp},4096]+tp", "[64,2048{dp,tp},4096{sp}]"}};
  bed b = bed_new();
  bench_add((bench_row){"R/V/D graph of a 3-D tensor on 32 devices and all its shortest paths", "ms",
                        graph_ms(), 10, "nnScaler 1.7 s", false});
  for (u32 i = 0; i < COUNT_OF(way); i++) {
    const char *name = arena_printf(ctx_arena(b.c), "layout_path, %s", way[i][0]);
    bench_add((bench_row){name, "us", path_us(&b, way[i][1], way[i][2]), 0, "", false});
  }
  bench_add((bench_row){"layout_with_split, known", "ns", intern_ns(&b), 0, "", false});
  bench_add((bench_row){"layout_local_dims", "ns", local_dims_ns(&b), 0, "", false});
  bench_add((bench_row){"group_of, known", "ns", group_ns(&b), 0, "", false});
  int status = bench_end();
  ctx_free(b.c);
  return status;
}
