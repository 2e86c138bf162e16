// origin.c - the critical path by where its prices come from, and how far the makespan may be off for that.
//
// Idea: what is wrong in a figure is wrong in every price that it decides, so spreads of one row add up; two
// figures are wrong for reasons of their own, so rows add up as squares. What has no spread is left out and
// said to be.
#include "sim/internal.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  sim *s;
  VEC(sim_origin) origin;
  VEC(u32) rows; // of every origin: its row of the cost model
} origins;

// The first member of the event's group whose price the step has.
static u32 member_with(const event *e, u32 n, i64 dur) {
  for (u32 k = 0; e->per && k < n; k++)
    if (e->per[k] == dur) return k;
  return 0;
}

static u32 origin_of_row(origins *o, u32 row) {
  arena *a = o->s->a;
  u32 k = 0;
  while (k < o->rows.n && o->rows.v[k] != row) k++;
  if (k < o->rows.n) return k;
  const cost_row *r = cost_model_row(o->s->cost_arg, row);
  *vec_push(a, &o->rows) = row;
  *vec_push(a, &o->origin) = (sim_origin){.row = r ? *r : (cost_row){.figure = "nothing"}};
  o->origin.v[k].row.figure = arena_strdup(a, o->origin.v[k].row.figure);
  return k;
}

static u32 origin_of(origins *o, const sim_like *t) {
  sim *s = o->s;
  const event *e = &s->events.v[t->event];
  const func_info *f = func_get(s->p, t->f);
  cost_info cost;
  cost_event made_of;
  const u32 m = member_with(e, members_of(s, e->g)->n, t->dur_ps);
  if (!cost_explain(s->cost_arg, s->p, f, &f->body.v[t->instr - 1], e->g, m, &cost, &made_of)) cost.row = 0;
  return origin_of_row(o, cost.row);
}

static int by_time(const void *x, const void *y) {
  const sim_origin *a = x, *b = y;
  if (a->ps != b->ps) return a->ps < b->ps ? 1 : -1;
  if (a->count != b->count) return a->count < b->count ? 1 : -1;
  return strcmp(a->row.figure, b->row.figure);
}

void sum_up_origins(sim *s, sim_result *r) {
  origins o = {.s = s};
  double square = 0;
  for (u32 k = 0; k < r->nlikes; k++) {
    const u32 no = origin_of(&o, &r->like[k]); // may move o.origin
    sim_origin *at = &o.origin.v[no];
    at->count += r->like[k].count;
    at->ps += r->like[k].dur_ps * (i64)r->like[k].count;
  }
  if (o.origin.n) qsort(o.origin.v, o.origin.n, sizeof *o.origin.v, by_time);
  for (u32 k = 0; k < o.origin.n; k++) {
    const sim_origin *at = &o.origin.v[k];
    if (at->row.spread < 0 && at->ps) continue;
    const double off = (double)at->ps * at->row.spread;
    square += off * off;
    r->spread_known_ps += at->ps;
  }
  r->origin = o.origin.v;
  r->norigins = o.origin.n;
  r->error_ps = llround(sqrt(square));
}
