// law_shape.c - laws of operators that move elements: reshape, slices, concatenation, indexing, and of those
// that make tensors from nothing.
//
// Idea: a dimension is a product of factors, as digits of a number. A reshape regroups digits; parts put side
// by side are a leading digit that counts the parts, so a trailing digit (heads of a fused QKV) can be split
// through slices, concatenations and reshapes alike. What does not factor is whole on both sides, and tied by
// arithmetic: FIXED.
#include "op/internal.h"

#define EXTENT_MAX ((i64)1 << 40)
enum { TIED = LAW_WHOLE | LAW_FIXED, SOURCE = LAW_WHOLE | LAW_FIXED | LAW_DERIVED };

// n parts of e elements as one dimension: (n e), n whole. flags: SOURCE or TIED for n.
static law_dim parts(law_job *j, i64 n, law_dim e, u32 flags) {
  law_dim d = law_letter_new(j, n, flags, 0);
  bool ok = law_dim_push(&d, &e);
  assert(ok);
  (void)ok;
  return d;
}

// ---- reshape, transpose, expand ----------------------------------------------------------------------

// Strides at which dimensions begin, from the total down to above 1: the places of digits.
typedef struct {
  u32 n;
  i64 at[DIMS_MAX + 1];
} cuts;
static cuts cuts_of(u32 nd, const i64 *dim) {
  cuts c = {0};
  i64 stride = 1;
  for (u32 d = nd; d-- > 0;)
    if (dim[d] != 1) c.at[DIMS_MAX - c.n++] = stride *= dim[d];
  memmove(c.at, c.at + DIMS_MAX + 1 - c.n, c.n * sizeof *c.at);
  c.at[c.n++] = 1;
  return c;
}

// A cut is common if it nests with every cut of the other side.
static bool nests(i64 x, const cuts *other) {
  for (u32 i = 0; i < other->n; i++)
    if (other->at[i] % x && x % other->at[i]) return false;
  return true;
}

// Appends a letter for the stretch [lo, hi) of the elements to the dimension of t that holds it.
static bool put_stretch(const cuts *c, u32 *at, law_term *t, const i64 *dim, u32 *d, i64 lo, law_dim l) {
  while (lo < c->at[*at + 1]) { // past the end of this dimension
    ++*at, ++*d;
    while (dim[*d] == 1) ++*d;
  }
  return law_dim_push(&t->dim[*d], &l);
}

typedef struct {
  const i64 *dim;
  cuts c;
  law_term *t;
  u32 at, d;
} side;

static side side_of(u32 nd, const i64 *dim, law_term *t) {
  side s = {dim, cuts_of(nd, dim), t, 0, 0};
  t->nd = nd;
  while (s.d < nd && dim[s.d] == 1) s.d++;
  return s;
}

// Letters of one side for a stretch [lo, hi) that the other side cuts elsewhere.
static bool stretch_whole(law_job *j, side *s, i64 lo, i64 hi, u32 flags) {
  for (u32 i = 0; i < s->c.n && hi > lo; i++) {
    i64 cut = MAX(s->c.at[i], lo);
    assert(cut > 0);
    if (cut >= hi) continue;
    if (!put_stretch(&s->c, &s->at, s->t, s->dim, &s->d, cut, law_letter_new(j, hi / cut, flags, 0)))
      return false;
    hi = cut;
  }
  return true;
}

// Common refinement, from the major end. False if a dimension would get more letters than there is room for.
static bool refine(law_job *j, side *x, side *y) {
  u32 p = 0, q = 0; // next cuts of both sides
  for (i64 hi = x->c.at[0]; hi > 1;) {
    i64 lo;
    bool plain = true; // no cut of either side between lo and hi
    do {
      while (x->c.at[p] >= hi) p++;
      while (y->c.at[q] >= hi) q++;
      i64 a = x->c.at[p], b = y->c.at[q];
      lo = MAX(a, b);
      if (lo == a && nests(a, &y->c)) break;
      if (lo == b && nests(b, &x->c)) break;
      plain = false;
      if (lo == a)
        p++;
      else
        q++;
    } while (true);
    if (plain) {
      law_dim l = law_letter_new(j, hi / lo, 0, 0);
      if (!put_stretch(&x->c, &x->at, x->t, x->dim, &x->d, lo, l)) return false;
      if (!put_stretch(&y->c, &y->at, y->t, y->dim, &y->d, lo, l)) return false;
    } else if (!stretch_whole(j, x, lo, hi, SOURCE) || !stretch_whole(j, y, lo, hi, TIED)) {
      return false;
    }
    hi = lo;
  }
  return true;
}

bool law_reshape(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *tx = &j->l->opd[0], *ty = &j->l->res[0];
  shape y = {.t = x->t};
  if (!law_extents(j, A_shape, y.dim, &y.nd)) return false;
  i64 nx = 1, ny = 1;
  bool fits = true;
  for (u32 d = 0; d < x->nd; d++) fits = fits && mul_i64(nx, x->dim[d], &nx);
  for (u32 d = 0; d < y.nd; d++) fits = fits && mul_i64(ny, y.dim[d], &ny);
  if (!fits) return law_fail(j, E_LIMIT, "more than 2^63 elements");
  if (nx != ny) return law_fail(j, E_SHAPE, "%lld elements do not become %lld", (long long)nx, (long long)ny);
  if (nx != 0) {
    side sx = side_of(x->nd, x->dim, tx), sy = side_of(y.nd, y.dim, ty);
    if (refine(j, &sx, &sy)) return true;
  }
  j->nletters = 0; // empty, or too many factors: every dimension whole
  tx->nd = ty->nd = 0;
  for (u32 d = 0; d < x->nd; d++) law_term_push(tx, law_letter_new(j, x->dim[d], SOURCE, 0));
  for (u32 d = 0; d < y.nd; d++) law_term_push(ty, law_letter_new(j, y.dim[d], TIED, 0));
  return true;
}

bool law_transpose(law_job *j) {
  const shape *x = &j->opd[0];
  const i64 *perm = NULL;
  u32 n = attr_ints(j->at, A_perm, &perm), seen = 0;
  if (n != x->nd) return law_fail(j, E_ATTR, "perm has %u entries for %u dimensions", n, x->nd);
  for (u32 d = 0; d < n; d++) law_term_push(&j->l->opd[0], law_letter_new(j, x->dim[d], 0, 0));
  for (u32 d = 0; d < n; d++) {
    if (perm[d] < 0 || perm[d] >= n || seen >> perm[d] & 1)
      return law_fail(j, E_ATTR, "perm: entry %u is %lld; 0 to %u must occur once each", d,
                      (long long)perm[d], n - 1);
    seen |= 1u << perm[d];
    law_term_push(&j->l->res[0], j->l->opd[0].dim[perm[d]]);
  }
  return true;
}

bool law_expand(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *tx = &j->l->opd[0], *ty = &j->l->res[0];
  i64 dim[DIMS_MAX];
  u32 n;
  if (!law_extents(j, A_shape, dim, &n)) return false;
  if (n < x->nd) return law_fail(j, E_SHAPE, "%u dimensions do not become %u", x->nd, n);
  tx->nd = x->nd;
  for (u32 d = 0; d < n; d++) {
    law_dim l = law_letter_new(j, dim[d], 0, 0);
    law_term_push(ty, l);
    u32 from = d - (n - x->nd); // wraps for new dimensions
    if (from >= x->nd || x->dim[from] == 1) continue;
    if (x->dim[from] != dim[d])
      return law_fail(j, E_SHAPE, "dimension %u is %lld and does not become %lld", from,
                      (long long)x->dim[from], (long long)dim[d]);
    tx->dim[from] = l;
  }
  return true;
}

// ---- parts of a dimension ----------------------------------------------------------------------------

bool law_concat(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *ty = &j->l->res[0];
  u32 axis;
  i64 g = 0, sum = 0;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, 0, x->nd, &axis)) return false;
  for (u32 k = 0; k < j->nopd; k++) {
    if (!law_rank(j, k, x->nd, x->nd)) return false;
    for (u32 d = 0; d < x->nd; d++)
      if (d != axis && !law_equal(j, 0, d, k, d)) return false;
    g = gcd_i64(g, j->opd[k].dim[axis]);
    sum += j->opd[k].dim[axis];
    if (sum > EXTENT_MAX)
      return law_fail(j, E_LIMIT, "the result has more than %lld elements", (long long)EXTENT_MAX);
  }
  g = MAX(g, 1);
  law_dim e = law_letter_new(j, g, 0, 0);
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(ty, d == axis ? parts(j, sum / g, e, TIED) : law_letter_new(j, x->dim[d], 0, 0));
  for (u32 k = 0; k < j->nopd; k++) {
    law_term *t = &j->l->opd[k];
    *t = *ty;
    t->dim[axis] = parts(j, j->opd[k].dim[axis] / g, e, SOURCE);
  }
  return true;
}

bool law_split(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *tx = &j->l->opd[0];
  const i64 *size = NULL;
  u32 axis, n = attr_ints(j->at, A_sizes, &size);
  i64 g = 0, sum = 0;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, 0, x->nd, &axis)) return false;
  for (u32 k = 0; k < n; k++) {
    if (size[k] < 0)
      return law_fail(j, E_ATTR, "sizes: part %u has the negative extent %lld", k, (long long)size[k]);
    g = gcd_i64(g, size[k]);
    sum += MIN(size[k], INT64_MAX - sum);
  }
  if (sum != x->dim[axis])
    return law_fail(j, E_SHAPE, "the parts add up to %lld, dimension %u has %lld", (long long)sum, axis,
                    (long long)x->dim[axis]);
  g = MAX(g, 1);
  law_dim e = law_letter_new(j, g, 0, 0);
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(tx, d == axis ? parts(j, sum / g, e, SOURCE) : law_letter_new(j, x->dim[d], 0, 0));
  for (u32 r = 0; r < j->nres; r++) {
    j->l->res[r] = *tx;
    j->l->res[r].dim[axis] = parts(j, size[r] / g, e, TIED);
  }
  return true;
}

static bool slice_fail(law_job *j, u32 d, i64 lo, i64 hi, i64 step) {
  law_fail(j, E_ATTR, "dimension %u has %lld elements, the slice is %lld to %lld in steps of %lld", d,
           (long long)j->opd[0].dim[d], (long long)lo, (long long)hi, (long long)step);
  diag_hint(j->c, "0 <= start <= end <= extent; with a negative step extent > start >= end >= -1");
  return false;
}

bool law_slice(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *tx = &j->l->opd[0], *ty = &j->l->res[0];
  const i64 *lo = NULL, *hi = NULL, *axes = NULL, *step = NULL;
  u32 n = attr_ints(j->at, A_axes, &axes), n_lo = attr_ints(j->at, A_starts, &lo),
      n_hi = attr_ints(j->at, A_ends, &hi);
  u32 n_step = attr_ints(j->at, A_steps, &step), at[DIMS_MAX] = {0};
  if (n_lo != n || n_hi != n || (n_step && n_step != n))
    return law_fail(j, E_ATTR, "%u axes, %u starts, %u ends and %u steps", n, n_lo, n_hi, n_step);
  for (u32 i = 0; i < n; i++) {
    i64 d = axes[i] < 0 ? axes[i] + x->nd : axes[i];
    if (d < 0 || d >= x->nd)
      return law_fail(j, E_ATTR, "axes: %lld is outside the %u dimensions", (long long)axes[i], x->nd);
    if (at[d]) return law_fail(j, E_ATTR, "axes: dimension %lld occurs twice", (long long)d);
    at[d] = i + 1;
  }
  for (u32 d = 0; d < x->nd; d++) {
    i64 extent = x->dim[d], b = at[d] ? lo[at[d] - 1] : 0, e = at[d] ? hi[at[d] - 1] : extent;
    i64 s = at[d] && n_step ? step[at[d] - 1] : 1;
    if (s > 0 ? b < 0 || e < b || e > extent : s == 0 || s == INT64_MIN || e < -1 || b < e || b >= extent)
      return slice_fail(j, d, b, e, s);
    i64 len = (e - b) / s + ((e - b) % s != 0);
    if (s != 1) {
      law_term_push(tx, law_letter_new(j, extent, SOURCE, 0));
      law_term_push(ty, law_letter_new(j, len, TIED, 0));
    } else {
      i64 g = MAX(gcd_i64(gcd_i64(extent, b), len), 1);
      law_dim keep = law_letter_new(j, g, 0, 0);
      law_term_push(tx, parts(j, extent / g, keep, SOURCE));
      law_term_push(ty, parts(j, len / g, keep, TIED));
    }
  }
  return true;
}

bool law_pad(law_job *j) {
  const shape *x = &j->opd[0];
  const i64 *pad = NULL;
  u32 n = attr_ints(j->at, A_pads, &pad);
  bool constant = !attr_get(j->at, A_mode) || law_is(j, A_mode, "constant");
  if (n != 2 * x->nd)
    return law_fail(j, E_ATTR, "pads has %u entries, %u dimensions need %u", n, x->nd, 2 * x->nd);
  for (u32 d = 0; d < x->nd; d++) {
    i64 lo = pad[d], hi = pad[x->nd + d], most = law_is(j, A_mode, "reflect") ? x->dim[d] - 1 : EXTENT_MAX;
    if (lo < -x->dim[d] || hi < -x->dim[d] || x->dim[d] + MIN(lo, 0) + MIN(hi, 0) < 0)
      return law_fail(j, E_ATTR, "dimension %u has %lld elements and cannot lose %lld and %lld", d,
                      (long long)x->dim[d], (long long)lo, (long long)hi);
    bool keep = lo == 0 && hi == 0;
    if (!keep && (lo > most || hi > most || (x->dim[d] == 0 && !constant)))
      return law_fail(j, E_ATTR, "dimension %u has %lld elements and cannot be padded by %lld and %lld", d,
                      (long long)x->dim[d], (long long)lo, (long long)hi);
    // zeros beside whole parts, as the gradient of a slice has them
    i64 part = constant ? MAX(gcd_i64(gcd_i64(x->dim[d], lo), hi), 1) : 1;
    law_dim e = law_letter_new(j, keep ? x->dim[d] : part, 0, 0);
    law_term_push(&j->l->opd[0], keep ? e : parts(j, x->dim[d] / part, e, SOURCE));
    law_term_push(&j->l->res[0], keep ? e : parts(j, (x->dim[d] + lo + hi) / part, e, TIED));
  }
  return true;
}

bool law_tile(law_job *j) {
  const shape *x = &j->opd[0];
  const i64 *times = NULL;
  u32 n = attr_ints(j->at, A_sizes, &times);
  if (n != x->nd) return law_fail(j, E_ATTR, "sizes has %u entries for %u dimensions", n, x->nd);
  for (u32 d = 0; d < n; d++) {
    if (times[d] < 0 || times[d] > EXTENT_MAX)
      return law_fail(j, E_ATTR, "sizes: dimension %u is repeated %lld times", d, (long long)times[d]);
    law_dim e = law_letter_new(j, x->dim[d], 0, 0);
    law_term_push(&j->l->opd[0], e);
    law_term_push(&j->l->res[0], parts(j, times[d], e, TIED));
  }
  return true;
}

bool law_d2s(law_job *j) {
  const shape *x = &j->opd[0];
  i64 b = attr_int(j->at, A_size, 1);
  if (!law_rank(j, 0, 4, 4)) return false;
  if (b < 1 || b > 1 << 15 || x->dim[1] % (b * b))
    return law_fail(j, E_SHAPE, "%lld channels do not divide into blocks of %lld x %lld",
                    (long long)x->dim[1], (long long)b, (long long)b);
  law_term *tx = &j->l->opd[0], *ty = &j->l->res[0];
  law_dim n = law_letter_new(j, x->dim[0], 0, 'n'), c = law_letter_new(j, x->dim[1] / (b * b), 0, 'c');
  law_dim h = law_letter_new(j, x->dim[2], 0, 'h'), w = law_letter_new(j, x->dim[3], 0, 'w');
  law_dim bh = law_letter_new(j, b, TIED, 0), bw = law_letter_new(j, b, TIED, 0), cb = bh;
  if (law_is(j, A_mode, "CRD"))
    cb = c, law_dim_push(&cb, &bh), law_dim_push(&cb, &bw);
  else
    law_dim_push(&cb, &bw), law_dim_push(&cb, &c);
  law_term_push(tx, n), law_term_push(tx, cb), law_term_push(tx, h), law_term_push(tx, w);
  law_dim_push(&h, &bh), law_dim_push(&w, &bw);
  law_term_push(ty, n), law_term_push(ty, c), law_term_push(ty, h), law_term_push(ty, w);
  return true;
}

// ---- indexing ----------------------------------------------------------------------------------------

bool law_gather(law_job *j) {
  const shape *x = &j->opd[0], *i = &j->opd[1];
  law_term *tx = &j->l->opd[0], *ti = &j->l->opd[1], *ty = &j->l->res[0];
  u32 axis;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, 0, x->nd, &axis)) return false;
  if (!law_result_rank(j, x->nd - 1 + i->nd)) return false;
  u32 picked = LAW_ADDRESSED | (x->t == DT_BOOL ? LAW_WHOLE : 0); // masked partial results must add up
  for (u32 d = 0; d < x->nd; d++) law_term_push(tx, law_letter_new(j, x->dim[d], d == axis ? picked : 0, 0));
  for (u32 d = 0; d < i->nd; d++) law_term_push(ti, law_letter_new(j, i->dim[d], 0, 0));
  for (u32 d = 0; d < axis; d++) law_term_push(ty, tx->dim[d]);
  for (u32 d = 0; d < i->nd; d++) law_term_push(ty, ti->dim[d]);
  for (u32 d = axis + 1; d < x->nd; d++) law_term_push(ty, tx->dim[d]);
  return true;
}

bool law_gather_add(law_job *j) {
  const shape *i = &j->opd[1];
  law_term *tx = &j->l->opd[0], *ti = &j->l->opd[1], *ty = &j->l->res[0];
  i64 dim[DIMS_MAX];
  u32 n, axis;
  if (!law_extents(j, A_shape, dim, &n) || !law_axis(j, A_axis, 0, n, &axis)) return false;
  if (!law_rank(j, 0, n - 1 + i->nd, n - 1 + i->nd)) return false;
  for (u32 d = 0; d < n; d++) law_term_push(ty, law_letter_new(j, dim[d], d == axis ? LAW_ADDRESSED : 0, 0));
  for (u32 d = 0; d < i->nd; d++) law_term_push(ti, law_letter_new(j, i->dim[d], 0, 0));
  for (u32 d = 0; d < axis; d++) law_term_push(tx, ty->dim[d]);
  for (u32 d = 0; d < i->nd; d++) law_term_push(tx, ti->dim[d]);
  for (u32 d = axis + 1; d < n; d++) law_term_push(tx, ty->dim[d]);
  return law_matches(j, tx, 0);
}

// Data and indices of equal rank: along `axis` elements are picked; elsewhere indices cover a leading part of
// the data, and only where they cover all of it may the dimension be split. free_axis: may indices be split
// along `axis`?
static bool element_terms(law_job *j, bool free_axis) {
  const shape *x = &j->opd[0], *i = &j->opd[1];
  law_term *tx = &j->l->opd[0], *ti = &j->l->opd[1];
  u32 axis;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_rank(j, 1, x->nd, x->nd) || !law_axis(j, A_axis, 0, x->nd, &axis))
    return false;
  for (u32 d = 0; d < x->nd; d++) {
    if (d != axis && i->dim[d] > x->dim[d])
      return law_fail(j, E_SHAPE, "dimension %u of the indices is %lld, of the data %lld", d,
                      (long long)i->dim[d], (long long)x->dim[d]);
    bool same = d != axis && i->dim[d] == x->dim[d];
    law_dim l = law_letter_new(j, x->dim[d], same ? 0 : d == axis ? LAW_WHOLE | LAW_ADDRESSED : SOURCE, 0);
    law_term_push(tx, l);
    law_term_push(ti, same ? l
                           : law_letter_new(j, i->dim[d],
                                            d != axis   ? TIED
                                            : free_axis ? 0
                                                        : LAW_WHOLE,
                                            0));
  }
  return true;
}

bool law_take(law_job *j) {
  if (!element_terms(j, true)) return false;
  j->l->res[0] = j->l->opd[1];
  return true;
}

bool law_put(law_job *j) {
  if (!law_same_dims(j, 1, 2) || !element_terms(j, false)) return false;
  j->l->opd[2] = j->l->opd[1];
  j->l->res[0] = j->l->opd[0];
  return true;
}

bool law_gather_nd(law_job *j) {
  const shape *x = &j->opd[0], *i = &j->opd[1];
  law_term *tx = &j->l->opd[0], *ti = &j->l->opd[1], *ty = &j->l->res[0];
  i64 batch = attr_int(j->at, A_batch_dims, 0);
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_rank(j, 1, 1, DIMS_MAX)) return false;
  if (batch < 0 || batch >= MIN(x->nd, i->nd))
    return law_fail(j, E_ATTR, "batch_dims is %lld, operands have %u and %u dimensions", (long long)batch,
                    x->nd, i->nd);
  i64 r = i->dim[i->nd - 1], rest = x->nd - batch - r;
  if (r < 1 || rest < 0)
    return law_fail(j, E_SHAPE, "index tuples of %lld entries address %u - %lld dimensions", (long long)r,
                    x->nd, (long long)batch);
  if (!law_result_rank(j, i->nd - 1 + (u32)rest)) return false;
  for (u32 d = 0; d < x->nd; d++) {
    bool picked = d >= batch && d < batch + r;
    if (d < batch && !law_equal(j, 0, d, 1, d)) return false;
    law_term_push(tx, law_letter_new(j, x->dim[d], picked ? LAW_WHOLE | LAW_ADDRESSED : 0, 0));
  }
  for (u32 d = 0; d + 1 < i->nd; d++)
    law_term_push(ti, d < batch ? tx->dim[d] : law_letter_new(j, i->dim[d], 0, 0));
  *ty = *ti;
  law_term_push(ti, law_letter_new(j, r, SOURCE, 0));
  for (u32 d = (u32)(batch + r); d < x->nd; d++) law_term_push(ty, tx->dim[d]);
  return true;
}

bool law_scatter_nd(law_job *j) {
  const shape *x = &j->opd[0], *i = &j->opd[1];
  law_term *tx = &j->l->opd[0], *ti = &j->l->opd[1], *tu = &j->l->opd[2];
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_rank(j, 1, 1, DIMS_MAX)) return false;
  i64 r = i->dim[i->nd - 1];
  if (r < 1 || r > x->nd)
    return law_fail(j, E_SHAPE, "index tuples of %lld entries address %u dimensions", (long long)r, x->nd);
  if (!law_rank(j, 2, i->nd - 1 + x->nd - (u32)r, i->nd - 1 + x->nd - (u32)r)) return false;
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(tx, law_letter_new(j, x->dim[d], d < r ? LAW_WHOLE | LAW_ADDRESSED : 0, 0));
  for (u32 d = 0; d + 1 < i->nd; d++) law_term_push(ti, law_letter_new(j, i->dim[d], LAW_WHOLE, 0));
  *tu = *ti;
  law_term_push(ti, law_letter_new(j, r, SOURCE, 0));
  for (u32 d = (u32)r; d < x->nd; d++) law_term_push(tu, tx->dim[d]);
  j->l->res[0] = *tx;
  return law_matches(j, tu, 2);
}

bool law_one_hot(law_job *j) {
  const shape *x = &j->opd[0];
  law_term *tx = &j->l->opd[0], *ty = &j->l->res[0];
  i64 size = attr_int(j->at, A_size, 0);
  u32 axis;
  if (size < 0) return law_fail(j, E_ATTR, "size %lld is negative", (long long)size);
  if (!law_result_rank(j, x->nd + 1) || !law_axis(j, A_axis, -1, x->nd + 1, &axis)) return false;
  for (u32 d = 0; d <= x->nd; d++) {
    if (d == axis) law_term_push(ty, law_letter_new(j, size, LAW_FIXED, 0));
    if (d == x->nd) break;
    law_term_push(tx, law_letter_new(j, x->dim[d], 0, 0));
    law_term_push(ty, tx->dim[d]);
  }
  return true;
}

bool law_reverse(law_job *j) {
  const shape *x = &j->opd[0];
  u32 time, batch;
  if (!law_rank(j, 0, 2, DIMS_MAX) || !law_axis(j, A_axis, 0, x->nd, &time)) return false;
  if (!law_axis(j, A_batch_dims, 1, x->nd, &batch)) return false;
  if (time == batch) return law_fail(j, E_ATTR, "axis and batch_dims are both dimension %u", time);
  if (!law_rank(j, 1, 1, 1) || !law_equal(j, 0, batch, 1, 0)) return false;
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(&j->l->opd[0], law_letter_new(j, x->dim[d], d == time ? LAW_WHOLE : 0, 0));
  law_term_push(&j->l->opd[1], j->l->opd[0].dim[batch]);
  j->l->res[0] = j->l->opd[0];
  return true;
}

// Ratios and regions that keep coordinates countable.
static bool resize_numbers(law_job *j, attr_key k, double least) {
  const attr *p = attr_get(j->at, k);
  for (u32 i = 0; p && i < p->n; i++)
    if (!(p->u.floats[i] >= least && p->u.floats[i] <= 1e6))
      return law_fail(j, E_ATTR, "%s: entry %u is %g, it must be %g to %g", attr_name(k), i, p->u.floats[i],
                      least, 1e6);
  return true;
}

bool law_resize(law_job *j) {
  const shape *x = &j->opd[0];
  const attr *scales = attr_get(j->at, A_scales), *roi = attr_get(j->at, A_roi);
  i64 dim[DIMS_MAX];
  u32 n;
  if (!law_extents(j, A_shape, dim, &n)) return false;
  if (n != x->nd) return law_fail(j, E_SHAPE, "%u dimensions do not become %u", x->nd, n);
  if (scales && scales->n != n)
    return law_fail(j, E_ATTR, "scales has %u entries for %u dimensions", scales->n, n);
  if (roi && roi->n != 2 * n) return law_fail(j, E_ATTR, "roi has %u entries for %u dimensions", roi->n, n);
  if (!resize_numbers(j, A_scales, 1e-6) || !resize_numbers(j, A_roi, -1e6)) return false;
  for (u32 d = 0; d < n; d++) {
    if (dim[d] && !x->dim[d])
      return law_fail(j, E_SHAPE, "dimension %u is empty and cannot become %lld", d, (long long)dim[d]);
    bool keep = dim[d] == x->dim[d] && (!scales || scales->u.floats[d] == 1) && !roi;
    law_dim l = law_letter_new(j, x->dim[d], keep ? 0 : SOURCE, 0);
    law_term_push(&j->l->opd[0], l);
    law_term_push(&j->l->res[0], keep ? l : law_letter_new(j, dim[d], TIED, 0));
  }
  return true;
}

// ---- from nothing ------------------------------------------------------------------------------------

bool law_constant(law_job *j) {
  i64 dim[DIMS_MAX];
  u32 n, axis;
  if (!law_extents(j, A_shape, dim, &n)) return false;
  if (attr_get(j->at, A_axis) && !law_axis(j, A_axis, 0, n, &axis)) return false;
  u32 flags = attr_get(j->at, A_data) ? LAW_FIXED : 0;
  for (u32 d = 0; d < n; d++) law_term_push(&j->l->res[0], law_letter_new(j, dim[d], flags, 0));
  return true;
}
