// attention.c - softmax(alpha q k^T + bias) v and its gradients, without the scores: FlashAttention's blocked softmax (Dao et
// al. 2022), its backward in the order of FlashAttention-2 (Dao 2023).
//
// Idea: a block of rows of scores meets blocks of keys one after the other. What a row has summed so far is kept relative to
// its largest score so far, and scaled when a larger one comes. Of that a row leaves its log-sum-exp, from which the backward
// makes the softmax of any block again. All other letters of the law are loops: of those that every gradient has, each
// combination is a unit that one thread has to itself, so that no result depends on threads.
#include "kernel/internal.h"

enum { ROWS = 128, KEYS = 128, ALONE = 1 << 18 }; // of a block; scores that are not worth a thread

typedef enum { T_Q, T_K, T_V, T_BIAS, T_MASK, T_Y, T_DY, T_LSE, T_DQ, T_DK, T_DV, T_DB, T_COUNT } slot;

typedef struct {
  u32 n;
  char c[DIMS_MAX + 1];
  i64 count;
} loops; // letters that are looped over, the last one fastest

typedef struct {
  run *r;
  attention_law l;
  dtype t;
  size_t bytes;                       // of an element
  const ker_tensor *of[T_COUNT];      // NULL: there is none
  i64 stride[T_COUNT][128], ext[128]; // by letter
  char row;                           // the letter of rows of a block; 0: a row is alone
  i64 nrow, nkey, deep, wide;
  loops apart, together;
  double alpha, value;
  const i64 *query, *key; // indices in the whole, where later keys are masked; NULL: none are
} attention;

typedef struct { // where one combination of the looped letters is
  i64 at[T_COUNT];
} place;

// ---- letters ---------------------------------------------------------------------------------------------
static bool put_tensor(attention *x, slot s, const ker_tensor *t, const char *term) {
  i64 stride[DIMS_MAX];
  x->of[s] = t;
  if (strlen(term) != t->nd) return ker_misfit(x->r, "dimensions", t->nd, (i64)strlen(term));
  ker_strides(t->nd, t->dim, stride);
  const bool loose = s == T_BIAS || s == T_MASK || s == T_DB;
  for (u32 d = 0; d < t->nd; d++) {
    const u8 c = (u8)term[d];
    if (loose && t->dim[d] == 1) continue; // the same for all
    if (x->ext[c] < 0) x->ext[c] = t->dim[d];
    if (x->ext[c] != t->dim[d]) return ker_misfit(x->r, "extents", x->ext[c], t->dim[d]);
    x->stride[s][c] = stride[d];
  }
  return true;
}

static void add_loop(attention *x, loops *l, char c) {
  l->c[l->n++] = c;
  l->count *= x->ext[(u8)c];
}

static i64 offset(const attention *x, slot s, const loops *l, i64 k) {
  i64 at = 0;
  for (u32 i = l->n; i-- > 0; k /= x->ext[(u8)l->c[i]])
    at += k % x->ext[(u8)l->c[i]] * x->stride[s][(u8)l->c[i]];
  return at;
}

static place place_of(const attention *x, i64 apart, i64 together) {
  place p;
  for (slot s = 0; s < T_COUNT; s++)
    p.at[s] = offset(x, s, &x->apart, apart) + offset(x, s, &x->together, together);
  return p;
}

static i64 by(const attention *x, slot s, char c) { return c ? x->stride[s][(u8)c] : 0; }
static void *at(const attention *x, const place *p, slot s, i64 row, i64 key) {
  const i64 k = p->at[s] + row * by(x, s, x->row) + key * by(x, s, x->l.key);
  return (char *)x->of[s]->data + k * (i64)(s == T_MASK ? 1 : x->bytes);
}

// Rows: the letter of a causal mask, else the longest that neither k nor v has.
static void choose_rows(attention *x) {
  const attr *causal = attr_get(x->r->at, A_causal);
  for (const char *c = x->l.rows; *c && !causal; c++)
    if (!strchr(x->l.opd[1], *c) && !strchr(x->l.opd[2], *c) &&
        (!x->row || x->ext[(u8)*c] > x->ext[(u8)x->row]))
      x->row = *c;
  if (causal) x->row = sym_str(x->r->c, causal->u.s)[0];
  x->nrow = x->row ? x->ext[(u8)x->row] : 1;
}

static const i64 *indices(attention *x, slot s, char c, i64 n) {
  const char *term = x->l.opd[s], *at_letter = strchr(term, c);
  const u32 d = at_letter ? (u32)(at_letter - term) : 0;
  i64 *v = NEWN(x->r->a, i64, n + 1);
  for (i64 i = 0; i < n; i++) v[i] = at_letter ? whole_or_map(x->of[s], d, i) : 0;
  return v;
}

// first: the operand that is q. gradients: results that a unit must have to itself, from which slot, how many.
static bool attention_of(run *r, u32 first, attention *x) {
  *x =
      (attention){.r = r, .t = r->real, .bytes = dtype_bytes(r->real), .apart.count = 1, .together.count = 1};
  const char *wrong = attention_read(ker_mode(r, A_law, ""), &x->l);
  assert(!wrong && "the law has been read");
  (void)wrong;
  for (u32 c = 0; c < COUNT_OF(x->ext); c++) x->ext[c] = -1;
  for (u32 k = 0; k < x->l.nopd; k++) {
    const ker_tensor *t = &r->opd[first + k];
    const slot s = k < 3 ? (slot)k : is_float(t) ? T_BIAS : T_MASK;
    if (!put_tensor(x, s, t, x->l.opd[k])) return false;
  }
  if (first && (!put_tensor(x, T_DY, &r->opd[0], x->l.y) || !put_tensor(x, T_Y, &r->opd[1], x->l.y) ||
                !put_tensor(x, T_LSE, &r->opd[2], x->l.rows)))
    return false;
  x->alpha = attr_float(r->at, A_alpha, 1), x->value = attr_float(r->at, A_value, -INFINITY);
  choose_rows(x);
  x->nkey = x->ext[(u8)x->l.key], x->deep = x->ext[(u8)x->l.deep], x->wide = x->ext[(u8)x->l.wide];
  if (!attr_get(r->at, A_causal)) return true;
  x->query = indices(x, T_Q, x->row, x->nrow), x->key = indices(x, T_K, x->l.key, x->nkey);
  return true;
}

// ---- products --------------------------------------------------------------------------------------------
// c[m][n], next to each other, = or += a b, of strides.
static void product(const attention *x, arena *scratch, const matrix_product *p) {
  if (ker_has_blas(x->t) && p->k && ker_blas_takes(p->m, p->k, p->a_row, p->a_col) &&
      ker_blas_takes(p->k, p->n, p->b_row, p->b_col)) {
    ker_blas_product(x->t, p);
    return;
  }
  const arena_mark_t mark = arena_mark(scratch);
  const i64 n[] = {p->m, p->k, p->n, p->k, p->m, p->n},
            step[] = {p->a_row, p->a_col, p->b_col, p->b_row, p->c_row, 1};
  i64 *table[COUNT_OF(n)];
  for (u32 i = 0; i < COUNT_OF(n); i++) {
    table[i] = NEWN(scratch, i64, n[i] + 1);
    for (i64 k = 0; k < n[i]; k++) table[i][k] = k * step[i];
  }
  ker_product(scratch, &(ker_product_of){.t = x->t,
                                         .to = x->t,
                                         .a = {p->a, p->m, p->k, table[0], table[1]},
                                         .b = {p->b, p->n, p->k, table[2], table[3]},
                                         .c = p->c,
                                         .cm = table[4],
                                         .cn = table[5],
                                         .add = p->add});
  arena_release(scratch, mark);
}

// Of a block x[rows][n], next to each other: to = x by f, or += x.
static void put_block(const attention *x, void *to_, i64 row, i64 col, const void *from_, i64 rows, i64 n,
                      const double *f) {
#define PUT(T)                                                                                               \
  {                                                                                                          \
    const T *from = from_;                                                                                   \
    T *to = to_;                                                                                             \
    for (i64 i = 0; i < rows; i++, to += row, from += n) {                                                   \
      const T times = (T)(f ? f[i] : 1);                                                                     \
      for (i64 k = 0; k < n; k++) to[k * col] = f ? from[k] * times : to[k * col] + from[k];                 \
    }                                                                                                        \
  }
  if (x->t == DT_F32)
    PUT(float)
  else
    PUT(double)
#undef PUT
}

static double number_at(const attention *x, const void *v, i64 k) {
  return x->t == DT_F32 ? (double)((const float *)v)[k] : ((const double *)v)[k];
}

// ---- scores of a block -------------------------------------------------------------------------------------
typedef struct {
  const attention *x;
  arena *scratch;
  place p;
  i64 i0, i1, j0, j1; // rows, keys
  void *s, *ds;       // [rows][keys]; ds: of the gradient
  u8 *seen;
} block;

static void *row_of(const block *b, void *v, i64 i) {
  return (char *)v + (i - b->i0) * (b->j1 - b->j0) * (i64)b->x->bytes;
}

// Is each key of the block later than every query of it? some: is any later than any?
static bool all_later(const block *b, bool *some) {
  const attention *x = b->x;
  *some = false;
  if (!x->key) return false;
  i64 first = INT64_MAX, last = -1, early = INT64_MAX, late = -1;
  for (i64 j = b->j0; j < b->j1; j++) first = MIN(first, x->key[j]), last = MAX(last, x->key[j]);
  for (i64 i = b->i0; i < b->i1; i++) early = MIN(early, x->query[i]), late = MAX(late, x->query[i]);
  *some = last > early;
  return first > late;
}

// What is masked becomes `value`.
static void mask_block(const block *b, void *v, double value, bool later) {
  const attention *x = b->x;
  const i64 n = b->j1 - b->j0;
  for (i64 i = b->i0; i < b->i1; i++) {
    if (x->of[T_MASK])
      x->r->v->attend_mask(row_of(b, v, i), n, at(x, &b->p, T_MASK, i, b->j0), by(x, T_MASK, x->l.key),
                           value);
    if (!later) continue;
    for (i64 j = 0; j < n; j++) b->seen[j] = x->key[b->j0 + j] <= x->query[i];
    x->r->v->attend_mask(row_of(b, v, i), n, b->seen, 1, value);
  }
}

static void scores(const block *b, bool later) {
  const attention *x = b->x;
  const i64 m = b->i1 - b->i0, n = b->j1 - b->j0;
  product(x, b->scratch,
          &(matrix_product){.m = m,
                            .n = n,
                            .k = x->deep,
                            .a = at(x, &b->p, T_Q, b->i0, 0),
                            .b = at(x, &b->p, T_K, 0, b->j0),
                            .a_row = by(x, T_Q, x->row),
                            .a_col = by(x, T_Q, x->l.deep),
                            .b_row = by(x, T_K, x->l.deep),
                            .b_col = by(x, T_K, x->l.key),
                            .c = b->s,
                            .c_row = n});
  if (x->alpha != 1 || x->of[T_BIAS])
    for (i64 i = b->i0; i < b->i1; i++)
      x->r->v->attend_scores(row_of(b, b->s, i), n, x->alpha,
                             x->of[T_BIAS] ? at(x, &b->p, T_BIAS, i, b->j0) : NULL, by(x, T_BIAS, x->l.key));
  mask_block(b, b->s, x->value, later);
}

static block block_new(const attention *x, arena *scratch, bool gradient) {
  block b = {.x = x, .scratch = scratch};
  b.s = arena_alloc(scratch, x->bytes * ROWS * KEYS), b.seen = NEWN(scratch, u8, KEYS);
  if (gradient) b.ds = arena_alloc(scratch, x->bytes * ROWS * KEYS);
  return b;
}

// No exponential of a number so far below the largest is more than 0.
static bool vanishes(const attention *x, double below) { return below < (x->t == DT_F32 ? -120 : -800); }

// ---- forward -----------------------------------------------------------------------------------------------
typedef struct {
  double top[ROWS], sum[ROWS];
  void *y; // [rows][wide]
} rows_so_far;

static void meet_keys(const block *b, rows_so_far *s, bool later) {
  const attention *x = b->x;
  const i64 n = b->j1 - b->j0;
  scores(b, later);
  for (i64 i = b->i0; i < b->i1; i++) {
    const i64 k = i - b->i0;
    const double before = x->r->v->attend_exp(row_of(b, b->s, i), n, &s->top[k], &s->sum[k]);
    if (before != 1)
      x->r->v->attend_scores((char *)s->y + k * x->wide * (i64)x->bytes, x->wide, before, NULL, 0);
  }
  product(x, b->scratch,
          &(matrix_product){.m = b->i1 - b->i0,
                            .n = x->wide,
                            .k = n,
                            .a = b->s,
                            .a_row = n,
                            .a_col = 1,
                            .b = at(x, &b->p, T_V, 0, b->j0),
                            .b_row = by(x, T_V, x->l.key),
                            .b_col = by(x, T_V, x->l.wide),
                            .c = s->y,
                            .c_row = x->wide,
                            .add = true});
}

static void forward_rows(const attention *x, arena *scratch, i64 at_apart, i64 i0, i64 i1) {
  block b = block_new(x, scratch, false);
  rows_so_far s = {.y = arena_zalloc(scratch, x->bytes * (size_t)(ROWS * x->wide + 1))};
  bool left_out = false, needed = false;
  b.p = place_of(x, at_apart, 0), b.i0 = i0, b.i1 = i1;
  for (i64 k = 0; k < i1 - i0; k++) s.top[k] = -INFINITY, s.sum[k] = 0;
  // What is masked counts where nothing that is seen is much larger.
  for (int masked = 0; masked < 2; masked++) {
    for (b.j0 = 0; b.j0 < x->nkey && (!masked || needed); b.j0 = b.j1) {
      bool later;
      b.j1 = MIN(b.j0 + KEYS, x->nkey);
      const bool all = all_later(&b, &later);
      left_out |= all;
      if (all == (masked > 0)) meet_keys(&b, &s, later);
    }
    for (i64 k = 0; k < i1 - i0 && left_out; k++)
      needed |= !vanishes(x, x->value - s.top[k]) && x->value > -INFINITY;
  }
  double one_by[ROWS];
  for (i64 k = 0; k < i1 - i0; k++) one_by[k] = x->nkey ? 1 / s.sum[k] : 0;
  put_block(x, at(x, &b.p, T_Y, i0, 0), by(x, T_Y, x->row), by(x, T_Y, x->l.wide), s.y, i1 - i0, x->wide,
            one_by);
  for (i64 k = 0; k < i1 - i0; k++) {
    const double lse = s.top[k] + log(s.sum[k]);
    void *to = at(x, &b.p, T_LSE, i0 + k, 0);
    if (x->t == DT_F32)
      *(float *)to = (float)lse;
    else
      *(double *)to = lse;
  }
}

// ---- units on threads --------------------------------------------------------------------------------------
typedef struct units {
  const attention *x;
  arena **scratch; // by thread
  i64 parts;       // of the rows of a combination
  void (*each)(const attention *x, arena *scratch, i64 apart, i64 i0, i64 i1);
} units;

static void one_unit(void *arg, u32 k, int thread) {
  const units *u = arg;
  const i64 part = k % u->parts, i0 = u->parts == 1 ? 0 : part * ROWS,
            i1 = u->parts == 1 ? u->x->nrow : MIN(i0 + ROWS, u->x->nrow);
  const arena_mark_t mark = arena_mark(u->scratch[thread]);
  u->each(u->x, u->scratch[thread], k / u->parts, i0, i1);
  arena_release(u->scratch[thread], mark);
}

// by_rows: blocks of rows are units, too.
static void run_units(attention *x, bool by_rows,
                      void (*each)(const attention *x, arena *scratch, i64 apart, i64 i0, i64 i1)) {
  const double all = (double)x->apart.count * (double)x->together.count * (double)x->nrow * (double)x->nkey;
  const int threads = all < ALONE ? 1 : MAX(x->r->threads, 1);
  units u = {.x = x, .scratch = ker_scratches(x->r, threads), .each = each};
  u.parts = by_rows ? (x->nrow + ROWS - 1) / ROWS : 1;
  assert(x->apart.count * u.parts <= INT32_MAX);
  if (x->nrow && x->apart.count && x->together.count)
    parallel_for(threads, (u32)(x->apart.count * u.parts), one_unit, &u);
  ker_scratches_free(x->r, u.scratch, threads);
}

bool ker_attention(run *r) {
  attention x;
  if (!attention_of(r, 0, &x) || !put_tensor(&x, T_Y, &r->res[0], x.l.y) ||
      !put_tensor(&x, T_LSE, &r->res[1], x.l.rows))
    return false;
  for (const char *c = x.l.rows; *c; c++)
    if (*c != x.row) add_loop(&x, &x.apart, *c);
  run_units(&x, true, forward_rows);
  return true;
}

// ---- backward ----------------------------------------------------------------------------------------------
// The sum over e of dy y, of rows from i0 on.
static void find_dots(const attention *x, const place *p, i64 i0, i64 i1, double *dot) {
  const i64 sy = by(x, T_Y, x->l.wide), sd = by(x, T_DY, x->l.wide);
  for (i64 i = i0; i < i1; i++) {
    const void *y = at(x, p, T_Y, i, 0), *dy = at(x, p, T_DY, i, 0);
    double sum = 0;
    for (i64 k = 0; k < x->wide; k++) sum += number_at(x, y, k * sy) * number_at(x, dy, k * sd);
    dot[i - i0] = sum;
  }
}

// Softmax of the block in s, the gradient of its scores in ds. False: both are 0. dot: of row i0.
static bool score_gradients(const block *b, const double *dot) {
  const attention *x = b->x;
  const i64 m = b->i1 - b->i0, n = b->j1 - b->j0;
  bool later, needed = false;
  if (all_later(b, &later)) {
    for (i64 i = b->i0; i < b->i1; i++) {
      const double lse = number_at(x, at(x, &b->p, T_LSE, i, 0), 0);
      needed |= !vanishes(x, x->value - lse) && !(x->value == -INFINITY && lse > -INFINITY);
    }
    if (!needed) return false;
  }
  scores(b, later);
  product(x, b->scratch,
          &(matrix_product){.m = m,
                            .n = n,
                            .k = x->wide,
                            .a = at(x, &b->p, T_DY, b->i0, 0),
                            .b = at(x, &b->p, T_V, 0, b->j0),
                            .a_row = by(x, T_DY, x->row),
                            .a_col = by(x, T_DY, x->l.wide),
                            .b_row = by(x, T_V, x->l.wide),
                            .b_col = by(x, T_V, x->l.key),
                            .c = b->ds,
                            .c_row = n});
  for (i64 i = b->i0; i < b->i1; i++)
    x->r->v->attend_dx(row_of(b, b->s, i), row_of(b, b->ds, i), n, number_at(x, at(x, &b->p, T_LSE, i, 0), 0),
                       dot[i - b->i0]);
  mask_block(b, b->ds, 0, later);
  return true;
}

// Of a block of keys dk and dv are summed over all rows, then added to what is there; dq is added to block by block.
typedef struct {
  void *dq, *dk, *dv;
} sums;

static void add_products(const block *b, const sums *s) {
  const attention *x = b->x;
  const i64 m = b->i1 - b->i0, n = b->j1 - b->j0;
  product(x, b->scratch,
          &(matrix_product){.m = n,
                            .n = x->wide,
                            .k = m,
                            .a = b->s,
                            .a_row = 1,
                            .a_col = n,
                            .b = at(x, &b->p, T_DY, b->i0, 0),
                            .b_row = by(x, T_DY, x->row),
                            .b_col = by(x, T_DY, x->l.wide),
                            .c = s->dv,
                            .c_row = x->wide,
                            .add = true});
  if (x->alpha != 1) x->r->v->attend_scores(b->ds, m * n, x->alpha, NULL, 0);
  product(x, b->scratch,
          &(matrix_product){.m = n,
                            .n = x->deep,
                            .k = m,
                            .a = b->ds,
                            .a_row = 1,
                            .a_col = n,
                            .b = at(x, &b->p, T_Q, b->i0, 0),
                            .b_row = by(x, T_Q, x->row),
                            .b_col = by(x, T_Q, x->l.deep),
                            .c = s->dk,
                            .c_row = x->deep,
                            .add = true});
  product(x, b->scratch,
          &(matrix_product){.m = m,
                            .n = x->deep,
                            .k = n,
                            .a = b->ds,
                            .a_row = n,
                            .a_col = 1,
                            .b = at(x, &b->p, T_K, 0, b->j0),
                            .b_row = by(x, T_K, x->l.key),
                            .b_col = by(x, T_K, x->l.deep),
                            .c = s->dq,
                            .c_row = x->deep});
  put_block(x, at(x, &b->p, T_DQ, b->i0, 0), by(x, T_DQ, x->row), by(x, T_DQ, x->l.deep), s->dq, m, x->deep,
            NULL);
}

static void backward_unit(const attention *x, arena *scratch, i64 apart, i64 i0, i64 i1) {
  block b = block_new(x, scratch, true);
  const size_t dk = x->bytes * (size_t)(KEYS * x->deep + 1), dv = x->bytes * (size_t)(KEYS * x->wide + 1);
  const sums s = {arena_alloc(scratch, x->bytes * (size_t)(ROWS * x->deep + 1)), arena_alloc(scratch, dk),
                  arena_alloc(scratch, dv)};
  double *dot = NEWN(scratch, double, i1 - i0);
  for (i64 w = 0; w < x->together.count; w++) {
    b.p = place_of(x, apart, w);
    find_dots(x, &b.p, i0, i1, dot);
    for (b.j0 = 0; b.j0 < x->nkey; b.j0 = b.j1) {
      b.j1 = MIN(b.j0 + KEYS, x->nkey);
      memset(s.dk, 0, dk), memset(s.dv, 0, dv);
      for (b.i0 = i0; b.i0 < i1; b.i0 = b.i1) {
        b.i1 = MIN(b.i0 + ROWS, i1);
        if (score_gradients(&b, dot + (b.i0 - i0))) add_products(&b, &s);
      }
      put_block(x, at(x, &b.p, T_DK, 0, b.j0), by(x, T_DK, x->l.key), by(x, T_DK, x->l.deep), s.dk,
                b.j1 - b.j0, x->deep, NULL);
      put_block(x, at(x, &b.p, T_DV, 0, b.j0), by(x, T_DV, x->l.key), by(x, T_DV, x->l.wide), s.dv,
                b.j1 - b.j0, x->wide, NULL);
    }
  }
}

static void clear(const attention *x, const ker_tensor *t) {
  memset(t->data, 0, x->bytes * (size_t)ker_elems(t));
}

bool ker_attention_dx(run *r) {
  attention x;
  if (!attention_of(r, 3, &x)) return false;
  for (u32 k = 0; k < 3; k++) {
    if (!put_tensor(&x, T_DQ + k, &r->res[k], x.l.opd[k])) return false;
    clear(&x, &r->res[k]);
  }
  for (const char *c = x.l.rows; *c; c++)
    if (*c != x.row)
      add_loop(&x,
               strchr(x.l.opd[0], *c) && strchr(x.l.opd[1], *c) && strchr(x.l.opd[2], *c) ? &x.apart
                                                                                          : &x.together,
               *c);
  run_units(&x, false, backward_unit);
  return true;
}

// The gradient of the bias has its extents; what it does not vary along is summed over.
static void bias_unit(const attention *x, arena *scratch, i64 apart, i64 i0, i64 i1) {
  block b = block_new(x, scratch, true);
  double dot[ROWS];
  for (i64 w = 0; w < x->together.count; w++) {
    b.p = place_of(x, apart, w);
    for (b.i0 = i0; b.i0 < i1; b.i0 = b.i1) {
      b.i1 = MIN(b.i0 + ROWS, i1);
      find_dots(x, &b.p, b.i0, b.i1, dot);
      for (b.j0 = 0; b.j0 < x->nkey; b.j0 = b.j1) {
        b.j1 = MIN(b.j0 + KEYS, x->nkey);
        if (score_gradients(&b, dot))
          put_block(x, at(x, &b.p, T_DB, b.i0, b.j0), by(x, T_DB, x->row), by(x, T_DB, x->l.key), b.ds,
                    b.i1 - b.i0, b.j1 - b.j0, NULL);
      }
    }
  }
}

bool ker_attention_db(run *r) {
  attention x;
  if (!attention_of(r, 3, &x) || !put_tensor(&x, T_DB, &r->res[0], x.l.opd[3])) return false;
  clear(&x, &r->res[0]);
  for (const char *c = x.l.rows; *c; c++)
    if (*c != x.row) add_loop(&x, by(&x, T_DB, *c) ? &x.apart : &x.together, *c);
  run_units(&x, by(&x, T_DB, x.row) != 0, bias_unit);
  return true;
}
