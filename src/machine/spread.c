// spread.c - how far measurements lie from prices: the section `spread` of a device kind, of a link, of the
// fabric.
//
// Idea: a spread says something only together with the number of measurements it is from and with what they
// were, so neither can be left out. A figure that is changed loses the spread that was found with the old
// one.
#include "machine/draft.h"
#include <math.h>

const spread_row *spread_find(const spread_table *t, const char *of, double size) {
  for (u32 i = 0; i < t->n; i++)
    if (!strcmp(t->row[i].of, of) && size <= t->row[i].to) return t->row[i].count ? &t->row[i] : NULL;
  return NULL;
}

typedef struct {
  draft *d;
  bool device; // else of a link
  VEC(spread_row) row;
} reading;

// What can be measured of a device or of a link, and what its sizes are. False: nothing of this name.
static bool unit_of(const reading *r, const char *name, unit_kind *unit) {
  *unit = UNIT_BYTES;
  if (!r->device) {
    const opcode op = op_find(name, strlen(name));
    return op && op_row_of(op)->flags & OPF_COMM;
  }
  for (u32 k = 0; k < EFF_KINDS; k++)
    if (!strcmp(name, eff_name((eff_kind)k))) {
      if (k < EFF_MEMORY) *unit = UNIT_FLOP;
      return true;
    }
  *unit = UNIT_NUMBER; // launches have no size
  return !strcmp(name, "launch");
}

// "12 % of 310", or "unknown": of sizes between known ones.
static void read_row(reading *r, const char *of, double to, const ynode *y) {
  draft *d = r->d;
  const char *mid = y->kind == Y_SCALAR ? strstr(y->str, " of ") : NULL;
  spread_row row = {.of = of, .to = to};
  if (y->kind == Y_SCALAR && !strcmp(y->str, "unknown")) {
    row.spread = -1;
    *vec_push(d->a, &r->row) = row;
    return;
  }
  if (!mid) {
    draft_fail(d, y->at, "spread: %s: the number of measurements is missing", of);
    diag_hint(d->c, "%s: 12 %% of 310, or %s: unknown", of, of);
    return;
  }
  const char *spread = arena_strndup(d->a, y->str, (size_t)(mid - y->str));
  if (!unit_parse(d->c, y->at, "spread", spread, UNIT_NUMBER, &row.spread)) {
    d->ok = false;
    return;
  }
  if (draft_count(d, y->at, "spread", mid + 4, UINT32_MAX, &row.count)) *vec_push(d->a, &r->row) = row;
}

static void read_sizes(reading *r, const char *of, unit_kind unit, const ynode *y) {
  draft *d = r->d;
  double last = 0;
  for (u32 i = 0; i < y->n; i++) {
    const char *text = y->key[i]->str;
    double to = HUGE_VAL;
    if (unit == UNIT_NUMBER) {
      draft_fail(d, y->key[i]->at, "spread: %s has no sizes", of);
      return;
    }
    if (strcmp(text, "more") && !unit_parse(d->c, y->key[i]->at, "spread", text, unit, &to)) {
      d->ok = false;
      return;
    }
    if (to <= last) {
      draft_fail(d, y->key[i]->at, "spread: sizes must rise: %s after %s", text,
                 i ? y->key[i - 1]->str : "0");
      return;
    }
    read_row(r, of, last = to, y->item[i]);
  }
}

static void read_name(reading *r, const ynode *key, const ynode *y) {
  unit_kind unit;
  if (!unit_of(r, key->str, &unit)) {
    draft_fail(r->d, key->at, "spread: unknown key '%s'", key->str);
    diag_hint(r->d->c, r->device
                           ? "known keys: source types launch gemm conv memory elementwise reduction move"
                           : "known keys: source and names of communication operators, as all_reduce, send");
    return;
  }
  const char *of = arena_strdup(r->d->a, key->str);
  if (y->kind == Y_MAP)
    read_sizes(r, of, unit, y);
  else
    read_row(r, of, HUGE_VAL, y);
}

// "bf16 f16".
static u64 read_types(draft *d, const ynode *y) {
  u64 set = 0;
  for (const char *s = y->kind == Y_SCALAR ? y->str : ""; *s;) {
    const size_t n = strcspn(s, " ");
    const dtype t = dtype_find(s, n);
    if (t == DT_NONE) draft_fail(d, y->at, "spread: '%.*s' is not an element type", (int)n, s);
    set |= 1ull << t;
    s += n;
    s += strspn(s, " ");
  }
  if (!set) draft_fail(d, y->at, "spread: types are element types, as in bf16 f16");
  return set;
}

void spread_read(draft *d, const ynode *y, bool device, spread_table *out) {
  reading r = {.d = d, .device = device};
  if (y->kind != Y_MAP) {
    draft_fail(d, y->at, "spread: a map is needed");
    return;
  }
  const ynode *source = yaml_get(y, "source"), *types = yaml_get(y, "types");
  if (y->n && (!source || source->kind != Y_SCALAR || !source->str[0])) {
    draft_fail(d, y->at, "spread: source, what was measured, is missing");
    diag_hint(d->c, "source: GEMM benchmark of 2024, bf16");
    return;
  }
  for (u32 i = 0; i < y->n; i++)
    if (y->item[i] != source && y->item[i] != types) read_name(&r, y->key[i], y->item[i]);
  *out = (spread_table){.n = r.row.n, .row = r.row.v, .at = y->at};
  if (source) out->source = arena_strdup(d->a, source->str);
  if (types) out->types = read_types(d, types);
}

// In one line: as the value of a key.
void spread_print(const spread_table *t, strbuf *b) {
  sb_put(b, "{source: ");
  sb_json_str(b, t->source);
  const char *before = ", types: ";
  for (u32 k = 0; k < DT_COUNT; k++) {
    if (!(t->types >> k & 1)) continue;
    sb_fmt(b, "%s%s", before, dtype_name((dtype)k));
    before = " ";
  }
  for (u32 i = 0, k; i < t->n; i = k) {
    for (k = i; k < t->n && !strcmp(t->row[k].of, t->row[i].of);) k++;
    const bool sizes = t->row[i].to < HUGE_VAL;
    sb_fmt(b, ", %s: %s", t->row[i].of, sizes ? "{" : "");
    for (u32 j = i; j < k; j++) {
      const spread_row *r = &t->row[j];
      const bool product = !strcmp(r->of, "gemm") || !strcmp(r->of, "conv");
      if (j > i) sb_put(b, ", ");
      if (r->to < HUGE_VAL) unit_print(b, r->to, product ? UNIT_FLOP : UNIT_BYTES);
      if (sizes) sb_put(b, r->to < HUGE_VAL ? ": " : "more: ");
      if (r->count) unit_print(b, r->spread, UNIT_NUMBER);
      if (r->count)
        sb_fmt(b, " of %u", r->count);
      else
        sb_put(b, "unknown");
    }
    if (sizes) sb_char(b, '}');
  }
  sb_char(b, '}');
}
