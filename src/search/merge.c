// merge.c - the result of a search from all of its parts.
//
// Idea: what every part knows of the whole space is taken from one of them, what each applied is put
// together, and the rest is what a search does at its end (outcome_settle).
#include "search/internal.h"

static const char *file_of(const ctx *c, loc at) {
  const loc_info *l = loc_get(c, at);
  return l && l->file.i ? sym_str(c, l->file) : "the first";
}

static const char *or_none(const char *s) { return s && *s ? s : "none"; }

// ---- do they belong together? -----------------------------------------------------------------------------
static bool same_search(ctx *c, const search_part *first, const search_part *p) {
  for (u32 i = 0; i < SHARED_COUNT; i++) {
    const char *x = first->shared[i], *y = p->shared[i];
    if (!x == !y && (!x || !strcmp(x, y))) continue;
    diag(c, E_PARTS, p->shared_at[i], "this part is of another search: %s is %s here and %s in %s",
         shared_rows[i].about, or_none(y), or_none(x), file_of(c, first->at));
    diag_note(c, first->shared_at[i], "the other search");
    return false;
  }
  if (p->parts == first->parts) return true;
  diag(c, E_PARTS, p->parts_at, "one of %u parts, but %s is one of %u", p->parts, file_of(c, first->at),
       first->parts);
  diag_note(c, first->parts_at, "the other number of parts");
  return false;
}

// "part 2", "parts 2, 3, 4, 5, 6 and 7 more".
static const char *missing(arena *a, const search_part *const *by_part, u32 parts, u32 *first) {
  enum { TOLD = 5 };
  strbuf b = {.a = a};
  u32 n = 0;
  for (u32 i = 0; i < parts; i++) {
    if (by_part[i]) continue;
    if (!n) *first = i + 1;
    if (n++ < TOLD) sb_fmt(&b, "%s%u", n > 1 ? ", " : "", i + 1);
  }
  if (n > TOLD) sb_fmt(&b, " and %u more", n - TOLD);
  return n ? arena_printf(a, "part%s %s of %u %s", n > 1 ? "s" : "", b.v, parts, n > 1 ? "are" : "is") : NULL;
}

// Every part once? by_part: where each is.
static bool each_once(ctx *c, arena *a, u32 n, search_part *const *part, const search_part **by_part) {
  const u32 parts = part[0]->parts;
  for (u32 i = 0; i < n; i++) {
    const search_part **at = &by_part[part[i]->part - 1];
    if (*at) {
      diag(c, E_PARTS, part[i]->at, "part %u of %u is given twice", part[i]->part, parts);
      diag_note(c, (*at)->at, "first here");
      return false;
    }
    *at = part[i];
  }
  u32 first = 0;
  const char *which = missing(a, by_part, parts, &first);
  if (!which) return true;
  diag(c, E_PARTS, part[0]->parts_at, "%s missing", which);
  diag_hint(c, "`heddle plan ... --part %u/%u -o FILE`, with the options of the others, evaluates it", first,
            parts);
  return false;
}

static bool agree(ctx *c, arena *a, u32 n, search_part *const *part, u32 top, const search_part **by_part) {
  const search_part *first = part[0];
  if (strcmp(or_none(first->shared[SHARED_version]), HEDDLE_VERSION)) {
    diag(c, E_PARTS, first->shared_at[SHARED_version], "a part of Heddle %s; this is %s",
         or_none(first->shared[SHARED_version]), HEDDLE_VERSION);
    return false;
  }
  for (u32 i = 1; i < n; i++)
    if (!same_search(c, first, part[i])) return false;
  if (!each_once(c, a, n, part, by_part)) return false;
  if (!top || !first->o.top || top <= first->o.top) return true;
  diag(c, E_USAGE, first->shared_at[SHARED_top], "--top %u, but these parts kept the best %u", top,
       first->o.top);
  diag_hint(c, "use --top %u, or search again with a larger --top", first->o.top);
  return false;
}

// ---- together ---------------------------------------------------------------------------------------------
static void put_together(arena *a, const search_part *const *part, search_result *r) {
  const u32 parts = part[0]->parts;
  u32 n = 0;
  *r = part[0]->r;
  r->reasons_cap = r->nreasons + 1;
  r->reason = NEWN(a, search_reason, r->reasons_cap);
  if (r->nreasons) memcpy(r->reason, part[0]->r.reason, r->nreasons * sizeof *r->reason);
  r->family = NEWN(a, search_family, r->nfamilies + 1);
  if (r->nfamilies) memcpy(r->family, part[0]->r.family, r->nfamilies * sizeof *r->family);
  r->npoints = r->dealt = r->refit = r->count[SEARCH_BOUND_TIME] = 0;
  r->one_device = r->one_node = (search_fewer){0}; // of whichever part has them
  for (u32 i = 0; i < parts; i++) n += part[i]->r.npoints;
  r->point = NEWN(a, search_point, n + 1);
  for (u32 i = 0; i < parts; i++) {
    const search_result *x = &part[i]->r;
    memcpy(r->point + r->npoints, x->point, x->npoints * sizeof *x->point);
    r->npoints += x->npoints;
    r->dealt += x->dealt;
    r->refit += x->refit;
    r->count[SEARCH_BOUND_TIME] += x->count[SEARCH_BOUND_TIME];
    if (x->one_device.time_ps) r->one_device = x->one_device;
    if (x->one_node.time_ps) r->one_node = x->one_node;
    r->bound_failed |= x->bound_failed;
    if (i && !families_add(r, x)) r->nfamilies = 0;             // no search writes such parts
    if (x->even_ps) r->even_ps = x->even_ps, r->even = x->even; // likewise
    if (i && !make_ups_add(a, r, x)) r->nmake_ups = 0;          // likewise
  }
  r->count[SEARCH_EQUAL] -= MIN(r->refit, r->count[SEARCH_EQUAL]);
}

// A plan for every point of the space?
static bool is_all(ctx *c, const search_part *first, const search_result *r) {
  u64 n = (u64)r->dealt + r->refit;
  n += (u64)r->count[SEARCH_IMPOSSIBLE] + r->count[SEARCH_EQUAL] + r->count[SEARCH_BOUND_MEMORY];
  if (n == r->space) return true;
  diag(c, E_PART, first->shared_at[SHARED_space], "%u plans, but the parts have %llu", r->space,
       (unsigned long long)n);
  return false;
}

// What is known of the best plan: it is the best of its part.
static void of_best(const search_part *const *part, search_result *r, search_about *about) {
  for (u32 i = 0; i < part[0]->parts && r->nfit; i++) {
    const search_result *x = &part[i]->r;
    const strategy best = search_strategy(&r->point[0]);
    if (!x->npoints || !search_is(&x->point[0], &best)) continue;
    about->batchnorm = part[i]->about.batchnorm;
    about->mfu = part[i]->about.mfu, about->layers = part[i]->about.layers;
    r->kinds = x->kinds, r->nkinds = x->nkinds, r->spread_ps = x->spread_ps;
  }
}

// The hint of the part that has the example of the only reason.
static const char *hint_of(const search_part *const *part, const search_result *r) {
  for (u32 i = 0; i < part[0]->parts && outcome_one_reason(r); i++)
    if (part[i]->hint_of && !strategy_compare(part[i]->hint_of, r->reason[0].example)) return part[i]->r.hint;
  return NULL;
}

bool search_merge(ctx *c, arena *a, u32 n, search_part *const *part, u32 top, search_opts *o,
                  search_about *about, search_result *r) {
  if (!n) {
    diag(c, E_PARTS, (loc){0}, "no parts given");
    return false;
  }
  const search_part **by_part = ZNEWN(a, const search_part *, part[0]->parts);
  if (!agree(c, a, n, part, top, by_part)) return false;
  *o = by_part[0]->o;
  *about = by_part[0]->about;
  const u32 before = diag_count(c);
  const char *asked = by_part[0]->asked ? by_part[0]->asked : by_part[0]->shared[SHARED_strategy];
  if (!strategy_parse(c, a, asked, &o->space)) o->space = (strategy_set){0};
  diag_truncate(c, before);
  if (top) o->top = top;
  o->batch = by_part[0]->r.batch;
  put_together(a, by_part, r);
  if (!is_all(c, by_part[0], r)) return false;
  const point_order *order = order_make(a, r->npoints, r->point);
  outcome_refit(a, o, r, order);
  families_of(o, r), families_also(a, r);
  outcome_settle(a, o, r, order);
  make_ups_slow(a, r), make_ups_settle(r);
  families_count(r, r->npoints, r->point);
  of_best(by_part, r, about);
  const i64 best = r->nfit ? r->point[0].time_ps : 0;
  if (r->one_device.time_ps >= best) r->one_device = (search_fewer){0};
  if (r->one_node.time_ps >= best) r->one_node = (search_fewer){0};
  r->hint = hint_of(by_part, r);
  if (!r->nfit) outcome_no_plan(c, o, r);
  return r->nfit > 0;
}
