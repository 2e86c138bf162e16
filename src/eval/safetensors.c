// safetensors.c - arrays as safetensors keeps them: the length of a header, the header, elements.
//
// Format: 8 bytes N, little-endian; N bytes of JSON, {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
// "__metadata__": {"KEY": "TEXT"}}; elements without gaps. What is written here has checksums among its notes. The
// header, which has them, is written last: until then the file begins with zeros, and is none.
#include "eval/internal.h"
#include <stdlib.h>
#include <zlib.h>

enum { HEADER_MOST = 100000000, CRC_DIGITS = 8 }; // the reference implementation refuses longer headers
static const char CHECKSUMS[] = "heddle.crc32";

static const struct {
  const char *name;
  dtype t;
} types[] = {{"F64", DT_F64}, {"F32", DT_F32}, {"F16", DT_F16},  {"BF16", DT_BF16}, {"I64", DT_I64},
             {"I32", DT_I32}, {"I16", DT_I16}, {"I8", DT_I8},    {"U64", DT_U64},   {"U32", DT_U32},
             {"U16", DT_U16}, {"U8", DT_U8},   {"BOOL", DT_BOOL}};

static dtype type_named(const char *name) {
  for (u32 k = 0; k < COUNT_OF(types); k++)
    if (!strcmp(types[k].name, name)) return types[k].t;
  return DT_NONE;
}
static const char *name_of_type(dtype t) {
  for (u32 k = 0; k < COUNT_OF(types); k++)
    if (types[k].t == t) return types[k].name;
  return "F32";
}

static u32 crc_of(u32 crc, const void *data, i64 n) {
  for (const u8 *p = data; n > 0;) {
    const uInt most = (uInt)MIN(n, (i64)1 << 30);
    crc = (u32)crc32(crc, p, most);
    p += most, n -= most;
  }
  return crc;
}

// ---- reading -----------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  const char *path;
  const char *header;
  size_t nheader;
  const u8 *data;
  u64 ndata;
  safetensors *out;
  i64 *begin; // by item
} reading;

static bool bad(const reading *r, const char *tensor, const char *why) {
  ctx *c = r->c;
  diag(c, E_SAFETENSORS, loc_node(c, sym_of(c, r->path), tensor ? sym_of(c, tensor) : (sym){0}, (sym){0}),
       "%s", why);
  return false;
}

static bool integer(const json *j, i64 *out) {
  if (!j || j->kind != JSON_NUM || !(j->num >= 0) || j->num > 0x1p53 || j->num != (double)(i64)j->num)
    return false;
  *out = (i64)j->num;
  return true;
}

static bool read_tensor(reading *r, const char *name, const json *j) {
  const json *t = json_get(j, "dtype"), *dims = json_get(j, "shape"), *at = json_get(j, "data_offsets");
  shape s = {.t = t && t->kind == JSON_STR ? type_named(t->str) : DT_NONE};
  i64 from = 0, to = 0, elems = 1, bytes = 0;
  if (!t || t->kind != JSON_STR || !dims || dims->kind != JSON_ARR || !at || at->kind != JSON_ARR ||
      at->n != 2)
    return bad(r, name, "the header does not say dtype, shape and data_offsets of a tensor");
  if (!s.t) return bad(r, name, arena_printf(r->a, "elements of type %s are not known", t->str));
  if (dims->n > DIMS_MAX)
    return bad(r, name,
               arena_printf(r->a, "a tensor of %u dimensions; there are at most %d", dims->n, DIMS_MAX));
  for (; s.nd < dims->n; s.nd++)
    if (!integer(&dims->item[s.nd], &s.dim[s.nd]) || !mul_i64(elems, s.dim[s.nd], &elems))
      return bad(r, name, "the shape of a tensor cannot be read");
  if (!integer(&at->item[0], &from) || !integer(&at->item[1], &to) || from > to ||
      !mul_i64(elems, (i64)dtype_bytes(s.t), &bytes))
    return bad(r, name, "data_offsets of a tensor cannot be read");
  if ((u64)to > r->ndata)
    return bad(r, name,
               arena_printf(r->a, "the file is cut off: elements end at byte %lld, and %llu bytes are there",
                            (long long)to, (unsigned long long)r->ndata));
  if (to - from != bytes)
    return bad(r, name,
               arena_printf(r->a, "%lld elements take %lld bytes; data_offsets have %lld", (long long)elems,
                            (long long)bytes, (long long)(to - from)));
  const u32 k = r->out->n++;
  r->begin[k] = from;
  const u8 *data = r->data + from;
  void *own =
      (uintptr_t)data % dtype_bytes(s.t) ? arena_dup(r->a, data, (size_t)bytes) : (void *)(uintptr_t)data;
  r->out->item[k] = (eval_named){arena_strdup(r->a, name), {s, own}};
  return true;
}

static bool read_notes(reading *r, const json *j) {
  if (j->kind != JSON_OBJ) return bad(r, NULL, "__metadata__ is no object");
  r->out->note = NEWN(r->a, safetensors_note, j->n + 1);
  for (u32 k = 0; k < j->n; k++) {
    if (j->item[k].kind != JSON_STR) return bad(r, j->key[k], "a note of __metadata__ is no text");
    r->out->note[r->out->nnotes++] =
        (safetensors_note){arena_strdup(r->a, j->key[k]), arena_strdup(r->a, j->item[k].str)};
  }
  return true;
}

static _Thread_local const i64 *sort_begin;
static int by_begin(const void *x, const void *y) {
  const u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return sort_begin[a] != sort_begin[b] ? (sort_begin[a] < sort_begin[b] ? -1 : 1) : a < b ? -1 : a > b;
}

// Elements lie behind each other without gaps, each tensor's where the one before ends, and no name occurs twice.
static bool in_order(reading *r) {
  safetensors *s = r->out;
  u32 *order = NEWN(r->a, u32, s->n + 1);
  eval_named *item = NEWN(r->a, eval_named, s->n + 1);
  i64 at = 0;
  hmap named = {0};
  for (u32 k = 0; k < s->n; k++) order[k] = k;
  sort_begin = r->begin;
  qsort(order, s->n, sizeof *order, by_begin);
  for (u32 k = 0; k < s->n; k++) {
    const eval_named *x = &s->item[order[k]];
    const sym name = sym_of(r->c, x->name);
    if (hmap_get(&named, name.i)) return bad(r, x->name, "a tensor is there twice");
    hmap_add(r->a, &named, name.i, k + 1);
    if (r->begin[order[k]] != at)
      return bad(r, x->name, "elements overlap, or leave a gap before this tensor");
    at += shape_elems(&x->x.s) * (i64)dtype_bytes(x->x.s.t);
    item[k] = *x;
  }
  s->item = item;
  if ((u64)at == r->ndata) return true;
  return bad(r, NULL,
             arena_printf(r->a, "elements of tensors take %lld bytes; behind the header are %llu",
                          (long long)at, (unsigned long long)r->ndata));
}

static bool read_hex(const char **p, u32 *out) {
  char *stop;
  if (!**p) return false;
  *out = (u32)strtoul(*p, &stop, 16);
  const bool ok = stop == *p + CRC_DIGITS && (!*stop || *stop == ' ');
  *p = *stop ? stop + 1 : stop;
  return ok;
}

// The header's checksum is that of the header in which it is eight zeros.
static bool checksums_hold(reading *r) {
  const char *text = safetensors_find(r->out, CHECKSUMS), *p = text;
  u32 want;
  if (!text) return true;
  const char *key = strstr(r->header, CHECKSUMS);
  char *own = arena_strndup(r->a, r->header, r->nheader),
       *at = key ? strstr(own + (key - r->header), text) : NULL;
  if (!at || !read_hex(&p, &want)) return bad(r, NULL, "the checksums cannot be read");
  memset(at, '0', CRC_DIGITS);
  if (crc_of(0, own, (i64)r->nheader) != want)
    return bad(r, NULL, "the header is not what was written: its checksum differs");
  for (u32 k = 0; k < r->out->n; k++) {
    const eval_array *x = &r->out->item[k].x;
    if (!read_hex(&p, &want)) return bad(r, r->out->item[k].name, "there is no checksum for a tensor");
    if (crc_of(0, x->data, shape_bytes(&x->s)) != want)
      return bad(r, r->out->item[k].name, "the tensor is not what was written: its checksum differs");
  }
  return true;
}

static bool read_file(reading *r) {
  const file_view *f = &r->out->f;
  u64 n = 0;
  for (u32 k = 8; f->size >= 8 && k-- > 0;) n = n << 8 | f->data[k];
  if (f->size < 8 || !n || n > HEADER_MOST || n > f->size - 8)
    return bad(r, NULL,
               f->size >= 8 && n && n <= HEADER_MOST
                   ? arena_printf(r->a, "the file is cut off: its header has %llu bytes, the file %zu",
                                  (unsigned long long)n, f->size)
                   : "not a safetensors file: it does not begin with the length of a header");
  r->nheader = (size_t)n;
  r->header = arena_strndup(r->a, (const char *)f->data + 8, r->nheader);
  r->data = f->data + 8 + n, r->ndata = f->size - 8 - n;
  if (r->header[0] != '{') return bad(r, NULL, "not a safetensors file: its header is no JSON object");
  const json *j = json_parse(r->c, r->a, sym_of(r->c, r->path), r->header, r->nheader);
  if (!j) return false;
  r->out->item = NEWN(r->a, eval_named, j->n + 1);
  r->begin = NEWN(r->a, i64, j->n + 1);
  for (u32 k = 0; k < j->n; k++) {
    const bool notes = !strcmp(j->key[k], "__metadata__");
    if (!(notes ? read_notes(r, &j->item[k]) : read_tensor(r, j->key[k], &j->item[k]))) return false;
  }
  r->out->checked = safetensors_find(r->out, CHECKSUMS);
  return in_order(r) && checksums_hold(r);
}

bool safetensors_open(ctx *c, arena *a, const char *path, safetensors *out) {
  *out = (safetensors){0};
  if (!file_map(c, path, &out->f)) return false;
  reading r = {.c = c, .a = a, .path = path, .out = out};
  if (read_file(&r)) return true;
  safetensors_close(out);
  return false;
}

void safetensors_close(safetensors *s) {
  file_unmap(&s->f);
  *s = (safetensors){0};
}

const char *safetensors_find(const safetensors *s, const char *key) {
  for (u32 k = 0; k < s->nnotes; k++)
    if (!strcmp(s->note[k].key, key)) return s->note[k].value;
  return NULL;
}

// ---- writing -----------------------------------------------------------------------------------------------
struct safetensors_out {
  file_out *f;
  arena *a;
  const safetensors_entry *e;
  u32 n, next;
  char *file; // length and header, still with zeros for checksums
  size_t nfile, crc_at;
  u32 *crc;
};

static void put_notes(safetensors_out *o, strbuf *b, const safetensors_note *note, u32 nnotes) {
  sb_put(b, "{\"__metadata__\":{");
  for (u32 k = 0; k < nnotes; k++) {
    sb_json_str(b, note[k].key);
    sb_char(b, ':');
    sb_json_str(b, note[k].value);
    sb_char(b, ',');
  }
  sb_fmt(b, "\"%s\":\"", CHECKSUMS);
  o->crc_at = b->n;
  for (u32 k = 0; k <= o->n; k++) sb_put(b, k ? " 00000000" : "00000000");
  sb_put(b, "\"}");
}

// The elements begin at a multiple of 64.
static void make_header(safetensors_out *o, const safetensors_note *note, u32 nnotes) {
  strbuf b = {.a = o->a};
  i64 at = 0;
  sb_put(&b, "\1\1\1\1\1\1\1\1"); // the length, known at the end
  put_notes(o, &b, note, nnotes);
  for (u32 k = 0; k < o->n; k++) {
    const shape *s = &o->e[k].s;
    sb_char(&b, ',');
    sb_json_str(&b, o->e[k].name);
    sb_fmt(&b, ":{\"dtype\":\"%s\",\"shape\":[", name_of_type(s->t));
    for (u32 d = 0; d < s->nd; d++) sb_fmt(&b, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    sb_fmt(&b, "],\"data_offsets\":[%lld,", (long long)at);
    sb_fmt(&b, "%lld]}", (long long)(at += shape_bytes(s)));
  }
  sb_char(&b, '}');
  while (b.n % 64) sb_char(&b, ' ');
  for (u32 k = 0; k < 8; k++) b.v[k] = (char)((b.n - 8) >> 8 * k & 255);
  o->file = b.v, o->nfile = b.n;
}

safetensors_out *safetensors_begin(ctx *c, arena *a, const char *path, const safetensors_entry *e, u32 n,
                                   const safetensors_note *note, u32 nnotes) {
  safetensors_out *o = NEW(a, safetensors_out);
  *o = (safetensors_out){.a = a, .e = e, .n = n, .crc = ZNEWN(a, u32, n + 1)};
  make_header(o, note, nnotes);
  if (!(o->f = file_begin(c, a, path))) return NULL;
  file_durable(o->f);
  file_put(o->f, arena_zalloc(a, o->nfile), o->nfile);
  return o;
}

void safetensors_put(safetensors_out *o, const void *data) {
  const i64 n = shape_bytes(&o->e[o->next].s);
  o->crc[o->next++] = crc_of(0, data, n);
  file_put(o->f, data, (size_t)n);
}

static void put_hex(safetensors_out *o, u32 k, u32 crc) {
  char text[CRC_DIGITS + 1];
  snprintf(text, sizeof text, "%08x", crc);
  memcpy(o->file + o->crc_at + (size_t)k * (CRC_DIGITS + 1), text, CRC_DIGITS);
}

bool safetensors_end(safetensors_out *o) {
  assert(o->next == o->n);
  for (u32 k = 0; k < o->n; k++) put_hex(o, k + 1, o->crc[k]);
  put_hex(o, 0, crc_of(0, o->file + 8, (i64)o->nfile - 8));
  file_put_at(o->f, 0, o->file, o->nfile);
  return file_end(o->f);
}

void safetensors_drop(safetensors_out *o) { file_drop(o->f); }

bool safetensors_write(ctx *c, const char *path, const eval_named *item, u32 n) {
  arena *a = arena_new();
  safetensors_entry *e = NEWN(a, safetensors_entry, n + 1);
  for (u32 k = 0; k < n; k++) e[k] = (safetensors_entry){item[k].name, item[k].x.s};
  safetensors_out *o = safetensors_begin(c, a, path, e, n, NULL, 0);
  for (u32 k = 0; o && k < n; k++) safetensors_put(o, item[k].x.data);
  const bool ok = o && safetensors_end(o);
  arena_free(a);
  return ok;
}
