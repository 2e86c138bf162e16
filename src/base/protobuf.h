// protobuf.h - protobuf's wire format: read in place, and written. Part of base.h.
#ifndef HEDDLE_BASE_PROTOBUF_H
#define HEDDLE_BASE_PROTOBUF_H
#include "base/base.h"

typedef struct {
  const u8 *at, *end;
} pb_span;
typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const u8 *base;
  diag_id id;       // of diagnostics
  const char *hint; // of each diagnostic; NULL: none
  bool silent;      // gives none: the caller counts what is bad
  bool bad;         // every reader of the file stops
} pb_file;
enum { PB_VARINT = 0, PB_64 = 1, PB_BYTES = 2, PB_GROUP = 3, PB_GROUP_END = 4, PB_32 = 5 };
enum { PB_DEPTH = 100 }; // messages inside messages; protobuf's own limit
typedef struct {
  pb_file *f;
  const u8 *at, *end;
  u32 depth, field, wire;
  u64 num;       // PB_VARINT, PB_64, PB_32
  pb_span bytes; // PB_BYTES
} pb_reader;
typedef VEC(i64) i64_vec;
typedef VEC(float) f32_vec;

pb_reader pb_of(pb_file *f, const u8 *at, size_t n);
bool pb_next(pb_reader *r);             // the next field; false at the end or when the file is bad
bool pb_varint(pb_reader *r, u64 *out); // a bare number, such as the length before a message of a stream
pb_reader pb_message(pb_reader *r);     // reader of the message in the current field
bool pb_want(pb_reader *r, u32 wire, const char *what); // is it of this wire type? else a diagnostic
void pb_i64(pb_reader *r, i64 *out, const char *what);
void pb_sym(pb_reader *r, sym *out, const char *what);
void pb_text(pb_reader *r, pb_span *out, const char *what);
void pb_i64s(pb_reader *r, i64_vec *out, const char *what); // packed or one at a time
void pb_f32s(pb_reader *r, f32_vec *out, const char *what);
bool pb_is(const pb_span *s, const char *text);
bool pb_bad(pb_file *f, const u8 *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4); // a diagnostic at the byte; always false

// ---- writing --------------------------------------------------------------------------------------------
void pb_put_varint(strbuf *b, u64 v);
void pb_put_uint(strbuf *b, u32 field, u64 v);
void pb_put_fixed64(strbuf *b, u32 field, u64 v);
void pb_put_bytes(strbuf *b, u32 field, const char *v, size_t n); // text, or a message that is complete
void pb_put_text(strbuf *b, u32 field, const char *text);
#endif
