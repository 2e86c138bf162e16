// contract.c - sums of products of two tensors: matmul, einsum, and all of convolution.
//
// Idea: the address of an element is a sum over letters, so any such sum of products is a matrix product
// whose rows, columns and inner index are products of letters. Letters of both operands and the result are a batch.
// Where there is a BLAS it multiplies (matrices.c), else Heddle's own loops do, through tables of offsets (product.c).
// A thread has rows or columns of the result to itself.
#include "kernel/internal.h"

enum { ALONE = 1 << 22 }; // products of so many elements are not worth a thread

// Offsets, in one tensor, of all combinations of the letters that occur in exactly `in`, the last one
// fastest.
i64 *ker_offsets(arena *scratch, const contraction *k, u8 in, int from, i64 *count) {
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
  ker_product_of whole; // of the first of the batch
  const i64 *ba, *bb, *bc;
  u32 cuts;     // parts of each matrix of the batch ...
  bool rows;    // ... by rows, else by columns
  arena **temp; // by thread
} products;

static void one_part(void *arg, u32 i, int thread) {
  const products *x = arg;
  const contraction *k = x->k;
  const u32 batch = i / x->cuts, part = i % x->cuts;
  const i64 bytes = dtype_bytes(k->t), result = dtype_bytes(k->to);
  ker_product_of p = x->whole;
  ker_table *t = x->rows ? &p.a : &p.b;
  const i64 from = ker_product_cut(t->nrow, x->rows, part, x->cuts),
            end = ker_product_cut(t->nrow, x->rows, part + 1, x->cuts);
  t->row += from, t->nrow = end - from;
  *(x->rows ? &p.cm : &p.cn) += from;
  if (!p.a.nrow || !p.b.nrow) return;
  p.a.data = (const char *)p.a.data + x->ba[batch] * bytes;
  p.b.data = (const char *)p.b.data + x->bb[batch] * bytes;
  p.c = (char *)p.c + x->bc[batch] * result;
  if (dtype_kind_of(k->t) == DK_FLOAT)
    ker_product(x->temp[thread], &p);
  else
    ker_product_i64(x->temp[thread], &p);
}

static void all_parts(run *r, products *x, i64 nbatch) {
  const i64 m = x->whole.a.nrow, n = x->whole.b.nrow;
  const double work = (double)nbatch * (double)m * (double)n * (double)x->whole.a.ncol;
  const int threads = work < ALONE ? 1 : MAX(r->threads, 1);
  x->cuts = nbatch < 4 * threads ? (u32)threads : 1;
  x->rows = m >= n;
  x->temp = ker_scratches(r, threads);
  assert(nbatch * x->cuts <= INT32_MAX);
  parallel_for(threads, (u32)nbatch * x->cuts, one_part, x);
  ker_scratches_free(r, x->temp, threads);
}

static void contract_by_tables(run *r, const contraction *k) {
  products x = {.k = k, .whole = {.t = k->t, .to = k->to, .c = k->c, .add = k->add}};
  ker_product_of *p = &x.whole;
  i64 nbatch;
  p->a.data = k->a, p->b.data = k->b;
  x.ba = ker_offsets(r->a, k, IN_A | IN_B | IN_C, FROM_A, &nbatch);
  x.bb = ker_offsets(r->a, k, IN_A | IN_B | IN_C, FROM_B, &nbatch);
  x.bc = ker_offsets(r->a, k, IN_A | IN_B | IN_C, FROM_C, &nbatch);
  p->cm = ker_offsets(r->a, k, IN_A | IN_C, FROM_C, &p->a.nrow);
  p->cn = ker_offsets(r->a, k, IN_B | IN_C, FROM_C, &p->b.nrow);
  p->a.row = ker_offsets(r->a, k, IN_A | IN_C, FROM_A, &p->a.nrow);
  p->b.row = ker_offsets(r->a, k, IN_B | IN_C, FROM_B, &p->b.nrow);
  p->a.col = ker_offsets(r->a, k, IN_A | IN_B, FROM_A, &p->a.ncol);
  p->b.col = ker_offsets(r->a, k, IN_A | IN_B, FROM_B, &p->b.ncol);
  all_parts(r, &x, nbatch);
}

void ker_contract(run *r, const contraction *k) {
  contraction s = *k;
  for (u32 i = 0; i < s.n; i++) { // letters of one operand alone are inner ones that the other ignores
    letter *l = &s.l[i];
    if (l->in == IN_A)
      *l = (letter){l->n, l->a, 0, 0, IN_A | IN_B};
    else if (l->in == IN_B)
      *l = (letter){l->n, 0, l->b, 0, IN_A | IN_B};
  }
  arena_mark_t mark = arena_mark(r->a);
  if (!ker_contract_by_blas(r, &s)) contract_by_tables(r, &s);
  arena_release(r->a, mark);
}

// ---- operators -----------------------------------------------------------------------------------------

// numpy's matmul: one-dimensional operands are a row and a column, leading dimensions are broadcast.
bool ker_matmul(run *r) {
  const ker_tensor *a = &r->opd[0], *b = &r->opd[1], *c = &r->res[0];
  contraction k = {.t = a->t, .to = ker_result(r), .a = a->data, .b = b->data, .c = c->data};
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
  contraction k = {
      .t = r->opd[0].t, .to = ker_result(r), .a = r->opd[0].data, .b = r->opd[1].data, .c = r->res[0].data};
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
