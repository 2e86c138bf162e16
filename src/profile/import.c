// import.c - times that were measured elsewhere, into the database.
//
//   {"key": "matmul f32[8,4] f32[4,2] -> f32[8,2] on h100", "machine": "dgx-h100", "versions": "torch 2.4.0, CUDA 12.4",
//    "median_ps": 8350000, "spread": 0.02, "count": 60, "source": "measured", "launch_ps": 6100000}
//
// Idea: a line is a row of the database, or says why there is none ("failed"). All lines are looked at before anything is
// written, and each fault is told at its line. What the launch takes on the host is not a time of the database: where launches
// of a step take longer than what they launch, the report says so.
#include "profile/internal.h"
#include <math.h>

typedef enum {
  M_KEY,
  M_MACHINE,
  M_VERSIONS,
  M_MEDIAN,
  M_SPREAD,
  M_COUNT,
  M_SOURCE,
  M_FAILED,
  M_LAUNCH, // may be missing
  MEMBERS
} member;
static const char *const name_of[MEMBERS] = {"key",   "machine", "versions", "median_ps", "spread",
                                             "count", "source",  "failed",   "launch_ps"};
typedef struct {
  u32 line;
  const char *text, *versions, *failed; // failed NULL: it has a time
  measured_event x;
  i64 launch; // ps on the host
} row;
typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const machine *m;
  const char *machine; // of the first line
  VEC(row) rows;
  hmap seen;
  u32 lines, others; // with a machine; of them with another one than is wanted
  loc other_at;      // the first of these, and its name
  const char *other;
  u32 line;
  const char *text; // of it
  const json *of[MEMBERS];
} importing;

// Where the value of a member stands.
static loc at_member(importing *r, u32 k) {
  const char *quoted = k < MEMBERS ? arena_printf(r->a, "\"%s\"", name_of[k]) : "";
  const char *s = *quoted ? strstr(r->text, quoted) : NULL;
  if (s) s += strlen(quoted), s += strspn(s, " \t:");
  return loc_text(r->c, r->file, r->line, s ? (u32)(s - r->text) + 1 : 1, r->text);
}
static loc at_line(importing *r) { return loc_text(r->c, r->file, r->line, 1, r->text); }

static bool unknown_member(importing *r, const char *name) {
  near_name near = near_to(name, strlen(name));
  for (u32 k = 0; k < MEMBERS; k++) near_try(&near, name_of[k]);
  diag(r->c, E_PROFILE, at_line(r), "a time has no '%s'", name);
  if (near.name)
    diag_hint(r->c, "did you mean %s?", near.name);
  else
    diag_hint(r->c, "key, machine, versions, median_ps, spread, count, source, launch_ps; or failed");
  return false;
}

static bool take_members(importing *r, const json *j) {
  if (j->kind != JSON_OBJ) {
    diag(r->c, E_PROFILE, at_line(r), "a line is not an object");
    return diag_hint(r->c, "{\"key\": .., \"machine\": .., \"versions\": .., \"median_ps\": .., ..}"), false;
  }
  for (u32 k = 0; k < MEMBERS; k++) r->of[k] = json_get(j, name_of[k]);
  for (u32 i = 0; i < j->n; i++) {
    u32 k = 0;
    while (k < MEMBERS && strcmp(j->key[i], name_of[k])) k++;
    if (k == MEMBERS) return unknown_member(r, j->key[i]);
  }
  for (u32 k = 0; k < MEMBERS; k++) {
    const bool failed = r->of[M_FAILED] != NULL, optional = k == M_LAUNCH && !failed;
    const bool wanted = optional ? r->of[k] != NULL : k <= M_VERSIONS || (k == M_FAILED) == failed;
    const bool word = k <= M_VERSIONS || k == M_SOURCE || k == M_FAILED;
    if (wanted != (r->of[k] != NULL)) {
      diag(r->c, E_PROFILE, at_line(r), wanted ? "%s is missing" : "%s is said of an event that failed",
           name_of[k]);
      return false;
    }
    if (wanted && (r->of[k]->kind != (word ? JSON_STR : JSON_NUM) || (word && !*r->of[k]->str))) {
      diag(r->c, E_PROFILE, at_member(r, k), "%s must be %s", name_of[k], word ? "text" : "a number");
      return false;
    }
  }
  return true;
}

// ---- what members say ----------------------------------------------------------------------------------
static bool unknown_operator(importing *r, const char *word, size_t n) {
  const char *near = op_near(r->c, word, n);
  diag(r->c, E_PROFILE, at_member(r, M_KEY), "unknown operator '%.*s' in the key", (int)n, word);
  if (near)
    diag_hint(r->c, "did you mean %s?", near);
  else
    diag_hint(r->c, "`heddle ops` lists them");
  return false;
}

// Do its results follow from its operands? Attributes may speak of whole tensors, of which a rank has a piece, so that only events
// without them tell.
static bool agrees(importing *r, const cost_event *e) {
  shape res[OP_RES_MAX];
  u32 nres = e->nres;
  if (cost_op_moves(e->op) && e->t && e->size % (i64)dtype_bytes(e->t)) {
    diag(r->c, E_PROFILE, at_member(r, M_KEY),
         "the key contradicts itself: %lld bytes are no whole number of %s", (long long)e->size,
         dtype_name(e->t));
    return false;
  }
  if (op_row_of(e->op)->flags & (OPF_COMM | OPF_META) || e->at.n || !e->nopd || nres > OP_RES_MAX)
    return true;
  if (!op_law(r->c, r->a, e->op, e->at, e->nopd, e->opd, &nres, res, at_member(r, M_KEY))) return false;
  bool same = nres == e->nres;
  for (u32 k = 0; same && k < nres; k++)
    same = res[k].t == e->res[k].t && res[k].nd == e->res[k].nd &&
           !memcmp(res[k].dim, e->res[k].dim, sizeof *res[k].dim * res[k].nd);
  if (!same)
    diag(r->c, E_PROFILE, at_member(r, M_KEY),
         "the key contradicts itself: its operands do not give these results");
  return same;
}

// The text that this event is looked for by.
static bool check_key(importing *r, const char *key) {
  cost_event e;
  const size_t n = strcspn(key, " ");
  if (op_named(r->c, key, n) == OP_none) return unknown_operator(r, key, n);
  if (!cost_event_parse(r->c, r->a, key, &e)) {
    diag(r->c, E_PROFILE, at_member(r, M_KEY), "the key is not that of an event: %s", key);
    diag_hint(r->c, "the form is that of docs/profiles.md: matmul f32[8,4] f32[4,2] -> f32[8,2] on h100");
    return false;
  }
  strbuf b = {.a = r->a};
  cost_event_print(r->c, NULL, &e, &b);
  if (!strcmp(sb_str(&b), key)) return agrees(r, &e);
  diag(r->c, E_PROFILE, at_member(r, M_KEY), "the key is not written as Heddle writes it: %s", key);
  diag_hint(r->c, "%s", sb_str(&b));
  return false;
}

static const char *machine_wanted(const importing *r) {
  return r->m ? sym_str(r->m->c, r->m->name) : r->machine;
}
static void note_machine(importing *r, const char *name) {
  if (!r->machine) r->machine = name;
  r->lines++;
  if (!strcmp(name, machine_wanted(r))) return;
  if (!r->others++) r->other = name, r->other_at = at_member(r, M_MACHINE);
}

// Said once of a file: usually all of its lines are of the other machine.
static bool check_machines(importing *r) {
  if (!r->others) return true;
  diag(r->c, E_PROFILE, r->other_at,
       r->m ? "%u of %u times are not of the machine, '%s'; the first of them is of '%s'"
            : "%u of %u times are not of the machine of the first, '%s'; the first of them is of '%s'",
       r->others, r->lines, machine_wanted(r), r->other);
  if (r->m && strchr(r->other, ' '))
    diag_hint(r->c, "--machine '%s', as the program that measured was exported for", r->other);
  else if (r->m)
    diag_hint(
        r->c,
        "--machine %s, or the file that has it as `name`: what the program that measured was exported for",
        r->other);
  else
    diag_hint(r->c, "a file has the times of one machine");
  return false;
}

static bool out_of_range(importing *r, u32 k, const char *range) {
  assert(r->of[k]);
  diag(r->c, E_PROFILE, at_member(r, k), "%s must be %s; got %s", name_of[k], range, r->of[k]->str);
  return false;
}

static bool take_figures(importing *r, measured_event *x) {
  const double ps = r->of[M_MEDIAN]->num, spread = r->of[M_SPREAD]->num, count = r->of[M_COUNT]->num;
  if (!(ps >= 0 && ps == floor(ps) && ps <= (double)(1ll << 53)))
    return out_of_range(r, M_MEDIAN, "whole picoseconds, 0 or more");
  if (!(spread >= 0 && spread < 1e6)) return out_of_range(r, M_SPREAD, "0 or more, and below 1000000");
  if (!(count >= 1 && count == floor(count) && count <= UINT32_MAX))
    return out_of_range(r, M_COUNT, "a whole number of repeats, 1 or more");
  if (!event_source_find(r->of[M_SOURCE]->str, &x->source) || x->source == EVENT_FITTED)
    return out_of_range(r, M_SOURCE, "measured or scaled");
  x->ps = (i64)ps, x->spread = spread, x->count = (u32)count;
  return true;
}
static bool take_launch(importing *r, i64 *launch) {
  const double ps = r->of[M_LAUNCH] ? r->of[M_LAUNCH]->num : 0;
  if (!(ps >= 0 && ps == floor(ps) && ps <= 1e12))
    return out_of_range(r, M_LAUNCH, "whole picoseconds, 0 or more and at most 1e12");
  *launch = (i64)ps;
  return true;
}

// A key is there once for each text of versions.
static bool once(importing *r, const row *x) {
  const u64 h = hash_bytes(x->x.key, strlen(x->x.key), hash_bytes(x->versions, strlen(x->versions), 0));
  for (u32 it = 0, j; hmap_next(&r->seen, h, &it, &j);) {
    const row *y = &r->rows.v[j];
    if (strcmp(y->x.key, x->x.key) || strcmp(y->versions, x->versions)) continue;
    diag(r->c, E_PROFILE, at_member(r, M_KEY), "the event is there twice: %s", x->x.key);
    diag_note(r->c, loc_text(r->c, r->file, y->line, 1, y->text), "the first time");
    return false;
  }
  hmap_add(r->a, &r->seen, h, r->rows.n);
  return true;
}

static bool read_line(importing *r) {
  const json *j = json_parse_line(r->c, r->a, r->file, r->text, strlen(r->text), r->line);
  if (!j || !take_members(r, j)) return false;
  row x = {.line = r->line, .text = r->text, .versions = r->of[M_VERSIONS]->str, .x.key = r->of[M_KEY]->str};
  if (r->of[M_FAILED]) x.failed = r->of[M_FAILED]->str;
  if (!check_key(r, x.x.key)) return false;
  note_machine(r, r->of[M_MACHINE]->str);
  if ((!x.failed && !(take_figures(r, &x.x) && take_launch(r, &x.launch))) || !once(r, &x)) return false;
  *vec_push(r->a, &r->rows) = x;
  return true;
}

// Every line that is wrong is told, up to some.
static bool read_file(importing *r, const char *text, size_t size) {
  enum { MOST = 10 };
  u32 wrong = 0;
  for (const char *s = text, *end = text + size; s < end && wrong < MOST;) {
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    const size_t n = (size_t)((stop ? stop : end) - s);
    r->line++;
    r->text = arena_strndup(r->a, s, n);
    s += n + 1;
    if (r->text[strspn(r->text, " \t\r")]) wrong += !read_line(r);
  }
  if (!check_machines(r)) return false;
  if (wrong || r->rows.n) return !wrong;
  diag(r->c, E_PROFILE, loc_text(r->c, r->file, 0, 0, NULL), "the file has no times");
  diag_hint(r->c, "heddle export MODEL --plan best.plan --machine M --to profile-pytorch writes the program "
                  "that measures them");
  return false;
}

// ---- into the database -----------------------------------------------------------------------------------
static bool put_all(importing *r, event_db *db) {
  measured_event *v = NEWN(r->a, measured_event, r->rows.n + 1);
  for (u32 k = 0; k < r->rows.n; k++) {
    const char *versions = r->rows.v[k].versions;
    u32 n = 0, j = 0;
    while (strcmp(r->rows.v[j].versions, versions)) j++;
    if (j < k) continue; // with the first of them
    for (j = k; j < r->rows.n; j++)
      if (!r->rows.v[j].failed && !strcmp(r->rows.v[j].versions, versions)) v[n++] = r->rows.v[j].x;
    if (!event_db_put(db, r->machine, versions, v, n)) return false;
  }
  return true;
}

static void count_rows(importing *r, profile_report *out) {
  struct profile_failure *f = NEWN(r->a, struct profile_failure, r->rows.n + 1);
  for (u32 k = 0; k < r->rows.n; k++) {
    const row *x = &r->rows.v[k];
    if (x->failed)
      f[out->nfailed++] = (struct profile_failure){x->x.key, x->failed};
    else if (x->x.source == EVENT_SCALED)
      out->nscaled++;
    else
      out->nmeasured++;
  }
  out->failure = f;
  out->nevents = r->rows.n;
  out->machine = r->machine, out->versions = r->rows.v[0].versions;
}

// What a step of one rank takes to launch, and on its device: that of the rank with the most launches. Events that ranks share
// count for the first that has them.
static void count_launches(importing *r, const profile_events *x, profile_report *out) {
  u32 ranks = 1;
  for (u32 k = 0; k < x->v.n; k++) ranks = MAX(ranks, x->v.v[k].rank + 1);
  i64 *launch = ZNEWN(r->a, i64, ranks), *device = ZNEWN(r->a, i64, ranks);
  hmap at = {0};
  for (u32 k = 0; k < r->rows.n; k++)
    hmap_add(r->a, &at, hash_bytes(r->rows.v[k].x.key, strlen(r->rows.v[k].x.key), 0), k);
  for (u32 k = 0; k < x->v.n; k++) {
    const profile_event *e = &x->v.v[k];
    for (u32 it = 0, j; hmap_next(&at, hash_bytes(e->key, strlen(e->key), 0), &it, &j);) {
      const row *y = &r->rows.v[j];
      if (strcmp(y->x.key, e->key) || !y->launch) continue;
      launch[e->rank] += y->launch * (i64)e->times;
      device[e->rank] += y->x.ps * (i64)e->times;
      break;
    }
  }
  for (u32 k = 0; k < ranks; k++)
    if (launch[k] > out->launch_ps) out->launch_ps = launch[k], out->device_ps = device[k];
}

// Events of the program of which the database has no times.
static bool count_lost(importing *r, event_db *db, const prog *p, profile_report *out) {
  measured_event *has;
  u32 n;
  if (!event_db_get(db, r->a, r->machine, NULL, &has, &n)) return false;
  machine_events known = {.n = n, .row = has};
  for (u32 k = 0; k < n; k++) hmap_add(r->a, &known.by_key, hash_bytes(has[k].key, strlen(has[k].key), 0), k);
  machine with = *r->m;
  with.events = &known;
  profile_events x;
  if (!profile_missing(&x, r->c, r->a, p, &with, &out->nplan, &out->nlost)) return false;
  count_launches(r, &x, out);
  return true;
}

bool profile_import(ctx *c, arena *a, const char *file, const char *path, const machine *m, const prog *p,
                    profile_report *out) {
  importing r = {.c = c, .a = a, .file = sym_of(c, file), .m = m};
  file_view f;
  *out = (profile_report){.path = path, .from = arena_strdup(a, file)};
  if (!file_map(c, file, &f)) return false;
  const bool read = read_file(&r, (const char *)f.data, f.size);
  file_unmap(&f);
  if (!read) return false;
  event_db *db = event_db_open(c, a, path, true);
  const bool ok = db && put_all(&r, db) && (!p || count_lost(&r, db, p, out));
  event_db_close(db);
  if (ok) count_rows(&r, out);
  return ok;
}
