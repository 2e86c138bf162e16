// evaluate.c - time and bytes of one point: its stages and its schedule, each known from an earlier point or
// made now, and one pass over the schedule.
//
// A plan is given up when its busiest rank alone works for longer than the plans that are kept take: no line is
// made for it, and on devices of several kinds no stages either.
//
// Idea: the stages of a plan do not depend on the order in which they run, nor on the streams of their sends,
// and a line of tasks does not depend on what they cost. So both are kept, each by what it does depend on,
// compared in full; the oldest are given up. A point waits with its stages for others on the same line, and they pass
// it together; those that wait for what is given up pass it before. A plan that cannot be known by its stages is
// applied and simulated whole.
#include "search/internal.h"

enum { STAGES_KEPT = SETS_TOGETHER, LINES_KEPT = 256, ENDINGS_KEPT = 512 };
enum { OPEN_MOST = 64 }; // passes that wait for others
// Of lines that are kept: by all threads, and by one. Few are asked for again, and fresh memory is slow.
static const size_t LINES_BYTES = (size_t)384 << 20, LINES_BYTES_EACH = (size_t)32 << 20;

typedef struct {
  const u32 *v;
  u32 n;
  u64 hash;
} words;
typedef struct { // of stages, some parts of which other stages may use
  arena *a;
  u32 users;
} stages_memory;
enum { SENDINGS = 5 }; // by plan.send_channels
typedef struct {
  strategy of;                   // without what only orders tasks and sends
  u32 form;                      // stages_form
  arena *a;                      // NULL: empty
  stages_memory *own, *of_tasks; // of_tasks: whose tasks these are as well; NULL: their own
  words tasks;                   // plan_tasks
  u64 used;
  u32 waiting; // points that wait with it for a pass
  plan_probed about;
  i64 busy_ps;          // of the busiest rank; 0: not asked
  const sim_stages *st; // NULL: not of a kind that can be known by its stages
  struct {
    bool known;
    const sim_stages *st; // NULL: likewise
    i64 busy_ps;          // of the busiest rank
  } sending[SENDINGS];    // the same with sends on other streams
  sim_totals
      *totals[2]; // of passes, with all sends on the compute stream and on others; NULL: there was none
} known_stages;
typedef struct { // what tasks and their order depend on
  choice_value schedule;
  u64 key; // of the schedule, which a file has at the time
  bool rendezvous;
  sched_shape shape;
  plan_graph graph;
} order_of;
typedef struct {
  order_of of;
  arena *a; // written again by the next line; NULL: there was none yet
  arena_mark_t begin;
  u64 used;
  u32 waiting;          // points, for a pass over it
  const sim_line *line; // NULL: empty
} known_line;
typedef struct { // stages of other forms have other lines of it
  order_of of;
  arena *a; // NULL: there was none yet
  arena_mark_t begin;
  u32 n;
  const sim_order *v; // NULL: there is none
} known_order;
// Points that wait for a pass over one line, with sends on the same streams, of stages with as many rank classes.
typedef struct {
  known_line *line;
  u32 channels, nclasses, n;
  u64 used;
  search_point *p[SIM_LANES];
  known_stages *of[SIM_LANES];
  const sim_stages *st[SIM_LANES];
  sim_totals *totals[SIM_LANES];
} together;
typedef struct { // what comes after the tasks of stages
  arena *a;      // NULL: empty
  u64 used;
  words tasks, states; // plan_probed.ending, plan_states
  bool states_split;   // plan_probed.storage_split
  const sim_ending *of;
} known_ending;
struct known {
  u64 now;
  u64 stages_hash[STAGES_KEPT];
  known_stages stages[STAGES_KEPT];
  together open[OPEN_MOST];
  known_line *latest; // NULL: none
  known_order order;  // the latest
  known_line line[LINES_KEPT];
  known_ending ending[ENDINGS_KEPT];
};

// ---- passes -------------------------------------------------------------------------------------------
static void settle(const search *s, search_point *p, const sim_pipe_result *r) {
  p->time_ps = r->period_ps, p->alone_ps = r->makespan_ps;
  p->peak_bytes = r->peak_bytes, p->utilisation = r->utilisation;
  p->comm = r->comm, p->bubble = r->bubble;
  const bool large = sim_lacks(r, s->o->memory_bytes) > 0, host = !large && r->host_over_bytes > 0;
  p->host_bytes = host ? r->host_bytes : 0, p->host_usable = host ? r->host_bytes - r->host_over_bytes : 0;
  p->state = !sim_within(r, s->o->memory_bytes) ? SEARCH_OVER_MEMORY : SEARCH_RAN;
}

static void run_together(const search *s, together *x) {
  sim_pipe_result r[SIM_LANES];
  if (!x->n) return;
  arena *tmp = arena_new();
  sim_pipes(x->n, x->st, tmp, x->line->line, x->totals, r);
  arena_free(tmp);
  for (u32 i = 0; i < x->n; i++) settle(s, x->p[i], &r[i]), x->of[i]->waiting--;
  x->line->waiting -= x->n, x->n = 0;
}

// What these stages, or what this line, is waited for with.
static void run_waiting(const search *s, known *k, const known_stages *of, const known_line *line) {
  for (u32 i = 0; i < OPEN_MOST; i++) {
    together *x = &k->open[i];
    bool is = x->n && x->line == line;
    for (u32 j = 0; j < x->n && !is; j++) is = x->of[j] == of;
    if (is) run_together(s, x);
  }
}

static void wait_for_others(const search *s, known *k, search_point *p, known_stages *of,
                            const sim_stages *st, known_line *line, u32 channels) {
  const u32 nclasses = sim_stages_classes(st);
  together *x = NULL, *oldest = &k->open[0];
  for (u32 i = 0; i < OPEN_MOST && !x; i++) {
    together *y = &k->open[i];
    if (y->n && y->line == line && y->channels == channels && y->nclasses == nclasses) x = y;
    if (oldest->n && (!y->n || y->used < oldest->used)) oldest = y;
  }
  if (!x) {
    x = oldest;
    run_together(s, x);
    x->line = line, x->channels = channels, x->nclasses = nclasses, x->used = ++k->now;
  }
  sim_totals **totals = &of->totals[channels > 0];
  if (!*totals) *totals = sim_totals_new(of->a, st);
  x->p[x->n] = p, x->of[x->n] = of, x->totals[x->n] = *totals, x->st[x->n++] = st;
  of->waiting++, line->waiting++;
  if (x->n == SIM_LANES) run_together(s, x);
}

// ---- what is kept -------------------------------------------------------------------------------------
static void release(stages_memory *x) {
  if (x && !--x->users) arena_free(x->a);
}

static void forget(known_stages *x) {
  release(x->own), release(x->of_tasks);
  *x = (known_stages){.used = 0};
}

void known_free(known *k) {
  if (!k) return;
  for (u32 i = 0; i < STAGES_KEPT; i++) forget(&k->stages[i]);
  for (u32 i = 0; i < LINES_KEPT; i++) arena_free(k->line[i].a);
  for (u32 i = 0; i < ENDINGS_KEPT; i++) arena_free(k->ending[i].a);
  arena_free(k->order.a);
}

// ---- stages -------------------------------------------------------------------------------------------
// What stages depend on of the order: backwards in two parts, replicas.
static u32 stages_form(const plan *pn) {
  bool split = pn->made.row && pn->made.row->split && pn->train;
  for (u32 q = 0; pn->seqs && q < pn->nseqs; q++)
    for (u32 k = 0; k < pn->seqs[q].n; k++) split |= pn->seqs[q].v[k].kind > TASK_B;
  return pn->nreplicas << 1 | split;
}

static known_stages *stages_slot(const search *s, known *k, const strategy *of, u32 form, bool *found) {
  known_stages *oldest = &k->stages[0];
  const u64 hash = hash_u64(strategy_hash(of), form);
  for (u32 i = 0; i < STAGES_KEPT; i++) {
    known_stages *x = &k->stages[i];
    if (k->stages_hash[i] != hash) continue;
    *found = x->a && x->form == form && !strategy_compare(&x->of, of);
    if (*found) return x;
  }
  for (u32 i = 0; i < STAGES_KEPT; i++)
    if (k->stages[i].used < oldest->used) oldest = &k->stages[i];
  if (oldest->waiting) run_waiting(s, k, oldest, NULL);
  forget(oldest);
  *found = false, k->stages_hash[oldest - k->stages] = hash;
  *oldest = (known_stages){.of = *of, .form = form, .a = arena_new()};
  oldest->own = NEW(oldest->a, stages_memory);
  *oldest->own = (stages_memory){oldest->a, 1};
  return oldest;
}

static words words_of(u32 (*of)(arena *, const plan *, const u32 **), arena *a, const plan *pn) {
  words x = {0};
  arena *tmp = arena_new();
  x.n = of(tmp, pn, &x.v);
  x.v = arena_dup(a, x.v, x.n * sizeof *x.v);
  x.hash = hash_bytes(x.v, x.n * sizeof *x.v, 0);
  arena_free(tmp);
  return x;
}

static bool same_words(const words *x, const words *y) {
  return x->hash == y->hash && x->n == y->n && !memcmp(x->v, y->v, x->n * sizeof *x->v);
}

static words words_dup(arena *a, const words *x) {
  return (words){arena_dup(a, x->v, x->n * sizeof *x->v), x->n, x->hash};
}

static words ending_words(const u32 *word, u32 n) {
  return (words){word, n, hash_bytes(word, n * sizeof *word, 0)};
}

typedef struct {
  known *k;
  words states; // plan_states of the plan
} wanted;
static const sim_ending *find_ending(void *arg, const u32 *word, u32 n) {
  const wanted *q = arg;
  const words w = ending_words(word, n);
  for (u32 i = 0; i < ENDINGS_KEPT; i++) {
    known_ending *x = &q->k->ending[i];
    if (!x->a || !same_words(&x->tasks, &w) || !same_words(&x->states, &q->states)) continue;
    x->used = ++q->k->now;
    return x->of;
  }
  return NULL;
}

// Of an ending that was found; without one what the probe says.
static void take_ending(const known *k, const sim_ending *of, plan_probed *to) {
  for (u32 i = 0; of && i < ENDINGS_KEPT; i++)
    if (k->ending[i].of == of) to->storage_split[STORAGE_STATE] = k->ending[i].states_split;
}

static void keep_ending(known *k, const words *states, const known_stages *from) {
  const plan_probed *p = &from->about;
  known_ending *oldest = &k->ending[0];
  for (u32 i = 1; i < ENDINGS_KEPT; i++)
    if (k->ending[i].used < oldest->used) oldest = &k->ending[i];
  arena *a = arena_new();
  const sim_ending *of = sim_ending_of(a, from->st);
  if (!of) {
    arena_free(a);
    return;
  }
  const words w = ending_words(p->ending, p->nending);
  arena_free(oldest->a);
  *oldest = (known_ending){.a = a, .of = of, .used = ++k->now};
  oldest->tasks = words_dup(a, &w), oldest->states = words_dup(a, states);
  oldest->states_split = p->storage_split[STORAGE_STATE];
}

// The stages of a plan with the same tasks, and after them what this one has: plans may differ in how they store
// states.
static void take_tasks(wanted *q, known_stages *x) {
  known *k = q->k;
  for (u32 i = 0; i < STAGES_KEPT && !x->st; i++) {
    const known_stages *y = &k->stages[i];
    if (!y->st || y->form != x->form || y->of.schedule.path) continue;
    if (!y->about.nending || !same_words(&x->tasks, &y->tasks)) continue;
    const sim_ending *e = find_ending(q, y->about.ending, y->about.nending);
    x->st = e ? sim_stages_ending(x->a, y->st, e) : NULL;
    if (!x->st) return;
    x->about = y->about;
    take_ending(k, e, &x->about);
    x->of_tasks = y->of_tasks ? y->of_tasks : y->own;
    x->of_tasks->users++;
  }
}

// Makes x->st, NULL where stages are not known. False and diagnostics: the plan is impossible. False and *busy
// above what is kept: it is too slow.
static bool make_stages(worker *w, wanted *q, const plan *pn, bool all_layers, const sim_opts *so,
                        known_stages *x) {
  const u32 before = diag_errors(w->c);
  bool made = true;
  for (u32 again = 0; again < 2 && made && !x->st; again++) {
    if (again && !x->about.pipeline.ending) break; // its end was in the probe
    plan_find_ending *find = again || so->busiest_ps ? NULL : find_ending;
    prog *probe = plan_probe_tasks(w->pl, pn, w->k, x->a, all_layers, find, q, &x->about);
    if (probe) x->st = sim_stages_of(w->c, x->a, probe, w->k, so, &x->about.pipeline);
    made = probe && diag_errors(w->c) == before && (!so->busiest_ps || *so->busiest_ps <= so->enough_ps);
    prog_free(probe);
  }
  take_ending(q->k, x->about.pipeline.ending, &x->about);
  if (x->st && x->about.nending && !x->about.pipeline.ending) keep_ending(q->k, &q->states, x);
  return made;
}

// After a bound that was false none is used.
static bool bounded(const search *s) { return !s->o->no_bounds && !s->r->bound_failed; }

// Of a plan and what it is made of. NULL and diagnostics: it is impossible. NULL and *busy above what is kept: it is too slow.
static known_stages *stages_of(const search *s, worker *w, const strategy *is, const plan *pn, i64 *busy) {
  // A file says where stages lie, too. With numbers: what `auto` stands for depends on the order
  strategy of = search_set(is, pn->sum_stream.i);
  bool found;
  known_stages *x = stages_slot(s, w->stages, &of, stages_form(pn), &found);
  x->used = ++w->stages->now;
  *busy = x->busy_ps;
  const i64 enough = kept_last(&s->kept);
  if (found) return bounded(s) && s->several && x->busy_ps > enough ? NULL : x; // as if they were made now
  const sim_opts so = {.mode = SIM_FOLDED,
                       .bytes = s->o->bytes,
                       .peak_only = true,
                       .busiest_ps = bounded(s) && s->several ? busy : NULL,
                       .enough_ps = enough};
  bool made = true;
  plan as = *pn;
  as.send_stream = sym_of(w->c, "pp"), as.send_channels = 4;
  x->tasks = words_of(plan_tasks, x->a, &as);
  wanted q = {w->stages, words_of(plan_states, x->a, &as)};
  if (pn->made.row && !so.busiest_ps && !pn->sum_stream.i)
    take_tasks(&q, x); // a file may split the backwards of some stages
  for (u32 all = 0; all < 2 && made && !x->st; all++) {
    if (all && !x->about.pipeline.nspans) break; // it had all layers
    made = make_stages(w, &q, &as, all, &so, x);
  }
  x->busy_ps = *busy;
  if (made) return x;
  forget(x);
  return NULL;
}

// With sends on the streams that the plan says. NULL: not known by its stages. busy: no less than its busiest rank works.
static const sim_stages *stages_sending(known_stages *x, const plan *pn, arena *tmp, i64 *busy) {
  const u32 k = pn->send_stream.i ? MAX(pn->send_channels, 1u) : 0;
  if (!x->st) return NULL;
  *busy = MAX(*busy, x->sending[k].busy_ps); // 0: not known yet
  if (x->sending[k].known) return x->sending[k].st;
  const sim_pipeline *pl = &x->about.pipeline;
  u16 *from = NEWN(tmp, u16, pl->nlinks + 1), *to = NEWN(tmp, u16, pl->nlinks + 1);
  u8 *strm[2] = {NEWN(tmp, u8, pl->nlinks + 1), NEWN(tmp, u8, pl->nlinks + 1)};
  for (u32 i = 0; i < pl->nlinks; i++)
    from[i] = pl->place[pl->link[i].from], to[i] = pl->place[pl->link[i].to];
  const u32 n = plan_send_streams(tmp, pn, pl->nlinks, from, to, strm);
  x->sending[k].known = true;
  x->sending[k].st = sim_stages_sending(x->a, x->st, n, strm, k);
  if (x->sending[k].st) x->sending[k].busy_ps = sim_stages_busiest(x->sending[k].st, tmp, true);
  *busy = MAX(*busy, x->sending[k].busy_ps);
  return x->sending[k].st;
}

// ---- lines --------------------------------------------------------------------------------------------
static bool same_graph(const plan_graph *x, const plan_graph *y) {
  if (x->nstages != y->nstages || x->nplaces != y->nplaces || x->nmicro != y->nmicro ||
      x->nreplicas != y->nreplicas || x->nedges != y->nedges || x->train != y->train ||
      x->backward != y->backward || !x->forward != !y->forward)
    return false;
  for (u32 r = 0; r < x->nreplicas; r++)
    if (x->micro[r] != y->micro[r]) return false;
  for (u32 i = 0; i < x->nreplicas * x->nstages; i++)
    if (x->place[i] != y->place[i]) return false;
  for (u32 i = 0; i < x->nstages; i++)
    if (x->forward && x->forward[i] != y->forward[i]) return false;
  for (u32 i = 0; i < x->nedges; i++) {
    const sched_edge *a = &x->edge[i], *b = &y->edge[i];
    if (a->from != b->from || a->to != b->to || a->no_gradient != b->no_gradient) return false;
  }
  return true;
}

static plan_graph copy_graph(arena *a, const plan_graph *g) {
  plan_graph x = *g;
  x.place = arena_dup(a, g->place, g->nreplicas * g->nstages * sizeof *g->place);
  x.micro = arena_dup(a, g->micro, g->nreplicas * sizeof *g->micro);
  x.edge = arena_dup(a, g->edge, g->nedges * sizeof *g->edge);
  if (g->forward) x.forward = arena_dup(a, g->forward, g->nstages * sizeof *g->forward);
  return x;
}

// What made the order, and the order itself where the plan has it written out: of replicas of different make-up.
static u64 order_key(const plan *pn) {
  u64 h = pn->made.key;
  for (u32 q = 0; pn->seqs && q < pn->nseqs; q++)
    for (u32 k = 0; k < pn->seqs[q].n; k++) {
      const sched_task *t = &pn->seqs[q].v[k];
      h = hash_step(hash_step(hash_step(h, q), (u64)t->stage << 16 | (u64)t->kind << 8 | t->replica), t->mb);
    }
  return h;
}

static bool same_order(const order_of *x, const order_of *y) {
  return x->key == y->key && choice_same(x->schedule, y->schedule) && x->rendezvous == y->rendezvous &&
         sched_shape_same(&x->shape, &y->shape) && same_graph(&x->graph, &y->graph);
}

static order_of copy_order(arena *a, const order_of *x) {
  order_of y = *x;
  y.graph = copy_graph(a, &x->graph);
  return y;
}

static bool is_line(const known_line *l, const order_of *of, const sim_stages *st) {
  return l->line && same_order(&l->of, of) && sim_line_fits(l->line, st);
}

static known_line *find_line(known *k, const order_of *of, const sim_stages *st) {
  if (k->latest && is_line(k->latest, of, st)) return k->latest;
  for (u32 i = 0; i < LINES_KEPT; i++)
    if (is_line(&k->line[i], of, st)) return &k->line[i];
  return NULL;
}

// Its memory stays: fresh pages take longer than all that is written to them.
static void forget_line(const search *s, known *k, known_line *l) {
  if (l->waiting) run_waiting(s, k, NULL, l);
  if (k->latest == l) k->latest = NULL;
  for (u32 i = 0; i < STAGES_KEPT; i++)
    for (u32 j = 0; j < 2; j++)
      if (k->stages[i].totals[j]) sim_totals_forget(k->stages[i].totals[j], l->line);
  if (l->a) arena_release(l->a, l->begin);
  l->line = NULL, l->used = 0;
}

// The one that was used longest ago, of another order than this one (NULL: of any).
static known_line *oldest_line(known *k, const order_of *but) {
  known_line *oldest = NULL;
  for (u32 i = 0; i < LINES_KEPT; i++) {
    known_line *l = &k->line[i];
    if (l->line && (!oldest || l->used < oldest->used) && !(but && same_order(&l->of, but))) oldest = l;
  }
  return oldest;
}

// A place for a line of this order. Lines of others are given up, the oldest first, while all take too much; without
// bounds nobody asks for them again.
static known_line *line_slot(const search *s, known *k, const order_of *of) {
  const size_t most = s->o->no_bounds ? 0 : MIN(LINES_BYTES / s->threads, LINES_BYTES_EACH);
  size_t bytes = 0;
  known_line *l, *empty = NULL;
  for (u32 i = 0; i < LINES_KEPT; i++)
    if (k->line[i].line) bytes += arena_bytes(k->line[i].a);
  while (bytes > most && (l = oldest_line(k, of))) bytes -= arena_bytes(l->a), forget_line(s, k, l);
  for (u32 i = 0; i < LINES_KEPT; i++) {
    l = &k->line[i];
    if (!l->line && (!empty || (l->a && !empty->a))) empty = l;
  }
  if (!empty) forget_line(s, k, empty = oldest_line(k, NULL));
  if (!empty->a) empty->a = arena_new(), empty->begin = arena_mark(empty->a);
  return empty;
}

// NULL and diagnostics: there is none.
static const known_order *make_order(worker *w, const plan *pn, const order_of *of) {
  known_order *x = &w->stages->order;
  if (x->v && same_order(&x->of, of)) return x;
  if (!x->a) x->a = arena_new(), x->begin = arena_mark(x->a);
  arena_release(x->a, x->begin);
  x->v = NULL, x->of = copy_order(x->a, of);
  if (plan_line(w->c, x->a, pn, &of->graph, &x->n, &x->v)) return x;
  x->v = NULL;
  return NULL;
}

static known_line *line_of(const search *s, worker *w, const search_point *p, const plan *pn,
                           const plan_graph *g, const sim_stages *st) {
  known *k = w->stages;
  const order_of of = {.schedule = search_value(p, CHOICE_schedule),
                       .key = order_key(pn),
                       .rendezvous = pn->rendezvous,
                       .shape = pn->made.shape,
                       .graph = *g};
  known_line *l = find_line(k, &of, st);
  const known_order *order = l ? NULL : make_order(w, pn, &of);
  if (!l && !order) return NULL;
  if (!l) {
    l = line_slot(s, k, &of);
    l->of = copy_order(l->a, &of);
    l->line = sim_line_new(l->a, st, order->v, order->n);
    if (!l->line) {
      forget_line(s, k, l);
      return NULL;
    }
  }
  l->used = ++k->now, k->latest = l;
  return l;
}

// ---- evaluation ---------------------------------------------------------------------------------------
// The lower level of ZeRO in the space whose plan is the same, as far as tensors are sharded in storage:
// nothing had enough elements for all data ranks. p's own level if there is none.
static u32 same_zero(const search *s, const bool *storage_split, const search_point *p) {
  // What level 1, 2, 3 splits too
  static const storage_kind adds[] = {STORAGE_STATE, STORAGE_GRAD, STORAGE_WEIGHT};
  strategy less = search_strategy(p);
  u32 same = less.zero.n;
  for (u32 z = same; z && !storage_split[adds[z - 1]]; z--) {
    less.zero.n = z - 1;
    if (search_find(s, &less)) same = z - 1;
  }
  return same;
}

static bool simulate_whole(const search *s, worker *w, arena *a, const plan *pn, sim_pipe_result *out) {
  const sim_opts so = {
      .mode = SIM_FOLDED, .bytes = s->o->bytes, .peak_only = true, .steady = search_steady(s->o)};
  return plan_price_whole(w->pl, pn, w->k, a, &so, out);
}

// What stages on one place share goes with the last task that uses it. By rows that is a task of the last
// microbatch; in a file with several stages on a place it may be any, so those are simulated whole.
// Where senders wait, what goes to stages on all places is held for longer than their tasks know.
static bool by_stages(const search *s, const search_point *p) {
  const strategy of = search_strategy(p);
  const bool waits = choice_is(CHOICE_buffers, of.buffers, "rendezvous");
  return s->o->bytes == SIM_BYTES_HEDDLE && !(of.schedule.path && of.v.n > 1) &&
         !(waits && policy_is_interlaced(&of));
}

// How long the busiest rank works at least under a plan that is not known by its stages. Where only its sums beside the last
// backward are why, the tasks of the same plan without them tell; not on devices of several kinds, where stages are
// asked how busy they are with these sums among their work, and no further than what is kept.
static i64 busiest(const search *s, worker *w, const strategy *is, const plan *pn, arena *a) {
  plan as = *pn;
  as.sum_stream = (sym){0};
  i64 busy = 0;
  const u32 before = diag_count(w->c);
  const bool asks = pn->sum_stream.i && !s->several && plan_has_probe(&as);
  const known_stages *x = asks ? stages_of(s, w, is, &as, &busy) : NULL;
  busy = x && x->st ? sim_stages_busiest(x->st, a, false) : 0;
  diag_truncate(w->c, before);
  return busy > kept_last(&s->kept) ? busy : MAX(busy, plan_busiest(w->pl, pn, w->k, a));
}

// What a point takes, unless it is left to a pass over its line, beside others on the same one.
static void prepare(search *s, worker *w, search_point *p) {
  arena *a = arena_new();
  if (!w->stages) w->stages = ZNEWN(w->a, known, 1);
  const point_plan made = search_plan(s, w, a, p);
  plan *pn = made.pn;
  if (pn && p->fitted) p->plan = plan_hash_ordered(w->c, pn, made.hash);
  i64 busy = 0;
  const bool whole = pn && !plan_has_probe(pn);
  known_stages *x = pn && !whole ? stages_of(s, w, &made.is, pn, &busy) : NULL;
  sim_pipe_result r;
  if (!p->stages_ps) p->stages_ps = busy;
  const sim_stages *st = x && by_stages(s, p) ? stages_sending(x, pn, a, &busy) : NULL;
  if (pn && (whole || x) && !st && bounded(s)) busy = MAX(busy, busiest(s, w, &made.is, pn, a));
  if (bounded(s) && busy > p->bound_ps) p->bound_ps = busy, p->bound_fill_ps = 0, p->bound_work = true;
  const u32 zero = search_value(p, CHOICE_zero).n;
  p->same_zero = (u8)(x ? same_zero(s, x->about.storage_split, p) : zero);
  if (bounded(s) && busy > kept_last(&s->kept)) {
    p->state = SEARCH_BOUND_TIME;
  } else if (!x && !whole) {
    search_impossible(p, w);
  } else if (p->same_zero != zero) {
    p->state = SEARCH_EQUAL; // worded when the wave is done
  } else if (!st) {
    simulate_whole(s, w, a, pn, &r) ? settle(s, p, &r) : search_impossible(p, w);
  } else {
    known_line *line = line_of(s, w, p, pn, &x->about.graph, st);
    if (line)
      wait_for_others(s, w->stages, p, x, st, line, pn->send_stream.i ? MAX(pn->send_channels, 1u) : 0);
    else if (!diag_count(w->c) && simulate_whole(s, w, a, pn, &r))
      settle(s, p, &r);
    else
      search_impossible(p, w);
  }
  diag_clear(w->c);
  arena_free(a);
}

// Nothing is known of other cuts but what is known of all.
static void take_back(search_point *p) {
  p->fitted = true, p->state = SEARCH_OPEN;
  p->first_ps = MAX(p->first_ps, p->bound_ps);
  p->bound_ps = p->products_ps, p->bound_fill_ps = 0, p->bound_work = false;
  p->time_ps = p->alone_ps = p->peak_bytes = p->host_bytes = p->host_usable = 0;
}

static void evaluate(search *s, worker *w, search_point **p, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (s->limit >= 0 && p[i]->bound_bytes > s->limit && search_tries_cuts(s, p[i])) take_back(p[i]);
    prepare(s, w, p[i]);
  }
  for (u32 k = 0; w->stages && k < OPEN_MOST; k++) run_together(s, &w->stages->open[k]);
}

void search_evaluate(search *s, worker *w, search_point **p, u32 n) {
  arena *tmp = arena_new();
  search_point **again = NEWN(tmp, search_point *, n + 1);
  u32 nagain = 0;
  evaluate(s, w, p, n);
  for (u32 i = 0; i < n; i++)
    if (p[i]->state == SEARCH_OVER_MEMORY && search_tries_cuts(s, p[i])) take_back(again[nagain++] = p[i]);
  if (nagain) evaluate(s, w, again, nagain);
  arena_free(tmp);
}
