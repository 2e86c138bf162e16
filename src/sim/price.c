// price.c - durations: one price for every distinct instruction on every group, asked for once. Not how
// prices are made (cost/).
//
// Idea: an event is (opcode, attributes, group, types, how measured times change it, and the coordinate in
// time where pieces are uneven); a program of a million executed instructions has a few hundred. Functions are priced once for every group they are called on,
// never for every call.
#include "sim/internal.h"

enum { EVENT_COORD = 3, EVENT_TYPES }; // words of its key

static u32 event_new(sim *s, const func_info *f, const instr *i, group g, const u32 *key, u32 nkey) {
  const members *pl = members_of(s, g);
  event e = {.g = g, .nkey = nkey};
  u32 n = s->cost(s->cost_arg, s->p, f, i, g, s->ps);
  if (!n) return 0;
  assert(n == 1 || n == pl->n);
  e.dur = s->ps[0];
  bool uneven = false;
  for (u32 k = 0; k < n; k++) {
    assert(s->ps[k] >= 0);
    uneven |= s->ps[k] != e.dur;
  }
  if (uneven) e.per = arena_dup(s->a, s->ps, n * sizeof *s->ps);
  if (is_rendezvous(i->op)) e.met = rendezvous_of(s, f, i, g);
  if (nkey) e.key = arena_dup(s->a, key, nkey * sizeof *key);
  *vec_push(s->a, &s->events) = e;
  return s->events.n - 1;
}

// Pieces of a table may be larger in one microbatch than in another.
static bool differs_in_time(const sim *s, const func_info *f, const instr *i) {
  for (u32 k = 0; k < i->nopd + i->nres; k++) {
    const value v = k < i->nopd ? opd_of(f, i, k) : i->res + k - i->nopd;
    if (!layout_is_even(s->p->sp, type_get(s->p, f->values.v[v].ty)->lay)) return true;
  }
  return false;
}

static u32 event_find(sim *s, const func_info *f, const instr *i, group g) {
  u32 few[64], n = EVENT_TYPES + i->nopd + i->nres;
  arena_mark_t m = arena_mark(s->tmp);
  u32 *key = n <= COUNT_OF(few) ? few : NEWN(s->tmp, u32, n);
  key[0] = i->op | cost_measured(s->p, f, i) << 16;
  key[1] = i->at.i;
  key[2] = g.i;
  key[EVENT_COORD] = differs_in_time(s, f, i) ? i->coord + 1 : 0;
  for (u32 k = 0; k < i->nopd; k++) key[EVENT_TYPES + k] = f->values.v[opd_of(f, i, k)].ty.i;
  for (u32 k = 0; k < i->nres; k++) key[EVENT_TYPES + i->nopd + k] = f->values.v[i->res + k].ty.i;
  u64 h = hash_bytes(key, n * sizeof *key, i->nopd);
  u32 found = 0;
  for (u32 it = 0, id; !found && hmap_next(&s->event_map, h, &it, &id);) {
    const event *e = &s->events.v[id];
    if (e->nkey == n && memcmp(e->key, key, n * sizeof *key) == 0) found = id;
  }
  if (!found && (found = event_new(s, f, i, g, key, n))) hmap_add(s->a, &s->event_map, h, found);
  arena_release(s->tmp, m);
  return found;
}

// A schedule sends the same few things for ever: those with one operand and one result are remembered.
static u32 event_of(sim *s, const func_info *f, const instr *i, group g) {
  if (!s->intern) return event_new(s, f, i, g, NULL, 0);
  if (i->nopd != 1 || i->nres != 1) return event_find(s, f, i, g);
  u32 from = f->values.v[opd_of(f, i, 0)].ty.i, to = f->values.v[i->res].ty.i;
  const u32 op = i->op | cost_measured(s->p, f, i) << 16;
  recent_event *r = &s->recent[(from * 31 + to * 7 + i->op) % COUNT_OF(s->recent)];
  if (!r->id || r->op != op || r->at != i->at.i || r->g != g.i || r->from != from || r->to != to ||
      (r->coord && r->coord != i->coord + 1)) {
    *r = (recent_event){op, i->at.i, g.i, from, to, 0, event_find(s, f, i, g)};
    r->coord = r->id ? s->events.v[r->id].key[EVENT_COORD] : 0;
  }
  return r->id;
}

// The row of function f at group g; 0 and a diagnostic if an instruction in it has no price.
static u32 price_function(sim *s, func f, group g, i64 *only) {
  u64 h = hash_u64((u64)f.i << 32 | g.i, 3);
  for (u32 it = 0, id; hmap_next(&s->priced_map, h, &it, &id);)
    if (s->priced.v[id].f.i == f.i && s->priced.v[id].g.i == g.i) return id;
  const func_info *fi = func_get(s->p, f);
  u32 *ev = ZNEWN(s->a, u32, fi->body.n), row = s->priced.n;
  *vec_push(s->a, &s->priced) = (priced){.f = f, .g = g, .ev = ev};
  hmap_add(s->a, &s->priced_map, h, row);
  struct {
    func f;
    group g;
    u32 row;
  } recent[32] = {{{0}, {0}, 0}};
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *i = &fi->body.v[k];
    group ig = group_bind(i->g, g);
    if (i->op == OP_call) {
      u32 slot = (i->callee.i * 16 + ig.i) % COUNT_OF(recent);
      if (recent[slot].f.i != i->callee.i || recent[slot].g.i != ig.i) {
        recent[slot].row = price_function(s, i->callee, ig, only);
        recent[slot].f = i->callee;
        recent[slot].g = ig;
      }
      if (!(ev[k] = recent[slot].row)) return 0;
    } else if (!no_work(op_row_of(i->op))) {
      if (!(ev[k] = event_of(s, fi, i, ig))) return 0;
      if (*only >= 0 && *only != i->strm) s->one_stream = false;
      *only = i->strm;
    }
  }
  return row;
}

bool price_program(sim *s) {
  i64 only = -1;
  s->ps = NEWN(s->a, i64, s->nranks);
  s->one_stream = true;
  return price_function(s, s->p->main, (group){0}, &only) != 0;
}
