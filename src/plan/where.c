// where.c - words of refusals that say where and why: what a plan's text asks for, and what no communication
// can bring about.
#include "plan/internal.h"

static bool lies_in(const ctx *c, loc at, sym file) {
  const loc_info *l = loc_get(c, at);
  return l && l->file.i == file.i;
}

// The entry of the plan that chooses for the instruction at this location; otherwise the plan as a whole.
static loc entry_for(const prog *src, const plan *pn, loc where) {
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (t->instr && func_get(src, t->fn)->body.v[t->instr - 1].where.i == where.i) return t->at;
  }
  return pn->at;
}

void plan_point(const prog *src, const plan *pn, u32 from) {
  ctx *c = src->c;
  if (!pn->at.i || diag_count(c) == from) return;
  diag_locate(c, from, pn->at);
  sym file = loc_get(c, pn->at)->file;
  diag_item last = diag_get(c, diag_count(c) - 1);
  if (!lies_in(c, last.at, file)) diag_note(c, entry_for(src, pn, last.at), "the plan asks for it here");
}

void plan_no_way(const prog *p, loc where, const type_info *t, layout to) {
  strbuf sb = {.a = ctx_arena(p->c)};
  layout_print(p->sp, t->lay, t->s.nd, t->s.dim, &sb);
  sb_put(&sb, " to ");
  layout_print(p->sp, to, t->s.nd, t->s.dim, &sb);
  diag(p->c, E_LAYOUT, where, "no communication can convert %s", sb_str(&sb));
  diag_hint(p->c, "an axis in time (microbatches) cannot be gathered inside a step: split a dimension that "
                  "every instruction keeps");
}

// A loss that is a mean of which the labels decide what it is divided by.
static bool is_weighted_mean(const prog *src, const instr *in) {
  const attrs at = attrs_get(src, in->at);
  const attr *reduce = attr_get(at, A_reduce);
  if (in->op != OP_nll && in->op != OP_cross_entropy) return false;
  if (reduce && strcmp(sym_str(src->c, reduce->u.s), "mean")) return false;
  return attr_get(at, A_ignore) || in->nopd > 2;
}

bool plan_whole_in_time(const apply *x, const instr *in, u32 operand, layout have, layout need) {
  const prog *p = x->p, *src = x->src;
  const layout_info *li = layout_get(p->sp, have);
  u8 time = 0;
  for (u32 i = 0; i < li->nsplit; i++)
    if (axis_get(p->sp, li->split[i].axis)->temporal && !layout_split_of(p->sp, need, li->split[i].axis))
      time = li->split[i].axis;
  if (!time) return false;
  diag(src->c, E_LAYOUT, in->where,
       "%s needs operand %u of all %u microbatches at once, but they run one after the other",
       op_row_of(in->op)->name, operand + 1, axis_size(p->sp, time));
  if (is_weighted_mean(src, in) && operand < 2) {
    diag_note(src->c, (loc){0},
              "a mean over labels that are weighted or ignored is divided by a sum over all labels, which no "
              "microbatch knows");
    diag_hint(src->c, "mb=1, or a loss with reduce=\"sum\"");
  } else if (in->op == OP_nll && operand == 2) {
    diag_hint(src->c,
              "make class weights a constant parameter of main (const): inputs are split as the batch is");
  } else {
    diag_hint(src->c, "mb=1, or split a dimension that every instruction keeps");
  }
  return true;
}
