// apply.c - a plan applied: axes and meshes, stages, tasks, the update of the weights, the results.
#include "plan/main.h"
#include "plan/roles.h"
#include "cost/cost.h"

static bool make_space(apply *x) {
  const plan *pn = x->pn;
  space *sp = x->p->sp;
  for (u32 i = 0; i < pn->naxes; i++) {
    x->axis[i + 1] = axis_add(sp, pn->axes[i].name, pn->axes[i].size, pn->axes[i].temporal);
    if (!x->axis[i + 1]) return false;
  }
  u32 *micro = NEWN(x->a, u32, pn->nreplicas + 1);
  for (u32 r = 0; r < pn->nreplicas; r++) micro[r] = pn->replicas[r].micro;
  if (pn->time && pn->nreplicas > 1) axis_in_parts(sp, x->axis[pn->time], micro, pn->nreplicas);
  for (u32 i = 0; i < pn->ntrans; i++)
    if (!pn->trans[i].instr && pn->trans[i].fn.i == x->src->main.i)
      x->batch_axes |= 1ull << x->axis[pn->trans[i].axis];
  x->mesh = NEWN(x->a, mesh, pn->nmeshes + 1);
  for (u32 i = 0; i < pn->nmeshes; i++) {
    u8 ax[MESH_AXES];
    u32 before = diag_count(x->src->c);
    for (u32 k = 0; k < pn->meshes[i].naxes; k++) ax[k] = x->axis[pn->meshes[i].axis[k]];
    x->mesh[i] =
        mesh_add(sp, pn->meshes[i].name, ax, pn->meshes[i].naxes, pn->meshes[i].first, pn->meshes[i].ranks);
    if (!x->mesh[i].i) {
      diag_locate(x->src->c, before, pn->meshes[i].at);
      return false;
    }
  }
  return true;
}

// ---- explicit choices: from dimensions of operands and results to letters ---------------------------------
// Which dimensions can be split so many ways.
static void hint_what_splits(ctx *c, const law *l, u32 parts) {
  strbuf b = {.a = ctx_arena(c)};
  u32 most = 0;
  for (u32 k = 0; k < l->nopd; k++)
    for (u32 d = 0, n = 0; d < l->opd[k].nd; d++) {
      const law_dim *x = &l->opd[k].dim[d];
      const law_letter *f = x->n ? &l->letter[x->f[0]] : NULL;
      if (!f || f->flags & LAW_WHOLE || f->extent < 2) continue;
      most = MAX(most, f->extent < UINT32_MAX ? (u32)f->extent : UINT32_MAX);
      if (f->extent % parts) continue;
      if (!n++) sb_fmt(&b, "%soperand %u, dim", b.n ? "; " : "", k);
      sb_fmt(&b, "%s%u", n > 1 ? ", " : " ", d);
    }
  if (b.n)
    diag_hint(c, "what %u ranks can split here: %s", parts, sb_str(&b));
  else if (most)
    diag_hint(c, "nothing here is divisible by %u; leave this line out, or use another size of the axis",
              parts);
  else
    diag_hint(c, "it has no dimension that can be split: leave this line out");
}

// The letter and stride that a plan's dimension means under the law of its instruction.
static bool choice_of(apply *x, const plan_trans *t, func f, u32 instr_no, choice *out) {
  ctx *c = x->src->c;
  const func_info *fi = func_get(x->src, f);
  const instr *in = &fi->body.v[instr_no - 1];
  const char *axis = sym_str(c, x->pn->axes[t->axis - 1].name), *name = op_row_of(in->op)->name;
  loc at = t->at.i ? t->at : in->where;
  if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack) {
    diag(c, E_PLAN, at, "%s itself cannot be split: name instructions of the function it calls", name);
    return false;
  }
  const law *l = plan_law(x->pl, f, instr_no - 1);
  if (!l) return false;
  if (!trans_splits(t->dim)) {
    *out = (choice){.axis = x->axis[t->axis], .letter = t->dim == TRANS_SUM ? PASS : WHOLE};
    bool linear = t->dim == TRANS_WHOLE;
    for (u32 k = 0; k < l->nopd; k++) linear |= law_lin(l, k) != '-' && op_row_of(in->op)->red == RED_SUM;
    if (!linear) {
      diag(c, E_PLAN, at, "%s is not linear: no sum over %s passes through it", name, axis);
      diag_hint(c, "`whole: true` takes the sum before it");
    }
    return linear;
  }
  if (t->index >= (t->result ? l->nres : l->nopd) || t->dim >= (t->result ? l->res : l->opd)[t->index].nd) {
    diag(c, E_PLAN, at, "%s has no dimension %u in %s %u", name, t->dim, t->result ? "result" : "operand",
         t->index);
    hint_what_splits(c, l, plan_parts(&x->pn->axes[t->axis - 1]));
    return false;
  }
  const law_dim *d = &(t->result ? l->res : l->opd)[t->index].dim[t->dim];
  const plan_axis *over = &x->pn->axes[t->axis - 1];
  u32 n = over->size;
  const u32 parts = plan_parts(over);
  i64 inner = 1;
  for (u32 j = d->n; j-- > 0;) {
    i64 e = l->letter[d->f[j]].extent;
    bool here = t->stride ? t->stride < inner * e && t->stride % inner == 0 : j == 0;
    if (here) {
      *out = (choice){x->axis[t->axis], d->f[j], t->weak, t->result, 0, t->stride ? t->stride / inner : 0};
      if (l->letter[d->f[j]].flags & LAW_WHOLE) {
        diag(c, E_PLAN, at, "%s needs dimension %u whole; it cannot be split over %s", name, t->dim, axis);
        hint_what_splits(c, l, parts);
        return false;
      }
      if (t->uneven && e % parts && e >= parts && d->n == 1 && !axis_get(x->p->sp, out->axis)->temporal) {
        out->table =
            (u16)(over->shares ? pieces_near(x->p->sp, n, over->shares, e) : pieces_spread(x->p->sp, n, e)).i;
        return true;
      }
      if (e % ((out->stride ? out->stride : 1) * parts)) {
        diag(c, E_DIVIDE, at,
             over->shares ? "%s: extent %lld is not divisible by %u, the sum of the shares of axis %s"
                          : "%s: extent %lld is not divisible by %u (axis %s)",
             name, (long long)e, parts, axis);
        hint_what_splits(c, l, parts);
        return false;
      }
      if (over->shares) {
        const i64 block = out->stride ? out->stride * parts : e;
        out->table = (u16)pieces_shared(x->p->sp, n, over->shares, block, e).i, out->stride = 0;
      }
      return true;
    }
    inner *= e;
  }
  diag(c, E_PLAN, at, "%s: dimension %u has extent 1 or no index at stride %lld; it cannot be split over %s",
       name, t->dim, (long long)t->stride, axis);
  hint_what_splits(c, l, parts);
  return false;
}

// Choices are kept by the origin that an instruction shares with its copies in stage sources, gradients and
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

// Sets up the main that is built. Its arrays are in x->a.
void main_open(main_build *to, apply *x, u32 most) {
  prog *s = x->src, *p = x->p;
  main_build mb = {.x = x,
                   .s = s,
                   .p = p,
                   .m = func_get(s, s->main),
                   .nsegments = x->pn->nsegments,
                   .nreplicas = MAX(x->pn->nreplicas, 1),
                   .K = 1};
  mb.nstages = mb.nsegments * mb.nreplicas;
  if (x->pn->time) {
    mb.time = x->axis[x->pn->time];
    mb.K = x->pn->axes[x->pn->time - 1].size;
  }
  mb.most = most ? MIN(most, mb.K) : mb.K, mb.nmb = mb.nreplicas == 1 ? mb.most : 0;
  for (u32 r = 0; r < mb.nreplicas && mb.nreplicas > 1; r++) mb.nmb += MIN(x->pn->replicas[r].micro, mb.most);
  if (mb.time) {
    mb.point = NEWN(x->a, u32, mb.nmb), mb.coord = NEWN(x->a, u32, mb.nmb);
    for (u32 r = 0, i = 0, first = 0; r < mb.nreplicas; r++) {
      const u32 micro = mb.nreplicas == 1 ? mb.K : x->pn->replicas[r].micro;
      for (u32 k = 0; k < MIN(micro, mb.most); k++, i++) mb.coord[i] = first + k;
      first += micro;
    }
    for (u32 i = 0; i < mb.nmb; i++) mb.point[i] = point_with(p, 0, mb.time, (u16)mb.coord[i]);
  }
  mb.stage = ZNEWN(x->a, stage_build, mb.nstages + 1);
  for (u32 i = 0; i < mb.nstages; i++)
    mb.stage[i].segment = i % mb.nsegments, mb.stage[i].replica = i / mb.nsegments;
  u32 nv = mb.m->values.n;
  mb.stage_of = ZNEWN(x->a, u32, nv), mb.out_of = ZNEWN(x->a, u32, nv);
  mb.home = ZNEWN(x->a, mesh_param, mb.m->nparams + 1);
  mb.first_copy = ZNEWN(x->a, u32, mb.m->nparams + 1);
  for (u32 j = 0; j < OPTIM_STATES; j++) mb.state[j] = ZNEWN(x->a, value, nv);
  mb.b = builder_at(p, func_new(p, sym_of(s->c, "main"), mb.m->where));
  mb.b.where = mb.m->where;
  *to = mb;
}

// A weight at least comes, is unpacked, has a sum, is unpacked again and goes. Of many weights, what vectors outgrow is memory.
static void reserve_main(main_build *mb) {
  func_info *f = func_get(mb->p, mb->b.f);
  const u32 n = mb->m->nparams;
  vec_reserve(mb->p->a, &f->values, 5 * n);
  vec_reserve(mb->p->a, &f->opds, 5 * n);
  vec_reserve(mb->p->a, &f->body, 2 * n);
}

static bool build_main(apply *x, u32 most) {
  main_build mb;
  main_open(&mb, x, most);
  reserve_main(&mb);
  mb.offload = x->pn->offload, mb.host_update = x->pn->host_update;
  if (!main_stages(&mb)) return false;
  main_offload_stages(&mb);
  if (!main_params(&mb) || !main_sums(&mb) || !main_tasks(&mb) || !main_finish(&mb)) return false;
  if (mb.offload) pass_prefetch(x->p, x->pn->prefetch);
  return true;
}

bool apply_open(apply *x, planner *pl, const plan *pn, cost_model *k) {
  planner *own = planner_formed(pl, pn);
  if (own) own = planner_marked(own, pn);
  *x = (apply){.pl = own ? own : pl, .asked = pl, .pn = pn, .k = k};
  x->src = x->pl->src;
  x->a = arena_new();
  x->p = prog_new(pl->src->c);
  x->before = diag_count(pl->src->c);
  return own && make_space(x) && make_choices(x);
}

prog *apply_close(apply *x, bool ok) {
  if (!ok) plan_point(x->asked->src, x->pn, x->before);
  x->p->norigins = x->src->norigins;
  arena_free(x->a);
  if (ok) return x->p;
  prog_free(x->p);
  return NULL;
}

prog *plan_apply_first(planner *pl, const plan *pn, cost_model *k, u32 most) {
  apply x;
  bool ok = apply_open(&x, pl, pn, k) && build_main(&x, most);
  prog *p = apply_close(&x, ok);
  if (p && !most) IR_VERIFY_PASS(p);
  if (!p || plan_measured(pl, pn, k, p)) return p;
  prog_free(p);
  return NULL;
}

// Where updates are between tasks and the pipeline is full for some of the time, what one update more takes is told by
// the program of one update less.
prog *plan_apply(planner *pl, const plan *pn, cost_model *k) {
  prog *p = plan_apply_first(pl, pn, k, 0);
  const u32 each = plan_update_group(pn), K = pn->time ? pn->axes[pn->time - 1].size : 1;
  if (!p || !each || K < each + 2 * pn->made.shape.places) return p;
  p->shorter = plan_apply_first(pl, pn, k, K - each), p->updates = K / each;
  if (p->shorter) return p;
  prog_free(p);
  return NULL;
}

prog *planner_source(planner *pl) { return pl->src; }

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
    u32 on = 0; // a mesh that has the axis
    while (on + 1 < pn->nmeshes && !group_has_axis(x->p->sp, group_all(x->p->sp, x->mesh[on]), x->trial_axis))
      on++;
    shard_call_of call = {.f = f, .in = in, .g = group_all(x->p->sp, x->mesh[on])};
    ok = shard_function(x, &call, &sh);
  }
  diag_truncate(pl->src->c, errors);
  prog_free(x->p);
  arena_free(x->a);
  return ok;
}

plan *plan_single(arena *a, const prog *src, bool train, const optim_opts *o) {
  plan *pn = NEW(a, plan);
  static const sched_task one[2] = {{.kind = TASK_F}, {.kind = TASK_B}};
  pn->naxes = 1, pn->axes = NEW(a, plan_axis);
  pn->axes[0] = (plan_axis){.name = sym_of(src->c, "d"), .size = 1};
  pn->nmeshes = 1, pn->meshes = NEW(a, plan_mesh);
  pn->meshes[0] = (plan_mesh){.name = sym_of(src->c, "m"), .naxes = 1, .axis = {1}};
  pn->nsegments = 1, pn->segments = NEW(a, plan_segment);
  pn->segments[0] = (plan_segment){.from = 1, .to = func_get(src, src->main)->body.n};
  pn->nseqs = 1, pn->seqs = NEW(a, sched_seq);
  pn->seqs[0] = (sched_seq){train ? 2 : 1, one};
  pn->train = train;
  if (o) pn->optim = *o;
  pn->name = sym_of(src->c, "one device");
  return pn;
}
