// roles.c - what an axis may do in one instruction, from its law alone. Not here: which roles are taken
// (shard.c).
#include "plan/roles.h"

bool has_role(const axis_role *r, u32 n, u8 axis) {
  for (u32 i = 0; i < n; i++)
    if (r[i].axis == axis) return true;
  return false;
}

// Is a letter of another split with pieces of its own in a dimension that has this one? It has no room for
// two.
static bool meets_table(const law *l, u32 letter, const axis_role *r, u32 nr) {
  for (u32 k = 0; k < l->nopd + l->nres; k++) {
    const law_term *t = k < l->nopd ? &l->opd[k] : &l->res[k - l->nopd];
    for (u32 d = 0; d < t->nd; d++) {
      bool here = false, other = false;
      for (u32 j = 0; j < t->dim[d].n; j++) {
        here |= t->dim[d].f[j] == letter;
        for (u32 i = 0; i < nr; i++) other |= r[i].at.table && r[i].at.letter == t->dim[d].f[j];
      }
      if (here && other) return true;
    }
  }
  return false;
}

bool may_split(const law *l, reduction red, space *sp, u8 axis, const letter_split *x, const axis_role *r,
               u32 nr) {
  const law_letter *lt = &l->letter[x->letter];
  const i64 n = axis_size(sp, axis), stride = x->stride;
  if (lt->flags & LAW_WHOLE || (x->table && meets_table(l, x->letter, r, nr))) return false;
  if (!x->table && (stride <= 0 || lt->extent % (stride * n))) return false;
  if (red == RED_NONE)
    for (u32 k = 0; k < l->nres; k++)
      if (!law_term_has(&l->res[k], x->letter)) return false;
  for (u32 i = 0; i < nr; i++) {
    const letter_split *y = &r[i].at;
    if (y->letter != x->letter) continue;
    if (x->table || y->table) { // of every microbatch, and of every coordinate of the other axis, alike
      const letter_split *table = x->table ? x : y, *other = x->table ? y : x;
      if (other->table) return false;
      if (!pieces_untile(sp, (pieces){table->table}, lt->extent / other->stride, 1).i) return false;
      continue;
    }
    const i64 m = axis_size(sp, r[i].axis);
    if (y->stride == stride) return false;
    if (y->stride > stride ? y->stride % (stride * n) : stride % (y->stride * m)) return false;
  }
  return true;
}

u32 roles_of_layout(const prog *p, group g, const law *l, reduction red, const law_term *t, layout lay,
                    axis_role *r, u32 nr) {
  space *sp = p->sp;
  const layout_info li = *layout_get(sp, lay);
  for (u32 i = 0; i < li.nsplit && nr < ROLES_MAX; i++) {
    const lay_split *sl = &li.split[i];
    letter_split x;
    if (has_role(r, nr, sl->axis) || axis_get(sp, sl->axis)->temporal || !group_has_axis(sp, g, sl->axis))
      continue;
    if (ir_letter_at(p, l, &t->dim[sl->dim], sl, &x) && may_split(l, red, sp, sl->axis, &x, r, nr))
      r[nr++] = (axis_role){sl->axis, red, x};
  }
  return nr;
}

u32 roles_of_sums(const space *sp, const law *l, reduction red, const layout *have, bool one, axis_role *r,
                  u32 nr) {
  for (u32 first = 0; l->nopd > 1 && red == RED_SUM && first < l->nopd; first++) {
    const layout_info *li = have[first].i != LAYOUT_FREE.i ? layout_get(sp, have[first]) : NULL;
    for (u32 i = 0; li && i < li->npart && nr < ROLES_MAX; i++) {
      u8 axis = li->part[i].axis;
      bool all = !has_role(r, nr, axis) && li->part[i].red == RED_SUM;
      for (u32 k = 0; k < l->nopd && all; k++)
        all = law_lin(l, k) == 'j' &&
              (one || (have[k].i != LAYOUT_FREE.i && layout_part_of(sp, have[k], axis) == RED_SUM));
      if (all) r[nr++] = (axis_role){axis, RED_SUM, {.letter = PASS}};
    }
  }
  return nr;
}

bool sum_gains(const op_row *row, char lin, u32 joint, u32 nuses, i64 from, i64 to) {
  return (row->flags & OPF_VIEW) || (lin == 'j' && joint > 1) || (nuses == 1 && (to < from || to == 1));
}

// The one instruction that reads v, from 0, and as which operand. False: there is none, or another one.
static bool only_reader(const func_info *f, value v, u32 *at, u32 *as) {
  u32 n = 0;
  for (u32 i = 0; i < f->rets.n; i++)
    if (f->rets.v[i] == v) return false;
  for (u32 i = 0; i < f->body.n; i++)
    for (u32 k = 0; k < instr_nopd(f, &f->body.v[i]); k++)
      if (opd_of(f, &f->body.v[i], k) == v) n++, *at = i, *as = k;
  return n == 1;
}

bool sum_shrinks(planner *pl, func fn, value v, i64 than) {
  prog *p = planner_source(pl);
  for (u32 at = 0, as = 0;;) {
    const func_info *f = func_get(p, fn);
    if (!only_reader(f, v, &at, &as)) return false;
    const instr *in = &f->body.v[at];
    const op_row *row = op_row_of(in->op);
    if (in->op == OP_call) { // on in its body
      if (opd_donated(f, in, as)) return false;
      fn = in->callee, v = as + 1;
      continue;
    }
    if (in->nres != 1) return false;
    const i64 to = shape_elems(&val_type(p, f, in->res)->s);
    if (to > than) return false;
    v = in->res;
    if (row->flags & OPF_VIEW || in->op == OP_transpose) continue;
    const law *l = to < than ? plan_law(pl, fn, at) : NULL;
    return l && row->red == RED_SUM && law_lin(l, as) == 'e';
  }
}

bool sum_moves(planner *pl, func fn, value v, i64 than) {
  const func_info *f = func_get(planner_source(pl), fn);
  u32 at, as;
  if (sum_shrinks(pl, fn, v, than)) return true;
  if (!only_reader(f, v, &at, &as)) return false;
  const instr *in = &f->body.v[at];
  return in->flags & INSTR_BACKWARD && (in->op == OP_add || in->op == OP_accumulate);
}

static bool is_weight(const func_info *f, value v) {
  return v <= f->nparams && f->params.v[v - 1].r == ROLE_WEIGHT;
}

// A product with a weight, perhaps with others (biases) added, that one instruction reads.
static bool is_branch(const func_info *f, const u32 *nuses, value v) {
  while (nuses[v] == 1 && val(f, v)->def) {
    const instr *in = &f->body.v[val(f, v)->def - 1];
    u32 n = instr_nopd(f, in), weights = 0;
    for (u32 o = 0; o < n; o++) weights += is_weight(f, opd_of(f, in, o));
    if (weights != 1 || n != 2) return false;
    if (op_row_of(in->op)->flags & OPF_GEMM) return true;
    if (in->op != OP_add) return false;
    v = opd_of(f, in, is_weight(f, opd_of(f, in, 0)));
  }
  return false;
}

bool meets_branch(const func_info *f, const u32 *nuses, u32 index) {
  const instr *in = &f->body.v[index];
  if (in->op != OP_add || !is_branch(f, nuses, in->res)) return false;
  for (u32 i = index + 1; i < f->body.n; i++) {
    const instr *u = &f->body.v[i];
    for (u32 o = 0; o < u->nopd; o++)
      if (opd_of(f, u, o) == in->res)
        return u->op == OP_add && instr_nopd(f, u) == 2 && is_branch(f, nuses, opd_of(f, u, 1 - o));
  }
  return false;
}
