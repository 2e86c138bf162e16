// npy.c - arrays as numpy keeps them: .npy (one array) and .npz (a zip archive of them).
//
// Formats: numpy.lib.format, versions 1.0 to 3.0; PKWARE APPNOTE 6.3 with methods 0 (stored) and 8
// (deflated), zip64 sizes included. Everything in a file is an offset or a length that somebody else wrote:
// each is checked against the bytes that are there before it is used.
#include "eval/internal.h"
#include <zlib.h>

// ---- .npy ----------------------------------------------------------------------------------------------

static bool bad(ctx *c, const char *path, const char *why) {
  diag(c, E_NPY, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}), "%s: %s", path, why);
  return false;
}

// "<f4" -> type; *swap where the bytes come most significant first.
static dtype type_of_descr(const char *d, size_t n, bool *swap) {
  static const struct {
    char text[3];
    dtype t;
  } known[] = {{"f2", DT_F16}, {"f4", DT_F32}, {"f8", DT_F64}, {"i1", DT_I8},
               {"i2", DT_I16}, {"i4", DT_I32}, {"i8", DT_I64}, {"u1", DT_U8},
               {"u2", DT_U16}, {"u4", DT_U32}, {"u8", DT_U64}, {"b1", DT_BOOL}};
  if (n != 3 || !strchr("<>|=", d[0])) return DT_NONE;
  *swap = d[0] == '>';
  for (u32 k = 0; k < COUNT_OF(known); k++)
    if (!memcmp(d + 1, known[k].text, 2)) return known[k].t;
  return DT_NONE;
}

static const char *descr_of_type(dtype t) {
  static const char *const text[DT_COUNT] = {
      [DT_F16] = "<f2", [DT_F32] = "<f4", [DT_F64] = "<f8", [DT_I8] = "|i1",
      [DT_I16] = "<i2", [DT_I32] = "<i4", [DT_I64] = "<i8", [DT_U8] = "|u1",
      [DT_U16] = "<u2", [DT_U32] = "<u4", [DT_U64] = "<u8", [DT_BOOL] = "|b1"};
  return text[t];
}

// The text after "'key':" in the header, blanks skipped; NULL if the key is missing.
static const char *entry(const char *header, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s'", key);
  const char *p = strstr(header, quoted);
  if (!p) return NULL;
  p += strlen(quoted);
  while (*p == ' ') p++;
  if (*p++ != ':') return NULL;
  while (*p == ' ') p++;
  return p;
}

// "(2, 3)" into the shape; false if it is anything else, or too large to count.
static bool parse_shape(const char *p, shape *s) {
  if (*p++ != '(') return false;
  i64 total = 1;
  for (;;) {
    while (*p == ' ') p++;
    if (*p == ')') return true;
    if (*p < '0' || *p > '9' || s->nd == DIMS_MAX) return false;
    i64 n = 0;
    for (; *p >= '0' && *p <= '9'; p++)
      if (!mul_i64(n, 10, &n) || (n += *p - '0') < 0) return false;
    if (*p == 'L') p++;
    s->dim[s->nd++] = n;
    if (n && !mul_i64(total, n, &total)) return false;
    while (*p == ' ') p++;
    if (*p == ',')
      p++;
    else if (*p != ')')
      return false;
  }
}

static void swap_bytes(u8 *p, i64 n, u32 width) {
  for (i64 k = 0; k < n; k++, p += width)
    for (u32 i = 0; i < width / 2; i++) {
      u8 t = p[i];
      p[i] = p[width - 1 - i];
      p[width - 1 - i] = t;
    }
}

// The elements where they lie in the file; *swap: their bytes come most significant first.
static bool npy_look(ctx *c, arena *a, const char *path, const u8 *data, size_t size, eval_array *out,
                     bool *swap) {
  if (size < 10 || memcmp(data, "\x93NUMPY", 6)) return bad(c, path, "not a .npy array");
  u32 wide = data[6] >= 2 ? 4 : 2;
  if (data[6] < 1 || data[6] > 3 || size < 8 + wide)
    return bad(c, path, "a version of the format that is not known");
  size_t len = data[8] | (size_t)data[9] << 8;
  if (wide == 4) len |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  if (len > size - 8 - wide) return bad(c, path, "the header is cut off");
  const char *header = arena_strndup(a, (const char *)data + 8 + wide, len);
  const char *descr = entry(header, "descr"), *order = entry(header, "fortran_order"),
             *dims = entry(header, "shape");
  const char *quote = descr && *descr == '\'' ? strchr(descr + 1, '\'') : NULL;
  if (!quote || !order || !dims)
    return bad(c, path, "the header does not name descr, fortran_order and shape");
  *swap = false;
  shape s = {.t = type_of_descr(descr + 1, (size_t)(quote - descr - 1), swap)};
  if (!s.t)
    return bad(c, path,
               arena_printf(a, "elements of type %.*s are not known", (int)(quote - descr + 1), descr));
  if (!parse_shape(dims, &s)) return bad(c, path, "the shape cannot be read, or has more than 8 dimensions");
  if (!strncmp(order, "True", 4) && s.nd > 1)
    return bad(c, path, "elements are in Fortran order; numpy.ascontiguousarray mends it");
  i64 n = shape_elems(&s);
  size_t have = size - 8 - wide - len, width = dtype_bytes(s.t);
  if (n && (u64)n > have / width)
    return bad(c, path,
               arena_printf(a, "%lld elements of %zu bytes are announced, %zu bytes are there", (long long)n,
                            width, have));
  *out = (eval_array){s, (void *)(uintptr_t)(data + 8 + wide + len)};
  return true;
}

static void own_elements(arena *a, eval_array *x, bool swap) {
  x->data = arena_dup(a, x->data, (size_t)shape_bytes(&x->s));
  if (swap) swap_bytes(x->data, shape_elems(&x->s), (u32)dtype_bytes(x->s.t));
}

static bool npy_parse(ctx *c, arena *a, const char *path, const u8 *data, size_t size, eval_array *out) {
  bool swap;
  if (!npy_look(c, a, path, data, size, out, &swap)) return false;
  own_elements(a, out, swap);
  return true;
}

bool npy_map(ctx *c, arena *a, const char *path, file_view *f, eval_array *out) {
  bool swap;
  if (!file_map(c, path, f)) return false;
  if (!npy_look(c, a, path, f->data, f->size, out, &swap)) {
    file_unmap(f);
    return false;
  }
  if (swap || (uintptr_t)out->data % dtype_bytes(out->s.t)) own_elements(a, out, swap);
  return true;
}

bool npy_read(ctx *c, arena *a, const char *path, eval_array *out) {
  file_view f;
  if (!file_map(c, path, &f)) return false;
  bool ok = npy_parse(c, a, path, f.data, f.size, out);
  file_unmap(&f);
  return ok;
}

// The array as a .npy file in scratch.
static const u8 *npy_format(arena *a, const eval_array *x, size_t *size) {
  dtype t = x->s.t == DT_BF16 ? DT_F32 : x->s.t;
  i64 n = shape_elems(&x->s);
  strbuf h = {.a = a};
  sb_fmt(&h, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of_type(t));
  for (u32 d = 0; d < x->s.nd; d++) sb_fmt(&h, d ? ", %lld" : "%lld", (long long)x->s.dim[d]);
  sb_put(&h, x->s.nd == 1 ? ",), }" : "), }");
  while ((10 + h.n + 1) % 64) sb_char(&h, ' ');
  sb_char(&h, '\n');
  *size = 10 + h.n + (size_t)n * dtype_bytes(t);
  u8 *out = arena_alloc(a, *size);
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (u8)h.n;
  out[9] = (u8)(h.n >> 8);
  memcpy(out + 10, h.v, h.n);
  ker_convert(out + 10 + h.n, t, x->data, x->s.t, n);
  return out;
}

bool npy_write(ctx *c, const char *path, const eval_array *x) {
  arena *a = arena_new();
  size_t n;
  const u8 *data = npy_format(a, x, &n);
  bool ok = file_write(c, path, data, n);
  arena_free(a);
  return ok;
}

// ---- .npz ----------------------------------------------------------------------------------------------

static u64 le(const u8 *p, u32 n) {
  u64 v = 0;
  while (n-- > 0) v = v << 8 | p[n];
  return v;
}

typedef struct {
  const char *name;
  u32 method;
  u64 packed, size, at; // bytes in the file and unpacked; offset of the local header
} member;

// zip64: what did not fit the directory entry stands, in this order, in extra field 1.
static void widen(member *m, const u8 *extra, size_t n) {
  while (n >= 4) {
    u32 id = (u32)le(extra, 2), len = (u32)le(extra + 2, 2);
    if (len > n - 4) return;
    const u8 *p = extra + 4, *stop = p + len;
    u64 *field[3] = {&m->size, &m->packed, &m->at};
    for (u32 k = 0; k < 3 && id == 1; k++)
      if (*field[k] == 0xffffffff && stop - p >= 8) *field[k] = le(p, 8), p += 8;
    extra += 4 + len;
    n -= 4 + len;
  }
}

// Reads the directory entry at *at and moves behind it.
static bool directory_entry(arena *a, const file_view *f, u64 *at, member *m) {
  if (*at > f->size || f->size - *at < 46 || le(f->data + *at, 4) != 0x02014b50) return false;
  const u8 *p = f->data + *at;
  u32 name = (u32)le(p + 28, 2), extra = (u32)le(p + 30, 2), comment = (u32)le(p + 32, 2);
  if (f->size - *at - 46 < (u64)name + extra + comment) return false;
  *m = (member){arena_strndup(a, (const char *)p + 46, name), (u32)le(p + 10, 2), le(p + 20, 4),
                le(p + 24, 4), le(p + 42, 4)};
  widen(m, p + 46 + name, extra);
  *at += 46 + (u64)name + extra + comment;
  return true;
}

static const u8 *unpack(arena *a, const file_view *f, const member *m) {
  if (m->at > f->size || f->size - m->at < 30 || le(f->data + m->at, 4) != 0x04034b50) return NULL;
  u64 begin = m->at + 30 + le(f->data + m->at + 26, 2) + le(f->data + m->at + 28, 2);
  if (begin > f->size || f->size - begin < m->packed) return NULL;
  const u8 *in = f->data + begin;
  if (m->method == 0) return m->packed == m->size ? in : NULL;
  if (m->method != 8 || m->size / 1100 > m->packed) return NULL; // deflate cannot pack tighter
  u8 *out = arena_alloc(a, m->size);
  z_stream z = {0};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return NULL;
  u64 done_in = 0, done_out = 0;
  int status = Z_OK;
  while (status == Z_OK && (done_in < m->packed || done_out < m->size)) { // zlib counts in 32 bits
    z.next_in = (Bytef *)(uintptr_t)(in + done_in);
    z.avail_in = (uInt)MIN(m->packed - done_in, 1u << 30);
    z.next_out = out + done_out;
    z.avail_out = (uInt)MIN(m->size - done_out, 1u << 30);
    u32 had_in = z.avail_in, had_out = z.avail_out;
    status = inflate(&z, Z_NO_FLUSH);
    done_in += had_in - z.avail_in;
    done_out += had_out - z.avail_out;
  }
  inflateEnd(&z);
  return status == Z_STREAM_END && done_out == m->size ? out : NULL;
}

bool npz_read(ctx *c, arena *a, const char *path, eval_named **items, u32 *n) {
  file_view f;
  *n = 0;
  *items = NULL;
  if (!file_map(c, path, &f)) return false;
  bool ok = false;
  i64 tail = (i64)f.size - 22;
  while (tail >= 0 && tail + 22 + 65536 > (i64)f.size && le(f.data + tail, 4) != 0x06054b50) tail--;
  if (tail < 0 || tail + 22 + 65536 <= (i64)f.size)
    bad(c, path, "not a .npz archive, or its end is cut off");
  else {
    u64 count = le(f.data + tail + 10, 2), at = le(f.data + tail + 16, 4);
    if (at == 0xffffffff && tail >= 20 && le(f.data + tail - 20, 4) == 0x07064b50) { // zip64's own end record
      u64 end64 = le(f.data + tail - 12, 8);
      if (f.size >= 56 && end64 <= f.size - 56)
        count = le(f.data + end64 + 32, 8), at = le(f.data + end64 + 48, 8);
    }
    VEC(eval_named) list = {0};
    ok = true;
    for (u64 k = 0; k < count && ok; k++) {
      member m;
      const u8 *raw = NULL;
      arena *scratch = arena_new();
      ok = directory_entry(a, &f, &at, &m) && (raw = unpack(scratch, &f, &m));
      if (!ok)
        bad(c, path, "a member of the archive is damaged");
      else {
        size_t len = strlen(m.name);
        eval_named *it = vec_push(a, &list);
        it->name = len > 4 && !strcmp(m.name + len - 4, ".npy") ? arena_strndup(a, m.name, len - 4) : m.name;
        ok = npy_parse(c, a, arena_printf(a, "%s:%s", path, m.name), raw, m.size, &it->x);
      }
      arena_free(scratch);
    }
    *items = list.v;
    *n = list.n;
  }
  file_unmap(&f);
  return ok;
}

static void put_le(strbuf *b, u64 v, u32 n) {
  for (; n-- > 0; v >>= 8) sb_char(b, (char)(v & 255));
}

// What the local header and the directory entry have in common, after their signatures and versions.
static void put_common(strbuf *b, const char *name, size_t size, u32 crc) {
  put_le(b, 20, 2);         // version needed
  put_le(b, 0, 4);          // flags, method: stored
  put_le(b, 0x00210000, 4); // time and date: 1980-01-01, so that equal arrays make equal files
  put_le(b, crc, 4);
  put_le(b, size, 4);
  put_le(b, size, 4);
  put_le(b, strlen(name) + 4, 2);
  put_le(b, 0, 2);
}

bool npz_write(ctx *c, const char *path, const eval_named *items, u32 n) {
  arena *a = arena_new();
  strbuf file = {.a = a}, directory = {.a = a};
  bool ok = n < 65535;
  for (u32 k = 0; k < n && ok; k++) {
    size_t size, at = file.n;
    const u8 *data = npy_format(a, &items[k].x, &size);
    ok = file.n + size < 0xfff00000u;
    u32 crc = (u32)crc32(0, NULL, 0);
    if (ok) crc = (u32)crc32(crc, data, (uInt)size);
    put_le(&file, 0x04034b50, 4);
    put_common(&file, items[k].name, size, crc);
    sb_fmt(&file, "%s.npy", items[k].name);
    if (ok) sb_putn(&file, (const char *)data, size);
    put_le(&directory, 0x02014b50, 4);
    put_le(&directory, 20, 2);
    put_common(&directory, items[k].name, size, crc);
    put_le(&directory, 0, 6); // comment, disk, attributes
    put_le(&directory, 0, 4);
    put_le(&directory, at, 4);
    sb_fmt(&directory, "%s.npy", items[k].name);
  }
  if (ok) {
    size_t at = file.n;
    sb_putn(&file, sb_str(&directory), directory.n);
    put_le(&file, 0x06054b50, 4);
    put_le(&file, 0, 4);
    put_le(&file, n, 2);
    put_le(&file, n, 2);
    put_le(&file, directory.n, 4);
    put_le(&file, at, 4);
    put_le(&file, 0, 2);
    ok = file_write(c, path, file.v, file.n);
  } else
    diag(c, E_LIMIT, (loc){0}, "%s: an archive of %u arrays or 4 GiB is not written; write .npy files", path,
         n);
  arena_free(a);
  return ok;
}
