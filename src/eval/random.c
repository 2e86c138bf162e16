// random.c - inputs for a program that nobody gave inputs for.
//
// Idea: numbers come from the seed, the parameter's number and the element's index, so every way of sharding
// the same program sees the same ones. What a parameter must be like is found from its uses, followed through
// views and calls: a gain lies around 1, a variance is positive, an index stays below its extent.
#include "eval/internal.h"
#include <math.h>

typedef enum {
  USE_ANY,
  USE_GAIN,
  USE_MEAN,
  USE_VARIANCE,
  USE_PROBABILITY,
  USE_SQUARE,
  USE_INDEX
} use_kind; // the later rules
typedef struct {
  use_kind kind;
  bool running; // mean or variance of a batchnorm
  bool ignores; // USE_INDEX: what is `ignored` does not count
  i64 ignored;
  i64 bound; // USE_INDEX: indices are below
} use_info;
struct eval_uses {
  u32 n;
  use_info *of; // by parameter
};

typedef struct {
  const prog *p;
  arena *a;
  uses *of; // by function; begin NULL: not yet known
} tracer;

static void index_below(use_info *u, i64 bound) {
  u->bound = u->kind == USE_INDEX ? MIN(u->bound, bound) : bound;
  u->kind = USE_INDEX;
}

static void at_least(use_info *u, use_kind k) { u->kind = MAX(u->kind, k); }

static void trace(tracer *t, func fn, value v, use_info *u, u32 depth);

// A number that the program states.
static bool is_stated(const func_info *f, value v) {
  u32 def = f->values.v[v].def;
  opcode op = def ? (opcode)f->body.v[def - 1].op : OP_none;
  return def ? op == OP_full || op == OP_constant || op == OP_iota : f->params.v[v - 1].r == ROLE_CONST;
}

// What must be positive when something is added to it, or subtracted from it.
static void note_sum(tracer *t, func fn, const func_info *f, const instr *i, u32 opd, use_info *u,
                     u32 depth) {
  use_info sum = {0};
  if (instr_nopd(f, i) == 2 && !is_stated(f, opd_of(f, i, 1 - opd))) return;
  trace(t, fn, i->res, &sum, depth + 1);
  bool negated = i->op == OP_neg || (i->op == OP_sub && opd == 1);
  if (sum.kind == USE_VARIANCE || sum.kind == USE_PROBABILITY)
    at_least(u, negated ? USE_PROBABILITY : sum.kind);
}

static i64 dim_of(const prog *p, const func_info *f, const instr *i, u32 opd, i64 axis) {
  const type_info *t = val_type(p, f, opd_of(f, i, opd));
  return t->s.nd ? t->s.dim[axis < 0 ? axis + t->s.nd : axis] : 1;
}

i64 eval_operand_bound(const prog *p, const func_info *f, const instr *i, u32 opd) {
  const attrs at = attrs_get(p, i->at);
  const i64 axis = attr_int(at, A_axis, 0);
  i64 least = 0;
  if (i->op == OP_one_hot) return attr_int(at, A_size, 1);
  if (opd != (i->op == OP_cross_entropy_dx ? 2 : 1)) return 0;
  switch (i->op) {
  case OP_gather:
  case OP_take:
  case OP_put: return dim_of(p, f, i, 0, axis);
  case OP_gather_add: {
    const type_info *t = val_type(p, f, i->res);
    return t->s.dim[axis < 0 ? axis + t->s.nd : axis];
  }
  case OP_gather_nd:
  case OP_scatter_nd:
    for (i64 k = 0, n = dim_of(p, f, i, 1, -1), b = attr_int(at, A_batch_dims, 0); k < n; k++) {
      const i64 bound = dim_of(p, f, i, 0, b + k);
      least = least ? MIN(least, bound) : bound;
    }
    return least;
  case OP_cross_entropy:
  case OP_pick: return dim_of(p, f, i, 0, -1);
  case OP_cross_entropy_dx: return dim_of(p, f, i, 1, -1);
  case OP_nll: return dim_of(p, f, i, 0, 1);
  case OP_reverse: return dim_of(p, f, i, 0, axis) + 1;
  case OP_moe_dispatch: return val_type(p, f, i->res)->s.dim[1] * val_type(p, f, i->res)->s.dim[2];
  case OP_moe_combine: return dim_of(p, f, i, 0, 1) * dim_of(p, f, i, 0, 2);
  case OP_moe_combine_dw: return dim_of(p, f, i, 2, 1) * dim_of(p, f, i, 2, 2);
  default: return 0;
  }
}

// One use as operand `opd` of an instruction.
static void note_use(tracer *t, func fn, const func_info *f, const instr *i, u32 opd, use_info *u,
                     u32 depth) {
  const i64 bound = eval_operand_bound(t->p, f, i, opd);
  if (bound) {
    const attr *ignored = attr_get(attrs_get(t->p, i->at), A_ignore);
    index_below(u, bound);
    if (ignored) u->ignores = true, u->ignored = ignored->u.i;
    return;
  }
  switch (i->op) {
  case OP_layernorm:
  case OP_rmsnorm:
  case OP_batchnorm_train:
  case OP_groupnorm:
    if (opd == 1) at_least(u, USE_GAIN);
    return;
  case OP_batchnorm:
    if (opd == 1) at_least(u, USE_GAIN);
    if (opd == 3) at_least(u, USE_MEAN);
    if (opd == 4) at_least(u, USE_VARIANCE);
    u->running = opd >= 3;
    return;
  case OP_sqrt:
  case OP_rsqrt:
  case OP_log:
  case OP_acosh: at_least(u, USE_VARIANCE); return;
  case OP_asin:
  case OP_acos:
  case OP_atanh: at_least(u, USE_PROBABILITY); return;
  case OP_add:
  case OP_accumulate:
  case OP_sub:
  case OP_neg:
  case OP_offset: note_sum(t, fn, f, i, opd, u, depth); return;
  case OP_adafactor_v:
  case OP_adafactor_rc:
    if (opd >= 2) at_least(u, USE_SQUARE);
    return;
  case OP_call: trace(t, i->callee, opd + 1, u, depth + 1); return;
  case OP_pack:
  case OP_unpack:
  case OP_opaque: return;
  default: break;
  }
  // What only moves elements hands them on.
  const op_row *row = op_row_of(i->op);
  bool moves = row->flags & OPF_COMM || i->op == OP_join || i->op == OP_part || i->op == OP_identity ||
               i->op == OP_stop_gradient || i->op == OP_reshape || i->op == OP_transpose ||
               i->op == OP_slice || i->op == OP_split || i->op == OP_expand || i->op == OP_concat ||
               i->op == OP_cast;
  if (!moves) return;
  for (u32 k = 0; k < i->nres; k++) trace(t, fn, i->res + k, u, depth + 1);
}

static void trace(tracer *t, func fn, value v, use_info *u, u32 depth) {
  const func_info *f = func_get(t->p, fn);
  uses *s = &t->of[fn.i];
  if (depth > 64) return; // deeper than any model's calls and views; what is found by then stands
  if (!s->begin) *s = func_uses(t->a, f);
  for (u32 k = s->begin[v]; k < s->begin[v + 1]; k++) {
    if (!s->use[k]) continue;
    const instr *i = &f->body.v[s->use[k] - 1];
    for (u32 j = 0, n = instr_nopd(f, i); j < n; j++)
      if (opd_of(f, i, j) == v) note_use(t, fn, f, i, j, u, depth);
  }
}

const eval_uses *eval_uses_of(const prog *p, arena *a) {
  eval_uses *u = NEW(a, eval_uses);
  u->n = func_get(p, p->main)->nparams;
  u->of = ZNEWN(a, use_info, u->n + 1);
  arena *scratch = arena_new();
  tracer t = {p, scratch, ZNEWN(scratch, uses, p->funcs.n)};
  for (u32 k = 0; k < u->n; k++) trace(&t, p->main, k + 1, &u->of[k], 0);
  arena_free(scratch);
  return u;
}

i64 eval_index_bound(const eval_uses *u, u32 k) {
  return k < u->n && u->of[k].kind == USE_INDEX ? u->of[k].bound : 0;
}

bool eval_index_ignored(const eval_uses *u, u32 k, i64 v) {
  return k < u->n && u->of[k].ignores && u->of[k].ignored == v;
}

static i64 fan_of(const shape *s) {
  i64 n = shape_elems(s);
  return s->nd < 2 || !n ? 1 : MAX(s->dim[0], n / s->dim[0]);
}

// Sum of four uniform numbers from one draw: near enough to normal for weights, and ten times as fast.
static double bell(u64 key, u64 k) {
  u64 x = hash_u64(k + 1, key);
  double sum = (double)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48));
  return (sum / 65536 - 2 + 2. / 65536) * 1.7320508075688772;
}

static double element(dtype t, role r, const use_info *u, double scale, u64 key, u64 k) {
  if (t == DT_BOOL) return ker_uniform(key, k) > 0.25;
  if (dtype_kind_of(t) != DK_FLOAT)
    return floor(ker_uniform(key, k) * (double)(u->kind == USE_INDEX ? MAX(u->bound, 1) : 2));
  double z = bell(key, k);
  switch (u->kind) {
  case USE_GAIN: return 1 + 0.1 * z;
  case USE_MEAN: return 0.1 * z;
  case USE_VARIANCE: return 1 + 0.5 * fabs(z);
  case USE_PROBABILITY: return 0.05 + 0.9 * ker_uniform(key, k);
  case USE_SQUARE: return 1e-8 * fabs(z); // of gradients: so small that most updates are clipped
  default: return r == ROLE_STATE ? 0.01 * fabs(z) : scale * z;
  }
}

static bool all_equal(const data_info *d) {
  u32 size = dtype_bytes(d->t);
  const char *x = d->bytes;
  return d->size > size && !memcmp(x, x + size, (size_t)d->size - size);
}

static void fill(const prog *p, eval_array *x, const param_info *pi, const use_info *u, u64 key,
                 bool telling) {
  enum { CHUNK = 512 };
  i64 n = shape_elems(&x->s);
  dtype t = x->s.t;
  const data_info *d = pi->data ? &p->data.v[pi->data] : NULL;
  if (d && d->bytes && !(telling && (pi->r == ROLE_WEIGHT || u->running) && all_equal(d))) {
    ker_convert(x->data, t, d->bytes, d->t, n);
    return;
  }
  double scale = pi->r != ROLE_WEIGHT ? 1 : x->s.nd < 2 ? 0.1 : 1 / sqrt((double)fan_of(&x->s)), v[CHUNK];
  for (i64 k = 0; k < n; k += CHUNK) {
    i64 m = MIN(n - k, (i64)CHUNK);
    for (i64 j = 0; j < m; j++) v[j] = element(t, pi->r, u, scale, key, (u64)(k + j));
    ker_convert((char *)x->data + (size_t)k * dtype_bytes(t), t, v, DT_F64, m);
  }
}

void eval_masters(const prog *p, eval_array *in) {
  static const char suffix[] = ".master";
  const func_info *f = func_get(p, p->main);
  hmap named = {0};
  arena *a = arena_new();
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_WEIGHT) hmap_add(a, &named, val(f, k + 1)->name.i, k);
  for (u32 k = 0; k < f->nparams; k++) {
    const char *name = sym_str(p->c, val(f, k + 1)->name);
    size_t n = strlen(name), m = sizeof suffix - 1;
    if (f->params.v[k].r != ROLE_STATE || n <= m || strcmp(name + n - m, suffix)) continue;
    sym w = sym_ofn(p->c, name, n - m);
    for (u32 it = 0, id; hmap_next(&named, w.i, &it, &id);)
      if (val(f, id + 1)->name.i == w.i && shape_elems(&in[id].s) == shape_elems(&in[k].s))
        ker_convert(in[k].data, in[k].s.t, in[id].data, in[id].s.t, shape_elems(&in[k].s));
  }
  arena_free(a);
}

typedef enum { FILL_RANDOM, FILL_TELLING, FILL_INITIAL } filling;

static bool fill_all(const prog *p, const eval_uses *model, u64 seed, eval_array *in, u32 nin, arena *a,
                     filling how) {
  const func_info *f = func_get(p, p->main);
  if (nin != f->nparams) {
    diag(p->c, E_ARITY, f->where, "main takes %u inputs, %u were asked for", f->nparams, nin);
    return false;
  }
  for (u32 k = 0; k < nin; k++) {
    in[k].s = eval_param_shape(p, k);
    in[k].data = arena_alloc(a, (size_t)shape_bytes(&in[k].s));
  }
  arena_mark_t mark = arena_mark(a);
  const eval_uses *own = eval_uses_of(p, a);
  for (u32 k = 0; k < nin; k++)
    if (how == FILL_INITIAL && f->params.v[k].r == ROLE_STATE)
      base_zero(in[k].data, (size_t)shape_bytes(&in[k].s));
    else
      fill(p, &in[k], &f->params.v[k], model && k < model->n ? &model->of[k] : &own->of[k],
           hash_u64(k + 1, seed + 1), how == FILL_TELLING);
  arena_release(a, mark);
  eval_masters(p, in);
  return true;
}

bool eval_random(const prog *p, u64 seed, eval_array *in, u32 nin, arena *a) {
  return fill_all(p, NULL, seed, in, nin, a, FILL_RANDOM);
}
bool eval_random_as(const prog *p, const eval_uses *model, u64 seed, eval_array *in, u32 nin, arena *a) {
  return fill_all(p, model, seed, in, nin, a, FILL_RANDOM);
}
bool eval_initial(const prog *p, const eval_uses *model, u64 seed, eval_array *in, u32 nin, arena *a) {
  return fill_all(p, model, seed, in, nin, a, FILL_INITIAL);
}

bool eval_telling(const prog *p, u64 seed, eval_array *in, u32 nin, arena *a) {
  return fill_all(p, NULL, seed, in, nin, a, FILL_TELLING);
}

i64 eval_bound(const prog *p, u32 k) {
  arena *a = arena_new();
  tracer t = {p, a, ZNEWN(a, uses, p->funcs.n)};
  use_info u = {0};
  trace(&t, p->main, k + 1, &u, 0);
  arena_free(a);
  return u.kind == USE_INDEX ? u.bound : 0;
}
