// layers_auto.c - layers=auto, and layers=whale: which layers every stage has, so that places of different speed end
// together.
//
// Idea: places in their order, with the least time of all microbatches: all stages once, and the longest one for each
// microbatch more. Of several stages on a place the sum is evened out. Times are those of balance.c. If these cuts do not
// fit, those of the same places, or of the same blocks in another order with the least longest stage, that take less memory
// (balance/balance.h has the proofs). What layers take is an estimate, so whether cuts fit is told by a simulation.
#include "plan/policy/balance.h"
#include <math.h>

// ---- layers ---------------------------------------------------------------------------------------------
// ps of the layers for one microbatch on the slowest rank of a block, with the degrees of the place. NULL:
// not known.
static const i64 *block_times(balance *b, const layer_list *l, u32 block, u32 place) {
  balance own = auto_at_place(b, place);
  const u32 dp = own.s->dp.n, tp = own.s->tp.n,
            *shares = strategy_shares_at(b->a, b->s, CHOICE_dp_shares, place);
  i64 sum = 0, *ps = ZNEWN(b->a, i64, l->n + 1);
  double *most = ZNEWN(b->a, double, b->nbody + 1);
  struct {
    u32 kind, share;
  } seen[64]; // ranks that are alike
  u32 nseen = 0;
  for (u32 j = 0; j < dp; j++) sum += shares ? shares[j] : 1;
  for (u32 j = 0; j < dp; j++)
    for (u32 t = 0; t < tp; t++) {
      const u32 kind = b->m->dev[b->s->skip.n + (block * dp + j) * tp + t].kind,
                share = shares ? shares[j] : 1;
      u32 k = 0;
      while (k < nseen && (seen[k].kind != kind || seen[k].share != share)) k++;
      if (k < nseen) continue;
      if (nseen < COUNT_OF(seen)) seen[nseen].kind = kind, seen[nseen++].share = share;
      const linear *of = auto_times(&own, kind);
      if (!of) return NULL;
      for (u32 i = 0; i < b->nbody; i++)
        most[i] = MAX(most[i], auto_at(of[i], shares ? b->micro * share / sum : b->micro / dp));
    }
  double done = 0; // layers are differences of rounded sums
  i64 before = 0;
  for (u32 i = 0; i < b->nbody; i++) {
    if (!auto_in_layer(l, i)) continue; // as long on every place
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

// ---- order and cuts -------------------------------------------------------------------------------------
enum {
  FULL = 95
}; // percent of a device's memory that is dealt out where nothing is simulated: what layers take is an estimate

static i64 usable_of_block(const balance *b, u32 block) {
  i64 least = INT64_MAX;
  if (b->o->memory_bytes > 0) return b->o->memory_bytes;
  const u32 ranks = b->s->dp.n * b->s->tp.n;
  for (u32 r = block * ranks; r < (block + 1) * ranks; r++)
    least = MIN(least, machine_kind_of(b->m, b->s->skip.n + r)->usable_bytes);
  return least;
}

static i64 memory_of_block(const balance *b, u32 block) {
  return b->o->memory_bytes < 0 ? INT64_MAX / 2 : usable_of_block(b, block) / 100 * FULL;
}

// Blocks of equal times and memory are one kind. Their number; kind[block].
static u32 kinds_of_blocks(const balance *b, const i64 *const *ps, u32 nlayers, const i64 *memory,
                           u32 *kind) {
  u32 n = 0;
  for (u32 q = 0; q < b->s->pp.n; q++) {
    u32 j = 0;
    while (j < q && (memory[j] != memory[q] || memcmp(ps[j], ps[q], nlayers * sizeof **ps))) j++;
    kind[q] = j < q ? kind[j] : n++;
  }
  return n;
}

static sched_ahead ahead_of(const balance *b) {
  return b->s->schedule.path ? AHEAD_OTHER : sched_row_of(b->s->schedule.n)->ahead;
}
// With so many under way, does a stage wait for one to come back?
static bool waits(const balance *b) {
  return b->o->train && (ahead_of(b) == AHEAD_DEPTH || ahead_of(b) == AHEAD_TWICE);
}

// The part of its memory that the fullest place needs, by estimates. order: the block of each place, from 1; NULL: its own.
static double part_needed(const balance *b, const layer_bytes *bytes, const u32 *alive, const i64 *memory,
                          const u32 *order, const u32 *end) {
  double most = 0;
  for (u32 q = 0, l = 0; q < b->s->pp.n; q++) {
    i64 fixed = 0, kept = 0, work = 0;
    for (; l < end[q]; l++)
      fixed += bytes->fixed[l], kept += bytes->kept[l], work = MAX(work, bytes->work[l]);
    most = MAX(most, (double)(fixed + kept * alive[q] + work) / (double)memory[order ? order[q] - 1 : q]);
  }
  return most;
}

// Which place every stage is on. False: the schedule's file does not fit.
static bool places_of_stages(const balance *b, u32 *place) {
  plan pn = {.train = b->o->train};
  const sched *file = NULL;
  hybrid_opts h = *b->o;
  h.no_order = true;
  if (b->s->schedule.path && !policy_schedule(b->pl, b->a, &pn, b->s, &h, (loc){0}, &file)) return false;
  for (u32 k = 0; k < b->s->pp.n * b->s->v.n; k++)
    place[k] =
        file ? file->at[k + policy_is_interlaced(b->s)].v[0]
             : sched_place(sched_row_of(b->s->schedule.n), b->s->pp.n, 0, k + policy_is_interlaced(b->s));
  return true;
}

// What cuts ask of the schedule.
typedef struct {
  const u32 *place; // by stage
  const u32 *alive; // microbatches under way, by place
} pipeline;

// False: it cannot be, so there is no plan.
static bool pipeline_of(const balance *b, pipeline *x) {
  u32 *place = NEWN(b->a, u32, b->s->pp.n * b->s->v.n);
  *x = (pipeline){place, policy_alive(b->pl, b->a, b->o, b->s)};
  return x->alive && places_of_stages(b, place);
}

// The best cuts for places in their order; with bytes, of those that fit the memory of blocks. False: times are not known, or
// there are none.
static bool cut_in_order(balance *b, const layer_list *l, const pipeline *x, const layer_bytes *bytes,
                         const i64 *memory, u32 *end) {
  const u32 n = b->s->pp.n;
  u32 *kind = NEWN(b->a, u32, n); // each by itself
  const i64 *const *ps = times_of_blocks(b, l), **once = NEWN(b->a, const i64 *, n);
  if (!ps) return false;
  for (u32 q = 0; q < n; q++) kind[q] = q, once[q] = auto_updates(b, l, q);
  balance_passes in = {.nlayers = l->n,
                       .nkinds = n,
                       .nplaces = n,
                       .nchunks = b->s->v.n,
                       .kind = kind,
                       .place = x->place,
                       .time_ps = ps,
                       .micro = b->s->mb.n};
  if (b->s->v.n == 1)
    in.send_ps = auto_sends(b, l), in.once_ps = once, in.ways = b->o->train ? 2 : 1, in.alive = x->alive,
    in.waits = waits(b);
  if (bytes)
    in.memory_bytes = memory, in.fixed_bytes = bytes->fixed, in.kept_bytes = bytes->kept,
    in.work_bytes = bytes->work;
  balance_chunked cut;
  if (balance_chunks(b->a, &in, &cut) != BALANCE_OK) return false;
  memcpy(end, cut.end, n * b->s->v.n * sizeof *end);
  return true;
}

// Of all that cuts depend on and auto_key leaves out: many schedules have the same.
static u64 pipeline_hash(const balance *b, const layer_list *l, const pipeline *x) {
  const u32 n = b->s->pp.n;
  const u64 h = hash_bytes(x->place, n * b->s->v.n * sizeof *x->place, l->wide != NULL);
  return waits(b) ? hash_bytes(x->alive, n * sizeof *x->alive, h) : h;
}

// By stage, one past its last layer, below 0: there are no such cuts. NULL: not known.
static const double *cuts_of(balance *b, const layer_list *l) {
  const u32 n = b->s->pp.n * b->s->v.n;
  pipeline x;
  if (!pipeline_of(b, &x)) return NULL;
  planner_key key = auto_key(b, KEPT_CUTS, false);
  key.number[1] = (i64)pipeline_hash(b, l, &x);
  const double *known = planner_kept_times(b->pl, &key);
  if (known) return known;
  if (!times_of_blocks(b, l)) return NULL;
  u32 *cut = NEWN(b->a, u32, n);
  const bool ok = cut_in_order(b, l, &x, NULL, NULL, cut);
  double *end = NEWN(b->a, double, n);
  for (u32 k = 0; k < n; k++) end[k] = ok ? (double)cut[k] : -1;
  planner_keep_times(b->pl, &key, end, n);
  return end;
}

// ps of all microbatches, without sends.
static double step_of(const balance *b, const i64 *const *ps, const u32 *end) {
  double sum = 0, most = 0;
  for (u32 q = 0, l = 0; q < b->s->pp.n; q++) {
    double t = 0;
    for (; l < end[q]; l++) t += (double)ps[q][l];
    sum += t, most = MAX(most, t);
  }
  return sum + (b->s->mb.n - 1) * most;
}

double auto_step(balance *b, const layer_list *l) {
  const u32 n = b->s->pp.n, ways = b->o->train ? 2 : 1;
  const double *cut = cuts_of(b, l);
  const i64 *const *ps = cut && cut[0] >= 0 ? times_of_blocks(b, l) : NULL;
  u32 *end = NEWN(b->a, u32, n);
  double sends = 0;
  if (!ps) return -1;
  for (u32 k = 0; k < n; k++) end[k] = (u32)cut[k];
  const i64 *const *send = auto_sends(b, l);
  for (u32 q = 0; q + 1 < n; q++) sends += (double)send[q][end[q]] * ways * auto_largest_part(b);
  return step_of(b, ps, end) + sends;
}

// Of all orders of blocks the cuts with the shortest longest stage that fit. False: there are none.
static bool cut_in_any_order(balance *b, const layer_list *l, const pipeline *x, const layer_bytes *bytes,
                             const i64 *memory, balance_cuts *cuts, u32 *kind) {
  const u32 n = b->s->pp.n;
  const i64 *const *ps = times_of_blocks(b, l);
  const u32 nkinds = kinds_of_blocks(b, ps, l->n, memory, kind);
  balance_devices *of = ZNEWN(b->a, balance_devices, nkinds);
  const i64 **time = NEWN(b->a, const i64 *, nkinds);
  u32 *by_depth = NEWN(b->a, u32, n);
  i64 work = 0;
  for (u32 q = 0; q < n; q++) by_depth[n - 1 - q] = x->alive[q];
  for (u32 k = 0; k < l->n; k++) work = MAX(work, bytes->work[k]);
  for (u32 q = 0; q < n; q++)
    of[kind[q]].count++, of[kind[q]].memory_bytes = MAX(memory[q] - work, 0), time[kind[q]] = ps[q];
  const balance_line in = {.nlayers = l->n,
                           .nkinds = nkinds,
                           .kind = of,
                           .time_ps = time,
                           .fixed_bytes = bytes->fixed,
                           .kept_bytes = bytes->kept,
                           .micro = b->s->mb.n,
                           .stages = n,
                           .alive = by_depth,
                           .aim = BALANCE_BOTTLENECK};
  return balance_stages(b->a, &in, cuts) == BALANCE_OK;
}

// Cuts, NULL: those of layers=cost; and the block of each place, from 1; NULL: its own.
typedef struct {
  const u32 *end, *order;
} cuts_on;

// The fastest cuts that fit so much memory, in the order of the machine or in another one. False: none do.
static bool cut_within(balance *b, const layer_list *l, const pipeline *x, const layer_bytes *bytes,
                       const i64 *memory, cuts_on *out) {
  const u32 n = b->s->pp.n;
  u32 *end = NEWN(b->a, u32, n), *kind = NEWN(b->a, u32, n);
  balance_cuts cuts;
  *out = (cuts_on){end, NULL};
  const bool ordered = cut_in_order(b, l, x, bytes, memory, end);
  if (!cut_in_any_order(b, l, x, bytes, memory, &cuts, kind)) return ordered;
  if (ordered && step_of(b, times_of_blocks(b, l), end) <= (double)cuts.total_ps) return true;
  u32 *order = NEWN(b->a, u32, n);
  bool *taken = ZNEWN(b->a, bool, n), same = true;
  for (u32 q = 0; q < n; q++) {
    u32 block = 0;
    while (taken[block] || kind[block] != cuts.kind[q]) block++;
    taken[block] = true, order[q] = block + 1, end[q] = cuts.end[q];
    same = same && block == q;
  }
  if (!same) out->order = order;
  return true;
}

// ---- what fits ------------------------------------------------------------------------------------------
// Cuts are tried from those without a limit down, each for STEP times the memory of the one before.
#define STEP 0.97
enum { CUTS_MOST = 24, HALVINGS = 6 };

typedef struct {
  balance *b;
  const layer_list *l;
  const pipeline *x;
  const layer_bytes *bytes;
  const i64 *memory; // by block
  double all;        // part_needed of the cuts without a limit
  cuts_on best;      // of those that were tried, the ones that
  double needs;      // need the least part of their memory
} fitting;

static strategy with_cuts(const balance *b, const layer_list *l, const cuts_on *x) {
  const u32 n = b->s->pp.n * b->s->v.n;
  strategy s = *b->s;
  if (!x->end) return s;
  u32 *part = NEWN(b->a, u32, n);
  for (u32 k = 0; k < n; k++) part[k] = auto_calls(l, x->end[k]) - (k ? auto_calls(l, x->end[k - 1]) : 0);
  s.layers = (choice_value){.nparts = n, .part = part};
  if (x->order) s.places = (choice_value){.nparts = n, .part = x->order};
  return s;
}

// The part of its memory that the fullest device needs under the strategy, above 1 where a host is short of memory; above
// 1e9: it cannot be.
static double simulated(const balance *b, const strategy *s) {
  const char *costs = cost_model_opts(b->o->k)->model;
  const bool distir = costs && !strcmp(costs, "distir"); // which counts bytes otherwise
  const sim_opts so = {
      .mode = SIM_FOLDED, .peak_only = true, .bytes = distir ? SIM_BYTES_DISTIR : SIM_BYTES_HEDDLE};
  arena *tmp = arena_new();
  hybrid_opts h = *b->o;
  h.s = *s, h.said = NULL, h.no_order = true;
  const plan *pn = policy_hybrid(b->pl, tmp, &h);
  sim_pipe_result r;
  double part = 2e9;
  if (pn && ((!distir && plan_has_probe(pn) && plan_price_stages(b->pl, pn, h.k, tmp, &so, &r)) ||
             plan_price_whole(b->pl, pn, h.k, tmp, &so, &r))) {
    const i64 over = sim_lacks(&r, h.memory_bytes),
              have = h.memory_bytes > 0 ? h.memory_bytes : r.peak_bytes - MAX(over, 0);
    part = 1 + (double)over / (double)MAX(have, 1);
    if (r.host_over_bytes > 0) part = MAX(part, 1) * (1 + 1e-6);
  }
  arena_free(tmp);
  return part;
}

// Do these fit?
static bool try_cuts(fitting *f, const cuts_on *x, double *needs) {
  const strategy s = with_cuts(f->b, f->l, x);
  *needs = simulated(f->b, &s);
  if (*needs < f->needs) f->best = *x, f->needs = *needs;
  return *needs <= 1;
}

static const i64 *part_of_memory(const fitting *f, double part) {
  i64 *memory = NEWN(f->b->a, i64, f->b->s->pp.n);
  for (u32 q = 0; q < f->b->s->pp.n; q++) memory[q] = (i64)(part * (double)f->memory[q]);
  return memory;
}

// The cuts that need the least memory by estimates, below `part` of it.
static bool least_cuts(const fitting *f, double none, double part, cuts_on *out) {
  bool any = false;
  for (u32 k = 0; k < HALVINGS; k++) {
    const double mid = (none + part) / 2;
    cuts_on x;
    if (cut_within(f->b, f->l, f->x, f->bytes, part_of_memory(f, mid), &x))
      *out = x, any = true, part = mid;
    else
      none = mid;
  }
  return any;
}

// From cuts that do not fit down to the first that do, at last those of layers=cost. Where much is short several are passed over: memory is taken to
// go with its estimate. The parts of memory that are asked for are those of the cuts without a limit, whatever it is.
static bool step_down(fitting *f, const cuts_on *from, double needs) {
  const balance *b = f->b;
  cuts_on x = *from;
  double part = f->all, none = 0;
  for (u32 k = 0; k < CUTS_MOST; k++) {
    const double own = part_needed(b, f->bytes, f->x->alive, f->memory, x.order, x.end);
    const double most = MIN(own * (1 - 1e-9), needs < 1e9 ? own / needs / STEP : own);
    while (part > most) part *= STEP;
    if (!cut_within(f->b, f->l, f->x, f->bytes, part_of_memory(f, part), &x)) {
      none = part;
      break;
    }
    if (try_cuts(f, &x, &needs)) return true;
  }
  const double own = part_needed(b, f->bytes, f->x->alive, f->memory, f->best.order, f->best.end);
  return (least_cuts(f, none, own, &x) && try_cuts(f, &x, &needs)) || try_cuts(f, &(cuts_on){0}, &needs);
}

// Which cuts are looked at first: those without a limit if they may fit; else the fastest that do by estimates, or at
// least by what is known to be there. False: none can fit.
static bool first_cuts(fitting *f, const u32 *end) {
  balance *b = f->b;
  const layer_bytes least = auto_least_bytes_of_layers(b, f->l);
  f->best = (cuts_on){end, NULL};
  f->all = part_needed(b, f->bytes, f->x->alive, f->memory, NULL, end);
  if (part_needed(b, &least, f->x->alive, f->memory, NULL, end) <= 1) return true;
  double left = 0;
  for (u32 q = 0; q < b->s->pp.n; q++) left += (double)f->memory[q];
  for (u32 k = 0; k < f->l->n; k++) left -= (double)least.fixed[k];
  if (left < 0) return false;
  cuts_on x;
  if (!cut_within(b, f->l, f->x, f->bytes, f->memory, &x) &&
      !cut_within(b, f->l, f->x, &least, f->memory, &x))
    return false;
  f->best = x;
  return true;
}

// What `end`, the fastest cuts, are to be replaced by; themselves if they fit, or none do.
static cuts_on cuts_that_fit(balance *b, const layer_list *l, const u32 *end) {
  const cuts_on own = {end, NULL};
  const u32 n = b->s->pp.n;
  const layer_bytes bytes = auto_bytes_of_layers(b, l);
  i64 *memory = NEWN(b->a, i64, n);
  pipeline x;
  if (b->o->memory_bytes < 0 || !pipeline_of(b, &x)) return own;
  const bool guess = b->o->cuts == CUTS_BY_ESTIMATE;
  for (u32 q = 0; q < n; q++) memory[q] = guess ? memory_of_block(b, q) : usable_of_block(b, q);
  fitting f = {.b = b, .l = l, .x = &x, .bytes = &bytes, .memory = memory, .needs = INFINITY};
  cuts_on least = own;
  if (guess) {
    const bool fits = part_needed(b, &bytes, x.alive, memory, NULL, end) <= 1;
    return !fits && cut_within(b, l, &x, &bytes, memory, &least) ? least : own;
  }
  double needs;
  const bool some = first_cuts(&f, end);
  if (b->o->none_fit) *b->o->none_fit = !some;
  if (!some || b->o->cuts == CUTS_TO_TRY) return f.best;
  const cuts_on first = f.best;
  if (!try_cuts(&f, &first, &needs)) step_down(&f, &first, needs);
  return f.best;
}

// ---- auto -----------------------------------------------------------------------------------------------
bool auto_layers(balance *b, strategy *s) {
  const u32 n = b->s->pp.n * b->s->v.n;
  const layer_list l = auto_layers_of(b, true);
  if (l.n < n) return true; // by FLOPs, which cuts between single matmuls too
  const double *cut = cuts_of(b, &l);
  if (!cut) return false;
  if (cut[0] < 0) return true;
  u32 *end = NEWN(b->a, u32, n);
  for (u32 k = 0; k < n; k++) end[k] = (u32)cut[k];
  cuts_on cuts = {end, NULL};
  if (b->s->v.n == 1 && !b->s->places.nparts && !b->s->tp_stages.nparts)
    cuts = cuts_that_fit(b, &l, end); // strategy_tries_cuts
  *s = with_cuts(b, &l, &cuts);
  return true;
}

// ---- Whale's policy -------------------------------------------------------------------------------------
bool auto_whale_may(const balance *b, loc at) {
  const layer_list l = auto_layers_of(b, false);
  if (l.n >= b->s->pp.n) return true;
  prog *p = planner_source(b->pl);
  diag(p->c, E_DIVIDE, at, "layers=whale: %u stages, but the model has %u repeated layers", b->s->pp.n, l.n);
  diag_hint(p->c, "layers=cost distributes single matmuls too%s", l.n > 1 ? ", or use fewer stages" : "");
  return false;
}

enum { ALL = 1 << 30, NO_LIMIT = 1 << 16 }; // all work, and the speed of the fastest block; times its memory

static const i64 *work_of_layers(const balance *b, const layer_list *l) {
  const bool again = b->o->train && choice_is(CHOICE_recompute, b->s->recompute, "full");
  const double *w = policy_work(b->pl, b->a, again);
  double all = 1;
  i64 *work = ZNEWN(b->a, i64, l->n + 1);
  for (u32 i = 0; i < b->nbody; i++) all += w[i];
  for (u32 i = 0; i < b->nbody; i++) work[l->of[i]] += (i64)(w[i] / all * ALL);
  return work;
}

// With the names of the paper: a block of ranks is a device, as fast as it computes the whole model, with the memory of
// its smallest. Where that is short whatever the cuts, these are the last ones tried: the plan says that it does not fit.
bool auto_whale_layers(balance *b, strategy *s) {
  const u32 n = b->s->pp.n;
  const layer_list l = auto_layers_of(b, false);
  const i64 *const *ps = times_of_blocks(b, &l);
  if (!ps) return false;
  i64 *DF = ZNEWN(b->a, i64, n), *DM = NEWN(b->a, i64, n), least = INT64_MAX;
  for (u32 q = 0; q < n; q++) {
    for (u32 k = 0; k < l.n; k++) DF[q] += ps[q][k];
    least = MIN(least, MAX(DF[q], 1));
    DM[q] = b->o->memory_bytes < 0 ? usable_of_block(b, q) * NO_LIMIT : memory_of_block(b, q);
  }
  for (u32 q = 0; q < n; q++) DF[q] = MAX((i64)((double)least / (double)MAX(DF[q], 1) * ALL), 1);
  const layer_bytes bytes = auto_bytes_of_layers(b, &l);
  const balance_whale_line in = {.n = n,
                                 .DF = DF,
                                 .DM = DM,
                                 .nlayers = l.n,
                                 .micro = b->s->mb.n,
                                 .flop = work_of_layers(b, &l),
                                 .fixed_bytes = bytes.fixed,
                                 .kept_bytes = bytes.kept};
  balance_whale_cuts cuts;
  if (balance_whale_stages(b->a, &in, &cuts) == BALANCE_STAGES) return false;
  u32 *part = NEWN(b->a, u32, n), *order = NEWN(b->a, u32, n);
  bool same = true;
  for (u32 q = 0; q < n; q++) {
    part[q] = cuts.end[q] - (q ? cuts.end[q - 1] : 0);
    order[q] = cuts.device[q] + 1;
    same = same && cuts.device[q] == q;
  }
  s->layers = (choice_value){.nparts = n, .part = part};
  if (!same) s->places = (choice_value){.nparts = n, .part = order};
  return true;
}
