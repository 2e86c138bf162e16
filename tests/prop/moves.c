// moves.c - communication on random groups and layouts: along any cheapest path a value arrives as it left,
// between groups too; and if one step of a path is left out, something is wrong and is seen.
#include "plan/plan.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 64, DIM = 24 };

static ctx *C;
static arena *A;
static prog *P;
static builder B;
static u64 R = 1;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

static void begin(void) {
  C = ctx_new();
  A = arena_new();
  P = prog_new(C);
  P->main = func_new(P, sym_of(C, "main"), (loc){0});
  B = builder_at(P, P->main);
}
static void end(void) {
  prog_free(P);
  arena_free(A);
  ctx_free(C);
}

static group random_group(const char *prefix, u32 first) {
  static const u32 sizes[] = {2, 3, 2, 4};
  u8 axes[3];
  u32 n = 1 + few(3);
  for (u32 k = 0; k < n; k++) axes[k] = axis_add(P->sp, sym_fmt(C, "%s%u", prefix, k), sizes[few(4)], false);
  mesh m = mesh_add(P->sp, sym_of(C, prefix), axes, n, first, NULL);
  return group_all(P->sp, m);
}

static type typed(layout l, group g) {
  shape s = {.t = DT_I64, .nd = 2, .dim = {DIM, DIM}};
  return type_tensor(P, &s, l, g);
}

// Every axis splits some dimension at some stride, replicates, or (if allowed) is partial.
static layout random_layout(group g, bool partial, reduction red) {
  const group_info *gi = group_get(P->sp, g);
  i64 dims[] = {DIM, DIM};
  layout l = {0};
  for (u32 k = 0; k < gi->naxes; k++) {
    u8 a = gi->axis[k].axis;
    u32 what = few(partial ? 4 : 3);
    if (what == 3) l = layout_with_part(P->sp, l, a, red);
    if (what < 2) {
      i64 stride = layout_next_stride(P->sp, l, (u8)what, DIM, axis_size(P->sp, a));
      layout minor = layout_with_split(P->sp, l, a, (u8)what, 1);
      if (few(3) == 0 && layout_fits(P->sp, minor, 2, dims))
        l = minor;
      else if (stride)
        l = layout_with_split(P->sp, l, a, (u8)what, stride);
    }
  }
  return layout_fits(P->sp, l, 2, dims) ? l : (layout){0};
}

static opcode step_op(step_kind k) {
  static const opcode op[] = {[STEP_SHARD] = OP_shard,
                              [STEP_PARTIAL] = OP_partial,
                              [STEP_ALL_GATHER] = OP_all_gather,
                              [STEP_ALL_REDUCE] = OP_all_reduce,
                              [STEP_REDUCE_SCATTER] = OP_reduce_scatter,
                              [STEP_ALL_TO_ALL] = OP_all_to_all,
                              [STEP_PERMUTE] = OP_permute,
                              [STEP_EXCHANGE] = OP_exchange};
  return op[k];
}

static value emit1(opcode op, value x, type t, const layout_step *s) {
  attr over = attr_x(A_over, s ? s->axis : NULL, s ? s->naxes : 0);
  builder b = B;
  b.g = val_type(P, func_get(P, B.f), x)->g;
  return emit_res(P, B.f, emit(&b, op, s && s->naxes ? attrs_of(P, &over, 1) : (attrset){0}, &x, 1, &t, 1));
}

static eval_array random_input(void) {
  eval_array x = {{.t = DT_I64, .nd = 2, .dim = {DIM, DIM}}, NEWN(A, i64, DIM * DIM)};
  for (i64 i = 0; i < DIM * DIM; i++) ((i64 *)x.data)[i] = (i64)(rng_next(&R) >> 20) + 1;
  return x;
}

static bool arrives(value y, const eval_array *x) {
  eval_array out;
  func_get(P, P->main)->rets.n = 0;
  func_return(P, P->main, &y, 1);
  if (!eval_run(P, &(eval_opts){.as_f64 = true}, x, 1, &out, 1, A)) return false;
  return !memcmp(out.data, x->data, sizeof(i64) * DIM * DIM);
}

static const char *shown(const layout *l, u32 n) {
  strbuf b = {.a = A};
  i64 dims[] = {DIM, DIM};
  for (u32 k = 0; k < n; k++) {
    layout_print(P->sp, l[k], 2, dims, &b);
    sb_put(&b, k + 1 < n ? " -> " : "");
  }
  return sb_str(&b);
}

// A chain of random layouts, each reached from the one before by a cheapest path; step `without` left out.
static step_kind kinds[STEPS]; // of the latest chain

static bool chain(u64 seed, u32 without, bool sums, u32 *nsteps, bool *built, const char **text) {
  R = seed;
  begin();
  group g = random_group("a", 0);
  reduction red = sums || few(2) ? RED_SUM : RED_MAX;
  i64 dims[] = {DIM, DIM};
  layout at[STEPS] = {{0}};
  u32 n = 0;
  value x = func_param(P, P->main, typed(at[0], g), sym_of(C, "x"), ROLE_INPUT), y = x;
  *built = true;
  for (u32 k = 0; k < 4 && *built; k++) {
    layout to = random_layout(g, k < 3, red);
    layout_step step[16];
    double cost;
    int m = layout_path(P->sp, g, 2, dims, at[n], to, step_cost_elements, NULL, step, 16, &cost);
    *built = m >= 0;
    for (int j = 0; j < m; j++, n++) {
      at[n + 1] = step[j].to;
      kinds[n] = step[j].kind;
      y = emit1(n == without ? OP_identity : step_op(step[j].kind), y, typed(step[j].to, g),
                n == without ? NULL : &step[j]);
    }
  }
  eval_array in = random_input();
  bool ok = *built && arrives(y, &in);
  *nsteps = n;
  *text = *built ? strdup(shown(at, n + 1)) : NULL;
  if (!ok && without == UINT32_MAX && *built) printf("%s\n", diag_render(C, A));
  end();
  return ok;
}

TEST(moves_paths_arrive) {
  u32 total = 0;
  for (u64 seed = 1; seed <= 600; seed++) {
    u32 n;
    bool built;
    const char *text;
    bool ok = chain(seed, UINT32_MAX, false, &n, &built, &text);
    if (built) CHECK_MSG(ok, "seed %llu: %s", (unsigned long long)seed, text);
    total += built ? n : 0;
    free((char *)(uintptr_t)text);
  }
  CHECK_MSG(total > 2000, "only %u steps were taken", total);
}

// What may be left out: `partial` before a maximum, for a complete value is one already; a reduction that a
// later `partial` undoes, for that reads the first rank only.
TEST(moves_missing_steps_are_seen) {
  u32 tried = 0;
  for (u64 seed = 1; seed <= 150; seed++) {
    u32 n, unused;
    bool built;
    const char *text, *other;
    chain(seed, UINT32_MAX, true, &n, &built, &text);
    bool partial_later[STEPS + 1] = {false};
    for (u32 k = n; k-- > 0;) partial_later[k] = partial_later[k + 1] || kinds[k] == STEP_PARTIAL;
    for (u32 k = 0; built && k < n; k++) {
      if (kinds[k] == STEP_ALL_REDUCE && partial_later[k]) continue;
      tried++;
      bool ok = chain(seed, k, true, &unused, &built, &other);
      CHECK_MSG(!ok, "seed %llu: arrives without step %u: %s", (unsigned long long)seed, k, text);
      free((char *)(uintptr_t)other);
    }
    free((char *)(uintptr_t)text);
  }
  CHECK_MSG(tried > 400, "only %u steps were left out", tried);
}

TEST(moves_sends_arrive) {
  for (u64 seed = 1; seed <= 400; seed++) {
    R = seed;
    begin();
    group g = random_group("a", 0), h = random_group("b", few(2) ? 0 : 40); // the same ranks or others
    layout l[3] = {random_layout(g, false, RED_SUM), random_layout(h, false, RED_SUM),
                   random_layout(g, false, RED_SUM)};
    value x = func_param(P, P->main, typed(l[0], g), sym_of(C, "x"), ROLE_INPUT);
    value y = emit1(OP_send, emit1(OP_send, x, typed(l[1], h), NULL), typed(l[2], g), NULL);
    eval_array in = random_input();
    CHECK_MSG(arrives(y, &in), "seed %llu: %s %s", (unsigned long long)seed, shown(l, 3), diag_render(C, A));
    end();
  }
}

// ---- plain sends and receives ------------------------------------------------------------------------------

// What member m has of the new piece, element by element.
static i64 held(group g, u32 m, layout from, layout to, i64 *piece) {
  coords c;
  i64 index[DIM], n[2], both = 1;
  coords_of(P->sp, g, m, NULL, &c);
  *piece = 1;
  for (u8 d = 0; d < 2; d++) {
    bool has[DIM] = {false};
    n[0] = layout_index(P->sp, from, d, DIM, &c, index);
    for (i64 k = 0; k < n[0]; k++) has[index[k]] = true;
    n[1] = layout_index(P->sp, to, d, DIM, &c, index);
    i64 x = 0;
    for (i64 k = 0; k < n[1]; k++) x += has[index[k]];
    both *= x, *piece *= n[1];
  }
  return both;
}

static bool counts_right(group g, layout from, const layout_step *s) {
  const i64 dims[] = {DIM, DIM};
  const bool sum = layout_part_of(P->sp, from, s->axis[0]) != RED_NONE;
  const u32 ways = group_offsets(P->sp, g, s->axis, s->naxes, NULL, 0);
  i64 most = 0;
  for (u32 m = 0; m < group_get(P->sp, g)->nranks; m++) {
    i64 piece, has = held(g, m, from, s->to, &piece);
    most = MAX(most, sum ? piece * (ways - 1) : piece - has);
  }
  return most == layout_exchanged_elems(P->sp, g, 2, dims, from, s->to, s->axis, s->naxes);
}

// From one random layout to another by a plain path, `without` one step.
static bool plain(u64 seed, u32 without, u32 *n, layout_step steps[PLAIN_STEPS]) {
  R = seed;
  begin();
  const group g = random_group("a", 0);
  const i64 dims[] = {DIM, DIM};
  layout l[2 + PLAIN_STEPS] = {{0}, random_layout(g, true, RED_SUM)}, to = random_layout(g, false, RED_SUM);
  value y = func_param(P, P->main, typed(l[0], g), sym_of(C, "x"), ROLE_INPUT);
  layout_step first[PLAIN_STEPS];
  const int m = layout_plain_path(P->sp, g, 2, dims, l[0], l[1], first),
            k = layout_plain_path(P->sp, g, 2, dims, l[1], to, steps);
  bool ok = m >= 0 && k >= 0;
  for (int j = 0; j < m; j++) y = emit1(step_op(first[j].kind), y, typed(first[j].to, g), &first[j]);
  for (int j = 0; ok && j < k; j++) {
    CHECK(steps[j].kind != STEP_EXCHANGE || counts_right(g, l[1 + j], &steps[j]));
    y = emit1((u32)j == without ? OP_identity : step_op(steps[j].kind), y, typed(l[2 + j] = steps[j].to, g),
              (u32)j == without ? NULL : &steps[j]);
  }
  eval_array in = random_input();
  ok = ok && arrives(y, &in);
  *n = k < 0 ? 0 : (u32)k;
  if (!ok && without == UINT32_MAX)
    printf("seed %llu: %s\n%s\n", (unsigned long long)seed, shown(l, 2 + *n), diag_render(C, A));
  end();
  return ok;
}

TEST(moves_plain_paths_arrive_and_are_counted) {
  u32 exchanges = 0, left_out = 0;
  for (u64 seed = 1; seed <= 600; seed++) {
    layout_step steps[PLAIN_STEPS], unused[PLAIN_STEPS];
    u32 n, same;
    CHECK(plain(seed, UINT32_MAX, &n, steps));
    for (u32 k = 0; k < n; k++) {
      exchanges += steps[k].kind == STEP_EXCHANGE;
      CHECK(steps[k].kind <= STEP_PARTIAL || steps[k].kind == STEP_EXCHANGE);
      left_out++;
      CHECK_MSG(!plain(seed, k, &same, unused), "seed %llu: arrives without step %u",
                (unsigned long long)seed, k);
    }
  }
  CHECK_MSG(exchanges > 300 && left_out > 400, "%u exchanges, %u left out", exchanges, left_out);
}

// A value arrives as it left, whatever both ends hold and however it is brought there.
TEST(moves_routes_arrive_however_they_are_made) {
  u32 differ = 0;
  for (u64 seed = 1; seed <= 300; seed++) {
    double cost[MATERIALISE_WAYS];
    for (materialise_way how = 0; how < MATERIALISE_WAYS; how++) {
      R = seed;
      begin();
      const group g = random_group("a", 0), h = random_group("b", few(4) ? 40 : 0);
      const layout from = random_layout(g, true, RED_SUM), want = random_layout(h, false, RED_SUM);
      const shape s = {.t = DT_I64, .nd = 2, .dim = {DIM, DIM}};
      value y = func_param(P, P->main, typed((layout){0}, g), sym_of(C, "x"), ROLE_INPUT);
      const route r = route_find(P, &s, g, from, h, want, how, NULL);
      y = plan_move(P, P->main, y, g, from, how, NULL);
      y = plan_move(P, P->main, y, h, want, how, NULL);
      REQUIRE(y);
      const layout back = {0};
      y = emit1(OP_send, y, typed(back, g), NULL);
      eval_array in = random_input();
      CHECK_MSG(arrives(y, &in), "seed %llu, way %d: %s", (unsigned long long)seed, (int)how,
                diag_render(C, A));
      cost[how] = r.cost;
      end();
    }
    CHECK_MSG(cost[MATERIALISE_INTER] <= cost[MATERIALISE_INTRA], "seed %llu", (unsigned long long)seed);
    differ += cost[MATERIALISE_INTER] < cost[MATERIALISE_INTRA];
  }
  CHECK_MSG(differ > 100, "only %u routes are better than the plain one", differ);
}
