// text.c - layouts and groups as text: "[2048{dp},3072{tp:256},64]+tp,max pp" and "@m[pp=0,dp={0,3}]". Exact
// in both directions: what is printed is read back to the same id. Element types and group names of functions
// are the program text's (ir/).
//
// Idea: a reader is a cursor that keeps its first error; after an error every further call does nothing, so
// that the grammar reads top to bottom without checks.
#include "layout/internal.h"
#include <ctype.h>

// ---- printing ----------------------------------------------------------------------------------------

static void print_pieces(const pieces_info *t, strbuf *out) {
  for (u32 k = 0; k < t->npieces; k++) {
    if (k) sb_char(out, '|');
    if (t->begin[k] == t->begin[k + 1]) sb_char(out, '-');
    for (u32 i = t->begin[k]; i < t->begin[k + 1]; i++) {
      if (i > t->begin[k]) sb_char(out, '+');
      sb_i64(out, t->bound[2 * i]);
      sb_char(out, '-');
      sb_i64(out, t->bound[2 * i + 1]);
    }
  }
}

static void print_splits(const space *s, const layout_info *x, u32 dim, i64 extent, strbuf *out) {
  digit before[LAY_SPLITS];
  u32 n = 0, printed = 0;
  for (u32 i = 0; i < x->nsplit; i++) {
    const lay_split *p = &x->split[i];
    if (p->dim != dim) continue;
    sb_char(out, printed++ ? ',' : '{');
    sb_put(out, sym_str(s->c, s->axis[p->axis].name));
    if (p->table) {
      sb_char(out, ':');
      print_pieces(&s->tables.v[p->table], out);
      continue;
    }
    u32 size = s->axis[p->axis].size;
    if (p->stride != digits_next(before, n, extent, size)) {
      sb_char(out, ':');
      sb_i64(out, p->stride);
    }
    before[n++] = (digit){p->stride, size};
  }
  if (printed) sb_char(out, '}');
}

void layout_print(const space *s, layout l, u32 nd, const i64 *dims, strbuf *out) {
  const layout_info *x = layout_get(s, l);
  sb_char(out, '[');
  for (u32 d = 0; d < nd; d++) {
    if (d) sb_char(out, ',');
    sb_i64(out, dims[d]);
    print_splits(s, x, d, dims[d], out);
  }
  sb_char(out, ']');
  for (u32 i = 0; i < x->npart; i++) {
    const char *name = sym_str(s->c, s->axis[x->part[i].axis].name);
    if (x->part[i].red == RED_SUM)
      sb_fmt(out, "%s+%s", i ? "," : "", name);
    else
      sb_fmt(out, "%c%s %s", i ? ',' : ' ', red_name((reduction)x->part[i].red), name);
  }
}

void group_print(const space *s, group g, strbuf *out) {
  const group_info *x = group_get(s, g);
  if (!g.i) return;
  u32 printed = 0;
  sb_fmt(out, "@%s", sym_str(s->c, mesh_get(s, x->m)->name));
  for (u32 i = 0; i < x->naxes; i++) {
    const group_axis *p = &x->axis[i];
    if (p->at == -1) continue;
    sb_fmt(out, "%c%s=", printed++ ? ',' : '[', sym_str(s->c, s->axis[p->axis].name));
    if (p->at >= 0) sb_i64(out, p->at);
    for (u32 k = 0; k < p->nonly; k++) sb_fmt(out, "%c%u", k ? ',' : '{', p->only[k]);
    if (p->nonly) sb_char(out, '}');
  }
  if (printed) sb_char(out, ']');
}

// ---- the cursor --------------------------------------------------------------------------------------

typedef struct {
  space *s;
  const char *at;    // next character
  const char *error; // the first error, found at `at`
} cursor;

#define FAIL(cur, ...)                                                                                       \
  ((void)((cur)->error = (cur)->error ? (cur)->error : arena_printf(ctx_arena((cur)->s->c), __VA_ARGS__)))

static void skip_blanks(cursor *c) {
  while (!c->error && (*c->at == ' ' || *c->at == '\t')) c->at++;
}

static bool accept(cursor *c, char ch) {
  skip_blanks(c);
  if (c->error || *c->at != ch) return false;
  c->at++;
  return true;
}

static void expect(cursor *c, char ch) {
  if (!accept(c, ch)) FAIL(c, "'%c' is missing", ch);
}

static i64 number(cursor *c) {
  skip_blanks(c);
  if (!c->error && !isdigit((u8)*c->at)) FAIL(c, "a number is missing");
  i64 x = 0;
  const char *p = c->at;
  for (; !c->error && isdigit((u8)*p); p++)
    if (!mul_i64(x, 10, &x) || __builtin_add_overflow(x, *p - '0', &x)) FAIL(c, "the number is too large");
  if (!c->error) c->at = p;
  return c->error ? 0 : x;
}

static u32 small_number(cursor *c) {
  const char *from = c->at;
  i64 x = number(c);
  if (!c->error && x > INT32_MAX) {
    c->at = from;
    FAIL(c, "the number is too large");
  }
  return c->error ? 0 : (u32)x;
}

static size_t word_length(const char *p) {
  size_t n = 0;
  if (isalpha((u8)*p) || *p == '_')
    while (isalnum((u8)p[n]) || p[n] == '_' || p[n] == '.') n++;
  return n;
}

static sym word(cursor *c) {
  skip_blanks(c);
  size_t n = c->error ? 0 : word_length(c->at);
  if (!n) {
    FAIL(c, "a name is missing");
    return (sym){0};
  }
  sym name = sym_ofn(c->s->c, c->at, n);
  c->at += n;
  return name;
}

// The atoms of an axis or product; 0 and an error if there is no such axis.
static u32 axis_word(cursor *c, u8 axes[MESH_AXES]) {
  skip_blanks(c);
  const char *from = c->at;
  sym name = word(c);
  u32 n = c->error ? 0 : axis_expand(c->s, name, axes, MESH_AXES);
  if (!c->error && !n) {
    c->at = from;
    FAIL(c, "unknown axis '%s'", sym_str(c->s->c, name));
  }
  return n;
}

// ---- layouts -----------------------------------------------------------------------------------------

typedef struct {
  layout_info l;
  u64 seen; // axes that have a place
} draft;

static bool claim(cursor *c, draft *x, u8 axis, const char *from) {
  if (c->error) return false;
  if (x->seen >> axis & 1) {
    c->at = from;
    FAIL(c, "axis '%s' has two places in one layout", sym_str(c->s->c, c->s->axis[axis].name));
    return false;
  }
  x->seen |= 1ull << axis;
  return true;
}

static i64 default_stride(cursor *c, const draft *x, u32 dim, i64 extent, u32 size) {
  digit d[LAY_SPLITS];
  u32 n = 0;
  for (u32 i = 0; i < x->l.nsplit; i++) {
    const lay_split *p = &x->l.split[i];
    digit new = {p->stride, c->s->axis[p->axis].size};
    if (p->dim != dim || p->table || new.size == 1) continue;
    u32 k = n++;
    for (; k && d[k - 1].stride < new.stride; k--) d[k] = d[k - 1];
    d[k] = new;
  }
  return digits_next(d, n, extent, size);
}

static void add_split(cursor *c, draft *x, lay_split p) {
  if (x->l.nsplit == LAY_SPLITS) FAIL(c, "a layout has at most %d splits", LAY_SPLITS);
  if (!c->error) x->l.split[x->l.nsplit++] = p;
}

// Pieces up to the one that is not followed by '|'.
static u16 piece_list(cursor *c, i64 extent) {
  const char *from = c->at;
  arena *scratch = arena_new();
  VEC(u32) begin = {0};
  VEC(i64) bound = {0};
  *vec_push(scratch, &begin) = 0;
  do {
    if (!accept(c, '-')) do {
        i64 lo = number(c);
        expect(c, '-');
        i64 hi = number(c);
        *vec_push(scratch, &bound) = lo;
        *vec_push(scratch, &bound) = hi;
      } while (accept(c, '+'));
    *vec_push(scratch, &begin) = bound.n / 2;
  } while (accept(c, '|'));
  u32 n = begin.n - 1, bad;
  u16 table = 0;
  if (!c->error && !pieces_sound(scratch, n, begin.v, bound.v, extent, &bad)) {
    c->at = from;
    FAIL(c, "piece %u overlaps itself or leaves the extent %lld", bad, (long long)extent);
  } else if (!c->error && c->s->tables.n > UINT16_MAX) {
    FAIL(c, "there are more than %u tables of uneven pieces", UINT16_MAX);
  } else if (!c->error) {
    table = (u16)pieces_of(c->s, n, begin.v, bound.v, extent).i;
  }
  arena_free(scratch);
  return table;
}

static void split_item(cursor *c, draft *x, u32 dim, i64 extent) {
  u8 axes[MESH_AXES];
  skip_blanks(c);
  const char *from = c->at;
  u32 n = axis_word(c, axes);
  for (u32 i = 0; i < n; i++)
    if (!claim(c, x, axes[i], from)) return;
  if (accept(c, ':')) {
    skip_blanks(c);
    const char *p = c->at;
    while (isdigit((u8)*p)) p++;
    while (*p == ' ' || *p == '\t') p++;
    if (*p == '-') {
      if (n > 1) FAIL(c, "uneven pieces go to one axis, not to a product");
      u16 table = piece_list(c, extent);
      if (!c->error) add_split(c, x, (lay_split){.axis = axes[0], .dim = (u8)dim, .table = table});
      return;
    }
    i64 stride = number(c);
    if (!c->error && stride == 0) FAIL(c, "a stride is at least 1");
    for (u32 i = n; i-- > 0 && !c->error;) { // the stride is that of the last factor
      add_split(c, x, (lay_split){.axis = axes[i], .dim = (u8)dim, .stride = stride});
      if (i && !mul_i64(stride, axis_size(c->s, axes[i]), &stride)) FAIL(c, "the stride is too large");
    }
    return;
  }
  for (u32 i = 0; i < n && !c->error; i++) {
    u32 size = axis_size(c->s, axes[i]);
    i64 stride = size == 1 ? 1 : default_stride(c, x, dim, extent, size);
    if (!stride) {
      c->at = from;
      FAIL(c, "axis '%s' of size %u does not divide what is left of extent %lld",
           sym_str(c->s->c, c->s->axis[axes[i]].name), size, (long long)extent);
      return;
    }
    add_split(c, x, (lay_split){.axis = axes[i], .dim = (u8)dim, .stride = stride});
  }
}

// The reduction that a partial result may begin with at p; *n: its letters.
static reduction reduction_at(const char *p, size_t *n) {
  *n = word_length(p);
  for (int r = RED_SUM; r <= RED_PROD; r++)
    if (strlen(red_name((reduction)r)) == *n && strncmp(p, red_name((reduction)r), *n) == 0 &&
        (p[*n] == ' ' || p[*n] == '\t'))
      return (reduction)r;
  return RED_NONE;
}

// "+a", "max a", and after a comma more of them; a comma that something else follows is the caller's.
static void partials(cursor *c, draft *x) {
  for (bool first = true; !c->error; first = false) {
    const char *p = c->at;
    size_t n;
    while (*p == ' ' || *p == '\t') p++;
    if (!first && *p++ != ',') return;
    while (*p == ' ' || *p == '\t') p++;
    reduction r = *p == '+' ? (n = 1, RED_SUM) : reduction_at(p, &n);
    if (r == RED_NONE) return;
    c->at = p + n;
    skip_blanks(c);
    const char *from = c->at;
    u8 axes[MESH_AXES];
    u32 naxes = axis_word(c, axes);
    for (u32 i = 0; i < naxes && claim(c, x, axes[i], from); i++) {
      if (x->l.npart == LAY_PARTS) FAIL(c, "a layout is partial over at most %d axes", LAY_PARTS);
      if (!c->error) x->l.part[x->l.npart++] = (lay_part){axes[i], (u8)r};
    }
  }
}

bool layout_parse(space *s, const char **text, u32 *nd, i64 dims[DIMS_MAX], layout *out, const char **error) {
  cursor c = {.s = s, .at = *text};
  draft x;
  x.l.nsplit = x.l.npart = 0;
  x.seen = 0;
  *nd = 0;
  expect(&c, '[');
  if (!c.error && !accept(&c, ']')) {
    do {
      skip_blanks(&c);
      if (*nd == DIMS_MAX) FAIL(&c, "a tensor has at most %d dimensions", DIMS_MAX);
      i64 extent = number(&c);
      if (!c.error && accept(&c, '{')) {
        do split_item(&c, &x, *nd, extent);
        while (accept(&c, ','));
        expect(&c, '}');
      }
      if (!c.error) dims[(*nd)++] = extent;
    } while (accept(&c, ','));
    expect(&c, ']');
  }
  partials(&c, &x);
  *text = c.at;
  *error = c.error;
  if (!c.error) *out = layout_of(s, &x.l);
  return !c.error;
}

// ---- groups ------------------------------------------------------------------------------------------

// "pp=0", "pp=*", "pp={0,3}"; the position of a product is that of its row-major cell.
static u32 group_item(cursor *c, group_axis *fix, u32 room, u32 *only, u32 only_room) {
  u8 axes[MESH_AXES];
  u32 n = axis_word(c, axes), used = 0;
  expect(c, '=');
  if (n > room) FAIL(c, "a group restricts at most %d axes", MESH_AXES);
  bool all = accept(c, '*'), list = !all && accept(c, '{');
  if (list && n > 1) FAIL(c, "a product has one position here, not a list");
  u32 at = all || list ? 0 : small_number(c);
  if (list) {
    do {
      if (used == only_room) FAIL(c, "the list is too long");
      u32 k = small_number(c);
      if (!c->error) only[used++] = k;
    } while (accept(c, ','));
    expect(c, '}');
  }
  if (c->error) return 0;
  for (u32 i = n; i-- > 0;) { // what is too large stays with the major factor, to be refused by group_of
    u32 size = axis_size(c->s, axes[i]);
    fix[i] = (group_axis){.axis = axes[i], .at = all ? -1 : list ? -2 : (int)(i ? at % size : at)};
    if (list) fix[i].nonly = used, fix[i].only = only;
    at /= size;
  }
  return n;
}

bool group_parse(space *s, const char **text, group *out, const char **error) {
  cursor c = {.s = s, .at = *text};
  group_axis fix[MESH_AXES];
  u32 nfix = 0;
  expect(&c, '@');
  const char *from = c.at;
  sym name = word(&c);
  mesh m = c.error ? (mesh){0} : mesh_find(s, name);
  if (!c.error && !m.i) {
    c.at = from;
    FAIL(&c, "unknown mesh @%s", sym_str(s->c, name));
  }
  arena *scratch = arena_new();
  if (!c.error && *c.at == '[' && accept(&c, '[')) {
    do {
      u32 room = c.error ? 0 : mesh_get(s, m)->nranks;
      u32 *only = NEWN(scratch, u32, room + 1);
      nfix += group_item(&c, fix + nfix, MESH_AXES - nfix, only, room);
    } while (accept(&c, ','));
    expect(&c, ']');
  }
  if (!c.error) {
    u32 before = diag_count(s->c);
    *out = group_of(s, m, fix, nfix);
    if (!out->i) {
      c.at = from;
      FAIL(&c, "%s", diag_get(s->c, before).message);
      diag_truncate(s->c, before);
    }
  }
  arena_free(scratch);
  *text = c.at;
  *error = c.error;
  return !c.error;
}
