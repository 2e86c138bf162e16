// tensor.c - tensor parallelism found from the laws: which letter of every matmul with a weight is split, so
// that all of them are divided and as little as possible moves. Never looks at names of models or operators,
// nor at the machine.
//
// Idea: functions callee first, matmuls in program order. A matmul that a split brought along by its operands
// already divides needs no choice: it sums over what its partner made (row). Any other is split over an index
// of its result (column) that no normalisation meets on its way, or over its experts; which one, where there
// are several, is tried: the least work in the function stays. A fused QKV comes out split over its heads.
// Choices are weak: where an operand arrives split, that split is followed, so column and row alternate. What
// has no such index is split over what it sums over, at the price of a sum.
//
// What stays whole, or is split unevenly, by rule:
// - a matmul without an index to split that takes at most 1/16 of a rank's share of the work (a router of
//   experts, a tiny head) stays whole, and so does one in main that could only be split over what is
//   normalised next (a convolution that makes patches of an image);
// - an index that no other matmul uses (a vocabulary) and does not divide is split in pieces that differ by
//   one element, if they have 64 elements at least, else the matmul is split over what it sums over.
// Everything else that cannot be divided is refused.
#include "plan/policy/letters.h"

enum {
  UNEVEN = 64, // an extent that does not divide is split if pieces have as many elements at least
  SMALL = 16   // a matmul of less than 1/SMALL of a rank's share of the work may stay whole
};

typedef struct {
  planner *pl;
  plan *pn;
  u8 axis;
  u32 ways; // parts that a split is made of: ranks, or the sum of their shares
  letters l;
  bool whole_tables;
  const bool *const *within; // policy_tensor_within
  tensor_rest rest;          // likewise
  bool *done;                // per function
  double *flops;             // per function, with the functions that it calls; < 0: not yet known
  u32 matmuls;               // that are split evenly: a vocabulary alone is not tensor parallelism
} tensor;

typedef struct {
  plan_trial_result r;
  u32 met; // by how many matmuls of the function
} trial;

static bool nearly(double x, double y) { return x <= y * 1.001 && y <= x * 1.001; }

// Less work first; then the index that more matmuls have (of grouped queries that of the keys, too, rather
// than the one inside a group); then less traffic.
static bool better(const trial *x, const trial *y) {
  if (!nearly(x->r.flops, y->r.flops)) return x->r.flops < y->r.flops;
  if (x->met != y->met) return x->met > y->met;
  return nearly(x->r.moved, y->r.moved) ? x->r.flops < y->r.flops : x->r.moved < y->r.moved;
}

static u32 matmuls_with(const tensor *t, func f, u32 class) {
  const func_info *fi = func_get(planner_source(t->pl), f);
  u32 met = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    letter x[WEIGHT_LETTERS];
    u32 n = letters_is_matmul(&t->l, f, i) ? letters_weight(&t->l, f, i, x) : 0, j = 0;
    while (j < n && x[j].class != class) j++;
    met += j < n;
  }
  return met;
}

static plan_trans trans_of(const tensor *t, func f, u32 index, const letter *x) {
  bool uneven = x->extent % t->ways;
  return (plan_trans){.fn = f,
                      .instr = index + 1,
                      .index = x->operand,
                      .dim = x->dim,
                      .axis = t->axis,
                      .stride = uneven ? 0 : x->inner * (x->extent / t->ways),
                      .weak = true,
                      .uneven = uneven};
}

// ---- which letters come into question ---------------------------------------------------------------------
typedef enum { WAY_COLUMN, WAY_UNEVEN, WAY_ROW } way;

static bool has_use(const tensor *t, const letter *x, u8 use) { return (t->l.use[x->class] & use) == use; }

// An index of the result (or of the experts) along which a split can go on. A normalisation at the end of a
// model (of probabilities of words) is no obstacle: it takes a sum of few numbers, once.
static bool goes_on(const tensor *t, const letter *x) {
  return x->kind == LETTER_BATCH || (x->kind == LETTER_COLUMN && !has_use(t, x, LETTER_WHOLE) &&
                                     !has_use(t, x, LETTER_AGAIN | LETTER_INNER));
}

static bool is_way(const tensor *t, const letter *x, way w) {
  bool divides = x->extent % t->ways == 0;
  switch (w) {
  case WAY_COLUMN: return goes_on(t, x) && divides;
  case WAY_UNEVEN:
    return goes_on(t, x) && !divides && !has_use(t, x, LETTER_INNER) && x->alone &&
           x->extent >= UNEVEN * (i64)t->ways;
  default: return x->kind == LETTER_ROW && divides;
  }
}

// The best choice of one kind, added to the plan; false: there is none.
static bool choose_among(tensor *t, func f, u32 index, const letter *x, u32 n, way w) {
  trial best = {0}, now;
  plan_trans pick = {0};
  u32 at = t->pn->ntrans++, origin = func_get(planner_source(t->pl), f)->body.v[index].origin;
  for (u32 i = 0; i < n; i++) {
    if (!is_way(t, &x[i], w)) continue;
    t->pn->trans[at] = trans_of(t, f, index, &x[i]);
    if (!plan_trial(t->pl, t->pn, f, t->axis, &now.r) || !now.r.split[origin]) continue;
    now.met = matmuls_with(t, f, x[i].class);
    if (!pick.instr || better(&now, &best)) best = now, pick = t->pn->trans[at];
  }
  t->pn->trans[at] = pick;
  if (!pick.instr) t->pn->ntrans--;
  return pick.instr;
}

// ---- what stays whole, and what is refused ----------------------------------------------------------------
static double instr_flops(const tensor *t, func f, u32 index) {
  const prog *p = planner_source(t->pl);
  const instr *in = &func_get(p, f)->body.v[index];
  return op_row_of(in->op)->flags & OPF_GEMM
             ? op_flops(in->op, attrs_get(p, in->at), plan_law(t->pl, f, index))
             : 0;
}

static double func_flops(tensor *t, func f) {
  const func_info *fi = func_get(planner_source(t->pl), f);
  if (t->flops[f.i] >= 0) return t->flops[f.i];
  double sum = 0;
  for (u32 i = 0; i < fi->body.n; i++)
    sum += fi->body.v[i].op == OP_call ? func_flops(t, fi->body.v[i].callee) : instr_flops(t, f, i);
  return t->flops[f.i] = sum;
}

static bool is_small(tensor *t, func f, u32 index) {
  return instr_flops(t, f, index) * SMALL * t->ways <= func_flops(t, f);
}

// The index for which a matmul cannot be split: one along which a split could go on rather than another, the
// largest of them.
static const letter *to_blame(const tensor *t, const letter *x, u32 n) {
  const letter *worst = NULL;
  for (u32 i = 0; i < n; i++) {
    if (x[i].extent % t->ways == 0) continue;
    bool on = goes_on(t, &x[i]), was = worst && goes_on(t, worst);
    if (!worst || on > was || (on == was && x[i].extent > worst->extent)) worst = &x[i];
  }
  return worst;
}

static void print_dims(const tensor *t, func f, value w, strbuf *out) {
  const shape *s = &val_type(planner_source(t->pl), func_get(planner_source(t->pl), f), w)->s;
  for (u32 d = 0; d < s->nd; d++) sb_fmt(out, d ? " x %lld" : "%lld", (long long)s->dim[d]);
}

// "4800 = 3 x 25 x 64, and 25 is not divisible by 8"
static void print_reason(const tensor *t, func f, value w, const letter *x, strbuf *out) {
  u32 id[16], n = classes_dim(t->l.k, f, w, x->dim, id, COUNT_OF(id));
  i64 whole = val_type(planner_source(t->pl), func_get(planner_source(t->pl), f), w)->s.dim[x->dim];
  for (u32 j = 0; n > 1 && j < n; j++) {
    if (!j) sb_fmt(out, "%lld =", (long long)whole);
    sb_fmt(out, j ? " x %lld" : " %lld", (long long)classes_get(t->l.k, id[j])->extent);
  }
  sb_fmt(out, "%s%lld is not divisible by %u", n > 1 ? ", and " : "", (long long)x->extent, t->ways);
}

static bool refuse(const tensor *t, func f, u32 index, const letter *x, u32 n) {
  prog *p = planner_source(t->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  const letter *why = to_blame(t, x, n);
  value w = opd_of(fi, in, why ? why->operand : instr_nopd(fi, in) - 1);
  const char *name = sym_str(p->c, val(fi, w)->name);
  strbuf dims = {.a = ctx_arena(p->c)}, reason = {.a = ctx_arena(p->c)};
  print_dims(t, f, w, &dims);
  if (why)
    print_reason(t, f, w, why, &reason);
  else
    sb_put(&reason, "the matmul cannot be split along any dimension");
  diag(p->c, E_DIVIDE, in->where, "%s of %s cannot be split %u ways: %s", *name ? name : "a weight",
       sb_str(&dims), t->ways, sb_str(&reason));
  u32 fits = t->ways;
  while (why && why->extent % fits) fits--;
  if (why && fits > 1 && t->pn->axes[t->axis - 1].shares)
    diag_hint(p->c, "use tp.shares whose sum divides %lld", (long long)why->extent);
  else if (why && t->pn->nmeshes > 1)
    diag_hint(p->c, "use degrees that divide %lld in tp.stages or replicas", (long long)why->extent);
  else if (why && fits > 1)
    diag_hint_number(p->c, fits, "tp=%u", fits);
  else
    diag_hint(p->c,
              "use a degree that divides the heads and the hidden size of every layer, or leave out tp");
  return false;
}

// ---- all matmuls of a function ----------------------------------------------------------------------------
// Divides one matmul with a weight, or leaves it whole by rule; false if neither is possible.
static bool choose(tensor *t, func f, u32 index) {
  letter x[WEIGHT_LETTERS];
  u32 n = letters_weight(&t->l, f, index, x);
  plan_trial_result now;
  if (!plan_trial(t->pl, t->pn, f, t->axis, &now)) return refuse(t, f, index, x, n);
  // What follows its operands here gets a choice, too: where the function is called with operands that lie
  // otherwise (channels of a convolution that are split already), it would be left whole.
  bool column = choose_among(t, f, index, x, n, WAY_COLUMN) ||
                now.split[func_get(planner_source(t->pl), f)->body.v[index].origin];
  t->matmuls += column;
  if (column || choose_among(t, f, index, x, n, WAY_UNEVEN) || t->rest != TENSOR_ALONE ||
      is_small(t, f, index))
    return true;
  bool on = false; // could a split go on if it divided?
  for (u32 i = 0; i < n; i++) {
    on |= goes_on(t, &x[i]);
    if (goes_on(t, &x[i]) && has_use(t, &x[i], LETTER_INNER)) return refuse(t, f, index, x, n);
  }
  bool row = choose_among(t, f, index, x, n, WAY_ROW);
  t->matmuls += row;
  return row || (!on && f.i == planner_source(t->pl)->main.i) || refuse(t, f, index, x, n);
}

// Does a value depend on nothing that main is given?
static bool is_fixed(const func_info *fi, value v) {
  const u32 def = val(fi, v)->def;
  if (!def) return false;
  const instr *in = &fi->body.v[def - 1];
  for (u32 o = 0; o < instr_nopd(fi, in); o++)
    if (!is_fixed(fi, opd_of(fi, in, o))) return false;
  return true;
}

// An index of a table along which a split goes on into products (a bias for every head); NULL: there is none.
static const law_letter *head_of_table(const tensor *t, func f, value table, const law *l, u32 *dim) {
  for (u32 d = 0; d < l->opd[0].nd; d++) {
    u32 id[2];
    const law_dim *ld = &l->opd[0].dim[d];
    if (ld->n != 1 || classes_dim(t->l.k, f, table, d, id, COUNT_OF(id)) != 1) continue;
    const law_letter *x = &l->letter[ld->f[0]];
    const u8 use = t->l.use[id[0]];
    *dim = d;
    if (!(x->flags & (LAW_ADDRESSED | LAW_WHOLE)) && x->extent % t->ways == 0 && use & LETTER_INNER &&
        !(use & (LETTER_WHOLE | LETTER_AGAIN)))
      return x;
  }
  return NULL;
}

// A table whose rows are picked by value (an embedding) is split over its rows: every rank looks up those
// that it has, and the sum over the ranks is the result. That moves as much as one product of a layer does,
// for a table, its gradient and its optimizer states that would else lie on every rank. One whose rows are always the
// same ones (of relative positions) is split over its heads, if it has any: that moves nothing.
static void split_table(tensor *t, func f, u32 index) {
  prog *p = planner_source(t->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  const law *l = instr_nopd(fi, in) && t->l.weight[f.i][opd_of(fi, in, 0)] ? plan_law(t->pl, f, index) : NULL;
  u32 n = t->ways, at = 0;
  const bool fixed = l && is_fixed(fi, opd_of(fi, in, 1));
  const law_letter *head = fixed ? head_of_table(t, f, opd_of(fi, in, 0), l, &at) : NULL;
  if (head)
    t->pn->trans[t->pn->ntrans++] = (plan_trans){.fn = f,
                                                 .instr = index + 1,
                                                 .dim = (u8)at,
                                                 .axis = t->axis,
                                                 .stride = head->extent / n,
                                                 .weak = true};
  for (u32 d = 0; l && !head && d < l->opd[0].nd; d++) {
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
  const func_info *fi = func_get(planner_source(t->pl), f);
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (t->within && t->within[f.i] && !t->within[f.i][i]) continue;
    if (in->op == OP_call) {
      if (!visit(t, in->callee)) return false;
      continue;
    }
    if (!t->whole_tables) split_table(t, f, i);
    if (letters_is_matmul(&t->l, f, i) && !choose(t, f, i)) return false;
  }
  return true;
}

bool policy_tensor(planner *pl, arena *a, plan *pn, u8 axis, bool whole_tables) {
  return policy_tensor_within(pl, a, pn, axis, whole_tables, NULL, TENSOR_ALONE);
}

static void put_within(arena *a, key_words *k, const prog *p, u32 nf, const bool *const *within) {
  for (u32 f = 1; within && f < nf; f++) {
    if (!within[f]) continue;
    *vec_push(a, k) = f;
    key_put_bytes(a, k, within[f], p->funcs.v[f]->body.n);
  }
}

void policy_trans_room(planner *pl, arena *a, plan *pn) {
  const prog *p = planner_source(pl);
  u32 room = 0;
  for (u32 f = 1; f < planner_funcs(pl); f++) room += p->funcs.v[f]->body.n;
  plan_trans *more = NEWN(a, plan_trans, pn->ntrans + room + 1);
  if (pn->ntrans) memcpy(more, pn->trans, sizeof *more * pn->ntrans);
  pn->trans = more;
}

bool policy_tensor_within(planner *pl, arena *a, plan *pn, u8 axis, bool whole_tables,
                          const bool *const *within, tensor_rest rest) {
  prog *p = planner_source(pl);
  u32 before = pn->ntrans, nkept, nf = planner_funcs(pl);
  policy_trans_room(pl, a, pn);
  key_words key = {0};
  *vec_push(a, &key) = KEY_TENSOR;
  *vec_push(a, &key) = (u64)axis << 4 | (u64)(within != NULL) << 3 | (u64)rest << 1 | whole_tables;
  plan_axis_key(a, &key, &pn->axes[axis - 1]);
  put_within(a, &key, p, nf, within);
  plan_choices_key(a, &key, pn, 0); // a trial has them
  const plan_trans *kept = planner_kept(pl, &key, &nkept);
  if (kept) {
    memcpy(pn->trans + before, kept, sizeof *kept * nkept);
    pn->ntrans += nkept;
    return true;
  }
  const u32 said = diag_count(p->c);
  if (planner_refused(pl, &key)) return false;
  tensor t = {.pl = pl,
              .pn = pn,
              .axis = axis,
              .ways = plan_parts(&pn->axes[axis - 1]),
              .whole_tables = whole_tables,
              .within = within,
              .rest = rest};
  t.l = letters_of(pl, a);
  t.done = ZNEWN(a, bool, nf);
  t.flops = NEWN(a, double, nf);
  for (u32 f = 0; f < nf; f++) t.flops[f] = -1;
  if (!visit(&t, p->main)) {
    planner_keep_refusal(pl, &key, said);
    return false;
  }
  if (!t.matmuls && rest != TENSOR_LEAVES) {
    diag(p->c, E_DIVIDE, func_get(p, p->main)->where, "no matmul with a weight can be split over tp=%u",
         t.ways);
    diag_hint(p->c, "leave out tp");
    return false;
  }
  planner_keep(pl, &key, pn->trans + before, pn->ntrans - before);
  return true;
}
