// attr.c - attributes: their names and kinds, and reading one from a sorted list.
#include "op/internal.h"

static const struct {
  const char *name, *doc;
  attr_kind kind;
} rows[A_COUNT] = {
    [A_NONE] = {"none", "", AK_INT},
#define ATTR(name, kind, doc) [A_##name] = {#name, doc, kind},
#include "op/attrs.def"
#undef ATTR
};

const char *attr_name(attr_key k) { return rows[k].name; }
attr_kind attr_kind_of(attr_key k) { return rows[k].kind; }
const char *attr_doc(attr_key k) { return rows[k].doc; }

const char *attr_kind_name(attr_kind k) {
  static const char *const name[] = {
      [AK_INT] = "an integer",           [AK_FLOAT] = "a number", [AK_INTS] = "a list of integers",
      [AK_FLOATS] = "a list of numbers", [AK_STR] = "a word",     [AK_DTYPE] = "an element type",
      [AK_DATA] = "constant elements",   [AK_AXES] = "mesh axes",
  };
  return name[k];
}

attr_key attr_find(const char *name, size_t n) {
  for (int k = A_NONE + 1; k < A_COUNT; k++)
    if (!strncmp(rows[k].name, name, n) && !rows[k].name[n]) return (attr_key)k;
  return A_NONE;
}

const attr *attr_get(attrs a, attr_key k) {
  for (u32 i = 0; i < a.n && a.v[i].key <= k; i++)
    if (a.v[i].key == k) return &a.v[i];
  return NULL;
}

i64 attr_int(attrs a, attr_key k, i64 absent) {
  const attr *p = attr_get(a, k);
  return p ? p->u.i : absent;
}

double attr_float(attrs a, attr_key k, double absent) {
  const attr *p = attr_get(a, k);
  return p ? p->u.f : absent;
}

u32 attr_ints(attrs a, attr_key k, const i64 **v) {
  const attr *p = attr_get(a, k);
  if (p) *v = p->u.ints;
  return p ? p->n : 0;
}
