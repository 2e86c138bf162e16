// late.c - when a rank receives what is sent to it.
//
// Idea: a send copies and leaves, so it takes place where it stands only at its sender. Its receiver takes it when the
// value is used, or before anything else comes from the same ranks, for messages between two ranks have no names but
// their order. Taken where it stands it would keep the receiver from work that lies between, and from what others wait
// for.
#include "eval/internal.h"

static group target_of(const interp *m, const frame *f, const instr *i) {
  return group_bind(val_type(m->p, f->f, i->res)->g, f->g);
}

bool eval_receives_only(const interp *m, const frame *f, const instr *i) {
  if (i->op != OP_send) return false;
  const u32 rank = m->link->rank;
  return eval_member(m, group_bind(i->g, f->g), rank) < 0 && eval_member(m, target_of(m, f, i), rank) >= 0;
}

static bool meet(const interp *m, group x, group y) {
  for (u32 k = 0, n = eval_members(m, x); k < n; k++)
    if (eval_member(m, y, eval_rank_of(m, x, k)) >= 0) return true;
  return false;
}

// Does a function name groups of its own, so that the group it is called on does not say whom it hears?
static bool names_groups(const prog *p, func fn) {
  const func_info *f = func_get(p, fn);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->g.i || (i->op == OP_call && names_groups(p, i->callee))) return true;
  }
  return false;
}

// Does the instruction use what the send brings, or may it receive from its ranks?
static bool needs(const interp *m, const frame *f, const instr *i, u32 send) {
  const instr *s = &f->f->body.v[send];
  const op_row *row = op_row_of(i->op);
  for (u32 k = 0; k < i->nopd; k++)
    if (f->f->values.v[opd_of(f->f, i, k)].def == send + 1) return true;
  if (i->op == OP_send)
    return eval_member(m, target_of(m, f, i), m->link->rank) >= 0 && !eval_receives_only(m, f, i);
  if (i->op != OP_call && !(row->flags & OPF_COMM) && i->op != OP_join && i->op != OP_part) return false;
  if (i->op == OP_call && names_groups(m->p, i->callee)) return true;
  return meet(m, group_bind(s->g, f->g), group_bind(i->g, f->g));
}

u32 eval_due(const interp *m, const frame *f, const instr *i) {
  u32 n = i ? 0 : f->waiting.n;
  for (u32 k = f->waiting.n; k > n; k--)
    if (needs(m, f, i, f->waiting.v[k - 1].index)) return k;
  return n;
}
