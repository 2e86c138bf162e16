// automatic.c - ZB-1p and ZB-2p: orders made for the times of the stages within a number of activations on every place,
// by the heuristic of "Zero Bubble Pipeline Parallelism" (Qi et al., 2023, section 3.1).
//
// Idea: first every place runs as many forwards as it has room and time for before its first gradient comes. Then rounds,
// in each of which every place runs an I, from the last place to the first, so that it is known when its gradient comes,
// and a forward, from the first to the last. W fills what lies between: where it fits; where it does not, if the place
// would else idle more than any other; and where there is no room for a forward. What is left of W ends the order. Some
// decisions are good here and bad there, so each is a switch; all are tried. The order of the row by hand (zb-h1, zb-h2)
// stays unless one of these is shorter. ZB-2p tries what ZB-1p does as well: with room for more the heuristic may do worse.
#include "sched/internal.h"

typedef enum {
  SMALL_IDLE,
  SMALL_WORST,
  SMALL_FILL,
  SMALLS
} small_gaps; // what becomes of gaps that are too small for W
typedef struct {
  bool eager; // one more forward before the first gradient, though that then waits
  bool late;  // a place that is two forwards ahead of the next one puts off every forward by a round
  small_gaps small;
} switches;

typedef struct {
  const sched_shape *s;
  arena *a;
  u32 n, micro, limit; // places; limit: activations on each
  const u64 *dur[TASK_KINDS], *send;
  u32 *reads, *read, *back, *gives; // stage k reads read[reads[k]] ..; it gets gradients of gives[back[k]] ..
  u64 *end[2];                      // of F, of I: [stage * micro + microbatch]
  u64 *clock, *first, *idle, worst; // by place; idle: since its first task; the most of all places
  u64 *late;            // by place: how late its tasks may be in an order no longer than the best one
  u32 *ran[TASK_KINDS]; // by place: tasks of the kind
  bool *owed;           // a forward that was put off
  sched_task *t;        // the order that is made: 3 * micro of a place after those of the one before
} making;

static sched_task *next_task(making *x, u32 p) {
  return x->t + (size_t)3 * x->micro * p + x->ran[TASK_F][p] + x->ran[TASK_I][p] + x->ran[TASK_W][p];
}

// When what the next F or I of a stage needs of other stages is there. They have run it.
static u64 ready(const making *x, u32 p, task_kind kind) {
  const bool back = kind == TASK_I;
  const u32 m = x->ran[kind][p], *at = back ? x->back : x->reads, *of = back ? x->gives : x->read;
  u64 t = 0;
  for (u32 k = at[p]; k < at[p + 1]; k++)
    t = MAX(t, x->end[back][(size_t)of[k] * x->micro + m] + x->send[MIN(of[k], p)]);
  return t;
}

static bool is_known(const making *x, u32 p, task_kind kind) {
  const bool back = kind == TASK_I;
  const u32 m = x->ran[kind][p], *at = back ? x->back : x->reads, *of = back ? x->gives : x->read;
  for (u32 k = at[p]; k < at[p + 1]; k++)
    if (x->ran[kind][of[k]] <= m) return false;
  return !back || x->ran[TASK_F][p] > m;
}

static void run(making *x, u32 p, task_kind kind) {
  const u32 m = x->ran[kind][p];
  const u64 at = kind == TASK_W ? x->clock[p] : MAX(x->clock[p], ready(x, p, kind));
  *next_task(x, p) = (sched_task){.stage = (u16)p, .kind = (u8)kind, .mb = m};
  if (x->ran[TASK_F][p])
    x->idle[p] += at - x->clock[p], x->worst = MAX(x->worst, x->idle[p]);
  else
    x->first[p] = at;
  x->clock[p] = at + x->dur[kind][p];
  if (kind != TASK_W) x->end[kind == TASK_I][(size_t)p * x->micro + m] = x->clock[p];
  x->ran[kind][p]++;
}

static void begin(making *x) {
  for (u32 p = 0; p < x->n; p++) {
    x->clock[p] = x->first[p] = x->idle[p] = 0, x->owed[p] = false;
    for (u32 k = 0; k < TASK_KINDS; k++) x->ran[k][p] = 0;
  }
  x->worst = 0;
}

static bool has_w(const making *x, u32 p) { return x->ran[TASK_W][p] < x->ran[TASK_I][p]; }
static bool has_room(const making *x, u32 p) { return x->ran[TASK_F][p] - x->ran[TASK_W][p] < x->limit; }

// Until this time the place has nothing else to do.
static void fill_gap(making *x, const switches *by, u32 p, u64 until) {
  while (has_w(x, p) && x->clock[p] + x->dur[TASK_W][p] <= until) run(x, p, TASK_W);
  if (!has_w(x, p) || x->clock[p] >= until) return;
  const bool most = x->idle[p] + until - x->clock[p] > x->worst;
  if (by->small == SMALL_FILL || (by->small == SMALL_WORST && most)) run(x, p, TASK_W);
}

// ---- before the first gradients ---------------------------------------------------------------------------
// A place runs one forward more than the next one at least, so that this never waits for one that had to be made first.
static void warm_up(making *x, const switches *by) {
  u32 *warm = NEWN(x->a, u32, x->n);
  for (u32 p = 0; p < x->n; p++)
    while (x->ran[TASK_F][p] < x->micro) run(x, p, TASK_F);
  u64 *back = NEWN(x->a, u64, x->n); // when the first I ends
  for (u32 p = x->n; p-- > 0;) {
    const u64 *end = x->end[0] + (size_t)p * x->micro;
    const u32 least = MIN(MIN(x->micro, x->limit), p + 1 < x->n ? warm[p + 1] + 1 : 1);
    u64 due = end[0];
    for (u32 k = x->back[p]; k < x->back[p + 1]; k++)
      due = MAX(due, back[x->gives[k]] + x->send[MIN(x->gives[k], p)]);
    for (warm[p] = least; warm[p] < MIN(x->micro, x->limit); warm[p]++) {
      const bool begins = end[warm[p]] - x->dur[TASK_F][p] < due;
      if (end[warm[p]] > due && !(by->eager && begins)) break;
    }
    back[p] = MAX(due, end[warm[p] - 1]) + x->dur[TASK_I][p];
  }
  begin(x);
  for (u32 p = 0; p < x->n; p++)
    while (x->ran[TASK_F][p] < warm[p]) run(x, p, TASK_F);
}

// ---- rounds -------------------------------------------------------------------------------------------------
// The next forward, as soon as there is one and room for it.
static void put_forward(making *x, const switches *by, u32 p) {
  if (x->ran[TASK_F][p] == x->micro || !is_known(x, p, TASK_F)) return;
  if (!has_room(x, p)) {
    if (!has_w(x, p)) return;
    run(x, p, TASK_W);
  }
  fill_gap(x, by, p, ready(x, p, TASK_F));
  run(x, p, TASK_F);
  x->owed[p] = false;
}

static void put_back(making *x, const switches *by, u32 p) {
  fill_gap(x, by, p, ready(x, p, TASK_I));
  run(x, p, TASK_I);
}

static bool is_too_long(const making *x) {
  for (u32 p = 0; p < x->n; p++)
    if (x->first[p] + x->idle[p] > x->late[p]) return true;
  return false;
}

// False: it is longer than the best one, whatever follows.
static bool make(making *x, const switches *by) {
  begin(x);
  warm_up(x, by);
  for (u32 turn = 0; turn < x->micro; turn++) {
    if (is_too_long(x)) return false;
    for (u32 p = x->n; p-- > 0;) put_back(x, by, p);
    for (u32 p = 0; p < x->n; p++) {
      const bool ahead = p + 1 < x->n && x->ran[TASK_F][p] > x->ran[TASK_F][p + 1] + 1;
      if (by->late && ahead && !x->owed[p] && x->ran[TASK_F][p] < x->micro && is_known(x, p, TASK_F))
        x->owed[p] = true;
      else
        put_forward(x, by, p);
    }
  }
  for (u32 p = 0; p < x->n; p++)
    while (has_w(x, p)) run(x, p, TASK_W);
  return true;
}

// An order that is there, as soon as it can.
static void follow(making *x, const sched_task *t) {
  begin(x);
  for (u32 left = 3 * x->micro * x->n; left;)
    for (u32 p = 0; p < x->n; p++)
      for (;;) {
        const size_t done = (size_t)(next_task(x, p) - x->t);
        if (done == (size_t)3 * x->micro * (p + 1)) break;
        const task_kind kind = (task_kind)t[done].kind;
        if (kind != TASK_W && !is_known(x, p, kind)) break;
        run(x, p, kind), left--;
      }
}

// ---- the whole ----------------------------------------------------------------------------------------------
typedef struct {
  u64 time, span; // span: of the place that takes longest from its first task to its last
} lasts;

static lasts lasts_of(const making *x) {
  lasts l = {0};
  for (u32 p = 0; p < x->n; p++) {
    l.time = MAX(l.time, x->clock[p]);
    l.span = MAX(l.span, x->clock[p] - x->first[p]);
  }
  return l;
}

static u64 work_of(const making *x, u32 p) {
  return x->micro * (x->dur[TASK_F][p] + x->dur[TASK_I][p] + x->dur[TASK_W][p]);
}

static void no_longer_than(making *x, u64 time) {
  for (u32 p = 0; p < x->n; p++) x->late[p] = time - work_of(x, p);
}

// No order is shorter: of the last place, in a chain, what comes before its first task is there in every order.
static bool is_least(const making *x, const lasts *l) {
  u64 span = 0, before = 0, time = 0;
  for (u32 p = 0; p < x->n; p++) {
    span = MAX(span, work_of(x, p)), time = MAX(time, (x->s->nedges ? 0 : before) + work_of(x, p));
    before += x->dur[TASK_F][p] + x->send[p];
  }
  return l->time == time && l->span == span;
}

static void open_edges(making *x) {
  const sched_shape *s = x->s;
  const u32 ne = s->nedges ? s->nedges : x->n - 1;
  x->reads = ZNEWN(x->a, u32, x->n + 1), x->read = NEWN(x->a, u32, ne + 1);
  x->back = ZNEWN(x->a, u32, x->n + 1), x->gives = NEWN(x->a, u32, ne + 1);
  for (u32 p = 0; p < x->n; p++) {
    x->reads[p + 1] = x->reads[p], x->back[p + 1] = x->back[p];
    for (u32 k = 0; k < ne; k++) {
      const sched_edge e =
          s->nedges ? s->edge[k] : (sched_edge){.from = (u16)k, .to = (u16)(k + 1), .no_gradient = false};
      if (e.to == p) x->read[x->reads[p + 1]++] = e.from;
      if (e.from == p && !e.no_gradient) x->gives[x->back[p + 1]++] = e.to;
    }
  }
}

static making making_of(arena *a, const sched_shape *s) {
  making x = {.s = s, .a = a, .n = s->places, .micro = s->micro};
  const size_t tasks = (size_t)x.n * x.micro;
  u64 *one = NEWN(a, u64, x.n);
  for (u32 p = 0; p < x.n; p++) one[p] = 1;
  for (u32 k = 0; k < TASK_KINDS; k++) {
    x.dur[k] = s->times ? s->times->task[k] : one;
    x.ran[k] = NEWN(a, u32, x.n);
  }
  x.send = s->times ? s->times->send : ZNEWN(a, u64, x.n);
  x.end[0] = NEWN(a, u64, tasks), x.end[1] = NEWN(a, u64, tasks);
  x.clock = NEWN(a, u64, x.n), x.late = NEWN(a, u64, x.n), x.first = NEWN(a, u64, x.n),
  x.idle = NEWN(a, u64, x.n);
  x.owed = NEWN(a, bool, x.n), x.t = NEWN(a, sched_task, 3 * tasks);
  open_edges(&x);
  return x;
}

// Orders within a limit: that of a row by hand, and those that are made.
typedef struct {
  u32 limit;
  sched_task *(*by_hand)(const sched_shape *s, u32 place, sched_task *t);
} within;

// Keeps the order that was made in t if it is shorter than the best one; of equals the first stays.
static void keep_best(const making *x, lasts *best, sched_task *t) {
  const lasts now = lasts_of(x);
  if (now.time > best->time || (now.time == best->time && now.span >= best->span)) return;
  *best = now;
  memcpy(t, x->t, (size_t)3 * x->micro * x->n * sizeof *t);
}

// hand: room for an order.
static void try_within(making *x, const within *w, lasts *best, sched_task *hand, sched_task *t) {
  x->limit = w->limit;
  for (u32 p = 0; p < x->n; p++) w->by_hand(x->s, p, hand + (size_t)3 * x->micro * p);
  follow(x, hand);
  keep_best(x, best, t);
  for (u32 k = 0; k < 4 * SMALLS && !is_least(x, best); k++) {
    const switches by = {k & 1, k >> 1 & 1, (small_gaps)(k >> 2)};
    no_longer_than(x, best->time);
    if (make(x, &by)) keep_best(x, best, t);
  }
}

static void automatic(const sched_shape *s, u32 n, const within *w, sched_task *t) {
  if (!s->backward) {
    for (u32 p = 0; p < s->places; p++) w->by_hand(s, p, t + (size_t)s->micro * p);
    return;
  }
  arena *a = arena_new();
  making x = making_of(a, s);
  sched_task *hand = NEWN(a, sched_task, (size_t)3 * s->micro * s->places);
  lasts best = {UINT64_MAX, UINT64_MAX};
  for (u32 k = 0; k < n; k++) try_within(&x, &w[k], &best, hand, t);
  arena_free(a);
}

void fill_zb_1p(const sched_shape *s, sched_task *t) {
  automatic(s, 1, (within[]){{s->places, fill_zb_h1}}, t);
}
void fill_zb_2p(const sched_shape *s, sched_task *t) {
  automatic(s, 2, (within[]){{2 * s->places, fill_zb_h2}, {s->places, fill_zb_h1}}, t);
}
