// profile.c - reads times of layers.
#include "machine/draft.h"
#include <math.h>
#include <stdlib.h>

typedef enum {
  COL_LAYER,
  COL_DEVICE,
  COL_SAMPLES,
  COL_TENSOR,
  COL_TIMES,
  COLS = COL_TIMES + PROFILE_TIMES
} column_id;
static const char *const column_name[COLS] = {"layer",      "device",      "samples",  "tensor",
                                              "forward_us", "backward_us", "update_us"};
static const char columns[] = "layer,device,samples,tensor,forward_us[,backward_us][,update_us]";

typedef struct {
  csv_text t;
  const machine *m;
  u32 at[COLS]; // column of every cell
  VEC(profile_row) rows;
  VEC(const char *) begins; // by row: its line
  VEC(profile_row) others;  // of kinds that the machine has not: the first row of each
  VEC(loc) others_at;
} reader;

// What a script of `heddle export --to profile-pytorch` writes is taken into a database first.
static bool read_events(const reader *r) {
  strbuf b = {.a = r->t.a};
  sb_shell(&b, sym_str(r->t.c, r->t.file));
  diag(r->t.c, E_PROFILE, csv_here(&r->t, r->t.line),
       "times of events, one a line, are not what --profiles takes");
  diag_hint(r->t.c, "heddle profile --import %s -o times.db, then --profiles times.db", sb_str(&b));
  return false;
}

static bool read_header(reader *r) {
  const char *line = r->t.line, *end = memchr(line, '\n', (size_t)(r->t.end - line));
  const char *first = arena_strndup(r->t.a, line, (size_t)((end ? end : r->t.end) - line));
  bool has[COLS];
  if (*first == '{' && strstr(first, "\"key\":")) return read_events(r);
  return csv_header(&r->t, column_name, COLS, COL_TIMES + 1, columns, r->at, has);
}

static bool bad(const reader *r, csv_cell x, const char *what) {
  diag(r->t.c, E_PROFILE, csv_here(&r->t, x.s), "'%.*s' is not %s", (int)MIN(x.n, 40u), x.s, what);
  return false;
}

static bool read_number(const reader *r, csv_cell x, double least, double most, const char *what,
                        double *out) {
  char text[48], *end;
  if (!x.n || x.n >= sizeof text) return bad(r, x, what);
  memcpy(text, x.s, x.n);
  text[x.n] = 0;
  *out = strtod(text, &end);
  if (end != text + x.n || strpbrk(text, "xX") || !isfinite(*out) || *out < least || *out > most)
    return bad(r, x, what);
  return true;
}

static bool read_cell(reader *r, u32 column, csv_cell x, profile_row *row) {
  double v;
  switch (column) {
  case COL_LAYER:
    if (!x.n) return bad(r, x, "the name of a layer");
    row->layer = arena_strndup(r->t.a, x.s, x.n);
    return true;
  case COL_DEVICE:
    if (!x.n) return bad(r, x, "a kind of device");
    row->device = sym_ofn(r->t.c, x.s, x.n);
    return true;
  case COL_SAMPLES:
    if (!read_number(r, x, 1, 1e9, "a number of samples", &v) || v != floor(v))
      return bad(r, x, "a number of samples");
    row->samples = (i64)v;
    return true;
  case COL_TENSOR:
    if (!read_number(r, x, 1, MACHINE_RANKS_MAX, "a number of devices", &v) || v != floor(v))
      return bad(r, x, "a number of devices");
    row->tensor = (u32)v;
    return true;
  default:
    if (!x.n) return true;
    if (!read_number(r, x, 0, 1e12, "a time in microseconds", &v)) return false;
    row->ps[column - COL_TIMES] = v * 1e6;
    return true;
  }
}

static bool has_kind(const machine *m, sym device) {
  for (u32 k = 0; k < m->nkinds; k++)
    if (m->kind[k].name.i == device.i) return true;
  return false;
}

// Lines about kinds that the machine has not are left out; one of its own may be meant, which then has none.
static void keep_other(reader *r, const profile_row *row) {
  for (u32 i = 0; i < r->others.n; i++)
    if (r->others.v[i].device.i == row->device.i) return;
  *vec_push(r->t.a, &r->others) = *row;
  *vec_push(r->t.a, &r->others_at) = csv_here(&r->t, r->t.line);
}

static bool read_row(reader *r) {
  csv_cell x[CSV_COLUMNS];
  profile_row row = {.ps = {-1, -1, -1}, .line = r->t.number};
  if (!csv_cells(&r->t, x)) return false;
  for (u32 i = 0; i < r->t.ncells; i++)
    if (!read_cell(r, r->at[i], x[i], &row)) return false;
  if (!has_kind(r->m, row.device)) return keep_other(r, &row), true;
  *vec_push(r->t.a, &r->rows) = row;
  *vec_push(r->t.a, &r->begins) = r->t.line;
  return true;
}

static int compare_rows(const void *x, const void *y) {
  const profile_row *a = x, *b = y;
  const int by_layer = strcmp(a->layer, b->layer);
  if (a->device.i != b->device.i) return a->device.i < b->device.i ? -1 : 1;
  if (by_layer) return by_layer;
  if (a->tensor != b->tensor) return a->tensor < b->tensor ? -1 : 1;
  return a->samples < b->samples ? -1 : a->samples > b->samples;
}

static bool once(reader *r) {
  hmap seen = {0};
  for (u32 i = 0; i < r->rows.n; i++) {
    const profile_row *x = &r->rows.v[i];
    const u64 h = hash_bytes(x->layer, strlen(x->layer),
                             hash_u64((u64)x->samples, hash_u64((u64)x->device.i << 32 | x->tensor, 0)));
    for (u32 it = 0, j; hmap_next(&seen, h, &it, &j);)
      if (!compare_rows(x, &r->rows.v[j])) {
        diag(r->t.c, E_PROFILE, csv_at(&r->t, r->rows.v[i].line, r->begins.v[i], r->begins.v[i]),
             "layer %s on %s with %lld samples and tensor %u is there twice", x->layer,
             sym_str(r->t.c, x->device), (long long)x->samples, x->tensor);
        diag_note(r->t.c, csv_at(&r->t, r->rows.v[j].line, r->begins.v[j], r->begins.v[j]), "the first time");
        return false;
      }
    hmap_add(r->t.a, &seen, h, i);
  }
  return true;
}

// A time is said in every line of a device, or in none.
static bool all_or_none(reader *r) {
  for (u32 k = 0; k < PROFILE_TIMES; k++)
    for (u32 i = 1; i < r->rows.n; i++) {
      u32 j = 0; // the first line of the device
      while (r->rows.v[j].device.i != r->rows.v[i].device.i) j++;
      const bool says = r->rows.v[i].ps[k] >= 0;
      if (says == (r->rows.v[j].ps[k] >= 0)) continue;
      diag(r->t.c, E_PROFILE, csv_at(&r->t, r->rows.v[i].line, r->begins.v[i], r->begins.v[i]),
           "%s is %s here, but %s before for %s", column_name[COL_TIMES + k], says ? "said" : "not said",
           says ? "not" : "it was", sym_str(r->t.c, r->rows.v[i].device));
      return false;
    }
  return true;
}

// The machine has a kind of this name, and the file has no line of it: nearly so called, or none.
static void without_times(const reader *r, sym kind) {
  const char *name = sym_str(r->t.c, kind);
  near_name near = near_to(name, strlen(name));
  strbuf has = {.a = r->t.a};
  for (u32 k = 0; k < r->m->nkinds; k++)
    sb_fmt(&has, "%s%s", k ? ", " : "", sym_str(r->t.c, r->m->kind[k].name));
  draft d = draft_new(r->t.c, r->t.a);
  const ynode *lib = draft_library(&d); // whoever says one of these means it
  for (u32 i = 0; i < r->others.n; i++) {
    const char *other = sym_str(r->t.c, r->others.v[i].device);
    if (!lib || !yaml_get(lib, other)) near_try(&near, other);
  }
  u32 meant = 0;
  while (near.name && strcmp(near.name, sym_str(r->t.c, r->others.v[meant].device))) meant++;
  diag(r->t.c, E_PROFILE, near.name ? r->others_at.v[meant] : loc_text(r->t.c, r->t.file, 0, 0, NULL),
       "no times of a %s, of which the machine has some%s%s%s", name, near.name ? "; '" : "",
       near.name ? near.name : "", near.name ? "' is none of its kinds" : "");
  if (near.name) diag_hint(r->t.c, "did you mean '%s'?", name);
  diag_hint(r->t.c, "the column `device` has names of the machine's kinds: %s", sb_str(&has));
}

static bool every_kind(const reader *r) {
  for (u32 k = 0; k < r->m->nranks; k++) {
    const device_kind *d = machine_kind_of(r->m, k);
    u32 i = 0;
    while (i < r->rows.n && r->rows.v[i].device.i != d->name.i) i++;
    if (i < r->rows.n) continue;
    return without_times(r, d->name), false;
  }
  return true;
}

const char *machine_title(arena *a, const machine *m) {
  const char *name = sym_str(m->c, m->name);
  if (m->events) name = arena_printf(a, "%s, measured times from %s", name, m->events->file);
  return m->profile ? arena_printf(a, "%s, times of layers from %s", name, m->profile->file) : name;
}

static const char *word(arena *a, const char *s) {
  strbuf b = {.a = a};
  sb_shell(&b, s);
  return sb_str(&b);
}
const char *machine_command(arena *a, const machine *m) {
  const char *name = word(a, sym_str(m->c, m->name)), *by = machine_predictor_command(m),
             *file[] = {m->events ? m->events->file : NULL, m->profile ? m->profile->file : NULL};
  for (u32 k = 0; k < COUNT_OF(file); k++)
    if (file[k]) name = arena_printf(a, "%s --profiles %s", name, word(a, file[k]));
  return by ? arena_printf(a, "%s --predictor %s", name, word(a, by)) : name;
}

u64 machine_profile_hash(const machine *m) {
  u64 h = m->profile ? m->profile->n : 0;
  for (u32 i = 0; m->profile && i < m->profile->n; i++) {
    const profile_row *x = &m->profile->row[i];
    const char *device = sym_str(m->c, x->device);
    h = hash_bytes(x->layer, strlen(x->layer), hash_bytes(device, strlen(device), h));
    h = hash_bytes(x->ps, sizeof x->ps, hash_u64((u64)x->samples, hash_u64(x->tensor, h)));
  }
  for (u32 i = 0; m->events && i < m->events->n; i++) {
    const measured_event *x = &m->events->row[i];
    h = hash_bytes(x->key, strlen(x->key), hash_u64((u64)x->ps, h + 1));
  }
  for (u32 i = 0; m->events && i < m->events->nfits; i++)
    h = hash_bytes(m->events->fit[i].ps, sizeof m->events->fit[i].ps, h + 2);
  const char *command = machine_predictor_command(m);
  if (command) h = hash_bytes(command, strlen(command), h + 3);
  return h;
}

bool machine_profile_parse(machine *m, arena *a, sym file, const char *text, size_t n) {
  reader r = {.t = {.c = m->c, .a = a, .file = file, .id = E_PROFILE, .text = text, .end = text + n}, .m = m};
  bool header = false;
  while (csv_next(&r.t)) {
    if (!(header ? read_row(&r) : read_header(&r))) return false;
    header = true;
  }
  if (!header) {
    diag(m->c, E_PROFILE, loc_text(m->c, file, 0, 0, NULL), "the file is empty");
    return false;
  }
  if (!once(&r) || !all_or_none(&r) || !every_kind(&r)) return false;
  qsort(r.rows.v, r.rows.n, sizeof *r.rows.v, compare_rows);
  machine_profile *p = NEW(a, machine_profile);
  *p = (machine_profile){arena_strdup(a, sym_str(m->c, file)), r.rows.n, r.rows.v};
  m->profile = p;
  return true;
}
