// test_plan_hash.c - plans have the same hash where their texts are the same but for the name, and only
// there; in any session.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

enum { PLANS = 330 };
typedef struct {
  u64 hash;
  const char *text;
} hashed;

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

static strategy random_strategy(u64 *rng, bool train) {
  strategy s = strategy_default();
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const choice_row *r = choice_get(id);
    if (!choice_applies(id, &s, train) || id == CHOICE_mbs || id == CHOICE_v || id == CHOICE_group ||
        id == CHOICE_axial) // of which a GPT has nothing
      continue;
    if (id == CHOICE_sync)
      s.of[i].n = hash_u64(*rng, 1) % 16 == 0; // from a number of its own
    else if (id == CHOICE_attention)
      s.of[i].n = hash_u64(*rng, 2) % 8 == 0; // likewise
    else if (id == CHOICE_coshard)            // of eight heads, which ranks may share 3 to 1
      s.of[i].n = pick(rng, 8) ? 1 : 2;
    else if (id == CHOICE_offload) // inference has weights alone
      s.of[i].n = pick(rng, 16) ? 0 : pick(rng, train ? 16 : 2);
    else if (id == CHOICE_materialise) // the rest of the plan is as with any other
      s.of[i].n = pick(rng, 16) ? 0 : 1 + pick(rng, 2);
    else if (r->kind == CK_COUNT)
      s.of[i].n = r->most == CHOICE_MOST ? 1 + pick(rng, 2) : r->least + pick(rng, r->most - r->least + 1);
    else
      s.of[i].n = pick(rng, choice_all(id));
    if (!choice_is(id, s.of[i], "auto") && !choice_is(id, s.of[i], "whale")) continue; // there is no machine
    static const u32 three_one[] = {3, 1};
    s.of[i] = choice_default(id);
    if (id != CHOICE_layers) s.of[i] = (choice_value){.nparts = 2, .part = three_one};
  }
  if (s.sync.n)
    s.zero = choice_default(CHOICE_zero), s.offload = choice_default(CHOICE_offload); // servers have them
  if (!s.offload.n) s.prefetch = choice_default(CHOICE_prefetch);
  if (!(s.offload.n & OFFLOAD_STATES)) s.update = choice_default(CHOICE_update);
  if (sched_passes(sched_row_of(s.schedule.n)) > 1)
    s.schedule = choice_default(CHOICE_schedule); // the model has none
  if (sched_replicas(sched_row_of(s.schedule.n)) > 1) s.mb.n = sched_row_of(s.schedule.n)->multiple;
  s.mb.n = MAX(s.mb.n, sched_row_of(s.schedule.n)->least * s.pp.n);
  if (s.zero.n > 1 || s.sync.n || s.offload.n || s.dp.n == 1 || !train ||
      sched_replicas(sched_row_of(s.schedule.n)) > 1 || sched_row_of(s.schedule.n)->weights != WEIGHTS_ONE)
    s.overlap.n &= OVERLAP_PP;
  if (!(s.overlap.n & OVERLAP_PP)) s.channels = choice_default(CHOICE_channels);
  return s;
}

static hashed hash_of(planner *pl, arena *a, const strategy *s, bool train) {
  hybrid_opts o = {.s = *s, .train = train, .optim = optim_default(OPTIM_ADAM)};
  plan *pn = policy_hybrid(pl, a, &o);
  REQUIRE(pn);
  pn->name = (sym){0}, pn->made.row = NULL; // two schedules may be one order
  strbuf b = {.a = a};
  plan_print(planner_source(pl), pn, &b);
  return (hashed){plan_hash(planner_source(pl)->c, pn), sb_str(&b)};
}

TEST(plan_hash_is_of_all_but_the_name) {
  static const char model[] = "gpt2:layers=4,hidden=64,heads=8,vocab=64,positions=16";
  planner *pl[2];
  ctx *c[2];
  arena *a = arena_new();
  for (u32 k = 0; k < 2; k++) {
    c[k] = ctx_new();
    if (k) sym_of(c[k], "another session"); // its symbols have other numbers
    prog *p = front_load(c[k], model, &(front_opts){.batch = 16, .seq = 16, .loss = true});
    REQUIRE(p);
    pl[k] = planner_new(p);
    prog_free(p);
  }
  u64 rng = 21;
  u32 same = 0, differ = 0;
  hashed *v = NEWN(a, hashed, PLANS);
  for (u32 i = 0; i < PLANS; i++) {
    const bool train = pick(&rng, 4) > 0;
    const strategy s = random_strategy(&rng, train);
    v[i] = hash_of(pl[0], a, &s, train);
    CHECK(v[i].hash == hash_of(pl[1], a, &s, train).hash);
    for (u32 k = 0; k < i; k++) {
      const bool equal = !strcmp(v[i].text, v[k].text);
      CHECK_MSG(equal == (v[i].hash == v[k].hash), "%s%s", v[i].text, v[k].text);
      same += equal, differ += !equal;
    }
  }
  CHECK_MSG(same > 50 && differ > 10000, "%u same, %u different", same, differ);
  for (u32 k = 0; k < 2; k++) planner_free(pl[k]), ctx_free(c[k]);
  arena_free(a);
}

// One part of a plan after the other.
TEST(plan_hash_tells_every_part) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *p = front_load(c, "mlp-xs", &(front_opts){.batch = 8, .loss = true});
  REQUIRE(p);
  planner *pl = planner_new(p);
  hybrid_opts o = {.s = strategy_of("dp=2 tp=2 pp=2 mb=4 zero=2 recompute=full overlap"),
                   .train = true,
                   .optim = optim_default(OPTIM_ADAM)};
  plan *pn = policy_hybrid(pl, a, &o);
  REQUIRE(pn);
  pn->nreplicas = 2, pn->replicas = ZNEWN(a, plan_replica, 2);
  pn->replicas[0].micro = 3, pn->replicas[1] = (plan_replica){.micro = 1, .on = ZNEWN(a, plan_submesh, 2)};
  const u64 was = plan_hash(c, pn);
#define TELLS(field, value)                                                                                  \
  do {                                                                                                       \
    __typeof__(field) old_ = (field);                                                                        \
    (field) = (value);                                                                                       \
    CHECK_MSG(plan_hash(c, pn) != was, "%s", #field);                                                        \
    (field) = old_;                                                                                          \
  } while (0)
  TELLS(pn->axes[1].size, 4);
  TELLS(pn->axes[1].name, sym_of(c, "other"));
  TELLS(pn->axes[1].temporal, true);
  TELLS(pn->axes[1].shares, ((const u32[]){3, 1}));
  TELLS(pn->meshes[0].first, 1);
  TELLS(pn->meshes[0].axis[0], 2);
  TELLS(pn->trans[0].stride, 3);
  TELLS(pn->trans[0].axis, 1);
  TELLS(pn->trans[0].dim, 1);
  TELLS(pn->trans[0].weak, !pn->trans[0].weak);
  TELLS(pn->trans[0].uneven, true);
  TELLS(pn->segments[0].to, 2);
  TELLS(pn->nreplicas, 1);
  TELLS(pn->replicas[0].micro, 2);
  TELLS(pn->replicas[1].on[1].nfix, 1);
  TELLS(pn->replicas[1].on[0].mesh, 1);
  TELLS(pn->segments[1].on.fix[0].at, 0);
  TELLS(pn->time, 0);
  TELLS(pn->nstorage[STORAGE_GRAD], 0);
  TELLS(pn->nrecompute, 1);
  TELLS(pn->coshard, 2);
  TELLS(pn->fused_attention, true);
  TELLS(pn->offload, OFFLOAD_STATES);
  TELLS(pn->prefetch, 2);
  TELLS(pn->input_gradients, true);
  TELLS(pn->keep_gradients, true);
  TELLS(pn->train, false);
  TELLS(pn->optim.lr, 1);
  TELLS(pn->optim.master, false);
  TELLS(pn->send_stream, ((sym){0}));
  TELLS(pn->sum_stream, sym_of(c, "dp"));
  TELLS(pn->send_channels, 1);
  TELLS(pn->rendezvous, true);
  sched_task *t = arena_dup(a, pn->seqs[0].v, pn->seqs[0].n * sizeof *t); // two tasks change places
  sched_task first = t[0];
  t[0] = t[1], t[1] = first;
  TELLS(pn->seqs[0].v, t);
#undef TELLS
  pn->name = sym_of(c, "another name");
  CHECK(plan_hash(c, pn) == was);
  planner_free(pl);
  prog_free(p);
  ctx_free(c);
}
