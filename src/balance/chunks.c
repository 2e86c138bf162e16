// chunks.c - cuts for several chunks on every place of a given order.
//
// Idea: in a given order the last stages are a number, so a table over (stage, cut) is exact. It is filled
// twice: with the longest chunk from a stage on, which gives the limit, then with the sum of squares under
// it. What places do in all their chunks is improved by moving single cuts.
#include "balance/internal.h"

typedef struct {
  const balance_passes *in;
  u32 n, L;      // stages, layers
  i64 *time;     // [kind * (L + 1) + cut]: of the layers before it
  i64 limit;     // of a chunk
  wide *squares; // [stage * (L + 1) + cut]: from this stage on, which begins there; -1: impossible
} chunking;

static const i64 *times_of(const chunking *c, u32 stage) {
  return c->time + c->in->kind[stage % c->in->nplaces] * (c->L + 1);
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
    const i64 *time = times_of(c, i);
    const wide *behind = row_of(c, i + 1);
    for (u32 s = 0; s <= c->L; s++) {
      wide least = -1;
      for (u32 e = s + 1; e <= c->L && time[e] - time[s] <= c->limit; e++) {
        wide x = behind[e] < 0 ? -1 : behind[e] + square(time[e] - time[s]);
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
      wide behind = row_of(c, i + 1)[end[i]];
      if (behind >= 0 && behind + square(time[end[i]] - time[s]) == row_of(c, i)[s]) break;
    }
  }
}

static i64 time_of(const chunking *c, const u32 *end, u32 stage) {
  return times_of(c, stage)[end[stage]] - times_of(c, stage)[stage ? end[stage - 1] : 0];
}

// Moves the end of a stage by a layer if no chunk gets empty or longer than the limit, and that of the two
// places which does more then does less than the one that did more before.
static bool move(const chunking *c, u32 *end, u32 stage, bool later, i64 *work) {
  u32 p = stage % c->in->nplaces, q = (stage + 1) % c->in->nplaces, was = end[stage], next = stage + 1;
  u32 first = stage ? end[stage - 1] + 1 : 1, last = end[next] - 1;
  if (p == q || (later ? was == last : was == first)) return false;
  i64 of_p = work[p] - time_of(c, end, stage), of_q = work[q] - time_of(c, end, next);
  end[stage] = later ? was + 1 : was - 1;
  i64 here = time_of(c, end, stage), there = time_of(c, end, next);
  of_p += here, of_q += there;
  if (here <= c->limit && there <= c->limit && MAX(of_p, of_q) < MAX(work[p], work[q])) {
    work[p] = of_p, work[q] = of_q;
    return true;
  }
  end[stage] = was;
  return false;
}

static i64 improve(const chunking *c, u32 *end, i64 *work) {
  i64 most = 0;
  for (u32 i = 0; i < c->n; i++) work[i % c->in->nplaces] += time_of(c, end, i);
  for (bool moved = true; moved;) {
    moved = false;
    for (u32 i = 0; i + 1 < c->n; i++) moved |= move(c, end, i, false, work) || move(c, end, i, true, work);
  }
  for (u32 r = 0; r < c->in->nplaces; r++) most = MAX(most, work[r]);
  return most;
}

balance_fault balance_chunks(arena *a, const balance_passes *in, balance_chunked *out) {
  *out = (balance_chunked){0};
  if ((u64)in->nplaces * in->nchunks > in->nlayers) return BALANCE_STAGES;
  arena *tmp = arena_new();
  chunking c = {.in = in, .n = in->nplaces * in->nchunks, .L = in->nlayers};
  u32 *end = NEWN(a, u32, c.n), *count = ZNEWN(tmp, u32, in->nkinds);
  c.time = ZNEWN(tmp, i64, (size_t)in->nkinds * (c.L + 1));
  for (u32 k = 0; k < in->nkinds; k++)
    for (u32 i = 0; i < c.L; i++)
      c.time[k * (c.L + 1) + i + 1] = c.time[k * (c.L + 1) + i] + in->time_ps[k][i];
  c.squares = NEWN(tmp, wide, (size_t)(c.n + 1) * (c.L + 1));
  out->longest_ps = c.limit = least_longest(tmp, &c);
  fill(&c);
  cut(&c, end);
  out->tau_ps = improve(&c, end, ZNEWN(tmp, i64, in->nplaces));
  for (u32 r = 0; r < in->nplaces; r++) count[in->kind[r]]++;
  out->end = end;
  out->tau_bound_ps = speed_bound(tmp, c.L, in->nkinds, in->time_ps, count, in->nplaces);
  arena_free(tmp);
  return BALANCE_OK;
}
