// distir_program.c - a planned program as DistIR's transforms would have written it, for its simulator alone:
// not to be evaluated. What is one value here after the last microbatch is made there in every microbatch.
//
// - An output of the first microbatch is copied, those of the others are put behind what there is already, in
//   the middle of the stage: while activations of other microbatches live, and twice the output with them.
// - The gradient of a weight in the first microbatch is the accumulator; here it is added to a zero.
// - Their loss is a tensor and an output, its gradient reads what the loss read, and each has the price of an
//   operator of one operand. Here a product is summed and its gradient spread again: those instructions go.
// - Where a stage is split over devices, each sends all of what the next stage needs, not a part of it.
#include "reproduce.h"

typedef struct {
  value all; // the microbatches so far
  u32 n;
} output;
typedef struct {       // what happens to a value as soon as it is there
  const instr *reduce; // all-reduced, to the type and the place
  type ty;
  value *to;
  u32 out; // put behind the other microbatches of this output, numbered from 1
} fate;
typedef struct {
  value v;
  fate f;
} piece;
typedef struct {
  prog *p;
  arena *a;
  func to;
  bool trains;
  u8 time; // axis of microbatches; 0: one
  VEC(output) outs;
  VEC(piece) pieces;
  VEC(value) predicted; // what losses read; their gradients come in the same order
  u32 graded;
} rewrite;
typedef struct { // where a body is put
  group g;
  u32 coord;
  u8 flags;
} site;

static u32 put(rewrite *w, site at, const instr *like, const u32 *opd, u32 n, const type *res, u32 nres) {
  func_info *to = func_get(w->p, w->to);
  instr *i = vec_push(w->p->a, &to->body);
  *i = *like;
  i->opd = to->opds.n, i->nopd = n, i->res = to->values.n, i->nres = nres;
  i->flags |= at.flags;
  i->coord = point_merge(w->p, at.coord, i->coord);
  if (!i->g.i) i->g = at.g;
  for (u32 k = 0; k < n; k++) *vec_push(w->p->a, &to->opds) = opd[k];
  for (u32 r = 0; r < nres; r++)
    *vec_push(w->p->a, &to->values) = (value_info){type_bind(w->p, res[r], at.g), to->body.n, {0}};
  return to->values.n - nres;
}

static void put_pieces(rewrite *w, site at) {
  prog *p = w->p;
  for (u32 k = 0; k < w->pieces.n; k++) {
    value v = w->pieces.v[k].v;
    const fate *x = &w->pieces.v[k].f;
    if (x->reduce) *x->to = v = put(w, at, x->reduce, &v, 1, &x->ty, 1);
    if (!x->out) continue;
    output *o = &w->outs.v[x->out - 1];
    const type_info t = *val_type(p, func_get(p, w->to), v);
    shape s = t.s;
    s.dim[0] = s.dim[0] / axis_get(p->sp, w->time)->size * ++o->n;
    type ty = type_tensor(p, &s, layout_without(p->sp, t.lay, w->time), t.g);
    attr axis = attr_i(A_axis, 0);
    instr like = {.op = o->all ? OP_concat : OP_identity, .g = t.g};
    if (o->all) like.at = attrs_of(p, &axis, 1);
    o->all = put(w, at, &like, o->all ? (u32[]){o->all, v} : &v, o->all ? 2 : 1, &ty, 1);
  }
  w->pieces.n = 0;
}

static bool is_tensor(const prog *p, const func_info *f, value v) {
  const type_info *t = val_type(p, f, v);
  return !t->tuple && t->s.nd > 0;
}

// The all_gather that alone reads what a send brings, a part of what every member of the source has; NULL: there is none.
static const instr *gather_of(const func_info *f, const uses *u, const instr *send) {
  if (send->op != OP_send || u->begin[send->res] + 1 != u->begin[send->res + 1]) return NULL;
  const u32 reader = u->use[u->begin[send->res]];
  const instr *in = reader ? &f->body.v[reader - 1] : NULL;
  return in && in->op == OP_all_gather && in->nopd == 1 ? in : NULL;
}

static bool has_fate(const fate *x) { return x->reduce || x->out; }

static void copy_body(rewrite *w, func fn, site at, value *id, fate *fates, u32 depth);

static void open_call(rewrite *w, const func_info *f, const instr *in, site at, value *id, const fate *fates,
                      u32 depth) {
  const func_info *g = func_get(w->p, in->callee);
  value *inner = ZNEWN(w->a, value, g->values.n);
  fate *inner_fates = ZNEWN(w->a, fate, g->values.n);
  for (u32 k = 0; k < g->nparams; k++) inner[k + 1] = id[opd_of(f, in, k)];
  for (u32 r = 0; r < in->nres; r++)
    if (has_fate(&fates[in->res + r])) inner_fates[g->rets.v[r]] = fates[in->res + r];
  site there = {in->g.i ? in->g : at.g, point_merge(w->p, at.coord, in->coord), at.flags | in->flags};
  copy_body(w, in->callee, there, inner, inner_fates, depth + 1);
  for (u32 r = 0; r < in->nres; r++) id[in->res + r] = inner[g->rets.v[r]];
}

// In a backward pass of the first of several microbatches.
static bool is_first(const rewrite *w, site at, const instr *in) {
  u32 point = point_merge(w->p, at.coord, in->coord);
  return w->time && (in->flags | at.flags) & INSTR_BACKWARD && w->p->fixed.v[point] >> w->time & 1 &&
         !w->p->points.v[point].at[w->time];
}

static bool opens(const rewrite *w, const instr *in, site at, const fate *fates, u32 depth) {
  bool made = (!depth && !(in->flags & INSTR_UPDATE)) || is_first(w, at, in);
  for (u32 r = 0; r < in->nres; r++) made |= has_fate(&fates[in->res + r]);
  return in->op == OP_call && made;
}

static void copy_instr(rewrite *w, const func_info *f, const instr *in, site at, value *id, const fate *fates,
                       u32 depth) {
  bool backward = (in->flags | at.flags) & INSTR_BACKWARD, dropped = false;
  bool scalar = in->nres && !val_type(w->p, f, in->res)->tuple && !is_tensor(w->p, f, in->res);
  bool loss = w->trains && depth && in->op == OP_mul; // or its gradient
  instr like = *in;
  VEC(u32) opd = {0};
  VEC(type) res = {0};
  if (loss && !backward) *vec_push(w->a, &w->predicted) = id[opd_of(f, in, 0)];
  for (u32 k = 0; k < in->nopd; k++) {
    u32 e = f->opds.v[in->opd + k];
    value v = id[e & OPD_VALUE];
    if (!v && loss) v = w->predicted.v[w->graded++];
    dropped |= !v;
    *vec_push(w->a, &opd) = v | (e & ~(u32)OPD_VALUE);
  }
  if (loss) like.op = OP_abs, opd.n = 1;
  if (dropped && in->op == OP_add) { // to a zero
    like = (instr){.op = OP_identity, .flags = in->flags, .g = in->g, .coord = in->coord};
    opd.v[0] = opd.v[--opd.n], dropped = false;
  }
  if (dropped || (in->op == OP_full && w->trains) || (scalar && in->op == OP_reduce_sum)) return;
  for (u32 r = 0; r < in->nres; r++) *vec_push(w->a, &res) = f->values.v[in->res + r].ty;
  value first = put(w, at, &like, opd.v, opd.n, res.v, res.n);
  for (u32 r = 0; r < in->nres; r++) {
    id[in->res + r] = first + r;
    if (depth && has_fate(&fates[in->res + r]))
      *vec_push(w->a, &w->pieces) = (piece){first + r, fates[in->res + r]};
  }
}

// id: values of fn in the new main, 0 of what is dropped. Gradients of activations are all-reduced where they
// are made, and what is waiting is put as soon as both gradients of a product are there, which are one
// operator in DistIR.
static void copy_body(rewrite *w, func fn, site at, value *id, fate *fates, u32 depth) {
  const func_info *f = func_get(w->p, fn);
  const uses u = func_uses(w->a, f);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (in->op == OP_all_reduce && in->nopd == 1 && (in->flags | at.flags) & INSTR_BACKWARD)
      fates[opd_of(f, in, 0)] =
          (fate){in, type_bind(w->p, f->values.v[in->res].ty, at.g), &id[in->res], fates[in->res].out};
  }
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (in->op != OP_einsum) put_pieces(w, at);
    if ((in->op == OP_all_reduce || in->op == OP_all_gather) && id[in->res]) continue;
    const instr *gather = gather_of(f, &u, in);
    if (opens(w, in, at, fates, depth))
      open_call(w, f, in, at, id, fates, depth);
    else if (gather) {
      const value whole = id[opd_of(f, in, 0)];
      id[gather->res] = put(w, at, in, &whole, 1, &f->values.v[gather->res].ty, 1);
    } else if (!depth && in->op == OP_join && fates[opd_of(f, in, 0)].out)
      id[in->res] = w->outs.v[fates[opd_of(f, in, 0)].out - 1].all;
    else
      copy_instr(w, f, in, at, id, fates, depth);
  }
  put_pieces(w, at);
}

// Values of main that are one microbatch of an output: what is joined, and the gradient of the input, which
// nothing takes.
static void find_outputs(rewrite *w, const func_info *f, fate *fates) {
  uses u = func_uses(w->a, f);
  u32 input = 0;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (in->op == OP_join && is_tensor(w->p, f, in->res)) {
      *vec_push(w->a, &w->outs) = (output){0};
      for (u32 j = 0; j < in->nopd; j++) fates[opd_of(f, in, j)].out = w->outs.n;
    }
    if (in->op != OP_call || !(in->flags & INSTR_BACKWARD) || !is_tensor(w->p, f, in->res) ||
        u.begin[in->res] < u.begin[in->res + 1])
      continue;
    if (!input) {
      *vec_push(w->a, &w->outs) = (output){0};
      input = w->outs.n;
    }
    fates[in->res].out = input;
  }
}

void distir_rewrite(prog *p) {
  const func_info *f = func_get(p, p->main);
  rewrite *w = &(rewrite){.p = p, .a = arena_new()};
  for (u8 x = 1; x <= axis_count(p->sp); x++)
    if (axis_get(p->sp, x)->temporal) w->time = x;
  fate *fates = ZNEWN(w->a, fate, f->values.n);
  value *id = ZNEWN(w->a, value, f->values.n);
  for (u32 k = 0; k < f->body.n; k++) w->trains |= f->body.v[k].flags & INSTR_BACKWARD;
  if (w->time) find_outputs(w, f, fates);
  w->to = func_new(p, f->name, f->where);
  for (u32 k = 0; k < f->nparams; k++)
    id[k + 1] = func_param(p, w->to, f->values.v[k + 1].ty, f->values.v[k + 1].name, f->params.v[k].r);
  copy_body(w, p->main, (site){0}, id, fates, 0);
  for (u32 k = 0; k < f->rets.n; k++)
    if (id[f->rets.v[k]]) *vec_push(p->a, &func_get(p, w->to)->rets) = id[f->rets.v[k]];
  p->main = w->to;
  arena_free(w->a);
}
