// named.c - arrays by name: weights and states for a program, from what other programs or an earlier run have left.
//
// Idea: a set of names is opened first, and elements are read only when every name has been found: what is missing,
// left over or of another shape is told at once, each with the name that was most likely meant.
#include "eval/internal.h"
#include <dirent.h>
#include <stdlib.h>

enum { TOLD_MOST = 8 };

// ---- files and folders -------------------------------------------------------------------------------------------
// Names of ONNX values may contain '/', which no file name does: it becomes %2F, and % becomes %25, so that
// different names are different files.
const char *npy_path(arena *a, const char *folder, const char *name) {
  strbuf b = {.a = a};
  sb_fmt(&b, "%s/", folder);
  for (; *name; name++)
    if (*name == '/' || *name == '%')
      sb_fmt(&b, "%%%02X", (u8)*name);
    else
      sb_char(&b, *name);
  sb_put(&b, ".npy");
  return sb_str(&b);
}

// The name whose file has this stem.
static const char *name_of_stem(arena *a, const char *stem, size_t n) {
  strbuf b = {.a = a};
  for (size_t k = 0; k < n; k++) {
    const bool slash = n - k >= 3 && !memcmp(stem + k, "%2F", 3),
               percent = n - k >= 3 && !memcmp(stem + k, "%25", 3);
    sb_char(&b, slash ? '/' : stem[k]);
    if (slash || percent) k += 2;
  }
  return sb_str(&b);
}

static bool ends_with(const char *s, const char *tail) {
  const size_t n = strlen(s), m = strlen(tail);
  return n > m && !strcmp(s + n - m, tail);
}

static int by_text(const void *x, const void *y) {
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

typedef VEC(const char *) texts;
// Names of files in a folder that end so, in order.
static texts files_of(named_arrays *s, const char *tail) {
  texts t = {0};
  DIR *dir = opendir(s->path);
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (ends_with(e->d_name, tail)) *vec_push(s->a, &t) = arena_strdup(s->a, e->d_name);
  if (dir) closedir(dir);
  if (t.n) qsort(t.v, t.n, sizeof *t.v, by_text);
  return t;
}

static void add(named_arrays *s, const eval_named *item, u32 n, const char *where) {
  eval_named *all = NEWN(s->a, eval_named, s->n + n + 1);
  const char **of = NEWN(s->a, const char *, s->n + n + 1);
  if (s->n) memcpy(all, s->item, sizeof *all * s->n), memcpy(of, s->where, sizeof *of * s->n);
  if (n) memcpy(all + s->n, item, sizeof *all * n);
  for (u32 k = 0; k < n; k++) of[s->n + k] = where;
  s->item = all, s->where = of, s->n += n;
}

static bool open_safetensors(named_arrays *s, const char *path) {
  safetensors *f = &s->file[s->nfiles];
  if (!safetensors_open(s->c, s->a, path, f)) return false;
  s->nfiles++;
  const char *weights = s->states ? NULL : safetensors_find(f, CHECKPOINT_WEIGHTS);
  add(s, f->item, weights ? MIN(f->n, (u32)strtoul(weights, NULL, 10)) : f->n, path);
  return true;
}

static bool open_npz(named_arrays *s) {
  eval_named *item;
  u32 n;
  if (!npz_read(s->c, s->a, s->path, &item, &n)) return false;
  add(s, item, n, s->path);
  return true;
}

// Checkpoints of several steps are in one folder; weights are of one.
static bool one_checkpoint(const named_arrays *s, const texts *st) {
  u32 n = 0, last = 0;
  for (u32 k = 0; k < st->n; k++)
    if (safetensors_find(&s->file[k], CHECKPOINT_WEIGHTS)) n++, last = k;
  if (n <= 1) return true;
  diag(s->c, E_WEIGHTS, (loc){0}, "'%s' has %u checkpoints, and weights are of one", s->path, n);
  diag_hint(s->c, "--weights '%s/%s', or --resume '%s', which goes on from the last", s->path, st->v[last],
            s->path);
  return false;
}

static bool open_folder(named_arrays *s) {
  const texts npy = files_of(s, ".npy"), st = npy.n ? (texts){0} : files_of(s, ".safetensors");
  eval_named *item = ZNEWN(s->a, eval_named, npy.n + 1);
  const char **where = ZNEWN(s->a, const char *, npy.n + 1);
  s->file = NEWN(s->a, safetensors, st.n + 1);
  for (u32 k = 0; k < st.n; k++)
    if (!open_safetensors(s, arena_printf(s->a, "%s/%s", s->path, st.v[k]))) return false;
  if (st.n) return one_checkpoint(s, &st);
  for (u32 k = 0; k < npy.n; k++) {
    item[k].name = name_of_stem(s->a, npy.v[k], strlen(npy.v[k]) - 4);
    where[k] = arena_printf(s->a, "%s/%s", s->path, npy.v[k]);
  }
  s->item = item, s->where = where, s->n = npy.n;
  if (npy.n) return true;
  diag(s->c, E_WEIGHTS, (loc){0}, "'%s' has no .npy and no .safetensors file", s->path);
  return false;
}

bool named_open(ctx *c, arena *a, const char *path, bool states, named_arrays *out) {
  *out = (named_arrays){.c = c, .a = a, .path = path, .states = states, .file = NEWN(a, safetensors, 1)};
  if (dir_exists(path)) {
    if (dir_readable(c, path) && open_folder(out)) return true;
  } else if (ends_with(path, ".npz") ? open_npz(out) : open_safetensors(out, path))
    return true;
  named_close(out);
  return false;
}

void named_close(named_arrays *s) {
  for (u32 k = 0; k < s->nfiles; k++) safetensors_close(&s->file[k]);
  s->nfiles = 0;
}

// ---- taking --------------------------------------------------------------------------------------------------
static loc at_name(const named_arrays *s, const char *file, const char *name) {
  return loc_node(s->c, sym_of(s->c, file), sym_of(s->c, name), (sym){0});
}

static void tell_missing(named_arrays *s, const named_target *t) {
  near_name near = near_to(t->name, strlen(t->name));
  for (u32 k = 0; k < s->n; k++) near_try(&near, s->item[k].name);
  diag(s->c, E_WEIGHTS, at_name(s, s->path, t->name), "there is no array '%s'", t->name);
  if (near.name) diag_hint(s->c, "is its '%s' meant? Arrays have the names of `heddle import`", near.name);
}

static void tell_extra(named_arrays *s, u32 k, const named_target *t, u32 n) {
  const char *name = s->item[k].name;
  near_name near = near_to(name, strlen(name));
  for (u32 j = 0; j < n && name[0] && name[1] && name[2]; j++)
    near_try(&near, t[j].name); // short ones are near to all
  diag(s->c, E_WEIGHTS, at_name(s, s->where[k], name), "the model has no '%s'", name);
  if (near.name) diag_hint(s->c, "is '%s' meant?", near.name);
}

static const char *dims_text(arena *a, const shape *s) {
  strbuf b = {.a = a};
  for (u32 d = 0; d < s->nd; d++) sb_fmt(&b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
  return arena_printf(a, "%s[%s]", dtype_name(s->t), sb_str(&b));
}

static bool fits(named_arrays *s, u32 k, const named_target *t) {
  const shape *have = &s->item[k].x.s, *want = &t->x->s;
  if (have->nd == want->nd && !memcmp(have->dim, want->dim, sizeof(i64) * want->nd) &&
      (dtype_kind_of(have->t) == DK_FLOAT) == (dtype_kind_of(want->t) == DK_FLOAT))
    return true;
  diag(s->c, E_WEIGHTS, at_name(s, s->where[k], t->name), "'%s' is %s; in the model it is %s", t->name,
       dims_text(s->a, have), dims_text(s->a, want));
  return false;
}

static u32 find(const named_arrays *s, const hmap *by_name, const char *name) {
  return hmap_get(by_name, sym_of(s->c, name).i);
}

// Every array has a name that a target has, each once; found[j]: its array, from 1.
static u32 match(named_arrays *s, const named_target *t, u32 n, u32 *found) {
  hmap targets = {0};
  u32 wrong = 0;
  for (u32 j = 0; j < n; j++) hmap_add(s->a, &targets, sym_of(s->c, t[j].name).i, j + 1);
  for (u32 k = 0; k < s->n; k++) {
    const u32 j = find(s, &targets, s->item[k].name);
    if (j && !found[j - 1]) {
      found[j - 1] = k + 1;
      continue;
    }
    if (wrong++ >= TOLD_MOST) continue;
    if (!j)
      tell_extra(s, k, t, n);
    else
      diag(s->c, E_WEIGHTS, at_name(s, s->where[k], s->item[k].name), "'%s' is in %s too", s->item[k].name,
           s->where[found[j - 1] - 1]);
  }
  for (u32 j = 0; j < n; j++)
    if (t[j].wanted && !found[j] && wrong++ < TOLD_MOST) tell_missing(s, &t[j]);
  return wrong;
}

bool named_take(named_arrays *s, const named_target *t, u32 n) {
  u32 *found = ZNEWN(s->a, u32, n + 1), wrong = match(s, t, n, found);
  for (u32 j = 0; j < n; j++) {
    if (!t[j].wanted || !found[j]) continue;
    eval_array *x = &s->item[found[j] - 1].x;
    if (!x->data && !npy_read(s->c, s->a, s->where[found[j] - 1], x)) return false;
    if (!fits(s, found[j] - 1, &t[j])) wrong++;
  }
  if (wrong > TOLD_MOST) diag_hint(s->c, "and %u more of '%s'", wrong - TOLD_MOST, s->path);
  for (u32 j = 0; j < n && !wrong; j++)
    if (t[j].wanted)
      ker_convert(t[j].x->data, t[j].x->s.t, s->item[found[j] - 1].x.data, s->item[found[j] - 1].x.s.t,
                  shape_elems(&t[j].x->s));
  return !wrong;
}
