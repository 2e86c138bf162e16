// pipeline.c - GPT-3 175B training on 1,024 A100: one plan from nothing, one whose stages and line are known,
// the program of the same plan, and a search. Reading the model and the machine is not included.
#include "bench.h"
#include "front/front.h"
#include "search/search.h"

enum { RUNS = 10, PASSES = 3 };

typedef struct {
  ctx *c;
  prog *src;
  machine *m;
  optim_opts optim;
} bed;

static void want(const bed *b, bool ok) {
  if (ok) return;
  fputs(diag_render(b->c, ctx_arena(b->c)), stderr);
  exit(1);
}

static bed open_bed(i64 batch) {
  bed b = {.c = ctx_new(), .optim = optim_default(OPTIM_ADAM)};
  b.src = front_load(b.c, "gpt3-175b", &(front_opts){.batch = batch, .t = DT_F16, .loss = true});
  b.m = machine_load(b.c, ctx_arena(b.c), "dgx-a100-80*128");
  want(&b, b.src && b.m);
  return b;
}

static void close_bed(bed *b) {
  prog_free(b->src);
  ctx_free(b->c);
}

// Milliseconds: everything; the pass alone; one of eight passes at once; the whole program, made and
// simulated.
typedef struct {
  double cold, known, lane, whole;
} taken;

static taken one_plan(bed *b, planner *pl, cost_model *k, const hybrid_opts *h) {
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  arena *a = arena_new();
  plan_probed made;
  const sim_order *order = NULL;
  sim_pipe_result r;
  sim_result whole;
  u32 n = 0;
  taken t;
  double start = bench_ms();
  plan *pn = policy_hybrid(pl, a, h);
  prog *probe = pn ? plan_probe(pl, pn, k, a, false, &made) : NULL;
  want(b, probe);
  const sim_stages *st = sim_stages_of(b->c, a, probe, k, &so, &made.pipeline);
  want(b, st && plan_line(b->c, a, pn, &made.graph, &n, &order));
  const sim_line *line = sim_line_new(a, st, order, n);
  t.cold = bench_ms() - start;
  double pass = bench_ms();
  sim_pipe(st, a, line, &r);
  t.cold += bench_ms() - pass;
  const sim_stages *all[SIM_LANES];
  sim_pipe_result each[SIM_LANES];
  for (u32 i = 0; i < SIM_LANES; i++) all[i] = st;
  t.known = t.lane = 1e9;
  for (u32 i = 0; i < PASSES; i++) { // memory has been used before, as in a search
    pass = bench_ms();
    sim_pipe(st, a, line, &r);
    t.known = MIN(t.known, bench_ms() - pass);
    pass = bench_ms();
    sim_pipes(SIM_LANES, all, a, line, NULL, each);
    t.lane = MIN(t.lane, (bench_ms() - pass) / SIM_LANES);
  }
  prog_free(probe);
  start = bench_ms();
  prog *d = plan_apply(pl, pn, k);
  want(b, d);
  want(b, sim_run(b->c, a, d, k, &so, &whole));
  t.whole = bench_ms() - start;
  if (whole.makespan_ps != r.makespan_ps || whole.peak_bytes != r.peak_bytes) {
    fputs("by its stages a plan takes something else than its program\n", stderr);
    exit(1);
  }
  prog_free(d);
  arena_free(a);
  return t;
}

// A planner and a cost model for every run: what they keep would not be cold.
static void plans(void) {
  bed b = open_bed(4096);
  const hybrid_opts h = {.s = strategy_of("dp=8 tp=8 pp=16 mb=512 zero=1"), .train = true, .optim = b.optim};
  double cold[RUNS], known[RUNS], lane[RUNS], whole[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    arena *a = arena_new();
    planner *pl = planner_new(b.src);
    cost_model *k = cost_model_new(b.c, a, b.m, NULL);
    taken t = one_plan(&b, pl, k, &h);
    cold[i] = t.cold, known[i] = t.known, lane[i] = t.lane, whole[i] = t.whole;
    planner_free(pl);
    arena_free(a);
  }
  bench_add((bench_row){"175B, 1,024 ranks, 16 stages, 512 microbatches: plan, price, stages, time and bytes",
                        "ms", bench_fastest(cold, RUNS), 5, "", false});
  bench_add((bench_row){"the same, stages and schedule known", "us", bench_fastest(known, RUNS) * 1e3, 150,
                        "", false});
  bench_add(
      (bench_row){"the same, one of eight at once", "us", bench_fastest(lane, RUNS) * 1e3, 15, "", false});
  bench_add((bench_row){"the same program, written out and folded", "ms", bench_fastest(whole, RUNS), 0, "",
                        false});
  close_bed(&b);
}

static void search_all(const char *name, const char *line, double required, const char *anchor) {
  bed b = open_bed(1536);
  arena *a = arena_new();
  search_opts o = {.train = true, .batch = 1536, .threads = 1, .top = 3, .optim = b.optim};
  search_result r;
  want(&b, strategy_parse(b.c, a, line, &o.space));
  double start = bench_ms();
  want(&b, search_run(b.c, a, b.src, b.m, NULL, &o, &r));
  double ms = bench_ms() - start;
  bench_add((bench_row){name, "s", ms / 1e3, required, anchor, false});
  u32 ran = r.count[SEARCH_RAN] + r.count[SEARCH_OVER_MEMORY];
  printf("%78s %u plans, %u simulated\n", "", r.npoints, ran);
  arena_free(a);
  close_bed(&b);
}

int main(void) {
  plans();
  search_all("search of 175B training, 1,024 A100, batch 1,536, told nothing else", "", 0.3, "");
  search_all("the same with every schedule, tp=8 pp=4,8,16,32",
             "tp=8 pp=4,8,16,32 mb=* schedule=* v=* zero=0,1 recompute=* overlap=*", 0, "");
  return bench_end();
}
