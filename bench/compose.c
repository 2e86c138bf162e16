// compose.c - the simulator alone, composed and folded: schedules of calls and sends over functions that are
// already there, at given prices. Ends with time and memory of every rank.
#include "bench.h"
#include "sim/sim.h"

enum { RUNS = 15, LAYERS = 4, BODY = 300 };

// ---- a pipeline of stages, forward and backward, with tensor parallelism on a stream of its own -----
typedef struct {
  ctx *c;
  prog *p;
  u32 stages, micro;
  u8 pp, dp, tp;
  group *stage;
  type act;     // on the group of the call
  type *act_on; // on every stage
  func fwd, bwd;
} pipeline;

static func stage_func(pipeline *x, const char *name, u32 saved_in, u32 saved_out) {
  prog *p = x->p;
  func f = func_new(p, sym_of(x->c, name), (loc){0});
  value v = func_param(p, f, x->act, (sym){0}, ROLE_INPUT), keep[LAYERS];
  for (u32 k = 0; k < saved_in; k++) keep[k] = func_param(p, f, x->act, (sym){0}, ROLE_INPUT);
  builder b = builder_at(p, f);
  attr over = attr_x(A_over, &x->tp, 1);
  attrset at = attrs_of(p, &over, 1);
  if (saved_in) b.flags = INSTR_BACKWARD;
  for (u32 k = 0; k < BODY; k++) {
    u32 opd[2] = {v, saved_in ? keep[k / (BODY / LAYERS) % LAYERS] : v};
    bool comm = k % 25 == 24;
    b.strm = comm; // stream 1
    v = emit_res(p, f,
                 emit(&b,
                      comm    ? OP_all_reduce
                      : k % 3 ? OP_add
                              : OP_gelu,
                      comm ? at : (attrset){0}, opd, k % 3 && !comm ? 2 : 1, &x->act, 1));
    if (!saved_in && k % (BODY / LAYERS) == 0) keep[k / (BODY / LAYERS)] = v;
  }
  value rets[1 + LAYERS] = {v};
  for (u32 k = 0; k < saved_out; k++) rets[1 + k] = keep[k];
  func_return(p, f, rets, 1 + saved_out);
  return f;
}

static value send(pipeline *x, builder *b, value v, u32 from, u32 to) {
  b->g = x->stage[from];
  b->strm = 2;
  v = emit_res(x->p, b->f, emit(b, OP_send, (attrset){0}, &v, 1, &x->act_on[to], 1));
  b->strm = 0;
  return v;
}

// 1F1B as the list of what every stage does next, merged by what is ready.
static void emit_schedule(pipeline *x, builder *b, value in) {
  u32 s = x->stages, m = x->micro;
  value *act = calloc((size_t)(s + 1) * m, sizeof *act), *grad = calloc((size_t)(s + 1) * m, sizeof *grad);
  value(*saved)[LAYERS] = calloc((size_t)s * m, sizeof *saved);
  u32 *nf = calloc(s, sizeof *nf), *nb = calloc(s, sizeof *nb);
  for (u32 k = 0; k < m; k++) act[k] = in;
  for (u64 left = (u64)2 * s * m; left;)
    for (u32 k = 0; k < s; k++) {
      u32 warm = MIN(s - k, m), f = nf[k], w = nb[k];
      bool back = w < m && (f == m || f - w >= warm) && w < f;
      type res[1 + LAYERS];
      u32 opd[1 + LAYERS];
      for (u32 j = 0; j <= LAYERS; j++) res[j] = x->act_on[k];
      b->g = x->stage[k];
      if (back) {
        value dy = k + 1 < s ? grad[(size_t)k * m + w] : act[(size_t)s * m + w];
        if (!dy) continue;
        opd[0] = dy | OPD_DONATED;
        for (u32 j = 0; j < LAYERS; j++) opd[1 + j] = saved[(size_t)k * m + w][j] | OPD_DONATED;
        u32 i = emit(b, OP_call, (attrset){0}, opd, 1 + LAYERS, res, 1);
        func_get(x->p, b->f)->body.v[i - 1].callee = x->bwd;
        value dx = emit_res(x->p, b->f, i);
        if (k) grad[(size_t)(k - 1) * m + w] = send(x, b, dx, k, k - 1);
        nb[k]++;
        left--;
      } else if (f < m && act[(size_t)k * m + f] && f - w < warm) {
        opd[0] = act[(size_t)k * m + f];
        u32 i = emit(b, OP_call, (attrset){0}, opd, 1, res, 1 + LAYERS);
        func_get(x->p, b->f)->body.v[i - 1].callee = x->fwd;
        value y = emit_res(x->p, b->f, i);
        for (u32 j = 0; j < LAYERS; j++) saved[(size_t)k * m + f][j] = y + 1 + j;
        act[(size_t)(k + 1) * m + f] = k + 1 < s ? send(x, b, y, k, k + 1) : y;
        nf[k]++;
        left--;
      }
    }
  free(act);
  free(grad);
  free(saved);
  free(nf);
  free(nb);
}

static pipeline pipeline_new(u32 stages, u32 data, u32 tensor, u32 micro) {
  pipeline x = {.c = ctx_new(), .stages = stages, .micro = micro};
  prog *p = x.p = prog_new(x.c);
  x.pp = axis_add(p->sp, sym_of(x.c, "pp"), stages, false);
  x.dp = axis_add(p->sp, sym_of(x.c, "dp"), data, false);
  x.tp = axis_add(p->sp, sym_of(x.c, "tp"), tensor, false);
  mesh m = mesh_add(p->sp, sym_of(x.c, "m"), (u8[]){x.pp, x.dp, x.tp}, 3, 0, NULL);
  stream_of(p, sym_of(x.c, "tp"));
  stream_of(p, sym_of(x.c, "pp"));
  shape s = {.t = DT_F16, .nd = 3, .dim = {data * 4, 2048, 2048}};
  layout l = data > 1 ? layout_with_split(p->sp, (layout){0}, x.dp, 0, 4) : (layout){0};
  x.act = type_tensor(p, &s, l, (group){0});
  x.stage = malloc(stages * sizeof *x.stage);
  x.act_on = malloc(stages * sizeof *x.act_on);
  for (u32 k = 0; k < stages; k++) {
    x.stage[k] = group_fix(p->sp, group_all(p->sp, m), x.pp, k);
    x.act_on[k] = type_tensor(p, &s, l, x.stage[k]);
  }
  x.fwd = stage_func(&x, "fwd", 0, LAYERS);
  x.bwd = stage_func(&x, "bwd", LAYERS, 0);
  func f = p->main = func_new(p, sym_of(x.c, "main"), (loc){0});
  value in = func_param(p, f, x.act_on[0], (sym){0}, ROLE_INPUT);
  builder b = builder_at(p, f);
  emit_schedule(&x, &b, in);
  func_return(p, f, &in, 1);
  return x;
}

static void pipeline_free(pipeline *x) {
  prog_free(x->p);
  ctx_free(x->c);
  free(x->stage);
  free(x->act_on);
}

static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  (void)arg, (void)p, (void)g;
  ps[0] = 1000000 + 1000 * (i64)(i - f->body.v);
  return 1;
}

// ---- figures -----------------------------------------------------------------------------------------
static double run_ms(const pipeline *x, sim_opts o, sim_result *out, double *mb) {
  double ms[RUNS];
  o.cost = price;
  for (u32 k = 0; k < RUNS; k++) {
    arena *a = arena_new();
    double start = bench_ms();
    if (!sim_run(x->c, a, x->p, NULL, &o, out)) abort();
    ms[k] = bench_ms() - start;
    *mb = (double)arena_bytes(a) / 1e6;
    arena_free(a);
  }
  return bench_fastest(ms, RUNS);
}

int main(void) {
  sim_result r;
  double mb;
  pipeline xl = pipeline_new(2, 2, 4, 32);
  sim_opts both = {.mode = SIM_FOLDED, .peak_only = true}, time = {.mode = SIM_FOLDED, .no_bytes = true};
  bench_add((bench_row){"simulator alone, composed: 2 stages, 32 microbatches, bodies of 300", "ms",
                        run_ms(&xl, both, &r, &mb), 0, "", false});
  bench_add((bench_row){"simulator alone, flat: the same", "ms",
                        run_ms(&xl, (sim_opts){.peak_only = true}, &r, &mb), 0, "", false});
  pipeline_free(&xl);
  pipeline big = pipeline_new(16, 8, 8, 512);
  bench_add((bench_row){"simulator alone, composed: 1,024 ranks, 31,744 calls and sends, time", "ms",
                        run_ms(&big, time, &r, &mb), 0, "", false});
  bench_add((bench_row){"simulator alone, composed: the same, time and bytes", "ms",
                        run_ms(&big, both, &r, &mb), 0, "", false});
  bench_add((bench_row){"simulator alone, composed: its memory", "MB", mb, 64, "", false});
  pipeline_free(&big);
  return bench_end();
}
