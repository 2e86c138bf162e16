// tuning_memory.c - what a recorded job keeps on its device, from what its allocator told. Not what that costs (tune/).
//
// Idea: an allocator's events have addresses, so what is taken and what is given back are pairs. What was taken before a
// forward op was launched and is given back during the backward is kept by that op. Layers nobody tells; but where all that
// later ops keep is given back before anything that earlier ones keep, the forward can be cut in two, and the earlier half
// computed again when the later one is done with. Of such places as many are taken as give about the root of
// the number of ops that keep something, where recomputation needs least memory in a chain (Chen et al., 2016).
#include "diagnose/diagnose.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  i64 at, bytes, freed; // freed: INT64_MAX, not in the step
  u32 op;
  bool kept;
} piece;
typedef struct {
  const tuning_recorded *in;
  arena *tmp;
  tune_job *j;
  u32 nforward, backward_end; // ops of the forward; the first op behind the backward
  VEC(trace_memory) row;      // of the device, in the step
  VEC(piece) pieces;          // in the order of their ops
  bool paired;
  i64 peak;
} reader;

static int by_time(const void *x, const void *y) {
  const trace_memory *a = *(const trace_memory *const *)x, *b = *(const trace_memory *const *)y;
  if (a->at_ps != b->at_ps) return a->at_ps < b->at_ps ? -1 : 1;
  return a < b ? -1 : a > b; // as in the file
}

static void take_rows(reader *x) {
  const tuning_recorded *in = x->in;
  VEC(const trace_memory *) rows = {0};
  for (u32 k = 0; k < in->t->memory.n; k++) {
    const trace_memory *m = &in->t->memory.v[k];
    const bool here = m->process == in->process && (in->device < 0 || m->device == in->device);
    if (here && m->at_ps >= in->from_ps && m->at_ps <= in->to_ps) *vec_push(x->tmp, &rows) = m;
  }
  if (rows.n) qsort(rows.v, rows.n, sizeof *rows.v, by_time);
  for (u32 k = 0; k < rows.n; k++) *vec_push(x->tmp, &x->row) = *rows.v[k];
}

// The first op that was launched then or later; nops: none.
static u32 op_at(const reader *x, i64 ps) {
  u32 lo = 0, hi = x->j->nops;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    if (x->in->launch_ps[mid] < ps)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

static void pair_rows(reader *x) {
  hmap known = {0};    // of a place: its number + 1
  VEC(u32) open = {0}; // of a place: the piece that is there + 1
  const i64 begin = x->in->launch_ps[x->nforward],
            end = x->backward_end < x->j->nops ? x->in->launch_ps[x->backward_end] : INT64_MAX;
  x->paired = true;
  for (u32 k = 0; k < x->row.n; k++) {
    const trace_memory *m = &x->row.v[k];
    x->paired &= m->place != -1;
    const u64 h = hash_u64((u64)m->place, 5);
    u32 at = hmap_get(&known, h);
    if (!at) *vec_push(x->tmp, &open) = 0, hmap_add(x->tmp, &known, h, at = open.n);
    assert(open.v && at <= open.n);
    u32 *there = &open.v[at - 1];
    if (*there) x->pieces.v[*there - 1].freed = m->at_ps;
    *there = 0;
    if (m->bytes < 0) continue;
    *vec_push(x->tmp, &x->pieces) = (piece){m->at_ps, m->bytes, INT64_MAX, op_at(x, m->at_ps), false};
    *there = x->pieces.n;
  }
  for (u32 k = 0; k < x->pieces.n; k++) {
    piece *p = &x->pieces.v[k];
    p->kept = p->op < x->nforward && p->freed > begin && p->freed < end;
  }
}

static void put_kept(reader *x) {
  for (u32 k = 0; k < x->pieces.n; k++) {
    const piece *p = &x->pieces.v[k];
    if (p->op >= x->nforward) continue;
    tune_op *o = &x->j->op[p->op];
    if (p->kept) o->keeps_bytes += p->bytes;
    if (p->freed > x->in->launch_ps[p->op + 1]) o->result_bytes += p->bytes; // else it is workspace
  }
}

// ---- blocks -----------------------------------------------------------------------------------------------
typedef struct {
  i64 *first,
      *last; // behind op k: when the first of what it and those before it keep, and the last of the rest is freed
  i64 *sum;    // of what it and those before it keep
  i64 *across; // what a cut behind it would have to keep: the input of later ops
  u32 nkeep;   // ops that keep something
} lives;

// Behind every op: results that later ops of the forward give back, and the latest result that is there.
static void put_across(const reader *x, i64 *across) {
  u32 have = 0; // pieces that are there by then or were
  for (u32 k = 0; k < x->pieces.n; k++) {
    const piece *p = &x->pieces.v[k];
    const u32 end = MIN(op_at(x, p->freed), x->nforward); // ops before it are launched with the piece there
    if (p->kept || p->freed == INT64_MAX || p->op + 1 >= end) continue;
    across[p->op] += p->bytes, across[end - 1] -= p->bytes;
  }
  for (u32 k = 1; k < x->nforward; k++) across[k] += across[k - 1];
  for (u32 k = 0; k + 1 < x->nforward; k++) {
    while (have < x->pieces.n && x->pieces.v[have].op <= k) have++;
    u32 i = have;
    while (i &&
           (x->pieces.v[i - 1].freed <= x->in->launch_ps[k + 1] || x->pieces.v[i - 1].freed == INT64_MAX))
      i--;
    if (i && x->pieces.v[i - 1].kept) across[k] += x->pieces.v[i - 1].bytes;
  }
}

static lives lives_of(const reader *x) {
  const u32 n = x->nforward;
  lives l = {.first = NEWN(x->tmp, i64, n + 1),
             .last = NEWN(x->tmp, i64, n + 1),
             .sum = ZNEWN(x->tmp, i64, n + 1),
             .across = ZNEWN(x->tmp, i64, n + 1)};
  put_across(x, l.across);
  for (u32 k = 0; k < n; k++) l.first[k] = INT64_MAX, l.last[k] = INT64_MIN;
  for (u32 k = 0; k < x->pieces.n; k++) {
    const piece *p = &x->pieces.v[k];
    if (!p->kept) continue;
    l.first[p->op] = MIN(l.first[p->op], p->freed), l.sum[p->op] += p->bytes;
    if (p->op) l.last[p->op - 1] = MAX(l.last[p->op - 1], p->freed);
  }
  for (u32 k = 0; k < n; k++) l.nkeep += l.sum[k] > 0;
  for (u32 k = 1; k < n; k++) l.first[k] = MIN(l.first[k], l.first[k - 1]), l.sum[k] += l.sum[k - 1];
  for (u32 k = n - 1; k--;) l.last[k] = MAX(l.last[k], l.last[k + 1]);
  return l;
}

// May the forward be cut behind op k? Between what is freed on both sides the backward has to launch something.
static bool may_cut(const reader *x, const lives *l, u32 k) {
  if (l->first[k] == INT64_MAX || l->last[k] == INT64_MIN || l->last[k] > l->first[k]) return false;
  const u32 next = op_at(x, l->last[k] + 1);
  return next < x->backward_end && x->in->launch_ps[next] <= l->first[k];
}

// How far a block that ends behind op k is from having so much, and what it costs to end it there.
static double badness(const lives *l, u32 k, double aim) {
  return fabs((double)l->sum[k] - aim) + (double)l->across[k];
}

// Places behind which a block ends, about as many bytes in each.
static u32 choose_cuts(const reader *x, const lives *l, u32 *cut) {
  const u32 want = (u32)sqrt(l->nkeep);
  u32 n = 0;
  for (u32 q = 1; q < want; q++) {
    const double aim = (double)l->sum[x->nforward - 1] * q / want;
    u32 best = TUNE_NONE;
    for (u32 k = n ? cut[n - 1] + 1 : 0; k + 1 < x->nforward; k++)
      if (may_cut(x, l, k) && (best == TUNE_NONE || badness(l, k, aim) < badness(l, best, aim))) best = k;
    if (best != TUNE_NONE && (!n || l->sum[best] > l->sum[cut[n - 1]])) cut[n++] = best;
  }
  return n;
}

static void put_blocks(reader *x, arena *a, const lives *l, u32 n, const u32 *cut) {
  tune_job *j = x->j;
  j->nblocks = n + 1;
  j->kind = NEWN(a, u32, n + 1), j->input_bytes = ZNEWN(a, i64, n + 1);
  for (u32 b = 0; b <= n; b++) j->kind[b] = b; // what is alike is not known
  for (u32 b = 0; b < n; b++) j->input_bytes[b + 1] = l->across[cut[b]];
  u32 b = 0;
  for (u32 k = 0; k < x->nforward; k++) {
    j->op[k].block = b;
    if (b < n && k == cut[b]) b++;
  }
  for (u32 k = x->nforward; k < j->nops; k++) {
    if (k < x->backward_end)
      while (b && x->in->launch_ps[k] > l->last[cut[b - 1]]) b--;
    j->op[k].block = b;
  }
}

// ---- the whole job ------------------------------------------------------------------------------------------
static void peak_of_process(job *j, u32 file, const trace *t, u32 process, tuning_peak *out) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, process);
  for (u32 k = 0; k < t->memory.n; k++) {
    const trace_memory *m = &t->memory.v[k];
    u32 step = 0;
    if (m->process != process || m->total <= out->bytes) continue;
    while (step < s->n && (m->at_ps < s->step[step].start_ps || m->at_ps > s->step[step].end_ps)) step++;
    if (s->n && step == s->n) continue; // before the first or between two: no training
    out->bytes = m->total, out->step = s->n ? s->step[step].number : TRACE_NONE;
    out->rank = t->processes.n == 1 ? job_rank(j, file) : t->processes.v[process].rank;
  }
  arena_free(tmp);
}

bool tuning_peak_of(job *j, tuning_peak *out) {
  *out = (tuning_peak){0, TRACE_NONE, TRACE_NONE};
  const struct number_set *wanted = j->steps;
  j->steps = NULL; // all steps that there are
  bool ok = true;
  for (u32 k = 0; ok && k < j->n; k++) {
    if (!trace_format_rows[j->file[k].format].kernels) continue;
    const trace *t = job_load(j, k, 1u << TRACE_STEP | TRACE_MEMORY);
    for (u32 p = 0; t && p < t->processes.n; p++) peak_of_process(j, k, t, p, out);
    if (t) job_unload(j, k);
    ok = t;
  }
  j->steps = wanted;
  return ok;
}

// ---- all of it --------------------------------------------------------------------------------------------
static bool take_totals(reader *x, tuning_memory *out) {
  if (!x->row.n) {
    out->unknown = x->in->t->memory.n ? "its allocator told nothing of its device in the step"
                                      : "it has no events of an allocator";
    return false;
  }
  for (u32 k = 0; k < x->row.n; k++)
    if (x->row.v[k].total < 0) {
      out->unknown = "its allocator did not tell what was taken in all, as PyTorch does since 2022";
      return false;
    }
  x->peak = out->before_bytes = MAX(0, x->row.v[0].total - x->row.v[0].bytes);
  for (u32 k = 0; k < x->row.n; k++) x->peak = MAX(x->peak, x->row.v[k].total);
  return true;
}

// Without addresses: what was taken more when the backward began than when the step did.
static void put_sum(reader *x, const tuning_memory *m) {
  i64 total = m->before_bytes;
  for (u32 k = 0; k < x->row.n && x->row.v[k].at_ps <= x->in->launch_ps[x->nforward]; k++)
    total = x->row.v[k].total;
  x->j->op[x->nforward - 1].keeps_bytes = MAX(0, total - m->before_bytes);
}

// What is kept is there all at once when the forward has ended. As no sum of pieces is larger, none is too large for a number.
static bool contradicts(const reader *x) {
  i64 kept = 0, passing = 0;
  for (u32 k = 0; k < x->pieces.n; k++) {
    i64 *sum = x->pieces.v[k].kept ? &kept : &passing;
    *sum = add_sat(*sum, x->pieces.v[k].bytes);
  }
  return x->paired && (kept > x->peak || passing > (i64)1 << 60);
}

static void put_paired(reader *x, arena *a, tune_plan *p, tuning_memory *out) {
  put_kept(x);
  const lives l = lives_of(x);
  u32 *cut = NEWN(x->tmp, u32, x->nforward + 1);
  const u32 n = choose_cuts(x, &l, cut);
  if (!n) {
    out->no_recompute = "nowhere in its forward is all that comes later given back before what was there";
    return;
  }
  put_blocks(x, a, &l, n, cut);
  p->recompute = ZNEWN(a, u8, x->j->nblocks + 1); // it was made for one block
}

static void put_memory(reader *x, arena *a, tune_plan *p, tuning_memory *out) {
  pair_rows(x);
  if (contradicts(x)) {
    out->unknown = "its allocator contradicts itself: more is kept than was taken in all";
    return;
  }
  if (x->paired) {
    put_paired(x, a, p, out);
  } else {
    put_sum(x, out);
    out->no_recompute = "its allocator told no addresses, so nobody knows which kernel keeps what";
  }
  for (u32 k = 0; k < x->nforward; k++) out->kept_bytes += x->j->op[k].keeps_bytes;
  // What the model does not know was there all the time.
  const i64 peak = MAX(x->peak, x->in->peak.bytes);
  x->j->fixed_bytes = MAX(0, peak - tune_bytes(x->j, p));
  x->j->peak_bytes = peak;
}

tuning_memory tuning_memory_of(arena *a, const tuning_recorded *in, tune_plan *p, tune_job *j) {
  reader x = {.in = in, .tmp = arena_new(), .j = j};
  tuning_memory out = {.peak = in->peak};
  while (x.nforward < j->nops && j->op[x.nforward].phase == TUNE_FORWARD) x.nforward++;
  for (x.backward_end = x.nforward; x.backward_end < j->nops && j->op[x.backward_end].phase == TUNE_BACKWARD;)
    x.backward_end++;
  take_rows(&x);
  if (!x.nforward || x.nforward == x.backward_end)
    out.unknown = "no kernel of its forward comes before its backward";
  else if (take_totals(&x, &out))
    put_memory(&x, a, p, &out);
  arena_free(x.tmp);
  return out;
}
