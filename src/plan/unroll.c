// unroll.c - the order of a schedule's row or file as that of a plan, where a stage of it stands for several segments.
//
// Idea: a row (or a file whose stages lie as a row's) knows what lies on all places and one stage on each. The plan has a segment for every stretch of main:
// what lies on all places may be in several, and so may what a place has between them, and a stage that a forward
// passes several times is a segment in each pass. A task of the row becomes the tasks of its segments, one after the
// other; in backwards from the last one.
#include "plan/internal.h"

bool plan_unrolls(const sched_row *row) { return sched_nwide(row) || sched_passes(row) > 1; }

bool plan_is_unrolled(const plan *pn) {
  if (pn->made.row) return plan_unrolls(pn->made.row);
  return pn->made.file && sched_ends_wide(pn->made.file);
}

// The stage of the row that each segment is of; of those with passes a forward's pass stands above it.
enum { PASS_SHIFT = 16 };
static u32 *stages_in_passes(arena *a, const plan *pn) {
  u32 *of = NEWN(a, u32, pn->nsegments + 1);
  for (u32 i = 0; i < pn->nsegments; i++) of[i] = i % pn->nseqs | i / pn->nseqs << PASS_SHIFT;
  return of;
}

static u32 *stages_of_segments(arena *a, const plan *pn, u32 npasses) {
  if (npasses > 1) return stages_in_passes(a, pn);
  u32 *of = NEWN(a, u32, pn->nsegments + 1), *first = NEWN(a, u32, pn->nsegments + 1), n = 0;
  for (u32 i = 0; i < pn->nsegments; i++) {
    const plan_submesh *on = &pn->segments[i].on;
    of[i] = i + 1 == pn->nsegments ? pn->nseqs + 1 : 0;
    if (!on->nfix) continue;
    u32 q = 0; // places are numbered as segments first use them
    while (q < n && (pn->segments[first[q]].on.fix[0].axis != on->fix[0].axis ||
                     pn->segments[first[q]].on.fix[0].at != on->fix[0].at))
      q++;
    if (q == n) first[n++] = i;
    of[i] = q + 1;
  }
  return of;
}

// Segments by the stage that they are of, in order: list[begin[stage]] to list[begin[stage + 1] - 1].
typedef struct {
  u32 *begin, *list;
} segment_lists;

static segment_lists list_segments(arena *a, const u32 *of, u32 nsegments, u32 nstages) {
  segment_lists x = {ZNEWN(a, u32, nstages + 2), NEWN(a, u32, nsegments + 1)};
  for (u32 i = 0; i < nsegments; i++) x.begin[(of[i] & UINT16_MAX) + 2]++;
  for (u32 k = 2; k < nstages + 2; k++) x.begin[k] += x.begin[k - 1];
  for (u32 i = 0; i < nsegments; i++) x.list[x.begin[(of[i] & UINT16_MAX) + 1]++] = i;
  return x;
}

const sched_seq *plan_unroll(arena *a, const plan *pn, const sched *row) {
  const u32 *of = stages_of_segments(a, pn, row->npasses);
  const segment_lists x = list_segments(a, of, pn->nsegments, MAX(row->nstages, pn->nseqs + 2));
  sched_seq *seq = NEWN(a, sched_seq, row->nplaces + 1);
  for (u32 p = 0; p < row->nplaces; p++) {
    u32 n = 0;
    for (u32 i = 0; i < row->seq[p].n; i++) {
      const u32 stage = row->seq[p].v[i].stage;
      n += x.begin[stage + 1] - x.begin[stage];
    }
    sched_task *v = NEWN(a, sched_task, n + 1);
    n = 0;
    for (u32 i = 0; i < row->seq[p].n; i++) {
      const sched_task t = row->seq[p].v[i];
      const u32 begin = x.begin[t.stage], end = x.begin[t.stage + 1];
      for (u32 k = begin; k < end; k++) {
        const u32 at = x.list[t.kind == TASK_F ? k : begin + end - 1 - k];
        // Of a backward segments of all passes are its own: what has none is left out later
        if (t.kind == TASK_F && of[at] >> PASS_SHIFT != t.pass) continue;
        v[n] = t;
        v[n].stage = (u16)at, v[n++].pass = 0;
      }
    }
    seq[p] = (sched_seq){n, v};
  }
  return seq;
}

// Of what lies on all places nothing is said. Of several passes the last one keeps its values.
u32 *plan_unroll_live(arena *a, const plan *pn, u32 npasses, const u32 *live) {
  const u32 *of = stages_of_segments(a, pn, npasses), last = npasses - 1;
  u32 *out = ZNEWN(a, u32, pn->nsegments + 1);
  for (u32 i = 0; i < pn->nsegments; i++)
    if (live && pn->segments[i].on.nfix && of[i] >> PASS_SHIFT == last) out[i] = live[of[i] & UINT16_MAX];
  return out;
}

bool *plan_unroll_split(arena *a, const plan *pn, const sched *made) {
  const u32 *of = stages_of_segments(a, pn, made->npasses);
  bool *out = ZNEWN(a, bool, pn->nsegments + 1);
  for (u32 i = 0; i < pn->nsegments; i++) out[i] = made->split[of[i] & UINT16_MAX];
  return out;
}
