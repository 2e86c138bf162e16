// move.c - communication: what every collective does to the pieces, and nothing more.
//
// Idea: a movement is decided by who may give to whom. For every member of the target a list of givers is
// drawn up from the collective's own rule (its subgroup over the named axes, the root, the same rank, the
// other group); then the piece is either put together from what the givers hold, each element from the first
// who has it, or combined from one contribution of every giver. An element that no giver holds is E_COVERAGE:
// a collective never reaches beyond its members to find it. Targets with the same givers and the same piece
// share the result.
#include "eval/movement.h"

// ---- one movement --------------------------------------------------------------------------------------

static const char *axis_name(const movement *v, u8 axis) {
  return sym_str(v->m->c, axis_get(v->m->p->sp, axis)->name);
}

static void give(movement *v, u32 e, u32 member) {
  assert(v->n < v->cap);
  v->list[v->n++] = (giver){e, member};
}

// All members of the subgroup of `member` over the axes, in their order.
void movement_give_subgroup(movement *v, group g, u32 member) {
  u32 n = group_offsets(v->m->p->sp, g, v->over, v->nover, NULL, 0);
  u32 *offset = NEWN(v->m->scratch, u32, n), lead = group_lead(v->m->p->sp, g, member, v->over, v->nover);
  group_offsets(v->m->p->sp, g, v->over, v->nover, offset, n);
  for (u32 k = 0; k < n; k++) give(v, 0, lead + offset[k]);
}

static void give_rank(movement *v, u32 e, u32 rank) {
  int k = eval_member(v->m, v->in[e].g, rank);
  if (k >= 0) give(v, e, (u32)k);
}

// The rank at position `root` of the subgroup of `member`, or false if there is none.
static bool root_rank(const movement *v, group g, u32 member, u32 *rank) {
  i64 root = attr_int(v->at, A_root, 0);
  u32 n = group_offsets(v->m->p->sp, g, v->over, v->nover, NULL, 0);
  if (root < 0 || root >= n) {
    diag(v->m->c, E_ATTR, v->i->where, "%s: root %lld of a group of %u", v->name, (long long)root, n);
    return false;
  }
  u32 *offset = NEWN(v->m->scratch, u32, n);
  group_offsets(v->m->p->sp, g, v->over, v->nover, offset, n);
  *rank = eval_rank_of(v->m, g, group_lead(v->m->p->sp, g, member, v->over, v->nover) + offset[root]);
  return true;
}

// Do a giver and a receiver stand at the same coordinate on every axis over which the value is partial?
static bool same_summand(const movement *v, u32 from, u32 to) {
  const space *sp = v->m->p->sp;
  const layout_info *l = layout_get(sp, v->in->p->t->lay);
  for (u32 k = 0; k < l->npart; k++) {
    u8 axis = l->part[k].axis;
    if (axis_get(sp, axis)->temporal) continue;
    if (group_coord(sp, v->in->g, from, axis) != group_coord(sp, v->out->g, to, axis)) return false;
  }
  return true;
}

bool eval_holds_all(const spot *x, const spot *of, u32 nd) {
  for (u32 d = 0; d < nd; d++) {
    if (!x->map[d] || x->map[d] == of->map[d]) continue;
    for (i64 k = 0; k < of->dim[d]; k++)
      if (x->map[d]->inverse[of->map[d] ? of->map[d]->index[k] : k] < 0) return false;
  }
  return true;
}

// A send: see send_giver. The first one suffices nearly always.
static void give_across(movement *v, u32 to) {
  const holdings *ip = v->in->p, *op = v->out->p;
  for (u32 k = 0; k < send_givers(ip->n); k++) {
    const u32 from = send_giver(ip->n, op->n, to, k);
    if (from >= ip->n || !same_summand(v, from, to)) continue;
    give(v, 0, from);
    if (!k && eval_holds_all(&ip->at[from], &op->at[to], ip->t->s.nd)) return;
  }
}

// An exchange: of sums the summands in their order, else whatever a member has of its piece stays there.
static void give_exchange(movement *v, u32 to) {
  if (v->red == RED_NONE) give(v, 0, to);
  movement_give_subgroup(v, v->out->g, to);
}

// Draws up the givers of one target member. False: the rule itself is broken (diagnosed).
bool movement_givers(movement *v, u32 to) {
  u32 rank = eval_rank_of(v->m, v->out->g, to), root;
  v->n = 0;
  switch (v->i->op) {
  case OP_all_reduce:
  case OP_reduce_scatter:
  case OP_all_gather:
  case OP_all_to_all:
  case OP_halo_exchange: movement_give_subgroup(v, v->out->g, to); return true;
  case OP_exchange: give_exchange(v, to); return true;
  case OP_permute:
    if (v->nover)
      movement_give_subgroup(v, v->out->g, to);
    else
      for (u32 k = 0; k < v->in->p->n; k++)
        if (same_summand(v, k, to)) give(v, 0, k);
    return true;
  case OP_broadcast:
  case OP_scatter_from:
    if (!root_rank(v, v->out->g, to, &root)) return false;
    give_rank(v, 0, root);
    return true;
  case OP_reduce:
  case OP_gather_to: {
    int k = eval_member(v->m, v->in->g, rank);
    if (k < 0) return true;
    if (!root_rank(v, v->in->g, (u32)k, &root)) return false;
    if (root == rank) movement_give_subgroup(v, v->in->g, (u32)k);
    return true;
  }
  case OP_send: give_across(v, to); return true;
  case OP_join: // the operand that has this rank; along time, all of them
    for (u32 e = 0; e < v->nin; e++) give_rank(v, e, rank);
    return true;
  default: give_rank(v, 0, rank); return true; // shard, copy, part
  }
}

static bool not_covered(const movement *v, u32 to, i64 found) {
  const spot *s = &v->out->p->at[to];
  diag(v->m->c, E_COVERAGE, v->i->where, "%s: rank %u needs %lld elements and is given %lld", v->name,
       eval_rank_of(v->m, v->out->g, to), (long long)s->elems, (long long)found);
  return false;
}

static const void *given(const movement *v, giver g) { return v->in[g.end].v->piece[g.member]->data; }

// The piece lies together in the only one that it can come from: it is a part of that.
static bool take_part(movement *v, u32 to) {
  const end *e = &v->in[v->list[0].end];
  const spot *from = &e->p->at[v->list[0].member], *s = &v->out->p->at[to];
  buf *b = e->v->piece[v->list[0].member];
  if (v->i->op != OP_part || v->n != 1 || v->out->v->piece[to] || !b) return false;
  const meeting *x =
      meeting_of(v->m->scratch, s, from, v->out->p->t->s.nd, dtype_bytes(e->p->stored), INT64_MAX);
  const i64 at = x->elems == s->elems && x->portions == 1 ? portion_offset(x, 0, false) : -1;
  if (at < 0 || portion_offset(x, 0, true)) return false;
  v->out->v->piece[to] = eval_within(v->m, b, at, spot_bytes(v->out->p, to));
  return true;
}

// Where the first giver holds just this piece, nothing is copied, but to another memory.
static bool take_whole(movement *v, u32 to) {
  const holdings *op = v->out->p;
  const end *e = v->n ? &v->in[v->list[0].end] : NULL;
  if (!e || v->i->op == OP_copy || v->out->v->piece[to] ||
      !eval_same(&e->p->at[v->list[0].member], &op->at[to], op->t->s.nd))
    return false;
  v->out->v->piece[to] = buf_share(e->v->piece[v->list[0].member]);
  return true;
}

// Where the result goes that others may have begun to refer to.
buf *movement_room(movement *v, u32 to) {
  buf **b = &v->out->v->piece[to];
  if (!*b) *b = eval_buf(v->m, spot_bytes(v->out->p, to));
  return *b;
}

// The piece of `to` from what the givers hold, each element from the first giver.
bool movement_put_together(movement *v, u32 to) {
  const holdings *op = v->out->p;
  const spot *s = &op->at[to];
  u32 nd = op->t->s.nd;
  if (take_whole(v, to) || take_part(v, to)) return true;
  bool even = true;
  for (u32 e = 0; e < v->nin; e++) even = even && v->in[e].p->even;
  buf *b = movement_room(v, to);
  if (eval_is_dry(v->m)) return true;
  arena_mark_t mark = arena_mark(v->m->scratch);
  u8 *done = even ? NULL : ZNEWN(v->m->scratch, u8, s->elems); // even pieces are equal or disjoint
  i64 found = 0;
  for (u32 k = 0; k < v->n && found < s->elems; k++) {
    giver g = v->list[k];
    const holdings *ip = v->in[g.end].p;
    bool again = !v->in[g.end].v->piece[g.member]; // of another process, and not needed
    for (u32 j = 0; j < k && !again; j++)
      again = eval_same(&v->in[v->list[j].end].p->at[v->list[j].member], &ip->at[g.member], nd);
    if (!again) found += eval_copy(v->m, op, to, b->data, ip, g.member, given(v, g), done);
  }
  arena_release(v->m->scratch, mark);
  return found == s->elems || not_covered(v, to, found);
}

// All givers have just the piece of `to`: some elements at a time.
static void combine_alike(movement *v, u32 to, buf *b) {
  enum { CHUNK = 1 << 13 };
  const dtype t = v->out->p->stored;
  const i64 n = v->out->p->at[to].elems;
  void *acc = NEWN(v->m->scratch, u64, MIN(n, (i64)CHUNK));
  for (i64 at = 0; at < n; at += CHUNK) {
    const i64 w = MIN(n - at, (i64)CHUNK);
    const size_t from = (size_t)(at * dtype_bytes(t));
    eval_fold_begin(acc, t, w, v->red);
    for (u32 k = 0; k < v->n; k++)
      eval_fold(v->m->scratch, acc, (const char *)given(v, v->list[k]) + from, t, w, v->red);
    eval_store(b->data + from, t, acc, w);
  }
}

// What of the piece of `to` each giver has, first; returns how many elements were found.
static i64 combine_cut(movement *v, u32 to, buf *b) {
  const holdings *op = v->out->p;
  const spot *s = &op->at[to];
  void *acc = NEWN(v->m->scratch, u64, s->elems), *tmp = arena_alloc(v->m->scratch, (size_t)b->bytes);
  eval_fold_begin(acc, op->stored, s->elems, v->red);
  i64 found = v->n ? s->elems : 0;
  for (u32 k = 0; k < v->n && found == s->elems; k++) {
    giver g = v->list[k];
    const holdings *ip = v->in[g.end].p;
    const void *x = given(v, g);
    if (!eval_same(&ip->at[g.member], s, op->t->s.nd)) {
      found = eval_copy(v->m, op, to, tmp, ip, g.member, x, NULL);
      x = tmp;
    }
    eval_fold(v->m->scratch, acc, x, op->stored, s->elems, v->red);
  }
  eval_store(b->data, op->stored, acc, s->elems);
  return found;
}

// The piece of `to` combined from all givers, in their order, rounded once. The sum of one summand is that summand: a
// gradient that was accumulated over the microbatches is complete as it is.
bool movement_combine(movement *v, u32 to) {
  const spot *s = &v->out->p->at[to];
  if (v->n == 1 && take_whole(v, to)) return true;
  buf *b = movement_room(v, to);
  if (eval_is_dry(v->m)) return true;
  bool alike = v->n > 0;
  for (u32 k = 0; k < v->n && alike; k++)
    alike = eval_same(&v->in[v->list[k].end].p->at[v->list[k].member], s, v->out->p->t->s.nd);
  arena_mark_t mark = arena_mark(v->m->scratch);
  i64 found = s->elems;
  if (alike)
    combine_alike(v, to, b);
  else
    found = combine_cut(v, to, b);
  arena_release(v->m->scratch, mark);
  return found == s->elems || not_covered(v, to, found);
}

// ---- all members ------------------------------------------------------------------------------------------
static bool whole_movement(movement *v) {
  if (v->m->link) return movement_linked(v);
  arena_mark_t mark = arena_mark(v->m->scratch);
  u32 n = v->out->p->n, *begin = NEWN(v->m->scratch, u32, n + 1), nd = v->out->p->t->s.nd;
  v->cap = v->nin;
  for (u32 e = 0; e < v->nin; e++) v->cap = MAX(v->cap, v->in[e].p->n + 1);
  VEC(giver) lists = {0};
  bool ok = true;
  for (u32 to = 0; to < n && ok; to++) {
    begin[to] = lists.n;
    vec_reserve(v->m->scratch, &lists, lists.n + v->cap);
    assert(lists.v); // there is room
    v->list = lists.v + lists.n;
    ok = movement_givers(v, to);
    if (!ok) break;
    lists.n += v->n;
    buf **piece = v->out->v->piece;
    for (u32 j = 0; j < to && !piece[to]; j++)
      if (begin[j + 1] - begin[j] == v->n && !memcmp(lists.v + begin[j], v->list, sizeof(giver) * v->n) &&
          eval_same(&v->out->p->at[j], &v->out->p->at[to], nd))
        piece[to] = buf_share(piece[j]);
    begin[to + 1] = lists.n;
    if (!piece[to]) ok = v->red == RED_NONE ? movement_put_together(v, to) : movement_combine(v, to);
  }
  arena_release(v->m->scratch, mark);
  return ok;
}

// ---- what the layouts must say -------------------------------------------------------------------------

static bool wrong_role(const movement *v, u8 axis, const char *side, const char *want) {
  diag(v->m->c, E_LAYOUT, v->i->where, "%s over %s: the %s must be %s over it", v->name, axis_name(v, axis),
       side, want);
  return false;
}

// V partial, R and D anything that is not: a piece that is not split is found out by its elements.
static bool role_fits(const movement *v, char part, const end *e, const char *side) {
  for (u32 k = 0; k < v->nover; k++) {
    bool partial = layout_part_of(v->m->p->sp, e->p->t->lay, v->over[k]) != RED_NONE;
    if (part == 'V' && !partial) return wrong_role(v, v->over[k], side, "partial");
    if (!strchr("VXA", part) && partial) return wrong_role(v, v->over[k], side, "complete");
  }
  return true;
}

static bool is_over(const movement *v, u8 axis) {
  for (u32 k = 0; k < v->nover; k++)
    if (v->over[k] == axis) return true;
  return false;
}

// Partial over the other axes before and after alike: nobody completes them on the way.
static bool keeps_partial(const movement *v, const end *in) {
  const space *sp = v->m->p->sp;
  layout from = in->p->t->lay, to = v->out->p->t->lay;
  for (int side = 0; side < 2; side++) {
    const layout_info *l = layout_get(sp, side ? to : from);
    for (u32 k = 0; k < l->npart; k++)
      if (!is_over(v, l->part[k].axis) &&
          layout_part_of(sp, side ? from : to, l->part[k].axis) != l->part[k].red)
        return wrong_role(v, l->part[k].axis, side ? "operand" : "result",
                          red_name((reduction)l->part[k].red));
  }
  return true;
}

static bool same_tensor(const movement *v, const end *in) {
  if (shape_same(&in->p->t->s, &v->out->p->t->s)) return true;
  diag(v->m->c, E_SHAPE, v->i->where, "%s: operand and result are tensors of different shapes", v->name);
  return false;
}

// The reduction that the operand's layout names for the axes combined over.
static bool reduction_of(movement *v, const end *in) {
  for (u32 k = 0; k < v->nover; k++) {
    reduction r = layout_part_of(v->m->p->sp, in->p->t->lay, v->over[k]);
    if (k && r != v->red) {
      diag(v->m->c, E_LAYOUT, v->i->where, "%s over %s and %s at once: one combines by %s, the other by %s",
           v->name, axis_name(v, v->over[0]), axis_name(v, v->over[k]), red_name(v->red), red_name(r));
      return false;
    }
    v->red = r;
  }
  return true;
}

// `partial`: the first member of every subgroup keeps the value, at the first coordinate in time; all others
// hold what changes nothing.
static bool make_partial(movement *v) {
  if (!reduction_of(v, v->out)) return false;
  const holdings *op = v->out->p;
  bool first = true;
  for (u32 k = 0; k < v->nover; k++)
    first = first && !(v->when->fixed >> v->over[k] & 1 && v->when->at.at[v->over[k]]);
  v->list = NEW(v->m->scratch, giver);
  v->cap = 1;
  for (u32 k = 0; k < op->n; k++) {
    if (!eval_mine(v->m, v->out->g, k)) continue;
    if (first && group_lead(v->m->p->sp, v->out->g, k, v->over, v->nover) == k) {
      v->n = 0;
      give(v, 0, k);
      if (!movement_put_together(v, k)) return false;
      continue;
    }
    arena_mark_t mark = arena_mark(v->m->scratch);
    buf *b = v->out->v->piece[k] = eval_buf(v->m, spot_bytes(op, k));
    if (eval_is_dry(v->m)) continue;
    void *acc = NEWN(v->m->scratch, u64, op->at[k].elems);
    eval_fold_begin(acc, op->stored, op->at[k].elems, v->red);
    eval_store(b->data, op->stored, acc, op->at[k].elems);
    arena_release(v->m->scratch, mark);
  }
  return true;
}

static bool move_one(movement *v) {
  const coll_row *row = coll_find(v->i->op);
  const end *in = v->in;
  v->red = RED_NONE;
  for (u32 e = 0; e < v->nin; e++)
    if (!same_tensor(v, &in[e])) return false;
  if (row && (!role_fits(v, row->in, in, "operand") || !role_fits(v, row->out, v->out, "result")))
    return false;
  if (v->i->op != OP_join && v->i->op != OP_part && !keeps_partial(v, in)) return false;
  bool same_group =
      v->i->op == OP_join || v->i->op == OP_part || !row || strchr("OX", row->in) || strchr("OX", row->out);
  if (!same_group && in->g.i != v->out->g.i) {
    diag(v->m->c, E_LAYOUT, v->i->where, "%s: operand and result are on different groups", v->name);
    return false;
  }
  if (v->i->op == OP_partial) return make_partial(v);
  if (row && strchr("VA", row->in) && !reduction_of(v, in)) return false;
  if (v->i->op == OP_join) { // along time partial values are added; along space they stay partial
    bool time = v->nover && axis_get(v->m->p->sp, v->over[0])->temporal;
    if (time && layout_part_of(v->m->p->sp, in->p->t->lay, v->over[0]) != RED_NONE && !reduction_of(v, in))
      return false;
  }
  return whole_movement(v);
}

bool eval_move(interp *m, const instr *i, const point *when, const end *in, u32 nin, const end *out,
               u32 nout) {
  movement v = {.m = m,
                .i = i,
                .at = attrs_get(m->p, i->at),
                .when = when,
                .name = op_row_of(i->op)->name,
                .in = in,
                .out = out};
  const attr *over = attr_get(v.at, A_over);
  if (over) v.over = over->u.axes, v.nover = over->n;
  v.nin = i->op == OP_join ? nin : 1;
  arena_mark_t mark = arena_mark(m->scratch);
  bool ok = true;
  for (u32 k = 0; k < nout && ok; k++, v.in++, v.out++) ok = move_one(&v);
  arena_release(m->scratch, mark);
  return ok;
}
