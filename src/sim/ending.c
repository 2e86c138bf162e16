// ending.c - what comes after the tasks of a pipeline (sums of gradients, updates, results), kept for pipelines
// whose probe leaves it out. Not what it is (stages.c), and not who may take it to be the same (plan/).
//
// Idea: what comes after all tasks does the same if its instructions are the same, the ranks are in the same
// classes, and the values that tasks leave for it are as large, as much its own and made on the same streams.
// The first is for the caller to know; the others are compared here.
#include "sim/heap.h"
#include "sim/stages.h"

// ---- what tasks leave -------------------------------------------------------------------------------------
typedef struct {
  sim *s;
  walk *w;
  const u32 *cls; // classes of the place
  u32 C;
  VEC(i64) v;
  bool odd;
} leaving;

static void put_size(leaving *x, const msize *z, u32 more) {
  *vec_push(x->s->tmp, &x->v) = more;
  for (u32 c = 0; c < x->C; c++) *vec_push(x->s->tmp, &x->v) = size_on(z, x->cls[c]);
}

static void put_buffer(leaving *x, u32 b) {
  const buffer *at = b == NO_BUFFER ? NULL : heap_at(&x->w->h, b);
  x->odd |= !at || at->refs != 1 || !at->live || !at->owned || at->lent;
  for (u32 k = 0; at && k < heap_parts(at); k++) put_size(x, heap_part_size(at, k), heap_part_more(at, k));
}

static stage_left left_as(leaving *x, arena *a, value v) {
  heap *h = &x->w->h;
  x->v.n = 0, x->odd = false;
  *vec_push(x->s->tmp, &x->v) = x->s->made ? x->s->made[v] : 0;
  const u32 b = heap_whole(h, v);
  const span leaves = b == NO_BUFFER ? h->val[v] : (span){0};
  if (b != NO_BUFFER) put_buffer(x, b);
  for (u32 q = leaves.begin; q < leaves.begin + leaves.n; q++) put_buffer(x, heap_only(h, q));
  return (stage_left){x->v.n, arena_dup(a, x->v.v, x->v.n * sizeof *x->v.v), x->odd};
}

const stage_left *ending_left(sim *s, arena *a, walk *w, const u32 *rank_class, u32 C) {
  const sim_pipeline *pl = s->pipeline;
  stage_left *left = NEWN(a, stage_left, pl->nleft + 1);
  leaving x = {.s = s, .w = w, .C = C};
  for (u32 k = 0; k < pl->nleft; k++) {
    x.cls = rank_class + pl->place[pl->left[k].stage] * C;
    left[k] = left_as(&x, a, pl->left[k].v);
  }
  return left;
}

// ---- the same elsewhere -----------------------------------------------------------------------------------
bool ending_has_classes(const sim_ending *e, const sim_stages *st) {
  return e->of.nclass == st->nclass && e->of.nmembers == st->nmembers &&
         !memcmp(e->of.member_class, st->member_class, st->nmembers * sizeof *st->member_class);
}

static bool same_left(const stage_left *x, const stage_left *y) {
  return !x->odd && !y->odd && x->n == y->n && !memcmp(x->v, y->v, x->n * sizeof *x->v);
}

// Of every value that there was: what the stage leaves that stands for that one here.
bool ending_fits(const sim_ending *e, const sim_stages *st) {
  const sim_pipeline *was = &e->of.pl, *is = &st->pl;
  for (u32 k = 0; k < was->nleft; k++) {
    const u32 like = is->like[was->left[k].stage];
    u32 j = 0;
    while (j < is->nleft && (is->left[j].stage != like || is->left[j].what != was->left[k].what)) j++;
    if (j == is->nleft || !same_left(&e->of.left[k], &st->left[j])) return false;
  }
  return true;
}

static void copy(arena *a, sim_stages *to, const sim_stages *from) {
  const u32 C = from->nclass, n = from->nreps * C;
  stage_task *tail = arena_dup(a, from->tail, from->nreps * sizeof *tail);
  for (u32 r = 0; r < from->nreps; r++) {
    tail[r].busy = arena_dup(a, tail[r].busy, C * sizeof *tail->busy);
    tail[r].comm = arena_dup(a, tail[r].comm, C * sizeof *tail->comm);
  }
  stage_after *bytes = arena_dup(a, from->after_bytes, from->nafter * from->nreps * sizeof *bytes);
  for (u32 k = 0; k < from->nafter * from->nreps; k++) {
    bytes[k].bytes = arena_dup(a, bytes[k].bytes, C * sizeof *bytes->bytes);
    bytes[k].freed = arena_dup(a, bytes[k].freed, C * sizeof *bytes->freed);
  }
  to->start = arena_dup(a, from->start, n * sizeof *from->start);
  to->after = arena_dup(a, from->after, n * n * sizeof *from->after);
  to->tail = tail;
  to->nafter = from->nafter, to->after_bytes = bytes, to->after_sends = from->after_sends;
}

void ending_use(arena *a, sim_stages *st, const sim_ending *e) {
  assert(st->nreps == e->of.nreps); // places are alike as they were
  copy(a, st, &e->of);
}

const sim_stages *sim_stages_ending(arena *a, const sim_stages *st, const sim_ending *e) {
  if (!ending_has_classes(e, st) || !ending_fits(e, st)) return NULL;
  sim_stages *x = arena_dup(a, st, sizeof *st);
  ending_use(a, x, e);
  return x;
}

const sim_ending *sim_ending_of(arena *a, const sim_stages *st) {
  for (u32 k = 0; k < st->pl.nleft; k++)
    if (st->left[k].odd) return NULL;
  sim_ending *e = ZNEWN(a, sim_ending, 1);
  sim_stages *to = &e->of;
  const u32 n = st->pl.nleft;
  stage_left *left = arena_dup(a, st->left, n * sizeof *left);
  for (u32 k = 0; k < n; k++) left[k].v = arena_dup(a, left[k].v, left[k].n * sizeof *left->v);
  to->nclass = st->nclass, to->nmembers = st->nmembers, to->nreps = st->nreps;
  to->member_class = arena_dup(a, st->member_class, st->nmembers * sizeof *st->member_class);
  to->left = left, to->pl.nleft = n, to->pl.left = arena_dup(a, st->pl.left, n * sizeof *st->pl.left);
  copy(a, to, st);
  return e;
}
