// stage_costs.c - what the tasks of stages take by themselves: one number each, for who looks for an order of them.
// Not what a line of them takes (pipe.c), which knows more: ranks of a place that are not ready at once.
#include "sim/stages.h"

// From when all is there that the task waits for to when all of its ranks have ended.
static i64 task_ps(const sim_stages *st, u32 kind, u32 stage) {
  const stage_task *t = &st->task[kind][st->pl.like[stage]];
  const u32 n = t->a ? (1 + t->nin) * st->nclass * (1 + t->nout) * st->nclass : 0;
  i64 ps = 0;
  for (u32 i = 0; i < n; i++) ps = MAX(ps, t->a[i]);
  return ps;
}

static i64 send_ps(const stage_send *x) {
  i64 ps = 0;
  for (u32 i = 0; i < x->n; i++) ps = MAX(ps, x->v[i].dur);
  return ps;
}

// The longest way of what the stage makes to one other stage, or of its gradients back. Values to one stage follow each
// other.
static i64 sends_ps(const sim_stages *st, u32 stage) {
  const sim_pipeline *pl = &st->pl;
  i64 most = 0;
  for (u32 k = 0; k < pl->nlinks; k++) {
    if (pl->link[k].from != stage) continue;
    i64 there = 0, back = 0;
    for (u32 j = 0; j < pl->nlinks; j++) {
      const sim_link *l = &pl->link[j];
      if (l->from != stage || l->to != pl->link[k].to) continue;
      there += send_ps(&st->send[0][l->like_from]);
      if (l->back) back += send_ps(&st->send[1][l->like_to]);
    }
    most = MAX(most, MAX(there, back));
  }
  return most;
}

static i64 net(const stage_bytes *const v[3], u32 turn, u32 cls) { return v[turn] ? v[turn][cls].net : 0; }

// What is there of a microbatch when its forward has ended and its results are sent, of what came to it as well. A probe of
// fewer than three microbatches says it of the first one, and what all share is in it.
static i64 activation_bytes(const sim_stages *st, u32 stage) {
  const sim_pipeline *pl = &st->pl;
  const u32 turn = sim_micro(pl, stage) > 2 ? 1 : 0;
  i64 most = 0;
  for (u32 c = 0; c < st->nclass; c++) {
    i64 bytes = net(st->task[TASK_F][pl->like[stage]].bytes, turn, c);
    for (u32 k = 0; k < pl->nlinks; k++) {
      const sim_link *l = &pl->link[k];
      if (l->from == stage) bytes += net(st->send[0][l->like_from].sender, turn, c);
      if (l->to == stage) bytes += net(st->send[0][l->like_to].receiver, turn, c);
    }
    most = MAX(most, bytes);
  }
  return most;
}

void sim_stages_costs(const sim_stages *st, sim_stage_cost *out) {
  const u32 n = st->pl.nstages / st->pl.nreplicas;
  for (u32 k = 0; k < n; k++) {
    out[k] = (sim_stage_cost){.send_ps = sends_ps(st, k), .activation_bytes = activation_bytes(st, k)};
    for (u32 kind = 0; kind < TASK_KINDS; kind++) out[k].task_ps[kind] = task_ps(st, kind, k);
  }
}
