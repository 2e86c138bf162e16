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

// ---- clocks of the same job, each rank's shifted ------------------------------------------------------------
// Ends of collectives find the shifts again: no nearer than the ranks end together, which is 9 us on average.
static void check_shifted(double ppm, u64 seeds) {
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
