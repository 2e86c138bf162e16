// stage_bytes.c - what the tasks of a probe do to the memory of their places. Not how long they take (stages.c).
//
// Idea: one walk over the probe's main; what a piece adds and frees is the difference between its ends.
#include "sim/digest.h"
#include "sim/heap.h"

static const stage_bytes *bytes_on(const digest *d, const walk *w, const i64 *before, u32 at) {
  stage_bytes *b = NEWN(d->a, stage_bytes, d->C);
  for (u32 c = 0; c < d->C; c++) {
    u32 u = d->rank_class[at * d->C + c];
    b[c] = (stage_bytes){0};
    if (u != NO_CLASS) b[c] = (stage_bytes){w->h.cur[u] - before[u], w->h.peak[u] - before[u]};
  }
  return b;
}

static u32 type_of(const digest *d, const sim_piece *p) {
  const sim_pipeline *pl = d->pl;
  const u32 stage = p->kind == PIECE_SEND ? pl->link[p->link].from : p->stage,
            turn = stage_turn(p->mb, MIN(sim_micro(pl, stage), (u32)PROBE_MICRO));
  return p->kind == PIECE_SEND ? line_send_type(pl, p->task * pl->nlinks + p->link, false, turn)
                               : line_task_type(pl, p->task * pl->nstages + p->stage, turn);
}

// A task of a stage on several places but for the first of these; a send from or to one.
static void put_wide(digest *d, const walk *w, const i64 *before, const sim_piece *p) {
  const sim_pipeline *pl = d->pl;
  for (u32 q = 0; q < pl->nplaces; q++) {
    bool any = false;
    for (u32 c = 0; c < d->C; c++) {
      const u32 u = d->rank_class[q * d->C + c];
      any |= u != NO_CLASS && (w->h.cur[u] != before[u] || w->h.peak[u] != before[u]);
    }
    if (any && (p->kind == PIECE_SEND || q != pl->place[p->stage]))
      *vec_push(d->a, &d->other) = (stage_other){type_of(d, p), q, bytes_on(d, w, before, q)};
  }
}

// What the piece does to places that it is not of. False: it takes bytes there, or is no task.
static bool put_others(digest *d, const walk *w, const i64 *before, const sim_piece *p) {
  const sim_pipeline *pl = d->pl;
  const sim_link *l = &pl->link[p->link];
  if (p->kind == PIECE_BEFORE) return true;
  if (p->kind == PIECE_SEND ? digest_wide_link(d, p->link) : digest_wide(d, p->stage)) {
    put_wide(d, w, before, p);
    return true;
  }
  const u32 own[2] = {pl->place[p->kind == PIECE_SEND ? l->from : p->stage],
                      pl->place[p->kind == PIECE_SEND ? l->to : p->stage]};
  for (u32 q = 0; q < pl->nplaces; q++) {
    bool any = false;
    for (u32 c = 0; c < d->C && q != own[0] && q != own[1]; c++) {
      const u32 u = d->rank_class[q * d->C + c];
      any |= u != NO_CLASS && w->h.cur[u] != before[u];
      if (u != NO_CLASS && w->h.peak[u] > before[u]) return false;
    }
    if (any && p->kind != PIECE_TASK) return false;
    if (any) *vec_push(d->a, &d->other) = (stage_other){type_of(d, p), q, bytes_on(d, w, before, q)};
  }
  return true;
}

static void put_bytes(digest *d, const walk *w, const i64 *before, const sim_piece *p) {
  sim_stages *st = d->st;
  const sim_link *l = &d->pl->link[p->link];
  const u32 micro = MIN(sim_micro(d->pl, p->kind == PIECE_SEND ? l->from : p->stage), (u32)PROBE_MICRO),
            turn = stage_turn(p->mb, micro);
  if (p->kind == PIECE_BEFORE && d->ends) {
    for (u32 q = 0; q < d->pl->nplaces; q++) d->ends->begin[q].bytes[0] = bytes_on(d, w, before, q);
  } else if (p->kind == PIECE_BEFORE) {
    ((stage_task *)&st->before[p->stage])->bytes[0] = bytes_on(d, w, before, d->pl->place[p->stage]);
  } else if (p->kind == PIECE_TASK) {
    ((stage_task *)&st->task[p->task][p->stage])->bytes[turn] =
        bytes_on(d, w, before, d->pl->place[p->stage]);
  } else if (p->kind == PIECE_SEND) {
    stage_send *x = (stage_send *)&st->send[p->task][p->link];
    const bool wide = digest_wide_link(d, p->link); // then by place
    const stage_bytes *none = wide ? ZNEWN(d->a, stage_bytes, d->C) : NULL;
    x->sender[turn] = wide ? none : bytes_on(d, w, before, d->pl->place[p->task ? l->to : l->from]);
    x->receiver[turn] = wide ? none : bytes_on(d, w, before, d->pl->place[p->task ? l->from : l->to]);
  }
}

// Has a replica more microbatches than the probe?
static bool has_more(const sim_pipeline *pl) {
  for (u32 r = 0; r < pl->nreplicas; r++)
    if (pl->micro[r] > PROBE_MICRO) return true;
  return false;
}

// What every microbatch has left for the end (its loss): buffers that a join holds. It is a view, so they go
// with whoever uses it last.
typedef struct {
  u32 buffer[3];
  const msize *size;
} joined;

static bool add_joined(walk *w, const instr *i, joined *x) {
  for (u32 k = 0; k < 3; k++) {
    const span leaves = heap_leaves(&w->h, opd_of(w->f, i, k));
    x->buffer[k] = leaves.n == 1 ? heap_only(&w->h, leaves.begin) : NO_BUFFER;
    if (x->buffer[k] == NO_BUFFER || heap_at(&w->h, x->buffer[k])->parts) return false;
  }
  x->size = heap_at(&w->h, x->buffer[1])->size;
  return x->buffer[0] != x->buffer[1] && x->buffer[1] != x->buffer[2];
}

// Has the join as many pieces as there are microbatches, one behind the other? Not sums over them.
static bool lays_side_by_side(const digest *d, const instr *i) {
  const prog *p = d->s->p;
  const type_info *of = type_get(p, d->s->main->values.v[opd_of(d->s->main, i, 0)].ty),
                  *all = type_get(p, d->s->main->values.v[i->res].ty);
  return local_bytes(d->s, all, i->g, 0) > local_bytes(d->s, of, i->g, 0);
}

// Is such a join, or a view of it, read by something that may make its result in the same memory? That is as large as
// all pieces, of which a probe has three.
static bool works_on_joined(const digest *d, const instr *i, bool *holds) {
  const func_info *f = d->s->main;
  bool any = i->op == OP_join && i->nopd == 3 && lays_side_by_side(d, i),
       view = i->op != OP_call && no_work(op_row_of(i->op));
  for (u32 k = 0; k < i->nopd; k++) {
    if (!holds[opd_of(f, i, k)]) continue;
    if (!view) return true;
    any = true;
  }
  for (u32 k = 0; any && k < i->nres; k++) holds[i->res + k] = true;
  return false;
}

static u32 gone(const walk *w, const joined *x) {
  u32 n = 0;
  for (u32 k = 0; k < 3; k++) n += !heap_at(&w->h, x->buffer[k])->live;
  return n;
}

static i64 size_on_class(const msize *z, u32 cls) {
  for (u32 k = 0; k < z->cs->n; k++)
    if (z->cs->cls[k] == cls) return z->per ? z->per[k] : z->even;
  return 0;
}

// Of what comes after all tasks: a stretch ends where what every microbatch has left is freed, which is more
// the more there are. False: that is not how it is.
static bool put_after(digest *d, walk *w, i64 *before, const sim_piece *p) {
  sim *s = d->s;
  sim_stages *st = d->st;
  VEC(stage_after) v = {0};
  VEC(joined) some = {0};
  bool *holds = ZNEWN(s->tmp, bool, s->main->values.n + 1); // what is joined
  for (u32 at = p->first; at <= p->end; at++) {
    const instr *i = at < p->end ? &s->main->body.v[at] : NULL;
    if (i && has_more(d->pl) && works_on_joined(d, i, holds)) return false;
    if (i && i->op == OP_join && i->nopd == 3 && has_more(d->pl)) {
      joined x;
      if (!add_joined(w, i, &x)) return false;
      *vec_push(s->tmp, &some) = x;
    }
    if (i) walk_step(w, at);
    bool any = false;
    for (u32 k = 0; k < some.n; k++) {
      const u32 n = gone(w, &some.v[k]);
      if (n && n < 3) return false;
      any |= n > 0;
    }
    if (i && !any) continue;
    for (u32 r = 0; r < st->nreps; r++) {
      i64 *freed = ZNEWN(d->a, i64, d->C);
      for (u32 k = 0; k < some.n; k++)
        for (u32 c = 0; gone(w, &some.v[k]) && c < d->C; c++)
          freed[c] += size_on_class(some.v[k].size, d->rank_class[st->rep[r] * d->C + c]);
      *vec_push(d->a, &v) = (stage_after){bytes_on(d, w, before, st->rep[r]), freed};
    }
    st->nafter++;
    u32 left = 0;
    for (u32 k = 0; k < some.n; k++)
      if (!gone(w, &some.v[k])) some.v[left++] = some.v[k];
    some.n = left;
    memcpy(before, w->h.cur, s->nclasses * sizeof *before);
    memcpy(w->h.peak, w->h.cur, s->nclasses * sizeof *before);
  }
  st->after_bytes = v.v;
  return true;
}

// Buffers that a weight part has read and left, of the last microbatch.
typedef struct {
  u32 buffer, stage;
} read_again;
typedef VEC(read_again) reads_again;

static bool is_last(const digest *d, const sim_piece *p) {
  return p->mb + 1 == MIN(sim_micro(d->pl, p->stage), (u32)PROBE_MICRO);
}

static void note_read(const digest *d, const walk *w, const sim_piece *p, u32 b, reads_again *some) {
  if (b != NO_BUFFER && heap_at(&w->h, b)->owned) *vec_push(d->s->tmp, some) = (read_again){b, p->stage};
}

static void note_reads(const digest *d, walk *w, const sim_piece *p, reads_again *some) {
  for (u32 at = p->first; at < p->end; at++) {
    const instr *i = &d->s->main->body.v[at];
    for (u32 k = 0; k < i->nopd; k++) {
      const value v = opd_of(w->f, i, k);
      const u32 b = heap_whole(&w->h, v);
      const span leaves = b == NO_BUFFER ? w->h.val[v] : (span){0};
      note_read(d, w, p, b, some);
      for (u32 q = leaves.begin; q < leaves.begin + leaves.n; q++)
        note_read(d, w, p, heap_only(&w->h, q), some);
    }
  }
}

// A backward of the last microbatch frees what the weight part of the stage after it, on the same place, has read: so it is
// where they run in this order, and the line has to tell (sim_line). False: of any other stage.
static bool find_frees(digest *d, const walk *w, const sim_piece *p, const reads_again *some) {
  for (u32 k = 0; k < some->n; k++) {
    const u32 stage = some->v[k].stage;
    if (d->pl->place[stage] != d->pl->place[p->stage] || heap_at(&w->h, some->v[k].buffer)->live) continue;
    if (stage != p->stage + 1u || p->task == TASK_F) return false;
    ((u8 *)d->st->frees)[p->stage] |= p->task == TASK_W ? STAGE_FREES_W : STAGE_FREES_I;
  }
  return true;
}

static void forget_gone(const walk *w, reads_again *some) {
  u32 left = 0;
  for (u32 k = 0; k < some->n; k++)
    if (heap_at(&w->h, some->v[k].buffer)->live) some->v[left++] = some->v[k];
  some->n = left;
}

// False: equal layers do not take equal bytes, or who frees a buffer depends on an order that no line tells.
bool digest_bytes(digest *d) {
  sim *s = d->s;
  mem m;
  walk w;
  mem_init(&m, s);
  walk_init(&w, &m, 1, NULL, NULL);
  i64 *start = ZNEWN(d->a, i64, d->st->nreps * d->C), *before = NEWN(s->tmp, i64, s->nclasses);
  walk_open_main(&w);
  for (u32 r = 0; r < d->st->nreps; r++)
    for (u32 c = 0; c < d->C; c++) {
      const u32 u = d->rank_class[d->st->rep[r] * d->C + c];
      if (u != NO_CLASS) start[r * d->C + c] = w.h.cur[u];
    }
  d->st->start = start;
  d->st->frees = ZNEWN(d->a, u8, d->pl->nstages + 1);
  reads_again again = {0};
  for (u32 q = 0, at = 0; q < d->pl->npieces; q++) { // pieces are in order
    const sim_piece *p = &d->pl->piece[q];
    for (; at < p->first; at++) walk_step(&w, at);
    memcpy(before, w.h.cur, s->nclasses * sizeof *before);
    memcpy(w.h.peak, w.h.cur, s->nclasses * sizeof *before);
    if (p->kind == PIECE_AFTER) { // the last one
      if (!d->ends) d->st->left = ending_left(s, d->a, &w, d->rank_class, d->C);
      if (!put_after(d, &w, before, p)) return false;
      break;
    }
    const bool last = p->kind == PIECE_TASK && is_last(d, p), weights = last && p->task == TASK_W;
    reads_again now = {0};
    if (weights) note_reads(d, &w, p, &now);
    for (; at < p->end; at++) {
      walk_step(&w, at);
      if (last && !find_frees(d, &w, p, &again)) return false;
    }
    if (last) forget_gone(&w, &again);
    forget_gone(&w, &now);
    for (u32 k = 0; k < now.n; k++) *vec_push(s->tmp, &again) = now.v[k];
    put_bytes(d, &w, before, p);
    if (d->ends && !put_others(d, &w, before, p)) return false;
  }
  d->st->others = d->other.v, d->st->nothers = d->other.n;
  if (!d->pl->ending || m.odd) return !m.odd;
  d->st->left = ending_left(s, d->a, &w, d->rank_class, d->C);
  if (!ending_fits(d->pl->ending, d->st)) return false;
  ending_use(d->a, d->st, d->pl->ending);
  return true;
}
