// memory.c - bytes as simulated against bytes as a rank of `heddle run` plans them before its first step: the most that is
// alive at once on the device and in host memory, of every rank, for random plans of all policies. SEED=n MODEL=name runs one plan
// and prints it.
//
// Gradients are no results, as in a run; of what a verification keeps of them nobody is told how much it takes. Nearly all are
// equal to the byte. Where they are not, the simulation counts a buffer on all ranks of its group until the last of
// them has read it, and joined scalars beside their sum: within 2 %, or within what an allocator of a GPU rounds to. Between replicas
// of different make-up a rank may send to itself, which copies nothing here and is counted there: only not more is asked of these,
// and of host memory. Left out: plans of tests/aside.heddle with several versions or copies of the weight that a result reads which
// the loss does not depend on. There ranks hold up to 13 % more than is simulated.
#include "eval/eval.h"
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

enum { EACH = 40, RANKS_MOST = 64, ROUNDED = 512 };

typedef struct {
  plans_model m;
  cost_model *k;
  arena *a;
  u64 rng, seed;
} bench;

static u32 nplans, ntrain, nranks, noffload, nalike, nequal,
    nover; // alike: of plans whose replicas are alike

static const char *told(const bench *b, const plan *pn) {
  strbuf s = {.a = b->a};
  sb_fmt(&s, "%s seed %llu: %s", b->m.name, (unsigned long long)b->seed, sym_str(b->m.c, pn->name));
  if (getenv("SEED")) sb_char(&s, '\n'), plan_print(planner_source(b->m.pl), pn, &s);
  return sb_str(&s);
}

static bool nobody_sends(void *arg, u32 to, const void *data, i64 bytes) {
  (void)arg, (void)to, (void)data, (void)bytes;
  return false;
}
static bool nobody_receives(void *arg, u32 from, void *data, i64 bytes) {
  (void)arg, (void)from, (void)data, (void)bytes;
  return false;
}

static bool planned(bench *b, const prog *d, const eval_array *in, u32 rank, eval_memory *out) {
  const eval_link link = {.rank = rank, .send = nobody_sends, .receive = nobody_receives};
  const func_info *f = func_get(d, d->main);
  u32 *next = ZNEWN(b->a, u32, f->nparams + 1);
  eval_rank *r = eval_rank_new(d, &(eval_opts){0}, &link, in, f->nparams);
  eval_rank_next(d, next);
  for (u32 k = 0; k < f->nparams; k++) // statistics of a batch that replicas share lie on all of them
    if (next[k] && val(f, k + 1)->ty.i != val(f, f->rets.v[next[k] - 1])->ty.i) next[k] = 0;
  const bool ok = r && eval_rank_memory(r, next, out);
  eval_rank_free(r);
  return CHECK_MSG(ok, "%s", diag_render(b->m.c, b->a));
}

static bool is_above(i64 x, i64 y) { return x - y > ROUNDED && (double)(x - y) > 0.02 * (double)y; }

static void check_plan(bench *b, const plan *pn) {
  const sim_opts o = {.mode = SIM_FOLDED, .peak_only = true, .round_bytes = 1};
  sim_result r;
  prog *d = plan_apply(b->m.pl, pn, b->k);
  if (!d) return;
  const func_info *f = func_get(d, d->main);
  eval_array *in = ZNEWN(b->a, eval_array, f->nparams + 1);
  const bool ok = eval_random(d, PLANS_SEED, in, f->nparams, b->a) && sim_run(b->m.c, b->a, d, b->k, &o, &r);
  nplans += CHECK_MSG(ok, "%s", diag_render(b->m.c, b->a));
  for (u32 rank = 0; ok && rank < r.nranks; rank++) {
    const sim_class *c = &r.cls[r.class_of_rank[rank]];
    eval_memory e;
    if (!planned(b, d, in, rank, &e)) break;
    const bool near =
        !is_above(e.device_peak_bytes, c->peak_bytes) && !is_above(e.host_peak_bytes, c->host_peak_bytes);
    nover += pn->nreplicas <= 1 && is_above(c->peak_bytes, e.device_peak_bytes);
    nranks++, noffload += c->host_peak_bytes > 0;
    nalike += pn->nreplicas <= 1;
    nequal +=
        pn->nreplicas <= 1 && e.device_peak_bytes == c->peak_bytes && e.host_peak_bytes == c->host_peak_bytes;
    if (!CHECK_MSG(near, "rank %u holds %lld bytes and %lld of host memory, %lld and %lld as simulated: %s",
                   rank, (long long)e.device_peak_bytes, (long long)e.host_peak_bytes,
                   (long long)c->peak_bytes, (long long)c->host_peak_bytes, told(b, pn)))
      break;
  }
  ntrain += pn->train;
  prog_free(d);
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);

TEST(memory_of_plans) {
  static maker *const makers[] = {plans_hybrid,    plans_hybrid,  plans_stale,
                                  plans_by_degree, plans_made_up, plans_placed};
  const char *one = getenv("SEED"), *only = getenv("MODEL"), *many = getenv("PLANS");
  for (u32 i = 0; i < plans_count(); i++) {
    bench b = {0};
    plans_open(&b.m, i);
    arena *kept = arena_new();
    machine *m = machine_load(b.m.c, kept, "16x4 v100 nvlink=100GB/s ib=4x100Gb/s hostbw=200GB/s");
    REQUIRE(m && m->nranks == RANKS_MOST);
    b.k = cost_model_new(b.m.c, kept, m, NULL);
    u64 from = one ? strtoull(one, NULL, 0) : 1, to = one    ? from
                                                      : many ? strtoull(many, NULL, 0)
                                                             : test_cases(EACH);
    for (b.seed = from; b.seed <= to && (!only || !strcmp(only, b.m.name)); b.seed++) {
      b.a = arena_new();
      b.rng = hash_u64(b.seed, i);
      plan *pn = makers[b.seed % COUNT_OF(makers)](&b.m, &b.rng, b.a);
      if (pn) pn->keep_gradients = false;
      diag_clear(b.m.c);
      const bool copies = makers[b.seed % COUNT_OF(makers)] == plans_stale || (pn && pn->nreplicas > 1);
      if (pn && !(copies && !strcmp(b.m.name, "aside"))) check_plan(&b, pn);
      diag_clear(b.m.c);
      arena_free(b.a);
    }
    arena_free(kept);
    plans_close(&b.m);
  }
  printf("  %u plans (%u train), %u ranks (%u with host memory); of %u without unlike replicas %u equal to "
         "the byte\n",
         nplans, ntrain, nranks, noffload, nalike, nequal);
  if (!one && !only && test_all_cases())
    CHECK(nplans > 120 && noffload > 50 && (double)nequal > 0.95 * (double)nalike);
}
