// fuzz_strategy.c - strategy lines: what is refused has a diagnostic, what is accepted prints as a line that
// reads back and prints the same; one strategy also when it is settled.
#include "plan/plan.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *printed(arena *a, const strategy_set *s) {
  strbuf b = {.a = a};
  strategy_set_print(s, &b);
  return sb_str(&b);
}

static void check_one(ctx *c, arena *a, const strategy_set *set, bool train) {
  strategy s, back;
  strategy_set again;
  strbuf line = {.a = a};
  const u32 before = diag_errors(c);
  bool ok = strategy_one(c, set, &s);
  if (ok) {
    strategy_print(&s, &line);
    if (!strategy_parse(c, a, sb_str(&line), &again) || !strategy_one(c, &again, &back)) abort();
    if (strategy_compare(&s, &back) || strategy_hash(&s) != strategy_hash(&back)) abort();
    ok = strategy_settle(c, set, 64, train, &s);
  }
  if (ok != (diag_errors(c) == before)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *text = arena_strndup(a, (const char *)data, size);
  strategy_set set, back;
  bool ok = strategy_parse(c, a, text, &set);
  if (ok == (diag_errors(c) > 0)) abort();
  if (ok) {
    const char *once = printed(a, &set);
    if (!strategy_parse(c, a, once, &back) || strcmp(once, printed(a, &back))) abort();
    check_one(c, a, &set, false);
    check_one(c, a, &set, true);
  }
  diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
