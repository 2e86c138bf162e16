// test_coshard.c - heads and hidden units in parts, one after the other: what is computed, what a layer keeps, what a
// part keeps, what tensor ranks store, and what is refused.
#include "split_model.h"
#include <stdlib.h>

typedef struct {
  const char *model;
  const char *block[2]; // functions that are rewritten
  u32 dims, parts;      // parts: more than two that divide
} family;
static const family families[] = {
    {"gpt2:layers=2,hidden=64,heads=8,vocab=512", {"layer"}, 0, 4},
    {"bert-base:layers=2,hidden=64,heads=8,vocab=512", {"layer"}, 0, 4},
    {"llama2-70b:layers=2,hidden=64,heads=16,kv_heads=8,ffn=128,vocab=512", {"layer"}, 0, 4},
    {"t5-small:layers=2,hidden=64,heads=8,vocab=512", {"encoder", "decoder"}, 0, 4},
    {"moe-8x125m:layers=2,hidden=64,heads=8,vocab=512", {"layer"}, 0, 4},
    {"examples/gpt2.onnx", {"block"}, 2, 3},
};

static split_model open_with(const family *f, const char *line, bool train) {
  const hybrid_opts h = {.s = strategy_of("%s", line), .train = train, .optim = optim_default(OPTIM_ADAM)};
  return split_open(f->model, f->dims, &h);
}

static bool is_part(const split_model *m, u32 f) {
  return strstr(sym_str(m->c, m->p->funcs.v[f]->name), ".part") != NULL;
}

static bool ends_in(const char *s, const char *end) {
  return strlen(s) >= strlen(end) && !strcmp(s + strlen(s) - strlen(end), end);
}

// What forwards of layers, or of parts, save for the backward: what they return behind what they computed.
static double saved(const split_model *m, bool parts) {
  double sum = 0;
  for (u32 f = 1; f < m->p->funcs.n; f++) {
    const func_info *fi = m->p->funcs.v[f];
    if (!ends_in(sym_str(m->c, fi->name), ".fwd") || strstr(sym_str(m->c, fi->name), "stage") ||
        is_part(m, f) != parts)
      continue;
    for (u32 k = 1; k < fi->rets.n; k++) sum += local_bytes(m->p, fi, fi->rets.v[k]);
  }
  return sum;
}

// A layer saves what it saved but for what its stretches did, of which each part saves a C-th while it is computed
// again; of what parts are cut from nothing.
TEST(coshard_layers_keep_what_parts_share) {
  static const char *const how[] = {"", "tp=2 ", "tp=2 zero=0 mb=2 "};
  for (u32 i = 0; i < COUNT_OF(families); i++)
    for (u32 h = 0; h < COUNT_OF(how); h++)
      for (u32 parts = 2; parts <= families[i].parts; parts += families[i].parts - 2) {
        char line[64];
        snprintf(line, sizeof line, "%scoshard=%u", how[h], parts);
        split_model one = open_with(&families[i], how[h], true), cut = open_with(&families[i], line, true);
        if (CHECK_MSG(one.p && cut.p, "%s, %s: %s", families[i].model, line, diag_render(cut.c, cut.a))) {
          const double whole = saved(&one, false), layer = saved(&cut, false), part = saved(&cut, true);
          // tokens of experts, which a tensor axis splits, are whole where all parts read them
          const bool whole_tokens = h && strstr(families[i].model, "moe");
          CHECK_MSG(whole_tokens ? layer + parts * part < 1.1 * whole : whole == layer + parts * part,
                    "%s, %s: %g is not %g + %u x %g", families[i].model, line, whole, layer, parts, part);
          CHECK_MSG(part > 0 && layer < 0.5 * whole, "%s, %s: %g of %g", families[i].model, line, layer,
                    whole);
        }
        split_close(&one), split_close(&cut);
      }
}

static bool is_table_of_positions(const split_model *m, const func_info *f, u32 k) {
  return strstr(sym_str(m->c, val(f, k)->name), ".bias.table") != NULL;
}

// Each rank stores what it would store without parts, but for tables of relative positions: what is cut from them for
// the parts does not tell a tensor axis of their heads, so they stay whole.
TEST(coshard_tensor_ranks_store_as_much) {
  for (u32 i = 0; i < COUNT_OF(families); i++) {
    split_model one = open_with(&families[i], "tp=2", true),
                cut = open_with(&families[i], "tp=2 coshard=2", true);
    REQUIRE(one.p && cut.p);
    const func_info *f = func_get(one.p, one.p->main), *g = func_get(cut.p, cut.p->main);
    CHECK_EQ_I64(f->nparams, g->nparams);
    for (u32 k = 1; k <= f->nparams; k++)
      CHECK_MSG(is_table_of_positions(&one, f, k) || local_bytes(one.p, f, k) == local_bytes(cut.p, g, k),
                "%s: %s has %g bytes, not %g", families[i].model, sym_str(one.c, val(f, k)->name),
                local_bytes(cut.p, g, k), local_bytes(one.p, f, k));
    split_close(&one), split_close(&cut);
  }
}

// One sum over the tensor ranks where parts have been added, not one for each.
TEST(coshard_parts_are_summed_once_over_ranks) {
  for (u32 i = 0; i < COUNT_OF(families); i++)
    for (u32 k = 0; k < 2 && families[i].block[k]; k++) {
      char line[32];
      snprintf(line, sizeof line, "tp=2 coshard=%u", families[i].parts);
      split_model one = open_with(&families[i], "tp=2", true), cut = open_with(&families[i], line, true);
      double all[2] = {0};
      REQUIRE(one.p && cut.p);
      char part[32];
      snprintf(part, sizeof part, "%s.part", families[i].block[k]);
      CHECK(cut.calls[split_block(&cut, part)] >= families[i].parts);
      for (u32 w = 0; w < 2; w++) {
        const split_model *m = w ? &cut : &one;
        for (u32 f = 1; f < m->p->funcs.n; f++) {
          const char *name = sym_str(m->c, m->p->funcs.v[f]->name);
          if (!strncmp(name, families[i].block[k], strlen(families[i].block[k])))
            all[w] += split_traffic(m, f, 2).all;
        }
      }
      const double most = strstr(families[i].model, "moe") ? 1.5 : 1; // whole tokens of experts
      CHECK_MSG(all[0] > 0 && all[1] <= most * all[0], "%s: %s moves %g bytes, not %g", families[i].model,
                families[i].block[k], all[1], all[0]);
      split_close(&one), split_close(&cut);
    }
}

TEST(coshard_computes_what_the_model_computes) {
  for (u32 i = 0; i < COUNT_OF(families); i += test_step())
    for (u32 train = 0; train < 2; train++) {
      char line[32];
      snprintf(line, sizeof line, "coshard=%u", 2 * families[i].parts);
      split_model m = open_with(&families[i], line, train);
      verify_report r;
      const bool ok = m.pn && plan_verify(m.pl, m.pn, NULL, &(verify_opts){.seed = 3}, m.a, &r);
      if (CHECK_MSG(ok, "%s: %s", families[i].model, diag_render(m.c, m.a)))
        CHECK_MSG(r.passed && r.worst > 0, "%s: %g", families[i].model, r.worst); // sums are of parts
      split_close(&m);
    }
}

// The pass alone, on programs whose functions are not layers.
TEST(coshard_pass_changes_no_number) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 i = 0; i < COUNT_OF(families); i++) {
    if (families[i].dims) continue; // it is large
    prog *p = front_load(c, families[i].model, &(front_opts){.batch = 2, .seq = 8, .loss = true});
    REQUIRE(p);
    prog *q = prog_clone(p, c);
    if (!CHECK_MSG(pass_coshard(q, 4, (loc){0}) && ir_verify(q), "%s", diag_render(c, a))) test_leave();
    CHECK(q->funcs.n > p->funcs.n && func_get(q, q->main)->body.n == func_get(p, p->main)->body.n);
    plan_numbers want, got;
    REQUIRE(plan_evaluate(p, p, 1, a, &want) && plan_evaluate(p, q, 1, a, &got));
    verify_report r;
    CHECK(plan_compare(c, &want, &got, 0, a, &r) && r.passed);
    prog_free(p), prog_free(q);
  }
  arena_free(a);
  ctx_free(c);
}

// A longer sequence of scores than anything else: the peak falls with the parts, the time does not.
TEST(coshard_lowers_the_peak_and_takes_time) {
  double peak[4] = {0}, time[4] = {0};
  for (u32 i = 0; i < 4; i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *src = front_load(c, "gpt2:layers=4,hidden=128,heads=8,vocab=64,positions=1024",
                           &(front_opts){.batch = 2, .seq = 1024, .loss = true});
    machine *m = machine_load(c, a, "1x1 v100");
    planner *pl = src ? planner_new(src) : NULL;
    cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
    REQUIRE(pl && k);
    const hybrid_opts h = {
        .s = strategy_of("coshard=%u", 1u << i), .train = true, .optim = optim_default(OPTIM_ADAM)};
    const plan *pn = policy_hybrid(pl, a, &h);
    prog *p = pn ? plan_apply(pl, pn, k) : NULL;
    sim_result r;
    if (!CHECK_MSG(p && sim_run(c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r), "%s", diag_render(c, a)))
      test_leave();
    peak[i] = (double)r.peak_bytes, time[i] = (double)r.makespan_ps;
    prog_free(p);
    planner_free(pl);
    prog_free(src);
    arena_free(a);
    ctx_free(c);
  }
  const double scores = 2. * 8 * 1024 * 1024 * 4; // of one layer, which saves the probabilities of each
  CHECK_MSG(peak[0] - peak[1] > 3 * scores, "%g to %g, scores %g", peak[0], peak[1], scores);
  for (u32 i = 2; i < 4; i++)
    CHECK_MSG(peak[i - 1] - peak[i] > 1.5 * scores / (1 << i), "%g to %g", peak[i - 1], peak[i]);
  for (u32 i = 1; i < 4; i++) CHECK_MSG(time[i] > time[i - 1], "%g to %g", time[i - 1], time[i]);
}

TEST(coshard_plans_read_back) {
  for (u32 i = 0; i < COUNT_OF(families); i++) {
    split_model m = open_with(&families[i], "tp=2 coshard=2 recompute=selective", true);
    REQUIRE(m.p);
    strbuf text = {.a = m.a}, again = {.a = m.a};
    plan_print(planner_source(m.pl), m.pn, &text);
    CHECK(strstr(sb_str(&text), "coshard: 2\n") && strstr(sb_str(&text), ".part"));
    const plan *q =
        plan_parse(m.a, planner_source(m.pl), NULL, sym_of(m.c, "printed"), sb_str(&text), text.n);
    if (CHECK_MSG(q != NULL, "%s", diag_render(m.c, m.a))) plan_print(planner_source(m.pl), q, &again);
    CHECK_STR(sb_str(&again), sb_str(&text));
    split_close(&m);
  }
}

static bool refused(const char *model, const char *line, const char *message, const char *hint) {
  const family f = {model, {NULL}, 0, 0};
  split_model m = open_with(&f, line, true);
  const char *said = diag_render(m.c, m.a);
  const bool ok = !m.p && strstr(said, message) && strstr(said, hint);
  CHECK_MSG(ok, "%s, %s: %s", model, line, said);
  split_close(&m);
  return ok;
}

TEST(coshard_refusals_say_what_works) {
  static const char gpt[] = "gpt2:layers=2,hidden=64,heads=16,vocab=512";
  refused(gpt, "coshard=3", "16 heads", "hint: coshard=2");
  refused(gpt, "tp=4 coshard=3", "/ tp 4 = 4, which do not split in 3 parts", "hint: coshard=2");
  refused(gpt, "tp=4 coshard=8", "/ tp 4 = 4, which do not split in 8 parts", "hint: coshard=4");
  refused(gpt, "coshard=64", "16 heads", "hint: coshard=16");
  refused("gpt2:layers=2,hidden=64,heads=16,ffn=100,vocab=512", "coshard=8", "100 hidden units",
          "hint: coshard=4");
  refused("mlp-xs", "coshard=2", "no function that main calls has heads or hidden units",
          "hint: leave out coshard");
}
