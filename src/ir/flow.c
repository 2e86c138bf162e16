// flow.c - how layouts go through an operator, and what results are where the text leaves their types out.
// Not the layouts of communication (move.c).
//
// Idea: the law says which letter a split dimension is; an axis that splits a letter splits it everywhere.
// What is left is the question whether a sum that is not complete yet may pass, and linearity answers it: a
// partial sum passes through one operand in which the operator is linear alone (e), together with all
// operands in which it is linear jointly (j).
#include "ir/internal.h"

typedef struct {
  u8 axis;
  bool split; // else only partial sums
  letter_split at;
  u32 by; // the operand that says so
} axis_use;

typedef struct {
  prog *p;
  const op_row *row;
  const law *l;
  const layout *opd;
  loc where;
  u32 n;
  axis_use use[AXES_MAX];
} flow;

static const char *axis_str(const flow *w, u8 axis) {
  return sym_str(w->p->c, axis_get(w->p->sp, axis)->name);
}

static const char *operand_str(const flow *w, u32 k) { // extents and layout
  const law_term *t = &w->l->opd[k];
  i64 dim[DIMS_MAX];
  strbuf b = {.a = ctx_arena(w->p->c)};
  for (u32 d = 0; d < t->nd; d++) {
    dim[d] = 1;
    for (u32 j = 0; j < t->dim[d].n; j++) dim[d] *= w->l->letter[t->dim[d].f[j]].extent;
  }
  layout_print(w->p->sp, w->opd[k], t->nd, dim, &b);
  return sb_str(&b);
}

// ---- letters ----------------------------------------------------------------------------------------
bool ir_letter_at(const prog *p, const law *l, const law_dim *d, const lay_split *s, letter_split *out) {
  i64 inner = 1, outer = s->table ? pieces_get(p->sp, (pieces){s->table})->extent : 1;
  for (u32 j = d->n; j-- > 0;) {
    const i64 extent = l->letter[d->f[j]].extent;
    *out = (letter_split){.letter = d->f[j]};
    if (s->table) {
      outer /= extent;
      out->table = extent > 1 ? (u16)pieces_untile(p->sp, (pieces){s->table}, outer, inner).i : 0;
      if (out->table) return true;
    } else if (s->stride < inner * extent) {
      out->stride = s->stride / inner;
      return s->stride % inner == 0 && extent % (out->stride * axis_size(p->sp, s->axis)) == 0;
    }
    inner *= extent;
  }
  return false;
}

bool ir_split_of(const prog *p, const law *l, const law_term *t, u8 axis, const letter_split *s,
                 lay_split *out) {
  for (u32 d = 0; d < t->nd; d++) {
    i64 inner = 1;
    for (u32 j = t->dim[d].n; j-- > 0; inner *= l->letter[t->dim[d].f[j]].extent) {
      i64 outer = 1;
      if (t->dim[d].f[j] != s->letter) continue;
      for (u32 o = 0; s->table && o < j; o++) outer *= l->letter[t->dim[d].f[o]].extent;
      *out = (lay_split){.axis = axis, .dim = (u8)d, .stride = s->stride * inner};
      if (s->table) out->table = (u16)pieces_tile(p->sp, (pieces){s->table}, outer, inner).i;
      return true;
    }
  }
  return false;
}

// ---- what the operands say --------------------------------------------------------------------------
static axis_use *use_of(flow *w, u8 axis, u32 k) {
  for (u32 j = 0; j < w->n; j++)
    if (w->use[j].axis == axis) return &w->use[j];
  assert(w->n < AXES_MAX);
  w->use[w->n] = (axis_use){.axis = axis, .by = k};
  return &w->use[w->n++];
}

static bool add_split(flow *w, u32 k, const lay_split *s) {
  ctx *c = w->p->c;
  axis_use new = {.axis = s->axis, .split = true, .by = k};
  const char *name = w->row->name, *axis = axis_str(w, s->axis);
  if (!ir_letter_at(w->p, w->l, &w->l->opd[k].dim[s->dim], s, &new.at)) {
    diag(c, E_LAYOUT, w->where,
         "%s: operand %u is %s: the split over %s lies across two factors of dimension %u", name, k + 1,
         operand_str(w, k), axis, s->dim);
    return false;
  }
  if (w->l->letter[new.at.letter].flags & LAW_WHOLE) {
    diag(c, E_LAYOUT, w->where, "%s: dimension %u of operand %u must be whole, it is %s", name, s->dim, k + 1,
         operand_str(w, k));
    diag_hint(c, "all_gather it over %s first", axis);
    return false;
  }
  axis_use *old = use_of(w, s->axis, k);
  if (!old->split) {
    *old = new;
    return true;
  }
  if (old->at.letter == new.at.letter && old->at.stride == new.at.stride && old->at.table == new.at.table)
    return true;
  diag(c, E_LAYOUT, w->where, "%s: %s splits operand %u, %s, and operand %u, %s, at different indices", name,
       axis, old->by + 1, operand_str(w, old->by), k + 1, operand_str(w, k));
  return false;
}

static bool add_part(flow *w, u32 k, const lay_part *q) {
  use_of(w, q->axis, k);
  if (q->red == RED_SUM && law_lin(w->l, k) != '-') return true;
  diag(w->p->c, E_LAYOUT, w->where, "%s: operand %u, %s, is still partial over %s", w->row->name, k + 1,
       operand_str(w, k), axis_str(w, q->axis));
  diag_hint(w->p->c, "all_reduce it over %s first", axis_str(w, q->axis));
  return false;
}

// ---- do they agree? ---------------------------------------------------------------------------------
static bool check_split(flow *w, const axis_use *u) {
  ctx *c = w->p->c;
  bool contracted = false;
  for (u32 r = 0; r < w->l->nres; r++) contracted |= !law_term_has(&w->l->res[r], u->at.letter);
  if (contracted && w->row->red == RED_NONE) {
    diag(c, E_LAYOUT, w->where, "%s: operand %u, %s, may not be split over %s: the pieces do not add up",
         w->row->name, u->by + 1, operand_str(w, u->by), axis_str(w, u->axis));
    return false;
  }
  for (u32 k = 0; k < w->l->nopd; k++) {
    bool split = layout_split_of(w->p->sp, w->opd[k], u->axis) != NULL;
    bool part = layout_part_of(w->p->sp, w->opd[k], u->axis) != RED_NONE;
    bool has = law_term_has(&w->l->opd[k], u->at.letter), add = contracted && law_lin(w->l, k) == 'j';
    if (has ? split : part == add) continue;
    diag(c, E_LAYOUT, w->where, "%s: operand %u is %s; with operand %u, %s, it must be %s over %s",
         w->row->name, k + 1, operand_str(w, k), u->by + 1, operand_str(w, u->by),
         has   ? "split"
         : add ? "partial"
               : "whole",
         axis_str(w, u->axis));
    if (has)
      diag_hint(c, "shard it, or all_gather operand %u", u->by + 1);
    else if (add)
      diag_hint(c, "use `partial` on it: it is to be added once, not on every rank");
    return false;
  }
  return true;
}

static bool check_part(flow *w, const axis_use *u) {
  u32 e = 0, j = 0, all_e = 0, all_j = 0;
  for (u32 k = 0; k < w->l->nopd; k++) {
    bool part = layout_part_of(w->p->sp, w->opd[k], u->axis) != RED_NONE;
    char lin = law_lin(w->l, k);
    all_e += lin == 'e', all_j += lin == 'j';
    e += part && lin == 'e', j += part && lin == 'j';
  }
  if (j == all_j && e == (all_e ? 1 : 0)) return true;
  ctx *c = w->p->c;
  diag(c, E_LAYOUT, w->where, "%s: a sum that is partial over %s cannot pass: operand %u is %s", w->row->name,
       axis_str(w, u->axis), u->by + 1, operand_str(w, u->by));
  for (u32 k = 0; k < w->l->nopd; k++)
    if (k != u->by && law_lin(w->l, k) != '-')
      diag_note(c, w->where, "operand %u is %s", k + 1, operand_str(w, k));
  if (e > 1)
    diag_hint(c, "all_reduce all but one over %s", axis_str(w, u->axis));
  else
    diag_hint(c, "all_reduce operand %u, or use `partial` on the others", u->by + 1);
  return false;
}

static bool result_layout(flow *w, const law_term *t, layout *res) {
  layout_info out;
  out.nsplit = out.npart = 0;
  for (u32 k = 0; k < w->n; k++) {
    const axis_use *u = &w->use[k];
    if (u->split && ir_split_of(w->p, w->l, t, u->axis, &u->at, &out.split[out.nsplit])) {
      out.nsplit++;
    } else if (out.npart < LAY_PARTS) {
      out.part[out.npart++] = (lay_part){u->axis, (u8)(u->split ? w->row->red : RED_SUM)};
    } else {
      diag(w->p->c, E_LIMIT, w->where, "%s: partial over more than %d axes", w->row->name, LAY_PARTS);
      return false;
    }
  }
  *res = layout_of(w->p->sp, &out);
  return true;
}

bool ir_layouts(prog *p, opcode op, const law *l, const layout *opd, layout *res, loc where) {
  flow w;
  u32 any = 0;
  for (u32 k = 0; k < l->nopd; k++) any |= opd[k].i;
  for (u32 r = 0; r < l->nres; r++) res[r] = (layout){0};
  if (!any) return true;
  w.p = p, w.row = op_row_of(op), w.l = l, w.opd = opd, w.where = where, w.n = 0;
  for (u32 k = 0; k < l->nopd; k++) {
    const layout_info *i = layout_get(p->sp, opd[k]);
    for (u32 s = 0; s < i->nsplit; s++)
      if (!add_split(&w, k, &i->split[s])) return false;
    for (u32 q = 0; q < i->npart; q++)
      if (!add_part(&w, k, &i->part[q])) return false;
  }
  for (u32 k = 0; k < w.n; k++)
    if (w.use[k].split ? !check_split(&w, &w.use[k]) : !check_part(&w, &w.use[k])) return false;
  for (u32 r = 0; r < l->nres; r++)
    if (!result_layout(&w, &l->res[r], &res[r])) return false;
  return true;
}

bool ir_layout_allowed(const prog *p, const law *l, u32 k, layout declared, layout derived) {
  if (declared.i == derived.i) return true;
  const layout_info *d = layout_get(p->sp, declared), *e = layout_get(p->sp, derived);
  letter_split at;
  u32 matched = 0;
  for (u32 s = 0; s < d->nsplit; s++) {
    const lay_split *same = layout_split_of(p->sp, derived, d->split[s].axis);
    if (same) {
      if (same->dim != d->split[s].dim || same->table != d->split[s].table ||
          same->stride != d->split[s].stride)
        return false;
      matched++;
      continue;
    }
    if (!ir_letter_at(p, l, &l->res[k].dim[d->split[s].dim], &d->split[s], &at)) return false;
    if (l->letter[at.letter].flags & LAW_WHOLE) return false;
    for (u32 o = 0; o < l->nopd; o++)
      if (law_term_has(&l->opd[o], at.letter)) return false;
  }
  for (u32 q = 0; q < d->npart; q++)
    if (layout_part_of(p->sp, derived, d->part[q].axis) != (reduction)d->part[q].red) return false;
  return matched == e->nsplit && d->npart == e->npart;
}

// ---- results that the text leaves out ---------------------------------------------------------------
static bool count_is(prog *p, const application *x, u32 have, u32 want) {
  if (have == want) return true;
  diag(p->c, E_ARITY, x->where, "%s: %u results named, it has %u", op_row_of(x->op)->name, want, have);
  return false;
}

static bool by_law(prog *p, arena *tmp, const application *x, const type *opd, u32 nres, type *res) {
  const char *name = op_row_of(x->op)->name;
  shape *in = NEWN(tmp, shape, x->nopd), out[OP_RES_MAX];
  layout *from = NEWN(tmp, layout, x->nopd), to[OP_RES_MAX];
  if (nres > OP_RES_MAX) {
    diag(p->c, E_LIMIT, x->where, "%s: more than %d results", name, OP_RES_MAX);
    return false;
  }
  for (u32 k = 0; k < x->nopd; k++) {
    const type_info *t = type_get(p, opd[k]);
    if (t->tuple) {
      diag(p->c, E_SHAPE, x->where, "%s: operand %u is a tuple", name, k + 1);
      return false;
    }
    in[k] = t->s;
    from[k] = t->lay;
  }
  u32 have = nres;
  const law *l = op_law(p->c, tmp, x->op, attrs_get(p, x->at), x->nopd, in, &have, out, x->where);
  if (!l || !count_is(p, x, have, nres) || !ir_layouts(p, x->op, l, from, to, x->where)) return false;
  assert(l->nres == nres);
  for (u32 k = 0; k < nres; k++) res[k] = type_tensor(p, &out[k], to[k], x->g);
  return true;
}

bool infer_results(prog *p, arena *tmp, const application *x, const type *opd, u32 nres, type *res) {
  switch (x->op) {
  case OP_call:
    for (u32 k = 0; k < MIN(nres, x->nrets); k++) res[k] = type_bind(p, x->rets[k], x->g);
    return count_is(p, x, x->nrets, nres);
  case OP_unpack: {
    const type_info *t = x->nopd == 1 ? type_get(p, opd[0]) : NULL;
    if (!t || !t->tuple) {
      diag(p->c, E_SHAPE, x->where, "unpack takes one tuple");
      return false;
    }
    for (u32 k = 0; k < MIN(nres, t->n); k++) res[k] = t->elem[k];
    return count_is(p, x, t->n, nres);
  }
  case OP_pack:
    if (nres) *res = type_tuple(p, opd, x->nopd);
    return count_is(p, x, 1, nres);
  case OP_opaque:
    diag(p->c, E_SYNTAX, x->where, "the types of opaque's results must be written");
    return false;
  default: return is_move(x->op) ? move_result(p, x, opd, res, nres) : by_law(p, tmp, x, opd, nres, res);
  }
}
