// flight.c - groups, entries and where ranks stand, of dumps of the flight recorder. Not reading them (flight_read.c).
//
// Idea: a group is its name and its members, because names are given by each process and need not be unique in a job.
#include "diagnose/flight.h"
#include <stdlib.h>

const char *flight_state_name(u8 s) {
  static const char *const name[] = {"scheduled", "started", "completed"};
  return name[s];
}

u32 flight_group_of(flight *f, sym name, sym desc, u32 n, const u32 *member) {
  for (u32 k = 0; k < f->groups.n; k++) {
    flight_group *g = &f->groups.v[k];
    if (g->name.i != name.i || g->size != n || (n && memcmp(g->member, member, n * sizeof *member))) continue;
    if (!g->desc.i) g->desc = desc;
    return k;
  }
  flight_group g = {.name = name, .desc = desc, .size = n};
  if (n) {
    u32 *sorted = arena_dup(f->a, member, n * sizeof *member);
    qsort(sorted, n, sizeof *sorted, ascending_u32);
    g.member = arena_dup(f->a, member, n * sizeof *member);
    g.sorted = sorted;
  }
  *vec_push(f->a, &f->groups) = g;
  return f->groups.n - 1;
}

flight_stand *flight_stand_add(flight *f, u32 group, u32 rank) {
  for (u32 k = f->stands.n; k-- && f->stands.v[k].rank == rank;) // of one dump they follow each other
    if (f->stands.v[k].group == group) return &f->stands.v[k];
  flight_stand *s = vec_push(f->a, &f->stands);
  *s = (flight_stand){group, rank, -1, -1, -1, -1, -1};
  return s;
}

// ---- order ----------------------------------------------------------------------------------------------------
#define COMPARE(x, y)                                                                                        \
  if ((x) != (y)) return (x) < (y) ? -1 : 1

static int by_place(const void *x, const void *y) {
  const flight_entry *a = x, *b = y;
  COMPARE(a->group, b->group);
  COMPARE(a->p2p, b->p2p);
  COMPARE(a->seq, b->seq);
  COMPARE(a->rank, b->rank);
  COMPARE(a->order, b->order);
  return 0;
}

static int by_group(const void *x, const void *y) {
  const flight_stand *a = x, *b = y;
  COMPARE(a->group, b->group);
  COMPARE(a->rank, b->rank);
  return 0;
}

static int by_rank(const void *x, const void *y) {
  const flight_dump *a = x, *b = y;
  COMPARE(a->rank, b->rank);
  COMPARE(a->path.i, b->path.i);
  return 0;
}

bool flight_done(flight *f) {
  if (f->dumps.n) qsort(f->dumps.v, f->dumps.n, sizeof *f->dumps.v, by_rank);
  for (u32 k = 1; k < f->dumps.n; k++) {
    const flight_dump *d = &f->dumps.v[k];
    if (d[-1].rank != d->rank) continue;
    diag(f->c, E_TRACE, loc_node(f->c, d->path, (sym){0}, (sym){0}), "a second dump of rank %u", d->rank);
    diag_note(f->c, loc_node(f->c, d[-1].path, (sym){0}, (sym){0}), "the first one");
    diag_hint(f->c,
              "name the dumps of one run; a file without a rank in it has it in its name: nccl_trace_rank_3");
    return false;
  }
  if (f->entries.n) qsort(f->entries.v, f->entries.n, sizeof *f->entries.v, by_place);
  if (f->stands.n) qsort(f->stands.v, f->stands.n, sizeof *f->stands.v, by_group);
  for (u32 k = 0; k < f->stands.n; k++) { // what is done has begun, what has begun was called
    flight_stand *x = &f->stands.v[k];
    x->started = MAX(x->started, x->completed);
    x->enqueued = MAX(x->enqueued, x->started);
  }
  for (u32 g = 0, k = 0; g < f->groups.n; g++) { // without members: those that have been there
    flight_group *x = &f->groups.v[g];
    while (k < f->stands.n && f->stands.v[k].group < g) k++;
    u32 n = 0;
    while (k + n < f->stands.n && f->stands.v[k + n].group == g) n++;
    if (x->size) continue;
    u32 *m = NEWN(f->a, u32, n);
    for (u32 i = 0; i < n; i++) m[i] = f->stands.v[k + i].rank;
    x->size = n, x->member = x->sorted = m;
  }
  return true;
}

const flight_dump *flight_dump_of(const flight *f, u32 rank) {
  const flight_dump key = {.rank = rank};
  u32 lo = 0, hi = f->dumps.n;
  while (lo < hi) {
    const u32 mid = (lo + hi) / 2;
    if (f->dumps.v[mid].rank < key.rank)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < f->dumps.n && f->dumps.v[lo].rank == rank ? &f->dumps.v[lo] : NULL;
}

const flight_stand *flight_stand_of(const flight *f, u32 group, u32 rank) {
  const flight_stand key = {.group = group, .rank = rank};
  return f->stands.n ? bsearch(&key, f->stands.v, f->stands.n, sizeof key, by_group) : NULL;
}
