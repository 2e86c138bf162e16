// names.c - names of kernels in a column of text, which are too long for it: cut so that two names never print the same.
//
// Idea: a name is cut at its end, as what is done stands at its beginning. Names that become alike so show where they
// differ instead: mangled templates share hundreds of characters and differ in one argument. Should even that be alike,
// they are shown whole.
#include "report/internal.h"

static bool inside(const char *s, size_t at) {
  return ((unsigned char)s[at] & 0xC0) == 0x80;
} // of a character
static size_t whole(const char *s, size_t at) {
  while (at && inside(s, at)) at--;
  return at;
}

static size_t alike(const char *x, const char *y) {
  size_t n = 0;
  while (x[n] && x[n] == y[n]) n++;
  return n;
}

static const char *cut_end(arena *a, const char *s, u32 most) {
  if (strlen(s) <= most) return s;
  return arena_printf(a, "%.*s..", (int)whole(s, most - 2), s);
}

// The beginning, then from the argument in which byte `at` is.
static const char *cut_middle(arena *a, const char *s, size_t at, u32 most) {
  const size_t head = whole(s, most / 2), len = strlen(s);
  size_t from = at, room = most - head - 4;
  while (from > head && at - from < room / 2 && !strchr("<, (", s[from - 1])) from--;
  if (len - from <= room + 2) from = len - room - 2 > at ? at : len - room - 2;
  from = whole(s, MAX(from, head));
  const size_t to = len - from <= room + 2 ? len : whole(s, from + room);
  return arena_printf(a, "%.*s..%.*s%s", (int)head, s, (int)(to - from), s + from, to < len ? ".." : "");
}

void names_cut(arena *a, u32 n, const char *const *name, u32 most, const char **out) {
  const char **short_name = NEWN(a, const char *, n + 1);
  assert(most >= 16); // room for a beginning, a difference and dots
  for (u32 k = 0; k < n; k++) short_name[k] = out[k] = cut_end(a, name[k], most);
  for (u32 k = 0; k < n; k++) { // where it differs from the name that is most like it
    size_t at = 0;
    for (u32 i = 0; i < n; i++)
      if (!strcmp(short_name[i], short_name[k]) && strcmp(name[i], name[k]))
        at = MAX(at, alike(name[i], name[k]));
    if (at && strlen(name[k]) > most) out[k] = cut_middle(a, name[k], at, most);
  }
  memcpy(short_name, out, n * sizeof *out);
  for (u32 k = 0; k < n; k++)
    for (u32 i = 0; i < n; i++)
      if (!strcmp(short_name[i], short_name[k]) && strcmp(name[i], name[k])) out[k] = name[k];
}
