// pipe.c - what a schedule of known stages takes: one pass over its line. Not how the stages became known
// (stages.c), nor the line (line.c).
//
// Idea: the clocks of a place and the values under way are a vector; a task, a send, what comes before and
// after are linear maps of it over (max, +). Most maps of tasks are of rank one, since ranks of a place meet
// in every task: an output is a sum of the latest input and a constant. Bytes are added up beside it (totals.c).
#include "sim/pipe.h"

// What follows is written for any number of classes and compiled for few, which is most.
#define EACH static inline __attribute__((always_inline))

// y = a x. Times are never below 0.
EACH void apply_map(const i64 *a, u32 nin, u32 nout, const i64 *x, i64 *y) {
  for (u32 o = 0; o < nout; o++) {
    i64 t = 0;
    for (u32 i = 0; i < nin; i++) t = MAX(t, x[i] + a[o * nin + i]);
    y[o] = t;
  }
}

// ---- maps of this run -----------------------------------------------------------------------------------
// Is the map of rank one? Inputs and outputs that there are not are never in time.
static bool find_rank_one(task_map *m, const stage_task *t, u32 C) {
  const u32 ni = (1 + t->nin) * C, no = (1 + t->nout) * C;
  u32 first = ni * no;
  for (u32 k = 0; k < ni * no && first == ni * no; k++)
    if (t->a[k] != STAGE_NEVER) first = k;
  if (first == ni * no) return false;
  const u32 o0 = first / ni, i0 = first % ni;
  for (u32 i = 0; i < ni; i++) m->from[i] = t->a[o0 * ni + i];
  for (u32 o = 0; o < no; o++)
    if (t->a[o * ni + i0] != STAGE_NEVER) m->to[o] = t->a[o * ni + i0] - t->a[first];
  for (u32 o = 0; o < no; o++)
    for (u32 i = 0; i < ni; i++) {
      const bool never = m->to[o] == STAGE_NEVER || m->from[i] == STAGE_NEVER;
      if (t->a[o * ni + i] != (never ? STAGE_NEVER : m->to[o] + m->from[i])) return false;
    }
  return true;
}

static const task_map *map_of(const stage_task *t, u32 C, arena *tmp) {
  task_map *m = ZNEWN(tmp, task_map, 1);
  m->a = t->a, m->nin = t->nin, m->nout = t->nout;
  const u32 most = MAX(t->nin, t->nout), ports = (1 + MAX(most, 1u)) * C;
  m->from = NEWN(tmp, i64, ports), m->to = NEWN(tmp, i64, ports);
  for (u32 k = 0; k < ports; k++) m->from[k] = m->to[k] = STAGE_NEVER;
  m->one = t->a && (1 + most) * C <= ONE_PORTS && find_rank_one(m, t, C);
  m->all = m->one && most <= 1;
  for (u32 c = 0; m->all && c < C; c++) m->all = m->to[c] != STAGE_NEVER;
  return m;
}

static const task_map *const *task_maps(const sim_stages *st, arena *tmp) {
  const u32 n = st->pl.nstages, C = st->nclass;
  const task_map **v = NEWN(tmp, const task_map *, TASK_KINDS *n + 1);
  for (u32 k = 0; k < TASK_KINDS; k++)
    for (u32 i = 0; i < n; i++) {
      const u32 like = st->pl.like[i];
      v[k * n + i] = like < i ? v[k * n + like] : map_of(&st->task[k][like], C, tmp);
    }
  return v;
}

static const send_map *send_maps(const sim_stages *st, arena *tmp) {
  const sim_pipeline *pl = &st->pl;
  send_map *v = ZNEWN(tmp, send_map, 2 * pl->nlinks + 1);
  for (u32 back = 0; back < 2; back++)
    for (u32 k = 0; k < pl->nlinks; k++) {
      const sim_link *l = &pl->link[k];
      send_map *m = &v[back * pl->nlinks + k];
      m->x = &st->send[back][back ? l->like_to : l->like_from];
      m->from = pl->place[back ? l->to : l->from], m->to = pl->place[back ? l->from : l->to];
      m->strm = l->strm[back];
      if (pl->wide && (pl->wide[l->from] || pl->wide[l->to])) m->wide = &st->wide_send[back][k];
      m->simple = !m->wide && st->nclass <= SIMPLE_CLASSES && m->x->n == st->nclass;
      for (u32 j = 0; m->simple && j < m->x->n; j++) {
        m->simple = m->x->v[j].from == 1u << j && m->x->v[j].to == 1u << j;
        m->dur[j] = m->x->v[j].dur;
      }
    }
  return v;
}

// ---- time -----------------------------------------------------------------------------------------------
EACH void run_task(pipe *p, const sim_op *o, const u32 C) {
  const task_map *m = p->task[o->what];
  i64 *clock = p->clock + o->place * C, *in = p->value + (size_t)o->in * C,
      *out = p->value + (size_t)o->out * C;
  if (m->one) {
    i64 t = STAGE_NEVER;
    for (u32 c = 0; c < C; c++) t = MAX(t, clock[c] + m->from[c]);
    for (u32 c = 0; c < C; c++) t = MAX(t, in[c] + m->from[C + c]);
    for (u32 c = 0; c < C; c++) clock[c] = MAX(t + m->to[c], 0);
    for (u32 c = 0; c < C; c++) out[c] = MAX(t + m->to[C + c], 0);
    return;
  }
  i64 x[2 * STAGE_CLASSES], y[2 * STAGE_CLASSES] = {0};
  const u32 nin = (1 + m->nin) * C, nout = (1 + m->nout) * C;
  for (u32 c = 0; c < C; c++) x[c] = clock[c];
  for (u32 c = 0; m->nin && c < C; c++) x[C + c] = in[c];
  apply_map(m->a, nin, nout, x, y);
  for (u32 c = 0; c < C; c++) clock[c] = y[c];
  for (u32 c = 0; m->nout && c < C; c++) out[c] = y[C + c];
}

static void run_many(pipe *p, const sim_op *o) {
  const task_map *m = p->task[o->what];
  const u32 C = p->C, *in = p->l->many + o->in, *out = in + 1 + *in;
  i64 x[(1 + VALUES_MAX) * STAGE_CLASSES], y[(1 + VALUES_MAX) * STAGE_CLASSES];
  memcpy(x, p->clock + o->place * C, C * sizeof *x);
  for (u32 k = 1; k <= *in; k++) memcpy(x + k * C, p->value + (size_t)in[k] * C, C * sizeof *x);
  if (m->one) {
    i64 t = STAGE_NEVER;
    for (u32 i = 0; i < (1 + m->nin) * C; i++) t = MAX(t, x[i] + m->from[i]);
    for (u32 k = 0; k < (1 + m->nout) * C; k++) y[k] = MAX(t + m->to[k], 0);
  } else {
    apply_map(m->a, (1 + m->nin) * C, (1 + m->nout) * C, x, y);
  }
  memcpy(p->clock + o->place * C, y, C * sizeof *y);
  for (u32 k = 1; k <= *out; k++) memcpy(p->value + (size_t)out[k] * C, y + k * C, C * sizeof *y);
}

// The first task of its kind of its stage, or the last one; one that sums gradients.
static void run_end(pipe *p, const sim_op *o) {
  const u32 C = p->C, n = p->st->pl.nstages, *in = p->l->many + o->in, *out = in + 1 + *in,
            ends = out[1 + *out];
  const task_map *m = p->task[o->what];
  const stage_task *t = &p->st->task[o->what / n][o->what % n];
  const u32 nin = (1 + m->nin) * C, nout = (1 + m->nout) * C;
  i64 x[PORTS_MOST], y[PORTS_MOST];
  memcpy(x, p->clock + o->place * C, C * sizeof *x);
  for (u32 k = 1; k <= *in; k++) memcpy(x + k * C, p->value + (size_t)in[k] * C, C * sizeof *x);
  apply_map(m->a, nin, nout, x, y);
  for (u32 k = 0; ends & STAGE_BEGINS && t->nwaits && k < nout; k++) y[k] = MAX(y[k], p->waited[o->what][k]);
  for (u32 k = 0; ends & STAGE_ENDS && k < t->nleaves; k++) {
    i64 *to = &p->slot[t->leave[k]];
    apply_map(t->leaves + (size_t)k * nin, nin, 1, x, to);
    for (u32 j = 0; ends & STAGE_BEGINS && j < t->nwaits; j++)
      *to = MAX(*to, p->slot[t->wait[j]] + t->leave_waits[k * t->nwaits + j]);
  }
  if (ends & STAGE_SUMS) sums_run_task(p, o->what / n, o->what % n, x);
  memcpy(p->clock + o->place * C, y, C * sizeof *y);
  for (u32 k = 1; k <= *out; k++) memcpy(p->value + (size_t)out[k] * C, y + k * C, C * sizeof *y);
}

static void run_rendezvous(pipe *p, u32 slot, const send_map *s) {
  const u32 C = p->C, from = s->from, to = s->to;
  i64 *clock = s->strm ? p->channel + (size_t)s->strm * p->st->pl.nplaces * C : p->clock;
  i64 *leaves = p->value + (size_t)slot * C, comes[STAGE_CLASSES];
  memcpy(comes, leaves, C * sizeof *comes);
  for (u32 k = 0; k < s->x->n; k++) {
    const stage_rendezvous *m = &s->x->v[k];
    i64 t = 0;
    for (u32 bits = m->from; bits; bits &= bits - 1) {
      const u32 c = (u32)__builtin_ctz(bits);
      t = MAX(t, clock[from * C + c]);
      if (s->strm) t = MAX(t, leaves[c]);
    }
    for (u32 bits = m->to; bits; bits &= bits - 1) t = MAX(t, clock[to * C + (u32)__builtin_ctz(bits)]);
    t += m->dur;
    for (u32 side = 0; side < 2; side++)
      for (u32 bits = side ? m->to : m->from; bits; bits &= bits - 1) {
        const u32 c = (u32)__builtin_ctz(bits), at = (side ? to : from) * C + c;
        clock[at] = t;
        if (side) comes[c] = t;
        if (!s->strm) p->busy[at] += m->dur, p->comm[at] += m->dur;
      }
  }
  if (s->strm) memcpy(leaves, comes, C * sizeof *comes);
}

EACH void run_send(pipe *p, u32 what, u32 slot, const u32 C) {
  const send_map *s = &p->send[what];
  if (s->wide) {
    wide_run_send(p, s->wide, s->strm, slot);
    return;
  }
  if (!s->simple) {
    run_rendezvous(p, slot, s);
    return;
  }
  i64 *at = s->strm ? p->channel + (size_t)s->strm * p->st->pl.nplaces * C : p->clock,
      *from = at + s->from * C, *to = at + s->to * C, *there = p->value + (size_t)slot * C;
  for (u32 c = 0; c < C; c++) {
    i64 t = MAX(from[c], to[c]);
    if (s->strm) t = MAX(t, there[c]);
    t += s->dur[c];
    from[c] = to[c] = t;
    if (s->strm) there[c] = t;
  }
}

EACH void run_op(pipe *p, const sim_op *o, const u32 C) {
  if (o->kind == OP_TASK) {
    run_task(p, o, C);
    if (o->send) run_send(p, o->send - 1, o->out, C);
  } else if (o->kind == OP_SEND) {
    run_send(p, o->what, o->in, C);
  } else if (o->kind == OP_TASK_MANY) {
    run_many(p, o);
  } else if (o->kind == OP_TASK_WIDE) {
    wide_run_task(p, o);
  } else {
    run_end(p, o);
  }
}

EACH void run_line(pipe *p, const u32 C) {
  for (const sim_op *o = p->l->op, *end = o + p->l->n; o < end; o++) run_op(p, o, C);
}

// ---- steps --------------------------------------------------------------------------------------------------
// Clocks go into the event graph's slots, and come back.
static void swap_clocks(pipe *p, bool into) {
  const stage_ends *e = p->st->ends;
  const u32 cells = p->st->pl.nplaces * p->C;
  i64 *own[2] = {p->clock, p->channel + (size_t)e->strm * cells};
  for (u32 k = 0; k < (e->strm ? 2 : 1) * cells; k++) {
    if (!e->clock[k]) continue;
    if (into)
      p->slot[e->clock[k]] = own[k / cells][k % cells];
    else
      own[k / cells][k % cells] = p->slot[e->clock[k]];
  }
}

static void run_ends_before(pipe *p) {
  const sim_stages *st = p->st;
  const stage_ends *e = st->ends;
  memset(p->slot, 0, e->nslot * sizeof *p->slot);
  swap_clocks(p, true);
  for (u32 k = 0; k < e->nlate; k++) p->slot[e->late[k]] = p->late[k];
  sim_composed(e->before, p->slot, p->frame);
  swap_clocks(p, false);
  for (u32 w = 0; w < TASK_KINDS * st->pl.nstages; w++) {
    const stage_task *t = &st->task[w / st->pl.nstages][w % st->pl.nstages];
    for (u32 o = 0; t->nwaits && o < (1 + p->task[w]->nout) * p->C; o++) {
      i64 time = 0;
      for (u32 k = 0; k < t->nwaits; k++) time = MAX(time, p->slot[t->wait[k]] + t->waits[o * t->nwaits + k]);
      p->waited[w][o] = time;
    }
  }
}

static void run_ends_after(pipe *p) {
  const stage_ends *e = p->st->ends;
  swap_clocks(p, true);
  sim_composed(e->after, p->slot, p->frame);
  swap_clocks(p, false);
  for (u32 k = 0; k < e->nlate; k++) p->late[k] = p->slot[e->renewed[k]];
}

static void run_before(pipe *p) {
  if (p->st->ends) {
    run_ends_before(p);
    return;
  }
  const u32 C = p->C;
  i64 y[STAGE_CLASSES];
  for (u32 i = 0; i < p->st->pl.nstages; i++) {
    i64 *own = p->clock + p->st->pl.place[i] * C;
    apply_map(p->st->before[p->st->pl.like[i]].a, C, C, own, y);
    memcpy(own, y, C * sizeof *y);
  }
}

// y = max(y, a x), of one block of the map of what comes after.
static void add_block(const sim_stages *st, u32 to, u32 from, const i64 *x, i64 *y) {
  const u32 C = st->nclass, n = st->nreps * C;
  for (u32 o = 0; o < C; o++)
    for (u32 i = 0; i < C; i++) y[o] = MAX(y[o], x[i] + st->after[(to * C + o) * n + from * C + i]);
}

static void run_after(pipe *p, arena *tmp) {
  const sim_stages *st = p->st;
  if (st->ends) {
    run_ends_after(p);
    return;
  }
  if (st->beside) {
    sums_run_after(p);
    return;
  }
  const u32 C = p->C, n = st->nreps * C;
  i64 *x = NEWN(tmp, i64, n), *y = NEWN(tmp, i64, n);
  const i64 *was = arena_dup(tmp, p->clock, st->pl.nplaces * C * sizeof *was);
  for (u32 r = 0; r < st->nreps; r++) memcpy(x + r * C, was + st->rep[r] * C, C * sizeof *x);
  apply_map(st->after, n, n, x, y);
  for (u32 q = 0; q < st->pl.nplaces; q++) {
    const u32 r = st->rep_no[q], with = st->pl.with[q];
    i64 *own = p->clock + q * C;
    if (st->rep[r] == q) {
      memcpy(own, y + r * C, C * sizeof *own);
      continue;
    }
    memset(own, 0, C * sizeof *own);
    add_block(st, r, r, was + q * C, own);
    if (with != q) add_block(st, r, st->rep_no[with], was + with * C, own);
  }
}

// Numbers that a step leaves to the next one: clocks, channels, late parameters.
static u32 state_of(const sim_stages *st) {
  return st->pl.nplaces * st->nclass * (1 + st->nstreams) + (st->ends ? st->ends->nlate : 0);
}

static void open_ends(pipe *p, arena *tmp) {
  const sim_stages *st = p->st;
  const stage_ends *e = st->ends;
  p->late = p->channel + (size_t)st->pl.nplaces * p->C * st->nstreams;
  p->slot = ZNEWN(tmp, i64, e->nslot), p->frame = NEWN(tmp, i64, e->frame + 1);
  p->waited = NEWN(tmp, i64 *, TASK_KINDS * st->pl.nstages);
  for (u32 w = 0; w < TASK_KINDS * st->pl.nstages; w++) {
    const stage_task *t = &st->task[w / st->pl.nstages][w % st->pl.nstages];
    p->waited[w] = NEWN(tmp, i64, t->nwaits ? (1 + t->nout) * p->C : 1);
  }
}

static void begin(pipe *p, const sim_stages *st, const sim_totals *totals, arena *tmp, const sim_line *l) {
  const u32 cells = st->pl.nplaces * st->nclass;
  assert(sim_line_fits(l, st));
  *p = (pipe){.st = st, .l = l, .C = st->nclass};
  p->clock = ZNEWN(tmp, i64, state_of(st)), p->channel = p->clock + cells;
  if (st->ends) open_ends(p, tmp);
  if (st->beside) sums_open(p, tmp);
  p->wide = NEWN(tmp, i64, wide_room(st) + 1);
  p->cur = ZNEWN(tmp, i64, cells), p->peak = ZNEWN(tmp, i64, cells);
  p->busy = ZNEWN(tmp, i64, cells), p->comm = ZNEWN(tmp, i64, cells);
  p->task = totals ? totals->task : task_maps(st, tmp), p->send = send_maps(st, tmp);
}

static void run_alone(pipe *p, arena *tmp) {
  p->value = ZNEWN(tmp, i64, (size_t)p->l->nslots * p->C);
  for (u32 c = 0; c < p->C; c++) p->value[SLOT_NEVER * p->C + c] = STAGE_NEVER;
  switch (p->C) {
  case 1: run_line(p, 1); break;
  case 2: run_line(p, 2); break;
  case 4: run_line(p, 4); break;
  default: run_line(p, p->C);
  }
}

// ---- several at once ------------------------------------------------------------------------------------
// Is all that the line runs of the kind that lanes know?
static bool fits_lane(const pipe *p) {
  const sim_pipeline *pl = &p->st->pl;
  if (p->C > SIMPLE_CLASSES || pl->wide || p->st->ends || p->st->beside) return false;
  for (u32 w = 0; w < TASK_KINDS * pl->nstages; w++)
    if (MAX(p->task[w]->nin, p->task[w]->nout) > LANE_VALUES) return false;
  for (u32 w = 0; w < 2 * pl->nlinks; w++) {
    const u32 *n = &p->l->count[line_send_type(pl, w, false, 0)];
    if (!p->send[w].simple && n[0] + n[1] + n[2]) return false;
  }
  return true;
}

static bool same_form(const pipe *p, const pipe *q) {
  if (p->C != q->C || p->st->nstreams != q->st->nstreams) return false;
  for (u32 w = 0; w < 2 * p->st->pl.nlinks; w++)
    if (p->send[w].strm != q->send[w].strm) return false;
  return true;
}

// Clocks and channels from the beginning of a step to its end; of those that are not `done`.
static void step(pipe *p, const bool *done, u32 n, arena *tmp) {
  pipe *lane[SIM_LANES];
  u32 m = 0;
  for (u32 k = 0; k < n; k++) {
    if (done[k]) continue;
    run_before(&p[k]);
    if (fits_lane(&p[k]) && (!m || same_form(lane[0], &p[k])))
      lane[m++] = &p[k];
    else
      run_alone(&p[k], tmp);
  }
  if (m < 2 || !lanes_run(lane, m, tmp))
    for (u32 k = 0; k < m; k++) run_alone(lane[k], tmp);
  for (u32 k = 0; k < n; k++)
    if (!done[k]) run_after(&p[k], tmp);
}

// Does every step follow the one before it, with its weights?
static bool is_training(const sim_stages *st) {
  for (u32 k = 0; k < st->pl.nstages; k++)
    if (st->task[TASK_B][k].a || st->task[TASK_I][k].a) return true;
  return false;
}

// When the clocks of its place let the task have made something, and when the values that came did: of every output.
// Clocks: [place * C + class]. Returns how many outputs there are.
static u32 made_by(const pipe *p, const i64 *clock, const sim_op *o, i64 *by_clock, i64 *by_value) {
  const task_map *m = p->task[o->what];
  const u32 C = p->C, ni = (1 + m->nin) * C, no = (1 + m->nout) * C;
  const u32 *in = o->kind == OP_TASK ? &o->in : p->l->many + o->in + 1;
  i64 x[(1 + VALUES_MAX) * STAGE_CLASSES];
  memcpy(x, clock + o->place * C, C * sizeof *x);
  for (u32 k = 1; k <= m->nin; k++) memcpy(x + k * C, p->value + (size_t)in[k - 1] * C, C * sizeof *x);
  for (u32 k = 0; k < no; k++) {
    const i64 *a = m->a + (size_t)k * ni;
    by_clock[k] = by_value[k] = STAGE_NEVER;
    for (u32 i = 0; i < ni; i++) {
      i64 *to = i < C ? &by_clock[k] : &by_value[k];
      if (a[i] != STAGE_NEVER && x[i] >= 0) *to = MAX(*to, x[i] + a[i]);
    }
  }
  return no;
}

// The first task of the first stage's place, which waits for no value: by how much later all that it makes is in
// the next step; -1: not all by as much.
static i64 later_at_first(const pipe *now, const pipe *next, const sim_op *o) {
  i64 x[(1 + VALUES_MAX) * STAGE_CLASSES], y[COUNT_OF(x)], came[COUNT_OF(x)], by = -1;
  const u32 n = made_by(now, now->clock, o, x, came), again = made_by(now, next->clock, o, y, came);
  assert(n == again);
  for (u32 k = 0; k < n; k++) {
    if (came[k] != STAGE_NEVER || (by >= 0 && y[k] - x[k] != by)) return -1;
    if (x[k] != STAGE_NEVER) by = y[k] - x[k];
  }
  return by;
}

// Does nothing that the task makes wait for the clocks of its place, in this step and in the next, `by` later?
static bool waits_for_values(const pipe *now, const pipe *next, i64 by, const sim_op *o) {
  i64 x[(1 + VALUES_MAX) * STAGE_CLASSES], y[COUNT_OF(x)], came[COUNT_OF(x)];
  const u32 n = made_by(now, now->clock, o, x, came), again = made_by(now, next->clock, o, y, came);
  assert(n == again);
  for (u32 k = 0; k < n; k++)
    if (x[k] > came[k] || (y[k] != STAGE_NEVER && y[k] - by > came[k])) return false;
  return true;
}

// Does every place but that of the first stage first wait for what comes from there, now and in the next step? Then
// all of that is as much later as the first task: every time is a sum on a way from there. So it is in most
// schedules, and what places do first tells. -1: it is not so.
static i64 later_from_first(const pipe *p, arena *tmp) {
  const sim_stages *st = p->st;
  const u32 C = p->C, cells = st->pl.nplaces * C;
  i64 by = -1;
  if (st->ends) return -1; // places may wait for each other before the first task
  pipe now = *p, next = *p;
  now.clock = ZNEWN(tmp, i64, (size_t)cells * (1 + st->nstreams)), now.channel = now.clock + cells;
  next.clock = arena_dup(tmp, p->clock, cells * sizeof *p->clock);
  now.value = ZNEWN(tmp, i64, (size_t)p->l->nslots * C);
  for (u32 c = 0; c < C; c++) now.value[SLOT_NEVER * C + c] = STAGE_NEVER;
  run_before(&now), run_before(&next);
  bool *met = ZNEWN(tmp, bool, st->pl.nplaces);
  u32 left = st->pl.nplaces;
  for (const sim_op *o = p->l->op, *end = o + p->l->n; left && o < end; o++) {
    const u32 sends = o->kind == OP_SEND ? o->what + 1 : o->send;
    if (o->kind != OP_SEND && !met[o->place]) {
      if (by < 0 && (o->place != st->pl.place[0] || (by = later_at_first(&now, &next, o)) < 0)) return -1;
      if (o->place != st->pl.place[0] && !waits_for_values(&now, &next, by, o)) return -1;
      met[o->place] = true, left--;
    }
    if (sends) {
      const send_map *s = &p->send[sends - 1];
      const bool blocks = !s->strm;
      if (by < 0 || !s->simple || (blocks && !met[s->from])) return -1;
      for (u32 c = 0; blocks && !met[s->to] && c < C; c++) {
        const i64 from = now.clock[s->from * C + c];
        if (now.clock[s->to * C + c] > from || next.clock[s->to * C + c] - by > from) return -1;
      }
      if (blocks && !met[s->to]) met[s->to] = true, left--;
    }
    run_op(&now, o, C);
  }
  for (size_t k = 0; k < (size_t)cells * st->nstreams; k++)
    if (p->channel[k] > by) return -1; // no send is earlier than that
  return left ? -1 : by;
}

// A pipe of its own, from the state that a step begins with, when its first task has run.
static pipe first_task(const pipe *p, const i64 *state, arena *tmp) {
  pipe x = *p;
  x.clock = arena_dup(tmp, state, state_of(p->st) * sizeof *state);
  x.channel = x.clock + p->st->pl.nplaces * p->C;
  if (p->st->ends) open_ends(&x, tmp);
  x.value = NEWN(tmp, i64, (size_t)p->l->nslots * p->C); // no value is there yet
  for (u32 c = 0; c < p->C; c++) x.value[SLOT_NEVER * p->C + c] = STAGE_NEVER;
  run_before(&x);
  run_op(&x, p->l->op, p->C);
  return x;
}

static bool all_later(const i64 *now, const i64 *next, size_t n, i64 by) {
  for (size_t k = 0; k < n; k++)
    if ((now[k] || next[k]) && next[k] - now[k] != by) return false;
  return true;
}

// Is the first task on all places, where each waits for all, so that all times behind it are as much later in the next
// step? So it is with an embedding whose parts are summed. -1: it is not so.
static i64 later_from_all(const pipe *p, arena *tmp) {
  const sim_stages *st = p->st;
  const sim_op *o = p->l->op;
  const u32 cells = st->pl.nplaces * p->C, *out = p->l->many + o->in;
  if (!p->l->n || o->kind != OP_TASK_WIDE) return -1;
  const pipe now = first_task(p, ZNEWN(tmp, i64, state_of(st)), tmp), next = first_task(p, p->clock, tmp);
  const i64 by = next.clock[0] - now.clock[0];
  if (by < 0 || !all_later(now.clock, next.clock, cells, by)) return -1;
  out += 1 + *out;
  for (u32 k = 1; k <= *out; k++) {
    const size_t at = (size_t)out[k] * p->C;
    if (!all_later(now.value + at, next.value + at, cells, by)) return -1;
  }
  // A channel that is free in both makes nobody wait.
  for (size_t k = 0; k < (size_t)cells * st->nstreams; k++)
    if (now.channel[k] ? next.channel[k] - now.channel[k] != by : next.channel[k] > by) return -1;
  if (!st->ends) return by;
  for (u32 k = 0; k < (st->ends->strm ? 2 : 1) * cells; k++) // those go back there when the tasks have ended
    now.slot[st->ends->clock[k]] = next.slot[st->ends->clock[k]] = 0;
  if (!all_later(now.slot, next.slot, st->ends->nslot, by)) return -1;
  for (u32 w = 0; w < TASK_KINDS * st->pl.nstages; w++) {
    const stage_task *t = &st->task[w / st->pl.nstages][w % st->pl.nstages];
    if (t->nwaits && !all_later(now.waited[w], next.waited[w], (1 + t->nout) * p->C, by)) return -1;
  }
  return by;
}

// Steps go on from clocks and channels as the one before them has left these: what is on the compute stream needs
// no other times.
static void find_periods(pipe *p, u32 n, arena *tmp, sim_pipe_result *r) {
  steps_seen seen[SIM_LANES];
  bool done[SIM_LANES];
  u32 left = 0;
  for (u32 k = 0; k < n; k++) {
    const sim_stages *st = p[k].st;
    r[k].period_ps = r[k].makespan_ps;
    done[k] = !is_training(st);
    if (done[k]) continue;
    const i64 by = st->pl.wide ? later_from_all(&p[k], tmp) : later_from_first(&p[k], tmp);
    if (by >= 0) {
      r[k].period_ps = by, done[k] = true;
      continue;
    }
    steps_begin(&seen[k], tmp, state_of(st), r[k].makespan_ps);
    done[k] = steps_add(&seen[k], p[k].clock);
    left += !done[k];
  }
  while (left) {
    arena_mark_t mark = arena_mark(tmp);
    step(p, done, n, tmp);
    arena_release(tmp, mark);
    for (u32 k = 0; k < n; k++) {
      if (done[k] || !(done[k] = steps_add(&seen[k], p[k].clock))) continue;
      r[k].period_ps = seen[k].period_ps;
      left--;
    }
  }
}

// ---- all of it ----------------------------------------------------------------------------------------------
sim_totals *sim_totals_new(arena *a, const sim_stages *st) {
  const u32 cells = st->pl.nplaces * st->nclass;
  sim_totals *x = ZNEWN(a, sim_totals, 1);
  x->task = task_maps(st, a);
  x->peak = NEWN(a, i64, cells), x->busy = NEWN(a, i64, cells), x->comm = NEWN(a, i64, cells);
  return x;
}

void sim_pipes(u32 n, const sim_stages *const *st, arena *tmp, const sim_line *l, sim_totals *const *totals,
               sim_pipe_result *r) {
  arena_mark_t mark = arena_mark(tmp);
  pipe p[SIM_LANES];
  const bool none[SIM_LANES] = {0};
  assert(n <= SIM_LANES);
  for (u32 k = 0; k < n; k++) begin(&p[k], st[k], totals ? totals[k] : NULL, tmp, l);
  step(p, none, n, tmp);
  for (u32 k = 0; k < n; k++) totals_add(&p[k], tmp, totals ? totals[k] : NULL, &r[k]);
  find_periods(p, n, tmp, r);
  arena_release(tmp, mark);
}

void sim_pipe(const sim_stages *st, arena *tmp, const sim_line *l, sim_pipe_result *r) {
  sim_pipes(1, &st, tmp, l, NULL, r);
}
