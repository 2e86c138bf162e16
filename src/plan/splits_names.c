// splits_names.c - what rules call operators: the node that all calls of a function have in common, and the name that a pattern
// without matches was most likely meant to be.
#include "plan/internal.h"
#include "plan/splits_rules.h"
#include <ctype.h>

// ---- the node of all calls -----------------------------------------------------------------------------------
static size_t digits(const char *s) {
  size_t n = 0;
  while (isdigit((u8)s[n])) n++;
  return n;
}

// `common` with * for a number in which `name` differs. NULL: they differ in something else.
static const char *numbers_apart(arena *a, const char *common, const char *name) {
  strbuf b = {.a = a};
  while (*common || *name) {
    const size_t n = *common == '*' ? 1 : digits(common), m = digits(name);
    if (!n != !m || (!n && *common != *name)) return NULL;
    if (n && (n != m || strncmp(common, name, n))) {
      sb_char(&b, '*');
    } else {
      sb_fmt(&b, "%.*s", (int)MAX(n, 1), common);
    }
    common += MAX(n, 1), name += MAX(m, 1);
  }
  return sb_str(&b);
}

// What both begin and end with, and * between.
static const char *ends_alone(arena *a, const char *x, const char *y) {
  size_t from = 0, n = strlen(x), m = strlen(y);
  while (x[from] && x[from] == y[from]) from++;
  while (n > from && m > from && x[n - 1] == y[m - 1]) n--, m--;
  return arena_printf(a, "%.*s*%s", (int)from, x, x + n);
}

const char *splits_node(arena *a, const prog *p, func f, u32 index) {
  const loc_info *at = loc_get(p->c, func_get(p, f)->body.v[index].where);
  const char *all = at && at->node.i ? sym_str(p->c, at->node) : NULL;
  for (; all && at->alike.i;) {
    at = loc_get(p->c, at->alike);
    if (!at->node.i) return NULL;
    const char *name = sym_str(p->c, at->node), *numbers = numbers_apart(a, all, name);
    all = numbers ? numbers : ends_alone(a, all, name);
  }
  return all;
}

// ---- which was meant -----------------------------------------------------------------------------------------
enum { PART_MOST = 64 };

// The next part of a name, which `ends` divide; false: there is none.
static bool next_part(const char **s, const char *ends, char part[PART_MOST]) {
  *s += strspn(*s, ends);
  const size_t n = strcspn(*s, ends);
  snprintf(part, PART_MOST, "%.*s", (int)n, *s);
  *s += n;
  return n > 0;
}

// Letters by which a part of a pattern differs from one of a name, whose * stands for numbers; UINT32_MAX: more than a third.
static u32 part_apart(const char *part, const char *of_name) {
  const size_t n = strlen(part);
  const bool number = strpbrk(part, "0123456789?") != NULL;
  near_name near = number ? near_to_pattern(of_name, strlen(of_name)) : near_to(of_name, strlen(of_name));
  near.limit = 1 + (u32)n / 3;
  if (number && part[digits(part)] && of_name[0] == '*') return UINT32_MAX;
  near_try(&near, part);
  return near.name ? near.limit : UINT32_MAX;
}

// Letters by which the parts of the pattern differ from parts of the name that come in the same order; UINT32_MAX: they are not all there.
static u32 parts_apart(const char *pattern, const char *function, const char *name) {
  u32 sum = 0;
  char part[PART_MOST], of_name[PART_MOST];
  const char *rest = pattern;
  if (function && next_part(&rest, "/.:*", part) && *rest && !strcmp(part, function)) pattern = rest;
  while (next_part(&pattern, "/.:*", part)) {
    u32 apart = UINT32_MAX;
    while (apart == UINT32_MAX && next_part(&name, "/.:", of_name)) apart = part_apart(part, of_name);
    if (apart == UINT32_MAX) return UINT32_MAX;
    sum += apart;
  }
  return sum;
}

splits_meant splits_meant_by(const char *pattern) {
  return (splits_meant){.near = near_to_pattern(pattern, strlen(pattern)), .apart = UINT32_MAX};
}

bool splits_offer(void *arg, const char *name) {
  splits_meant *x = arg;
  near_try(&x->near, name);
  const u32 apart = parts_apart(x->near.word, x->function, name);
  if (apart < x->apart) x->apart = apart, x->name = name;
  return false;
}

const char *splits_nearest(const splits_meant *x) { return x->name ? x->name : x->near.name; }
