// observe.c - from communications that are matched across ranks to what they say of clocks.
//
// Members of a communication for all (comms.def) need something of every other member: none ends before the last has
// started, and all end at about the same time. The root of a broadcast may be done before others begin, so communications
// with a root say nothing here. What takes alike is a family: one operation, one size, one number of members.
#include "diagnose/diagnose.h"

typedef struct {
  const match *m;
  arena *a;
  hmap families, links;
  VEC(align_link) link;
  VEC(align_message) message;
  VEC(i64) posted;
  VEC(align_collective) collective;
  VEC(align_member) member;
  u32 nfamilies;
} observing;

static u32 number_of(observing *o, hmap *known, u64 h, u32 *n) {
  u32 at = hmap_get(known, h);
  if (!at) hmap_add(o->a, known, h, at = ++*n);
  return at - 1;
}

static void observe_collective(observing *o, const match_row *r, u32 family) {
  *vec_push(o->a, &o->collective) = (align_collective){o->member.n, r->n, family};
  for (u32 k = 0; k < r->n; k++) {
    const match_member *v = &o->m->member.v[r->first + k];
    *vec_push(o->a, &o->member) = (align_member){v->place, v->start_ps, v->end_ps};
  }
}

// The sender is the member whose peer the other is: match_finish puts it first.
static void observe_message(observing *o, const match_row *r, u32 family) {
  const match_member *from = &o->m->member.v[r->first], *to = from + 1;
  const u64 h = hash_u64(hash_step((u64)from->place << 32 | to->place, family), 21);
  u32 n = o->link.n;
  const u32 link = number_of(o, &o->links, h, &n);
  if (link == o->link.n) *vec_push(o->a, &o->link) = (align_link){from->place, to->place, family};
  // What leaves may be there before its sender goes on.
  *vec_push(o->a, &o->message) =
      (align_message){link, from->leaves ? from->start_ps : from->end_ps, to->end_ps};
  *vec_push(o->a, &o->posted) = to->start_ps;
}

// Processes of one host share its clock, if the host is known and their times are of one kind.
static u32 *machines(const match *m, arena *a, bool own_clocks) {
  u32 *machine = NEWN(a, u32, m->places.n + 1);
  for (u32 k = 0; k < m->places.n; k++) {
    const match_place *x = &m->places.v[k];
    machine[k] = k;
    for (u32 i = 0; !own_clocks && i < k && machine[k] == k; i++) {
      const match_place *y = &m->places.v[i];
      const bool same_file = x->file == y->file, same_host = x->host.i && x->host.i == y->host.i;
      if (x->dated == y->dated && (same_file || same_host)) machine[k] = machine[i];
    }
  }
  return machine;
}

const align_seen *align_observe(arena *a, const match *m, bool own_clocks) {
  observing o = {.m = m, .a = a};
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *r = &m->row.v[k];
    const comm_who who = comm_who_of(m->c, r->op);
    if (r->n < 2) continue;
    const u64 h = hash_u64(
        hash_step(hash_step(hash_step(hash_step(19, r->op.i), (u64)r->bytes), r->n), r->group.i), 20);
    bool all = who == COMM_WHO_FOR_ALL;
    for (u32 i = 0; i < r->n; i++) all &= !m->member.v[r->first + i].leaves;
    if (all)
      observe_collective(&o, r, number_of(&o, &o.families, h, &o.nfamilies));
    else if (r->n == 2 && who == COMM_WHO_MESSAGE) {
      const u64 size = hash_u64(hash_step(hash_step(22, 0), (u64)r->bytes), 20); // both ways are one family
      observe_message(&o, r, number_of(&o, &o.families, size, &o.nfamilies));
    }
  }
  align_seen *s = NEW(a, align_seen);
  *s = (align_seen){
      .nprocesses = m->places.n, .nfamilies = o.nfamilies, .machine = machines(m, a, own_clocks)};
  s->nlinks = o.link.n, s->link = o.link.v, s->nmessages = o.message.n, s->message = o.message.v;
  s->posted_ps = o.posted.v;
  s->ncollectives = o.collective.n, s->collective = o.collective.v;
  s->nmembers = o.member.n, s->member = o.member.v;
  return s;
}
