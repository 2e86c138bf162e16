// choice.c - the rows of choices.def and their values.
#include "plan/plan.h"
#include <pthread.h>
#include <stdio.h>

#define ALSO(...)                                                                                            \
  .also = (const char *const[]) { __VA_ARGS__, NULL }
#define RANGE(l, m) .least = l, .most = m
#define MOST        CHOICE_MOST
#define WORDS(...)                                                                                           \
  .words = (const char *const[]) { __VA_ARGS__, NULL }
#define WORDS_WHERE(a, needs_a, b, needs_b)                                                                  \
  .words = (const char *const[]){a, b, NULL}, .where = (const u64[]) { needs_a, needs_b }
#define WORDS_OR_FILE(f, named_, end) .word = f, .named = named_, .suffix = end
#define NO_VALUES                                                                                            \
  .words = (const char *const[]) { "off", "on", NULL }
#define TRAINING CHOICE_TRAINING
#define GROUPED  CHOICE_GROUPED
#define BLOCKING CHOICE_BLOCKING
#define SEVERAL  CHOICE_SEVERAL
#define ALIKE    CHOICE_ALIKE
#define MANY(id) (1ull << CHOICE_##id)
#define ON(id)   0
static const choice_row rows[CHOICE_COUNT] = {
#define CHOICE(id, name_, also_, of_, kind_, values_, dflt_, search_, needs_, title_, arg_, about_)          \
  [CHOICE_##id] = {.name = name_,                                                                            \
                   also_,                                                                                    \
                   .of = CHOICE_OF_##of_,                                                                    \
                   .kind = CK_##kind_,                                                                       \
                   values_,                                                                                  \
                   .dflt = dflt_,                                                                            \
                   .search = search_,                                                                        \
                   .needs = needs_,                                                                          \
                   .title = title_,                                                                          \
                   .arg = arg_,                                                                              \
                   .about = about_},
#include "plan/choices.def"
#undef CHOICE
};
_Static_assert(1ull << CHOICE_COUNT < CHOICE_ALIKE, "needs has a bit for each row below its flags");

// The same column again: rows that must be on.
#undef TRAINING
#undef GROUPED
#undef BLOCKING
#undef SEVERAL
#undef ALIKE
#undef MANY
#undef ON
#define TRAINING 0
#define GROUPED  0
#define BLOCKING 0
#define SEVERAL  0
#define ALIKE    0
#define MANY(id) 0
#define ON(id)   (1ull << CHOICE_##id)
static const u64 rows_on[CHOICE_COUNT] = {
#define CHOICE(id, name_, also_, of_, kind_, values_, dflt_, search_, needs_, title_, arg_, about_)          \
  [CHOICE_##id] = needs_,
#include "plan/choices.def"
#undef CHOICE
};
u64 choice_needs_on(choice_id id) { return rows_on[id]; }

const choice_row *choice_get(choice_id id) { return &rows[id]; }
const char *choice_option(choice_id id) { return rows[id].also[0]; }

const char *choice_word(choice_id id, u32 i) {
  const choice_row *r = &rows[id];
  if (r->word) return r->word(i);
  for (u32 k = 0; r->words && r->words[k]; k++)
    if (k == i) return r->words[k];
  return NULL;
}

u32 choice_words(choice_id id) {
  u32 n = 0;
  while (choice_word(id, n)) n++;
  return n;
}

u32 choice_all(choice_id id) {
  u32 n = choice_words(id);
  while (id == CHOICE_schedule && n && sched_is_asynchronous(sched_row_of(n - 1)))
    n--; // not the model's step
  return n;
}

enum { ABOUT_ROOM = 4096 }; // of all schedules by name
static char abouts[CHOICE_COUNT][ABOUT_ROOM];
static pthread_once_t abouts_once = PTHREAD_ONCE_INIT;

static void write_abouts(void) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_row *r = &rows[i];
    if (!r->word) continue;
    char *to = abouts[i];
    size_t n = (size_t)snprintf(to, sizeof abouts[i], "%s: ", r->about);
    for (u32 k = 0; r->word(k) && n < sizeof abouts[i]; k++)
      n += (size_t)snprintf(to + n, sizeof abouts[i] - n, "%s%s", k ? ", " : "", r->word(k));
    if (r->suffix && n < sizeof abouts[i])
      n += (size_t)snprintf(to + n, sizeof abouts[i] - n, ", or FILE%s", r->suffix);
    assert(n < sizeof abouts[i]);
  }
}

const char *choice_about(choice_id id) {
  if (!rows[id].word) return rows[id].about;
  pthread_once(&abouts_once, write_abouts);
  return abouts[id];
}

enum { RUN_LEAST = 4 }; // equal numbers of a list that are written once, 12x4

// ---- values -------------------------------------------------------------------------------------------
static bool read_word(choice_id id, const char *text, size_t n, u32 *out) {
  const char *w;
  for (u32 i = 0; (w = choice_word(id, i)); i++)
    if (strlen(w) == n && !memcmp(w, text, n)) return *out = i, true;
  char name[64];
  if (!rows[id].named || n >= sizeof name) return false;
  memcpy(name, text, n);
  name[n] = 0;
  return rows[id].named(name, out);
}

// A path, whose name is more than the suffix.
static bool read_path(choice_id id, arena *a, const char *text, size_t n, choice_value *out) {
  const char *suffix = rows[id].suffix;
  size_t end = suffix ? strlen(suffix) : 0;
  if (!end || n <= end || text[n - end - 1] == '/' || memcmp(text + n - end, suffix, end)) return false;
  *out = (choice_value){.n = choice_words(id), .path = arena_strndup(a, text, n)};
  return true;
}

static bool read_count(const char *text, size_t n, u32 least, u32 most, u32 *out) {
  u64 x = 0;
  if (!n || n > 9) return false;
  for (size_t i = 0; i < n; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    x = 10 * x + (u64)(text[i] - '0');
  }
  *out = (u32)x;
  return x >= least && x <= most;
}

static bool read_set(choice_id id, const char *text, size_t n, u32 *out) {
  *out = 0;
  if (n == 4 && !memcmp(text, "none", 4)) return true;
  for (const char *end = text + n; text <= end;) {
    size_t len = 0;
    u32 bit;
    while (text + len < end && text[len] != '+') len++;
    if (!read_word(id, text, len, &bit) || (*out & 1u << bit)) return false;
    *out |= 1u << bit;
    text += len + 1;
  }
  return true;
}

// Are the numbers parts of their sum, one for each rank? Then 4/2 is 2/1.
static bool is_shares(choice_id id) { return id == CHOICE_dp_shares || id == CHOICE_tp_shares; }

static void reduce(u32 *v, u32 n) {
  i64 by = 0;
  for (u32 k = 0; k < n; k++) by = gcd_i64(by, v[k]);
  for (u32 k = 0; k < n && by > 1; k++) v[k] /= (u32)by;
}

// "10/12/12/6"; 12x8 is 12 eight times.
static bool read_list(choice_id id, arena *a, const char *text, size_t n, choice_value *out) {
  if (read_word(id, text, n, &out->n)) return true;
  const u32 most = is_shares(id) ? UINT16_MAX : CHOICE_PARTS; // ranks of an axis; stages
  VEC(u32) v = {0};
  for (const char *end = text + n; text <= end;) {
    size_t len = 0, own = 0;
    u32 part, times = 1;
    while (text + len < end && text[len] != '/') len++;
    while (own < len && text[own] != 'x') own++;
    if (!read_count(text, own, id != CHOICE_layers, CHOICE_MOST, &part)) return false;
    if (own < len && !read_count(text + own + 1, len - own - 1, 1, most, &times)) return false;
    if (v.n + times > most) return false;
    while (times-- > 0) *vec_push(a, &v) = part;
    text += len + 1;
  }
  if (is_shares(id)) reduce(v.v, v.n);
  *out = (choice_value){.nparts = v.n, .part = v.v};
  return true;
}

const char *choice_part_above(choice_id id, const char *text, size_t n, u32 *digits) {
  const char *end = text + n, *found = NULL;
  if (choice_get(id)->kind != CK_LIST) return NULL;
  for (const char *p = text; p < end; p++) {
    const char *from = p;
    u64 x = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++) x = MIN(10 * x + (u64)(*p - '0'), (u64)CHOICE_MOST + 1);
    if (p < end && *p != '/' && *p != 'x') return NULL;
    if (x > CHOICE_MOST && !found) found = from, *digits = (u32)(p - from);
  }
  return found;
}

// "2x2+1x2x4": degrees of replicas, each pp x tp or pp x tp x dp.
static bool read_grids(choice_id id, arena *a, const char *text, size_t n, choice_value *out) {
  if (read_word(id, text, n, &out->n)) return true;
  VEC(u32) v = {0};
  for (const char *end = text + n; text <= end;) {
    u32 grid[3] = {1, 1, 1}, k = 0;
    for (bool more = true; more; k++) {
      size_t len = 0;
      while (text + len < end && text[len] != '+' && text[len] != 'x') len++;
      if (k == 3 || !read_count(text, len, 1, UINT16_MAX, &grid[k])) return false;
      more = text + len < end && text[len] == 'x';
      text += len + 1;
    }
    if (k < 2 || v.n == CHOICE_PARTS) return false;
    for (k = 0; k < 3; k++) *vec_push(a, &v) = grid[k];
  }
  *out = (choice_value){.nparts = v.n, .part = v.v};
  return v.n > 3;
}

bool choice_read(choice_id id, arena *a, const char *text, size_t n, choice_value *out) {
  const choice_row *r = &rows[id];
  *out = (choice_value){0};
  switch (r->kind) {
  case CK_COUNT: return read_count(text, n, r->least, r->most, &out->n);
  case CK_WORD: return read_word(id, text, n, &out->n) || read_path(id, a, text, n, out);
  case CK_FLAG: return read_word(id, text, n, &out->n);
  case CK_SET: return read_set(id, text, n, &out->n);
  case CK_LIST: return read_list(id, a, text, n, out);
  case CK_GRIDS: return read_grids(id, a, text, n, out);
  }
  return false;
}

static strategy defaults;
static pthread_once_t defaults_once = PTHREAD_ONCE_INIT;

static void read_defaults(void) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const bool ok = choice_read((choice_id)i, NULL, rows[i].dflt, strlen(rows[i].dflt), &defaults.of[i]);
    assert(ok); // no list of numbers
    (void)ok;
  }
}

choice_value choice_default(choice_id id) {
  pthread_once(&defaults_once, read_defaults);
  return defaults.of[id];
}

const strategy *strategy_defaults(void) {
  pthread_once(&defaults_once, read_defaults);
  return &defaults;
}

strategy strategy_default(void) { return *strategy_defaults(); }

choice_value choice_of_mixed(choice_id id) {
  choice_value x = choice_default(id);
  const char *word = rows[id].search + (*rows[id].search == '?');
  if (word[0] && word[1]) read_word(id, word, strlen(word), &x.n);
  return x;
}

bool choice_same(choice_value x, choice_value y) {
  if (x.nparts != y.nparts) return false;
  if (x.nparts) return x.n == y.n && !memcmp(x.part, y.part, x.nparts * sizeof *x.part);
  return x.path || y.path ? x.path && y.path && !strcmp(x.path, y.path) : x.n == y.n;
}

bool choice_is(choice_id id, choice_value x, const char *word) {
  const char *w = x.nparts ? NULL : choice_word(id, x.n);
  return w && !strcmp(w, word);
}

void choice_print(choice_id id, choice_value x, strbuf *out) {
  const char *between = "";
  switch (rows[id].kind) {
  case CK_COUNT: sb_i64(out, x.n); return;
  case CK_SET:
    for (u32 i = 0; i < choice_words(id); i++) {
      if (!(x.n >> i & 1)) continue;
      sb_put(out, between), sb_put(out, choice_word(id, i));
      between = "+";
    }
    if (!x.n) sb_put(out, "none");
    return;
  case CK_LIST:
    for (u32 i = 0, n; i < x.nparts; i += n) {
      for (n = 1; i + n < x.nparts && x.part[i + n] == x.part[i];) n++;
      if (n < RUN_LEAST) n = 1;
      sb_fmt(out, n > 1 ? "%s%ux%u" : "%s%u", i ? "/" : "", x.part[i], n);
    }
    if (x.nparts) return;
    break;
  case CK_GRIDS:
    for (u32 i = 0; i < x.nparts; i += 3) {
      sb_fmt(out, "%s%ux%u", i ? "+" : "", x.part[i], x.part[i + 1]);
      if (x.part[i + 2] > 1) sb_fmt(out, "x%u", x.part[i + 2]);
    }
    if (x.nparts) return;
    break;
  case CK_WORD:
  case CK_FLAG: break;
  }
  sb_put(out, x.path ? x.path : choice_word(id, x.n));
}

void choice_say(choice_id id, choice_value x, strbuf *out) {
  sb_put(out, rows[id].name);
  if (rows[id].kind == CK_FLAG && x.n) return;
  sb_char(out, '=');
  choice_print(id, x, out);
}

// ---- where a row can be chosen ------------------------------------------------------------------------
static bool grouped(const strategy *s) { // of a file its own check tells
  return s->schedule.path || sched_row_of(s->schedule.n)->group;
}

// Its groups are of microbatches, whatever the number of chunks.
static bool updates_in_groups(const strategy *s) {
  return !s->schedule.path && sched_row_of(s->schedule.n)->weights == WEIGHTS_DOUBLE;
}

bool choice_is_on(choice_id id, const strategy *s) {
  const u32 n = s->of[id].n, dflt = rows[id].kind == CK_SET ? choice_default(id).n : 0;
  return dflt ? n & dflt : n;
}

static bool holds(u64 needs, const strategy *s, bool train) {
  if (needs & CHOICE_TRAINING && !train) return false;
  if (needs & CHOICE_GROUPED && !grouped(s)) return false;
  if (needs & CHOICE_BLOCKING && s->overlap.n & OVERLAP_PP) return false;
  if (needs & CHOICE_SEVERAL && strategy_most(s, CHOICE_dp) <= 1 && !s->replicas.nparts) return false;
  if (needs & CHOICE_ALIKE && s->replicas.nparts) return false;
  const u64 rows_of = (1ull << CHOICE_COUNT) - 1;
  for (u64 many = needs & rows_of; many; many &= many - 1)
    if (strategy_most(s, (choice_id)__builtin_ctzll(many)) <= 1 &&
        !(needs & CHOICE_GROUPED && updates_in_groups(s) && s->pp.n > 1))
      return false;
  return true;
}

bool choice_applies(choice_id id, const strategy *s, bool train) {
  const choice_row *r = &rows[id];
  bool any = !r->where;
  for (u32 k = 0; r->where && r->words[k]; k++) any |= holds(r->where[k], s, train);
  if (!any || !holds(r->needs, s, train)) return false;
  for (u64 on = rows_on[id]; on; on &= on - 1)
    if (!choice_is_on((choice_id)__builtin_ctzll(on), s)) return false;
  return true;
}

choice_value choice_settled(choice_id id, const strategy *s, bool train) {
  const choice_row *r = &rows[id];
  choice_value x = s->of[id];
  for (u32 k = 0; r->where && r->words[k]; k++)
    if (!holds(r->where[k], s, train)) x.n = (x.n & ~(1u << k)) | (choice_default(id).n & 1u << k);
  return x;
}

// That it is on: "overlap=pp", or "offload", whose words say which things.
static const char *choice_on(arena *a, choice_id id) {
  const choice_row *r = &rows[id];
  return strcmp(r->dflt, "none") ? arena_printf(a, "%s=%s", r->name, r->dflt) : r->name;
}

// What the first word of a set needs that is on and cannot be, or, if all can, the first that cannot.
u64 choice_needs_here(choice_id id, const strategy *s, bool train) {
  const choice_row *r = &rows[id];
  for (u32 pass = 0; r->where && pass < 2; pass++)
    for (u32 k = 0; r->words[k]; k++)
      if ((pass || s->of[id].n >> k & 1) && !holds(r->where[k], s, train)) return r->where[k];
  return r->needs;
}

const char *choice_lacks(arena *a, choice_id id, const strategy *s, bool train) {
  const u64 needs = choice_needs_here(id, s, train);
  if (needs & CHOICE_TRAINING && !train) return "applies to training only; this is inference";
  for (u32 k = 0; k < CHOICE_COUNT; k++) {
    if (needs >> k & 1 && strategy_most(s, (choice_id)k) <= 1)
      return s->replicas.nparts && choice_is_degree((choice_id)k)
                 ? arena_printf(a, "needs a replica of several %s; got one in each",
                                strategy_counts((choice_id)k))
             : s->tp_stages.nparts && s->of[k].n > 1
                 ? arena_printf(a, "needs a place with %s > 1; tp.stages leaves %s=1 at every place",
                                rows[k].name, rows[k].name)
                 : arena_printf(a, "needs %s > 1; got %s=%u", rows[k].name, rows[k].name, s->of[k].n);
    if (rows_on[id] >> k & 1 && !choice_is_on((choice_id)k, s)) {
      strbuf b = {.a = a};
      sb_fmt(&b, "needs %s; got ", choice_on(a, (choice_id)k));
      choice_say((choice_id)k, s->of[k], &b);
      return sb_str(&b);
    }
  }
  if (needs & CHOICE_SEVERAL && strategy_most(s, CHOICE_dp) <= 1 && !s->replicas.nparts)
    return arena_printf(a, "needs dp > 1 or replicas; got dp=%u", s->dp.n);
  if (needs & CHOICE_GROUPED && !grouped(s))
    return arena_printf(a, "needs a schedule with groups of microbatches; %s has none",
                        sched_row_of(s->schedule.n)->name);
  if (needs & CHOICE_BLOCKING && s->overlap.n & OVERLAP_PP) {
    strbuf b = {.a = a};
    sb_put(&b, "needs overlap=none; got "), choice_say(CHOICE_overlap, s->overlap, &b);
    return sb_str(&b);
  }
  return "applies";
}

static void put_needs(strbuf *to, arena *a, choice_id id, u64 needs) {
  strbuf b = {.a = a};
  if (needs & CHOICE_TRAINING) sb_put(&b, "training");
  for (u32 k = 0; k < CHOICE_COUNT; k++) {
    if (needs >> k & 1) sb_fmt(&b, "%s%s > 1", b.n ? " and " : "", rows[k].name);
    if (rows_on[id] >> k & 1) sb_fmt(&b, "%s%s", b.n ? " and " : "", choice_on(a, (choice_id)k));
  }
  if (needs & CHOICE_SEVERAL) sb_fmt(&b, "%sdp > 1 or replicas", b.n ? " and " : "");
  if (needs & CHOICE_GROUPED) sb_fmt(&b, "%sa schedule with groups", b.n ? " and " : "");
  if (needs & CHOICE_BLOCKING) sb_fmt(&b, "%soverlap=none", b.n ? " and " : "");
  if (needs & CHOICE_ALIKE) sb_fmt(&b, "%sreplicas=none", b.n ? " and " : "");
  sb_put(to, sb_str(&b));
}

const char *choice_needs(arena *a, choice_id id, u32 words) {
  const choice_row *r = &rows[id];
  strbuf b = {.a = a};
  for (u32 k = 0; r->where && r->words[k]; k++) {
    if (!(words >> k & 1)) continue;
    sb_put(&b, b.n ? ", or " : "");
    put_needs(&b, a, id, r->where[k]);
    sb_fmt(&b, " (%s)", r->words[k]);
  }
  if (!r->where) put_needs(&b, a, id, r->needs);
  return sb_str(&b);
}

int strategy_packed_compare(const strategy_packed *x, const strategy_packed *y) {
  if (x->more || y->more) {
    const strategy s = strategy_unpack(x), t = strategy_unpack(y);
    return strategy_compare(&s, &t);
  }
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (x->n[i] != y->n[i]) return x->n[i] < y->n[i] ? -1 : 1;
  return 0;
}

// ---- what `auto` is of ------------------------------------------------------------------------------------
bool strategy_has_auto(const strategy *s) {
  static const choice_id of[] = {CHOICE_dp_shares, CHOICE_tp_shares, CHOICE_layers};
  bool has = false;
  for (u32 k = 0; k < COUNT_OF(of); k++)
    has |= choice_is(of[k], s->of[of[k]], "auto") || choice_is(of[k], s->of[of[k]], "whale");
  return has;
}

bool strategy_tries_cuts(const strategy *s) {
  return choice_is(CHOICE_layers, s->layers, "auto") && s->pp.n > 1 && s->v.n == 1 && !s->places.nparts &&
         !s->tp_stages.nparts && !s->replicas.nparts;
}

// ---- in messages ----------------------------------------------------------------------------------------
const char *choice_takes(arena *a, choice_id id) {
  const choice_row *r = choice_get(id);
  strbuf b = {.a = a};
  if (r->kind == CK_COUNT && r->most == CHOICE_MOST)
    sb_fmt(&b, "an integer, %u or more", choice_least(id));
  else if (r->kind == CK_COUNT)
    sb_fmt(&b, "an integer, %u to %u", r->least, r->most);
  u32 n = r->kind == CK_COUNT ? 0 : choice_words(id);
  for (u32 i = 0; i < n; i++)
    sb_fmt(&b, "%s%s",
           !i                                                      ? ""
           : i + 1 == n && r->kind != CK_SET && r->kind != CK_LIST ? " or "
                                                                   : ", ",
           choice_word(id, i));
  if (r->suffix) sb_fmt(&b, ", or a file whose name ends in %s", r->suffix);
  if (r->kind == CK_SET) sb_put(&b, n > 1 ? ", with + between them, or none" : " or none");
  if (r->kind == CK_LIST)
    sb_fmt(&b, ", or integers from %d such as %s", id != CHOICE_layers,
           id == CHOICE_layers      ? "10/12/12/6"
           : id == CHOICE_places    ? "2/1"
           : id == CHOICE_tp_stages ? "8/4"
                                    : "3/1");
  if (r->kind == CK_GRIDS) sb_put(&b, ", or stages x tensor ranks of two replicas or more, such as 2x2+1x2");
  return sb_str(&b);
}

const char *choice_near(arena *a, choice_id id, const char *text, size_t n) {
  strbuf b = {.a = a};
  near_name near = near_to(text, n);
  const char *dash = n ? memchr(text, '-', n) : NULL;
  const u32 words = choice_get(id)->kind == CK_COUNT ? 0 : choice_words(id);
  for (u32 i = 0; i < words; i++) near_try(&near, choice_word(id, i));
  if (near.name) sb_put(&b, near.name);
  for (u32 i = 0; i < words && dash && !near.name; i++)
    if (!strncmp(choice_word(id, i), text, (size_t)(dash - text) + 1))
      sb_fmt(&b, "%s%s", b.n ? " or " : "", choice_word(id, i));
  return sb_str(&b);
}
