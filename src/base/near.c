// near.c - did you mean: of the names there are, the one that a word was most likely meant to be.
#include "base/base.h"

enum { NAME_MAX_LEN = 63 };

// Letters to insert, delete or change (Levenshtein). row[j]: from what was read of a to the first j letters
// of b.
static u32 edits(const char *a, size_t na, const char *b, size_t nb) {
  u32 row[NAME_MAX_LEN + 1];
  for (u32 j = 0; j <= nb; j++) row[j] = j;
  for (size_t i = 0; i < na; i++) {
    u32 corner = row[0]++;
    for (size_t j = 1; j <= nb; j++) {
      u32 above = row[j];
      row[j] = MIN(MIN(above, row[j - 1]) + 1, corner + (a[i] != b[j - 1]));
      corner = above;
    }
  }
  return row[nb];
}

near_name near_to(const char *word, size_t n) {
  return (near_name){.word = word, .len = n, .limit = 2 + (u32)MIN(n, NAME_MAX_LEN) / 3};
}

void near_try(near_name *x, const char *name) {
  size_t n = strlen(name);
  if (x->len > NAME_MAX_LEN || n > NAME_MAX_LEN) return;
  u32 d = edits(x->word, x->len, name, n);
  if (d < x->limit) x->limit = d, x->name = name;
}
