// distir.c - the cost model "distir": the cost model of DistIR (Santhanam et al., "DistIR: an intermediate
// representation and simulator for efficient neural network distribution", 2021), to reproduce its results.
// Not a model to plan with: arithmetic and traffic add up, the network is a full mesh of equal links.
//
// With launch L, memory bandwidth B, rate F, network W (bytes/s), n elements of the first operand x:
//
//   elementwise, reductions   L + bytes/B + n/F: bytes of x, twice if elementwise of two operands; never
//                             those of results
//   products                  L + (bytes of x and y)/B + 2mnk/F. Of x[..,k] y[k,n] all, its programs reshape
//                             x to two dimensions before; of batched products no more than the first two
//                             dimensions of x and y: they come out far too cheap
//   data movement, views      L; by name only (identity, join, part) 0
//   all_reduce, all_gather    2 S (n-1)/n / W for an operand of S bytes, or a line a S + b n + c for this n
//   send, gather_to, reduce   S / W
//   broadcast, scatter_from   0
//
// Not taken over, because they are mistakes: gather and reduce count the element size twice; `min` takes one
// second an element; of several updates on a device only the last counts; subtraction from a scalar is free;
// an operator without a formula ends the run. What DistIR does not have is costed like its nearest kin.
#include "cost/internal.h"

static i64 seconds(double s) { return round_ps(s * 1e12); }

static double elems_of_first_two(const shape *s) {
  double n = 1;
  for (u32 d = 0; d < MIN(s->nd, 2u); d++) n *= (double)s->dim[d];
  return n;
}

static bool compute(cost_model *k, const cost_event *e, loc at, cost_info *out) {
  const distir_params *p = &k->distir;
  (void)at;
  double s = 0;
  const shape *x = &e->opd[0];
  if (e->op == OP_matmul) {
    assert(e->nopd == 2);
    const shape *y = &e->opd[1];
    const double nx = y->nd == 2 ? (double)shape_elems(x) : elems_of_first_two(x), ny = elems_of_first_two(y);
    const double columns = y->nd > 1 ? (double)y->dim[1] : 1;
    s = dtype_bytes(x->t) * (nx + ny) / p->mem_bw + 2 * nx * columns / p->rate;
  } else if (e->work <= EFF_CONV) {
    for (u32 i = 0; i < e->nopd; i++) s += (double)shape_bytes(&e->opd[i]) / p->mem_bw;
    s += e->flops / p->rate;
  } else if (e->nopd && (e->work != EFF_MOVE || e->op == OP_transpose)) {
    const double n = (double)shape_elems(x);
    s = dtype_bytes(x->t) * n * (e->nopd > 1 && e->work == EFF_ELEMENTWISE ? 2 : 1) / p->mem_bw + n / p->rate;
  }
  *out = (cost_info){.ps = p->launch_ps + seconds(s), .spread = -1};
  if (e->op == OP_identity || e->op == OP_stop_gradient) out->ps = 0;
  return true;
}

static bool comm(cost_model *k, const cost_event *e, loc at, cost_info *out) {
  const distir_params *p = &k->distir;
  const double n = e->where->n;
  double S = (double)e->size, s = 0;
  (void)at;
  switch (e->op) {
  case OP_all_gather:
    S /= n; // the operand
    // fallthrough
  case OP_all_reduce:
  case OP_reduce_scatter:
  case OP_all_to_all:
    s = 2 * S * (n - 1) / n / p->network;
    for (u32 i = 0; i < p->nfits; i++)
      if (p->fit[i].n == e->where->n) s = p->fit[i].a * S + p->fit[i].b * n + p->fit[i].c;
    break;
  case OP_broadcast:
  case OP_scatter_from: break;
  case OP_gather_to: s = S / n / p->network; break;
  default: s = S / p->network;
  }
  *out = (cost_info){.ps = n < 2 ? 0 : seconds(s), .spread = -1};
  return true;
}

static void row(cost_model *k, const cost_event *e, u32 rank, cost_row *out) {
  (void)k, (void)rank;
  out->source = COST_DISTIR;
  out->figure = e->where ? "DistIR's network" : "DistIR's device";
}

static double top_flops(const cost_model *k, const device_kind *dev, dtype t) {
  (void)dev, (void)t;
  return k->distir.rate;
}
static double top_bw(const cost_model *k, const device_kind *dev) {
  (void)dev;
  return k->distir.mem_bw;
}
static i64 launch_ps(const cost_model *k, const device_kind *dev) {
  (void)dev;
  return k->distir.launch_ps;
}

const cost_formulas cost_distir = {"distir",  OPF_META, compute,   comm, row,
                                   top_flops, top_bw,   launch_ps, NULL};
