// test_synthesis.c - schedules that are found: known bests, bounds, and the published schedule of Tessel.
#include "sched/synthesis.h"
#include "test.h"

enum { US = 1000000 };
typedef struct {
  ctx *c;
  arena *a;
  sched_stages s;
  sched_synthesis x;
} bed;

static void bed_free(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

// memory 0: no limit.
static bed found_in(const char *stages, u32 micro, u32 memory, u32 seconds) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  const sched_aims aims = {micro, memory ? (u64)memory * US : SCHED_NO_LIMIT, seconds};
  const bool ok = sched_stages_parse(b.c, b.a, sym_of(b.c, "stages.csv"), stages, strlen(stages), &b.s) &&
                  sched_synthesize(b.c, b.a, &b.s, &aims, &b.x);
  if (!CHECK_MSG(ok, "%s", diag_render(b.c, b.a))) test_leave();
  return b;
}

static bed found(const char *stages, u32 micro, u32 memory) { return found_in(stages, micro, memory, 5); }

static void check_best(const char *stages, u32 micro, u32 memory, u64 us, sched_bound_of of) {
  bed b = found(stages, micro, memory);
  CHECK_EQ_I64(b.x.t.makespan, us * US);
  CHECK_EQ_I64(b.x.bound, us * US);
  CHECK_EQ_I64(b.x.bound_of, of);
  for (u32 p = 0; memory && p < b.s.nplaces; p++) CHECK(b.x.t.memory[p] <= (u64)memory * US);
  bed_free(&b);
}

#define HEAD "stage,forward_us,input_us,weight_us,memory"
#define EVEN HEAD "\n0,1,1,1,1\n1,1,1,1,1\n2,1,1,1,1\n3,1,1,1,1\n"

// (K - 1 + P) (F + I) + W, less where W of the last fills the end: what zb-h1 takes with the memory of 1f1b.
TEST(synthesis_even_stages) { check_best(EVEN, 8, 4, 27, BOUND_WORK); }

// A place that holds one activation runs one microbatch after the other, from F to W of the first stage.
TEST(synthesis_memory_of_one) { check_best(EVEN, 5, 1, 5 * 9, BOUND_CHAIN); }

// Stage 0 waits while stage 1 works.
TEST(synthesis_one_place_works) { check_best(HEAD "\n0,1,1,0,1\n1,5,5,0,1\n", 6, 2, 6 * 10 + 2, BOUND_WORK); }

// What is sent takes its time, on both ways.
TEST(synthesis_sends) {
  check_best(HEAD ",send_us\n0,1,1,0,1,7\n1,1,1,0,1,\n", 1, 1, 4 + 2 * 7, BOUND_CHAIN);
}

// V: stages 0 and 3 on place 0; whole backwards.
TEST(synthesis_folded) {
  bed b = found(HEAD ",place\n0,1,1,1,1,0\n1,1,1,1,1,1\n2,1,1,1,1,1\n3,1,1,1,1,0\n", 8, 4);
  CHECK_EQ_I64(b.x.t.makespan, b.x.bound);
  CHECK(b.x.s->at[3].n == 1 && b.x.s->at[3].v[0] == 0);
  bed_free(&b);
}

// Never slower than a row that fits, and each says why it has no schedule for these stages.
TEST(synthesis_rows) {
  bed b = found(EVEN, 8, 4);
  u32 fit = 0;
  for (u32 i = 0; i < b.x.nrivals; i++) {
    const sched_rival *r = &b.x.rival[i];
    CHECK(!r->s == (r->why != NULL));
    if (!r->s || !r->fits) continue;
    fit++;
    CHECK(r->t.makespan >= b.x.t.makespan);
  }
  CHECK(fit >= 2);
  bed_free(&b);
}

// What is not proved is not said to be: of 8 equal stages with half the memory of 1f1b no search sees all orders.
TEST(synthesis_unproved) {
  bed b = found_in(EVEN "4,1,1,1,1\n5,1,1,1,1\n6,1,1,1,1\n7,1,1,1,1\n", 32, 4, 1);
  CHECK(b.x.stopped && b.x.bound_of == BOUND_WORK);
  CHECK_EQ_I64(b.x.bound, 145 * US);
  CHECK(b.x.t.makespan > b.x.bound);
  bed_free(&b);
}

// Windows make the lead-in and the tail better than any start is (6.155 ms, where the bound is 5.950 ms).
TEST(synthesis_windows) {
  bed b = found_in(HEAD ",send_us\n0,106,92,43,1,0\n1,116,111,96,1.25,3\n2,82,75,99,1.25,3\n3,108,139,54,1,"
                        "0\n4,70,115,112,1,10\n5,62,120,60,1.25,0\n",
                   16, 6, 2);
  CHECK_MSG(b.x.t.makespan < 6100ull * US, "%llu", (unsigned long long)b.x.t.makespan);
  bed_free(&b);
}

// List scheduling at random, written down apart in Python, finds 12,023 us within 20 s.
TEST(synthesis_lists) {
  bed b = found_in(HEAD ",send_us\n0,119,96,107,1.25,0\n1,109,129,75,0.75,0\n2,90,87,83,1.25,0\n3,104,114,66,"
                        "0.75,0\n4,80,126,73,1.25,3\n5,91,129,84,1,0\n6,88,119,99,1.25,0\n7,88,80,60,1,0\n",
                   32, 8, 1);
  CHECK_MSG(b.x.t.makespan <= 12023ull * US, "%llu", (unsigned long long)b.x.t.makespan);
  bed_free(&b);
}

// Stages 0 and 4 share place 0, which holds two activations: of six microbatches these lie for 6 (11 + 3) at least.
TEST(synthesis_memory_bound) {
  bed b = found_in(HEAD ",place\n0,1,1,1,1,0\n1,1,1,1,0,1\n2,1,1,1,0,2\n3,1,1,1,0,3\n4,1,1,1,1,0\n", 6, 2, 1);
  const sched_aims aims = {6, 2 * US, 1};
  synth x;
  sched_bound_of of;
  u32 place;
  synth_open(&x, b.a, &b.s, &aims);
  CHECK_EQ_I64((synth_bound(&x, &of, &place) + US / 2) / US, 6 * (11 + 3) / 2);
  CHECK(of == BOUND_MEMORY && place == 0);
  CHECK(b.x.t.makespan >= 42ull * US);
  bed_free(&b);
}

// ---- Tessel's schedule of a multimodal model: blocks on all devices before, between and after a pipeline -----
typedef struct {
  u32 span, stage, step, mb, ndevs;
  u32 dev[4];
  i64 memory;
  bool backward;
} block;

static block block_of(const json *j) {
  block b = {.span = (u32)json_get(j, "span")->num,
             .stage = (u32)json_get(j, "gid")->num,
             .step = (u32)json_get(j, "step")->num,
             .mb = (u32)json_get(j, "mid")->num,
             .memory = (i64)json_get(j, "memory")->num,
             .backward = !strcmp(json_get(j, "btype")->str, "backward")};
  const json *d = json_get(j, "device");
  for (; b.ndevs < d->n && b.ndevs < 4; b.ndevs++) b.dev[b.ndevs] = (u32)d->item[b.ndevs].num;
  return b;
}

// Its most activations on a device, and when it ends.
static u32 peak_of(const json *blocks, u32 *end) {
  i64 most = 0;
  *end = 0;
  for (u32 dev = 0; dev < 4; dev++)
    for (u32 step = 0; step < 100; step++) {
      i64 live = 0;
      for (u32 i = 0; i < blocks->n; i++) {
        const block b = block_of(&blocks->item[i]);
        *end = MAX(*end, b.step + b.span);
        for (u32 k = 0; k < b.ndevs; k++)
          if (b.dev[k] == dev && (b.backward ? b.step + b.span <= step : b.step <= step)) live += b.memory;
      }
      most = MAX(most, live);
    }
  return (u32)most;
}

static const char *stages_of(arena *a, const json *blocks) {
  strbuf b = {.a = a};
  sb_put(&b, HEAD ",places\n");
  for (u32 stage = 0; stage < 6; stage++) {
    u32 back = 0;
    block f = {0};
    for (u32 i = 0; i < blocks->n; i++) {
      const block x = block_of(&blocks->item[i]);
      if (x.stage == stage) f = x;
      if (x.stage == 11 - stage) back = x.span;
    }
    sb_fmt(&b, "%u,%u,%u,0,%d,", stage, f.span, back, (int)f.memory);
    for (u32 k = 0; k < f.ndevs; k++) sb_fmt(&b, "%s%u", k ? "+" : "", f.dev[k]);
    sb_char(&b, '\n');
  }
  return sb_str(&b);
}

// Tessel takes 60 steps for six microbatches. That is the best there is, even without its limit.
TEST(synthesis_tessel) {
  const char *path = test_data("schedules/tessel_mllm_4stages.json");
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view f;
  REQUIRE(file_map(c, path, &f));
  const json *j = json_parse(c, a, sym_of(c, path), (const char *)f.data, f.size),
             *blocks = json_get(j, "blocks");
  u32 end;
  const u32 peak = peak_of(blocks, &end);
  CHECK_EQ_I64(end, 60);
  const char *stages = stages_of(a, blocks);
  check_best(stages, 6, peak, end, BOUND_SEARCH);
  check_best(stages, 6, 3, 68, BOUND_SEARCH);
  file_unmap(&f);
  arena_free(a);
  ctx_free(c);
}
