// parts.c - what prices are made of, and kinds of work: for reports that say what would help.
#include "cost/internal.h"

// Between a device and host memory: model.c prices it.
static void copy_parts(const cost_model *k, const site *s, u32 member, i64 ps, cost_parts *out) {
  const u32 rank = group_get(s->p->sp, s->g)->ranks[member];
  const machine_link *host = &k->m->node_kind[k->m->node[k->m->dev[rank].node]].host;
  out->ps[COST_BY_LATENCY] = (double)(host->start_ps + host->step_ps);
  out->ps[COST_BY_INSIDE] = (double)ps - out->ps[COST_BY_LATENCY];
}

bool cost_made_of(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, u32 member,
                  cost_parts *out) {
  const site s = {p, f, i, g};
  cost_event e;
  cost_info price;
  *out = (cost_parts){{0}};
  if (!k->formulas->parts || !cost_explain(k, p, f, i, g, member, &price, &e)) return false;
  if (price.source >= COST_PREDICTED) return false; // measured as a whole
  if (price.source == COST_FREE) return true;
  if (i->op == OP_copy)
    copy_parts(k, &s, member, price.ps, out);
  else if (e.host)
    out->ps[COST_BY_HOST] = (double)price.ps;
  else if (e.where)
    coll_parts(i->op, e.size, e.where, out);
  else
    k->formulas->parts(&e, out);
  return true;
}

// A letter of both operands and of the result.
static bool batched(const law *l) {
  if (l->nopd < 2) return false;
  return (term_letters(&l->opd[0], 1) & term_letters(&l->opd[1], 1) & term_letters(l->res, l->nres)) != 0;
}

cost_work cost_work_of(ctx *c, arena *scratch, const prog *p, const func_info *f, const instr *i) {
  static const cost_work of[EFF_KINDS] = {
      [EFF_GEMM] = WORK_PRODUCT,        [EFF_CONV] = WORK_CONV,
      [EFF_MEMORY] = WORK_MOVE,         [EFF_ELEMENTWISE] = WORK_ELEMENTWISE,
      [EFF_REDUCTION] = WORK_REDUCTION, [EFF_MOVE] = WORK_MOVE};
  const u32 nopd = instr_nopd(f, i);
  const op_row *row = op_row_of(i->op);
  u32 nres = i->nres;
  if (i->op == OP_opaque) return WORK_PRODUCT;
  if (row->flags & OPF_COMM) return WORK_MOVE;
  for (u32 j = 0; j < nopd; j++)
    if (val_type(p, f, opd_of(f, i, j))->tuple) return WORK_MOVE; // has no law
  arena_mark_t mark = arena_mark(scratch);
  shape *opd = NEWN(scratch, shape, nopd + 1), *res = NEWN(scratch, shape, MAX(nres, (u32)OP_RES_MAX));
  for (u32 j = 0; j < nopd; j++) opd[j] = val_type(p, f, opd_of(f, i, j))->s;
  const law *l = op_law(c, scratch, i->op, attrs_get(p, i->at), nopd, opd, &nres, res, i->where);
  cost_work w = l ? of[work_of(row, l)] : WORK_MOVE;
  if (w == WORK_PRODUCT && batched(l)) w = WORK_BATCHED;
  arena_release(scratch, mark);
  return w;
}
