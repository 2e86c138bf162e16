// ends.c - what comes before the tasks of a pipeline and after them where its places are apart, as in replicas of
// different make-up: copies of weights are sent before the tasks and gradients go home after them, from any place to
// any other and beside the tasks. Not the tasks (stages.c), nor how it is run (pipe.c).
//
// Idea: neither depends on how many microbatches there are, so both are run as they stand in the probe's event graph.
// What passes between them and the tasks are clocks and a few slots. A task may wait for a slot that was there before
// all tasks: only the first of its kind on a stage does, since it leaves a clock behind that is no earlier. And what
// comes after the tasks waits for what the last of a kind has made. Both have maps of their own.
#include "sim/digest.h"

// ---- the event graph ----------------------------------------------------------------------------------------
// Which parameter a value is, seen through views; 0: none.
static u32 *seen_through_views(sim *s) {
  const func_info *f = s->main;
  u32 *param = ZNEWN(s->tmp, u32, f->values.n + 1);
  for (u32 k = 0; k < f->nparams; k++) param[k + 1] = k + 1;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->op != OP_call && no_work(op_row_of(i->op)) && i->nopd == 1 && i->nres == 1)
      param[i->res] = param[opd_of(f, i, 0)];
  }
  return param;
}

// Parameters that are sent beside the tasks are as late as what took their place in the step before.
const sim_graph *ends_graph(sim *s, const sim_pipeline *pl) {
  const func_info *f = s->main;
  u8 *late = ZNEWN(s->a, u8, f->nparams + 1), *want = ZNEWN(s->a, u8, f->rets.n + 1);
  const u32 *param = seen_through_views(s);
  for (u32 q = 0; q < pl->npieces; q++) {
    if (pl->piece[q].kind != PIECE_BEFORE) continue;
    for (u32 k = pl->piece[q].first; k < pl->piece[q].end; k++) {
      const instr *i = &f->body.v[k];
      if (i->op == OP_send && i->strm && param[opd_of(f, i, 0)]) late[param[opd_of(f, i, 0)] - 1] = 1;
    }
  }
  steady_named(s);
  u32 n = 0;
  for (u32 k = 0; k < s->carry.n; k++)
    if (late[s->carry.v[k].param]) s->carry.v[n++] = s->carry.v[k];
  s->carry.n = n;
  memset(late, 0, f->nparams);
  for (u32 k = 0; k < n; k++) late[s->carry.v[k].param] = want[s->carry.v[k].result] = 1;
  return sim_graph_priced(s, late, want);
}

// ---- slots --------------------------------------------------------------------------------------------------
static void note_nodes(const digest *d, u32 n0, u32 n1, u8 *arrived) {
  for (u32 i = n0; i < n1; i++)
    for (u32 k = d->c->out[i]; k < d->c->occ[i + 1]; k++) arrived[d->c->ref[k]] = 1;
}

// The one stream besides compute streams that the nodes occupy; false: there are several.
static bool find_stream(digest *d, u32 n0, u32 n1) {
  const sim_graph *c = d->c;
  u32 *strm_of = ZNEWN(d->s->tmp, u32, c->nslot + 1);
  for (u32 k = 0; k < c->nclock; k++) strm_of[c->port_in[k]] = c->clock_stream[k];
  for (u32 i = n0; i < n1; i++) {
    const sim_site *site = c->dur[i] < 0 ? &c->site[~c->dur[i]] : NULL;
    for (u32 k = 0; site && k < site->sub->nclock; k++)
      if (strm_of[site->clock[k]]) return false;
    for (u32 k = c->occ[i]; k < c->in[i]; k++) {
      const u32 strm = strm_of[c->ref[k]];
      if (strm && d->ends->strm && strm != d->ends->strm) return false;
      if (strm) d->ends->strm = strm;
    }
  }
  return true;
}

// Do the nodes occupy clocks of places alone? A weight that several places read may lie on ranks between them: nothing is
// known of their clocks.
static bool on_places(const digest *d, u32 n0, u32 n1) {
  bool *known = ZNEWN(d->s->tmp, bool, d->c->nslot + 1);
  for (u32 k = 0; k < 2 * d->pl->nplaces * d->C; k++) known[d->ends->clock[k]] = true;
  for (u32 i = n0, n; i < n1; i++) {
    const u32 *clock = digest_occupies(d->c, i, &n);
    for (u32 k = 0; k < n; k++)
      if (!known[clock[k]]) return false;
  }
  return true;
}

// Stages of one place have as many microbatches: what each of these leaves for the end is there as often.
static bool have_as_many(const sim_pipeline *pl) {
  for (u32 i = 0; i < pl->nstages; i++)
    for (u32 j = 0; j < i; j++)
      if (pl->place[i] == pl->place[j] && sim_micro(pl, i) != sim_micro(pl, j)) return false;
  return true;
}

// Late parameters come after the clocks among the ports, and what takes their place likewise, in order of results.
static void find_late(digest *d, u8 *arrived) {
  const sim_graph *c = d->c;
  sim *s = d->s;
  const func_info *f = s->main;
  const u32 n = c->nin - c->nclock;
  u32 *late = NEWN(d->a, u32, n + 1), *renewed = ZNEWN(d->a, u32, n + 1),
      *port = ZNEWN(s->tmp, u32, f->rets.n + 1), *of = ZNEWN(s->tmp, u32, f->nparams + 1);
  bool *want = ZNEWN(s->tmp, bool, f->rets.n + 1);
  for (u32 k = 0; k < s->carry.n; k++)
    of[s->carry.v[k].param] = s->carry.v[k].result + 1, want[s->carry.v[k].result] = true;
  for (u32 r = 0, at = c->nclock; r < f->rets.n; r++) {
    port[r] = at;
    if (want[r]) at += class_set_of_type(s, f->values.v[f->rets.v[r]].ty, (group){0})->n;
  }
  for (u32 k = 0, at = 0; k < f->nparams; k++) {
    const u32 m = of[k] ? class_set_of_type(s, f->values.v[k + 1].ty, (group){0})->n : 0;
    for (u32 j = 0; j < m; j++, at++) renewed[at] = c->port_out[port[of[k] - 1] + j];
  }
  for (u32 k = 0; k < n; k++) arrived[late[k] = c->port_in[c->nclock + k]] = 1;
  d->ends->nlate = n, d->ends->late = late, d->ends->renewed = renewed;
}

bool ends_open(digest *d) {
  const sim_pipeline *pl = d->pl;
  sim *s = d->s;
  const sim_piece *first = &pl->piece[0], *last = &pl->piece[pl->npieces - 1];
  if (!pl->npieces || first->kind != PIECE_BEFORE || last->kind != PIECE_AFTER || !have_as_many(pl))
    return false;
  stage_ends *e = d->ends = ZNEWN(d->a, stage_ends, 1);
  d->before[0] = s->node_of[first->first], d->before[1] = s->node_of[first->end];
  d->after_all[0] = s->node_of[last->first], d->after_all[1] = s->node_of[last->end];
  u8 *arrived = ZNEWN(s->a, u8, d->c->nslot + 1);
  note_nodes(d, d->before[0], d->before[1], arrived);
  if (d->c->nin > d->c->nclock) find_late(d, arrived);
  if (!find_stream(d, d->before[0], d->before[1]) || !find_stream(d, d->after_all[0], d->after_all[1]))
    return false;
  const u32 cells = pl->nplaces * d->C;
  u32 *clock = ZNEWN(d->a, u32, 2 * cells);
  e->begin = ZNEWN(d->a, stage_task, pl->nplaces);
  i64 *busy = NEWN(d->a, i64, cells), *comm = NEWN(d->a, i64, cells);
  digest_busy(d, d->before[0], d->before[1], 0, pl->nplaces, busy, comm);
  for (u32 q = 0; q < pl->nplaces; q++) {
    e->begin[q].busy = busy + q * d->C, e->begin[q].comm = comm + q * d->C;
    for (u32 k = 0; k < d->C; k++) {
      clock[q * d->C + k] = digest_clock(d, q, k, 0);
      if (e->strm) clock[cells + q * d->C + k] = digest_clock(d, q, k, e->strm);
    }
  }
  e->clock = clock;
  if (!on_places(d, d->before[0], d->before[1]) || !on_places(d, d->after_all[0], d->after_all[1]))
    return false;
  for (u32 k = 0; k < cells; k++)
    arrived[clock[k]] = arrived[clock[cells + k]] = 0; // those are told by themselves
  d->writer = ZNEWN(s->a, u32, d->c->nslot + 1);
  for (u32 q = 0; q < pl->npieces; q++) {
    const sim_piece *p = &pl->piece[q];
    if (p->kind != PIECE_TASK) continue;
    for (u32 i = s->node_of[p->first]; i < s->node_of[p->end]; i++)
      for (u32 k = d->c->out[i]; k < d->c->occ[i + 1]; k++) d->writer[d->c->ref[k]] = q + 1;
  }
  d->arrived = arrived;
  d->st->ends = e;
  return true;
}

// ---- what tasks wait for --------------------------------------------------------------------------------------
bool ends_wait(digest *d, u32 slot) {
  for (u32 k = 0; k < d->wait.n; k++)
    if (d->wait.v[k] == slot) return true;
  *vec_push(d->s->tmp, &d->wait) = slot;
  return true;
}

// The clock of the class whose slot it is, on this place; ~0: it is of none.
static u32 own_clock(const digest *d, u32 slot, u32 place) {
  const u32 u = d->unit_of[slot];
  return u && d->class_of[u - 1] != ~0u && d->place_of[u - 1] == place ? d->class_of[u - 1] : ~0u;
}

// waits[o] is no later than map[o * width + at] for every output: whoever waits for the clock has waited for the slot.
static bool no_later(const i64 *waits, u32 nwaits, const i64 *map, u32 width, u32 at, u32 n) {
  for (u32 o = 0; o < n; o++)
    if (waits[o * nwaits] != STAGE_NEVER && waits[o * nwaits] > map[o * width + at]) return false;
  return true;
}

bool ends_waits(digest *d, const sim_piece *p, stage_task *t, const ports *in, const ports *out) {
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  i64 *a = NEWN(d->a, i64, (size_t)t->nwaits * out->n + 1);
  for (u32 k = 0; k < t->nwaits; k++) {
    const u32 c = own_clock(d, t->wait[k], d->pl->place[p->stage]);
    digest_respond(d, n0, n1, t->wait[k], out, a + k, t->nwaits);
    if (c == ~0u || !in->slot[c] || a[c * t->nwaits + k] == STAGE_NEVER ||
        !no_later(a + k, t->nwaits, t->a, in->n, c, out->n))
      return false;
  }
  t->waits = a;
  return true;
}

// ---- what tasks leave -----------------------------------------------------------------------------------------
static u32 last_turn(const digest *d, u32 stage) {
  return MIN(sim_micro(d->pl, stage), (u32)PROBE_MICRO) - 1;
}

// Of the microbatches of a stage the last one's slot says enough where a node waits for all of them: they are made one
// after the other on one clock.
static bool last_is_waited_for(const digest *d, u32 node, const sim_piece *of) {
  for (u32 k = d->c->in[node]; k < d->c->out[node]; k++) {
    const u32 by = d->writer[d->c->ref[k]];
    const sim_piece *p = by ? &d->pl->piece[by - 1] : NULL;
    if (p && p->stage == of->stage && p->task == of->task && p->mb == last_turn(d, p->stage)) return true;
  }
  return false;
}

typedef VEC(u32) slots;

static bool add_leave(digest *d, slots *leave, u32 node, u32 slot) {
  if (!d->writer[slot]) return false;
  const sim_piece *p = &d->pl->piece[d->writer[slot] - 1];
  slots *to = &leave[p->task * d->pl->nstages + p->stage];
  if (p->mb != last_turn(d, p->stage)) return last_is_waited_for(d, node, p);
  for (u32 k = 0; k < to->n; k++)
    if (to->v[k] == slot) return true;
  *vec_push(d->s->tmp, to) = slot;
  return true;
}

// All that comes after the tasks waits for but clocks, what it makes itself, and what came before the tasks.
static bool find_leaves(digest *d, slots *leave) {
  const sim_graph *c = d->c;
  const u32 cells = 2 * d->pl->nplaces * d->C;
  bool *known = ZNEWN(d->s->tmp, bool, c->nslot + 1);
  known[0] = true;
  for (u32 k = 0; k < cells; k++) known[d->ends->clock[k]] = true;
  for (u32 i = d->after_all[0]; i < d->after_all[1]; i++) {
    for (u32 k = c->in[i]; k < c->out[i]; k++) {
      const u32 slot = c->ref[k];
      if (!known[slot] && !d->arrived[slot] && !add_leave(d, leave, i, slot)) return false;
    }
    for (u32 k = c->out[i]; k < c->occ[i + 1]; k++) known[c->ref[k]] = true;
  }
  return true;
}

// The maps to them of the last task of its kind.
static bool map_leaves(digest *d, u32 stage, u32 kind, const slots *leave, stage_task *t) {
  const sim_piece *p = &d->pl->piece[d->writer[leave->v[0]] - 1];
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  ports in, out, to;
  u32 nin, nout;
  if (leave->n > PORTS_MOST || (kind == TASK_W && d->st->carried[stage])) return false;
  digest_ports(d, p, &in, &out, &nin, &nout);
  to.n = 0;
  for (u32 k = 0; k < leave->n; k++) port_put(&to, leave->v[k]);
  i64 *a = NEWN(d->a, i64, (size_t)in.n * to.n), *waits = NEWN(d->a, i64, (size_t)t->nwaits * to.n + 1);
  for (u32 k = 0; k < in.n * to.n; k++) a[k] = STAGE_NEVER;
  for (u32 k = 0; k < in.n; k++)
    if (in.slot[k]) digest_respond(d, n0, n1, in.slot[k], &to, a + k, in.n);
  for (u32 k = 0; k < t->nwaits; k++) {
    digest_respond(d, n0, n1, t->wait[k], &to, waits + k, t->nwaits);
    if (!no_later(waits + k, t->nwaits, a, in.n, own_clock(d, t->wait[k], d->pl->place[stage]), to.n))
      return false;
  }
  t->nleaves = to.n, t->leave = arena_dup(d->a, leave->v, leave->n * sizeof *leave->v);
  t->leaves = a, t->leave_waits = waits;
  return true;
}

static void renumber(part_slots *x, const u32 *slot, u32 n) {
  for (u32 k = 0; k < n; k++) ((u32 *)slot)[k] = sim_part_slot(x, slot[k]);
}

// The nodes themselves, without the rest of the probe.
static void put_graphs(digest *d) {
  stage_ends *e = d->ends;
  part_slots now = {1, ZNEWN(d->s->tmp, u32, d->c->nslot + 1)};
  renumber(&now, e->clock, 2 * d->pl->nplaces * d->C);
  renumber(&now, e->late, e->nlate), renumber(&now, e->renewed, e->nlate);
  for (u32 k = 0; k < TASK_KINDS * d->pl->nstages; k++) {
    const stage_task *t = &d->st->task[k / d->pl->nstages][k % d->pl->nstages];
    renumber(&now, t->wait, t->nwaits), renumber(&now, t->leave, t->nleaves);
  }
  e->before = sim_graph_part(d->a, d->s->tmp, d->c, d->before[0], d->before[1], &now);
  e->after = sim_graph_part(d->a, d->s->tmp, d->c, d->after_all[0], d->after_all[1], &now);
  e->nslot = now.n, e->frame = d->c->frame;
}

bool ends_close(digest *d) {
  const u32 n = d->pl->nstages;
  slots *leave = ZNEWN(d->s->tmp, slots, TASK_KINDS * n);
  if (!find_leaves(d, leave)) return false;
  for (u32 k = 0; k < TASK_KINDS * n; k++) {
    stage_task *t = (stage_task *)&d->st->task[k / n][k % n];
    if (leave[k].n && !map_leaves(d, k % n, k / n, &leave[k], t)) return false;
  }
  put_graphs(d);
  return true;
}
