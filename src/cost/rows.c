// rows.c - where a price comes from: the figure of the machine that decides it, where the machine says so,
// and how far measurements were from the prices it made.
//
// Idea: prices that one figure decides are wrong together. So a row is a figure in one range of sizes, which
// is also what spreads are stated for; a spread that was found on one kind of work says nothing of another.
#include "cost/internal.h"
#include <math.h>

const char *cost_source_name(cost_source s) {
  static const char *const name[COST_SOURCES] = {
      "free",      "roofline",        "efficiency curve", "launch time", "link model", "DistIR's formulas",
      "predicted", "measured layers", "measured",         "scaled",      "fitted"};
  return name[s];
}

const cost_row *cost_model_row(const cost_model *k, u32 row) { return row ? &k->rows.v[row] : NULL; }

static u32 row_id(cost_model *k, const cost_row *r) {
  if (!k->rows.n) *vec_push(k->a, &k->rows) = (cost_row){0};
  for (u32 i = 1; i < k->rows.n; i++) {
    const cost_row *o = &k->rows.v[i];
    if (o->source == r->source && o->at.i == r->at.i && o->spread == r->spread &&
        !strcmp(o->figure, r->figure))
      return i;
  }
  *vec_push(k->a, &k->rows) = *r;
  return k->rows.n - 1;
}

// "1 GFLOP to 10 GFLOP" of sizes above lo and up to hi.
static const char *range(cost_model *k, double lo, double hi, unit_kind unit) {
  strbuf b = {.a = k->a};
  if (lo <= 0 && hi == HUGE_VAL) return "";
  sb_put(&b, lo <= 0 ? " up to " : hi == HUGE_VAL ? " above " : " from ");
  unit_print(&b, lo <= 0 ? hi : lo, unit);
  if (lo > 0 && hi < HUGE_VAL) {
    sb_put(&b, " to ");
    unit_print(&b, hi, unit);
  }
  return sb_str(&b);
}

// Narrows lo..hi to the sizes that the spread of `of` at this size holds for, and takes it over.
static void take_spread(const spread_table *t, const char *of, double size, double *lo, double *hi,
                        cost_row *out) {
  const spread_row *s = spread_find(t, of, size);
  for (u32 i = 0; i < t->n; i++) {
    if (strcmp(t->row[i].of, of)) continue;
    if (t->row[i].to < size) *lo = MAX(*lo, t->row[i].to);
  }
  if (!s) return;
  *hi = MIN(*hi, s->to);
  out->spread = s->spread;
  out->count = s->count;
  out->of = t->source;
}

// ---- computation -------------------------------------------------------------------------------------

// The two sizes of a curve that a size lies between, 0 and infinity outside; false: outside, or a peak.
static bool segment(const eff_curve *c, double size, double *lo, double *hi) {
  u32 i = 0;
  if (!c || c->n < 2) return false;
  while (i < c->n && size > c->size[i]) i++;
  *lo = i ? c->size[i - 1] : 0;
  *hi = i < c->n ? c->size[i] : HUGE_VAL;
  return i && i < c->n;
}

// Of products it is known what decides. Of other work the whole time was measured, by bytes; of convolutions
// by FLOP.
static void spread_of_work(const cost_event *e, const roof_term *t, bool launch, double *lo, double *hi,
                           cost_row *out) {
  const spread_table *s = &e->dev->spread;
  double skip[2] = {0, HUGE_VAL};
  const bool same = t->of == e->work && t->curve && !launch; // sizes of the curve and of the spread
  if (e->work <= EFF_CONV && s->types && !(s->types >> e->t & 1)) return;
  if (e->work == EFF_GEMM)
    take_spread(s, launch ? "launch" : eff_name(t->of), launch ? 0 : t->size, lo, hi, out);
  else
    take_spread(s, eff_name(e->work), e->work == EFF_CONV ? e->flops : e->bytes, same ? lo : &skip[0],
                same ? hi : &skip[1], out);
}

static void compute_row(cost_model *k, const cost_event *e, cost_row *out) {
  const device_kind *dev = e->dev;
  const char *name = sym_str(k->m->c, dev->name), *work = eff_name(e->work);
  const char *in = e->work <= EFF_CONV ? arena_printf(k->a, "%s ", dtype_name(e->t)) : "";
  roof_term terms[2];
  roof_terms(e, terms);
  const roof_term *t = &terms[terms[0].ps > terms[1].ps ? 0 : 1];
  const bool launch = (double)dev->launch_ps > t->ps;
  double lo = 0, hi = HUGE_VAL;
  out->at = dev->at;
  out->source = launch ? COST_LAUNCH : segment(t->curve, t->size, &lo, &hi) ? COST_CURVE : COST_ROOFLINE;
  spread_of_work(e, t, launch, &lo, &hi, out);
  if (launch) {
    if (dev->launch_at.i) out->at = dev->launch_at;
    out->figure = arena_printf(k->a, "%s: launch of %s%s", name, in, work);
  } else if (!t->curve) {
    if (dev->vector_at.i) out->at = dev->vector_at;
    out->figure = arena_printf(k->a, "%s: vector rate, %s", name, work);
  } else {
    if (t->curve->at.i) out->at = t->curve->at;
    const char *sizes = range(k, lo, hi, t == terms ? UNIT_FLOP : UNIT_BYTES);
    out->figure =
        arena_printf(k->a, "%s: %s%s%s%s", name, t->of == e->work ? "" : "memory of ", in, work, sizes);
  }
}

// ---- communication -----------------------------------------------------------------------------------

// The link inside the node of this rank that a placement goes through.
static const machine_link *link_of(const node_kind *nk, const machine_placement *p) {
  const machine_link *l = &nk->inside;
  const bool direct = l->shape != LINK_NONE && (l->shape != LINK_PAIRS || p->pair_bw == l->bw * l->eff);
  return direct ? l : &nk->host;
}

static void comm_row(cost_model *k, const cost_event *e, u32 rank, cost_row *out) {
  const node_kind *nk = &k->m->node_kind[k->m->node[k->m->dev[rank].node]];
  const char *op = op_row_of(e->op)->name, *what = "fabric";
  const spread_table *spread = &k->m->fabric.spread;
  double lo = 0, hi = HUGE_VAL;
  out->source = COST_LINK;
  out->at = k->m->fabric.at;
  if (!e->where || e->where->nodes < 2) {
    const machine_link *l = e->where ? link_of(nk, e->where) : &nk->host;
    what = arena_printf(k->a, "%s of %s", l == &nk->host ? "host link" : "link",
                        sym_str(k->m->c, machine_kind_of(k->m, rank)->name));
    spread = &l->spread;
    out->at = l->at;
  }
  take_spread(spread, op, (double)e->size, &lo, &hi, out);
  out->figure = arena_printf(k->a, "%s: %s%s", what, op, range(k, lo, hi, UNIT_BYTES));
}

void heddle_row(cost_model *k, const cost_event *e, u32 rank, cost_row *out) {
  if (e->dev)
    compute_row(k, e, out);
  else
    comm_row(k, e, rank, out);
}

// Every measured event is off on its own account.
static void event_row(cost_model *k, const cost_event *e, const cost_info *io, cost_row *out) {
  strbuf key = {.a = k->a};
  cost_event_print(k->c, k->m, e, &key);
  const measured_event *x = machine_events_find(k->m->events, sb_str(&key));
  if (!x) {
    const event_fit *f = cost_fit_of(k->m, k->c, k->a, e);
    assert(f); // it gave the price
    *out = (cost_row){io->source,        arena_printf(k->a, "fitted: %s", f->kind), {0}, f->spread, f->count,
                      k->m->events->file};
    return;
  }
  *out = (cost_row){io->source, x->key, {0}, x->spread, x->count, k->m->events->file};
}

void cost_locate(cost_model *k, const cost_event *e, u32 rank, cost_info *io) {
  const arena_mark_t mark = arena_mark(k->a); // the text of a row that is known is given back
  const u32 before = k->rows.n;
  cost_row r = {.spread = -1};
  if (io->source == COST_PREDICTED)
    r = (cost_row){COST_PREDICTED,
                   arena_printf(k->a, "predicted: %s", op_row_of(e->op)->name),
                   {0},
                   io->spread,
                   0,
                   NULL};
  else if (e->host)
    host_row(k, e, rank, &r);
  else if (io->source >= COST_EVENT)
    event_row(k, e, io, &r);
  else if (io->source == COST_MEASURED)
    r = (cost_row){
        .source = COST_MEASURED,
        .figure = arena_printf(k->a, "%s: measured layers", sym_str(k->c, machine_kind_of(k->m, rank)->name)),
        .spread = -1};
  else if (e->where && e->where->n < 2)
    r = (cost_row){.source = COST_FREE, .figure = "one rank: nothing moves"};
  else
    k->formulas->row(k, e, rank, &r);
  io->source = r.source;
  io->spread = r.spread;
  io->row = row_id(k, &r);
  if (before && k->rows.n == before) arena_release(k->a, mark);
}
