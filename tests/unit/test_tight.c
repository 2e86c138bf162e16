// test_tight.c - bounds are tight: a plan of one stage that communicates nothing takes what its bound says.
#include "front/front.h"
#include "search/search.h"
#include "test.h"
#include <math.h>

// What is measured before a point is applied leaves the update out; for rounding a millionth is taken off.
static const double ROUNDED = 2e-6;

// How much longer than measured, which recomputation does not change.
static void hold_training(const search_result *r) {
  i64 rest = 0;
  u32 mb = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *x = &r->point[i];
    if (search_value(x, CHOICE_mb).n != mb) mb = search_value(x, CHOICE_mb).n, rest = x->time_ps - x->work_ps;
    CHECK(rest > 0);
    CHECK_MSG(fabs((double)(x->time_ps - x->work_ps - rest)) <= ROUNDED * (double)x->time_ps,
              "mb=%u: %lld ps, measured %lld, rest %lld", mb, (long long)x->time_ps, (long long)x->work_ps,
              (long long)rest);
  }
}

TEST(tight_bounds_of_one_stage) {
  static const char *const machines[] = {"1x1 v100", "1x1 a100"};
  for (u32 k = 0; k < 2 * COUNT_OF(machines); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    const bool train = k & 1;
    const front_opts fo = {.batch = 16, .seq = 64, .t = DT_F16, .loss = train};
    prog *p = front_load(c, "gpt2:layers=8,hidden=1024,heads=16,vocab=128,positions=64", &fo);
    machine *m = machine_load(c, a, machines[k / 2]);
    REQUIRE(p && m);
    const search_opts o = {
        .train = train, .optim = optim_default(OPTIM_ADAM), .batch = 16, .top = 1000, .threads = 1};
    search_result r;
    REQUIRE(search_run(c, a, p, m, NULL, &o, &r));
    CHECK(r.npoints >= 5);
    for (u32 i = 0; i < r.npoints; i++) {
      const search_point *x = &r.point[i];
      CHECK_MSG(x->time_ps == x->bound_ps, "%s: %lld ps, bound %lld", search_str(a, x), (long long)x->time_ps,
                (long long)x->bound_ps);
      CHECK_MSG(train || fabs((double)x->work_ps / (double)x->time_ps - 1) <= ROUNDED,
                "%s: %lld ps, measured %lld", search_str(a, x), (long long)x->time_ps, (long long)x->work_ps);
    }
    if (train) hold_training(&r);
    prog_free(p), arena_free(a), ctx_free(c);
  }
}
