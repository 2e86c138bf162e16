// session.c - sessions, the objects in them, and diagnostics as data.
#include "api/internal.h"
#include <stdlib.h>

const char *heddle_version(void) { return HEDDLE_VERSION; }

// ---- objects ------------------------------------------------------------------------------------------
void *object_new(heddle_session *s, size_t size, void (*fini)(object *)) {
  arena *a = arena_new();
  object *o = arena_zalloc(a, size);
  *o = (object){.s = s, .next = s->live, .a = a, .holds = 1, .fini = fini};
  if (s->live) s->live->prev = o;
  return s->live = o;
}

void *object_hold(void *x) {
  object *o = x;
  if (o) o->holds++;
  return o;
}

void object_drop(void *x) {
  object *o = x;
  if (!o || --o->holds) return;
  *(o->prev ? &o->prev->next : &o->s->live) = o->next;
  if (o->next) o->next->prev = o->prev;
  if (o->fini) o->fini(o);
  arena_free(o->a);
}

// ---- sessions -----------------------------------------------------------------------------------------
heddle_session *heddle_session_new(void) {
  heddle_session *volatile s = calloc(1, sizeof *s);
  jmp_buf here, *volatile outer = base_oom;
  if (!s) return NULL;
  if (setjmp(here) == 0) {
    base_oom = &here;
    s->a = arena_new();
    s->c = ctx_new();
    base_oom = outer;
    return s;
  }
  base_oom = outer;
  arena_free(s->a);
  free(s);
  return NULL;
}

// Objects that drop each other are still held here and end when all of them have.
void heddle_session_free(heddle_session *s) {
  if (!s) return;
  for (object *o = s->live; o; o = o->next) o->holds++;
  for (object *o = s->live; o; o = o->next)
    if (o->fini) o->fini(o);
  while (s->live) {
    object *o = s->live;
    s->live = o->next;
    arena_free(o->a);
  }
  arena_free(s->a);
  ctx_free(s->c);
  free(s);
}

static const char *messages(heddle_session *s) {
  arena_free(s->a);
  s->a = NULL;
  s->a = arena_new();
  return diag_render(s->c, s->a);
}

const char *heddle_session_messages(heddle_session *s) {
  static const char none_left[] = "error: out of memory\n";
  if (s->dead) return none_left;
  API_RETURN(const char *, none_left, s, messages(s));
}

uint32_t heddle_session_errors(const heddle_session *s) { return diag_errors(s->c) + s->dead; }
void heddle_session_clear(heddle_session *s) { diag_clear(s->c); }

bool heddle_session_diagnostic(heddle_session *s, uint32_t index, heddle_diagnostic *out) {
  if (s->dead || index >= diag_count(s->c)) return false;
  diag_item d = diag_get(s->c, index);
  const diag_row *row = diag_row_of(d.id);
  const loc_info *l = loc_get(s->c, d.at);
  *out = (heddle_diagnostic){.code = row->code,
                             .message = d.message,
                             .file = l ? sym_str(s->c, l->file) : "",
                             .node = l ? sym_str(s->c, l->node) : "",
                             .line = l ? l->line : 0,
                             .column = l ? l->col : 0,
                             .error = row->severity == DIAG_ERROR};
  return true;
}

static bool bytes_of(heddle_session *s, const char *what, const char *text, int64_t *bytes) {
  double x;
  if (!unit_parse(s->c, (loc){0}, what, text, UNIT_BYTES, &x)) return false;
  if (x < 1 || x > 0x1p62) {
    diag(s->c, E_UNIT, (loc){0}, "%s: %s is not between 1 byte and 4 EB", what, text);
    return false;
  }
  *bytes = (int64_t)x;
  return true;
}
bool heddle_session_bytes(heddle_session *s, const char *what, const char *text, int64_t *bytes) {
  API_RETURN(bool, false, s, bytes_of(s, what, text, bytes));
}

static bool can_write(heddle_session *s, const char *path, bool folder) {
  if (!strcmp(path, "-")) return true;
  if (folder) return dir_make(s->c, path);
  arena *a = arena_new();
  file_out *f = file_begin(s->c, a, path);
  if (f) file_drop(f);
  arena_free(a);
  return f;
}
bool heddle_session_can_write(heddle_session *s, const char *path, bool folder) {
  API_RETURN(bool, false, s, can_write(s, path, folder));
}

bool heddle_session_write(heddle_session *s, const char *path, const char *text) {
  API_RETURN(bool, false, s, file_write(s->c, path, text, strlen(text)));
}
