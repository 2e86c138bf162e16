// kinds.c - what the best plan gives to each kind of device of a mixed machine, and how far it is from all of
// them working all of the time.
#include "search/internal.h"

// The part of all products that every rank has, by the plan: of its stages, its data rank, its tensor rank.
static void work_of_ranks(const search *s, const plan *pn, const strategy *x, double *part) {
  const double *forward = s->bounds.forward, all = forward[pn->segments[pn->nsegments - 1].to];
  const u32 ranks = x->dp.n * x->tp.n;
  double *place = ZNEWN(s->a, double, x->pp.n);
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *seg = &pn->segments[k];
    place[search_block(x, pn, seg)] += (forward[seg->to] - forward[seg->from - 1]) / all;
  }
  for (u32 r = 0; r < ranks * x->pp.n; r++) {
    const u32 at[2] = {r % ranks / x->tp.n, r % x->tp.n}; // of axes dp, tp: the second and the third
    double *to = &part[x->skip.n + r];
    *to = place[r / ranks];
    if (x->tp_stages.nparts) *to /= ranks; // all of a place do as much
    for (u32 k = 0; !x->tp_stages.nparts && k < 2; k++) {
      const plan_axis *axis = &pn->axes[k + 1];
      *to *= axis->shares ? (double)axis->shares[at[k]] / plan_parts(axis) : 1.0 / axis->size;
    }
  }
}

static void add_rank(search_kind *to, const sim_result *r, u32 rank, double part) {
  to->ranks++;
  if (rank >= r->nranks) return; // left out
  const u32 at = r->class_of_rank[rank] * r->nstreams;
  const double span = (double)MAX(r->makespan_ps, 1);
  to->work += part;
  to->computes += (double)(r->busy_ps[at] - r->comm_ps[at]) / span;
  to->communicates += (double)r->comm_ps[at] / span;
  to->peak_bytes = MAX(to->peak_bytes, r->cls[r->class_of_rank[rank]].peak_bytes);
}

// The plan was simulated whole.
void kinds_of(search *s, const whole_answer *x, const hybrid_opts *h) {
  const machine *m = s->m;
  search_result *r = s->r;
  double *part = ZNEWN(s->a, double, s->ranks), *speed = ZNEWN(s->a, double, m->nkinds), all = 0;
  search_kind *of = ZNEWN(s->a, search_kind, m->nkinds);
  arena *tmp = arena_new();
  hybrid_opts own = *h;
  const bool told =
      strategy_settle(s->w[0].c, NULL, 0, h->train, &own.s) && policy_speeds(s->w[0].pl, tmp, &own, speed);
  work_of_ranks(s, x->plan, &own.s, part);
  for (u32 k = 0; k < s->ranks; k++) {
    add_rank(&of[m->dev[k].kind], &x->result, k, part[k]);
    all += speed[m->dev[k].kind];
  }
  r->kinds = of;
  r->resolved = arena_strdup(s->a, sym_str(s->w[0].c, x->plan->name));
  for (u32 k = 0; k < m->nkinds; k++) {
    search_kind *to = &of[r->nkinds];
    if (!of[k].ranks) continue;
    *to = of[k];
    to->name = sym_str(m->c, m->kind[k].name), to->usable_bytes = m->kind[k].usable_bytes;
    if (s->o->memory_bytes > 0) to->usable_bytes = s->o->memory_bytes;
    to->computes /= to->ranks, to->communicates /= to->ranks;
    if (told) to->one_more = all / (all + speed[k]);
    r->nkinds++;
  }
  if (told && all > 0) r->spread_ps = (i64)((double)policy_batch_extent(s->w[0].pl) / all);
  diag_clear(s->w[0].c);
  arena_free(tmp);
}
