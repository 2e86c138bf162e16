// rank_name.c - the rank that the name of a file says. Not the one that its contents say.
//
// Idea: a table of the names that recorders give, tried in its order. No number of more than six digits is a rank: it is
// a time or a process.
#include "trace/trace.h"
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

enum { DIGITS_MOST = 6 };
typedef enum { GOES_ON, FOUND, HAS_NONE } verdict;
typedef struct {
  const char *path, *name; // name: its last part
  u32 rank;                // FOUND
} named;

static verdict found(named *x, const char *digits) {
  x->rank = (u32)strtoul(digits, NULL, 10);
  return FOUND;
}

// No number of a host's name is a rank.
static verdict of_host(named *x) {
  const char *s = x->name;
  const bool ranked = strstr(s, "rank") || strstr(s, "Rank");
  return strstr(s, ".pt.trace.json") || (strstr(s, ".trace.json") && !ranked) ? HAS_NONE : GOES_ON;
}

static verdict before_et(named *x) {
  const char *s = x->name;
  const size_t n = strlen(s);
  if (n <= 3 || strcmp(s + n - 3, ".et")) return GOES_ON;
  const char *end = s + n - 3, *p = end;
  while (p > s && isdigit((unsigned char)p[-1])) p--;
  return p > s && p[-1] == '.' && p < end && end - p <= DIGITS_MOST ? found(x, p) : GOES_ON;
}

static bool is_rank(const char *s, const char *p, u32 back) {
  return p - s >= back && !strncasecmp(p - back, "rank", 4);
}

// A number, or NULL: the next one from p on that does not go on with letters, digits or a dot before it, "rank" excepted.
static const char *next_number(const char *s, const char *p, const char **end) {
  for (; *p; p++) {
    if (!isdigit((unsigned char)*p)) continue;
    if (p > s && (isalnum((unsigned char)p[-1]) || p[-1] == '.') && !is_rank(s, p, 4)) continue;
    for (*end = p; isdigit((unsigned char)**end);) ++*end;
    return p;
  }
  return NULL;
}

static verdict after_rank(named *x) {
  const char *s = x->name, *end = s;
  for (const char *p = s; (p = next_number(s, p, &end)); p = end)
    if (end - p <= DIGITS_MOST && (is_rank(s, p, 4) || is_rank(s, p, 5))) return found(x, p);
  return GOES_ON;
}

static verdict last_alone(named *x) {
  const char *s = x->name, *end = s, *last = NULL;
  for (const char *p = s; (p = next_number(s, p, &end)); p = end)
    if (end - p <= DIGITS_MOST && !isalnum((unsigned char)*end)) last = p;
  return last ? found(x, last) : GOES_ON;
}

static verdict at_end(named *x) {
  const char *s = x->name, *end = s + strcspn(s, "."), *p = end;
  while (p > s && isdigit((unsigned char)p[-1])) p--;
  return p < end && end - p <= DIGITS_MOST ? found(x, p) : GOES_ON;
}

static verdict of_folder(named *x) {
  if (x->name == x->path) return GOES_ON;
  const char *end = x->name - 1, *p = end;
  while (p > x->path && isdigit((unsigned char)p[-1])) p--;
  const bool whole = p < end && end - p <= DIGITS_MOST && (p == x->path || p[-1] == '/');
  return whole ? found(x, p) : GOES_ON;
}

static const struct {
  const char *example;
  rank_names of; // which recorders
  verdict (*says)(named *x);
} patterns[] = {
    {"host_4711.1690000000.pt.trace.json", RANK_ANY, of_host},
    {"model.3.et", RANK_ANY, before_et},
    {"rank3.json, rank-3_steps5-8.json", RANK_ANY, after_rank},
    {"trace_3.json.gz", RANK_ANY, last_alone},
    {"dump3", RANK_DUMP, at_end},
    {"3/comm.json", RANK_FOLDER, of_folder},
};

u32 trace_rank_in_name(const char *path, rank_names of) {
  const char *slash = strrchr(path, '/');
  named x = {.path = path, .name = slash ? slash + 1 : path, .rank = TRACE_NONE};
  verdict v = GOES_ON;
  for (u32 k = 0; k < COUNT_OF(patterns) && v == GOES_ON; k++)
    if (patterns[k].of == RANK_ANY || patterns[k].of == of) v = patterns[k].says(&x);
  return x.rank;
}
