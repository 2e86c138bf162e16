// offload.c - memory of plans that offload, against a replay of their timelines: a buffer is there from the start of what
// makes it (of a copy back, the copy) to the end of the last that reads it (of what leaves, the copy), in time, not in the order of
// issue in which it is counted. No rank may hold more at any moment than what is said. And what the streams of a timeline move,
// against the sizes of what the plan keeps in host memory. SEED=n runs one plan.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <stdlib.h>

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

typedef struct {
  u64 rng;
  bool half; // weights are f16
  ctx *c;
  arena *a;
  prog *src, *d, *flat; // flat: d without calls
  planner *pl;
  plan *pn;
  machine *m;
  cost_model *k;
  sim_result r, timed; // of d; of flat, with a timeline
  const char *told;
} bed;

// ---- random plans -----------------------------------------------------------------------------------------
static const char *const models[] = {"gpt2:layers=%u,hidden=32,heads=2,vocab=64",
                                     "mlp-xs:layers=%u,hidden=32",
                                     "llama2-7b:layers=%u,hidden=32,heads=2,vocab=64,ffn=64",
                                     "moe-8x125m:layers=%u,hidden=32,heads=2,experts=2,vocab=64"};
static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved", "bfs"};
static const char *const links[] = {"0.05 GB/s", "1 GB/s", "16 GB/s", "1000 GB/s"};

static const char *random_line(bed *b) {
  static const char *const words[] = {"params", "grads", "states", "acts"};
  const u32 pp = 1 + pick(&b->rng, 2), dp = 1 + pick(&b->rng, 2), mb = 1u << pick(&b->rng, 4),
            set = 1 + pick(&b->rng, 15), s = pick(&b->rng, COUNT_OF(schedules));
  strbuf l = {.a = b->a};
  sb_fmt(&l, "dp=%u pp=%u mb=%u prefetch=%u", dp, pp, mb, pick(&b->rng, 4));
  // What a send on a stream of its own still reads is let go when it is issued, with offload and without: none is here.
  if (pp > 1) sb_fmt(&l, " overlap=none schedule=%s%s", schedules[s], s > 2 ? " v=2" : "");
  if (dp > 1) sb_fmt(&l, " zero=%u", pick(&b->rng, 4));
  if (!pick(&b->rng, 3)) sb_put(&l, " recompute=full");
  const char *sep = " offload=";
  for (u32 k = 0; k < COUNT_OF(words); k++)
    if (set >> k & 1) sb_fmt(&l, "%s%s", sep, words[k]), sep = "+";
  if (set >> 2 & 1 && pick(&b->rng, 2)) sb_put(&l, " update=host");
  b->half = set >> 2 & 1 &&
            pick(&b->rng, 2); // the host updates f16 with master copies, and sums of gradients may be f32
  if (b->half && pick(&b->rng, 2)) sb_put(&l, " grads=f32");
  return sb_str(&l);
}

static bool bed_open(bed *b, u64 seed) {
  *b = (bed){.rng = seed * 2654435761u + 17, .c = ctx_new(), .a = arena_new()};
  const char *model = arena_printf(b->a, models[pick(&b->rng, COUNT_OF(models))], 4u),
             *link = links[pick(&b->rng, COUNT_OF(links))], *line = random_line(b);
  b->told = arena_printf(b->a, "seed %llu: %s, %s, %s", (unsigned long long)seed, model, link, line);
  const front_opts how = {.batch = 16, .seq = 8, .loss = true, .t = b->half ? DT_F16 : DT_F32};
  b->src = front_load(b->c, model, &how);
  REQUIRE(b->src && pass_loss(b->src));
  const char *text =
      arena_printf(b->a,
                   "name: m\ndevices:\n  d: {rate: {f16: 1 TFLOP/s, f32: 1 TFLOP/s}, vector: 100 GFLOP/s, "
                   "memory: 64 GiB, bandwidth: 100 GB/s, "
                   "launch: 1 us, allocation: 1 B}\nnodes: {devices: 4 d, link: switch 1000 "
                   "GB/s, host: {bandwidth: %s, memory: 8 GiB, memory-bandwidth: 20 GB/s}}\n",
                   link);
  b->m = machine_parse(b->c, b->a, sym_of(b->c, "m.yaml"), text, strlen(text));
  CHECK_MSG(b->m != NULL, "%s", diag_render(b->c, b->a));
  REQUIRE(b->m != NULL);
  b->k = cost_model_new(b->c, b->a, b->m, NULL);
  b->pl = planner_new(b->src);
  hybrid_opts h = {
      .s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM), .k = b->k};
  h.optim.master = b->half;
  b->pn = policy_hybrid(b->pl, b->a, &h);
  b->d = b->pn ? plan_apply(b->pl, b->pn, b->k) : NULL;
  if (!b->d) return false;
  const bool ok =
      plan_validate(b->d) && sim_run(b->c, b->a, b->d, b->k, &(sim_opts){.mode = SIM_FOLDED}, &b->r);
  b->flat = prog_clone(b->d, b->c);
  pass_inline(b->flat);
  const sim_opts timed = {.mode = SIM_FLAT, .timeline = true};
  return CHECK_MSG(ok && sim_run(b->c, b->a, b->flat, b->k, &timed, &b->timed), "%s: %s", b->told,
                   diag_render(b->c, b->a));
}

static void bed_close(bed *b) {
  if (b->flat) prog_free(b->flat);
  if (b->d) prog_free(b->d);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

// ---- the replay -------------------------------------------------------------------------------------------
typedef struct {
  i64 from, to, bytes;
} buffer;
typedef VEC(u32) numbers;
typedef struct {
  bed *b;
  u32 rank;
  bool host; // what is asked for is what lies in host memory
  const func_info *f;
  i64 *start, *end; // by instruction, from 0
  numbers *of;      // by value: buffers that it lies in
  u32 *last;        // by value: the last instruction that reads it or a view of it, + 1
  VEC(buffer) buffers;
} replay;
enum { FOR_GOOD = INT32_MAX };
#define NEVER INT64_MAX

static void take_event(void *arg, const trace_event *e) {
  replay *x = arg;
  const trace_source *t = x->b->timed.timeline;
  if (e->lane / t->nstreams != x->rank) return;
  const u32 k = t->kind[e->kind].instr - 1;
  x->start[k] = e->start_ps, x->end[k] = e->start_ps + e->dur_ps;
}

static i64 bytes_here(const replay *x, value v) {
  const type_info *t = val_type(x->b->flat, x->f, v);
  i64 dim[DIMS_MAX], n = dtype_bytes(t->s.t);
  const int member = group_member(x->b->flat->sp, t->g, x->rank);
  coords at;
  if (t->tuple || member < 0) return 0;
  coords_of(x->b->flat->sp, t->g, (u32)member, NULL, &at);
  layout_local_dims(x->b->flat->sp, t->lay, t->s.nd, t->s.dim, &at, dim);
  for (u32 d = 0; d < t->s.nd; d++) n *= dim[d];
  return n;
}

static bool is_view(const instr *i) { return op_row_of(i->op)->flags & (OPF_META | OPF_VIEW); }

static bool to_host(const replay *x, const instr *i) {
  if (i->flags & INSTR_HOST) return true;
  const attr *to = i->op == OP_copy ? attr_get(attrs_get(x->b->flat, i->at), A_to) : NULL;
  return to && !strcmp(sym_str(x->b->c, to->u.s), "host");
}

// What a tuple that is unpacked was packed from: result r is that value; 0: it is no such result.
static value packed(const replay *x, const instr *i, u32 r) {
  const u32 def = i->op == OP_unpack ? x->f->values.v[opd_of(x->f, i, 0)].def : 0;
  const instr *all = def ? &x->f->body.v[def - 1] : NULL;
  return all && all->op == OP_pack ? opd_of(x->f, all, r) : 0;
}

// The last reader of every value, through its views.
static void find_last(replay *x) {
  for (u32 r = 0; r < x->f->rets.n; r++) x->last[x->f->rets.v[r]] = FOR_GOOD;
  for (u32 k = x->f->body.n; k-- > 0;) {
    const instr *i = &x->f->body.v[k];
    u32 until = is_view(i) ? 0 : k + 1;
    bool apart = false;
    for (u32 r = 0; r < i->nres; r++) {
      const value v = packed(x, i, r);
      if (v) x->last[v] = MAX(x->last[v], x->last[i->res + r]), apart = true;
    }
    if (apart) continue;
    for (u32 r = 0; r < i->nres && is_view(i); r++) until = MAX(until, x->last[i->res + r]);
    for (u32 o = 0; o < instr_nopd(x->f, i); o++)
      x->last[opd_of(x->f, i, o)] = MAX(x->last[opd_of(x->f, i, o)], until);
  }
}

static void new_buffer(replay *x, value v, i64 from) {
  const i64 n = bytes_here(x, v);
  if (!n) return;
  *vec_push(x->b->a, &x->of[v]) = x->buffers.n;
  *vec_push(x->b->a, &x->buffers) = (buffer){from, from, n};
}

static void read_by(replay *x, const instr *i, i64 until) {
  for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
    const numbers *in = &x->of[opd_of(x->f, i, o)];
    for (u32 q = 0; q < in->n; q++) {
      buffer *b = &x->buffers.v[in->v[q]];
      b->to = MAX(b->to, until);
    }
  }
}

// The operand whose buffer result r takes over (ops.def): of its size, read by nobody later, and donated. A communication needs
// no donation, but for a parameter.
static bool takes_over(replay *x, const instr *i, u32 r, u32 k) {
  const u32 flags = op_row_of(i->op)->flags, o = flags & OPF_MANY_RES ? r : r ? r + 1 : 0;
  if (!(flags & OPF_INPLACE) || o >= instr_nopd(x->f, i)) return false;
  const bool donated = opd_donated(x->f, i, o);
  const value v = opd_of(x->f, i, o);
  const numbers *in = &x->of[v];
  if (in->n != 1 || x->last[v] > k + 1 || x->buffers.v[in->v[0]].bytes != bytes_here(x, i->res + r))
    return false;
  if (!donated && (!(flags & OPF_COMM) || x->buffers.v[in->v[0]].from < 0)) return false;
  for (u32 w = 1; w < x->f->values.n; w++)
    for (u32 q = 0; q < x->of[w].n; q++)
      if (x->of[w].v[q] == in->v[0] && x->last[w] > k + 1) return false;
  *vec_push(x->b->a, &x->of[i->res + r]) = in->v[0];
  return true;
}

static void run_instr(replay *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  for (u32 r = 0; r < i->nres; r++) {
    const value v = i->res + r;
    if (packed(x, i, r))
      x->of[v] = x->of[packed(x, i, r)];
    else if (is_view(i))
      for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
        const numbers *in = &x->of[opd_of(x->f, i, o)];
        for (u32 q = 0; q < in->n && bytes_here(x, v); q++) *vec_push(x->b->a, &x->of[v]) = in->v[q];
      }
    else if (to_host(x, i) == x->host && !takes_over(x, i, r, k))
      new_buffer(x, v, x->start[k]);
    for (u32 q = 0; q < x->of[v].n && !is_view(i); q++) {
      buffer *b = &x->buffers.v[x->of[v].v[q]];
      b->to = MAX(b->to, x->end[k]);
    }
  }
  if (!is_view(i)) read_by(x, i, x->end[k]);
}

static void begin_params(replay *x) {
  for (u32 k = 0; k < x->f->nparams; k++)
    if (x->f->params.v[k].host == x->host) new_buffer(x, k + 1, -1);
  const func_info *m =
      func_get(x->b->d, x->b->d->main); // a call that is given one frees it, what it became does not say
  bool *given = ZNEWN(x->b->a, bool, m->values.n);
  for (u32 k = 0; k < m->body.n; k++)
    for (u32 o = 0; o < instr_nopd(m, &m->body.v[k]); o++)
      if (opd_donated(m, &m->body.v[k], o)) given[opd_of(m, &m->body.v[k], o)] = true;
  for (u32 k = 0; k < x->f->nparams; k++)
    for (u32 q = 0; q < x->of[k + 1].n && !given[k + 1]; q++) x->buffers.v[x->of[k + 1].v[q]].to = NEVER;
}

typedef struct {
  i64 at, change;
} change;
static int by_time(const void *p, const void *q) {
  const change *x = p, *y = q;
  return x->at != y->at           ? (x->at < y->at ? -1 : 1)
         : x->change != y->change ? (x->change < y->change ? -1 : 1)
                                  : 0;
}

static i64 peak_of(const replay *x) {
  change *v = NEWN(x->b->a, change, 2 * x->buffers.n + 1);
  u32 n = 0;
  i64 now = 0, most = 0;
  for (u32 k = 0; k < x->buffers.n; k++) {
    const buffer *b = &x->buffers.v[k];
    v[n++] = (change){b->from, b->bytes};
    if (b->to != NEVER) v[n++] = (change){b->to, -b->bytes};
  }
  qsort(v, n, sizeof *v, by_time);
  for (u32 k = 0; k < n; k++) now += v[k].change, most = MAX(most, now);
  return most;
}

// What rank holds at most, there or on the device: in time, or by the numbers of instructions, as it is counted.
static i64 replayed(bed *b, u32 rank, bool host, bool in_time) {
  replay x = {.b = b, .rank = rank, .host = host, .f = func_get(b->flat, b->flat->main)};
  const u32 n = x.f->body.n + 1, nv = x.f->values.n;
  x.start = NEWN(b->a, i64, n), x.end = NEWN(b->a, i64, n);
  x.of = ZNEWN(b->a, numbers, nv), x.last = ZNEWN(b->a, u32, nv);
  for (u32 k = 0; k < n; k++) x.start[k] = 2 * (i64)k, x.end[k] = 2 * (i64)k + 1;
  const trace_source *t = b->timed.timeline;
  if (in_time) t->play(t, b->a, 0, t->nranks * t->nstreams, take_event, &x);
  find_last(&x);
  begin_params(&x);
  for (u32 k = 0; k < x.f->body.n; k++) run_instr(&x, k);
  for (u32 r = 0; r < x.f->rets.n; r++)
    for (u32 q = 0; q < x.of[x.f->rets.v[r]].n; q++) x.buffers.v[x.of[x.f->rets.v[r]].v[q]].to = NEVER;
  return peak_of(&x);
}

static u32 plans, alike, same, early;
static void check_memory(bed *b) {
  for (u32 rank = 0; rank < b->r.nranks; rank++) {
    const i64 said = b->r.cls[b->r.class_of_rank[rank]].peak_bytes, counted = replayed(b, rank, false, false),
              held = replayed(b, rank, false, true);
    CHECK_MSG(held <= said, "%s: rank %u holds %lld bytes at once, and %lld are said (%lld counted)", b->told,
              rank, (long long)held, (long long)said, (long long)counted);
    const i64 there = b->r.cls[b->r.class_of_rank[rank]].host_peak_bytes,
              own = replayed(b, rank, true, false);
    CHECK_MSG(own == there, "%s: rank %u holds %lld bytes in host memory, and %lld are said", b->told, rank,
              (long long)own, (long long)there);
    plans++, early += held == said;
    if (!b->pn->host_update)
      alike++, same += counted == said; // else main calls layers, which keep what they are given
  }
}

TEST(offload_memory_is_what_is_held) {
  const char *one = getenv("SEED");
  for (u64 seed = one ? strtoull(one, NULL, 10) : 0, end = one ? seed + 1 : 150; seed < end; seed++) {
    bed b;
    if (bed_open(&b, seed)) check_memory(&b);
    bed_close(&b);
  }
  printf("  %u ranks; as many bytes in time as said on %u; in order of issue on %u of %u that update on the "
         "device\n",
         plans, early, same, alike);
  CHECK(one || (plans > 60 && same > alike / 3));
}

// ---- what a timeline says is moved --------------------------------------------------------------------------
typedef struct {
  const trace_source *t;
  sym name;
  i64 bytes, dur_ps;
  u32 n;
} moved;

static void take_copy(void *arg, const trace_event *e) {
  moved *x = arg;
  if (e->lane / x->t->nstreams || x->t->stream_name[e->lane % x->t->nstreams].i != x->name.i) return;
  x->bytes += x->t->kind[e->kind].bytes, x->dur_ps += e->dur_ps, x->n++;
}

// A link that does nothing but move bytes, each in so many ps.
TEST(offload_timelines_say_all_bytes) {
  for (u64 seed = 0; seed < 30; seed++) {
    bed b;
    const bool ok = bed_open(&b, seed);
    const double each = ok ? 1e12 / b.m->node_kind[0].host.bw : 0;
    for (u32 way = 0; ok && way < 2; way++) {
      moved x = {.t = b.timed.timeline, .name = sym_of(b.c, way ? "d2h" : "h2d")};
      x.t->play(x.t, b.a, 0, x.t->nranks * x.t->nstreams, take_copy, &x);
      const double off = (double)x.dur_ps - (double)x.bytes * each;
      CHECK_MSG(off <= x.n && off >= -(double)x.n, "%s: %lld bytes in %lld ps", b.told, (long long)x.bytes,
                (long long)x.dur_ps);
    }
    bed_close(&b);
  }
}

// ---- more prefetch ---------------------------------------------------------------------------------------------
// Copies that may run further ahead do not wait behind others that may not: a step is not slower. (To 1 in 200: orders on the
// link are not searched.)
static i64 step_of(ctx *c, arena *a, const machine *m, const char *line) {
  prog *src = front_load(c, "gpt2:layers=8,hidden=64,heads=4,vocab=1024",
                         &(front_opts){.batch = 16, .seq = 64, .loss = true});
  REQUIRE(src && pass_loss(src));
  cost_model *k = cost_model_new(c, a, m, NULL);
  planner *pl = planner_new(src);
  const hybrid_opts h = {
      .s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM), .k = k};
  plan *pn = policy_hybrid(pl, a, &h);
  prog *d = pn ? plan_apply(pl, pn, k) : NULL;
  sim_result r;
  REQUIRE(d && sim_run(c, a, d, k, &(sim_opts){.mode = SIM_FOLDED, .no_bytes = true}, &r));
  prog_free(d), planner_free(pl), prog_free(src);
  return r.makespan_ps;
}

TEST(offload_further_ahead_is_not_slower) {
  static const char *const how[] = {"interlaced", "interlaced-block", "gpipe", "1f1b"};
  static const char *const what[] = {"acts", "params", "params+grads+states+acts"};
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, "1x4 v100-32gb pcie=64GB/s hostmem=192GiB");
  REQUIRE(m != NULL);
  for (u32 k = 0; k < COUNT_OF(how) * COUNT_OF(what); k++) {
    i64 before = 0;
    for (u32 ahead = 0; ahead < 5; ahead++) {
      const char *line = arena_printf(a, "pp=4 mb=8 schedule=%s offload=%s prefetch=%u",
                                      how[k % COUNT_OF(how)], what[k / COUNT_OF(how)], ahead);
      const i64 t = step_of(c, a, m, line);
      CHECK_MSG(!before || t <= before + before / 200, "%s: %lld ps, with one less %lld", line, (long long)t,
                (long long)before);
      before = t;
    }
  }
  arena_free(a);
  ctx_free(c);
}

// A receive lets go of nothing, so what comes for a step behind it comes while the sender is still to send. And what a
// backward leaves to its W comes one layer after the other: once it came in one go, earlier with less prefetch than with more.
TEST(offload_of_split_backwards_comes_by_layers) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, "1x2 v100-32gb pcie=1GB/s hostmem=192GiB");
  REQUIRE(m != NULL);
  static const char *const what[] = {"params+acts", "grads+acts", "params+grads+states+acts"};
  for (u32 k = 0; k < COUNT_OF(what); k++) {
    i64 t[3];
    for (u32 ahead = 0; ahead < COUNT_OF(t); ahead++)
      t[ahead] =
          step_of(c, a, m,
                  arena_printf(a, "pp=2 schedule=zb-h1 overlap=none offload=%s prefetch=%u", what[k], ahead));
    CHECK_MSG(t[1] <= t[0] && t[2] <= t[1] && (k || t[2] < t[0] / 10 * 8), "%s: %lld, %lld, %lld ps", what[k],
              (long long)t[0], (long long)t[1], (long long)t[2]);
  }
  arena_free(a);
  ctx_free(c);
}
