// make_up.c - replicas of different make-up (replicas=2x2+1x2) as a choice: what goes with them. Not their plan
// (policy/replicas.c).
//
// Idea: degrees are each replica's own, and what a row says of stages, schedules or storage holds for every replica
// that has several of what the row needs. A row that lists places or ranks of one model has nothing to list.
#include "plan/plan.h"

u32 strategy_degree(replica_grid g, choice_id degree) {
  return degree == CHOICE_dp ? g.dp : degree == CHOICE_tp ? g.tp : g.pp;
}

const char *strategy_counts(choice_id degree) {
  return degree == CHOICE_dp ? "data ranks" : degree == CHOICE_tp ? "tensor ranks" : "stages";
}

u32 strategy_data_ranks(const strategy *s) {
  const u32 n = strategy_replicas(s), dp = n ? strategy_replica(s, 0).dp : s->dp.n;
  for (u32 r = 1; r < n; r++)
    if (strategy_replica(s, r).dp != dp) return 0;
  return dp;
}

u64 strategy_ranks(const strategy *s) {
  u64 n = 0;
  for (u32 r = 0; r < strategy_replicas(s); r++) {
    const replica_grid g = strategy_replica(s, r);
    n += (u64)g.pp * g.tp * g.dp;
  }
  return n ? n : (u64)s->dp.n * s->tp.n * s->pp.n;
}

strategy strategy_of_replica(const strategy *s, u32 r, bool train) {
  strategy own = *s;
  const replica_grid g = strategy_replica(s, r);
  for (u32 k = 0; k < r; k++) {
    const replica_grid x = strategy_replica(s, k);
    own.skip.n += x.pp * x.tp * x.dp;
  }
  own.replicas = choice_default(CHOICE_replicas), own.dp_shares = choice_default(CHOICE_dp_shares);
  own.pp.n = g.pp, own.tp.n = g.tp, own.dp.n = g.dp;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (!choice_applies((choice_id)i, &own, train)) own.of[i] = choice_default((choice_id)i);
  return own;
}

// ---- is it possible? ------------------------------------------------------------------------------------
static loc said_at(const strategy_set *set, choice_id id) { return set ? set->of[id].at : (loc){0}; }

static bool degrees_are_own(ctx *c, const strategy_set *set, const strategy *s) {
  for (choice_id id = 0; choice_is_degree(id); id++) {
    if (s->of[id].n == 1) continue;
    const char *name = choice_get(id)->name;
    diag(c, E_STRATEGY, said_at(set, id), "%s=%u: each replica of replicas has degrees of its own", name,
         s->of[id].n);
    diag_hint(c, "%s=1, and degrees in replicas: stages x tensor ranks x data ranks", name);
    return false;
  }
  return true;
}

static bool is_path(choice_value x) { return choice_file(x); }
static bool is_whale_layers(choice_value x) { return choice_is(CHOICE_layers, x, "whale"); }
static bool is_whale_shares(choice_value x) { return choice_is(CHOICE_dp_shares, x, "whale"); }

// Values that say something of one model.
static const choice_unfit refused[] = {
    {CHOICE_schedule, is_path,
     "a file says the places of one pipeline, and each replica has places of its own",
     "the name of a schedule, such as schedule=1f1b"},
    {CHOICE_schedule, choice_has_two_ways, "it runs two replicas of its own on the same places",
     "schedule=1f1b, or leave out replicas"},
    {CHOICE_tp_stages, choice_is_list, "each replica says its tensor ranks itself",
     "leave it out, and say them in replicas: stages x tensor ranks"},
    {CHOICE_layers, choice_is_list, "each replica has stages of its own, which its layers are dealt out over",
     "layers=equal, or leave it out: by time"},
    {CHOICE_layers, is_whale_layers,
     "it orders the places of one pipeline, and each replica has ranks of its own",
     "layers=equal, or leave it out: by time"},
    {CHOICE_dp_shares, is_whale_shares,
     "it deals out samples to data ranks, and replicas get whole microbatches", "dp.shares=auto"},
    {CHOICE_tp_shares, NULL, "it is one list of tensor ranks, and each replica has tensor ranks of its own",
     "tp.shares=equal"},
    {CHOICE_places, choice_is_list, "replicas have the ranks of the machine in their order",
     "leave it out, or name the replicas in another order"},
};

enum { REPLICAS_MOST = UINT8_MAX - 1 }; // what sched_task and plan files can say
bool strategy_settle_replicas(ctx *c, const strategy_set *set, const strategy *s) {
  const u32 n = strategy_replicas(s);
  if (!n) return true;
  if (n > REPLICAS_MOST) {
    diag(c, E_LIMIT, said_at(set, CHOICE_replicas), "%u replicas; at most %d are possible", n, REPLICAS_MOST);
    return false;
  }
  if (!degrees_are_own(c, set, s)) return false;
  if (!strategy_goes_with(c, set, s, "replicas", refused, COUNT_OF(refused))) return false;
  if (!s->dp_shares.nparts || s->dp_shares.nparts == n) return true;
  diag(c, E_DIVIDE, said_at(set, CHOICE_dp_shares), "dp.shares has %u numbers, but there are %u replicas",
       s->dp_shares.nparts, n);
  diag_hint(c, "one number for each replica");
  return false;
}
