// align.c - the clocks of the processes of a job: from what was seen to corrections, step by step.
//
//   problem     who shares a clock, who is tied to whom, whole offsets                    problem.c
//   floors      least squares over the fastest messages and the ends of collectives       floors.c
//   slack       what ties allow at most, and the cycle that allows no more                slack.c, cycle.c
//   keep        least squares again, within what the ties allow                           slack.c, quadratic.c
//   form        offsets, or drifts, or pieces: the simplest that the observations permit
//   jumps       clocks that no such form describes                                        jumps.c
#include "diagnose/align.h"
#include <math.h>

typedef struct {
  floors_fit fit;
  slack_fit slack;
  double *x;
} solution;

static solution solve(problem *p, u32 nk, align_clocks *out) {
  problem_set_knots(p, nk);
  solution s;
  s.fit = floors_solve(p, ZNEWN(p->a, double, p->nx + 1));
  // With drifts, which message of a window was the fastest is known only now.
  if (nk > 1 && p->in->nmessages) s.fit = floors_solve(p, s.fit.z);
  s.slack = slack_solve(p, s.fit.z, out);
  s.x = arena_dup(p->a, s.fit.z, (p->nx + 1) * sizeof *s.x);
  const double slack = out->slack_ps == INT64_MAX ? 1 : (double)out->slack_ps / ALIGN_UNIT;
  if (slack >= 0) slack_keep(p, &s.fit, &s.slack.keep, slack, s.x); // else least squares violate the fewest
  return s;
}

static double largest_error(const problem *p, const floors_fit *f) { // mean over clocks
  double sum = 0;
  for (u32 v = 0; v < p->nx; v += p->nk) {
    double most = 0;
    for (u32 k = 0; k < p->nk; k++) most = fmax(most, f->sd[v + k]);
    sum += most;
  }
  return sum;
}

// Clocks drift, but few observations say little about how much. Offsets alone are taken if they keep the ties, drifts do
// not stand out of their errors, and leaving them out makes clocks more certain by a fifth or more.
static solution simplest(problem *p, align_clocks *out) {
  const double CERTAIN = 2, GAIN = 1.2;
  const solution linear = solve(p, 2, out);
  const align_clocks of_linear = *out;
  const double error = largest_error(p, &linear.fit);
  if (linear.fit.drift_chi2 < CERTAIN && out->slack_ps >= 0) {
    const solution offsets = solve(p, 1, out);
    if (out->slack_ps >= 0 && largest_error(p, &offsets.fit) * GAIN <= error) return offsets;
  }
  *out = of_linear;
  if (out->slack_ps < 0) {
    jumps_find(p, linear.x, out);
    for (u32 pieces = 2; !out->njumps && pieces <= 8; pieces *= 2) {
      align_clocks trial = *out;
      const solution s = solve(p, pieces + 1, &trial);
      if (trial.slack_ps < 0) continue;
      *out = trial;
      return s;
    }
  }
  problem_set_knots(p, 2);
  return linear;
}

// ---- results ------------------------------------------------------------------------------------------------------
static void put_clocks(const problem *p, const solution *s, align_clocks *out) {
  const double *table = problem_table(p, s->x);
  out->n = p->in->nprocesses, out->nknots = p->nk;
  out->clock = ZNEWN(p->a, align_clock, out->n + 1);
  out->knot_ps = NEWN(p->a, i64, p->nk);
  for (u32 k = 0; k < p->nk; k++) out->knot_ps[k] = p->origin + (i64)p->knot[k];
  out->ncomponents = p->ncomponents;
  out->reference = NEWN(p->a, u32, p->ncomponents + 1);
  for (u32 c = 0; c < p->ncomponents; c++) out->reference[c] = TRACE_NONE;
  for (u32 i = 0; i < out->n; i++) {
    const u32 c = p->clock_of[i];
    align_clock *x = &out->clock[i];
    *x = (align_clock){
        .coarse_ps = p->coarse[c], .clock = c, .component = p->component[c], .used = p->used[i]};
    x->at = arena_dup(p->a, table + (size_t)c * p->nk, p->nk * sizeof *x->at);
    x->sd = ZNEWN(p->a, double, p->nk);
    for (u32 k = 0; p->var[c] != TRACE_NONE && k < p->nk; k++)
      x->sd[k] = s->fit.sd[p->var[c] + k] * ALIGN_UNIT;
    x->low_ps = INT64_MIN, x->high_ps = INT64_MAX;
    if (p->reference[p->component[c]] == c && out->reference[p->component[c]] == TRACE_NONE)
      out->reference[p->component[c]] = i;
  }
  out->latency_ps = NEWN(p->a, double, p->in->nfamilies + 1);
  for (u32 f = 0; f < p->in->nfamilies; f++)
    out->latency_ps[f] = s->fit.seen && s->fit.seen[f] ? s->fit.z[p->nx + f] * ALIGN_UNIT : NAN;
  out->ends_sd_ps = s->fit.ends_sd * ALIGN_UNIT;
}

typedef struct {
  u64 n;
  i64 worst;
} violations;

static void violated(violations *v, i64 gap) {
  if (gap >= 0) return;
  v->n++;
  v->worst = MAX(v->worst, -gap);
}

static i64 shown(const align_clocks *x, u32 process, i64 reading) { // x NULL: as recorded
  return x ? align_time(x, process, reading) : reading;
}

static violations count(const problem *p, const align_clocks *x) {
  const align_seen *in = p->in;
  violations v = {0};
  for (u32 k = 0; k < in->nmessages; k++) {
    const align_message *m = &in->message[k];
    const align_link *l = &in->link[m->link];
    violated(&v, shown(x, l->to, m->recv_ps) - shown(x, l->from, m->send_ps));
  }
  for (u32 q = 0; q < in->ncollectives; q++) {
    const align_member *m = in->member + in->collective[q].first;
    i64 start = INT64_MIN, end = INT64_MAX;
    for (u32 k = 0; k < in->collective[q].n; k++) {
      start = MAX(start, shown(x, m[k].process, m[k].start_ps));
      end = MIN(end, shown(x, m[k].process, m[k].end_ps));
    }
    if (in->collective[q].n) violated(&v, end - start);
  }
  return v;
}

align_clocks *align_find(arena *a, const align_seen *in, const align_opts *o) {
  align_clocks *out = NEW(a, align_clocks);
  arena *scratch = arena_new();
  problem *p = problem_new(scratch, in);
  solution s;
  if (o && o->method == ALIGN_DPRO) {
    s = solve(p, 1, out);
    memset(s.x, 0, p->nx * sizeof *s.x);
    out->flat = dpro_solve(p, &s.slack.keep, s.x);
    memset(s.fit.sd, 0, p->nx * sizeof *s.fit.sd); // those of another method
  } else if (!o || o->drift == ALIGN_DRIFT_AUTO) {
    s = simplest(p, out);
  } else {
    s = solve(p, MIN(o->drift, ALIGN_PIECES_MAX + 1u), out);
    if (out->slack_ps < 0) jumps_find(p, s.x, out);
  }
  put_clocks(p, &s, out);
  out->constraints = (u64)in->nmessages + in->ncollectives;
  const violations before = count(p, NULL), after = count(p, out);
  out->before = before.n, out->worst_before = before.worst;
  out->after = after.n, out->worst_after = after.worst;
  if (!after.n) slack_bounds(p, &s.slack.keep, s.x, out);
  // What is kept leaves the scratch arena.
  out->clock = arena_dup(a, out->clock, (out->n + 1) * sizeof *out->clock);
  for (u32 k = 0; k < out->n; k++) {
    out->clock[k].at = arena_dup(a, out->clock[k].at, out->nknots * sizeof(double));
    out->clock[k].sd = arena_dup(a, out->clock[k].sd, out->nknots * sizeof(double));
  }
  out->knot_ps = arena_dup(a, out->knot_ps, out->nknots * sizeof(i64));
  out->reference = arena_dup(a, out->reference, (out->ncomponents + 1) * sizeof(u32));
  out->latency_ps = arena_dup(a, out->latency_ps, (in->nfamilies + 1) * sizeof(double));
  if (out->ncycle) out->cycle = arena_dup(a, out->cycle, out->ncycle * sizeof *out->cycle);
  if (out->njumps) out->jump = arena_dup(a, out->jump, out->njumps * sizeof *out->jump);
  arena_free(scratch);
  return out;
}

// ---- use ------------------------------------------------------------------------------------------------------------
static double correction(const align_clocks *x, const align_clock *c, double t) { // t: reading less coarse
  if (x->nknots == 1) return c->at[0];
  u32 k = 0;
  while (k + 2 < x->nknots && t > (double)x->knot_ps[k + 1]) k++;
  const double from = (double)x->knot_ps[k], to = (double)x->knot_ps[k + 1];
  return c->at[k] + (c->at[k + 1] - c->at[k]) * ((t - from) / (to - from));
}

i64 align_time(const align_clocks *x, u32 process, i64 reading) {
  const align_clock *c = &x->clock[process];
  const i64 t = reading - c->coarse_ps;
  const double most = 4e18; // differences of two such times fit
  const double by = floor(correction(x, c, (double)t) + 0.5);
  const double about = (double)t - by;
  return about > most ? (i64)most : about < -most ? -(i64)most : t - (i64)by;
}

i64 align_offset(const align_clocks *x, u32 process) {
  const align_clock *c = &x->clock[process];
  const double middle = ((double)x->knot_ps[0] + (double)x->knot_ps[x->nknots - 1]) / 2;
  return c->coarse_ps + (i64)fmax(-4e18, fmin(4e18, floor(correction(x, c, middle) + 0.5)));
}

double align_drift(const align_clocks *x, u32 process) {
  const align_clock *c = &x->clock[process];
  const u32 last = x->nknots - 1;
  return last ? (c->at[last] - c->at[0]) / (double)(x->knot_ps[last] - x->knot_ps[0]) : 0;
}

double align_sd_ps(const align_clocks *x, u32 process) {
  double most = 0;
  for (u32 k = 0; k < x->nknots; k++) most = fmax(most, x->clock[process].sd[k]);
  return most;
}
