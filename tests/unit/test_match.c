// test_match.c - communications matched across ranks: by number, by order, by peers; what does not match; waits and
// transfers of a real job against its table.
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static const char *const MEGATRON = "traces/astrasim_24S";

static match *megatron(ctx *c, arena *a) {
  const char *path[8];
  for (u32 k = 0; k < 8; k++)
    path[k] = arena_strdup(a, test_data(arena_printf(a, "%s/megatron_kineto_%u.json.gz", MEGATRON, k)));
  job *j = job_open(c, a, 8, path);
  match *m = j ? match_job(j, a) : NULL;
  job_close(j);
  return m;
}

static bool near_us(i64 ps, const char *us) { // tables are in whole microseconds
  const i64 off = ps - strtoll(us, NULL, 10) * 1000000;
  return off >= -1000000 && off <= 1000000;
}

TEST(match_every_all_reduce_of_a_job_of_8) {
  test_data("traces/astrasim_24S"); // a test that is skipped has made nothing
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view f;
  REQUIRE(file_map(c, test_data("traces/expected/megatron_tp8_allreduce.csv"), &f));
  match *m = megatron(c, a);
  REQUIRE(m);
  CHECK_EQ_I64(m->row.n, 84);
  CHECK_EQ_I64(m->problem.n, 0);
  char *line = strtok(arena_strndup(a, (const char *)f.data, f.size), "\n");
  for (u32 k = 0; k < m->row.n && (line = strtok(NULL, "\n")); k++) {
    const match_row *r = &m->row.v[k];
    const match_member *v = m->member.v + r->first;
    char *field[16] = {0}, *at = line;
    for (u32 i = 0; i < 14 && at; i++) {
      field[i] = at;
      if ((at = strchr(at, ','))) *at++ = 0;
    }
    REQUIRE(field[13]);
    CHECK_EQ_I64(r->n, 8);
    CHECK(!strncmp(sym_str(c, r->name), field[1], strlen(field[1])));
    CHECK_EQ_I64(m->places.v[v[r->late].place].rank, atoi(field[2]));
    i64 transfer = INT64_MAX, wait = 0, first = INT64_MAX, last = INT64_MIN;
    for (u32 i = 0; i < r->n; i++) {
      transfer = v[i].transfer_ps < transfer ? v[i].transfer_ps : transfer;
      wait = MAX(wait, v[i].wait_ps), first = MIN(first, v[i].end_ps), last = MAX(last, v[i].end_ps);
      CHECK_MSG(near_us(v[i].wait_ps, field[6 + i]), "all-reduce %u rank %u waits %lld ps, not %s us", k, i,
                (long long)v[i].wait_ps, field[6 + i]);
    }
    CHECK_MSG(near_us(transfer, field[3]), "all-reduce %u transfers %lld ps, not %s us", k,
              (long long)transfer, field[3]);
    CHECK(near_us(wait, field[4]) && near_us(last - first, field[5]));
  }
  file_unmap(&f);
  arena_free(a);
  ctx_free(c);
}

// ---- made-up jobs ---------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  match *m;
  u32 files;
} made;
typedef struct {
  const char *op, *group;
  i64 at_us, seq;
  u32 peer, size;
  i64 bytes;
} made_call;

static made begin(void) {
  made x = {.c = ctx_new(), .a = arena_new()};
  x.m = match_new(x.c, x.a);
  return x;
}
static void end(made *x) {
  arena_free(x->a);
  ctx_free(x->c);
}

// One rank more, whose clock is late by offset. Calls without an operation end the list.
static void add_rank(made *x, i64 offset_us, const made_call *v) {
  arena *a = arena_new();
  trace *t = NEW(a, trace);
  *vec_push(a, &t->processes) = (trace_process){.rank = x->files, .pid = -1};
  const u32 lane = trace_lane_of(a, t, 0, true, 0, 7);
  for (; v->op; v++) {
    const u32 e =
        trace_add(a, t, TRACE_KERNEL, lane, sym_of(x->c, v->op), (v->at_us - offset_us) * 1000000, 100000000);
    t->flags[e] = TRACE_COMM, t->comm[e] = t->comms.n;
    *vec_push(a, &t->comms) = (trace_comm){.op = sym_of(x->c, v->op),
                                           .group = sym_of(x->c, v->group),
                                           .seq = v->seq,
                                           .peer = v->peer,
                                           .size = v->size,
                                           .in = -1,
                                           .out = -1,
                                           .bytes = v->bytes};
  }
  match_add(x->m, t, x->files, x->files);
  x->files++;
  arena_free(a); // what is matched needs no trace
}

static const made_call *calls(arena *a, u32 n, const made_call *every, i64 step_us, u32 but) {
  made_call *v = ZNEWN(a, made_call, n + 1);
  u32 m = 0;
  for (u32 k = 0; k < n; k++) {
    if (k == but) continue;
    v[m] = *every;
    v[m].at_us +=
        step_us * k + (k * 2654435761u >> 20) % 17 * 15; // unevenly, so that it shows which is which
    if (every->seq >= 0) v[m].seq += k;
    m++;
  }
  return v;
}

static u32 whole(const match *m, u32 n) { // rows of so many members
  u32 rows = 0;
  for (u32 k = 0; k < m->row.n; k++) rows += m->row.v[k].n == n;
  return rows;
}

static const made_call REDUCE = {"all_reduce", "dp", 0, -1, TRACE_NONE, 0, 4096},
                       NUMBERED = {"all_reduce", "dp", 0, 100, TRACE_NONE, 0, 4096};

TEST(match_by_number_with_one_missing_and_one_twice) {
  made x = begin();
  add_rank(&x, 0, calls(x.a, 10, &NUMBERED, 1000, 99));
  add_rank(&x, 700, calls(x.a, 10, &NUMBERED, 1000, 4));
  made_call *v = (made_call *)calls(x.a, 10, &NUMBERED, 1000, 99);
  v[7].seq = v[6].seq;
  add_rank(&x, -300, v);
  match_finish(x.m);
  CHECK_EQ_I64(x.m->row.n, 10);
  CHECK_EQ_I64(whole(x.m, 3), 8);
  CHECK_EQ_I64(x.m->problem.n, 3);
  u32 orphans = 0, twice = 0;
  for (u32 k = 0; k < x.m->problem.n; k++) {
    const match_problem *p = &x.m->problem.v[k];
    if (p->is == MATCH_ORPHAN)
      CHECK(p->of == 2 && p->other == 3 && (p->seq == 104 || p->seq == 107)), orphans++;
    if (p->is == MATCH_DUPLICATE) CHECK(p->place == 2 && p->seq == 106), twice++;
  }
  CHECK_EQ_I64(orphans, 2);
  CHECK_EQ_I64(twice, 1);
  for (u32 k = 0; k < x.m->row.n; k++) CHECK(x.m->row.v[k].by == MATCH_BY_NUMBER);
  end(&x);
}

TEST(match_by_number_of_different_operations) {
  made x = begin();
  add_rank(&x, 0, calls(x.a, 4, &NUMBERED, 1000, 99));
  made_call *v = (made_call *)calls(x.a, 4, &NUMBERED, 1000, 99);
  v[2].op = "all_gather";
  add_rank(&x, 0, v);
  match_finish(x.m);
  CHECK_EQ_I64(whole(x.m, 2), 3);
  CHECK_EQ_I64(x.m->problem.n, 2);
  CHECK_EQ_I64(x.m->problem.v[0].is, MATCH_DIFFERENT);
  CHECK_EQ_I64(x.m->problem.v[0].seq, 102);
  CHECK_EQ_I64(x.m->problem.v[1].is, MATCH_ORPHAN);
  end(&x);
}

// A recording that lacks its first calls, one that lacks one in the middle, clocks hours apart.
TEST(match_by_order_where_calls_are_missing) {
  made x = begin();
  add_rank(&x, 0, calls(x.a, 40, &REDUCE, 1000, 99));
  add_rank(&x, 7200000000, calls(x.a, 40, &REDUCE, 1000, 17));
  add_rank(&x, -5000, calls(x.a, 40, &REDUCE, 1000, 99) + 5);
  match_finish(x.m);
  CHECK_EQ_I64(x.m->row.n, 40);
  CHECK_EQ_I64(whole(x.m, 3), 34);
  CHECK_EQ_I64(x.m->problem.n, 6);
  for (u32 k = 0; k < x.m->problem.n; k++) {
    const match_problem *p = &x.m->problem.v[k];
    CHECK(p->is == MATCH_ORPHAN && p->of == 2 && p->other == 3 && (p->seq < 5 || p->seq == 17));
  }
  end(&x);
}

TEST(match_groups_of_one_name_by_their_members) {
  made x = begin();
  for (u32 k = 0; k < 4; k++) {
    arena *a = arena_new();
    trace *t = NEW(a, trace);
    *vec_push(a, &t->processes) = (trace_process){.rank = k, .pid = -1};
    for (u32 i = 0; i < 6; i++) { // two streams: the k-th of each rank is the same, whatever its number
      const u32 lane = trace_lane_of(a, t, 0, true, 0, (i & 1 ? 20 : 10) + k);
      const u32 e = trace_add(a, t, TRACE_KERNEL, lane, sym_of(x.c, "k"), i * 1000, i & 1 ? 10 : 20);
      t->flags[e] = TRACE_COMM, t->comm[e] = t->comms.n;
      *vec_push(a, &t->comms) = (trace_comm){.op = sym_of(x.c, "all_gather"),
                                             .group = sym_of(x.c, "tp"),
                                             .seq = -1,
                                             .members = sym_of(x.c, k < 2 ? "0,1" : "2,3"),
                                             .peer = TRACE_NONE};
    }
    match_add(x.m, t, k, k);
    arena_free(a);
  }
  match_finish(x.m);
  CHECK_EQ_I64(x.m->row.n, 12);
  CHECK_EQ_I64(whole(x.m, 2), 12);
  CHECK_EQ_I64(x.m->problem.n, 0);
  for (u32 k = 0; k < x.m->row.n; k++) {
    const match_member *v = x.m->member.v + x.m->row.v[k].first;
    CHECK(v[0].place / 2 == v[1].place / 2 && v[0].end_ps - v[0].start_ps == v[1].end_ps - v[1].start_ps);
  }
  end(&x);
}

TEST(match_sends_with_receives) {
  made x = begin();
  const made_call up[] = {{"send", "pp", 0, -1, 1, 0, 64},
                          {"send", "pp", 500, -1, 1, 0, 64},
                          {"recv", "pp", 700, -1, 1, 0, 64},
                          {"send", "pp", 900, -1, TRACE_NONE, 0, 64},
                          {0}};
  const made_call down[] = {{"recv", "pp", 10, -1, 0, 0, 64},
                            {"recv", "pp", 480, -1, 0, 0, 64},
                            {"send", "pp", 690, -1, 0, 0, 64},
                            {"send", "pp", 990, -1, 0, 0, 64},
                            {0}};
  add_rank(&x, 0, up);
  add_rank(&x, 0, down);
  match_finish(x.m);
  CHECK_EQ_I64(whole(x.m, 2), 3);
  for (u32 k = 0; k < x.m->row.n; k++) { // the sender first
    const match_row *r = &x.m->row.v[k];
    if (r->n == 2)
      CHECK_EQ_I64(x.m->member.v[r->first].start_ps == 690000000, x.m->member.v[r->first].place == 1);
  }
  CHECK_EQ_I64(x.m->problem.n, 2);
  CHECK_EQ_I64(x.m->problem.v[0].is, MATCH_UNKNOWN);
  CHECK_EQ_I64(x.m->problem.v[1].is, MATCH_ORPHAN);
  const align_seen *seen = align_observe(x.a, x.m, false);
  CHECK_EQ_I64(seen->nmessages, 3);
  CHECK_EQ_I64(seen->nlinks, 2);
  end(&x);
}

// Waits on corrected clocks are those that true clocks show.
TEST(match_waits_on_corrected_clocks) {
  made x = begin();
  for (u32 k = 0; k < 3; k++) {
    made_call *v = (made_call *)calls(x.a, 20, &REDUCE, 1000, 99);
    add_rank(&x, k * 33333, v);
  }
  match_finish(x.m);
  const match_member *v = x.m->member.v + x.m->row.v[4].first;
  CHECK_EQ_I64(v[2].wait_ps, 2 * 33333000000);
  const align_clocks *c = align_find(x.a, align_observe(x.a, x.m, false), NULL);
  match_time(x.m, c);
  for (u32 k = 0; k < x.m->member.n; k++) {
    CHECK(x.m->member.v[k].wait_ps < 1000000);
    CHECK(llabs(x.m->member.v[k].transfer_ps - 100000000) < 1000000);
  }
  end(&x);
}

// ---- clocks of the same job, each rank's shifted ------------------------------------------------------------
// Ends of collectives find the shifts again: no nearer than the ranks end together, which is 9 us on average.
static void check_shifted(double ppm, u64 seeds) {
  test_data("traces/astrasim_24S"); // a test that is skipped has made nothing
  ctx *c = ctx_new();
  arena *a = arena_new();
  const match *m = megatron(c, a);
  REQUIRE(m);
  for (u64 seed = 1; seed <= seeds; seed++) {
    const align_seen *recorded = align_observe(a, m, true);
    CHECK_EQ_I64(recorded->ncollectives, 84);
    align_member *v = (align_member *)recorded->member;
    const i64 first = v[0].start_ps;
    double offset[8], drift[8];
    u64 rng = seed;
    for (u32 k = 0; k < 8; k++) {
      offset[k] = (rng_unit(&rng) * 2 - 1) * 50e9, drift[k] = (rng_unit(&rng) * 2 - 1) * ppm * 1e-6;
      if (!k) offset[k] = drift[k] = 0;
    }
    i64 *start = NEWN(a, i64, recorded->nmembers), *end = NEWN(a, i64, recorded->nmembers);
    for (u32 k = 0; k < recorded->nmembers; k++) {
      const u32 p = v[k].process;
      start[k] = v[k].start_ps, end[k] = v[k].end_ps;
      v[k].start_ps += (i64)(offset[p] + drift[p] * (double)(start[k] - first));
      v[k].end_ps += (i64)(offset[p] + drift[p] * (double)(end[k] - first));
    }
    const align_clocks *x = align_find(a, recorded, NULL);
    double worst = 0;
    for (u32 k = 0; k < recorded->nmembers; k++) {
      const i64 s = align_time(x, v[k].process, v[k].start_ps) - start[k];
      const i64 e = align_time(x, v[k].process, v[k].end_ps) - end[k];
      worst = fmax(worst, fmax(fabs((double)s), fabs((double)e)) / 1e6);
    }
    CHECK_MSG(worst <= 15, "%g ppm, seed %llu: off by %.3f us, at most 15", ppm, (unsigned long long)seed,
              worst);
    CHECK_EQ_I64((i64)x->after, 0);
    CHECK(x->before > 0 && x->njumps == 0);
  }
  arena_free(a);
  ctx_free(c);
}

TEST(match_clocks_of_a_job_shifted_by_50_ms) { check_shifted(0, 10); }
TEST(match_clocks_of_a_job_shifted_by_50_ms_and_20_ppm) { check_shifted(20, 10); }
TEST(match_clocks_of_a_job_shifted_by_50_ms_and_500_ppm) { check_shifted(500, 10); }
