// names.c - names of kernels in a column of text, which are too long for it: cut so that two names never print the same.
//
// Idea: a name is cut at its end, as what is done stands at its beginning. Names that become alike so show where they
// differ instead: mangled templates share hundreds of characters and differ in one argument. Of several such names the last
// difference may look alike too: they show the first. Should even that be alike, they are numbered; a name of a thousand
// characters would push the figures beside it out of sight.
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

// The beginning, then from byte `at`, or from the argument in which it is.
static const char *cut_middle(arena *a, const char *s, size_t at, bool argument, u32 most) {
  const size_t head = whole(s, most / 2), len = strlen(s);
  size_t from = at, room = most - head - 4;
  while (argument && from > head && at - from < room / 2 && !strchr("<, (", s[from - 1])) from--;
  if (len - from <= room + 2) from = len - room - 2 > at ? at : len - room - 2;
  from = whole(s, MAX(from, head));
  const size_t to = len - from <= room + 2 ? len : whole(s, from + room);
  return arena_printf(a, "%.*s..%.*s%s", (int)head, s, (int)(to - from), s + from, to < len ? ".." : "");
}

// Those that still print as another does show where they differ from it, last or first: from the first on there may be room
// for both.
static void tell_apart(arena *a, u32 n, const char *const *name, u32 most, bool first, const char **out) {
  const char **was = NEWN(a, const char *, n + 1);
  memcpy(was, out, n * sizeof *out);
  for (u32 k = 0; k < n; k++) {
    size_t at = 0;
    for (u32 i = 0; i < n; i++) {
      if (strcmp(was[i], was[k]) || !strcmp(name[i], name[k])) continue;
      const size_t to = alike(name[i], name[k]);
      at = !at ? to : first ? MIN(at, to) : MAX(at, to);
    }
    if (at && strlen(name[k]) > most) out[k] = cut_middle(a, name[k], at, !first, most);
  }
}

static u32 first_of(const char *const *name, u32 k) {
  u32 i = 0;
  while (strcmp(name[i], name[k])) i++;
  return i;
}

// A name that is there twice has one number.
static void number(arena *a, u32 n, const char *const *name, u32 most, const char **out) {
  enum { ROOM = 8 }; // for dots and the number
  const char **was = NEWN(a, const char *, n + 1);
  memcpy(was, out, n * sizeof *out);
  for (u32 k = 0; k < n; k++) {
    const u32 own = first_of(name, k);
    u32 before = 0, others = 0;
    for (u32 i = 0; i < n; i++) {
      if (strcmp(was[i], was[k])) continue;
      const u32 first = first_of(name, i);
      others += first != own, before += first == i && first < own;
    }
    if (others) out[k] = arena_printf(a, "%.*s..#%u", (int)whole(was[k], most - ROOM), was[k], before + 1);
  }
}

void names_cut(arena *a, u32 n, const char *const *name, u32 most, const char **out) {
  assert(most >= 16); // room for a beginning, a difference and dots
  for (u32 k = 0; k < n; k++) out[k] = cut_end(a, name[k], most);
  tell_apart(a, n, name, most, false, out);
  tell_apart(a, n, name, most, true, out);
  number(a, n, name, most, out);
}
