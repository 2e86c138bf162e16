// wide.c - stages on several places, as the embedding and the head of an interlaced pipeline: what a task of theirs, or
// a send from or to one, does to the clocks of all places. Not stages on one place (stages.c), nor bytes (stage_bytes.c).
//
// Idea: the same as of other tasks, a linear map over (max, +), but of as many clocks as all places have. A matrix would
// have the square of their number; mostly all places meet in a collective, so the map is a few maxima of all of
// them, and a graph of these (map.c) is no larger than what the ranks do.
#include "sim/digest.h"
#include "sim/pipe.h"

// ---- from a probe -----------------------------------------------------------------------------------------------
typedef struct {
  arena *a;
  VEC(u32) slot, code; // of the event graph; as stage_wide has it
} wide_ports;

static void add_port(wide_ports *p, u32 slot, u32 code) {
  if (!slot) return;
  *vec_push(p->a, &p->slot) = slot;
  *vec_push(p->a, &p->code) = code;
}

static u32 cells_of(const digest *d) { return d->pl->nplaces * d->C; }

static void add_clocks(const digest *d, wide_ports *p, u32 strm) {
  for (u32 k = 0; k < cells_of(d); k++) add_port(p, digest_clock(d, k / d->C, k % d->C, strm), k);
}

// One more value, as it is at the stage's end of a link.
static void add_value(const digest *d, wide_ports *p, u32 no, u32 stage, const u32 *slot) {
  const u32 n = digest_wide(d, stage) ? cells_of(d) : d->C;
  for (u32 k = 0; k < n; k++) add_port(p, slot[k], STAGE_VALUE * (1 + no) + k);
}

static void note_ports(digest *d, const wide_ports *p) {
  d->nport++;
  for (u32 k = 0; k < p->slot.n; k++) d->port[p->slot.v[k]] = d->nport;
}

static void make_map(digest *d, u32 n0, u32 n1, const wide_ports *in, const wide_ports *out, stage_wide *x) {
  x->map = sim_map_part(in->a, d->s->tmp, d->c, n0, n1, in->slot.v, in->slot.n, out->slot.v, out->slot.n);
  x->in = in->code.v, x->out = out->code.v;
}

static void task_ports(digest *d, arena *a, const sim_piece *p, wide_ports *in, wide_ports *out,
                       stage_wide *x) {
  const sim_pipeline *pl = d->pl;
  const bool back = p->task != TASK_F;
  *in = *out = (wide_ports){.a = a};
  x->nin = x->nout = 0;
  add_clocks(d, in, 0), add_clocks(d, out, 0);
  for (u32 k = 0; k < pl->nlinks; k++) {
    const sim_link *l = &pl->link[k];
    const size_t at = (size_t)k * d->W;
    if ((back && !l->back) || !l->strm[back]) continue;
    if ((back ? l->from : l->to) == p->stage)
      add_value(d, in, x->nin++, p->stage, d->comes[back][p->mb] + at);
    if ((back ? l->to : l->from) != p->stage) continue;
    add_value(d, out, x->nout, p->stage, d->leaves[back][p->mb] + at);
    add_value(d, out, x->nout++, p->stage, d->after[back][p->mb] + at);
  }
}

// Does the backward wait for values that came for its forward no longer than for the clocks which that has left? Then it
// need not be told of them.
static const i64 FAR = (i64)1 << 60;
static bool waited_enough(digest *d, const sim_piece *p, const u32 *came, u32 n, const wide_ports *in,
                          const wide_ports *out) {
  const sim_piece *f = p;
  while (f->kind != PIECE_TASK || f->task != TASK_F || f->stage != p->stage || f->mb != p->mb) f--;
  const sim_map *before = d->st->wide[TASK_F][p->stage].map;
  arena *a = d->s->a; // not the stack, of which making a map takes its room
  wide_ports all = {.a = a}, own, left;
  stage_wide x;
  task_ports(d, a, f, &own, &left, &x); // in the order of the map's
  for (u32 k = 0; k < in->slot.n; k++) add_port(&all, in->slot.v[k], in->code.v[k]);
  for (u32 k = 0; k < n; k++) add_port(&all, came[k], 0);
  make_map(d, d->s->node_of[p->first], d->s->node_of[p->end], &all, out, &x);
  i64 *y = NEWN(a, i64, before->nin + before->nvert), *z = NEWN(a, i64, before->nout + 1),
      *now = NEWN(a, i64, x.map->nin + x.map->nvert), *later = NEWN(a, i64, out->slot.n + 1),
      *alone = NEWN(a, i64, out->slot.n + 1), *clock = NEWN(a, i64, cells_of(d) + 1);
  for (u32 k = 0; k < n; k++) {
    bool any = false;
    memset(y, 0, before->nin * sizeof *y);
    for (u32 j = 0; j < own.slot.n; j++)
      if (own.slot.v[j] == came[k]) y[1 + j] = FAR, any = true;
    if (!any) return false;
    sim_map_apply(before, y, z);
    for (u32 j = 0; j < left.slot.n; j++)
      if (left.code.v[j] < STAGE_VALUE) clock[left.code.v[j]] = z[j];
    memset(now, 0, x.map->nin * sizeof *now);
    for (u32 j = 0; j < in->slot.n; j++)
      if (in->code.v[j] < STAGE_VALUE) now[1 + j] = clock[in->code.v[j]];
    sim_map_apply(x.map, now, later);
    memset(now, 0, x.map->nin * sizeof *now);
    now[1 + in->slot.n + k] = FAR;
    sim_map_apply(x.map, now, alone);
    for (u32 j = 0; j < out->slot.n; j++)
      if (alone[j] >= FAR && alone[j] > later[j]) return false;
  }
  return true;
}

bool wide_task(digest *d, const sim_piece *p) {
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  stage_wide *x = (stage_wide *)&d->st->wide[p->task][p->stage];
  wide_ports in, out;
  late_reads late = {0};
  if (p->task != TASK_F && p->task != TASK_B) return false;
  task_ports(d, d->a, p, &in, &out, x);
  if (x->nin > VALUES_MAX || x->nout > VALUES_MAX || cells_of(d) > STAGE_VALUE) return false;
  note_ports(d, &in);
  d->wait.n = 0;
  if (!digest_reads(d, n0, n1, (u32)(p - d->pl->piece) + 1, p->task == TASK_F ? NULL : &late)) return false;
  if (d->wait.n || late.made.n) return false;
  if (late.came.n && !waited_enough(d, p, late.came.v, late.came.n, &in, &out)) return false;
  make_map(d, n0, n1, &in, &out, x);
  i64 *busy = NEWN(d->a, i64, cells_of(d)), *comm = NEWN(d->a, i64, cells_of(d));
  digest_busy(d, n0, n1, 0, d->pl->nplaces, busy, comm);
  x->busy = busy, x->comm = comm;
  return true;
}

bool wide_send(digest *d, const sim_piece *p) {
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  const sim_link *l = &d->pl->link[p->link];
  const u32 from = p->task ? l->to : l->from, to = p->task ? l->from : l->to,
            strm = d->s->main->body.v[p->first].strm;
  const size_t at = (size_t)p->link * d->W;
  stage_wide *x = (stage_wide *)&d->st->wide_send[p->task][p->link];
  wide_ports in = {.a = d->a}, out = {.a = d->a};
  add_clocks(d, &in, strm), add_clocks(d, &out, strm);
  if (strm) {
    add_value(d, &in, 0, from, d->leaves[p->task][p->mb] + at);
    add_value(d, &in, 0, from, d->after[p->task][p->mb] + at);
    add_value(d, &out, 0, to, d->comes[p->task][p->mb] + at);
    x->nin = x->nout = 1;
  }
  note_ports(d, &in);
  if (!digest_reads(d, n0, n1, (u32)(p - d->pl->piece) + 1, NULL)) return false;
  make_map(d, n0, n1, &in, &out, x);
  i64 *busy = ZNEWN(d->a, i64, cells_of(d));
  for (u32 k = 0; k < cells_of(d); k++) {
    const u32 clock = digest_clock(d, k / d->C, k % d->C, strm);
    for (u32 i = n0; clock && i < n1; i++) {
      if (d->c->dur[i] < 0) return false;
      for (u32 j = d->c->occ[i]; j < d->c->in[i]; j++)
        if (d->c->ref[j] == clock) busy[k] += d->c->dur[i];
    }
  }
  x->busy = x->comm = busy;
  return true;
}

// ---- in a pass --------------------------------------------------------------------------------------------------
u32 wide_room(const sim_stages *st) {
  u32 most = 0;
  for (u32 w = 0; st->pl.wide && w < TASK_KINDS * st->pl.nstages; w++) {
    const sim_map *m = st->wide[w / st->pl.nstages][w % st->pl.nstages].map;
    if (m) most = MAX(most, m->nin + m->nvert + m->nout);
  }
  for (u32 w = 0; st->pl.wide && w < 2 * st->pl.nlinks; w++) {
    const sim_map *m = st->wide_send[w / st->pl.nlinks][w % st->pl.nlinks].map;
    if (m) most = MAX(most, m->nin + m->nvert + m->nout);
  }
  return most;
}

// clock: of the stream that it occupies. Values that the line has no slots for come with the clocks.
static void run(pipe *p, const stage_wide *x, i64 *clock, const u32 *in, u32 nin, const u32 *out, u32 nout) {
  const sim_map *m = x->map;
  const u32 cells = p->st->pl.nplaces * p->C;
  i64 *y = p->wide, *z = y + m->nin + m->nvert;
  for (u32 k = 0; k + 1 < m->nin; k++) {
    const u32 of = x->in[k] / STAGE_VALUE, at = x->in[k] % STAGE_VALUE;
    y[1 + k] = !of ? clock[at] : of > nin ? 0 : p->value[(size_t)in[of - 1] * p->C + at];
  }
  sim_map_apply(m, y, z);
  for (u32 k = 0; k < nout; k++) memset(p->value + (size_t)out[k] * p->C, 0, cells * sizeof *p->value);
  for (u32 k = 0; k < m->nout; k++) {
    const u32 of = x->out[k] / STAGE_VALUE, at = x->out[k] % STAGE_VALUE;
    if (!of) clock[at] = z[k];
    if (!of || of > nout) continue;
    i64 *to = &p->value[(size_t)out[of - 1] * p->C + at];
    *to = MAX(*to, z[k]);
  }
}

void wide_run_task(pipe *p, const sim_op *o) {
  const u32 n = p->st->pl.nstages, *in = p->l->many + o->in, *out = in + 1 + *in;
  run(p, &p->st->wide[o->what / n][o->what % n], p->clock, in + 1, *in, out + 1, *out);
}

void wide_run_send(pipe *p, const stage_wide *x, u32 strm, u32 slot) {
  const u32 cells = p->st->pl.nplaces * p->C;
  run(p, x, strm ? p->channel + (size_t)strm * cells : p->clock, &slot, strm != 0, &slot, strm != 0);
  for (u32 k = 0; !strm && k < cells; k++) p->busy[k] += x->busy[k], p->comm[k] += x->comm[k];
}

void wide_add_busy(const sim_stages *st, u32 what, i64 times, i64 *busy, i64 *comm) {
  const stage_wide *x = &st->wide[what / st->pl.nstages][what % st->pl.nstages];
  for (u32 k = 0; x->map && k < st->pl.nplaces * st->nclass; k++) {
    busy[k] += x->busy[k] * times;
    if (comm) comm[k] += x->comm[k] * times;
  }
}
