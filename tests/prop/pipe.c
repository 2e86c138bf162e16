// pipe.c - pipelines known by their stages against the same programs written out: random plans, time and peak
// memory equal to the last bit. The oracle is the event-graph engine, folded, on the program with all tasks.
#include "front/front.h"
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

static u32 known, whole, summed, sums_whole, shorter, bytes_differ, many_classes, sent[3];
static bool sends_elsewhere(plans_model *m, const plan *pn, cost_model *k, const sim_order *order, u32 n,
                            arena *a);

// Not as a row has it: what stages of one place share may go with any of their tasks.
static bool in_any_order(ctx *c, const plan *pn) { return strstr(sym_str(c, pn->name), "reordered") != NULL; }

// by_time: stages of one place that read each other's values may run in any order, and the probe has only one
// of them: what each of them frees, so its bytes, may be another's then. Such cases are counted.
static bool compare(plans_model *m, const plan *pn, cost_model *k, bool by_time, bool elsewhere, arena *a) {
  ctx *c = m->c;
  plan_probed about;
  const sim_order *order = NULL;
  u32 n = 0;
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true, .steady = pn->train};
  prog *probe = plan_probe(m->pl, pn, k, a, false, &about);
  prog *d = plan_apply(m->pl, pn, k);
  bool ok = probe || !d; // a deadlock does not concern a probe
  if (!ok)
    printf("  probe %s, program %s: %s\n", probe ? "made" : "refused", d ? "made" : "refused",
           diag_render(c, a));
  if (probe && d) {
    u32 errors = diag_errors(c);
    sim_result r;
    const sim_stages *st = sim_stages_of(c, a, probe, k, &so, &about.pipeline);
    if (st) REQUIRE(plan_line(c, a, pn, &about.graph, &n, &order));
    const sim_line *l = st ? sim_line_new(a, st, order, n) : NULL;
    if (!l) {
      whole++, sums_whole += pn->sum_stream.i != 0;
      ok = diag_errors(c) == errors;
    } else if (sim_run(c, a, d, k, &so, &r)) {
      sim_pipe_result p;
      sim_pipe(st, a, l, &p);
      sim_pipe_result lanes[2]; // the same in vectors
      const sim_stages *both[2] = {st, st};
      sim_pipes(2, both, a, l, NULL, lanes);
      summed += pn->sum_stream.i != 0;
      many_classes += sim_stages_classes(st) > 2;
      bytes_differ += p.peak_bytes != r.peak_bytes;
      ok = !memcmp(&lanes[0], &p, sizeof p) && !memcmp(&lanes[1], &p, sizeof p) &&
           p.makespan_ps == r.makespan_ps && p.period_ps == r.period_ps &&
           (by_time || p.peak_bytes == r.peak_bytes);
      shorter += p.period_ps < p.makespan_ps;
      if (!ok)
        printf("  %s: time %lld for %lld, per step %lld for %lld, bytes %lld for %lld\n",
               sym_str(c, pn->name), (long long)p.makespan_ps, (long long)r.makespan_ps,
               (long long)p.period_ps, (long long)r.period_ps, (long long)p.peak_bytes,
               (long long)r.peak_bytes);
      const double shares[2][3] = {{p.utilisation, p.comm, p.bubble}, {r.utilisation, r.comm, r.bubble}};
      if (memcmp(shares[0], shares[1], sizeof shares[0])) // to the last bit
        ok = false, printf("  utilisation %.17g for %.17g\n", p.utilisation, r.utilisation);
      known++;
      if (ok && elsewhere && about.pipeline.nlinks && !pn->rendezvous)
        ok = sends_elsewhere(m, pn, k, order, n, a);
    } else
      ok = false;
  }
  prog_free(probe);
  prog_free(d);
  return ok;
}

// Sends on other streams, told by the stages of the plan whose sends have a channel for each peer: are they
// the program's with those streams?
static bool sends_elsewhere(plans_model *m, const plan *pn, cost_model *k, const sim_order *order, u32 n,
                            arena *a) {
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  plan_probed about;
  plan peers = *pn;
  peers.send_stream = sym_of(m->c, "pp"), peers.send_channels = 4;
  prog *probe = plan_probe(m->pl, &peers, k, a, false, &about);
  const sim_pipeline *pl = &about.pipeline;
  const sim_stages *st = sim_stages_of(m->c, a, probe, k, &so, pl);
  u16 *from = NEWN(a, u16, pl->nlinks + 1), *to = NEWN(a, u16, pl->nlinks + 1);
  for (u32 i = 0; i < pl->nlinks; i++)
    from[i] = pl->place[pl->link[i].from], to[i] = pl->place[pl->link[i].to];
  prog_free(probe);
  sim_totals *totals = st ? sim_totals_new(a, st) : NULL; // of one stream and of two, over one line
  const sim_line *line = NULL;
  for (u32 channels = 0; channels <= 2; channels++) {
    plan as = *pn;
    as.send_stream = channels ? peers.send_stream : (sym){0};
    as.send_channels = (u8)channels;
    u8 *strm[2] = {NEWN(a, u8, pl->nlinks + 1), NEWN(a, u8, pl->nlinks + 1)};
    const u32 streams = plan_send_streams(a, &as, pl->nlinks, from, to, strm);
    const sim_stages *own = st ? sim_stages_sending(a, st, streams, strm, channels) : NULL;
    if (!own) continue;
    prog *d = plan_apply(m->pl, &as, k);
    sim_result r;
    REQUIRE(d && sim_run(m->c, a, d, k, &so, &r));
    sim_pipe_result p;
    if (!line || !sim_line_fits(line, own)) line = sim_line_new(a, own, order, n);
    sim_pipes(1, &own, a, line, channels ? &totals : NULL, &p);
    prog_free(d);
    sent[channels]++;
    if (p.makespan_ps == r.makespan_ps && p.peak_bytes == r.peak_bytes && p.comm == r.comm &&
        p.bubble == r.bubble && p.utilisation == r.utilisation)
      continue;
    printf("  %s, channels %u: time %lld for %lld, bytes %lld for %lld\n", sym_str(m->c, pn->name), channels,
           (long long)p.makespan_ps, (long long)r.makespan_ps, (long long)p.peak_bytes,
           (long long)r.peak_bytes);
    return false;
  }
  return true;
}

static u32 plans_of(u32 n) { return getenv("PLANS") ? (u32)atoi(getenv("PLANS")) : test_cases(n); }

// What is printed reads back: the orders go through the text of a plan.
static const plan *through_text(plans_model *m, const plan *pn, arena *a) {
  strbuf b = {.a = a};
  plan_print(planner_source(m->pl), pn, &b);
  return plan_parse(a, planner_source(m->pl), NULL, sym_of(m->c, "plan"), sb_str(&b), b.n);
}

static bool flat_is_folded(plans_model *m, const plan *pn, cost_model *k, arena *a) {
  sim_result r[2];
  prog *d = plan_apply(m->pl, pn, k);
  bool ok = true;
  if (!d) return true; // refused by the probe as well
  for (u32 i = 0; i < 2 && ok; i++) {
    const sim_opts so = {.mode = i ? SIM_FOLDED : SIM_FLAT, .peak_only = true};
    ok = sim_run(m->c, a, d, k, &so, &r[i]);
  }
  ok = ok && r[0].makespan_ps == r[1].makespan_ps && r[0].peak_bytes == r[1].peak_bytes;
  prog_free(d);
  return ok;
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);

// Plans of one model; text: through their text, and the program flat as well.
static void check_model(u32 index, maker *make, u32 first, u32 plans, bool text) {
  const char *one = getenv("SEED");
  plans_model m;
  plans_open(&m, index);
  arena *ma = arena_new();
  machine *mach = machine_load(m.c, ma, "17x4 v100 nvlink=100GB/s ib=2x100Gb/s");
  cost_model *k = cost_model_new(m.c, ma, mach, NULL);
  for (u32 seed = one ? (u32)atoi(one) : first; seed <= (one ? (u32)atoi(one) : first + plans - 1); seed++) {
    u64 rng = seed * 7919 + index;
    arena *a = arena_new();
    const plan *pn = make(&m, &rng, a);
    diag_clear(m.c);
    if (pn && (pn->offload || (pn->sum_stream.i && !plan_has_probe(pn)))) { // it is simulated whole
      plan *own = arena_dup(a, pn, sizeof *pn);
      own->offload = own->prefetch = 0, own->host_update = false;
      if (!plan_has_probe(own)) own->sum_stream = (sym){0};
      pn = own;
    }
    const plan *made = pn;
    if (pn && text) pn = through_text(&m, pn, a);
    CHECK_MSG(!made == !pn, "model %s seed %u: %s", m.name, seed, diag_render(m.c, a));
    if (pn && (!compare(&m, pn, k, make == plans_random || in_any_order(m.c, pn), make == plans_hybrid, a) ||
               (text && !flat_is_folded(&m, pn, k, a)))) {
      strbuf b = {.a = a};
      plan_print(planner_source(m.pl), pn, &b);
      printf("model %s seed %u\n%s", m.name, seed, getenv("SHOW") ? sb_str(&b) : "");
      CHECK(false);
    }
    diag_clear(m.c);
    arena_free(a);
  }
  arena_free(ma);
  plans_close(&m);
}

TEST(pipe_is_the_program_written_out) {
  known = whole = 0;
  memset(sent, 0, sizeof sent);
  for (u32 i = 0; i < plans_count(); i++) check_model(i, plans_hybrid, 1, plans_of(90), false);
  printf("  %u pipelines by stages, %u whole; %u, %u and %u with sends on other streams; %u with sums "
         "beside, %u "
         "whole\n",
         known, whole, sent[0], sent[1], sent[2], summed, sums_whole);
  CHECK(!test_all_cases() || (known > 100 && sent[0] > 20 && sent[1] > 20 && sent[2] > 20));
}

// The first stage has no input gradient to make, so nothing of its I waits for the gradient that came: its W
// does.
TEST(pipe_weight_gradients_wait_for_what_came) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *src = front_load(c, "gpt3-xl:layers=4", &(front_opts){.batch = 8, .loss = true});
  cost_model *k = cost_model_new(c, a, machine_load(c, a, "1x4 v100"), NULL);
  REQUIRE(src && k);
  plans_model m = {.name = "gpt3-xl", .c = c, .a = a, .src = src, .pl = planner_new(src)};
  static const char *const how[] = {"", " recompute=full", " channels=one", " overlap=none"};
  for (u32 i = 0; i < COUNT_OF(how); i++) {
    const hybrid_opts h = {.s = strategy_of("tp=2 pp=2 v=2 mb=4 schedule=zb-h1 sp%s", how[i]),
                           .train = true,
                           .optim = optim_default(OPTIM_ADAM)};
    known = whole = 0;
    const plan *pn = policy_hybrid(m.pl, a, &h);
    REQUIRE(pn);
    CHECK(compare(&m, pn, k, false, true, a));
    CHECK(known == 1 && whole == 0);
  }
  planner_free(m.pl);
  prog_free(src);
  ctx_free(c);
}

// One plan: the model's file or name, samples. *impossible NULL: it has to be possible. Else whether it is not.
static void compare_one(const char *model, i64 batch, const char *on, const char *line, bool *impossible) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *src = front_load(c, model, &(front_opts){.batch = batch, .seq = 64, .loss = true});
  if (src && !pass_loss(src)) diag_clear(c); // it has one
  cost_model *k = cost_model_new(c, a, machine_load(c, a, on), NULL);
  strategy_set set;
  hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_ADAM)};
  REQUIRE(src && k);
  plans_model m = {.name = model, .c = c, .a = a, .src = src, .pl = planner_new(src)};
  const bool one = strategy_parse(c, a, line, &set) && strategy_one(c, &set, &h.s);
  const plan *pn = one ? policy_hybrid(m.pl, a, &h) : NULL;
  if (impossible) *impossible = !pn;
  if (pn || !impossible)
    CHECK_MSG(pn && compare(&m, pn, k, false, true, a), "%s, %s: %s", model, line, diag_render(c, a));
  planner_free(m.pl);
  prog_free(src);
  ctx_free(c);
}

static void check_plan_as(const char *model, i64 batch, const char *on, const char *line, u32 by_stages) {
  known = whole = 0;
  compare_one(model, batch, on, line, NULL);
  CHECK_MSG(known == by_stages && whole == !by_stages, "%s, %s", model, line);
}
static void check_plan(const char *model, i64 batch, const char *on, const char *line) {
  check_plan_as(model, batch, on, line, 1);
}

TEST(pipe_of_odd_models) {
  // What microbatches leave for the end is freed while the peak is there: a weight that the loss does not
  // depend on.
  check_plan("tests/unused.heddle", 0, "1x2 v100", "dp=2 mb=16");
  check_plan("tests/unused.heddle", 0, "1x2 v100", "dp=2 mb=4 zero=2");
  // Parameters with data, of which a probe skips some.
  check_plan("resnet101", 4, "8x1 a100 ib=10Gb/s", "pp=8 mb=4 layers=equal");
  // A first stage that nothing takes a gradient from.
  check_plan("tests/nograd.heddle", 0, "1x2 v100", "pp=2 layers=equal mb=4");
  check_plan("tests/nograd.heddle", 0, "1x2 v100", "pp=2 layers=equal mb=4 schedule=zb-h1");
}

// What lies on all places, before the layers, between them and behind them, and holds up all places.
TEST(pipe_of_stages_on_all_places) {
  static const struct {
    const char *model, *on;
  } all[] = {{"gpt2:layers=8,hidden=64,heads=4,vocab=96", "2x4 v100 ib=100Gb/s"},
             {"llama2-7b:layers=9,hidden=48,heads=8,kv_heads=4,head_dim=6,ffn=96,vocab=64", "1x8 a100"},
             {"t5-small:layers=4", "8x1 v100 ib=10Gb/s"},
             {"mbart:layers=4,hidden=64,heads=4,vocab=96", "2x4 a100 ib=100Gb/s"},
             {"gpt2:layers=8,hidden=64,heads=4,vocab=97", "1x4 v100 ib=100Gb/s + 1x4 a100 ib=100Gb/s"}};
  static const char *const lines[] = {"pp=4 mb=8",
                                      "pp=2 mb=6 dp=2 zero=1",
                                      "pp=2 mb=12 tp=2 sp",
                                      "pp=4 mb=8 dp=2 zero=3",
                                      "pp=4 mb=1",
                                      "pp=2 mb=2 dp=2 zero=2",
                                      "pp=4 mb=8 overlap=none",
                                      "pp=4 mb=12 dp=2 recompute=full channels=pass",
                                      "pp=8 mb=8 channels=one"};
  for (u32 k = 0; k < COUNT_OF(all); k++)
    for (u32 i = 0; i < COUNT_OF(lines); i++)
      for (u32 block = 0; block < 2; block++) {
        char line[96];
        snprintf(line, sizeof line, "%s schedule=%s", lines[i], block ? "interlaced-block" : "interlaced");
        check_plan(all[k].model, 48, all[k].on, line);
      }
}

// Stages that lie in a V, two of which read each other's values on the last place, and the first and the last lie on one
// (of tied weights both read it): backwards in two parts, of some microbatches or of all.
TEST(pipe_of_a_v) {
  static const struct {
    const char *model, *on;
  } all[] = {{"gpt2:layers=16,hidden=64,heads=4,vocab=96", "2x4 v100 ib=100Gb/s"},
             {"llama2-7b:layers=17,hidden=48,heads=8,kv_heads=4,head_dim=6,ffn=96,vocab=64", "1x8 a100"},
             {"bert-large:layers=17", "4x2 a100 ib=100Gb/s"},
             {"t5-small:layers=8", "1x8 a100"},
             {"vit-base:layers=17,hidden=48,heads=4", "8x1 v100 ib=10Gb/s"}};
  static const char *const lines[] = {"pp=2 mb=4",
                                      "pp=2 mb=6 dp=4 zero=2",
                                      "pp=2 mb=12 tp=4 sp",
                                      "pp=4 mb=8 dp=2 zero=3",
                                      "pp=4 mb=8 overlap=none",
                                      "pp=4 mb=16 dp=2 recompute=full channels=pass",
                                      "pp=8 mb=16 channels=one",
                                      "pp=8 mb=24 recompute=selective"};
  for (u32 row = 0; sched_row_of(row); row++) {
    const sched_row *r = sched_row_of(row);
    for (u32 i = 0; i < COUNT_OF(all) && r->placement == PLACED_V; i++)
      for (u32 k = i % test_step(); k < COUNT_OF(lines); k += test_step()) {
        char line[100];
        if (!strncmp(all[i].model, "vit", 3) && strstr(lines[k], " sp")) continue;
        snprintf(line, sizeof line, "schedule=%s layers=equal %s", r->name, lines[k]);
        check_plan(all[i].model, 96, all[i].on, line);
      }
  }
}

// The last backward of a stage sums its gradients beside itself: every schedule of one pipeline, fewer microbatches than
// a probe has, tied weights, which the update sums, weights of which a rank has a piece.
TEST(pipe_of_sums_beside) {
  static const struct {
    const char *model, *on;
  } all[] = {
      {"gpt2:layers=16,hidden=64,heads=4,vocab=96", "2x8 v100 ib=100Gb/s"},
      {"llama2-7b:layers=16,hidden=48,heads=8,kv_heads=4,head_dim=6,ffn=96,vocab=64", "4x4 a100 ib=25Gb/s"},
      {"bert-large:layers=16", "8x2 a100 ib=10Gb/s"},
      {"t5-small:layers=8", "1x16 a100"},
      {"mlp-xs:layers=16,hidden=64", "16x1 v100 ib=1Gb/s"}};
  static const char *const lines[] = {"dp=2 pp=2 mb=4",
                                      "dp=4 pp=4 mb=8 zero=1",
                                      "dp=2 pp=8 mb=16",
                                      "dp=2 tp=2 pp=4 mb=1",
                                      "dp=2 tp=2 pp=2 mb=2 recompute=full",
                                      "dp=4 pp=2 mb=3 zero=1",
                                      "dp=2 pp=4 mb=8 overlap=dp",
                                      "dp=2 pp=4 mb=8 overlap=dp recompute=full",
                                      "dp=2 pp=4 mb=12 channels=pass",
                                      "dp=2 pp=4 mb=8 channels=one recompute=selective"};
  known = whole = summed = 0;
  u32 n = 0;
  for (u32 row = 0; sched_row_of(row); row++) {
    const sched_row *r = sched_row_of(row);
    if (sched_replicas(r) > 1 || plan_unrolls(r) || r->weights != WEIGHTS_ONE) continue;
    for (u32 i = 0; i < COUNT_OF(all); i++)
      for (u32 k = (i + row) % test_step(); k < COUNT_OF(lines); k += test_step()) {
        char line[140];
        const bool loops = !strcmp(r->name, "interleaved") || !strcmp(r->name, "bfs");
        snprintf(line, sizeof line, "schedule=%s%s layers=equal overlap=pp+dp %s", r->name,
                 loops ? " v=2" : "", lines[k]);
        char *own = strstr(lines[k], "overlap=") ? strstr(line, "overlap=pp+dp") : NULL;
        if (own) memset(own, ' ', strlen("overlap=pp+dp"));
        bool impossible;
        compare_one(all[i].model, 96, all[i].on, line, &impossible);
        n += !impossible;
      }
  }
  printf("  %u plans, %u of them by stages\n", n, summed);
  CHECK(!test_all_cases() || summed > 400);
}

// Stages that a forward passes three times: those of the first two passes have no backward, but for what an embedding gets.
TEST(pipe_of_passes) {
  static const char *const lines[] = {"pp=2 mb=4",
                                      "pp=2 mb=8 dp=2 zero=2",
                                      "pp=2 mb=8 tp=2 layers=5/2",
                                      "pp=4 mb=8 dp=2 zero=1",
                                      "pp=4 mb=8 overlap=none",
                                      "pp=4 mb=8 recompute=full channels=pass",
                                      "pp=7 mb=16 channels=one"};
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    char line[100];
    snprintf(line, sizeof line, "schedule=3f1b %s", lines[k]);
    check_plan("alphafold2:layers=7,msa=4,hidden=16,heads=2,head_dim=8,pair=16,positions=8,recycle=3", 16,
               k == 6 ? "1x7 v100" : "2x4 v100 ib=100Gb/s", line);
  }
}

// What the first stage of the last place gives to the second one, both weight parts read: the order says which one frees it. No
// stages tell that.
TEST(pipe_of_a_v_that_shares_a_buffer) {
  check_plan_as("mlp-xs:layers=17", 96, "8x1 v100 ib=10Gb/s", "schedule=zb-v layers=equal pp=4 mb=8", 0);
  check_plan_as("resnet50", 8, "1x2 v100", "schedule=zb-v-half layers=equal pp=2 mb=2", 0);
  check_plan("mlp-xs:layers=17", 96, "8x1 v100 ib=10Gb/s", "schedule=zb-h1 layers=equal pp=4 mb=8");
}

// Two replicas that run in opposite directions: weights that several stages read, several values between stages,
// fewer microbatches of a replica than a probe has, pairs of places that lie in other ways.
TEST(pipe_of_both_ways) {
  static const struct {
    const char *model, *on;
  } all[] = {{"gpt2:layers=12,hidden=64,heads=4,vocab=96", "2x4 v100 ib=100Gb/s"},
             {"bert-large:layers=9", "4x2 a100 ib=100Gb/s"},
             {"t5-small", "1x8 a100"},
             {"mlp-xs:layers=17", "8x1 v100 ib=10Gb/s"}};
  static const char *const lines[] = {"pp=2 mb=2",
                                      "pp=2 mb=4 dp=4 zero=2",
                                      "pp=2 mb=12 tp=4 sp",
                                      "pp=4 mb=6 dp=2 zero=3",
                                      "pp=4 mb=8 overlap=none",
                                      "pp=4 mb=16 dp=2 recompute=full channels=pass",
                                      "pp=8 mb=2 channels=one",
                                      "pp=8 mb=8",
                                      "pp=8 mb=24 recompute=selective"};
  for (u32 i = 0; i < COUNT_OF(all); i++)
    for (u32 k = i % test_step(); k < COUNT_OF(lines); k += test_step()) {
      char line[100];
      if (!strncmp(all[i].model, "mlp", 3) && strstr(lines[k], " sp")) continue;
      for (u32 row = 0; sched_row_of(row); row++) {
        const sched_row *r = sched_row_of(row);
        u32 pp = 0, mb = 0;
        REQUIRE(sscanf(lines[k], "pp=%u mb=%u", &pp, &mb) == 2);
        if (r->placement != PLACED_BOTH || mb < r->least * pp || mb % r->multiple) continue;
        snprintf(line, sizeof line, "schedule=%s layers=equal %s", r->name, lines[k]);
        check_plan(all[i].model, 96, all[i].on, line);
      }
    }
}

// Replicas of different make-up: places of other sizes, copies of weights before the tasks, gradients on their way home
// after them, microbatches of each replica.
TEST(pipe_of_make_ups) {
  known = whole = shorter = many_classes = 0;
  memset(sent, 0, sizeof sent);
  for (u32 i = 0; i < plans_count(); i++) check_model(i, plans_made_up, 1, plans_of(25), false);
  printf(
      "  %u make-ups by stages (%u of more than two rank classes, %u take less in steady state), %u whole\n",
      known, many_classes, shorter, whole);
  CHECK(!test_all_cases() || (known > 100 && whole < known));
}

// Several sets of stages on one line at once are what each of them is alone.
TEST(pipe_lanes_are_pipes) {
  static const char *const shapes[] = {"dp=2 tp=2 pp=2 mb=4",
                                       "dp=2 tp=2 pp=4 mb=8 v=2 schedule=interleaved",
                                       "tp=2 pp=4 mb=4 schedule=zb-h1",
                                       "dp=2 pp=2 mb=8 v=2 schedule=zb-h1 channels=one",
                                       "tp=2 pp=4 mb=8 v=2 schedule=zb-h1 overlap=none",
                                       "dp=2 tp=2 pp=2 mb=4 overlap=none",
                                       "dp=3 pp=2 mb=4 schedule=gpipe channels=pass"};
  static const char *const more[] = {"",       "recompute=full", "recompute=selective",   "zero=1",
                                     "zero=2", "zero=3",         "zero=3 recompute=full", "tables=whole"};
  ctx *c = ctx_new();
  prog *src = front_load(c, "gpt3-xl:layers=7", &(front_opts){.batch = 96, .loss = true});
  cost_model *k = cost_model_new(c, ctx_arena(c), machine_load(c, ctx_arena(c), "4x4 v100 ib=100Gb/s"), NULL);
  REQUIRE(src && k);
  planner *pl = planner_new(src);
  u32 together = 0, apart = 0;
  for (u32 i = 0; i < COUNT_OF(shapes); i++) {
    arena *a = arena_new();
    const sim_stages *st[SIM_LANES];
    const sim_line *line = NULL;
    u32 n = 0;
    for (u32 j = 0; j < COUNT_OF(more); j++) {
      const char *text = arena_printf(a, "%s %s", shapes[i], more[j]);
      strategy_set set;
      hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_ADAM)};
      REQUIRE(strategy_parse(c, a, text, &set) && strategy_one(c, &set, &h.s));
      const plan *pn = policy_hybrid(pl, a, &h);
      diag_clear(c);
      if (!pn) continue; // not of this shape
      plan_probed about;
      prog *probe = plan_probe(pl, pn, k, a, false, &about);
      REQUIRE(probe);
      const sim_stages *own =
          sim_stages_of(c, a, probe, k, &(sim_opts){.mode = SIM_FOLDED, .peak_only = true}, &about.pipeline);
      prog_free(probe);
      const sim_order *order;
      u32 steps;
      REQUIRE(own && plan_line(c, a, pn, &about.graph, &steps, &order));
      if (!line) line = sim_line_new(a, own, order, steps);
      if (sim_line_fits(line, own)) st[n++] = own;
    }
    sim_pipe_result all[SIM_LANES], one;
    sim_pipes(n, st, a, line, NULL, all);
    for (u32 j = 0; j < n; j++) {
      sim_pipe(st[j], a, line, &one);
      CHECK_MSG(!memcmp(&one, &all[j], sizeof one), "%s, lane %u: %lld for %lld", shapes[i], j,
                (long long)all[j].makespan_ps, (long long)one.makespan_ps);
      apart += j && one.makespan_ps != all[0].makespan_ps;
    }
    together += n;
    arena_free(a);
  }
  printf("  %u sets of stages in lanes, %u of them with times of their own\n", together, apart);
  CHECK(together > 30 && apart > 20);
  planner_free(pl);
  prog_free(src);
  ctx_free(c);
}

TEST(pipe_takes_any_order) {
  known = whole = shorter = 0;
  for (u32 i = 0; i < plans_count(); i++) check_model(i, plans_ordered, 1, plans_of(12), true);
  printf("  %u pipelines of any order by stages, %u whole, %u of them take less in steady state\n", known,
         whole, shorter);
  CHECK(!test_all_cases() || (known > 60 && shorter > 10));
}

TEST(pipe_takes_random_plans) {
  known = whole = bytes_differ = many_classes = 0;
  for (u32 i = 0; i < plans_count(); i++) {
    check_model(i, plans_random, 1, plans_of(30), true);
    if (plans_has_tables(i)) check_model(i, plans_random, 258, 1, true); // ranks of no place gather weights
  }
  printf("  %u random plans by stages (%u of more than two rank classes), %u in other bytes; %u whole\n",
         known, many_classes, bytes_differ, whole);
  CHECK(!test_all_cases() || (known > 60 && bytes_differ <= known / 20));
}
