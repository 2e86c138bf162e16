// front.c - which way into the program: an ONNX file, program text, or the name of a built-in model.
#include "front/front.h"

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && strcmp(s + n - k, end) == 0;
}

// Program text names its own data, so nothing keeps the file mapped.
static prog *front_text(ctx *c, const char *path) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  prog *p = ir_parse(c, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  return p;
}

front_kind front_kind_of(const char *path_or_name) {
  if (ends_with(path_or_name, ".onnx")) return FRONT_ONNX;
  if (ends_with(path_or_name, ".heddle")) return FRONT_TEXT;
  return file_exists(path_or_name) ? FRONT_ONNX : FRONT_FAMILY;
}

prog *front_load(ctx *c, const char *path_or_name, const front_opts *o) {
  switch (front_kind_of(path_or_name)) {
  case FRONT_ONNX: return front_onnx(c, path_or_name, o);
  case FRONT_TEXT: return front_text(c, path_or_name);
  case FRONT_FAMILY: return front_family(c, path_or_name, o);
  }
  return NULL;
}
