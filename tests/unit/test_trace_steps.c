// test_trace_steps.c - reading some steps of a Kineto file: the events are those that belong to the steps when all of
// the file is read, whatever the order of the file, and memory does not depend on how many steps there are besides.
#include "diagnose/diagnose.h"
#include "test.h"
#include <stdlib.h>
#include <unistd.h>

typedef enum { MIXED, DEVICE_FIRST, HOST_FIRST, ORDERS } file_order;
enum { OPS = 12, MOST_OPS = 1000, STEP_US = 1000, NSTEPS = 9 };

// What a step does. Its last kernel but one waits until four steps later; the last one was launched by nobody; op 3
// is a communication whose size the host alone knows. Old: arrows in place of correlation ids.
static void put_host(strbuf *b, u32 step, u32 ops, bool old) {
  const u32 at = 5000 + step * STEP_US;
  sb_fmt(b,
         "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"ProfilerStep#%u\",\"pid\":7,\"tid\":7,\"ts\":%u.250,"
         "\"dur\":%u},\n",
         old ? "Operator" : "user_annotation", step + 100, at, STEP_US - 20);
  for (u32 k = 0; k < ops; k++) {
    const u32 id = step * MOST_OPS + k + 1, ts = at + 20 + k % OPS * 60;
    if (k == 3)
      sb_fmt(b,
             "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"record_param_comms\",\"pid\":7,\"tid\":7,\"ts\":%u,"
             "\"dur\":40,"
             "\"args\":{\"Collective name\":\"allreduce\",\"In msg nelems\":%u,\"dtype\":\"Float\",\"Group "
             "size\":4}},\n",
             old ? "Operator" : "cpu_op", ts, 1000 + step);
    sb_fmt(
        b,
        "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"aten::op%u\",\"pid\":7,\"tid\":7,\"ts\":%u,\"dur\":30},\n",
        old ? "Operator" : "cpu_op", k, ts);
    sb_fmt(
        b,
        "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"cudaLaunchKernel\",\"pid\":7,\"tid\":7,\"ts\":%u,\"dur\":5",
        old ? "Runtime" : "cuda_runtime", ts + 2);
    if (old)
      sb_fmt(
          b,
          "},\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":%u,\"pid\":7,\"tid\":7,\"ts\":%u},\n",
          id, ts + 2);
    else
      sb_fmt(b, ",\"args\":{\"correlation\":%u}},\n", id);
  }
}
static void put_device(strbuf *b, u32 step, u32 ops, bool old) {
  const u32 at = 5000 + step * STEP_US;
  for (u32 k = 0; k < ops; k++) {
    const u32 id = step * MOST_OPS + k + 1, late = k == OPS - 2 ? 4 * STEP_US : 0;
    const u32 ts = at + 60 + k * 70 % 900 + late;
    const char *name = k == 3 ? "ncclKernel_AllReduce_RING_LL_Sum_float" : "gemm";
    sb_fmt(b, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":0,\"tid\":%u,\"ts\":%u.5,\"dur\":50",
           old ? "Kernel" : "kernel", name, 20 + (late > 0), ts);
    sb_fmt(b, ",\"args\":{\"device\":0,\"stream\":%u", 20 + (late > 0));
    if (!old) sb_fmt(b, ",\"correlation\":%u", k == OPS - 1 ? 9000000 + id : id);
    sb_put(b, "}},\n");
    if (old && k != OPS - 1)
      sb_fmt(
          b,
          "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":%u,\"pid\":0,\"tid\":%u,\"ts\":%u.5},\n",
          id, 20 + (late > 0), ts);
  }
}

// ops: of the steps before 5 and after 20.
static const char *file_of(arena *a, u32 nsteps, u32 ops, file_order order, bool old) {
  strbuf b = {.a = a};
  sb_put(&b, "{\"traceEvents\":[\n");
  for (u32 pass = 0; pass < (order == MIXED ? 1 : 2); pass++)
    for (u32 s = 0; s < nsteps; s++) {
      const u32 n = s >= 5 && s <= 20 ? OPS : ops;
      if (order == MIXED || (pass == 0) == (order == HOST_FIRST)) put_host(&b, s, n, old);
      if (order == MIXED || (pass == 0) == (order == DEVICE_FIRST)) put_device(&b, s, n, old);
    }
  sb_put(&b, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":7,\"args\":{\"name\":\"main\"}}]}\n");
  const char *path = arena_printf(a, "/tmp/heddle-steps-%d.json", (int)getpid());
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  CHECK(fwrite(b.v, 1, b.n, f) == b.n && !fclose(f));
  return path;
}

static bool one_of(const void *steps, u32 number) {
  const u32 *of = steps; // ends with TRACE_NONE
  while (*of != TRACE_NONE && *of != number) of++;
  return *of == number;
}

typedef struct {
  ctx *c;
  arena *a;
  trace t;
  i64 blocks; // of memory that the reading took
} result;
static result read_steps(const char *path, u32 kinds, const u32 *steps) {
  result r = {.c = ctx_new(), .a = arena_new()};
  const trace_want want = {.kinds = kinds, .step = steps ? one_of : NULL, .steps = steps};
  trace_read_about about;
  const i64 most = (i64)1 << 40;
  base_fail_after = most; // counts
  const bool ok = trace_read(r.c, r.a, path, TRACE_FORMAT_kineto, &want, TRACE_NONE, &r.t, &about);
  r.blocks = most - base_fail_after;
  base_fail_after = 0;
  CHECK_MSG(ok && !diag_count(r.c), "%s", diag_render(r.c, r.a));
  REQUIRE(ok);
  return r;
}
static void done(result *r) {
  arena_free(r->a);
  ctx_free(r->c);
}

// All that is known of an event and of what launched it, on the file's clock.
static u64 key_of(const result *r, u32 e) {
  const trace *t = &r->t;
  const trace_lane *l = &t->lanes.v[t->lane[e]];
  const i64 base_ps = t->processes.v[0].base_ns * 1000;
  const char *name = sym_str(r->c, trace_name(t, e));
  u64 h = hash_bytes(name, strlen(name), t->is[e]);
  h = hash_step(hash_step(h, (u64)(base_ps + t->start_ps[e])), (u64)t->dur_ps[e]);
  h = hash_step(hash_step(h, (u64)l->id), (u64)l->device << 32 | t->flags[e]);
  h = hash_step(h, t->cause[e] == TRACE_NONE ? 1 : (u64)(base_ps + t->start_ps[t->cause[e]]));
  if (t->comm[e] == TRACE_NONE) return hash_u64(h, 0);
  const trace_comm *m = &t->comms.v[t->comm[e]];
  return hash_u64(hash_step(hash_step(h, (u64)m->bytes), m->size), 1);
}
static int by_key(const void *x, const void *y) {
  const u64 a = *(const u64 *)x, b = *(const u64 *)y;
  return a < b ? -1 : a > b;
}
static u32 keys_of(arena *a, const result *r, const u32 *steps, u64 **out) {
  const job_steps *s = steps_of(a, &r->t, 0);
  u32 n = 0;
  *out = NEWN(a, u64, r->t.n + 1);
  for (u32 e = 0; e < r->t.n; e++)
    if (s->of[e] != TRACE_NONE && one_of(steps, s->step[s->of[e]].number)) (*out)[n++] = key_of(r, e);
  qsort(*out, n, sizeof **out, by_key);
  return n;
}

TEST(steps_have_the_events_that_they_have_in_the_whole_file) {
  static const u32 some[][4] = {{103, TRACE_NONE},      {100, TRACE_NONE},           {108, TRACE_NONE},
                                {102, 103, TRACE_NONE}, {101, 104, 105, TRACE_NONE}, {777, TRACE_NONE}};
  static const u32 kinds[] = {TRACE_ON_DEVICE | 1 << TRACE_CALL | 1 << TRACE_STEP, TRACE_ALL};
  arena *a = arena_new();
  for (u32 i = 0; i < 2 * ORDERS; i++) {
    const char *path = file_of(a, NSTEPS, OPS, (file_order)(i / 2), i % 2);
    for (u32 k = 0; k < COUNT_OF(kinds); k++) {
      result all = read_steps(path, kinds[k], NULL);
      for (u32 s = 0; s < COUNT_OF(some); s++) {
        result few = read_steps(path, kinds[k], some[s]);
        u64 *x, *y;
        const u32 n = keys_of(a, &all, some[s], &x), m = keys_of(a, &few, some[s], &y);
        CHECK_EQ_I64(m, n);
        CHECK(m == n && !memcmp(x, y, n * sizeof *x));
        CHECK(some[s][0] == 777 ? n == 0 && few.t.n == all.t.n : n > 2 * OPS - 2 && few.t.n < all.t.n);
        done(&few);
      }
      done(&all);
    }
    unlink(path);
  }
  arena_free(a);
}

// Three steps take as much, whether those further off are small or large; all of them take more. (Of those around
// them something is kept until it is known who launched it.)
TEST(steps_take_memory_of_themselves_alone) {
  static const u32 steps[] = {110, 111, 112, TRACE_NONE};
  enum { MANY = 60 };
  for (u32 order = 0; order < ORDERS; order++) {
    arena *a = arena_new();
    const u32 kinds = TRACE_ON_DEVICE | 1 << TRACE_CALL;
    const char *path = file_of(a, MANY, OPS, (file_order)order, false);
    result small = read_steps(path, kinds, steps);
    path = file_of(a, MANY, MOST_OPS, (file_order)order, false);
    result large = read_steps(path, kinds, steps), whole = read_steps(path, kinds, NULL);
    CHECK(small.t.n >= 3 * 2 * OPS - 3);
    CHECK_EQ_I64(large.t.n, small.t.n);
    CHECK_EQ_I64((i64)arena_bytes(large.a), (i64)arena_bytes(small.a));
    CHECK_MSG(large.blocks <= small.blocks + 2, "%lld blocks, not %lld", (long long)large.blocks,
              (long long)small.blocks);
    CHECK(whole.blocks > large.blocks + 4 && arena_bytes(whole.a) > 20 * arena_bytes(small.a));
    done(&small), done(&large), done(&whole);
    unlink(path);
    arena_free(a);
  }
}
