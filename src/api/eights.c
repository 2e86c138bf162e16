// eights.c - extents of 16-bit matmuls that tensor cores take badly, told once of a model. Not what they cost: the cost model
// does not know.
#include "api/internal.h"
#include "front/front.h"
#include "machine/machine.h"

// A weight matters that has so many elements, and one in PART of the model's.
enum { EIGHT = 8, SMALL = 1 << 20, PART = 20 };

// Has the device tensor cores for the type?
static bool has_cores(const device_kind *d, dtype t) {
  enum { FASTER = 3 };
  return dtype_bytes(t) == 2 && d->rate[t] >= FASTER * d->rate[DT_F32];
}

// Is the value multiplied: in calls, and behind what only gives it another form?
static bool is_multiplied(const prog *p, func fn, value v, u32 depth) {
  enum { DEEPEST = 16 };
  const func_info *f = func_get(p, fn);
  for (u32 k = 0; k < f->body.n && depth < DEEPEST; k++) {
    const instr *i = &f->body.v[k];
    for (u32 j = 0, n = instr_nopd(f, i); j < n; j++) {
      if (opd_of(f, i, j) != v) continue;
      if (i->op == OP_matmul || i->op == OP_einsum) return true;
      if (i->op == OP_call && is_multiplied(p, i->callee, j + 1, depth + 1)) return true;
      if ((i->op == OP_transpose || i->op == OP_identity) && is_multiplied(p, fn, i->res, depth + 1))
        return true;
    }
  }
  return false;
}

// Of the last two dimensions, which a product has; 0: both are multiples.
static i64 odd_extent(const shape *s) {
  for (u32 d = s->nd < 2 ? s->nd : s->nd - 2; d < s->nd; d++)
    if (s->dim[d] % EIGHT) return s->dim[d];
  return 0;
}

static bool is_vocabulary(const heddle_program *p, i64 extent, arena *a) {
  const func_info *m = func_get(p->p, p->p->main);
  const eval_uses *all = eval_uses_of(p->p, a);
  for (u32 k = 0; k < m->nparams; k++)
    if (m->params.v[k].r == ROLE_INPUT && eval_index_bound(all, k) == extent) return true;
  return false;
}

static void tell(const heddle_program *p, const device_kind *d, sym name, const shape *s) {
  ctx *c = p->p->c;
  const i64 odd = odd_extent(s), next = (odd + EIGHT - 1) / EIGHT * EIGHT;
  arena *a = arena_new();
  diag(c, W_EIGHTS, func_get(p->p, p->p->main)->where,
       "%s of %s has an extent of %lld in %s: its matmuls are slower on %s than simulated, as %lld is not a "
       "multiple of 8",
       sym_str(c, name), p->name, (long long)odd, dtype_name(s->t), sym_str(c, d->name), (long long)odd);
  if (front_kind_of(p->name) == FRONT_FAMILY && is_vocabulary(p, odd, a))
    diag_hint(c, "--vocab %lld", (long long)next);
  else
    diag_hint(c, "the next multiple is %lld", (long long)next);
  arena_free(a);
}

static i64 weight_elems(const prog *p, const func_info *f, u32 param) {
  const type_info *t = val_type(p, f, param + 1);
  return f->params.v[param].r != ROLE_WEIGHT || t->tuple ? 0 : shape_elems(&t->s);
}

void program_tell_eights(heddle_program *p, const machine *m) {
  const func_info *f = func_get(p->p, p->p->main);
  i64 all = 0;
  if (machine_is_measured(m)) return;
  for (u32 k = 0; k < f->nparams; k++) all += weight_elems(p->p, f, k);
  for (u32 k = 0; k < f->nparams && !p->told_eights; k++) {
    const type_info *t = val_type(p->p, f, k + 1);
    const i64 n = weight_elems(p->p, f, k);
    if (n < MAX(SMALL, all / PART) || !odd_extent(&t->s)) continue;
    u32 kind = 0;
    while (kind < m->nkinds && !has_cores(&m->kind[kind], t->s.t)) kind++;
    if (kind == m->nkinds || !is_multiplied(p->p, p->p->main, k + 1, 0)) continue;
    p->told_eights = true;
    tell(p, &m->kind[kind], f->values.v[k + 1].name, &t->s);
  }
}
