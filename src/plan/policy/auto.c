// auto.c - one split or none for every operator over the tensor axis, and the stages: the best by dynamic programming for the
// degrees of a strategy. Not which degrees (search/auto.c), nor the dynamic program (splits_cut.c).
//
// Idea: the operators of a repeated function are one problem, main with a call in place of every function another. The
// fastest solution comes first. Where it does not fit, all solutions that nothing beats in time and memory are asked in the
// order of their times. Layers are cut into stages by the exact cuts of balance/, with what each keeps by its depth.
#include "balance/balance.h"
#include "cost/cost.h"
#include "plan/splits_ops.h"
#include "plan/splits_rules.h"
#include <math.h>
#include <stdlib.h>

enum { MARKED_WORDS = 8, PRICES = 11, HALVINGS = 5 };
enum { FRONT_STATES = 2048, FRONT_POINTS = 256, FRONT_STEPS = 1 << 16 };

// What was solved, for degrees that differ in nothing that its prices depend on.
typedef struct {
  strategy s;
  splits_prices p;
  const splits_answer *answer; // NULL: there is none that takes this at most; 0: none at all
  i64 most_ps;
} solved;
// What operators take for a microbatch at least, for degrees that differ in nothing that this depends on.
typedef struct {
  u32 ranks, ways, parts, recompute;
  i64 ps; // 0: nothing is known
} least_work;
// What a hybrid splits over so many tensor ranks: one of the starts of chains.
typedef struct {
  u32 ways, n;
  u8 axis;
  const plan_trans *v;
} like;
struct splitter {
  planner *pl;
  arena *a;
  const splits_model *m;
  const splits_rules *rules;
  auto_opts how;
  VEC(solved *) known;
  VEC(least_work) works;
  VEC(like) likes;
  const bool *const *marked[MARKED_WORDS]; // by word of `recompute`
};

splitter *policy_auto_new(planner *pl, bool train, const auto_opts *how) {
  arena *a = arena_new();
  splitter *x = NEW(a, splitter);
  *x = (splitter){.pl = pl, .a = a, .m = splits_model_new(pl, a, train), .rules = how->rules, .how = *how};
  return x;
}

void policy_auto_free(splitter *x) {
  if (!x) return;
  for (u32 k = 0; k < x->known.n; k++)
    if (x->known.v[k]->p.a) splits_prices_close(&x->known.v[k]->p);
  splits_model_free((splits_model *)x->m);
  arena_free(x->a);
}

// ---- stages and estimates ---------------------------------------------------------------------------------
typedef struct {
  u32 n;
  i64 *time_ps, *fixed, *kept; // by layer
  i64 wide_ps, wide_fixed;     // of what lies on all places, on all of them
} layers;

static i64 memory_of(const hybrid_opts *o) {
  const machine *m = cost_model_machine(o->k);
  i64 least = INT64_MAX;
  if (o->memory_bytes < 0) return INT64_MAX;
  if (o->memory_bytes) return o->memory_bytes - o->least_bytes;
  for (u32 r = 0; r < m->nranks; r++) least = MIN(least, machine_kind_of(m, r)->usable_bytes);
  return least - o->least_bytes;
}

// What a step has besides tasks and updates, for weights of so many bytes on a rank: gradients summed over data ranks, each weight's by
// itself, with ZeRO into pieces, with ZeRO 2 once for every microbatch. ZeRO gathers weights after their update, ZeRO 3 for every
// forward and backward.
static i64 end_ps(const prog *src, const hybrid_opts *o, i64 weights) {
  const strategy *s = &o->s;
  const machine *m = cost_model_machine(o->k);
  const func_info *main = func_get(src, src->main);
  if (!o->train || s->dp.n < 2) return 0;
  u32 rank[64], all = 0;
  const u32 n = MIN(s->dp.n, COUNT_OF(rank));
  for (u32 k = 0; k < n; k++) rank[k] = MIN(s->skip.n + k * s->tp.n, m->nranks - 1);
  for (u32 k = 0; k < main->nparams; k++) all += main->params.v[k].r == ROLE_WEIGHT;
  const i64 count = MAX(all / s->pp.n, 1u), each = weights / count;
  if (!s->zero.n) return count * MAX(cost_comm(o->k, OP_all_reduce, each, rank, n, DT_F16), 0);
  const i64 scatter = count * MAX(cost_comm(o->k, OP_reduce_scatter, each, rank, n, DT_F16), 0),
            gather = count * MAX(cost_comm(o->k, OP_all_gather, each, rank, n, DT_F16), 0);
  return scatter * (s->zero.n > 1 ? s->mb.n : 1) + gather * (s->zero.n > 2 ? 2 * s->mb.n : 1);
}

// Of weights that with what belongs to them take so many bytes on all stages: their bytes on one.
static i64 weights_of(const hybrid_opts *o, i64 fixed) {
  const strategy *s = &o->s;
  const double d = s->dp.n, states = o->optim.kind == OPTIM_ADAM || o->optim.kind == OPTIM_ADAMW ? 6 : 2;
  const double each =
      1 / (s->zero.n > 2 ? d : 1) + 1 / (s->zero.n > 1 ? d : 1) + states / (s->zero.n ? d : 1);
  return (i64)((double)fixed / each / s->pp.n);
}

// What stands before the first call and behind the last one is of their layers, or on all places. What is kept of it there goes with
// the layers that are beside it in any case.
static layers layers_of(const strategy *s, const splits_by_layer *x) {
  layers l = {MAX(x->n, 1), x->time_ps, x->fixed, x->kept, 0, 0};
  const bool wide = policy_is_interlaced(s);
  const i64 ps[] = {x->time_ps[x->n], x->time_ps[x->n + 1]}, fixed[] = {x->fixed[x->n], x->fixed[x->n + 1]},
            kept[] = {x->kept[x->n], x->kept[x->n + 1]};
  if (!x->n) l.time_ps[0] = l.fixed[0] = l.kept[0] = 0;
  for (u32 k = 0; k < 2; k++) {
    const u32 at = k ? l.n - 1 : 0;
    l.kept[at] += wide ? kept[k] / s->pp.n : kept[k];
    if (wide)
      l.wide_ps += ps[k], l.wide_fixed += fixed[k];
    else
      l.time_ps[at] += ps[k], l.fixed[at] += fixed[k];
  }
  return l;
}

// Cuts layers into stages, as memory allows under the schedule. False: they do not fit, by the bytes of *need.
static bool cut(planner *pl, const hybrid_opts *o, arena *a, const layers *l, auto_plan *out) {
  const strategy *s = &o->s;
  const i64 have = memory_of(o);
  const u32 n = s->pp.n, *alive = policy_alive(pl, a, o, s);
  i64 sum = 0, wide = l->wide_ps / n;
  out->layers = s->layers;
  for (u32 k = 0; k < l->n; k++) sum += l->time_ps[k];
  u32 *place = NEWN(a, u32, n), *kind = ZNEWN(a, u32, n), *part = NEWN(a, u32, n);
  i64 *memory = NEWN(a, i64, n), *work = ZNEWN(a, i64, l->n + 1);
  for (u32 q = 0; q < n; q++)
    place[q] = q, memory[q] = have == INT64_MAX ? INT64_MAX / 2 : have - l->wide_fixed / n;
  const i64 *const time[] = {l->time_ps};
  balance_passes in = {.nlayers = l->n,
                       .nkinds = 1,
                       .nplaces = n,
                       .nchunks = 1,
                       .kind = kind,
                       .place = place,
                       .time_ps = time,
                       .micro = s->mb.n,
                       .alive = alive,
                       .memory_bytes = memory,
                       .fixed_bytes = l->fixed,
                       .kept_bytes = l->kept,
                       .work_bytes = work};
  balance_chunked cuts;
  if (!alive) return false;
  bool fits = balance_chunks(a, &in, &cuts) == BALANCE_OK;
  if (!fits) in.memory_bytes = NULL;
  if (!fits && balance_chunks(a, &in, &cuts) != BALANCE_OK) return false;
  for (u32 q = 0, at = 0; q < n; at = cuts.end[q++]) {
    i64 own = l->wide_fixed / n;
    part[q] = cuts.end[q] - at;
    for (u32 k = at; k < cuts.end[q]; k++) own += l->fixed[k] + l->kept[k] * alive[q];
    out->bytes = MAX(out->bytes, own);
  }
  if (n > 1 && !o->keep_layers && !s->layers.nparts && s->v.n == 1)
    out->layers = (choice_value){.nparts = n, .part = part};
  out->time_ps = sum + (s->mb.n - 1) * cuts.longest_ps + (s->mb.n + n - 1) * wide;
  return fits;
}

static bool try_choice(const splits_prices *p, const splits_terms *t, const splits_answer *s, u32 pick,
                       const hybrid_opts *o, arena *a, auto_plan *out) {
  const splits_by_layer by = splits_layers(p, t, s, pick, a);
  const layers l = layers_of(&o->s, &by);
  out->bytes = 0;
  const bool fits = cut(p->m->pl, o, a, &l, out);
  splits_terms here = *t; // as if everything lay on the device
  here.offload = 0;
  const splits_by_layer there = splits_layers(p, &here, s, pick, a);
  const layers all = layers_of(&o->s, &there);
  i64 fixed = all.wide_fixed;
  for (u32 k = 0; k < all.n; k++) fixed += all.fixed[k];
  out->time_ps += end_ps(planner_source(p->m->pl), o, weights_of(o, fixed));
  return fits;
}

// ---- answers ----------------------------------------------------------------------------------------------
static void take_rows(const splits_prices *p, const splits_answer *s, u32 pick, arena *a, auto_plan *out) {
  splits_row *v;
  const u32 n = splits_rows(p, s, pick, a, &v);
  auto_row *row = ZNEWN(a, auto_row, n + 1);
  plan_trans *t;
  out->splits.n = splits_trans(p, s, pick, 1, a, &t);
  out->splits.v = t;
  for (u32 k = 0, at = 0; k < n; k++) {
    const splits_way *w = v[k].way;
    row[k] = (auto_row){.fn = v[k].fn,
                        .instr = v[k].instr,
                        .whole = w->kind == WAY_WHOLE || w->kind == WAY_UNSAID,
                        .sum = w->kind == WAY_SUM,
                        .follows = w->kind == WAY_APART};
    if (w->kind != WAY_APART && w->kind != WAY_UNSAID) at++;
    if (w->kind != WAY_INDEX) continue;
    const plan_trans *own = &t[at - 1];
    row[k].letter = arena_strdup(a, v[k].x->letter[w->letter]);
    row[k].operand = own->index, row[k].result = own->result, row[k].dim = own->dim;
    row[k].extent = w->extent;
  }
  out->row = row, out->nrows = n;
}

// What the backward computes again, as the policy of the strategy and the rules have it.
static const bool *const *marked_of(splitter *x, const hybrid_opts *o) {
  const u32 word = o->s.recompute.n, nf = planner_funcs(x->pl);
  if (word >= MARKED_WORDS || !o->train) return NULL;
  if (x->marked[word]) return x->marked[word];
  plan pn = {.train = true};
  const struct plan_again *more;
  const u32 nmore = x->rules ? splits_rules_again(x->rules, x->a, &more) : 0;
  bool **of = ZNEWN(x->a, bool *, nf + 1);
  const prog *p = planner_source(x->pl);
  for (u32 f = 1; f < nf; f++) of[f] = ZNEWN(x->a, bool, func_get(p, (func){f})->body.n + 1);
  if (!choice_is(CHOICE_recompute, o->s.recompute, "full") &&
      policy_recompute(x->pl, x->a, &pn, o->s.recompute))
    for (u32 k = 0; k < pn.nrecompute; k++) of[pn.recompute[k].fn.i][pn.recompute[k].instr - 1] = true;
  for (u32 k = 0; k < nmore; k++) of[more[k].fn.i][more[k].instr - 1] = true;
  return x->marked[word] = (const bool *const *)of;
}

// Where no hybrid can be made there is no such start.
static const like *like_of(splitter *x, const hybrid_opts *o) {
  for (u32 k = 0; k < x->likes.n; k++)
    if (x->likes.v[k].ways == o->s.tp.n) return &x->likes.v[k];
  ctx *c = x->pl->src->c;
  const u32 before = diag_count(c);
  const plan *pn = policy_unordered(x->pl, x->a, o);
  like y = {.ways = o->s.tp.n};
  diag_truncate(c, before);
  if (pn) y.n = pn->ntrans, y.v = pn->trans;
  for (u32 k = 0; pn && k < pn->naxes; k++)
    if (pn->axes[k].name.i == sym_of(c, "tp").i) y.axis = (u8)(k + 1);
  like *kept = vec_push(x->a, &x->likes);
  *kept = y;
  return kept;
}

static u32 most_alive(const splitter *x, const hybrid_opts *o) {
  arena *tmp = arena_new();
  const u32 *alive = policy_alive(x->pl, tmp, o, &o->s);
  u32 most = 1;
  for (u32 q = 0; alive && q < o->s.pp.n; q++) most = MAX(most, alive[q]);
  arena_free(tmp);
  return most;
}

static splits_terms terms_of(splitter *x, const hybrid_opts *o, const splits_limits *l) {
  const strategy *s = &o->s;
  static const like none;
  const like *y = x->how.method == SPLITS_EXACT ? &none : like_of(x, o);
  splits_limits limits = *l;
  limits.seed = x->how.seed, limits.proposals = x->how.proposals;
  return (splits_terms){.method = x->how.method,
                        .like = y->v,
                        .nlike = y->n,
                        .like_axis = y->axis,
                        .ranks = s->dp.n * s->tp.n * s->pp.n,
                        .ways = s->tp.n,
                        .data = s->dp.n,
                        .micro = s->mb.n,
                        .held = most_alive(x, o),
                        .zero = s->zero.n,
                        .offload = (u8)s->offload.n,
                        .materialise = (materialise_way)s->materialise.n,
                        .train = o->train,
                        .wide = policy_wide_gradients(planner_source(x->pl), s),
                        .again = choice_is(CHOICE_recompute, s->recompute, "full"),
                        .recompute = s->recompute.n,
                        .marked = marked_of(x, o),
                        .optim = o->optim,
                        .limits = limits};
}

// Time alone counts.
static bool is_of_time(const splits_terms *t) { return t->limits.fastest && t->limits.ps_per_byte == 0; }

// Do prices that were asked for one strategy hold for another one? Every choice counts but those of when tasks run and what is sent
// (microbatches that are kept are compared), those of which layer is where, and where bytes do not count those of storage.
static bool same_prices(const strategy *x, const splits_terms *xt, const strategy *y,
                        const splits_terms *yt) {
  static const choice_id where[] = {CHOICE_pp, CHOICE_v, CHOICE_layers},
                         storage[] = {CHOICE_zero, CHOICE_offload, CHOICE_prefetch, CHOICE_update};
  const bool alone = is_of_time(xt);
  strategy z = *y;
  for (u32 k = 0; k < COUNT_OF(where); k++) z.of[where[k]] = x->of[where[k]];
  for (u32 k = 0; k < COUNT_OF(storage) && alone; k++) z.of[storage[k]] = x->of[storage[k]];
  return strategy_same_but(x, &z, CHOICES_OF_LINE) && xt->ranks == yt->ranks && !xt->zero == !yt->zero &&
         xt->limits.fastest == yt->limits.fastest && xt->limits.ps_per_byte == yt->limits.ps_per_byte &&
         (alone || xt->held == yt->held);
}

static bool open_prices(const splitter *x, const hybrid_opts *o, const splits_terms *t, splits_prices *p) {
  return splits_prices_open(p, x->m, o->k, t, x->rules ? splits_rules_allow : NULL, (void *)x->rules);
}

// Solved, kept until the splitter goes; what is too slow only as long as nobody asks for slower ones.
static solved *solved_of(splitter *x, const hybrid_opts *o, const splits_terms *t) {
  const i64 most = t->limits.most_ps;
  solved *y = NULL;
  for (u32 k = 0; k < x->known.n && !y; k++)
    if (same_prices(&x->known.v[k]->s, &x->known.v[k]->p.t, &o->s, t)) y = x->known.v[k];
  if (y && (y->answer || !y->most_ps || (most && most <= y->most_ps))) return y;
  if (!y) *vec_push(x->a, &x->known) = y = NEW(x->a, solved);
  *y = (solved){.s = o->s, .most_ps = most};
  const u32 before = diag_count(x->pl->src->c);
  splits_terms all = *t; // others ask for it that offload something else
  if (is_of_time(t)) all.offload = 0;
  if (open_prices(x, o, &all, &y->p)) y->answer = splits_sheets(&y->p);
  diag_truncate(x->pl->src->c, before);
  if (!y->answer && most) { // nothing of it is asked for again
    const splits_terms asked = y->p.t;
    const splits_refusal refused = y->p.refusal;
    splits_prices_close(&y->p);
    y->p = (splits_prices){.t = asked, .refusal = refused};
  }
  return y;
}

// What a step has besides tasks and updates, at least: more bytes of weights take no less.
static i64 least_end_ps(const splitter *x, const hybrid_opts *o, const splits_terms *t) {
  splits_terms here = *t;
  here.offload = 0;
  return end_ps(planner_source(x->pl), o, weights_of(o, splits_least_fixed(x->m, &here)));
}

// Microbatches by the time of one, of stages that are as long: what a step takes at least, and the reverse.
static i64 step_ps(const strategy *s, i64 ps) {
  return (i64)((double)ps * (1 + (double)(s->mb.n - 1) / s->pp.n) * 0.999999);
}
static i64 microbatch_ps(const strategy *s, i64 ps) {
  return (i64)((double)ps / (1 + (double)(s->mb.n - 1) / s->pp.n) * 1.000001) + 1;
}

i64 policy_auto_least(splitter *x, const hybrid_opts *o) {
  const splits_terms t = terms_of(x, o, &(splits_limits){.fastest = true});
  const u32 parts = t.data * t.micro;
  const i64 end = least_end_ps(x, o, &t);
  for (u32 k = 0; k < x->works.n; k++) {
    const least_work *y = &x->works.v[k];
    if (y->ranks == t.ranks && y->ways == t.ways && y->parts == parts && y->recompute == t.recompute)
      return step_ps(&o->s, y->ps) + end;
  }
  least_work y = {t.ranks, t.ways, parts, t.recompute, 0};
  splits_prices p;
  const u32 before = diag_count(x->pl->src->c);
  if (open_prices(x, o, &t, &p)) y.ps = MAX(splits_least(&p), 0);
  splits_prices_close(&p);
  diag_truncate(x->pl->src->c, before);
  *vec_push(x->a, &x->works) = y;
  return step_ps(&o->s, y.ps) + end;
}

bool policy_auto_whole(const splitter *x, arena *a, u32 ways, auto_plan *out) {
  static const splits_way whole = {.kind = WAY_WHOLE};
  *out = (auto_plan){.exact = true, .fits = true};
  for (u32 f = 1; f < planner_funcs(x->pl) && x->rules; f++)
    for (u32 i = 0; x->m->fn[f].v && i < func_get(planner_source(x->pl), (func){f})->body.n; i++) {
      const splits_instr *y = &x->m->fn[f].v[i];
      if (y->l && !y->fixed && !splits_rules_allow((void *)x->rules, y, &whole, ways)) return false;
    }
  if (x->rules) out->splits.nagain = splits_rules_again(x->rules, a, &out->splits.again);
  return true;
}

bool policy_auto_tell(const splitter *x) {
  for (u32 k = 0; k < x->known.n && x->rules; k++) {
    const splits_refusal *f = &x->known.v[k]->p.refusal;
    if (!f->x) continue;
    splits_rules_tell(x->rules, f);
    return true;
  }
  return false;
}

static bool solve(splitter *x, arena *a, const hybrid_opts *o, const splits_limits *l, auto_plan *out) {
  const splits_terms t = terms_of(x, o, l);
  const solved *y = solved_of(x, o, &t);
  for (u32 k = 0; y->answer && k < y->answer->main->s.n; k++) {
    auto_plan now = {.exact = true};
    for (u32 f = 1; f < planner_funcs(x->pl); f++) { // main is one of them
      const splits_sheet *of = &y->answer->fn[f];
      if (!of->s.n) continue;
      now.points += of->s.points, now.exact &= of->s.exact;
      now.walked |= of->walked, now.better |= of->better;
    }
    now.fits = try_choice(&y->p, &t, y->answer, k, o, a, &now);
    if (k && !now.fits && now.bytes >= out->bytes) continue;
    *out = now;
    take_rows(&y->p, y->answer, k, a, out);
    if (now.fits) break;
  }
  if (y->answer && x->rules) out->splits.nagain = splits_rules_again(x->rules, a, &out->splits.again);
  return y->answer;
}

bool policy_auto(splitter *x, arena *a, const hybrid_opts *o, i64 most_ps, bool *ruled_out, auto_plan *out) {
  *out = (auto_plan){.layers = o->s.layers};
  splits_limits l = {.fastest = true};
  splits_terms t = terms_of(x, o, &l);
  if (most_ps) t.limits.most_ps = l.most_ps = microbatch_ps(&o->s, MAX(most_ps - least_end_ps(x, o, &t), 0));
  const bool any = solve(x, a, o, &l, out);
  if (!ruled_out) return any;
  *ruled_out = !any && most_ps && !solved_of(x, o, &t)->p.refusal.x;
  return any;
}

// ---- few operators ------------------------------------------------------------------------------------------
enum { ASSIGNMENTS = 1 << 16 };

static int by_time(const void *x, const void *y) {
  const splits_choice *p = x, *q = y;
  if (p->time_ps != q->time_ps) return p->time_ps < q->time_ps ? -1 : 1;
  return p->bytes != q->bytes ? (p->bytes < q->bytes ? -1 : 1) : 0;
}

// All assignments that have a price, the fastest first. NULL: too many.
static splits_choice *all_choices(arena *a, const splits_problem *p, u32 *n) {
  u64 all = 1;
  for (u32 k = 0; k < p->nops && all <= ASSIGNMENTS; k++) all *= p->op[k].noptions;
  if (all > ASSIGNMENTS) return NULL;
  splits_choice *v = NEWN(a, splits_choice, all + 1);
  *n = 0;
  for (u64 at = 0; at < all; at++) {
    u16 *option = NEWN(a, u16, p->nops + 1);
    u64 left = at;
    for (u32 k = p->nops; k-- > 0; left /= p->op[k].noptions) option[k] = (u16)(left % p->op[k].noptions);
    v[*n].option = option;
    *n += splits_price(p, option, &v[*n].time_ps, &v[*n].bytes);
  }
  qsort(v, *n, sizeof *v, by_time);
  return v;
}

u32 policy_auto_few(splitter *x, arena *a, const hybrid_opts *o, u32 most, auto_plan *out) {
  const prog *src = planner_source(x->pl);
  const func_info *m = func_get(src, src->main);
  const splits_terms t = terms_of(x, o, &(splits_limits){.fastest = true});
  const solved *y = solved_of(x, o, &t);
  u32 operators = 0, n;
  for (u32 i = 0; i < m->body.n; i++) {
    if (m->body.v[i].op == OP_call) return 0;
    operators += !x->m->fn[src->main.i].v[i].fixed;
  }
  if (!y->answer || operators > AUTO_FEW) return 0;
  const u32 nf = planner_funcs(x->pl);
  splits_answer s = {.fn = arena_dup(a, y->answer->fn, sizeof *s.fn * (nf + 1))};
  splits_sheet *sheet = &s.fn[src->main.i];
  s.main = sheet;
  sheet->s.v = all_choices(a, &sheet->p, &n);
  if (!sheet->s.v) return 0;
  sheet->s.n = n = MIN(n, most);
  for (u32 k = 0; k < n; k++) {
    out[k] = (auto_plan){.exact = true, .layers = o->s.layers};
    out[k].fits = try_choice(&y->p, &t, &s, k, o, a, &out[k]);
    take_rows(&y->p, &s, k, a, &out[k]);
    if (x->rules) out[k].splits.nagain = splits_rules_again(x->rules, a, &out[k].splits.again);
  }
  return n;
}

// The whole front, where there are few steps to it. Else bytes at a price: the least price at which the best split fits, by factors of
// four and then halving the ratio. The result is one of the solutions that nothing beats in time and bytes, either way.
bool policy_auto_within(splitter *x, arena *a, const hybrid_opts *o, auto_plan *out) {
  if (!policy_auto(x, a, o, 0, NULL, out) || out->fits) return out->nrows > 0;
  const strategy *s = &o->s;
  double below = 0, price = (double)out->time_ps / s->mb.n / (double)MAX(out->bytes, 1) / 64, fits = 0;
  auto_plan now = {.layers = s->layers};
  if (solve(
          x, a, o,
          &(splits_limits){.states = FRONT_STATES, .points = FRONT_POINTS, .steps = FRONT_STEPS, .all = true},
          &now)) {
    if (now.fits || now.bytes < out->bytes) *out = now;
    return true;
  }
  // The dearest first: what does not fit at that price fits at none.
  const double dearest = price * pow(4, PRICES);
  now = (auto_plan){.layers = s->layers};
  if (!solve(x, a, o, &(splits_limits){.fastest = true, .ps_per_byte = dearest}, &now)) return true;
  if (now.fits || now.bytes < out->bytes) *out = now;
  if (!now.fits) return true;
  for (u32 k = 0; k < PRICES && fits == 0; k++, price *= 4) {
    now = (auto_plan){.layers = s->layers};
    if (!solve(x, a, o, &(splits_limits){.fastest = true, .ps_per_byte = price}, &now)) return true;
    if (now.fits) fits = price;
    if (!now.fits) below = price;
    if (now.fits) *out = now;
  }
  for (u32 k = 0; k < HALVINGS && fits > 0; k++) {
    const double between = below > 0 ? sqrt(below * fits) : fits / 2;
    now = (auto_plan){.layers = s->layers};
    if (!solve(x, a, o, &(splits_limits){.fastest = true, .ps_per_byte = between}, &now)) break;
    if (now.fits) fits = between;
    if (!now.fits) below = between;
    if (now.fits && now.time_ps <= out->time_ps) *out = now;
  }
  return true;
}
