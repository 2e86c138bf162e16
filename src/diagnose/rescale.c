// rescale.c - the parts that every rescaled job shares: the expected maximum, the ratio of two sizes of a communication;
// and pipelined jobs. Jobs of kernels: rescale_kernels.c.
#include "diagnose/diagnose.h"
#include "cost/cost.h"
#include "sim/sim.h"
#include <math.h>
#include <stdlib.h>

double rescale_expected(const double *v, u32 n, double most, u32 more) {
  if (!more || !n) return most;
  u32 below = 0;
  while (below < n && v[below] <= most) below++;
  double sum = below ? most * pow((double)below / n, more) : 0;
  for (u32 i = below; i < n; i++) sum += v[i] * (pow((i + 1.) / n, more) - pow((double)i / n, more));
  return sum;
}

// ---- the model ------------------------------------------------------------------------------------------
struct rescale_model {
  cost_model *k; // NULL: no machine
  u32 size[2], nsub;
  const u32 *place[2];
};

rescale_model *rescale_model_new(ctx *c, arena *a, const machine *m, const u32 size[2], u32 nsub,
                                 const u32 *const place[2]) {
  rescale_model *x = NEW(a, rescale_model);
  *x = (rescale_model){.size = {size[0], size[1]}, .nsub = nsub, .place = {place[0], place[1]}};
  if (!m) return x;
  for (u32 s = 0; s < 2; s++)
    for (u32 k = 0; k < nsub * size[s]; k++)
      if (!machine_has_rank(c, m, place[s][k], (loc){0})) return NULL;
  x->k = cost_model_new(c, a, m, NULL);
  return x->k ? x : NULL;
}

static i64 model_ps(rescale_model *x, u32 which, opcode op, i64 bytes) {
  i64 ps = 0;
  return cost_beside(x->k, &op, 1, bytes, x->place[which], x->nsub, x->size[which], &ps) ? ps : -1;
}

// The most bytes that take no longer than that in the model, at least 1.
static i64 bytes_for(rescale_model *x, opcode op, i64 ps) {
  i64 lo = 1, hi = (i64)1 << 44; // 16 TiB
  while (lo < hi) {
    const i64 mid = lo + (hi - lo + 1) / 2, took = model_ps(x, 0, op, mid);
    if (took < 0) return -1;
    if (took <= ps)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

double rescale_ratio(rescale_model *x, const char *op, i64 bytes, i64 took_ps) {
  const double was = comm_bus_factor(op, x->size[0]), is = comm_bus_factor(op, x->size[1]);
  if (!x->k) return was > 0 ? is / was : 1;
  const opcode code = op_find(op, strlen(op));
  if (code == OP_none || !(op_row_of(code)->flags & OPF_COMM)) return 1;
  if (bytes < 0) bytes = bytes_for(x, code, took_ps);
  const i64 before = bytes < 0 ? -1 : model_ps(x, 0, code, bytes),
            after = before < 0 ? -1 : model_ps(x, 1, code, bytes);
  if (after < 0) return -1;
  return before ? (double)after / (double)before : 1;
}

// ---- pipelined jobs -------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a, *tmp;
  const straggler *s;
  const machine *m;
  u32 data, tensors; // data ranks of the new job
  job_rescale *out;
  i64 *meet;  // by step and meeting node: by how much the last member comes later
  u32 *meets; // of every node: the node where its communication's members meet; TRACE_NONE: it is on its own
  double *ratio; // by type and stage
} rescaling;

static bool of_all(u32 ty) { return straggler_types[ty].over == STRAGGLER_OVER_ALL; }
static bool of_data(u32 ty) { return straggler_types[ty].over == STRAGGLER_OVER_DATA || of_all(ty); }

// A member of a communication waits for one node that is no operation (straggler_graph.c).
static void find_meetings(rescaling *x) {
  const straggler *s = x->s;
  const sim_graph *g = s->graph;
  x->meets = NEWN(x->tmp, u32, s->n + 1);
  for (u32 k = 0; k < s->n; k++) {
    x->meets[k] = TRACE_NONE;
    if (s->node[k].worker == TRACE_NONE || !of_data(s->node[k].type) || g->out[k] != g->occ[k] + 1) continue;
    const u32 slot = g->ref[g->occ[k]]; // of node slot - 1
    if (slot && s->node[slot - 1].worker == TRACE_NONE) x->meets[k] = slot - 1;
  }
}

// Arrivals at every meeting, replayed as recorded: of a data rank that of its last member.
static void find_arrivals(rescaling *x, i64 *arrival) { // [step][node][data]
  const straggler *s = x->s;
  sim_graph g = *s->graph;
  i64 *end = NEWN(x->tmp, i64, g.nslot);
  for (u64 k = 0; k < (u64)s->nsteps * s->n * s->ndata; k++) arrival[k] = INT64_MIN;
  for (u32 i = 0; i < s->nsteps; i++) {
    g.dur = s->recorded_ps + (size_t)i * s->n;
    sim_flat(&g, end, NULL);
    for (u32 k = 0; k < s->n; k++) {
      if (x->meets[k] == TRACE_NONE) continue;
      i64 there = 0;
      for (u32 j = s->after_at[k]; j < s->after_at[k + 1]; j++) there = MAX(there, end[s->after[j] + 1]);
      i64 *at = &arrival[((size_t)i * s->n + x->meets[k]) * s->ndata + s->worker[s->node[k].worker].data];
      *at = MAX(*at, there);
    }
  }
}

// Of one meeting: delays are relative to the mean of a step's ranks, and pooled over steps. They are not widened for the
// mean being that of few ranks: slow ranks stay slow, and widened delays overshoot (docs/design/diagnosis.md).
static void set_meeting(rescaling *x, u32 node, const i64 *arrival) {
  const straggler *s = x->s;
  const u32 D = s->ndata, more = x->data - D;
  double *pool = NEWN(x->tmp, double, (size_t)s->nsteps *D + 1);
  u32 n = 0;
  for (u32 i = 0; i < s->nsteps; i++) {
    const i64 *at = &arrival[((size_t)i * s->n + node) * D];
    double mean = 0;
    for (u32 d = 0; d < D; d++) {
      if (at[d] == INT64_MIN) return; // not of all data ranks
      mean += (double)at[d] / D;
    }
    for (u32 d = 0; d < D; d++) pool[n++] = ((double)at[d] - mean);
  }
  qsort(pool, n, sizeof *pool, ascending_double);
  x->out->draws = n;
  for (u32 i = 0; i < s->nsteps; i++) {
    const i64 *at = &arrival[((size_t)i * s->n + node) * D];
    double mean = 0, most = -INFINITY;
    for (u32 d = 0; d < D; d++) mean += (double)at[d] / D;
    for (u32 d = 0; d < D; d++) most = fmax(most, (double)at[d] - mean);
    x->meet[(size_t)i * s->n + node] = (i64)(rescale_expected(pool, n, most, more) - most + 0.5);
  }
}

static void set_meetings(rescaling *x) {
  const straggler *s = x->s;
  x->meet = ZNEWN(x->tmp, i64, (size_t)s->nsteps * s->n);
  i64 *arrival = NEWN(x->tmp, i64, (size_t)s->nsteps * s->n * s->ndata);
  bool *done = ZNEWN(x->tmp, bool, s->n + 1);
  find_arrivals(x, arrival);
  for (u32 k = 0; k < s->n; k++) {
    const u32 node = x->meets[k];
    if (node == TRACE_NONE || done[node]) continue;
    done[node] = true;
    set_meeting(x, node, arrival);
  }
}

// Members of the communications of a stage's data ranks, one subgroup for every tensor rank; of clipping all ranks.
static rescale_model *model_of(rescaling *x, u32 ty, u32 stage) {
  const straggler *s = x->s;
  const u32 D[2] = {s->ndata, x->data}, T = of_all(ty) ? 1 : x->tensors;
  u32 size[2], *place[2];
  for (u32 w = 0; w < 2; w++) {
    size[w] = of_all(ty) ? D[w] * s->nstages * x->tensors : D[w];
    place[w] = NEWN(x->a, u32, (size_t)size[w] * T);
    for (u32 t = 0; t < T; t++)
      for (u32 k = 0; k < size[w]; k++)
        place[w][t * size[w] + k] = of_all(ty) ? k : (stage * D[w] + k) * x->tensors + t;
  }
  return rescale_model_new(x->c, x->a, x->m, size, T, (const u32 *const *)place);
}

static bool set_ratios(rescaling *x) {
  const straggler *s = x->s;
  x->ratio = NEWN(x->tmp, double, (size_t)STRAGGLER_TYPES * s->nstages);
  for (u32 ty = 0; ty < STRAGGLER_TYPES; ty++)
    for (u32 stage = 0; stage < s->nstages; stage++) {
      double *to = &x->ratio[ty * s->nstages + stage];
      *to = 1;
      if (!of_data(ty) || !s->count[ty]) continue;
      i64 took = 0;
      for (u32 k = 0; k < s->n; k++)
        if (s->node[k].worker != TRACE_NONE && s->node[k].type == ty) took = s->median_ps[k];
      rescale_model *k = model_of(x, ty, stage);
      if (!k || (*to = rescale_ratio(k, straggler_types[ty].op, -1, took)) < 0) return false;
    }
  return true;
}

static double replayed(const rescaling *x, bool transfers, bool late) {
  const straggler *s = x->s;
  i64 *dur = NEWN(x->tmp, i64, (size_t)s->nsteps * s->n), *step = NEWN(x->tmp, i64, s->nsteps);
  for (u32 i = 0; i < s->nsteps; i++)
    for (u32 k = 0; k < s->n; k++) {
      const size_t at = (size_t)i * s->n + k;
      const straggler_node *n = &s->node[k];
      dur[at] = s->recorded_ps[at];
      if (n->worker == TRACE_NONE || x->meets[k] == TRACE_NONE) continue;
      if (transfers)
        dur[at] = (i64)((double)dur[at] * x->ratio[n->type * s->nstages + s->worker[n->worker].stage] + 0.5);
      if (late) dur[at] += x->meet[(size_t)i * s->n + x->meets[k]]; // before the transfer, of all members
    }
  straggler_replay(s, dur, step);
  return straggler_mean(s, step);
}

static void put_rows(rescaling *x) {
  const straggler *s = x->s;
  VEC(rescale_row) rows = {0};
  for (u32 ty = 0; ty < STRAGGLER_TYPES; ty++) {
    rescale_row r = {.name = straggler_types[ty].name, .count = s->count[ty] / s->nworkers};
    const u32 of = of_all(ty) ? s->nstages * x->tensors : 1;
    u64 n = 0;
    r.from = s->ndata * of, r.to = x->data * of;
    for (u32 k = 0; k < s->n; k++) {
      if (x->meets[k] == TRACE_NONE || s->node[k].type != ty) continue;
      const double ratio = x->ratio[ty * s->nstages + s->worker[s->node[k].worker].stage];
      for (u32 i = 0; i < s->nsteps; i++, n++) {
        const double ps = (double)s->recorded_ps[(size_t)i * s->n + k];
        r.before_ps += ps, r.after_ps += ps * ratio;
        r.late_ps += (double)x->meet[(size_t)i * s->n + x->meets[k]];
      }
    }
    if (!n) continue;
    r.before_ps /= (double)n, r.after_ps /= (double)n, r.late_ps /= (double)n;
    *vec_push(x->a, &rows) = r;
  }
  x->out->n = rows.n, x->out->row = rows.v;
}

static bool fits(rescaling *x, u32 ranks, loc at) {
  const straggler *s = x->s;
  const u32 of = s->nstages * x->tensors, now = of * s->ndata;
  if (s->ndata < 2) {
    diag(x->c, E_TRACE, at, "one data rank was recorded: how data ranks wait for each other is not known");
    diag_hint(x->c, "record two data ranks or more");
    return false;
  }
  if (ranks % of == 0 && ranks >= now) return true;
  if (ranks < now)
    diag(x->c, E_USAGE, (loc){0}, "--ranks %u: the job has %u ranks already", ranks, now);
  else
    diag(x->c, E_USAGE, (loc){0}, "--ranks %u is no multiple of %u: %u stages x %u tensor ranks", ranks, of,
         s->nstages, x->tensors);
  diag_hint(x->c, "--ranks %u", MAX(now, ranks / of * of));
  return false;
}

bool straggler_rescale(ctx *c, arena *a, const straggler *s, u32 ranks, const machine *m, loc at,
                       job_rescale *out) {
  rescaling x = {.c = c, .a = a, .tmp = arena_new(), .s = s, .m = m, .out = out};
  x.tensors = s->nworkers > 1 ? MAX(s->worker[1].rank - s->worker[0].rank, 1) : 1;
  bool ok = fits(&x, ranks, at);
  if (ok) {
    const u32 of = s->nstages * x.tensors;
    x.data = ranks / of;
    *out = (job_rescale){
        .ranks = {of * s->ndata, ranks}, .data = {s->ndata, x.data}, .pipeline = true, .nsteps = s->nsteps};
    find_meetings(&x), set_meetings(&x);
    ok = set_ratios(&x);
  }
  if (ok) {
    for (u32 i = 0; i < s->nsteps; i++) out->recorded_ps += (double)s->span_ps[i] / s->nsteps;
    out->replayed_ps = replayed(&x, false, false), out->transfer_ps = replayed(&x, true, false);
    out->late_ps = replayed(&x, false, true), out->predicted_ps = replayed(&x, true, true);
    put_rows(&x);
  }
  arena_free(x.tmp);
  return ok;
}
