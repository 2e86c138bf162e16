// load.c - from what a user types after --machine to a machine: presets, files, changes, machines in one
// line.
//
// Idea: words. The first says what the machine is; a word with '=' changes the nodes before it; in the
// one-line form '+' begins the next term, a kind of node. Every term has kinds of devices of its own until
// the end, since keys may tell them apart. Changes go through the same readers as the keys of a machine file.
#include "machine/draft.h"
#include <dirent.h>
#include <stdlib.h>

// ---- presets -----------------------------------------------------------------------------------------

#define PRESET(id, file) extern const char preset_##id[], preset_##id##_end[];
#include "machine/presets.def"
#undef PRESET

static const struct {
  const char *name, *text, *end;
} carried[] = {
#define PRESET(id, file) {file, preset_##id, preset_##id##_end},
#include "machine/presets.def"
#undef PRESET
};

#ifndef HEDDLE_PREFIX
#define HEDDLE_PREFIX "/usr/local"
#endif
static const char installed[] = HEDDLE_PREFIX "/share/heddle/machines";
typedef VEC(const char *) preset_names;

static const char *read_file(ctx *c, arena *a, const char *path, size_t *n) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  const char *text = arena_strndup(a, (const char *)f.data, f.size);
  *n = f.size;
  file_unmap(&f);
  return text;
}

static const char *in_folder(ctx *c, arena *a, const char *folder, size_t len, const char *name, size_t *n,
                             sym *from) {
  const char *path = arena_printf(a, "%.*s/%s.yaml", (int)len, folder, name);
  if (!len || !file_exists(path)) return NULL;
  *from = sym_of(c, path);
  return read_file(c, a, path, n);
}

const char *preset_text(ctx *c, arena *a, const char *name, size_t *n, sym *from) {
  const char *text = in_folder(c, a, "machines", 8, name, n, from), *path = getenv("HEDDLE_MACHINES");
  for (size_t len; !text && path && *path; path += len + (path[len] == ':')) {
    len = strcspn(path, ":");
    text = in_folder(c, a, path, len, name, n, from);
  }
  if (!text) text = in_folder(c, a, installed, sizeof installed - 1, name, n, from);
  for (u32 i = 0; !text && i < COUNT_OF(carried); i++)
    if (!strcmp(carried[i].name, name)) {
      *from = sym_fmt(c, "%s.yaml", name);
      *n = (size_t)(carried[i].end - carried[i].text);
      text = carried[i].text;
    }
  return text;
}

// NAME.yaml of the folder, but the kinds of devices, and what no word can say.
static void presets_in(arena *a, const char *folder, size_t len, preset_names *out) {
  DIR *dir = len ? opendir(arena_strndup(a, folder, len)) : NULL;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    const size_t n = strlen(e->d_name);
    if (n <= 5 || strcmp(e->d_name + n - 5, ".yaml") || *e->d_name == '.' || strpbrk(e->d_name, " \t\n*+="))
      continue;
    const char *name = arena_strndup(a, e->d_name, n - 5);
    if (strcmp(name, "devices")) *vec_push(a, out) = name;
  }
  if (dir) closedir(dir);
}

static int by_name(const void *x, const void *y) {
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

u32 machine_presets(arena *a, const char *const **names) {
  preset_names v = {0};
  const char *path = getenv("HEDDLE_MACHINES");
  presets_in(a, "machines", 8, &v);
  for (size_t len; path && *path; path += len + (path[len] == ':')) {
    len = strcspn(path, ":");
    presets_in(a, path, len, &v);
  }
  presets_in(a, installed, sizeof installed - 1, &v);
  for (u32 i = 0; i < COUNT_OF(carried); i++)
    if (strcmp(carried[i].name, "devices")) *vec_push(a, &v) = carried[i].name;
  qsort(v.v, v.n, sizeof *v.v, by_name);
  u32 n = 0;
  for (u32 i = 0; i < v.n; i++)
    if (!n || strcmp(v.v[n - 1], v.v[i])) v.v[n++] = v.v[i];
  *names = v.v;
  return n;
}

// ---- words -------------------------------------------------------------------------------------------

// A kind of device that words may change, and which of its figures they have.
typedef struct {
  u16 kind;
  u32 term; // the first of its nodes
  bool memory, usable;
} own_kind;

typedef struct {
  draft *d;
  const char *spec; // lives as long as the session: locations point into it
  u32 first;        // changes apply to the nodes from here on
  VEC(own_kind) own;
  bool several; // the text says how many nodes there are
  bool in_line; // and what they are
} words;

typedef enum {
  SET_USABLE,
  SET_MEMORY,
  SET_LINK,
  SET_SHAPE,
  SET_HOST,
  SET_HOSTMEM,
  SET_HOSTBW,
  SET_NICS,
  SET_STEP,
  SET_OVERSUB,
  SET_LEAF,
  SETTINGS
} setting;
static const struct {
  const char *key;
  setting what;
} settings[] = {{"usable", SET_USABLE},
                {"memory", SET_MEMORY},
                {"link", SET_LINK},
                {"nvlink", SET_LINK},
                {"xgmi", SET_LINK},
                {"switch", SET_SHAPE},
                {"mesh", SET_SHAPE},
                {"ring", SET_SHAPE},
                {"pairs", SET_SHAPE},
                {"host", SET_HOST},
                {"pcie", SET_HOST},
                {"hostmem", SET_HOSTMEM},
                {"hostbw", SET_HOSTBW},
                {"nics", SET_NICS},
                {"ib", SET_NICS},
                {"eth", SET_NICS},
                {"roce", SET_NICS},
                {"step", SET_STEP},
                {"oversubscription", SET_OVERSUB},
                {"leaf", SET_LEAF}};

static loc word_loc(const words *w, const char *at) {
  return loc_text(w->d->c, sym_of(w->d->c, "--machine"), 1, (u32)(at - w->spec) + 1, w->spec);
}

static bool set_memory(draft *d, loc at, const char *value, device_kind *k) {
  double x, part = (double)k->usable_bytes / (double)k->mem_bytes;
  if (!unit_parse(d->c, at, "memory", value, UNIT_BYTES, &x)) return d->ok = false;
  if (x < 1 || x > 0x1p61) return draft_fail(d, at, "memory: %s is not a plausible amount", value);
  k->mem_bytes = (i64)x;
  k->usable_bytes = (i64)(x * part);
  return true;
}

static bool set_host_memory(draft *d, loc at, const char *value, node_kind *nk) {
  double x;
  if (!unit_parse(d->c, at, "hostmem", value, UNIT_BYTES, &x)) return d->ok = false;
  if (x < 1 || x > 0x1p61) return draft_fail(d, at, "hostmem: %s is not a plausible amount", value);
  nk->host_bytes = (i64)x;
  return true;
}

static bool set_host_bandwidth(draft *d, loc at, const char *value, node_kind *nk) {
  double x;
  if (!unit_parse(d->c, at, "hostbw", value, UNIT_BYTES_PER_S, &x)) return d->ok = false;
  if (x < 1 || x > 1e18) return draft_fail(d, at, "hostbw: %s is not a plausible bandwidth", value);
  nk->host_mem_bw = x, nk->host_mem_eff = 1; // what a line says is what is reached
  return true;
}

static bool set_fabric(draft *d, loc at, setting what, const char *value) {
  double x = 0;
  if (what == SET_LEAF) return draft_count(d, at, "leaf", value, MACHINE_RANKS_MAX, &d->fabric.leaf);
  if (!unit_parse(d->c, at, what == SET_STEP ? "step" : "oversubscription", value,
                  what == SET_STEP ? UNIT_PS : UNIT_NUMBER, &x))
    return d->ok = false;
  if (what == SET_OVERSUB && (x < 1 || x > 1000))
    return draft_fail(d, at, "oversubscription: %s is not between 1 and 1000", value);
  if (x > 1e15) return draft_fail(d, at, "step: %s is implausibly long", value);
  d->fabric.spread = (spread_table){0};
  d->fabric.at = at;
  if (what == SET_STEP)
    d->fabric.step_ps = (i64)x;
  else
    d->fabric.oversub = x;
  return true;
}

// Of the devices of earlier terms those that no word has given this figure. What of its memory is usable
// follows the memory, so a kind that was told the former keeps both.
static bool change_devices(words *w, setting what, const char *value, loc value_at) {
  draft *d = w->d;
  for (u32 i = 0; i < w->own.n; i++) {
    own_kind *x = &w->own.v[i];
    device_kind *k = &d->kinds.v[x->kind].k;
    if (x->term < w->first && (x->usable || (what == SET_MEMORY && x->memory))) continue;
    if (!(what == SET_USABLE ? draft_usable(d, value_at, value, k) : set_memory(d, value_at, value, k)))
      return false;
    *(what == SET_USABLE ? &x->usable : &x->memory) = true;
  }
  return true;
}

// said: keys of this term. The fabric is the same for every node; links are of the nodes of the term, memory and NICs also of those of
// earlier terms that have not said them: without NICs there is no way to the others.
static bool change(words *w, const char **said, const char *key, const char *value, loc at, loc value_at) {
  draft *d = w->d;
  u32 s = 0;
  while (s < COUNT_OF(settings) && strcmp(settings[s].key, key)) s++;
  if (s == COUNT_OF(settings)) {
    strbuf known = {.a = d->a};
    for (s = 0; s < COUNT_OF(settings); s++) sb_fmt(&known, " %s", settings[s].key);
    draft_fail(d, at, "unknown key '%s'", key);
    diag_hint(d->c, "known keys:%s", sb_str(&known));
    return false;
  }
  const setting what = settings[s].what;
  if (said[what])
    return strcmp(said[what], key) ? draft_fail(d, at, "'%s' sets what '%s' has set", key, said[what])
                                   : draft_fail(d, at, "'%s' is given twice", key);
  said[what] = settings[s].key;
  if (what >= SET_STEP) return set_fabric(d, value_at, what, value);
  if (what <= SET_MEMORY) return change_devices(w, what, value, value_at);
  for (u32 i = 0; i < d->nodes.n; i++) {
    node_kind *nk = &d->nodes.v[i];
    if (i < w->first && (what != SET_NICS || nk->nics)) continue;
    if (what == SET_SHAPE) draft_link(d, at, "link", key, &nk->inside);
    if (!(what == SET_NICS      ? draft_nics(d, value_at, value, nk)
          : what == SET_HOST    ? draft_link(d, value_at, "host", value, &nk->host)
          : what == SET_HOSTMEM ? set_host_memory(d, value_at, value, nk)
          : what == SET_HOSTBW  ? set_host_bandwidth(d, value_at, value, nk)
                                : draft_link(d, value_at, "link", value, &nk->inside)))
      return false;
  }
  return true;
}

// The next word, in the session's memory; NULL at the end.
static const char *word(const words *w, const char **p, const char **at) {
  *at = *p + strspn(*p, " \t\n");
  size_t n = strcspn(*at, " \t\n");
  *p = *at + n;
  return n ? arena_strndup(w->d->a, *at, n) : NULL;
}

static void changes(words *w, const char **p, const char *until) {
  const char *at, *before = *p, *said[SETTINGS] = {0}; // by setting: the key that has said it
  for (char *s; (s = (char *)word(w, p, &at)); before = *p) {
    char *eq = strchr(s, '=');
    if (until && !strcmp(s, until)) {
      *p = before;
      return;
    }
    if (!eq) {
      draft_fail(w->d, word_loc(w, at), "'%s' is not KEY=VALUE", s);
      if (!strcmp(s, "+"))
        diag_hint(w->d->c,
                  "a preset or a file is a whole machine and is not joined with others; nodes are joined in "
                  "one line: '1x8 v100 ib=50Gb/s + 1x8 a100 ib=50Gb/s'");
      return;
    }
    *eq = 0;
    if (!change(w, said, s, eq + 1, word_loc(w, at), word_loc(w, at + (eq + 1 - s)))) return;
  }
}

// ---- machines ----------------------------------------------------------------------------------------

// Of several nodes some have no NICs: a search would leave nodes out without a word.
static void warn_unlinked(const words *w) {
  const draft *d = w->d;
  u64 nodes = 0, without = 0;
  u32 first = 0;
  for (u32 i = d->nodes.n; i-- > 0;) {
    nodes += d->nodes.v[i].count;
    if (!d->nodes.v[i].nics) without += d->nodes.v[i].count, first = i;
  }
  if (!w->several || nodes < 2 || !without) return;
  const size_t blank = strspn(w->spec, " \t\n");
  diag(d->c, W_UNLINKED, w->in_line ? d->nodes.v[first].at : word_loc(w, w->spec + blank),
       "%llu of %llu nodes have no NICs: no rate is assumed, and nothing is sent from one node to another",
       (unsigned long long)without, (unsigned long long)nodes);
  diag_hint(d->c, "'%s ib=100Gb/s', with the rate of your network", w->spec + blank);
}

// The term's nodes get copies of their kinds of devices, which words may change. False and a diagnostic: there
// are too many.
static bool own_kinds(words *w, loc at, node_kind *nk) {
  draft *d = w->d;
  const u32 before = w->own.n;
  u16 *dev = arena_dup(d->a, nk->dev, sizeof *dev * nk->ndevs);
  for (u32 j = 0; j < nk->ndevs; j++) {
    u32 i = before;
    while (i < w->own.n && d->kinds.v[w->own.v[i].kind].k.name.i != d->kinds.v[dev[j]].k.name.i) i++;
    if (d->kinds.n == 0x7fff) return draft_fail(d, at, "machine: more than %d kinds of devices", 0x7fff);
    if (i == w->own.n) {
      const kind_draft copy = d->kinds.v[dev[j]];
      *vec_push(d->a, &w->own) = (own_kind){.kind = (u16)d->kinds.n, .term = w->first};
      *vec_push(d->a, &d->kinds) = copy;
    }
    dev[j] = w->own.v[i].kind;
  }
  nk->dev = dev;
  return true;
}

// Of the terms' kinds those that are still alike are one. Others of the same name are numbered: a100, a100.2.
static void join_kinds(words *w) {
  draft *d = w->d;
  u16 *is = NEWN(d->a, u16, d->kinds.n + 1);
  sym *name = NEWN(d->a, sym, d->kinds.n + 1); // as it was said
  for (u32 i = 0, n; i < w->own.n; i++) {
    const u16 at = is[w->own.v[i].kind] = w->own.v[i].kind;
    device_kind *k = &d->kinds.v[at].k;
    name[at] = k->name;
    n = 1;
    for (u32 j = 0; j < i && is[at] == at; j++) {
      const u16 other = w->own.v[j].kind;
      const device_kind *o = &d->kinds.v[other].k;
      if (is[other] != other || name[other].i != name[at].i) continue;
      if (o->mem_bytes == k->mem_bytes && o->usable_bytes == k->usable_bytes)
        is[at] = other;
      else
        n++;
    }
    if (is[at] == at && n > 1) k->name = sym_fmt(d->c, "%s.%u", sym_str(d->c, name[at]), n);
  }
  for (u32 i = 0; i < d->nodes.n; i++) {
    u16 *dev = arena_dup(d->a, d->nodes.v[i].dev, sizeof *dev * d->nodes.v[i].ndevs);
    for (u32 j = 0; j < d->nodes.v[i].ndevs; j++) dev[j] = is[dev[j]];
    d->nodes.v[i].dev = dev;
  }
}

// "2x8 h100 KEY=VALUE ... + 4x4 a40 ...": the first word of a segment is nodes x devices, or devices of one
// node.
static void read_line(words *w, const char *p) {
  draft *d = w->d;
  w->several = w->in_line = true;
  for (const char *at, *s = word(w, &p, &at);; s = word(w, &p, &at)) {
    node_kind nk = {.count = 1, .host_shared = 1, .host_mem_eff = 1, .at = word_loc(w, s ? at : w->spec)};
    const char *x = s ? strchr(s, 'x') : NULL, *kind_at, *kind = word(w, &p, &kind_at);
    if (!kind || strchr(kind, '=')) {
      draft_fail(d, word_loc(w, s ? at : w->spec),
                 "a machine in one line is NODESxDEVICES KIND, as in '2x8 h100'");
      return;
    }
    const char *plus = strchr(kind, '+');
    if (plus && plus[1] >= '0' && plus[1] <= '9' && strchr(plus, 'x')) {
      draft_fail(d, word_loc(w, kind_at + (plus - kind)), "spaces are missing around '+' between nodes");
      diag_hint(d->c, "'2x8 h100 + 4x4 a40'; without spaces, devices of one node: '1x8 h100+a40'");
      return;
    }
    if (x && !draft_count(d, word_loc(w, at), "nodes", arena_strndup(d->a, s, (size_t)(x - s)),
                          MACHINE_RANKS_MAX, &nk.count))
      return;
    if (!draft_devices(d, word_loc(w, kind_at), arena_printf(d->a, "%s %s", x ? x + 1 : s, kind), &nk))
      return;
    nk.inside = d->kinds.v[nk.dev[0]].link;
    nk.host = d->kinds.v[nk.dev[0]].host;
    w->first = d->nodes.n;
    if (!own_kinds(w, word_loc(w, kind_at), &nk)) return;
    *vec_push(d->a, &d->nodes) = nk;
    changes(w, &p, "+");
    if (!d->ok) return;
    if (!word(w, &p, &at)) break;
  }
  join_kinds(w);
}

static const char *spec_text(words *w, const char *name, u32 times, const char *at, size_t *n, sym *from) {
  draft *d = w->d;
  size_t len = strlen(name);
  bool path = strchr(name, '/') || (len > 5 && !strcmp(name + len - 5, ".yaml")) || file_exists(name);
  *from = sym_of(d->c, name);
  if (path) return read_file(d->c, d->a, name, n);
  const char *text = preset_text(d->c, d->a, name, n, from), *const * names;
  if (text) return text;
  strbuf known = {.a = d->a};
  u32 count = machine_presets(d->a, &names);
  for (u32 i = 0; i < count; i++) sb_fmt(&known, " %s", names[i]);
  draft_fail(d, word_loc(w, at), "'%s' is neither a file nor a preset", name);
  if (!*name || !meant_machine(d, name, times))
    diag_hint(d->c, "presets:%s; or in one line, as in '2x8 h100 ib=8x400Gb/s'", sb_str(&known));
  return NULL;
}

static bool read_named(words *w, const char *p) {
  draft *d = w->d;
  const char *at, *s = word(w, &p, &at), *star = s ? strrchr(s, '*') : NULL;
  u32 times = 1;
  w->several = star;
  if (star && !draft_count(d, word_loc(w, at + (star + 1 - s)), "times", star + 1, MACHINE_RANKS_MAX, &times))
    return false;
  if (star) s = arena_strndup(d->a, s, (size_t)(star - s));
  size_t n = 0;
  sym from;
  const char *text = spec_text(w, s ? s : "", times, at, &n, &from);
  const ynode *doc = text ? yaml_parse(d->c, d->a, from, text, n) : NULL;
  if (!doc) return false;
  d->name = sym_of(d->c, s);
  draft_read(d, doc);
  for (u32 i = 0; d->ok && i < d->nodes.n; i++) {
    if ((u64)d->nodes.v[i].count * times > MACHINE_RANKS_MAX)
      return draft_fail(d, word_loc(w, at), "%u times %u nodes are more than %d", times, d->nodes.v[i].count,
                        MACHINE_RANKS_MAX);
    d->nodes.v[i].count *= times;
  }
  if (times > 1) d->name = sym_fmt(d->c, "%s*%u", sym_str(d->c, d->name), times);
  for (u32 i = 0; i < d->kinds.n; i++) *vec_push(d->a, &w->own) = (own_kind){.kind = (u16)i};
  if (d->ok) changes(w, &p, NULL);
  return d->ok;
}

machine *machine_load(ctx *c, arena *a, const char *spec) {
  draft d = draft_new(c, a);
  words w = {.d = &d, .spec = sym_str(c, sym_of(c, spec))};
  const char *first = spec + strspn(spec, " \t\n");
  size_t n = strspn(first, "0123456789"),
         more = first[n] == 'x' ? 1 + strspn(first + n + 1, "0123456789") : 0;
  if (n && strchr(" \t\n", first[n + more])) {
    d.name = sym_of(c, spec);
    read_line(&w, w.spec);
  } else if (!read_named(&w, w.spec))
    return NULL;
  machine *m = draft_finish(&d, word_loc(&w, w.spec));
  if (m) warn_unlinked(&w);
  return m;
}
