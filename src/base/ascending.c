// ascending.c - plain numbers in ascending order, for qsort and bsearch. Not the order of anything that has members.
#include "base/base.h"

int ascending_u32(const void *x, const void *y) {
  const u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return a < b ? -1 : a > b;
}

int ascending_i64(const void *x, const void *y) {
  const i64 a = *(const i64 *)x, b = *(const i64 *)y;
  return a < b ? -1 : a > b;
}

int ascending_double(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}
