// training.c - what a run begins with, reads and leaves, behind heddle.h: weights, data, checkpoints.
#include "api/internal.h"
#include "front/front.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static role role_of(const prog *p, u32 k) { return func_get(p, p->main)->params.v[k].r; }

// ---- what training begins with -----------------------------------------------------------------------------
static heddle_tensors *initial(heddle_program *p, u64 seed) {
  heddle_tensors *t = tensors_open(p);
  if (!t || eval_initial(p->p, p->uses, seed, t->x, t->n, t->o.a)) return t;
  object_drop(t);
  return NULL;
}
heddle_tensors *heddle_tensors_initial(heddle_program *p, uint64_t seed) {
  if (!p) return NULL;
  API_RETURN(heddle_tensors *, NULL, p->o.s, initial(p, seed));
}

// Every weight of t, and with `states` every state.
static bool take(heddle_tensors *t, heddle_program *p, named_arrays *s) {
  named_target *target = NEWN(s->a, named_target, t->n + 1);
  for (u32 k = 0; k < t->n; k++) {
    const role r = role_of(p->p, k);
    target[k] = (named_target){
        .name = t->name[k], .wanted = r == ROLE_WEIGHT || (s->states && r == ROLE_STATE), .x = &t->x[k]};
  }
  return named_take(s, target, t->n);
}

static bool weights(heddle_tensors *t, heddle_program *p, const char *path) {
  arena *a = arena_new();
  named_arrays s;
  bool ok = named_open(p->p->c, a, path, false, &s);
  if (ok) ok = take(t, p, &s), named_close(&s);
  if (ok) eval_masters(p->p, t->x);
  arena_free(a);
  return ok;
}
bool heddle_tensors_weights(heddle_tensors *t, heddle_program *p, const char *path) {
  if (!t || !p || !path) return false;
  API_RETURN(bool, false, p->o.s, weights(t, p, path));
}

// ---- data --------------------------------------------------------------------------------------------------
static void data_fini(object *o) {
  heddle_data *d = (heddle_data *)o;
  dataset_close(d->d);
  object_drop(d->p);
}

static heddle_data *open_data(heddle_program *p, const char *path, const heddle_data_options *o) {
  dataset_opts opts = {.shuffle = o->shuffle,
                       .seed = o->seed,
                       .uses = p->uses,
                       .vocab = front_kind_of(p->name) == FRONT_FAMILY};
  if (o->type && !(opts.raw = dtype_find(o->type, strlen(o->type)))) {
    diag(p->p->c, E_USAGE, (loc){0}, "'%s' is no type of tokens", o->type);
    diag_hint(p->p->c, "u8, u16, u32, i32 or i64");
    return NULL;
  }
  heddle_data *d = object_new(p->o.s, sizeof *d, data_fini);
  d->p = object_hold(p);
  d->d = dataset_open(p->p, d->o.a, arena_strdup(d->o.a, path), &opts);
  if (d->d) return d;
  object_drop(d);
  return NULL;
}
heddle_data *heddle_data_open(heddle_program *p, const char *path, const heddle_data_options *o) {
  if (!p || !path) return NULL;
  API_RETURN(heddle_data *, NULL, p->o.s,
             open_data(p, path, o ? o : &(heddle_data_options){.shuffle = false}));
}
void heddle_data_free(heddle_data *d) { object_drop(d); }
int64_t heddle_data_samples(const heddle_data *d) { return d ? dataset_samples(d->d) : 0; }
int64_t heddle_data_batch(const heddle_data *d) { return d ? dataset_batch(d->d) : 0; }
const char *heddle_data_about(heddle_data *d) {
  if (!d) return NULL;
  API_RETURN(const char *, NULL, d->o.s, dataset_about(d->d, d->o.a));
}

static bool feed(heddle_run *r, const heddle_data *d, i64 first) {
  bool ok = true;
  r->phase = HEDDLE_READING;
  for (u32 k = 0; k < r->nparams && ok; k++) {
    if (!dataset_has(d->d, k)) continue;
    arena *a = arena_new();
    eval_array x = {.s = eval_param_shape(r->p->p, k)};
    x.data = arena_alloc(a, (size_t)shape_bytes(&x.s)); // rows of other ranks are never touched
    u8 *row = ZNEWN(a, u8, x.s.nd ? x.s.dim[0] : 1);
    ok = (!x.s.nd || eval_rank_rows(r->r, k, row)) && dataset_read(d->d, k, first, row, x.data) &&
         eval_rank_set(r->r, k, &x);
    arena_free(a);
  }
  return ok;
}
typedef struct {
  heddle_run *r;
  const heddle_data *d;
  i64 first;
} feeding;
static bool feed_job(void *arg) {
  const feeding *f = arg;
  return feed(f->r, f->d, f->first);
}
bool heddle_run_feed(heddle_run *r, heddle_data *d, int64_t first) {
  if (!r || !d) return false;
  API_RETURN(bool, false, r->o.s, eval_rank_guard(r->r, feed_job, &(feeding){r, d, first}, "reading data"));
}

// ---- the reference -----------------------------------------------------------------------------------------
// One step: what it makes of a parameter is its value in the next one.
static bool reference_step(heddle_tensors *t, heddle_program *p, i64 update, const u32 *next, u32 lossy,
                           double *loss) {
  const func_info *m = func_get(p->p, p->p->main);
  arena *a = arena_new();
  eval_array *out = NEWN(a, eval_array, m->rets.n + 1);
  const eval_opts o = {.step = update, .threads = cpu_count()};
  const bool ok = eval_run(p->p, &o, t->x, t->n, out, m->rets.n, a);
  for (u32 k = 0; k < t->n && ok; k++)
    if (next[k]) memcpy(t->x[k].data, out[next[k] - 1].data, (size_t)shape_bytes(&t->x[k].s));
  if (ok && lossy) *loss = eval_element(&out[lossy - 1], 0);
  arena_free(a);
  return ok;
}

static bool reference(heddle_tensors *t, heddle_program *p, heddle_data *d, u64 steps, double *loss) {
  const u32 *next = program_next(p->p, t->o.a), lossy = program_loss(p->p);
  bool ok = true;
  for (u64 s = 0; s < steps && ok; s++) {
    for (u32 k = 0; d && k < t->n && ok; k++)
      if (dataset_has(d->d, k)) ok = dataset_read(d->d, k, (i64)s * dataset_batch(d->d), NULL, t->x[k].data);
    ok = ok && reference_step(t, p, (i64)s * eval_updates(p->p) + 1, next, lossy, &loss[s]);
  }
  return ok;
}
bool heddle_tensors_train(heddle_tensors *t, heddle_program *p, heddle_data *data, uint64_t steps,
                          double *loss) {
  if (!t || !p || !loss) return false;
  API_RETURN(bool, false, p->o.s, reference(t, p, data, steps, loss));
}

// ---- checkpoints -------------------------------------------------------------------------------------------
static const char STEP[] = "heddle.step", UPDATES[] = "heddle.updates", SAMPLE[] = "heddle.sample",
                  SEED[] = "heddle.seed", SHUFFLE[] = "heddle.shuffle", PLAN[] = "heddle.plan";

// Weights before states, so that those who want weights alone know where they end.
static u32 in_order(const heddle_run *r, u32 *order, u32 *nweights) {
  u32 n = 0;
  for (int states = 0; states < 2; states++) {
    for (u32 k = 0; k < r->nparams; k++)
      if (role_of(r->p->p, k) == (states ? ROLE_STATE : ROLE_WEIGHT)) order[n++] = k;
    if (!states) *nweights = n;
  }
  return n;
}

static safetensors_out *begin_file(heddle_run *r, arena *a, const char *path, const heddle_checkpoint *at,
                                   const u32 *order, u32 n, u32 nweights) {
  heddle_tensors *names = tensors_of_parameters(r->p);
  safetensors_entry *e = NEWN(a, safetensors_entry, n + 1);
  for (u32 k = 0; k < n; k++)
    e[k] = (safetensors_entry){arena_strdup(a, names->name[order[k]]), eval_param_shape(r->p->p, order[k])};
  object_drop(names);
  const safetensors_note note[] = {{STEP, arena_printf(a, "%llu", (unsigned long long)r->steps)},
                                   {UPDATES, arena_printf(a, "%llu", (unsigned long long)r->updates)},
                                   {SAMPLE, arena_printf(a, "%lld", (long long)at->sample)},
                                   {SEED, arena_printf(a, "%llu", (unsigned long long)at->seed)},
                                   {SHUFFLE, at->shuffle ? "1" : "0"},
                                   {PLAN, at->plan ? at->plan : ""},
                                   {CHECKPOINT_WEIGHTS, arena_printf(a, "%u", nweights)}};
  return safetensors_begin(r->p->p->c, a, path, e, n, note, COUNT_OF(note));
}

static const char *name_of_step(arena *a, u64 step) {
  return arena_printf(a, "step-%06llu.safetensors", (unsigned long long)step);
}

// Only names that a save gives: `step-7.safetensors` is somebody's own.
static bool step_of(arena *a, const char *name, u64 *step) {
  if (strncmp(name, "step-", 5) != 0) return false;
  arena_mark_t mark = arena_mark(a);
  *step = strtoull(name + 5, NULL, 10);
  const bool is = !strcmp(name, name_of_step(a, *step));
  arena_release(a, mark);
  return is;
}

static int descending(const void *x, const void *y) {
  const u64 a = *(const u64 *)x, b = *(const u64 *)y;
  return a > b ? -1 : a < b;
}

// Older checkpoints go, and what a save that was cut short has left. Those of later steps are of a job that went further: they stay.
static void tidy(const char *folder, u32 keep, u64 saved) {
  arena *a = arena_new();
  VEC(u64) steps = {0};
  u64 step;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    const size_t n = strlen(e->d_name);
    if (step_of(a, e->d_name, &step)) {
      if (step <= saved) *vec_push(a, &steps) = step;
    } else if (!strncmp(e->d_name, "step-", 5) && n > 4 && !strcmp(e->d_name + n - 4, ".tmp"))
      unlink(arena_printf(a, "%s/%s", folder, e->d_name));
  }
  if (dir) closedir(dir);
  if (steps.n) qsort(steps.v, steps.n, sizeof *steps.v, descending);
  for (u32 k = keep; keep && k < steps.n; k++)
    unlink(arena_printf(a, "%s/%s", folder, name_of_step(a, steps.v[k])));
  arena_free(a);
}

// One tensor at a time is whole at rank 0.
static bool save(heddle_run *r, const char *folder, const heddle_checkpoint *at, u32 keep) {
  arena *a = arena_new(), *one = arena_new();
  const bool writes = eval_rank_self(r->r) == 0;
  const char *path = arena_printf(a, "%s/%s", folder, name_of_step(a, r->steps));
  r->phase = HEDDLE_SAVING;
  u32 *order = NEWN(a, u32, r->nparams + 1), nweights = 0;
  const u32 n = in_order(r, order, &nweights);
  safetensors_out *o =
      writes && dir_make(r->p->p->c, folder) ? begin_file(r, a, path, at, order, n, nweights) : NULL;
  bool ok = !writes || o;
  for (u32 k = 0; k < n && ok; k++) {
    eval_array x;
    arena_mark_t mark = arena_mark(one);
    ok = eval_rank_parameter(r->r, order[k], &x, one);
    if (ok && writes) safetensors_put(o, x.data);
    arena_release(one, mark);
  }
  if (o && ok)
    ok = safetensors_end(o);
  else if (o)
    safetensors_drop(o);
  if (ok && writes) tidy(folder, keep, r->steps);
  arena_free(one), arena_free(a);
  return ok;
}
typedef struct {
  heddle_run *r;
  const char *folder;
  const heddle_checkpoint *at;
  u32 keep;
} saving;
static bool save_job(void *arg) {
  const saving *s = arg;
  return save(s->r, s->folder, s->at, s->keep);
}
bool heddle_run_save(heddle_run *r, const char *folder, const heddle_checkpoint *at, uint32_t keep) {
  if (!r || !folder || !at) return false;
  API_RETURN(bool, false, r->o.s,
             eval_rank_guard(r->r, save_job, &(saving){r, folder, at, keep}, "saving a checkpoint"));
}

static bool read_number(const safetensors *f, const char *key, u64 *out) {
  const char *text = safetensors_find(f, key);
  char *stop = NULL;
  *out = text ? strtoull(text, &stop, 10) : 0;
  return text && *text && !*stop;
}

// ---- states of another optimizer ---------------------------------------------------------------------------
static bool has_tail(const char *name, const char *tail) {
  const size_t n = strlen(name), m = strlen(tail);
  return n >= m && !strcmp(name + n - m, tail);
}

// Which one has left the states of a checkpoint, as --optimizer takes it; by their names (pass/train.c).
static const char *optimizer_of(const named_arrays *s, u32 nweights) {
  static const struct {
    const char *tail, *name;
  } of[] = {{".r", "adafactor"}, {".m", "momentum"}, {".v", "adam"}};
  const char *name = "sgd";
  for (u32 j = 0; j < COUNT_OF(of); j++)
    for (u32 k = nweights; k < s->n; k++)
      if (has_tail(s->item[k].name, of[j].tail)) {
        name = of[j].name;
        if (!j) return name;
        break;
      }
  return name;
}

typedef struct {
  u32 n, masters;
  strbuf names;
} states_apart;
static void put_apart(states_apart *x, const char *name) {
  enum { NAMED_MOST = 3 };
  if (x->n < NAMED_MOST) sb_fmt(&x->names, "%s%s", x->n ? ", " : "", name);
  if (x->n == NAMED_MOST) sb_put(&x->names, ", ..");
  x->n++, x->masters += has_tail(name, ".master");
}

// The model has the checkpoint's weights but not its states: all of them are told at once.
static bool states_agree(const heddle_tensors *t, const heddle_program *p, const named_arrays *s,
                         u32 nweights) {
  ctx *c = p->p->c;
  hmap in_model = {0}, in_file = {0};
  states_apart lacks = {.names = {.a = s->a}}, extra = {.names = {.a = s->a}};
  for (u32 k = 0; k < t->n; k++) hmap_add(s->a, &in_model, sym_of(c, t->name[k]).i, k + 1);
  for (u32 k = 0; k < s->n; k++) hmap_add(s->a, &in_file, sym_of(c, s->item[k].name).i, k + 1);
  for (u32 k = 0; k < t->n; k++) {
    const role r = role_of(p->p, k);
    if ((r != ROLE_WEIGHT && r != ROLE_STATE) || hmap_get(&in_file, sym_of(c, t->name[k]).i)) continue;
    if (r == ROLE_WEIGHT) return true; // it is of another model
    put_apart(&lacks, t->name[k]);
  }
  for (u32 k = 0; k < s->n; k++) {
    if (hmap_get(&in_model, sym_of(c, s->item[k].name).i)) continue;
    if (k < nweights) return true;
    put_apart(&extra, s->item[k].name);
  }
  if (!lacks.n && !extra.n) return true;
  strbuf b = {.a = s->a};
  if (lacks.n) sb_fmt(&b, "it has not the %u of the model: %s", lacks.n, sb_str(&lacks.names));
  if (extra.n)
    sb_fmt(&b, "%sthe model has not its %u: %s", lacks.n ? "; " : "", extra.n, sb_str(&extra.names));
  diag(c, E_WEIGHTS, loc_node(c, sym_of(c, s->path), (sym){0}, (sym){0}),
       "the optimizer has other states than the checkpoint; %s", sb_str(&b));
  if (lacks.masters + extra.masters == lacks.n + extra.n)
    diag_hint(c, "--dtype and --no-master-weights as when it was written");
  else
    diag_hint(c, "--optimizer %s as it was written with, or --weights %s: its weights, and states from zero",
              optimizer_of(s, nweights), s->path);
  return false;
}

static const char *newest_below(arena *a, const char *folder, u64 most) {
  u64 best = 0, step;
  const char *found = NULL;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (step_of(a, e->d_name, &step) && step < most && (!found || step > best))
      best = step, found = arena_printf(a, "%s/%s", folder, e->d_name);
  if (dir) closedir(dir);
  return found;
}
const char *checkpoint_newest(arena *a, const char *folder) { return newest_below(a, folder, UINT64_MAX); }

// What was just said of a file that cannot be read gets a hint, if there is one that was saved before it.
static void hint_older(ctx *c, arena *a, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
             *folder = slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
  u64 step;
  const char *older = step_of(a, name, &step) ? newest_below(a, folder, step) : NULL;
  if (older) diag_hint(c, "--resume %s is the one before it", older);
}

static bool resume(heddle_tensors *t, heddle_program *p, const char *path, heddle_checkpoint *out) {
  ctx *c = p->p->c;
  arena *a = arena_new();
  named_arrays s;
  u64 first = 0, shuffle = 0;
  *out = (heddle_checkpoint){.step = 0};
  bool ok = named_open(c, a, path, true, &s);
  if (ok) {
    const safetensors *f = s.nfiles == 1 ? &s.file[0] : NULL;
    ok = f && f->checked && read_number(f, STEP, &out->step) && read_number(f, SAMPLE, &first) &&
         read_number(f, SEED, &out->seed) && read_number(f, SHUFFLE, &shuffle) && first <= INT64_MAX;
    if (!ok) {
      diag(c, E_SAFETENSORS, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}),
           "not a checkpoint of `heddle run --save`");
      diag_hint(c, "--weights %s takes its weights alone", path);
    }
    if (ok && !read_number(f, UPDATES, &t->updates))
      t->updates = out->step; // of a version that counted steps
    out->sample = (i64)first, out->shuffle = shuffle;
    const char *line = f ? safetensors_find(f, PLAN) : NULL;
    out->plan = arena_strdup(t->o.a, line ? line : "");
    u64 nweights = 0;
    if (f) read_number(f, CHECKPOINT_WEIGHTS, &nweights);
    ok = ok && states_agree(t, p, &s, (u32)nweights) && take(t, p, &s);
    named_close(&s);
  } else
    hint_older(c, a, path);
  arena_free(a);
  return ok;
}
bool heddle_tensors_resume(heddle_tensors *t, heddle_program *p, const char *path, heddle_checkpoint *out) {
  if (!t || !p || !path || !out) return false;
  API_RETURN(bool, false, p->o.s, resume(t, p, path, out));
}

static const char *newest(heddle_session *s, const char *path) {
  arena *a = ctx_arena(s->c);
  if (!dir_exists(path)) {
    if (file_exists(path)) return arena_strdup(a, path);
    diag(s->c, E_FILE_OPEN, (loc){0}, "cannot read '%s': No such file or directory", path);
    return NULL;
  }
  if (!dir_readable(s->c, path)) return NULL;
  const char *found = checkpoint_newest(a, path);
  if (!found) {
    diag(s->c, E_FILE_OPEN, (loc){0}, "'%s' has no checkpoint step-NNNNNN.safetensors", path);
    diag_hint(s->c, "--save %s --save-every 100 writes them", path);
  }
  return found;
}
const char *heddle_checkpoint_find(heddle_session *s, const char *path) {
  if (!s || !path) return NULL;
  API_RETURN(const char *, NULL, s, newest(s, path));
}
