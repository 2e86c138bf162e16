// parquet.c - Parquet files: their index (footer), row groups and the pages of a column. Flat tables as data frames
// write them: columns of numbers and texts, with or without absent values. Not nested or repeated columns, not
// encryption. What is in a page: parquet_page.c.
//
// Idea: a file is columns, and its index at the end says where they begin. Only columns that are asked for are
// touched. Every offset, length and count of the file is checked before use against the bytes that there are, so that
// a damaged file ends in a diagnostic that names column and byte.
// Source of the format: github.com/apache/parquet-format, parquet.thrift and README.md; the index and page headers
// are in Thrift's compact protocol (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
#include "trace/parquet.h"

// A row takes a share of a byte where a column repeats itself, but a table has one that does not. Bounds what a file
// of few bytes can ask for.
enum { ROWS_PER_BYTE = 1024, ROWS = 1 << 28, NESTED = 32 };
enum { TOO_DEEP = ~0u };

// ---- Thrift's compact protocol ----------------------------------------------------------------------------
typedef struct {
  const u8 *at, *end;
  bool bad; // ended early, or is none
} thrift;
typedef enum {
  T_STOP,
  T_TRUE,
  T_FALSE,
  T_I8,
  T_I16,
  T_I32,
  T_I64,
  T_F64,
  T_TEXT,
  T_LIST,
  T_SET,
  T_MAP,
  T_STRUCT
} thrift_type;
typedef struct {
  u32 id;
  thrift_type type;
} field;

static u8 byte_of(thrift *t) {
  if (t->at < t->end) return *t->at++;
  t->bad = true;
  return 0;
}
static u64 varint(thrift *t) {
  u64 x = 0;
  for (u32 k = 0; k < 64; k += 7) {
    const u8 b = byte_of(t);
    x |= (u64)(b & 127) << k;
    if (b < 128) return x;
  }
  t->bad = true;
  return 0;
}
static i64 integer(thrift *t) {
  const u64 x = varint(t);
  return (i64)(x >> 1 ^ (0 - (x & 1)));
}
// The next field of a struct. Field ids are told as differences: f has the one before. False: the struct has ended.
static bool next_field(thrift *t, field *f) {
  const u8 head = byte_of(t);
  if (t->bad || !(head & 15)) return false;
  f->type = (thrift_type)(head & 15);
  f->id = head >> 4 ? f->id + (head >> 4) : (u32)integer(t);
  return !t->bad;
}
static u32 list_of(thrift *t, thrift_type *type) { // number of elements
  const u8 head = byte_of(t);
  *type = (thrift_type)(head & 15);
  const u64 n = head >> 4 == 15 ? varint(t) : head >> 4;
  if (n > (u64)(t->end - t->at)) t->bad = true; // an element takes a byte or more
  return t->bad ? 0 : (u32)n;
}
static const u8 *text_of(thrift *t, u32 *n) {
  const u64 k = varint(t);
  if (t->bad || k > (u64)(t->end - t->at)) {
    t->bad = true, *n = 0;
    return t->at;
  }
  *n = (u32)k, t->at += k;
  return t->at - k;
}
static void skip(thrift *t, thrift_type type, u32 depth) {
  u32 n;
  thrift_type of, value;
  if (depth > NESTED) t->bad = true;
  if (t->bad) return;
  switch (type) {
  case T_TRUE:
  case T_FALSE: return;
  case T_I8: byte_of(t); return;
  case T_I16:
  case T_I32:
  case T_I64: varint(t); return;
  case T_F64:
    for (u32 k = 0; k < 8; k++) byte_of(t);
    return;
  case T_TEXT: text_of(t, &n); return;
  case T_LIST:
  case T_SET:
    n = list_of(t, &of); // here booleans take a byte
    for (u32 k = 0; k < n && !t->bad; k++) skip(t, of == T_TRUE || of == T_FALSE ? T_I8 : of, depth + 1);
    return;
  case T_MAP: {
    const u64 pairs = varint(t);
    if (!pairs || t->bad) return;
    const u8 types = byte_of(t);
    of = (thrift_type)(types >> 4), value = (thrift_type)(types & 15);
    for (u64 k = 0; k < pairs && !t->bad; k++) {
      if (t->at == t->end) t->bad = true;
      skip(t, of <= T_FALSE ? T_I8 : of, depth + 1), skip(t, value <= T_FALSE ? T_I8 : value, depth + 1);
    }
    return;
  }
  case T_STRUCT:
    for (field f = {0}; next_field(t, &f);) skip(t, f.type, depth + 1);
    return;
  default: t->bad = true;
  }
}
// Of a field that is one: its value; another is passed over.
static void take_integer(thrift *t, field f, i64 *out) {
  if (f.type >= T_I16 && f.type <= T_I64)
    *out = integer(t);
  else
    skip(t, f.type, 0);
}
// Enters the list of structs that a field is. 0: it is something else, which is passed over.
static u32 structs_of(thrift *t, field f) {
  if (f.type != T_LIST) return skip(t, f.type, 0), 0;
  thrift_type of;
  const u32 n = list_of(t, &of);
  if (n && of != T_STRUCT) t->bad = true;
  return t->bad ? 0 : n;
}

// ---- the index ------------------------------------------------------------------------------------------
typedef struct {
  sym name;
  i64 type, children, repetition, converted; // as parquet.thrift numbers them; -1: not said
} element;
typedef struct {
  sym name; // with the names of what it is nested in, "a.b"
  parquet_type type;
  bool is_unsigned, optional, flat;
} column;
typedef struct {
  i64 codec, values, packed, data, dict; // dict: 0: none; all -1: absent
} chunk;
typedef struct {
  u64 rows;
  chunk *chunk; // one for every column
} group;
struct parquet {
  ctx *c;
  arena *a;
  sym file;
  const u8 *data;
  size_t n, body; // bytes before the index
  u64 rows;
  VEC(element) schema;
  VEC(column) columns;
  VEC(group) groups;
};

u64 parquet_rows(const parquet *p) { return p->rows; }

static bool bad_index(const parquet *p, const char *what) {
  diag(p->c, E_PARQUET, loc_node(p->c, p->file, (sym){0}, (sym){0}), "%s", what);
  return false;
}

static element take_element(parquet *p, thrift *t) {
  element e = {.type = -1, .converted = -1};
  for (field f = {0}; next_field(t, &f);) {
    u32 n;
    switch (f.id) {
    case 1: take_integer(t, f, &e.type); break;
    case 3: take_integer(t, f, &e.repetition); break;
    case 5: take_integer(t, f, &e.children); break;
    case 6: take_integer(t, f, &e.converted); break;
    case 4:
      if (f.type == T_TEXT) {
        const u8 *text = text_of(t, &n);
        e.name = sym_ofn(p->c, (const char *)text, n);
        break;
      } // fall through
    default: skip(t, f.type, 0);
    }
  }
  return e;
}

// Columns are the leaves of the tree that the elements are, depth first. Returns the element after this subtree.
static u32 take_tree(parquet *p, u32 k, sym within, bool optional, bool flat, u32 depth) {
  enum { OPTIONAL = 1, REPEATED = 2, UINT_8 = 11, UINT_64 = 14 };
  if (k >= p->schema.n || depth > NESTED) return TOO_DEEP;
  const element e = p->schema.v[k];
  const sym name = within.i ? sym_fmt(p->c, "%s.%s", sym_str(p->c, within), sym_str(p->c, e.name)) : e.name;
  if (depth) optional |= e.repetition == OPTIONAL, flat &= e.repetition != REPEATED && depth == 1;
  if (!e.children) {
    *vec_push(p->a, &p->columns) = (column){.name = name,
                                            .type = (parquet_type)e.type,
                                            .is_unsigned = e.converted >= UINT_8 && e.converted <= UINT_64,
                                            .optional = optional,
                                            .flat = flat && e.type >= 0 && e.type <= TYPE_FIXED};
    return k + 1;
  }
  u32 next = k + 1;
  for (i64 i = 0; i < e.children && next != TOO_DEEP; i++)
    next = take_tree(p, next, depth ? name : (sym){0}, optional, flat, depth + 1);
  return next;
}

static chunk take_chunk(thrift *t) { // a ColumnChunk, of which its ColumnMetaData matters
  chunk h = {.codec = -1, .values = -1, .packed = -1, .data = -1};
  for (field f = {0}; next_field(t, &f);) {
    if (f.id != 3 || f.type != T_STRUCT) {
      skip(t, f.type, 0);
      continue;
    }
    for (field m = {0}; next_field(t, &m);) {
      switch (m.id) {
      case 4: take_integer(t, m, &h.codec); break;
      case 5: take_integer(t, m, &h.values); break;
      case 7: take_integer(t, m, &h.packed); break;
      case 9: take_integer(t, m, &h.data); break;
      case 11: take_integer(t, m, &h.dict); break;
      default: skip(t, m.type, 0);
      }
    }
  }
  return h;
}

static void take_group(parquet *p, thrift *t) {
  group g = {.chunk = NEWN(p->a, chunk, p->columns.n + 1)};
  i64 rows = -1;
  u32 n = 0;
  for (field f = {0}; next_field(t, &f);) {
    if (f.id == 1) {
      const u32 of = structs_of(t, f);
      if (of != p->columns.n) t->bad = true;
      for (n = 0; n < of && !t->bad; n++) g.chunk[n] = take_chunk(t);
    } else if (f.id == 3) {
      take_integer(t, f, &rows);
    } else {
      skip(t, f.type, 0);
    }
  }
  if (rows < 0 || n != p->columns.n) t->bad = true;
  g.rows = (u64)rows;
  if (!t->bad) *vec_push(p->a, &p->groups) = g;
}

static bool take_index(parquet *p, thrift *t) {
  i64 rows = -1;
  for (field f = {0}; next_field(t, &f);) {
    u32 n;
    switch (f.id) {
    case 2:
      n = structs_of(t, f);
      for (u32 k = 0; k < n && !t->bad; k++) *vec_push(p->a, &p->schema) = take_element(p, t);
      if (p->columns.n || take_tree(p, 0, (sym){0}, false, true, 0) != p->schema.n) t->bad = true;
      break;
    case 3: take_integer(t, f, &rows); break;
    case 4:
      n = structs_of(t, f);
      for (u32 k = 0; k < n && !t->bad; k++) take_group(p, t);
      break;
    default: skip(t, f.type, 0);
    }
  }
  if (t->bad || rows < 0 || !p->columns.n) return bad_index(p, "the index at the end of the file is damaged");
  p->rows = (u64)rows;
  u64 sum = 0;
  for (u32 k = 0; k < p->groups.n && sum <= p->rows; k++) sum += MIN(p->groups.v[k].rows, p->rows + 1);
  if (sum == p->rows && p->rows <= ROWS && p->rows / ROWS_PER_BYTE <= p->n) return true;
  diag(p->c, E_PARQUET, loc_node(p->c, p->file, (sym){0}, (sym){0}),
       "the index says that the file of %llu bytes has %llu rows", (unsigned long long)p->n,
       (unsigned long long)p->rows);
  if (sum != p->rows) diag_note(p->c, (loc){0}, "its groups of rows have another number together");
  return false;
}

static u32 u32_at(const u8 *p) { return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24; }

parquet *parquet_open(ctx *c, arena *a, sym file, const u8 *data, size_t n) {
  enum { MAGIC = 4, TAIL = 8 };
  parquet *p = NEW(a, parquet);
  p->c = c, p->a = a, p->file = file, p->data = data, p->n = n;
  if (n >= MAGIC + TAIL && !memcmp(data + n - MAGIC, "PARE", MAGIC))
    return bad_index(p, "the index of the Parquet file is encrypted"), NULL;
  if (n < MAGIC + TAIL || memcmp(data + n - MAGIC, "PAR1", MAGIC))
    return bad_index(p, "the Parquet file ends early: the index that should be at its end is missing"), NULL;
  const u32 size = u32_at(data + n - TAIL);
  if (size > n - MAGIC - TAIL)
    return bad_index(p, "the index at the end of the file is said to be longer than the file"), NULL;
  p->body = n - TAIL - size;
  thrift t = {data + p->body, data + n - TAIL, false};
  return take_index(p, &t) ? p : NULL;
}

static u32 find(const parquet *p, const char *name) {
  for (u32 k = 0; k < p->columns.n; k++)
    if (!strcmp(sym_str(p->c, p->columns.v[k].name), name)) return k;
  return p->columns.n;
}
// Of all columns, "step, start, ..".
static const char *parquet_names(const parquet *p, arena *a) {
  strbuf b = {.a = a};
  assert(p->columns.v); // an index without columns is refused
  for (u32 k = 0; k < p->columns.n; k++)
    sb_fmt(&b, "%s%s", k ? ", " : "", sym_str(p->c, p->columns.v[k].name));
  return sb_str(&b);
}

// ---- pages of a column ------------------------------------------------------------------------------------
typedef enum { PAGE_DATA = 0, PAGE_INDEX = 1, PAGE_DICTIONARY = 2, PAGE_DATA_V2 = 3 } page_kind;
typedef struct {
  i64 kind, unpacked, packed;
  i64 values, encoding, levels; // levels: encoding of them, of v1
  i64 nlevels, nrepeats;        // bytes, of v2
  bool plain_bytes;             // of v2: its values are not packed
} page;

// The struct with what is particular to a kind of page: the value of its field k is number[k].
enum { KIND_FIELDS = 8 };
static void take_kind(thrift *t, i64 number[KIND_FIELDS], bool *plain_bytes) {
  for (field f = {0}; next_field(t, &f);) {
    if (f.id == 7) *plain_bytes = f.type == T_FALSE; // "is it packed?", of v2
    if (f.id < KIND_FIELDS)
      take_integer(t, f, &number[f.id]);
    else
      skip(t, f.type, 0);
  }
}

static page take_page(thrift *t) {
  enum { KIND_AT = 5 }; // fields 5, 7 and 8 have what a kind has
  i64 head[4] = {-1, -1, -1, -1}, of_kind[KIND_FIELDS] = {0, -1, -1, -1, -1};
  bool plain_bytes = false;
  for (field f = {0}; next_field(t, &f);) {
    if (f.id < COUNT_OF(head))
      take_integer(t, f, &head[f.id]);
    else if (f.type == T_STRUCT && f.id == (u64)head[1] + KIND_AT)
      take_kind(t, of_kind, &plain_bytes);
    else
      skip(t, f.type, 0);
  }
  const bool v2 = head[1] == PAGE_DATA_V2;
  return (page){.kind = head[1],
                .unpacked = head[2],
                .packed = head[3],
                .values = of_kind[1],
                .encoding = of_kind[v2 ? 4 : 2],
                .levels = of_kind[3],
                .nlevels = v2 ? of_kind[5] : 0,
                .nrepeats = v2 ? of_kind[6] : 0,
                .plain_bytes = plain_bytes};
}

static bool dictionary(parquet_reading *r, const page *g, const u8 *p, size_t size, arena *tmp) {
  if (g->encoding != PARQUET_PLAIN && g->encoding != PARQUET_PLAIN_DICTIONARY)
    return parquet_bad(r, "the dictionary is in encoding %lld, which is not read", (long long)g->encoding);
  if (g->values < 0 || (u64)g->values > 8 * size) return parquet_bad(r, "the dictionary is damaged");
  r->dict = NEWN(tmp, parquet_value, g->values + 1);
  r->ndict = (u32)g->values, r->has_dict = true;
  return parquet_plain(r, p, size, r->ndict, r->dict);
}

// Version 1: levels and values are packed together. Levels, of optional columns, have their length before them.
static bool data_v1(parquet_reading *r, const page *g, const u8 *p, size_t size, arena *tmp,
                    parquet_value *out) {
  const u8 *levels = NULL;
  u32 nlevels = 0;
  if (r->optional) {
    if (g->levels != PARQUET_RLE)
      return parquet_bad(r, "what tells absent values is in encoding %lld, which is not read",
                         (long long)g->levels);
    if (size < 4 || (nlevels = u32_at(p)) > size - 4)
      return parquet_bad(r, "a page is too short for its rows");
    levels = p + 4, p += 4 + nlevels, size -= 4 + nlevels;
  }
  return parquet_page(r, tmp, levels, nlevels, p, size, (u32)g->encoding, (u32)g->values, out);
}

static bool data_v2(parquet_reading *r, const page *g, u32 codec, const u8 *p, arena *tmp,
                    parquet_value *out) {
  if (g->nlevels < 0 || g->nrepeats || g->nlevels > g->packed || g->nlevels > g->unpacked)
    return parquet_bad(r, "a page is too short for its rows");
  const size_t packed = (size_t)(g->packed - g->nlevels), size = (size_t)(g->unpacked - g->nlevels);
  const u8 *v = parquet_unpack(r, tmp, g->plain_bytes ? 0 : codec, p + g->nlevels, packed, size);
  return v && parquet_page(r, tmp, r->optional ? p : NULL, (size_t)g->nlevels, v, size, (u32)g->encoding,
                           (u32)g->values, out);
}

static bool take_rows(parquet *p, parquet_reading *r, const chunk *h, u64 rows, parquet_value *out) {
  const i64 from = h->dict > 0 && h->dict < h->data ? h->dict : h->data;
  if (h->values < 0 || (u64)h->values != rows)
    return parquet_bad(r, "the index says %lld values of %llu rows", (long long)h->values,
                       (unsigned long long)rows);
  if (from < 4 || h->packed < 0 || (u64)from > p->body || (u64)h->packed > p->body - (u64)from)
    return parquet_bad(r, "%lld bytes from byte %lld on are not in the file", (long long)h->packed,
                       (long long)from);
  arena *tmp = arena_new();
  thrift t = {p->data + from, p->data + from + h->packed, false};
  bool ok = true;
  r->has_dict = false;
  for (u64 done = 0; ok && done < rows;) {
    const size_t where = (size_t)(t.at - p->data);
    const page g = take_page(&t);
    const bool data = g.kind == PAGE_DATA || g.kind == PAGE_DATA_V2;
    if (t.bad || g.packed < 0 || g.unpacked < 0 || g.packed > t.end - t.at ||
        (data && (g.values < 0 || (u64)g.values > rows - done || g.encoding < 0))) {
      ok = parquet_bad(r, "the page at byte %zu is damaged", where);
      break;
    }
    const arena_mark_t mark = arena_mark(tmp);
    if (g.kind == PAGE_DATA_V2) {
      ok = data_v2(r, &g, (u32)h->codec, t.at, tmp, out + done);
    } else if (g.kind == PAGE_DATA || (g.kind == PAGE_DICTIONARY && !r->has_dict)) {
      const u8 *v = parquet_unpack(r, tmp, (u32)h->codec, t.at, (size_t)g.packed, (size_t)g.unpacked);
      ok = v && (data ? data_v1(r, &g, v, (size_t)g.unpacked, tmp, out + done)
                      : dictionary(r, &g, v, (size_t)g.unpacked, tmp));
    }
    if (data) done += (u64)g.values, arena_release(tmp, mark);
    t.at += g.packed;
  }
  arena_free(tmp);
  return ok;
}

parquet_value *parquet_column(parquet *p, arena *a, const char *name, parquet_kind kind, parquet_value none) {
  static const char *const of_kind[] = {"integers", "numbers", "texts"};
  const u32 k = find(p, name);
  const column *col = k < p->columns.n ? &p->columns.v[k] : NULL;
  parquet_reading r = {
      .c = p->c, .at = loc_node(p->c, p->file, sym_of(p->c, name), (sym){0}), .kind = kind, .none = none};
  if (!col) {
    parquet_bad(&r, "the table has no such column");
    diag_hint(p->c, "its columns are %s", parquet_names(p, a));
    return NULL;
  }
  r.type = col->type, r.optional = col->optional, r.is_unsigned = col->is_unsigned;
  const bool whole = r.type == TYPE_BOOL || r.type == TYPE_I32 || r.type == TYPE_I64;
  const bool real = whole || r.type == TYPE_F32 || r.type == TYPE_F64;
  if (!col->flat || !(kind == PARQUET_TEXT ? r.type == TYPE_BYTES : kind == PARQUET_REAL ? real : whole)) {
    parquet_bad(&r, "the values are not %s, one for every row", of_kind[kind]);
    return NULL;
  }
  parquet_value *out = NEWN(a, parquet_value, p->rows + 1);
  u64 at = 0;
  for (u32 g = 0; g < p->groups.n; g++) {
    if (!take_rows(p, &r, &p->groups.v[g].chunk[k], p->groups.v[g].rows, out + at)) return NULL;
    at += p->groups.v[g].rows;
  }
  return out;
}
