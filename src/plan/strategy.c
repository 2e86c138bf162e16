// strategy.c - a strategy as text: read with a location for every mistake, printed, compared.
//
// Idea: a line is terms with spaces between them, NAME=VALUE,VALUE or NAME alone. Reading makes a set; one
// strategy is a set that has one value for each row.
#include "plan/plan.h"

typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const char *line; // of text, where the term stands
  u32 row;          // from 1
  strategy_set *set;
} reader;

static loc at(const reader *r, const char *text) {
  return loc_text(r->c, r->file, r->row, (u32)(text - r->line) + 1, r->line);
}
static bool blank(char ch) { return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r'; }
static bool is(const char *text, size_t n, const char *word) {
  return strlen(word) == n && !memcmp(text, word, n);
}

// ---- names --------------------------------------------------------------------------------------------
static bool find(const char *text, size_t n, choice_id *out) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_row *r = choice_get((choice_id)i);
    bool same = is(text, n, r->name);
    for (u32 k = 0; r->also[k] && !same; k++) same = is(text, n, r->also[k]);
    if (same) return *out = (choice_id)i, true;
  }
  return false;
}

static const char *called_here(const char *text, size_t n) {
  static const char *const names[][2] = {
#define ELSEWHERE(theirs, ours) {theirs, ours},
#include "plan/elsewhere.def"
#undef ELSEWHERE
  };
  for (u32 k = 0; k < COUNT_OF(names); k++)
    if (is(text, n, names[k][0])) return names[k][1];
  return NULL;
}

// The one choice among several words that has this one; NULL: none, or several have.
static const char *whose_word(arena *a, const char *text, size_t n) {
  const char *owner = NULL;
  choice_value x;
  for (u32 i = 0; i < CHOICE_COUNT && n; i++) {
    if (choice_get((choice_id)i)->kind != CK_WORD || !choice_read((choice_id)i, a, text, n, &x)) continue;
    if (owner) return NULL;
    owner = choice_get((choice_id)i)->name;
  }
  return owner;
}

static bool unknown(const reader *r, const char *text, size_t n) {
  const char *ours = called_here(text, n);
  near_name near = near_to(text, n);
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_row *row = choice_get((choice_id)i);
    if (n > 1) near_try(&near, row->name);
    for (u32 k = 0; row->also[k]; k++) near_try(&near, row->also[k]);
  }
  if (!n)
    diag(r->c, E_STRATEGY, at(r, text), "a name is missing before '='");
  else
    diag(r->c, E_STRATEGY, at(r, text), "unknown choice '%.*s'", (int)n, text);
  const char *owner = whose_word(r->a, text, n);
  if (ours)
    diag_hint(r->c, "in Heddle: %s", ours);
  else if (owner)
    diag_hint(r->c, "did you mean '%s=%.*s'?", owner, (int)n, text);
  else if (n && near.name)
    diag_hint(r->c, "did you mean '%s'?", near.name);
  else
    diag_hint(r->c, "`heddle choices` lists them, such as dp=2 tp=4");
  return false;
}

// ---- values -------------------------------------------------------------------------------------------
// Is the text a number that the row's range does not have?
static bool out_of_range(choice_id id, const char *text, size_t n) {
  bool digits = n > 0 && choice_get(id)->kind == CK_COUNT;
  for (size_t i = 0; i < n; i++) digits &= text[i] >= '0' && text[i] <= '9';
  return digits;
}

static bool bad_value(const reader *r, choice_id id, const char *text, size_t n) {
  const choice_row *row = choice_get(id);
  const char *takes = choice_takes(r->a, id);
  u32 digits;
  const char *above = choice_part_above(id, text, n, &digits);
  if (!n)
    diag(r->c, E_STRATEGY, at(r, text), "%s: a value is missing", row->name);
  else if (out_of_range(id, text, n) && row->most == CHOICE_MOST && *text != '0')
    diag(r->c, E_STRATEGY, at(r, text), "%s=%.*s is above the limit of %u", row->name, (int)n, text,
         CHOICE_MOST);
  else if (out_of_range(id, text, n))
    diag(r->c, E_STRATEGY, at(r, text), "%s=%.*s is out of range", row->name, (int)n, text);
  else if (above)
    diag(r->c, E_STRATEGY, at(r, above), "%s: %.*s is above the limit of %u", row->name, (int)digits, above,
         CHOICE_MOST);
  else
    diag(r->c, E_STRATEGY, at(r, text), "%s: unknown value '%.*s'", row->name, (int)n, text);
  const char *near = choice_near(r->a, id, text, n);
  if (*near)
    diag_hint(r->c, "did you mean %s=%s? It takes %s", row->name, near, takes);
  else
    diag_hint(r->c, "%s takes %s", row->name, takes);
  return false;
}

static bool add(const reader *r, choice_id id, const char *text, size_t n, choice_value x) {
  choice_set *s = &r->set->of[id];
  for (u32 k = 0; k < s->n; k++)
    if (choice_same(s->v[k], x)) {
      diag(r->c, E_STRATEGY, at(r, text), "%s=%.*s is given twice", choice_get(id)->name, (int)n, text);
      if (choice_get(id)->kind == CK_LIST)
        diag_hint(r->c, "the numbers of one value have '/' between them");
      else
        diag_hint(r->c, "leave one of them out");
      return false;
    }
  if (s->n == CHOICE_ALTERNATIVES) {
    diag(r->c, E_LIMIT, at(r, text), "%s: more than %u values", choice_get(id)->name, CHOICE_ALTERNATIVES);
    return false;
  }
  choice_value *v = NEWN(r->a, choice_value, s->n + 1);
  if (s->n) memcpy(v, s->v, s->n * sizeof *v);
  v[s->n++] = x;
  s->v = v;
  return true;
}

// All words that are not there yet, where a file stands beside them.
static bool all_words(const reader *r, choice_id id, const char *text) {
  const choice_set *s = &r->set->of[id];
  if (!choice_get(id)->suffix) {
    diag(r->c, E_STRATEGY, at(r, text), "%s: '*' stands for all values, and goes with no others",
         choice_get(id)->name);
    return false;
  }
  for (u32 w = 0; w < choice_all(id); w++) {
    u32 k = 0;
    while (k < s->n && !choice_same(s->v[k], (choice_value){.n = w})) k++;
    if (k == s->n && !add(r, id, text, 1, (choice_value){.n = w})) return false;
  }
  return true;
}

// "1,2,4" or "*"; of words that may be files "*,my.csv" as well.
static bool values(const reader *r, choice_id id, const char *text, size_t n) {
  choice_set *s = &r->set->of[id];
  if (is(text, n, "*")) return s->all = true;
  for (const char *end = text + n; text <= end;) {
    size_t len = 0;
    choice_value x;
    while (text + len < end && text[len] != ',') len++;
    if (is(text, len, "*")) {
      if (!all_words(r, id, text)) return false;
      text += len + 1;
      continue;
    }
    if (!choice_read(id, r->a, text, len, &x) || (id == CHOICE_mbs && !x.n))
      return bad_value(r, id, text, len);
    if (!add(r, id, text, len, x)) return false;
    text += len + 1;
  }
  return true;
}

// A name alone: a flag is on, and of a set what is by default, or all where that is nothing.
static bool alone(const reader *r, choice_id id, const char *text, size_t n) {
  const choice_row *row = choice_get(id);
  if (row->kind == CK_FLAG) return add(r, id, text, n, (choice_value){.n = 1});
  const u32 dflt = choice_default(id).n, all = (1u << choice_words(id)) - 1;
  if (row->kind == CK_SET) return add(r, id, text, n, (choice_value){.n = dflt ? dflt : all});
  diag(r->c, E_STRATEGY, at(r, text), "%s: a value is missing", row->name);
  diag_hint(r->c, "%s takes %s", row->name, choice_takes(r->a, id));
  return false;
}

// ---- terms ----------------------------------------------------------------------------------------------
// Does a term begin here? A name with a value, or a flag; a name alone may be a value (overlap=none,pp).
static bool begins_term(const char *text) {
  const size_t n = strcspn(text, "=,; \t\r\n");
  choice_id id;
  return find(text, n, &id) && (text[n] == '=' || choice_get(id)->kind == CK_FLAG);
}

// A comma or semicolon where a space belongs, at `text`. first: it is what a term begins with.
static bool for_space(const char *text, bool first) {
  if (*text != ',' && *text != ';') return false;
  if (begins_term(text + 1)) return true;
  const char *next = text + 1 + strspn(text + 1, " \t");
  return next > text + 1 && (first || begins_term(next));
}

// As it should be: the whole line, where it is one, else the term.
static const char *with_spaces(const reader *r, const char *text, size_t n) {
  if (r->row == 1 && !strpbrk(r->line, "\n#")) text = r->line, n = strlen(text);
  strbuf b = {.a = r->a};
  for (size_t i = 0; i < n; i++) {
    const bool open = !b.n || b.v[b.n - 1] == ' ', twice = strchr(",;", text[i]) && strchr(",;", text[i + 1]);
    if (text[i] != ' ' && !for_space(text + i, open) && !(twice && text[i + 1]))
      sb_char(&b, text[i]);
    else if (!open)
      sb_char(&b, ' ');
  }
  return sb_str(&b);
}

static bool has_spaces(const reader *r, const char *text, size_t n) {
  size_t i = 0;
  while (i < n && !for_space(text + i, !i)) i++;
  if (i == n) return true;
  diag(r->c, E_STRATEGY, at(r, text + i), "terms have spaces between them, not '%c'", text[i]);
  diag_hint(r->c, "%s", with_spaces(r, text, n));
  return false;
}

static bool term(const reader *r, const char *text, size_t n) {
  if (!has_spaces(r, text, n)) return false;
  const char *eq = memchr(text, '=', n);
  size_t len = eq ? (size_t)(eq - text) : n;
  choice_id id;
  if (!find(text, len, &id)) return unknown(r, text, len);
  choice_set *s = &r->set->of[id];
  if (s->said) {
    diag(r->c, E_STRATEGY, at(r, text), "%s is given twice", choice_get(id)->name);
    diag_note(r->c, s->at, "here first");
    diag_hint(r->c, "leave one out; to search several values, write tp=1,2");
    return false;
  }
  s->said = true, s->at = at(r, text);
  return eq ? values(r, id, eq + 1, n - len - 1) : alone(r, id, text, n);
}

bool strategy_parse(ctx *c, arena *a, const char *line, strategy_set *out) {
  return strategy_parse_named(c, a, "--strategy", line, out);
}

bool strategy_parse_named(ctx *c, arena *a, const char *name, const char *line, strategy_set *out) {
  *out = (strategy_set){0};
  const char *text = arena_strdup(ctx_arena(c), line ? line : ""); // locations point into it
  reader r = {.c = c, .a = a, .file = sym_of(c, name), .line = text, .row = 1, .set = out};
  while (*text) {
    size_t n = 0;
    if (*text == '#') { // a comment
      text += strcspn(text, "\n");
      continue;
    }
    if (blank(*text)) {
      if (*text++ == '\n') r.line = text, r.row++;
      continue;
    }
    while (text[n] && !blank(text[n])) n++;
    if (!term(&r, text, n)) return false;
    text += n;
  }
  return true;
}

// ---- printing -----------------------------------------------------------------------------------------
void strategy_print(const strategy *s, strbuf *out) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    choice_id id = (choice_id)i;
    if (!choice_is_degree(id) && choice_same(s->of[i], choice_default(id))) continue;
    if (i) sb_char(out, ' '); // dp is always there
    choice_say(id, s->of[i], out);
  }
}

const char *strategy_str(arena *a, const strategy *s) {
  strbuf b = {.a = a};
  strategy_print(s, &b);
  return sb_str(&b);
}

void strategy_set_print(const strategy_set *s, strbuf *out) {
  const char *between = "";
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_set *x = &s->of[i];
    if (!x->said) continue;
    sb_fmt(out, "%s%s=%s", between, choice_get((choice_id)i)->name, x->all ? "*" : "");
    for (u32 k = 0; k < x->n; k++) {
      if (k) sb_char(out, ',');
      choice_print((choice_id)i, x->v[k], out);
    }
    between = " ";
  }
}

// ---- comparing ----------------------------------------------------------------------------------------
static strategy without(const strategy *s, u32 of) {
  const strategy *dflt = strategy_defaults();
  strategy x = *s;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (of >> choice_get((choice_id)i)->of & 1 && !choice_file(s->of[i])) x.of[i] = dflt->of[i];
  return x;
}

strategy strategy_without(const strategy *s, choice_subject of) { return without(s, 1u << of); }

// The first row whose stages lie as those of this one, as a plan of one pipeline has them.
static u32 lies_like(u32 row) {
  const sched_placement placement = sched_row_of(row)->placement;
  u32 k = 0;
  if (placement == PLACED_LOOP || placement == PLACED_BOTH) return choice_default(CHOICE_schedule).n;
  while (sched_row_of(k)->placement != placement) k++;
  return k;
}

strategy strategy_of_stages(const strategy *s) {
  strategy x = without(s, CHOICES_OF_LINE);
  if (!choice_file(s->schedule)) x.schedule.n = lies_like(s->schedule.n);
  return x;
}

void strategy_take_stages(strategy *s, const strategy *from, bool train) {
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (choice_get((choice_id)i)->of == CHOICE_OF_STAGES && choice_applies((choice_id)i, s, train))
      s->of[i] = from->of[i];
}

bool strategy_same_but(const strategy *x, const strategy *y, u32 of) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_value *a = &x->of[i], *b = &y->of[i];
    if (a->n == b->n && a->nparts == b->nparts && a->part == b->part) continue;
    if (of >> choice_get((choice_id)i)->of & 1 && !choice_file(*a) && !choice_file(*b)) continue;
    if (!choice_same(*a, *b)) return false;
  }
  return true;
}

static u64 hash_value(u64 h, const choice_value *x) {
  h = hash_step(hash_step(h, x->n), x->nparts);
  for (u32 k = 0; k < x->nparts; k++) h = hash_step(h, x->part[k]);
  const char *path = choice_file(*x);
  return path ? hash_step(h, hash_bytes(path, strlen(path), 0)) : h;
}

u64 strategy_hash_but(const strategy *s, u32 of) {
  u64 h = 0;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (choice_file(s->of[i]) || !(of >> choice_get((choice_id)i)->of & 1)) h = hash_value(h, &s->of[i]);
  return hash_u64(h, of);
}

int choice_compare(choice_value a, choice_value b) {
  if (a.nparts != b.nparts) return a.nparts < b.nparts ? -1 : 1;
  if (a.n != b.n) return a.n < b.n ? -1 : 1;
  if (a.part == b.part) return 0;
  for (u32 k = 0; k < a.nparts; k++)
    if (a.part[k] != b.part[k]) return a.part[k] < b.part[k] ? -1 : 1;
  if (a.nparts) return 0;
  const int paths = strcmp(a.path ? a.path : "", b.path ? b.path : "");
  return (paths > 0) - (paths < 0);
}

int strategy_compare(const strategy *x, const strategy *y) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const int order = choice_compare(x->of[i], y->of[i]);
    if (order) return order;
  }
  return 0;
}

strategy strategy_dup(arena *a, const strategy *s) {
  strategy x = *s;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    choice_value *v = &x.of[i];
    if (v->nparts) v->part = arena_dup(a, v->part, v->nparts * sizeof *v->part);
    if (!v->nparts && v->path) v->path = arena_strdup(a, v->path);
  }
  return x;
}

static bool is_plain(const choice_value *v) {
  return v->n < PACKED_MORE && !v->nparts && !v->path && !v->wide;
}

strategy_packed strategy_pack(arena *a, const strategy *s) {
  strategy_packed x = {.more = NULL};
  u32 many = 0;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const bool plain = is_plain(&s->of[i]);
    x.n[i] = plain ? (u16)s->of[i].n : PACKED_MORE, many += !plain;
  }
  if (!many) return x;
  choice_value *more = NEWN(a, choice_value, many);
  x.more = more;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (x.n[i] == PACKED_MORE) *more++ = s->of[i];
  return x;
}

strategy strategy_unpack(const strategy_packed *x) {
  strategy s;
  const choice_value *more = x->more;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    s.of[i] = x->n[i] == PACKED_MORE ? *more++ : (choice_value){.n = x->n[i]};
  return s;
}

choice_value strategy_packed_value(const strategy_packed *x, choice_id id) {
  u32 before = 0;
  if (x->n[id] != PACKED_MORE) return (choice_value){.n = x->n[id]};
  for (u32 i = 0; i < (u32)id; i++) before += x->n[i] == PACKED_MORE;
  return x->more[before];
}

u64 strategy_hash(const strategy *s) {
  u64 h = 0;
  for (u32 i = 0; i < CHOICE_COUNT; i++) h = hash_value(h, &s->of[i]);
  return hash_u64(h, CHOICE_COUNT);
}

// ---- one strategy -------------------------------------------------------------------------------------
bool strategy_one(ctx *c, const strategy_set *set, strategy *out) {
  *out = strategy_default();
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_set *s = &set->of[i];
    const char *name = choice_get((choice_id)i)->name;
    if (s->all || s->n > 1) {
      if (s->all)
        diag(c, E_STRATEGY, s->at, "%s=*: one value is needed here", name);
      else
        diag(c, E_STRATEGY, s->at, "%s: one value is needed here, not %u", name, s->n);
      diag_hint(c, "several values are for the --strategy of `heddle plan`");
      return false;
    }
    if (s->n) out->of[i] = s->v[0];
  }
  return true;
}

strategy strategy_of(const char *fmt, ...) {
  char line[256];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  ctx *c = ctx_new();
  strategy_set set;
  strategy s;
  bool ok = n >= 0 && (size_t)n < sizeof line && strategy_parse(c, ctx_arena(c), line, &set) &&
            strategy_one(c, &set, &s);
  for (u32 i = 0; ok && i < CHOICE_COUNT; i++) ok = !s.of[i].nparts && !s.of[i].path;
  assert(ok); // the caller wrote it
  ctx_free(c);
  return ok ? s : strategy_default();
}

static loc said_at(const strategy_set *set, choice_id id) { return set ? set->of[id].at : (loc){0}; }

// mbs into mb.
static bool settle_micro(ctx *c, const strategy_set *set, i64 batch, strategy *s) {
  const u32 mbs = s->mbs.n, dp = strategy_data_ranks(s);
  const loc here = said_at(set, CHOICE_mbs);
  if (!mbs) return true;
  const bool shares = !s->replicas.nparts && !choice_same(s->dp_shares, choice_default(CHOICE_dp_shares));
  if (shares || s->tp_stages.nparts || !dp) {
    diag(c, E_STRATEGY, here, "mbs=%u: data ranks do not have microbatches of one size (%s)", mbs,
         !dp      ? "replicas"
         : shares ? "dp.shares"
                  : "tp.stages");
    diag_hint(c, "give the number of microbatches instead: mb");
    return false;
  }
  if (batch <= 0) {
    diag(c, E_STRATEGY, here, "mbs=%u: the batch is not known", mbs);
    diag_hint(c, "give the number of microbatches instead: mb=%u", s->mb.n);
    return false;
  }
  if (batch % dp || batch / dp % mbs) {
    diag(c, E_DIVIDE, here, "batch %lld / dp=%u is not divisible by mbs=%u", (long long)batch, dp, mbs);
    if (batch % dp == 0) diag_hint(c, "mbs=%lld", (long long)gcd_i64(batch / dp, mbs));
    return false;
  }
  i64 mb = batch / dp / mbs;
  if (mb > CHOICE_MOST) {
    diag(c, E_LIMIT, here, "mbs=%u makes %lld microbatches; at most %u are possible", mbs, (long long)mb,
         CHOICE_MOST);
    return false;
  }
  bool both = set ? set->of[CHOICE_mb].n > 0 : s->mb.n > 1;
  if (both && s->mb.n != mb) {
    diag(c, E_STRATEGY, here, "mb=%u and mbs=%u disagree: batch %lld / dp=%u / mbs=%u is mb=%lld", s->mb.n,
         mbs, (long long)batch, dp, mbs, (long long)mb);
    diag_hint(c, "leave one of them out");
    return false;
  }
  s->mb.n = (u32)mb, s->mbs.n = 0;
  return true;
}

// One share for each rank.
static bool settle_shares(ctx *c, const strategy_set *set, choice_id id, choice_id of, const strategy *s) {
  const choice_value x = s->of[id];
  const char *own = choice_get(id)->name, *name = choice_get(of)->name;
  u64 sum = 0;
  for (u32 k = 0; k < x.nparts; k++) sum += x.part[k];
  if (sum > CHOICE_MOST) {
    diag(c, E_LIMIT, said_at(set, id), "%s adds up to %llu; at most %u are possible", own,
         (unsigned long long)sum, CHOICE_MOST);
    return false;
  }
  const bool replicas = id == CHOICE_dp_shares && s->replicas.nparts;
  if (!x.nparts || s->tp_stages.nparts || replicas || x.nparts == s->of[of].n)
    return true; // of degrees by place: degrees.c; of replicas: make_up.c
  diag(c, E_DIVIDE, said_at(set, id), "%s has %u number%s, but %s=%u", own, x.nparts,
       x.nparts == 1 ? "" : "s", name, s->of[of].n);
  diag_hint(c, "one number for each of the ranks, or %s=%u", name, x.nparts);
  return false;
}

// Every block of ranks once.
static bool settle_places(ctx *c, const strategy_set *set, const strategy *s) {
  const choice_value x = s->places;
  const loc here = said_at(set, CHOICE_places);
  if (!x.nparts) return true;
  if (x.nparts != s->pp.n) {
    diag(c, E_DIVIDE, here, "places has %u number%s, but pp=%u", x.nparts, x.nparts == 1 ? "" : "s", s->pp.n);
    diag_hint(c, "one number for each place of the pipeline, or pp=%u", x.nparts);
    return false;
  }
  for (u32 k = 0; k < x.nparts; k++) {
    bool twice = false;
    for (u32 j = 0; j < k; j++) twice |= x.part[j] == x.part[k];
    if (x.part[k] <= x.nparts && !twice) continue;
    if (twice)
      diag(c, E_STRATEGY, here, "places: %u is given twice", x.part[k]);
    else
      diag(c, E_STRATEGY, here, "places: there is no block %u of %u", x.part[k], x.nparts);
    diag_hint(c, "use every number from 1 to %u once", x.nparts);
    return false;
  }
  return true;
}

// ---- what does not go together --------------------------------------------------------------------------
bool choice_is_list(choice_value x) { return x.nparts; }
bool choice_has_two_ways(choice_value x) { return !choice_file(x) && sched_replicas(sched_row_of(x.n)) > 1; }

bool strategy_goes_with(ctx *c, const strategy_set *set, const strategy *s, const char *beside,
                        const choice_unfit *v, u32 n) {
  for (u32 k = 0; k < n; k++) {
    const choice_id id = v[k].id;
    const choice_value x = s->of[id];
    if (choice_same(x, choice_default(id)) || (v[k].is && !v[k].is(x))) continue;
    arena *a = arena_new();
    strbuf one = {.a = a};
    choice_say(id, x, &one);
    diag(c, E_STRATEGY, said_at(set, id), "%s does not go with %s: %s", sb_str(&one), beside, v[k].why);
    diag_hint(c, "%s", v[k].hint);
    arena_free(a);
    return false;
  }
  return true;
}

bool choice_is_interlaced(choice_value x) {
  return choice_file(x) ? x.wide : sched_nwide(sched_row_of(x.n)) > 0;
}

static bool says_places(choice_value x) {
  return choice_file(x) || choice_has_two_ways(x) || sched_row_of(x.n)->chunks > 1 || choice_is_interlaced(x);
}

// Whale's pipelines have one stage on each place, and decide themselves which places come first.
static const choice_unfit beside_whale[] = {
    {CHOICE_schedule, says_places, "Whale's policy has one stage on each place, in one direction",
     "schedule=1f1b, or layers=auto"},
    {CHOICE_v, NULL, "Whale's policy has one stage on each place", "v=1, or layers=auto"},
    {CHOICE_tp_stages, choice_is_list, "Whale's policy orders the places itself, by memory",
     "tp.stages=equal, or layers=auto"},
    {CHOICE_places, choice_is_list, "Whale's policy orders the places itself, by memory",
     "leave it out, or layers=auto"},
};

static bool settle_whale(ctx *c, const strategy_set *set, const strategy *s) {
  return !choice_is(CHOICE_layers, s->layers, "whale") ||
         strategy_goes_with(c, set, s, "layers=whale", beside_whale, COUNT_OF(beside_whale));
}

// What lies on all places has one degree on all of them.
static const choice_unfit beside_interlaced[] = {
    {CHOICE_tp_stages, choice_is_list, "what lies on all places is split alike on each", "tp.stages=equal"},
    {CHOICE_replicas, choice_is_list, "only one pipeline can be interlaced",
     "replicas=none, or schedule=1f1b"},
};

// Layers lie on a place in all passes.
static bool is_found(choice_value x) {
  return x.nparts == 0 && x.n != choice_default(CHOICE_layers).n && !choice_is(CHOICE_layers, x, "equal");
}
static const choice_unfit beside_passes[] = {
    {CHOICE_layers, is_found, "every pass has the same layers on a place", "layers=equal"},
    {CHOICE_replicas, choice_is_list, "only one pipeline can have passes", "replicas=none, or schedule=1f1b"},
};

static bool settle_passes(ctx *c, const strategy_set *set, const strategy *s) {
  char beside[256];
  const sched_row *row = choice_file(s->schedule) ? NULL : sched_row_of(s->schedule.n);
  if (!row || sched_passes(row) == 1) return true;
  snprintf(beside, sizeof beside, "schedule=%s", row->name);
  return strategy_goes_with(c, set, s, beside, beside_passes, COUNT_OF(beside_passes));
}

// A server has the states of its weights and the sum of their gradients already.
static bool any_on_host(choice_value x) { return x.n > 0; }
static bool shards_gradients(choice_value x) { return x.n >= 2; }
static bool shards_states(choice_value x) { return x.n == 1; }
static const choice_unfit beside_servers[] = {
    {CHOICE_zero, shards_states, "a weight's optimizer states are on its server alone already",
     "zero=0, or sync=allreduce"},
    {CHOICE_zero, shards_gradients, "a server needs weights and gradients whole",
     "zero=0, or sync=allreduce"},
    {CHOICE_replicas, choice_is_list, "replicas of different make-up have no data ranks in common",
     "replicas=none, or sync=allreduce"},
    {CHOICE_offload, any_on_host, "a server sends and gets what is on the device",
     "offload=none, or sync=allreduce"},
};

static bool settle_sync(ctx *c, const strategy_set *set, const strategy *s) {
  return !choice_is(CHOICE_sync, s->sync, "ps") ||
         strategy_goes_with(c, set, s, "sync=ps", beside_servers, COUNT_OF(beside_servers));
}

// Sums of gradients beside the last backward of a stage.
static bool is_servers(choice_value x) { return choice_is(CHOICE_sync, x, "ps"); }
static bool waits_for_takers(choice_value x) { return choice_is(CHOICE_buffers, x, "rendezvous"); }
static bool updates_or_two_ways(choice_value x) {
  return choice_has_two_ways(x) || (!choice_file(x) && sched_row_of(x.n)->weights != WEIGHTS_ONE);
}
static const choice_unfit beside_sums[] = {
    {CHOICE_zero, shards_gradients, "ZeRO 2 and 3 sum gradients in the backward of every microbatch",
     "zero=1, or overlap=pp"},
    {CHOICE_sync, is_servers, "gradients go to their servers when the tasks have ended",
     "sync=allreduce, or overlap=pp"},
    {CHOICE_replicas, choice_is_list, "what replicas of different make-up sum is put together first",
     "replicas=none, or overlap=pp"},
    {CHOICE_schedule, updates_or_two_ways,
     "gradients of several stages are put together, or updates stand between tasks",
     "schedule=1f1b, or overlap=pp"},
    {CHOICE_offload, any_on_host, "what copies wait for is on the compute stream",
     "offload=none, or overlap=pp"},
};

static bool settle_sums(ctx *c, const strategy_set *set, const strategy *s) {
  return !(s->overlap.n & OVERLAP_DP) ||
         strategy_goes_with(c, set, s, "overlap=dp", beside_sums, COUNT_OF(beside_sums));
}

// Updates between the tasks of a pipeline.
static const choice_unfit beside_stale[] = {
    {CHOICE_replicas, choice_is_list, "replicas would have to update at the same times",
     "replicas=none, or schedule=1f1b"},
    {CHOICE_zero, shards_gradients,
     "each update needs the whole gradient of its microbatches, and tasks whole versions",
     "zero=1, or schedule=1f1b"},
    {CHOICE_sync, is_servers, "servers are asked when a step's tasks have ended",
     "sync=allreduce, or schedule=1f1b"},
    {CHOICE_buffers, waits_for_takers, "an update would wait for what was sent to be taken",
     "buffers=unbounded, or schedule=1f1b"},
    {CHOICE_offload, any_on_host, "versions of weights that tasks read are on the device",
     "offload=none, or schedule=1f1b"},
};

bool strategy_updates_between(ctx *c, const strategy *s, const char *beside) {
  return strategy_goes_with(c, NULL, s, beside, beside_stale, COUNT_OF(beside_stale));
}

static bool settle_stale(ctx *c, const strategy_set *set, bool train, const strategy *s) {
  if (choice_file(s->schedule) || !choice_applies(CHOICE_schedule, s, train)) return true;
  const sched_row *r = sched_row_of(s->schedule.n);
  char beside[64];
  if (!sched_is_asynchronous(r)) return true;
  if (!train) {
    diag(c, E_STRATEGY, said_at(set, CHOICE_schedule), "schedule=%s updates weights; this is inference",
         r->name);
    diag_hint(c, "add --train, or schedule=1f1b");
    return false;
  }
  snprintf(beside, sizeof beside, "schedule=%s", r->name);
  return strategy_goes_with(c, set, s, beside, beside_stale, COUNT_OF(beside_stale));
}

static bool settle_interlaced(ctx *c, const strategy_set *set, const strategy *s) {
  char beside[256];
  const char *path = choice_file(s->schedule);
  if (!choice_is_interlaced(s->schedule)) return true;
  snprintf(beside, sizeof beside, "schedule=%s", path ? path : sched_row_of(s->schedule.n)->name);
  return strategy_goes_with(c, set, s, beside, beside_interlaced, COUNT_OF(beside_interlaced));
}

// To be typed: "add --train", "add tp=2".
static const char *what_it_needs(arena *a, choice_id id, const strategy *s, bool train) {
  const u64 needs = choice_needs_here(id, s, train);
  if (needs & CHOICE_TRAINING && !train) return "add --train";
  for (u32 k = 0; k < CHOICE_COUNT; k++) {
    const choice_row *r = choice_get((choice_id)k);
    const bool few = needs >> k & 1 && strategy_most(s, (choice_id)k) <= 1;
    if (few && s->replicas.nparts && choice_is_degree((choice_id)k))
      return arena_printf(a, "use a replica of two %s, such as %s", strategy_counts((choice_id)k),
                          k == CHOICE_pp   ? "2x1"
                          : k == CHOICE_tp ? "1x2"
                                           : "1x1x2");
    if (few && s->tp_stages.nparts && s->of[k].n > 1)
      return arena_printf(a, "use %s numbers in tp.stages", k == CHOICE_dp ? "smaller" : "larger");
    if (few) return arena_printf(a, "add %s=2", r->name);
    if (id == CHOICE_update && k == CHOICE_offload) return "set offload=states";
    if (choice_needs_on(id) >> k & 1 && !choice_is_on((choice_id)k, s))
      return arena_printf(a, "set %s=%s", r->name,
                          strcmp(r->dflt, "none") ? r->dflt : choice_word((choice_id)k, 0));
  }
  if (needs & CHOICE_BLOCKING && s->overlap.n & OVERLAP_PP) return "set overlap=none";
  if (needs & CHOICE_SEVERAL && strategy_most(s, CHOICE_dp) <= 1 && !s->replicas.nparts) return "add dp=2";
  return needs & CHOICE_GROUPED ? "use schedule=interleaved" : "";
}

// A schedule with a number of chunks of its own says v.
static bool settle_chunks(ctx *c, const strategy_set *set, bool train, strategy *s) {
  if (s->schedule.path || !choice_applies(CHOICE_schedule, s, train)) return true;
  const sched_row *r = sched_row_of(s->schedule.n);
  if (r->chunks < 2 || s->v.n == r->chunks) return true;
  if (s->v.n == choice_default(CHOICE_v).n && !(set && set->of[CHOICE_v].said)) {
    s->v.n = r->chunks;
    return true;
  }
  diag(c, E_STRATEGY, said_at(set, CHOICE_v), "v=%u: schedule=%s has %u chunks on each place", s->v.n,
       r->name, r->chunks);
  diag_hint(c, "v=%u, or leave out v", r->chunks);
  return false;
}

// A file says all of its figures; if it cannot be read, that is told when it is used.
static const char *what_file_needs(ctx *c, arena *a, const char *path, const char *otherwise) {
  const u32 before = diag_count(c);
  const sched *file = sched_read(c, a, path, (loc){0});
  diag_truncate(c, before);
  return file ? arena_printf(a, "add %s", sched_choices(a, file)) : otherwise;
}

bool strategy_settle(ctx *c, const strategy_set *set, i64 batch, bool train, strategy *s) {
  const strategy *dflt = strategy_defaults();
  if (!strategy_settle_replicas(c, set, s) || !settle_chunks(c, set, train, s)) return false;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    choice_id id = (choice_id)i;
    if (s->of[i].n == dflt->of[i].n && !s->of[i].part) continue; // a default has neither parts nor a path
    const choice_value settled = choice_settled(id, s, train);
    const bool dropped = choice_get(id)->where && s->of[i].n & ~settled.n;
    if (choice_same(s->of[i], dflt->of[i])) continue;
    if (choice_applies(id, s, train) && !dropped) {
      s->of[i] = settled;
      continue;
    }
    arena *a = arena_new();
    strbuf one = {.a = a};
    choice_say(id, s->of[i], &one);
    diag(c, E_STRATEGY, said_at(set, id), "%s %s", sb_str(&one), choice_lacks(a, id, s, train));
    const char *add = what_it_needs(a, id, s, train);
    if (choice_file(s->of[i])) add = what_file_needs(c, a, choice_file(s->of[i]), add);
    diag_hint(c, "%s, or leave out %s", add, choice_get(id)->name);
    arena_free(a);
    return false;
  }
  return settle_shares(c, set, CHOICE_dp_shares, CHOICE_dp, s) &&
         settle_shares(c, set, CHOICE_tp_shares, CHOICE_tp, s) && strategy_settle_degrees(c, set, s) &&
         settle_places(c, set, s) && settle_interlaced(c, set, s) && settle_passes(c, set, s) &&
         settle_sync(c, set, s) && settle_sums(c, set, s) && settle_stale(c, set, train, s) &&
         settle_whale(c, set, s) && settle_micro(c, set, batch, s);
}
