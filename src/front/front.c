// front.c - which way into the program: an ONNX file, program text, or the name of a built-in model.
#include "front/front.h"

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && strcmp(s + n - k, end) == 0;
}

static bool has_main(const prog *p, sym file) {
  if (p->main.i) return true;
  diag(p->c, E_NAME, loc_text(p->c, file, 0, 0, NULL), "the program has no function @main");
  if (p->funcs.n > 1) {
    const func_info *last = func_get(p, (func){p->funcs.n - 1});
    diag_note(p->c, last->where, "the last function is @%s", sym_str(p->c, last->name));
  }
  diag_hint(p->c, "what is run begins with `func @main(%%x: f32[8,4]) -> (f32[8,4]) {`");
  return false;
}

prog *front_text(ctx *c, sym file, const char *text, size_t n) {
  prog *p = ir_parse(c, file, text, n);
  if (!p || has_main(p, file)) return p;
  prog_free(p);
  return NULL;
}

// Program text names its own data, so nothing keeps the file mapped.
static prog *text_file(ctx *c, const char *path) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  prog *p = front_text(c, sym_of(c, path), (const char *)f.data, f.size);
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
  case FRONT_TEXT: return text_file(c, path_or_name);
  case FRONT_FAMILY: return front_family(c, path_or_name, o);
  }
  return NULL;
}
