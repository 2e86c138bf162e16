// ways.c - of how values move under a plan, what makes no difference is not said: plans that are the same program are
// then the same plan. Not what is computed again (forms.c).
//
// Idea: only what the plan itself shows counts: which segments lie where, and what they read of each other. Where it
// is the layouts that make two ways one, that is known when the plan is applied, and both are plans.
#include "plan/plan.h"

typedef struct {
  bool one;     // all segments lie on the same ranks
  bool apart;   // each lies on a place of its own, the only one there
  bool single;  // and that is one rank
  bool own;     // no weight is read by two of them
  bool in_line; // each reads what the one before it makes, and nothing of others
} lying;

static bool same_ranks(const plan_submesh *x, const plan_submesh *y) {
  bool same = x->mesh == y->mesh && x->nfix == y->nfix;
  for (u32 k = 0; same && k < x->nfix; k++)
    same = x->fix[k].axis == y->fix[k].axis && x->fix[k].at == y->fix[k].at;
  return same;
}

static u32 ranks_of(const plan *pn, const plan_submesh *x) {
  const plan_mesh *m = &pn->meshes[x->mesh];
  u32 n = 1;
  for (u32 k = 0; k < m->naxes; k++) n *= pn->axes[m->axis[k] - 1].size;
  for (u32 k = 0; k < x->nfix; k++) n /= pn->axes[x->fix[k].axis - 1].size;
  return n;
}

static void read_by(const prog *p, const plan *pn, lying *out) {
  const func_info *m = func_get(p, p->main);
  arena *tmp = arena_new();
  u32 *reader = ZNEWN(tmp, u32, m->values.n + 1); // of a weight, its segment from 1
  for (u32 k = 0; k < pn->nsegments; k++)
    for (u32 i = pn->segments[k].from; i <= pn->segments[k].to; i++) {
      const instr *in = &m->body.v[i - 1];
      for (u32 j = 0; j < instr_nopd(m, in); j++) {
        const value v = opd_of(m, in, j);
        const u32 def = m->values.v[v].def, before = k ? pn->segments[k - 1].from : 1;
        if (def && def < before) out->in_line = false;
        if (def || m->params.v[v - 1].r != ROLE_WEIGHT) continue;
        if (reader[v] && reader[v] != k + 1) out->own = false;
        reader[v] = k + 1;
      }
    }
  arena_free(tmp);
}

static lying lying_of(const prog *p, const plan *pn) {
  lying x = {.one = true, .apart = true, .single = true, .own = true, .in_line = true};
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_submesh *on = &pn->segments[k].on;
    x.one = x.one && same_ranks(on, &pn->segments[0].on);
    x.single = x.single && ranks_of(pn, on) == 1;
    for (u32 j = 0; j < k && x.apart; j++) x.apart = !same_ranks(on, &pn->segments[j].on);
    x.apart = x.apart && on->nfix == pn->segments[0].on.nfix; // else one may be within another
  }
  x.apart = x.apart && pn->nsegments == pn->nseqs;
  read_by(p, pn, &x);
  return x;
}

void plan_drop_ways(planner *pl, plan *pn) {
  const bool may = pn->materialise || pn->rendezvous || (pn->send_stream.i && pn->send_channels < 4);
  if (!may || pn->nreplicas > 1) return;
  const bool versions = sched_is_asynchronous(pn->made.row);
  const u32 micro = pn->time ? pn->axes[pn->time - 1].size : 1;
  const bool alone = micro == 1 && !versions; // below, what can change is asked first: that is cheap
  if (!pn->materialise && !(pn->rendezvous && alone) && pn->train && pn->nsegments != 2) return;
  const lying x = lying_of(planner_source(pl), pn);
  // Between groups nothing goes, or one rank sends to one; inside of one rank nothing does.
  if (pn->materialise == MATERIALISE_INTRA && (x.one || x.single)) pn->materialise = MATERIALISE_INTER;
  if (x.single && x.own) pn->materialise = MATERIALISE_INTER;
  // Whoever receives has nothing else to do until then, and whoever sends nothing after.
  if (alone && x.apart && x.in_line) pn->rendezvous = false;
  if (!pn->send_stream.i) return;
  // Forwards alone; one place before the other, so that there is one channel for each pass.
  if (!pn->train && pn->send_channels < 2 && x.own) pn->send_channels = 2;
  if (pn->nsegments == 2 && x.apart && pn->send_channels == 2) pn->send_channels = 4;
}
