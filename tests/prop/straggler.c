// straggler.c - pipelined jobs at random: small jobs whose times are worked out here from the rules of
// docs/diagnosis.md by going round until nothing changes, then read as a recording. A replay must give the same times
// again, and the same as going round after durations have changed; scores must be those of replays.
#include "diagnose/diagnose.h"
#include "test.h"
#include <stdlib.h>

static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

enum { OPS = 1024, AFTER = 6 };
typedef struct {
  u32 worker, type, seq, mb;
  i64 dur, ready, end;
  u32 group; // operations of one group begin together, when the last is ready
  u32 after[AFTER], nafter;
} op;
typedef struct {
  u32 data, stages, mbs, nops;
  bool gpipe, gc, norms, embedding, clip;
  op v[OPS];
} world;

static u32 find(const world *w, u32 worker, u32 type, u32 seq) {
  for (u32 k = 0; k < w->nops; k++)
    if (w->v[k].worker == worker && w->v[k].type == type && w->v[k].seq == seq) return k;
  return TRACE_NONE;
}

static u32 add(world *w, u32 worker, u32 type, u32 seq, u32 mb) {
  REQUIRE(w->nops < OPS);
  w->v[w->nops] =
      (op){.worker = worker, .type = type, .seq = seq, .mb = mb, .dur = 1 + few(50), .group = w->nops};
  return w->nops++;
}
static void wait_for(world *w, u32 k, u32 other) {
  if (k == TRACE_NONE || other == TRACE_NONE) return;
  REQUIRE(w->v[k].nafter < AFTER);
  w->v[k].after[w->v[k].nafter++] = other;
}
static void join(world *w, u32 a, u32 b) {
  if (a == TRACE_NONE || b == TRACE_NONE) return;
  const u32 from = w->v[b].group, to = w->v[a].group;
  for (u32 k = 0; k < w->nops; k++)
    if (w->v[k].group == from) w->v[k].group = to;
}

// Forward (F) and backward (B) computation of a stage in the order in which it comes: warm-up, one by one, the rest.
static u32 compute_order(const world *w, u32 stage, u32 *type, u32 *seq) {
  const u32 warm = w->gpipe ? w->mbs : MIN(w->stages - 1 - stage, w->mbs);
  u32 n = 0, f = 0, b = 0;
  while (f < warm) type[n] = STRAGGLER_FORWARD, seq[n++] = f++;
  while (b < w->mbs) {
    if (f < w->mbs) type[n] = STRAGGLER_FORWARD, seq[n++] = f++;
    type[n] = STRAGGLER_BACKWARD, seq[n++] = b++;
  }
  return n;
}

static void add_worker(world *w, u32 worker) {
  const u32 stage = worker / w->data;
  const bool first = !stage, last = stage + 1 == w->stages;
  u32 type[64], seq[64];
  const u32 n = compute_order(w, stage, type, seq);
  const u32 gather = add(w, worker, STRAGGLER_GATHER, 0, TRACE_NONE);
  for (u32 k = 0; k < n; k++) {
    const u32 me = add(w, worker, type[k], seq[k], seq[k]);
    if (k) wait_for(w, me, find(w, worker, type[k - 1], seq[k - 1]));
    if (type[k] == STRAGGLER_FORWARD && !seq[k]) wait_for(w, me, gather);
  }
  for (u32 way = 0; way < 4; way++) {
    const bool forward = way < 2, recv = way & 1;
    if (recv == forward ? first : last) continue; // at an end of the pipeline
    const u32 t = forward ? (recv ? STRAGGLER_FORWARD_RECV : STRAGGLER_FORWARD_SEND)
                          : (recv ? STRAGGLER_BACKWARD_RECV : STRAGGLER_BACKWARD_SEND);
    const u32 of = forward ? STRAGGLER_FORWARD : STRAGGLER_BACKWARD;
    for (u32 k = 0; k < w->mbs; k++) {
      const u32 me = add(w, worker, t, k, TRACE_NONE), served = find(w, worker, of, k);
      if (k) wait_for(w, me, find(w, worker, t, k - 1));
      if (recv) {
        wait_for(w, served, me);
        if (k) wait_for(w, me, find(w, worker, of, k - 1));
      } else {
        wait_for(w, me, served);
      }
      u32 back = 0;
      while (type[back] != STRAGGLER_BACKWARD) back++;
      if (!forward && !k && back >= 2) wait_for(w, me, find(w, worker, type[back - 2], seq[back - 2]));
    }
  }
  u32 tail = find(w, worker, type[n - 1], seq[n - 1]);
  const struct {
    bool is;
    u32 type;
  } then[] = {{w->gc, STRAGGLER_COLLECT},
              {w->norms, STRAGGLER_NORMS},
              {w->embedding && (first || last), STRAGGLER_EMBEDDING},
              {true, STRAGGLER_REDUCE},
              {w->clip, STRAGGLER_CLIP},
              {true, STRAGGLER_UPDATE}};
  for (u32 k = 0; k < COUNT_OF(then); k++) {
    if (!then[k].is) continue;
    const u32 me = add(w, worker, then[k].type, 0, TRACE_NONE);
    wait_for(w, me, tail);
    if (then[k].type == STRAGGLER_REDUCE) wait_for(w, me, gather);
    tail = me;
  }
}

static void add_groups(world *w) {
  for (u32 k = 0; k < w->data * w->stages; k++) {
    const u32 stage = k / w->data, data = k % w->data, next = k + w->data;
    for (u32 mb = 0; mb < w->mbs && stage + 1 < w->stages; mb++) {
      join(w, find(w, k, STRAGGLER_FORWARD_SEND, mb), find(w, next, STRAGGLER_FORWARD_RECV, mb));
      join(w, find(w, next, STRAGGLER_BACKWARD_SEND, mb), find(w, k, STRAGGLER_BACKWARD_RECV, mb));
    }
    join(w, find(w, stage * w->data, STRAGGLER_GATHER, 0), find(w, k, STRAGGLER_GATHER, 0));
    join(w, find(w, stage * w->data, STRAGGLER_REDUCE, 0), find(w, k, STRAGGLER_REDUCE, 0));
    join(w, find(w, data, STRAGGLER_EMBEDDING, 0), find(w, k, STRAGGLER_EMBEDDING, 0));
    join(w, find(w, 0, STRAGGLER_CLIP, 0), find(w, k, STRAGGLER_CLIP, 0));
  }
}

// Round and round: what is ready when its waits have ended, what ends after all of its group are ready.
static i64 settle(world *w) {
  for (u32 k = 0; k < w->nops; k++) w->v[k].ready = w->v[k].end = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (u32 k = 0; k < w->nops; k++) {
      op *o = &w->v[k];
      i64 there = 0;
      for (u32 i = 0; i < o->nafter; i++) o->ready = MAX(o->ready, w->v[o->after[i]].end);
      for (u32 i = 0; i < w->nops; i++)
        if (w->v[i].group == o->group) there = MAX(there, w->v[i].ready);
      if (there + o->dur > o->end) o->end = there + o->dur, moved = true;
    }
  }
  i64 last = 0;
  for (u32 k = 0; k < w->nops; k++) last = MAX(last, w->v[k].end);
  return last;
}

static world *random_world(arena *a) {
  world *w = NEW(a, world);
  w->data = 1 + few(3), w->stages = 1 + few(4), w->mbs = 1 + few(4);
  w->gpipe = few(2), w->gc = few(2), w->norms = few(2), w->embedding = few(2), w->clip = few(4) > 0;
  for (u32 k = 0; k < w->data * w->stages; k++) add_worker(w, k);
  add_groups(w);
  return w;
}

static void record(ctx *c, arena *a, const world *w, u32 step, i64 origin, trace *t) {
  if (!t->processes.n)
    for (u32 k = 0; k < w->data * w->stages; k++)
      *vec_push(a, &t->processes) =
          (trace_process){.rank = k, .placed = true, .data = k % w->data, .stage = k / w->data};
  for (u32 k = 0; k < w->nops; k++) {
    const op *o = &w->v[k];
    const u32 lane = trace_lane_of(a, t, o->worker, true, 0, 0);
    const u32 e = trace_add(a, t, TRACE_KERNEL, lane, sym_of(c, straggler_types[o->type].name),
                            origin + o->ready, o->end - o->ready);
    t->step[e] = step, t->microbatch[e] = o->mb, t->chunk[e] = 0;
  }
}

// Every operation as the job has it: the node, and its duration.
static void check_nodes(world *const *w, const straggler *s, u32 nsteps) {
  u32 seen = 0;
  for (u32 k = 0; k < s->n; k++) {
    const straggler_node *n = &s->node[k];
    if (n->worker == TRACE_NONE) continue;
    seen++;
    for (u32 i = 0; i < nsteps; i++) {
      const u32 at = find(w[i], n->worker, n->type, n->seq);
      REQUIRE(at != TRACE_NONE);
      CHECK_EQ_I64(s->recorded_ps[(size_t)i * s->n + k], w[i]->v[at].dur);
    }
  }
  CHECK_EQ_I64(seen, w[0]->nops);
}

static void check_changed(world *const *w, const straggler *s, arena *a, u32 nsteps) {
  i64 *dur = NEWN(a, i64, (size_t)nsteps * s->n), *step = NEWN(a, i64, nsteps);
  memcpy(dur, s->recorded_ps, (size_t)nsteps * s->n * sizeof *dur);
  for (u32 k = 0; k < s->n; k++) {
    const straggler_node *n = &s->node[k];
    if (n->worker == TRACE_NONE) continue;
    for (u32 i = 0; i < nsteps; i++) {
      op *o = &w[i]->v[find(w[i], n->worker, n->type, n->seq)];
      if (few(2)) o->dur = dur[(size_t)i * s->n + k] = few(4) ? few(90) : 0;
    }
  }
  straggler_replay(s, dur, step);
  for (u32 i = 0; i < nsteps; i++) CHECK_EQ_I64(step[i], settle(w[i]));
}

// What is told of a group is what replays of its durations take.
enum { BY_TYPE, BY_DATA, BY_STAGE, BY_WORKER, BY_MICROBATCH, KINDS };
static u32 number_of(const straggler *s, const straggler_blame *b, const straggler_node *n, u32 kind) {
  switch (kind) {
  case BY_TYPE: return b->group_of[n->type];
  case BY_DATA: return s->worker[n->worker].data;
  case BY_STAGE: return s->worker[n->worker].stage;
  case BY_WORKER: return n->worker;
  default: return n->microbatch;
  }
}

static void check_scores(const straggler *s, arena *a) {
  const straggler_blame *b = straggler_blame_of(a, s);
  const size_t all = (size_t)s->nsteps * s->n;
  i64 *alone = NEWN(a, i64, all), *repaired = NEWN(a, i64, all), *step = NEWN(a, i64, s->nsteps);
  const u32 count[KINDS] = {b->ngroups, s->ndata, s->nstages, s->nworkers, s->nmicro};
  const straggler_score *const got[KINDS] = {b->type, b->data, b->stage, b->worker, b->microbatch};
  for (u32 kind = 0; kind < KINDS; kind++) {
    const u32 pick = few(count[kind]);
    for (size_t i = 0; i < all; i++) {
      const straggler_node *n = &s->node[i % s->n];
      const bool in = n->worker != TRACE_NONE && number_of(s, b, n, kind) == pick;
      alone[i] = in ? s->recorded_ps[i] : s->ideal_ps[i % s->n];
      repaired[i] = in ? s->ideal_ps[i % s->n] : s->recorded_ps[i];
    }
    straggler_replay(s, alone, step);
    CHECK(straggler_mean(s, step) == got[kind][pick].alone_ps);
    straggler_replay(s, repaired, step);
    CHECK(straggler_mean(s, step) == got[kind][pick].repaired_ps);
  }
}

TEST(straggler_replays_are_what_going_round_gives) {
  for (u32 seed = 0; seed < 150; seed++) {
    R = seed;
    ctx *c = ctx_new();
    arena *a = arena_new();
    trace t = {0};
    world *w[2];
    i64 took[2];
    w[0] = random_world(a);
    w[1] = arena_dup(a, w[0], sizeof *w[0]);
    for (u32 k = 0; k < w[1]->nops; k++) w[1]->v[k].dur = 1 + few(50);
    for (u32 i = 0; i < 2; i++) took[i] = settle(w[i]), record(c, a, w[i], 3 + i, 100000 * i, &t);
    straggler *s = straggler_new(c, a, &t, sym_of(c, "random"), NULL);
    CHECK_MSG(s, "seed %u: %s", seed, diag_render(c, a));
    REQUIRE(s);
    CHECK_EQ_I64(s->nsteps, 2);
    check_nodes(w, s, 2);
    i64 step[2];
    straggler_replay(s, s->recorded_ps, step);
    for (u32 i = 0; i < 2; i++) CHECK_EQ_I64(step[i], took[i]);
    check_scores(s, a);
    check_changed(w, s, a, 2);
    arena_free(a);
    ctx_free(c);
  }
}
