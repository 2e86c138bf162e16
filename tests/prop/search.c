// search.c - the search against brute force. A random small search is done twice: by search_run, and here by
// listing every strategy that docs/strategy.md allows, making each plan alone (settled, planned, applied,
// simulated) and sorting. Winner, ranking, every time and peak, every bound and every count must agree. Of a
// plan that fits, devices that are alike change places, and prices double. SEED=n runs one setting and tells
// its searches.
#include "listing.h"

enum { SETTINGS = 104, EACH = 4, CHOSEN = 5 }; // CHOSEN: plans that have a choice, at least

// ---- agreement ------------------------------------------------------------------------------------------
static double tightness;
static u32 by_work, searches, refusals, points, cut_time, cut_memory, over, equal, twins, dear_devices;
static u32 between_tasks;        // simulated plans that update there
static u32 chosen[CHOICE_COUNT]; // simulated plans in which the row is not at its default

static const char *told(const listing *l) {
  return arena_printf(l->w->a,
                      "seed %llu: %s batch %lld, %s%s, machine %s, %u ranks%s, top %u, memory %lld: '%s'",
                      (unsigned long long)l->w->seed, plans_name(l->w->model), (long long)l->w->batch,
                      l->w->train ? optim_name(l->w->optim.kind) : "inference",
                      l->w->costs.model ? " (distir)" : "", l->w->machine_text, l->ranks,
                      l->o.pow2 ? " pow2" : "", l->o.top, (long long)l->o.memory_bytes, l->line);
}

#define AGREE(l, p, cond)                                                                                    \
  CHECK_MSG(cond, "%s\n  %s: %s (state %u, time %lld, peak %lld, bounds %lld, %lld; %s)", told(l),           \
            search_str((l)->w->a, p), #cond, (p)->state, (long long)(p)->time_ps,                            \
            (long long)(p)->peak_bytes, (long long)(p)->bound_ps, (long long)(p)->bound_bytes,               \
            (p)->why ? (p)->why : "")

static const truth *truth_at(setting *w, const search_point *p) {
  const strategy s = search_strategy(p);
  return find_truth(w, &s);
}

// The point that another says it is the program of.
static const search_point *same_as(const listing *l, const search_result *r, const search_point *p) {
  static const char before[] = "the same program as ";
  strategy_set set;
  strategy s;
  if (strncmp(p->why, before, strlen(before))) return NULL;
  char *line = arena_strdup(l->w->a, p->why + strlen(before)), *colon = strchr(line, ':');
  if (colon) *colon = 0;
  if (!strategy_parse(l->w->c, l->w->a, line, &set) || !strategy_one(l->w->c, &set, &s)) return NULL;
  for (u32 i = 0; i < r->npoints; i++)
    if (search_is(&r->point[i], &s)) return &r->point[i];
  return NULL;
}

// Equal plans are told from each other before any is applied, so what shows only then is true of all of them.
static void check_equal(const listing *l, const search_result *r, const search_point *p) {
  const search_point *to = p;
  for (u32 n = 0; n < 5 && to && to->state == SEARCH_EQUAL; n++) to = same_as(l, r, to);
  const bool impossible = to && to->state == SEARCH_IMPOSSIBLE && to->applied;
  AGREE(l, p, to && to->state != SEARCH_EQUAL && (impossible || to->state != SEARCH_IMPOSSIBLE));
  const truth *x = truth_at(l->w, p), *y = to ? truth_at(l->w, to) : NULL;
  AGREE(l, p,
        x && y && x->possible == y->possible && x->time_ps == y->time_ps && x->peak_bytes == y->peak_bytes);
  AGREE(l, p,
        x && (x->possible || impossible || (to && to->state == SEARCH_BOUND_TIME) ||
              (to && to->state == SEARCH_BOUND_MEMORY)));
  if (equal++ % 8 == 0 && x && y && x->possible && y->possible) // dear
    AGREE(l, p, same_program(l->w, x, y, NULL));
}

// Is the state the first that is true of the point? kth: the time of the last plan that is kept, by brute
// force.
static void check_state(const listing *l, const search_result *r, const search_point *p, i64 kth) {
  const truth *t = truth_at(l->w, p);
  const strategy is = search_strategy(p);
  const i64 limit = l->o.memory_bytes;
  const bool large = t && t->possible && limit >= 0 && t->peak_bytes > limit;
  switch (p->state) {
  case SEARCH_IMPOSSIBLE: AGREE(l, p, (!t || !t->possible) && p->why && *p->why); break;
  case SEARCH_EQUAL: check_equal(l, r, p); break;
  case SEARCH_BOUND_MEMORY:
    AGREE(l, p, !l->o.no_bounds && t && (!t->possible || large));
    cut_memory++;
    break;
  case SEARCH_BOUND_TIME:
    AGREE(l, p, !l->o.no_bounds && t && (!t->possible || (l->o.top && t->time_ps > kth)));
    cut_time++;
    break;
  case SEARCH_OVER_MEMORY:
  case SEARCH_RAN:
    AGREE(l, p, t && t->possible && large == (p->state == SEARCH_OVER_MEMORY));
    if (!t) break;
    AGREE(l, p, t->time_ps == p->time_ps && t->alone_ps == p->alone_ps && t->peak_bytes == p->peak_bytes);
    for (u32 i = 0; i < CHOICE_COUNT; i++) chosen[i] += !choice_same(is.of[i], choice_default((choice_id)i));
    between_tasks += !is.schedule.path && sched_row_of(is.schedule.n)->weights != WEIGHTS_ONE;
    over += p->state == SEARCH_OVER_MEMORY;
    break;
  default: AGREE(l, p, !"an open point");
  }
  if (p->state == SEARCH_BOUND_TIME) AGREE(l, p, p->bound_ps > kth && !p->time_ps && !p->peak_bytes);
  if (p->applied && p->state != SEARCH_BOUND_TIME) AGREE(l, p, l->o.no_bounds || p->bound_ps <= kth);
  if (p->applied && !l->o.no_bounds && limit >= 0) AGREE(l, p, p->bound_bytes <= limit);
  if (t && t->possible && p->bound_ps) AGREE(l, p, p->bound_ps <= t->time_ps);
  if (t && t->possible && p->bound_work) by_work++, tightness += (double)p->bound_ps / (double)t->time_ps;
  if (t && t->possible && p->bound_ps) AGREE(l, p, p->bound_bytes <= t->peak_bytes);
}

static int by_time(const void *x, const void *y) {
  const truth *a = *(const truth *const *)x, *b = *(const truth *const *)y;
  if (a->time_ps != b->time_ps) return a->time_ps < b->time_ps ? -1 : 1;
  if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
  return strategy_compare(&a->s, &b->s);
}

// What fits by brute force, best first, of equal programs only those that the search kept apart.
static u32 ranked(const listing *l, const search_result *r, const truth **v) {
  u32 n = 0;
  for (u32 i = 0; i < l->v.n; i++) {
    const truth *t = l->v.v[i].settled ? find_truth(l->w, &l->v.v[i].s) : NULL;
    if (!t || !t->possible || (l->o.memory_bytes >= 0 && t->peak_bytes > l->o.memory_bytes)) continue;
    bool other = false;
    for (u32 k = 0; k < r->npoints && !other; k++)
      other = r->point[k].state == SEARCH_EQUAL && search_is(&r->point[k], &t->s);
    if (!other) v[n++] = t;
  }
  qsort(v, n, sizeof *v, by_time);
  return n;
}

// Does the point stand for this strategy, which is impossible with its order of tasks whatever the other rows say?
static bool stands_for(const search_point *p, const strategy *s) {
  bool same = p->stands > 1 && choice_same(search_value(p, CHOICE_skip), s->skip);
  for (u32 i = 0; i <= CHOICE_group && same; i++) same = choice_same(search_value(p, (choice_id)i), s->of[i]);
  return same;
}

static u32 together;
static void check_space(const listing *l, const search_result *r) {
  u32 all = 0;
  for (u32 k = 0; k < r->npoints; k++) {
    all += r->point[k].stands;
    AGREE(l, &r->point[k], r->point[k].stands == 1 || r->point[k].state == SEARCH_IMPOSSIBLE);
  }
  CHECK_MSG(r->space == l->v.n && all == r->space, "%s: %u points for %u, should be %u", told(l), all,
            r->space, l->v.n);
  for (u32 i = 0; i < l->v.n; i++) {
    const strategy *s = &l->v.v[i].s;
    u32 found = 0, stand = 0;
    for (u32 k = 0; k < r->npoints; k++)
      found += search_is(&r->point[k], s), stand += stands_for(&r->point[k], s);
    CHECK_MSG(found + (found ? 0 : stand) == 1 || !l->v.v[i].settled, "%s: %s is %u times in the space",
              told(l), strategy_str(l->w->a, s), found + stand);
    const truth *t = stand && l->v.v[i].settled ? find_truth(l->w, s) : NULL;
    CHECK_MSG(!t || !t->possible, "%s: %s is possible", told(l), strategy_str(l->w->a, s));
    together += stand && l->v.v[i].settled;
  }
}

static void check_counts(const listing *l, const search_result *r) {
  u32 count[SEARCH_STATES] = {0}, sum = 0, reasons = 0;
  for (u32 i = 0; i < r->npoints; i++) count[r->point[i].state] += r->point[i].stands;
  for (u32 k = 0; k < SEARCH_STATES; k++) sum += r->count[k];
  for (u32 k = 0; k < r->nreasons; k++) reasons += r->reason[k].count;
  CHECK_MSG(!memcmp(count, r->count, sizeof count) && sum == r->space && !count[SEARCH_OPEN], "%s", told(l));
  CHECK_MSG(reasons == count[SEARCH_IMPOSSIBLE] && r->nfit == count[SEARCH_RAN], "%s", told(l));
}

// Programs that are the same though the search ran both: never of the same plan.
static void count_twins(const listing *l, const search_result *r) {
  for (u32 i = 0; i < r->npoints; i++)
    for (u32 k = 0; k < i; k++) {
      const truth *x = truth_at(l->w, &r->point[i]), *y = truth_at(l->w, &r->point[k]);
      bool plans;
      if (!r->point[i].time_ps || !r->point[k].time_ps || !x || !y || !same_program(l->w, x, y, &plans))
        continue;
      twins++;
      AGREE(l, &r->point[i], !plans);
      if (getenv("TWINS"))
        printf("%s: twins %s, %s\n", told(l), strategy_str(l->w->a, &x->s), strategy_str(l->w->a, &y->s));
      break;
    }
}

// ---- physics of a plan that was found -------------------------------------------------------------------
static u32 moved, scaled;

static void shuffle(u64 *rng, u32 *v, u32 n) {
  for (u32 i = n; i-- > 1;) {
    const u32 k = pick(rng, i + 1), x = v[i];
    v[i] = v[k], v[k] = x;
  }
}

// Nodes of a kind change places, and the devices of every node.
static void permute(setting *w, u32 *to) {
  u32 rank = 0;
  for (u32 k = 0; k < w->m->nnode_kinds; k++) {
    const u32 nodes = w->m->node_kind[k].count, per = w->m->node_kind[k].ndevs;
    u32 *node = NEWN(w->a, u32, nodes), *dev = NEWN(w->a, u32, per);
    for (u32 i = 0; i < nodes; i++) node[i] = i;
    for (u32 i = 0; i < per; i++) dev[i] = i;
    shuffle(&w->rng, node, nodes);
    for (u32 i = 0; i < nodes; i++) {
      shuffle(&w->rng, dev, per);
      for (u32 d = 0; d < per; d++) to[rank + i * per + d] = rank + node[i] * per + dev[d];
    }
    rank += nodes * per;
  }
}

static u32 twice(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  const u32 n = cost_instr(arg, p, f, i, g, ps);
  for (u32 k = 0; k < n; k++) ps[k] *= 2;
  return n;
}

static void check_moved(const listing *l, const search_point *p, const plan *pn, arena *a) {
  setting *w = l->w;
  const sim_opts o = {.mode = SIM_FOLDED, .bytes = w->bytes, .steady = is_steady(w)};
  u32 *to = NEWN(a, u32, w->m->nranks);
  sim_result r;
  permute(w, to);
  prog *d = plan_apply(w->pl, plans_relabelled(pn, to, a), w->k);
  AGREE(l, p,
        d && sim_run(w->c, a, d, w->k, &o, &r) && r.makespan_ps == p->alone_ps && r.period_ps == p->time_ps &&
            r.peak_bytes == p->peak_bytes);
  prog_free(d);
  moved++;
}

// The path is as long as the step, and no resource has more work than that.
static void check_step(const listing *l, const search_point *p, const prog *d, arena *a) {
  setting *w = l->w;
  const sim_opts one = {.mode = SIM_FOLDED, .bytes = w->bytes, .critical = true, .steps = true},
                 two = {.mode = SIM_FLAT, .bytes = w->bytes, .cost = twice, .cost_arg = w->k};
  sim_result r, s;
  i64 path = 0;
  if (!AGREE(l, p, sim_run(w->c, a, d, w->k, &one, &r) && sim_run(w->c, a, d, NULL, &two, &s))) return;
  for (u32 k = 0; k < r.ncritical; k++) path += r.critical[k].dur_ps;
  AGREE(l, p, path == p->alone_ps && r.makespan_ps == p->alone_ps && r.peak_bytes == p->peak_bytes);
  AGREE(l, p, s.makespan_ps == 2 * p->alone_ps && s.peak_bytes == p->peak_bytes);
  for (u32 k = 0; k < r.nclasses * r.nstreams; k++)
    AGREE(l, p, r.comm_ps[k] <= r.busy_ps[k] && r.busy_ps[k] <= r.end_ps[k] && r.end_ps[k] <= p->alone_ps);
  scaled++;
}

static void check_physics(const listing *l, const search_point *p) {
  setting *w = l->w;
  arena *a = arena_new();
  const hybrid_opts h = {
      .s = search_strategy(p), .train = w->train, .optim = w->optim, .k = w->k, .memory_bytes = w->memory};
  const plan *pn = policy_hybrid(w->pl, a, &h);
  prog *d = pn ? plan_apply(w->pl, pn, w->k) : NULL;
  if (AGREE(l, p, d)) {
    check_step(l, p, d, a);
    check_moved(l, p, pn, a);
  }
  prog_free(d);
  diag_clear(w->c);
  arena_free(a);
}

static bool may_have(const choice_set *x, u32 n) {
  bool said = !x->said || x->all;
  for (u32 k = 0; k < x->n; k++) said |= x->v[k].n == n;
  return said;
}

// What one device takes at least, with every size of microbatches and every way to compute again that was not ruled out.
static i64 best_of_one(const listing *l, u32 skip) {
  const setting *w = l->w;
  const choice_set *again = &l->o.space.of[CHOICE_recompute], *size = &l->o.space.of[CHOICE_mbs];
  strategy one = strategy_default();
  i64 least = INT64_MAX;
  one.skip.n = skip;
  for (one.mb.n = 1; one.mb.n <= w->batch; one.mb.n++)
    for (u32 a = 0; w->batch % one.mb.n == 0 && a < (w->train ? choice_words(CHOICE_recompute) : 1); a++) {
      one.recompute.n = a;
      const bool said = may_have(again, a) && may_have(size, (u32)w->batch / one.mb.n);
      const truth *t = said ? truth_of(l->w, &one) : NULL;
      if (t && t->possible && (l->o.memory_bytes < 0 || t->peak_bytes <= l->o.memory_bytes))
        least = MIN(least, t->time_ps);
    }
  return least;
}

static void check_one_device(const listing *l, const search_result *r) {
  static const choice_id others[] = {CHOICE_attention, CHOICE_offload, CHOICE_coshard,     CHOICE_grads,
                                     CHOICE_prefetch,  CHOICE_update,  CHOICE_materialise, CHOICE_bn};
  const machine *m = l->w->m;
  const strategy best = search_strategy(&r->point[0]);
  i64 least = INT64_MAX;
  bool apart = strategy_ranks(&best) == 1;
  for (u32 k = 0; k < COUNT_OF(others); k++) apart |= l->o.space.of[others[k]].said;
  if (apart) return;
  const choice_set *skip = &l->o.space.of[CHOICE_skip];
  const bool some = skip->said && !skip->all;
  const u32 n = some ? skip->n : machine_one_kind(m, 0, m->nranks) ? 1 : m->nranks;
  for (u32 k = 0; k < n; k++) least = MIN(least, best_of_one(l, some ? skip->v[k].n : k));
  const bool faster = least < r->point[0].time_ps;
  CHECK_MSG(r->one_device.time_ps == (faster ? least : 0), "%s: one device takes %lld, the search says %lld",
            told(l), (long long)least, (long long)r->one_device.time_ps);
  dear_devices += faster;
}

// The point whose program it has, in the end.
static const search_point *program_of(const listing *l, const search_result *r, const search_point *p) {
  for (u32 n = 0; n < 5 && p && p->state == SEARCH_EQUAL; n++) p = same_as(l, r, p);
  return p;
}

// Of every value of schedule and coshard: the best of all its plans by brute force, whichever value says the same program.
static u32 families, known, bounded;
static void check_families(const listing *l, const search_result *r) {
  for (u32 k = 0; k < r->nfamilies; k++) {
    const search_family *f = &r->family[k];
    const i64 limit = l->o.memory_bytes, slow = MAX(f->bound_ps, r->last_ps);
    i64 best = 0;
    u32 plans = 0, nseen = 0;
    const search_point **seen = NEWN(l->w->a, const search_point *, r->npoints + 1);
    for (u32 i = 0; i < r->npoints; i++) {
      const search_point *p = &r->point[i], *to = program_of(l, r, p);
      u32 before = 0;
      const strategy is = search_strategy(p);
      const bool applies = choice_applies(f->of, &is, l->o.train);
      if (applies != f->applies || (applies && !choice_same(is.of[f->of], f->value))) continue;
      const truth *t = find_truth(l->w, &is);
      while (before < nseen && seen[before] != to) before++;
      if (before == nseen) seen[nseen++] = to, plans += to && to->state != SEARCH_IMPOSSIBLE;
      if (!t || !t->possible || (limit >= 0 && t->peak_bytes > limit)) continue;
      if (!best || t->time_ps < best) best = t->time_ps;
    }
    const char *name = arena_printf(l->w->a, "%s, %s %u", told(l), choice_get(f->of)->name, f->value.n);
    CHECK_MSG(plans == f->fit + f->large + f->slow, "%s: %u plans, not %u", name, plans,
              f->fit + f->large + f->slow);
    CHECK_MSG(!f->best == !f->fit && !f->bound_ps == !f->slow, "%s", name);
    CHECK_MSG(!best || f->best || f->slow, "%s: no word of %lld", name, (long long)best);
    CHECK_MSG(!f->best || (best && best <= f->time_ps), "%s: %lld is the best, not %lld", name,
              (long long)best, (long long)f->time_ps);
    CHECK_MSG(!best || best == f->time_ps || (f->slow && best >= slow), "%s: %lld is below its bound, %lld",
              name, (long long)best, (long long)slow);
    families++, known += f->best && best == f->time_ps, bounded += !f->best && f->slow;
  }
}

static void check_result(const listing *l, const search_result *r) {
  const truth **v = NEWN(l->w->a, const truth *, l->v.n + 1);
  const u32 n = ranked(l, r, v), top = l->o.top && !l->o.no_bounds ? MIN(l->o.top, n) : n;
  const i64 kth = l->o.top && n >= l->o.top ? v[l->o.top - 1]->time_ps : INT64_MAX;
  check_space(l, r);
  check_counts(l, r);
  check_families(l, r);
  CHECK_MSG(r->last_ps == (l->o.no_bounds ? INT64_MAX : kth), "%s: the last kept takes %lld, not %lld",
            told(l), (long long)r->last_ps, (long long)kth);
  for (u32 i = 0; i < r->npoints; i++) check_state(l, r, &r->point[i], kth);
  CHECK_MSG(r->nfit >= top && (l->o.no_bounds ? r->nfit == n : r->nfit <= n), "%s: %u fit, should be %u",
            told(l), r->nfit, n);
  for (u32 i = 0; i < top && i < r->nfit; i++) AGREE(l, &r->point[i], search_is(&r->point[i], &v[i]->s));
  if (r->nfit) check_one_device(l, r);
  if (r->nfit) check_physics(l, &r->point[0]), check_physics(l, &r->point[pick(&l->w->rng, r->nfit)]);
  points += r->npoints;
}

static bool search(listing *l, search_result *r) {
  bool ok = search_run(l->w->c, l->w->a, l->w->src, l->w->m, &l->w->costs, &l->o, r);
  CHECK_MSG(ok == !diag_errors(l->w->c), "%s: %s", told(l), diag_render(l->w->c, l->w->a));
  CHECK_MSG(ok || diag_get(l->w->c, 0).id == E_NO_PLAN, "%s: %s", told(l), diag_render(l->w->c, l->w->a));
  diag_clear(l->w->c);
  return ok;
}

// A limit near the peak of one of the plans.
static void random_limit(listing *l) {
  const truth **v = NEWN(l->w->a, const truth *, l->v.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < l->v.n; i++) {
    const truth *t = l->v.v[i].settled ? find_truth(l->w, &l->v.v[i].s) : NULL;
    if (t && t->possible) v[n++] = t;
  }
  if (n) l->o.memory_bytes = l->w->memory = v[pick(&l->w->rng, n)]->peak_bytes - pick(&l->w->rng, 2);
}

static void check_search(setting *w) {
  listing l;
  search_result r;
  do { diag_clear(w->c); } while (!random_search(w, &l) || (!all_used(&l) && !chance(&w->rng, 60)));
  if (getenv("SEED")) printf("%s: %u points\n", told(&l), l.v.n);
  if (!all_used(&l)) {
    CHECK_MSG(!search_run(w->c, w->a, w->src, w->m, &w->costs, &l.o, &r), "%s", told(&l));
    CHECK_MSG(diag_count(w->c) && (diag_get(w->c, 0).id == E_STRATEGY || !l.v.n), "%s: %s", told(&l),
              diag_render(w->c, w->a));
    diag_clear(w->c);
    refusals++;
    return;
  }
  for (u32 i = 0; i < l.v.n; i++)
    if (l.v.v[i].settled) truth_of(w, &l.v.v[i].s);
  searches++;
  if (chance(&w->rng, 2)) { // everything, without a limit
    l.o.no_bounds = true;
    search(&l, &r);
    check_result(&l, &r);
    CHECK(!r.bound_failed);
    count_twins(&l, &r);
    l.o.no_bounds = false;
  }
  if (!chance(&w->rng, 3)) random_limit(&l);
  search(&l, &r);
  check_result(&l, &r);
}

TEST(search_is_brute_force) {
  const char *one = getenv("SEED");
  u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : test_cases(SETTINGS);
  for (u64 seed = from; seed <= to; seed++) {
    setting s;
    open_setting(&s, seed);
    for (u32 i = 0; i < EACH; i++) check_search(&s);
    close_setting(&s);
  }
  printf("  %u searches of %u points, %u refused; %u too slow, %u + %u too large, %u equal, %u impossible by "
         "order, "
         "%u twins, %u faster on one device\n",
         searches, points, refusals, cut_time, cut_memory, over, equal, together, twins, dear_devices);
  printf("  %u bounds from work, on average %.2f of the time\n", by_work, tightness / by_work);
  printf(
      "  %u plans on devices that changed places, %u at twice the prices, %u settings with measured times\n",
      moved, scaled, profiled);
  printf("  simulated with");
  for (u32 i = CHOICE_v; i < CHOICE_COUNT; i++) printf(" %s %u", choice_get((choice_id)i)->name, chosen[i]);
  printf("\n  %u with updates between tasks; of %u values of schedule and coshard the best is known of %u, a "
         "bound of %u\n",
         between_tasks, families, known, bounded);
  if (one || !test_all_cases()) return;
  CHECK_MSG(between_tasks >= 20, "%u", between_tasks);
  CHECK(by_work >= 300 && families >= 100 && known >= 50 && bounded >= 1);
  CHECK_MSG(searches >= 200 && refusals >= 10, "%u searches, %u refused", searches, refusals);
  CHECK(moved >= 300 && scaled >= 300 && profiled >= 10);
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    CHECK_MSG(chosen[i] >= CHOSEN || i == CHOICE_mbs, "%s: %u", choice_get((choice_id)i)->name, chosen[i]);
  CHECK_MSG(cut_time >= 20 && cut_memory >= 3 && over >= 50 && equal >= 100 &&
                dear_devices >= 3, // tests/prop/fewer.c has more of these
            "%u too slow, %u and %u too large, %u equal, %u faster on one device", cut_time, cut_memory, over,
            equal, dear_devices);
}
