// ops.c - every row of the operator table on random extents: what its kernel computes on pieces, put together
// as the law says, is what it computes on the whole.
//
// An application is text (operator; operand extents, f64 unless they say "i64:2,3"; attributes). Its letters
// get random extents, then every letter that may be split is: into equal pieces at the letter's place among
// the factors of its dimension, and into uneven and zig-zag pieces where it is a dimension of its own. Pieces
// of a result that has the letter are laid side by side, of one that has not are reduced.
#include "kernel/kernel.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char *op, *opd, *attrs;
} example;

static const example examples[] = {
    // clang-format off
    {"identity", "4,6", ""}, {"stop_gradient", "4,6", ""}, {"cast", "4,6", "dtype=f32"}, {"cast", "i64:4", "dtype=f64"}, {"neg", "4,6", ""},
    {"abs", "6", ""}, {"exp", "6", ""}, {"log", "6", ""}, {"sqrt", "6", ""}, {"rsqrt", "6", ""}, {"recip", "6", ""},
    {"tanh", "6", ""}, {"sigmoid", "6", ""}, {"relu", "6", ""}, {"leaky_relu", "6", "alpha=0.2"}, {"gelu", "6", ""},
    {"gelu", "6", "approx=1"}, {"silu", "6", ""}, {"erf", "6", ""}, {"sin", "6", ""}, {"cos", "6", ""}, {"tan", "6", ""},
    {"asin", "6", ""}, {"acos", "6", ""}, {"atan", "6", ""}, {"sinh", "6", ""}, {"cosh", "6", ""}, {"asinh", "6", ""},
    {"acosh", "6", ""}, {"atanh", "6", ""}, {"softplus", "6", ""}, {"floor", "6", ""}, {"ceil", "6", ""},
    {"round", "6", ""}, {"sign", "6", ""}, {"not", "bool:6", ""}, {"not", "i32:6", ""}, {"isnan", "6", ""},
    {"isinf", "6", "mode=pos"},
    {"add", "2,3,4 3,4", ""}, {"add", "2,1,4 3,1", ""}, {"sub", "6 6", ""}, {"mul", ". 7", ""}, {"div", "6 2,6", ""},
    {"div", "i32:6 i32:2,6", ""}, {"pow", "6 6", ""}, {"pow", "6 i32:1", ""}, {"mod", "i8:6 i8:6", ""},
    {"mod", "6 6", "mode=fmod"}, {"max", "6 6", ""}, {"min", "u64:6 u64:6", ""}, {"eq", "6 6", ""}, {"lt", "6 6", ""},
    {"le", "i64:6 i64:6", ""}, {"gt", "6 6", ""}, {"ge", "6 6", ""}, {"and", "bool:6 bool:6", ""},
    {"or", "u8:6 u8:6", ""}, {"xor", "i32:6 i32:6", ""}, {"shl", "u8:6 u8:6", ""}, {"shr", "i64:6 i64:6", ""},
    {"where", "bool:2,1 i64:3 i64:2,3", ""}, {"relu_dx", "6 6", ""}, {"relu_dx", "2,6 6", "alpha=0.5"}, {"gelu_dx", "6 6", ""}, {"gelu_dx", "6 6", "approx=1"},
    {"silu_dx", "6 6", ""}, {"tanh_dx", "6 6", ""}, {"sigmoid_dx", "6 6", ""}, {"scale", "6", "alpha=3"}, {"offset", "6", "alpha=3"},
    {"matmul", "2,3 3,4", ""}, {"matmul", "5,2,3 3,4", ""}, {"matmul", "5,1,2,3 6,3,4", ""}, {"matmul", "3 3", ""},
    {"matmul", "3 2,3,4", ""}, {"matmul", "2,4,3 3", ""}, {"matmul", "i32:2,3 i32:3,4", ""},
    {"einsum", "2,3,4 4,5", "law=bsk,kn->bsn"}, {"einsum", "2,3 3,2", "law=ij,ji->"}, {"einsum", "2,3,5 3,4", "law=abz,bc->ca"},
    {"conv", "2,3,8,8 16,3,3,3", "pads=1,1,1,1"}, {"conv", "2,12,8,8 16,3,1,1", "group=4"},
    {"conv", "2,12,9 12,1,3", "group=12 strides=2"}, {"conv", "2,6,8 16,3,3 16", "group=2"},
    {"conv_dx", "2,16,4 16,3,3", "shape=2,3,9 strides=2"}, {"conv_dx", "2,16,4 16,3,3", "shape=2,6,9 strides=2 group=2"},
    {"conv_dw", "2,16,4 2,3,9", "shape=16,3,3 strides=2"}, {"conv_dw", "2,16,4 2,6,9", "shape=16,3,3 strides=2 group=2"},
    {"reduce_sum", "2,3,4", "axes=1"}, {"reduce_sum", "2,3", "keepdims=0"}, {"reduce_mean", "2,3,4", "axes=0,-1 keepdims=0"},
    {"reduce_max", "2,3,4", "axes=-1,0 keepdims=0"}, {"reduce_min", "bool:2,3", "axes=0"}, {"reduce_prod", "2,3", "axes=0"},
    {"reduce_max", "u8:4,6", "axes=1"}, {"argmax", "2,3", "axis=1"}, {"argmin", "2,3", "select_last=1"},
    {"cumsum", "2,3", "axis=0 exclusive=1"}, {"cumsum", "2,3", "axis=1 reverse=1"}, {"topk", "2,9", "k=4"},
    {"reshape", "4,5,96", "shape=4,5,3,4,8"}, {"reshape", "4,16,5,64", "shape=4,16,320"}, {"reshape", "12,4", "shape=6,8"},
    {"transpose", "2,3,4", "perm=2,0,1"}, {"expand", "3,1", "shape=2,3,4"}, {"concat", "2,3 2,3", "axis=1"},
    {"concat", "8,8 4,8 4,8", "axis=0"}, {"concat", "2,3 2,4", "axis=-1"}, {"split", "2,6", "axis=1 sizes=3,3"},
    {"split", "6", "axis=0 sizes=4,2"}, {"slice", "12,5", "starts=4 ends=8 axes=0"}, {"slice", "12", "starts=4 ends=12 axes=0"},
    {"slice", "12,6", "starts=11 ends=-1 axes=0 steps=-5"}, {"pad", "2,3", "pads=0,1,0,2 value=7"},
    {"pad", "2,5", "pads=0,3,0,2 mode=reflect"}, {"pad", "i32:2,5", "pads=0,3,0,2 mode=edge"},
    {"pad", "2,5", "pads=0,3,0,2 mode=wrap"}, {"pad", "4,6", "pads=0,-1,0,-2"}, {"pad", "4,6", "pads=0,12,0,6 value=3"}, {"pad", "4,12", "pads=0,-4,0,8"}, {"tile", "2,3", "sizes=1,4"},
    {"depth_to_space", "2,12,5,7", "size=2"}, {"depth_to_space", "2,12,5,7", "size=2 mode=CRD"},
    {"resize", "2,3,4,4", "shape=2,3,8,4"}, {"resize", "2,3,4", "shape=2,3,7 mode=linear coord=align_corners"},
    {"resize", "2,3,6", "shape=2,3,4 mode=cubic antialias=1"},
    {"resize_dx", "2,3,8,4", "shape=2,3,4,4"}, {"resize_dx", "2,3,7", "shape=2,3,4 mode=linear coord=align_corners"},
    {"resize_dx", "2,3,4", "shape=2,3,6 mode=cubic antialias=1"},
    {"gather", "50,8 i64:2,3", ""}, {"gather", "4,50,8 i64:.", "axis=1"}, {"gather", "i32:5,4 i32:6", "axis=-1"},
    {"gather_add", "2,3,8 i64:2,3", "shape=50,8"}, {"gather_add", "4,6,8 i64:6", "shape=4,5,8 axis=1"},
    {"take", "4,50 i64:4,7", "axis=1"}, {"put", "4,50 i64:4,7 4,7", "axis=1"}, {"put", "4,5 i64:4,7 4,7", "axis=1 scatter=add"},
    {"gather_nd", "2,5,6,8 i64:2,3,2", "batch_dims=1"}, {"scatter_nd", "5,8 i64:3,1 3,8", "scatter=max"},
    {"trilu", "2,6,4", "upper=0 k=1"}, {"trilu", "2,6,4", "k=-1"}, {"one_hot", "i64:2,3", "size=9 dtype=f64"},
    {"one_hot", "i64:2,3", "size=9 dtype=i32 axis=0"}, {"reverse", "5,4,3 i64:4", ""},
    {"constant", "", "dtype=f64 shape=6,4 data=1"}, {"full", "", "dtype=f64 shape=6,4 value=2"},
    {"iota", "", "dtype=i64 shape=6,4 axis=1 alpha=3 beta=2"}, {"random", "", "dtype=f64 shape=6,4 seed=7 mode=normal"},
    {"softmax", "4,6", ""}, {"softmax", "4,6,3", "axis=1"}, {"log_softmax", "4,6", ""}, {"hardmax", "4,6", ""},
    {"softmax_dx", "2,3 2,3", "axis=0"},
    {"attention", "2,4,3,5 2,6,3,5 2,6,3,7", "law=bshd,bthd,bthe->bshe alpha=0.3"},
    {"attention", "2,4,3,2,5 2,6,3,5 2,6,3,7", "law=bsgrd,btgd,btge->bsgre causal=s"},
    {"attention", "2,3,4,5 2,3,5,4 2,3,4,5 bool:4,1,4", "law=bhsd,bhdt,bhte,sbt->bhse value=-0.5"},
    {"attention", "4,5 2,6,5 2,6,5 2,4,6 bool:1,6", "law=sd,btd,bte,bst,st->bse causal=s value=0.25"},
    {"attention_dx", "2,4,3,7 2,4,3,7 2,4,3 2,4,3,5 2,6,3,5 2,6,3,7", "law=bshd,bthd,bthe->bshe alpha=0.3"},
    {"attention_dx", "2,4,3,2,7 2,4,3,2,7 2,4,3,2 2,4,3,2,5 2,6,3,5 2,6,3,7", "law=bsgrd,btgd,btge->bsgre causal=s"},
    {"attention_dx", "2,4,5 2,4,5 2,4 4,5 2,6,5 2,6,5 2,4,6 bool:1,6", "law=sd,btd,bte,bst,st->bse causal=s value=0.25"},
    {"attention_db", "2,4,3,7 2,4,3,7 2,4,3 2,4,3,5 2,6,3,5 2,6,3,7 3,4,6", "law=bshd,bthd,bthe,hst->bshe alpha=0.3"},
    {"attention_db", "2,4,5 2,4,5 2,4 4,5 2,6,5 2,6,5 2,1,6 bool:4,6", "law=sd,btd,bte,bst,st->bse value=0.25"},
    {"layernorm", "2,3,8 8 8", ""}, {"layernorm_dx", "4,8 4,8 8", ""}, {"layernorm_dg", "2,3,8 2,3,8", ""},
    {"rmsnorm", "2,3,8 3,8", "axis=1"}, {"rmsnorm_dx", "4,8 4,8 8", ""}, {"rmsnorm_dg", "4,8 4,8", ""},
    {"batchnorm", "2,3,5,5 3 3 3 3", ""}, {"batchnorm_train", "2,3,5 3 3", ""}, {"batchnorm_dx", "2,3,5 2,3,5 3", ""},
    {"batchnorm_train", "8,3,5 3 3", "bn_groups=4"}, {"batchnorm_train", "4,3,5 3 3", "bn_groups=4"},
    {"batchnorm_dx", "8,3,5 8,3,5 3", "bn_groups=4"}, {"batchnorm_dx", "12,4 12,4 4", "bn_groups=6"},
    {"groupnorm", "2,6,5 6 6", "groups=3"}, {"groupnorm", "2,6,5 6 6", ""}, {"lrn", "2,6,5", "size=3"},
    {"groupnorm_dx", "2,6,5 2,6,5 6", "groups=3"}, {"groupnorm_dx", "2,6,5 2,6,5 6", ""},
    {"groupnorm_dg", "2,6,5 2,6,5", "groups=3"}, {"groupnorm_dg", "2,6,5 2,6,5", ""},
    {"dropout", "8,8", "ratio=0.3"},
    {"cross_entropy", "2,3,50 i64:2,3", ""}, {"cross_entropy", "2,3,50 i64:2,3", "reduce=none"},
    {"cross_entropy", "4,5 i64:4", "ignore=1"}, {"cross_entropy", "4,5 i64:4", "ignore=1 reduce=sum"},
    {"cross_entropy_dx", ". 2,50 i64:2", ""}, {"cross_entropy_dx", "4 4,5 i64:4", "reduce=none ignore=0"},
    {"cross_entropy_dx", ". 2,50 i64:2 2", ""}, {"cross_entropy_dx", "4 4,6 i64:4 4", "reduce=none"},
    {"sum_exp", "2,3,8 2,3", ""}, {"pick", "2,3,8 i64:2,3", ""},
    {"nll", "2,50,3 i64:2,3", "reduce=sum"}, {"nll", "2,50,3 i64:2,3", ""}, {"nll", "2,50,3 i64:2,3 50", ""},
    {"nll", "2,50,3 i64:2,3 50", "reduce=none"},
    {"maxpool", "2,3,5", "window=2 strides=2"}, {"maxpool", "2,3,5", "window=2 strides=2 ceil=1"},
    {"maxpool_arg", "2,3,5,6", "window=2,3"}, {"maxpool_dx", "2,3,4 2,3,5", "window=2"},
    {"avgpool", "2,3,5,5", "window=2,3 pads=0,1,0,1"}, {"avgpool_dx", "2,3,2 2,3,5", "window=2 strides=2"},
    {"moe_gate", "4,16,8", "k=2 capacity=3"}, {"moe_dispatch", "4,16,32 i64:4,16,2", "experts=8 capacity=6"},
    {"moe_combine", "4,8,6,32 i64:4,16,2 4,16,2", ""}, {"moe_combine_dw", "4,16,32 i64:4,16,2 4,8,6,32", ""},
    {"sgd", "4,6 4,6", "lr=0.1 weight_decay=0.1"}, {"momentum", "6 6 6", "nesterov=1"}, {"adam", "6 6 6 6", "step=3"},
    {"adamw", "6 6 6 6", "step=3"}, {"assign", "4,6 4,6", ""}, {"accumulate", "4,6 4,6", ""},
    {"adafactor_v", "6 6 6", ""}, {"adafactor_v", ". . .", ""}, {"adafactor_rc", "4,6 4,6 4 6", "beta2=0.7"},
    {"adafactor_rc", "2,4,6 2,4,6 2,4 2,6", "beta2=0.7 eps=0.1"}, {"adafactor_norm", "6 6", ""},
    {"adafactor_norm", "2,4 2,4,6 2,6 2", ""}, {"adafactor", "6 6 . . 6", "clip=0.2"},
    {"adafactor", "4,6 4,6 . . 4 6 .", "weight_decay=0.1"}, {"adafactor", "2,4,6 2,4,6 . . 2,4 2,6 2", "clip=0.2"},
    // clang-format on
};

static ctx *C;
static arena *A;
static u64 R = 1;
static i64 few(i64 n) { return (i64)(rng_next(&R) % (u64)n); }

// ---- an application ------------------------------------------------------------------------------------

enum { OPDS = 8, ATTRS = 10, LIST = 8 };
typedef struct {
  opcode op;
  u32 nopd, nres;
  shape opd[OPDS], res[OP_RES_MAX];
  attrs at;
  const law *l;
} application;

static void parse_operands(application *x, const char *text) {
  while (*text) {
    shape *s = &x->opd[x->nopd++];
    *s = (shape){.t = DT_F64};
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

static attr parse_attr(attr_key k, const char *v, size_t n) {
  attr r = {.key = (u16)k, .kind = (u8)attr_kind_of(k)};
  i64 *list = NEWN(A, i64, LIST);
  switch (r.kind) {
  case AK_INT: r.u.i = strtoll(v, NULL, 10); break;
  case AK_FLOAT: r.u.f = strtod(v, NULL); break;
  case AK_STR: r.u.s = sym_ofn(C, v, n); break;
  case AK_DTYPE: r.u.t = dtype_find(v, n); break;
  case AK_DATA: r.u.data = 1; break;
  default:
    for (const char *end = v + n; v < end; v += *v == ',') list[r.n++] = strtoll(v, (char **)&v, 10);
    r.u.ints = list;
  }
  return r;
}

static void parse_attrs(application *x, const char *text) {
  attr *list = NEWN(A, attr, ATTRS);
  x->at.v = list;
  while (*text) {
    size_t name = strcspn(text, "="), n = strcspn(text + name + 1, " ");
    attr v = parse_attr(attr_find(text, name), text + name + 1, n);
    u32 to = x->at.n++;
    for (; to > 0 && list[to - 1].key > v.key; to--) list[to] = list[to - 1];
    list[to] = v;
    text += name + 1 + n;
    text += strspn(text, " ");
  }
}

static bool apply(application *x) {
  x->nres = 0;
  x->l = op_law(C, A, x->op, x->at, x->nopd, x->opd, &x->nres, x->res, (loc){0});
  return x->l != NULL;
}

// Random extents for the letters that nothing ties.
static bool rescale(application *x) {
  static const i64 extents[] = {2, 3, 4, 6};
  i64 *n = NEWN(A, i64, MAX(x->l->nletters, 1));
  for (u32 k = 0; k < x->l->nletters; k++) {
    const law_letter *l = &x->l->letter[k];
    n[k] = l->flags & (LAW_FIXED | LAW_DERIVED | LAW_WHOLE) ? l->extent : extents[few(4)];
  }
  x->at = law_rescale(A, x->op, x->at, x->l, n);
  for (u32 k = 0; k < x->nopd; k++)
    for (u32 d = 0; d < x->opd[k].nd; d++) {
      const law_dim *dim = &x->l->opd[k].dim[d];
      i64 e = 1;
      for (u32 j = 0; j < dim->n; j++) e *= n[dim->f[j]];
      if (dim->n) x->opd[k].dim[d] = e;
    }
  return apply(x);
}

// ---- elements ------------------------------------------------------------------------------------------

// Integers are in 0..bound-1.
static i64 bound_of(const application *x, u32 k) {
  i64 axis = attr_int(x->at, A_axis, 0);
  const shape *s = &x->opd[0];
  switch (x->op) {
  case OP_gather:
  case OP_take:
  case OP_put: return s->dim[axis < 0 ? axis + s->nd : axis];
  case OP_gather_add: return x->res[0].dim[axis < 0 ? axis + x->res[0].nd : axis];
  case OP_gather_nd: return MIN(s->dim[1], s->dim[2]);
  case OP_scatter_nd: return s->dim[0];
  case OP_one_hot: return attr_int(x->at, A_size, 1);
  case OP_reverse: return s->dim[0] + 1;
  case OP_cross_entropy:
  case OP_pick: return s->dim[s->nd - 1];
  case OP_cross_entropy_dx: return x->opd[1].dim[x->opd[1].nd - 1];
  case OP_nll: return s->dim[1];
  case OP_moe_dispatch: return x->res[0].dim[1] * x->res[0].dim[2];
  case OP_moe_combine: return s->dim[1] * s->dim[2];
  case OP_moe_combine_dw: return x->opd[2].dim[1] * x->opd[2].dim[2];
  case OP_div:
  case OP_mod: return k ? 5 : 100; // the divisor gets 1 more
  default: return x->opd[k].t == DT_BOOL ? 2 : 100;
  }
}

static ker_tensor random_operand(const application *x, u32 k) {
  const shape *s = &x->opd[k];
  i64 n = shape_elems(s);
  ker_tensor t = ker_whole(s, arena_alloc(A, (size_t)shape_bytes(s)));
  double *v = NEWN(A, double, n);
  for (i64 i = 0; i < n; i++)
    if (dtype_kind_of(s->t) == DK_FLOAT)
      v[i] = (x->op == OP_acosh) + 0.1 + 0.8 * rng_unit(&R);
    else
      v[i] = (double)(few(bound_of(x, k)) + (k == 1 && (x->op == OP_div || x->op == OP_mod)));
  ker_convert(t.data, s->t, v, DT_F64, n);
  return t;
}

static double *as_f64(const ker_tensor *t) {
  double *v = NEWN(A, double, ker_elems(t));
  ker_convert(v, DT_F64, t->data, t->t, ker_elems(t));
  return v;
}

// Runs with results whose room is filled with `fill` before.
static bool run(const application *x, const ker_tensor *opd, ker_tensor *res, int fill) {
  static double constant[4096];
  shape s = x->res[0];
  s.t = DT_F64;
  for (u32 i = 0; i < COUNT_OF(constant); i++) constant[i] = i * 0.25;
  ker_tensor blob = ker_whole(&s, constant);
  for (u32 k = 0; k < x->nres; k++) {
    size_t bytes = (size_t)ker_elems(&res[k]) * dtype_bytes(res[k].t);
    res[k].data = memset(arena_alloc(A, bytes), fill, bytes);
  }
  ker_args args = {x->op, x->at, x->nopd, x->nres, opd, res, &blob, NULL, .threads = 1};
  return kernel_run(C, &args, (loc){0});
}

// ---- pieces --------------------------------------------------------------------------------------------

// Which pieces an index of the split letter belongs to.
typedef struct {
  u32 n;
  i64 extent;
  u8 owner[64];
} partition;

static partition random_partition(i64 extent, u32 n, int kind) {
  partition p = {n, extent, {0}};
  for (i64 i = 0; i < extent; i++)
    p.owner[i] = (u8)(kind == 0   ? i / (extent / n)                                // equal
                      : kind == 1 ? MIN(i * i / MAX(extent * extent / n, 1), n - 1) // uneven, maybe empty
                                  : MIN(i, extent - 1 - i) % n);                    // zig-zag
  return p;
}

// The letter's index of every index of a dimension; NULL if it has not the letter.
static i64 *letter_index(const application *x, const law_dim *d, i64 extent, u32 letter) {
  i64 unit = 1;
  for (u32 j = d->n; j-- > 0; unit *= x->l->letter[d->f[j]].extent)
    if (d->f[j] == letter) {
      i64 *at = NEWN(A, i64, extent);
      for (i64 i = 0; i < extent; i++) at[i] = i / unit % x->l->letter[letter].extent;
      return at;
    }
  return NULL;
}

// The piece of t that `rank` holds; its maps only (data NULL). *has: the letter occurs.
static ker_tensor piece_of(const application *x, const law_term *term, const shape *s, u32 letter,
                           const partition *p, u32 rank, bool *has) {
  ker_tensor t = ker_whole(s, NULL);
  *has = false;
  for (u32 d = 0; d < s->nd; d++) {
    const i64 *at = letter_index(x, &term->dim[d], s->dim[d], letter);
    if (!at) continue;
    i64 *index = NEWN(A, i64, s->dim[d]), n = 0;
    for (i64 i = 0; i < s->dim[d]; i++)
      if (p->owner[at[i]] == rank) index[n++] = i;
    t.index[d] = index;
    t.dim[d] = n;
    *has = true;
  }
  return t;
}

static void move(const ker_tensor *piece, void *whole, bool out) {
  ker_box b = {.nd = piece->nd};
  for (u32 d = 0; d < piece->nd; d++) {
    b.n[d] = piece->dim[d];
    (out ? b.dat : b.sat)[d] = piece->index[d];
    (out ? b.ddim : b.sdim)[d] = piece->whole[d];
    (out ? b.sdim : b.ddim)[d] = piece->dim[d];
  }
  ker_pick(&b, dtype_bytes(piece->t), out ? whole : piece->data, out ? piece->data : whole, A);
}

static double combined(reduction r, double a, double b) {
  return r == RED_MAX ? fmax(a, b) : r == RED_MIN ? fmin(a, b) : r == RED_PROD ? a * b : a + b;
}

static bool close_to(double got, double want, double tol) {
  return got == want || (got != got && want != want) || fabs(got - want) <= tol * fmax(1, fabs(want));
}

static bool same(const char *what, const application *x, const double *got, const double *want, i64 n,
                 double tol) {
  for (i64 i = 0; i < n; i++)
    if (!CHECK_MSG(close_to(got[i], want[i], tol), "%s: %s: element %lld is %.17g, not %.17g",
                   op_row_of(x->op)->name, what, (long long)i, got[i], want[i]))
      return false;
  return true;
}

static void check_split(const application *x, const ker_tensor *opd, const ker_tensor *whole, u32 letter,
                        u32 n, int kind) {
  i64 extent = x->l->letter[letter].extent;
  partition p = random_partition(extent, n, kind);
  double *sum[OP_RES_MAX];
  ker_tensor got[OP_RES_MAX];
  bool has = false;
  for (u32 k = 0; k < x->nres; k++)
    got[k] = ker_whole(&x->res[k], arena_zalloc(A, (size_t)shape_bytes(&x->res[k]) + 1));
  for (u32 rank = 0; rank < n; rank++) {
    ker_tensor in[OPDS], out[OP_RES_MAX];
    for (u32 k = 0; k < x->nopd; k++) {
      in[k] = piece_of(x, &x->l->opd[k], &x->opd[k], letter, &p, rank, &has);
      in[k].data = arena_alloc(A, (size_t)shape_bytes(&x->opd[k]) + 1);
      move(&in[k], opd[k].data, false);
    }
    for (u32 k = 0; k < x->nres; k++) out[k] = piece_of(x, &x->l->res[k], &x->res[k], letter, &p, rank, &has);
    bool ok = run(x, in, out, 0x3f);
    if (!CHECK_MSG(ok, "%s, letter %u in %u: %s", op_row_of(x->op)->name, letter, n, diag_render(C, A)))
      return;
    for (u32 k = 0; k < x->nres; k++) {
      (void)piece_of(x, &x->l->res[k], &x->res[k], letter, &p, rank, &has);
      if (has) {
        move(&out[k], got[k].data, true);
        continue;
      }
      double *v = as_f64(&out[k]);
      for (i64 i = 0, m = ker_elems(&out[k]); i < m && rank; i++)
        v[i] = combined(op_row_of(x->op)->red, sum[k][i], v[i]);
      sum[k] = v;
      ker_convert(got[k].data, got[k].t, v, DT_F64, ker_elems(&out[k]));
    }
  }
  char what[64];
  snprintf(what, sizeof what, "letter %u in %u pieces, kind %d", letter, n, kind);
  for (u32 k = 0; k < x->nres; k++)
    if (!same(what, x, as_f64(&got[k]), as_f64(&whole[k]), ker_elems(&whole[k]), 1e-12)) return;
}

static u32 splits;

static void check_splits(const application *x, const ker_tensor *opd, const ker_tensor *whole) {
  for (u32 letter = 0; letter < x->l->nletters; letter++) {
    const law_letter *l = &x->l->letter[letter];
    if (l->flags & LAW_WHOLE || l->extent > 64) continue;
    bool alone = true; // is it never one of several factors?
    for (u32 k = 0; k < x->l->nopd + x->l->nres; k++)
      for (u32 d = 0; d < x->l->opd[k].nd; d++) // results follow the operands
        for (u32 j = 0; j < x->l->opd[k].dim[d].n; j++)
          alone = alone && (x->l->opd[k].dim[d].f[j] != letter || x->l->opd[k].dim[d].n == 1);
    for (u32 n = 2; n <= 3; n++)
      for (int kind = 0; kind < 3; kind++) {
        if (kind == 0 ? l->extent % n != 0 : !alone) continue;
        arena_mark_t m = arena_mark(A);
        check_split(x, opd, whole, letter, n, kind);
        arena_release(A, m);
        splits++;
      }
  }
}

// ---- properties ----------------------------------------------------------------------------------------

static void begin(void) {
  C = ctx_new();
  A = arena_new();
}
static void end(void) {
  arena_free(A);
  ctx_free(C);
}

static void one(const example *e, void (*check)(const application *, const ker_tensor *)) {
  application x = {.op = op_find(e->op, strlen(e->op))};
  if (!CHECK_MSG(x.op != OP_none, "%s: no such row", e->op)) return;
  parse_operands(&x, e->opd);
  parse_attrs(&x, e->attrs);
  if (!CHECK_MSG(apply(&x), "%s %s %s: %s", e->op, e->opd, e->attrs, diag_render(C, A))) return;
  if (!CHECK_MSG(rescale(&x), "%s %s %s, other extents: %s", e->op, e->opd, e->attrs, diag_render(C, A)))
    return;
  ker_tensor opd[OPDS];
  for (u32 k = 0; k < x.nopd; k++) opd[k] = random_operand(&x, k);
  check(&x, opd);
}

static void each(u32 times, void (*check)(const application *, const ker_tensor *)) {
  begin();
  for (u32 i = 0; i < COUNT_OF(examples); i++)
    for (u32 n = 0; n < times; n++) {
      arena_mark_t m = arena_mark(A);
      one(&examples[i], check);
      diag_clear(C);
      arena_release(A, m);
    }
  end();
}

static ker_tensor *results(const application *x) {
  ker_tensor *res = NEWN(A, ker_tensor, x->nres);
  for (u32 k = 0; k < x->nres; k++) res[k] = ker_whole(&x->res[k], NULL);
  return res;
}

static void sharded_is_whole(const application *x, const ker_tensor *opd) {
  ker_tensor *res = results(x);
  if (!CHECK_MSG(run(x, opd, res, 0xaa), "%s: %s", op_row_of(x->op)->name, diag_render(C, A))) return;
  check_splits(x, opd, res);
}
TEST(ops_sharded_is_whole) {
  each(6, sharded_is_whole);
  CHECK_MSG(splits > 3000, "only %u splits were tried", splits);
}

static void every_element_is_written(const application *x, const ker_tensor *opd) {
  ker_tensor *p = results(x), *q = results(x);
  REQUIRE(run(x, opd, p, 0xaa) && run(x, opd, q, 0x55));
  for (u32 k = 0; k < x->nres; k++)
    CHECK_MSG(!memcmp(p[k].data, q[k].data, (size_t)shape_bytes(&x->res[k])),
              "%s: result %u has elements that are not written", op_row_of(x->op)->name, k);
}
TEST(ops_every_element_is_written) { each(2, every_element_is_written); }

// In its own storage, where the row says that it may be.
static void in_place_is_the_same(const application *x, const ker_tensor *opd) {
  if (!(op_row_of(x->op)->flags & OPF_INPLACE) || !x->nopd || !shape_same(&x->opd[0], &x->res[0])) return;
  ker_tensor *p = results(x), *q = results(x), in[OPDS];
  REQUIRE(run(x, opd, p, 0));
  memcpy(in, opd, sizeof in);
  for (u32 k = 0; k < x->nres; k++) q[k].data = arena_alloc(A, (size_t)shape_bytes(&x->res[k]));
  in[0].data = q[0].data = arena_dup(A, opd[0].data, (size_t)shape_bytes(&x->opd[0]));
  ker_args args = {x->op, x->at, x->nopd, x->nres, in, q, NULL, NULL, .threads = 1};
  REQUIRE(kernel_run(C, &args, (loc){0}));
  for (u32 k = 0; k < x->nres; k++)
    CHECK_MSG(!memcmp(p[k].data, q[k].data, (size_t)shape_bytes(&x->res[k])), "%s: other numbers in place",
              op_row_of(x->op)->name);
}
TEST(ops_in_place_is_the_same) { each(2, in_place_is_the_same); }

// The smaller types compute the same, up to their rounding of operands and results.
static void types_agree(const application *x, const ker_tensor *opd) {
  static const struct {
    dtype t;
    double tol;
  } types[] = {{DT_F32, 1e-4}, {DT_F16, 0.25}, {DT_BF16, 1}};
  ker_tensor *want = results(x);
  if (x->res[0].t != DT_F64 || x->op == OP_hardmax || x->op == OP_mod || x->op == OP_topk)
    return; // rounding may decide these
  for (u32 i = 0; i < COUNT_OF(types); i++) {
    application y = *x;
    ker_tensor in[OPDS];
    double *exact = NULL;
    memcpy(in, opd, sizeof in);
    for (u32 k = 0; k < x->nopd; k++) {
      if (x->opd[k].t != DT_F64) continue;
      y.opd[k].t = in[k].t = types[i].t;
      i64 n = shape_elems(&x->opd[k]);
      in[k].data = arena_alloc(A, (size_t)shape_bytes(&y.opd[k]));
      ker_convert(in[k].data, types[i].t, opd[k].data, DT_F64, n);
      ker_convert(opd[k].data, DT_F64, in[k].data, types[i].t, n); // the same numbers in both
    }
    if (!x->nopd || !apply(&y)) {
      diag_clear(C);
      return;
    }
    ker_tensor *got = results(&y);
    REQUIRE(run(x, opd, want, 0) && run(&y, in, got, 0));
    exact = as_f64(&want[0]);
    same(dtype_name(types[i].t), x, as_f64(&got[0]), exact, shape_elems(&x->res[0]), types[i].tol / 16);
  }
}
TEST(ops_types_agree) { each(2, types_agree); }

// ---- extreme attributes ----------------------------------------------------------------------------------

// The attribute of this key with every number in it, or only the first, replaced by v; a list of n if it was
// absent.
static attr extreme(const application *x, attr_key k, double v, u32 n, bool first_only) {
  const attr *had = attr_get(x->at, k);
  attr r = had ? *had : (attr){.key = (u16)k, .kind = (u8)attr_kind_of(k), .n = n};
  i64 whole = v >= 0x1p63 ? INT64_MAX : v != v ? 0 : (i64)v;
  i64 *ints = NEWN(A, i64, r.n + 1);
  double *floats = NEWN(A, double, r.n + 1);
  for (u32 i = 0; i < r.n; i++) {
    bool keep = first_only && i;
    ints[i] = !keep ? whole : had && r.kind == AK_INTS ? had->u.ints[i] : 1;
    floats[i] = !keep ? v : had && r.kind == AK_FLOATS ? had->u.floats[i] : 1;
  }
  switch (r.kind) {
  case AK_INT: r.u.i = whole; break;
  case AK_FLOAT: r.u.f = v; break;
  case AK_INTS: r.u.ints = ints; break;
  default: r.u.floats = floats;
  }
  return r;
}

static u32 extremes_run;

// What the law accepts has countable results, and runs unless it is long.
static void try_extreme(application x, const ker_tensor *opd, attr v) {
  attr *list = NEWN(A, attr, x.at.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < x.at.n; i++)
    if (x.at.v[i].key < v.key) list[n++] = x.at.v[i];
  list[n++] = v;
  for (u32 i = 0; i < x.at.n; i++)
    if (x.at.v[i].key > v.key) list[n++] = x.at.v[i];
  x.at = (attrs){n, list};
  if (!apply(&x)) {
    CHECK_MSG(diag_errors(C) > 0, "%s is refused without a reason", op_row_of(x.op)->name);
    return;
  }
  double elems = law_points(x.l);
  for (u32 k = 0; k < x.nres; k++) {
    double each = 1;
    for (u32 d = 0; d < x.res[k].nd; d++) {
      CHECK_MSG(x.res[k].dim[d] >= 0, "%s: a negative extent", op_row_of(x.op)->name);
      each *= (double)x.res[k].dim[d];
    }
    CHECK_MSG(each < 0x1p60, "%s: %g elements", op_row_of(x.op)->name, each);
    elems += each;
  }
  bool framed = x.op == OP_conv || x.op == OP_conv_dx || x.op == OP_conv_dw; // with borders of any size
  if (elems > 1e5 || (framed && v.key == A_pads) || v.key == A_shape) return;
  run(&x, opd, results(&x), 0);
  extremes_run++;
}

static void extremes_are_refused(const application *x, const ker_tensor *opd) {
  static const double values[] = {
      -0x1p63, -0x1p63 + 1024, -0x1p62, -0x1p32,  -0x1p31, -2,     -1,        0,  1, 2,
      7,       0x1p31,         0x1p32,  0x1.8p61, 0x1p62,  0x1p63, -INFINITY, NAN};
  for (u32 k = 1; k < A_COUNT; k++) {
    u8 kind = (u8)attr_kind_of((attr_key)k);
    const char *at = strstr(op_row_of(x->op)->attrs, attr_name((attr_key)k));
    bool list = kind == AK_INTS || kind == AK_FLOATS;
    if (!at || !(list || kind == AK_INT || kind == AK_FLOAT)) continue;
    for (u32 i = 0; i < COUNT_OF(values); i++)
      for (u32 n = 1; n <= (list && !attr_get(x->at, (attr_key)k) ? 8 : 1); n++)
        for (u32 first = 0; first <= list; first++) {
          if (values[i] != values[i] && kind != AK_FLOAT && kind != AK_FLOATS) continue;
          arena_mark_t m = arena_mark(A);
          try_extreme(*x, opd, extreme(x, (attr_key)k, values[i], n, first));
          diag_clear(C);
          arena_release(A, m);
        }
  }
}
TEST(ops_extreme_attributes) {
  each(1, extremes_are_refused);
  CHECK_MSG(extremes_run > 1000, "only %u were run", extremes_run);
}

TEST(ops_every_kernel_has_an_example) {
  for (u32 op = 1; op < OP_COUNT; op++) {
    const op_row *row = op_row_of((opcode)op);
    bool elsewhere = row->flags & OPF_COMM || op == OP_join || op == OP_part || op == OP_pack ||
                     op == OP_unpack || op == OP_call || op == OP_opaque;
    bool found = elsewhere;
    for (u32 i = 0; i < COUNT_OF(examples) && !found; i++) found = !strcmp(examples[i].op, row->name);
    CHECK_MSG(found, "%s has no example here", row->name);
  }
}
