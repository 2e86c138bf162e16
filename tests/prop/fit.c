// fit.c - layers=auto and a limit of memory, on random plans for machines of several kinds. The cuts without a limit stay where the
// limit is what they need. With less, a plan of layers=auto fits wherever that of layers=cost does, or it fitted with less
// still. Times may go either way, as cuts are compared by estimates: how far is printed. CASES=n makes more, SEED=n one.
#include "mixed.h"

enum { CASES_OF = 50, LIMITS = 8, BATCH = 24, SEQ = 6 };

static const char *const specs[] = {"t5-small:layers=4,hidden=16,heads=4,head_dim=4,ffn=24,vocab=200",
                                    "gpt2:layers=9,hidden=16,heads=4,vocab=36,positions=6,ffn=24",
                                    "bert-base:layers=6,hidden=16,heads=4,vocab=120,positions=6,ffn=24"};

typedef struct {
  const prog *src;
  const char *machine_is, *which;
  bool train;
} question;

// Of the plan by itself under a limit of all devices; -1: none.
static bool look(const question *q, const char *line, i64 limit, search_look *x) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  strategy s = strategy_default();
  search_opts o = {
      .train = q->train, .batch = BATCH, .optim = optim_default(OPTIM_ADAM), .memory_bytes = limit};
  prog *copy = prog_clone(q->src, c);
  REQUIRE(strategy_parse(c, a, line, &o.space));
  for (u32 k = 0; k < CHOICE_COUNT; k++)
    if (o.space.of[k].said) s.of[k] = o.space.of[k].v[0];
  machine *m = machine_of(c, a, q->machine_is);
  REQUIRE(m);
  search_look_at(a, copy, m, &costs, &o, &s, x);
  const bool ran = x->ran;
  prog_free(copy);
  ctx_free(c);
  return ran;
}

static u32 cases, limits, fitted, slower;
static double most = 1;

static void one_case(u64 seed) {
  static const char *const schedules[] = {"gpipe", "1f1b", "1f1b", "zb-h1", "zb-2p"}, *const again[] = {
                                                                                          "none", "full"};
  u64 rng = hash_u64(seed, 78);
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const front_opts f = {.batch = BATCH, .seq = SEQ, .loss = true};
  prog *src = front_load(c, specs[pick(&rng, COUNT_OF(specs))], &f);
  REQUIRE(src && pass_loss(src));
  figures x = random_figures(&rng, 2, true);
  while (ranks_of(&x) < 8) x.devices[0][0]++;
  const question q = {.src = src,
                      .machine_is = machine_text(&x, 1, false, a),
                      .which = arena_printf(a, "seed %llu", (unsigned long long)seed),
                      .train = !chance(&rng, 8)};
  const u32 pp = 2 + pick(&rng, 3), dp = pp < 4 ? 1 + pick(&rng, 2) : 1, mb = 1u << pick(&rng, 3);
  strbuf line = {.a = a};
  sb_fmt(&line, "dp=%u tp=1 pp=%u mb=%u recompute=%s schedule=%s layers=", dp, pp, mb,
         again[q.train ? pick(&rng, 2) : 0], q.train ? schedules[pick(&rng, COUNT_OF(schedules))] : "gpipe");
  const char *by_time = arena_printf(a, "%sauto", sb_str(&line)),
             *by_cost = arena_printf(a, "%scost", sb_str(&line));
  search_look own, now, cost;
  if (getenv("SEED")) printf("%s\n%s\n", q.machine_is, by_time);
  if (look(&q, by_time, -1, &own)) {
    const i64 needs = own.r.peak_bytes;
    i64 ps = INT64_MAX;
    bool fits = false;
    cases++;
    for (u32 k = 0; k <= LIMITS; k++) { // the least memory first
      const i64 limit = k == LIMITS ? needs : needs * (LIMITS + k) / (2 * LIMITS);
      REQUIRE(look(&q, by_time, limit, &now) && look(&q, by_cost, limit, &cost));
      const bool less = now.r.peak_bytes <= limit;
      CHECK_MSG(less || !fits, "%s: %s fits with less than %lld bytes, not with them", q.which, by_time,
                (long long)limit);
      CHECK_MSG(less || cost.r.peak_bytes > limit, "%s: %s does not fit %lld bytes, layers=cost does",
                q.which, by_time, (long long)limit);
      limits++, fitted += less;
      if (less && now.r.makespan_ps > ps) slower++, most = MAX(most, (double)now.r.makespan_ps / (double)ps);
      if (less) ps = now.r.makespan_ps, fits = true;
    }
    CHECK_MSG(now.r.peak_bytes == needs && now.r.makespan_ps == own.r.makespan_ps,
              "%s: %s takes %lld ps and %lld bytes, with no more bytes %lld ps and %lld bytes", q.which,
              by_time, (long long)own.r.makespan_ps, (long long)needs, (long long)now.r.makespan_ps,
              (long long)now.r.peak_bytes);
  }
  prog_free(src);
  ctx_free(c);
}

TEST(more_memory_is_no_worse) {
  const char *one = getenv("SEED"), *n = getenv("CASES");
  for (u32 k = 0; k < (one ? 1 : n ? (u32)atoi(n) : CASES_OF); k++) one_case(one ? (u64)atoll(one) : k);
  printf("  %u plans under %u limits: %u fit, %u slower than with less memory, by a factor of %.3f at most\n",
         cases, limits, fitted, slower, most);
}
