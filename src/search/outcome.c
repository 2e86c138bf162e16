// outcome.c - the points in order, what became of them, and why none was left.
//
// Idea: which points are too slow is decided last, by the time of the last plan that is kept. Whatever the
// order of evaluation, all whose bound is not above it were applied: a point is passed over for the time of
// the k-th best plan so far, which is never below that of the k-th best at the end. So states, counts and
// ranks are a function of the space.
#include "search/internal.h"
#include <stdlib.h>

// ---- the plans that are kept ----------------------------------------------------------------------------
kept kept_new(arena *a, const search_opts *o, u32 npoints) {
  const u32 most = o->no_bounds ? 0 : MIN(o->top, npoints + 1);
  return (kept){.most = most, .v = NEWN(a, i64, most + 1)};
}

i64 kept_last(const kept *k) { return k->most && k->n == k->most ? k->v[0] : INT64_MAX; }

void kept_add(kept *k, i64 time_ps) {
  u32 i = 0;
  if (k->n < k->most) { // up from the end
    for (i = k->n++; i && k->v[(i - 1) / 2] < time_ps; i = (i - 1) / 2) k->v[i] = k->v[(i - 1) / 2];
    k->v[i] = time_ps;
    return;
  }
  if (!k->most || time_ps >= k->v[0]) return;
  for (u32 next; (next = 2 * i + 1) < k->n; i = next) { // down from the top, whose time is given up
    if (next + 1 < k->n && k->v[next + 1] > k->v[next]) next++;
    if (k->v[next] <= time_ps) break;
    k->v[i] = k->v[next];
  }
  k->v[i] = time_ps;
}

static i64 last_kept(arena *a, const search_opts *o, const search_result *r) {
  kept k = kept_new(a, o, r->npoints);
  for (u32 i = 0; i < r->npoints; i++)
    if (r->point[i].state == SEARCH_RAN && r->point[i].time_ps) kept_add(&k, r->point[i].time_ps);
  return kept_last(&k);
}

// Nothing that was simulated is told of a point that is too slow.
static void slow(search_point *p) {
  p->state = SEARCH_BOUND_TIME;
  if (p->first_ps > p->bound_ps) p->bound_ps = p->first_ps, p->bound_fill_ps = 0, p->bound_work = true;
  p->time_ps = p->alone_ps = p->peak_bytes = 0;
  p->utilisation = p->bubble = p->comm = 0;
  p->why = NULL;
}

static bool is_slow(const search_point *p, i64 last_ps) {
  const bool stays = p->state == SEARCH_RAN && p->time_ps <= last_ps;
  return p->state == SEARCH_BOUND_TIME ||
         (p->applied && (p->bound_ps > last_ps || (!stays && p->first_ps > last_ps)));
}

void outcome_refit(arena *a, const search_opts *o, search_result *r, const point_order *order) {
  const i64 last_ps = last_kept(a, o, r);
  for (u32 i = 0; i < r->npoints; i++) {
    search_point *p = &r->point[i];
    if (!p->cuts_of || !is_slow(p, last_ps)) continue;
    const strategy of = strategy_unpack(p->cuts_of);
    const u32 as = order_find(order, &of); // r->npoints: of a part, which does not list it for being too slow
    if (as < r->npoints && !is_slow(&r->point[as], last_ps)) continue;
    slow(p);
    p->state = SEARCH_EQUAL, p->applied = false, p->cuts_of = NULL, r->refit--;
    p->same_as = as < r->npoints ? as + 1 : 0;
    p->why = arena_printf(a, "the same program as %s", strategy_str(a, &of));
  }
}

// ---- order ----------------------------------------------------------------------------------------------

static int by_rank(const void *x, const void *y) {
  const search_point *a = *(search_point *const *)x, *b = *(search_point *const *)y;
  if ((a->state == SEARCH_RAN) != (b->state == SEARCH_RAN)) return a->state == SEARCH_RAN ? -1 : 1;
  if (a->time_ps != b->time_ps) {
    if (!a->time_ps || !b->time_ps) return a->time_ps ? -1 : 1;
    return a->time_ps < b->time_ps ? -1 : 1;
  }
  if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
  return strategy_packed_compare(&a->packed, &b->packed);
}

// Does its strategy alone not tell where it comes? By by_rank these are the first.
static bool has_figures(const search_point *p) { return p->state == SEARCH_RAN || p->time_ps; }

// Sorted by their places: points are large, and there may be many. Those that were not simulated follow the
// others by their strategies.
static void rank(search_result *r, const point_order *order) {
  arena *tmp = arena_new();
  search_point **to = NEWN(tmp, search_point *, r->npoints + 1);
  u32 n = 0, rest = 0;
  bool plain = true; // have the others no figures at all?
  for (u32 i = 0; i < r->npoints; i++) {
    const bool has = has_figures(&r->point[i]);
    rest += has, plain &= has || !r->point[i].peak_bytes;
  }
  if (!plain) rest = r->npoints;
  for (u32 i = 0; i < r->npoints; i++) {
    search_point *p = &r->point[order_at(order, i)];
    to[!plain || has_figures(p) ? n++ : rest++] = p;
  }
  if (n) qsort(to, n, sizeof *to, by_rank);
  for (u32 i = 0; i < r->npoints; i++) { // to[k]: what comes to place k; cycle by cycle
    const search_point first = r->point[i];
    u32 k = i;
    for (u32 from; (from = (u32)(to[k] - r->point)) != i; k = from) {
      r->point[k] = r->point[from];
      to[k] = &r->point[k];
    }
    r->point[k] = first, to[k] = &r->point[k];
  }
  arena_free(tmp);
}

// ---- reasons ------------------------------------------------------------------------------------------
static bool digit(char ch) { return ch >= '0' && ch <= '9'; }

// Are two texts the same but for their numbers?
static bool alike(const char *a, const char *b) {
  for (; *a && *b; a++, b++) {
    if (digit(*a) && digit(*b)) {
      while (digit(a[1])) a++;
      while (digit(b[1])) b++;
    } else if (*a != *b)
      return false;
  }
  return !*a && !*b;
}

static int by_count(const void *x, const void *y) {
  const search_reason *a = x, *b = y;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return strcmp(a->why, b->why);
}

// The latest point that was impossible, and its reason.
typedef struct {
  const search_point *p;
  u32 reason;
} counted;

static void count_reason(arena *a, search_result *r, const search_point *p, counted *latest) {
  const search_point *last = latest->p;
  const bool same = last && last->why == p->why;
  latest->p = p;
  if (same && strategy_packed_compare(&last->packed, &p->packed) < 0) { // it is no better example
    r->reason[latest->reason].count += p->stands;
    return;
  }
  const strategy s = search_strategy(p);
  for (u32 i = same ? latest->reason : 0; i < r->nreasons; i++) {
    search_reason *x = &r->reason[i];
    if (!alike(x->why, p->why)) continue;
    x->varies |= strcmp(x->why, p->why) != 0;
    if (strategy_compare(&s, x->example) < 0) x->why = p->why, x->example = arena_dup(a, &s, sizeof s);
    x->count += p->stands, latest->reason = i;
    return;
  }
  latest->reason = r->nreasons;
  r->reason = vec_grow(a, r->reason, r->nreasons, &r->reasons_cap, r->nreasons + 1, sizeof *r->reason);
  r->reason[r->nreasons++] = (search_reason){
      .count = p->stands, .why_id = p->why_id, .why = p->why, .example = arena_dup(a, &s, sizeof s)};
}

static void count_point(arena *a, search_result *r, const search_point *p, counted *latest) {
  r->count[p->state] += p->stands;
  if (p->state == SEARCH_IMPOSSIBLE) count_reason(a, r, p, latest);
  if (p->state != SEARCH_OVER_MEMORY && p->state != SEARCH_BOUND_MEMORY) return;
  if (p->host_bytes) {
    r->host_count++;
    if (!r->host_least || p->host_bytes < r->host_least)
      r->host_least = p->host_bytes, r->host_usable = p->host_usable;
    return;
  }
  const i64 bytes = p->peak_bytes ? p->peak_bytes : p->bound_bytes;
  if (!r->least_bytes || bytes < r->least_bytes) r->least_bytes = bytes;
}

void outcome_count(arena *a, search_result *r, const search_point *p) {
  counted none = {0};
  count_point(a, r, p, &none);
}

void outcome_settle(arena *a, const search_opts *o, search_result *r, const point_order *order) {
  r->last_ps = last_kept(a, o, r);
  for (u32 i = 0; i < r->npoints; i++)
    if (is_slow(&r->point[i], r->last_ps)) slow(&r->point[i]);
  rank(r, order);
  counted latest = {0};
  for (u32 i = 0; i < r->npoints; i++) count_point(a, r, &r->point[i], &latest);
  if (r->nreasons) qsort(r->reason, r->nreasons, sizeof *r->reason, by_count);
  r->nfit = r->count[SEARCH_RAN];
}

// ---- no plan ------------------------------------------------------------------------------------------
// On devices of several kinds the least and the most.
static const char *limits_of(arena *a, const search_result *r) {
  const char *most = text_bytes(a, (double)r->memory_bytes);
  if (r->memory_least == r->memory_bytes) return most;
  return arena_printf(a, "%s to %s", text_bytes(a, (double)r->memory_least), most);
}

static void say_counts(ctx *c, const search_result *r) {
  const u32 large = r->count[SEARCH_BOUND_MEMORY] + r->count[SEARCH_OVER_MEMORY] - r->host_count;
  arena *a = arena_new();
  strbuf b = {.a = a};
  if (r->count[SEARCH_IMPOSSIBLE]) sb_fmt(&b, ", %u impossible", r->count[SEARCH_IMPOSSIBLE]);
  if (large) sb_fmt(&b, ", %u too large for %s of memory", large, limits_of(a, r));
  if (r->host_count)
    sb_fmt(&b, ", %u too large for %s of host memory", r->host_count, text_bytes(a, (double)r->host_usable));
  if (r->count[SEARCH_EQUAL]) sb_fmt(&b, ", %u equal to another", r->count[SEARCH_EQUAL]);
  if (r->count[SEARCH_IMPOSSIBLE] == r->space)
    diag(c, E_NO_PLAN, (loc){0},
         r->space == 1 ? "no plan can run: it is impossible" : "no plan can run: all %u are impossible",
         r->space);
  else
    diag(c, E_NO_PLAN, (loc){0}, "no plan can run: of %u%s", r->space, sb_str(&b));
  arena_free(a);
}

static void say_reasons(ctx *c, arena *a, const search_result *r) {
  enum { REASONS = 5 };
  for (u32 i = 0; i < r->nreasons && i < REASONS; i++) {
    if (r->space == 1)
      diag_note(c, (loc){0}, "%s", r->reason[i].why);
    else
      diag_note(c, (loc){0}, "%u impossible, such as %s: %s", r->reason[i].count,
                strategy_str(a, r->reason[i].example), r->reason[i].why);
  }
}

// The shares that were said are of every plan, and do not divide the batch: said where they are, with the nearest
// that do.
static bool shares_unfit(ctx *c, arena *a, const search_opts *o) {
  const choice_set *x = &o->space.of[CHOICE_dp_shares], *dp = &o->space.of[CHOICE_dp];
  const bool one = x->n == 1 && !x->all && x->v[0].nparts > 1 && dp->n == 1 && dp->v[0].n == x->v[0].nparts;
  if (!one || o->batch <= 0 || o->space.of[CHOICE_tp_stages].said || o->space.of[CHOICE_replicas].said)
    return false;
  const choice_value v = x->v[0];
  i64 sum = 0;
  for (u32 k = 0; k < v.nparts; k++) sum += v.part[k];
  if (!sum || o->batch % sum == 0) return false;
  const long long larger = (long long)((o->batch / sum + 1) * sum);
  strbuf b = {.a = a}, near = {.a = a};
  choice_say(CHOICE_dp_shares, v, &b);
  diag(c, E_NO_PLAN, x->at, "no plan can run: %s: batch %lld is not divisible by %lld, their sum", sb_str(&b),
       (long long)o->batch, (long long)sum);
  u32 *part = arena_dup(a, v.part, sizeof *part * v.nparts);
  if (!strategy_shares_near(part, v.nparts, o->batch)) {
    diag_hint(c, "--batch %lld, or dp.shares=auto", larger);
    return true;
  }
  if (strategy_reduce(part, v.nparts))
    choice_say(CHOICE_dp_shares, (choice_value){.nparts = v.nparts, .part = part}, &near);
  else
    sb_put(&near, "dp.shares=equal");
  diag_hint(c, "%s is nearest to them; or --batch %lld, or dp.shares=auto", sb_str(&near), larger);
  return true;
}

// What the search might have been told to keep in host memory, where it kept nothing there and the machine has any.
static const char *offload_of(const search_opts *o, search_host host) {
  const choice_set *x = &o->space.of[CHOICE_offload];
  bool none = host != HOST_NONE && !x->all;
  for (u32 k = 0; x->said && k < x->n; k++) none = none && !x->v[k].n;
  if (!none) return "";
  if (!o->train) return "; the machine has host memory: offload=params";
  return host == HOST_UPDATES ? "; the machine has host memory: offload=* update=*"
                              : "; the machine has host memory: offload=*";
}

bool outcome_one_reason(const search_result *r) {
  if (!r->nreasons || r->least_bytes) return false;
  return r->space == 1 || (r->nreasons == 1 && (!r->reason[0].varies || r->reason[0].why_id == E_STRATEGY));
}

void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r) {
  const i64 least = r->least_bytes;
  const i64 host = r->host_least;
  const bool one = r->space == 1;
  if (r->nreasons && r->reason[0].why_id == E_PROFILE && !least && !host) { // of the file, whatever the plan
    diag(c, E_PROFILE, (loc){0}, "%s", r->reason[0].why);
    return;
  }
  const char *there = offload_of(o, r->host);
  arena *a = arena_new();
  if (shares_unfit(c, a, o)) {
    arena_free(a);
    return;
  }
  if (!one)
    say_counts(c, r);
  else if (least)
    diag(c, E_NO_PLAN, (loc){0}, "the plan cannot run: it needs more than %s of memory", limits_of(a, r));
  else if (host)
    diag(c, E_NO_PLAN, (loc){0}, "the plan cannot run: it needs more than %s of host memory on a node",
         text_bytes(a, (double)r->host_usable));
  else
    diag(c, E_NO_PLAN, (loc){0}, "the plan is impossible");
  say_reasons(c, a, r);
  if (least)
    diag_note(c, (loc){0}, "%s needs at least %s on a rank", one ? "it" : "the smallest",
              text_bytes_beside(a, least, r->memory_bytes));
  if (host)
    diag_note(c, (loc){0}, "%s needs at least %s of host memory on a node",
              one     ? "it"
              : least ? "the smallest of those that fit devices"
                      : "the smallest",
              text_bytes_beside(a, host, r->host_usable));
  if (r->nreasons &&
      r->reason[0].why_id == E_LINK) // that comes first: without links hardly any plan was looked at
    diag_hint(c, "connect the nodes: --machine '... ib=8x200Gb/s'; devices of a node: '... link=300GB/s' or "
                 "'... host=16GB/s'");
  else if (host) // what is too large for devices, too, gets no smaller by lying there
    diag_hint(c, "use nodes with more host memory: --machine '... hostmem=%lldGiB'%s",
              (long long)ceil_div(host + host / 8, (i64)1 << 30),
              least ? "" : ", or offload less (offload=none) if devices have room for it");
  else if (least && o->batch == 1)
    diag_hint(c, "use more devices%s, as dp and mb split nothing of one sample%s",
              o->train ? " or recompute=full" : "", there);
  else if (least)
    diag_hint(c, "use more devices%s%s%s%s or a smaller batch%s",
              o->train && !o->space.of[CHOICE_zero].said ? ", zero=3" : "",
              o->train && !o->space.of[CHOICE_recompute].said ? ", recompute=full" : "",
              o->train || o->space.of[CHOICE_mb].said ? "" : ", more microbatches (mb)",
              o->fusible && !o->space.of[CHOICE_attention].said ? ", attention=fused" : "", there);
  else if (r->nreasons && r->reason[0].why_id == E_RATE)
    diag_hint(c, "use another --dtype, or add the rate to the machine file");
  else if (r->hint)
    diag_hint(c, "%s", r->hint);
  else
    diag_hint(c, "choose degrees and microbatches that divide the batch, the heads and the layers");
  arena_free(a);
}
