// sim.c - what a simulation found: time, who is busy when, memory, and what the time consists of.
#include "report/internal.h"
#include "machine/machine.h"
#include <stdlib.h>

// "0-7", "0-3,8-11": the ranks whose classes carry a mark, in order.
static const char *ranks_text(arena *a, const sim_result *s, const u32 *mark, u32 wanted) {
  strbuf b = {.a = a};
  u32 runs = 0, n = s->nranks;
  for (u32 i = 0; i < n; i++) {
    if (!s->used[i] || mark[s->class_of_rank[i]] != wanted) continue;
    u32 j = i;
    while (j + 1 < n && s->used[j + 1] && mark[s->class_of_rank[j + 1]] == wanted) j++;
    if (runs++ == 4) {
      sb_put(&b, ",...");
      break;
    }
    sb_fmt(&b, runs > 1 ? ",%u" : "%u", i);
    if (j > i) sb_fmt(&b, "-%u", j);
    i = j;
  }
  return sb_str(&b);
}

// Units that a table need not tell apart: mark[u] is the first of those like u. Returns in count how many
// ranks.
typedef bool alike(const sim_result *s, u32 x, u32 y);
static void mark_alike(arena *a, const sim_result *s, alike *same, u32 **mark, u32 **count) {
  *mark = NEWN(a, u32, s->nclasses);
  *count = ZNEWN(a, u32, s->nclasses);
  VEC(u32) first = {0};
  for (u32 u = 0; u < s->nclasses; u++) {
    u32 k = 0;
    while (k < first.n && !same(s, first.v[k], u)) k++;
    if (k == first.n) *vec_push(a, &first) = u;
    (*mark)[u] = first.v[k];
    (*count)[first.v[k]] += s->cls[u].nranks;
  }
}

static void put_stages(report *r, arena *a, const sim_result *s) {
  static const column cols[] = {{"stage", "place"},
                                {NULL, "ranks"},
                                {"ranks", NULL},
                                {"utilisation", "computes"},
                                {"communication", "communicates"},
                                {"bubble", "idle"},
                                {"peak_bytes", "peak memory"}};
  u32 *stage = NEWN(a, u32, s->nclasses);
  for (u32 u = 0; u < s->nclasses; u++) stage[u] = s->cls[u].stage;
  report_table(r, "stages", cols, COUNT_OF(cols));
  for (u32 k = 0; k < s->nstages; k++)
    report_row(r, (cell[]){cell_i(CELL_INT, k), cell_text(ranks_text(a, s, stage, k)),
                           cell_i(CELL_INT, s->stage[k].nranks), cell_x(CELL_SHARE, s->stage[k].busy),
                           cell_x(CELL_SHARE, s->stage[k].comm), cell_x(CELL_SHARE, s->stage[k].bubble),
                           cell_i(CELL_BYTES, s->stage[k].peak_bytes)});
  report_top(r, 16);
}

static void put_devices(report *r, arena *a, const machine *m, const sim_result *s, const sim_about *of) {
  const plan_task_graphs *t = of->task_graphs;
  const plan_kinds_opts o = {
      .m = m, .given = of->given, .speed = t && t->nkinds == m->nkinds ? t->speed : NULL, .ranks = s->nranks};
  const plan_kind *v;
  const u32 n = plan_kinds_of(a, &o, s, &v);
  report_kinds(r, v, n);
  const double all = plan_speed_of(&o, s), span = (double)(s->ncarried ? s->period_ps : s->makespan_ps);
  const i64 spread = all > 0 ? (i64)((double)of->batch / all) : 0;
  report_fact(r, "spread_ps", NULL, spread ? cell_i(CELL_PS, spread) : cell_none());
  if (!spread || (double)spread >= span) return;
  const cell least = cell_i(CELL_PS, spread);
  strbuf text = {.a = a};
  cell_print(&least, &text);
  sb_fmt(&text, ", if no device ever waited for another one: %s",
         report_beyond(a, "the plan takes", span / (double)spread));
  report_gap(r);
  report_line(r, "without waits", "%s", sb_str(&text));
}

// Streams beside computation: how long each is in use.
static bool same_streams(const sim_result *s, u32 x, u32 y) {
  size_t n = s->nstreams;
  return !memcmp(s->busy_ps + x * n, s->busy_ps + y * n, n * sizeof *s->busy_ps);
}

static void put_streams(report *r, arena *a, const prog *p, const sim_result *s) {
  static const column cols[] = {{NULL, "ranks"},      {"first_rank", NULL}, {"ranks", NULL},
                                {"stream", "stream"}, {"busy_ps", "busy"},  {"share", "share"}};
  if (s->nstreams < 2) return;
  double span = s->makespan_ps ? (double)s->makespan_ps : 1;
  u32 *mark, *count;
  mark_alike(a, s, same_streams, &mark, &count);
  report_gap(r);
  report_table(r, "streams", cols, COUNT_OF(cols));
  for (u32 u = 0; u < s->nclasses; u++)
    for (u32 k = 0; k < s->nstreams; k++) {
      i64 busy = s->busy_ps[u * s->nstreams + k];
      if (!count[u] || !busy) continue;
      report_row(r, (cell[]){cell_text(ranks_text(a, s, mark, u)), cell_i(CELL_INT, s->cls[u].first_rank),
                             cell_i(CELL_INT, count[u]), cell_text(sym_str(p->c, p->streams.v[k])),
                             cell_i(CELL_PS, busy), cell_x(CELL_SHARE, (double)busy / span)});
    }
  report_top(r, 16);
}

// What a stage takes for a microbatch, by itself.
static void put_stage_times(report *r, const sched_stages *s) {
  static const column cols[] = {
      {"stage", "stage"},      {"place", "place"},  {"forward_ps", "forward"},          {"input_ps", "input"},
      {"weight_ps", "weight"}, {"send_ps", "send"}, {"activation_bytes", "activations"}};
  report_gap(r);
  report_table(r, "stage_times", cols, COUNT_OF(cols));
  for (u32 k = 0; k < s->nstages; k++)
    report_row(r,
               (cell[]){cell_i(CELL_INT, k), cell_i(CELL_INT, s->at[k].v[0]),
                        cell_i(CELL_PS, (i64)s->cost.task[TASK_F][k]),
                        cell_i(CELL_PS, (i64)s->cost.task[TASK_I][k]),
                        cell_i(CELL_PS, (i64)s->cost.task[TASK_W][k]), cell_i(CELL_PS, (i64)s->cost.send[k]),
                        cell_i(CELL_BYTES, (i64)((s->cost.memory[k] * 16384 + 7812) / 15625))});
}

// Ranks of a stage whose uneven pieces differ by an element are one row.
static bool about_same(i64 x, i64 y) { return llabs(x - y) <= MAX(x, y) / 1000; }
static bool same_memory(const sim_result *s, u32 x, u32 y) {
  const sim_class *a = &s->cls[x], *b = &s->cls[y];
  bool same = a->stage == b->stage && about_same(a->peak_bytes, b->peak_bytes);
  for (u32 k = 0; k < MEM_KINDS; k++) same = same && about_same(a->peak_kind[k], b->peak_kind[k]);
  return same;
}

static void put_memory(report *r, arena *a, const sim_result *s) {
  static const column cols[] = {{NULL, "ranks"},
                                {"first_rank", NULL},
                                {"ranks", NULL},
                                {"stage", NULL},
                                {"parameter_bytes", "parameters"},
                                {"gradient_bytes", "gradients"},
                                {"state_bytes", "optimizer"},
                                {"activation_bytes", "activations"},
                                {"temporary_bytes", "temporary"},
                                {"communication_bytes", "communication"},
                                {"peak_bytes", "peak"}};
  u32 *mark, *count;
  mark_alike(a, s, same_memory, &mark, &count);
  report_table(r, "memory", cols, COUNT_OF(cols));
  for (u32 u = 0; u < s->nclasses; u++) {
    const sim_class *k = &s->cls[u];
    if (!count[u]) continue;
    cell row[COUNT_OF(cols)] = {cell_text(ranks_text(a, s, mark, u)), cell_i(CELL_INT, k->first_rank),
                                cell_i(CELL_INT, count[u]), cell_i(CELL_INT, k->stage)};
    for (u32 i = 0; i < MEM_KINDS; i++) row[4 + i] = cell_i(CELL_BYTES, k->peak_kind[i]);
    row[4 + MEM_KINDS] = cell_i(CELL_BYTES, k->peak_bytes);
    report_row(r, row);
  }
  report_top(r, 16);
}

// The largest values of the fullest rank, at its peak.
static void put_peak(report *r, const prog *p, const sim_result *s) {
  static const column cols[] = {{"value", "at the peak"},
                                {"function", "function"},
                                {"kind", "kind"},
                                {"count", "count"},
                                {"bytes", "bytes"}};
  const sim_class *u = &s->cls[s->peak_class];
  if (!u->ntop) return;
  report_gap(r);
  report_table(r, "peak", cols, COUNT_OF(cols));
  for (u32 i = 0; i < u->ntop; i++) {
    const mem_item *t = &u->top[i];
    const func_info *f = t->f.i ? func_get(p, t->f) : NULL;
    const char *name = f && t->v ? sym_str(p->c, val(f, t->v)->name) : "";
    u32 def = f && t->v ? val(f, t->v)->def : 0;
    if (!*name && def) name = op_row_of(f->body.v[def - 1].op)->name;
    report_row(r, (cell[]){cell_text(name), cell_text(f ? sym_str(p->c, f->name) : ""),
                           cell_text(mem_kind_name(t->kind)), cell_i(CELL_INT, t->count),
                           cell_i(CELL_BYTES, t->bytes)});
  }
  report_top(r, 6);
}

typedef struct {
  u32 op;
  u64 count;
  i64 ps;
} op_time;
static int by_time(const void *x, const void *y) {
  const op_time *a = x, *b = y;
  return a->ps != b->ps ? (a->ps > b->ps ? -1 : 1) : a->op < b->op ? -1 : a->op > b->op;
}

static void put_critical(report *r, const sim_result *s) {
  static const column cols[] = {
      {"op", "critical path"}, {"kind", "kind"}, {"count", "count"}, {"time_ps", "time"}, {"share", "share"}};
  op_time sum[OP_ROWS];
  if (!s->nweights) return;
  for (u32 i = 0; i < OP_ROWS; i++) sum[i] = (op_time){.op = i};
  i64 comm = 0;
  for (u32 i = 0; i < s->nweights; i++) {
    const sim_weight *w = &s->weight[i];
    sum[w->op].count += w->count;
    sum[w->op].ps += w->total_ps;
    if (op_row_of(w->op)->flags & OPF_COMM) comm += w->total_ps;
  }
  qsort(sum, OP_ROWS, sizeof *sum, by_time);
  double span = s->makespan_ps ? (double)s->makespan_ps : 1;
  report_gap(r);
  report_fact(r, "critical_communication_share", NULL, cell_x(CELL_SHARE, (double)comm / span));
  report_table(r, "critical_path", cols, COUNT_OF(cols));
  for (u32 i = 0; i < OP_ROWS && sum[i].ps; i++)
    report_row(r,
               (cell[]){cell_text(op_row_of(sum[i].op)->name),
                        cell_text(op_row_of(sum[i].op)->flags & OPF_COMM ? "communication" : "computation"),
                        cell_i(CELL_INT, (i64)sum[i].count), cell_i(CELL_PS, sum[i].ps),
                        cell_x(CELL_SHARE, (double)sum[i].ps / span)});
  report_top(r, 8);
}

// ---- throughput ---------------------------------------------------------------------------------------
// Arithmetic of a step, what of it is done again, and what the devices could do in a second, in the type that
// the weights have. peak 0: the machine has no rate for it.
typedef struct {
  double flops, again, peak;
  dtype t;
  u32 nranks;
} arithmetic;

// Marks the ranks of all meshes, of the first n; a program without a mesh has rank 0.
static void mark_used(const prog *p, u32 n, bool *used) {
  const u32 meshes = mesh_count(p->sp);
  used[0] = !meshes;
  for (u32 k = 1; k <= meshes; k++) {
    const mesh_info *m = mesh_get(p->sp, (mesh){k});
    for (u32 j = 0; j < m->nranks; j++) {
      const u32 rank = m->ranks ? m->ranks[j] : m->first + j;
      if (rank < n) used[rank] = true;
    }
  }
}

static arithmetic arithmetic_of(const prog *p, const machine *m) {
  const func_info *f = func_get(p, p->main);
  arithmetic x = {.t = DT_F32};
  x.flops = report_flops(p, &x.again);
  for (u32 i = f->nparams; i-- > 0;)
    if (f->params.v[i].r == ROLE_WEIGHT && !val_type(p, f, i + 1)->tuple) x.t = val_type(p, f, i + 1)->s.t;
  bool several = false; // matrices of several types have no one peak
  for (u32 i = 0; i < f->nparams; i++) {
    const type_info *t = val_type(p, f, i + 1);
    several |= f->params.v[i].r == ROLE_WEIGHT && !t->tuple && t->s.nd > 1 && t->s.t != x.t;
  }
  arena *a = arena_new();
  bool *used = ZNEWN(a, bool, m->nranks);
  mark_used(p, m->nranks, used);
  for (u32 k = 0; k < m->nranks; k++) {
    x.nranks += used[k];
    if (used[k] && !several) x.peak += machine_kind_of(m, k)->rate[x.t];
  }
  arena_free(a);
  return x;
}

// In a step of so many seconds: a device's rate; over the peak all of it (HFU), and without what is done
// again (MFU). 0 seconds: not known.
typedef struct {
  cell rate, hfu, mfu;
} rates;
static rates rates_in(const arithmetic *x, double seconds) {
  rates r = {cell_none(), cell_none(), cell_none()};
  if (seconds <= 0) return r;
  r.rate = cell_x(CELL_FLOPS, x->flops / seconds / x->nranks);
  if (x->peak > 0) r.hfu = cell_x(CELL_SHARE, x->flops / seconds / x->peak);
  if (x->peak > 0) r.mfu = cell_x(CELL_SHARE, (x->flops - x->again) / seconds / x->peak);
  return r;
}

double report_mfu(const prog *p, const machine *m, i64 step_ps) {
  const arithmetic x = arithmetic_of(p, m);
  const cell mfu = rates_in(&x, (double)step_ps * 1e-12).mfu;
  return x.flops > 0 && mfu.kind == CELL_SHARE ? mfu.u.x : 0;
}

static void put_rate(report *r, arena *a, const arithmetic *x, double alone, double steady) {
  const rates of = rates_in(x, steady > 0 ? steady : alone), one = rates_in(x, alone),
              each = rates_in(x, steady);
  const bool twice = x->again > x->flops / 2000; // else the shares look the same
  strbuf text = {.a = a};
  if (x->flops <= 0 || alone <= 0) return;
  cell_print(&of.rate, &text);
  sb_put(&text, " a device");
  if (x->peak > 0)
    sb_put(&text, ", "), cell_print(&of.hfu, &text),
        sb_fmt(&text, " of the %s peak (%s)", dtype_name(x->t), twice ? "HFU" : "MFU");
  if (x->peak > 0 && twice)
    sb_put(&text, ", "), cell_print(&of.mfu, &text), sb_put(&text, " without recomputation (MFU)");
  report_line(r, "arithmetic", "%s", sb_str(&text));
  report_fact(r, "flops", NULL, cell_x(CELL_FLOP, x->flops));
  report_fact(r, "flop_per_s_per_device", NULL, one.rate);
  report_fact(r, "peak_share", NULL, one.hfu);
  report_fact(r, "mfu", NULL, one.mfu);
  report_fact(r, "period_flop_per_s_per_device", NULL, each.rate);
  report_fact(r, "period_peak_share", NULL, each.hfu);
  report_fact(r, "period_mfu", NULL, each.mfu);
}

// Of steps that follow each other, as they are measured; where there are none, of one step.
static void put_samples(report *r, i64 batch, double alone, double steady) {
  const bool known = batch && alone > 0, both = known && steady > 0;
  const cell one = known ? cell_x(CELL_PER_S, (double)batch / alone) : cell_none();
  const cell each = both ? cell_x(CELL_PER_S, (double)batch / steady) : cell_none();
  report_fact(r, "batch", NULL, batch ? cell_i(CELL_INT, batch) : cell_none());
  report_fact(r, "samples_per_s", known && !both ? "samples" : NULL, one);
  report_fact(r, "period_samples_per_s", both ? "samples" : NULL, each);
}

// Of training two times: of steps that follow each other, as they are measured, and of one alone.
static void put_time(report *r, const sim_result *s) {
  const bool both = s->ncarried > 0;
  report_fact(r, "period_ps", both ? "time per step" : NULL,
              both ? cell_i(CELL_PS, s->period_ps) : cell_none());
  report_fact(r, "time_ps", both ? "one step alone" : "time per step", cell_i(CELL_PS, s->makespan_ps));
}

// Communication that does not occupy the compute stream: the three shares of that do not have it.
static void put_beside(report *r, arena *a, const sim_result *s) {
  const cell share = cell_x(CELL_SHARE, s->beside);
  strbuf b = {.a = a};
  cell_print(&share, &b);
  report_fact(r, "communication_beside", NULL, share);
  if (s->beside > 0)
    report_line(r, "beside them", "%s of the time in communication, all other streams together", sb_str(&b));
}

// What the fullest node holds in host memory, and how long the busiest rank's link there is in use.
static void put_host(report *r, arena *a, const prog *p, const machine *m, const sim_result *s) {
  const sim_host h = sim_host_memory(s, m);
  const bool any = h.bytes > 0;
  i64 busy = 0;
  for (u32 u = 0; u < s->nclasses; u++)
    for (u32 k = 1; any && k < s->nstreams; k++) {
      const char *name = sym_str(p->c, p->streams.v[k]);
      if (!strcmp(name, "h2d") || !strcmp(name, "d2h")) busy = MAX(busy, s->busy_ps[u * s->nstreams + k]);
    }
  const cell has = any ? cell_i(CELL_BYTES, h.bytes) : cell_none(),
             most = any ? cell_i(CELL_BYTES, h.usable_bytes) : cell_none(),
             link = any && s->makespan_ps ? cell_x(CELL_SHARE, (double)busy / (double)s->makespan_ps)
                                          : cell_none();
  report_fact(r, "host_bytes", NULL, has);
  report_fact(r, "host_usable_bytes", NULL, most);
  report_fact(r, "host_link_share", NULL, link);
  if (!any) return;
  strbuf b = {.a = a};
  cell_print(&has, &b);
  sb_put(&b, h.bytes <= h.usable_bytes ? " of " : ", does not fit in ");
  cell_print(&most, &b);
  sb_fmt(&b, " on node %u; the busier way of its link is in use ", h.node);
  cell_print(&link, &b);
  report_line(r, "host memory", "%s", sb_str(&b));
}

void report_sim(report *r, arena *a, const prog *p, const machine *m, const sim_result *s,
                const sim_about *of) {
  const u32 tightest = sim_tightest(s, m);
  const bool fits =
      s->cls[s->class_of_rank[tightest]].peak_bytes <=
      machine_kind_of(m, tightest)->usable_bytes; // devices; if not: of the rank that lacks most
  const u32 fullest = fits ? s->cls[s->peak_class].first_rank : tightest;
  const double alone = (double)s->makespan_ps * 1e-12;
  const double steady = s->ncarried ? (double)s->period_ps * 1e-12 : 0;
  const arithmetic work = arithmetic_of(p, m);
  report_fact(r, "model", "model", cell_text(of->model));
  report_fact(r, "plan", of->plan ? "plan" : NULL, cell_text(of->plan));
  report_batchnorm(r, &of->batchnorm);
  const char *weights = report_types(a, p, ROLE_WEIGHT), *states = report_types(a, p, ROLE_STATE);
  if (weights)
    report_line(r, "weights", "%s%s%s", weights, states ? ", the optimizer's states " : "",
                states ? states : "");
  report_dropout(r, of->model, s->ncarried > 0);
  report_fact(r, "parameter_dtypes", NULL, cell_text(weights));
  report_fact(r, "state_dtypes", NULL, cell_text(states));
  report_fact(r, "machine", "machine", cell_text(machine_title(a, m)));
  report_fact(r, "ranks", s->nused < m->nranks ? NULL : "ranks", cell_i(CELL_INT, s->nused));
  if (s->nused < m->nranks)
    report_line(r, "ranks", "%u; the machine's other %u are not used", s->nused, m->nranks - s->nused);
  report_fact(r, "layers_by_stage", of->layers ? "layers" : NULL, cell_text(of->layers));
  report_fact(r, "schedule", of->schedule ? "schedule" : NULL, cell_text(of->schedule));
  put_time(r, s);
  report_error(r, a, s);
  put_samples(r, of->batch, alone, steady);
  put_rate(r, a, &work, alone, steady);
  report_fact(r, "utilisation", "computes", cell_x(CELL_SHARE, s->utilisation));
  report_fact(r, "communication", "communicates", cell_x(CELL_SHARE, s->comm));
  report_fact(r, "bubble", "idle", cell_x(CELL_SHARE, s->bubble));
  put_beside(r, a, s);
  strbuf mem = {.a = a};
  const cell peak = cell_i(CELL_BYTES, s->cls[s->class_of_rank[fullest]].peak_bytes),
             most = cell_i(CELL_BYTES, machine_kind_of(m, fullest)->usable_bytes);
  cell_print(&peak, &mem);
  sb_put(&mem, fits ? " of " : ", does not fit in ");
  cell_print(&most, &mem);
  report_line(r, "peak memory", "%s on rank %u", sb_str(&mem), fullest);
  report_fact(r, "peak_bytes", NULL, peak);
  report_fact(r, "usable_bytes", NULL, most);
  put_host(r, a, p, m, s);
  report_fact(r, "fits", NULL, cell_i(CELL_BOOL, sim_over_bytes(s, m) <= 0));
  report_fact(r, "instructions", "instructions", cell_i(CELL_INT, (i64)s->instructions));
  report_gap(r);
  if (of->task_graphs) report_task_graphs(r, of->task_graphs);
  put_stages(r, a, s);
  if (of->times) put_stage_times(r, of->times);
  report_gap(r);
  put_devices(r, a, m, s, of);
  put_streams(r, a, p, s);
  report_gap(r);
  put_memory(r, a, s);
  put_peak(r, p, s);
  put_critical(r, s);
  if (of->path) report_help(r, of->path, s->makespan_ps);
  report_origins(r, a, p->c, s);
}
