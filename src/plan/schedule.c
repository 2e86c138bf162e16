// schedule.c - order: the sequences of all places as one schedule of the program's stages, checked and merged
// (sched/); then every task and send written out.
#include "plan/main.h"

// The graph of stages: who reads whom, and along which edges gradients come back. All replicas have the same.
static u32 graph_of(const main_build *mb, sched_edge *out, bool *forward) {
  u32 n = 0;
  for (u32 i = 0; i < mb->nsegments; i++) {
    const stage_build *s = &mb->stage[i];
    u32 first = n;
    forward[i] = !s->gp;
    for (u32 to = i + 1; to < mb->nsegments; to++) {
      bool reads = false, back = false;
      for (u32 e = 0; e < s->nedges; e++)
        if (s->edges[e].to == to) reads = true, back |= s->edges[e].dx != 0;
      if (reads) out[n++] = (sched_edge){(u16)i, (u16)to, !back};
    }
    assert(n - first <= s->nedges);
  }
  return n;
}

void main_graph(const main_build *mb, arena *a, plan_graph *g) {
  u16 *place = NEWN(a, u16, mb->nstages + 1);
  bool *forward = NEWN(a, bool, mb->nsegments + 1), any = false;
  u32 nedges = 0, *micro = NEWN(a, u32, mb->nreplicas);
  *g = (plan_graph){.nstages = mb->nsegments,
                    .nplaces = mb->nplaces,
                    .nmicro = mb->K,
                    .nreplicas = mb->nreplicas,
                    .micro = micro,
                    .train = mb->x->pn->train};
  for (u32 r = 0; r < mb->nreplicas; r++)
    micro[r] = mb->x->pn->nreplicas ? mb->x->pn->replicas[r].micro : mb->K;
  sched_places *at = NEWN(a, sched_places, mb->nstages + 1);
  bool wide = false;
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_build *s = &mb->stage[i];
    at[i] = (sched_places){s->on.n, arena_dup(a, s->on.v, s->on.n * sizeof *s->on.v)};
    place[i] = (u16)s->place, nedges += s->nedges;
    wide |= s->on.n > 1;
  }
  sched_edge *out = NEWN(a, sched_edge, nedges + 1);
  g->nedges = graph_of(mb, out, forward);
  for (u32 i = 0; i < mb->nsegments; i++) any |= g->train && forward[i], g->backward |= !forward[i];
  g->place = place, g->at = wide ? at : NULL, g->edge = out, g->forward = any ? forward : NULL;
}

// Stages that the loss does not depend on have no backward, whatever a policy wrote down for them.
static sched_seq only_needed(arena *a, const sched_seq *seq, const plan_graph *g) {
  sched_task *v = NEWN(a, sched_task, seq->n + 1);
  u32 n = 0;
  for (u32 k = 0; k < seq->n; k++) {
    const sched_task *t = &seq->v[k];
    if (t->kind == TASK_F || t->stage >= g->nstages || !g->forward[t->stage]) v[n++] = *t;
  }
  return (sched_seq){n, v};
}

static const sched *schedule_of(ctx *c, arena *a, const plan *pn, const plan_graph *g) {
  const sched_seq *given = pn->seqs;
  if (!given) {
    const sched *made =
        pn->made.file ? pn->made.file : sched_make(c, a, pn->made.row->name, &pn->made.shape, pn->order_at);
    if (!made) return NULL;
    given = plan_is_unrolled(pn) ? plan_unroll(a, pn, made) : made->seq;
  }
  sched_seq *seq = NEWN(a, sched_seq, pn->nseqs + 1);
  for (u32 p = 0; p < pn->nseqs; p++) seq[p] = g->forward ? only_needed(a, &given[p], g) : given[p];
  const sched *s = sched_of_replicas(a, g->nstages, pn->nseqs, g->nreplicas, g->micro, g->place, g->at, seq);
  return sched_with(a, s, g->nedges, g->edge, g->forward);
}

static bool check(ctx *c, const plan *pn, const plan_graph *g, const sched *s) {
  if (!sched_check(c, s, pn->order_at, pn->seq_at)) return false;
  if (g->backward == s->backward) return true;
  diag(c, E_PLAN, pn->order_at,
       g->backward ? "the plan trains, but no stage runs backward"
                   : "the plan does not train, but stages run backward");
  diag_hint(c, g->backward ? "every stage runs every microbatch forward (F) and backward (B, or I and W) once"
                           : "without `train`, list forwards (F) only");
  return false;
}

// The backward of a stage in two parts is two tasks, also where the schedule runs it whole.
void order_put(const sched *s, sim_order *v, u32 *n, const sched_task *t, bool send) {
  const bool whole = t->kind == TASK_B && s->split[t->stage];
  const u16 stage = (u16)(t->replica * s->nstages + t->stage);
  const u32 mb = sched_first(s, t->replica) + t->mb;
  if (send && t->kind == TASK_W) return;
  const bool parts = whole && !send;
  v[(*n)++] =
      (sim_order){.send = send, .whole = parts, .task = parts ? TASK_I : t->kind, .stage = stage, .mb = mb};
  if (parts) v[(*n)++] = (sim_order){.whole = true, .task = TASK_W, .stage = stage, .mb = mb};
}

// The tasks of one step, then what they send.
static u32 flowing_line(const sched *s, const sched_line *line, sim_order *order) {
  u32 n = 0;
  for (u32 k = 0, end; k < line->n; k = end) {
    for (end = k; end < line->n && line->v[end].step == line->v[k].step;) end++;
    for (u32 send = 0; send < 2; send++)
      for (u32 i = k; i < end; i++)
        order_put(s, order, &n, &s->seq[line->v[i].place].v[line->v[i].index], send);
  }
  return n;
}

// No fewer than order_put writes of all tasks.
static size_t order_room(const sched *s) {
  size_t n = 1;
  for (u32 p = 0; p < s->nplaces; p++)
    for (const sched_task *t = s->seq[p].v, *end = t + s->seq[p].n; t < end; t++)
      n += 1 + (t->kind != TASK_W) + (t->kind == TASK_B && s->split[t->stage]);
  return n;
}

// Are the stages where the rows of schedules have them, each with a backward if there is any? Then a row says
// every task once, on its place: nothing is left to check.
static bool as_rows_have_it(const plan *pn, const plan_graph *g) {
  const sched_shape *x = &pn->made.shape;
  bool same = !pn->seqs && !pn->made.file && !plan_unrolls(pn->made.row) && !g->forward &&
              g->nreplicas == 1 && g->backward == x->backward && g->nmicro == x->micro &&
              g->nplaces == x->places && (u64)x->places * x->chunks == g->nstages;
  for (u32 i = 0; same && i < g->nstages; i++)
    same = g->place[i] == sched_place(pn->made.row, g->nplaces, 0, i);
  return same;
}

// ---- what an order is called --------------------------------------------------------------------------------
const char *plan_schedule(const plan *pn) {
  return pn->made.row && pn->nseqs > 1 ? pn->made.row->name : NULL;
}

static const char *task_str(arena *a, const sched_seq *s, u32 i) {
  if (i >= s->n) return "nothing";
  strbuf b = {.a = a};
  plan_put_task(&b, &s->v[i]);
  return sb_str(&b);
}

// Where the plan's sequences are not those of s; NULL: nowhere.
static const char *first_difference(arena *a, const plan *pn, const sched_seq *seq, loc *at) {
  for (u32 p = 0; p < pn->nseqs; p++) {
    const sched_seq *x = &pn->seqs[p], *y = &seq[p];
    for (u32 i = 0; i < MAX(x->n, y->n); i++) {
      const sched_task *t = &x->v[i], *u = &y->v[i];
      if (i < x->n && i < y->n && t->stage == u->stage && t->kind == u->kind && t->mb == u->mb &&
          t->replica == u->replica)
        continue;
      *at = pn->seq_at[p];
      return arena_printf(a, "place %u runs %s as its task %u, not %s", p, task_str(a, x, i), i + 1,
                          task_str(a, y, i));
    }
  }
  return NULL;
}

const char *plan_name_schedule(ctx *c, arena *a, plan *pn, const sched_row *row, u32 grouped, loc *at) {
  arena *tmp = arena_new();
  const u32 before = diag_count(c), stages = pn->nsegments;
  const sched_shape form = {.places = pn->nseqs,
                            .chunks = plan_unrolls(row) ? row->chunks
                                      : pn->nseqs       ? stages / pn->nseqs
                                                        : 0,
                            .micro = pn->time ? pn->axes[pn->time - 1].size : 1,
                            .group = grouped,
                            .backward = pn->train};
  const bool divides = plan_unrolls(row) ? pn->nseqs > 1 : form.chunks && stages % pn->nseqs == 0;
  const sched *s = divides ? sched_make(c, tmp, row->name, &form, *at) : NULL;
  diag_truncate(c, before);
  const sched_seq *seq = s && plan_unrolls(row) ? plan_unroll(tmp, pn, s) : s ? s->seq : NULL;
  const char *why = s ? first_difference(a, pn, seq, at)
                      : arena_printf(a, "it has none of %u segments on %u places and %u microbatches%s",
                                     stages, pn->nseqs, form.micro, grouped ? " in such groups" : "");
  if (!why) pn->made.row = row, pn->made.shape = form;
  arena_free(tmp);
  return why;
}

// Two replicas, each with half of the microbatches; where a stage of one lies, the other one's lies on the same other
// place as that one's there.
bool plan_is_mirrored(const plan *pn) {
  const plan_replica *r = pn->replicas;
  if (pn->nreplicas != 2 || r[0].on || !r[1].on || r[0].micro != r[1].micro) return false;
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_submesh *x = &pn->segments[k].on, *y = &r[1].on[k];
    if (x->mesh != y->mesh || x->nfix != 1 || y->nfix != 1 || x->fix[0].axis != y->fix[0].axis ||
        x->fix[0].at == y->fix[0].at || x->mesh != pn->segments[0].on.mesh)
      return false;
    for (u32 j = 0; j < k; j++) {
      const u32 a = pn->segments[j].on.fix[0].at, b = r[1].on[j].fix[0].at, at = x->fix[0].at,
                to = y->fix[0].at;
      if ((at == a) != (to == b) || (at == b) != (to == a)) return false;
    }
  }
  return true;
}

static bool within(const plan_submesh *x, const plan_submesh *of) {
  if (x->mesh != of->mesh || x->nfix <= of->nfix) return false;
  for (u32 k = 0; k < of->nfix; k++) {
    u32 j = 0;
    while (j < x->nfix && (x->fix[j].axis != of->fix[k].axis || x->fix[j].at != of->fix[k].at)) j++;
    if (j == x->nfix) return false;
  }
  return true;
}

bool plan_lies_wide(const plan *pn) {
  for (u32 i = 0; i < pn->nsegments; i++)
    for (u32 k = 0; k < pn->nsegments; k++)
      if (within(&pn->segments[k].on, &pn->segments[i].on)) return true;
  return false;
}

bool plan_has_probe(const plan *pn) {
  const bool one_by_one = pn->nreplicas <= 1 && pn->nmeshes <= 1 && !plan_lies_wide(pn);
  return !pn->nstorage[STORAGE_SERVER] && !plan_update_group(pn) && !pn->offload &&
         (!pn->sum_stream.i || one_by_one);
}

bool plan_line(ctx *c, arena *a, const plan *pn, const plan_graph *g, u32 *count, const sim_order **out) {
  if (pn->nseqs != g->nplaces) {
    diag(c, E_PLAN, pn->order_at, "the plan has %u sequences for %u places", pn->nseqs, g->nplaces);
    return false;
  }
  arena *tmp = arena_new();
  const bool direct = as_rows_have_it(pn, g);
  const sched *s =
      direct ? sched_make_on(c, tmp, pn->made.row->name, &pn->made.shape, pn->order_at, g->nedges, g->edge)
             : schedule_of(c, tmp, pn, g);
  sched_line line;
  const sched_buffers buffers = {.rendezvous = pn->rendezvous};
  const bool runs = s && (direct || check(c, pn, g, s)),
             ok = runs && sched_merge(c, tmp, s, &buffers, pn->order_at, &line);
  size_t most = ok ? order_room(s) : 0;
  for (u32 i = 0; ok && pn->rendezvous && i < g->nedges; i++) most += 2 * (size_t)g->nmicro;
  sim_order *v = ok ? NEWN(a, sim_order, most) : NULL;
  *count = !ok ? 0 : pn->rendezvous ? blocking_line(tmp, s, &line, v) : flowing_line(s, &line, v);
  assert(*count <= most);
  *out = v;
  arena_free(tmp);
  return ok;
}

// What is emitted from now on is of a task or its sends; NULL: of none. A program of one task has nothing to tell.
static void begin_span(main_build *mb, const sim_order *of) {
  task_span x = {.from = func_get(mb->p, mb->b.f)->body.n};
  if (mb->nstages == 1 && mb->nmb == 1) return;
  if (of)
    x.microbatch = of->mb, x.stage = mb->stage[of->stage].segment,
    x.letter = sched_letter(of->whole ? TASK_B : (task_kind)of->task), x.send = of->send;
  *vec_push(mb->p->a, &mb->p->tasks) = x;
}

// The first microbatches alone, where a row says their order as well as that of all. Updates between tasks follow
// from all of them.
static const plan *cut_off(const main_build *mb, const plan *pn, plan_graph *g) {
  if (mb->nmb == mb->K || mb->nreplicas > 1 || !pn->made.row || pn->seqs || pn->made.file || mb->update_group)
    return pn;
  plan *own = arena_dup(mb->x->a, pn, sizeof *pn);
  own->made.shape.micro = mb->nmb;
  g->nmicro = mb->nmb, g->micro = arena_dup(mb->x->a, &mb->nmb, sizeof mb->nmb);
  return own;
}

// ---- layers ---------------------------------------------------------------------------------------------
// By origin. Of a stage that has the functions of one like it, their origins are the other one's.
static const u32 *layers_of_stage(main_build *mb, const stage_build *s, const u32 *by) {
  const stage_source *own = s->src, *like = own->like;
  if (!own->n || s->f.i == own->fwd.i) return by;
  u32 *of = arena_dup(mb->p->a, by, (mb->s->norigins + 1) * sizeof *by);
  for (u32 k = 0; k < own->n; k++) of[like->origin[k]] = by[own->origin[k]];
  return of;
}

static void number_param(main_build *mb, u32 *param, u32 n, value v, u32 layer) {
  if (v && v <= n && v <= func_get(mb->p, mb->b.f)->nparams) param[v - 1] = layer;
}

static void number_layers(main_build *mb) {
  arena *a = mb->x->a;
  const u32 *call = ir_layer_of_calls(a, mb->s), *weight = ir_layer_of_params(a, mb->s, call),
            n = func_get(mb->p, mb->b.f)->nparams;
  u32 *by = ZNEWN(mb->p->a, u32, mb->s->norigins + 1), *param = ZNEWN(mb->p->a, u32, n + 1);
  for (u32 i = 0; i < mb->m->body.n; i++) by[mb->m->body.v[i].origin] = call[i];
  by[0] = 0;
  const u32 **of = NEWN(mb->p->a, const u32 *, mb->nsegments + 1);
  for (u32 k = 0; k < mb->nsegments; k++) of[k] = by;
  for (u32 k = mb->nstages; k-- > 0;)
    of[mb->stage[k].segment] = layers_of_stage(mb, &mb->stage[k], of[mb->stage[k].segment]);
  for (u32 i = 0; i < mb->m->nparams; i++) {
    number_param(mb, param, n, mb->home[i].v, weight[i]);
    for (u32 j = 0; j < OPTIM_STATES; j++)
      if (mb->state[j]) number_param(mb, param, n, mb->state[j][i], weight[i]);
  }
  for (u32 k = 0; k < mb->copies.n; k++)
    number_param(mb, param, n, mb->copies.v[k].v, weight[mb->copies.v[k].of - 1]);
  layer_table *t = NEW(mb->p->a, layer_table);
  *t = (layer_table){mb->s->norigins, mb->nsegments, n, of, param};
  mb->p->layers = t;
}

bool main_tasks(main_build *mb) {
  const sim_order *line;
  u32 n;
  if (!mb->active) number_layers(mb); // a probe is not drawn
  emit_begin(mb);
  plan_graph g;
  main_graph(mb, mb->x->a, &g);
  const plan *pn = cut_off(mb, mb->x->pn, &g);
  if (!plan_line(mb->s->c, mb->x->a, pn, &g, &n, &line)) return false;
  // Room for what the tasks emit: two calls, pieces of inputs, and three steps for what moves either way.
  u32 calls = 0, args = 0;
  for (u32 i = 0; i < mb->nstages; i++)
    calls += 2 + 6 * mb->stage[i].nedges + mb->stage[i].src->ninputs,
        args += 16 + 2 * mb->stage[i].src->ninputs;
  func_info *out = func_get(mb->p, mb->b.f);
  vec_reserve(mb->p->a, &out->body, out->body.n + calls * mb->K);
  vec_reserve(mb->p->a, &out->values, out->values.n + (calls + 2 * mb->nstages) * mb->K);
  vec_reserve(mb->p->a, &out->opds, out->opds.n + args * mb->K);
  if (!main_updates_open(mb)) return false;
  for (u32 i = 0; i < mb->nstages; i++) emit_before(mb, &mb->stage[i]);
  for (u32 k = 0; k < n && !mb->b.failed; k++) {
    stage_build *s = &mb->stage[line[k].stage];
    if (line[k].mb >= mb->nmb) continue; // of a program that is cut off
    begin_span(mb, &line[k]);
    if (line[k].send)
      emit_sends(mb, s, (task_kind)line[k].task, line[k].mb, line[k].to);
    else
      emit_task(mb, s, (task_kind)line[k].task, line[k].mb);
    if (mb->update_group && line[k].send && line[k].task == TASK_B) {
      begin_span(mb, NULL);
      if (!main_update_stage(mb, s, line[k].mb)) return false;
    }
  }
  begin_span(mb, NULL);
  return !mb->b.failed;
}
