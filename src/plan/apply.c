// apply.c - a plan applied: axes and meshes, segments, tasks, the update of the weights, the results.
#include "plan/main.h"
#include "cost/cost.h"

static bool make_space(apply *x) {
  const plan *pn = x->pn;
  space *sp = x->p->sp;
  for (u32 i = 0; i < pn->naxes; i++) {
    x->axis[i + 1] = axis_add(sp, pn->axes[i].name, pn->axes[i].size, pn->axes[i].temporal);
    if (!x->axis[i + 1]) return false;
  }
  x->mesh = NEWN(x->a, mesh, pn->nmeshes + 1);
  for (u32 i = 0; i < pn->nmeshes; i++) {
    u8 ax[MESH_AXES];
    for (u32 k = 0; k < pn->meshes[i].naxes; k++) ax[k] = x->axis[pn->meshes[i].axis[k]];
    x->mesh[i] =
        mesh_add(sp, pn->meshes[i].name, ax, pn->meshes[i].naxes, pn->meshes[i].first, pn->meshes[i].ranks);
    if (!x->mesh[i].i) return false;
  }
  return true;
}

// ---- explicit choices: from dimensions of operands and results to letters ---------------------------------
// The letter and stride that a plan's dimension means under the law of its instruction.
static bool choice_of(apply *x, const plan_trans *t, func f, u32 instr_no, choice *out) {
  ctx *c = x->src->c;
  const func_info *fi = func_get(x->src, f);
  const instr *in = &fi->body.v[instr_no - 1];
  const char *axis = sym_str(c, x->pn->axes[t->axis - 1].name), *name = op_row_of(in->op)->name;
  if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack) {
    diag(c, E_PLAN, in->where, "%s cannot be split itself: name instructions of the function it calls", name);
    return false;
  }
  const law *l = plan_law(x->pl, f, instr_no - 1);
  if (!l) return false;
  if (t->index >= (t->result ? l->nres : l->nopd) || t->dim >= (t->result ? l->res : l->opd)[t->index].nd) {
    diag(c, E_PLAN, in->where, "%s has no dimension %u in %s %u", name, t->dim,
         t->result ? "result" : "operand", t->index);
    return false;
  }
  const law_dim *d = &(t->result ? l->res : l->opd)[t->index].dim[t->dim];
  u32 n = x->pn->axes[t->axis - 1].size;
  i64 inner = 1;
  for (u32 j = d->n; j-- > 0;) {
    i64 e = l->letter[d->f[j]].extent;
    bool here = t->stride ? t->stride < inner * e && t->stride % inner == 0 : j == 0;
    if (here) {
      *out = (choice){x->axis[t->axis], d->f[j], t->weak, t->result, 0, t->stride ? t->stride / inner : 0};
      if (l->letter[d->f[j]].flags & LAW_WHOLE) {
        diag(c, E_PLAN, in->where, "%s: dimension %u must stay whole; it cannot be split over %s", name,
             t->dim, axis);
        return false;
      }
      if (t->uneven && e % n && e >= n && d->n == 1 && !axis_get(x->p->sp, out->axis)->temporal) {
        out->table = (u16)pieces_spread(x->p->sp, n, e).i;
        return true;
      }
      if (e % ((out->stride ? out->stride : 1) * n)) {
        diag(c, E_DIVIDE, in->where, "%s: an extent of %lld cannot be split %u ways over axis %s", name,
             (long long)e, n, axis);
        return false;
      }
      return true;
    }
    inner *= e;
  }
  diag(c, E_PLAN, in->where,
       "%s: dimension %u has extent 1 or no index at stride %lld; it cannot be split over %s", name, t->dim,
       (long long)t->stride, axis);
  return false;
}

// Choices are kept by the origin that an instruction shares with its copies in cuts, gradients and
// recomputation.
static bool make_choices(apply *x) {
  const plan *pn = x->pn;
  x->choices = ZNEWN(x->a, choice_list, x->src->norigins + 1);
  x->seen = ZNEWN(x->a, seen_forward, x->src->norigins + 1);
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (!t->instr) continue;
    choice c;
    if (!choice_of(x, t, t->fn, t->instr, &c)) return false;
    choice_list *row = &x->choices[func_get(x->src, t->fn)->body.v[t->instr - 1].origin];
    choice *v = NEWN(x->a, choice, row->n + 1);
    if (row->n) memcpy(v, row->v, sizeof *v * row->n);
    v[row->n] = c;
    *row = (choice_list){row->n + 1, v};
  }
  return true;
}

// ---- the update -------------------------------------------------------------------------------------------
// Two gradients of one weight on one group.
static value combine(main_build *mb, value a, value b) {
  prog *p = mb->p;
  type ta = func_get(p, mb->b.f)->values.v[a].ty;
  type_info t = *type_get(p, ta);
  mb->b.coord = 0, mb->b.g = t.g;
  b = shard_convert(mb->x, &mb->b, b, t.lay, t.g);
  u32 opd[2] = {a | OPD_DONATED, b};
  return mb->b.failed ? 0 : emit_res(p, mb->b.f, emit(&mb->b, OP_add, (attrset){0}, opd, 2, &ta, 1));
}

static void name_of(main_build *mb, value v, value w, const char *suffix) {
  value_name(mb->p, mb->b.f, v, sym_with(mb->s->c, mb->m->values.v[w].name, suffix));
}

// Gradients on the groups at all coordinates of one axis, in any order, that make up `all`: the axis, and
// each one put at its coordinate; else 0.
static u8 joined_axis(main_build *mb, group all, value *v, u32 n) {
  const space *sp = mb->p->sp;
  const func_info *f = func_get(mb->p, mb->b.f);
  const group_info *x = group_get(sp, all);
  for (u32 i = 0; i < x->naxes; i++) {
    const group_axis *ax = &x->axis[i];
    if (ax->at >= 0 || group_axis_size(sp, all, ax->axis) != n) continue;
    value *at = ZNEWN(mb->x->a, value, n);
    u32 found = 0;
    for (u32 c = 0; c < n; c++) {
      group g = group_fix(mb->p->sp, all, ax->axis, ax->nonly ? ax->only[c] : c);
      for (u32 k = 0; k < n && !at[c]; k++)
        if (val_type(mb->p, f, v[k])->g.i == g.i) at[c] = v[k], found++;
    }
    if (found < n) continue;
    memcpy(v, at, sizeof *v * n);
    return ax->axis;
  }
  return 0;
}

// Values on several groups in one layout: the first one's, without partial sums that not all of them hold.
static bool same_layout(main_build *mb, value *v, u32 n) {
  prog *p = mb->p;
  layout to = type_get(p, func_get(p, mb->b.f)->values.v[v[0]].ty)->lay;
  layout_info li = *layout_get(p->sp, to);
  for (u32 i = 0; i < li.npart; i++)
    for (u32 k = 1; k < n; k++)
      if (layout_part_of(p->sp, type_get(p, func_get(p, mb->b.f)->values.v[v[k]].ty)->lay, li.part[i].axis) ==
          RED_NONE)
        to = layout_without(p->sp, to, li.part[i].axis);
  for (u32 k = 0; k < n; k++) {
    mb->b.g = type_get(p, func_get(p, mb->b.f)->values.v[v[k]].ty)->g, mb->b.coord = 0;
    v[k] = shard_convert(mb->x, &mb->b, v[k], to, mb->b.g);
  }
  return !mb->b.failed;
}

// Gradients of one weight on several groups: one value on the weight's own group. Groups that are the
// coordinates of an axis become a sum over that axis; what lies in any other way is sent there and added.
static value join_groups(main_build *mb, value w, value *v, u32 n) {
  prog *p = mb->p;
  group home = mb->param_group[w - 1];
  u8 ax = joined_axis(mb, home, v, n);
  mb->b.coord = 0;
  for (u32 k = 0; !ax && k < n; k++) {
    v[k] = main_move(mb, v[k], home,
                     main_filter(mb, type_get(p, func_get(p, mb->b.f)->values.v[v[k]].ty)->lay, home));
    if (mb->b.failed) return 0;
    if (k) v[0] = combine(mb, v[0], v[k]);
  }
  if (!ax) return v[0];
  if (!same_layout(mb, v, n)) return 0;
  const type_info *t = type_get(p, func_get(p, mb->b.f)->values.v[v[0]].ty);
  attr over = attr_x(A_over, &ax, 1);
  shape sh = t->s;
  type rt = type_tensor(p, &sh, layout_with_part(p->sp, t->lay, ax, RED_SUM), home);
  mb->b.g = home, mb->b.coord = 0;
  return emit_res(p, mb->b.f, emit(&mb->b, OP_join, attrs_of(p, &over, 1), v, n, &rt, 1));
}

static value zero_grad(main_build *mb, value w) { // of a weight that the loss does not depend on
  prog *p = mb->p;
  const type_info *t = type_get(p, func_get(p, mb->b.f)->values.v[mb->param[w - 1]].ty);
  attr at[2] = {attr_t(A_dtype, t->s.t), attr_v(A_shape, t->s.dim, t->s.nd)};
  mb->b.g = t->g, mb->b.coord = 0;
  return emit_res(p, mb->b.f,
                  emit(&mb->b, OP_full, attrs_of(p, at, 2), NULL, 0,
                       &func_get(p, mb->b.f)->values.v[mb->param[w - 1]].ty, 1));
}

// Per weight the gradient on the weight's own group, from the packed gradients of all segments; 0: not a
// weight.
static bool gather_grads(main_build *mb, value *out) {
  prog *p = mb->p;
  arena *a = mb->x->a;
  typedef VEC(value) values;
  values *per = ZNEWN(a, values, mb->m->nparams + 1);
  for (u32 i = 0; i < mb->nseg; i++) {
    seg *s = &mb->seg[i];
    if (!s->gp || !s->gp->nacc || !s->grads) continue;
    const type_info *t = type_get(p, func_get(p, mb->b.f)->values.v[s->grads].ty);
    u32 n = t->n;
    type *ty = arena_dup(a, t->elem, sizeof *t->elem * n);
    mb->b.g = s->g, mb->b.coord = 0;
    value r = emit_res(p, mb->b.f, emit(&mb->b, OP_unpack, (attrset){0}, &s->grads, 1, ty, n));
    for (u32 k = 0; k < n; k++) *vec_push(a, &per[s->c->weight[s->gp->acc[k]] - 1]) = r + k;
  }
  for (u32 i = 0; i < mb->m->nparams; i++) {
    u32 n = 0; // one value for each distinct group
    for (u32 k = 0; k < per[i].n; k++) {
      group g = type_get(p, func_get(p, mb->b.f)->values.v[per[i].v[k]].ty)->g;
      u32 j = 0;
      while (j < n && type_get(p, func_get(p, mb->b.f)->values.v[per[i].v[j]].ty)->g.i != g.i) j++;
      if (j == n)
        per[i].v[n++] = per[i].v[k];
      else
        per[i].v[j] = combine(mb, per[i].v[j], per[i].v[k]);
    }
    bool home =
        n == 1 && type_get(p, func_get(p, mb->b.f)->values.v[per[i].v[0]].ty)->g.i == mb->param_group[i].i;
    out[i] = home                     ? per[i].v[0]
             : n                      ? join_groups(mb, i + 1, per[i].v, n)
             : main_trains(mb, i + 1) ? zero_grad(mb, i + 1)
                                      : 0;
    if (mb->b.failed) return false;
  }
  return true;
}

// Updates of all weights that live on one group, as one call.
static bool update_group(main_build *mb, const value *w, u32 n, const value *grad, value *neww, value **news,
                         value *gradout) {
  apply *x = mb->x;
  prog *p = mb->p;
  const plan *pn = x->pn;
  u32 most = n * (2 + OPTIM_STATES), np = 2 * n, nr = n;
  func f = planner_update(x->pl, w, n, &pn->optim, pn->keep_gradients);
  layout *in = NEWN(x->a, layout, most), *demand = NEWN(x->a, layout, most);
  u32 *opd = NEWN(x->a, u32, most);
  group g = mb->param_group[w[0] - 1];
  for (u32 i = 0; i < n; i++) {
    value v = w[i];
    layout rest = mb->param_lay[v - 1];
    in[i] = rest, demand[i] = rest;
    opd[i] = mb->param[v - 1] | OPD_DONATED;
    in[n + i] = type_get(p, func_get(p, mb->b.f)->values.v[grad[v - 1]].ty)->lay;
    opd[n + i] = grad[v - 1] | OPD_DONATED;
  }
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < n; i++) {
      value s = mb->state[j][w[i] - 1];
      if (!s) continue;
      in[np] = demand[nr++] = val_type(p, func_get(p, mb->b.f), s)->lay;
      opd[np++] = s | OPD_DONATED;
    }
  for (u32 i = 0; i < n && pn->keep_gradients; i++) demand[nr++] = in[i];
  sharded sh;
  x->update = true;
  shard_call_of call = {.f = f, .in = in, .demand = demand, .g = g};
  bool ok = shard_function(x, &call, &sh);
  x->update = false;
  if (!ok) return false;
  type *res = NEWN(x->a, type, nr);
  for (u32 k = 0; k < nr; k++) res[k] = type_bind(p, func_result(p, sh.dst, k), g);
  mb->b.g = g, mb->b.coord = 0, mb->b.flags = INSTR_UPDATE;
  u32 at = emit(&mb->b, OP_call, (attrset){0}, opd, np, res, nr);
  mb->b.flags = 0;
  func_get(p, mb->b.f)->body.v[at - 1].callee = sh.dst;
  value r = emit_res(p, mb->b.f, at);
  for (u32 i = 0; i < n; i++, r++) {
    neww[w[i] - 1] = r;
    name_of(mb, r, w[i], ".new");
  }
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < n; i++) {
      value s = mb->state[j][w[i] - 1];
      if (!s) continue;
      news[j][w[i] - 1] = r;
      value_name(p, mb->b.f, r++, sym_with(p->c, val(func_get(p, mb->b.f), s)->name, ".new"));
    }
  for (u32 i = 0; i < n && pn->keep_gradients; i++, r++) {
    gradout[w[i] - 1] = r;
    name_of(mb, r, w[i], ".grad");
  }
  return true;
}

static bool update_weights(main_build *mb, value *neww, value **news, value *gradout) {
  arena *a = mb->x->a;
  u32 np = mb->m->nparams;
  value *grad = ZNEWN(a, value, np + 1), *w = NEWN(a, value, np + 1);
  bool *done = ZNEWN(a, bool, np + 1);
  if (!gather_grads(mb, grad)) return false;
  for (u32 i = 0; i < np; i++) {
    if (done[i] || !grad[i]) continue;
    u32 n = 0;
    for (u32 j = i; j < np; j++)
      if (grad[j] && !done[j] && mb->param_group[j].i == mb->param_group[i].i) w[n++] = j + 1, done[j] = true;
    if (!update_group(mb, w, n, grad, neww, news, gradout)) return false;
  }
  return true;
}

// ---- results ----------------------------------------------------------------------------------------------
// A value that main returns: the microbatches joined, sums over space done.
static value returned(main_build *mb, value v) {
  prog *p = mb->p;
  if (!mb->seg_of[v]) return mb->param[v - 1];
  seg *s = &mb->seg[mb->seg_of[v] - 1];
  value *per = &s->res[(size_t)mb->out_of[v] * mb->K], r = per[0];
  mb->b.g = s->g, mb->b.coord = 0;
  if (mb->time) {
    type_info t = *type_get(p, func_get(p, mb->b.f)->values.v[r].ty);
    attr over = attr_x(A_over, &mb->time, 1);
    bool varies =
        layout_split_of(p->sp, t.lay, mb->time) || layout_part_of(p->sp, t.lay, mb->time) != RED_NONE;
    type rt = type_tensor(p, &t.s, layout_without(p->sp, t.lay, mb->time), t.g);
    if (varies) r = emit_res(p, mb->b.f, emit(&mb->b, OP_join, attrs_of(p, &over, 1), per, mb->K, &rt, 1));
  }
  layout l = main_filter(mb, type_get(p, func_get(p, mb->b.f)->values.v[r].ty)->lay, s->g);
  r = shard_convert(mb->x, &mb->b, r, l, s->g);
  value_name(p, mb->b.f, r, mb->m->values.v[v].name);
  return r;
}

static bool finish_main(main_build *mb) {
  arena *a = mb->x->a;
  const plan *pn = mb->x->pn;
  u32 np = mb->m->nparams, n = 0;
  value *ret = NEWN(a, value, mb->m->rets.n + np * (2 + OPTIM_STATES) + 1), *neww = ZNEWN(a, value, np + 1),
        *grad = ZNEWN(a, value, np + 1), *news[OPTIM_STATES];
  for (u32 j = 0; j < OPTIM_STATES; j++) news[j] = ZNEWN(a, value, np + 1);
  for (u32 i = 0; i < mb->m->rets.n; i++) ret[n++] = returned(mb, mb->m->rets.v[i]);
  if (mb->b.failed || (pn->train && !update_weights(mb, neww, news, grad))) return false;
  for (u32 i = 0; i < np; i++)
    if (grad[i]) ret[n++] = grad[i];
  for (u32 i = 0; i < np; i++)
    if (neww[i]) ret[n++] = neww[i];
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < np; i++)
      if (news[j][i]) ret[n++] = news[j][i];
  func_return(mb->p, mb->b.f, ret, n);
  mb->p->main = mb->b.f;
  return !mb->b.failed;
}

static bool build_main(apply *x) {
  prog *s = x->src, *p = x->p;
  main_build mb = {.x = x, .s = s, .p = p, .m = func_get(s, s->main), .nseg = x->pn->nsegments, .K = 1};
  if (x->pn->time) {
    mb.time = x->axis[x->pn->time];
    mb.K = x->pn->axes[x->pn->time - 1].size;
    mb.point = NEWN(x->a, u32, mb.K);
    for (u32 i = 0; i < mb.K; i++) mb.point[i] = point_with(p, 0, mb.time, (u16)i);
  }
  mb.seg = ZNEWN(x->a, seg, mb.nseg + 1);
  u32 nv = mb.m->values.n;
  mb.seg_of = ZNEWN(x->a, u32, nv), mb.out_of = ZNEWN(x->a, u32, nv);
  mb.param = ZNEWN(x->a, value, nv), mb.param_lay = ZNEWN(x->a, layout, nv),
  mb.param_group = ZNEWN(x->a, group, nv);
  for (u32 j = 0; j < OPTIM_STATES; j++) mb.state[j] = ZNEWN(x->a, value, nv);
  mb.weight_set = ZNEWN(x->a, bool, nv), mb.weight_rest = ZNEWN(x->a, bool, nv);
  mb.some_free = ZNEWN(x->a, u64, nv), mb.all_free = ZNEWN(x->a, u64, nv);
  mb.b = builder_at(p, func_new(p, sym_of(s->c, "main"), mb.m->where));
  return main_segments(&mb) && main_tasks(&mb) && finish_main(&mb);
}

prog *plan_apply(planner *pl, const plan *pn, coster *k) {
  apply *x = &(apply){.pl = pl, .pn = pn, .src = pl->src, .k = k};
  x->a = arena_new();
  x->p = prog_new(pl->src->c);
  if (k) coster_use(k, x->p);
  planner_recompute(pl, pn);
  memset(pl->rests, 0, sizeof pl->rests);
  bool ok = make_space(x) && make_choices(x) && build_main(x);
  x->p->norigins = x->src->norigins;
  arena_free(x->a);
  if (ok) {
    IR_VERIFY_PASS(x->p);
    return x->p;
  }
  prog_free(x->p);
  return NULL;
}

prog *planner_source(planner *pl) { return pl->src; }
bool planner_rests(const planner *pl, rest_what what) { return pl->rests[what]; }

bool plan_trial(planner *pl, const plan *pn, func f, u8 axis, plan_trial_result *out) {
  apply *x = &(apply){.pl = pl, .pn = pn, .src = pl->src, .trial = out};
  u32 errors = diag_count(pl->src->c);
  x->a = arena_new();
  x->p = prog_new(pl->src->c);
  *out = (plan_trial_result){0};
  x->trial_split = ZNEWN(pl->a, bool, pl->src->norigins + 1);
  out->split = x->trial_split;
  bool ok = make_space(x) && make_choices(x);
  if (ok) {
    const func_info *fi = func_get(pl->src, f);
    x->trial_axis = x->axis[axis];
    layout *in = ZNEWN(x->a, layout, fi->nparams + 1);
    for (u32 i = 0; i < fi->nparams; i++)
      if (fi->params.v[i].r == ROLE_WEIGHT) in[i] = LAYOUT_FREE;
    sharded sh;
    shard_call_of call = {.f = f, .in = in, .g = group_all(x->p->sp, x->mesh[0])};
    ok = shard_function(x, &call, &sh);
  }
  diag_truncate(pl->src->c, errors);
  prog_free(x->p);
  arena_free(x->a);
  return ok;
}

plan *plan_single(arena *a, const prog *src, bool train, const optim_opts *o) {
  plan *pn = NEW(a, plan);
  static const task one[2] = {{0, TASK_F, 0}, {0, TASK_B, 0}};
  pn->naxes = 1, pn->axes = NEW(a, plan_axis);
  pn->axes[0] = (plan_axis){sym_of(src->c, "d"), 1, false};
  pn->nmeshes = 1, pn->meshes = NEW(a, plan_mesh);
  pn->meshes[0] = (plan_mesh){.name = sym_of(src->c, "m"), .naxes = 1, .axis = {1}};
  pn->nsegments = 1, pn->segments = NEW(a, plan_segment);
  pn->segments[0] = (plan_segment){.from = 1, .to = func_get(src, src->main)->body.n};
  pn->nseqs = 1, pn->seqs = NEW(a, task_seq);
  pn->seqs[0] = (task_seq){train ? 2 : 1, one};
  pn->train = train;
  if (o) pn->optim = *o;
  pn->name = sym_of(src->c, "one device");
  return pn;
}
