// operators.c - operators of the user's own behind heddle.h: from a row of the public header to one of op/, and from calls
// of the library to the functions that the row has.
#include "api/internal.h"
#include "kernel/kernel.h"
#include <dlfcn.h>

typedef struct {
  heddle_operator_row row;
  opcode op;
} own;

enum { PIECES_MOST = 16 };

// ---- calls of its functions -------------------------------------------------------------------------------
typedef struct {
  heddle_application x;
  heddle_piece piece[PIECES_MOST];
  heddle_attribute at[A_COUNT];
} application_of;

static void put_attributes(const own *o, attrs at, application_of *to) {
  double x;
  u32 n = 0;
  for (u32 k = A_NONE + 1; k < A_COUNT; k++) {
    const attr_key key = (attr_key)k;
    const attr *a = op_takes(o->op, key) ? attr_get(at, key) : NULL;
    heddle_attribute *out = &to->at[n];
    *out = (heddle_attribute){.name = attr_name(key)};
    if (a && a->kind == AK_INTS)
      out->list = a->u.ints, out->n = a->n, n++;
    else if (a)
      out->number = a->kind == AK_INT ? (double)a->u.i : a->u.f, n++;
    else if (op_takes(o->op, key) && op_default(o->op, key, &x, 1))
      out->number = x, n++;
  }
  to->x.attributes = to->at, to->x.nattributes = n;
}

static void begin(const own *o, attrs at, u32 nopd, u32 nres, application_of *to) {
  assert(nopd + nres <= PIECES_MOST); // op_register has seen to it
  to->x.noperands = nopd, to->x.nresults = nres;
  to->x.operands = to->piece, to->x.results = to->piece + nopd;
  put_attributes(o, at, to);
}

static heddle_piece extents(const shape *s) {
  const bool typed = s->t != DT_NONE;
  return (heddle_piece){.dtype = typed ? dtype_name(s->t) : NULL,
                        .element_bytes = typed ? dtype_bytes(s->t) : 0,
                        .ndims = s->nd,
                        .dims = s->dim};
}

static double ask(const own *o, double (*f)(void *, const heddle_application *), attrs at, u32 nopd,
                  const shape *opd, u32 nres, const shape *res) {
  application_of to;
  begin(o, at, nopd, nres, &to);
  for (u32 k = 0; k < nopd + nres; k++) to.piece[k] = extents(k < nopd ? &opd[k] : &res[k - nopd]);
  return f(o->row.arg, &to.x);
}

static double flops_of(const op_own *x, attrs at, u32 nopd, const shape *opd, u32 nres, const shape *res) {
  const own *o = x->of;
  return ask(o, o->row.flops_of, at, nopd, opd, nres, res);
}
static double bytes_of(const op_own *x, attrs at, u32 nopd, const shape *opd, u32 nres, const shape *res) {
  const own *o = x->of;
  return ask(o, o->row.bytes_of, at, nopd, opd, nres, res);
}

static bool kernel_of(const op_own *x, attrs at, u32 nopd, const ker_tensor *opd, u32 nres, ker_tensor *res) {
  const own *o = x->of;
  application_of to;
  begin(o, at, nopd, nres, &to);
  for (u32 k = 0; k < nopd + nres; k++) {
    const ker_tensor *t = k < nopd ? &opd[k] : &res[k - nopd];
    to.piece[k] = (heddle_piece){.dtype = dtype_name(t->t),
                                 .element_bytes = dtype_bytes(t->t),
                                 .ndims = t->nd,
                                 .dims = t->dim,
                                 .whole = t->whole,
                                 .index = t->index,
                                 .data = t->data};
  }
  return o->row.kernel(o->row.arg, &to.x);
}

// ---- registration -----------------------------------------------------------------------------------------
static bool reduction_of(heddle_session *s, const heddle_operator_row *r, reduction *out) {
  static const char *const word[] = {"sum", "max", "min", "prod"};
  static const reduction red[] = {RED_SUM, RED_MAX, RED_MIN, RED_PROD};
  *out = RED_NONE;
  for (u32 k = 0; r->reduction && k < COUNT_OF(word); k++)
    if (!strcmp(r->reduction, word[k])) *out = red[k];
  if (!r->reduction || *out != RED_NONE) return true;
  diag(s->c, E_OPERATOR, (loc){0}, "%s.reduction: parts do not combine by '%s'",
       r->name ? r->name : "operator", r->reduction);
  diag_hint(s->c, "sum, max, min or prod; or none");
  return false;
}

static bool add_row(heddle_session *s, const heddle_operator_row *r) {
  own *o = NEW(ctx_arena(s->c), own);
  reduction red;
  o->row = *r;
  if (!reduction_of(s, r, &red)) return false;
  const bool zero = r->gradient && !strcmp(r->gradient, "zero"), has = r->gradient && !zero;
  const op_row row = {.name = r->name,
                      .law = r->law,
                      .lin = r->linear,
                      .types = r->types,
                      .attrs = r->attributes,
                      .red = red,
                      .flops = r->flops,
                      .flags = (r->product ? OPF_GEMM : 0) | (r->positions ? OPF_POS : 0),
                      .grad = zero  ? "zero"
                              : has ? "own"
                                    : "no",
                      .doc = r->about};
  const op_own functions = {.gradient = has ? r->gradient : NULL,
                            .pytorch = r->pytorch,
                            .kernel = r->kernel ? kernel_of : NULL,
                            .flops = r->flops_of ? flops_of : NULL,
                            .bytes = r->bytes_of ? bytes_of : NULL,
                            .of = o};
  o->op = op_register(s->c, &row, r->operands, r->results, &functions);
  if (o->op == OP_none) return false;
  const struct formula *f = has ? ir_read_formula(s->c, o->op) : NULL;
  if (has && !f) op_unregister(s->c, o->op);
  if (f) op_set_formula(o->op, f);
  return !has || f;
}
bool heddle_operator_register(heddle_session *s, const heddle_operator_row *row) {
  API_RETURN(bool, false, s, add_row(s, row));
}

// ---- shared objects ---------------------------------------------------------------------------------------
static bool load(heddle_session *s, const char *path) {
  // A name without a slash would be looked for among the system's libraries.
  const char *file = strchr(path, '/') ? path : arena_printf(ctx_arena(s->c), "./%s", path);
  void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  heddle_operator_rows *rows = NULL;
  uint32_t n = 0;
  if (so) *(void **)&rows = dlsym(so, "heddle_operators");
  if (!rows) {
    diag(s->c, E_OPERATOR, (loc){0}, "%s: %s", path, so ? "it has no function heddle_operators" : dlerror());
    diag_hint(
        s->c,
        "a shared object with operators: cc -shared -fPIC -DROWS_ONLY examples/operators.c -o operators.so");
    return false;
  }
  const heddle_operator_row *row = rows(&n);
  for (u32 k = 0; k < n; k++)
    if (!add_row(s, &row[k])) return false;
  return true;
}
bool heddle_operators_load(heddle_session *s, const char *path) { API_RETURN(bool, false, s, load(s, path)); }
