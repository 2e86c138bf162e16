// splits_walk.c - the stochastic solver of splits.h: Markov chains over assignments, for problems whose cuts have too many
// states.
//
// Idea: what an assignment costs is a sum over operators and tensors, so a change is priced by the tensors that it touches.
// One change in four is of an operator and of neighbours that then agree with it, since a single operator that differs pays for two
// conversions. A chain begins at every start, cools down several times from the best that it has seen, and ends where no single change
// helps. Of named operators the best assignment is kept for every choice that was seen; those that matter get chains of
// their own, in which the named options stay.
#include "plan/splits_live.h"
#include <math.h>
#include <stdlib.h>

enum { BEAM = 64, COOLINGS = 4, SAMPLES = 64, BLOCK = 12, EVERY = 32, NAMED = 1024, CHAINS = 48 };
static const double COLDEST = 1e-4; // of the first temperature

typedef struct {
  u64 hash; // of its named options
  i64 time_ps, bytes;
  double cost;
  u16 *option;
} record;
typedef struct {
  u32 at; // variable or tensor
  u16 was;
  step cost;
} undo;
typedef struct {
  const splits_problem *p;
  const splits_limits *l;
  arena *a;
  u64 rng, proposals; // proposals: so many so far
  splits_readers readers;
  // Variables: operators that choose the same option
  u32 nvars, *var, *begin, *member; // var: by operator
  u32 nfree, *free;                 // those that have a choice, and may be changed
  // The assignment
  u16 *option; // by operator
  step *cost;  // by tensor
  i64 time_ps, bytes;
  u32 impossible; // tensors without a way
  double penalty; // for each of them
  // The change that is tried
  u32 turn, *var_turn, *tensor_turn;
  VEC(undo) vars, tensors;
  // What is kept
  VEC(record) best;
  hmap seen;
  u32 least; // the best of `best`
} walk;

static double cost_of(const walk *w, i64 time_ps, i64 bytes) {
  return (double)time_ps + w->l->ps_per_byte * (double)bytes;
}
static double cost_now(const walk *w) {
  return cost_of(w, w->time_ps, w->bytes) + w->penalty * w->impossible;
}
static u32 noptions(const walk *w, u32 var) { return w->p->op[w->member[w->begin[var]]].noptions; }
static u16 option_of(const walk *w, u32 var) { return w->option[w->member[w->begin[var]]]; }
static u32 below(walk *w, u32 n) { return (u32)(rng_next(&w->rng) % n); }

// ---- variables ------------------------------------------------------------------------------------------------
static void find_vars(walk *w) {
  const splits_problem *p = w->p;
  w->var = NEWN(w->a, u32, p->nops + 1), w->begin = ZNEWN(w->a, u32, p->nops + 2);
  for (u32 i = 0; i < p->nops; i++) {
    w->var[i] = ~0u;
    for (u32 j = 0; j < i && p->op[i].tie && w->var[i] == ~0u; j++)
      if (p->op[j].tie == p->op[i].tie) w->var[i] = w->var[j];
    if (w->var[i] == ~0u) w->var[i] = w->nvars++;
  }
  w->member = NEWN(w->a, u32, p->nops + 1), w->free = NEWN(w->a, u32, p->nops + 1);
  u32 n = 0;
  for (u32 v = 0; v < w->nvars; v++) {
    w->begin[v] = n;
    for (u32 i = 0; i < p->nops; i++)
      if (w->var[i] == v) w->member[n++] = i;
  }
  w->begin[w->nvars] = n;
}

static bool is_named(const walk *w, u32 var) {
  for (u32 k = w->begin[var]; k < w->begin[var + 1]; k++)
    if (w->p->op[w->member[k]].named) return true;
  return false;
}

static void find_free(walk *w, bool named) {
  w->nfree = 0;
  for (u32 v = 0; v < w->nvars; v++)
    if (noptions(w, v) > 1 && (named || !is_named(w, v))) w->free[w->nfree++] = v;
}

// ---- the assignment, and changes of it ------------------------------------------------------------------------
static void add_cost(walk *w, const step *s, int sign) {
  w->time_ps += sign * s->time_ps, w->bytes += sign * s->bytes;
  w->impossible += (u32)(sign * !s->possible);
}

static void set_all(walk *w, const u16 *option) {
  const splits_problem *p = w->p;
  memmove(w->option, option, sizeof *option * p->nops);
  w->time_ps = w->bytes = 0, w->impossible = 0;
  for (u32 i = 0; i < p->nops; i++)
    w->time_ps += p->op[i].option[option[i]].time_ps, w->bytes += p->op[i].option[option[i]].bytes;
  for (u32 t = 0; t < p->ntensors; t++) {
    w->cost[t] = splits_tensor_cost(p, &w->readers, t, w->option);
    add_cost(w, &w->cost[t], 1);
  }
}

static void touch(walk *w, u32 tensor) {
  if (w->tensor_turn[tensor] == w->turn) return;
  w->tensor_turn[tensor] = w->turn;
  *vec_push(w->a, &w->tensors) = (undo){.at = tensor, .cost = w->cost[tensor]};
}

static void put(walk *w, u32 var, u16 option) {
  for (u32 k = w->begin[var]; k < w->begin[var + 1]; k++) {
    const splits_op *x = &w->p->op[w->member[k]];
    const splits_option *was = &x->option[w->option[w->member[k]]], *now = &x->option[option];
    w->time_ps += now->time_ps - was->time_ps, w->bytes += now->bytes - was->bytes;
    w->option[w->member[k]] = option;
    for (u32 j = 0; j < x->nopd; j++) touch(w, x->opd[j]);
    for (u32 j = 0; j < x->nres; j++) touch(w, x->res[j]);
  }
}

static void begin_change(walk *w) { w->turn++, w->vars.n = w->tensors.n = 0; }

static void change(walk *w, u32 var, u16 option) {
  w->var_turn[var] = w->turn;
  *vec_push(w->a, &w->vars) = (undo){.at = var, .was = option_of(w, var)};
  put(w, var, option);
}

// The tensors that the change touches, anew.
static void end_change(walk *w) {
  for (u32 k = 0; k < w->tensors.n; k++) {
    step *s = &w->cost[w->tensors.v[k].at];
    add_cost(w, s, -1);
    *s = splits_tensor_cost(w->p, &w->readers, w->tensors.v[k].at, w->option);
    add_cost(w, s, 1);
  }
  w->proposals++;
}

static void take_back(walk *w) {
  const u32 n = w->tensors.n;
  for (u32 k = 0; k < n; k++) {
    const undo *u = &w->tensors.v[k];
    add_cost(w, &w->cost[u->at], -1), add_cost(w, &u->cost, 1);
    w->cost[u->at] = u->cost;
  }
  for (u32 k = 0; k < w->vars.n; k++) put(w, w->vars.v[k].at, w->vars.v[k].was);
}

static void keep(walk *w);
static void accept(walk *w) {
  if (w->l->moved) w->l->moved(w->l->arg, w->option, w->time_ps, w->bytes, !w->impossible);
  keep(w);
}

// ---- what is kept ---------------------------------------------------------------------------------------------
static bool same_named(const walk *w, const u16 *x, const u16 *y) {
  for (u32 i = 0; i < w->p->nops; i++)
    if (w->p->op[i].named && x[i] != y[i]) return false;
  return true;
}

static void keep(walk *w) {
  const splits_problem *p = w->p;
  if (w->impossible) return;
  u64 h = 0;
  for (u32 i = 0; i < p->nops; i++)
    if (p->op[i].named) h = (h ^ (u64)(w->option[i] + 1)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  const double cost = cost_of(w, w->time_ps, w->bytes);
  record *r = NULL;
  for (u32 it = 0, k; hmap_next(&w->seen, h, &it, &k) && !r;)
    if (same_named(w, w->best.v[k].option, w->option)) r = &w->best.v[k];
  if (r && (cost > r->cost || (cost >= r->cost && w->bytes >= r->bytes))) return;
  if (!r) {
    hmap_add(w->a, &w->seen, h, w->best.n);
    r = vec_push(w->a, &w->best);
    *r = (record){.hash = h, .option = NEWN(w->a, u16, p->nops + 1)};
  }
  r->time_ps = w->time_ps, r->bytes = w->bytes, r->cost = cost;
  memcpy(r->option, w->option, sizeof *r->option * p->nops);
  const record *least = &w->best.v[w->least];
  if (cost < least->cost || (cost <= least->cost && r->bytes < least->bytes)) w->least = (u32)(r - w->best.v);
}

// ---- proposals ------------------------------------------------------------------------------------------------
// How tensor `t` lies at operator i under its option; whether it reads it or makes it.
static u8 state_at(const walk *w, u32 i, u32 option, u32 t) {
  const splits_op *x = &w->p->op[i];
  for (u32 k = 0; k < x->nres; k++)
    if (x->res[k] == t) return x->option[option].made[k];
  for (u32 k = 0; k < x->nopd; k++)
    if (x->opd[k] == t) return x->option[option].need[k];
  return LIES_NONE;
}

// Changes operator i so that the tensor lies there in that state, to one of the options that have it. False: none has.
static bool agree(walk *w, u32 i, u32 t, u8 lies) {
  const u32 var = w->var[i], n = w->p->op[i].noptions, from = below(w, n);
  if (w->var_turn[var] == w->turn || n < 2 || state_at(w, i, w->option[i], t) == lies) return false;
  for (u32 k = 0; k < n; k++) {
    const u32 o = (from + k) % n;
    if (state_at(w, i, o, t) != lies) continue;
    change(w, var, (u16)o);
    return true;
  }
  return false;
}

// Neighbours of what was changed, and theirs, up to a length.
static void spread(walk *w, bool named) {
  const u32 most = 2 + below(w, BLOCK);
  for (u32 k = 0; k < w->vars.n && w->vars.n < most; k++) {
    const u32 i = w->member[w->begin[w->vars.v[k].at]];
    const splits_op *x = &w->p->op[i];
    for (u32 j = 0; j < x->nopd + x->nres && w->vars.n < most; j++) {
      const u32 t = j < x->nopd ? x->opd[j] : x->res[j - x->nopd];
      const u8 lies = state_at(w, i, w->option[i], t);
      if (below(w, 4) == 0) continue;
      const u32 maker = w->readers.maker[t];
      if (maker && (named || !is_named(w, w->var[maker - 1]))) agree(w, maker - 1, t, lies);
      for (u32 q = w->readers.begin[t]; q < w->readers.begin[t + 1] && w->vars.n < most; q++)
        if (named || !is_named(w, w->var[w->readers.reader[q]])) agree(w, w->readers.reader[q], t, lies);
    }
  }
}

static void propose(walk *w, bool named) {
  const u32 var = w->free[below(w, w->nfree)], n = noptions(w, var);
  begin_change(w);
  change(w, var, (u16)((option_of(w, var) + 1 + below(w, n - 1)) % n));
  if (below(w, 4) == 0) spread(w, named);
  end_change(w);
}

// ---- chains ---------------------------------------------------------------------------------------------------
// Single changes, as long as one helps.
static void descend(walk *w) {
  for (bool better = true; better;) {
    better = false;
    for (u32 k = 0; k < w->nfree; k++)
      for (u32 o = 0; o < noptions(w, w->free[k]); o++) {
        const double was = cost_now(w);
        if (o == option_of(w, w->free[k])) continue;
        begin_change(w);
        change(w, w->free[k], (u16)o);
        end_change(w);
        if (cost_now(w) < was)
          better = true, accept(w);
        else
          take_back(w);
      }
  }
}

// What changes cost here on the average, up or down: where a chain begins to cool.
static double temperature(walk *w, bool named) {
  double sum = 0;
  w->penalty = 0;
  for (u32 k = 0; k < SAMPLES; k++) {
    const double was = cost_now(w);
    propose(w, named);
    sum += fabs(cost_now(w) - was);
    take_back(w);
  }
  return MAX(sum / SAMPLES, 1);
}

static void chain(walk *w, const u16 *start, u64 proposals, bool named) {
  set_all(w, start);
  find_free(w, named);
  keep(w);
  if (!w->nfree) return;
  const double hot = temperature(w, named);
  w->penalty = 4 * hot;
  double here = cost_now(w), best = here;
  u16 *of = NEWN(w->a, u16, w->p->nops + 1);
  memcpy(of, w->option, sizeof *of * w->p->nops);
  const u64 each = MAX(proposals / COOLINGS, 1);
  const double cooler = pow(COLDEST, (double)EVERY / (double)each);
  for (u32 round = 0; round < COOLINGS; round++) {
    double t = hot / (1 << round); // later ones stay nearer to the best
    for (u64 k = 0; k < each; k++) {
      if (k % EVERY == EVERY - 1) t *= cooler;
      propose(w, named);
      const double now = cost_now(w);
      if (now > here && rng_unit(&w->rng) >= exp((here - now) / t)) {
        take_back(w);
        continue;
      }
      here = now;
      accept(w);
      if (here < best) best = here, memcpy(of, w->option, sizeof *of * w->p->nops);
    }
    set_all(w, of);
    here = best;
  }
  descend(w);
}

// ---- starts ---------------------------------------------------------------------------------------------------
// In every operator the option with the most whole operands and results.
static void start_whole(const walk *w, u16 *option) {
  for (u32 v = 0; v < w->nvars; v++) {
    const splits_op *x = &w->p->op[w->member[w->begin[v]]];
    u32 most = 0, pick = 0;
    for (u32 o = 0; o < x->noptions; o++) {
      u32 n = 1;
      for (u32 k = 0; k < x->nopd; k++) n += x->option[o].need[k] == LIES_WHOLE;
      for (u32 k = 0; k < x->nres; k++) n += x->option[o].made[k] == LIES_WHOLE;
      if (n > most) most = n, pick = o;
    }
    for (u32 k = w->begin[v]; k < w->begin[v + 1]; k++) option[w->member[k]] = (u16)pick;
  }
}

static bool is_preferred(const splits_problem *p, const u16 *prefer, u32 i) {
  return prefer && prefer[i] && !p->op[i].tie;
}

// By few states of the dynamic program, where some operators have the option that is preferred. False: nothing was found.
static bool start_beam(const walk *w, const u16 *prefer, splits_solution *out) {
  const splits_problem *p = w->p;
  splits_op *op = NEWN(w->a, splits_op, p->nops + 1);
  splits_problem q = *p;
  q.op = op;
  for (u32 i = 0; i < p->nops; i++) {
    op[i] = p->op[i];
    if (is_preferred(p, prefer, i)) op[i].option += prefer[i] - 1, op[i].noptions = 1;
  }
  const splits_limits few = {.fastest = true, .states = BEAM, .steps = 1, .ps_per_byte = w->l->ps_per_byte};
  return splits_solve(w->a, &q, &few, out);
}

// Keeps what was found before; the best of it is a start.
static const u16 *take_start(walk *w, const splits_solution *s, const u16 *prefer) {
  const u16 *start = NULL;
  double least = INFINITY;
  for (u32 k = 0; k < s->n; k++) {
    u16 *of = arena_dup(w->a, s->v[k].option, sizeof *of * w->p->nops);
    for (u32 i = 0; i < w->p->nops; i++)
      if (is_preferred(w->p, prefer, i)) of[i] = (u16)(prefer[i] - 1);
    set_all(w, of);
    keep(w);
    if (cost_now(w) < least) least = cost_now(w), start = of;
  }
  return start;
}

// ---- answers --------------------------------------------------------------------------------------------------
static int by_cost(const void *x, const void *y) {
  const record *p = x, *q = y;
  if (p->cost < q->cost || p->cost > q->cost) return p->cost < q->cost ? -1 : 1;
  return p->hash != q->hash ? (p->hash < q->hash ? -1 : 1) : 0;
}

static int by_time(const void *x, const void *y) {
  const splits_choice *p = x, *q = y;
  return p->time_ps != q->time_ps ? (p->time_ps < q->time_ps ? -1 : 1)
         : p->bytes != q->bytes   ? (p->bytes < q->bytes ? -1 : 1)
                                  : 0;
}

// Other choices of named options, from the best assignment: each is one more that can be told, at the price of its conversions.
static void vary_named(walk *w) {
  u32 v[2], n = 0;
  for (u32 i = 0; i < w->nvars && n < 2; i++)
    if (is_named(w, i) && noptions(w, i) > 1) v[n++] = i;
  const u16 *of = arena_dup(w->a, w->best.v[w->least].option, sizeof *of * w->p->nops + 1);
  set_all(w, of);
  for (u32 i = 0; n && i < noptions(w, v[0]); i++)
    for (u32 j = 0; j < (n > 1 ? noptions(w, v[1]) : 1); j++) {
      begin_change(w);
      change(w, v[0], (u16)i);
      if (n > 1) change(w, v[1], (u16)j);
      end_change(w);
      keep(w);
      take_back(w);
    }
}

static void walk_named(walk *w, u64 proposals) {
  vary_named(w);
  record *r = arena_dup(w->a, w->best.v, sizeof *r * w->best.n);
  const u32 all = w->best.n;
  qsort(r, all, sizeof *r, by_cost);
  const u32 n = MIN(all, CHAINS);
  for (u32 k = 0; k < n; k++) chain(w, r[k].option, proposals / n, false);
}

// Those that conversions of the best do not beat, by splits_slack.
static void tell(walk *w, arena *a, splits_solution *out) {
  const double most = w->best.v[w->least].cost + (double)splits_slack(w->p, w->l->ps_per_byte);
  qsort(w->best.v, w->best.n, sizeof *w->best.v, by_cost);
  splits_choice *v = NEWN(a, splits_choice, w->best.n + 1);
  for (u32 k = 0; k < w->best.n && out->n < NAMED; k++) {
    const record *r = &w->best.v[k];
    if (k && r->cost > most) break;
    v[out->n++] =
        (splits_choice){r->time_ps, r->bytes, arena_dup(a, r->option, sizeof *r->option * w->p->nops + 1)};
  }
  qsort(v, out->n, sizeof *v, by_time);
  out->v = v;
}

static walk walk_begin(arena *a, const splits_problem *p, const splits_limits *l) {
  walk w = {.p = p, .l = l, .a = a, .rng = l->seed};
  splits_readers_of(a, p, &w.readers);
  find_vars(&w);
  w.option = ZNEWN(a, u16, p->nops + 1), w.cost = ZNEWN(a, step, p->ntensors + 1);
  w.var_turn = ZNEWN(a, u32, w.nvars + 1), w.tensor_turn = ZNEWN(a, u32, p->ntensors + 1);
  return w;
}

bool splits_walk(arena *a, const splits_problem *p, const splits_limits *limits, splits_solution *out) {
  static const splits_limits none;
  const splits_limits *l = limits ? limits : &none;
  const u64 proposals = l->proposals ? l->proposals : SPLITS_PROPOSALS;
  *out = (splits_solution){0};
  if (l->all) return false;
  for (u32 i = 0; i < p->nops; i++)
    if (!p->op[i].noptions) return false;
  walk w = walk_begin(arena_new(), p, l);
  const u16 *start[3];
  u32 n = 0;
  bool named = false;
  for (u32 i = 0; i < p->nops; i++) named = named || p->op[i].named;
  u16 *whole = ZNEWN(w.a, u16, p->nops + 1);
  start_whole(&w, whole);
  start[n++] = whole;
  splits_solution s;
  if (l->prefer && start_beam(&w, l->prefer, &s)) start[n++] = take_start(&w, &s, l->prefer);
  if (l->known && l->known->n)
    start[n++] = take_start(&w, l->known, NULL);
  else if (start_beam(&w, NULL, &s))
    start[n++] = take_start(&w, &s, NULL);
  for (u32 k = 0; k < n; k++) chain(&w, start[k], proposals / (named ? 2 : 1) / n, true);
  if (named && w.best.n) walk_named(&w, proposals / 2);
  if (w.best.n) tell(&w, a, out);
  out->points = w.proposals;
  arena_free(w.a);
  return out->n > 0;
}
