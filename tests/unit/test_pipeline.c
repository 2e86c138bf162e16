// test_pipeline.c - published figures of pipeline schedules, on whole programs: a model of equal layers is
// planned, written out and simulated with the prices of the table, and known by its stages likewise.
#include "front/front.h"
#include "plan/plan.h"
#include "report/report.h"
#include "test.h"

enum { HIDDEN = 8 };
typedef struct {
  i64 f, i, w;
} times; // of one chunk

// Of a layer: its matmul forward, the gradient of its input, that of its weight (which has the weight's
// shape).
static u32 price(void *arg, const prog *p, const func_info *f, const instr *in, group g, i64 *ps) {
  const times *t = arg;
  (void)g;
  *ps = 0;
  if (!(op_row_of(in->op)->flags & OPF_GEMM)) return 1;
  const shape *s = &val_type(p, f, in->res)->s;
  bool weight = s->nd == 2 && s->dim[0] == HIDDEN && s->dim[1] == HIDDEN;
  *ps = !(in->flags & INSTR_BACKWARD) ? t->f : weight ? t->w : t->i;
  return 1;
}

static i64 makespan(const char *said, u32 layers, times t, bool flat) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  front_opts fo = {.batch = 128, .loss = true};
  prog *src = front_load(c, arena_printf(a, "mlp-xs:layers=%u,hidden=%d", layers, HIDDEN), &fo);
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts o = {.s = strategy_of("%s", said), .train = true, .optim = optim_default(OPTIM_SGD)};
  plan *pn = policy_hybrid(pl, a, &o);
  if (pn) pn->input_gradients = true; // the first stage has as much to do as the others
  prog *d = pn ? plan_apply(pl, pn, NULL) : NULL;
  sim_opts so = {.mode = flat ? SIM_FLAT : SIM_FOLDED, .no_bytes = true, .cost = price, .cost_arg = &t};
  sim_result r = {0};
  CHECK_MSG(d && sim_run(c, a, d, NULL, &so, &r), "%s: %s", said, diag_render(c, a));
  prog_free(d);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
  return r.makespan_ps;
}

// Which generator a row of the table is of; chunks on a place.
static const char *row_of(const char *name, u32 *v) {
  static const struct {
    const char *name, *schedule;
    u32 v;
  } rows[] = {{"GPipe", "gpipe", 1},
              {"1F1B", "1f1b", 1},
              {"Interleaved v=2", "interleaved", 2},
              {"Interleaved v=4", "interleaved", 4},
              {"LoopedBFS v=2", "bfs", 2},
              {"torch IZB v=1", "zb-h1", 1},
              {"torch IZB v=2", "zb-h1", 2},
              {"ZBV", "zb-v", 2},
              {"DualPipeV", "dualpipev", 2}};
  for (u32 k = 0; k < COUNT_OF(rows); k++)
    if (!strncmp(name, rows[k].name, strlen(rows[k].name))) {
      *v = rows[k].v;
      return rows[k].schedule;
    }
  return NULL;
}

TEST(pipeline_makespans_are_the_published_ones) {
  const char *path = test_data("schedules/golden.txt");
  ctx *c = ctx_new();
  file_view f;
  REQUIRE(file_map(c, path, &f));
  u32 rows = 0;
  for (const char *at = (const char *)f.data, *end = at + f.size; at < end;) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) line_end = end;
    char line[512], name[64] = "";
    snprintf(line, sizeof line, "%.*s", (int)(line_end - at), at);
    at = line_end + 1;
    u32 p, m, F, I, W, v;
    double want;
    if (sscanf(line, "p=%u m=%u F/B/W=%u/%u/%u %60[^=]", &p, &m, &F, &I, &W, name) != 6) continue;
    const char *rest = strstr(line, "makespan="), *begin = strchr(strstr(line, "F/B/W"), ' ') + 1;
    REQUIRE(rest && sscanf(rest, "makespan=%lf", &want) == 1);
    const char *schedule = row_of(begin, &v);
    if (!schedule) continue;
    char said[96];
    snprintf(said, sizeof said, "pp=%u mb=%u schedule=%s", p, m, schedule);
    if (v > 1) snprintf(said + strlen(said), 16, " v=%u", v);
    const times t = {1000 * F / v, 1000 * I / v, 1000 * W / v};
    i64 got = makespan(said, p * v, t, false);
    CHECK_MSG(got == (i64)(want * 1000 + 0.5), "%s: %.1f for %.1f", said, (double)got / 1000, want);
    if (m == 8) CHECK_EQ_I64(makespan(said, p * v, t, true), got);
    rows++;
  }
  file_unmap(&f);
  ctx_free(c);
  CHECK_EQ_I64(rows, 54);
}

// 8 stages, 2 chunks each, 32 microbatches, 10/13/7: sends that cost nothing, but wait.
TEST(pipeline_streams_decide_what_interleaving_gains) {
  const times t = {5000, 6500, 3500};
  const char *what = "pp=8 v=2 mb=32 schedule=interleaved";
  static const struct {
    const char *sends;
    i64 want;
  } of[] = {{"overlap=none", 1280}, {"channels=one", 1100}, {"channels=pass", 1100}, {"channels=peer", 1065}};
  for (u32 k = 0; k < COUNT_OF(of); k++) {
    char said[96];
    snprintf(said, sizeof said, "%s %s", what, of[k].sends);
    CHECK_MSG(makespan(said, 16, t, false) == of[k].want * 1000, "%s: %lld", said,
              (long long)makespan(said, 16, t, false));
  }
}

// ---- timelines --------------------------------------------------------------------------------------------
// Names of the slices around tasks, in the file's order: rank after rank. Every one must be closed before the next.
static const char *slices(ctx *c, arena *a, const strbuf *text) {
  const json *j = json_parse(c, a, sym_of(c, "timeline"), text->v, text->n);
  strbuf b = {.a = a};
  const char *open = NULL;
  REQUIRE(j);
  const json *e = json_get(j, "traceEvents");
  for (u32 k = 0; k < e->n; k++) {
    const char *name = json_get(&e->item[k], "name")->str, *ph = json_get(&e->item[k], "ph")->str;
    if (*ph == 'B') CHECK(!open);
    if (*ph == 'B') sb_fmt(&b, "%s%s", b.n ? " " : "", open = name);
    if (*ph != 'E') continue;
    CHECK(open && !strcmp(open, name));
    open = NULL;
  }
  CHECK(!open);
  return sb_str(&b);
}

static void check_slices(const char *said, const char *want, u32 buffered) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, "mlp-xs:layers=4,hidden=8", &(front_opts){.batch = 128, .loss = true});
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts o = {.s = strategy_of("%s", said), .train = true, .optim = optim_default(OPTIM_SGD)};
  plan *pn = policy_hybrid(pl, a, &o);
  prog *d = pn ? plan_apply(pl, pn, NULL) : NULL;
  sim_opts so = {
      .mode = SIM_FLAT, .no_bytes = true, .cost = price, .cost_arg = &(times){1, 1, 1}, .timeline = true};
  sim_result r = {0};
  CHECK_MSG(d && sim_run(c, a, d, NULL, &so, &r), "%s: %s", said, diag_render(c, a));
  strbuf text = {.a = a};
  chrome_print(c, r.timeline, &(timeline_opts){.buffered = buffered}, &text);
  CHECK_STR(slices(c, a, &text), want);
  prog_free(d);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
}

// As the schedule has them on every place, but for tasks that run nothing (the first stage has no input gradients).
// What ends a step has no name.
TEST(pipeline_timeline_names_tasks) {
  static const struct {
    const char *said, *want;
  } rows[] = {
      {"pp=2 mb=2", "0F0 0F1 0B0 0B1 1F0 1B0 1F1 1B1"},
      {"pp=2 mb=2 overlap=none", "0F0 0F1 0B0 0B1 1F0 1B0 1F1 1B1"},
      {"pp=2 mb=2 schedule=zb-h1", "0F0 0F1 0W0 0W1 1F0 1I0 1F1 1I1 1W0 1W1"},
      {"pp=2 v=2 mb=2 schedule=bfs", "0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0 1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"},
      {"mb=2", "0F0 0B0 0F1 0B1"},
      {"dp=2", ""}};
  for (u32 k = 0; k < COUNT_OF(rows); k++)
    for (u32 buffered = 0; buffered < 40; buffered += 13) check_slices(rows[k].said, rows[k].want, buffered);
}
