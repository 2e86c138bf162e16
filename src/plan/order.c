// order.c - order: the sequences of all places merged into one main.
//
// Idea: every task takes one step of a common clock. At each step every place runs its next task if what it
// needs was made in an earlier step; then the results of the step travel. This is one linearisation of the
// plan; if no place can go on before all are done, the orders contain a cycle: the deadlock, reported with
// the tasks that wait.
#include "plan/main.h"

static const char *const task_letter[TASK_KINDS] = {[TASK_F] = "F", [TASK_B] = "B", [TASK_W] = "W"};

typedef struct {
  const task *v;
  u32 n, at;
} cursor;

// ---- the merge --------------------------------------------------------------------------------------------
typedef struct {
  u32 *done[TASK_KINDS];
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
      u32 want = 1u | (s->gp ? 2u : 0) | (s->gp && s->gp->wgt.i ? 1u << TASK_W : 0),
          miss = want & ~(u32)seen[(size_t)i * mb->K + m];
      if (!miss) continue;
      diag(c, E_PLAN, pn->order_at, "task %s%u.%u is in no sequence", task_letter[__builtin_ctz(miss)], i, m);
      diag_hint(c, "every segment runs every microbatch forward (F)%s once",
                s->gp ? s->gp->wgt.i ? ", backward (B) and for its weights (W)" : " and backward (B)" : "");
      return false;
    }
  return true;
}

static u8 kind_of(const main_build *mb, const task *t) {
  const grad_pair *gp = mb->seg[t->segment].gp;
  return t->kind == TASK_B && gp->wgt.i ? TASK_I : t->kind;
}

bool main_order(main_build *mb, arena *keep, u32 *count, const sim_order **out) {
  const plan *pn = mb->x->pn;
  arena *a = mb->x->a;
  VEC(sim_order) line = {0};
  if (!check_sequences(mb)) return false;
  cursor *cur = ZNEWN(a, cursor, pn->nseqs);
  const task **now = NEWN(a, const task *, pn->nseqs);
  finished fin;
  u32 all = 0;
  for (u32 k = 0; k < TASK_KINDS; k++) fin.done[k] = ZNEWN(a, u32, (size_t)mb->nseg * mb->K);
  for (u32 i = 0; i < pn->nseqs; i++)
    cur[i] = (cursor){pn->seqs[i].v, pn->seqs[i].n, 0}, all += pn->seqs[i].n;
  vec_reserve(keep, &line, 2 * all);
  for (u32 step = 0;; step++) {
    u32 n = 0, left = 0;
    task w;
    for (u32 i = 0; i < pn->nseqs; i++) {
      if (cur[i].at == cur[i].n) continue;
      left++;
      const task *t = &cur[i].v[cur[i].at];
      if (ready(mb, &fin, t, step, &w)) now[n++] = t, cur[i].at++;
    }
    if (!left) break;
    if (!n) {
      report_deadlock(mb, &fin, cur, pn->nseqs, step);
      return false;
    }
    for (u32 send = 0; send < 2; send++)
      for (u32 i = 0; i < n; i++)
        *vec_push(keep, &line) = (sim_order){send, kind_of(mb, now[i]), now[i]->segment, now[i]->mb};
    for (u32 i = 0; i < n; i++)
      fin.done[now[i]->kind][(size_t)now[i]->segment * mb->K + now[i]->mb] = step + 1;
  }
  *count = line.n, *out = line.v;
  return true;
}

bool main_tasks(main_build *mb) {
  const plan *pn = mb->x->pn;
  const sim_order *line;
  u32 n;
  emit_begin(mb);
  if (!main_order(mb, mb->x->a, &n, &line)) return false;
  // Room for what the tasks emit: two calls, pieces of inputs, and three steps for what moves either way.
  u32 calls = 0, args = 0;
  for (u32 i = 0; i < mb->nseg; i++)
    calls += 2 + 6 * mb->seg[i].nedges + mb->seg[i].c->ninputs, args += 16 + 2 * mb->seg[i].c->ninputs;
  func_info *out = func_get(mb->p, mb->b.f);
  vec_reserve(mb->p->a, &out->body, out->body.n + calls * mb->K);
  vec_reserve(mb->p->a, &out->values, out->values.n + (calls + 2 * mb->nseg) * mb->K);
  vec_reserve(mb->p->a, &out->opds, out->opds.n + args * mb->K);
  for (u32 i = 0; i < mb->nseg; i++) emit_before(mb, &mb->seg[i]);
  for (u32 k = 0; k < n && !mb->b.failed; k++) {
    seg *s = &mb->seg[line[k].stage];
    (line[k].send ? emit_sends : emit_task)(mb, s, (task_kind)line[k].task, line[k].mb);
  }
  mb->send_strm = pn->send_channels < 2 && pn->send_stream.i ? (u8)stream_of(mb->p, pn->send_stream).i : 0;
  return !mb->b.failed;
}
