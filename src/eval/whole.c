// whole.c - between whole arrays and pieces: cutting inputs, putting outputs together, comparing two arrays.
//
// Idea: pieces of a regular layout are equal or disjoint, so an output is put together by copying one piece
// of each kind and comparing the others with it; only uneven pieces may overlap in part and are gone through
// element by element. What is partial is put together once per summand and then combined.
#include "eval/internal.h"
#include <math.h>

static bool whole_spot(const spot *s, u32 nd) {
  for (u32 d = 0; d < nd; d++)
    if (s->map[d]) return false;
  return true;
}

bool eval_cut(interp *m, const holdings *p, const eval_array *x, held *v, loc where) {
  const layout_info *l = layout_get(m->p->sp, p->t->lay);
  if (l->npart) {
    diag(m->c, E_LAYOUT, where, "an input of main is partial over %s: only whole inputs can be given",
         sym_str(m->c, axis_get(m->p->sp, l->part[0].axis)->name));
    return false;
  }
  size_t bytes = dtype_bytes(x->s.t);
  for (u32 k = 0; k < p->n; k++) {
    const spot *s = &p->at[k];
    if (!eval_mine(m, v->g, k)) continue;
    for (u32 j = 0; j < k && !v->piece[k]; j++)
      if (v->piece[j] && eval_same(&p->at[j], s, x->s.nd)) v->piece[k] = buf_share(v->piece[j]);
    if (v->piece[k]) continue;
    if (x->s.t == p->stored && whole_spot(s, x->s.nd) && !m->link) {
      v->piece[k] = eval_borrow(m, x->data, spot_bytes(p, k));
      continue;
    }
    ker_box b = {.nd = x->s.nd};
    for (u32 d = 0; d < b.nd; d++) {
      b.n[d] = b.ddim[d] = s->dim[d];
      b.sdim[d] = x->s.dim[d];
      b.sat[d] = s->map[d] ? s->map[d]->index : NULL;
    }
    arena_mark_t mark = arena_mark(m->scratch);
    buf *to = v->piece[k] = eval_buf(m, spot_bytes(p, k));
    void *raw = x->s.t == p->stored ? to->data : arena_alloc(m->scratch, bytes * (size_t)s->elems);
    ker_pick(&b, bytes, raw, x->data, m->scratch);
    if (raw != to->data) ker_convert(to->data, p->stored, raw, x->s.t, s->elems);
    arena_release(m->scratch, mark);
  }
  return true;
}

// ---- putting together ----------------------------------------------------------------------------------

typedef struct { // one summand of an output
  interp *m;
  const holdings *p;
  const held *v;
  char *whole;
  u8 *done; // by element; uneven pieces only
  i64 found;
  loc where;
} assembly;

// The root of the mean square of some elements, for values that cancelled to nearly nothing.
static double scale_of(dtype t, const char *x, i64 n) {
  double sq = 0, v;
  for (i64 k = 0; k < n; k++) {
    ker_load_f64(&v, t, x + (size_t)k * dtype_bytes(t), 1);
    if (isfinite(v)) sq += v * v;
  }
  return sqrt(sq / (double)MAX(n, 1));
}

static bool agree(dtype t, const char *x, const char *y, double scale) {
  double a, b, ulp = t == DT_F64 ? 0x1p-52 : t == DT_F32 ? 0x1p-23 : t == DT_F16 ? 0x1p-10 : 0x1p-7;
  if (!memcmp(x, y, dtype_bytes(t))) return true;
  if (dtype_kind_of(t) != DK_FLOAT) return false;
  ker_load_f64(&a, t, x, 1);
  ker_load_f64(&b, t, y, 1);
  double slack = dtype_bytes(t) == 2 ? 16 : 4096;
  return a == b || (a != a && b != b) || fabs(a - b) <= slack * ulp * fmax(scale, fmax(fabs(a), fabs(b)));
}

static bool differs(const assembly *s, u32 j, u32 k, i64 element, const char *x, const char *y) {
  double a, b;
  ker_convert(&a, DT_F64, x, s->p->stored, 1);
  ker_convert(&b, DT_F64, y, s->p->stored, 1);
  diag(s->m->c, E_DIFFERS, s->where,
       "ranks %u and %u hold different values of element %lld of an output: %.17g and %.17g",
       eval_rank_of(s->m, s->v->g, j), eval_rank_of(s->m, s->v->g, k), (long long)element, a, b);
  return false;
}

// The index in the tensor of element i of a piece.
static i64 global_of(const holdings *p, const spot *at, i64 i) {
  i64 g = 0, unit = 1;
  for (u32 d = p->t->s.nd; d-- > 0; i /= at->dim[d], unit *= p->t->s.dim[d]) {
    i64 k = i % at->dim[d];
    g += (at->map[d] ? at->map[d]->index[k] : k) * unit;
  }
  return g;
}

// Members j and k hold the same elements: are they equal?
static bool equal_pieces(const assembly *s, u32 j, u32 k) {
  const holdings *p = s->p;
  const buf *x = s->v->piece[j], *y = s->v->piece[k];
  size_t bytes = dtype_bytes(p->stored);
  if (x == y || !memcmp(x->data, y->data, (size_t)x->bytes)) return true;
  double scale = dtype_kind_of(p->stored) == DK_FLOAT ? scale_of(p->stored, x->data, p->at[j].elems) : 0;
  for (i64 i = 0; i < p->at[j].elems; i++) {
    const char *a = x->data + (size_t)i * bytes, *b = y->data + (size_t)i * bytes;
    if (!agree(p->stored, a, b, scale)) return differs(s, j, k, global_of(p, &p->at[j], i), a, b);
  }
  return true;
}

static void place_piece(assembly *s, u32 k) {
  const spot *at = &s->p->at[k];
  ker_box b = {.nd = s->p->t->s.nd};
  for (u32 d = 0; d < b.nd; d++) {
    b.n[d] = b.sdim[d] = at->dim[d];
    b.ddim[d] = s->p->t->s.dim[d];
    b.dat[d] = at->map[d] ? at->map[d]->index : NULL;
  }
  ker_pick(&b, dtype_bytes(s->p->stored), s->whole, s->v->piece[k]->data, s->m->scratch);
  s->found += at->elems;
}

static u32 holder_of(const assembly *s, i64 element, u32 before) {
  for (u32 k = 0; k < before; k++) {
    i64 g = element;
    bool holds = true;
    for (u32 d = s->p->t->s.nd; d-- > 0; g /= s->p->t->s.dim[d]) {
      const imap *x = s->p->at[k].map[d];
      holds = holds && (!x || x->inverse[g % s->p->t->s.dim[d]] >= 0);
    }
    if (holds) return k;
  }
  return 0;
}

// An uneven piece: what others have placed already must be equal.
static bool place_elements(assembly *s, u32 k) {
  const spot *at = &s->p->at[k];
  size_t bytes = dtype_bytes(s->p->stored);
  for (i64 i = 0; i < at->elems; i++) {
    i64 g = global_of(s->p, at, i);
    char *to = s->whole + (size_t)g * bytes;
    const char *from = s->v->piece[k]->data + (size_t)i * bytes;
    if (!s->done[g]) {
      memcpy(to, from, bytes);
      s->done[g] = 1;
      s->found++;
    } else if (!agree(s->p->stored, to, from, 0))
      return differs(s, holder_of(s, g, k), k, g, to, from);
  }
  return true;
}

// Members with the same coordinates on the partial axes make one summand.
static u32 summand_of(const interp *m, const held *v, const layout_info *l, u32 member) {
  u32 id = 0;
  for (u32 k = 0; k < l->npart && v->g.i; k++)
    id = id * group_axis_size(m->p->sp, v->g, l->part[k].axis) +
         group_coord(m->p->sp, v->g, member, l->part[k].axis);
  return id;
}

static bool put_summand(assembly *s, const layout_info *l, u32 summand) {
  const holdings *p = s->p;
  i64 n = shape_elems(&p->t->s);
  s->found = 0;
  if (s->done) memset(s->done, 0, (size_t)n);
  for (u32 k = 0; k < p->n; k++) {
    if (summand_of(s->m, s->v, l, k) != summand) continue;
    u32 j = 0;
    while (j < k && !(eval_same(&p->at[j], &p->at[k], p->t->s.nd) && summand_of(s->m, s->v, l, j) == summand))
      j++;
    if (j < k ? !equal_pieces(s, j, k) : s->done && !place_elements(s, k)) return false;
    if (j == k && !s->done) place_piece(s, k);
  }
  if (s->found == n) return true;
  diag(s->m->c, E_COVERAGE, s->where, "%lld of %lld elements of an output are on no rank",
       (long long)(n - s->found), (long long)n);
  return false;
}

static bool one_reduction(interp *m, const layout_info *l, loc where) {
  for (u32 k = 1; k < l->npart; k++)
    if (l->part[k].red != l->part[0].red) {
      diag(m->c, E_LAYOUT, where, "an output is partial by %s and by %s at once",
           red_name((reduction)l->part[0].red), red_name((reduction)l->part[k].red));
      return false;
    }
  return true;
}

bool eval_assemble(interp *m, const holdings *p, const held *v, eval_array *out, arena *a, loc where) {
  const layout_info *l = layout_get(m->p->sp, p->t->lay);
  i64 n = shape_elems(&p->t->s);
  size_t bytes = dtype_bytes(p->stored);
  if (!one_reduction(m, l, where)) return false;
  *out = (eval_array){p->t->s, arena_alloc(a, bytes * (size_t)n)};
  out->s.t = p->stored;
  u32 summands = 1;
  for (u32 k = 0; k < l->npart && v->g.i; k++) summands *= group_axis_size(m->p->sp, v->g, l->part[k].axis);
  arena_mark_t mark = arena_mark(m->scratch);
  assembly s = {.m = m, .p = p, .v = v, .whole = out->data, .where = where};
  if (!p->even) s.done = NEWN(m->scratch, u8, n);
  bool ok;
  if (summands == 1)
    ok = put_summand(&s, l, 0);
  else {
    reduction red = (reduction)l->part[0].red;
    u64 *acc = NEWN(m->scratch, u64, n);
    s.whole = arena_alloc(m->scratch, bytes * (size_t)n);
    eval_fold_begin(acc, p->stored, n, red);
    ok = true;
    for (u32 c = 0; c < summands && ok; c++) {
      ok = put_summand(&s, l, c);
      if (ok) eval_fold(m->scratch, acc, s.whole, p->stored, n, red);
    }
    eval_store(out->data, p->stored, acc, n);
  }
  arena_release(m->scratch, mark);
  return ok;
}

// ---- comparing -----------------------------------------------------------------------------------------

double eval_element(const eval_array *x, i64 k) {
  double e;
  ker_convert(&e, DT_F64, (const char *)x->data + (size_t)k * dtype_bytes(x->s.t), x->s.t, 1);
  return e;
}

double eval_difference(const eval_array *x, const eval_array *y, i64 *where) {
  enum { CHUNK = 512 };
  i64 n = shape_elems(&x->s), at = 0;
  size_t bx = dtype_bytes(x->s.t), by = dtype_bytes(y->s.t);
  double sq = 0, worst = 0, least = 0, a[CHUNK], b[CHUNK];
  for (int round = 0; round < 2; round++) {
    for (i64 k = 0; k < n; k += CHUNK) {
      i64 m = MIN(n - k, (i64)CHUNK);
      ker_convert(b, DT_F64, (const char *)y->data + (size_t)k * by, y->s.t, m);
      if (round) ker_convert(a, DT_F64, (const char *)x->data + (size_t)k * bx, x->s.t, m);
      for (i64 j = 0; j < m && !round; j++)
        if (isfinite(b[j])) sq += b[j] * b[j];
      for (i64 j = 0; j < m && round; j++) {
        if (a[j] == b[j] || (a[j] != a[j] && b[j] != b[j])) continue;
        double top = fmax(fmax(fabs(a[j]), fabs(b[j])), least);
        double d = isfinite(a[j]) && isfinite(b[j]) ? fabs(a[j] - b[j]) / top : INFINITY;
        if (d > worst) worst = d, at = k + j;
      }
    }
    least = 1e-3 * sqrt(sq / (double)MAX(n, 1));
  }
  if (where) *where = at;
  return worst;
}
