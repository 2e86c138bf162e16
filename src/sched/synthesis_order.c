// synthesis_order.c - orders of parts: their times, their memory, and the schedules that they are.
#include "sched/synthesis.h"
#include <stdlib.h>

// ---- parts --------------------------------------------------------------------------------------------
static u16 add_part(synth *x, u32 stage, task_kind kind, u64 dur) {
  const bool gives = kind == TASK_B || kind == TASK_W;
  const u64 memory = x->of->cost.memory[stage];
  x->part[x->nparts] = (part){.stage = (u16)stage,
                              .kind = (u8)kind,
                              .dur = dur,
                              .takes = kind == TASK_F ? memory : 0,
                              .gives = gives ? memory : 0,
                              .at = &x->of->at[stage]};
  return (u16)x->nparts++;
}

// A backward whose weights take no time is whole. Else two parts are never worse than one: run one after the other
// they are one, but for the gradients, which leave earlier.
static void add_parts(synth *x) {
  const sched_stages *of = x->of;
  const u64 *input = of->cost.task[TASK_I], *weight = of->cost.task[TASK_W];
  for (u32 k = 0; k < of->nstages; k++) x->forward[k] = add_part(x, k, TASK_F, of->cost.task[TASK_F][k]);
  for (u32 k = of->nstages; k-- > 0;)
    x->back[k] = x->release[k] = add_part(x, k, weight[k] ? TASK_I : TASK_B, input[k]);
  for (u32 k = of->nstages; k-- > 0;)
    if (weight[k]) x->release[k] = add_part(x, k, TASK_W, weight[k]);
}

static void add_edge(synth *x, u16 from, u16 to, u64 delay) {
  part *p = &x->part[from], *q = &x->part[to];
  part_edge *succ = NEWN(x->a, part_edge, p->nsucc + 1), *pred = NEWN(x->a, part_edge, q->npred + 1);
  if (p->nsucc) memcpy(succ, p->succ, p->nsucc * sizeof *succ);
  if (q->npred) memcpy(pred, q->pred, q->npred * sizeof *pred);
  succ[p->nsucc++] = (part_edge){to, delay};
  pred[q->npred++] = (part_edge){from, delay};
  p->succ = succ, q->pred = pred;
}

static void set_descends(synth *x) {
  const sched_stages *of = x->of;
  const u32 words = (of->nstages + 31) / 32;
  u32 *v = ZNEWN(x->a, u32, of->nstages * words);
  for (u32 i = of->nedges; i-- > 0;) { // those of later stages are known: edges are in order
    const sched_edge *e = &of->edge[i];
    if (e->no_gradient) continue;
    v[e->from * words + e->to / 32] |= 1u << e->to % 32;
    for (u32 k = 0; k < words; k++) v[e->from * words + k] |= v[e->to * words + k];
  }
  x->descends = v;
}

static void set_ends(synth *x) {
  const sched_stages *of = x->of;
  x->is_end = NEWN(x->a, bool, of->nstages);
  x->due = NEWN(x->a, u64, of->nplaces);
  memset(x->is_end, true, of->nstages * sizeof *x->is_end);
  for (u32 i = 0; i < of->nedges; i++)
    if (!of->edge[i].no_gradient) x->is_end[of->edge[i].from] = false;
}

void synth_open(synth *x, arena *a, const sched_stages *of, const sched_aims *aims) {
  *x = (synth){.a = a, .of = of, .nplaces = of->nplaces, .micro = aims->micro, .limit = aims->memory};
  x->part = NEWN(a, part, 3 * of->nstages);
  x->forward = NEWN(a, u16, of->nstages), x->release = NEWN(a, u16, of->nstages);
  x->back = NEWN(a, u16, of->nstages);
  add_parts(x);
  for (u32 k = 0; k < of->nstages; k++) {
    add_edge(x, x->forward[k], x->back[k], 0);
    if (x->release[k] != x->back[k]) add_edge(x, x->back[k], x->release[k], 0);
  }
  for (u32 i = 0; i < of->nedges; i++) {
    const sched_edge *e = &of->edge[i];
    const sched_places *from = &of->at[e->from], *to = &of->at[e->to];
    add_edge(x, x->forward[e->from], x->forward[e->to], way_of(from, to, of->cost.send[e->from]));
    if (e->no_gradient) continue;
    add_edge(x, x->back[e->to], x->back[e->from], way_of(to, from, of->cost.send[e->from]));
  }
  set_descends(x), set_ends(x);
  x->n = x->nparts * x->micro;
  x->work = ZNEWN(a, u64, x->nplaces);
  for (u32 k = 0; k < x->nparts; k++)
    for (u32 i = 0; i < x->part[k].at->n; i++) x->work[x->part[k].at->v[i]] += x->part[k].dur;
}

// ---- time and memory ----------------------------------------------------------------------------------
u64 order_time(const synth *x, const order_item *o, u64 *begin) {
  arena_mark_t mark = arena_mark(x->a);
  u32 *count = ZNEWN(x->a, u32, x->nparts);
  u64 *clock = ZNEWN(x->a, u64, x->nplaces), *own = begin ? begin : NEWN(x->a, u64, x->n), end = 0;
  for (u32 i = 0; i < x->n; i++) {
    const part *p = &x->part[o[i]];
    const u32 m = count[o[i]]++;
    u64 t = 0;
    for (u32 k = 0; k < p->at->n; k++) t = MAX(t, clock[p->at->v[k]]);
    for (u32 k = 0; k < p->npred; k++) {
      const u16 from = p->pred[k].part;
      t = MAX(t, own[from * x->micro + m] + x->part[from].dur + p->pred[k].delay);
    }
    own[o[i] * x->micro + m] = t;
    for (u32 k = 0; k < p->at->n; k++) clock[p->at->v[k]] = t + p->dur;
    end = MAX(end, t + p->dur);
  }
  arena_release(x->a, mark);
  return end;
}

bool order_fits(const synth *x, const order_item *o) {
  arena_mark_t mark = arena_mark(x->a);
  u32 *count = ZNEWN(x->a, u32, x->nparts);
  u64 *live = ZNEWN(x->a, u64, x->nplaces);
  bool ok = true;
  for (u32 i = 0; i < x->n && ok; i++) {
    const part *p = &x->part[o[i]];
    for (u32 k = 0; k < p->npred; k++) ok &= count[p->pred[k].part] > count[o[i]];
    ok &= count[o[i]]++ < x->micro;
    for (u32 k = 0; k < p->at->n; k++) {
      u64 *l = &live[p->at->v[k]];
      ok &= (*l += p->takes) <= x->limit;
      *l -= p->gives;
    }
  }
  arena_release(x->a, mark);
  return ok;
}

bool order_has_way_out(const synth *x, const u16 *count) {
  const sched_stages *of = x->of;
  const u32 stages = of->nstages;
  u32 oldest = x->micro;
  if (x->limit == SCHED_NO_LIMIT) return true;
  for (u32 k = 0; k < stages; k++) oldest = MIN(oldest, count[x->forward[k]]);
  if (oldest == x->micro) return true;
  for (u32 z = 0; z < stages; z++) {
    if (!x->is_end[z] || count[x->forward[z]] > oldest) continue;
    memset(x->due, 0, x->nplaces * sizeof *x->due);
    for (u32 y = 0; y <= z; y++) {
      if (y != z && !stage_descends(of, x->descends, y, z)) continue;
      const part *f = &x->part[x->forward[y]];
      const u32 gone = MAX(count[x->release[y]], oldest), ran = count[x->forward[y]];
      const u64 due = f->takes * (ran > gone ? ran - gone : ran == oldest);
      for (u32 i = 0; i < f->at->n; i++)
        if ((x->due[f->at->v[i]] += due) > x->limit) return false;
    }
  }
  return true;
}

// ---- sorting ------------------------------------------------------------------------------------------
typedef struct {
  u64 time;
  u32 at; // of equal times what stood first
  order_item item;
} timed;

static int by_time(const void *a, const void *b) {
  const timed *p = a, *q = b;
  return p->time != q->time ? (p->time < q->time ? -1 : 1) : p->at < q->at ? -1 : p->at > q->at;
}

static void sort_timed(timed *v, u32 n, order_item *o) {
  qsort(v, n, sizeof *v, by_time);
  for (u32 i = 0; i < n; i++) o[i] = v[i].item;
}

void order_sort(const synth *x, order_item *o) {
  arena_mark_t mark = arena_mark(x->a);
  u64 *begin = NEWN(x->a, u64, x->n);
  u32 *count = ZNEWN(x->a, u32, x->nparts);
  timed *v = NEWN(x->a, timed, x->n);
  order_time(x, o, begin);
  for (u32 i = 0; i < x->n; i++) v[i] = (timed){begin[o[i] * x->micro + count[o[i]]++], i, o[i]};
  sort_timed(v, x->n, o);
  arena_release(x->a, mark);
}

// ---- one microbatch after the other -------------------------------------------------------------------
// Idea: a backward gives memory back and takes none, so it runs as soon as it can; what is left to choose is which stage
// runs forward next. The set of those that have run says all that follows, so a set from which there was no way on is not
// looked at again. Behind a stage those that read it are tried first: so one end of the model is done before another.
typedef struct {
  const synth *x;
  u32 visits; // that are left
  u32 n;
  order_item *o; // n of them
  bool *ran;     // by part
  u64 *live;     // by place
  u64 *salt;     // by stage
  arena *a;
  hmap seen; // sums of salts
} single;
enum { SINGLE_VISITS = 20000 };

static bool can_run(const single *s, const part *p) {
  if (s->ran[p - s->x->part]) return false;
  for (u32 i = 0; i < p->npred; i++)
    if (!s->ran[p->pred[i].part]) return false;
  for (u32 i = 0; i < p->at->n && p->takes; i++)
    if (s->live[p->at->v[i]] + p->takes > s->x->limit) return false;
  return true;
}

static void run_part(single *s, const part *p) {
  s->ran[p - s->x->part] = true;
  s->o[s->n++] = (order_item)(p - s->x->part);
  for (u32 i = 0; i < p->at->n; i++) s->live[p->at->v[i]] += p->takes, s->live[p->at->v[i]] -= p->gives;
}

static void undo_to(single *s, u32 n) {
  while (s->n > n) {
    const part *p = &s->x->part[s->o[--s->n]];
    s->ran[p - s->x->part] = false;
    for (u32 i = 0; i < p->at->n; i++) s->live[p->at->v[i]] += p->gives, s->live[p->at->v[i]] -= p->takes;
  }
}

// Parts stand after those that they need.
static void run_backwards(single *s) {
  const synth *x = s->x;
  for (u32 k = x->of->nstages; k < x->nparts; k++)
    if (can_run(s, &x->part[k])) run_part(s, &x->part[k]);
}

static bool run_from(single *s, u64 set) {
  const synth *x = s->x;
  u32 it = 0, id;
  if (s->n == x->nparts) return true;
  if (hmap_next(&s->seen, set, &it, &id) || !s->visits) return false;
  s->visits--;
  hmap_add(s->a, &s->seen, set, 0);
  for (u32 k = x->of->nstages; k-- > 0;) {
    const u32 before = s->n;
    if (!can_run(s, &x->part[x->forward[k]])) continue;
    run_part(s, &x->part[x->forward[k]]);
    run_backwards(s);
    if (run_from(s, set + s->salt[k])) return true;
    undo_to(s, before);
  }
  return false;
}

bool order_one_by_one(const synth *x, order_item *o) {
  for (u32 m = 0; m < x->micro; m++)
    for (u32 k = 0; k < x->nparts; k++) o[m * x->nparts + k] = (order_item)k;
  if (order_fits(x, o)) return true;
  arena *a = arena_new();
  single s = {.x = x,
              .visits = SINGLE_VISITS,
              .o = o,
              .ran = ZNEWN(a, bool, x->nparts),
              .live = ZNEWN(a, u64, x->nplaces),
              .salt = NEWN(a, u64, x->of->nstages),
              .a = a};
  for (u32 k = 0; k < x->of->nstages; k++) s.salt[k] = hash_u64(k + 1, 3);
  const bool ok = run_from(&s, 0);
  for (u32 m = 1; m < x->micro && ok; m++) memcpy(o + m * x->nparts, o, x->nparts * sizeof *o);
  arena_free(a);
  return ok;
}

// ---- from schedules and back --------------------------------------------------------------------------
// A whole backward (B) of a stage that has two parts is one after the other; of one that has not, I is all of it.
order_item *order_of(const synth *x, arena *a, const sched *s, const sched_times *t, const sched_line *line) {
  timed *v = NEWN(x->a, timed, x->n);
  u32 n = 0;
  for (u32 i = 0; i < line->n; i++) {
    const sched_slot *slot = &line->v[i];
    const sched_task *task = &s->seq[slot->place].v[slot->index];
    const u64 begin = t->at[slot->place][slot->index].begin;
    const u16 back = x->back[task->stage], release = x->release[task->stage];
    if (task->kind == TASK_F) v[n] = (timed){begin, n, x->forward[task->stage]}, n++;
    if (task->kind == TASK_B || task->kind == TASK_I) v[n] = (timed){begin, n, back}, n++;
    if (back == release || task->kind == TASK_F || task->kind == TASK_I) continue;
    v[n] = (timed){begin + (task->kind == TASK_B ? x->part[back].dur : 0), n, release}, n++;
  }
  assert(n == x->n);
  order_item *o = NEWN(a, order_item, n);
  sort_timed(v, n, o);
  return o;
}

const sched *order_sched(const synth *x, arena *a, const order_item *o) {
  const sched_stages *of = x->of;
  sched *s = NEW(a, sched);
  *s = (sched){.name = "synthesis",
               .nstages = of->nstages,
               .nplaces = of->nplaces,
               .nmicro = x->micro,
               .nreplicas = 1,
               .npasses = 1,
               .at = of->at,
               .nedges = of->nedges,
               .edge = of->edge,
               .backward = true};
  sched_seq *seq = ZNEWN(a, sched_seq, s->nplaces);
  sched_task **v = NEWN(a, sched_task *, s->nplaces);
  bool *split = ZNEWN(a, bool, s->nstages);
  u32 *count = ZNEWN(a, u32, x->nparts);
  for (u32 k = 0; k < x->nparts; k++)
    for (u32 i = 0; i < x->part[k].at->n; i++) seq[x->part[k].at->v[i]].n += x->micro;
  for (u32 p = 0; p < s->nplaces; p++) seq[p].v = v[p] = NEWN(a, sched_task, seq[p].n);
  for (u32 i = 0; i < x->n; i++) {
    const part *p = &x->part[o[i]];
    const sched_task task = {.stage = p->stage, .kind = p->kind, .mb = count[o[i]]++};
    for (u32 k = 0; k < p->at->n; k++) *v[p->at->v[k]]++ = task;
    split[p->stage] |= p->kind == TASK_W;
  }
  s->seq = seq, s->split = split;
  sched_seal(s);
  return s;
}
