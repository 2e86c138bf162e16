// pieces.c - where elements lie, as Python says it: process groups, extents, cuts.
//
// Idea: an axis cuts a dimension at a stride. Seen from what is whole over that axis, the stride is that of the
// dimension's local index there: the strides and sizes of other axes that stay fall out of it. Cut one after the
// other, largest stride first, no cut moves the place of the next one.
#include "export/internal.h"

// One interval for each coordinate of an axis across ranks, and nothing else that splits the dimension.
static bool is_plain_table(const py *w, const type_info *t, const lay_split *s) {
  const layout_info *l = layout_get(w->p->sp, t->lay);
  const pieces_info *p = pieces_get(w->p->sp, (pieces){s->table});
  if (axis_get(w->p->sp, s->axis)->temporal) return false;
  for (u32 k = 0; k < l->nsplit; k++)
    if (l->split[k].dim == s->dim && &l->split[k] != s) return false;
  for (u32 k = 0; k < p->npieces; k++)
    if (p->begin[k + 1] != p->begin[k] + 1 || p->bound[2 * k] != (k ? p->bound[2 * k - 1] : 0)) return false;
  return p->covers;
}

bool py_local(py *w, const type_info *t, loc where) {
  const layout_info *l = layout_get(w->p->sp, t->lay);
  for (u32 k = 0; k < l->nsplit; k++) {
    if (!l->split[k].table || is_plain_table(w, t, &l->split[k])) continue;
    strbuf b = {.a = w->a};
    layout_print(w->p->sp, t->lay, t->s.nd, t->s.dim, &b);
    const bool first = !w->failed;
    py_refuse(w, where, "uneven pieces in several intervals, or cut again, cannot be exported: %s",
              sb_str(&b));
    py_refuse_hint(w, first, "dp.shares=equal tp.shares=equal, or mb=1");
    return false;
  }
  return true;
}

// Extent on a rank of a dimension of even pieces.
static i64 even_extent(const space *sp, layout lay, u32 dim, i64 extent) {
  const layout_info *l = layout_get(sp, lay);
  for (u32 k = 0; k < l->nsplit; k++)
    if (l->split[k].dim == dim) extent /= axis_size(sp, l->split[k].axis);
  return extent;
}

static const lay_split *table_of(const py *w, layout lay, u32 dim) {
  const layout_info *l = layout_get(w->p->sp, lay);
  for (u32 k = 0; k < l->nsplit; k++)
    if (l->split[k].dim == dim && l->split[k].table) return &l->split[k];
  return NULL;
}

// A name at the top of the program for the ends of uneven pieces.
static const char *bounds_of(py *w, u16 table) {
  for (u32 k = 0; k < w->tables.n; k++)
    if (w->tables.v[k].table == table) return w->tables.v[k].name;
  strbuf b = {.a = w->a};
  sb_fmt(&b, "PIECES_%lld", (long long)pieces_get(w->p->sp, (pieces){table})->extent);
  *vec_push(w->a, &w->tables) = (py_table){.name = py_name(w, &w->global, sb_str(&b)), .table = table};
  return w->tables.v[w->tables.n - 1].name;
}

void py_extent(py *w, const type_info *t, u32 dim, strbuf *b) {
  if (w->here) {
    sb_i64(b, layout_local_extent(w->p->sp, t->lay, (u8)dim, t->s.dim[dim], w->here));
    return;
  }
  const lay_split *s = table_of(w, t->lay, dim);
  if (s)
    sb_fmt(b, "extent(%s, %s)", bounds_of(w, s->table), py_axes_of(w, &s->axis, 1));
  else
    sb_i64(b, even_extent(w->p->sp, t->lay, dim, t->s.dim[dim]));
}

void py_extents(py *w, const type_info *t, strbuf *b) {
  sb_char(b, '(');
  for (u32 k = 0; k < t->s.nd; k++) {
    if (k) sb_put(b, ", ");
    py_extent(w, t, k, b);
  }
  sb_put(b, t->s.nd == 1 ? ",)" : ")");
}

void py_stride(py *w, const lay_split *s, i64 stride, strbuf *b) {
  if (s->table)
    sb_put(b, bounds_of(w, s->table));
  else
    sb_i64(b, stride);
}

const char *py_mesh_of(py *w, u8 axis) { return w->meshes[w->mesh_of[axis].i]; }

// "Part(5, 2, 4)": the place of the coordinates among all that there are, and how many these are on each axis.
static const char *place_here(py *w, const u8 *axes, u32 n) {
  strbuf b = {.a = w->a}, sizes = b;
  u32 at = 0;
  for (u32 k = 0; k < n; k++) {
    at = at * axis_size(w->p->sp, axes[k]) + w->here->at[axes[k]];
    sb_fmt(&sizes, ", %u", axis_size(w->p->sp, axes[k]));
  }
  sb_fmt(&b, "Part(%u%s)", at, sb_str(&sizes));
  return sb_str(&b);
}

const group_axis *py_part(const py *w, group g, u8 axis) {
  const group_info *i = g.i ? group_get(w->p->sp, g) : NULL;
  for (u32 k = 0; i && k < i->naxes; k++)
    if (i->axis[k].axis == axis && i->axis[k].at == -2) return &i->axis[k];
  return NULL;
}

static bool same_part(const group_axis *x, const group_axis *y) {
  return x == y || (x && y && x->nonly == y->nonly && !memcmp(x->only, y->only, x->nonly * sizeof *x->only));
}

static bool is_named(const py *w, const py_axes *x, const u8 *axes, u32 n) {
  bool same = x->n == n && !memcmp(x->axis, axes, n);
  for (u32 k = 0; same && k < n; k++) same = same_part(x->only[k], py_part(w, w->ranks, axes[k]));
  return same;
}

const char *py_axes_of(py *w, const u8 *axes, u32 n) {
  if (w->here) return place_here(w, axes, n);
  for (u32 k = 0; k < w->axes.n; k++)
    if (is_named(w, &w->axes.v[k], axes, n)) return w->axes.v[k].name;
  strbuf b = {.a = w->a};
  for (u32 k = 0; k < n; k++) {
    if (k) sb_char(&b, '_');
    for (const char *s = sym_str(w->c, axis_get(w->p->sp, axes[k])->name); *s; s++)
      sb_char(&b, *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s);
    const group_axis *part = py_part(w, w->ranks, axes[k]);
    for (u32 j = 0; part && j < part->nonly; j++) sb_fmt(&b, "_%u", part->only[j]);
  }
  py_axes *x = vec_push(w->a, &w->axes);
  *x = (py_axes){.name = py_name(w, &w->global, sb_str(&b)), .n = n};
  memcpy(x->axis, axes, n);
  for (u32 k = 0; k < n; k++) x->only[k] = py_part(w, w->ranks, axes[k]);
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
  for (u32 d = 0; d < cut->s.nd; d++) dim[d] = even_extent(sp, whole, d, cut->s.dim[d]);
  for (u32 k = 0; k < n; k++) {
    const lay_split *s = layout_split_of(sp, cut->lay, axes[k]);
    const i64 stride = stride_in(sp, whole, s), ways = axis_size(sp, axes[k]);
    if (s->table)
      sb_fmt(b, "%s(%u, %s)", k ? ", " : "", s->dim, bounds_of(w, s->table));
    else if (stride * ways == dim[s->dim])
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
    if (w->here && !(w->p->fixed.v[point] >> s->axis & 1))
      sb_fmt(b, "%u", w->here->at[s->axis]);
    else if (!axis_get(sp, s->axis)->temporal)
      sb_fmt(b, "%s.at", py_axes_of(w, &s->axis, 1));
    else if (s->axis == w->loop)
      sb_put(b, w->time[s->axis]);
    else if (w->p->fixed.v[point] >> s->axis & 1)
      sb_fmt(b, "%u", w->p->points.v[point].at[s->axis]);
    else
      sb_put(b, w->time[s->axis]), w->told |= 1ull << s->axis;
    sb_fmt(b, ", %u, ", axis_size(sp, s->axis));
    py_stride(w, s, s->stride, b);
    sb_char(b, ')');
    any = true;
  }
  sb_char(b, ']');
}
