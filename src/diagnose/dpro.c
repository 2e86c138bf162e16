// dpro.c - offsets as dPRO chooses them (Hu et al., MLSys 2022, section 4.2): receptions of the same tensor from the same
// sender should take alike, so the variance of how long they take is made least, summed over links, while no message
// arrives before it was sent. Processes of one machine share a clock here, which dPRO asks for by a penalty.
//
// How long: from when the receiver waits and the message has been sent, whichever is later, until it has arrived. Where
// every receiver of a link waited before, each reception took (received less sent), all of which move by the same
// amount with the offset: their variance does not change, and the objective says nothing about that link. Then the
// offset stays where it was to begin with, as far as the ties allow.
#include "diagnose/align.h"
#include <math.h>

enum { ROUNDS = 40 };
typedef struct {
  double n, waited, slope, curve; // receptions; clipped by the sender; of the sum of squares by the shift
  double value;
} link_variance;

// Of a link as its sender's clock moves by shift (microseconds) against its receiver's.
static void variances(const problem *p, const double *x, link_variance *v) {
  const align_seen *in = p->in;
  const double *table = problem_table(p, x);
  memset(v, 0, in->nlinks * sizeof *v);
  double *sum = ZNEWN(p->a, double, in->nlinks + 1);
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 k = 0; k < in->nmessages; k++) {
      const align_message *m = &in->message[k];
      const align_link *l = &in->link[m->link];
      const double shift = table[p->clock_of[l->to]] - table[p->clock_of[l->from]];
      const double sent = problem_local(p, l->from, m->send_ps) + shift;
      const double received = problem_local(p, l->to, m->recv_ps);
      const double posted = in->posted_ps ? problem_local(p, l->to, in->posted_ps[k]) : -INFINITY;
      const double took = (received - fmax(sent, posted)) / ALIGN_UNIT;
      link_variance *y = &v[m->link];
      if (!pass) {
        y->n++, sum[m->link] += took, y->waited += sent >= posted;
        continue;
      }
      const double off = took - sum[m->link] / y->n;
      y->value += off * off;
      if (sent >= posted) y->slope += 2 * off;
    }
  for (u32 k = 0; k < in->nlinks; k++)
    if (v[k].n > 0) v[k].curve = 2 * v[k].waited * (1 - v[k].waited / v[k].n);
}

static double objective(const problem *p, const double *x, link_variance *v) {
  double sum = 0;
  variances(p, x, v);
  for (u32 k = 0; k < p->in->nlinks; k++) sum += v[k].value;
  return sum;
}

// The quadratic that the objective is while the same receptions are clipped.
static bool model(const problem *p, const link_variance *v, sky *h, double *g) {
  bool flat = false;
  sky_clear(h);
  memset(g, 0, p->nx * sizeof *g);
  for (u32 k = 0; k < p->in->nlinks; k++) {
    const u32 from = p->clock_of[p->in->link[k].from], to = p->clock_of[p->in->link[k].to];
    if (from == to || v[k].n == 0) continue;
    row r = {0};
    if (p->var[from] != TRACE_NONE) row_add(&r, p->var[from], 1); // what took longer as the sender was ahead
    if (p->var[to] != TRACE_NONE) row_add(&r, p->var[to], -1);
    sky_row(h, &r, v[k].curve);
    for (u32 i = 0; i < r.n; i++) g[r.col[i]] += r.val[i] * v[k].slope;
  }
  sky test = sky_new(p->a, p->nx, p->first);
  sky_copy(&test, h);
  sky_factor(&test);
  for (u32 i = 0; i < p->nx; i++) {
    flat |= *sky_cell(&test, i, i) > 1e100;
    *sky_cell(h, i, i) += 1e-9; // where it is flat: as near as possible
  }
  return flat;
}

bool dpro_solve(const problem *p, const ties *keep, double *x) {
  link_variance *v = NEWN(p->a, link_variance, p->in->nlinks + 1);
  rows r = {0};
  for (u32 k = 0; k < keep->n; k++) *vec_push(p->a, &r) = problem_row(p, &keep->v[k]);
  sky h = sky_new(p->a, p->nx, p->first);
  double *g = NEWN(p->a, double, p->nx + 1), *y = NEWN(p->a, double, p->nx + 1);
  bool flat = false;
  for (u32 round = 0; round < ROUNDS; round++) {
    const double now = objective(p, x, v);
    flat = model(p, v, &h, g);
    for (u32 i = 0; i < p->nx; i++) // slope at zero, not at x
      for (u32 j = h.first[i]; j <= i; j++) {
        const double c = h.v[h.at[i] + j] - (i == j ? 1e-9 : 0);
        g[i] -= c * x[j];
        if (j < i) g[j] -= c * x[i];
      }
    memcpy(y, x, p->nx * sizeof *x);
    if (!quadratic_solve(p->a, &h, g, &r, y)) break;
    // What is clipped changes on the way: half the way, until it is better.
    double step = 1, after = INFINITY;
    double *z = NEWN(p->a, double, p->nx + 1);
    for (; step > 1e-3 || round == 0; step /= 2) {
      for (u32 i = 0; i < p->nx; i++) z[i] = x[i] + step * (y[i] - x[i]);
      after = objective(p, z, v);
      if (round == 0 || after < now) break; // the first step is for the ties
    }
    if (round && !(after < now * (1 - 1e-9))) break;
    memcpy(x, z, p->nx * sizeof *x);
  }
  return flat;
}
