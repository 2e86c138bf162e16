// test_layout_path.c - ways between layouts: against published shortest paths, against a search that tries
// everything, and step by step.
#include "layout/layout.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static struct {
  ctx *c;
  space *s;
  u64 seed;
} t;

static void open_space(void) {
  t.c = ctx_new();
  t.s = space_new(t.c, ctx_arena(t.c));
  t.seed = 1;
}

static void close_space(void) { ctx_free(t.c); }

static u8 axis(const char *name, u32 size) { return axis_add(t.s, sym_of(t.c, name), size, false); }

static u32 pick(u32 n) { return (u32)(rng_next(&t.seed) % n); }

static layout parsed(const char *text, u32 *nd, i64 *dims) {
  layout l = {0};
  const char *error;
  bool ok = layout_parse(t.s, &text, nd, dims, &l, &error);
  CHECK_MSG(ok && *text == 0, "%s at '%s'", ok ? "read too little" : error, text);
  return l;
}

static const char *const kind_name[] = {"shard",          "partial",    "all_gather", "all_reduce",
                                        "reduce_scatter", "all_to_all", "permute"};

// "all_reduce a,b -> [8]; shard a -> [8{a}]"
static const char *way_text(const layout_step *step, int n, u32 nd, const i64 *dims) {
  strbuf b = {.a = ctx_arena(t.c)};
  for (int i = 0; i < n; i++) {
    sb_fmt(&b, "%s%s", i ? "; " : "", kind_name[step[i].kind]);
    for (u32 k = 0; k < step[i].naxes; k++)
      sb_fmt(&b, "%c%s", k ? ',' : ' ', sym_str(t.c, axis_get(t.s, step[i].axis[k])->name));
    sb_put(&b, " -> ");
    layout_print(t.s, step[i].to, nd, dims, &b);
  }
  return n < 0 ? "none" : sb_str(&b);
}

// ---- the published paths: [devices, [R,V,D1,D2,D3], [R,V,D1,D2,D3], path, cost] ------------------------

// Their tensor has 2^24 elements: gathering 2 ways from 4 pieces moves 4,194,304 of them. The extents do not
// show, only that each divides by 8.
static const i64 golden_dims[3] = {256, 256, 256};

static const json *golden(void) {
  const char *path = test_data("rvd/intra_paths.json");
  file_view f;
  if (!file_map(t.c, path, &f)) return NULL;
  const json *j = json_parse(t.c, ctx_arena(t.c), (sym){0}, (const char *)f.data, f.size);
  file_unmap(&f);
  return j;
}

static void numbers(const json *j, u32 *out, u32 n) {
  for (u32 i = 0; i < n; i++) out[i] = (u32)j->item[i].num;
}

static u32 state_index(const rvd_graph *g, const u32 *x) {
  for (u32 i = 0; i < g->n; i++)
    if (memcmp(g->state + i * (2 + g->nd), x, (2 + g->nd) * sizeof *x) == 0) return i;
  return g->n;
}

TEST(layout_published_costs) {
  test_data("rvd/intra_paths.json");
  open_space();
  const json *j = golden();
  REQUIRE(j);
  rvd_graph g[2] = {rvd_all_paths(ctx_arena(t.c), 4, 3, golden_dims, step_cost_elements, NULL),
                    rvd_all_paths(ctx_arena(t.c), 8, 3, golden_dims, step_cost_elements, NULL)};
  CHECK_EQ_I64(g[0].n, 15);
  CHECK_EQ_I64(g[1].n, 35);
  CHECK_EQ_I64(j->n, 15 * 14 + 35 * 34);
  for (u32 k = 0; k < j->n; k++) {
    const json *row = &j->item[k];
    const rvd_graph *r = &g[row->item[0].num == 8];
    u32 from[5], to[5];
    numbers(&row->item[1], from, 5);
    numbers(&row->item[2], to, 5);
    u32 a = state_index(r, from), b = state_index(r, to);
    REQUIRE(a < r->n && b < r->n);
    CHECK(r->cost[a * r->n + b] == row->item[4].num);
    u32 steps = 0;
    for (u32 x = a; x != b && x < r->n; x = r->next[x * r->n + b]) steps++;
    CHECK(steps < row->item[3].n);
  }
  close_space();
}

// A named layout of a state: the axes of size 2 in `order` are dealt to R, V, D1.., those of one dimension
// major first.
static layout named(const u32 *state, const u8 *order) {
  layout l = {0};
  u32 k = 0;
  for (u32 r = 0; r < 5; r++)
    for (u32 n = 1; n < state[r]; n *= 2, k++) {
      if (r == 1) l = layout_with_part(t.s, l, order[k], RED_SUM);
      if (r >= 2)
        l = layout_with_split(t.s, l, order[k], (u8)(r - 2), layout_next_stride(t.s, l, (u8)(r - 2), 256, 2));
    }
  return l;
}

// The cheapest way to the state, whatever the names of its axes.
static double best_naming(group g, layout from, const u32 *state, u8 *x, u32 n) {
  static const u8 order[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
  double best = INFINITY, cost;
  for (u32 i = 0; i < (n == 3 ? 6 : 2); i++) {
    u8 axes[3] = {x[order[i][0]], x[order[i][1]], n == 3 ? x[order[i][2]] : 0};
    layout_step step[16];
    int got = layout_path(t.s, g, 3, golden_dims, from, named(state, axes), step_cost_elements, NULL, step,
                          16, &cost);
    CHECK(got >= 0);
    best = MIN(best, cost);
  }
  return best;
}

TEST(layout_published_costs_by_name) {
  test_data("rvd/intra_paths.json");
  open_space();
  u8 x[3] = {axis("a", 2), axis("b", 2), axis("c", 2)};
  group g4 = group_all(t.s, mesh_add(t.s, sym_of(t.c, "m4"), x, 2, 0, NULL));
  group g8 = group_all(t.s, mesh_add(t.s, sym_of(t.c, "m8"), x, 3, 0, NULL));
  const json *j = golden();
  REQUIRE(j);
  u32 less = 0, more = 0;
  for (u32 k = 0; k < j->n; k++) {
    const json *row = &j->item[k];
    u32 from[5], to[5], n = row->item[0].num == 8 ? 3 : 2;
    numbers(&row->item[1], from, 5);
    numbers(&row->item[2], to, 5);
    double cost = best_naming(n == 3 ? g8 : g4, named(from, x), to, x, n);
    less += cost < row->item[4].num;
    more += cost > row->item[4].num;
    CHECK_MSG(cost == row->item[4].num,
              "%u devices, (%u,%u,%u,%u,%u) to (%u,%u,%u,%u,%u): %.0f, published %.0f", 1u << n, from[0],
              from[1], from[2], from[3], from[4], to[0], to[1], to[2], to[3], to[4], cost, row->item[4].num);
  }
  CHECK_EQ_I64(less, 0);
  CHECK_EQ_I64(more, 0);
  close_space();
}

// ---- a search that tries everything --------------------------------------------------------------------

enum { STATES_MAX = 3000 };

static struct {
  group g;
  u8 x[3];
  u32 n, nd;
  i64 dims[3];
  layout l[STATES_MAX]; // all layouts of the axes, with every stride
  double dist[STATES_MAX];
  u32 count;
} e;

static bool same_split(const lay_split *p, const lay_split *q) {
  return !p == !q && (!p || (p->dim == q->dim && p->stride == q->stride));
}

// 0 replicated, 1 partial, 2 + d split of d
static int class_of(layout l, u8 a) {
  const lay_split *p = layout_split_of(t.s, l, a);
  return p ? 2 + p->dim : layout_part_of(t.s, l, a) ? 1 : 0;
}

static u32 changed(layout x, layout y, u8 *axes) {
  u32 n = 0;
  for (u32 i = 0; i < e.n; i++)
    if (class_of(x, e.x[i]) != class_of(y, e.x[i]) ||
        !same_split(layout_split_of(t.s, x, e.x[i]), layout_split_of(t.s, y, e.x[i])))
      axes[n++] = e.x[i];
  return n;
}

// Do these axes leave one class together for one other?
static bool together(layout x, layout y, const u8 *axes, u32 n, step_kind *kind) {
  int from = class_of(x, axes[0]), to = class_of(y, axes[0]);
  for (u32 i = 1; i < n; i++)
    if (class_of(x, axes[i]) != from || class_of(y, axes[i]) != to) return false;
  *kind = from >= 2 ? to ? STEP_ALL_TO_ALL : STEP_ALL_GATHER
          : from    ? to ? STEP_REDUCE_SCATTER : STEP_ALL_REDUCE
          : to >= 2 ? STEP_SHARD
                    : STEP_PARTIAL;
  return to != 1 || from == 0;
}

// Is every old place, replicated or a split, the new place of one of these axes?
static bool permuted(layout x, layout y, const u8 *axes, u32 n) {
  u32 used = 0;
  for (u32 i = 0; i < n; i++) {
    u32 k = 0;
    if (class_of(x, axes[i]) == 1 || class_of(y, axes[i]) == 1) return false;
    while (k < n && (used >> k & 1 || axis_size(t.s, axes[i]) != axis_size(t.s, axes[k]) ||
                     !same_split(layout_split_of(t.s, x, axes[i]), layout_split_of(t.s, y, axes[k]))))
      k++;
    if (k == n) return false;
    used |= 1u << k;
  }
  return true;
}

static double cost_of(layout x, layout y, step_kind kind, const u8 *axes, u32 n, step_cost *cost_fn) {
  u32 ways = 1;
  for (u32 i = 0; i < n; i++) ways *= axis_size(t.s, axes[i]);
  return cost_fn(NULL, kind, axes, n, ways, layout_local_elems(t.s, x, e.nd, e.dims),
                 layout_local_elems(t.s, y, e.nd, e.dims));
}

static void enumerate(void) {
  e.count = 1;
  for (u32 i = 0; i < e.n; i++)
    for (u32 k = 0, had = e.count; k < had; k++) {
      e.l[e.count++] = layout_with_part(t.s, e.l[k], e.x[i], RED_SUM);
      for (u8 d = 0; d < e.nd; d++)
        for (i64 stride = 1; stride <= e.dims[d]; stride++) {
          REQUIRE(e.count < STATES_MAX);
          e.l[e.count] = layout_with_split(t.s, e.l[k], e.x[i], d, stride);
          e.count += layout_fits(t.s, e.l[e.count], e.nd, e.dims);
        }
    }
}

static void try_everything(u32 from, step_cost *cost_fn) {
  bool done[STATES_MAX] = {0};
  for (u32 i = 0; i < e.count; i++) e.dist[i] = i == from ? 0 : INFINITY;
  for (;;) {
    u32 u = e.count, n;
    for (u32 i = 0; i < e.count; i++)
      if (!done[i] && (u == e.count || e.dist[i] < e.dist[u])) u = i;
    if (u == e.count) return;
    done[u] = true;
    for (u32 v = 0; v < e.count; v++) {
      step_kind kind;
      u8 axes[3];
      if (done[v] || !(n = changed(e.l[u], e.l[v], axes))) continue;
      if (!together(e.l[u], e.l[v], axes, n, &kind)) {
        if (!permuted(e.l[u], e.l[v], axes, n)) continue;
        kind = STEP_PERMUTE;
      }
      e.dist[v] = MIN(e.dist[v], e.dist[u] + cost_of(e.l[u], e.l[v], kind, axes, n, cost_fn));
    }
  }
}

// The first axis crosses a link ten times slower than the others'; each step that moves something has a
// latency.
static double machine_cost(void *arg, step_kind kind, const u8 *axes, u32 naxes, u32 n, i64 in, i64 out) {
  bool slow = false;
  for (u32 i = 0; i < naxes; i++) slow = slow || axes[i] == 1;
  return (step_cost_elements(arg, kind, axes, naxes, n, in, out) - 1) * (slow ? 10 : 1) +
         (kind == STEP_SHARD || kind == STEP_PARTIAL ? 0 : 3);
}

// Are all strides the most major ones, one after the other?
static bool natural(layout l) {
  const layout_info *x = layout_get(t.s, l);
  i64 left[3] = {e.dims[0], e.dims[1], e.dims[2]};
  for (u32 i = 0; i < x->nsplit; i++) {
    left[x->split[i].dim] /= axis_size(t.s, x->split[i].axis);
    if (x->split[i].stride != left[x->split[i].dim]) return false;
  }
  return true;
}

// What every member needs after a step was held by members that differ from it in the step's axes only; after
// a step without traffic, by itself.
static void check_local(group g, u32 nd, const i64 *dims, layout before, const layout_step *step) {
  enum { ELEMS = 4096 };
  u32 members = group_get(t.s, g)->nranks, offset[64],
      n = group_offsets(t.s, g, step->axis, step->naxes, offset, 64);
  REQUIRE(n <= 64);
  for (u32 k = 0; k < members; k++) {
    bool held[ELEMS] = {0};
    u32 lead = group_lead(t.s, g, k, step->axis, step->naxes);
    for (u32 i = 0; i <= n; i++) { // the givers, then the taker
      bool taker = i == n;
      if (!taker && (step->kind == STEP_SHARD || step->kind == STEP_PARTIAL) && lead + offset[i] != k)
        continue;
      i64 index[3][128], count[3] = {1, 1, 1}, total = 1;
      coords c;
      coords_of(t.s, g, taker ? k : lead + offset[i], NULL, &c);
      for (u32 d = 0; d < 3; d++) index[d][0] = 0;
      for (u32 d = 0; d < nd; d++)
        count[d] = layout_index(t.s, taker ? step->to : before, (u8)d, dims[d], &c, index[d]);
      for (u32 d = 0; d < nd; d++) total *= dims[d];
      REQUIRE(total <= ELEMS);
      for (i64 a = 0; a < count[0]; a++)
        for (i64 b = 0; b < count[1]; b++)
          for (i64 x = 0; x < count[2]; x++) {
            i64 at =
                (index[0][a] * (nd > 1 ? dims[1] : 1) + index[1][b]) * (nd > 2 ? dims[2] : 1) + index[2][x];
            if (taker)
              CHECK(held[at]);
            else
              held[at] = true;
          }
    }
  }
}

// Every step of the way is what it says it is, and they add up.
static void check_way(u32 from, u32 to, const layout_step *step, int n, step_cost *cost_fn, double cost) {
  layout at = e.l[from];
  double sum = 0;
  CHECK(n >= 0);
  for (int i = 0; i < n; i++) {
    u8 axes[3];
    step_kind kind;
    u32 k = changed(at, step[i].to, axes);
    bool right = step[i].kind == STEP_PERMUTE
                     ? permuted(at, step[i].to, axes, k)
                     : together(at, step[i].to, axes, k, &kind) && kind == step[i].kind;
    CHECK_MSG(right && k == step[i].naxes && layout_fits(t.s, step[i].to, e.nd, e.dims), "%s",
              way_text(step, n, e.nd, e.dims));
    if (pick(50) == 0) check_local(e.g, e.nd, e.dims, at, &step[i]);
    sum += cost_of(at, step[i].to, step[i].kind, axes, k, cost_fn);
    at = step[i].to;
  }
  CHECK_EQ_I64(at.i, e.l[to].i);
  CHECK_CLOSE(cost, sum, 1e-12);
}

// Pairs by number of axes that change, those whose way costs more than it must, and by how much on average.
typedef struct {
  u32 pairs[4], worse[4];
  double gap[4];
} tally;

static void compare(u32 from, step_cost *cost_fn, bool only_natural, tally *sum) {
  try_everything(from, cost_fn);
  for (u32 i = 0; i < e.count; i++) {
    layout_step step[16];
    u8 axes[3];
    double cost;
    u32 n = changed(e.l[from], e.l[i], axes);
    if (only_natural && !natural(e.l[i])) continue;
    int k = layout_path(t.s, e.g, e.nd, e.dims, e.l[from], e.l[i], cost_fn, NULL, step, 16, &cost);
    check_way(from, i, step, k, cost_fn, cost);
    CHECK(cost >= e.dist[i] * (1 - 1e-12));
    sum->pairs[n]++;
    if (cost <= e.dist[i] * (1 + 1e-12)) continue;
    sum->worse[n]++;
    sum->gap[n] += cost / e.dist[i] - 1;
  }
}

// HEDDLE_ROUNDS=100 gives the counts of docs/design/layouts.md.
static u32 rounds(u32 usual) {
  const char *wanted = getenv("HEDDLE_ROUNDS");
  return wanted ? (u32)atoi(wanted) : usual;
}

static void show(const char *what, const tally *x) {
  for (u32 n = 1; n <= 3 && getenv("HEDDLE_ROUNDS"); n++)
    printf("%s, %u change: %u of %u dearer, mean excess %.3f %%\n", what, n, x->worse[n], x->pairs[n],
           100 * x->gap[n] / MAX(x->pairs[n], 1u));
}

static void open_axes(void) {
  open_space();
  e.x[0] = axis("a", 2), e.x[1] = axis("b", 2), e.x[2] = axis("c", 4);
}

static void choose_shape(const i64 *dims, u32 round) {
  e.nd = 1 + pick(3);
  e.n = e.nd == 3 ? 2 : 2 + pick(2);
  memcpy(e.dims, dims, sizeof e.dims);
  e.g = group_all(t.s, mesh_add(t.s, sym_fmt(t.c, "m%u", round), e.x, e.n, 0, NULL));
  enumerate();
}

// Extents with room, strides as they come: what plans are made of.
TEST(layout_path_is_cheapest) {
  static const i64 shape[][3] = {{16, 16, 4}, {64, 16, 4}};
  tally elements = {0}, machine = {0};
  open_axes();
  for (u32 round = 0; round < rounds(8); round++) {
    choose_shape(shape[pick(2)], round);
    u32 from = pick(e.count);
    while (!natural(e.l[from])) from = pick(e.count);
    compare(from, step_cost_elements, true, &elements);
    compare(from, machine_cost, true, &machine);
  }
  show("elements", &elements);
  show("machine", &machine);
  CHECK_EQ_I64(elements.worse[1] + machine.worse[1], 0);
  CHECK(elements.pairs[2] > 100 && elements.gap[2] < 0.01 * elements.pairs[2]);
  CHECK(machine.pairs[2] > 100 && machine.gap[2] < 0.02 * machine.pairs[2]);
  close_space();
}

// Extents without room and odd strides: legal, and seldom dear.
TEST(layout_path_in_tight_places) {
  static const i64 shape[][3] = {{8, 8, 8}, {2, 8, 1}, {4, 4, 1}, {2, 2, 4},
                                 {6, 4, 2}, {4, 1, 1}, {24, 1, 1}};
  tally elements = {0}, machine = {0};
  open_axes();
  for (u32 round = 0; round < rounds(20); round++) {
    choose_shape(shape[pick(COUNT_OF(shape))], round);
    u32 from = pick(e.count);
    compare(from, step_cost_elements, false, &elements);
    compare(from, machine_cost, false, &machine);
  }
  show("elements, tight", &elements);
  show("machine, tight", &machine);
  CHECK_EQ_I64(elements.worse[1], 0);
  CHECK(elements.gap[2] < 0.02 * elements.pairs[2] && machine.gap[2] < 0.03 * machine.pairs[2]);
  close_space();
}

// ---- single ways -------------------------------------------------------------------------------------

typedef struct {
  const char *from, *to, *way;
  double cost;
} way_row;

static void check_rows(group g, const way_row *row, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u32 nd;
    i64 dims[DIMS_MAX];
    layout from = parsed(row[i].from, &nd, dims), to = parsed(row[i].to, &nd, dims);
    layout_step step[16];
    double cost;
    int k = layout_path(t.s, g, nd, dims, from, to, step_cost_elements, NULL, step, 16, &cost);
    CHECK_STR(way_text(step, k, nd, dims), row[i].way);
    for (int j = 0; j < k && g.i; j++) check_local(g, nd, dims, j ? step[j - 1].to : from, &step[j]);
    CHECK_CLOSE(cost, row[i].cost, 1e-12);
    if (k > 0)
      CHECK_EQ_I64(layout_path(t.s, g, nd, dims, from, to, step_cost_elements, NULL, step, (u32)k - 1, &cost),
                   -1);
  }
}

TEST(layout_path_ways) {
  open_space();
  u8 pp = axis("pp", 4), dp = axis("dp", 3), tp = axis("tp", 2);
  axis_add(t.s, sym_of(t.c, "mb"), 2, true);
  axis("off", 2);
  mesh m = mesh_add(t.s, sym_of(t.c, "m"), (u8[]){pp, dp, tp}, 3, 0, NULL);
  group all = group_all(t.s, m), stage = group_fix(t.s, all, pp, 1);
  group ends = group_of(t.s, m, (group_axis[]){{.axis = pp, .at = -2, .nonly = 2, .only = (u32[]){0, 3}}}, 1);
  static const way_row in_stage[] = {
      {"[12{dp},8]", "[12{dp},8]", "", 0},
      {"[12{dp},8]+tp", "[12{dp},8]", "all_reduce tp -> [12{dp},8]", 33},
      {"[12{dp},8]+tp", "[12{dp},8{tp}]", "reduce_scatter tp -> [12{dp},8{tp}]", 17},
      {"[12{dp},8{tp}]", "[12{dp},8]", "all_gather tp -> [12{dp},8]", 17},
      {"[12{dp},8{tp}]", "[12{dp,tp},8]", "all_to_all tp -> [12{dp,tp},8]", 9},
      {"[12{dp},8{tp}]", "[12{dp},8{tp:1}]", "all_to_all tp -> [12{dp},8{tp:1}]", 9},
      {"[12{dp},8]", "[12{dp},8{tp}]", "shard tp -> [12{dp},8{tp}]", 1},
      {"[12,8]", "[12,8]+dp,+tp", "partial dp,tp -> [12,8]+dp,+tp", 1},
      {"[12,8]+dp,+tp", "[12,8]", "all_reduce dp,tp -> [12,8]", 161},
      {"[12{tp,dp},8]", "[12,8]", "all_gather tp,dp -> [12,8]", 81},
      {"[12{dp:1,tp:3},8]", "[12,8]", "all_gather tp,dp -> [12,8]", 81},
      {"[12] max tp", "[12]+tp", "all_reduce tp -> [12]; partial tp -> [12]+tp", 14},
      {"[12{mb}]+tp", "[12{mb}]", "all_reduce tp -> [12{mb}]", 7},
      {"[12{mb}]", "[12]", "none", 0},   // time is joined, not communicated
      {"[12{pp}]", "[12]", "none", 0},   // not of this group
      {"[12{off}]", "[12]", "none", 0},  // not of this mesh
      {"[12{tp:4}]", "[12]", "none", 0}, // does not fit
      {"[12]+pp,+tp", "[12]+pp", "all_reduce tp -> [12]+pp", 13}};
  check_rows(stage, in_stage, COUNT_OF(in_stage));
  // pp has two positions here: it may hold partial sums, and pieces only by a table
  static const way_row in_ends[] = {{"[12]+pp", "[12]", "all_reduce pp -> [12]", 13},
                                    {"[12{pp:0-5|5-12}]", "[12]", "all_gather pp -> [12]", 8}};
  check_rows(ends, in_ends, COUNT_OF(in_ends));
  // axes that replicate are lent
  static const way_row lending[] = {
      {"[96]+pp", "[96]",
       "shard dp,tp -> [96{dp,tp}]+pp; reduce_scatter pp -> [96{dp,tp,pp}]; "
       "all_gather dp,tp,pp -> [96]",
       107},
      {"[96{pp}]", "[96{dp}]",
       "shard dp -> [96{pp,dp}]; all_to_all pp,dp -> [96{dp,pp}]; all_gather pp -> [96{dp}]", 34 + 1.0 / 3}};
  check_rows(all, lending, COUNT_OF(lending));
  // group 0: the axes that the layouts name
  static const way_row anywhere[] = {{"[12,8]+tp", "[12,8]", "all_reduce tp -> [12,8]", 97},
                                     {"[12{off}]", "[12]", "all_gather off -> [12]", 7}};
  check_rows((group){0}, anywhere, COUNT_OF(anywhere));
  close_space();
}

TEST(layout_path_uneven) {
  open_space();
  u8 dp = axis("dp", 3), tp = axis("tp", 2);
  group g = group_all(t.s, mesh_add(t.s, sym_of(t.c, "m"), (u8[]){dp, tp}, 2, 0, NULL));
  static const way_row row[] = {
      {"[12{dp:0-5|5-6|6-12},8]+tp", "[12{dp:0-5|5-6|6-12},8]", "all_reduce tp -> [12{dp:0-5|5-6|6-12},8]",
       49},
      {"[12{dp:0-5|5-6|6-12},8]", "[12,8]", "all_gather dp -> [12,8]", 97},
      {"[12,8]", "[12{dp:0-5|5-6|6-12},8]", "shard dp -> [12{dp:0-5|5-6|6-12},8]", 1},
      {"[12{dp:0-5|5-6|6-12},8]", "[12{dp},8]", "all_to_all dp -> [12{dp},8]", 33},
      {"[12{dp:0-5|5-6|6-12},8]", "[12,8{tp}]",
       "shard tp -> [12{dp:0-5|5-6|6-12},8{tp}]; all_gather dp -> [12,8{tp}]", 50},
      // strides and pieces do not meet on the way
      {"[16{tp},8]+dp", "[16{dp:0-6|6-11|11-16},8]",
       "all_to_all tp -> [16,8{tp}]+dp; reduce_scatter dp -> [16{dp:0-6|6-11|11-16},8{tp}]; "
       "all_gather tp -> [16{dp:0-6|6-11|11-16},8]",
       (32 + 1) + (64 * 2 / 3.0 + 1) + (24 + 1)},
      // an axis is lent a place, but not beside pieces that are yet to come
      {"[16,8]+dp", "[16{dp:0-6|6-11|11-16},8]",
       "shard tp -> [16,8{tp}]+dp; reduce_scatter dp -> [16{dp:0-6|6-11|11-16},8{tp}]; "
       "all_gather tp -> [16{dp:0-6|6-11|11-16},8]",
       1 + (64 * 2 / 3.0 + 1) + (24 + 1)},
      {"[16]+dp", "[16{dp:0-6|6-11|11-16}]", "reduce_scatter dp -> [16{dp:0-6|6-11|11-16}]",
       16 * 2 / 3.0 + 1}};
  check_rows(g, row, COUNT_OF(row));
  close_space();
}

// More axes than can be searched: the way through replication, legal and in time.
TEST(layout_path_of_many_axes) {
  open_space();
  u8 x[MESH_AXES];
  for (u32 i = 0; i < MESH_AXES; i++) x[i] = axis(arena_printf(ctx_arena(t.c), "x%u", i), 2);
  group g = group_all(t.s, mesh_add(t.s, sym_of(t.c, "m"), x, MESH_AXES, 0, NULL));
  i64 dims[8] = {64, 64, 64, 64, 64, 64, 64, 64};
  layout from = {0}, to = {0};
  for (u32 i = 0; i < MESH_AXES; i++) {
    from = layout_with_split(t.s, from, x[i], (u8)(i % 8), layout_next_stride(t.s, from, (u8)(i % 8), 64, 2));
    u8 d = (u8)(i * 5 % 7);
    if (i % 4 == 3)
      to = layout_with_part(t.s, to, x[i], RED_SUM);
    else
      to = layout_with_split(t.s, to, x[i], d, layout_next_stride(t.s, to, d, 64, 2));
  }
  layout_step step[32];
  double cost;
  int n = layout_path(t.s, g, 8, dims, from, to, step_cost_elements, NULL, step, 32, &cost);
  REQUIRE(n > 0);
  CHECK_EQ_I64(step[n - 1].to.i, to.i);
  for (int i = 0; i < n; i++) CHECK(layout_fits(t.s, step[i].to, 8, dims));
  // one that changes, eleven that could be lent
  n = layout_path(t.s, g, 8, dims, layout_with_part(t.s, (layout){0}, x[0], RED_SUM), (layout){0},
                  step_cost_elements, NULL, step, 32, &cost);
  CHECK(n > 0 && cost <= step_cost_elements(NULL, STEP_ALL_REDUCE, x, 1, 2, 1ll << 48, 1ll << 48));
  close_space();
}
