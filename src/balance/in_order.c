// in_order.c - the cuts by which `micro` microbatches take the least time, of one chunk on each place of a given order.
//
// Idea: a step takes a sum over all stages, and the longest of what a stage does for all microbatches but the first.
// Under a limit of the longest the least sum is a table over (stage, first layer), from the last stage on. With fewer
// layers on slow places a longer longest stage may have the less sum, so limits are tried, from the longest that can
// pay downwards. How far a stage reaches under a limit and in memory grows with its first layer, so the least sum of
// all its ends is that of a window that slides: a table takes O(stages * layers).
//
// What a stage waits for until a microbatch comes back is the sum of the table itself. Of two sums for the same stages
// and layers the less one keeps every limit that the other keeps, so the table stays exact.
#include "balance/internal.h"

// A stage; arrays are by cut.
typedef struct {
  const i64 *time; // of the layers before it
  i64 *all;        // the same for all microbatches but the first, and once
  i64 *send;       // of one microbatch to the next stage
  u32 *reach;      // end of the longest stage that begins here and fits its place
  i64 alive;       // microbatches under way for which it waits; 0: it does not
} order_stage;
typedef struct {
  const balance_passes *in;
  u32 n, L;
  i64 others; // microbatches but one
  order_stage *stage;
  i64 *
      sum; // [stage * (L + 1) + cut]: least for the layers behind the cut, from this stage on; NEVER: none fits
  u32 *window; // scratch: ends
} ordering;

static i64 *row_of(const ordering *o, u32 stage) { return o->sum + (size_t)stage * (o->L + 1); }

// Every stage has a layer: so far stage i ends at most, and so far it begins. The last one ends with the last layer.
static u32 last_end(const ordering *o, u32 i) { return o->L - (o->n - 1 - i); }
static u32 last_start(const ordering *o, u32 i) { return i ? last_end(o, i) - 1 : 0; }
static u32 first_end(const ordering *o, u32 i, u32 s) { return i + 1 < o->n ? s + 1 : o->L; }

static u32 alive_of(const ordering *o, u32 i) {
  return o->in->alive ? o->in->alive[i] : MIN(o->n - i, o->in->micro);
}

static void find_reach(const ordering *o, u32 i, u32 place) {
  const balance_passes *in = o->in;
  for (u32 s = i; s <= last_start(o, i); s++) {
    const u32 most = last_end(o, i);
    i64 held = 0, work = 0;
    u32 e = in->memory_bytes ? s : most;
    for (; e < most; e++) {
      held += in->fixed_bytes[e] + in->kept_bytes[e] * alive_of(o, i), work = MAX(work, in->work_bytes[e]);
      if (held + work > in->memory_bytes[place]) break;
    }
    o->stage[i].reach[s] = e;
  }
}

static void open_stage(arena *tmp, const ordering *o, u32 i, const i64 *time, const i64 *once) {
  const balance_passes *in = o->in;
  const u32 place = in->place ? in->place[i] : i, row = in->kind[place] * (o->L + 1);
  order_stage *st = &o->stage[i];
  *st = (order_stage){.time = time + row,
                      .all = NEWN(tmp, i64, o->L + 1),
                      .send = ZNEWN(tmp, i64, o->L + 1),
                      .reach = NEWN(tmp, u32, o->L + 1),
                      .alive = in->waits && o->others >= (i64)alive_of(o, i) ? alive_of(o, i) : 0};
  for (u32 e = 0; e <= o->L; e++) st->all[e] = o->others * time[row + e] + once[row + e];
  if (in->send_ps && i + 1 < o->n) memcpy(st->send, in->send_ps[place], (o->L + 1) * sizeof *st->send);
  find_reach(o, i, place);
}

// Of the longest stage, if it is as short as can be; without what a stage waits for. NEVER: no cuts fit.
static i64 least_longest(arena *tmp, const ordering *o) {
  i64 *behind = NEWN(tmp, i64, o->L + 1), *here = NEWN(tmp, i64, o->L + 1);
  for (u32 e = 0; e <= o->L; e++) behind[e] = e == o->L ? 0 : NEVER;
  for (u32 i = o->n; i-- > 0;) {
    const order_stage *st = &o->stage[i];
    for (u32 s = i; s <= last_start(o, i); s++) {
      here[s] = NEVER;
      for (u32 e = first_end(o, i, s); e <= st->reach[s] && st->all[e] - st->all[s] < here[s]; e++) {
        const i64 own = MAX(st->all[e] - st->all[s], o->others * st->send[e]);
        here[s] = MIN(here[s], MAX(own, behind[e]));
      }
    }
    i64 *swap = behind;
    behind = here, here = swap;
  }
  return behind[0];
}

// Until all microbatches but the first have come back, if one takes `sum` from this stage on.
static i64 waiting(const ordering *o, u32 i, i64 sum) {
  return o->stage[i].alive ? o->others * sum / o->stage[i].alive : 0;
}

// What a sum is with this end, but for the time before the stage. NEVER: no cuts, or the send is longer than the limit.
static i64 sum_with(const ordering *o, u32 i, u32 e, i64 limit) {
  const order_stage *st = &o->stage[i];
  const i64 behind = row_of(o, i + 1)[e];
  return behind >= NEVER || o->others * st->send[e] > limit
             ? NEVER
             : behind + st->time[e] + o->in->ways * st->send[e];
}

// Least sums of a stage under the limit. The window has ends in descending order whose sums descend, too.
static void fill_stage(const ordering *o, u32 i, i64 limit) {
  const order_stage *st = &o->stage[i];
  i64 *sum = row_of(o, i);
  u32 from = 0, to = 0, most = last_end(o, i), next = most + 1;
  for (u32 s = last_start(o, i) + 1; s-- > i;) {
    while (next > first_end(o, i, s)) {
      const i64 x = sum_with(o, i, --next, limit);
      if (x >= NEVER) continue;
      while (to > from && sum_with(o, i, o->window[to - 1], limit) >= x) to--;
      o->window[to++] = next;
    }
    most = MIN(most, st->reach[s]);
    while (most > s && st->all[most] - st->all[s] > limit) most--;
    while (from < to && o->window[from] > most) from++;
    sum[s] = from < to ? sum_with(o, i, o->window[from], limit) - st->time[s] : NEVER;
    if (sum[s] < NEVER && waiting(o, i, sum[s]) > limit) sum[s] = NEVER;
  }
}

static i64 fill(const ordering *o, i64 limit) {
  for (u32 e = 0; e <= o->L; e++) row_of(o, o->n)[e] = e == o->L ? 0 : NEVER;
  for (u32 i = o->n; i-- > 0;) fill_stage(o, i, limit);
  return row_of(o, 0)[0];
}

// The cuts of the table, with the fewest layers in each stage in turn. Returns their longest.
static i64 cut(const ordering *o, i64 limit, u32 *end) {
  i64 longest = 0;
  for (u32 i = 0, s = 0; i < o->n; s = end[i++]) {
    const order_stage *st = &o->stage[i];
    const i64 sum = row_of(o, i)[s];
    u32 e = first_end(o, i, s);
    while (sum_with(o, i, e, limit) - st->time[s] != sum) e++;
    end[i] = e;
    longest = MAX(MAX(longest, waiting(o, i, sum)), MAX(st->all[e] - st->all[s], o->others * st->send[e]));
  }
  return longest;
}

static void least_in_all(arena *tmp, const ordering *o, i64 least, u32 *end) {
  u32 *other = NEWN(tmp, u32, o->n);
  const i64 no_limit = NEVER - 1;
  i64 limit = least, sum = fill(o, limit);
  if (sum >= NEVER) sum = fill(o, limit = no_limit); // it waits for longer
  i64 longest = cut(o, limit, end), best = sum + longest, best_longest = longest;
  limit = limit == least ? best - fill(o, no_limit) : longest - 1; // no sum is less than that
  for (;;) {
    sum = fill(o, limit);
    if (sum >= NEVER || sum + least > best) break;
    longest = cut(o, limit, other);
    limit = longest - 1;
    if (sum + longest > best || (sum + longest == best && longest >= best_longest)) continue;
    best = sum + longest, best_longest = longest; // of equal ones the shortest
    memcpy(end, other, o->n * sizeof *end);
  }
}

balance_fault chunks_in_order(arena *tmp, const balance_passes *in, const i64 *time, const i64 *once,
                              u32 *end) {
  ordering o = {.in = in, .n = in->nplaces, .L = in->nlayers, .others = (i64)in->micro - 1};
  o.stage = NEWN(tmp, order_stage, o.n), o.window = NEWN(tmp, u32, o.L + 1);
  o.sum = NEWN(tmp, i64, (size_t)(o.n + 1) * (o.L + 1));
  for (u32 i = 0; i < o.n; i++) open_stage(tmp, &o, i, time, once);
  const i64 least = least_longest(tmp, &o);
  if (least >= NEVER) return BALANCE_MEMORY;
  least_in_all(tmp, &o, least, end);
  return BALANCE_OK;
}
