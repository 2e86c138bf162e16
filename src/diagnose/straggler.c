// straggler.c - a pipelined job from the timeline of its operations: which steps are alike, what every operation took
// without waiting, what it would ideally take; and what steps take with other durations. Not what waits for what
// (straggler_graph.c).
//
// Idea: workers and steps do the same, so a step is one graph that is made once, and what differs is its durations. A
// communication takes from the moment at which its last member is there; what its members spend before is waiting, and
// follows from the graph. Ideal is what an operation takes on average over workers, steps and microbatches: the mean
// of computation, which has to be done by somebody; the median of communication, whose long ones are faults.
#include "diagnose/straggler_making.h"
#include "sim/sim.h"
#include <stdlib.h>

enum { CHUNKS = 256 }; // of a worker: more is a mistake of the file

const straggler_type_row straggler_types[STRAGGLER_TYPES] = {
#define OPERATION(id, name, is, flags, comm, over) {name, comm, (flags)&TRACE_COMM, STRAGGLER_OVER_##over},
#include "trace/straggler.def"
#undef OPERATION
};

bool straggler_unfit(const straggler_making *m, const char *fmt, ...) {
  va_list ap;
  char text[256];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(m->c, E_TRACE, loc_node(m->c, m->file, (sym){0}, (sym){0}), "%s", text);
  return false;
}

// ---- events of steps ------------------------------------------------------------------------------------
typedef struct {
  u32 step, worker, type, event;
  i64 start;
} item;
typedef struct {
  u32 from, to; // of the items
  u32 step;
  u64 form; // hash of what its operations are
} range;

static int by_operation(const void *x, const void *y) {
  const item *a = x, *b = y;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (a->worker != b->worker) return a->worker < b->worker ? -1 : 1;
  if (a->type != b->type) return a->type < b->type ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

static u32 type_of(const char *name) {
  for (u32 k = 0; k < STRAGGLER_TYPES; k++)
    if (!strcmp(straggler_types[k].name, name)) return k;
  return TRACE_NONE;
}

// Workers by place; false: the timeline lacks one.
static bool find_workers(straggler_making *m) {
  straggler *s = m->s;
  const trace *t = m->t;
  for (u32 k = 0; k < t->processes.n; k++) {
    if (!t->processes.v[k].placed) continue;
    s->ndata = MAX(s->ndata, t->processes.v[k].data + 1);
    s->nstages = MAX(s->nstages, t->processes.v[k].stage + 1);
  }
  if (!s->ndata) return straggler_unfit(m, "it does not say which stage of a pipeline its workers are");
  if ((u64)s->ndata * s->nstages > t->processes.n)
    return straggler_unfit(m, "%u workers of %u data ranks x %u stages are recorded", t->processes.n,
                           s->ndata, s->nstages);
  s->nworkers = s->ndata * s->nstages;
  straggler_worker *w = NEWN(m->a, straggler_worker, s->nworkers);
  for (u32 k = 0; k < s->nworkers; k++)
    w[k] = (straggler_worker){.rank = TRACE_NONE, .data = k % s->ndata, .stage = k / s->ndata};
  for (u32 k = 0; k < t->processes.n; k++) {
    const trace_process *p = &t->processes.v[k];
    if (p->placed)
      w[p->stage * s->ndata + p->data].rank = MIN(w[p->stage * s->ndata + p->data].rank, p->rank);
  }
  for (u32 k = 0; k < s->nworkers; k++)
    if (w[k].rank == TRACE_NONE)
      return straggler_unfit(m, "stage %u of data rank %u is not recorded", w[k].stage, w[k].data);
  s->worker = w;
  if (t->processes.n > s->nworkers)
    diag(m->c, W_IGNORED, loc_node(m->c, m->file, (sym){0}, (sym){0}),
         "%u tensor ranks are left out: the first of a worker stands for all", t->processes.n - s->nworkers);
  return true;
}

// Of several tensor ranks of a worker the first is used.
static u32 worker_of(const straggler_making *m, u32 event) {
  const trace_process *p = trace_process_of(m->t, event);
  const u32 w = p->stage * m->s->ndata + p->data;
  return p->placed && m->s->worker[w].rank == p->rank ? w : TRACE_NONE;
}

static u32 collect(straggler_making *m, const number_set *steps, item *out) {
  const trace *t = m->t;
  u32 *type_at = NEWN(m->tmp, u32, t->names.n + 1), n = 0, strange = TRACE_NONE, others = 0;
  for (u32 k = 0; k < t->names.n; k++) type_at[k] = type_of(sym_str(m->c, t->names.v[k]));
  for (u32 e = 0; e < t->n; e++) {
    if (t->step[e] == TRACE_NONE || t->dur_ps[e] < 0 || !number_set_has(steps, t->step[e])) continue;
    const u32 w = worker_of(m, e), what = type_at[t->name[e]];
    if (w == TRACE_NONE) continue;
    if (what == TRACE_NONE)
      strange = e, others++;
    else
      out[n++] = (item){.step = t->step[e], .worker = w, .type = what, .event = e, .start = t->start_ps[e]};
  }
  if (others)
    diag(m->c, W_IGNORED, loc_node(m->c, m->file, (sym){0}, (sym){0}),
         "%u operations are left out, such as %s: nothing is known of what waits for them", others,
         sym_str(m->c, trace_name(t, strange)));
  if (n) qsort(out, n, sizeof *out, by_operation);
  return n;
}

// How many operations of every type a worker has, and in which order its forward and backward computation comes.
static u64 form_of(const item *x, u32 n) {
  u64 h = n;
  for (u32 k = 0; k < n;) {
    u32 at[STRAGGLER_TYPES + 1] = {k};
    const u32 w = x[k].worker;
    for (u32 ty = 0; ty < STRAGGLER_TYPES; ty++) {
      u32 end = at[ty];
      while (end < n && x[end].worker == w && x[end].type == ty) end++;
      at[ty + 1] = end;
      h = hash_step(h, end - at[ty]);
    }
    u32 f = at[STRAGGLER_FORWARD], b = at[STRAGGLER_BACKWARD];
    while (f < at[STRAGGLER_FORWARD + 1] || b < at[STRAGGLER_BACKWARD + 1]) {
      const bool first =
          b == at[STRAGGLER_BACKWARD + 1] || (f < at[STRAGGLER_FORWARD + 1] && x[f].start <= x[b].start);
      h = hash_step(h, first ? 1 : 2);
      if (first)
        f++;
      else
        b++;
    }
    h = hash_step(h, w);
    k = at[STRAGGLER_TYPES];
  }
  return hash_u64(h, 0);
}

// The steps of the form that most have; of several forms that of the first.
static u32 alike(const item *x, u32 n, range *step) {
  u32 nsteps = 0, best = 0, most = 0;
  for (u32 k = 0, end; k < n; k = end) {
    for (end = k; end < n && x[end].step == x[k].step;) end++;
    step[nsteps++] = (range){.from = k, .to = end, .step = x[k].step, .form = form_of(x + k, end - k)};
  }
  for (u32 k = 0; k < nsteps; k++) {
    u32 same = 0;
    for (u32 i = 0; i < nsteps; i++) same += step[i].form == step[k].form;
    if (same > most) most = same, best = k;
  }
  const u64 form = nsteps ? step[best].form : 0;
  u32 kept = 0;
  for (u32 k = 0; k < nsteps; k++)
    if (step[k].form == form) step[kept++] = step[k];
  return kept;
}

static bool find_steps(straggler_making *m, const number_set *steps) {
  const trace *t = m->t;
  straggler *s = m->s;
  item *x = NEWN(m->tmp, item, t->n + 1);
  const u32 n = collect(m, steps, x);
  if (!n) {
    straggler_unfit(m, steps->n ? "it has no operation of these steps" : "it has no operation of a step");
    u32 least = TRACE_NONE, most = 0;
    for (u32 e = 0; e < t->n; e++)
      if (t->step[e] != TRACE_NONE) least = MIN(least, t->step[e]), most = MAX(most, t->step[e]);
    if (least != TRACE_NONE) diag_hint(m->c, "its steps go from %u to %u", least, most);
    return false;
  }
  u32 distinct = 1;
  for (u32 k = 1; k < n; k++) distinct += x[k].step != x[k - 1].step;
  range *r = NEWN(m->tmp, range, distinct);
  s->nsteps = alike(x, n, r), s->left_out = distinct - s->nsteps;
  m->nops = s->nops = r[0].to - r[0].from;
  m->op = NEWN(m->tmp, straggler_node, m->nops);
  m->first = ZNEWN(m->tmp, u32, (size_t)s->nworkers * STRAGGLER_TYPES + 1);
  u32 *step = NEWN(m->a, u32, s->nsteps), *events = NEWN(m->tmp, u32, (size_t)s->nsteps * m->nops);
  i64 *span = NEWN(m->a, i64, s->nsteps);
  for (u32 i = 0; i < s->nsteps; i++) {
    i64 from = INT64_MAX, to = INT64_MIN;
    step[i] = r[i].step;
    for (u32 k = 0; k < m->nops; k++) {
      const u32 e = events[(size_t)i * m->nops + k] = x[r[i].from + k].event;
      from = MIN(from, t->start_ps[e]), to = MAX(to, t->start_ps[e] + t->dur_ps[e]);
    }
    span[i] = to - from;
  }
  for (u32 k = 0; k < m->nops; k++) {
    const item *o = &x[r[0].from + k];
    const u32 slot = o->worker * STRAGGLER_TYPES + o->type;
    m->op[k] =
        (straggler_node){.worker = o->worker,
                         .type = (u8)o->type,
                         .seq = m->first[slot + 1],
                         .microbatch = o->type <= STRAGGLER_BACKWARD ? t->microbatch[o->event] : TRACE_NONE,
                         .chunk = t->chunk[o->event]};
    m->first[slot + 1]++;
    s->count[o->type]++;
    if (o->type > STRAGGLER_BACKWARD) continue;
    const u32 chunk = m->op[k].chunk, mb = m->op[k].microbatch;
    if (chunk != TRACE_NONE && chunk >= CHUNKS)
      return straggler_unfit(m, "model chunk %u of a worker", chunk);
    if (mb != TRACE_NONE && mb >= m->nops)
      return straggler_unfit(m, "microbatch %u of a step of %u operations", mb, m->nops);
    if (chunk != TRACE_NONE) m->nchunks = MAX(m->nchunks, chunk + 1);
  }
  for (u32 k = 0; k < s->nworkers * STRAGGLER_TYPES; k++) m->first[k + 1] += m->first[k];
  m->nchunks = MAX(m->nchunks, 1);
  s->step = step, s->span_ps = span, m->events = events;
  return true;
}

// ---- durations ------------------------------------------------------------------------------------------
static bool set_recorded(straggler_making *m) {
  straggler *s = m->s;
  const trace *t = m->t;
  i64 *dur = ZNEWN(m->a, i64, (size_t)s->nsteps * s->n), *there = NEWN(m->tmp, i64, m->ngroups + 1);
  for (u32 i = 0; i < s->nsteps; i++) {
    const u32 *e = m->events + (size_t)i * m->nops;
    for (u32 g = 0; g < m->ngroups; g++) there[g] = INT64_MIN;
    for (u32 k = 0; k < m->nops; k++)
      if (m->group[k] != TRACE_NONE) there[m->group[k]] = MAX(there[m->group[k]], t->start_ps[e[k]]);
    for (u32 k = 0; k < m->nops; k++) {
      i64 d = t->dur_ps[e[k]];
      if (m->group[k] != TRACE_NONE) d = MAX(t->start_ps[e[k]] - there[m->group[k]] + d, 0);
      if (d > straggler_longest(s))
        return straggler_unfit(m, "an operation of step %u takes days", s->step[i]);
      dur[(size_t)i * s->n + m->node[k]] = d;
    }
  }
  s->recorded_ps = dur;
  return true;
}

static void set_ideal(straggler_making *m) {
  straggler *s = m->s;
  i64 *ideal = ZNEWN(m->a, i64, s->n), *median = ZNEWN(m->a, i64, s->n);
  i64 *all = NEWN(m->tmp, i64, (size_t)s->nsteps * m->nops);
  for (u32 ty = 0; ty < STRAGGLER_TYPES; ty++) {
    size_t n = 0;
    sim_sum sum = 0;
    for (u32 i = 0; i < s->nsteps; i++)
      for (u32 k = 0; k < s->n; k++)
        if (s->node[k].worker != TRACE_NONE && s->node[k].type == ty)
          sum += all[n++] = s->recorded_ps[(size_t)i * s->n + k];
    if (!n) continue;
    qsort(all, n, sizeof *all, ascending_i64);
    const i64 middle = (all[(n - 1) / 2] + all[n / 2]) / 2, mean = (i64)((sum + (sim_sum)n / 2) / (sim_sum)n);
    for (u32 k = 0; k < s->n; k++)
      if (s->node[k].worker != TRACE_NONE && s->node[k].type == ty)
        median[k] = middle, ideal[k] = straggler_types[ty].comm ? middle : mean;
  }
  s->ideal_ps = ideal, s->median_ps = median;
}

// ---- all of it ------------------------------------------------------------------------------------------
straggler *straggler_new(ctx *c, arena *a, const trace *t, sym file, const number_set *steps) {
  static const number_set all;
  straggler_making m = {.c = c, .a = a, .tmp = arena_new(), .file = file, .t = t, .s = NEW(a, straggler)};
  const bool ok =
      find_workers(&m) && find_steps(&m, steps ? steps : &all) && straggler_link(&m) && set_recorded(&m);
  if (ok) {
    set_ideal(&m);
    for (u32 k = 0; k < m.s->n; k++) {
      const u32 mb = m.s->node[k].microbatch;
      if (m.s->node[k].worker != TRACE_NONE && mb != TRACE_NONE) m.s->nmicro = MAX(m.s->nmicro, mb + 1);
    }
  }
  arena_free(m.tmp);
  return ok ? m.s : NULL;
}

job_kind job_kind_of(job *j) {
  const job_file *pipeline = NULL, *other = NULL;
  for (u32 k = j->n; k-- > 0;)
    *(j->file[k].format == TRACE_FORMAT_straggler ? &pipeline : &other) = &j->file[k];
  if (!pipeline || !other) return pipeline ? JOB_PIPELINE : JOB_KERNELS;
  diag(j->c, E_TRACE, loc_node(j->c, sym_of(j->c, pipeline->path), (sym){0}, (sym){0}),
       "this is the timeline of a whole pipelined job, and %s is of %s: no question takes both", other->path,
       trace_format_rows[other->format].name);
  diag_hint(j->c, "name files of one kind, such as %s alone", pipeline->path);
  return JOB_MIXED;
}

straggler *straggler_of_job(job *j, arena *a, const char *steps) {
  number_set set;
  assert(job_kind_of(j) == JOB_PIPELINE);
  if (!number_set_parse(j->c, a, steps, &set)) return NULL;
  if (j->n > 1) {
    diag(j->c, E_TRACE, loc_node(j->c, sym_of(j->c, j->file[1].path), (sym){0}, (sym){0}),
         "%u timelines: one has all workers of a job", j->n);
    diag_hint(j->c, "name one of them, such as %s", j->file[0].path);
    return NULL;
  }
  const trace *t = job_load(j, 0, 0);
  straggler *s = t ? straggler_new(j->c, a, t, sym_of(j->c, j->file[0].path), &set) : NULL;
  if (t) job_unload(j, 0);
  return s;
}

void straggler_replay(const straggler *s, const i64 *dur_ps, i64 *step_ps) {
  sim_graph g = *s->graph;
  i64 *x = base_malloc(g.nslot * sizeof *x);
  for (u32 i = 0; i < s->nsteps; i++) {
    g.dur = dur_ps + (size_t)i * s->n;
    sim_flat(&g, x, NULL);
    step_ps[i] = x[s->n];
  }
  free(x);
}

double straggler_mean(const straggler *s, const i64 *step_ps) {
  sim_sum sum = 0;
  for (u32 i = 0; i < s->nsteps; i++) sum += step_ps[i];
  return (double)sum / s->nsteps;
}
