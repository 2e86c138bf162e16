// part_read.c - a part of a search from its file. Whatever the file holds, it is refused with its place or
// read.
#include "search/internal.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
  ctx *c, *lines; // lines: of strategies, whose diagnostics nobody sees
  arena *a;
  bool failed;
} reader;

static void bad(reader *r, const ynode *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void bad(reader *r, const ynode *at, const char *fmt, ...) {
  if (r->failed) return; // the rest follows from the first mistake
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *text = NEWN(r->a, char, n + 1);
  va_start(ap, fmt);
  vsnprintf(text, (size_t)n + 1, fmt, ap);
  va_end(ap);
  diag(r->c, E_PART, at->at, "%s", text);
  r->failed = true;
}

// ---- values ---------------------------------------------------------------------------------------------
static const ynode *get(reader *r, const ynode *y, const char *key, int kind) {
  static const char *const kinds[] = {"a value", "a list", "an object"};
  const ynode *v = yaml_get(y, key);
  if (!v)
    bad(r, y, "`%s` is missing", key);
  else if ((int)v->kind != kind)
    bad(r, v, "`%s` is not %s", key, kinds[kind]), v = NULL;
  return v;
}

static i64 number_of(reader *r, const ynode *v, const char *key, i64 least, i64 most) {
  char *end;
  errno = 0;
  long long x = v->kind == Y_SCALAR ? strtoll(v->str, &end, 10) : 0;
  if (v->kind == Y_SCALAR && end != v->str && !*end && !errno && x >= least && x <= most && !v->quoted)
    return x;
  bad(r, v, "`%s` is not a number from %lld to %lld", key, (long long)least, (long long)most);
  return least;
}

static i64 number(reader *r, const ynode *y, const char *key, i64 least, i64 most) {
  const ynode *v = get(r, y, key, Y_SCALAR);
  return v ? number_of(r, v, key, least, most) : least;
}

static double share(reader *r, const ynode *y, const char *key) {
  const ynode *v = get(r, y, key, Y_SCALAR);
  char *end;
  if (!v) return 0;
  double x = strtod(v->str, &end);
  if (end != v->str && !*end && isfinite(x) && !v->quoted) return x;
  bad(r, v, "`%s` is not a number", key);
  return 0;
}

static const char *string(reader *r, const ynode *y, const char *key) {
  const ynode *v = get(r, y, key, Y_SCALAR);
  return v ? v->str : "";
}

static strategy line(reader *r, const ynode *y, const char *key) {
  const ynode *v = get(r, y, key, Y_SCALAR);
  strategy_set set;
  strategy s = strategy_default();
  if (!v || (strategy_parse(r->lines, r->a, v->str, &set) && strategy_one(r->lines, &set, &s))) return s;
  bad(r, v, "'%s' is not a strategy", v->str);
  return s;
}

// ---- what parts have in common ----------------------------------------------------------------------------
static bool plain(const char *s) {
  return !strcmp(s, "true") || !strcmp(s, "false") || (*s && !s[strspn(s, "-0123456789")]);
}

static void read_shared(reader *r, const ynode *y, search_part *p) {
  for (u32 i = 0; i < SHARED_COUNT; i++) {
    const ynode *v = get(r, y, shared_rows[i].key, Y_SCALAR);
    const bool null = v && !v->quoted && !strcmp(v->str, "null");
    if (!v) return;
    if (!null && (v->quoted != shared_rows[i].text || (!v->quoted && !plain(v->str))))
      bad(r, v, "`%s` is of another type", shared_rows[i].key);
    p->shared[i] = null ? NULL : v->str;
    p->shared_at[i] = v->at;
  }
}

static search_fewer fewer(reader *r, const ynode *y, const char *key) {
  const ynode *v = yaml_get(y, key) ? get(r, y, key, Y_MAP) : NULL;
  if (!v) return (search_fewer){0};
  return (search_fewer){.ranks = (u32)number(r, v, "devices", 1, UINT32_MAX),
                        .time_ps = number(r, v, "time_ps", 1, INT64_MAX),
                        .strategy = string(r, v, "strategy")};
}

static void read_typed(reader *r, const ynode *y, search_part *p) {
  search_result *x = &p->r;
  p->part = (u32)number(r, y, "part", 1, PARTS_MOST);
  p->parts = (u32)number(r, y, "parts", p->part, PARTS_MOST);
  p->o.ranks = p->about.ranks = (u32)number(r, y, "ranks", 1, UINT32_MAX);
  p->o.top = (u32)number(r, y, "top", 0, UINT32_MAX);
  p->o.train = p->shared[SHARED_train] && !strcmp(p->shared[SHARED_train], "true");
  p->about.model = string(r, y, "model");
  p->about.machine = string(r, y, "machine");
  p->about.types = p->shared[SHARED_parameter_dtypes];
  if (yaml_get(y, "fusible")) p->o.fusible = number(r, y, "fusible", 0, 1);
  p->about.batchnorm.samples = number(r, y, "batchnorm_samples", 0, INT64_MAX);
  p->about.batchnorm.groups = number(r, y, "batchnorm_groups", 0, INT64_MAX);
  p->about.mfu = share(r, y, "mfu");
  p->about.layers = string(r, y, "layers_by_stage");
  x->batch = number(r, y, "batch", 0, INT64_MAX);
  x->memory_bytes = number(r, y, "memory_limit_bytes", -1, INT64_MAX);
  x->memory_least = number(r, y, "memory_least_bytes", -1, INT64_MAX);
  x->space = (u32)number(r, y, "space", 1, UINT32_MAX);
  x->dealt = (u32)number(r, y, "dealt", 0, x->space);
  x->refit = (u32)number(r, y, "dealt_besides", 0, x->space);
  x->count[SEARCH_EQUAL] = (u32)number(r, y, "equal", 0, x->space);
  x->count[SEARCH_BOUND_MEMORY] = (u32)number(r, y, "ruled_out_by_memory", 0, x->space);
  x->count[SEARCH_BOUND_TIME] = (u32)number(r, y, "ruled_out_by_time", 0, x->dealt + x->refit);
  x->host = (search_host)number(r, y, "host_memory", HOST_NONE, HOST_UPDATES);
  x->no_replicas = p->shared[SHARED_replicas_not_tried];
  x->most_microbatches = (u32)number(r, y, "most_microbatches", 0, UINT32_MAX);
  x->least_bytes = number(r, y, "least_bytes", 0, INT64_MAX);
  x->one_device = fewer(r, y, "one_device"), x->one_node = fewer(r, y, "one_node");
  if (yaml_get(y, "bound_ps")) x->bound_ps = number(r, y, "bound_ps", 0, INT64_MAX); // of several kinds
  if (yaml_get(y, "bound_failed")) x->bound_failed = number(r, y, "bound_failed", 0, 1);
  if (yaml_get(y, "devices_tried")) x->devices = string(r, y, "devices_tried");
}

// Of what is impossible or equal to another; id (or NULL): of the diagnostic.
static const char *read_reason(reader *r, const ynode *y, u16 *id) {
  const char *code = string(r, y, "code");
  const diag_id of = *code ? diag_find(code) : DIAG_NONE;
  if (*code && !of) bad(r, y, "no diagnostic is %s", code);
  *id = (u16)of;
  return string(r, y, "reason");
}

static void read_reasons(reader *r, const ynode *y, search_result *x) {
  const ynode *v = get(r, y, "impossible_reasons", Y_SEQ);
  if (!v) return;
  x->reason = ZNEWN(r->a, search_reason, v->n + 1);
  for (u32 i = 0; i < v->n && !r->failed; i++) {
    strategy *s = NEW(r->a, strategy);
    *s = line(r, v->item[i], "example");
    x->reason[i] = (search_reason){.example = s, .varies = number(r, v->item[i], "varies", 0, 1)};
    x->reason[i].why = read_reason(r, v->item[i], &x->reason[i].why_id);
    x->reason[i].count = (u32)number(r, v->item[i], "count", 1, x->space - x->count[SEARCH_IMPOSSIBLE]);
    x->count[SEARCH_IMPOSSIBLE] += x->reason[i].count;
  }
  x->nreasons = x->reasons_cap = v->n;
}

// ---- points -----------------------------------------------------------------------------------------------
// Families of points that are equal to it.
static void read_also(reader *r, const ynode *y, u32 nfamilies, search_point *p) {
  if (!yaml_get(y, "also")) return;
  const ynode *v = get(r, y, "also", Y_SEQ);
  u32 *also = NEWN(r->a, u32, v ? v->n + 1 : 1);
  for (u32 k = 0; v && k < v->n; k++) also[k] = (u32)number_of(r, v->item[k], "also", 0, (i64)nfamilies - 1);
  if (v && !r->failed) p->also = also, p->nalso = v->n;
}

static const strategy_packed *other(reader *r, const ynode *y, const char *key) { // NULL: there is none
  if (!yaml_get(y, key)) return NULL;
  const strategy of = line(r, y, key);
  strategy_packed *x = NEW(r->a, strategy_packed);
  *x = strategy_pack(r->a, &of);
  return x;
}

static void read_point(reader *r, const ynode *y, u32 nfamilies, search_point *p) {
  const char *state = string(r, y, "state");
  const strategy s = line(r, y, "strategy");
  p->packed = strategy_pack(r->a, &s);
  p->applied = true, p->stands = 1;
  p->bound_ps = number(r, y, "bound_ps", 0, INT64_MAX);
  p->work_ps = number(r, y, "work_ps", 0, INT64_MAX);
  for (u32 k = 0; k < SEARCH_STATES; k++)
    if (part_states[k] && !strcmp(state, part_states[k])) p->state = (search_state)k;
  if (p->state == SEARCH_OPEN) bad(r, y, "unknown state '%s'", state);
  read_also(r, y, nfamilies, p);
  if (p->state == SEARCH_IMPOSSIBLE || p->state == SEARCH_EQUAL) p->why = read_reason(r, y, &p->why_id);
  if (yaml_get(y, "first_ps")) p->first_ps = number(r, y, "first_ps", 0, INT64_MAX);
  p->resolved = other(r, y, "resolved"), p->cuts_of = other(r, y, "cuts_of");
  if (s.replicas.nparts) {
    p->products_ps = number(r, y, "products_ps", 0, INT64_MAX);
    p->stages_ps = number(r, y, "stages_ps", 0, INT64_MAX);
  }
  if (p->state != SEARCH_RAN && p->state != SEARCH_OVER_MEMORY) return;
  p->time_ps = number(r, y, "period_ps", 0, INT64_MAX);
  p->alone_ps = number(r, y, "time_ps", 0, INT64_MAX);
  p->peak_bytes = number(r, y, "peak_bytes", 0, INT64_MAX);
  p->utilisation = share(r, y, "utilisation");
  p->bubble = share(r, y, "bubble");
  p->comm = share(r, y, "communication");
  if (!yaml_get(y, "host_bytes")) return; // the memory of the devices is enough, or it is too large for them
  p->host_bytes = number(r, y, "host_bytes", 1, INT64_MAX);
  p->host_usable = number(r, y, "host_usable_bytes", 0, p->host_bytes);
}

static void read_kinds(reader *r, const ynode *y, search_result *x) {
  const ynode *v = get(r, y, "devices", Y_SEQ);
  if (!v) return;
  plan_kind *of = ZNEWN(r->a, plan_kind, v->n + 1);
  for (u32 i = 0; i < v->n && !r->failed; i++) {
    const ynode *e = v->item[i];
    of[i] = (plan_kind){.name = string(r, e, "device"),
                        .gets = string(r, e, "gets"),
                        .apart = string(r, e, "apart"),
                        .ranks = (u32)number(r, e, "ranks", 1, UINT32_MAX),
                        .work = share(r, e, "work"),
                        .computes = share(r, e, "utilisation"),
                        .communicates = share(r, e, "communication"),
                        .one_more = share(r, e, "one_more"),
                        .peak_bytes = number(r, e, "peak_bytes", 0, INT64_MAX),
                        .usable_bytes = number(r, e, "usable_bytes", 0, INT64_MAX)};
  }
  x->kinds = of, x->nkinds = v->n;
  x->spread_ps = number(r, y, "spread_ps", 0, INT64_MAX);
  x->even_ps = number(r, y, "equal_ps", 0, INT64_MAX);
  x->even = string(r, y, "equal_strategy");
}

static void read_families(reader *r, const ynode *y, search_result *x) {
  const ynode *v = get(r, y, "families", Y_SEQ);
  if (!v) return;
  x->family = ZNEWN(r->a, search_family, v->n + 1);
  for (u32 i = 0; i < v->n && !r->failed; i++) {
    const ynode *e = v->item[i];
    const char *row = string(r, e, "choice"), *word = string(r, e, "value");
    search_family *f = &x->family[x->nfamilies++];
    u32 id = 0;
    while (id < CHOICE_COUNT && strcmp(choice_get((choice_id)id)->name, row)) id++;
    if (id == CHOICE_COUNT || !choice_read((choice_id)id, r->a, word, strlen(word), &f->value)) {
      bad(r, e, "no choice is '%s=%s'", row, word);
      return;
    }
    f->of = (choice_id)id;
    f->applies = number(r, e, "applies", 0, 1);
    f->large = (u32)number(r, e, "too_large", 0, x->space);
    f->slow = (u32)number(r, e, "too_slow", 0, x->space);
    f->bound_ps = number(r, e, "bound_ps", 0, INT64_MAX);
  }
}

// The first of the plans that are not listed and need no applying.
static void read_rest(reader *r, const ynode *y, search_make_up *m) {
  const char *state = string(r, y, "state");
  const strategy s = line(r, y, "rest");
  m->rest.packed = strategy_pack(r->a, &s);
  for (u32 k = 0; k < SEARCH_STATES; k++)
    if (part_rest[k] && !strcmp(state, part_rest[k])) m->rest.state = (search_state)k;
  if (m->rest.state == SEARCH_OPEN) bad(r, y, "unknown state '%s'", state);
  m->rest.why = read_reason(r, y, &m->rest.why_id);
  m->rest.bound_bytes = number(r, y, "bound_bytes", 0, INT64_MAX);
  m->rest_ps = number(r, y, "bound_ps", 0, INT64_MAX);
}

static void read_make_ups(reader *r, const ynode *y, search_result *x) {
  const ynode *v = get(r, y, "replicas_tried", Y_SEQ);
  if (!v) return;
  x->make_up = ZNEWN(r->a, search_make_up, v->n + 1);
  for (u32 i = 0; i < v->n && !r->failed; i++) {
    const ynode *e = v->item[i], *ps = get(r, e, "bounds_ps", Y_SEQ);
    const strategy s = line(r, e, "first");
    search_make_up *m = &x->make_up[x->nmake_ups++];
    m->is = s.replicas, m->first = strategy_pack(r->a, &s);
    if (!m->is.nparts) bad(r, e, "the first plan has no replicas of different make-up");
    m->plans = (u32)number(r, e, "plans", 1, UINT32_MAX);
    m->slow = (u32)number(r, e, "too_slow", 0, m->plans);
    if (yaml_get(e, "rest")) read_rest(r, e, m);
    for (u32 k = 0; ps && k < ps->n && !r->failed; k++)
      *vec_push(r->a, &m->bounds) = number_of(r, ps->item[k], "bounds_ps", 0, INT64_MAX);
  }
}

static void read_hint(reader *r, const ynode *y, search_part *p) {
  if (yaml_get(y, "asked")) p->asked = string(r, y, "asked");
  if (!yaml_get(y, "hint_of")) return;
  strategy *s = NEW(r->a, strategy);
  *s = line(r, y, "hint_of");
  p->hint_of = s, p->r.hint = string(r, y, "hint");
}

static void read_points(reader *r, const ynode *y, search_result *x) {
  const ynode *v = get(r, y, "points", Y_SEQ);
  const u32 slow = x->count[SEARCH_BOUND_TIME];
  if (!v) return;
  const u32 all = x->dealt + x->refit;
  if (v->n != all - slow)
    bad(r, v, "%u plans listed, but of %u in this part %u were ruled out by time", v->n, all, slow);
  x->point = ZNEWN(r->a, search_point, v->n + 1);
  x->npoints = v->n;
  for (u32 i = 0; i < v->n && !r->failed; i++) read_point(r, v->item[i], x->nfamilies, &x->point[i]);
}

// ---- the file ---------------------------------------------------------------------------------------------
// Is it whole, and as it was written?
static bool is_whole(ctx *c, arena *a, sym file, const char *text, size_t n) {
  static const char head[] = "{\n  \"heddle_part\": ", mark[] = ",\n  \"checksum\": \"";
  const size_t digits = 16, end = sizeof mark - 1 + digits + strlen("\"\n}\n");
  if (n < sizeof head - 1 || memcmp(text, head, sizeof head - 1)) {
    diag(c, E_PART, loc_text(c, file, 1, 0, NULL), "this is not a part of a search");
    diag_hint(c, "`heddle plan ... --part 1/2 -o FILE` writes one");
    return false;
  }
  if (n > end) {
    strbuf b = {.a = a};
    sb_putn(&b, text, n - end);
    part_end(&b);
    if (b.n == n && !memcmp(b.v + n - end, text + n - end, end)) return true;
  }
  u32 last = 1;
  for (size_t i = 0; i + 1 < n; i++) last += text[i] == '\n';
  diag(c, E_PART, loc_text(c, file, last, 0, NULL), "the part is cut off here, or was changed before");
  diag_hint(c, "copy the file again, or evaluate the part again");
  return false;
}

search_part *search_part_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  if (!is_whole(c, a, file, text, n)) return NULL;
  const ynode *y = yaml_parse(c, a, file, text, n);
  if (!y) return NULL;
  reader r = {.c = c, .lines = ctx_new(), .a = a};
  search_part *p = NEW(a, search_part);
  p->at = y->at;
  if (number(&r, y, "heddle_part", 1, INT64_MAX) != PART_FORM)
    bad(&r, yaml_get(y, "heddle_part"), "this version reads `heddle_part: %d`", PART_FORM);
  if (!r.failed) read_shared(&r, y, p);
  if (!r.failed) read_typed(&r, y, p);
  if (!r.failed) read_reasons(&r, y, &p->r);
  if (!r.failed) read_kinds(&r, y, &p->r);
  if (!r.failed) read_families(&r, y, &p->r);
  if (!r.failed) read_make_ups(&r, y, &p->r);
  if (!r.failed) read_hint(&r, y, p);
  if (!r.failed) read_points(&r, y, &p->r);
  if (!r.failed) p->at = yaml_get(y, "part")->at, p->parts_at = yaml_get(y, "parts")->at;
  ctx_free(r.lines);
  return r.failed ? NULL : p;
}

search_part *search_part_read(ctx *c, arena *a, const char *path) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  search_part *p = search_part_parse(c, a, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  return p;
}
