// clock.c - when every task of a schedule runs, by fixed costs of tasks and sends, and what is alive.
//
// Idea: the merge has put all tasks into one line in which each stands after what it waits for, so one pass
// along it is enough: a task begins when its places are free and the latest of its needs has ended.
#include "sched/internal.h"

typedef struct {
  merge m; // its tables of edges and cells; it is not run
  const sched_costs *cost;
  u64 *done[2]; // by cell_index: when the forward has ended; the backward, of the first pass
  u64 *clock;   // by place
  u32 *next;    // by place: number of its next task
  sched_span **at;
  u64 *busy;
} timing;

bool share_places(const sched_places *a, const sched_places *b) {
  for (u32 i = 0, k = 0; i < a->n && k < b->n; a->v[i] < b->v[k] ? i++ : k++)
    if (a->v[i] == b->v[k]) return true;
  return false;
}

u64 way_of(const sched_places *from, const sched_places *to, u64 send) {
  u32 k = 0;
  for (u32 i = 0; i < from->n && k < to->n; i++) k += from->v[i] == to->v[k];
  return k == to->n ? 0 : send;
}

// When what t needs of these stages is there. What is sent is what the earlier stage of the two makes, or its gradient.
static u64 latest(const timing *x, const u64 *done, const sched_task *t, const u32 *stage, u32 n) {
  u64 end = 0;
  for (u32 k = 0; k < n; k++) {
    sched_task from = *t;
    from.stage = (u16)stage[k];
    const u64 send = x->cost->send[MIN(from.stage, t->stage)],
              way = send ? way_of(places_of(x->m.s, &from), places_of(x->m.s, t), send) : 0;
    end = MAX(end, done[cell_index(&x->m, &from)] + way);
  }
  return end;
}

// When all that a task needs is there (sched.h has the rules).
static u64 ready(const timing *x, const sched_task *t) {
  const merge *m = &x->m;
  sched_task own = *t;
  if (t->kind == TASK_F) {
    u32 from = m->reads[t->stage], n = m->reads[t->stage + 1] - from;
    if (n || !t->pass) return latest(x, x->done[0], t, m->read + from, n);
    own.pass--;
    return latest(x, x->done[0], &own, m->last, m->nlast);
  }
  if (t->kind == TASK_W) return x->done[1][cell_index(m, t)];
  u32 from = m->receives[t->stage], n = m->receives[t->stage + 1] - from;
  u64 after = latest(x, x->done[1], t, m->received + from, n);
  own.pass = (u8)(m->npasses - 1);
  return MAX(after, x->done[0][cell_index(m, &own)]);
}

// Runs a pair that is held together, on one place: for as long as both take. Its spans are no use to anybody.
static void run_held(timing *x, const sched_task *t) {
  const u32 p = places_of(x->m.s, t)->v[0];
  u64 end = MAX(MAX(ready(x, t), ready(x, t + 1)), x->clock[p]);
  for (u32 i = 0; i < 2; i++) end += x->cost->task[t[i].kind][t[i].stage];
  for (u32 i = 0; i < 2; i++)
    if (t[i].kind != TASK_W) x->done[t[i].kind != TASK_F][cell_index(&x->m, t + i)] = end;
  x->clock[p] = end, x->next[p] += 2;
}

// Runs the next task of its places: one, or each that the stage lies on.
static void run(timing *x, const sched_task *t) {
  const sched_places *on = places_of(x->m.s, t);
  u64 begin = ready(x, t);
  for (u32 i = 0; i < on->n; i++) begin = MAX(begin, x->clock[on->v[i]]);
  const u64 dur = x->cost->task[t->kind][t->stage];
  const sched_span span = {begin, begin + dur};
  for (u32 i = 0; i < on->n; i++) {
    u32 p = on->v[i];
    x->clock[p] = span.end, x->busy[p] += dur;
    x->at[p][x->next[p]++] = span;
  }
  if (t->kind != TASK_W) x->done[t->kind != TASK_F][cell_index(&x->m, t)] = span.end;
}

// The most that is alive at once, each activation as much as `memory` says of its stage; NULL: 1.
static u64 most_alive(const sched_seq *seq, u32 npasses, const u64 *memory) {
  u64 live = 0, most = 0;
  for (u32 i = 0; i < seq->n; i++) {
    const sched_task *t = &seq->v[i];
    const u64 each = memory ? memory[t->stage] : 1;
    if (t->kind == TASK_F && t->pass + 1u == npasses) live += each;
    most = MAX(most, live);
    if (t->kind == TASK_B || t->kind == TASK_W) live -= each;
  }
  return most;
}

static void timing_open(timing *x, arena *a, arena *tmp, const sched *s, const sched_costs *cost) {
  merge_open(&x->m, tmp, s, NULL);
  x->cost = cost;
  for (u32 d = 0; d < 2; d++) x->done[d] = ZNEWN(tmp, u64, x->m.ncells);
  x->clock = ZNEWN(tmp, u64, s->nplaces), x->next = ZNEWN(tmp, u32, s->nplaces);
  x->busy = ZNEWN(a, u64, s->nplaces);
  x->at = NEWN(a, sched_span *, s->nplaces);
  for (u32 p = 0; p < s->nplaces; p++) x->at[p] = NEWN(a, sched_span, s->seq[p].n);
}

static bool has_pairs(const sched *s) {
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++)
      if (s->seq[p].v[i].paired) return true;
  return false;
}

// When all ends. hold: pairs are held together; in the line their two tasks stand one behind the other.
static u64 run_all(timing *x, const sched *s, const sched_line *line, bool hold) {
  u64 end = 0;
  for (u32 k = 0; k < line->n; k++) {
    const sched_task *t = &s->seq[line->v[k].place].v[line->v[k].index];
    if (hold && t->paired)
      run_held(x, t), k++;
    else
      run(x, t);
  }
  for (u32 p = 0; p < s->nplaces; p++) end = MAX(end, x->clock[p]);
  return end;
}

bool sched_time_of(ctx *c, arena *a, const sched *s, const sched_costs *cost, loc where, sched_times *out) {
  sched_line line;
  arena *tmp = arena_new();
  bool ok = sched_merge(c, tmp, s, NULL, where, &line);
  if (ok) {
    timing x;
    timing_open(&x, a, tmp, s, cost);
    const u64 makespan = run_all(&x, s, &line, false);
    u32 *live = ZNEWN(a, u32, s->nplaces);
    u64 *memory = ZNEWN(a, u64, s->nplaces);
    *out = (sched_times){.makespan = makespan,
                         .at = (const sched_span *const *)x.at,
                         .busy = x.busy,
                         .live = live,
                         .memory = memory};
    for (u32 p = 0; p < s->nplaces && s->backward; p++) {
      live[p] = (u32)most_alive(&s->seq[p], npasses_of(s), NULL);
      memory[p] = most_alive(&s->seq[p], npasses_of(s), cost->memory);
    }
    if (has_pairs(s)) {
      timing_open(&x, tmp, tmp, s, cost);
      out->held = run_all(&x, s, &line, true);
    }
  }
  arena_free(tmp);
  return ok;
}

bool sched_time(ctx *c, arena *a, const sched *s, const u32 cost[TASK_KINDS], loc where, sched_times *out) {
  sched_costs all = {.send = ZNEWN(a, u64, s->nstages)};
  u64 *one = NEWN(a, u64, s->nstages);
  for (u32 k = 0; k < s->nstages; k++) one[k] = 1;
  all.memory = one;
  for (u32 kind = 0; kind < TASK_KINDS; kind++) {
    u64 *of = NEWN(a, u64, s->nstages);
    for (u32 k = 0; k < s->nstages; k++) of[k] = cost[kind];
    all.task[kind] = of;
  }
  return sched_time_of(c, a, s, &all, where, out);
}

static bool is_own_weight(const sched_task *i, const sched_task *w) {
  return w->kind == TASK_W && w->stage == i->stage && w->mb == i->mb && w->replica == i->replica;
}

bool sched_waits_in_vain(ctx *c, const sched *s, u32 *place, u32 *index) {
  static const u32 cost[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2, [TASK_I] = 1, [TASK_W] = 1};
  arena *a = arena_new();
  sched_times t;
  bool found = false;
  bool *reads = ZNEWN(a, bool, s->nstages);
  for (u32 k = 0; k < s->nedges; k++) reads[s->edge[k].to] = true;
  const bool ok = s->backward && sched_time(c, a, s, cost, (loc){0}, &t);
  for (u32 p = 0; ok && p < s->nplaces && !found; p++)
    for (u32 i = 0; i + 1 < s->seq[p].n && !found; i++) {
      const sched_task *x = &s->seq[p].v[i];
      found = x->kind == TASK_I && !reads[x->stage] && !is_own_weight(x, x + 1) &&
              t.at[p][i].begin > (i ? t.at[p][i - 1].end : 0);
      *place = p, *index = i;
    }
  arena_free(a);
  return found;
}
