// export.h - distributed programs as programs of other frameworks. Layer 8.
//
// Idea: the program that a plan makes already says all that a framework's program would: functions, pieces,
// communications by name, streams, the order of every rank. So it is written out, not planned again: one function of
// the other language for each function of the program, one statement for each instruction, by tables that have a row
// for every operator (operators.def) and every collective (collectives.def). What has no row is a diagnostic at the
// user's node.
#ifndef HEDDLE_EXPORT_H
#define HEDDLE_EXPORT_H
#include "ir/ir.h"
#include "machine/machine.h"

typedef struct {                      // what the first lines say
  const char *model, *plan, *machine; // machine NULL: it is not known
  const struct machine *on;           // NULL likewise
} export_about;

typedef struct {
  const char *name, *doc;
  const char *(*text)(const prog *p, arena *a, const export_about *about);
} export_format;
// Row k of formats.def; NULL past the end.
const export_format *export_format_get(u32 k);
// A distributed program in that format: the text, in `a`; NULL and diagnostics.
const char *export_program(const prog *p, arena *a, const char *format, const export_about *about);
#endif
