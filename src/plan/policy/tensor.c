// tensor.c - tensor parallelism found from the laws: which letter of every product with a weight is split, so
// that all products are divided and as little as possible moves. Never looks at names of models or operators.
//
// Idea: functions callee first, products in program order. A product that a split brought along by its
// operands already divides needs no choice. For any other, each letter of its weight is tried at each of its
// factors (a fused QKV is split over its heads that way), and the choice that leaves the least work and
// traffic in the function stays, traffic weighed at so many flops a byte; a product that costs more to move
// than to compute stays whole. If that leaves all whole (a small model), work counts first. Choices are weak:
// where an operand arrives split, that split is followed, so column and row splits alternate.
#include "plan/plan.h"

enum { UNEVEN = 64 }; // an extent that does not divide is split if pieces have as many elements at least

typedef struct {
  planner *pl;
  arena *a;
  plan *pn;
  u8 axis;
  const classes *k;
  double price; // flops that cost as much as moving one byte
  bool whole_tables;
  bool *done;   // per function
  u32 products; // that are split evenly: a vocabulary alone is not tensor parallelism
} tensor;

static bool is_weight(const func_info *f, value v) {
  return !f->values.v[v].def && f->params.v[v - 1].r == ROLE_WEIGHT;
}

// Less work and traffic in flops; with price 0 less work first, then less traffic.
static bool better(const tensor *t, const plan_trial_result *x, const plan_trial_result *y) {
  if (t->price > 0) return x->flops + t->price * x->moved < y->flops + t->price * y->moved;
  if (x->flops < y->flops * 0.999) return true;
  return x->flops <= y->flops * 1.001 && x->moved < y->moved;
}

static void choose(tensor *t, func f, u32 index) {
  prog *p = planner_source(t->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  u32 n = t->pn->axes[t->axis - 1].size, at = t->pn->ntrans++;
  plan_trial_result best, now;
  plan_trans pick = {0};
  t->pn->ntrans--;
  if (!plan_trial(t->pl, t->pn, f, t->axis, &best) || best.split[in->origin]) return;
  t->pn->ntrans++;
  for (u32 o = 0; o < instr_nopd(fi, in); o++) {
    value w = opd_of(fi, in, o);
    if (!is_weight(fi, w)) continue;
    const shape *s = &val_type(p, fi, w)->s;
    for (u32 d = 0; d < s->nd; d++) {
      u32 id[16], na = classes_dim(t->k, f, w, d, id, COUNT_OF(id));
      i64 inner = s->dim[d];
      for (u32 j = 0; j < na; j++) {
        i64 e = classes_get(t->k, id[j])->extent;
        inner /= e;
        bool uneven = e % n != 0; // pieces of a vocabulary may differ a little
        if (uneven && (na > 1 || e < UNEVEN * n)) continue;
        t->pn->trans[at] = (plan_trans){.fn = f,
                                        .instr = index + 1,
                                        .index = o,
                                        .dim = (u8)d,
                                        .axis = t->axis,
                                        .stride = uneven ? 0 : inner * (e / n),
                                        .weak = true,
                                        .uneven = uneven};
        if (plan_trial(t->pl, t->pn, f, t->axis, &now) && better(t, &now, &best))
          best = now, pick = t->pn->trans[at];
      }
    }
  }
  if (pick.instr)
    t->pn->trans[at] = pick, t->products += !pick.uneven;
  else
    t->pn->ntrans--;
}

// A table whose rows are picked by value (an embedding) is split over its rows: every rank looks up those
// that it has, and the sum over the ranks is the result. That moves as much as one product of a layer does,
// for a table, its gradient and its optimiser states that would else lie on every rank.
static void split_table(tensor *t, func f, u32 index) {
  prog *p = planner_source(t->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  const law *l = instr_nopd(fi, in) && is_weight(fi, opd_of(fi, in, 0)) ? plan_law(t->pl, f, index) : NULL;
  u32 n = t->pn->axes[t->axis - 1].size;
  for (u32 d = 0; l && d < l->opd[0].nd; d++) {
    const law_dim *ld = &l->opd[0].dim[d];
    if (ld->n != 1) continue;
    const law_letter *x = &l->letter[ld->f[0]];
    if ((x->flags & (LAW_ADDRESSED | LAW_WHOLE)) != LAW_ADDRESSED || x->extent < UNEVEN * n) continue;
    bool uneven = x->extent % n != 0;
    t->pn->trans[t->pn->ntrans++] = (plan_trans){.fn = f,
                                                 .instr = index + 1,
                                                 .dim = (u8)d,
                                                 .axis = t->axis,
                                                 .stride = uneven ? 0 : x->extent / n,
                                                 .weak = true,
                                                 .uneven = uneven};
    return;
  }
}

static bool visit(tensor *t, func f) {
  if (t->done[f.i]) return true;
  t->done[f.i] = true;
  prog *p = planner_source(t->pl);
  const func_info *fi = func_get(p, f);
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call && !visit(t, in->callee)) return false;
    if (in->op != OP_call && !t->whole_tables) split_table(t, f, i);
    if (!(op_row_of(in->op)->flags & OPF_GEMM)) continue;
    bool weight = false;
    for (u32 o = 0; o < instr_nopd(fi, in); o++) weight |= is_weight(fi, opd_of(fi, in, o));
    if (weight) choose(t, f, i);
  }
  return true;
}

bool policy_tensor(planner *pl, arena *a, plan *pn, u8 axis, double flops_per_byte, bool whole_tables) {
  prog *p = planner_source(pl);
  u32 products = 0;
  for (u32 f = 1; f < planner_funcs(pl); f++) products += p->funcs.v[f]->body.n;
  plan_trans *more = NEWN(a, plan_trans, pn->ntrans + products + 1);
  if (pn->ntrans) memcpy(more, pn->trans, sizeof *more * pn->ntrans);
  pn->trans = more;
  u32 before = pn->ntrans, nkept;
  u64 key = hash_bytes(&flops_per_byte, sizeof flops_per_byte,
                       (u64)pn->axes[axis - 1].size << 32 | (u64)whole_tables << 8 | axis);
  const plan_trans *kept = planner_kept(pl, key, &nkept);
  if (kept) {
    memcpy(pn->trans + before, kept, sizeof *kept * nkept);
    pn->ntrans += nkept;
    return true;
  }
  tensor t = {
      .pl = pl, .a = a, .pn = pn, .axis = axis, .price = flops_per_byte, .whole_tables = whole_tables};
  t.k = planner_classes(pl);
  t.done = ZNEWN(a, bool, planner_funcs(pl));
  if (!visit(&t, p->main)) return false;
  if (!t.products) {
    t.price = 0;
    pn->ntrans = before;
    memset(t.done, 0, planner_funcs(pl) * sizeof *t.done); // trials add functions of the planner's own
    if (!visit(&t, p->main)) return false;
  }
  if (!t.products) {
    diag(p->c, E_DIVIDE, func_get(p, p->main)->where, "no product of the model can be split %u ways",
         pn->axes[axis - 1].size);
    diag_hint(p->c, "the heads and the hidden dimensions must be multiples of the tensor degree");
    return false;
  }
  planner_keep(pl, key, pn->trans + before, pn->ntrans - before);
  return true;
}

// The dimension of an instruction's first result that holds the sequence, if its law lets it be split n ways.
static bool sequence_dim(planner *pl, const classes *k, u32 seq, u32 n, plan_trans *t) {
  prog *p = planner_source(pl);
  const func_info *fi = func_get(p, t->fn);
  value v = fi->body.v[t->instr - 1].res;
  const shape *s = &val_type(p, fi, v)->s;
  const law *l = plan_law(pl, t->fn, t->instr - 1);
  for (u32 d = 0; l && d < s->nd; d++) {
    u32 id[16], na = classes_dim(k, t->fn, v, d, id, 16);
    i64 inner = s->dim[d];
    for (u32 j = 0; j < na; j++) {
      i64 e = classes_get(k, id[j])->extent;
      inner /= e;
      if (id[j] != seq) continue;
      t->dim = (u8)d, t->stride = inner * (e / n);
      const law_dim *ld = &l->res[0].dim[d];
      i64 in = 1;
      for (u32 x = ld->n; x-- > 0; in *= l->letter[ld->f[x]].extent)
        if (t->stride >= in && t->stride < in * l->letter[ld->f[x]].extent)
          return !(l->letter[ld->f[x]].flags & LAW_WHOLE) && t->stride % in == 0 &&
                 l->letter[ld->f[x]].extent % (t->stride / in * n) == 0;
      return false;
    }
  }
  return false;
}

// Sequence parallelism: instructions that tensor parallelism leaves whole are split over the sequence, the
// second dimension of the first input.
bool policy_sequence(planner *pl, arena *a, plan *pn, u8 axis) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  const classes *k = planner_classes(pl);
  u32 seq = 0, n = pn->axes[axis - 1].size, products = 0;
  for (u32 i = 0; i < m->nparams && !seq; i++) {
    u32 id[8];
    if (m->params.v[i].r == ROLE_INPUT && val_type(p, m, i + 1)->s.nd >= 2 &&
        classes_dim(k, p->main, i + 1, 1, id, 8))
      seq = id[0];
  }
  if (!seq || classes_get(k, seq)->extent % n) {
    diag(p->c, E_DIVIDE, m->where, "the sequence of the first input cannot be split %u ways", n);
    diag_hint(p->c, "a sequence that is a multiple of the tensor degree, or no --sequence-parallel");
    return false;
  }
  plan_trial_result r;
  if (!plan_trial(pl, pn, p->main, axis, &r)) return false;
  for (u32 f = 1; f < planner_funcs(pl); f++) products += p->funcs.v[f]->body.n;
  plan_trans *more = NEWN(a, plan_trans, pn->ntrans + products + 1);
  memcpy(more, pn->trans, sizeof *more * pn->ntrans);
  pn->trans = more;
  for (u32 f = 1; f < planner_funcs(pl); f++) {
    const func_info *fi = p->funcs.v[f];
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      if (in->op == OP_call || !in->nres || r.split[in->origin] || (op_row_of(in->op)->flags & OPF_GEMM))
        continue;
      plan_trans t = {.fn = {f}, .instr = i + 1, .result = true, .axis = axis, .weak = true};
      if (sequence_dim(pl, k, seq, n, &t)) pn->trans[pn->ntrans++] = t;
    }
  }
  return true;
}
