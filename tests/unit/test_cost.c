// test_cost.c - costs of instructions and communication against figures worked out by hand, caches against no
// caches.
#include "cost_bed.h"
#include "plan/plan.h"

TEST(cost_matmul_roofline) {
  bed b = bed_new("dgx-a100-80", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  // 4096 x 4096 x 4096 over tp in n and dp in m: 2 * 2048 * 4096 * 1024 flops at an efficiency between 0.65
  // and 0.81.
  const type x = matrix(&b, DT_F16, 4096, 4096, split(&b, b.dp, 0, 2048), g);
  const type w = matrix(&b, DT_F16, 4096, 4096, split(&b, b.tp, 1, 1024), g);
  const layout both = layout_with_split(b.p->sp, split(&b, b.dp, 0, 2048), b.tp, 1, 1024);
  const type y = matrix(&b, DT_F16, 4096, 4096, both, g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &y, 1, g, ps), 1);
  const double flops = 2.0 * 2048 * 4096 * 1024, lo = 1e10 / 0.65, hi = 1e11 / 0.81;
  const double work = lo + (hi - lo) * (flops - 1e10) / 9e10;
  CHECK_CLOSE((double)ps[0], work / 312e12 * 1e12 + 4e6, 1e-8);
  CHECK_EQ_I64(cost_model_events(b.k), 1);
  bed_free(&b);
}

TEST(cost_elementwise_and_views) {
  bed b = bed_new("dgx-a100-80", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F32, 8192, 8192, split(&b, b.tp, 0, 2048), g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_add, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 1);
  const double bytes = 3 * 4.0 * 2048 * 8192, lo = 1e8 / 0.73, hi = 1e9 / 0.82;
  const double work = lo + (hi - lo) * (bytes - 1e8) / 9e8;
  CHECK_CLOSE((double)ps[0], work / 2039e9 * 1e12 + 4e6, 1e-8);
  CHECK_EQ_I64(cost_of(&b, OP_identity, (attrset){0}, &x, 1, &x, 1, g, ps), 1);
  CHECK_EQ_I64(ps[0], 0);
  bed_free(&b);
}

// An assignment reads what it writes in its own element type, and not what it writes over.
TEST(cost_assignments) {
  bed b = bed_new("dgx-a100-80", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type half = matrix(&b, DT_F16, 8192, 8192, (layout){0}, g),
             whole = matrix(&b, DT_F32, 8192, 8192, (layout){0}, g);
  for (u32 k = 0; k < 2; k++) {
    const func f = func_new(b.p, sym_of(b.c, "f"), (loc){0});
    builder bl = builder_at(b.p, f);
    bl.g = g;
    const u32 w = func_param(b.p, f, half, (sym){0}, ROLE_WEIGHT),
              y = func_param(b.p, f, k ? whole : half, (sym){0}, ROLE_INPUT);
    const u32 i = emit(&bl, OP_assign, (attrset){0}, (u32[]){w, y}, 2, &half, 1);
    cost_info cost;
    cost_event e;
    const func_info *fi = func_get(b.p, f);
    if (!CHECK(cost_explain(b.k, b.p, fi, &fi->body.v[i - 1], g, 0, &cost, &e))) continue;
    CHECK_CLOSE(e.bytes, (k ? 4.0 + 2 : 2.0 + 2) * 8192 * 8192, 0);
  }
  bed_free(&b);
}

TEST(cost_missing_rate) {
  bed b = bed_new("dgx-2", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_BF16, 64, 64, (layout){0}, g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 0);
  CHECK_GOLDEN("cost/rate.txt", diag_render(b.c, b.a));
  bed_free(&b);
}

// ---- what an event is made of ------------------------------------------------------------------------

TEST(cost_explains) {
  bed b = bed_new("dgx-h100", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  func f = func_new(b.p, sym_of(b.c, "f"), (loc){0});
  builder bl = builder_at(b.p, f);
  bl.g = g;
  // An embedding: the table split over tp in the rows that are picked, the tokens over dp.
  const shape tokens = {DT_I64, 2, {8, 128}}, vectors = {DT_F16, 3, {8, 128, 1024}};
  const type ids = type_tensor(b.p, &tokens, split(&b, b.dp, 0, 4), g);
  const type table = matrix(&b, DT_F16, 50304, 1024, split(&b, b.tp, 0, 50304 / 4), g);
  const layout partial = layout_with_part(b.p->sp, split(&b, b.dp, 0, 4), b.tp, RED_SUM);
  const type out = type_tensor(b.p, &vectors, partial, g);
  const attr axis = attr_i(A_axis, 0);
  const u32 o[2] = {func_param(b.p, f, table, (sym){0}, ROLE_WEIGHT),
                    func_param(b.p, f, ids, (sym){0}, ROLE_INPUT)};
  const u32 i = emit(&bl, OP_gather, attrs_of(b.p, &axis, 1), o, 2, &out, 1);
  cost_info cost;
  cost_event e;
  const func_info *fi = func_get(b.p, f);
  REQUIRE(cost_explain(b.k, b.p, fi, &fi->body.v[i - 1], g, 5, &cost, &e));
  const double picked = 4.0 * 128 * 1024 * 2;
  CHECK(e.work == EFF_MOVE && e.flops == 0);
  CHECK_CLOSE(e.bytes, 2 * picked + 4 * 128 * 8, 1e-12); // rows read and written, indices read; not the table
  CHECK_EQ_I64(e.opd[0].dim[0], 12576);
  CHECK(cost.source == COST_LAUNCH && cost.spread < 0 && cost.ps > 3000000);
  CHECK_STR(cost_model_row(b.k, cost.row)->figure, "h100: launch of move");
  i64 ps[8];
  CHECK_EQ_I64(cost_instr(b.k, b.p, fi, &fi->body.v[i - 1], g, ps), 1);
  CHECK_EQ_I64(ps[0], cost.ps);
  bed_free(&b);
}

TEST(cost_kinds_of_work) {
  static const struct {
    const char *op;
    eff_kind work;
    double flops; // of x[64,64] (and y[64,64])
  } rows[] = {{"matmul", EFF_GEMM, 2.0 * 64 * 64 * 64},
              {"add", EFF_ELEMENTWISE, 4096},
              {"gelu", EFF_ELEMENTWISE, 40960},
              {"softmax", EFF_REDUCTION, 5 * 4096},
              {"sgd", EFF_ELEMENTWISE, 8192}};
  bed b = bed_new("dgx-h100", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F32, 64, 64, (layout){0}, g);
  for (u32 r = 0; r < COUNT_OF(rows); r++) {
    const opcode op = op_find(rows[r].op, strlen(rows[r].op));
    func f = func_new(b.p, sym_of(b.c, "f"), (loc){0});
    builder bl = builder_at(b.p, f);
    bl.g = g;
    const u32 v = func_param(b.p, f, x, (sym){0}, ROLE_INPUT), o[2] = {v, v};
    const u32 i = emit(&bl, op, (attrset){0}, o, op_row_of(op)->opd_min, &x, 1);
    cost_info cost;
    cost_event e;
    const func_info *fi = func_get(b.p, f);
    if (!CHECK(cost_explain(b.k, b.p, fi, &fi->body.v[i - 1], g, 0, &cost, &e))) continue;
    CHECK_MSG(e.work == rows[r].work, "%s is %s", rows[r].op, eff_name(e.work));
    CHECK_CLOSE(e.flops, rows[r].flops, 0);
  }
  bed_free(&b);
}

// ---- unequal members ---------------------------------------------------------------------------------

TEST(cost_mixed_devices) {
  bed b = bed_new("1x4 h100 ib=4x400Gb/s + 1x4 a100 ib=4x400Gb/s", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh), fast = group_fix(b.p->sp, g, b.dp, 0);
  const type x = matrix(&b, DT_F16, 4096, 4096, (layout){0}, g);
  const type y = matrix(&b, DT_F16, 4096, 4096, (layout){0}, fast);
  i64 ps[8], one[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 8);
  CHECK(ps[0] == ps[3] && ps[4] == ps[7] && ps[0] < ps[4]);
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){y, y}, 2, &y, 1, fast, one), 1);
  CHECK_EQ_I64(one[0], ps[0]);
  CHECK_EQ_I64(cost_model_events(b.k), 2);
  bed_free(&b);
}

TEST(cost_uneven_pieces) {
  bed b = bed_new("dgx-h100", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const u32 begin[] = {0, 1, 2};
  const i64 bound[] = {0, 3072, 3072, 4096};
  const pieces t = pieces_of(b.p->sp, 2, begin, bound, 4096);
  const layout_info li = {.nsplit = 1, .split = {{b.dp, 0, (u16)t.i, 0}}};
  const layout l = layout_of(b.p->sp, &li);
  const type x = matrix(&b, DT_F16, 4096, 4096, l, g), w = matrix(&b, DT_F16, 4096, 4096, (layout){0}, g);
  i64 ps[8], again[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &x, 1, g, ps), 8);
  CHECK(ps[0] == ps[3] && ps[4] == ps[7] && ps[0] > 2 * ps[4]);
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &x, 1, g, again), 8);
  CHECK(!memcmp(ps, again, sizeof ps));
  const attr over = attr_x(A_over, &b.dp, 1);
  // Gathered: all members of a subgroup wait for the longest, which is the whole.
  CHECK_EQ_I64(cost_of(&b, OP_all_gather, attrs_of(b.p, &over, 1), &x, 1, &w, 1, g, ps), 1);
  CHECK_EQ_I64(ps[0], cost_comm(b.k, OP_all_gather, 2 * 4096 * 4096, (u32[]){0, 4}, 2, DT_F16));
  // Summed over members with pieces of unlike size: the longest counts for all of them.
  CHECK_EQ_I64(cost_of(&b, OP_all_reduce, attrs_of(b.p, &over, 1), &x, 1, &x, 1, g, ps), 1);
  CHECK_EQ_I64(ps[0], cost_comm(b.k, OP_all_reduce, 2 * 3072 * 4096, (u32[]){0, 4}, 2, DT_F16));
  bed_free(&b);
}

// ---- communication -----------------------------------------------------------------------------------

TEST(cost_collectives_by_hand) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  cost_model *k = cost_model_new(c, a, machine_load(c, a, "dgx-h100*2"), NULL);
  u32 all[16], far[4] = {0, 1, 8, 9};
  for (u32 i = 0; i < 16; i++) all[i] = i;
  const double in = 450e9 * 0.75, out = 400e9 * 0.92, S = 1e9, us = 1e6, start = 4.7 * us, slow = 10 * us;
  const struct {
    opcode op;
    const u32 *ranks;
    u32 n;
    double ps;
  } rows[] = {
      {OP_all_reduce, all, 8, start + 14 * 0.8 * us + 2 * 7 / 8.0 * S / in * 1e12},
      {OP_all_gather, all, 8, start + 7 * 0.8 * us + 7 / 8.0 * S / in * 1e12},
      {OP_reduce_scatter, all, 4, start + 3 * 0.8 * us + 3 / 4.0 * S / in * 1e12},
      {OP_all_to_all, all, 8, start + 7 * 0.8 * us + 7 / 8.0 * S / in * 1e12},
      {OP_broadcast, all, 8, start + 3 * 0.8 * us + S / in * 1e12},
      {OP_gather_to, all, 8, start + 7 * 0.8 * us + 7 / 8.0 * S / in * 1e12},
      {OP_send, all, 2, start + 0.8 * us + S / in * 1e12},
      {OP_all_reduce, all, 16,
       slow + 2 * (14 * 0.8 + 6) * us + 2 * 15 / 16.0 * S / in * 1e12}, // NVLink is the slower
      {OP_all_gather, far, 4,
       slow + (0.8 + 6) * us + S * (0.5 / in + 0.5 / (out / 4)) * 1e12}, // two NICs of eight
      {OP_all_to_all, all, 16, slow + (15 * 0.8 + 6) * us + 8 * S / 2 / out * 1e12},
      {OP_all_reduce, all, 1, 0},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const i64 ps = cost_comm(k, rows[i].op, (i64)S, rows[i].ranks, rows[i].n, DT_F16);
    CHECK_MSG(ps > rows[i].ps * (1 - 1e-9) - 1 && ps < rows[i].ps * (1 + 1e-9) + 1,
              "%s over %u: %.3f ms, not %.3f ms", op_row_of(rows[i].op)->name, rows[i].n, (double)ps / 1e9,
              rows[i].ps / 1e9);
  }
  // Small ones over many nodes go up and down a tree.
  cost_model *big = cost_model_new(c, a, machine_load(c, a, "dgx-h100*128"), NULL);
  u32 ranks[1024];
  for (u32 i = 0; i < 1024; i++) ranks[i] = i;
  const double ps = (double)cost_comm(big, OP_all_reduce, 8, ranks, 1024, DT_F16);
  CHECK_CLOSE(ps, slow + 2 * (7 * 0.8 + 7 * 6) * us, 1e-3);
  CHECK_EQ_I64(cost_comm(big, OP_all_reduce, 8, (u32[]){1023, 1024}, 2, DT_F16), -1);
  cost_model *lone = cost_model_new(c, a, machine_load(c, a, "2x8 h100"), NULL);
  CHECK_EQ_I64(cost_comm(lone, OP_all_reduce, 8, (u32[]){7, 8}, 2, DT_F16), -1);
  CHECK(!cost_model_new(c, a, cost_model_machine(k), &(cost_opts){.model = "magic"}));
  CHECK_GOLDEN("cost/links.txt", diag_render(c, a));
  arena_free(a);
  ctx_free(c);
}

TEST(cost_subgroups_share) {
  bed b = bed_new("dgx-2*2", NULL, 2, 16);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F16, 1024, 1024, layout_with_part(b.p->sp, (layout){0}, b.dp, RED_SUM), g);
  const type y = matrix(&b, DT_F16, 1024, 1024, (layout){0}, g);
  const attr over = attr_x(A_over, &b.dp, 1);
  i64 ps[32];
  CHECK_EQ_I64(cost_of(&b, OP_all_reduce, attrs_of(b.p, &over, 1), &x, 1, &y, 1, g, ps), 1);
  const i64 bytes = 2 << 20, alone = cost_comm(b.k, OP_all_reduce, bytes, (u32[]){0, 16}, 2, DT_F16);
  // 16 rings over 8 NICs: half a NIC each.
  CHECK_CLOSE((double)(ps[0] - alone), 2 * 0.5 * (double)bytes / (12.5e9 * 0.92) * 1e12, 1e-6);
  CHECK_EQ_I64(cost_over(b.k, b.p, g, &b.dp, 1, OP_all_reduce, bytes, DT_F16), ps[0]);
  bed_free(&b);
}

TEST(cost_subgroups_differ) {
  bed b = bed_new("2x6 h100 ib=6x400Gb/s", NULL, 3, 4); // tp=4 on nodes of six: the middle one lies on both
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F16, 1024, 1024, layout_with_part(b.p->sp, (layout){0}, b.tp, RED_SUM), g);
  const type y = matrix(&b, DT_F16, 1024, 1024, (layout){0}, g);
  const attr over = attr_x(A_over, &b.tp, 1);
  i64 ps[12], again[12];
  CHECK_EQ_I64(cost_of(&b, OP_all_reduce, attrs_of(b.p, &over, 1), &x, 1, &y, 1, g, ps), 12);
  CHECK(ps[0] == ps[3] && ps[4] == ps[7] && ps[8] == ps[11] && ps[0] == ps[8] && ps[4] > ps[0]);
  CHECK_EQ_I64(cost_of(&b, OP_all_reduce, attrs_of(b.p, &over, 1), &x, 1, &y, 1, g, again), 12);
  CHECK(!memcmp(ps, again, sizeof ps));
  CHECK_EQ_I64(cost_over(b.k, b.p, g, &b.tp, 1, OP_all_reduce, 2 << 20, DT_F16), ps[4]);
  bed_free(&b);
}

TEST(cost_sends) {
  bed b = bed_new("dgx-h100*2", NULL, 4, 4);
  REQUIRE(b.k);
  const group all = group_all(b.p->sp, b.mesh);
  group at[4];
  for (u32 i = 0; i < 4; i++) at[i] = group_fix(b.p->sp, all, b.dp, i);
  const layout cut = split(&b, b.tp, 0, 1024);
  const i64 piece = 2 << 20;
  i64 ps[16];
  // Four transfers at once over the NICs beside their devices.
  const type from = matrix(&b, DT_F16, 4096, 1024, cut, at[1]),
             to = matrix(&b, DT_F16, 4096, 1024, cut, at[2]);
  CHECK_EQ_I64(cost_of(&b, OP_send, (attrset){0}, &from, 1, &to, 1, at[1], ps), 1);
  CHECK_CLOSE((double)ps[0], 16e6 + (double)piece / (50e9 * 0.92) * 1e12, 1e-6);
  CHECK_EQ_I64(cost_between(b.k, b.p, at[1], at[2], piece, DT_F16), ps[0]);
  const type near = matrix(&b, DT_F16, 4096, 1024, cut, at[0]);
  CHECK_EQ_I64(cost_of(&b, OP_send, (attrset){0}, &near, 1, &from, 1, at[0], ps), 1);
  CHECK_CLOSE((double)ps[0], 5.5e6 + (double)piece / (450e9 * 0.75) * 1e12, 1e-6);
  // Who is to hold more than the sender has, waits for as much.
  const type more = matrix(&b, DT_F16, 4096, 1024, (layout){0}, at[2]);
  CHECK_EQ_I64(cost_of(&b, OP_send, (attrset){0}, &from, 1, &more, 1, at[1], ps), 1);
  CHECK_CLOSE((double)ps[0], 16e6 + (double)(4 * piece) / (50e9 * 0.92) * 1e12, 1e-6);
  // To half as many members, each of which takes the pieces of two.
  const group pair =
      group_of(b.p->sp, b.mesh, (group_axis[]){{b.dp, 3, 0, NULL}, {b.tp, -2, 2, (u32[]){0, 1}}}, 2);
  CHECK_EQ_I64(cost_between(b.k, b.p, at[1], pair, 2 * piece, DT_F16),
               cost_comm(b.k, OP_send, 2 * piece, (u32[]){4, 12}, 2, DT_F16));
  CHECK_EQ_I64(cost_between(b.k, b.p, at[1], at[1], piece, DT_F16), 0);
  bed_free(&b);
}

// What goes between groups on two nodes, counted by hand in eighths of the tensor: in all, which one card has to carry, and of
// the member that sends or receives most, which has a card of its own on the other machine.
TEST(cost_sends_bring_what_is_wanted) {
  static const struct {
    u32 n[4]; // sizes of a, b of the source and c, d of the target
    const char *from, *to;
    i64 all, busiest;
  } rows[] = {{{2, 4, 2, 4}, "[1024,1024]", "[1024{c,d},1024]", 8, 1},
              {{2, 4, 2, 4}, "[1024,1024]", "[1024,1024]", 64, 8},
              {{2, 4, 2, 4}, "[1024{a,b},1024]", "[1024,1024]", 64, 8},
              {{2, 4, 2, 4}, "[1024{a,b},1024]", "[1024,1024{c,d}]", 8, 1},
              {{2, 4, 2, 4}, "[1024{a},1024]", "[1024{c,d},1024]", 8, 1},
              {{2, 4, 2, 4}, "[1024{a},1024]", "[1024,1024{c,d}]", 8, 1},
              {{2, 4, 4, 2}, "[1024{a},1024]", "[1024{c},1024]", 16, 2},
              {{4, 2, 2, 4}, "[1024{a},1024]", "[1024{c},1024]", 32, 4},
              {{2, 4, 2, 2}, "[1024,1024]", "[1024{c,d},1024]", 8, 2},
              {{2, 4, 2, 2}, "[1024{a,b},1024]", "[1024,1024]", 32, 8},
              {{2, 2, 2, 4}, "[1024,1024]", "[1024{c,d},1024]", 8, 2},
              {{2, 2, 2, 4}, "[1024{a,b},1024]", "[1024,1024]", 64, 16}};
  for (u32 r = 0; r < 2 * COUNT_OF(rows); r++) {
    const u32 k = r / 2, *n = rows[k].n;
    bed b = bed_new(r % 2 ? "dgx-h100*2" : "2x8 v100 ib=100Gb/s", NULL, 1, 1);
    REQUIRE(b.k);
    u8 axis[4];
    for (u32 i = 0; i < 4; i++)
      axis[i] = axis_add(b.p->sp, sym_of(b.c, (char[]){(char)('a' + i), 0}), n[i], false);
    const group g = group_all(b.p->sp, mesh_add(b.p->sp, sym_of(b.c, "source"), axis, 2, 0, NULL)),
                h = group_all(b.p->sp, mesh_add(b.p->sp, sym_of(b.c, "target"), axis + 2, 2, 8, NULL));
    layout from = {0}, to = {0};
    u32 nd;
    i64 dims[DIMS_MAX], ps[8];
    const char *x = rows[k].from, *y = rows[k].to, *error;
    REQUIRE(layout_parse(b.p->sp, &x, &nd, dims, &from, &error) &&
            layout_parse(b.p->sp, &y, &nd, dims, &to, &error));
    const type operand = matrix(&b, DT_F16, 1024, 1024, from, g),
               result = matrix(&b, DT_F16, 1024, 1024, to, h);
    REQUIRE(cost_of(&b, OP_send, (attrset){0}, &operand, 1, &result, 1, g, ps) == 1);
    const double eighth = 1024 * 1024 * 2 / 8,
                 bytes = eighth * (double)(r % 2 ? rows[k].busiest : rows[k].all);
    CHECK_CLOSE((double)ps[0], 16e6 + bytes / ((r % 2 ? 50e9 : 12.5e9) * 0.92) * 1e12, 1e-6);
    const func_info *f = func_get(b.p, (func){b.p->funcs.n - 1});
    CHECK_CLOSE(plan_send_bytes(b.p, f, &f->body.v[0]), eighth * (double)rows[k].all, 1e-12);
    bed_free(&b);
  }
}

// ---- caches ------------------------------------------------------------------------------------------

static type random_type(bed *b, u64 *rng, group g) {
  const i64 m = 64ll << rng_next(rng) % 6, n = 64ll << rng_next(rng) % 6;
  layout l = {0};
  if (rng_next(rng) & 1) l = layout_with_split(b->p->sp, l, b->dp, 0, m / axis_size(b->p->sp, b->dp));
  if (rng_next(rng) & 1) l = layout_with_split(b->p->sp, l, b->tp, 1, n / axis_size(b->p->sp, b->tp));
  return matrix(b, rng_next(rng) & 1 ? DT_F16 : DT_F32, m, n, l, g);
}

// A cost model that has seen everything says what a new one says.
TEST(cost_caches_change_nothing) {
  u64 rng = 7;
  const char *const models[] = {"heddle", "distir"};
  for (u32 round = 0; round < 6; round++) {
    bed b = bed_new("dgx-h100*2", models[round & 1], round < 3 ? 2 : 4, 4);
    REQUIRE(b.k);
    const cost_opts o = {.model = models[round & 1]};
    const group all = group_all(b.p->sp, b.mesh), part = group_fix(b.p->sp, all, b.dp, 1);
    for (u32 i = 0; i < 300; i++) {
      static const opcode ops[] = {OP_add,        OP_relu,       OP_softmax, OP_sgd,
                                   OP_all_reduce, OP_all_gather, OP_send,    OP_mul};
      const opcode op = ops[rng_next(&rng) % COUNT_OF(ops)];
      const group g = rng_next(&rng) & 1 ? all : part;
      const type x = random_type(&b, &rng, g);
      const bool comm = op_row_of(op)->flags & OPF_COMM;
      const attr over = attr_x(A_over, rng_next(&rng) & 1 && g.i == all.i ? &b.dp : &b.tp, 1);
      const attrset at = comm && op != OP_send ? attrs_of(b.p, &over, 1) : (attrset){0};
      i64 ps[16], fresh[16];
      const u32 n = cost_of(&b, op, at, (type[]){x, x}, comm ? 1 : op_row_of(op)->opd_min, &x, 1, g, ps);
      cost_model *used = b.k;
      arena_mark_t mark = arena_mark(b.a);
      b.k = cost_model_new(b.c, b.a, b.m, &o);
      const u32 m = cost_of(&b, op, at, (type[]){x, x}, comm ? 1 : op_row_of(op)->opd_min, &x, 1, g, fresh);
      b.k = used;
      CHECK(n && n == m && !memcmp(ps, fresh, sizeof *ps * n));
      arena_release(b.a, mark);
    }
    bed_free(&b);
  }
}

// Programs whose ids mean different things, one after the other at the same address.
TEST(cost_programs_take_turns) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  cost_model *k = cost_model_new(c, a, machine_load(c, a, "dgx-h100*2"), NULL);
  i64 first[3];
  for (u32 round = 0; round < 6; round++) {
    bed b = {.c = c, .a = a, .k = k, .p = prog_new(c)};
    b.dp = axis_add(b.p->sp, sym_of(c, "dp"), 2 + 2 * (round % 3), false);
    b.mesh = mesh_add(b.p->sp, sym_of(c, "m"), &b.dp, 1, 0, NULL);
    const group g = group_all(b.p->sp, b.mesh);
    const type x = matrix(&b, DT_F16, 960, 4096, split(&b, b.dp, 0, 960 / (2 + 2 * (round % 3))), g);
    i64 ps[6];
    REQUIRE(cost_of(&b, OP_relu, (attrset){0}, &x, 1, &x, 1, g, ps) == 1);
    if (round < 3)
      first[round] = ps[0];
    else
      CHECK_EQ_I64(ps[0], first[round % 3]);
    prog_free(b.p);
  }
  CHECK(first[0] > first[1] && first[1] > first[2]);
  CHECK_EQ_I64(cost_model_events(k), 3);
  arena_free(a);
  ctx_free(c);
}

// ---- from outside ------------------------------------------------------------------------------------

static bool products_take_a_second(void *arg, const cost_event *e, cost_info *out) {
  ++*(int *)arg;
  if (e->op != OP_matmul) return false;
  out->ps = 1000000000000;
  return true;
}
static void count_far(void *arg, const cost_event *e, double factor) {
  if (e->op == OP_matmul && factor > 1000) *(int *)arg += 100;
}

// What is kept of one program is given up for the next: a search over many plans must not grow.
TEST(cost_programs_leave_nothing) {
  bed b = bed_new("dgx-h100*64", NULL, 32, 16);
  REQUIRE(b.k);
  const group all = group_all(b.p->sp, b.mesh), part = group_fix(b.p->sp, all, b.dp, 0);
  const type x = matrix(&b, DT_F16, 4096, 4096, (layout){0}, all);
  const attr over = attr_x(A_over, &b.tp, 1);
  const type_info *t = type_get(b.p, x);
  const type y = type_tensor(b.p, &t->s, t->lay, part);
  const attrset at = attrs_of(b.p, &over, 1);
  i64 ps[512];
  size_t bytes = 0;
  for (u32 round = 0; round < 400; round++) {
    CHECK(cost_of(&b, OP_all_reduce, at, &x, 1, &x, 1, all, ps) == 1);
    CHECK(cost_of(&b, OP_send, (attrset){0}, &x, 1, &y, 1, all, ps));
    if (round == 10) bytes = arena_bytes(b.a);
  }
  CHECK_EQ_I64((i64)arena_bytes(b.a), (i64)bytes);
  bed_free(&b);
}

// Random groups of random meshes: one cost model, which knows all patterns before, against a new one every
// time, which works every place out from the ranks.
static group random_group(prog *p, mesh m, const u8 *axis, u32 naxes, u64 *rng) {
  group g = group_all(p->sp, m);
  for (u32 i = 0; i < naxes; i++) {
    const u32 size = axis_size(p->sp, axis[i]), kind = rng_next(rng) % 4;
    if (kind == 0) g = group_fix(p->sp, g, axis[i], (u32)(rng_next(rng) % size));
    if (kind != 1 || size < 3) continue;
    const group_axis some = {axis[i], -2, 2, (u32[]){1, 2}};
    if (group_get(p->sp, g)->nranks == mesh_get(p->sp, m)->nranks) g = group_of(p->sp, m, &some, 1);
  }
  return g;
}

TEST(cost_patterns_are_ranks) {
  static const struct {
    const char *spec;
    u32 leaf;
    const char *model;
  } row[] = {{"8x8 h100 nvlink=450GB/s ib=4x400Gb/s", 2, NULL},
             {"dgx-a100-80*8", 4, NULL},
             {"a10-4x4", 0, NULL},
             {"8x6 h100 ib=6x400Gb/s", 3, NULL},
             {"dgx-2*4", 0, "distir"},
             {"4x8 h100 ib=6x400Gb/s + 4x4 a100 ib=2x200Gb/s", 0, NULL}};
  u64 rng = 11;
  u32 asked = 0;
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new(), *once = arena_new();
    machine *m = machine_load(c, a, row[k].spec);
    CHECK_MSG(m != NULL, "%s", diag_render(c, a));
    REQUIRE(m);
    m->fabric.leaf = row[k].leaf;
    m->fabric.oversub = 2;
    const cost_opts o = {.model = row[k].model};
    cost_model *old = cost_model_new(c, a, m, &o);
    for (u32 round = 0; round < 60; round++) {
      prog *p = prog_new(c);
      u32 size[3], n = 1;
      u8 axis[3];
      for (u32 i = 0; i < 3; i++) {
        size[i] = MIN(1u << rng_next(&rng) % 4, MAX(m->nranks / n, 1u)) + (rng_next(&rng) % 8 == 0);
        n *= size[i];
        axis[i] = axis_add(p->sp, sym_fmt(c, "x%u", i), size[i], false);
      }
      if (n > m->nranks) {
        prog_free(p);
        continue;
      }
      const mesh me =
          mesh_add(p->sp, sym_of(c, "m"), axis, 3, (u32)(rng_next(&rng) % (m->nranks - n + 1)), NULL);
      for (u32 q = 0; q < 12; q++) {
        const group g = random_group(p, me, axis, 3, &rng), h = random_group(p, me, axis, 3, &rng);
        const u8 over[2] = {axis[rng_next(&rng) % 3], axis[rng_next(&rng) % 3]};
        const u32 nover = over[0] == over[1] ? 1 : 2;
        const opcode op = (opcode[]){OP_all_reduce, OP_all_gather, OP_all_to_all}[rng_next(&rng) % 3];
        arena_mark_t mark = arena_mark(once);
        cost_model *fresh = cost_model_new(c, once, m, &o);
        const i64 x = cost_over(old, p, g, over, nover, op, 1 << 20, DT_F16);
        CHECK_EQ_I64(x, cost_over(fresh, p, g, over, nover, op, 1 << 20, DT_F16));
        const i64 y = cost_between(old, p, g, h, 1 << 18, DT_F16);
        CHECK_EQ_I64(y, cost_between(fresh, p, g, h, 1 << 18, DT_F16));
        arena_release(once, mark);
        asked += x > 0 && y > 0;
      }
      prog_free(p);
    }
    arena_free(once);
    arena_free(a);
    ctx_free(c);
  }
  CHECK(asked > 500);
}

TEST(cost_predictor) {
  bed b = bed_new("dgx-h100", NULL, 2, 4);
  REQUIRE(b.k);
  int asked = 0;
  const cost_opts o = {.predict = products_take_a_second, .extrapolated = count_far, .arg = &asked};
  b.k = cost_model_new(b.c, b.a, b.m, &o);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F16, 64, 64, (layout){0}, g);
  i64 ps[8];
  for (u32 i = 0; i < 3; i++) {
    CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 1);
    CHECK_EQ_I64(ps[0], 1000000000000);
  }
  CHECK_EQ_I64(cost_of(&b, OP_relu, (attrset){0}, &x, 1, &x, 1, g, ps), 1);
  CHECK_EQ_I64(asked, 2);
  asked = 0;
  b.k = cost_model_new(b.c, b.a, b.m, &(cost_opts){.extrapolated = count_far, .arg = &asked});
  cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps);
  CHECK_EQ_I64(asked, 0); // 0.5 MFLOP; the table begins at 10 GFLOP, but the launch is all that matters
  const type huge = matrix(&b, DT_F16, 1 << 19, 1 << 19, (layout){0}, g);
  cost_of(&b, OP_matmul, (attrset){0}, (type[]){huge, huge}, 2, &huge, 1, g, ps);
  CHECK(asked >= 100); // 288 PFLOP; it ends at 100 TFLOP
  CHECK_EQ_I64(diag_count(b.c), 0);
  b.k = cost_model_new(b.c, b.a, b.m, NULL);
  for (u32 i = 0; i < 3; i++) cost_of(&b, OP_matmul, (attrset){0}, (type[]){huge, huge}, 2, &huge, 1, g, ps);
  CHECK(diag_count(b.c) == 2 && diag_errors(b.c) == 0); // gemm and memory, once each
  CHECK(diag_get(b.c, 0).id == W_EXTRAPOLATED);
  bed_free(&b);
}

TEST(cost_bounds_hold) {
  u64 rng = 11;
  for (u32 round = 0; round < 2; round++) {
    bed b = bed_new("dgx-a100-80", round ? "distir" : "heddle", 2, 4);
    REQUIRE(b.k);
    const device_kind *dev = &b.m->kind[0];
    const group g = group_all(b.p->sp, b.mesh);
    for (u32 i = 0; i < 200; i++) {
      const i64 m = 1ll << rng_next(&rng) % 14, n = 1ll << rng_next(&rng) % 14,
                k = 1ll << rng_next(&rng) % 14;
      const type x = matrix(&b, DT_F16, m, k, (layout){0}, g), w = matrix(&b, DT_F16, k, n, (layout){0}, g);
      const type y = matrix(&b, DT_F16, m, n, (layout){0}, g);
      i64 ps[8];
      REQUIRE(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &y, 1, g, ps) == 1);
      const double flops = 2.0 * (double)(m * n * k), read = 2.0 * (double)(m * k + k * n);
      CHECK((double)ps[0] + 1 >=
            (double)cost_launch_ps(b.k, dev) + flops / cost_top_flops(b.k, dev, DT_F16) * 1e12);
      CHECK((double)ps[0] + 1 >= (double)cost_launch_ps(b.k, dev) + read / cost_top_bw(b.k, dev) * 1e12);
    }
    bed_free(&b);
  }
}
