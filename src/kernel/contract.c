// contract.c - sums of products of two tensors: matmul, einsum, and all of convolution.
//
// Idea: the address of an element is a sum over letters, so any such sum of products is a matrix product
// whose rows, columns and inner index are products of letters, addressed through offset tables (the packing
// step of a fast matrix product reads every element through its table once and the inner loop never sees
// them). Letters of both operands and the result are a batch. Everything is added in f64 in the order of the
// inner index, so a result does not depend on blocking, machine or threads: a thread has rows or columns of the
// result to itself.
#include "kernel/internal.h"

// Rows and columns of a tile, extents of blocks: PACK_ROWS x PACK_DEEP of one operand are in L2 with the sums of a block, a tile's
// columns of the other in L1. PACK_A, PACK_B: packed elements of the first operand that are kept for all columns, of the second.
enum { MR = 6, NR = 8, PACK_ROWS = 96, PACK_DEEP = 256, PACK_A = 1 << 22, PACK_B = 1 << 18 };
enum { ALONE = 1 << 22 }; // products of so many elements are not worth a thread

#if defined(__GNUC__)
typedef double v4 __attribute__((vector_size(32), aligned(8), may_alias));

// out[MR][NR] += sum over k of a[k][MR] b[k][NR]: twelve accumulators, two columns, one broadcast.
static inline __attribute__((always_inline)) void tile_body(i64 k, const double *a, const double *b,
                                                            double *out) {
#define ROWS(R) R(0) R(1) R(2) R(3) R(4) R(5)
#define LOAD(i) v4 p##i = *(const v4 *)(out + i * NR), q##i = *(const v4 *)(out + i * NR + 4);
  ROWS(LOAD)
  for (; k > 0; k--, a += MR, b += NR) {
    v4 p = *(const v4 *)b, q = *(const v4 *)(b + 4);
#define STEP(i) p##i += a[i] * p, q##i += a[i] * q;
    ROWS(STEP)
  }
#define STORE(i) *(v4 *)(out + i * NR) = p##i, *(v4 *)(out + i * NR + 4) = q##i;
  ROWS(STORE)
}
#else
static void tile_body(i64 k, const double *a, const double *b, double *out) {
  for (; k > 0; k--, a += MR, b += NR)
    for (int i = 0; i < MR; i++)
      for (int j = 0; j < NR; j++) out[i * NR + j] += a[i] * b[j];
}
#endif

typedef void tile_fn(i64 k, const double *a, const double *b, double *out);
static void tile_plain(i64 k, const double *a, const double *b, double *out) { tile_body(k, a, b, out); }

#if defined(__GNUC__) && defined(__x86_64__)
// Wider registers, the same operations in the same order: the same numbers.
__attribute__((target("avx2"))) static void tile_avx2(i64 k, const double *a, const double *b, double *out) {
  tile_body(k, a, b, out);
}
static tile_fn *tile_best(void) { return __builtin_cpu_supports("avx2") ? tile_avx2 : tile_plain; }
#else
static tile_fn *tile_best(void) { return tile_plain; }
#endif

// One matrix: offsets of its rows and columns.
typedef struct {
  const void *data;
  i64 nrow, ncol;
  i64 *row, *col;
} table;

// out[col][wide] = rows from..from+wide-1 of the matrix, as f64, zero beyond the last row.
static void pack_tile(double *out, dtype t, const table *m, i64 from, i64 wide) {
  i64 rows = MIN(wide, m->nrow - from);
  if (rows < wide) memset(out, 0, sizeof(double) * (size_t)(wide * m->ncol));
#define PACK(T)                                                                                              \
  {                                                                                                          \
    const T *x[NR];                                                                                          \
    for (i64 i = 0; i < rows; i++) x[i] = (const T *)m->data + m->row[from + i];                             \
    for (i64 k = 0; k < m->ncol; k++)                                                                        \
      for (i64 i = 0; i < rows; i++) out[k * wide + i] = (double)x[i][m->col[k]];                            \
  }
  switch (t) {
  case DT_F64: PACK(double) break;
  case DT_F32: PACK(float) break;
  default:
    for (i64 i = 0; i < rows; i++)
      for (i64 k = 0; k < m->ncol; k++)
        ker_load_f64(&out[k * wide + i], t, (const u16 *)m->data + m->row[from + i] + m->col[k], 1);
  }
#undef PACK
}

// The same of rows that lie next to each other, all of them a column at a time: columns may lie far apart.
static void pack_columns(double *out, dtype t, const table *m, i64 from, i64 end, i64 wide) {
  const i64 full = (end - from) / wide;
  const i64 tile = wide * m->ncol;
#define PACK(T)                                                                                              \
  for (i64 k = 0; k < m->ncol; k++) {                                                                        \
    const T *x = (const T *)m->data + m->row[from] + m->col[k];                                              \
    for (i64 p = 0; p < full; p++, x += wide)                                                                \
      for (i64 i = 0; i < wide; i++) out[p * tile + k * wide + i] = (double)x[i];                            \
  }
  if (t == DT_F64)
    PACK(double)
  else
    PACK(float)
#undef PACK
  if (from + full * wide < end) pack_tile(out + full * tile, t, m, from + full * wide, wide);
}

static void pack(double *out, dtype t, const table *m, i64 from, i64 end, i64 wide) {
  bool next = t == DT_F64 || t == DT_F32;
  for (i64 i = from + 1; i < end && next; i++) next = m->row[i] == m->row[i - 1] + 1;
  if (next && m->ncol > 1) {
    pack_columns(out, t, m, from, end, wide);
    return;
  }
  for (i64 i = from; i < end; i += wide) pack_tile(out + (i - from) * m->ncol, t, m, i, wide);
}

// c[cm[i] + cn[j]] = sum over k of a[i][k] b[j][k].
typedef struct {
  dtype t;
  const table *a, *b;
  double *c;
  const i64 *cm, *cn;
  bool add;
  double *pa, *pb, *sum; // packed operands; the tiles of a block, column after column
} product;

static void store_tile(const product *x, i64 i, i64 j, const double *sum) {
  const i64 rows = MIN(MR, x->a->nrow - i), cols = MIN(NR, x->b->nrow - j);
  for (i64 y = 0; y < rows; y++)
    for (i64 z = 0; z < cols; z++) {
      double *to = x->c + x->cm[i + y] + x->cn[j + z];
      *to = x->add ? *to + sum[y * NR + z] : sum[y * NR + z];
    }
}

// Rows from i0 of a, packed at pa, with columns from j0, packed at pb. Every sum is added in the order of k, whatever the blocks.
static void multiply_block(const product *x, const double *pa, i64 i0, i64 i1, i64 j0, i64 j1) {
  tile_fn *tile = tile_best();
  const i64 k = x->a->ncol, ntile = (i1 - i0 + MR - 1) / MR;
  memset(x->sum, 0, sizeof(double) * (size_t)(ntile * ((j1 - j0 + NR - 1) / NR)) * MR * NR);
  for (i64 k0 = 0; k0 < k; k0 += PACK_DEEP)
    for (i64 j = j0; j < j1; j += NR) {
      double *sum = x->sum + (j - j0) / NR * ntile * MR * NR;
      for (i64 i = i0; i < i1; i += MR, sum += MR * NR)
        tile(MIN(PACK_DEEP, k - k0), pa + (i - i0) * k + k0 * MR, x->pb + (j - j0) * k + k0 * NR, sum);
    }
  for (i64 j = j0; j < j1; j += NR)
    for (i64 i = i0; i < i1; i += MR)
      store_tile(x, i, j, x->sum + ((j - j0) / NR * ntile + (i - i0) / MR) * MR * NR);
}

static i64 round_up(i64 n, i64 to) { return (n + to - 1) / to * to; }

static void product_f64(arena *scratch, product x) {
  arena_mark_t mark = arena_mark(scratch);
  const i64 m = x.a->nrow, n = x.b->nrow, k = x.a->ncol, kk = MAX(k, 1);
  const i64 mc = MIN(MAX(MIN(PACK_ROWS, PACK_A / kk / MR * MR), MR), round_up(m, MR)),
            nc = MIN(MAX(PACK_B / kk / NR, 1) * NR, round_up(n, NR));
  const bool keep = n > nc && round_up(m, MR) * kk <= PACK_A; // of all columns
  x.pa = NEWN(scratch, double, (keep ? round_up(m, MR) : mc) * kk);
  x.pb = NEWN(scratch, double, nc *kk);
  x.sum = NEWN(scratch, double, mc *nc);
  for (i64 j0 = 0; j0 < n; j0 += nc) {
    const i64 j1 = MIN(j0 + nc, n);
    pack(x.pb, x.t, x.b, j0, j1, NR);
    for (i64 i0 = 0; i0 < m; i0 += mc) {
      const i64 i1 = MIN(i0 + mc, m);
      double *pa = x.pa + (keep ? i0 * k : 0);
      if (!keep || !j0) pack(pa, x.t, x.a, i0, i1, MR);
      multiply_block(&x, pa, i0, i1, j0, j1);
    }
  }
  arena_release(scratch, mark);
}

static void product_i64(arena *scratch, dtype t, const table *a, const table *b, i64 *c, const i64 *cm,
                        const i64 *cn, bool add) {
  arena_mark_t mark = arena_mark(scratch);
  size_t bytes = dtype_bytes(t);
  i64 k = a->ncol, *x = NEWN(scratch, i64, k), *y = NEWN(scratch, i64, k * b->nrow);
  for (i64 j = 0; j < b->nrow; j++)
    for (i64 p = 0; p < k; p++)
      ker_load_i64(&y[j * k + p], t, (const char *)b->data + (size_t)(b->row[j] + b->col[p]) * bytes, 1);
  for (i64 i = 0; i < a->nrow; i++) {
    for (i64 p = 0; p < k; p++)
      ker_load_i64(&x[p], t, (const char *)a->data + (size_t)(a->row[i] + a->col[p]) * bytes, 1);
    for (i64 j = 0; j < b->nrow; j++) {
      u64 sum = add ? (u64)c[cm[i] + cn[j]] : 0;
      for (i64 p = 0; p < k; p++) sum += (u64)x[p] * (u64)y[j * k + p];
      c[cm[i] + cn[j]] = (i64)sum;
    }
  }
  arena_release(scratch, mark);
}

enum { FROM_A, FROM_B, FROM_C };

// Offsets, in one tensor, of all combinations of the letters that occur in exactly `in`, the last one
// fastest.
static i64 *offsets(arena *scratch, const contraction *k, u8 in, int from, i64 *count) {
  i64 n = 1;
  for (u32 i = 0; i < k->n; i++)
    if (k->l[i].in == in) n *= k->l[i].n;
  i64 *off = NEWN(scratch, i64, MAX(n, 1)), have = 1;
  off[0] = 0;
  for (u32 i = 0; i < k->n && n; i++) {
    const letter *l = &k->l[i];
    if (l->in != in) continue;
    i64 s = from == FROM_A ? l->a : from == FROM_B ? l->b : l->c;
    for (i64 j = have; j-- > 0;)
      for (i64 x = l->n; x-- > 0;) off[j * l->n + x] = off[j] + x * s; // from the end: off[j] is read last
    have *= l->n;
  }
  *count = n;
  return off;
}

// ---- on threads ------------------------------------------------------------------------------------------
typedef struct {
  const contraction *k;
  i64 m, n, p;
  const i64 *ba, *bb, *bc, *am, *bn, *ak, *bk, *cm, *cn; // offsets of batch, rows, columns, inner index
  u32 cuts;                                              // parts of each matrix of the batch ...
  bool rows;                                             // ... by rows, else by columns
  arena **temp;                                          // by thread
} products;

// Where part `part` of n begins: a multiple of the tile.
static i64 cut_at(i64 n, i64 tile, u32 part, u32 cuts) {
  return part == cuts ? n : n / tile * part / cuts * tile;
}

static void one_part(void *arg, u32 i, int thread) {
  const products *x = arg;
  const contraction *k = x->k;
  const u32 batch = i / x->cuts, part = i % x->cuts;
  const size_t bytes = dtype_bytes(k->t);
  i64 i0 = 0, i1 = x->m, j0 = 0, j1 = x->n;
  if (x->rows)
    i0 = cut_at(x->m, MR, part, x->cuts), i1 = cut_at(x->m, MR, part + 1, x->cuts);
  else
    j0 = cut_at(x->n, NR, part, x->cuts), j1 = cut_at(x->n, NR, part + 1, x->cuts);
  if (i0 == i1 || j0 == j1) return;
  const table a = {(const char *)k->a + x->ba[batch] * (i64)bytes, i1 - i0, x->p, (i64 *)x->am + i0,
                   (i64 *)x->ak};
  const table b = {(const char *)k->b + x->bb[batch] * (i64)bytes, j1 - j0, x->p, (i64 *)x->bn + j0,
                   (i64 *)x->bk};
  product_f64(x->temp[thread], (product){k->t, &a, &b, (double *)k->c + x->bc[batch], x->cm + i0, x->cn + j0,
                                         k->add, NULL, NULL, NULL});
}

static void all_parts(run *r, products *x, u32 nbatch) {
  const double work = (double)nbatch * (double)x->m * (double)x->n * (double)x->p;
  const int threads = work < ALONE ? 1 : MAX(r->threads, 1);
  x->cuts = nbatch < 4 * (u32)threads ? (u32)threads : 1;
  x->rows = x->m >= x->n;
  x->temp = NEWN(r->a, arena *, threads);
  x->temp[0] = r->a;
  for (int t = 1; t < threads; t++) x->temp[t] = arena_new();
  parallel_for(threads, nbatch * x->cuts, one_part, x);
  for (int t = 1; t < threads; t++) arena_free(x->temp[t]);
}

void ker_contract(run *r, const contraction *k) {
  contraction s = *k;
  for (u32 i = 0; i < s.n;
       i++) { // letters of one operand alone are summed as inner ones that the other ignores
    letter *l = &s.l[i];
    if (l->in == IN_A)
      *l = (letter){l->n, l->a, 0, 0, IN_A | IN_B};
    else if (l->in == IN_B)
      *l = (letter){l->n, 0, l->b, 0, IN_A | IN_B};
  }
  arena_mark_t mark = arena_mark(r->a);
  i64 nbatch, n, m, p;
  i64 *ba = offsets(r->a, &s, IN_A | IN_B | IN_C, FROM_A, &nbatch);
  i64 *bb = offsets(r->a, &s, IN_A | IN_B | IN_C, FROM_B, &nbatch);
  i64 *bc = offsets(r->a, &s, IN_A | IN_B | IN_C, FROM_C, &nbatch);
  i64 *cm = offsets(r->a, &s, IN_A | IN_C, FROM_C, &m), *am = offsets(r->a, &s, IN_A | IN_C, FROM_A, &m);
  i64 *cn = offsets(r->a, &s, IN_B | IN_C, FROM_C, &n), *bn = offsets(r->a, &s, IN_B | IN_C, FROM_B, &n);
  i64 *ak = offsets(r->a, &s, IN_A | IN_B, FROM_A, &p), *bk = offsets(r->a, &s, IN_A | IN_B, FROM_B, &p);
  size_t bytes = dtype_bytes(k->t);
  if (dtype_kind_of(k->t) == DK_FLOAT) {
    products x = {.k = k,
                  .m = m,
                  .n = n,
                  .p = p,
                  .ba = ba,
                  .bb = bb,
                  .bc = bc,
                  .am = am,
                  .bn = bn,
                  .ak = ak,
                  .bk = bk,
                  .cm = cm,
                  .cn = cn};
    assert(nbatch <= INT32_MAX);
    all_parts(r, &x, (u32)nbatch);
  } else {
    for (i64 i = 0; i < nbatch; i++) {
      table a = {(const char *)k->a + ba[i] * (i64)bytes, m, p, am, ak};
      table b = {(const char *)k->b + bb[i] * (i64)bytes, n, p, bn, bk};
      product_i64(r->a, k->t, &a, &b, (i64 *)k->c + bc[i], cm, cn, k->add);
    }
  }
  arena_release(r->a, mark);
}

// ---- operators -----------------------------------------------------------------------------------------

// numpy's matmul: one-dimensional operands are a row and a column, leading dimensions are broadcast.
bool ker_matmul(run *r) {
  const ker_tensor *a = &r->opd[0], *b = &r->opd[1], *c = &r->res[0];
  contraction k = {.t = a->t, .a = a->data, .b = b->data, .c = c->data};
  i64 sa[DIMS_MAX], sb[DIMS_MAX], sc[DIMS_MAX];
  ker_strides(a->nd, a->dim, sa);
  ker_strides(b->nd, b->dim, sb);
  ker_strides(c->nd, c->dim, sc);
  bool row = a->nd > 1, col = b->nd > 1;
  u32 ka = a->nd - 1, kb = col ? b->nd - 2 : 0, lead = c->nd - row - col;
  if (a->dim[ka] != b->dim[kb]) return ker_misfit(r, "inner extents", a->dim[ka], b->dim[kb]);
  for (u32 d = 0; d < lead; d++) {
    u32 fa = row ? a->nd - 2 : 0, fb = col ? b->nd - 2 : 0; // leading dimensions of each
    letter l = {.n = c->dim[d], .c = sc[d], .in = IN_C};
    if (d + fa >= lead && a->dim[d + fa - lead] != 1) l.in |= IN_A, l.a = sa[d + fa - lead];
    if (d + fb >= lead && b->dim[d + fb - lead] != 1) l.in |= IN_B, l.b = sb[d + fb - lead];
    if (l.in & IN_A && a->dim[d + fa - lead] != l.n)
      return ker_misfit(r, "extents", a->dim[d + fa - lead], l.n);
    if (l.in & IN_B && b->dim[d + fb - lead] != l.n)
      return ker_misfit(r, "extents", b->dim[d + fb - lead], l.n);
    if (l.in != IN_C) k.l[k.n++] = l; // otherwise its extent is 1
  }
  if (row) k.l[k.n++] = (letter){a->dim[ka - 1], sa[ka - 1], 0, sc[lead], IN_A | IN_C};
  if (col) k.l[k.n++] = (letter){b->dim[kb + 1], 0, sb[kb + 1], sc[lead + row], IN_B | IN_C};
  k.l[k.n++] = (letter){a->dim[ka], sa[ka], sb[kb], 0, IN_A | IN_B};
  if (row && c->dim[lead] != a->dim[ka - 1]) return ker_misfit(r, "rows", c->dim[lead], a->dim[ka - 1]);
  if (col && c->dim[lead + row] != b->dim[kb + 1])
    return ker_misfit(r, "columns", c->dim[lead + row], b->dim[kb + 1]);
  ker_contract(r, &k);
  return true;
}

// The law "bsk,kn->bsn": a letter is a dimension; one that occurs twice in a term is its diagonal.
bool ker_einsum(run *r) {
  const char *p = ker_mode(r, A_law, "");
  contraction k = {.t = r->opd[0].t, .a = r->opd[0].data, .b = r->opd[1].data, .c = r->res[0].data};
  u8 id[256] = {0}; // letter -> place + 1
  const ker_tensor *term[3] = {&r->opd[0], &r->opd[1], &r->res[0]};
  for (u32 t = 0; t < 3; t++) {
    i64 stride[DIMS_MAX];
    ker_strides(term[t]->nd, term[t]->dim, stride);
    for (u32 d = 0; *p && *p != ',' && *p != '-'; p++) {
      if (*p == ' ') continue;
      u8 *at = &id[(u8)*p];
      if (!*at) {
        k.l[k.n] = (letter){.n = term[t]->dim[d]};
        *at = (u8)++k.n;
      }
      letter *l = &k.l[*at - 1];
      if (l->n != term[t]->dim[d]) return ker_misfit(r, "extents", l->n, term[t]->dim[d]);
      *(t == 0 ? &l->a : t == 1 ? &l->b : &l->c) += stride[d++];
      l->in |= (u8)(t == 0 ? IN_A : t == 1 ? IN_B : IN_C);
    }
    p += *p == ',' ? 1 : *p == '-' ? 2 : 0;
  }
  ker_contract(r, &k);
  return true;
}
