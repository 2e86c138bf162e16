// mixed.c - unequal shares on machines of several kinds of devices: random plans with shares of the batch, of
// tensor splits and of layers, said or `auto`, must compute what one device computes, be valid, deal every
// sample to one rank, and be simulated alike in every way. `auto` is held against enumeration, against
// machines twice as fast and in another order; what a search tells of kinds against the simulated winner.
// PLANS=n makes more, SEED=n one.
#include "front/front.h"
#include "plans.h"
#include "search/search.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static const struct {
  const char *name, *spec;
  i64 batch, seq;
  dtype t;
} models[] = {
    {"mlp", "mlp-xs:layers=5,hidden=24", 24, 0, DT_NONE},
    {"gpt", "gpt2:layers=4,hidden=24,heads=6,vocab=36,positions=6,ffn=36", 12, 6, DT_NONE},
    {"llama", "llama2-7b:layers=3,hidden=24,heads=6,kv_heads=3,head_dim=4,ffn=36,vocab=24", 12, 6, DT_F16},
    {"t5", "t5-small:layers=2,hidden=12,heads=6,head_dim=2,ffn=24,vocab=24", 12, 6, DT_NONE},
    {"bert", "bert-base:layers=3,hidden=12,heads=6,vocab=18,positions=6,ffn=24", 12, 6, DT_NONE},
    {"moe", "moe-8x125m:layers=2,hidden=12,heads=6,vocab=12,experts=4,ffn=24,positions=6", 12, 6, DT_NONE},
    {"resnet", "resnet50:hidden=4,vocab=12", 6, 16, DT_NONE},
    {"vit", "vit-base:layers=3,hidden=12,heads=6,vocab=12,ffn=24", 6, 32, DT_NONE},
    {"gnmt", "gnmt:layers=3,hidden=12,vocab=24", 12, 3, DT_NONE},
    {"batchnorm", "examples/batchnorm.heddle", 24, 0, DT_NONE},
};
enum { EACH = 21, MOST_KINDS = 4 }; // plans of every model

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }
static u32 wanted(u32 n) { return getenv("PLANS") ? (u32)atoi(getenv("PLANS")) : n; }

// ---- machines ---------------------------------------------------------------------------------------------
typedef struct {
  u32 kinds, nodes;
  u32 gflops[MOST_KINDS], gbytes[MOST_KINDS], mib[MOST_KINDS], us[MOST_KINDS];
  u32 devices[12][2], kind[12][2]; // of a node: so many of one kind, then so many of another
  u32 latency;                     // 0: nothing takes longer than its work
} figures;

static u32 ranks_of(const figures *x) {
  u32 n = 0;
  for (u32 i = 0; i < x->nodes; i++) n += x->devices[i][0] + x->devices[i][1];
  return n;
}

// From 2 to 4 kinds (or one), from 2 to 12 ranks, nodes of one kind or of two.
static figures random_figures(u64 *rng, u32 kinds, bool latency) {
  figures x = {.kinds = kinds, .latency = latency};
  for (u32 k = 0; k < kinds; k++) {
    x.gflops[k] = 1u << pick(rng, 4), x.gflops[k] = x.gflops[k] * 10 + pick(rng, 7);
    x.gbytes[k] = 3 + pick(rng, 30), x.mib[k] = 64 + pick(rng, 200), x.us[k] = latency ? pick(rng, 4) : 0;
  }
  const u32 most = kinds + pick(rng, 13 - kinds);
  for (u32 k = 0; k < kinds || (x.nodes < 12 && ranks_of(&x) < most); k++) {
    const u32 left = MAX(most, ranks_of(&x) + 1) - ranks_of(&x), i = x.nodes;
    x.kind[i][0] = k < kinds ? k : pick(rng, kinds), x.kind[i][1] = pick(rng, kinds);
    x.devices[i][0] = 1 + pick(rng, MIN(left, 3));
    if (left > x.devices[i][0] + kinds && chance(rng, 3)) x.devices[i][1] = 1;
    if (ranks_of(&x) + (k < kinds ? kinds - 1 - k : 0) > 12) x.devices[i][0] = 1, x.devices[i][1] = 0;
    x.nodes++;
  }
  return x;
}

static const char *machine_text(const figures *x, u32 faster, bool backwards, arena *a) {
  strbuf b = {.a = a};
  sb_put(&b, "name: mixed\ndevices:\n");
  for (u32 k = 0; k < x->kinds; k++) {
    const u32 f = x->gflops[k] * faster;
    sb_fmt(
        &b,
        "  k%u: {rate: {f16: %u GFLOP/s, f32: %u GFLOP/s}, vector: %u GFLOP/s, memory: %u MiB, bandwidth: %u "
        "GB/s, launch: %u us}\n",
        k, 2 * f, f, f, x->mib[k], x->gbytes[k] * faster, x->us[k]);
  }
  sb_put(&b, "nodes:\n");
  for (u32 n = 0; n < x->nodes; n++) {
    const u32 i = backwards ? x->nodes - 1 - n : n, us = x->latency ? 5 : 0;
    sb_fmt(&b, "  - {count: 1, devices: %u k%u", x->devices[i][0], x->kind[i][0]);
    if (x->devices[i][1]) sb_fmt(&b, " + %u k%u", x->devices[i][1], x->kind[i][1]);
    sb_fmt(&b,
           ", link: {kind: switch, bandwidth: %u MB/s, start: %u us, step: 0 us}, host: {bandwidth: %u MB/s, "
           "start: "
           "%u us, step: 0 us}, nics: %u Mb/s}\n",
           2000 * faster, us, 2000 * faster, us, 4000 * faster);
  }
  sb_fmt(&b, "fabric: {efficiency: 1, start: %u us, step: %u us}\n", x->latency ? 10 : 0, x->latency ? 2 : 0);
  return sb_str(&b);
}

static machine *machine_of(ctx *c, arena *a, const char *text) {
  machine *m = machine_parse(c, a, sym_of(c, "mixed"), text, strlen(text));
  CHECK_MSG(m, "%s\n%s", diag_render(c, a), text);
  REQUIRE(m);
  return m;
}

static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }
static const cost_opts costs = {.extrapolated = quiet};

// ---- models -----------------------------------------------------------------------------------------------
typedef struct {
  u32 index;
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  u32 calls;
} model;

static model open_model(u32 index) {
  model m = {.index = index, .c = ctx_new(), .a = arena_new()};
  const bool file = strstr(models[index].spec, ".heddle"); // says its batch and loss itself
  const front_opts o = {
      .batch = file ? 0 : models[index].batch, .seq = models[index].seq, .loss = !file, .t = models[index].t};
  m.src = front_load(m.c, models[index].spec, &o);
  REQUIRE(m.src && (file || pass_loss(m.src)));
  for (u32 f = 1; f < m.src->funcs.n; f++) // constants as random as weights
    for (u32 k = 0; k < m.src->funcs.v[f]->nparams; k++) m.src->funcs.v[f]->params.v[k].data = 0;
  m.pl = planner_new(m.src);
  const func_info *f = func_get(m.src, m.src->main);
  for (u32 i = 0; i < f->body.n; i++) m.calls += f->body.v[i].op == OP_call;
  return m;
}

static void close_model(model *m) {
  planner_free(m->pl);
  prog_free(m->src);
  arena_free(m->a);
  ctx_free(m->c);
}

// ---- strategies -------------------------------------------------------------------------------------------
static choice_value word_of(choice_id id, const char *word) {
  choice_value x;
  REQUIRE(choice_read(id, NULL, word, strlen(word), &x));
  return x;
}

// n numbers from 1 that add up to `sum`.
static choice_value parts_of(u64 *rng, u32 n, u32 sum, arena *a) {
  u32 *v = NEWN(a, u32, n);
  for (u32 k = 0; k < n; k++) v[k] = 1;
  for (u32 left = sum - n; left > 0; left--) v[pick(rng, n)]++;
  return (choice_value){.nparts = n, .part = v};
}

// The same as shares, which have no common factor.
static choice_value shares_in(u64 *rng, u32 n, u32 sum, arena *a) {
  strbuf b = {.a = a};
  const choice_value v = parts_of(rng, n, sum, a);
  choice_value x;
  choice_print(CHOICE_dp_shares, v, &b);
  REQUIRE(choice_read(CHOICE_dp_shares, a, b.v, b.n, &x));
  return x;
}

static u32 divisor(u64 *rng, u32 n, u32 least) { // of n, at least so much; 0: there is none
  u32 v[64], k = 0;
  for (u32 d = MAX(least, 1); d <= n && k < 64; d++)
    if (n % d == 0) v[k++] = d;
  return k ? v[pick(rng, k)] : 0;
}

static strategy random_strategy(const model *m, u32 ranks, bool train, u64 *rng, arena *a) {
  strategy s = strategy_default();
  const u32 batch = (u32)models[m->index].batch;
  do {
    s.dp.n = 1 + pick(rng, 4), s.tp.n = 1 + pick(rng, 3), s.pp.n = 1 + pick(rng, 3);
  } while (s.dp.n * s.tp.n * s.pp.n > ranks || s.dp.n * s.tp.n * s.pp.n == 1);
  s.mb.n = divisor(rng, batch / (chance(rng, 3) ? s.dp.n : 2 * s.dp.n), 1);
  s.mb.n = MAX(s.mb.n, 1);
  const u32 micro = batch / s.mb.n;
  if (s.dp.n > 1) {
    const u32 sum = divisor(rng, micro, s.dp.n);
    if (chance(rng, 2))
      s.dp_shares = word_of(CHOICE_dp_shares, "auto");
    else if (sum)
      s.dp_shares = shares_in(rng, s.dp.n, sum, a);
  }
  if (s.tp.n > 1) {
    if (chance(rng, 4))
      s.tp_shares = word_of(CHOICE_tp_shares, "auto");
    else if (!chance(rng, 4))
      s.tp_shares = shares_in(rng, s.tp.n, s.tp.n == 2 ? 3 : 6, a);
    s.sp.n = pick(rng, 2), s.tables.n = pick(rng, 2);
  }
  if (s.pp.n > 1) {
    if (chance(rng, 3) && 2 * s.pp.n <= m->calls) s.v.n = 2;
    s.schedule.n = pick(rng, 5), s.channels.n = pick(rng, 3), s.overlap.n = pick(rng, 3) > 0;
    if (!s.overlap.n) s.channels.n = 0;
    const u32 how = pick(rng, 4), stages = s.pp.n * s.v.n;
    if (how < 2)
      s.layers = word_of(CHOICE_layers, "auto");
    else if (how == 2 && m->calls >= stages)
      s.layers = parts_of(rng, stages, m->calls, a);
  }
  if (train && s.dp.n > 1) s.zero.n = pick(rng, 4);
  if (train) s.recompute.n = pick(rng, 3), s.bn.n = pick(rng, 2);
  return s;
}

static const char *named(arena *a, const strategy *s) {
  strbuf b = {.a = a};
  strategy_print(s, &b);
  return sb_str(&b);
}

TEST(mixed_shares_are_reduced) {
  static const char *const said[][2] = {
      {"4/2", "2/1"}, {"3/3", "1/1"}, {"6x4/9", "2x4/3"}, {"7", "1"}, {"5x2000", "1x2000"}};
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(said); k++) {
    strbuf b = {.a = a};
    choice_value x;
    REQUIRE(choice_read(CHOICE_tp_shares, a, said[k][0], strlen(said[k][0]), &x));
    choice_print(CHOICE_tp_shares, x, &b);
    CHECK_STR(sb_str(&b), said[k][1]);
  }
  arena_free(a);
}

// ---- what shares mean -------------------------------------------------------------------------------------
static const u32 *shares_of(const plan *pn, u32 axis) { return pn->axes[axis].shares; }

// Of every input whose first dimension is dealt out over dp: each index is on one data rank and in one
// microbatch, and every rank has its part.
static const char *samples_once(const plan *pn, const prog *p, arena *a) {
  space *sp = p->sp;
  const func_info *f = func_get(p, p->main);
  const u8 dp = axis_find(sp, sym_of(p->c, "dp")), tp = axis_find(sp, sym_of(p->c, "tp")),
           mb = axis_find(sp, sym_of(p->c, "mb"));
  const u32 n = pn->axes[1].size, nmb = mb ? axis_get(sp, mb)->size : 1;
  u32 checked = 0;
  for (u32 i = 0; i < f->nparams; i++) {
    const type_info *t = val_type(p, f, i + 1);
    if ((f->params.v[i].r != ROLE_INPUT && f->params.v[i].r != ROLE_LABEL) || t->tuple || !t->s.nd) continue;
    const lay_split *split = dp ? layout_split_of(sp, t->lay, dp) : NULL;
    if (!split || split->dim) continue;
    const i64 extent = t->s.dim[0];
    u32 *seen = ZNEWN(a, u32, extent);
    const group_info *g = group_get(sp, t->g);
    for (u32 r = 0; r < g->nranks; r++)
      for (u32 k = 0; k < nmb; k++) {
        coords at, now = {0};
        if (mb) now.at[mb] = (u16)k;
        coords_of(sp, t->g, r, &now, &at);
        if (tp && at.at[tp]) continue; // tensor ranks have copies, or parts of other dimensions
        i64 *index = NEWN(a, i64, extent);
        const i64 have = layout_index(sp, t->lay, 0, extent, &at, index);
        const u32 *share = shares_of(pn, 1);
        const bool timed = mb && layout_split_of(sp, t->lay, mb) && layout_split_of(sp, t->lay, mb)->dim == 0;
        if (!timed && k) continue;
        if (have * plan_parts(&pn->axes[1]) * (timed ? nmb : 1) != extent * (share ? share[at.at[dp]] : 1))
          return "a rank has more or less than its share";
        for (i64 x = 0; x < have; x++) seen[index[x]]++;
      }
    for (i64 x = 0; x < extent; x++)
      if (seen[x] != 1) return "a sample is on no data rank, or on two";
    checked++;
  }
  return checked || n == 1 ? NULL : "no input is dealt out";
}

// Stages cover main once, with as many calls as the plan's name says.
static const char *layers_once(const model *m, const plan *pn) {
  const func_info *f = func_get(m->src, m->src->main);
  strategy_set set;
  strategy s;
  ctx *c = ctx_new();
  const char *wrong = NULL;
  REQUIRE(strategy_parse(c, ctx_arena(c), sym_str(m->c, pn->name), &set) && strategy_one(c, &set, &s));
  u32 next = 1;
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *seg = &pn->segments[k];
    u32 calls = 0;
    if (seg->from != next || seg->to < seg->from) wrong = "stages do not follow one another";
    for (u32 i = seg->from; i <= seg->to; i++) calls += f->body.v[i - 1].op == OP_call;
    if (s.layers.nparts && (s.layers.nparts != pn->nsegments || s.layers.part[k] != calls))
      wrong = "a stage has other layers than its number says";
    next = seg->to + 1;
  }
  if (next != f->body.n + 1) wrong = "not all is in stages";
  for (u32 x = 1; x < 3; x++) { // shares as they are called
    const choice_value v = s.of[x == 1 ? CHOICE_dp_shares : CHOICE_tp_shares];
    for (u32 k = 0; shares_of(pn, x) && k < pn->axes[x].size; k++)
      if (v.nparts != pn->axes[x].size || v.part[k] != shares_of(pn, x)[k])
        wrong = "shares are called something else";
    if (choice_is(x == 1 ? CHOICE_dp_shares : CHOICE_tp_shares, v, "auto")) wrong = "auto is no number";
  }
  ctx_free(c);
  return wrong;
}

// ---- simulation -------------------------------------------------------------------------------------------
static bool same_simulation(const sim_result *x, const sim_result *y) {
  if (x->makespan_ps != y->makespan_ps || x->nranks != y->nranks || x->nstreams != y->nstreams ||
      x->peak_bytes != y->peak_bytes)
    return false;
  for (u32 r = 0; r < x->nranks; r++) {
    const u32 u = x->class_of_rank[r], v = y->class_of_rank[r];
    const size_t n = x->nstreams * sizeof(i64);
    if (x->cls[u].peak_bytes != y->cls[v].peak_bytes ||
        memcmp(x->end_ps + u * x->nstreams, y->end_ps + v * y->nstreams, n) ||
        memcmp(x->busy_ps + u * x->nstreams, y->busy_ps + v * y->nstreams, n))
      return false;
  }
  return true;
}

static u32 staged;

static const char *simulated_alike(const model *m, const plan *pn, const prog *p, cost_model *k, arena *a) {
  static const sim_mode modes[] = {SIM_FLAT, SIM_COMPOSED, SIM_FLAT_FOLDED, SIM_FOLDED};
  sim_result r[4];
  for (u32 i = 0; i < COUNT_OF(modes); i++) {
    if (!sim_run(m->c, a, p, k, &(sim_opts){.mode = modes[i]}, &r[i])) return "is not simulated";
    if (!same_simulation(&r[0], &r[i])) return "is simulated differently";
  }
  plan_probed about;
  const sim_order *order;
  sim_pipe_result by;
  u32 n;
  prog *probe = plan_probe(m->pl, pn, k, a, false, &about);
  if (!probe) return "has no probe";
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  const sim_stages *st = sim_stages_of(m->c, a, probe, k, &so, &about.pipeline);
  prog_free(probe);
  if (!st) return NULL;
  if (!plan_line(m->c, a, pn, &about.graph, &n, &order)) return "has no line";
  sim_pipe(st, a, sim_line_new(a, st, order, n), &by);
  staged++;
  if (by.makespan_ps != r[3].makespan_ps) return "takes another time by its stages";
  if (by.peak_bytes != r[3].peak_bytes) return "has other bytes by its stages";
  if (by.over_bytes != sim_over_bytes(&r[3], cost_model_machine(k))) return "fits by its stages alone";
  return NULL;
}

// ---- plans ------------------------------------------------------------------------------------------------
static u32 ran, refused, with_data, with_tensor, with_both, with_layers, with_zero[4],
    kinds_used[MOST_KINDS + 1];

static const char *verified(const model *m, const plan *pn, cost_model *k, arena *a) {
  verify_report r;
  const verify_opts o = {.seed = 11};
  if (!plan_verify(m->pl, pn, k, &o, a, &r)) return "is not verified";
  return r.passed ? NULL : "computes something else";
}

// Every message that some rank gives, and takes away every one that some rank gets: 0 if they are the same
// ones.
static u32 messages;
static u64 messages_of(const prog *p, func f, u32 rank) {
  static const attr_key keys[] = {A_gives, A_gets};
  const func_info *fi = func_get(p, f);
  u64 sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call) sum += messages_of(p, in->callee, rank);
    for (u32 k = 0; k < 2; k++) {
      const attr *at = attr_get(attrs_get(p, in->at), keys[k]);
      const char *text = at ? sym_str(p->c, at->u.s) : "";
      while (*text) { // "12 [0-4,*], 13 [4-8,*]"
        const u32 to = (u32)strtoul(text, NULL, 10);
        const char *box = strchr(text, '['), *end = box ? strchr(box, ']') : NULL;
        if (!end) return 1;
        const u64 h = hash_bytes(box, (size_t)(end - box), hash_u64(k ? to : rank, k ? rank : to));
        sum += k ? -h : h, messages++;
        text = end + 1 + strspn(end + 1, ", ");
      }
    }
  }
  return sum;
}

static const char *lowered(const prog *p) {
  const u32 n = plan_ranks(p);
  u64 sum = 0;
  for (u32 r = 0; r < n; r++) {
    prog *one = plan_lower(p, r);
    if (!one) return "has no program of a rank";
    const bool ok = ir_verify(one);
    sum += messages_of(one, one->main, r);
    prog_free(one);
    if (!ok) return "has a program of a rank that is none";
  }
  return sum ? "has messages that nobody gives or gets" : NULL;
}

// Devices of a kind in a node change places.
static const char *moved_alike(const model *m, const plan *pn, cost_model *k, u64 *rng, arena *a) {
  const machine *mach = cost_model_machine(k);
  u32 *to = NEWN(a, u32, mach->nranks);
  sim_result r[2];
  for (u32 i = 0; i < mach->nranks; i++) to[i] = i;
  for (u32 i = 0; i < 4 * mach->nranks; i++) {
    const u32 x = pick(rng, mach->nranks), y = pick(rng, mach->nranks), t = to[x];
    if (mach->dev[x].kind == mach->dev[y].kind && mach->dev[x].node == mach->dev[y].node)
      to[x] = to[y], to[y] = t;
  }
  for (u32 i = 0; i < 2; i++) {
    prog *p = plan_apply(m->pl, i ? plans_relabelled(pn, to, a) : pn, k);
    const bool ok = p && sim_run(m->c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r[i]);
    prog_free(p);
    if (!ok) return "cannot be moved to other devices";
  }
  return r[0].makespan_ps == r[1].makespan_ps && r[0].peak_bytes == r[1].peak_bytes
             ? NULL
             : "is another on equal devices";
}

static void check_plan(const model *m, const hybrid_opts *h, const plan *pn, const char *machine_is, u64 seed,
                       arena *a) {
  u64 seed_of = seed;
  prog *p = plan_apply(m->pl, pn, h->k);
  const char *wrong = p ? NULL : "cannot be applied";
  if (p && !wrong && !ir_verify(p)) wrong = "is not a program";
  if (p && !wrong && !plan_validate(p)) wrong = "is not valid";
  if (p && !wrong) wrong = samples_once(pn, p, a);
  if (p && !wrong) wrong = layers_once(m, pn);
  if (p && !wrong) wrong = simulated_alike(m, pn, p, h->k, a);
  if (p && !wrong) wrong = moved_alike(m, pn, h->k, &seed_of, a);
  if (p && !wrong) wrong = lowered(p);
  if (p && !wrong) wrong = verified(m, pn, h->k, a);
  CHECK_MSG(!wrong || !p, "%s, seed %llu, %s, %s (%s): %s\n%s\n%s", models[m->index].name,
            (unsigned long long)seed, h->train ? "training" : "inference", named(a, &h->s),
            sym_str(m->c, pn->name), wrong, diag_render(m->c, a), machine_is);
  if (!p) {
    if (getenv("SEED")) printf("%s: %s", sym_str(m->c, pn->name), diag_render(m->c, a));
    refused++;
    return;
  }
  prog_free(p);
  ran++;
  with_data += shares_of(pn, 1) != NULL, with_tensor += shares_of(pn, 2) != NULL;
  with_both += shares_of(pn, 1) && shares_of(pn, 2);
  with_layers += choice_is(CHOICE_layers, h->s.layers, "auto") && h->s.pp.n > 1;
  with_zero[h->s.zero.n] += shares_of(pn, 1) || shares_of(pn, 2);
}

static bool check_seed(const model *m, u64 seed) {
  static const u8 optims[] = {OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAFACTOR};
  u64 rng = hash_u64(seed, m->index + 1);
  arena *a = arena_new();
  const u32 kinds = 2 + pick(&rng, MOST_KINDS - 1), before = ran;
  const figures x = random_figures(&rng, kinds, true);
  const char *text = machine_text(&x, 1, false, a);
  machine *mach = machine_of(m->c, a, text);
  hybrid_opts h = {
      .train = !chance(&rng, 5), .optim = optim_default(optims[pick(&rng, 4)]), .keep_gradients = true};
  h.k = cost_model_new(m->c, a, mach, &costs);
  h.s = random_strategy(m, mach->nranks, h.train, &rng, a);
  diag_clear(m->c);
  const plan *pn = policy_hybrid(m->pl, a, &h);
  if (getenv("SEED"))
    printf("%s\n%s %s: %s\n", text, models[m->index].name, named(a, &h.s),
           pn ? sym_str(m->c, pn->name) : diag_render(m->c, a));
  diag_clear(m->c);
  if (pn) check_plan(m, &h, pn, text, seed, a);
  refused += !pn;
  kinds_used[kinds] += ran > before;
  diag_clear(m->c);
  arena_free(a);
  return ran > before;
}

TEST(mixed_plans_are_one_device) {
  const char *only = getenv("MODEL"), *one = getenv("SEED");
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    if (only && strcmp(only, models[i].name)) continue;
    model m = open_model(i);
    u32 done = 0;
    const u32 want = one ? 1 : wanted(EACH);
    for (u64 seed = one ? strtoull(one, NULL, 0) : 1; done < want && seed < 40 * EACH; seed++) {
      done += check_seed(&m, seed);
      if (one) break;
    }
    CHECK_MSG(done == want || one, "%s: %u of %u", models[i].name, done, want);
    close_model(&m);
  }
  printf("  %u plans (%u refused): %u with shares of the batch, %u of tensors, %u of both, %u with layers by "
         "time; "
         "ZeRO 0 to 3 %u %u %u %u; %u by stages; machines of 2, 3, 4 kinds %u %u %u\n",
         ran, refused, with_data, with_tensor, with_both, with_layers, with_zero[0], with_zero[1],
         with_zero[2], with_zero[3], staged, kinds_used[2], kinds_used[3], kinds_used[4]);
  if (only || one || getenv("PLANS")) return;
  CHECK_MSG(messages >= 1000, "%u messages", messages);
  CHECK(ran >= 200 && with_data >= 60 && with_tensor >= 40 && with_both >= 8 && with_layers >= 20 &&
        staged >= 100);
  for (u32 z = 0; z < 4; z++) CHECK_MSG(with_zero[z] >= 8, "ZeRO %u: %u", z, with_zero[z]);
}

// ---- auto -------------------------------------------------------------------------------------------------
static const plan *plan_of(model *m, const hybrid_opts *h, arena *a) {
  diag_clear(m->c);
  const plan *pn = policy_hybrid(m->pl, a, h);
  return pn;
}

static hybrid_opts auto_of(model *m, arena *a, const char *machine_is, u32 dp, u32 tp, u32 pp, u32 mb) {
  hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_ADAM), .s = strategy_default()};
  h.k = cost_model_new(m->c, a, machine_of(m->c, a, machine_is), &costs);
  h.s.dp.n = dp, h.s.tp.n = tp, h.s.pp.n = pp, h.s.mb.n = mb;
  if (dp > 1) h.s.dp_shares = word_of(CHOICE_dp_shares, "auto");
  if (tp > 1) h.s.tp_shares = word_of(CHOICE_tp_shares, "auto");
  if (pp > 1) h.s.layers = word_of(CHOICE_layers, "auto");
  return h;
}

TEST(mixed_auto_of_one_kind_is_equal) {
  u32 n = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 12; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 100 + i);
      figures x = random_figures(&rng, 1, true);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      static const u32 shapes[][4] = {{2, 1, 1, 1}, {3, 1, 1, 1}, {2, 1, 1, 2}, {1, 2, 1, 1},
                                      {1, 3, 1, 2}, {2, 3, 1, 1}, {3, 1, 2, 2}};
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], d[1], d[2], d[3]), e;
      h.s.layers = choice_default(CHOICE_layers), h.s.zero.n = d[0] > 1 ? pick(&rng, 4) : 0;
      e = h, e.s.dp_shares = choice_default(CHOICE_dp_shares),
      e.s.tp_shares = choice_default(CHOICE_tp_shares);
      const plan *p = plan_of(&m, &h, a), *q = plan_of(&m, &e, a);
      CHECK_MSG(!p == !q && (!p || plan_hash(m.c, p) == plan_hash(m.c, q)), "%s: %s is %s", models[i].name,
                named(a, &h.s), p ? sym_str(m.c, p->name) : "nothing");
      n += p != NULL;
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK_MSG(n >= 60, "%u", n);
}

// What was measured for training says nothing of inference, whatever was asked first.
TEST(mixed_speeds_are_of_what_is_done) {
  for (u32 i = 0; i < 2; i++) {
    arena *a = arena_new();
    u64 rng = 5;
    const figures x = random_figures(&rng, 3, true);
    const char *text = machine_text(&x, 1, false, a);
    double speed[2][2][MOST_KINDS] = {0}; // [asked second][training][kind]
    for (u32 first = 0; first < 2; first++) {
      model m = open_model(i);
      hybrid_opts h = auto_of(&m, a, text, ranks_of(&x), 1, 1, 1);
      for (u32 k = 0; k < 2; k++) {
        h.train = k == first;
        CHECK(policy_speeds(m.pl, a, &h, speed[k][h.train]));
      }
      close_model(&m);
    }
    for (u32 train = 0; train < 2; train++)
      for (u32 k = 0; k < x.kinds; k++) CHECK_CLOSE(speed[0][train][k], speed[1][train][k], 1e-12);
    arena_free(a);
  }
}

// A device that is not used may be one that cannot do it.
TEST(mixed_speeds_are_of_devices_that_are_used) {
  static const char text[] =
      "devices:\n"
      "  one: {rate: {f32: 800 GFLOP/s}, vector: 400 GFLOP/s, memory: 8 GiB, bandwidth: 160 GB/s}\n"
      "  two: {rate: {f32: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "  none: {rate: {f16: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "nodes:\n  - {count: 1, devices: 1 one + 1 two + 1 none, link: {kind: switch, bandwidth: 200 GB/s}}\n";
  model m = open_model(0);
  for (u32 dp = 2; dp <= 3; dp++) {
    const hybrid_opts h = auto_of(&m, m.a, text, dp, 1, 1, 1);
    double speed[3];
    CHECK(policy_speeds(m.pl, m.a, &h, speed) == (dp == 2));
    CHECK(dp == 3 || (speed[0] > speed[1] && speed[1] > 0));
  }
  close_model(&m);
}

// Everything twice as fast, and nothing that takes its time whatever it does: the same numbers.
TEST(mixed_auto_knows_no_unit) {
  u32 n = 0, unequal = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 10; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 200 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), false);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      static const u32 shapes[][4] = {{2, 1, 1, 1}, {3, 1, 1, 1}, {4, 1, 1, 1}, {1, 2, 1, 1}, {1, 3, 1, 1},
                                      {2, 3, 1, 1}, {2, 1, 2, 2}, {1, 1, 2, 2}, {3, 1, 2, 1}};
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      for (u32 k = 0; k < x.kinds; k++) x.gflops[k] *= 10; // of a ms, so that whole ps do not count
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], d[1], d[2], d[3]);
      const plan *p = plan_of(&m, &h, a);
      h.k = cost_model_new(m.c, a, machine_of(m.c, a, machine_text(&x, 2, false, a)), &costs);
      const plan *q = plan_of(&m, &h, a);
      CHECK_MSG(!p == !q && (!p || p->name.i == q->name.i), "%s: %s, twice as fast %s", models[i].name,
                p ? sym_str(m.c, p->name) : "", q ? sym_str(m.c, q->name) : "");
      n += p != NULL, unequal += p && (shares_of(p, 1) || shares_of(p, 2));
      arena_free(a);
    }
    close_model(&m);
  }
  printf("  %u plans on machines twice as fast, %u with unequal shares\n", n, unequal);
  CHECK(n >= 40 && unequal >= 20);
}

static int by_size(const void *x, const void *y) {
  const u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return a < b ? -1 : a > b;
}

// Nodes in the other order: every kind of device has the same shares.
TEST(mixed_order_of_nodes_is_no_matter) {
  u32 n = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 10; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 300 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 2), true);
      const u32 ranks = ranks_of(&x);
      if (ranks > models[i].batch) {
        arena_free(a);
        continue;
      }
      const plan *p[2];
      u32 share[2][MOST_KINDS][12], have[2][MOST_KINDS] = {0};
      for (u32 back = 0; back < 2; back++) {
        hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, back, a), ranks, 1, 1, 1);
        const machine *mach = cost_model_machine(h.k);
        p[back] = plan_of(&m, &h, a);
        for (u32 r = 0; p[back] && r < ranks; r++) {
          const u32 *v = shares_of(p[back], 1),
                    k = (u32)(sym_str(m.c, machine_kind_of(mach, r)->name)[1] - '0');
          share[back][k][have[back][k]++] = v ? v[r] : 1;
        }
      }
      CHECK(!p[0] == !p[1]);
      if (p[0] && p[1])
        for (u32 k = 0; k < x.kinds; k++) {
          for (u32 back = 0; back < 2; back++) qsort(share[back][k], have[back][k], sizeof(u32), by_size);
          CHECK_MSG(have[0][k] == have[1][k] && !memcmp(share[0][k], share[1][k], have[0][k] * sizeof(u32)),
                    "%s, seed %llu: %s, backwards %s", models[i].name, (unsigned long long)seed,
                    sym_str(m.c, p[0]->name), sym_str(m.c, p[1]->name));
          n++;
        }
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK_MSG(n >= 60, "%u", n);
}

// ---- auto against enumeration -----------------------------------------------------------------------------
typedef struct {
  double fixed, each;
} line;

// As balance.c says it, by other means: the busy time of one device of the kind at two sizes of the
// microbatch.
static double busy_of(model *m, const hybrid_opts *h, u32 kind, i64 batch, i64 samples, double *by,
                      arena *a) {
  const machine *mach = cost_model_machine(h->k);
  hybrid_opts one = *h;
  one.s = strategy_default(), one.s.mb.n = (u32)(batch / samples), one.s.recompute = h->s.recompute;
  plan *pn = policy_hybrid(m->pl, a, &one);
  const u32 n = func_get(m->src, m->src->main)->body.n;
  sim_busy *busy = ZNEWN(a, sim_busy, n + 1);
  u32 *rank = ZNEWN(a, u32, 1);
  while (mach->dev[*rank].kind != kind) ++*rank;
  REQUIRE(pn);
  pn->meshes[0].ranks = rank, pn->meshes[0].nranks = 1;
  REQUIRE(plan_busy(m->pl, pn, h->k, busy));
  double sum = 0;
  for (u32 i = 0; i < n; i++)
    sum += by[i] = busy[i].compute[0] + busy[i].compute[1] + busy[i].comm[0] + busy[i].comm[1];
  return sum;
}

static i64 divisor_to(i64 n, i64 most) {
  i64 d = MAX(MIN(n, most), 1);
  while (n % d) d--;
  return d;
}

// by: of every instruction of main; or NULL.
static line line_of(model *m, const hybrid_opts *h, u32 kind, line *by, arena *a) {
  const i64 batch = models[m->index].batch, micro = batch / h->s.mb.n,
            even = divisor_to(batch, micro / h->s.dp.n), less = divisor_to(batch, even / 2);
  const u32 n = func_get(m->src, m->src->main)->body.n;
  double *x = NEWN(a, double, n), *y = NEWN(a, double, n);
  line l = {0};
  busy_of(m, h, kind, batch, even, x, a), busy_of(m, h, kind, batch, less, y, a);
  for (u32 i = 0; i < n; i++) {
    double each = less < even ? (x[i] - y[i]) / (double)(even - less) : x[i] / (double)even;
    each = MIN(MAX(each, 0), x[i] / (double)even);
    l.each += each, l.fixed += x[i] - each * (double)even;
    if (by) by[i] = (line){x[i] - each * (double)even, each};
  }
  return l;
}

typedef struct {
  model *m;
  hybrid_opts h;
  const line *of; // [kind]
  u32 micro, n;
  u32 share[12];
  double least; // the least maximum of linear times
  i64 best;     // the least simulated time
} listing;

// The slowest rank, which is as slow as its slowest place.
static double slowest_of(const listing *x, const u32 *share, u32 parts) {
  const machine *mach = cost_model_machine(x->h.k);
  const strategy *s = &x->h.s;
  double most = 0;
  for (u32 r = 0; r < s->pp.n * x->n; r++) {
    const line *l = &x->of[mach->dev[r].kind];
    most = MAX(most, l->fixed + l->each * x->micro / parts * (share ? share[r % x->n] : 1));
  }
  return most;
}

static i64 time_of(listing *x, choice_value v) {
  hybrid_opts h = x->h;
  h.s.dp_shares = v;
  arena *a = arena_new();
  const plan *pn = policy_hybrid(x->m->pl, a, &h);
  prog *p = pn ? plan_apply(x->m->pl, pn, h.k) : NULL;
  sim_result r = {0};
  const bool ok = p && sim_run(x->m->c, a, p, h.k, &(sim_opts){.mode = SIM_FOLDED, .peak_only = true}, &r);
  CHECK_MSG(ok, "%s %s: %s", models[x->m->index].name, named(a, &h.s), diag_render(x->m->c, a));
  diag_clear(x->m->c);
  prog_free(p);
  arena_free(a);
  return r.makespan_ps;
}

static void enumerate(listing *x, u32 at, u32 left) {
  if (at + 1 == x->n) {
    x->share[at] = left;
    x->least = MIN(x->least, slowest_of(x, x->share, x->micro));
    const i64 t = time_of(x, (choice_value){.nparts = x->n, .part = x->share});
    x->best = MIN(x->best, t);
    return;
  }
  for (u32 k = 1; k + (x->n - 1 - at) <= left; k++) x->share[at] = k, enumerate(x, at + 1, left - k);
}

// How far `auto` was from the best of all that were simulated.
typedef struct {
  u32 n, beaten;
  double mean, worst;
  char where[160];
} excess;

static void note(excess *e, const model *m, const plan *pn, i64 t, i64 best) {
  const double more = (double)t / (double)best - 1;
  e->n++, e->beaten += more > 0, e->mean += more;
  if (more <= e->worst) return;
  e->worst = more;
  snprintf(e->where, sizeof e->where, " (%s, %s)", models[m->index].name, sym_str(m->c, pn->name));
}

static void tell(const excess *e, const char *what) {
  printf("  %s: in %u of %u something else is faster, on average by %.2f %%, at most by %.2f %%%s\n", what,
         e->beaten, e->n, 100 * e->mean / MAX(e->n, 1), 100 * e->worst, e->where);
}

TEST(mixed_auto_against_enumeration) {
  static const u32 shapes[][3] = {{2, 1, 1}, {2, 1, 2}, {3, 1, 1}, {3, 1, 2},
                                  {2, 2, 1}, {2, 2, 2}, {3, 2, 1}, {4, 1, 2}};
  excess by[2] = {0}; // without and with a pipeline
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(120) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 400 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), true);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      listing l = {.m = &m, .n = d[0], .best = INT64_MAX, .least = HUGE_VAL};
      l.h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], 1, d[1], d[2] * (i ? 1 : 2));
      l.h.s.layers = choice_default(CHOICE_layers);
      line *of = NEWN(a, line, x.kinds);
      for (u32 k = 0; k < x.kinds; k++) of[k] = line_of(&m, &l.h, k, NULL, a);
      l.of = of, l.micro = (u32)models[i].batch / l.h.s.mb.n;
      const plan *pn = plan_of(&m, &l.h, a);
      if (!pn) { // of the first ranks, which are of one kind, and do not divide
        arena_free(a);
        continue;
      }
      const double chosen = slowest_of(&l, shares_of(pn, 1), plan_parts(&pn->axes[1]));
      const i64 t = time_of(&l, l.h.s.dp_shares);
      enumerate(&l, 0, l.micro);
      CHECK_MSG(chosen <= l.least * (1 + 1e-9),
                "%s, seed %llu: %s has a slowest rank of %.0f ps, %.0f is possible", models[i].name,
                (unsigned long long)seed, sym_str(m.c, pn->name), chosen, l.least);
      note(&by[d[1] > 1], &m, pn, t, l.best);
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK(getenv("PLANS") || (by[0].n >= 20 && by[1].n >= 8));
  tell(&by[0], "dp.shares=auto without a pipeline"), tell(&by[1], "dp.shares=auto in a pipeline");
}

// Layers of stages: a call of main and what stands before it, the last with what follows. time:
// [kind][layer].
typedef struct {
  model *m;
  hybrid_opts h;
  double *time[MOST_KINDS];
  u32 share[8];
  double least;
  i64 best;
} dealing;

static void layer_times(dealing *x, u32 kind, arena *a) {
  const func_info *f = func_get(x->m->src, x->m->src->main);
  line *by = NEWN(a, line, f->body.n);
  const double samples = (double)models[x->m->index].batch / x->h.s.mb.n;
  line_of(x->m, &x->h, kind, by, a);
  double *to = x->time[kind] = ZNEWN(a, double, x->m->calls + 1);
  for (u32 i = 0, l = 0; i < f->body.n; i++) {
    to[MIN(l, x->m->calls - 1)] += by[i].fixed + by[i].each * samples;
    l += f->body.v[i].op == OP_call;
  }
}

static double slowest_stage(const dealing *x, const u32 *share) {
  const machine *mach = cost_model_machine(x->h.k);
  double most = 0;
  for (u32 q = 0, l = 0; q < x->h.s.pp.n; q++) {
    double t = 0;
    for (u32 k = 0; k < share[q]; k++) t += x->time[mach->dev[q].kind][l++];
    most = MAX(most, t);
  }
  return most;
}

static i64 time_of_layers(dealing *x, choice_value v) {
  listing l = {.m = x->m, .h = x->h};
  l.h.s.layers = v;
  return time_of(&l, choice_default(CHOICE_dp_shares));
}

static void deal_all(dealing *x, u32 at, u32 left) {
  const u32 n = x->h.s.pp.n;
  if (at + 1 == n) {
    x->share[at] = left;
    x->least = MIN(x->least, slowest_stage(x, x->share));
    x->best = MIN(x->best, time_of_layers(x, (choice_value){.nparts = n, .part = x->share}));
    return;
  }
  for (u32 k = 1; k + (n - 1 - at) <= left; k++) x->share[at] = k, deal_all(x, at + 1, left - k);
}

TEST(mixed_layers_end_together) {
  excess by = {0};
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(240) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 600 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), true);
      while (ranks_of(&x) < 3) x.devices[0][0]++;
      dealing l = {.m = &m, .best = INT64_MAX, .least = HUGE_VAL};
      l.h = auto_of(&m, a, machine_text(&x, 1, false, a), 1, 1, 2 + pick(&rng, MIN(m.calls, 3) - 1),
                    1u << pick(&rng, 3));
      for (u32 k = 0; k < x.kinds; k++) layer_times(&l, k, a);
      const plan *pn = plan_of(&m, &l.h, a);
      strategy_set set;
      strategy s;
      REQUIRE(pn && strategy_parse(m.c, a, sym_str(m.c, pn->name), &set) && strategy_one(m.c, &set, &s));
      REQUIRE(s.layers.nparts == l.h.s.pp.n);
      const double chosen = slowest_stage(&l, s.layers.part);
      const i64 t = time_of_layers(&l, l.h.s.layers);
      deal_all(&l, 0, m.calls);
      CHECK_MSG(chosen <= l.least * (1 + 1e-9),
                "%s, seed %llu: %s has a slowest stage of %.0f ps, %.0f is possible", models[i].name,
                (unsigned long long)seed, sym_str(m.c, pn->name), chosen, l.least);
      note(&by, &m, pn, t, l.best);
      arena_free(a);
    }
    close_model(&m);
  }
  tell(&by, "layers=auto");
}

// A V: the first and the last stage are on the first place, which is eight times as fast.
TEST(mixed_layers_know_the_places_of_a_file) {
  static const char text[] =
      "devices:\n"
      "  fast: {rate: {f32: 800 GFLOP/s}, vector: 400 GFLOP/s, memory: 8 GiB, bandwidth: 160 GB/s}\n"
      "  slow: {rate: {f32: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "nodes:\n  - {count: 1, devices: 1 fast + 3 slow, link: {kind: switch, bandwidth: 200 GB/s}}\n";
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *src = front_load(c, "mlp-xs:layers=44,hidden=512", &(front_opts){.batch = 2048, .loss = true});
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_SGD)};
  strategy_set set;
  h.k = cost_model_new(c, a, machine_of(c, a, text), &costs);
  REQUIRE(strategy_parse(c, a, "pp=4 v=2 mb=8 schedule=examples/zbv.csv layers=auto", &set) &&
          strategy_one(c, &set, &h.s));
  const plan *pn = policy_hybrid(pl, a, &h);
  CHECK_MSG(pn && strstr(sym_str(c, pn->name), " layers=16/2x6/16"), "%s",
            pn ? sym_str(c, pn->name) : diag_render(c, a));
  planner_free(pl);
  prog_free(src);
  ctx_free(c);
}

// All shares of tensor splits of small sums that the model can be split by.
TEST(mixed_tensor_shares_against_enumeration) {
  excess by = {0};
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(36) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 700 + i);
      figures x = random_figures(&rng, 2, true);
      const u32 n = 2;
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), 1, n, 1, 1);
      listing l = {.m = &m, .h = h, .n = n};
      const plan *pn = plan_of(&m, &h, a);
      if (!pn) { // of the first ranks, which are of one kind, and do not divide
        const machine *mach = cost_model_machine(h.k);
        CHECK_MSG(mach->dev[0].kind == mach->dev[1].kind, "%s, seed %llu: %s", models[i].name,
                  (unsigned long long)seed, diag_render(m.c, a));
        arena_free(a);
        continue;
      }
      const i64 t = time_of(&l, choice_default(CHOICE_dp_shares));
      i64 best = INT64_MAX;
      for (u32 sum = n; sum <= 12; sum++)
        for (u32 k = 1; k < sum; k++) {
          const u32 share[] = {k, sum - k};
          hybrid_opts other = h;
          other.s.tp_shares = (choice_value){.nparts = n, .part = share};
          if (gcd_i64(k, sum) > 1 || !plan_of(&m, &other, a)) continue;
          l.h = other;
          best = MIN(best, time_of(&l, choice_default(CHOICE_dp_shares)));
        }
      note(&by, &m, pn, t, best);
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK(getenv("PLANS") || by.n >= 20);
  tell(&by, "tp.shares=auto of two");
}

// ---- what a search tells of kinds -------------------------------------------------------------------------
TEST(mixed_kinds_add_up) {
  u32 told = 0, small = 0, faster = 0;
  double nearest = HUGE_VAL;
  for (u64 seed = 1; seed <= wanted(16); seed++) {
    u64 rng = hash_u64(seed, 500);
    model m = open_model((u32)(seed % 2));
    arena *a = arena_new();
    figures x = random_figures(&rng, 2 + pick(&rng, 3), !chance(&rng, 3));
    u32 want = 2 + pick(&rng, 4);
    machine *mach = machine_of(m.c, a, machine_text(&x, 1, false, a));
    want = MIN(want, mach->nranks);
    for (u32 k = 0; k < mach->nkinds; k++) mach->kind[k].usable_bytes = (i64)(100 + pick(&rng, 300)) << 10;
    search_opts o = {.train = true,
                     .batch = models[m.index].batch,
                     .optim = optim_default(OPTIM_ADAM),
                     .top = 3,
                     .ranks = want,
                     .threads = 1};
    REQUIRE(strategy_parse(m.c, a, chance(&rng, 2) ? "" : "dp.shares=* layers=* tp.shares=*", &o.space));
    search_result r;
    if (!search_run(m.c, a, m.src, mach, &costs, &o, &r) || !r.nkinds) {
      diag_clear(m.c), arena_free(a), close_model(&m);
      continue;
    }
    double work = 0;
    u32 ranks = 0;
    for (u32 k = 0; k < r.nkinds; k++) {
      const search_kind *q = &r.kinds[k];
      work += q->work, ranks += q->ranks;
      CHECK(q->peak_bytes <= q->usable_bytes && q->computes >= 0 && q->communicates >= 0);
      CHECK_MSG(q->computes + q->communicates <= 1 + 1e-9, "seed %llu: %s computes %g, communicates %g",
                (unsigned long long)seed, q->name, q->computes, q->communicates);
    }
    CHECK_CLOSE(work, 1, 1e-9);
    CHECK(ranks == want);
    if (r.spread_ps > r.point[0].time_ps)
      faster++, printf("  seed %llu: %s takes %lld ps, without waiting %lld\n", (unsigned long long)seed,
                       named(a, &r.point[0].s), (long long)r.point[0].time_ps, (long long)r.spread_ps);
    nearest = MIN(nearest, (double)r.point[0].time_ps / (double)r.spread_ps);
    for (u32 w = 0; w < MIN(r.nfit, o.top); w++) { // every rank within its own limit
      hybrid_opts h = search_hybrid(&o, &r.point[w]);
      h.k = cost_model_new(m.c, a, mach, &costs);
      const plan *pn = policy_hybrid(m.pl, a, &h);
      prog *p = pn ? plan_apply(m.pl, pn, h.k) : NULL;
      sim_result s;
      REQUIRE(p && sim_run(m.c, a, p, h.k, &(sim_opts){.mode = SIM_FLAT, .steady = true}, &s));
      CHECK(s.period_ps == r.point[w].time_ps && s.makespan_ps == r.point[w].alone_ps &&
            s.peak_bytes == r.point[w].peak_bytes);
      for (u32 q = 0; q < s.nranks; q++)
        CHECK(s.cls[s.class_of_rank[q]].peak_bytes <= machine_kind_of(mach, q)->usable_bytes);
      prog_free(p);
    }
    told++, small += r.count[SEARCH_OVER_MEMORY] > 0;
    arena_free(a);
    close_model(&m);
  }
  printf("  %u searches on mixed machines, in %u plans that were too large; %u faster than without waiting, "
         "the nearest %.2f "
         "of it\n",
         told, small, faster, nearest);
  CHECK(getenv("PLANS") || (told >= 8 && small >= 3));
}
