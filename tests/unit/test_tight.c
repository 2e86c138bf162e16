// test_tight.c - bounds are tight: a plan of one stage that communicates nothing takes what its bound says.
#include "front/front.h"
#include "search/search.h"
#include "test.h"

TEST(tight_bounds_of_one_stage) {
  static const char *const machines[] = {"1x1 v100", "1x1 a100"};
  for (u32 k = 0; k < COUNT_OF(machines); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_load(c, "gpt2:layers=4,hidden=64,heads=4,vocab=128,positions=16",
                         &(front_opts){.batch = 16, .seq = 16, .t = DT_F16, .loss = true});
    machine *m = machine_load(c, a, machines[k]);
    REQUIRE(p && m);
    const search_opts o = {
        .train = true, .optim = optim_default(OPTIM_ADAM), .batch = 16, .top = 1000, .threads = 1};
    search_result r;
    REQUIRE(search_run(c, a, p, m, NULL, &o, &r));
    u32 n = 0;
    for (u32 i = 0; i < r.npoints; i++) {
      const search_point *x = &r.point[i];
      CHECK_MSG(x->time_ps == x->bound_ps, "%s, %s: %lld ps, bound %lld", machines[k], strategy_str(a, &x->s),
                (long long)x->time_ps, (long long)x->bound_ps);
      n++;
    }
    CHECK(n > 1);
    prog_free(p), arena_free(a), ctx_free(c);
  }
}
