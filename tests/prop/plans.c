// plans.c - random plans of tiny models. Each one is applied, verified as a program, validated, printed and
// read back, compared in numbers with the single-device program, and simulated four ways that must agree to
// the picosecond and to the byte. SEED=n MODEL=name runs one plan and prints it.
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

enum { EACH = 40, SEEDS = 20 }; // plans of every model and kind

// What the plans that ran had in them: all of it must occur.
typedef enum {
  HAS_DATA,
  HAS_TENSOR,
  HAS_PIPELINE,
  HAS_MICRO,
  HAS_ZERO1,
  HAS_ZERO2,
  HAS_ZERO3,
  HAS_SELECTIVE,
  HAS_FULL,
  HAS_GPIPE,
  HAS_1F1B,
  HAS_SEQUENCE,
  HAS_OVERLAP,
  HAS_WHOLE_TABLES,
  HAS_EQUAL_LAYERS,
  HAS_SPLIT,
  HAS_INPUT_GRADIENTS,
  HAS_INFERENCE,
  HAS_ALL_FOUR,
  HAS_TWO_MESHES,
  HAS_SHARED_PLACE,
  HAS_BACK,
  HAS_STORAGE,
  HAS_UNEVEN,
  HAS_RANKS,
  HAS_MINOR,
  HAS_TEMPORAL,
  HAS_GROUPS,
  HAS_SYNCHRONISED,
  HAS_DATA_SHARES,
  HAS_TENSOR_SHARES,
  HAS_DEGREES,
  HAS_DEGREES_SEQUENCE,
  HAS_DEGREES_DATA_SHARES,
  HAS_DEGREES_TENSOR_SHARES,
  HAS_COPIES,
  HAS_PLACES,
  HAS_REPLICAS,
  HAS_CHIMERA,
  HAS_V,
  HAS_SOME_SPLIT,
  HAS_MAKE_UP,
  HAS_MAKE_UP_ZERO,
  HAS_MAKE_UP_SEQUENCE,
  HAS_MAKE_UP_CHUNKS,
  HAS_MAKE_UP_SPLIT,
  HAS_MAKE_UP_GROUPS,
  HAS_PARTS,
  HAS_PARTS_TENSOR,
  HAS_PARTS_PRIMITIVES,
  HAS_WIDE,
  HAS_WIDE_TENSOR,
  HAS_PASSES,
  HAS_STALE,
  HAS_TWO_VERSIONS,
  HAS_STALE_SHARED,
  HAS_STALE_DEGREES,
  HAS_SERVERS,
  HAS_SERVERS_PIPELINE,
  HAS_INTRA,
  HAS_INTRA_PIPELINE,
  HAS_P2P,
  HAS_P2P_SUMS,
  HAS_P2P_STORED,
  HAS_P2P_PRIMITIVES,
  HAS_COUNT
} feature;
static const char *const feature_name[] = {"data",
                                           "tensor",
                                           "pipeline",
                                           "microbatches",
                                           "zero 1",
                                           "zero 2",
                                           "zero 3",
                                           "recompute selective",
                                           "recompute full",
                                           "gpipe",
                                           "1f1b",
                                           "sequence",
                                           "overlap",
                                           "whole tables",
                                           "equal layers",
                                           "split backward",
                                           "gradients of inputs",
                                           "inference",
                                           "data, tensor, pipeline and microbatches at once",
                                           "two meshes",
                                           "a shared place",
                                           "placement backwards",
                                           "split at rest",
                                           "uneven pieces at rest",
                                           "permuted ranks",
                                           "minor splits",
                                           "splits over time inside functions",
                                           "batch norm in groups",
                                           "batch norm over several ranks",
                                           "unequal shares of the batch",
                                           "unequal shares of matmuls",
                                           "tensor degrees by stage",
                                           "tensor degrees by stage and sequence",
                                           "tensor degrees by stage and unequal shares of the batch",
                                           "tensor degrees by stage and unequal shares of matmuls",
                                           "a weight that is read on two meshes",
                                           "places in another order",
                                           "several replicas",
                                           "chimera",
                                           "stages in a V",
                                           "some backwards in two parts",
                                           "replicas of different make-up",
                                           "replicas of different make-up and storage in pieces",
                                           "replicas of different make-up and sequence",
                                           "replicas of different make-up and several stages on a place",
                                           "replicas of different make-up and split backwards",
                                           "replicas of different make-up and batch norm in groups",
                                           "heads in parts",
                                           "heads in parts and matmuls split",
                                           "heads in parts and random splits",
                                           "an embedding on all places",
                                           "an embedding on all places and matmuls split",
                                           "several passes",
                                           "updates after every microbatch",
                                           "updates after every group of microbatches",
                                           "updates between tasks of a weight that several stages read",
                                           "updates between tasks and tensor degrees by stage",
                                           "parameter servers",
                                           "parameter servers and stages",
                                           "collectives inside groups alone",
                                           "collectives inside groups alone, between stages",
                                           "plain sends and receives",
                                           "plain sends and receives of sums",
                                           "plain sends and receives of what is stored in pieces",
                                           "plain sends and receives and random splits"};
static u32 has[HAS_COUNT], ran, refused;

static void note(feature f, bool yes) { has[f] += yes; }

// Do segments read one weight that are on several meshes, or, `all`, several segments?
static bool is_read_twice(const prog *src, const plan *pn, bool all) {
  const func_info *m = func_get(src, src->main);
  for (value v = 1; v <= m->nparams; v++) {
    u32 on = 0; // + 1
    for (u32 k = 0; m->params.v[v - 1].r == ROLE_WEIGHT && k < pn->nsegments; k++)
      for (u32 i = pn->segments[k].from; i <= pn->segments[k].to; i++)
        for (u32 o = 0; o < m->body.v[i - 1].nopd; o++) {
          const u32 at = (all ? k : pn->segments[k].on.mesh) + 1;
          if (opd_of(m, &m->body.v[i - 1], o) != v) continue;
          if (on && on != at) return true;
          on = at;
        }
  }
  return false;
}

// The name of a hybrid is its strategy.
static void note_name(const prog *src, const plan *pn, const char *name) {
  ctx *c = ctx_new();
  strategy_set set;
  strategy s;
  if (!strncmp(name, "dp=", 3)) {
    REQUIRE(strategy_parse(c, ctx_arena(c), name, &set) && strategy_one(c, &set, &s));
    u32 d = s.dp.n, t = s.tp.n, p = s.pp.n, k = s.mb.n;
    note(HAS_DATA, d > 1), note(HAS_TENSOR, t > 1), note(HAS_PIPELINE, p > 1), note(HAS_MICRO, k > 1);
    note(HAS_ALL_FOUR, d > 1 && t > 1 && p > 1 && k > 1);
    for (u32 z = 1; z <= 3; z++) note((feature)(HAS_ZERO1 + z - 1), s.zero.n == z);
    note(HAS_PARTS, s.coshard.n > 1), note(HAS_PARTS_TENSOR, s.coshard.n > 1 && t > 1);
    note(HAS_SELECTIVE, choice_is(CHOICE_recompute, s.recompute, "selective"));
    note(HAS_FULL, choice_is(CHOICE_recompute, s.recompute, "full"));
    note(HAS_GPIPE, p > 1 && choice_is(CHOICE_schedule, s.schedule, "gpipe"));
    const bool made_up = s.replicas.nparts > 0;
    note(HAS_MAKE_UP, made_up), note(HAS_MAKE_UP_ZERO, made_up && pn->nstorage[STORAGE_WEIGHT]);
    note(HAS_MAKE_UP_SEQUENCE, made_up && s.sp.n), note(HAS_MAKE_UP_CHUNKS, made_up && s.v.n > 1);
    note(HAS_MAKE_UP_SPLIT, made_up && choice_is(CHOICE_schedule, s.schedule, "zb-h1"));
    note(HAS_MAKE_UP_GROUPS, made_up && pn->batchnorm_groups);
    note(HAS_CHIMERA, p > 1 && choice_is(CHOICE_schedule, s.schedule, "chimera"));
    const sched_row *row = p > 1 && !s.schedule.path ? sched_row_of(s.schedule.n) : NULL;
    note(HAS_V, row && row->placement == PLACED_V);
    note(HAS_SOME_SPLIT, row && row->split == SPLIT_SOME);
    const bool wide = row && row->placement == PLACED_WIDE;
    note(HAS_WIDE, wide), note(HAS_WIDE_TENSOR, wide && t > 1),
        note(HAS_PASSES, row && sched_passes(row) > 1);
    note(HAS_1F1B, p > 1 && choice_is(CHOICE_schedule, s.schedule, "1f1b"));
    const bool stale = row && row->weights != WEIGHTS_ONE;
    note(HAS_STALE, stale && row->weights == WEIGHTS_STASHED),
        note(HAS_TWO_VERSIONS, stale && row->weights == WEIGHTS_DOUBLE);
    note(HAS_STALE_SHARED, stale && is_read_twice(src, pn, true)),
        note(HAS_STALE_DEGREES, stale && pn->nmeshes > 1);
    const bool served = pn->nstorage[STORAGE_SERVER] > 0;
    note(HAS_SERVERS, served), note(HAS_SERVERS_PIPELINE, served && p > 1);
    note(HAS_SEQUENCE, s.sp.n), note(HAS_OVERLAP, s.overlap.n && pn->send_stream.i);
    const bool plain = s.materialise.n == MATERIALISE_P2P;
    note(HAS_INTRA, s.materialise.n == MATERIALISE_INTRA), note(HAS_P2P, plain),
        note(HAS_P2P_SUMS, plain && t > 1);
    note(HAS_INTRA_PIPELINE, s.materialise.n == MATERIALISE_INTRA && p > 1 && (d > 1 || t > 1));
    note(HAS_P2P_STORED, plain && s.zero.n == 3);
    note(HAS_WHOLE_TABLES, choice_is(CHOICE_tables, s.tables, "whole"));
    note(HAS_EQUAL_LAYERS, choice_is(CHOICE_layers, s.layers, "equal"));
    note(HAS_DEGREES, pn->nmeshes > 1), note(HAS_PLACES, s.places.nparts > 1);
    bool data = false, tensor = false;
    for (u32 i = 0; i < pn->nmeshes; i++) {
      data |= pn->axes[pn->meshes[i].axis[1] - 1].shares != NULL;
      tensor |= pn->axes[pn->meshes[i].axis[2] - 1].shares != NULL;
    }
    note(HAS_DATA_SHARES, data), note(HAS_TENSOR_SHARES, tensor);
    note(HAS_DEGREES_SEQUENCE, pn->nmeshes > 1 && s.sp.n);
    note(HAS_DEGREES_DATA_SHARES, pn->nmeshes > 1 && data);
    note(HAS_DEGREES_TENSOR_SHARES, pn->nmeshes > 1 && tensor);
  }
  ctx_free(c);
}

static void note_plan(const prog *src, const plan *pn, const char *name) {
  note_name(src, pn, name);
  note(HAS_COPIES, is_read_twice(src, pn, false)), note(HAS_REPLICAS, pn->nreplicas > 1);
  bool split = false;
  for (u32 i = 0; i < pn->nseqs; i++)
    for (u32 k = 0; k < pn->seqs[i].n; k++) split |= pn->seqs[i].v[k].kind == TASK_W;
  note(HAS_SPLIT, split), note(HAS_INPUT_GRADIENTS, pn->input_gradients);
  note(HAS_INFERENCE, !pn->train), note(HAS_TWO_MESHES, pn->nmeshes > 1);
  note(HAS_STORAGE, pn->nstorage[0] + pn->nstorage[1] + pn->nstorage[2] > 0),
      note(HAS_RANKS, pn->meshes[0].ranks != NULL);
  note(HAS_SHARED_PLACE, pn->nseqs < pn->nsegments);
  for (u32 i = 1; i < pn->nsegments; i++) { // a later segment before an earlier one on some axis
    const plan_submesh *a = &pn->segments[i - 1].on, *b = &pn->segments[i].on;
    for (u32 x = 0; x < a->nfix; x++)
      for (u32 y = 0; y < b->nfix; y++)
        note(HAS_BACK, a->mesh == b->mesh && a->fix[x].axis == b->fix[y].axis && a->fix[x].at > b->fix[y].at);
  }
  for (u32 i = 0; i < pn->ntrans; i++) {
    note(HAS_TEMPORAL, pn->trans[i].instr && pn->axes[pn->trans[i].axis - 1].temporal);
    note(HAS_MINOR, pn->trans[i].instr && pn->trans[i].stride == 1);
  }
}

static bool has_pieces(const prog *p) {
  const func_info *f = func_get(p, p->main);
  for (value v = 1; v <= f->nparams; v++)
    if (!layout_is_even(p->sp, val_type(p, f, v)->lay)) return true;
  return false;
}

// ---- simulation ----------------------------------------------------------------------------------------
// Any price will do, as long as it belongs to the instruction: of its operator, what it works on and where in
// its function it stands.
static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)p, (void)g;
  *ps = (i64)(hash_u64(i->op, hash_u64((u64)(i - f->body.v), f->name.i)) % 100000);
  return 1;
}

static bool same_simulation(const sim_result *x, const sim_result *y) {
  if (x->makespan_ps != y->makespan_ps || x->nranks != y->nranks || x->nstreams != y->nstreams ||
      x->instructions != y->instructions || x->peak_bytes != y->peak_bytes)
    return false;
  for (u32 r = 0; r < x->nranks; r++) {
    u32 u = x->class_of_rank[r], v = y->class_of_rank[r];
    if (x->cls[u].peak_bytes != y->cls[v].peak_bytes ||
        memcmp(x->cls[u].peak_kind, y->cls[v].peak_kind, sizeof x->cls[u].peak_kind))
      return false;
    if (memcmp(x->end_ps + u * x->nstreams, y->end_ps + v * y->nstreams, x->nstreams * sizeof *x->end_ps))
      return false;
    if (memcmp(x->busy_ps + u * x->nstreams, y->busy_ps + v * y->nstreams, x->nstreams * sizeof *x->busy_ps))
      return false;
  }
  return true;
}

static bool check_simulation(plans_model *m, const prog *p, arena *a) {
  static const sim_mode modes[] = {SIM_FLAT, SIM_COMPOSED, SIM_FLAT_FOLDED, SIM_FOLDED};
  sim_result first, r;
  for (u32 k = 0; k < COUNT_OF(modes); k++) {
    sim_opts o = {.mode = modes[k], .cost = price};
    if (!sim_run(m->c, a, p, NULL, &o, k ? &r : &first)) return false;
    if (k && !same_simulation(&first, &r)) {
      diag(m->c, E_VERIFY, (loc){0},
           "simulations differ: mode %u takes %lld ps and %lld bytes, flat %lld ps and %lld bytes", modes[k],
           (long long)r.makespan_ps, (long long)r.peak_bytes, (long long)first.makespan_ps,
           (long long)first.peak_bytes);
      return false;
    }
  }
  return true;
}

// ---- one plan ------------------------------------------------------------------------------------------
static const char *program_text(const prog *p, arena *a) {
  strbuf b = {.a = a};
  ir_print(p, &b);
  return sb_str(&b);
}

// What is printed reads back as a plan that makes the same program.
static bool check_text(plans_model *m, const char *text, const prog *p, arena *a) {
  plan *back = plan_parse(a, planner_source(m->pl), NULL, sym_of(m->c, "plan"), text, strlen(text));
  if (!back) return false;
  strbuf again = {.a = a};
  plan_print(planner_source(m->pl), back, &again);
  prog *q = plan_apply(m->pl, back, NULL);
  bool ok = q && !strcmp(sb_str(&again), text) && !strcmp(program_text(q, a), program_text(p, a));
  if (!ok) diag(m->c, E_PLAN, (loc){0}, "the plan read back makes another program");
  if (q) prog_free(q);
  if (!ok) return false;
  const char *whole = program_text(p, a);
  ctx *c = ctx_new(); // names of one session only
  q = ir_parse(c, sym_of(c, "program"), whole, strlen(whole));
  ok = q && !strcmp(program_text(q, a), whole);
  if (!ok) diag(m->c, E_PLAN, (loc){0}, "the program does not read back: %s", diag_render(c, a));
  if (q) prog_free(q);
  ctx_free(c);
  return ok;
}

static bool check_numbers(plans_model *m, const plan *pn, const prog *p, arena *a) {
  plan_numbers got;
  verify_report r = {0};
  return plan_evaluate(m->src, p, PLANS_SEED, a, &got) &&
         plan_compare(m->c, plans_want(m, pn), &got, 0, a, &r) && r.passed;
}

// Every instruction says where in the model it comes from, those of updates and those that a plan inserts
// too.
static bool has_places(const prog *p) {
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++)
      if (!p->funcs.v[f]->body.v[i].where.i) return false;
  return true;
}

static void check_plan(plans_model *m, const plan *pn, u64 seed, arena *a) {
  strbuf text = {.a = a};
  plan_print(planner_source(m->pl), pn, &text);
  if (getenv("SEED")) puts(sb_str(&text));
  prog *p = plan_apply(m->pl, pn, NULL);
  if (!p) {
    if (getenv("SEED")) puts(diag_render(m->c, a));
    refused++;
    return;
  }
  const char *failed = !ir_verify(p)                         ? "is not a program"
                       : !plan_validate(p)                   ? "is not valid"
                       : !has_places(p)                      ? "has instructions without a place"
                       : !check_numbers(m, pn, p, a)         ? "computes something else"
                       : !check_text(m, sb_str(&text), p, a) ? "does not read back"
                       : !check_simulation(m, p, a)          ? "is simulated differently"
                                                             : NULL;
  CHECK_MSG(!failed, "%s, seed %llu, %s: %s\n%s", m->name, (unsigned long long)seed, failed,
            diag_render(m->c, a), sb_str(&text));
  if (getenv("SEED")) puts(program_text(p, a));
  note_plan(m->src, pn, sym_str(m->c, pn->name)), note(HAS_UNEVEN, has_pieces(p));
  note(HAS_GROUPS, pn->batchnorm_groups > 0);
  note(HAS_P2P_PRIMITIVES,
       pn->materialise == MATERIALISE_P2P && !strncmp(sym_str(m->c, pn->name), "random", 6));
  note(HAS_PARTS_PRIMITIVES, pn->coshard > 1 && !strncmp(sym_str(m->c, pn->name), "random", 6));
  note(HAS_SYNCHRONISED, func_find(p, sym_of(m->c, "batchnorm_train.split")).i > 0);
  prog_free(p);
  ran++;
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);
enum { OF_POLICIES, OF_PRIMITIVES, BY_DEGREE, MADE_UP, PLACED, STALE };
static void check_models(maker *make, u32 kind) {
  const char *only = getenv("MODEL"), *one = getenv("SEED");
  ran = refused = 0;
  for (u32 i = 0; i < plans_count(); i++) {
    plans_model m;
    plans_open(&m, i);
    const u32 each = test_cases(kind >= MADE_UP ? EACH / 3 : EACH), want = ran + each;
    u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : SEEDS * EACH * (kind >= BY_DEGREE ? 2 : 1);
    for (u64 seed = from; seed <= to && ran < want && (!only || !strcmp(only, m.name)); seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 2 * i + kind + 1 + (kind >= BY_DEGREE) * 1000);
      diag_clear(m.c);
      plan *pn = make(&m, &rng, a);
      if (pn)
        check_plan(&m, pn, seed, a);
      else
        refused++;
      arena_free(a);
    }
    const bool never =
        (kind == BY_DEGREE && m.batchnorm) || kind >= PLACED; // data ranks differ; not every model
    if (!one && !only && !never)
      CHECK_MSG(ran == want, "%s: %u of %u plans can be applied", m.name, ran + each - want, each);
    plans_close(&m);
  }
}

TEST(plans_of_policies) { check_models(plans_hybrid, OF_POLICIES); }
TEST(plans_of_primitives) { check_models(plans_random, OF_PRIMITIVES); }
TEST(plans_by_degrees) { check_models(plans_by_degree, BY_DEGREE); }
TEST(plans_of_replicas) { check_models(plans_made_up, MADE_UP); }
TEST(plans_of_placed_rows) { check_models(plans_placed, PLACED); }
TEST(plans_with_updates_between_tasks) { check_models(plans_stale, STALE); }

TEST(plans_had_everything) {
  for (u32 k = 0; k < HAS_COUNT && test_all_cases() && !getenv("MODEL") && !getenv("SEED"); k++)
    CHECK_MSG(has[k] >= 5, "only %u plans with %s", has[k], feature_name[k]);
}
