// stage_times.c - reads times of stages, and prints them: a CSV file with a line for every stage.
#include "sched/internal.h"
#include <stdlib.h>

enum { STAGES_READ = 1024, LIST_MOST = 256 };
typedef enum {
  COL_STAGE,
  COL_FORWARD,
  COL_INPUT,
  COL_WEIGHT,
  COL_MEMORY,
  COL_PLACE, // from here on they may be missing
  COL_PLACES,
  COL_AFTER,
  COL_SEND,
  COL_NO_GRADIENT,
  COLS
} column_id;
static const char *const column_name[COLS] = {"stage", "forward_us", "input_us", "weight_us", "memory",
                                              "place", "places",     "after",    "send_us",   "no_gradient"};
static const char columns[] =
    "stage,forward_us,input_us,weight_us,memory[,place][,after][,send_us][,no_gradient]";

typedef struct {
  u32 number; // of the line
  const char *line;
  u32 stage;
  csv_cell cell[COLS];
} row;
typedef struct {
  csv_text t;
  u32 at[COLS]; // column of every cell
  loc header;
  bool has[COLS];
  VEC(row) rows; // by stage, once all are read
} reader;

static loc at_cell(const reader *r, const row *x, column_id k) {
  return csv_at(&r->t, x->number, x->line, x->cell[k].s ? x->cell[k].s : x->line);
}

static bool bad(const reader *r, const row *x, column_id k, const char *what) {
  diag(r->t.c, E_STAGES, at_cell(r, x, k), "%s: '%.*s' is not %s", column_name[k],
       (int)MIN(x->cell[k].n, 40u), x->cell[k].s, what);
  return false;
}

// ---- lines --------------------------------------------------------------------------------------------
static bool read_header(reader *r) {
  r->header = csv_here(&r->t, r->t.line);
  if (!csv_header(&r->t, column_name, COLS, COL_PLACE, columns, r->at, r->has)) return false;
  if (!r->has[COL_PLACE] || !r->has[COL_PLACES]) return true;
  diag(r->t.c, E_STAGES, r->header, "place and places are one column: give one of them");
  return false;
}

// A number of at most `most`, digits alone, of which there are some.
static bool read_number(const char *s, size_t n, u32 most, u32 *out) {
  u64 x = 0;
  if (!n) return false;
  for (size_t i = 0; i < n; i++) {
    if (s[i] < '0' || s[i] > '9') return false;
    x = MIN(x * 10 + (u64)(s[i] - '0'), UINT32_MAX);
  }
  *out = (u32)x;
  return x <= most;
}

static bool read_row(reader *r) {
  csv_cell x[CSV_COLUMNS];
  row now = {.number = r->t.number, .line = r->t.line};
  if (!csv_cells(&r->t, x)) return false;
  for (u32 i = 0; i < r->t.ncells; i++) now.cell[r->at[i]] = x[i];
  const csv_cell *id = &now.cell[COL_STAGE];
  if (!read_number(id->s, id->n, STAGES_READ - 1, &now.stage))
    return bad(r, &now, COL_STAGE, "the number of a stage, 0 to 1023");
  *vec_push(r->t.a, &r->rows) = now;
  return true;
}

// By stage: each from 0 on, once.
static bool sort_rows(reader *r) {
  row *v = NEWN(r->t.a, row, r->rows.n + 1);
  bool *seen = ZNEWN(r->t.a, bool, r->rows.n + 1);
  for (u32 i = 0; i < r->rows.n; i++) {
    const row *x = &r->rows.v[i];
    if (x->stage < r->rows.n && !seen[x->stage]) {
      seen[x->stage] = true, v[x->stage] = *x;
      continue;
    }
    if (x->stage < r->rows.n) {
      diag(r->t.c, E_STAGES, at_cell(r, x, COL_STAGE), "stage %u is there twice", x->stage);
      diag_note(r->t.c, at_cell(r, &v[x->stage], COL_STAGE), "here first");
      return false;
    }
    diag(r->t.c, E_STAGES, at_cell(r, x, COL_STAGE), "stage %u of %u stages", x->stage, r->rows.n);
    diag_hint(r->t.c, "stages count from 0, and every one of them has a line");
    return false;
  }
  r->rows.v = v;
  return true;
}

// ---- amounts ------------------------------------------------------------------------------------------
bool sched_amount(const char *text, size_t n, u64 *out) {
  const u64 most = 100 * 1000 * 1000;
  u64 whole = 0, part = 0, unit = 1000 * 1000;
  size_t i = 0, digits = 0;
  for (; i < n && text[i] >= '0' && text[i] <= '9'; i++, digits++)
    whole = MIN(whole * 10 + (u64)(text[i] - '0'), most + 1);
  if (i < n && text[i] == '.') {
    u64 of = unit;
    for (i++; i < n && text[i] >= '0' && text[i] <= '9' && of > 1; i++, digits++)
      of /= 10, part += of * (u64)(text[i] - '0');
  }
  *out = whole * unit + part;
  return digits && i == n && *out <= most * unit;
}

static bool read_amounts(reader *r, sched_stages *out, column_id k, u64 *v) {
  for (u32 i = 0; i < out->nstages; i++) {
    const row *x = &r->rows.v[i];
    v[i] = 0;
    if (!r->has[k] || (k == COL_SEND && !x->cell[k].n)) continue;
    if (!sched_amount(x->cell[k].s, x->cell[k].n, &v[i]))
      return bad(r, x, k, "a number from 0 to 100,000,000 with at most 6 digits after the point");
  }
  return true;
}

static bool set_costs(reader *r, sched_stages *out) {
  const u32 n = out->nstages;
  u64 *v[6];
  for (u32 i = 0; i < COUNT_OF(v); i++) v[i] = NEWN(r->t.a, u64, n);
  if (!read_amounts(r, out, COL_FORWARD, v[0]) || !read_amounts(r, out, COL_INPUT, v[1]) ||
      !read_amounts(r, out, COL_WEIGHT, v[2]) || !read_amounts(r, out, COL_MEMORY, v[3]) ||
      !read_amounts(r, out, COL_SEND, v[4]))
    return false;
  u64 all = 0;
  for (u32 i = 0; i < n; i++) v[5][i] = v[1][i] + v[2][i], all += v[0][i] + v[5][i];
  out->cost = (sched_costs){.task = {[TASK_F] = v[0], [TASK_B] = v[5], [TASK_I] = v[1], [TASK_W] = v[2]},
                            .memory = v[3],
                            .send = v[4]};
  if (all) return true;
  diag(r->t.c, E_STAGES, out->where[0], "no stage takes any time");
  return false;
}

// ---- places and edges ---------------------------------------------------------------------------------
static int ascending_u16(const void *a, const void *b) { return *(const u16 *)a - *(const u16 *)b; }

// "0+2+1" as ascending numbers; NULL and a diagnostic. Empty: none.
static const u16 *read_list(reader *r, const row *x, column_id k, u32 most, const char *what, u32 *n) {
  const char *s = x->cell[k].s, *end = s + x->cell[k].n;
  u16 *v = NEWN(r->t.a, u16, LIST_MOST);
  for (*n = 0; s < end; ++*n) {
    const char *plus = memchr(s, '+', (size_t)(end - s)), *e = plus ? plus : end;
    const csv_cell one = csv_trim(s, e);
    u32 number;
    if (*n == LIST_MOST || !read_number(one.s, one.n, most, &number) || (plus && plus + 1 == end))
      return bad(r, x, k, what), NULL;
    v[*n] = (u16)number;
    s = e + 1;
  }
  qsort(v, *n, sizeof *v, ascending_u16);
  for (u32 i = 1; i < *n; i++)
    if (v[i] == v[i - 1]) return bad(r, x, k, "a list in which every number is there once"), NULL;
  return v;
}

static bool set_places(reader *r, sched_stages *out) {
  const column_id k = r->has[COL_PLACES] ? COL_PLACES : COL_PLACE;
  sched_places *at = NEWN(r->t.a, sched_places, out->nstages);
  bool *used = ZNEWN(r->t.a, bool, STAGES_READ);
  for (u32 i = 0; i < out->nstages; i++) {
    const row *x = &r->rows.v[i];
    if (r->has[k]) {
      at[i].v = read_list(r, x, k, STAGES_READ - 1, "a place, or several as 0+1", &at[i].n);
      if (!at[i].v) return false;
      if (!at[i].n) return bad(r, x, k, "a place, or several as 0+1");
    } else {
      at[i] = (sched_places){1, arena_dup(r->t.a, &(u16){(u16)i}, sizeof(u16))};
    }
    for (u32 q = 0; q < at[i].n; q++) used[at[i].v[q]] = true;
    out->nplaces = MAX(out->nplaces, at[i].v[at[i].n - 1] + 1u);
  }
  out->at = at;
  for (u32 p = 0; p < out->nplaces; p++)
    if (!used[p]) {
      diag(r->t.c, E_STAGES, r->header, "%u places, but no stage lies on place %u", out->nplaces, p);
      diag_hint(r->t.c, "places count from 0");
      return false;
    }
  return true;
}

static int by_ends(const void *a, const void *b) {
  const sched_edge *x = a, *y = b;
  return x->from != y->from ? (int)x->from - y->from : (int)x->to - y->to;
}

typedef struct {
  const u16 *v;
  u32 n;
} list;

// Does stage `from` read stage `to`, over others or at once?
static bool reads(const list *after, u32 n, u32 from, u32 to, bool *seen) {
  if (from == to) return true;
  if (seen[from]) return false;
  seen[from] = true;
  for (u32 i = 0; i < after[from].n; i++)
    if (after[from].v[i] < n && reads(after, n, after[from].v[i], to, seen)) return true;
  return false;
}

static bool check_edge(reader *r, const sched_stages *out, const list *after, u32 to, u32 from) {
  const row *x = &r->rows.v[to];
  if (from < to) return true;
  if (from >= out->nstages) {
    diag(r->t.c, E_STAGES, at_cell(r, x, COL_AFTER), "stage %u reads stage %u of %u stages", to, from,
         out->nstages);
  } else if (reads(after, out->nstages, from, to, ZNEWN(r->t.a, bool, out->nstages))) {
    diag(r->t.c, E_STAGES, at_cell(r, x, COL_AFTER),
         "a cycle: stage %u reads stage %u, which waits for stage %u", to, from, to);
    if (from != to) diag_note(r->t.c, at_cell(r, &r->rows.v[from], COL_AFTER), "stage %u is here", from);
  } else {
    diag(r->t.c, E_STAGES, at_cell(r, x, COL_AFTER), "stage %u reads stage %u, a later one", to, from);
    diag_hint(r->t.c, "number the stages so that each reads earlier ones only");
  }
  return false;
}

// The edges into stage `to` along which no gradient comes back. e: the n edges into it.
static bool set_forward_only(reader *r, u32 to, sched_edge *e, u32 n) {
  list none = {0};
  if (!r->has[COL_NO_GRADIENT]) return true;
  none.v =
      read_list(r, &r->rows.v[to], COL_NO_GRADIENT, STAGES_READ - 1, "a stage, or several as 0+1", &none.n);
  for (u32 i = 0; none.v && i < none.n; i++) {
    u32 k = 0;
    while (k < n && e[k].from != none.v[i]) k++;
    if (k < n) {
      e[k].no_gradient = true;
      continue;
    }
    diag(r->t.c, E_STAGES, at_cell(r, &r->rows.v[to], COL_NO_GRADIENT),
         "stage %u gives stage %u no gradient, but does not read it", to, none.v[i]);
    diag_hint(r->t.c, "no_gradient names some of the stages of `after`");
    return false;
  }
  return none.v;
}

static bool set_edges(reader *r, sched_stages *out) {
  list *after = ZNEWN(r->t.a, list, out->nstages);
  VEC(sched_edge) e = {0};
  vec_reserve(r->t.a, &e, 1);
  for (u32 i = 0; i < out->nstages; i++) {
    if (r->has[COL_AFTER]) {
      after[i].v =
          read_list(r, &r->rows.v[i], COL_AFTER, STAGES_READ - 1, "a stage, or several as 0+1", &after[i].n);
      if (!after[i].v) return false;
    } else if (i) {
      after[i] = (list){arena_dup(r->t.a, &(u16){(u16)(i - 1)}, sizeof(u16)), 1};
    }
  }
  for (u32 i = 0; i < out->nstages; i++) {
    for (u32 k = 0; k < after[i].n; k++) {
      if (!check_edge(r, out, after, i, after[i].v[k])) return false;
      *vec_push(r->t.a, &e) = (sched_edge){.from = after[i].v[k], .to = (u16)i};
    }
    if (!set_forward_only(r, i, e.v + e.n - after[i].n, after[i].n)) return false;
  }
  qsort(e.v, e.n, sizeof *e.v, by_ends);
  out->edge = e.v, out->nedges = e.n;
  return true;
}

// ---- the whole ----------------------------------------------------------------------------------------
bool sched_stages_parse(ctx *c, arena *a, sym file, const char *text, size_t n, sched_stages *out) {
  reader r = {.t = {.c = c, .a = a, .file = file, .id = E_STAGES, .text = text, .end = text + n}};
  *out = (sched_stages){.columns = columns};
  if (memchr(text, 0, n) || !csv_next(&r.t)) {
    diag(c, E_STAGES, loc_text(c, file, 0, 0, NULL),
         memchr(text, 0, n) ? "the file is no text" : "the file is empty");
    return false;
  }
  if (!read_header(&r)) return false;
  while (csv_next(&r.t))
    if (!read_row(&r)) return false;
  if (!r.rows.n) {
    diag(c, E_STAGES, r.header, "no stage stands below the names of the columns");
    return false;
  }
  if (!sort_rows(&r)) return false;
  out->nstages = r.rows.n;
  loc *where = NEWN(a, loc, out->nstages);
  for (u32 i = 0; i < out->nstages; i++) where[i] = at_cell(&r, &r.rows.v[i], COL_STAGE);
  out->where = where;
  return set_costs(&r, out) && set_places(&r, out) && set_edges(&r, out);
}

bool sched_stages_read(ctx *c, arena *a, const char *path, sched_stages *out) {
  file_view f;
  if (!file_map(c, path, &f)) return false;
  const bool ok = sched_stages_parse(c, a, sym_of(c, path), (const char *)f.data, f.size, out);
  file_unmap(&f);
  return ok;
}

// ---- printing -----------------------------------------------------------------------------------------
static void put_amount(strbuf *out, u64 millionths) {
  const u64 unit = 1000 * 1000;
  sb_fmt(out, ",%llu", (unsigned long long)(millionths / unit));
  if (!(millionths % unit)) return;
  char part[8];
  snprintf(part, sizeof part, "%06llu", (unsigned long long)(millionths % unit));
  u32 n = 6;
  while (part[n - 1] == '0') n--;
  sb_fmt(out, ".%.*s", (int)n, part);
}

static void put_list(strbuf *out, u32 number, bool first) { sb_fmt(out, "%s%u", first ? "," : "+", number); }

// The stages that this one reads; forward_only: of them those to which it gives no gradient.
static void put_read(const sched_stages *s, u32 stage, bool forward_only, strbuf *out) {
  bool first = true;
  for (u32 i = 0; i < s->nedges; i++)
    if (s->edge[i].to == stage && (!forward_only || s->edge[i].no_gradient))
      put_list(out, s->edge[i].from, first), first = false;
  if (first) sb_char(out, ',');
}

void sched_stages_print(const sched_stages *s, strbuf *out) {
  const sched_costs *c = &s->cost;
  bool forward_only = false;
  for (u32 i = 0; i < s->nedges; i++) forward_only |= s->edge[i].no_gradient;
  sb_fmt(out, "stage,forward_us,input_us,weight_us,memory,places,after,send_us%s\n",
         forward_only ? ",no_gradient" : "");
  for (u32 k = 0; k < s->nstages; k++) {
    sb_fmt(out, "%u", k);
    put_amount(out, c->task[TASK_F][k]), put_amount(out, c->task[TASK_I][k]);
    put_amount(out, c->task[TASK_W][k]), put_amount(out, c->memory[k]);
    for (u32 i = 0; i < s->at[k].n; i++) put_list(out, s->at[k].v[i], !i);
    put_read(s, k, false, out);
    put_amount(out, c->send[k]);
    if (forward_only) put_read(s, k, true, out);
    sb_char(out, '\n');
  }
}
