// layers_costs.c - what layers hold, and what they take beside their computation: sends behind them, updates of their
// weights. Not where they are cut (layers_auto.c).
//
// Idea: all of it is estimated from the program and the machine, once for each layer or cut, so that any number of
// cuts can be weighed. What a plan takes in fact is known when it is simulated.
#include "plan/policy/balance.h"
#include <math.h>

// Does something in [from, to) of main read a weight?
static bool reads_weights(const func_info *m, u32 from, u32 to) {
  for (u32 i = from; i < to; i++)
    for (u32 o = 0; o < instr_nopd(m, &m->body.v[i]); o++) {
      const value v = opd_of(m, &m->body.v[i], o);
      if (v <= m->nparams && m->params.v[v - 1].r == ROLE_WEIGHT) return true;
    }
  return false;
}

layer_list auto_layers_of(const balance *b, bool ends) {
  const func_info *m = func_get(planner_source(b->pl), planner_source(b->pl)->main);
  layer_list x = {.of = NEWN(b->a, u32, m->body.n + 1)};
  u32 first = 0, last = 0, calls = 0;
  wide_parts parts;
  const u32 said = diag_count(planner_source(b->pl)->c);
  if (policy_is_interlaced(b->s)) {
    ends = false;
    if (policy_wide_parts(b->pl, b->a, b->s, (loc){0}, &parts)) x.wide = parts.wide;
    diag_truncate(planner_source(b->pl)->c, said); // the plan is refused for it
  }
  for (u32 i = 0; i < m->body.n; i++) {
    if (m->body.v[i].op != OP_call) continue;
    if (!calls++) first = i;
    last = i;
  }
  x.before = ends && calls && reads_weights(m, 0, first);
  x.after = ends && calls && reads_weights(m, last + 1, m->body.n);
  x.n = calls + x.before + x.after;
  for (u32 i = 0, l = 0; i < m->body.n; i++) {
    if (x.before && i == first) l++;
    x.of[i] = MIN(l, MAX(x.n, 1) - 1);
    l += m->body.v[i].op == OP_call;
  }
  return x;
}

// Figures of layers are kept for the layers that they are of.
static i64 key_of(const layer_list *l) {
  return (i64)l->n << 3 | (i64)(l->wide != NULL) << 2 | l->before << 1 | l->after;
}

// ---- memory of layers -----------------------------------------------------------------------------------
// Microbatches of the plan that is measured, for all degrees: bytes go with samples.
static u32 micro_of_kept(const balance *b) {
  return (u32)divisor_above(b->micro * b->s->mb.n, b->s->mb.n * b->s->dp.n > 1 ? 2 : 1);
}

// Bytes of each layer for a microbatch of that plan; all: as if nothing were computed again. NULL: not known.
static const double *kept_of_layers(const balance *b, const layer_list *l, bool all) {
  hybrid_opts h = *b->o;
  h.s = strategy_default(), h.said = NULL, h.no_order = true,
  h.splits = NULL; // figures are kept by the strategy
  h.s.tp = b->s->tp, h.s.mb.n = micro_of_kept(b);
  strategy_take_stages(&h.s, b->s, h.train);
  if (all) h.s.recompute = choice_default(CHOICE_recompute);
  const planner_key key = {KEPT_BYTES, h.s, {key_of(l)}, auto_training(b), cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  plan_kept_value *x;
  bool *accumulates;
  const plan *pn = policy_hybrid(b->pl, b->a, &h);
  if (!pn) return NULL;
  const u32 n = plan_kept(b->pl, pn, b->o->k, b->a, &x, &accumulates);
  double *kept = ZNEWN(b->a, double, l->n + 1);
  for (u32 k = 0; k < n; k++)
    if (auto_in_layer(l, x[k].def)) kept[l->of[x[k].def]] += x[k].bytes;
  planner_keep_times(b->pl, &key, kept, l->n);
  return kept;
}

// Bytes of the weights that each layer is the first to read (where the ends are layers, the last one also those that it
// shares with the first, as it is on another place: a tied embedding), of their gradients, of their states, and of the largest
// gradient, which a microbatch has beside the accumulator.
enum { OF_WEIGHTS, OF_GRADIENTS, OF_STATES, OF_LARGEST, LAYER_BYTES };
static const double *weights_of_layers(const balance *b, const layer_list *l) {
  const prog *p = planner_source(b->pl);
  const func_info *m = func_get(p, p->main);
  const grad_mark mark = choice_is(CHOICE_grads, b->s->grads, "f32") ? GRAD_ACC_F32 : GRAD_ACC;
  planner_key key = {
      KEPT_WEIGHTS, strategy_default(), {mark, key_of(l)}, auto_training(b), cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  double *sum = ZNEWN(b->a, double, LAYER_BYTES * l->n + 1);
  u32 *reader = ZNEWN(b->a, u32, m->nparams + 1); // the latest layer that has it, from 1
  for (u32 i = 0; i < m->body.n; i++)
    for (u32 o = 0; o < instr_nopd(m, &m->body.v[i]) && auto_in_layer(l, i); o++) {
      const value v = opd_of(m, &m->body.v[i], o);
      if (v > m->nparams || m->params.v[v - 1].r != ROLE_WEIGHT) continue;
      const bool again = l->before && l->after && reader[v] == 1 && l->of[i] + 1 == l->n;
      if (reader[v] && !again) continue;
      shape s = val_type(p, m, v)->s;
      double *of = &sum[LAYER_BYTES * l->of[i]];
      optim_state st;
      reader[v] = l->of[i] + 1;
      of[OF_WEIGHTS] += (double)shape_bytes(&s);
      for (u32 k = 0; b->o->train && optim_state_find(&b->o->optim, &s, k, &st); k++)
        of[OF_STATES] += (double)shape_bytes(&st.s);
      s.t = grad_acc_type(mark, s.t);
      if (b->o->train)
        of[OF_GRADIENTS] += (double)shape_bytes(&s),
            of[OF_LARGEST] = MAX(of[OF_LARGEST], (double)shape_bytes(&s));
    }
  planner_keep_times(b->pl, &key, sum, LAYER_BYTES * l->n);
  return sum;
}

// ---- what crosses cuts ------------------------------------------------------------------------------------
// Bytes of the whole batch that are alive between layers l - 1 and l, by l: where fewest are, between the calls of the
// two, as cuts are made. Then, by layer, of the largest value that it makes.
typedef struct {
  const double *crossing, *largest;
} layer_values;

static double largest_in(const prog *p, const func_info *f, const instr *i) {
  double most = 0;
  for (u32 k = 0; k < i->nres; k++) {
    const type_info *t = val_type(p, f, i->res + k);
    if (!t->tuple) most = MAX(most, (double)shape_bytes(&t->s));
  }
  if (i->op != OP_call) return most;
  const func_info *in = func_get(p, i->callee);
  for (u32 k = 0; k < in->body.n; k++) most = MAX(most, largest_in(p, in, &in->body.v[k]));
  return most;
}

// Alive between instructions at - 1 and at of main, by at.
static const double *alive_in_main(arena *a, const prog *p, const func_info *m) {
  double *alive = ZNEWN(a, double, m->body.n + 2);
  u32 *last = ZNEWN(a, u32, m->values.n);
  for (u32 i = 0; i < m->body.n; i++)
    for (u32 k = 0; k < instr_nopd(m, &m->body.v[i]); k++) last[opd_of(m, &m->body.v[i], k)] = i;
  for (value v = 1; v < m->values.n; v++) {
    const u32 def = m->values.v[v].def; // number of the instruction, from 1
    const type_info *t = val_type(p, m, v);
    if (!def || last[v] < def || t->tuple) continue;
    alive[def] += (double)shape_bytes(&t->s), alive[last[v] + 1] -= (double)shape_bytes(&t->s);
  }
  for (u32 i = 1; i <= m->body.n; i++) alive[i] += alive[i - 1];
  return alive;
}

// Where layer k may begin: at instruction *from to *to of main, as cuts are made (stages.c).
static void begins_at(const func_info *m, const layer_list *l, const double *heavy, u32 k, u32 *from,
                      u32 *to) {
  u32 at = 0;
  while (l->of[at] < k) at++;
  *from = at, *to = at;
  if (l->before && k == 1) { // behind the last heavy instruction, if there is one
    u32 i = at;
    while (i > 0 && heavy[i - 1] <= 0) i--;
    if (i > 0) *from = i;
  } else if (l->after && k + 1 == l->n) { // up to the first one
    while (*to < m->body.n && heavy[*to] <= 0) ++*to;
    if (*to == m->body.n) *to = at;
  } else {
    while (m->body.v[*to].op != OP_call) ++*to;
  }
}

static layer_values values_of_layers(const balance *b, const layer_list *l) {
  const prog *p = planner_source(b->pl);
  const func_info *m = func_get(p, p->main);
  const planner_key key = {
      KEPT_VALUES, strategy_default(), {key_of(l)}, auto_training(b), cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return (layer_values){known, known + l->n + 1};
  double *v = ZNEWN(b->a, double, 2 * l->n + 2);
  const double *alive = alive_in_main(b->a, p, m), *heavy = plan_products(b->pl, b->a);
  for (u32 i = 0; i < m->body.n; i++) {
    double *largest = &v[l->n + 1 + l->of[i]];
    if (auto_in_layer(l, i)) *largest = MAX(*largest, largest_in(p, m, &m->body.v[i]));
  }
  for (u32 k = 1; k < l->n; k++) {
    u32 from, to;
    begins_at(m, l, heavy, k, &from, &to);
    v[k] = alive[from];
    for (u32 i = from + 1; i <= to; i++) v[k] = MIN(v[k], alive[i]);
  }
  planner_keep_times(b->pl, &key, v, 2 * l->n + 2);
  return (layer_values){v, v + l->n + 1};
}

// The part of a value of the whole batch that a rank of the place has of one microbatch.
static double part_of(const balance *b, const balance *at) {
  return (double)b->micro / (double)MAX(policy_batch_extent(b->pl), 1) / at->s->dp.n / at->s->tp.n;
}

double auto_largest_part(const balance *b) {
  const choice_value x = b->s->dp_shares;
  double sum = 0, most = 0;
  for (u32 k = 0; k < x.nparts; k++) sum += x.part[k], most = MAX(most, x.part[k]);
  return x.nparts ? most * x.nparts / sum : 1;
}

// On the rank with most samples. Weights as tensor parallelism and ZeRO split them, if that splits everything. Where a backward computes its call again it
// has all that the call keeps besides.
layer_bytes auto_bytes_of_layers(const balance *b, const layer_list *l) {
  const strategy *s = b->s;
  const u32 zero = b->o->train ? s->zero.n : 0;
  const bool again = b->o->train && choice_is(CHOICE_recompute, s->recompute, "full");
  const double *of = weights_of_layers(b, l), *kept = b->o->train ? kept_of_layers(b, l, false) : NULL,
               *all_kept = again ? kept_of_layers(b, l, true) : NULL;
  const layer_values values = values_of_layers(b, l);
  const double most = auto_largest_part(b),
               part = part_of(b, b) * most * (b->o->train ? 2 : 1);        // with its gradient
  const double ranks = (double)b->s->mb.n * b->s->dp.n / micro_of_kept(b); // of the samples measured
  layer_bytes x = {ZNEWN(b->a, i64, l->n + 1), ZNEWN(b->a, i64, l->n + 1), ZNEWN(b->a, i64, l->n + 1)};
  for (u32 k = 0; k < l->n; k++, of += LAYER_BYTES) {
    const double all = of[OF_WEIGHTS] / (zero > 2 ? s->dp.n : 1) +
                       of[OF_GRADIENTS] / (zero > 1 ? s->dp.n : 1) + of[OF_STATES] / (zero ? s->dp.n : 1);
    x.fixed[k] = (i64)(all / s->tp.n);
    if (kept) x.kept[k] = (i64)(kept[k] * most / ranks);
    x.work[k] = (i64)MAX(values.largest[k] * part, s->mb.n > 1 ? of[OF_LARGEST] / s->tp.n : 0);
    if (all_kept) x.work[k] = MAX(x.work[k], (i64)(all_kept[k] * most / ranks));
  }
  return x;
}

// On a mean rank. Gradients of one microbatch come as what it keeps goes. What offload keeps in host memory is not here all the time.
layer_bytes auto_least_bytes_of_layers(const balance *b, const layer_list *l) {
  const strategy *s = b->s;
  const u32 zero = b->o->train ? s->zero.n : 0;
  const double *of = weights_of_layers(b, l), *kept = b->o->train ? kept_of_layers(b, l, false) : NULL;
  const double ranks = (double)b->s->mb.n * b->s->dp.n / micro_of_kept(b);
  layer_bytes x = {ZNEWN(b->a, i64, l->n + 1), ZNEWN(b->a, i64, l->n + 1), ZNEWN(b->a, i64, l->n + 1)};
  for (u32 k = 0; k < l->n && !s->offload.n; k++, of += LAYER_BYTES) {
    const double gradients = s->mb.n > 1 ? of[OF_GRADIENTS] / (zero > 1 ? s->dp.n : 1) : 0;
    const double all =
        of[OF_WEIGHTS] / (zero > 2 ? s->dp.n : 1) + gradients + of[OF_STATES] / (zero ? s->dp.n : 1);
    x.fixed[k] = (i64)(all / s->tp.n);
    if (kept) x.kept[k] = (i64)(kept[k] / ranks);
  }
  return x;
}

// ---- time beside the layers -------------------------------------------------------------------------------
static u32 rank_at(const balance *b, u32 place, u32 k) {
  return b->s->skip.n + strategy_block(b->s, place) * b->s->dp.n * b->s->tp.n + k;
}

// ps that all ranks of the place send to those of the next one at once; 0: not known.
static i64 send_ps(const balance *b, u32 place, double bytes) {
  static const opcode op = OP_send;
  const u32 ranks = b->s->dp.n * b->s->tp.n;
  ctx *c = planner_source(b->pl)->c;
  const u32 said = diag_count(c);
  u32 *pair = NEWN(b->a, u32, 2 * ranks);
  i64 ps = 0;
  for (u32 k = 0; k < ranks; k++)
    pair[2 * k] = rank_at(b, place, k), pair[2 * k + 1] = rank_at(b, place + 1, k);
  if (bytes < 1 || !cost_beside(b->o->k, &op, 1, (i64)bytes, pair, ranks, 2, &ps)) ps = 0;
  diag_truncate(c, said);
  return ps;
}

const i64 *const *auto_sends(const balance *b, const layer_list *l) {
  const layer_values values = values_of_layers(b, l);
  const i64 **ps = NEWN(b->a, const i64 *, b->s->pp.n);
  for (u32 q = 0; q < b->s->pp.n; q++) {
    const balance at = auto_at_place(b, q);
    const double part = part_of(b, &at);
    i64 *of = ZNEWN(b->a, i64, l->n + 1);
    for (u32 c = 1; q + 1 < b->s->pp.n && c < l->n; c++)
      of[c] = c > 1 && values.crossing[c] == values.crossing[c - 1]
                  ? of[c - 1]
                  : send_ps(b, q, values.crossing[c] * part);
    ps[q] = of;
  }
  return ps;
}

// ps of summing so many bytes of gradients over the data ranks of the place; 0: not known.
static double sum_ps(const balance *b, const balance *at, u32 place, double bytes) {
  static const opcode op = OP_all_reduce;
  const u32 dp = at->s->dp.n, tp = at->s->tp.n;
  ctx *c = planner_source(b->pl)->c;
  const u32 said = diag_count(c);
  u32 *rank = NEWN(b->a, u32, dp * tp);
  i64 ps = 0;
  for (u32 k = 0; k < dp * tp; k++) rank[k] = rank_at(b, place, k % dp * tp + k / dp);
  if (dp < 2 || bytes < 1 || !cost_beside(b->o->k, &op, 1, (i64)bytes, rank, tp, dp, &ps)) ps = 0;
  diag_truncate(c, said);
  return (double)ps;
}

// The same for every level of ZeRO, so that plans which differ in that have the same cuts.
const i64 *auto_updates(const balance *b, const layer_list *l, u32 place) {
  const balance at = auto_at_place(b, place);
  const u32 dp = at.s->dp.n, tp = at.s->tp.n;
  i64 *ps = ZNEWN(b->a, i64, l->n + 1);
  if (!b->o->train) return ps;
  const double *of = weights_of_layers(b, l);
  double bw = INFINITY, gradients = 0;
  for (u32 k = 0; k < dp * tp; k++)
    bw = MIN(bw, cost_top_bw(b->o->k, machine_kind_of(b->m, rank_at(b, place, k))));
  for (u32 k = 0; k < l->n; k++) gradients += of[LAYER_BYTES * k + OF_GRADIENTS];
  const double own = gradients / tp / b->s->pp.n, summed = sum_ps(b, &at, place, own);
  for (u32 k = 0; k < l->n; k++, of += LAYER_BYTES) { // gradients are read, the others read and written
    const double bytes = of[OF_GRADIENTS] + 2 * (of[OF_WEIGHTS] + of[OF_STATES]);
    double t = bytes / tp / bw * 1e12;
    if (own > 0) t += summed * (of[OF_GRADIENTS] / tp / own);
    ps[k] = (i64)t;
  }
  return ps;
}
