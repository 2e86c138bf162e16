// splits_cut.c - the dynamic program over cuts (splits.h): operators in order, the states of the tensors that are still
// needed, and for each combination the points that nothing beats in time and memory.
#include "plan/splits_kinds.h"
#include <stdlib.h>

typedef struct {
  i64 time_ps, bytes;
  u32 before; // point
  u16 option;
} point;
typedef struct {
  const u32 *kind; // by slot
  u32 held;        // number of what is held
  u64 hash;        // of kinds
  i64 least;       // time of the fastest point
  VEC(u32) front;  // points
} state;
// An operator's operand or result, or a tensor that ends: where it lies.
typedef struct {
  u32 slot, gap, tensor;
} visit;
typedef struct {
  visit *read, *made, *end;
  u32 nend;
  u32 *touched, ntouched; // slots of all, each once
} visits;
typedef struct {
  const splits_problem *p, *given; // p: with weights folded into options
  const bool *const *never;        // by operator and option: there is no way
  arena *a, *now, *next;           // next: of the cut that is made
  splits_limits most;
  u32 *last;      // by tensor: number of the operator that reads it last, + 1; 0: none
  u32 *slot;      // by tensor: among those that are live; ~0: not
  u32 *gap;       // by slot: where its tensor is
  visits *visits; // by operator
  splits_kinds kinds;
  u32 *hold; // by operator: place of what is held of it + 1; 0: nothing
  u32 nslots, nheld;
  u64 steps;        // taken
  bool *last_of;    // by operator: nobody asks for its option after it
  i64 *rest, bound; // least time of operators from this one on; no point above the bound is of use ...
  i64 *bound_of;    // ... nor, by option of the first operator, above this one; NULL: not known
  VEC(point) points;
  VEC(state) cut, made;
  hmap seen, seen_held;
  VEC(const u16 *) held; // by number: by tie or named operator that is held: option + 1
  splits_solution *out;
} solver;

// BEAM: states of a pass that only looks for some solution, from BEAM_FROM operators on, and after STEPS steps.
// BEATEN_FROM: fewer states are not worth the comparison.
enum { BEAM = 256, BEAM_FROM = 9, BEATEN_FROM = 16, STEPS = 1 << 21 };

// ---- fronts ----------------------------------------------------------------------------------------------
static int by_time(const void *x, const void *y) {
  const point *p = x, *q = y;
  return p->time_ps != q->time_ps ? (p->time_ps < q->time_ps ? -1 : 1)
         : p->bytes != q->bytes   ? (p->bytes < q->bytes ? -1 : 1)
                                  : 0;
}

// Keeps the point unless another one is as good in both; drops those that it beats.
static void offer(solver *s, state *x, const point *p) {
  u32 n = 0;
  for (u32 i = 0; i < x->front.n; i++) {
    const point *q = &s->points.v[x->front.v[i]];
    if (q->time_ps <= p->time_ps &&
        (s->most.fastest ? q->time_ps < p->time_ps || q->bytes <= p->bytes : q->bytes <= p->bytes))
      return;
  }
  for (u32 i = 0; i < x->front.n; i++) {
    const point *q = &s->points.v[x->front.v[i]];
    if (!(p->time_ps <= q->time_ps && (s->most.fastest || p->bytes <= q->bytes)))
      x->front.v[n++] = x->front.v[i];
  }
  x->front.n = n;
  x->least = MIN(x->least, p->time_ps);
  *vec_push(s->next, &x->front) = s->points.n;
  *vec_push(s->a, &s->points) = *p;
}

// Of a front that is too long, the fastest and the smallest and those evenly between.
static void thin(solver *s, state *x) {
  const u32 most = s->most.points, n = x->front.n;
  if (n <= most) return;
  assert(most > 1); // the fastest and the smallest
  s->out->exact = false;
  point *v = NEWN(s->next, point, n);
  u32 *number = NEWN(s->next, u32, n);
  for (u32 i = 0; i < n; i++) v[i] = s->points.v[x->front.v[i]], v[i].before = i;
  qsort(v, n, sizeof *v, by_time);
  for (u32 i = 0; i < most; i++) number[i] = x->front.v[v[(u64)i * (n - 1) / (most - 1)].before];
  memcpy(x->front.v, number, sizeof *number * most);
  x->front.n = most;
}

// ---- cuts ------------------------------------------------------------------------------------------------
// What a slot adds to the hash of a state: the sum changes with what an operator touches.
static u64 slot_hash(u32 slot, u32 kind) {
  u64 x = ((u64)slot << 32 | kind) * 0xff51afd7ed558ccdu;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
  return x ^ x >> 29;
}

static u32 held_of(solver *s, const u16 *held) {
  const size_t bytes = sizeof *held * s->nheld;
  const u64 h = hash_bytes(held, bytes, 0);
  for (u32 it = 0, k; hmap_next(&s->seen_held, h, &it, &k);)
    if (!memcmp(s->held.v[k], held, bytes)) return k;
  hmap_add(s->a, &s->seen_held, h, s->held.n);
  *vec_push(s->a, &s->held) = arena_dup(s->a, held, bytes + 1);
  return s->held.n - 1;
}

static state *state_of(solver *s, const u32 *kind, u32 held, u64 hash) {
  const u64 h = hash + slot_hash(s->nslots, held);
  for (u32 it = 0, k; hmap_next(&s->seen, h, &it, &k);)
    if (s->made.v[k].held == held && !memcmp(s->made.v[k].kind, kind, sizeof *kind * s->nslots))
      return &s->made.v[k];
  hmap_add(s->next, &s->seen, h, s->made.n);
  state *x = vec_push(s->next, &s->made);
  *x = (state){.kind = arena_dup(s->next, kind, sizeof *kind * s->nslots + 1),
               .held = held,
               .hash = hash,
               .least = INT64_MAX};
  return x;
}

// Time, and bytes at their price.
static i64 cost_of(const solver *s, i64 time_ps, i64 bytes) {
  return time_ps + (i64)(s->most.ps_per_byte * (double)bytes);
}

// Where one point is kept for every state.
static void drop_beaten(solver *s, u32 op) {
  const splits_op *x = &s->p->op[op];
  const visits *at = &s->visits[op];
  for (u32 k = 0; k < x->nopd; k++) s->gap[at->read[k].slot] = at->read[k].gap + 1;
  for (u32 k = 0; k < x->nres; k++) s->gap[at->made[k].slot] = at->made[k].gap;
  const u32 n = s->made.n;
  if (!s->most.fastest || n < BEATEN_FROM) return;
  arena *tmp = arena_new();
  const splits_cut c = {&s->kinds, s->nslots, s->held.n, s->gap};
  splits_reached *v = NEWN(tmp, splits_reached, n);
  for (u32 i = 0; i < n; i++)
    v[i] = (splits_reached){s->made.v[i].kind, s->made.v[i].held, s->made.v[i].least, false};
  splits_find_beaten(tmp, &c, v, n);
  u32 k = 0;
  for (u32 i = 0; i < n; i++)
    if (!v[i].beaten) s->made.v[k++] = s->made.v[i];
  s->made.n = k;
  arena_free(tmp);
}

// Number k, from 0, of n costs in order; they change places.
static i64 ordered(i64 *v, u32 n, u32 k) {
  for (u32 from = 0, end = n; end - from > 1;) {
    const i64 mid = v[from + (end - from) / 2];
    u32 below = from, above = end;
    for (u32 i = from; i < above;) {
      const i64 x = v[i];
      if (x < mid)
        v[i++] = v[below], v[below++] = x;
      else if (x > mid)
        v[i] = v[--above], v[above] = x;
      else
        i++;
    }
    if (k >= below && k < above) return mid;
    if (k < below) end = below;
    if (k >= above) from = above;
  }
  return v[k];
}

// More states than the limit: those that are reached fastest stay.
static void cut_down(solver *s) {
  const u32 n = s->made.n, most = s->most.states;
  for (u32 i = 0; i < n; i++) thin(s, &s->made.v[i]);
  if (n <= most) return;
  s->out->exact = false;
  i64 *cost = NEWN(s->next, i64, n);
  for (u32 i = 0; i < n; i++) cost[i] = s->made.v[i].least;
  const i64 slowest = ordered(cost, n, most - 1);
  u32 k = 0;
  for (u32 i = 0; i < n && k < most; i++)
    if (s->made.v[i].least <= slowest) s->made.v[k++] = s->made.v[i];
  s->made.n = k;
}

// What becomes of the tensors of an operator.
static step pass_tensors(solver *s, u32 op, u32 option, u32 *kind) {
  const splits_op *x = &s->p->op[op];
  const visits *at = &s->visits[op];
  step c = {x->option[option].time_ps, x->option[option].bytes, true};
  for (u32 k = 0; k < x->nopd + x->nres + at->nend && c.possible; k++) {
    const bool reads = k < x->nopd, makes = !reads && k < x->nopd + x->nres;
    const visit *y = reads ? &at->read[k] : makes ? &at->made[k - x->nopd] : &at->end[k - x->nopd - x->nres];
    const splits_passed *z = makes ? splits_make(&s->kinds, y->tensor, option)
                                   : splits_pass(&s->kinds, y->gap, kind[y->slot], reads ? option : 0);
    c.time_ps += z->time_ps, c.bytes += z->bytes, c.possible = z->possible;
    kind[y->slot] = z->kind;
  }
  return c;
}

// All states of the cut, with one option of the operator.
static void extend(solver *s, u32 op, const state *from, u32 option, u32 *kind, u16 *held) {
  const splits_op *x = &s->p->op[op];
  const splits_option *o = &x->option[option];
  const visits *at = &s->visits[op];
  const u32 h = s->hold[op];
  const u16 *had = s->held.v[from->held];
  s->steps++;
  if (s->never[op][option]) return;
  if (h && x->tie && had[h - 1] && had[h - 1] != option + 1) return;
  if (from->least + cost_of(s, o->time_ps, o->bytes) + s->rest[op + 1] > s->bound) return;
  memcpy(kind, from->kind, sizeof *kind * s->nslots);
  step c = pass_tensors(s, op, option, kind);
  if (!c.possible) return;
  c.time_ps = cost_of(s, c.time_ps, c.bytes);
  u32 now = from->held;
  if (h) {
    memcpy(held, had, sizeof *held * s->nheld);
    held[h - 1] = s->last_of[op] ? 0 : (u16)(option + 1);
    now = held_of(s, held), had = held;
  }
  const i64 bound = s->bound_of && had[0] ? MIN(s->bound, s->bound_of[had[0] - 1]) : s->bound;
  if (from->least + c.time_ps + s->rest[op + 1] > bound) return;
  u64 hash = from->hash;
  for (u32 k = 0; k < at->ntouched; k++)
    hash += slot_hash(at->touched[k], kind[at->touched[k]]) -
            slot_hash(at->touched[k], from->kind[at->touched[k]]);
  state *to = state_of(s, kind, now, hash);
  for (u32 i = 0; i < from->front.n; i++) {
    const point *q = &s->points.v[from->front.v[i]];
    if (q->time_ps + c.time_ps + s->rest[op + 1] > bound) continue;
    offer(s, to, &(point){q->time_ps + c.time_ps, q->bytes + c.bytes, from->front.v[i], (u16)option});
  }
}

static void touch(visits *at, u32 slot) {
  for (u32 j = 0; j < at->ntouched; j++)
    if (at->touched[j] == slot) return;
  at->touched[at->ntouched++] = slot;
}

static void find_visits(solver *s) {
  const splits_problem *p = s->p;
  const splits_readers *r = &s->kinds.readers;
  s->visits = ZNEWN(s->a, visits, p->nops + 1);
  for (u32 i = 0; i < p->nops; i++) {
    const splits_op *x = &p->op[i];
    visits *at = &s->visits[i];
    at->read = NEWN(s->a, visit, x->nopd + 1), at->made = NEWN(s->a, visit, x->nres + 1);
    at->end = NEWN(s->a, visit, x->nopd + x->nres + 1), at->touched = NEWN(s->a, u32, x->nopd + x->nres + 1);
  }
  for (u32 t = 0; t < p->ntensors; t++) {
    const u32 slot = s->slot[t];
    for (u32 q = r->begin[t]; q < r->begin[t + 1]; q++)
      s->visits[r->reader[q]].read[r->operand[q]] = (visit){slot, q + t, t},
      touch(&s->visits[r->reader[q]], slot);
    if (r->maker[t]) {
      visits *at = &s->visits[r->maker[t] - 1];
      at->made[r->result[t]] = (visit){slot, r->begin[t] + t, t}, touch(at, slot);
    }
    if (!s->last[t]) continue;
    visits *at = &s->visits[s->last[t] - 1];
    at->end[at->nend++] = (visit){slot, r->begin[t + 1] + t, t};
  }
}

// Slots of tensors (those that are free are used again) and of what is held.
static void make_slots(solver *s) {
  const splits_problem *p = s->p;
  bool *used = ZNEWN(s->a, bool, p->ntensors + 1);
  u32 *first = NEWN(s->a, u32, p->ntensors + 1); // operator that makes it, of a weight reads it
  for (u32 t = 0; t < p->ntensors; t++) s->slot[t] = first[t] = ~0u;
  for (u32 i = 0; i < p->nops; i++) {
    const splits_op *x = &p->op[i];
    for (u32 k = 0; k < x->nopd + x->nres; k++) {
      const u32 t = k < x->nopd ? x->opd[k] : x->res[k - x->nopd];
      if (first[t] == ~0u) first[t] = i;
      s->last[t] = i + 1;
    }
  }
  for (u32 i = 0; i < p->nops; i++) {
    const splits_op *x = &p->op[i];
    for (u32 k = 0; k < x->nopd + x->nres; k++) {
      const u32 t = k < x->nopd ? x->opd[k] : x->res[k - x->nopd];
      if (s->slot[t] != ~0u) continue;
      u32 j = 0;
      while (used[j]) j++;
      used[j] = true, s->slot[t] = j, s->nslots = MAX(s->nslots, j + 1);
    }
    for (u32 t = 0; t < p->ntensors; t++)
      if (s->last[t] == i + 1) used[s->slot[t]] = false;
    for (u32 j = 0; x->tie && j < i && !s->hold[i]; j++)
      if (p->op[j].tie == x->tie) s->hold[i] = s->hold[j];
    if ((x->tie || x->named) && !s->hold[i]) s->hold[i] = ++s->nheld;
  }
}

static int by_choice(const void *x, const void *y) {
  const splits_choice *p = x, *q = y;
  return p->time_ps != q->time_ps ? (p->time_ps < q->time_ps ? -1 : 1)
         : p->bytes != q->bytes   ? (p->bytes < q->bytes ? -1 : 1)
                                  : 0;
}

static void tell(solver *s, arena *a) {
  u32 n = 0;
  for (u32 i = 0; i < s->cut.n; i++) n += s->cut.v[i].front.n;
  splits_choice *v = NEWN(a, splits_choice, n + 1);
  n = 0;
  for (u32 i = 0; i < s->cut.n; i++)
    for (u32 k = 0; k < s->cut.v[i].front.n; k++) {
      u32 at = s->cut.v[i].front.v[k];
      u16 *option = NEWN(a, u16, s->p->nops + 1);
      v[n++] = (splits_choice){s->points.v[at].time_ps, s->points.v[at].bytes, option};
      for (u32 op = s->p->nops; op-- > 0; at = s->points.v[at].before) option[op] = s->points.v[at].option;
      if (s->most.ps_per_byte > 0) splits_price(s->given, option, &v[n - 1].time_ps, &v[n - 1].bytes);
    }
  qsort(v, n, sizeof *v, by_choice);
  s->out->v = v, s->out->n = n;
}

// One pass over all operators.
static bool pass(solver *s, arena *a) {
  const splits_problem *p = s->p;
  u32 *kind = ZNEWN(s->a, u32, s->nslots + 1);
  u16 *held = ZNEWN(s->a, u16, s->nheld + 1);
  memset(&s->made, 0, sizeof s->made), memset(&s->seen, 0, sizeof s->seen);
  s->points.n = 0;
  *vec_push(s->a, &s->points) = (point){0};
  s->now = s->next = arena_new();
  state *first = state_of(s, kind, held_of(s, held), 0);
  assert(first); // there is room for one
  *vec_push(s->next, &first->front) = 0, first->least = 0;
  s->cut.v = s->made.v, s->cut.n = s->made.n;
  for (u32 op = 0; op < p->nops && s->cut.n; op++) {
    s->next = arena_new();
    memset(&s->made, 0, sizeof s->made), memset(&s->seen, 0, sizeof s->seen);
    for (u32 i = 0; i < s->cut.n; i++)
      for (u32 k = 0; k < p->op[op].noptions; k++) extend(s, op, &s->cut.v[i], k, kind, held);
    s->out->states += s->made.n;
    if (s->steps > s->most.steps) s->most.states = MIN(s->most.states, BEAM);
    drop_beaten(s, op);
    cut_down(s);
    arena_free(s->now);
    s->now = s->next;
    if (s->most.all && (!s->out->exact || s->steps > s->most.steps)) s->made.n = 0;
    s->cut.v = s->made.v, s->cut.n = s->made.n, s->cut.cap = s->made.cap;
  }
  s->out->points += s->points.n;
  tell(s, a);
  arena_free(s->now);
  return s->out->n > 0;
}

static void find_rest(solver *s) {
  s->rest = ZNEWN(s->a, i64, s->p->nops + 1);
  for (u32 i = s->p->nops; i-- > 0;) {
    i64 least = INT64_MAX;
    for (u32 k = 0; k < s->p->op[i].noptions; k++) {
      const splits_option *o = &s->p->op[i].option[k];
      if (!s->never[i][k]) least = MIN(least, cost_of(s, o->time_ps, o->bytes));
    }
    s->rest[i] = s->rest[i + 1] + (least == INT64_MAX ? 0 : least);
  }
}

static i64 least_cost(const solver *s) {
  i64 least = INT64_MAX;
  for (u32 k = 0; k < s->out->n; k++)
    least = MIN(least, cost_of(s, s->out->v[k].time_ps, s->out->v[k].bytes));
  return least;
}

// After a pass that gave up states: solutions that there are. Of every option of the first operator, if it is named, the slowest
// that is wanted.
static void find_bounds(solver *s) {
  const splits_problem *p = s->p;
  const i64 most = MIN(least_cost(s) + splits_slack(s->p, s->most.ps_per_byte), s->bound);
  s->bound = most;
  if (!p->op[0].named || s->hold[0] != 1) return;
  const u32 n = p->op[0].noptions;
  i64 *of = ZNEWN(s->a, i64, n + 1);
  for (u32 k = 0; k < s->out->n; k++) {
    i64 *x = &of[s->out->v[k].option[0]];
    *x = MAX(*x, MIN(cost_of(s, s->out->v[k].time_ps, s->out->v[k].bytes), most));
  }
  for (u32 k = 0; k < n; k++)
    if (!of[k]) of[k] = most;
  s->bound_of = of;
}

static void find_last(solver *s) {
  const splits_problem *p = s->p;
  s->last_of = ZNEWN(s->a, bool, p->nops + 1);
  for (u32 i = 0; i < p->nops; i++) {
    bool more = p->op[i].named || !s->hold[i];
    for (u32 j = 0; j < p->nops && p->op[i].tie; j++)
      more = more || (p->op[j].tie == p->op[i].tie && (j > i || p->op[j].named));
    s->last_of[i] = !more;
  }
}

bool splits_solve(arena *a, const splits_problem *p, const splits_limits *limits, splits_solution *out) {
  solver s = {.given = p, .a = arena_new(), .out = out, .bound = INT64_MAX};
  splits_readers given;
  splits_folded folded;
  *out = (splits_solution){.exact = true};
  if (limits) s.most = *limits;
  if (!s.most.states) s.most.states = 8192;
  if (!s.most.points) s.most.points = 64;
  if (!s.most.steps) s.most.steps = STEPS;
  splits_readers_of(s.a, p, &given);
  splits_fold(s.a, p, &given, &folded);
  s.p = p = &folded.p, s.never = folded.never;
  s.last = ZNEWN(s.a, u32, p->ntensors + 1), s.slot = NEWN(s.a, u32, p->ntensors + 1);
  s.hold = ZNEWN(s.a, u32, p->nops + 1);
  if (s.most.most_ps && s.most.fastest && s.most.ps_per_byte == 0) s.bound = s.most.most_ps;
  make_slots(&s);
  splits_kinds_of(s.a, p, s.most.ps_per_byte, &s.kinds);
  find_visits(&s);
  s.gap = ZNEWN(s.a, u32, s.nslots + 1);
  find_rest(&s), find_last(&s);
  if (s.most.fastest && p->nops > BEAM_FROM) { // some solution first: what is slower in part is not looked at
    const u32 states = s.most.states;
    s.most.states = BEAM;
    if (pass(&s, a)) find_bounds(&s);
    s.most.states = states, out->exact = true;
  }
  const bool found = pass(&s, a);
  arena_free(s.a);
  return found;
}
