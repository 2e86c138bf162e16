// roofline.c - the cost model "heddle" for computation: an instruction takes the longer of its arithmetic and
// its memory traffic, each at the fraction of the peak that the machine reaches for that much of it, plus the
// launch.
//
// What kind of work an instruction is follows from its law, not from its name: a product is a product;
// without arithmetic it moves data; a letter that must stay whole or that no result has makes it a reduction.
#include "cost/internal.h"

static bool whole(const law *l) {
  for (u32 i = 0; i < l->nletters; i++)
    if (l->letter[i].flags & LAW_WHOLE) return true;
  return false;
}

u64 term_letters(const law_term *t, u32 n) {
  u64 set = 0;
  for (u32 k = 0; k < n; k++)
    for (u32 d = 0; d < t[k].nd; d++)
      for (u32 i = 0; i < t[k].dim[d].n; i++) set |= 1ull << (t[k].dim[d].f[i] & 63);
  return set;
}

// Of a convolution: a window, whose extent is tied to that of what it slides over.
static bool slides(const law *l) {
  for (u32 i = 0; i < l->nletters; i++)
    if (!(~l->letter[i].flags & (LAW_WHOLE | LAW_FIXED))) return true;
  return false;
}

eff_kind work_of(const op_row *row, const law *l) {
  if (row->flags & OPF_GEMM) return slides(l) ? EFF_CONV : EFF_GEMM;
  if (!row->flops) return EFF_MOVE;
  return whole(l) || (term_letters(l->opd, l->nopd) & ~term_letters(l->res, l->nres)) ? EFF_REDUCTION
                                                                                      : EFF_ELEMENTWISE;
}

static bool addressed(const law *l, const law_term *t) {
  for (u32 d = 0; d < t->nd; d++)
    for (u32 i = 0; i < t->dim[d].n; i++)
      if (l->letter[t->dim[d].f[i]].flags & LAW_ADDRESSED) return true;
  return false;
}

// An assignment writes over its first operand unread, and reads the second in the element type that this has.
static double bytes_read(const cost_event *e, const law *l, u32 k, double written) {
  const double bytes = (double)shape_bytes(&e->opd[k]);
  if (e->op == OP_assign) return k ? bytes : 0;
  // What only moves data reads no more than it writes: the slice, the picked rows, not the whole table.
  const bool part = e->work == EFF_MOVE || (l && addressed(l, &l->opd[k]));
  return part ? MIN(bytes, written) : bytes;
}

void event_work(cost_event *e, const law *l, double share) {
  double read = 0, written = 0;
  for (u32 k = 0; k < e->nres; k++) written += (double)shape_bytes(&e->res[k]);
  e->work = l ? work_of(op_row_of(e->op), l) : EFF_GEMM;
  for (u32 k = 0; k < e->nopd; k++) read += bytes_read(e, l, k, written);
  e->bytes = read + written;
  e->flops = l ? op_flops(e->op, e->at, l) * share : 0;
  const op_own *own = op_row_of(e->op)->own;
  if (own && own->bytes) e->bytes = own->bytes(own, e->at, e->nopd, e->opd, e->nres, e->res);
  if (e->op == OP_opaque) {
    e->bytes = (double)attr_int(e->at, A_bytes, (i64)e->bytes);
    e->flops = (double)attr_int(e->at, A_flops, 0);
  }
}

static roof_term term(const eff_curve *curve, eff_kind of, double size, double rate) {
  return (roof_term){curve, of, size, rate, (curve ? curve_work(curve, size) : size) / rate * 1e12};
}

void roof_terms(const cost_event *e, roof_term t[2]) {
  const device_kind *dev = e->dev;
  const bool product = e->work <= EFF_CONV;
  const eff_kind moved = product ? EFF_MEMORY : e->work;
  t[0] = (roof_term){.of = e->work};
  if (e->flops > 0)
    t[0] =
        term(product ? &dev->eff[e->work] : NULL, e->work, e->flops, product ? dev->rate[e->t] : dev->vector);
  t[1] = term(&dev->eff[moved], moved, e->bytes, dev->mem_bw);
}

static bool has_rate(cost_model *k, const cost_event *e, loc at) {
  if (e->work > EFF_CONV || e->flops <= 0 || e->dev->rate[e->t] > 0) return true;
  const char *name = sym_str(k->m->c, e->dev->name), *t = dtype_name(e->t);
  diag(k->c, E_RATE, at, "%s in %s: the device %s has no rate for %s", op_row_of(e->op)->name, t, name, t);
  diag_hint(k->c, "add `%s: ... TFLOP/s` to `rate` of %s in the machine file, or use another element type", t,
            name);
  return false;
}

// Far outside a curve a time is a guess, which matters only where it is more than the launch.
static bool compute(cost_model *k, const cost_event *e, loc at, cost_info *out) {
  roof_term t[2];
  if (!has_rate(k, e, at)) return false;
  roof_terms(e, t);
  for (u32 i = 0; i < 2; i++)
    if (t[i].curve && t[i].ps > (double)e->dev->launch_ps) cost_extrapolates(k, e, t[i].curve, t[i].size);
  *out = (cost_info){.ps = round_ps(MAX(t[0].ps, t[1].ps)) + e->dev->launch_ps, .spread = -1};
  return true;
}

static bool comm(cost_model *k, const cost_event *e, loc at, cost_info *out) {
  *out = (cost_info){.ps = coll_ps(e->op, e->size, e->where), .spread = -1};
  if (out->ps >= 0) return true;
  const bool between = e->where->nodes > 1 && e->where->out_bw <= 0;
  diag(k->c, E_LINK, at, "%s over %u ranks: the machine has no link %s", op_row_of(e->op)->name, e->where->n,
       between ? "between its nodes" : "between the devices of a node");
  diag_hint(k->c, between ? "add `nics: 8 x 400 Gb/s` to its nodes, or `ib=8x400Gb/s` in one line"
                          : "add `link: switch 300 GB/s` or `host: 32 GB/s` to its nodes");
  return false;
}

// The longer of arithmetic and traffic counts; where they are equal neither alone is to blame.
static void parts(const cost_event *e, cost_parts *out) {
  const device_kind *dev = e->dev;
  const bool product = e->work <= EFF_CONV;
  const double size = product ? curve_work(&dev->eff[e->work], e->flops) : e->flops;
  const double flops = size > 0 ? size / (product ? dev->rate[e->t] : dev->vector) * 1e12 : 0;
  const double bytes = curve_work(&dev->eff[product ? EFF_MEMORY : e->work], e->bytes) / dev->mem_bw * 1e12;
  out->ps[COST_BY_LAUNCH] = (double)dev->launch_ps;
  out->ps[flops > bytes   ? (product ? COST_BY_MATMUL : COST_BY_VECTOR)
          : bytes > flops ? COST_BY_MEMORY
                          : COST_BY_SEVERAL] = MAX(flops, bytes);
}

static double top_flops(const cost_model *k, const device_kind *dev, dtype t) {
  (void)k;
  return machine_top_flops(dev, t);
}
static double top_bw(const cost_model *k, const device_kind *dev) {
  (void)k;
  return machine_top_bw(dev);
}
static i64 launch_ps(const cost_model *k, const device_kind *dev) {
  (void)k;
  return dev->launch_ps;
}

const cost_formulas cost_heddle = {"heddle", OPF_VIEW | OPF_META, compute, comm, heddle_row, top_flops,
                                   top_bw,   launch_ps,           parts};
