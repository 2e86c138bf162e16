// straggler_table.c - the operations of a pipelined job from a table (Parquet): a row for every operation of every
// worker and step, with the columns of `names` below. Not the bytes of the table (parquet.c).
//
// Idea: the same operations as in a timeline (straggler.c), but here every communication has the time at which its own
// member came, and so the first start of a step is there. Times count from the start of the step: steps are put one
// behind the other, as what lies between them was not recorded.
#include "trace/parquet.h"
#include "trace/straggler.h"
#include <math.h>
#include <stdlib.h>

enum {
  C_DATA,
  C_STAGE,
  C_RANK,
  C_STEP,
  C_TYPE,
  C_START,
  C_DURATION,
  C_SEQ,
  C_CHUNK,
  C_MICROBATCH,
  C_COLUMNS
};
static const struct {
  const char *name;
  parquet_kind kind;
} columns[C_COLUMNS] = {
    [C_DATA] = {"dp_rank", PARQUET_WHOLE},     [C_STAGE] = {"stage", PARQUET_WHOLE},
    [C_RANK] = {"rank", PARQUET_WHOLE},        [C_STEP] = {"step", PARQUET_WHOLE},
    [C_TYPE] = {"optype", PARQUET_TEXT},       [C_START] = {"start_ts", PARQUET_REAL}, // seconds
    [C_DURATION] = {"duration", PARQUET_REAL}, [C_SEQ] = {"seq_id", PARQUET_WHOLE},
    [C_CHUNK] = {"mc", PARQUET_WHOLE},         [C_MICROBATCH] = {"mb_id", PARQUET_WHOLE}};

typedef struct {
  timeline *l;
  parquet_value *col[C_COLUMNS];
} table;

// ---- steps one behind the other ---------------------------------------------------------------------------
typedef struct {
  u32 step;
  i64 from, to; // first start and last end, as recorded
  i64 shift;
} step_time;
typedef VEC(step_time) step_times;

static u32 step_at(arena *a, hmap *by_step, step_times *steps, u32 step) {
  const u64 h = hash_u64(step, 1); // one to one
  const u32 known = hmap_get(by_step, h);
  if (known) return known - 1;
  *vec_push(a, steps) = (step_time){.step = step, .from = INT64_MAX, .to = INT64_MIN};
  hmap_add(a, by_step, h, steps->n);
  return steps->n - 1;
}

static int by_number(const void *x, const void *y) {
  const step_time *a = *(step_time *const *)x, *b = *(step_time *const *)y;
  return a->step < b->step ? -1 : a->step > b->step;
}

static void put_behind(timeline *l) {
  hmap by_step = {0};
  step_times steps = {0};
  u32 *at = NEWN(l->tmp, u32, l->operations.n + 1);
  for (u32 k = 0; k < l->operations.n; k++) {
    const operation *o = &l->operations.v[k];
    at[k] = step_at(l->tmp, &by_step, &steps, o->step);
    assert(steps.v);
    step_time *s = &steps.v[at[k]];
    s->from = MIN(s->from, o->start_ps), s->to = MAX(s->to, o->start_ps + o->dur_ps);
  }
  step_time **order = NEWN(l->tmp, step_time *, steps.n + 1);
  for (u32 k = 0; k < steps.n; k++) order[k] = &steps.v[k];
  if (steps.n) qsort(order, steps.n, sizeof(step_time *), by_number);
  i64 end = 0;
  for (u32 k = 0; k < steps.n; k++)
    order[k]->shift = end - order[k]->from, end += order[k]->to - order[k]->from;
  for (u32 k = 0; k < l->operations.n; k++) l->operations.v[k].start_ps += steps.v[at[k]].shift;
}

// ---- workers ----------------------------------------------------------------------------------------------
// Several ranks of one stage of a data rank are its tensor ranks, in order.
static int by_rank(const void *x, const void *y) {
  const thread *a = *(thread *const *)x, *b = *(thread *const *)y;
  if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void count_tensor_ranks(timeline *l) {
  thread **t = NEWN(l->tmp, thread *, l->threads.n + 1);
  for (u32 k = 0; k < l->threads.n; k++) t[k] = &l->threads.v[k];
  if (l->threads.n) qsort(t, l->threads.n, sizeof *t, by_rank);
  for (u32 k = 1; k < l->threads.n; k++)
    if (t[k]->pid == t[k - 1]->pid && t[k]->stage == t[k - 1]->stage)
      t[k]->tensor = t[k - 1]->tensor + (t[k]->rank != t[k - 1]->rank);
}

// ---- rows -------------------------------------------------------------------------------------------------
static u32 count_of(i64 x) { return x >= 0 && x < TRACE_NONE ? (u32)x : TRACE_NONE; } // -1: not said

static u32 thread_kind(u32 row) {
  if (row == TRACE_NONE) return THREAD_OTHER;
  const u8 who = operation_rows[row].over;
  return who == NONE ? THREAD_COMPUTE : who == NEXT ? THREAD_PIPELINE : THREAD_DATA;
}

static bool take(const table *t, u64 k) { // false: not understood
  static const char *const kind_name[] = {"compute", "pp-comm", "tp-comm", "dp-comm", "misc"};
  enum { MOST = 1 << 20 }; // ranks; the longest time is 23 days
  timeline *l = t->l;
  const i64 data = t->col[C_DATA][k].whole, stage = t->col[C_STAGE][k].whole, rank = t->col[C_RANK][k].whole;
  const double start = t->col[C_START][k].real, dur = t->col[C_DURATION][k].real;
  operation o = {.name = t->col[C_TYPE][k].text,
                 .seq = t->col[C_SEQ][k].whole,
                 .step = count_of(t->col[C_STEP][k].whole)};
  const bool placed = data >= 0 && data <= MOST && stage >= 0 && stage <= MOST && rank >= 0 && rank <= MOST;
  if (!placed || !o.name.i || !(fabs(start) <= 2e6) || !(dur >= 0 && dur <= 2e6)) return false;
  o.start_ps = llround(start * 1e12), o.dur_ps = llround(dur * 1e12);
  o.row = straggler_row(sym_str(l->x->c, o.name));
  o.chunk = count_of(t->col[C_CHUNK][k].whole), o.microbatch = count_of(t->col[C_MICROBATCH][k].whole);
  const u32 kind = thread_kind(o.row);
  o.thread = straggler_thread(l, data, rank * THREADS + kind);
  thread *th = &l->threads.v[o.thread];
  if (th->named && th->stage != stage) return false; // a rank of two stages
  th->named = true, th->stage = (u32)stage, th->rank = (u32)rank;
  th->kind = sym_of(l->x->c, kind_name[kind]);
  *vec_push(l->tmp, &l->operations) = o;
  return true;
}

bool straggler_table(timeline *l) {
  enum { LIMIT = 1 << 30 };
  reading *x = l->x;
  table t = {.l = l};
  const char *bytes;
  size_t n;
  if (!input_whole(x->c, l->tmp, x->in, x->path, LIMIT, &bytes, &n)) return false;
  parquet *p = parquet_open(x->c, l->tmp, x->file, (const u8 *)bytes, n);
  if (!p) return false;
  for (u32 k = 0; k < C_COLUMNS; k++) {
    static const parquet_value none[] = {
        [PARQUET_WHOLE] = {.whole = -1}, [PARQUET_REAL] = {.real = NAN}, [PARQUET_TEXT] = {0}};
    t.col[k] = parquet_column(p, l->tmp, columns[k].name, columns[k].kind, none[columns[k].kind]);
    if (!t.col[k]) return false;
  }
  x->about->events = parquet_rows(p);
  for (u64 k = 0; k < parquet_rows(p); k++)
    if (!take(&t, k)) x->about->skipped++;
  count_tensor_ranks(l);
  put_behind(l);
  return true;
}
