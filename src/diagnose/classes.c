// classes.c - which kind of computation a kernel or operator is: the table of patterns (classes.def). Not
// communications, which say themselves what they are.
#include "diagnose/compare.h"
#include "op/op.h"

static const char *const names[KERNEL_CLASSES] = {
#define CLASS(id, name) name,
#include "diagnose/classes.def"
};
static const struct {
  const char *pattern;
  kernel_class is;
} patterns[] = {
#define KERNEL(pattern, class) {pattern, KERNEL_##class},
#include "diagnose/classes.def"
};

kernel_class kernel_class_of(const char *name) {
  for (u32 k = 0; k < COUNT_OF(patterns); k++)
    if (change_name_matches(patterns[k].pattern, name)) return patterns[k].is;
  return op_find(name, strlen(name)) == OP_none ? KERNEL_OTHER : KERNEL_ELEMENTWISE;
}

const char *compare_row_name(u32 row) {
  static const char *const rest[] = {
      "copies",          "waiting for peers", "pipeline bubble",         "waiting for the host",
      "between kernels", "idle, other",       "next step begins earlier"};
  if (row < KERNEL_CLASSES) return names[row];
  return row < COMPARE_COPY ? comm_kind_rows[row - COMPARE_COMM].name : rest[row - COMPARE_COPY];
}
