// splits_ops.c - which operators a program has and in which ways each can be split, from laws and from the gradient of each
// operator alone. Not what that costs (splits_cost.c).
//
// Idea: an operator and its gradient are written as one small function. Its classes (infer.h) say which indices of the gradient's
// instructions are which letters of the operator: a way is a class that is split, in forward and backward alike.
#include "plan/splits_ops.h"
#include "plan/roles.h"

enum { UNEVEN = 64 };

// ---- the form of one operator -----------------------------------------------------------------------------
typedef struct {
  splits_model *m;
  splits_instr *x;
  const func_info *f; // of the source
  const instr *in;
} forming;

// What depends on no weight, and in functions on no parameter.
static bool has_no_gradient(const forming *w, value v) { return !w->m->fn[w->x->fn.i].learns[v]; }

// The operator alone, as a function of its operands.
static func make_alone(forming *w, u8 *mark) {
  prog *p = w->m->p;
  const prog *src = w->m->pl->src;
  const func f = func_new(p, sym_of(p->c, op_row_of((opcode)w->in->op)->name), w->in->where);
  const u32 n = instr_nopd(w->f, w->in), nres = w->in->nres;
  u32 *opd = NEWN(w->m->a, u32, n + 1);
  type *res = NEWN(w->m->a, type, nres + 1);
  value *ret = NEWN(w->m->a, value, nres + 1);
  for (u32 k = 0; k < n; k++) {
    const shape s = val_type(src, w->f, opd_of(w->f, w->in, k))->s;
    opd[k] = func_param(p, f, type_tensor(p, &s, (layout){0}, (group){0}), (sym){0}, ROLE_INPUT);
    mark[k] = dtype_kind_of(s.t) == DK_FLOAT && !has_no_gradient(w, opd_of(w->f, w->in, k)) ? GRAD_INPUT
                                                                                            : GRAD_NONE;
  }
  for (u32 k = 0; k < nres; k++) {
    const shape s = val_type(src, w->f, w->in->res + k)->s;
    res[k] = type_tensor(p, &s, (layout){0}, (group){0});
  }
  builder b = builder_at(p, f);
  b.where = w->in->where;
  const attrs at = attrs_get(src, w->in->at);
  const u32 made = emit(&b, (opcode)w->in->op, attrs_of(p, at.v, at.n), opd, n, res, nres);
  for (u32 k = 0; k < nres; k++) ret[k] = emit_res(p, f, made) + k;
  func_return(p, f, ret, nres);
  return f;
}

static void copy_body(builder *b, const func_info *f, value *map) {
  for (u32 i = 0; i < f->body.n; i++) emit_copy(b, f, &f->body.v[i], map);
}

// Says that two values have the same indices, by an instruction that nobody prices.
static void liken(forming *w, builder *b, value x, value y) {
  const type t = func_get(w->m->p, b->f)->values.v[x].ty;
  if (type_get(w->m->p, t)->s.t != type_get(w->m->p, func_get(w->m->p, b->f)->values.v[y].ty)->s.t) return;
  emit(b, OP_add, (attrset){0}, (u32[]){x, y}, 2, &t, 1);
  w->x->nlikened++;
}

// Forward and backward in one function; the forward alone where there is no gradient.
static void join(forming *w, func alone, const grad_pair *g) {
  prog *p = w->m->p;
  arena *a = w->m->a;
  const u32 n = w->x->nopd, nres = w->in->nres;
  const func f = func_new(p, sym_of(p->c, "form"), w->in->where);
  builder b = builder_at(p, f);
  const func_info *fwd = func_get(p, g ? g->fwd : alone);
  value *map = ZNEWN(a, value, fwd->values.n + 1);
  for (u32 k = 0; k < n; k++) map[k + 1] = func_param(p, f, fwd->values.v[k + 1].ty, (sym){0}, ROLE_INPUT);
  u32 ndy = g ? g->ndy : 0;
  value *dy = NEWN(a, value, ndy + 1);
  for (u32 k = 0; k < ndy; k++)
    dy[k] = func_param(p, f, fwd->values.v[fwd->rets.v[g->dy[k]]].ty, (sym){0}, ROLE_INPUT);
  copy_body(&b, fwd, map);
  w->x->form = f, w->x->nforward = w->x->nbackward = func_get(p, f)->body.n;
  value *all = NEWN(a, value, nres + (g ? g->ndx : 0) + 1);
  u32 nall = 0;
  for (u32 k = 0; k < nres; k++) all[nall++] = map[fwd->rets.v[k]];
  bool *again = ZNEWN(a, bool, n + 1), *kept = ZNEWN(a, bool, nres + 1), *gradient = ZNEWN(a, bool, n + 1);
  value *of = ZNEWN(a, value, n + 1);
  if (g) {
    const func_info *bwd = func_get(p, g->bwd);
    value *back = ZNEWN(a, value, bwd->values.n + 1);
    u32 at = 1;
    for (u32 k = 0; k < g->nneed; k++) back[at++] = map[g->need[k] + 1], again[g->need[k]] = true;
    for (u32 k = 0; k < g->nsaved; k++) {
      const value saved = fwd->rets.v[nres + k];
      back[at++] = map[saved];
      for (u32 r = 0; r < nres; r++) kept[r] |= fwd->rets.v[r] == saved;
    }
    for (u32 k = 0; k < ndy; k++) back[at++] = dy[k];
    for (u32 k = 0; k < ndy; k++) liken(w, &b, map[fwd->rets.v[g->dy[k]]], dy[k]);
    b.flags = INSTR_BACKWARD;
    copy_body(&b, bwd, back);
    w->x->nbackward = func_get(p, f)->body.n;
    for (u32 k = 0; k < g->ndx; k++) {
      all[nall++] = of[g->dx[k]] = back[bwd->rets.v[k]], gradient[g->dx[k]] = true;
      u32 many = w->x->nlikened;
      liken(w, &b, g->dx[k] + 1, back[bwd->rets.v[k]]);
      w->x->nlikened = many;
    }
  }
  func_return(p, f, all, nall);
  w->x->again = again, w->x->kept = kept, w->x->gradient = gradient, w->x->back = of;
}

static void make_form(forming *w) {
  prog *p = w->m->p;
  arena *a = w->m->a;
  const u32 n = w->x->nopd = instr_nopd(w->f, w->in), before = diag_count(p->c);
  u8 *mark = ZNEWN(a, u8, n + 1);
  bool *dy = ZNEWN(a, bool, w->in->nres + 1), any = false, leads = false;
  const func alone = make_alone(w, mark);
  for (u32 k = 0; k < w->in->nres; k++)
    dy[k] = dtype_kind_of(val_type(w->m->pl->src, w->f, w->in->res + k)->s.t) == DK_FLOAT;
  for (u32 k = 0; k < n; k++) any |= mark[k] == GRAD_INPUT;
  for (u32 k = 0; k < w->in->nres; k++) leads |= w->m->fn[w->x->fn.i].leads[w->in->res + k];
  const char *rule = op_row_of((opcode)w->in->op)->grad;
  grad_pair g;
  const bool has = w->m->train && any && leads && dy[0] && strcmp(rule, "no") && strcmp(rule, "zero") &&
                   pass_grad(p, alone, &(grad_opts){.mark = mark, .has_dy = dy}, &g);
  diag_truncate(p->c, before);
  join(w, alone, has ? &g : NULL);
  p->main = w->x->form;
  w->x->k = classes_of(a, p);
}

// ---- ways -------------------------------------------------------------------------------------------------
// Elements of a dimension between neighbours of its factor j.
static i64 inner_of(const law *l, const law_dim *d, u32 j) {
  i64 inner = 1;
  for (u32 k = d->n; k-- > j + 1;) inner *= l->letter[d->f[k]].extent;
  return inner;
}

static void add_way(splits_instr *x, splits_way w) {
  for (u32 k = 0; k < x->nways; k++)
    if (x->way[k].kind == w.kind && x->way[k].letter == w.letter && x->way[k].inner == w.inner &&
        x->way[k].extent == w.extent)
      return;
  if (x->nways < SPLITS_WAYS) x->way[x->nways++] = w;
}

// The source's indices within one letter, as they stand in one tensor.
static void add_indices(forming *w, const law_term *t, value v, u32 letter, u8 kind) {
  const law *l = w->x->l;
  const shape *s = &val_type(w->m->pl->src, w->f, v)->s;
  for (u32 d = 0; d < t->nd && d < s->nd; d++)
    for (u32 j = 0; j < t->dim[d].n; j++) {
      if (t->dim[d].f[j] != letter) continue;
      const i64 least = inner_of(l, &t->dim[d], j), most = least * l->letter[letter].extent;
      u32 id[16], n = classes_dim(w->m->k, w->x->fn, v, d, id, COUNT_OF(id));
      i64 inner = s->dim[d];
      for (u32 k = 0; k < n; k++) {
        const i64 extent = classes_get(w->m->k, id[k])->extent;
        inner /= extent;
        if (inner < least || inner >= most || inner % least || extent < 2) continue;
        add_way(w->x, (splits_way){.kind = kind,
                                   .letter = (u8)letter,
                                   .batch = id[k] == w->m->batch,
                                   .extent = extent,
                                   .inner = inner / least});
      }
    }
}

bool splits_sums_alone(const splits_instr *x, const splits_way *w) {
  return w->kind == WAY_SUM && x->nopd > 1 && law_lin(x->l, w->letter) == 'e';
}

// A product is linear in each operand alone. Whose backward reads a sum takes it there, or has its gradient summed in its place:
// such a sum does not pass. A weight, or what a function or the model is given, is none.
static void add_sums_alone(forming *w) {
  const splits_instr *x = w->x;
  for (u32 k = 0; k < x->nopd; k++) {
    const value v = opd_of(w->f, w->in, k);
    const bool made = val(w->f, v)->def,
               floats = dtype_kind_of(val_type(w->m->pl->src, w->f, v)->s.t) == DK_FLOAT;
    if (made && floats && law_lin(x->l, k) == 'e' && !x->again[k])
      add_way(w->x, (splits_way){.kind = WAY_SUM, .letter = (u8)k});
  }
}

static void find_ways(forming *w) {
  splits_instr *x = w->x;
  const law *l = x->l;
  const op_row *row = op_row_of((opcode)w->in->op);
  const u32 n = x->nopd;
  x->way = NEWN(w->m->a, splits_way, SPLITS_WAYS);
  add_way(x, (splits_way){.kind = WAY_WHOLE});
  bool linear = row->red == RED_SUM, floats = true, joint = true;
  u32 alone = 0;
  for (u32 k = 0; k < n; k++) {
    joint = joint && law_lin(l, k) == 'j';
    alone += law_lin(l, k) == 'e';
    floats = floats && dtype_kind_of(val_type(w->m->pl->src, w->f, opd_of(w->f, w->in, k))->s.t) == DK_FLOAT;
  }
  if (linear && floats && n && (joint || (alone == 1 && n == 1))) add_way(x, (splits_way){.kind = WAY_SUM});
  if (linear && n > 1) add_sums_alone(w);
  for (u32 i = 0; i < l->nletters; i++) {
    const whole_reason why = law_whole_reason((opcode)w->in->op, l, i);
    bool sum = false;
    for (u32 k = 0; k < l->nres; k++) sum |= !law_term_has(&l->res[k], i);
    const bool apart = why != WHOLE_NOT && n && law_term_has(&l->opd[0], i) &&
                       planner_decompose(w->m->pl, x->fn, x->index).i;
    if (why != WHOLE_NOT && !apart) continue;
    if (why == WHOLE_NOT && sum && row->red != RED_SUM) continue;
    for (u32 k = 0; k < n + w->in->nres; k++) {
      const law_term *t = k < n ? &l->opd[k] : &l->res[k - n];
      const value v = k < n ? opd_of(w->f, w->in, k) : w->in->res + k - n;
      add_indices(w, t, v, i, apart ? WAY_APART : WAY_INDEX);
    }
  }
}

i64 splits_stride(const splits_instr *x, const splits_way *w, u32 ways, u32 parts, bool *uneven) {
  const law_letter *l = &x->l->letter[w->letter];
  const i64 extent = w->batch ? (w->extent % parts ? 0 : w->extent / parts) : w->extent;
  *uneven = false;
  if (extent && extent % ways == 0) return w->inner * (extent / ways);
  bool alone = w->inner == 1 && w->extent == l->extent && !w->batch;
  for (u32 k = 0; k < x->l->nopd + x->l->nres; k++) {
    const law_term *t = k < x->l->nopd ? &x->l->opd[k] : &x->l->res[k - x->l->nopd];
    for (u32 d = 0; d < t->nd; d++)
      for (u32 j = 0; j < t->dim[d].n; j++)
        alone = alone && (t->dim[d].f[j] != w->letter || t->dim[d].n == 1);
  }
  *uneven = alone && extent >= UNEVEN * (i64)ways;
  return 0;
}

bool splits_class_of(const splits_model *m, const splits_instr *x, u32 letter, i64 stride, u32 *class,
                     i64 *within) {
  const func_info *f = func_get(m->p, x->form);
  const law *l = x->l;
  for (u32 k = 0; k < l->nopd + l->nres; k++) {
    const bool opd = k < l->nopd;
    const law_term *t = opd ? &l->opd[k] : &l->res[k - l->nopd];
    const value v = opd ? k + 1 : f->rets.v[k - l->nopd];
    const shape *s = &val_type(m->p, f, v)->s;
    for (u32 d = 0; d < t->nd && d < s->nd; d++)
      for (u32 j = 0; j < t->dim[d].n; j++) {
        if (t->dim[d].f[j] != letter) continue;
        const i64 at = stride * inner_of(l, &t->dim[d], j);
        u32 id[16], n = classes_dim(x->k, x->form, v, d, id, COUNT_OF(id));
        i64 inner = s->dim[d];
        for (u32 q = 0; q < n; q++) {
          const i64 extent = classes_get(x->k, id[q])->extent;
          inner /= extent;
          if (at < inner || at >= inner * extent || at % inner) continue;
          *class = id[q], *within = at / inner;
          return true;
        }
      }
  }
  return false;
}

// ---- functions --------------------------------------------------------------------------------------------
// Does the operator do the same with every element, so that operand k and the result have the same dimensions?
static bool is_elementwise(const splits_instr *x, u32 k) {
  const law *l = x->l;
  if (l->nres != 1 || l->opd[k].nd != l->res[0].nd) return false;
  for (u32 d = 0; d < l->res[0].nd; d++) {
    if (l->opd[k].dim[d].n != 1 || l->res[0].dim[d].n != 1) return false;
    if (l->opd[k].dim[d].f[0] != l->res[0].dim[d].f[0]) return false;
    if (l->letter[l->res[0].dim[d].f[0]].flags & LAW_WHOLE) return false;
  }
  for (u32 i = 0; i < l->nletters; i++)
    if (!law_term_has(&l->res[0], i)) return false;
  return true;
}

// A chain: what it reads besides is fixed or a weight, and nobody else reads what it goes on from. So one way for
// all of it is as good as any.
static void find_leader(splits_func *w, const prog *src, const uses *u, u32 index) {
  const func_info *f = func_get(src, w->f);
  splits_instr *x = &w->v[index];
  const instr *in = &f->body.v[index];
  u32 from = ~0u;
  for (u32 k = 0; k < x->nopd; k++) {
    const value v = opd_of(f, in, k);
    const u32 def = val(f, v)->def;
    if ((def && w->v[def - 1].fixed) || (!def && f->params.v[v - 1].r == ROLE_WEIGHT)) continue;
    if (from != ~0u || !def) return;
    from = k;
  }
  if (from == ~0u || !is_elementwise(x, from)) return;
  const value v = opd_of(f, in, from);
  const u32 def = val(f, v)->def - 1;
  const splits_instr *y = &w->v[def];
  if (f->body.v[def].op == OP_call || f->body.v[def].nres != 1 || u->begin[v + 1] - u->begin[v] != 1) return;
  bool same = shape_same(&val_type(src, f, v)->s, &val_type(src, f, in->res)->s), any = false;
  for (u32 k = 0; k < y->nopd; k++) any |= is_elementwise(y, k);
  for (u32 k = 0; k < x->nways; k++) same = same && x->way[k].kind != WAY_SUM && x->way[k].kind != WAY_APART;
  for (u32 k = 0; k < y->nways; k++) same = same && y->way[k].kind != WAY_SUM && y->way[k].kind != WAY_APART;
  if (!same || !any) return;
  x->follows = true, x->leader = y->follows ? y->leader : def;
}

static bool is_fixed(const splits_func *w, const func_info *f, const instr *in) {
  bool fixed = !(op_row_of((opcode)in->op)->flags & OPF_RANDOM);
  for (u32 k = 0; k < instr_nopd(f, in) && fixed; k++) {
    const u32 def = val(f, opd_of(f, in, k))->def;
    fixed = def && w->v[def - 1].fixed;
  }
  return fixed;
}

// By value: has it a gradient that somebody reads? learns: it depends on a weight, or on what a function is given; leads: the loss, or
// a result of a function, depends on it.
static void find_gradients(splits_model *m, splits_func *w, const func_info *f) {
  const bool is_main = w->f.i == m->pl->src->main.i;
  bool *learns = ZNEWN(m->a, bool, f->values.n + 1), *leads = ZNEWN(m->a, bool, f->values.n + 1);
  for (u32 k = 0; k < f->nparams; k++) learns[k + 1] = !is_main || f->params.v[k].r == ROLE_WEIGHT;
  for (u32 k = 0; k < (is_main ? MIN(f->rets.n, 1) : f->rets.n); k++) leads[f->rets.v[k]] = true;
  for (u32 i = 0; i < f->body.n; i++)
    for (u32 k = 0; k < instr_nopd(f, &f->body.v[i]); k++)
      for (u32 r = 0; r < f->body.v[i].nres; r++)
        learns[f->body.v[i].res + r] |= learns[opd_of(f, &f->body.v[i], k)];
  for (u32 i = f->body.n; i-- > 0;)
    for (u32 r = 0; r < f->body.v[i].nres; r++)
      for (u32 k = 0; k < instr_nopd(f, &f->body.v[i]); k++)
        leads[opd_of(f, &f->body.v[i], k)] |= leads[f->body.v[i].res + r];
  w->learns = learns, w->leads = leads;
}

// ---- sums that pass through a backward ---------------------------------------------------------------------
// An instruction of a backward to whose operands with a sum nothing is said, by the rule of shard.c: does a sum pass?
static bool passes_sum(const splits_model *m, const func_info *f, const instr *in, const bool *sum,
                       const u32 *nuses) {
  const op_row *row = op_row_of((opcode)in->op);
  u32 n = instr_nopd(f, in), nres = in->nres, joint = 0, partial = 0, alone = 0;
  shape *os = NEWN(m->a, shape, n + 1), rs[OP_RES_MAX];
  for (u32 k = 0; k < n; k++) os[k] = val_type(m->p, f, opd_of(f, in, k))->s;
  const law *l = op_law(m->p->c, m->a, in->op, attrs_get(m->p, in->at), n, os, &nres, rs, in->where);
  if (!l || row->red != RED_SUM) return false;
  for (u32 k = 0; k < n; k++) {
    const bool part = sum[opd_of(f, in, k)];
    joint += law_lin(l, k) == 'j', partial += law_lin(l, k) == 'j' && part;
    alone += law_lin(l, k) != 'j' && part;
  }
  for (u32 k = 0; k < n; k++) {
    const value v = opd_of(f, in, k);
    const char lin = law_lin(l, k);
    if (!sum[v] || lin == '-' || (lin == 'j' ? alone || partial < joint : partial || alone > 1)) continue;
    if (sum_gains(row, lin, joint, nuses[v], shape_elems(&os[k]), shape_elems(&rs[0]))) return true;
  }
  return false;
}

// shared: others read the gradient of the result, too.
static void find_sums(splits_model *m, splits_instr *x, bool shared) {
  const func_info *f = func_get(m->p, x->form);
  bool *sum = ZNEWN(m->a, bool, f->values.n + 1), *sums = ZNEWN(m->a, bool, x->nopd + 1), any = false;
  u32 *nuses = ZNEWN(m->a, u32, f->values.n + 1);
  const u32 from = x->nforward + x->nlikened;
  const value dy = x->nopd + 1;
  if (x->l->nres != 1 || f->nparams != dy) return;
  for (u32 j = from; j < x->nbackward; j++)
    for (u32 k = 0; k < instr_nopd(f, &f->body.v[j]); k++) nuses[opd_of(f, &f->body.v[j], k)]++;
  for (u32 k = 0; k < x->nopd; k++) nuses[x->back[k]]++;
  nuses[dy] += shared, sum[dy] = true;
  for (u32 j = from; j < x->nbackward; j++) {
    const instr *in = &f->body.v[j];
    const bool pass = passes_sum(m, f, in, sum, nuses);
    for (u32 k = 0; k < in->nres; k++) sum[in->res + k] = pass;
    for (u32 k = 0; k < instr_nopd(f, in) && !pass; k++) sum[opd_of(f, in, k)] = false; // taken
  }
  for (u32 k = 0; k < x->nopd; k++) any |= sums[k] = x->back[k] && sum[x->back[k]];
  if (!any) return;
  x->sums = sums;
  add_way(x, (splits_way){.kind = WAY_UNSAID});
}

// From the end on, since an operator that gives its gradient on as it is shares that with whoever it gives it to.
static void find_all_sums(splits_model *m, splits_func *w, const func_info *f) {
  bool *shared = ZNEWN(m->a, bool, f->values.n + 1);
  u32 *readers = ZNEWN(m->a, u32, f->values.n + 1); // with a gradient: of several a sum is made
  for (u32 i = 0; i < f->body.n; i++)
    for (u32 k = 0; w->v[i].back && k < w->v[i].nopd; k++)
      readers[opd_of(f, &f->body.v[i], k)] += w->v[i].back[k] != 0;
  for (u32 i = f->body.n; i-- > 0;) {
    splits_instr *x = &w->v[i];
    const instr *in = &f->body.v[i];
    if (!x->back || in->nres != 1) continue;
    const func_info *form = func_get(m->p, x->form);
    const value dy = x->nopd + 1;
    u32 n = shared[in->res];
    for (u32 j = x->nforward + x->nlikened; j < x->nbackward; j++)
      for (u32 k = 0; k < instr_nopd(form, &form->body.v[j]); k++)
        n += opd_of(form, &form->body.v[j], k) == dy;
    for (u32 k = 0; k < x->nopd; k++) n += x->back[k] == dy;
    for (u32 k = 0; k < x->nopd; k++)
      if (x->back[k] == dy && readers[opd_of(f, in, k)] == 1) shared[opd_of(f, in, k)] = n > 1;
    find_sums(m, x, shared[in->res]);
  }
}

static void read_func(splits_model *m, func fn) {
  prog *src = m->pl->src;
  const func_info *f = func_get(src, fn);
  splits_func *w = &m->fn[fn.i];
  *w = (splits_func){.f = fn, .known = true, .v = ZNEWN(m->a, splits_instr, f->body.n + 1)};
  find_gradients(m, w, f);
  for (u32 i = 0; i < f->body.n && w->known; i++) {
    const instr *in = &f->body.v[i];
    splits_instr *x = &w->v[i];
    *x = (splits_instr){.fn = fn, .index = i, .nopd = instr_nopd(f, in)};
    if (in->op == OP_call) {
      w->known = fn.i == src->main.i;
      w->why = "it calls functions";
      continue;
    }
    x->fixed = is_fixed(w, f, in);
    x->l = plan_law(m->pl, fn, i);
    w->known = x->l && in->op != OP_pack && in->op != OP_unpack;
    w->why = "it has tuples";
    if (!w->known || x->fixed) continue;
    x->letter = law_letter_names(m->a, x->l);
    forming make = {m, x, f, in};
    make_form(&make);
    f = func_get(src, fn); // decompositions are functions of the source, too
    make.f = f, make.in = &f->body.v[i];
    find_ways(&make);
    f = func_get(src, fn);
  }
  if (!w->known) return;
  find_all_sums(m, w, f);
  arena *tmp = arena_new();
  const uses u = func_uses(tmp, f);
  for (u32 i = 0; i < f->body.n; i++)
    if (w->v[i].l && !w->v[i].fixed) find_leader(w, src, &u, i);
  arena_free(tmp);
}

splits_model *splits_model_new(planner *pl, arena *a, bool train) {
  splits_model *m = NEW(a, splits_model);
  *m = (splits_model){.pl = pl, .a = a, .p = prog_new(pl->src->c), .train = train};
  m->k = planner_classes(pl);
  m->fn = ZNEWN(a, splits_func, planner_funcs(pl) + 1);
  const u32 *input;
  if (planner_inputs(pl, &input)) {
    u32 id[16];
    m->batch = classes_dim(m->k, pl->src->main, input[0] + 1, 0, id, COUNT_OF(id)) ? id[0] : 0;
  }
  u32 n, *order = ir_call_order(pl->src, a, &n);
  for (u32 i = 0; i < n; i++) read_func(m, (func){order[i]});
  return m;
}

void splits_model_free(splits_model *m) {
  if (m) prog_free(m->p);
}
