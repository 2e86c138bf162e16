// kernels.c - what ran on the devices of a job, by name, and its communications by size. Not when (breakdown.c).
#include "diagnose/diagnose.h"
#include <stdlib.h>

static kernel_use *kernel_of(arena *a, kernel_uses *u, const trace *t, u32 e) {
  const sym name = trace_name(t, e);
  const u64 h = hash_u64(name.i, t->is[e]);
  for (u32 it = 0, k; hmap_next(&u->by_name, h, &it, &k);)
    if (u->kernels.v[k].name.i == name.i && u->kernels.v[k].is == t->is[e]) return &u->kernels.v[k];
  hmap_add(a, &u->by_name, h, u->kernels.n);
  kernel_use *x = vec_push(a, &u->kernels);
  *x = (kernel_use){
      .name = name, .is = (trace_is)t->is[e], .comm = t->flags[e] & TRACE_COMM, .min_ps = INT64_MAX};
  return x;
}

static comm_use *comm_of(arena *a, kernel_uses *u, const trace_comm *m) {
  const u64 h = hash_u64(hash_step(hash_step(m->op.i, m->type.i), (u64)m->bytes), m->size);
  for (u32 it = 0, k; hmap_next(&u->by_comm, h, &it, &k);) {
    comm_use *x = &u->comms.v[k];
    if (x->op.i == m->op.i && x->type.i == m->type.i && x->bytes == m->bytes && x->size == m->size) return x;
  }
  hmap_add(a, &u->by_comm, h, u->comms.n);
  comm_use *x = vec_push(a, &u->comms);
  *x = (comm_use){.op = m->op, .type = m->type, .size = m->size, .bytes = m->bytes};
  return x;
}

void kernel_uses_add(arena *a, kernel_uses *u, const trace *t, u32 n, const u32 *event) {
  for (u32 k = 0; k < n; k++) {
    const u32 e = event[k];
    if (!(TRACE_ON_DEVICE >> t->is[e] & 1) || t->dur_ps[e] < 0) continue;
    kernel_use *x = kernel_of(a, u, t, e);
    x->count++;
    x->total_ps = add_sat(x->total_ps, t->dur_ps[e]);
    x->min_ps = MIN(x->min_ps, t->dur_ps[e]), x->max_ps = MAX(x->max_ps, t->dur_ps[e]);
    if (t->is[e] != TRACE_KERNEL || t->comm[e] == TRACE_NONE) continue;
    comm_use *m = comm_of(a, u, &t->comms.v[t->comm[e]]);
    *vec_push(a, &m->dur_ps) = t->dur_ps[e];
  }
}

// Of equal ones the name that was read first.
static int longer(const void *x, const void *y) {
  const kernel_use *a = x, *b = y;
  if (a->total_ps != b->total_ps) return a->total_ps > b->total_ps ? -1 : 1;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return a->name.i < b->name.i ? -1 : a->name.i > b->name.i;
}
static i64 total(const comm_use *m) {
  i64 sum = 0;
  for (u32 k = 0; k < m->dur_ps.n; k++) sum = add_sat(sum, m->dur_ps.v[k]);
  return sum;
}
static int comm_longer(const void *x, const void *y) {
  const comm_use *a = x, *b = y;
  const i64 s = total(a), r = total(b);
  if (s != r) return s > r ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->op.i < b->op.i ? -1 : a->op.i > b->op.i;
}

void kernel_uses_sort(kernel_uses *u) {
  for (u32 k = 0; k < u->comms.n; k++)
    qsort(u->comms.v[k].dur_ps.v, u->comms.v[k].dur_ps.n, sizeof(i64), ascending_i64);
  if (u->kernels.n) qsort(u->kernels.v, u->kernels.n, sizeof *u->kernels.v, longer);
  if (u->comms.n) qsort(u->comms.v, u->comms.n, sizeof *u->comms.v, comm_longer);
}

double comm_bus_factor(const char *op, u32 size) {
  const double n = size;
  const comm_kind_row *row = &comm_kind_rows[comm_kind_named(op)];
  if (!size && row->who != COMM_WHO_MESSAGE) return 0;
  switch (row->bus) {
  case COMM_BUS_ONCE: return 1;
  case COMM_BUS_OTHERS: return (n - 1) / n;
  case COMM_BUS_TWICE: return 2 * (n - 1) / n;
  case COMM_BUS_UNKNOWN: break;
  }
  return 0;
}
