// givers.c - who gives what to whom: of every communication the members from whom a member of its target takes its piece. Not
// what a communication does to numbers (eval/move.c), nor what it takes (cost/).
//
// Idea: two questions, one after the other. Who may give follows from the collective's own rule alone: its subgroup over
// the named axes, the root, the same rank, the other group. Who does give, and what, follows from the pieces: every element
// comes from the first of those who has it. Pieces are products of ranges, one list for each dimension, so what is
// left of a piece beside another is again a few products.
#include "ir/ir.h"

// ---- who may give ----------------------------------------------------------------------------------------
giving giving_of(const prog *p, const instr *i) {
  const attrs at = attrs_get(p, i->at);
  const attr *over = attr_get(at, A_over);
  giving x = {.sp = p->sp, .op = (opcode)i->op, .root = (u32)attr_int(at, A_root, 0), .nfrom = 1};
  if (over) x.over = over->u.axes, x.nover = over->n;
  return x;
}

static void give(givers *l, u32 opd, u32 member) { l->v[l->n++] = (giver){opd, member}; }

static void give_rank(const giving *x, u32 opd, u32 rank, givers *l) {
  const int k = group_place(x->sp, x->from[opd].g, rank);
  if (k >= 0) give(l, opd, (u32)k);
}

// All members of the subgroup of `member` over the axes, in their order.
static void give_subgroup(const giving *x, arena *a, group g, u32 member, givers *l) {
  u32 n = group_offsets(x->sp, g, x->over, x->nover, NULL, 0);
  u32 *offset = NEWN(a, u32, n), lead = group_lead(x->sp, g, member, x->over, x->nover);
  group_offsets(x->sp, g, x->over, x->nover, offset, n);
  for (u32 k = 0; k < n; k++) give(l, 0, lead + offset[k]);
}

static u32 root_rank(const giving *x, arena *a, group g, u32 member) {
  const u32 n = group_offsets(x->sp, g, x->over, x->nover, NULL, 0);
  u32 *offset = NEWN(a, u32, n);
  assert(x->root < n);
  group_offsets(x->sp, g, x->over, x->nover, offset, n);
  return group_rank(x->sp, g, group_lead(x->sp, g, member, x->over, x->nover) + offset[x->root]);
}

// Do a giver and a receiver stand at the same coordinate on every axis over which the value is partial?
static bool same_summand(const giving *x, u32 from, u32 to) {
  const layout_info *l = layout_get(x->sp, x->from->lay);
  for (u32 k = 0; k < l->npart; k++) {
    const u8 axis = l->part[k].axis;
    if (axis_get(x->sp, axis)->temporal) continue;
    if (group_coord(x->sp, x->from->g, from, axis) != group_coord(x->sp, x->to.g, to, axis)) return false;
  }
  return true;
}

// A send: the member of the source of the target's own number, or at its part of the source, then those whose numbers differ
// in the lowest bits. So of members that hold the same each gives something.
static void give_across(const giving *x, u32 to, givers *l) {
  const u32 nf = group_size(x->sp, x->from->g), first = (u32)((u64)to * nf / group_size(x->sp, x->to.g));
  u32 all = 1;
  while (all < nf) all *= 2;
  for (u32 k = 0; k < all; k++)
    if ((first ^ k) < nf && same_summand(x, first ^ k, to)) give(l, 0, first ^ k);
}

static u32 most_givers(const giving *x) {
  u32 n = x->nfrom;
  for (u32 e = 0; e < x->nfrom; e++) n = MAX(n, group_size(x->sp, x->from[e].g) + 1);
  return n;
}

givers givers_of(const giving *x, arena *a, u32 to) {
  const u32 rank = group_rank(x->sp, x->to.g, to);
  givers l = {.v = NEWN(a, giver, most_givers(x))};
  switch (x->op) {
  case OP_all_reduce:
  case OP_reduce_scatter:
  case OP_all_gather:
  case OP_all_to_all:
  case OP_halo_exchange: give_subgroup(x, a, x->to.g, to, &l); break;
  case OP_exchange: // of sums the summands in their order, else whatever a member has of its piece stays there
    if (!x->adds) give(&l, 0, to);
    give_subgroup(x, a, x->to.g, to, &l);
    break;
  case OP_permute:
    if (x->nover)
      give_subgroup(x, a, x->to.g, to, &l);
    else
      for (u32 k = 0; k < group_size(x->sp, x->from->g); k++)
        if (same_summand(x, k, to)) give(&l, 0, k);
    break;
  case OP_broadcast:
  case OP_scatter_from: give_rank(x, 0, root_rank(x, a, x->to.g, to), &l); break;
  case OP_reduce:
  case OP_gather_to: {
    const int k = group_place(x->sp, x->from->g, rank);
    if (k >= 0 && root_rank(x, a, x->from->g, (u32)k) == rank) give_subgroup(x, a, x->from->g, (u32)k, &l);
    break;
  }
  case OP_send: give_across(x, to, &l); break;
  case OP_join: // the operand that has this rank; along time, all of them
    for (u32 e = 0; e < x->nfrom; e++) give_rank(x, e, rank, &l);
    break;
  default: give_rank(x, 0, rank, &l); // shard, copy, part
  }
  return l;
}

// ---- pieces ----------------------------------------------------------------------------------------------
ranges ranges_of(arena *a, i64 *index, i64 n) {
  for (i64 i = 1; i < n; i++) // nearly always sorted
    for (i64 j = i; j && index[j - 1] > index[j]; j--) {
      const i64 t = index[j];
      index[j] = index[j - 1], index[j - 1] = t;
    }
  u32 runs = 0;
  for (i64 i = 0; i < n; i++) runs += !i || index[i] > index[i - 1] + 1;
  ranges r = {0, (i64(*)[2])arena_alloc(a, sizeof(i64[2]) * (runs + 1))};
  for (i64 i = 0; i < n; i++) {
    if (r.n && index[i] <= r.v[r.n - 1][1])
      r.v[r.n - 1][1] = index[i] + 1;
    else
      r.v[r.n][0] = index[i], r.v[r.n++][1] = index[i] + 1;
  }
  return r;
}

box box_of(const space *sp, arena *a, layout l, u32 nd, const i64 *dim, group g, u32 member) {
  box b = {0};
  coords c = {{0}};
  if (g.i) coords_of(sp, g, member, NULL, &c);
  for (u32 d = 0; d < nd; d++) {
    i64 *index = NEWN(a, i64, MAX(dim[d], layout_local_extent(sp, l, (u8)d, dim[d], &c)) + 1);
    b.d[d] = ranges_of(a, index, layout_index(sp, l, (u8)d, dim[d], &c, index));
  }
  return b;
}

static i64 ranges_size(ranges r) {
  i64 n = 0;
  for (u32 i = 0; i < r.n; i++) n += r.v[i][1] - r.v[i][0];
  return n;
}

i64 box_elems(const box *b, u32 nd) {
  i64 n = 1;
  for (u32 d = 0; d < nd; d++) n *= ranges_size(b->d[d]);
  return n;
}

static bool box_same(const box *x, const box *y, u32 nd) {
  for (u32 d = 0; d < nd; d++)
    if (x->d[d].n != y->d[d].n || memcmp(x->d[d].v, y->d[d].v, x->d[d].n * sizeof *x->d[d].v)) return false;
  return true;
}

// x where y is, or where it is not.
static ranges ranges_cut(arena *a, ranges x, ranges y, bool inside) {
  ranges r = {0, (i64(*)[2])arena_alloc(a, sizeof(i64[2]) * (x.n + y.n + 1))};
  for (u32 i = 0, j = 0; i < x.n; i++) {
    i64 at = x.v[i][0], end = x.v[i][1];
    while (at < end) {
      while (j < y.n && y.v[j][1] <= at) j++;
      i64 lo = j < y.n ? MIN(y.v[j][0], end) : end, hi = j < y.n ? MIN(y.v[j][1], end) : end;
      if (inside && MAX(lo, at) < hi) r.v[r.n][0] = MAX(lo, at), r.v[r.n++][1] = hi;
      if (!inside && at < lo) r.v[r.n][0] = at, r.v[r.n++][1] = lo;
      at = MAX(hi, lo);
    }
  }
  return r;
}

static box box_meet(arena *a, const box *x, const box *y, u32 nd) {
  box r = {0};
  for (u32 d = 0; d < nd; d++) r.d[d] = ranges_cut(a, x->d[d], y->d[d], true);
  return r;
}

// How many elements of b are in none of the boxes of g[0..n): what is left of b beside the first box, dimension
// by dimension.
static i64 box_new(arena *a, const box *b, const gift *g, u32 n, u32 nd) {
  const i64 size = box_elems(b, nd);
  i64 total = 0;
  if (!size || !n) return size;
  box rest = *b, meet = box_meet(a, b, &g->what, nd);
  if (!box_elems(&meet, nd)) return box_new(a, b, g + 1, n - 1, nd);
  for (u32 d = 0; d < nd; d++) {
    rest.d[d] = ranges_cut(a, b->d[d], g->what.d[d], false);
    total += box_new(a, &rest, g + 1, n - 1, nd);
    rest.d[d] = meet.d[d];
  }
  return total;
}

// ---- who gives what --------------------------------------------------------------------------------------
// The same where pieces of the givers are equal or have nothing in common.
static i64 box_new_even(const box *b, const gift *g, u32 n, u32 nd) {
  const i64 size = box_elems(b, nd);
  for (u32 k = 0; size && k < n; k++)
    if (box_same(b, &g[k].what, nd)) return 0;
  return size;
}

gifts gifts_of(const giving *x, arena *a, u32 to, u32 nd, const box *want, const box *const *have) {
  const givers all = givers_of(x, a, to);
  const bool even = x->nfrom == 1 && layout_is_even(x->sp, x->from->lay);
  gifts m = {.v = NEWN(a, gift, all.n + 1), .missing = box_elems(want, nd)};
  for (u32 k = 0; k < all.n && m.missing; k++) {
    const giver g = all.v[k];
    const box b = box_meet(a, want, &have[g.opd][g.member], nd);
    const i64 fresh = even ? box_new_even(&b, m.v, m.n, nd) : box_new(a, &b, m.v, m.n, nd);
    if (!fresh) continue;
    m.v[m.n++] = (gift){g, b};
    m.missing -= fresh;
  }
  return m;
}
