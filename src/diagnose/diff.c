// diff.c - two recordings of a job compared: is one slower, by more than noise, and where the time went.
//
// Idea: steps of one job vary. A step takes what its slowest rank takes; the means over steps are compared with the
// scatter of steps (Welch's test), so that a difference is told only if steps that are alike would seldom show it.
// Where the time went is per rank and step, so that jobs with other numbers of steps and ranks can be compared. A
// communication lasts until the last member has come, so where all members were recorded its waiting is split from its transfer.
#include "diagnose/internal.h"
#include <math.h>
#include <stdlib.h>

const char *const diff_part_names[DIFF_PARTS] = {
    "computation", "exposed communication",       "copies", "idle, waiting for the host", "between kernels",
    "idle, other", "before and after device work"};

// ---- samples --------------------------------------------------------------------------------------------
sample sample_of(const double *v, u32 n) {
  sample s = {.n = n};
  for (u32 k = 0; k < n; k++) s.mean += v[k] / n;
  for (u32 k = 0; k < n && n > 1; k++) s.sd += (v[k] - s.mean) * (v[k] - s.mean) / (n - 1);
  s.sd = sqrt(s.sd);
  return s;
}

// The 97.5 % quantile of Student's t, from tables; between them linear in 1 / df.
static double student(double df) {
  static const struct {
    double df, t;
  } v[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},  {6, 2.447},
           {7, 2.365},  {8, 2.306},  {9, 2.262},  {10, 2.228}, {12, 2.179}, {15, 2.131},
           {20, 2.086}, {30, 2.042}, {60, 2.000}, {120, 1.980}};
  const u32 last = COUNT_OF(v) - 1;
  if (df <= 1) return v[0].t;
  if (df >= v[last].df) return 1.960 + (v[last].t - 1.960) * v[last].df / df;
  u32 k = 0;
  while (v[k + 1].df < df) k++;
  const double share = (1 / v[k].df - 1 / df) / (1 / v[k].df - 1 / v[k + 1].df);
  return v[k].t + share * (v[k + 1].t - v[k].t);
}

sample_change sample_compare(const sample *x, const sample *y) {
  sample_change c = {y->mean - x->mean, 0, INFINITY};
  if (x->n < 2 || y->n < 2) return c;
  const double vx = x->sd * x->sd / x->n, vy = y->sd * y->sd / y->n, v = vx + vy;
  c.error = sqrt(v);
  const double below = vx * vx / (x->n - 1) + vy * vy / (y->n - 1);
  c.noise = v > 0 ? c.error * student(below > 0 ? v * v / below : 1) : 0;
  return c;
}

// ---- one side -------------------------------------------------------------------------------------------
typedef struct {
  u32 number;
  double ps;
} step_time;
typedef struct {
  sym name;
  u32 n; // of them waiting is known
  double ps;
} waits_of;
typedef struct {
  u32 rank;
  double ps; // that others waited for it
} waits_for;
typedef struct {
  arena *a;
  job *j;
  match *m;
  i64 doubt_ps; // of clocks
  hmap chosen;  // of communications: event_hash, the name
  VEC(waits_of) waits;
  VEC(waits_for) late;
  diff_side *side;
  VEC(step_time) step; // of the slowest rank
  kernel_uses uses;
  double rank_steps; // summed over ranks
} looker;

static void put_step(looker *x, u32 number, double ps) {
  for (u32 k = 0; k < x->step.n; k++)
    if (x->step.v[k].number == number) {
      x->step.v[k].ps = fmax(x->step.v[k].ps, ps);
      return;
    }
  *vec_push(x->a, &x->step) = (step_time){number, ps};
}

static void put_parts(looker *x, const breakdown *b, i64 steps_ps) {
  double *p = x->side->part;
  p[0] += (double)b->compute_ps, p[1] += (double)breakdown_exposed_ps(b), p[2] += (double)b->copy_ps;
  p[3] += (double)b->idle_ps[IDLE_HOST], p[4] += (double)b->idle_ps[IDLE_KERNEL],
      p[5] += (double)b->idle_ps[IDLE_OTHER];
  p[6] += (double)(steps_ps - b->span_ps); // below 0: the device works on after its steps
}

static bool look_at(looker *x, u32 file, const trace *t, u32 process, const char *steps) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, process);
  bool *chosen = ZNEWN(tmp, bool, s->n + 1);
  const bool ok = steps_choose(x->j->c, steps, s, chosen, x->j->file[file].path);
  u32 *event = NEWN(tmp, u32, t->n + 1), n = ok ? steps_events(t, process, s, chosen, event) : 0,
      on_device = 0, many = 0;
  for (u32 k = 0; k < n; k++) on_device += TRACE_ON_DEVICE >> t->is[event[k]] & 1;
  if (ok && on_device) {
    const breakdown b = breakdown_of_steps(x->j->c, tmp, t, s, chosen, n, event);
    i64 steps_ps = 0;
    kernel_uses_add(x->a, &x->uses, t, n, event);
    for (u32 k = 0; k < n; k++)
      if (t->flags[event[k]] & TRACE_COMM && TRACE_ON_DEVICE >> t->is[event[k]] & 1)
        hmap_add(x->a, &x->chosen, event_hash(file, event[k]), trace_name(t, event[k]).i);
    for (u32 k = 0; k < s->n; k++) {
      if (!chosen[k]) continue;
      const i64 dur = s->step[k].end_ps - s->step[k].start_ps;
      many++, steps_ps += dur, put_step(x, s->step[k].number, (double)dur);
    }
    put_parts(x, &b, many ? steps_ps : b.span_ps);
    if (!many) put_step(x, 0, (double)b.span_ps);
    x->side->ranks++, x->side->world = MAX(x->side->world, t->processes.v[process].world_size);
    x->side->steps = MAX(x->side->steps, many), x->rank_steps += MAX(many, 1);
  }
  arena_free(tmp);
  return ok;
}

// ---- waiting --------------------------------------------------------------------------------------------
// Are times of all ranks on one clock, once corrected?
static bool one_clock(looker *l) {
  match *m = l->m;
  i64 by;
  for (u32 k = 1; k < m->places.n; k++) {
    const match_place *x = &m->places.v[0], *y = &m->places.v[k];
    if (x->file != y->file && (!x->dated || !y->dated)) return false;
  }
  const align_clocks *clocks = clocks_apart(l->a, m, false, &by, &l->doubt_ps);
  match_time(m, clocks);
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *r = &m->row.v[k];
    if (comm_who_of(m->c, r->op) != COMM_WHO_FOR_ALL) continue;
    for (u32 i = 0; i < r->n; i++)
      if (m->member.v[r->first + i].transfer_ps < 0) return false;
  }
  return true;
}

static void put_wait(looker *x, sym name, double ps) {
  u32 k = 0;
  while (k < x->waits.n && x->waits.v[k].name.i != name.i) k++;
  if (k == x->waits.n) *vec_push(x->a, &x->waits) = (waits_of){.name = name};
  x->waits.v[k].n++, x->waits.v[k].ps += ps;
}
static void put_late(looker *x, u32 rank, double ps) {
  u32 k = 0;
  while (k < x->late.n && x->late.v[k].rank != rank) k++;
  if (k == x->late.n) *vec_push(x->a, &x->late) = (waits_for){.rank = rank};
  x->late.v[k].ps += ps;
}

// Of communications all of whose members were recorded.
static void put_waits(looker *x) {
  match_finish(x->m);
  if (!one_clock(x)) return;
  for (u32 k = 0; k < x->m->row.n; k++) {
    const match_row *r = &x->m->row.v[k];
    const match_member *v = &x->m->member.v[r->first];
    if (r->n < 2 || (r->size ? r->n != r->size : r->n != x->m->places.n)) continue;
    for (u32 i = 0; i < r->n; i++) {
      const u32 name = hmap_get(&x->chosen, event_hash(v[i].file, v[i].event));
      if (!name) continue; // of a step that is not compared
      const double ps = (double)MAX(0, MIN(v[i].wait_ps, v[i].end_ps - v[i].start_ps));
      put_wait(x, (sym){name}, ps), put_late(x, x->m->places.v[v[r->late].place].rank, ps);
    }
  }
}

static bool look(looker *x, const char *steps) {
  if (!job_want_steps(x->j, steps)) return false;
  x->m = match_new(x->j->c, x->a);
  for (u32 k = 0; k < x->j->n; k++) {
    const trace *t = job_load(x->j, k, TRACE_ON_DEVICE | 1 << TRACE_CALL | 1 << TRACE_STEP);
    if (!t) return false;
    bool ok = true;
    for (u32 p = 0; ok && p < t->processes.n; p++) ok = look_at(x, k, t, p, steps);
    if (ok) match_add(x->m, t, k, job_rank(x->j, k));
    job_unload(x->j, k);
    if (!ok) return false;
  }
  x->side->files = x->j->n;
  if (!x->side->ranks) {
    diag(x->j->c, E_TRACE, loc_node(x->j->c, sym_of(x->j->c, x->j->file[0].path), (sym){0}, (sym){0}),
         "nothing runs on a device here");
    return false;
  }
  double *v = NEWN(x->a, double, x->step.n);
  for (u32 k = 0; k < x->step.n; k++) v[k] = x->step.v[k].ps;
  x->side->step = sample_of(v, x->step.n);
  for (u32 k = 0; k < DIFF_PARTS; k++) x->side->part[k] /= x->rank_steps;
  put_waits(x);
  return true;
}

// ---- both -----------------------------------------------------------------------------------------------
static int by_change(const void *x, const void *y) {
  const diff_kernel *a = x, *b = y;
  const double u = fabs(a->ps[1] - a->ps[0]), v = fabs(b->ps[1] - b->ps[0]);
  if (u != v) return u > v ? -1 : 1;
  return a->name.i < b->name.i ? -1 : a->name.i > b->name.i;
}

static void put_split(diff_kernel *out, const kernel_use *use, const looker *x, u32 side) {
  u32 k = 0;
  while (k < x->waits.n && x->waits.v[k].name.i != use->name.i) k++;
  const bool all = k < x->waits.n && x->waits.v[k].n == use->count;
  out->split &= all;
  if (all) out->wait_ps[side] = x->waits.v[k].ps / x->rank_steps;
}

// Whom others wait for longer than before, by the most.
static void put_latest(diff_waiting *w, const looker x[2]) {
  w->rank = TRACE_NONE;
  for (u32 k = 0; k < x[1].late.n; k++) {
    const waits_for *after = &x[1].late.v[k];
    double ps = after->ps / x[1].rank_steps;
    for (u32 i = 0; i < x[0].late.n; i++)
      if (x[0].late.v[i].rank == after->rank) ps -= x[0].late.v[i].ps / x[0].rank_steps;
    if (after->rank != TRACE_NONE && ps > w->rank_ps) w->rank = after->rank, w->rank_ps = ps;
    w->nameless |= after->rank == TRACE_NONE && ps > 0;
  }
}

static void put_waiting(job_diff *d, const looker x[2]) {
  diff_waiting *w = &d->waiting;
  for (u32 k = 0; k < d->nkernels; k++) {
    const diff_kernel *y = &d->kernel[k];
    if (!y->split) continue;
    w->known = true,
    w->doubt_ps += (double)MAX(x[0].doubt_ps, x[1].doubt_ps) * fmax(y->count[0], y->count[1]);
    w->ps += y->ps[1] - y->ps[0], w->wait_ps += y->wait_ps[1] - y->wait_ps[0];
  }
  put_latest(w, x);
}

static void put_kernels(job_diff *d, arena *a, const looker x[2]) {
  VEC(diff_kernel) v = {0};
  hmap of = {0};
  for (u32 s = 0; s < 2; s++)
    for (u32 k = 0; k < x[s].uses.kernels.n; k++) {
      const kernel_use *use = &x[s].uses.kernels.v[k];
      u32 at = v.n;
      for (u32 it = 0, i; hmap_next(&of, hash_u64(use->name.i, 1), &it, &i);)
        if (i < v.n && v.v[i].name.i == use->name.i) at = i;
      if (at == v.n) {
        hmap_add(a, &of, hash_u64(use->name.i, 1), v.n);
        *vec_push(a, &v) = (diff_kernel){.name = use->name, .comm = use->comm, .split = use->comm};
      }
      put_split(&v.v[at], use, &x[s], s);
      v.v[at].count[s] += use->count / x[s].rank_steps;
      v.v[at].ps[s] += (double)use->total_ps / x[s].rank_steps;
    }
  if (v.n) qsort(v.v, v.n, sizeof *v.v, by_change);
  d->nkernels = v.n, d->kernel = v.v;
}

bool job_diff_of(job *before, job *after, const char *steps, arena *a, job_diff *d) {
  *d = (job_diff){.nkernels = 0};
  looker x[2] = {{.a = a, .j = before, .side = &d->side[0]}, {.a = a, .j = after, .side = &d->side[1]}};
  if (!look(&x[0], steps) || !look(&x[1], steps)) return false;
  d->change = sample_compare(&d->side[0].step, &d->side[1].step);
  d->verdict = isinf(d->change.noise)                      ? DIFF_UNKNOWN
               : fabs(d->change.change) <= d->change.noise ? DIFF_SAME
               : d->change.change > 0                      ? DIFF_SLOWER
                                                           : DIFF_FASTER;
  put_kernels(d, a, x);
  put_waiting(d, x);
  return true;
}
