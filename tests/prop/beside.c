// beside.c - what a search says of a plan does not depend on the plans beside it. Random searches with shares and layers
// `auto` on machines of several kinds; plans of them are asked for again, each by itself; and the best is the same with
// bounds, in parts, and of every plan. SEARCHES=n makes more, SEED=n one.
#include "mixed.h"

enum { SEARCHES = 140, WIDE = 40, SLOW = 30, AGAIN = 6 };

static const struct {
  const char *spec;
  i64 batch, seq;
} seqs[] = {{"t5-small:layers=3,hidden=16,heads=4,head_dim=4,ffn=24,vocab=24", 24, 6},
            {"mbart-large:layers=3,hidden=16,heads=4,ffn=24,vocab=24,positions=6", 24, 6},
            {"gpt2:layers=9,hidden=16,heads=4,vocab=36,positions=6,ffn=24", 24, 6}};

// Some of the words, in any order.
static const char *some(u64 *rng, arena *a, const char *const *word, u32 n, u32 most) {
  strbuf b = {.a = a};
  u32 left = 1 + pick(rng, MIN(most, n)), taken = 0;
  for (u32 k = 0; k < left; k++) {
    u32 w = pick(rng, n);
    while (taken >> w & 1) w = (w + 1) % n;
    taken |= 1u << w;
    sb_fmt(&b, "%s%s", k ? "," : "", word[w]);
  }
  return sb_str(&b);
}

// Sums beside the backward in many schedules, of which rows on all places have no stages: enough for several waves.
static const char *wide_space(u64 *rng, arena *a, u32 *ranks) {
  static const char *const schedules[] = {"interlaced", "zb-h1", "1f1b", "zb-v", "interleaved", "gpipe"},
                           *const micro[] = {"1", "2", "4", "6"};
  strbuf b = {.a = a};
  const u32 dp = 2 + pick(rng, 2), pp = 2;
  sb_fmt(
      &b,
      "dp=%u tp=1 pp=%u mb=%s recompute=* overlap=* schedule=interlaced,%s v=1,2 layers=auto,cost zero=0,1",
      dp, pp, some(rng, a, micro, 4, 3), some(rng, a, schedules + 1, 5, 3));
  *ranks = dp * pp;
  return sb_str(&b);
}

// Values of what can be chosen on so many ranks.
static const char *random_space(u64 *rng, arena *a, u32 *ranks) {
  static const char *const schedules[] = {"gpipe",   "1f1b",       "interleaved", "bfs",
                                          "zb-h1",   "zb-2p",      "zb-v",        "dualpipev",
                                          "chimera", "interlaced", "gems",        "zb-h2"};
  static const char *const micro[] = {"1", "2", "4", "6"}, *const chunks[] = {"1", "2"},
                           *const shares[] = {"auto", "equal"}, *const layers[] = {"auto", "cost"},
                           *const zero[] = {"0", "1", "2", "3"}, *const again[] = {"none", "full"},
                           *const overlap[] = {"none", "pp", "dp", "pp+dp"},
                           *const groups[] = {"0", "3", "4"};
  strbuf b = {.a = a};
  const u32 dp = 1 + pick(rng, 3), tp = 1 + pick(rng, 2), pp = dp * tp > 4 ? 1 : 1 + pick(rng, 3);
  sb_fmt(&b, "dp=%u tp=%u pp=%u mb=%s recompute=%s", dp, tp, pp, some(rng, a, micro, 4, 2),
         some(rng, a, again, 2, 2));
  if (pp > 1)
    sb_fmt(&b, " schedule=%s v=%s layers=%s overlap=%s", some(rng, a, schedules, 12, 5),
           chance(rng, 2) ? "1" : some(rng, a, chunks, 2, 2), some(rng, a, layers, 2, 2),
           some(rng, a, overlap, 4, 2));
  if (pp > 1 && chance(rng, 3)) sb_fmt(&b, " group=%s", some(rng, a, groups, 3, 2));
  if (pp == 1 && dp > 1) sb_fmt(&b, " overlap=none,dp");
  if (dp > 1) sb_fmt(&b, " zero=%s dp.shares=%s", some(rng, a, zero, 4, 2), some(rng, a, shares, 2, 2));
  if (tp > 1) sb_fmt(&b, " tp.shares=%s", some(rng, a, shares, 2, 2));
  *ranks = dp * tp * pp;
  return sb_str(&b);
}

static machine *machine_on(ctx *c, arena *a, const char *is) {
  machine *m = strstr(is, "name:") ? machine_of(c, a, is) : machine_load(c, a, is);
  REQUIRE(m);
  return m;
}

static u32 plans, with_layers, with_data, with_tensor, with_bounds, of_waves;

static bool asks(const strategy *s) {
  return choice_is(CHOICE_layers, s->layers, "auto") || choice_is(CHOICE_dp_shares, s->dp_shares, "auto") ||
         choice_is(CHOICE_tp_shares, s->tp_shares, "auto");
}

static void again(const search_opts *o, const prog *src, const char *machine_is, const search_point *p,
                  const char *which) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  search_look x;
  const strategy is = search_strategy(p);
  const char *line = strategy_str(a, &is);
  prog *copy = prog_clone(src, c);
  search_look_at(a, copy, machine_on(c, a, machine_is), &costs, o, &is, &x);
  CHECK_MSG(x.ran && x.r.makespan_ps == p->alone_ps && x.r.peak_bytes == p->peak_bytes,
            "%s: %s takes %lld ps and %lld bytes beside others, %lld and %lld by itself\n%s", which, line,
            (long long)p->alone_ps, (long long)p->peak_bytes, (long long)x.r.makespan_ps,
            (long long)x.r.peak_bytes, machine_is);
  plans++, with_layers += choice_is(CHOICE_layers, is.layers, "auto");
  with_data += choice_is(CHOICE_dp_shares, is.dp_shares, "auto");
  with_tensor += choice_is(CHOICE_tp_shares, is.tp_shares, "auto");
  prog_free(copy);
  ctx_free(c);
}

// With bounds, whole and in two parts.
static void bounded(ctx *c, arena *a, const prog *src, const machine *m, search_opts o,
                    const search_result *all, const char *which) {
  search_result r, of[2], merged;
  search_part *part[2];
  search_about about = {.model = "", .machine = "", .ranks = o.ranks};
  o.no_bounds = false, o.top = 1;
  const bool ok = search_run(c, a, src, m, &costs, &o, &r);
  diag_clear(c);
  CHECK_MSG(ok == (all->nfit > 0) && !r.bound_failed, "%s: with bounds %u plans fit", which, r.nfit);
  if (!ok) return;
  const strategy best = search_strategy(&all->point[0]);
  CHECK_MSG(r.point[0].time_ps == all->point[0].time_ps && search_is(&r.point[0], &best),
            "%s: the best takes %lld ps, with bounds %lld", which, (long long)all->point[0].time_ps,
            (long long)r.point[0].time_ps);
  for (u32 k = 0; k < 2; k++) {
    o.part = k + 1, o.parts = 2;
    REQUIRE(search_run(c, a, src, m, &costs, &o, &of[k]));
    part[k] = search_part_of(a, src, m, &costs, &o, &about, &of[k]);
  }
  const bool same = search_merge(c, a, 2, part, 0, &o, &about, &merged);
  CHECK_MSG(same && search_is(&merged.point[0], &best) && merged.nfit == r.nfit,
            "%s: of parts %u fit, not %u: %s", which, merged.nfit, r.nfit, diag_render(c, a));
  for (u32 k = 0; same && k < SEARCH_STATES; k++)
    CHECK_MSG(merged.count[k] == r.count[k], "%s: of parts %u in state %u, not %u", which, merged.count[k], k,
              r.count[k]);
  with_bounds++, of_waves += r.space > 64;
}

static void search(u64 seed, bool wide) {
  u64 rng = hash_u64(seed, 77);
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *which = arena_printf(a, "seed %llu", (unsigned long long)seed);
  const u32 of = pick(&rng, COUNT_OF(seqs));
  const front_opts f = {.batch = seqs[of].batch, .seq = seqs[of].seq, .loss = true};
  prog *src = front_load(c, seqs[of].spec, &f);
  CHECK_MSG(src, "%s", diag_render(c, a));
  REQUIRE(src && pass_loss(src));
  figures x = random_figures(&rng, 1 + pick(&rng, 3), true);
  while (ranks_of(&x) < 9) x.devices[0][0]++;
  u32 ranks;
  const char *machine_is = machine_text(&x, 1, false, a),
             *line = wide ? wide_space(&rng, a, &ranks) : random_space(&rng, a, &ranks);
  search_opts o = {.train = !chance(&rng, 8),
                   .batch = seqs[of].batch,
                   .optim = optim_default(OPTIM_ADAM),
                   .ranks = ranks,
                   .only = ~0ull,
                   .no_bounds = true,
                   .threads = 1,
                   .memory_bytes = chance(&rng, 3) ? (i64)(60 + pick(&rng, 200)) << 10 : -1};
  search_result r;
  REQUIRE(strategy_parse(c, a, line, &o.space));
  if (getenv("SEED")) printf("%s\n%s\n%s\n", machine_is, seqs[of].spec, line);
  const machine *m = machine_on(c, a, machine_is);
  if (search_run(c, a, src, m, &costs, &o, &r)) {
    CHECK_MSG(!r.bound_failed, "%s: %s", which, line);
    bounded(c, a, src, m, o, &r, which);
    u32 left = AGAIN;
    for (u32 k = 0; k < 4 * AGAIN && left && r.nfit; k++) {
      const search_point *p = &r.point[pick(&rng, r.nfit)];
      const strategy is = search_strategy(p);
      if (asks(&is)) again(&o, src, machine_is, p, which), left--;
    }
  } else if (getenv("SEED"))
    printf("%s", diag_render(c, a));
  prog_free(src);
  ctx_free(c);
}

// Every plan of a search in which a figure of one was taken for another.
static void search_all(const char *spec, const char *machine_is, const char *line) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const front_opts f = {.batch = 32, .seq = 16, .loss = true};
  prog *src = front_load(c, spec, &f);
  REQUIRE(src && pass_loss(src));
  search_opts o = {
      .train = true, .batch = 32, .optim = optim_default(OPTIM_ADAM), .no_bounds = true, .threads = 1};
  search_result r;
  REQUIRE(strategy_parse(c, a, line, &o.space));
  const bool ok = search_run(c, a, src, machine_on(c, a, machine_is), &costs, &o, &r);
  CHECK_MSG(ok, "%s", diag_render(c, a));
  for (u32 k = 0; ok && k < r.nfit; k++) again(&o, src, machine_is, &r.point[k], line);
  prog_free(src);
  ctx_free(c);
}

// A plan that is impossible has no cuts; another schedule with as many stages on every place has.
TEST(cuts_are_not_those_of_an_impossible_plan) {
  search_all("t5-small:layers=4,hidden=64,heads=4,vocab=512", "1x1 v100 + 1x1 p100 eth=10Gb/s",
             "schedule=zb-2p,interleaved mb=4 v=2 layers=auto recompute=full pp=2 tp=1 dp=1");
}

// What a stage of 1f1b waits for one of gpipe does not.
TEST(stages_are_those_of_the_order) {
  search_all("t5-small:layers=3,hidden=64,heads=4,vocab=512", "1x2 v100 + 1x1 p100 eth=10Gb/s",
             "schedule=gpipe,1f1b mb=4 layers=auto recompute=none pp=3 tp=1 dp=1");
}

TEST(plans_do_not_depend_on_those_beside_them) {
  const char *one = getenv("SEED"), *n = getenv("SEARCHES");
  const u32 most = n ? (u32)atoi(n) : test_cases(SEARCHES);
  if (one) search(strtoull(one, NULL, 0), false);
  for (u64 seed = 1; !one && seed <= most; seed++) search(seed, false);
  printf("  %u plans: %u with layers, %u with data, %u with tensor shares by time\n", plans, with_layers,
         with_data, with_tensor);
  if (one || !test_all_cases()) return;
  CHECK(plans >= 100 && with_layers >= 30 && with_data >= 10 && with_tensor >= 10);
}

TEST(the_best_does_not_depend_on_bounds_and_parts) {
  const char *one = getenv("SEED"), *n = getenv("SEARCHES");
  const u32 most = n ? (u32)atoi(n) : test_cases(WIDE);
  with_bounds = of_waves = 0;
  if (one) search(strtoull(one, NULL, 0), true);
  for (u64 seed = 1; !one && seed <= most; seed++) search(seed, true);
  printf("  %u searches with bounds, %u of several waves\n", with_bounds, of_waves);
  if (!one && test_all_cases()) CHECK(with_bounds >= WIDE / 2 && of_waves >= WIDE / 2);
}

// Layers by time on links so slow that schedules want other cuts.
static void slow_links(u64 seed) {
  static const char *const specs[] = {"bert-base:layers=8,hidden=128,heads=4,vocab=96",
                                      "vit-base:layers=4,hidden=64,heads=4",
                                      "gpt2:layers=6,hidden=96,heads=4,vocab=96"};
  u64 rng = hash_u64(seed, 78);
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *which = arena_printf(a, "seed %llu on slow links", (unsigned long long)seed);
  const u32 pp = 2 + pick(&rng, 2), mb = 4 << pick(&rng, 2), batch = mb * (2 + pick(&rng, 3));
  const front_opts f = {.batch = batch, .seq = 64 << pick(&rng, 3), .loss = true};
  prog *src = front_load(c, specs[pick(&rng, COUNT_OF(specs))], &f);
  if (src && !pass_loss(src)) diag_clear(c); // it has one
  const char *on =
      arena_printf(a, "%ux1 %s ib=%uMb/s", pp, pick(&rng, 2) ? "t4" : "v100", 200u << pick(&rng, 5));
  search_opts o = {.train = true,
                   .batch = batch,
                   .optim = optim_default(OPTIM_ADAM),
                   .ranks = pp,
                   .only = ~0ull,
                   .no_bounds = true,
                   .threads = 1,
                   .memory_bytes = -1};
  const char *line =
      arena_printf(a, "dp=1 tp=1 pp=%u mb=%u v=1,2 schedule=* recompute=none,full layers=cost,auto", pp, mb);
  search_result r;
  REQUIRE(src && strategy_parse(c, a, line, &o.space));
  const machine *m = machine_load(c, a, on);
  const bool ok = m && search_run(c, a, src, m, &costs, &o, &r);
  CHECK_MSG(ok && !r.bound_failed, "%s: %s", which, diag_render(c, a));
  if (ok) bounded(c, a, src, m, o, &r, which);
  prog_free(src);
  ctx_free(c);
}

TEST(the_best_of_layers_by_time_does_not_depend_on_bounds) {
  const char *one = getenv("SEED"), *n = getenv("SEARCHES");
  const u32 most = n ? (u32)atoi(n) : test_cases(SLOW);
  if (one) slow_links(strtoull(one, NULL, 0));
  for (u64 seed = 1; !one && seed <= most; seed++) slow_links(seed);
}
