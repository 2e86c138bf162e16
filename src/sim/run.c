// run.c - a simulation from program to result: what is prepared, run and summed up, in order.
#include "sim/internal.h"

const char *mem_kind_name(mem_kind k) {
  static const char *const name[MEM_KINDS] = {"parameters",  "gradients", "optimizer state",
                                              "activations", "temporary", "communication"};
  return name[k];
}

// Ranks of all meshes; a program without a mesh has one. Group 0 of main is rank 0.
static void init_ranks(sim *s) {
  space *sp = s->p->sp;
  s->nranks = MAX(mesh_ranks(sp), 1u);
  bool *used = ZNEWN(s->a, bool, s->nranks);
  used[0] = !mesh_count(sp);
  for (u32 k = 1; k <= mesh_count(sp); k++) {
    const mesh_info *m = mesh_get(sp, (mesh){k});
    for (u32 j = 0; j < m->nranks; j++) used[m->ranks ? m->ranks[j] : m->first + j] = true;
  }
  for (u32 k = 0; k < s->nranks; k++) s->nused += used[k];
  s->used = used;
}

static void sum_up_classes(sim *s, const sim_graph *c, const i64 *x, sim_result *r) {
  u32 cells = s->nclasses * s->nstreams;
  i64 *end = ZNEWN(s->a, i64, cells), *busy = ZNEWN(s->a, i64, cells), *comm = ZNEWN(s->a, i64, cells);
  for (u32 k = 0; k < c->nclock; k++) {
    u32 cell = c->clock_class[k] * s->nstreams + c->clock_stream[k];
    end[cell] = x[c->port_out[k]];
    busy[cell] = c->busy[k];
    comm[cell] = c->comm[k];
    r->makespan_ps = MAX(r->makespan_ps, end[cell]);
  }
  r->end_ps = end;
  r->busy_ps = busy;
  r->comm_ps = comm;
  r->period_ps = r->makespan_ps;
  r->instructions = (u64)c->nodes;
}

static void list_classes(sim *s, sim_result *r) {
  r->nranks = s->nranks, r->nused = s->nused, r->used = s->used;
  r->nclasses = s->nclasses;
  r->nstreams = s->nstreams;
  r->class_of_rank = s->class_of_rank;
  r->cls = ZNEWN(s->a, sim_class, s->nclasses);
  for (u32 k = s->nranks; k-- > 0;) {
    sim_class *u = &r->cls[s->class_of_rank[k]];
    u->first_rank = k;
    u->nranks += s->used[k];
    u->stage = s->stage_of_rank[k];
  }
}

typedef struct {
  sim_sum busy, comm, idle;
} times;
static void add_times(times *t, i64 busy, i64 comm, i64 span) {
  t->busy += busy - comm, t->comm += comm, t->idle += span - busy;
}

static void sum_up_stages(sim *s, sim_result *r) {
  r->nstages = s->nstages;
  r->stage = ZNEWN(s->a, sim_stage, s->nstages);
  const i64 span = r->makespan_ps;
  sim_sum beside = 0;
  times all = {0}, *of = ZNEWN(s->a, times, s->nstages);
  for (u32 k = 0; k < s->nclasses; k++) {
    const sim_class *u = &r->cls[k];
    sim_stage *st = &r->stage[u->stage];
    st->nranks += u->nranks;
    st->peak_bytes = MAX(st->peak_bytes, u->peak_bytes);
    if (u->peak_bytes > r->cls[r->peak_class].peak_bytes) r->peak_class = k;
  }
  for (u32 k = 0; k < s->nranks; k++) {
    const u32 cell = s->class_of_rank[k] * s->nstreams;
    if (!s->used[k]) continue;
    add_times(&all, r->busy_ps[cell], r->comm_ps[cell], span);
    for (u32 j = 1; j < s->nstreams; j++) beside += r->comm_ps[cell + j];
    add_times(&of[s->stage_of_rank[k]], r->busy_ps[cell], r->comm_ps[cell], span);
  }
  for (u32 k = 0; k < s->nstages; k++) {
    sim_stage *st = &r->stage[k];
    st->busy = sim_mean_share(of[k].busy, span, st->nranks);
    st->comm = sim_mean_share(of[k].comm, span, st->nranks);
    st->bubble = sim_mean_share(of[k].idle, span, st->nranks);
  }
  r->utilisation = sim_mean_share(all.busy, span, s->nused);
  r->comm = sim_mean_share(all.comm, span, s->nused);
  r->bubble = sim_mean_share(all.idle, span, s->nused);
  r->beside = sim_mean_share(beside, span, s->nused);
  r->peak_bytes = r->cls[r->peak_class].peak_bytes;
}

static i64 over_bytes(const sim_result *r, const machine *m, u32 rank) {
  return r->cls[r->class_of_rank[rank]].peak_bytes - machine_kind_of(m, rank)->usable_bytes;
}

u32 sim_tightest(const sim_result *r, const machine *m) {
  u32 rank = 0;
  for (u32 k = 1; k < MIN(r->nranks, m->nranks); k++)
    if (over_bytes(r, m, k) > over_bytes(r, m, rank)) rank = k;
  return rank;
}

sim_host sim_host_memory(const sim_result *r, const machine *m) {
  sim_host worst = {0};
  for (u32 k = 0; k < MIN(r->nranks, m->nranks);) {
    const u32 node = m->dev[k].node;
    sim_host h = {.node = node, .usable_bytes = machine_host_usable(&m->node_kind[m->node[node]])};
    for (; k < MIN(r->nranks, m->nranks) && m->dev[k].node == node; k++)
      if (r->used[k]) h.ranks++, h.bytes += r->cls[r->class_of_rank[k]].host_peak_bytes;
    if (h.bytes && (!worst.bytes || h.bytes - h.usable_bytes > worst.bytes - worst.usable_bytes)) worst = h;
  }
  return worst;
}

i64 sim_over_bytes(const sim_result *r, const machine *m) {
  const sim_host h = sim_host_memory(r, m);
  const i64 over = over_bytes(r, m, sim_tightest(r, m));
  return h.bytes ? MAX(over, h.bytes - h.usable_bytes) : over;
}

static u32 price_by_cost_model(void *arg, const prog *p, const func_info *f, const instr *i, group g,
                               i64 *ps) {
  return cost_instr(arg, p, f, i, g, ps);
}

bool sim_open(sim *s, ctx *c, arena *a, const prog *p, cost_model *k, const sim_opts *o, bool want_path) {
  *s = (sim){.want_path = want_path,
             .c = c,
             .a = a,
             .tmp = arena_new(),
             .p = p,
             .main = func_get(p, p->main),
             .o = o,
             .cost = o->cost,
             .cost_arg = o->cost_arg};
  if (!ir_check_whole(p, "simulated")) return false;
  if (!s->cost) {
    s->cost = price_by_cost_model;
    s->cost_arg = k;
    s->intern = true;
  }
  s->round = o->round_bytes;
  for (u32 j = 0; k && !o->round_bytes && j < cost_model_machine(k)->nkinds; j++)
    s->round = MAX(s->round, cost_model_machine(k)->kind[j].alloc_bytes);
  if (s->round < 1) s->round = 512;
  s->nstreams = p->streams.n;
  init_ranks(s);
  return !k || machine_has_rank(c, cost_model_machine(k), s->nranks - 1, s->main->where);
}

bool sim_price(sim *s) {
  *vec_push(s->a, &s->events) = (event){0};
  *vec_push(s->a, &s->priced) = (priced){0};
  return price_program(s);
}

static void fold(sim *s) { fold_ranks(s, s->o->mode & SIM_FLAT_FOLDED); }

static bool fits_in_time(sim *s) {
  if (s->overflow)
    diag(s->c, E_LIMIT, func_get(s->p, s->p->main)->where,
         "the durations add up to more than 2^63 ps (106 days)");
  return !s->overflow;
}

const sim_graph *sim_graph_of(sim *s) { return sim_price(s) ? sim_graph_priced(s, NULL, NULL) : NULL; }

const sim_graph *sim_graph_priced(sim *s, const u8 *late, const u8 *want) {
  fold(s);
  const sim_graph *main = late ? graph_of_step(s, late, want) : graph_of_main(s, s->o->mode & SIM_COMPOSED);
  return fits_in_time(s) ? main : NULL;
}

// ---- entry points -----------------------------------------------------------------------------------
// Times, bytes and path of main. NULL: diagnostics.
static const sim_graph *simulate(sim *s, sim_result *r) {
  const bool composed = s->o->mode & SIM_COMPOSED;
  step_graph between = {0};
  if (!sim_price(s)) return NULL;
  fold(s);
  list_classes(s, r);
  if (!s->o->no_bytes) bytes_run(s, r);
  if (s->o->steady) between = steady_steps(s);
  // A step that others follow is one step, too
  const sim_graph *main = composed && between.graph ? between.graph : graph_of_main(s, composed);
  if (!fits_in_time(s)) return NULL;
  i64 *x = ZNEWN(s->tmp, i64, main->nslot);
  sim_composed(main, x, NEWN(s->tmp, i64, main->frame)); // where no callee has a map this is sim_flat
  sum_up_classes(s, main, x, r);
  sum_up_stages(s, r);
  if (s->o->critical) path_of(s, main, x, r);
  if (s->o->steady) steady_period(s, between.graph ? &between : &(step_graph){.graph = main}, r);
  return main;
}

// The pipeline is never empty between updates: as much as each one more takes, of a program that goes on.
static bool steady_updates(ctx *c, const prog *p, cost_model *k, const sim_opts *o, sim_result *r) {
  const sim_opts so = {
      .mode = o->mode, .bytes = o->bytes, .cost = o->cost, .cost_arg = o->cost_arg, .no_bytes = true};
  arena *tmp = arena_new();
  sim_result less;
  const bool ok = sim_run(c, tmp, p->shorter, k, &so, &less);
  if (ok) r->period_ps = (r->makespan_ps - less.makespan_ps) * p->updates;
  arena_free(tmp);
  return ok;
}

bool sim_run(ctx *c, arena *a, const prog *p, cost_model *k, const sim_opts *o, sim_result *r) {
  sim s;
  *r = (sim_result){0};
  const bool open = sim_open(&s, c, a, p, k, o, o->timeline || o->critical || o->split);
  const sim_graph *main = open ? simulate(&s, r) : NULL;
  if (main && o->split) split_time(&s, main, r);
  if (main && o->timeline) r->timeline = timeline_of(&s, main);
  arena_free(s.tmp);
  return main && (!o->steady || !p->shorter || steady_updates(c, p, k, o, r));
}
