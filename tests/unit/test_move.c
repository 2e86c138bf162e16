// test_move.c - routes between groups: along the chosen one every element arrives, whatever the layouts and
// the sizes of the groups; and no route is cheaper, which brute force over all layouts of both ends confirms
// where there are few.
#include "plan/main.h"
#include "cost/cost.h"
#include "test.h"
#include <math.h>

enum { ROWS = 24, COLS = 16 };
static ctx *C;
static arena *A;
static prog *P;
static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }
static const i64 dims[] = {ROWS, COLS};
static shape S = {.t = DT_I64, .nd = 2, .dim = {ROWS, COLS}};

static void begin(u64 seed) {
  R = seed;
  C = ctx_new(), A = arena_new();
  P = prog_new(C);
  P->main = func_new(P, sym_of(C, "main"), (loc){0});
}
static void end(void) {
  prog_free(P);
  arena_free(A);
  ctx_free(C);
}

static group mesh_of(const char *name, const u32 *sizes, u32 n, u32 first) {
  u8 axes[4];
  for (u32 k = 0; k < n; k++) axes[k] = axis_add(P->sp, sym_fmt(C, "%s%u", name, k), sizes[k], false);
  return group_all(P->sp, mesh_add(P->sp, sym_of(C, name), axes, n, first, NULL));
}

// Replicated, split, or partial over every axis.
static layout some_layout(group g, bool partial, reduction red) {
  const group_info *gi = group_get(P->sp, g);
  layout l = {0};
  for (u32 k = 0; k < gi->naxes; k++) {
    u8 a = gi->axis[k].axis;
    u32 what = few(partial ? 4 : 3);
    if (!group_has_axis(P->sp, g, a)) continue;
    if (what == 3) l = layout_with_part(P->sp, l, a, red);
    if (what > 1) continue;
    i64 stride = layout_next_stride(P->sp, l, (u8)what, dims[what], axis_size(P->sp, a));
    layout minor = layout_with_split(P->sp, l, a, (u8)what, 1);
    if (few(4) == 0 && layout_fits(P->sp, minor, 2, dims))
      l = minor;
    else if (stride)
      l = layout_with_split(P->sp, l, a, (u8)what, stride);
  }
  return l;
}

// x, whole on every rank of g, in layout l.
static value laid_out(main_build *mb, value x, group g, layout l) {
  mb->b.g = g;
  return shard_convert(mb->x, &mb->b, x, l, g);
}

// Two groups: of one mesh or of two, of one size or of sizes that divide, on the same ranks or on others.
static void some_groups(group *g, group *h) {
  static const u32 shapes[][3] = {{2, 2, 2}, {2, 4, 1}, {4, 2, 1}, {2, 2, 1},
                                  {4, 1, 1}, {3, 2, 1}, {2, 1, 1}, {6, 2, 1}};
  if (few(3) == 0) { // stages of one mesh
    u32 n[] = {2, 2, few(2) ? 2 : 4};
    group all = mesh_of("m", n, 3, 0);
    *g = group_fix(P->sp, all, axis_find(P->sp, sym_of(C, "m0")), 0);
    *h = group_fix(P->sp, all, axis_find(P->sp, sym_of(C, "m0")), 1);
    return;
  }
  for (;;) {
    const u32 *x = shapes[few(COUNT_OF(shapes))], *y = shapes[few(COUNT_OF(shapes))];
    u32 nx = x[0] * x[1] * x[2], ny = y[0] * y[1] * y[2];
    if (nx % ny && ny % nx) continue;
    *g = mesh_of("a", x, 3, 0);
    *h = mesh_of("b", y, 3, few(3) ? 16 : 0);
    return;
  }
}

static machine *machine_named(const char *name) { return machine_load(C, A, name); }

// Moves from a random layout to another group and layout, back, and compares: one program of four
// conversions.
static void arrives(u64 seed, cost_model *k) {
  group g, h;
  some_groups(&g, &h);
  reduction red = few(2) ? RED_SUM : RED_MAX;
  layout l[3] = {some_layout(g, true, red), some_layout(h, few(2), red), some_layout(g, false, red)};
  plan pn = {0};
  apply x = {.p = P, .a = A, .pn = &pn, .k = k};
  main_build mb = {.x = &x, .p = P, .b = builder_at(P, P->main)};
  value v = func_param(P, P->main, type_tensor(P, &S, (layout){0}, g), sym_of(C, "x"), ROLE_INPUT);
  for (u32 i = 0; i < 3; i++)
    if (!layout_fits(P->sp, l[i], 2, dims)) l[i] = (layout){0};
  v = laid_out(&mb, v, g, l[0]);
  v = main_move(&mb, v, h, l[1]);
  if (v) v = main_move(&mb, v, g, l[2]);
  REQUIRE(v != 0);
  CHECK(val_type(P, func_get(P, P->main), v)->lay.i == l[2].i);
  func_return(P, P->main, &v, 1);
  CHECK_MSG(ir_verify(P), "seed %llu: %s", (unsigned long long)seed, diag_render(C, A));
  eval_array in = {S, NEWN(A, i64, ROWS * COLS)}, out;
  for (i64 i = 0; i < ROWS * COLS; i++) ((i64 *)in.data)[i] = (i64)(rng_next(&R) >> 20) + 1;
  bool ok = eval_run(P, &(eval_opts){.as_f64 = true}, &in, 1, &out, 1, A) &&
            !memcmp(in.data, out.data, sizeof(i64) * ROWS * COLS);
  strbuf b = {.a = A};
  if (!ok) ir_print(P, &b);
  CHECK_MSG(ok, "seed %llu: %s%s", (unsigned long long)seed, diag_render(C, A), sb_str(&b));
}

TEST(move_every_element_arrives) {
  for (u64 seed = 1; seed <= 400; seed++) {
    begin(seed);
    arrives(seed, NULL);
    end();
  }
}

TEST(move_every_element_arrives_by_cost) {
  for (u64 seed = 1; seed <= 120; seed++) {
    begin(seed);
    machine *m = machine_named("a40-4x4*2");
    REQUIRE(m != NULL);
    arrives(seed, cost_model_new(C, A, m, NULL));
    end();
  }
}

// ---- brute force ---------------------------------------------------------------------------------------
typedef VEC(layout) layouts;

// Every layout without partial sums, each axis as major as what is before it allows.
static void all_layouts(group g, u32 k, layout l, layouts *out) {
  const group_info *gi = group_get(P->sp, g);
  while (k < gi->naxes && !group_has_axis(P->sp, g, gi->axis[k].axis)) k++;
  if (k == gi->naxes) {
    for (u32 i = 0; i < out->n; i++)
      if (out->v[i].i == l.i) return;
    *vec_push(A, out) = l;
    return;
  }
  all_layouts(g, k + 1, l, out);
  for (u8 d = 0; d < 2; d++) {
    i64 stride = layout_next_stride(P->sp, l, d, dims[d], axis_size(P->sp, gi->axis[k].axis));
    if (stride) all_layouts(g, k + 1, layout_with_split(P->sp, l, gi->axis[k].axis, d, stride), out);
  }
}

static void no_cheaper(u64 seed, cost_model *k) {
  group g, h;
  some_groups(&g, &h);
  layout from = some_layout(g, true, RED_SUM), want = some_layout(h, false, RED_SUM);
  if (!layout_fits(P->sp, from, 2, dims)) from = (layout){0};
  if (!layout_fits(P->sp, want, 2, dims)) want = (layout){0};
  route best = route_find(P, &S, g, from, h, want, MATERIALISE_INTER, k);
  CHECK_CLOSE(route_cost(P, &S, g, from, h, want, MATERIALISE_INTER, &best, k), best.cost, 1e-12);
  layouts s = {0}, t = {0};
  all_layouts(g, 0, (layout){0}, &s);
  all_layouts(h, 0, (layout){0}, &t);
  *vec_push(A, &t) = want;
  for (u32 i = 0; i < s.n; i++)
    for (u32 j = 0; j < t.n; j++) {
      route r = {s.v[i], t.v[j], 0};
      double cost = route_cost(P, &S, g, from, h, want, MATERIALISE_INTER, &r, k);
      if (cost >= best.cost * (1 - 1e-12)) continue;
      strbuf b = {.a = A};
      layout all[] = {from, best.sent, best.got, want, r.sent, r.got};
      for (u32 q = 0; q < COUNT_OF(all); q++) layout_print(P->sp, all[q], 2, dims, &b), sb_char(&b, ' ');
      CHECK_MSG(false, "seed %llu: %g, the chosen route %g (from, sent, got, want; sent, got cheaper): %s",
                (unsigned long long)seed, cost, best.cost, sb_str(&b));
      return;
    }
}

TEST(move_no_route_is_cheaper) {
  for (u64 seed = 1; seed <= 150; seed++) {
    begin(seed);
    no_cheaper(seed, NULL);
    end();
  }
}

TEST(move_no_route_is_cheaper_by_cost) {
  for (u64 seed = 1; seed <= 60; seed++) {
    begin(seed);
    machine *m = machine_named("a40-4x4*2");
    REQUIRE(m != NULL);
    no_cheaper(seed, cost_model_new(C, A, m, NULL));
    end();
  }
}

// ---- by hand -------------------------------------------------------------------------------------------
static const char *shown(const route *r) {
  strbuf b = {.a = A};
  layout_print(P->sp, r->sent, 2, dims, &b);
  sb_put(&b, " > ");
  layout_print(P->sp, r->got, 2, dims, &b);
  return sb_str(&b);
}

static const char *stages(const char *from, const char *want, cost_model *k) { // on [pp=2, dp=2, tp=2]
  const char *error;
  u32 nd;
  i64 d[DIMS_MAX];
  layout f = {0}, w = {0};
  group all = group_all(P->sp, mesh_find(P->sp, sym_of(C, "m")));
  u8 pp = axis_find(P->sp, sym_of(C, "pp"));
  CHECK(layout_parse(P->sp, &from, &nd, d, &f, &error) && layout_parse(P->sp, &want, &nd, d, &w, &error));
  route r = route_find(P, &S, group_fix(P->sp, all, pp, 0), f, group_fix(P->sp, all, pp, 1), w,
                       MATERIALISE_INTER, k);
  return shown(&r);
}

TEST(move_routes_by_hand) {
  begin(1);
  u8 ax[3] = {axis_add(P->sp, sym_of(C, "pp"), 2, false), axis_add(P->sp, sym_of(C, "dp"), 2, false),
              axis_add(P->sp, sym_of(C, "tp"), 4, false)};
  mesh_add(P->sp, sym_of(C, "m"), ax, 3, 0, NULL);
  // what replicates is sent in pieces and gathered; what is split already goes as it is. A send takes the piece out of the
  // whole, so the source need not split it
  CHECK_STR(stages("[24{dp},16]", "[24{dp},16]", NULL), "[24{dp},16] > [24{dp,tp},16]");
  CHECK_STR(stages("[24{dp},16{tp}]", "[24{dp},16{tp}]", NULL), "[24{dp},16{tp}] > [24{dp},16{tp}]");
  // sums are scattered, not reduced whole; gathered on the target where that wants it whole
  CHECK_STR(stages("[24{dp},16]+tp", "[24{dp},16{tp}]", NULL), "[24{dp},16{tp}] > [24{dp},16{tp}]");
  // what the source splits the target gathers
  CHECK_STR(stages("[24{dp},16]", "[24{dp},16{tp}]", NULL), "[24{dp},16] > [24{dp},16{tp}]");
  CHECK_STR(stages("[24{dp},16{tp}]", "[24{dp},16]", NULL), "[24{dp},16{tp}] > [24{dp},16{tp}]");
  end();
}

// Activations of 16 MB: between nodes of slow links in pieces, inside one switch and when small whole.
TEST(move_by_machine) {
  static const struct {
    const char *machine;
    u32 pp, tp;
    i64 rows;
    bool pieces;
  } cases[] = {{"a40-4x4", 4, 4, 2048, true},
               {"a10-4x4", 4, 4, 2048, true},
               {"dgx-2", 4, 4, 2048, false},
               {"dgx-2", 4, 4, 4, false}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    begin(1);
    u8 ax[2] = {axis_add(P->sp, sym_of(C, "pp"), cases[i].pp, false),
                axis_add(P->sp, sym_of(C, "tp"), cases[i].tp, false)};
    group all = group_all(P->sp, mesh_add(P->sp, sym_of(C, "m"), ax, 2, 0, NULL));
    machine *m = machine_named(cases[i].machine);
    REQUIRE(m != NULL);
    shape s = {.t = DT_F16, .nd = 2, .dim = {cases[i].rows, 4096}};
    route r = route_find(P, &s, group_fix(P->sp, all, ax[0], 0), (layout){0}, group_fix(P->sp, all, ax[0], 1),
                         (layout){0}, MATERIALISE_INTER, cost_model_new(C, A, m, NULL));
    CHECK_MSG(!!r.got.i == cases[i].pieces, "%s, %lld rows: %g ps", cases[i].machine,
              (long long)cases[i].rows, r.cost);
    CHECK(!r.sent.i);
    end();
  }
}
