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

static void add_bytes(pipe *p, u32 at, const stage_bytes *b) {
  for (u32 c = 0; c < p->C; c++) {
    u32 k = at * p->C + c;
    p->peak[k] = MAX(p->peak[k], p->cur[k] + b[c].peak);
    p->cur[k] += b[c].net;
  }
}

static void add_busy(pipe *p, u32 at, const i64 *busy, const i64 *comm) {
  for (u32 c = 0; c < p->C; c++) p->busy[at * p->C + c] += busy[c], p->comm[at * p->C + c] += comm[c];
}

// y = a x. Times are never below 0.
static void apply_map(const i64 *a, u32 nin, u32 nout, const i64 *x, i64 *y) {
  for (u32 o = 0; o < nout; o++) {
    i64 t = 0;
    for (u32 i = 0; i < nin; i++) t = MAX(t, x[i] + a[o * nin + i]);
    y[o] = t;
  }
}

static i64 *value_of(pipe *p, i64 *of, u32 link, u32 mb) { return of + ((size_t)link * p->K + mb) * p->C; }

static void run_task(pipe *p, u32 stage, task_kind kind, u32 mb) {
  const sim_stages *st = p->st;
  const stage_task *t = &st->task[kind][st->pl.like[stage]];
  const bool back = kind == TASK_B || kind == TASK_I;
  const u32 C = p->C, at = st->pl.place[stage];
  i64 x[4 * STAGE_CLASSES], y[4 * STAGE_CLASSES], *in = x, *out = y, big[2 * 66 * STAGE_CLASSES];
  if (t->nin > 3 || t->nout > 3) in = big, out = big + 66 * STAGE_CLASSES;
  memcpy(in, p->clock + at * C, C * sizeof *in);
  const u32 *from = back ? st->out_link + st->out_begin[stage] : st->in_link + st->in_begin[stage];
  const u32 *to = back ? st->in_link + st->in_begin[stage] : st->out_link + st->out_begin[stage];
  for (u32 k = 0, v = 1; v <= t->nin; k++)
    if (!back || st->pl.link[from[k]].back)
      memcpy(in + v++ * C, value_of(p, p->comes[back], from[k], mb), C * sizeof *in);
  apply_map(t->a, (1 + t->nin) * C, (1 + t->nout) * C, in, out);
  memcpy(p->clock + at * C, out, C * sizeof *out);
  for (u32 k = 0, v = 1; v <= t->nout; k++)
    if (!back || st->pl.link[to[k]].back)
      memcpy(value_of(p, p->leaves[back], to[k], mb), out + v++ * C, C * sizeof *out);
  add_bytes(p, at, t->bytes[mb > 0]);
  add_busy(p, at, t->busy, t->comm);
}

static void run_send(pipe *p, u32 link, u32 back, u32 mb) {
  const sim_stages *st = p->st;
  const sim_link *l = &st->pl.link[link];
  const stage_send *x = &st->send[back][back ? l->like_to : l->like_from];
  const stage_send *y = &st->send[back][back ? l->like_from : l->like_to];
  const u32 C = p->C, strm = l->strm[back];
  const u32 from = st->pl.place[back ? l->to : l->from], to = st->pl.place[back ? l->from : l->to];
  i64 *clock = strm ? p->channel + (size_t)strm * st->pl.nplaces * C : p->clock;
  const i64 *leaves = value_of(p, p->leaves[back], link, mb);
  i64 *comes = value_of(p, p->comes[back], link, mb);
  for (u32 k = 0; k < x->n; k++) {
    const stage_meeting *m = &x->v[k];
    i64 t = 0;
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
  add_bytes(p, from, x->sender[mb > 0]);
  add_bytes(p, to, y->receiver[mb > 0]);
}

static void run_sends(pipe *p, u32 stage, task_kind kind, u32 mb) {
  const sim_stages *st = p->st;
  if (kind == TASK_F)
    for (u32 k = st->out_begin[stage]; k < st->out_begin[stage + 1]; k++) run_send(p, st->out_link[k], 0, mb);
  if (kind == TASK_B || kind == TASK_I)
    for (u32 k = st->in_begin[stage]; k < st->in_begin[stage + 1]; k++)
      if (st->pl.link[st->in_link[k]].back) run_send(p, st->in_link[k], 1, mb);
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
    add_bytes(p, at, t->bytes[0]);
    add_busy(p, at, t->busy, t->comm);
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
    add_bytes(p, q, st->tail[r].bytes[0]);
    add_busy(p, q, st->tail[r].busy, st->tail[r].comm);
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
  const double span = r->makespan_ps ? (double)r->makespan_ps : 1;
  for (u32 k = 0; k < n; k++) {
    const u32 w = st->weight[k % p->C];
    r->utilisation += w * ((double)(p->busy[k] - p->comm[k]) / span);
    r->comm += w * ((double)p->comm[k] / span);
    r->bubble += w * ((double)(r->makespan_ps - p->busy[k]) / span);
    ranks += w;
  }
  if (ranks < st->nranks) r->bubble += (double)(st->nranks - ranks), ranks = st->nranks; // on no place: idle
  r->utilisation /= (double)ranks, r->comm /= (double)ranks, r->bubble /= (double)ranks;
}

void sim_pipe(const sim_stages *st, arena *tmp, const sim_order *order, u32 n, sim_pipe_result *r) {
  arena_mark_t mark = arena_mark(tmp);
  const u32 cells = st->pl.nplaces * st->nclass;
  const size_t values = (size_t)(st->pl.nlinks + 1) * st->pl.nmicro * st->nclass;
  pipe p = {.st = st, .C = st->nclass, .K = st->pl.nmicro};
  p.clock = ZNEWN(tmp, i64, cells), p.channel = ZNEWN(tmp, i64, cells * st->nstreams);
  for (u32 k = 0; k < 2; k++) p.leaves[k] = ZNEWN(tmp, i64, values), p.comes[k] = ZNEWN(tmp, i64, values);
  p.cur = ZNEWN(tmp, i64, cells), p.peak = ZNEWN(tmp, i64, cells);
  p.busy = ZNEWN(tmp, i64, cells), p.comm = ZNEWN(tmp, i64, cells);
  run_before(&p);
  for (u32 k = 0; k < n; k++) {
    const sim_order *o = &order[k];
    if (o->send)
      run_sends(&p, o->stage, (task_kind)o->task, o->mb);
    else
      run_task(&p, o->stage, (task_kind)o->task, o->mb);
  }
  run_after(&p, tmp);
  sum_up(&p, r);
  arena_release(tmp, mark);
}
