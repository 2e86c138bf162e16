// test_cost_measured.c - costs against what others have measured and computed, and of whole models.
#include "cost_bed.h"

// The comma-separated fields of one line, in place; quotes are not needed by these tables' first columns.
static u32 fields(char *line, char **f, u32 max) {
  u32 n = 0;
  line[strcspn(line, "\r\n")] = 0;
  while (n < max && line) {
    f[n++] = line;
    if ((line = strchr(line, ','))) *line++ = 0;
  }
  return n;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
static double median(double *v, u32 n) {
  qsort(v, n, sizeof *v, by_value);
  return n ? v[n / 2] : 1e9;
}

// DistIR's data-parallel MLP: per layer a product, relu, its gradient, two products backward and an
// all_reduce of the weight's gradient, then loss, its gradient and one update. Seconds.
static double distir_mlp(const char *machine_spec, u32 D, u32 layers, i64 h, i64 batch, dtype t) {
  bed b = bed_new(machine_spec, "distir", D, 1);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const layout none = {0}, rows = D > 1 ? split(&b, b.dp, 0, batch / D) : none;
  const layout columns = D > 1 ? split(&b, b.dp, 1, batch / D) : none;
  const layout sums = D > 1 ? layout_with_part(b.p->sp, none, b.dp, RED_SUM) : none;
  const type x = matrix(&b, t, batch, h, rows, g), xt = matrix(&b, t, h, batch, columns, g);
  const type w = matrix(&b, t, h, h, none, g), dw = matrix(&b, t, h, h, sums, g);
  const attr over = attr_x(A_over, &b.dp, 1);
  i64 mm, back, relu, mask, update, sum = 0;
  CHECK(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &x, 1, g, &mm) == 1);
  CHECK(cost_of(&b, OP_matmul, (attrset){0}, (type[]){xt, x}, 2, &dw, 1, g, &back) == 1);
  CHECK(cost_of(&b, OP_relu, (attrset){0}, &x, 1, &x, 1, g, &relu) == 1);
  CHECK(cost_of(&b, OP_relu_dx, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, &mask) == 1);
  CHECK(cost_of(&b, OP_sgd, (attrset){0}, (type[]){w, w}, 2, &w, 1, g, &update) == 1);
  if (D > 1) CHECK(cost_of(&b, OP_all_reduce, attrs_of(b.p, &over, 1), &dw, 1, &w, 1, g, &sum) == 1);
  bed_free(&b);
  return (double)(layers * (2 * mm + back + relu + mask + sum) + 2 * relu + update) * 1e-12;
}

// model, style or D, ...: rows of their code with its default parameters, and of its calibration to a DGX-2.
TEST(cost_distir_data_parallel) {
  static const struct {
    const char *file, *machine;
    u32 D, T, P, batch, figure; // columns
  } tables[] = {{"distir/golden_mlp_xs_fp32.csv", "16 v100", 1, 2, 3, 5, 8},
                {"distir/golden_mlp_small_fp16.csv", "16 v100", 1, 2, 3, 5, 8},
                {"distir/sim_mem_vs_thr.csv", "bench/reproduce/dgx-2-distir.yaml", 3, 4, 5, 2, 7}};
  u32 rows = 0;
  for (u32 r = 0; r < COUNT_OF(tables); r++) {
    FILE *in = fopen(test_data(tables[r].file), "r");
    char line[1024], *f[9];
    while (fgets(line, sizeof line, in)) {
      const bool whole = fields(line, f, 9) == 9, xs = !strcmp(f[0], "mlp-xs");
      if (!whole || (!xs && strcmp(f[0], "mlp-small")) || atoi(f[tables[r].T]) != 1 ||
          atoi(f[tables[r].P]) != 1)
        continue;
      const i64 batch = atoll(f[tables[r].batch]);
      const double got = distir_mlp(tables[r].machine, (u32)atoi(f[tables[r].D]), xs ? 8 : 16,
                                    xs ? 512 : 8192, batch, xs ? DT_F32 : DT_F16);
      const double want = atof(f[tables[r].figure]);
      CHECK_CLOSE(got, r == 2 ? (double)batch / want : want, 1e-8);
      rows++;
    }
    fclose(in);
  }
  CHECK_EQ_I64(rows, 10);
}

// The presets' efficiencies are medians of these very tables; this keeps tables, units and formulas together.
TEST(cost_near_measured_collectives) {
  static const struct {
    const char *name;
    opcode op;
  } ops[] = {{"all_reduce", OP_all_reduce},
             {"all_gather", OP_all_gather},
             {"reduce_scatter", OP_reduce_scatter},
             {"alltoall", OP_all_to_all}};
  static const char *const gpus[][2] = {{"A100-SXM-80GB", "dgx-a100-80"}, {"H100-SXM-80GB", "dgx-h100"}};
  const u32 ranks[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  for (u32 i = 0; i < COUNT_OF(gpus); i++) {
    FILE *in = fopen(test_data("calibration/collectives.csv"), "r");
    ctx *c = ctx_new();
    arena *a = arena_new();
    cost_model *k = cost_model_new(c, a, machine_load(c, a, gpus[i][1]), NULL);
    char line[1024], *f[11];
    double off[4096];
    u32 n = 0;
    while (fgets(line, sizeof line, in)) {
      if (fields(line, f, 11) < 11 || strcmp(f[1], gpus[i][0]) || strcmp(f[5], "NVLink") ||
          n == COUNT_OF(off))
        continue;
      for (u32 o = 0; o < COUNT_OF(ops); o++)
        if (!strcmp(ops[o].name, f[0])) {
          const double got =
                           (double)cost_comm(k, ops[o].op, atoll(f[8]), ranks, (u32)atoi(f[2]), DT_F16) / 1e6,
                       want = atof(f[10]);
          off[n++] = (got > want ? got - want : want - got) / want;
        }
    }
    CHECK(n > 200);
    const double m = median(off, n);
    CHECK_MSG(m < 0.3, "%s: median error %.3f of %u", gpus[i][0], m, n);
    fclose(in);
    arena_free(a);
    ctx_free(c);
  }
}

TEST(cost_near_measured_products) {
  static const char *const gpus[][2] = {
      {"A100-SXM-80GB", "dgx-a100-80"}, {"H100-SXM-80GB", "dgx-h100"}, {"A40", "a40-4x4"}};
  for (u32 i = 0; i < COUNT_OF(gpus); i++) {
    FILE *in = fopen(test_data("calibration/gemm.csv"), "r");
    bed b = bed_new(gpus[i][1], NULL, 1, 1);
    REQUIRE(b.k);
    const group g = group_all(b.p->sp, b.mesh);
    char line[1024], *f[9];
    double *off = NEWN(b.a, double, 50000);
    u32 n = 0;
    while (fgets(line, sizeof line, in)) {
      if (fields(line, f, 9) < 9 || strcmp(f[1], gpus[i][0]) || strncmp(f[0], "gemm", 4) ||
          (strcmp(f[2], "bf16") && strcmp(f[2], "fp16")))
        continue;
      if (n++ % 7 != 0) continue;
      const i64 M = atoll(f[3]), N = atoll(f[4]), K = atoll(f[5]);
      const type x = matrix(&b, DT_F16, M, K, (layout){0}, g), w = matrix(&b, DT_F16, K, N, (layout){0}, g),
                 y = matrix(&b, DT_F16, M, N, (layout){0}, g);
      i64 ps;
      REQUIRE(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &y, 1, g, &ps) == 1);
      const double got = (double)ps / 1e6, want = atof(f[8]);
      off[n / 7] = (got > want ? got - want : want - got) / want;
    }
    n /= 7;
    CHECK(n > 20);
    const double m = median(off, n);
    CHECK_MSG(m < 0.25, "%s: median error %.3f of %u", gpus[i][0], m, n);
    fclose(in);
    bed_free(&b);
  }
}

// The spreads that the presets state are those of these tables: as many measurements, 68.3 % of them within.
TEST(cost_spreads_hold) {
  static const char *const gpus[][2] = {{"A100-SXM-80GB", "dgx-a100-80"},
                                        {"H100-SXM-80GB", "dgx-h100"},
                                        {"H200-SXM-141GB", "1x1 h200"},
                                        {"B200-SXM", "1x1 b200"},
                                        {"A40", "a40-4x4"}};
  for (u32 i = 0; i < COUNT_OF(gpus); i++) {
    FILE *in = fopen(test_data("calibration/gemm.csv"), "r");
    bed b = bed_new(gpus[i][1], NULL, 1, 1);
    REQUIRE(b.k);
    const group g = group_all(b.p->sp, b.mesh);
    char line[1024], *f[9];
    u32 all[64] = {0}, within[64] = {0}, stated = 0;
    while (fgets(line, sizeof line, in)) {
      if (fields(line, f, 9) < 9 || strcmp(f[1], gpus[i][0]) ||
          (strcmp(f[0], "gemm") && strncmp(f[0], "gemm:", 5)) ||
          (strcmp(f[2], "bf16") && strcmp(f[2], "fp16")))
        continue;
      const i64 M = atoll(f[3]), N = atoll(f[4]), K = atoll(f[5]);
      const type t[3] = {matrix(&b, DT_F16, M, K, (layout){0}, g), matrix(&b, DT_F16, K, N, (layout){0}, g),
                         matrix(&b, DT_F16, M, N, (layout){0}, g)};
      const func fn = func_new(b.p, sym_fmt(b.c, "f%u", b.p->funcs.n), (loc){0});
      const u32 o[2] = {func_param(b.p, fn, t[0], (sym){0}, ROLE_INPUT),
                        func_param(b.p, fn, t[1], (sym){0}, ROLE_INPUT)};
      builder bl = builder_at(b.p, fn);
      bl.g = g;
      const u32 at = emit(&bl, OP_matmul, (attrset){0}, o, 2, &t[2], 1);
      const func_info *fi = func_get(b.p, fn);
      cost_info cost;
      cost_event e;
      REQUIRE(cost_explain(b.k, b.p, fi, &fi->body.v[at - 1], g, 0, &cost, &e) && cost.row < COUNT_OF(all));
      all[cost.row]++;
      within[cost.row] += fabs(atof(f[8]) * 1e6 / (double)cost.ps - 1) <= cost.spread;
    }
    for (u32 r = 1; r < COUNT_OF(all); r++) {
      const cost_row *row = all[r] ? cost_model_row(b.k, r) : NULL;
      if (!row || row->spread < 0) continue;
      const double part = (double)within[r] / all[r];
      CHECK_MSG(row->count == all[r], "%s: %u measurements, not %u", row->figure, all[r], row->count);
      CHECK_MSG(fabs(part - 0.683) < 0.01 + 1.0 / all[r], "%s: %.3f within %g", row->figure, part,
                row->spread);
      stated++;
    }
    CHECK_MSG(stated >= 5, "%s: %u spreads", gpus[i][1], stated);
    fclose(in);
    bed_free(&b);
  }
}

// ---- whole models ------------------------------------------------------------------------------------

// Every instruction of every built-in model's training step has a cost in every cost model, the same when
// explained.
TEST(cost_every_model) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, "dgx-a100-80");
  for (u32 r = 0; front_family_get(r); r++) {
    const optim_opts adam = optim_default(OPTIM_ADAM);
    prog *p = front_family(c, front_family_get(r)->name, NULL);
    REQUIRE(p && pass_train(p, &adam, false));
    const u8 axis = axis_add(p->sp, sym_of(c, "one"), 1, false);
    const group g = group_all(p->sp, mesh_add(p->sp, sym_of(c, "m"), &axis, 1, 0, NULL));
    for (u32 x = 0; cost_model_name(x); x++) {
      cost_model *k = cost_model_new(c, a, m, &(cost_opts){.model = cost_model_name(x)});
      for (u32 f = 1; f < p->funcs.n; f++)
        for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) {
          const instr *in = &p->funcs.v[f]->body.v[i];
          i64 ps;
          cost_info cost;
          cost_event e;
          if (in->op == OP_call) continue;
          CHECK(cost_instr(k, p, p->funcs.v[f], in, g, &ps) == 1 && ps >= 0);
          CHECK(cost_explain(k, p, p->funcs.v[f], in, g, 0, &cost, &e) && cost.ps == ps);
        }
    }
    // On one device a layer of the largest one is 3,000 times what was measured.
    const bool largest = !strcmp(front_family_get(r)->name, "m6-moe-10t");
    for (u32 k = 0; k < diag_count(c); k++)
      CHECK_MSG(largest && diag_get(c, k).id == W_EXTRAPOLATED, "%s: %s", front_family_get(r)->name,
                diag_render(c, a));
    diag_clear(c);
    prog_free(p);
  }
  arena_free(a);
  ctx_free(c);
}
