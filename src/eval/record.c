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
  const i64 since = ticks_now();
  const bool ok = r->inner.receive(r->inner.arg, from, data, bytes);
  r->now.from = from, r->now.waited += ticks_now() - since;
  return ok;
}

static bool all_reduce_noted(void *arg, const u32 *ranks, u32 n, void *data, i64 count, int bytes,
                             bool largest) {
  recorder *r = arg;
  r->now.from = r->now.to = ranks[ranks[0] == r->inner.rank]; // another one: it is no computation
  return r->inner.all_reduce(r->inner.arg, ranks, n, data, count, bytes, largest);
}

// Room for events, touched now: pages that the system gives while a step runs cost it more than its events do.
static block *block_new(recorder *r, u64 events) {
  const size_t size = sizeof(block) + (size_t)events * sizeof(noted);
  block *b = arena_alloc(r->a, size);
  for (size_t at = 0; at < size; at += 4096) ((volatile char *)b)[at] = 0;
  b->next = NULL, b->n = 0, b->room = (u32)events;
  r->ahead += events;
  return b;
}

recorder *record_new(arena *a, interp *m, u32 nranks, u64 most) {
  recorder *r = ZNEWN(a, recorder, 1);
  r->a = a, r->m = m, r->nranks = nranks, r->most = most, r->nstreams = m->p->streams.n;
  r->inner = *m->link;
  r->outer = (eval_link){.rank = r->inner.rank,
                         .arg = r,
                         .send = send_noted,
                         .receive = receive_noted,
                         .all_reduce = r->inner.all_reduce ? all_reduce_noted : NULL,
                         .beside = r->inner.beside};
  r->fn = m->p->main.i, r->microbatch = TRACE_NONE;
  r->layers = ir_layers_of(a, m->p);
  r->count = ZNEWN(a, u32, r->nstreams + LANES_AFTER);
  r->sent = ZNEWN(a, u32, nranks), r->received = ZNEWN(a, u32, nranks);
  r->of = ZNEWN(a, parts *, m->p->funcs.n);
  r->first = r->last = r->spare = block_new(r, MIN(most, BLOCK));
  ticks_choose();
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
    *vec_push(r->a, &r->now.part) = (noted){.func = MESSAGE,
                                            .instr = s->sends,
                                            .g = {s->hop},
                                            .step = s->chunk,
                                            .task = s->early,
                                            .seq = s->seq,
                                            .peer = s->peer,
                                            .start = s->start,
                                            .dur = s->dur,
                                            .waited = s->waited,
                                            .bytes = s->bytes};
  }
}

// ---- events ---------------------------------------------------------------------------------------------
static void make_room(recorder *r, u64 events) {
  while (r->ahead < events) r->spare = r->spare->next = block_new(r, BLOCK);
}

static noted *next_note(recorder *r) {
  if (!r->ahead) make_room(r, 1);
  if (r->last->n == r->last->room) r->last = r->last->next;
  return &r->last->v[r->last->n];
}

// What was put where next_note says.
static void keep_note(recorder *r) { r->last->n++, r->n++, r->ahead--; }

static void note(recorder *r, const noted *x, u32 lane) {
  *next_note(r) = *x;
  keep_note(r);
  r->count[lane] += x->peer != IN_MESSAGES;
}

// What is put together of all that came is part of the last to come.
static void note_parts(recorder *r, noted *x, u32 lane) {
  noted *last = &r->now.part.v[r->now.part.n - 1];
  x->peer = IN_MESSAGES;
  if (!last->instr) last->dur = x->start + x->dur - last->start;
  x->dur = 0;
  keep_note(r);
  for (u32 k = 0; k < r->now.part.n; k++) note(r, &r->now.part.v[k], lane);
}

static bool moves(const instr *i) { return op_row_of(i->op)->flags & OPF_COMM; }

static parts *known_parts(recorder *r, func fn, group g) {
  parts *x = r->of[fn.i];
  while (x && x->g.i != g.i) x = x->next;
  if (x) return x;
  const func_info *f = func_get(r->m->p, fn);
  x = arena_zalloc(r->a, sizeof *x + f->body.n);
  x->g = g, x->next = r->of[fn.i];
  for (u32 k = 0; k < f->body.n; k++) x->part[k] = moves(&f->body.v[k]) ? PART_MOVES : 0;
  return r->of[fn.i] = x;
}

// A step is recorded whole or not at all, if there is room for one like the one before.
void record_step_begin(recorder *r) {
  const u64 like = r->step ? (r->n - r->begun) : 0;
  r->full |= r->n + like > r->most || r->seq > UINT32_MAX / 2;
  r->begun = r->n;
  if (!r->full) make_room(r, like);
  r->here = known_parts(r, r->m->p->main, (group){0});
  r->began = ticks_both(), r->at = 0;
}
void record_step_end(recorder *r) {
  if (r->full) {
    r->left_out++;
  } else {
    const ticks_pair now = ticks_both();
    note(r,
         &(noted){.step = r->step,
                  .microbatch = NARROW_NONE,
                  .start = r->began.ticks,
                  .dur = now.ticks - r->began.ticks,
                  .waited = r->began.ns,
                  .bytes = now.ns},
         r->nstreams + LANE_STEPS);
  }
  r->step++;
}

void record_pairs(recorder *r, bool only) { r->now.message &= only; }

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
  parts *here = r->here;
  r->layer = layer_of(r, index), r->microbatch = ir_microbatch(m->p, i->coord, microbatch),
  r->fn = i->callee.i, r->here = known_parts(r, i->callee, group_bind(i->g, f->g)), r->depth++, r->at = 0;
  const bool ok = eval_exec(m, f, index);
  r->layer = layer, r->microbatch = microbatch, r->fn = fn, r->here = here, r->depth--, r->at = 0;
  return ok;
}

// A rank that receives later than its sender sends counts it where it stands, as all others do.
u32 record_number(recorder *r) { return ++r->seq; }

// ---- beside computation ------------------------------------------------------------------------------------
static void note_call(recorder *r, u32 which, u32 number, i64 start, i64 until) {
  const noted x = {.func = CALL,
                   .instr = which,
                   .step = r->step,
                   .microbatch = NARROW_NONE,
                   .peer = TRACE_NONE,
                   .seq = number,
                   .start = start,
                   .dur = until - start};
  if (!r->full) note(r, &x, r->nstreams + LANE_HOST);
}

void record_begun(recorder *r, errand *e) {
  r->now.begun = e;
  e->t.timed = true;
  if (!e->t.messages) record_number_messages(r, &e->t);
}
void record_waits(recorder *r) { r->waits = ticks_now(); }

// What the rank does next has waited until now.
void record_ended(recorder *r, errand *e) {
  const u32 n = r->now.part.n;
  note_call(r, CALL_WAIT, 0, r->waits, ticks_now());
  record_messages(r, &e->t);
  if (e->note && !r->full) {
    note(r, e->note, r->nstreams + LANE_BESIDE);
    for (u32 k = n; k < r->now.part.n; k++)
      note(r, &r->now.part.v[k], r->nstreams + (r->now.part.v[k].task ? LANE_EARLY : LANE_BESIDE));
  }
  r->now.part.n = n;
  r->now.start = ticks_now();
}

// A call of the host begins it; its messages are noted once it has ended.
static void note_begun(recorder *r, noted *x) {
  errand *e = r->now.begun;
  noted *kept = e->note = arena_dup(e->a, x, sizeof *x);
  kept->peer = IN_MESSAGES, kept->dur = ++r->calls;
  note_call(r, CALL_BEGIN, r->calls, x->start, x->start + x->dur); // the next one may begin there
}

static void note_instr(recorder *r, const frame *f, u32 index, u32 number) {
  const instr *i = &f->f->body.v[index];
  noted *const x = next_note(r);
  *x = (noted){.func = r->fn,
               .instr = index + 1,
               .g = f->g,
               .step = r->step,
               .microbatch = narrow(ir_microbatch(r->m->p, i->coord, r->microbatch), NARROW_NONE),
               .layer = narrow(layer_of(r, index), 0),
               .task = r->task,
               .peer = TRACE_NONE,
               .start = r->now.start,
               .dur = r->at - r->now.start,
               .waited = r->now.waited,
               .bytes = -1};
  if (r->here->part[index] & PART_MOVES) note_moved(r, f, i, number, x);
  if (r->now.begun)
    note_begun(r, x);
  else if (r->now.part.n)
    note_parts(r, x, i->strm);
  else
    keep_note(r), r->count[i->strm]++;
}

// Nothing of it is noted, and what it takes is not the next one's.
static bool pass_over(recorder *r, interp *m, frame *f, u32 index) {
  r->at = 0, r->now.part.n = 0, r->now.begun = NULL;
  return eval_exec(m, f, index);
}

// The clock is read where an instruction ends; the next one has begun there, unless the rank has done more in between than
// to drop values.
bool record_exec(recorder *r, interp *m, frame *f, u32 index, u32 number) {
  const instr *i = &f->f->body.v[index];
  if (!r->depth) r->top = index, r->task = ir_has_tasks(m->p) ? ir_task_at(m->p, index) : 0;
  if (i->op == OP_call) return around(r, m, f, index);
  if (i->op == OP_pack || i->op == OP_unpack) return eval_exec(m, f, index);
  u8 *part = &r->here->part[index];
  if (!number && *part & PART_MOVES) number = ++r->seq;
  if (*part & PART_NONE || r->full) return pass_over(r, m, f, index);
  r->now.to = r->now.from = TRACE_NONE, r->now.waited = 0, r->now.message = true;
  r->now.part.n = 0, r->now.begun = NULL;
  r->now.start = r->at ? r->at : ticks_now();
  const bool ok = eval_exec(m, f, index);
  r->at = ticks_now();
  if (!ok) return false;
  if (!(*part & PART_TAKEN)) *part |= takes_part(r, f, i) ? PART_TAKEN : PART_NONE;
  if (*part & PART_TAKEN) note_instr(r, f, index, number);
  return true;
}
