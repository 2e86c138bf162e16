// outcome.c - the points in order, what became of them, and why none was left.
#include "search/internal.h"
#include <stdlib.h>

static int by_rank(const void *x, const void *y) {
  const search_point *a = x, *b = y;
  if ((a->state == SEARCH_RAN) != (b->state == SEARCH_RAN)) return a->state == SEARCH_RAN ? -1 : 1;
  if (a->time_ps != b->time_ps) {
    if (!a->time_ps || !b->time_ps) return a->time_ps ? -1 : 1;
    return a->time_ps < b->time_ps ? -1 : 1;
  }
  if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
  return strategy_compare(&a->s, &b->s);
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

static void count_reason(arena *a, search_result *r, const search_point *p, u32 *cap) {
  for (u32 i = 0; i < r->nreasons; i++)
    if (alike(r->reason[i].why, p->why)) {
      r->reason[i].count++;
      return;
    }
  r->reason = r->nreasons < *cap
                  ? r->reason
                  : vec_grow(a, r->reason, r->nreasons, cap, r->nreasons + 1, sizeof *r->reason);
  r->reason[r->nreasons++] = (search_reason){1, p->why, &p->s};
}

void outcome_sort(arena *a, search_result *r) {
  u32 cap = 0;
  if (r->npoints) qsort(r->point, r->npoints, sizeof *r->point, by_rank);
  for (u32 i = 0; i < r->npoints; i++) {
    r->count[r->point[i].state]++;
    if (r->point[i].state == SEARCH_IMPOSSIBLE) count_reason(a, r, &r->point[i], &cap);
  }
  if (r->nreasons) qsort(r->reason, r->nreasons, sizeof *r->reason, by_count);
  r->nfit = r->count[SEARCH_RAN];
}

// ---- no plan ------------------------------------------------------------------------------------------
static i64 least_bytes(const search_result *r) { // of the plans that are too large; 0: none is
  i64 least = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *p = &r->point[i];
    if (p->state != SEARCH_OVER_MEMORY && p->state != SEARCH_BOUND_MEMORY) continue;
    i64 b = p->peak_bytes ? p->peak_bytes : p->bound_bytes;
    if (!least || b < least) least = b;
  }
  return least;
}

static void say_counts(ctx *c, const search_result *r) {
  const u32 large = r->count[SEARCH_BOUND_MEMORY] + r->count[SEARCH_OVER_MEMORY];
  arena *a = arena_new();
  strbuf b = {.a = a};
  if (r->count[SEARCH_IMPOSSIBLE]) sb_fmt(&b, ", %u impossible", r->count[SEARCH_IMPOSSIBLE]);
  if (large) sb_fmt(&b, ", %u too large for %s of memory", large, text_bytes(a, (double)r->memory_bytes));
  if (r->count[SEARCH_EQUAL]) sb_fmt(&b, ", %u equal to another", r->count[SEARCH_EQUAL]);
  diag(c, E_NO_PLAN, (loc){0}, "no plan can run: of %u%s", r->npoints, sb_str(&b));
  arena_free(a);
}

static void say_reasons(ctx *c, arena *a, const search_result *r) {
  enum { REASONS = 5 };
  for (u32 i = 0; i < r->nreasons && i < REASONS; i++) {
    strbuf s = {.a = a};
    strategy_print(r->reason[i].example, &s);
    if (r->npoints == 1)
      diag_note(c, (loc){0}, "%s", r->reason[i].why);
    else
      diag_note(c, (loc){0}, "%u impossible, such as %s: %s", r->reason[i].count, sb_str(&s),
                r->reason[i].why);
  }
}

void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r) {
  const i64 least = least_bytes(r);
  const bool one = r->npoints == 1;
  arena *a = arena_new();
  if (!one)
    say_counts(c, r);
  else if (least)
    diag(c, E_NO_PLAN, (loc){0}, "the plan cannot run: it needs more than %s of memory",
         text_bytes(a, (double)r->memory_bytes));
  else
    diag(c, E_NO_PLAN, (loc){0}, "the plan is impossible");
  say_reasons(c, a, r);
  if (least)
    diag_note(c, (loc){0}, "%s needs at least %s on a rank", one ? "it" : "the smallest",
              text_bytes(a, (double)least));
  if (least)
    diag_hint(c, "more devices%s or a smaller batch need less memory on each",
              o->train ? ", zero=3, recompute=full" : ", more microbatches (mb)");
  else
    diag_hint(c, "degrees and microbatches that divide the batch, the heads and the layers can run");
  arena_free(a);
}
