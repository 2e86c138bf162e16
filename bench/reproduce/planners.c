// planners.c - plans that other planners for mixed clusters published: Metis's ranked plans of a model of ten layers
// (ATC 2024) as plan files, where every stage without a layer and every missing layer must be refused; and
// HARP's cut of GPT on two V100 and one A100 (EuroSys 2026) beside ours.
#include "balance/balance.h"
#include "run.h"

enum { LAYERS = 10 };

// A plan file of cuts as layers, such as 0|4|10: a layer is an instruction of main, and the last one has the
// loss. A stage is on as many devices as its group has.
static const char *metis_plan(arena *a, const char *cuts, const char *groups, u32 all) {
  strbuf axes = {.a = a}, meshes = {.a = a}, segments = {.a = a}, order = {.a = a};
  u32 rank = 0, n = 0;
  long from = strtol(cuts, (char **)&cuts, 10);
  while (*groups) {
    const long size = strtol(groups, (char **)&groups, 10);
    const long to = *cuts == '|' ? strtol(cuts + 1, (char **)&cuts, 10) : from;
    sb_fmt(&axes, "%sg%u: %ld", n ? ", " : "", n, size);
    sb_fmt(&meshes, "  m%u: {axes: [g%u], first: %u}\n", n, n, rank);
    sb_fmt(&segments, "  - {from: %ld, to: %ld, on: m%u}\n", from + 1, to == LAYERS ? (long)all : to, n);
    sb_fmt(&order, "  - \"F%u.0\"\n", n);
    rank += (u32)size, from = to, n++;
    groups += *groups == '|';
  }
  return arena_printf(a, "heddle-plan: 1\nname: \"of Metis\"\naxes: {%s}\nmeshes:\n%ssegments:\n%sorder:\n%s",
                      sb_str(&axes), sb_str(&meshes), sb_str(&segments), sb_str(&order));
}

static void metis(arena *a, verdict *v) {
  table *t = table_read(a, "hetero/metis_published_plans_16gpu_T4_A100.csv");
  printf("== Metis's published plans: ten layers on 16 GPUs\n");
  if (!t) {
    printf("skipped: no data (HEDDLE_DATA says where it is)\n\n");
    v->skipped++;
    return;
  }
  setting x;
  setting_open(&x, &(setting_opts){.model = arena_printf(a, "mlp-xs:layers=%d", LAYERS),
                                   .machine = "4x4 t4",
                                   .batch = 128});
  const prog *src = planner_source(x.pl);
  const func_info *main = func_get(src, src->main);
  u32 refused[2] = {0}, of[2] = {0};
  for (u32 i = 0; i < t->rows; i++) {
    const bool defect = *table_text(t, i, "defect") != 0;
    arena *s = arena_new();
    const char *text =
        metis_plan(s, table_text(t, i, "cuts"), table_text(t, i, "device_groups"), main->body.n);
    plan *pn = plan_parse(s, src, NULL, sym_of(x.c, "metis"), text, strlen(text));
    prog *p = pn ? plan_apply(x.pl, pn, x.k) : NULL;
    of[defect]++, refused[defect] += !p;
    if (!p && getenv("REPRODUCE_ROWS"))
      printf("  plan %s: %s\n", table_text(t, i, "rank"), diag_render(x.c, s));
    prog_free(p);
    diag_clear(x.c);
    arena_free(s);
  }
  require(v, refused[1] == of[1], "%u of %u plans with an empty stage or a missing layer are refused",
          refused[1], of[1]);
  require(v, !refused[0], "%u of the %u others are", refused[0], of[0]);
  setting_close(&x);
  printf("\n");
}

// HARP's README, section 4.2: GPT of 24 layers, hidden 1536, 16 heads, 1,024 tokens, vocabulary 51,200, 64
// microbatches; two V100 in one node, one A100 in the other, 0.625 GB/s between them. It cuts 50 operators, two
// of every block and the ends, and prints what both stages take: so an operator takes the same share of each.
static void harp(arena *a, verdict *v) {
  enum { OPERATORS = 50, STAGES = 2 };
  printf("== HARP's case: GPT of 0.76 billion on two V100 and one A100\n");
  table *t = table_read(a, "hetero/harp_cases.csv");
  if (!t) {
    printf("skipped: no data (HEDDLE_DATA says where it is)\n\n");
    v->skipped++;
    return;
  }
  const char *ops = table_text(t, 0, "layer_ops_per_stage"), *cost = table_text(t, 0, "stage_cost_s");
  double slowest = 0;
  i64 *each[STAGES];
  for (u32 k = 0; k < STAGES; k++) {
    const double n = strtod(ops, (char **)&ops), s = strtod(cost, (char **)&cost);
    ops += *ops == '|', cost += *cost == '|';
    each[k] = NEWN(a, i64, OPERATORS);
    for (u32 i = 0; i < OPERATORS; i++) each[k][i] = (i64)(s / n * 1e12);
    slowest = fmax(slowest, s);
    printf("  its stage of %.0f operators on %s takes %.4f s\n", n, k ? "one A100" : "two V100", s);
  }
  const balance_devices one[STAGES] = {{1, INT64_MAX}, {1, INT64_MAX}};
  const balance_line line = {.nlayers = OPERATORS,
                             .nkinds = STAGES,
                             .kind = one,
                             .time_ps = (const i64 *const *)each,
                             .micro = 64,
                             .stages = STAGES};
  balance_cuts cuts;
  if (balance_stages(a, &line, &cuts) != BALANCE_OK) return;
  require(v, (double)cuts.tau_ps * 1e-12 <= slowest * (1 + 1e-9),
          "ours: %u operators on %s, %u on the other; the slower stage %.4f s, its %.4f", cuts.end[0],
          cuts.kind[0] ? "the A100" : "the V100s", OPERATORS - cuts.end[0], (double)cuts.tau_ps * 1e-12,
          slowest);
  printf("\n");
}

void reproduce_planners(ctx *c, verdict *v) {
  metis(ctx_arena(c), v);
  harp(ctx_arena(c), v);
}
