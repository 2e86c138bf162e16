// test_compare.c - a recorded step beside a simulated one. A simulated timeline that was written and is read again is a
// recording whose every figure is known; with another link all of the gap is communication. And Heddle's timelines and
// Chakra's files, written and read.
#include "diagnose/diagnose.h"
#include "front/front.h"
#include "plan/plan.h"
#include "report/report.h"
#include "test.h"
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *d;
  planner *pl;
  sim_result r;
} simulated;

static simulated simulate(const char *line, const char *machine_spec, bool train) {
  simulated x = {.c = ctx_new(), .a = arena_new()};
  front_opts fo = {.batch = 16, .seq = 16, .loss = true};
  x.src = front_load(x.c, "gpt2:layers=4,hidden=64,heads=4,vocab=256", &fo);
  REQUIRE(x.src);
  x.pl = planner_new(x.src);
  const machine *m = machine_load(x.c, x.a, machine_spec);
  cost_model *k = m ? cost_model_new(x.c, x.a, m, NULL) : NULL;
  hybrid_opts o = {.s = strategy_of("%s", line), .train = train, .optim = optim_default(OPTIM_ADAM), .k = k};
  plan *pn = policy_hybrid(x.pl, x.a, &o);
  x.d = pn ? plan_apply(x.pl, pn, k) : NULL;
  const sim_opts so = {.mode = SIM_FLAT, .no_bytes = true, .timeline = true};
  CHECK_MSG(x.d && sim_run(x.c, x.a, x.d, k, &so, &x.r), "%s: %s", line, diag_render(x.c, x.a));
  REQUIRE(x.r.timeline);
  return x;
}
static void done(simulated *x) {
  prog_free(x->d);
  planner_free(x->pl);
  prog_free(x->src);
  arena_free(x->a);
  ctx_free(x->c);
}

static const char *path_of(arena *a, const char *end) {
  return arena_printf(a, "%s/compare-%d%s", test_build(), (int)getpid(), end);
}
static job_compare compare(const simulated *x, const char *path) {
  job_compare d = {.n = 0};
  job *j = job_open(x->c, x->a, 1, &path);
  CHECK_MSG(j && job_compare_of(j, &x->r, NULL, x->a, &d), "%s", diag_render(x->c, x->a));
  job_close(j);
  REQUIRE(d.n);
  for (u32 side = 0; side < 2; side++) {
    i64 sum = 0;
    for (u32 k = 0; k < COMPARE_ROWS; k++) sum += d.row_ps[side][k];
    CHECK_EQ_I64(sum, d.step_ps[side] * d.n); // rows add up, on every side
  }
  return d;
}

static const char *const strategies[] = {"dp=2",
                                         "tp=2",
                                         "dp=2 tp=2 pp=2 mb=4",
                                         "pp=4 mb=8 schedule=1f1b",
                                         "dp=4 zero=3",
                                         "dp=2 pp=2 mb=4 v=2 schedule=interleaved"};

TEST(compare_with_itself_has_no_gap_in_any_row) {
  for (u32 s = 0; s < COUNT_OF(strategies); s++)
    for (u32 train = 0; train < 2; train++) {
      if (!train && s > 3) continue; // of training only
      simulated x = simulate(strategies[s], "dgx-2", train);
      const char *path = path_of(x.a, ".json");
      REQUIRE(chrome_write(x.c, x.r.timeline, NULL, path));
      const job_compare d = compare(&x, path);
      CHECK_EQ_I64(d.n, x.r.nranks < d.plan_ranks ? x.r.nranks : d.plan_ranks);
      CHECK_EQ_I64(d.step_ps[0], x.r.makespan_ps);
      CHECK(d.alone && d.step_ps[1] == d.step_ps[0]);
      for (u32 k = 0; k < COMPARE_ROWS; k++)
        CHECK_MSG(d.row_ps[0][k] == d.row_ps[1][k], "%s: %s: %lld, not %lld", strategies[s],
                  compare_row_name(k), (long long)d.row_ps[0][k], (long long)d.row_ps[1][k]);
      for (u32 k = 0; k < d.nevents; k++)
        CHECK(d.event[k].count[0] == d.event[k].count[1] && d.event[k].total_ps[0] == d.event[k].total_ps[1]);
      CHECK_EQ_I64(d.lone, 0);
      CHECK_MSG(d.paired && d.paired == d.instructions && d.activity == 0, "%s: %llu of %llu, off by %g",
                strategies[s], (unsigned long long)d.paired, (unsigned long long)d.instructions, d.activity);
      CHECK(d.row_ps[0][KERNEL_MATMUL] > 0 && !d.row_ps[0][KERNEL_OTHER]);
      unlink(path);
      done(&x);
    }
}

// Of a stage two adds, of which the second is 10 later and twice as long, and one that is not predicted; of another one a
// neg of microbatch 1, 30 earlier, before it one of microbatch 0 that only one side has.
TEST(compare_activity_is_the_mean_of_starts_and_ends) {
  const sym add = {1}, neg = {2};
  const u32 no = TRACE_NONE;
  const compare_slice first[2][3] = {{{.start_ps = 1000, .end_ps = 1020, .name = add, .microbatch = no},
                                      {.start_ps = 1050, .end_ps = 1090, .name = add, .microbatch = no},
                                      {.start_ps = 1090, .end_ps = 1100, .name = neg, .microbatch = no}},
                                     {{.start_ps = 0, .end_ps = 20, .name = add, .microbatch = no},
                                      {.start_ps = 40, .end_ps = 60, .name = add, .microbatch = no}}},
                      second[2][2] = {{{.start_ps = 1010, .end_ps = 1020, .name = neg, .microbatch = 0},
                                       {.start_ps = 1020, .end_ps = 1040, .name = neg, .microbatch = 1}},
                                      {{.start_ps = 50, .end_ps = 70, .name = neg, .microbatch = 1}}};
  compare_rank rank[] = {{.n = {3, 2}, .slice = {first[0], first[1]}},
                         {.stage = 1, .n = {2, 1}, .slice = {second[0], second[1]}}};
  job_compare o = {.n = 2, .rank = rank, .step = TRACE_NONE, .step_ps = {200, 180}, .from_ps = {1000, 0}};
  arena *a = arena_new();
  compare_activity(a, &o);
  CHECK_EQ_I64(o.instructions, 5);
  CHECK_EQ_I64(o.paired, 3);
  CHECK_CLOSE(o.activity, (0 + (10 + 30) / 2. + 30) / 3 / 200, 1e-12);
  REQUIRE(o.nstages == 2);
  CHECK_CLOSE(o.stage[0].median, 20. / 200, 1e-12); // the upper one of two
  CHECK_CLOSE(o.stage[1].median, 30. / 200, 1e-12);
  CHECK_EQ_I64(o.stage[1].paired, 1);
  arena_free(a);
}

TEST(compare_with_slower_links_has_its_gap_in_communication) {
  simulated slow = simulate("dp=2 tp=2", "1x4 v100 nvlink=3GB/s", true),
            x = simulate("dp=2 tp=2", "1x4 v100 nvlink=300GB/s", true);
  const char *path = path_of(x.a, ".json");
  REQUIRE(chrome_write(slow.c, slow.r.timeline, NULL, path));
  const job_compare d = compare(&x, path);
  i64 comm = 0;
  for (u32 k = 0; k < COMPARE_ROWS; k++) {
    const i64 gap = d.row_ps[0][k] - d.row_ps[1][k];
    if (k >= COMPARE_COMM && k < COMPARE_COPY)
      comm += gap;
    else
      CHECK_MSG(!gap, "%s: %lld", compare_row_name(k), (long long)gap);
  }
  CHECK(comm > 0);
  CHECK_EQ_I64(comm, (d.step_ps[0] - d.step_ps[1]) * d.n);
  unlink(path);
  done(&slow), done(&x);
}

TEST(compare_knows_kernels_by_their_names) {
  static const struct {
    const char *name;
    kernel_class is;
  } known[] = {
      {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", KERNEL_MATMUL},
      {"Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x128", KERNEL_MATMUL},
      {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64> >", KERNEL_ATTENTION},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32", KERNEL_CONV},
      {"void cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*)", KERNEL_NORM},
      {"void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>", KERNEL_MOVE},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
       KERNEL_ELEMENTWISE},
      {"multi_tensor_apply_kernel", KERNEL_OPTIMIZER},
      {"triton__0d1d2d3d4de", KERNEL_OTHER},
      {"matmul", KERNEL_MATMUL},
      {"gelu_dx", KERNEL_ELEMENTWISE},
      {"softmax_dx", KERNEL_SOFTMAX},
      {"my_kernel", KERNEL_OTHER}};
  for (u32 k = 0; k < COUNT_OF(known); k++)
    CHECK_MSG(kernel_class_of(known[k].name) == known[k].is, "%s is of class %u", known[k].name,
              (u32)kernel_class_of(known[k].name));
}

// ---- written and read -----------------------------------------------------------------------------------
static trace *read_back(ctx *c, arena *a, const char *path, trace_format f) {
  trace *t = NEW(a, trace);
  trace_read_about about;
  CHECK_EQ_I64(trace_format_of(c, path), f);
  CHECK_MSG(trace_read(c, a, path, f, NULL, TRACE_NONE, t, &about), "%s", diag_render(c, a));
  CHECK_EQ_I64(about.skipped, 0);
  return t;
}

TEST(heddle_timelines_are_read_as_they_were_simulated) {
  simulated x = simulate("dp=2 tp=2 pp=2 mb=4", "dgx-2", true);
  const char *path = path_of(x.a, ".json");
  REQUIRE(chrome_write(x.c, x.r.timeline, NULL, path));
  const trace *t = read_back(x.c, x.a, path, TRACE_FORMAT_heddle), *s = trace_collect(x.a, x.r.timeline);
  const u32 *to = trace_order(x.a, t), *so = trace_order(x.a, s);
  u32 n = 0, tasks = 0, *at = ZNEWN(x.a, u32, s->lanes.n); // of a lane: first of its events in so
  CHECK_EQ_I64(t->processes.n, 8);
  for (u32 k = s->n; k-- > 0;) at[s->lane[so[k]]] = k;
  for (u32 k = 0; k < t->n; k++) {
    const u32 e = to[k], rank = trace_process_of(t, e)->rank;
    u32 l = 0;
    if (t->is[e] == TRACE_NOTE) {
      tasks++;
      continue;
    }
    while (l < s->lanes.n && (s->lanes.v[l].process != rank || s->lanes.v[l].id != t->lanes.v[t->lane[e]].id))
      l++;
    REQUIRE(l < s->lanes.n && at[l] < s->n);
    const u32 o = so[at[l]++];
    n++;
    CHECK_EQ_I64(s->lane[o], l);
    CHECK_EQ_I64(t->start_ps[e], s->start_ps[o]);
    CHECK_EQ_I64(t->dur_ps[e], s->dur_ps[o]);
    CHECK(trace_name(t, e).i == trace_name(s, o).i && t->match[e] == s->match[o]);
    CHECK_EQ_I64(t->microbatch[e], s->microbatch[o]);
    CHECK_EQ_I64(t->flags[e] & TRACE_COMM, s->flags[o] & TRACE_COMM);
  }
  CHECK_EQ_I64(n, s->n);
  CHECK(tasks >= 8 * 8); // a forward and a backward of every microbatch on every rank
  unlink(path);
  done(&x);
}

static bool same_edges(const trace *x, const trace *y) {
  if (x->edges.n != y->edges.n) return false;
  for (u32 k = 0; k < x->edges.n; k++)
    if (x->edges.v[k].event != y->edges.v[k].event || x->edges.v[k].after != y->edges.v[k].after ||
        x->edges.v[k].data != y->edges.v[k].data)
      return false;
  return true;
}

// Of one rank: the same nodes, durations and communications; written again, the same dependencies too.
TEST(chakra_files_are_read_as_they_were_written) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  u64 nodes, again;
  const trace *t = read_back(c, a, "examples/traces/ddp/rank0.json", TRACE_FORMAT_kineto);
  const char *path = path_of(a, ".0.et"), *second = path_of(a, ".1.et");
  CHECK_EQ_I64(trace_rank_in_name(second, RANK_ANY), 1);
  REQUIRE(trace_write_chakra(c, t, 0, path, &nodes));
  const trace *y = read_back(c, a, path, TRACE_FORMAT_chakra);
  u32 n = 0, comms = 0;
  for (u32 e = 0; e < t->n; e++) {
    if (t->is[e] != TRACE_OP && t->is[e] != TRACE_CALL && !(TRACE_ON_DEVICE >> t->is[e] & 1)) continue;
    REQUIRE(n < y->n);
    const u32 k = n++;
    CHECK(trace_name(t, e).i == trace_name(y, k).i);
    CHECK_EQ_I64(t->start_ps[e], y->start_ps[k]);
    CHECK_EQ_I64(t->dur_ps[e], y->dur_ps[k]);
    CHECK((t->comm[e] == TRACE_NONE) == (y->comm[k] == TRACE_NONE));
    if (t->comm[e] == TRACE_NONE || y->comm[k] == TRACE_NONE) continue;
    const trace_comm *u = &t->comms.v[t->comm[e]], *v = &y->comms.v[y->comm[k]];
    comms++;
    CHECK(u->op.i == v->op.i && u->group.i == v->group.i && u->bytes == v->bytes && u->peer == v->peer);
  }
  CHECK_EQ_I64(n, y->n);
  CHECK_EQ_I64(nodes, n);
  CHECK(comms > 0);
  u32 launched = 0; // every kernel waits for its call
  for (u32 k = 0; k < y->edges.n; k++) launched += y->edges.v[k].data;
  u32 causes = 0;
  for (u32 e = 0; e < t->n; e++) causes += TRACE_ON_DEVICE >> t->is[e] & 1 && t->cause[e] != TRACE_NONE;
  CHECK_EQ_I64(launched, causes);
  REQUIRE(trace_write_chakra(c, y, 0, second, &again));
  const trace *z = read_back(c, a, second, TRACE_FORMAT_chakra);
  CHECK(same_edges(y, z) && y->n == z->n);
  for (u32 k = 0; k < y->n && k < z->n; k++)
    CHECK(y->is[k] == z->is[k] && y->dur_ps[k] == z->dur_ps[k] && y->start_ps[k] == z->start_ps[k]);
  unlink(path), unlink(second);
  arena_free(a);
  ctx_free(c);
}

// Cut off anywhere: what comes before is read, or a diagnostic says why nothing is. Damaged anywhere: no crash.
TEST(heddle_timelines_that_are_cut_off_or_damaged) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view f;
  REQUIRE(file_map(c, "examples/traces/simulated/slow.json", &f));
  char *text = arena_strndup(a, (const char *)f.data, f.size);
  const char *path = path_of(a, "-cut.json");
  u32 last = 0;
  u64 seed = 3;
  for (size_t n = 300; n < f.size; n += 97) {
    trace t = {.n = 0};
    trace_read_about about;
    const u32 before = diag_count(c);
    REQUIRE(file_write(c, path, text, n));
    const bool ok = trace_read(c, a, path, TRACE_FORMAT_heddle, NULL, TRACE_NONE, &t, &about);
    CHECK_MSG(ok && about.truncated, "%zu bytes", n);
    CHECK(diag_count(c) > before && t.n >= last);
    last = t.n;
  }
  CHECK(last > 90);
  for (u32 k = 0; k < 300; k++) {
    trace t = {.n = 0};
    trace_read_about about;
    char *odd = arena_strndup(a, text, f.size);
    for (u32 i = 0; i < 4; i++) odd[64 + rng_next(&seed) % (f.size - 64)] = (char)(rng_next(&seed) % 127 + 1);
    REQUIRE(file_write(c, path, odd, f.size));
    const u32 before = diag_errors(c);
    const bool ok = trace_read(c, a, path, TRACE_FORMAT_heddle, NULL, TRACE_NONE, &t, &about);
    CHECK(ok ? t.n <= last + 20 : diag_errors(c) > before);
    for (u32 e = 0; e < t.n; e++)
      CHECK(t.lane[e] < t.lanes.n && t.lanes.v[t.lane[e]].process < t.processes.n &&
            (t.comm[e] == TRACE_NONE || t.comm[e] < t.comms.n));
  }
  unlink(path);
  file_unmap(&f);
  arena_free(a);
  ctx_free(c);
}
