// balance.c - what `auto` stands for: shares of the batch, of tensor splits, and layers, so that devices of different
// speed end together. Not how shares are applied (shard.c, stages.c).
//
// Idea: how long a microbatch keeps a kind of device busy is measured, by instruction of main, in a plan of one stage on
// ranks of that kind alone (plan_busy), at two sizes of the microbatch: in between and beyond time is taken to be
// linear in samples. The rest is arithmetic:
//
// - dp.shares: samples go one by one to the data rank that ends first with one more; a rank is as slow as its slowest
//   place. That is the least possible maximum, since time grows with samples.
// - layers: consecutive ones for places in their order, all ways looked at: the least time of the slowest stage, and of
//   those ways the least sum. Exact for the times given.
// - tp.shares: parts of a sum that the model's splits allow, by the time of the rank's kind; of sums up to PARTS_MOST
//   the one whose slowest rank ends first.
//
// Devices of one kind get equal shares. Ranks of a place that are of several kinds are as slow as the slowest.
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
  linear **time; // [kind]: by instruction of main; NULL: not asked for yet
} balance;

static u32 kind_at(const balance *b, u32 place, u32 data, u32 tensor) {
  return b->m->dev[(place * b->s->dp.n + data) * b->s->tp.n + tensor].kind;
}

// ---- times --------------------------------------------------------------------------------------------------
// So many ranks of the kind, in order; false: there are fewer.
static bool ranks_of_kind(const balance *b, u32 kind, u32 n, u32 *out) {
  u32 k = 0;
  for (u32 r = 0; r < b->m->nranks && k < n; r++)
    if (b->m->dev[r].kind == kind) out[k++] = r;
  return k == n;
}

// Busy ps of main's instructions for one microbatch of so many samples on tp ranks of the kind; on one of them that part of
// all the work, without communication. NULL: not known.
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

static const linear *times_of(balance *b, u32 kind) {
  if (b->time[kind]) return b->time[kind];
  const i64 batch = b->micro * b->s->mb.n, even = divisor_below(batch, b->micro / b->s->dp.n),
            less = divisor_below(batch, even / 2);
  const double *at[2] = {measure(b, kind, batch, even), NULL};
  if (!at[0] || (less < even && !(at[1] = measure(b, kind, batch, less)))) return NULL;
  linear *t = ZNEWN(b->a, linear, b->nbody + 1);
  for (u32 i = 0; i < b->nbody; i++) {
    const double each = less < even ? (at[0][i] - at[1][i]) / (double)(even - less) : at[0][i] / (double)even;
    t[i].each = MIN(MAX(each, 0), at[0][i] / (double)even);
    t[i].fixed = at[0][i] - t[i].each * (double)even;
  }
  return b->time[kind] = t;
}

static linear all_of(const balance *b, const linear *t) {
  linear sum = {0};
  for (u32 i = 0; i < b->nbody; i++) sum.fixed += t[i].fixed, sum.each += t[i].each;
  return sum;
}

static double at(linear t, i64 samples) { return t.fixed + t.each * (double)samples; }

// ---- shares of the batch --------------------------------------------------------------------------------------
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

static bool share_batch(balance *b, choice_value *out) {
  const u32 n = b->s->dp.n;
  double *next = NEWN(b->a, double, n); // with one sample more
  u32 *v = NEWN(b->a, u32, n);
  data_ranks x;
  if (b->micro < n || !data_ranks_of(b, &x)) return false;
  for (u32 j = 0; j < n; j++) v[j] = 1, next[j] = data_rank_time(&x, j, 2);
  for (i64 left = b->micro - n; left > 0; left--) {
    u32 best = 0;
    for (u32 j = 1; j < n; j++)
      if (next[j] < next[best]) best = j;
    v[best]++;
    next[best] = data_rank_time(&x, best, v[best] + 1);
  }
  *out = all_equal(v, n) ? choice_default(CHOICE_dp_shares) : parts(b, v, n);
  return true;
}

// ---- shares of tensor splits ------------------------------------------------------------------------------------
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

static bool share_tensor(balance *b, choice_value *out) {
  const u32 n = b->s->tp.n;
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
  *out = !kept || all_equal(kept, n) ? choice_default(CHOICE_tp_shares) : parts(b, kept, n);
  return true;
}

// ---- layers -------------------------------------------------------------------------------------------------------
// Times of layers on places: a layer is a call of main and what stands before it; the last one has what follows, too.
typedef struct {
  u32 nlayers, stages, places;
  double **before; // [place][layers before]
  u32 *place;      // of every stage
} lines;

// Which place every stage is on: a file says it, else they go round. False: the file does not fit.
static bool places_of(const balance *b, lines *x) {
  plan pn = {.train = b->o->train};
  const sched *file = NULL;
  hybrid_opts h = *b->o;
  h.no_order = true;
  x->place = NEWN(b->a, u32, x->stages);
  if (b->s->schedule.path && !policy_schedule(b->pl, b->a, &pn, b->s, &h, (loc){0}, &file)) return false;
  for (u32 k = 0; k < x->stages; k++) x->place[k] = file ? file->at[k].v[0] : k % x->places;
  return true;
}

static bool lines_of(balance *b, lines *x) {
  const func_info *m = func_get(planner_source(b->pl), planner_source(b->pl)->main);
  const u32 dp = b->s->dp.n, *shares = b->s->dp_shares.nparts ? b->s->dp_shares.part : NULL;
  i64 sum = 0;
  for (u32 j = 0; j < dp; j++) sum += shares ? shares[j] : 1;
  x->nlayers = 0, x->places = b->s->pp.n, x->stages = b->s->pp.n * b->s->v.n;
  for (u32 i = 0; i < m->body.n; i++) x->nlayers += m->body.v[i].op == OP_call;
  x->before = NEWN(b->a, double *, x->places);
  for (u32 q = 0; q < x->places; q++) {
    double *at_layer = x->before[q] = ZNEWN(b->a, double, x->nlayers + 2);
    double *ps = ZNEWN(b->a, double, b->nbody + 1);
    for (u32 j = 0; j < dp; j++)
      for (u32 t = 0; t < b->s->tp.n; t++) {
        const linear *of = times_of(b, kind_at(b, q, j, t));
        if (!of) return false;
        for (u32 i = 0; i < b->nbody; i++)
          ps[i] = MAX(ps[i], at(of[i], b->micro * (shares ? shares[j] : 1) / sum));
      }
    for (u32 i = 0, l = 0; i < m->body.n; i++) {
      at_layer[MIN(l + 1, x->nlayers)] += ps[i];
      l += m->body.v[i].op == OP_call;
    }
    for (u32 l = 1; l <= x->nlayers; l++) at_layer[l] += at_layer[l - 1];
  }
  return true;
}

static double stage_time(const lines *x, u32 stage, u32 from, u32 to) {
  const double *before = x->before[x->place[stage]];
  return before[to] - before[from];
}

// The least time of the slowest stage. Every stage has a layer at least, so it may be worse to give a stage more than
// less, if the next layer is a long one for whoever comes next: all ways are looked at.
static double least_slowest(const lines *x, arena *a) {
  double *least = NEWN(a, double, x->nlayers + 1), *next = NEWN(a, double, x->nlayers + 1);
  for (u32 l = 0; l <= x->nlayers; l++) least[l] = l ? stage_time(x, 0, 0, l) : INFINITY;
  for (u32 s = 1; s < x->stages; s++) {
    for (u32 l = 0; l <= x->nlayers; l++) {
      next[l] = INFINITY;
      for (u32 k = l; k-- > 0 && stage_time(x, s, k, l) < next[l];)
        next[l] = MIN(next[l], MAX(least[k], stage_time(x, s, k, l)));
    }
    memcpy(least, next, (x->nlayers + 1) * sizeof *least);
  }
  return least[x->nlayers];
}

// Of those the one that a microbatch passes first: with the least sum.
static void share_out(const lines *x, arena *a, double most, u32 *part) {
  const u32 n = x->nlayers + 1;
  double *sum = NEWN(a, double, (size_t)x->stages *n);
  u32 *from = ZNEWN(a, u32, (size_t)x->stages * n);
  for (u32 s = 0; s < x->stages; s++)
    for (u32 l = 0; l < n; l++) {
      double *to = &sum[s * n + l];
      *to = INFINITY;
      for (u32 k = l; k-- > 0;) {
        const double t = stage_time(x, s, k, l), all = t + (s ? sum[(s - 1) * n + k] : k ? INFINITY : 0);
        if (t > most * (1 + 1e-12)) break;
        if (all < *to * (1 - 1e-9) || (isinf(*to) && all < *to)) *to = all, from[s * n + l] = k;
      }
    }
  for (u32 s = x->stages, l = x->nlayers; s-- > 0;) part[s] = l - from[s * n + l], l = from[s * n + l];
}

static bool share_layers(balance *b, choice_value *out) {
  lines x;
  if (!lines_of(b, &x) || !places_of(b, &x)) return false;
  u32 *part = NEWN(b->a, u32, x.stages);
  if (x.nlayers < x.stages) {
    *out = choice_default(CHOICE_layers);
    return true;
  }
  share_out(&x, b->a, least_slowest(&x, b->a), part);
  *out = (choice_value){.nparts = x.stages, .part = part};
  return true;
}

// ---- all together ---------------------------------------------------------------------------------------------------
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
  return batch > 0 && batch % s->mb.n == 0 && (u64)s->dp.n * s->tp.n * s->pp.n <= b->m->nranks;
}

static bool several_kinds(const balance *b) { // of the devices that are used
  for (u32 r = 1; r < b->s->dp.n * b->s->tp.n * b->s->pp.n; r++)
    if (b->m->dev[r].kind != b->m->dev[0].kind) return true;
  return false;
}

bool policy_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed) {
  prog *p = planner_source(pl);
  balance b = balance_of(pl, a, o, &o->s);
  const i64 even = MAX(b.micro / o->s.dp.n, 1);
  const u32 said = diag_count(p->c);
  bool known = known_batch(&b);
  for (u32 k = 0; k < b.m->nkinds; k++) speed[k] = 0;
  for (u32 r = 0; known && r < o->s.dp.n * o->s.tp.n * o->s.pp.n; r++) {
    const u32 kind = b.m->dev[r].kind;
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
  diag(p->c, E_STRATEGY, o->said ? o->said->of[id].at : (loc){0}, "%s=auto needs a machine", name);
  diag_hint(p->c, "add --machine, or say the parts: %s=%s", name, id == CHOICE_layers ? "10/12/12/6" : "3/1");
  return false;
}

bool policy_balance(planner *pl, arena *a, const hybrid_opts *o, strategy *s) {
  prog *p = planner_source(pl);
  const bool tensor = is_auto(CHOICE_tp_shares, s->tp_shares), data = is_auto(CHOICE_dp_shares, s->dp_shares),
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
  if (data && known && several) known = share_batch(&b, &s->dp_shares);
  if (layers && known) share_layers(&b, &s->layers);
  diag_truncate(p->c, said);
  return true;
}
