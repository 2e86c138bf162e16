// where.c - refusals of a plan that a text made point into that text.
#include "plan/internal.h"

static bool lies_in(const ctx *c, loc at, sym file) {
  const loc_info *l = loc_get(c, at);
  return l && l->file.i == file.i;
}

// The entry of the plan that chooses for the instruction at this place; otherwise the plan as a whole.
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
  diag_place(c, from, pn->at);
  sym file = loc_get(c, pn->at)->file;
  diag_item last = diag_get(c, diag_count(c) - 1);
  if (!lies_in(c, last.at, file)) diag_note(c, entry_for(src, pn, last.at), "the plan asks for it here");
}
