// updates.c - updates between the tasks of an asynchronous schedule: which version of its stage's weights a task reads, and
// the update that makes the next one. Not the order (sched/), nor what an update is (finish.c).
//
// Idea: a version of the weights is a value of main like any other. It is alive from the update that makes it to the last
// task that reads it, so what a stage keeps is counted like activations. An update takes the sum of the microbatches
// since the one before it: a join over time that names these. Gradients are those of their part of the step's loss. Its call
// says the how-manieth of the step it is: an optimizer that corrects moments by their number counts updates, not steps.
//
// A weight that several stages read is updated once for all of them, when the last one's gradient is there: that of the first
// stage that reads it. So all of them read the version that this stage reads; a later one could wait for a newer version
// only by draining the pipeline.
#include "plan/main.h"

static type type_of(const main_build *mb, value v) { return func_get(mb->p, mb->b.f)->values.v[v].ty; }

static u32 nupdates(const main_build *mb) { return mb->nmb / mb->update_group; }

static bool makes_gradient(const stage_build *s, u32 weight) {
  for (u32 j = 0; s->gp && j < s->gp->nacc; j++)
    if (s->gp->acc[j] == weight) return true;
  return false;
}

// Who reads and who makes gradients of what; before any task.
static void find_readers(main_build *mb) {
  for (u32 i = 0; i < mb->nstages; i++) {
    stage_build *s = &mb->stage[i];
    const u32 n = nupdates(mb) + 1;
    s->fwd_of = ZNEWN(mb->x->a, value, n), s->bwd_of = ZNEWN(mb->x->a, value, n);
    s->weight_of = ZNEWN(mb->x->a, value, (size_t)n * s->src->nweights + 1);
    for (u32 k = 0; k < s->src->nweights; k++) {
      weight_updates *u = &mb->updates[s->src->weight[k] - 1];
      if (!u->nreaders++) u->first = i;
      u->last = i;
      u->sources += makes_gradient(s, k);
    }
  }
}

// A stage without a backward runs ahead of the updates that its tasks should read.
static bool first_has_backward(main_build *mb) {
  for (u32 i = 0; i < mb->m->nparams; i++) {
    const weight_updates *u = &mb->updates[i];
    if (!u->sources || mb->stage[u->first].gp) continue;
    const plan *pn = mb->x->pn;
    const instr *first = &mb->m->body.v[pn->segments[mb->stage[u->first].segment].from - 1];
    diag(mb->s->c, E_PLAN, pn->order_at.i ? pn->order_at : first->where,
         "schedule %s: stages %u and %u both read %s, and stage %u has no backward: it would run ahead of "
         "the updates",
         pn->made.row->name, u->first, u->last, sym_str(mb->s->c, mb->m->values.v[i + 1].name), u->first);
    diag_hint(mb->s->c, "use schedule=1f1b, or cuts that put both into one stage");
    return false;
  }
  return true;
}

bool main_updates_open(main_build *mb) {
  const u32 np = mb->m->nparams;
  mb->update_group = plan_update_group(mb->x->pn);
  if (!mb->update_group) return true;
  mb->now = ZNEWN(mb->x->a, value, np + 1), mb->last_grad = ZNEWN(mb->x->a, value, np + 1);
  mb->updates = ZNEWN(mb->x->a, weight_updates, np + 1);
  for (u32 i = 0; i < np; i++) mb->now[i] = mb->home[i].v;
  find_readers(mb);
  return first_has_backward(mb);
}

// ---- what tasks read ------------------------------------------------------------------------------------
static u32 version_at(const main_build *mb, const stage_build *s, u32 m) {
  return sched_version(mb->x->pn->made.row, &mb->x->pn->made.shape, s->segment, m);
}

// Updates of weight w before what the tasks of microbatch m read.
static u32 version_of(const main_build *mb, value w, u32 m) {
  const weight_updates *u = &mb->updates[w - 1];
  return u->sources ? version_at(mb, &mb->stage[u->first], m) : 0;
}

// Weight k of a stage, on its group, in a version that is the newest unless it was read or kept before.
static value weight_in(main_build *mb, stage_build *s, u32 k, u32 version) {
  const value w = s->src->weight[k];
  value *at = &s->weight_of[(size_t)version * s->src->nweights + k];
  if (*at) return *at;
  assert(mb->updates[w - 1].n == version);
  const mesh_param *on = main_param(mb, w, s->g);
  mb->b.coord = 0;
  const value v = on == &mb->home[w - 1] ? mb->now[w - 1] : main_move(mb, mb->now[w - 1], on->g, on->lay);
  return *at = mb->b.failed ? 0 : main_on_group(mb, v, s->g);
}

static value packed_weights(main_build *mb, stage_build *s, const u32 *which, u32 n, u32 m) {
  value *v = NEWN(mb->x->a, value, n + 1);
  for (u32 j = 0; j < n && !mb->b.failed; j++) {
    const u32 k = which ? which[j] : j;
    const value w = s->src->weight[k];
    v[j] = main_trains(mb, w) ? weight_in(mb, s, k, version_of(mb, w, m)) : main_param_here(mb, w, s->g);
  }
  return mb->b.failed ? 0 : main_packed(mb, v, n, s->g);
}

// Tasks with one version of the stage's own weights have one of those that it shares.
value main_fwd_weights(main_build *mb, stage_build *s, u32 m) {
  if (!mb->update_group) return s->fwd_weights;
  value *at = &s->fwd_of[version_at(mb, s, m)];
  return *at ? *at : (*at = packed_weights(mb, s, NULL, s->src->nweights, m));
}

value main_bwd_weights(main_build *mb, stage_build *s, u32 m) {
  if (!mb->update_group) return s->bwd_weights;
  value *at = &s->bwd_of[version_at(mb, s, m)];
  return *at ? *at : (*at = packed_weights(mb, s, s->gp->need, s->nneed_weights, m));
}

// ---- what is kept ---------------------------------------------------------------------------------------
static bool needed_backward(const stage_build *s, u32 weight) {
  for (u32 j = 0; j < s->nneed_weights; j++)
    if (s->gp->need[j] == weight) return true;
  return false;
}

// Is the newest version of the stage's weight k read by tasks to come? Versions rise with microbatches.
static bool read_later(const main_build *mb, const stage_build *s, u32 k) {
  const value w = s->src->weight[k];
  const u32 newest = mb->updates[w - 1].n, next = needed_backward(s, k) ? s->nbackwards : s->nforwards;
  return next < mb->nmb && version_of(mb, w, next) <= newest && newest <= version_of(mb, w, mb->nmb - 1);
}

// An update is in place, on all groups of the weight's mesh: what is read later is a copy from now on, where it is.
static void keep_version(main_build *mb, stage_build *s, u32 k) {
  const value w = s->src->weight[k];
  const u32 newest = mb->updates[w - 1].n;
  value *at = &s->weight_of[(size_t)newest * s->src->nweights + k];
  if (main_param(mb, w, s->g) != &mb->home[w - 1]) { // has its own
    if (read_later(mb, s, k)) weight_in(mb, s, k, newest);
    return;
  }
  if (read_later(mb, s, k)) {
    const attr by = attr_f(A_alpha, 1);
    const value v = weight_in(mb, s, k, newest);
    const type ty = type_of(mb, v);
    mb->b.g = s->g, mb->b.coord = 0, mb->b.flags = INSTR_UPDATE;
    *at = emit_res(mb->p, mb->b.f, emit(&mb->b, OP_scale, attrs_of(mb->p, &by, 1), &v, 1, &ty, 1));
    mb->b.flags = 0;
  } else {
    *at = 0;
  }
  for (u32 m = s->nbackwards; m < mb->nmb && version_of(mb, w, m) <= newest; m++) // packed anew with it
    if (version_of(mb, w, m) == newest) s->fwd_of[version_at(mb, s, m)] = s->bwd_of[version_at(mb, s, m)] = 0;
}

static void keep_versions(main_build *mb, value w) {
  const weight_updates *u = &mb->updates[w - 1];
  for (u32 i = u->first; i <= u->last; i++)
    for (u32 k = 0; k < mb->stage[i].src->nweights && !mb->b.failed; k++)
      if (mb->stage[i].src->weight[k] == w) keep_version(mb, &mb->stage[i], k);
}

// ---- updates --------------------------------------------------------------------------------------------
// What the group's microbatches add up to: complete, for what comes next.
static value summed(main_build *mb, const stage_build *s, value grad, u32 first) {
  prog *p = mb->p;
  const type_info t = *type_get(p, type_of(mb, grad));
  if (!mb->time || layout_part_of(p->sp, t.lay, mb->time) == RED_NONE) return grad;
  const attr at[3] = {attr_x(A_over, &mb->time, 1), attr_i(A_at, first), attr_i(A_count, mb->update_group)};
  const type to = type_tensor(p, &t.s, layout_without(p->sp, t.lay, mb->time), s->g);
  mb->b.g = s->g, mb->b.coord = 0;
  return emit_res(p, mb->b.f, emit(&mb->b, OP_join, attrs_of(p, at, 3), &grad, 1, &to, 1));
}

// A gradient of a weight with several readers, for update t from 0. The gradients of the others come later, until
// all are there: then their sum; else 0.
static value shared_gradient(main_build *mb, value w, u32 t, value grad) {
  weight_updates *u = &mb->updates[w - 1];
  if (!u->came) {
    u->came = ZNEWN(mb->x->a, value, (size_t)nupdates(mb) * u->sources);
    u->ncame = ZNEWN(mb->x->a, u32, nupdates(mb));
  }
  value *came = &u->came[(size_t)t * u->sources];
  came[u->ncame[t]++] = grad;
  return u->ncame[t] == u->sources ? main_joined_gradient(mb, w, came, u->sources) : 0;
}

// Update of n weights on one group, whose gradients are there.
static bool update(main_build *mb, const value *w, u32 n, const value *grad) {
  const u32 np = mb->m->nparams;
  value *neww = ZNEWN(mb->x->a, value, np + 1), *news[OPTIM_STATES];
  for (u32 j = 0; j < OPTIM_STATES; j++) news[j] = ZNEWN(mb->x->a, value, np + 1);
  for (u32 k = 0; k < n; k++) keep_versions(mb, w[k]);
  if (mb->b.failed || !main_update(mb, w, n, grad, neww, news, mb->last_grad)) return false;
  for (u32 k = 0; k < n; k++) {
    mb->now[w[k] - 1] = neww[w[k] - 1], mb->updates[w[k] - 1].n++;
    for (u32 j = 0; j < OPTIM_STATES; j++)
      if (news[j][w[k] - 1]) mb->state[j][w[k] - 1] = news[j][w[k] - 1];
  }
  return !mb->b.failed;
}

attrset main_update_number(const main_build *mb, value w) {
  if (!mb->updates || !mb->updates[w - 1].sources) return (attrset){0};
  const attr at = attr_i(A_update, mb->updates[w - 1].n + 1);
  return attrs_of(mb->p, &at, 1);
}

bool main_update_stage(main_build *mb, stage_build *s, u32 m) {
  s->nbackwards = m + 1;
  if ((m + 1) % mb->update_group || !s->gp || !s->gp->nacc) return true;
  prog *p = mb->p;
  arena *a = mb->x->a;
  const u32 n = s->gp->nacc, t = (m + 1) / mb->update_group - 1;
  const type_info of = *type_get(p, type_of(mb, s->grads));
  type *ty = arena_dup(a, of.elem, sizeof *of.elem * of.n);
  value *own = NEWN(a, value, n), *shared = NEWN(a, value, n), *grad = ZNEWN(a, value, mb->m->nparams + 1);
  u32 nown = 0, nshared = 0;
  mb->b.g = s->g, mb->b.coord = 0;
  const value r = emit_res(p, mb->b.f, emit(&mb->b, OP_unpack, (attrset){0}, &s->grads, 1, ty, of.n));
  for (u32 k = 0; k < n && !mb->b.failed; k++) {
    const value w = s->src->weight[s->gp->acc[k]], g = summed(mb, s, r + k, t * mb->update_group);
    const bool several = mb->updates[w - 1].nreaders > 1;
    grad[w - 1] = several ? shared_gradient(mb, w, t, g) : g;
    if (!several) own[nown++] = w;
    if (several && grad[w - 1]) shared[nshared++] = w;
  }
  if (mb->b.failed || (nown && !update(mb, own, nown, grad))) return false;
  for (u32 k = 0; k < nshared; k++)
    if (!update(mb, &shared[k], 1, grad)) return false;
  if (m + 1 < mb->nmb) emit_accumulators(mb, s);
  return !mb->b.failed;
}
