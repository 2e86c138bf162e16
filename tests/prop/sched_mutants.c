// sched_mutants.c - every task of every schedule matters: a schedule in which one task is lost, doubled, moved or
// another one must be noticed.
//
// A mutant is a schedule of a row with the sequence of one place changed, as a value and as text. Whether it is still a
// schedule is found here, in words that share no code with sched/: each task is counted, and an event simulation runs
// what is left. Heddle must say the same. What it refuses it refuses at a place, with a deadlock as one reason. What it
// takes is told from the row by its text and its key, and where weights have versions it is not taken for the
// asynchronous row. The plans of such orders compute what one device computes, and bear the name of no row.
// VERBOSE=1 prints what became of mutants.
#include "plans.h"
#include "search/search.h"
#include "test.h"
#include <stdlib.h>

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
// What became of it. SIZES: a schedule of other figures, which none of the row is taken for.
typedef enum { REFUSED, DEADLOCK, VERSIONS, SIZES, LEGAL, FATES } fate;
static const char *const fate_name[] = {"refused", "deadlock", "versions", "sizes", "legal"};

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

static u64 *on_of(arena *a, const sched *s) {
  u64 *on = ZNEWN(a, u64, s->nreplicas * s->nstages);
  for (u32 x = 0; x < s->nreplicas * s->nstages; x++)
    for (u32 i = 0; i < s->at[x].n; i++) on[x] |= 1ull << s->at[x].v[i];
  return on;
}

// Of a value: its sizes and places are said.
static figures as_said(arena *a, const sched *s) {
  figures f = {.nstages = s->nstages,
               .nplaces = s->nplaces,
               .nreplicas = s->nreplicas,
               .npasses = MAX(s->npasses, 1),
               .most = s->nmicro,
               .backward = s->backward,
               .split = s->split,
               .on = on_of(a, s),
               .nedges = s->nedges,
               .edge = s->edge,
               .seq = s->seq};
  for (u32 r = 0; r < s->nreplicas; r++) f.micro[r] = sched_micro(s, r);
  return f;
}

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

// A task that is in no schedule of these figures, whatever the others are.
static bool cannot_be(const figures *f, const sched_task *t) {
  if (t->stage >= f->nstages || t->replica >= f->nreplicas || t->pass >= f->npasses) return true;
  return t->mb >= f->micro[t->replica] || (t->pass && t->kind != TASK_F) ||
         (t->kind != TASK_F && !f->backward) || (t->kind > TASK_B && !f->split[t->stage]);
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

// ---- what Heddle says of one ----------------------------------------------------------------------------------
static u32 tally[MUT_COUNT][FATES];
typedef struct {
  ctx *c;
  arena *a; // of one mutant
  const sched *row;
  const sched_row *of;
  sched_shape form;
  const char *text; // of the row's
  mutation how;
  bool alone; // one task was changed, no place has a task more or less
} trial;

static const char *text_of(arena *a, const sched *s) {
  strbuf out = {.a = a};
  sched_print(s, &out);
  return sb_str(&out);
}

static const char *told(const trial *x, const sched_seq *seq) {
  sched m = *x->row;
  m.seq = seq;
  return arena_printf(x->a, "%s, %u places, %u chunks, %u microbatches, %s:\n%s%s", x->of->name,
                      x->form.places, x->form.chunks, x->form.micro, mut_name[x->how], text_of(x->a, &m),
                      diag_render(x->c, x->a));
}

// One error, of this kind, at a place that is known.
static void check_told(const trial *x, diag_id id, sym file, const sched_seq *seq) {
  const diag_item d = diag_get(x->c, diag_count(x->c) ? diag_count(x->c) - 1 : 0);
  const loc_info *at = loc_get(x->c, d.at);
  CHECK_MSG(diag_errors(x->c) == 1 && d.id == id && *d.message && at && at->file.i == file.i, "%s",
            told(x, seq));
}

static bool same_figures(const sched *x, const sched *y) {
  bool same = x->nstages == y->nstages && x->nplaces == y->nplaces && x->nreplicas == y->nreplicas &&
              x->backward == y->backward && x->npasses == y->npasses;
  for (u32 k = 0; same && k < x->nreplicas * x->nstages; k++) same = x->at[k].n == y->at[k].n;
  for (u32 r = 0; same && r < x->nreplicas; r++) same = sched_micro(x, r) == sched_micro(y, r);
  return same;
}

// If a task of a place cannot be, the first such is named. Places are checked one after the other, so faults of others may
// come first.
static void check_named(const trial *x, const figures *f) {
  const diag_item d = diag_get(x->c, 0);
  for (u32 p = 0; p < f->nplaces; p++)
    for (u32 i = 0; i < f->seq[p].n; i++) {
      const sched_task *t = &f->seq[p].v[i];
      if (!cannot_be(f, t)) continue;
      const char *name = arena_printf(x->a, "%u%c%u", t->stage, sched_letter((task_kind)t->kind), t->mb);
      const bool said = strstr(d.message, name), line = loc_get(x->c, d.at)->line > p;
      CHECK_MSG((said && line) || !x->alone, "%s is not named: %s", name, told(x, f->seq));
      return;
    }
}

// A schedule: not to be taken for the row's, neither by its text, its key, nor its versions.
static fate check_legal(const trial *x, const sched *m, u64 makespan, loc where) {
  const char *text = text_of(x->a, m);
  sched_times t;
  bool paired = false;
  CHECK_MSG(strcmp(text, x->text) != 0 && m->key != x->row->key && !sched_equal(m, x->row), "%s",
            told(x, m->seq));
  const sched *again = sched_parse(x->c, x->a, sym_of(x->c, "again.csv"), text, strlen(text));
  CHECK_MSG(again && !strcmp(text_of(x->a, again), text) && !sched_equal(again, x->row), "%s",
            told(x, m->seq));
  for (u32 p = 0; p < m->nplaces; p++)
    for (u32 i = 0; i < m->seq[p].n; i++) paired |= m->seq[p].v[i].paired;
  if (CHECK(sched_time(x->c, x->a, m, takes, where, &t)) && !paired)
    CHECK_MSG(t.makespan == makespan, "%llu, not %llu: %s", (unsigned long long)t.makespan,
              (unsigned long long)makespan, told(x, m->seq));
  if (sched_has_versions(m)) {
    sched_shape form = x->form;
    const bool named = sched_row_of_versions(x->c, m, "mutant.csv", &form, where);
    CHECK_MSG(!named, "is taken for the asynchronous row: %s", told(x, m->seq));
    check_told(x, E_PLAN, loc_get(x->c, where)->file, m->seq);
    return VERSIONS;
  }
  CHECK_MSG(x->how != MUT_VERSION && !x->row->updates, "%s", told(x, m->seq));
  if (same_figures(m, x->row)) return LEGAL;
  if (m->backward == x->row->backward && m->npasses == x->row->npasses)
    CHECK_MSG(!sched_fits(x->c, m, "mutant.csv", &x->form, where), "%s", told(x, m->seq));
  return SIZES;
}

// As a value (text false) or as text: Heddle's word on it against the one of this file.
static void judge(const trial *x, const sched_seq *seq, bool text) {
  ctx *c = x->c;
  sched as = *x->row;
  as.seq = seq;
  const sched *m = sched_with(x->a, &as, as.nedges, as.edge, NULL);
  const sym file = sym_of(c, "mutant.csv");
  const loc where = loc_text(c, file, 1, 1, NULL);
  const figures f = text ? as_listed(x->a, as.nplaces, seq) : as_said(x->a, &as);
  const bool whole = is_whole(&f) && pairs_well(&f);
  u64 makespan = 0;
  const bool runs = whole && simulate(x->a, &f, &makespan);
  loc *seq_at = NEWN(x->a, loc, as.nplaces);
  for (u32 p = 0; p < as.nplaces; p++) seq_at[p] = loc_text(c, file, p + 1, 1, NULL);
  diag_clear(c);
  if (text) {
    const char *csv = text_of(x->a, &as);
    m = sched_parse(c, x->a, file, csv, strlen(csv));
  } else if (!sched_check(c, m, where, seq_at)) {
    m = NULL;
  }
  CHECK_MSG((m != NULL) == whole, "%s but is %s: %s", m ? "taken" : "refused", whole ? "whole" : "not whole",
            told(x, seq));
  fate got = REFUSED;
  sched_line line;
  if (!m) {
    check_told(x, E_PLAN, file, seq);
    check_named(x, &f);
  } else if (!sched_merge(c, x->a, m, NULL, where, &line)) {
    CHECK_MSG(!runs, "deadlocks, but runs: %s", told(x, seq));
    check_told(x, E_DEADLOCK, file, seq);
    got = DEADLOCK;
  } else {
    CHECK_MSG(runs, "runs, but deadlocks: %s", told(x, seq));
    got = runs ? check_legal(x, m, makespan, where) : LEGAL;
  }
  tally[x->how][got]++;
  diag_clear(c);
}

// ---- every row ------------------------------------------------------------------------------------------------
enum { EACH = 10 }; // mutants of one kind and schedule
static void mutants_of(const sched_row *r, const sched_shape *form) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const sched *s = sched_make(c, a, r->name, form, (loc){0});
  const char *text = s ? text_of(a, s) : NULL;
  for (u32 how = 0; s && how < MUT_COUNT; how++)
    for (u32 k = 0; k < EACH; k++) {
      const u32 p = few(s->nplaces), i = few(s->seq[p].n);
      arena *tmp = arena_new();
      const trial x = {c, tmp, s, r, *form, text, (mutation)how, how >= MUT_KIND && how <= MUT_PASS};
      sched_seq *seq = copy_seqs(tmp, s->nplaces, s->seq);
      if (mutate(seq, p, i, (mutation)how, s)) judge(&x, seq, k % 2);
      arena_free(tmp);
    }
  arena_free(a);
  ctx_free(c);
}

static void print_tally(void) {
  for (u32 how = 0; how < MUT_COUNT; how++) {
    printf("%-10s", mut_name[how]);
    for (u32 k = 0; k < FATES; k++) printf("  %s %u", fate_name[k], tally[how][k]);
    puts("");
  }
}

TEST(mutation_of_every_schedule_is_noticed) {
  R = 1;
  memset(tally, 0, sizeof tally);
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++)
    for (u32 places = 1; places <= 4; places++)
      for (u32 k = 0; k < 12; k++) {
        const u32 chunks = r->chunks == CHUNKS_ANY ? 1 + k % 3 : r->chunks;
        const sched_shape form = {.places = places,
                                  .chunks = chunks,
                                  .micro = 1 + k / 2 + (k % 3) * (r->least ? 2 * places : places),
                                  .group = r->group && k % 4 == 3 ? places : 0,
                                  .backward = k % 5 != 4,
                                  .paired = k & 1};
        mutants_of(r, &form);
      }
  if (getenv("VERBOSE")) print_tally();
  for (u32 how = 0; how < MUT_COUNT; how++) {
    u32 n = 0;
    for (u32 k = 0; k < FATES; k++) n += tally[how][k];
    CHECK_MSG(n > 1000, "%u mutants of kind %s", n, mut_name[how]);
  }
}

// ---- plans of mutants -----------------------------------------------------------------------------------------
// Every row has a model and a strategy that it can be planned for.
enum { MLP = 0, GPT = 1, PLANS_EACH = 24 };
typedef struct {
  plans_model *m;
  arena *a; // of one mutant
  const sched_row *of;
  const sched *row; // what the row makes for this strategy
  const char *choices;
  mutation how;
} planned;
static u32 plan_fate[2][3]; // from a file, from a plan's text: refused, equal, with versions
enum { PLAN_REFUSED, PLAN_EQUAL, PLAN_VERSIONS };

static u32 model_of(const sched_row *r) {
  u32 k = 0;
  while (sched_passes(r) > 1 && !plans_has_tables(k)) k++;
  return sched_passes(r) > 1 ? k : sched_nwide(r) ? GPT : MLP;
}

static plan *plan_of(const planned *x, const char *schedule) {
  ctx *c = x->m->c;
  strategy_set set;
  strategy s;
  const char *line = arena_printf(x->a, "%s schedule=%s", x->choices, schedule);
  if (!strategy_parse(c, x->a, line, &set) || !strategy_one(c, &set, &s)) return NULL;
  const hybrid_opts o = {.s = s, .said = &set, .train = true, .optim = x->m->optim, .keep_gradients = true};
  return policy_hybrid(x->m->pl, x->a, &o);
}

static const char *told_plan(const planned *x, const char *what, const char *text) {
  return arena_printf(x->a, "%s, %s, %s, %s: %s:\n%s%s", x->m->name, x->choices, x->of->name,
                      mut_name[x->how], what, text, diag_render(x->m->c, x->a));
}

// Refused, with an error, or computes what it must.
static u32 check_plan(const planned *x, const plan *pn, const char *text) {
  ctx *c = x->m->c;
  plan_numbers got;
  verify_report r = {0};
  prog *p = pn ? plan_apply(x->m->pl, pn, NULL) : NULL;
  if (!p) {
    CHECK_MSG(diag_errors(c) > 0, "%s", told_plan(x, "is refused without a word", text));
    return PLAN_REFUSED;
  }
  CHECK_MSG(ir_verify(p) && plan_validate(p) && plan_evaluate(x->m->src, p, PLANS_SEED, x->a, &got) &&
                plan_compare(c, plans_want(x->m, pn), &got, 0, x->a, &r) && r.passed,
            "%s", told_plan(x, "computes something else", text));
  prog_free(p);
  return PLAN_EQUAL;
}

static const char *path_of(arena *a, u32 k) {
  return arena_printf(a, "%s/tests/mutant%u.csv", test_build(), k);
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  REQUIRE(f != NULL);
  fputs(text, f);
  fclose(f);
}

// As users have it: the mutant is a file that a strategy names.
static void judge_file(const planned *x, const sched_seq *seq) {
  ctx *c = x->m->c;
  sched as = *x->row;
  as.seq = seq;
  const char *text = text_of(x->a, &as), *path = path_of(x->a, 0);
  figures f = as_listed(x->a, as.nplaces, seq);
  u64 makespan;
  const bool legal = is_whole(&f) && pairs_well(&f) && simulate(x->a, &f, &makespan);
  write_file(path, text);
  diag_clear(c);
  plan *pn = plan_of(x, path);
  const bool versions = x->row->updates || x->how == MUT_VERSION;
  if (versions) {
    CHECK_MSG(!pn, "%s", told_plan(x, "is planned with these versions of weights", text));
  } else {
    CHECK_MSG(legal || !pn, "%s", told_plan(x, "is planned", text));
    CHECK_MSG(!pn || (!pn->made.row && pn->made.key != x->row->key), "%s", told_plan(x, "is the row", text));
  }
  const u32 end = check_plan(x, pn, text);
  if (legal && !versions && x->row->npasses == 1)
    CHECK_MSG(end == PLAN_EQUAL, "%s", told_plan(x, "is refused, but it is one", text));
  plan_fate[0][versions && end == PLAN_REFUSED ? PLAN_VERSIONS : end]++;
}

// As a plan's text, which says the schedule that it had.
static void judge_text(const planned *x, u32 place, u32 index) {
  ctx *c = x->m->c;
  diag_clear(c);
  plan *pn = plan_of(x, x->of->name);
  REQUIRE(pn && place < pn->nseqs);
  const u64 before = plan_hash(c, pn);
  sched as = *x->row;
  as.seq = pn->seqs, as.nstages = pn->nsegments;
  pn->seqs = copy_seqs(x->a, pn->nseqs, pn->seqs);
  if (!mutate(pn->seqs, place, index % pn->seqs[place].n, x->how, &as)) return;
  strbuf text = {.a = x->a};
  plan_print(x->m->src, pn, &text);
  CHECK_MSG(plan_hash(c, pn) != before, "%s", told_plan(x, "has the hash of the row", sb_str(&text)));
  const plan *again = plan_parse(x->a, x->m->src, NULL, sym_of(c, "mutant.yaml"), sb_str(&text), text.n);
  CHECK_MSG(again || diag_errors(c), "%s", told_plan(x, "is refused without a word", sb_str(&text)));
  CHECK_MSG(!again || (!again->made.row && diag_count(c) == 1 && diag_get(c, 0).id == W_SCHEDULE), "%s",
            told_plan(x, "keeps the name", sb_str(&text)));
  CHECK_MSG(!again || x->of->weights == WEIGHTS_ONE, "%s",
            told_plan(x, "is planned with these versions of weights", sb_str(&text)));
  const u32 end = check_plan(x, again, sb_str(&text));
  plan_fate[1][x->of->weights != WEIGHTS_ONE && end == PLAN_REFUSED ? PLAN_VERSIONS : end]++;
}

// When weights are updated, said otherwise: another number of microbatches, or nothing.
static void judge_updates(planned *x) {
  const char *text = text_of(x->a, x->row), *rest = strchr(text, '\n'), *path = path_of(x->a, 0);
  if (!x->row->updates) return;
  for (u32 k = 0; k <= 5; k++) {
    if (k == x->row->updates) continue;
    const char *said = k ? arena_printf(x->a, "# updates %u%s", k, rest) : rest + 1;
    write_file(path, said);
    diag_clear(x->m->c);
    const plan *pn = plan_of(x, path);
    // Without versions it may be the row with that group, or, where nothing is said, of updates at the end of a step.
    const bool other = !strchr(rest, 'v') && (!k || (pn && pn->made.row && pn->made.shape.group == k));
    CHECK_MSG(!pn || other, "%s", told_plan(x, "is planned with other updates", said));
    CHECK_MSG(!pn || pn->made.key != x->row->key, "%s", told_plan(x, "is the row", said));
    plan_fate[0][check_plan(x, pn, said) == PLAN_REFUSED ? PLAN_VERSIONS : PLAN_EQUAL]++;
  }
}

static void plans_of_row(plans_model *m, const sched_row *r) {
  arena *a = arena_new();
  const u32 chunks = r->chunks == CHUNKS_ANY ? 2 : r->chunks, passes = sched_passes(r);
  const sched_shape form = {.places = 2, .chunks = chunks, .micro = 4, .backward = true};
  const sched *row = sched_make(m->c, a, r->name, &form, (loc){0});
  REQUIRE(row != NULL);
  const char *v = passes > 1 ? "" : arena_printf(a, " v=%u", chunks);
  planned x = {m, a, r, row, arena_printf(a, "dp=1 tp=1 pp=2 mb=4%s", v), MUT_COUNT};
  const char *text = text_of(a, row);
  write_file(path_of(a, 0), text);
  diag_clear(m->c);
  const plan *pn = plan_of(&x, path_of(a, 0)); // the row itself, as a file
  CHECK_MSG(check_plan(&x, pn, text) == (passes > 1 ? PLAN_REFUSED : PLAN_EQUAL), "%s",
            told_plan(&x, "as a file", text));
  judge_updates(&x);
  for (u32 k = 0; k < PLANS_EACH; k++) {
    static const mutation how[] = {MUT_SWAP, MUT_MOVE, MUT_SWAP, MUT_VERSION};
    arena *tmp = arena_new();
    const u32 p = few(row->nplaces), i = few(row->seq[p].n);
    x.a = tmp;
    x.how = k % 2 ? how[few(COUNT_OF(how))] : (mutation)few(MUT_PAIR);
    sched_seq *seq = copy_seqs(tmp, row->nplaces, row->seq);
    if (mutate(seq, p, i, x.how, row)) judge_file(&x, seq);
    if (x.how < MUT_PASS) judge_text(&x, p, i);
    arena_free(tmp);
  }
  arena_free(a);
}

TEST(plans_of_mutants) {
  R = 2;
  memset(plan_fate, 0, sizeof plan_fate);
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++) {
    plans_model m;
    plans_open(&m, model_of(r));
    plans_of_row(&m, r);
    plans_close(&m);
  }
  for (u32 k = 0; k < 2; k++) {
    const u32 *n = plan_fate[k];
    if (getenv("VERBOSE"))
      printf("%s: refused %u, equal %u, versions %u\n", k ? "text" : "file", n[0], n[1], n[2]);
    CHECK_MSG(n[0] > 50 && n[1] > 50 && n[2] > 5, "%u, %u, %u", n[0], n[1], n[2]);
  }
}

// ---- mutants in a search --------------------------------------------------------------------------------------
// A search keeps lines of tasks, also from one plan to the next: beside the row and other mutants each takes as long as
// it takes alone.
enum { SEARCHED = 3 };
static bool run_search(plans_model *m, arena *a, const machine *on, const char *line, search_result *r) {
  search_opts o = {.train = true, .optim = m->optim, .no_bounds = true, .threads = 1};
  diag_clear(m->c);
  const bool ok =
      strategy_parse(m->c, a, line, &o.space) && search_run(m->c, a, m->src, on, &(cost_opts){0}, &o, r);
  CHECK_MSG(ok, "%s: %s", line, diag_render(m->c, a));
  return ok;
}

// Legal swaps of a row, as files; how many there are.
static u32 write_swaps(arena *a, const sched *row) {
  u32 n = 0;
  for (u32 k = 0; k < 100 && n < SEARCHED; k++) {
    sched_seq *seq = copy_seqs(a, row->nplaces, row->seq);
    const u32 p = few(row->nplaces), i = few(row->seq[p].n);
    sched as = *row;
    as.seq = seq;
    u64 makespan;
    if (!mutate(seq, p, i, MUT_SWAP, row)) continue;
    const figures f = as_listed(a, row->nplaces, seq);
    if (is_whole(&f) && pairs_well(&f) && simulate(a, &f, &makespan))
      write_file(path_of(a, n++), text_of(a, &as));
  }
  return n;
}

static void search_mutants(const sched_row *r, u32 *others) {
  arena *a = arena_new();
  plans_model m;
  plans_open(&m, model_of(r));
  const u32 chunks = r->chunks == CHUNKS_ANY ? 2 : r->chunks;
  const sched_shape form = {.places = 2, .chunks = chunks, .micro = 4, .backward = true};
  const sched *row = sched_make(m.c, a, r->name, &form, (loc){0});
  const machine *on = machine_load(m.c, a, "1x2 v100");
  const char *fixed =
      arena_printf(a, "dp=1 tp=1 pp=2 mb=4 v=%u recompute=none zero=0 overlap=none schedule=", chunks);
  REQUIRE(row && on);
  const u32 n = write_swaps(a, row);
  CHECK_MSG(n > 0, "%s: no swap is legal", r->name);
  strbuf line = {.a = a};
  sb_fmt(&line, "%s%s", fixed, r->name);
  for (u32 k = 0; k < n; k++) sb_fmt(&line, ",%s", path_of(a, k));
  search_result all = {0}, one = {0};
  run_search(&m, a, on, sb_str(&line), &all);
  i64 row_ps = 0;
  for (u32 i = 0; i < all.npoints; i++)
    if (!all.point[i].s.schedule.path) row_ps = all.point[i].time_ps;
  for (u32 i = 0; i < all.npoints; i++) {
    const search_point *p = &all.point[i];
    const char *name = p->s.schedule.path ? p->s.schedule.path : r->name;
    if (!run_search(&m, a, on, arena_printf(a, "%s%s", fixed, name), &one)) continue;
    CHECK_MSG(p->state == SEARCH_RAN && p->time_ps > 0 && p->time_ps == one.point[0].time_ps,
              "%s, %s: %lld, not %lld", sb_str(&line), name, (long long)p->time_ps,
              (long long)one.point[0].time_ps);
    *others += p->time_ps != row_ps;
  }
  CHECK_EQ_I64(all.npoints, n + 1);
  plans_close(&m);
  arena_free(a);
}

TEST(mutants_beside_their_row_in_a_search) {
  R = 3;
  u32 others = 0;
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++)
    if (r->weights == WEIGHTS_ONE && sched_passes(r) == 1) search_mutants(r, &others);
  CHECK_MSG(others > 10, "%u take another time than the row", others);
}
