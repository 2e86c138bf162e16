// repeat.c - the steady state of a pipeline: what main repeats for every microbatch is walked a few times
// instead of hundreds. Not an approximation: what is left out is known to the picosecond and to the byte.
//
// Idea: main is straight-line, and its middle is the same stretch over and over (a period), each instruction
// taking what its like took one period before, or the same constants. A period is a (max, +) linear map of
// the state between periods: the clocks, and the values on their way from one period to a later one. Once
// such a state is the one before it plus a constant, every later one is, as long as periods go on. So a main
// with fewer periods is simulated; where they would have gone in between, every clock and value on its way is
// moved by what they would have taken. Bytes are the same in every period once the heap is.
//
// docs/design/time.md says what has to hold, and all of it is checked: where something does not, all of main
// is walked.
#include "sim/internal.h"

// ---- finding the periods ----------------------------------------------------------------------------
typedef struct {
  const func_info *f;
  u32 len, values; // instructions and values of a period
  u32 from, times; // the stretch: times * len instructions from this one
  u32 least;       // it cannot begin before this one
} finder;

// The number of the instruction that makes v; 0 for parameters, like the first one: both come before.
static u32 made_at(const func_info *f, value v) { return f->values.v[v].def ? f->values.v[v].def - 1 : 0; }
static bool same_types(const func_info *f, value v, value w, u32 n) {
  for (u32 k = 0; k < n; k++)
    if (f->values.v[v + k].ty.i != f->values.v[w + k].ty.i) return false;
  return true;
}

// Is instruction j + len what instruction j is, a period later?
static bool repeats(finder *x, u32 j) {
  const func_info *f = x->f;
  const instr *i = &f->body.v[j], *next = i + x->len;
  if (i->op != next->op || i->g.i != next->g.i || i->callee.i != next->callee.i || i->strm != next->strm ||
      i->nopd != next->nopd || i->nres != next->nres || i->flags != next->flags)
    return false;
  if (i->at.i != next->at.i && !no_work(op_row_of(i->op))) return false;
  if (i->nres && (next->res != i->res + x->values || !same_types(f, i->res, next->res, i->nres)))
    return false;
  const u32 *o = &f->opds.v[i->opd], *p = &f->opds.v[next->opd];
  for (u32 k = 0; k < i->nopd; k++) {
    if (o[k] == p[k]) { // a constant: made before the stretch
      x->least = MAX(x->least, f->values.v[o[k] & OPD_VALUE].def);
      continue;
    }
    if (p[k] != o[k] + x->values || !same_types(f, o[k] & OPD_VALUE, p[k] & OPD_VALUE, 1)) return false;
  }
  return true;
}

// The longest stretch of periods around instruction `at` and its like a period later.
static bool stretch(finder *x, u32 at) {
  u32 first = at, end = at, n = x->f->body.n;
  x->least = 0;
  x->times = 0;
  while (end + x->len < n && repeats(x, end)) end++;
  if (end - at < 2 * x->len) return false;
  while (first > x->least && repeats(x, first - 1)) first--;
  x->from = MAX(first, x->least);
  x->times = end > x->from ? (end - x->from) / x->len + 1 : 0;
  return x->times > 0;
}

// Periods are sought where the middle one of main's calls is.
static bool find_periods(finder *x, const func_info *f) {
  enum { TRIES = 8 };
  u32 calls = 0, at = 0, n = f->body.n;
  for (u32 k = 0; k < n; k++) calls += f->body.v[k].op == OP_call;
  if (calls < 16) return false; // nothing to gain
  for (u32 seen = 0; seen <= calls / 2; at++) seen += f->body.v[at].op == OP_call;
  const instr *i = &f->body.v[--at];
  x->f = f;
  for (u32 k = at + 1, tries = 0; k < n && tries < TRIES; k++) {
    const instr *j = &f->body.v[k];
    if (j->op != OP_call || j->callee.i != i->callee.i || j->g.i != i->g.i) continue;
    x->len = k - at;
    x->values = j->res - i->res;
    if (stretch(x, at)) return true;
    tries++;
  }
  return false;
}

// Over how many periods a value of the stretch is used: by a period, or by what follows the stretch. Joins
// that follow it do not count: they collect what every period makes, see `collect`. Values that something
// else uses for ever give more than there are.
static u32 reach_of(const finder *x) {
  const func_info *f = x->f;
  u32 end = x->from + x->times * x->len, reach = 1;
  for (u32 j = end - x->len; j < f->body.n; j++) {
    const instr *i = &f->body.v[j];
    for (u32 k = 0; k < i->nopd && !(i->op == OP_join && j >= end); k++) {
      u32 def = made_at(f, opd_of(f, i, k));
      if (def < x->from || def >= end) continue;
      reach = MAX(reach, (u32)ceil_div(MIN(j, end) - def, x->len) + 1);
    }
  }
  for (u32 k = 0; k < f->rets.n; k++) {
    u32 def = made_at(f, f->rets.v[k]);
    if (def >= x->from && def < end) reach = MAX(reach, (u32)ceil_div(end - def, x->len) + 1);
  }
  return reach;
}

// ---- a shorter main ---------------------------------------------------------------------------------
// Values and instructions are numbered in the same order; then those before number `at` are values below
// this one.
static bool values_before(const func_info *f, u32 at, value *bound) {
  *bound = f->values.n;
  for (u32 k = f->body.n; k-- > at;)
    if (f->body.v[k].nres) *bound = f->body.v[k].res;
  for (u32 k = 0; k < f->body.n; k++)
    if (f->body.v[k].nres && (f->body.v[k].res < *bound) != (k < at)) return false;
  return true;
}

// The operands of a join behind the stretch, without those of the periods that are missing. Of each of these
// the like in the period before them is noted: it will stand for all of them. false: not every missing period
// gives the same number.
static bool collect(sim *s, const finder *x, u32 before, u32 reach, const instr *i, u32 *opds, u32 *n) {
  const func_info *f = x->f;
  repeat *r = &s->rep;
  u32 fewer = r->left_out * x->values, dropped = 0, stand = 0;
  *n = 0;
  for (u32 k = 0; k < i->nopd; k++) {
    u32 o = f->opds.v[i->opd + k], def = made_at(f, o & OPD_VALUE);
    u32 period = def < x->from ? 0 : (def - x->from) / x->len;
    if (period >= before && period + reach < x->times) {
      dropped++;
      continue;
    }
    if (def >= x->from && period + 1 == before) {
      if (r->ncollected == COUNT_OF(r->collected)) return false;
      r->collected[r->ncollected++] = o & OPD_VALUE;
      stand++;
    }
    opds[(*n)++] = period < before ? o : o - fewer;
  }
  return dropped == stand * r->left_out;
}

// main with `before` and `reach` of its periods: all up to there as it is, then what follows the stretch.
static func_info *shorten(sim *s, const finder *x, u32 before, u32 reach) {
  const func_info *f = x->f;
  const u32 periods = before + reach;
  u32 end = x->from + x->times * x->len, cut = x->from + periods * x->len, gone = end - cut;
  u32 fewer = (x->times - periods) * x->values;
  value bound;
  if (!values_before(f, end, &bound)) return NULL;
  func_info *g = arena_dup(s->tmp, f, sizeof *f);
  u32 nopd = f->body.v[cut].opd;
  for (u32 k = cut; k < f->body.n; k++) nopd += k < end ? 0 : f->body.v[k].nopd;
  u32 n = f->body.n - gone, nv = f->values.n - fewer;
  g->body.v = NEWN(s->tmp, instr, n);
  g->opds.v = NEWN(s->tmp, u32, nopd);
  g->values.v = NEWN(s->tmp, value_info, nv);
  g->rets.v = NEWN(s->tmp, value, f->rets.n);
  g->body.n = n;
  g->values.n = nv;
  memcpy(g->body.v, f->body.v, cut * sizeof *g->body.v);
  memcpy(g->values.v, f->values.v, (bound - fewer) * sizeof *g->values.v);
  for (u32 v = bound; v < f->values.n; v++) {
    g->values.v[v - fewer] = f->values.v[v];
    g->values.v[v - fewer].def -= gone;
  }
  u32 at = f->body.v[cut].opd;
  for (u32 k = 0; k < cut; k++)
    if (f->body.v[k].opd + f->body.v[k].nopd > at) return NULL; // operands in another order
  memcpy(g->opds.v, f->opds.v, at * sizeof *g->opds.v);
  for (u32 k = end; k < f->body.n; k++) {
    instr *i = &g->body.v[k - gone];
    *i = f->body.v[k];
    i->opd = at;
    if (i->nres) i->res -= fewer;
    if (i->op == OP_join) {
      if (!collect(s, x, before, reach, &f->body.v[k], g->opds.v + at, &i->nopd)) return NULL;
      at += i->nopd;
      continue;
    }
    for (u32 j = 0; j < i->nopd; j++) {
      u32 o = f->opds.v[f->body.v[k].opd + j];
      g->opds.v[at++] = made_at(f, o & OPD_VALUE) >= x->from ? o - fewer : o;
    }
  }
  g->opds.n = at;
  for (u32 k = 0; k < f->rets.n; k++) {
    value v = f->rets.v[k];
    g->rets.v[k] = made_at(f, v) >= x->from ? v - fewer : v;
  }
  return g;
}

bool repeat_find(sim *s, u32 warmup) {
  const func_info *f = func_get(s->p, s->p->main);
  finder x;
  if (!find_periods(&x, f)) return false;
  u32 reach = reach_of(&x);
  u32 before = reach + warmup, periods = before + reach;
  if (x.times < periods + periods / 4 + 1) return false;
  s->rep = (repeat){.on = true,
                    .at = x.from + before * x.len,
                    .len = x.len,
                    .values = x.values,
                    .reach = reach,
                    .left_out = x.times - periods};
  const func_info *g = shorten(s, &x, before, reach);
  if (g) s->main = g;
  return s->rep.on = g != NULL;
}

// ---- running a shorter main -------------------------------------------------------------------------
typedef struct {
  const sim_graph *c;
  const i64 *x;
  const i64 *before; // slots of clocks: their times a period ago
  u8 *clock;         // by slot: it is a clock that the period occupies
  i64 step, least;   // a period's time; the earliest of those clocks a period ago
} steady;

static bool clock_steps(steady *y, u32 slot) {
  i64 d = y->x[slot] - y->before[slot];
  if (y->clock[slot]) return d == y->step;
  y->clock[slot] = 1;
  y->least = y->least < 0 ? y->before[slot] : MIN(y->least, y->before[slot]);
  if (y->step < 0) y->step = d;
  return d == y->step;
}

// Does all that the nodes [from, to), the latest periods, make come `step` after what the period before made?
static bool makes_step(const steady *y, u32 from, u32 to, u32 len) {
  const sim_graph *c = y->c;
  for (u32 i = from; i < to; i++) {
    u32 n = c->occ[i + 1] - c->out[i], j = i - len;
    if (n != c->occ[j + 1] - c->out[j]) return false;
    for (u32 k = 0; k < n; k++)
      if (y->x[c->ref[c->out[i] + k]] - y->x[c->ref[c->out[j] + k]] != y->step) return false;
  }
  return true;
}

// Everything that a period waits for is a clock of its own, or comes a period later than what the one before
// waited for, or, made before the stretch, is there before any of its clocks is free.
static bool waits_step(const steady *y, u32 from, u32 to) {
  const sim_graph *c = y->c;
  for (u32 i = from; i < to; i++) {
    u32 j = i - (to - from), n = c->out[i] - c->in[i];
    if (n != c->out[j] - c->in[j]) return false;
    for (u32 k = 0; k < n; k++) {
      u32 a = c->ref[c->in[i] + k], b = c->ref[c->in[j] + k];
      if (a == b ? !y->clock[a] && y->x[a] > y->least : y->x[a] - y->x[b] != y->step) return false;
    }
  }
  return true;
}

// True: x, at node `to`, is what it was a period before plus step in all that matters from there on.
static bool is_steady(steady *y, const repeat *r, u32 nslot, arena *tmp) {
  const sim_graph *c = y->c;
  u32 from = r->mark[0].node, to = r->mark[1].node, len = to - from;
  y->clock = ZNEWN(tmp, u8, nslot);
  y->step = y->least = -1;
  for (u32 i = from; i < to; i++) {
    if (c->dur[i] < 0) {
      const sim_site *st = &c->site[~c->dur[i]];
      for (u32 k = 0; k < st->sub->nclock; k++)
        if (!clock_steps(y, st->clock[k])) return false;
    } else
      for (u32 k = c->occ[i]; k < c->in[i]; k++)
        if (!clock_steps(y, c->ref[k])) return false;
  }
  if (y->step < 0 || (u64)len * (r->reach + 1) > to) return false;
  return makes_step(y, to - len * r->reach, to, len) && waits_step(y, from, to);
}

// The period's nodes stand for those of missing periods on the path too: is each what it was a period before?
static bool is_like(const sim_graph *c, const repeat *r, u32 len, u32 to) {
  for (u32 i = to - len * r->reach; i < to; i++) {
    u32 j = i - len;
    if (c->dur[i] != c->dur[j] || (c->what[i] ? c->what[i] - r->len : 0) != c->what[j]) return false;
  }
  return true;
}

void sim_gap_move(const sim_graph *c, const sim_gap *g, i64 *x) {
  const i64 more = g->step * (i64)g->left_out;
  for (u32 k = 0; k < c->nslot; k++)
    if (g->clock[k]) x[k] += more;
  for (u32 i = g->to - (g->to - g->from) * g->reach; i < g->to; i++)
    for (u32 k = c->out[i]; k < c->occ[i + 1]; k++) x[c->ref[k]] += more;
}

bool repeat_step(sim *s, const sim_graph *c, i64 *x, i64 *frame) {
  repeat *r = &s->rep;
  if (!r->on) {
    sim_composed(c, x, frame); // where no callee has a map this is sim_flat
    return true;
  }
  u32 from = r->mark[0].node, to = r->mark[1].node;
  steady y = {.c = c, .x = x};
  sim_part(c, 0, from, x, frame);
  y.before = arena_dup(s->tmp, x, c->nslot * sizeof *x);
  sim_part(c, from, to, x, frame);
  if (!is_steady(&y, r, c->nslot, s->tmp)) return false;
  r->gap = (sim_gap){from, to, r->reach, r->left_out, y.step, y.clock};
  sim_gap_move(c, &r->gap, x);
  sim_part(c, to, c->n, x, frame);
  return true;
}

bool repeat_run(sim *s, sim_graph *c, i64 *x, i64 *frame) {
  repeat *r = &s->rep;
  i64 total = 0;
  if (!repeat_step(s, c, x, frame)) return false;
  if (!r->on) return true;
  if (s->o->critical && (r->gap.step == 0 || !is_like(c, r, r->gap.to - r->gap.from, r->gap.to)))
    return false;
  if (__builtin_mul_overflow(r->mark[1].total - r->mark[0].total, (i64)r->left_out, &total) ||
      __builtin_add_overflow(c->total, total, &total))
    return false; // says so when all of main is walked
  i64 *busy = arena_dup(s->a, c->busy, c->nclock * sizeof *busy);
  i64 *comm = arena_dup(s->a, c->comm, c->nclock * sizeof *comm);
  for (u32 k = 0; k < r->mark[1].nclock; k++) {
    busy[k] += (r->mark[1].busy[k] - (k < r->mark[0].nclock ? r->mark[0].busy[k] : 0)) * r->left_out;
    comm[k] += (r->mark[1].comm[k] - (k < r->mark[0].nclock ? r->mark[0].comm[k] : 0)) * r->left_out;
  }
  c->busy = busy;
  c->comm = comm;
  c->nodes = add_sat(c->nodes, mul_sat(r->mark[1].nodes - r->mark[0].nodes, r->left_out));
  c->total = total;
  return true;
}

// ---- what is reported -------------------------------------------------------------------------------
// Numbers of the shorter main to those of main. What lies before the gap has its number; a peak behind it is
// of the end of the stretch, and so are the values that are alive there.
u32 repeat_instr(const sim *s, u32 num) {
  return s->rep.on && num > s->rep.at ? num + s->rep.left_out * s->rep.len : num;
}
value repeat_value(const sim *s, value v, u32 num) {
  const repeat *r = &s->rep;
  if (!r->on || num <= r->at || made_at(s->main, v) + r->reach * r->len < r->at) return v;
  return s->main->values.v[v].def ? v + r->left_out * r->values : v;
}
