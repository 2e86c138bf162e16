// sums.c - sums of gradients on a stream of their own, beside the last task of a stage that makes some: what is known of
// such a task, what comes after the tasks, and how both run. Not other tasks (stages.c), nor the pass (pipe.c).
//
// Idea: what such a task computes it does when the others do, so it has their map. Besides, it moves the stream's clocks and
// leaves the time of every sum, which are linear in the same inputs and these clocks. An update waits for the sums of its
// stage, which may have ended at any time, so what comes after the tasks is no map of clocks: it is run as the probe's event graph has it. There a place
// that stands for others lends them its nodes, one after the other; places have nothing to do with each other then.
#include "sim/digest.h"
#include "sim/pipe.h"

// ---- tasks ------------------------------------------------------------------------------------------------
bool sums_is(const digest *d, const sim_piece *p) {
  if (!d->pl->sums || p->kind != PIECE_TASK || p->mb != digest_last(d, p->stage)) return false;
  for (u32 i = d->s->node_of[p->first], n; i < d->s->node_of[p->end]; i++) {
    const u32 *clock = digest_occupies(d->c, i, &n);
    for (u32 k = 0; k < n; k++)
      if (d->summing[clock[k]]) return true;
  }
  return false;
}

typedef struct { // until it is known what comes after the tasks
  const sim_piece *p;
  u32 nin, *in; // slots: of the task, then of the stream
} summing;

static u32 first_node(const digest *d, const sim_piece *p) { return d->s->node_of[p->first]; }
static u32 end_node(const digest *d, const sim_piece *p) { return d->s->node_of[p->end]; }

static void stream_clocks(const digest *d, u32 place, ports *p) {
  p->n = 0;
  for (u32 c = 0; c < d->C; c++) port_put(p, digest_clock(d, place, c, d->pl->sums));
}

// Has it the map of the others, and are its ranks as busy? With one microbatch there are none, and it is the map.
static bool does_as_others(digest *d, const sim_piece *p, const ports *in, const ports *out, u32 nin,
                           u32 nout) {
  stage_task *t = (stage_task *)&d->st->task[p->task][p->stage];
  const u32 n0 = first_node(d, p), n1 = end_node(d, p);
  const i64 *a = digest_matrix(d, n0, n1, in, out);
  i64 *busy = NEWN(d->a, i64, d->C), *comm = NEWN(d->a, i64, d->C);
  digest_busy(d, n0, n1, d->pl->place[p->stage], 1, busy, comm);
  if (!t->a) {
    t->a = a, t->nin = nin, t->nout = nout, t->busy = busy, t->comm = comm;
    return true;
  }
  const size_t each = d->C * sizeof *busy;
  return t->nin == nin && t->nout == nout && !memcmp(t->a, a, (size_t)in->n * out->n * sizeof *a) &&
         !memcmp(t->busy, busy, each) && !memcmp(t->comm, comm, each);
}

static bool look_at(digest *d, const sim_piece *p, summing *x) {
  ports in, out, carried, strm;
  u32 nin, nout;
  const bool sums = sums_is(d, p);
  stream_clocks(d, d->pl->place[p->stage], &strm);
  if (!digest_task(d, p, sums ? &strm : NULL, &in, &out, &nin, &nout, &carried)) return false;
  if (!sums) return true;
  if (p->task == TASK_I || p->task == TASK_F) return false;
  if (carried.n / d->C != (p->task == TASK_W ? d->st->carried[p->stage] : 0)) return false;
  if (in.n + d->C > PORTS_MOST || !does_as_others(d, p, &in, &out, nin, nout)) return false;
  digest_add_ports(&in, &strm);
  *x = (summing){p, in.n, arena_dup(d->s->tmp, in.slot, in.n * sizeof *in.slot)};
  return true;
}

// Tasks of the last microbatch, in their order: a W waits for what its I has made.
static bool find_tasks(digest *d, summing *of) {
  bool ok = true;
  d->last = true;
  digest_coming_now(d);
  for (u32 q = 0; q < d->pl->npieces && ok; q++) {
    const sim_piece *p = &d->pl->piece[q];
    if (p->kind == PIECE_TASK && p->mb == digest_last(d, p->stage)) ok = look_at(d, p, &of[p->stage]);
  }
  d->last = false;
  return ok;
}

// ---- what comes after -----------------------------------------------------------------------------------------
typedef struct {
  digest *d;
  u32 n0, n1;
  const summing *of; // per stage
  u32 *writer;       // by slot: the task's piece + 1 that writes it
  u32 *rep_of;       // by slot of a clock: number + 1 of the place that stands for others
  u8 *seen;          // by slot: it is known, or was noted
  VEC(u32) * leave;  // per stage: slots
} after;

enum { KNOWN = 1, IN_TIME };

// Is what another task has made there when the clock of its rank class is? Then who occupies that has waited for it.
static bool made_in_time(after *x, u32 slot) {
  digest *d = x->d;
  const sim_piece *p = &d->pl->piece[x->writer[slot] - 1];
  const u32 u = d->unit_of[slot], cls = u ? d->class_of[u - 1] : ~0u;
  ports in, out, own;
  u32 nin, nout;
  i64 at[2];
  if (cls == ~0u || d->place_of[u - 1] != d->pl->place[p->stage]) return false;
  digest_ports(d, p, &in, &out, &nin, &nout);
  own.n = 0;
  port_put(&own, slot), port_put(&own, digest_clock(d, d->pl->place[p->stage], cls, 0));
  for (u32 i = 0; i < in.n; i++) {
    if (!in.slot[i]) continue;
    digest_respond(d, first_node(d, p), end_node(d, p), in.slot[i], &own, at, 1);
    if (at[0] > at[1]) return false;
  }
  return true;
}

// Does the node occupy the compute clock of the class that the value is on?
static bool on_its_clock(const after *x, u32 node, u32 slot) {
  const digest *d = x->d;
  const u32 u = d->unit_of[slot], own = u ? d->clock[(u - 1) * d->s->nstreams] : 0;
  u32 n;
  const u32 *clock = digest_occupies(d->c, node, &n);
  for (u32 k = 0; own && k < n; k++)
    if (clock[k] == own) return true;
  return false;
}

// What it waits for: clocks, what it has made itself, sums; other values only that the clocks speak for.
static bool waits_for(after *x, u32 node, u32 slot) {
  digest *d = x->d;
  if (!slot || x->seen[slot] == KNOWN) return true;
  if (!x->writer[slot]) return false;
  const sim_piece *p = &d->pl->piece[x->writer[slot] - 1];
  if (x->of[p->stage].p == p) {
    x->seen[slot] = KNOWN;
    *vec_push(d->s->tmp, &x->leave[p->stage]) = slot;
    return true;
  }
  if (x->seen[slot] != IN_TIME && !made_in_time(x, slot)) return false;
  x->seen[slot] = IN_TIME;
  return on_its_clock(x, node, slot);
}

static bool find_waits(after *x) {
  const sim_graph *c = x->d->c;
  for (u32 i = x->n0; i < x->n1; i++) {
    for (u32 k = c->in[i]; k < c->out[i]; k++)
      if (!waits_for(x, i, c->ref[k])) return false;
    for (u32 k = c->out[i]; k < c->occ[i + 1]; k++) x->seen[c->ref[k]] = KNOWN;
  }
  return true;
}

// The place whose clock the node occupies, + 1, by the number of the one that stands for others; 0: of none. *ok false: of
// several, of which one stands for others, too.
static u32 place_of_node(const after *x, u32 node, const u32 *times, bool *ok) {
  u32 of = 0, n;
  const u32 *clock = digest_occupies(x->d->c, node, &n);
  for (u32 k = 0; k < n; k++) {
    const u32 r = x->rep_of[clock[k]];
    if (!r) *ok = false;
    if (of && r && r != of) *ok = *ok && times[of - 1] == 1 && times[r - 1] == 1;
    if (!of) of = r;
  }
  return of;
}

// By place that stands for others its nodes, as stretches.
static bool find_runs(after *x, stage_beside *b) {
  digest *d = x->d;
  const u32 n = d->st->nreps;
  u32 *begin = ZNEWN(d->a, u32, n + 1), *times = ZNEWN(d->s->tmp, u32, n),
      *of = NEWN(d->s->tmp, u32, x->n1 - x->n0 + 1);
  VEC(u32) run = {0};
  bool ok = true;
  for (u32 q = 0; q < d->pl->nplaces; q++) times[d->st->rep_no[q]]++;
  for (u32 i = x->n0; i < x->n1; i++) of[i - x->n0] = place_of_node(x, i, times, &ok);
  for (u32 r = 0; r < n && ok; r++) {
    begin[r] = run.n / 2;
    for (u32 i = x->n0; i < x->n1 && times[r] > 1; i++) {
      if (of[i - x->n0] && of[i - x->n0] != r + 1) continue;
      const u32 at = i - x->n0;
      if (run.n > 2 * begin[r] && run.v[run.n - 1] == at)
        run.v[run.n - 1]++;
      else
        *vec_push(d->a, &run) = at, *vec_push(d->a, &run) = at + 1;
    }
  }
  begin[n] = run.n / 2;
  b->begin = begin, b->run = (const u32(*)[2])run.v;
  return ok;
}

static void note_clocks(after *x, stage_beside *b) {
  digest *d = x->d;
  u32 *clock = NEWN(d->a, u32, 2 * d->st->nreps * d->C);
  for (u32 r = 0; r < d->st->nreps; r++)
    for (u32 k = 0; k < 2 * d->C; k++) {
      const u32 slot = digest_clock(d, d->st->rep[r], k % d->C, k < d->C ? 0 : d->pl->sums);
      clock[r * 2 * d->C + k] = slot;
      x->rep_of[slot] = slot ? r + 1 : 0, x->seen[slot] = KNOWN;
    }
  b->clock = clock;
}

static void note_writers(after *x) {
  const sim_graph *c = x->d->c;
  const sim_pipeline *pl = x->d->pl;
  for (u32 q = 0; q < pl->npieces; q++) {
    const sim_piece *p = &pl->piece[q];
    if (p->kind != PIECE_TASK) continue;
    for (u32 i = first_node(x->d, p); i < end_node(x->d, p); i++)
      for (u32 k = c->out[i]; k < c->occ[i + 1]; k++) x->writer[c->ref[k]] = q + 1;
  }
}

static void map_sums(digest *d, const summing *of, const u32 *slot, u32 n, stage_sums *to) {
  const u32 place = d->pl->place[of->p->stage], n0 = first_node(d, of->p), n1 = end_node(d, of->p);
  i64 *a = NEWN(d->a, i64, (size_t)(d->C + n) * of->nin);
  *to = (stage_sums){.n = n, .nin = of->nin, .slot = arena_dup(d->a, slot, n * sizeof *slot), .a = a};
  for (u32 k = 0; k < (d->C + n) * of->nin; k++) a[k] = STAGE_NEVER;
  for (u32 at = 0; at < d->C + n; at += PORTS_MOST) {
    ports out;
    out.n = 0;
    for (u32 k = at; k < MIN(d->C + n, at + PORTS_MOST); k++)
      port_put(&out, k < d->C ? digest_clock(d, place, k, d->pl->sums) : slot[k - d->C]);
    for (u32 i = 0; i < of->nin; i++)
      if (of->in[i]) digest_respond(d, n0, n1, of->in[i], &out, a + (size_t)at * of->nin + i, of->nin);
  }
}

// Of I, then W: W reads clocks and what I has left for it, behind what I sends.
static void compose(digest *d, u32 stage, const stage_sums *w, stage_sums *to) {
  const stage_task *i = &d->st->task[TASK_I][stage];
  const u32 C = d->C, ni = (1 + i->nin) * C, nw = w->nin - C, left = i->nout - d->st->carried[stage];
  i64 *a = NEWN(d->a, i64, (size_t)(C + w->n) * (ni + C));
  if (!i->a) return;
  for (u32 o = 0; o < C + w->n; o++) {
    const i64 *from = w->a + (size_t)o * w->nin;
    i64 *row = a + (size_t)o * (ni + C);
    for (u32 k = 0; k < ni; k++) {
      row[k] = STAGE_NEVER;
      for (u32 j = 0; j < nw; j++) {
        const i64 before = i->a[(j < C ? j : j + left * C) * ni + k];
        if (from[j] != STAGE_NEVER && before != STAGE_NEVER) row[k] = MAX(row[k], from[j] + before);
      }
    }
    memcpy(row + ni, from + nw, C * sizeof *row);
  }
  *to = (stage_sums){.n = w->n, .nin = ni + C, .slot = w->slot, .a = a};
}

// Per stage the one of the place that stands for its own which is as many stages of that place further on.
static const u32 *own_stages(const digest *d) {
  const sim_pipeline *pl = d->pl;
  u32 *own = NEWN(d->a, u32, pl->nstages), *next = NEWN(d->s->tmp, u32, pl->nstages),
      *first = NEWN(d->s->tmp, u32, pl->nplaces), *now = NEWN(d->s->tmp, u32, pl->nplaces);
  memset(first, 0xff, pl->nplaces * sizeof *first);
  for (u32 i = pl->nstages; i-- > 0;) next[i] = first[pl->place[i]], first[pl->place[i]] = i;
  for (u32 q = 0; q < pl->nplaces; q++) now[q] = first[pl->alike[q]];
  for (u32 i = 0; i < pl->nstages; i++) {
    u32 *at = &now[pl->place[i]];
    own[i] = *at, *at = next[*at];
  }
  return own;
}

// The nodes themselves, without the rest of the probe.
static void put_graph(after *x, stage_beside *b, stage_sums *sums, stage_sums *whole) {
  digest *d = x->d;
  part_slots slots = {1, ZNEWN(d->s->tmp, u32, d->c->nslot + 1)};
  u32 *clock = (u32 *)b->clock;
  for (u32 k = 0; k < 2 * d->st->nreps * d->C; k++) clock[k] = sim_part_slot(&slots, clock[k]);
  for (u32 i = 0; i < d->pl->nstages; i++) {
    u32 *slot = (u32 *)sums[i].slot;
    for (u32 k = 0; k < sums[i].n; k++) slot[k] = sim_part_slot(&slots, slot[k]);
    if (whole[i].a) whole[i].slot = slot;
  }
  b->of = sim_graph_part(d->a, d->s->tmp, d->c, x->n0, x->n1, &slots);
}

bool sums_close(digest *d, const sim_piece *p) {
  const u32 ns = d->pl->nstages, nslot = d->c->nslot + 1;
  for (u32 q = 0; q < d->pl->nplaces; q++)
    if (d->pl->with[q] != q) return false;
  summing *of = ZNEWN(d->s->tmp, summing, ns);
  after x = {.d = d, .n0 = first_node(d, p), .n1 = end_node(d, p), .of = of};
  if (!find_tasks(d, of)) return false;
  x.writer = ZNEWN(d->s->tmp, u32, nslot), x.rep_of = ZNEWN(d->s->tmp, u32, nslot);
  x.seen = ZNEWN(d->s->tmp, u8, nslot), x.leave = arena_alloc(d->s->tmp, ns * sizeof *x.leave);
  memset(x.leave, 0, ns * sizeof *x.leave);
  stage_beside *b = ZNEWN(d->a, stage_beside, 1);
  stage_sums *sums = ZNEWN(d->a, stage_sums, ns), *whole = ZNEWN(d->a, stage_sums, ns);
  *b = (stage_beside){.strm = d->pl->sums, .sums = {sums, whole}, .own = own_stages(d)};
  note_clocks(&x, b), note_writers(&x);
  if (!find_waits(&x) || !find_runs(&x, b)) return false;
  for (u32 i = 0; i < ns; i++) {
    if (of[i].p) map_sums(d, &of[i], x.leave[i].v, x.leave[i].n, &sums[i]);
    if (of[i].p && of[i].p->task == TASK_W) compose(d, i, &sums[i], &whole[i]);
  }
  put_graph(&x, b, sums, whole);
  d->st->beside = b;
  return true;
}

// ---- with sends on the compute stream -------------------------------------------------------------------------
// Values come with its clocks then.
static const stage_sums *without_values(arena *a, const stage_sums *of, u32 n, u32 C) {
  stage_sums *v = arena_dup(a, of, n * sizeof *v);
  for (u32 i = 0; i < n; i++) {
    stage_sums *s = &v[i];
    if (!s->a) continue;
    i64 *own = NEWN(a, i64, (size_t)(C + s->n) * 2 * C);
    for (u32 o = 0; o < C + s->n; o++) {
      const i64 *from = s->a + (size_t)o * s->nin;
      memcpy(own + (size_t)o * 2 * C, from, C * sizeof *own);
      memcpy(own + (size_t)o * 2 * C + C, from + s->nin - C, C * sizeof *own);
    }
    s->a = own, s->nin = 2 * C;
  }
  return v;
}

stage_beside *sums_without_values(arena *a, const stage_beside *b, u32 nstages, u32 C) {
  stage_beside *x = arena_dup(a, b, sizeof *b);
  for (u32 k = 0; k < 2; k++) x->sums[k] = without_values(a, b->sums[k], nstages, C);
  return x;
}

// ---- a pass -----------------------------------------------------------------------------------------------------
void sums_open(pipe *p, arena *tmp) {
  const stage_beside *b = p->st->beside;
  const u32 ns = p->st->pl.nstages;
  u32 *at = NEWN(tmp, u32, ns + 1), n = 0;
  for (u32 i = 0; i < ns; i++) at[i] = n, n += b->sums[0][b->own[i]].n;
  p->sum_at = at, p->sum = ZNEWN(tmp, i64, n + 1);
  p->slot = ZNEWN(tmp, i64, b->of->nslot), p->frame = NEWN(tmp, i64, b->of->frame + 1);
}

void sums_run_task(pipe *p, u32 kind, u32 stage, const i64 *x) {
  const stage_beside *b = p->st->beside;
  const u32 own = b->own[stage];
  const stage_sums *s = &b->sums[kind == TASK_B && b->sums[1][own].a][own];
  const u32 C = p->C, n = s->nin - C;
  i64 *clock = p->channel + ((size_t)b->strm * p->st->pl.nplaces + p->st->pl.place[stage]) * C;
  i64 was[STAGE_CLASSES];
  memcpy(was, clock, C * sizeof *was);
  for (u32 o = 0; o < C + s->n; o++) {
    const i64 *a = s->a + (size_t)o * s->nin;
    i64 t = 0;
    for (u32 i = 0; i < n; i++) t = MAX(t, x[i] + a[i]);
    for (u32 c = 0; c < C; c++) t = MAX(t, was[c] + a[n + c]);
    *(o < C ? &clock[o] : &p->sum[p->sum_at[stage] + o - C]) = t;
  }
}

// Clocks of place q go to the slots of the place that stands for it, or come back.
static void swap_clocks(pipe *p, u32 q, bool into) {
  const stage_beside *b = p->st->beside;
  const u32 C = p->C, *slot = b->clock + p->st->rep_no[q] * 2 * C;
  i64 *own[2] = {p->clock + q * C, p->channel + ((size_t)b->strm * p->st->pl.nplaces + q) * C};
  for (u32 k = 0; k < 2 * C; k++) {
    if (!slot[k]) continue;
    if (into)
      p->slot[slot[k]] = own[k / C][k % C];
    else
      own[k / C][k % C] = p->slot[slot[k]];
  }
}

static void load(pipe *p, u32 q) {
  const stage_beside *b = p->st->beside;
  swap_clocks(p, q, true);
  for (u32 i = 0; i < p->st->pl.nstages; i++) {
    const stage_sums *s = &b->sums[0][b->own[i]];
    for (u32 k = 0; p->st->pl.place[i] == q && k < s->n; k++) p->slot[s->slot[k]] = p->sum[p->sum_at[i] + k];
  }
}

// First all that stand for others, which may have to do with each other, then one of the others after the other.
void sums_run_after(pipe *p) {
  const sim_stages *st = p->st;
  const stage_beside *b = st->beside;
  for (u32 r = 0; r < st->nreps; r++) load(p, st->rep[r]);
  sim_composed(b->of, p->slot, p->frame);
  for (u32 r = 0; r < st->nreps; r++) swap_clocks(p, st->rep[r], false);
  for (u32 q = 0; q < st->pl.nplaces; q++) {
    const u32 r = st->rep_no[q];
    if (st->rep[r] == q) continue;
    load(p, q);
    for (u32 k = b->begin[r]; k < b->begin[r + 1]; k++)
      sim_part(b->of, b->run[k][0], b->run[k][1], p->slot, p->frame);
    swap_clocks(p, q, false);
  }
}
