// pieces.c - where elements lie, as Python says it: process groups, extents, cuts.
//
// Idea: an axis cuts a dimension at a stride. Seen from what is whole over that axis, the stride is that of the
// dimension's local index there: the strides and sizes of other axes that stay fall out of it. Cut one after the
// other, largest stride first, no cut moves the place of the next one.
#include "export/internal.h"

bool py_local(py *w, const type_info *t, loc where, i64 *dim) {
  const space *sp = w->p->sp;
  if (!layout_is_even(sp, t->lay)) {
    strbuf b = {.a = w->a};
    layout_print(sp, t->lay, t->s.nd, t->s.dim, &b);
    const bool first = !w->failed;
    py_refuse(w, where, "pieces of different extents, %s, cannot be exported", sb_str(&b));
    if (first) diag_hint(w->c, "dp.shares=equal tp.shares=equal, and extents that the degrees divide");
    return false;
  }
  layout_local_dims(sp, t->lay, t->s.nd, t->s.dim, NULL, dim);
  return true;
}

const char *py_mesh_of(py *w, u8 axis) { return w->meshes[w->mesh_of[axis].i]; }

const char *py_axes_of(py *w, const u8 *axes, u32 n) {
  for (u32 k = 0; k < w->axes.n; k++)
    if (w->axes.v[k].n == n && !memcmp(w->axes.v[k].axis, axes, n)) return w->axes.v[k].name;
  strbuf b = {.a = w->a};
  for (u32 k = 0; k < n; k++) {
    if (k) sb_char(&b, '_');
    for (const char *s = sym_str(w->c, axis_get(w->p->sp, axes[k])->name); *s; s++)
      sb_char(&b, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s);
  }
  py_axes *x = vec_push(w->a, &w->axes);
  *x = (py_axes){.name = py_name(w, &w->global, sb_str(&b)), .n = n};
  memcpy(x->axis, axes, n);
  return x->name;
}

static bool before(const lay_split *x, const lay_split *y) {
  return x->dim != y->dim ? x->dim < y->dim : x->stride > y->stride;
}

u32 py_order(py *w, const type_info *cut, const u8 *over, u32 n, u8 *axes) {
  const space *sp = w->p->sp;
  u32 m = 0;
  for (u32 k = 0; k < n; k++) {
    const lay_split *s = cut ? layout_split_of(sp, cut->lay, over[k]) : NULL;
    if (axis_size(sp, over[k]) <= 1 || (cut && !s)) continue;
    u32 at = m++;
    for (; at; at--) {
      const lay_split *other = cut ? layout_split_of(sp, cut->lay, axes[at - 1]) : NULL;
      if (cut ? !before(s, other) : over[k] >= axes[at - 1]) break;
      axes[at] = axes[at - 1];
    }
    axes[at] = over[k];
  }
  return m;
}

// The stride of a split in the local index of a tensor that lies as `whole`.
static i64 stride_in(const space *sp, layout whole, const lay_split *s) {
  const layout_info *l = layout_get(sp, whole);
  i64 stride = s->stride;
  for (u32 k = 0; k < l->nsplit; k++)
    if (l->split[k].dim == s->dim && l->split[k].stride < s->stride)
      stride /= axis_size(sp, l->split[k].axis);
  return stride;
}

void py_cuts(py *w, const type_info *cut, layout whole, const u8 *axes, u32 n, strbuf *b) {
  const space *sp = w->p->sp;
  i64 dim[DIMS_MAX];
  layout_local_dims(sp, whole, cut->s.nd, cut->s.dim, NULL, dim);
  for (u32 k = 0; k < n; k++) {
    const lay_split *s = layout_split_of(sp, cut->lay, axes[k]);
    const i64 stride = stride_in(sp, whole, s), ways = axis_size(sp, axes[k]);
    if (stride * ways == dim[s->dim])
      sb_fmt(b, "%s%u", k ? ", " : "", s->dim);
    else
      sb_fmt(b, "%s(%u, %lld)", k ? ", " : "", s->dim, (long long)stride);
    dim[s->dim] /= ways;
  }
}

bool py_is_split(const py *w, const type_info *t, u32 dim) {
  const layout_info *l = layout_get(w->p->sp, t->lay);
  for (u32 k = 0; k < l->nsplit; k++)
    if (l->split[k].dim == dim) return true;
  return false;
}

void py_here(py *w, const type_info *t, u32 dim, u32 point, strbuf *b) {
  const space *sp = w->p->sp;
  const layout_info *l = layout_get(sp, t->lay);
  bool any = false;
  sb_char(b, '[');
  for (u32 k = 0; k < l->nsplit; k++) { // of a dimension in the order of their strides
    const lay_split *s = &l->split[k];
    if (s->dim != dim) continue;
    sb_put(b, any ? ", (" : "(");
    if (!axis_get(sp, s->axis)->temporal)
      sb_fmt(b, "%s.at", py_axes_of(w, &s->axis, 1));
    else if (w->p->fixed.v[point] >> s->axis & 1)
      sb_fmt(b, "%u", w->p->points.v[point].at[s->axis]);
    else
      sb_put(b, w->time[s->axis]), w->told |= 1ull << s->axis;
    sb_fmt(b, ", %u, %lld)", axis_size(sp, s->axis), (long long)s->stride);
    any = true;
  }
  sb_char(b, ']');
}
