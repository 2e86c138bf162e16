// buffers.c - senders that wait until they are received, against a clock of its own: random pipelines whose places
// send on the compute stream. A plan is refused where that clock stops, and takes what it says elsewhere. Of tasks
// with several messages the order is the program's; for these only where each message stands is checked.
#include "plans.h"
#include "test.h"
#include <stdlib.h>

enum { LETTERS = 4 };
typedef struct {
  i64 run;              // of the task; below 0: there is none
  i64 sent;             // of its only message
  u32 nsent, span, *of; // messages; where the program has the task; the spans that are its messages
} task_of;
typedef struct {
  const plan *pn;
  const plan_graph *g;
  const prog *p;
  bool *priced; // per function: does it run in tasks?
  u32 *span_of; // per instruction of main: the span + 1
  arena *a;
} bed;

static u32 letter(char c) { return c == 'F' ? 0 : c == 'B' ? 1 : c == 'I' ? 2 : 3; }

static bool is_free(const instr *i) { return op_row_of((opcode)i->op)->flags & (OPF_VIEW | OPF_META); }

static i64 price_of(const prog *p, const func_info *f, const instr *i) {
  return (i64)(hash_u64(i->op, hash_u64((u64)(i - f->body.v), f == func_get(p, p->main) ? 7 : f->name.i)) %
               100000);
}

static i64 body_time(const bed *b, func fn) {
  const func_info *f = func_get(b->p, fn);
  i64 sum = 0;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    sum += i->op == OP_call ? body_time(b, i->callee) : is_free(i) ? 0 : price_of(b->p, f, i);
  }
  return sum;
}

static void mark(bed *b, func fn) {
  if (b->priced[fn.i]) return;
  b->priced[fn.i] = true;
  const func_info *f = func_get(b->p, fn);
  for (u32 k = 0; k < f->body.n; k++)
    if (f->body.v[k].op == OP_call) mark(b, f->body.v[k].callee);
}

// What is in no task takes no time.
static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  const bed *b = arg;
  (void)g;
  const func_info *m = func_get(p, p->main);
  bool in = f == m && b->span_of[i - m->body.v];
  for (u32 k = 1; f != m && k < p->funcs.n; k++) in |= p->funcs.v[k] == f && b->priced[k];
  *ps = in ? price_of(p, f, i) : 0;
  return 1;
}

static const task_span *span(const bed *b, u32 k) { return &b->p->tasks.v[k]; }

static u32 span_end(const bed *b, u32 k) {
  return k + 1 < b->p->tasks.n ? span(b, k + 1)->from : func_get(b->p, b->p->main)->body.n;
}

static i64 span_time(const bed *b, u32 k) {
  const func_info *m = func_get(b->p, b->p->main);
  i64 sum = 0;
  for (u32 i = span(b, k)->from; i < span_end(b, k); i++) {
    const instr *in = &m->body.v[i];
    sum += in->op == OP_call ? body_time(b, in->callee) : is_free(in) ? 0 : price_of(b->p, m, in);
  }
  return sum;
}

static size_t index_of(const bed *b, u32 stage, u32 kind, u32 mb) {
  return ((size_t)stage * LETTERS + kind) * b->g->nmicro + mb;
}

// Tasks and messages as the program has them.
static task_of *read_program(bed *b) {
  const size_t n = (size_t)b->g->nstages * LETTERS * b->g->nmicro;
  const func_info *m = func_get(b->p, b->p->main);
  task_of *t = ZNEWN(b->a, task_of, n);
  for (size_t k = 0; k < n; k++) t[k].run = -1, t[k].of = NEWN(b->a, u32, b->g->nstages + 1);
  b->span_of = ZNEWN(b->a, u32, m->body.n + 1), b->priced = ZNEWN(b->a, bool, b->p->funcs.n);
  for (u32 k = 0; k < b->p->tasks.n; k++) {
    const task_span *x = span(b, k);
    if (!x->letter) continue;
    bool any = false;
    for (u32 i = x->from; i < span_end(b, k); i++) {
      b->span_of[i] = k + 1, any |= m->body.v[i].op == OP_send;
      if (m->body.v[i].op == OP_call) mark(b, m->body.v[i].callee);
    }
    task_of *of = &t[index_of(b, x->stage, letter(x->letter), x->microbatch)];
    if (!x->send) // a whole backward may stand in two parts
      of->run = MAX(of->run, 0) + span_time(b, k), of->span = k;
    else if (any)
      of->sent = span_time(b, k), of->of[of->nsent++] = k;
  }
  return t;
}

// ---- the clock --------------------------------------------------------------------------------------------
typedef struct {
  u32 at;
  bool sending;
  i64 now;
} place_clock;

static const task_of *made_by(const bed *b, const task_of *t, const sched_task *x, i64 *run) {
  const task_of *of = &t[index_of(b, x->stage, letter(sched_letter((task_kind)x->kind)), x->mb)];
  *run = of->run;
  return of;
}

static bool gradient(const bed *b, const sched_edge *e) {
  return !e->no_gradient && !(b->g->forward && (b->g->forward[e->from] || b->g->forward[e->to]));
}

// The stage that gets what the task makes, + 1, of those on other places; *n of them.
static u32 receiver(const bed *b, const sched_task *x, u32 *n) {
  u32 to = 0;
  *n = 0;
  for (u32 k = 0; k < b->g->nedges && x->kind != TASK_W; k++) {
    const sched_edge *e = &b->g->edge[k];
    if (x->kind == TASK_F ? e->from != x->stage : e->to != x->stage || !gradient(b, e)) continue;
    const u32 other = x->kind == TASK_F ? e->to : e->from;
    if (b->g->place[other] != b->g->place[x->stage]) to = other + 1, ++*n;
  }
  return to;
}

static bool needs(const bed *b, const sched_task *x, const bool *done) {
  bool ok = x->kind == TASK_F || done[index_of(b, x->stage, 0, x->mb)];
  if (x->kind == TASK_W) return done[index_of(b, x->stage, 2, x->mb)];
  for (u32 k = 0; k < b->g->nedges; k++) {
    const sched_edge *e = &b->g->edge[k];
    if (x->kind == TASK_F ? e->to != x->stage : e->from != x->stage || !gradient(b, e)) continue;
    const u32 from = x->kind == TASK_F ? e->from : e->to;
    ok = ok && done[index_of(b, from, x->kind == TASK_F ? 0 : 2, x->mb)];
  }
  return ok;
}

static bool exists(const bed *b, const sched_task *x) {
  return x->kind == TASK_F || !b->g->forward || !b->g->forward[x->stage];
}

// Every place goes on as far as it can until nobody can. True: all ran. t NULL: without times.
static bool by_the_clock(const bed *b, const task_of *t, i64 *end) {
  const sched_seq *seq = b->pn->seqs;
  place_clock *c = ZNEWN(b->a, place_clock, b->pn->nseqs);
  bool *done = ZNEWN(b->a, bool, (size_t)b->g->nstages *LETTERS * b->g->nmicro), left = false;
  u32 *open = ZNEWN(b->a, u32, b->pn->nseqs); // messages that a place has still to send, as bits of edges
  for (bool moved = true; moved;) {
    moved = false;
    for (u32 p = 0; p < b->pn->nseqs; p++) {
      place_clock *x = &c[p];
      while (x->at < seq[p].n && !exists(b, &seq[p].v[x->at])) x->at++;
      if (x->sending) { // each message of the latest task whose receiver has come to it
        const sched_task *of = &seq[p].v[x->at - 1];
        for (u32 k = 0; k < b->g->nedges; k++) {
          const sched_edge *e = &b->g->edge[k];
          if (!(open[p] >> k & 1)) continue;
          const u32 to = of->kind == TASK_F ? e->to : e->from, q = b->g->place[to];
          place_clock *y = &c[q];
          while (y->at < seq[q].n && !exists(b, &seq[q].v[y->at])) y->at++;
          const sched_task *its = y->at < seq[q].n ? &seq[q].v[y->at] : NULL;
          if (y->sending || !its || its->stage != to || its->mb != of->mb || its->kind == TASK_W ||
              (its->kind == TASK_F) != (of->kind == TASK_F))
            continue;
          i64 run = 0;
          const i64 takes = t ? made_by(b, t, of, &run)->sent : 0, when = MAX(x->now, y->now) + takes;
          x->now = y->now = when, open[p] &= ~(1u << k), moved = true;
        }
        x->sending = open[p] != 0;
        continue;
      }
      if (x->at == seq[p].n) continue;
      const sched_task *of = &seq[p].v[x->at];
      bool came = needs(b, of, done);
      for (u32 q = 0; q < b->pn->nseqs && came; q++) // a message to it that has not moved
        for (u32 k = 0; k < b->g->nedges && c[q].sending; k++) {
          const sched_task *from = &seq[q].v[c[q].at - 1];
          const sched_edge *e = &b->g->edge[k];
          if (open[q] >> k & 1 && (from->kind == TASK_F ? e->to : e->from) == of->stage &&
              from->mb == of->mb && (from->kind == TASK_F) == (of->kind == TASK_F) && of->kind != TASK_W)
            came = false;
        }
      if (!came) continue;
      i64 run = 0;
      if (t) made_by(b, t, of, &run), REQUIRE(run >= 0), x->now += run;
      done[index_of(b, of->stage, of->kind == TASK_F ? 0 : of->kind == TASK_W ? 3 : 2, of->mb)] = true;
      x->at++, moved = true;
      for (u32 k = 0; k < b->g->nedges && of->kind != TASK_W; k++) {
        const sched_edge *e = &b->g->edge[k];
        const bool is = of->kind == TASK_F ? e->from == of->stage : e->to == of->stage && gradient(b, e);
        const u32 to = of->kind == TASK_F ? e->to : e->from;
        if (is && b->g->place[to] != p) open[p] |= 1u << k, x->sending = true;
      }
    }
  }
  *end = 0;
  for (u32 p = 0; p < b->pn->nseqs; p++) {
    left |= c[p].at < seq[p].n || c[p].sending;
    *end = MAX(*end, c[p].now);
  }
  return !left;
}

// Has every task at most one message to other places, and gets at most one?
static bool is_chain(const bed *b) {
  for (u32 i = 0; i < b->g->nstages; i++) {
    u32 n[2] = {0}, out;
    for (u32 k = 0; k < b->g->nedges; k++) {
      n[0] += b->g->edge[k].from == i && b->g->place[b->g->edge[k].to] != b->g->place[i];
      n[1] += b->g->edge[k].to == i && b->g->place[b->g->edge[k].from] != b->g->place[i];
    }
    const sched_task f = {.stage = (u16)i, .kind = TASK_F};
    receiver(b, &f, &out);
    if (n[0] > 1 || n[1] > 1 || out > 1) return false;
  }
  return true;
}

// ---- where messages stand -----------------------------------------------------------------------------------
// After the task that makes it and before the next one of that place; after what its receiver ran before, and before
// what reads it.
static bool stand_well(const bed *b, arena *a) {
  const func_info *m = func_get(b->p, b->p->main);
  bool ok = true;
  u32 *latest = ZNEWN(a, u32, b->g->nplaces); // span + 1
  for (u32 k = 0; k < b->p->tasks.n && ok; k++) {
    const task_span *x = span(b, k);
    if (!x->letter) continue;
    const u32 place = b->g->place[x->stage];
    if (!x->send) {
      latest[place] = k + 1;
      continue;
    }
    bool any = false;
    for (u32 i = x->from; i < span_end(b, k); i++) any |= m->body.v[i].op == OP_send;
    const task_span *of = latest[place] ? span(b, latest[place] - 1) : NULL; // W may stand for its B
    ok = !any || (of && of->stage == x->stage && of->microbatch == x->microbatch &&
                  (of->letter == x->letter || of->letter == 'W'));
    if (!any) continue;
    u32 next = k + 1; // of its receiver: the task that reads it
    const group to = type_get(b->p, m->values.v[m->body.v[x->from].res].ty)->g;
    for (; next < b->p->tasks.n; next++) {
      const task_span *y = span(b, next);
      const instr *call = NULL;
      for (u32 i = y->from; i < span_end(b, next); i++)
        if (m->body.v[i].op == OP_call) call = &m->body.v[i];
      if (y->letter && !y->send && call && call->g.i == to.i) break;
    }
    if (next == b->p->tasks.n) return false;
    ok = ok && span(b, next)->microbatch == x->microbatch &&
         (span(b, next)->letter == 'F') == (x->letter == 'F');
  }
  return ok;
}

static u32 ran, stopped, timed, slower;

static void check(plans_model *m, plan *pn, u64 seed, arena *a) {
  plan_probed about;
  // The clock below has one of each stage, on one place, in one pass.
  if (pn->nreplicas > 1 || !plan_has_probe(pn) || (pn->made.row && plan_unrolls(pn->made.row))) return;
  prog *probe = plan_probe(m->pl, pn, NULL, a, false, &about);
  if (!probe) return;
  prog_free(probe);
  bed b = {.pn = pn, .g = &about.graph, .a = a};
  if (b.g->nedges > 31 || b.g->nplaces < 2) return;
  for (u32 i = 0; b.g->forward && i < b.g->nstages; i++)
    if (b.g->forward[i]) return; // of which the plan has fewer tasks than its sequences say
  i64 want = 0, with = 0;
  const bool runs = by_the_clock(&b, NULL, &want);
  pn->rendezvous = true;
  prog *p = plan_apply(m->pl, pn, NULL);
  CHECK_MSG(runs == (p != NULL), "%s, seed %llu: %s", m->name, (unsigned long long)seed,
            diag_render(m->c, a));
  if (!p)
    CHECK_MSG(diag_get(m->c, 0).id == E_DEADLOCK, "%s, seed %llu: %s", m->name, (unsigned long long)seed,
              diag_render(m->c, a));
  stopped += !p, ran += p != NULL;
  if (!p) return;
  b.p = p;
  const task_of *t = read_program(&b);
  CHECK_MSG(stand_well(&b, a), "%s, seed %llu", m->name, (unsigned long long)seed);
  if (is_chain(&b)) {
    const sim_opts so = {.mode = SIM_FLAT, .no_bytes = true, .cost = price, .cost_arg = &b};
    sim_result r;
    REQUIRE(by_the_clock(&b, t, &want) && sim_run(m->c, a, p, NULL, &so, &r));
    CHECK_MSG(r.makespan_ps == want, "%s, seed %llu: %lld ps, but by the clock %lld", m->name,
              (unsigned long long)seed, (long long)r.makespan_ps, (long long)want);
    timed++;
    with = r.makespan_ps;
    plan goes = *pn;
    goes.rendezvous = false;
    b.p = plan_apply(m->pl, &goes, NULL);
    REQUIRE(b.p);
    read_program(&b);
    REQUIRE(sim_run(m->c, a, b.p, NULL, &so, &r));
    slower += with != r.makespan_ps;
    prog_free((prog *)(uintptr_t)b.p);
  }
  prog_free(p);
}

TEST(buffers_are_the_clock) {
  typedef plan *maker(plans_model *, u64 *, arena *);
  static maker *const make[] = {plans_hybrid, plans_ordered};
  const char *one = getenv("SEED");
  for (u32 i = 0; i < plans_count(); i++) {
    plans_model m;
    plans_open(&m, i);
    for (u64 seed = one ? strtoull(one, NULL, 0) : 1;
         seed <= (one ? strtoull(one, NULL, 0) : test_cases(110)); seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, i);
      plan *pn = make[seed % 2](&m, &rng, a);
      if (pn) pn->send_stream = pn->sum_stream = (sym){0}, pn->send_channels = 0, pn->rendezvous = false;
      diag_clear(m.c);
      if (pn && pn->seqs && pn->nmeshes == 1) check(&m, pn, seed, a);
      diag_clear(m.c);
      arena_free(a);
    }
    plans_close(&m);
  }
  printf("  %u plans ran, %u stop; %u times, %u others where senders go on\n", ran, stopped, timed, slower);
  if (one || !test_all_cases()) return;
  CHECK(ran >= 40 && stopped >= 40 && timed >= 30 && slower >= 10);
}
