// annotations.c - reads annotations, of a program and of a file: scopes, a default and a configuration. What
// they mean: policy/annotate.c.
#include "plan/annotations.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

typedef enum { SK_FLAG, SK_COUNT, SK_WORD, SK_ANY } setting_kind;
typedef struct {
  const char *key, *also;
  setting_kind kind;
  const char *dflt, *words, *meaning;
  bool only;
} row;
static const row rows[] = {
#define SETTING(id, key, also, kind, dflt, words, meaning)                                                   \
  {key, also, SK_##kind, dflt, words, meaning, false},
#define ONLY(id, key, also, kind, dflt, words, meaning) {key, also, SK_##kind, dflt, words, meaning, true},
#include "plan/annotations.def"
#undef SETTING
#undef ONLY
};

typedef struct {
  ctx *c;
  arena *a;
  annotations *x;
  bool failed;
  bool given[SETTING_COUNT]; // by what is read: program or file
} reader;

static bool bad(reader *r, const ynode *y, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool bad(reader *r, const ynode *y, const char *fmt, ...) {
  va_list ap;
  char text[512];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(r->c, E_ANNOTATE, y ? y->at : (loc){0}, "%s", text);
  r->failed = true;
  return false;
}

static bool known_keys(reader *r, const ynode *y, const char *what, const char *const *keys) {
  if (y->kind != Y_MAP) return bad(r, y, "%s must be a map", what);
  for (u32 i = 0; i < y->n; i++) {
    const char *key = y->key[i]->str;
    near_name near = near_to(key, strlen(key));
    u32 k = 0;
    while (keys[k] && strcmp(keys[k], key)) near_try(&near, keys[k++]);
    if (keys[k]) continue;
    bad(r, y->key[i], "%s: unknown key `%s`", what, key);
    strbuf names = {.a = r->a};
    for (k = 0; keys[k]; k++) sb_fmt(&names, "%s%s", k ? ", " : "", keys[k]);
    if (near.name)
      diag_hint(r->c, "did you mean `%s`?", near.name);
    else
      diag_hint(r->c, "known keys: %s", sb_str(&names));
  }
  return !r->failed;
}

// An integer from `least` to `most`; false: it is none.
static bool integer(const char *text, i64 least, i64 most, u32 *out) {
  char *end;
  errno = 0;
  const long long v = strtoll(text, &end, 10);
  if (end == text || *end || errno || v < least || v > most) return false;
  *out = (u32)v;
  return true;
}

// ---- settings -------------------------------------------------------------------------------------------
static const char *env_of(arena *a, const char *key) {
  char *name = arena_printf(a, "EPL_%s", key);
  for (char *s = name; *s; s++) *s = *s == '.' ? '_' : (char)toupper((u8)*s);
  return name;
}

bool annotation_setting_get(arena *a, u32 i, setting_row *out) {
  if (i >= COUNT_OF(rows)) return false;
  const row *w = &rows[i];
  *out = (setting_row){.key = w->key,
                       .also = w->also,
                       .dflt = w->dflt,
                       .words = w->words,
                       .meaning = w->meaning,
                       .env = env_of(a, w->key),
                       .only = w->only};
  return true;
}

// Its number in a list of words with spaces between them, from 1; 0: it is none of them.
static u32 word_in(const char *words, const char *text) {
  const size_t n = strlen(text);
  u32 k = 1;
  for (const char *s = words; *s; k++) {
    const size_t len = strcspn(s, " ");
    if (len == n && !memcmp(s, text, n)) return k;
    s += len + (s[len] == ' ');
  }
  return 0;
}

static const char *takes(arena *a, const row *w) {
  if (w->kind == SK_FLAG) return "true or false";
  if (w->kind == SK_COUNT) return "an integer, 1 or more";
  strbuf b = {.a = a};
  for (const char *s = w->words; *s;) {
    const size_t len = strcspn(s, " ");
    const bool last = !s[len], first = s == w->words;
    sb_fmt(&b, "%s%.*s", first ? "" : last ? " or " : ", ", (int)len, s);
    s += len + (s[len] == ' ');
  }
  return sb_str(&b);
}

static bool read_value(reader *r, u32 i, const char *text, const ynode *y, const char *env) {
  const row *w = &rows[i];
  annotation_setting *s = &r->x->config.of[i];
  const char *name = env ? arena_printf(r->a, "%s (environment)", env) : w->key;
  const bool dflt = !strcmp(text, w->dflt);
  s->at = y ? y->at : (loc){0}, s->n = 0;
  const u32 word = word_in(w->words, text);
  bool ok = dflt || w->kind == SK_ANY || (w->kind == SK_WORD && word) ||
            (w->kind == SK_FLAG && (!strcmp(text, "true") || !strcmp(text, "True") ||
                                    !strcmp(text, "false") || !strcmp(text, "False"))) ||
            (w->kind == SK_COUNT && integer(text, 1, CHOICE_MOST, &s->n));
  if (!ok) {
    bad(r, y, "%s takes %s; got '%s'", name, takes(r->a, w), text);
    near_name near = near_to(text, strlen(text));
    for (const char *v = w->words; *v;) {
      const size_t len = strcspn(v, " ");
      near_try(&near, arena_printf(r->a, "%.*s", (int)len, v));
      v += len + (v[len] == ' ');
    }
    if (w->kind == SK_WORD && near.name) diag_hint(r->c, "did you mean `%s`?", near.name);
    return false;
  }
  const bool same = dflt || (w->kind == SK_FLAG && (*text | 32) == *w->dflt);
  if (w->only && !same) {
    bad(r, y, "%s is not supported: %s", name, w->meaning);
    diag_hint(r->c, "leave it out, or use its default, %s", *w->dflt ? w->dflt : "the empty text");
    return false;
  }
  if (w->kind == SK_FLAG) s->n = (*text | 32) == 't';
  if (w->kind == SK_WORD) s->n = word;
  if (w->kind == SK_COUNT && dflt && !integer(w->dflt, 1, CHOICE_MOST, &s->n)) s->n = 0;
  return true;
}

static u32 find_setting(const char *key) {
  u32 i = 0;
  while (i < COUNT_OF(rows) && strcmp(rows[i].key, key) && (!*rows[i].also || strcmp(rows[i].also, key))) i++;
  return i;
}

static void read_setting(reader *r, const ynode *key, const ynode *y) {
  const u32 i = find_setting(key->str);
  if (i == COUNT_OF(rows)) {
    near_name near = near_to(key->str, strlen(key->str));
    for (u32 k = 0; k < COUNT_OF(rows); k++) {
      const char *dot = strchr(rows[k].key, '.');
      near_try(&near, rows[k].key);
      if (*rows[k].also) near_try(&near, rows[k].also);
      if (!strcmp(dot + 1, key->str)) near.name = rows[k].key, near.limit = 0;
    }
    bad(r, key, "config: unknown key `%s`", key->str);
    if (near.name)
      diag_hint(r->c, "did you mean `%s`?", near.name);
    else
      diag_hint(r->c, "docs/annotations.md lists the keys, such as pipeline.num_micro_batch");
    return;
  }
  if (y->kind != Y_SCALAR) {
    bad(r, y, "%s takes %s", rows[i].key, takes(r->a, &rows[i]));
    return;
  }
  if (r->given[i])
    bad(r, key, "%s is given twice", rows[i].key);
  else
    r->given[i] = read_value(r, i, y->str, y, NULL);
}

extern char **environ;

// A name of a section of the configuration that has no such key, such as EPL_PIPELINE_NUM_MICRO_BATCHES.
static void read_unknown(reader *r, const char *name, size_t n) {
  near_name near = near_to(name, n);
  strbuf keys = {.a = r->a};
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const char *env = env_of(r->a, rows[i].key);
    const size_t head = strlen("EPL_") + strcspn(rows[i].key, ".") + 1;
    if (strlen(env) == n && !memcmp(env, name, n)) return;
    if (n >= head && !memcmp(env, name, head)) sb_fmt(&keys, keys.n ? ", %s" : "%s", env);
    near_try(&near, env);
  }
  if (!keys.n) return;
  bad(r, NULL, "%.*s (environment) is not a setting", (int)n, name);
  if (near.name)
    diag_hint(r->c, "did you mean %s?", near.name);
  else
    diag_hint(r->c, "unset it; there are %s", sb_str(&keys));
}

static void read_environment(reader *r) {
  for (char **e = environ; e && *e; e++)
    if (!strncmp(*e, "EPL_", 4)) read_unknown(r, *e, strcspn(*e, "="));
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const char *env = env_of(r->a, rows[i].key), *text = getenv(env);
    if (!read_value(r, i, text ? text : rows[i].dflt, NULL, text ? env : NULL)) return;
  }
}

// {category.key: value}, or {category: {key: value}}.
static void read_config(reader *r, const ynode *y) {
  if (!y) return;
  if (y->kind != Y_MAP) {
    bad(r, y, "`config` must be a map from keys to values");
    return;
  }
  for (u32 i = 0; i < y->n; i++) {
    const ynode *v = y->item[i];
    if (v->kind != Y_MAP)
      read_setting(r, y->key[i], v);
    else
      for (u32 k = 0; k < v->n; k++) {
        ynode key = *v->key[k];
        key.str = arena_printf(r->a, "%s.%s", y->key[i]->str, v->key[k]->str);
        read_setting(r, &key, v->item[k]);
      }
  }
}

// ---- scopes ---------------------------------------------------------------------------------------------
// 8, all, or nothing.
static bool read_count(reader *r, const ynode *y, annotation_scope *s) {
  s->count_at = y->at;
  if (y->kind == Y_SCALAR && !*y->str) return true;
  if (y->kind == Y_SCALAR && !strcmp(y->str, "all")) return s->count = COUNT_ALL, true;
  if (y->kind == Y_SCALAR && integer(y->str, 1, UINT16_MAX, &s->count)) return true;
  return bad(r, y, "%s takes a number of devices, 1 to %u, or `all`; got '%s'", scope_row_of(s->kind)->word,
             UINT16_MAX, y->kind == Y_SCALAR ? y->str : "...");
}

// auto, equal, or a list of parts.
static bool read_shares(reader *r, const ynode *y, shares_info *out) {
  *out = (shares_info){.where = y->at};
  if (y->kind == Y_SCALAR && !strcmp(y->str, "auto")) return out->how = SHARES_AUTO, true;
  if (y->kind == Y_SCALAR && !strcmp(y->str, "equal")) return out->how = SHARES_EQUAL, true;
  if (y->kind != Y_SEQ || !y->n) return bad(r, y, "shares are `auto`, `equal`, or parts such as [5, 3]");
  u32 *part = NEWN(r->a, u32, y->n);
  for (u32 k = 0; k < y->n; k++)
    if (y->item[k]->kind != Y_SCALAR || !integer(y->item[k]->str, 1, UINT16_MAX, &part[k]))
      return bad(r, y->item[k], "a share is an integer, 1 to %u", UINT16_MAX);
  out->how = SHARES_PARTS, out->n = y->n, out->part = part;
  return true;
}

// "3" or "0-11", of blocks from 0 or of instructions from 1.
static bool read_range(reader *r, const ynode *y, annotation_scope *s) {
  const i64 least = s->instructions;
  char first[16] = "";
  const char *dash = y->kind == Y_SCALAR ? strchr(y->str, '-') : NULL;
  s->what_at = y->at;
  if (y->kind == Y_SCALAR && !dash && integer(y->str, least, CHOICE_MOST, &s->first)) {
    s->last = s->first;
    return true;
  }
  if (dash && (size_t)(dash - y->str) < sizeof first) {
    memcpy(first, y->str, (size_t)(dash - y->str));
    if (integer(first, least, CHOICE_MOST, &s->first) && integer(dash + 1, least, CHOICE_MOST, &s->last) &&
        s->first <= s->last)
      return true;
  }
  return bad(r, y, "%s takes numbers of %s, such as \"%lld-11\"; got '%s'",
             s->layers ? "layers" : "instructions",
             s->layers ? "repeated blocks from 0" : "instructions of main from 1", (long long)least,
             y->kind == Y_SCALAR ? y->str : "...");
}

static bool read_selector(reader *r, const ynode *y, annotation_scope *s) {
  const ynode *layers = yaml_get(y, "layers"), *match = yaml_get(y, "match"), *op = yaml_get(y, "op"),
              *instrs = yaml_get(y, "instructions");
  if (!layers + !match + !op + !instrs != 3) {
    bad(r, y, "a scope says what it covers, by one of `layers`, `instructions`, `match` and `op`");
    diag_hint(r->c, "such as {layers: \"0-5\", replicate: 2}");
    return false;
  }
  s->layers = layers != NULL, s->instructions = instrs != NULL;
  if (layers || instrs) return read_range(r, layers ? layers : instrs, s);
  const ynode *text = match ? match : op;
  s->what_at = text->at;
  if (text->kind != Y_SCALAR || !*text->str) return bad(r, text, "`%s` must be text", match ? "match" : "op");
  if (match) s->match = text->str;
  if (op) s->op = text->str;
  if (!op || op_named(r->c, op->str, strlen(op->str)) != OP_none) return true;
  const char *near = op_near(r->c, op->str, strlen(op->str));
  bad(r, op, "unknown operator `%s`", op->str);
  if (near) diag_hint(r->c, "did you mean `%s`?", near);
  return false;
}

// What EPL forbids and the paper does not use: only a split inside a replicate has a meaning.
static bool may_nest(reader *r, const annotation_scope *outer, const annotation_scope *s) {
  if (!outer || (scope_row_of(s->kind)->inside && !scope_splits(outer))) return true;
  diag(r->c, E_ANNOTATE, s->at, "%s inside %s cannot be nested", scope_row_of(s->kind)->word,
       scope_row_of(outer->kind)->word);
  diag_note(r->c, outer->at, "the scope around it");
  diag_hint(
      r->c,
      "only a split may be inside a replicate; nested data parallelism follows from the number of devices");
  r->failed = true;
  return false;
}

static void read_scopes(reader *r, const ynode *y, u32 parent) {
  static const char *const keys[] = {"name",      "layers", "instructions", "match",  "op",
                                     "replicate", "split",  "shares",       "scopes", NULL};
  if (y->kind != Y_SEQ) {
    bad(r, y, "`scopes` must be a list");
    return;
  }
  for (u32 i = 0; i < y->n && !r->failed; i++) {
    const ynode *e = y->item[i], *name = yaml_get(e, "name"), *inner = yaml_get(e, "scopes"),
                *shares = yaml_get(e, "shares"), *count = NULL;
    annotation_scope s = {.at = e->at, .parent = parent};
    u32 kinds = 0;
    for (scope_kind k = SCOPE_default + 1; k < SCOPE_KINDS; k++) {
      const ynode *of = yaml_get(e, scope_row_of(k)->word);
      if (of) s.kind = k, count = of, kinds++;
    }
    if (!known_keys(r, e, "a scope", keys)) return;
    if (r->x->nscopes == SCOPES_MAX) {
      bad(r, e, "more than %d scopes", SCOPES_MAX);
      return;
    }
    if (kinds != 1) {
      bad(r, e, "a scope has one of `replicate` and `split`");
      diag_hint(r->c, "such as replicate: 2, or split: 4");
      return;
    }
    if (name && name->kind != Y_SCALAR) {
      bad(r, name, "`name` must be text");
      return;
    }
    if (!read_selector(r, e, &s) || !read_count(r, count, &s) ||
        (shares && !read_shares(r, shares, &s.shares)) ||
        !may_nest(r, parent ? &r->x->scope[parent - 1] : NULL, &s))
      return;
    const char *what = s.layers ? "layer" : "instruction";
    s.name = name                ? name->str
             : s.match           ? s.match
             : s.op              ? s.op
             : s.first == s.last ? arena_printf(r->a, "%s %u", what, s.first)
                                 : arena_printf(r->a, "%ss %u-%u", what, s.first, s.last);
    r->x->scope[r->x->nscopes++] = s;
    if (inner) read_scopes(r, inner, r->x->nscopes);
  }
}

static void read_default(reader *r, const ynode *y) {
  static const char *const keys[] = {"name", "replicate", "split", "shares", NULL};
  if (!known_keys(r, y, "`default`", keys)) return;
  const ynode *rep = yaml_get(y, "replicate"), *split = yaml_get(y, "split"), *name = yaml_get(y, "name");
  r->x->has_default = true;
  r->x->dflt =
      (annotation_scope){.name = name && name->kind == Y_SCALAR ? name->str : "default", .at = y->at};
  if (split) {
    bad(r, split, "the default cannot be split: what no scope covers is replicated");
    diag_hint(r->c, "default: {replicate: %s}", split->kind == Y_SCALAR && *split->str ? split->str : "1");
  } else if (!rep)
    bad(r, y, "`default` says {replicate: N}");
  else if (read_count(r, rep, &r->x->dflt) && yaml_get(y, "shares"))
    read_shares(r, yaml_get(y, "shares"), &r->x->dflt.shares);
}

// ---- what the program says ------------------------------------------------------------------------------
static void add_written(reader *r, const prog *p, u32 id) {
  const scope_info *i = &p->scopes.v[id];
  annotation_scope s = {.at = i->where,
                        .what_at = i->where,
                        .count_at = i->where,
                        .parent = i->parent,
                        .kind = i->kind,
                        .count = i->count,
                        .shares = i->shares,
                        .written = id};
  if (r->x->nscopes == SCOPES_MAX) {
    diag(r->c, E_ANNOTATE, i->where, "more than %d scopes", SCOPES_MAX);
    r->failed = true;
    return;
  }
  s.name = i->name.i ? sym_str(r->c, i->name) : arena_printf(r->a, "scope %u", id);
  if (may_nest(r, i->parent ? &r->x->scope[i->parent - 1] : NULL, &s)) r->x->scope[r->x->nscopes++] = s;
}

static void read_program(reader *r, const prog *p) {
  if (p->has_default) {
    const scope_info *d = &p->scopes.v[0];
    r->x->has_default = true;
    r->x->dflt = (annotation_scope){.name = d->name.i ? sym_str(r->c, d->name) : "default",
                                    .at = d->where,
                                    .count_at = d->where,
                                    .shares = d->shares,
                                    .count = d->count};
  }
  r->x->replicas = p->replicas;
  for (u32 id = 1; id < p->scopes.n && !r->failed; id++) add_written(r, p, id);
  for (u32 k = 0; k < p->settings.n && !r->failed; k++) {
    const setting_info *s = &p->settings.v[k];
    const ynode key = {.kind = Y_SCALAR, .at = s->where, .str = sym_str(r->c, s->key)},
                to = {.kind = Y_SCALAR, .at = s->where, .str = sym_str(r->c, s->value)};
    read_setting(r, &key, &to);
  }
}

bool annotations_in(const prog *p) {
  return p->has_default || p->scopes.n > 1 || p->settings.n || p->replicas.how;
}

// ---- what the file says ---------------------------------------------------------------------------------
static void read_file(reader *r, sym file, const char *text, size_t n) {
  static const char *const keys[] = {"heddle-annotate", "name",   "devices", "default",
                                     "replicas",        "scopes", "config",  NULL};
  annotations *x = r->x;
  const ynode *y = yaml_parse(r->c, r->a, file, text, n);
  if (!y) {
    r->failed = true;
    return;
  }
  const ynode *version = yaml_get(y, "heddle-annotate"), *devices = yaml_get(y, "devices"),
              *dflt = yaml_get(y, "default"), *scopes = yaml_get(y, "scopes"),
              *replicas = yaml_get(y, "replicas");
  u32 v = 0;
  x->at = y->at;
  if (!x->has_default) x->dflt.at = y->at;
  if (y->kind != Y_MAP || !version) {
    bad(r, y, "annotations are a map that starts with `heddle-annotate: 1`");
    return;
  }
  if (version->kind != Y_SCALAR || !integer(version->str, 1, 1, &v))
    bad(r, version, "this version reads `heddle-annotate: 1`");
  known_keys(r, y, "annotations", keys);
  if (devices && (devices->kind != Y_SCALAR || !integer(devices->str, 1, UINT16_MAX, &x->devices)))
    bad(r, devices, "devices takes a number, 1 to %u", UINT16_MAX);
  if (!r->failed && replicas) read_shares(r, replicas, &x->replicas);
  if (!r->failed && dflt) read_default(r, dflt);
  if (!r->failed && scopes) read_scopes(r, scopes, 0);
  if (!r->failed) read_config(r, yaml_get(y, "config"));
}

annotations *annotations_read(const prog *p, arena *a, sym file, const char *text, size_t n) {
  reader r = {.c = p->c, .a = a, .x = NEW(a, annotations)};
  r.x->scope = NEWN(a, annotation_scope, SCOPES_MAX);
  r.x->at = func_get(p, p->main)->where;
  r.x->dflt = (annotation_scope){.name = "default", .at = r.x->at};
  read_environment(&r);
  if (!r.failed) read_program(&r, p);
  memset(r.given, 0, sizeof r.given);
  if (!r.failed && text) read_file(&r, file, text, n);
  return r.failed ? NULL : r.x;
}
