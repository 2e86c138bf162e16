// merge.c - one line of all sequences: the step at which every task runs.
//
// Idea: a task runs in the first step after all that it waits for. A place goes on until something is
// missing; then it is put on the list of the cell where that will be noted, and goes on when it is. So every
// task is looked at once for each thing that it waits for, in whatever order: the steps come out the same. If
// no place can go on before all are done, the sequences wait for each other in a circle.
#include "sched/internal.h"

// ---- tables -------------------------------------------------------------------------------------------
// The lists of what stages read (or, the other way, of who reads them): of stage k list[begin[k]] on.
// gradient: along edges that have one only.
static void index_edges(merge *m, bool back, bool gradient, u32 **begin, u32 **list) {
  const sched *s = m->s;
  u32 *at = ZNEWN(m->a, u32, s->nstages + 2), *v = NEWN(m->a, u32, s->nedges + 1);
  for (u32 k = 0; k < s->nedges; k++)
    if (!gradient || sched_has_gradient(s, &s->edge[k])) at[(back ? s->edge[k].from : s->edge[k].to) + 2]++;
  for (u32 k = 2; k <= s->nstages; k++) at[k] += at[k - 1];
  for (u32 k = 0; k < s->nedges; k++) {
    const sched_edge *e = &s->edge[k];
    if (gradient && !sched_has_gradient(s, e)) continue;
    v[at[(back ? e->from : e->to) + 1]++] = back ? e->to : e->from;
  }
  *begin = at, *list = v;
}

static void open_buffers(merge *m) {
  const sched *s = m->s;
  for (u32 d = FWD; d <= BWD; d++) {
    if (m->buffers.rendezvous) {
      m->here[d] = ZNEWN(m->a, cell, m->ncells);
    } else if (m->buffers.depth) {
      m->sent[d] = ZNEWN(m->a, u32, s->nreplicas * s->nstages);
      m->order[d] = NEWN(m->a, u32, m->ncells);
      m->nth[d] = NEWN(m->a, u32, m->ncells);
    }
  }
}

void merge_open(merge *m, arena *a, const sched *s, const sched_buffers *b) {
  *m = (merge){.s = s, .a = a, .npasses = npasses_of(s)};
  if (b) m->buffers = *b;
  m->bounded = m->buffers.rendezvous || m->buffers.depth;
  m->plain = !m->bounded && m->npasses == 1;
  m->ncells = (size_t)s->nreplicas * m->npasses * s->nstages * s->nmicro;
  index_edges(m, false, false, &m->reads, &m->read);
  index_edges(m, true, false, &m->feeds, &m->fed);
  index_edges(m, false, true, &m->returns, &m->returned);
  index_edges(m, true, true, &m->receives, &m->received);
  m->last = NEWN(a, u32, s->nstages + 1);
  for (u32 k = 0; k < s->nstages; k++)
    if (m->feeds[k] == m->feeds[k + 1]) m->last[m->nlast++] = k;
  for (u32 k = 0; k < s->nreplicas * s->nstages; k++) m->several |= s->at[k].n > 1;
  for (u32 d = FWD; d <= BWD; d++) m->done[d] = ZNEWN(a, cell, m->ncells);
  for (u32 d = FWD; d < DIRECTIONS && m->several; d++) {
    m->gather[d] = ZNEWN(a, cell, m->ncells);
    m->gathered[d] = ZNEWN(a, u16, m->ncells);
  }
  if (m->bounded) open_buffers(m);
  m->cur = ZNEWN(a, cursor, s->nplaces);
  m->queue = NEWN(a, u32, s->nplaces);
  m->base = NEWN(a, u32, s->nplaces);
  u32 n = 0;
  for (u32 p = 0; p < s->nplaces; p++) m->base[p] = n, n += s->seq[p].n;
  m->step = NEWN(a, u32, n + 1);
}

// ---- cells --------------------------------------------------------------------------------------------
static void wake(merge *m, u32 place) {
  m->queue[m->tail] = place;
  if (++m->tail == m->s->nplaces) m->tail = 0;
  m->queued++;
}

static void set_cell(merge *m, cell *x, u32 when) {
  cell old = *x;
  *x = when + 1;
  if (!(old & CELL_WAITED)) return;
  for (u32 p = old & ~CELL_WAITED; p; p = m->cur[p - 1].next) wake(m, p - 1);
}

// Is it set? Then the place is no earlier. Otherwise the place is on its list.
static bool wait_for(merge *m, u32 place, cell *x) {
  cursor *cur = &m->cur[place];
  if (*x && !(*x & CELL_WAITED)) {
    cur->clock = MAX(cur->clock, *x - 1);
    return true;
  }
  cur->next = *x & ~CELL_WAITED;
  *x = CELL_WAITED | (place + 1);
  return false;
}

// ---- what a task needs, and where its results go ------------------------------------------------------
static bool same_submesh(const merge *m, u32 replica, u32 x, u32 y) {
  const sched_places *at = m->s->at + (size_t)replica * m->s->nstages;
  return share_places(&at[x], &at[y]);
}

// The message that t sends along its edges (or, `to` given: that it gets) needs room until stage `to` has
// used the one that is `depth` before it. No cell: there is room.
static want room_for(const merge *m, const sched_task *t, u32 to) {
  u32 d = direction_of(t->kind), n = m->nth[d][cell_index(m, t)];
  if (n < m->buffers.depth) return (want){0};
  const sched *s = m->s;
  u32 k = m->order[d][((size_t)t->replica * s->nstages + t->stage) * m->npasses * s->nmicro + n -
                      m->buffers.depth];
  want w = {.task = *t, .room = true};
  w.task.stage = (u16)to, w.task.pass = (u8)(k / s->nmicro), w.task.mb = k % s->nmicro;
  w.cell = &m->done[d][cell_index(m, &w.task)];
  return w;
}

// The stage that runs before t's for i = 0, 1, ..; false: no more. Of a forward's later pass that reads
// nothing: the ends of the pass before.
static bool maker_of(const merge *m, const sched_task *t, u32 i, sched_task *out) {
  u32 st = t->stage, n = m->reads[st + 1] - m->reads[st];
  *out = *t;
  if (t->kind == TASK_F) {
    if (!n && t->pass && i < m->nlast) {
      out->stage = (u16)m->last[i], out->pass--;
      return true;
    }
    if (i >= n) return false;
    out->stage = (u16)m->read[m->reads[st] + i];
    return true;
  }
  if (t->kind == TASK_W) {
    out->kind = TASK_I;
    return i == 0;
  }
  if (i == 0) {
    out->kind = TASK_F, out->pass = (u8)(m->npasses - 1);
    return true;
  }
  if (i > m->receives[st + 1] - m->receives[st]) return false;
  out->stage = (u16)m->received[m->receives[st] + i - 1];
  return true;
}

// The i-th need of a task. With buffers of a depth every need is two: made, and sent.
static bool need_of(const merge *m, const sched_task *t, u32 i, want *w) {
  bool sent = m->buffers.depth && i & 1;
  *w = (want){0};
  if (!maker_of(m, t, m->buffers.depth ? i >> 1 : i, &w->task)) return false;
  if (!sent)
    w->cell = &m->done[w->task.kind != TASK_F][cell_index(m, &w->task)];
  else if (direction_of(w->task.kind) == direction_of(t->kind) && w->task.pass == t->pass &&
           !same_submesh(m, t->replica, w->task.stage, t->stage))
    *w = room_for(m, &w->task, t->stage);
  return true;
}

static u32 nsends(const merge *m, const sched_task *t) {
  if (t->kind == TASK_W) return 0;
  const u32 *begin = t->kind == TASK_F ? m->feeds : m->returns;
  return begin[t->stage + 1] - begin[t->stage];
}

// The i-th send of what a place ran last, one task or a pair.
static bool send_of(const merge *m, const sched_task *t, u32 n, u32 i, want *w) {
  for (; n && i >= nsends(m, t); n--) i -= nsends(m, t++);
  *w = (want){0};
  if (!n) return false;
  u32 d = direction_of(t->kind), st = t->stage,
      to = d == FWD ? m->fed[m->feeds[st] + i] : m->returned[m->returns[st] + i];
  if (same_submesh(m, t->replica, st, to)) return true;
  if (!m->buffers.rendezvous) {
    *w = room_for(m, t, to);
    return true;
  }
  w->task = *t, w->task.stage = (u16)to;
  w->cell = &m->here[d][cell_index(m, &w->task)];
  return true;
}

want merge_want(const merge *m, u32 place) {
  const cursor *cur = &m->cur[place];
  const sched_task *t = m->s->seq[place].v + cur->at;
  want w = {0};
  if (cur->phase == SENDING)
    send_of(m, t - cur->ran, cur->ran, cur->item, &w);
  else if (cur->phase == GATHERING)
    w.task = *t;
  else
    need_of(m, t + cur->second, cur->item, &w);
  return w;
}

// ---- running ------------------------------------------------------------------------------------------
static bool all_sent(merge *m, u32 place) {
  cursor *cur = &m->cur[place];
  const sched_task *t = m->s->seq[place].v + cur->at - cur->ran;
  for (want w; send_of(m, t, cur->ran, cur->item, &w); cur->item++)
    if (w.cell && !wait_for(m, place, w.cell)) return false;
  return true;
}

// A task on several places: the last of them to come goes on for all, the others wait on a list of their own.
static bool all_gathered(merge *m, u32 place, const sched_task *t) {
  cursor *cur = &m->cur[place];
  u32 d = direction_of(t->kind), n = places_of(m->s, t)->n;
  if (n == 1) return true;
  size_t k = cell_index(m, t);
  if (++m->gathered[d][k] < n) {
    cur->next = m->gather[d][k];
    m->gather[d][k] = place + 1;
    return false;
  }
  for (u32 p = m->gather[d][k]; p; p = m->cur[p - 1].next) cur->clock = MAX(cur->clock, m->cur[p - 1].clock);
  return true;
}

// The needs of one task where senders never wait and forwards run once: need_of without its cases.
static bool plainly_made(merge *m, u32 place, const sched_task *t) {
  cursor *cur = &m->cur[place];
  const sched *s = m->s;
  size_t model = (size_t)t->replica * s->nstages * s->nmicro + t->mb, K = s->nmicro;
  if (t->kind == TASK_W) return wait_for(m, place, &m->done[BWD][model + t->stage * K]);
  bool back = t->kind != TASK_F;
  const u32 *begin = back ? m->receives : m->reads, *list = back ? m->received : m->read;
  u32 from = begin[t->stage], n = begin[t->stage + 1] - from + back;
  if (back && !cur->item && !wait_for(m, place, &m->done[FWD][model + t->stage * K])) return false;
  for (cur->item += back && !cur->item; cur->item < n; cur->item++)
    if (!wait_for(m, place, &m->done[back][model + list[from + cur->item - back] * K])) return false;
  return true;
}

static bool all_made(merge *m, u32 place, const sched_task *t) {
  cursor *cur = &m->cur[place];
  if (m->plain && !t->paired) return plainly_made(m, place, t);
  for (;;) {
    for (want w; need_of(m, t + cur->second, cur->item, &w); cur->item++)
      if (w.cell && !wait_for(m, place, w.cell)) return false;
    if (!t[cur->second].paired) return true;
    cur->second = true, cur->item = 0;
  }
}

static void step_past(merge *m, u32 place, u32 n, u32 step) {
  cursor *cur = &m->cur[place];
  for (u32 i = 0; i < n; i++) m->step[m->base[place] + cur->at++] = step;
  cur->clock = step + 1, cur->phase = SENDING, cur->item = 0, cur->second = false, cur->ran = (u8)n;
}

static void finish(merge *m, const sched_task *t, u32 step) {
  size_t k = cell_index(m, t);
  u32 d = direction_of(t->kind);
  if (d != WGT) {
    if (m->sent[d]) {
      size_t of = (size_t)t->replica * m->s->nstages + t->stage;
      m->nth[d][k] = m->sent[d][of];
      m->order[d][of * m->npasses * m->s->nmicro + m->sent[d][of]++] = t->pass * m->s->nmicro + t->mb;
    }
    set_cell(m, &m->done[d][k], step + 1);
  }
  if (!m->several) return;
  for (u32 p = m->gather[d][k], next; p; p = next) {
    next = m->cur[p - 1].next;
    step_past(m, p - 1, 1, step);
    wake(m, p - 1);
  }
}

// From where it stands as far as it can.
static void go(merge *m, u32 place) {
  cursor *cur = &m->cur[place];
  const sched_seq *seq = &m->s->seq[place];
  for (;;) {
    const sched_task *t = seq->v + cur->at;
    if (cur->phase == SENDING) {
      if (m->bounded && !all_sent(m, place)) return;
      if (cur->at == seq->n) {
        m->left--;
        return;
      }
      cur->phase = GATHERING, cur->item = 0;
      if (m->several && !all_gathered(m, place, t)) return;
      cur->phase = NEEDING;
      for (u32 i = 0; m->buffers.rendezvous && i <= t->paired; i++)
        if (t[i].kind != TASK_W)
          set_cell(m, &m->here[direction_of(t[i].kind)][cell_index(m, t + i)], cur->clock);
    }
    if (!all_made(m, place, t)) return;
    u32 n = 1 + t->paired, step = cur->clock;
    for (u32 i = 0; i < n; i++) finish(m, t + i, step);
    step_past(m, place, n, step);
    m->nsteps = MAX(m->nsteps, step + 1);
  }
}

// False: a deadlock.
static bool merge_run(merge *m) {
  m->left = m->s->nplaces;
  for (u32 p = 0; p < m->s->nplaces; p++) wake(m, p);
  while (m->queued) {
    u32 p = m->queue[m->head];
    if (++m->head == m->s->nplaces) m->head = 0;
    m->queued--;
    go(m, p);
  }
  return !m->left;
}

static bool usual(const sched *s, const sched_buffers *b) {
  return (!b || (!b->depth && !b->rendezvous)) && chain_is(s);
}

bool sched_runs(const sched *s, const sched_buffers *b) {
  arena *a = arena_new();
  merge m;
  bool fits = usual(s, b), ok = fits && chain_ends(a, s, &fits);
  if (!fits) merge_open(&m, a, s, b), ok = merge_run(&m);
  arena_free(a);
  return ok;
}

// ---- the line -----------------------------------------------------------------------------------------
static bool stands_here(const merge *m, u32 place, u32 index) {
  return !m->several || places_of(m->s, &m->s->seq[place].v[index])->v[0] == place;
}

// By step, then place. Some steps at a time, counted and then filled, so that what is written lies close.
static void put_line(const merge *m, sched_slot *v, u32 *n) {
  const sched *s = m->s;
  u32 window = MAX(1024, s->nplaces), total = 0;
  u32 *at = ZNEWN(m->a, u32, s->nplaces), *count = NEWN(m->a, u32, window);
  for (u32 first = 0; first < m->nsteps; first += window) {
    u32 end = MIN(m->nsteps, first + window);
    memset(count, 0, window * sizeof *count);
    for (u32 p = 0; p < s->nplaces; p++)
      for (u32 i = at[p]; i < s->seq[p].n && m->step[m->base[p] + i] < end; i++)
        count[m->step[m->base[p] + i] - first] += stands_here(m, p, i);
    for (u32 k = 0, c; k < end - first; k++) c = count[k], count[k] = total, total += c;
    for (u32 p = 0; p < s->nplaces; p++)
      for (; at[p] < s->seq[p].n && m->step[m->base[p] + at[p]] < end; at[p]++) {
        u32 step = m->step[m->base[p] + at[p]];
        if (stands_here(m, p, at[p])) v[count[step - first]++] = (sched_slot){p, at[p], step};
      }
  }
  *n = total;
}

bool sched_merge(ctx *c, arena *a, const sched *s, const sched_buffers *b, loc where, sched_line *out) {
  sched_slot *v = NEWN(a, sched_slot, ntasks_of(s) + 1);
  bool fits = usual(s, b);
  out->v = v, out->n = (u32)ntasks_of(s);
  if (fits && chain_run(a, s, v, &out->nsteps, &fits)) return true;
  arena *tmp = arena_new();
  merge m;
  merge_open(&m, tmp, s, b);
  bool ok = merge_run(&m);
  if (ok) {
    put_line(&m, v, &out->n);
    out->v = v, out->nsteps = m.nsteps;
  } else {
    deadlock_report(c, &m, where);
  }
  arena_free(tmp);
  return ok;
}
