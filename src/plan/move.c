// move.c - a value of main goes to another group: which layout it is sent in, and in which it arrives. Not
// the steps inside one group (layout/path.c), nor who gives what to whom (eval, lower.c).
//
// Idea: a route is a conversion on the source, a send and a conversion on the target. What a send costs
// depends on how much its members hold, not on which dimension is cut; so the source never gathers, and the
// target never receives more than it wants. Left to choose is which axes that only replicate are split for
// the journey: on the source that is free (and turns all_reduce into reduce_scatter), on the target it is
// paid for with an all_gather over its own, faster links: Megatron's scatter-gather. All subsets of these
// axes on both sides are tried; both ends are priced apart, so that is cheap.
#include "plan/main.h"
#include "cost/cost.h"
#include <math.h>

enum { FREE_MAX = 5, ENDS_MAX = 64 };
static const double BETWEEN =
    24; // an element between groups beside one within, without a cost model (nnScaler's rule)

// ---- prices --------------------------------------------------------------------------------------------
static i64 local(const prog *p, const shape *s, layout l) {
  return layout_local_elems(p->sp, l, s->nd, s->dim);
}

static double priced(i64 ps) { return ps < 0 ? INFINITY : (double)ps; }

// A conversion inside a group along the path that shard_convert takes; what moves nothing is free. INFINITY:
// there is none.
static double conversion(prog *p, const shape *s, group g, layout from, layout to, materialise_way how,
                         cost_model *k, u32 *steps) {
  layout_step step[PATH_STEPS];
  double cost;
  const int n = plan_path(p, k, how, s, from, to, g, step, &cost);
  if (n < 0) return INFINITY;
  if (k && how != MATERIALISE_P2P) cost = 0;
  for (int i = 0; i < n; i++) {
    const layout_step *x = &step[i];
    if (x->kind == STEP_SHARD || x->kind == STEP_PARTIAL) {
      cost -= k ? 0 : 1; // the path counts a hop
      continue;
    }
    ++*steps;
    if (how == MATERIALISE_P2P) continue;
    i64 elems = local(p, s, x->kind == STEP_ALL_GATHER ? x->to : i ? step[i - 1].to : from);
    if (k)
      cost +=
          priced(cost_over(k, p, g, x->axis, x->naxes, step_op[x->kind], elems * dtype_bytes(s->t), s->t));
  }
  return cost;
}

// ---- the same ranks --------------------------------------------------------------------------------------
// Groups of two meshes may be the same ranks. A send between them is worth nothing then where every rank has
// what it is to hold, and is not to be priced otherwise: what has to move is left to the collectives at both
// ends.
static bool same_ranks(const prog *p, group g, group to) {
  const group_info *x = group_get(p->sp, g), *y = group_get(p->sp, to);
  if (x->nranks != y->nranks || x->m.i == y->m.i) return false;
  for (u32 k = 0; k < x->nranks; k++)
    if (group_member(p->sp, to, x->ranks[k]) < 0) return false;
  return true;
}

static bool is_local(prog *p, const shape *s, group g, layout sent, group to, layout got) {
  const group_info *x = group_get(p->sp, g);
  for (u32 k = 0; k < x->nranks; k++) {
    coords here, there;
    coords_of(p->sp, g, k, NULL, &here);
    coords_of(p->sp, to, (u32)group_member(p->sp, to, x->ranks[k]), NULL, &there);
    i64 own[DIMS_MAX], n = 1;
    layout_local_dims(p->sp, got, s->nd, s->dim, &there, own);
    for (u32 d = 0; d < s->nd; d++) n *= own[d];
    if (layout_common_elems(p->sp, s->nd, s->dim, sent, &here, got, &there) < n) return false;
  }
  return true;
}

// All of a tensor to every member.
static double gathering(const prog *p, const shape *s, group g, cost_model *k) {
  const group_info *gi = group_get(p->sp, g);
  u8 axes[MESH_AXES];
  u32 n = 0;
  for (u32 i = 0; i < gi->naxes; i++)
    if (gi->axis[i].at < 0) axes[n++] = gi->axis[i].axis;
  return priced(cost_over(k, p, g, axes, n, OP_all_gather, shape_bytes(s), s->t)) + 1;
}

// The cost model's view: every member of the smaller group deals with its even share of the larger one's pieces, whatever
// the source has of them. Among the same ranks the cost model sees no link, so what moves there costs as much as giving
// everybody everything.
static double sending(prog *p, const shape *s, group g, layout from, group to, layout into, cost_model *k) {
  const i64 got = local(p, s, into);
  if (same_ranks(p, g, to)) {
    if (is_local(p, s, g, from, to, into)) return !k;
    if (k) return gathering(p, s, g, k);
  }
  if (k) return priced(cost_between(k, p, g, to, got * dtype_bytes(s->t), s->t));
  const u32 nf = group_get(p->sp, g)->nranks, nt = group_get(p->sp, to)->nranks;
  return BETWEEN * (double)MAX(got, ceil_div(got * nt, nf)) + 1;
}

// ---- ends ----------------------------------------------------------------------------------------------
typedef struct {
  layout l;
  double cost;
  u32 steps;
  i64 elems;
} ending;
typedef struct {
  u32 n;
  ending v[ENDS_MAX];
  bool all; // ends that hold equally much are kept too: among the same ranks it matters which piece
} endings;

static bool in_time(const prog *p, u8 axis) { return axis_get(p->sp, axis)->temporal; }

// What of l lies in space, without sums, and what of `time` lies in time: a send changes neither sums nor
// coordinates in time.
static layout sendable(prog *p, layout l, layout time) {
  layout_info x = *layout_get(p->sp, l), t = *layout_get(p->sp, time), r = {0};
  for (u32 i = 0; i < x.nsplit; i++)
    if (!in_time(p, x.split[i].axis)) r.split[r.nsplit++] = x.split[i];
  for (u32 i = 0; i < t.nsplit; i++)
    if (in_time(p, t.split[i].axis) && r.nsplit < LAY_SPLITS) r.split[r.nsplit++] = t.split[i];
  for (u32 i = 0; i < t.npart; i++)
    if (in_time(p, t.part[i].axis)) r.part[r.npart++] = t.part[i];
  return layout_of(p->sp, &r);
}

// l split further over all of the axes: each as the other end does it where it can, if there is one to look
// at, else on the first dimension from `first` on, around, that leaves room for the rest.
static bool split_all(prog *p, const shape *s, layout *l, const u8 *axes, u32 n, const layout *other,
                      u32 first) {
  if (!n) return true;
  const lay_split *hint = other ? layout_split_of(p->sp, *other, *axes) : NULL;
  lay_split same = hint ? *hint : (lay_split){.table = 1}; // layouts move when one is added
  for (int d = same.table ? 0 : -1; d < (int)s->nd; d++) {
    u8 dim = d < 0 ? same.dim : (u8)((u32)d + first < s->nd ? (u32)d + first : (u32)d + first - s->nd);
    i64 stride =
        d < 0 ? same.stride : layout_next_stride(p->sp, *l, dim, s->dim[dim], axis_size(p->sp, *axes));
    if (!stride) continue;
    layout with = layout_with_split(p->sp, *l, *axes, dim, stride);
    if (!layout_fits(p->sp, with, s->nd, s->dim) || !split_all(p, s, &with, axes + 1, n - 1, other, first))
      continue;
    *l = with;
    return true;
  }
  return false;
}

static u32 free_axes(const prog *p, group g, layout l, u8 *axes) {
  const group_info *gi = group_get(p->sp, g);
  u32 n = 0;
  for (u32 i = gi->naxes; i-- > 0 && n < FREE_MAX;) { // minor axes first: their links are the fastest
    u8 a = gi->axis[i].axis;
    if (gi->axis[i].at == -1 && axis_size(p->sp, a) > 1 && !layout_split_of(p->sp, l, a)) axes[n++] = a;
  }
  return n;
}

// Of ends at which members hold equally much only the cheapest matters, the first of equals.
static void add_end(endings *e, ending x) {
  u32 i = 0;
  while (i < e->n && (e->all ? e->v[i].l.i != x.l.i : e->v[i].elems != x.elems)) i++;
  if (i == ENDS_MAX || x.cost == INFINITY) return;
  if (i == e->n)
    e->v[e->n++] = x;
  else if (x.cost < e->v[i].cost || (x.cost == e->v[i].cost && x.steps < e->v[i].steps))
    e->v[i] = x;
}

// Layouts for the journey at one end: `base` with every set of free axes split further, as at the other end,
// or on one dimension after another. own: what it is converted from (source) or to (target), at the same
// coordinate in time.
static void find_ends(prog *p, const shape *s, group g, layout own, layout base, layout other, bool source,
                      cost_model *k, endings *e) {
  u8 axes[FREE_MAX], some[FREE_MAX];
  u32 n = free_axes(p, g, base, axes);
  e->n = 0;
  for (u32 set = 0; set < 1u << n; set++) {
    u32 m = 0;
    for (u32 i = n; i-- > 0;)
      if (set >> i & 1) some[m++] = axes[i];
    layout last = {~0u};
    for (u32 way = 0; way <= (m ? s->nd : 0); way++) {
      ending x = {.l = base};
      if (!split_all(p, s, &x.l, some, m, way ? NULL : &other, way ? way - 1 : 0) || x.l.i == last.i)
        continue;
      last = x.l;
      x.cost = source ? conversion(p, s, g, own, x.l, MATERIALISE_INTER, k, &x.steps)
                      : conversion(p, s, g, x.l, own, MATERIALISE_INTER, k, &x.steps);
      x.elems = local(p, s, x.l);
      add_end(e, x);
    }
  }
}

static layout spatial(prog *p, layout want,
                      layout time) { // want at the coordinate in time of `time`, sums over space kept
  layout l = sendable(p, want, time);
  const layout_info w = *layout_get(p->sp, want);
  for (u32 i = 0; i < w.npart; i++)
    if (!in_time(p, w.part[i].axis)) l = layout_with_part(p->sp, l, w.part[i].axis, (reduction)w.part[i].red);
  return l;
}

// ---- ends on the same ranks ------------------------------------------------------------------------------
// l of one group as the other has it, axis for axis of their meshes; false: these differ in shape.
static bool mirrored(prog *p, group g, group to, layout l, layout *out) {
  const mesh_info *x = mesh_get(p->sp, group_get(p->sp, g)->m), *y = mesh_get(p->sp, group_get(p->sp, to)->m);
  layout_info li = *layout_get(p->sp, l);
  for (u32 i = 0; i < li.nsplit; i++) {
    u32 k = 0;
    if (in_time(p, li.split[i].axis)) continue;
    while (k < x->naxes && x->axis[k] != li.split[i].axis) k++;
    if (k >= x->naxes || k >= y->naxes || !group_has_axis(p->sp, to, y->axis[k]) ||
        axis_size(p->sp, x->axis[k]) != axis_size(p->sp, y->axis[k]))
      return false;
    li.split[i].axis = y->axis[k];
  }
  *out = layout_of(p->sp, &li);
  return true;
}

// The pieces of the other end, and at the source everything everywhere.
static void add_mirrored(prog *p, const shape *s, group g, layout from, group to, layout want, cost_model *k,
                         endings *source, endings *target) {
  const u32 ns = source->n, nt = target->n;
  for (u32 i = 0; i < ns; i++) {
    ending x = {.elems = source->v[i].elems};
    if (!mirrored(p, g, to, source->v[i].l, &x.l)) continue;
    x.cost = conversion(p, s, to, x.l, want, MATERIALISE_INTER, k, &x.steps);
    add_end(target, x);
  }
  for (u32 i = 0; i <= nt; i++) {
    ending x = {.l = sendable(p, (layout){0}, from)};
    if (i < nt && !mirrored(p, to, g, target->v[i].l, &x.l)) continue;
    x.cost = conversion(p, s, g, from, x.l, MATERIALISE_INTER, k, &x.steps);
    x.elems = local(p, s, x.l);
    add_end(source, x);
  }
}

// ---- routes --------------------------------------------------------------------------------------------
double route_cost(prog *p, const shape *s, group g, layout from, group to, layout want, materialise_way how,
                  const route *r, cost_model *k) {
  u32 steps = 0;
  double a = conversion(p, s, g, from, r->sent, how, k, &steps);
  double b = conversion(p, s, to, r->got, spatial(p, want, from), how, k, &steps);
  return a + sending(p, s, g, r->sent, to, r->got, k) + b;
}

// What is there, without sums, sent as what is wanted. On the same ranks everything is gathered first unless that
// moves nothing.
static route route_plain(prog *p, const shape *s, group g, layout from, group to, layout want,
                         materialise_way how, cost_model *k) {
  const u32 diags = diag_count(p->c);
  route r = {sendable(p, from, from), sendable(p, want, from), INFINITY};
  if (!layout_fits(p->sp, r.got, s->nd, s->dim)) return r;
  if (same_ranks(p, g, to) && !is_local(p, s, g, r.sent, to, r.got)) r.sent = sendable(p, (layout){0}, from);
  r.cost = route_cost(p, s, g, from, to, want, how, &r, k);
  diag_truncate(p->c, diags);
  return r;
}

route route_find(prog *p, const shape *s, group g, layout from, group to, layout want, materialise_way how,
                 cost_model *k) {
  if (how != MATERIALISE_INTER) return route_plain(p, s, g, from, to, want, how, k);
  const bool same = same_ranks(p, g, to);
  endings source = {.all = same}, target = {.all = same};
  layout base = sendable(p, from, from), goal = sendable(p, want, from);
  route best = {base, goal, INFINITY};
  i64 best_even = 0;
  u32 best_steps = 0, diags = diag_count(p->c);
  if (!layout_fits(p->sp, goal, s->nd, s->dim)) return best; // its conversion will say why
  bool even = group_get(p->sp, g)->nranks == group_get(p->sp, to)->nranks;
  find_ends(p, s, g, from, base, goal, true, k, &source);
  find_ends(p, s, to, spatial(p, want, from), goal, base, false, k, &target);
  if (same) add_mirrored(p, s, g, from, to, spatial(p, want, from), k, &source, &target);
  for (u32 i = 0; i < source.n; i++)
    for (u32 j = 0; j < target.n; j++) {
      const ending *x = &source.v[i], *y = &target.v[j];
      double cost = x->cost + sending(p, s, g, x->l, to, y->l, k) + y->cost;
      // Of equal costs: shares of groups of different size are even only if the source's pieces are small;
      // then few steps.
      i64 share = even ? 0 : x->elems;
      u32 steps = x->steps + y->steps;
      bool better = cost < best.cost ||
                    (cost == best.cost && (share < best_even || (share == best_even && steps < best_steps)));
      if (better) best = (route){x->l, y->l, cost}, best_even = share, best_steps = steps;
    }
  diag_truncate(p->c, diags); // a link that is missing is met again when the program is costed
  return best;
}

// ---- values of main ------------------------------------------------------------------------------------
static known_move *move_for(main_build *mb, type from, group to, layout want) {
  u64 key = hash_u64(((u64)from.i << 32) | to.i, want.i);
  for (u32 it = 0, id; hmap_next(&mb->move_map, key, &it, &id);) {
    assert(mb->moves.v); // the map has what is there
    known_move *m = &mb->moves.v[id];
    if (m->from == from.i && m->to == to.i && m->want == want.i) return m;
  }
  type_info t = *type_get(mb->p, from);
  route r = route_find(mb->p, &t.s, t.g, t.lay, to, want, mb->x->pn->materialise, mb->x->k);
  known_move m = {from.i, to.i, want.i, r.sent, type_tensor(mb->p, &t.s, r.got, to)};
  hmap_add(mb->x->a, &mb->move_map, key, mb->moves.n);
  *vec_push(mb->x->a, &mb->moves) = m;
  return &mb->moves.v[mb->moves.n - 1];
}

value main_leave(main_build *mb, value v, group to, layout want, type *got) {
  type from = func_get(mb->p, mb->b.f)->values.v[v].ty;
  group g = type_get(mb->p, from)->g;
  *got = from;
  if (g.i == to.i) return v;
  const known_move *m = move_for(mb, from, to, want);
  *got = m->got;
  mb->b.g = g;
  return shard_convert(mb->x, &mb->b, v, m->sent, g);
}

value main_send(main_build *mb, value v, type got, u8 strm, value after) {
  prog *p = mb->p;
  type t = func_get(p, mb->b.f)->values.v[v].ty;
  if (t.i == got.i || mb->b.failed) return v;
  u8 keep = mb->b.strm, flags = mb->b.flags;
  mb->b.g = type_get(p, t)->g;
  mb->b.strm = strm;
  mb->b.flags |= INSTR_PLAN;
  u32 opd[2] = {v, after | OPD_AFTER};
  v = emit_res(p, mb->b.f, emit(&mb->b, OP_send, (attrset){0}, opd, after ? 2 : 1, &got, 1));
  mb->b.strm = keep, mb->b.flags = flags;
  return v;
}

value main_move(main_build *mb, value v, group to, layout want) {
  type got;
  v = main_leave(mb, v, to, want, &got);
  v = main_send(mb, v, got, mb->send_strm, 0);
  mb->b.g = to;
  return mb->b.failed ? 0 : shard_convert(mb->x, &mb->b, v, want, to);
}

value plan_move(prog *p, func f, value v, group to, layout want, materialise_way how, cost_model *k) {
  const plan pn = {.materialise = how};
  apply x = {.src = p, .p = p, .a = arena_new(), .k = k, .pn = &pn};
  main_build mb = {.x = &x, .b = builder_at(p, f), .s = p, .p = p};
  v = main_move(&mb, v, to, want);
  arena_free(x.a);
  return v;
}
