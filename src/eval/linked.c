// linked.c - what one process does of a communication between processes: what it has leaves, what it needs comes, and its own
// piece is made of that.
//
// Idea: pieces move in portions (portions.c), so that nothing but the piece itself is held beside what it is made of: what
// is put together comes to its place, and a sum is made a portion at a time of what has come from all, where the
// operand lies if that ends. All sends of a portion are put before all receives of an earlier one: they wait for
// nobody, and both directions of a link are used at once.
//
// What this rank has to do in a movement does not change from step to step. It is found out once, where the movement is seen first:
// in the dry step, before any runs.
#include "eval/movement.h"

enum { PORTION = 63 << 10, AHEAD = 2 }; // bytes; portions sent before the first is waited for, besides it

// One target in which this rank has a part: it is the target, or a giver.
typedef struct {
  u32 to;
  bool portions;        // the parts fit together as they come
  givers by;            // from whom the piece comes; of a sum all summands
  const meeting **part; // by giver: what moves from it; NULL: not on this rank
} taker;
struct own_part { // of one movement, which is told by the pieces at both ends
  own_part *next;
  const holdings **in, *out; // equal ones are one object
  reduction red;
  givers ring;      // of a collective that can go around one: its members, in order
  u32 place;        // of this rank in it
  bool found, only; // found: the rest is known; only: each target has just the giver of its own number
  u32 ntakers;
  taker *takers, *own; // own: of this rank's piece; NULL: it is in none
};

static void forget(movement *v, const bool *came) {
  for (u32 k = 0; came && k < v->by.n; k++) {
    buf **b = &v->in[v->by.v[k].opd].v->piece[v->by.v[k].member];
    if (came[k]) eval_drop(v->m, *b), *b = NULL;
  }
}

// A movement of which this process does what concerns its own rank.
typedef struct {
  movement v;
  own_part *part;
  int self;    // this rank's number in the target; -1: it is not in it
  bool around; // a ring
  bool there;  // the own piece needs no more than what comes
  bool *came;  // of the givers of the own piece: does theirs come whole, from elsewhere?
  buf_list kept;
  bool beside; // it goes on beside computation ...
  u32 nrooms;  // ... and has so many of its rooms
} linked;

// What leaves for one rank, or comes from one.
typedef struct {
  const meeting *part;
  u32 peer;
  char *piece;        // of the giver, from which it leaves; where it comes to
  char *slot;         // instead: where a portion waits to be summed
  const summing *sum; // which it is the last part of
} flow;
typedef VEC(flow) flows;

// A send is one message: its sender goes on, whatever the receiver does.
static i64 most_of(const movement *v) { return v->i->op == OP_send ? INT64_MAX : PORTION; }

static bool is_here(const movement *v, giver g) {
  return eval_rank_of(v->m, v->in[g.opd].g, g.member) == v->m->link->rank;
}

static const spot *spot_of(const movement *v, giver g) { return &v->in[g.opd].p->at[g.member]; }

static meeting *meet(const movement *v, arena *a, const spot *to, giver g, i64 most) {
  return meeting_of(a, to, spot_of(v, g), v->out->p->t->s.nd, dtype_bytes(v->in[g.opd].p->stored), most);
}

// ---- what this rank has to do ------------------------------------------------------------------------------
static box *boxes_of(arena *a, const holdings *p) {
  const u32 nd = p->t->s.nd;
  box *b = ZNEWN(a, box, p->n);
  i64(*whole)[2] = (i64(*)[2])arena_alloc(a, sizeof(i64[2]) * (nd + 1));
  for (u32 d = 0; d < nd; d++) whole[d][0] = 0, whole[d][1] = p->t->s.dim[d];
  for (u32 k = 0; k < p->n; k++)
    for (u32 d = 0; d < nd; d++)
      b[k].d[d] = p->at[k].map[d] ? p->at[k].map[d]->has : (ranges){whole[d][1] > 0, &whole[d]};
  return b;
}

typedef struct {
  const movement *v;
  giving x;
  const box *want, **have; // by target; by operand and giver
} search;

// Who gives to `to`, and whether what they give fits together as it comes: all of it from each that is summed, else every element
// from one. All ends say the same.
static givers needed(const search *s, u32 to, arena *a, bool *portions) {
  const movement *v = s->v;
  const u32 nd = v->out->p->t->s.nd;
  const spot *at = &v->out->p->at[to];
  givers by;
  if (s->x.adds) {
    by = givers_of(&s->x, a, to);
    *portions = by.n > 1;
    for (u32 k = 0; k < by.n && *portions; k++) *portions = eval_holds_all(spot_of(v, by.v[k]), at, nd);
    return by;
  }
  const gifts all = gifts_of(&s->x, a, to, nd, &s->want[to], s->have);
  i64 found = all.missing;
  by = (givers){all.n, NEWN(a, giver, all.n + 1)};
  for (u32 k = 0; k < all.n; k++) by.v[k] = all.v[k].from, found += box_elems(&all.v[k].what, nd);
  *portions = !all.missing && found == at->elems;
  return by;
}

static bool concerns(const movement *v, const givers *by) {
  for (u32 k = 0; k < by->n; k++)
    if (is_here(v, by->v[k])) return true;
  return false;
}

// A target's row, kept: with what moves from every giver to here, or from here.
static taker taker_of(const movement *v, u32 to, const givers *by, bool portions, bool own) {
  arena *a = v->m->a;
  taker t = {.to = to, .portions = portions, .by = {by->n, arena_dup(a, by->v, by->n * sizeof *by->v)}};
  t.part = ZNEWN(a, const meeting *, by->n + 1);
  const spot *at = &v->out->p->at[to];
  for (u32 k = 0, last = 0; k < by->n; k++) {
    const giver g = by->v[k];
    if (!own && !is_here(v, g)) continue;
    const i64 most = own && is_here(v, g) ? PORTION : most_of(v);
    const spot *from = spot_of(v, g);
    if (portions && k && t.part[last] && most_of(v) == PORTION &&
        eval_same(from, spot_of(v, by->v[last]), v->out->p->t->s.nd))
      t.part[k] = t.part[last];
    else
      t.part[k] = meet(v, a, portions ? at : from, g, most), last = k;
  }
  return t;
}

static void find_takers(const movement *v, own_part *o) {
  arena *a = v->m->scratch;
  arena_mark_t mark = arena_mark(a);
  search s = {v, movement_giving(v, a), boxes_of(a, v->out->p), NEWN(a, const box *, v->nin)};
  for (u32 e = 0; e < v->nin; e++) s.have[e] = boxes_of(a, v->in[e].p);
  VEC(taker) takers = {0};
  const int self = eval_member(v->m, v->out->g, v->m->link->rank);
  o->only = true;
  for (u32 to = 0; to < v->out->p->n; to++) {
    arena_mark_t one = arena_mark(a);
    bool portions;
    const bool own = (int)to == self;
    const givers by = needed(&s, to, a, &portions);
    o->only = o->only && by.n == 1 && by.v->member == to;
    const bool keep = own || concerns(v, &by);
    const taker t = keep ? taker_of(v, to, &by, portions, own) : (taker){0};
    arena_release(a, one);
    if (keep) *vec_push(v->m->a, &takers) = t;
  }
  for (u32 k = 0; k < takers.n; k++)
    if ((int)takers.v[k].to == self) o->own = &takers.v[k];
  o->takers = takers.v, o->ntakers = takers.n, o->found = true;
  arena_release(a, mark);
}

// The members of this rank's subgroup as a ring, if the collective can go around one.
static void find_ring(const movement *v, own_part *o) {
  const opcode op = v->i->op;
  const int self = eval_member(v->m, v->out->g, v->m->link->rank);
  if (self < 0 || (op != OP_all_reduce && op != OP_reduce_scatter && op != OP_all_gather)) return;
  const giving x = movement_giving(v, v->m->scratch);
  const givers all = givers_of(&x, v->m->a, (u32)self);
  for (u32 k = 0; k < all.n; k++)
    if (all.v[k].member == (u32)self) o->place = k;
  if (ring_takes(&(ring){.in = v->in, .out = v->out, .n = all.n, .member = all.v}, op)) o->ring = all;
}

own_part **parts_of(interp *m, func fn, group g) {
  const u64 key = (u64)fn.i << 32 | g.i;
  u32 known = hmap_get(&m->part_map, key);
  if (!known) {
    *vec_push(m->a, &m->parts) = ZNEWN(m->a, own_part *, func_get(m->p, fn)->body.n + 1);
    hmap_add(m->a, &m->part_map, key, known = m->parts.n);
  }
  assert(m->parts.v);
  return m->parts.v[known - 1];
}

static own_part *part_known(const movement *v) {
  for (own_part *o = v->of ? *v->of : NULL; o; o = o->next) {
    bool same = o->out == v->out->p;
    for (u32 e = 0; e < v->nin && same; e++) same = o->in[e] == v->in[e].p;
    if (same) return o;
  }
  return NULL;
}

bool movement_known(movement *v) {
  const own_part *o = part_known(v);
  if (o) v->red = o->red;
  return o;
}

static own_part *part_of(const movement *v) {
  own_part *o = part_known(v);
  if (o) return o;
  o = ZNEWN(v->m->a, own_part, 1);
  *o = (own_part){.next = *v->of, .out = v->out->p, .red = v->red};
  o->in = NEWN(v->m->a, const holdings *, v->nin);
  for (u32 e = 0; e < v->nin; e++) o->in[e] = v->in[e].p;
  find_ring(v, o);
  return *v->of = o;
}

// ---- one movement ------------------------------------------------------------------------------------------
// Memory beside the piece: of a portion in the scratch memory, of more as a piece of its own.
static char *portion_room(linked *x, arena *a, i64 bytes) {
  assert(!x->beside || bytes <= PORTION);
  return x->beside ? beside_room(x->v.m, x->nrooms++, PORTION) : arena_alloc(a, (size_t)bytes);
}

static char *room_beside(linked *x, arena *a, i64 bytes) {
  if (bytes <= PORTION) return portion_room(x, a, bytes);
  buf *b = eval_buf(x->v.m, bytes);
  *vec_push(a, &x->kept) = b;
  return b->data;
}

static const summing *sum_of(linked *x, const taker *t, arena *a) {
  movement *v = &x->v;
  const spot *s = &v->out->p->at[t->to];
  const givers *by = &t->by;
  summing *sum = NEW(a, summing);
  *sum = (summing){.n = by->n, .t = v->out->p->stored, .red = v->red, .part = t->part};
  sum->piece = ZNEWN(a, const char *, by->n), sum->slot = ZNEWN(a, char *, by->n);
  sum->at = NEWN(a, const char *, by->n);
  sum->to = movement_room(v, t->to)->data;
  for (u32 k = 0; k < by->n; k++) {
    const giver g = by->v[k];
    const bool here = is_here(v, g);
    if (here) sum->piece[k] = v->in[g.opd].v->piece[g.member]->data;
    if (!here || !eval_same(spot_of(v, g), s, v->out->p->t->s.nd))
      sum->slot[k] = room_beside(x, a, portion_bytes(sum->part[k], 0));
  }
  return sum;
}

// What this rank's own piece is made of comes.
static void put_receives(linked *x, const taker *t, arena *a, flows *out) {
  movement *v = &x->v;
  const bool portions = t->portions;
  const summing *sum = portions && v->red != RED_NONE ? sum_of(x, t, a) : NULL;
  char *result = portions ? movement_room(v, t->to)->data : NULL;
  char *room = portions && !sum ? room_beside(x, a, PORTION) : NULL;
  u32 last = 0;
  x->there = portions;
  for (u32 k = 0; k < t->by.n; k++) {
    const giver g = t->by.v[k];
    const end *e = &v->in[g.opd];
    if (is_here(v, g)) {
      if (portions && !sum && !eval_is_dry(v->m))
        portion_copy(t->part[k], result, e->v->piece[g.member]->data, room);
      continue;
    }
    flow f = {.part = t->part[k], .peer = eval_rank_of(v->m, e->g, g.member)};
    if (sum)
      f.slot = sum->slot[k];
    else if (portions)
      f.piece = result;
    else {
      buf *b = e->v->piece[g.member] = eval_buf(v->m, spot_bytes(e->p, g.member));
      x->came[k] = true;
      f.piece = b->data;
    }
    last = out->n;
    *vec_push(a, out) = f;
  }
  if (sum && out->n) out->v[last].sum = sum;
}

static void put_sends(const movement *v, const taker *t, arena *a, flows *out) {
  for (u32 k = 0; k < t->by.n; k++) {
    const giver g = t->by.v[k];
    if (is_here(v, g))
      *vec_push(a, out) = (flow){.part = t->part[k],
                                 .peer = eval_rank_of(v->m, v->out->g, t->to),
                                 .piece = v->in[g.opd].v->piece[g.member]->data};
  }
}

static void put_portion(linked *x, const flow *f, bool sends, u32 portion, char **room, transfer *t) {
  transfer_step s = {.sends = sends,
                     .peer = f->peer,
                     .chunk = portion,
                     .portion = portion,
                     .data = f->slot,
                     .bytes = portion_bytes(f->part, portion),
                     .sum = f->sum};
  const i64 at = f->slot ? 0 : portion_offset(f->part, portion, !sends);
  if (!f->slot && at >= 0) s.data = f->piece + at;
  if (!f->slot && at < 0) {
    if (!*room) *room = portion_room(x, t->a, portion_bytes(f->part, 0));
    s.data = *room, s.part = f->part, s.piece = f->piece;
  }
  *vec_push(t->a, &t->step) = s;
}

static void put_portions(linked *x, const flows *sends, const flows *receives, transfer *t) {
  u32 most = 0;
  for (u32 k = 0; k < sends->n; k++) most = MAX(most, sends->v[k].part->portions);
  for (u32 k = 0; k < receives->n; k++) most = MAX(most, receives->v[k].part->portions);
  char **room = ZNEWN(t->a, char *, sends->n + receives->n + 1);
  if (eval_is_dry(x->v.m)) { // something moves, which is enough to know
    if (most) *vec_push(t->a, &t->step) = (transfer_step){.sends = true};
    return;
  }
  for (u32 p = 0; most && p < most + AHEAD; p++) {
    for (u32 k = 0; k < sends->n; k++)
      if (p < sends->v[k].part->portions) put_portion(x, &sends->v[k], true, p, &room[k], t);
    for (u32 k = 0; k < receives->n; k++)
      if (p >= AHEAD && p - AHEAD < receives->v[k].part->portions)
        put_portion(x, &receives->v[k], false, p - AHEAD, &room[sends->n + k], t);
  }
}

static bool comes(const movement *v, const taker *t) { // anything, from another rank?
  for (u32 k = 0; k < t->by.n; k++)
    if (!is_here(v, t->by.v[k])) return true;
  return false;
}

static bool goes_around(const movement *v, const own_part *o) {
  return v->m->o.ring_bytes && o->ring.n > (v->m->o.ring_bytes < 0 ? 2 : 0);
}

static void put_ring(linked *x, transfer *t) {
  const own_part *o = x->part;
  movement *v = &x->v;
  v->by = o->ring, x->came = ZNEWN(t->a, bool, v->by.n);
  for (u32 k = 0; k < v->by.n; k++) x->came[k] = v->i->op == OP_all_gather && k != o->place;
  ring_put(&(ring){.m = v->m,
                   .in = v->in,
                   .out = v->out,
                   .red = v->red,
                   .n = o->ring.n,
                   .at = o->place,
                   .member = o->ring.v},
           v->i->op, t, &x->kept);
}

// From each to each, targets one after the other, on every rank in the same order.
static void put_from_each(linked *x, transfer *t) {
  movement *v = &x->v;
  const own_part *o = x->part;
  flows sends = {0}, receives = {0};
  if (!o->found) find_takers(v, x->part);
  if (recorder_of(v->m)) record_pairs(v->m->record, o->only);
  if (o->own) v->by = o->own->by, x->came = ZNEWN(t->a, bool, v->by.n + 1);
  for (u32 k = 0; k < o->ntakers; k++) {
    if (&o->takers[k] != o->own)
      put_sends(v, &o->takers[k], t->a, &sends);
    else if (o->own && comes(v, o->own))
      put_receives(x, o->own, t->a, &receives);
  }
  put_portions(x, &sends, &receives, t);
}

// What moves, put together in t->a. Around a ring, and to servers and from them, every message is recorded.
static void put_linked(linked *x, transfer *t) {
  movement *v = &x->v;
  x->part = part_of(v);
  x->self = eval_member(v->m, v->out->g, v->m->link->rank);
  t->t = v->out->p->stored, t->red = v->red, t->where = v->i->where;
  x->around = goes_around(v, x->part);
  if (x->around)
    put_ring(x, t);
  else
    put_from_each(x, t);
  t->messages = recorder_of(v->m) && (x->around || attr_int(v->at, A_server, 0));
  if (t->messages) record_number_messages(v->m->record, t);
}

// The own piece, of what has come.
static bool finish_linked(linked *x, bool ok) {
  movement *v = &x->v;
  const bool there = x->self < 0 || x->there || (x->around && v->i->op != OP_all_gather);
  if (ok && !there)
    ok = v->red == RED_NONE ? movement_put_together(v, (u32)x->self) : movement_combine(v, (u32)x->self);
  forget(v, x->came);
  for (u32 k = 0; k < x->kept.n; k++) eval_drop(v->m, x->kept.v[k]);
  return ok;
}

// ---- by the library that joins the ranks ---------------------------------------------------------------------
static bool library_takes(const movement *v, const own_part *o) {
  const dtype t = v->out->p->stored;
  return v->m->o.ring_bytes == EVAL_RING_LIBRARY && v->i->op == OP_all_reduce && o->ring.n &&
         v->m->link->all_reduce && (t == DT_F32 || t == DT_F64) && (v->red == RED_SUM || v->red == RED_MAX);
}

static bool reduce_by_library(movement *v, const own_part *o) {
  interp *m = v->m;
  const u32 self = o->ring.v[o->place].member, n = o->ring.n;
  const dtype t = v->out->p->stored;
  assert(n > 0); // library_takes has asked
  const i64 count = v->out->p->at[self].elems;
  buf **own = &v->out->v->piece[self];
  if (!*own) *own = eval_buf(m, count * (i64)dtype_bytes(t));
  if (eval_is_dry(m)) return true;
  const void *in = v->in->v->piece[self]->data;
  if ((*own)->data != in) memcpy((*own)->data, in, (size_t)(*own)->bytes);
  arena_mark_t mark = arena_mark(m->scratch);
  u32 *rank = NEWN(m->scratch, u32, n);
  for (u32 k = 0; k < n; k++) rank[k] = eval_rank_of(m, v->out->g, o->ring.v[k].member);
  m->where.waits = rank[(o->place + 1) % n] + 1;
  m->where.count++;
  const bool ok =
      m->link->all_reduce(m->link->arg, rank, n, (*own)->data, count, (int)dtype_bytes(t), v->red == RED_MAX);
  m->where.waits = 0;
  m->where.count++;
  const u32 peer = rank[(o->place + 1) % n];
  arena_release(m->scratch, mark);
  return ok || eval_gone(m, peer, v->i->where);
}

static bool linked_movement(movement *v) {
  const own_part *o = part_of(v);
  if (library_takes(v, o)) return reduce_by_library(v, o);
  arena_mark_t mark = arena_mark(v->m->scratch);
  linked x = {.v = *v};
  transfer t = {.a = v->m->scratch};
  put_linked(&x, &t);
  t.timed = t.messages;
  bool ok = transfer_run(v->m, &t);
  if (t.messages) record_messages(v->m->record, &t);
  ok = finish_linked(&x, ok);
  arena_release(v->m->scratch, mark);
  return ok;
}

// ---- beside computation ----------------------------------------------------------------------------------
// An end whose pieces stay, whatever becomes of the value: its own holder refers to them, too.
static end *end_kept(arena *a, const end *e) {
  held *h = NEW(a, held);
  *h = *e->v;
  h->piece = ZNEWN(a, buf *, h->n + 1);
  eval_held_share(h, e->v);
  end *copy = NEW(a, end);
  *copy = (end){e->g, e->p, h};
  return copy;
}

static bool finish_beside(interp *m, void *arg, bool came) {
  linked *x = arg;
  const bool ok = finish_linked(x, came);
  eval_held_drop(m, x->v.in->v), eval_held_drop(m, x->v.out->v);
  return ok;
}

// It begins, and ends when its result is used, or with the step.
static bool movement_beside(movement *v) {
  errand *e = beside_new(v->m);
  linked *x = NEW(e->a, linked);
  *x = (linked){.v = *v, .beside = true};
  x->v.in = end_kept(e->a, v->in), x->v.out = end_kept(e->a, v->out);
  put_linked(x, &e->t);
  if (!e->t.step.n) { // nothing to wait for
    const bool done = finish_linked(x, true);
    eval_held_drop(v->m, v->out->v); // an operand that was lent to it, which x refers to as well
    eval_held_share(v->out->v, x->v.out->v);
    eval_held_drop(v->m, x->v.in->v), eval_held_drop(v->m, x->v.out->v);
    arena_free(e->a);
    return done;
  }
  if (x->self >= 0) {
    buf **piece = &v->out->v->piece[x->self];
    e->out = movement_room(&x->v, (u32)x->self);
    if (*piece != e->out) eval_drop(v->m, *piece), *piece = buf_share(e->out);
  }
  e->finish = finish_beside, e->arg = x;
  beside_begin(v->m, e);
  return true;
}

bool movement_linked(movement *v) {
  return beside_takes(v->m, v->i) ? movement_beside(v) : linked_movement(v);
}
