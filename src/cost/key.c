// key.c - an event as a line of text, and back: what times are stored under that somebody measured.
//
//   matmul f32[512,128] f32[128,384] -> f32[512,384] on cpu-core
//   softmax f32[8,64,64] -> f32[8,64,64] {axis=-1} on cpu-core
//   all_reduce f32 4096 B among 4 on 2 nodes, 2 each
//
// Idea: the text has what a time depends on and the machine's name does not say. Constants and axes are not in it: the
// shapes say how much they move. Where devices of a node are joined by links of several speeds, the link is told apart
// by its speed.
#include "cost/internal.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool plain(const char *s) {
  const size_t n = strlen(s);
  return n && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == n;
}

static void put_quoted(strbuf *b, const char *s) {
  sb_char(b, '"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') sb_char(b, '\\');
    sb_char(b, *s);
  }
  sb_char(b, '"');
}

static void put_double(strbuf *b, double x) {
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (isnan(x) || strtod(text, NULL) == x) break;
  }
  sb_put(b, text);
}

static void put_shape(strbuf *b, const shape *s) {
  sb_fmt(b, " %s[", dtype_name(s->t));
  for (u32 d = 0; d < s->nd; d++) sb_fmt(b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
  sb_char(b, ']');
}

static void put_value(ctx *c, strbuf *b, const attr *a) {
  switch ((attr_kind)a->kind) {
  case AK_INT: sb_i64(b, a->u.i); return;
  case AK_FLOAT: put_double(b, a->u.f); return;
  case AK_STR: put_quoted(b, sym_str(c, a->u.s)); return;
  case AK_DTYPE: sb_put(b, dtype_name(a->u.t)); return;
  default: break;
  }
  sb_char(b, '[');
  for (u32 i = 0; i < a->n; i++) {
    if (i) sb_char(b, ',');
    if (a->kind == AK_INTS)
      sb_i64(b, a->u.ints[i]);
    else
      put_double(b, a->u.floats[i]);
  }
  sb_char(b, ']');
}

static void put_attrs(ctx *c, strbuf *b, attrs at) {
  u32 n = 0;
  for (u32 i = 0; i < at.n; i++) {
    const attr *a = &at.v[i];
    if (a->kind == AK_AXES || a->kind == AK_DATA) continue;
    sb_fmt(b, "%s%s=", n++ ? ", " : " {", attr_name((attr_key)a->key));
    put_value(c, b, a);
  }
  if (n) sb_char(b, '}');
}

static bool links_differ(const machine *m) {
  for (u32 i = 0; m && i < m->nnode_kinds; i++)
    if (m->node_kind[i].inside.shape == LINK_PAIRS) return true;
  return !m;
}

void cost_event_print(ctx *c, const machine *m, const cost_event *e, strbuf *b) {
  const machine_placement *w = e->where;
  sb_put(b, op_row_of(e->op)->name);
  if (w) {
    sb_fmt(b, " %s %lld B among %u on %u node%s, %s%u each", e->t ? dtype_name(e->t) : "any",
           (long long)e->size, w->n, w->nodes, w->nodes == 1 ? "" : "s", w->even ? "" : "at most ",
           w->per_node);
    if (!links_differ(m) || w->pair_bw <= 0) return;
    sb_put(b, " at ");
    put_double(b, w->pair_bw);
    sb_put(b, " B/s");
    return;
  }
  for (u32 i = 0; i < e->nopd; i++) put_shape(b, &e->opd[i]);
  sb_put(b, " ->");
  for (u32 i = 0; i < e->nres; i++) put_shape(b, &e->res[i]);
  put_attrs(c, b, e->at);
  const char *name = sym_str(m ? m->c : c, e->dev->name);
  sb_put(b, " on ");
  if (plain(name))
    sb_put(b, name);
  else
    put_quoted(b, name);
}

// ---- reading ------------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  const char *s;
  bool bad;
} text_reader;

static bool take(text_reader *r, const char *word) {
  const size_t n = strlen(word);
  if (r->bad || strncmp(r->s, word, n)) return false;
  r->s += n;
  return true;
}
static void want(text_reader *r, const char *word) { r->bad |= !take(r, word); }

static size_t word_length(const char *s) {
  return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
}

static i64 take_int(text_reader *r) {
  char *end = NULL;
  if (r->bad) return 0;
  const long long x = strtoll(r->s, &end, 10);
  r->bad |= end == r->s || *r->s == ' ' || *r->s == '+';
  r->s = end;
  return x;
}
static u32 take_count(text_reader *r) {
  const i64 x = take_int(r);
  r->bad |= x < 0 || x > UINT32_MAX;
  return r->bad ? 0 : (u32)x;
}
static double take_double(text_reader *r) {
  char *end = NULL;
  if (r->bad) return 0;
  const double x = strtod(r->s, &end);
  r->bad |= end == r->s;
  r->s = end;
  return x;
}

static dtype take_type(text_reader *r) {
  const size_t n = r->bad ? 0 : word_length(r->s);
  const dtype t = n ? dtype_find(r->s, n) : DT_NONE;
  r->s += n;
  r->bad |= !t;
  return t;
}

static const char *take_quoted(text_reader *r) {
  strbuf b = {.a = r->a};
  want(r, "\"");
  while (!r->bad && *r->s && *r->s != '"') {
    if (*r->s == '\\' && r->s[1]) r->s++;
    sb_char(&b, *r->s++);
  }
  want(r, "\"");
  return sb_str(&b);
}

static void take_shape(text_reader *r, shape *s) {
  *s = (shape){.t = take_type(r)};
  want(r, "[");
  while (!r->bad && !take(r, "]")) {
    if (s->nd) want(r, ",");
    r->bad |= s->nd == DIMS_MAX;
    if (!r->bad) s->dim[s->nd++] = take_int(r);
    r->bad |= s->nd && s->dim[s->nd - 1] < 0;
  }
}

static void take_list(text_reader *r, attr *a) {
  VEC(i64) ints = {0};
  VEC(double) floats = {0};
  want(r, "[");
  while (!r->bad && !take(r, "]")) {
    if (a->n++) want(r, ",");
    if (a->kind == AK_INTS)
      *vec_push(r->a, &ints) = take_int(r);
    else
      *vec_push(r->a, &floats) = take_double(r);
  }
  if (a->kind == AK_INTS)
    a->u.ints = ints.v;
  else
    a->u.floats = floats.v;
}

static void take_attr(text_reader *r, attr *a) {
  const size_t n = word_length(r->s);
  const attr_key k = n ? attr_find(r->s, n) : A_NONE;
  r->s += n;
  want(r, "=");
  r->bad |= !k;
  if (r->bad) return;
  *a = (attr){.key = (u16)k, .kind = (u8)attr_kind_of(k)};
  switch (attr_kind_of(k)) {
  case AK_INT: a->u.i = take_int(r); return;
  case AK_FLOAT: a->u.f = take_double(r); return;
  case AK_STR: a->u.s = sym_of(r->c, take_quoted(r)); return;
  case AK_DTYPE: a->u.t = take_type(r); return;
  case AK_INTS:
  case AK_FLOATS: take_list(r, a); return;
  default: r->bad = true;
  }
}

static void take_comm(text_reader *r, cost_event *e) {
  machine_placement *w = ZNEWN(r->a, machine_placement, 1);
  want(r, " ");
  e->t = take(r, "any ") ? DT_NONE : take_type(r);
  if (e->t) want(r, " ");
  e->size = take_int(r);
  want(r, " B among ");
  w->n = take_count(r);
  want(r, " on ");
  w->nodes = take_count(r);
  want(r, w->nodes == 1 ? " node, " : " nodes, ");
  w->even = !take(r, "at most ");
  w->per_node = take_count(r);
  want(r, " each");
  if (take(r, " at ")) {
    w->pair_bw = take_double(r);
    want(r, " B/s");
  }
  r->bad |= e->size < 0;
  const u64 most = (u64)w->nodes * w->per_node;
  r->bad |= w->n < w->nodes || w->n > most || (w->even && w->n != most);
  e->where = w;
}

static void take_computation(text_reader *r, cost_event *e) {
  VEC(shape) shapes = {0};
  VEC(attr) at = {0};
  while (!r->bad && !take(r, " ->")) {
    want(r, " ");
    take_shape(r, vec_push(r->a, &shapes));
  }
  e->nopd = shapes.n;
  while (!r->bad && strncmp(r->s, " on ", 4) && strncmp(r->s, " {", 2)) {
    want(r, " ");
    take_shape(r, vec_push(r->a, &shapes));
  }
  e->nres = shapes.n - e->nopd;
  for (bool more = take(r, " {"); more && !r->bad; more = take(r, ", ")) {
    attr *one = vec_push(r->a, &at);
    take_attr(r, one);
    for (u32 k = 0; k + 1 < at.n; k++) r->bad |= at.v[k].key == one->key;
  }
  if (at.n) want(r, "}");
  want(r, " on ");
  if (r->bad) return;
  device_kind *dev = ZNEWN(r->a, device_kind, 1);
  const size_t n = word_length(r->s);
  dev->name = *r->s == '"' ? sym_of(r->c, take_quoted(r)) : sym_ofn(r->c, r->s, n);
  if (n) r->s += n;
  r->bad |= !sym_len(r->c, dev->name);
  e->opd = shapes.v, e->res = shapes.n ? shapes.v + e->nopd : NULL;
  e->t = shapes.n ? shapes.v[0].t : DT_NONE;
  e->at = (attrs){at.n, at.v};
  e->dev = dev;
}

bool cost_event_parse(ctx *c, arena *a, const char *text, cost_event *out) {
  text_reader r = {.c = c, .a = a, .s = text};
  const size_t n = word_length(text);
  *out = (cost_event){.op = n ? op_named(c, text, n) : OP_none};
  if (out->op == OP_none) return false;
  r.s += n;
  if (cost_op_moves(out->op))
    take_comm(&r, out);
  else
    take_computation(&r, out);
  return !r.bad && !*r.s;
}
