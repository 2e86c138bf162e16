// parquet.h - columns of a Parquet file that lies in memory. Private to trace/. parquet.c has the idea.
#ifndef HEDDLE_TRACE_PARQUET_H
#define HEDDLE_TRACE_PARQUET_H
#include "base/base.h"

// What the values of a column are wanted as. WHOLE: of columns of booleans and integers. REAL: of these and of
// floating-point numbers. TEXT: of byte strings.
typedef enum { PARQUET_WHOLE, PARQUET_REAL, PARQUET_TEXT } parquet_kind;
typedef union {
  i64 whole;
  double real;
  sym text;
} parquet_value;
typedef struct parquet parquet;

// Of the n bytes of a file, which must stay. NULL and a diagnostic: it has no index that can be read.
parquet *parquet_open(ctx *c, arena *a, sym file, const u8 *data, size_t n);
u64 parquet_rows(const parquet *p); // below 2^32
// One value for every row, in their order; `none` where a row has none. NULL and a diagnostic: there is no such column,
// its values are of another kind, it is packed or written in a way that is not read, or its bytes are damaged.
parquet_value *parquet_column(parquet *p, arena *a, const char *column, parquet_kind kind,
                              parquet_value none);

// ---- parquet_page.c: values of one column -----------------------------------------------------------------
// Numbers of the format (parquet.thrift).
typedef enum {
  TYPE_BOOL,
  TYPE_I32,
  TYPE_I64,
  TYPE_I96,
  TYPE_F32,
  TYPE_F64,
  TYPE_BYTES,
  TYPE_FIXED
} parquet_type;
enum { PARQUET_PLAIN = 0, PARQUET_PLAIN_DICTIONARY = 2, PARQUET_RLE = 3, PARQUET_RLE_DICTIONARY = 8 };
typedef struct {
  ctx *c;
  loc at; // of diagnostics: file and column
  parquet_type type;
  bool is_unsigned, optional;
  parquet_kind kind;
  parquet_value none;
  parquet_value *dict; // of the chunk
  u32 ndict;
  bool has_dict;
} parquet_reading;
// Values written plain: n of them. False and a diagnostic: too few bytes.
bool parquet_plain(parquet_reading *r, const u8 *p, size_t size, u32 n, parquet_value *out);
// A page of n rows from its unpacked parts: `levels` say which rows have a value (NULL: all have).
bool parquet_page(parquet_reading *r, arena *tmp, const u8 *levels, size_t nlevels, const u8 *p, size_t size,
                  u32 encoding, u32 n, parquet_value *out);
// Unpacks p into exactly `want` bytes. NULL and a diagnostic: damaged, or a codec that is not read.
const u8 *parquet_unpack(parquet_reading *r, arena *tmp, u32 codec, const u8 *p, size_t n, size_t want);
bool parquet_bad(const parquet_reading *r, const char *fmt, ...) PRINTF_LIKE(2, 3); // a diagnostic; false
#endif
