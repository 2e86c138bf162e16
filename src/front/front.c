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

prog *front_load(ctx *c, const char *path_or_name, const front_opts *o) {
  if (ends_with(path_or_name, ".onnx")) return front_onnx(c, path_or_name, o);
  if (ends_with(path_or_name, ".heddle")) return front_text(c, path_or_name);
  if (file_exists(path_or_name)) return front_onnx(c, path_or_name, o);
  return front_family(c, path_or_name, o);
}
