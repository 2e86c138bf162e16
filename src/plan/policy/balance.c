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
// - layers: layers_auto.c.
// - tp.shares: parts of a sum that the model's splits allow, by the time of the rank's kind; of sums up to
//   PARTS_MOST the one whose slowest rank ends first.
//
// Devices of one kind get equal shares of the batch, or such that differ by one sample. Ranks of a place that are of several kinds are as slow as the
// slowest.
#include "plan/policy/balance.h"
#include <math.h>

enum { PARTS_MOST = 64 };

static u32 kind_at(const balance *b, u32 place, u32 data, u32 tensor) {
  return b->m->dev[b->s->skip.n + (place * b->s->dp.n + data) * b->s->tp.n + tensor].kind;
}

planner_key auto_key(const balance *b, kept_figures what, bool memory) {
  strategy s = *b->s;
  if (!s.schedule.path)
    s.schedule = strategy_of_stages(b->s).schedule, s.group = choice_default(CHOICE_group);
  s.channels = choice_default(CHOICE_channels);
  if (!memory) s.overlap = choice_default(CHOICE_overlap), s.zero = choice_default(CHOICE_zero);
  return (planner_key){what, s, {b->o->memory_bytes}, auto_training(b), cost_model_serial(b->o->k)};
}

// ---- times ----------------------------------------------------------------------------------------------
bool policy_busy(planner *pl, arena *a, const hybrid_opts *o, const u32 *ranks, const sched_row *row,
                 sim_busy *out) {
  hybrid_opts own = *o;
  own.said = NULL, own.no_order = true;
  plan *pn = policy_hybrid(pl, a, &own);
  if (!pn) return false;
  if (ranks) pn->meshes[0].ranks = ranks, pn->meshes[0].nranks = own.s.tp.n;
  if (row) pn->made.row = row;
  return plan_busy(pl, pn, own.k, out);
}

// Busy ps of main's instructions for one microbatch of so many samples on tp ranks of the kind; on one of
// them that part of all the work, without communication. NULL: not known.
static const double *measure_on(const balance *b, u32 kind, u32 tp, i64 batch, i64 samples) {
  hybrid_opts h = *b->o;
  u32 *ranks = NEWN(b->a, u32, tp);
  const double part = tp < b->s->tp.n ? 1.0 / b->s->tp.n : 1;
  if (machine_ranks_of_kind(b->m, 0, b->m->nranks, kind, tp, ranks) < tp) return NULL;
  h.s = strategy_default();
  h.s.tp.n = tp, h.s.mb.n = (u32)(batch / samples);
  strategy_take_stages(&h.s, b->s, h.train);
  h.splits = NULL; // of what the strategy splits: figures are kept by it
  const planner_key key = {KEPT_TIMES, h.s, {kind, b->s->tp.n}, auto_training(b), cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  sim_busy *busy = ZNEWN(b->a, sim_busy, b->nbody + 1);
  if (!policy_busy(b->pl, b->a, &h, ranks, NULL, busy)) return NULL;
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

const linear *auto_times(balance *b, u32 kind) {
  if (b->time[kind]) return b->time[kind];
  const i64 batch = b->micro * b->s->mb.n;
  const i64 least = divisor_above(batch, ceil_div(batch, UINT16_MAX)); // an axis has no more microbatches
  const i64 even = MAX(divisor_below(batch, b->micro / b->s->dp.n), least),
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

// ---- memory ---------------------------------------------------------------------------------------------
static u32 no_price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)p, (void)f, (void)i, (void)g;
  *ps = 0;
  return 1;
}

static choice_value parts(choice_id id, u32 *v, u32 n) {
  return strategy_reduce(v, n) ? (choice_value){.nparts = n, .part = v} : choice_default(id);
}

// Bytes of the fullest rank of a plan with mb microbatches whose first data rank has so many samples of one; the others
// share the rest alike, none of them more. Below 0: not known.
static double peak(const balance *b, i64 mb, i64 first) {
  const u32 n = b->s->dp.n;
  const i64 rest = b->micro * b->s->mb.n / mb - first, each = rest / (n - 1), more = rest % (n - 1);
  const bool equal = each == first;
  hybrid_opts h = *b->o;
  h.s = *b->s, h.said = NULL, h.no_order = true;
  h.splits = NULL; // figures are kept by the strategy
  h.s.dp_shares = choice_default(CHOICE_dp_shares), h.s.tp_shares = choice_default(CHOICE_tp_shares);
  h.s.mb.n = (u32)mb;
  const planner_key key = {KEPT_PEAK, h.s, {equal ? 0 : first}, auto_training(b), cost_model_serial(b->o->k)};
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return *known;
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true, .cost = no_price};
  arena *tmp = arena_new();
  sim_pipe_result r;
  u32 *share = NEWN(tmp, u32, n);
  for (u32 k = 0; k < n; k++) share[k] = (u32)(!k ? first : each + (k <= more));
  if (!equal) h.s.dp_shares = parts(CHOICE_dp_shares, share, n);
  const plan *pn = policy_hybrid(b->pl, tmp, &h);
  const bool ok = pn && plan_price_stages(b->pl, pn, b->o->k, tmp, &so, &r);
  const double bytes = ok ? (double)r.peak_bytes : -1;
  arena_free(tmp);
  planner_keep_times(b->pl, &key, &bytes, 1);
  return bytes;
}

// What a rank of a plan of one stage holds: fixed + each x samples of a microbatch. Plans of several microbatches have
// accumulators of gradients besides, so what a sample adds is told by two of them; where data ranks do not divide the
// batch, or what one has is prime, by plans of one microbatch whose first data rank has more than its part. False: not
// known, or there is no limit.
static bool memory_of(const balance *b, double *fixed, double *each) {
  const u32 n = b->s->dp.n;
  const i64 batch = b->micro * b->s->mb.n, own = batch / n, even = divisor_below(own, MAX(b->micro / n, 1));
  i64 at = even, more = b->s->mb.n > 1 || even < own ? even : divisor_below(own, even / 2),
      less = divisor_below(own, more / 2);
  const bool equal = batch % n == 0 && less < more;
  if (!equal) at = ceil_div(b->micro, n), less = ceil_div(batch, n), more = MIN(2 * less, batch - n + 1);
  if (b->s->pp.n > 1 || n < 2 || less >= more || b->o->memory_bytes < 0) return false;
  const double here = peak(b, equal ? own / at : b->s->mb.n, at),
               at_more = here < 0 ? -1 : peak(b, equal ? own / more : 1, more),
               at_less = at_more < 0 ? -1 : peak(b, equal ? own / less : 1, less);
  *each = (at_more - at_less) / (double)(more - less), *fixed = here - *each * (double)at;
  return at_less >= 0 && *each > 0;
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
// Of which kinds the devices of every data rank are, and what each takes of main. Where degrees differ by place these
// are the data ranks of the place with most of them (degrees.c): elsewhere several are one, taken to have equal shares.
typedef struct {
  linear sum;
  u32 ranks; // that are one there
  bool known;
} kind_time;
typedef struct {
  u32 n, nkinds;
  kind_time *time; // [place][kind]
  const bool *has; // [rank][place][kind]
} data_ranks;

// Places of one degree share their times.
static bool find_time(balance *b, data_ranks *x, balance *at, u32 place, u32 kind) {
  kind_time *to = &x->time[place * x->nkinds + kind];
  if (to->known) return true;
  const linear *of = auto_times(&at[place], kind);
  if (of) *to = (kind_time){of[b->nbody], x->n / at[place].s->dp.n, true};
  return of;
}

static bool data_ranks_of(balance *b, data_ranks *x) {
  const strategy *s = b->s;
  const u32 ranks = s->dp.n * s->tp.n, places = s->pp.n;
  *x = (data_ranks){.n = strategy_shares_needed(s, CHOICE_dp_shares), .nkinds = b->m->nkinds};
  bool *has = ZNEWN(b->a, bool, (size_t)x->n *places * x->nkinds);
  balance *at = NEWN(b->a, balance, places);
  x->time = ZNEWN(b->a, kind_time, (size_t)places * x->nkinds), x->has = has;
  for (u32 q = 0; q < places; q++) {
    u32 like = 0;
    while (like < q && strategy_tensor_at(s, like) != strategy_tensor_at(s, q)) like++;
    at[q] = like < q ? at[like] : auto_at_place(b, q);
    const u32 tp = at[q].s->tp.n, each = x->n / at[q].s->dp.n;
    for (u32 r = 0; r < ranks; r++) {
      const u32 kind = b->m->dev[s->skip.n + strategy_block(s, q) * ranks + r].kind;
      if (!find_time(b, x, at, q, kind)) return false;
      for (u32 j = r / tp * each; j < (r / tp + 1) * each; j++)
        has[(j * places + q) * x->nkinds + kind] = true;
    }
  }
  x->nkinds *= places; // from here on: of places
  return true;
}

// Of the slowest place: which one that is depends on how many samples there are.
static double data_rank_time(const data_ranks *x, u32 rank, i64 samples) {
  double most = 0;
  for (u32 k = 0; k < x->nkinds; k++)
    if (x->has[rank * x->nkinds + k]) most = MAX(most, auto_at(x->time[k].sum, samples * x->time[k].ranks));
  return most;
}

static i64 time_of_rank(const void *arg, u32 rank, i64 samples) {
  return (i64)data_rank_time(arg, rank, samples);
}

const i64 *auto_shares(arena *a, i64 total, u32 n, const i64 *cap, balance_time *time, const void *arg) {
  balance_ranks *rank = NEWN(a, balance_ranks, n);
  for (u32 x = 0; x < n; x++) rank[x] = (balance_ranks){.count = 1, .least = 1, .cap = cap ? cap[x] : total};
  const balance_batch in = {.total = total, .nkinds = n, .kind = rank, .time = time, .arg = arg};
  balance_split split;
  return balance_shares(a, &in, &split) == BALANCE_OK ? split.share : NULL;
}

static bool shares_from(const balance *b, choice_id id, const double *share, choice_value *out) {
  const u32 n = strategy_shares_needed(b->s, id);
  u32 *v = NEWN(b->a, u32, n);
  for (u32 j = 0; j < n; j++) {
    if (share[j] < 1) return false;
    v[j] = (u32)share[j];
  }
  *out = parts(id, v, n);
  return true;
}

static i64 time_of_alike(const void *arg, u32 rank, i64 samples) {
  (void)arg, (void)rank;
  return samples;
}

// Over devices of one kind: numbers that differ by one at most, the larger ones first.
static bool share_alike(balance *b, choice_value *out) {
  const u32 n = strategy_shares_needed(b->s, CHOICE_dp_shares);
  const i64 *of = auto_shares(b->a, b->micro, n, NULL, time_of_alike, NULL);
  double *share = NEWN(b->a, double, n);
  for (u32 j = 0; j < n; j++) share[j] = (double)of[j];
  return shares_from(b, CHOICE_dp_shares, share, out);
}

static bool share_batch(balance *b, choice_value *out) {
  const u32 n = strategy_shares_needed(b->s, CHOICE_dp_shares);
  const planner_key key = auto_key(b, KEPT_SHARES, b->s->pp.n == 1);
  const double *known = planner_kept_times(b->pl, &key);
  data_ranks x;
  double fixed, each;
  if (known) return shares_from(b, CHOICE_dp_shares, known, out);
  if (!data_ranks_of(b, &x)) return false;
  const bool capped = memory_of(b, &fixed, &each);
  i64 *cap = NEWN(b->a, i64, n);
  for (u32 j = 0; capped && j < n; j++)
    cap[j] = (i64)MIN(MAX(((double)usable_of(b, j) - fixed) / each, 1), 1e15);
  const i64 *of = auto_shares(b->a, b->micro, n, capped ? cap : NULL, time_of_rank, &x);
  if (!of)
    of = auto_shares(b->a, b->micro, n, NULL, time_of_rank, &x); // it does not fit, however it is dealt out
  double *share = NEWN(b->a, double, n);
  for (u32 j = 0; j < n; j++) share[j] = (double)of[j];
  planner_keep_times(b->pl, &key, share, n);
  return shares_from(b, CHOICE_dp_shares, share, out);
}

// Shares are found as if each place had the whole model, then cuts for them. s has those shares: of them and of equal ones,
// those whose step is shorter with the best cuts for them.
static void share_or_equal(balance *b, strategy *s) {
  const layer_list l = auto_layers_of(b, true);
  const choice_value shares = s->dp_shares, equal = choice_default(CHOICE_dp_shares);
  if (l.n < s->pp.n || !shares.nparts || b->micro % strategy_shares_needed(s, CHOICE_dp_shares)) return;
  const double with = auto_step(b, &l);
  s->dp_shares = equal;
  const double without = auto_step(b, &l);
  if (with >= 0 && (without < 0 || with <= without)) s->dp_shares = shares;
}

static loc shares_at(const balance *b) { return b->o->said ? b->o->said->of[CHOICE_dp_shares].at : (loc){0}; }

// False and a diagnostic: some data rank would have no sample.
static bool each_has_one(const balance *b, choice_value how) {
  const u32 n = strategy_shares_needed(b->s, CHOICE_dp_shares);
  const i64 batch = policy_batch_extent(b->pl);
  ctx *c = planner_source(b->pl)->c;
  if (b->micro >= n) return true;
  diag(c, E_DIVIDE, shares_at(b), "dp.shares=%s: a microbatch has %lld sample%s, fewer than %u data ranks",
       choice_word(CHOICE_dp_shares, how.n), (long long)b->micro, b->micro == 1 ? "" : "s", n);
  if (batch < n)
    diag_hint(c, "dp=%lld at most, or a larger --batch", (long long)batch);
  else
    diag_hint(c, "mb=%lld at most", (long long)divisor_below(batch, batch / n));
  return false;
}

// What Whale's loads are not, in figures: in the memory that there is, or one sample for each rank.
static bool whale_serves_all(const balance *b, const balance_whale *in, const balance_loads *l) {
  ctx *c = planner_source(b->pl)->c;
  double speed = 0, one = (double)in->TG_mem / (double)in->quanta / (1 << 30);
  if (l->noom) {
    diag(c, E_MEMORY, shares_at(b),
         "dp.shares=whale: %u data ranks have memory for %lld samples of a microbatch, at %.3g GiB each; it "
         "has "
         "%lld",
         in->n, (long long)(in->quanta - l->off), one, (long long)in->quanta);
    diag_hint(c, "more microbatches than mb=%u, or recompute=full", b->s->mb.n);
    return false;
  }
  for (u32 j = 0; j < in->n; j++) speed += (double)in->DF[j];
  for (u32 j = 0; j < in->n; j++) {
    if (l->load[j]) continue;
    diag(c, E_DIVIDE, shares_at(b),
         "dp.shares=whale: data rank %u gets none of the %lld samples of a microbatch; by speed it has %.2f",
         j, (long long)in->quanta, (double)in->DF[j] / speed * (double)in->quanta);
    diag_hint(c, "dp.shares=auto, which gives each rank one, or larger microbatches");
    return false;
  }
  return true;
}

// The same by Whale's Algorithm 1, with its names: by speed, then what does not fit goes where there is room.
static bool share_batch_whale(balance *b, choice_value *out, bool *refused) {
  const u32 n = strategy_shares_needed(b->s, CHOICE_dp_shares);
  data_ranks x;
  double fixed, each, most = 0;
  if (!data_ranks_of(b, &x)) return false;
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
  balance_loads loads = {0};
  const balance_fault fault = balance_whale_loads(b->a, &in, &loads);
  *refused = (fault == BALANCE_OK || fault == BALANCE_CAPS) && !whale_serves_all(b, &in, &loads);
  if (*refused || fault != BALANCE_OK) return false;
  double *share = NEWN(b->a, double, n);
  for (u32 j = 0; j < n; j++) share[j] = (double)loads.load[j];
  return shares_from(b, CHOICE_dp_shares, share, out);
}

// ---- shares of tensor splits ----------------------------------------------------------------------------
static bool splits_at(const balance *b, arena *tmp, u32 n, const u32 *shares) {
  prog *p = planner_source(b->pl);
  plan_axis axis = {.name = sym_of(p->c, "tp"), .size = n, .shares = shares};
  plan_mesh all = {.name = sym_of(p->c, "m"), .naxes = 1, .axis = {1}};
  plan pn = {.naxes = 1, .axes = &axis, .nmeshes = 1, .meshes = &all};
  return policy_split_tensors(b->pl, tmp, &pn, 1, b->s);
}

// Of every degree of a place.
static bool splits_so(void *arg, const u32 *v) {
  const balance *b = arg;
  strategy s = *b->s;
  prog *p = planner_source(b->pl);
  const u32 said = diag_count(p->c);
  arena *tmp = arena_new();
  bool ok = true;
  s.tp_shares = (choice_value){.nparts = strategy_shares_needed(&s, CHOICE_tp_shares), .part = v};
  for (u32 q = 0; ok && q < MAX(s.tp_stages.nparts, 1u); q++)
    ok = splits_at(b, tmp, strategy_tensor_at(&s, q), strategy_shares_at(tmp, &s, CHOICE_tp_shares, q));
  diag_truncate(p->c, said);
  arena_free(tmp);
  return ok;
}

static i64 time_of_parts(const void *pace, u32 rank, i64 parts) {
  return (i64)(((const double *)pace)[rank] * (double)parts);
}

u32 *auto_parts(arena *a, const double *pace, u32 n, bool (*may)(void *arg, const u32 *part), void *arg) {
  u32 *v = NEWN(a, u32, n), *kept = NULL;
  double best = 0;
  for (u32 sum = n; sum <= PARTS_MOST; sum++) {
    const i64 *share = auto_shares(a, sum, n, NULL, time_of_parts, pace);
    double worst = 0;
    i64 common = 0;
    for (u32 x = 0; x < n; x++) {
      v[x] = (u32)share[x], common = gcd_i64(common, share[x]);
      worst = MAX(worst, pace[x] * v[x] / sum);
    }
    if (common > 1 || (kept && worst >= best) || !may(arg, v)) continue;
    best = worst, kept = arena_dup(a, v, n * sizeof *v);
  }
  return kept;
}

static bool share_tensor(balance *b, choice_value *out) {
  const u32 n = strategy_shares_needed(b->s, CHOICE_tp_shares);
  u32 widest = 0; // a place of the highest degree
  const planner_key key = auto_key(b, KEPT_TENSOR, false);
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return shares_from(b, CHOICE_tp_shares, known, out);
  while (strategy_tensor_at(b->s, widest) < n) widest++;
  balance at = auto_at_place(b, widest);
  double *pace = ZNEWN(b->a, double, n);
  for (u32 x = 0; x < n; x++)
    for (u32 q = 0; q < b->s->pp.n; q++)
      for (u32 j = 0; j < at.s->dp.n; j++) {
        const linear *t = auto_times(&at, kind_at(&at, q, j, x));
        if (!t) return false;
        pace[x] = MAX(pace[x], auto_at(all_of(b, t), MAX(b->micro / at.s->dp.n, 1)));
      }
  const u32 *kept = auto_parts(b->a, pace, n, splits_so, b);
  double *share = NEWN(b->a, double, n);
  for (u32 x = 0; x < n; x++) share[x] = kept ? kept[x] : 1;
  planner_keep_times(b->pl, &key, share, n);
  return shares_from(b, CHOICE_tp_shares, share, out);
}

// ---- all together ---------------------------------------------------------------------------------------
static bool is_auto(choice_id id, choice_value x) { return choice_is(id, x, "auto"); }

balance auto_open(planner *pl, arena *a, const hybrid_opts *o, const strategy *s) {
  balance b = {.pl = pl, .a = a, .o = o, .m = cost_model_machine(o->k), .s = s};
  b.nbody = func_get(planner_source(pl), planner_source(pl)->main)->body.n;
  b.micro = policy_batch_extent(pl) / s->mb.n;
  b.time = ZNEWN(a, linear *, b.m->nkinds);
  return b;
}

balance auto_at_place(const balance *b, u32 place) {
  const u32 tp = strategy_tensor_at(b->s, place);
  if (tp == b->s->tp.n) return *b;
  strategy *s = arena_dup(b->a, b->s, sizeof *s);
  balance x = *b;
  s->dp.n = s->dp.n * s->tp.n / tp, s->tp.n = tp;
  x.s = s, x.time = ZNEWN(b->a, linear *, b->m->nkinds);
  return x;
}

static bool known_batch(const balance *b) {
  const strategy *s = b->s;
  const i64 batch = policy_batch_extent(b->pl);
  return batch > 0 && batch % s->mb.n == 0 && s->skip.n + strategy_ranks(s) <= b->m->nranks;
}

static bool several_kinds(const balance *b) { // of the devices that are used
  return !machine_one_kind(b->m, b->s->skip.n, b->s->dp.n * b->s->tp.n * b->s->pp.n);
}

bool policy_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed) {
  prog *p = planner_source(pl);
  if (o->s.replicas.nparts) return policy_replica_speeds(pl, a, o, speed);
  balance b = auto_open(pl, a, o, &o->s);
  const i64 even = MAX(b.micro / o->s.dp.n, 1);
  const u32 said = diag_count(p->c);
  bool known = known_batch(&b);
  for (u32 k = 0; k < b.m->nkinds; k++) speed[k] = 0;
  for (u32 r = 0; known && r < o->s.dp.n * o->s.tp.n * o->s.pp.n; r++) {
    const u32 kind = b.m->dev[o->s.skip.n + r].kind;
    if (speed[kind] > 0) continue;
    const linear *t = auto_times(&b, kind);
    known = t != NULL;
    if (known) speed[kind] = (double)even / auto_at(all_of(&b, t), even) / o->s.tp.n;
  }
  for (u32 k = 0; known && k < b.m->nkinds; k++) { // what the plan leaves out could work, too
    const linear *t = speed[k] > 0 ? NULL : auto_times(&b, k);
    if (t) speed[k] = (double)even / auto_at(all_of(&b, t), even) / o->s.tp.n;
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
             by_whale = choice_is(CHOICE_layers, s->layers, "whale"),
             layers = by_whale || is_auto(CHOICE_layers, s->layers);
  if (!tensor && !data && !layers) return true;
  if (!o->k) return no_machine(o, p, tensor ? CHOICE_tp_shares : data ? CHOICE_dp_shares : CHOICE_layers);
  if (s->replicas.nparts) return policy_replica_shares(pl, a, o, s);
  balance b = auto_open(pl, a, o, s);
  if (by_whale && !auto_whale_may(&b, o->said ? o->said->of[CHOICE_layers].at : (loc){0})) return false;
  const u32 said = diag_count(p->c);
  const choice_value cost = choice_default(CHOICE_layers);
  bool known = known_batch(&b), refused = false;
  if (data && known && !each_has_one(&b, s->dp_shares)) return false;
  if (layers) s->layers = cost;
  if (data) s->dp_shares = choice_default(CHOICE_dp_shares);
  if (tensor) s->tp_shares = choice_default(CHOICE_tp_shares);
  // What cannot be measured cannot be planned either: the plan says why
  const bool several = known && several_kinds(&b);
  if (tensor && known)
    known = share_tensor(&b, &s->tp_shares); // of one kind: as alike as what is split allows
  const bool uneven = known && b.micro % strategy_shares_needed(s, CHOICE_dp_shares);
  if (data && (several || uneven))
    known = whale     ? share_batch_whale(&b, &s->dp_shares, &refused)
            : several ? share_batch(&b, &s->dp_shares)
                      : share_alike(&b, &s->dp_shares);
  if (refused) return false;
  const bool one_stage = s->v.n == 1 && !s->schedule.path; // on each place
  if (data && !whale && layers && !by_whale && known && several && s->pp.n > 1 && one_stage)
    share_or_equal(&b, s);
  if (layers && known) (by_whale ? auto_whale_layers : auto_layers)(&b, s);
  diag_truncate(p->c, said);
  const u32 ranks = strategy_shares_needed(s, CHOICE_tp_shares);
  if (tensor && several && ranks > PARTS_MOST && o->said)
    diag(p->c, W_IGNORED, o->said->of[CHOICE_tp_shares].at,
         "tp.shares=auto changes nothing: it deals out %d parts at most, and there are %u tensor ranks",
         PARTS_MOST, ranks);
  return true;
}
