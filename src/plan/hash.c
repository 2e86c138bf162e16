// hash.c - what a plan is, as one number: two plans of one source with the same number are the same program.
#include "plan/plan.h"

static u64 hash_name(u64 h, const ctx *c, sym s) {
  return hash_step(h, hash_bytes(sym_str(c, s), sym_len(c, s), 0));
}

static u64 hash_submesh(u64 h, const plan_submesh *p) {
  h = hash_step(hash_step(h, p->mesh), p->nfix);
  for (u32 i = 0; i < p->nfix; i++) h = hash_step(hash_step(h, p->fix[i].axis), p->fix[i].at);
  return h;
}

u64 plan_axis_hash(u64 h, const plan_axis *x) {
  h = hash_step(hash_step(h, x->size), (u64)x->temporal | (u64)(x->shares != NULL) << 1);
  for (u32 k = 0; x->shares && k < x->size; k++) h = hash_step(h, x->shares[k]);
  return h;
}

void plan_axis_key(arena *a, key_words *k, const plan_axis *x) {
  *vec_push(a, k) = (u64)x->size << 2 | (u64)x->temporal << 1 | (x->shares != NULL);
  for (u32 i = 0; x->shares && i < x->size; i++) *vec_push(a, k) = x->shares[i];
}

void plan_choices_key(arena *a, key_words *k, const plan *pn, u8 axis) {
  u64 seen = 0;
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (!t->instr || (axis && t->axis != axis)) continue;
    *vec_push(a, k) = (u64)t->fn.i << 32 | t->instr, *vec_push(a, k) = (u64)t->stride;
    *vec_push(a, k) = (u64)t->index << 32 | (u64)t->dim << 16 | (u64)t->axis << 8 | (u64)t->result << 2 |
                      (u64)t->weak << 1 | t->uneven;
    if (!(seen >> t->axis & 1)) plan_axis_key(a, k, &pn->axes[t->axis - 1]);
    seen |= (u64)1 << t->axis;
  }
}

static u64 hash_space(u64 h, const ctx *c, const plan *pn) {
  h = hash_step(hash_step(h, pn->naxes), pn->nmeshes);
  for (u32 i = 0; i < pn->naxes; i++) h = plan_axis_hash(hash_name(h, c, pn->axes[i].name), &pn->axes[i]);
  for (u32 i = 0; i < pn->nmeshes; i++) {
    const plan_mesh *m = &pn->meshes[i];
    h = hash_step(hash_step(hash_step(h, m->naxes), m->first), m->nranks);
    for (u32 k = 0; k < m->naxes; k++) h = hash_step(h, m->axis[k]);
    for (u32 k = 0; k < m->nranks; k++) h = hash_step(h, m->ranks[k]);
  }
  return hash_step(h, pn->time);
}

static u64 hash_trans(u64 h, const plan_trans *t) {
  h = hash_step(hash_step(hash_step(h, t->fn.i), t->instr), t->index);
  h = hash_step(hash_step(hash_step(h, t->dim), t->axis), (u64)t->stride);
  return hash_step(h, (u64)t->result | (u64)t->weak << 1 | (u64)t->uneven << 2);
}

static u64 hash_orders(u64 h, const plan *pn) {
  h = hash_step(h, pn->nreplicas);
  if (pn->train && sched_is_asynchronous(pn->made.row))
    h = hash_step(h, (u64)pn->made.row->weights << 32 | sched_update_group(pn->made.row, &pn->made.shape));
  for (u32 r = 0; r < pn->nreplicas; r++) {
    h = hash_step(h, pn->replicas[r].micro);
    for (u32 i = 0; pn->replicas[r].on && i < pn->nsegments; i++) h = hash_submesh(h, &pn->replicas[r].on[i]);
  }
  if (!pn->seqs) return hash_step(h, pn->made.key);
  h = hash_step(h, pn->nseqs);
  for (u32 i = 0; i < pn->nseqs; i++) {
    h = hash_step(h, pn->seqs[i].n);
    for (u32 k = 0; k < pn->seqs[i].n; k++) {
      const sched_task *t = &pn->seqs[i].v[k];
      h = hash_step(h, (u64)t->stage | (u64)t->kind << 16 | (u64)t->replica << 24 | (u64)t->mb << 32);
    }
  }
  return h;
}

static u64 hash_training(u64 h, const plan *pn) {
  const optim_opts *o = &pn->optim;
  const double x[] = {o->lr, o->momentum, o->beta1, o->beta2, o->eps, o->weight_decay};
  h = hash_step(hash_step(h, (u64)o->kind), o->master);
  h = hash_step(h, hash_bytes(x, sizeof x, 0));
  return hash_step(h, (u64)pn->keep_gradients | (u64)pn->input_gradients << 1);
}

u64 plan_hash_unordered(const ctx *c, const plan *pn) {
  u64 h = hash_step(hash_space(0, c, pn), pn->ntrans);
  for (u32 i = 0; i < pn->ntrans; i++) h = hash_trans(h, &pn->trans[i]);
  h = hash_step(h, pn->nsegments);
  for (u32 i = 0; i < pn->nsegments; i++) {
    h = hash_step(hash_step(h, pn->segments[i].from), pn->segments[i].to);
    h = hash_submesh(h, &pn->segments[i].on);
  }
  for (u32 k = 0; k < STORAGE_KINDS; k++) {
    h = hash_step(h, pn->nstorage[k]);
    for (u32 i = 0; i < pn->nstorage[k]; i++) h = hash_step(h, pn->storage[k][i]);
  }
  h = hash_step(h, pn->nrecompute);
  for (u32 i = 0; i < pn->nrecompute; i++)
    h = hash_step(hash_step(h, pn->recompute[i].fn.i), pn->recompute[i].instr);
  h = hash_step(hash_step(h, pn->train + 2 * pn->wide_gradients), pn->batchnorm_groups);
  h = hash_step(hash_step(h, pn->coshard), pn->fused_attention);
  h = hash_step(h, pn->offload | (u32)pn->prefetch << 8 | (u32)pn->host_update << 16);
  return pn->train ? hash_training(h, pn) : h;
}

u64 plan_hash_ordered(const ctx *c, const plan *pn, u64 unordered) {
  const u64 sends = hash_name(hash_orders(unordered, pn), c, pn->send_stream);
  return hash_u64(pn->sum_stream.i ? hash_name(sends, c, pn->sum_stream) : sends,
                  pn->send_channels + 8u * pn->rendezvous + 16u * pn->materialise);
}

u64 plan_hash(const ctx *c, const plan *pn) { return plan_hash_ordered(c, pn, plan_hash_unordered(c, pn)); }
