// test_op.c - laws of single applications, what is refused and how, and the table itself.
//
// A law is written as one text: letters by number (a = letter 0), capital = WHOLE, [v] = ADDRESSED, (ab)
// factors, 1 = no letter, then the result shapes: "ab,bc->ac : f32[2,4]".
#include "op/op.h"
#include "test.h"
#include <stdlib.h>

static ctx *c;
static arena *a;

#define INT(k, v)  ((attr){.key = A_##k, .kind = AK_INT, .u.i = (v)})
#define NUM(k, v)  ((attr){.key = A_##k, .kind = AK_FLOAT, .u.f = (v)})
#define WORD(k, v) ((attr){.key = A_##k, .kind = AK_STR, .u.s = sym_of(c, v)})
#define TYPE(v)    ((attr){.key = A_dtype, .kind = AK_DTYPE, .u.t = (v)})
#define DATA(v)    ((attr){.key = A_data, .kind = AK_DATA, .u.data = (v)})
#define LIST(k, ...)                                                                                         \
  ((attr){                                                                                                   \
      .key = A_##k, .kind = AK_INTS, .n = COUNT_OF(((i64[]){__VA_ARGS__})), .u.ints = (i64[]){__VA_ARGS__}})
#define NUMS(k, ...)                                                                                         \
  ((attr){.key = A_##k,                                                                                      \
          .kind = AK_FLOATS,                                                                                 \
          .n = COUNT_OF(((double[]){__VA_ARGS__})),                                                          \
          .u.floats = (double[]){__VA_ARGS__}})
#define NONE ((attr){0})
// LAW_IS(matmul, "2,3 3,4", NONE, "ab,bc->ac : f32[2,4]"): operand shapes are f32 unless they say "i64:2,3".
#define AT(...)                      (attr[]){__VA_ARGS__}, COUNT_OF(((attr[]){__VA_ARGS__}))
#define LAW_IS(op, shapes, at, want) CHECK_STR(apply(OP_##op, shapes, at), want)

static void begin(void) {
  c = ctx_new();
  a = ctx_arena(c);
}
static void end(void) { ctx_free(c); }

static u32 shapes_of(const char *text, shape *out) {
  u32 n = 0;
  while (*text) {
    shape *s = &out[n++];
    *s = (shape){.t = DT_F32};
    size_t len = strcspn(text, ": ");
    if (text[len] == ':') s->t = dtype_find(text, len), text += len + 1;
    while (*text && *text != ' ') {
      if (*text == ',' || *text == '.')
        text++; // "." is a scalar
      else
        s->dim[s->nd++] = strtoll(text, (char **)&text, 10);
    }
    text += strspn(text, " ");
  }
  return n;
}

static void put_term(strbuf *b, const law *l, const law_term *t) {
  for (u32 d = 0; d < t->nd; d++) {
    const law_dim *x = &t->dim[d];
    if (x->n == 0) sb_char(b, '1');
    if (x->n > 1) sb_char(b, '(');
    for (u32 i = 0; i < x->n; i++) {
      u8 flags = l->letter[x->f[i]].flags;
      sb_fmt(b, flags & LAW_ADDRESSED ? "[%c]" : "%c", (flags & LAW_WHOLE ? 'A' : 'a') + x->f[i]);
    }
    if (x->n > 1) sb_char(b, ')');
  }
}

static const law *law_for(opcode op, const char *shapes, const attr *at, u32 nat, shape *opd, shape *res,
                          u32 *nres) {
  attr sorted[16];
  u32 n = 0;
  for (u32 i = 0; i < nat; i++) {
    if (at[i].key == A_NONE) continue;
    u32 to = n++;
    for (; to > 0 && sorted[to - 1].key > at[i].key; to--) sorted[to] = sorted[to - 1];
    sorted[to] = at[i];
  }
  attrs as = {n, arena_dup(a, sorted, n * sizeof *sorted)};
  u32 nopd = shapes_of(shapes, opd);
  *nres = 0;
  return op_law(c, a, op, as, nopd, opd, nres, res, (loc){0});
}

// The law and the results as text, or the message of the first diagnostic and its hint.
static const char *apply(opcode op, const char *shapes, const attr *at, u32 nat) {
  shape opd[16], res[OP_RES_MAX];
  u32 nres;
  diag_clear(c);
  const law *l = law_for(op, shapes, at, nat, opd, res, &nres);
  strbuf b = {.a = a};
  if (!l) {
    CHECK(diag_count(c) == 1);
    sb_fmt(&b, "%s %s", diag_row_of(diag_get(c, 0).id)->code, diag_get(c, 0).message);
    return sb_str(&b);
  }
  CHECK(diag_count(c) == 0);
  for (u32 k = 0; k < l->nopd; k++) {
    if (k) sb_char(&b, ',');
    put_term(&b, l, &l->opd[k]);
  }
  sb_put(&b, "->");
  for (u32 r = 0; r < l->nres; r++) {
    if (r) sb_char(&b, ',');
    put_term(&b, l, &l->res[r]);
  }
  sb_put(&b, " :");
  for (u32 r = 0; r < nres; r++) {
    sb_fmt(&b, " %s[", dtype_name(res[r].t));
    for (u32 d = 0; d < res[r].nd; d++) sb_fmt(&b, d ? ",%lld" : "%lld", (long long)res[r].dim[d]);
    sb_char(&b, ']');
  }
  return sb_str(&b);
}

TEST(op_elementwise) {
  begin();
  LAW_IS(relu, "4,5", AT(NONE), "ab->ab : f32[4,5]");
  LAW_IS(add, "2,3,4 3,4", AT(NONE), "abc,bc->abc : f32[2,3,4]");
  LAW_IS(add, "2,1,4 3,1", AT(NONE), "a1c,b1->abc : f32[2,3,4]");
  LAW_IS(mul, ". 7", AT(NONE), ",a->a : f32[7]");
  LAW_IS(eq, "f16:2 f16:2", AT(NONE), "a,a->a : bool[2]");
  LAW_IS(where, "bool:2,1 i64:3 i64:2,3", AT(NONE), "a1,b,ab->ab : i64[2,3]");
  LAW_IS(cast, "f16:3", AT(TYPE(DT_I32)), "a->a : i32[3]");
  LAW_IS(dropout, "8,8", AT(NUM(ratio, 0.1)), "ab->ab,ab : f32[8,8] bool[8,8]");
  LAW_IS(add, "0,3 1,3", AT(NONE), "ab,1b->ab : f32[0,3]");
  LAW_IS(trilu, "2,3,4", AT(INT(upper, 0)), "abc->abc : f32[2,3,4]");
  LAW_IS(adam, "f16:4 f16:4 4 4", AT(NONE), "a,a,a,a->a,a,a : f16[4] f32[4] f32[4]");
  LAW_IS(send, "i32:4,1", AT(NONE), "a1->a1 : i32[4,1]");
  LAW_IS(all_reduce, "4 2,3", AT((attr){.key = A_over, .kind = AK_AXES}), "a,bc->a,bc : f32[4] f32[2,3]");

  LAW_IS(add, "2,3 4,3", AT(NONE),
         "E0301 add: dimension 2 counted from the last: 2 in operand 1 against 4 in operand 2");
  LAW_IS(sgd, "2,3 1,3", AT(NONE), "E0301 sgd: dimension 0 of operand 1 is 2, dimension 0 of operand 2 is 1");
  LAW_IS(add, "2,3 i64:3", AT(NONE), "E0302 add: operand 1 is f32, operand 2 is i64");
  LAW_IS(exp, "i64:3", AT(NONE), "E0302 exp: operand 1 is i64, a float is needed");
  LAW_IS(where, "2 2 2", AT(NONE), "E0302 where: operand 1 is f32, bool is needed");
  LAW_IS(add, "2", AT(NONE), "E0402 add: 1 operands, 2 are needed");
  LAW_IS(cast, "2", AT(NONE), "E0401 cast: the attribute dtype is missing (element type of the result)");
  LAW_IS(relu, "2", AT(INT(axis, 0)), "E0401 relu: there is no attribute axis");
  LAW_IS(scale, "2", AT(INT(alpha, 2)), "E0401 scale: alpha must be a number, not an integer");
  LAW_IS(trilu, "4", AT(NONE), "E0301 trilu: operand 1 has 1 dimensions, at least 2 are needed");
  end();
}

TEST(op_products) {
  begin();
  LAW_IS(matmul, "2,3 3,4", AT(NONE), "ab,bc->ac : f32[2,4]");
  LAW_IS(matmul, "5,2,3 3,4", AT(NONE), "abc,cd->abd : f32[5,2,4]");
  LAW_IS(matmul, "5,1,2,3 6,3,4", AT(NONE), "a1cd,bde->abce : f32[5,6,2,4]");
  LAW_IS(matmul, "3 3", AT(NONE), "a,a-> : f32[]");
  LAW_IS(matmul, "3 2,3,4", AT(NONE), "b,abc->ac : f32[2,4]");
  LAW_IS(matmul, "2,4,3 3", AT(NONE), "abc,c->ab : f32[2,4]");
  LAW_IS(matmul, "1,3 3,4", AT(NONE), "1a,ab->1b : f32[1,4]");
  LAW_IS(einsum, "2,3,4 4,5", AT(WORD(law, "bsk,kn->bsn")), "abc,cd->abd : f32[2,3,5]");
  LAW_IS(einsum, "2,3 3,2", AT(WORD(law, "ij,ji->")), "ab,ba-> : f32[]");

  LAW_IS(matmul, "2,3 4,3", AT(NONE), "E0301 matmul: inner extents differ: 3 against 4");
  LAW_IS(matmul, "2,3,4 3,4,5", AT(NONE),
         "E0301 matmul: batch extents differ: 2 in dimension 0 of operand 1 against 3 in dimension 0 of "
         "operand 2");
  LAW_IS(matmul, ". 3", AT(NONE), "E0301 matmul: operand 1 has 0 dimensions, at least 1 are needed");
  LAW_IS(einsum, "2,3 4,5", AT(WORD(law, "ij,jk->ik")), "E0301 einsum: extents of j differ: 3 against 4");
  LAW_IS(einsum, "2,3 4,5", AT(WORD(law, "ij,kl->im")),
         "E0401 einsum: law: m of the result is in no operand");
  LAW_IS(einsum, "2,2 4,5", AT(WORD(law, "ii,kl->i")), "E0401 einsum: law: i occurs twice in one term");
  LAW_IS(einsum, "2,2 4,5", AT(WORD(law, "ij,kl")),
         "E0401 einsum: law: two terms, an arrow and the result are needed, as in \"mk,kn->mn\"");
  LAW_IS(einsum, "2,2 4,5", AT(WORD(law, "i,kl->i")), "E0301 einsum: operand 1 has 2 dimensions, not 1");
  end();
}

TEST(op_reductions) {
  begin();
  LAW_IS(reduce_sum, "2,3,4", AT(LIST(axes, 1)), "abc->a1c : f32[2,1,4]");
  LAW_IS(reduce_max, "2,3,4", AT(LIST(axes, -1, 0), INT(keepdims, 0)), "abc->b : f32[3]");
  LAW_IS(reduce_sum, "2,3", AT(INT(keepdims, 0)), "ab-> : f32[]");
  LAW_IS(argmax, "2,3", AT(INT(axis, 1)), "aB->a1 : i64[2,1]");
  LAW_IS(softmax, "2,3", AT(NONE), "aB->aB : f32[2,3]");
  LAW_IS(cumsum, "2,3", AT(INT(axis, 0)), "Ab->Ab : f32[2,3]");
  LAW_IS(topk, "2,9", AT(INT(k, 4)), "aB->aC,aC : f32[2,4] i64[2,4]");
  LAW_IS(softmax_dx, "2,3 2,3", AT(INT(axis, 0)), "Ab,Ab->Ab : f32[2,3]");

  LAW_IS(reduce_sum, "2,3", AT(LIST(axes, 2)), "E0401 reduce_sum: axes: 2 is outside the 2 dimensions");
  LAW_IS(reduce_sum, "2,3", AT(LIST(axes, 1, -1)), "E0401 reduce_sum: axes: dimension 1 occurs twice");
  LAW_IS(topk, "2,3", AT(INT(k, 4)), "E0401 topk: k is 4, dimension 1 has 3 elements");
  LAW_IS(softmax, "2,3", AT(INT(axis, 5)), "E0401 softmax: axis 5 is outside the 2 dimensions");
  end();
}

TEST(op_reshape) {
  begin();
  LAW_IS(reshape, "4,5,3072", AT(LIST(shape, 4, 5, 3, 16, 64)), "ab(cde)->abcde : f32[4,5,3,16,64]");
  LAW_IS(reshape, "4,16,5,64", AT(LIST(shape, 4, 16, 320)), "abcd->ab(cd) : f32[4,16,320]");
  LAW_IS(reshape, "12,4", AT(LIST(shape, 6, 8)), "(ab)c->a(bc) : f32[6,8]");
  LAW_IS(reshape, "6,4", AT(LIST(shape, 4, 6)), "AB->CD : f32[4,6]");
  LAW_IS(reshape, "8,6,4", AT(LIST(shape, 4, 8, 6)), "(ab)CD->a(bE)F : f32[4,8,6]");
  LAW_IS(reshape, "7,1,6,4", AT(LIST(shape, 1, 7, 4, 6, 1)), "a1BC->1aDE1 : f32[1,7,4,6,1]");
  LAW_IS(reshape, "1,1", AT(LIST(shape, 1)), "11->1 : f32[1]");
  LAW_IS(reshape, ".", AT(LIST(shape, 1, 1)), "->11 : f32[1,1]");
  LAW_IS(reshape, "0,3", AT(LIST(shape, 3, 0, 2)), "AB->CDE : f32[3,0,2]");
  LAW_IS(reshape, "2,2,2,2,2,2,2,2", AT(LIST(shape, 256)), "ABCDEFGH->I : f32[256]");
  LAW_IS(reshape, "2,2,2,2,2,2,2", AT(LIST(shape, 128)), "abcdefg->(abcdefg) : f32[128]");

  LAW_IS(reshape, "2,3", AT(LIST(shape, 4, 2)), "E0301 reshape: 6 elements do not become 8");
  LAW_IS(reshape, "2,3", AT(LIST(shape, -1, 2)),
         "E0401 reshape: shape: extent -1 of dimension 0 is negative");
  end();
}

TEST(op_form) {
  begin();
  LAW_IS(transpose, "2,3,4", AT(LIST(perm, 2, 0, 1)), "abc->cab : f32[4,2,3]");
  LAW_IS(expand, "3,1", AT(LIST(shape, 2, 3, 4)), "b1->abc : f32[2,3,4]");
  LAW_IS(concat, "2,3 2,3", AT(INT(axis, 1)), "ba,ba->b(Ca) : f32[2,6]");
  LAW_IS(concat, "4096,8 1024,8 1024,8", AT(INT(axis, 0)), "(Da)c,ac,ac->(Ba)c : f32[6144,8]");
  LAW_IS(concat, "2,3 2,4", AT(INT(axis, -1)), "aC,aD->aB : f32[2,7]");
  LAW_IS(split, "2,6", AT(INT(axis, 1), LIST(sizes, 3, 3)), "b(Ca)->ba,ba : f32[2,3] f32[2,3]");
  LAW_IS(split, "6", AT(INT(axis, 0), LIST(sizes, 4, 2)), "(Ba)->(Ca),a : f32[4] f32[2]");
  LAW_IS(slice, "12,5", AT(LIST(starts, 4), LIST(ends, 8), LIST(axes, 0)), "(Ba)c->ac : f32[4,5]");
  LAW_IS(slice, "12", AT(LIST(starts, 4), LIST(ends, 12), LIST(axes, 0)), "(Ba)->(Ca) : f32[8]");
  LAW_IS(slice, "12", AT(LIST(starts, 1), LIST(ends, 12), LIST(axes, 0), LIST(steps, 2)), "A->B : f32[6]");
  LAW_IS(slice, "12", AT(LIST(starts, 11), LIST(ends, -1), LIST(axes, 0), LIST(steps, -5)), "A->B : f32[3]");
  LAW_IS(slice, "5,3", AT(LIST(starts, 2), LIST(ends, 3), LIST(axes, 0)), "Ab->1b : f32[1,3]");
  LAW_IS(pad, "2,3", AT(LIST(pads, 0, 1, 0, 2)), "aB->aC : f32[2,6]");
  LAW_IS(tile, "2,3", AT(LIST(sizes, 1, 4)), "ab->a(Cb) : f32[2,12]");
  LAW_IS(depth_to_space, "2,12,5,7", AT(INT(size, 2)), "a(EFb)cd->ab(cE)(dF) : f32[2,3,10,14]");
  LAW_IS(depth_to_space, "2,12,5,7", AT(INT(size, 2), WORD(mode, "CRD")),
         "a(bEF)cd->ab(cE)(dF) : f32[2,3,10,14]");
  LAW_IS(resize, "2,3,4,4", AT(LIST(shape, 2, 3, 8, 4)), "abCe->abDe : f32[2,3,8,4]");
  LAW_IS(constant, "", AT(TYPE(DT_I64), LIST(shape, 3, 1), DATA(1)), "->a1 : i64[3,1]");
  LAW_IS(iota, "", AT(TYPE(DT_I64), LIST(shape, 3), INT(axis, 0)), "->a : i64[3]");

  LAW_IS(transpose, "2,3", AT(LIST(perm, 0, 0)),
         "E0401 transpose: perm: entry 1 is 0; 0 to 1 must occur once each");
  LAW_IS(expand, "3", AT(LIST(shape, 2)), "E0301 expand: dimension 0 is 3 and does not become 2");
  LAW_IS(concat, "2,3 3,3", AT(INT(axis, 1)),
         "E0301 concat: dimension 0 of operand 1 is 2, dimension 0 of operand 2 is 3");
  LAW_IS(split, "7", AT(INT(axis, 0), LIST(sizes, 3, 3)),
         "E0301 split: the parts add up to 6, dimension 0 has 7");
  LAW_IS(slice, "5", AT(LIST(starts, 2), LIST(ends, 9), LIST(axes, 0)),
         "E0401 slice: dimension 0 has 5 elements, the slice is 2 to 9 in steps of 1");
  LAW_IS(pad, "3", AT(LIST(pads, 3, 0), WORD(mode, "reflect")),
         "E0401 pad: dimension 0 has 3 elements and cannot be padded by 3 and 0");
  LAW_IS(pad, "3", AT(LIST(pads, 3, 0), WORD(mode, "mirror")), "E0401 pad: mode is \"mirror\"");
  LAW_IS(tile, "3", AT(LIST(sizes, (i64)1 << 62)),
         "E0401 tile: sizes: dimension 0 is repeated 4611686018427387904 times");
  LAW_IS(full, "", AT(TYPE(DT_F32), LIST(shape, (i64)1 << 40, 1 << 30)),
         "E0901 full: the result has 1.18e+21 elements");
  end();
}

TEST(op_indexing) {
  begin();
  LAW_IS(gather, "50,8 i64:2,3", AT(NONE), "[a]b,cd->cdb : f32[2,3,8]");
  LAW_IS(gather, "4,50,8 i64:.", AT(INT(axis, 1)), "a[b]c,->ac : f32[4,8]");
  LAW_IS(gather_add, "2,3,8 i64:2,3", AT(LIST(shape, 50, 8)), "cdb,cd->[a]b : f32[50,8]");
  LAW_IS(take, "4,50 i64:4,7", AT(INT(axis, 1)), "a[B],ac->ac : f32[4,7]");
  LAW_IS(take, "4,50 i64:3,7", AT(INT(axis, 1)), "A[C],Bd->Bd : f32[3,7]");
  LAW_IS(put, "4,50 i64:4,7 4,7", AT(INT(axis, 1)), "a[B],aC,aC->a[B] : f32[4,50]");
  LAW_IS(gather_nd, "2,5,6,8 i64:2,3,2", AT(INT(batch_dims, 1)), "a[B][C]d,aeF->aed : f32[2,3,8]");
  LAW_IS(scatter_nd, "5,8 i64:3,1 3,8", AT(NONE), "[A]b,C1,Cb->[A]b : f32[5,8]");
  LAW_IS(one_hot, "i64:2,3", AT(INT(size, 9), TYPE(DT_F32)), "ab->abc : f32[2,3,9]");
  LAW_IS(reverse, "5,4,3 i64:4", AT(NONE), "Abc,b->Abc : f32[5,4,3]");

  LAW_IS(gather, "50,8 2,3", AT(NONE), "E0302 gather: operand 2 is f32, an integer is needed");
  LAW_IS(gather_add, "2,3,7 i64:2,3", AT(LIST(shape, 50, 8)),
         "E0301 gather_add: dimension 2 of operand 1 is 7, the others ask for 8");
  LAW_IS(take, "4,50 i64:5,7", AT(INT(axis, 1)),
         "E0301 take: dimension 0 of the indices is 5, of the data 4");
  LAW_IS(gather, "1,2,3,4,5,6,7 i64:1,2,3", AT(NONE),
         "E0901 gather: the result has 9 dimensions, the limit is 8");
  end();
}

TEST(op_layers) {
  begin();
  LAW_IS(conv, "2,3,8,8 16,3,3,3", AT(LIST(pads, 1, 1, 1, 1)), "acDG,bcEH->abFI : f32[2,16,8,8]");
  LAW_IS(conv, "2,12,8,8 16,3,1,1", AT(INT(group, 4)), "a(bd)ef,(bc)d11->a(bc)ef : f32[2,16,8,8]");
  LAW_IS(conv, "2,12,9 12,1,3", AT(INT(group, 12), LIST(strides, 2)), "abC,b1D->abE : f32[2,12,4]");
  LAW_IS(conv_dx, "2,16,4 16,3,3", AT(LIST(shape, 2, 3, 9), LIST(strides, 2)), "abF,bcE->acD : f32[2,3,9]");
  LAW_IS(conv_dw, "2,16,4 2,3,9", AT(LIST(shape, 16, 3, 3), LIST(strides, 2)), "abF,acD->bcE : f32[16,3,3]");
  LAW_IS(maxpool, "2,3,5", AT(LIST(window, 2), LIST(strides, 2)), "abC->abD : f32[2,3,2]");
  LAW_IS(maxpool, "2,3,5", AT(LIST(window, 2), LIST(strides, 2), INT(ceil, 1)), "abC->abD : f32[2,3,3]");
  LAW_IS(avgpool_dx, "2,3,2 2,3,5", AT(LIST(window, 2), LIST(strides, 2)), "abD,abC->abC : f32[2,3,5]");
  LAW_IS(layernorm, "2,3,8 8 8", AT(NONE), "abC,C,C->abC : f32[2,3,8]");
  LAW_IS(rmsnorm, "2,3,8 3,8", AT(INT(axis, 1)), "aBC,BC->aBC : f32[2,3,8]");
  LAW_IS(layernorm_dx, "2,8 2,8 8", AT(NONE), "aB,aB,B->aB : f32[2,8]");
  LAW_IS(layernorm_dg, "2,3,8 2,3,8", AT(NONE), "abC,abC->C : f32[8]");
  LAW_IS(batchnorm, "2,3,5,5 3 3 3 3", AT(NONE), "abcd,b,b,b,b->abcd : f32[2,3,5,5]");
  LAW_IS(batchnorm_train, "2,3,5 3 3", AT(NONE), "AbC,b,b->AbC,b,b : f32[2,3,5] f32[3] f32[3]");
  LAW_IS(batchnorm_dx, "2,3,5 2,3,5 3", AT(NONE), "AbC,AbC,b->AbC,b,b : f32[2,3,5] f32[3] f32[3]");
  LAW_IS(groupnorm, "2,6,5 6 6", AT(INT(groups, 3)), "aBC,B,B->aBC : f32[2,6,5]");
  LAW_IS(groupnorm, "2,6,5 6 6", AT(NONE), "abC,b,b->abC : f32[2,6,5]");
  LAW_IS(cross_entropy, "2,3,50 i64:2,3", AT(NONE), "abC,ab-> : f32[]");
  LAW_IS(cross_entropy, "2,3,50 i64:2,3", AT(WORD(reduce, "none")), "abC,ab->ab : f32[2,3]");
  LAW_IS(cross_entropy, "2,3,50 i64:2,3", AT(INT(ignore, -100)), "ABC,AB-> : f32[]");
  LAW_IS(cross_entropy_dx, ". 2,50 i64:2", AT(NONE), ",aB,a->aB : f32[2,50]");
  LAW_IS(nll, "2,50,3 i64:2,3", AT(WORD(reduce, "sum")), "aBc,ac-> : f32[]");
  LAW_IS(nll, "2,50,3 i64:2,3 50", AT(NONE), "ABC,AC,B-> : f32[]");
  LAW_IS(moe_gate, "4,16,8", AT(INT(k, 2), INT(capacity, 6)), "aBC->aBD,aBD : i64[4,16,2] f32[4,16,2]");
  LAW_IS(moe_dispatch, "4,16,32 i64:4,16,2", AT(INT(experts, 8), INT(capacity, 6)),
         "abc,abD->a[e][F]c : f32[4,8,6,32]");
  LAW_IS(moe_combine, "4,8,6,32 i64:4,16,2 4,16,2", AT(NONE), "a[e][F]c,abD,abD->abc : f32[4,16,32]");
  LAW_IS(moe_combine_dw, "4,16,32 i64:4,16,2 4,8,6,32", AT(NONE), "abc,abD,a[e][F]c->abD : f32[4,16,2]");

  LAW_IS(conv, "2,64,8,8 16,16,3,3", AT(INT(group, 2)),
         "E0301 conv: 64 channels in 2 groups need filters of 32 channels, they have 16");
  LAW_IS(conv, "2,3,2,2 16,3,5,5", AT(NONE),
         "E0301 conv: spatial dimension 0: a window over 5 elements does not fit 2 padded by 0 and 0");
  LAW_IS(conv, "2,3,8 16,3,3", AT(LIST(strides, 0)), "E0401 conv: strides: 0");
  LAW_IS(layernorm, "2,8 8 9", AT(NONE),
         "E0301 layernorm: dimension 0 of operand 3 is 9, the others ask for 8");
  LAW_IS(moe_gate, "4,16,8", AT(INT(k, 9), INT(capacity, 6)), "E0401 moe_gate: k is 9, there are 8 experts");
  end();
}

TEST(op_linearity_of_an_application) {
  begin();
  shape opd[4], res[4];
  u32 n;
#define LIN(op, shapes, at, k) law_lin(law_for(OP_##op, shapes, at, opd, res, &n), k)
  CHECK(LIN(matmul, "2,3 3,4", AT(NONE), 1) == 'e');
  CHECK(LIN(cast, "2", AT(TYPE(DT_F16)), 0) == 'e');
  CHECK(LIN(cast, "2", AT(TYPE(DT_I32)), 0) == '-');
  CHECK(LIN(cast, "i32:2", AT(TYPE(DT_F32)), 0) == 'e');
  CHECK(LIN(cast, "i32:2", AT(TYPE(DT_BOOL)), 0) == '-');
  CHECK(LIN(div, "2 2", AT(NONE), 0) == 'e' && LIN(div, "2 2", AT(NONE), 1) == '-');
  CHECK(LIN(div, "i32:2 i32:2", AT(NONE), 0) == '-');
  CHECK(LIN(pad, "2", AT(LIST(pads, 1, 1)), 0) == 'e');
  CHECK(LIN(pad, "2", AT(LIST(pads, 1, 1), NUM(value, 1)), 0) == '-');
  CHECK(LIN(layernorm, "2,8 8 8", AT(NONE), 0) == '-' && LIN(layernorm, "2,8 8 8", AT(NONE), 1) == 'j');
  end();
}

TEST(op_flops) {
  begin();
  shape opd[4], res[4];
  u32 n;
#define FLOPS(op, shapes, at) op_flops(OP_##op, (attrs){0}, law_for(OP_##op, shapes, at, opd, res, &n))
  CHECK(FLOPS(matmul, "5,2,3 3,4", AT(NONE)) == 2.0 * 5 * 2 * 3 * 4);
  CHECK(FLOPS(conv, "2,3,8,8 16,3,3,3", AT(LIST(pads, 1, 1, 1, 1))) == 2.0 * 2 * 16 * 3 * 64 * 9);
  CHECK(FLOPS(conv_dx, "2,16,8,8 16,3,3,3", AT(LIST(pads, 1, 1, 1, 1), LIST(shape, 2, 3, 8, 8))) ==
        2.0 * 2 * 16 * 3 * 64 * 9);
  CHECK(FLOPS(maxpool, "2,3,8", AT(LIST(window, 2), LIST(strides, 2))) == 2.0 * 3 * 4 * 2);
  CHECK(FLOPS(gather, "50,8 i64:2,3", AT(NONE)) == 0);
  CHECK(FLOPS(gather_add, "2,3,8 i64:2,3", AT(LIST(shape, 50, 8))) == 2.0 * 3 * 8);
  CHECK(FLOPS(topk, "2,9", AT(INT(k, 4))) == 8.0 * 2 * 9);
  CHECK(FLOPS(reduce_sum, "2,9", AT(NONE)) == 2.0 * 9);
  end();
}

TEST(op_table) {
  for (opcode op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *r = op_row_of(op);
    CHECK_MSG(op_find(r->name, strlen(r->name)) == op, "%s is found by its name", r->name);
    CHECK_MSG(r->opd_max == 255 || strlen(r->lin) <= r->opd_max, "%s: marks and operands", r->name);
    CHECK_MSG(!(r->flags & OPF_COMM) || coll_find(op) || op == OP_copy, "%s has a row of communication",
              r->name);
  }
  CHECK(op_find("matmu", 5) == OP_none && op_find("matmul2", 7) == OP_none &&
        op_find("matmul2", 6) == OP_matmul);
  for (attr_key k = A_NONE + 1; k < A_COUNT; k++) CHECK(attr_find(attr_name(k), strlen(attr_name(k))) == k);
  CHECK(attr_find("axi", 3) == A_NONE && attr_find("", 0) == A_NONE);
  CHECK(dtype_find("bf16", 4) == DT_BF16 && dtype_find("bf1", 3) == DT_NONE && dtype_bytes(DT_BF16) == 2);
}

TEST(op_docs) {
  begin();
  strbuf b = {.a = a};
  static const opcode some[] = {OP_add,        OP_matmul,     OP_gather, OP_layernorm, OP_resize,
                                OP_reduce_max, OP_all_reduce, OP_split,  OP_call};
  for (u32 i = 0; i < COUNT_OF(some); i++) op_doc(some[i], &b), sb_put(&b, "\n");
  CHECK_GOLDEN("op/doc.txt", sb_str(&b));
  for (opcode op = OP_none + 1; op < OP_COUNT; op++) op_doc(op, &b);
  end();
}
