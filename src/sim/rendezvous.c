// rendezvous.c - where instructions run and who meets whom: groups as ranks and rank classes, communications
// as rendezvous. Not what anything costs (price.c).
//
// Idea: a collective over some axes is one rendezvous for each subgroup. A send is one rendezvous for each
// set of members that exchange something: where member k of the source has all that member k of the target is
// to hold these two meet, else the graph "shares an element" is cut into its connected components. A rank that
// both sends and receives joins its rendezvous.
#include "sim/internal.h"

// ---- sets of rank classes ---------------------------------------------------------------------------
const class_set *class_set_of(sim *s, const u32 *cls, u32 n) {
  u64 h = hash_bytes(cls, n * sizeof *cls, n);
  for (u32 it = 0, id; hmap_next(&s->class_set_map, h, &it, &id);) {
    const class_set *u = s->class_sets.v[id];
    if (u->n == n && memcmp(u->cls, cls, n * sizeof *cls) == 0) return u;
  }
  class_set *u = NEW(s->a, class_set);
  u32 *pos = ZNEWN(s->a, u32, s->nclasses);
  for (u32 k = 0; k < n; k++) pos[cls[k]] = k + 1;
  *u = (class_set){n, arena_dup(s->a, cls, n * sizeof *cls), pos};
  hmap_add(s->a, &s->class_set_map, h, s->class_sets.n);
  *vec_push(s->a, &s->class_sets) = u;
  return u;
}

static void members_set_classes(sim *s, members *pl) {
  arena_mark_t m = arena_mark(s->tmp);
  u32 *cls = NEWN(s->tmp, u32, pl->n), *member = NEWN(s->a, u32, pl->n), n = 0;
  u8 *seen = ZNEWN(s->tmp, u8, s->nclasses);
  for (u32 k = 0; k < pl->n; k++) {
    u32 u = s->class_of_rank[pl->rank[k]];
    if (seen[u]) continue;
    seen[u] = 1;
    cls[n] = u;
    member[n++] = k;
  }
  pl->cs = class_set_of(s, cls, n);
  pl->member = member;
  arena_release(s->tmp, m);
}

members *members_new(sim *s, group g) {
  static const u32 rank0 = 0;
  while (s->members.n <= g.i) *vec_push(s->a, &s->members) = NULL;
  members *pl = s->members.v[g.i] = NEW(s->a, members);
  *pl = (members){.g = g, .n = 1, .rank = &rank0};
  if (g.i) {
    const group_info *gi = group_get(s->p->sp, g);
    pl->n = gi->nranks;
    pl->rank = gi->ranks;
  }
  if (s->class_of_rank) members_set_classes(s, pl);
  return pl;
}

// Rank classes of any element.
static const class_set *class_set_of_tuple(sim *s, const type_info *ti, group g) {
  arena_mark_t m = arena_mark(s->tmp);
  const class_set *all = NULL;
  for (u32 k = 0; k < ti->n; k++) {
    const class_set *e = class_set_of_type(s, ti->elem[k], g);
    if (!all || !all->n) all = e;
    if (all == e) continue;
    u32 *cls = NEWN(s->tmp, u32, all->n + e->n), n = all->n;
    memcpy(cls, all->cls, n * sizeof *cls);
    for (u32 j = 0; j < e->n; j++)
      if (!all->pos[e->cls[j]]) cls[n++] = e->cls[j];
    all = class_set_of(s, cls, n);
  }
  arena_release(s->tmp, m);
  return all ? all : members_of(s, g)->cs;
}

const class_set *class_set_of_type(sim *s, type t, group g) {
  if (s->near[t.i] && s->near_g[t.i].i == g.i) return s->near[t.i];
  const type_info *ti = type_get(s->p, t);
  s->near_g[t.i] = g;
  return s->near[t.i] = ti->tuple ? class_set_of_tuple(s, ti, g) : members_of(s, group_bind(ti->g, g))->cs;
}

i64 local_bytes(sim *s, const type_info *t, group g, u32 member) {
  coords at = {0};
  i64 dims[DIMS_MAX], n = dtype_bytes(t->s.t);
  bool even = layout_is_even(s->p->sp, t->lay);
  if (!even && g.i) coords_of(s->p->sp, g, member, NULL, &at);
  layout_local_dims(s->p->sp, t->lay, t->s.nd, t->s.dim, even ? NULL : &at, dims);
  for (u32 d = 0; d < t->s.nd; d++) n *= dims[d];
  return n;
}

// ---- rendezvous -------------------------------------------------------------------------------------
bool is_rendezvous(opcode op) {
  return op_row_of(op)->flags & OPF_COMM && op != OP_shard && op != OP_partial && op != OP_copy;
}

static rendezvous *rendezvous_over(sim *s, group g, const u8 *axes, u32 naxes) {
  const members *pl = members_of(s, g);
  rendezvous *m = NEW(s->a, rendezvous);
  u32 *begin = NEWN(s->a, u32, pl->n + 1), *mem = NEWN(s->a, u32, pl->n), *rank = NEWN(s->a, u32, pl->n);
  u32 *offset = NEWN(s->tmp, u32, pl->n), at = 0;
  u32 n = g.i && naxes ? group_offsets(s->p->sp, g, axes, naxes, offset, pl->n) : 0;
  u8 *met = ZNEWN(s->tmp, u8, pl->n);
  for (u32 k = 0; k < pl->n; k++) {
    if (met[k]) continue; // no member of a subgroup comes before the one that all offsets are from
    begin[m->n++] = at;
    if (!n) // no axes named: all members
      for (; at < pl->n; at++) mem[at] = at;
    for (u32 j = 0; j < n; j++) met[mem[at++] = k + offset[j]] = 1;
    if (!n) break;
  }
  begin[m->n] = at;
  for (u32 k = 0; k < at; k++) rank[k] = pl->rank[mem[k]];
  m->begin = m->mbegin = begin;
  m->rank = rank;
  m->mem = mem;
  return m;
}

// Which cells of one dimension the members of a group hold. A cell is a stretch that no piece cuts.
typedef struct {
  u32 words;
  u64 *bits;
  const u32 *combo;
  struct {
    u32 first, end;
  } * span; // of a combo: its words outside are 0
} holding;  // of member k: bits + combo[k] * words

static i64 cell_size(sim *s, layout l, u8 dim, i64 cell) {
  const layout_info *li = layout_get(s->p->sp, l);
  for (u32 k = 0; k < li->nsplit; k++) {
    const lay_split *sp = &li->split[k];
    if (sp->dim != dim) continue;
    if (!sp->table)
      cell = gcd_i64(cell, sp->stride);
    else {
      const pieces_info *pi = pieces_get(s->p->sp, (pieces){sp->table});
      for (u32 j = 0; j < 2 * pi->begin[pi->npieces]; j++)
        if (pi->bound[j]) cell = gcd_i64(cell, pi->bound[j]);
    }
  }
  return cell;
}

static holding holding_of(sim *s, group g, layout l, u8 dim, i64 extent, i64 cell, const coords *at) {
  const members *pl = members_of(s, g);
  const layout_info *li = layout_get(s->p->sp, l);
  u32 *combo = NEWN(s->tmp, u32, pl->n), *like = NEWN(s->tmp, u32, pl->n), ncombo = 0, naxes = 0;
  const coords **of = NEWN(s->tmp, const coords *, pl->n);
  u8 axes[LAY_SPLITS];
  for (u32 q = 0; q < li->nsplit; q++)
    if (li->split[q].dim == dim) axes[naxes++] = li->split[q].axis;
  group_likes(s->p->sp, g, axes, naxes, NULL, like);
  for (u32 k = 0; k < pl->n; k++) {
    if (like[k] == k) of[ncombo] = &at[k];
    combo[k] = like[k] == k ? ncombo++ : combo[like[k]];
  }
  holding h = {.words = (u32)ceil_div(extent / cell, 64), .combo = combo};
  h.bits = ZNEWN(s->tmp, u64, (size_t)h.words * ncombo);
  h.span = arena_alloc(s->tmp, sizeof *h.span * ncombo);
  i64 *index = NEWN(s->tmp, i64, extent);
  for (u32 j = 0; j < ncombo; j++) {
    i64 n = layout_index(s->p->sp, l, dim, extent, of[j], index);
    h.span[j].first = h.words, h.span[j].end = 0;
    for (i64 k = 0; k < n; k += cell) { // cells are listed whole
      u64 c = (u64)(index[k] / cell);
      h.span[j].first = MIN(h.span[j].first, (u32)(c / 64));
      h.span[j].end = MAX(h.span[j].end, (u32)(c / 64) + 1);
      h.bits[(size_t)j * h.words + c / 64] |= (u64)1 << c % 64;
    }
  }
  return h;
}

static const u64 *held(const holding *h, u32 member) { return h->bits + (size_t)h->combo[member] * h->words; }

static bool share(const holding *x, u32 i, const holding *y, u32 j) {
  const u64 *a = held(x, i), *b = held(y, j);
  u32 w = MAX(x->span[x->combo[i]].first, y->span[y->combo[j]].first);
  u32 end = MIN(x->span[x->combo[i]].end, y->span[y->combo[j]].end);
  for (; w < end; w++)
    if (a[w] & b[w]) return true;
  return false;
}

static coords *coords_of_all(sim *s, group g) {
  const members *pl = members_of(s, g);
  coords *c = ZNEWN(s->tmp, coords, pl->n);
  if (g.i)
    for (u32 k = 0; k < pl->n; k++) coords_of(s->p->sp, g, k, NULL, &c[k]);
  return c;
}

// Coordinates along one axis as a digit of the member's number; with one position, where that is.
typedef struct {
  u32 size, step, at;
} digit;

static digit digit_of(const space *sp, group g, u8 axis) {
  const group_info *gi = group_get(sp, g);
  digit d = {.size = 1};
  u32 offset[2] = {0};
  for (u32 k = 0; k < gi->naxes; k++) {
    if (gi->axis[k].axis != axis) continue;
    if (gi->axis[k].at >= 0) return (digit){1, 0, (u32)gi->axis[k].at};
    d.size = group_offsets(sp, g, &axis, 1, offset, 2);
    d.step = offset[1];
  }
  return d;
}

static bool same_along(const space *sp, group gs, group gt, u8 axis) {
  digit x = digit_of(sp, gs, axis), y = digit_of(sp, gt, axis);
  return x.size == y.size && x.step == y.step && x.at == y.at;
}

// Does the target, in even pieces, split all that the source splits, along axes on which members of one number are at
// one place? Splits are disjoint digits of the index, so a piece of the target is a part of the source's.
static bool divides_less(const space *sp, layout from, layout to, group gs, group gt) {
  const layout_info *li = layout_get(sp, from), *ti = layout_get(sp, to);
  for (u32 q = 0; q < li->npart + ti->npart; q++)
    if (!same_along(sp, gs, gt, (q < li->npart ? li->part[q] : ti->part[q - li->npart]).axis)) return false;
  for (u32 q = 0; q < li->nsplit; q++) {
    const lay_split *a = &li->split[q], *b = layout_split_of(sp, to, a->axis);
    if (!b || a->dim != b->dim || a->stride != b->stride || a->table != b->table ||
        !same_along(sp, gs, gt, a->axis))
      return false;
  }
  return layout_is_even(sp, to);
}

// Can member k of the source give member k of the target all that it is to hold, whatever k is? No where layouts and
// groups alone do not say so. All hold something: pieces are even.
static bool has_places(const space *sp, layout from, layout to, group gs, group gt) {
  if (from.i != to.i) return divides_less(sp, from, to, gs, gt);
  const layout_info *li = layout_get(sp, from);
  for (u32 q = 0; q < li->nsplit; q++)
    if (!same_along(sp, gs, gt, li->split[q].axis)) return false;
  for (u32 q = 0; q < li->npart; q++)
    if (!same_along(sp, gs, gt, li->part[q].axis)) return false;
  return true;
}

static u32 root_of(u32 *up, u32 k) {
  while (up[k] != k) k = up[k] = up[up[k]];
  return k;
}
static void unite(u32 *up, u32 a, u32 b) {
  a = root_of(up, a);
  b = root_of(up, b);
  up[MAX(a, b)] = MIN(a, b);
}

// Has member k of the source, along the dimension, all that member k of the target is to hold?
static bool has_all(const holding *source, const holding *target, u32 k) {
  const u64 *x = held(source, k), *y = held(target, k);
  bool all = true;
  for (u32 w = 0; w < source->words; w++) all &= !(y[w] & ~x[w]);
  return all;
}

// Unites members that share an element; member k and member k alone where that suffices. Sources are 0..ns-1, targets ns..ns+nt-1.
static void unite_sharing(sim *s, const type_info *from, const type_info *to, group gs, group gt,
                          const coords *cs, const coords *ct, u32 *up) {
  u32 ns = members_of(s, gs)->n, nt = members_of(s, gt)->n, nd = from->s.nd;
  holding hs[DIMS_MAX], ht[DIMS_MAX];
  bool pairwise = ns == nt;
  for (u32 d = 0; d < nd; d++) {
    i64 extent = from->s.dim[d], cell = cell_size(s, to->lay, (u8)d, cell_size(s, from->lay, (u8)d, extent));
    hs[d] = holding_of(s, gs, from->lay, (u8)d, extent, MAX(cell, 1), cs);
    ht[d] = holding_of(s, gt, to->lay, (u8)d, extent, MAX(cell, 1), ct);
    for (u32 k = 0; k < ns && pairwise; k++) pairwise = has_all(&hs[d], &ht[d], k);
  }
  for (u32 i = 0; i < ns; i++)
    for (u32 j = pairwise ? i : 0; j < (pairwise ? i + 1 : nt); j++) {
      bool meet = true;
      for (u32 d = 0; d < nd && meet; d++) meet = share(&hs[d], i, &ht[d], j);
      if (meet) unite(up, i, ns + j);
    }
}

// Members k meet if `direct`: then the types do not matter.
static bool is_direct(sim *s, type from, type to, group gs, group gt) {
  const type_info *fi = type_get(s->p, from), *ti = type_get(s->p, to);
  return fi->tuple ||
         (members_of(s, gs)->n == members_of(s, gt)->n && has_places(s->p->sp, fi->lay, ti->lay, gs, gt));
}

// Can no rank be on both sides? It may say no where none is.
static bool are_apart(const space *sp, group gs, group gt) {
  const group_info *x = group_get(sp, gs), *y = group_get(sp, gt);
  if (x->m.i != y->m.i) return false;
  for (u32 k = 0; k < x->naxes; k++)
    if (x->axis[k].at >= 0 && y->axis[k].at >= 0 && x->axis[k].at != y->axis[k].at) return true;
  return false;
}

// Member k to member k, and nobody twice: the stages of a pipeline.
static rendezvous *rendezvous_apart(sim *s, const members *from, const members *to) {
  const u32 n = from->n;
  rendezvous *m = NEW(s->a, rendezvous);
  u32 *begin = NEWN(s->a, u32, n + 1), *rank = NEWN(s->a, u32, 2 * n), *mem = NEWN(s->a, u32, n + 1);
  for (u32 k = 0; k <= n; k++) begin[k] = 2 * k, mem[k] = k;
  for (u32 k = 0; k < n; k++) rank[2 * k] = from->rank[k], rank[2 * k + 1] = to->rank[k];
  *m = (rendezvous){.n = n, .begin = begin, .rank = rank, .mbegin = mem, .mem = mem};
  return m;
}

static rendezvous *rendezvous_send(sim *s, type from, type to, group gs, group gt, bool direct) {
  const members *ps = members_of(s, gs), *pt = members_of(s, gt);
  u32 ns = ps->n, n = ns + pt->n;
  if (direct && ns == pt->n && are_apart(s->p->sp, gs, gt)) return rendezvous_apart(s, ps, pt);
  u32 *up = NEWN(s->tmp, u32, n), *by_rank = ZNEWN(s->tmp, u32, s->nranks);
  for (u32 k = 0; k < n; k++) up[k] = k;
  if (direct)
    for (u32 k = 0; k < MIN(ns, pt->n); k++) unite(up, k, ns + k);
  else
    unite_sharing(s, type_get(s->p, from), type_get(s->p, to), gs, gt, coords_of_all(s, gs),
                  coords_of_all(s, gt), up);
  for (u32 k = 0; k < n; k++) { // a rank on both sides
    u32 r = k < ns ? ps->rank[k] : pt->rank[k - ns];
    if (by_rank[r])
      unite(up, by_rank[r] - 1, k);
    else
      by_rank[r] = k + 1;
  }
  rendezvous *m = NEW(s->a, rendezvous);
  u32 *begin = NEWN(s->a, u32, n + 1), *rank = NEWN(s->a, u32, n);
  u32 *mbegin = NEWN(s->a, u32, n + 1), *mem = NEWN(s->a, u32, ns), nr = 0, nm = 0;
  u32 *next = NEWN(s->tmp, u32, n),
      *last = NEWN(s->tmp, u32, n); // members of a component as a list, in order
  for (u32 k = 0; k < n; k++) {
    u32 r = root_of(up, k);
    next[k] = n;
    if (r != k) next[last[r]] = k;
    last[r] = k;
  }
  for (u32 k = 0; k < n; k++) {
    if (up[k] != k) continue;
    begin[m->n] = nr;
    mbegin[m->n++] = nm;
    bool target = false;
    for (u32 j = k; j < n; j = next[j]) target |= j >= ns;
    for (u32 j = k; j < n; j = next[j]) {
      u32 r = j < ns ? ps->rank[j] : pt->rank[j - ns];
      if (by_rank[r] == j + 1) rank[nr++] = r;
      if (j < ns && target) mem[nm++] = j;
    }
  }
  begin[m->n] = nr;
  mbegin[m->n] = nm;
  m->begin = begin;
  m->rank = rank;
  m->mbegin = mbegin;
  m->mem = mem;
  return m;
}

// Tensors of all kinds go between the same stages: their direct sends are one rendezvous.
static rendezvous *sent(sim *s, rendezvous_row *row, type from, type to, group gs, group gt) {
  bool direct = is_direct(s, from, to, gs, gt);
  u64 h = hash_u64((u64)gs.i << 32 | gt.i, 3);
  for (u32 it = 0, id; direct && hmap_next(&s->rendezvous_map, h, &it, &id);) {
    const rendezvous_row *r = &s->rendezvous.v[id];
    if (!r->direct || r->from.i != gs.i || r->to.i != gt.i) continue;
    row->again = true;
    return r->m;
  }
  row->direct = direct;
  row->from = gs;
  row->to = gt;
  if (direct) hmap_add(s->a, &s->rendezvous_map, h, s->rendezvous.n);
  return rendezvous_send(s, from, to, gs, gt, direct);
}

rendezvous *rendezvous_of(sim *s, const func_info *f, const instr *i, group g) {
  u32 key[4] = {g.i, i->at.i, 0, 0};
  type from = {0}, to = {0};
  const attr *over = NULL;
  u64 h;
  if (i->op == OP_send) {
    from = f->values.v[opd_of(f, i, 0)].ty;
    to = f->values.v[i->res].ty;
    key[1] = group_bind(type_get(s->p, to)->g, g).i;
    key[2] = from.i;
    key[3] = to.i;
    h = hash_bytes(key, sizeof key, 1);
  } else {
    over = attr_get(attrs_get(s->p, i->at), A_over);
    h = hash_u64(g.i, 2);
    if (over) h = hash_bytes(over->u.axes, over->n, h);
  }
  for (u32 it = 0, id; hmap_next(&s->rendezvous_map, h, &it, &id);) {
    const rendezvous_row *r = &s->rendezvous.v[id];
    if (i->op == OP_send ? r->send && memcmp(r->key, key, sizeof key) == 0
                         : !r->send && r->key[0] == g.i && r->naxes == (over ? over->n : 0) &&
                               (!over || memcmp(r->axes, over->u.axes, over->n) == 0))
      return r->m;
  }
  arena_mark_t mark = arena_mark(s->tmp);
  rendezvous_row row = {.send = i->op == OP_send};
  memcpy(row.key, key, sizeof key);
  if (row.send)
    row.m = sent(s, &row, from, to, group_bind(type_get(s->p, from)->g, g), (group){key[1]});
  else {
    row.naxes = over ? over->n : 0;
    row.axes = over ? over->u.axes : NULL;
    row.m = rendezvous_over(s, g, row.axes, row.naxes);
  }
  arena_release(s->tmp, mark);
  hmap_add(s->a, &s->rendezvous_map, h, s->rendezvous.n);
  *vec_push(s->a, &s->rendezvous) = row;
  return row.m;
}

// Rendezvous of rank classes: those with the same set of rank classes are one.
static void rendezvous_set_classes(sim *s, rendezvous *m) {
  arena_mark_t mark = arena_mark(s->tmp);
  u32 total = m->begin[m->n];
  u32 *set_begin = NEWN(s->a, u32, m->n + 1), *cls = NEWN(s->a, u32, total),
      *set_node = NEWN(s->a, u32, m->n);
  u32 *seen = ZNEWN(s->tmp, u32, s->nclasses), at = 0;
  hmap known = {0};
  m->nsets = set_begin[0] = 0;
  for (u32 k = 0; k < m->n; k++) {
    u32 n = 0;
    u64 h = 0;
    for (u32 j = m->begin[k]; j < m->begin[k + 1]; j++) {
      u32 u = s->class_of_rank[m->rank[j]];
      if (seen[u] == k + 1) continue;
      seen[u] = k + 1;
      cls[at + n++] = u;
      h += hash_u64(u, 1);
    }
    bool dup = false;
    if (s->nclasses < s->nranks)
      for (u32 it = 0, j; !dup && hmap_next(&known, h, &it, &j);) {
        dup = set_begin[j + 1] - set_begin[j] == n;
        for (u32 q = set_begin[j]; q < set_begin[j + 1] && dup; q++) dup = seen[cls[q]] == k + 1;
      }
    if (dup) continue;
    set_begin[m->nsets] = at;
    set_node[m->nsets] = k;
    if (s->nclasses < s->nranks) hmap_add(s->tmp, &known, h, m->nsets);
    at += n;
    set_begin[++m->nsets] = at;
  }
  m->set_begin = set_begin;
  m->cls = cls;
  m->set_node = set_node;
  arena_release(s->tmp, mark);
}

void members_set_all_classes(sim *s) {
  s->near = ZNEWN(s->a, const class_set *, s->p->types.n);
  s->near_g = ZNEWN(s->a, group, s->p->types.n);
  for (u32 k = 0; k < s->members.n; k++)
    if (s->members.v[k]) members_set_classes(s, s->members.v[k]);
  for (u32 k = 0; k < s->rendezvous.n; k++)
    if (!s->rendezvous.v[k].again) rendezvous_set_classes(s, s->rendezvous.v[k].m);
}
