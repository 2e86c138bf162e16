// schedmut.h - mutants of schedules: a schedule with the sequence of one place changed, and whether that is one still, in
// words that share no code with sched/: each task is counted, and an event simulation runs what is left. Included by
// tests only.
#ifndef HEDDLE_TEST_SCHEDMUT_H
#define HEDDLE_TEST_SCHEDMUT_H
#include "sched/sched.h"

static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

typedef enum {
  MUT_DROP,
  MUT_DOUBLE,
  MUT_EXTRA, // a double with another number
  MUT_SWAP,
  MUT_MOVE,
  MUT_PLACE,
  MUT_KIND,
  MUT_MICROBATCH,
  MUT_STAGE,
  MUT_REPLICA,
  MUT_PASS,
  MUT_VERSION,
  MUT_PAIR,
  MUT_COUNT
} mutation;
static const char *const mut_name[] = {"drop",       "double", "extra",   "swap", "move",    "place", "kind",
                                       "microbatch", "stage",  "replica", "pass", "version", "pair",  "none"};

// ---- what a schedule is, once more ------------------------------------------------------------------------
enum { REPLICAS_MOST = 256 };
typedef struct {
  u32 nstages, nplaces, nreplicas, npasses, most; // most: microbatches of a replica
  u32 micro[REPLICAS_MOST];
  bool backward;
  const bool *split; // by stage: may its backward be in two parts?
  u64 *on;           // by (replica, stage): places, as bits
  u32 nedges;
  const sched_edge *edge;
  const sched_seq *seq;
} figures;

// Of text: they follow from the tasks that it lists, in a chain.
static figures as_listed(arena *a, u32 nplaces, const sched_seq *seq) {
  figures f = {.nplaces = nplaces, .seq = seq};
  for (u32 p = 0; p < nplaces; p++)
    for (u32 i = 0; i < seq[p].n; i++) {
      const sched_task *t = &seq[p].v[i];
      f.nstages = MAX(f.nstages, t->stage + 1u), f.nreplicas = MAX(f.nreplicas, t->replica + 1u);
      f.npasses = MAX(f.npasses, t->pass + 1u), f.backward |= t->kind != TASK_F;
      f.micro[t->replica] = MAX(f.micro[t->replica], t->mb + 1), f.most = MAX(f.most, t->mb + 1);
    }
  f.on = ZNEWN(a, u64, f.nreplicas * f.nstages);
  bool *split = NEWN(a, bool, f.nstages);
  sched_edge *e = NEWN(a, sched_edge, f.nstages);
  for (u32 k = 0; k < f.nstages; k++) split[k] = true, e[k] = (sched_edge){(u16)k, (u16)(k + 1), false};
  for (u32 p = 0; p < nplaces; p++)
    for (u32 i = 0; i < seq[p].n; i++) f.on[seq[p].v[i].replica * f.nstages + seq[p].v[i].stage] |= 1ull << p;
  f.split = split, f.edge = e, f.nedges = f.nstages - 1;
  return f;
}

static u32 times_listed(const figures *f, u32 place, sched_task t, task_kind kind) {
  u32 n = 0;
  for (u32 i = 0; i < f->seq[place].n; i++) {
    const sched_task *x = &f->seq[place].v[i];
    n += x->stage == t.stage && x->kind == kind && x->replica == t.replica && x->pass == t.pass &&
         x->mb == t.mb;
  }
  return n;
}

// Is one microbatch of a stage listed as it must be, on this place of its?
static bool listed_well(const figures *f, u32 place, sched_task t, bool parts) {
  const u32 n[] = {times_listed(f, place, t, TASK_F), times_listed(f, place, t, TASK_B),
                   times_listed(f, place, t, TASK_I), times_listed(f, place, t, TASK_W)};
  const bool back = f->backward && !t.pass;
  return n[0] == 1 && n[1] == (back && !parts) && n[2] == (back && parts) && n[3] == (back && parts);
}

// Every task on each of the places of its stage, once, and nothing else.
static bool is_whole(const figures *f) {
  u64 due = 0, listed = 0;
  for (u32 r = 0; r < f->nreplicas; r++)
    if (!f->micro[r]) return false;
  for (u32 p = 0; p < f->nplaces; p++) {
    if (!f->seq[p].n) return false;
    listed += f->seq[p].n;
  }
  for (u32 r = 0; r < f->nreplicas; r++)
    for (u32 k = 0; k < f->nstages; k++)
      for (u32 m = 0; m < f->micro[r]; m++) {
        const u64 on = f->on[r * f->nstages + k];
        const sched_task t = {.stage = (u16)k, .replica = (u8)r, .mb = m};
        bool parts = false;
        if (!on) return false;
        for (u32 p = 0; p < f->nplaces; p++) parts |= times_listed(f, p, t, TASK_I) > 0;
        if (parts && !f->split[k]) return false;
        for (u32 p = 0; p < f->nplaces; p++)
          for (u32 z = 0; z < f->npasses && on >> p & 1; z++) {
            sched_task x = t;
            x.pass = (u8)z;
            if (!listed_well(f, p, x, parts)) return false;
            due += 1 + (z || !f->backward ? 0 : 1 + parts);
          }
      }
  return due == listed;
}

static bool pairs_well(const figures *f) {
  for (u32 p = 0; p < f->nplaces; p++)
    for (u32 i = 0; i < f->seq[p].n; i++) {
      const sched_task *t = &f->seq[p].v[i];
      if (!t->paired) continue;
      if (i + 1 == f->seq[p].n || t[1].paired) return false;
      for (u32 k = 0; k < 2; k++)
        if (f->on[t[k].replica * f->nstages + t[k].stage] != 1ull << p) return false;
    }
  return true;
}

// ---- a clock ------------------------------------------------------------------------------------------------
static const u32 takes[TASK_KINDS] = {[TASK_F] = 2, [TASK_B] = 5, [TASK_I] = 3, [TASK_W] = 2};
typedef struct {
  const figures *f;
  u32 *at;      // by place: its next task
  u64 *is_free; // by place: from when on
  u64 *end[2];  // of forwards and of gradients of inputs: + 1, 0: not yet
} events;

static u64 *end_of(const events *e, u32 what, const sched_task *t, u32 stage, u32 pass) {
  const figures *f = e->f;
  return &e->end[what][((t->replica * f->npasses + pass) * f->nstages + stage) * f->most + t->mb];
}

// Is a result there that t needs? Then *when is no earlier.
static bool has(const events *e, u32 what, const sched_task *t, u32 stage, u32 pass, u64 *when) {
  const u64 x = *end_of(e, what, t, stage, pass);
  *when = MAX(*when, x ? x - 1 : 0);
  return x > 0;
}

static bool is_read(const figures *f, u32 stage) {
  for (u32 k = 0; k < f->nedges; k++)
    if (f->edge[k].from == stage) return true;
  return false;
}

static bool forward_ready(const events *e, const sched_task *t, u64 *when) {
  const figures *f = e->f;
  bool known = true, reads = false;
  for (u32 k = 0; k < f->nedges; k++) {
    if (f->edge[k].to != t->stage) continue;
    reads = true, known &= has(e, 0, t, f->edge[k].from, t->pass, when);
  }
  for (u32 s = 0; s < f->nstages && t->pass && !reads; s++)
    if (!is_read(f, s)) known &= has(e, 0, t, s, t->pass - 1u, when);
  return known;
}

// When all that a task needs is there; false: something is not known yet.
static bool ready(const events *e, const sched_task *t, u64 *when) {
  const figures *f = e->f;
  if (t->kind == TASK_F) return forward_ready(e, t, when);
  if (t->kind == TASK_W) return has(e, 1, t, t->stage, 0, when);
  bool known = has(e, 0, t, t->stage, f->npasses - 1, when);
  for (u32 k = 0; k < f->nedges; k++)
    if (f->edge[k].from == t->stage) known &= has(e, 1, t, f->edge[k].to, 0, when);
  return known;
}

// Runs the next task (pair) of a place if it can.
static bool go_on(events *e, u32 place) {
  const figures *f = e->f;
  const sched_task *t = &f->seq[place].v[e->at[place]];
  if (e->at[place] == f->seq[place].n) return false;
  const u64 on = f->on[t->replica * f->nstages + t->stage];
  const u32 n = 1 + t->paired;
  u64 when = 0;
  for (u32 i = 0; i < n; i++)
    if (!ready(e, t + i, &when)) return false;
  for (u32 p = 0; p < f->nplaces; p++) {
    if (!(on >> p & 1)) continue;
    const sched_task *x = &f->seq[p].v[e->at[p]];
    if (e->at[p] == f->seq[p].n || x->stage != t->stage || x->kind != t->kind || x->mb != t->mb ||
        x->pass != t->pass || x->replica != t->replica)
      return false;
    when = MAX(when, e->is_free[p]);
  }
  for (u32 i = 0; i < n; i++) when += takes[t[i].kind];
  for (u32 i = 0; i < n; i++)
    if (t[i].kind != TASK_W) *end_of(e, t[i].kind != TASK_F, &t[i], t[i].stage, t[i].pass) = when + 1;
  for (u32 p = 0; p < f->nplaces; p++)
    if (on >> p & 1) e->at[p] += n, e->is_free[p] = when;
  return true;
}

// Does it end, and when?
static bool simulate(arena *a, const figures *f, u64 *makespan) {
  events e = {.f = f, .at = ZNEWN(a, u32, f->nplaces), .is_free = ZNEWN(a, u64, f->nplaces)};
  for (u32 k = 0; k < 2; k++) e.end[k] = ZNEWN(a, u64, f->nreplicas * f->npasses * f->nstages * f->most);
  for (bool more = true; more;) {
    more = false;
    for (u32 p = 0; p < f->nplaces; p++) more |= go_on(&e, p);
  }
  *makespan = 0;
  for (u32 p = 0; p < f->nplaces; p++) {
    if (e.at[p] != f->seq[p].n) return false;
    *makespan = MAX(*makespan, e.is_free[p]);
  }
  return true;
}

// ---- mutants ------------------------------------------------------------------------------------------------
static sched_seq *copy_seqs(arena *a, u32 nplaces, const sched_seq *seq) {
  sched_seq *x = NEWN(a, sched_seq, nplaces);
  for (u32 p = 0; p < nplaces; p++) { // with room for one more
    sched_task *v = NEWN(a, sched_task, seq[p].n + 2);
    memcpy(v, seq[p].v, seq[p].n * sizeof *v);
    x[p] = (sched_seq){seq[p].n, v};
  }
  return x;
}

static void take_out(sched_seq *q, u32 i) {
  sched_task *v = (sched_task *)q->v;
  memmove(v + i, v + i + 1, (--q->n - i) * sizeof *v);
}

static void put_in(sched_seq *q, u32 i, sched_task t) {
  sched_task *v = (sched_task *)q->v;
  memmove(v + i + 1, v + i, (q->n++ - i) * sizeof *v);
  v[i] = t;
}

static u32 other_than(u32 x, u32 n) { // of 0 .. n-1 if there is one
  return n < 2 ? x + 1 : (x + 1 + few(n - 1)) % n;
}

// One number of a task, half of the time one that the schedule has besides, else one that it has not.
static void change(sched_task *t, mutation how, const sched *s) {
  const bool beyond = few(2);
  switch (how) {
  case MUT_KIND: t->kind = (u8)other_than(t->kind, TASK_KINDS); break;
  case MUT_MICROBATCH: t->mb = beyond ? s->nmicro + few(2) : other_than(t->mb, s->nmicro); break;
  case MUT_STAGE: t->stage = (u16)(beyond ? s->nstages + few(2) : other_than(t->stage, s->nstages)); break;
  case MUT_REPLICA: t->replica = (u8)(beyond ? s->nreplicas : other_than(t->replica, s->nreplicas)); break;
  case MUT_PASS: t->pass = (u8)(beyond ? MAX(s->npasses, 1) : other_than(t->pass, s->npasses)); break;
  case MUT_VERSION: t->version = (u8)(beyond ? t->version + 1u + few(3) : other_than(t->version, 3)); break;
  case MUT_PAIR: t->paired = !t->paired; break;
  default: assert(!"no number");
  }
}

// Task i of a place, or for EXTRA the one put behind it, changed. False: such a mutant is the schedule itself.
static bool mutate(sched_seq *seq, u32 p, u32 i, mutation how, const sched *s) {
  sched_seq *q = &seq[p];
  sched_task *v = (sched_task *)q->v, t = v[i];
  switch (how) {
  case MUT_DROP: take_out(q, i); return true;
  case MUT_DOUBLE: put_in(q, few(2) ? i + 1 : few(q->n + 1), t); return true;
  case MUT_EXTRA: {
    static const mutation number[] = {MUT_KIND, MUT_MICROBATCH, MUT_STAGE, MUT_REPLICA, MUT_PASS};
    put_in(q, i + 1, t);
    change(&v[i + 1], number[few(COUNT_OF(number))], s);
    return true;
  }
  case MUT_SWAP:
    if (i + 1 == q->n) return false;
    v[i] = v[i + 1], v[i + 1] = t;
    return true;
  case MUT_MOVE: {
    const u32 to = q->n > 1 ? other_than(i, q->n) : i;
    take_out(q, i), put_in(q, to, t);
    return to != i;
  }
  case MUT_PLACE: {
    const u32 to = other_than(p, s->nplaces);
    if (to >= s->nplaces) return false;
    take_out(q, i), put_in(&seq[to], few(seq[to].n + 1), t);
    return true;
  }
  default: change(&v[i], how, s); return true;
  }
}

static const char *text_of(arena *a, const sched *s) {
  strbuf out = {.a = a};
  sched_print(s, &out);
  return sb_str(&out);
}
#endif
