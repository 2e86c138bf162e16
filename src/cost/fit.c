// fit.c - times of events that nobody has measured, from those of the same kind that somebody has.
//
// Idea: a kind is an operator with its element type and its words on one kind of device; of communication the operator and
// whether its members are on one node. What its events take is a sum of terms, a constant, so much a byte, a FLOP and a
// member, none of them negative. Errors count in proportion to the time, so that small events are fitted, too. How good a
// fit is, is said by events that were left out while it was made. It answers up to half the least and twice the most of
// what it has seen; beyond that nothing is known.
#include "cost/internal.h"
#include <math.h>
#include <stdlib.h>

enum { LEAST_EVENTS = 5, FOLDS = 20 };
static const double BEYOND = 2;

static void cost_event_kind(ctx *c, const machine *m, const cost_event *e, strbuf *b) {
  sb_put(b, op_row_of(e->op)->name);
  if (e->t) sb_fmt(b, " %s", dtype_name(e->t));
  if (e->where) {
    sb_put(b, e->where->nodes > 1 ? " between nodes" : " on 1 node");
    return;
  }
  for (u32 i = 0; i < e->at.n; i++)
    if (e->at.v[i].kind == AK_STR) sb_fmt(b, " \"%s\"", sym_str(c, e->at.v[i].u.s));
  sb_fmt(b, " on %s", sym_str(m ? m->c : c, e->dev->name));
}

static void terms_of(const cost_event *e, double x[FIT_TERMS]) {
  x[0] = 1;
  x[1] = e->where ? (double)e->size : e->bytes;
  x[2] = e->where ? 0 : e->flops;
  x[3] = e->where ? e->where->n : 0;
}

static const event_fit *fit_find(const machine_events *e, const char *kind) {
  u32 lo = 0, hi = e->nfits;
  while (lo < hi) {
    const u32 mid = (lo + hi) / 2;
    const int side = strcmp(e->fit[mid].kind, kind);
    if (!side) return &e->fit[mid];
    if (side < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return NULL;
}

const event_fit *cost_fit_of(const machine *m, ctx *c, arena *a, const cost_event *e) {
  const arena_mark_t mark = arena_mark(a);
  strbuf kind = {.a = a};
  if (!m->events || !m->events->nfits) return NULL;
  cost_event_kind(c, m, e, &kind);
  const event_fit *f = fit_find(m->events, sb_str(&kind));
  arena_release(a, mark);
  return f;
}

static double answer(const double ps[FIT_TERMS], const double x[FIT_TERMS]) {
  double sum = 0;
  for (u32 k = 0; k < FIT_TERMS; k++) sum += ps[k] * x[k];
  return sum;
}

bool cost_fitted(const machine *m, ctx *c, arena *a, const cost_event *e, cost_info *out) {
  double x[FIT_TERMS];
  const event_fit *f = cost_fit_of(m, c, a, e);
  if (!f) return false;
  terms_of(e, x);
  for (u32 k = 1; k < FIT_TERMS; k++)
    if (x[k] < f->least[k] / BEYOND || x[k] > f->most[k] * BEYOND) return false;
  *out = (cost_info){.ps = round_ps(answer(f->ps, x)), .source = COST_FITTED, .spread = f->spread};
  return true;
}

// ---- making them ------------------------------------------------------------------------------------------------
typedef struct {
  const char *kind;
  double x[FIT_TERMS], ps;
} point;

static int by_kind(const void *a, const void *b) {
  const point *x = a, *y = b;
  const int side = strcmp(x->kind, y->kind);
  return side                 ? side
         : x->x[1] != y->x[1] ? (x->x[1] < y->x[1] ? -1 : 1)
         : x->x[2] != y->x[2] ? (x->x[2] < y->x[2] ? -1 : 1)
                              : (x->ps > y->ps) - (x->ps < y->ps);
}

// The event of a row, with its work. False: its text is none that this Heddle knows.
static bool to_point(ctx *c, arena *a, const measured_event *row, point *p) {
  cost_event e;
  if (!cost_event_parse(c, a, row->key, &e) || row->ps <= 0) return false;
  if (!e.where && e.op != OP_opaque && !(op_row_of(e.op)->flags & OPF_COMM)) {
    u32 nres = e.nres;
    shape *res = NEWN(a, shape, MAX(e.nres, (u32)OP_RES_MAX));
    const u32 said = diag_count(c);
    const law *l = op_law(c, a, e.op, e.at, e.nopd, e.opd, &nres, res, (loc){0});
    if (!l) {
      diag_truncate(c, said);
      return false;
    }
    event_work(&e, l, 1);
  } else if (!e.where && e.nres)
    e.bytes = 2 * (double)shape_bytes(&e.res[0]);
  strbuf kind = {.a = a};
  cost_event_kind(c, NULL, &e, &kind);
  p->kind = sb_str(&kind);
  p->ps = (double)row->ps;
  terms_of(&e, p->x);
  return true;
}

// Least squares of the terms in `set` over the points that are not in fold `but`: x'x y = x'1, each point divided by its
// time, each term by `scale`. False: the terms are not independent. Returns the error in *sum.
static bool solve(const point *p, u32 n, u32 but, u32 set, const double *scale, double ps[FIT_TERMS],
                  double *sum) {
  double m[FIT_TERMS][FIT_TERMS + 1] = {{0}};
  u32 of[FIT_TERMS], k = 0;
  for (u32 t = 0; t < FIT_TERMS; t++)
    if (set >> t & 1) of[k++] = t;
  for (u32 i = 0; i < n; i++) {
    if (i % FOLDS == but) continue;
    for (u32 r = 0; r < k; r++) {
      const double x = p[i].x[of[r]] / scale[of[r]] / p[i].ps;
      for (u32 s = 0; s < k; s++) m[r][s] += x * p[i].x[of[s]] / scale[of[s]] / p[i].ps;
      m[r][k] += x;
    }
  }
  for (u32 r = 0; r < k; r++) { // elimination; the matrix is positive definite or singular
    if (!(m[r][r] > 0)) return false;
    for (u32 s = r + 1; s < k; s++) {
      const double by = m[s][r] / m[r][r], before = m[s][s];
      for (u32 t = r; t <= k; t++) m[s][t] -= by * m[r][t];
      if (m[s][s] <= 1e-9 * before) return false;
    }
  }
  for (u32 t = 0; t < FIT_TERMS; t++) ps[t] = 0;
  for (u32 r = k; r-- > 0;) {
    double y = m[r][k];
    for (u32 s = r + 1; s < k; s++) y -= m[r][s] * ps[of[s]] * scale[of[s]];
    ps[of[r]] = y / m[r][r] / scale[of[r]];
    if (!(ps[of[r]] >= 0)) return false;
  }
  *sum = 0;
  for (u32 i = 0; i < n; i++) {
    const double off = answer(ps, p[i].x) / p[i].ps - 1;
    if (i % FOLDS != but) *sum += off * off;
  }
  return true;
}

// The best of all sets of terms that leaves none negative. More terms are never worse, so ties are none.
static bool fit_points(const point *p, u32 n, u32 but, double ps[FIT_TERMS]) {
  double scale[FIT_TERMS] = {1, 0, 0, 0}, best = INFINITY;
  for (u32 i = 0; i < n; i++)
    for (u32 t = 1; t < FIT_TERMS; t++) scale[t] = MAX(scale[t], p[i].x[t]);
  for (u32 set = 1; set < 1u << FIT_TERMS; set++) {
    double now[FIT_TERMS], sum;
    bool there = true;
    for (u32 t = 0; t < FIT_TERMS; t++) there = there && (!(set >> t & 1) || scale[t] > 0);
    if (!there || !solve(p, n, but, set, scale, now, &sum) || sum >= best) continue;
    best = sum;
    memcpy(ps, now, sizeof now);
  }
  return best < INFINITY;
}

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

// Every event by a fit that it had no part in.
static bool hold_out(arena *a, const point *p, u32 n, event_fit *f) {
  double *off = NEWN(a, double, n), ps[FIT_TERMS];
  for (u32 fold = 0; fold < MIN(n, (u32)FOLDS); fold++) {
    if (!fit_points(p, n, fold, ps)) return false;
    for (u32 i = fold; i < n; i += FOLDS) off[i] = fabs(answer(ps, p[i].x) / p[i].ps - 1);
  }
  qsort(off, n, sizeof *off, by_size);
  f->spread = off[MIN((u32)(0.683 * n), n - 1)];
  f->worst = off[n - 1];
  f->mean = 0;
  for (u32 i = 0; i < n; i++) f->mean += off[i] / n;
  return true;
}

// Of one kind. False: there are too few sizes.
static bool fit_kind(arena *a, const point *p, u32 n, event_fit *f) {
  u32 sizes = 1;
  for (u32 i = 1; i < n; i++) sizes += p[i].x[1] != p[i - 1].x[1] || p[i].x[2] != p[i - 1].x[2];
  if (n < LEAST_EVENTS || sizes < 3) return false;
  *f = (event_fit){.kind = p->kind, .count = n};
  memcpy(f->least, p->x, sizeof f->least), memcpy(f->most, p->x, sizeof f->most);
  for (u32 i = 1; i < n; i++)
    for (u32 t = 0; t < FIT_TERMS; t++)
      f->least[t] = MIN(f->least[t], p[i].x[t]), f->most[t] = MAX(f->most[t], p[i].x[t]);
  return fit_points(p, n, FOLDS, f->ps) && hold_out(a, p, n, f);
}

u32 cost_fit(ctx *c, arena *a, const measured_event *row, u32 n, event_fit **out, u32 *left) {
  point *p = NEWN(a, point, n + 1);
  VEC(event_fit) v = {0};
  u32 np = 0;
  *left = 0;
  for (u32 k = 0; k < n; k++)
    if (row[k].source != EVENT_FITTED && to_point(c, a, &row[k], &p[np])) np++;
  if (np) qsort(p, np, sizeof *p, by_kind);
  for (u32 from = 0, to; from < np; from = to) {
    event_fit f;
    for (to = from; to < np && !strcmp(p[to].kind, p[from].kind);) to++;
    if (fit_kind(a, p + from, to - from, &f))
      *vec_push(a, &v) = f;
    else
      ++*left;
  }
  *out = v.v;
  return v.n;
}
