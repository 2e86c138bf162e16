// test_align.c - clocks found again where the truth is known: rings, machines, jumps, pieces; and what cannot be found.
#include "rings.h"

enum { SEEDS = 20 };

static const ring few = {.ranks = 128, .each = 10, .latency = 10e6, .jitter = 30e6};
static const ring small = {.ranks = 8, .each = 2000, .drift = 50e-6, .latency = 10e6, .jitter = 30e6};

TEST(align_ring_of_128_with_10_messages_a_link) {
  const double us = ring_median_error(&few, SEEDS);
  CHECK_MSG(us <= 20, "median error %.3f us, at most 20", us);
}

// Errors are as large as they are said to be: of 20 rings, at least nine in ten clocks within two standard errors.
TEST(align_uncertainty_is_right) {
  for (u32 drifts = 0; drifts < 2; drifts++) {
    u32 in = 0, all = 0;
    for (u64 seed = 1; seed <= SEEDS; seed++) {
      arena *a = arena_new();
      ring r = few;
      r.ranks = 16, r.each = drifts ? 400 : 10, r.drift = drifts * 50e-6;
      const ring_job j = ring_make(a, &r, seed);
      const align_opts o = {.drift = drifts ? ALIGN_DRIFT_LINEAR : ALIGN_DRIFT_NONE};
      const align_clocks *x = align_find(a, &j.seen, &o);
      for (u32 k = 1; k < r.ranks; k++) {
        const double t = drifts * 60 * SECOND;
        const i64 off = align_time(x, k, ring_reading(&j, k, t)) - align_time(x, 0, ring_reading(&j, 0, t));
        in += fabs((double)off) <= 2 * align_sd_ps(x, k), all++;
        if (!drifts) {
          const double truth = j.offset[k] - j.offset[0];
          CHECK(x->clock[k].low_ps <= truth + 2 && truth - 2 <= x->clock[k].high_ps);
        }
      }
      arena_free(a);
    }
    CHECK_MSG(in * 10 >= all * 9 && in < all, "%u of %u within two standard errors", in, all);
  }
}

TEST(align_needs_no_order_of_messages) {
  arena *a = arena_new();
  const ring_job j = ring_make(a, &small, 5);
  const align_clocks *x = align_find(a, &j.seen, NULL);
  align_message *m = arena_dup(a, j.seen.message, j.seen.nmessages * sizeof *m);
  u64 rng = 9;
  for (u32 k = j.seen.nmessages - 1; k > 0; k--) {
    const u32 i = (u32)(rng_next(&rng) % (k + 1));
    const align_message t = m[k];
    m[k] = m[i], m[i] = t;
  }
  align_seen seen = j.seen;
  seen.message = m;
  const align_clocks *y = align_find(a, &seen, NULL);
  CHECK_EQ_I64(y->slack_ps, x->slack_ps);
  for (u32 k = 0; k < 8; k++) CHECK_EQ_I64(align_offset(y, k), align_offset(x, k));
  arena_free(a);
}

// A ring in one direction has one cycle: its slack and the offsets follow from going round.
TEST(align_one_way_ring) {
  arena *a = arena_new();
  ring r = small;
  r.drift = 0, r.one_way = true;
  const ring_job j = ring_make(a, &r, 3);
  const align_clocks *x = align_find(a, &j.seen, NULL);
  CHECK_EQ_I64(x->ncycle, r.ranks);
  CHECK(ring_error(&j, x) < 1);
  CHECK(fabs(x->latency_ps[0] - 10e6) < 0.2e6);
  arena_free(a);
}

TEST(align_one_way_link_has_no_cycle) {
  arena *a = arena_new();
  const align_message m[] = {{0, 1000000, 6000000}, {0, 2000000, 6500000}};
  const align_seen seen = {.nprocesses = 2,
                           .nfamilies = 1,
                           .nlinks = 1,
                           .link = &(align_link){0, 1, 0},
                           .nmessages = 2,
                           .message = m};
  const align_clocks *x = align_find(a, &seen, NULL);
  CHECK_EQ_I64(x->slack_ps, INT64_MAX);
  CHECK_EQ_I64(x->clock[1].high_ps, 4500000); // no later than the fastest message allows
  CHECK_EQ_I64(x->clock[1].low_ps, INT64_MIN);
  CHECK_EQ_I64((i64)x->after, 0);
  arena_free(a);
}

TEST(align_machines_share_a_clock) {
  arena *a = arena_new();
  ring r = small;
  r.drift = 0;
  ring_job j = ring_make(a, &r, 2);
  const u32 machine[] = {7, 7, 4, 4, 9, 9, 1, 1};
  for (u32 k = 0; k < j.seen.nmessages; k++) { // read the other clock of the machine instead
    align_message *m = (align_message *)&j.seen.message[k];
    const align_link *l = &j.seen.link[m->link];
    m->send_ps += (i64)(j.offset[l->from & ~1u] - j.offset[l->from]);
    m->recv_ps += (i64)(j.offset[l->to & ~1u] - j.offset[l->to]);
  }
  j.seen.machine = machine;
  const align_clocks *x = align_find(a, &j.seen, NULL);
  for (u32 k = 0; k < 8; k += 2) {
    CHECK_EQ_I64(align_offset(x, k), align_offset(x, k + 1));
    CHECK(fabs((double)align_offset(x, k) - j.offset[k]) < 1e6);
  }
  CHECK_EQ_I64((i64)x->after, 0);
  arena_free(a);
}

TEST(align_processes_that_nothing_connects) {
  arena *a = arena_new();
  const align_link link[] = {{0, 2, 0}, {2, 0, 0}, {1, 3, 0}, {3, 1, 0}};
  const align_message m[] = {{0, 0, 100}, {1, 50, 70}, {2, 1000000000000, 40}, {3, 60, 1000000000090}};
  const align_seen seen = {
      .nprocesses = 5, .nfamilies = 1, .nlinks = 4, .link = link, .nmessages = 4, .message = m};
  const align_clocks *x = align_find(a, &seen, NULL);
  CHECK_EQ_I64(x->ncomponents, 3);
  CHECK(x->clock[0].component == x->clock[2].component && x->clock[1].component == x->clock[3].component);
  CHECK(x->clock[0].component != x->clock[1].component && x->clock[4].component != x->clock[1].component);
  CHECK_EQ_I64(x->reference[x->clock[3].component], 1);
  CHECK_EQ_I64(align_offset(x, 2), 40); // (100 - 20) / 2
  CHECK_EQ_I64((i64)x->before, 1);
  CHECK_EQ_I64((i64)x->after, 0);
  arena_free(a);
}

// What no offsets and drifts satisfy: a message that arrives before it can have been sent.
TEST(align_names_the_cycle_that_contradicts) {
  arena *a = arena_new();
  ring r = small;
  r.drift = 0;
  ring_job j = ring_make(a, &r, 4);
  align_message *m = (align_message *)j.seen.message;
  u32 at[3];
  for (u32 k = 0; k < 3; k++) { // three that are 500 us early: no drift goes through all of them
    at[k] = 3 * r.each + r.each * (1 + k) / 4;
    m[at[k]].recv_ps -= 500000000;
  }
  const align_clocks *x = align_find(a, &j.seen, &(align_opts){.drift = ALIGN_DRIFT_LINEAR});
  CHECK_EQ_I64(x->ncycle, 2);
  CHECK(x->slack_ps < -200000000 && x->slack_ps > -260000000);
  bool named = false;
  for (u32 k = 0; k < x->ncycle; k++) named |= x->cycle[k].from == 3 && x->cycle[k].to == 4;
  CHECK(named);
  CHECK_EQ_I64((i64)x->after, 3);
  CHECK(x->worst_after > 400000000);
  CHECK_EQ_I64(x->njumps, 0);
  arena_free(a);
}

TEST(align_clock_that_jumps) {
  for (u32 sign = 0; sign < 2; sign++) {
    arena *a = arena_new();
    ring r = small;
    r.jumper = 5, r.jump = sign ? -2e9 : 3e9;
    const ring_job j = ring_make(a, &r, 6);
    const align_clocks *x = align_find(a, &j.seen, NULL);
    CHECK_EQ_I64(x->njumps, 1);
    if (x->njumps) {
      CHECK_EQ_I64(x->jump[0].process, 5);
      CHECK(fabs((double)x->jump[0].by_ps - r.jump) < 0.1 * fabs(r.jump));
      CHECK(fabs((double)(x->jump[0].time_ps - ring_reading(&j, 5, 30 * SECOND))) <=
            (double)x->jump[0].within_ps);
    }
    arena_free(a);
  }
}

TEST(align_clocks_of_two_pieces) {
  arena *a = arena_new();
  ring r = small;
  r.bend = 60e-6;
  const ring_job j = ring_make(a, &r, 7);
  const align_clocks *x = align_find(a, &j.seen, NULL);
  CHECK_EQ_I64(x->nknots, 3);
  CHECK_EQ_I64(x->njumps, 0);
  CHECK_EQ_I64((i64)x->after, 0);
  CHECK_MSG(ring_error(&j, x) < 5, "off by %.3f us", ring_error(&j, x));
  arena_free(a);
}

// dPRO: with receivers that wait for some messages only, the variance says where offsets are; with all of them
// waiting it says nothing.
TEST(align_dpro) {
  arena *a = arena_new();
  ring r = small;
  r.drift = 0, r.jitter = 0.01e6;
  ring_job j = ring_make(a, &r, 8);
  i64 *posted = NEWN(a, i64, j.seen.nmessages);
  u64 rng = 3;
  for (u32 k = 0; k < j.seen.nmessages; k++) { // half of the messages are there when they are asked for
    align_message *m = (align_message *)&j.seen.message[k];
    posted[k] = m->recv_ps - 10000000 - 200000000;
    if (!(rng_next(&rng) & 1)) continue;
    posted[k] = m->recv_ps + 300000000;
    m->recv_ps = posted[k] + 10000000;
  }
  j.seen.posted_ps = posted;
  const align_opts o = {.method = ALIGN_DPRO};
  const align_clocks *x = align_find(a, &j.seen, &o);
  CHECK(!x->flat);
  CHECK_MSG(ring_error(&j, x) < 1, "off by %.3f us", ring_error(&j, x));
  j.seen.posted_ps = NULL;
  const align_clocks *y = align_find(a, &j.seen, &o);
  CHECK(y->flat);
  CHECK_EQ_I64((i64)y->after, 0);
  arena_free(a);
}

TEST(align_nothing) {
  arena *a = arena_new();
  const align_clocks *x = align_find(a, &(align_seen){.nprocesses = 3}, NULL);
  CHECK_EQ_I64(x->ncomponents, 3);
  CHECK_EQ_I64(align_time(x, 2, 12345), 12345);
  CHECK_EQ_I64(x->slack_ps, INT64_MAX);
  arena_free(a);
}
