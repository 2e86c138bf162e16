// plain.c - from one layout to another by plain sends and receives: no search, and no collective. What the steps move,
// counted.
//
// Idea: an exchange gives every member its new piece whatever changes, so one is enough, and one before it for each
// reduction: summands are added by whoever wants the sum.
#include "layout/internal.h"

// ---- counting ------------------------------------------------------------------------------------------
i64 layout_common_elems(const space *s, u32 nd, const i64 *dims, layout l, const coords *c, layout m,
                        const coords *d) {
  arena *a = arena_new();
  i64 most = 1, all = 1;
  for (u32 k = 0; k < nd; k++) most = MAX(most, dims[k]);
  u8 *mark = NEWN(a, u8, most);
  i64 *index = NEWN(a, i64, most);
  for (u32 k = 0; k < nd && all; k++) {
    memset(mark, 0, (size_t)dims[k]);
    i64 both = 0, n = layout_index(s, l, (u8)k, dims[k], c, index);
    for (i64 i = 0; i < n; i++) mark[index[i]] = 1;
    n = layout_index(s, m, (u8)k, dims[k], d, index);
    for (i64 i = 0; i < n; i++) both += mark[index[i]];
    all *= both;
  }
  arena_free(a);
  return all;
}

static i64 elems_of(const space *s, u32 nd, const i64 *dims, layout l, const coords *c) {
  i64 local[DIMS_MAX], n = 1;
  layout_local_dims(s, l, nd, dims, c, local);
  for (u32 d = 0; d < nd; d++) n *= local[d];
  return n;
}

i64 layout_exchanged_elems(const space *s, group g, u32 nd, const i64 *dims, layout from, layout to,
                           const u8 *axes, u32 naxes) {
  const bool sums = layout_part_of(s, from, axes[0]) != RED_NONE,
             even = layout_is_even(s, from) && layout_is_even(s, to);
  const u32 n = group_offsets(s, g, axes, naxes, NULL, 0), nranks = group_get(s, g)->nranks;
  i64 most = 0;
  for (u32 m = 0; m < nranks; m++) {
    coords c;
    if (even && group_lead(s, g, m, axes, naxes) != 0) continue; // the other subgroups are like the first
    coords_of(s, g, m, NULL, &c);
    const i64 piece = elems_of(s, nd, dims, to, &c);
    most = MAX(most, sums ? piece * (n - 1) : piece - layout_common_elems(s, nd, dims, from, &c, to, &c));
  }
  return most;
}

// ---- steps ---------------------------------------------------------------------------------------------
typedef struct {
  space *s;
  group g;
  u32 nd;
  const i64 *dims;
  layout to;
} plain;

static u32 changing(const plain *x, layout from, layout to, u8 *axes) {
  const group_info *gi = group_get(x->s, x->g);
  u32 n = 0;
  for (u32 k = 0; k < gi->naxes; k++) {
    const u8 a = gi->axis[k].axis;
    if (!group_has_axis(x->s, x->g, a) || axis_size(x->s, a) == 1) continue;
    const lay_split *p = layout_split_of(x->s, from, a), *q = layout_split_of(x->s, to, a);
    const bool same = layout_part_of(x->s, from, a) == layout_part_of(x->s, to, a) && !p == !q &&
                      (!p || (p->dim == q->dim && p->stride == q->stride && p->table == q->table));
    if (!same) axes[n++] = a;
  }
  return n;
}

static layout with_split_of(space *s, layout l, layout of, u8 axis) {
  const lay_split *p = layout_split_of(s, of, axis);
  if (!p) return l;
  const lay_split split = *p; // layouts move when one is added
  return split.table ? layout_with_pieces(s, l, axis, split.dim, (pieces){split.table})
                     : layout_with_split(s, l, axis, split.dim, split.stride);
}

// The sums of one reduction, into the pieces that are wanted where these fit beside what is split already.
static bool add_sums(const plain *x, layout *l, reduction red, layout_step *step) {
  u8 axes[MESH_AXES];
  const u32 n = changing(x, *l, x->to, axes);
  *step = (layout_step){.kind = STEP_EXCHANGE};
  layout whole = *l;
  for (u32 k = 0; k < n; k++)
    if (layout_part_of(x->s, *l, axes[k]) == red) {
      step->axis[step->naxes++] = axes[k];
      whole = layout_without(x->s, whole, axes[k]);
    }
  layout cut = whole;
  for (u32 k = 0; k < step->naxes; k++) cut = with_split_of(x->s, cut, x->to, step->axis[k]);
  if (step->naxes) *l = step->to = layout_fits(x->s, cut, x->nd, x->dims) ? cut : whole;
  return step->naxes;
}

static bool same_in_time(const space *s, layout a, layout b) {
  for (int side = 0; side < 2; side++) {
    const layout x = side ? b : a, y = side ? a : b;
    const layout_info *l = layout_get(s, x);
    for (u32 k = 0; k < l->nsplit; k++) {
      const lay_split *p = &l->split[k], *q = layout_split_of(s, y, p->axis);
      if (axis_get(s, p->axis)->temporal &&
          (!q || q->dim != p->dim || q->stride != p->stride || q->table != p->table))
        return false;
    }
    for (u32 k = 0; k < l->npart; k++)
      if (axis_get(s, l->part[k].axis)->temporal &&
          layout_part_of(s, y, l->part[k].axis) != (reduction)l->part[k].red)
        return false;
  }
  return true;
}

int layout_plain_path(space *s, group g, u32 nd, const i64 *dims, layout from, layout to,
                      layout_step steps[PLAIN_STEPS]) {
  const plain x = {s, g, nd, dims, to};
  layout l = from, last = to;
  int n = 0;
  u8 axes[MESH_AXES];
  if (!layout_fits(s, from, nd, dims) || !layout_fits(s, to, nd, dims) || !same_in_time(s, from, to))
    return -1;
  for (reduction red = RED_SUM; red <= RED_PROD; red++) n += add_sums(&x, &l, red, &steps[n]);
  const u32 nnew = changing(&x, l, to, axes);
  layout_step sums = {.kind = STEP_PARTIAL, .to = to};
  for (u32 k = 0; k < nnew; k++)
    if (layout_part_of(s, to, axes[k]) != RED_NONE)
      sums.axis[sums.naxes++] = axes[k], last = layout_without(s, last, axes[k]);
  layout_step move = {.kind = STEP_SHARD, .to = last};
  move.naxes = changing(&x, l, last, move.axis);
  for (u32 k = 0; k < move.naxes; k++)
    if (layout_split_of(s, l, move.axis[k])) move.kind = STEP_EXCHANGE;
  if (move.naxes) steps[n++] = move;
  if (sums.naxes) steps[n++] = sums;
  return n;
}
