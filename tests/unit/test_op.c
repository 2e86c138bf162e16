// test_op.c - laws of single applications, what is refused and how, what every law keeps, and the table
// itself.
//
// An application is text: operator, operand shapes (f32 unless they say "i64:2,3"; "." is a scalar),
// attributes. Its law is text too: letters by number (a = letter 0), capital = WHOLE, [v] = ADDRESSED, (ab)
// factors, 1 = no letter, then the result shapes. The same examples seed the property tests, which change
// them at random.
#include "op/op.h"
#include "test.h"
#include <stdlib.h>

typedef struct {
  const char *op, *shapes, *attrs, *law;
} example;

static const example examples[] = {
    // clang-format off
    // elementwise
    {"relu", "4,5", "", "ab->ab : f32[4,5]"},
    {"add", "2,3,4 3,4", "", "abc,bc->abc : f32[2,3,4]"},
    {"add", "2,1,4 3,1", "", "a1c,b1->abc : f32[2,3,4]"},
    {"mul", ". 7", "", ",a->a : f32[7]"},
    {"eq", "f16:2 f16:2", "", "a,a->a : bool[2]"},
    {"where", "bool:2,1 i64:3 i64:2,3", "", "a1,b,ab->ab : i64[2,3]"},
    {"cast", "f16:3", "dtype=i32", "a->a : i32[3]"},
    {"dropout", "8,8", "ratio=0.1", "ab->ab,ab : f32[8,8] bool[8,8]"},
    {"add", "0,3 1,3", "", "ab,1b->ab : f32[0,3]"},
    {"trilu", "2,3,4", "upper=0", "abc->abc : f32[2,3,4]"},
    {"adam", "f16:4 f16:4 4 4", "", "a,a,a,a->a,a,a : f16[4] f32[4] f32[4]"},
    {"send", "i32:4,1", "", "a1->a1 : i32[4,1]"},
    {"all_reduce", "4 2,3", "over=1", "a,bc->a,bc : f32[4] f32[2,3]"},
    {"copy", "4 2,3", "to=host", "a,bc->a,bc : f32[4] f32[2,3]"},
    // products
    {"matmul", "2,3 3,4", "", "ab,bc->ac : f32[2,4]"},
    {"matmul", "5,2,3 3,4", "", "abc,cd->abd : f32[5,2,4]"},
    {"matmul", "5,1,2,3 6,3,4", "", "a1cd,bde->abce : f32[5,6,2,4]"},
    {"matmul", "3 3", "", "a,a-> : f32[]"},
    {"matmul", "3 2,3,4", "", "b,abc->ac : f32[2,4]"},
    {"matmul", "2,4,3 3", "", "abc,c->ab : f32[2,4]"},
    {"matmul", "1,3 3,4", "", "1a,ab->1b : f32[1,4]"},
    {"einsum", "2,3,4 4,5", "law=bsk,kn->bsn", "abc,cd->abd : f32[2,3,5]"},
    {"einsum", "2,3 3,2", "law=ij,ji->", "ab,ba-> : f32[]"},
    // reductions
    {"reduce_sum", "2,3,4", "axes=1", "abc->a1c : f32[2,1,4]"},
    {"reduce_max", "2,3,4", "axes=-1,0 keepdims=0", "abc->b : f32[3]"},
    {"reduce_sum", "2,3", "keepdims=0", "ab-> : f32[]"},
    {"argmax", "2,3", "axis=1", "aB->a1 : i64[2,1]"},
    {"softmax", "2,3", "", "aB->aB : f32[2,3]"},
    {"cumsum", "2,3", "axis=0", "Ab->Ab : f32[2,3]"},
    {"topk", "2,9", "k=4", "aB->aC,aC : f32[2,4] i64[2,4]"},
    {"softmax_dx", "2,3 2,3", "axis=0", "Ab,Ab->Ab : f32[2,3]"},
    {"attention", "2,4,3,5 2,6,3,5 2,6,3,7", "law=bshd,bthd,bthe->bshe", "abcD,aEcD,aEcF->abcF,abc : f32[2,4,3,7] f32[2,4,3]"},
    {"attention", "bf16:2,4,3,2,5 bf16:2,6,3,5 bf16:2,6,3,7 bf16:3,1,4,6 bool:4,6", "law=bsgrd,btgd,btge,grst,st->bsgre causal=s value=-9",
     "abcdE,aFcE,aFcG,c1bF,bF->abcdG,abcd : bf16[2,4,3,2,7] f32[2,4,3,2]"},
    {"attention_dx", "4,7 4,7 4 4,5 6,5 6,7", "law=sd,td,te->se", "aD,aD,a,aB,CB,CD->aB,CB,CD : f32[4,5] f32[6,5] f32[6,7]"},
    {"attention_db", "4,7 4,7 4 4,5 6,5 6,7 4,6", "law=sd,td,te,st->se", "aD,aD,a,aB,CB,CD,aC->aC : f32[4,6]"},
    // reshape
    {"reshape", "4,5,3072", "shape=4,5,3,16,64", "ab(cde)->abcde : f32[4,5,3,16,64]"},
    {"reshape", "4,16,5,64", "shape=4,16,320", "abcd->ab(cd) : f32[4,16,320]"},
    {"reshape", "12,4", "shape=6,8", "(ab)c->a(bc) : f32[6,8]"},
    {"reshape", "6,4", "shape=4,6", "AB->CD : f32[4,6]"},
    {"reshape", "8,6,4", "shape=4,8,6", "(ab)CD->a(bE)F : f32[4,8,6]"},
    {"reshape", "7,1,6,4", "shape=1,7,4,6,1", "a1BC->1aDE1 : f32[1,7,4,6,1]"},
    {"reshape", "1,1", "shape=1", "11->1 : f32[1]"},
    {"reshape", ".", "shape=1,1", "->11 : f32[1,1]"},
    {"reshape", "0,3", "shape=3,0,2", "AB->CDE : f32[3,0,2]"},
    {"reshape", "2,2,2,2,2,2,2,2", "shape=256", "ABCDEFGH->I : f32[256]"},
    {"reshape", "2,2,2,2,2,2,2", "shape=128", "abcdefg->(abcdefg) : f32[128]"},
    // form
    {"transpose", "2,3,4", "perm=2,0,1", "abc->cab : f32[4,2,3]"},
    {"expand", "3,1", "shape=2,3,4", "b1->abc : f32[2,3,4]"},
    {"concat", "2,3 2,3", "axis=1", "ba,ba->b(Ca) : f32[2,6]"},
    {"concat", "4096,8 1024,8 1024,8", "axis=0", "(Da)c,ac,ac->(Ba)c : f32[6144,8]"},
    {"concat", "2,3 2,4", "axis=-1", "aC,aD->aB : f32[2,7]"},
    {"split", "2,6", "axis=1 sizes=3,3", "b(Ca)->ba,ba : f32[2,3] f32[2,3]"},
    {"split", "6", "axis=0 sizes=4,2", "(Ba)->(Ca),a : f32[4] f32[2]"},
    {"slice", "12,5", "starts=4 ends=8 axes=0", "(Ba)c->ac : f32[4,5]"},
    {"slice", "12", "starts=4 ends=12 axes=0", "(Ba)->(Ca) : f32[8]"},
    {"slice", "12", "starts=1 ends=12 axes=0 steps=2", "A->B : f32[6]"},
    {"slice", "12", "starts=11 ends=-1 axes=0 steps=-5", "A->B : f32[3]"},
    {"slice", "5,3", "starts=2 ends=3 axes=0", "Ab->1b : f32[1,3]"},
    {"pad", "2,3", "pads=0,1,0,2", "aB->aC : f32[2,6]"},
    {"pad", "4,12", "pads=0,-6,0,12", "a(Cb)->a(Db) : f32[4,18]"}, // whole parts: as the slice whose gradient it is
    {"pad", "4,12", "pads=0,12,0,0 mode=edge", "aB->aC : f32[4,24]"},
    {"tile", "2,3", "sizes=1,4", "ab->a(Cb) : f32[2,12]"},
    {"depth_to_space", "2,12,5,7", "size=2", "a(EFb)cd->ab(cE)(dF) : f32[2,3,10,14]"},
    {"depth_to_space", "2,12,5,7", "size=2 mode=CRD", "a(bEF)cd->ab(cE)(dF) : f32[2,3,10,14]"},
    {"resize", "2,3,4,4", "shape=2,3,8,4", "abCe->abDe : f32[2,3,8,4]"},
    {"resize_dx", "2,3,8,4", "shape=2,3,4,4", "abCe->abDe : f32[2,3,4,4]"},
    {"constant", "", "dtype=i64 shape=3,1 data=1", "->a1 : i64[3,1]"},
    {"iota", "", "dtype=i64 shape=3 axis=0", "->a : i64[3]"},
    // indexing
    {"gather", "50,8 i64:2,3", "", "[a]b,cd->cdb : f32[2,3,8]"},
    {"gather", "4,50,8 i64:.", "axis=1", "a[b]c,->ac : f32[4,8]"},
    {"gather_add", "2,3,8 i64:2,3", "shape=50,8", "cdb,cd->[a]b : f32[50,8]"},
    {"take", "4,50 i64:4,7", "axis=1", "a[B],ac->ac : f32[4,7]"},
    {"take", "4,50 i64:3,7", "axis=1", "A[C],Bd->Bd : f32[3,7]"},
    {"put", "4,50 i64:4,7 4,7", "axis=1", "a[B],aC,aC->a[B] : f32[4,50]"},
    {"gather_nd", "2,5,6,8 i64:2,3,2", "batch_dims=1", "a[B][C]d,aeF->aed : f32[2,3,8]"},
    {"scatter_nd", "5,8 i64:3,1 3,8", "", "[A]b,C1,Cb->[A]b : f32[5,8]"},
    {"one_hot", "i64:2,3", "size=9 dtype=f32", "ab->abc : f32[2,3,9]"},
    {"reverse", "5,4,3 i64:4", "", "Abc,b->Abc : f32[5,4,3]"},
    // layers
    {"conv", "2,3,8,8 16,3,3,3", "pads=1,1,1,1", "acDG,bcEH->abFI : f32[2,16,8,8]"},
    {"conv", "2,12,8,8 16,3,1,1", "group=4", "a(bd)ef,(bc)d11->a(bc)ef : f32[2,16,8,8]"},
    {"conv", "2,12,9 12,1,3", "group=12 strides=2", "abC,b1D->abE : f32[2,12,4]"},
    {"conv", "2,6,8 16,3,3 16", "group=2", "a(bD)E,(bc)DF,(bc)->a(bc)G : f32[2,16,6]"},
    {"conv_dx", "2,16,4 16,3,3", "shape=2,3,9 strides=2", "abF,bcE->acD : f32[2,3,9]"},
    {"conv_dw", "2,16,4 2,3,9", "shape=16,3,3 strides=2", "abF,acD->bcE : f32[16,3,3]"},
    {"maxpool", "2,3,5", "window=2 strides=2", "abC->abD : f32[2,3,2]"},
    {"maxpool", "2,3,5", "window=2 strides=2 ceil=1", "abC->abD : f32[2,3,3]"},
    {"avgpool_dx", "2,3,2 2,3,5", "window=2 strides=2", "abD,abC->abC : f32[2,3,5]"},
    {"layernorm", "2,3,8 8 8", "", "abC,C,C->abC : f32[2,3,8]"},
    {"rmsnorm", "2,3,8 3,8", "axis=1", "aBC,BC->aBC : f32[2,3,8]"},
    {"layernorm_dx", "2,8 2,8 8", "", "aB,aB,B->aB : f32[2,8]"},
    {"layernorm_dg", "2,3,8 2,3,8", "", "abC,abC->C : f32[8]"},
    {"batchnorm", "2,3,5,5 3 3 3 3", "", "abcd,b,b,b,b->abcd : f32[2,3,5,5]"},
    {"batchnorm_train", "2,3,5 3 3", "", "AbC,b,b->AbC,b,b : f32[2,3,5] f32[3] f32[3]"},
    {"batchnorm_dx", "2,3,5 2,3,5 3", "", "AbC,AbC,b->AbC,b,b : f32[2,3,5] f32[3] f32[3]"},
    {"batchnorm_train", "8,3,5 3 3", "bn_groups=4", "(aB)cD,c,c->(aB)cD,c,c : f32[8,3,5] f32[3] f32[3]"},
    {"batchnorm_train", "4,3,5 3 3", "bn_groups=4", "abC,b,b->abC,b,b : f32[4,3,5] f32[3] f32[3]"},
    {"batchnorm_dx", "8,3,5 8,3,5 3", "bn_groups=2", "(aB)cD,(aB)cD,c->(aB)cD,c,c : f32[8,3,5] f32[3] f32[3]"},
    {"groupnorm", "2,6,5 6 6", "groups=3", "aBC,B,B->aBC : f32[2,6,5]"},
    {"groupnorm", "2,6,5 6 6", "", "abC,b,b->abC : f32[2,6,5]"},
    {"groupnorm_dx", "2,6,5 2,6,5 6", "groups=3", "aBC,aBC,B->aBC : f32[2,6,5]"},
    {"groupnorm_dg", "2,6,5 2,6,5", "", "abC,abC->b : f32[6]"},
    {"cross_entropy", "2,3,50 i64:2,3", "", "abC,ab-> : f32[]"},
    {"cross_entropy", "2,3,50 i64:2,3", "reduce=none", "abC,ab->ab : f32[2,3]"},
    {"cross_entropy", "2,3,50 i64:2,3", "ignore=-100", "ABC,AB-> : f32[]"},
    {"cross_entropy_dx", ". 2,50 i64:2", "", ",aB,a->aB : f32[2,50]"},
    {"cross_entropy_dx", ". 2,50 i64:2 2", "", ",ab,a,a->ab : f32[2,50]"},
    {"sum_exp", "2,3,50 2,3", "", "abc,ab->ab : f32[2,3]"},
    {"pick", "2,3,50 i64:2,3", "", "ab[c],ab->ab : f32[2,3]"},
    {"nll", "2,50,3 i64:2,3", "reduce=sum", "aBc,ac-> : f32[]"},
    {"nll", "2,50,3 i64:2,3 50", "", "ABC,AC,B-> : f32[]"},
    {"moe_gate", "4,16,8", "k=2 capacity=6", "aBC->aBD,aBD : i64[4,16,2] f32[4,16,2]"},
    {"moe_dispatch", "4,16,32 i64:4,16,2", "experts=8 capacity=6", "abc,abD->a[e][F]c : f32[4,8,6,32]"},
    {"moe_combine", "4,8,6,32 i64:4,16,2 4,16,2", "", "a[e][F]c,abD,abD->abc : f32[4,16,32]"},
    {"moe_combine_dw", "4,16,32 i64:4,16,2 4,8,6,32", "", "abc,abD,a[e][F]c->abD : f32[4,16,2]"},
    // rows that share a law with one above
    {"sgd", "2,3 2,3", "lr=0.1", "ab,ab->ab : f32[2,3]"},
    {"momentum", "f16:2 f16:2 2", "", "a,a,a->a,a : f16[2] f32[2]"},
    {"adamw", "2 2 2 2", "step=3", "a,a,a,a->a,a,a : f32[2] f32[2] f32[2]"},
    {"assign", "f16:2,3 2,3", "", "ab,ab->ab : f16[2,3]"},
    {"accumulate", "2,3 f16:2,3", "", "ab,ab->ab : f32[2,3]"},
    {"adafactor_v", "f16:4 f16:4 4", "", "a,a,a->,a : f32[] f32[4]"},
    {"adafactor_rc", "f16:4,6 f16:4,6 4 6", "", "ab,ab,a,b->,a,b, : f32[] f32[4] f32[6] f32[]"},
    {"adafactor_rc", "2,4,1 2,4,1 2,4 2,1", "", "ab1,ab1,ab,a1->,ab,a1,a : f32[] f32[2,4] f32[2,1] f32[2]"},
    {"adafactor_norm", "4 f16:4", "", "a,a-> : f32[]"},
    {"adafactor_norm", "4 f16:4,6 6 .", "", "a,ab,b,-> : f32[]"},
    {"adafactor", "f16:4 f16:4 . . 4", "", "a,a,,,a->a : f16[4]"},
    {"adafactor", "2,4,6 f16:2,4,6 . . 2,4 2,6 2", "", "abc,abc,,,ab,ac,a->abc : f32[2,4,6]"},
    {"join", "2,3 2,3 2,3", "over=1", "ab,ab,ab->ab : f32[2,3]"},
    {"reduce_scatter", "4 2,3", "over=1", "a,bc->a,bc : f32[4] f32[2,3]"},
    {"all_gather", "4", "over=1", "a->a : f32[4]"},
    {"all_to_all", "4", "over=1", "a->a : f32[4]"},
    {"reduce_mean", "2,3", "axes=0", "ab->1b : f32[1,3]"},
    {"reduce_mean", "i32:2,3", "axes=0", "Ab->1b : i32[1,3]"},
    {"reduce_min", "bool:2,3", "axes=0", "ab->1b : bool[1,3]"},
    {"reduce_prod", "2,3", "axes=0", "ab->1b : f32[1,3]"},
    {"argmin", "2,3", "", "Ab->1b : i64[1,3]"},
    {"log_softmax", "2,3", "", "aB->aB : f32[2,3]"},
    {"hardmax", "2,3", "", "aB->aB : f32[2,3]"},
    {"full", "", "dtype=f16 shape=2,3 value=1", "->ab : f16[2,3]"},
    {"random", "", "dtype=f32 shape=2,3 seed=7 mode=normal", "->ab : f32[2,3]"},
    {"rmsnorm_dx", "2,8 2,8 8", "", "aB,aB,B->aB : f32[2,8]"},
    {"rmsnorm_dg", "2,8 2,8", "", "aB,aB->B : f32[8]"},
    {"lrn", "2,6,5", "size=3", "aBc->aBc : f32[2,6,5]"},
    {"avgpool", "2,3,5,5", "window=2,3 pads=0,1,0,1", "abCF->abDG : f32[2,3,4,5]"},
    {"maxpool_arg", "2,3,5", "window=2", "abC->abD : i64[2,3,4]"},
    {"maxpool_dx", "2,3,4 2,3,5", "window=2", "abD,abC->abC : f32[2,3,5]"},
    // clang-format on
};

static const example refused[] = {
    // clang-format off
    // elementwise
    {"add", "2,3 4,3", "", NULL},
    {"sgd", "2,3 1,3", "", NULL},
    {"adafactor_rc", "6 6 6 6", "", NULL},
    {"adafactor_rc", "4,6 4,6 6 4", "", NULL},
    {"adafactor_norm", "4 4,6 6", "", NULL},
    {"adafactor", "4,6 4,6 . . 4 6", "", NULL},
    {"add", "2,3 i64:3", "", NULL},
    {"exp", "i64:3", "", NULL},
    {"where", "2 2 2", "", NULL},
    {"add", "2", "", NULL},
    {"cast", "2", "", NULL},
    {"relu", "2", "axis=0", NULL},
    {"trilu", "4", "", NULL},
    // products
    {"matmul", "2,3 4,3", "", NULL},
    {"matmul", "2,3,4 3,4,5", "", NULL},
    {"matmul", ". 3", "", NULL},
    {"einsum", "2,3 4,5", "law=ij,jk->ik", NULL},
    {"einsum", "2,3 4,5", "law=ij,kl->im", NULL},
    {"einsum", "2,2 4,5", "law=ii,kl->i", NULL},
    {"einsum", "2,2 4,5", "law=ij,kl", NULL},
    {"einsum", "2,2 4,5", "law=i,kl->i", NULL},
    // reductions
    {"reduce_sum", "2,3", "axes=2", NULL},
    {"reduce_sum", "2,3", "axes=1,-1", NULL},
    {"topk", "2,3", "k=4", NULL},
    {"softmax", "2,3", "axis=5", NULL},
    // reshape
    {"reshape", "2,3", "shape=4,2", NULL},
    {"reshape", "2,3", "shape=-1,2", NULL},
    // form
    {"transpose", "2,3", "perm=0,0", NULL},
    {"expand", "3", "shape=2", NULL},
    {"concat", "2,3 3,3", "axis=1", NULL},
    {"split", "7", "axis=0 sizes=3,3", NULL},
    {"slice", "5", "starts=2 ends=9 axes=0", NULL},
    {"pad", "3", "pads=3,0 mode=reflect", NULL},
    {"pad", "3", "pads=3,0 mode=mirror", NULL},
    {"tile", "3", "sizes=4611686018427387904", NULL},
    {"full", "", "dtype=f32 shape=1099511627776,1073741824", NULL},
    {"conv_dx", "1,1,1 1,1,1", "shape=1,1,9223372036854775807", NULL},
    // indexing
    {"gather", "50,8 2,3", "", NULL},
    {"gather_add", "2,3,7 i64:2,3", "shape=50,8", NULL},
    {"take", "4,50 i64:5,7", "axis=1", NULL},
    {"gather", "1,2,3,4,5,6,7 i64:1,2,3", "", NULL},
    // layers
    {"batchnorm_train", "8,3,5 3 3", "bn_groups=3", NULL},
    {"batchnorm_dx", "8,3,5 8,3,5 3", "bn_groups=0", NULL},
    {"conv", "2,64,8,8 16,16,3,3", "group=2", NULL},
    {"conv", "2,3,2,2 16,3,5,5", "", NULL},
    {"conv", "2,3,8 16,3,3", "strides=0", NULL},
    {"conv", "1,1,1,1 1,1,1,1", "pads=2147483647,2147483647,2147483647,2147483647", NULL},
    {"maxpool", "2,3,8", "window=3 pads=3,0", NULL},
    {"maxpool", "2,3,8", "window=3,3", NULL},
    {"maxpool", "2,3,8,8", "window=2147483647,2147483647 pads=2147483646,2147483646,2147483646,2147483646", NULL},
    {"resize", "2,0", "shape=2,4", NULL},
    {"resize", "2,3", "shape=2,4 scales=1,0", NULL},
    {"resize", "2,3", "shape=2,4 roi=0,0,1,3e9", NULL},
    {"layernorm", "2,8 8 9", "", NULL},
    {"moe_gate", "4,16,8", "k=9 capacity=6", NULL},
    {"moe_gate", "4,16,8", "k=2 capacity=4611686018427387904", NULL},
    // clang-format on
};

static ctx *c;
static arena *a; // one application at a time

static void begin(void) {
  c = ctx_new();
  a = arena_new();
}
static void end(void) {
  arena_free(a);
  ctx_free(c);
}

// ---- an application from text ------------------------------------------------------------------------

enum { OPDS = 8, ATTRS = 16, LIST = 16 };
typedef struct {
  opcode op;
  u32 nopd, nres;
  shape opd[OPDS], res[OP_RES_MAX];
  attrs at;
  attr attr[ATTRS];
  i64 list[ATTRS][LIST];
  double number[ATTRS][LIST];
} application;

static void parse_shapes(application *x, const char *text) {
  while (*text) {
    shape *s = &x->opd[x->nopd++];
    *s = (shape){.t = DT_F32};
    size_t len = strcspn(text, ": ");
    if (text[len] == ':') s->t = dtype_find(text, len), text += len + 1;
    while (*text && *text != ' ')
      if (*text == ',' || *text == '.')
        text++;
      else
        s->dim[s->nd++] = strtoll(text, (char **)&text, 10);
    text += strspn(text, " ");
  }
}

static attr parse_attr(application *x, u32 i, attr_key k, const char *v, size_t n) {
  attr r = {.key = (u16)k, .kind = (u8)attr_kind_of(k)};
  switch (attr_kind_of(k)) {
  case AK_INT: r.u.i = strtoll(v, NULL, 10); break;
  case AK_FLOAT: r.u.f = strtod(v, NULL); break;
  case AK_STR: r.u.s = sym_ofn(c, v, n); break;
  case AK_DTYPE: r.u.t = dtype_find(v, n); break;
  case AK_DATA: r.u.data = 1; break;
  case AK_AXES: r.u.axes = (const u8 *)"\1", r.n = 1; break;
  case AK_INTS:
  case AK_FLOATS:
    for (const char *end = v + n; v < end; v += *v == ',') {
      x->number[i][r.n] = strtod(v, NULL);
      x->list[i][r.n++] = strtoll(v, (char **)&v, 10);
      v += strcspn(v, ", ");
    }
    if (r.kind == AK_INTS)
      r.u.ints = x->list[i];
    else
      r.u.floats = x->number[i];
  }
  return r;
}

static void parse_attrs(application *x, const char *text) {
  while (*text) {
    size_t name = strcspn(text, "="), n = strcspn(text + name + 1, " ");
    attr_key k = attr_find(text, name);
    REQUIRE(k != A_NONE);
    attr v = parse_attr(x, x->at.n, k, text + name + 1, n);
    u32 to = x->at.n++;
    for (; to > 0 && x->attr[to - 1].key > k; to--) x->attr[to] = x->attr[to - 1];
    x->attr[to] = v;
    text += name + 1 + n;
    text += strspn(text, " ");
  }
}

static void parse(application *x, const example *e) {
  memset(x, 0, sizeof *x);
  x->op = op_find(e->op, strlen(e->op));
  REQUIRE(x->op != OP_none);
  parse_shapes(x, e->shapes);
  parse_attrs(x, e->attrs);
  x->at.v = x->attr;
}

static const law *apply(application *x) {
  x->nres = 0;
  return op_law(c, a, x->op, x->at, x->nopd, x->opd, &x->nres, x->res, (loc){0});
}

// ---- laws as text ------------------------------------------------------------------------------------

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

static const char *law_as_text(const application *x, const law *l) {
  strbuf b = {.a = a};
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
  for (u32 r = 0; r < x->nres; r++) {
    sb_fmt(&b, " %s[", dtype_name(x->res[r].t));
    for (u32 d = 0; d < x->res[r].nd; d++) sb_fmt(&b, d ? ",%lld" : "%lld", (long long)x->res[r].dim[d]);
    sb_char(&b, ']');
  }
  return sb_str(&b);
}

TEST(op_law_examples) {
  begin();
  application x;
  for (u32 i = 0; i < COUNT_OF(examples); i++) {
    const example *e = &examples[i];
    parse(&x, e);
    const law *l = apply(&x);
    CHECK_MSG(l, "%s %s %s: %s", e->op, e->shapes, e->attrs, diag_render(c, a));
    if (l)
      CHECK_MSG(!strcmp(law_as_text(&x, l), e->law), "%s %s %s: %s, not %s", e->op, e->shapes, e->attrs,
                law_as_text(&x, l), e->law);
    diag_clear(c);
  }
  end();
}

TEST(op_law_refused) {
  begin();
  application x;
  for (u32 i = 0; i < COUNT_OF(refused); i++) {
    parse(&x, &refused[i]);
    CHECK_MSG(!apply(&x), "%s %s %s is refused", refused[i].op, refused[i].shapes, refused[i].attrs);
    CHECK_EQ_I64(diag_count(c), i + 1);
  }
  CHECK_GOLDEN("op/refused.txt", diag_render(c, a));
  end();
}

// ---- what every law keeps ----------------------------------------------------------------------------

static bool term_holds(const law *l, const law_term *t, const shape *s) {
  u64 seen[4] = {0};
  if (t->nd != s->nd) return false;
  for (u32 d = 0; d < t->nd; d++) {
    i64 extent = 1;
    for (u32 i = 0; i < t->dim[d].n; i++) {
      u32 f = t->dim[d].f[i];
      if (f >= l->nletters || l->letter[f].extent == 1 || seen[f / 64] >> f % 64 & 1) return false;
      seen[f / 64] |= (u64)1 << f % 64;
      extent *= l->letter[f].extent;
    }
    if (extent != s->dim[d] && !(t->dim[d].n == 0 && extent == 1))
      return false; // no letter: broadcast or extent 1
    if (t->dim[d].n == 0 && s->dim[d] != 1) return false;
  }
  return true;
}

// Extents are products of letters, no letter occurs twice in a term, letters of no result are whole or
// combined.
static bool law_holds(const application *x, const law *l) {
  bool kept[256] = {false};
  if (l->nopd != x->nopd || l->nres != x->nres || l->nletters > 256) return false;
  for (u32 k = 0; k < l->nopd; k++)
    if (!term_holds(l, &l->opd[k], &x->opd[k])) return false;
  for (u32 r = 0; r < l->nres; r++) {
    if (!term_holds(l, &l->res[r], &x->res[r])) return false;
    for (u32 d = 0; d < l->res[r].nd; d++)
      for (u32 i = 0; i < l->res[r].dim[d].n; i++) kept[l->res[r].dim[d].f[i]] = true;
  }
  for (u32 i = 0; i < l->nletters; i++) {
    u8 flags = l->letter[i].flags;
    if (!kept[i] && !(flags & LAW_WHOLE) && op_row_of(x->op)->red == RED_NONE) return false;
    if (flags & LAW_DERIVED && !(flags & LAW_WHOLE)) return false;
  }
  return law_points(l) >= 0 && strlen(l->lin) <= MAX(op_row_of(x->op)->opd_max, 1u);
}

static i64 few(u64 *rng, i64 n) { return (i64)(rng_next(rng) % (u64)n); }

// One change: an extent, everywhere it occurs or in one place; a dimension more or less; an entry of an
// attribute.
static void change(application *x, u64 *rng) {
  static const i64 odd[] = {0,  1,  1,  2,  3,  4,       5,         6,         8,
                            12, 16, 64, -1, -2, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
  u32 what = (u32)few(rng, 8);
  if (what < 5 && x->nopd) {
    shape *s = &x->opd[few(rng, x->nopd)];
    i64 to = odd[few(rng, 12)];
    if (what == 0 && s->nd < DIMS_MAX)
      s->dim[s->nd++] = to;
    else if (what == 1 && s->nd)
      s->nd--;
    else if (s->nd) {
      i64 *d = &s->dim[few(rng, s->nd)], from = *d;
      *d = to;
      for (u32 k = 0; what < 4 && k < x->nopd; k++)
        for (u32 i = 0; i < x->opd[k].nd; i++)
          if (x->opd[k].dim[i] == from) x->opd[k].dim[i] = to;
      for (u32 i = 0; what < 4 && i < x->at.n; i++)
        for (u32 j = 0; x->attr[i].kind == AK_INTS && j < x->attr[i].n; j++)
          if (x->attr[i].u.ints[j] == from) ((i64 *)x->attr[i].u.ints)[j] = to;
    }
  } else if (what == 5 && x->nopd) {
    x->opd[few(rng, x->nopd)].t = (dtype)(1 + few(rng, DT_COUNT - 1));
  } else if (x->at.n) {
    attr *v = &x->attr[few(rng, x->at.n)];
    i64 to = odd[few(rng, COUNT_OF(odd))];
    if (v->kind == AK_INT)
      v->u.i = to;
    else if (v->kind == AK_INTS && what == 6 && v->n)
      ((i64 *)v->u.ints)[few(rng, v->n)] = to;
    else if (v->kind == AK_INTS && v->n)
      v->n--;
  }
}

TEST(op_laws_hold) {
  begin();
  u64 rng = 1;
  application x;
  u32 accepted = 0;
  for (u32 i = 0; i < COUNT_OF(examples); i++) {
    for (u32 n = 0; n < 400; n++) {
      arena_mark_t m = arena_mark(a);
      parse(&x, &examples[i]);
      for (u32 k = 0; k < n % 4; k++) change(&x, &rng);
      const law *l = apply(&x);
      accepted += l != NULL;
      if (l)
        CHECK_MSG(diag_count(c) == 0 && law_holds(&x, l), "%s %s %s: %s", examples[i].op, examples[i].shapes,
                  examples[i].attrs, law_as_text(&x, l));
      else
        CHECK_EQ_I64(diag_count(c), 1);
      diag_clear(c);
      arena_release(a, m);
    }
  }
  CHECK_MSG(accepted > COUNT_OF(examples) * 150, "only %u accepted", accepted);
  end();
}

// Letters are all that an application says about sizes: at other extents it has the same law.
static bool same_letters(const law *x, const law *y) {
  if (x->nletters != y->nletters || x->nopd != y->nopd || x->nres != y->nres) return false;
  for (u32 k = 0; k < x->nopd + x->nres; k++) { // results follow the operands
    if (x->opd[k].nd != y->opd[k].nd) return false;
    for (u32 d = 0; d < x->opd[k].nd; d++)
      if (x->opd[k].dim[d].n != y->opd[k].dim[d].n ||
          memcmp(x->opd[k].dim[d].f, y->opd[k].dim[d].f, x->opd[k].dim[d].n))
        return false;
  }
  return true;
}

TEST(op_laws_rescale) {
  begin();
  u64 rng = 3;
  application x, y;
  for (u32 i = 0; i < COUNT_OF(examples); i++) {
    for (u32 n = 0; n < 100; n++) {
      arena_mark_t m = arena_mark(a);
      parse(&x, &examples[i]);
      for (u32 k = 0; k < n % 4; k++) change(&x, &rng);
      const law *l = apply(&x);
      if (l) {
        i64 extent[256];
        for (u32 f = 0; f < l->nletters; f++)
          extent[f] = l->letter[f].flags & LAW_FIXED || l->letter[f].extent == 0 ? l->letter[f].extent
                                                                                 : 2 + few(&rng, 4);
        y = x;
        y.at = law_rescale(a, x.op, x.at, l, extent);
        for (u32 k = 0; k < l->nopd; k++)
          for (u32 d = 0; d < l->opd[k].nd; d++) {
            y.opd[k].dim[d] = 1;
            for (u32 f = 0; f < l->opd[k].dim[d].n; f++) y.opd[k].dim[d] *= extent[l->opd[k].dim[d].f[f]];
          }
        const law *r = apply(&y);
        CHECK_MSG(r && same_letters(l, r), "%s %s: %s, rescaled %s", examples[i].op, examples[i].attrs,
                  law_as_text(&x, l), r ? law_as_text(&y, r) : diag_render(c, a));
        for (u32 f = 0; r && f < r->nletters && f < l->nletters; f++)
          CHECK_EQ_I64(r->letter[f].extent, extent[f]);
      }
      diag_clear(c);
      arena_release(a, m);
    }
  }
  end();
}

// ---- letters mean indices ----------------------------------------------------------------------------
// For operators that only move elements: where an element comes from, computed without letters, must have the
// same value of every letter that both sides share. So a piece of a letter's range needs just that piece of
// the operand.

static const i64 *ints(const application *x, attr_key k) {
  const i64 *v = NULL;
  return attr_ints(x->at, k, &v) ? v : NULL;
}

// to: the source's index of element `at` of result r, in *operand. False if it comes from nowhere (padding).
static bool source_of(const application *x, u32 r, const i64 *at, u32 *operand, i64 *to) {
  const shape *in = &x->opd[0], *out = &x->res[r];
  u32 nd = in->nd, axis = (u32)((attr_int(x->at, A_axis, 0) + nd) % MAX(nd, 1u));
  i64 flat = 0;
  *operand = 0;
  for (u32 d = 0; d < nd && d < out->nd; d++) to[d] = at[d];
  switch (x->op) {
  case OP_reshape:
    for (u32 d = 0; d < out->nd; d++) flat = flat * out->dim[d] + at[d];
    for (u32 d = nd; d-- > 0; flat /= in->dim[d]) to[d] = flat % in->dim[d];
    return true;
  case OP_transpose:
    for (u32 d = 0; d < nd; d++) to[ints(x, A_perm)[d]] = at[d];
    return true;
  case OP_expand:
    for (u32 d = 0; d < nd; d++) to[d] = in->dim[d] == 1 ? 0 : at[d + out->nd - nd];
    return true;
  case OP_concat:
    while (to[axis] >= x->opd[*operand].dim[axis]) to[axis] -= x->opd[(*operand)++].dim[axis];
    return true;
  case OP_split:
    for (u32 k = 0; k < r; k++) to[axis] += x->res[k].dim[axis];
    return true;
  case OP_slice: {
    const attr *axes = attr_get(x->at, A_axes);
    for (u32 i = 0; i < axes->n; i++) {
      u32 d = (u32)((axes->u.ints[i] + nd) % nd);
      to[d] = ints(x, A_starts)[i] + at[d] * (ints(x, A_steps) ? ints(x, A_steps)[i] : 1);
    }
    return true;
  }
  case OP_pad:
    for (u32 d = 0; d < nd; d++) {
      to[d] -= ints(x, A_pads)[d];
      if (to[d] < 0 || to[d] >= in->dim[d]) return false;
    }
    return true;
  case OP_tile:
    for (u32 d = 0; d < nd; d++) to[d] %= in->dim[d];
    return true;
  case OP_depth_to_space: {
    i64 b = attr_int(x->at, A_size, 1), h = at[2] % b, w = at[3] % b, c_out = out->dim[1];
    bool crd = attr_get(x->at, A_mode) && !strcmp(sym_str(c, attr_get(x->at, A_mode)->u.s), "CRD");
    to[1] = crd ? (at[1] * b + h) * b + w : (h * b + w) * c_out + at[1];
    to[2] /= b, to[3] /= b;
    return true;
  }
  default: CHECK(!"an operator that moves elements"); return false;
  }
}

static void digits_of(const law *l, const law_term *t, const i64 *at, i64 *digit) {
  for (u32 i = 0; i < l->nletters; i++) digit[i] = -1;
  for (u32 d = 0; d < t->nd; d++) {
    i64 rest = at[d];
    for (u32 i = t->dim[d].n; i-- > 0;) {
      i64 extent = l->letter[t->dim[d].f[i]].extent;
      digit[t->dim[d].f[i]] = rest % extent;
      rest /= extent;
    }
  }
}

static bool letters_agree(const application *x, const law *l, u32 r) {
  i64 at[DIMS_MAX], from[DIMS_MAX], here[256], there[256], n = shape_elems(&x->res[r]);
  for (i64 e = 0; e < n; e++) {
    u32 operand;
    i64 rest = e;
    for (u32 d = x->res[r].nd; d-- > 0; rest /= x->res[r].dim[d]) at[d] = rest % x->res[r].dim[d];
    if (!source_of(x, r, at, &operand, from)) continue;
    digits_of(l, &l->res[r], at, here);
    digits_of(l, &l->opd[operand], from, there);
    for (u32 i = 0; i < l->nletters; i++)
      if (here[i] >= 0 && there[i] >= 0 && here[i] != there[i]) return false;
  }
  return true;
}

TEST(op_letters_are_indices) {
  static const opcode movers[] = {OP_reshape, OP_transpose, OP_expand, OP_concat,        OP_split,
                                  OP_slice,   OP_pad,       OP_tile,   OP_depth_to_space};
  begin();
  u64 rng = 2;
  application x;
  u32 tried = 0;
  for (u32 i = 0; i < COUNT_OF(examples); i++) {
    bool moves = false;
    for (u32 k = 0; k < COUNT_OF(movers); k++)
      moves |= op_find(examples[i].op, strlen(examples[i].op)) == movers[k];
    for (u32 n = 0; moves && n < 200; n++) {
      arena_mark_t m = arena_mark(a);
      parse(&x, &examples[i]);
      for (u32 k = 0; k < n % 6; k++) change(&x, &rng);
      const law *l = apply(&x);
      for (u32 r = 0; l && r < x.nres; r++) {
        if (shape_elems(&x.res[r]) > 5000) continue;
        tried++;
        CHECK_MSG(letters_agree(&x, l, r), "%s: %s", examples[i].op, law_as_text(&x, l));
      }
      diag_clear(c);
      arena_release(a, m);
    }
  }
  CHECK_MSG(tried > 1500, "only %u tried", tried);
  end();
}

// ---- linearity, flops, the table ---------------------------------------------------------------------

TEST(op_linearity_of_an_application) {
  static const struct {
    example e;
    const char *lin;
  } cases[] = {
      {{"matmul", "2,3 3,4", "", NULL}, "e"},         {{"conv", "2,6,8 16,6,3", "", NULL}, "e"},
      {{"conv", "2,6,8 16,6,3 16", "", NULL}, "j-j"}, {{"cast", "2", "dtype=f16", NULL}, "e"},
      {{"cast", "2", "dtype=i32", NULL}, "-"},        {{"cast", "i32:2", "dtype=f32", NULL}, "e"},
      {{"cast", "i32:2", "dtype=bool", NULL}, "-"},   {{"div", "2 2", "", NULL}, "e-"},
      {{"div", "i32:2 i32:2", "", NULL}, "-"},        {{"pad", "2", "pads=1,1", NULL}, "e"},
      {{"pad", "2", "pads=1,1 value=1", NULL}, "-"},  {{"layernorm", "2,8 8 8", "", NULL}, "-jj"},
      {{"scale", "i32:2", "alpha=0.5", NULL}, "-"},   {{"reduce_mean", "i32:2", "", NULL}, "-"},
  };
  begin();
  application x;
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    parse(&x, &cases[i].e);
    const law *l = apply(&x);
    REQUIRE(l);
    CHECK_STR(l->lin, cases[i].lin);
    CHECK(law_lin(l, 0) == cases[i].lin[0] && law_lin(l, 9) == cases[i].lin[strlen(cases[i].lin) - 1]);
  }
  end();
}

TEST(op_flops) {
  static const struct {
    example e;
    double flops;
  } cases[] = {
      {{"matmul", "5,2,3 3,4", "", NULL}, 2.0 * 5 * 2 * 3 * 4},
      {{"conv", "2,3,8,8 16,3,3,3", "pads=1,1,1,1", NULL}, 2.0 * 2 * 16 * 3 * 64 * 9},
      {{"conv", "2,12,8 12,1,3", "group=12 pads=1,1", NULL}, 2.0 * 2 * 12 * 8 * 3},
      {{"conv_dx", "2,16,8,8 16,3,3,3", "pads=1,1,1,1 shape=2,3,8,8", NULL}, 2.0 * 2 * 16 * 3 * 64 * 9},
      {{"maxpool", "2,3,8", "window=2 strides=2", NULL}, 2.0 * 3 * 4 * 2},
      {{"gather", "50,8 i64:2,3", "", NULL}, 0},
      {{"gather_add", "2,3,8 i64:2,3", "shape=50,8", NULL}, 2.0 * 3 * 8},
      {{"topk", "2,9", "k=4", NULL}, 8.0 * 2 * 9},
      {{"reduce_sum", "2,9", "", NULL}, 2.0 * 9},
      {{"moe_combine", "4,8,6,32 i64:4,16,2 4,16,2", "", NULL}, 2.0 * 4 * 16 * 2 * 32},
  };
  begin();
  application x;
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    parse(&x, &cases[i].e);
    const law *l = apply(&x);
    REQUIRE(l);
    CHECK_CLOSE(op_flops(x.op, x.at, l), cases[i].flops, 0);
  }
  end();
}

// Every row that has a law occurs in an example, so that nobody adds one without.
TEST(op_table) {
  bool seen[OP_COUNT] = {false};
  for (u32 i = 0; i < COUNT_OF(examples); i++) seen[op_find(examples[i].op, strlen(examples[i].op))] = true;
  for (opcode op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *r = op_row_of(op);
    CHECK_MSG(op_find(r->name, strlen(r->name)) == op, "%s is found by its name", r->name);
    CHECK_MSG(r->opd_max == 255 || strlen(r->lin) <= r->opd_max, "%s: marks and operands", r->name);
    CHECK_MSG(!(r->flags & OPF_COMM) || coll_find(op) || op == OP_copy, "%s has a row of communication",
              r->name);
    bool plain = !strcmp(r->law, "...->...") || !strcmp(r->law, "...,...->...");
    CHECK_MSG(seen[op] || plain || !*r->types, "%s has an example", r->name);
  }
  CHECK(op_find("matmu", 5) == OP_none && op_find("matmul2", 7) == OP_none &&
        op_find("matmul2", 6) == OP_matmul);
  for (attr_key k = A_NONE + 1; k < A_COUNT; k++) CHECK(attr_find(attr_name(k), strlen(attr_name(k))) == k);
  CHECK(attr_find("axi", 3) == A_NONE && attr_find("", 0) == A_NONE);
  CHECK(dtype_find("bf16", 4) == DT_BF16 && dtype_find("bf1", 3) == DT_NONE && dtype_bytes(DT_BF16) == 2);
}

TEST(op_docs) {
  static const opcode some[] = {OP_add,        OP_matmul,     OP_gather, OP_layernorm, OP_resize,
                                OP_reduce_max, OP_all_reduce, OP_split,  OP_call};
  begin();
  strbuf b = {.a = a};
  for (u32 i = 0; i < COUNT_OF(some); i++) op_doc(some[i], &b), sb_put(&b, "\n");
  CHECK_GOLDEN("op/doc.txt", sb_str(&b));
  for (opcode op = OP_none + 1; op < OP_COUNT; op++) op_doc(op, &b);
  end();
}
