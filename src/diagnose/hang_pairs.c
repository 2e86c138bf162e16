// hang_pairs.c - messages between two ranks, matched send by receive. Collectives: hang_colls.c.
//
// Idea: messages of one group from one rank to another arrive in the order in which they are sent, so the k-th send
// meets the k-th receive. The recorder's numbers count all messages of a rank and tell nothing about the other rank.
// Where a ring has lost its first messages, the latest that are done on both sides are taken for one.
#include "diagnose/flight.h"
#include <stdlib.h>

typedef struct {
  u32 src, dst; // ranks of the job
  bool recv;
  u32 order;
  const flight_entry *e;
} message;

#define COMPARE(x, y)                                                                                        \
  if ((x) != (y)) return (x) < (y) ? -1 : 1
static int by_pair(const void *x, const void *y) {
  const message *a = x, *b = y;
  COMPARE(a->src, b->src);
  COMPARE(a->dst, b->dst);
  COMPARE(a->recv, b->recv);
  COMPARE(a->order, b->order);
  return 0;
}

typedef struct {
  const flight *f;
  arena *a;
  hang_findings *found;
  const message *send, *recv;
  u32 nsend, nrecv;
  bool lost; // a ring has lost its beginning: which send meets which receive is a guess where both are done
  bool past; // a mismatch in what is done has been told
} pair;

static bool waits(const message *m, u32 n, u32 k) { return k < n && m[k].e->state != FLIGHT_COMPLETED; }

static u32 done(const message *m, u32 n) {
  u32 last = 0;
  for (u32 k = 0; k < n; k++)
    if (m[k].e->state == FLIGHT_COMPLETED) last = k + 1;
  return last;
}

static hang_ranks one(arena *a, u32 rank) { return (hang_ranks){1, arena_dup(a, &rank, sizeof rank)}; }

static void tell(const pair *p, hang_kind kind, const flight_entry *e, i64 number, u32 who, u32 wait, sym at,
                 const char *text) {
  const flight_group *g = &p->f->groups.v[e->group];
  *vec_push(p->a, p->found) = (hang_finding){
      .kind = kind,
      .text = arena_printf(p->a, "%s: %s", hang_group_name(p->a, p->f->c, g->name, g->desc), text),
      .group = g->name,
      .desc = g->desc,
      .op = e->op,
      .seq = number,
      .who = one(p->a, who),
      .wait = one(p->a, wait),
      .at = at,
      .bytes = e->bytes,
      .when_ns = e->created_ns};
}

// One side is there alone and waits.
static void tell_alone(const pair *p, const flight_entry *e, i64 number) {
  const bool send = e->rank == e->src;
  const u32 other = send ? e->dst : e->src;
  const flight_dump *d = flight_dump_of(p->f, other);
  const char *what = send ? "send" : "recv", *to = send ? "to" : "from";
  if (d)
    tell(p, HANG_MISSING, e, number, other, e->rank, d->last_at,
         arena_printf(p->a, "rank %u did not come to %s number %lld %s rank %u, which waits in %s", other,
                      send ? "recv" : "send", (long long)number, send ? "from" : "to", e->rank, what));
  else
    tell(p, HANG_NO_DUMP, e, number, other, e->rank, (sym){0},
         arena_printf(p->a, "rank %u waits in %s number %lld %s rank %u, of which there is no dump", e->rank,
                      what, (long long)number, to, other));
}

// Both sides are there. True: something is wrong.
static bool tell_both(pair *p, const flight_entry *s, const flight_entry *r, i64 number) {
  const ctx *c = p->f->c;
  const bool both_done = s->state == FLIGHT_COMPLETED && r->state == FLIGHT_COMPLETED;
  const char *of =
      arena_printf(p->a, "message %lld from rank %u to rank %u", (long long)number, s->src, s->dst);
  const sym given = s->in.i ? s->in : s->out, wanted = r->out.i ? r->out : r->in;
  const i64 ngiven = s->in.i ? s->nin : s->nout, nwanted = r->out.i ? r->nout : r->nin;
  const sym gives = s->in_type.i ? s->in_type : s->out_type, wants = r->out_type.i ? r->out_type : r->in_type;
  if (both_done && (p->lost || p->past)) return false;
  if (ngiven != nwanted) {
    tell(p, HANG_SIZE, s, number, r->rank, s->rank, r->at,
         arena_printf(p->a, "%s: %s is sent, %s is received", of, sym_str(c, given), sym_str(c, wanted)));
    p->found->v[p->found->n - 1].done = p->past = both_done;
    return !both_done;
  }
  if (gives.i && wants.i && gives.i != wants.i) {
    tell(p, HANG_DTYPE, s, number, r->rank, s->rank, r->at,
         arena_printf(p->a, "%s: %s is sent, %s is received", of, sym_str(c, gives), sym_str(c, wants)));
    p->found->v[p->found->n - 1].done = p->past = both_done;
    return !both_done;
  }
  if (both_done) return false;
  const flight_entry *e = s->state == FLIGHT_COMPLETED ? r : s;
  if (e == r) return false; // a send may be done before its receive
  tell(p, HANG_STUCK, e, number, e->rank, e->rank, e->at,
       arena_printf(p->a, "%s: both ranks came and it is not done", of));
  if (r->state != FLIGHT_COMPLETED) {
    hang_finding *x = &p->found->v[p->found->n - 1];
    x->who = x->wait = hang_ranks_of(p->a, 2, (u32[]){s->rank, r->rank});
  }
  return true;
}

static void scan_pair(pair *p) {
  const u32 rank[2] = {p->nsend ? p->send->e->src : p->recv->e->src,
                       p->nsend ? p->send->e->dst : p->recv->e->dst};
  const flight_dump *d[2] = {flight_dump_of(p->f, rank[0]), flight_dump_of(p->f, rank[1])};
  u32 skip_s = 0, skip_r = 0;
  p->lost = (d[0] && d[0]->lost) || (d[1] && d[1]->lost);
  if (p->lost) {
    const u32 ds = done(p->send, p->nsend), dr = done(p->recv, p->nrecv);
    if (!d[0] || !d[1] || !ds ||
        !dr) { // no message that both know: what waits on one side is told of it alone
      skip_s = ds, skip_r = dr;
    } else {
      skip_s = ds - MIN(ds, dr), skip_r = dr - MIN(ds, dr);
    }
  }
  const u32 ns = p->nsend - skip_s, nr = p->nrecv - skip_r;
  for (u32 k = 0; k < MAX(ns, nr); k++) {
    const flight_entry *s = k < ns ? p->send[skip_s + k].e : NULL, *r = k < nr ? p->recv[skip_r + k].e : NULL;
    const i64 number = (i64)MAX(skip_s, skip_r) + k + 1;
    if (s && r && tell_both(p, s, r, number)) return;
    if (s && r) continue;
    if (!waits(s ? p->send + skip_s : p->recv + skip_r, s ? ns : nr, k)) continue;
    const flight_dump *other = s ? d[1] : d[0];
    if (other && other->lost && !(s ? p->nrecv : p->nsend)) return; // it may have come, and the ring lost it
    tell_alone(p, s ? s : r, number);
    return;
  }
}

void hang_pairs(const flight *f, arena *a, hang_findings *found, u32 *messages) {
  VEC(message) m = {0};
  *messages = 0;
  for (u32 k = 0, end; k < f->entries.n; k = end) {
    const u32 group = f->entries.v[k].group;
    m.n = 0;
    for (end = k; end < f->entries.n && f->entries.v[end].group == group; end++) {
      const flight_entry *e = &f->entries.v[end];
      if (e->p2p) *vec_push(a, &m) = (message){e->src, e->dst, e->rank == e->dst, e->order, e};
    }
    if (m.n) qsort(m.v, m.n, sizeof *m.v, by_pair);
    for (u32 i = 0, n; i < m.n; i += n) {
      for (n = 1; i + n < m.n && m.v[i + n].src == m.v[i].src && m.v[i + n].dst == m.v[i].dst;) n++;
      pair p = {.f = f, .a = a, .found = found, .send = m.v + i};
      while (p.nsend < n && !p.send[p.nsend].recv) p.nsend++;
      p.recv = p.send + p.nsend, p.nrecv = n - p.nsend;
      *messages += MAX(p.nsend, p.nrecv);
      scan_pair(&p);
    }
  }
}
