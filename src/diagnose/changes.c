// changes.c - what a user asks for in words: changes ("stage 3 forward-compute x 0.5") and steps ("3-5,8"). Not what
// they do to a job: that is each question's own.
//
// Idea: one small grammar for all kinds of traces (job.h has it). Whoever applies a change knows which workers and
// names there are; here only the form is checked, and every error points at its place in the text.
#include "diagnose/diagnose.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
  sym option; // "--set": stands where others have a file
  const char *text, *p;
} parser;

static loc here(const parser *r, const char *at) {
  return loc_text(r->c, r->option, 1, (u32)(at - r->text) + 1, r->text);
}
static void space(parser *r) {
  while (*r->p == ' ' || *r->p == '\t') r->p++;
}
static parser parser_of(ctx *c, arena *a, const char *option, const char *text) {
  const char *copy = arena_strdup(ctx_arena(c), text); // diagnostics point into it
  return (parser){.c = c, .a = a, .option = sym_of(c, option), .text = copy, .p = copy};
}

// ---- numbers: 3,5-7 -------------------------------------------------------------------------------------
static bool number(parser *r, u32 *out) {
  const char *at = r->p;
  u64 n = 0;
  while (isdigit((unsigned char)*r->p) && n < TRACE_NONE) n = n * 10 + (u64)(*r->p++ - '0');
  if (r->p == at) {
    if (*at)
      diag(r->c, E_USAGE, here(r, at), "'%c' where a number is expected", *at);
    else
      diag(r->c, E_USAGE, here(r, at), "the text ends where a number is expected");
    diag_hint(r->c, "numbers are such as 3, or 3-5,8");
    return false;
  }
  if (n >= TRACE_NONE) {
    diag(r->c, E_USAGE, here(r, at), "the number is too large");
    return false;
  }
  *out = (u32)n;
  return true;
}

static bool numbers(parser *r, number_set *out) {
  VEC(u32) from = {0}, to = {0};
  do {
    const char *at = r->p;
    u32 lo, hi;
    if (!number(r, &lo)) return false;
    hi = lo;
    if (*r->p == '-') {
      r->p++;
      if (!number(r, &hi)) return false;
    }
    if (hi < lo) {
      diag(r->c, E_USAGE, here(r, at), "%u-%u goes backwards", lo, hi);
      diag_hint(r->c, "write %u-%u", hi, lo);
      return false;
    }
    *vec_push(r->a, &from) = lo, *vec_push(r->a, &to) = hi;
  } while (*r->p == ',' && r->p++);
  *out = (number_set){.n = from.n, .from = from.v, .to = to.v};
  return true;
}

bool number_set_has(const number_set *s, u32 step) {
  for (u32 k = 0; k < s->n; k++)
    if (s->from[k] <= step && step <= s->to[k]) return true;
  return !s->n;
}

bool number_set_parse(ctx *c, arena *a, const char *text, number_set *out) {
  *out = (number_set){0};
  if (!text) return true;
  parser r = parser_of(c, a, "--steps", text);
  space(&r);
  if (!numbers(&r, out)) return false;
  space(&r);
  if (!*r.p) return true;
  diag(c, E_USAGE, here(&r, r.p), "'%c' after the steps", *r.p);
  diag_hint(c, "steps are such as 3, or 3-5,8");
  return false;
}

// ---- what -----------------------------------------------------------------------------------------------
static const char *const whats[WHAT_NAME] = {"worker", "rank", "stage", "data", "microbatch"};

static bool ends_word(char ch) { return !ch || ch == ' ' || ch == '\t' || ch == '='; }
static size_t word_length(const char *p) {
  size_t n = 0;
  while (!ends_word(p[n])) n++;
  return n;
}
static bool word_is(const parser *r, const char *word) {
  const size_t n = strlen(word);
  return !strncmp(r->p, word, n) && ends_word(r->p[n]);
}

static bool quoted(parser *r, change_term *out) {
  const char *at = ++r->p, *end = strchr(at, '"');
  if (!end) {
    diag(r->c, E_USAGE, here(r, at - 1), "the quotation mark is not closed");
    diag_hint(r->c, "write %s\"", at - 1);
    return false;
  }
  out->what = WHAT_NAME, out->name = arena_strndup(r->a, at, (size_t)(end - at));
  r->p = end + 1;
  return true;
}

static bool term(parser *r, change_term *out) {
  *out = (change_term){.at = here(r, r->p)};
  if (*r->p == '"') return quoted(r, out);
  for (u32 k = 0; k < WHAT_NAME; k++)
    if (word_is(r, whats[k])) {
      r->p += strlen(whats[k]);
      space(r);
      out->what = (change_what)k;
      return numbers(r, &out->is);
    }
  const size_t n = word_length(r->p);
  out->what = WHAT_NAME, out->name = arena_strndup(r->a, r->p, n);
  r->p += n;
  return true;
}

static bool terms(parser *r, job_change *out) {
  VEC(change_term) v = {0};
  bool all = false;
  for (space(r); *r->p && *r->p != '=' && !word_is(r, "x"); space(r)) {
    if (word_is(r, "all")) {
      r->p += 3, all = true;
      continue;
    }
    if (!term(r, vec_push(r->a, &v))) return false;
  }
  out->nterms = v.n, out->term = v.v;
  if (v.n || all) return true;
  diag(r->c, E_USAGE, here(r, r->p), "a change begins with what changes");
  diag_hint(r->c, "such as --set 'worker 3 = ideal'");
  return false;
}

// ---- how ------------------------------------------------------------------------------------------------
static bool value(parser *r, job_change *out) {
  static const struct {
    const char *name;
    double ps;
  } unit[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
  const char *at = r->p;
  if (word_is(r, "ideal") || word_is(r, "median")) {
    out->how = *at == 'i' ? CHANGE_IDEAL : CHANGE_MEDIAN;
    r->p += word_length(at);
    return true;
  }
  char *end;
  const double x = strtod(at, &end);
  while (end > at && *end == ' ') end++;
  if (end > at && isdigit((unsigned char)*at)) {
    out->how = CHANGE_TIME;
    for (u32 k = 0; k < COUNT_OF(unit); k++) {
      const size_t n = strlen(unit[k].name);
      if (strncmp(end, unit[k].name, n) || !ends_word(end[n]) || x * unit[k].ps > 1e18) continue;
      out->ps = (i64)llround(x * unit[k].ps);
      r->p = end + n;
      return true;
    }
    if (x == 0 && ends_word(*end)) {
      r->p = end;
      return true;
    }
    diag(r->c, E_USAGE, here(r, at), "'%s' is not a time", at);
    diag_hint(r->c, "a time has a unit, such as 3ms: ps, ns, us, ms or s");
    return false;
  }
  near_name near = near_to(at, word_length(at));
  near_try(&near, "ideal"), near_try(&near, "median");
  if (*at)
    diag(r->c, E_USAGE, here(r, at), "'%s' is no value", at);
  else
    diag(r->c, E_USAGE, here(r, at), "the text ends where a value is expected");
  if (near.name && *at)
    diag_hint(r->c, "did you mean %s?", near.name);
  else
    diag_hint(r->c, "values are ideal, median, 0, or a time such as 3ms");
  return false;
}

static bool factor(parser *r, job_change *out) {
  char *end;
  const double x = strtod(r->p, &end);
  if (end == r->p || !isdigit((unsigned char)*r->p) || !isfinite(x) || x > 1e6 || !ends_word(*end)) {
    diag(r->c, E_USAGE, here(r, r->p),
         *r->p ? "'%s' is no factor" : "the text ends where a factor is expected%.0s", r->p);
    diag_hint(r->c, "a factor is a number from 0 on: x 0.5 is half the time");
    return false;
  }
  out->how = CHANGE_SCALE, out->scale = x;
  r->p = end;
  return true;
}

static bool parse(ctx *c, arena *a, const char *text, job_change *out) {
  parser r = parser_of(c, a, "--set", text);
  *out = (job_change){.text = r.text, .at = here(&r, r.text)};
  if (!terms(&r, out)) return false;
  if (!*r.p) {
    diag(c, E_USAGE, here(&r, r.p), "what it changes to is missing");
    diag_hint(c, "end with '= ideal', '= median', '= 0', '= 3ms' or 'x 0.5'");
    return false;
  }
  const bool is_value = *r.p++ == '=';
  space(&r);
  if (!(is_value ? value(&r, out) : factor(&r, out))) return false;
  space(&r);
  if (!*r.p) return true;
  diag(c, E_USAGE, here(&r, r.p), "'%s' after the change", r.p);
  diag_hint(c, "say --set once for every change");
  return false;
}

bool changes_parse(ctx *c, arena *a, u32 n, const char *const *text, job_change *out) {
  bool ok = true;
  for (u32 k = 0; k < n; k++) ok &= parse(c, a, text[k], &out[k]);
  return ok;
}

bool change_name_matches(const char *pattern, const char *name) {
  const char *star = NULL, *from = NULL;
  while (*name) {
    if (*pattern == '*') {
      star = pattern++, from = name;
    } else if (*pattern == *name) {
      pattern++, name++;
    } else if (star) {
      pattern = star + 1, name = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return !*pattern;
}
