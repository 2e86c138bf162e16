// pipe.c - what a schedule of known stages takes: one pass over its tasks and sends. Not how the stages became
// known (stages.c).
//
// Idea: the clocks of a place and the values under way are a vector; a task, a send, what comes before and
// after are linear maps of it over (max, +). Bytes are a sum and a maximum along the order of every place.
#include "sim/stages.h"

typedef struct {
  const sim_stages *st;
  u32 C, K;
  i64 *clock;                    // [place * C + class]: compute
  i64 *channel;                  // [(strm * places + place) * C + class]
  i64 *leaves[2], *comes[2];     // [(link * K + mb) * C + class]
  i64 *cur, *peak, *busy, *comm; // [place * C + class]
} pipe;

// What follows is written for any number of classes and compiled for few, which is most.
#define EACH static inline __attribute__((always_inline))

EACH void add_bytes(pipe *p, u32 at, const stage_bytes *b, const u32 C) {
  for (u32 c = 0; c < C; c++) {
    u32 k = at * C + c;
    p->peak[k] = MAX(p->peak[k], p->cur[k] + b[c].peak);
    p->cur[k] += b[c].net;
  }
}

EACH void add_busy(pipe *p, u32 at, const i64 *busy, const i64 *comm, const u32 C) {
  for (u32 c = 0; c < C; c++) p->busy[at * C + c] += busy[c], p->comm[at * C + c] += comm[c];
}

// y = a x. Times are never below 0.
EACH void apply_map(const i64 *a, u32 nin, u32 nout, const i64 *x, i64 *y) {
  for (u32 o = 0; o < nout; o++) {
    i64 t = 0;
    for (u32 i = 0; i < nin; i++) t = MAX(t, x[i] + a[o * nin + i]);
    y[o] = t;
  }
}

EACH i64 *value_of(const pipe *p, i64 *of, u32 link, u32 mb, const u32 C) {
  return of + ((size_t)link * p->K + mb) * C;
}

EACH bool has_slot(const sim_stages *st, u32 link, bool back) {
  const sim_link *l = &st->pl.link[link];
  return l->strm[back] && (!back || l->back);
}

// The common case: at most one value comes, at most one leaves.
EACH void run_simple(pipe *p, const stage_task *t, u32 at, const i64 *comes, i64 *leaves, const u32 C) {
  i64 x[2 * STAGE_CLASSES], y[2 * STAGE_CLASSES];
  const u32 nin = comes ? 2 * C : C, nout = leaves ? 2 * C : C;
  for (u32 c = 0; c < C; c++) x[c] = p->clock[at * C + c];
  for (u32 c = 0; comes && c < C; c++) x[C + c] = comes[c];
  apply_map(t->a, nin, nout, x, y);
  for (u32 c = 0; c < C; c++) p->clock[at * C + c] = y[c];
  for (u32 c = 0; leaves && c < C; c++) leaves[c] = y[C + c];
}

EACH void run_task(pipe *p, u32 stage, task_kind kind, u32 mb, const u32 C) {
  const sim_stages *st = p->st;
  const stage_task *t = &st->task[kind][st->pl.like[stage]];
  const bool back = kind == TASK_B || kind == TASK_I;
  const u32 at = st->pl.place[stage];
  const u32 *from = back ? st->out_link + st->out_begin[stage] : st->in_link + st->in_begin[stage];
  const u32 *to = back ? st->in_link + st->in_begin[stage] : st->out_link + st->out_begin[stage];
  if (t->nin <= 1 && t->nout <= 1) {
    for (u32 k = t->nin; k && !has_slot(st, *from, back);) from++;
    for (u32 k = t->nout; k && !has_slot(st, *to, back);) to++;
    run_simple(p, t, at, t->nin ? value_of(p, p->comes[back], *from, mb, C) : NULL,
               t->nout ? value_of(p, p->leaves[back], *to, mb, C) : NULL, C);
  } else {
    i64 x[66 * STAGE_CLASSES], y[66 * STAGE_CLASSES];
    memcpy(x, p->clock + at * C, C * sizeof *x);
    for (u32 k = 0, v = 1; v <= t->nin; k++)
      if (has_slot(st, from[k], back))
        memcpy(x + v++ * C, value_of(p, p->comes[back], from[k], mb, C), C * sizeof *x);
    apply_map(t->a, (1 + t->nin) * C, (1 + t->nout) * C, x, y);
    memcpy(p->clock + at * C, y, C * sizeof *y);
    for (u32 k = 0, v = 1; v <= t->nout; k++)
      if (has_slot(st, to[k], back))
        memcpy(value_of(p, p->leaves[back], to[k], mb, C), y + v++ * C, C * sizeof *y);
  }
  add_bytes(p, at, t->bytes[stage_turn(mb, p->K)], C);
  add_busy(p, at, t->busy, t->comm, C);
}

EACH void run_meeting(pipe *p, const stage_meeting *m, u32 strm, u32 from, u32 to, const i64 *leaves,
                      i64 *comes, const u32 C) {
  i64 *clock = strm ? p->channel + (size_t)strm * p->st->pl.nplaces * C : p->clock, t = 0;
  for (u32 c = 0; c < C; c++) {
    if (m->from >> c & 1) t = MAX(t, clock[from * C + c]);
    if (m->from >> c & 1 && strm) t = MAX(t, leaves[c]);
    if (m->to >> c & 1) t = MAX(t, clock[to * C + c]);
  }
  t += m->dur;
  for (u32 c = 0; c < C; c++) {
    if (m->from >> c & 1) clock[from * C + c] = t;
    if (m->to >> c & 1) clock[to * C + c] = t;
    if (m->to >> c & 1 && strm) comes[c] = t;
    for (u32 side = 0; !strm && side < 2; side++)
      if ((side ? m->to : m->from) >> c & 1)
        p->busy[(side ? to : from) * C + c] += m->dur, p->comm[(side ? to : from) * C + c] += m->dur;
  }
}

EACH void run_send(pipe *p, u32 link, bool back, u32 mb, const u32 C) {
  const sim_stages *st = p->st;
  const sim_link *l = &st->pl.link[link];
  const stage_send *x = &st->send[back][back ? l->like_to : l->like_from];
  const stage_send *y = &st->send[back][back ? l->like_from : l->like_to];
  const u32 strm = l->strm[back];
  const u32 from = st->pl.place[back ? l->to : l->from], to = st->pl.place[back ? l->from : l->to];
  const i64 *leaves = value_of(p, p->leaves[back], link, mb, C);
  i64 *comes = value_of(p, p->comes[back], link, mb, C);
  for (u32 k = 0; k < x->n; k++) run_meeting(p, &x->v[k], strm, from, to, leaves, comes, C);
  add_bytes(p, from, x->sender[stage_turn(mb, p->K)], C);
  add_bytes(p, to, y->receiver[stage_turn(mb, p->K)], C);
}

EACH void run_sends(pipe *p, u32 stage, task_kind kind, u32 mb, const u32 C) {
  const sim_stages *st = p->st;
  if (kind == TASK_F)
    for (u32 k = st->out_begin[stage]; k < st->out_begin[stage + 1]; k++)
      run_send(p, st->out_link[k], false, mb, C);
  else if (kind != TASK_W)
    for (u32 k = st->in_begin[stage]; k < st->in_begin[stage + 1]; k++)
      if (st->pl.link[st->in_link[k]].back) run_send(p, st->in_link[k], true, mb, C);
}

EACH void run_line(pipe *p, const sim_order *order, u32 n, const u32 C) {
  for (u32 k = 0; k < n; k++) {
    const sim_order *o = &order[k];
    if (o->send)
      run_sends(p, o->stage, (task_kind)o->task, o->mb, C);
    else
      run_task(p, o->stage, (task_kind)o->task, o->mb, C);
  }
}

static void run_before(pipe *p) {
  const sim_stages *st = p->st;
  const u32 C = p->C;
  i64 y[STAGE_CLASSES];
  for (u32 q = 0; q < st->pl.nplaces; q++)
    for (u32 c = 0; c < C; c++) p->cur[q * C + c] = p->peak[q * C + c] = st->start[st->rep_no[q] * C + c];
  for (u32 i = 0; i < st->pl.nstages; i++) {
    const stage_task *t = &st->before[st->pl.like[i]];
    const u32 at = st->pl.place[i];
    apply_map(t->a, C, C, p->clock + at * C, y);
    memcpy(p->clock + at * C, y, C * sizeof *y);
    add_bytes(p, at, t->bytes[0], C);
    add_busy(p, at, t->busy, t->comm, C);
  }
}

static void run_after(pipe *p, arena *tmp) {
  const sim_stages *st = p->st;
  const u32 C = p->C, n = st->nreps * C;
  i64 *x = NEWN(tmp, i64, n), *y = NEWN(tmp, i64, n);
  for (u32 r = 0; r < st->nreps; r++) memcpy(x + r * C, p->clock + st->rep[r] * C, C * sizeof *x);
  apply_map(st->after, n, n, x, y);
  for (u32 q = 0; q < st->pl.nplaces; q++) {
    const u32 r = st->rep_no[q];
    i64 *own = p->clock + q * C;
    if (st->rep[r] == q)
      memcpy(own, y + r * C, C * sizeof *own);
    else {
      i64 in[STAGE_CLASSES];
      memcpy(in, own, C * sizeof *in);
      for (u32 o = 0; o < C; o++) {
        i64 t = 0;
        for (u32 i = 0; i < C; i++) t = MAX(t, in[i] + st->after[(r * C + o) * n + r * C + i]);
        own[o] = t;
      }
    }
    add_bytes(p, q, st->tail[r].bytes[0], C);
    add_busy(p, q, st->tail[r].busy, st->tail[r].comm, C);
  }
}

static void sum_up(const pipe *p, sim_pipe_result *r) {
  const sim_stages *st = p->st;
  const u32 n = st->pl.nplaces * p->C;
  u64 ranks = 0;
  *r = (sim_pipe_result){0};
  for (u32 k = 0; k < n; k++) {
    r->makespan_ps = MAX(r->makespan_ps, p->clock[k]);
    r->peak_bytes = MAX(r->peak_bytes, p->peak[k]);
  }
  for (u32 k = 0; k < n * st->nstreams; k++) r->makespan_ps = MAX(r->makespan_ps, p->channel[k]);
  const i64 span = r->makespan_ps;
  sim_sum busy = 0, comm = 0, idle = 0;
  for (u32 k = 0; k < n; k++) {
    const u32 w = st->weight[k % p->C];
    busy += (sim_sum)w * (p->busy[k] - p->comm[k]);
    comm += (sim_sum)w * p->comm[k];
    idle += (sim_sum)w * (span - p->busy[k]);
    ranks += w;
  }
  if (ranks < st->nranks) idle += (sim_sum)(st->nranks - ranks) * span, ranks = st->nranks; // on no place
  r->utilisation = sim_mean_share(busy, span, ranks);
  r->comm = sim_mean_share(comm, span, ranks);
  r->bubble = sim_mean_share(idle, span, ranks);
}

void sim_pipe(const sim_stages *st, arena *tmp, const sim_order *order, u32 n, sim_pipe_result *r) {
  arena_mark_t mark = arena_mark(tmp);
  const u32 cells = st->pl.nplaces * st->nclass;
  const size_t values = (size_t)(st->pl.nlinks + 1) * st->pl.nmicro * st->nclass;
  pipe p = {.st = st, .C = st->nclass, .K = st->pl.nmicro};
  p.clock = ZNEWN(tmp, i64, cells), p.channel = ZNEWN(tmp, i64, cells * st->nstreams);
  for (u32 k = 0; k < 2; k++) p.leaves[k] = NEWN(tmp, i64, values), p.comes[k] = NEWN(tmp, i64, values);
  p.cur = ZNEWN(tmp, i64, cells), p.peak = ZNEWN(tmp, i64, cells);
  p.busy = ZNEWN(tmp, i64, cells), p.comm = ZNEWN(tmp, i64, cells);
  run_before(&p);
  switch (p.C) {
  case 1: run_line(&p, order, n, 1); break;
  case 2: run_line(&p, order, n, 2); break;
  default: run_line(&p, order, n, p.C);
  }
  run_after(&p, tmp);
  sum_up(&p, r);
  arena_release(tmp, mark);
}
