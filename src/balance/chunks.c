// chunks.c - cuts for several chunks on every place of a given order.
//
// Idea: in a given order the last stages are a number, so a table over (stage, cut) is exact: of the longest
// chunk from a stage on, which gives a limit, and of the sum of squares under a limit, which makes chunks even.
// What places do in all their chunks is evened out from there, by handing a layer from one stage to another
// through those between. A limit of more than the least longest chunk may let places be more even, so a few are
// tried.
#include "balance/internal.h"

typedef struct {
  const balance_passes *in;
  u32 n, L;      // stages, layers
  i64 *time;     // [kind * (L + 1) + cut]: of the layers before it
  i64 limit;     // of a chunk
  wide *squares; // [stage * (L + 1) + cut]: from this stage on, which begins there; -1: impossible
} chunking;
typedef struct {
  i64 tau, longest;
  wide squares;
} chunk_value;

static u32 place_of(const chunking *c, u32 stage) {
  return c->in->place ? c->in->place[stage] : stage % c->in->nplaces;
}
static const i64 *times_of(const chunking *c, u32 stage) {
  return c->time + c->in->kind[place_of(c, stage)] * (c->L + 1);
}

static wide *row_of(const chunking *c, u32 stage) { return c->squares + (size_t)stage * (c->L + 1); }

// The longest chunk from a stage on that begins at s, if it ends where that is shortest.
static i64 least_longest(arena *tmp, const chunking *c) {
  i64 *behind = NEWN(tmp, i64, c->L + 1), *here = NEWN(tmp, i64, c->L + 1);
  for (u32 e = 0; e <= c->L; e++) behind[e] = e == c->L ? 0 : NEVER;
  for (u32 i = c->n; i-- > 0;) {
    const i64 *time = times_of(c, i);
    for (u32 s = 0; s <= c->L; s++) {
      here[s] = NEVER;
      for (u32 e = s + 1; e <= c->L && time[e] - time[s] < here[s]; e++)
        here[s] = MIN(here[s], MAX(time[e] - time[s], behind[e]));
    }
    i64 *swap = behind;
    behind = here, here = swap;
  }
  return behind[0];
}

static wide square(i64 x) { return (wide)x * x; }

static void fill(chunking *c) {
  for (u32 e = 0; e <= c->L; e++) row_of(c, c->n)[e] = e == c->L ? 0 : -1;
  for (u32 i = c->n; i-- > 0;) {
    const wide *behind = row_of(c, i + 1);
    const i64 *time = times_of(c, i);
    for (u32 s = 0; s <= c->L; s++) {
      wide least = -1;
      for (u32 e = s + 1; e <= c->L && time[e] - time[s] <= c->limit; e++) {
        const wide x = behind[e] < 0 ? -1 : behind[e] + square(time[e] - time[s]);
        if (x >= 0 && (least < 0 || x < least)) least = x;
      }
      row_of(c, i)[s] = least;
    }
  }
}

static void cut(const chunking *c, u32 *end) {
  for (u32 i = 0, s = 0; i < c->n; s = end[i++]) {
    const i64 *time = times_of(c, i);
    for (end[i] = s + 1;; end[i]++) {
      const wide behind = row_of(c, i + 1)[end[i]];
      if (behind >= 0 && behind + square(time[end[i]] - time[s]) == row_of(c, i)[s]) break;
    }
  }
}

static i64 time_of(const chunking *c, const u32 *end, u32 stage) {
  return times_of(c, stage)[end[stage]] - times_of(c, stage)[stage ? end[stage - 1] : 0];
}
// Hands a layer from stage i to stage j through those between, which keep their number of layers, if no chunk gets
// empty or longer than the limit, and of all places that it concerns the busiest then does less than the
// busiest did. work: of places; then: scratch of as many.
static bool hand_on(const chunking *c, u32 *end, u32 i, u32 j, i64 *work, i64 *then) {
  const u32 from = MIN(i, j), to = MAX(i, j);
  const u32 by = i < j ? -1u : 1; // of the cuts between them
  i64 was = 0, is = 0;
  bool fits = true;
  if (i == j || end[i] - (i ? end[i - 1] : 0) == 1) return false;
  for (u32 k = from; k <= to; k++) then[place_of(c, k)] = work[place_of(c, k)];
  for (u32 k = from; k <= to; k++) then[place_of(c, k)] -= time_of(c, end, k);
  for (u32 k = from; k < to; k++) end[k] += by;
  for (u32 k = from; k <= to; k++) {
    const i64 t = time_of(c, end, k);
    fits &= t <= c->limit;
    then[place_of(c, k)] += t;
  }
  for (u32 k = from; k <= to; k++) was = MAX(was, work[place_of(c, k)]), is = MAX(is, then[place_of(c, k)]);
  if (!fits || is >= was) {
    for (u32 k = from; k < to; k++) end[k] -= by;
    return false;
  }
  for (u32 k = from; k <= to; k++) work[place_of(c, k)] = then[place_of(c, k)];
  return true;
}

static chunk_value improve(const chunking *c, u32 *end, i64 *work) {
  chunk_value v = {0};
  i64 *then = work + c->in->nplaces;
  memset(work, 0, c->in->nplaces * sizeof *work);
  for (u32 i = 0; i < c->n; i++) work[place_of(c, i)] += time_of(c, end, i);
  for (bool moved = c->n > c->in->nplaces; moved;) {
    moved = false;
    for (u32 i = 0; i < c->n; i++)
      for (u32 j = 0; j < c->n; j++) moved |= hand_on(c, end, i, j, work, then);
  }
  for (u32 r = 0; r < c->in->nplaces; r++) v.tau = MAX(v.tau, work[r]);
  for (u32 i = 0; i < c->n; i++)
    v.longest = MAX(v.longest, time_of(c, end, i)), v.squares += square(time_of(c, end, i));
  return v;
}

static bool is_better(const chunk_value *x, const chunk_value *y) {
  if (x->tau != y->tau) return x->tau < y->tau;
  return x->longest != y->longest ? x->longest < y->longest : x->squares < y->squares;
}

// [kind * (layers + 1) + cut]: of the layers before it. NULL: 0.
static i64 *sums_before(arena *tmp, const balance_passes *in, const i64 *const *ps) {
  const u32 row = in->nlayers + 1;
  i64 *sum = ZNEWN(tmp, i64, (size_t)in->nkinds * row);
  for (u32 k = 0; ps && k < in->nkinds; k++)
    for (u32 i = 0; i < in->nlayers; i++) sum[k * row + i + 1] = sum[k * row + i] + ps[k][i];
  return sum;
}

static void even_out(arena *tmp, chunking *c, i64 tau_bound, u32 *end) {
  static const u32 above[] = {0, 1, 2, 4, 8, 16, 64}; // eighths of the least longest chunk
  u32 *other = NEWN(tmp, u32, c->n);
  i64 *work = NEWN(tmp, i64, 2 * c->in->nplaces);
  chunk_value best = {INT64_MAX, 0, 0};
  c->squares = NEWN(tmp, wide, (size_t)(c->n + 1) * (c->L + 1));
  const i64 longest = least_longest(tmp, c);
  for (u32 k = 0; k < (c->in->nchunks > 1 ? COUNT_OF(above) : 1) && best.tau > tau_bound; k++) {
    c->limit = longest + longest / 8 * above[k];
    fill(c);
    cut(c, other);
    const chunk_value v = improve(c, other, work);
    if (!is_better(&v, &best)) continue;
    best = v;
    memcpy(end, other, c->n * sizeof *end);
  }
}

static void measure(arena *tmp, const chunking *c, u32 *end, balance_chunked *out) {
  i64 *work = ZNEWN(tmp, i64, c->in->nplaces);
  for (u32 i = 0; i < c->n; i++) {
    const i64 t = time_of(c, end, i),
              send = c->in->send_ps && i + 1 < c->n ? c->in->send_ps[place_of(c, i)][end[i]] : 0;
    work[place_of(c, i)] += t;
    out->longest_ps = MAX(out->longest_ps, MAX(t, send)),
    out->tau_ps = MAX(out->tau_ps, work[place_of(c, i)]);
  }
  out->end = end;
}

balance_fault balance_chunks(arena *a, const balance_passes *in, balance_chunked *out) {
  *out = (balance_chunked){0};
  const bool in_all = in->nchunks == 1 && in->micro;
  assert(in_all || (!in->send_ps && !in->once_ps && !in->memory_bytes));
  if ((u64)in->nplaces * in->nchunks > in->nlayers) return BALANCE_STAGES;
  arena *tmp = arena_new();
  chunking c = {.in = in, .n = in->nplaces * in->nchunks, .L = in->nlayers};
  u32 *end = NEWN(a, u32, c.n), *count = ZNEWN(tmp, u32, in->nkinds);
  balance_fault fault = BALANCE_OK;
  c.time = sums_before(tmp, in, in->time_ps);
  for (u32 r = 0; r < in->nplaces; r++) count[in->kind[r]]++;
  out->tau_bound_ps = speed_bound(tmp, c.L, in->nkinds, in->time_ps, count, in->nplaces);
  if (in_all) fault = chunks_in_order(tmp, in, c.time, sums_before(tmp, in, in->once_ps), end);
  if (!in_all) even_out(tmp, &c, out->tau_bound_ps, end);
  if (fault == BALANCE_OK) measure(tmp, &c, end, out);
  arena_free(tmp);
  return fault;
}
