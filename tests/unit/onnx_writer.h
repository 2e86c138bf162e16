// onnx_writer.h - ONNX models made byte by byte, for the tests of the importer.
#ifndef HEDDLE_ONNX_WRITER_H
#define HEDDLE_ONNX_WRITER_H
#include "front/front.h"
#include "test.h"
#include <stdlib.h>

// ---- a writer of just enough protobuf ------------------------------------------------------------------
typedef strbuf msg;
static arena *mem; // of the running test

static inline msg m_new(void) { return (msg){.a = mem}; }
static inline void m_varint(msg *m, u64 v) {
  for (; v >= 0x80; v >>= 7) sb_char(m, (char)(v | 0x80));
  sb_char(m, (char)v);
}
static inline void m_int(msg *m, u32 field, i64 v) { m_varint(m, field << 3), m_varint(m, (u64)v); }
static inline void m_bytes(msg *m, u32 field, const void *p, size_t n) {
  m_varint(m, field << 3 | 2), m_varint(m, n), sb_putn(m, p, n);
}
static inline void m_str(msg *m, u32 field, const char *s) { m_bytes(m, field, s, strlen(s)); }
static inline void m_msg(msg *m, u32 field, msg sub) { m_bytes(m, field, sub.v, sub.n); }

static inline msg dims(msg t, const char *text, u32 field) { // "2,3" -> one varint each
  for (const char *s = text; *s; s += strcspn(s, ",") + (s[strcspn(s, ",")] == ','))
    m_int(&t, field, atoll(s));
  return t;
}

// A tensor with raw data.
static inline msg tensor(const char *name, i64 code, const char *extents, const void *data, size_t n) {
  msg t = dims(m_new(), extents, 1);
  m_int(&t, 2, code);
  m_str(&t, 8, name);
  if (data) m_bytes(&t, 9, data, n);
  return t;
}

// A value with a shape: numbers are extents, words symbolic names.
static inline msg value_of(const char *name, i64 code, const char *extents) {
  msg v = m_new(), ty = m_new(), tt = m_new(), sh = m_new();
  for (const char *s = extents; *s;) {
    size_t n = strcspn(s, ",");
    msg d = m_new();
    if (*s >= '0' && *s <= '9')
      m_int(&d, 1, atoll(s));
    else
      m_bytes(&d, 2, s, n);
    m_msg(&sh, 1, d);
    s += n + (s[n] == ',');
  }
  m_int(&tt, 1, code), m_msg(&tt, 2, sh), m_msg(&ty, 1, tt), m_str(&v, 1, name), m_msg(&v, 2, ty);
  return v;
}

static inline msg node_of(const char *op, const char *in, const char *out) { // names separated by commas
  msg n = m_new();
  const char *lists[] = {in, out};
  for (u32 k = 0; k < 2; k++)
    for (const char *s = lists[k]; *s; s += strcspn(s, ",") + (s[strcspn(s, ",")] == ','))
      m_bytes(&n, k + 1, s, strcspn(s, ","));
  m_str(&n, 4, op);
  return n;
}

static inline msg with_int(msg n, const char *name, i64 v) {
  msg a = m_new();
  m_str(&a, 1, name), m_int(&a, 3, v), m_int(&a, 20, 2), m_msg(&n, 5, a);
  return n;
}

static inline msg with_ints(msg n, const char *name, const i64 *v, u32 count) {
  msg a = m_new();
  m_str(&a, 1, name), m_int(&a, 20, 7);
  for (u32 k = 0; k < count; k++) m_int(&a, 8, v[k]);
  m_msg(&n, 5, a);
  return n;
}

static inline msg with_str(msg n, const char *name, const char *v) {
  msg a = m_new();
  m_str(&a, 1, name), m_str(&a, 4, v), m_int(&a, 20, 3), m_msg(&n, 5, a);
  return n;
}

static inline msg with_float(msg n, const char *name, float v) {
  msg a = m_new();
  m_str(&a, 1, name), m_varint(&a, 2 << 3 | 5), sb_putn(&a, (const char *)&v, 4), m_int(&a, 20, 1),
      m_msg(&n, 5, a);
  return n;
}

static inline msg in_domain(msg n, const char *domain) {
  m_str(&n, 7, domain);
  return n;
}

static inline msg with_graph(msg n, const char *name, msg g) {
  msg a = m_new();
  m_str(&a, 1, name), m_msg(&a, 6, g), m_int(&a, 20, 5), m_msg(&n, 5, a);
  return n;
}

static inline msg model_of(msg graph, i64 opset) {
  msg m = m_new(), o = m_new();
  m_int(&o, 2, opset);
  m_int(&m, 1, 8), m_msg(&m, 8, o), m_msg(&m, 7, graph);
  return m;
}

static inline msg also_opset(msg m, const char *domain, i64 version) {
  msg o = m_new();
  m_str(&o, 1, domain), m_int(&o, 2, version), m_msg(&m, 8, o);
  return m;
}

static inline prog *load(ctx *c, msg m, const front_opts *o) {
  return front_onnx_bytes(c, "test.onnx", (const u8 *)m.v, m.n, o);
}

static inline const char *errors(ctx *c) { return diag_render(c, mem); }
static inline bool told(ctx *c, const char *text) { return strstr(errors(c), text) != NULL; }

#define BEGIN                                                                                                \
  ctx *c = ctx_new();                                                                                        \
  mem = arena_new();
#define END                                                                                                  \
  arena_free(mem);                                                                                           \
  ctx_free(c);
#endif
