// explain.c - why the best plan is best, and what limits the others, in sentences made of the figures.
#include "search/search.h"

static void plan_name(const search_point *p, strbuf *b) {
  sb_fmt(b, "D%u T%u P%u K%u", p->data, p->tensor, p->pipeline, p->micro);
  if (p->pipeline > 1 && p->schedule == SCHED_GPIPE) sb_put(b, " gpipe");
  if (p->zero) sb_fmt(b, " zero%u", p->zero);
  if (p->recompute) sb_put(b, p->recompute == RECOMPUTE_FULL ? " recompute" : " selective");
}

static const search_point *pure(const search_result *r,
                                int which) { // the best plan that uses one dimension only
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *p = &r->point[i];
    if (!p->time_ps) continue;
    u32 other = which == 0   ? p->tensor * p->pipeline
                : which == 1 ? p->data * p->pipeline
                             : p->data * p->tensor;
    if (other == 1) return p;
  }
  return NULL;
}

void search_explain(const search_result *r, strbuf *b) {
  const search_point *w = &r->point[0];
  sb_put(b, "best: ");
  plan_name(w, b);
  sb_fmt(b, ": devices compute %.0f %% of the time", 100 * w->utilisation);
  if (w->comm > 0.005) sb_fmt(b, "; they communicate %.0f %%", 100 * w->comm);
  sb_fmt(b, "; peak memory %.2f GB", (double)w->peak_bytes / 1e9);
  if (r->memory_bytes > 0) sb_fmt(b, " of %.2f GB", (double)r->memory_bytes / 1e9);
  sb_put(b, "\n");
  if (r->nfit > 1) {
    const search_point *n = &r->point[1];
    sb_put(b, "next: ");
    plan_name(n, b);
    sb_fmt(b, " takes %.3g times as long", (double)n->time_ps / (double)w->time_ps);
    if (n->utilisation + 0.005 < w->utilisation)
      sb_fmt(b, " (devices compute %.0f %% of the time)", 100 * n->utilisation);
    sb_put(b, "\n");
  }
  static const char *const kind[] = {"data", "tensor", "pipeline"};
  for (int k = 0; k < 3; k++) {
    const search_point *p = pure(r, k);
    if (!p || p == w) continue;
    sb_fmt(b, "%s parallelism alone: ", kind[k]);
    if (p->state == SEARCH_OVER_MEMORY)
      sb_fmt(b, "does not fit (%.2f GB)\n", (double)p->peak_bytes / 1e9);
    else
      sb_fmt(b, "%.3g times as long\n", (double)p->time_ps / (double)w->time_ps);
  }
  const search_point *faster = NULL;
  for (u32 i = r->nfit; i < r->npoints; i++)
    if (r->point[i].state == SEARCH_OVER_MEMORY && r->point[i].time_ps < w->time_ps &&
        (!faster || r->point[i].time_ps < faster->time_ps))
      faster = &r->point[i];
  if (faster) {
    sb_put(b, "with more memory: ");
    plan_name(faster, b);
    sb_fmt(b, " would be %.3g times as fast with %.2f GB\n", (double)w->time_ps / (double)faster->time_ps,
           (double)faster->peak_bytes / 1e9);
  }
  sb_fmt(b,
         "certificate: %u plans in the space; %u simulated (%u fit), %u ruled out by the memory bound, %u by "
         "the time bound, %u do not divide\n",
         r->npoints, r->count[SEARCH_RAN] + r->count[SEARCH_OVER_MEMORY], r->count[SEARCH_RAN],
         r->count[SEARCH_BOUND_MEMORY], r->count[SEARCH_BOUND_TIME], r->count[SEARCH_INDIVISIBLE]);
}
