// amp.c - plans that AMP (NeurIPS 2022) ran on 16 GPUs, beside what they take when their layers have its measured
// times: do we rank them as the machines did?
//
// From its files: GPT-2 of 24 layers, hidden 1024, 1,024 tokens, batch 32, fp16, Adam; the cuts of every plan
// in its list of 30 operators (two before the blocks, four behind them); forward seconds of every operator at
// one sample on V100 and T4, by tensor degree; backward is twice the forward, as it assumes; links. More
// samples than one take what the cost model adds, since nothing else was measured. The first node is the T4
// node or the last: its list of links ends with the T4 node, and so does ours.
//
// Its runs reduce gradients in f32, which no choice here says: f16 moves half as many bytes, f32 prices
// products and sends of f32 instead. Both are printed; f16 is judged.
#include "run.h"

static const char *const devices = "name: nodes\n"
                                   "about: four nodes of four\n"
                                   "devices:\n"
                                   "  p3: {like: v100-16gb}\n"
                                   "  g4: {like: t4}\n"
                                   "fabric: {efficiency: 1}\n"
                                   "nodes:\n";
static const char *node(arena *a, u32 count, const char *kind, u32 between, u32 inside) {
  return arena_printf(a, "  - {count: %u, devices: 4 %s, link: switch %u Gb/s, nics: %u Gb/s}\n", count, kind,
                      inside, between);
}

enum { BEFORE = 2, BLOCKS = 24, BEHIND = 4, ALL = BEFORE + BLOCKS + BEHIND };
static bool times_of(ctx *c, arena *a, const char **out) {
  static const struct { const char *kind, *key; } kinds[] = {{"p3", "P3"}, {"g4", "G4"}};
  const json *j = json_data(c, a, "hetero/amp_known_layer_forward_s.json");
  strbuf b = {.a = a};
  sb_fmt(&b, "layer,device,samples,tensor,forward_us,backward_us\n");
  for (u32 k = 0; j && k < COUNT_OF(kinds); k++)
    for (u32 tp = 1; tp <= 4; tp *= 2) {
      const json *x = json_get(j, arena_printf(a, "gpt2_%s_%u", kinds[k].key, tp));
      double us[3] = {0};
      if (!x || x->n != ALL) return false;
      for (u32 i = 0; i < ALL; i++)
        if (i < BEFORE)
          us[0] += x->item[i].num * 1e6;
        else if (i < BEFORE + BLOCKS)
          us[1] += x->item[i].num * 1e6 / BLOCKS;
        else
          us[2] += x->item[i].num * 1e6;
      for (u32 part = 0; part < 3; part++)
        sb_fmt(&b, "%s,%s,1,%u,%.3f,%.3f\n",
               part == 0   ? "first"
               : part == 1 ? "layer"
                           : "last",
               kinds[k].kind, tp, us[part], 2 * us[part]);
    }
  *out = sb_str(&b);
  return j != NULL;
}

// "6/6/6/6" of its cuts in operators, or NULL: some stage has no block.
static const char *layers_of(arena *a, const char *cuts) {
  strbuf b = {.a = a};
  long from = strtol(cuts, (char **)&cuts, 10);
  bool empty = false;
  while (*cuts == '|') {
    const long to = strtol(cuts + 1, (char **)&cuts, 10);
    const long blocks = MIN(to, BEFORE + BLOCKS) - MAX(from, BEFORE);
    empty |= blocks < 1;
    sb_fmt(&b, "%s%ld", b.n ? "/" : "", blocks);
    from = to;
  }
  return empty ? NULL : sb_str(&b);
}

typedef struct {
  double rho, theirs, regret, theirs_regret;
  u32 n, refused; // of plans that ran
} ranking;

static double first_of(const double *by, const double *measured, u32 n) { // over the best
  u32 least = 0;
  double best = INFINITY;
  for (u32 i = 0; i < n; i++) {
    if (by[i] < by[least]) least = i;
    best = fmin(best, measured[i]);
  }
  return n ? measured[least] / best : NAN;
}

static ranking rank(arena *a, const table *t, const char *nodes, const char *times, bool half, bool print) {
  ranking r = {0};
  double *ours = NEWN(a, double, t->rows), *measured = NEWN(a, double, t->rows),
         *theirs = NEWN(a, double, t->rows);
  for (u32 i = 0; i < t->rows; i++) {
    const u32 pp = (u32)table_number(t, i, "pp");
    const double s = table_number(t, i, "measured_s");
    const char *layers = layers_of(a, table_text(t, i, "cuts"));
    const bool ran = isfinite(s);
    const setting_opts o = {.model = "gpt2-medium",
                            .machine = "nodes",
                            .machine_text = nodes,
                            .times = times,
                            .half = half,
                            .optim = OPTIM_ADAM,
                            .batch = 32,
                            .seq = 1024};
    const char *line = arena_printf(a, "dp=%s tp=%s pp=%u mbs=%s%s", table_text(t, i, "dp"),
                                    table_text(t, i, "tp"), pp, table_text(t, i, "micro_batch"),
                                    pp > 1 && layers ? arena_printf(a, " layers=%s", layers) : "");
    const outcome x = layers ? run_once(&o, STAGE_FIRST, line) : (outcome){0};
    if (print)
      printf("  %-46s measured %6.2f, AMP's %6.2f, ours %6.2f%s\n", line, s,
             table_number(t, i, "predicted_s"), x.s, layers ? "" : " (a stage without a block)");
    if (!ran) continue;
    if (!x.ok) {
      r.refused++;
      continue;
    }
    ours[r.n] = x.s, measured[r.n] = s, theirs[r.n] = table_number(t, i, "predicted_s");
    r.n++;
  }
  r.rho = spearman(a, ours, measured, r.n), r.theirs = spearman(a, theirs, measured, r.n);
  r.regret = first_of(ours, measured, r.n) - 1, r.theirs_regret = first_of(theirs, measured, r.n) - 1;
  return r;
}

static void compare(arena *a, verdict *v, const char *what, const char *file, const char *nodes,
                    const char *other, const char *times, double rho) {
  table *t = table_read(a, file);
  if (!t) {
    printf("skipped: %s, no data\n", what);
    v->skipped++;
    return;
  }
  const bool rows = getenv("REPRODUCE_ROWS") != NULL;
  const ranking r = rank(a, t, nodes, times, true, rows), wide = rank(a, t, nodes, times, false, false);
  require(v, !r.refused, "%s: of %u plans that ran %u refused", what, r.n + r.refused, r.refused);
  require(v, r.rho >= rho, "%s: Spearman %.3f, at least %.2f; AMP's own %.3f; as f32 %.3f", what, r.rho, rho,
          r.theirs, wide.rho);
  require(v, r.regret <= 0.05,
          "%s: our first is %.1f %% slower than the fastest, at most 5 %%; AMP's %.1f %%; as f32 "
          "%.1f %%",
          what, 100 * r.regret, 100 * r.theirs_regret, 100 * wide.regret);
  if (!other) return;
  const ranking first = rank(a, t, other, times, true, false),
                wide_first = rank(a, t, other, times, false, false);
  printf("       were the T4 node the first: Spearman %.3f, regret %.1f %%; as f32 %.3f, %.1f %%\n",
         first.rho, 100 * first.regret, wide_first.rho, 100 * wide_first.regret);
}

void reproduce_amp(ctx *c, verdict *v) {
  arena *a = ctx_arena(c);
  const char *times;
  printf("== AMP's runs of GPT-2, its measured times of layers as prices\n");
  if (!times_of(c, a, &times)) {
    diag_clear(c);
    printf("skipped: no data (HEDDLE_DATA says where it is)\n\n");
    v->skipped++;
    return;
  }
  const char *p3 = node(a, 3, "p3", 10, 170), *g4 = node(a, 1, "g4", 50, 50);
  compare(a, v, "mixed cluster", "hetero/amp_het_cluster.csv", arena_printf(a, "%s%s%s", devices, p3, g4),
          arena_printf(a, "%s%s%s", devices, g4, p3), times, 0.80);
  compare(a, v, "homogeneous", "hetero/amp_homogeneous.csv",
          arena_printf(a, "%s%s", devices, node(a, 4, "g4", 50, 50)), NULL, times, 0.95);
  printf("skipped: mixed model, whose widths AMP does not say\n\n");
  v->skipped++;
}
