// stages.c - stages of a pipeline from a probe: which nodes of its event graph belong to which piece, what
// they do to the clocks and values that they touch, and what its walk over memory finds at their ends. Not
// any schedule (pipe.c).
//
// Idea: a piece is run once for each clock and value that it reads, set far ahead of everything else; where
// that arrives, and how much later, is the linear map. Nothing is said of a piece that the event graph and
// the walk of the whole program would not say.
#include "sim/digest.h"
#include "sim/heap.h"
#include <stdlib.h>

// ---- classes --------------------------------------------------------------------------------------------
// Places that are alike have the same members in the same classes.
static bool same_classes(const digest *d, const members *p, const members *first) {
  if (p->cs->n != d->C || p->n != first->n) return false;
  for (u32 k = 0; k < p->n; k++)
    if (d->class_of[d->s->class_of_rank[p->rank[k]]] != d->class_of[d->s->class_of_rank[first->rank[k]]])
      return false;
  return true;
}

static bool find_classes(digest *d) {
  sim *s = d->s;
  const sim_pipeline *pl = d->pl;
  const members *first = members_of(s, pl->group[0]);
  for (u32 q = 0; q < (pl->apart ? pl->nplaces : 1); q++)
    d->C = MAX(d->C, members_of(s, pl->group[q])->cs->n);
  if (d->C > STAGE_CLASSES) return false;
  u32 *rank_class = NEWN(s->a, u32, pl->nplaces * d->C), *weight = ZNEWN(d->a, u32, pl->nplaces * d->C);
  memset(rank_class, 0xff, pl->nplaces * d->C * sizeof *rank_class);
  d->class_of = NEWN(s->a, u32, s->nclasses), d->place_of = NEWN(s->a, u32, s->nclasses);
  memset(d->class_of, 0xff, s->nclasses * sizeof *d->class_of);
  for (u32 q = 0; q < pl->nplaces; q++) {
    const members *p = members_of(s, pl->group[q]);
    if (p->cs->n > d->C) return false;
    for (u32 c = 0; c < p->cs->n; c++) {
      u32 u = p->cs->cls[c];
      if (d->class_of[u] != ~0u) return false; // ranks on two places
      rank_class[q * d->C + c] = u;
      d->class_of[u] = c, d->place_of[u] = q;
    }
    if (!pl->apart && !same_classes(d, p, first)) return false;
    for (u32 k = 0; k < p->n; k++) weight[q * d->C + d->class_of[s->class_of_rank[p->rank[k]]]]++;
  }
  u32 *member_class = NEWN(d->a, u32, first->n);
  for (u32 k = 0; k < first->n; k++) member_class[k] = d->class_of[s->class_of_rank[first->rank[k]]];
  d->rank_class = rank_class;
  d->st->nclass = d->C, d->st->weight = weight;
  d->st->nmembers = first->n, d->st->member_class = member_class;
  return !pl->ending || ending_has_classes(pl->ending, d->st);
}

static void find_clocks(digest *d) {
  d->clock = ZNEWN(d->s->a, u32, d->s->nclasses * d->s->nstreams);
  for (u32 k = 0; k < d->c->nclock; k++)
    d->clock[d->c->clock_class[k] * d->s->nstreams + d->c->clock_stream[k]] = d->c->port_in[k];
  d->summing = ZNEWN(d->s->tmp, bool, d->c->nslot + 1);
  for (u32 k = 0; d->pl->sums && k < d->c->nclock; k++)
    d->summing[d->c->port_in[k]] = d->c->clock_stream[k] == d->pl->sums;
  d->cell_of = ZNEWN(d->s->tmp, u32, d->c->nslot + 1);
  for (u32 k = 0; k < d->pl->nplaces * d->C; k++) d->cell_of[digest_clock(d, k / d->C, k % d->C, 0)] = k + 1;
  d->cell_of[0] = 0; // of those that have none
}

u32 digest_clock(const digest *d, u32 at, u32 cls, u32 strm) {
  const u32 u = d->rank_class[at * d->C + cls];
  return u == NO_CLASS ? 0 : d->clock[u * d->s->nstreams + strm];
}

// Slots of a value of main on the classes of a place; 0: nobody waits for it there.
static void value_slots(const digest *d, value v, u32 at, u32 *slot) {
  const sim *s = d->s;
  for (u32 c = 0; c < d->C; c++) {
    slot[c] = 0;
    if (!s->root || !s->root[v] || !s->at[s->root[v]].cs) continue;
    const entry *e = &s->at[s->root[v]];
    if (d->rank_class[at * d->C + c] == NO_CLASS) continue;
    u32 pos = e->cs->pos[d->rank_class[at * d->C + c]];
    slot[c] = pos ? e->slot + pos - 1 : 0;
  }
}

static void find_units(digest *d) {
  const sim *s = d->s;
  d->unit_of = ZNEWN(s->a, u32, d->c->nslot + 1);
  for (value v = 1; s->root && v < s->main->values.n; v++) {
    if (s->root[v] != v || !s->at[v].cs) continue;
    for (u32 k = 0; k < s->at[v].cs->n; k++) d->unit_of[s->at[v].slot + k] = s->at[v].cs->cls[k] + 1;
  }
}

// Of a value of a stage: on its place, or by place on all of them.
static void stage_slots(const digest *d, value v, u32 stage, u32 *slot) {
  if (!digest_wide(d, stage)) {
    value_slots(d, v, d->pl->place[stage], slot);
    return;
  }
  for (u32 q = 0; q < d->pl->nplaces; q++) value_slots(d, v, q, slot + q * d->C);
}

static void find_values(digest *d) {
  const sim_pipeline *pl = d->pl;
  d->W = (pl->wide ? pl->nplaces : 1) * d->C;
  find_units(d);
  for (u32 w = 0; w < 2 * PROBE_MICRO; w++) {
    const u32 pass = w / PROBE_MICRO, m = w % PROBE_MICRO;
    const size_t cells = (size_t)pl->nlinks * d->W + 1;
    u32 *after = ZNEWN(d->s->a, u32, cells), *leaves = ZNEWN(d->s->a, u32, cells),
        *comes = ZNEWN(d->s->a, u32, cells);
    for (u32 k = 0; k < pl->npieces; k++) {
      const sim_piece *p = &pl->piece[k];
      if (p->kind != PIECE_SEND || p->task != pass || p->mb != m) continue;
      const instr *i = &d->s->main->body.v[p->first];
      const u32 there = pl->link[p->link].to, here = pl->link[p->link].from, at = p->link * d->W;
      stage_slots(d, opd_of(d->s->main, i, 0), pass ? there : here, leaves + at);
      stage_slots(d, i->res, pass ? here : there, comes + at);
      if (i->nopd > 1) stage_slots(d, opd_of(d->s->main, i, 1), pass ? there : here, after + at);
    }
    d->leaves[pass][m] = leaves, d->comes[pass][m] = comes, d->after[pass][m] = after;
  }
  digest_coming_now(d);
}

void digest_coming_now(digest *d) {
  d->came = ZNEWN(d->s->tmp, bool, d->c->nslot + 1);
  for (u32 k = 0; k < d->pl->nlinks; k++)
    for (u32 c = 0; c < d->W; c++)
      d->came[digest_coming(d, k, false)[c]] = d->came[digest_coming(d, k, true)[c]] = true;
}

// ---- one piece ------------------------------------------------------------------------------------------
static void add_value(const digest *d, ports *p, const u32 *slot, const u32 *also) {
  memcpy(p->slot + p->n, slot, d->C * sizeof *slot);
  if (also)
    memcpy(p->also + p->n, also, d->C * sizeof *also);
  else
    memset(p->also + p->n, 0, d->C * sizeof *p->also);
  p->n += d->C;
}

static const i64 FAR = (i64)1 << 60;
void digest_respond(digest *d, u32 n0, u32 n1, u32 ahead, const ports *out, i64 *a, u32 stride) {
  memset(d->x, 0, d->c->nslot * sizeof *d->x);
  d->x[ahead] = FAR;
  sim_part(d->c, n0, n1, d->x, d->frame);
  for (u32 o = 0; o < out->n; o++) { // slot 0 is always 0
    i64 t = MAX(d->x[out->slot[o]], d->x[out->also[o]]);
    a[o * stride] = t >= FAR ? t - FAR : STAGE_NEVER;
  }
}

static void note_ports(digest *d, const ports *p) {
  d->nport++;
  for (u32 k = 0; k < p->n; k++) d->port[p->slot[k]] = d->nport;
}

static bool add_wait(digest *d, late_reads *w, u32 slot, u32 node) {
  u32 k = 0;
  if (!d->came[slot]) {
    if (!d->written[slot]) return false;
    *vec_push(d->s->tmp, &w->made) = (made_before){slot, node, d->written[slot]};
    return true;
  }
  while (k < w->came.n && w->came.v[k] != slot) k++;
  if (k == w->came.n) *vec_push(d->s->tmp, &w->came) = slot;
  return true;
}

bool digest_reads(digest *d, u32 n0, u32 n1, u32 mark, late_reads *late) {
  const sim_graph *c = d->c;
  for (u32 i = n0, n; i < n1; i++) {
    const u32 *clock = digest_occupies(c, i, &n);
    for (u32 k = 0; k < n; k++)
      if (d->port[clock[k]] != d->nport) return false;
    for (u32 k = c->in[i]; k < c->out[i]; k++) {
      const u32 slot = c->ref[k];
      if (!slot || d->written[slot] == mark || d->port[slot] == d->nport) continue;
      if (d->ends && d->arrived[slot]) {
        if (!ends_wait(d, slot)) return false;
        continue;
      }
      if (!late || !add_wait(d, late, slot, i)) return false;
    }
    for (u32 k = c->out[i]; k < c->occ[i + 1]; k++) d->written[c->ref[k]] = mark;
  }
  return true;
}

void digest_busy(const digest *d, u32 n0, u32 n1, u32 at, u32 n, i64 *busy, i64 *comm) {
  const sim_graph *c = d->c;
  const u32 first = at * d->C + 1, cells = n * d->C;
  memset(busy, 0, cells * sizeof *busy), memset(comm, 0, cells * sizeof *comm);
  for (u32 i = n0; i < n1; i++) {
    const sim_site *site = c->dur[i] < 0 ? &c->site[~c->dur[i]] : NULL;
    const u32 num = c->what[i];
    const bool comms = !site && num && op_row_of(d->s->main->body.v[num - 1].op)->flags & OPF_COMM;
    for (u32 j = 0; site && j < site->sub->nclock; j++) {
      const u32 k = d->cell_of[site->clock[j]] - first;
      if (k < cells) busy[k] += site->sub->busy[j], comm[k] += site->sub->comm[j];
    }
    for (u32 j = c->occ[i]; !site && j < c->in[i]; j++) {
      const u32 k = d->cell_of[c->ref[j]] - first;
      if (k < cells) busy[k] += c->dur[i], comm[k] += comms ? c->dur[i] : 0;
    }
  }
}

static void clocks_of(const digest *d, u32 at, ports *p) {
  p->n = 0;
  for (u32 c = 0; c < d->C; c++) port_put(p, digest_clock(d, at, c, 0));
}

i64 *digest_matrix(digest *d, u32 n0, u32 n1, const ports *in, const ports *out) {
  i64 *a = NEWN(d->a, i64, in->n * out->n + 1);
  for (u32 k = 0; k < in->n * out->n; k++) a[k] = STAGE_NEVER;
  for (u32 i = 0; i < in->n; i++)
    if (in->slot[i]) digest_respond(d, n0, n1, in->slot[i], out, a + i, in->n);
  for (u32 c = 0; c < MIN(in->n, out->n);
       c++) // a clock that nothing ever occupies; where places are apart it may be none
    if (!in->slot[c] && !out->slot[c] && !d->ends) a[c * in->n + c] = 0;
  return a;
}

// Of a value that comes to the stage: its class, and at which input of the task; ~0: sends occupy the compute stream. False:
// none such comes.
static bool input_of(const digest *d, u32 stage, bool back, u32 slot, u32 *cls, u32 *input) {
  for (u32 k = 0, at = 0; k < d->pl->nlinks; k++) {
    const sim_link *l = &d->pl->link[k];
    if ((back ? l->from : l->to) != stage || (back && !l->back)) continue;
    for (*cls = 0; *cls < d->C; ++*cls)
      if (digest_coming(d, k, back)[*cls] == slot) {
        *input = l->strm[back] ? at + *cls : ~0u;
        return true;
      }
    at += l->strm[back] ? d->C : 0;
  }
  return false;
}

// Has an earlier task of the stage waited for this value, so that waiting for it again changes nothing? Every
// output comes later from some clock than from the value, as that task left the clock. A send that occupies the compute
// stream leaves its clock no earlier than the value.
static bool waited_enough(digest *d, u32 n0, u32 n1, const ports *clocks, u32 slot, u32 stage) {
  u32 cls = 0, input = 0;
  const bool there = input_of(d, stage, false, slot, &cls, &input),
             back = !there && input_of(d, stage, true, slot, &cls, &input);
  const stage_task *t = there                          ? &d->st->task[TASK_F][stage]
                        : d->st->task[TASK_I][stage].a ? &d->st->task[TASK_I][stage]
                                                       : &d->st->task[TASK_B][stage];
  if ((!there && !back) || !t->a) return false;
  assert(input == ~0u || input < t->nin * d->C);
  const u32 width = (1 + t->nin) * d->C;
  i64 own[STAGE_CLASSES] = {0}, later[STAGE_CLASSES] = {0}, best[STAGE_CLASSES] = {0};
  digest_respond(d, n0, n1, slot, clocks, own, 1);
  for (u32 o = 0; o < d->C; o++) best[o] = STAGE_NEVER;
  for (u32 c = 0; c < d->C; c++) {
    const i64 after = input != ~0u ? t->a[c * width + d->C + input] : c == cls ? 0 : STAGE_NEVER;
    if (after == STAGE_NEVER || !clocks->slot[c]) continue;
    digest_respond(d, n0, n1, clocks->slot[c], clocks, later, 1);
    for (u32 o = 0; o < d->C; o++)
      if (later[o] != STAGE_NEVER) best[o] = MAX(best[o], later[o] + after);
  }
  for (u32 o = 0; o < d->C; o++)
    if (own[o] != STAGE_NEVER && best[o] < own[o]) return false;
  return true;
}

// Clocks of its place, then values that come to it and leave it.
void digest_ports(const digest *d, const sim_piece *p, ports *in, ports *out, u32 *nin, u32 *nout) {
  const sim_pipeline *pl = d->pl;
  const bool back = p->task == TASK_B || p->task == TASK_I;
  *nin = *nout = 0;
  clocks_of(d, pl->place[p->stage], in);
  clocks_of(d, pl->place[p->stage], out);
  for (u32 k = 0; p->kind == PIECE_TASK && p->task != TASK_W && k < pl->nlinks; k++) {
    const sim_link *l = &pl->link[k];
    if ((back && !l->back) || !l->strm[back]) continue; // sends on the compute stream: its clock says it all
    if ((back ? l->from : l->to) == p->stage && (*nin)++ < VALUES_MAX)
      add_value(d, in, d->comes[back][p->mb] + k * d->W, NULL);
    if ((back ? l->to : l->from) == p->stage && (*nout)++ < VALUES_MAX)
      add_value(d, out, d->leaves[back][p->mb] + k * d->W, d->after[back][p->mb] + k * d->W);
  }
}

// Is the value, when an earlier task of the stage has made it, there no later than that task leaves the
// clocks that the node now waits for? Then waiting for it changes nothing, for clocks never go back. A node
// that has no clock passes it on within its class.
static bool made_in_time(digest *d, const sim_piece *now, u32 slot, u32 node, u32 mark) {
  const sim_piece *p = &d->pl->piece[mark - 1];
  ports in, out, own;
  own.n = 0;
  u32 nin, nout;
  i64 at[1 + STAGE_CLASSES];
  if (p->kind != PIECE_TASK || p->stage != now->stage || p->mb != now->mb) return false;
  digest_ports(d, p, &in, &out, &nin, &nout);
  port_put(&own, slot);
  for (u32 k = d->c->occ[node]; k < d->c->in[node] && own.n <= STAGE_CLASSES; k++)
    port_put(&own, d->c->ref[k]);
  const u32 u = d->unit_of[slot], c = u && d->class_of[u - 1] != ~0u ? d->class_of[u - 1] : d->C;
  if (own.n == 1 && c < d->C && in.slot[c]) port_put(&own, in.slot[c]);
  for (u32 i = 0; i < in.n; i++) {
    if (!in.slot[i]) continue;
    i64 clock = STAGE_NEVER;
    digest_respond(d, d->s->node_of[p->first], d->s->node_of[p->end], in.slot[i], &own, at, 1);
    for (u32 k = 1; k < own.n; k++) clock = MAX(clock, at[k]);
    if (at[0] > clock) return false;
  }
  return own.n > 1;
}

// What a W waits for, of the values that its I has seen: those for which the clocks that I leaves do not
// speak. I leaves them for W (by class, in any order), behind what it sends. False: another task has seen
// such a value.
static bool carry(digest *d, const sim_piece *p, const late_reads *late, const ports *clocks,
                  ports *carried) {
  if (late->came.n + late->made.n > VALUES_MAX) return false;
  for (u32 k = 0; k < late->came.n; k++) {
    if (waited_enough(d, d->s->node_of[p->first], d->s->node_of[p->end], clocks, late->came.v[k], p->stage))
      continue;
    u32 cls, input;
    if (p->task != TASK_W || !input_of(d, p->stage, true, late->came.v[k], &cls, &input)) return false;
    carried->slot[carried->n++] = late->came.v[k];
  }
  for (u32 k = 0; k < late->made.n; k++) {
    const sim_piece *by = &d->pl->piece[late->made.v[k].mark - 1];
    if (made_in_time(d, p, late->made.v[k].slot, late->made.v[k].node, late->made.v[k].mark)) continue;
    if (p->task != TASK_W || by->kind != PIECE_TASK || by->task != TASK_I || by->stage != p->stage ||
        by->mb != p->mb)
      return false;
    carried->slot[carried->n++] = late->made.v[k].slot;
  }
  while (carried->n % d->C) carried->slot[carried->n++] = 0;
  return true;
}

void digest_add_ports(ports *p, const ports *more) {
  memcpy(p->slot + p->n, more->slot, more->n * sizeof *more->slot);
  memset(p->also + p->n, 0, more->n * sizeof *more->also);
  p->n += more->n;
}

// The map of the I before a W again, with what it leaves for that.
static bool leave_for_weights(digest *d, const sim_piece *w, const ports *carried) {
  const sim_piece *p = w;
  stage_task *t = (stage_task *)&d->st->task[TASK_I][w->stage];
  ports in, out;
  while (p->kind != PIECE_TASK || p->task != TASK_I || p->stage != w->stage || p->mb != w->mb) p--;
  digest_ports(d, p, &in, &out, &t->nin, &t->nout);
  if (t->nout + carried->n / d->C > VALUES_MAX) return false;
  digest_add_ports(&out, carried);
  t->nout += carried->n / d->C;
  ((u32 *)d->st->carried)[w->stage] = carried->n / d->C;
  t->a = digest_matrix(d, d->s->node_of[p->first], d->s->node_of[p->end], &in, &out);
  return !d->ends || ends_waits(d, p, t, &in, &out);
}

bool digest_task(digest *d, const sim_piece *p, const ports *also, ports *in, ports *out, u32 *nin, u32 *nout,
                 ports *carried) {
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end], mark = (u32)(p - d->pl->piece) + 1;
  const bool later = p->kind == PIECE_TASK && p->task != TASK_F;
  late_reads late = {0};
  ports clocks;
  carried->n = 0;
  clocks_of(d, d->pl->place[p->stage], &clocks);
  digest_ports(d, p, in, out, nin, nout);
  if (*nin > VALUES_MAX || *nout > VALUES_MAX) return false;
  note_ports(d, in);
  for (u32 k = 0; also && k < also->n; k++) d->port[also->slot[k]] = d->nport;
  if (!digest_reads(d, n0, n1, mark, later ? &late : NULL)) return false;
  if (!carry(d, p, &late, &clocks, carried)) return false;
  digest_add_ports(in, carried);
  *nin += carried->n / d->C;
  return true;
}

static bool task_of(digest *d, const sim_piece *p, stage_task *t) {
  u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end], on = d->pl->place[p->stage];
  ports in, out, carried;
  d->wait.n = 0;
  if (!digest_task(d, p, NULL, &in, &out, &t->nin, &t->nout, &carried)) return false;
  if (carried.n && !leave_for_weights(d, p, &carried)) return false;
  t->a = digest_matrix(d, n0, n1, &in, &out);
  if (d->ends) {
    t->nwaits = d->wait.n, t->wait = arena_dup(d->a, d->wait.v, d->wait.n * sizeof *t->wait);
    if (!ends_waits(d, p, t, &in, &out)) return false;
  }
  i64 *busy = NEWN(d->a, i64, d->C), *comm = NEWN(d->a, i64, d->C);
  digest_busy(d, n0, n1, on, 1, busy, comm);
  t->busy = busy, t->comm = comm;
  return true;
}

static bool send_of(digest *d, const sim_piece *p, stage_send *x) {
  const sim_graph *c = d->c;
  const sim_link *l = &d->pl->link[p->link];
  u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  u32 from = d->pl->place[p->task ? l->to : l->from], to = d->pl->place[p->task ? l->from : l->to];
  u32 strm = d->s->main->body.v[p->first].strm;
  stage_rendezvous *v = ZNEWN(d->a, stage_rendezvous, n1 - n0 + 1);
  for (u32 i = n0; i < n1; i++) {
    stage_rendezvous *m = &v[x->n++];
    if (c->dur[i] < 0) return false;
    m->dur = c->dur[i];
    for (u32 k = c->occ[i]; k < c->in[i]; k++)
      for (u32 q = 0; q < d->C; q++) {
        if (c->ref[k] == digest_clock(d, from, q, strm)) m->from |= 1u << q;
        if (c->ref[k] == digest_clock(d, to, q, strm)) m->to |= 1u << q;
      }
    if ((u32)__builtin_popcount(m->from) + (u32)__builtin_popcount(m->to) != c->in[i] - c->occ[i])
      return false;
  }
  x->v = v;
  return true;
}

// ---- what comes after -----------------------------------------------------------------------------------
// Its map from the clocks of all places that stand for others to these. False: it waits for more.
static bool map_after(digest *d, u32 n0, u32 n1, const sim_piece *p) {
  sim_stages *st = d->st;
  const u32 n = st->nreps * d->C;
  if (n > PORTS_MOST) return false;
  ports all;
  all.n = 0;
  for (u32 r = 0; r < st->nreps; r++) {
    ports one;
    clocks_of(d, st->rep[r], &one);
    add_value(d, &all, one.slot, NULL);
  }
  note_ports(d, &all);
  if (!digest_reads(d, n0, n1, (u32)(p - d->pl->piece) + 1, NULL)) return false;
  i64 *a = digest_matrix(d, n0, n1, &all, &all);
  for (u32 k = 0; k < n; k++)
    if (!all.slot[k]) a[k * n + k] = 0;
  for (u32 q = 0; q < d->pl->nplaces; q++) { // who stands for others has nothing to do with anybody else
    const u32 r = st->rep_no[q], with = st->rep_no[d->pl->with[q]];
    for (u32 o = 0; st->rep[r] != q && o < n; o++)
      for (u32 i = 0; i < n; i++) {
        const bool to = o / d->C == r || o / d->C == with, from = i / d->C == r || i / d->C == with;
        if (to != from && a[o * n + i] != STAGE_NEVER) return false;
      }
  }
  st->after = a;
  return true;
}

static bool after_of(digest *d, const sim_piece *p) {
  sim_stages *st = d->st;
  const u32 n0 = d->s->node_of[p->first], n1 = d->s->node_of[p->end];
  if (d->ends ? !ends_close(d) : d->pl->sums ? !sums_close(d, p) : !map_after(d, n0, n1, p)) return false;
  for (u32 k = p->first; k < p->end; k++) st->after_sends |= d->s->main->body.v[k].op == OP_send;
  stage_task *tail = ZNEWN(d->a, stage_task, st->nreps);
  for (u32 r = 0; r < st->nreps; r++) {
    i64 *busy = NEWN(d->a, i64, d->C), *comm = NEWN(d->a, i64, d->C);
    digest_busy(d, n0, n1, st->rep[r], 1, busy, comm);
    tail[r].busy = busy, tail[r].comm = comm;
  }
  st->tail = tail;
  return true;
}

// ---- all together ---------------------------------------------------------------------------------------
static void find_reps(digest *d) {
  sim_stages *st = d->st;
  u32 n = d->pl->nplaces;
  u32 *micro = ZNEWN(d->a, u32, n);
  for (u32 i = 0; i < d->pl->nstages; i++) micro[d->pl->place[i]] = sim_micro(d->pl, i);
  st->micro = micro;
  st->rep = NEWN(d->a, u32, n), st->rep_no = NEWN(d->a, u32, n);
  for (u32 q = 0; q < n; q++) {
    if (d->pl->alike[q] == q) st->rep[st->nreps++] = q;
    for (u32 r = 0; r < st->nreps; r++)
      if (st->rep[r] == d->pl->alike[q]) st->rep_no[q] = r;
  }
}

static void find_usable(digest *d, const machine *m) {
  const sim *s = d->s;
  i64 *usable = NEWN(d->a, i64, d->st->nreps * d->C), *of = NEWN(s->tmp, i64, s->nclasses);
  for (u32 k = 0; k < s->nclasses; k++) of[k] = INT64_MAX / 2;
  for (u32 k = 0; m && k < MIN(s->nranks, m->nranks); k++)
    of[s->class_of_rank[k]] = MIN(of[s->class_of_rank[k]], machine_kind_of(m, k)->usable_bytes);
  for (u32 k = 0; k < d->st->nreps * d->C; k++) {
    const u32 u = d->rank_class[d->st->rep[k / d->C] * d->C + k % d->C];
    usable[k] = u == NO_CLASS ? INT64_MAX / 2 : of[u];
  }
  d->st->usable = usable;
}

static bool find_pieces(digest *d) {
  sim_stages *st = d->st;
  const sim_pipeline *pl = d->pl;
  stage_task *before = ZNEWN(d->a, stage_task, pl->nstages), *task[TASK_KINDS];
  stage_send *send[2];
  for (u32 k = 0; k < TASK_KINDS; k++) st->task[k] = task[k] = ZNEWN(d->a, stage_task, pl->nstages);
  for (u32 k = 0; k < 2; k++) st->send[k] = send[k] = ZNEWN(d->a, stage_send, pl->nlinks + 1);
  st->before = before, st->carried = ZNEWN(d->a, u32, pl->nstages);
  for (u32 k = 0; pl->wide && k < TASK_KINDS; k++) st->wide[k] = ZNEWN(d->a, stage_wide, pl->nstages);
  for (u32 k = 0; pl->wide && k < 2; k++) st->wide_send[k] = ZNEWN(d->a, stage_wide, pl->nlinks + 1);
  for (u32 q = 0; q < pl->npieces; q++) {
    const sim_piece *p = &pl->piece[q];
    bool ok = true;
    if (p->kind == PIECE_TASK && p->mb != digest_turn(d, p->stage)) continue;
    if (p->kind == PIECE_SEND && p->mb != digest_turn(d, pl->link[p->link].from)) continue;
    if (p->kind == PIECE_BEFORE && d->ends) continue;     // as it is
    if (p->kind == PIECE_TASK && sums_is(d, p)) continue; // once the others are known
    if (p->kind == PIECE_BEFORE)
      ok = task_of(d, p, &before[p->stage]);
    else if (p->kind == PIECE_TASK && digest_wide(d, p->stage))
      ok = wide_task(d, p);
    else if (p->kind == PIECE_SEND && digest_wide_link(d, p->link))
      ok = wide_send(d, p);
    else if (p->kind == PIECE_TASK)
      ok = task_of(d, p, &task[p->task][p->stage]);
    else if (p->kind == PIECE_SEND)
      ok = send_of(d, p, &send[p->task][p->link]);
    else
      ok = after_of(d, p);
    if (!ok) return false;
  }
  return true;
}

// Do all places have as many ranks?
static bool of_one_size(const prog *p, const sim_pipeline *pl) {
  for (u32 q = 1; q < pl->nplaces; q++)
    if (group_get(p->sp, pl->group[q])->nranks != group_get(p->sp, pl->group[0])->nranks) return false;
  return true;
}

static int by_place(const void *x, const void *y) {
  const sim_span *a = x, *b = y;
  if (a->f.i != b->f.i) return a->f.i < b->f.i ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

static const sim_spans *sort_spans(arena *a, const prog *p, const sim_pipeline *pl) {
  if (!pl->nspans) return NULL;
  sim_span *v = arena_dup(a, pl->span, pl->nspans * sizeof *v);
  sim_spans *by = ZNEWN(a, sim_spans, p->funcs.n);
  qsort(v, pl->nspans, sizeof *v, by_place);
  for (u32 k = 0; k < pl->nspans; k++) {
    sim_spans *x = &by[v[k].f.i];
    if (!x->n++) x->v = &v[k];
  }
  return by;
}

static void is_probe(sim *s, const sim_pipeline *pl) {
  s->pipeline = pl, s->spans = sort_spans(s->a, s->p, pl);
  s->node_of = NEWN(s->a, u32, s->main->body.n + 1);
}

const sim_graph *sim_probe_graph(sim *s, const sim_pipeline *pl) {
  is_probe(s, pl);
  return sim_graph_of(s);
}

const sim_stages *sim_stages_of(ctx *c, arena *a, const prog *probe, cost_model *k, const sim_opts *o,
                                const sim_pipeline *pl) {
  sim s;
  sim_opts so = *o;
  so.mode = SIM_FOLDED;
  if (pl->outside || (!pl->apart && !of_one_size(probe, pl))) return NULL;
  arena *own = arena_new();
  bool ok = sim_open(&s, c, own, probe, k, &so, false);
  if (ok) is_probe(&s, pl);
  ok = ok && sim_price(&s);
  if (ok && o->busiest_ps) *o->busiest_ps = sim_busiest(&s, pl), ok = *o->busiest_ps <= o->enough_ps;
  const sim_graph *main = !ok ? NULL : pl->apart ? ends_graph(&s, pl) : sim_graph_priced(&s, NULL, NULL);
  sim_stages *st = NEW(a, sim_stages);
  *st = (sim_stages){.pl = *pl, .nstreams = s.nstreams, .nranks = s.nused};
  digest d = {.s = &s, .a = a, .pl = pl, .st = st, .c = main};
  ok = main && main->total < FAR / 2 && find_classes(&d);
  if (ok) {
    find_clocks(&d);
    find_values(&d);
    find_reps(&d);
    find_usable(&d, cost_model_machine(k));
    d.written = ZNEWN(s.tmp, u32, main->nslot + 1), d.port = ZNEWN(s.tmp, u32, main->nslot + 1);
    d.x = NEWN(s.tmp, i64, main->nslot), d.frame = NEWN(s.tmp, i64, main->frame + 1);
    ok = (!pl->apart || ends_open(&d)) && find_pieces(&d);
  }
  ok = ok && !s.odd_spans && digest_bytes(&d);
  if (ok) digest_compose(&d);
  arena_free(s.tmp), arena_free(own);
  return ok ? st : NULL;
}

// ---- with other microbatches ----------------------------------------------------------------------------
const sim_stages *sim_stages_dealt(arena *a, const sim_stages *st, const u32 *micro) {
  sim_stages *x = arena_dup(a, st, sizeof *st);
  u32 *by_place = ZNEWN(a, u32, st->pl.nplaces);
  for (u32 r = 0; r < st->pl.nreplicas; r++)
    if (MIN(micro[r], (u32)PROBE_MICRO) != MIN(st->pl.micro[r], (u32)PROBE_MICRO)) return NULL;
  x->pl.micro = arena_dup(a, micro, st->pl.nreplicas * sizeof *micro);
  for (u32 i = 0; i < x->pl.nstages; i++) by_place[x->pl.place[i]] = sim_micro(&x->pl, i);
  x->micro = by_place;
  return x;
}

// ---- on other streams -----------------------------------------------------------------------------------
// The part of a map that is about clocks: values come with a clock where sends block.
static const stage_task *clocks_only(arena *a, const stage_task *of, u32 n, u32 C) {
  stage_task *v = arena_dup(a, of, n * sizeof *v);
  for (u32 k = 0; k < n; k++) {
    if (!v[k].a) continue;
    i64 *own = NEWN(a, i64, C * C);
    for (u32 o = 0; o < C; o++) memcpy(own + o * C, v[k].a + o * (1 + v[k].nin) * C, C * sizeof *own);
    v[k].a = own, v[k].nin = v[k].nout = 0;
  }
  return v;
}

const sim_stages *sim_stages_sending(arena *a, const sim_stages *st, u32 n, u8 *const strm[2], u32 channels) {
  if ((channels == 1 && st->after_sends) || (channels < 2 && st->ends && st->ends->strm)) return NULL;
  sim_stages *x = arena_dup(a, st, sizeof *st);
  sim_link *link = arena_dup(a, st->pl.link, (st->pl.nlinks + 1) * sizeof *link);
  for (u32 k = 0; k < st->pl.nlinks; k++) link[k].strm[0] = strm[0][k], link[k].strm[1] = strm[1][k];
  x->pl.link = link, x->nstreams = 1 + n;
  if (st->ends && st->ends->strm) { // a stream of its own, behind the others
    stage_ends *ends = arena_dup(a, st->ends, sizeof *ends);
    ends->strm = x->nstreams++;
    x->ends = ends;
  }
  if (st->beside) { // likewise
    stage_beside *beside = n ? arena_dup(a, st->beside, sizeof *beside)
                             : sums_without_values(a, st->beside, st->pl.nstages, st->nclass);
    beside->strm = x->nstreams++;
    x->beside = beside;
  }
  if (n) return x;
  for (u32 k = 0; k < TASK_KINDS; k++) x->task[k] = clocks_only(a, st->task[k], st->pl.nstages, st->nclass);
  x->carried = ZNEWN(a, u32, st->pl.nstages);
  return x;
}
