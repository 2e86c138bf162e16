// yaml.c - reads one YAML document into a tree with the position of every node, over libyaml's events.
//
// Idea: the part of YAML that means the same to every reader. Scalars stay text (the reader of a machine or a
// plan knows what it expects, units included). Anchors, aliases, tags, several documents, keys that are not
// plain text and keys given twice are refused where they stand.
#include "base/internal.h"
#include <yaml.h>

enum { DEPTH_MAX = 32 };

typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const char *text, *end; // ends with a NUL
  VEC(const char *) line; // where each line of the text starts
  const char *near;       // the position asked for last
  yaml_mark_t near_mark;
  yaml_parser_t *parser;
  yaml_event_t event; // the current one; empty after it was deleted
  int depth;
} reader;

static ynode *node(reader *r);

// ---- positions ----------------------------------------------------------------------------------------

// Length of the line break at s, 0 if there is none: the breaks that libyaml counts (YAML 1.1).
static u32 break_len(const char *s, const char *end) {
  size_t n = (size_t)(end - s);
  if (n >= 2 && !memcmp(s, "\r\n", 2)) return 2;
  if (n >= 1 && (*s == '\n' || *s == '\r')) return 1;
  if (n >= 2 && !memcmp(s, "\xC2\x85", 2)) return 2;
  if (n >= 3 && (!memcmp(s, "\xE2\x80\xA8", 3) || !memcmp(s, "\xE2\x80\xA9", 3))) return 3;
  return 0;
}

static void find_lines(reader *r) {
  *vec_push(r->a, &r->line) = r->text;
  for (const char *s = r->text; s < r->end;) {
    u32 n = break_len(s, r->end);
    s += n ? n : 1;
    if (n) *vec_push(r->a, &r->line) = s;
  }
}

// libyaml counts columns in characters, locations in bytes. Goes on from the position asked for last, so that
// a long line is walked once.
static loc position(reader *r, yaml_mark_t m) {
  size_t line = MIN(m.line, (size_t)r->line.n - 1);
  if (!r->near || r->near_mark.line != line || r->near_mark.column > m.column) {
    r->near = r->line.v[line];
    r->near_mark = (yaml_mark_t){.line = line};
  }
  for (; r->near_mark.column < m.column && r->near < r->end; r->near_mark.column++)
    r->near += MAX(utf8_len(r->near, (size_t)(r->end - r->near)), 1u);
  const char *start = r->line.v[line];
  return loc_text(r->c, r->file, (u32)line + 1, (u32)(r->near - start) + 1, start);
}

static bool bad(reader *r, loc at, const char *what) {
  diag(r->c, E_YAML, at, "%s", what);
  return false;
}

static bool parser_failed(reader *r) {
  const yaml_parser_t *p = r->parser;
  const char *what = p->problem ? p->problem : "cannot be read";
  if (p->error == YAML_MEMORY_ERROR) base_out_of_memory(0);
  if (p->error != YAML_READER_ERROR) {
    bad(r, position(r, p->problem_mark), what);
    if (p->context) diag_note(r->c, position(r, p->context_mark), "%s", p->context);
    return false;
  }
  yaml_mark_t m = {.line = 0}; // a byte that is no text: the parser gives its offset only
  const char *at = r->text + MIN(p->problem_offset, (size_t)(r->end - r->text));
  while (m.line + 1 < r->line.n && r->line.v[m.line + 1] <= at) m.line++;
  for (const char *s = r->line.v[m.line]; s < at; m.column++) s += MAX(utf8_len(s, (size_t)(at - s)), 1u);
  return bad(r, position(r, m), what);
}

// ---- the tree -----------------------------------------------------------------------------------------

static bool next(reader *r) {
  yaml_event_delete(&r->event);
  return yaml_parser_parse(r->parser, &r->event) || parser_failed(r);
}

static bool plain(reader *r, const yaml_char_t *anchor, const yaml_char_t *tag) {
  if (anchor)
    return bad(r, position(r, r->event.start_mark), "anchors are not supported: write the text out");
  if (tag) return bad(r, position(r, r->event.start_mark), "tags are not supported");
  return true;
}

static ynode *scalar(reader *r) {
  const yaml_event_t *e = &r->event;
  const char *text = (const char *)e->data.scalar.value;
  size_t n = e->data.scalar.length;
  if (!plain(r, e->data.scalar.anchor, e->data.scalar.tag)) return NULL;
  if (memchr(text, 0, n)) return bad(r, position(r, e->start_mark), "NUL in a text"), NULL;
  ynode *y = NEW(r->a, ynode);
  y->at = position(r, e->start_mark);
  y->str = arena_strndup(r->a, text, n);
  y->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  return y;
}

static ynode *sequence(reader *r) {
  VEC(ynode *) items = {0};
  if (!plain(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag)) return NULL;
  ynode *y = NEW(r->a, ynode), *item;
  y->kind = Y_SEQ;
  y->at = position(r, r->event.start_mark);
  while (next(r)) {
    if (r->event.type == YAML_SEQUENCE_END_EVENT) {
      y->item = items.v;
      y->n = items.n;
      return y;
    }
    if (!(item = node(r))) break;
    *vec_push(r->a, &items) = item;
  }
  return NULL;
}

static ynode *map_key(reader *r, hmap *seen, ynode **keys, u32 n) {
  if (r->event.type != YAML_SCALAR_EVENT && r->event.type != YAML_ALIAS_EVENT)
    return bad(r, position(r, r->event.start_mark), "a key must be plain text"), NULL;
  ynode *key = node(r);
  if (!key) return NULL;
  u64 h = hash_bytes(key->str, strlen(key->str), 0);
  for (u32 it = 0, i; hmap_next(seen, h, &it, &i);) {
    assert(i < n && keys);
    if (strcmp(keys[i]->str, key->str)) continue;
    diag(r->c, E_YAML, key->at, "the key '%s' is given twice", key->str);
    diag_note(r->c, keys[i]->at, "first here");
    return NULL;
  }
  hmap_add(r->a, seen, h, n);
  return key;
}

static ynode *mapping(reader *r) {
  VEC(ynode *) items = {0}, keys = {0};
  hmap seen = {0};
  if (!plain(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag)) return NULL;
  ynode *y = NEW(r->a, ynode), *key, *item;
  y->kind = Y_MAP;
  y->at = position(r, r->event.start_mark);
  while (next(r)) {
    if (r->event.type == YAML_MAPPING_END_EVENT) {
      y->item = items.v;
      y->key = keys.v;
      y->n = items.n;
      return y;
    }
    if (!(key = map_key(r, &seen, keys.v, keys.n)) || !next(r) || !(item = node(r))) break;
    *vec_push(r->a, &keys) = key;
    *vec_push(r->a, &items) = item;
  }
  return NULL;
}

static ynode *node(reader *r) {
  if (r->event.type == YAML_SCALAR_EVENT) return scalar(r);
  loc at = position(r, r->event.start_mark);
  if (r->event.type == YAML_ALIAS_EVENT)
    return bad(r, at, "aliases are not supported: write the text out, or put it in quotes"), NULL;
  if (++r->depth > DEPTH_MAX) {
    diag(r->c, E_YAML, at, "nested deeper than %d levels", DEPTH_MAX);
    return NULL;
  }
  ynode *y = r->event.type == YAML_SEQUENCE_START_EVENT ? sequence(r) : mapping(r);
  r->depth--;
  return y;
}

static ynode *document(reader *r) {
  if (!next(r) || !next(r)) return NULL; // start of the stream, start of the document
  if (r->event.type != YAML_DOCUMENT_START_EVENT)
    return bad(r, loc_text(r->c, r->file, 1, 0, NULL), "the document is empty"), NULL;
  ynode *y = next(r) ? node(r) : NULL;
  if (!y || !next(r) || !next(r)) return NULL; // end of the document, end of the stream
  if (r->event.type != YAML_STREAM_END_EVENT)
    return bad(r, position(r, r->event.start_mark), "a second document begins here"), NULL;
  return y;
}

const ynode *yaml_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  const size_t bom = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
  char *copy = arena_strndup(a, text + bom, n - bom);
  yaml_parser_t parser;
  reader r = {.c = c, .a = a, .file = file, .text = copy, .end = copy + (n - bom), .parser = &parser};
  if (!yaml_parser_initialize(&parser)) base_out_of_memory(0);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)copy, n - bom);
  memset(&r.event, 0, sizeof r.event);
  jmp_buf here, *before = base_oom; // libyaml's memory must not be lost when ours runs out
  ynode *volatile y = NULL;
  volatile bool no_memory = true;
  base_oom = &here;
  if (!setjmp(here)) {
    find_lines(&r);
    y = document(&r);
    no_memory = false;
  }
  base_oom = before;
  yaml_event_delete(&r.event);
  yaml_parser_delete(&parser);
  if (no_memory) base_out_of_memory(0);
  return y;
}

const ynode *yaml_get(const ynode *y, const char *key) {
  if (!y || y->kind != Y_MAP) return NULL;
  for (u32 i = 0; i < y->n; i++)
    if (!strcmp(y->key[i]->str, key)) return y->item[i];
  return NULL;
}
