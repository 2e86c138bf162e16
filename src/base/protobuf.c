// protobuf.c - protobuf's wire format, read in place, and written. Not what messages mean.
//
// Idea: a reader is a cursor over one message. A field is announced with its number and wire type; scalars
// are decoded, everything with a length is a span of the file. Lengths are 64-bit and checked against the
// message around them, so a reader never leaves its message, and a nested message costs one reader on the C
// stack, of which there are at most PB_DEPTH. Fields that the caller does not ask for cost one step.
#include "base/base.h"

bool pb_bad(pb_file *f, const u8 *at, const char *fmt, ...) {
  const bool told = f->bad || f->silent;
  f->bad = true;
  if (told) return false;
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(f->c, f->id,
       loc_node(f->c, f->file, (sym){0}, sym_fmt(f->c, "byte %llu", (unsigned long long)(at - f->base))),
       "%s", text);
  if (f->hint) diag_hint(f->c, "%s", f->hint);
  return false;
}

pb_reader pb_of(pb_file *f, const u8 *at, size_t n) { return (pb_reader){.f = f, .at = at, .end = at + n}; }

bool pb_varint(pb_reader *r, u64 *out) {
  const u8 *p = r->at;
  u64 v = 0;
  for (u32 shift = 0; shift < 70; shift += 7) {
    if (p == r->end) return pb_bad(r->f, r->at, "a number runs past the end of its message");
    u8 b = *p++;
    v |= shift < 64 ? (u64)(b & 0x7f) << shift : 0;
    if (b < 0x80) {
      r->at = p;
      *out = v;
      return true;
    }
  }
  return pb_bad(r->f, r->at, "a number has more than ten bytes");
}

static bool fixed(pb_reader *r, u32 bytes) {
  if ((size_t)(r->end - r->at) < bytes)
    return pb_bad(r->f, r->at, "a number runs past the end of its message");
  r->num = 0;
  for (u32 k = 0; k < bytes; k++) r->num |= (u64)r->at[k] << 8 * k;
  r->at += bytes;
  return true;
}

// One field, groups unskipped. False and bad, or false at the end.
static bool field(pb_reader *r) {
  const u8 *start = r->at;
  u64 tag;
  if (r->at == r->end || r->f->bad || !pb_varint(r, &tag)) return false;
  r->wire = (u32)(tag & 7);
  if (tag >> 3 == 0 || tag >> 32)
    return pb_bad(r->f, start, "field number %llu", (unsigned long long)(tag >> 3));
  r->field = (u32)(tag >> 3);
  switch (r->wire) {
  case PB_VARINT: return pb_varint(r, &r->num);
  case PB_64: return fixed(r, 8);
  case PB_32: return fixed(r, 4);
  case PB_GROUP:
  case PB_GROUP_END: return true;
  case PB_BYTES: {
    u64 n;
    if (!pb_varint(r, &n)) return false;
    u64 left = (u64)(r->end - r->at);
    if (n > left)
      return pb_bad(r->f, start, "a part of %llu bytes where its message has %llu left",
                    (unsigned long long)n, (unsigned long long)left);
    r->bytes = (pb_span){r->at, r->at + n};
    r->at += n;
    return true;
  }
  default: return pb_bad(r->f, start, "wire type %u does not exist", r->wire);
  }
}

bool pb_next(pb_reader *r) {
  // Groups are long out of use; one can only be an unknown field.
  u32 open[PB_DEPTH], n = 0;
  const u8 *start = r->at;
  while (field(r)) {
    if (r->wire == PB_GROUP) {
      if (n == PB_DEPTH) return pb_bad(r->f, start, "groups nest deeper than %d", PB_DEPTH);
      open[n++] = r->field;
    } else if (r->wire == PB_GROUP_END) {
      if (n == 0 || open[--n] != r->field) return pb_bad(r->f, start, "a group ends that did not begin");
    } else if (n == 0) {
      return true;
    }
  }
  return n ? pb_bad(r->f, start, "a group does not end") : false;
}

pb_reader pb_message(pb_reader *r) {
  pb_reader m = {.f = r->f, .at = r->bytes.at, .end = r->bytes.end, .depth = r->depth + 1};
  if (!pb_want(r, PB_BYTES, "message")) m.end = m.at;
  if (m.depth > PB_DEPTH) {
    pb_bad(r->f, m.at, "messages nest deeper than %d", PB_DEPTH);
    m.end = m.at;
  }
  return m;
}

bool pb_want(pb_reader *r, u32 wire, const char *what) {
  return r->wire == wire ||
         pb_bad(r->f, r->at, "field %u (%s) has wire type %u, not %u", r->field, what, r->wire, wire);
}

void pb_i64(pb_reader *r, i64 *out, const char *what) {
  if (pb_want(r, PB_VARINT, what)) *out = (i64)r->num;
}

void pb_sym(pb_reader *r, sym *out, const char *what) {
  if (!pb_want(r, PB_BYTES, what)) return;
  size_t n = (size_t)(r->bytes.end - r->bytes.at);
  if (memchr(r->bytes.at, 0, n))
    pb_bad(r->f, r->bytes.at, "field %u (%s) holds a zero byte", r->field, what);
  else
    *out = sym_ofn(r->f->c, (const char *)r->bytes.at, n);
}

bool pb_is(const pb_span *s, const char *text) {
  return (size_t)(s->end - s->at) == strlen(text) && !memcmp(s->at, text, strlen(text));
}

void pb_text(pb_reader *r, pb_span *out, const char *what) {
  if (pb_want(r, PB_BYTES, what)) *out = r->bytes;
}

void pb_i64s(pb_reader *r, i64_vec *out, const char *what) {
  if (r->wire == PB_VARINT) {
    *vec_push(r->f->a, out) = (i64)r->num;
    return;
  }
  if (!pb_want(r, PB_BYTES, what)) return;
  pb_reader run = {.f = r->f, .at = r->bytes.at, .end = r->bytes.end};
  for (u64 v = 0; run.at != run.end && pb_varint(&run, &v);) *vec_push(r->f->a, out) = (i64)v;
}

void pb_f32s(pb_reader *r, f32_vec *out, const char *what) {
  if (r->wire == PB_32) {
    u32 bits = (u32)r->num;
    memcpy(vec_push(r->f->a, out), &bits, sizeof bits);
    return;
  }
  if (!pb_want(r, PB_BYTES, what)) return;
  size_t n = (size_t)(r->bytes.end - r->bytes.at);
  if (n % 4)
    pb_bad(r->f, r->bytes.at, "field %u (%s): %zu bytes are not whole numbers of 4", r->field, what, n);
  else if (n)
    memcpy(vec_push_n(r->f->a, out, (u32)(n / 4)), r->bytes.at, n); // the file's byte order is ours
}

// ---- writing --------------------------------------------------------------------------------------------
void pb_put_varint(strbuf *b, u64 v) {
  char text[10];
  u32 n = 0;
  for (; v > 127; v >>= 7) text[n++] = (char)((v & 127) | 128);
  text[n++] = (char)v;
  sb_putn(b, text, n);
}

void pb_put_uint(strbuf *b, u32 field, u64 v) {
  pb_put_varint(b, (u64)field << 3 | PB_VARINT);
  pb_put_varint(b, v);
}

void pb_put_fixed64(strbuf *b, u32 field, u64 v) {
  char text[8];
  for (u32 k = 0; k < 8; k++) text[k] = (char)(v >> 8 * k);
  pb_put_varint(b, (u64)field << 3 | PB_64);
  sb_putn(b, text, sizeof text);
}

void pb_put_bytes(strbuf *b, u32 field, const char *v, size_t n) {
  pb_put_varint(b, (u64)field << 3 | PB_BYTES);
  pb_put_varint(b, n);
  sb_putn(b, v, n);
}

void pb_put_text(strbuf *b, u32 field, const char *text) { pb_put_bytes(b, field, text, strlen(text)); }
