// meant.c - did you mean: the machine or the kind of device that a name was most likely meant to be.
//
// Idea: names differ in case, in `_` for `-`, in what is left out at their end (dgx-a100), and in the memory
// that a device is sold with (a100-80gb is a100, which has 80 GiB). A name that has a device's in it
// (dgx-v100) is never taken for one with another device (dgx-h100), however few letters they are apart.
#include "machine/draft.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static char *plain(arena *a, const char *name) {
  char *s = arena_strdup(a, name);
  for (char *p = s; *p; p++) *p = *p == '_' ? '-' : (char)tolower((u8)*p);
  return s;
}

// The next word of a name whose words have '-' between them; NULL at its end.
static const char *next_word(const char **at, size_t *n) {
  const char *s = *at + (**at == '-');
  *n = strcspn(s, "-");
  *at = s + *n;
  return *n ? s : NULL;
}

static bool has_word(const char *name, const char *word, size_t len) {
  size_t n;
  for (const char *s; (s = next_word(&name, &n));)
    if (n == len && !memcmp(s, word, n)) return true;
  return false;
}

// ---- devices ----------------------------------------------------------------------------------------------
// Does the kind have so many GB or GiB?
static bool has_memory(draft *d, const char *kind, double n) {
  draft sub = draft_new(d->c, d->a);
  const int i = draft_kind(&sub, (loc){0}, kind);
  if (i < 0) return false;
  const double bytes = (double)sub.kinds.v[i].k.mem_bytes;
  return fabs(bytes / 1e9 - n) < 0.02 * n || fabs(bytes / 0x1p30 - n) < 0.02 * n;
}

// Of the kinds that a name's first word is, that with the memory that another word says; if none says any,
// the first.
static const char *sold_as(draft *d, const ynode *lib, const char *kind, size_t len, const char *name) {
  const char *first = NULL;
  double memory = 0;
  size_t n;
  for (const char *s; (s = next_word(&name, &n));) {
    char *end = (char *)s;
    const double x = isdigit((u8)*s) ? strtod(s, &end) : 0;
    if (x > 0 && end > s && (end == s + n || !strncmp(end, "g", 1))) memory = x;
  }
  for (u32 k = 0; k < lib->n; k++) {
    const char *other = lib->key[k]->str;
    if (strncmp(other, kind, len) || (other[len] && other[len] != '-')) continue;
    if (memory > 0 && has_memory(d, other, memory)) return other;
    if (!first) first = other;
  }
  return first;
}

// The device whose name is a plain name or begins with it, or stands in it; NULL: none.
static const char *device_in(draft *d, const char *name) {
  const ynode *lib = draft_library(d);
  const char *at = name;
  size_t n;
  for (u32 k = 0; lib && k < lib->n; k++)
    if (!strcmp(lib->key[k]->str, name)) return lib->key[k]->str;
  for (u32 k = 0; lib && k < lib->n && strlen(name) > 2; k++) // mi300, a100-80
    if (!strncmp(lib->key[k]->str, name, strlen(name))) return lib->key[k]->str;
  for (const char *s; lib && (s = next_word(&at, &n));)
    for (u32 k = 0; k < lib->n; k++)
      if (strlen(lib->key[k]->str) == n && !memcmp(lib->key[k]->str, s, n))
        return sold_as(d, lib, s, n, name);
  return NULL;
}

const char *meant_device(draft *d, const char *name) {
  const char *word = plain(d->a, name), *in = device_in(d, word);
  const ynode *lib = in ? NULL : draft_library(d);
  near_name near = near_to(word, strlen(word));
  if (in) return in;
  for (u32 i = 0; i < d->kinds.n; i++) near_try(&near, sym_str(d->c, d->kinds.v[i].k.name));
  for (u32 k = 0; lib && k < lib->n; k++) near_try(&near, lib->key[k]->str);
  return near.name;
}

// ---- machines ---------------------------------------------------------------------------------------------
// Presets that begin with the name; where there are none, those whose names have the device. Their number.
static u32 presets_like(draft *d, const char *name, const char *device, const char **out) {
  const char *const *all;
  const u32 n = machine_presets(d->a, &all);
  u32 found = 0;
  for (u32 i = 0; i < n; i++)
    if (*name && !strncmp(all[i], name, strlen(name)) && strchr("-", all[i][strlen(name)]))
      out[found++] = all[i];
  const bool none = !found;
  for (u32 i = 0; i < n && none && device; i++)
    if (has_word(all[i], device, strlen(device))) out[found++] = all[i];
  return found;
}

// "2x8xh100" is 2 nodes of 8, "8xh100" one node of 8. What is left of the name.
static const char *counts(const char *name, u32 *nodes, u32 *devices) {
  for (size_t n; (n = strspn(name, "0123456789")) && n < 6 && name[n] == 'x'; name += n + 1) {
    if (*devices) *nodes = *devices;
    *devices = (u32)strtoul(name, NULL, 10);
  }
  return name;
}

bool meant_machine(draft *d, const char *name, u32 times) {
  u32 nodes = 1, devices = times > 1 ? times : 0;
  const char *word = counts(plain(d->a, name), &nodes, &devices), *device = device_in(d, word);
  const char *const *all, **like;
  const u32 n = machine_presets(d->a, &all);
  like = NEWN(d->a, const char *, n + 1);
  u32 found = presets_like(d, word, device, like);
  near_name near = near_to(word, strlen(word));
  for (u32 i = 0; i < n && !device && !found; i++) near_try(&near, all[i]);
  if (near.name) like[found++] = near.name;
  strbuf b = {.a = d->a};
  for (u32 i = 0; i < found; i++) sb_fmt(&b, "%s%s", !i ? "" : i + 1 == found ? " or " : ", ", like[i]);
  const bool alone = device && !strcmp(word, device);
  if (device && (alone || devices || !found || strncmp(like[0], word, strlen(word))))
    diag_hint(d->c, "%s is a kind of device; a machine of them is '%ux%u %s'%s%s", device, nodes,
              devices ? devices : 8, device, found ? ", or the preset " : "", found ? sb_str(&b) : "");
  else if (found)
    diag_hint(d->c, "did you mean %s? `heddle machines` lists the presets", sb_str(&b));
  return device || found;
}
