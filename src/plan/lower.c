// lower.c - the program of one rank: what is left of a distributed program when everybody else is taken away.
// Not an executable for a runtime: no buffers, no addresses.
//
// Idea: space goes, time stays. Every group becomes the same mesh fixed at the rank's own coordinates, every
// tensor the piece that the rank holds there, so the result is an ordinary program on groups of one rank, in
// which microbatches are still an axis. Instructions in which the rank takes no part are gone; an instruction
// in which it does stands exactly once. What is no longer said by layouts is said by attributes:
//
//   peers  on collectives: the ranks that take part, this one among them, in the order of the axes `over`
//   gives  on sends and the like: which elements go to which rank, "12 [0-4,*], 13 [4-8,*]"
//   gets   likewise which come from which; of an element named twice the first counts
//   whole  on operators that need to know where in the tensor they are: their types before, "[64{dp},8] ->
//   []+dp";
//          the other attributes then are those of the whole
//
// Elements are counted in the whole tensor, or in its piece of the point in time at hand. `part` and `join`
// over space are `identity`: the rank holds the value already.
#include "plan/internal.h"

typedef struct {
  type from, to;
  group fg, tg;
  u32 op;
  attrset at;
  attrset ends;
} exchange;

typedef struct {
  const prog *s;   // from
  prog *p;         // to: the same axes, meshes, groups and layouts by the same ids
  arena *keep, *a; // what is remembered; scratch of one instruction
  u32 rank;
  bool failed;
  u32 ngroups, *home;      // per group of s: its image in p + 1; 1: the rank is not in it; 0: not asked yet
  hmap func_map, type_map; // (function or type, group) -> function or type of p + 1
  VEC(exchange) exchanges;
  hmap exchange_map;
} lowering;

typedef struct {
  const func_info *f;
  group g;    // that it is called on
  value *map; // 0: not on this rank
  builder b;
} scope;

// ---- groups and types ----------------------------------------------------------------------------------
static bool has_rank(lowering *w, group g) { return group_place(w->s->sp, g, w->rank) >= 0; }

static group home(lowering *w, group g) { // the rank is in it
  if (!g.i || w->home[g.i]) return (group){g.i ? w->home[g.i] - 1 : 0};
  space *sp = w->p->sp;
  mesh m = group_get(sp, g)->m;
  group all = group_all(sp, m);
  coords c;
  coords_of(sp, all, (u32)group_member(sp, all, w->rank), NULL, &c);
  group_axis fix[MESH_AXES];
  const mesh_info *mi = mesh_get(sp, m);
  for (u32 k = 0; k < mi->naxes; k++) fix[k] = (group_axis){.axis = mi->axis[k], .at = c.at[mi->axis[k]]};
  group h = mi->naxes ? group_of(sp, m, fix, mi->naxes) : all;
  w->home[g.i] = h.i + 1;
  return h;
}

// A split beside another one of its dimension that is cut out, where one is in pieces and the other in
// microbatches: every microbatch has the same pieces.
static void cut_pieces(lowering *w, const type_info *t, const lay_split *out, const coords *c, lay_split *s) {
  space *sp = w->s->sp;
  const i64 extent = t->s.dim[s->dim];
  const bool in_pieces = s->table;
  const pieces of = pieces_untile(sp, (pieces){in_pieces ? s->table : out->table},
                                  extent / (in_pieces ? out->stride : s->stride), 1);
  if (!of.i && !w->failed) {
    w->failed = true;
    strbuf b = {.a = ctx_arena(w->p->c)};
    layout_print(sp, t->lay, t->s.nd, t->s.dim, &b);
    diag(w->p->c, E_LIMIT, (loc){0},
         "%s: dimension %u is split unevenly over ranks, and not in every microbatch alike", sb_str(&b),
         s->dim);
    diag_hint(w->p->c, "split it over microbatches first, or into equal pieces");
  }
  if (!of.i) return;
  const pieces_info *p = pieces_get(sp, of);
  if (in_pieces) {
    s->table = (u16)pieces_of(w->p->sp, p->npieces, p->begin, p->bound, p->extent).i;
    return;
  }
  s->stride = 0;
  for (u32 i = p->begin[c->at[out->axis]]; i < p->begin[c->at[out->axis] + 1]; i++)
    s->stride += p->bound[2 * i + 1] - p->bound[2 * i];
}

// The splits of a layout that lie in time, or those that do not, as if the others had been cut out of the
// tensor. dim: its extents without them, at coordinates c.
static layout_info cut_out(lowering *w, const type_info *t, bool time, const coords *c, i64 *dim) {
  const space *sp = w->p->sp;
  const layout_info *l = layout_get(sp, t->lay);
  layout_info in = {0}, out = {0};
  for (u32 k = 0; k < l->nsplit; k++) {
    lay_split s = l->split[k];
    if (axis_get(sp, s.axis)->temporal != time) {
      out.split[out.nsplit++] = s;
      continue;
    }
    for (u32 j = 0; j < l->nsplit; j++) {
      const lay_split *o = &l->split[j];
      if (o->dim != s.dim || axis_get(sp, o->axis)->temporal == time) continue;
      if (s.table || o->table) {
        cut_pieces(w, t, o, c, &s);
        continue;
      }
      if (o->stride < s.stride) s.stride /= axis_size(sp, o->axis);
    }
    in.split[in.nsplit++] = s;
  }
  layout others = layout_of(w->p->sp, &out);
  for (u32 d = 0; d < t->s.nd; d++)
    dim[d] = w->failed ? 1 : layout_local_extent(sp, others, (u8)d, t->s.dim[d], c);
  for (u32 k = 0; k < l->npart; k++)
    if (axis_get(sp, l->part[k].axis)->temporal == time) in.part[in.npart++] = l->part[k];
  return in;
}

// Elements of a table on one dimension; of a group restricted to a subset the coordinate is the position in
// it.
static coords coords_in(lowering *w, group g, u32 member) {
  coords c = {{0}};
  if (g.i) coords_of(w->p->sp, g, member, NULL, &c);
  return c;
}

static type lower_type(lowering *w, type t, group g); // none: not on this rank

static type new_type(lowering *w, type t, group g) {
  type_info i = *type_get(w->s, t);
  if (i.tuple) {
    u32 n = 0;
    type *e = NEWN(w->a, type, i.n + 1);
    for (u32 k = 0; k < i.n; k++)
      if ((e[n] = lower_type(w, i.elem[k], g)).i) n++;
    return n || !i.n ? type_tuple(w->p, e, n) : (type){0};
  }
  group at = group_bind(i.g, g);
  if (!has_rank(w, at)) return (type){0};
  coords c = coords_in(w, at, at.i ? (u32)group_member(w->s->sp, at, w->rank) : 0);
  shape s = i.s;
  layout_info li = cut_out(w, &i, true, &c, s.dim);
  return type_tensor(w->p, &s, layout_of(w->p->sp, &li), home(w, i.g));
}

static type lower_type(lowering *w, type t, group g) {
  const u64 key = hash_u64((u64)t.i << 32 | g.i, 1);
  u32 known = hmap_get(&w->type_map, key);
  if (!known) hmap_add(w->keep, &w->type_map, key, known = new_type(w, t, g).i + 1);
  return (type){known - 1};
}

// ---- boxes of elements ---------------------------------------------------------------------------------
static box piece_of(lowering *w, const type_info *t, group g, u32 member) {
  i64 dim[DIMS_MAX];
  layout_info li = cut_out(w, t, false, &(coords){{0}}, dim);
  li.npart = 0;
  const layout l = layout_of(w->p->sp, &li);
  return w->failed ? (box){0} : box_of(w->p->sp, w->a, l, t->s.nd, dim, g, member);
}

// "[0-4,*]"; many equal ranges at equal distances as "0-1+2-3+..+14-15".
static void put_box(strbuf *out, const box *b, u32 nd, const i64 *dim) {
  sb_char(out, '[');
  for (u32 d = 0; d < nd; d++) {
    const ranges *r = &b->d[d];
    if (d) sb_char(out, ',');
    if (r->n == 1 && r->v[0][0] == 0 && r->v[0][1] == dim[d]) {
      sb_char(out, '*');
      continue;
    }
    bool regular = r->n > 4;
    for (u32 k = 2; k < r->n && regular; k++)
      regular = r->v[k][0] - r->v[k - 1][0] == r->v[1][0] - r->v[0][0] &&
                r->v[k][1] - r->v[k - 1][1] == r->v[1][1] - r->v[0][1];
    for (u32 k = 0; k < r->n; k++) {
      if (regular && k == 2) sb_put(out, "+.."), k = r->n - 1;
      sb_fmt(out, "%s%lld-%lld", k ? "+" : "", (long long)r->v[k][0], (long long)r->v[k][1]);
    }
  }
  sb_char(out, ']');
}

// ---- who gives what to whom ----------------------------------------------------------------------------
// A movement and the pieces of its source.
typedef struct {
  const type_info *from, *to;
  giving_end source;
  giving x;
  box *have;
} flow;

static void flow_open(lowering *w, const prog *p, const func_info *f, const instr *i, group g, flow *x) {
  x->from = val_type(p, f, opd_of(f, i, 0)), x->to = val_type(p, f, i->res);
  x->source = (giving_end){group_bind(x->from->g, g), x->from->lay};
  x->x = giving_of(p, i);
  x->x.from = &x->source, x->x.to = (giving_end){group_bind(x->to->g, g), x->to->lay};
  const u32 n = group_size(p->sp, x->source.g);
  x->have = NEWN(w->a, box, n);
  for (u32 k = 0; k < n; k++) x->have[k] = piece_of(w, x->from, x->source.g, k);
}

static gifts incoming(lowering *w, const flow *x, u32 to) {
  const box want = piece_of(w, x->to, x->x.to.g, to), *have = x->have;
  return w->failed ? (gifts){0} : gifts_of(&x->x, w->a, to, x->from->s.nd, &want, &have);
}

static u32 giver_rank(const flow *x, const gift *g) {
  return group_rank(x->x.sp, x->source.g, g->from.member);
}

static void put_message(lowering *w, strbuf *b, const flow *x, u32 rank, const box *what) {
  i64 dim[DIMS_MAX];
  cut_out(w, x->from, false, &(coords){{0}}, dim);
  sb_fmt(b, "%s%u ", b->n ? ", " : "", rank);
  put_box(b, what, x->from->s.nd, dim);
}

double plan_send_bytes(prog *p, const func_info *f, const instr *send) {
  lowering *w = &(lowering){.s = p, .p = p, .a = arena_new()};
  flow x;
  double elems = 0;
  flow_open(w, p, f, send, (group){0}, &x);
  for (u32 k = 0; k < group_size(p->sp, x.x.to.g) && !w->failed; k++) {
    const gifts m = incoming(w, &x, k);
    for (u32 j = 0; j < m.n; j++)
      if (giver_rank(&x, &m.v[j]) != group_rank(p->sp, x.x.to.g, k))
        elems += (double)box_elems(&m.v[j].what, x.from->s.nd);
  }
  arena_free(w->a);
  return elems * (double)dtype_bytes(x.from->s.t);
}

// The attributes `gives` and `gets` of a movement, beside those that it has.
static attrset ends_of(lowering *w, const scope *f, const instr *i, attrset at) {
  arena_mark_t mark = arena_mark(w->a);
  strbuf gives = {.a = ctx_arena(w->p->c)}, gets = gives;
  flow x;
  flow_open(w, w->s, f->f, i, f->g, &x);
  const bool source = has_rank(w, x.source.g);
  for (u32 to = 0; to < group_size(w->s->sp, x.x.to.g) && !w->failed; to++) {
    const u32 r = group_rank(w->s->sp, x.x.to.g, to);
    if (!source && r != w->rank) continue;
    const gifts m = incoming(w, &x, to);
    for (u32 k = 0; k < m.n; k++) {
      const u32 from = giver_rank(&x, &m.v[k]);
      if (r == w->rank) put_message(w, &gets, &x, from, &m.v[k].what);
      if (from == w->rank) put_message(w, &gives, &x, r, &m.v[k].what);
    }
  }
  attrs old = attrs_get(w->p, at);
  attr v[A_COUNT];
  u32 n = old.n;
  if (n) memcpy(v, old.v, sizeof *v * n);
  if (source) v[n++] = attr_s(A_gives, sym_of(w->p->c, sb_str(&gives)));
  if (has_rank(w, x.x.to.g)) v[n++] = attr_s(A_gets, sym_of(w->p->c, sb_str(&gets)));
  attrset out = attrs_of(w->p, v, n);
  arena_release(w->a, mark);
  return out;
}

static attrset add_attr(prog *p, attrset at, attr one) {
  attrs old = attrs_get(p, at);
  attr v[A_COUNT];
  if (old.n) memcpy(v, old.v, sizeof *v * old.n);
  v[old.n] = one;
  return attrs_of(p, v, old.n + 1);
}

static attrset with_peers(lowering *w, group g, attrset at) {
  const attr *over = attr_get(attrs_get(w->p, at), A_over);
  u32 n = group_size(w->s->sp, g), m = (u32)group_member(w->s->sp, g, w->rank);
  u32 *offset = NEWN(w->a, u32, n), lead = over ? group_lead(w->s->sp, g, m, over->u.axes, over->n) : 0;
  i64 *peer = NEWN(w->a, i64, n);
  if (over) n = group_offsets(w->s->sp, g, over->u.axes, over->n, offset, n);
  for (u32 k = 0; k < n; k++) peer[k] = group_rank(w->s->sp, g, over ? lead + offset[k] : k);
  return add_attr(w->p, at, attr_v(A_peers, peer, n));
}

static attrset with_ends(lowering *w, const scope *f, const instr *i) {
  type from = val(f->f, opd_of(f->f, i, 0))->ty, to = val(f->f, i->res)->ty;
  const type_info *ft = type_get(w->s, from), *tt = type_get(w->s, to);
  exchange key = {from, to, group_bind(ft->g, f->g), group_bind(tt->g, f->g), i->op, i->at, {0}};
  u64 h = hash_bytes(&key, offsetof(exchange, ends), 3);
  for (u32 it = 0, id; hmap_next(&w->exchange_map, h, &it, &id);) {
    const exchange *known = &w->exchanges.v[id];
    assert(known);
    if (!memcmp(known, &key, offsetof(exchange, ends))) return known->ends;
  }
  key.ends = ends_of(w, f, i, i->op == OP_send ? i->at : with_peers(w, key.fg, i->at));
  hmap_add(w->keep, &w->exchange_map, h, w->exchanges.n);
  *vec_push(w->keep, &w->exchanges) = key;
  return key.ends;
}

// ---- computation ---------------------------------------------------------------------------------------
static bool in_space(const prog *p, type t) {
  const type_info *i = type_get(p, t);
  const layout_info *l = layout_get(p->sp, i->lay);
  for (u32 k = 0; k < l->nsplit; k++)
    if (!axis_get(p->sp, l->split[k].axis)->temporal) return true;
  for (u32 k = 0; k < l->npart; k++)
    if (!axis_get(p->sp, l->part[k].axis)->temporal) return true;
  return false;
}

static attrset with_whole(lowering *w, const scope *f, const instr *i) {
  strbuf b = {.a = w->a};
  u32 n = instr_nopd(f->f, i);
  for (u32 k = 0; k < n + i->nres; k++) {
    const type_info *t = val_type(w->s, f->f, k < n ? opd_of(f->f, i, k) : i->res + (k - n));
    sb_put(&b, k == n ? (n ? " -> " : "-> ") : k ? ", " : "");
    layout_print(w->s->sp, t->lay, t->s.nd, t->s.dim, &b);
  }
  return add_attr(w->p, i->at, attr_s(A_whole, sym_of(w->p->c, sb_str(&b))));
}

// Extents of the law's letters on this rank; false where a piece is not a whole number of steps of each.
static bool letters_here(const scope *f, const law *l, const instr *i, const shape *here, const prog *s,
                         i64 *extent) {
  for (u32 k = 0; k < l->nletters; k++) extent[k] = l->letter[k].extent;
  for (u32 k = 0; k < l->nopd + l->nres; k++) {
    const law_term *t = k < l->nopd ? &l->opd[k] : &l->res[k - l->nopd];
    const layout_info *li =
        layout_get(s->sp, val_type(s, f->f, k < l->nopd ? opd_of(f->f, i, k) : i->res + (k - l->nopd))->lay);
    for (u32 q = 0; q < li->nsplit; q++) {
      const lay_split *sp = &li->split[q];
      const law_dim *d = &t->dim[sp->dim];
      i64 inner = 1;
      if (axis_get(s->sp, sp->axis)->temporal) continue;
      if (sp->table) {
        if (d->n != 1) return false;
        extent[d->f[0]] = here[k].dim[sp->dim];
      }
      for (u32 j = d->n; j-- > 0 && !sp->table; inner *= l->letter[d->f[j]].extent)
        if (sp->stride >= inner && sp->stride < inner * l->letter[d->f[j]].extent) {
          i64 e = l->letter[d->f[j]].extent, axes = 1; // every axis on the letter, in this term
          for (u32 o = 0; o < li->nsplit; o++) {
            const lay_split *other = &li->split[o];
            if (other->dim == sp->dim && !other->table && other->stride >= inner &&
                other->stride < inner * e && !axis_get(s->sp, other->axis)->temporal)
              axes *= axis_size(s->sp, other->axis);
          }
          extent[d->f[j]] = e / axes;
        }
    }
  }
  return true;
}

// Attributes that hold extents hold those of the piece. Where the operator has to know more than its pieces
// (positions, counts, an extent tied to an attribute), the types of the whole are written beside it.
static attrset local_attrs(lowering *w, const scope *f, const instr *i, const type *res) {
  const op_row *row = op_row_of((opcode)i->op);
  bool spread = false;
  u32 n = instr_nopd(f->f, i), nres = i->nres, errors = diag_count(w->p->c);
  for (u32 k = 0; k < n + nres; k++)
    spread |= in_space(w->s, val(f->f, k < n ? opd_of(f->f, i, k) : i->res + (k - n))->ty);
  if (!spread) return i->at;
  if (row->flags & (OPF_POS | OPF_RANDOM)) return with_whole(w, f, i);
  arena_mark_t mark = arena_mark(w->a);
  shape *os = NEWN(w->a, shape, n + 1), *here = NEWN(w->a, shape, n + nres + 1), rs[OP_RES_MAX];
  for (u32 k = 0; k < n; k++) {
    os[k] = val_type(w->s, f->f, opd_of(f->f, i, k))->s;
    here[k] = val_type(w->p, func_get(w->p, f->b.f), f->map[opd_of(f->f, i, k)])->s;
  }
  for (u32 k = 0; k < nres; k++) here[n + k] = type_get(w->p, res[k])->s;
  attrs at = attrs_get(w->p, i->at);
  u32 want = nres;
  const law *l = op_law(w->p->c, w->a, (opcode)i->op, at, n, os, &want, rs, i->where);
  i64 *extent = l ? NEWN(w->a, i64, l->nletters + 1) : NULL;
  bool ok = l && letters_here(f, l, i, here, w->s, extent);
  if (ok) at = law_rescale(w->a, (opcode)i->op, at, l, extent);
  ok = ok && op_law(w->p->c, w->a, (opcode)i->op, at, n, here, &want, rs, i->where) && want == nres;
  for (u32 k = 0; k < nres && ok; k++) ok = shape_same(&rs[k], &here[n + k]);
  attrset out = ok ? attrs_of(w->p, at.v, at.n) : with_whole(w, f, i);
  diag_truncate(w->p->c, errors);
  arena_release(w->a, mark);
  return out;
}

// ---- instructions --------------------------------------------------------------------------------------
static func lower_func(lowering *w, func f, group g);

static bool temporal(const prog *p, const instr *i) {
  const attr *over = attr_get(attrs_get(p, i->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    if (!axis_get(p->sp, over->u.axes[k])->temporal) return false;
  return over != NULL;
}

static bool adds(const lowering *w, const scope *f, const instr *i) {
  const layout have = val_type(w->s, f->f, opd_of(f->f, i, 0))->lay;
  return layout_part_of(w->s->sp, have, attr_get(attrs_get(w->s, i->at), A_over)->u.axes[0]) != RED_NONE;
}

// What the instruction is called here and which attributes it has.
static opcode lower_op(lowering *w, const scope *f, const instr *i, const type *res, attrset *at) {
  const coll_row *row = coll_find((opcode)i->op);
  group g = group_bind(i->g, f->g);
  *at = i->at;
  switch (i->op) {
  case OP_call:
  case OP_pack:
  case OP_unpack:
  case OP_opaque:
  case OP_copy: return (opcode)i->op;
  case OP_join:
  case OP_part:
    if (temporal(w->s, i)) return (opcode)i->op;
    *at = (attrset){0};
    return OP_identity;
  case OP_send:
  case OP_permute:
  case OP_halo_exchange: *at = with_ends(w, f, i); return (opcode)i->op;
  case OP_exchange: // every member gets the summands of all
    *at = adds(w, f, i) ? with_peers(w, g, i->at) : with_ends(w, f, i);
    return (opcode)i->op;
  default:
    if (!row)
      *at = local_attrs(w, f, i, res);
    else if (!temporal(w->s, i))
      *at = with_peers(w, g, i->at);
    return (opcode)i->op;
  }
}

static void lower_instr(lowering *w, scope *f, const instr *i) {
  arena_mark_t mark = arena_mark(w->a);
  group g = group_bind(i->g, f->g);
  func callee = {0};
  if (i->op == OP_call && !(callee = lower_func(w, i->callee, g)).i) return;
  type *res = NEWN(w->a, type, i->nres + 1);
  u32 *opd = NEWN(w->a, u32, i->nopd + 1), n = 0, nd = 0, nres = 0;
  bool tuples = i->op == OP_call || i->op == OP_unpack || i->op == OP_pack;
  for (u32 k = 0; k < i->nopd; k++) {
    u32 entry = f->f->opds.v[i->opd + k];
    value v = f->map[entry & OPD_VALUE];
    if (!v) continue;
    opd[n++] = v | (entry & ~OPD_VALUE);
    nd += !(entry & OPD_AFTER);
  }
  for (u32 k = 0; k < i->nres; k++) {
    res[nres] = lower_type(w, val(f->f, i->res + k)->ty, f->g);
    nres += res[nres].i != 0;
  }
  bool takes_part = tuples             ? callee.i || nd || nres
                    : i->op == OP_part ? nres
                    : i->op == OP_send ? nd || nres
                                       : has_rank(w, g);
  if (takes_part && !w->failed) {
    attrset at;
    opcode op = lower_op(w, f, i, res, &at);
    f->b.g = has_rank(w, g) ? home(w, i->g) : type_get(w->p, res[0])->g; // a send is received elsewhere
    f->b.strm = i->strm, f->b.flags = i->flags, f->b.coord = i->coord, f->b.origin = i->origin,
    f->b.where = i->where;
    u32 index = emit(&f->b, op, at, opd, n, res, nres);
    instr *new = &func_get(w->p, f->b.f)->body.v[index - 1];
    new->callee = callee;
    value r = new->res;
    for (u32 k = 0; k < i->nres; k++) {
      if (!lower_type(w, val(f->f, i->res + k)->ty, f->g).i) continue;
      f->map[i->res + k] = r;
      value_name(w->p, f->b.f, r++, val(f->f, i->res + k)->name);
    }
  }
  arena_release(w->a, mark);
}

// ---- functions -----------------------------------------------------------------------------------------
// The elements of a parameter that this rank holds.
static u32 lower_data(lowering *w, const type_info *t, u32 data, type here) {
  const data_info *d = &w->s->data.v[data];
  shape s = type_get(w->p, here)->s;
  if (!d->bytes || shape_same(&s, &t->s)) return d->bytes ? data : data_add(w->p, &s, NULL, false);
  arena_mark_t mark = arena_mark(w->a);
  u32 nd = s.nd, each = dtype_bytes(s.t);
  coords c = coords_in(w, t->g, t->g.i ? (u32)group_member(w->s->sp, t->g, w->rank) : 0);
  i64 *index[DIMS_MAX], at[DIMS_MAX] = {0}, n = shape_elems(&s);
  for (u32 k = 0; k < nd; k++) {
    index[k] = NEWN(w->a, i64, MAX(t->s.dim[k], s.dim[k]) + 1);
    layout_index(w->s->sp, t->lay, (u8)k, t->s.dim[k], &c, index[k]);
  }
  u8 *out = arena_alloc(w->p->a, (size_t)(n * each) + 1);
  for (i64 e = 0; e < n; e++) {
    i64 from = 0;
    for (u32 k = 0; k < nd; k++) from = from * t->s.dim[k] + index[k][at[k]];
    memcpy(out + e * each, (const u8 *)d->bytes + from * each, each);
    for (u32 k = nd; k-- > 0 && ++at[k] == s.dim[k];) at[k] = 0;
  }
  arena_release(w->a, mark);
  return data_add(w->p, &s, out, false);
}

// Function f as called on g; none if the rank takes no part in it. Callees come before callers.
static func lower_func(lowering *w, func f, group g) {
  u64 key = ((u64)f.i << 32) | g.i;
  u32 known = hmap_get(&w->func_map, key);
  if (known) return (func){known - 1};
  const func_info *fi = func_get(w->s, f);
  scope x = {.f = fi, .g = g};
  for (u32 k = 0; k < fi->body.n && !w->failed; k++)
    if (fi->body.v[k].op == OP_call) lower_func(w, fi->body.v[k].callee, group_bind(fi->body.v[k].g, g));
  func out = func_new(w->p, fi->name, fi->where);
  x.map = ZNEWN(w->keep, value, fi->values.n);
  x.b = builder_at(w->p, out);
  for (value v = 1; v <= fi->nparams; v++) {
    type t = lower_type(w, val(fi, v)->ty, g);
    const param_info *pi = &fi->params.v[v - 1];
    if (!t.i) continue;
    x.map[v] = func_param(w->p, out, t, val(fi, v)->name, pi->r);
    func_get(w->p, out)->params.v[x.map[v] - 1].host = pi->host;
    if (pi->data)
      func_get(w->p, out)->params.v[x.map[v] - 1].data = lower_data(w, val_type(w->s, fi, v), pi->data, t);
  }
  for (u32 k = 0; k < fi->body.n && !w->failed; k++) lower_instr(w, &x, &fi->body.v[k]);
  value *ret = NEWN(w->keep, value, fi->rets.n + 1);
  u32 n = 0;
  for (u32 k = 0; k < fi->rets.n; k++)
    if (x.map[fi->rets.v[k]]) ret[n++] = x.map[fi->rets.v[k]];
  func_return(w->p, out, ret, n);
  func_info *made = func_get(w->p, out);
  if (!made->body.n && !n && f.i != w->s->main.i) { // the last one made: nobody has its number
    w->p->funcs.n--;
    out.i = 0;
  }
  hmap_add(w->keep, &w->func_map, key, out.i + 1);
  return out;
}

static bool rank_exists(const prog *s, u32 rank) {
  u32 most = 0;
  for (u32 m = 1; m <= mesh_count(s->sp); m++) {
    const group_info *all = group_get(s->sp, group_all(s->sp, (mesh){m}));
    if (group_member(s->sp, group_all(s->sp, (mesh){m}), rank) >= 0) return true;
    for (u32 k = 0; k < all->nranks; k++) most = MAX(most, all->ranks[k]);
  }
  if (!mesh_count(s->sp) && !rank) return true;
  diag(s->c, E_RANK, func_get(s, s->main)->where, "rank %u takes no part: the program runs on ranks up to %u",
       rank, most);
  diag_hint(s->c, "--rank %u", most);
  return false;
}

prog *plan_lower(const prog *distributed, u32 rank) {
  if (!rank_exists(distributed, rank)) return NULL;
  lowering *w = &(lowering){.s = distributed, .rank = rank, .keep = arena_new(), .a = arena_new()};
  w->p = prog_empty(distributed);
  w->home = ZNEWN(w->keep, u32, group_count(distributed->sp) + 1);
  w->p->main = lower_func(w, distributed->main, (group){0});
  arena_free(w->a);
  arena_free(w->keep);
  if (!w->failed) {
    IR_VERIFY_PASS(w->p);
    return w->p;
  }
  prog_free(w->p);
  return NULL;
}
