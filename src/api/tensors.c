// tensors.c - numbers behind heddle.h: named arrays, inputs of programs, the reference answer.
#include "api/internal.h"
#include <unistd.h>

uint32_t heddle_tensors_count(const heddle_tensors *t) { return t ? t->n : 0; }

bool heddle_tensors_get(const heddle_tensors *t, uint32_t index, heddle_tensor *out) {
  if (!t || index >= t->n) return false;
  const eval_array *x = &t->x[index];
  *out = (heddle_tensor){t->name[index], dtype_name(x->s.t), x->s.nd, x->s.dim, x->data};
  return true;
}

void heddle_tensors_free(heddle_tensors *t) { object_drop(t); }

static heddle_tensors *open(heddle_session *s, u32 n) {
  heddle_tensors *t = object_new(s, sizeof *t, NULL);
  t->n = n;
  t->x = ZNEWN(t->o.a, eval_array, n + 1);
  t->name = ZNEWN(t->o.a, const char *, n + 1);
  return t;
}

// Values by their names, those without by their number among the others; no two the same.
static void name_values(heddle_tensors *t, const prog *p, const value *v) {
  ctx *c = p->c;
  const func_info *m = func_get(p, p->main);
  hmap used = {0};
  for (u32 i = 0; i < t->n; i++) {
    sym name = val(m, v[i])->name;
    if (name.i && !hmap_get(&used, name.i)) hmap_add(t->o.a, &used, name.i, i + 1);
  }
  for (u32 i = 0; i < t->n; i++) {
    sym name = val(m, v[i])->name, first = name.i ? name : sym_fmt(c, "%u", i), own = first;
    u32 by = hmap_get(&used, own.i);
    for (u32 again = 2; by && by != i + 1; by = hmap_get(&used, own.i))
      own = sym_fmt(c, "%s.%u", sym_str(c, first), again++);
    if (!by) hmap_add(t->o.a, &used, own.i, i + 1);
    t->name[i] = arena_strdup(t->o.a, sym_str(c, own));
  }
}

// Arrays that this computer cannot hold are refused before they are made.
static bool fits(const prog *p) {
  const func_info *m = func_get(p, p->main);
  double bytes = 0, have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  for (u32 i = 0; i < m->nparams + m->rets.n; i++) {
    shape s = i < m->nparams ? eval_param_shape(p, i) : eval_result_shape(p, i - m->nparams);
    bytes += (double)shape_elems(&s) * 8;
  }
  if (have <= 0 || bytes < 0.5 * have) return true;
  diag(p->c, E_LIMIT, m->where, "inputs and results take %s in float64; this computer has %s",
       text_bytes(ctx_arena(p->c), bytes), text_bytes(ctx_arena(p->c), have));
  diag_hint(p->c, "a smaller --batch, or fewer and smaller layers, as in gpt2:layers=2,hidden=128,heads=2");
  return false;
}

heddle_tensors *tensors_of_parameters(heddle_program *p) {
  const func_info *m = func_get(p->p, p->p->main);
  heddle_tensors *t = open(p->o.s, m->nparams);
  value *v = NEWN(t->o.a, value, t->n + 1);
  for (u32 i = 0; i < t->n; i++) v[i] = i + 1;
  name_values(t, p->p, v);
  return t;
}

heddle_tensors *tensors_open(heddle_program *p) { return fits(p->p) ? tensors_of_parameters(p) : NULL; }

static heddle_tensors *tensors_random(heddle_program *p, u64 seed) {
  heddle_tensors *t = tensors_open(p);
  if (!t || eval_random_as(p->p, p->uses, seed, t->x, t->n, t->o.a)) return t;
  object_drop(t);
  return NULL;
}
heddle_tensors *heddle_tensors_random(heddle_program *p, uint64_t seed) {
  if (!p) return NULL;
  API_RETURN(heddle_tensors *, NULL, p->o.s, tensors_random(p, seed));
}

// ---- folders of .npy files ----------------------------------------------------------------------------
static bool is_file(const char *path) { // of arrays, by its name
  const size_t n = strlen(path);
  return (n > 12 && !strcmp(path + n - 12, ".safetensors")) || (n > 4 && !strcmp(path + n - 4, ".npz"));
}

// All inputs from one file; those that the program has elements for may be absent.
static heddle_tensors *read_file(heddle_program *p, const char *path) {
  ctx *c = p->p->c;
  if (!fits(p->p)) return NULL;
  heddle_tensors *t = tensors_of_parameters(p);
  const func_info *m = func_get(p->p, p->p->main);
  named_target *target = NEWN(t->o.a, named_target, t->n + 1);
  named_arrays s;
  for (u32 i = 0; i < t->n; i++) {
    const u32 data = m->params.v[i].data;
    const bool given = data && p->p->data.v[data].bytes;
    t->x[i].s = eval_param_shape(p->p, i);
    t->x[i].data = given ? (void *)(uintptr_t)p->p->data.v[data].bytes
                         : arena_alloc(t->o.a, (size_t)shape_bytes(&t->x[i].s));
    target[i] = (named_target){.name = t->name[i], .wanted = !given, .x = &t->x[i]};
  }
  bool ok = named_open(c, t->o.a, path, true, &s);
  if (ok) ok = named_take(&s, target, t->n), named_close(&s);
  if (ok) return t;
  object_drop(t);
  return NULL;
}

// A parameter of a program by its file; where there is none, by the elements that the program carries.
static heddle_tensors *read_folder(heddle_program *p, const char *folder) {
  ctx *c = p->p->c;
  if (!fits(p->p)) return NULL;
  heddle_tensors *t = tensors_of_parameters(p);
  const func_info *m = func_get(p->p, p->p->main);
  strbuf missing = {.a = t->o.a};
  bool ok = true;
  u32 nmissing = 0;
  for (u32 i = 0; i < t->n && ok; i++) {
    const char *path = npy_path(t->o.a, folder, t->name[i]);
    const data_info *d = &p->p->data.v[m->params.v[i].data];
    if (file_exists(path))
      ok = npy_read(c, t->o.a, path, &t->x[i]);
    else if (m->params.v[i].data && d->bytes)
      t->x[i] = (eval_array){eval_param_shape(p->p, i), (void *)(uintptr_t)d->bytes};
    else if (nmissing++ < 8)
      sb_fmt(&missing, "%s%s", nmissing > 1 ? ", " : "", t->name[i]);
  }
  if (nmissing) {
    diag(c, E_FILE_OPEN, (loc){0}, "%u of %u inputs are not in '%s': %s%s", nmissing, t->n, folder,
         sb_str(&missing), nmissing > 8 ? ", ..." : "");
    diag_hint(c, "each input is a file of its name, such as %s", npy_path(t->o.a, folder, "NAME"));
  }
  if (ok && !nmissing) return t;
  object_drop(t);
  return NULL;
}
heddle_tensors *heddle_tensors_read(heddle_program *p, const char *path) {
  if (!p) return NULL;
  API_RETURN(heddle_tensors *, NULL, p->o.s, is_file(path) ? read_file(p, path) : read_folder(p, path));
}

static bool write_folder(heddle_tensors *t, const char *folder) {
  ctx *c = t->o.s->c;
  if (!dir_make(c, folder)) return false;
  for (u32 i = 0; i < t->n; i++)
    if (!npy_write(c, npy_path(t->o.a, folder, t->name[i]), &t->x[i])) return false;
  return true;
}
static bool write_file(heddle_tensors *t, const char *path) {
  eval_named *item = NEWN(t->o.a, eval_named, t->n + 1);
  for (u32 i = 0; i < t->n; i++) item[i] = (eval_named){t->name[i], t->x[i]};
  const size_t n = strlen(path);
  return (path[n - 1] == 'z' ? npz_write : safetensors_write)(t->o.s->c, path, item, t->n);
}
bool heddle_tensors_write(heddle_tensors *t, const char *path) {
  if (!t) return false;
  API_RETURN(bool, false, t->o.s, is_file(path) ? write_file(t, path) : write_folder(t, path));
}

static const char *describe(heddle_tensors *t, heddle_format f) {
  report *r = report_new(t->o.a);
  report_arrays(r, t->o.a, t->x, t->name, t->n);
  return rendered(t->o.a, r, f);
}
const char *heddle_tensors_report(heddle_tensors *t, heddle_format f) {
  if (!t) return NULL;
  API_RETURN(const char *, NULL, t->o.s, describe(t, f));
}

// ---- evaluation ---------------------------------------------------------------------------------------
static heddle_tensors *eval(heddle_program *p, const heddle_tensors *in, bool wide) {
  const func_info *m = func_get(p->p, p->p->main);
  if (in->n != m->nparams) {
    diag(p->p->c, E_ARITY, (loc){0}, "%u arrays for %u parameters", in->n, m->nparams);
    return NULL;
  }
  heddle_tensors *t = open(p->o.s, m->rets.n);
  name_values(t, p->p, m->rets.v);
  eval_opts o = {.as_f64 = wide, .threads = cpu_count()};
  if (eval_run(p->p, &o, in->x, in->n, t->x, t->n, t->o.a)) return t;
  object_drop(t);
  return NULL;
}
heddle_tensors *heddle_tensors_eval(heddle_program *p, const heddle_tensors *in, bool wide) {
  if (!p || !in) return NULL;
  API_RETURN(heddle_tensors *, NULL, p->o.s, eval(p, in, wide));
}
