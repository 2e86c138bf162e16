// test_diff.c - comparisons of recordings: what is told from noise, and where the time went.
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>

static double normal(u64 *seed) { // Box and Muller
  return sqrt(-2 * log(1 - rng_unit(seed))) * cos(2 * 3.14159265358979 * rng_unit(seed));
}

// Of samples from one distribution one comparison in twenty is told from noise; of far distributions nearly all are.
TEST(diff_tells_noise) {
  u64 seed = 11;
  u32 told = 0, missed = 0;
  enum { PAIRS = 20000 };
  for (u32 i = 0; i < PAIRS; i++) {
    double v[2][12], w[12];
    const u32 n[2] = {2 + (u32)(rng_next(&seed) % 10), 2 + (u32)(rng_next(&seed) % 10)};
    for (u32 s = 0; s < 2; s++)
      for (u32 k = 0; k < n[s]; k++) v[s][k] = 100 + normal(&seed);
    for (u32 k = 0; k < n[1]; k++) w[k] = v[1][k] + 20;
    const sample x = sample_of(v[0], n[0]), y = sample_of(v[1], n[1]), z = sample_of(w, n[1]);
    const sample_change same = sample_compare(&x, &y), far = sample_compare(&x, &z);
    told += fabs(same.change) > same.noise;
    missed += fabs(far.change) <= far.noise;
  }
  CHECK_MSG(told > PAIRS * 0.035 && told < PAIRS * 0.06, "%u of %u comparisons of equals are told", told,
            PAIRS);
  CHECK_MSG(missed < PAIRS * 0.03, "%u of %u differences are missed", missed, PAIRS);
}

TEST(diff_of_samples_by_hand) {
  const double a[] = {10, 12, 14}, b[] = {20, 24, 28, 32}, one[] = {30};
  const sample x = sample_of(a, 3), y = sample_of(b, 4), z = sample_of(one, 1);
  CHECK_CLOSE(x.mean, 12, 1e-12);
  CHECK_CLOSE(x.sd, 2, 1e-12);
  CHECK_CLOSE(y.sd, sqrt(80. / 3), 1e-12);
  const sample_change c = sample_compare(&x, &y);
  const double v = 4. / 3 + 80. / 12, df = v * v / (pow(4. / 3, 2) / 2 + pow(80. / 12, 2) / 3);
  CHECK_CLOSE(c.change, 14, 1e-12);
  CHECK_CLOSE(c.error, sqrt(v), 1e-12);
  CHECK_MSG(df > 4 && df < 5 && c.noise > c.error * 2.571 && c.noise < c.error * 2.776, "noise of %g",
            c.noise);
  CHECK(isinf(sample_compare(&x, &z).noise));
}

// The example against a copy of it in which one kernel is slower.
TEST(diff_finds_the_slower_kernel) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view f;
  const char *from[2] = {"examples/traces/ddp/rank0.json", "examples/traces/ddp/rank1.json"},
             *folder = test_build();
  const char *to[2] = {arena_printf(a, "%s/diff-rank0.json", folder),
                       arena_printf(a, "%s/diff-rank1.json", folder)};
  for (u32 k = 0; k < 2; k++) { // every sgemm_.._nt gets another name
    REQUIRE(file_map(c, from[k], &f));
    char *text = arena_strndup(a, (const char *)f.data, f.size);
    for (char *p = text; (p = strstr(p, "128x128_nt"));) p[9] = 'n';
    REQUIRE(file_write(c, to[k], text, f.size));
    file_unmap(&f);
  }
  const char *was = "examples/traces/ddp";
  job *before = job_open(c, a, 1, &was), *after = job_open(c, a, 2, to);
  job_diff d;
  REQUIRE(before && after && job_diff_of(before, after, NULL, a, &d));
  CHECK(d.verdict == DIFF_SAME && d.change.change == 0 && d.side[0].ranks == 2 && d.side[1].ranks == 2);
  CHECK_CLOSE(d.side[0].part[0], d.side[1].part[0], 1e-12);
  REQUIRE(d.nkernels >= 2);
  CHECK(d.kernel[0].ps[0] == 0 || d.kernel[0].ps[1] == 0);
  CHECK_CLOSE(d.kernel[0].ps[0] + d.kernel[0].ps[1], d.kernel[1].ps[0] + d.kernel[1].ps[1], 1e-12);
  for (u32 k = 2; k < d.nkernels; k++) CHECK(d.kernel[k].ps[0] == d.kernel[k].ps[1]);
  for (u32 k = 0; k < 2; k++) remove(to[k]);
  arena_free(a);
  ctx_free(c);
}
