// parse.c - machine files: YAML to a machine. docs/machines.md is their manual.
//
// Idea: every section is a map with a fixed set of keys; a key that is not known is an error, because a
// figure that is silently ignored is a wrong answer later. Reading goes on after an error, so that one run
// shows all.
#include "machine/draft.h"
#include <math.h>
#include <stdlib.h>

static const char *const eff_names[EFF_KINDS] = {"gemm",        "conv",      "memory",
                                                 "elementwise", "reduction", "move"};
static const char *const link_names[] = {"none", "switch", "mesh", "ring", "pairs"};
const char *eff_name(eff_kind k) { return eff_names[k]; }
const char *link_name(link_shape s) { return link_names[s]; }

bool draft_fail(draft *d, loc at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char text[256];
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(d->c, E_MACHINE, at, "%s", text);
  return d->ok = false;
}

// ---- values ------------------------------------------------------------------------------------------

static const char *text_of(draft *d, const ynode *y, const char *what) {
  if (y->kind == Y_SCALAR) return y->str;
  draft_fail(d, y->at, "%s: one value is needed, not a %s", what, y->kind == Y_SEQ ? "list" : "map");
  return NULL;
}

static bool listed(const char *words, const char *word) {
  const size_t n = strlen(word);
  for (size_t len; *words; words += len + (words[len] == ' ')) {
    len = strcspn(words, " ");
    if (len == n && !memcmp(words, word, n)) return true;
  }
  return false;
}

static bool map_of(draft *d, const ynode *y, const char *what, const char *keys) {
  if (y->kind != Y_MAP) return draft_fail(d, y->at, "%s: a map is needed", what);
  for (u32 i = 0; keys && i < y->n; i++) {
    if (listed(keys, y->key[i]->str)) continue;
    draft_fail(d, y->key[i]->at, "%s: unknown key '%s'", what, y->key[i]->str);
    diag_hint(d->c, "known keys: %s", keys);
  }
  return true;
}

static bool positive(draft *d, loc at, const char *what, const char *text, unit_kind kind, double max,
                     double *out) {
  if (!unit_parse(d->c, at, what, text, kind, out)) return d->ok = false;
  if (*out > 0 && *out <= max) return true;
  if (*out > 0 && kind == UNIT_NUMBER) return draft_fail(d, at, "%s: %s is above %g", what, text, max);
  return draft_fail(d, at, "%s: %s is %s", what, text, *out > 0 ? "implausibly large" : "not above zero");
}

// Absent keys leave *out as it is.
static void quantity(draft *d, const ynode *map, const char *key, unit_kind kind, double max, double *out) {
  const ynode *y = yaml_get(map, key);
  const char *text = y ? text_of(d, y, key) : NULL;
  if (text) positive(d, y->at, key, text, kind, max, out);
}

static void amount(draft *d, const ynode *map, const char *key, unit_kind kind, i64 *out) {
  double x = (double)*out;
  const ynode *y = yaml_get(map, key);
  const char *text = y ? text_of(d, y, key) : NULL;
  if (!text) return;
  if (!unit_parse(d->c, y->at, key, text, kind, &x))
    d->ok = false;
  else if (x > 0x1p61)
    draft_fail(d, y->at, "%s: %s is implausibly large", key, text);
  else
    *out = llround(x);
}

bool draft_count(draft *d, loc at, const char *what, const char *text, u32 max, u32 *out) {
  char *end;
  size_t digits = strspn(text, "0123456789");
  unsigned long long n = digits && digits < 12 ? strtoull(text, &end, 10) : 0;
  if (!digits || text[digits]) return draft_fail(d, at, "%s: '%s' is not a positive integer", what, text);
  if (!n || n > max) return draft_fail(d, at, "%s: %s is not between 1 and %u", what, text, max);
  *out = (u32)n;
  return true;
}

static void count(draft *d, const ynode *map, const char *key, u32 max, u32 *out) {
  const ynode *y = yaml_get(map, key);
  const char *text = y ? text_of(d, y, key) : NULL;
  if (text) draft_count(d, y->at, key, text, max, out);
}

static const double rate_max = 1e21, bw_max = 1e18;
static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

// ---- pieces of text ----------------------------------------------------------------------------------

static const char *blanks(const char *s) { return s + strspn(s, " \t"); }

bool draft_devices(draft *d, loc at, const char *text, node_kind *out) {
  VEC(u16) dev = {0};
  for (const char *s = blanks(text); *s;) {
    size_t digits = strspn(s, "0123456789"), n;
    u32 count_of = 1;
    if (digits && s[digits] == ' ') {
      if (!draft_count(d, at, "devices", arena_strndup(d->a, s, digits), MACHINE_NODE_MAX, &count_of))
        return false;
      s = blanks(s + digits);
    }
    n = strcspn(s, " \t+");
    if (!n) return draft_fail(d, at, "devices: a kind of device is missing in '%s'", text);
    int kind = draft_kind(d, at, arena_strndup(d->a, s, n));
    if (kind < 0) return false;
    if (dev.n + count_of > MACHINE_NODE_MAX)
      return draft_fail(d, at, "devices: more than %d in one node", MACHINE_NODE_MAX);
    while (count_of--) *vec_push(d->a, &dev) = (u16)kind;
    s = blanks(s + n);
    if (*s && *s != '+') return draft_fail(d, at, "devices: '%s' is not '4 a100' or '4 a100 + 4 v100'", text);
    if (*s) s = blanks(s + 1);
  }
  if (!dev.n) return draft_fail(d, at, "devices: no device given");
  out->dev = dev.v;
  out->ndevs = dev.n;
  return true;
}

bool draft_link(draft *d, loc at, const char *key, const char *text, machine_link *io) {
  const char *s = blanks(text);
  io->at = at;
  io->spread = (spread_table){0};
  size_t n = strcspn(s, " \t");
  for (u32 i = 0; i < COUNT_OF(link_names); i++)
    if (strlen(link_names[i]) == n && !memcmp(s, link_names[i], n)) {
      io->shape = (link_shape)i;
      s = blanks(s + n);
      if (!i) io->bw = 0;
      if (!*s || !i) return true;
      break;
    }
  if (io->shape == LINK_NONE) io->shape = LINK_SWITCH;
  if (*s >= 'a' && *s <= 'z') {
    draft_fail(d, at, "%s: unknown shape '%.*s'", key, (int)strcspn(s, " \t"), s);
    diag_hint(d->c, "shapes: none switch mesh ring pairs");
    return false;
  }
  return positive(d, at, key, s, UNIT_BYTES_PER_S, bw_max, &io->bw);
}

bool draft_nics(draft *d, loc at, const char *text, node_kind *io) {
  const char *s = blanks(text), *x = s + strspn(s, "0123456789");
  const char *rest = blanks(x);
  io->nics = 1;
  if (*rest == 'x') {
    if (!draft_count(d, at, "nics", arena_strndup(d->a, s, (size_t)(x - s)), 1024, &io->nics)) return false;
    s = rest + 1;
  }
  return positive(d, at, "nics", s, UNIT_BYTES_PER_S, bw_max, &io->nic_bw);
}

bool draft_usable(draft *d, loc at, const char *text, device_kind *io) {
  double x;
  unit_kind kind;
  if (unit_read(text, &x, &kind) && kind == UNIT_NUMBER) {
    if (!positive(d, at, "usable", text, UNIT_NUMBER, 1, &x)) return false;
    x = floor(x * (double)io->mem_bytes);
  } else if (!positive(d, at, "usable", text, UNIT_BYTES, 0x1p61, &x))
    return false;
  if (x > (double)io->mem_bytes) {
    strbuf b = {.a = d->a};
    unit_print(&b, (double)io->mem_bytes, UNIT_BYTES);
    return draft_fail(d, at, "usable: %s is more than the %s of %s", text, sb_str(&b),
                      sym_str(d->c, io->name));
  }
  io->usable_bytes = (i64)x;
  return true;
}

// Nine tenths, in whole MiB: a context and communication buffers take about a gigabyte, fragmentation the
// rest.
static i64 usually_usable(i64 bytes) {
  const i64 most = bytes - bytes / 10;
  return most >> 20 ? most >> 20 << 20 : most;
}
i64 machine_host_usable(const node_kind *nk) { return usually_usable(nk->host_bytes); }
bool machine_has_host(const machine *m) {
  bool has = m->nnode_kinds > 0;
  for (u32 k = 0; k < m->nnode_kinds; k++)
    has = has && m->node_kind[k].host_bytes && m->node_kind[k].host.shape != LINK_NONE;
  return has;
}

// ---- kinds of devices --------------------------------------------------------------------------------

static void read_rates(draft *d, const ynode *y, device_kind *k) {
  if (!map_of(d, y, "rate", NULL)) return;
  for (u32 i = 0; i < y->n; i++) {
    const char *name = y->key[i]->str, *text = text_of(d, y->item[i], name);
    dtype t = dtype_find(name, strlen(name));
    if (t == DT_NONE)
      draft_fail(d, y->key[i]->at, "rate: '%s' is not an element type", name);
    else if (text)
      positive(d, y->item[i]->at, name, text, UNIT_FLOP_PER_S, rate_max, &k->rate[t]);
  }
}

// A fraction, or a map from size to fraction with rising sizes and rising times.
static void read_curve(draft *d, const ynode *y, const char *what, unit_kind unit, eff_curve *out) {
  eff_curve k = {.n = 1, .size = {1}, .at = y->at};
  if (y->kind == Y_SCALAR) {
    if (positive(d, y->at, what, y->str, UNIT_NUMBER, 1, &k.eff[0])) *out = k;
    return;
  }
  if (!map_of(d, y, what, NULL)) return;
  if (!y->n || y->n > CURVE_MAX) {
    draft_fail(d, y->at, "%s: between 1 and %d sizes are needed, not %u", what, CURVE_MAX, y->n);
    return;
  }
  for (k.n = 0; k.n < y->n; k.n++) {
    const u32 i = k.n;
    const char *text = text_of(d, y->item[i], what);
    if (!text || !positive(d, y->key[i]->at, what, y->key[i]->str, unit, 1e30, &k.size[i]) ||
        !positive(d, y->item[i]->at, what, text, UNIT_NUMBER, 1, &k.eff[i]))
      return;
    if (i && k.size[i] <= k.size[i - 1]) {
      draft_fail(d, y->key[i]->at, "%s: sizes must rise: %s after %s", what, y->key[i]->str,
                 y->key[i - 1]->str);
      return;
    }
    if (i && k.size[i] / k.eff[i] < k.size[i - 1] / k.eff[i - 1]) {
      draft_fail(d, y->key[i]->at, "%s: %s of work would take less time than %s", what, y->key[i]->str,
                 y->key[i - 1]->str);
      return;
    }
  }
  *out = k;
}

static void read_efficiency(draft *d, const ynode *y, device_kind *k) {
  if (!map_of(d, y, "efficiency", "gemm conv memory elementwise reduction move")) return;
  for (u32 i = 0; i < EFF_KINDS; i++) {
    const ynode *e = yaml_get(y, eff_names[i]);
    if (e) read_curve(d, e, eff_names[i], i < EFF_MEMORY ? UNIT_FLOP : UNIT_BYTES, &k->eff[i]);
  }
  if (yaml_get(y, "gemm") && !yaml_get(y, "conv")) k->eff[EFF_CONV] = k->eff[EFF_GEMM];
  for (u32 i = EFF_MEMORY + 1; i < EFF_KINDS; i++)
    if (yaml_get(y, "memory") && !yaml_get(y, eff_names[i])) k->eff[i] = k->eff[EFF_MEMORY];
}

static void read_link_of(draft *d, const ynode *y, const char *key, const char *keys, machine_link *io) {
  if (y->kind == Y_SCALAR) {
    draft_link(d, y->at, key, y->str, io);
    return;
  }
  if (!map_of(d, y, key, keys)) return;
  const ynode *spread = yaml_get(y, "spread");
  if (y->n > (spread ? 1 : 0)) io->spread = (spread_table){0};
  const ynode *kind = yaml_get(y, "kind"), *bw = yaml_get(y, "bandwidth");
  const char *text = kind ? text_of(d, kind, "kind") : NULL;
  if (text) draft_link(d, kind->at, key, text, io);
  if (bw && (text = text_of(d, bw, "bandwidth"))) draft_link(d, bw->at, key, text, io);
  quantity(d, y, "efficiency", UNIT_NUMBER, 1, &io->eff);
  amount(d, y, "start", UNIT_PS, &io->start_ps);
  amount(d, y, "step", UNIT_PS, &io->step_ps);
  io->at = y->at;
  if (spread) spread_read(d, spread, false, &io->spread);
  if (io->shape != LINK_NONE && io->bw <= 0) draft_fail(d, y->at, "%s: bandwidth is missing", key);
}

static void read_link(draft *d, const ynode *y, const char *key, machine_link *io) {
  read_link_of(d, y, key, "kind bandwidth efficiency start step spread", io);
}

static void read_host(draft *d, const ynode *y, node_kind *nk) {
  read_link_of(d, y, "host",
               "bandwidth efficiency start step memory shared spread memory-bandwidth memory-efficiency rate",
               &nk->host);
  if (y->kind != Y_MAP) return;
  count(d, y, "shared", MACHINE_NODE_MAX, &nk->host_shared);
  double bytes = (double)nk->host_bytes;
  quantity(d, y, "memory", UNIT_BYTES, 0x1p61, &bytes);
  nk->host_bytes = (i64)bytes;
  quantity(d, y, "memory-bandwidth", UNIT_BYTES_PER_S, 1e18, &nk->host_mem_bw);
  quantity(d, y, "memory-efficiency", UNIT_NUMBER, 1, &nk->host_mem_eff);
  quantity(d, y, "rate", UNIT_FLOP_PER_S, 1e24, &nk->host_rate);
}

static int find_kind(const draft *d, sym name) {
  for (u32 i = 0; i < d->kinds.n; i++)
    if (d->kinds.v[i].k.name.i == name.i) return (int)i;
  return -1;
}

// What a kind must have. Not asked after another error: its cause is likely the same.
static bool complete(draft *d, const kind_draft *k, loc at) {
  const char *name = sym_str(d->c, k->k.name);
  if (k->k.mem_bytes <= 0) return draft_fail(d, at, "%s: memory is missing", name);
  if (k->k.mem_bw <= 0) return draft_fail(d, at, "%s: bandwidth (of its memory) is missing", name);
  if (k->k.alloc_bytes <= 0) return draft_fail(d, at, "%s: allocation must be at least 1 B", name);
  if (k->k.vector <= 0) return draft_fail(d, at, "%s: vector (or a rate for f32) is missing", name);
  return true;
}

// Where figures are said; what was measured with others is not known of these.
static void locate(const ynode *y, device_kind *k) {
  static const char *const figures[] = {"rate", "vector", "bandwidth", "launch", "efficiency"};
  const ynode *at = yaml_get(y, "vector");
  if (at) k->vector_at = at->at;
  if ((at = yaml_get(y, "launch"))) k->launch_at = at->at;
  for (u32 i = 0; i < COUNT_OF(figures); i++)
    if (yaml_get(y, figures[i])) k->spread = (spread_table){0};
}

static void read_kind(draft *d, const ynode *name, const ynode *y) {
  kind_draft k = {.link = {.eff = 1}, .host = {.eff = 1}};
  const bool was_ok = d->ok;
  k.k.alloc_bytes = ALLOCATION_BYTES;
  if (!name->str[0] || name->str[strspn(name->str, name_chars)]) {
    draft_fail(d, name->at, "devices: '%s' is not a name (letters, digits, _ . -)", name->str);
    return;
  }
  d->ok = true; // of this kind alone
  if (!map_of(d, y, name->str,
              "like rate vector memory usable bandwidth launch allocation cores efficiency link host spread"))
    return;
  const ynode *like = yaml_get(y, "like"), *sub;
  const char *text = like ? text_of(d, like, "like") : NULL;
  if (text) {
    int i = draft_kind(d, like->at, text);
    if (i >= 0) k = d->kinds.v[i];
  }
  k.k.name = sym_of(d->c, name->str);
  k.k.at = name->at;
  locate(y, &k.k);
  if ((sub = yaml_get(y, "rate"))) read_rates(d, sub, &k.k);
  quantity(d, y, "vector", UNIT_FLOP_PER_S, rate_max, &k.k.vector);
  quantity(d, y, "bandwidth", UNIT_BYTES_PER_S, bw_max, &k.k.mem_bw);
  amount(d, y, "memory", UNIT_BYTES, &k.k.mem_bytes);
  amount(d, y, "launch", UNIT_PS, &k.k.launch_ps);
  amount(d, y, "allocation", UNIT_BYTES, &k.k.alloc_bytes);
  count(d, y, "cores", DEVICE_CORES_MAX, &k.k.cores);
  if ((sub = yaml_get(y, "efficiency"))) read_efficiency(d, sub, &k.k);
  if ((sub = yaml_get(y, "link"))) read_link(d, sub, "link", &k.link);
  if ((sub = yaml_get(y, "host"))) read_link(d, sub, "host", &k.host);
  if ((sub = yaml_get(y, "spread"))) spread_read(d, sub, true, &k.k.spread);
  if (k.k.vector <= 0) k.k.vector = k.k.rate[DT_F32];
  if (!text || yaml_get(y, "memory")) k.k.usable_bytes = usually_usable(k.k.mem_bytes);
  if ((sub = yaml_get(y, "usable")) && d->ok && (text = text_of(d, sub, "usable")))
    draft_usable(d, sub->at, text, &k.k);
  d->ok = d->ok && complete(d, &k, name->at) && was_ok;
  int old =
      find_kind(d, k.k.name); // the library's kind of this name may already be there, taken for a `like`
  if (old >= 0)
    d->kinds.v[old] = k;
  else
    *vec_push(d->a, &d->kinds) = k;
}

const ynode *draft_library(draft *d) {
  size_t n;
  sym file = {0};
  const char *text = d->library ? NULL : preset_text(d->c, d->a, "devices", &n, &file);
  const ynode *doc = text ? yaml_parse(d->c, d->a, file, text, n) : NULL,
              *y = doc ? yaml_get(doc, "devices") : NULL;
  return y && y->kind == Y_MAP ? y : NULL;
}

int draft_kind(draft *d, loc at, const char *name) {
  int i = find_kind(d, sym_of(d->c, name));
  if (i >= 0) return i;
  const ynode *lib = draft_library(d), *y = lib ? yaml_get(lib, name) : NULL;
  if (!y) {
    const char *meant = meant_device(d, name);
    draft_fail(d, at, "unknown device '%s'", name);
    strbuf known = {.a = d->a};
    for (u32 k = 0; lib && k < lib->n; k++) sb_fmt(&known, " %s", lib->key[k]->str);
    if (meant) diag_hint(d->c, "did you mean '%s'?", meant);
    diag_hint(d->c, "define it under devices:, or use one of%s", sb_str(&known));
    return -1;
  }
  // Kinds of the library build on those above them: read from the first to the one that is wanted.
  draft sub = draft_new(d->c, d->a);
  sub.library = true;
  for (u32 k = 0; k < lib->n; k++) {
    read_kind(&sub, lib->key[k], lib->item[k]);
    if (!strcmp(lib->key[k]->str, name)) break;
  }
  d->ok = d->ok && sub.ok;
  i = find_kind(&sub, sym_of(d->c, name));
  if (i < 0) return -1;
  assert(sub.kinds.v);
  *vec_push(d->a, &d->kinds) = sub.kinds.v[i];
  return (int)d->kinds.n - 1;
}

// ---- nodes, fabric, the whole ------------------------------------------------------------------------

static void read_node(draft *d, const ynode *y) {
  node_kind nk = {.count = 1, .host_shared = 1, .host_mem_eff = 1, .at = y->at};
  if (!map_of(d, y, "nodes", "count devices link host nics")) return;
  const ynode *sub = yaml_get(y, "devices");
  const char *text = sub ? text_of(d, sub, "devices") : NULL;
  if (!sub) draft_fail(d, y->at, "nodes: devices are missing");
  if (!text || !draft_devices(d, sub->at, text, &nk)) return;
  assert(nk.dev);
  count(d, y, "count", MACHINE_RANKS_MAX, &nk.count);
  nk.inside = d->kinds.v[nk.dev[0]].link;
  nk.host = d->kinds.v[nk.dev[0]].host;
  if ((sub = yaml_get(y, "link"))) read_link(d, sub, "link", &nk.inside);
  if ((sub = yaml_get(y, "host"))) read_host(d, sub, &nk);
  if ((sub = yaml_get(y, "nics")) && (text = text_of(d, sub, "nics"))) draft_nics(d, sub->at, text, &nk);
  *vec_push(d->a, &d->nodes) = nk;
}

static void read_fabric(draft *d, const ynode *y) {
  if (!map_of(d, y, "fabric", "efficiency oversubscription leaf start step spread")) return;
  const ynode *spread = yaml_get(y, "spread");
  if (y->n > (spread ? 1 : 0)) d->fabric.spread = (spread_table){0}, d->fabric.at = y->at;
  quantity(d, y, "efficiency", UNIT_NUMBER, 1, &d->fabric.eff);
  quantity(d, y, "oversubscription", UNIT_NUMBER, 1000, &d->fabric.oversub);
  count(d, y, "leaf", MACHINE_RANKS_MAX, &d->fabric.leaf);
  amount(d, y, "start", UNIT_PS, &d->fabric.start_ps);
  amount(d, y, "step", UNIT_PS, &d->fabric.step_ps);
  if (spread) spread_read(d, spread, false, &d->fabric.spread);
  if (d->fabric.oversub < 1) draft_fail(d, y->at, "fabric: oversubscription is below 1");
}

// all_reduce: {2: [a, b, c], ...}: seconds = a * bytes + b * n + c.
static void read_fits(draft *d, const ynode *y) {
  distir_params *p = &d->distir;
  if (!map_of(d, y, "all_reduce", NULL)) return;
  for (u32 i = 0; i < y->n; i++) {
    u32 n = 0;
    double x[3];
    const ynode *v = y->item[i];
    if (p->nfits == DISTIR_FITS) {
      draft_fail(d, y->at, "all_reduce: more than %d group sizes", DISTIR_FITS);
      return;
    }
    if (!draft_count(d, y->key[i]->at, "all_reduce", y->key[i]->str, MACHINE_RANKS_MAX, &n)) return;
    if (v->kind != Y_SEQ || v->n != 3) {
      draft_fail(d, v->at,
                 "all_reduce: three numbers are needed: seconds per byte, per member, and constant");
      return;
    }
    for (u32 j = 0; j < 3; j++) {
      const char *text = text_of(d, v->item[j], "all_reduce");
      if (!text || !unit_parse(d->c, v->item[j]->at, "all_reduce", text, UNIT_NUMBER, &x[j])) {
        d->ok = false;
        return;
      }
    }
    p->fit[p->nfits].n = n;
    p->fit[p->nfits].a = x[0];
    p->fit[p->nfits].b = x[1];
    p->fit[p->nfits++].c = x[2];
  }
}

static void read_distir(draft *d, const ynode *y) {
  if (!map_of(d, y, "distir", "launch bandwidth rate network all_reduce")) return;
  amount(d, y, "launch", UNIT_PS, &d->distir.launch_ps);
  quantity(d, y, "bandwidth", UNIT_BYTES_PER_S, bw_max, &d->distir.mem_bw);
  quantity(d, y, "rate", UNIT_FLOP_PER_S, rate_max, &d->distir.rate);
  quantity(d, y, "network", UNIT_BYTES_PER_S, bw_max, &d->distir.network);
  const ynode *fits = yaml_get(y, "all_reduce");
  if (fits) read_fits(d, fits);
}

// What published nccl-tests show on 1 to 256 nodes (Alps, 4 x 200 Gb/s each): the fraction of the NICs' line
// rate that 4 GiB reach, and the straight line through the smallest sizes by the logarithm of the nodes.
static const spread_row fabric_spreads[] = {
#define SPREAD(op, to_bytes, spread_of, count_of) {op, to_bytes, spread_of, count_of},
#include "machine/spreads.def"
#undef SPREAD
};
static const fabric_info fabric_usual = {.eff = 0.92,
                                         .oversub = 1,
                                         .start_ps = 10000000,
                                         .step_ps = 6000000,
                                         .spread = {COUNT_OF(fabric_spreads),
                                                    fabric_spreads,
                                                    "NCCL and PyTorch on 2 to 512 nodes of five systems",
                                                    0,
                                                    {0}}};

draft draft_new(ctx *c, arena *a) {
  draft d = {.c = c, .a = a, .ok = true, .fabric = fabric_usual};
  d.distir = (distir_params){.launch_ps = 10000000, .mem_bw = 9e11, .rate = 1.4e13, .network = 25 * 1.25e8};
  return d;
}

void draft_read(draft *d, const ynode *doc) {
  if (!map_of(d, doc, "machine", "name about devices nodes fabric distir")) return;
  const ynode *y;
  const char *text;
  if ((y = yaml_get(doc, "name")) && (text = text_of(d, y, "name"))) d->name = sym_of(d->c, text);
  if ((y = yaml_get(doc, "about")) && (text = text_of(d, y, "about"))) d->about = sym_of(d->c, text);
  if ((y = yaml_get(doc, "devices")) && map_of(d, y, "devices", NULL))
    for (u32 i = 0; i < y->n; i++) read_kind(d, y->key[i], y->item[i]);
  if ((y = yaml_get(doc, "fabric"))) read_fabric(d, y);
  if ((y = yaml_get(doc, "distir"))) read_distir(d, y);
  if (!(y = yaml_get(doc, "nodes"))) {
    draft_fail(d, doc->at, "machine: nodes are missing");
    return;
  }
  if (y->kind == Y_MAP)
    read_node(d, y);
  else if (y->kind != Y_SEQ)
    draft_fail(d, y->at, "nodes: a map or a list of maps is needed");
  else
    for (u32 i = 0; i < y->n; i++) read_node(d, y->item[i]);
}

// Devices of a node that nothing joins: a search would leave them out without a word.
static void warn_apart(const draft *d) {
  for (u32 i = 0; i < d->nodes.n; i++) {
    const node_kind *nk = &d->nodes.v[i];
    if (machine_joined(nk)) continue;
    const char *kind = sym_str(d->c, d->kinds.v[nk->dev[0]].k.name);
    diag(d->c, W_UNLINKED, nk->at,
         "the %u devices of a node (%s%s) have neither `link` nor `host`: nothing is sent between them",
         nk->ndevs, kind, nk->dev[nk->ndevs - 1] == nk->dev[0] ? "" : " and others");
    diag_hint(d->c,
              "`link: switch 100 GB/s` or `host: 16 GB/s`, with the rate of yours, in the node or in the "
              "kind %s; in one "
              "line link=100GB/s or host=16GB/s",
              kind);
  }
}

// Keeps the kinds that nodes use, in order of use, and numbers the ranks.
machine *draft_finish(draft *d, loc at) {
  u64 nodes = 0, ranks = 0;
  for (u32 i = 0; i < d->nodes.n; i++) {
    nodes += d->nodes.v[i].count;
    ranks += (u64)d->nodes.v[i].count * d->nodes.v[i].ndevs;
  }
  if (d->ok && !ranks) draft_fail(d, at, "machine: it has no devices");
  if (ranks > MACHINE_RANKS_MAX)
    draft_fail(d, at, "machine: %llu devices; at most %d", (unsigned long long)ranks, MACHINE_RANKS_MAX);
  if (!d->ok) return NULL;
  warn_apart(d);
  machine *m = NEW(d->a, machine);
  *m = (machine){.c = d->c, .name = d->name, .about = d->about, .fabric = d->fabric, .distir = d->distir};
  m->nnodes = (u32)nodes;
  m->nranks = (u32)ranks;
  m->nnode_kinds = d->nodes.n;
  m->node_kind = d->nodes.v;
  m->kind = NEWN(d->a, device_kind, d->kinds.n);
  u16 *number = NEWN(d->a, u16, d->kinds.n), *node = NEWN(d->a, u16, nodes);
  memset(number, 0xff, sizeof *number * d->kinds.n);
  machine_dev *dev = NEWN(d->a, machine_dev, ranks);
  u32 rank = 0, at_node = 0;
  for (u32 i = 0; i < d->nodes.n; i++) {
    node_kind *nk = &d->nodes.v[i];
    u16 *kinds = NEWN(d->a, u16, nk->ndevs);
    for (u32 j = 0; j < nk->ndevs; j++) {
      u16 k = nk->dev[j];
      if (number[k] == 0xffff) {
        number[k] = (u16)m->nkinds;
        m->kind[m->nkinds++] = d->kinds.v[k].k;
      }
      kinds[j] = number[k];
    }
    nk->dev = kinds;
    for (u32 c = 0; c < nk->count; c++, at_node++) {
      node[at_node] = (u16)i;
      for (u32 j = 0; j < nk->ndevs; j++) dev[rank++] = (machine_dev){kinds[j], (u16)j, at_node};
    }
  }
  m->dev = dev;
  m->node = node;
  return m;
}

machine *machine_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  const ynode *doc = yaml_parse(c, a, file, text, n);
  if (!doc) return NULL;
  draft d = draft_new(c, a);
  d.name = file;
  draft_read(&d, doc);
  return draft_finish(&d, doc->at);
}
