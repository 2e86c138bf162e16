// sequence.c - Megatron's sequence parallelism: between the matmuls that tensor parallelism divides, where it
// leaves everything whole (normalisations, sums of branches, dropout), activations are split over the
// sequence, on the same axis.
//
// Idea: two kinds of choices are enough. What lies in the stream, that is what has both the sequence and the
// hidden index that matmuls split by columns sum over, is split over the sequence (weak: where an operand
// brings another split over the axis along, that is followed). And the matmuls' own choices become strong: a
// sequence that is split does not take the axis from them, but is gathered before a column and summed into
// pieces after a row. So weights lie as without this option, an all_reduce is an all_gather and a
// reduce_scatter, and what is saved for the backward pass is split either way.
#include "plan/policy/letters.h"

typedef struct {
  planner *pl;
  plan *pn;
  u8 axis;
  u32 ways;
  letters l;
  bool *stream, *sequence; // per class
  bool *cut, *batch;       // per class: matmuls have it in their results and are split over it; experts
  bool *summed;            // per class: products with weights sum over it
} sequence;

static bool has_class(const sequence *q, func f, value v, const bool *set) {
  const type_info *t = val_type(planner_source(q->pl), func_get(planner_source(q->pl), f), v);
  for (u32 d = 0; !t->tuple && d < t->s.nd; d++) {
    u32 id[16], n = classes_dim(q->l.k, f, v, d, id, COUNT_OF(id));
    for (u32 j = 0; j < n; j++)
      if (set[id[j]]) return true;
  }
  return false;
}

// The plan's choice for an instruction; NULL: none.
static plan_trans *choice_for(const sequence *q, func f, u32 index) {
  for (u32 i = 0; i < q->pn->ntrans; i++) {
    plan_trans *t = &q->pn->trans[i];
    if (t->axis == q->axis && t->fn.i == f.i && t->instr == index + 1) return t;
  }
  return NULL;
}

// A matmul with a table that is split where its rows are looked up (a tied embedding) follows that split:
// the same choice once more.
static plan_trans *choice_of_table(sequence *q, func f, u32 index) {
  const func_info *fi = func_get(planner_source(q->pl), f);
  const instr *in = &fi->body.v[index];
  for (u32 i = 0; i < q->pn->ntrans; i++) {
    plan_trans t = q->pn->trans[i];
    if (t.axis != q->axis || t.fn.i != f.i || !t.instr || t.result) continue;
    value table = opd_of(fi, &fi->body.v[t.instr - 1], t.index);
    for (u32 o = 0; o < instr_nopd(fi, in); o++) {
      if (opd_of(fi, in, o) != table) continue;
      t.instr = index + 1, t.index = o;
      q->pn->trans[q->pn->ntrans] = t;
      return &q->pn->trans[q->pn->ntrans++];
    }
  }
  return NULL;
}

static bool is_split(const sequence *q, const plan_trans *t, const letter *x) {
  return x->operand == t->index && x->dim == t->dim &&
         (t->uneven || t->stride == x->inner * (x->extent / q->ways));
}

// Makes the choice of a matmul strong, and notes what one with a split in its result sums over. One whose
// input arrives split keeps its weak choice, if it has any: in program order, its partner comes first.
static void keep_matmul(sequence *q, func f, u32 index) {
  letter x[WEIGHT_LETTERS];
  u32 n = letters_weight(&q->l, f, index, x);
  plan_trans *t = choice_for(q, f, index);
  if (!t) t = choice_of_table(q, f, index);
  for (u32 j = 0; j < n; j++) q->summed[x[j].class] |= x[j].kind == LETTER_ROW;
  for (u32 j = 0; j < n; j++)
    if (x[j].kind == LETTER_ROW && q->cut[x[j].class]) return;
  if (!t) return;
  t->weak = false;
  bool first = true; // of matmuls that are split over this index
  for (u32 j = 0; j < n; j++) {
    if (!is_split(q, t, &x[j])) continue;
    first = x[j].kind != LETTER_ROW && !(x[j].kind == LETTER_BATCH && q->cut[x[j].class]);
    q->cut[x[j].class] = x[j].kind != LETTER_ROW;
    if (x[j].kind == LETTER_BATCH) q->batch[x[j].class] = true;
  }
  for (u32 j = 0; j < n && first; j++)
    if (x[j].kind == LETTER_ROW) q->stream[x[j].class] = true;
}

static void keep_matmuls(sequence *q) {
  const prog *p = planner_source(q->pl);
  for (u32 f = 1; f < planner_funcs(q->pl); f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++)
      if (letters_is_matmul(&q->l, (func){f}, i)) keep_matmul(q, (func){f}, i);
}

// The dimensions of inputs, behind the first one, that the stream has and products with weights go along: what these
// sum over are channels.
static bool find_sequence(sequence *q) {
  prog *p = planner_source(q->pl);
  const func_info *m = func_get(p, p->main);
  bool *input = ZNEWN(ctx_arena(p->c), bool, classes_count(q->l.k) + 1);
  for (u32 i = 0; i < m->nparams; i++) {
    u32 nd = m->params.v[i].r == ROLE_INPUT ? val_type(p, m, i + 1)->s.nd : 0;
    for (u32 d = 1; d < nd; d++) {
      u32 id[16], n = classes_dim(q->l.k, p->main, i + 1, d, id, COUNT_OF(id));
      if (n == 1) input[id[0]] = true;
    }
  }
  i64 whole = 0;
  bool any = false;
  for (u32 f = 1; f < planner_funcs(q->pl); f++)
    for (value v = 1; v < p->funcs.v[f]->values.n; v++) {
      const type_info *t = val_type(p, p->funcs.v[f], v);
      if (t->tuple || q->l.weight[f][v] || !has_class(q, (func){f}, v, q->stream)) continue;
      for (u32 d = 0; d < t->s.nd; d++) {
        u32 id[16], n = classes_dim(q->l.k, (func){f}, v, d, id, COUNT_OF(id));
        for (u32 j = 0; j < n; j++) {
          if (!input[id[j]] || q->summed[id[j]]) continue;
          q->sequence[id[j]] = any = true;
          if (classes_get(q->l.k, id[j])->extent % q->ways) whole = classes_get(q->l.k, id[j])->extent;
        }
      }
    }
  if (any && !whole) return true;
  if (whole) {
    const bool shares = q->pn->axes[q->axis - 1].shares;
    diag(p->c, E_DIVIDE, m->where,
         shares ? "sequence length %lld is not divisible by %u, the sum of tp.shares"
         : q->pn->nmeshes > 1
             ? "sequence length %lld is not divisible by %u, a degree of tp.stages or replicas"
             : "sequence length %lld is not divisible by tp=%u",
         (long long)whole, q->ways);
    diag_hint(p->c, "--seq %lld, or leave out sp", (long long)(ceil_div(whole, q->ways) * q->ways));
  } else {
    diag(p->c, E_DIVIDE, m->where,
         "no input has a sequence dimension that every layer keeps; sp cannot split it %u ways", q->ways);
    diag_hint(p->c, "leave out sp");
  }
  return false;
}

// The dimension of an instruction's first result that has a class of a set, if its law lets it be split.
static bool split_dim(const sequence *q, const bool *set, plan_trans *t) {
  const prog *p = planner_source(q->pl);
  const func_info *fi = func_get(p, t->fn);
  value v = fi->body.v[t->instr - 1].res;
  const shape *s = &val_type(p, fi, v)->s;
  const law *l = plan_law(q->pl, t->fn, t->instr - 1);
  for (u32 d = 0; l && d < s->nd; d++) {
    u32 id[16], na = classes_dim(q->l.k, t->fn, v, d, id, COUNT_OF(id));
    i64 inner = s->dim[d];
    for (u32 j = 0; j < na; j++) {
      i64 e = classes_get(q->l.k, id[j])->extent;
      inner /= e;
      if (!set[id[j]]) continue;
      t->dim = (u8)d, t->stride = inner * (e / q->ways);
      const law_dim *ld = &l->res[0].dim[d];
      i64 in = 1;
      for (u32 x = ld->n; x-- > 0; in *= l->letter[ld->f[x]].extent)
        if (t->stride >= in && t->stride < in * l->letter[ld->f[x]].extent)
          return !(l->letter[ld->f[x]].flags & LAW_WHOLE) && t->stride % in == 0 &&
                 l->letter[ld->f[x]].extent % (t->stride / in * q->ways) == 0;
      return false;
    }
  }
  return false;
}

static bool reads_stream(const sequence *q, func f, const instr *in) {
  const func_info *fi = func_get(planner_source(q->pl), f);
  for (u32 o = 0; o < instr_nopd(fi, in); o++) {
    value v = opd_of(fi, in, o);
    if (!q->l.weight[f.i][v] && has_class(q, f, v, q->stream) && has_class(q, f, v, q->sequence)) return true;
  }
  return false;
}

static void split_stream(sequence *q, const bool *split) {
  const prog *p = planner_source(q->pl);
  for (u32 f = 1; f < planner_funcs(q->pl); f++) {
    const func_info *fi = p->funcs.v[f];
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      if (in->op == OP_call || !in->nres || op_row_of(in->op)->flags & OPF_GEMM || q->l.weight[f][in->res])
        continue;
      plan_trans t = {.fn = {f}, .instr = i + 1, .result = true, .axis = q->axis, .weak = true};
      bool table = choice_for(q, (func){f}, i); // rows that are looked up: their sum is split
      bool stays = has_class(q, (func){f}, in->res, q->stream) && split_dim(q, q->sequence, &t);
      if (stays && (table || !split[in->origin])) q->pn->trans[q->pn->ntrans++] = t;
      if (stays || !reads_stream(q, (func){f}, in) || !split_dim(q, q->batch, &t)) continue;
      t.weak = false; // tokens on their way to experts
      q->pn->trans[q->pn->ntrans++] = t;
    }
  }
}

// All choices for instructions over the axis follow from those for matmuls: a trial deals out no inputs, and has no
// other axis.
static bool is_own(const plan_trans *t, u8 axis) { return t->instr && t->axis == axis; }

static key_words key_of(arena *a, const plan *pn, u8 axis) {
  key_words k = {0};
  *vec_push(a, &k) = KEY_SEQUENCE, *vec_push(a, &k) = axis;
  plan_axis_key(a, &k, &pn->axes[axis - 1]);
  plan_choices_key(a, &k, pn, axis);
  return k;
}

// The plan's choices, with room for more: those over the axis last. Returns how many others there are.
static u32 own_last(arena *a, plan *pn, u8 axis, u32 room) {
  plan_trans *v = NEWN(a, plan_trans, pn->ntrans + room + 1);
  u32 n = 0, others;
  for (u32 i = 0; i < pn->ntrans; i++)
    if (!is_own(&pn->trans[i], axis)) v[n++] = pn->trans[i];
  others = n;
  for (u32 i = 0; i < pn->ntrans; i++)
    if (is_own(&pn->trans[i], axis)) v[n++] = pn->trans[i];
  pn->trans = v;
  return others;
}

bool policy_sequence(planner *pl, arena *a, plan *pn, u8 axis) {
  prog *p = planner_source(pl);
  u32 room = 0, nkept; // room: a choice for every instruction at most
  plan_trial_result r;
  const key_words key = key_of(a, pn, axis);
  const plan_trans *kept = planner_kept(pl, &key, &nkept);
  if (kept) {
    const u32 others = own_last(a, pn, axis, nkept);
    memcpy(pn->trans + others, kept, sizeof *kept * nkept);
    pn->ntrans = others + nkept;
    return true;
  }
  if (!plan_trial(pl, pn, p->main, axis, &r)) return false;
  for (u32 f = 1; f < planner_funcs(pl); f++) room += p->funcs.v[f]->body.n;
  const u32 others = own_last(a, pn, axis, room);
  sequence q = {
      .pl = pl, .pn = pn, .axis = axis, .ways = plan_parts(&pn->axes[axis - 1]), .l = letters_of(pl, a)};
  q.stream = ZNEWN(a, bool, classes_count(q.l.k) + 1);
  q.sequence = ZNEWN(a, bool, classes_count(q.l.k) + 1);
  q.cut = ZNEWN(a, bool, classes_count(q.l.k) + 1);
  q.batch = ZNEWN(a, bool, classes_count(q.l.k) + 1);
  q.summed = ZNEWN(a, bool, classes_count(q.l.k) + 1);
  keep_matmuls(&q);
  if (!find_sequence(&q)) return false;
  split_stream(&q, r.split);
  planner_keep(pl, &key, pn->trans + others, pn->ntrans - others);
  return true;
}
