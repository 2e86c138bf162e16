// annotations.h - what a program and an annotation file say of how it is parallel, docs/annotations.md: read by
// annotations.c, made a plan by policy/annotate.c.
#ifndef HEDDLE_PLAN_ANNOTATIONS_H
#define HEDDLE_PLAN_ANNOTATIONS_H
#include "plan/plan.h"

enum {
  COUNT_NONE = 0,        // not said: one device for each replica
  COUNT_ALL = SCOPE_ALL, // all devices
  SCOPES_MAX = 256
};
typedef struct {
  const char *name;       // never NULL
  u32 written;            // a scope of the program, by its number there; 0: not by that
  const char *match, *op; // NULL: not by that
  bool layers;            // by number of repeated block from 0, first to last
  bool instructions;      // by number of instruction of main from 1, likewise
  u32 first, last;
  scope_kind kind;
  shares_info shares;        // of its devices
  u32 count, parent;         // parent: from 1, of the scope around it; 0: none
  loc at, what_at, count_at; // of the scope, of what it selects, of its count
} annotation_scope;
static inline bool scope_splits(const annotation_scope *s) {
  return scope_row_of(s->kind)->split;
} // the work

typedef struct {
  loc at; // 0: not said
  u32 n;  // COUNT; FLAG; WORD: from 1, 0 its default
} annotation_setting;
enum {
#define SETTING(id, ...) SETTING_##id,
#define ONLY(id, ...)    SETTING_##id,
#include "plan/annotations.def"
#undef SETTING
#undef ONLY
  SETTING_COUNT
};
typedef union {
  annotation_setting of[SETTING_COUNT];
  struct {
#define SETTING(id, ...) annotation_setting id;
#define ONLY(id, ...)    annotation_setting id;
#include "plan/annotations.def"
#undef SETTING
#undef ONLY
  };
} annotation_config;

typedef struct {
  loc at;
  u32 devices;          // 0: not said
  shares_info replicas; // of the model
  bool has_default;
  annotation_scope dflt;
  u32 nscopes;
  annotation_scope *scope;
  annotation_config config;
} annotations;

// What the program says and what the file says (text NULL: there is none): scopes of both; where both have a
// default or a setting, that of the file. NULL and diagnostics (E_ANNOTATE), located in program or file, or
// naming the variable of the environment.
annotations *annotations_read(const prog *p, arena *a, sym file, const char *text, size_t n);
// What can be said of a key: for docs and tests. False past the end.
typedef struct {
  const char *key, *also, *dflt, *words, *meaning, *env;
  bool only; // only its default is taken
} setting_row;
bool annotation_setting_get(arena *a, u32 i, setting_row *out);
#endif
