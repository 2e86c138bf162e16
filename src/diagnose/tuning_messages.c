// tuning_messages.c - the data-parallel job that a recording of operators and messages shows (dPRO's traces), to be tuned. Not what
// would make it faster (tune/).
//
// Idea: phases are in the names of operators, the operator that made a gradient is in the graph (message_graph.c). A message of a
// ring of n carries an n-th of its tensor, so what one takes is a line over its bytes, fitted; what passes between messages is
// part of it, what passes before the first is the start of a communication, and what passes after the last is of the first update. Tensors that were fused
// stay so: nothing says which operator made which of them.
#include "diagnose/internal.h"
#include <stdlib.h>

typedef struct {
  const message_graph *g;
  ctx *c;
  arena *a, *tmp;
  u32 place, step;
  u32 *op_of; // of a node: its operation of the job; TUNE_NONE
  VEC(tune_op) ops;
  VEC(tune_tensor) tensors;
} reader;

static bool refuse(const reader *x, const char *why, const char *hint) {
  diag(x->c, E_TRACE, loc_text(x->c, sym_of(x->c, x->g->j->file[0].path), 0, 0, NULL), "%s", why);
  diag_hint(x->c, "%s", hint);
  return false;
}

typedef struct {
  u32 number;
  i64 from_ps, to_ps;
} span;
static int by_length(const void *p, const void *q) {
  const span *x = p, *y = q;
  const i64 a = x->to_ps - x->from_ps, b = y->to_ps - y->from_ps;
  if (a != b) return a < b ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

// The step of median length; number TRACE_NONE: the recording does not say steps.
static span choose_step(const reader *x) {
  VEC(span) v = {0};
  for (u32 k = 0; k < x->g->n; k++) {
    const message_node *n = &x->g->node[k];
    u32 i = 0;
    while (i < v.n && v.v[i].number != n->step) i++;
    if (i == v.n) *vec_push(x->tmp, &v) = (span){n->step, n->start_ps, n->end_ps};
    v.v[i].from_ps = MIN(v.v[i].from_ps, n->start_ps), v.v[i].to_ps = MAX(v.v[i].to_ps, n->end_ps);
  }
  assert(v.v);
  qsort(v.v, v.n, sizeof *v.v, by_length);
  return v.v[(v.n - 1) / 2];
}

// The worker that computes longest: the others wait for it.
static u32 slowest(const reader *x) {
  const u32 places = x->g->m->places.n;
  i64 *busy = ZNEWN(x->tmp, i64, places + 1);
  u32 best = TRACE_NONE;
  for (u32 k = 0; k < x->g->n; k++) {
    const message_node *n = &x->g->node[k];
    if (n->is != MESSAGE_OPERATOR || n->step != x->step) continue;
    busy[n->place] += n->dur_ps;
  }
  for (u32 p = 0; p < places; p++)
    if (busy[p] && (best == TRACE_NONE || busy[p] > busy[best])) best = p;
  return best;
}

static int by_begin(const void *p, const void *q) {
  const message_node *x = *(const message_node *const *)p, *y = *(const message_node *const *)q;
  if (x->start_ps != y->start_ps) return x->start_ps < y->start_ps ? -1 : 1;
  return x < y ? -1 : x > y;
}

// The worker's operators in their order: forward, backward up to its last, updates.
static bool put_ops(reader *x, i64 gap_ps) {
  VEC(const message_node *) v = {0};
  u32 first = TUNE_NONE, last = 0;
  for (u32 k = 0; k < x->g->n; k++) {
    const message_node *n = &x->g->node[k];
    if (n->is == MESSAGE_OPERATOR && n->place == x->place && n->step == x->step) *vec_push(x->tmp, &v) = n;
  }
  if (v.n) qsort(v.v, v.n, sizeof *v.v, by_begin);
  for (u32 k = 0; k < v.n; k++)
    if (v.v[k]->phase == TUNE_BACKWARD) first = MIN(first, k), last = k;
  if (first == TUNE_NONE) return refuse(x, "it has no operators of a backward (BW.)", "dPRO names them so");
  for (u32 k = 0; k < v.n; k++) {
    x->op_of[v.v[k] - x->g->node] = k;
    *vec_push(x->a, &x->ops) = (tune_op){.name = v.v[k]->name,
                                         .phase = k < first   ? TUNE_FORWARD
                                                  : k <= last ? TUNE_BACKWARD
                                                              : TUNE_UPDATE,
                                         .ps = v.v[k]->dur_ps + gap_ps};
  }
  return true;
}

// "BW.conv0" and "FW.conv0" have one parameter. The first of the forward, where there is no such operator.
static u32 read_by(const reader *x, u32 op) {
  const char *name = sym_str(x->c, x->ops.v[op].name), *dot = strchr(name, '.');
  for (u32 k = 0; dot && k < x->ops.n && x->ops.v[k].phase == TUNE_FORWARD; k++) {
    const char *other = sym_str(x->c, x->ops.v[k].name), *at = strchr(other, '.');
    if (at && !strcmp(at, dot)) return k;
  }
  return 0;
}

static int by_op(const void *p, const void *q) {
  const tune_tensor *x = p, *y = q;
  if (x->op != y->op) return x->op < y->op ? -1 : 1;
  return x->name.i < y->name.i ? -1 : x->name.i > y->name.i;
}

// Tensors by the first messages that the worker sends of them; what made them is what these wait for.
static bool put_tensors(reader *x) {
  const message_graph *g = x->g;
  for (u32 k = 0; k < g->nedges; k++) {
    const message_node *m = &g->node[g->edge[k].node];
    const u32 op = x->op_of[g->edge[k].after];
    u32 i = 0;
    if (m->is != MESSAGE_SENT || !m->first || op == TUNE_NONE || m->place != x->place || m->step != x->step)
      continue;
    if (m->bytes < 0)
      return refuse(
          x,
          arena_printf(x->a,
                       "the size of tensor %s is not known: what fusing or cutting it brings cannot be said",
                       sym_str(x->c, m->tensor)),
          "gradient_name_list.json with shapes, in HOST/GPU/ of the first worker beside the file, says "
          "sizes");
    while (i < x->tensors.n && x->tensors.v[i].name.i != m->tensor.i) i++;
    if (i == x->tensors.n)
      *vec_push(x->a, &x->tensors) = (tune_tensor){.name = m->tensor, .op = op, .read_by = read_by(x, op)};
    x->tensors.v[i].bytes += m->bytes * g->workers, x->tensors.v[i].op = MAX(x->tensors.v[i].op, op);
  }
  if (!x->tensors.n)
    return refuse(x, "no message waits for an operator of its backward",
                  "`heddle trace info` says what it has");
  qsort(x->tensors.v, x->tensors.n, sizeof *x->tensors.v, by_op);
  return true;
}

// Least squares of a message's time over its bytes.
static void fit(const reader *x, tune_link *l, tuning *out) {
  line_fit f = {0};
  for (u32 k = 0; k < x->g->n; k++)
    if (x->g->node[k].is == MESSAGE_SENT && x->g->node[k].bytes >= 0)
      line_fit_add(&f, (double)x->g->node[k].bytes, (double)x->g->node[k].dur_ps);
  double start;
  out->one_size = !line_fit_of(&f, &start, &l->ps_per_byte);
  for (u32 k = 0; k < x->g->n; k++) {
    const message_node *m = &x->g->node[k];
    if (m->is != MESSAGE_SENT || m->bytes < 0) continue;
    const double off = start + l->ps_per_byte * (double)m->bytes - (double)m->dur_ps;
    out->fit_error_ps += (off < 0 ? -off : off) / f.n;
  }
  l->step_ps = (i64)(start + 0.5);
}

static bool fill(reader *x, const message_replay *r, tuning *out) {
  const message_graph *g = x->g;
  if (!put_ops(x, r->wait_ps[WAIT_OPERATORS]) || !put_tensors(x)) return false;
  tune_job *t = &out->job;
  *t = (tune_job){.nops = x->ops.n,
                  .op = x->ops.v,
                  .ntensors = x->tensors.n,
                  .tensor = x->tensors.v,
                  .nblocks = 1,
                  .kind = ZNEWN(x->a, u32, 1),
                  .input_bytes = ZNEWN(x->a, i64, 1),
                  .link = {.workers = g->workers}};
  fit(x, &t->link, out);
  t->link.step_ps += r->wait_ps[WAIT_LINK];
  t->link.start_ps = r->wait_ps[WAIT_TO_LINK];
  for (u32 k = 0; k < t->nops; k++) // once, when all is there
    if (t->op[k].phase == TUNE_UPDATE) {
      t->op[k].ps += r->wait_ps[WAIT_FROM_LINK];
      break;
    }
  out->recorded = tune_plan_new(x->a, t);
  out->nbuckets = t->ntensors, out->sized = true;
  out->memory.unknown = "dPRO's traces say nothing of memory";
  out->no_half = "the recording does not say of which type gradients are";
  out->modelled_ps = tune_time(t, &out->recorded, TUNE_ONE_WORKER);
  return true;
}

bool tuning_of_messages(job *j, const char *steps, arena *a, tuning *out) {
  *out = (tuning){.steps = steps};
  const message_graph *g = message_graph_of(j, steps);
  message_replay r;
  if (!g || !message_replay_of(g, a, &r)) return false;
  reader x = {.g = g, .c = j->c, .a = a, .tmp = arena_new()};
  bool ok = g->ring && g->workers > 1;
  if (!ok)
    refuse(&x, "its messages go to servers: how many bytes a request has is not said",
           "`heddle trace replay` replays it; rings can be optimized");
  if (ok) {
    const span s = choose_step(&x);
    x.step = s.number, x.place = slowest(&x);
    if (s.number != TRACE_NONE) out->steps = sym_str(j->c, sym_fmt(j->c, "%u", s.number));
    out->recorded_ps = s.to_ps - s.from_ps;
    x.op_of = NEWN(x.tmp, u32, g->n + 1);
    for (u32 k = 0; k < g->n; k++) x.op_of[k] = TUNE_NONE;
    out->rank = x.place == TRACE_NONE ? TRACE_NONE : g->m->places.v[x.place].rank;
    ok = fill(&x, &r, out);
  }
  arena_free(x.tmp);
  return ok;
}
