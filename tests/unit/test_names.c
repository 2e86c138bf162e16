// test_names.c - names that are cut in tables: two different ones never print the same.
#include "report/report.h"
#include "test.h"

enum { MOST = 24, NAMES = 40 };

// Of few letters and long common beginnings, so that cuts collide.
static const char *random_name(arena *a, u64 *seed) {
  static const char *const part[] = {"ab", "<ab, ", "abab", ">", "\xc3\xa4", "b", "kernel"};
  strbuf b = {.a = a};
  for (u32 k = (u32)(rng_next(seed) % 3); k < 3; k++) sb_put(&b, "common beginning ");
  for (u32 n = (u32)(rng_next(seed) % 24); n; n--) sb_put(&b, part[rng_next(seed) % COUNT_OF(part)]);
  return sb_str(&b);
}

TEST(names_that_are_cut_never_print_alike) {
  static const column cols[] = {{"name", "name"}};
  u64 seed = 5;
  u32 cut = 0;
  for (u32 round = 0; round < 200; round++) {
    arena *a = arena_new();
    report *r = report_new(a);
    const char *name[NAMES], *line[NAMES];
    report_table(r, "names", cols, COUNT_OF(cols));
    for (u32 k = 0; k < NAMES; k++) {
      name[k] = k && rng_next(&seed) % 8 == 0 ? name[k - 1] : arena_printf(a, "%sx", random_name(a, &seed));
      report_row(r, (cell[]){cell_name(name[k], MOST)});
    }
    strbuf out = {.a = a};
    report_print(r, false, &out);
    char *text = arena_strndup(a, sb_str(&out), out.n), *next = strchr(text, '\n') + 1;
    for (u32 k = 0; k < NAMES; k++) {
      line[k] = next, next = strchr(next, '\n');
      REQUIRE(next);
      *next++ = 0;
      cut += strcmp(line[k], name[k]) != 0;
      CHECK_MSG(strlen(line[k]) <= MAX(MOST, strlen(name[k])), "'%s' of '%s'", line[k], name[k]);
      for (u32 i = 0; i < k; i++)
        CHECK_MSG(strcmp(line[i], line[k]) || !strcmp(name[i], name[k]), "'%s' and '%s' are both '%s'",
                  name[i], name[k], line[k]);
    }
    arena_free(a);
  }
  CHECK(cut > 1000);
}
