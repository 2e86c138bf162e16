// ending.c - what the tasks of a plan depend on, and what the end of a step does: sums of gradients, updates,
// results. Not what these are (emit.c, finish.c), nor what they cost (sim/stages.c, sim/ending.c).
//
// Idea: tasks read all of a plan but its order, its optimizer and how it stores states. main_params and
// main_finish read these two, the model, where the plan puts and stores what, and in which layouts the functions
// of stages leave gradients and results. All of that as words, numbers of one program replaced by what they stand
// for: where words are equal, so are the instructions. How many samples a microbatch has, what is computed again
// and in which parts backwards run shows in the tasks alone.
#include "plan/main.h"

typedef struct {
  arena *a;
  VEC(u32) w;
  const space *sp;          // of layouts
  u32 *layout_no, nlayouts; // by layout: its number, from 1, in order of occurrence
} words;

static void put(words *x, u32 word) { *vec_push(x->a, &x->w) = word; }

static void put_bytes(words *x, const void *p, size_t n) {
  const u32 k = (u32)((n + sizeof(u32) - 1) / sizeof(u32));
  u32 *w = vec_push_n(x->a, &x->w, 1 + k);
  w[k] = 0, w[0] = (u32)n; // the last word may be a part
  if (n) memcpy(w + 1, p, n);
}

static void put_i64(words *x, i64 v) { put(x, (u32)v), put(x, (u32)((u64)v >> 32)); }

static void put_pieces(words *x, u16 table) {
  const pieces_info *t = pieces_get(x->sp, (pieces){table});
  put(x, t->npieces), put_i64(x, t->extent);
  for (u32 k = 0; k <= t->npieces; k++) put(x, t->begin[k]);
  for (u32 k = 0; k < 2 * t->begin[t->npieces]; k++) put_i64(x, t->bound[k]);
}

static void put_layout(words *x, layout l) {
  u32 *no = &x->layout_no[l.i];
  const bool known = *no;
  if (!known) *no = ++x->nlayouts;
  put(x, *no);
  if (known) return;
  const layout_info *li = layout_get(x->sp, l);
  put(x, li->nsplit << 16 | li->npart);
  for (u32 k = 0; k < li->nsplit; k++) {
    const lay_split *s = &li->split[k];
    put(x, (u32)s->axis << 16 | (u32)s->dim << 8 | (s->table != 0)), put_i64(x, s->stride);
    if (s->table) put_pieces(x, s->table);
  }
  for (u32 k = 0; k < li->npart; k++) put(x, (u32)li->part[k].axis << 8 | li->part[k].red);
}

static void put_submesh(words *x, const plan_submesh *on) {
  put(x, on->mesh), put(x, on->nfix);
  for (u32 j = 0; j < on->nfix; j++) put(x, on->fix[j].axis), put(x, on->fix[j].at);
}

// time: the number of microbatches, as far as it matters.
static void put_space(words *x, const plan *pn, u32 time) {
  put(x, pn->naxes), put(x, pn->time);
  for (u32 k = 0; k < pn->naxes; k++) {
    const plan_axis *ax = &pn->axes[k];
    put(x, ax->name.i), put(x, ax->temporal), put(x, k + 1 == pn->time ? time : ax->size);
    put_bytes(x, ax->shares, ax->shares ? ax->size * sizeof *ax->shares : 0);
  }
  put(x, pn->nmeshes);
  for (u32 k = 0; k < pn->nmeshes; k++) {
    const plan_mesh *m = &pn->meshes[k];
    put_bytes(x, m->axis, m->naxes), put(x, m->first);
    put_bytes(x, m->ranks, m->ranks ? m->nranks * sizeof *m->ranks : 0);
  }
  put(x, pn->nsegments);
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *s = &pn->segments[k];
    put(x, s->from), put(x, s->to), put_submesh(x, &s->on);
  }
  put(x, pn->nreplicas);
  for (u32 r = 0; r < pn->nreplicas; r++) {
    put(x, MIN(pn->replicas[r].micro, time)), put(x, pn->replicas[r].on != NULL);
    for (u32 k = 0; pn->replicas[r].on && k < pn->nsegments; k++) put_submesh(x, &pn->replicas[r].on[k]);
  }
  put_bytes(x, pn->storage[STORAGE_WEIGHT], pn->nstorage[STORAGE_WEIGHT]);
  put_bytes(x, pn->storage[STORAGE_GRAD], pn->nstorage[STORAGE_GRAD]);
  put_bytes(x, pn->storage[STORAGE_SERVER], pn->nstorage[STORAGE_SERVER]);
  put(x, (u32)pn->wide_gradients << 3 | (u32)pn->train << 2 | (u32)pn->keep_gradients << 1 |
             pn->input_gradients);
  put(x, pn->batchnorm_groups), put(x, pn->coshard << 1 | pn->fused_attention), put(x, pn->send_stream.i),
      put(x, pn->send_channels);
  put(x, pn->materialise);
}

static void put_trans(words *x, const plan_trans *t, i64 stride) {
  put(x, t->fn.i), put(x, t->instr), put(x, t->index);
  put(x, (u32)t->dim << 16 | (u32)t->axis << 8 | (u32)t->result << 2 | (u32)t->weak << 1 | t->uneven);
  put_i64(x, stride);
}

u32 plan_tasks(arena *a, const plan *pn, const u32 **word) {
  words x = {.a = a};
  put_space(&x, pn, pn->time ? pn->axes[pn->time - 1].size : 0);
  put(&x, pn->ntrans), put(&x, pn->nrecompute);
  for (u32 k = 0; k < pn->ntrans; k++) put_trans(&x, &pn->trans[k], pn->trans[k].stride);
  for (u32 k = 0; k < pn->nrecompute; k++) put(&x, pn->recompute[k].fn.i), put(&x, pn->recompute[k].instr);
  *word = x.w.v;
  return x.w.n;
}

u32 plan_states(arena *a, const plan *pn, const u32 **word) {
  words x = {.a = a};
  put_bytes(&x, pn->storage[STORAGE_STATE], pn->nstorage[STORAGE_STATE]);
  put_bytes(&x, &pn->optim, sizeof pn->optim);
  *word = x.w.v;
  return x.w.n;
}

// The stride says which samples of an input a rank has, and that depends on how many a microbatch has. How many
// they are in all it does not change if the pieces are equal; nothing else of an input counts here.
static void put_dealt(words *x, const main_build *mb) {
  const plan *pn = mb->x->pn;
  for (u32 k = 0; k < pn->ntrans; k++) {
    const plan_trans *t = &pn->trans[k];
    if (t->instr || t->fn.i != mb->s->main.i) continue;
    const role r = mb->m->params.v[t->index].r;
    const bool equal = (r == ROLE_INPUT || r == ROLE_LABEL) && !t->uneven && !pn->axes[t->axis - 1].shares;
    put_trans(x, t, equal ? 0 : t->stride);
  }
}

// Gradients that no accumulator has (of one microbatch) are what the backward makes them: a piece of it.
u32 main_ending(main_build *mb, const u16 *alike, arena *a, const u32 **word) {
  const planner *asked = mb->x->asked;
  const space *sp = mb->p->sp;
  words x = {.a = mb->x->a, .sp = sp, .layout_no = ZNEWN(mb->x->a, u32, sp->layouts.n)};
  for (u32 i = 0; i < mb->nstages; i++)
    if (mb->stage[i].gp && !mb->stage[i].acc) return 0;
  put_bytes(&x, &asked, sizeof asked);            // the model
  put_space(&x, mb->x->pn, MIN(mb->K, 4u));       // up to three are in a probe
  put_bytes(&x, mb->x->axis, sizeof mb->x->axis); // in layouts
  put_dealt(&x, mb);
  put_bytes(&x, alike, mb->nplaces * sizeof *alike);
  for (u32 i = 0; i < mb->m->nparams; i++) {
    put(&x, mb->home[i].set);
    if (mb->home[i].set) put_layout(&x, mb->home[i].lay); // else as inputs are dealt out
    put(&x, mb->weight_more ? mb->weight_more[i] : 0);
  }
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_build *s = &mb->stage[i];
    put_bytes(&x, s->gp ? s->gp->acc : NULL, s->gp ? s->gp->nacc * sizeof *s->gp->acc : 0);
    for (u32 k = 0; s->gp && k < s->gp->nacc; k++) put_layout(&x, s->acc_lay[k]);
  }
  for (u32 k = 0; k < mb->m->rets.n; k++) {
    const u32 from = mb->stage_of[mb->m->rets.v[k]];
    put(&x, from);
    for (u32 r = 0; from && r < mb->nreplicas; r++)
      put_layout(&x, mb->stage[r * mb->nsegments + from - 1].out[mb->out_of[mb->m->rets.v[k]]]);
  }
  *word = arena_dup(a, x.w.v, x.w.n * sizeof *x.w.v);
  return x.w.n;
}
