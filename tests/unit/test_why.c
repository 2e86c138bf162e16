// test_why.c - questions about a search: the answer is about the best plan that agrees, its time and memory
// add up, and what if is what a search on that machine says.
#include "front/front.h"
#include "search/search.h"
#include "test.h"
#include <math.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  machine *m;
  search_opts o;
  search_result r;
} setting;

static setting searched(const char *spec, i64 batch, i64 memory, u32 top) {
  setting s = {.c = ctx_new(), .a = arena_new()};
  const front_opts fo = {.batch = batch, .seq = 16, .t = DT_F16, .loss = true};
  s.p = front_load(s.c, "gpt2:layers=4,hidden=64,heads=4,head_dim=16,ffn=256,vocab=128,positions=32", &fo);
  s.m = machine_load(s.c, s.a, spec);
  REQUIRE(s.p && s.m);
  s.o = (search_opts){.train = true,
                      .optim = optim_default(OPTIM_ADAM),
                      .batch = batch,
                      .memory_bytes = memory,
                      .top = top,
                      .threads = 1,
                      .pow2 = true};
  CHECK_MSG(search_run(s.c, s.a, s.p, s.m, NULL, &s.o, &s.r), "%s", diag_render(s.c, s.a));
  REQUIRE(s.r.nfit);
  return s;
}

static void tear_down(setting *s) {
  prog_free(s->p);
  arena_free(s->a);
  ctx_free(s->c);
}

static bool ask(setting *s, const char *line, search_why *w) {
  return search_why_not(s->c, s->a, s->p, s->m, NULL, &s->o, &s->r, line, w);
}

static bool agrees(const search_point *x, const strategy_set *said) {
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (said->of[i].said && !choice_same(said->of[i].v[0], search_value(x, (choice_id)i))) return false;
  return true;
}

// Computing, communicating and waiting are the step; the look is what the search found.
static void check_look(const search_look *l, const search_point *p) {
  double sum = l->r.bubble * (double)l->r.makespan_ps;
  REQUIRE(l->ran);
  for (u32 k = 0; k < l->r.nsplit; k++)
    if (!l->r.split[k].beside) sum += l->r.split[k].ps;
  CHECK_CLOSE(sum, (double)l->r.makespan_ps, 1e-9);
  CHECK_EQ_I64(l->r.makespan_ps, p->alone_ps);
  CHECK_EQ_I64(l->r.period_ps, p->time_ps);
  CHECK_EQ_I64(l->r.peak_bytes, p->peak_bytes);
}

TEST(why_asks_about_the_best_that_agrees) {
  static const char *const lines[] = {"tp=2",   "pp=4 tp=2",  "dp=2 pp=2 mb=4",      "recompute=full",
                                      "zero=3", "mbs=1 pp=2", "dp=16 tp=1 pp=1 mb=1"};
  setting s = searched("dgx-2", 64, 0, 0);
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    search_why w;
    REQUIRE(ask(&s, lines[i], &w));
    u32 first = 0;
    w.said.of[CHOICE_mbs].said = false; // is mb by now
    while (first < s.r.nfit &&
           (!agrees(&s.r.point[first], &w.said) ||
            (strstr(lines[i], "mbs") && 64 / search_value(&s.r.point[first], CHOICE_dp).n !=
                                            search_value(&s.r.point[first], CHOICE_mb).n)))
      first++;
    REQUIRE(first < s.r.nfit);
    CHECK_MSG(search_is(&s.r.point[first], &w.asked.s), "%s: not the best that agrees", lines[i]);
    CHECK_EQ_I64(w.rank, first + 1);
    check_look(&w.winner, &s.r.point[0]);
    check_look(&w.asked, &s.r.point[first]);
  }
  tear_down(&s);
}

// Not in the space that was searched; said degrees take the place of those that the search was told.
TEST(why_looks_beyond_the_space) {
  setting s = searched("dgx-2", 64, 0, 5);
  search_why w;
  REQUIRE(ask(&s, "pp=4 schedule=gpipe", &w));
  CHECK(w.asked.ran && !w.known && choice_is(CHOICE_schedule, w.asked.s.schedule, "gpipe"));
  REQUIRE(strategy_parse(s.c, s.a, "tp=2", &s.o.space));
  REQUIRE(ask(&s, "pp=16", &w));
  CHECK(!w.asked.ran && strstr(w.point->why, "16 pipeline stages"));
  REQUIRE(ask(&s, "dp=16", &w));
  CHECK(w.asked.ran && w.asked.s.tp.n == 1);
  tear_down(&s);
}

// A plan is too large: it is simulated all the same, the smallest that agrees.
TEST(why_of_what_is_too_large) {
  setting all = searched("dgx-2", 64, 0, 0);
  i64 least = INT64_MAX, most = 0;
  for (u32 i = 0; i < all.r.nfit; i++) {
    const search_point *p = &all.r.point[i];
    if (search_value(p, CHOICE_tp).n == 1 && search_value(p, CHOICE_dp).n == 16)
      least = MIN(least, p->peak_bytes);
    most = MAX(most, p->peak_bytes);
  }
  setting s = searched("dgx-2", 64, least - 1, 5);
  REQUIRE(least < most);
  search_why w;
  REQUIRE(ask(&s, "dp=16 tp=1", &w));
  CHECK(w.point->state == SEARCH_OVER_MEMORY || w.point->state == SEARCH_BOUND_MEMORY);
  CHECK(w.asked.ran && w.asked.r.peak_bytes >= least);
  CHECK(w.winner.r.peak_bytes < least);
  CHECK_EQ_I64(diag_errors(s.c), 0);
  tear_down(&s);
  tear_down(&all);
}

TEST(why_refuses_what_is_no_strategy) {
  static const struct {
    const char *line, *message;
    u32 column;
  } wrong[] = {{"tp=2 ppp=4", "unknown choice 'ppp'", 6},
               {"tp=1,2", "one value is needed here, not 2", 1},
               {"zero=*", "one value is needed here", 1},
               {"dp=2 tp=3", "is impossible on 16 devices", 6},
               {"recompute=half", "unknown value 'half'", 11}};
  setting s = searched("dgx-2", 64, 0, 5);
  for (u32 i = 0; i < COUNT_OF(wrong); i++) {
    search_why w;
    const u32 before = diag_count(s.c);
    CHECK(!ask(&s, wrong[i].line, &w));
    REQUIRE(diag_count(s.c) > before);
    const diag_item d = diag_get(s.c, before);
    CHECK_MSG(strstr(d.message, wrong[i].message), "%s: %s", wrong[i].line, d.message);
    const loc_info *at = loc_get(s.c, d.at);
    REQUIRE(at);
    CHECK_STR(sym_str(s.c, at->file), "--why");
    CHECK_EQ_I64(at->col, wrong[i].column);
  }
  tear_down(&s);
}

TEST(what_if_is_a_search_there) {
  const i64 limit = 1300 << 10;
  setting s = searched("dgx-h100", 32, limit, 1), two = searched("dgx-h100*2", 32, limit, 1);
  search_what_if v[WHAT_IF_MOST];
  choice_id left[CHOICE_COUNT];
  const u32 nleft = search_left_out(&s.o, s.m->nranks, false, left);
  const u32 n = search_what_ifs(s.c, s.a, s.p, s.m, NULL, &s.o, &s.r, v);
  REQUIRE(nleft > 1 && n > 3);
  for (u32 k = 0; k + 3 < n; k++) { // choices that were left out
    search_opts o = s.o;
    search_result r;
    strategy_set all;
    REQUIRE(strategy_parse(s.c, s.a, v[k].what, &all));
    for (u32 i = 0; i < CHOICE_COUNT; i++)
      if (all.of[i].said) o.space.of[i] = all.of[i];
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(v[k].time_ps, MIN(r.point[0].time_ps, s.r.point[0].time_ps));
  }
  memmove(v, v + n - 3, 3 * sizeof *v);
  CHECK(v[0].memory_bytes == 1625 << 10 && v[1].memory_bytes == 1950 << 10);
  for (u32 i = 0; i < 2; i++) {
    setting t = searched("dgx-h100", 32, v[i].memory_bytes, 1);
    CHECK(v[i].found && search_is(&t.r.point[0], &v[i].s));
    CHECK_EQ_I64(v[i].time_ps, t.r.point[0].time_ps);
    tear_down(&t);
  }
  CHECK(v[1].time_ps < s.r.point[0].time_ps); // else memory shows nothing here
  CHECK(v[2].found && v[2].ranks == 16 && search_is(&two.r.point[0], &v[2].s));
  CHECK_EQ_I64(v[2].time_ps, two.r.point[0].time_ps);
  tear_down(&s);
  tear_down(&two);
}
