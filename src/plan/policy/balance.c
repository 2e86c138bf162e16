// balance.c - what `auto` stands for: shares of the batch, of tensor splits, and layers, so that devices of
// different speed end together. Not how shares are applied (shard.c, stages.c).
//
// Idea: how long a microbatch keeps a kind of device busy is measured, by instruction of main, in a plan of
// one stage on ranks of that kind alone (plan_busy), at two sizes of the microbatch: in between and beyond
// time is taken to be linear in samples. The rest is arithmetic:
//
// - dp.shares: samples go one by one to the data rank that ends first with one more and has memory for it; a
//   rank is as slow as its slowest place. That is the least possible maximum, since time grows with samples.
//   Memory, of plans of one stage, is taken to be linear in samples as well.
// - layers: places in their order, with the least longest stage there is; of several stages on a place the
//   sum is then evened out. If that order has no memory for what 1F1B keeps, and another order of the same
//   blocks has, that with the least longest stage (balance/balance.h has the proofs).
// - tp.shares: parts of a sum that the model's splits allow, by the time of the rank's kind; of sums up to
//   PARTS_MOST the one whose slowest rank ends first.
//
// Devices of one kind get equal shares. Ranks of a place that are of several kinds are as slow as the
// slowest.
#include "balance/balance.h"
#include "plan/plan.h"
#include <math.h>

enum { PARTS_MOST = 64 };

typedef struct {
  double fixed, each; // ps of a microbatch: fixed + each x samples
} linear;
typedef struct {
  planner *pl;
  arena *a;
  const hybrid_opts *o;
  const machine *m;
  const strategy *s;
  i64 micro;     // samples of a microbatch, on all data ranks
  u32 nbody;     // instructions of main
  linear **time; // [kind]: by instruction of main, then their sum; NULL: not asked for yet
} balance;

static u32 kind_at(const balance *b, u32 place, u32 data, u32 tensor) {
  return b->m->dev[b->s->skip.n + (place * b->s->dp.n + data) * b->s->tp.n + tensor].kind;
}

// Of what does not depend on the order of tasks and on sends, nor (zero: false) on the level of ZeRO.
typedef enum { KEPT_PEAK = 1, KEPT_BYTES, KEPT_LAYERS, KEPT_CUTS, KEPT_SHARES, KEPT_TENSOR } kept_figures;
static planner_key key_of(const balance *b, kept_figures what, bool zero) {
  strategy s = *b->s;
  if (!s.schedule.path) s.schedule = choice_default(CHOICE_schedule), s.group = choice_default(CHOICE_group);
  s.overlap = choice_default(CHOICE_overlap), s.channels = choice_default(CHOICE_channels);
  if (!zero) s.zero = choice_default(CHOICE_zero);
  return (planner_key){s, {-(i64)what, b->o->train}, cost_model_serial(b->o->k)};
}

// ---- times ----------------------------------------------------------------------------------------------
// So many ranks of the kind, in order; false: there are fewer.
static bool ranks_of_kind(const balance *b, u32 kind, u32 n, u32 *out) {
  u32 k = 0;
  for (u32 r = 0; r < b->m->nranks && k < n; r++)
    if (b->m->dev[r].kind == kind) out[k++] = r;
  return k == n;
}

// Busy ps of main's instructions for one microbatch of so many samples on tp ranks of the kind; on one of
// them that part of all the work, without communication. NULL: not known.
static const double *measure_on(const balance *b, u32 kind, u32 tp, i64 batch, i64 samples) {
  hybrid_opts h = *b->o;
  u32 *ranks = NEWN(b->a, u32, tp);
  const double part = tp < b->s->tp.n ? 1.0 / b->s->tp.n : 1;
  if (!ranks_of_kind(b, kind, tp, ranks)) return NULL;
  h.s = strategy_default(), h.said = NULL, h.no_order = true;
  h.s.tp.n = tp, h.s.mb.n = (u32)(batch / samples), h.s.recompute = b->s->recompute;
  if (tp > 1) h.s.sp = b->s->sp, h.s.tables = b->s->tables;
  const planner_key key = {h.s, {kind, (i64)b->s->tp.n << 1 | b->o->train}, cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  plan *pn = policy_hybrid(b->pl, b->a, &h);
  sim_busy *busy = ZNEWN(b->a, sim_busy, b->nbody + 1);
  if (!pn) return NULL;
  pn->meshes[0].ranks = ranks, pn->meshes[0].nranks = tp;
  if (!plan_busy(b->pl, pn, b->o->k, busy)) return NULL;
  double *ps = ZNEWN(b->a, double, b->nbody + 1);
  for (u32 i = 0; i < b->nbody; i++)
    for (u32 d = 0; d < 2; d++) ps[i] += (busy[i].compute[d] + (part < 1 ? 0 : busy[i].comm[d])) * part;
  planner_keep_times(b->pl, &key, ps, b->nbody);
  return ps;
}

// Where the kind has too few ranks, or equal parts are not possible though others may be: of one of them.
static const double *measure(const balance *b, u32 kind, i64 batch, i64 samples) {
  const double *ps = measure_on(b, kind, b->s->tp.n, batch, samples);
  return ps || b->s->tp.n == 1 ? ps : measure_on(b, kind, 1, batch, samples);
}

static i64 divisor_below(i64 n, i64 most) {
  i64 d = MIN(MAX(most, 1), n);
  while (n % d) d--;
  return d;
}

// An axis has no more microbatches than that.
static i64 divisor_above(i64 n, i64 least) {
  i64 d = MAX(least, 1);
  while (n % d) d++;
  return d;
}

static const linear *times_of(balance *b, u32 kind) {
  if (b->time[kind]) return b->time[kind];
  const i64 batch = b->micro * b->s->mb.n, least = divisor_above(batch, ceil_div(batch, UINT16_MAX)),
            even = MAX(divisor_below(batch, b->micro / b->s->dp.n), least),
            less = MAX(divisor_below(batch, even / 2), least);
  const double *at[2] = {measure(b, kind, batch, even), NULL};
  if (!at[0] || (less < even && !(at[1] = measure(b, kind, batch, less)))) return NULL;
  linear *t = ZNEWN(b->a, linear, b->nbody + 1);
  for (u32 i = 0; i < b->nbody; i++) {
    const double each = less < even ? (at[0][i] - at[1][i]) / (double)(even - less) : at[0][i] / (double)even;
    t[i].each = MIN(MAX(each, 0), at[0][i] / (double)even);
    t[i].fixed = at[0][i] - t[i].each * (double)even;
    t[b->nbody].fixed += t[i].fixed, t[b->nbody].each += t[i].each;
  }
  return b->time[kind] = t;
}

static linear all_of(const balance *b, const linear *t) { return t[b->nbody]; }

static double at(linear t, i64 samples) { return t.fixed + t.each * (double)samples; }

// ---- memory ---------------------------------------------------------------------------------------------
static u32 no_price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)p, (void)f, (void)i, (void)g;
  *ps = 0;
  return 1;
}

// Bytes of the fullest rank of the plan with equal shares and microbatches of so many samples. Below 0: not
// known.
static double peak(const balance *b, i64 samples) {
  hybrid_opts h = *b->o;
  h.s = *b->s, h.said = NULL, h.no_order = true;
  h.s.dp_shares = choice_default(CHOICE_dp_shares), h.s.tp_shares = choice_default(CHOICE_tp_shares);
  h.s.mb.n = (u32)(b->micro * b->s->mb.n / b->s->dp.n / samples);
  const planner_key key = {h.s, {-KEPT_PEAK, 0}, cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return *known;
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true, .cost = no_price};
  ctx *c = planner_source(b->pl)->c;
  arena *tmp = arena_new();
  double bytes = -1;
  u32 n;
  const sim_order *order;
  plan_probed about;
  const plan *pn = policy_hybrid(b->pl, tmp, &h);
  prog *probe = pn ? plan_probe(b->pl, pn, b->o->k, tmp, false, &about) : NULL;
  const sim_stages *st = probe ? sim_stages_of(c, tmp, probe, b->o->k, &so, &about.pipeline) : NULL;
  if (st && plan_line(c, tmp, pn, &about.graph, &n, &order)) {
    sim_pipe_result r;
    sim_pipe(st, tmp, sim_line_new(tmp, st, order, n), &r);
    bytes = (double)r.peak_bytes;
  }
  prog_free(probe);
  arena_free(tmp);
  planner_keep_times(b->pl, &key, &bytes, 1);
  return bytes;
}

// What a rank of a plan of one stage holds: fixed + each x samples of a microbatch. False: not known, or
// there is no limit.
static bool memory_of(const balance *b, double *fixed, double *each) {
  const u32 n = b->s->dp.n;
  const i64 own = b->micro * b->s->mb.n / n, even = divisor_below(own, MAX(b->micro / n, 1)),
            less = divisor_below(own, even / 2);
  const double at_even = b->s->pp.n == 1 && less < even ? peak(b, even) : -1,
               at_less = at_even < 0 ? -1 : peak(b, less);
  *each = (at_even - at_less) / (double)(even - less), *fixed = at_even - *each * (double)even;
  return at_less >= 0 && *each > 0 && b->o->memory_bytes >= 0;
}

static i64 usable_of(const balance *b, u32 data) { // by the smallest device of a data rank
  i64 usable = INT64_MAX;
  for (u32 t = 0; t < b->s->tp.n; t++) {
    const i64 of = b->m->kind[kind_at(b, 0, data, t)].usable_bytes;
    usable = MIN(usable, b->o->memory_bytes > 0 ? b->o->memory_bytes : of);
  }
  return usable;
}

// ---- shares of the batch --------------------------------------------------------------------------------
static u32 gcd_of(const u32 *v, u32 n) {
  i64 g = 0;
  for (u32 k = 0; k < n; k++) g = gcd_i64(g, v[k]);
  return (u32)MAX(g, 1);
}

static choice_value parts(const balance *b, const u32 *v, u32 n) {
  u32 *own = NEWN(b->a, u32, n), by = gcd_of(v, n);
  for (u32 k = 0; k < n; k++) own[k] = v[k] / by;
  return (choice_value){.nparts = n, .part = own};
}

static bool all_equal(const u32 *v, u32 n) {
  for (u32 k = 1; k < n; k++)
    if (v[k] != v[0]) return false;
  return true;
}

// Which kinds every data rank has, and what each takes of main.
typedef struct {
  u32 nkinds;
  const bool *has; // [rank][kind]
  const linear *sum;
} data_ranks;

static bool data_ranks_of(balance *b, data_ranks *x) {
  const u32 n = b->s->dp.n;
  x->nkinds = b->m->nkinds;
  bool *has = ZNEWN(b->a, bool, (size_t)n * x->nkinds);
  linear *sum = ZNEWN(b->a, linear, x->nkinds);
  for (u32 j = 0; j < n; j++)
    for (u32 q = 0; q < b->s->pp.n; q++)
      for (u32 t = 0; t < b->s->tp.n; t++) has[j * x->nkinds + kind_at(b, q, j, t)] = true;
  for (u32 j = 0; j < n; j++)
    for (u32 k = 0; k < x->nkinds; k++) {
      const linear *of = has[j * x->nkinds + k] ? times_of(b, k) : NULL;
      if (has[j * x->nkinds + k] && !of) return false;
      if (of) sum[k] = all_of(b, of);
    }
  x->has = has, x->sum = sum;
  return true;
}

// Of the slowest place: which one that is depends on how many samples there are.
static double data_rank_time(const data_ranks *x, u32 rank, i64 samples) {
  double most = 0;
  for (u32 k = 0; k < x->nkinds; k++)
    if (x->has[rank * x->nkinds + k]) most = MAX(most, at(x->sum[k], samples));
  return most;
}

typedef struct {
  const data_ranks *of;
} asking;
static i64 time_of_rank(const void *arg, u32 rank, i64 samples) {
  return (i64)data_rank_time(((const asking *)arg)->of, rank, samples);
}

static bool shares_from(const balance *b, const double *share, choice_value *out) {
  const u32 n = b->s->dp.n;
  u32 *v = NEWN(b->a, u32, n);
  for (u32 j = 0; j < n; j++) {
    if (share[j] < 1) return false;
    v[j] = (u32)share[j];
  }
  *out = all_equal(v, n) ? choice_default(CHOICE_dp_shares) : parts(b, v, n);
  return true;
}

static bool share_batch(balance *b, choice_value *out) {
  const u32 n = b->s->dp.n;
  const planner_key key = key_of(b, KEPT_SHARES, b->s->pp.n == 1);
  const double *known = planner_kept_times(b->pl, &key);
  data_ranks x;
  double fixed, each;
  if (known) return shares_from(b, known, out);
  if (b->micro < n || !data_ranks_of(b, &x)) return false;
  const bool capped = memory_of(b, &fixed, &each);
  balance_ranks *rank = NEWN(b->a, balance_ranks, n);
  for (u32 j = 0; j < n; j++) {
    const double room = capped ? ((double)usable_of(b, j) - fixed) / each : 1e15;
    rank[j] = (balance_ranks){.count = 1, .least = 1, .cap = (i64)MIN(MAX(room, 1), 1e15)};
  }
  const balance_batch in = {
      .total = b->micro, .nkinds = n, .kind = rank, .time = time_of_rank, .arg = &(asking){&x}};
  balance_split split;
  balance_fault fault = balance_shares(b->a, &in, &split);
  for (u32 j = 0; fault == BALANCE_CAPS && j < n; j++)
    rank[j].cap = b->micro; // it does not fit, however it is dealt out
  if (fault == BALANCE_CAPS) fault = balance_shares(b->a, &in, &split);
  if (fault != BALANCE_OK) return false;
  double *share = NEWN(b->a, double, n);
  for (u32 j = 0; j < n; j++) share[j] = (double)split.share[j];
  planner_keep_times(b->pl, &key, share, n);
  return shares_from(b, share, out);
}

// The same by Whale's Algorithm 1, with its names: by speed, then what does not fit goes where there is room.
static bool share_batch_whale(balance *b, choice_value *out) {
  const u32 n = b->s->dp.n;
  data_ranks x;
  double fixed, each, most = 0;
  if (b->micro < n || !data_ranks_of(b, &x)) return false;
  const bool capped = memory_of(b, &fixed, &each);
  const i64 even = MAX(b->micro / n, 1);
  i64 *DF = NEWN(b->a, i64, n), *DM = NEWN(b->a, i64, n);
  for (u32 j = 0; j < n; j++) most = MAX(most, 1 / data_rank_time(&x, j, even));
  for (u32 j = 0; j < n; j++) {
    DF[j] = (i64)MAX(1e9 / data_rank_time(&x, j, even) / most, 1);
    DM[j] = capped ? MAX(usable_of(b, j) - (i64)fixed, 0) : INT64_MAX / 4;
  }
  const balance_whale in = {
      .n = n, .DF = DF, .DM = DM, .TG_mem = capped ? (i64)(each * (double)b->micro) : 0, .quanta = b->micro};
  balance_loads loads;
  if (balance_whale_loads(b->a, &in, &loads) != BALANCE_OK) return false;
  double *share = NEWN(b->a, double, n);
  for (u32 j = 0; j < n; j++) share[j] = (double)loads.load[j];
  return shares_from(b, share, out);
}

// ---- shares of tensor splits ----------------------------------------------------------------------------
static bool splits_so(const balance *b, const u32 *v, u32 n) {
  prog *p = planner_source(b->pl);
  const u32 said = diag_count(p->c);
  arena *tmp = arena_new();
  plan_axis axis = {.name = sym_of(p->c, "tp"), .size = n, .shares = all_equal(v, n) ? NULL : v};
  plan_mesh all = {.name = sym_of(p->c, "m"), .naxes = 1, .axis = {1}};
  plan pn = {.naxes = 1, .axes = &axis, .nmeshes = 1, .meshes = &all};
  const bool ok = policy_tensor(b->pl, tmp, &pn, 1, choice_is(CHOICE_tables, b->s->tables, "whole"));
  diag_truncate(p->c, said);
  arena_free(tmp);
  return ok;
}

static bool tensor_shares_from(const balance *b, const double *share, choice_value *out) {
  const u32 n = b->s->tp.n;
  u32 *v = NEWN(b->a, u32, n);
  for (u32 x = 0; x < n; x++) v[x] = (u32)share[x];
  *out = all_equal(v, n) ? choice_default(CHOICE_tp_shares) : parts(b, v, n);
  return true;
}

static bool share_tensor(balance *b, choice_value *out) {
  const u32 n = b->s->tp.n;
  const planner_key key = key_of(b, KEPT_TENSOR, false);
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return tensor_shares_from(b, known, out);
  double *pace = ZNEWN(b->a, double, n), best = 0; // pace: ps of all the work
  u32 *v = NEWN(b->a, u32, n), *kept = NULL;
  for (u32 x = 0; x < n; x++)
    for (u32 q = 0; q < b->s->pp.n; q++)
      for (u32 j = 0; j < b->s->dp.n; j++) {
        const linear *t = times_of(b, kind_at(b, q, j, x));
        if (!t) return false;
        pace[x] = MAX(pace[x], at(all_of(b, t), MAX(b->micro / b->s->dp.n, 1)));
      }
  for (u32 sum = n; sum <= PARTS_MOST; sum++) {
    double worst = 0;
    for (u32 x = 0; x < n; x++) v[x] = 1;
    for (u32 left = sum - n; left > 0; left--) {
      u32 to = 0;
      for (u32 x = 1; x < n; x++)
        if (pace[x] * (v[x] + 1) < pace[to] * (v[to] + 1)) to = x;
      v[to]++;
    }
    for (u32 x = 0; x < n; x++) worst = MAX(worst, pace[x] * v[x] / sum);
    if (gcd_of(v, n) > 1 || (kept && worst >= best) || !splits_so(b, v, n)) continue;
    best = worst, kept = arena_dup(b->a, v, n * sizeof *v);
  }
  double *share = NEWN(b->a, double, n);
  for (u32 x = 0; x < n; x++) share[x] = kept ? kept[x] : 1;
  planner_keep_times(b->pl, &key, share, n);
  return tensor_shares_from(b, share, out);
}

// ---- layers ---------------------------------------------------------------------------------------------
// A layer is a call of main and what stands before it; the last one has what follows, too.
typedef struct {
  u32 n;
  u32 *of; // by instruction of main
} layer_list;

static layer_list layers_of(const balance *b) {
  const func_info *m = func_get(planner_source(b->pl), planner_source(b->pl)->main);
  layer_list x = {.of = NEWN(b->a, u32, m->body.n + 1)};
  for (u32 i = 0; i < m->body.n; i++) x.n += m->body.v[i].op == OP_call;
  for (u32 i = 0, l = 0; i < m->body.n; i++) {
    x.of[i] = MIN(l, MAX(x.n, 1) - 1);
    l += m->body.v[i].op == OP_call;
  }
  return x;
}

static strategy degrees_at(const balance *b, u32 place) {
  strategy s = *b->s;
  if (!s.tp_stages.nparts) return s;
  s.dp.n = s.dp.n * s.tp.n / s.tp_stages.part[place], s.tp.n = s.tp_stages.part[place];
  return s;
}

// ps of the layers for one microbatch on the slowest rank of a block, with the degrees of the place. NULL:
// not known.
static const i64 *block_times(balance *b, const layer_list *l, u32 block, u32 place) {
  const u32 dp = b->s->dp.n, *shares = b->s->dp_shares.nparts ? b->s->dp_shares.part : NULL;
  const strategy s = degrees_at(b, place);
  balance own = *b;
  i64 sum = 0, *ps = ZNEWN(b->a, i64, l->n + 1);
  double *most = ZNEWN(b->a, double, b->nbody + 1);
  struct {
    u32 kind, share;
  } seen[64]; // ranks that are alike
  u32 nseen = 0;
  for (u32 j = 0; j < dp; j++) sum += shares ? shares[j] : 1;
  if (s.tp.n != b->s->tp.n) own.s = &s, own.time = ZNEWN(b->a, linear *, b->m->nkinds);
  for (u32 j = 0; j < dp; j++)
    for (u32 t = 0; t < b->s->tp.n; t++) {
      const u32 kind = b->m->dev[b->s->skip.n + (block * dp + j) * b->s->tp.n + t].kind,
                share = shares ? shares[j] : 1;
      u32 k = 0;
      while (k < nseen && (seen[k].kind != kind || seen[k].share != share)) k++;
      if (k < nseen) continue;
      if (nseen < COUNT_OF(seen)) seen[nseen].kind = kind, seen[nseen++].share = share;
      const linear *of = times_of(s.tp.n != b->s->tp.n ? &own : b, kind);
      if (!of) return NULL;
      for (u32 i = 0; i < b->nbody; i++)
        most[i] = MAX(most[i], at(of[i], shares ? b->micro * share / sum : b->micro / s.dp.n));
    }
  double done = 0; // layers are differences of rounded sums
  i64 before = 0;
  for (u32 i = 0; i < b->nbody; i++) {
    done += most[i];
    ps[l->of[i]] += (i64)done - before, before = (i64)done;
  }
  return ps;
}

static const i64 *const *times_of_blocks(balance *b, const layer_list *l) {
  const i64 **ps = NEWN(b->a, const i64 *, b->s->pp.n);
  for (u32 q = 0; q < b->s->pp.n; q++)
    if (!(ps[q] = block_times(b, l, strategy_block(b->s, q), q))) return NULL;
  return ps;
}

// ---- memory of layers -----------------------------------------------------------------------------------
typedef struct {
  i64 *fixed, *kept; // by layer, of one rank
} layer_bytes;

// Bytes of each layer on a rank. NULL: not known.
static const double *kept_of_layers(const balance *b, const layer_list *l) {
  hybrid_opts h = *b->o;
  h.s = strategy_default(), h.said = NULL, h.no_order = true;
  h.s.tp = b->s->tp, h.s.sp = b->s->sp, h.s.tables = b->s->tables, h.s.recompute = b->s->recompute;
  h.s.mb.n = b->s->mb.n * b->s->dp.n;
  const planner_key key = {h.s, {-KEPT_BYTES, 0}, cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  plan_kept_value *x;
  bool *accumulates;
  const plan *pn = policy_hybrid(b->pl, b->a, &h);
  if (!pn) return NULL;
  const u32 n = plan_kept(b->pl, pn, b->o->k, b->a, &x, &accumulates);
  double *kept = ZNEWN(b->a, double, l->n + 1);
  for (u32 k = 0; k < n; k++) kept[l->of[x[k].def]] += x[k].bytes;
  planner_keep_times(b->pl, &key, kept, l->n);
  return kept;
}

// Weights, gradients and states as tensor parallelism and ZeRO split them, if that splits everything; what
// one microbatch keeps for its backward.
static layer_bytes bytes_of_layers(const balance *b, const layer_list *l) {
  prog *p = planner_source(b->pl);
  const func_info *m = func_get(p, p->main);
  layer_bytes x = {ZNEWN(b->a, i64, l->n + 1), ZNEWN(b->a, i64, l->n + 1)};
  const strategy *s = b->s;
  const u32 zero = b->o->train ? s->zero.n : 0, tp = s->tp.n;
  const planner_key key = key_of(b, KEPT_LAYERS, true);
  const double *known = planner_kept_times(b->pl, &key);
  for (u32 k = 0; known && k < l->n; k++) x.fixed[k] = (i64)known[k], x.kept[k] = (i64)known[l->n + k];
  if (known) return x;
  bool *seen = ZNEWN(b->a, bool, m->nparams + 1);
  for (u32 i = 0; i < m->body.n; i++)
    for (u32 o = 0; o < instr_nopd(m, &m->body.v[i]); o++) {
      const value v = opd_of(m, &m->body.v[i], o);
      if (v > m->nparams || seen[v] || m->params.v[v - 1].r != ROLE_WEIGHT) continue;
      const shape *sh = &val_type(p, m, v)->s;
      i64 bytes = shape_bytes(sh) / (zero > 2 ? s->dp.n : 1), states = 0;
      optim_state st;
      for (u32 k = 0; b->o->train && optim_state_find(&b->o->optim, sh, k, &st); k++)
        states += shape_bytes(&st.s);
      if (b->o->train) bytes += shape_bytes(sh) / (zero > 1 ? s->dp.n : 1) + states / (zero ? s->dp.n : 1);
      x.fixed[l->of[i]] += bytes / tp;
      seen[v] = true;
    }
  const double *kept = b->o->train ? kept_of_layers(b, l) : NULL;
  double *all = ZNEWN(b->a, double, 2 * l->n + 1);
  for (u32 k = 0; k < l->n; k++) {
    if (kept) x.kept[k] = (i64)kept[k];
    all[k] = (double)x.fixed[k], all[l->n + k] = (double)x.kept[k];
  }
  planner_keep_times(b->pl, &key, all, 2 * l->n);
  return x;
}

// ---- order and cuts -------------------------------------------------------------------------------------
enum { FULL = 95 }; // percent of a device's memory that is dealt out: what is computed with is not counted

static i64 memory_of_block(const balance *b, u32 block) {
  i64 least = INT64_MAX;
  const u32 ranks = b->s->dp.n * b->s->tp.n;
  for (u32 r = block * ranks; r < (block + 1) * ranks; r++)
    least = MIN(least, machine_kind_of(b->m, b->s->skip.n + r)->usable_bytes);
  if (b->o->memory_bytes > 0) least = b->o->memory_bytes;
  return b->o->memory_bytes < 0 ? INT64_MAX / 2 : least / 100 * FULL;
}

// Blocks of equal times and memory are one kind. Their number; kind[block].
static u32 kinds_of_blocks(const balance *b, const i64 *const *ps, u32 nlayers, u32 *kind) {
  u32 n = 0;
  for (u32 q = 0; q < b->s->pp.n; q++) {
    u32 j = 0;
    while (j < q &&
           (memory_of_block(b, j) != memory_of_block(b, q) || memcmp(ps[j], ps[q], nlayers * sizeof **ps)))
      j++;
    kind[q] = j < q ? kind[j] : n++;
  }
  return n;
}

static bool fits_in_order(const balance *b, const layer_bytes *bytes, const u32 *end) {
  for (u32 q = 0, l = 0; q < b->s->pp.n; q++) {
    i64 fixed = 0, kept = 0;
    for (; l < end[q]; l++) fixed += bytes->fixed[l], kept += bytes->kept[l];
    if (fixed + kept * MIN(b->s->pp.n - q, b->s->mb.n) > memory_of_block(b, q)) return false;
  }
  return true;
}

// Another order of blocks, where that of the machine does not fit and one does.
static bool reorder(balance *b, const layer_list *l, u32 *end, choice_value *places) {
  const u32 n = b->s->pp.n;
  const layer_bytes bytes = bytes_of_layers(b, l);
  const i64 *const *ps = fits_in_order(b, &bytes, end) ? NULL : times_of_blocks(b, l);
  if (!ps) return false;
  u32 *kind = NEWN(b->a, u32, n), nkinds = kinds_of_blocks(b, ps, l->n, kind);
  balance_devices *of = ZNEWN(b->a, balance_devices, nkinds);
  const i64 **time = NEWN(b->a, const i64 *, nkinds);
  for (u32 q = 0; q < n; q++)
    of[kind[q]].count++, of[kind[q]].memory_bytes = memory_of_block(b, q), time[kind[q]] = ps[q];
  const balance_line in = {.nlayers = l->n,
                           .nkinds = nkinds,
                           .kind = of,
                           .time_ps = time,
                           .fixed_bytes = bytes.fixed,
                           .kept_bytes = bytes.kept,
                           .micro = b->s->mb.n,
                           .stages = n,
                           .aim = BALANCE_BOTTLENECK};
  balance_cuts cuts;
  if (balance_stages(b->a, &in, &cuts) != BALANCE_OK) return false;
  u32 *order = NEWN(b->a, u32, n);
  bool *taken = ZNEWN(b->a, bool, n), same = true;
  for (u32 q = 0; q < n; q++) {
    u32 block = 0;
    while (taken[block] || kind[block] != cuts.kind[q]) block++;
    taken[block] = true, order[q] = block + 1, end[q] = cuts.end[q];
    same = same && block == q;
  }
  if (!same) *places = (choice_value){.nparts = n, .part = order};
  return true;
}

// Which place every stage is on: a file says it, else they go round. False: the file does not fit.
static bool places_of_stages(const balance *b, u32 *place) {
  plan pn = {.train = b->o->train};
  const sched *file = NULL;
  hybrid_opts h = *b->o;
  h.no_order = true;
  if (b->s->schedule.path && !policy_schedule(b->pl, b->a, &pn, b->s, &h, (loc){0}, &file)) return false;
  for (u32 k = 0; k < b->s->pp.n * b->s->v.n; k++) place[k] = file ? file->at[k].v[0] : k % b->s->pp.n;
  return true;
}

// By stage, one past its last layer, below 0: there are no such cuts. NULL: not known.
static const double *cuts_of(balance *b, const layer_list *l) {
  const u32 n = b->s->pp.n * b->s->v.n;
  const planner_key key = key_of(b, KEPT_CUTS, false);
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  u32 *place = NEWN(b->a, u32, n);
  const i64 *const *ps = times_of_blocks(b, l);
  if (!ps || !places_of_stages(b, place)) return NULL;
  // Of a file the longest stage alone is made short: its stages do not go round
  const u32 passes = b->s->schedule.path ? 1 : b->s->v.n;
  const balance_passes in = {.nlayers = l->n,
                             .nkinds = b->s->pp.n,
                             .nplaces = n / passes,
                             .nchunks = passes,
                             .kind = place,
                             .time_ps = ps};
  balance_chunked cut;
  const bool ok = balance_chunks(b->a, &in, &cut) == BALANCE_OK;
  double *end = NEWN(b->a, double, n);
  for (u32 k = 0; k < n; k++) end[k] = ok ? (double)cut.end[k] : -1;
  planner_keep_times(b->pl, &key, end, n);
  return end;
}

static bool share_layers(balance *b, strategy *s) {
  const u32 n = b->s->pp.n * b->s->v.n;
  const layer_list l = layers_of(b);
  if (l.n < n) return true; // by FLOPs, which cuts between single matmuls too
  const double *cut = cuts_of(b, &l);
  if (!cut) return false;
  if (cut[0] < 0) return true;
  u32 *end = NEWN(b->a, u32, n), *part = NEWN(b->a, u32, n);
  for (u32 k = 0; k < n; k++) end[k] = (u32)cut[k];
  if (b->s->v.n == 1 && !b->s->places.nparts && !b->s->tp_stages.nparts) reorder(b, &l, end, &s->places);
  for (u32 k = 0; k < n; k++) part[k] = end[k] - (k ? end[k - 1] : 0);
  s->layers = (choice_value){.nparts = n, .part = part};
  return true;
}

// ---- all together ---------------------------------------------------------------------------------------
static bool is_auto(choice_id id, choice_value x) { return choice_is(id, x, "auto"); }

static balance balance_of(planner *pl, arena *a, const hybrid_opts *o, const strategy *s) {
  balance b = {.pl = pl, .a = a, .o = o, .m = cost_model_machine(o->k), .s = s};
  b.nbody = func_get(planner_source(pl), planner_source(pl)->main)->body.n;
  b.micro = policy_batch_extent(pl) / s->mb.n;
  b.time = ZNEWN(a, linear *, b.m->nkinds);
  return b;
}

static bool known_batch(const balance *b) {
  const strategy *s = b->s;
  const i64 batch = policy_batch_extent(b->pl);
  return batch > 0 && batch % s->mb.n == 0 && s->skip.n + (u64)s->dp.n * s->tp.n * s->pp.n <= b->m->nranks;
}

static bool several_kinds(const balance *b) { // of the devices that are used
  return !machine_one_kind(b->m, b->s->skip.n, b->s->dp.n * b->s->tp.n * b->s->pp.n);
}

bool policy_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed) {
  prog *p = planner_source(pl);
  balance b = balance_of(pl, a, o, &o->s);
  const i64 even = MAX(b.micro / o->s.dp.n, 1);
  const u32 said = diag_count(p->c);
  bool known = known_batch(&b);
  for (u32 k = 0; k < b.m->nkinds; k++) speed[k] = 0;
  for (u32 r = 0; known && r < o->s.dp.n * o->s.tp.n * o->s.pp.n; r++) {
    const u32 kind = b.m->dev[o->s.skip.n + r].kind;
    if (speed[kind] > 0) continue;
    const linear *t = times_of(&b, kind);
    known = t != NULL;
    if (known) speed[kind] = (double)even / at(all_of(&b, t), even) / o->s.tp.n;
  }
  diag_truncate(p->c, said);
  return known;
}

static bool no_machine(const hybrid_opts *o, prog *p, choice_id id) {
  const char *name = choice_get(id)->name;
  strbuf said = {.a = ctx_arena(p->c)};
  choice_say(id, o->s.of[id], &said);
  diag(p->c, E_STRATEGY, o->said ? o->said->of[id].at : (loc){0}, "%s needs a machine", sb_str(&said));
  diag_hint(p->c, "add --machine, or say the parts: %s=%s", name, id == CHOICE_layers ? "equal" : "3/1");
  return false;
}

bool policy_balance(planner *pl, arena *a, const hybrid_opts *o, strategy *s) {
  prog *p = planner_source(pl);
  const bool whale = choice_is(CHOICE_dp_shares, s->dp_shares, "whale");
  const bool tensor = is_auto(CHOICE_tp_shares, s->tp_shares),
             data = whale || is_auto(CHOICE_dp_shares, s->dp_shares),
             layers = is_auto(CHOICE_layers, s->layers);
  if (!tensor && !data && !layers) return true;
  if (!o->k) return no_machine(o, p, tensor ? CHOICE_tp_shares : data ? CHOICE_dp_shares : CHOICE_layers);
  balance b = balance_of(pl, a, o, s);
  const u32 said = diag_count(p->c);
  const choice_value cost = choice_default(CHOICE_layers);
  bool known = known_batch(&b);
  if (layers) s->layers = cost;
  if (data) s->dp_shares = choice_default(CHOICE_dp_shares);
  if (tensor) s->tp_shares = choice_default(CHOICE_tp_shares);
  // What cannot be measured cannot be planned either: the plan says why
  const bool several = known && several_kinds(&b);
  if (tensor && several) known = share_tensor(&b, &s->tp_shares);
  if (data && known && several) known = (whale ? share_batch_whale : share_batch)(&b, &s->dp_shares);
  if (layers && known) share_layers(&b, s);
  diag_truncate(p->c, said);
  return true;
}
