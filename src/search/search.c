// search.c - the space enumerated, bounded, dealt to threads, evaluated and ranked.
//
// Idea: every point of the space is made a plan first, which is cheap: those that are impossible and those
// that are the plan of another drop out. The others are taken in order of their lower bound on time, in waves
// of at most WAVE; points that come to the head of the queue get a second, tighter bound and are queued
// again, and points whose bound cannot beat the plans already kept are ruled out. What was evaluated and need
// not have been is settled at the end (outcome.c), so the result and its certificate are the same on one core
// and on many, and whole or in parts. Every thread has a session, a copy of the program with its planner
// (cuts and gradients are made once per thread) and a cost model of its own.
#include "search/internal.h"
#include <stdio.h>
#include <stdlib.h>

// Batch sizes: evaluation, second bound, evaluation of cuts that fit; of blocks without bounds, for each of several
// threads.
enum { WAVE = 64, BOUNDED = 64, FIT_WAVE = 1024, BLOCKS = 16 };

// ---- plans ------------------------------------------------------------------------------------------------
hybrid_opts search_hybrid(const search_opts *o, const strategy *s) {
  return (hybrid_opts){.s = *s, .train = o->train, .optim = o->optim, .memory_bytes = o->memory_bytes};
}

static bool setup(search *s, worker *w) {
  if (w->c) return !w->broken;
  w->c = ctx_new();
  w->a = arena_new();
  prog *p = prog_clone(s->src, w->c);
  w->pl = planner_new(p);
  prog_free(p);
  w->k = cost_model_new(w->c, w->a, s->m, s->costs);
  w->broken = !w->k;
  return !w->broken;
}

static const char *reason(const worker *w) { return diag_count(w->c) ? diag_get(w->c, 0).message : ""; }

static const char *text_once(arena *a, texts *x, const char *text) {
  if (x->latest && !strcmp(x->latest, text)) return x->latest; // neighbours often have the same
  const u64 h = hash_bytes(text, strlen(text), 0);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);)
    if (!strcmp(x->v.v[i], text)) return x->latest = x->v.v[i];
  hmap_add(a, &x->map, h, x->v.n);
  return x->latest = *vec_push(a, &x->v) = arena_strdup(a, text);
}

static void impossible(search_point *p, const char *why, u16 id) {
  p->state = SEARCH_IMPOSSIBLE;
  p->why = why, p->why_id = id;
}

// The worker has the reason until keep_reason.
void search_impossible(search_point *p, worker *w) {
  impossible(p, text_once(w->a, &w->reasons, reason(w)), (u16)(diag_count(w->c) ? diag_get(w->c, 0).id : 0));
}

// In the caller's arena, when all threads are done.
static void keep_reason(search *s, search_point *p) {
  if (!p->why) return;
  if (p->why != s->kept_reason) s->kept_reason = p->why, text_once(s->a, &s->reasons, p->why);
  p->why = s->reasons.latest;
}

search_point *search_find(const search *s, const strategy *x) {
  const u32 i = order_find(s->order, x);
  return i < s->r->npoints ? &s->r->point[i] : NULL;
}

static void equals(search *s, search_point *p, const strategy *other, const char *cause) {
  strbuf *b = &s->text;
  assert(p);
  b->a = s->a, b->n = 0;
  sb_put(b, "the same program as ");
  strategy_print(other, b);
  if (cause) sb_fmt(b, ": %s", cause);
  p->state = SEARCH_EQUAL;
  p->why = arena_strndup(s->a, b->v, b->n);
}

// ---- screening: what is no plan of its own ----------------------------------------------------------------
// A point that was screened, and its plan.
typedef struct {
  const search_point *p; // NULL: none
  strategy s;
  plan *pn; // NULL: impossible
  u64 hash; // plan_hash_unordered
} screened;

static void screen_point(search *s, worker *w, arena *a, search_point *p, const strategy *is,
                         screened *last) {
  const point_plan made = search_plan(s, w, a, p);
  last->pn = made.pn, last->hash = made.hash;
  if (last->pn) p->bound_bytes = (i64)memory_bound(s->bounds.memory, w, s->o, a, is, last->pn);
  if (made.none_fit) p->fitted = true;
  last->p = made.as_said ? p : NULL, last->s = *is;
  if (last->pn) {
    p->plan = plan_hash_ordered(w->c, last->pn, last->hash);
  } else {
    search_impossible(p, w);
  }
  diag_clear(w->c);
}

// Only the streams of its sends are others.
static void screen_as(worker *w, search_point *p, const strategy *is, screened *last) {
  if (last->pn) {
    policy_sums(w->c, last->pn, is);
    if (strategy_most(is, CHOICE_pp) > 1) policy_sends(w->c, last->pn, is), plan_drop_ways(w->pl, last->pn);
    p->plan = plan_hash_ordered(w->c, last->pn, last->hash), p->bound_bytes = last->p->bound_bytes;
  } else {
    impossible(p, last->p->why, last->p->why_id);
  }
}

// Points that are neighbours have much in common.
enum { SCREENED = 64 };
static void screen_job(void *arg, u32 part, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  screened last = {0};
  if (!setup(s, w)) return;
  arena *a = arena_new();
  const arena_mark_t mark = arena_mark(a);
  for (u32 i = part * SCREENED; i < MIN(s->r->npoints, (part + 1) * SCREENED); i++) {
    search_point *p = &s->r->point[i];
    if (p->state != SEARCH_OPEN) continue;
    const strategy is = search_strategy(p);
    if (last.p && strategy_same_but(&last.s, &is, CHOICES_OF_SENDS)) {
      screen_as(w, p, &is, &last);
      continue;
    }
    arena_release(a, mark);
    screen_point(s, w, a, p, &is, &last);
  }
  arena_free(a);
}

// How many rows are not at their defaults.
static u32 said_by(const strategy_packed *s, const strategy_packed *dflt) {
  u32 n = 0;
  for (u32 k = 0; k < CHOICE_COUNT; k++) n += s->n[k] != dflt->n[k];
  return n;
}

typedef struct {
  u64 plan;
  u32 index; // of the point
} candidate;

// Open points, those that say the least first; of those, by index.
static u32 candidates(const search *s, arena *tmp, candidate *v) {
  const search_result *r = s->r;
  u32 n = 0, at[CHOICE_COUNT + 2] = {0};
  u8 *said = NEWN(tmp, u8, r->npoints + 1);
  const strategy_packed dflt = strategy_pack(tmp, strategy_defaults());
  for (u32 i = 0; i < r->npoints; i++)
    if (r->point[i].state == SEARCH_OPEN) n++, at[(said[i] = (u8)said_by(&r->point[i].packed, &dflt)) + 1]++;
  for (u32 k = 1; k < COUNT_OF(at); k++) at[k] += at[k - 1];
  for (u32 i = 0; i < r->npoints; i++)
    if (r->point[i].state == SEARCH_OPEN) v[at[said[i]]++] = (candidate){r->point[i].plan, i};
  return n;
}

// The first of them with the plan of number i; i: there is none before it. table: of numbers from 1, by plan.
static u32 first_with(const candidate *v, u32 i, u32 *table, u32 mask) {
  u32 at = (u32)(v[i].plan & mask);
  while (table[at] && v[table[at] - 1].plan != v[i].plan) at = (at + 1) & mask;
  if (!table[at]) table[at] = i + 1;
  return table[at] - 1;
}

// Of points with the same plan the one that says the least stays.
static void find_equal(search *s) {
  arena *tmp = arena_new();
  candidate *v = NEWN(tmp, candidate, s->r->npoints + 1);
  const u32 n = candidates(s, tmp, v);
  const bool states = memory_has_states(s->bounds.memory);
  u32 mask = 1;
  while (mask < 2 * n) mask = 2 * mask + 1;
  u32 *table = ZNEWN(tmp, u32, mask + 1);
  for (u32 i = 0; i < n; i++) {
    search_point *p = &s->r->point[v[i].index];
    const u32 with = first_with(v, i, table, mask);
    if (with != i) {
      const u32 first = v[with].index;
      const strategy same = search_strategy(&s->r->point[first]);
      equals(s, p, &same, NULL);
      p->same_as = first + 1;
      continue;
    }
    if (states || search_value(p, CHOICE_zero).n != 1) continue;
    strategy less = search_strategy(p);
    less.zero.n = 0;
    const search_point *same = search_find(s, &less);
    if (!same) continue;
    equals(s, p, &less, "the optimizer has no states");
    p->same_as = (u32)(same - s->r->point) + 1;
  }
  arena_free(tmp);
}

static void screen(search *s, int threads) {
  search_result *r = s->r;
  s->order = order_make(s->a, r->npoints, r->point);
  bool *settled = NEWN(s->a, bool, r->npoints);
  for (u32 i = 0; i < r->npoints; i++) settled[i] = r->point[i].state != SEARCH_OPEN;
  parallel_for(threads, (u32)ceil_div(r->npoints, SCREENED), screen_job, s);
  for (u32 i = 0; i < r->npoints; i++)
    if (!settled[i]) keep_reason(s, &r->point[i]);
  find_equal(s);
}

// Part i of the wave, in as many equal parts as there are turns.
static void wave_job(void *arg, u32 i, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  const u32 from = i * s->turn;
  if (setup(s, w)) search_evaluate(s, w, s->wave + from, MIN(s->nwave - from, s->turn));
}

// Neighbours in the wave have lines in common. Of several threads each takes some turns, for not all are as long.
static void evaluate_wave(search *s, int threads) {
  s->turn = (u32)ceil_div(s->nwave, threads > 1 ? 4 * threads : 1);
  parallel_for(threads, (u32)ceil_div(s->nwave, s->turn), wave_job, s);
}

static void block_job(void *arg, u32 i, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  const u32 *block = s->block + i;
  if (setup(s, w)) search_evaluate(s, w, s->wave + (block[0] - s->block[0]), block[1] - block[0]);
}

static void measure_job(void *arg, u32 i, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  if (setup(s, w)) work_measure(s->works, w, s->measured[i]);
}

static void bound_job(void *arg, u32 i, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  if (setup(s, w)) work_bound(s->works, s, w, &s->limits.v.v[s->limits.first + i]);
}

// ---- by their bounds --------------------------------------------------------------------------------------
static bool before(const search_point *a, const search_point *b) {
  return a->bound_ps != b->bound_ps ? a->bound_ps < b->bound_ps : a < b;
}

typedef struct {
  i64 bound_ps;
  search_point *p;
} queued;

static bool sooner(queued a, queued b) {
  return a.bound_ps != b.bound_ps ? a.bound_ps < b.bound_ps : a.p < b.p;
}

// Sorts by `before`. v is as points lie.
static void sort_by_bound(search_point **v, u32 n) {
  arena *tmp = arena_new();
  search_point **was = arena_dup(tmp, v, n * sizeof *v);
  keyed *by = NEWN(tmp, keyed, n + 1);
  for (u32 i = 0; i < n; i++) {
    by[i] = (keyed){(u64)v[i]->bound_ps, i};
    assert(v[i]->bound_ps >= 0 && (!i || v[i - 1] <= v[i]));
  }
  keyed_sort(by, n);
  for (u32 i = 0; i < n; i++) v[i] = was[by[i].at];
  arena_free(tmp);
}

// Neighbours have lines in common, and stages.
static int by_shape(const void *x, const void *y) {
  const search_point *a = *(search_point *const *)x, *b = *(search_point *const *)y;
  static const choice_id rows[] = {CHOICE_pp, CHOICE_mb, CHOICE_v};
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    const u32 m = search_value(a, rows[k]).n, n = search_value(b, rows[k]).n;
    if (m != n) return m < n ? -1 : 1;
  }
  return a < b ? -1 : a > b;
}

// Points by their bounds, the least first: those that have only their first bound, sorted, and a heap of
// those whose bound is of their work.
typedef struct {
  u32 at, n, nheap;
  search_point **sorted;
  queued *heap;
} queue;

static void heap_put(queue *q, search_point *p) {
  const queued x = {p->bound_ps, p};
  u32 i = q->nheap++;
  for (; i && sooner(x, q->heap[(i - 1) / 2]); i = (i - 1) / 2) q->heap[i] = q->heap[(i - 1) / 2];
  q->heap[i] = x;
}

static search_point *heap_take(queue *q) {
  const queued top = q->heap[0], last = q->heap[--q->nheap];
  u32 i = 0;
  for (u32 k; (k = 2 * i + 1) < q->nheap; i = k) {
    if (k + 1 < q->nheap && sooner(q->heap[k + 1], q->heap[k])) k++;
    if (!sooner(q->heap[k], last)) break;
    q->heap[i] = q->heap[k];
  }
  q->heap[i] = last;
  return top.p;
}

// Is the next of those that have only their first bound the next of all?
static bool first_is_next(const queue *q) {
  return q->at < q->n && (!q->nheap || before(q->sorted[q->at], q->heap[0].p));
}

static void end_point(search *s, search_point *p) {
  p->applied = true;
  if (p->state == SEARCH_RAN && p->time_ps) kept_add(&s->kept, p->time_ps);
  if (p->state != SEARCH_EQUAL) {
    keep_reason(s, p);
    return;
  }
  strategy less = search_strategy(p);
  less.zero.n = p->same_zero;
  equals(s, p, &less, arena_printf(s->a, "no other tensor is large enough to shard %u ways", less.dp.n));
}

// The number of the point's limit. A new one is to be worked out.
static u32 limit_of(search *s, const search_point *p) {
  limits *x = &s->limits;
  const u64 key = work_key(s->works, p);
  for (u32 it = 0, i; hmap_next(&x->map, key, &it, &i);)
    if (work_alike(s->works, x->v.v[i].of, p)) return i;
  hmap_add(s->a, &x->map, key, x->v.n);
  *vec_push(s->a, &x->v) = (limit){.of = p};
  return x->v.n - 1;
}

static u32 add_measured(search *s, u32 n, const search_point *p) {
  work *v[WORKS_MOST];
  const strategy of = search_strategy(p);
  for (u32 m = works_of(s->works, &of, v); m-- > 0;) {
    u32 j = 0;
    while (j < n && s->measured[j] != v[m]) j++;
    if (j == n && !work_known(v[m])) s->measured[n++] = v[m];
  }
  return n;
}

// Better bounds for the next points that have only their first one.
static void bound_more(search *s, queue *q, int threads) {
  u32 n = 0, k = 0, of[BOUNDED];
  limits *x = &s->limits;
  x->first = x->v.n;
  for (; k < BOUNDED && first_is_next(q); k++) {
    const u32 have = x->v.n;
    s->wave[k] = q->sorted[q->at++];
    of[k] = limit_of(s, s->wave[k]);
    if (of[k] == have) n = add_measured(s, n, s->wave[k]);
  }
  parallel_for(threads, n, measure_job, s);
  parallel_for(threads, x->v.n - x->first, bound_job, s);
  for (u32 i = 0; i < k; i++) {
    search_point *p = s->wave[i];
    const limit *l = &x->v.v[of[i]];
    if (l->ps > (double)p->bound_ps)
      p->bound_ps = (i64)l->ps, p->bound_fill_ps = (i64)l->fill_ps, p->bound_work = true;
    p->work_ps = p->bound_ps;
    heap_put(q, p);
  }
}

// The next wave: points whose bounds are the least of all. Points that are too slow are consumed here.
static u32 next_wave(search *s, queue *q, int threads) {
  u32 k = 0;
  while (k < WAVE && (q->nheap || q->at < q->n)) {
    if (first_is_next(q)) {
      if (k) break; // bound_more reuses the wave
      if (q->sorted[q->at]->bound_ps > kept_last(&s->kept))
        q->sorted[q->at++]->state = SEARCH_BOUND_TIME;
      else
        bound_more(s, q, threads);
      continue;
    }
    search_point *p = heap_take(q);
    if (p->bound_ps > kept_last(&s->kept))
      p->state = SEARCH_BOUND_TIME;
    else
      s->wave[k++] = p;
  }
  return k;
}

// A plan that is faster than its bound means that bounds may have hidden others.
static bool holds(const search_point *p) {
  return (p->state != SEARCH_RAN && p->state != SEARCH_OVER_MEMORY) || p->time_ps >= p->bound_ps;
}

// s->block and s->wave move on together.
static void run_all(search *s, search_point **all, int threads) {
  const u32 n = s->block[s->nblocks], most = threads > 1 ? BLOCKS * (u32)threads : 1;
  progress bar;
  progress_begin(&bar, "searching", n);
  for (u32 k; s->nblocks; s->block += k, s->nblocks -= k) {
    k = MIN(s->nblocks, most);
    s->wave = all + s->block[0], s->nwave = s->block[k] - s->block[0];
    parallel_for(threads, k, block_job, s);
    for (u32 i = 0; i < s->nwave; i++) end_point(s, s->wave[i]);
    progress_step(&bar, s->block[k]);
  }
  progress_end(&bar);
}

// False: a bound did not hold.
static bool run_waves(search *s, search_point **all, u32 n, int threads) {
  progress bar;
  bool ok = true;
  progress_begin(&bar, "searching", n);
  s->wave = NEWN(s->a, search_point *, MAX(WAVE, BOUNDED));
  s->measured = NEWN(s->a, work *, BOUNDED * WORKS_MOST);
  queue q = {.n = n, .sorted = all, .heap = NEWN(s->a, queued, n + 1)};
  for (u32 k; ok && (k = next_wave(s, &q, threads));) {
    s->nwave = k;
    qsort(s->wave, k, sizeof *s->wave, by_shape);
    evaluate_wave(s, threads);
    for (u32 i = 0; i < k; i++) ok = holds(s->wave[i]) && ok, end_point(s, s->wave[i]);
    progress_step(&bar, q.at - q.nheap);
  }
  progress_end(&bar);
  return ok;
}

// With bounds. If one of them does not hold, again without any.
static void run_bounded(search *s, search_point **all, u32 n, int threads) {
  if (!s->works) s->works = works_new(s->a, s);
  search_point **order = arena_dup(s->a, all, n * sizeof *all);
  if (run_waves(s, order, n, threads)) return;
  s->r->bound_failed = true;
  works_off(s->works);
  for (u32 i = 0; i < n; i++) {
    search_point *p = all[i];
    p->state = SEARCH_OPEN, p->applied = p->bound_work = false, p->why = NULL;
    p->time_ps = p->alone_ps = p->peak_bytes = 0;
    p->bound_ps = p->products_ps = p->bound_fill_ps = p->work_ps = p->stages_ps = p->first_ps =
        0; // whichever bound it was, none is used
  }
  s->kept = kept_new(s->a, s->o, n), s->limits = (limits){0};
  const bool all_run = run_waves(s, all, n, threads);
  assert(all_run); // nothing is faster than no time
  (void)all_run;
}

// What every part of a search must have in common.
static u64 fingerprint(const search_result *r) {
  u64 h = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *p = &r->point[i];
    const strategy of = search_strategy(p);
    h = hash_step(hash_step(h, strategy_hash(&of)), p->plan);
    h = hash_step(hash_step(h, (u64)p->state), p->why ? hash_bytes(p->why, strlen(p->why), 0) : 0);
    h = hash_step(hash_step(h, (u64)p->bound_ps), (u64)p->bound_bytes);
  }
  return hash_u64(h, r->npoints);
}

// Parts take turns, n points at a time, or sets of stages. A space is regular, so where turns begin is not: else one
// part had all that splits states at rest, say, and no other a good plan to rule out others by.
bool search_is_ours(const search_opts *o, u32 i) {
  return !o->parts || (i + hash_u64(i / o->parts, 0)) % o->parts == o->part - 1;
}

// The points to apply, by their bounds on time, or in blocks.
static u32 deal(search *s, search_point **all) {
  search_result *r = s->r;
  const search_opts *o = s->o;
  u32 n = 0, k = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    search_point *p = &r->point[i];
    if (p->state != SEARCH_OPEN) continue;
    bound(&s->bounds, p);
    if (!o->no_bounds && s->limit >= 0 && p->bound_bytes > s->limit && !search_tries_cuts(s, p))
      p->state = SEARCH_BOUND_MEMORY;
    else
      all[n++] = p;
  }
  if (o->parts) r->screened = fingerprint(r);
  if (o->no_bounds) return blocks_make(s, all, n);
  sort_by_bound(all, n);
  for (u32 i = 0; i < n; i++)
    if (search_is_ours(o, i)) all[k++] = all[i];
  return k;
}

// Stages and bounds are a shorter way to what the winner's program says of itself. If it says something else,
// that is a bug.
static void confirm(search *s) {
  if (!s->r->nfit) return;
  const search_point *p = &s->r->point[0];
  const char *wrong = whole_differs(s->w[0].pl, s->w[0].k, s->a, s->o, p, s);
  if (!wrong) return;
  fprintf(stderr, "heddle: the program of %s: %s\n", search_str(s->a, p), wrong);
  assert(!"the winner of a search is what its program is");
}

// The least bound of points that were passed over, as if all were measured: those that come first are, until one is the
// least of all.
static i64 least_bound(search *s, search_point **v, u32 n) {
  queue q = {.n = n, .sorted = v, .heap = NEWN(s->a, queued, n + 1)};
  sort_by_bound(v, n);
  while (first_is_next(&q)) bound_more(s, &q, (int)s->threads);
  return q.heap[0].bound_ps;
}

// A point that was left out for having the plan of another one stands for other cuts where that one is too large. Of
// those that are by their bounds parts take turns; the others are known to the part that applied them.
static void fit_equal(search *s, int threads) {
  search_result *r = s->r;
  search_point **v = NEWN(s->a, search_point *, r->npoints + 1);
  u32 n = 0, shared = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    search_point *p = &r->point[i];
    const search_point *as = p->state == SEARCH_EQUAL && p->same_as ? &r->point[p->same_as - 1] : NULL;
    if (!as || (as->state != SEARCH_OVER_MEMORY && as->state != SEARCH_BOUND_MEMORY)) continue;
    if (!search_tries_cuts(s, p)) continue;
    const strategy other = search_strategy(as);
    if (strategy_tries_cuts(&other) || (as->applied && as->bound_ps > kept_last(&s->kept))) continue;
    p->state = SEARCH_OPEN, p->fitted = true, p->same_as = 0, p->why = NULL;
    bound(&s->bounds, p);
    if (as->applied) // other cuts take no less than those that are tried first
      r->refit++, p->cuts_of = arena_dup(s->a, &as->packed, sizeof as->packed), p->first_ps = as->bound_ps;
    else if (search_is_ours(s->o, shared++))
      r->dealt++;
    else
      continue;
    v[n++] = p;
  }
  for (u32 at = 0; at < n; at += s->nwave) {
    s->wave = v + at, s->nwave = MIN(n - at, (u32)FIT_WAVE);
    evaluate_wave(s, threads);
    for (u32 i = 0; i < s->nwave; i++) end_point(s, s->wave[i]);
  }
  outcome_refit(s->a, s->o, r, s->order);
}

// What `auto` stands for in the plans that are kept.
static void find_resolved(search *s) {
  search_result *r = s->r;
  worker *w = &s->w[0];
  const u32 n = s->o->top ? MIN(s->o->top, r->npoints) : r->npoints;
  for (u32 i = 0; i < n; i++) {
    search_point *p = &r->point[i];
    const strategy said = search_strategy(p);
    if (!p->time_ps || !strategy_has_auto(&said)) continue;
    arena *tmp = arena_new();
    const point_plan made = search_plan(s, w, tmp, p);
    if (made.pn && !made.as_said) {
      const strategy own = strategy_dup(s->a, &made.is);
      const strategy_packed is = strategy_pack(s->a, &own);
      p->resolved = arena_dup(s->a, &is, sizeof is);
    }
    arena_free(tmp);
  }
}

static void run(search *s, int threads) {
  search_result *r = s->r;
  search_point **all = NEWN(s->a, search_point *, r->npoints + 1);
  bounds_make(s->a, s, &s->bounds);
  s->r->devices = space_devices(s->a, &s->bounds, s->ranks);
  s->r->bound_ps = s->several ? bound_of_all(&s->bounds) : 0;
  screen(s, threads);
  r->dealt = deal(s, all);
  s->kept = kept_new(s->a, s->o, r->dealt);
  if (s->o->no_bounds)
    run_all(s, all, threads);
  else
    run_bounded(s, all, r->dealt, threads);
  fit_equal(s, threads);
  families_find(s->a, s->o, r);
  families_bound(s, least_bound);
  outcome_settle(s->a, s->o, r, s->order);
  families_count(r, r->npoints, r->point);
  make_ups_find(s->a, s->o, r), make_ups_settle(r);
  fewer_find(s);
  find_resolved(s);
  confirm(s);
}

// On devices of several kinds: what the best plan takes that gives all of them the same, and leaves none out
// unless that was said, or the degrees that were said leave some. The first part asks. What this search has found
// out of plans, prices and work serves that one too.
static void find_even(search *s, int threads) {
  static const choice_id rows[] = {CHOICE_dp_shares, CHOICE_tp_shares, CHOICE_layers,
                                   CHOICE_tp_stages, CHOICE_places,    CHOICE_skip};
  search_result *r = s->r, even = {.batch = s->o->batch};
  if (!kinds_told(s) || s->o->part > 1 || (!r->nfit && !s->o->parts)) return; // in other parts some may fit
  arena *a = arena_new();
  ctx *c = ctx_new();
  search_opts o = *s->o;
  choice_value equal[COUNT_OF(rows)];
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    if (rows[k] == CHOICE_skip && o.space.of[CHOICE_skip].said) continue;
    equal[k] = choice_default(rows[k]);
    o.space.of[rows[k]] = (choice_set){.said = true, .n = 1, .v = &equal[k]};
  }
  o.top = 1, o.parts = o.part = 0, o.plain = true;
  if (!s->o->space.of[CHOICE_skip].said) o.ranks = s->ranks; // not fewer
  search e = {.src = s->src,
              .m = s->m,
              .costs = s->costs,
              .o = &o,
              .r = &even,
              .a = a,
              .w = s->w,
              .ranks = s->ranks,
              .threads = s->threads,
              .within = s->within,
              .several = s->several,
              .limit = s->limit,
              .works = s->works};
  bool any = space_make(c, a, s->src, s->m, &o, s->ranks, &even, &e.files);
  if (!any) {
    o.space.of[CHOICE_skip] = s->o->space.of[CHOICE_skip], o.ranks = s->o->ranks;
    any = space_make(c, a, s->src, s->m, &o, s->ranks, &even, &e.files);
  }
  if (any) run(&e, threads);
  if (even.nfit) r->even_ps = even.point[0].time_ps, r->even = search_str(s->a, &even.point[0]);
  ctx_free(c);
  arena_free(a);
}

static bool enough(ctx *c, const machine *m, u32 ranks) {
  if (ranks <= m->nranks) return true;
  diag(c, E_PLAN, (loc){0}, "--devices %u, but the machine has %u", ranks, m->nranks);
  diag_hint(c, "--devices %u, or a larger machine", m->nranks);
  return false;
}

// What the diagnostic says to do that made points impossible. In `a`; NULL: nothing.
static const char *hint_of(search *s) {
  const search_result *r = s->r;
  worker *w = &s->w[0];
  if (!outcome_one_reason(r)) return NULL;
  hybrid_opts h = search_hybrid(s->o, r->reason[0].example);
  arena *tmp = arena_new();
  const char *hint = NULL;
  h.k = w->k, h.no_order = true, h.files = &s->files;
  diag_clear(w->c);
  bool made = policy_hybrid(w->pl, tmp, &h);
  if (made) h.no_order = false, made = policy_hybrid(w->pl, tmp, &h); // then it is of the schedule
  if (made) {                                                         // or of who waits for whom
    const sim_opts so = {.mode = SIM_FOLDED, .bytes = s->o->bytes, .peak_only = true};
    whole_answer x;
    made = whole_run(w->pl, w->k, tmp, &h, &so, &x);
    whole_free(&x);
  }
  if (!made && diag_count(w->c)) {
    const diag_item d = diag_get(w->c, 0);
    for (u32 k = 0; k < d.notes && !hint; k++) {
      const diag_part_item x = diag_part(w->c, 0, k);
      if (x.hint && !strcmp(d.message, r->reason[0].why)) hint = arena_strdup(s->a, x.message);
    }
  }
  diag_clear(w->c);
  arena_free(tmp);
  return hint;
}

static search_host host_of(const machine *m) {
  bool updates = true;
  for (u32 k = 0; k < m->nnode_kinds; k++) updates = updates && m->node_kind[k].host_mem_bw > 0;
  return !machine_has_host(m) ? HOST_NONE : updates ? HOST_UPDATES : HOST_HOLDS;
}

// A limit that was said is taken as it is.
static void say_above(ctx *c, arena *a, const search *s) {
  const device_kind *least = NULL;
  for (u32 k = s->within.first; k < s->within.first + s->within.n; k++) {
    const device_kind *d = machine_kind_of(s->m, k);
    if (!least || d->mem_bytes < least->mem_bytes) least = d;
  }
  if (s->o->plain || !least || s->o->memory_bytes <= least->mem_bytes) return;
  diag(c, W_LIMIT, (loc){0}, "a memory limit of %s is more than the %s of %s",
       text_bytes_beside(a, s->o->memory_bytes, least->mem_bytes), text_bytes(a, (double)least->mem_bytes),
       sym_str(c, least->name));
}

bool search_run(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                const search_opts *o, search_result *r) {
  *r = (search_result){.batch = o->batch, .host = host_of(m)};
  int threads = o->threads > 0 ? o->threads : cpu_count();
  u32 ranks = o->ranks ? o->ranks : m->nranks;
  search s = {.src = src,
              .m = m,
              .costs = costs,
              .o = o,
              .r = r,
              .a = a,
              .w = ZNEWN(a, worker, threads),
              .ranks = ranks,
              .threads = (u32)threads};
  if (!enough(c, m, ranks) || !space_make(c, a, src, m, o, ranks, r, &s.files)) return false;
  s.within = space_within(m, o, ranks);
  s.several = !machine_one_kind(m, s.within.first, s.within.n);
  i64 usable = 0, least = INT64_MAX; // limits of the largest: which rank holds what is not known to bounds
  for (u32 k = s.within.first; k < s.within.first + s.within.n; k++) {
    usable = MAX(usable, machine_kind_of(m, k)->usable_bytes);
    least = MIN(least, machine_kind_of(m, k)->usable_bytes);
  }
  s.limit = r->memory_bytes = o->memory_bytes ? o->memory_bytes : usable;
  r->memory_least = o->memory_bytes ? o->memory_bytes : least;
  say_above(c, a, &s);
  bool ok = setup(&s, &s.w[0]);
  if (ok)
    run(&s, threads), find_even(&s, threads);
  else
    for (u32 i = 0; i < diag_count(s.w[0].c); i++)
      diag(c, diag_get(s.w[0].c, i).id, (loc){0}, "%s", diag_get(s.w[0].c, i).message);
  if (ok && !r->nfit) r->hint = hint_of(&s);
  for (int i = 0; i < threads; i++) {
    if (!s.w[i].c) continue;
    known_free(s.w[i].stages);
    unordered_free(s.w[i].plans);
    planner_free(s.w[i].pl);
    arena_free(s.w[i].a);
    ctx_free(s.w[i].c);
  }
  if (ok && !r->nfit && !o->parts) outcome_no_plan(c, o, r);
  return ok && (r->nfit || o->parts);
}
