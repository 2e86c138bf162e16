// product.c - products of two matrices whose elements lie anywhere: where there is no BLAS, and of whole numbers.
//
// Idea: rows and columns are addressed through offset tables. The packing step of a fast matrix product reads every
// element through its table once, and the inner loop never sees them. Everything is added in f64 in the order of the
// inner index, so a result does not depend on blocking, machine or threads.
#include "kernel/internal.h"

// Rows and columns of a tile, extents of blocks: PACK_ROWS x PACK_DEEP of one operand are in L2 with the sums of a block, a tile's
// columns of the other in L1. PACK_A, PACK_B: packed elements of the first operand that are kept for all columns, of the second.
enum { MR = 6, NR = 8, PACK_ROWS = 96, PACK_DEEP = 256, PACK_A = 1 << 18, PACK_B = 1 << 18 };

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

// out[col][wide] = rows from..from+wide-1 of the matrix, as f64, zero beyond the last row.
static void pack_tile(double *out, dtype t, const ker_table *m, i64 from, i64 wide) {
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
static void pack_columns(double *out, dtype t, const ker_table *m, i64 from, i64 end, i64 wide) {
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

static void pack(double *out, dtype t, const ker_table *m, i64 from, i64 end, i64 wide) {
  bool next = t == DT_F64 || t == DT_F32;
  for (i64 i = from + 1; i < end && next; i++) next = m->row[i] == m->row[i - 1] + 1;
  if (next && m->ncol > 1) {
    pack_columns(out, t, m, from, end, wide);
    return;
  }
  for (i64 i = from; i < end; i += wide) pack_tile(out + (i - from) * m->ncol, t, m, i, wide);
}

// A product and where its parts are packed; the tiles of a block, column after column.
typedef struct {
  const ker_product_of *p;
  double *pa, *pb, *sum;
} product;

static void store_tile(const ker_product_of *p, i64 i, i64 j, const double *sum) {
  const i64 rows = MIN(MR, p->a.nrow - i), cols = MIN(NR, p->b.nrow - j);
#define PUT(T)                                                                                               \
  for (i64 y = 0; y < rows; y++)                                                                             \
    for (i64 z = 0; z < cols; z++) {                                                                         \
      T *to = (T *)p->c + p->cm[i + y] + p->cn[j + z];                                                       \
      *to = (T)(p->add ? (double)*to + sum[y * NR + z] : sum[y * NR + z]);                                   \
    }
  if (p->to == DT_F32)
    PUT(float)
  else
    PUT(double)
#undef PUT
}

// Rows from i0 of a, packed at pa, with columns from j0, packed at pb. Every sum is added in the order of k, whatever the blocks.
static void multiply_block(const product *x, const double *pa, i64 i0, i64 i1, i64 j0, i64 j1) {
  tile_fn *tile = tile_best();
  const i64 k = x->p->a.ncol, ntile = (i1 - i0 + MR - 1) / MR;
  memset(x->sum, 0, sizeof(double) * (size_t)(ntile * ((j1 - j0 + NR - 1) / NR)) * MR * NR);
  for (i64 k0 = 0; k0 < k; k0 += PACK_DEEP)
    for (i64 j = j0; j < j1; j += NR) {
      double *sum = x->sum + (j - j0) / NR * ntile * MR * NR;
      for (i64 i = i0; i < i1; i += MR, sum += MR * NR)
        tile(MIN(PACK_DEEP, k - k0), pa + (i - i0) * k + k0 * MR, x->pb + (j - j0) * k + k0 * NR, sum);
    }
  for (i64 j = j0; j < j1; j += NR)
    for (i64 i = i0; i < i1; i += MR)
      store_tile(x->p, i, j, x->sum + ((j - j0) / NR * ntile + (i - i0) / MR) * MR * NR);
}

static i64 round_up(i64 n, i64 to) { return (n + to - 1) / to * to; }

void ker_product(arena *scratch, const ker_product_of *p) {
  arena_mark_t mark = arena_mark(scratch);
  product x = {.p = p};
  const i64 m = p->a.nrow, n = p->b.nrow, k = p->a.ncol, kk = MAX(k, 1);
  const i64 mc = MIN(MAX(MIN(PACK_ROWS, PACK_A / kk / MR * MR), MR), round_up(m, MR)),
            nc = MIN(MAX(PACK_B / kk / NR, 1) * NR, round_up(n, NR));
  const bool keep = n > nc && round_up(m, MR) * kk <= PACK_A; // of all columns
  x.pa = NEWN(scratch, double, (keep ? round_up(m, MR) : mc) * kk);
  x.pb = NEWN(scratch, double, nc *kk);
  x.sum = NEWN(scratch, double, mc *nc);
  for (i64 j0 = 0; j0 < n; j0 += nc) {
    const i64 j1 = MIN(j0 + nc, n);
    pack(x.pb, p->t, &p->b, j0, j1, NR);
    for (i64 i0 = 0; i0 < m; i0 += mc) {
      const i64 i1 = MIN(i0 + mc, m);
      double *pa = x.pa + (keep ? i0 * k : 0);
      if (!keep || !j0) pack(pa, p->t, &p->a, i0, i1, MR);
      multiply_block(&x, pa, i0, i1, j0, j1);
    }
  }
  arena_release(scratch, mark);
}

void ker_product_i64(arena *scratch, const ker_product_of *p) {
  arena_mark_t mark = arena_mark(scratch);
  const ker_table *a = &p->a, *b = &p->b;
  const size_t bytes = dtype_bytes(p->t);
  i64 *c = p->c, k = a->ncol, *x = NEWN(scratch, i64, k), *y = NEWN(scratch, i64, k * b->nrow);
  for (i64 j = 0; j < b->nrow; j++)
    for (i64 q = 0; q < k; q++)
      ker_load_i64(&y[j * k + q], p->t, (const char *)b->data + (size_t)(b->row[j] + b->col[q]) * bytes, 1);
  for (i64 i = 0; i < a->nrow; i++) {
    for (i64 q = 0; q < k; q++)
      ker_load_i64(&x[q], p->t, (const char *)a->data + (size_t)(a->row[i] + a->col[q]) * bytes, 1);
    for (i64 j = 0; j < b->nrow; j++) {
      u64 sum = p->add ? (u64)c[p->cm[i] + p->cn[j]] : 0;
      for (i64 q = 0; q < k; q++) sum += (u64)x[q] * (u64)y[j * k + q];
      c[p->cm[i] + p->cn[j]] = (i64)sum;
    }
  }
  arena_release(scratch, mark);
}

// A multiple of the tile, so that no thread has a part of one.
i64 ker_product_cut(i64 n, bool rows, u32 part, u32 cuts) {
  const i64 tile = rows ? MR : NR;
  return part == cuts ? n : n / tile * part / cuts * tile;
}
