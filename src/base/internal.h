// internal.h - what the files of base/ share among themselves and hide from everybody else.
#ifndef HEDDLE_BASE_INTERNAL_H
#define HEDDLE_BASE_INTERNAL_H
#include "base/base.h"

typedef struct {
  const char *str;
  u32 len;
} sym_row;

typedef struct {
  const char *str;
  VEC(sym) of; // by symbol: it and the suffix as one symbol, 0: not asked for yet
} suffix_row;

typedef struct {
  diag_id id;
  loc at;
  const char *message;
  u32 part, parts;   // the run of its notes and hints in ctx.part
  arena_mark_t mark; // top of ctx.diag_text before this diagnostic: diag_truncate goes back there
} diag_rec;

struct ctx {
  arena *a;
  arena *diag_text; // messages; a stack of its own because trial runs take diagnostics back
  hmap sym_map;
  VEC(sym_row) sym; // [0] is the empty symbol
  suffix_row suffix[16];
  u32 nsuffix;
  VEC(loc_info) loc;       // [0] is unused
  const char *line_source; // of which the text of the latest location is a copy, NULL if it has none
  VEC(diag_rec) diag;
  VEC(diag_part_item) part;
  u32 errors;
  void *kept; // ctx_keep
  void (*end_kept)(void *);
};

char *arena_vprintf(arena *a, const char *fmt, va_list ap);

// Length in bytes of the well-formed UTF-8 sequence at s, 0 if there is none (overlong forms, surrogates and
// code points above U+10FFFF are not well-formed).
u32 utf8_len(const char *s, size_t n);
#endif
