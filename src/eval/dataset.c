// dataset.c - training data: samples for the inputs and labels of a program, from files.
//
// Idea: a sample is a run of elements at a stride in a mapped file, so nothing is read before a step asks for it.
// Labels that are the next token are the same file, one element further on. An epoch is shuffled by a permutation that
// is computed, not stored: four rounds of a Feistel network over the next power of four, walked until it is inside.
#include "eval/internal.h"
#include <dirent.h>
#include <stdlib.h>

typedef struct {
  const char *path; // NULL: the parameter gets no data
  file_view f;      // mapped by this source
  const u8 *elem;
  dtype t;
  i64 stride, shift, row; // elements from a sample to the next, before the first, of one sample
  i64 rows;               // samples; 0: the file is the whole input, the same in every step
  i64 total;              // elements in the file
  i64 bound;              // of indices; 0: none
  bool stream;            // tokens one after the other
} source;

struct dataset {
  const prog *p;
  ctx *c;
  arena *a;
  dataset_opts o;
  const char *path;
  u32 n;
  source *of;           // by parameter
  const eval_uses *own; // of p: a plan counts all labels, whatever its model leaves out
  i64 samples, batch;
  i64 spare; // 1: labels are the next token
  const char *of_tokens;
};

// ---- what the program asks for -------------------------------------------------------------------------------
static const func_info *main_of(const dataset *d) { return func_get(d->p, d->p->main); }
static const char *name_of(const dataset *d, u32 k) { return sym_str(d->c, val(main_of(d), k + 1)->name); }

static bool is_data(const dataset *d, u32 k) {
  const param_info *pi = &main_of(d)->params.v[k];
  return !pi->data && (pi->r == ROLE_INPUT || pi->r == ROLE_LABEL);
}

static bool is_token(const shape *s) {
  return s->nd == 2 && dtype_kind_of(s->t) != DK_FLOAT && s->t != DT_BOOL;
}

static bool fail(const dataset *d, const char *path, u32 k, const char *why) {
  diag(d->c, E_DATA, loc_node(d->c, sym_of(d->c, path), sym_of(d->c, name_of(d, k)), (sym){0}), "%s", why);
  return false;
}

// ---- files -----------------------------------------------------------------------------------------------------
static const struct {
  const char *tail;
  dtype t;
} raw_types[] = {{".u8", DT_U8}, {".u16", DT_U16}, {".u32", DT_U32}, {".i32", DT_I32}, {".i64", DT_I64}};

static bool ends_with(const char *s, const char *tail) {
  const size_t n = strlen(s), m = strlen(tail);
  return n > m && !strcmp(s + n - m, tail);
}

// By the end of the name; 0: it does not tell.
static dtype named_type(const char *path) {
  for (u32 k = 0; k < COUNT_OF(raw_types); k++)
    if (ends_with(path, raw_types[k].tail)) return raw_types[k].t;
  return 0;
}

static bool open_raw(dataset *d, u32 k, const char *path, eval_array *x) {
  source *s = &d->of[k];
  const dtype named = named_type(path), t = named ? named : d->o.raw;
  if (named && d->o.raw && named != d->o.raw)
    return fail(d, path, k,
                arena_printf(d->a, "--data-type says %s, the name of the file %s", dtype_name(d->o.raw),
                             dtype_name(named)));
  if (!t) {
    fail(d, path, k, "the name does not tell the type of the tokens");
    diag_hint(d->c, "--data-type u16, or a file name that ends in .u8, .u16, .u32, .i32, .i64 or .npy");
    return false;
  }
  if (!file_map(d->c, path, &s->f)) return false;
  const i64 width = (i64)dtype_bytes(t), size = (i64)s->f.size;
  if (size % width)
    return fail(
        d, path, k,
        arena_printf(d->a, "%lld bytes are no whole number of %s tokens", (long long)size, dtype_name(t)));
  *x = (eval_array){{.t = t, .nd = 1, .dim = {size / width}}, (void *)(uintptr_t)s->f.data};
  return true;
}

static const char *dims_text(arena *a, const shape *s, const char *first) {
  strbuf b = {.a = a};
  sb_put(&b, "[");
  for (u32 d = 0; d < s->nd; d++)
    if (!d && first)
      sb_put(&b, first);
    else
      sb_fmt(&b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
  sb_put(&b, "]");
  return sb_str(&b);
}

// How an array gives samples of a parameter: as rows, as rows with one more token, as one stream, or whole.
static bool place(dataset *d, u32 k, const char *path, const eval_array *x) {
  source *s = &d->of[k];
  const shape want = eval_param_shape(d->p, k);
  const bool ints = dtype_kind_of(x->s.t) != DK_FLOAT, asks_ints = dtype_kind_of(want.t) != DK_FLOAT;
  *s = (source){.path = path, .f = s->f, .elem = x->data, .t = x->s.t, .total = shape_elems(&x->s)};
  s->row = want.nd && want.dim[0] ? shape_elems(&want) / want.dim[0] : 1;
  s->stride = s->row;
  s->bound = asks_ints ? eval_index_bound(d->o.uses, k) : 0;
  bool rest = x->s.nd == want.nd; // all extents but the first
  for (u32 j = 1; j < want.nd; j++) rest = rest && x->s.dim[j] == want.dim[j];
  if (ints != asks_ints)
    return fail(
        d, path, k,
        arena_printf(d->a, "elements are %s; the model takes %s", dtype_name(x->s.t), dtype_name(want.t)));
  if (!want.nd || want.dim[0] != d->batch) { // no samples in it
    if (rest && s->total == shape_elems(&want)) return true;
  } else if (x->s.nd == 1 && is_token(&want)) {
    s->stream = true;
    return true; // cut when it is known whether the next token is needed
  } else if (rest) {
    s->rows = x->s.dim[0];
    if (s->rows) return true;
    return fail(d, path, k, "there is no sample in it");
  } else if (is_token(&want) && x->s.nd == 2 && x->s.dim[1] == want.dim[1] + 1) {
    s->rows = x->s.dim[0], s->stride = x->s.dim[1];
    return true;
  }
  fail(d, path, k,
       arena_printf(d->a, "the array is %s; the model takes samples of %s", dims_text(d->a, &x->s, NULL),
                    dims_text(d->a, &want, want.nd && want.dim[0] == d->batch ? "N" : NULL)));
  if (is_token(&want) && main_of(d)->params.v[k].r == ROLE_INPUT)
    diag_hint(d->c, "[N,%lld], or [N,%lld] where labels are the next tokens of these", (long long)want.dim[1],
              (long long)want.dim[1] + 1);
  return false;
}

static bool open_source(dataset *d, u32 k, const char *path) {
  eval_array x = {.data = NULL};
  const bool npy = ends_with(path, ".npy");
  if (!(npy ? npy_map(d->c, d->a, path, &d->of[k].f, &x) : open_raw(d, k, path, &x))) return false;
  return place(d, k, path, &x);
}

// NAME.npy, NAME.u16, ... of the folder, in *path, NULL where there is none. False and a diagnostic: there are several.
static bool find_file(dataset *d, u32 k, const char **path) {
  const char *npy = npy_path(d->a, d->path, name_of(d, k));
  const int stem = (int)strlen(npy) - 4;
  *path = NULL;
  for (u32 j = 0; j < COUNT_OF(raw_types) + 2; j++) {
    const char *tail = j < COUNT_OF(raw_types)    ? raw_types[j].tail
                       : j == COUNT_OF(raw_types) ? ".npy"
                                                  : ".bin";
    const char *file = arena_printf(d->a, "%.*s%s", stem, npy, tail);
    if (!file_exists(file)) continue;
    if (*path) {
      fail(d, file, k, arena_printf(d->a, "%s is there, too: which of them is meant is not known", *path));
      diag_hint(d->c, "keep one of them in the folder");
      return false;
    }
    *path = file;
  }
  return true;
}

// Files of data that nothing of the model is called like, a label whose name is mistyped among them, are not read.
static void tell_unread(const dataset *d) {
  enum { TOLD = 3 };
  const char *first[TOLD];
  u32 n = 0;
  DIR *dir = opendir(d->path);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    bool data = ends_with(e->d_name, ".npy") || ends_with(e->d_name, ".bin"), read = false;
    for (u32 j = 0; j < COUNT_OF(raw_types); j++) data |= ends_with(e->d_name, raw_types[j].tail);
    const char *path = arena_printf(d->a, "%s/%s", d->path, e->d_name);
    for (u32 k = 0; k < d->n; k++) {
      const char *own = npy_path(d->a, d->path, name_of(d, k));
      const size_t stem = strlen(own) - 4;
      read |=
          is_data(d, k) && !strncmp(path, own, stem) && path[stem] == '.' && !strchr(path + stem + 1, '.');
    }
    if (!data || read) continue;
    u32 at = MIN(n, (u32)TOLD); // the first by name
    n++;
    if (at == TOLD && strcmp(path, first[TOLD - 1]) > 0) continue;
    if (at == TOLD) at--;
    for (; at && strcmp(path, first[at - 1]) < 0; at--) first[at] = first[at - 1];
    first[at] = path;
  }
  if (dir) closedir(dir);
  strbuf b = {.a = d->a};
  for (u32 k = 0; k < MIN(n, (u32)TOLD); k++) sb_fmt(&b, "%s%s", k ? ", " : "", first[k]);
  if (n > TOLD) sb_fmt(&b, " and %u more", n - TOLD);
  if (n)
    diag(d->c, W_IGNORED, (loc){0}, "not read: %s, as no input or label of the model has %s", sb_str(&b),
         n > 1 ? "these names" : "this name");
}

// ---- labels that are the next token ------------------------------------------------------------------------------
// The input whose next tokens a label may be: the only one of its shape, from a stream or with one token more.
static u32 tokens_for(const dataset *d, u32 label) {
  const shape want = eval_param_shape(d->p, label);
  u32 found = d->n;
  for (u32 k = 0; k < d->n; k++) {
    const source *s = &d->of[k];
    const shape own = eval_param_shape(d->p, k);
    if (!s->path || main_of(d)->params.v[k].r != ROLE_INPUT || !(s->stream || s->stride == s->row + 1))
      continue;
    if (!is_token(&want) || own.nd != want.nd || memcmp(own.dim, want.dim, sizeof(i64) * own.nd) != 0)
      continue;
    if (found < d->n) return d->n;
    found = k;
  }
  return found;
}

static bool missing(dataset *d, u32 k) {
  const shape s = eval_param_shape(d->p, k);
  const bool label = main_of(d)->params.v[k].r == ROLE_LABEL;
  fail(d, d->path, k,
       arena_printf(d->a, "there are no data for the model's %s %s, %s %s", label ? "label" : "input",
                    name_of(d, k), dtype_name(s.t),
                    dims_text(d->a, &s, s.nd && s.dim[0] == d->batch ? "N" : NULL)));
  diag_hint(d->c, "--data FOLDER with %s.npy%s", name_of(d, k),
            is_token(&s) ? arena_printf(d->a, " or %s.u16", name_of(d, k)) : "");
  return false;
}

static bool find_labels(dataset *d) {
  bool ok = true;
  for (u32 k = 0; k < d->n; k++) {
    if (!is_data(d, k) || d->of[k].path) continue;
    const u32 from = main_of(d)->params.v[k].r == ROLE_LABEL ? tokens_for(d, k) : d->n;
    if (from == d->n) {
      ok = missing(d, k);
      continue;
    }
    const i64 bound = eval_index_bound(d->o.uses, k);
    d->of[k] = d->of[from];
    d->of[k].f = (file_view){0};
    d->of[k].shift = d->spare = 1;
    d->of[k].bound = bound;
    d->of_tokens = name_of(d, from);
  }
  return ok;
}

// Streams become sequences; all must have as many samples.
static bool count_samples(dataset *d) {
  u32 first = d->n;
  for (u32 k = 0; k < d->n; k++) {
    source *s = &d->of[k];
    if (!s->path || (!s->stream && !s->rows)) continue;
    if (s->stream) s->rows = MAX(s->total - d->spare, 0) / s->row;
    if (!s->rows)
      return fail(d, s->path, k,
                  arena_printf(d->a, "%lld tokens are fewer than one sequence of %lld%s", (long long)s->total,
                               (long long)s->row, d->spare ? " and the token after it" : ""));
    if (first == d->n) first = k, d->samples = s->rows;
    if (s->rows == d->samples) continue;
    return fail(d, s->path, k,
                arena_printf(d->a, "%lld samples; %s has %lld", (long long)s->rows, d->of[first].path,
                             (long long)d->samples));
  }
  if (d->samples) return true;
  diag(d->c, E_DATA, (loc){0}, "%s has no samples for the model", d->path);
  return false;
}

// ---- opening -------------------------------------------------------------------------------------------------
static bool open_folder(dataset *d) {
  bool ok = true;
  const func_info *m = main_of(d);
  for (u32 k = 0; k < d->n; k++) {
    if (m->params.v[k].r != ROLE_INPUT && m->params.v[k].r != ROLE_LABEL) continue;
    const char *path;
    if (!find_file(d, k, &path)) return false;
    if (path) ok = open_source(d, k, path) && ok;
  }
  tell_unread(d);
  return ok && find_labels(d) && count_samples(d);
}

// One file is the only input, and its next tokens the labels.
static bool open_file(dataset *d) {
  u32 input = d->n;
  for (u32 k = 0; k < d->n; k++)
    if (is_data(d, k) && main_of(d)->params.v[k].r == ROLE_INPUT && input == d->n) input = k;
  if (input == d->n) {
    diag(d->c, E_DATA, (loc){0}, "the model has no input that --data could give");
    return false;
  }
  return open_source(d, input, d->path) && find_labels(d) && count_samples(d);
}

dataset *dataset_open(const prog *p, arena *a, const char *path, const dataset_opts *o) {
  dataset *d = NEW(a, dataset);
  *d = (dataset){.p = p, .c = p->c, .a = a, .o = *o, .path = path, .n = func_get(p, p->main)->nparams};
  d->of = ZNEWN(a, source, d->n + 1);
  d->own = eval_uses_of(p, a);
  if (!d->o.uses) d->o.uses = d->own;
  for (u32 k = 0; k < d->n && !d->batch; k++) {
    const shape s = eval_param_shape(p, k);
    if (is_data(d, k) && s.nd) d->batch = s.dim[0];
  }
  if (!file_exists(path)) {
    diag(d->c, E_FILE_OPEN, (loc){0}, "cannot read '%s': No such file or directory", path);
    return NULL;
  }
  if (dir_exists(path) ? dir_readable(d->c, path) && open_folder(d) : open_file(d)) return d;
  dataset_close(d);
  return NULL;
}

void dataset_close(dataset *d) {
  for (u32 k = 0; d && k < d->n; k++)
    if (d->of[k].f.data) file_unmap(&d->of[k].f);
}

i64 dataset_samples(const dataset *d) { return d->samples; }
i64 dataset_batch(const dataset *d) { return d->batch; }
bool dataset_has(const dataset *d, u32 k) { return d->of[k].path; }

const char *dataset_about(const dataset *d, arena *a) {
  strbuf b = {.a = a};
  for (u32 k = 0; k < d->n && !b.n; k++) {
    const source *s = &d->of[k];
    if (!s->path || !s->rows) continue;
    if (s->stream)
      sb_fmt(&b, "%lld sequences of %lld tokens in %s", (long long)d->samples, (long long)s->row, s->path);
    else
      sb_fmt(&b, "%lld samples in %s", (long long)d->samples, d->path);
  }
  if (d->of_tokens) sb_fmt(&b, ", labels are the next of %s", d->of_tokens);
  if (d->o.shuffle) sb_fmt(&b, ", shuffled by seed %llu", (unsigned long long)d->o.seed);
  return text_agree(arena_strdup(a, sb_str(&b)));
}

// ---- reading -------------------------------------------------------------------------------------------------
static i64 permuted(i64 i, i64 n, u64 key) {
  u32 half = 1;
  while (half < 31 && (i64)1 << 2 * half < n) half++;
  const u64 mask = ((u64)1 << half) - 1;
  u64 x = (u64)i;
  do {
    u64 left = x >> half, right = x & mask;
    for (u64 round = 0; round < 4; round++) {
      const u64 next = left ^ (hash_u64(right << 3 | round, key) & mask);
      left = right, right = next;
    }
    x = left << half | right;
  } while (x >= (u64)n);
  return (i64)x;
}

static i64 sample_at(const dataset *d, i64 number) {
  const i64 epoch = number / d->samples, i = number % d->samples;
  return d->o.shuffle ? permuted(i, d->samples, hash_u64((u64)epoch + 1, d->o.seed + 1)) : i;
}

static bool out_of_range(const dataset *d, u32 k, i64 at, i64 v) {
  const source *s = &d->of[k];
  const shape want = eval_param_shape(d->p, k);
  const bool label = main_of(d)->params.v[k].r == ROLE_LABEL;
  diag(d->c, E_DATA, loc_node(d->c, sym_of(d->c, s->path), sym_of(d->c, name_of(d, k)), (sym){0}),
       "element %lld is %lld; the model takes %s from 0 to %lld", (long long)at, (long long)v,
       label && !s->shift ? "labels" : "indices", (long long)s->bound - 1);
  if (s->shift) diag_note(d->c, (loc){0}, "%s are the next tokens of %s", name_of(d, k), d->of_tokens);
  if (v >= 0 && v < 1 << 24 && s->rows && is_token(&want) && d->o.vocab)
    diag_hint(d->c, "--vocab %lld, if the tokens are right", (long long)v + 1);
  return false;
}

// Labels that do not count may be any number. Those that are the next token are tokens.
static bool below(const dataset *d, u32 k, const void *from, i64 at, i64 n) {
  const source *s = &d->of[k];
  for (i64 j = 0; s->bound && j < n; j++) {
    i64 v;
    ker_load_i64(&v, s->t, (const char *)from + (size_t)j * dtype_bytes(s->t), 1);
    if ((v >= 0 && v < s->bound) || (!s->shift && eval_index_ignored(d->own, k, v))) continue;
    return out_of_range(d, k, at + j, v);
  }
  return true;
}

bool dataset_read(const dataset *d, u32 k, i64 first, const u8 *row, void *to) {
  const source *s = &d->of[k];
  const dtype t = eval_param_shape(d->p, k).t;
  if (!s->rows) {
    if (!below(d, k, s->elem, 0, s->total)) return false;
    ker_convert(to, t, s->elem, s->t, s->total);
    return true;
  }
  for (i64 b = 0; b < d->batch; b++) {
    if (row && !row[b]) continue;
    const i64 at = sample_at(d, first + b) * s->stride + s->shift;
    const u8 *from = s->elem + (size_t)at * dtype_bytes(s->t);
    if (!below(d, k, from, at, s->row)) return false;
    ker_convert((char *)to + (size_t)(b * s->row) * dtype_bytes(t), t, from, s->t, s->row);
  }
  return true;
}
