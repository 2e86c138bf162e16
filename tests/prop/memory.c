// memory.c - bytes as simulated against bytes as a rank of `heddle run` plans them before its first step: the most that is
// alive at once, of every rank, to the byte. SEED=n MODEL=name runs one plan and prints it.
#include "eval/eval.h"
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

enum { EACH = 40, RANKS_MOST = 64 };

typedef struct {
  plans_model m;
  machine *mach;
  cost_model *k;
  arena *a;
  u64 rng, seed;
} bench;

static u32 compared[2];

static const char *told(const bench *b, const plan *pn) {
  strbuf s = {.a = b->a};
  sb_fmt(&s, "%s seed %llu: %s", b->m.name, (unsigned long long)b->seed, sym_str(b->m.c, pn->name));
  if (getenv("SEED")) sb_char(&s, '\n'), plan_print(planner_source(b->m.pl), pn, &s);
  return sb_str(&s);
}

static bool no_send(void *arg, u32 to, const void *data, i64 bytes) {
  (void)arg, (void)to, (void)data, (void)bytes;
  return false;
}
static bool no_receive(void *arg, u32 from, void *data, i64 bytes) {
  (void)arg, (void)from, (void)data, (void)bytes;
  return false;
}

static bool planned(bench *b, const prog *d, const eval_array *in, u32 rank, eval_memory *out) {
  const eval_link link = {.rank = rank, .send = no_send, .receive = no_receive};
  const func_info *f = func_get(d, d->main);
  u32 *next = ZNEWN(b->a, u32, f->nparams + 1);
  eval_rank *r = eval_rank_new(d, &(eval_opts){0}, &link, in, f->nparams);
  eval_rank_next(d, next);
  const bool ok = r && eval_rank_memory(r, next, out);
  eval_rank_free(r);
  return ok;
}

static void check_plan(bench *b, const plan *pn) {
  sim_result r;
  prog *d = plan_apply(b->m.pl, pn, b->k);
  if (!d) return;
  if (getenv("SHOW")) { strbuf s={.a=b->a}; ir_print(d,&s); puts(sb_str(&s)); }
  const func_info *f = func_get(d, d->main);
  eval_array *in = ZNEWN(b->a, eval_array, f->nparams + 1);
  if (!CHECK_MSG(eval_random(d, PLANS_SEED, in, f->nparams, b->a) &&
                     sim_run(b->m.c, b->a, d, b->k, &(sim_opts){.mode = getenv("MEMDBG")?SIM_COMPOSED:SIM_FOLDED, .peak_only=true, .round_bytes = 1}, &r),
                 "%s", diag_render(b->m.c, b->a)))
    return;
  compared[0]++;
  for (u32 rank = 0; rank < r.nranks; rank++) {
    eval_memory e;
    const i64 sim = r.cls[r.class_of_rank[rank]].peak_bytes;
    CHECK_MSG(!strstr(sym_str(b->m.c,pn->name),"offload")||planned(b, d, in, rank, &e)&&e.host_peak_bytes==r.cls[r.class_of_rank[rank]].host_peak_bytes,"HOST %lld %lld %s",(long long)e.host_peak_bytes,(long long)r.cls[r.class_of_rank[rank]].host_peak_bytes,told(b,pn));
    if (!CHECK_MSG(planned(b, d, in, rank, &e), "%s", diag_render(b->m.c, b->a))) return;
    if (!CHECK_MSG(e.device_peak_bytes == sim, "%.3f rank %u holds %lld bytes, %lld as simulated; begin %lld %lld: %s", (double)e.device_peak_bytes/sim, rank,
                   (long long)e.device_peak_bytes, (long long)sim, (long long)e.parameter_bytes, (long long)r.cls[r.class_of_rank[rank]].start_bytes, told(b, pn)))
      break;
    compared[1]++;
  }
  prog_free(d);
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);

TEST(memory_of_plans) {
  const char *one = getenv("SEED"), *only = getenv("MODEL"), *many = getenv("PLANS");
  for (u32 i = 0; i < plans_count(); i++) {
    bench b = {0};
    plans_open(&b.m, i);
    arena *kept = arena_new();
    b.mach = machine_load(b.m.c, kept, "16x4 v100 nvlink=100GB/s ib=4x100Gb/s");
    REQUIRE(b.mach && b.mach->nranks == RANKS_MOST);
    b.k = cost_model_new(b.m.c, kept, b.mach, NULL);
    u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : many ? strtoull(many, NULL, 0) : EACH;
    for (b.seed = from; b.seed <= to && (!only || !strcmp(only, b.m.name)); b.seed++) {
      b.a = arena_new();
      b.rng = hash_u64(b.seed, i);
      maker *const make = b.seed % 5 == 4 ? plans_stale : b.seed % 3 ? plans_hybrid : plans_random;
      const plan *pn = make(&b.m, &b.rng, b.a);
      diag_clear(b.m.c);
      if (pn) check_plan(&b, pn);
      diag_clear(b.m.c);
      arena_free(b.a);
    }
    arena_free(kept);
    plans_close(&b.m);
  }
  printf("  %u plans, %u ranks\n", compared[0], compared[1]);
}
