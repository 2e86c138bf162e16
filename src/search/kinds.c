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

// What the ranks of a kind get: samples of a step, blocks of the model.
typedef struct {
  i64 samples[2];
  u32 layers[2]; // the least, the most
  bool any;
} given;

static u32 *layers_of_places(const search *s, const plan *pn, const strategy *x) {
  const prog *p = planner_source(s->w[0].pl);
  const func_info *m = func_get(p, p->main);
  u32 *n = ZNEWN(s->a, u32, x->pp.n);
  for (u32 k = 0; k < pn->nsegments; k++)
    for (u32 i = pn->segments[k].from - 1; i < pn->segments[k].to; i++)
      n[search_block(x, pn, &pn->segments[k])] += m->body.v[i].op == OP_call;
  return n;
}

static void give(const search *s, const plan *pn, const strategy *x, const u32 *layers, u32 rank, given *to) {
  const u32 at = rank - x->skip.n, ranks = x->dp.n * x->tp.n, place = at / ranks;
  const plan_axis *dp = x->tp_stages.nparts ? NULL : &pn->axes[1];
  const u32 tp = x->tp_stages.nparts ? x->tp_stages.part[place] : x->tp.n;
  i64 samples = MAX(s->o->batch, 0) / (ranks / tp);
  if (dp && dp->shares) samples = s->o->batch * dp->shares[at % ranks / tp] / plan_parts(dp);
  if (!to->any) *to = (given){{samples, samples}, {layers[place], layers[place]}, true};
  to->samples[0] = MIN(to->samples[0], samples), to->samples[1] = MAX(to->samples[1], samples);
  to->layers[0] = MIN(to->layers[0], layers[place]), to->layers[1] = MAX(to->layers[1], layers[place]);
}

static void say_range(strbuf *b, i64 least, i64 most, const char *what) {
  sb_fmt(b, "%s%lld", b->n ? ", " : "", (long long)least);
  if (most > least) sb_fmt(b, " to %lld", (long long)most);
  sb_fmt(b, " %s%s", what, most == 1 ? "" : "s");
}

static const char *say_given(arena *a, const given *x, const strategy *s) {
  strbuf b = {.a = a};
  if (!x->any) return "nothing";
  if (x->samples[1]) say_range(&b, x->samples[0], x->samples[1], "sample");
  if (s->pp.n > 1) say_range(&b, x->layers[0], x->layers[1], "layer");
  return sb_str(&b);
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
  const u32 *layers = layers_of_places(s, x->plan, &own.s), first = own.s.skip.n,
            end = first + own.s.dp.n * own.s.tp.n * own.s.pp.n;
  given *gets = ZNEWN(s->a, given, m->nkinds);
  for (u32 k = first; k < end; k++) give(s, x->plan, &own.s, layers, k, &gets[m->dev[k].kind]);
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
    to->gets = say_given(s->a, &gets[k], &own.s);
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
