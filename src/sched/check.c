// check.c - is a schedule one? Every task where and as often as it must be, every number in range.
//
// What is expected is counted, not searched: a byte for each (replica, pass, stage, microbatch) holds the
// kinds that were seen. A schedule that names more of them than it has tasks lacks one of the first, so no
// number in a text makes the tables larger than the text.
#include "sched/internal.h"

typedef struct {
  const sched *s;
  arena *a;
  size_t n;              // cells: all, or one more than there are tasks
  u8 *seen;              // by cell: kinds, as bits
  u32 *last[TASK_KINDS]; // by cell, where stages lie on several places: the place + 1 that ran it last
  u16 *times[TASK_KINDS];
  fault f;
} check;

static bool fail(check *k, u32 place, u32 index, const char *fmt, ...) PRINTF_LIKE(4, 5);
static bool fail(check *k, u32 place, u32 index, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  k->f = (fault){.place = place, .index = index, .message = arena_strdup(k->a, text)};
  return false;
}

static bool fail_task(check *k, u32 place, u32 index, const char *why) {
  task_name t = name_of(&k->s->seq[place].v[index]);
  return fail(k, place, index, "task %s of place %u: %s", t.s, place, why);
}

static u64 before(const sched *s, u32 replica) { // cells of the replicas before
  return (u64)sched_first(s, replica) * npasses_of(s) * s->nstages;
}

static u64 cells_of(const sched *s) { return before(s, s->nreplicas); }

static u64 cell_of(const sched *s, const sched_task *t) {
  return before(s, t->replica) + ((u64)t->pass * s->nstages + t->stage) * sched_micro(s, t->replica) + t->mb;
}

static sched_task task_at(const sched *s, u64 at, task_kind kind) {
  u32 replica = 0;
  while (at >= before(s, replica + 1)) replica++;
  at -= before(s, replica);
  const u32 micro = sched_micro(s, replica);
  const u64 stage = at / micro;
  return (sched_task){.stage = (u16)(stage % s->nstages),
                      .kind = (u8)kind,
                      .pass = (u8)(stage / s->nstages),
                      .replica = (u8)replica,
                      .mb = (u32)(at % micro)};
}

// ---- sizes and places ---------------------------------------------------------------------------------
static bool check_sizes(check *k) {
  const sched *s = k->s;
  const struct {
    const char *what;
    u64 n, most;
  } size[] = {{"stages", s->nstages, STAGES_MAX},     {"places", s->nplaces, PLACES_MAX},
              {"microbatches", s->nmicro, TASKS_MAX}, {"replicas", s->nreplicas, UINT8_MAX},
              {"passes", npasses_of(s), PASSES_MAX},  {"tasks", ntasks_of(s), TASKS_MAX}};
  for (u32 i = 0; i < COUNT_OF(size); i++)
    if (!size[i].n || size[i].n > size[i].most)
      return fail(k, NO_TASK, NO_TASK, "%llu %s; there must be 1 to %llu", (unsigned long long)size[i].n,
                  size[i].what, (unsigned long long)size[i].most);
  for (u32 r = 0; r < s->nreplicas; r++)
    if (!sched_micro(s, r)) return fail(k, NO_TASK, NO_TASK, "replica %u runs no microbatch", r);
  for (u32 p = 0; p < s->nplaces; p++)
    if (!s->seq[p].n) return fail(k, p, NO_TASK, "place %u runs no task", p);
  return true;
}

// At the first task of the replica's next stage that has any, where there is one.
static bool fail_stage(check *k, u32 replica, u32 stage) {
  const sched *s = k->s;
  u32 next = stage;
  while (next < s->nstages && !s->at[replica * s->nstages + next].n) next++;
  u32 place = next < s->nstages ? s->at[replica * s->nstages + next].v[0] : s->nplaces, i = 0;
  if (place >= s->nplaces) return fail(k, NO_TASK, NO_TASK, "stage %u is on no place", stage);
  for (; i < s->seq[place].n; i++)
    if (s->seq[place].v[i].stage == next && s->seq[place].v[i].replica == replica) break;
  fail(k, place, i < s->seq[place].n ? i : NO_TASK, "stage %u is here, but stage %u is on no place", next,
       stage);
  k->f.hint = "stages count from 0, and every one of them runs";
  return false;
}

static bool check_places(check *k) {
  const sched *s = k->s;
  for (u32 x = 0; x < s->nreplicas * s->nstages; x++) {
    const sched_places *at = &s->at[x];
    u32 stage = x % s->nstages;
    if (!at->n) return fail_stage(k, x / s->nstages, stage);
    for (u32 i = 0; i < at->n; i++) {
      if (at->v[i] >= s->nplaces)
        return fail(k, NO_TASK, NO_TASK, "stage %u is on place %u of %u places", stage, at->v[i], s->nplaces);
      if (i && at->v[i] <= at->v[i - 1])
        return fail(k, NO_TASK, NO_TASK, "stage %u: place %u stands after place %u", stage, at->v[i],
                    at->v[i - 1]);
    }
  }
  for (u32 i = 0; i < s->nedges; i++) {
    const sched_edge *e = &s->edge[i];
    bool ordered = !i || e[-1].from < e->from || (e[-1].from == e->from && e[-1].to < e->to);
    if (e->from < e->to && e->to < s->nstages && ordered) continue;
    fail(k, NO_TASK, NO_TASK, "stage %u reads stage %u of %u stages: %s", e->to, e->from, s->nstages,
         e->to >= s->nstages ? "there is no such stage"
         : ordered           ? "a stage reads earlier stages only"
                             : "edges must be in order, each once");
    k->f.edge = i + 1;
    return false;
  }
  return true;
}

// ---- tasks --------------------------------------------------------------------------------------------
static bool lies_on(const sched_places *at, u32 place) {
  for (u32 i = 0; i < at->n; i++)
    if (at->v[i] == place) return true;
  return false;
}

static bool runs_forward(const sched *s, u32 stage) { return s->forward && s->forward[stage]; }

static const char *wrong_number(const sched *s, const sched_task *t) {
  return t->stage >= s->nstages                           ? "there is no such stage"
         : t->kind >= TASK_KINDS                          ? "there is no such kind"
         : t->replica >= s->nreplicas                     ? "there is no such replica"
         : t->mb >= sched_micro(s, t->replica)            ? "there is no such microbatch"
         : t->pass >= npasses_of(s)                       ? "there is no such pass"
         : t->pass && t->kind != TASK_F                   ? "only forwards have passes"
         : !s->backward && t->kind != TASK_F              ? "the schedule has no backward"
         : t->kind != TASK_F && runs_forward(s, t->stage) ? "its stage has no backward"
         : t->kind > TASK_B && !s->split[t->stage]        ? "the backward of its stage is not in two parts"
                                                          : NULL;
}

// The second of a pair is a task of its own, on one place as the first, and begins no pair.
static const char *wrong_pair(const sched *s, const sched_seq *seq, u32 i) {
  const sched_task *t = &seq->v[i];
  if (!t->paired) return NULL;
  if (i + 1 == seq->n) return "it is paired with the next task, but is the last";
  if (t[1].paired) return "three tasks cannot run at once";
  if (wrong_number(s, t + 1)) return NULL; // told there
  return places_of(s, t)->n > 1 || places_of(s, t + 1)->n > 1 ? "a pair cannot lie on several places" : NULL;
}

// Notes that a place runs a task: what is wrong with that?
static const char *note(check *k, u32 place, const sched_task *t) {
  const sched *s = k->s;
  const sched_places *at = places_of(s, t);
  if (!lies_on(at, place)) return "its stage is not on that place";
  u64 x = cell_of(s, t);
  if (x >= k->n) return NULL; // another one is missing
  u8 bit = (u8)(1u << t->kind), parts = 1u << TASK_I | 1u << TASK_W;
  if ((bit & parts && k->seen[x] & 1u << TASK_B) || (bit & 1u << TASK_B && k->seen[x] & parts))
    return "its backward is listed both whole (B) and in parts (I, W)";
  bool again = at->n > 1 ? k->last[t->kind][x] == place + 1 : (k->seen[x] & bit) != 0;
  if (again) return "it was listed before";
  k->seen[x] |= bit;
  if (at->n > 1) k->last[t->kind][x] = place + 1, k->times[t->kind][x]++;
  return NULL;
}

static bool check_tasks(check *k) {
  const sched *s = k->s;
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      const char *why = wrong_number(s, t);
      if (!why) why = wrong_pair(s, &s->seq[p], i);
      if (!why) why = note(k, p, t);
      if (why) return fail_task(k, p, i, why);
    }
  return true;
}

// ---- what is missing ----------------------------------------------------------------------------------
static u32 missing(const check *k, u64 x) { // kinds, as bits
  const sched *s = k->s;
  u32 seen = k->seen[x], parts = 1u << TASK_I | 1u << TASK_W, none = 1u << TASK_F & ~seen;
  sched_task at = task_at(s, x, TASK_F);
  if (!s->backward || at.pass || runs_forward(s, at.stage)) return none;
  if (seen & parts) return none | (parts & ~seen);
  return none | (1u << TASK_B & ~seen);
}

// The first place of the task's stage that does not run it.
static u32 place_without(const sched *s, const sched_task *t) {
  const sched_places *at = places_of(s, t);
  for (u32 i = 0; i < at->n; i++) {
    const sched_seq *q = &s->seq[at->v[i]];
    u32 k = 0;
    while (k < q->n && !(q->v[k].stage == t->stage && q->v[k].kind == t->kind && q->v[k].mb == t->mb &&
                         q->v[k].replica == t->replica && q->v[k].pass == t->pass))
      k++;
    if (k == q->n) return at->v[i];
  }
  return NO_TASK;
}

static bool check_whole(check *k) {
  const sched *s = k->s;
  for (u64 x = 0; x < k->n; x++) {
    u32 miss = missing(k, x);
    for (u32 kind = 0; kind < TASK_KINDS; kind++) {
      sched_task t = task_at(s, x, (task_kind)kind);
      const sched_places *at = places_of(s, &t);
      if (miss >> kind & 1) {
        fail(k, place_without(s, &t), NO_TASK, "task %s is in no sequence", name_of(&t).s);
        k->f.hint =
            arena_printf(k->a, "every stage runs every microbatch, 0 to %u, forward (F)%s once",
                         sched_micro(s, t.replica) - 1, s->backward ? " and backward (B, or I and W)" : "");
        return false;
      }
      if (at->n < 2 || !(k->seen[x] >> kind & 1) || k->times[kind][x] == at->n) continue;
      return fail(k, place_without(s, &t), NO_TASK, "task %s is on %u of the %u places of its stage",
                  name_of(&t).s, k->times[kind][x], at->n);
    }
  }
  return true;
}

static bool check_split(check *k) {
  const sched *s = k->s;
  bool *split = ZNEWN(k->a, bool, s->nstages), backward = false;
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      backward |= t->kind != TASK_F;
      split[t->stage] |= t->kind > TASK_B;
    }
  if (backward != s->backward) return fail(k, NO_TASK, NO_TASK, "no stage runs backward");
  for (u32 x = 0; x < s->nstages; x++)
    if (split[x] != s->split[x])
      return fail(k, NO_TASK, NO_TASK, "stage %u runs no backward in two parts (I, W)", x);
  return true;
}

fault sched_fault(arena *a, const sched *s) {
  check k = {.s = s, .a = a, .f = {.place = NO_TASK, .index = NO_TASK}};
  if (!check_sizes(&k) || !check_places(&k)) return k.f;
  k.n = (size_t)MIN(cells_of(s), ntasks_of(s) + 1);
  k.seen = ZNEWN(a, u8, k.n);
  bool several = false;
  for (u32 x = 0; x < s->nreplicas * s->nstages; x++) several |= s->at[x].n > 1;
  for (u32 i = 0; i < TASK_KINDS && several; i++)
    k.last[i] = ZNEWN(a, u32, k.n), k.times[i] = ZNEWN(a, u16, k.n);
  if (check_tasks(&k) && check_whole(&k)) check_split(&k);
  return k.f;
}

bool sched_check(ctx *c, const sched *s, loc where, const loc *seq_at) {
  arena *a = arena_new();
  fault f = sched_fault(a, s);
  if (f.message && seq_at && f.place != NO_TASK) where = seq_at[f.place];
  if (f.message) diag(c, E_PLAN, where, "%s", f.message);
  if (f.hint) diag_hint(c, "%s", f.hint);
  arena_free(a);
  return !f.message;
}
