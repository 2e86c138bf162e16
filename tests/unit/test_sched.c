// test_sched.c - pipeline schedules: published figures, exact orders, which groups deadlock, and the pictures
// of docs/schedules.md.
#include "sched/sched.h"
#include "test.h"
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
} bed;
static bed bed_new(void) { return (bed){ctx_new(), arena_new()}; }
static void bed_free(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

static const sched *made(bed *b, const char *name, u32 places, u32 chunks, u32 micro, bool backward) {
  const sched *s = sched_make(
      b->c, b->a, name,
      &(sched_shape){
          .places = places, .chunks = chunks, .micro = micro, .backward = backward, .paired = true},
      (loc){0});
  CHECK_MSG(s != NULL, "%s P%u v%u K%u: %s", name, places, chunks, micro, diag_render(b->c, b->a));
  REQUIRE(s != NULL);
  return s;
}

static const sched *parsed(bed *b, const char *text) {
  const sched *s = sched_parse(b->c, b->a, sym_of(b->c, "test.csv"), text, strlen(text));
  CHECK_MSG(s != NULL, "%s", diag_render(b->c, b->a));
  REQUIRE(s != NULL);
  return s;
}

static const char *printed(bed *b, const sched *s) {
  strbuf out = {.a = b->a};
  sched_print(s, &out);
  return sb_str(&out);
}

static const char *read_text(bed *b, const char *path) {
  file_view f;
  REQUIRE(file_map(b->c, path, &f));
  const char *text = arena_strndup(b->a, (const char *)f.data, f.size);
  file_unmap(&f);
  return text;
}

// ---- time and activations, from the definition --------------------------------------------------------
// Sends cost nothing. A task starts when its place is free and what it needs is there. A pair starts when
// both could and takes as long as both; the published figures take its tasks one after the other. An
// activation lives from its F to its B, or to its W.
typedef struct {
  double of[TASK_KINDS]; // one chunk
  bool pairs;            // are pairs held together?
} prices;

typedef struct {
  double makespan;
  u32 *peak;           // by place: activations of chunks
  double *begin, *end; // of every task, places one after the other
} played;

typedef struct {
  const sched *s;
  double *fwd, *bwd; // when the results of (replica, stage, microbatch) are there; -1: not yet
} results;

static u32 cell_of(const sched *s, const sched_task *t, u32 stage) {
  return (t->replica * s->nstages + stage) * s->nmicro + t->mb;
}

// When what t needs is there; -1: not yet.
static double ready(const results *r, const sched_task *t) {
  const sched *s = r->s;
  double at = 0;
  if (t->kind == TASK_W) return r->bwd[cell_of(s, t, t->stage)];
  if (t->kind != TASK_F) at = r->fwd[cell_of(s, t, t->stage)];
  for (u32 k = 0; k < s->nedges && at >= 0; k++) {
    const sched_edge *e = &s->edge[k];
    double x = 0;
    if (t->kind == TASK_F && e->to == t->stage) x = r->fwd[cell_of(s, t, e->from)];
    if (t->kind != TASK_F && e->from == t->stage) x = r->bwd[cell_of(s, t, e->to)];
    at = x < 0 ? -1 : MAX(at, x);
  }
  return at;
}

static u32 peak_of(const sched_seq *seq) {
  u32 live = 0, peak = 0;
  for (u32 i = 0; i < seq->n; i++) {
    bool frees = seq->v[i].kind == TASK_B || seq->v[i].kind == TASK_W;
    live += seq->v[i].kind == TASK_F;
    peak = MAX(peak, live);
    live -= frees;
  }
  return peak;
}

// Runs the next task, or pair, of a place if it can.
static bool play_next(results *r, const sched_seq *seq, u32 *at, double *clock, const prices *p,
                      double *begin, double *end) {
  u32 n = 1 + (p->pairs && *at < seq->n && seq->v[*at].paired);
  if (*at == seq->n) return false;
  double from = *clock;
  for (u32 i = 0; i < n; i++) {
    double x = ready(r, &seq->v[*at + i]);
    if (x < 0) return false;
    from = MAX(from, x);
  }
  double to = from;
  for (u32 i = 0; i < n; i++) to += p->of[seq->v[*at + i].kind];
  for (u32 i = 0; i < n; i++, ++*at) {
    const sched_task *t = &seq->v[*at];
    u32 x = cell_of(r->s, t, t->stage);
    if (t->kind == TASK_F) r->fwd[x] = to;
    if (t->kind == TASK_B || t->kind == TASK_I) r->bwd[x] = to;
    begin[*at] = from, end[*at] = to;
  }
  *clock = to;
  return true;
}

static played play(bed *b, const sched *s, const prices *p) {
  u32 cells = s->nreplicas * s->nstages * s->nmicro, n = 0;
  results r = {s, NEWN(b->a, double, cells), NEWN(b->a, double, cells)};
  for (u32 k = 0; k < cells; k++) r.fwd[k] = r.bwd[k] = -1;
  u32 *at = ZNEWN(b->a, u32, s->nplaces), *base = NEWN(b->a, u32, s->nplaces);
  double *clock = ZNEWN(b->a, double, s->nplaces);
  played out = {.peak = NEWN(b->a, u32, s->nplaces)};
  for (u32 q = 0; q < s->nplaces; q++) base[q] = n, n += s->seq[q].n, out.peak[q] = peak_of(&s->seq[q]);
  out.begin = NEWN(b->a, double, n), out.end = NEWN(b->a, double, n);
  for (bool moved = true; moved;) {
    moved = false;
    for (u32 q = 0; q < s->nplaces; q++)
      while (play_next(&r, &s->seq[q], &at[q], &clock[q], p, out.begin + base[q], out.end + base[q]))
        moved = true;
  }
  for (u32 q = 0; q < s->nplaces; q++) {
    CHECK_EQ_I64(at[q], s->seq[q].n);
    out.makespan = MAX(out.makespan, clock[q]);
  }
  return out;
}

static prices prices_of(double f, double i, double w, u32 chunks) {
  return (prices){
      .of = {
          [TASK_F] = f / chunks, [TASK_B] = (i + w) / chunks, [TASK_I] = i / chunks, [TASK_W] = w / chunks}};
}

// ---- published figures --------------------------------------------------------------------------------
typedef struct {
  u32 places, micro, chunks;
  double f, i, w, makespan;
  char name[32], peak[256];
} golden;

// "p=4 m=8 F/B/W=1/1/1 Interleaved v=2  makespan=28.5 .. peak_live_chunks=[11, 9, 7, 5] (1 chunk=1/2 stage)"
static bool read_golden(const char *line, golden *g) {
  const char *makespan = strstr(line, "makespan="), *peak = strstr(line, "peak_live_chunks=["),
             *chunk = strstr(line, "(1 chunk=1/");
  int at = 0;
  if (!makespan || !peak || !chunk ||
      sscanf(line, "p=%u m=%u F/B/W=%lf/%lf/%lf %n", &g->places, &g->micro, &g->f, &g->i, &g->w, &at) != 5 ||
      !at)
    return false;
  size_t n = (size_t)(makespan - line) - (size_t)at;
  while (n && line[(size_t)at + n - 1] == ' ') n--;
  snprintf(g->name, sizeof g->name, "%.*s", (int)n, line + at);
  peak += strlen("peak_live_chunks=");
  snprintf(g->peak, sizeof g->peak, "%.*s", (int)(strchr(peak, ']') + 1 - peak), peak);
  g->makespan = strtod(makespan + strlen("makespan="), NULL);
  g->chunks = (u32)strtoul(chunk + strlen("(1 chunk=1/"), NULL, 10);
  return true;
}

static const sched *golden_schedule(bed *b, const golden *g) {
  static const char *const by_name[][2] = {
      {"GPipe", "gpipe"},     {"1F1B", "1f1b"}, {"Interleaved", "interleaved"}, {"LoopedBFS", "bfs"},
      {"torch IZB", "zb-h1"}, {"ZBV", "zb-v"},  {"DualPipeV", "dualpipev"}};
  u32 k = 0;
  while (k < COUNT_OF(by_name) && strncmp(g->name, by_name[k][0], strlen(by_name[k][0])) != 0) k++;
  CHECK_MSG(k < COUNT_OF(by_name), "what is %s?", g->name);
  REQUIRE(k < COUNT_OF(by_name));
  return made(b, by_name[k][1], g->places, g->chunks, g->micro, true);
}

// Rows are the published orders, which a script wrote down from their definitions (make.py).
TEST(sched_is_the_published_order) {
  static const struct {
    const char *name, *file;
    u32 places, micro;
  } all[] = {{"zb-v", "zbv", 4, 8},
             {"zb-v", "zbv", 4, 16},
             {"zb-v", "zbv", 8, 32},
             {"dualpipev", "dualpipev", 4, 8},
             {"dualpipev", "dualpipev", 4, 16},
             {"dualpipev", "dualpipev", 8, 32}};
  bed b = bed_new();
  for (u32 k = 0; k < COUNT_OF(all); k++) {
    const char *path =
        arena_printf(b.a, "tests/golden/sched/%s_p%u_m%u.csv", all[k].file, all[k].places, all[k].micro);
    CHECK_STR(printed(&b, made(&b, all[k].name, all[k].places, 2, all[k].micro, true)), read_text(&b, path));
  }
  bed_free(&b);
}

// The library's times, in units of 1/chunks, are those of the definition.
// What it takes where pairs are held together; 0: there are none.
static double held_of(bed *b, const sched *s, const prices *p, u32 chunks) {
  u32 cost[TASK_KINDS];
  sched_times x;
  for (u32 k = 0; k < TASK_KINDS; k++) cost[k] = (u32)(p->of[k] * chunks);
  REQUIRE(sched_time(b->c, b->a, s, cost, (loc){0}, &x));
  return (double)x.held / chunks;
}

static void check_times(bed *b, const sched *s, const prices *p, const played *want, u32 chunks) {
  u32 cost[TASK_KINDS], n = 0;
  sched_times x;
  for (u32 k = 0; k < TASK_KINDS; k++) cost[k] = (u32)(p->of[k] * chunks);
  REQUIRE(sched_time(b->c, b->a, s, cost, (loc){0}, &x));
  CHECK((double)x.makespan == want->makespan * chunks);
  for (u32 q = 0; q < s->nplaces; q++) {
    u64 busy = 0;
    for (u32 i = 0; i < s->seq[q].n; i++, n++) {
      CHECK((double)x.at[q][i].begin == want->begin[n] * chunks &&
            (double)x.at[q][i].end == want->end[n] * chunks);
      busy += cost[s->seq[q].v[i].kind];
    }
    CHECK_EQ_I64(x.live[q], want->peak[q]);
    CHECK_EQ_I64(x.busy[q], busy);
  }
}

static void check_golden(const char *line) {
  golden g;
  CHECK_MSG(read_golden(line, &g), "cannot read: %s", line);
  bed b = bed_new();
  const sched *s = golden_schedule(&b, &g);
  prices p = prices_of(g.f, g.i, g.w, g.chunks);
  played x = play(&b, s, &p);
  check_times(&b, s, &p, &x, g.chunks);
  strbuf peak = {.a = b.a};
  for (u32 k = 0; k < s->nplaces; k++) sb_fmt(&peak, "%s%u", k ? ", " : "[", x.peak[k]);
  sb_char(&peak, ']');
  CHECK_MSG(x.makespan == g.makespan, "%s P%u K%u %g/%g/%g: makespan %.17g, published %g", g.name, g.places,
            g.micro, g.f, g.i, g.w, x.makespan, g.makespan);
  CHECK_MSG(!strcmp(sb_str(&peak), g.peak), "%s P%u K%u: live %s, published %s", g.name, g.places, g.micro,
            sb_str(&peak), g.peak);
  p.pairs = true; // what waits for its partner is no earlier
  double together = play(&b, s, &p).makespan;
  bool pairs = strchr(printed(&b, s), '(') != NULL;
  CHECK_MSG(pairs ? together > g.makespan : together == g.makespan, "%s P%u K%u: pairs held together take %g",
            g.name, g.places, g.micro, together);
  CHECK(held_of(&b, s, &p, g.chunks) == (pairs ? together : 0));
  bed_free(&b);
}

TEST(sched_published) {
  const char *path = test_data("schedules/golden.txt"); // or skips
  bed b = bed_new();
  char *text = (char *)(uintptr_t)read_text(&b, path);
  u32 n = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) check_golden(line);
  CHECK_EQ_I64(n, 54);
  bed_free(&b);
}

// ---- what is known of every schedule ------------------------------------------------------------------
static void check_formulas(u32 P, u32 v, u32 K, double f, double i, double w) {
  bed b = bed_new();
  prices p = prices_of(f, i, w, v);
  static const struct {
    const char *name;
    bool chunks, split;
  } row[] = {{"gpipe", false, false},
             {"1f1b", false, false},
             {"interleaved", true, false},
             {"bfs", true, false},
             {"zb-h1", true, true}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    if (v > 1 && !row[k].chunks) continue;
    if (row[k].split && K < 2 * P) continue; // too few microbatches to hide weight gradients behind
    played x = play(&b, made(&b, row[k].name, P, v, K, true), &p);
    double bubble = (P - 1) * (row[k].split ? f + i - w : f + i + w) / v, ideal = K * (f + i + w);
    CHECK_MSG(x.makespan == ideal + bubble, "%s P%u v%u K%u %g/%g/%g: %.17g, not %g + %g", row[k].name, P, v,
              K, f, i, w, x.makespan, ideal, bubble);
    for (u32 r = 0; r < P; r++) {
      u32 live = !k || k == 3 ? K * v
                 : k == 1     ? MIN(P - r, K)
                 : k == 2     ? MIN(2 * (P - 1 - r) + (v - 1) * P + 1, K * v)
                              : P * v;
      CHECK_MSG(x.peak[r] == live, "%s P%u v%u K%u place %u: %u live, not %u", row[k].name, P, v, K, r,
                x.peak[r], live);
    }
  }
  bed_free(&b);
}

// With forwards and backwards of one length every place is idle for P - 2 of them, and keeps P/2 + 1 to P microbatches:
// the figures of Chimera's paper. With P microbatches and backwards twice as long the longest way is P forwards and
// 2P - 2 backwards: 6 and 10 on six places, as in its figure.
TEST(sched_chimera) {
  bed b = bed_new();
  for (u32 P = 2; P <= 12; P += 2)
    for (u32 rounds = 1; rounds <= 3; rounds++) {
      const sched *s = made(&b, "chimera", P, 1, P * rounds, true);
      const u32 even[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 1},
                twice[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2};
      sched_times t;
      REQUIRE(sched_check(b.c, s, (loc){0}, NULL) && sched_time(b.c, b.a, s, even, (loc){0}, &t));
      CHECK_EQ_I64(t.makespan, 2 * P * rounds + P - 2);
      for (u32 r = 0; r < P; r++) CHECK(t.live[r] >= P / 2 + 1 && t.live[r] <= P);
      REQUIRE(sched_time(b.c, b.a, s, twice, (loc){0}, &t));
      if (rounds == 1) CHECK_EQ_I64(t.makespan, P + 2 * (2 * P - 2));
    }
  bed_free(&b);
}

// Idle time and activations by the known formulas. W is no longer than I, F than I: else zb-h1 has other
// gaps.
TEST(sched_formulas) {
  for (u32 P = 1; P <= 8; P++)
    for (u32 rounds = 1; rounds <= 4; rounds++)
      for (u32 v = 1; v <= 4; v += v) {
        check_formulas(P, v, P * rounds, 4, 4, 4);
        check_formulas(P, v, P * rounds, 40, 52, 28);
      }
}

// ---- rows of which the figures hold with F = I = W, or in other ways ------------------------------------------
// Idle time of a place, with pairs held together or not, in units of which a task of a stage takes f, i and w; the most
// activations on a place.
typedef struct {
  double idle;
  u32 live;
} figures;

static figures figures_of(const char *name, u32 P, u32 v, u32 K, double f, double i, double w, bool pairs) {
  bed b = bed_new();
  prices p = prices_of(f, i, w, 1);
  p.pairs = pairs;
  const sched *s = made(&b, name, P, v, K, true);
  const played x = play(&b, s, &p);
  figures out = {.idle = x.makespan - K * v * (f + i + w)};
  for (u32 q = 0; q < P; q++) out.live = MAX(out.live, x.peak[q]);
  bed_free(&b);
  return out;
}

#define CHECK_FIGURES(x, idle_is, live_is, P, K)                                                             \
  CHECK_MSG((x).idle == (idle_is) && (x).live == (live_is), "P%u K%u: idle %g, not %g; live %u, not %u", P,  \
            K, (x).idle, (double)(idle_is), (x).live, (u32)(live_is))

// With backwards of two forwards there are bubbles between the units of chimera, and none where a place runs two forwards
// in a row: every microbatch more costs P - 2 forwards for P of them there, and nothing here. A place keeps twice as many,
// of which two are what one was.
TEST(sched_chimera_double) {
  for (u32 P = 2; P <= 12; P += 2)
    for (u32 K = 2 * P; K <= 8 * P; K += 2 * P) {
      bed b = bed_new();
      const sched *s = made(&b, "chimera-double", P, 1, K, true);
      const prices p = prices_of(1, 1, 1, 1);
      const played x = play(&b, s, &p);
      REQUIRE(sched_check(b.c, s, (loc){0}, NULL));
      CHECK_EQ_I64((i64)x.makespan, 3 * K + 3 * (P / 2 - 1));
      CHECK_EQ_I64((i64)figures_of("chimera", P, 1, K, 1, 1, 1, false).idle, (P - 2) * (K / P + 1));
      for (u32 q = 0; q < P; q++) {
        CHECK_MSG(x.peak[q] >= 3 * P / 2 + 1 && x.peak[q] <= 2 * P, "P%u K%u place %u: %u", P, K, q,
                  x.peak[q]);
        for (u32 i = 0; i < s->seq[q].n; i++) { // an even one, then the odd one of its pair
          const sched_task *t = &s->seq[q].v[i], *pair = t + 1;
          if (t->kind != TASK_F || t->mb % 2) continue;
          CHECK(i + 1 < s->seq[q].n && pair->kind == TASK_F && pair->replica == t->replica &&
                pair->mb == t->mb + 1);
        }
      }
      bed_free(&b);
    }
}

// The first place begins all other places late by a forward each. V-Half repeats one block of six steps without a
// change at either end, which is half a step for each place more than half of what 1F1B idles.
TEST(sched_in_a_v) {
  for (u32 P = 2; P <= 16; P++)
    for (u32 K = 2 * P; K <= 4 * P; K += P) {
      figures x = figures_of("zb-v", P, 2, K, 1, 1, 1, false);
      CHECK_FIGURES(x, P - 1, 2 * P, P, K);
      x = figures_of("zb-v-half", P, 2, K, 2, 2, 2, false);
      CHECK_FIGURES(x, P % 2 ? 7 * P - 11 : 7 * P - 8, P % 2 ? P + 1 : P + 2, P, K);
      x = figures_of("zb-v-min", P, 2, K, 1, 1, 1, false);
      CHECK_FIGURES(x, P % 3 ? 4 * P - 5 : 4 * P - 3, (P + 1) / 3 * 2 + 2, P, K);
    }
}

// Every third place has two fewer where P is 3k + 2.
TEST(sched_v_min_by_place) {
  for (u32 P = 2; P <= 16; P++) {
    bed b = bed_new();
    const sched *s = made(&b, "zb-v-min", P, 2, 4 * P, true);
    const prices p = prices_of(1, 1, 1, 1);
    const played x = play(&b, s, &p);
    for (u32 q = 0; q < P; q++)
      CHECK_EQ_I64(x.peak[q], (P + 1) / 3 * 2 + 2 - (P % 3 == 2 && q % 3 == 0 ? 2 : 0));
    bed_free(&b);
  }
}

// DualPipe's own figure, F&B being as long as F and B: (PP/2 - 1)(F&B + B - 3W) on PP stages, and PP + 1 activations. It
// is exact where F = I = W; where they differ some W fill what others leave.
TEST(sched_dualpipe) {
  static const double price[][3] = {{1, 1, 1}, {10, 13, 7}};
  for (u32 k = 0; k < 2; k++)
    for (u32 P = 2; P <= 10; P++)
      for (u32 K = 2 * P; K <= 4 * P; K += 2 * P) {
        const double f = price[k][0], i = price[k][1], w = price[k][2], each = f + i + w + i + w - 3 * w;
        const figures x = figures_of("dualpipev", P, 2, K, f, i, w, true);
        CHECK_FIGURES(x, k ? MIN(x.idle, (P - 1) * each) : (P - 1) * each, 2 * P + 1, P, K);
        if (P % 2) continue;
        const figures y = figures_of("dualpipe", P, 1, K, f, i, w, true);
        CHECK_FIGURES(y, k ? MIN(y.idle, (P / 2 - 1) * each) : (P / 2 - 1) * each, P + 1, P, K);
      }
}

// From the first task of a place to its last one it idles for (P-1)(F + I - 2W).
TEST(sched_twice_the_forwards) {
  for (u32 P = 1; P <= 8; P++)
    for (u32 k = 0; k < 2; k++) {
      bed b = bed_new();
      const double f = k ? 10 : 1, i = k ? 13 : 1, w = k ? 7 : 1;
      const u32 K = 4 * P;
      const prices p = prices_of(f, i, w, 1);
      const sched *s = made(&b, "zb-h2", P, 1, K, true);
      const played x = play(&b, s, &p);
      double most = 0;
      for (u32 q = 0, at = 0; q < P; at += s->seq[q++].n) {
        const double span = x.end[at + s->seq[q].n - 1] - x.begin[at];
        most = MAX(most, span - K * (f + i + w));
        CHECK_EQ_I64(x.peak[q], 2 * P - 1);
      }
      CHECK_MSG(most == (P - 1) * (f + i - 2 * w), "P%u: idle %g", P, most);
      bed_free(&b);
    }
}

// A forward follows the backward before it through all places.
TEST(sched_gems) {
  for (u32 P = 2; P <= 8; P += 2)
    for (u32 K = 2; K <= 12; K += 2)
      for (u32 f = 1; f <= 4; f++) {
        const double b = 2, idle = (P - 1) * (f + b + (K - 1) * MAX(f, b));
        const figures x = figures_of("gems", P, 1, K, f, 1, 1, false);
        CHECK_FIGURES(x, idle, 1, P, K);
      }
}

static void check_order(const char *name, u32 places, u32 chunks, u32 micro, u32 group, bool backward,
                        const char *want) {
  bed b = bed_new();
  sched_shape shape = {
      .places = places, .chunks = chunks, .micro = micro, .group = group, .backward = backward};
  const sched *s = sched_make(b.c, b.a, name, &shape, (loc){0});
  REQUIRE(s != NULL);
  CHECK_STR(printed(&b, s), want);
  bed_free(&b);
}

TEST(sched_orders) {
  check_order("gpipe", 2, 1, 2, 0, true, "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  check_order("1f1b", 2, 1, 3, 0, true, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  check_order("1f1b", 4, 1, 1, 0, true, "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n");
  check_order("interleaved", 2, 2, 4, 0, true,
              "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
              "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
  check_order("bfs", 2, 2, 2, 0, true, "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n");
  check_order("zb-h1", 2, 1, 3, 0, true,
              "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
  check_order("chimera", 4, 1, 4, 0, true,
              "0F0,0F1,3F0r1,3B0r1,3F1r1,3B1r1,0B0,0B1\n1F0,2F0r1,1F1,2F1r1,2B0r1,1B0,2B1r1,1B1\n"
              "1F0r1,2F0,1F1r1,2F1,2B0,1B0r1,2B1,1B1r1\n0F0r1,0F1r1,3F0,3B0,3F1,3B1,0B0r1,0B1r1\n");
  check_order("interleaved", 2, 2, 3, 2, false, "0F0,0F1,2F0,2F1,0F2,2F2\n1F0,1F1,3F0,3F1,1F2,3F2\n");
  check_order("bfs", 2, 2, 3, 0, false, "0F0,0F1,0F2,2F0,2F1,2F2\n1F0,1F1,1F2,3F0,3F1,3F2\n");
}

// Without backward a schedule runs the forwards of its training in the same order, and a row that does not
// say otherwise gives what another one gives.
TEST(sched_inference) {
  bed b = bed_new();
  for (u32 k = 0; sched_row_of(k); k++) {
    const sched_row *r = sched_row_of(k);
    u32 v = r->chunks == CHUNKS_ANY ? 2 : r->chunks;
    const sched *train = made(&b, r->name, 4, v, 8, true), *infer = made(&b, r->name, 4, v, 8, false);
    CHECK(!infer->backward && !infer->split[0] && train->backward &&
          train->split[0] == (r->split != SPLIT_NO));
    for (u32 q = 0; q < 4; q++) {
      u32 n = 0;
      for (u32 i = 0; i < train->seq[q].n; i++) {
        const sched_task *t = &train->seq[q].v[i];
        if (t->kind != TASK_F) continue;
        CHECK(infer->seq[q].v[n].stage == t->stage && infer->seq[q].v[n].mb == t->mb &&
              infer->seq[q].v[n].replica == t->replica);
        n++;
      }
      CHECK_EQ_I64(infer->seq[q].n, n);
    }
  }
  bed_free(&b);
}

TEST(sched_names) {
  static const char *const name[][2] = {
      {"GPipe", "gpipe"},          {"Schedule1F1B", "1f1b"},           {"dapple", "1f1b"},
      {"PipeDream-Flush", "1f1b"}, {"Interleaved1F1B", "interleaved"}, {"LoopedBFS", "bfs"},
      {"ZB1P", "zb-1p"},           {"InterleavedZeroBubble", "zb-h1"}, {"zb2p", "zb-2p"}};
  for (u32 k = 0; k < COUNT_OF(name); k++) {
    const sched_row *r = sched_row_find(name[k][0]);
    CHECK_MSG(r && !strcmp(r->name, name[k][1]), "%s", name[k][0]);
  }
  CHECK(!sched_row_find("") && !sched_row_find("1f1") && !sched_row_find("dapple,pipedream-flush"));
  CHECK_EQ_I64(sched_letter(TASK_W), 'W');
}

// Which groups of microbatches deadlock: none that is as large as the places and leaves no short group at the
// end; and whatever is refused is refused because the merge says so.
TEST(sched_groups) {
  u32 refused[2] = {0};
  for (u32 z = 0; z < 2; z++)
    for (u32 P = 1; P <= 6; P++)
      for (u32 v = 1; v <= 4; v++)
        for (u32 K = 1; K <= 24; K++)
          for (u32 g = 1; g <= 25; g++) {
            bed b = bed_new();
            sched_shape shape = {.places = P, .chunks = v, .micro = K, .group = g, .backward = true};
            const sched *s = sched_make(b.c, b.a, z ? "zb-h1" : "interleaved", &shape, (loc){0});
            sched_line line;
            CHECK_MSG(!s || sched_merge(b.c, b.a, s, NULL, (loc){0}, &line), "P%u v%u K%u g%u deadlocks", P,
                      v, K, g);
            bool small = v > 1 && (g < P || (K > g && K % g && K % g < P));
            CHECK_MSG(s || small, "P%u v%u K%u g%u is refused", P, v, K, g);
            CHECK_EQ_I64(diag_errors(b.c), !s);
            refused[z] += !s;
            bed_free(&b);
          }
  CHECK_EQ_I64(refused[0], 870); // of 14,400
  CHECK_EQ_I64(refused[1], 283);
}

// What buffers every row needs, with four microbatches for each place: docs/schedules.md says so of 1f1b.
TEST(sched_buffers) {
  static const struct {
    const char *name;
    u32 chunks, depth;
    bool rendezvous;
  } row[] = {{"gpipe", 1, 1, true},        {"1f1b", 1, 1, false},
             {"interleaved", 2, 1, false}, {"bfs", 1, 1, true},
             {"bfs", 2, 4, false},         {"zb-h1", 1, 1, false},
             {"zb-h1", 2, 2, false},       {"zb-h2", 1, 1, false},
             {"zb-v", 2, 1, false},        {"zb-v-half", 2, 1, false},
             {"zb-v-min", 2, 1, false},    {"dualpipev", 2, 1, false},
             {"dualpipe", 1, 1, false},    {"gems", 1, 1, true},
             {"chimera", 1, 1, false},     {"chimera-double", 1, 2, false},
             {"zb-1p", 1, 1, false},       {"zb-2p", 1, 1, false}};
  bed b = bed_new();
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    const sched *s = made(&b, row[k].name, 4, row[k].chunks, 16, true);
    sched_line line;
    for (u32 d = 1; d <= 5; d++)
      CHECK_MSG(sched_merge(b.c, b.a, s, &(sched_buffers){.depth = d}, (loc){0}, &line) ==
                    (d >= row[k].depth),
                "%s, %u chunks, depth %u", row[k].name, row[k].chunks, d);
    CHECK_MSG(sched_merge(b.c, b.a, s, &(sched_buffers){.rendezvous = true}, (loc){0}, &line) ==
                  row[k].rendezvous,
              "%s, %u chunks, rendezvous", row[k].name, row[k].chunks);
  }
  bed_free(&b);
}

// ---- pictures -----------------------------------------------------------------------------------------
static const char *picture(bed *b, const sched *s) {
  static const u32 cost[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2, [TASK_I] = 1, [TASK_W] = 1};
  sched_times x;
  strbuf text = {.a = b->a}, out = {.a = b->a};
  REQUIRE(sched_time(b->c, b->a, s, cost, (loc){0}, &x));
  sched_picture(s, &x, &text);
  for (const char *line = sb_str(&text); *line; line = strchr(line, '\n') + 1)
    sb_fmt(&out, "    %.*s\n", (int)strcspn(line, "\n"), line);
  return sb_str(&out);
}

TEST(sched_pictures) {
  static const struct {
    const char *name;
    u32 places, chunks, micro;
  } drawn[] = {{"gpipe", 4, 1, 6},
               {"1f1b", 4, 1, 6},
               {"zb-h1", 4, 1, 6},
               {"bfs", 3, 2, 6},
               {"interleaved", 3, 2, 6},
               {"zb-h1", 3, 2, 6},
               {"chimera", 4, 1, 8},
               {"zb-h2", 4, 1, 8},
               {"zb-v", 4, 2, 8},
               {"zb-v-half", 4, 2, 6},
               {"zb-v-min", 4, 2, 6},
               {"dualpipev", 4, 2, 8},
               {"dualpipe", 4, 1, 8},
               {"gems", 4, 1, 4},
               {"chimera-double", 4, 1, 16},
               {"zb-2p", 4, 1, 4},
               {"zb-1p", 4, 1, 6}, // that of zb-h1
               {"interlaced", 4, 1, 6},
               {"interlaced-block", 4, 1, 6},
               {"3f1b", 4, 3, 6},
               {"pipedream", 4, 1, 8},
               {"pipedream-2bw", 4, 1, 8}};
  bed b = bed_new();
  const char *page = read_text(&b, "docs/schedules.md");
  for (u32 k = 0; k < COUNT_OF(drawn); k++) {
    const sched *s = made(&b, drawn[k].name, drawn[k].places, drawn[k].chunks, drawn[k].micro, true);
    const char *want = picture(&b, s);
    CHECK_MSG(strstr(page, want) != NULL, "docs/schedules.md lacks %s, %u chunks:\n%s", drawn[k].name,
              drawn[k].chunks, want);
  }
  for (u32 k = 0; sched_row_of(k); k++) {
    const sched_row *r = sched_row_of(k);
    bool any = false;
    for (u32 j = 0; j < COUNT_OF(drawn); j++) any |= !strcmp(drawn[j].name, r->name);
    CHECK_MSG(any, "docs/schedules.md needs a picture of %s", r->name);
    const char *row = arena_printf(b.a, "| `%s` | %s |", r->name, r->about);
    CHECK_MSG(strstr(page, row) != NULL, "docs/schedules.md lacks %s", row);
    for (const char *a = r->aliases; *a; a += *a == ',') {
      const char *name = arena_printf(b.a, "`%.*s`", (int)strcspn(a, ","), a);
      CHECK_MSG(strstr(page, name) != NULL, "docs/schedules.md lacks %s", name);
      a += strcspn(a, ",");
    }
  }
  bed_free(&b);
}

// `*` of a search is the rows before them (choice_all), and so are the rivals of a found schedule.
TEST(sched_rows_that_update_between_tasks_come_last) {
  bool before = false;
  for (u32 k = 0; sched_row_of(k); k++) {
    const bool is = sched_is_asynchronous(sched_row_of(k));
    CHECK_MSG(is || !before, "%s", sched_row_of(k)->name);
    before = is;
  }
  CHECK(before);
}

// The texts of docs/schedules.md that are schedules read, merge, and print as they stand there.
TEST(sched_documented) {
  bed b = bed_new();
  u32 n = 0;
  for (const char *s = read_text(&b, "docs/schedules.md"); (s = strstr(s, "```csv\n")); n++) {
    s += strlen("```csv\n");
    const char *text = arena_strndup(b.a, s, (size_t)(strstr(s, "```") - s));
    const sched *x = parsed(&b, text);
    sched_line line;
    CHECK_MSG(sched_merge(b.c, b.a, x, NULL, (loc){0}, &line), "%s", diag_render(b.c, b.a));
    CHECK_STR(printed(&b, x), text);
  }
  CHECK_EQ_I64(n, 3);
  bed_free(&b);
}
