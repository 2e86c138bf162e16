// concrete.c - mixed concrete and abstract inference: building a program while evaluating what its shapes
// hang on. Not constant folding: what is large or two-dimensional stays an instruction, so that plans can
// split it and the verifier can shrink it.
//
// Idea: importers write every operator once, on mixed values. Chains of Shape, Gather, Concat, Mul ... on
// extents disappear because their operands are known; the same operators on tensors become instructions.
#include "infer/infer.h"
#include "kernel/kernel.h"

enum { KNOWN_INTS = 1 << 16, KNOWN_FLOATS = 64, KNOWN_MATRIX = 32 };

mixer mix_at(prog *p, func f, arena *a) {
  mixer m = {.b = builder_at(p, f), .a = a};
  *vec_push(a, &m.v) = (mixed_info){0};
  return m;
}

static mixed add(mixer *m, const shape *s, const void *known, value v) {
  *vec_push(m->a, &m->v) = (mixed_info){.s = *s, .known = known, .v = v};
  return m->v.n - 1;
}

mixed mix_value(mixer *m, value v) {
  return v ? add(m, &val_type(m->b.p, func_get(m->b.p, m->b.f), v)->s, NULL, v) : 0;
}

mixed mix_known(mixer *m, const shape *s, const void *elems) { return add(m, s, elems, 0); }

mixed mix_i64s(mixer *m, const i64 *x, u32 n) {
  shape s = {.t = DT_I64, .nd = 1, .dim = {n}};
  return mix_known(m, &s, arena_dup(m->a, x, n * sizeof *x));
}

mixed mix_full(mixer *m, dtype t, double x) {
  shape s = {.t = t};
  void *elem = arena_zalloc(m->a, 16);
  ker_convert(elem, t, &x, DT_F64, 1);
  return mix_known(m, &s, elem);
}

bool mix_read(const mixer *m, mixed x, i64 *out) {
  const mixed_info *i = &m->v.v[x];
  if (!x || !i->known) return false;
  ker_load_i64(out, i->s.t, i->known, shape_elems(&i->s));
  return true;
}

bool mix_read_f64(const mixer *m, mixed x, double *out) {
  const mixed_info *i = &m->v.v[x];
  if (!x || !i->known) return false;
  ker_load_f64(out, i->s.t, i->known, shape_elems(&i->s));
  return true;
}

// ---- into the program ----------------------------------------------------------------------------------
// beta + alpha * i along the only extent above 1 (axis), exactly in f64; alpha 0: all elements are equal.
static bool progression(const mixed_info *x, arena *a, i64 *axis, double *alpha, double *beta) {
  const i64 exact = (i64)1 << 53;
  i64 n = shape_elems(&x->s);
  if (n == 0 || n > KNOWN_INTS) return false;
  if (dtype_kind_of(x->s.t) == DK_FLOAT) {
    u32 size = dtype_bytes(x->s.t);
    for (i64 i = 1; i < n; i++)
      if (memcmp(x->known, (const u8 *)x->known + i * size, size)) return false;
    *alpha = 0;
    ker_load_f64(beta, x->s.t, x->known, 1);
    return true;
  }
  arena_mark_t mark = arena_mark(a);
  i64 *v = NEWN(a, i64, n), long_dims = 0;
  ker_load_i64(v, x->s.t, x->known, n);
  for (u32 d = 0; d < x->s.nd; d++)
    if (x->s.dim[d] > 1) long_dims++, *axis = d;
  bool ok = true;
  for (i64 i = 0; i < n && ok; i++) ok = v[i] > -exact && v[i] < exact;
  i64 step = ok && n > 1 ? v[1] - v[0] : 0;
  ok = ok && (step == 0 || (long_dims == 1 && dtype_kind_of(x->s.t) != DK_BOOL));
  for (i64 i = 1; i < n && ok; i++) ok = v[i] - v[i - 1] == step;
  *alpha = (double)step, *beta = (double)v[0];
  arena_release(a, mark);
  return ok;
}

value mix_emit(mixer *m, mixed x) {
  if (!x || m->b.failed || m->v.v[x].v) return x && !m->b.failed ? m->v.v[x].v : 0;
  mixed_info k = m->v.v[x];
  i64 axis = 0;
  double alpha, beta;
  attr at[5] = {attr_t(A_dtype, k.s.t), attr_v(A_shape, k.s.dim, k.s.nd)};
  value v;
  if (!progression(&k, m->a, &axis, &alpha, &beta)) {
    at[2] = attr_d(A_data, data_add(m->b.p, &k.s, k.known, true));
    v = build(&m->b, OP_constant, NULL, 0, at, 3);
  } else if (alpha == 0) {
    at[2] = attr_f(A_value, beta);
    v = build(&m->b, OP_full, NULL, 0, at, 3);
  } else {
    at[2] = attr_i(A_axis, axis), at[3] = attr_f(A_alpha, alpha), at[4] = attr_f(A_beta, beta);
    v = build(&m->b, OP_iota, NULL, 0, at, 5);
  }
  return m->v.v[x].v = v;
}

// ---- operations ----------------------------------------------------------------------------------------
static bool shape_like(const shape *s) {
  u32 wide = 0;
  bool real = dtype_kind_of(s->t) == DK_FLOAT;
  for (u32 d = 0; d < s->nd; d++) wide += s->dim[d] != 1;
  i64 n = shape_elems(s);
  return wide <= 1 ? n <= (real ? KNOWN_FLOATS : KNOWN_INTS) : !real && n <= KNOWN_MATRIX;
}

static attrs sorted(attr *to, const attr *at, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u32 k = i;
    for (; k > 0 && to[k - 1].key > at[i].key; k--) to[k] = to[k - 1];
    to[k] = at[i];
  }
  return (attrs){n, to};
}

static ker_tensor known_elements(const mixer *m, mixed x) {
  return ker_whole(&m->v.v[x].s, (void *)m->v.v[x].known);
}

// Results are evaluated if they all are shape-like. 0: they are not, or the kernel refused (b.failed).
static mixed evaluate(mixer *m, opcode op, attrs at, const mixed *opd, u32 n, const shape *res, u32 nres) {
  for (u32 k = 0; k < nres; k++)
    if (!shape_like(&res[k])) return 0;
  mixed first = m->v.n;
  if (op_row_of(op)->flags & OPF_VIEW && n == 1 && nres == 1) return add(m, res, m->v.v[opd[0]].known, 0);
  ker_tensor out[OP_RES_MAX], few[8], blob;
  for (u32 k = 0; k < nres; k++)
    out[k] = ker_whole(&res[k], arena_alloc(m->a, (size_t)shape_bytes(&res[k]) + 1));
  arena_mark_t mark = arena_mark(m->a);
  ker_tensor *in = n <= COUNT_OF(few) ? few : NEWN(m->a, ker_tensor, n);
  for (u32 k = 0; k < n; k++) in[k] = known_elements(m, opd[k]);
  const attr *data = attr_get(at, A_data);
  if (data) {
    const data_info *d = &m->b.p->data.v[data->u.data];
    shape s = {.t = d->t, .nd = d->nd};
    memcpy(s.dim, d->dim, sizeof s.dim);
    blob = ker_whole(&s, (void *)d->bytes);
  }
  ker_args args = {.op = op,
                   .at = at,
                   .nopd = n,
                   .nres = nres,
                   .opd = in,
                   .res = out,
                   .blob = data ? &blob : NULL,
                   .scratch = m->a,
                   .threads = 1};
  bool ok = kernel_run(m->b.p->c, &args, m->b.where);
  arena_release(m->a, mark);
  for (u32 k = 0; k < nres && ok; k++) add(m, &res[k], out[k].data, 0);
  m->b.failed = !ok;
  return ok ? first : 0;
}

mixed mix_op(mixer *m, opcode op, const mixed *opd, u32 n, const attr *at, u32 nat, u32 nres) {
  prog *p = m->b.p;
  shape few[16], res[OP_RES_MAX], *in = n <= COUNT_OF(few) ? few : NEWN(m->a, shape, n);
  attr order[16];
  assert(nat <= COUNT_OF(order));
  bool known = !(op_row_of(op)->flags & (OPF_RANDOM | OPF_COMM));
  for (u32 k = 0; k < n; k++) {
    if (!opd[k]) m->b.failed = true;
    in[k] = m->v.v[opd[k]].s;
    known = known && m->v.v[opd[k]].known;
  }
  if (m->b.failed) return 0;
  attrs as = sorted(order, at, nat);
  arena_mark_t mark = arena_mark(m->a);
  bool legal = op_law(p->c, m->a, op, as, n, in, &nres, res, m->b.where);
  arena_release(m->a, mark);
  if (!legal) m->b.failed = true;
  mixed first = legal && known ? evaluate(m, op, as, opd, n, res, nres) : 0;
  if (first || m->b.failed) return first;

  value some[16], *v = n <= COUNT_OF(some) ? some : NEWN(m->a, value, n);
  for (u32 k = 0; k < n; k++) v[k] = mix_emit(m, opd[k]);
  if (m->b.failed) return 0;
  type t[OP_RES_MAX];
  for (u32 k = 0; k < nres; k++) t[k] = type_tensor(p, &res[k], (layout){0}, m->b.g);
  value r = emit_res(p, m->b.f, emit(&m->b, op, attrs_of(p, at, nat), v, n, t, nres));
  first = m->v.n;
  for (u32 k = 0; k < nres; k++) add(m, &res[k], NULL, r + k);
  return first;
}
