// test_host_cost.c - what a host takes for an update that it runs: nodes of different memory, ranks that are on several meshes,
// memory against rate. Times by formula.
#include "cost_bed.h"

enum { ROWS = 64, COLUMNS = 64, MOVED = 3 * 4 * ROWS * COLUMNS, MADE = 2 * ROWS * COLUMNS };

// sgd of an f32 weight on the hosts of a group: it reads weight and gradient and writes the weight, with two operations for
// each element. How many times there are; figure: of the first rank, what decides it.
static u32 sgd_times(bed *b, i64 *ps, const char **figure) {
  const group g = group_all(b->p->sp, b->mesh);
  func f = func_new(b->p, sym_of(b->c, "f"), (loc){0});
  const type w = matrix(b, DT_F32, ROWS, COLUMNS, (layout){0}, g);
  const u32 opd[] = {func_param(b->p, f, w, (sym){0}, ROLE_WEIGHT),
                     func_param(b->p, f, w, (sym){0}, ROLE_INPUT)};
  builder bl = builder_at(b->p, f);
  bl.g = g, bl.flags = INSTR_HOST;
  const u32 i = emit(&bl, OP_sgd, (attrset){0}, opd, 2, &w, 1);
  const func_info *fi = func_get(b->p, f);
  const u32 n = cost_instr(b->k, b->p, fi, &fi->body.v[i - 1], g, ps);
  CHECK_MSG(n > 0, "%s", diag_render(b->c, b->a));
  cost_info cost;
  cost_event e;
  if (figure && n && cost_explain(b->k, b->p, fi, &fi->body.v[i - 1], g, 0, &cost, &e))
    *figure = cost_model_row(b->k, cost.row)->figure;
  return n;
}

// Picoseconds of so many ranks that share a host's memory.
static i64 moved_ps(u32 ranks, double bytes_per_s) { return llround(MOVED * ranks / bytes_per_s * 1e12); }

// Each node has its own memory, and nobody else's ranks.
TEST(host_cost_is_of_the_node_that_a_rank_is_on) {
  static const char *const machines[] = {
      "1x1 v100 ib=100Gb/s hostmem=64GiB hostbw=100GB/s + 1x1 v100 ib=100Gb/s hostmem=64GiB hostbw=10GB/s",
      "1x1 v100 ib=100Gb/s hostmem=64GiB hostbw=10GB/s + 1x1 v100 ib=100Gb/s hostmem=64GiB hostbw=100GB/s"};
  for (u32 k = 0; k < 2; k++) {
    bed b = bed_new(machines[k], NULL, 2, 1);
    REQUIRE(b.k != NULL);
    i64 ps[2] = {0};
    CHECK_EQ_I64(sgd_times(&b, ps, NULL), 2);
    CHECK_EQ_I64(ps[k], moved_ps(1, 100e9));
    CHECK_EQ_I64(ps[1 - k], moved_ps(1, 10e9));
    bed_free(&b);
  }
  // Three ranks on the first node, one on the other: they take three times as long there.
  bed b = bed_new(
      "1x3 v100 ib=100Gb/s hostmem=64GiB hostbw=10GB/s + 1x1 v100 ib=100Gb/s hostmem=64GiB hostbw=10GB/s",
      NULL, 4, 1);
  REQUIRE(b.k != NULL);
  i64 ps[4] = {0};
  CHECK_EQ_I64(sgd_times(&b, ps, NULL), 4);
  for (u32 r = 0; r < 4; r++) CHECK_EQ_I64(ps[r], moved_ps(r < 3 ? 3 : 1, 10e9));
  bed_free(&b);
}

// A rank that is on two meshes of a program is one rank; one that is on no mesh is not there.
TEST(host_cost_counts_a_rank_once) {
  for (u32 meshes = 1; meshes <= 4; meshes++) {
    bed b = bed_new("1x8 v100 hostmem=64GiB hostbw=10GB/s", NULL, 2, 1);
    REQUIRE(b.k != NULL);
    if (meshes > 1) mesh_add(b.p->sp, sym_of(b.c, "again"), (u8[]){b.dp, b.tp}, 2, 0, NULL);
    if (meshes > 2) mesh_add(b.p->sp, sym_of(b.c, "beside"), (u8[]){b.dp, b.tp}, 2, 1, NULL); // ranks 1, 2
    if (meshes > 3) mesh_add(b.p->sp, sym_of(b.c, "listed"), (u8[]){b.dp, b.tp}, 2, 0, (u32[]){5, 1});
    i64 ps[2] = {0};
    CHECK_EQ_I64(sgd_times(&b, ps, NULL), 1);
    CHECK_EQ_I64(ps[0], moved_ps(MAX(meshes, 2), 10e9));
    bed_free(&b);
  }
}

// It takes the longer of moving and computing, and says which.
TEST(host_cost_is_of_memory_or_of_the_processors) {
  static const struct {
    const char *rate;
    double flops_per_s;
    bool memory;
  } rows[] = {{"", 0, true}, {", rate: 100 GFLOP/s", 100e9, true}, {", rate: 1 GFLOP/s", 1e9, false}};
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    bed b = bed_new("1x1 v100", NULL, 1, 1);
    const char *text =
        arena_printf(b.a,
                     "name: m\ndevices:\n  d: {rate: {f32: 1 TFLOP/s}, vector: 1 TFLOP/s, memory: 64 GiB, "
                     "bandwidth: 1 GB/s}\nnodes: {devices: d, host: {bandwidth: 16 GB/s, memory: 8 GiB, "
                     "memory-bandwidth: 20 GB/s, memory-efficiency: 0.5%s}}\n",
                     rows[k].rate);
    b.m = machine_parse(b.c, b.a, sym_of(b.c, "m.yaml"), text, strlen(text));
    CHECK_MSG(b.m != NULL, "%s", diag_render(b.c, b.a));
    REQUIRE(b.m != NULL);
    b.k = cost_model_new(b.c, b.a, b.m, NULL);
    i64 ps[1] = {0};
    const char *figure = "";
    CHECK_EQ_I64(sgd_times(&b, ps, &figure), 1);
    CHECK_EQ_I64(ps[0], rows[k].memory ? moved_ps(1, 10e9) : llround(MADE / rows[k].flops_per_s * 1e12));
    CHECK_STR(figure, rows[k].memory ? "host of d: memory bandwidth, sgd" : "host of d: rate, sgd");
    bed_free(&b);
  }
}
