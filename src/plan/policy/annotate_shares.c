// annotate_shares.c - what the devices of annotated task graphs, and replicas of the model, get of the batch or
// of a split: as is said, or so that devices of several kinds end together. Not how shares are applied.
//
// Idea: task graphs that have one axis get one answer, since shares belong to axes. Times are those of balance.c,
// of the instructions that a task graph has. A device does its task graphs one after the other; a replica is as
// slow as its slowest device where task graphs are a pipeline, and takes their sum where they are not.
#include "cost/cost.h"
#include "plan/policy/annotate.h"
#include "plan/policy/balance.h"

struct times {
  work *w;
  const machine *m;
  i64 micro; // samples of a microbatch, of all replicas
  linear *
      *time; // [task graph][kind]: of its instructions, each on one device or on all that it is split over
  bool pipelined; // task graphs run beside each other
};

static u32 sum_of(const u32 *part, u32 n) {
  u32 s = part ? 0 : n;
  for (u32 k = 0; part && k < n; k++) s += part[k];
  return s;
}

// In the smallest numbers; NULL: they are equal.
static const u32 *reduced(arena *a, const i64 *share, u32 n) {
  u32 *v = NEWN(a, u32, n);
  for (u32 k = 0; k < n; k++) v[k] = (u32)share[k];
  return strategy_reduce(v, n) ? v : NULL;
}

// ---- as is said -----------------------------------------------------------------------------------------
static bool said(work *w, const shares_info *s, const char *what, u32 n, const char *of, const u32 **out) {
  *out = NULL;
  if (s->how == SHARES_AUTO && !w->o->k) {
    diag(w->c, E_ANNOTATE, s->where, "%s: `auto` needs a machine", what);
    diag_hint(w->c, "add --machine, or say the parts, such as [3, 1]");
    return false;
  }
  if (s->how != SHARES_PARTS) return true;
  if (s->n != n) {
    diag(w->c, E_ANNOTATE, s->where, "%s: %u parts, but there %s %u %s", what, s->n, n == 1 ? "is" : "are", n,
         of);
    diag_hint(w->c, "one part for each");
    return false;
  }
  i64 *share = NEWN(w->a, i64, n);
  for (u32 k = 0; k < n; k++) share[k] = s->part[k];
  *out = reduced(w->a, share, n);
  return true;
}

// ---- the nearest ----------------------------------------------------------------------------------------
static i64 as_part(const void *arg, u32 which, i64 quanta) {
  const shares_info *s = arg;
  return (quanta << 20) / s->part[which];
}

static const char *shares_text(const work *w, u32 *part, u32 n) {
  strbuf b = {.a = w->a};
  if (!strategy_reduce(part, n)) return "equal";
  for (u32 k = 0; k < n; k++) sb_fmt(&b, k ? ", %u" : "[%u", part[k]);
  sb_put(&b, "]");
  return n > 16 ? NULL : sb_str(&b);
}

const char *shares_near(const work *w, const shares_info *s, i64 total) {
  if (s->how != SHARES_PARTS || total < s->n || total > UINT16_MAX) return NULL;
  const i64 *share = auto_shares(w->a, total, s->n, NULL, as_part, s);
  u32 *part = NEWN(w->a, u32, s->n);
  for (u32 k = 0; share && k < s->n; k++) part[k] = (u32)share[k];
  return share ? shares_text(w, part, s->n) : NULL;
}

typedef struct {
  work *w;
  const graph *like;
} splitting;
static bool may(void *arg, const u32 *part) {
  const splitting *s = arg;
  return graphs_may_split(s->w, s->like, part);
}

const char *shares_to_split(work *w, const graph *g) {
  const shares_info *s = &g->scope->shares;
  double *pace = NEWN(w->a, double, g->d);
  for (u32 k = 0; k < g->d; k++) pace[k] = 1.0 / s->part[k];
  u32 *part = auto_parts(w->a, pace, g->d, may, &(splitting){w, g});
  return part ? shares_text(w, part, g->d) : NULL;
}

// ---- all that is said -----------------------------------------------------------------------------------
static bool said_of_batch(work *w, const shares_info *s, const char *what, const u32 *part) {
  if (!part || !planner_batchnorm(w->pl)->groups) return true;
  diag(w->c, E_ANNOTATE, s->where, "%s: batch norm would take its statistics over unequal parts of the batch",
       what);
  diag_hint(w->c, "equal shares");
  return false;
}

// A split inside blocks is over the devices of the task graph around it, which then have equal shares of the batch.
static bool equal_around(const work *w, u32 scope) {
  const annotation_scope *s = &w->x->scope[scope];
  for (u32 i = 0; i < w->n; i++) {
    const graph *g = &w->graph[w->of[i] - 1];
    if (!w->inner[scope][w->p->main.i][i] || !g->shares) continue;
    diag(w->c, E_ANNOTATE, g->scope->shares.where,
         "shares of `%s`: `%s` is split inside it over the same devices, which needs equal shares",
         g->scope->name, s->name);
    diag_note(w->c, s->at, "the split");
    diag_hint(w->c, "shares: equal; replicas of the model may have others");
    return false;
  }
  return true;
}

bool shares_said(work *w) {
  for (u32 k = 0; k < w->x->nscopes; k++) {
    const annotation_scope *s = &w->x->scope[k];
    if (!w->inner[k] || s->shares.how == SHARES_UNSAID || s->shares.how == SHARES_EQUAL) continue;
    diag(w->c, E_ANNOTATE, s->shares.where,
         "shares of `%s`: a split inside a block has those of the task graph around it", s->name);
    diag_hint(w->c, "leave them out; they are equal");
    return false;
  }
  for (u32 k = 0; k < w->ngraphs; k++) {
    graph *g = &w->graph[k];
    const shares_info *s = &g->scope->shares;
    const char *what = arena_printf(w->a, "shares of `%s`", g->scope->name);
    if (!said(w, s, what, g->d, g->d == 1 ? "device" : "devices", &g->shares)) return false;
    if (!scope_splits(g->scope) && !said_of_batch(w, s, what, g->shares)) return false;
  }
  for (u32 k = 0; k < w->x->nscopes; k++)
    if (w->inner[k] && !equal_around(w, k)) return false;
  const shares_info *s = &w->x->replicas;
  if (!said(w, s, "replicas", w->R, w->R == 1 ? "replica of the model" : "replicas of the model",
            &w->rep_shares) ||
      !said_of_batch(w, s, "replicas", w->rep_shares))
    return false;
  for (u32 k = 0; w->rep_shares && k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (scope_splits(g->scope) || !g->shares) continue;
    diag(w->c, E_ANNOTATE, g->scope->shares.where,
         "shares of `%s`: replicas have unequal shares of the batch already", g->scope->name);
    diag_note(w->c, s->where, "these");
    diag_hint(w->c, "equal shares of the one or of the other");
    return false;
  }
  return true;
}

// ---- times ----------------------------------------------------------------------------------------------
static bool find_times(times *x) {
  work *w = x->w;
  strategy *s = NEWN(w->a, strategy, w->ngraphs);
  const u32 K = microbatches_of(w);
  bool *used = ZNEWN(w->a, bool, x->m->nkinds);
  for (u32 r = 0; r < w->K; r++) used[x->m->dev[r].kind] = true;
  x->time = NEWN(w->a, linear *, w->ngraphs);
  for (u32 g = 0; g < w->ngraphs; g++) {
    const u32 d = w->graph[g].d;
    const bool split = scope_splits(w->graph[g].scope);
    s[g] = strategy_of("dp=%u tp=%u mb=%u", split ? w->R : w->R * d, split ? d : 1, K);
    strategy_take_stages(&s[g], &w->s, w->o->train);
    balance b = auto_open(w->pl, w->a, w->o, &s[g]);
    x->time[g] = ZNEWN(w->a, linear, x->m->nkinds);
    for (u32 kind = 0; kind < x->m->nkinds; kind++) {
      const linear *t = used[kind] ? auto_times(&b, kind) : NULL;
      if (used[kind] && !t) return false;
      for (u32 i = 0; t && i < w->n; i++)
        if (w->of[i] == g + 1) x->time[g][kind].fixed += t[i].fixed, x->time[g][kind].each += t[i].each;
    }
  }
  return true;
}

static double time_at(const times *x, u32 g, u32 replica, u32 device, double samples) {
  const linear t = x->time[g][x->m->dev[rank_at(x->w, replica, &x->w->graph[g], device)].kind];
  return t.fixed + t.each * samples;
}

// Of device k of the task graphs like `like`, which wait for no shares of their own, in the slowest replica.
static double device_time(const times *x, const graph *like, u32 device, double samples) {
  const work *w = x->w;
  double most = 0;
  for (u32 r = 0; r < w->R; r++)
    for (u32 h = 0; h < w->ngraphs; h++) {
      double sum = 0;
      for (u32 g = 0; g < w->ngraphs; g++)
        if (w->graph[g].home == h && is_alike(&w->graph[g], like)) sum += time_at(x, g, r, device, samples);
      most = MAX(most, sum);
    }
  return most;
}

static double replica_time(const times *x, u32 replica, double samples) {
  const work *w = x->w;
  double slowest = 0, all = 0;
  for (u32 h = 0; h < w->ngraphs; h++) {
    double most = 0;
    for (u32 k = 0; k < w->graph[h].d; k++) {
      double sum = 0;
      for (u32 g = 0; g < w->ngraphs; g++) {
        const graph *of = &w->graph[g];
        const double part = of->shares ? (double)of->shares[k] / sum_of(of->shares, of->d) : 1.0 / of->d;
        if (of->home != h) continue;
        sum += scope_splits(of->scope) ? time_at(x, g, replica, k, samples) * of->d * part
                                       : time_at(x, g, replica, k, samples * part);
      }
      most = MAX(most, sum);
    }
    slowest = MAX(slowest, most), all += most;
  }
  return x->pipelined ? slowest : all;
}

// ---- by times -------------------------------------------------------------------------------------------
typedef struct {
  const times *x;
  const graph *like; // NULL: replicas
  i64 each;          // samples of one quantum
} asked;
static i64 time_of(const void *arg, u32 which, i64 quanta) {
  const asked *q = arg;
  const double samples = (double)(quanta * q->each);
  return (i64)(q->like ? device_time(q->x, q->like, which, samples) : replica_time(q->x, which, samples));
}

// NULL: equal shares.
static const u32 *share_out(const asked *q, i64 quanta, u32 n) {
  arena *a = q->x->w->a;
  return reduced(a, auto_shares(a, quanta, n, NULL, time_of, q), n);
}

static bool is_auto(const shares_info *s) { return s->how == SHARES_AUTO || s->how == SHARES_UNSAID; }

static bool inside(const work *w) { // splits inside blocks are over axes of the batch
  for (u32 k = 0; k < w->x->nscopes; k++)
    if (w->inner[k]) return true;
  return false;
}

static void share_devices(const times *x, bool splits, bool batch) {
  work *w = x->w;
  const i64 own = x->micro / w->R;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *like = &w->graph[k];
    bool first = is_auto(&like->scope->shares) && like->d > 1 && (scope_splits(like->scope) ? splits : batch);
    for (u32 j = 0; j < k; j++)
      first = first && !(is_alike(like, &w->graph[j]) && is_auto(&w->graph[j].scope->shares));
    if (!first || (w->rep_shares && !scope_splits(like->scope))) continue;
    const u32 *part = NULL;
    if (scope_splits(like->scope)) {
      double *pace = NEWN(w->a, double, like->d);
      for (u32 j = 0; j < like->d; j++) pace[j] = device_time(x, like, j, (double)own);
      u32 *v = auto_parts(w->a, pace, like->d, may, &(splitting){w, like});
      part = v && strategy_reduce(v, like->d) ? v : NULL;
    } else if (x->micro % w->R == 0 && own >= like->d)
      part = share_out(&(asked){x, like, 1}, own, like->d);
    for (u32 j = k; j < w->ngraphs; j++)
      if (is_alike(like, &w->graph[j]) && is_auto(&w->graph[j].scope->shares)) w->graph[j].shares = part;
  }
}

// The batch is dealt out to the devices of every task graph, and then to replicas: in units of so many samples. 0:
// more than a microbatch has.
static i64 unit_of(const work *w, i64 micro) {
  i64 each = 1;
  for (u32 k = 0; k < w->ngraphs; k++) {
    bool first = !scope_splits(w->graph[k].scope);
    for (u32 j = 0; j < k; j++) first = first && !is_alike(&w->graph[k], &w->graph[j]);
    if (first && each > micro / w->graph[k].d) return 0;
    if (first) each *= w->graph[k].d;
  }
  return each;
}

// One dimension has one axis with shares: replicas, or devices of task graphs.
static void share_replicas(const times *x) {
  work *w = x->w;
  const i64 unit = unit_of(w, x->micro);
  if (w->R == 1 || !unit || x->micro % unit || x->micro / unit < w->R) return;
  for (u32 k = 0; k < w->ngraphs; k++)
    if (!scope_splits(w->graph[k].scope) && w->graph[k].shares) return;
  w->rep_shares = share_out(&(asked){x, NULL, unit}, x->micro / unit, w->R);
}

// One data rank a device and nothing else: as dp.shares=auto, which knows of memory, too.
static bool plain(const work *w) {
  for (u32 k = 0; k < w->ngraphs; k++)
    if (w->graph[k].home || scope_splits(w->graph[k].scope) || !is_auto(&w->graph[k].scope->shares))
      return false;
  return (w->R == 1 || w->graph[0].d == 1) && is_auto(&w->x->replicas);
}

static void share_plain(work *w, const char *how) {
  hybrid_opts h = *w->o;
  h.s = strategy_of("dp=%u mb=%u zero=%u dp.shares=%s", w->K, microbatches_of(w), w->s.zero.n, how);
  strategy_take_stages(&h.s, &w->s, h.train);
  if (!policy_balance(w->pl, w->a, &h, &h.s)) return;
  const u32 *part = h.s.dp_shares.nparts ? h.s.dp_shares.part : NULL;
  for (u32 k = 0; w->R == 1 && k < w->ngraphs; k++) w->graph[k].shares = part;
  if (w->R > 1) w->rep_shares = part;
}

const times *shares_open(work *w, bool alike) {
  const u32 K = microbatches_of(w), before = diag_count(w->c);
  const i64 batch = policy_batch_extent(w->pl);
  const machine *m = w->o->k ? cost_model_machine(w->o->k) : NULL;
  if (!m || w->K > m->nranks || (!alike && machine_one_kind(m, 0, w->K)) || !batch || batch % K) return NULL;
  times *x = NEW(w->a, times);
  *x = (times){.w = w, .m = m, .micro = batch / K, .pipelined = K > 1};
  for (u32 k = 0; k < w->ngraphs; k++) x->pipelined = x->pipelined && w->graph[k].home == k;
  const bool known = find_times(x);
  diag_truncate(w->c, before); // what cannot be measured has equal shares
  return known ? x : NULL;
}

void shares_by_time(const times *x, bool splits, shares_of_batch batch) {
  work *w = x->w;
  const u32 before = diag_count(w->c);
  const bool may_batch = !planner_batchnorm(w->pl)->groups && !inside(w);
  for (u32 k = 0; k < w->ngraphs; k++)
    if (is_auto(&w->graph[k].scope->shares)) w->graph[k].shares = NULL;
  if (is_auto(&w->x->replicas)) w->rep_shares = NULL;
  if (may_batch && batch != BATCH_EQUAL && plain(w))
    share_plain(w, batch == BATCH_BY_WHALE ? "whale" : "auto");
  else {
    share_devices(x, splits, may_batch && batch == BATCH_OF_DEVICES);
    if (may_batch && batch == BATCH_OF_REPLICAS && is_auto(&w->x->replicas)) share_replicas(x);
  }
  diag_truncate(w->c, before);
}

// A device of the kind alone, doing the work of all devices one after the other, with each task graph's part of a
// microbatch.
double shares_speed(const times *x, u32 kind) {
  const work *w = x->w;
  double each = 0; // ps of a sample
  for (u32 g = 0; g < w->ngraphs; g++) {
    const u32 d = w->graph[g].d;
    const bool split = scope_splits(w->graph[g].scope);
    const double own = (double)x->micro / w->R / (split ? 1 : d);
    each += (x->time[g][kind].fixed + x->time[g][kind].each * own) / own * (split ? d : 1);
  }
  return each > 0 ? 1 / each : 0;
}
