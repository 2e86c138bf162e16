// csv.c - schedules as text, in the form that PyTorch's pipelining reads and writes: one line for each place.
//
// Idea: cells are read one after the other into tasks with the offset of each; sizes and places follow from
// the highest numbers, and the checks are those of every schedule, told at the cell.
#include "sched/internal.h"

enum { LINE_SHOWN = 200 }; // longer lines are not repeated in diagnostics

typedef struct {
  u32 line, begin, at; // begin: of the line
} spot;

typedef struct {
  ctx *c;
  arena *a, *tmp;
  sym file;
  const char *text, *end;
  const char *begin; // of the line
  u32 line;
  VEC(sched_task) tasks;
  VEC(u32) offset;                   // of every task
  VEC(u32) first, line_of, begin_of; // of every place: its first task; its line, and where that begins
  VEC(sched_edge) edges;
  VEC(spot) edge_at;
  bool has_edges; // else a chain
  u32 updates;
} reader;

// ---- places in the text -------------------------------------------------------------------------------
static loc loc_at(const reader *r, u32 line, const char *begin, const char *at) {
  const char *end = memchr(begin, '\n', (size_t)(r->end - begin));
  size_t n = (size_t)((end ? end : r->end) - begin);
  const char *shown = n <= LINE_SHOWN ? arena_strndup(ctx_arena(r->c), begin, n) : NULL;
  return loc_text(r->c, r->file, line, (u32)(at - begin) + 1, shown);
}

static loc loc_here(const reader *r, const char *at) { return loc_at(r, r->line, r->begin, at); }

static loc loc_of_task(const reader *r, u32 place, u32 index) {
  return loc_at(r, r->line_of.v[place], r->text + r->begin_of.v[place],
                r->text + r->offset.v[r->first.v[place] + index]);
}

static loc loc_of_edge(const reader *r, u32 edge) {
  const spot *x = &r->edge_at.v[edge];
  return loc_at(r, x->line, r->text + x->begin, r->text + x->at);
}

static bool bad_cell(reader *r, const char *from, const char *to) {
  int n = (int)MIN(to - from, 40);
  diag(r->c, E_PLAN, loc_here(r, from), "'%.*s' is not a task", n, from);
  diag_hint(r->c, "a cell is empty or reads STAGE, one of F B I W, MICROBATCH: 0F0, 3B7; two at once are "
                  "(0F3;7B0)OVERLAP_F_B");
  return false;
}

// ---- cells --------------------------------------------------------------------------------------------
static bool is_digit(const char *p, const char *end) { return p < end && *p >= '0' && *p <= '9'; }

// Digits as a number of at most `most`; UINT32_MAX if it is larger; *p goes past them.
static u32 number(const char **p, const char *end, u32 most) {
  u64 x = 0;
  for (; is_digit(*p, end); ++*p) x = MIN(x * 10 + (u64)(**p - '0'), UINT32_MAX);
  return x > most ? UINT32_MAX : (u32)x;
}

static bool is_transfer(const char *word, size_t n) {
  static const char *const name[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                     "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  for (u32 i = 0; i < COUNT_OF(name); i++)
    if (strlen(name[i]) == n && !memcmp(word, name[i], n)) return true;
  return false;
}

// The letter of a kind; TASK_KINDS if it is none.
static u32 kind_of(const char *word, size_t n) {
  u32 k = 0;
  while (k < TASK_KINDS && !(n == 1 && *word == sched_letter((task_kind)k))) k++;
  return k;
}

static bool too_large(reader *r, const char *at, const char *what, u32 most) {
  const char *end = at;
  while (is_digit(end, r->end)) end++;
  diag(r->c, E_LIMIT, loc_here(r, at), "%s %.*s; at most %u", what, (int)MIN(end - at, 40), at, most);
  return false;
}

// r1, p1, v1 behind a task, which begins at `from`.
static bool read_suffixes(reader *r, const char *from, const char *p, const char *end, sched_task *t) {
  const struct {
    char letter;
    const char *what;
    u32 most;
    u8 *out;
  } row[] = {{'r', "replica", UINT8_MAX - 1, &t->replica},
             {'p', "pass", PASSES_MAX - 1, &t->pass},
             {'v', "version", UINT8_MAX, &t->version}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    if (p == end || *p != row[k].letter) continue;
    const char *digits = ++p;
    u32 x = number(&p, end, row[k].most);
    if (p == digits) return bad_cell(r, from, end);
    if (x == UINT32_MAX) return too_large(r, digits, row[k].what, row[k].most);
    *row[k].out = (u8)x;
  }
  return p == end || bad_cell(r, from, end);
}

// A task or a transfer, which is left out.
static bool read_task(reader *r, const char *p, const char *end, bool transfers) {
  const char *from = p;
  sched_task t = {0};
  u32 stage = number(&p, end, STAGES_MAX - 1);
  if (p == from) return bad_cell(r, from, end);
  if (stage == UINT32_MAX) return too_large(r, from, "stage", STAGES_MAX - 1);
  const char *word = p;
  while (p < end && ((*p >= 'A' && *p <= 'Z') || *p == '_')) p++;
  u32 kind = kind_of(word, (size_t)(p - word));
  const char *digits = p;
  u32 mb = number(&p, end, TASKS_MAX - 1);
  if (kind == TASK_KINDS)
    return (transfers && is_transfer(word, (size_t)(digits - word)) && p == end) || bad_cell(r, from, end);
  if (digits == p) return bad_cell(r, from, end);
  if (mb == UINT32_MAX) return too_large(r, digits, "microbatch", TASKS_MAX - 1);
  t.stage = (u16)stage, t.kind = (u8)kind, t.mb = mb;
  if (!read_suffixes(r, from, p, end, &t)) return false;
  *vec_push(r->tmp, &r->tasks) = t;
  *vec_push(r->tmp, &r->offset) = (u32)(from - r->text);
  return true;
}

static bool read_cell(reader *r, const char *p, const char *end) {
  static const char overlap[] = ")OVERLAP_F_B";
  enum { TAIL = sizeof overlap - 1 };
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  if (p == end) return true;
  if (*p != '(') return read_task(r, p, end, true);
  const char *middle = memchr(p, ';', (size_t)(end - p));
  if (!middle || end - middle <= TAIL || memcmp(end - TAIL, overlap, TAIL)) return bad_cell(r, p, end);
  u32 first = r->tasks.n;
  if (!read_task(r, p + 1, middle, false) || !read_task(r, middle + 1, end - TAIL, false)) return false;
  r->tasks.v[first].paired = true;
  return true;
}

// ---- lines --------------------------------------------------------------------------------------------
// "# updates 4": weights are updated after so many microbatches.
static bool read_updates(reader *r, const char *p, const char *end) {
  while (p < end && *p == ' ') p++;
  const char *at = p;
  const u32 n = is_digit(p, end) ? number(&p, end, TASKS_MAX) : UINT32_MAX;
  if (n != UINT32_MAX && n && p == end) {
    r->updates = n;
    return true;
  }
  diag(r->c, E_PLAN, loc_here(r, at), "updates come after a number of microbatches: 4");
  return false;
}

// A comment that is nearly one of those that say something, with numbers and nothing else behind it, is likely to be meant
// as that.
static void warn_near(const reader *r, const char *p, const char *end) {
  static const char *const known[] = {"updates", "edges"};
  const char *from = p + 1, *to;
  while (from < end && (*from == ' ' || *from == '\t')) from++;
  for (to = from; to < end && ((*to | 32) >= 'a' && (*to | 32) <= 'z');) to++;
  const char *rest = to;
  while (rest < end && (is_digit(rest, end) || strchr(" \t:=->", *rest))) rest++;
  if (to == from || rest < end || !is_digit(end - 1, end)) return;
  near_name near = near_to(from, (size_t)(to - from));
  for (u32 k = 0; k < COUNT_OF(known); k++) near_try(&near, known[k]);
  if (!near.name) return;
  for (rest = to; !is_digit(rest, end); rest++) continue;
  diag(r->c, W_IGNORED, loc_here(r, p), "'%.*s' is taken for a comment", (int)MIN(end - p, 40), p);
  diag_hint(r->c, "did you mean `# %s %.*s`?", near.name, (int)MIN(end - rest, 40), rest);
}

// What stands behind a directive; NULL: this is another comment.
static const char *behind(const char *p, const char *end, const char *directive) {
  const size_t n = strlen(directive);
  if ((size_t)(end - p) < n || memcmp(p, directive, n) || (p + n < end && p[n] != ' ')) return NULL;
  return p + n;
}

// "# edges 0-1 0>2": which stage reads which, where that is not the one before it; with > no gradient comes back. Comments
// that are neither this nor the one above are skipped.
static bool read_comment(reader *r, const char *p, const char *end) {
  while (end > p && (end[-1] == ' ' || end[-1] == '\r')) end--;
  const char *rest = behind(p, end, "# updates");
  if (rest) return read_updates(r, rest, end);
  rest = behind(p, end, "# edges");
  if (!rest) {
    warn_near(r, p, end);
    return true;
  }
  r->has_edges = true;
  for (p = rest; p < end;) {
    while (p < end && *p == ' ') p++;
    const char *at = p;
    u32 from = number(&p, end, STAGES_MAX - 1), to = UINT32_MAX;
    const bool forward_only = p < end && *p == '>';
    if (p > at && p < end && (*p == '-' || forward_only))
      p++, to = is_digit(p, end) ? number(&p, end, STAGES_MAX - 1) : to;
    if (from == UINT32_MAX || to == UINT32_MAX || (p < end && *p != ' ')) {
      diag(r->c, E_PLAN, loc_here(r, at),
           "an edge reads FROM-TO, two stages: 0-1; FROM>TO without a gradient");
      return false;
    }
    *vec_push(r->tmp, &r->edges) =
        (sched_edge){.from = (u16)from, .to = (u16)to, .no_gradient = forward_only};
    *vec_push(r->tmp, &r->edge_at) = (spot){r->line, (u32)(r->begin - r->text), (u32)(at - r->text)};
  }
  return true;
}

static bool is_blank(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
  return p == end;
}

static bool read_place(reader *r, const char *end) {
  *vec_push(r->tmp, &r->first) = r->tasks.n;
  *vec_push(r->tmp, &r->line_of) = r->line;
  *vec_push(r->tmp, &r->begin_of) = (u32)(r->begin - r->text);
  for (const char *p = r->begin; p <= end;) {
    const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
    if (!comma) comma = end;
    if (!read_cell(r, p, comma)) return false;
    p = comma + 1;
  }
  return true;
}

// Bytes that editors and other programs put into files, and that no cell says why they are wrong.
static bool is_plain(reader *r) {
  static const char mark[] = "\xEF\xBB\xBF";
  const size_t n = (size_t)(r->end - r->text);
  const char *nul = n ? memchr(r->text, 0, n) : NULL;
  if (n >= 3 && !memcmp(r->text, mark, 3)) {
    diag(r->c, E_PLAN, loc_text(r->c, r->file, 1, 1, NULL), "a byte order mark (BOM) before the first cell");
    diag_hint(r->c, "save the file as UTF-8 without BOM, or as ASCII");
    return false;
  }
  if (!nul) return true;
  u32 line = 1, column = 1;
  for (const char *p = r->text; p < nul; p++) column = *p == '\n' ? line++, 1 : column + 1;
  diag(r->c, E_PLAN, loc_text(r->c, r->file, line, column, NULL), "a NUL byte: the file is not UTF-8 text");
  diag_hint(r->c, "save the file as UTF-8 without BOM, or as ASCII");
  return false;
}

static bool read_lines(reader *r) {
  u32 blank = 0; // the first of the blank lines before this one
  for (const char *p = r->text, *end; p < r->end; p = end + 1) {
    end = memchr(p, '\n', (size_t)(r->end - p));
    if (!end) end = r->end;
    r->begin = p, r->line++;
    if (*p == '#') {
      if (!read_comment(r, p, end)) return false;
    } else if (is_blank(p, end)) {
      if (!blank) blank = r->line;
    } else if (blank) {
      diag(r->c, E_PLAN, loc_text(r->c, r->file, blank, 1, NULL), "an empty line: place %u runs no task",
           r->first.n);
      diag_hint(r->c, "each line is one place, comments (#) aside: remove the empty line");
      return false;
    } else {
      blank = 0;
      if (!read_place(r, end)) return false;
    }
  }
  if (r->first.n) return true;
  diag(r->c, E_PLAN, loc_text(r->c, r->file, 1, 1, NULL), "the file has no places");
  diag_hint(r->c, "one line for each place, its tasks separated by commas: 0F0,0B0");
  return false;
}

// ---- the schedule -------------------------------------------------------------------------------------
static void set_sizes(const reader *r, sched *s) {
  u32 micro[UINT8_MAX] = {0};
  for (u32 i = 0; i < r->tasks.n; i++) {
    const sched_task *t = &r->tasks.v[i];
    s->nstages = MAX(s->nstages, t->stage + 1u), micro[t->replica] = MAX(micro[t->replica], t->mb + 1);
    s->nreplicas = MAX(s->nreplicas, t->replica + 1u), s->npasses = MAX(s->npasses, t->pass + 1u);
    s->backward |= t->kind != TASK_F;
  }
  sched_set_micro(r->a, s, micro);
}

static u32 places_seen(const reader *r, const sched *s, u32 *last, u16 *put, const u32 *begin) {
  u32 total = 0;
  u32 *n = ZNEWN(r->tmp, u32, (size_t)s->nreplicas * s->nstages);
  memset(last, 0, (size_t)s->nreplicas * s->nstages * sizeof *last);
  for (u32 p = 0; p < r->first.n; p++) {
    u32 end = p + 1 < r->first.n ? r->first.v[p + 1] : r->tasks.n;
    for (u32 i = r->first.v[p]; i < end; i++) {
      u32 x = r->tasks.v[i].replica * s->nstages + r->tasks.v[i].stage;
      if (last[x] == p + 1) continue;
      last[x] = p + 1, total++;
      if (put) put[begin[x] + n[x]] = (u16)p;
      n[x]++;
    }
  }
  if (!put) memcpy(last, n, (size_t)s->nreplicas * s->nstages * sizeof *n);
  return total;
}

// A stage lies where its tasks stand.
static void set_places(const reader *r, sched *s) {
  u32 n = s->nreplicas * s->nstages;
  u32 *count = NEWN(r->tmp, u32, n), *begin = NEWN(r->tmp, u32, n), *last = NEWN(r->tmp, u32, n);
  u16 *v = NEWN(r->a, u16, places_seen(r, s, count, NULL, NULL) + 1);
  sched_places *at = NEWN(r->a, sched_places, n);
  for (u32 x = 0, k = 0; x < n; k += count[x++]) begin[x] = k, at[x] = (sched_places){count[x], v + k};
  places_seen(r, s, last, v, begin);
  bool *split = ZNEWN(r->a, bool, s->nstages);
  for (u32 i = 0; i < r->tasks.n; i++) split[r->tasks.v[i].stage] |= r->tasks.v[i].kind > TASK_B;
  s->at = at, s->split = split;
}

static void set_edges(const reader *r, sched *s) {
  s->nedges = r->has_edges ? r->edges.n : s->nstages - 1;
  sched_edge *e = NEWN(r->a, sched_edge, s->nedges + 1);
  for (u32 k = 0; k < s->nedges; k++)
    e[k] = r->has_edges ? r->edges.v[k] : (sched_edge){.from = (u16)k, .to = (u16)(k + 1)};
  s->edge = e;
}

static void set_tasks(const reader *r, sched *s) {
  sched_task *t = arena_dup(r->a, r->tasks.v, r->tasks.n * sizeof *t);
  sched_seq *seq = NEWN(r->a, sched_seq, s->nplaces);
  for (u32 p = 0; p < s->nplaces; p++) {
    u32 end = p + 1 < s->nplaces ? r->first.v[p + 1] : r->tasks.n;
    seq[p] = (sched_seq){end - r->first.v[p], t + r->first.v[p]};
  }
  s->seq = seq;
}

static void set_source(const reader *r, sched *s) {
  u32 *line = arena_dup(r->a, r->line_of.v, s->nplaces * sizeof *line);
  u32 *column = NEWN(r->a, u32, r->tasks.n);
  const u32 **columns = NEWN(r->a, const u32 *, s->nplaces);
  const char **text = ZNEWN(r->a, const char *, s->nplaces);
  for (u32 p = 0; p < s->nplaces; p++) {
    const char *begin = r->text + r->begin_of.v[p];
    const char *end = memchr(begin, '\n', (size_t)(r->end - begin));
    const size_t n = (size_t)((end ? end : r->end) - begin);
    if (n <= LINE_SHOWN) text[p] = arena_strndup(r->a, begin, n);
    columns[p] = column + r->first.v[p];
    for (u32 i = 0; i < s->seq[p].n; i++)
      column[r->first.v[p] + i] = r->offset.v[r->first.v[p] + i] - r->begin_of.v[p] + 1;
  }
  sched_source *from = NEW(r->a, sched_source);
  *from = (sched_source){.file = r->file, .line = line, .column = columns, .text = text};
  s->source = from;
}

// Where the numbers come from that the sizes of the schedule follow from.
static void note_highest(const reader *r, const sched *s) {
  u32 mb = 0, stage = 0;
  for (u32 i = 0; i < r->tasks.n; i++) {
    if (r->tasks.v[i].mb > r->tasks.v[mb].mb) mb = i;
    if (r->tasks.v[i].stage > r->tasks.v[stage].stage) stage = i;
  }
  for (u32 k = 0; k < 2; k++) {
    u32 i = k ? mb : stage, p = 0;
    while (p + 1 < s->nplaces && r->first.v[p + 1] <= i) p++;
    diag_note(r->c, loc_of_task(r, p, i - r->first.v[p]), "the highest %s is %u", k ? "microbatch" : "stage",
              k ? r->tasks.v[i].mb : r->tasks.v[i].stage);
  }
}

static bool check(reader *r, const sched *s) {
  fault f = sched_fault(r->tmp, s);
  if (!f.message) return true;
  loc where = f.edge               ? loc_of_edge(r, f.edge - 1)
              : f.place == NO_TASK ? loc_text(r->c, r->file, 0, 0, NULL)
              : f.index == NO_TASK ? loc_text(r->c, r->file, r->line_of.v[f.place], 1, NULL)
                                   : loc_of_task(r, f.place, f.index);
  diag(r->c, E_PLAN, where, "%s", f.message);
  if (f.hint && f.index == NO_TASK) note_highest(r, s);
  if (f.hint) diag_hint(r->c, "%s", f.hint);
  return false;
}

static u64 key_of(const sched_task *t) { return (u64)t->replica << 48 | (u64)t->stage << 32 | t->mb; }

// The version that a forward reads its backward reads as well, and there are several only where weights are updated. The
// schedule has been checked, so every backward has a forward.
static bool check_versions(reader *r, const sched *s) {
  hmap read = {0}; // by forward: 1 + version
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      if (t->version && !r->updates) {
        diag(r->c, E_PLAN, loc_of_task(r, p, i),
             "task %s of place %u reads another version of weights, but nothing says when they are updated",
             name_of(t).s, p);
        diag_hint(r->c, "a first line such as `# updates 1`: after so many microbatches");
        return false;
      }
      if (t->kind == TASK_F && t->pass + 1u == s->npasses && r->updates)
        hmap_add(r->tmp, &read, key_of(t), 1u + t->version);
    }
  for (u32 p = 0; p < s->nplaces && r->updates; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      const u32 forward = hmap_get(&read, key_of(t));
      if (t->kind == TASK_F || !forward || forward == 1u + t->version) continue;
      sched_task of = *t;
      of.kind = TASK_F, of.version = (u8)(forward - 1);
      diag(r->c, E_PLAN, loc_of_task(r, p, i),
           "task %s of place %u reads version %u of weights, but its forward, %s, version %u", name_of(t).s,
           p, t->version, name_of(&of).s, forward - 1);
      return false;
    }
  return true;
}

// The tables of a schedule are no larger than its text.
static bool check_sizes(reader *r, const sched *s) {
  u64 need = (u64)s->nstages * s->nreplicas;
  if (r->first.n > PLACES_MAX) {
    diag(r->c, E_LIMIT, loc_text(r->c, r->file, 0, 0, NULL), "%u places; at most %d", r->first.n, PLACES_MAX);
    return false;
  }
  if (need <= r->tasks.n) return true;
  loc file = loc_text(r->c, r->file, 0, 0, NULL);
  if (s->nreplicas == 1)
    diag(r->c, E_PLAN, file, "%u stages, but only %u tasks", s->nstages, r->tasks.n);
  else
    diag(r->c, E_PLAN, file, "%u stages x %u replicas, but only %u tasks", s->nstages, s->nreplicas,
         r->tasks.n);
  if (r->tasks.n) note_highest(r, s);
  diag_hint(r->c, "stages count from 0, and every one of them runs");
  return false;
}

static const sched *read_all(reader *r) {
  if (!is_plain(r) || !read_lines(r)) return NULL;
  sched *s = NEW(r->a, sched);
  *s = (sched){.name = "csv",
               .nstages = 1,
               .nplaces = r->first.n,
               .nreplicas = 1,
               .npasses = 1,
               .updates = r->updates};
  set_sizes(r, s);
  if (!check_sizes(r, s)) return NULL;
  set_places(r, s);
  set_edges(r, s);
  set_tasks(r, s);
  if (!check(r, s) || !check_versions(r, s)) return NULL;
  set_source(r, s);
  sched_seal(s);
  return s;
}

const sched *sched_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  if (n > INT32_MAX) {
    diag(c, E_LIMIT, loc_text(c, file, 0, 0, NULL), "a schedule of %llu bytes; at most %d",
         (unsigned long long)n, INT32_MAX);
    return NULL;
  }
  reader r = {.c = c, .a = a, .tmp = arena_new(), .file = file, .text = text, .end = text + n};
  const sched *s = read_all(&r);
  arena_free(r.tmp);
  return s;
}

// ---- printing -----------------------------------------------------------------------------------------
static bool is_chain(const sched *s) {
  for (u32 k = 0; k < s->nedges; k++)
    if (s->edge[k].from != k || s->edge[k].to != k + 1 || s->edge[k].no_gradient) return false;
  return s->nedges + 1 == s->nstages;
}

static void put_task(strbuf *out, const sched_task *t) {
  if (t->replica || t->pass || t->version) {
    sb_put(out, name_of(t).s);
    return;
  }
  sb_i64(out, t->stage);
  sb_char(out, sched_letter((task_kind)t->kind));
  sb_i64(out, t->mb);
}

void sched_print(const sched *s, strbuf *out) {
  if (s->updates) sb_fmt(out, "# updates %u\n", s->updates);
  if (!is_chain(s)) {
    sb_put(out, "# edges");
    for (u32 k = 0; k < s->nedges; k++)
      sb_fmt(out, " %u%c%u", s->edge[k].from, s->edge[k].no_gradient ? '>' : '-', s->edge[k].to);
    sb_char(out, '\n');
  }
  for (u32 p = 0; p < s->nplaces; p++) {
    bool second = false;
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      sb_put(out, second ? ";" : i ? "," : "");
      if (t->paired) sb_char(out, '(');
      put_task(out, t);
      if (second) sb_put(out, ")OVERLAP_F_B");
      second = t->paired;
    }
    sb_char(out, '\n');
  }
}
