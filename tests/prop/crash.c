// crash.c - a checkpoint is there whole or not at all: the process ends at every write, sync and naming of one, and what
// it leaves is the last whole checkpoint, to the bit.
#include "base/base.h"
#include "heddle.h"
#include "test.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static const char *dir(void) {
  static char path[256];
  snprintf(path, sizeof path, "%s/tmp-crash", test_build());
  return path;
}

static u32 files(const char *tail, bool remove) {
  u32 n = 0;
  DIR *d = opendir(dir());
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[600];
    const size_t len = strlen(e->d_name), end = strlen(tail);
    if (e->d_name[0] == '.' || len < end || strcmp(e->d_name + len - end, tail) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", dir(), e->d_name);
    n++;
    if (remove) unlink(path);
  }
  if (d) closedir(d);
  return n;
}

typedef struct {
  heddle_session *s;
  heddle_program *p;
  heddle_run *r;
} bed;

static bool no_send(void *arg, uint32_t to, const void *data, int64_t n) {
  return (void)arg, (void)to, (void)data, n < 0;
}
static bool no_receive(void *arg, uint32_t from, void *data, int64_t n) {
  return (void)arg, (void)from, (void)data, n < 0;
}

static bed bed_new(void) {
  bed b = {.s = heddle_session_new()};
  const heddle_plan_options o = {.train = true, .optimizer = {.name = "adam"}};
  const heddle_link alone = {.rank = 0, .send = no_send, .receive = no_receive};
  heddle_program *m =
      heddle_program_load(b.s, "mlp-xs:layers=2,hidden=16", &(heddle_load_options){.batch = 4, .loss = true});
  b.p = heddle_plan_apply(heddle_plan_make(m, "dp=1", &o));
  b.r = heddle_run_new(b.p, &alone, heddle_tensors_initial(b.p, 1));
  return b;
}

// After `step` steps, the state as a checkpoint says it is.
static u64 fingerprint(heddle_tensors *t) {
  heddle_tensor x;
  u64 h = 0;
  for (u32 k = 0; heddle_tensors_get(t, k, &x); k++) {
    int64_t n = 1;
    for (u32 d = 0; d < x.ndims; d++) n *= x.dims[d];
    h = hash_bytes(x.data, (size_t)n * 4, h);
  }
  return h;
}

// The step of the newest checkpoint, whose state must be what it was then.
static u64 newest_is_whole(bed *b, const u64 *known, i64 at) {
  const char *path = heddle_checkpoint_find(b->s, dir());
  heddle_tensors *t = heddle_tensors_initial(b->p, 1);
  heddle_checkpoint c = {.step = 0};
  if (!CHECK_MSG(path && heddle_tensors_resume(t, b->p, path, &c), "ended at operation %lld: %s",
                 (long long)at, heddle_session_messages(b->s)))
    return 0;
  CHECK_MSG(fingerprint(t) == known[c.step], "ended at operation %lld: step %llu has other bits",
            (long long)at, (unsigned long long)c.step);
  CHECK(c.step && c.sample == (int64_t)c.step * 4 && !strcmp(c.plan, "dp=1"));
  heddle_tensors_free(t);
  return c.step;
}

TEST(crash_at_every_write) {
  bed b = bed_new();
  u64 known[3] = {0};
  heddle_checkpoint at = {.plan = "dp=1"};
  REQUIRE(b.r);
  files("", true);
  for (u32 k = 1; k <= 2; k++) {
    REQUIRE(heddle_run_step(b.r));
    known[k] = fingerprint(heddle_run_parameters(b.r));
    at.sample = 4 * k;
    if (k == 1) REQUIRE(heddle_run_save(b.r, dir(), &at, 0));
  }
  bool done = false;
  u64 renamed = 0;
  u32 left = 0;
  i64 n = 0;
  while (!done && n++ < 200) {
    base_io_fail_after = n;
    done = heddle_run_save(b.r, dir(), &at, 0);
    base_io_fail_after = 0;
    CHECK(done == !heddle_session_errors(b.s));
    heddle_session_clear(b.s);
    const u64 step = newest_is_whole(&b, known, n);
    CHECK(step == 1 || step == 2);
    left = MAX(left, files(".tmp", false));
    if (step == 2 && !renamed) renamed = (u64)n;
    if (step == 2) files("2.safetensors", true);
  }
  // Eight tensors and the header twice, its sync, two namings and the sync of the folder.
  CHECK_MSG(done && n > 10 && n < 30 && (i64)renamed == n - 1, "%lld operations, in place after %llu",
            (long long)n, (unsigned long long)renamed);
  CHECK(left > 0);
  REQUIRE(heddle_run_save(b.r, dir(), &at, 1)); // takes away what was left, and the older checkpoint
  CHECK(files("", false) == 1 && newest_is_whole(&b, known, 0) == 2);
  files("", true);
  heddle_session_free(b.s);
}
