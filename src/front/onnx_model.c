// onnx_model.c - the parts of an ONNX file as small structs: model, graph, node, attribute, tensor, types,
// functions. Not their meaning: names are not looked up and operators not known here (onnx_import.c).
//
// Idea: every reader adds to a struct that may already hold something. Protobuf demands exactly that: a
// singular message that occurs twice is merged, a repeated field grows, a scalar is replaced.
#include "front/onnx.h"
#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements are viewed where they lie, in ONNX's byte order");

#define ADD(r, vec) (*vec_push((r)->f->a, vec) = (__typeof__(*(vec)->v)){0}, &(vec)->v[(vec)->n - 1])

// Room for exactly n more, where nothing is yet: a model has many small arrays.
#define ROOM(r, vec, count)                                                                                  \
  ((vec)->cap || !(count)                                                                                    \
       ? (void)0                                                                                             \
       : (void)((vec)->v = arena_alloc((r).f->a, (count) * sizeof *(vec)->v), (vec)->cap = (count)))

static void read_graph(pb_reader r, onnx_graph *g);

// How often the message has each of the fields below n.
static void count_fields(pb_reader r, u32 *count, u32 n) {
  memset(count, 0, n * sizeof *count);
  while (pb_next(&r))
    if (r.field < n) count[r.field]++;
}

// ---- tensors -------------------------------------------------------------------------------------------
static i64 decimal(pb_span s) {
  i64 v = 0;
  for (const u8 *p = s.at; p < s.end; p++) {
    if (*p < '0' || *p > '9' || v > (INT64_MAX - 9) / 10) return -1;
    v = v * 10 + (*p - '0');
  }
  return s.at < s.end ? v : -1;
}

static bool span_is(pb_span s, const char *text) {
  size_t n = strlen(text);
  return (size_t)(s.end - s.at) == n && memcmp(s.at, text, n) == 0;
}

static void read_external(pb_reader r, onnx_tensor *t) {
  pb_span key = {0}, text = {0};
  while (pb_next(&r)) {
    if (r.field == 1) pb_text(&r, &key, "key");
    if (r.field == 2) pb_text(&r, &text, "value");
  }
  i64 *number = span_is(key, "offset") ? &t->offset : span_is(key, "length") ? &t->length : NULL;
  if (span_is(key, "location")) t->location = text;
  if (number && (*number = decimal(text)) < 0) pb_bad(r.f, text.at, "external data: not a number of bytes");
}

// A run of fixed-size elements, packed or alone.
static void read_run(pb_reader *r, onnx_tensor *t, u32 wire) {
  if (r->wire == PB_BYTES)
    *ADD(r, &t->data) = r->bytes;
  else if (pb_want(r, wire, "elements"))
    *ADD(r, &t->data) = (pb_span){r->at - (wire == PB_32 ? 4 : 8), r->at};
}

static void read_tensor(pb_reader r, onnx_tensor *t) {
  i64 place = t->external;
  if (!t->length) t->length = -1;
  while (pb_next(&r)) switch (r.field) {
    case 1: pb_i64s(&r, &t->dim, "dims"); break;
    case 2: pb_i64(&r, &t->type, "data_type"); break;
    case 4: read_run(&r, t, PB_32); break;
    case 5:
    case 7:
    case 11: pb_i64s(&r, &t->ints, "elements"); break;
    case 8: pb_sym(&r, &t->name, "name"); break;
    case 9: pb_text(&r, &t->raw, "raw_data"); break;
    case 10: read_run(&r, t, PB_64); break;
    case 13: read_external(pb_message(&r), t); break;
    case 14: pb_i64(&r, &place, "data_location"); break;
    }
  t->external = place == 1;
}

// ---- types ---------------------------------------------------------------------------------------------
static void read_shape(pb_reader r, onnx_value *v) {
  while (pb_next(&r)) {
    if (r.field != 1) continue;
    onnx_dim *d = ADD(&r, &v->dim);
    d->n = -1;
    for (pb_reader q = pb_message(&r); pb_next(&q);) {
      if (q.field == 1) pb_i64(&q, &d->n, "dim_value"), d->name = (sym){0};
      if (q.field == 2) pb_sym(&q, &d->name, "dim_param"), d->n = -1;
    }
    if (d->n < -1) pb_bad(r.f, r.bytes.at, "an extent is %lld", (long long)d->n);
  }
}

static void read_value(pb_reader r, onnx_value *v) {
  while (pb_next(&r)) {
    if (r.field == 1) pb_sym(&r, &v->name, "name");
    if (r.field != 2) continue;
    for (pb_reader t = pb_message(&r); pb_next(&t);) {
      if (t.field != 1) continue;
      v->tensor = true;
      for (pb_reader q = pb_message(&t); pb_next(&q);) {
        if (q.field == 1) pb_i64(&q, &v->type, "elem_type");
        if (q.field == 2) v->ranked = true, read_shape(pb_message(&q), v);
      }
    }
  }
}

// ---- nodes ---------------------------------------------------------------------------------------------
static void read_attr(pb_reader r, onnx_attr *at) {
  arena *a = r.f->a;
  while (pb_next(&r)) switch (r.field) {
    case 1: pb_sym(&r, &at->name, "name"); break;
    case 2: {
      u32 bits = (u32)r.num;
      if (pb_want(&r, PB_32, "f")) memcpy(&at->f, &bits, sizeof bits);
      break;
    }
    case 3: pb_i64(&r, &at->i, "i"); break;
    case 4: pb_text(&r, &at->s, "s"); break;
    case 5:
      if (!at->t) at->t = NEW(a, onnx_tensor);
      read_tensor(pb_message(&r), at->t);
      break;
    case 6:
      if (!at->g) at->g = NEW(a, onnx_graph);
      read_graph(pb_message(&r), at->g);
      break;
    case 7: pb_f32s(&r, &at->floats, "floats"); break;
    case 8: pb_i64s(&r, &at->ints, "ints"); break;
    case 9: pb_text(&r, ADD(&r, &at->strings), "strings"); break;
    case 20: pb_i64(&r, &at->type, "type"); break;
    case 21: pb_sym(&r, &at->ref, "ref_attr_name"); break;
    case 10:
    case 11:
    case 14:
    case 15:
    case 22:
    case 23: at->other = true; break;
    }
}

static void read_node(pb_reader r, onnx_node *n) {
  arena *a = r.f->a;
  u32 count[6];
  count_fields(r, count, COUNT_OF(count));
  ROOM(r, &n->in, count[1]);
  ROOM(r, &n->out, count[2]);
  ROOM(r, &n->at, count[5]);
  while (pb_next(&r)) switch (r.field) {
    case 1: pb_sym(&r, vec_push(a, &n->in), "input"); break;
    case 2: pb_sym(&r, vec_push(a, &n->out), "output"); break;
    case 3: pb_text(&r, &n->name, "name"); break;
    case 4: pb_sym(&r, &n->op, "op_type"); break;
    case 5: read_attr(pb_message(&r), ADD(&r, &n->at)); break;
    case 7: pb_sym(&r, &n->domain, "domain"); break;
    case 8: pb_sym(&r, &n->overload, "overload"); break;
    }
}

static void read_graph(pb_reader r, onnx_graph *g) {
  u32 count[6];
  count_fields(r, count, COUNT_OF(count));
  ROOM(r, &g->node, count[1]);
  ROOM(r, &g->init, count[5]);
  while (pb_next(&r)) switch (r.field) {
    case 1: read_node(pb_message(&r), ADD(&r, &g->node)); break;
    case 2: pb_sym(&r, &g->name, "name"); break;
    case 5: read_tensor(pb_message(&r), ADD(&r, &g->init)); break;
    case 11: read_value(pb_message(&r), ADD(&r, &g->in)); break;
    case 12: read_value(pb_message(&r), ADD(&r, &g->out)); break;
    case 13: read_value(pb_message(&r), ADD(&r, &g->info)); break;
    case 15: g->sparse = true; break;
    }
}

// ---- model ---------------------------------------------------------------------------------------------
static void read_opset(pb_reader r, onnx_opset *o) {
  while (pb_next(&r)) {
    if (r.field == 1) pb_sym(&r, &o->domain, "domain");
    if (r.field == 2) pb_i64(&r, &o->version, "version");
  }
}

static void read_function(pb_reader r, onnx_function *f) {
  arena *a = r.f->a;
  while (pb_next(&r)) switch (r.field) {
    case 1: pb_sym(&r, &f->name, "name"); break;
    case 4: pb_sym(&r, vec_push(a, &f->in), "input"); break;
    case 5: pb_sym(&r, vec_push(a, &f->out), "output"); break;
    case 6: pb_sym(&r, vec_push(a, &f->attr), "attribute"); break;
    case 7: read_node(pb_message(&r), ADD(&r, &f->node)); break;
    case 9: read_opset(pb_message(&r), ADD(&r, &f->opset)); break;
    case 10: pb_sym(&r, &f->domain, "domain"); break;
    case 11: read_attr(pb_message(&r), ADD(&r, &f->defaults)); break;
    case 13: pb_sym(&r, &f->overload, "overload"); break;
    }
}

bool onnx_model_read(pb_file *f, const u8 *bytes, size_t n, onnx_model *out) {
  pb_reader r = pb_of(f, bytes, n);
  *out = (onnx_model){0};
  while (pb_next(&r)) switch (r.field) {
    case 1: pb_i64(&r, &out->ir_version, "ir_version"); break;
    case 7:
      out->has_graph = true;
      read_graph(pb_message(&r), &out->graph);
      break;
    case 8: read_opset(pb_message(&r), ADD(&r, &out->opset)); break;
    case 25: read_function(pb_message(&r), ADD(&r, &out->function)); break;
    }
  return !f->bad;
}

bool onnx_tensor_read(pb_file *f, const u8 *bytes, size_t n, onnx_tensor *out) {
  *out = (onnx_tensor){0};
  read_tensor(pb_of(f, bytes, n), out);
  return !f->bad;
}

// ---- element types -------------------------------------------------------------------------------------
static const struct {
  const char *name;
  dtype t;
} types[] = {
    [1] = {"float", DT_F32},
    [2] = {"uint8", DT_U8},
    [3] = {"int8", DT_I8},
    [4] = {"uint16", DT_U16},
    [5] = {"int16", DT_I16},
    [6] = {"int32", DT_I32},
    [7] = {"int64", DT_I64},
    [8] = {"string", DT_NONE},
    [9] = {"bool", DT_BOOL},
    [10] = {"float16", DT_F16},
    [11] = {"double", DT_F64},
    [12] = {"uint32", DT_U32},
    [13] = {"uint64", DT_U64},
    [14] = {"complex64", DT_NONE},
    [15] = {"complex128", DT_NONE},
    [16] = {"bfloat16", DT_BF16},
    [17] = {"float8e4m3fn", DT_NONE},
    [18] = {"float8e4m3fnuz", DT_NONE},
    [19] = {"float8e5m2", DT_NONE},
    [20] = {"float8e5m2fnuz", DT_NONE},
    [21] = {"uint4", DT_NONE},
    [22] = {"int4", DT_NONE},
    [23] = {"float4e2m1", DT_NONE},
};

dtype onnx_dtype(i64 code) { return code > 0 && code < (i64)COUNT_OF(types) ? types[code].t : DT_NONE; }

const char *onnx_type_name(i64 code) {
  return code > 0 && code < (i64)COUNT_OF(types) ? types[code].name : "an unknown type";
}

// ---- elements ------------------------------------------------------------------------------------------
// External files must lie in the model's folder or below, also after links are followed.
static bool inside(const char *dir, const char *path) {
  char *d = realpath(dir, NULL), *p = realpath(path, NULL);
  size_t n = d ? strlen(d) : 0;
  bool ok = d && p && strncmp(p, d, n) == 0 && (p[n] == '/' || (n == 1 && d[0] == '/'));
  free(d);
  free(p);
  return ok;
}

static bool relative(const char *path) {
  if (path[0] == '/' || !path[0]) return false;
  for (const char *s = path; s; s = strchr(s, '/')) {
    if (*s == '/') s++;
    if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || !s[2])) return false;
  }
  return true;
}

// Maps a file once per model. NULL after a diagnostic.
static const onnx_file *store_open(pb_file *f, onnx_store *st, pb_span location, loc where) {
  size_t n = (size_t)(location.end - location.at);
  for (u32 i = 0; i < st->file.n; i++) {
    const onnx_file *old = &st->file.v[i];
    if ((size_t)(old->name.end - old->name.at) == n && memcmp(old->name.at, location.at, n) == 0) return old;
  }
  char *name = arena_strndup(f->a, (const char *)location.at, n);
  char *path = arena_printf(f->a, "%s/%s", st->dir, name);
  onnx_file new = {.name = location, .absent = !file_exists(path)};
  if (strlen(name) != n || !relative(name) || (!new.absent && !inside(st->dir, path))) {
    diag(f->c, E_ONNX_DATA, where, "external data `%s` lies outside the model's folder", name);
    return NULL;
  }
  if (!new.absent && !file_map(f->c, path, &new.view)) return NULL;
  if (new.absent && !st->missing++) st->first = path, st->where = where;
  *vec_push(f->a, &st->file) = new;
  return &st->file.v[st->file.n - 1];
}

static bool external_data(pb_file *f, onnx_store *st, const onnx_tensor *t, loc where, data_info *out) {
  const onnx_file *file = store_open(f, st, t->location, where);
  if (!file || file->absent) return file != NULL;
  i64 size = (i64)file->view.size, n = t->length >= 0 ? t->length : size - t->offset;
  if (n != out->size || t->offset > size || n > size - t->offset) {
    diag(f->c, E_ONNX_DATA, where,
         "tensor `%s` needs %lld bytes; its external data has %lld at offset %lld of %lld",
         sym_str(f->c, t->name), (long long)out->size, (long long)n, (long long)t->offset, (long long)size);
    return false;
  }
  out->bytes = n ? file->view.data + t->offset : (const u8 *)"";
  return true;
}

// Integers of every width are stored as varints, half precision as the bits of a 16-bit integer.
static void *narrow(arena *a, const i64_vec *v, u32 bytes) {
  u8 *to = arena_alloc(a, (size_t)v->n * bytes);
  for (u32 i = 0; i < v->n; i++)
    for (u32 k = 0; k < bytes; k++) to[(size_t)i * bytes + k] = (u8)((u64)v->v[i] >> 8 * k);
  return to;
}

static const void *join_runs(arena *a, const onnx_tensor *t, i64 *size) {
  *size = 0;
  for (u32 i = 0; i < t->data.n; i++) *size += t->data.v[i].end - t->data.v[i].at;
  if (t->data.n == 1) return t->data.v[0].at;
  u8 *all = arena_alloc(a, (size_t)*size), *to = all;
  for (u32 i = 0; i < t->data.n; i++) {
    size_t n = (size_t)(t->data.v[i].end - t->data.v[i].at);
    memcpy(to, t->data.v[i].at, n);
    to += n;
  }
  return all;
}

bool onnx_tensor_data(pb_file *f, onnx_store *st, const onnx_tensor *t, loc where, data_info *out) {
  const char *name = sym_str(f->c, t->name);
  *out = (data_info){.t = onnx_dtype(t->type), .nd = t->dim.n};
  if (!out->t) {
    diag(f->c, E_ONNX_OP, where, "tensor `%s` has elements of type %s", name, onnx_type_name(t->type));
    return false;
  }
  if (t->dim.n > DIMS_MAX) {
    diag(f->c, E_LIMIT, where, "tensor `%s` has %u dimensions; at most %d are supported", name, t->dim.n,
         DIMS_MAX);
    return false;
  }
  i64 elems = 1;
  bool fits = true;
  for (u32 d = 0; d < t->dim.n; d++) {
    out->dim[d] = t->dim.v[d];
    fits = fits && t->dim.v[d] >= 0 && mul_i64(elems, t->dim.v[d], &elems);
  }
  if (!fits || !mul_i64(elems, dtype_bytes(out->t), &out->size)) {
    diag(f->c, E_ONNX_MODEL, where, "tensor `%s` has impossible extents", name);
    return false;
  }
  if (t->external) return external_data(f, st, t, where, out);

  i64 have = t->raw.end - t->raw.at;
  if (t->raw.at) {
    out->bytes = t->raw.at;
  } else if (t->ints.n && out->t != DT_F32 && out->t != DT_F64) {
    out->bytes = narrow(f->a, &t->ints, dtype_bytes(out->t));
    have = (i64)t->ints.n * dtype_bytes(out->t);
  } else if (t->data.n) {
    out->bytes = join_runs(f->a, t, &have);
  } else {
    out->bytes = arena_alloc(f->a, 16); // no elements
  }
  if (have == out->size) return true;
  diag(f->c, E_ONNX_MODEL, where, "tensor `%s`: its extents take %lld bytes, %lld are given", name,
       (long long)out->size, (long long)have);
  return false;
}
