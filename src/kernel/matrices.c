// matrices.c - a sum of products as a batch of matrix products for a BLAS.
//
// Idea: letters that follow each other in all tensors merge; of what is left one letter is rows, one columns, and the
// others are a batch. An operand that a BLAS cannot address by strides is packed first, once. Large products are cut
// by their extents alone, so that no result depends on the threads.
#include "kernel/internal.h"

// A part has at least PART multiplications and EDGE rows or columns: less is not worth packing the other operand again.
// Rows or columns in several letters are a batch only if matrices are not SHORT.
enum { PART = 1 << 27, EDGE = 512, PARTS_MAX = 16, SHORT = 16, ALONE = 1 << 20 };

typedef struct {
  u32 n;
  letter l[LETTERS_MAX];
} letters;

static i64 *stride_in(letter *l, int tensor) {
  return tensor == FROM_A ? &l->a : tensor == FROM_B ? &l->b : &l->c;
}

// The letters of exactly `in`, larger strides first (in the result; inner ones in a), merged where they follow each other.
static letters merged(const contraction *k, u8 in) {
  letters s = {0}, m = {0};
  for (u32 i = 0; i < k->n; i++) {
    if (k->l[i].in != in || k->l[i].n == 1) continue;
    u32 at = s.n++;
    for (; at && (in & IN_C ? s.l[at - 1].c < k->l[i].c : s.l[at - 1].a < k->l[i].a); at--)
      s.l[at] = s.l[at - 1];
    s.l[at] = k->l[i];
  }
  for (u32 i = 0; i < s.n; i++) {
    const letter *y = &s.l[i];
    letter *x = m.n ? &m.l[m.n - 1] : NULL;
    if (x && (!(in & IN_A) || x->a == y->a * y->n) && (!(in & IN_B) || x->b == y->b * y->n) &&
        (!(in & IN_C) || x->c == y->c * y->n))
      *x = (letter){x->n * y->n, y->a, y->b, y->c, in};
    else
      m.l[m.n++] = *y;
  }
  return m;
}

typedef struct {
  contraction k; // its letters: the batch
  letter m, n;   // absent: extent 1
  letters inner;
} matrices;

// Takes rows or columns out; all but the innermost are a batch along which the other operand does not vary.
static bool take_letter(matrices *x, const contraction *k, u8 in, letter *out) {
  const letters s = merged(k, in);
  *out = s.n ? s.l[s.n - 1] : (letter){.n = 1, .in = in};
  if (s.n > 1 && out->n < SHORT) return false;
  for (u32 i = 0; i + 1 < s.n; i++) {
    x->k.l[x->k.n] = s.l[i];
    x->k.l[x->k.n++].in = IN_A | IN_B | IN_C;
  }
  return true;
}

static bool split_letters(matrices *x, const contraction *k) {
  const letters all = merged(k, IN_A | IN_B | IN_C);
  x->k = *k;
  x->k.n = all.n;
  memcpy(x->k.l, all.l, sizeof all.l);
  x->inner = merged(k, IN_A | IN_B);
  if (!take_letter(x, k, IN_A | IN_C, &x->m) || !take_letter(x, k, IN_B | IN_C, &x->n)) return false;
  return x->k.n + x->inner.n + 2 <= WALK_DIMS;
}

// The other way round: the result's rows are columns.
static void exchange(contraction *k) {
  const void *a = k->a;
  k->a = k->b, k->b = a;
  for (u32 i = 0; i < k->n; i++) {
    letter *l = &k->l[i];
    const i64 stride = l->a;
    const bool in_a = l->in & IN_A, in_b = l->in & IN_B;
    l->a = l->b, l->b = stride;
    l->in = (u8)((l->in & IN_C) | (in_a ? IN_B : 0) | (in_b ? IN_A : 0));
  }
}

// ---- packing ---------------------------------------------------------------------------------------------

// An operand's elements next to each other, as the result's type: batch, rows or columns, inner index. Strides follow.
static const void *packed(run *r, matrices *x, int tensor) {
  letter *l[WALK_DIMS];
  i64 extent[WALK_DIMS], from[WALK_DIMS], to[WALK_DIMS], count = 1;
  u32 nd = 0, n = 0;
  for (u32 i = 0; i < x->k.n; i++) l[n++] = &x->k.l[i];
  l[n++] = tensor == FROM_A ? &x->m : &x->n;
  for (u32 i = 0; i < x->inner.n; i++) l[n++] = &x->inner.l[i];
  for (u32 i = 0; i < n; i++) // what the operand does not vary along stays so, but for the inner index
    if (*stride_in(l[i], tensor) || i >= x->k.n)
      extent[nd] = l[i]->n, from[nd] = *stride_in(l[i], tensor), l[nd++] = l[i];
  for (u32 d = nd; d-- > 0; count *= extent[d]) to[d] = count;
  for (u32 d = 0; d < nd; d++) *stride_in(l[d], tensor) = to[d];
  walk w;
  ker_walk_init(&w, nd, extent);
  ker_walk_add(&w, to);
  ker_walk_add(&w, from);
  const size_t bytes = dtype_bytes(x->k.t);
  void *y = arena_alloc(r->a, (size_t)count * bytes);
  ker_walk_copy(&w, bytes, y, tensor == FROM_A ? x->k.a : x->k.b);
  if (x->k.t == x->k.to) return y;
  double *wide = NEWN(r->a, double, count);
  ker_load_f64(wide, x->k.t, y, count);
  return wide;
}

static bool must_pack(const matrices *x, int tensor) {
  const letter *e = tensor == FROM_A ? &x->m : &x->n, *p = &x->inner.l[0];
  if (x->k.t != x->k.to || x->inner.n > 1) return true;
  const i64 deep = x->inner.n ? p->n : 1, along = tensor == FROM_A ? p->a : p->b;
  return !ker_blas_takes(e->n, deep, tensor == FROM_A ? e->a : e->b, x->inner.n ? along : 1);
}

// ---- parts -----------------------------------------------------------------------------------------------
typedef struct {
  dtype t;
  matrix_product p; // of the first of the batch
  i64 nbatch, *ba, *bb, *bc;
  u32 cuts;  // parts of each of the batch ...
  bool rows; // ... by rows, else by columns
} batch;

static void one_part(void *arg, u32 i, int thread) {
  (void)thread;
  const batch *x = arg;
  matrix_product p = x->p;
  const u32 at = i / x->cuts, part = i % x->cuts;
  const i64 bytes = dtype_bytes(x->t), n = x->rows ? p.m : p.n, from = n * part / x->cuts;
  *(x->rows ? &p.m : &p.n) = n * (part + 1) / x->cuts - from;
  p.a = (const char *)p.a + (x->ba[at] + (x->rows ? from * p.a_row : 0)) * bytes;
  p.b = (const char *)p.b + (x->bb[at] + (x->rows ? 0 : from * p.b_col)) * bytes;
  p.c = (char *)p.c + (x->bc[at] + from * (x->rows ? p.c_row : 1)) * bytes;
  ker_blas_product(x->t, &p);
}

static void all_parts(const run *r, batch *x) {
  const double each = (double)x->p.m * (double)x->p.n * (double)x->p.k;
  const i64 longer = MAX(x->p.m, x->p.n);
  x->rows = x->p.m > x->p.n;
  x->cuts = 1;
  while (x->nbatch * x->cuts < PARTS_MAX && each >= 2.0 * PART * x->cuts && longer >= (i64)2 * EDGE * x->cuts)
    x->cuts *= 2;
  assert(x->nbatch * x->cuts <= INT32_MAX);
  parallel_for(each * (double)x->nbatch < ALONE ? 1 : r->threads, (u32)x->nbatch * x->cuts, one_part, x);
}

// Bytes that packing takes; *along: the first letter of the batch along which all that is packed varies; none: x->k.n.
static i64 packing_bytes(const matrices *x, u32 *along) {
  const i64 each = dtype_bytes(x->k.t) + (x->k.t == x->k.to ? 0 : (i64)sizeof(double));
  i64 bytes = 0;
  *along = 0;
  for (int t = FROM_A; t <= FROM_B; t++) {
    if (!must_pack(x, t)) continue;
    i64 n = t == FROM_A ? x->m.n : x->n.n;
    for (u32 i = 0; i < x->inner.n; i++) n *= x->inner.l[i].n;
    for (u32 i = 0; i < x->k.n; i++)
      n *= t == FROM_A ? (x->k.l[i].a ? x->k.l[i].n : 1) : (x->k.l[i].b ? x->k.l[i].n : 1);
    bytes += n * each;
    while (*along < x->k.n && !(t == FROM_A ? x->k.l[*along].a : x->k.l[*along].b)) ++*along;
  }
  return bytes;
}

// As many of the batch at a time as can be packed in little memory. False: that cannot be, and nothing is done.
static bool in_turns(run *r, const matrices *x) {
  enum { PACKED = 2 << 20 };
  u32 along;
  const i64 bytes = packing_bytes(x, &along);
  if (bytes <= PACKED || along == x->k.n || x->k.n + x->inner.n + 2 > LETTERS_MAX) return false;
  contraction s = x->k;
  s.l[s.n++] = x->m, s.l[s.n++] = x->n;
  for (u32 i = 0; i < x->inner.n; i++) s.l[s.n++] = x->inner.l[i];
  const letter l = s.l[along];
  const i64 some = MAX(l.n * PACKED / bytes, 1), in = dtype_bytes(s.t), out = dtype_bytes(s.to);
  for (i64 from = 0; from < l.n; from += some) {
    const arena_mark_t mark = arena_mark(r->a);
    s.l[along].n = MIN(some, l.n - from);
    s.a = (const char *)x->k.a + from * l.a * in, s.b = (const char *)x->k.b + from * l.b * in;
    s.c = (char *)x->k.c + from * l.c * out;
    ker_contract(r, &s);
    arena_release(r->a, mark);
  }
  return true;
}

bool ker_contract_by_blas(run *r, const contraction *given) {
  contraction k = *given;
  matrices x;
  if (!ker_has_blas(k.to)) return false;
  for (u32 i = 0; i < k.n; i++)
    if (!k.l[i].n) return false;
  if (!split_letters(&x, &k)) return false;
  if (x.n.n > 1 && x.n.c != 1) {
    exchange(&k);
    if (!split_letters(&x, &k)) return false;
  }
  if ((x.n.n > 1 && x.n.c != 1) || (x.m.n > 1 && x.m.c < x.n.n) || MAX(x.m.c, x.n.n) > INT32_MAX)
    return false;
  if (in_turns(r, &x)) return true;
  for (int t = FROM_A; t <= FROM_B; t++)
    if (must_pack(&x, t)) *(t == FROM_A ? &x.k.a : &x.k.b) = packed(r, &x, t);
  letter p = {.n = 1, .a = 1, .b = 1};
  if (x.inner.n) p = x.inner.l[x.inner.n - 1];
  for (u32 i = 0; i + 1 < x.inner.n; i++) p.n *= x.inner.l[i].n;
  batch b = {.t = k.to, .p = {.m = x.m.n, .n = x.n.n, .k = p.n, .a = x.k.a, .b = x.k.b, .c = x.k.c}};
  b.p.a_row = x.m.a, b.p.a_col = p.a, b.p.b_row = p.b, b.p.b_col = x.n.b, b.p.c_row = x.m.c, b.p.add = k.add;
  b.ba = ker_offsets(r->a, &x.k, IN_A | IN_B | IN_C, FROM_A, &b.nbatch);
  b.bb = ker_offsets(r->a, &x.k, IN_A | IN_B | IN_C, FROM_B, &b.nbatch);
  b.bc = ker_offsets(r->a, &x.k, IN_A | IN_B | IN_C, FROM_C, &b.nbatch);
  all_parts(r, &b);
  return true;
}
