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
  i64 *once;     // likewise: in->once_ps
  i64 limit;     // of a chunk
  bool in_all;   // times are added up, not their squares, and the limit is of all microbatches
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
static i64 send_of(const chunking *c, u32 stage, u32 e) {
  return c->in->send_ps && stage + 1 < c->n ? c->in->send_ps[place_of(c, stage)][e] : 0;
}

// What is limited: a microbatch's time in layers [s, e), or in the send behind them; of all microbatches but the first,
// with what comes once.
static i64 stretch(const chunking *c, u32 stage, u32 s, u32 e) {
  const i64 *time = times_of(c, stage), *once = c->once + (time - c->time);
  return c->in_all ? (c->in->micro - 1) * (time[e] - time[s]) + once[e] - once[s] : time[e] - time[s];
}
static i64 send_stretch(const chunking *c, u32 stage, u32 e) {
  return (c->in_all ? c->in->micro - 1 : 1) * send_of(c, stage, e);
}
static i64 longest_of(const chunking *c, u32 stage, u32 s, u32 e) {
  return MAX(stretch(c, stage, s, e), send_stretch(c, stage, e));
}

// What has been taken into a stage, layer by layer.
typedef struct {
  i64 fixed, kept, work;
} held;
static bool holds(const chunking *c, u32 stage, u32 layer, held *h) {
  const balance_passes *in = c->in;
  if (!in->memory_bytes) return true;
  const u32 alive = in->alive ? in->alive[stage] : in->micro ? MIN(c->n - stage, in->micro) : c->n - stage;
  h->fixed += in->fixed_bytes[layer], h->kept += in->kept_bytes[layer];
  h->work = MAX(h->work, in->work_bytes[layer]);
  return h->fixed + h->kept * alive + h->work <= in->memory_bytes[place_of(c, stage)];
}

static wide *row_of(const chunking *c, u32 stage) { return c->squares + (size_t)stage * (c->L + 1); }

// The longest chunk from a stage on that begins at s, if it ends where that is shortest.
static i64 least_longest(arena *tmp, const chunking *c) {
  i64 *behind = NEWN(tmp, i64, c->L + 1), *here = NEWN(tmp, i64, c->L + 1);
  for (u32 e = 0; e <= c->L; e++) behind[e] = e == c->L ? 0 : NEVER;
  for (u32 i = c->n; i-- > 0;) {
    for (u32 s = 0; s <= c->L; s++) {
      held h = {0};
      here[s] = NEVER;
      for (u32 e = s + 1; e <= c->L && stretch(c, i, s, e) < here[s] && holds(c, i, e - 1, &h); e++)
        here[s] = MIN(here[s], MAX(longest_of(c, i, s, e), behind[e]));
    }
    i64 *swap = behind;
    behind = here, here = swap;
  }
  return behind[0];
}

static wide square(i64 x) { return (wide)x * x; }

// Of layers [s, e) as a stage; -1: longer than the limit.
static wide weight(const chunking *c, u32 stage, u32 s, u32 e) {
  const i64 *time = times_of(c, stage);
  if (send_stretch(c, stage, e) > c->limit) return -1;
  return c->in_all ? time[e] - time[s] + c->in->ways * send_of(c, stage, e) : square(time[e] - time[s]);
}

static void fill(chunking *c) {
  for (u32 e = 0; e <= c->L; e++) row_of(c, c->n)[e] = e == c->L ? 0 : -1;
  for (u32 i = c->n; i-- > 0;) {
    const wide *behind = row_of(c, i + 1);
    for (u32 s = 0; s <= c->L; s++) {
      wide least = -1;
      held h = {0};
      for (u32 e = s + 1; e <= c->L && stretch(c, i, s, e) <= c->limit && holds(c, i, e - 1, &h); e++) {
        const wide own = behind[e] < 0 ? -1 : weight(c, i, s, e), x = own < 0 ? -1 : behind[e] + own;
        if (x >= 0 && (least < 0 || x < least)) least = x;
      }
      row_of(c, i)[s] = least;
    }
  }
}

static void cut(const chunking *c, u32 *end) {
  for (u32 i = 0, s = 0; i < c->n; s = end[i++])
    for (end[i] = s + 1;; end[i]++) {
      const wide behind = row_of(c, i + 1)[end[i]], own = behind < 0 ? -1 : weight(c, i, s, end[i]);
      if (own >= 0 && behind + own == row_of(c, i)[s]) break;
    }
}

static i64 time_of(const chunking *c, const u32 *end, u32 stage) {
  return times_of(c, stage)[end[stage]] - times_of(c, stage)[stage ? end[stage - 1] : 0];
}
static i64 longest_at(const chunking *c, const u32 *end, u32 stage) {
  return longest_of(c, stage, stage ? end[stage - 1] : 0, end[stage]);
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
    v.longest = MAX(v.longest, longest_at(c, end, i)), v.squares += square(time_of(c, end, i));
  return v;
}

static bool is_better(const chunk_value *x, const chunk_value *y) {
  if (x->tau != y->tau) return x->tau < y->tau;
  return x->longest != y->longest ? x->longest < y->longest : x->squares < y->squares;
}

// One chunk on each place: the cuts by which `micro` microbatches take the least time in all. With fewer layers on slow
// places a longer longest chunk may have the less sum. From the longest that can pay downwards each step has the least
// sum under a limit.
static void least_in_all(arena *tmp, chunking *c, u32 *end, chunk_value *v) {
  u32 *other = end + c->n;
  c->in_all = true;
  const i64 least = c->limit = least_longest(tmp, c);
  fill(c);
  cut(c, end);
  wide best = row_of(c, 0)[0] + least;
  i64 best_longest = least;
  c->limit = NEVER - 1;
  fill(c);
  c->limit = (i64)(best - row_of(c, 0)[0]); // no sum is less than that
  for (;;) {
    i64 longest = 0;
    fill(c);
    const wide sum = row_of(c, 0)[0];
    if (sum < 0 || sum + least > best) break;
    cut(c, other);
    for (u32 i = 0; i < c->n; i++) longest = MAX(longest, longest_at(c, other, i));
    c->limit = longest - 1;
    if (sum + longest > best || (sum + longest == best && longest >= best_longest)) continue;
    best = sum + longest, best_longest = longest; // of equal ones the shortest
    memcpy(end, other, c->n * sizeof *end);
  }
  c->in_all = false;
  *v = (chunk_value){0};
  for (u32 i = 0; i < c->n; i++)
    v->tau = MAX(v->tau, time_of(c, end, i)), v->longest = MAX(v->longest, longest_at(c, end, i));
}

// [kind * (layers + 1) + cut]: of the layers before it. NULL: 0.
static i64 *sums_before(arena *tmp, const balance_passes *in, const i64 *const *ps) {
  const u32 row = in->nlayers + 1;
  i64 *sum = ZNEWN(tmp, i64, (size_t)in->nkinds * row);
  for (u32 k = 0; ps && k < in->nkinds; k++)
    for (u32 i = 0; i < in->nlayers; i++) sum[k * row + i + 1] = sum[k * row + i] + ps[k][i];
  return sum;
}

balance_fault balance_chunks(arena *a, const balance_passes *in, balance_chunked *out) {
  static const u32 above[] = {0, 1, 2, 4, 8, 16, 64}; // eighths of the least longest chunk
  *out = (balance_chunked){0};
  assert(in->nchunks == 1 || (!in->send_ps && !in->once_ps && !in->memory_bytes));
  if ((u64)in->nplaces * in->nchunks > in->nlayers) return BALANCE_STAGES;
  arena *tmp = arena_new();
  chunking c = {.in = in, .n = in->nplaces * in->nchunks, .L = in->nlayers};
  u32 *end = NEWN(tmp, u32, 2 * c.n), *count = ZNEWN(tmp, u32, in->nkinds);
  i64 *work = NEWN(tmp, i64, 2 * in->nplaces);
  chunk_value best = {INT64_MAX, 0, 0};
  c.time = sums_before(tmp, in, in->time_ps), c.once = sums_before(tmp, in, in->once_ps);
  for (u32 r = 0; r < in->nplaces; r++) count[in->kind[r]]++;
  out->tau_bound_ps = speed_bound(tmp, c.L, in->nkinds, in->time_ps, count, in->nplaces);
  c.squares = NEWN(tmp, wide, (size_t)(c.n + 1) * (c.L + 1));
  const i64 longest = least_longest(tmp, &c);
  if (longest >= NEVER) {
    arena_free(tmp);
    return BALANCE_MEMORY;
  }
  for (u32 k = 0; k < (in->nchunks > 1 ? COUNT_OF(above) : 1) && best.tau > out->tau_bound_ps; k++) {
    c.limit = longest + longest / 8 * above[k];
    fill(&c);
    cut(&c, end);
    const chunk_value v = improve(&c, end, work);
    if (!is_better(&v, &best)) continue;
    best = v;
    out->end = arena_dup(a, end, c.n * sizeof *end);
  }
  if (in->nchunks == 1 && in->micro) {
    least_in_all(tmp, &c, end, &best);
    out->end = arena_dup(a, end, c.n * sizeof *end);
  }
  out->longest_ps = best.longest, out->tau_ps = best.tau;
  arena_free(tmp);
  return BALANCE_OK;
}
