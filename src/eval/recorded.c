// recorded.c - what a rank has recorded as a source of events (trace.h). Not how it was noted (record.c), not files.
#include "eval/record.h"
#include <unistd.h>

typedef struct {
  trace_source of; // first: play gets this
  const recorder *r;
  const u32 *first_kind;     // by function: of its instruction 1
  u32 step_kind, call_kind;  // the latter of CALL_BEGIN
  u32 first_step;            // number of the first one that was recorded
  ticks_pair *began, *ended; // by step: what both clocks said
  hmap known;                // of function, instruction and group: communications
  arena *a;                  // in which they are
  VEC(trace_comm) comm;
} recorded;

// ---- communications -------------------------------------------------------------------------------------
// Ranks of the members that meet, "0,2", and how many there are.
static sym members_of(const recorded *s, group g, const u32 *member, u32 n) {
  ctx *c = s->r->m->c;
  strbuf b = {.a = s->a};
  for (u32 k = 0; k < n; k++) sb_fmt(&b, "%s%u", k ? "," : "", eval_rank_of(s->r->m, g, member[k]));
  return sym_of(c, sb_str(&b));
}

// Does every member of the subgroup have a part in it, whatever it holds?
static bool meets_all(opcode op) {
  return op != OP_send && op != OP_permute && op != OP_exchange && op != OP_all_to_all &&
         op != OP_halo_exchange;
}

// The subgroups of such a group over the axes are apart.
static void put_lead(const recorded *s, const instr *i, group g, trace_comm *m) {
  const attr *over = attr_get(attrs_get(s->r->m->p, i->at), A_over);
  const int member = eval_member(s->r->m, g, s->r->inner.rank);
  if (!g.i || !over || !over->n || member < 0) return;
  const u32 lead = group_lead(s->r->m->p->sp, g, (u32)member, over->u.axes, over->n);
  m->group = sym_fmt(s->r->m->c, "%s@%u", sym_str(s->r->m->c, m->group), eval_rank_of(s->r->m, g, lead));
}

// The subgroup over the axes that are named, or all of the group.
static void put_members(recorded *s, const instr *i, group g, trace_comm *m) {
  const space *sp = s->r->m->p->sp;
  const attr *over = attr_get(attrs_get(s->r->m->p, i->at), A_over);
  const u32 all = eval_members(s->r->m, g), member = (u32)MAX(eval_member(s->r->m, g, s->r->inner.rank), 0);
  u32 *v = NEWN(s->a, u32, all), n = all, lead = 0;
  strbuf name = {.a = s->a};
  for (u32 k = 0; k < all; k++) v[k] = k;
  if (g.i && over && over->n) {
    n = group_offsets(sp, g, over->u.axes, over->n, v, all),
    lead = group_lead(sp, g, member, over->u.axes, over->n);
    for (u32 k = 0; k < n; k++) v[k] += lead;
    for (u32 k = 0; k < over->n; k++)
      sb_fmt(&name, "%s%s", k ? "," : "", sym_str(s->r->m->c, axis_get(sp, over->u.axes[k])->name));
  }
  m->members = members_of(s, g, v, n), m->size = n;
  m->group = sym_of(s->r->m->c, name.n ? sb_str(&name) : "all");
}

static group type_group(const recorded *s, const func_info *f, value v, group bound) {
  return group_bind(val_type(s->r->m->p, f, v)->g, bound);
}

// What does not change from one execution to the next.
static trace_comm comm_of(recorded *s, const noted *x) {
  const prog *p = s->r->m->p;
  const func_info *f = func_get(p, (func){x->func});
  const instr *i = &f->body.v[x->instr - 1];
  trace_comm m = trace_comm_of(sym_of(p->c, op_row_of(i->op)->name));
  if (meets_all(i->op)) {
    put_members(s, i, type_group(s, f, i->res, x->g), &m);
  } else if (x->peer ==
             TRACE_NONE) { // who takes part depends on what they hold: those that have this group meet
    if (i->op == OP_send) m.op = sym_of(p->c, "send_recv");
    m.group = sym_fmt(p->c, "%s.%u", sym_str(p->c, f->name), x->instr);
    put_lead(s, i, type_group(s, f, i->res, x->g), &m);
  }
  return m;
}

static const trace_comm *known_comm(recorded *s, const noted *x) {
  const u64 h =
      hash_u64(hash_step(hash_step(hash_step(11, x->func), x->instr), x->g.i), x->peer == TRACE_NONE);
  u32 at = hmap_get(&s->known, h);
  if (!at) {
    *vec_push(s->a, &s->comm) = comm_of(s, x);
    hmap_add(s->a, &s->known, h, at = s->comm.n);
  }
  assert(s->comm.v);
  return &s->comm.v[at - 1];
}

static trace_comm this_comm(recorded *s, const noted *x) {
  const interp *m = s->r->m;
  trace_comm y = *known_comm(s, x);
  y.seq = x->seq, y.bytes = x->bytes;
  if (x->peer == TRACE_NONE) return y;
  const func_info *f = func_get(m->p, (func){x->func});
  const group to = type_group(s, f, f->body.v[x->instr - 1].res, x->g);
  y.peer = x->peer;
  if (eval_member(m, to, s->r->inner.rank) >= 0) y.op = sym_of(m->c, "recv");
  return y;
}

// One message of a communication that consists of them: where it stands in it, beside what ties it to its other end. To
// a server and from it they are what dPRO calls them.
static trace_comm part_comm(const recorded *s, const noted *x, const noted *part) {
  const prog *p = s->r->m->p;
  const instr *i = &func_get(p, (func){x->func})->body.v[x->instr - 1];
  trace_comm m = trace_comm_of(sym_of(p->c, part->instr ? "send" : "recv"));
  if (attr_int(attrs_get(p, i->at), A_server, 0))
    m.group = sym_of(p->c, i->op == OP_reduce ? "PUSH" : "PULL");
  m.seq = part->seq, m.peer = part->peer, m.bytes = part->bytes;
  m.of = x->seq, m.hop = part->g.i, m.chunk = part->step;
  return m;
}

// ---- playing --------------------------------------------------------------------------------------------
// On the clock that tells the time since recording began.
static i64 ps_at(const recorded *s, u32 step, i64 ticks) {
  return (ticks_to_ns(s->began[step], s->ended[step], ticks) - s->r->zero_ns) * 1000;
}

// x: what a message is part of, else what was noted itself.
static void play_one(recorded *s, const noted *x, const noted *at, u32 lane, trace_tell *tell, void *arg) {
  trace_event e = {.lane = lane};
  trace_comm comm;
  const bool call = x->func == CALL, comms = !call && x->seq;
  if (comms) comm = at == x ? this_comm(s, x) : part_comm(s, x, at);
  e.kind = call ? s->call_kind + x->instr : x->func ? s->first_kind[x->func] + x->instr - 1 : s->step_kind;
  e.launch = call ? x->seq : at != x ? (u32)x->dur : 0;
  e.start_ps = ps_at(s, x->step, at->start), e.dur_ps = ps_at(s, x->step, at->start + at->dur) - e.start_ps;
  if (x->func && at->waited) e.waited_ps = MAX(ps_at(s, x->step, at->start + at->waited) - e.start_ps, 1000);
  e.microbatch = x->microbatch == NARROW_NONE ? TRACE_NONE : x->microbatch;
  e.task = x->task, e.layer = x->layer, e.step = s->first_step + x->step;
  e.from_lane = e.lane, e.from_ps = e.start_ps, e.comm = comms ? &comm : NULL;
  tell(arg, &e);
}

// part: a message of x; NULL: none.
static u32 lane_of(const recorder *r, const noted *x, const noted *part) {
  if (x->func == CALL || !x->func) return r->nstreams + (x->func ? LANE_HOST : LANE_STEPS);
  if (part && x->dur) return r->nstreams + (part->task ? LANE_EARLY : LANE_BESIDE);
  return func_get(r->m->p, (func){x->func})->body.v[x->instr - 1].strm;
}

static void play(const trace_source *of, arena *scratch, u32 from, u32 to, trace_tell *tell, void *arg) {
  recorded *s = (recorded *)(uintptr_t)of; // what is known of communications grows
  const u32 first = s->r->inner.rank * of->nstreams;
  const noted *whole = NULL;
  (void)scratch;
  for (const block *b = s->r->first; b; b = b->next)
    for (u32 k = 0; k < b->n; k++) {
      const noted *at = &b->v[k], *x = at->func == MESSAGE ? whole : at;
      assert(x);
      const u32 lane = first + lane_of(s->r, x, at != x ? at : NULL);
      if (at->peer == IN_MESSAGES)
        whole = at;
      else if (lane >= from && lane < to)
        play_one(s, x, at, lane, tell, arg);
    }
}

static trace_kind kind_of(const instr *i, u32 fn, u32 number) {
  const op_row *row = op_row_of(i->op);
  trace_kind k = {.what = i->op, .func = fn, .instr = number, .where = i->where, .bytes = -1};
  k.flags =
      (u8)((row->flags & OPF_COMM ? TRACE_COMM : 0) | (i->flags & INSTR_BACKWARD ? TRACE_BACKWARD : 0) |
           (i->flags & INSTR_UPDATE ? TRACE_UPDATE : 0) | (i->flags & INSTR_RECOMPUTE ? TRACE_RECOMPUTE : 0));
  return k;
}

static void describe_kinds(recorded *s, arena *a) {
  const prog *p = s->r->m->p;
  u32 nfuncs, n = 0, *order = ir_call_order(p, a, &nfuncs), *first = ZNEWN(a, u32, p->funcs.n);
  const u32 step = op_limit(p->c); // behind the operators; then the calls
  sym *name = ZNEWN(a, sym, step + 1 + CALLS), *func_name = ZNEWN(a, sym, p->funcs.n);
  for (u32 k = 0; k < nfuncs; k++) first[order[k]] = n, n += func_get(p, (func){order[k]})->body.n;
  trace_kind *kind = NEWN(a, trace_kind, n + 1 + CALLS);
  for (u32 k = 0; k < nfuncs; k++) {
    const func_info *f = func_get(p, (func){order[k]});
    for (u32 j = 0; j < f->body.n; j++) kind[first[order[k]] + j] = kind_of(&f->body.v[j], order[k], j + 1);
    func_name[order[k]] = f->name;
  }
  kind[n] = (trace_kind){.what = (u16)step, .bytes = -1, .is = TRACE_STEP};
  for (u32 k = 0; k < CALLS; k++)
    kind[n + 1 + k] = (trace_kind){.what = (u16)(step + 1 + k), .bytes = -1, .is = TRACE_CALL};
  op_names(p->c, name);
  name[step] = sym_of(p->c, "step");
  name[step + 1 + CALL_BEGIN] = sym_of(p->c, "begin communication");
  name[step + 1 + CALL_WAIT] = sym_of(p->c, "wait for communication");
  s->first_kind = first, s->step_kind = n, s->call_kind = n + 1;
  s->of.kind = kind, s->of.name = name, s->of.nnames = step + 1 + CALLS, s->of.func = func_name;
}

static const trace_task *tasks_of(const prog *p, arena *a) {
  if (!ir_has_tasks(p)) return NULL;
  trace_task *v = NEWN(a, trace_task, p->tasks.n + 1);
  for (u32 k = 0; k < p->tasks.n; k++) {
    const task_span *x = &p->tasks.v[k];
    v[k + 1] = (trace_task){x->stage, x->microbatch, x->letter, x->send};
  }
  return v;
}

// Of ranks below this one nothing is known.
static sym said(ctx *c, const char *s) { return s ? sym_of(c, s) : (sym){0}; }
static const char *collectives_of(const interp *m) {
  const i64 bytes = m->o.ring_bytes;
  return !bytes ? "direct" : bytes > 0 ? "ring" : bytes == EVAL_RING_LIBRARY ? "mpi" : "auto";
}
static const trace_process *processes_of(const recorder *r, arena *a, const eval_job *of) {
  ctx *c = r->m->c;
  char host[256] = "";
  trace_process *p = ZNEWN(a, trace_process, r->inner.rank + 1);
  if (gethostname(host, sizeof host - 1)) *host = 0;
  p[r->inner.rank] =
      (trace_process){.rank = r->inner.rank,
                      .world_size = r->nranks,
                      .pid = getpid(),
                      .host = *host ? sym_of(r->m->c, host) : (sym){0},
                      .device = sym_of(r->m->c, "cpu"),
                      .serial = true,
                      .ran = {said(c, of->model), said(c, of->plan), said(c, of->machine),
                              said(c, of->digest), said(c, collectives_of(r->m)), said(c, of->run)},
                      .base_ns = r->base_ns};
  return p;
}

// A step that runs has not ended yet, but its events may be asked for: of a job that failed.
static void find_steps(recorded *s) {
  const recorder *r = s->r;
  const u32 ended = r->step - r->left_out;
  s->began = NEWN(s->a, ticks_pair, ended + 1), s->ended = NEWN(s->a, ticks_pair, ended + 1);
  for (const block *b = r->first; b; b = b->next)
    for (u32 k = 0; k < b->n; k++) {
      const noted *x = &b->v[k];
      if (x->func) continue;
      s->began[x->step] = (ticks_pair){x->start, x->waited};
      s->ended[x->step] = (ticks_pair){x->start + x->dur, x->bytes};
    }
  s->began[ended] = r->began, s->ended[ended] = ticks_both();
}

struct trace_source *record_timeline(const recorder *r, arena *a, const eval_job *of, eval_recorded *about) {
  static const char *const after[LANES_AFTER] = {"beside", "early", "steps", "host"};
  recorded *s = ZNEWN(a, recorded, 1);
  const u32 nstreams = r->nstreams + LANES_AFTER, nranks = r->inner.rank + 1;
  sym *names = NEWN(a, sym, nstreams);
  u32 *count = ZNEWN(a, u32, (size_t)nranks * nstreams);
  memcpy(names, r->m->p->streams.v, r->nstreams * sizeof *names);
  for (u32 k = 0; k < LANES_AFTER; k++) names[r->nstreams + k] = sym_of(r->m->c, after[k]);
  memcpy(count + (size_t)r->inner.rank * nstreams, r->count, nstreams * sizeof *count);
  s->r = r, s->a = a;
  s->first_step = (u32)MAX((i64)of->taken - r->step, 0) + 1;
  s->of = (trace_source){.nranks = nranks,
                         .nstreams = nstreams,
                         .nthreads = 2,
                         .stream_name = names,
                         .process = processes_of(r, a, of),
                         .task = tasks_of(r->m->p, a),
                         .count = count,
                         .play = play};
  describe_kinds(s, a);
  find_steps(s);
  *about = (eval_recorded){r->n, r->most, r->step - r->left_out, r->left_out};
  return &s->of;
}
