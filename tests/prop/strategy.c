// strategy.c - strategies as text: whatever is printed reads back as the same, for every row and for random
// lines; what is settled stays as it is.
#include "plan/plan.h"
#include "test.h"

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

// Any value that the row has, legal in its place or not.
static choice_value random_value(choice_id id, u64 *rng, arena *a) {
  static const u32 odd[] = {1, 2, 3, 7, 8, 12, 31, 64, 1000, CHOICE_MOST - 1, CHOICE_MOST};
  const choice_row *r = choice_get(id);
  choice_value x = {0};
  switch (r->kind) {
  case CK_COUNT:
    x.n =
        r->most == CHOICE_MOST ? odd[pick(rng, COUNT_OF(odd))] : r->least + pick(rng, r->most - r->least + 1);
    break;
  case CK_SET: x.n = pick(rng, 1u << choice_words(id)); break;
  case CK_LIST:
    if (pick(rng, 2)) {
      u32 *part = NEWN(a, u32, 8);
      x.nparts = 1 + pick(rng, 8), x.part = part;
      for (u32 i = 0; i < x.nparts; i++) part[i] = odd[pick(rng, COUNT_OF(odd))];
      if (id != CHOICE_layers) part[0] = 1; // shares have no common factor
      break;
    }
    x.n = pick(rng, choice_words(id));
    break;
  case CK_GRIDS:
    if (pick(rng, 2)) {
      x.nparts = 6 + 3 * pick(rng, 2);
      u32 *part = NEWN(a, u32, x.nparts);
      for (u32 i = 0; i < x.nparts; i++) part[i] = 1 + pick(rng, 4);
      x.part = part;
    }
    break;
  case CK_WORD:
  case CK_FLAG:
    x.n = pick(rng, choice_words(id) + (r->suffix != NULL));
    if (x.n == choice_words(id)) // a file
      x.path = arena_printf(a, "%s%u%s", pick(rng, 2) ? "f=/1f1b" : "../", pick(rng, 3), r->suffix);
    break;
  }
  return x;
}

static bool read_one(ctx *c, arena *a, const char *line, strategy *out) {
  strategy_set set;
  bool ok = strategy_parse(c, a, line, &set) && strategy_one(c, &set, out);
  return CHECK_MSG(ok, "%s: %s", line, diag_render(c, a));
}

TEST(strategy_every_row) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const choice_row *r = choice_get(id);
    CHECK_MSG(r->also[0] && *r->about && (r->kind == CK_COUNT || choice_words(id) >= 1), "%s", r->name);
    CHECK_MSG(!(r->needs & ~CHOICE_TRAINING & ~((1u << i) - 1)), "%s stands before a row that it needs",
              r->name);
    for (u32 k = 0; k < i; k++) // names are one for each row
      for (u32 x = 0; r->also[x]; x++) {
        CHECK_MSG(strcmp(r->name, choice_get((choice_id)k)->name), "%s", r->name);
        for (u32 y = 0; choice_get((choice_id)k)->also[y]; y++)
          CHECK_MSG(strcmp(r->also[x], choice_get((choice_id)k)->also[y]), "%s", r->also[x]);
      }
    for (u32 w = 0; r->kind != CK_COUNT && w < choice_words(id); w++) {
      strategy s = strategy_default(), back, other;
      s.of[id].n = r->kind == CK_SET ? 1u << w : w;
      const char *by_option = arena_printf(a, "%s=%s", choice_option(id), choice_word(id, w));
      if (read_one(c, a, strategy_str(a, &s), &back))
        CHECK_MSG(!strategy_compare(&s, &back), "%s", strategy_str(a, &s));
      if (read_one(c, a, by_option, &other)) CHECK_MSG(!strategy_compare(&s, &other), "%s", by_option);
    }
    if (r->kind != CK_FLAG && r->kind != CK_SET) continue;
    strategy on; // a name alone
    if (!read_one(c, a, r->name, &on)) continue;
    const u32 dflt = choice_default(id).n;
    CHECK_EQ_I64(on.of[id].n, r->kind == CK_FLAG ? 1 : dflt ? dflt : (1u << choice_words(id)) - 1);
  }
  ctx_free(c);
}

TEST(strategy_prints_and_reads_back) {
  ctx *c = ctx_new();
  u64 rng = 5;
  u32 defaults = 0;
  for (u32 n = 0; n < 4000; n++) {
    arena *a = arena_new();
    strategy s = strategy_default(), back, again = strategy_default();
    for (u32 i = 0; i < CHOICE_COUNT; i++)
      if (pick(&rng, 2)) s.of[i] = random_value((choice_id)i, &rng, a);
    const char *line = strategy_str(a, &s);
    if (read_one(c, a, line, &back)) {
      CHECK_MSG(!strategy_compare(&s, &back) && strategy_hash(&s) == strategy_hash(&back), "%s", line);
      const strategy_packed packed = strategy_pack(a, &s);
      const strategy out = strategy_unpack(&packed);
      CHECK_MSG(!strategy_compare(&s, &out), "%s: packed it is %s", line, strategy_str(a, &out));
      for (u32 k = 0; k < CHOICE_COUNT; k++)
        CHECK(choice_same(strategy_packed_value(&packed, (choice_id)k), s.of[k]));
      CHECK_STR(strategy_str(a, &back), line);
    }
    const choice_id id = (choice_id)pick(&rng, CHOICE_COUNT); // one value changed: another line
    again = s;
    again.of[id] = random_value(id, &rng, a);
    bool same = choice_same(s.of[id], again.of[id]);
    CHECK(same == !strategy_compare(&s, &again) && same == !strcmp(line, strategy_str(a, &again)));
    CHECK(same == (strategy_hash(&s) == strategy_hash(&again)));
    CHECK(strategy_compare(&s, &again) == -strategy_compare(&again, &s));
    for (u32 i = CHOICE_mb; i < CHOICE_COUNT; i++)
      defaults += choice_same(s.of[i], choice_default((choice_id)i));
    arena_free(a);
  }
  CHECK(defaults > 1000);
  ctx_free(c);
}

TEST(strategy_sets_print_and_read_back) {
  ctx *c = ctx_new();
  u64 rng = 9;
  for (u32 n = 0; n < 1000; n++) {
    arena *a = arena_new();
    strategy_set set = {0}, back;
    for (u32 i = 0; i < CHOICE_COUNT; i++) {
      choice_set *x = &set.of[i];
      choice_value *v = NEWN(a, choice_value, 5);
      if (pick(&rng, 3) == 0) continue;
      x->said = true, x->v = v;
      x->all = i != CHOICE_mbs && pick(&rng, 4) == 0;
      for (u32 k = 0, want = x->all ? 0 : 1 + pick(&rng, 5); k < want; k++) {
        v[x->n] = random_value((choice_id)i, &rng, a);
        bool new = i != CHOICE_mbs || v[x->n].n;
        for (u32 j = 0; j < x->n; j++) new &= !choice_same(v[j], v[x->n]);
        x->n += new;
      }
      if (!x->all && !x->n) x->said = false;
    }
    strbuf line = {.a = a}, again = {.a = a};
    strategy_set_print(&set, &line);
    CHECK_MSG(strategy_parse(c, a, sb_str(&line), &back), "%s: %s", sb_str(&line), diag_render(c, a));
    strategy_set_print(&back, &again);
    CHECK_STR(sb_str(&again), sb_str(&line));
    arena_free(a);
  }
  ctx_free(c);
}

TEST(strategy_takes_comments) {
  static const char text[] = "# a space\ndp=2 tp=1,2 # of a node\n\n#pp=8\nschedule=1f1b,mine#1.csv # zero=3";
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  strategy_set set;
  strbuf b = {.a = a};
  REQUIRE(strategy_parse_named(c, a, "file", text, &set));
  strategy_set_print(&set, &b);
  CHECK_STR(sb_str(&b), "dp=2 tp=1,2 schedule=1f1b,mine#1.csv");
  CHECK(!strategy_parse_named(c, a, "file", "dp=2 # tp=2\n  zero=8 # levels", &set));
  CHECK(strstr(diag_render(c, a), "file:2:8"));
  ctx_free(c);
}

// What cannot be chosen is at its default, or refused with a diagnostic; settling twice changes nothing.
// Two strategies are the same but for some subjects where they are equal without these.
TEST(strategy_same_but_for_what_is_left_out) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  u64 rng = 3;
  u32 alike = 0;
  for (u32 n = 0; n < 20000; n++) {
    strategy x = strategy_default();
    for (u32 k = pick(&rng, 4); k-- > 0;) {
      const choice_id id = (choice_id)pick(&rng, CHOICE_COUNT);
      x.of[id] = random_value(id, &rng, a);
    }
    strategy y = strategy_dup(a, &x);
    CHECK(!strategy_compare(&x, &y) && strategy_same_but(&x, &y, 0));
    for (u32 k = pick(&rng, 3); k-- > 0;) {
      const choice_id id = (choice_id)pick(&rng, CHOICE_COUNT);
      y.of[id] = random_value(id, &rng, a);
    }
    const strategy p = strategy_of_stages(&x), q = strategy_of_stages(&y);
    const strategy f = strategy_without(&x, CHOICE_OF_SENDS), g = strategy_without(&y, CHOICE_OF_SENDS);
    const bool same = strategy_same_but(&x, &y, CHOICES_OF_LINE);
    const bool lie_alike = choice_same(p.schedule, q.schedule); // stages depend on that of the order
    CHECK((same && lie_alike) == !strategy_compare(&p, &q));
    CHECK(strategy_same_but(&x, &y, CHOICES_OF_SENDS) == !strategy_compare(&f, &g));
    CHECK(strategy_same_but(&x, &y, 0) == !strategy_compare(&x, &y));
    CHECK(!same || strategy_hash_but(&x, CHOICES_OF_LINE) == strategy_hash_but(&y, CHOICES_OF_LINE));
    alike += same && strategy_compare(&x, &y);
  }
  CHECK_MSG(alike > 1000, "%u", alike);
  ctx_free(c);
}

TEST(strategy_settles) {
  ctx *c = ctx_new();
  u64 rng = 3;
  u32 accepted = 0, refused = 0;
  for (u32 n = 0; n < 20000; n++) {
    arena *a = arena_new();
    strategy s = strategy_default();
    const bool train = pick(&rng, 2);
    const i64 batch = pick(&rng, 4) ? 1 + pick(&rng, 200) : 0;
    for (u32 i = 0; i < CHOICE_COUNT; i++)
      if (pick(&rng, 6) == 0) s.of[i] = random_value((choice_id)i, &rng, a);
    const strategy said = s;
    bool ok = strategy_settle(c, NULL, batch, train, &s);
    CHECK(ok == !diag_errors(c));
    if (ok) {
      const strategy once = s;
      accepted++;
      CHECK_EQ_I64(s.mbs.n, 0);
      CHECK(!said.mbs.n || (i64)s.mb.n * said.mbs.n * strategy_data_ranks(&s) == batch);
      for (u32 i = 0; i < CHOICE_COUNT; i++)
        CHECK_MSG(choice_applies((choice_id)i, &s, train) ||
                      choice_same(s.of[i], choice_default((choice_id)i)),
                  "%s: %s", strategy_str(a, &s), choice_get((choice_id)i)->name);
      CHECK(strategy_settle(c, NULL, batch, train, &s) && !strategy_compare(&once, &s));
    } else
      refused++;
    diag_clear(c);
    arena_free(a);
  }
  CHECK_MSG(accepted > 500 && refused > 500, "%u accepted, %u refused", accepted, refused);
  ctx_free(c);
}
