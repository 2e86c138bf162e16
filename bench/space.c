// space.c - every plan of a space in bench/spaces, on one thread: without bounds, then with them. Reading the
// model and the machine is not included.
//
// With bounds all of it is looked at. The argument is the part of each space that is looked at without; 1 is
// all of it. A part is made of slices: all plans that share degrees, the size of a microbatch, chunks and
// what is computed again. Which slices is decided by a hash of their numbers, so it is always the same; what
// is told of the whole space is then in proportion. Every slice is a search of its own, with a planner that
// knows nothing yet.
#include "bench.h"
#include "front/front.h"
#include "search/search.h"
#include "space.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const double usual_part = 0.006; // `make bench` is done within a minute

typedef struct {
  const char *name, *file, *model, *machine;
  i64 batch;
  const char *anchor; // of a plan
} work;
static const work works[] = {
    {"175B, 1,024 A100", "bench/spaces/gpt3-175b-1024.txt", "gpt3-175b", "dgx-a100-80*128", 1536,
     "Calculon 3,236 us"},
    {"530B, 2,520 A100", "bench/spaces/gpt3-530b-2520.txt", "gpt3-175b:layers=105,hidden=20480,heads=128",
     "dgx-a100-80*315", 2520, "Calculon 4,400 us"},
};

// ---- slices ---------------------------------------------------------------------------------------------
static const choice_id cut[] = {CHOICE_dp, CHOICE_tp, CHOICE_pp, CHOICE_mbs, CHOICE_v, CHOICE_recompute};

typedef struct {
  u64 key;
  strategy_set set;
} slice;
typedef struct {
  arena *a;
  u32 ranks;
  VEC(slice) v;
} slices;

static void slices_from(slices *x, u32 row, const strategy_set *s, u64 key, u32 left) {
  if (row == COUNT_OF(cut)) {
    if (left != 1) return;
    slice *one = vec_push(x->a, &x->v);
    *one = (slice){hash_u64(key, 5), *s};
    space_settle(&one->set);
    return;
  }
  const choice_id id = cut[row];
  choice_value v[SPACE_VALUES];
  const u32 n = space_values(s, id, x->ranks, v);
  const bool stageless = id == CHOICE_v && s->of[CHOICE_pp].v[0].n == 1;
  if (!n) slices_from(x, row + 1, s, hash_step(key, 0), left);
  for (u32 k = 0; k < (stageless ? MIN(n, 1) : n); k++) {
    strategy_set t = *s;
    if (choice_is_degree(id) && left % v[k].n) continue;
    space_fix(x->a, &t, id, v[k]);
    slices_from(x, row + 1, &t, hash_step(key, v[k].n), choice_is_degree(id) ? left / v[k].n : left);
  }
}

static int by_key(const void *x, const void *y) {
  const slice *a = x, *b = y;
  return a->key < b->key ? -1 : a->key > b->key;
}

// ---- one space --------------------------------------------------------------------------------------------
typedef struct {
  u32 slices, of; // looked at, of how many; both 1 where nothing is cut
  double plans, impossible, equal, by_memory, by_time, large, fit; // how many
  double ms, mb;
} totals;

static void search_one(const work *w, const prog *src, const machine *m, const strategy_set *set, bool bounds,
                       totals *t) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  search_opts o = {.space = *set,
                   .train = true,
                   .batch = w->batch,
                   .optim = optim_default(OPTIM_ADAM),
                   .threads = 1,
                   .top = bounds ? 10 : 0,
                   .no_bounds = !bounds};
  search_result r;
  const double start = bench_ms();
  if (!search_run(c, a, src, m, NULL, &o, &r) && diag_get(c, 0).id != E_NO_PLAN) space_fail(c);
  t->ms += bench_ms() - start;
  t->plans += r.space;
  t->impossible += r.count[SEARCH_IMPOSSIBLE], t->equal += r.count[SEARCH_EQUAL];
  t->by_memory += r.count[SEARCH_BOUND_MEMORY], t->by_time += r.count[SEARCH_BOUND_TIME];
  t->large += r.count[SEARCH_OVER_MEMORY], t->fit += r.count[SEARCH_RAN];
  arena_free(a);
  ctx_free(c);
}

static totals look_at(const work *w, double part, bool bounds) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  totals t = {.slices = 1, .of = 1};
  const prog *src = front_load(c, w->model, &(front_opts){.batch = w->batch, .t = DT_F16, .loss = true});
  const machine *m = machine_load(c, a, w->machine);
  if (!src || !m) space_fail(c);
  const strategy_set set = space_read(c, a, w->file);
  if (part >= 1) {
    search_one(w, src, m, &set, bounds, &t);
    return t;
  }
  slices x = {.a = a, .ranks = m->nranks};
  slices_from(&x, 0, &set, 0, m->nranks);
  qsort(x.v.v, x.v.n, sizeof *x.v.v, by_key);
  t.of = x.v.n, t.slices = (u32)MAX(1, part * x.v.n + 0.5);
  for (u32 i = 0; i < t.slices; i++) search_one(w, src, m, &x.v.v[i].set, bounds, &t);
  return t;
}

// In a process that does nothing else, for its memory.
static totals alone(const work *w, double part, bool bounds) {
  int fd[2];
  totals t;
  fflush(stdout);
  if (pipe(fd)) abort();
  const pid_t child = fork();
  if (!child) {
    t = look_at(w, part, bounds);
    _exit(write(fd[1], &t, sizeof t) != sizeof t);
  }
  struct rusage u = {0};
  int status = 1;
  close(fd[1]);
  const bool got = child > 0 && read(fd[0], &t, sizeof t) == sizeof t;
  if (child < 0 || wait4(child, &status, 0, &u) < 0 || status || !got) exit(1);
  close(fd[0]);
  t.mb = (double)u.ru_maxrss * 1024 / 1e6;
  return t;
}

static void tell(const totals *t, const char *how) {
  const double all = (double)t->of / t->slices;
  printf("  %s: %.0f plans, %.0f impossible, %.0f equal to another\n", how, t->plans, t->impossible,
         t->equal);
  printf("    %.0f too large and %.0f too slow by bounds; %.0f simulated, %.0f fit: %.3g s, %.0f MB\n",
         t->by_memory, t->by_time, t->large + t->fit, t->fit, t->ms / 1e3, t->mb);
  if (t->of > 1)
    printf("    extrapolated from these %u of %u slices: all of it has %.3g plans and takes %.3g s\n",
           t->slices, t->of, t->plans * all, t->ms / 1e3 * all);
}

static void measure(const work *w, double part) {
  static char name[COUNT_OF(works) * 3][120];
  char *const row = name[(w - works) * 3];
  const size_t size = sizeof name[0];
  const totals without = alone(w, part, false), with = alone(w, 1, true);
  const double us = without.ms * 1e3 / (without.large + without.fit);
  const double distinct = with.plans - with.impossible - with.equal;
  const char *cold = part < 1 ? ", sample" : "";
  snprintf(row, size, "full space, %s%s: a distinct legal plan, no bounds", w->name, cold);
  snprintf(row + size, size, "full space, %s: the same with bounds, the best 10", w->name);
  snprintf(row + 2 * size, size, "full space, %s%s: memory, no bounds", w->name, cold);
  bench_add((bench_row){row, "us", us, 40, w->anchor, false});
  bench_add((bench_row){row + size, "us", with.ms * 1e3 / distinct, 0.6, w->anchor, false});
  bench_add((bench_row){row + 2 * size, "MB", without.mb, 0, "", false});
  printf("  %s, one thread; wanted: 12 us with AVX2, 40 us without, 0.6 us with bounds\n", w->file);
  tell(&without, "without bounds");
  tell(&with, "with bounds, the best 10");
}

int main(int argc, char **argv) {
  const double part = argc > 1 ? strtod(argv[1], NULL) : usual_part;
  if (part <= 0 || part > 1 || argc > 3) {
    fputs("usage: space [PART from 0 to 1 [NUMBER of the space]]\n", stderr);
    return 1;
  }
  for (u32 i = 0; i < COUNT_OF(works); i++)
    if (argc < 3 || (u32)atoi(argv[2]) == i + 1) measure(&works[i], part);
  printf("  anchors: Calculon evaluates 309 plans a second of 1.69 million of 175B (1.5 h), and 8,112 plans "
         "of 530B in "
         "35.7 s\n");
  return bench_end();
}
