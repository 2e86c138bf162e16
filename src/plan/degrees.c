// degrees.c - tensor degrees by place (tp.stages): what a place has of ranks and of shares. Not its meshes
// (policy/hybrid.c).
//
// Idea: all places have as many ranks, data rank after data rank. So a data rank of a place of high degree has the
// ranks of several data ranks of one of low degree, and gets the sum of their shares. Tensor rank t of a place of
// degree d stands where those of a higher one stand that are t modulo d, and gets the sum of theirs.
#include "plan/plan.h"

u32 strategy_tensor_at(const strategy *s, u32 place) {
  return s->tp_stages.nparts ? s->tp_stages.part[place] : s->tp.n;
}

static u32 ranks_of(const strategy *s) { return s->dp.n * s->tp.n; } // of a place

u32 strategy_most(const strategy *s, choice_id row) {
  u64 most = 0;
  for (u32 r = 0; choice_is_degree(row) && r < strategy_replicas(s); r++)
    most = MAX(most, strategy_degree(strategy_replica(s, r), row));
  if (most) return (u32)most;
  if (row != CHOICE_dp && row != CHOICE_tp) return s->of[row].n;
  for (u32 q = 0; q < s->pp.n && q < s->tp_stages.nparts; q++) {
    const u32 t = s->tp_stages.part[q];
    most = MAX(most, row == CHOICE_dp ? (u64)s->dp.n * s->tp.n / t : t);
  }
  return most ? (u32)MIN(most, (u64)UINT32_MAX) : s->of[row].n;
}

u32 strategy_shares_needed(const strategy *s, choice_id id) {
  if (id == CHOICE_dp_shares && s->replicas.nparts) return strategy_replicas(s);
  return strategy_most(s, id == CHOICE_dp_shares ? CHOICE_dp : CHOICE_tp);
}

bool strategy_reduce(u32 *v, u32 n) {
  i64 by = 0;
  bool equal = true;
  for (u32 k = 0; k < n; k++) by = gcd_i64(by, v[k]), equal = equal && v[k] == v[0];
  for (u32 k = 0; k < n; k++) v[k] /= (u32)MAX(by, 1);
  return !equal && n <= UINT16_MAX; // no axis has more positions: what says that is told of the axis
}

bool strategy_shares_near(u32 *v, u32 n, i64 total) {
  enum { MANY = 1024 };
  i64 rest[MANY], sum = 0, left = total;
  if (n > MANY || total < n || total > UINT32_MAX) return false;
  for (u32 k = 0; k < n; k++) sum += v[k];
  for (u32 k = 0; k < n; k++) {
    const i64 part = (i64)v[k] * total;
    rest[k] = part % sum, v[k] = (u32)MAX(part / sum, 1), left -= v[k];
    if (part < sum) rest[k] = -1; // it has more than its part
  }
  while (left) { // one more where most is missing; one less of the largest
    u32 best = 0;
    for (u32 k = 1; k < n; k++)
      if (left > 0 ? rest[k] > rest[best] : v[k] > v[best]) best = k;
    v[best] += left > 0 ? 1 : -1, rest[best] = -1, left -= left > 0 ? 1 : -1;
  }
  return true;
}

const u32 *strategy_shares_at(arena *a, const strategy *s, choice_id id, u32 place) {
  const choice_value x = s->of[id];
  const u32 t = strategy_tensor_at(s, place), n = id == CHOICE_dp_shares ? ranks_of(s) / t : t,
            each = MAX(x.nparts / n, 1);
  if (!x.nparts) return NULL;
  u32 *v = ZNEWN(a, u32, n);
  for (u32 k = 0; k < x.nparts; k++) v[id == CHOICE_dp_shares ? k / each : k % n] += x.part[k];
  return strategy_reduce(v, n) ? v : NULL;
}

// ---- is it possible? ------------------------------------------------------------------------------------
// One share for each rank of the place that has most of them, which the others put together.
static bool settle_shares(ctx *c, loc at, choice_id id, const strategy *s) {
  const choice_value x = s->of[id];
  const bool data = id == CHOICE_dp_shares;
  const u32 most = strategy_shares_needed(s, id);
  const char *name = choice_get(id)->name, *what = data ? "data" : "tensor";
  if (choice_same(x, choice_default(id))) return true;
  for (u32 q = 0; q < s->pp.n; q++) {
    const u32 t = s->tp_stages.part[q], n = data ? ranks_of(s) / t : t;
    if (most % n == 0) continue;
    diag(c, E_STRATEGY, at, "%s: place %u has %u %s ranks and another one %u, which is no multiple of it",
         name, q + 1, n, what, most);
    diag_hint(c, "use degrees in tp.stages that divide one another, or %s=equal", name);
    return false;
  }
  if (!x.nparts || x.nparts == most) return true;
  diag(c, E_DIVIDE, at, "%s has %u number%s, but a place of tp.stages has %u %s ranks", name, x.nparts,
       x.nparts == 1 ? "" : "s", most, what);
  diag_hint(c, "one number for each of the %u; places with fewer put them together", most);
  return false;
}

bool strategy_settle_degrees(ctx *c, const strategy_set *set, const strategy *s) {
  const choice_value x = s->tp_stages;
  const loc here = set ? set->of[CHOICE_tp_stages].at : (loc){0};
  if (!x.nparts) return true;
  if ((u64)s->dp.n * s->tp.n > CHOICE_MOST) {
    diag(c, E_LIMIT, here, "tp.stages: a place has dp x tp = %llu ranks; at most %u are possible",
         (unsigned long long)s->dp.n * s->tp.n, CHOICE_MOST);
    return false;
  }
  if (x.nparts != s->pp.n) {
    diag(c, E_DIVIDE, here, "tp.stages has %u number%s, but pp=%u", x.nparts, x.nparts == 1 ? "" : "s",
         s->pp.n);
    diag_hint(c, "one number for each place of the pipeline, or pp=%u", x.nparts);
    return false;
  }
  for (u32 k = 0; k < x.nparts; k++) {
    if (ranks_of(s) % x.part[k] == 0) continue;
    diag(c, E_DIVIDE, here, "tp.stages: a place has dp x tp = %u ranks, which %u does not divide",
         ranks_of(s), x.part[k]);
    diag_hint(c, "use divisors of %u", ranks_of(s));
    return false;
  }
  const choice_id shares[] = {CHOICE_dp_shares, CHOICE_tp_shares};
  for (u32 k = 0; k < COUNT_OF(shares); k++)
    if (!settle_shares(c, set ? set->of[shares[k]].at : (loc){0}, shares[k], s)) return false;
  return true;
}
