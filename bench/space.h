// space.h - a space of plans in a file, and parts of it. Included by programs only.
//
// The file is a line of `--strategy` (docs/strategy.md), over several lines and with comments. A part of the
// space has one value in some rows. In a part that leaves no choice in a row that was said (v where pp=1),
// the row is taken as not said, for a search refuses what no plan has.
#ifndef HEDDLE_BENCH_SPACE_H
#define HEDDLE_BENCH_SPACE_H
#include "plan/plan.h"
#include <stdlib.h>

enum { SPACE_VALUES = 512 };

static inline _Noreturn void space_fail(ctx *c) {
  fputs(diag_render(c, ctx_arena(c)), stderr);
  exit(1);
}

// Ends the program if there is no such file or it says no strategy.
static inline strategy_set space_read(ctx *c, arena *a, const char *path) {
  file_view f;
  strategy_set s;
  if (!file_map(c, path, &f)) space_fail(c);
  const char *text = arena_printf(a, "%.*s", (int)f.size, (const char *)f.data);
  file_unmap(&f);
  if (!strategy_parse_named(c, a, path, text, &s)) space_fail(c);
  return s;
}

static inline bool space_one(const choice_set *x) { return x->said && !x->all && x->n == 1; }

static inline void space_fix(arena *a, strategy_set *s, choice_id id, choice_value v) {
  choice_set *x = &s->of[id];
  x->said = true, x->all = false, x->n = 1;
  x->v = arena_dup(a, &v, sizeof v);
}

// What the space has in a row; where it says no degrees, divisors of the devices. 0: none, a search decides.
static inline u32 space_values(const strategy_set *s, choice_id id, u32 ranks,
                               choice_value out[SPACE_VALUES]) {
  const choice_set *x = &s->of[id];
  u32 n = 0;
  if (x->said && !x->all) {
    memcpy(out, x->v, x->n * sizeof *out);
    return x->n;
  }
  for (u32 k = 1; choice_is_degree(id) && k <= ranks; k++)
    if (ranks % k == 0 && n < SPACE_VALUES) out[n++] = (choice_value){.n = k};
  if (choice_is_degree(id) || !x->all) return n;
  const choice_row *r = choice_get(id);
  if (r->kind == CK_COUNT)
    for (u32 k = r->least; k <= r->most && r->most < CHOICE_MOST; k++) out[n++] = (choice_value){.n = k};
  const u32 words = r->kind == CK_SET ? 1u << choice_words(id) : choice_words(id);
  for (u32 k = 0; r->kind != CK_COUNT && k < words; k++) out[n++] = (choice_value){.n = k};
  return n;
}

// Takes back what no plan of the part can choose.
static inline void space_settle(strategy_set *s) {
  strategy most = strategy_of("dp=2 tp=2 pp=2 v=2 schedule=interleaved");
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    if (!choice_applies(id, &most, true)) {
      s->of[i] = (choice_set){0};
      most.of[i] = choice_default(id);
    } else if (space_one(&s->of[i]))
      most.of[i] = s->of[i].v[0];
  }
}
#endif
