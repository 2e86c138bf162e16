// test_tuning.c - what a recording says of a job's memory: kept bytes, blocks, and what is not told (tests/memory, which
// tools/make-memory-trace.py writes).
#include "diagnose/diagnose.h"
#include "trace_file.h"

enum { MIB = 1 << 20 };
typedef struct {
  ctx *c;
  arena *a;
  tuning t;
} tuned;

// The two files, all of whose lines with `drop` lose what follows it up to the next comma or brace.
static tuned read_without(const char *drop) {
  tuned x = {.c = ctx_new(), .a = arena_new()};
  const char *path[2];
  for (u32 k = 0; k < 2; k++) {
    file_view v;
    path[k] = arena_printf(x.a, "tests/memory/rank%u.json", k);
    if (!drop) continue;
    REQUIRE(file_map(x.c, path[k], &v));
    strbuf b = {.a = x.a};
    for (const char *p = (const char *)v.data, *end = p + v.size; p < end; p++) {
      if ((size_t)(end - p) > strlen(drop) && !memcmp(p, drop, strlen(drop)))
        while (p < end && *p != ',' && *p != '}') p++;
      if (p < end) sb_putn(&b, p, 1);
      if (*p == ',' && b.n > 1 && b.v[b.n - 2] == ' ') b.n -= 2; // the comma before is enough
    }
    path[k] = arena_printf(x.a, "%s/test_tuning-rank%u.json", test_build(), k);
    REQUIRE(file_write(x.c, path[k], b.v, b.n));
    file_unmap(&v);
  }
  job *j = job_open(x.c, x.a, 2, path);
  const bool ok = j && tuning_of(j, NULL, x.a, &x.t);
  CHECK_MSG(ok, "%s", diag_render(x.c, x.a));
  REQUIRE(ok);
  for (u32 k = 0; drop && k < 2; k++) remove(path[k]);
  return x;
}
static void done(tuned *x) {
  arena_free(x->a);
  ctx_free(x->c);
}
static i64 mib(i64 bytes) { return bytes / MIB; }

// By hand: 9 layers keep 8 MiB of a matmul and 4 of another kernel; 1 passes from each to the next. 4 blocks of about 27.
TEST(tuning_memory_by_hand) {
  tuned x = read_without(NULL);
  const tune_job *j = &x.t.job;
  CHECK(!x.t.memory.unknown && !x.t.memory.no_recompute);
  CHECK_EQ_I64(x.t.memory.before_bytes, 100 * MIB);
  CHECK_EQ_I64(x.t.memory.kept_bytes, 9 * 12 * MIB);
  CHECK_EQ_I64(j->peak_bytes, 210 * MIB);
  CHECK_EQ_I64(tune_bytes(j, &x.t.recorded), j->peak_bytes);
  CHECK_EQ_I64(j->nblocks, 4);
  static const u32 layers[] = {2, 2, 3, 2};
  for (u32 b = 0, k = 0, back = 45; b < 4; b++) {
    CHECK_EQ_I64(j->input_bytes[b], b ? MIB : 0);
    for (u32 i = 0; i < layers[b]; i++) {
      for (u32 op = 0; op < 3; op++, k++) {
        CHECK_EQ_I64(j->op[k].block, b);
        CHECK_EQ_I64(j->op[k].keeps_bytes, op == 0 ? 8 * MIB : op == 1 ? 4 * MIB : 0);
        CHECK_EQ_I64(j->op[k].result_bytes, op == 0 ? 8 * MIB : op == 1 ? 4 * MIB : MIB); // without workspace
        CHECK(j->op[k].heavy == (op == 0));
      }
      back -= 2;
      CHECK(j->op[back].block == b && j->op[back + 1].block == b && j->op[back].phase == TUNE_BACKWARD);
    }
  }
  tune_plan p = tune_plan_copy(x.a, j, &x.t.recorded);
  // Of three blocks 1 MiB each is left. The most is taken while the block of 3 layers is there again, with its gradients and
  // those of the 2 layers behind it.
  memset(p.recompute, TUNE_WHOLE, j->nblocks);
  CHECK_EQ_I64(mib(tune_bytes(j, &p)), 100 + (3 - 1 - 1) + 36 + (3 + 2));
  // Matmuls and what passes are left: 16 + 17 + 25 + 17. The last block is there again while the others still are.
  memset(p.recompute, TUNE_CHEAP, j->nblocks);
  CHECK_EQ_I64(mib(tune_bytes(j, &p)), 100 + (75 - 17) + 24 + 2);
  memset(p.recompute, TUNE_KEEP, j->nblocks);
  p.accumulate = 2;
  CHECK_EQ_I64(mib(tune_bytes(j, &p)), 100 + 9 + 54);
  done(&x);
}

TEST(tuning_memory_that_is_not_told) {
  tuned x = read_without("\"Addr\"");
  CHECK(x.t.memory.no_recompute && !x.t.memory.unknown);
  CHECK_EQ_I64(x.t.job.nblocks, 1);
  CHECK_EQ_I64(x.t.job.peak_bytes, 210 * MIB);
  // What the last layer passes on counts as kept, since nobody knows that it is given back after the backward.
  CHECK_EQ_I64(x.t.memory.kept_bytes, (9 * 12 + 1) * MIB);
  const tune_result r = tune_search(x.a, &x.t.job, &(tune_opts){.memory_bytes = 170 * MIB});
  CHECK(r.fits && r.nmemory == 4 && r.plan.accumulate > 1);
  for (u32 k = 0; k < r.nmemory; k++) CHECK(!strstr(r.memory[k].name, "recompute"));
  done(&x);
  x = read_without("\"Total Allocated\"");
  CHECK(x.t.memory.unknown && !x.t.job.peak_bytes);
  done(&x);
}

// A recorded job: its peak, and what its steps take, read whole and one step at a time.
TEST(tuning_memory_of_a_recording) {
  const char *path = test_data("traces/hta/tests__data__df_index_resolver__df_index_resolver.json.gz");
  for (u32 one = 0; one < 2; one++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    job *j = job_open(c, a, 1, &path);
    REQUIRE(j && job_want_steps(j, one ? "4" : NULL));
    const trace *t = job_load(j, 0, TRACE_ON_DEVICE | TRACE_MEMORY);
    REQUIRE(t);
    i64 most = 0, sum = 0;
    for (u32 k = 0; k < t->memory.n; k++) {
      most = MAX(most, t->memory.v[k].total), sum += t->memory.v[k].bytes;
      CHECK(t->memory.v[k].device == 1 && t->memory.v[k].place > 0);
    }
    CHECK_EQ_I64(t->memory.n, one ? 5354 : 26770);
    CHECK_EQ_I64(most, 6629508096);
    CHECK_EQ_I64(sum, 0); // every step gives back what it has taken
    job_close(j);
    arena_free(a);
    ctx_free(c);
  }
}

// Of a recorded job of eight ranks, whose device is more than a step behind the host, every step has the same two buckets;
// what copies their sums to the gradients is no part of the backward.
TEST(tuning_of_a_recorded_job) {
  const char *path = test_data("traces/tracelens/tests__traces__mi300__resnet_act_checkpoint.json.gz");
  static const char *const steps[] = {"15", "16", "17"};
  for (u32 k = 0; k < COUNT_OF(steps); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    job *j = job_open(c, a, 1, &path);
    tuning t;
    const bool ok = j && tuning_of(j, steps[k], a, &t);
    CHECK_MSG(ok, "%s", diag_render(c, a));
    REQUIRE(ok);
    i64 bytes = 0;
    for (u32 i = 0; i < t.job.ntensors; i++) bytes += t.job.tensor[i].bytes;
    CHECK_EQ_I64(bytes, 2 * (2873320 + 8816192));
    CHECK(t.nbuckets == 2 && t.job.link.workers == 8 && t.partial == 4 && t.no_half);
    CHECK_EQ_I64(t.job.nops, 891);
    arena_free(a);
    ctx_free(c);
  }
}
