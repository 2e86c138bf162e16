// emit.c - tasks written out as instructions of the distributed main: arguments gathered, one call, what
// leaves converted; then sends. Not which task comes when (schedule.c).
//
// A task is contiguous and runs on its own place: it converts what came to it, calls, and converts what is to
// leave. Sends follow it.
#include "plan/main.h"

// ---- values in main ---------------------------------------------------------------------------------------
static void at_point(main_build *mb, group g, u32 m) {
  mb->b.g = g;
  mb->b.coord = mb->time ? mb->point[m] : 0;
}

static type type_here(main_build *mb, value v) { return func_get(mb->p, mb->b.f)->values.v[v].ty; }

// A parameter of main as one stage sees it: restricted to the stage's group.
value main_on_group(main_build *mb, value v, group g) {
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

// A parameter on a stage's group: of the parameter itself, or of its copy on the stage's mesh, which the first that asks
// has sent.
value main_param_here(main_build *mb, value w, group g) {
  mesh_param *x = main_param(mb, w, g);
  if (!x->v) {
    const bool host = main_weight_on_host(mb, w);
    value from = mb->home[w - 1].v;
    if (host) main_fetch(mb, &from, 1);
    mb->b.coord = 0, x->v = main_move(mb, from, x->g, x->lay);
    if (host && !mb->b.failed) main_store(mb, &x->v, 1);
  }
  return mb->b.failed ? 0 : main_on_group(mb, x->v, g);
}

value main_packed(main_build *mb, const value *v, u32 n, group g) {
  if (!n) return 0;
  type *ty = NEWN(mb->x->a, type, n);
  for (u32 i = 0; i < n; i++) ty[i] = type_here(mb, v[i]);
  type t = type_tuple(mb->p, ty, n);
  mb->b.g = g, mb->b.coord = 0;
  return emit_res(mb->p, mb->b.f, emit(&mb->b, OP_pack, (attrset){0}, v, n, &t, 1));
}

// Packed weights of a stage: all of them, or those that the backward needs.
static value pack_weights(main_build *mb, stage_build *s, const u32 *which, u32 n) {
  value *v = NEWN(mb->x->a, value, n + 1);
  for (u32 k = 0; k < n; k++) v[k] = main_param_here(mb, s->src->weight[which ? which[k] : k], s->g);
  return main_packed(mb, v, n, s->g);
}

void emit_one_a_layer(main_build *mb, value w) {
  if (!mb->weight_more || !mb->weight_more[w - 1]) return;
  *vec_push(mb->x->a, &mb->more) = func_get(mb->p, mb->b.f)->body.n;
  *vec_push(mb->x->a, &mb->more) = mb->weight_more[w - 1];
}

shape main_gradient_shape(const main_build *mb, value weight) {
  shape s = val_type(mb->s, mb->m, weight)->s;
  if (plan_accumulates(mb->x->pn))
    s.t = grad_acc_type(mb->x->pn->wide_gradients ? GRAD_ACC_F32 : GRAD_ACC, s.t);
  return s;
}

static void pack_for_backward(main_build *mb, stage_build *s) {
  const stage_source *c = s->src;
  if (!s->gp) return;
  s->bwd_weights = pack_weights(mb, s, s->gp->need, s->nneed_weights);
  if (s->gp->wgt.i) {
    u32 n = 0;
    while (n < s->gp->nneed_w && s->gp->need_w[n] < c->nweights) n++;
    s->wgrad_weights = pack_weights(mb, s, s->gp->need_w, n);
  }
}

// What accumulators of a stage have in common whose weights have one type and that lie alike: layers have the same ones.
typedef struct {
  u32 weight; // the type of the weight
  layout lay;
  attrset at;
  type t;
} zeros;

static zeros zeros_for(main_build *mb, const stage_build *s, value w, layout lay) {
  const shape sh = main_gradient_shape(mb, w);
  attr at[2] = {attr_t(A_dtype, sh.t), attr_v(A_shape, sh.dim, sh.nd)};
  return (zeros){.weight = mb->m->values.v[w].ty.i,
                 .lay = lay,
                 .at = attrs_of(mb->p, at, 2),
                 .t = type_tensor(mb->p, &sh, lay, s->g)};
}

void emit_accumulators(main_build *mb, stage_build *s) {
  prog *p = mb->p;
  const stage_source *c = s->src;
  if (!s->gp || !s->acc) return;
  value *zero = NEWN(mb->x->a, value, s->gp->nacc + 1);
  zeros *known = NEWN(mb->x->a, zeros, s->gp->nacc + 1);
  u32 nknown = 0;
  mb->b.g = s->g, mb->b.coord = 0;
  mb->b.flags = INSTR_BACKWARD;
  for (u32 k = 0; k < s->gp->nacc; k++) {
    const value w = c->weight[s->gp->acc[k]];
    const u32 of = mb->m->values.v[w].ty.i;
    u32 j = 0;
    while (j < nknown && (known[j].weight != of || known[j].lay.i != s->acc_lay[k].i)) j++;
    if (j == nknown) known[nknown++] = zeros_for(mb, s, w, s->acc_lay[k]);
    zero[k] = emit_res(p, mb->b.f, emit(&mb->b, OP_full, known[j].at, NULL, 0, &known[j].t, 1));
    emit_one_a_layer(mb, w);
    if (main_on_host(mb, OFFLOAD_GRADS)) main_store(mb, &zero[k], 1), mb->b.g = s->g;
  }
  s->grads = main_packed(mb, zero, s->gp->nacc, s->g);
  mb->b.flags = 0;
}

void emit_before(main_build *mb, stage_build *s) {
  const stage_source *c = s->src;
  if (!mb->update_group) s->fwd_weights = pack_weights(mb, s, NULL, c->nweights);
  s->base = ZNEWN(mb->x->a, value, c->ninputs + 1);
  for (u32 k = 0; k < c->ninputs; k++)
    if (!mb->stage_of[c->input[k]]) s->base[k] = main_param_here(mb, c->input[k], s->g);
  if (!mb->update_group) pack_for_backward(mb, s);
  emit_accumulators(mb, s);
}

// ---- tasks ------------------------------------------------------------------------------------------------
static u32 emit_call(main_build *mb, func f, const type **types, const u32 *opd, u32 n, group g, u32 m,
                     u8 flags) {
  prog *p = mb->p;
  const func_info *fi = func_get(p, f);
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
  in->callee = f;
  return in->res;
}

// The argument of a forward for one microbatch: what came from another stage, or a piece of a parameter.
static value argument(main_build *mb, stage_build *s, u32 k, u32 m) {
  value *slot = &s->arg[(size_t)k * mb->nmb + m];
  if (*slot) return *slot;
  prog *p = mb->p;
  value v = s->base[k];
  if (!v) {
    at_point(mb, s->g, m);
    return *slot = shard_convert(mb->x, &mb->b, s->came[k]->there[m], s->in[k], s->g);
  }
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
      attr a[2] = {attr_x(A_over, &mb->time, 1), attr_i(A_at, mb->coord[m])};
      *at = attrs_of(p, a, 2);
    }
    v = emit_res(p, mb->b.f, emit(&mb->b, OP_part, *at, &v, 1, rt, 1));
    if (type_get(p, *rt)->lay.i == s->in[k].i) return *slot = v;
  }
  return *slot = shard_convert(mb->x, &mb->b, v, s->in[k], s->g);
}

static void run_forward(main_build *mb, stage_build *s, u32 m) {
  stage_source *c = s->src;
  u32 buf[64], *opd = c->ninputs < 60 ? buf : NEWN(mb->x->a, u32, c->ninputs + 1), n = 0;
  if (c->nweights) opd[n++] = main_fwd_weights(mb, s, m);
  for (u32 k = 0; k < c->ninputs; k++) opd[n++] = argument(mb, s, k, m);
  u32 r = emit_call(mb, s->fwd.dst, &s->fwd_types, opd, n, s->g, m, 0);
  s->nforwards++;
  for (u32 k = 0; k < c->noutputs; k++) s->res[(size_t)k * mb->nmb + m] = r + k;
  if (s->gp && s->gp->nsaved) s->saved[m] = r + c->noutputs;
}

static value loss_seed(main_build *mb, stage_build *s, u32 k, u32 m) { // d loss / d loss
  const shape *sh = &val_type(mb->s, mb->m, s->src->output[k])->s;
  attr at[3] = {attr_t(A_dtype, sh->t), attr_v(A_shape, sh->dim, sh->nd), attr_f(A_value, 1)};
  type t = type_tensor(mb->p, sh, (layout){0}, s->g);
  at_point(mb, s->g, m);
  return emit_res(mb->p, mb->b.f, emit(&mb->b, OP_full, attrs_of(mb->p, at, 3), NULL, 0, &t, 1));
}

static u32 put_needs(main_build *mb, stage_build *s, value W, const u32 *need, u32 nneed, u32 m, u32 *opd) {
  u32 n = 0;
  if (W) opd[n++] = W;
  for (u32 k = 0; k < nneed; k++)
    if (need[k] >= s->src->nweights) opd[n++] = argument(mb, s, need[k] - s->src->nweights, m);
  return n;
}

// The gradient of an output for one microbatch: the sum of what came back from all that read it; 0: nothing.
static value output_grad(main_build *mb, stage_build *s, u32 output, u32 m) {
  value sum = 0;
  for (u32 e = 0; e < s->nedges && !mb->b.failed; e++) {
    const edge *x = &s->edges[e];
    if (x->output != output || !x->back || !x->back[m]) continue;
    at_point(mb, s->g, m);
    mb->b.flags = INSTR_BACKWARD;
    value g = shard_convert(mb->x, &mb->b, x->back[m], s->dout[output], s->g);
    if (sum && !mb->b.failed) {
      u32 opd[2] = {sum | OPD_DONATED, g};
      type ty = type_here(mb, g);
      g = emit_res(mb->p, mb->b.f, emit(&mb->b, OP_add, (attrset){0}, opd, 2, &ty, 1));
    }
    mb->b.flags = 0;
    sum = g;
  }
  return sum;
}

// One more task has added to the gradients, which are what it made from result r on: of the last one its sums.
static void took_gradients(stage_build *s, u32 r, bool last) {
  s->grads = r, s->nsums++;
  if (last) s->ended = r + 1;
}

// Is the next task that adds to the gradients the last one, and sums them?
static bool sums_now(const main_build *mb, const stage_build *s) {
  return s->last.i && s->nsums + 1 == main_micro(mb, s->replica);
}

// What is computed again is so when the gradient has come: frameworks do it inside the backward.
static void run_backward(main_build *mb, stage_build *s, u32 m) {
  const grad_pair *gp = s->gp;
  u32 cap = gp->nneed + 2 * gp->ndy + 8, buf[64], *opd = cap <= 64 ? buf : NEWN(mb->x->a, u32, cap);
  u32 n = put_needs(mb, s, main_bwd_weights(mb, s, m), gp->need, gp->nneed, m, opd);
  if (gp->nsaved) opd[n++] = s->saved[m];
  u32 ncame = 0, *came = NEWN(mb->x->a, u32, gp->ndy + 1);
  for (u32 k = 0; k < gp->ndy; k++) {
    value d = output_grad(mb, s, gp->dy[k], m);
    if (mb->b.failed) return;
    if (d) came[ncame++] = d;
    opd[n++] = d ? d : loss_seed(mb, s, gp->dy[k], m);
  }
  if (!gp->wgt.i && s->acc && gp->nacc) opd[n++] = s->grads | OPD_DONATED;
  for (u32 k = 0; k < ncame && gp->nagain; k++) opd[n++] = came[k] | OPD_AFTER;
  const bool last = !gp->wgt.i && sums_now(mb, s);
  const type *own = NULL;
  const u32 r = emit_call(mb, last ? s->last : s->bwd.dst, last ? &own : &s->bwd_types, opd, n, s->g, m,
                          INSTR_BACKWARD);
  for (u32 k = 0; k < gp->ndx; k++) s->dx[(size_t)k * mb->nmb + m] = r + k; // leaves in travel_backward
  if (gp->wgt.i)
    s->carry[m] = gp->ncarry ? r + gp->ndx : 0;
  else if (gp->nacc)
    took_gradients(s, r + gp->ndx, last);
}

// Of a stage without input gradients, whose I is empty, W is the whole backward: it waits as one does.
static u32 put_came(const stage_build *s, u32 m, u32 *opd) {
  u32 n = 0;
  for (u32 e = 0; e < s->nedges && s->gp->nagain && !s->gp->ndx; e++)
    if (s->edges[e].back && s->edges[e].back[m]) opd[n++] = s->edges[e].back[m] | OPD_AFTER;
  return n;
}

static void run_weights(main_build *mb, stage_build *s, u32 m) {
  const grad_pair *gp = s->gp;
  u32 cap = gp->nneed_w + s->nedges + 8, buf[64], *opd = cap <= 64 ? buf : NEWN(mb->x->a, u32, cap);
  u32 n = put_needs(mb, s, s->wgrad_weights, gp->need_w, gp->nneed_w, m, opd);
  if (gp->ncarry) opd[n++] = s->carry[m];
  if (s->acc && gp->nacc) opd[n++] = s->grads | OPD_DONATED;
  n += put_came(s, m, opd + n);
  const bool last = sums_now(mb, s);
  const type *own = NULL;
  const u32 r = emit_call(mb, last ? s->last : s->wgt.dst, last ? &own : &s->wgt_types, opd, n, s->g, m,
                          INSTR_BACKWARD);
  if (gp->nacc) took_gradients(s, r, last);
}

// ---- what leaves ----------------------------------------------------------------------------------------
// Outputs go to the stages that read them, input gradients to the stages that made the inputs.
static void leave_forward(main_build *mb, stage_build *s, u32 m) {
  for (u32 e = 0; e < s->nedges && !mb->b.failed; e++) {
    edge *x = &s->edges[e];
    const stage_build *d = &mb->stage[x->to];
    at_point(mb, s->g, m);
    x->there[m] = main_leave(mb, s->res[(size_t)x->output * mb->nmb + m], d->g, d->in[x->input], &x->sent[0]);
  }
}

static void leave_backward(main_build *mb, stage_build *s, u32 m) {
  for (u32 k = 0; k < s->nin && !mb->b.failed; k++) {
    edge *x = s->ins[k];
    const stage_build *d = &mb->stage[x->from];
    if (!x->dx) continue;
    if (!x->back) x->back = ZNEWN(mb->x->a, value, mb->nmb);
    at_point(mb, s->g, m);
    mb->b.flags = INSTR_BACKWARD;
    x->back[m] =
        main_leave(mb, s->dx[(size_t)(x->dx - 1) * mb->nmb + m], d->g, d->dout[x->output], &x->sent[1]);
    mb->b.flags = 0;
  }
}

// The gradients of a stage's inputs may be there before those of its weights. They are sent when the task has
// ended: frameworks launch the send after the whole backward.
value emit_sends_after(const stage_build *s, bool whole) {
  if (!s->gp || (!whole && s->gp->wgt.i) || !s->gp->nacc) return 0;
  return s->ended ? s->ended : s->grads;
}

static void send_forward(main_build *mb, stage_build *s, edge *x, u32 m) {
  at_point(mb, s->g, m);
  x->there[m] = main_send(mb, x->there[m], x->sent[0], x->strm[0], 0);
}

static void send_backward(main_build *mb, stage_build *s, edge *x, u32 m, bool whole) {
  at_point(mb, s->g, m);
  mb->b.flags = INSTR_BACKWARD;
  x->back[m] = main_send(mb, x->back[m], x->sent[1], x->strm[1], emit_sends_after(s, whole));
  mb->b.flags = 0;
}

void emit_sends(main_build *mb, stage_build *s, task_kind kind, u32 m, u32 to) {
  for (u32 e = 0; kind == TASK_F && e < s->nedges && !mb->b.failed; e++)
    if (!to || s->edges[e].to + 1 == to) send_forward(mb, s, &s->edges[e], m);
  bool back = kind == TASK_B || kind == TASK_I;
  for (u32 k = 0; back && k < s->nin && !mb->b.failed; k++)
    if (s->ins[k]->dx && (!to || s->ins[k]->from + 1 == to))
      send_backward(mb, s, s->ins[k], m, kind == TASK_B);
}

void emit_task(main_build *mb, stage_build *s, task_kind kind, u32 m) {
  switch (kind) {
  case TASK_F: run_forward(mb, s, m), leave_forward(mb, s, m); break;
  case TASK_B:
  case TASK_I: run_backward(mb, s, m), leave_backward(mb, s, m); break;
  case TASK_W: run_weights(mb, s, m); break;
  case TASK_KINDS: assert(!"a kind");
  }
}

static void make_edges(main_build *mb) {
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 j = 0; j < mb->nstages; j++)
      for (u32 k = 0; k < mb->stage[j].src->ninputs; k++) {
        value v = mb->stage[j].src->input[k];
        stage_build *s = main_maker(mb, &mb->stage[j], v);
        if (!s) continue;
        if (pass)
          s->edges[s->nedges] = (edge){.from = (u32)(s - mb->stage),
                                       .to = j,
                                       .input = k,
                                       .output = mb->out_of[v],
                                       .there = ZNEWN(mb->x->a, value, mb->nmb)};
        s->nedges++;
      }
    for (u32 j = 0; j < mb->nstages && !pass; j++) {
      mb->stage[j].edges = NEWN(mb->x->a, edge, mb->stage[j].nedges + 1);
      mb->stage[j].nedges = 0;
    }
  }
}

// ---- streams of sends ------------------------------------------------------------------------------------
u32 plan_send_streams(arena *a, const plan *pn, u32 n, const u16 *from, const u16 *to, u8 *strm[2]) {
  const u32 channels = pn->send_stream.i ? MAX(pn->send_channels, 1u) : 0;
  u32 used[2] = {1, 1};
  for (u32 pass = 0; pass < 2; pass++) {
    memset(strm[pass], 0, n);
    if (channels == 4)
      used[pass] =
          pass ? sched_channels(a, n, to, from, strm[pass]) : sched_channels(a, n, from, to, strm[pass]);
    for (u32 k = 0; channels && k < n; k++)
      strm[pass][k] = (u8)(1 + strm[pass][k] + (channels > 1 && pass ? used[0] : 0));
  }
  return !channels ? 0 : channels == 1 ? 1 : used[0] + used[1];
}

// Every send between places on its stream, which are made as they are met.
static void make_streams(main_build *mb) {
  const plan *pn = mb->x->pn;
  prog *p = mb->p;
  arena *a = mb->x->a;
  if (!pn->send_stream.i) return;
  const char *name = sym_str(mb->s->c, pn->send_stream);
  u32 n = 0, most = 0;
  if (pn->send_channels < 2) mb->send_strm = (u8)stream_of(p, pn->send_stream).i;
  const u8 all = mb->send_strm;
  if (pn->send_channels >= 2 && mb->copies.n)
    mb->send_strm = (u8)stream_of(p, sym_of(mb->s->c, arena_printf(a, "%s.w", name))).i;
  for (u32 i = 0; i < mb->nstages; i++) most += mb->stage[i].nedges;
  edge **between = NEWN(a, edge *, most + 1);
  u16 *from = NEWN(a, u16, most + 1), *to = NEWN(a, u16, most + 1);
  u8 *strm[2] = {NEWN(a, u8, most + 1), NEWN(a, u8, most + 1)};
  for (u32 i = 0; i < mb->nstages; i++)
    for (u32 e = 0; e < mb->stage[i].nedges; e++) {
      edge *x = &mb->stage[i].edges[e];
      x->strm[0] = x->strm[1] = all;
      if (mb->stage[i].g.i == mb->stage[x->to].g.i) continue;
      from[n] = (u16)mb->stage[i].place, to[n] = (u16)mb->stage[x->to].place, between[n++] = x;
    }
  plan_send_streams(a, pn, n, from, to, strm);
  for (u32 k = 0; pn->send_channels >= 2 && k < n; k++)
    for (u32 pass = 0; pass < 2; pass++) {
      const u32 c = strm[pass][k] - strm[pass][0];
      const char *own = pn->send_channels < 4 ? arena_printf(a, "%s.%c", name, "fb"[pass])
                                              : arena_printf(a, "%s.%c%u", name, "fb"[pass], c);
      between[k]->strm[pass] = (u8)stream_of(p, sym_of(mb->s->c, own)).i;
    }
}

void emit_begin(main_build *mb) {
  arena *a = mb->x->a;
  for (u32 i = 0; i < mb->nstages; i++) {
    stage_build *s = &mb->stage[i];
    s->arg_type = ZNEWN(a, type, s->src->ninputs + 1);
    s->came = ZNEWN(a, edge *, s->src->ninputs + 1);
    s->ins = ZNEWN(a, edge *, s->src->ninputs + 1);
    s->arg = ZNEWN(a, value, (size_t)(s->src->ninputs + 1) * mb->nmb);
    s->res = ZNEWN(a, value, (size_t)(s->src->noutputs + 1) * mb->nmb);
    s->dx = ZNEWN(a, value, (size_t)((s->gp ? s->gp->ndx : 0) + 1) * mb->nmb);
    s->saved = ZNEWN(a, value, mb->nmb), s->carry = ZNEWN(a, value, mb->nmb);
  }
  mb->part_at = ZNEWN(a, attrset, mb->nmb);
  make_edges(mb);
  for (u32 i = 0; i < mb->nstages; i++)
    for (u32 e = 0; e < mb->stage[i].nedges; e++) {
      edge *x = &mb->stage[i].edges[e];
      stage_build *d = &mb->stage[x->to];
      d->came[x->input] = d->ins[d->nin++] = x;
      for (u32 k = 0; d->gp && k < d->gp->ndx; k++)
        if (d->gp->dx[k] - d->src->nweights == x->input) x->dx = k + 1;
    }
  make_streams(mb);
}
