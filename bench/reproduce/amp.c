// amp.c - plans that AMP (NeurIPS 2022) ran on 16 GPUs, beside what they take when their layers have its measured
// times: do we rank them as the machines did?
//
// From its files: GPT-2 of 24 layers, hidden 1024, 1,024 tokens, batch 32, and a generator of images, batch 64;
// fp16, Adam; the cuts of every plan in its list of operators; forward seconds of every operator at one sample
// on V100 and T4, by tensor degree; backward is twice the forward, as it assumes; links. More
// samples than one take what the cost model adds, since nothing else was measured. The first node is the T4
// node or the last: its list of links ends with the T4 node, and so does ours.
//
// Its runs compute in f16 and sum gradients in f32: that is judged. All in f16, and all in f32, are printed beside it.
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

// Its list of operators: which of them are one of our layers, how many there are, and where the blocks stand.
enum { AMP_PARTS = 4 };
typedef struct {
  const char *key; // of its file of times
  u32 nops, nparts;
  struct {
    const char *layer;
    u32 from, to, count;
  } part[AMP_PARTS];
  struct {
    u32 from, to;
  } blocks[2];
} amp_list;
static const amp_list gpt2 = {
    "gpt2", 30, 3, {{"first", 0, 2, 1}, {"layer", 2, 26, 24}, {"last", 26, 30, 1}}, {{2, 26}}};
static const amp_list transgan = {
    "transgan",
    56,
    4,
    {{"first", 0, 3, 1}, {"wide", 3, 41, 12}, {"narrow", 41, 53, 12}, {"last", 53, 56, 1}},
    {{3, 15}, {41, 53}}};

static const char *times_of(ctx *c, arena *a, const amp_list *l) {
  static const struct { const char *kind, *key; } kinds[] = {{"p3", "P3"}, {"g4", "G4"}};
  const json *j = json_data(c, a, "hetero/amp_known_layer_forward_s.json");
  strbuf b = {.a = a};
  sb_fmt(&b, "layer,device,samples,tensor,forward_us,backward_us\n");
  for (u32 k = 0; j && k < COUNT_OF(kinds); k++)
    for (u32 tp = 1; tp <= 4; tp *= 2) {
      const json *x = json_get(j, arena_printf(a, "%s_%s_%u", l->key, kinds[k].key, tp));
      for (u32 p = 0; x && x->n == l->nops && p < l->nparts; p++) {
        double us = 0;
        for (u32 i = l->part[p].from; i < l->part[p].to; i++) us += x->item[i].num * 1e6 / l->part[p].count;
        sb_fmt(&b, "%s,%s,1,%u,%.3f,%.3f\n", l->part[p].layer, kinds[k].kind, tp, us, 2 * us);
      }
    }
  return j ? sb_str(&b) : NULL;
}

// "6/6/6/6" of its cuts in operators, or NULL: some stage has no block.
static const char *layers_of(arena *a, const amp_list *l, const char *cuts) {
  strbuf b = {.a = a};
  long from = strtol(cuts, (char **)&cuts, 10);
  bool empty = false;
  while (*cuts == '|') {
    const long to = strtol(cuts + 1, (char **)&cuts, 10);
    long blocks = 0;
    for (u32 k = 0; k < COUNT_OF(l->blocks); k++)
      blocks += MAX(MIN(to, (long)l->blocks[k].to) - MAX(from, (long)l->blocks[k].from), 0);
    empty |= blocks < 1;
    sb_fmt(&b, "%s%ld", b.n ? "/" : "", blocks);
    from = to;
  }
  return empty ? NULL : sb_str(&b);
}

// Its generator of images: 12 blocks of width 1024 on 81 tokens, then as many elements 16 times over as 256
// windows of 324 tokens, 12 blocks of width 16. Its script says depths 12,0,0,0,0,12, bottom width 9, windows of
// 18 x 18; its code says how the width falls; 4 heads, so that four devices can share them.
static void tower(strbuf *b, const char *name, u32 batch, u32 windows, u32 tokens, u32 width, const char *t) {
  enum { HEADS = 4 };
  const char *x = arena_printf(b->a, "%s[%u,%u,%u,%u]", t, batch, windows, tokens, width);
  const char *h = arena_printf(b->a, "%s[%u,%u,%u,%u,%u]", t, batch, windows, tokens, HEADS, width / HEADS);
  const char *parts =
      arena_printf(b->a, "[%u, %u, %u, %u, %u]", batch, windows, tokens, HEADS, width / HEADS);
  const char *s = arena_printf(b->a, "%s[%u,%u,%u,%u,%u]", t, batch, windows, HEADS, tokens, tokens);
  sb_fmt(b, "func @%s(%%x: %s, %%n1: %s[%u] weight, %%qkv: %s[%u,%u] weight, %%out: %s[%u,%u] weight,", name,
         x, t, width, t, width, 3 * width, t, width, width);
  sb_fmt(b, " %%n2: %s[%u] weight, %%up: %s[%u,%u] weight, %%down: %s[%u,%u] weight) -> (%s) {\n", t, width,
         t, width, 4 * width, t, 4 * width, width, x);
  sb_fmt(b, "  %%a = rmsnorm %%x, %%n1 {eps=1e-8} : %s\n", x);
  sb_fmt(b, "  %%b = matmul %%a, %%qkv : %s[%u,%u,%u,%u]\n", t, batch, windows, tokens, 3 * width);
  sb_fmt(b, "  %%q, %%k, %%v = split %%b {axis=3, sizes=[%u, %u, %u]} : %s, %s, %s\n", width, width, width, x,
         x, x);
  for (const char *v = "qkv"; *v; v++)
    sb_fmt(b, "  %%%c1 = reshape %%%c {shape=%s} : %s\n", *v, *v, parts, h);
  sb_fmt(b, "  %%s = einsum %%q1, %%k1 {law=\"bwshd,bwthd->bwhst\"} : %s\n", s);
  sb_fmt(b, "  %%p = softmax %%s : %s\n", s);
  sb_fmt(b, "  %%c = einsum %%p, %%v1 {law=\"bwhst,bwthd->bwshd\"} : %s\n", h);
  sb_fmt(b, "  %%d = reshape %%c {shape=[%u, %u, %u, %u]} : %s\n", batch, windows, tokens, width, x);
  sb_fmt(b, "  %%e = matmul %%d, %%out : %s\n  %%f = add %%x, %%e : %s\n", x, x);
  sb_fmt(b, "  %%g = rmsnorm %%f, %%n2 {eps=1e-8} : %s\n", x);
  sb_fmt(b, "  %%u = matmul %%g, %%up : %s[%u,%u,%u,%u]\n", t, batch, windows, tokens, 4 * width);
  sb_fmt(b, "  %%w = gelu %%u {approx=0} : %s[%u,%u,%u,%u]\n", t, batch, windows, tokens, 4 * width);
  sb_fmt(b, "  %%y = matmul %%w, %%down : %s\n  %%z = add %%f, %%y : %s\n  return %%z\n}\n", x, x);
}

static const char *generator_text(arena *a, u32 batch, bool half) {
  enum { LATENT = 512, SIDE = 9, WIDE = 1024, NARROW = 16, WINDOW = 18, TIMES = 16, EACH = 12 };
  enum { TOKENS = SIDE * SIDE, LATER = WINDOW * WINDOW, WINDOWS = TOKENS * WIDE * TIMES / LATER / NARROW };
  const char *t = half ? "f16" : "f32";
  strbuf b = {.a = a}, body = {.a = a};
  tower(&b, "wide", batch, 1, TOKENS, WIDE, t);
  tower(&b, "narrow", batch, WINDOWS, LATER, NARROW, t);
  sb_fmt(&b, "func @main(%%latent: %s[%u,%u], %%in: %s[%u,%u] weight, %%rgb: %s[%u,3] weight", t, batch,
         LATENT, t, LATENT, TOKENS * WIDE, t, NARROW);
  sb_fmt(&body, "  %%i = matmul %%latent, %%in : %s[%u,%u]\n", t, batch, TOKENS * WIDE);
  sb_fmt(&body, "  %%h0 = reshape %%i {shape=[%u, 1, %u, %u]} : %s[%u,1,%u,%u]\n", batch, TOKENS, WIDE, t,
         batch, TOKENS, WIDE);
  for (u32 i = 0; i < 2 * EACH; i++) {
    const bool wide = i < EACH;
    const u32 w = wide ? WIDE : NARROW;
    if (i == EACH) {
      sb_fmt(&body, "  %%more = concat");
      for (u32 k = 0; k < TIMES; k++) sb_fmt(&body, "%s %%h%u", k ? "," : "", i);
      sb_fmt(&body, " {axis=1} : %s[%u,%u,%u,%u]\n", t, batch, TIMES, TOKENS, WIDE);
      sb_fmt(&body, "  %%grown = reshape %%more {shape=[%u, %u, %u, %u]} : %s[%u,%u,%u,%u]\n", batch, WINDOWS,
             LATER, NARROW, t, batch, WINDOWS, LATER, NARROW);
    }
    sb_fmt(&b, ", %%n1.%u: %s[%u] weight, %%qkv.%u: %s[%u,%u] weight, %%out.%u: %s[%u,%u] weight", i, t, w, i,
           t, w, 3 * w, i, t, w, w);
    sb_fmt(&b, ", %%n2.%u: %s[%u] weight, %%up.%u: %s[%u,%u] weight, %%down.%u: %s[%u,%u] weight", i, t, w, i,
           t, w, 4 * w, i, t, 4 * w, w);
    sb_fmt(&body, "  %%h%u = call @%s(", i + 1, wide ? "wide" : "narrow");
    if (i == EACH)
      sb_fmt(&body, "%%grown");
    else
      sb_fmt(&body, "%%h%u", i);
    sb_fmt(&body, ", %%n1.%u, %%qkv.%u, %%out.%u, %%n2.%u, %%up.%u, %%down.%u) : %s[%u,%u,%u,%u]\n", i, i, i,
           i, i, i, t, batch, wide ? 1 : WINDOWS, wide ? TOKENS : LATER, w);
  }
  sb_fmt(&body, "  %%image = matmul %%h%u, %%rgb : %s[%u,%u,%u,3]\n", 2 * EACH, t, batch, WINDOWS, LATER);
  sb_fmt(&body, "  %%loss = reduce_mean %%image {axes=[0, 1, 2, 3], keepdims=0} : %s[]\n  return %%loss\n}\n",
         t);
  sb_fmt(&b, ") -> (%s[]) {\n%s", t, sb_str(&body));
  return sb_str(&b);
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

typedef struct {
  const char *what, *file, *nodes, *times;
  const amp_list *list;
  i64 batch, seq; // seq 0: the generator
  double rho;     // at least
} amp_case;

typedef enum { MIXED, ALL_F16, ALL_F32 } precision;
static ranking rank(arena *a, const table *t, const amp_case *x, const char *nodes, precision in,
                    bool print) {
  const bool half = in != ALL_F32;
  ranking r = {0};
  double *ours = NEWN(a, double, t->rows), *measured = NEWN(a, double, t->rows),
         *theirs = NEWN(a, double, t->rows);
  const setting_opts o = {.model = "gpt2-medium",
                          .text = x->seq ? NULL : generator_text(a, (u32)x->batch, half),
                          .machine = "nodes",
                          .machine_text = nodes,
                          .times = x->times,
                          .half = half,
                          .optim = OPTIM_ADAM,
                          .batch = x->batch,
                          .seq = x->seq};
  for (u32 i = 0; i < t->rows; i++) {
    const u32 pp = (u32)table_number(t, i, "pp");
    const double s = table_number(t, i, "measured_s");
    const char *layers = layers_of(a, x->list, table_text(t, i, "cuts"));
    const char *line =
        arena_printf(a, "dp=%s tp=%s pp=%u mbs=%s%s%s", table_text(t, i, "dp"), table_text(t, i, "tp"), pp,
                     table_text(t, i, "micro_batch"), in == MIXED ? " grads=f32" : "",
                     pp > 1 && layers ? arena_printf(a, " layers=%s", layers) : "");
    const outcome y = layers ? run_once(&o, STAGE_FIRST, line) : (outcome){0};
    if (print)
      printf("  %-52s measured %6.2f, AMP's %6.2f, ours %6.2f, %.1f GB%s\n", line, s,
             table_number(t, i, "predicted_s"), y.s, y.peak_bytes / 1e9,
             layers ? "" : " (a stage without a block)");
    if (!isfinite(s)) continue;
    if (!y.ok) {
      r.refused++;
      continue;
    }
    ours[r.n] = y.s, measured[r.n] = s, theirs[r.n] = table_number(t, i, "predicted_s");
    r.n++;
  }
  r.rho = spearman(a, ours, measured, r.n), r.theirs = spearman(a, theirs, measured, r.n);
  r.regret = first_of(ours, measured, r.n) - 1, r.theirs_regret = first_of(theirs, measured, r.n) - 1;
  return r;
}

static void compare(arena *a, verdict *v, const amp_case *x, const char *other) {
  table *t = table_read(a, x->file);
  if (!t || !x->times) {
    printf("skipped: %s, no data (HEDDLE_DATA says where it is)\n", x->what);
    v->skipped++;
    return;
  }
  const bool rows = getenv("REPRODUCE_ROWS") != NULL;
  const ranking r = rank(a, t, x, x->nodes, MIXED, rows), half = rank(a, t, x, x->nodes, ALL_F16, false),
                wide = rank(a, t, x, x->nodes, ALL_F32, false);
  require(v, !r.refused, "%s: of %u plans that ran %u refused", x->what, r.n + r.refused, r.refused);
  require(v, r.rho >= x->rho,
          "%s: Spearman %.3f, at least %.2f; AMP's own %.3f; all in f16 %.3f, in f32 %.3f", x->what, r.rho,
          x->rho, r.theirs, half.rho, wide.rho);
  require(
      v, r.regret <= 0.05,
      "%s: our first is %.1f %% slower than the fastest, at most 5 %%; AMP's %.1f %%; all in f16 %.1f %%, in "
      "f32 %.1f %%",
      x->what, 100 * r.regret, 100 * r.theirs_regret, 100 * half.regret, 100 * wide.regret);
  if (!other) return;
  const ranking first = rank(a, t, x, other, MIXED, false);
  printf("       were the T4 node the first: Spearman %.3f, regret %.1f %%\n", first.rho, 100 * first.regret);
}

void reproduce_amp(ctx *c, verdict *v) {
  arena *a = ctx_arena(c);
  printf("== AMP's runs of GPT-2 and of a generator of images, its measured times of layers as prices\n");
  const char *p3 = node(a, 3, "p3", 10, 170), *g4 = node(a, 1, "g4", 50, 50);
  const amp_case cases[] = {
      {"mixed cluster", "hetero/amp_het_cluster.csv", arena_printf(a, "%s%s%s", devices, p3, g4),
       times_of(c, a, &gpt2), &gpt2, 32, 1024, 0.80},
      {"mixed model", "hetero/amp_het_model.csv", arena_printf(a, "%s%s", devices, node(a, 4, "p3", 10, 170)),
       times_of(c, a, &transgan), &transgan, 64, 0, 0.88},
      {"homogeneous", "hetero/amp_homogeneous.csv",
       arena_printf(a, "%s%s", devices, node(a, 4, "g4", 50, 50)), times_of(c, a, &gpt2), &gpt2, 32, 1024,
       0.95}};
  for (u32 i = 0; i < COUNT_OF(cases); i++)
    compare(a, v, &cases[i], i ? NULL : arena_printf(a, "%s%s%s", devices, g4, p3));
  diag_clear(c);
  printf("\n");
}
