// parquet_page.c - one page of a Parquet column: unpacking it, which rows have a value, and the values, written one
// after the other or as numbers of a dictionary.
//
// Idea: numbers of few bits (levels, places in a dictionary) come as runs, a repeated number or a row of packed ones.
// They are spread to 32 bits first; a page has some ten thousand rows.
// Sources: apache/parquet-format, Encodings.md and Compression.md; google/snappy, format_description.txt.
#include "trace/parquet.h"
#include <zlib.h>

bool parquet_bad(const parquet_reading *r, const char *fmt, ...) {
  va_list ap;
  char text[256];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(r->c, E_PARQUET, r->at, "%s", text);
  return false;
}

static u64 little(const u8 *p, u32 n) {
  u64 x = 0;
  for (u32 k = 0; k < n; k++) x |= (u64)p[k] << 8 * k;
  return x;
}

static bool count(const u8 **p, const u8 *end, u64 *out) { // 7 bits a byte, the lowest first
  *out = 0;
  for (u32 k = 0; k < 64 && *p < end; k += 7) {
    const u8 b = *(*p)++;
    *out |= (u64)(b & 127) << k;
    if (b < 128) return true;
  }
  return false;
}

// ---- packing --------------------------------------------------------------------------------------------
// Pieces: bytes as they are, or a copy of what came `back` bytes before. False: damaged.
static bool snappy(const u8 *p, size_t n, u8 *out, size_t want) {
  const u8 *end = p + n;
  u64 said;
  size_t at = 0;
  if (!count(&p, end, &said) || said != want) return false;
  while (p < end) {
    const u8 tag = *p++;
    const u32 kind = tag & 3, high = tag >> 2;
    const u32 extra = kind ? (kind == 3 ? 4 : kind) : high >= 60 ? high - 59 : 0;
    if (extra > (size_t)(end - p)) return false;
    const u64 x = little(p, extra);
    p += extra;
    const u64 len = kind == 1 ? 4 + (high & 7) : kind || high < 60 ? high + 1 : x + 1;
    if (len > want - at) return false;
    if (!kind) {
      if (len > (u64)(end - p)) return false;
      memcpy(out + at, p, len);
      p += len, at += len;
    } else {
      const u64 back = kind == 1 ? (u64)(high >> 3) << 8 | x : x;
      if (!back || back > at) return false;
      for (u64 k = 0; k < len; k++, at++) out[at] = out[at - back]; // may overlap
    }
  }
  return at == want;
}

static bool gzip(const u8 *p, size_t n, u8 *out, size_t want) {
  z_stream z = {.next_in = (u8 *)(uintptr_t)p, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)want};
  if (inflateInit2(&z, 15 + 32) != Z_OK) base_out_of_memory(sizeof z);
  const int state = inflate(&z, Z_FINISH);
  inflateEnd(&z);
  return state == Z_STREAM_END && !z.avail_out;
}

const u8 *parquet_unpack(parquet_reading *r, arena *tmp, u32 codec, const u8 *p, size_t n, size_t want) {
  // How much longer than itself what is packed can become: nothing is made ready that cannot be filled.
  static const struct {
    const char *name;
    bool (*unpack)(const u8 *p, size_t n, u8 *out, size_t want);
    u32 times;
  } codecs[] = {{"none", NULL, 1},   {"snappy", snappy, 64}, {"gzip", gzip, 1100},   {"LZO", NULL, 0},
                {"Brotli", NULL, 0}, {"LZ4", NULL, 0},       {"Zstandard", NULL, 0}, {"LZ4", NULL, 0}};
  const bool known = codec < COUNT_OF(codecs);
  if (!known || !codecs[codec].times) {
    parquet_bad(r, "the pages are packed with %s, which is not read",
                known ? codecs[codec].name : "an unknown codec");
    diag_hint(r->c, "write the table with compression snappy, gzip or none");
    return NULL;
  }
  if (!codec) {
    if (n == want) return p;
  } else if (want / codecs[codec].times <= n && want < UINT32_MAX && n < UINT32_MAX) {
    u8 *out = arena_alloc(tmp, want + 1);
    if (codecs[codec].unpack(p, n, out, want)) return out;
  }
  parquet_bad(r, "a page of %zu bytes does not unpack (%s) to %zu", n, codecs[codec].name, want);
  return NULL;
}

// ---- runs -----------------------------------------------------------------------------------------------
// n numbers of `bits` bits each. False: there are fewer.
static bool runs(const u8 *p, size_t size, u32 bits, u32 n, u32 *out) {
  const u8 *end = p + size;
  const u32 bytes = (bits + 7) / 8;
  for (u32 k = 0; k < n;) {
    u64 head;
    if (!count(&p, end, &head)) return false;
    const u64 many = MIN(head & 1 ? (head >> 1) * 8 : head >> 1, (u64)(n - k));
    if (head >> 1 > UINT32_MAX) return false;
    if (!(head & 1)) {
      if (bytes > (size_t)(end - p) || !many) return false;
      const u32 x = (u32)little(p, bytes);
      p += bytes;
      if ((u64)x >> bits) return false;
      for (u64 i = 0; i < many; i++) out[k++] = x;
      continue;
    }
    const u64 whole = MIN((head >> 1) * bits, (u64)(end - p)); // the last run may lack what fills it up
    if (!many || (many * bits + 7) / 8 > whole) return false;
    const u32 mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
    for (u64 i = 0; i < many; i++) {
      const u64 bit = i * bits;
      const u32 have = (u32)MIN((u64)5, whole - MIN(whole, bit / 8));
      out[k++] = (u32)(little(p + bit / 8, have) >> bit % 8) & mask;
    }
    p += whole;
  }
  return true;
}

// ---- values ---------------------------------------------------------------------------------------------
static parquet_value number(const parquet_reading *r, i64 x) {
  return r->kind == PARQUET_REAL ? (parquet_value){.real = (double)x} : (parquet_value){.whole = x};
}

static bool plain_texts(parquet_reading *r, const u8 *p, size_t size, u32 n, parquet_value *out) {
  const u8 *end = p + size;
  for (u32 k = 0; k < n; k++) {
    if (end - p < 4) return false;
    const u32 len = (u32)little(p, 4);
    p += 4;
    if (len > (size_t)(end - p)) return false;
    const u8 *nul = memchr(p, 0, len);
    out[k] = (parquet_value){.text = sym_ofn(r->c, (const char *)p, nul ? (size_t)(nul - p) : len)};
    p += len;
  }
  return true;
}

bool parquet_plain(parquet_reading *r, const u8 *p, size_t size, u32 n, parquet_value *out) {
  const u32 width = r->type == TYPE_I32 || r->type == TYPE_F32 ? 4 : r->type == TYPE_BOOL ? 0 : 8;
  const bool enough = r->type == TYPE_BYTES  ? plain_texts(r, p, size, n, out)
                      : r->type == TYPE_BOOL ? ((u64)n + 7) / 8 <= size
                                             : (u64)n * width <= size;
  if (!enough) return parquet_bad(r, "a page is too short for its %u values", n);
  for (u32 k = 0; k < n && r->type != TYPE_BYTES; k++) {
    const u64 x = r->type == TYPE_BOOL ? p[k / 8] >> k % 8 & 1 : little(p + (size_t)k * width, width);
    float f;
    double d;
    if (r->type == TYPE_F32)
      memcpy(&f, &(u32){(u32)x}, 4), out[k] = (parquet_value){.real = f};
    else if (r->type == TYPE_F64)
      memcpy(&d, &x, 8), out[k] = (parquet_value){.real = d};
    else
      out[k] = number(r, r->type == TYPE_I32 && !r->is_unsigned ? (i64)(int32_t)(u32)x : (i64)x);
  }
  return true;
}

static bool from_dictionary(parquet_reading *r, const u8 *p, size_t size, u32 n, u32 *number_of,
                            parquet_value *out) {
  if (!r->has_dict) return parquet_bad(r, "a page has numbers of a dictionary that is missing");
  if (!n) return true;
  if (!size || *p > 32 || !runs(p + 1, size - 1, *p, n, number_of))
    return parquet_bad(r, "a page is too short for its %u values", n);
  for (u32 k = 0; k < n; k++) {
    if (number_of[k] >= r->ndict)
      return parquet_bad(r, "value %u of a dictionary of %u", number_of[k], r->ndict);
    out[k] = r->dict[number_of[k]];
  }
  return true;
}

static bool values(parquet_reading *r, const u8 *p, size_t size, u32 encoding, u32 n, u32 *tmp,
                   parquet_value *out) {
  static const char *const name[] = {[4] = "BIT_PACKED",
                                     [5] = "DELTA_BINARY_PACKED",
                                     [6] = "DELTA_LENGTH_BYTE_ARRAY",
                                     [7] = "DELTA_BYTE_ARRAY",
                                     [9] = "BYTE_STREAM_SPLIT"};
  if (encoding == PARQUET_PLAIN) return parquet_plain(r, p, size, n, out);
  if (encoding == PARQUET_PLAIN_DICTIONARY || encoding == PARQUET_RLE_DICTIONARY)
    return from_dictionary(r, p, size, n, tmp, out);
  if (encoding == PARQUET_RLE && r->type == TYPE_BOOL) {
    if (size < 4 || !runs(p + 4, size - 4, 1, n, tmp))
      return parquet_bad(r, "a page is too short for its %u values", n);
    for (u32 k = 0; k < n; k++) out[k] = number(r, tmp[k]);
    return true;
  }
  const char *known = encoding < COUNT_OF(name) ? name[encoding] : NULL;
  parquet_bad(r, "the values are in encoding %s, which is not read", known ? known : "of an unknown number");
  diag_hint(r->c, "write the table with plain or dictionary encoding");
  return false;
}

bool parquet_page(parquet_reading *r, arena *tmp, const u8 *levels, size_t nlevels, const u8 *p, size_t size,
                  u32 encoding, u32 n, parquet_value *out) {
  u32 *number_of = NEWN(tmp, u32, n + 1);
  if (!levels) return values(r, p, size, encoding, n, number_of, out);
  u32 *there = NEWN(tmp, u32, n + 1), have = 0;
  if (!runs(levels, nlevels, 1, n, there)) return parquet_bad(r, "a page is too short for its %u rows", n);
  for (u32 k = 0; k < n; k++) have += there[k];
  if (!values(r, p, size, encoding, have, number_of, out)) return false;
  for (u32 k = n; k-- > 0;)
    out[k] = there[k] ? out[--have] : r->none; // from behind: nothing is overwritten before use
  return true;
}
