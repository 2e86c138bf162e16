// stages.c - the pieces of the distributed main before their order: places become groups, stretches of main
// become functions with gradients, and each function is sharded for the layouts in which its inputs arrive.
#include "plan/main.h"

static bool is_float(const prog *p, const func_info *f, value v) {
  const type_info *t = val_type(p, f, v);
  return !t->tuple && dtype_kind_of(t->s.t) == DK_FLOAT;
}
bool main_trains(const main_build *mb, value v) {
  return mb->x->pn->train && mb->m->params.v[v - 1].r == ROLE_WEIGHT && is_float(mb->s, mb->m, v);
}
type func_result(const prog *p, func f, u32 k) {
  const func_info *fi = func_get(p, f);
  return fi->values.v[fi->rets.v[k]].ty;
}

static bool same_submesh(const plan_submesh *a, const plan_submesh *b) {
  return a->mesh == b->mesh && a->nfix == b->nfix && !memcmp(a->fix, b->fix, sizeof *a->fix * a->nfix);
}

// ---- places ---------------------------------------------------------------------------------------------
typedef struct {
  const plan_submesh *on;
  group g;
  u32 place; // its number, of several the lowest
  sched_places in;
} submesh;

static bool inside(const space *sp, group g, group of) {
  const group_info *i = group_get(sp, g);
  if (i->nranks >= group_get(sp, of)->nranks) return false;
  for (u32 k = 0; k < i->nranks; k++)
    if (group_member(sp, of, i->ranks[k]) < 0) return false;
  return true;
}

// Marks the members of `of` that g has. False: one was marked before.
static bool mark_members(const space *sp, group g, group of, bool *seen) {
  const group_info *i = group_get(sp, g);
  for (u32 k = 0; k < i->nranks; k++) {
    bool *at = &seen[group_member(sp, of, i->ranks[k])];
    if (*at) return false;
    *at = true;
  }
  return true;
}

// Which of them lie inside x, each without another one inside it, if each of x's ranks is in just one of these. Returns
// how many, or 0.
static u32 parts_of(const main_build *mb, const submesh *v, u32 n, const submesh *x, u16 *part) {
  const space *sp = mb->p->sp;
  bool *seen = ZNEWN(mb->x->a, bool, group_get(sp, x->g)->nranks);
  u32 ranks = 0, found = 0;
  for (u32 k = 0; k < n; k++) {
    bool least = inside(sp, v[k].g, x->g);
    for (u32 j = 0; j < n && least; j++) least = !inside(sp, v[j].g, v[k].g);
    if (!least) continue;
    if (!mark_members(sp, v[k].g, x->g, seen)) return 0; // two that overlap are not x together
    part[found++] = (u16)k, ranks += group_get(sp, v[k].g)->nranks;
  }
  return ranks == group_get(sp, x->g)->nranks ? found : 0;
}

// Submeshes are places, but for those that are several others together.
static void number_places(main_build *mb, submesh *v, u32 n) {
  u16 *part = NEWN(mb->x->a, u16, n + 1);
  bool equal = true; // of one size: none lies inside another
  for (u32 k = 1; k < n; k++)
    equal &= group_get(mb->p->sp, v[k].g)->nranks == group_get(mb->p->sp, v[0].g)->nranks;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 k = 0; k < n; k++) {
      const u32 parts = equal ? 0 : parts_of(mb, v, n, &v[k], part);
      if (!pass && !parts) v[k].place = mb->nplaces++;
      if (pass != (parts > 0)) continue;
      u16 *in = NEWN(mb->x->a, u16, parts + 1);
      in[0] = (u16)v[k].place;
      for (u32 j = 0; j < parts; j++) in[j] = (u16)v[part[j]].place;
      if (parts) v[k].place = in[0]; // they are in order of first use, as their numbers are
      v[k].in = (sched_places){MAX(parts, 1u), in};
    }
}

static bool make_groups(main_build *mb) {
  const plan *pn = mb->x->pn;
  space *sp = mb->p->sp;
  submesh *v = ZNEWN(mb->x->a, submesh, mb->nstages + 1);
  u32 *of = NEWN(mb->x->a, u32, mb->nstages + 1), n = 0;
  for (u32 i = 0; i < mb->nstages; i++) {
    const plan_segment *ps = &pn->segments[mb->stage[i].segment];
    const plan_replica *r = pn->nreplicas ? &pn->replicas[mb->stage[i].replica] : NULL;
    const plan_submesh *pl = r && r->on ? &r->on[mb->stage[i].segment] : &ps->on;
    group_axis fix[MESH_AXES];
    for (u32 k = 0; k < pl->nfix; k++)
      fix[k] = (group_axis){.axis = mb->x->axis[pl->fix[k].axis], .at = (int)pl->fix[k].at};
    u32 before = diag_count(mb->s->c);
    mb->stage[i].g = group_of(sp, mb->x->mesh[pl->mesh], fix, pl->nfix);
    if (!mb->stage[i].g.i) {
      diag_locate(mb->s->c, before, r && r->on ? r->at : ps->at);
      return false;
    }
    u32 k = 0;
    while (k < n && !same_submesh(v[k].on, pl)) k++;
    if (k == n) v[n++] = (submesh){.on = pl, .g = mb->stage[i].g};
    of[i] = k;
  }
  number_places(mb, v, n);
  for (u32 i = 0; i < mb->nstages; i++) mb->stage[i].place = v[of[i]].place, mb->stage[i].on = v[of[i]].in;
  return true;
}

// Stages that are alike share a function if the plan chooses the same for all of their instructions.
static bool same_choices(const apply *x, const stage_source *c, const stage_source *d) {
  for (u32 k = 0; k < c->n; k++) {
    const choice_list *a = &x->choices[c->origin[k]], *b = &x->choices[d->origin[k]];
    if (a->n != b->n) return false;
    for (u32 j = 0; j < a->n; j++)
      if (a->v[j].axis != b->v[j].axis || a->v[j].letter != b->v[j].letter || a->v[j].weak != b->v[j].weak ||
          a->v[j].table != b->v[j].table || a->v[j].stride != b->v[j].stride)
        return false;
  }
  return true;
}

// Every microbatch is of one replica.
static bool check_replicas(const main_build *mb) {
  const plan *pn = mb->x->pn;
  u64 all = 0;
  for (u32 r = 0; r < pn->nreplicas; r++) all += pn->replicas[r].micro;
  if ((u64)mb->nsegments * mb->nreplicas > UINT16_MAX) {
    diag(mb->s->c, E_LIMIT, pn->replicas[0].at, "%u segments of %u replicas are more than %d stages",
         mb->nsegments, mb->nreplicas, UINT16_MAX);
    return false;
  }
  if (!pn->nreplicas || all == mb->K) return true;
  diag(mb->s->c, E_PLAN, pn->replicas[0].at, "the replicas have %llu microbatches, but there are %u in time",
       (unsigned long long)all, mb->K);
  diag_hint(mb->s->c, "microbatches of the replicas that add up to %u", mb->K);
  return false;
}

// Segment `number` does not begin at `at`, or ends too late or too early: says which instruction is in no segment, or in
// two of them, and what it can be beside the others.
static void tell_cover(const prog *src, const plan *pn, u32 number, u32 at) {
  const plan_segment *ps = &pn->segments[number];
  const func_info *m = func_get(src, src->main);
  const u32 end = m->body.n, next = number + 1 < pn->nsegments ? ps[1].from : end + 1;
  const bool left_out = ps->from > at || (ps->from == at && ps->to < end);
  const u32 which = ps->from > at ? at : ps->from < at ? ps->from : ps->to < end ? ps->to + 1 : end;
  const instr *in = &m->body.v[which - 1];
  const char *name =
      in->op == OP_call ? sym_str(src->c, func_get(src, in->callee)->name) : op_row_of((opcode)in->op)->name;
  diag(src->c, E_PLAN, ps->at,
       "segment %u covers instructions %u to %u of main, which has %u: %s, main:%u, is in %s", number,
       ps->from, ps->to, end, name, which,
       left_out       ? "no segment"
       : ps->to > end ? "it, and nothing is behind it"
                      : "two segments");
  diag_hint(src->c,
            "from: %u, to: %u; or use the model and the options that the plan was made for, which its first "
            "line names if `heddle plan -o` wrote it",
            at, next > at ? next - 1 : end);
}

bool plan_covers(const prog *src, const plan *pn) {
  const u32 end = func_get(src, src->main)->body.n;
  u32 at = 1;
  for (u32 i = 0; i < pn->nsegments; i++) {
    const plan_segment *ps = &pn->segments[i];
    if (ps->from != at || ps->to < ps->from || ps->to > end || (i + 1 == pn->nsegments && ps->to != end)) {
      tell_cover(src, pn, i, at);
      return false;
    }
    at = ps->to + 1;
  }
  return true;
}

static bool make_stages(main_build *mb) {
  const plan *pn = mb->x->pn;
  if (!check_replicas(mb)) return false;
  for (u32 i = 0; i < mb->nsegments; i++) {
    const plan_segment *ps = &pn->segments[i];
    stage_source *c = mb->stage[i].src = planner_stage(mb->x->pl, ps->from, ps->to);
    mb->stage[i].f = same_choices(mb->x, c, c->like) ? c->like->fwd : c->fwd;
    mb->m = func_get(mb->s, mb->s->main);
    for (u32 k = 0; k < c->noutputs; k++) mb->stage_of[c->output[k]] = i + 1, mb->out_of[c->output[k]] = k;
  }
  for (u32 i = mb->nsegments; i < mb->nstages; i++) {
    const stage_build *first = &mb->stage[mb->stage[i].segment];
    mb->stage[i].src = first->src, mb->stage[i].f = first->f;
  }
  return true;
}

bool *plan_behind_loss(const prog *src, arena *a) {
  const func_info *m = func_get(src, src->main);
  bool *behind = ZNEWN(a, bool, m->values.n);
  behind[m->rets.v[0]] = true;
  for (u32 i = m->body.n; i-- > 0;) {
    const instr *in = &m->body.v[i];
    bool any = false;
    for (u32 k = 0; k < in->nres; k++) any |= behind[in->res + k];
    for (u32 k = 0; any && k < instr_nopd(m, in); k++) behind[opd_of(m, in, k)] = true;
  }
  return behind;
}

// Which outputs get a gradient: the loss, and whatever of it a later stage with a backward consumes.
static bool make_grads(main_build *mb) {
  const plan *pn = mb->x->pn;
  arena *a = mb->x->a;
  for (u32 i = 0; i < mb->nstages; i++) mb->stage[i].has_dy = ZNEWN(a, bool, mb->stage[i].src->noutputs + 1);
  if (!pn->train) return true;
  const sched *file = pn->seqs ? NULL : pn->made.file;
  bool *split = file && plan_is_unrolled(pn) ? plan_unroll_split(a, pn, file) : ZNEWN(a, bool, mb->nsegments);
  for (u32 i = 0; i < mb->nsegments && !(file && plan_is_unrolled(pn)); i++)
    split[i] = !pn->seqs && (file ? file->split[i] : pn->made.row->split);
  for (u32 i = 0; pn->seqs && i < pn->nseqs; i++)
    for (u32 k = 0; k < pn->seqs[i].n; k++) {
      const sched_task *t = &pn->seqs[i].v[k];
      if (t->kind > TASK_B && t->stage < mb->nsegments) split[t->stage] = true;
    }
  value loss = mb->m->rets.v[0];
  for (u32 r = 0; mb->stage_of[loss] && r < mb->nreplicas; r++)
    main_maker(mb, &mb->stage[r * mb->nsegments], loss)->has_dy[mb->out_of[loss]] = true;
  const bool *behind = plan_behind_loss(mb->s, a); // what is kept beside it takes no gradient along
  for (u32 i = mb->nstages; i-- > 0;) {
    stage_build *s = &mb->stage[i];
    stage_source *c = s->src;
    bool any = false;
    for (u32 k = 0; k < c->noutputs; k++) any |= s->has_dy[k];
    if (!any) continue;
    s->acc = plan_accumulates(pn);
    u8 *mark = ZNEWN(a, u8, c->nweights + c->ninputs + 1);
    for (u32 k = 0; k < c->nweights; k++)
      mark[k] = !main_trains(mb, c->weight[k]) ? GRAD_NONE
                : !s->acc                      ? GRAD_PLAIN
                : pn->wide_gradients           ? GRAD_ACC_F32
                                               : GRAD_ACC;
    for (u32 k = 0; k < c->ninputs; k++) {
      const stage_build *from = main_maker(mb, s, c->input[k]);
      if (!is_float(mb->s, mb->m, c->input[k])) continue;
      bool input = !from && mb->m->params.v[c->input[k] - 1].r == ROLE_INPUT;
      if (from ? !behind[c->input[k]] : !(pn->input_gradients && input)) continue;
      mark[c->nweights + k] = GRAD_INPUT;
    }
    grad_opts o = {mark, s->has_dy, split[s->segment]};
    s->gp = planner_grad(mb->x->pl, s->f, &o);
    mb->m = func_get(mb->s, mb->s->main);
    if (!s->gp) return false;
    for (u32 k = 0; k < s->gp->ndx; k++) {
      const value v = c->input[s->gp->dx[k] - c->nweights];
      stage_build *from = main_maker(mb, s, v);
      if (from) from->has_dy[mb->out_of[v]] = true;
    }
    while (s->nneed_weights < s->gp->nneed && s->gp->need[s->nneed_weights] < c->nweights) s->nneed_weights++;
  }
  return true;
}

// l split as well as the plan says; l itself if that does not divide.
static layout split_over(main_build *mb, const plan_trans *t, layout l, const shape *sh) {
  space *sp = mb->p->sp;
  const plan_axis *over = &mb->x->pn->axes[t->axis - 1];
  const u32 parts = plan_parts(over);
  const u8 axis = mb->x->axis[t->axis];
  const i64 extent = sh->dim[t->dim],
            stride = t->stride ? t->stride : layout_next_stride(sp, l, t->dim, extent, parts);
  if (!stride) return l;
  if (!over->shares) return layout_with_split(sp, l, axis, t->dim, stride);
  if (extent % (stride * parts)) return l;
  pieces p = pieces_shared(sp, over->size, over->shares, stride * parts, extent);
  return layout_with_pieces(sp, l, axis, t->dim, p);
}

mesh_param *main_param(const main_build *mb, value v, group g) {
  const space *sp = mb->p->sp;
  mesh_param *home = &mb->home[v - 1];
  if (mb->x->pn->nmeshes == 1) return home->g.i ? home : NULL;
  const mesh m = group_get(sp, g)->m;
  if (home->g.i && group_get(sp, home->g)->m.i == m.i) return home;
  for (u32 k = mb->first_copy[v - 1]; k; k = mb->copies.v[k - 1].next)
    if (group_get(sp, mb->copies.v[k - 1].g)->m.i == m.i) return &mb->copies.v[k - 1];
  return NULL;
}

bool main_has_copies(const main_build *mb, value v) { return mb->first_copy[v - 1]; }

// Layout of an input of main as the plan deals it out over group g; with the temporal split of a microbatch
// or not.
static layout dealt(main_build *mb, value v, group g, bool in_task) {
  const plan *pn = mb->x->pn;
  space *sp = mb->p->sp;
  const shape *sh = &val_type(mb->s, mb->m, v)->s;
  layout l = {0};
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (t->instr || t->fn.i != mb->s->main.i || t->index != v - 1) continue;
    u8 ax = mb->x->axis[t->axis];
    bool time = axis_get(sp, ax)->temporal;
    if (!time && (!group_has_axis(sp, g, ax) || (!in_task && !(main_param(mb, v, g)->all_free >> ax & 1))))
      continue;
    const layout with = split_over(mb, t, l, sh);
    if (!layout_split_of(sp, with, ax) || !layout_fits(sp, with, sh->nd, sh->dim)) {
      diag(mb->s->c, E_DIVIDE, t->at.i ? t->at : mb->m->where,
           "input %s: dimension %u of extent %lld cannot be split %u ways over axis %s%s",
           sym_str(mb->s->c, mb->m->values.v[v].name), t->dim, (long long)sh->dim[t->dim],
           plan_parts(&pn->axes[t->axis - 1]), sym_str(mb->s->c, axis_get(sp, ax)->name),
           t->stride ? arena_printf(mb->x->a, " at stride %lld", (long long)t->stride) : "");
      if (pn->axes[t->axis - 1].shares)
        diag_hint(mb->s->c, "use shares of axis %s whose sum divides what is split",
                  sym_str(mb->s->c, axis_get(sp, ax)->name));
      else
        diag_hint(mb->s->c, "choose a batch that is a multiple of dp x mb");
      mb->b.failed = true;
      return l;
    }
    l = with;
  }
  if (!in_task && mb->time) l = layout_without(sp, l, mb->time);
  return l;
}

layout main_filter(const main_build *mb, layout l, group g) {
  space *sp = mb->p->sp;
  layout_info li = *layout_get(sp, l);
  for (u32 i = 0; i < li.nsplit; i++)
    if (!axis_get(sp, li.split[i].axis)->temporal &&
        group_axis_size(sp, g, li.split[i].axis) != axis_size(sp, li.split[i].axis))
      l = layout_without(sp, l, li.split[i].axis);
  for (u32 i = 0; i < li.npart; i++)
    if (!axis_get(sp, li.part[i].axis)->temporal) l = layout_without(sp, l, li.part[i].axis);
  return l;
}

// Where the index that `t` splits, of an input of main, is an index of v as well: the same split of v. False: v
// has it not.
static bool split_alike(const main_build *mb, const plan_trans *t, value v, plan_trans *out) {
  const classes *k = planner_classes(mb->x->pl);
  const u32 nd = val_type(mb->s, mb->m, v)->s.nd;
  u32 id[16], n = classes_dim(k, mb->s->main, t->index + 1, t->dim, id, COUNT_OF(id));
  if (!n) return false;
  u32 at = t->stride ? n - 1 : 0; // stride 0: as major as can be
  i64 inner = 1;
  for (; at && t->stride >= inner * classes_get(k, id[at])->extent; at--)
    inner *= classes_get(k, id[at])->extent;
  const u32 class = id[at];
  for (u32 d = 0; d < nd; d++) {
    const u32 own = classes_dim(k, mb->s->main, v, d, id, COUNT_OF(id));
    i64 after = 1;
    for (u32 j = own; j-- > 0; after *= classes_get(k, id[j])->extent) {
      if (id[j] != class) continue;
      *out = (plan_trans){.dim = (u8)d, .axis = t->axis, .stride = t->stride / inner * after};
      return true;
    }
  }
  return false;
}

// The batch over axes that only this group has.
static layout over_own_axes(main_build *mb, value v, const stage_build *to, layout l) {
  space *sp = mb->p->sp;
  const shape *sh = &val_type(mb->s, mb->m, v)->s;
  const stage_build *from = main_maker(mb, to, v);
  for (u32 i = 0; i < mb->x->pn->ntrans; i++) {
    const plan_trans *t = &mb->x->pn->trans[i];
    const u8 ax = mb->x->axis[t->axis];
    plan_trans own;
    if (t->instr || t->fn.i != mb->s->main.i || axis_get(sp, ax)->temporal || layout_split_of(sp, l, ax))
      continue;
    if (!group_has_axis(sp, to->g, ax) || group_has_axis(sp, from->g, ax) || !split_alike(mb, t, v, &own))
      continue;
    const layout with = split_over(mb, &own, l, sh);
    if (layout_fits(sp, with, sh->nd, sh->dim)) l = with;
  }
  return l;
}

// Does the plan choose for the result that v is: in main, or *inside a function whose call makes it?
static bool chosen_result(const main_build *mb, value v, const plan_trans *t, bool *inside) {
  const func_info *f = mb->m;
  func at = mb->s->main;
  for (*inside = false; t->result; *inside = true) {
    const u32 def = f->values.v[v].def;
    const instr *in = def ? &f->body.v[def - 1] : NULL;
    if (in && t->fn.i == at.i && t->instr == def && in->res + t->index == v) return true;
    if (!in || in->op != OP_call) return false;
    at = in->callee;
    v = func_get(mb->s, at)->rets.v[v - in->res];
    f = func_get(mb->s, at);
  }
  return false;
}

// Layout in which a value of another stage arrives: what of its layout can be said here, and what the plan
// adds for axes that only this group has. What it chooses inside functions is in that layout already where the other
// group has the axis.
static layout arriving(main_build *mb, value v, const stage_build *to) {
  const stage_build *from = main_maker(mb, to, v);
  space *sp = mb->p->sp;
  layout l = main_filter(mb, from->out[mb->out_of[v]], to->g);
  const shape *sh = &val_type(mb->s, mb->m, v)->s;
  for (u32 i = 0; i < mb->x->pn->ntrans; i++) {
    const plan_trans *t = &mb->x->pn->trans[i];
    const u8 ax = mb->x->axis[t->axis];
    bool inside;
    if (!t->result || layout_split_of(sp, l, ax) || !group_has_axis(sp, to->g, ax)) continue;
    if (!chosen_result(mb, v, t, &inside) || (inside && group_has_axis(sp, from->g, ax))) continue;
    const layout with = split_over(mb, t, l, sh);
    if (!inside || layout_fits(sp, with, sh->nd, sh->dim)) l = with;
  }
  return over_own_axes(mb, v, to, l);
}

static u32 own_of(const main_build *mb, const stage_build *s) {
  return mb->stage_more ? mb->stage_more[s - mb->stage] : 0;
}

static bool shard_forward(main_build *mb, stage_build *s) {
  arena *a = mb->x->a;
  stage_source *c = s->src;
  u32 n = c->nweights + c->ninputs;
  layout *in = NEWN(a, layout, n + 1),
         *demand = NEWN(a, layout, c->noutputs + (s->gp ? s->gp->nsaved : 0) + 1);
  bool *stored = ZNEWN(a, bool, n + 1);
  for (u32 k = 0; k < c->nweights; k++) {
    const mesh_param *w = main_param(mb, c->weight[k], s->g);
    in[k] = w->set ? w->lay : w->all_free != w->some_free ? (layout){0} : LAYOUT_FREE;
    stored[k] = w->stored;
  }
  s->in = in + c->nweights;
  for (u32 k = 0; k < c->ninputs; k++) {
    value v = c->input[k];
    s->in[k] = mb->stage_of[v] ? arriving(mb, v, s) : dealt(mb, v, s->g, true);
    if (mb->b.failed) return false;
  }
  u32 nres = c->noutputs + (s->gp ? s->gp->nsaved : 0);
  for (u32 k = 0; k < nres; k++)
    demand[k] = k < c->noutputs && mb->m->rets.v[0] != c->output[k] ? LAYOUT_SUMMED : LAYOUT_FREE;
  pack_range pk = {0, c->nweights};
  shard_call_of call = {s->gp ? s->gp->fwd : s->f, in, stored, demand,       s->g, &pk, 1,
                        s->gp ? s->gp->nsaved : 0, 0,  0,      own_of(mb, s)};
  if (!shard_function(mb->x, &call, &s->fwd)) return false;
  for (u32 k = 0; k < c->nweights; k++) {
    mesh_param *w = main_param(mb, c->weight[k], s->g);
    layout l = s->fwd.in[k].i == LAYOUT_FREE.i ? (layout){0} : s->fwd.in[k];
    if (!w->set) w->lay = l, w->stored = s->fwd.stored[k];
    w->set = true;
  }
  layout *out = NEWN(a, layout, c->noutputs + 1);
  for (u32 k = 0; k < c->noutputs; k++) out[k] = type_get(mb->p, func_result(mb->p, s->fwd.dst, k))->lay;
  s->out = out;
  return true;
}

static void take_weights(main_build *mb, const stage_build *s, u32 param, layout *in, bool *stored) {
  const stage_source *c = s->src;
  const mesh_param *w = param < c->nweights ? main_param(mb, c->weight[param], s->g) : NULL;
  *in = w ? w->lay : s->in[param - c->nweights];
  if (w) *stored = w->stored;
}

// Gradients arrive as the outputs left, but for time: of a value that is the same for all microbatches they
// are sums over time, and of a sum over time they are the same for all.
static void gradient_layouts(main_build *mb, u32 index) {
  stage_build *s = &mb->stage[index];
  space *sp = mb->p->sp;
  s->dout = arena_dup(mb->x->a, s->out, sizeof *s->out * s->src->noutputs);
  for (u32 k = 0; mb->time && k < s->src->noutputs; k++)
    if (layout_part_of(sp, s->out[k], mb->time) != RED_NONE)
      s->dout[k] = layout_without(sp, s->out[k], mb->time);
  for (u32 j = index + 1; mb->time && j < (s->replica + 1) * mb->nsegments; j++) {
    const stage_build *d = &mb->stage[j];
    for (u32 k = 0; d->gp && k < d->gp->ndx; k++) {
      value v = d->src->input[d->gp->dx[k] - d->src->nweights];
      if (main_maker(mb, d, v) != s) continue;
      layout dx = type_get(mb->p, func_result(mb->p, d->bwd.dst, k))->lay, *l = &s->dout[mb->out_of[v]];
      if (layout_part_of(sp, dx, mb->time) != RED_NONE) *l = layout_with_part(sp, *l, mb->time, RED_SUM);
    }
  }
}

static bool shard_backward(main_build *mb, stage_build *s) {
  const grad_pair *gp = s->gp;
  if (!gp) return true;
  arena *a = mb->x->a;
  gradient_layouts(mb, (u32)(s - mb->stage));
  u32 nacc = gp->wgt.i ? 0 : gp->nacc, n = gp->nneed + gp->nsaved + gp->ndy + (s->acc ? nacc : 0), at = 0;
  layout *in = NEWN(a, layout, n + 1);
  bool *stored = ZNEWN(a, bool, n + 1);
  for (u32 k = 0; k < gp->nneed; k++, at++) take_weights(mb, s, gp->need[k], &in[at], &stored[at]);
  if (gp->nsaved) {
    const type_info *t = type_get(mb->p, func_result(mb->p, s->fwd.dst, s->src->noutputs));
    for (u32 k = 0; k < gp->nsaved; k++) in[at++] = type_get(mb->p, t->elem[k])->lay;
  }
  for (u32 k = 0; k < gp->ndy; k++)
    in[at++] = mb->m->rets.v[0] == s->src->output[gp->dy[k]] ? (layout){0} : s->dout[gp->dy[k]];
  for (u32 k = 0; s->acc && k < nacc; k++) in[at++] = LAYOUT_FREE;
  u32 ncarry = gp->wgt.i ? gp->ncarry : 0;
  layout *demand = NEWN(a, layout, gp->ndx + nacc + ncarry + 1);
  for (u32 k = 0; k < gp->ndx + nacc + ncarry; k++) demand[k] = k < gp->ndx ? LAYOUT_SUMMED : LAYOUT_FREE;
  pack_range pk[3] = {
      {0, s->nneed_weights}, {gp->nneed, gp->nsaved}, {gp->nneed + gp->nsaved + gp->ndy, s->acc ? nacc : 0}};
  shard_call_of call = {
      gp->bwd,     in,          stored,       demand, s->g, pk, 3, gp->wgt.i ? ncarry : nacc,
      pk[2].first, pk[2].count, own_of(mb, s)};
  if (!shard_function(mb->x, &call, &s->bwd)) return false;
  s->acc_lay = NEWN(a, layout, gp->nacc + 1);
  if (!gp->wgt.i) {
    const type_info *t = nacc ? type_get(mb->p, func_result(mb->p, s->bwd.dst, gp->ndx)) : NULL;
    for (u32 k = 0; k < nacc; k++) s->acc_lay[k] = type_get(mb->p, t->elem[k])->lay;
    return true;
  }
  n = gp->nneed_w + ncarry + (s->acc ? gp->nacc : 0), at = 0;
  in = NEWN(a, layout, n + 1), stored = ZNEWN(a, bool, n + 1);
  u32 nw = 0;
  for (u32 k = 0; k < gp->nneed_w; k++, at++) {
    nw += gp->need_w[k] < s->src->nweights;
    take_weights(mb, s, gp->need_w[k], &in[at], &stored[at]);
  }
  const type_info *t = ncarry ? type_get(mb->p, func_result(mb->p, s->bwd.dst, gp->ndx)) : NULL;
  for (u32 k = 0; k < ncarry; k++) in[at++] = type_get(mb->p, t->elem[k])->lay;
  for (u32 k = 0; s->acc && k < gp->nacc; k++) in[at++] = LAYOUT_FREE;
  pack_range pw[3] = {{0, nw}, {gp->nneed_w, ncarry}, {gp->nneed_w + ncarry, s->acc ? gp->nacc : 0}};
  shard_call_of wcall = {gp->wgt, in,       stored,      NULL,        s->g,         pw,
                         3,       gp->nacc, pw[2].first, pw[2].count, own_of(mb, s)};
  if (!shard_function(mb->x, &wcall, &s->wgt)) return false;
  t = gp->nacc ? type_get(mb->p, func_result(mb->p, s->wgt.dst, 0)) : NULL;
  for (u32 k = 0; k < gp->nacc; k++) s->acc_lay[k] = type_get(mb->p, t->elem[k])->lay;
  return true;
}

// Coordinates that differ become subsets.
group main_union(main_build *mb, group a, group b) {
  space *sp = mb->p->sp;
  if (!a.i || a.i == b.i) return b;
  const group_info *x = group_get(sp, a), *y = group_get(sp, b);
  assert(x->m.i == y->m.i);
  group_axis fix[MESH_AXES];
  u32 n = 0;
  for (u32 i = 0; i < x->naxes; i++) {
    if (x->axis[i].at == y->axis[i].at && x->axis[i].at != -2) {
      if (x->axis[i].at >= 0) fix[n++] = x->axis[i];
      continue;
    }
    if (x->axis[i].at == -1 || y->axis[i].at == -1) continue;
    u32 size = axis_size(sp, x->axis[i].axis), k = 0;
    u32 *only = NEWN(mb->x->a, u32, size);
    for (u32 c = 0; c < size; c++) {
      const group_axis *s[2] = {&x->axis[i], &y->axis[i]};
      bool in = false;
      for (u32 j = 0; j < 2; j++) {
        if (s[j]->at == (int)c) in = true;
        for (u32 q = 0; s[j]->at == -2 && q < s[j]->nonly; q++) in |= s[j]->only[q] == c;
      }
      if (in) only[k++] = c;
    }
    if (k == 1)
      fix[n++] = (group_axis){.axis = x->axis[i].axis, .at = (int)only[0]};
    else if (k < size)
      fix[n++] = (group_axis){.axis = x->axis[i].axis, .at = -2, .nonly = k, .only = only};
  }
  return group_of(sp, x->m, fix, n);
}

static u64 free_axes(const space *sp, group g) {
  const group_info *gi = group_get(sp, g);
  u64 free = 0;
  for (u32 i = 0; i < gi->naxes; i++) free |= (u64)(gi->axis[i].at < 0) << gi->axis[i].axis;
  return free;
}

// Where every parameter lives: on all groups of the stages of one mesh that use it. Its layout there may only name
// axes that they all have.
static void make_param_groups(main_build *mb) {
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_source *c = mb->stage[i].src;
    const group own = mb->stage[i].g;
    const u64 free = free_axes(mb->p->sp, own);
    for (u32 k = 0; k < c->nweights + c->ninputs; k++) {
      value v = k < c->nweights ? c->weight[k] : c->input[k - c->nweights];
      if (mb->m->values.v[v].def) continue;
      mesh_param *x = mb->home[v - 1].g.i ? main_param(mb, v, own) : &mb->home[v - 1];
      if (!x) {
        x = vec_push(mb->x->a, &mb->copies);
        *x = (mesh_param){.next = mb->first_copy[v - 1]};
        mb->first_copy[v - 1] = mb->copies.n;
      }
      x->of = v;
      x->some_free |= free;
      x->all_free = x->g.i ? x->all_free & free : free;
      x->g = x->g.i ? main_union(mb, x->g, own) : own;
    }
  }
}

// Parameters that inactive stages use alone are left out of a probe.
static void find_active_params(main_build *mb) {
  mb->skip = ZNEWN(mb->x->a, bool, mb->m->nparams + 1);
  if (!mb->active) return;
  for (u32 i = 0; i < mb->m->nparams; i++) mb->skip[i] = true;
  for (u32 j = 0; j < mb->nstages; j++) {
    const stage_source *c = mb->stage[j].src;
    for (u32 k = 0; mb->active[j] && k < c->nweights + c->ninputs; k++) {
      value v = k < c->nweights ? c->weight[k] : c->input[k - c->nweights];
      if (!mb->m->values.v[v].def) mb->skip[v - 1] = false;
    }
  }
  for (u32 i = 0; i < mb->m->nparams; i++)
    if (!mb->home[i].g.i) mb->skip[i] = !mb->active[0];
}

static bool make_params(main_build *mb) {
  find_active_params(mb);
  for (u32 i = 0; i < mb->m->nparams; i++) {
    value v = i + 1;
    if (mb->skip[i]) continue;
    if (!mb->home[i].g.i)
      mb->home[i].g = mb->stage[0].g, mb->home[i].all_free = free_axes(mb->p->sp, mb->stage[0].g);
    if (!mb->home[i].set) mb->home[i].lay = dealt(mb, v, mb->home[i].g, false);
    if (mb->b.failed) return false;
    type t = type_tensor(mb->p, &val_type(mb->s, mb->m, v)->s, mb->home[i].lay, mb->home[i].g);
    mb->home[i].v = func_param(mb->p, mb->b.f, t, mb->m->values.v[v].name, mb->m->params.v[i].r);
    func_get(mb->p, mb->b.f)->params.v[mb->home[i].v - 1].host = main_weight_on_host(mb, v);
    if (mb->m->params.v[i].data) {
      *vec_push(mb->p->a, &mb->p->data) = mb->s->data.v[mb->m->params.v[i].data];
      func_get(mb->p, mb->b.f)->params.v[mb->home[i].v - 1].data = mb->p->data.n - 1; // a probe skips some
    }
  }
  for (u32 k = 0; k < mb->copies.n && !mb->b.failed; k++) {
    mesh_param *x = &mb->copies.v[k];
    if (!x->set && !mb->skip[x->of - 1]) x->lay = dealt(mb, x->of, x->g, false);
  }
  return !mb->b.failed;
}

// The layout of a weight for a mean over one of its dimensions.
static layout without_dim(space *sp, layout l, u32 dim) {
  layout_info to = *layout_get(sp, l);
  u32 n = 0;
  for (u32 i = 0; i < to.nsplit; i++) {
    lay_split x = to.split[i];
    if (x.dim == dim) continue;
    x.dim -= x.dim > dim;
    to.split[n++] = x;
  }
  to.nsplit = n;
  return layout_of(sp, &to);
}

// Optimizer states of every weight.
static void make_states(main_build *mb) {
  const plan *pn = mb->x->pn;
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < mb->m->nparams; i++) {
      optim_state st;
      if (mb->skip[i] || !main_trains(mb, i + 1)) continue;
      if (!optim_state_find(&pn->optim, &val_type(mb->s, mb->m, i + 1)->s, j, &st)) continue;
      layout l = without_dim(mb->p->sp, mb->home[i].lay, st.without);
      const group g = main_update_group(mb, i + 1);
      l = shard_storage(mb->x, l, &st.s, STORAGE_STATE, g);
      sym name = sym_with(mb->s->c, mb->m->values.v[i + 1].name, st.suffix);
      mb->state[j][i] = func_param(mb->p, mb->b.f, type_tensor(mb->p, &st.s, l, g), name, ROLE_STATE);
      func_get(mb->p, mb->b.f)->params.v[mb->state[j][i] - 1].host = main_on_host(mb, OFFLOAD_STATES);
    }
}

bool main_stages(main_build *mb) {
  if (!make_groups(mb) || !make_stages(mb)) return false;
  make_param_groups(mb);
  if (!make_grads(mb)) return false;
  for (u32 i = 0; i < mb->nstages; i++)
    if (!shard_forward(mb, &mb->stage[i])) return false;
  for (u32 i = mb->nstages; i-- > 0;)
    if (!shard_backward(mb, &mb->stage[i])) return false;
  return true;
}

bool main_params(main_build *mb) {
  if (!make_params(mb)) return false;
  main_servers(mb);
  if (!mb->no_ending) make_states(mb);
  return true;
}
