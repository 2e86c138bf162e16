// test_sim.c - times and bytes worked out by hand, schedules with published bubbles, the papers' programs.
#include "plan/plan.h"
#include "report/report.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

// ---- programs whose instructions say what they cost -------------------------------------------------
// An opaque instruction lasts as many ps as its attribute `flops` says, on rank r of a group `bytes` * r
// more; all others last nothing.
static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)f;
  if (arg) ++*(u32 *)arg;
  attrs at = attrs_get(p, i->at);
  i64 more = attr_int(at, A_bytes, 0);
  u32 n = more ? group_get(p->sp, g)->nranks : 1;
  for (u32 k = 0; k < n; k++) ps[k] = attr_int(at, A_flops, 0) + more * (i64)k;
  return n;
}

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} bed;

static bed parsed(const char *text) {
  bed b = {.c = ctx_new()};
  b.a = ctx_arena(b.c);
  b.p = ir_parse(b.c, sym_of(b.c, "test"), text, strlen(text));
  CHECK_MSG(b.p, "%s", diag_render(b.c, b.a));
  REQUIRE(b.p);
  return b;
}
static void drop(bed *b) {
  prog_free(b->p);
  ctx_free(b->c);
}

static sim_result simulated(bed *b, sim_opts o) {
  sim_result r;
  if (!o.cost) o.cost = price;
  bool ok = sim_run(b->c, b->a, b->p, NULL, &o, &r);
  CHECK_MSG(ok, "%s", diag_render(b->c, b->a));
  REQUIRE(ok);
  return r;
}

// Two streams: the second one's work is hidden behind the first until somebody waits for it.
static const char overlapped[] = "mesh @m [d=2]\n"
                                 "stream comm\n"
                                 "func @main(%x: f32[8,4{d}] @m) -> (f32[8,4{d}] @m) {\n"
                                 "  %a = opaque %x {flops=10} @m : f32[8,4{d}]\n"
                                 "  %c = opaque %a {flops=25} @m !comm : f32[8,4{d}]\n"
                                 "  %b = opaque %a {flops=20} @m : f32[8,4{d}]\n"
                                 "  %d = opaque %b, %c {flops=3} @m : f32[8,4{d}]\n"
                                 "  return %d\n"
                                 "}\n";

TEST(sim_streams_overlap) {
  bed b = parsed(overlapped);
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
    sim_result r = simulated(&b, (sim_opts){.mode = m, .critical = true, .steps = true});
    CHECK_EQ_I64(r.makespan_ps, 10 + 25 + 3);
    CHECK_EQ_I64(r.nclasses, m & SIM_FLAT_FOLDED ? 1 : 2);
    CHECK_EQ_I64(r.busy_ps[0], 33);
    CHECK_EQ_I64(r.busy_ps[1], 25);
    CHECK_EQ_I64((i64)r.instructions, 8);
    CHECK_CLOSE(r.utilisation, 33.0 / 38, 1e-12);
    CHECK_CLOSE(r.stage[0].bubble, 5.0 / 38, 1e-12);
    REQUIRE(r.ncritical == 3);
    CHECK_EQ_I64(r.critical[1].instr, 2);
    CHECK_EQ_I64(r.weight[0].total_ps, 25);
  }
  drop(&b);
}

// A rendezvous starts when all are there; ranks with other prices are other classes.
TEST(sim_late_rank_holds_up_all) {
  bed b = parsed("mesh @m [d=4]\n"
                 "func @f(%x: f32[8]) -> (f32[8]) {\n"
                 "  %a = opaque %x {flops=10, bytes=7} : f32[8]+d\n"
                 "  %b = all_reduce %a over d : f32[8]\n"
                 "  return %b\n"
                 "}\n"
                 "func @main(%x: f32[8] @m) -> (f32[8] @m) {\n"
                 "  %a = call @f(%x) @m\n"
                 "  %b = call @f(%a) @m\n"
                 "  return %b\n"
                 "}\n");
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
    sim_result r = simulated(&b, (sim_opts){.mode = m, .critical = true, .steps = true});
    CHECK_EQ_I64(r.makespan_ps, 2 * (10 + 3 * 7));
    CHECK_EQ_I64(r.nclasses, 4);
    CHECK_EQ_I64(r.nstages, 1);
    CHECK_EQ_I64(r.busy_ps[0], 20);
    for (u32 k = 0; k < r.ncritical; k++)
      if (r.critical[k].dur_ps) CHECK_EQ_I64(r.cls[r.critical[k].cls].first_rank, 3);
  }
  drop(&b);
}

// An `after` operand of a call holds up all of it; values wait only where another stream reads them.
TEST(sim_calls_are_their_bodies) {
  bed b = parsed("mesh @m [d=1]\n"
                 "stream side\n"
                 "func @f(%x: f32[8], %y: f32[8]) -> (f32[8], f32[8]) {\n"
                 "  %a = opaque %x {flops=10} : f32[8]\n"
                 "  %b = opaque %y {flops=1} !side : f32[8]\n"
                 "  return %a, %b\n"
                 "}\n"
                 "func @main(%x: f32[8] @m) -> (f32[8] @m) {\n"
                 "  %y = opaque %x {flops=30} !side @m : f32[8]\n"
                 "  %a, %b = call @f(%x, %y) @m\n"          // compute 0..10, side 30..31
                 "  %c = opaque %b {flops=2} @m : f32[8]\n" // 31..33
                 "  %d, %e = call @f(%x, %x) after %b @m\n" // compute 33..43, side 31..32
                 "  return %d\n"
                 "}\n");
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
    sim_result r = simulated(&b, (sim_opts){.mode = m});
    CHECK_EQ_I64(r.end_ps[0], 43);
    CHECK_EQ_I64(r.end_ps[1], 32);
  }
  drop(&b);
}

TEST(sim_steps_in_steady_state) {
  // The update runs on a stream of its own: the next step's forward pass waits for it, the end of this one
  // does not.
  bed b = parsed("mesh @m [d=1]\n"
                 "stream side\n"
                 "func @main(%w: f32[8] @m weight, %x: f32[8] @m) -> (f32[8] @m) {\n"
                 "  %y = opaque %x {flops=100} @m : f32[8]\n"
                 "  %g = opaque %y, %w {flops=10} @m : f32[8]\n"
                 "  %h = opaque %g {flops=30} !side @m : f32[8]\n"
                 "  %v = sgd !%w, %h @m !side update : f32[8]\n"
                 "  %z = opaque %y {flops=20} @m : f32[8]\n"
                 "  return %v\n"
                 "}\n");
  sim_result r = simulated(&b, (sim_opts){.mode = SIM_FOLDED, .steady = true});
  CHECK_EQ_I64(r.makespan_ps, 140);
  CHECK_EQ_I64(r.period_ps, 130); // compute alone: the update is hidden
  drop(&b);
}

// ---- schedules --------------------------------------------------------------------------------------
typedef struct {
  u32 p, m;
  i64 f, b;
  bool gpipe;
} schedule;

// Stage k's chunks live from forward to backward; what is sent is small. Sends cost nothing, on a stream of
// their own.
static void schedule_program(bed *x, const schedule *s) {
  x->c = ctx_new();
  x->a = ctx_arena(x->c);
  prog *p = x->p = prog_new(x->c);
  u8 pp = axis_add(p->sp, sym_of(x->c, "pp"), s->p, false);
  mesh me = mesh_add(p->sp, sym_of(x->c, "m"), &pp, 1, 0, NULL);
  stream_of(p, sym_of(x->c, "pp"));
  shape small = {.t = DT_F32, .nd = 1, .dim = {1}}, chunk = {.t = DT_F32, .nd = 1, .dim = {1 << 18}};
  func main = p->main = func_new(p, sym_of(x->c, "main"), (loc){0});
  builder b = builder_at(p, main);
  attr fl = attr_i(A_flops, s->f), bl = attr_i(A_flops, s->b);
  attrset forward = attrs_of(p, &fl, 1), backward = attrs_of(p, &bl, 1);
  value *act = ZNEWN(x->a, value, (s->p + 1) * s->m), *grad = ZNEWN(x->a, value, (s->p + 1) * s->m);
  value *saved = ZNEWN(x->a, value, s->p * s->m);
  u32 *nf = ZNEWN(x->a, u32, s->p), *nb = ZNEWN(x->a, u32, s->p);
  for (u32 left = 2 * s->p * s->m; left;)
    for (u32 k = 0; k < s->p; k++) {
      u32 warm = s->gpipe ? s->m : MIN(s->p - k, s->m);
      bool back = nb[k] < nf[k] && (nf[k] == s->m || nf[k] - nb[k] >= warm);
      value in = back ? grad[k * s->m + nb[k]] : nf[k] < s->m ? act[k * s->m + nf[k]] : 0;
      if (!in && (back ? k + 1 < s->p : k > 0)) continue;
      if (!back && nf[k] == s->m) continue;
      b.g = group_fix(p->sp, group_all(p->sp, me), pp, k);
      type ts = type_tensor(p, &small, (layout){0}, b.g),
           res[2] = {ts, type_tensor(p, &chunk, (layout){0}, b.g)};
      u32 opd[2], n = 0;
      if (in) opd[n++] = in;
      if (back) opd[n++] = saved[k * s->m + nb[k]];
      value v = emit_res(p, main, emit(&b, OP_opaque, back ? backward : forward, opd, n, res, back ? 1 : 2));
      u32 to = back ? k - 1 : k + 1, mb = back ? nb[k]++ : nf[k]++;
      if (!back) saved[k * s->m + mb] = v + 1;
      left--;
      if (back ? k == 0 : to == s->p) continue;
      type there = type_tensor(p, &small, (layout){0}, group_fix(p->sp, group_all(p->sp, me), pp, to));
      b.strm = 1;
      v = emit_res(p, main, emit(&b, OP_send, (attrset){0}, &v, 1, &there, 1));
      b.strm = 0;
      *(back ? &grad[to * s->m + mb] : &act[to * s->m + mb]) = v;
    }
}

TEST(sim_pipelines_have_their_bubbles) {
  for (u32 k = 0; k < 12; k++) {
    schedule s = {.p = 2 + k % 3 * 2, .m = 4 + k, .f = 10 + k, .b = 20 + k % 5, .gpipe = k % 2};
    bed b;
    schedule_program(&b, &s);
    sim_result r = simulated(&b, (sim_opts){.mode = k % 4, .round_bytes = 512});
    i64 ideal = s.m * (s.f + s.b);
    CHECK_EQ_I64(r.makespan_ps, ideal + (s.p - 1) * (s.f + s.b));
    CHECK_EQ_I64(r.nstages, s.p);
    CHECK_CLOSE(r.stage[0].busy, (double)ideal / (double)r.makespan_ps, 1e-12);
    for (u32 u = 0; u < r.nclasses; u++) {
      CHECK_EQ_I64(r.cls[u].peak_bytes >> 20, s.gpipe ? s.m : MIN(s.p - u, s.m));
      CHECK_EQ_I64(r.cls[u].end_bytes, 0);
    }
    drop(&b);
  }
}

TEST(sim_published_schedules) {
  FILE *f = fopen(test_data("schedules/golden.txt"), "r");
  REQUIRE(f);
  char line[1000], name[32];
  u32 rows = 0;
  while (fgets(line, sizeof line, f)) {
    schedule s = {.p = 0};
    double fwd, bwd, wgt, makespan;
    int used = 0;
    if (sscanf(line, "p=%u m=%u F/B/W=%lf/%lf/%lf %31s makespan=%lf", &s.p, &s.m, &fwd, &bwd, &wgt, name,
               &makespan) != 7)
      continue;
    s.gpipe = !strcmp(name, "GPipe");
    if (!s.gpipe && strcmp(name, "1F1B") != 0) continue;
    s.f = (i64)(fwd * 1000);
    s.b = (i64)((bwd + wgt) * 1000);
    bed b;
    schedule_program(&b, &s);
    sim_result r = simulated(&b, (sim_opts){.mode = SIM_FOLDED});
    CHECK_MSG(r.makespan_ps == (i64)(makespan * 1000), "%s: %lld", line, (long long)r.makespan_ps);
    const char *live = strstr(line, "chunks=[");
    for (u32 k = 0; live && k < s.p; k++) {
      u32 chunks;
      live += k ? 0 : strlen("chunks=[");
      REQUIRE(sscanf(live, "%u%n", &chunks, &used) == 1);
      live += used + 2; // ", "
      CHECK_EQ_I64(r.cls[r.class_of_rank[k]].peak_bytes >> 20, chunks);
    }
    rows++;
    drop(&b);
  }
  fclose(f);
  CHECK(rows > 0);
}

// ---- bytes ------------------------------------------------------------------------------------------
static i64 peak_of(const char *body, sim_bytes how, i64 *kinds) {
  char text[4000];
  snprintf(text, sizeof text,
           "mesh @m [d=2]\nfunc @main(%%x: f32[256] @m, %%w: f32[256] @m weight) -> (f32[256] @m) {\n%s}\n",
           body);
  bed b = parsed(text);
  sim_result r = simulated(&b, (sim_opts){.mode = SIM_FOLDED, .bytes = how});
  if (kinds) memcpy(kinds, r.cls[0].peak_kind, sizeof r.cls[0].peak_kind);
  drop(&b);
  return r.peak_bytes;
}

TEST(sim_bytes_live_until_last_use) {
  // x and w are 1 KiB each and stay. %a and %b are there at once, %b and %c too.
  CHECK_EQ_I64(
      peak_of("  %a = exp %x @m\n  %b = exp %a @m\n  %c = exp %b @m\n  return %c\n", SIM_BYTES_HEDDLE, NULL),
      4 << 10);
  // donated: taken over
  CHECK_EQ_I64(peak_of("  %a = exp %x @m\n  %b = exp !%a @m\n  %c = exp !%b @m\n  return %c\n",
                       SIM_BYTES_HEDDLE, NULL),
               3 << 10);
  // a view keeps its operand
  CHECK_EQ_I64(peak_of("  %a = exp %x @m\n  %v = reshape %a {shape=[16,16]} @m\n  %b = exp %x @m\n"
                       "  %u = reshape %v {shape=[256]} @m\n  %c = add %b, %u @m\n  return %c\n",
                       SIM_BYTES_HEDDLE, NULL),
               5 << 10);
  // a piece on each of two ranks, rounded up to 512: x, w, and half of %a
  CHECK_EQ_I64(peak_of("  %a = shard %x over d @m : f32[256{d}]\n  return %x\n", SIM_BYTES_HEDDLE, NULL),
               2560);
  // an update takes over its weight, not its gradient
  CHECK_EQ_I64(peak_of("  %g = exp %x @m backward\n  %v = sgd !%w, %g {lr=0.1} @m update\n  return %v\n",
                       SIM_BYTES_HEDDLE, NULL),
               3 << 10);
  CHECK_EQ_I64(peak_of("  %g = exp %x @m backward\n  %v = sgd %w, %g {lr=0.1} @m update\n  return %v\n",
                       SIM_BYTES_HEDDLE, NULL),
               4 << 10);
}

TEST(sim_bytes_as_distir_counts) {
  // Not used: never freed. In place: nothing, except updates. Not rounded.
  CHECK_EQ_I64(peak_of("  %a = exp %x @m\n  %b = exp !%x @m\n  %c = exp !%b @m\n  return %c\n",
                       SIM_BYTES_DISTIR, NULL),
               5 << 10);
  CHECK_EQ_I64(peak_of("  %g = exp %x @m backward\n  %v = sgd %w, %g {lr=0.1} @m update\n  return %v\n",
                       SIM_BYTES_DISTIR, NULL),
               3 << 10);
}

TEST(sim_bytes_by_kind) {
  i64 kind[MEM_KINDS];
  peak_of("  %a = exp %x @m\n"               // activation
          "  %b = exp %a @m : f32[256]+d\n"  // temporary
          "  %c = all_reduce %b over d @m\n" // received, in the place of %b
          "  %t = exp %w @m\n"               // temporary
          "  %d = mul %c, %t @m\n"           // activation; here %a, %c, %t, %d
          "  %g = mul %d, %a @m backward\n"
          "  %h = scale %g {alpha=2} @m backward\n" // gradient, because of what follows
          "  %v = sgd !%w, %h {lr=0.1} @m update\n"
          "  return %v\n",
          SIM_BYTES_HEDDLE, kind);
  static const i64 want[MEM_KINDS] = {
      [MEM_PARAM] = 1024, [MEM_ACT] = 3072, [MEM_TEMP] = 1024, [MEM_COMM] = 1024};
  for (u32 k = 0; k < MEM_KINDS; k++)
    CHECK_MSG(kind[k] == want[k], "%s: %lld, should be %lld", mem_kind_name(k), (long long)kind[k],
              (long long)want[k]);
}

// What a call made and nobody used is there for ever: of no value of the caller, but of a kind.
TEST(sim_bytes_by_kind_as_distir_counts) {
  static const char text[] =
      "mesh @m [d=2]\n"
      "func @f(%x: f32[256] @m) -> (f32[256] @m) {\n"
      "  %lost = exp %x @m\n  %y = neg %x @m\n  return %y\n}\n"
      "func @main(%x: f32[256] @m) -> (f32[256] @m) {\n"
      "  %a = call @f(%x) @m\n  %b = call @f(%a) @m\n  %c = exp %b @m\n  return %c\n}\n";
  bed b = parsed(text);
  sim_result r = simulated(&b, (sim_opts){.mode = SIM_FOLDED, .bytes = SIM_BYTES_DISTIR});
  i64 sum = 0;
  for (u32 k = 0; k < MEM_KINDS; k++) sum += r.cls[0].peak_kind[k];
  CHECK_EQ_I64(r.peak_bytes, 5 << 10); // x, two that are lost, %b and %c
  CHECK_EQ_I64(sum, r.peak_bytes);
  drop(&b);
}

// A tuple that a call gives back, passed on at its last use to a function that returns one part of it: the
// other part is freed then.
TEST(sim_bytes_of_tuples) {
  bed b = parsed("mesh @m [d=1]\n"
                 "func @two(%x: f32[256]) -> ((f32[256], f32[256])) {\n"
                 "  %a = exp %x\n"
                 "  %b = exp %x\n"
                 "  %t = pack %a, %b\n"
                 "  return %t\n"
                 "}\n"
                 "func @first(%t: (f32[256], f32[256])) -> (f32[256]) {\n"
                 "  %a, %b = unpack %t\n"
                 "  return %a\n"
                 "}\n"
                 "func @main(%x: f32[256] @m) -> (f32[256] @m) {\n"
                 "  %t = call @two(%x) @m\n"
                 "  %u = call @two(%x) @m\n"
                 "  %a = call @first(%t) @m\n"
                 "  %b = call @first(!%u) @m\n"
                 "  %c = add %a, %b @m\n"
                 "  return %c\n"
                 "}\n");
  sim_result r = simulated(&b, (sim_opts){.mode = SIM_FOLDED});
  CHECK_EQ_I64(r.peak_bytes, 5 << 10);
  CHECK_EQ_I64(r.cls[0].start_bytes, 1 << 10);
  CHECK_EQ_I64(r.cls[0].end_bytes, 2 << 10);
  REQUIRE(r.cls[0].ntop == 3);
  CHECK_EQ_I64(r.cls[0].top[0].count, 2); // of %a in @two, twice
  drop(&b);
}

// ---- prices -----------------------------------------------------------------------------------------
TEST(sim_asks_for_a_price_once) {
  bed b = parsed("mesh @m [d=1]\n"
                 "func @f(%x: f32[8]) -> (f32[8]) {\n"
                 "  %a = opaque %x {flops=1} : f32[8]\n"
                 "  return %a\n"
                 "}\n"
                 "func @main(%x: f32[8] @m) -> (f32[8] @m) {\n"
                 "  %a = call @f(%x) @m\n"
                 "  %b = call @f(%a) @m\n"
                 "  %c = call @f(%b) @m\n"
                 "  return %c\n"
                 "}\n");
  u32 asked = 0;
  sim_result r = simulated(&b, (sim_opts){.cost_arg = &asked});
  CHECK_EQ_I64(r.makespan_ps, 3);
  CHECK_EQ_I64(asked, 1);
  drop(&b);
}

static u32 no_price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)f, (void)g, (void)ps;
  diag(p->c, E_LINK, i->where, "no link between rank 0 and rank 1");
  return 0;
}

static u32 price_of_model(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  return cost_instr(arg, p, f, i, g, ps);
}

// The second microbatch's piece of c=1 is larger than the first's: one price each, however often it is sent.
TEST(sim_pieces_that_differ_in_time) {
  static const char text[] = "mesh @m [c=2]\nmesh @n [c=2] ranks {2, 3}\ntime [mb=2]\n"
                             "func @main(%x: f32[12,1024,1024] @m) -> (f32[12,1024,1024] @n) {\n"
                             "  %a = part %x {at=0} over mb @m @mb=0 : f32[12{mb},1024,1024]\n"
                             "  %b = part %x {at=1} over mb @m @mb=1 : f32[12{mb},1024,1024]\n"
                             "  %c = send %a @m @mb=0 : f32[12{mb,c:0-8|8-12},1024,1024] @n\n"
                             "  %d = send %b @m @mb=1 : f32[12{mb,c:0-8|8-12},1024,1024] @n\n"
                             "  %e = all_gather %c over c @n @mb=0 : f32[12{mb},1024,1024]\n"
                             "  %f = all_gather %d over c @n @mb=1 : f32[12{mb},1024,1024]\n"
                             "  %r = join %e, %f over mb @n : f32[12,1024,1024]\n"
                             "  return %r\n"
                             "}\n";
  bed b = parsed(text);
  cost_model *k =
      cost_model_new(b.c, b.a, machine_load(b.c, b.a, "2x2 v100 nvlink=100GB/s ib=100Gb/s"), NULL);
  sim_result by_model, given;
  REQUIRE(k && sim_run(b.c, b.a, b.p, k, &(sim_opts){.mode = SIM_FLAT}, &by_model));
  REQUIRE(sim_run(b.c, b.a, b.p, NULL, &(sim_opts){.mode = SIM_FLAT, .cost = price_of_model, .cost_arg = k},
                  &given));
  CHECK_EQ_I64(by_model.makespan_ps, given.makespan_ps);
  for (u32 r = 0; r < 4; r++)
    CHECK_EQ_I64(by_model.busy_ps[by_model.class_of_rank[r]], given.busy_ps[given.class_of_rank[r]]);
  drop(&b);
}

TEST(sim_refuses) {
  bed b = parsed(overlapped);
  sim_result r;
  sim_opts o = {.cost = no_price};
  CHECK(!sim_run(b.c, b.a, b.p, NULL, &o, &r) && diag_errors(b.c) == 1);
  drop(&b);
  b = parsed("mesh @m [d=1]\n"
             "func @main(%x: f32[8] @m) -> (f32[8] @m) {\n"
             "  %a = opaque %x {flops=5000000000000000000} @m : f32[8]\n"
             "  %b = opaque %a {flops=5000000000000000000} @m : f32[8]\n"
             "  return %b\n"
             "}\n");
  o.cost = price;
  CHECK(!sim_run(b.c, b.a, b.p, NULL, &o, &r));
  CHECK(diag_errors(b.c) == 1 && diag_get(b.c, 0).id == E_LIMIT);
  drop(&b);
  b = parsed("mesh @m [d=1]\n"
             "stream side\n"
             "func @f(%x: f32[8]) -> (f32[8]) {\n"
             "  %a = opaque %x {flops=9000000000000000000} : f32[8]\n"
             "  %b = opaque %a {flops=9000000000000000000} : f32[8]\n"
             "  return %b\n"
             "}\n"
             "func @main(%x: f32[8] @m) -> (f32[8] @m) {\n"
             "  %a = call @f(%x) @m\n"
             "  %b = opaque %a {flops=1} @m !side : f32[8]\n"
             "  return %b\n"
             "}\n");
  for (o.mode = SIM_FLAT; o.mode <= SIM_FOLDED; o.mode++) CHECK(!sim_run(b.c, b.a, b.p, NULL, &o, &r));
  drop(&b);
}

TEST(sim_programs_that_do_nothing) {
  static const char *const text[] = {
      "func @main(%x: f32[8]) -> (f32[8]) {\n  return %x\n}\n",
      "mesh @m [d=4]\nfunc @main(%x: f32[8] @m[d=1]) -> (f32[8] @m[d=1]) {\n  return %x\n}\n",
      ("func @f(%x: f32[8]) -> (f32[8]) {\n  return %x\n}\n"
       "func @main(%x: f32[8]) -> (f32[8]) {\n  %y = call @f(%x)\n  return %y\n}\n")};
  for (u32 k = 0; k < COUNT_OF(text); k++) {
    bed b = parsed(text[k]);
    for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
      sim_result r = simulated(
          &b, (sim_opts){.mode = m, .critical = true, .steps = true, .timeline = true, .steady = true});
      CHECK_EQ_I64(r.makespan_ps, 0);
      CHECK_EQ_I64(r.nranks, k == 1 ? 4 : 1);
      CHECK_EQ_I64(r.peak_bytes, 512);
      CHECK_EQ_I64(r.cls[r.class_of_rank[r.nranks - 1]].peak_bytes, k == 1 ? 0 : 512);
      CHECK(trace_events(r.timeline) == 0 && r.ncritical == 0 && r.period_ps == 0);
    }
    drop(&b);
  }
}

// Without a mesh there is one rank.
TEST(sim_one_device) {
  bed b = parsed("func @main(%x: f32[8]) -> (f32[8]) {\n"
                 "  %a = opaque %x {flops=5} : f32[8]\n"
                 "  %b = opaque %a {flops=6} : f32[8]\n"
                 "  return %b\n"
                 "}\n");
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
    sim_result r = simulated(&b, (sim_opts){.mode = m});
    CHECK_EQ_I64(r.makespan_ps, 11);
    CHECK_CLOSE(r.utilisation, 1, 1e-12);
  }
  drop(&b);
}

// ---- the papers' programs ---------------------------------------------------------------------------
static i64 example_ps(const char *name, sim_mode mode) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  char path[200];
  snprintf(path, sizeof path, "examples/distir/%s.heddle", name);
  file_view f;
  REQUIRE(file_map(c, path, &f));
  prog *p = ir_parse(c, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  machine *m = machine_load(c, a, "2 v100");
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  sim_opts o = {.mode = mode};
  sim_result r = {0};
  CHECK_MSG(p && k && sim_run(c, a, p, k, &o, &r), "%s: %s", name, diag_render(c, a));
  prog_free(p);
  ctx_free(c);
  return r.makespan_ps;
}

TEST(sim_distir_programs) {
  // Sending the second microbatch's activations before the first one is worked on leaves the second device
  // idle less.
  i64 good = example_ps("fig2_pipeline", SIM_FOLDED), swapped = example_ps("fig2_swapped", SIM_FOLDED);
  CHECK_MSG(good < swapped, "%lld, swapped %lld", (long long)good, (long long)swapped);
  static const char *const name[] = {"fig2_pipeline", "fig2_swapped", "fig8_checkpointing", "fig9_zero"};
  for (u32 k = 0; k < COUNT_OF(name); k++)
    CHECK_EQ_I64(example_ps(name[k], SIM_FLAT), example_ps(name[k], SIM_FOLDED));
}

// ---- plans ------------------------------------------------------------------------------------------
typedef struct {
  const char *model;
  i64 batch;
  const char *line; // its strategy
  bool train;
} planned;

static void same_result(const sim_result *r, const sim_result *flat) {
  CHECK_EQ_I64(r->makespan_ps, flat->makespan_ps);
  CHECK_EQ_I64((i64)r->instructions, (i64)flat->instructions);
  CHECK_CLOSE(r->utilisation, flat->utilisation, 0);
  CHECK_CLOSE(r->comm, flat->comm, 0);
  for (u32 rank = 0; rank < flat->nranks; rank++) {
    u32 unit = r->class_of_rank[rank];
    const sim_class *x = &r->cls[unit], *y = &flat->cls[rank];
    for (u32 k = 0; k < flat->nstreams; k++) {
      CHECK_EQ_I64(r->end_ps[unit * flat->nstreams + k], flat->end_ps[rank * flat->nstreams + k]);
      CHECK_EQ_I64(r->busy_ps[unit * flat->nstreams + k], flat->busy_ps[rank * flat->nstreams + k]);
      CHECK_EQ_I64(r->comm_ps[unit * flat->nstreams + k], flat->comm_ps[rank * flat->nstreams + k]);
    }
    CHECK_EQ_I64(x->peak_bytes, y->peak_bytes);
    CHECK_EQ_I64(x->end_bytes, y->end_bytes);
    CHECK_EQ_I64(x->peak_at, y->peak_at);
    CHECK(memcmp(x->peak_kind, y->peak_kind, sizeof x->peak_kind) == 0);
    if (!CHECK_EQ_I64(x->ntop, y->ntop)) continue;
    for (u32 k = 0; k < x->ntop; k++) {
      CHECK_EQ_I64(x->top[k].f.i, y->top[k].f.i);
      CHECK_EQ_I64(x->top[k].v, y->top[k].v);
      CHECK_EQ_I64(x->top[k].bytes, y->top[k].bytes);
      CHECK_EQ_I64(x->top[k].count, y->top[k].count);
    }
  }
}

static void same_path(const sim_result *r, const sim_result *whole) {
  if (!CHECK_EQ_I64(r->nweights, whole->nweights)) return;
  for (u32 k = 0; k < r->nweights; k++) {
    const sim_weight *x = &r->weight[k], *y = &whole->weight[k];
    CHECK(x->op == y->op && x->f.i == y->f.i && x->instr == y->instr && x->count == y->count &&
          x->total_ps == y->total_ps);
  }
  i64 sum = 0;
  for (u32 k = 0; k < r->nlikes; k++) sum += r->like[k].dur_ps * (i64)r->like[k].count;
  CHECK_EQ_I64(sum, r->makespan_ps);
  if (!CHECK_EQ_I64(r->norigins, whole->norigins)) return;
  for (u32 k = 0; k < r->norigins; k++) {
    const sim_origin *x = &r->origin[k], *y = &whole->origin[k];
    CHECK(x->count == y->count && x->ps == y->ps && !strcmp(x->row.figure, y->row.figure));
  }
}

// All modes on one plan, with every step of the path and without.
static void modes_agree(const planned *x) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  hybrid_opts h = {.s = strategy_of("%s", x->line), .train = x->train, .optim = optim_default(OPTIM_ADAM)};
  prog *src = front_load(c, x->model, &(front_opts){.batch = x->batch, .seq = 16, .loss = h.train});
  planner *pl = src ? planner_new(src) : NULL;
  machine *m = machine_load(c, a, "a10-4x4"); // several nodes: places differ in price
  cost_model *co = m ? cost_model_new(c, a, m, NULL) : NULL;
  plan *pn = pl && co ? policy_hybrid(pl, a, &h) : NULL;
  prog *p = pn ? plan_apply(pl, pn, co) : NULL;
  if (!CHECK_MSG(p, "%s: %s", x->model, diag_render(c, a))) return;
  sim_result r[4], quick;
  for (sim_mode mode = SIM_FLAT; mode <= SIM_FOLDED; mode++) {
    sim_opts o = {.mode = mode, .critical = true, .steps = true, .steady = true};
    sim_opts few = {.mode = mode, .critical = true, .steady = true};
    if (!CHECK(sim_run(c, a, p, co, &o, &r[mode]) && sim_run(c, a, p, co, &few, &quick))) return;
    CHECK_EQ_I64(r[mode].period_ps, r[0].period_ps);
    CHECK_EQ_I64(quick.period_ps, r[0].period_ps);
    CHECK(quick.period_ps <= quick.makespan_ps && quick.ncarried == r[0].ncarried);
    same_result(&r[mode], &r[0]);
    same_result(&quick, &r[0]);
    same_path(&quick, &r[mode]);
  }
  // over 5 and 7 ranks nothing divides: they hold unlike pieces
  CHECK(r[SIM_FOLDED].nclasses < r[0].nclasses || h.s.dp.n * h.s.tp.n == 1 || h.s.dp.n > 4);
  prog_free(p);
  planner_free(pl);
  prog_free(src);
  ctx_free(c);
}

#define SMALL_GPT "gpt2:layers=4,hidden=64,heads=4,vocab=128"
TEST(sim_modes_agree_on_plans) {
  static const planned cases[] = {
      {"mlp-xs", 32, "dp=2 tp=2 pp=2 mb=4 schedule=gpipe", true},
      {"mlp-xs", 32, "dp=4 pp=2 mb=8 schedule=gpipe zero=3", true},
      {SMALL_GPT, 32, "dp=2 tp=2 pp=2 mb=2 schedule=gpipe overlap", true},
      {SMALL_GPT, 32, "tp=4 pp=2 mb=4 schedule=gpipe recompute=full", true},
      {SMALL_GPT, 32, "dp=2 tp=4 sp", true},
      {SMALL_GPT, 12, "dp=3 tp=2 mb=2 zero=1", true},
      {SMALL_GPT, 30, "dp=5 pp=3 mb=3 schedule=gpipe zero=2", true},
      {SMALL_GPT, 14, "dp=7 tp=2 zero=3", true},
      {"llama2-7b:layers=4,hidden=64,heads=4,vocab=128", 32, "pp=4 mb=4 overlap", false}};
  for (u32 k = 0; k < COUNT_OF(cases); k++) modes_agree(&cases[k]);
}

// Pipelines that are longer than what fills them.
TEST(sim_modes_agree_on_long_pipelines) {
  static const planned cases[] = {{SMALL_GPT, 128, "dp=2 tp=2 pp=2 mb=32", true},
                                  {SMALL_GPT, 128, "tp=2 pp=4 mb=64 overlap", true},
                                  {SMALL_GPT, 256, "pp=4 mb=256 recompute=full", true},
                                  {SMALL_GPT, 256, "dp=2 pp=4 mb=128 zero=2 overlap", true},
                                  {"mlp-xs", 128, "dp=2 pp=4 mb=64 zero=3", true},
                                  {SMALL_GPT, 128, "tp=2 pp=4 mb=64", false},
                                  {SMALL_GPT, 128, "pp=4 mb=128 overlap", false}};
  for (u32 k = 0; k < COUNT_OF(cases); k++) modes_agree(&cases[k]);
}

TEST(sim_modes_agree_on_random_pipelines) {
  static const char *const models[] = {"mlp-xs:layers=6,hidden=16",
                                       "gpt2:layers=6,hidden=32,heads=4,vocab=61",
                                       "llama2-7b:layers=5,hidden=32,heads=4,vocab=64"};
  u64 rng = 11;
  for (u32 k = 0; k < 40 / test_step(); k++) {
    static const char *const recompute[] = {"none", "selective", "full"};
    planned x = {.model = models[rng_next(&rng) % 3]};
    char line[160];
    u32 dp = 1 + rng_next(&rng) % 2, tp = 1 + rng_next(&rng) % 2, pp = 2 + rng_next(&rng) % 3;
    u32 mb = 16 + (u32)(rng_next(&rng) % 8) * 8;
    x.train = rng_next(&rng) % 4 > 0;
    bool overlap = rng_next(&rng) % 2, gpipe = rng_next(&rng) % 4 == 0;
    u64 again = rng_next(&rng) % 3, zero = x.train && dp > 1 ? rng_next(&rng) % 4 : 0;
    snprintf(line, sizeof line, "dp=%u tp=%u pp=%u mb=%u schedule=%s overlap=%s recompute=%s zero=%u", dp, tp,
             pp, mb, gpipe ? "gpipe" : "1f1b", overlap ? "pp" : "none", recompute[x.train ? again : 0],
             (u32)zero);
    x.line = line;
    x.batch = dp * mb * (1 + rng_next(&rng) % 2);
    modes_agree(&x);
  }
}

// ---- engines without a program ----------------------------------------------------------------------
TEST(sim_engine_runs_event_graphs) {
  // Slots: 1, 2 resources; 3, 4 values. Two tasks on 1, the second waits for one on 2.
  static const i64 dur[] = {5, 7, 1};
  static const u32 occ[] = {0, 1, 3, 5}, in[] = {1, 2, 4}, out[] = {1, 2, 5}, ref[] = {1, 2, 3, 1, 3};
  static const u32 port[] = {1, 2}, slot_clock[] = {0, 1, 2, 0}, unit[] = {0, 1}, what[] = {1, 2, 3};
  sim_graph c = {.n = 3,
                 .nslot = 4,
                 .dur = dur,
                 .occ = occ,
                 .in = in,
                 .out = out,
                 .ref = ref,
                 .nclock = 2,
                 .nin = 2,
                 .nout = 2,
                 .port_in = port,
                 .port_out = port,
                 .slot_clock = slot_clock,
                 .clock_class = unit,
                 .what = what};
  i64 x[4] = {0, 100, 0, 0}, frame[1];
  sim_flat(&c, x, frame);
  CHECK_EQ_I64(x[1], 106);
  CHECK_EQ_I64(x[2], 7);
  arena *a = arena_new(), *s = arena_new();
  const sim_map *m = sim_map_new(a, s, &c);
  i64 *y = ZNEWN(s, i64, m->nin + m->nvert), z[2];
  y[2] = 100; // ports are numbered from 1
  sim_map_apply(m, y, z);
  CHECK_EQ_I64(z[0], 108);
  CHECK_EQ_I64(z[1], 107);
  arena_free(s);
  arena_free(a);
}

TEST(sim_timeline_as_chrome_reads_it) {
  bed b = parsed(overlapped);
  sim_result r = simulated(&b, (sim_opts){.timeline = true});
  strbuf out = {.a = b.a};
  chrome_print(b.c, r.timeline, &(timeline_opts){.title = "overlapped"}, &out);
  CHECK_GOLDEN("sim/overlapped.json", sb_str(&out));
  const json *j = json_parse(b.c, b.a, sym_of(b.c, "timeline"), out.v, out.n);
  for (u32 most = 1; most < 12; most++) { // however many events are held at a time
    strbuf again = {.a = b.a};
    chrome_print(b.c, r.timeline, &(timeline_opts){.title = "overlapped", .buffered = most}, &again);
    CHECK_STR(sb_str(&again), sb_str(&out));
  }
  CHECK(j && json_get(j, "traceEvents")->n == 4 + 2 + 2 + 4 + 8 + 4);
  drop(&b);
}
