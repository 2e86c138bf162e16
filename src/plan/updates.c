// updates.c - updates between the tasks of an asynchronous schedule: which version of its stage's weights a task reads, and
// the update that makes the next one. Not the order (sched/), nor what an update is (finish.c).
//
// Idea: a version of the weights is a value of main like any other. It is alive from the update that makes it to the last
// task that reads it, so what a stage keeps is counted like activations. An update takes the sum of the microbatches
// since the one before it: a join over time that names these. Gradients are those of their part of the step's loss.
#include "plan/main.h"

static type type_of(const main_build *mb, value v) { return func_get(mb->p, mb->b.f)->values.v[v].ty; }

static const char *name_of(const main_build *mb, value w) {
  return sym_str(mb->s->c, mb->m->values.v[w].name);
}

// A weight that several stages read would have other versions on each.
static bool each_has_one_reader(main_build *mb) {
  u32 *reader = ZNEWN(mb->x->a, u32, mb->m->nparams + 1); // + 1
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_source *c = mb->stage[i].src;
    for (u32 k = 0; k < c->nweights; k++) {
      u32 *r = &reader[c->weight[k]];
      if (*r && main_trains(mb, c->weight[k])) {
        diag(mb->s->c, E_PLAN, mb->x->pn->order_at,
             "schedule %s: stages %u and %u both read %s, and would have different versions of it",
             mb->x->pn->made.row->name, *r - 1, i, name_of(mb, c->weight[k]));
        diag_hint(mb->s->c, "use schedule=1f1b, or a model that does not share weights between its ends");
        return false;
      }
      *r = i + 1;
    }
  }
  return true;
}

bool main_updates_open(main_build *mb) {
  const u32 np = mb->m->nparams;
  mb->update_group = plan_update_group(mb->x->pn);
  if (!mb->update_group) return true;
  mb->now = ZNEWN(mb->x->a, value, np + 1), mb->last_grad = ZNEWN(mb->x->a, value, np + 1);
  for (u32 i = 0; i < np; i++) mb->now[i] = mb->home[i].v;
  return each_has_one_reader(mb);
}

static u32 version_of(const main_build *mb, const stage_build *s, u32 m) {
  const plan *pn = mb->x->pn;
  return mb->update_group ? sched_version(pn->made.row, &pn->made.shape, s->segment, m) : 0;
}

value main_fwd_weights(const main_build *mb, const stage_build *s, u32 m) {
  return mb->update_group ? s->fwd_of[version_of(mb, s, m)] : s->fwd_weights;
}

value main_bwd_weights(const main_build *mb, const stage_build *s, u32 m) {
  return mb->update_group ? s->bwd_of[version_of(mb, s, m)] : s->bwd_weights;
}

void main_first_version(main_build *mb, stage_build *s) {
  if (!mb->update_group) return;
  const u32 n = mb->nmb / mb->update_group + 1;
  s->fwd_of = ZNEWN(mb->x->a, value, n), s->bwd_of = ZNEWN(mb->x->a, value, n);
  s->fwd_of[0] = s->fwd_weights, s->bwd_of[0] = s->bwd_weights;
}

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

static void take_weights(main_build *mb, stage_build *s, u32 version) {
  emit_weights(mb, s);
  s->fwd_of[version] = s->fwd_weights, s->bwd_of[version] = s->bwd_weights;
}

// Which of the stage's weights will tasks after the backward of m read in the version that is the newest now? Versions rise
// with microbatches. Returns how many; they come first in w.
static u32 read_later(const main_build *mb, const stage_build *s, u32 m, value *w, u32 n) {
  const u32 newest = (m + 1) / mb->update_group - 1;
  if (m + 1 == mb->nmb || version_of(mb, s, m + 1) > newest || newest > version_of(mb, s, mb->nmb - 1))
    return 0;
  if (s->nforwards < mb->nmb && version_of(mb, s, s->nforwards) <= newest) return n;
  u32 some = 0; // by backwards alone
  for (u32 k = 0; k < n; k++)
    for (u32 j = 0; j < s->gp->nneed; j++)
      if (s->gp->need[j] < s->src->nweights && s->src->weight[s->gp->need[j]] == w[k]) {
        const value x = w[some];
        w[some++] = w[k], w[k] = x;
        break;
      }
  return some;
}

// An update is in place: what is read later is a copy from now on.
static void keep_version(main_build *mb, stage_build *s, const value *w, u32 n, u32 version) {
  const attr by = attr_f(A_alpha, 1);
  value *newest = NEWN(mb->x->a, value, n + 1);
  for (u32 k = 0; k < n; k++) {
    value *now = &mb->now[w[k] - 1];
    const type ty = type_of(mb, newest[k] = *now);
    mb->b.g = s->g, mb->b.coord = 0, mb->b.flags = INSTR_UPDATE;
    *now = emit_res(mb->p, mb->b.f, emit(&mb->b, OP_scale, attrs_of(mb->p, &by, 1), now, 1, &ty, 1));
    mb->b.flags = 0;
  }
  take_weights(mb, s, version);
  for (u32 k = 0; k < n; k++) mb->now[w[k] - 1] = newest[k];
}

bool main_update_stage(main_build *mb, stage_build *s, u32 m) {
  if (!mb->update_group || (m + 1) % mb->update_group || !s->gp || !s->gp->nacc) return true;
  prog *p = mb->p;
  arena *a = mb->x->a;
  const u32 np = mb->m->nparams, n = s->gp->nacc, next = (m + 1) / mb->update_group;
  const type_info t = *type_get(p, type_of(mb, s->grads));
  type *ty = arena_dup(a, t.elem, sizeof *t.elem * t.n);
  value *w = NEWN(a, value, n), *grad = ZNEWN(a, value, np + 1), *neww = ZNEWN(a, value, np + 1),
        *news[OPTIM_STATES];
  mb->b.g = s->g, mb->b.coord = 0;
  const value r = emit_res(p, mb->b.f, emit(&mb->b, OP_unpack, (attrset){0}, &s->grads, 1, ty, t.n));
  for (u32 k = 0; k < n; k++) {
    w[k] = s->src->weight[s->gp->acc[k]];
    grad[w[k] - 1] = summed(mb, s, r + k, m + 1 - mb->update_group);
  }
  value *kept = arena_dup(a, w, n * sizeof *w);
  const u32 nkept = read_later(mb, s, m, kept, n);
  if (nkept) keep_version(mb, s, kept, nkept, next - 1);
  for (u32 j = 0; j < OPTIM_STATES; j++) news[j] = ZNEWN(a, value, np + 1);
  if (mb->b.failed || !main_update(mb, w, n, grad, neww, news, mb->last_grad)) return false;
  for (u32 k = 0; k < n; k++) {
    mb->now[w[k] - 1] = neww[w[k] - 1];
    for (u32 j = 0; j < OPTIM_STATES; j++)
      if (news[j][w[k] - 1]) mb->state[j][w[k] - 1] = news[j][w[k] - 1];
  }
  if (m + 1 == mb->nmb) return !mb->b.failed;
  take_weights(mb, s, next);
  emit_accumulators(mb, s);
  return !mb->b.failed;
}
