// blocking.c - where sends stand in a line whose senders wait until they are received. Not whether all can be
// received (sched_merge).
//
// Idea: a place has come to a task when it has run the one before and its sends have been taken. A send moves when the
// sender has run its task and the receiver has come to the task that uses it. So it is written just before whichever
// comes first, the next task of the sender or that task of the receiver; and before it, all that the receiver still
// has to send. A schedule that can be merged has no circle of such sends.
#include "plan/main.h"

typedef struct {
  sched_task task;
  u16 to;
} message;

typedef struct {
  const sched *s;
  u32 n; // of order
  sim_order *order;
  u32 *left;      // by place: messages of its latest task that nobody has taken
  message **send; // ... these, the first last
} blocking;

static u32 place_of(const sched *s, u32 replica, u32 stage) {
  return s->at[replica * s->nstages + stage].v[0];
}

// Are they on the same ranks, so that nothing is sent? A stage on all places is on more than its first.
static bool together(const sched *s, u32 replica, u32 from, u32 to) {
  const sched_places *x = &s->at[replica * s->nstages + from], *y = &s->at[replica * s->nstages + to];
  return x->n == y->n && !memcmp(x->v, y->v, sizeof *x->v * x->n);
}

static void move(blocking *x, const message *m) {
  order_put(x->s, x->order, &x->n, &m->task, true);
  x->order[x->n - 1].to = (u16)(m->task.replica * x->s->nstages + m->to + 1);
}

// All that the place has to send, which its receivers have come to.
static void take_all(blocking *x, u32 place) {
  while (x->left[place]) {
    const message m = x->send[place][--x->left[place]];
    take_all(x, place_of(x->s, m.task.replica, m.to));
    move(x, &m);
  }
}

// What stage `from` has made for the task, if nobody has taken it: the place of the task has come to it.
static void take(blocking *x, u32 from, const sched_task *t) {
  const u32 place = place_of(x->s, t->replica, from);
  message *v = x->send[place];
  for (u32 k = x->left[place]; k-- > 0;) {
    if (v[k].task.stage != from || v[k].to != t->stage || v[k].task.mb != t->mb ||
        v[k].task.replica != t->replica || (v[k].task.kind == TASK_F) != (t->kind == TASK_F))
      continue;
    const message m = v[k];
    memmove(v + k, v + k + 1, (--x->left[place] - k) * sizeof *v);
    move(x, &m);
    return;
  }
}

static void run(blocking *x, u32 place, const sched_task *t) {
  const sched *s = x->s;
  take_all(x, place);
  for (u32 k = 0; k < s->nedges && t->kind != TASK_W; k++) {
    const sched_edge *e = &s->edge[k];
    if (t->kind == TASK_F ? e->to == t->stage : e->from == t->stage && sched_has_gradient(s, e))
      take(x, t->kind == TASK_F ? e->from : e->to, t);
  }
  order_put(s, x->order, &x->n, t, false);
  for (u32 k = s->nedges; k-- > 0 && t->kind != TASK_W;) {
    const sched_edge *e = &s->edge[k];
    if (t->kind == TASK_F ? e->from != t->stage : e->to != t->stage || !sched_has_gradient(s, e)) continue;
    const u16 to = t->kind == TASK_F ? e->to : e->from;
    if (!together(s, t->replica, t->stage, to)) x->send[place][x->left[place]++] = (message){*t, to};
  }
}

u32 blocking_line(arena *a, const sched *s, const sched_line *line, sim_order *order) {
  blocking x = {
      .s = s, .order = order, .left = ZNEWN(a, u32, s->nplaces), .send = NEWN(a, message *, s->nplaces)};
  for (u32 p = 0; p < s->nplaces; p++) x.send[p] = NEWN(a, message, s->nedges + 1);
  for (u32 k = 0; k < line->n; k++) run(&x, line->v[k].place, &s->seq[line->v[k].place].v[line->v[k].index]);
  for (u32 p = 0; p < s->nplaces; p++) take_all(&x, p);
  return x.n;
}
