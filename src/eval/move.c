// move.c - communication: what every collective does to the pieces, and nothing more.
//
// Idea: a movement is decided by who may give to whom (ir/givers.c). A piece is either put together from what its givers
// hold, each element from the first who has it, or combined from one contribution of every giver. An element that no giver holds is E_COVERAGE:
// a collective never reaches beyond its members to find it. Targets with the same givers and the same piece
// share the result.
#include "eval/movement.h"

// ---- one movement --------------------------------------------------------------------------------------

static const char *axis_name(const movement *v, u8 axis) {
  return sym_str(v->m->c, axis_get(v->m->p->sp, axis)->name);
}

giving movement_giving(const movement *v, arena *a) {
  giving x = giving_of(v->m->p, v->i);
  giving_end *from = NEWN(a, giving_end, v->nin);
  for (u32 e = 0; e < v->nin; e++) from[e] = (giving_end){v->in[e].g, v->in[e].p->t->lay};
  x.adds = v->red != RED_NONE, x.nfrom = v->nin, x.from = from;
  x.to = (giving_end){v->out->g, v->out->p->t->lay};
  return x;
}

bool eval_holds_all(const spot *x, const spot *of, u32 nd) {
  for (u32 d = 0; d < nd; d++) {
    if (!x->map[d] || x->map[d] == of->map[d]) continue;
    for (i64 k = 0; k < of->dim[d]; k++)
      if (x->map[d]->inverse[of->map[d] ? of->map[d]->index[k] : k] < 0) return false;
  }
  return true;
}

static bool not_covered(const movement *v, u32 to, i64 found) {
  const spot *s = &v->out->p->at[to];
  diag(v->m->c, E_COVERAGE, v->i->where, "%s: rank %u needs %lld elements and is given %lld", v->name,
       eval_rank_of(v->m, v->out->g, to), (long long)s->elems, (long long)found);
  return false;
}

static const void *given(const movement *v, giver g) { return v->in[g.opd].v->piece[g.member]->data; }

// The piece lies together in the only one that it can come from: it is a part of that.
static bool take_part(movement *v, u32 to) {
  if (v->i->op != OP_part || v->by.n != 1 || v->out->v->piece[to]) return false;
  const giver by = v->by.v[0];
  const end *e = &v->in[by.opd];
  const spot *from = &e->p->at[by.member], *s = &v->out->p->at[to];
  buf *b = e->v->piece[by.member];
  if (!b) return false;
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
  const giver by = v->by.n ? v->by.v[0] : (giver){0};
  const end *e = &v->in[by.opd];
  if (!v->by.n || v->i->op == OP_copy || v->out->v->piece[to] ||
      !eval_same(&e->p->at[by.member], &op->at[to], op->t->s.nd))
    return false;
  v->out->v->piece[to] = buf_share(e->v->piece[by.member]);
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
  for (u32 k = 0; k < v->by.n && found < s->elems; k++) {
    giver g = v->by.v[k];
    const holdings *ip = v->in[g.opd].p;
    bool again = !v->in[g.opd].v->piece[g.member]; // of another process, and not needed
    for (u32 j = 0; j < k && !again; j++)
      again = eval_same(&v->in[v->by.v[j].opd].p->at[v->by.v[j].member], &ip->at[g.member], nd);
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
    for (u32 k = 0; k < v->by.n; k++)
      eval_fold(v->m->scratch, acc, (const char *)given(v, v->by.v[k]) + from, t, w, v->red);
    eval_store(b->data + from, t, acc, w);
  }
}

// What of the piece of `to` each giver has, first; returns how many elements were found.
static i64 combine_cut(movement *v, u32 to, buf *b) {
  const holdings *op = v->out->p;
  const spot *s = &op->at[to];
  void *acc = NEWN(v->m->scratch, u64, s->elems), *tmp = arena_alloc(v->m->scratch, (size_t)b->bytes);
  eval_fold_begin(acc, op->stored, s->elems, v->red);
  i64 found = v->by.n ? s->elems : 0;
  for (u32 k = 0; k < v->by.n && found == s->elems; k++) {
    giver g = v->by.v[k];
    const holdings *ip = v->in[g.opd].p;
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
  if (v->by.n == 1 && take_whole(v, to)) return true;
  buf *b = movement_room(v, to);
  if (eval_is_dry(v->m)) return true;
  bool alike = v->by.n > 0;
  for (u32 k = 0; k < v->by.n && alike; k++)
    alike = eval_same(&v->in[v->by.v[k].opd].p->at[v->by.v[k].member], s, v->out->p->t->s.nd);
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
static bool same_givers(const givers *x, const givers *y) {
  return x->n == y->n && !memcmp(x->v, y->v, sizeof *x->v * x->n);
}

static bool whole_movement(movement *v) {
  if (v->m->link) return movement_linked(v);
  arena *a = v->m->scratch;
  arena_mark_t mark = arena_mark(a);
  const giving x = movement_giving(v, a);
  u32 n = v->out->p->n, nd = v->out->p->t->s.nd;
  givers *by = NEWN(a, givers, n);
  bool ok = true;
  for (u32 to = 0; to < n && ok; to++) {
    v->by = by[to] = givers_of(&x, a, to);
    buf **piece = v->out->v->piece;
    for (u32 j = 0; j < to && !piece[to]; j++)
      if (same_givers(&by[j], &by[to]) && eval_same(&v->out->p->at[j], &v->out->p->at[to], nd))
        piece[to] = buf_share(piece[j]);
    if (!piece[to]) ok = v->red == RED_NONE ? movement_put_together(v, to) : movement_combine(v, to);
  }
  arena_release(a, mark);
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

// Of a rooted collective: is there a root in the groups that have one?
static bool root_there(const movement *v) {
  const coll_row *row = coll_find(v->i->op);
  if (!row || (row->in != 'O' && row->out != 'O')) return true;
  const i64 root = attr_int(v->at, A_root, 0);
  const group g = row->out == 'O' ? v->in->g : v->out->g;
  const u32 n = group_offsets(v->m->p->sp, g, v->over, v->nover, NULL, 0);
  if (root >= 0 && root < n) return true;
  diag(v->m->c, E_ATTR, v->i->where, "%s: root %lld of a group of %u", v->name, (long long)root, n);
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
  v->by.v = NEW(v->m->scratch, giver), v->by.n = 1;
  for (u32 k = 0; k < op->n; k++) {
    if (!eval_mine(v->m, v->out->g, k)) continue;
    if (first && group_lead(v->m->p->sp, v->out->g, k, v->over, v->nover) == k) {
      v->by.v[0] = (giver){0, k};
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
  if (movement_known(v)) return movement_linked(v);
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
  if (!root_there(v)) return false;
  if (row && strchr("VA", row->in) && !reduction_of(v, in)) return false;
  if (v->i->op == OP_join) { // along time partial values are added; along space they stay partial
    bool time = v->nover && axis_get(v->m->p->sp, v->over[0])->temporal;
    if (time && layout_part_of(v->m->p->sp, in->p->t->lay, v->over[0]) != RED_NONE && !reduction_of(v, in))
      return false;
  }
  return whole_movement(v);
}

bool eval_move(interp *m, const instr *i, const point *when, const end *in, u32 nin, const end *out, u32 nout,
               own_part **of) {
  movement v = {.m = m,
                .i = i,
                .at = attrs_get(m->p, i->at),
                .when = when,
                .name = op_row_of(i->op)->name,
                .in = in,
                .out = out,
                .of = of};
  const attr *over = attr_get(v.at, A_over);
  if (over) v.over = over->u.axes, v.nover = over->n;
  v.nin = i->op == OP_join ? nin : 1;
  arena_mark_t mark = arena_mark(m->scratch);
  bool ok = true;
  for (u32 k = 0; k < nout && ok; k++, v.in++, v.out++) ok = move_one(&v);
  arena_release(m->scratch, mark);
  return ok;
}
