// record.c - what a rank executes, as it does: every instruction with its times, and of communication who took part,
// how much moved and how long this rank waited. Not files (report/), not what they say of a job (diagnose/).
//
// Idea: while a step runs only what will be forgotten is noted, 64 bytes an event in blocks that never move; all that
// the program says is looked up when the recording is played as a timeline (trace.h). Every rank walks the whole
// program in its one order, so the number of a communication is the same on all of its members, and the number of a
// message from one rank to another is the same on both: ends are tied by numbers that nobody has to exchange.
#include "eval/record.h"
#include <time.h>

static i64 ns_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (i64)t.tv_sec * 1000000000 + t.tv_nsec;
}
static i64 now_ns(const recorder *r) { return ns_of(CLOCK_MONOTONIC) - r->zero_ns; }

// Both clocks at one moment: the two readings between which least has passed.
static void set_clocks(recorder *r) {
  i64 least = INT64_MAX;
  for (u32 k = 0; k < 32; k++) {
    const i64 before = ns_of(CLOCK_MONOTONIC), date = ns_of(CLOCK_REALTIME),
              passed = ns_of(CLOCK_MONOTONIC) - before;
    if (passed < least) least = passed, r->zero_ns = before + passed / 2, r->base_ns = date;
  }
}

// ---- messages -------------------------------------------------------------------------------------------
static bool send_noted(void *arg, u32 to, const void *data, i64 bytes) {
  recorder *r = arg;
  r->now.to = to;
  return r->inner.send(r->inner.arg, to, data, bytes);
}
static bool receive_noted(void *arg, u32 from, void *data, i64 bytes) {
  recorder *r = arg;
  const i64 since = now_ns(r);
  const bool ok = r->inner.receive(r->inner.arg, from, data, bytes);
  r->now.from = from, r->now.waited_ns += now_ns(r) - since;
  return ok;
}

recorder *record_new(arena *a, interp *m, u32 nranks, u64 most) {
  recorder *r = ZNEWN(a, recorder, 1);
  r->a = a, r->m = m, r->nranks = nranks, r->most = most, r->nstreams = m->p->streams.n;
  r->inner = *m->link;
  r->outer = (eval_link){.rank = r->inner.rank,
                         .arg = r,
                         .send = send_noted,
                         .receive = receive_noted,
                         .beside = r->inner.beside};
  r->fn = m->p->main.i, r->microbatch = TRACE_NONE;
  r->layers = ir_layers_of(a, m->p);
  r->count = ZNEWN(a, u32, r->nstreams + LANES_AFTER);
  r->parts = a;
  r->sent = ZNEWN(a, u32, nranks), r->received = ZNEWN(a, u32, nranks);
  r->first = r->last = ZNEWN(a, block, 1);
  set_clocks(r);
  m->link = &r->outer, m->record = r;
  return r;
}

void record_number_messages(recorder *r, transfer *t) {
  for (u32 k = 0; k < t->step.n; k++) {
    transfer_step *s = &t->step.v[k];
    s->seq = ++(s->sends ? r->sent : r->received)[s->peer];
  }
}

void record_messages(recorder *r, const transfer *t) {
  for (u32 k = 0; k < t->step.n; k++) {
    const transfer_step *s = &t->step.v[k];
    *vec_push(r->parts, &r->now.part) = (noted){.func = MESSAGE,
                                                .instr = s->sends,
                                                .g = {s->hop},
                                                .step = s->chunk,
                                                .seq = s->seq,
                                                .peer = s->peer,
                                                .start_ns = s->start_ns - r->zero_ns,
                                                .dur_ns = s->dur_ns,
                                                .waited_ns = s->waited_ns,
                                                .bytes = s->bytes};
  }
}

// ---- events ---------------------------------------------------------------------------------------------
static void note(recorder *r, const noted *x, u32 lane) {
  if (r->last->n == BLOCK) r->last = r->last->next = ZNEWN(r->a, block, 1);
  r->last->v[r->last->n++] = *x;
  r->count[lane] += x->peer != IN_MESSAGES, r->n++;
}

// What is put together of all that came is part of the last to come.
static void note_parts(recorder *r, noted *x, u32 lane) {
  noted *last = &r->now.part.v[r->now.part.n - 1];
  x->peer = IN_MESSAGES;
  if (!last->instr) last->dur_ns = x->start_ns + x->dur_ns - last->start_ns;
  x->dur_ns = 0;
  note(r, x, lane);
  for (u32 k = 0; k < r->now.part.n; k++) note(r, &r->now.part.v[k], lane);
}

// A step is recorded whole or not at all, if there is room for one like the one before.
void record_step_begin(recorder *r) {
  const u64 like = r->step ? (r->n - r->begun) : 0;
  r->full |= r->n + like > r->most || r->seq > UINT32_MAX / 2;
  r->begun = r->n;
  r->step_ns = now_ns(r);
}
void record_step_end(recorder *r) {
  if (r->full)
    r->left_out++;
  else
    note(r,
         &(noted){.step = r->step,
                  .microbatch = NARROW_NONE,
                  .start_ns = r->step_ns,
                  .dur_ns = now_ns(r) - r->step_ns},
         r->nstreams + LANE_STEPS);
  r->step++;
}

void record_pairs(recorder *r, bool only) { r->now.message &= only; }

static bool moves(const instr *i) { return op_row_of(i->op)->flags & OPF_COMM; }
static int member_of(const recorder *r, const held *v) {
  return v->elem ? -1 : eval_member(r->m, v->g, r->inner.rank);
}

// Does this rank have a part in it?
static bool takes_part(const recorder *r, const frame *f, const instr *i) {
  const u32 nopd = instr_nopd(f->f, i);
  if (!moves(i) && i->op != OP_join && i->op != OP_part)
    return eval_member(r->m, group_bind(i->g, f->g), r->inner.rank) >= 0;
  for (u32 k = 0; k < nopd; k++)
    if (member_of(r, &f->v[opd_of(f->f, i, k)]) >= 0) return true;
  return i->nres && member_of(r, &f->v[i->res]) >= 0;
}

static i64 bytes_here(const recorder *r, const held *v) {
  const int k = member_of(r, v);
  return k >= 0 && v->piece[k] ? v->piece[k]->bytes : 0;
}

static bool in_both(const recorder *r, group x, group y) {
  for (u32 k = 0; k < eval_members(r->m, x); k++)
    if (eval_member(r->m, y, eval_rank_of(r->m, x, k)) >= 0) return true;
  return false;
}

// A message is between two ranks where each has one other, on one side. Else all members meet.
static void note_moved(recorder *r, const frame *f, const instr *i, u32 number, noted *x) {
  const held *in = &f->v[opd_of(f->f, i, 0)], *out = &f->v[i->res];
  x->seq = number;
  x->bytes = MAX(bytes_here(r, in), bytes_here(r, out));
  if (r->now.to == TRACE_NONE && r->now.from == TRACE_NONE && !r->now.begun)
    x->seq = 0; // nothing left this rank, nothing came
  if (i->op != OP_send || !r->now.message || in_both(r, in->g, out->g)) return;
  x->peer = r->now.to != TRACE_NONE ? r->now.to : r->now.from;
  if (x->peer < r->nranks) x->seq = ++*(r->now.to != TRACE_NONE ? &r->sent[x->peer] : &r->received[x->peer]);
}

static u32 layer_of(const recorder *r, u32 index) {
  if (r->layer) return r->layer;
  return ir_layer_at(r->layers, &(ir_layer_place){.func = r->fn,
                                                  .index = index,
                                                  .depth = r->depth,
                                                  .top = r->top,
                                                  .task = r->task,
                                                  .around = r->layer});
}

static u16 narrow(u32 x, u16 other) { return x < NARROW_NONE ? (u16)x : other; }

static bool around(recorder *r, interp *m, frame *f, u32 index) {
  const instr *i = &f->f->body.v[index];
  const u32 microbatch = r->microbatch, fn = r->fn, layer = r->layer;
  r->layer = layer_of(r, index), r->microbatch = ir_microbatch(m->p, i->coord, microbatch),
  r->fn = i->callee.i, r->depth++;
  const bool ok = eval_exec(m, f, index);
  r->layer = layer, r->microbatch = microbatch, r->fn = fn, r->depth--;
  return ok;
}

// A rank that receives later than its sender sends counts it where it stands, as all others do.
u32 record_number(recorder *r) { return ++r->seq; }

// ---- beside computation ------------------------------------------------------------------------------------
static void note_call(recorder *r, u32 which, u32 number, i64 start_ns) {
  const noted x = {.func = CALL,
                   .instr = which,
                   .step = r->step,
                   .microbatch = NARROW_NONE,
                   .peer = TRACE_NONE,
                   .seq = number,
                   .start_ns = start_ns,
                   .dur_ns = now_ns(r) - start_ns};
  if (!r->full) note(r, &x, r->nstreams + LANE_HOST);
}

void record_begun(recorder *r, errand *e) {
  r->now.begun = e;
  e->t.timed = true;
  if (!e->t.messages) record_number_messages(r, &e->t);
}
void record_waits(recorder *r) { r->waits_ns = now_ns(r); }

// What the rank does next has waited until now.
void record_ended(recorder *r, errand *e) {
  const u32 n = r->now.part.n;
  note_call(r, CALL_WAIT, 0, r->waits_ns);
  record_messages(r, &e->t);
  if (e->note && !r->full) {
    note(r, e->note, r->nstreams + LANE_BESIDE);
    for (u32 k = n; k < r->now.part.n; k++) note(r, &r->now.part.v[k], r->nstreams + LANE_BESIDE);
  }
  r->now.part.n = n;
  r->now.start_ns = now_ns(r);
}

// A call of the host begins it; its messages are noted once it has ended.
static void note_begun(recorder *r, noted *x) {
  errand *e = r->now.begun;
  note_call(r, CALL_BEGIN, ++r->calls, x->start_ns);
  x->peer = IN_MESSAGES, x->dur_ns = r->calls;
  e->note = arena_dup(e->a, x, sizeof *x);
}

bool record_exec(recorder *r, interp *m, frame *f, u32 index, u32 number) {
  const instr *i = &f->f->body.v[index];
  if (!r->depth) r->top = index, r->task = ir_has_tasks(m->p) ? ir_task_at(m->p, index) : 0;
  if (i->op == OP_call) return around(r, m, f, index);
  if (i->op == OP_pack || i->op == OP_unpack) return eval_exec(m, f, index);
  if (!number) r->seq += moves(i);
  r->now.to = r->now.from = TRACE_NONE, r->now.waited_ns = 0, r->now.message = true;
  r->now.part.n = 0, r->now.begun = NULL;
  r->now.start_ns = now_ns(r);
  const bool ok = eval_exec(m, f, index);
  const i64 start = r->now.start_ns, dur = now_ns(r) - start;
  if (!ok || !takes_part(r, f, i)) return ok;
  noted x = {.func = r->fn,
             .instr = index + 1,
             .g = f->g,
             .step = r->step,
             .microbatch = narrow(ir_microbatch(m->p, i->coord, r->microbatch), NARROW_NONE),
             .layer = narrow(layer_of(r, index), 0),
             .task = r->task,
             .peer = TRACE_NONE,
             .start_ns = start,
             .dur_ns = dur,
             .waited_ns = r->now.waited_ns,
             .bytes = -1};
  if (moves(i)) note_moved(r, f, i, number ? number : r->seq, &x); // numbers go on where nothing is noted
  if (r->full) return ok;
  if (r->now.begun)
    note_begun(r, &x);
  else if (r->now.part.n)
    note_parts(r, &x, i->strm);
  else
    note(r, &x, i->strm);
  return ok;
}
