// layout.c - layouts: interning, whether they fit, and which elements a rank holds. Not how to get from one
// to another (path.c).
//
// Idea: an even split takes one digit of the index, written in the mixed radix that the strides of the
// dimension define; the digits that are not taken, in their order, are the local index. An uneven split takes
// what its table says. A rank holds the indices for which every taken digit is its own coordinate and that
// its pieces contain.
#include "layout/internal.h"
#include <stdlib.h>

const char *red_name(reduction r) {
  static const char *const name[] = {"none", "sum", "max", "min", "prod"};
  assert((u32)r < COUNT_OF(name));
  return name[r];
}

// ---- interning ---------------------------------------------------------------------------------------

static bool split_before(const lay_split *x, const lay_split *y) {
  if (x->dim != y->dim) return x->dim < y->dim;
  return x->stride != y->stride ? x->stride > y->stride : x->axis < y->axis;
}

static u64 split_word(const lay_split *x) { return x->axis | (u32)x->dim << 8 | (u64)x->table << 16; }

static bool same_layout(const layout_info *x, const layout_info *y) {
  if (x->nsplit != y->nsplit || x->npart != y->npart) return false;
  for (u32 i = 0; i < x->nsplit; i++)
    if (x->split[i].stride != y->split[i].stride || split_word(&x->split[i]) != split_word(&y->split[i]))
      return false;
  for (u32 i = 0; i < x->npart; i++)
    if (x->part[i].axis != y->part[i].axis || x->part[i].red != y->part[i].red) return false;
  return true;
}

// Only the first nsplit and npart entries of `to` are written: the whole is 280 bytes, most layouts use 40.
static void canonical(const space *s, const layout_info *from, layout_info *to) {
  u64 seen = 0;
  to->nsplit = to->npart = 0;
  for (u32 i = 0; i < from->nsplit; i++) {
    lay_split x = from->split[i];
    assert(x.axis && x.axis <= s->naxes && !(seen >> x.axis & 1));
    seen |= 1ull << x.axis;
    if (x.table) {
      assert(x.table < s->tables.n && x.stride == 0);
      const pieces_info *t = &s->tables.v[x.table];
      if (t->each && t->npieces == s->axis[x.axis].size) x.table = 0, x.stride = t->each;
    }
    if (!x.table && s->axis[x.axis].size == 1) continue;
    assert(x.table || x.stride > 0);
    u32 k = to->nsplit++;
    for (; k && split_before(&x, &to->split[k - 1]); k--) to->split[k] = to->split[k - 1];
    to->split[k] = x;
  }
  for (u32 i = 0; i < from->npart; i++) {
    lay_part x = from->part[i];
    assert(x.axis && x.axis <= s->naxes && !(seen >> x.axis & 1));
    seen |= 1ull << x.axis;
    if (x.red == RED_NONE || s->axis[x.axis].size == 1) continue;
    u32 k = to->npart++;
    for (; k && x.axis < to->part[k - 1].axis; k--) to->part[k] = to->part[k - 1];
    to->part[k] = x;
  }
}

layout layout_of(space *s, const layout_info *l) {
  assert(l->nsplit <= LAY_SPLITS && l->npart <= LAY_PARTS);
  layout_info x;
  canonical(s, l, &x);
  if (!x.nsplit && !x.npart) return (layout){0};
  u64 h = x.nsplit;
  for (u32 i = 0; i < x.nsplit; i++)
    h = hash_u64(((u64)x.split[i].stride << 24) + split_word(&x.split[i]), h);
  for (u32 i = 0; i < x.npart; i++) h = hash_u64(x.part[i].axis | (u32)x.part[i].red << 8, h);
  for (u32 it = 0, id; hmap_next(&s->layout_map, h, &it, &id);)
    if (same_layout(&s->layouts.v[id], &x)) return (layout){id};
  layout_info *to = vec_push(s->a, &s->layouts);
  memset(to, 0, sizeof *to);
  to->nsplit = x.nsplit;
  to->npart = x.npart;
  memcpy(to->split, x.split, x.nsplit * sizeof *x.split);
  memcpy(to->part, x.part, x.npart * sizeof *x.part);
  hmap_add(s->a, &s->layout_map, h, s->layouts.n - 1);
  return (layout){s->layouts.n - 1};
}

const layout_info *layout_get(const space *s, layout l) {
  assert(l.i < s->layouts.n);
  return &s->layouts.v[l.i];
}

const lay_split *layout_split_of(const space *s, layout l, u8 axis) {
  const layout_info *x = layout_get(s, l);
  for (u32 i = 0; i < x->nsplit; i++)
    if (x->split[i].axis == axis) return &x->split[i];
  return NULL;
}

reduction layout_part_of(const space *s, layout l, u8 axis) {
  const layout_info *x = layout_get(s, l);
  for (u32 i = 0; i < x->npart; i++)
    if (x->part[i].axis == axis) return (reduction)x->part[i].red;
  return RED_NONE;
}

// What the layout says of all other axes.
static void copy_without(const space *s, layout l, u8 axis, layout_info *to) {
  const layout_info *x = layout_get(s, l);
  to->nsplit = to->npart = 0;
  for (u32 i = 0; i < x->nsplit; i++)
    if (x->split[i].axis != axis) to->split[to->nsplit++] = x->split[i];
  for (u32 i = 0; i < x->npart; i++)
    if (x->part[i].axis != axis) to->part[to->npart++] = x->part[i];
}

layout layout_without(space *s, layout l, u8 axis) {
  layout_info x;
  copy_without(s, l, axis, &x);
  return layout_of(s, &x);
}

static layout with_split(space *s, layout l, lay_split p) {
  layout_info x;
  copy_without(s, l, p.axis, &x);
  assert(x.nsplit < LAY_SPLITS);
  x.split[x.nsplit++] = p;
  return layout_of(s, &x);
}

layout layout_with_split(space *s, layout l, u8 axis, u8 dim, i64 stride) {
  return with_split(s, l, (lay_split){.axis = axis, .dim = dim, .stride = stride});
}

layout layout_with_pieces(space *s, layout l, u8 axis, u8 dim, pieces p) {
  return with_split(s, l, (lay_split){.axis = axis, .dim = dim, .table = (u16)p.i});
}

layout layout_with_part(space *s, layout l, u8 axis, reduction r) {
  layout_info x;
  copy_without(s, l, axis, &x);
  assert(x.npart < LAY_PARTS);
  x.part[x.npart++] = (lay_part){.axis = axis, .red = (u8)r};
  return layout_of(s, &x);
}

// ---- uneven pieces -----------------------------------------------------------------------------------

typedef struct {
  i64 lo, hi;
} interval;

static int by_lo(const void *x, const void *y) {
  i64 a = ((const interval *)x)->lo, b = ((const interval *)y)->lo;
  return (a > b) - (a < b);
}

// The non-empty ones of n intervals, sorted; their number.
static u32 sorted_intervals(const i64 *bound, u32 n, interval *to) {
  u32 k = 0;
  for (u32 i = 0; i < n; i++)
    if (bound[2 * i] < bound[2 * i + 1]) to[k++] = (interval){bound[2 * i], bound[2 * i + 1]};
  qsort(to, k, sizeof *to, by_lo);
  return k;
}

bool pieces_sound(arena *a, u32 npieces, const u32 *begin, const i64 *bound, i64 extent, u32 *piece) {
  arena_mark_t mark = arena_mark(a);
  interval *v = NEWN(a, interval, begin[npieces] + 1);
  bool ok = true;
  for (*piece = 0; *piece < npieces && ok; *piece += ok) {
    u32 from = begin[*piece], n = begin[*piece + 1] - from;
    for (u32 i = from; i < from + n; i++)
      ok = ok && 0 <= bound[2 * i] && bound[2 * i] <= bound[2 * i + 1] && bound[2 * i + 1] <= extent;
    n = sorted_intervals(bound + 2 * from, n, v);
    for (u32 i = 1; i < n; i++) ok = ok && v[i - 1].hi <= v[i].lo;
  }
  arena_release(a, mark);
  return ok;
}

// The first index of 0..extent that no piece contains; extent if there is none.
static i64 first_missing(arena *a, const pieces_info *t) {
  arena_mark_t mark = arena_mark(a);
  interval *v = NEWN(a, interval, t->begin[t->npieces] + 1);
  u32 n = sorted_intervals(t->bound, t->begin[t->npieces], v);
  i64 end = 0;
  for (u32 i = 0; i < n && v[i].lo <= end; i++) end = MAX(end, v[i].hi);
  arena_release(a, mark);
  return end;
}

static i64 piece_length(const pieces_info *t, u32 piece) {
  i64 n = 0;
  for (u32 i = t->begin[piece]; i < t->begin[piece + 1]; i++) n += t->bound[2 * i + 1] - t->bound[2 * i];
  return n;
}

// Pieces are compared with the first of at most so many sizes, so that pieces of many are not all compared.
enum { SIZES = 16 };

static const u32 *like_pieces(arena *a, const pieces_info *t) {
  u32 *like = NEWN(a, u32, t->npieces), first[SIZES], n = 0;
  i64 size[SIZES];
  for (u32 k = 0; k < t->npieces; k++) {
    const i64 own = piece_length(t, k);
    u32 i = 0;
    while (i < n && size[i] != own) i++;
    if (i == n && n < SIZES) size[n] = own, first[n++] = k;
    like[k] = i < n ? first[i] : k;
  }
  return like;
}

pieces pieces_of(space *s, u32 npieces, const u32 *begin, const i64 *bound, i64 extent) {
  pieces_info t = {.npieces = npieces, .begin = begin, .bound = bound, .extent = extent};
  size_t begin_bytes = (npieces + 1) * sizeof *begin, bound_bytes = 2 * begin[npieces] * sizeof *bound;
  u32 bad;
  assert(npieces && pieces_sound(s->a, npieces, begin, bound, extent, &bad));
  (void)bad;
  u64 h = hash_bytes(bound, bound_bytes, hash_bytes(begin, begin_bytes, (u64)extent));
  for (u32 it = 0, id; hmap_next(&s->table_map, h, &it, &id);) {
    const pieces_info *x = &s->tables.v[id];
    if (x->extent == extent && x->npieces == npieces && memcmp(x->begin, begin, begin_bytes) == 0 &&
        (!bound_bytes || memcmp(x->bound, bound, bound_bytes) == 0))
      return (pieces){id};
  }
  assert(s->tables.n <= UINT16_MAX);
  i64 each = extent / npieces;
  t.ordered = true;
  for (u32 k = 0; k < npieces; k++)
    for (u32 i = begin[k] + 1; i < begin[k + 1]; i++)
      t.ordered = t.ordered && bound[2 * i - 1] <= bound[2 * i] && bound[2 * i] < bound[2 * i + 1];
  bool regular = each > 0 && extent % npieces == 0 && begin[npieces] == npieces;
  for (u32 k = 0; k < npieces; k++) {
    t.longest = MAX(t.longest, piece_length(&t, k));
    regular = regular && begin[k] == k && bound[2 * k] == each * k && bound[2 * k + 1] == each * (k + 1);
  }
  t.each = regular ? each : 0;
  t.covers = first_missing(s->a, &t) == extent;
  t.begin = arena_dup(s->a, begin, begin_bytes);
  t.bound = arena_dup(s->a, bound, bound_bytes);
  t.like = like_pieces(s->a, &t);
  *vec_push(s->a, &s->tables) = t;
  hmap_add(s->a, &s->table_map, h, s->tables.n - 1);
  return (pieces){s->tables.n - 1};
}

pieces pieces_spread(space *s, u32 n, i64 extent) {
  u64 h = hash_u64((u64)extent, n);
  for (u32 it = 0, id; hmap_next(&s->spread_map, h, &it, &id);)
    if (s->tables.v[id].npieces == n && s->tables.v[id].extent == extent) return (pieces){id};
  arena *tmp = arena_new();
  u32 *begin = NEWN(tmp, u32, n + 1);
  i64 *bound = NEWN(tmp, i64, 2 * (size_t)n), each = extent / n, more = extent % n, at = 0;
  assert(n && n <= extent);
  begin[0] = 0;
  for (u32 k = 0; k < n; k++) {
    begin[k + 1] = k + 1;
    bound[2 * k] = at;
    bound[2 * k + 1] = at += each + (k < more);
  }
  pieces p = pieces_of(s, n, begin, bound, extent);
  hmap_add(s->a, &s->spread_map, h, p.i);
  arena_free(tmp);
  return p;
}

const pieces_info *pieces_get(const space *s, pieces p) {
  assert(p.i && p.i < s->tables.n);
  return &s->tables.v[p.i];
}

// ---- does it fit? ------------------------------------------------------------------------------------

typedef enum { FIT, NO_DIM, NO_DIVIDE, NO_NEST, TWO_TABLES, WRONG_EXTENT, WRONG_COUNT, HOLES } misfit;

// The first split x that does not fit a tensor of these extents; y: the one it collides with. `size` gives
// the ways of every axis, which in a group may be fewer than its positions.
static misfit find_misfit(const space *s, layout l, group g, u32 nd, const i64 *dims, const lay_split **x,
                          const lay_split **y) {
  const layout_info *info = layout_get(s, l);
  for (u32 i = 0; i < info->nsplit; i++) {
    const lay_split *p = *x = &info->split[i];
    if (p->dim >= nd) return NO_DIM;
    if (p->table) {
      const pieces_info *t = &s->tables.v[p->table];
      u32 ways =
          g.i && group_has_axis(s, g, p->axis) ? group_axis_size(s, g, p->axis) : s->axis[p->axis].size;
      if (t->extent != dims[p->dim]) return WRONG_EXTENT;
      if (g.i ? t->npieces != ways : t->npieces > ways) return WRONG_COUNT;
      if (!t->covers) return HOLES;
    } else if (!digit_fits((digit){p->stride, s->axis[p->axis].size}, dims[p->dim]))
      return NO_DIVIDE;
    if (i == 0 || info->split[i - 1].dim != p->dim) continue;
    *y = &info->split[i - 1];
    if (p->table && (*y)->table) return TWO_TABLES;
    if (!p->table && !digits_nest((digit){(*y)->stride, s->axis[(*y)->axis].size},
                                  (digit){p->stride, s->axis[p->axis].size}))
      return NO_NEST;
  }
  return FIT;
}

bool layout_fits(const space *s, layout l, u32 nd, const i64 *dims) {
  const lay_split *x, *y;
  return find_misfit(s, l, (group){0}, nd, dims, &x, &y) == FIT;
}

// Pieces as even as can be, as they are typed.
static void balanced_pieces(strbuf *b, const char *axis, i64 extent, u32 ways) {
  sb_fmt(b, "{%s:", axis);
  for (u32 k = 0; k < ways; k++)
    sb_fmt(b, "%s%lld-%lld", k ? "|" : "", (long long)(extent * k / ways),
           (long long)(extent * (k + 1) / ways));
  sb_char(b, '}');
}

static void hint_pieces(const space *s, const char *axis, i64 extent, u32 ways) {
  if (ways > 8 || extent > INT64_MAX / 8) return;
  strbuf b = {.a = arena_new()};
  balanced_pieces(&b, axis, extent, ways);
  diag_hint(s->c, "uneven pieces are written %s", sb_str(&b));
  arena_free(b.a);
}

static void explain_misfit(const space *s, misfit why, const lay_split *x, const lay_split *y, group g,
                           u32 nd, const i64 *dims, loc at) {
  const char *axis = sym_str(s->c, s->axis[x->axis].name),
             *other = y ? sym_str(s->c, s->axis[y->axis].name) : "";
  u32 size = s->axis[x->axis].size, ways = g.i ? group_axis_size(s, g, x->axis) : size;
  const pieces_info *t = &s->tables.v[x->table];
  long long extent = x->dim < nd ? (long long)dims[x->dim] : 0;
  switch (why) {
  case FIT: break;
  case NO_DIM:
    diag(s->c, E_LAYOUT, at, "axis '%s' splits dimension %u of a tensor that has %u", axis, x->dim, nd);
    break;
  case NO_DIVIDE:
    diag(s->c, E_DIVIDE, at,
         "axis '%s' splits extent %lld of dimension %u into %u parts at stride %lld: not whole", axis, extent,
         x->dim, size, (long long)x->stride);
    if (extent % size == 0)
      diag_hint(s->c, "the largest stride that fits is %lld", extent / size);
    else
      hint_pieces(s, axis, extent, ways);
    break;
  case NO_NEST:
    assert(y); // the other axis
    diag(s->c, E_LAYOUT, at,
         "axes '%s' (%u at stride %lld) and '%s' (%u at stride %lld) overlap in dimension %u", other,
         s->axis[y->axis].size, (long long)y->stride, axis, size, (long long)x->stride, x->dim);
    diag_hint(s->c, "below stride %lld the next axis must repeat within it: stride times size divides %lld",
              (long long)y->stride, (long long)y->stride);
    break;
  case TWO_TABLES:
    diag(s->c, E_LAYOUT, at, "axes '%s' and '%s' both cut dimension %u into uneven pieces", other, axis,
         x->dim);
    break;
  case WRONG_EXTENT:
    diag(s->c, E_LAYOUT, at, "the pieces of axis '%s' are cut from extent %lld, but dimension %u has %lld",
         axis, (long long)t->extent, x->dim, extent);
    hint_pieces(s, axis, extent, ways);
    break;
  case WRONG_COUNT:
    diag(s->c, E_LAYOUT, at, "%u pieces for the %u positions of axis '%s'", t->npieces, ways, axis);
    hint_pieces(s, axis, extent, ways);
    break;
  case HOLES:
    diag(s->c, E_LAYOUT, at, "no piece of axis '%s' contains index %lld of dimension %u", axis,
         (long long)first_missing(s->a, t), x->dim);
    break;
  }
}

// Axes that the group fixes, lacks, or narrows.
static bool check_axes(const space *s, layout l, group g, loc at) {
  const layout_info *info = layout_get(s, l);
  for (u32 i = 0; i < info->nsplit + info->npart; i++) {
    bool splits = i < info->nsplit;
    u8 axis = splits ? info->split[i].axis : info->part[i - info->nsplit].axis;
    if (s->axis[axis].temporal || !g.i) continue;
    bool narrowed = group_has_axis(s, g, axis) && group_axis_size(s, g, axis) < s->axis[axis].size;
    if (group_has_axis(s, g, axis) && !(narrowed && splits && !info->split[i].table)) continue;
    strbuf b = {.a = arena_new()};
    group_print(s, g, &b);
    const char *name = sym_str(s->c, s->axis[axis].name);
    if (narrowed)
      diag(s->c, E_LAYOUT, at, "axis '%s' has %u of its %u positions in %s, so a stride cannot split over it",
           name, group_axis_size(s, g, axis), s->axis[axis].size, sb_str(&b));
    else
      diag(s->c, E_LAYOUT, at, "axis '%s' is not free in %s", name, sb_str(&b));
    arena_free(b.a);
    return false;
  }
  return true;
}

bool layout_check(space *s, layout l, group g, u32 nd, const i64 *dims, loc at) {
  if (!l.i) return true;
  if (!check_axes(s, l, g, at)) return false;
  const lay_split *x = NULL, *y = NULL;
  misfit why = find_misfit(s, l, g, nd, dims, &x, &y);
  if (why != FIT) explain_misfit(s, why, x, y, g, nd, dims, at);
  return why == FIT;
}

// ---- what a rank holds -------------------------------------------------------------------------------

i64 digits_next(const digit *d, u32 n, i64 extent, u32 size) {
  i64 upper = extent;
  for (u32 k = 0; k <= n; k++) { // the free digits between one split and the next, major first
    if (k < n && !digit_fits(d[k], extent)) continue; // of a layout that nobody has checked yet
    i64 unit = k < n ? d[k].stride * d[k].size : 1, free = upper / unit;
    if (free >= size && free % size == 0) return unit * (free / size);
    if (k < n) upper = d[k].stride;
  }
  return 0;
}

// The digits of one dimension, largest stride first; its table, or 0.
static u16 digits_of(const space *s, layout l, u8 dim, const coords *c, digit *d, u32 *at, u32 *n,
                     u8 *table_axis) {
  const layout_info *x = layout_get(s, l);
  u16 table = 0;
  *n = 0;
  for (u32 i = 0; i < x->nsplit; i++) {
    const lay_split *p = &x->split[i];
    if (p->dim != dim) continue;
    if (p->table) {
      table = p->table;
      *table_axis = p->axis;
      continue;
    }
    d[*n] = (digit){p->stride, s->axis[p->axis].size};
    if (c) at[*n] = c->at[p->axis];
    ++*n;
  }
  return table;
}

i64 layout_next_stride(const space *s, layout l, u8 dim, i64 extent, u32 size) {
  digit d[LAY_SPLITS];
  u32 n;
  u8 axis;
  return digits_of(s, l, dim, NULL, d, NULL, &n, &axis) ? 0 : digits_next(d, n, extent, size);
}

// How many of 0..end have all digits at these coordinates.
static i64 count_below(const digit *d, const u32 *at, u32 n, i64 end) {
  i64 count = 0, ways = 1;
  for (u32 k = 0; k < n; k++) ways *= d[k].size;
  for (u32 k = 0; k < n; k++) {
    i64 period = d[k].stride * d[k].size, block = end % period / d[k].stride;
    ways /= d[k].size;
    count += (end / period + (block > at[k])) * (d[k].stride / ways);
    if (block != at[k]) return count;
    end = end % period % d[k].stride;
  }
  return count + end;
}

// How many of lo..lo+len are in intervals [from, to) of the table, which are in order: a microbatch of a
// piece.
static i64 count_within(const pieces_info *t, u32 from, u32 to, i64 lo, i64 len) {
  i64 count = 0;
  u32 a = from, b = to;
  while (a < b) { // the first that ends behind lo
    const u32 mid = a + (b - a) / 2;
    if (t->bound[2 * mid + 1] <= lo)
      a = mid + 1;
    else
      b = mid;
  }
  for (u32 i = a; i < to && t->bound[2 * i] < lo + len; i++)
    count += MIN(t->bound[2 * i + 1], lo + len) - MAX(t->bound[2 * i], lo);
  return count;
}

i64 layout_local_extent(const space *s, layout l, u8 dim, i64 extent, const coords *c) {
  digit d[LAY_SPLITS];
  u32 at[LAY_SPLITS], n;
  u8 axis = 0;
  u16 table = digits_of(s, l, dim, c, d, at, &n, &axis);
  if (!table) {
    for (u32 k = 0; k < n; k++) extent /= d[k].size;
    return extent;
  }
  const pieces_info *t = &s->tables.v[table];
  assert(c && c->at[axis] < t->npieces);
  const u32 from = t->begin[c->at[axis]], to = t->begin[c->at[axis] + 1];
  i64 count = 0;
  if (n == 1 && t->ordered && d->stride * d->size == extent)
    return count_within(t, from, to, at[0] * d->stride, d->stride);
  for (u32 i = from; i < to; i++)
    count += count_below(d, at, n, t->bound[2 * i + 1]) - count_below(d, at, n, t->bound[2 * i]);
  return count;
}

void layout_local_dims(const space *s, layout l, u32 nd, const i64 *dims, const coords *c, i64 *out) {
  const layout_info *x = layout_get(s, l);
  for (u32 i = 0; i < nd; i++) out[i] = dims[i];
  for (u32 i = 0; i < x->nsplit; i++) { // a table comes last among the splits of its dimension
    const lay_split *p = &x->split[i];
    if (p->table)
      out[p->dim] = layout_local_extent(s, l, p->dim, dims[p->dim], c);
    else
      out[p->dim] /= s->axis[p->axis].size;
  }
}

u32 layout_uneven_axes(const space *s, layout l, group g, u8 *axes, u32 n) {
  const layout_info *x = layout_get(s, l);
  for (u32 i = 0; i < x->nsplit; i++)
    for (u32 j = 0; j < x->nsplit; j++) {
      const u8 axis = x->split[j].axis;
      if (!x->split[i].table || x->split[j].dim != x->split[i].dim) continue;
      if (!g.i || s->axis[axis].temporal || group_axis_size(s, g, axis) == 1) continue;
      u32 k = 0;
      while (k < n && axes[k] != axis) k++;
      if (k == n) axes[n++] = axis;
    }
  return n;
}

void layout_same_sizes(const space *s, layout l, group g, u8 axis, u32 *same) {
  const layout_info *x = layout_get(s, l);
  const u32 n = group_axis_size(s, g, axis);
  for (u32 i = 0; i < x->nsplit; i++) {
    if (!x->split[i].table) continue;
    const u32 *like = x->split[i].axis == axis ? s->tables.v[x->split[i].table].like : NULL;
    bool cut_twice = false, on_axis = like;
    for (u32 j = 0; j < x->nsplit; j++) {
      if (j == i || x->split[j].dim != x->split[i].dim) continue;
      cut_twice = true, on_axis = on_axis || x->split[j].axis == axis;
    }
    if (!on_axis) continue;
    for (u32 k = n; k-- > 0;) { // with two cuts extents depend on both coordinates
      const u32 at = cut_twice ? k : MAX(same[k], like[k]);
      same[k] = at == k || (same[at] == same[k] && like[at] == like[k]) ? at : k;
    }
  }
}

i64 layout_local_elems(const space *s, layout l, u32 nd, const i64 *dims) {
  const layout_info *x = layout_get(s, l);
  i64 elems = 1, ext[DIMS_MAX];
  for (u32 i = 0; i < nd; i++) ext[i] = dims[i];
  for (u32 i = 0; i < x->nsplit; i++)
    if (x->split[i].table) ext[x->split[i].dim] = s->tables.v[x->split[i].table].longest;
  for (u32 i = 0; i < x->nsplit; i++)
    if (!x->split[i].table)
      ext[x->split[i].dim] = ceil_div(ext[x->split[i].dim], s->axis[x->split[i].axis].size);
  for (u32 i = 0; i < nd; i++) elems *= ext[i];
  return elems;
}

bool layout_is_even(const space *s, layout l) {
  const layout_info *x = layout_get(s, l);
  for (u32 i = 0; i < x->nsplit; i++)
    if (x->split[i].table) return false;
  return true;
}

i64 layout_index(const space *s, layout l, u8 dim, i64 extent, const coords *c, i64 *index) {
  digit d[LAY_SPLITS];
  u32 at[LAY_SPLITS], n;
  u8 axis = 0;
  u16 table = digits_of(s, l, dim, c, d, at, &n, &axis);
  assert(c || (!n && !table));
  i64 count = 0;
  if (table) {
    const pieces_info *t = &s->tables.v[table];
    assert(c->at[axis] < t->npieces);
    for (u32 i = t->begin[c->at[axis]]; i < t->begin[c->at[axis] + 1]; i++)
      for (i64 k = t->bound[2 * i]; k < t->bound[2 * i + 1]; k++) {
        bool mine = true;
        for (u32 j = 0; j < n; j++) mine = mine && k / d[j].stride % d[j].size == at[j];
        if (mine) index[count++] = k;
      }
    return count;
  }
  if (!extent) return 0;
  index[count++] = 0;
  for (u32 k = 0; k < n; k++) index[0] += at[k] * d[k].stride;
  for (u32 k = n + 1; k-- > 0;) { // free digits, minor first: each repeats what is there at its unit
    i64 unit = k < n ? d[k].stride * d[k].size : 1, free = (k ? d[k - 1].stride : extent) / unit;
    i64 block = count;
    for (; count < block * free; count++) index[count] = index[count - block] + unit;
  }
  return count;
}
