// test_offload.c - what lies in host memory: bytes over the link and their time against formulas, memory on the device and
// on the host, what runs ahead, what of it a validator refuses.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

// A device that computes in no time beside a link of 1 GB/s: what is left is the link.
static const char link_bound[] = "name: m\n"
                                 "devices:\n"
                                 "  fast: {rate: {f32: 1e9 TFLOP/s}, vector: 1e9 TFLOP/s, memory: 64 GiB, "
                                 "bandwidth: 1e9 GB/s, allocation: 1 B}\n"
                                 "nodes: {devices: 4 fast, link: switch 1e6 GB/s, host: {bandwidth: %s%s}}\n";

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p;
  planner *pl;
  plan *pn;
  machine *m;
  cost_model *k;
  sim_result r;
} bed;

static bed bed_open(const char *model, i64 batch, bool train, optimizer kind, const char *link,
                    const char *more, const char *line) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = batch, .seq = 16, .loss = train});
  REQUIRE(b.src && (!train || pass_loss(b.src)));
  const char *text = arena_printf(b.a, link_bound, link, more);
  b.m = machine_parse(b.c, b.a, sym_of(b.c, "m.yaml"), text, strlen(text));
  CHECK_MSG(b.m != NULL, "%s", diag_render(b.c, b.a));
  REQUIRE(b.m != NULL);
  b.k = cost_model_new(b.c, b.a, b.m, NULL);
  b.pl = planner_new(b.src);
  const hybrid_opts h = {
      .s = strategy_of("%s", line), .train = train, .optim = optim_default(kind), .k = b.k};
  b.pn = policy_hybrid(b.pl, b.a, &h);
  b.p = b.pn ? plan_apply(b.pl, b.pn, b.k) : NULL;
  const sim_opts o = {.mode = SIM_FOLDED};
  const bool ran = b.p && plan_validate(b.p) && sim_run(b.c, b.a, b.p, b.k, &o, &b.r);
  CHECK_MSG(ran, "%s: %s", line, diag_render(b.c, b.a));
  REQUIRE(ran);
  return b;
}

static void bed_close(bed *b) {
  prog_free(b->p);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

static i64 busy(const bed *b, const char *name) {
  for (u32 k = 0; k < b->r.nstreams; k++)
    if (!strcmp(sym_str(b->c, b->p->streams.v[k]), name)) return b->r.busy_ps[k];
  return 0;
}

// Bytes of main's parameters of a role in the distributed program, on rank 0.
static i64 bytes_of(const bed *b, role r) {
  const func_info *m = func_get(b->p, b->p->main);
  i64 sum = 0;
  for (u32 k = 0; k < m->nparams; k++) {
    const type_info *t = val_type(b->p, m, k + 1);
    i64 dim[DIMS_MAX], n = dtype_bytes(t->s.t);
    if (m->params.v[k].r != r) continue;
    layout_local_dims(b->p->sp, t->lay, t->s.nd, t->s.dim, &(coords){0}, dim);
    for (u32 d = 0; d < t->s.nd; d++) n *= dim[d];
    sum += n;
  }
  return sum;
}

enum { PS_A_BYTE = 1000 }; // at 1 GB/s
static bool about(i64 x, i64 y) {
  return x - y <= y / 1000 && y - x <= y / 1000;
} // computation takes a little

// Each weight is read once: a pass is its bytes over the link.
TEST(offload_of_weights_takes_the_link) {
  bed b = bed_open("mlp-xs", 4, false, OPTIM_SGD, "1 GB/s", ", memory: 8 GiB", "offload=params");
  const i64 bytes = bytes_of(&b, ROLE_WEIGHT);
  CHECK_EQ_I64(busy(&b, "h2d"), bytes * PS_A_BYTE);
  CHECK_EQ_I64(busy(&b, "d2h"), 0);
  CHECK(b.r.makespan_ps >= bytes * PS_A_BYTE && about(b.r.makespan_ps, bytes * PS_A_BYTE));
  CHECK_EQ_I64(b.r.cls[0].host_peak_bytes, bytes);
  bed_close(&b);
}

// Moments of Adam, 8 bytes for each of 4 of a weight, come and go once.
TEST(offload_of_states_takes_the_link) {
  bed b = bed_open("mlp-xs", 4, true, OPTIM_ADAM, "1 GB/s", ", memory: 8 GiB", "offload=states"),
      none = bed_open("mlp-xs", 4, true, OPTIM_ADAM, "1 GB/s", ", memory: 8 GiB", "dp=1");
  const i64 bytes = bytes_of(&b, ROLE_STATE), weights = bytes_of(&b, ROLE_WEIGHT);
  CHECK_EQ_I64(bytes, 2 * weights);
  CHECK_EQ_I64(busy(&b, "h2d"), bytes * PS_A_BYTE);
  CHECK_EQ_I64(busy(&b, "d2h"), bytes * PS_A_BYTE);
  CHECK_CLOSE(b.r.beside * (double)b.r.makespan_ps, (double)(2 * bytes * PS_A_BYTE), 1e-12);
  // Four updates of two layers each. All that comes, one after the other; the last one goes when it has come.
  CHECK(about(b.r.makespan_ps, bytes * PS_A_BYTE / 4 * 5));
  CHECK_EQ_I64(b.r.cls[0].host_peak_bytes, bytes);
  // On the device are those of the update at hand, of the next and, until they have gone, of the one before.
  const i64 rest = b.r.peak_bytes - 2 * weights - bytes / 4 * 3; // inputs
  CHECK_MSG(rest >= 0 && rest < 1 << 16, "%lld", (long long)rest);
  CHECK(none.r.peak_bytes >= b.r.peak_bytes + bytes / 4);
  CHECK_EQ_I64(none.r.cls[0].host_peak_bytes, 0);
  bed_close(&b), bed_close(&none);
}

// Weights are read by forwards and backwards; the update reads and writes them, and gradients; all divided over ranks.
TEST(offload_shards_what_storage_does) {
  for (u32 zero = 0; zero <= 3; zero++) {
    char line[64];
    snprintf(line, sizeof line, "dp=4 zero=%u offload=states", zero);
    bed b = bed_open("mlp-xs", 8, true, OPTIM_ADAM, "1 GB/s", ", memory: 8 GiB", line);
    CHECK_EQ_I64(busy(&b, "h2d"), bytes_of(&b, ROLE_STATE) * PS_A_BYTE);
    CHECK_EQ_I64(b.r.cls[0].host_peak_bytes, bytes_of(&b, ROLE_STATE));
    CHECK(zero ? bytes_of(&b, ROLE_STATE) < bytes_of(&b, ROLE_WEIGHT) * (zero == 3 ? 3 : 1)
               : bytes_of(&b, ROLE_STATE) == 2 * bytes_of(&b, ROLE_WEIGHT));
    const sim_host h = sim_host_memory(&b.r, b.m);
    CHECK(h.ranks == 4 && h.bytes == 4 * b.r.cls[0].host_peak_bytes);
    bed_close(&b);
  }
}

// The device holds what ahead + 1 layers read.
TEST(offload_holds_as_many_layers_as_run_ahead) {
  i64 peak[4];
  for (u32 ahead = 0; ahead < COUNT_OF(peak); ahead++) {
    char line[64];
    snprintf(line, sizeof line, "offload=params prefetch=%u", ahead);
    bed b = bed_open("mlp-xs", 4, false, OPTIM_SGD, "1 GB/s", ", memory: 8 GiB", line);
    peak[ahead] = b.r.peak_bytes;
    bed_close(&b);
  }
  for (u32 k = 1; k < COUNT_OF(peak); k++) CHECK_EQ_I64(peak[k] - peak[k - 1], 4 * 512 * 512);
}

// Activations go once each way; as many of them come back as went.
TEST(offload_of_activations_goes_and_comes) {
  bed b = bed_open("gpt2:layers=3,hidden=64,heads=4,vocab=64,positions=16", 8, true, OPTIM_SGD, "1 GB/s",
                   ", memory: 8 GiB", "offload=acts");
  // All are there when the last has gone, but for what the head's backward has fetched by then: a class of each token, twice.
  const i64 there = b.r.cls[0].host_peak_bytes * PS_A_BYTE, head = 8 * 16 * 64 * 4 * (i64)PS_A_BYTE;
  CHECK(there > 0 && busy(&b, "d2h") >= there && busy(&b, "d2h") <= there + 2 * head);
  CHECK(busy(&b, "h2d") >= busy(&b, "d2h") / 2 && busy(&b, "h2d") <= 2 * busy(&b, "d2h"));
  bed_close(&b);
}

// What is read again within `ahead` + 1 steps stays, and more stays the larger `ahead` is: a larger one is not slower. Behind
// the last layer stand a norm and the head, which are steps only as long as they read what comes from the host.
TEST(offload_keeps_activations_that_are_soon_read) {
  i64 before = INT64_MAX, bytes = INT64_MAX;
  for (u32 ahead = 0; ahead < 8; ahead++) {
    char line[64];
    snprintf(line, sizeof line, "offload=acts prefetch=%u", ahead);
    bed b = bed_open("llama2-7b:layers=4,hidden=64,heads=4,vocab=64,ffn=128", 4, true, OPTIM_SGD, "1 GB/s",
                     ", memory: 8 GiB", line);
    CHECK_MSG(b.r.period_ps <= before && busy(&b, "d2h") <= bytes,
              "prefetch=%u: %lld, before %lld; d2h %lld, before %lld", ahead, (long long)b.r.period_ps,
              (long long)before, (long long)busy(&b, "d2h"), (long long)bytes);
    before = b.r.period_ps, bytes = busy(&b, "d2h");
    bed_close(&b);
  }
  CHECK_EQ_I64(bytes, 0);
}

// A link that several devices share is as much slower; one that starts late starts late once for each copy.
TEST(offload_over_a_shared_link) {
  bed one = bed_open("mlp-xs", 4, false, OPTIM_SGD, "4 GB/s", ", memory: 8 GiB", "offload=params"),
      all = bed_open("mlp-xs", 4, false, OPTIM_SGD, "4 GB/s", ", shared: 4, memory: 8 GiB", "offload=params"),
      late =
          bed_open("mlp-xs", 4, false, OPTIM_SGD, "4 GB/s", ", start: 7 us, memory: 8 GiB", "offload=params");
  CHECK_EQ_I64(busy(&all, "h2d"), 4 * busy(&one, "h2d"));
  CHECK_EQ_I64(busy(&late, "h2d") - busy(&one, "h2d"), 8 * 7000000LL); // eight layers
  bed_close(&one), bed_close(&all), bed_close(&late);
}

// All ranks of a node share its memory.
TEST(offload_does_not_fit_in_host_memory) {
  bed b = bed_open("mlp-xs", 8, true, OPTIM_ADAM, "1 GB/s", ", memory: 40 MB", "dp=4 offload=states");
  CHECK(!sim_fits(b.p, b.m, &b.r, NULL, NULL));
  CHECK(diag_count(b.c) == 1 &&
        strstr(diag_get(b.c, 0).message, "node 0 needs 64.0 MiB of host memory for 4 ranks"));
  CHECK(sim_over_bytes(&b.r, b.m) > 0);
  bed_close(&b);
}

TEST(what_is_in_host_memory_is_copied_before_it_is_read) {
  static const char *const text[] = {
      "func @main(%x: f32[4,4], %w: f32[4,4] weight host) -> (f32[4,4]) {\n"
      "  %v = copy %w {to=\"device\"} : f32[4,4]\n  %y = matmul %x, %v\n  return %y\n}\n",
      "func @main(%x: f32[4,4], %w: f32[4,4] weight host) -> (f32[4,4]) {\n"
      "  %y = matmul %x, %w\n  return %y\n}\n",
      "func @f(%x: f32[4,4], %w: f32[4,4]) -> (f32[4,4]) {\n  %y = matmul %x, %w\n  return %y\n}\n"
      "func @main(%x: f32[4,4], %w: f32[4,4] weight) -> (f32[4,4]) {\n"
      "  %v = copy %w {to=\"host\"} : f32[4,4]\n  %y = call @f(%x, %v)\n  return %y\n}\n",
      "func @main(%x: f32[4,4], %w: f32[4,4] weight host) -> (f32[4,4]) {\n" // from host memory to host memory
      "  %u = copy %w {to=\"host\"} : f32[4,4]\n  %v = copy %u {to=\"device\"} : f32[4,4]\n"
      "  %y = matmul %x, %v\n  return %y\n}\n"};
  for (u32 k = 0; k < COUNT_OF(text); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = ir_parse(c, sym_of(c, "p"), text[k], strlen(text[k]));
    CHECK_MSG(p != NULL, "%s", diag_render(c, a));
    REQUIRE(p != NULL);
    CHECK_MSG(plan_validate(p) == !k, "%u: %s", k, diag_render(c, a));
    CHECK(!k || (diag_count(c) == 1 && strstr(diag_get(c, 0).message, "which lies in host memory")));
    strbuf b = {.a = a};
    ir_print(p, &b);
    prog *again = ir_parse(c, sym_of(c, "again"), sb_str(&b), strlen(sb_str(&b)));
    strbuf twice = {.a = a};
    if (CHECK_MSG(again != NULL, "%s", diag_render(c, a))) ir_print(again, &twice), prog_free(again);
    CHECK(!strcmp(sb_str(&b), sb_str(&twice)));
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

// Accumulators begin on the device: each microbatch sends its gradients, and fetches those of the one before. The update
// fetches the last ones, but for the layer that was the last, and states. On the host it has weights brought and sends them
// back; gradients that ranks sum come to the device for that, and go back as far as the rank has states.
TEST(offload_fetches_gradients_that_there_are) {
  static const struct {
    const char *line;
    i64 grads, stays, states, weights; // on a rank, in halves of a layer
    i64 sums;                          // before an update on the host
  } row[] = {{"dp=1", 16, 2, 32, 16, 0},
             {"dp=2 zero=0", 16, 2, 32, 16, 16},
             {"dp=2 zero=1", 16, 2, 16, 8, 8},
             {"dp=2 zero=2", 8, 1, 16, 8, 0},
             {"pp=2", 8, 2, 16, 8, 0}};
  const i64 half_ps = 512 * 512 * 4 / 2 * (i64)PS_A_BYTE;
  for (u32 k = 0; k < COUNT_OF(row) * 3 * 2; k++) {
    const u32 j = k / 6;
    const i64 mb = 1 << k % 3, all = mb * row[j].grads;
    const bool host = k / 3 & 1;
    char line[128];
    snprintf(line, sizeof line, "%s mb=%lld prefetch=0 offload=grads+states%s", row[j].line, (long long)mb,
             host ? " update=host" : "");
    bed b = bed_open("mlp-xs:layers=8", 16, true, OPTIM_ADAM, "1 GB/s",
                     ", memory: 8 GiB, memory-bandwidth: 1e9 GB/s", line);
    i64 out = all - row[j].stays + row[j].states, in = out;
    if (host) out = all + row[j].sums + row[j].weights;
    if (host) in = all - (row[j].sums ? 0 : row[j].grads) + row[j].weights;
    CHECK_MSG(about(busy(&b, "d2h"), out * half_ps) && about(busy(&b, "h2d"), in * half_ps),
              "%s: %.2f halves out, %.2f in", line, (double)busy(&b, "d2h") / (double)half_ps,
              (double)busy(&b, "h2d") / (double)half_ps);
    bed_close(&b);
  }
}

// ---- shared weights -----------------------------------------------------------------------------------------
// Where layers share weights, main calls each of them itself, and all add to one sum.
static const char *const shared[] = {"tests/albert.heddle", "tests/norm.heddle"};
static const char *const shared_line[] = {"mb=2 offload=grads",
                                          "mb=4 offload=params+acts",
                                          "mb=2 recompute=full offload=params+grads+acts",
                                          "dp=2 zero=2 mb=2 offload=grads",
                                          "pp=2 mb=2 offload=grads+acts",
                                          "pp=2 mb=4 schedule=interleaved v=2 offload=grads",
                                          "pp=2 mb=4 schedule=zb-h1 offload=params+grads+acts"};

static bool is_refused(const bed *b, prog *p) {
  const u32 had = diag_count(b->c);
  const bool refused = !plan_validate(p) && diag_get(b->c, had).id == E_COVERAGE;
  diag_truncate(b->c, had);
  prog_free(p);
  return refused;
}

// The operand of a type that a call takes over: in these models at most one is. ~0u: none.
static u32 taken_over(const func_info *m, const instr *call, type t) {
  for (u32 o = 0; o < instr_nopd(m, call); o++)
    if (opd_donated(m, call, o) && val(m, opd_of(m, call, o))->ty.i == t.i) return o;
  return ~0u;
}

// main again, but what call k adds to operand o, which it gives back as v, it adds to zeros that nobody reads.
static prog *without(const bed *b, u32 k, u32 o, value v) {
  prog *q = prog_clone(b->p, b->c);
  const func_info *m = func_get(q, q->main);
  const func made = func_new(q, m->name, m->where);
  builder to = builder_at(q, made);
  value *map = ZNEWN(b->a, value, m->values.n);
  const value u = opd_of(m, &m->body.v[k], o);
  for (u32 j = 0; j < m->nparams; j++) {
    map[j + 1] = func_param(q, made, val(m, j + 1)->ty, val(m, j + 1)->name, m->params.v[j].r);
    func_get(q, made)->params.v[j].host = m->params.v[j].host;
  }
  for (u32 j = 0; j < m->body.n; j++) {
    const instr *i = &m->body.v[j];
    const value sum = map[u];
    to.g = i->g, to.coord = i->coord;
    if (j == k) {
      const type_info *t = val_type(q, m, u);
      const attr at[2] = {attr_t(A_dtype, t->s.t), attr_v(A_shape, t->s.dim, t->s.nd)};
      to.coord = 0;
      map[u] = emit_res(q, made, emit(&to, OP_full, attrs_of(q, at, 2), NULL, 0, &m->values.v[u].ty, 1));
      to.coord = i->coord;
    }
    emit_copy(&to, m, i, map);
    if (j == k) map[u] = map[v] = sum;
  }
  value *ret = NEWN(b->a, value, m->rets.n);
  for (u32 r = 0; r < m->rets.n; r++) ret[r] = map[m->rets.v[r]];
  func_return(q, made, ret, m->rets.n);
  q->main = made;
  return q;
}

// Operand o of call k continues what the call before made: leaves that out, and makes the call the one before once more.
static u32 mutate(const bed *b, u32 k, u32 o) {
  const func_info *m = func_get(b->p, b->p->main);
  const instr *call = &m->body.v[k];
  const value v = opd_of(m, call, o);
  const u32 def = m->values.v[v].def;
  const instr *before = def ? &m->body.v[def - 1] : NULL;
  if (!before || before->op != OP_call) return 0;
  const u32 from = taken_over(m, before, m->values.v[v].ty);
  if (from == ~0u) return 0;
  CHECK_MSG(is_refused(b, without(b, def - 1, from, v)), "without call %u", def);
  if (before->callee.i != call->callee.i || before->coord != call->coord) return 1;
  prog *q = prog_clone(b->p, b->c);
  func_info *f = func_get(q, q->main);
  f->body.v[k].origin = before->origin;
  for (u32 j = 0; j < instr_nopd(m, call); j++)
    if (!opd_donated(m, call, j)) f->opds.v[call->opd + j] = m->opds.v[before->opd + j];
  CHECK_MSG(is_refused(b, q), "call %u twice", def);
  return 2;
}

TEST(offload_sums_gradients_of_shared_weights) {
  u32 mutants = 0;
  for (u32 i = 0; i < COUNT_OF(shared) * COUNT_OF(shared_line); i++) {
    const char *line = shared_line[i / COUNT_OF(shared)];
    bed b = bed_open(shared[i % COUNT_OF(shared)], 8, true, OPTIM_SGD, "1 GB/s", ", memory: 8 GiB", line);
    const func_info *m = func_get(b.p, b.p->main);
    for (u32 k = 0; k < m->body.n; k++)
      for (u32 o = 0; m->body.v[k].op == OP_call && o < instr_nopd(m, &m->body.v[k]); o++)
        if (opd_donated(m, &m->body.v[k], o) && !(m->body.v[k].flags & INSTR_UPDATE))
          mutants += mutate(&b, k, o);
    bed_close(&b);
  }
  CHECK_MSG(mutants >= 100, "%u", mutants);
}
