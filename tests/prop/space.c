// space.c - plans of the spaces in bench/spaces, as a search evaluates them, against the program written out:
// the event graph, folded, and for some of them flat, reads neither stages nor lines of tasks. Time and peak
// memory are equal to the last bit; what a search calls impossible cannot be applied.
//
// A search is one of a random part of a space, so that what it keeps from one plan for the next is tried too.
// The parts that `make check` looks at are of small models on 16 devices. FULL=N: N plans more, of the
// published models on their machines. PLANS=N: so many of every small model. FLAT=N: so many of either, flat.
// SEED=n: another seed.
#include "../bench/space.h"
#include "front/front.h"
#include "search/search.h"
#include "test.h"

enum { POINTS_MOST = 120, EACH = 10 };

typedef struct {
  const char *file, *model, *machine;
  i64 batch, seq;
  bool degrees; // those of the file; else all that the machine has
} space_of;
static const char file_175b[] = "bench/spaces/gpt3-175b-1024.txt",
                  file_530b[] = "bench/spaces/gpt3-530b-2520.txt";
static const space_of small[] = {
    {file_175b, "gpt3-175b:layers=12,hidden=48,heads=8,head_dim=6,ffn=96,vocab=64,positions=16",
     "dgx-a100-80*2", 48, 16, false},
    {file_530b, "gpt3-175b:layers=7,hidden=48,heads=8,head_dim=6,ffn=96,vocab=63,positions=16",
     "3x4 a100 nvlink=200GB/s ib=4x200Gb/s", 36, 16, false},
    {file_175b, "llama2-7b:layers=8,hidden=48,heads=8,kv_heads=4,head_dim=6,ffn=96,vocab=64", "dgx-a100-80*2",
     48, 16, false},
    {file_175b, "t5-small:layers=4,hidden=48,heads=8,head_dim=6,ffn=96,vocab=64", "dgx-a100-80*2", 32, 8,
     false},
    {file_175b, "moe-8x125m:layers=6,hidden=48,heads=4,vocab=64,experts=4,ffn=48,positions=16",
     "dgx-a100-80*2", 32, 8, false},
};
static const space_of full[] = {
    {file_175b, "gpt3-175b", "dgx-a100-80*128", 1536, 0, true},
    {file_530b, "gpt3-175b:layers=105,hidden=20480,heads=128", "dgx-a100-80*315", 2520, 0, true},
};

// ---- one space, and what does not know the search -------------------------------------------------------
typedef struct {
  const space_of *of;
  u64 rng;
  ctx *c;
  arena *a;
  prog *src;
  machine *m;
  planner *pl;
  cost_model *k;
  strategy_set set;
} setting;
static u32 folded, flat, impossible, equal, searches;
enum { MOVED, SERVED, ON_HOST, BETWEEN_TASKS, APART };
static u32 apart[APART]; // plans compared

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

static void open_setting(setting *s, const space_of *of, u64 seed) {
  *s = (setting){.of = of, .rng = hash_u64(seed, 12), .c = ctx_new(), .a = arena_new()};
  s->src = front_load(s->c, of->model,
                      &(front_opts){.batch = of->batch, .seq = of->seq, .t = DT_F16, .loss = true});
  s->m = machine_load(s->c, s->a, of->machine);
  if (!CHECK_MSG(s->src && s->m, "%s", diag_render(s->c, s->a))) test_leave();
  s->pl = planner_new(s->src);
  s->k = cost_model_new(s->c, s->a, s->m, NULL);
  s->set = space_read(s->c, s->a, of->file);
  for (choice_id id = CHOICE_dp; id <= CHOICE_pp && !of->degrees; id++) s->set.of[id] = (choice_set){0};
  s->set.of[CHOICE_tables] = s->set.of[CHOICE_layers] = (choice_set){.said = true, .all = true};
}

static void close_setting(setting *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

// ---- parts of a space -----------------------------------------------------------------------------------
static choice_value any(setting *s, const strategy_set *x, choice_id id) {
  choice_value v[SPACE_VALUES];
  const u32 n = space_values(x, id, s->m->nranks, v);
  return n ? v[pick(&s->rng, n)] : choice_default(id);
}

static void random_degrees(setting *s, strategy_set *x) {
  choice_value v[3];
  do {
    for (u32 k = 0; k < 3; k++) v[k] = any(s, &s->set, (choice_id)(CHOICE_dp + k));
  } while (v[0].n * v[1].n * v[2].n != s->m->nranks);
  for (u32 k = 0; k < 3; k++) space_fix(s->a, x, (choice_id)(CHOICE_dp + k), v[k]);
}

// What the files say nothing of, each in some parts: how values move, servers, host memory, updates between tasks. From
// numbers of its own, so that the rest of the part is what it is without. Plans that they do not go with are impossible.
static void say_apart(setting *s, strategy_set *x) {
  static const char *const stale[] = {"pipedream", "pipedream-2bw"};
  u64 own = hash_u64(s->rng, 3);
  choice_value v = {0};
  switch (pick(&own, 8)) {
  case 0: v.n = 1 + pick(&own, MATERIALISE_WAYS - 1), space_fix(s->a, x, CHOICE_materialise, v); break;
  case 1:
    v.n = 1, space_fix(s->a, x, CHOICE_sync, v);
    space_fix(s->a, x, CHOICE_zero, choice_default(CHOICE_zero));
    break;
  case 2: v.n = 1 + pick(&own, 15), space_fix(s->a, x, CHOICE_offload, v); break;
  case 3:
    (void)policy_schedule_named(stale[pick(&own, 2)], &v.n);
    space_fix(s->a, x, CHOICE_schedule, v);
    break;
  default: break;
  }
}

// Degrees and the size of a microbatch have one value, other rows all of theirs as long as the plans are few.
static strategy_set random_part(setting *s) {
  choice_id row[] = {CHOICE_v,  CHOICE_schedule, CHOICE_group,    CHOICE_zero,   CHOICE_recompute,
                     CHOICE_sp, CHOICE_overlap,  CHOICE_channels, CHOICE_tables, CHOICE_layers};
  strategy_set x = s->set;
  choice_value v[SPACE_VALUES];
  u32 plans = 1;
  random_degrees(s, &x);
  space_fix(s->a, &x, CHOICE_mbs, any(s, &s->set, CHOICE_mbs));
  for (u32 i = COUNT_OF(row); i-- > 0;) {
    const u32 k = pick(&s->rng, i + 1), id = row[k];
    row[k] = row[i];
    const u32 n = space_values(&x, id, s->m->nranks, v);
    if (plans * n <= POINTS_MOST)
      plans *= n;
    else
      space_fix(s->a, &x, id, v[pick(&s->rng, n)]);
  }
  say_apart(s, &x);
  space_settle(&x);
  return x;
}

// ---- the program written out ----------------------------------------------------------------------------
static prog *apply(setting *s, arena *a, const strategy *x) {
  const hybrid_opts h = {// memory: no limit, as the searches have none: layers=auto depends on it
                         .s = *x,
                         .train = true,
                         .optim = optim_default(OPTIM_ADAM),
                         .k = s->k,
                         .memory_bytes = -1};
  const plan *pn = policy_hybrid(s->pl, a, &h);
  prog *d = pn ? plan_apply(s->pl, pn, s->k) : NULL;
  return d;
}

static bool same(setting *s, const search_point *p, sim_mode mode, sim_result *r) {
  arena *a = arena_new();
  const sim_opts o = {.mode = mode, .peak_only = true, .steady = true};
  const strategy is = search_strategy(p);
  prog *d = apply(s, a, &is);
  const bool ran = d && sim_run(s->c, a, d, s->k, &o, r);
  prog_free(d);
  arena_free(a);
  diag_clear(s->c);
  if (!ran) r->makespan_ps = r->peak_bytes = -1;
  return ran && r->makespan_ps == p->alone_ps && r->period_ps == p->time_ps &&
         r->peak_bytes == p->peak_bytes && r->utilisation == p->utilisation && r->comm == p->comm &&
         r->bubble == p->bubble;
}

// ---- a difference, made small ---------------------------------------------------------------------------
static bool alone(setting *s, const strategy *x, search_point *out) {
  arena *a = arena_new();
  search_opts o = {.train = true, .batch = s->of->batch, .optim = optim_default(OPTIM_ADAM), .threads = 1};
  search_result r;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (i != CHOICE_mbs) space_fix(a, &o.space, (choice_id)i, x->of[i]);
  o.no_bounds = true, o.memory_bytes = -1;
  const bool ran = search_run(s->c, a, s->src, s->m, NULL, &o, &r);
  if (ran) *out = r.point[0];
  diag_clear(s->c);
  arena_free(a);
  return ran;
}

// Is what the search says of it, and of it alone, not what its program takes?
static bool differs(setting *s, const strategy *x, sim_result *r, search_point *p) {
  return alone(s, x, p) && !same(s, p, SIM_FOLDED, r) && r->makespan_ps >= 0;
}

static void shrink(setting *s, strategy x) {
  search_point p;
  sim_result r;
  if (!differs(s, &x, &r, &p)) {
    printf("  alone it is the same: what the search kept of other plans decides\n");
    return;
  }
  for (u32 i = CHOICE_mb; i < CHOICE_COUNT; i++) {
    strategy y = x;
    y.of[i] = choice_default((choice_id)i);
    if (!choice_same(y.of[i], x.of[i]) && differs(s, &y, &r, &p)) x = y;
  }
  for (strategy y = x; y.mb.n > 1;) {
    y.mb.n--;
    if (x.mb.n <= 16 || y.mb.n == x.mb.n / 2)
      if (differs(s, &y, &r, &p)) x = y;
    if (y.mb.n + 16 < x.mb.n && y.mb.n < x.mb.n / 2) break;
  }
  differs(s, &x, &r, &p);
  printf("  as small: %s: time %lld for %lld, alone %lld for %lld, bytes %lld for %lld\n",
         strategy_str(s->a, &x), (long long)p.time_ps, (long long)r.period_ps, (long long)p.alone_ps,
         (long long)r.makespan_ps, (long long)p.peak_bytes, (long long)r.peak_bytes);
}

// ---- one search -----------------------------------------------------------------------------------------
static void check_point(setting *s, const search_point *p, sim_mode mode) {
  sim_result r;
  const bool ok = same(s, p, mode, &r);
  CHECK_MSG(ok, "%s on %s, batch %lld, %s, %s: time %lld for %lld, alone %lld for %lld, bytes %lld for %lld",
            s->of->model, s->of->machine, (long long)s->of->batch, search_str(s->a, p),
            mode == SIM_FLAT ? "flat" : "folded", (long long)p->time_ps, (long long)r.period_ps,
            (long long)p->alone_ps, (long long)r.makespan_ps, (long long)p->peak_bytes,
            (long long)r.peak_bytes);
  if (!ok && mode == SIM_FOLDED) shrink(s, search_strategy(p));
}

static void check_impossible(setting *s, const search_point *p) {
  arena *a = arena_new();
  strategy x = search_strategy(p);
  if (!strategy_settle(s->c, &s->set, s->of->batch, true, &x)) x.mb.n = 0;
  prog *d = x.mb.n ? apply(s, a, &x) : NULL;
  CHECK_MSG(!d, "%s on %s: %s is possible, but: %s", s->of->model, s->of->machine, strategy_str(a, &x),
            p->why);
  prog_free(d);
  diag_clear(s->c);
  arena_free(a);
  impossible++;
}

// A level of ZeRO that splits nothing more than a lower one: both programs take the same.
static void check_equal(setting *s, const search_point *p) {
  arena *a = arena_new();
  const sim_opts o = {.mode = SIM_FOLDED, .peak_only = true, .steady = true};
  sim_result r[2] = {{0}, {0}};
  strategy x[2] = {search_strategy(p), search_strategy(p)};
  bool ran = true;
  x[1].zero.n = p->same_zero;
  for (u32 k = 0; k < 2 && ran; k++) {
    prog *d = apply(s, a, &x[k]);
    ran = d && sim_run(s->c, a, d, s->k, &o, &r[k]);
    prog_free(d);
  }
  CHECK_MSG(ran && r[0].makespan_ps == r[1].makespan_ps && r[0].period_ps == r[1].period_ps &&
                r[0].peak_bytes == r[1].peak_bytes,
            "%s on %s: %s is not %s: bytes %lld and %lld", s->of->model, s->of->machine,
            strategy_str(a, &x[0]), p->why, (long long)r[0].peak_bytes, (long long)r[1].peak_bytes);
  diag_clear(s->c);
  arena_free(a);
  equal++;
}

// Plans of one random part; returns how many were compared.
static u32 check_part(setting *s, u32 most, bool by_flat) {
  const strategy_set part = random_part(s);
  const search_opts o = {.space = part,
                         .train = true,
                         .batch = s->of->batch,
                         .optim = optim_default(OPTIM_ADAM),
                         .threads = 1,
                         .memory_bytes = -1,
                         .no_bounds = true};
  arena *a = arena_new();
  search_result r;
  u32 ran = 0, n = 0;
  const bool ok = search_run(s->c, a, s->src, s->m, NULL, &o, &r);
  CHECK_MSG(ok || diag_get(s->c, 0).id == E_NO_PLAN, "%s", diag_render(s->c, a));
  diag_clear(s->c);
  searches++;
  while (ok && ran < r.npoints && r.point[ran].state == SEARCH_RAN) ran++;
  for (; ran && n < most && n < ran; n++) {
    const search_point *p = &r.point[pick(&s->rng, ran)];
    check_point(s, p, SIM_FOLDED);
    if (by_flat) check_point(s, p, SIM_FLAT), flat++;
    folded++;
    const strategy is = search_strategy(p);
    apart[MOVED] += is.materialise.n > 0, apart[SERVED] += is.sync.n > 0;
    apart[ON_HOST] += is.offload.n > 0;
    apart[BETWEEN_TASKS] += is.pp.n > 1 && sched_row_of(is.schedule.n)->weights != WEIGHTS_ONE;
  }
  for (u32 i = 0, k = 0; ok && i < r.npoints && k < 2; i++)
    if (r.point[r.npoints - 1 - i].state == SEARCH_IMPOSSIBLE)
      check_impossible(s, &r.point[r.npoints - 1 - i]), k++;
  for (u32 i = 0, k = 0; ok && i < r.npoints && k < 2; i++)
    if (r.point[i].state == SEARCH_EQUAL && r.point[i].applied) check_equal(s, &r.point[i]), k++;
  arena_free(a);
  return n;
}

static void check_space(const space_of *of, u32 plans, u32 flats, u64 seed) {
  setting s;
  open_setting(&s, of, seed);
  for (u32 n = 0; n < plans;) n += check_part(&s, MIN(EACH, plans - n), false);
  for (u32 n = 0; n < flats;) n += check_part(&s, 1, true);
  close_setting(&s);
}

static u32 number(const char *name, u32 usual) { return getenv(name) ? (u32)atoi(getenv(name)) : usual; }

TEST(space_is_the_programs_written_out) {
  const u32 many = number("FULL", 0), few = number("PLANS", test_cases(40)), flats = number("FLAT", 10),
            seed = number("SEED", 1);
  for (u32 i = 0; i < COUNT_OF(small); i++) check_space(&small[i], few, flats / COUNT_OF(small), seed + i);
  for (u32 i = 0; i < COUNT_OF(full) && many; i++)
    check_space(&full[i], many / COUNT_OF(full), flats / COUNT_OF(full), seed + i);
  printf("  %u plans of %u searches folded, %u flat, %u impossible, %u equal\n", folded, searches, flat,
         impossible, equal);
  printf("  %u that move otherwise, %u with servers, %u on hosts, %u with updates between tasks\n",
         apart[MOVED], apart[SERVED], apart[ON_HOST], apart[BETWEEN_TASKS]);
  CHECK(folded >= few * COUNT_OF(small));
  if (getenv("PLANS") || !test_all_cases()) return;
  CHECK(impossible > 10);
  for (u32 k = 0; k < APART && !getenv("SEED"); k++) CHECK_MSG(apart[k] > 0, "%u", k);
}
