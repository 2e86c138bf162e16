// hang.c - a job that does not go on, from what its ranks have left: files found and read, findings, where ranks
// stand. Not how dumps are read (flight_read.c, ras.c), nor how ranks are matched (hang_colls.c, hang_pairs.c).
#include "diagnose/flight.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { START = 1 << 16 };
#define FILE_LIMIT ((size_t)256 << 20)

const hang_kind_row hang_kind_rows[HANG_KINDS] = {
#define HANG(id, name, pytorch, about) {name, pytorch, about},
#include "diagnose/hang.def"
#undef HANG
};

typedef struct {
  const char *path;
  u32 rank; // by its name
} file;
typedef struct {
  ctx *c;
  arena *a;
  VEC(file) files;
  hang_input in;
} work;

// ---- files ------------------------------------------------------------------------------------------------------
static bool within(const char *s, size_t n, const char *word) {
  const size_t k = strlen(word);
  for (const char *p = s; (p = memchr(p, *word, (size_t)(s + n - p))); p++) {
    if ((size_t)(s + n - p) < k) return false;
    if (!memcmp(p, word, k)) return true;
  }
  return false;
}

static bool is_json(const char *s) { return s[strspn(s, " \t\r\n")] == '{'; }

// Of the files of a folder: may one that begins so be meant?
static bool is_meant(const char *s, size_t n) {
  static const char *const word[] = {"pg_config", "pg_status", "entries", "comm_lib_version",
                                     "communicators"};
  const bool pickle = n > 2 && ((u8)s[0] == 0x80 || s[0] == '(' || s[0] == '}');
  if ((!is_json(s) && !pickle) || within(s, n, "traceEvents") || within(s, n, "schemaVersion")) return false;
  for (u32 k = 0; k < COUNT_OF(word); k++)
    if (within(s, n, word[k])) return true;
  return false;
}

static void add_file(work *w, const char *path) {
  *vec_push(w->a, &w->files) = (file){arena_strdup(w->a, path), trace_rank_in_name(path, RANK_DUMP)};
}

static bool add_path(work *w, const char *path) {
  struct stat st;
  if (stat(path, &st) || !S_ISDIR(st.st_mode)) return add_file(w, path), true;
  DIR *d = opendir(path);
  if (!d) {
    diag(w->c, E_FILE_OPEN, (loc){0}, "cannot open %s: %s", path, strerror(errno));
    return false;
  }
  char *start = base_malloc(START + 1);
  for (const struct dirent *e; (e = readdir(d));) {
    const char *full =
        arena_printf(w->a, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", e->d_name);
    if (*e->d_name == '.' || stat(full, &st) || !S_ISREG(st.st_mode)) continue;
    if (is_meant(start, trace_begin(w->c, full, start, START))) add_file(w, full);
  }
  free(start);
  closedir(d);
  return true;
}

static int by_rank(const void *x, const void *y) {
  const file *a = x, *b = y;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return strcmp(a->path, b->path);
}

bool hang_take(hang_input *x, sym name, u32 rank, const char *text, size_t n) {
  ctx *c = x->f.c;
  arena *tmp = arena_new();
  const json *j;
  if (!is_json(text))
    j = pickle_parse(c, tmp, name, (const u8 *)text, n);
  else if (within(text, MIN(n, (size_t)START), "\"communicators\""))
    j = ras_parse(c, tmp, name, text, n);
  else
    j = json_parse(c, tmp, name, text, n);
  const bool ok =
      j && (ras_is(j) ? ras_add(c, x->f.a, name, j, &x->ras, &x->comms) : flight_add(&x->f, name, rank, j));
  arena_free(tmp);
  return ok;
}

static bool read_one(work *w, const file *x) {
  arena *tmp = arena_new();
  const char *text;
  size_t n;
  bool cut;
  const bool ok = trace_whole(w->c, tmp, x->path, FILE_LIMIT, &text, &n, &cut) &&
                  hang_take(&w->in, sym_of(w->c, x->path), x->rank, text, n);
  arena_free(tmp);
  return ok;
}

// Files that cannot be read are left out if others can be: a rank that dies while it writes leaves half a dump.
static bool read_all(work *w) {
  VEC(u32) bad = {0};
  for (u32 k = 0; k < w->files.n; k++) {
    const u32 before = diag_count(w->c), errors = diag_errors(w->c);
    if (read_one(w, &w->files.v[k])) continue;
    assert(diag_errors(w->c) > errors);
    *vec_push(w->a, &bad) = k;
    if (w->files.n == 1) return false;
    const diag_item why = diag_get(w->c, before);
    const char *text = arena_strdup(w->a, why.message);
    diag_truncate(w->c, before);
    diag(w->c, W_IGNORED, why.at, "this file is left out: %s", text);
  }
  if (bad.n < w->files.n) return true;
  for (u32 k = 0; k < bad.n && k < 4; k++) read_one(w, &w->files.v[bad.v[k]]); // why, in full
  return false;
}

// ---- where ranks stand ------------------------------------------------------------------------------------------
typedef struct {
  const flight_stand *s;
  const flight_entry *e; // the first that is not done, else the last; NULL: none
} standing;

static u64 standing_key(const standing *x) {
  u64 h = hash_u64((u64)x->s->completed, x->s->group + 1);
  h = hash_step(h, (u64)x->s->started);
  h = hash_step(h, (u64)x->s->enqueued);
  if (x->e) {
    h = hash_step(h, (u64)x->e->seq << 2 | x->e->state);
    h = hash_step(h, (u64)x->e->op.i << 32 | x->e->at.i);
    h = hash_step(h, (u64)x->e->bytes);
    h = hash_step(h, x->e->p2p ? (u64)(x->e->rank == x->e->src ? x->e->dst : x->e->src) + 1 : 0);
  }
  return hash_u64(h, 9);
}

static int by_ranks(const void *p, const void *q) {
  const hang_stand *x = p, *y = q;
  if (x->ranks.v[0] != y->ranks.v[0]) return x->ranks.v[0] < y->ranks.v[0] ? -1 : 1;
  return x->group.i < y->group.i ? -1 : x->group.i > y->group.i;
}

static bool open_at(const flight_entry *e, const flight_stand *s) {
  return e && e->state != FLIGHT_COMPLETED && (e->p2p || e->seq > s->completed);
}

// The entry that each stand is about: the first collective that is not done, else the first such message, else the last
// collective, else the last message. Entries lie in the order of groups and numbers, collectives first.
static void find_entries(const flight *f, standing *of) {
  for (u32 k = 0; k < f->entries.n; k++) {
    const flight_entry *e = &f->entries.v[k];
    const flight_stand *s = flight_stand_of(f, e->group, e->rank);
    const flight_entry **at = &of[s - f->stands.v].e;
    if (!open_at(*at, s) && (!e->p2p || !*at || (*at)->p2p || open_at(e, s))) *at = e;
  }
}

static sym op_of(ctx *c, const flight_entry *e) {
  if (!e->p2p) return e->op;
  return e->rank == e->src ? sym_fmt(c, "send to %u", e->dst) : sym_fmt(c, "recv from %u", e->src);
}

static void stands(const flight *f, hang *h) {
  standing *of = ZNEWN(f->a, standing, f->stands.n + 1);
  hmap seen = {0};
  VEC(hang_stand) out = {0};
  typedef VEC(u32) ranks;
  ranks *in = NULL;
  for (u32 k = 0; k < f->stands.n; k++) of[k].s = &f->stands.v[k];
  find_entries(f, of);
  in = arena_zalloc(f->a, (f->stands.n + 1) * sizeof *in);
  for (u32 k = 0; k < f->stands.n; k++) {
    const standing *x = &of[k];
    const u64 key = standing_key(x);
    u32 to, it = 0;
    if (!hmap_next(&seen, key, &it, &to)) {
      hmap_add(f->a, &seen, key, to = out.n);
      const flight_group *g = &f->groups.v[x->s->group];
      hang_stand *s = vec_push(f->a, &out);
      *s = (hang_stand){.group = g->name,
                        .desc = g->desc,
                        .completed = x->s->completed,
                        .started = x->s->started,
                        .scheduled = x->s->enqueued,
                        .seq = -1,
                        .bytes = -1};
      if (x->e) {
        s->op = op_of(f->c, x->e), s->seq = x->e->seq, s->at = x->e->at, s->bytes = x->e->bytes;
        s->state = flight_state_name(x->e->state);
      }
    }
    *vec_push(f->a, &in[to]) = x->s->rank;
  }
  for (u32 k = 0; k < out.n; k++) out.v[k].ranks = hang_ranks_of(f->a, in[k].n, in[k].v);
  if (out.n) qsort(out.v, out.n, sizeof *out.v, by_ranks);
  h->nstands = out.n, h->stand = out.v;
}

// Ranks that groups name and that there is no dump of.
static void count_ranks(const flight *f, hang *h) {
  VEC(u32) all = {0};
  for (u32 k = 0; k < f->dumps.n; k++) *vec_push(f->a, &all) = f->dumps.v[k].rank;
  for (u32 g = 0; g < f->groups.n; g++)
    for (u32 k = 0; k < f->groups.v[g].size; k++) *vec_push(f->a, &all) = f->groups.v[g].member[k];
  const hang_ranks r = hang_ranks_of(f->a, all.n, all.v);
  u32 n = 0, *none = NEWN(f->a, u32, r.n);
  for (u32 k = 0; k < r.n; k++)
    if (!flight_dump_of(f, r.v[k])) none[n++] = r.v[k];
  h->dumps = f->dumps.n, h->ranks = r.n, h->no_dump = (hang_ranks){n, none};
}

hang *hang_of(hang_input *x) {
  flight *f = &x->f;
  if (!flight_done(f)) return NULL;
  hang *h = NEW(f->a, hang);
  hang_findings found = {0};
  hang_collectives(f, f->a, &found, &h->collectives, &h->matched);
  hang_pairs(f, f->a, &found, &h->messages);
  hang_arrange(f, f->a, &found);
  for (u32 k = 0; k < x->ras.n; k++) *vec_push(f->a, &found) = x->ras.v[k];
  h->groups = f->groups.n, h->skipped = f->skipped;
  h->nfound = found.n, h->found = found.v;
  h->ncomms = x->comms.n, h->comm = x->comms.v;
  count_ranks(f, h);
  stands(f, h);
  return h;
}

hang *hang_find(ctx *c, arena *a, u32 n, const char *const *paths) {
  work w = {.c = c, .a = a, .in.f = {.c = c, .a = a}};
  bool ok = true;
  for (u32 k = 0; k < n; k++) ok &= add_path(&w, paths[k]);
  if (!ok) return NULL;
  if (!w.files.n) {
    diag(c, E_TRACE, (loc){0}, "no dumps of the flight recorder and no RAS output in %s",
         n ? paths[0] : "nothing");
    diag_hint(c, "PyTorch writes them to the prefix in TORCH_FR_DUMP_TEMP_FILE and the rank, "
                 "by default /tmp/nccl_trace_rank_0 or ~/.cache/torch/comm_lib_trace_rank_0");
    return NULL;
  }
  qsort(w.files.v, w.files.n, sizeof *w.files.v, by_rank);
  return read_all(&w) ? hang_of(&w.in) : NULL;
}
