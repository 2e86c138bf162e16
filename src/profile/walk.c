// walk.c - times of computations, where they stand.
//
// Idea: what passes between the end of one priced computation and the end of the next is the time of the next: with it
// goes what the evaluator does between them, entering functions and making views, so that the times of all computations
// add up to the step. Communication and waiting for it is left out. In one step an event takes what its instructions
// take on average; steps are the repeats. Medians of events add up to less than the median step where now and then one takes
// long, above all where the process has a part of a core and stands still for the rest of every 100 ms: all are scaled so that they add up.
#include "profile/internal.h"
#include <math.h>
#include <stdlib.h>

enum { WARM = 1, LEAST = 5 };
static const u64 LONG_NS = 800000000;
static const double PART = 0.01; // of the step, as well as what is wanted of it is to be known

typedef struct {
  double ns;
  u32 n;
} tally;
typedef struct {
  const profile_job *j;
  profile_events *x;
  u32 rank;      // of the program
  hmap known;    // (instruction, group) -> what it is
  u64 last_ns;   // end of the latest instruction
  double behind; // of what has no price of its own, since then
  u32 latest;    // event, from 1
  VEC(tally) of; // by event, in this step
} walk;
enum {
  WALK_NOTHING = 1,
  WALK_MOVES,
  WALK_EVENT
}; // not this rank's, or without a price; communication; + event

static u32 what_is(walk *w, const func_info *f, const instr *i, group g) {
  const u64 at = hash_u64((u64)(uintptr_t)i, g.i);
  u32 what = hmap_get(&w->known, at);
  if (what) return what;
  const int member = i->op == OP_call ? -1 : group_member(w->x->p->sp, g, w->rank);
  what = WALK_NOTHING;
  if (i->op == OP_send && member < 0) {
    const type_info *t = val_type(w->x->p, f, i->res);
    if (group_member(w->x->p->sp, group_bind(t->g, g), w->rank) >= 0) what = WALK_MOVES;
  } else if (member >= 0 && cost_op_moves((opcode)i->op))
    what = WALK_MOVES;
  else if (member >= 0) {
    const u32 event = profile_event_of(w->x, f, i, g, (u32)member);
    if (event) what = WALK_EVENT + event;
  }
  hmap_add(w->x->a, &w->known, at, what);
  return what;
}

static void charge(walk *w, u32 event, double ns, u32 n) {
  if (!event) return;
  while (w->of.n < event) *vec_push(w->x->a, &w->of) = (tally){0};
  w->of.v[event - 1].ns += ns, w->of.v[event - 1].n += n;
}

static void done(void *arg, const func_info *f, const instr *i, group g) {
  walk *w = arg;
  const double ns = (double)(now_ns(w->j) - w->last_ns);
  const u32 what = what_is(w, f, i, g);
  if (what == WALK_NOTHING)
    w->behind += ns;
  else if (what == WALK_MOVES)
    charge(w, w->latest, w->behind, 0), w->behind = 0;
  else {
    w->latest = what - WALK_EVENT;
    charge(w, w->latest, ns + w->behind, 1);
    w->behind = 0;
  }
  w->last_ns = now_ns(w->j);
}

// Nobody is at the other end: what was sent last comes back, so that numbers are of the size that they have in a step; where not all
// that moves is of one floating type, zeros, for it might be taken for an index or for no number.
typedef struct {
  char *data;
  i64 bytes, room;
  bool zeros;
} echo;

static bool is_of(const prog *p, type t, dtype *one) { // *one 0: none yet
  const type_info *ti = type_get(p, t);
  for (u32 k = 0; k < ti->n; k++)
    if (!is_of(p, ti->elem[k], one)) return false;
  if (ti->tuple) return true;
  if (!*one) *one = ti->s.t;
  return ti->s.t == *one && dtype_kind_of(ti->s.t) == DK_FLOAT;
}

static bool moves_one_type(const prog *p) {
  dtype one = 0;
  for (u32 fn = 1; fn < p->funcs.n; fn++) {
    const func_info *f = func_get(p, (func){fn});
    for (u32 k = 0; k < f->body.n; k++) {
      const instr *i = &f->body.v[k];
      if (i->op != OP_send && !cost_op_moves((opcode)i->op)) continue;
      for (u32 r = 0; r < i->nres; r++)
        if (!is_of(p, f->values.v[i->res + r].ty, &one)) return false;
    }
  }
  return true;
}

static bool send_nowhere(void *arg, u32 to, const void *data, i64 bytes) {
  echo *e = arg;
  (void)to;
  if (e->zeros) return true;
  if (bytes > e->room) {
    free(e->data);
    e->data = base_malloc((size_t)bytes), e->room = bytes;
  }
  memcpy(e->data, data, (size_t)bytes);
  e->bytes = bytes;
  return true;
}
static bool receive_echo(void *arg, u32 from, void *data, i64 bytes) {
  const echo *e = arg;
  (void)from;
  if (!e->bytes) memset(data, 0, (size_t)bytes);
  for (i64 at = 0; at < bytes && e->bytes; at += e->bytes)
    memcpy((char *)data + at, e->data, (size_t)MIN(e->bytes, bytes - at));
  return true;
}

static bool step(walk *w, eval_rank *r, const u32 *next) {
  for (u32 k = 0; k < w->of.n; k++) w->of.v[k] = (tally){0};
  w->behind = 0, w->latest = 0, w->last_ns = now_ns(w->j);
  if (!eval_rank_step(r, next)) return false;
  charge(w, w->latest, w->behind + (double)(now_ns(w->j) - w->last_ns), 0);
  return true;
}

// v[event * WALK_MOST + step]; NAN where it did not run. Returns the steps; 0 and a diagnostic.
static u32 repeat(const profile_job *j, ctx *c, walk *w, eval_rank *r, const u32 *next, const bool *wanted,
                  double *v, u32 nevents, walk_steps *steps) {
  u32 *const count = steps->count;
  const u64 begin = now_ns(j);
  double *const whole = steps->ns, asked[WALK_MOST] = {0}; // of a step: all events, and those that are wanted
  u32 n = 0;
  for (u32 k = 0;; k++) {
    bool go = n < LEAST || (n < WALK_MOST && now_ns(j) - begin < LONG_NS &&
                            profile_off(asked, n) > PART * profile_median(whole, n));
    if (!together(j, j->nprocs, &go)) return together_lost(c), 0;
    if (!go) return n;
    if (!step(w, r, next)) return 0;
    if (k < WARM) continue;
    for (u32 e = 0; e < nevents && e < w->of.n; e++) {
      whole[n] += w->of.v[e].ns;
      if (wanted[e]) asked[n] += w->of.v[e].ns;
      if ((count[e] = w->of.v[e].n)) v[(size_t)e * WALK_MOST + n] = w->of.v[e].ns / count[e];
    }
    n++;
  }
}

bool walk_rank(const profile_job *j, ctx *c, profile_events *x, u32 rank, const bool *wanted, double *v,
               walk_steps *out) {
  const prog *p = x->p;
  const u32 nin = func_get(p, p->main)->nparams, nevents = x->v.n;
  arena *a = arena_new();
  eval_array *in = NEWN(a, eval_array, nin + 1);
  u32 *next = ZNEWN(a, u32, nin + 1);
  *out = (walk_steps){.ns = ZNEWN(x->a, double, WALK_MOST), .count = ZNEWN(x->a, u32, nevents + 1)};
  walk w = {.j = j, .x = x, .rank = rank};
  echo heard = {.zeros = !moves_one_type(p)};
  const eval_link nowhere = {.rank = rank, .arg = &heard, .send = send_nowhere, .receive = receive_echo};
  for (size_t k = 0; k < (size_t)nevents * WALK_MOST; k++) v[k] = NAN;
  eval_rank_next(p, next);
  const eval_opts o = {.threads = j->threads};
  eval_rank *r = eval_random(p, 0, in, nin, a) ? eval_rank_new(p, &o, &nowhere, in, nin) : NULL;
  if (r) eval_rank_watch(r, done, &w);
  const u32 nsteps = out->nsteps = r ? repeat(j, c, &w, r, next, wanted, v, nevents, out) : 0;
  if (nsteps) profile_add_up(v, WALK_MOST, out->count, nevents, nsteps);
  eval_rank_free(r);
  free(heard.data);
  arena_free(a);
  return nsteps;
}
