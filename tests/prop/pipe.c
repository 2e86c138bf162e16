// pipe.c - pipelines known by their stages against the same programs written out: random plans, time and peak
// memory equal to the last bit. The oracle is the column engine, folded, on the program with all tasks.
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

static u32 known, whole;

static bool compare(plans_model *m, const plan *pn, coster *k, arena *a) {
  ctx *c = m->c;
  plan_probed about;
  const sim_order *order = NULL;
  u32 n = 0;
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  prog *probe = plan_probe(m->pl, pn, k, a, &about);
  prog *d = plan_apply(m->pl, pn, k);
  bool ok = probe || !d; // a deadlock does not concern a probe
  if (!ok)
    printf("  probe %s, program %s: %s\n", probe ? "made" : "refused", d ? "made" : "refused",
           diag_render(c, a));
  if (probe && d) {
    u32 errors = diag_errors(c);
    sim_result r;
    coster_use(k, probe);
    const sim_stages *st = sim_stages_of(c, a, probe, k, &so, &about.pipeline);
    coster_use(k, d);
    if (!st) {
      whole++;
      ok = diag_errors(c) == errors;
    } else if (sim_run(c, a, d, k, &so, &r)) {
      sim_pipe_result p;
      REQUIRE(plan_line(c, a, pn, &about.graph, &n, &order));
      sim_pipe(st, a, order, n, &p);
      ok = p.makespan_ps == r.makespan_ps && p.peak_bytes == r.peak_bytes;
      if (!ok)
        printf("  %s: time %lld for %lld, bytes %lld for %lld\n", sym_str(c, pn->name),
               (long long)p.makespan_ps, (long long)r.makespan_ps, (long long)p.peak_bytes,
               (long long)r.peak_bytes);
      double off = p.utilisation - r.utilisation;
      if (off > 1e-9 || off < -1e-9)
        ok = false, printf("  utilisation %g for %g\n", p.utilisation, r.utilisation);
      known++;
    } else
      ok = false;
  }
  prog_free(probe);
  prog_free(d);
  return ok;
}

TEST(pipe_is_the_program_written_out) {
  u32 plans = getenv("PLANS") ? (u32)atoi(getenv("PLANS")) : 60;
  for (u32 i = 0; i < plans_count(); i++) {
    plans_model m;
    plans_open(&m, i);
    arena *ma = arena_new();
    machine *mach = machine_load(m.c, ma, "16x4 v100 nvlink=100GB/s ib=2x100Gb/s");
    coster *k = coster_new(m.c, ma, mach, NULL);
    for (u32 seed = 1; seed <= plans; seed++) {
      u64 rng = seed * 7919 + i;
      arena *a = arena_new();
      plan *pn = plans_hybrid(&m, &rng, a);
      if (pn && !compare(&m, pn, k, a)) {
        strbuf b = {.a = a};
        plan_print(planner_source(m.pl), pn, &b);
        printf("model %s seed %u\n%s", m.name, seed, getenv("SHOW") ? sb_str(&b) : "");
        CHECK(false);
      }
      diag_clear(m.c);
      arena_free(a);
    }
    arena_free(ma);
    plans_close(&m);
  }
  printf("  %u pipelines by stages, %u whole\n", known, whole);
  CHECK(known > 100);
}
