// near.c - did you mean: of the names there are, the one that a word was most likely meant to be.
#include "base/base.h"

enum { NAME_MAX_LEN = 127 };

// Letters to insert, delete or change (Levenshtein). row[j]: from what was read of a to the first j letters
// of b. pattern: a has * for anything and ? for one letter.
static u32 edits(const char *a, size_t na, const char *b, size_t nb, bool pattern) {
  u32 row[NAME_MAX_LEN + 1];
  for (u32 j = 0; j <= nb; j++) row[j] = j;
  for (size_t i = 0; i < na; i++) {
    const bool any = pattern && a[i] == '*', one = pattern && a[i] == '?';
    u32 corner = row[0];
    row[0] += !any;
    for (size_t j = 1; j <= nb; j++) {
      u32 above = row[j];
      row[j] =
          any ? MIN(above, row[j - 1]) : MIN(MIN(above, row[j - 1]) + 1, corner + (!one && a[i] != b[j - 1]));
      corner = above;
    }
  }
  return row[nb];
}

near_name near_to(const char *word, size_t n) {
  return (near_name){.word = word, .len = n, .limit = 2 + (u32)MIN(n, NAME_MAX_LEN) / 3};
}

near_name near_to_pattern(const char *word, size_t n) {
  size_t letters = 0;
  for (size_t k = 0; k < n; k++) letters += word[k] != '*' && word[k] != '?';
  near_name x = near_to(word, letters);
  x.len = n, x.pattern = true;
  return x;
}

void near_try(near_name *x, const char *name) {
  size_t n = strlen(name);
  if (x->len > NAME_MAX_LEN || n > NAME_MAX_LEN) return;
  u32 d = edits(x->word, x->len, name, n, x->pattern);
  if (d < x->limit) x->limit = d, x->name = name;
}
