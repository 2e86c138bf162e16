// event_graph.c - a function on a group as an event graph for the engines. Not the engines, and not what
// anything costs.
//
// Idea: a value needs a slot only where somebody reads it on another stream than the one that made it,
// because the reader's own clock covers everything made on its stream. So three passes over a body: forward,
// on which streams every value was made; backward, which values need slots; forward again, the nodes. A call
// becomes one node of the caller and an event graph of its own, kept by (function, group, which parameters
// may be late, which results are waited for). Of a probe it is the same on all groups whose classes differ in
// nothing but their numbers, and is made once for these.
#include "sim/internal.h"

// Sets of streams as far as they matter: none, one (its id + 1), several.
enum { NONE = 0, SEVERAL = 0xffff };
static u16 both(u16 a, u16 b) { return a == b || !b ? a : !a ? b : SEVERAL; }
// Must a reader on streams `at` wait for something made on streams `made`?
static bool is_late(u16 made, u16 at) { return made && at && (made != at || made == SEVERAL); }

// ---- what a function does with its parameters, wherever it is called --------------------------------
// reads: streams that read a parameter. made: streams on which
// a result is made inside. thru: parameters that a result passes on without work. touch: streams used.

// Parameters that value v stands for, through views and calls that pass values on.
static void trace_params(sim *s, const func_info *f, value v, u8 *param) {
  u8 *seen = ZNEWN(s->tmp, u8, f->values.n);
  u32 *stack = NEWN(s->tmp, u32, f->values.n), n = 0;
  stack[n++] = v;
  seen[v] = 1;
  while (n) {
    v = stack[--n];
    if (v <= f->nparams) {
      param[v - 1] = 1;
      continue;
    }
    const instr *i = &f->body.v[f->values.v[v].def - 1];
    const summary *callee = i->op == OP_call ? s->summaries[i->callee.i] : NULL;
    if (!callee && !no_work(op_row_of(i->op))) continue;
    u32 from = callee ? callee->thru_begin[v - i->res] : 0;
    u32 to = callee ? callee->thru_begin[v - i->res + 1] : i->nopd;
    for (u32 k = from; k < to; k++) {
      value w = opd_of(f, i, callee ? callee->thru[k] : k);
      if (!seen[w]) stack[n++] = w;
      seen[w] = 1;
    }
  }
}

// May v stand for a parameter? Not if an instruction that works makes it: most results.
static bool may_pass(const func_info *f, value v) {
  u32 def = f->values.v[v].def;
  return !def || f->body.v[def - 1].op == OP_call || no_work(op_row_of(f->body.v[def - 1].op));
}

static u16 made_by_call(const func_info *f, const instr *i, u32 k, const summary *callee, const u16 *made) {
  u16 m = callee->made[k];
  for (u32 j = callee->thru_begin[k]; j < callee->thru_begin[k + 1]; j++)
    m = both(m, made[opd_of(f, i, callee->thru[j])]);
  return m;
}

// On which streams every value of f is made, given that of its parameters.
static void forward_made(sim *s, const func_info *f, u16 *made) {
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    u16 m = (u16)(i->strm + 1);
    if (i->op == OP_call) {
      for (u32 j = 0; j < i->nres; j++)
        made[i->res + j] = made_by_call(f, i, j, s->summaries[i->callee.i], made);
      continue;
    }
    if (no_work(op_row_of(i->op))) {
      m = NONE;
      for (u32 j = 0; j < i->nopd; j++) m = both(m, made[opd_of(f, i, j)]);
    }
    for (u32 j = 0; j < i->nres; j++) made[i->res + j] = m;
  }
}

static const summary *summary_of(sim *s, func fn) {
  if (s->summaries[fn.i]) return s->summaries[fn.i];
  const func_info *f = func_get(s->p, fn);
  for (u32 k = 0; k < f->body.n; k++)
    if (f->body.v[k].op == OP_call) summary_of(s, f->body.v[k].callee);
  summary *m = NEW(s->a, summary);
  m->nparams = f->nparams;
  m->reads = ZNEWN(s->a, u16, f->nparams);
  m->made = ZNEWN(s->a, u16, f->rets.n);
  m->thru_begin = ZNEWN(s->a, u32, f->rets.n + 1);
  arena_mark_t mark = arena_mark(s->tmp);
  u16 *made = ZNEWN(s->tmp, u16, f->values.n), *rd = ZNEWN(s->tmp, u16, f->values.n);
  forward_made(s, f, made);
  for (u32 k = f->body.n; k-- > 0;) {
    const instr *i = &f->body.v[k];
    const summary *callee = i->op == OP_call ? s->summaries[i->callee.i] : NULL;
    u16 at = (u16)(i->strm + 1);
    if (callee)
      at = callee->touch;
    else if (no_work(op_row_of(i->op))) {
      at = NONE;
      for (u32 j = 0; j < i->nres; j++) at = both(at, rd[i->res + j]);
    } else
      m->touch = both(m->touch, at);
    if (callee) m->touch = both(m->touch, callee->touch);
    for (u32 j = 0; j < i->nopd; j++) {
      u32 o = f->opds.v[i->opd + j];
      u16 *r = &rd[o & OPD_VALUE];
      *r = both(*r, callee && !(o & OPD_AFTER) ? callee->reads[j] : at);
    }
    for (u32 q = 0; callee && q < i->nres; q++)
      for (u32 j = callee->thru_begin[q]; j < callee->thru_begin[q + 1]; j++) {
        u16 *r = &rd[opd_of(f, i, callee->thru[j])];
        *r = both(*r, rd[i->res + q]);
      }
  }
  for (u32 k = 0; k < f->nparams; k++) m->reads[k] = rd[k + 1];
  VEC(u32) thru = {0};
  vec_reserve(s->a, &thru, 1);
  u8 *param = NEWN(s->tmp, u8, f->nparams);
  for (u32 k = 0; k < f->rets.n; k++) {
    m->made[k] = made[f->rets.v[k]];
    m->thru_begin[k + 1] = thru.n;
    if (!may_pass(f, f->rets.v[k])) continue;
    memset(param, 0, f->nparams);
    trace_params(s, f, f->rets.v[k], param);
    for (u32 j = 0; j < f->nparams; j++)
      if (param[j]) *vec_push(s->a, &thru) = j;
    m->thru_begin[k + 1] = thru.n;
  }
  m->thru = thru.v;
  arena_release(s->tmp, mark);
  return s->summaries[fn.i] = m;
}

// ---- a body -----------------------------------------------------------------------------------------
// The event graph of one function on one group, for one pattern of late parameters and wanted results.
typedef struct body {
  u32 row;               // in sim.priced
  const u8 *late, *want; // per parameter, per result
  sim_graph c;
} body;

typedef struct {
  sim *s;
  const func_info *f;
  const priced *row;
  const summary *const *sums;
  u16 *made;
  u8 *need;      // of every value: somebody waits for it
  u8 *late;      // beside the operands of calls: it may come later than the clock that reads it
  value *root;   // the value whose slots hold the time of v
  entry *at;     // of roots
  u32 *clock_no; // rank class * nstreams + stream -> clock + 1
  u32 *site_no;  // row of a callee->latest site + 1
  VEC(i64) dur;
  VEC(u32) occ, in, out, ref, what;
  VEC(u32) clock, clock_class;
  VEC(u8) clock_stream;
  VEC(i64) busy, comm;
  VEC(sim_site) site;
  VEC(const body *) site_body;
  VEC(entry) wait, make; // of the instruction at hand
  u32 nslot;
  i64 nodes;
  i64 total;
  bool maps;
} maker;

static u32 clock_of(maker *m, u32 cls, u8 strm) { // its number
  arena *a = m->s->a;
  u32 *no = &m->clock_no[cls * m->s->nstreams + strm];
  if (!*no) {
    *vec_push(a, &m->clock) = m->nslot++;
    *vec_push(a, &m->clock_class) = cls;
    *vec_push(a, &m->clock_stream) = strm;
    *vec_push(a, &m->busy) = *vec_push(a, &m->comm) = 0;
    *no = m->clock.n;
  }
  return *no - 1;
}

static entry slots_for(maker *m, value v) {
  entry e = {m->nslot, class_set_of_type(m->s, m->f->values.v[v].ty, m->row->g)};
  m->nslot += e.cs->n;
  m->root[v] = v;
  return m->at[v] = e;
}

static void add_ref(maker *m, u32 slot) { *vec_push(m->s->a, &m->ref) = slot; }
static u32 slot_on(entry e, u32 cls) { // 0: nobody waits for it there
  u32 pos = e.cs->pos[cls];
  return pos ? e.slot + pos - 1 : 0;
}

// The references of a node are added in this order: occupied; node_waits; waited for; node_makes; made;
// node_close.
static void node_waits(maker *m) { *vec_push(m->s->a, &m->in) = m->ref.n; }
static void node_makes(maker *m) { *vec_push(m->s->a, &m->out) = m->ref.n; }
static void node_close(maker *m, i64 dur, u32 what) {
  *vec_push(m->s->a, &m->dur) = dur;
  *vec_push(m->s->a, &m->what) = what;
  *vec_push(m->s->a, &m->occ) = m->ref.n;
}
// False: the times do not fit; the event graph that is being made is of no use.
static bool add_time(maker *m, i64 dur) {
  if (__builtin_add_overflow(m->total, dur, &m->total)) m->s->overflow = true;
  return !m->s->overflow;
}

// ---- instructions -----------------------------------------------------------------------------------
// One node of the instruction at hand, on some rank classes.
static void emit_node(maker *m, const instr *i, const u32 *cls, u32 n, i64 dur, u32 what) {
  const bool comm = op_row_of(i->op)->flags & OPF_COMM;
  for (u32 k = 0; k < n; k++) {
    u32 c = clock_of(m, cls[k], i->strm);
    add_ref(m, m->clock.v[c]);
    m->busy.v[c] += dur;
    if (comm) m->comm.v[c] += dur;
    m->nodes = add_sat(m->nodes, m->s->weight[cls[k]]);
  }
  node_waits(m);
  for (u32 j = 0; j < m->wait.n; j++)
    for (u32 k = 0, slot; k < n; k++)
      if ((slot = slot_on(m->wait.v[j], cls[k]))) add_ref(m, slot);
  node_makes(m);
  for (u32 j = 0; j < m->make.n; j++)
    for (u32 k = 0, slot; k < n; k++)
      if ((slot = slot_on(m->make.v[j], cls[k]))) add_ref(m, slot);
  node_close(m, dur, what);
}

static void emit_instr(maker *m, const instr *i, u32 what) {
  sim *s = m->s;
  const event *e = &s->events.v[m->row->ev[what - 1]];
  u16 here = (u16)(i->strm + 1);
  m->wait.n = m->make.n = 0;
  if (!s->one_stream) {
    for (u32 k = 0; k < i->nopd; k++) {
      value v = opd_of(m->f, i, k);
      if (is_late(m->made[v], here)) *vec_push(s->tmp, &m->wait) = m->at[m->root[v]];
    }
    for (u32 k = 0; k < i->nres; k++)
      if (m->need[i->res + k]) *vec_push(s->tmp, &m->make) = slots_for(m, i->res + k);
  }
  const members *pl = members_of(s, e->g);
  const rendezvous *met = e->met;
  i64 longest = e->dur;
  for (u32 k = 0; e->per && k < pl->n; k++) longest = MAX(longest, e->per[k]);
  if (!add_time(m, longest)) return;
  if (!met) {
    for (u32 k = 0; k < pl->cs->n; k++)
      emit_node(m, i, &pl->cs->cls[k], 1, e->per ? e->per[pl->member[k]] : e->dur, what);
    return;
  }
  for (u32 k = 0; k < met->nsets; k++) {
    u32 node = met->set_node[k], from = met->mbegin[node], to = met->mbegin[node + 1];
    i64 dur = from < to && !e->per ? e->dur : 0; // nobody gives anything: nothing moves
    for (u32 j = from; e->per && j < to; j++) dur = MAX(dur, e->per[met->mem[j]]);
    emit_node(m, i, &met->cls[met->set_begin[k]], met->set_begin[k + 1] - met->set_begin[k], dur, what);
  }
}

// Views and the like take no time: their results stand for their operands. Where they join several values,
// somebody waits for all of them.
static void emit_view(maker *m, const instr *i) {
  bool needed = false, several = false;
  value root = 0;
  for (u32 k = 0; k < i->nres; k++) needed |= m->need[i->res + k];
  if (!needed) return;
  for (u32 k = 0; k < i->nopd; k++) {
    value v = opd_of(m->f, i, k);
    if (!m->made[v]) continue;
    several |= root && root != m->root[v];
    root = m->root[v];
  }
  for (u32 k = 0; k < i->nres; k++) {
    m->root[i->res + k] = root;
    if (!several) continue;
    entry e = slots_for(m, i->res + k);
    for (u32 u = 0; u < e.cs->n; u++) {
      node_waits(m);
      for (u32 j = 0, slot; j < i->nopd; j++) {
        value v = opd_of(m->f, i, j);
        if (m->made[v] && (slot = slot_on(m->at[m->root[v]], e.cs->cls[u]))) add_ref(m, slot);
      }
      node_makes(m);
      add_ref(m, e.slot + u);
      node_close(m, 0, 0);
    }
  }
}

// ---- calls ------------------------------------------------------------------------------------------
// Which results of this call are waited for, which arguments may come later than the clock that reads them.
static void call_patterns(maker *m, const instr *i) {
  const func_info *f = m->f;
  const summary *callee = m->sums[i->callee.i];
  u8 *late = m->late + i->opd;
  for (u32 k = 0; k < callee->nparams; k++) late[k] = is_late(m->made[opd_of(f, i, k)], callee->reads[k]);
  for (u32 k = 0; k < i->nres; k++)
    for (u32 j = callee->thru_begin[k]; m->need[i->res + k] && j < callee->thru_begin[k + 1]; j++)
      if (m->made[opd_of(f, i, callee->thru[j])]) late[callee->thru[j]] = 1;
}

static const body *body_of(sim *s, u32 row, const u8 *late, const u8 *want, bool maps);

static u32 site_of(maker *m, const instr *i, u32 row) {
  const func_info *f = func_get(m->s->p, i->callee);
  const u8 *late = m->late + i->opd, *want = m->need + i->res;
  u32 *no = &m->site_no[row];
  if (*no) {
    const body *b = m->site_body.v[*no - 1];
    if (memcmp(b->late, late, f->nparams) == 0 && memcmp(b->want, want, i->nres) == 0) return *no - 1;
  }
  const body *b = body_of(m->s, row, late, want, m->maps);
  for (u32 k = 0; k < m->site.n; k++)
    if (m->site_body.v[k] == b) {
      *no = k + 1;
      return k;
    }
  u32 *clock = NEWN(m->s->a, u32, b->c.nclock);
  for (u32 k = 0; k < b->c.nclock; k++) {
    u32 c = clock_of(m, b->c.clock_class[k], b->c.clock_stream[k]); // may move m->clock
    clock[k] = m->clock.v[c];
  }
  *vec_push(m->s->a, &m->site) = (sim_site){&b->c, clock};
  *vec_push(m->s->a, &m->site_body) = b;
  return (*no = m->site.n) - 1;
}

// Operands that the whole call waits for raise every clock that it uses: clocks never go back.
static void emit_after(maker *m, const instr *i, const sim_site *st) {
  u16 touch = m->sums[i->callee.i]->touch;
  m->wait.n = 0;
  for (u32 k = i->nopd; k-- > 0 && m->f->opds.v[i->opd + k] & OPD_AFTER;) {
    value v = opd_of(m->f, i, k);
    if (is_late(m->made[v], touch)) *vec_push(m->s->tmp, &m->wait) = m->at[m->root[v]];
  }
  for (u32 c = 0; m->wait.n && c < st->sub->nclock; c++) {
    add_ref(m, st->clock[c]);
    node_waits(m);
    for (u32 j = 0, slot; j < m->wait.n; j++)
      if ((slot = slot_on(m->wait.v[j], st->sub->clock_class[c]))) add_ref(m, slot);
    node_makes(m);
    node_close(m, 0, 0);
  }
}

// Rank classes that parameter k of the row's function lies on, or result k - nparams.
static const class_set *set_of(sim *s, u32 row, const func_info *f, u32 k) {
  priced *pr = &s->priced.v[row];
  if (!pr->sets) pr->sets = ZNEWN(s->a, const class_set *, f->nparams + f->rets.n + 1);
  const value v = k < f->nparams ? k + 1 : f->rets.v[k - f->nparams];
  if (!pr->sets[k]) pr->sets[k] = class_set_of_type(s, f->values.v[v].ty, pr->g);
  return pr->sets[k];
}

static void emit_call(maker *m, const instr *i, u32 what) {
  sim *s = m->s;
  u32 row = m->row->ev[what - 1];
  const func_info *f = func_get(s->p, i->callee);
  u32 no = site_of(m, i, row);
  const sim_site *st = &m->site.v[no];
  if (!add_time(m, st->sub->total)) return;
  if (!s->one_stream) emit_after(m, i, st);
  node_waits(m);
  for (u32 k = 0; k < f->nparams; k++) {
    if (!m->late[i->opd + k]) continue;
    const class_set *cs = set_of(s, row, f, k);
    entry e = m->at[m->root[opd_of(m->f, i, k)]];
    for (u32 u = 0; u < cs->n; u++) add_ref(m, slot_on(e, cs->cls[u]));
  }
  node_makes(m);
  for (u32 k = 0; k < i->nres; k++) {
    if (!m->need[i->res + k]) continue;
    const class_set *cs = set_of(s, row, f, f->nparams + k);
    entry e = slots_for(m, i->res + k);
    assert(e.cs == cs);
    for (u32 u = 0; u < cs->n; u++) add_ref(m, e.slot + u);
  }
  node_close(m, ~(i64)no, what);
  m->nodes = add_sat(m->nodes, st->sub->nodes);
  for (u32 c = 0; c < st->sub->nclock; c++) {
    u32 own = m->clock_no[st->sub->clock_class[c] * s->nstreams + st->sub->clock_stream[c]] - 1;
    m->busy.v[own] += st->sub->busy[c];
    m->comm.v[own] += st->sub->comm[c];
  }
}

// ---- whole bodies -----------------------------------------------------------------------------------
// Backward: which values somebody waits for.
static void backward_need(maker *m) {
  const func_info *f = m->f;
  for (u32 k = f->body.n; k-- > 0;) {
    const instr *i = &f->body.v[k];
    u16 here = (u16)(i->strm + 1);
    if (i->op == OP_call) {
      call_patterns(m, i);
      here = m->sums[i->callee.i]->touch;
      for (u32 j = 0; j < i->nopd; j++) {
        u32 o = f->opds.v[i->opd + j];
        if (o & OPD_AFTER ? is_late(m->made[o & OPD_VALUE], here) : m->late[i->opd + j])
          m->need[o & OPD_VALUE] = 1;
      }
    } else if (no_work(op_row_of(i->op))) {
      bool needed = false;
      for (u32 j = 0; j < i->nres; j++) needed |= m->need[i->res + j];
      for (u32 j = 0; needed && j < i->nopd; j++) {
        value v = opd_of(f, i, j);
        if (m->made[v]) m->need[v] = 1;
      }
    } else
      for (u32 j = 0; j < i->nopd; j++) {
        value v = opd_of(f, i, j);
        if (is_late(m->made[v], here)) m->need[v] = 1;
      }
  }
}

static void maker_init(maker *m, sim *s, u32 row, bool maps) {
  const func_info *f = func_get(s->p, s->priced.v[row].f);
  *m = (maker){.s = s, .f = f, .row = &s->priced.v[row], .sums = s->summaries, .maps = maps, .nslot = 1};
  u32 nv = f->values.n;
  m->late = ZNEWN(s->tmp, u8, f->opds.n);
  m->need = ZNEWN(s->tmp, u8, nv);
  m->clock_no = ZNEWN(s->tmp, u32, s->nclasses * s->nstreams);
  m->site_no = ZNEWN(s->tmp, u32, s->priced.n);
  if (!s->one_stream) {
    m->made = ZNEWN(s->tmp, u16, nv);
    m->root = ZNEWN(s->tmp, value, nv);
    m->at = NEWN(s->tmp, entry, nv);
  }
  u32 nodes = f->body.n + 8;
  vec_reserve(s->a, &m->dur, nodes);
  vec_reserve(s->a, &m->occ, nodes + 1);
  vec_reserve(s->a, &m->in, nodes);
  vec_reserve(s->a, &m->out, nodes);
  vec_reserve(s->a, &m->what, nodes);
  vec_reserve(s->a, &m->ref, nodes);
  *vec_push(s->a, &m->occ) = 0;
}

static void finish(maker *m, body *b, const u32 *in, u32 nin, const u32 *out, u32 nout) {
  arena *a = m->s->a;
  u32 nc = m->clock.n;
  u32 *pi = NEWN(a, u32, nc + nin), *po = NEWN(a, u32, nc + nout);
  for (u32 k = 0; k < nc; k++) pi[k] = po[k] = m->clock.v[k];
  for (u32 k = 0; k < nin; k++) pi[nc + k] = in[k];
  for (u32 k = 0; k < nout; k++) po[nc + k] = out[k];
  u64 frame = 0;
  for (u32 k = 0; k < m->site.n; k++) {
    const sim_graph *c = m->site.v[k].sub;
    frame = MAX(frame, c->nslot + c->frame); // a watched run goes in, map or not
    if (c->map) frame = MAX(frame, (u64)c->map->nin + c->map->nvert + c->map->nout);
  }
  b->c = (sim_graph){.n = m->dur.n,
                     .nslot = m->nslot,
                     .dur = m->dur.v,
                     .occ = m->occ.v,
                     .in = m->in.v,
                     .out = m->out.v,
                     .ref = m->ref.v,
                     .nclock = nc,
                     .nin = nc + nin,
                     .nout = nc + nout,
                     .port_in = pi,
                     .port_out = po,
                     .site = m->site.v,
                     .nsite = m->site.n,
                     .frame = frame,
                     .nodes = m->nodes,
                     .busy = m->busy.v,
                     .comm = m->comm.v,
                     .total = m->total,
                     .tag = m->row->f.i,
                     .priced = b->row,
                     .what = m->what.v,
                     .clock_class = m->clock_class.v,
                     .clock_stream = m->clock_stream.v};
  if (!m->s->o->timeline && !m->s->want_path) return;
  u32 *of = ZNEWN(a, u32, m->nslot);
  for (u32 k = 0; k < nc; k++) of[m->clock.v[k]] = k + 1;
  b->c.slot_clock = of;
}

// ---- instructions that stand for others -------------------------------------------------------------
typedef struct {
  u32 node, nclock;
  i64 nodes, total;
  const i64 *busy, *comm; // of the clocks so far
} progress_of;

static progress_of so_far(const maker *m) {
  arena *tmp = m->s->tmp;
  const u32 n = m->clock.n;
  return (progress_of){m->dur.n,
                       n,
                       m->nodes,
                       m->total,
                       arena_dup(tmp, m->busy.v, n * sizeof *m->busy.v),
                       arena_dup(tmp, m->comm.v, n * sizeof *m->comm.v)};
}

// now (or NULL): by slot, the slot to wait for instead; 0: the same.
static void repeat_node(maker *m, u32 k, const u32 *now) {
  for (u32 r = m->occ.v[k]; r < m->in.v[k]; r++) add_ref(m, m->ref.v[r]);
  node_waits(m);
  for (u32 r = m->in.v[k]; r < m->out.v[k]; r++) {
    const u32 slot = m->ref.v[r];
    add_ref(m, now && now[slot] ? now[slot] : slot);
  }
  node_makes(m);
  for (u32 r = m->out.v[k]; r < m->occ.v[k + 1]; r++) add_ref(m, m->ref.v[r]);
  node_close(m, m->dur.v[k], m->what.v[k]);
}

// All nodes since then come `more` times more, waiting for what `now` says; one: they are of one instruction.
static void repeat_since(maker *m, const progress_of *x, u32 more, bool one, const u32 *now) {
  const u32 end = m->dur.n;
  i64 total = 0, nodes = m->nodes - x->nodes;
  if (__builtin_mul_overflow(m->total - x->total, (i64)more, &total) || !add_time(m, total)) {
    m->s->overflow = true;
    return;
  }
  m->nodes += nodes * more;
  for (u32 c = 0; c < m->clock.n; c++) {
    m->busy.v[c] += (m->busy.v[c] - (c < x->nclock ? x->busy[c] : 0)) * more;
    m->comm.v[c] += (m->comm.v[c] - (c < x->nclock ? x->comm[c] : 0)) * more;
  }
  bool simple = one; // on clocks that no other node of the instruction has
  for (u32 k = x->node; k < end; k++) simple &= m->dur.v[k] >= 0 && m->out.v[k] == m->occ.v[k + 1];
  for (u32 k = x->node; simple && k < end; k++) m->dur.v[k] *= 1 + more;
  for (u32 n = 0; !simple && n < more; n++)
    for (u32 k = x->node; k < end; k++) repeat_node(m, k, now);
}

// A span whose like comes next to it: `first` and `second` are the nodes at which the two begin.
typedef struct {
  const sim_span *x, *end;
  progress_of at;
  u32 first, second;
  u32 nslot; // when the span ended
  u32 *now; // by slot: what a repetition of the span waits for in its place, which the one before it has made
  bool *own; // by slot: is it in `now` as that?
} span_maker;

// Where a layer waits for what the layer before it has made, a repetition waits for what the span has made. The
// span and its like say which that is: operands in the same place.
static void find_chain(maker *m, span_maker *y) {
  const sim_span *x = y->x;
  const func_info *f = m->f;
  arena *tmp = m->s->tmp;
  y->nslot = m->nslot;
  y->now = ZNEWN(tmp, u32, m->nslot), y->own = ZNEWN(tmp, bool, m->nslot);
  for (u32 k = 0; m->root && k < x->len; k++) {
    const instr *i = &f->body.v[x->from + k], *like = &f->body.v[x->like + k];
    for (u32 o = 0; o < i->nopd; o++) {
      value v = opd_of(f, i, o), w = opd_of(f, like, o);
      const u32 def = f->values.v[x->like < x->from ? v : w].def;
      if (x->like < x->from) { // the like comes first, and the span waits for it
        if (def <= x->like || def > x->like + x->len) continue;
        w = f->body.v[def - 1 - x->like + x->from].res + (v - f->body.v[def - 1].res);
      } else if (def <= x->from || def > x->from + x->len) {
        continue;
      }
      if (!m->root[v] || !m->root[w]) continue; // nobody waits for it
      const entry a = m->at[m->root[v]], b = m->at[m->root[w]];
      if (a.cs != b.cs) continue;
      for (u32 c = 0; c < a.cs->n; c++) {
        m->s->odd_spans |= y->now[a.slot + c] && y->now[a.slot + c] != b.slot + c;
        y->now[a.slot + c] = b.slot + c, y->own[b.slot + c] = true;
      }
    }
  }
}

// Every repetition must do the same: what the span waits for is there from before, or made by itself, or by
// the one before it and not yet made again.
static void check_span(maker *m, const span_maker *y, u32 end) {
  enum { MADE_BEFORE = 1, MADE_NOW = 2 };
  u8 *made = ZNEWN(m->s->tmp, u8, m->nslot);
  const bool like_first = y->x->like < y->x->from;
  for (u32 half = 0; half < 2; half++) {
    const u32 n0 = half ? y->second : y->first, n1 = half ? end : y->second;
    const bool span = half == like_first;
    for (u32 k = n0; k < n1; k++) {
      for (u32 r = m->in.v[k]; r < m->out.v[k]; r++) {
        const u32 slot = m->ref.v[r], next = slot < y->nslot ? y->now[slot] : 0;
        const bool chained = like_first ? next != 0 : slot < y->nslot && y->own[slot];
        m->s->odd_spans |= made[slot] == MADE_BEFORE && !chained;
        m->s->odd_spans |= span && next && made[next] == MADE_NOW;
      }
      for (u32 r = m->out.v[k]; r < m->occ.v[k + 1]; r++) made[m->ref.v[r]] = MADE_NOW;
    }
    for (u32 k = n0; k < n1; k++)
      for (u32 r = m->out.v[k]; r < m->occ.v[k + 1]; r++) made[m->ref.v[r]] = MADE_BEFORE;
  }
}

static void before_instr(maker *m, span_maker *y, u32 k) {
  const sim_span *x = y->x;
  if (x == y->end) return;
  if (k == x->from + x->len) {
    find_chain(m, y);
    repeat_since(m, &y->at, x->more, false, y->now);
  }
  if (k == MAX(x->from, x->like) + x->len) {
    check_span(m, y, m->dur.n);
    if (++y->x == y->end) return;
    x = y->x;
  }
  if (k == MIN(x->from, x->like)) y->first = m->dur.n;
  if (k == MAX(x->from, x->like)) y->second = m->dur.n;
  if (k == x->from) y->at = so_far(m);
}

static const body *body_new(sim *s, u32 row, const u8 *late, const u8 *want, bool maps) {
  arena_mark_t mark = arena_mark(s->tmp);
  maker m;
  maker_init(&m, s, row, maps);
  const func_info *f = m.f;
  body *b = NEW(s->a, body);
  *b =
      (body){.row = row, .late = arena_dup(s->a, late, f->nparams), .want = arena_dup(s->a, want, f->rets.n)};
  VEC(u32) in = {0}, out = {0};
  if (!s->one_stream) {
    for (u32 k = 0; k < f->nparams; k++) m.made[k + 1] = late[k] ? SEVERAL : NONE;
    forward_made(s, f, m.made);
    for (u32 k = 0; k < f->rets.n; k++) m.need[f->rets.v[k]] |= want[k];
    backward_need(&m);
    for (u32 k = 0; k < f->nparams; k++) {
      if (!late[k]) continue;
      entry e = slots_for(&m, k + 1);
      for (u32 u = 0; u < e.cs->n; u++) *vec_push(s->tmp, &in) = e.slot + u;
    }
  }
  const u32 *more = row == 1 && s->spans ? s->pipeline->main_more : NULL;
  span_maker spans = {0};
  if (s->spans && row != 1) {
    const sim_spans *x = &s->spans[m.row->f.i];
    spans.x = x->v, spans.end = x->v + x->n;
  }
  for (u32 k = 0; k < f->body.n && !s->overflow; k++) {
    const instr *i = &f->body.v[k];
    before_instr(&m, &spans, k);
    progress_of at = {0};
    if (more && more[k]) at = so_far(&m);
    if (row == 1 && s->pipeline) s->node_of[k] = m.dur.n;
    if (i->op == OP_call)
      emit_call(&m, i, k + 1);
    else if (!no_work(op_row_of(i->op)))
      emit_instr(&m, i, k + 1);
    else if (!s->one_stream)
      emit_view(&m, i);
    if (more && more[k]) repeat_since(&m, &at, more[k], true, NULL);
  }
  before_instr(&m, &spans, f->body.n);
  for (u32 k = 0; k < f->rets.n; k++) {
    if (!want[k] || s->overflow) continue;
    value v = f->rets.v[k];
    const class_set *cs = class_set_of_type(s, f->values.v[v].ty, m.row->g);
    for (u32 u = 0; u < cs->n; u++)
      *vec_push(s->tmp, &out) = m.made[v] ? slot_on(m.at[m.root[v]], cs->cls[u]) : 0;
  }
  finish(&m, b, in.v, in.n, out.v, out.n);
  if (row == 1 && s->pipeline) {
    s->node_of[f->body.n] = m.dur.n;
    s->root = m.root ? arena_dup(s->a, m.root, f->values.n * sizeof *m.root) : NULL;
    s->at = m.at ? arena_dup(s->a, m.at, f->values.n * sizeof *m.at) : NULL;
    s->made = m.made ? arena_dup(s->a, m.made, f->values.n * sizeof *m.made) : NULL;
  }
  arena_release(s->tmp, mark);
  return b;
}

// ---- the same function on other ranks -----------------------------------------------------------------
static bool is_here(const prog *p, type t) { // on the group that the function is called on
  const type_info *ti = type_get(p, t);
  for (u32 k = 0; k < ti->n; k++)
    if (!is_here(p, ti->elem[k])) return false;
  return ti->tuple || !ti->g.i;
}

// Do two rendezvous join classes in the same places of x and y?
static bool met_alike(const rendezvous *a, const rendezvous *b, const class_set *x, const class_set *y) {
  if (a->nsets != b->nsets || memcmp(a->set_begin, b->set_begin, (a->nsets + 1) * sizeof *a->set_begin))
    return false;
  for (u32 k = 0; k < a->nsets; k++) {
    const u32 *from = &a->mbegin[a->set_node[k]], *of = &b->mbegin[b->set_node[k]];
    if ((from[0] < from[1]) != (of[0] < of[1])) return false;
  }
  for (u32 j = 0; j < a->set_begin[a->nsets]; j++)
    if (!x->pos[a->cls[j]] || x->pos[a->cls[j]] != y->pos[b->cls[j]]) return false;
  return true;
}

static u32 row_like(sim *s, u32 row);

// Do two rows of one function take as long on classes in the same places of their sets, and meet alike?
static bool rows_alike(sim *s, const priced *a, const priced *b) {
  const func_info *f = func_get(s->p, a->f);
  const class_set *x = members_of(s, a->g)->cs, *y = members_of(s, b->g)->cs;
  if (x->n != y->n) return false;
  for (u32 k = 0; k < x->n; k++)
    if (s->weight[x->cls[k]] != s->weight[y->cls[k]]) return false;
  for (u32 v = 1; v < f->values.n; v++)
    if (!is_here(s->p, f->values.v[v].ty)) return false;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->g.i) return false;
    if (i->op == OP_call) {
      if (row_like(s, a->ev[k]) != row_like(s, b->ev[k])) return false;
    } else if (!no_work(op_row_of(i->op))) {
      const event *c = &s->events.v[a->ev[k]], *d = &s->events.v[b->ev[k]];
      if (c->dur != d->dur || c->per || d->per || !c->met != !d->met) return false;
      if (c->met && !met_alike(c->met, d->met, x, y)) return false;
    }
  }
  return true;
}

// The row whose graphs are those of this one, on other classes: the first of its function, or the row itself.
static u32 row_like(sim *s, u32 row) {
  priced *pr = &s->priced.v[row];
  if (pr->like) return pr->like;
  u32 *first = &s->first_row[pr->f.i];
  if (!*first) *first = row;
  return pr->like = *first == row || rows_alike(s, &s->priced.v[*first], pr) ? *first : row;
}

static body *body_elsewhere(sim *s, u32 row, const body *of) {
  const class_set *from = members_of(s, s->priced.v[of->row].g)->cs,
                  *to = members_of(s, s->priced.v[row].g)->cs;
  body *b = arena_dup(s->a, of, sizeof *of);
  u32 *cls = NEWN(s->a, u32, of->c.nclock);
  for (u32 k = 0; k < of->c.nclock; k++) cls[k] = to->cls[from->pos[of->c.clock_class[k]] - 1];
  b->row = b->c.priced = row, b->c.clock_class = cls;
  return b;
}

static const body *body_of(sim *s, u32 row, const u8 *late, const u8 *want, bool maps) {
  const func_info *f = func_get(s->p, s->priced.v[row].f);
  const u32 like = s->pipeline ? row_like(s, row) : row; // reports ask graphs inside for their classes
  u64 h = hash_bytes(want, f->rets.n, hash_bytes(late, f->nparams, row));
  for (u32 it = 0, id; hmap_next(&s->body_map, h, &it, &id);) {
    const body *b = s->bodies.v[id];
    if (b->row == row && memcmp(b->late, late, f->nparams) == 0 && memcmp(b->want, want, f->rets.n) == 0)
      return b;
  }
  body *b = like != row ? body_elsewhere(s, row, body_of(s, like, late, want, maps))
                        : (body *)body_new(s, row, late, want, maps);
  if (maps && like == row) b->c.map = sim_map_new(s->a, s->tmp, &b->c);
  hmap_add(s->a, &s->body_map, h, s->bodies.n);
  *vec_push(s->a, &s->bodies) = b;
  return b;
}

static void summarise_callees(sim *s) {
  const func_info *f = func_get(s->p, s->p->main);
  if (!s->summaries) s->summaries = ZNEWN(s->a, const summary *, s->p->funcs.n);
  if (!s->first_row) s->first_row = ZNEWN(s->a, u32, s->p->funcs.n);
  for (u32 k = 0; k < f->body.n && !s->one_stream; k++)
    if (f->body.v[k].op == OP_call) summary_of(s, f->body.v[k].callee);
}

sim_graph *graph_of_main(sim *s, bool maps) {
  const func_info *f = func_get(s->p, s->p->main);
  u8 *nothing = ZNEWN(s->a, u8, MAX(f->nparams, f->rets.n) + 1);
  summarise_callees(s);
  return (sim_graph *)&body_new(s, 1, nothing, nothing, maps)->c;
}

const sim_graph *graph_of_step(sim *s, const u8 *late, const u8 *want) {
  summarise_callees(s);
  return &body_new(s, 1, late, want, true)->c;
}
