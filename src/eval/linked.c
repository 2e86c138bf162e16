// linked.c - what one process does of a communication between processes: what it has leaves, what it needs comes, and its own
// piece is made of that.
//
// Idea: pieces move in portions (portions.c), so that nothing but the piece itself is held beside what it is made of: what
// is put together comes to its place, and a sum is made a portion at a time of what has come from all, where the
// operand lies if that ends. All sends of a portion are put before all receives of an earlier one: they wait for
// nobody, and both directions of a link are used at once.
#include "eval/movement.h"

enum { PORTION = 63 << 10, AHEAD = 2 }; // bytes; portions that are under way

// How many elements of the piece of `to` the giver has.
static i64 overlap(const movement *v, u32 to, giver g) {
  const holdings *ip = v->in[g.end].p, *op = v->out->p;
  i64 n = 1;
  for (u32 d = 0; d < op->t->s.nd && n; d++) {
    const imap *x = ip->at[g.member].map[d], *y = op->at[to].map[d];
    i64 both = op->at[to].dim[d];
    if (x && x != y) {
      both = 0;
      for (i64 j = 0; j < op->at[to].dim[d]; j++) both += x->inverse[y ? y->index[j] : j] >= 0;
    }
    n *= both;
  }
  return n;
}

// Does the piece of `to` need what giver k of its list holds? Both ends must say the same.
static bool needed(const movement *v, u32 to, u32 k) {
  const u32 nd = v->out->p->t->s.nd;
  const spot *at = &v->in[v->list[k].end].p->at[v->list[k].member];
  if (v->red != RED_NONE) return true;
  if (eval_same(&v->in[v->list[0].end].p->at[v->list[0].member], &v->out->p->at[to], nd)) return !k;
  for (u32 j = 0; j < k; j++)
    if (eval_same(&v->in[v->list[j].end].p->at[v->list[j].member], at, nd)) return false;
  return overlap(v, to, v->list[k]) > 0;
}

static void forget(movement *v, const bool *came) {
  for (u32 k = 0; k < v->n; k++) {
    buf **b = &v->in[v->list[k].end].v->piece[v->list[k].member];
    if (came[k]) eval_drop(v->m, *b), *b = NULL;
  }
}

// A movement of which this process does what concerns its own rank.
typedef struct {
  movement v;
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
  return eval_rank_of(v->m, v->in[g.end].g, g.member) == v->m->link->rank;
}

static const spot *spot_of(const movement *v, giver g) { return &v->in[g.end].p->at[g.member]; }

static meeting *meet(const movement *v, arena *a, const spot *to, giver g) {
  return meeting_of(a, to, spot_of(v, g), v->out->p->t->s.nd, dtype_bytes(v->in[g.end].p->stored),
                    most_of(v));
}

// Do the parts of the piece of `to` that its givers have fit together as they come: all of it from each that is summed, else
// every element from one? All ends say the same.
static bool fits_in_portions(const movement *v, u32 to, arena *a) {
  const spot *s = &v->out->p->at[to];
  bool even = v->out->p->even, ok = true;
  i64 found = 0;
  u32 n = 0;
  for (u32 k = 0; k < v->n && v->red != RED_NONE; k++)
    if (!eval_holds_all(spot_of(v, v->list[k]), s, v->out->p->t->s.nd)) return false;
  if (v->red != RED_NONE) return v->n > 1;
  const meeting **part = NEWN(a, const meeting *, v->n + 1);
  for (u32 k = 0; k < v->n; k++) {
    if (!needed(v, to, k)) continue;
    part[n] = meet(v, a, s, v->list[k]);
    even = even && v->in[v->list[k].end].p->even, found += part[n++]->elems;
  }
  for (u32 k = 0; k < n && !even && ok; k++)
    for (u32 j = 0; j < k && ok; j++) ok = meetings_part(part[j], part[k]);
  return ok && found == s->elems;
}

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

static const summing *sum_of(linked *x, u32 to, arena *a) {
  movement *v = &x->v;
  const spot *s = &v->out->p->at[to];
  summing *sum = NEW(a, summing);
  *sum = (summing){.n = v->n, .t = v->out->p->stored, .red = v->red};
  sum->part = NEWN(a, const meeting *, v->n), sum->piece = ZNEWN(a, const char *, v->n);
  sum->slot = ZNEWN(a, char *, v->n), sum->at = NEWN(a, const char *, v->n);
  sum->to = movement_room(v, to)->data;
  for (u32 k = 0; k < v->n; k++) {
    sum->part[k] = meet(v, a, s, v->list[k]);
    const bool here = is_here(v, v->list[k]);
    if (here) sum->piece[k] = v->in[v->list[k].end].v->piece[v->list[k].member]->data;
    if (!here || !eval_same(spot_of(v, v->list[k]), s, v->out->p->t->s.nd))
      sum->slot[k] = room_beside(x, a, portion_bytes(sum->part[k], 0));
  }
  return sum;
}

// What the piece of `to`, this rank's own, is made of comes.
static void put_receives(linked *x, u32 to, bool portions, arena *a, flows *out) {
  movement *v = &x->v;
  const summing *sum = portions && v->red != RED_NONE ? sum_of(x, to, a) : NULL;
  char *result = portions ? movement_room(v, to)->data : NULL;
  const spot *s = &v->out->p->at[to];
  char *room = portions && !sum ? room_beside(x, a, PORTION) : NULL;
  u32 last = 0;
  x->there = portions;
  for (u32 k = 0; k < v->n; k++) {
    const giver g = v->list[k];
    const end *e = &v->in[g.end];
    if (!needed(v, to, k)) continue;
    if (is_here(v, g)) {
      if (portions && !sum && !eval_is_dry(v->m))
        portion_copy(meeting_of(a, s, spot_of(v, g), e->p->t->s.nd, dtype_bytes(e->p->stored), PORTION),
                     result, e->v->piece[g.member]->data, room);
      continue;
    }
    flow f = {.peer = eval_rank_of(v->m, e->g, g.member)};
    if (sum)
      f.part = sum->part[k], f.slot = sum->slot[k];
    else if (portions)
      f.part = meet(v, a, s, g), f.piece = result;
    else {
      buf *b = e->v->piece[g.member] = eval_buf(v->m, spot_bytes(e->p, g.member));
      x->came[k] = true;
      f.part = meet(v, a, spot_of(v, g), g), f.piece = b->data;
    }
    last = out->n;
    *vec_push(a, out) = f;
  }
  if (sum && out->n) out->v[last].sum = sum;
}

static void put_sends(const movement *v, u32 to, bool portions, arena *a, flows *out) {
  for (u32 k = 0; k < v->n; k++) {
    const giver g = v->list[k];
    if (!is_here(v, g) || !needed(v, to, k)) continue;
    *vec_push(a, out) = (flow){.part = meet(v, a, portions ? &v->out->p->at[to] : spot_of(v, g), g),
                               .peer = eval_rank_of(v->m, v->out->g, to),
                               .piece = v->in[g.end].v->piece[g.member]->data};
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

// Is anything of the own piece needed from another rank?
static bool needed_elsewhere(const movement *v, u32 to) {
  for (u32 k = 0; k < v->n; k++)
    if (!is_here(v, v->list[k]) && needed(v, to, k)) return true;
  return false;
}

static bool concerns(const movement *v, bool own) { // is this rank a giver, or does anything come to it?
  for (u32 k = 0; k < v->n; k++)
    if (is_here(v, v->list[k]) != own) return true;
  return false;
}

// The members of this rank's subgroup as a ring, if the collective can go around one.
static bool ring_of(linked *x, arena *a, ring *r) {
  movement *v = &x->v;
  const opcode op = v->i->op;
  if (x->self < 0 || !v->m->o.ring_bytes) return false;
  if (op != OP_all_reduce && op != OP_reduce_scatter && op != OP_all_gather) return false;
  u32 *member = NEWN(a, u32, v->cap);
  v->n = 0;
  movement_give_subgroup(v, v->out->g, (u32)x->self);
  if (v->m->o.ring_bytes < 0 && v->n <= 2) return false;
  *r = (ring){.m = v->m, .in = v->in, .out = v->out, .red = v->red, .n = v->n, .member = member};
  for (u32 k = 0; k < v->n; k++) {
    member[k] = v->list[k].member;
    x->came[k] = op == OP_all_gather && member[k] != (u32)x->self;
    if (member[k] == (u32)x->self) r->at = k;
  }
  return ring_takes(r, op);
}

// From each to each, targets one after the other, on every rank in the same order.
static bool put_from_each(linked *x, transfer *t) {
  movement *v = &x->v;
  recorder *rec = recorder_of(v->m);
  flows sends = {0}, receives = {0};
  giver *of_self = NEWN(t->a, giver, v->cap);
  u32 nself = 0;
  bool ok = true;
  for (u32 to = 0; to < v->out->p->n && ok; to++) {
    ok = movement_givers(v, to);
    if (ok && rec) record_pairs(rec, v->n == 1 && v->list->member == to);
    const bool own = (int)to == x->self;
    if (ok && concerns(v, own)) {
      const bool portions = fits_in_portions(v, to, t->a);
      if (!own)
        put_sends(v, to, portions, t->a, &sends);
      else if (needed_elsewhere(v, to))
        put_receives(x, to, portions, t->a, &receives);
    }
    if (own) memcpy(of_self, v->list, v->n * sizeof *of_self), nself = v->n;
  }
  if (ok) put_portions(x, &sends, &receives, t);
  v->list = of_self, v->n = nself;
  return ok;
}

// What moves, put together in t->a. Around a ring, and to servers and from them, every message is recorded.
static bool put_linked(linked *x, transfer *t) {
  movement *v = &x->v;
  ring r;
  v->cap = v->nin;
  for (u32 e = 0; e < v->nin; e++) v->cap = MAX(v->cap, v->in[e].p->n + 1);
  v->list = NEWN(t->a, giver, v->cap), x->came = ZNEWN(t->a, bool, v->cap + 1);
  x->self = eval_member(v->m, v->out->g, v->m->link->rank);
  t->t = v->out->p->stored, t->red = v->red, t->where = v->i->where;
  x->around = ring_of(x, t->a, &r);
  if (x->around)
    ring_put(&r, v->i->op, t, &x->kept);
  else if (!put_from_each(x, t))
    return false;
  t->messages = recorder_of(v->m) && (x->around || attr_int(v->at, A_server, 0));
  if (t->messages) record_number_messages(v->m->record, t);
  return true;
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

static bool linked_movement(movement *v) {
  arena_mark_t mark = arena_mark(v->m->scratch);
  linked x = {.v = *v};
  transfer t = {.a = v->m->scratch};
  bool ok = put_linked(&x, &t);
  t.timed = t.messages;
  ok = ok && transfer_run(v->m, &t);
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
  const bool ok = put_linked(x, &e->t);
  if (!ok || !e->t.step.n) { // nothing to wait for
    const bool done = finish_linked(x, ok);
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
