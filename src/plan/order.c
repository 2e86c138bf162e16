// order.c - order: the sequences of all places merged into one main, and the tasks written out as calls.
//
// Idea: every task takes one step of a common clock. At each step every place runs its next task if what it
// needs was made in an earlier step; then the results of the step travel. This is one linearisation of the
// plan; if no place can go on before all are done, the orders contain a cycle: the deadlock, reported with
// the tasks that wait.
#include "plan/main.h"

static const char *const task_letter[] = {"F", "B", "W"};

typedef struct {
  const task *v;
  u32 n, at;
} cursor;

// ---- values in main ---------------------------------------------------------------------------------------
static void at_point(main_build *mb, group g, u32 m) {
  mb->b.g = g;
  mb->b.coord = mb->time ? mb->point[m] : 0;
}

static type type_here(main_build *mb, value v) { return func_get(mb->p, mb->b.f)->values.v[v].ty; }

// A parameter of main as one segment sees it: restricted to the segment's group.
static value on_group(main_build *mb, value v, group g) {
  prog *p = mb->p;
  const type_info *t = type_get(p, type_here(mb, v));
  if (t->g.i == g.i) return v;
  const group_info *from = group_get(p->sp, t->g), *to = group_get(p->sp, g);
  group at = t->g;
  for (u32 i = 0; i < from->naxes; i++) {
    if (to->axis[i].at < 0 || from->axis[i].at >= 0) continue;
    u32 pos = (u32)to->axis[i].at;
    for (u32 k = 0; from->axis[i].at == -2 && k < from->axis[i].nonly; k++)
      if (from->axis[i].only[k] == (u32)to->axis[i].at) pos = k;
    u8 ax = from->axis[i].axis;
    attr a[2] = {attr_x(A_over, &ax, 1), attr_i(A_at, pos)};
    mb->b.g = at, mb->b.coord = 0;
    at = group_fix(p->sp, at, ax, (u32)to->axis[i].at);
    type rt = type_on(p, type_here(mb, v), at);
    v = emit_res(p, mb->b.f, emit(&mb->b, OP_part, attrs_of(p, a, 2), &v, 1, &rt, 1));
    from = group_get(p->sp, t->g), to = group_get(p->sp, g);
  }
  return v;
}

static value packed(main_build *mb, const value *v, u32 n, group g) {
  if (!n) return 0;
  type *ty = NEWN(mb->x->a, type, n);
  for (u32 i = 0; i < n; i++) ty[i] = type_here(mb, v[i]);
  type t = type_tuple(mb->p, ty, n);
  mb->b.g = g, mb->b.coord = 0;
  return emit_res(mb->p, mb->b.f, emit(&mb->b, OP_pack, (attrset){0}, v, n, &t, 1));
}

// Packed weights of a segment: all of them, or those that the backward needs.
static value pack_weights(main_build *mb, seg *s, const u32 *which, u32 n) {
  value *v = NEWN(mb->x->a, value, n + 1);
  for (u32 k = 0; k < n; k++) v[k] = on_group(mb, mb->param[s->c->weight[which ? which[k] : k] - 1], s->g);
  return packed(mb, v, n, s->g);
}

static void prologue(main_build *mb) {
  prog *p = mb->p;
  for (u32 i = 0; i < mb->nseg; i++) {
    seg *s = &mb->seg[i];
    cut *c = s->c;
    s->W = pack_weights(mb, s, NULL, c->nweights);
    s->base = ZNEWN(mb->x->a, value, c->ninputs + 1);
    for (u32 k = 0; k < c->ninputs; k++)
      if (!mb->seg_of[c->input[k]]) s->base[k] = on_group(mb, mb->param[c->input[k] - 1], s->g);
    if (!s->gp) continue;
    s->Wb = pack_weights(mb, s, s->gp->need, s->nneed_weights);
    if (s->gp->wgt.i) {
      u32 n = 0;
      while (n < s->gp->nneed_w && s->gp->need_w[n] < c->nweights) n++;
      s->Ww = pack_weights(mb, s, s->gp->need_w, n);
    }
    if (!s->acc) continue;
    value *zero = NEWN(mb->x->a, value, s->gp->nacc + 1);
    mb->b.g = s->g, mb->b.coord = 0;
    mb->b.flags = INSTR_BACKWARD;
    for (u32 k = 0; k < s->gp->nacc; k++) {
      const shape *sh = &val_type(mb->s, mb->m, c->weight[s->gp->acc[k]])->s;
      attr at[2] = {attr_t(A_dtype, sh->t), attr_v(A_shape, sh->dim, sh->nd)};
      type t = type_tensor(p, sh, s->acc_lay[k], s->g);
      zero[k] = emit_res(p, mb->b.f, emit(&mb->b, OP_full, attrs_of(p, at, 2), NULL, 0, &t, 1));
    }
    s->grads = packed(mb, zero, s->gp->nacc, s->g);
    mb->b.flags = 0;
  }
}

// ---- tasks ------------------------------------------------------------------------------------------------
static u32 emit_call(main_build *mb, const sharded *f, const type **types, const u32 *opd, u32 n, group g,
                     u32 m, u8 flags) {
  prog *p = mb->p;
  const func_info *fi = func_get(p, f->dst);
  if (!*types) { // once for all microbatches
    type *t = NEWN(mb->x->a, type, fi->rets.n + 1);
    for (u32 k = 0; k < fi->rets.n; k++) t[k] = type_bind(p, fi->values.v[fi->rets.v[k]].ty, g);
    *types = t;
  }
  at_point(mb, g, m);
  mb->b.flags = flags;
  u32 at = emit(&mb->b, OP_call, (attrset){0}, opd, n, *types, fi->rets.n);
  mb->b.flags = 0;
  instr *in = &func_get(p, mb->b.f)->body.v[at - 1];
  in->callee = f->dst;
  return in->res;
}

// The argument of a forward for one microbatch: made earlier in another segment, or a piece of a parameter.
static value argument(main_build *mb, seg *s, u32 k, u32 m) {
  value *slot = &s->arg[(size_t)k * mb->K + m];
  if (*slot || !s->base[k]) return *slot;
  prog *p = mb->p;
  value v = s->base[k];
  at_point(mb, s->g, m);
  type *rt = &s->arg_type[k];
  if (!rt->i) { // once for all microbatches
    const type_info *t = type_get(p, type_here(mb, v));
    const lay_split *sl = mb->time ? layout_split_of(p->sp, s->in[k], mb->time) : NULL;
    *rt = sl ? type_tensor(p, &t->s, layout_with_split(p->sp, t->lay, mb->time, sl->dim, sl->stride), s->g)
             : type_here(mb, v);
  }
  if (rt->i != type_here(mb, v).i) {
    attrset *at = &mb->part_at[m];
    if (!at->i) {
      attr a[2] = {attr_x(A_over, &mb->time, 1), attr_i(A_at, m)};
      *at = attrs_of(p, a, 2);
    }
    v = emit_res(p, mb->b.f, emit(&mb->b, OP_part, *at, &v, 1, rt, 1));
    if (type_get(p, *rt)->lay.i == s->in[k].i) return *slot = v;
  }
  return *slot = shard_convert(mb->x, &mb->b, v, s->in[k], s->g);
}

static void run_forward(main_build *mb, seg *s, u32 m) {
  cut *c = s->c;
  u32 buf[64], *opd = c->ninputs < 60 ? buf : NEWN(mb->x->a, u32, c->ninputs + 1), n = 0;
  if (s->W) opd[n++] = s->W;
  for (u32 k = 0; k < c->ninputs; k++) opd[n++] = argument(mb, s, k, m);
  u32 r = emit_call(mb, &s->fwd, &s->fwd_types, opd, n, s->g, m, 0);
  for (u32 k = 0; k < c->noutputs; k++) s->res[(size_t)k * mb->K + m] = r + k;
  if (s->gp && s->gp->nsaved) s->saved[m] = r + c->noutputs;
}

static value loss_seed(main_build *mb, seg *s, u32 k, u32 m) { // d loss / d loss
  const shape *sh = &val_type(mb->s, mb->m, s->c->output[k])->s;
  attr at[3] = {attr_t(A_dtype, sh->t), attr_v(A_shape, sh->dim, sh->nd), attr_f(A_value, 1)};
  type t = type_tensor(mb->p, sh, (layout){0}, s->g);
  at_point(mb, s->g, m);
  return emit_res(mb->p, mb->b.f, emit(&mb->b, OP_full, attrs_of(mb->p, at, 3), NULL, 0, &t, 1));
}

static u32 put_needs(main_build *mb, seg *s, value W, const u32 *need, u32 nneed, u32 m, u32 *opd) {
  u32 n = 0;
  if (W) opd[n++] = W;
  for (u32 k = 0; k < nneed; k++)
    if (need[k] >= s->c->nweights) opd[n++] = argument(mb, s, need[k] - s->c->nweights, m);
  return n;
}

static void run_backward(main_build *mb, seg *s, u32 m) {
  const grad_pair *gp = s->gp;
  u32 cap = gp->nneed + gp->ndy + 8, buf[64], *opd = cap <= 64 ? buf : NEWN(mb->x->a, u32, cap);
  u32 n = put_needs(mb, s, s->Wb, gp->need, gp->nneed, m, opd);
  if (gp->nsaved) opd[n++] = s->saved[m];
  for (u32 k = 0; k < gp->ndy; k++) {
    value d = s->dres[(size_t)gp->dy[k] * mb->K + m];
    opd[n++] = d ? d : loss_seed(mb, s, gp->dy[k], m);
  }
  if (!gp->wgt.i && s->acc && gp->nacc) opd[n++] = s->grads | OPD_DONATED;
  u32 r = emit_call(mb, &s->bwd, &s->bwd_types, opd, n, s->g, m, INSTR_BACKWARD);
  for (u32 k = 0; k < gp->ndx; k++)
    s->arg[((size_t)(s->c->ninputs + k)) * mb->K + m] = r + k; // leaves in travel()
  if (gp->wgt.i)
    s->carry[m] = gp->ncarry ? r + gp->ndx : 0;
  else if (gp->nacc)
    s->grads = r + gp->ndx;
}

static void run_weights(main_build *mb, seg *s, u32 m) {
  const grad_pair *gp = s->gp;
  u32 cap = gp->nneed_w + 8, buf[64], *opd = cap <= 64 ? buf : NEWN(mb->x->a, u32, cap);
  u32 n = put_needs(mb, s, s->Ww, gp->need_w, gp->nneed_w, m, opd);
  if (gp->ncarry) opd[n++] = s->carry[m];
  if (s->acc && gp->nacc) opd[n++] = s->grads | OPD_DONATED;
  u32 r = emit_call(mb, &s->wgt, &s->wgt_types, opd, n, s->g, m, INSTR_BACKWARD);
  if (gp->nacc) s->grads = r;
}

// Results of a task go where they are needed: outputs to later segments, input gradients to the segments they
// came from.
static void travel_forward(main_build *mb, seg *s, u32 m) {
  for (u32 e = 0; e < s->nedges && !mb->b.failed; e++) {
    seg *d = &mb->seg[s->edges[e].to];
    at_point(mb, s->g, m);
    u32 k = s->edges[e].input;
    d->arg[(size_t)k * mb->K + m] =
        main_move(mb, s->res[(size_t)s->edges[e].output * mb->K + m], d->g, d->in[k]);
  }
}

static void travel_backward(main_build *mb, seg *s, u32 m) {
  for (u32 k = 0; k < s->gp->ndx && !mb->b.failed; k++) {
    value v = s->c->input[s->gp->dx[k] - s->c->nweights];
    if (!mb->seg_of[v]) continue; // of an input: stays here
    seg *d = &mb->seg[mb->seg_of[v] - 1];
    u32 o = mb->out_of[v];
    at_point(mb, s->g, m);
    mb->b.flags = INSTR_BACKWARD;
    value g = main_move(mb, s->arg[((size_t)(s->c->ninputs + k)) * mb->K + m], d->g, d->dout[o]);
    value *sum = &d->dres[(size_t)o * mb->K + m];
    if (*sum && !mb->b.failed) {
      u32 opd[2] = {*sum | OPD_DONATED, g};
      type ty = type_here(mb, g);
      mb->b.g = d->g;
      g = emit_res(mb->p, mb->b.f, emit(&mb->b, OP_add, (attrset){0}, opd, 2, &ty, 1));
    }
    *sum = g;
    mb->b.flags = 0;
  }
}

static void make_edges(main_build *mb) {
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 j = 0; j < mb->nseg; j++)
      for (u32 k = 0; k < mb->seg[j].c->ninputs; k++) {
        value v = mb->seg[j].c->input[k];
        if (!mb->seg_of[v]) continue;
        seg *s = &mb->seg[mb->seg_of[v] - 1];
        if (pass) s->edges[s->nedges] = (edge){j, k, mb->out_of[v]};
        s->nedges++;
      }
    for (u32 j = 0; j < mb->nseg && !pass; j++) {
      mb->seg[j].edges = NEWN(mb->x->a, edge, mb->seg[j].nedges + 1);
      mb->seg[j].nedges = 0;
    }
  }
}

// ---- the merge --------------------------------------------------------------------------------------------
typedef struct {
  u32 *done[3];
} finished; // step + 1 at which (segment, microbatch) was done, per kind

static bool done_before(const main_build *mb, const finished *fin, u32 kind, u32 sg, u32 m, u32 step) {
  u32 d = fin->done[kind][(size_t)sg * mb->K + m];
  return d && d <= step;
}

// Is everything that t needs made before this step? Otherwise what it waits for.
static bool ready(const main_build *mb, const finished *fin, const task *t, u32 step, task *waits) {
  const seg *s = &mb->seg[t->segment];
  *waits = (task){t->segment, t->kind == TASK_W ? TASK_B : TASK_F, t->mb};
  if (t->kind != TASK_F && !done_before(mb, fin, waits->kind, t->segment, t->mb, step)) return false;
  if (t->kind == TASK_W) return true;
  waits->kind = t->kind;
  for (u32 k = 0; t->kind == TASK_F && k < s->c->ninputs; k++) {
    u32 from = mb->seg_of[s->c->input[k]];
    waits->segment = (u16)(from - 1);
    if (from && !done_before(mb, fin, TASK_F, from - 1, t->mb, step)) return false;
  }
  for (u32 e = 0; t->kind == TASK_B && e < s->nedges; e++) {
    waits->segment = (u16)s->edges[e].to;
    if (mb->seg[s->edges[e].to].gp && s->has_dy[s->edges[e].output] &&
        !done_before(mb, fin, TASK_B, s->edges[e].to, t->mb, step))
      return false;
  }
  return true;
}

static void report_deadlock(main_build *mb, const finished *fin, const cursor *cur, u32 n, u32 step) {
  ctx *c = mb->s->c;
  diag(c, E_DEADLOCK, mb->x->pn->order_at, "the orders of the places cannot be merged: every place waits");
  for (u32 i = 0; i < n; i++) {
    if (cur[i].at == cur[i].n) continue;
    const task *t = &cur[i].v[cur[i].at];
    task w;
    ready(mb, fin, t, step, &w);
    diag_note(c, (loc){0}, "place %u has %s%u.%u next (task %u of %u), which waits for %s%u.%u", i,
              task_letter[t->kind], t->segment, t->mb, cur[i].at + 1, cur[i].n, task_letter[w.kind],
              w.segment, w.mb);
  }
  diag_hint(c, "a task must stand after the tasks that it waits for; `schedule: 1f1b` and `gpipe` are always "
               "possible");
}

// Every (segment, kind, microbatch) exactly once, on the place of its segment.
static bool check_sequences(main_build *mb) {
  const plan *pn = mb->x->pn;
  ctx *c = mb->s->c;
  if (pn->nseqs != mb->nplaces) {
    diag(c, E_PLAN, pn->order_at, "the plan has %u sequences for %u places", pn->nseqs, mb->nplaces);
    return false;
  }
  u8 *seen = ZNEWN(mb->x->a, u8, (size_t)mb->nseg * mb->K);
  for (u32 i = 0; i < pn->nseqs; i++)
    for (u32 j = 0; j < pn->seqs[i].n; j++) {
      const task *t = &pn->seqs[i].v[j];
      const seg *s = t->segment < mb->nseg ? &mb->seg[t->segment] : NULL;
      const char *why = !s               ? "there is no such segment"
                        : s->place != i  ? "its segment lies on another place"
                        : t->mb >= mb->K ? "there is no such microbatch"
                        : seen[(size_t)t->segment * mb->K + t->mb] >> t->kind & 1 ? "it was listed before"
                        : t->kind == TASK_W && (!s->gp || !s->gp->wgt.i)
                            ? "weight gradients are not apart in this plan"
                        : t->kind == TASK_B && !s->gp ? "its segment has no backward"
                                                      : NULL;
      if (why) {
        diag(c, E_PLAN, pn->seq_at ? pn->seq_at[i] : pn->order_at, "task %s%u.%u of place %u: %s",
             task_letter[t->kind], t->segment, t->mb, i, why);
        return false;
      }
      seen[(size_t)t->segment * mb->K + t->mb] |= (u8)(1u << t->kind);
    }
  for (u32 i = 0; i < mb->nseg; i++)
    for (u32 m = 0; m < mb->K; m++) {
      const seg *s = &mb->seg[i];
      u32 want = 1u | (s->gp ? 2u : 0) | (s->gp && s->gp->wgt.i ? 4u : 0),
          miss = want & ~(u32)seen[(size_t)i * mb->K + m];
      if (!miss) continue;
      diag(c, E_PLAN, pn->order_at, "task %s%u.%u is in no sequence",
           task_letter[miss & 1   ? 0
                       : miss & 2 ? 1
                                  : 2],
           i, m);
      diag_hint(c, "every segment runs every microbatch forward (F)%s once",
                s->gp ? s->gp->wgt.i ? ", backward (B) and for its weights (W)" : " and backward (B)" : "");
      return false;
    }
  return true;
}

bool main_tasks(main_build *mb) {
  const plan *pn = mb->x->pn;
  arena *a = mb->x->a;
  for (u32 i = 0; i < mb->nseg; i++) {
    seg *s = &mb->seg[i];
    s->arg_type = ZNEWN(a, type, s->c->ninputs + 1);
    s->arg = ZNEWN(a, value, (size_t)(s->c->ninputs + (s->gp ? s->gp->ndx : 0) + 1) * mb->K);
    s->res = ZNEWN(a, value, (size_t)(s->c->noutputs + 1) * mb->K);
    s->dres = ZNEWN(a, value, (size_t)(s->c->noutputs + 1) * mb->K);
    s->saved = ZNEWN(a, value, mb->K), s->carry = ZNEWN(a, value, mb->K);
  }
  mb->part_at = ZNEWN(a, attrset, mb->K);
  if (!check_sequences(mb)) return false;
  make_edges(mb);
  // Room for what the tasks emit: two calls, pieces of inputs, and three steps for what moves either way.
  u32 calls = 0, args = 0;
  for (u32 i = 0; i < mb->nseg; i++)
    calls += 2 + 6 * mb->seg[i].nedges + mb->seg[i].c->ninputs, args += 16 + 2 * mb->seg[i].c->ninputs;
  func_info *out = func_get(mb->p, mb->b.f);
  vec_reserve(mb->p->a, &out->body, out->body.n + calls * mb->K);
  vec_reserve(mb->p->a, &out->values, out->values.n + (calls + 2 * mb->nseg) * mb->K);
  vec_reserve(mb->p->a, &out->opds, out->opds.n + args * mb->K);
  prologue(mb);
  cursor *cur = ZNEWN(a, cursor, pn->nseqs);
  const task **now = NEWN(a, const task *, pn->nseqs);
  finished fin;
  for (u32 k = 0; k < 3; k++) fin.done[k] = ZNEWN(a, u32, (size_t)mb->nseg * mb->K);
  for (u32 i = 0; i < pn->nseqs; i++) cur[i] = (cursor){pn->seqs[i].v, pn->seqs[i].n, 0};
  for (u32 step = 0;; step++) {
    u32 n = 0, left = 0;
    task w;
    for (u32 i = 0; i < pn->nseqs; i++) {
      if (cur[i].at == cur[i].n) continue;
      left++;
      const task *t = &cur[i].v[cur[i].at];
      if (ready(mb, &fin, t, step, &w)) now[n++] = t, cur[i].at++;
    }
    if (!left) return !mb->b.failed;
    if (!n) {
      report_deadlock(mb, &fin, cur, pn->nseqs, step);
      return false;
    }
    for (u32 i = 0; i < n; i++) {
      seg *s = &mb->seg[now[i]->segment];
      if (now[i]->kind == TASK_F)
        run_forward(mb, s, now[i]->mb);
      else if (now[i]->kind == TASK_B)
        run_backward(mb, s, now[i]->mb);
      else
        run_weights(mb, s, now[i]->mb);
      fin.done[now[i]->kind][(size_t)now[i]->segment * mb->K + now[i]->mb] = step + 1;
    }
    for (u32 i = 0; i < n; i++) {
      if (now[i]->kind == TASK_F) travel_forward(mb, &mb->seg[now[i]->segment], now[i]->mb);
      if (now[i]->kind == TASK_B) travel_backward(mb, &mb->seg[now[i]->segment], now[i]->mb);
    }
    if (mb->b.failed) return false;
  }
}
