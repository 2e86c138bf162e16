// check_onnx.c - ONNX conformance: every case with tensors only of Debian's libonnx-testdata ($ONNX_DATA, by
// default /usr/share/libonnx-testdata/data) through import and evaluation, against the outputs that come with
// the case.
//
// A case passes when every output has the right type, extents and elements (relative 1e-3, absolute 1e-7, as
// ONNX's own runner has it). It is skipped, with its reason, when the importer refuses the model; a wrong
// answer, or a refusal of any other kind than "unsupported", is a failure. Inputs whose elements decide
// extents are given as constants: first none, then small ones, then all.
//
// Usage: check_onnx [-v] [PREFIX...]: -v names every skipped case under its reason.
#include "front/onnx.h"
#include "eval/eval.h"
#include "kernel/kernel.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
  char *reason;
  VEC(char *) cases;
} skip_group;

static struct {
  arena *a;
  bool verbose;
  u32 passed, failed, skipped;
  VEC(skip_group) skips;
} total;

// Cases whose outputs are not what the standard says.
static const struct {
  const char *name, *why;
} wrong_data[] = {
    {"test_adam_multiple", "the outputs were made with epsilon 0.01, which the node does not state"},
    {"test_cast_FLOAT_to_BFLOAT16", "the outputs are truncated, not rounded to the nearest bf16"},
    {"test_castlike_FLOAT_to_BFLOAT16", "the outputs are truncated, not rounded to the nearest bf16"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded",
     "the outputs are truncated, not rounded to the nearest bf16"},
};

typedef struct {
  sym name;
  data_info d;
} tensor;
typedef VEC(tensor) tensors;

static void skip(const char *name, const char *reason) {
  total.skipped++;
  u32 i = 0;
  while (i < total.skips.n && strcmp(total.skips.v[i].reason, reason)) i++;
  if (i == total.skips.n)
    *vec_push(total.a, &total.skips) = (skip_group){.reason = arena_strdup(total.a, reason)};
  *vec_push(total.a, &total.skips.v[i].cases) = arena_strdup(total.a, name);
}

static void fail(const char *name, const char *text) {
  total.failed++;
  printf("FAIL %s: %s\n", name, text);
}

// input_0.pb, input_1.pb, ... of a data set. The elements are copied: files put them anywhere.
static bool read_set(ctx *c, arena *a, const char *dir, const char *kind, tensors *out) {
  for (u32 i = 0;; i++) {
    char *path = arena_printf(a, "%s/%s_%u.pb", dir, kind, i);
    if (!file_exists(path)) return true;
    file_view f;
    tensor t;
    if (!file_map(c, path, &f) || !front_tensor(c, a, path, f.data, f.size, &t.d, &t.name)) return false;
    t.d.bytes = arena_dup(a, t.d.bytes, (size_t)t.d.size);
    *vec_push(a, out) = t;
    file_unmap(&f);
  }
}

static bool tensors_only(const onnx_model *m) {
  for (u32 i = 0; i < m->graph.in.n; i++)
    if (!m->graph.in.v[i].tensor || m->graph.in.v[i].type == 8) return false;
  for (u32 i = 0; i < m->graph.out.n; i++)
    if (!m->graph.out.v[i].tensor || m->graph.out.v[i].type == 8) return false;
  return true;
}

// May this input be a constant at this attempt?
static bool fixed_at(u32 attempt, const data_info *d) {
  i64 n = d->size / dtype_bytes(d->t);
  return attempt == 2 ||
         (attempt == 1 && (n == 1 || (d->nd <= 1 && (n <= 16 || dtype_kind_of(d->t) != DK_FLOAT))));
}

static bool same(const tensor *want, const eval_array *got, char *why, size_t cap) {
  const data_info *d = &want->d;
  shape s = {.t = d->t, .nd = d->nd};
  if (d->t == DT_U16 && got->s.t == DT_BF16) s.t = DT_BF16; // numpy wrote it and knows no bf16
  memcpy(s.dim, d->dim, sizeof s.dim);
  if (!shape_same(&s, &got->s)) {
    snprintf(why, cap, "type or extents differ: %s of rank %u instead of %s of rank %u", dtype_name(got->s.t),
             got->s.nd, dtype_name(d->t), d->nd);
    return false;
  }
  i64 n = shape_elems(&s);
  double *x = NEWN(total.a, double, n), *y = NEWN(total.a, double, n);
  ker_load_f64(x, s.t, got->data, n);
  ker_load_f64(y, s.t, d->bytes, n);
  for (i64 i = 0; i < n; i++) {
    bool ok = fabs(x[i] - y[i]) <= 1e-7 + 1e-3 * fabs(y[i]) || x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
    if (ok) continue;
    snprintf(why, cap, "element %lld of %lld is %.9g, not %.9g", (long long)i, (long long)n, x[i], y[i]);
    return false;
  }
  return true;
}

static bool has_random(const prog *p) {
  const func_info *f = func_get(p, p->main);
  for (u32 i = 0; i < f->body.n; i++)
    if (op_row_of((opcode)f->body.v[i].op)->flags & OPF_RANDOM) return true;
  return false;
}

// Runs an imported model on one data set. False: `why` says what is wrong.
static bool run(ctx *c, arena *a, const prog *p, const tensors *in, const tensors *want, char *why,
                size_t cap) {
  const func_info *f = func_get(p, p->main);
  eval_array *x = ZNEWN(a, eval_array, f->nparams + 1), *y = ZNEWN(a, eval_array, f->rets.n + 1);
  for (u32 k = 0; k < f->nparams; k++) {
    u32 data = f->params.v[k].data;
    x[k].s = eval_param_shape(p, k);
    if (data) x[k].data = arena_dup(a, p->data.v[data].bytes, (size_t)p->data.v[data].size);
    for (u32 i = 0; i < in->n; i++)
      if (in->v[i].name.i == f->values.v[k + 1].name.i) x[k].data = (void *)in->v[i].d.bytes;
    if (x[k].data) continue;
    snprintf(why, cap, "no data for input %s", sym_str(c, f->values.v[k + 1].name));
    return false;
  }
  if (!eval_run(p, &(eval_opts){0}, x, f->nparams, y, f->rets.n, a)) {
    snprintf(why, cap, "%s", diag_render(c, a));
    return false;
  }
  for (u32 k = 0; k < want->n; k++) {
    char text[200];
    if (same(&want->v[k], &y[k], text, sizeof text)) continue;
    snprintf(why, cap, "output %u: %s", k, text);
    return false;
  }
  return true;
}

// Was the model refused for what it needs (its reason), or is something wrong (NULL)?
static const char *refusal(ctx *c) {
  for (u32 i = 0; i < diag_count(c); i++) {
    diag_item d = diag_get(c, i);
    if (d.id == E_ONNX_OP || d.id == E_DYNAMIC || d.id == E_LIMIT) return d.message;
  }
  return NULL;
}

static bool any(ctx *c, diag_id id) {
  for (u32 i = 0; i < diag_count(c); i++)
    if (diag_get(c, i).id == id) return true;
  return false;
}

static prog *import(ctx *c, arena *a, const char *path, const tensors *in) {
  for (u32 attempt = 0; attempt < 3; attempt++) {
    front_opts o = {0};
    front_fixed *fixed = ZNEWN(a, front_fixed, in->n);
    front_dim *dims = ZNEWN(a, front_dim, in->n * DIMS_MAX);
    for (u32 i = 0; i < in->n; i++) {
      const char *name = sym_str(c, in->v[i].name);
      if (fixed_at(attempt, &in->v[i].d)) fixed[o.nfixed++] = (front_fixed){name, &in->v[i].d, NULL};
      for (u32 d = 0; d < in->v[i].d.nd; d++)
        dims[o.ndims++] = (front_dim){arena_printf(a, "%s:%u", name, d), in->v[i].d.dim[d]};
    }
    o.dims = dims, o.fixed = fixed;
    diag_clear(c);
    prog *p = front_onnx(c, path, &o);
    if (p || !any(c, E_DYNAMIC)) return p;
  }
  return NULL;
}

static void check_case(const char *kind_dir, const char *name) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  char *path = arena_printf(a, "%s/%s/model.onnx", kind_dir, name), why[2000] = "";
  file_view view = {0};
  onnx_model m;
  pb_file f = {.c = c, .a = a, .id = E_ONNX, .file = sym_of(c, path)};
  if (!file_exists(path) || !file_map(c, path, &view)) goto done;
  f.base = view.data;
  if (!onnx_model_read(&f, view.data, view.size, &m)) fail(name, diag_render(c, a));
  if (f.bad || !tensors_only(&m)) goto done;
  for (u32 set = 0;; set++) {
    tensors in = {0}, want = {0};
    char *dir = arena_printf(a, "%s/%s/test_data_set_%u", kind_dir, name, set);
    if (set && !file_exists(arena_printf(a, "%s/output_0.pb", dir))) {
      total.passed++;
      break;
    }
    if (!read_set(c, a, dir, "input", &in) || !read_set(c, a, dir, "output", &want)) {
      skip(name, refusal(c) ? refusal(c) : "test data that cannot be read");
      break;
    }
    u32 given = 0; // files are in the order of the inputs that have no initializer
    for (u32 i = 0; i < m.graph.in.n && given < in.n; i++) {
      bool init = false;
      for (u32 k = 0; k < m.graph.init.n; k++)
        init = init || m.graph.init.v[k].name.i == m.graph.in.v[i].name.i;
      if (!init) in.v[given++].name = m.graph.in.v[i].name;
    }
    prog *p = import(c, a, path, &in);
    const char *reason = refusal(c);
    bool ok = p && run(c, a, p, &in, &want, why, sizeof why);
    bool random = p && has_random(p);
    if (p) prog_free(p);
    if (ok) continue;
    const char *excuse = NULL;
    for (u32 i = 0; i < COUNT_OF(wrong_data); i++)
      if (strcmp(wrong_data[i].name, name) == 0) excuse = wrong_data[i].why;
    if (p && excuse)
      skip(name, excuse);
    else if (!p && reason)
      skip(name, reason);
    else if (!p)
      fail(name, diag_render(c, a));
    else if (random)
      skip(name, "random numbers: ours are not the test's");
    else
      fail(name, why);
    break;
  }
done:
  file_unmap(&view);
  arena_free(a);
  ctx_free(c);
}

static int by_name(const struct dirent **x, const struct dirent **y) {
  return strcmp((*x)->d_name, (*y)->d_name);
}

static bool wanted(const char *name, char **prefix, int n) {
  for (int i = 0; i < n; i++)
    if (strncmp(name, prefix[i], strlen(prefix[i])) == 0) return true;
  return n == 0;
}

int main(int argc, char **argv) {
  static const char *const kinds[] = {"node", "simple", "pytorch-converted", "pytorch-operator", "real"};
  const char *data = getenv("ONNX_DATA");
  total.a = arena_new();
  total.verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  int first = total.verbose ? 2 : 1;
  for (u32 k = 0; k < COUNT_OF(kinds); k++) {
    struct dirent **entry;
    char *dir = arena_printf(total.a, "%s/%s", data ? data : "/usr/share/libonnx-testdata/data", kinds[k]);
    int n = scandir(dir, &entry, NULL, by_name);
    for (int i = 0; i < n; i++) {
      if (strncmp(entry[i]->d_name, "test_", 5) == 0 &&
          wanted(entry[i]->d_name + 5, argv + first, argc - first))
        check_case(dir, entry[i]->d_name);
      free(entry[i]);
    }
    if (n >= 0) free(entry);
    if (n < 0 && k == 0) {
      printf("skipped: %s is not there (package libonnx-testdata)\n", dir);
      total.skipped++;
      break;
    }
  }
  for (u32 i = 0; i < total.skips.n && total.verbose; i++) {
    const skip_group *g = &total.skips.v[i];
    printf("unsupported, %u case%s: %s\n", g->cases.n, g->cases.n > 1 ? "s" : "", g->reason);
    for (u32 k = 0; k < g->cases.n; k++) printf("    %s\n", g->cases.v[k]);
  }
  printf("%u passed, %u failed, %u skipped\n", total.passed, total.failed, total.skipped);
  arena_free(total.a);
  return total.failed != 0;
}
