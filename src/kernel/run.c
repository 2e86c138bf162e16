// run.c - from an operator to its kernel: widens the operands, runs, rounds the results.
//
// Idea: kernels are written for f64 and i64, and for f32 where a loop is worth it; this file is the only one that knows
// which of the others need another form of their tensors. Where tensors already have it nothing is copied.
#include "kernel/internal.h"

enum {
#define K(name, opd, res) KER_##name,
#include "kernel/kernels.def"
#undef K
  KER_ELSEWHERE,
  KER_comm = KER_ELSEWHERE, // what is not computed on one rank
  KER_join = KER_ELSEWHERE,
  KER_part = KER_ELSEWHERE,
  KER_tuple = KER_ELSEWHERE,
  KER_call = KER_ELSEWHERE,
  KER_opaque = KER_ELSEWHERE
};

typedef enum { AS_IS, AS_WIDE, AS_REAL, AS_FLOATS } form; // columns of kernels.def

static const struct {
  bool (*fn)(run *);
  form opd, res;
} kernels[] = {
#define K(name, opd, res) {ker_##name, opd, res},
#include "kernel/kernels.def"
#undef K
};

static const u8 kernel_of[OP_COUNT] = {
#define OP(name, lo, hi, nres, law, lin, types, attrs, red, flops, flags, kernel, ...)                       \
  [OP_##name] = KER_##kernel,
#include "op/ops.def"
#undef OP
};

i64 ker_span(const ker_tensor *t, u32 from, u32 to) {
  i64 n = 1;
  for (u32 d = from; d < to; d++) n *= t->dim[d];
  return n;
}

i64 ker_elems(const ker_tensor *t) { return ker_span(t, 0, t->nd); }

ker_tensor ker_whole(const shape *s, void *data) {
  ker_tensor t = {.t = s->t, .nd = s->nd, .data = data};
  for (u32 d = 0; d < s->nd; d++) t.dim[d] = t.whole[d] = s->dim[d];
  return t;
}

u32 ker_axis(const run *r, i64 axis, u32 nd) {
  (void)r;
  if (axis < 0) axis += nd;
  assert(axis >= 0 && axis <= nd); // the law has checked it
  return (u32)axis;
}

bool ker_misfit(run *r, const char *what, i64 x, i64 y) {
  diag(r->c, E_LAYOUT, r->where, "%s: pieces do not fit together: %s %lld against %lld",
       op_row_of(r->op)->name, what, (long long)x, (long long)y);
  return false;
}

bool ker_lacks(run *r, const ker_tensor *t, u32 d, i64 g) {
  diag(r->c, E_COVERAGE, r->where,
       "%s: element %lld along dimension %u is needed but not in the piece of %lld of %lld",
       op_row_of(r->op)->name, (long long)g, d, (long long)t->dim[d], (long long)t->whole[d]);
  return false;
}

bool ker_bad_value(run *r, const char *what, i64 v, i64 limit) {
  diag(r->c, E_VALUE, r->where, "%s: %s %lld is outside 0..%lld", op_row_of(r->op)->name, what, (long long)v,
       (long long)limit - 1);
  return false;
}

const i64 *ker_inverse(run *r, const ker_tensor *t, u32 d) {
  if (!t->index[d]) return NULL;
  i64 *inv = NEWN(r->a, i64, t->whole[d]);
  for (i64 g = 0; g < t->whole[d]; g++) inv[g] = -1;
  for (i64 k = t->dim[d]; k-- > 0;) inv[t->index[d][k]] = k;
  return inv;
}

const char *ker_mode(const run *r, attr_key k, const char *absent) {
  const attr *a = attr_get(r->at, k);
  return a ? sym_str(r->c, a->u.s) : absent;
}

typedef struct {
  i64 n;
  u32 parts;
  void (*job)(const void *arg, i64 from, i64 end);
  const void *arg;
} deal;

static void deal_part(void *arg, u32 i, int thread) {
  (void)thread;
  const deal *d = arg;
  d->job(d->arg, d->n * i / d->parts, d->n * (i + 1) / d->parts);
}

void ker_deal(const run *r, i64 n, i64 each, void (*job)(const void *arg, i64 from, i64 end),
              const void *arg) {
  enum { ALONE = 1 << 18, PARTS = 4 }; // elements that are not worth a thread; parts for each
  if (r->threads < 2 || n < 2 || n * each < ALONE) {
    job(arg, 0, n);
    return;
  }
  deal d = {n, (u32)MIN((i64)PARTS * r->threads, n), job, arg};
  parallel_for(r->threads, d.parts, deal_part, &d);
}

// Behind the arenas: how far each was used before.
static arena_mark_t *marks_of(arena **a, int threads) { return (arena_mark_t *)(void *)(a + threads); }

arena **ker_scratches(run *r, int threads) {
  arena **a = arena_alloc(r->a, (size_t)threads * (sizeof *a + sizeof(arena_mark_t)));
  a[0] = r->a;
  for (int t = 1; t < threads; t++) {
    a[t] = r->temps ? r->temps[t - 1] : arena_new();
    marks_of(a, threads)[t] = arena_mark(a[t]);
  }
  return a;
}

void ker_scratches_free(const run *r, arena **a, int threads) {
  for (int t = 1; t < threads; t++)
    if (r->temps)
      arena_release(a[t], marks_of(a, threads)[t]);
    else
      arena_free(a[t]);
}

// f32 where every float is stored so.
static dtype real_of(const ker_args *k) {
  bool any = false;
  for (u32 i = 0; i < k->nopd + k->nres; i++) {
    const ker_tensor *t = i < k->nopd ? &k->opd[i] : &k->res[i - k->nopd];
    if (!is_float(t)) continue;
    if (t->t != DT_F32) return DT_F64;
    any = true;
  }
  return any ? DT_F32 : DT_F64;
}

static bool fits(const run *r, form f, const ker_tensor *t) {
  if (f == AS_FLOATS && !is_float(t)) return true;
  const bool real = f == AS_REAL || f == AS_FLOATS;
  return f == AS_IS || dtype_bytes(t->t) == 8 || (real && is_float(t) && r->real == DT_F32);
}

// Operands as the kernel wants them; the same operand twice is widened twice, which is rare.
static ker_tensor *operands(run *r, const ker_args *k, form f) {
  ker_tensor *t = arena_dup(r->a, k->opd, sizeof *t * k->nopd);
  for (u32 i = 0; i < k->nopd; i++) {
    if (fits(r, f, &t[i])) continue;
    i64 count = ker_elems(&t[i]);
    t[i].data = NEWN(r->a, u64, count);
    if (is_float(&t[i]))
      ker_load_f64(t[i].data, t[i].t, k->opd[i].data, count);
    else
      ker_load_i64(t[i].data, t[i].t, k->opd[i].data, count);
  }
  return t;
}

static void narrow(ker_tensor *to, const ker_tensor *from) {
  if (is_float(to))
    ker_store_f64(to->data, to->t, from->data, ker_elems(to));
  else
    ker_store_i64(to->data, to->t, from->data, ker_elems(to));
}

bool kernel_run(ctx *c, const ker_args *k, loc where) {
  u8 id = k->op < OP_COUNT ? kernel_of[k->op] : KER_own;
  if (id == KER_ELSEWHERE) {
    diag(c, E_VERIFY, where, "%s is not computed on one rank", op_row_of(k->op)->name);
    return false;
  }
  arena *a = k->scratch ? k->scratch : arena_new();
  arena_mark_t mark = arena_mark(a);
  run r = {.c = c,
           .a = a,
           .where = where,
           .op = k->op,
           .at = k->at,
           .nopd = k->nopd,
           .nres = k->nres,
           .blob = k->blob,
           .threads = k->threads,
           .temps = k->temps,
           .step = k->step,
           .real = kernels[id].opd >= AS_REAL || kernels[id].res == AS_REAL ? real_of(k) : DT_F64};
  r.v = ker_loops_of(r.real);
  r.opd = operands(&r, k, kernels[id].opd);
  r.res = arena_dup(a, k->res, sizeof *k->res * k->nres);
  const form f = kernels[id].res;
  for (u32 i = 0; i < k->nres; i++)
    if (!fits(&r, f, &k->res[i])) r.res[i].data = NEWN(a, u64, ker_elems(&k->res[i]));
  bool ok = kernels[id].fn(&r);
  for (u32 i = 0; i < k->nres && ok; i++)
    if (!fits(&r, f, &k->res[i])) narrow(&k->res[i], &r.res[i]);
  arena_release(a, mark);
  if (!k->scratch) arena_free(a);
  return ok;
}

bool kernel_fold(ctx *c, arena *a, opcode op, attrs at, const ker_tensor *blob, u32 nopd,
                 const ker_tensor *opd, u32 nres, ker_tensor *res, loc where) {
  shape *in = NEWN(a, shape, nopd), out[OP_RES_MAX];
  for (u32 k = 0; k < nopd; k++) {
    in[k] = (shape){.t = opd[k].t, .nd = opd[k].nd};
    memcpy(in[k].dim, opd[k].dim, sizeof in[k].dim);
  }
  u32 n = nres;
  if (!op_law(c, a, op, at, nopd, in, &n, out, where)) return false;
  assert(n == nres);
  for (u32 k = 0; k < n; k++) res[k] = ker_whole(&out[k], arena_alloc(a, (size_t)shape_bytes(&out[k])));
  ker_args args = {
      .op = op, .at = at, .nopd = nopd, .nres = nres, .opd = opd, .res = res, .blob = blob, .threads = 1};
  return kernel_run(c, &args, where);
}
