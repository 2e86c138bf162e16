// convert.c - a value in another layout on its group: the cheapest chain of communications, written out. What
// is sharded in storage. Not which layout is needed (shard.c), nor between groups (move.c).
#include "cost/cost.h"
#include "plan/internal.h"
#include <math.h>

const opcode step_op[] = {[STEP_SHARD] = OP_shard,
                          [STEP_PARTIAL] = OP_partial,
                          [STEP_ALL_GATHER] = OP_all_gather,
                          [STEP_ALL_REDUCE] = OP_all_reduce,
                          [STEP_REDUCE_SCATTER] = OP_reduce_scatter,
                          [STEP_ALL_TO_ALL] = OP_all_to_all,
                          [STEP_PERMUTE] = OP_permute,
                          [STEP_EXCHANGE] = OP_exchange};
const char *const plan_materialise_name[MATERIALISE_WAYS] = {"inter", "intra", "p2p"};

void group_put_free_axes(arena *a, key_words *k, const space *sp, group g) {
  const group_info *gi = group_get(sp, g);
  *vec_push(a, k) = (u64)gi->m.i << 32 | gi->naxes;
  for (u32 i = 0; i < gi->naxes; i++) {
    const group_axis *ax = &gi->axis[i];
    *vec_push(a, k) = (u64)(MIN(ax->at, 0) + 2);
    if (ax->at == -2) key_put_bytes(a, k, ax->only, sizeof *ax->only * ax->nonly);
  }
}

typedef struct {
  const prog *p;
  cost_model *k;
  group g; // all of the mesh: functions and paths are shared by groups at other coordinates
  dtype t;
} pricing;

// Picoseconds of the slowest subgroup, all of the mesh communicating at once. INFINITY: there is no link.
static double step_cost_time(void *arg, step_kind kind, const u8 *axes, u32 naxes, u32 n, i64 in_elems,
                             i64 out_elems) {
  const pricing *x = arg;
  (void)n;
  if (kind == STEP_SHARD || kind == STEP_PARTIAL) return 0;
  const bool out = kind == STEP_ALL_GATHER || kind == STEP_EXCHANGE;
  const i64 bytes = (out ? out_elems : in_elems) * dtype_bytes(x->t);
  const i64 ps = cost_over(x->k, x->p, x->g, axes, naxes, step_op[kind], bytes, x->t);
  return ps < 0 ? INFINITY : (double)ps;
}

// Steps of the plain path. An exchange counts what it moves as its result.
static int plain_path(const pricing *x, const shape *s, layout from, layout to, group g,
                      layout_step steps[PATH_STEPS], double *cost) {
  const int n = layout_plain_path(x->p->sp, g, s->nd, s->dim, from, to, steps);
  *cost = 0;
  for (int i = 0; i < n; from = steps[i++].to) {
    const layout_step *st = &steps[i];
    const i64 moved = st->kind == STEP_EXCHANGE ? layout_exchanged_elems(x->p->sp, g, s->nd, s->dim, from,
                                                                         st->to, st->axis, st->naxes)
                                                : 0;
    *cost += x->k ? step_cost_time((void *)x, st->kind, st->axis, st->naxes, 0, 0, moved)
                  : step_cost_elements(NULL, st->kind, NULL, 0, 0, 0, moved);
  }
  return n;
}

int plan_path(const prog *p, cost_model *k, materialise_way how, const shape *s, layout from, layout to,
              group g, layout_step steps[PATH_STEPS], double *cost) {
  const group_info *gi = group_get(p->sp, g);
  const u32 before = diag_count(p->c);
  pricing x = {p, k, gi->m.i ? group_of(p->sp, gi->m, NULL, 0) : g, s->t};
  int n = -1;
  if (how == MATERIALISE_P2P) n = plain_path(&x, s, from, to, g, steps, cost);
  if (how != MATERIALISE_P2P && k)
    n = layout_path(p->sp, g, s->nd, s->dim, from, to, step_cost_time, &x, steps, PATH_STEPS, cost);
  diag_truncate(p->c, before); // a link that is missing is told where it is costed
  if (n >= 0 || how == MATERIALISE_P2P) return n;
  return layout_path(p->sp, g, s->nd, s->dim, from, to, step_cost_elements, NULL, steps, PATH_STEPS, cost);
}

static const path_entry *path_between(apply *x, const shape *sh, layout from, layout to, group g) {
  key_words key = {0};
  *vec_push(x->a, &key) = (u64)from.i << 32 | to.i, *vec_push(x->a, &key) = (u64)sh->t << 32 | sh->nd;
  for (u32 d = 0; d < sh->nd; d++) *vec_push(x->a, &key) = (u64)sh->dim[d];
  group_put_free_axes(x->a, &key, x->p->sp, g);
  const u32 at = key_find(&x->path_keys, &key);
  if (at) return x->paths.v[at - 1].n == ~0u ? NULL : &x->paths.v[at - 1];
  layout_step steps[PATH_STEPS];
  double cost;
  const int n = plan_path(x->p, x->k, x->pn->materialise, sh, from, to, g, steps, &cost);
  *vec_push(x->a, &x->paths) = (path_entry){n < 0 ? 0 : cost, n < 0 ? ~0u : (u32)n,
                                            n > 0 ? arena_dup(x->a, steps, sizeof *steps * (u32)n) : NULL};
  key_add(x->a, &x->path_keys, &key);
  return n < 0 ? NULL : &x->paths.v[x->paths.n - 1];
}

// After the last microbatch a sum over time is complete: what is partial over a temporal axis becomes whole.
value shard_complete(apply *x, builder *b, value v) {
  prog *p = x->p;
  type_info t = *val_type(p, func_get(p, b->f), v);
  layout_info li = *layout_get(p->sp, t.lay);
  for (u32 i = 0; i < li.npart; i++) {
    if (!axis_get(p->sp, li.part[i].axis)->temporal) continue;
    t.lay = layout_without(p->sp, t.lay, li.part[i].axis);
    attr over = attr_x(A_over, &li.part[i].axis, 1);
    type rt = type_tensor(p, &t.s, t.lay, t.g);
    v = emit_res(p, b->f, emit(b, OP_join, attrs_of(p, &over, 1), &v, 1, &rt, 1));
  }
  return v;
}

// What does not vary in time, needed as the piece (or one summand) of a microbatch: cut out at the current
// coordinate.
static value enter_time(apply *x, builder *b, value v, layout to) {
  prog *p = x->p;
  type_info t = *val_type(p, func_get(p, b->f), v);
  layout_info li = *layout_get(p->sp, to);
  for (u32 i = 0; i < li.nsplit + li.npart; i++) {
    bool split = i < li.nsplit;
    u8 ax = split ? li.split[i].axis : li.part[i - li.nsplit].axis;
    if (!axis_get(p->sp, ax)->temporal || layout_split_of(p->sp, t.lay, ax) ||
        layout_part_of(p->sp, t.lay, ax) != RED_NONE)
      continue;
    t.lay = split ? layout_with_split(p->sp, t.lay, ax, li.split[i].dim, li.split[i].stride)
                  : layout_with_part(p->sp, t.lay, ax, RED_SUM);
    attr over = attr_x(A_over, &ax, 1);
    type rt = type_tensor(p, &t.s, t.lay, t.g);
    v = emit_res(p, b->f, emit(b, split ? OP_shard : OP_partial, attrs_of(p, &over, 1), &v, 1, &rt, 1));
  }
  return v;
}

value shard_convert(apply *x, builder *b, value v, layout to, group g) {
  prog *p = x->p;
  if (x->update) v = shard_complete(x, b, v);
  v = enter_time(x, b, v, to);
  type_info t = *val_type(p, func_get(p, b->f), v);
  if (t.lay.i == to.i) return v;
  const path_entry *path = path_between(x, &t.s, t.lay, to, g);
  if (!path) {
    plan_no_way(p, b->where, &t, to);
    b->failed = true;
    return 0;
  }
  if (x->trial) x->trial->moved += path->cost * dtype_bytes(t.s.t);
  u8 flags = b->flags;
  b->flags |= INSTR_PLAN;
  for (u32 i = 0; i < path->n; i++) {
    const layout_step *st = &path->step[i];
    attr over = attr_x(A_over, st->axis, st->naxes);
    type rt = type_tensor(p, &t.s, st->to, t.g);
    v = emit_res(p, b->f, emit(b, step_op[st->kind], attrs_of(p, &over, 1), &v, 1, &rt, 1));
  }
  b->flags = flags;
  return v;
}

// ---- in storage -------------------------------------------------------------------------------------------
// The largest dimension that nothing splits and that has an element for each of n ranks; nd: there is none.
static u32 dim_for_pieces(const space *sp, layout l, u32 nd, const i64 *dims, u32 n) {
  const layout_info *li = layout_get(sp, l);
  u32 best = nd, taken = 0;
  for (u32 i = 0; i < li->nsplit; i++) taken |= 1u << li->split[i].dim;
  for (u32 d = 0; d < nd; d++)
    if (!(taken >> d & 1) && dims[d] >= n && (best == nd || dims[d] > dims[best])) best = d;
  return best;
}

layout shard_storage(apply *x, layout l, const shape *sh, storage_kind what, group g) {
  space *sp = x->p->sp;
  for (u32 i = 0; i < x->pn->nstorage[what]; i++) {
    u8 axis = x->axis[x->pn->storage[what][i]];
    u32 n = axis_size(sp, axis), d = 0;
    if (layout_split_of(sp, l, axis) || !group_has_axis(sp, g, axis)) continue;
    if (group_axis_size(sp, g, axis) != n) continue; // the others of a subset lie elsewhere
    i64 stride = 0;
    while (d < sh->nd && !(stride = layout_next_stride(sp, l, (u8)d, sh->dim[d], n))) d++;
    if (!stride) d = dim_for_pieces(sp, l, sh->nd, sh->dim, n);
    if (d == sh->nd) continue;
    l = stride ? layout_with_split(sp, l, axis, (u8)d, stride)
               : layout_with_pieces(sp, l, axis, (u8)d, pieces_spread(sp, n, sh->dim[d]));
    x->storage_split[what] = true;
  }
  return l;
}
