// ring.c - all-reduce, reduce-scatter and all-gather around a ring, in chunks.
//
// Idea: what moves is cut into as many segments as there are members. In a lap of n - 1 steps a member sends one segment to
// the next and receives one from the member before, which it sends in the step after. Combined on the way, a segment
// is complete where its lap ends (reduce-scatter); sent on as it is, all members have it (all-gather); an all-reduce is
// both. So each member sends (n - 1) / n of the bytes in a lap, and a segment is summed in one order, whoever wants it.
// A segment goes in chunks: the next member passes a chunk on while the one after it is under way.
#include "eval/internal.h"

typedef struct {
  char *data;
  i64 elems;
} segment;

typedef struct {
  const ring *r;
  transfer *t;
  segment *seg;
  i64 chunk; // elements
  char *came;
  u32 hop;
} lap;

static u32 rank_at(const ring *r, u32 place) {
  return eval_rank_of(r->m, r->out->g, r->member[place % r->n].member);
}

static void put_step(lap *l, bool sends, const segment *s, u32 chunk, bool combined) {
  const i64 from = l->chunk * chunk, n = MIN(s->elems - from, l->chunk), size = (i64)dtype_bytes(l->t->t);
  if (n <= 0) return;
  char *at = s->data + from * size;
  *vec_push(l->t->a, &l->t->step) =
      (transfer_step){.sends = sends,
                      .peer = rank_at(l->r, sends ? l->r->at + 1 : l->r->at + l->r->n - 1),
                      .hop = l->hop,
                      .chunk = chunk,
                      .data = combined ? l->came : at,
                      .into = combined ? at : NULL,
                      .bytes = n * size};
}

// From segment `first` on backwards: this member sends it, and receives the one before it.
static void put_lap(lap *l, u32 first, bool combine) {
  const u32 n = l->r->n;
  for (u32 s = 0; s + 1 < n; s++, l->hop++) {
    const segment *out = &l->seg[(first + n - s) % n], *in = &l->seg[(first + 2 * n - s - 1) % n];
    for (u32 c = 0; l->chunk * c < MAX(out->elems, in->elems); c++) {
      put_step(l, true, out, c, false);
      put_step(l, false, in, c, combine);
    }
  }
}

static const spot *in_spot(const ring *r, u32 k) { return &r->in->p->at[r->member[k].member]; }
static const spot *out_spot(const ring *r, u32 k) { return &r->out->p->at[r->member[k].member]; }

bool ring_takes(const ring *r, opcode op) {
  const u32 nd = r->out->p->t->s.nd;
  bool ok = r->n > 1 && r->in->p->stored == r->out->p->stored;
  for (u32 k = 0; k < r->n && ok; k++) {
    if (op != OP_all_gather) ok = eval_same(in_spot(r, k), in_spot(r, 0), nd);
    if (op != OP_reduce_scatter) ok = ok && eval_same(out_spot(r, k), out_spot(r, 0), nd);
    if (op == OP_all_reduce) ok = ok && eval_same(in_spot(r, k), out_spot(r, k), nd);
    if (op == OP_reduce_scatter) ok = ok && eval_holds_all(in_spot(r, k), out_spot(r, k), nd);
  }
  return ok;
}

// Of an all-reduce: as equal as they can be, in the result, which begins as what this member has, or is that.
static void cut_result(const ring *r, segment *seg) {
  const u32 self = r->member[r->at].member;
  const i64 all = out_spot(r, r->at)->elems, size = (i64)dtype_bytes(r->out->p->stored);
  buf **own = &r->out->v->piece[self];
  const buf *in = r->in->v->piece[self];
  if (!*own) *own = eval_buf(r->m, all * size);
  const buf *b = *own;
  if (!eval_is_dry(r->m) && b->data != in->data) memcpy(b->data, in->data, (size_t)b->bytes);
  for (i64 k = 0; k < r->n; k++) {
    const i64 from = all * k / r->n;
    seg[k] = (segment){b->data + from * size, all * (k + 1) / r->n - from};
  }
}

// Of a reduce-scatter: what every member is to have, of what this one has.
static void cut_by_members(const ring *r, segment *seg, buf_list *kept, arena *a) {
  const u32 self = r->member[r->at].member;
  for (u32 k = 0; k < r->n; k++) {
    buf *lent = k == r->at ? r->out->v->piece[self] : NULL; // all of what this one has, in its place
    buf *own = lent ? lent : eval_buf(r->m, spot_bytes(r->out->p, r->member[k].member));
    if (k == r->at)
      r->out->v->piece[self] = own;
    else
      *vec_push(a, kept) = own;
    if (own->bytes && !lent && !eval_is_dry(r->m))
      eval_copy(r->m, r->out->p, r->member[k].member, own->data, r->in->p, self, r->in->v->piece[self]->data,
                NULL);
    seg[k] = (segment){own->data, out_spot(r, k)->elems};
  }
}

// Of an all-gather: the pieces of all members, of which this one has one.
static void take_pieces(const ring *r, segment *seg) {
  for (u32 k = 0; k < r->n; k++) {
    buf **b = &r->in->v->piece[r->member[k].member];
    if (k != r->at) *b = eval_buf(r->m, spot_bytes(r->in->p, r->member[k].member));
    seg[k] = (segment){(*b)->data, in_spot(r, k)->elems};
  }
}

static i64 longest(const ring *r, const segment *seg) {
  i64 most = 0;
  for (u32 k = 0; k < r->n; k++) most = MAX(most, seg[k].elems);
  return most;
}

void ring_put(const ring *r, opcode op, transfer *t, buf_list *kept) {
  interp *m = r->m;
  lap l = {.r = r, .t = t, .seg = NEWN(t->a, segment, r->n)};
  l.chunk = MAX((m->o.ring_bytes < 0 ? EVAL_RING_BYTES : m->o.ring_bytes) / (i64)dtype_bytes(t->t), 1);
  if (op == OP_all_gather) {
    take_pieces(r, l.seg);
    put_lap(&l, r->at, false);
    return;
  }
  if (op == OP_all_reduce)
    cut_result(r, l.seg);
  else
    cut_by_members(r, l.seg, kept, t->a);
  buf *came = eval_buf(m, MIN(l.chunk, longest(r, l.seg)) * (i64)dtype_bytes(t->t));
  *vec_push(t->a, kept) = came, l.came = came->data;
  put_lap(&l, op == OP_all_reduce ? r->at : r->at + r->n - 1, true);
  if (op == OP_all_reduce) put_lap(&l, r->at + 1, false);
}
