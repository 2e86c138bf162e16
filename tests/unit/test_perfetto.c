// test_perfetto.c - timelines as Perfetto's protobuf: the same slices as in JSON, read by a decoder that is no part of Heddle
// (tests/perfetto.py), memory, pauses, and how large they are.
#include "front/front.h"
#include "plan/plan.h"
#include "report/report.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *d;
  planner *pl;
  sim_result r;
  const char *json, *pftrace;
} drawn;

static drawn draw(const char *model, i64 batch, const char *line, const char *machine_spec, bool folded) {
  drawn x = {.c = ctx_new(), .a = arena_new()};
  const front_opts fo = {.batch = batch, .seq = 16, .loss = true};
  x.src = front_load(x.c, model, &fo);
  REQUIRE(x.src);
  x.pl = planner_new(x.src);
  const machine *m = machine_load(x.c, x.a, machine_spec);
  cost_model *k = m ? cost_model_new(x.c, x.a, m, NULL) : NULL;
  const hybrid_opts o = {
      .s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM), .k = k};
  plan *pn = policy_hybrid(x.pl, x.a, &o);
  x.d = pn ? plan_apply(x.pl, pn, k) : NULL;
  const sim_opts so = {.mode = folded ? SIM_FLAT_FOLDED : SIM_FLAT, .timeline = true};
  CHECK_MSG(x.d && sim_run(x.c, x.a, x.d, k, &so, &x.r), "%s: %s", line, diag_render(x.c, x.a));
  REQUIRE(x.r.timeline);
  x.json = arena_printf(x.a, "%s/perfetto-%d.json", test_build(), (int)getpid());
  x.pftrace = arena_printf(x.a, "%s/perfetto-%d.pftrace", test_build(), (int)getpid());
  REQUIRE(timeline_write(x.c, x.r.timeline, NULL, x.json) &&
          timeline_write(x.c, x.r.timeline, NULL, x.pftrace));
  return x;
}
static void done(drawn *x) {
  unlink(x->json), unlink(x->pftrace);
  prog_free(x->d);
  planner_free(x->pl);
  prog_free(x->src);
  arena_free(x->a);
  ctx_free(x->c);
}

// What the decoder prints of the file; NULL: there is no python3.
static const char *decoded(arena *a, const char *path, const char *args) {
  enum { MOST = 1 << 20 };
  char *text = arena_alloc(a, MOST);
  if (system("python3 -c '' 2>/dev/null")) return NULL;
  FILE *f = popen(arena_printf(a, "python3 tests/perfetto.py %s %s 2>&1", path, args), "r");
  REQUIRE(f);
  text[fread(text, 1, MOST - 1, f)] = 0;
  CHECK_MSG(!pclose(f), "%s", text);
  return text;
}

static const char gpt2[] = "gpt2:layers=4,hidden=64,heads=4,vocab=256";
static const char *const strategies[] = {"dp=2",
                                         "tp=2",
                                         "dp=2 tp=2 pp=2 mb=4",
                                         "pp=4 mb=8 schedule=1f1b",
                                         "dp=4 zero=3",
                                         "dp=2 pp=2 mb=4 v=2 schedule=interleaved"};

TEST(perfetto_has_the_slices_of_json) {
  for (u32 s = 0; s < COUNT_OF(strategies); s += test_step()) {
    drawn x = draw(gpt2, 16, strategies[s], "dgx-2", s % 2);
    const char *said = decoded(x.a, x.pftrace, arena_printf(x.a, "--against %s", x.json));
    if (!said) {
      done(&x);
      SKIP("no python3");
    }
    CHECK_MSG(strstr(said, "slices as in JSON"), "%s: %s", strategies[s], said);
    done(&x);
  }
}

// The counter of a rank is highest where the simulator has the rank's peak.
TEST(perfetto_counts_memory_up_to_the_peak) {
  for (u32 s = 0; s < COUNT_OF(strategies); s += test_step()) {
    drawn x = draw(gpt2, 16, strategies[s], "dgx-2", false);
    const char *said = decoded(x.a, x.pftrace, "--bytes");
    if (!said) {
      done(&x);
      SKIP("no python3");
    }
    for (u32 r = 0; r < x.r.nranks; r++) {
      const char *want = arena_printf(x.a, "rank %u: memory at most %lld\n", r,
                                      (long long)x.r.cls[x.r.class_of_rank[r]].peak_bytes);
      CHECK_MSG(strstr(said, want), "%s: no %s in %s", strategies[s], want, said);
    }
    done(&x);
  }
}

// Why the compute stream stands still: for the rank that it meets, or for what another stream had to bring.
TEST(perfetto_says_why_a_rank_stands_still) {
  drawn x = draw(gpt2, 16, "pp=2 mb=2", "dgx-2", false);
  const char *said = decoded(x.a, x.pftrace, "");
  if (!said) {
    done(&x);
    SKIP("no python3");
  }
  CHECK_MSG(strstr(said, "rank 1|compute|") && strstr(said, "|waiting for send|"), "%s", said);
  CHECK(strstr(said, "|forward|layer/attention|1F1|")); // its parent
  done(&x);
}

// The first slice of a layer says it, on every stage; a stage that has the functions of another one counts on.
TEST(perfetto_says_the_layer) {
  drawn x = draw(gpt2, 16, "pp=4 mb=4 schedule=zb-h1", "dgx-2", false);
  const char *said = decoded(x.a, x.pftrace, "--layers");
  if (!said) {
    done(&x);
    SKIP("no python3");
  }
  CHECK_STR(said, "rank 0: layers 0\nrank 1: layers 1\nrank 2: layers 2\nrank 3: layers 3\n");
  done(&x);
}

static i64 size_of_file(const char *path) {
  struct stat at;
  return stat(path, &at) ? -1 : (i64)at.st_size;
}

TEST(perfetto_needs_32_bytes_a_slice) {
  drawn x = draw("gpt2:layers=24,hidden=128,heads=4,vocab=256", 64, "dp=2 tp=2 pp=4 mb=16", "dgx-2", false);
  const u64 n = trace_events(x.r.timeline);
  const double each = (double)size_of_file(x.pftrace) / (double)n;
  CHECK_MSG(n > 20000 && each <= 32, "%llu slices of %.1f bytes", (unsigned long long)n, each);
  const char *again = arena_printf(x.a, "%s.perfetto-trace", x.pftrace);
  REQUIRE(timeline_write(x.c, x.r.timeline, NULL, again)); // the other ending
  CHECK_EQ_I64(size_of_file(again), size_of_file(x.pftrace));
  unlink(again);
  done(&x);
}
