// dtype.c - element types and shapes: what they are called and how large they are.
#include "op/op.h"

static const struct {
  const char *name;
  u8 len, bytes, kind;
} rows[DT_COUNT] = {
    [DT_NONE] = {"none", 4, 0, DK_NONE},
#define DTYPE(name, text, bytes, kind) [name] = {text, sizeof text - 1, bytes, kind},
#include "op/dtypes.def"
#undef DTYPE
};

u32 dtype_bytes(dtype t) { return rows[t].bytes; }
const char *dtype_name(dtype t) { return rows[t].name; }
dtype_kind dtype_kind_of(dtype t) { return (dtype_kind)rows[t].kind; }

dtype dtype_find(const char *name, size_t n) {
  for (int t = DT_NONE + 1; t < DT_COUNT; t++)
    if (rows[t].len == n && !memcmp(rows[t].name, name, n)) return (dtype)t;
  return DT_NONE;
}

i64 shape_elems(const shape *s) {
  i64 n = 1;
  for (u32 d = 0; d < s->nd; d++) n *= s->dim[d];
  return n;
}

i64 shape_bytes(const shape *s) { return shape_elems(s) * dtype_bytes(s->t); }

bool shape_same(const shape *a, const shape *b) {
  return a->t == b->t && a->nd == b->nd && !memcmp(a->dim, b->dim, a->nd * sizeof *a->dim);
}
