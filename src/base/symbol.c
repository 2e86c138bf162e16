// symbol.c - the session: interned strings and the places things came from.
//
// Idea: a symbol or a location is an index, dense from 1, valid as long as the session; equal strings have
// equal symbols. Locations are not interned: they are written once and looked at only when something is
// wrong.
#include "base/internal.h"

ctx *ctx_new(void) {
  arena *a = arena_new(); // all that follows fits into its first block: nothing can leak half-way
  ctx *c = NEW(a, ctx);
  c->a = a;
  *vec_push(a, &c->sym) = (sym_row){"", 0};
  *vec_push(a, &c->loc) = (loc_info){0};
  return c;
}

void ctx_free(ctx *c) {
  if (!c) return;
  if (c->end_kept) c->end_kept(c->kept);
  arena_free(c->diag_text);
  arena_free(c->a);
}

arena *ctx_arena(ctx *c) { return c->a; }

void ctx_keep(ctx *c, void *kept, void (*end)(void *)) { c->kept = kept, c->end_kept = end; }
void *ctx_kept(const ctx *c) { return c->kept; }

sym sym_ofn(ctx *c, const char *s, size_t n) {
  if (!n) return (sym){0};
  u64 h = hash_bytes(s, n, 0);
  for (u32 it = 0, id; hmap_next(&c->sym_map, h, &it, &id);)
    if (c->sym.v[id].len == n && !memcmp(c->sym.v[id].str, s, n)) return (sym){id};
  if (n >= UINT32_MAX) base_out_of_memory(n);
  sym id = {c->sym.n};
  const char *copy = arena_strndup(c->a, s, n);
  *vec_push(c->a, &c->sym) = (sym_row){copy, (u32)n};
  hmap_add(c->a, &c->sym_map, h, id.i);
  return id;
}

sym sym_of(ctx *c, const char *s) { return sym_ofn(c, s, strlen(s)); }

sym sym_fmt(ctx *c, const char *fmt, ...) {
  char buf[512];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(buf, sizeof buf, fmt, ap);
  va_end(ap);
  assert(n >= 0);
  if ((size_t)n < sizeof buf) return sym_ofn(c, buf, (size_t)n);
  va_start(ap, fmt);
  const char *s = arena_vprintf(c->a, fmt, ap);
  va_end(ap);
  return sym_ofn(c, s, (size_t)n);
}

static sym sym_join(ctx *c, sym name, const char *suffix) {
  char buf[256];
  size_t n = sym_len(c, name), k = strlen(suffix);
  if (n + k > sizeof buf) return sym_fmt(c, "%s%s", sym_str(c, name), suffix);
  memcpy(buf, sym_str(c, name), n);
  memcpy(buf + n, suffix, k);
  return sym_ofn(c, buf, n + k);
}

// Every plan of a search names the same gradients and states, thousands of them in the same order: what a
// name and a suffix became before is found by number. NULL: more suffixes than anybody needs.
static suffix_row *suffix_find(ctx *c, const char *suffix) {
  for (u32 k = 0; k < c->nsuffix; k++)
    if (!strcmp(c->suffix[k].str, suffix)) return &c->suffix[k];
  if (c->nsuffix == COUNT_OF(c->suffix)) return NULL;
  c->suffix[c->nsuffix] = (suffix_row){.str = arena_strdup(c->a, suffix)};
  return &c->suffix[c->nsuffix++];
}

sym sym_with(ctx *c, sym name, const char *suffix) {
  suffix_row *r = suffix_find(c, suffix);
  if (!r) return sym_join(c, name, suffix);
  if (name.i >= r->of.n) {
    u32 more = c->sym.n - r->of.n;
    sym *fresh = vec_push_n(c->a, &r->of, more);
    assert(fresh);
    memset(fresh, 0, more * sizeof *fresh);
  }
  if (!r->of.v[name.i].i) r->of.v[name.i] = sym_join(c, name, suffix);
  return r->of.v[name.i];
}

const char *sym_str(const ctx *c, sym s) {
  assert(s.i < c->sym.n);
  return c->sym.v[s.i].str;
}

u32 sym_len(const ctx *c, sym s) {
  assert(s.i < c->sym.n);
  return c->sym.v[s.i].len;
}

static loc loc_push(ctx *c, loc_info info) {
  *vec_push(c->a, &c->loc) = info;
  return (loc){c->loc.n - 1};
}

// Whether `text` begins the line of which `copy` was made. The start is enough to tell a buffer that was
// filled again; comparing all of it would make long lines with many locations slow.
static bool same_line(const char *copy, const char *text) {
  for (int i = 0; i < 64; i++) {
    if (!copy[i]) return !text[i] || text[i] == '\n' || text[i] == '\r';
    if (copy[i] != text[i]) return false;
  }
  return true;
}

// The line is copied, once for a run of locations on it: readers may unmap their file.
loc loc_text(ctx *c, sym file, u32 line, u32 col, const char *text) {
  const loc_info *last = &c->loc.v[c->loc.n - 1];
  const char *copy = NULL;
  if (text && text == c->line_source && line == last->line && file.i == last->file.i &&
      same_line(last->text, text)) {
    copy = last->text;
  } else if (text) {
    size_t n = strcspn(text, "\n");
    copy = arena_strndup(c->a, text, n && text[n - 1] == '\r' ? n - 1 : n);
  }
  c->line_source = text;
  return loc_push(c, (loc_info){.file = file, .line = line, .col = col, .text = copy});
}

loc loc_node(ctx *c, sym file, sym node, sym part) {
  c->line_source = NULL;
  return loc_push(c, (loc_info){.file = file, .node = node, .part = part});
}

const loc_info *loc_get(const ctx *c, loc l) {
  assert(l.i < c->loc.n);
  return l.i ? &c->loc.v[l.i] : NULL;
}

void loc_set_alike(ctx *c, loc l, loc next) {
  assert(l.i && l.i < c->loc.n && next.i < c->loc.n);
  c->loc.v[l.i].alike = next;
}

sym loc_place(ctx *c, loc at) {
  const loc_info *l = loc_get(c, at);
  if (!l || l->node.i) return l ? l->node : (sym){0};
  return l->line ? sym_fmt(c, "%s:%u", sym_str(c, l->file), l->line) : l->file;
}
