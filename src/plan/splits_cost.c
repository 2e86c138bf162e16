// splits_cost.c - what ways of splitting cost on a machine: operators at their local shapes, forward and backward, and conversions
// between layouts. So the problems of splits.h for a plan's degrees.
//
// Idea: an operator's form is written into a program of prices with the layouts that a way gives its values, and every
// instruction is asked for its price, as `heddle sim` asks. Conversions are the cheapest chains that a plan would write.
#include "cost/cost.h"
#include "plan/splits_live.h"
#include "plan/splits_ops.h"

enum { ALL_BACK = 2 };
typedef struct {
  u8 axis;
  u32 class;
  u16 table;
  i64 within;
} class_split;

// ---- the program of prices ---------------------------------------------------------------------------------
bool splits_prices_open(splits_prices *x, const splits_model *m, cost_model *k, const splits_terms *t,
                        splits_allowed *allowed, void *arg) {
  ctx *c = m->pl->src->c;
  *x = (splits_prices){
      .m = m, .k = k, .t = *t, .allowed = allowed, .arg = arg, .a = arena_new(), .p = prog_new(c)};
  const u32 rest = t->ranks / t->ways, parts = t->data * t->micro;
  u8 axes[2] = {axis_add(x->p->sp, sym_of(c, "rest"), rest, false),
                axis_add(x->p->sp, sym_of(c, "tp"), t->ways, false)};
  x->axis = axes[1];
  x->time = parts > 1 ? axis_add(x->p->sp, sym_of(c, "batch"), parts, true) : 0;
  x->all = group_all(x->p->sp, mesh_add(x->p->sp, sym_of(c, "m"), axes, 2, 0, NULL));
  x->ps = NEWN(x->a, i64, t->ranks + 1);
  x->known = ZNEWN(x->a, splits_price_of *, planner_funcs(m->pl) + 1);
  return x->all.i;
}

void splits_prices_close(splits_prices *x) {
  prog_free(x->p);
  arena_free(x->a);
}

static layout layout_of_form(const splits_prices *x, const splits_instr *i, value v, const class_split *c,
                             u32 nc) {
  const shape *s = &val_type(x->m->p, func_get(x->m->p, i->form), v)->s;
  layout_info li = {0};
  bool has[2] = {false, false};
  assert(nc <= COUNT_OF(has));
  for (u32 d = 0; d < s->nd; d++) {
    u32 id[16], n = classes_dim(i->k, i->form, v, d, id, COUNT_OF(id));
    i64 inner = s->dim[d];
    for (u32 j = 0; j < n; j++) {
      inner /= classes_get(i->k, id[j])->extent;
      for (u32 q = 0; q < nc; q++) {
        if (id[j] != c[q].class || has[q] || (c[q].table && n > 1)) continue;
        has[q] = true;
        li.split[li.nsplit++] =
            (lay_split){.axis = c[q].axis, .dim = (u8)d, .table = c[q].table, .stride = c[q].within * inner};
      }
    }
  }
  const layout l = layout_of(x->p->sp, &li);
  return layout_fits(x->p->sp, l, s->nd, s->dim) ? l : (layout){0};
}

// The batch of an operator: the class of its form that data ranks and microbatches split. False: it has none.
static bool batch_of(const splits_prices *x, const splits_instr *i, class_split *out) {
  const prog *src = x->m->pl->src;
  const func_info *f = func_get(src, i->fn);
  const instr *in = &f->body.v[i->index];
  const i64 parts = x->time ? axis_size(x->p->sp, x->time) : 1;
  for (u32 k = 0; x->time && k < i->l->nopd + i->l->nres; k++) {
    const law_term *t = k < i->l->nopd ? &i->l->opd[k] : &i->l->res[k - i->l->nopd];
    const value v = k < i->l->nopd ? opd_of(f, in, k) : in->res + k - i->l->nopd;
    const shape *s = &val_type(src, f, v)->s;
    for (u32 d = 0; d < s->nd && d < t->nd; d++) {
      u32 id[16], n = classes_dim(x->m->k, i->fn, v, d, id, COUNT_OF(id));
      i64 inner = s->dim[d];
      for (u32 j = 0; j < n; j++) {
        const i64 e = classes_get(x->m->k, id[j])->extent;
        inner /= e;
        if (id[j] != x->m->batch || e % parts) continue;
        const lay_split sl = {.axis = x->time, .dim = (u8)d, .stride = inner * (e / parts)};
        letter_split at;
        *out = (class_split){.axis = x->time};
        if (ir_letter_at(x->p, i->l, &t->dim[d], &sl, &at) &&
            splits_class_of(x->m, i, at.letter, at.stride, &out->class, &out->within))
          return true;
      }
    }
  }
  return false;
}

// The form, every value in its layout: ps of its forward and of its backward. False: no price.
static bool price_form(splits_prices *x, const splits_instr *i, const class_split *c, u32 nc, i64 ps[2]) {
  const func_info *f = func_get(x->m->p, i->form);
  const func out = func_new(x->p, sym_of(x->p->c, "price"), (loc){0});
  value *map = NEWN(x->a, value, f->values.n);
  builder b = builder_at(x->p, out);
  ps[0] = ps[1] = 0;
  for (u32 k = 1; k <= f->nparams; k++)
    map[k] = func_param(
        x->p, out, type_tensor(x->p, &val_type(x->m->p, f, k)->s, layout_of_form(x, i, k, c, nc), (group){0}),
        (sym){0}, ROLE_INPUT);
  for (u32 j = 0; j < i->nbackward; j++) {
    const instr *in = &f->body.v[j];
    if (j >= i->nforward && j < i->nforward + i->nlikened) continue;
    u32 opd[16];
    type res[16];
    if (in->nopd > COUNT_OF(opd) || in->nres > COUNT_OF(res)) return false;
    for (u32 k = 0; k < in->nopd; k++) opd[k] = map[opd_of(f, in, k)];
    for (u32 k = 0; k < in->nres; k++)
      res[k] = type_tensor(x->p, &val_type(x->m->p, f, in->res + k)->s,
                           layout_of_form(x, i, in->res + k, c, nc), (group){0});
    const attrs at = attrs_get(x->m->p, in->at);
    b.where = in->where;
    const u32 made = emit(&b, (opcode)in->op, attrs_of(x->p, at.v, at.n), opd, in->nopd, res, in->nres);
    const func_info *of = func_get(x->p, out);
    for (u32 k = 0; k < in->nres; k++) map[in->res + k] = of->body.v[made - 1].res + k;
    if (op_row_of((opcode)in->op)->flags & OPF_META) continue;
    const u32 n = cost_instr(x->k, x->p, of, &of->body.v[made - 1], x->all, x->ps);
    if (!n) return false;
    ps[j >= i->nforward] += splits_slowest(x, n);
  }
  return true;
}

// ---- one operator -----------------------------------------------------------------------------------------
typedef struct {
  splits_prices *x;
  splits_sheet *s;
  const splits_func *w;
  const func_info *f;
  VEC(splits_op) op;
  VEC(u32) instr;
  VEC(const u8 *) way;
  VEC(u32) member; // of a chain
} sheet;

// The layout that a term of the law has; LIES_NONE states where there is none.
static layout term_of(const splits_prices *x, const splits_instr *i, const law_term *t, layout base,
                      const letter_split *at) {
  lay_split sl;
  if (!ir_split_of(x->p, i->l, t, x->axis, at, &sl)) return base;
  return sl.table ? layout_with_pieces(x->p->sp, base, x->axis, sl.dim, (pieces){sl.table})
                  : layout_with_split(x->p->sp, base, x->axis, sl.dim, sl.stride);
}

bool splits_letter_of(const splits_prices *x, const splits_instr *i, const splits_way *w, letter_split *at) {
  bool uneven;
  const u32 parts = x->time ? axis_size(x->p->sp, x->time) : 1;
  *at = (letter_split){.letter = w->letter, .stride = splits_stride(i, w, x->t.ways, parts, &uneven)};
  if (uneven) at->table = (u16)pieces_spread(x->p->sp, x->t.ways, i->l->letter[w->letter].extent).i;
  return at->stride || at->table;
}

static bool has_letter(const law_term *t, u32 letter) {
  for (u32 d = 0; d < t->nd; d++)
    for (u32 j = 0; j < t->dim[d].n; j++)
      if (t->dim[d].f[j] == letter) return true;
  return false;
}

// What the parts of a decomposition say to each other: about three numbers for every element that is left without the letter.
static i64 apart_ps(const splits_prices *x, const splits_instr *i, u32 letter) {
  const prog *src = x->m->pl->src;
  const func_info *f = func_get(src, i->fn);
  const shape *s = &val_type(src, f, opd_of(f, &f->body.v[i->index], 0))->s;
  const layout l = splits_dealt(x, i->fn, opd_of(f, &f->body.v[i->index], 0));
  const i64 each = layout_local_elems(x->p->sp, l, s->nd, s->dim) / MAX(i->l->letter[letter].extent, 1);
  const i64 ps = cost_over(x->k, x->p, x->all, &x->axis, 1, OP_all_reduce, each * 4, DT_F32);
  return ps < 0 ? ps : 3 * ps;
}

// Does a sum pass from the operand? Of all that are linear together, of the one that the way names of others.
static bool passes_sum(const law *l, const splits_way *w, u32 k) {
  return w->kind == WAY_SUM && (law_lin(l, k) == 'j' || w->letter == k);
}

// States of one operator's terms, operands then results, for one way, and of the gradients of its operands. False: not
// possible.
static bool states_for(sheet *s, const splits_instr *i, const splits_way *w, u8 *need, u8 *grad, u8 *made) {
  splits_prices *x = s->x;
  const instr *in = &s->f->body.v[i->index];
  const law *l = i->l;
  letter_split at = {0};
  const bool splits = w->kind == WAY_INDEX || w->kind == WAY_APART;
  if (w->kind == WAY_UNSAID && !i->sums) return false;
  if (splits && !splits_letter_of(x, i, w, &at)) return false;
  bool sum = false; // is a result a sum?
  for (u32 k = 0; k < l->nres; k++) sum |= splits && !has_letter(&l->res[k], w->letter);
  for (u32 k = 0; k < l->nopd; k++) {
    const value v = opd_of(s->f, in, k);
    splits_lies *lies = &s->s->lies[v];
    const bool has = splits && has_letter(&l->opd[k], w->letter);
    const bool once = passes_sum(l, w, k) || (w->kind == WAY_INDEX && sum && !has && law_lin(l, k) == 'j');
    need[k] = once  ? LIES_SUM
              : has ? splits_state(lies, term_of(x, i, &l->opd[k], lies->lay[0], &at))
                    : LIES_WHOLE;
    if (need[k] == LIES_NONE) return false;
    grad[k] = !i->gradient[k]                ? LIES_NONE
              : once || w->kind == WAY_WHOLE ? LIES_WHOLE
              : w->kind == WAY_UNSAID        ? (i->sums[k] ? LIES_SUM : LIES_WHOLE)
              : has                          ? need[k]
              : w->kind == WAY_APART         ? LIES_WHOLE
                                             : LIES_SUM;
  }
  for (u32 k = 0; k < l->nres; k++) {
    splits_lies *lies = &s->s->lies[in->res + k];
    const bool has = splits && has_letter(&l->res[k], w->letter);
    made[k] = w->kind == WAY_SUM || (w->kind == WAY_INDEX && !has) ? LIES_SUM
              : has ? splits_state(lies, term_of(x, i, &l->res[k], lies->lay[0], &at))
                    : LIES_WHOLE;
    if (made[k] == LIES_NONE) return false;
  }
  return true;
}

static bool price_way(sheet *s, const splits_instr *i, const splits_way *w, i64 ps[2]) {
  splits_prices *x = s->x;
  class_split c[2];
  u32 nc = batch_of(x, i, &c[0]);
  letter_split at;
  const u32 before = diag_count(x->p->c);
  bool ok = true;
  if (w->kind == WAY_INDEX || w->kind == WAY_APART) {
    if (!splits_letter_of(x, i, w, &at)) return false;
    c[nc] = (class_split){.axis = x->axis, .table = at.table};
    ok = splits_class_of(x->m, i, at.letter, at.table ? 1 : at.stride, &c[nc].class, &c[nc].within);
    nc += ok;
    if (at.table) c[nc - 1].within = 0;
  }
  ok = ok && price_form(x, i, c, nc, ps);
  if (ok && w->kind == WAY_APART) {
    const i64 more = apart_ps(x, i, w->letter);
    ps[0] += ps[0] + MAX(more, 0), ok = more >= 0;
  }
  diag_truncate(x->p->c, before);
  return ok;
}

// The same, kept: way `k` of its leader's.
static bool known_price(sheet *s, const splits_instr *i, const splits_way *w, u32 k, i64 ps[2]) {
  splits_prices *x = s->x;
  splits_price_of **of = &x->known[i->fn.i];
  if (!*of) *of = ZNEWN(x->a, splits_price_of, (size_t)s->f->body.n * SPLITS_WAYS);
  splits_price_of *p = &(*of)[(size_t)i->index * SPLITS_WAYS + k];
  if (!p->known) p->known = true, p->possible = price_way(s, i, w, p->ps);
  ps[0] = p->ps[0], ps[1] = p->ps[1];
  return p->possible;
}

splits_way splits_way_of_follower(const splits_instr *lead, const splits_instr *i, const splits_way *w) {
  splits_way out = *w;
  if (w->kind != WAY_INDEX) return out;
  for (u32 d = 0; d < lead->l->res[0].nd; d++)
    if (lead->l->res[0].dim[d].n == 1 && lead->l->res[0].dim[d].f[0] == w->letter)
      out.letter = i->l->res[0].dim[d].f[0];
  return out;
}

// One option of a chain: its first instruction in that way, the others likewise. False: not possible.
static bool option_of(sheet *s, const splits_op *op, const u32 *weight_at, const splits_way *w,
                      splits_option *o) {
  splits_prices *x = s->x;
  const splits_instr *lead = &s->w->v[s->member.v[0]];
  u8 *need = NEWN(x->a, u8, op->nopd + 1), *grad = NEWN(x->a, u8, op->nopd + 1),
     *made = NEWN(x->a, u8, op->nres + 1);
  u32 n = 0;
  *o = (splits_option){.need = need,
                       .grad = grad,
                       .made = made,
                       .as_comes = w->kind == WAY_UNSAID || splits_sums_alone(lead, w),
                       .grads_come = w->kind == WAY_UNSAID};
  for (u32 j = 0; j < s->member.n; j++) {
    const splits_instr *i = &s->w->v[s->member.v[j]];
    const instr *in = &s->f->body.v[i->index];
    const splits_way own = j ? splits_way_of_follower(lead, i, w) : *w;
    u8 nd[16] = {0}, gr[16] = {0}, md[OP_RES_MAX] = {0};
    i64 ps[2];
    if (x->allowed && !x->allowed(x->arg, i, &own, x->t.ways)) return false;
    if (!states_for(s, i, &own, nd, gr, md) || !known_price(s, i, &own, (u32)(w - lead->way), ps))
      return false;
    const bool marked = x->t.marked && x->t.marked[i->fn.i] && x->t.marked[i->fn.i][i->index];
    o->time_ps +=
        ps[0] * marked +
        ps[0] * (x->t.again && s->f != func_get(x->m->pl->src, x->m->pl->src->main) ? ALL_BACK : 1) + ps[1];
    for (u32 k = 0; k < i->nopd; k++) {
      const value v = opd_of(s->f, in, k);
      const u32 def = val(s->f, v)->def;
      if (o->grads_come && j && def && s->s->leader[def - 1] == s->member.v[0] && gr[k] != LIES_SUM)
        return false; // the one before it would not have a sum
      if (n < op->nopd && weight_at[n] == (s->member.v[j] << 8 | k)) {
        assert(op->opd[n] == v);
        need[n] = nd[k], grad[n] = gr[k], n++;
      }
    }
    for (u32 k = 0; k < in->nres && j + 1 == s->member.n; k++) made[k] = md[k];
    if (j + 1 < s->member.n && !x->t.again && !marked && x->t.train) { // a value inside the chain
      const splits_instr *next = &s->w->v[s->member.v[j + 1]];
      bool again = i->kept[0];
      for (u32 k = 0; k < next->nopd; k++)
        again |= next->again[k] && opd_of(s->f, &s->f->body.v[next->index], k) == in->res;
      if (again)
        o->bytes += splits_held(x) * splits_local_bytes(x, &val_type(x->m->pl->src, s->f, in->res)->s,
                                                        s->s->lies[in->res].lay[md[0]]);
    }
  }
  return true;
}

// No way is allowed: which there would be is kept, for a message.
static void refuse(sheet *s, const splits_op *op, const u32 *weight_at, const splits_instr *lead) {
  splits_prices *x = s->x;
  splits_allowed *allowed = x->allowed;
  u8 *way = NEWN(x->a, u8, lead->nways + 1);
  splits_refusal r = {.x = lead, .ways = x->t.ways, .way = way};
  splits_option o;
  x->allowed = NULL;
  for (u32 k = 0; k < lead->nways; k++)
    if (option_of(s, op, weight_at, &lead->way[k], &o)) way[r.nways++] = (u8)k;
  x->allowed = allowed;
  if (r.nways) x->refusal = r;
}

// An operator for a chain that begins with an instruction.
static bool add_chain(sheet *s, u32 first) {
  splits_prices *x = s->x;
  s->member.n = 0;
  for (u32 i = first; i < s->f->body.n; i++)
    if (s->s->leader[i] == first) *vec_push(x->a, &s->member) = i;
  VEC(u32) opd = {0}, at = {0}, again = {0};
  for (u32 j = 0; j < s->member.n; j++) {
    const splits_instr *i = &s->w->v[s->member.v[j]];
    for (u32 k = 0; k < i->nopd; k++) {
      const value v = opd_of(s->f, &s->f->body.v[i->index], k);
      const u32 def = val(s->f, v)->def;
      if (def && s->w->v[def - 1].fixed) continue;
      if (j && def && s->s->leader[def - 1] == first) continue; // inside
      *vec_push(x->a, &opd) = v, *vec_push(x->a, &at) = s->member.v[j] << 8 | k;
      *vec_push(x->a, &again) = i->again[k];
    }
  }
  assert(s->member.n && s->member.v); // `first` itself
  const instr *end = &s->f->body.v[s->member.v[s->member.n - 1]];
  splits_op op = {.nopd = opd.n, .nres = end->nres, .opd = opd.v};
  u32 *res = NEWN(x->a, u32, end->nres + 1);
  for (u32 k = 0; k < end->nres; k++) res[k] = end->res + k;
  op.res = res;
  bool *read = NEWN(x->a, bool, again.n + 1);
  for (u32 k = 0; k < again.n; k++) read[k] = again.v[k];
  op.again = read;
  const splits_instr *lead = &s->w->v[first];
  splits_option *o = NEWN(x->a, splits_option, lead->nways + 1);
  u8 *way = NEWN(x->a, u8, lead->nways + 1);
  for (u32 k = 0; k < lead->nways; k++)
    if (option_of(s, &op, at.v, &lead->way[k], &o[op.noptions])) way[op.noptions++] = (u8)k;
  op.option = o;
  if (!op.noptions && x->allowed) refuse(s, &op, at.v, lead);
  *vec_push(x->a, &s->op) = op, *vec_push(x->a, &s->instr) = first + 1, *vec_push(x->a, &s->way) = way;
  return op.noptions;
}

// ---- functions --------------------------------------------------------------------------------------------
// Where a function begins or ends: an operator that makes or takes one tensor in any state but a sum. What the model is
// given is whole, to be cut by what reads it; its results stay in the pieces that they have.
static splits_op gate(sheet *s, value v, bool enters) {
  splits_prices *x = s->x;
  const bool is_main = s->s->f.i == x->m->pl->src->main.i;
  const splits_lies *l = &s->s->lies[v];
  splits_option *o = ZNEWN(x->a, splits_option, l->n + 1);
  u8 *way = NEWN(x->a, u8, l->n + 1), *code = NEWN(x->a, u8, 2 * l->n + 1);
  u32 *t = NEW(x->a, u32), n = 0;
  const i64 *ends = is_main && !enters && v == s->f->rets.v[0]
                        ? splits_endings(x, &val_type(x->m->pl->src, s->f, v)->s, l)
                        : NULL;
  const bool flows =
      dtype_kind_of(val_type(x->m->pl->src, s->f, v)->s.t) == DK_FLOAT && x->t.train && !is_main;
  *t = v;
  for (u32 k = 0; k < l->n; k++) {
    if (ends ? ends[k] < 0 : k == LIES_SUM || (is_main && enters && k != LIES_WHOLE)) continue;
    code[2 * k] = (u8)k, code[2 * k + 1] = flows ? (u8)k : LIES_NONE;
    o[n] = (splits_option){
        .time_ps = ends ? ends[k] : 0, .need = &code[2 * k], .made = &code[2 * k], .grad = &code[2 * k + 1]};
    way[n++] = (u8)k;
  }
  *vec_push(x->a, &s->way) = way, *vec_push(x->a, &s->instr) = 0;
  return (splits_op){
      .nopd = !enters, .nres = enters, .opd = t, .res = t, .noptions = n, .option = o, .named = !is_main};
}

// What backward passes read of a value, followed through views to what they show.
static void find_kept(const sheet *s, bool *kept) {
  for (u32 i = s->f->body.n; i-- > 0;) {
    const instr *in = &s->f->body.v[i];
    const splits_instr *y = &s->w->v[i];
    if (in->op == OP_call || y->fixed || !y->l) continue;
    const bool view = op_row_of((opcode)in->op)->flags & OPF_VIEW;
    for (u32 k = 0; k < y->nopd; k++)
      kept[opd_of(s->f, in, k)] |= y->again[k] || (view && !k && kept[in->res]);
    for (u32 k = 0; k < in->nres; k++) kept[in->res + k] = !view && (kept[in->res + k] || y->kept[k]);
  }
}

// keeps: bytes of it are kept for the backward.
static splits_tensor make_tensor(sheet *s, value v, bool keeps) {
  splits_prices *x = s->x;
  const type_info *ty = val_type(x->m->pl->src, s->f, v);
  const splits_lies *l = &s->s->lies[v];
  const bool is_main = s->s->f.i == x->m->pl->src->main.i;
  const bool param = v <= s->f->nparams, weight = param && s->f->params.v[v - 1].r == ROLE_WEIGHT;
  if (ty->tuple || !l->n) return (splits_tensor){0};
  splits_tensor t = {.nstates = l->n, .convert = splits_converts(x, &ty->s, l), .weight = weight};
  t.gradient = x->t.train && dtype_kind_of(ty->s.t) == DK_FLOAT && (!param || weight || !is_main);
  i64 *bytes = ZNEWN(x->a, i64, l->n);
  for (u32 k = 0; k < l->n; k++)
    bytes[k] = weight ? splits_stored_bytes(x, &x->t, &ty->s, l->lay[k])
                      : splits_held(x) * splits_local_bytes(x, &ty->s, l->lay[k]);
  if (weight || keeps) t.bytes = bytes;
  if (weight && t.gradient) t.settle = splits_settles(x, &ty->s, l);
  return t;
}

static void make_tensors(sheet *s, const bool *in_call) {
  splits_prices *x = s->x;
  const u32 nv = s->f->values.n;
  const bool is_main = s->s->f.i == x->m->pl->src->main.i;
  splits_tensor *t = ZNEWN(x->a, splits_tensor, nv + 1);
  bool *kept = ZNEWN(x->a, bool, nv + 1);
  if (x->t.train) find_kept(s, kept);
  const bool *marked = x->t.marked ? x->t.marked[s->s->f.i] : NULL;
  for (value v = 1; v < nv && marked; v++)
    kept[v] = kept[v] && !(val(s->f, v)->def && marked[val(s->f, v)->def - 1]);
  for (value v = 1; v < nv; v++)
    t[v] = make_tensor(s, v, x->t.again && !is_main ? v <= s->f->nparams && kept[v] : kept[v] && !in_call[v]);
  s->s->p.tensor = t, s->s->p.ntensors = nv;
}

// The call of a function in every way that its own solution has.
static bool add_call(sheet *s, const splits_answer *answer, u32 index) {
  splits_prices *x = s->x;
  const instr *in = &s->f->body.v[index];
  const splits_sheet *of = &answer->fn[in->callee.i];
  VEC(u32) opd = {0};
  const u32 n = instr_nopd(s->f, in);
  u32 *res = NEWN(x->a, u32, in->nres + 1);
  for (u32 k = 0; k < of->p.nops; k++)
    if (of->p.op[k].named && of->p.op[k].nres)
      *vec_push(x->a, &opd) = opd_of(s->f, in, of->p.op[k].res[0] - 1);
  for (u32 k = 0; k < in->nres; k++) res[k] = in->res + k;
  splits_option *o = NEWN(x->a, splits_option, of->s.n + 1);
  const func_info *g = func_get(x->m->pl->src, in->callee);
  (void)n;
  for (u32 c = 0; c < of->s.n; c++) {
    u8 *need = NEWN(x->a, u8, opd.n + 1), *grad = NEWN(x->a, u8, opd.n + 1),
       *made = NEWN(x->a, u8, in->nres + 1);
    u32 at = 0;
    for (u32 k = 0; k < in->nres; k++) made[k] = LIES_WHOLE;
    for (u32 k = 0; k < of->p.nops; k++) {
      const splits_op *y = &of->p.op[k];
      const u32 with = of->s.v[c].option[k];
      if (!y->named) continue;
      const value v = y->nres ? y->res[0] : y->opd[0];
      const layout l = of->lies[v].lay[of->way[k][with]];
      if (y->nres) {
        assert(opd.v); // one for each that is named
        need[at] = splits_state(&s->s->lies[opd.v[at]], l);
        grad[at] = y->option[with].grad[0] == LIES_NONE ? LIES_NONE : need[at];
        if (need[at++] == LIES_NONE) return false;
      } else
        for (u32 r = 0; r < in->nres; r++)
          if (g->rets.v[r] == v) {
            made[r] = splits_state(&s->s->lies[in->res + r], l);
            if (made[r] == LIES_NONE) return false;
          }
    }
    o[c] = (splits_option){
        .time_ps = of->s.v[c].time_ps, .bytes = of->s.v[c].bytes, .need = need, .grad = grad, .made = made};
  }
  *vec_push(x->a, &s->op) = (splits_op){.nopd = opd.n,
                                        .nres = in->nres,
                                        .opd = opd.v,
                                        .res = res,
                                        .noptions = of->s.n,
                                        .option = o,
                                        .tie = in->callee.i};
  *vec_push(x->a, &s->instr) = index + 1, *vec_push(x->a, &s->way) = NULL;
  return of->s.n;
}

// Chains, but for those whose members rules allow different ways.
static const u32 *leaders_of(const splits_prices *x, const splits_func *w, u32 n) {
  u32 *leader = NEWN(x->a, u32, n + 1);
  bool *apart = ZNEWN(x->a, bool, n + 1);
  for (u32 i = 0; i < n && x->allowed; i++) {
    const splits_instr *y = &w->v[i], *lead = &w->v[y->leader];
    for (u32 k = 0; y->follows && k < lead->nways; k++) {
      const splits_way own = splits_way_of_follower(lead, y, &lead->way[k]);
      apart[y->leader] |=
          x->allowed(x->arg, lead, &lead->way[k], x->t.ways) != x->allowed(x->arg, y, &own, x->t.ways);
    }
  }
  for (u32 i = 0; i < n; i++) leader[i] = w->v[i].follows && !apart[w->v[i].leader] ? w->v[i].leader : i;
  return leader;
}

// False: of something in the function nothing is known.
static bool open_sheet(splits_prices *x, func f, splits_sheet *out, sheet *s) {
  *s = (sheet){.x = x, .s = out, .w = &x->m->fn[f.i], .f = func_get(x->m->pl->src, f)};
  if (!s->w->known) return false;
  *out = (splits_sheet){.f = f,
                        .lies = ZNEWN(x->a, splits_lies, s->f->values.n + 1),
                        .leader = leaders_of(x, s->w, s->f->body.n)};
  for (value v = 1; v < s->f->values.n; v++)
    if (!val_type(x->m->pl->src, s->f, v)->tuple) out->lies[v] = splits_lies_of(x, f, v);
  return true;
}

// Parameters that operators read come first, results that they make last. Their states are known at the end.
static bool make_sheet(splits_prices *x, func f, const splits_answer *answer, i64 most_ps,
                       splits_sheet *out) {
  const prog *src = x->m->pl->src;
  sheet s;
  const bool is_main = f.i == src->main.i;
  if (!open_sheet(x, f, out, &s)) return false;
  bool *in_call = ZNEWN(x->a, bool, s.f->values.n + 1), *used = ZNEWN(x->a, bool, s.f->values.n + 1);
  u32 gates = 0;
  for (u32 i = 0; i < s.f->body.n; i++) {
    const instr *in = &s.f->body.v[i];
    for (u32 k = 0; k < instr_nopd(s.f, in); k++) {
      const value v = opd_of(s.f, in, k);
      if (s.w->v[i].fixed) continue;
      used[v] = true, in_call[v] |= in->op == OP_call;
    }
  }
  for (u32 k = 0; k < s.f->nparams; k++)
    if (s.f->params.v[k].r != ROLE_WEIGHT && used[k + 1]) gates++;
  s.op.n = 0;
  for (u32 k = 0; k < gates; k++) {
    *vec_push(x->a, &s.op) = (splits_op){0}, *vec_push(x->a, &s.instr) = 0, *vec_push(x->a, &s.way) = NULL;
  }
  for (u32 i = 0; i < s.f->body.n; i++) {
    const instr *in = &s.f->body.v[i];
    const splits_instr *y = &s.w->v[i];
    if (y->fixed || out->leader[i] != i) continue;
    if (in->op == OP_call ? !add_call(&s, answer, i) : !add_chain(&s, i)) return false;
  }
  u32 at = 0;
  for (u32 k = 0; k < s.f->nparams; k++) {
    if (s.f->params.v[k].r == ROLE_WEIGHT || !used[k + 1]) continue;
    const u32 n = s.op.n;
    const splits_op op = gate(&s, k + 1, true);
    s.way.v[at] = s.way.v[n], s.way.n = s.instr.n = n;
    s.op.v[at++] = op;
  }
  for (u32 k = 0; k < s.f->rets.n; k++) {
    const u32 def = val(s.f, s.f->rets.v[k])->def;
    if ((!def || s.w->v[def - 1].fixed) && is_main) continue;
    if (!def || s.w->v[def - 1].fixed) return false;
    *vec_push(x->a, &s.op) = gate(&s, s.f->rets.v[k], false);
  }
  make_tensors(&s, in_call);
  out->p.nops = s.op.n, out->p.op = s.op.v, out->p.forwards = x->t.again && !is_main ? 2 : 1;
  out->instr = s.instr.v, out->way = s.way.v;
  return splits_solve_sheet(x, most_ps, out);
}

// ---- what it takes at least ----------------------------------------------------------------------------------
// A function's operators, each in its cheapest way, with what becomes of weights that it alone reads if `settled`. Below 0: one of
// them has none.
static i64 least_of(splits_prices *x, func f, bool settled) {
  splits_sheet out;
  sheet s;
  i64 sum = 0;
  if (!open_sheet(x, f, &out, &s)) return -1;
  for (u32 i = 0; i < s.f->body.n; i++) {
    if (s.w->v[i].fixed || out.leader[i] != i || s.f->body.v[i].op == OP_call) continue;
    if (!add_chain(&s, i)) return -1;
  }
  splits_tensor *t = ZNEWN(x->a, splits_tensor, s.f->values.n + 1);
  splits_problem p = {.nops = s.op.n, .ntensors = s.f->values.n, .op = s.op.v, .tensor = t, .forwards = 1};
  for (u32 k = 0; k < s.f->nparams && settled; k++)
    if (s.f->params.v[k].r == ROLE_WEIGHT) t[k + 1] = make_tensor(&s, k + 1, true);
  splits_readers r;
  splits_folded folded;
  splits_readers_of(x->a, &p, &r);
  splits_fold(x->a, &p, &r, &folded);
  for (u32 i = 0; i < p.nops; i++) {
    i64 least = INT64_MAX;
    for (u32 k = 0; k < p.op[i].noptions; k++)
      if (!folded.never[i][k]) least = MIN(least, folded.p.op[i].option[k].time_ps);
    if (least < INT64_MAX) sum += least;
  }
  return sum;
}

// By function: the least of its operators, or what it takes where it is solved, and how often it runs.
typedef struct {
  const prog *src;
  u32 n, *order; // callees first
  i64 *own, *all, *runs;
  bool *solved;
} least;

static i64 add_calls(least *l) {
  for (u32 i = 0; i < l->n; i++) {
    const u32 f = l->order[i];
    const func_info *fi = func_get(l->src, (func){f});
    l->all[f] = l->own[f];
    for (u32 k = 0; k < fi->body.n && !l->solved[f]; k++)
      if (fi->body.v[k].op == OP_call) l->all[f] += l->all[fi->body.v[k].callee.i];
  }
  return l->all[l->src->main.i];
}

static bool find_least(splits_prices *x, least *l, bool settled) {
  const u32 nf = planner_funcs(x->m->pl);
  prog *src = x->m->pl->src;
  *l = (least){.src = src,
               .own = ZNEWN(x->a, i64, nf + 1),
               .all = ZNEWN(x->a, i64, nf + 1),
               .runs = ZNEWN(x->a, i64, nf + 1),
               .solved = ZNEWN(x->a, bool, nf + 1)};
  l->order = ir_call_order(src, x->a, &l->n);
  l->runs[src->main.i] = 1;
  for (u32 i = l->n; i-- > 0;) {
    const func_info *fi = func_get(src, (func){l->order[i]});
    if ((l->own[l->order[i]] = least_of(x, (func){l->order[i]}, settled)) < 0) return false;
    for (u32 k = 0; k < fi->body.n; k++)
      if (fi->body.v[k].op == OP_call) l->runs[fi->body.v[k].callee.i] += l->runs[l->order[i]];
  }
  return true;
}

i64 splits_least(splits_prices *x) {
  least l;
  return find_least(x, &l, false) ? add_calls(&l) : -1;
}

// What a function may take so that all of main takes `most` at most, if everything else takes its least.
static i64 most_of(least *l, u32 f, i64 most) {
  const i64 rest = most - add_calls(l);
  return rest < 0 ? -1 : l->all[f] + rest / MAX(l->runs[f], 1);
}

static i64 fastest_of(const splits_solution *s) {
  i64 ps = s->v[0].time_ps;
  for (u32 k = 1; k < s->n; k++) ps = MIN(ps, s->v[k].time_ps);
  return ps;
}

// Where much is to be ruled out, functions in the order of what they take at least in all, main last.
static void order_by_work(least *l, u32 *order) {
  for (u32 i = 1; i + 1 < l->n; i++) {
    const u32 f = order[i];
    u32 at = i;
    for (; at > 0 && l->all[order[at - 1]] * l->runs[order[at - 1]] < l->all[f] * l->runs[f]; at--)
      order[at] = order[at - 1];
    order[at] = f;
  }
}

const splits_answer *splits_sheets(splits_prices *x) {
  prog *src = x->m->pl->src;
  const splits_limits *limits = &x->t.limits;
  const i64 most = limits->fastest && limits->ps_per_byte == 0 ? limits->most_ps : 0;
  splits_answer *s = NEW(x->a, splits_answer);
  s->fn = ZNEWN(x->a, splits_sheet, planner_funcs(x->m->pl) + 1);
  u32 n, *order = ir_call_order(src, x->a, &n);
  least l;
  if (most && !find_least(x, &l, true)) return NULL;
  if (most) add_calls(&l), order_by_work(&l, order);
  for (u32 i = 0; i < n; i++) {
    const u32 f = order[i];
    const i64 own = most ? most_of(&l, f, most) : 0;
    if (own < 0 || !make_sheet(x, (func){f}, s, own, &s->fn[f])) return NULL;
    if (most && s->fn[f].s.exact) l.solved[f] = true, l.own[f] = fastest_of(&s->fn[f].s);
  }
  s->main = &s->fn[src->main.i];
  return s;
}
