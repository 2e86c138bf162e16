// job.c - the files of a job: found, ordered by rank, read one at a time.
#include "diagnose/diagnose.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static int by_rank(const void *x, const void *y) {
  const job_file *a = x, *b = y;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return strcmp(a->path, b->path);
}

typedef VEC(job_file) files;

static void add(job *j, files *f, const char *path, trace_format format) {
  *vec_push(j->a, f) = (job_file){.path = path, .format = format, .rank = trace_rank_in_name(path, RANK_ANY)};
}

static bool add_folder(job *j, files *f, const char *path) {
  DIR *d = opendir(path);
  if (!d) {
    diag(j->c, E_FILE_OPEN, (loc){0}, "cannot open %s: %s", path, strerror(errno));
    return false;
  }
  for (const struct dirent *e; (e = readdir(d));) {
    const char *full =
        arena_printf(j->a, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", e->d_name);
    struct stat st;
    if (*e->d_name == '.' || stat(full, &st) || !S_ISREG(st.st_mode)) continue;
    const trace_format format = trace_format_of(j->c, full);
    if (format != TRACE_FORMAT_NONE) add(j, f, full, format);
  }
  closedir(d);
  return true;
}

static bool add_path(job *j, files *f, const char *path) {
  struct stat st;
  if (!stat(path, &st) && S_ISDIR(st.st_mode)) return add_folder(j, f, path);
  const u32 before = diag_count(j->c);
  const trace_format format = trace_format_of(j->c, path);
  if (format != TRACE_FORMAT_NONE) {
    add(j, f, arena_strdup(j->a, path), format);
    return true;
  }
  if (diag_count(j->c) > before) return false;
  char start[512] = {0};
  const loc at = loc_node(j->c, sym_of(j->c, path), (sym){0}, (sym){0});
  if (trace_begin(j->c, path, start, sizeof start - 1) > 262 && !memcmp(start + 257, "ustar", 5)) {
    diag(j->c, E_TRACE, at, "this is an archive of files (tar)");
    diag_hint(j->c, "unpack it: tar xf %s", path);
    return false;
  }
  diag(j->c, E_TRACE, at, "this is no trace that Heddle can read");
  strbuf b = {.a = j->a};
  for (u32 k = 0; k < TRACE_FORMATS; k++) sb_fmt(&b, "%s%s", k ? ", " : "", trace_format_rows[k].name);
  diag_hint(j->c, "formats: %s; of a job that hangs dumps and RAS output: heddle trace hang", sb_str(&b));
  return false;
}

job *job_open(ctx *c, arena *a, u32 n, const char *const *paths) {
  job *j = NEW(a, job);
  files f = {0};
  j->c = c, j->a = a;
  bool ok = true;
  for (u32 k = 0; k < n; k++) ok &= add_path(j, &f, paths[k]);
  if (!ok) return NULL;
  if (!f.n) {
    diag(c, E_TRACE, (loc){0}, "no traces in %s", n ? paths[0] : "nothing");
    diag_hint(
        c, "name the trace files, or the folder that they are in (folders inside it are not searched); dumps "
           "of a job that hangs are for heddle trace hang");
    return NULL;
  }
  qsort(f.v, f.n, sizeof *f.v, by_rank);
  j->n = f.n, j->file = f.v;
  return j;
}

bool job_want_steps(job *j, const char *steps) {
  number_set *set = NEW(j->a, number_set);
  j->steps = NULL;
  if (!number_set_parse(j->c, j->a, steps, set)) return false;
  if (set->n) j->steps = set;
  return true;
}

static bool wants_step(const void *steps, u32 number) { return number_set_has(steps, number); }

const trace *job_load(job *j, u32 file, u32 kinds) {
  job_file *f = &j->file[file];
  assert(file < j->n && !f->a);
  f->a = arena_new();
  f->t = NEW(f->a, trace);
  const trace_want want = {.kinds = kinds, .step = j->steps ? wants_step : NULL, .steps = j->steps};
  if (trace_read(j->c, f->a, f->path, f->format, &want, f->rank, f->t, &f->about)) return f->t;
  job_unload(j, file);
  return NULL;
}

void job_unload(job *j, u32 file) {
  job_file *f = &j->file[file];
  arena_free(f->a);
  f->a = NULL, f->t = NULL;
}

void job_close(job *j) {
  for (u32 k = 0; j && k < j->n; k++) job_unload(j, k);
}

u32 job_rank(const job *j, u32 file) {
  const job_file *f = &j->file[file];
  return f->t && f->t->processes.n && f->t->processes.v[0].rank != TRACE_NONE ? f->t->processes.v[0].rank
                                                                              : f->rank;
}
