// plans.c - random plans. Every choice comes from one stream of random numbers, so a seed is a plan.
//
// Idea: hybrids take every option of the policies. Random plans take none of them: any dimension of any
// instruction over any axis that divides it, any cut of main, any place for any segment (several per place,
// places that overlap, the same ranks under two meshes), tasks in any order that respects who waits for whom.
// Many such plans are senseless and some are refused; those that are not must be right.
#include "plans.h"
#include "front/front.h"
#include <stdlib.h>

static const struct {
  const char *name, *spec;
  i64 batch, seq;
  dtype t; // f16 and bf16: with masters
  optimizer optim;
} models[] = {
    {"mlp", "mlp-xs:layers=4,hidden=24", 12, 0, DT_NONE, OPTIM_MOMENTUM},
    {"gpt", "gpt2:layers=3,hidden=24,heads=4,vocab=24,positions=10,ffn=36", 12, 8, DT_NONE, OPTIM_MOMENTUM},
    {"llama", "llama2-7b:layers=2,hidden=24,heads=4,kv_heads=2,head_dim=6,ffn=36,vocab=24", 12, 4, DT_F16,
     OPTIM_MOMENTUM},
    {"resnet", "resnet50:hidden=4,vocab=12", 4, 16, DT_NONE, OPTIM_MOMENTUM},
    {"t5", "t5-small:layers=2,hidden=12,heads=4,head_dim=3,ffn=24,vocab=24", 12, 4, DT_NONE, OPTIM_MOMENTUM},
    {"moe", "moe-8x125m:layers=2,hidden=12,heads=2,vocab=12,experts=4,ffn=24,positions=10", 4, 8, DT_NONE,
     OPTIM_ADAFACTOR},
    {"bert", "bert-base:layers=2,hidden=12,heads=2,vocab=24,positions=6,ffn=24", 12, 4, DT_NONE,
     OPTIM_ADAFACTOR},
    {"vit", "vit-base:layers=2,hidden=12,heads=4,vocab=12,ffn=24", 4, 32, DT_NONE, OPTIM_MOMENTUM},
    {"gnmt", "gnmt:layers=3,hidden=12,vocab=24", 12, 4, DT_NONE, OPTIM_MOMENTUM},
    {"uneven", "gpt2:layers=2,hidden=16,heads=4,vocab=17,positions=9,ffn=20", 12, 8, DT_F16, OPTIM_ADAFACTOR},
    {"unet", "tests/unet.heddle", 0, 0, DT_NONE, OPTIM_MOMENTUM},
    {"odd", NULL, 0, 0, DT_NONE, OPTIM_MOMENTUM},
    {"batchnorm", "examples/batchnorm.heddle", 0, 0, DT_NONE, OPTIM_MOMENTUM},
    {"aside", "tests/aside.heddle", 0, 0, DT_NONE, OPTIM_MOMENTUM},
    {"mbart", "mbart-large:layers=2,hidden=12,heads=4,vocab=24,positions=6,ffn=24", 12, 4, DT_NONE,
     OPTIM_MOMENTUM},
    {"swin", "swin-t:layers=7,hidden=8,heads=2,window=2,vocab=12,ffn=12", 4, 32, DT_NONE, OPTIM_MOMENTUM},
    {"evoformer",
     "alphafold2:layers=2,hidden=16,heads=2,head_dim=8,ffn=24,vocab=12,msa=2,pair=16,positions=4,recycle=3",
     4, 4, DT_NONE, OPTIM_MOMENTUM},
};

// What the models above lack: several results, a weight used on its own (regularisation, so a sum that does
// not vary in time joins one that does), one used by two instructions, dropout, a result that nothing is
// derived from, a part that depends on constants alone, a weight without gradient.
static const char odd_text[] =
    "func @block(%x: f32[12,24], %w: f32[24,24] weight, %b: f32[24] weight) -> (f32[12,24]) {\n"
    "  %a = matmul %x, %w\n"
    "  %c = add %a, %b\n"
    "  %d = tanh %c\n"
    "  %e, %m = dropout %d {ratio=0.25, seed=3}\n"
    "  return %e\n"
    "}\n"
    "func @main(%x: f32[12,24], %y: f32[12,24] label, %w: f32[24,24] weight, %b: f32[24] weight, %v: "
    "f32[24,24] weight,\n"
    "  %g: f32[24] weight, %u: f32[24] weight) -> (f32[], f32[12,24], f32[24], i64[12]) {\n"
    "  %0 = call @block(%x, %w, %b)\n"
    "  %i = iota {shape=[24], dtype=f32, axis=0, alpha=0.1}\n"
    "  %j = sin %i\n"
    "  %1 = add %0, %j\n"
    "  %2 = call @block(%1, %v, %b)\n"
    "  %3 = add %2, %x\n"
    "  %4 = rmsnorm %3, %g\n"
    "  %best = argmax %4 {axis=1, keepdims=0}\n"
    "  %5 = sub %4, %y\n"
    "  %6 = mul %5, %5\n"
    "  %7 = reduce_sum %6 {axes=[0,1], keepdims=0}\n"
    "  %8 = mul %w, %w\n"
    "  %9 = reduce_sum %8 {axes=[0,1], keepdims=0}\n"
    "  %10 = scale %9 {alpha=0.5}\n"
    "  %11 = add %7, %10\n"
    "  %loss = scale %11 {alpha=0.25}\n"
    "  %z = mul %g, %u\n"
    "  return %loss, %4, %z, %best\n"
    "}\n";

static optim_opts plans_optim(u32 index) { return optim_default(models[index].optim); }

bool plans_has_tables(u32 index) { return !strcmp(models[index].name, "evoformer"); }
u32 plans_count(void) { return COUNT_OF(models); }
const char *plans_name(u32 index) { return models[index].name; }

static void give_up(plans_model *m) {
  fprintf(stderr, "%s: %s", m->spec, diag_render(m->c, m->a));
  abort();
}

prog *plans_load(ctx *c, u32 index, i64 batch) {
  front_opts o = {.batch = models[index].batch, .seq = models[index].seq, .loss = true, .t = models[index].t};
  if (batch && o.batch) o.batch = batch;
  if (!models[index].spec) return ir_parse(c, sym_of(c, "odd"), odd_text, sizeof odd_text - 1);
  return front_load(c, models[index].spec, &o);
}

void plans_open(plans_model *m, u32 index) {
  *m =
      (plans_model){.name = models[index].name, .spec = models[index].spec, .c = ctx_new(), .a = arena_new()};
  m->optim = plans_optim(index);
  if (!m->spec) m->spec = "odd";
  m->src = plans_load(m->c, index, 0);
  if (!m->src || !pass_loss(m->src)) give_up(m);
  for (u32 f = 1; f < m->src->funcs.n;
       f++) // constants as random as weights: zeros and ones would hide mistakes
    for (u32 k = 0; k < m->src->funcs.v[f]->nparams; k++) m->src->funcs.v[f]->params.v[k].data = 0;
  m->pl = planner_new(m->src);
  batchnorm_stats bn;
  m->batchnorm = pass_batchnorm_of(m->src, &bn);
  for (int train = 0; train < 2; train++) {
    plan *one = plan_single(m->a, m->src, train, &m->optim);
    one->keep_gradients = true;
    prog *p = plan_apply(m->pl, one, NULL);
    if (!p || !plan_evaluate(m->src, p, PLANS_SEED, m->a, &m->want[train])) give_up(m);
    prog_free(p);
  }
}

// Every such plan has a reference of its own.
static const plan_numbers *want_stale(plans_model *m, const plan *pn) {
  if (m->stale == pn) return &m->want_stale;
  if (m->of_stale) arena_free(m->of_stale);
  m->of_stale = arena_new(), m->stale = pn;
  prog *p = plan_apply(m->pl, plan_reference(m->pl, pn, m->of_stale), NULL);
  if (!p || !plan_evaluate(m->src, p, PLANS_SEED, m->of_stale, &m->want_stale)) give_up(m);
  prog_free(p);
  return &m->want_stale;
}

// Batch norm in groups is another model: made when a plan asks for it, and kept.
const plan_numbers *plans_want(plans_model *m, const plan *pn) {
  u32 groups = pn->batchnorm_groups;
  if (pn->train && sched_is_asynchronous(pn->made.row)) return want_stale(m, pn);
  if (!groups) return &m->want[pn->train];
  assert(groups < PLANS_GROUPS);
  plan_numbers *want = &m->grouped[pn->train][groups];
  if (want->n) return want;
  plan *one = plan_single(m->a, m->src, pn->train, &m->optim);
  one->keep_gradients = true, one->batchnorm_groups = groups;
  prog *p = plan_apply(m->pl, one, NULL);
  if (!p || !plan_evaluate(m->src, p, PLANS_SEED, m->a, want)) give_up(m);
  prog_free(p);
  return want;
}

void plans_close(plans_model *m) {
  if (m->of_stale) arena_free(m->of_stale);
  planner_free(m->pl);
  prog_free(m->src);
  arena_free(m->a);
  ctx_free(m->c);
}

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }

// ---- orders --------------------------------------------------------------------------------------------
// Which segments a segment reads from: whoever makes a value that it uses; `grads`: a float, which a gradient
// goes back for. Parts that depend on constants alone are copied into every segment.
static void read_from(const prog *p, const plan *pn, bool *reads, bool *grads, arena *a) {
  const func_info *m = func_get(p, p->main);
  u32 n = pn->nsegments, *seg = ZNEWN(a, u32, m->body.n + 1);
  bool *cone = ZNEWN(a, bool, m->body.n + 1);
  for (u32 s = 0; s < n; s++)
    for (u32 i = pn->segments[s].from; i <= pn->segments[s].to; i++) seg[i] = s;
  for (u32 i = 1; i <= m->body.n; i++) {
    const instr *in = &m->body.v[i - 1];
    cone[i] = in->op != OP_call && !(op_row_of(in->op)->flags & OPF_RANDOM);
    for (u32 k = 0; k < in->nopd; k++) {
      u32 def = m->values.v[opd_of(m, in, k)].def;
      cone[i] = cone[i] && def && cone[def];
    }
    for (u32 k = 0; !cone[i] && k < in->nopd; k++) {
      value v = opd_of(m, in, k);
      u32 def = m->values.v[v].def;
      if (!def || cone[def] || seg[def] == seg[i]) continue;
      reads[seg[i] * n + seg[def]] = true;
      grads[seg[i] * n + seg[def]] |= dtype_kind_of(val_type(p, m, v)->s.t) == DK_FLOAT;
    }
  }
}

static bool same_submesh(const plan_submesh *a, const plan_submesh *b) {
  return a->mesh == b->mesh && a->nfix == b->nfix && !memcmp(a->fix, b->fix, sizeof *a->fix * a->nfix);
}

typedef struct {
  const plan *pn;
  u64 *rng;
  u32 n, K;
  const bool *reads, *grads;
  const u8 *kinds; // per segment: bits of tasks that it has
  u8 *done;        // n * K: bits
} scheduling;

static bool ready(const scheduling *s, u32 sg, u32 kind, u32 mb) {
  if (!(s->kinds[sg] >> kind & 1) || s->done[sg * s->K + mb] >> kind & 1) return false;
  for (u32 k = 0; k < s->n; k++) {
    if (kind == TASK_F && s->reads[sg * s->n + k] && !(s->done[k * s->K + mb] & 1)) return false;
    const u8 back = 1u << TASK_B | 1u << TASK_I;
    if (1u << kind & back && s->grads[k * s->n + sg] && s->kinds[k] & back &&
        !(s->done[k * s->K + mb] & back))
      return false;
  }
  u8 before = kind == TASK_F ? 0 : kind == TASK_W ? 1u << TASK_I : 1u << TASK_F;
  return (s->done[sg * s->K + mb] & before) == before;
}

static const plan_submesh *where(const plan *pn,
                                 u32 stage) { // those of a replica after those of the one before
  const u32 r = stage / pn->nsegments, k = stage % pn->nsegments;
  return r ? &pn->replicas[r].on[k] : &pn->segments[k].on;
}

static void random_order(const prog *p, plan *pn, bool split, u64 *rng, arena *a) {
  u32 n = pn->nsegments, K = pn->time ? pn->axes[pn->time - 1].size : 1, left = 0, np = 0;
  bool *reads = ZNEWN(a, bool, n *n), *grads = ZNEWN(a, bool, n *n);
  u8 *kinds = NEWN(a, u8, n);
  read_from(p, pn, reads, grads, a);
  u32 loss = func_get(p, p->main)->values.v[func_get(p, p->main)->rets.v[0]].def;
  for (u32 s = n; s-- > 0;) { // gradients flow from where the loss is
    bool back = pn->segments[s].from <= loss && loss <= pn->segments[s].to;
    for (u32 k = s + 1; k < n; k++) back |= grads[k * n + s] && kinds[k] != 1u << TASK_F;
    kinds[s] = !pn->train || !back ? 1 : split ? 1u << TASK_F | 1u << TASK_I | 1u << TASK_W : 3;
  }
  scheduling s = {pn, rng, n, K, reads, grads, kinds, ZNEWN(a, u8, n * K)};
  const u32 all = n * MAX(pn->nreplicas, 1);
  u32 *place = NEWN(a, u32, all), style = pick(rng, 3);
  pn->seqs = ZNEWN(a, sched_seq, all);
  sched_task **seq = NEWN(a, sched_task *, all);
  for (u32 i = 0; i < all; i++) {
    u32 k = 0;
    while (k < i && !same_submesh(where(pn, k), where(pn, i))) k++;
    place[i] = k < i ? place[k] : np;
    if (k == i) seq[np++] = NEWN(a, sched_task, 3 * n * K);
    for (u32 b = 0; i < n && b < TASK_KINDS; b++) left += K * (kinds[i] >> b & 1);
  }
  while (left) { // style 1 prefers late microbatches, 2 backwards; 0 nothing
    sched_task best = {0};
    u32 seen = 0, most = 0;
    for (u32 sg = 0; sg < n; sg++)
      for (u32 kind = 0; kind < TASK_KINDS; kind++)
        for (u32 mb = 0; mb < K; mb++) {
          if (!ready(&s, sg, kind, mb)) continue;
          u32 rank = style == 1 ? mb + 1 : style == 2 ? kind + 1 : 1;
          if (rank < most || (rank == most && pick(rng, ++seen))) continue;
          if (rank > most) most = rank, seen = 1;
          best = (sched_task){.stage = (u16)sg, .kind = (u8)kind, .mb = mb};
        }
    assert(most);
    s.done[best.stage * K + best.mb] |= (u8)(1u << best.kind);
    while (pn->nreplicas && best.mb >= pn->replicas[best.replica].micro)
      best.mb -= pn->replicas[best.replica++].micro;
    const u32 at = place[best.replica * n + best.stage];
    seq[at][pn->seqs[at].n++] = best;
    left--;
  }
  pn->nseqs = np;
  for (u32 i = 0; i < np; i++) pn->seqs[i].v = seq[i];
}

static const u32 *random_shares(u32 n, u64 *rng, arena *a) {
  u32 *v = NEWN(a, u32, n);
  bool equal = true;
  for (u32 k = 0; k < n; k++) v[k] = 1 + pick(rng, 3), equal = equal && v[k] == v[0];
  return equal ? NULL : v;
}

static choice_value random_order_of_places(u32 n, u64 *rng, arena *a) {
  u32 *v = NEWN(a, u32, n);
  for (u32 q = 0; q < n; q++) {
    const u32 k = pick(rng, q + 1);
    v[q] = v[k], v[k] = q + 1;
  }
  return (choice_value){.nparts = n, .part = v};
}

// Of every place a divisor of its ranks.
static choice_value random_degrees(const strategy *s, u64 *rng, arena *a) {
  const u32 ranks = s->dp.n * s->tp.n;
  u32 *v = NEWN(a, u32, s->pp.n);
  for (u32 q = 0; q < s->pp.n; q++) do
      v[q] = 1 + pick(rng, ranks);
    while (ranks % v[q]);
  return (choice_value){.nparts = s->pp.n, .part = v};
}

// Two or three replicas, which say the degrees.
static strategy random_grids(const strategy *of, u64 *rng, arena *a) {
  const u32 n = 2 + pick(rng, 2);
  u32 *v = NEWN(a, u32, 3 * n);
  strategy s = *of;
  for (u32 k = 0; k < 3 * n; k++) v[k] = 1 + pick(rng, 2);
  s.dp.n = s.tp.n = s.pp.n = 1;
  s.replicas = (choice_value){.nparts = 3 * n, .part = v};
  return s;
}

// Sums of gradients from numbers of their own, so that all else is what it is without them.
static void random_overlap(strategy *s, bool train, u64 *rng) {
  u64 own = *rng ^ 0xC2B2AE3D27D4EB4Fu;
  const sched_row *row = sched_row_of(s->schedule.n);
  if (s->pp.n > 1) s->overlap.n = pick(rng, 2) * OVERLAP_PP;
  const bool may = train && s->dp.n > 1 && s->zero.n < 2 && !s->sync.n && !s->offload.n &&
                   !s->replicas.nparts && sched_replicas(row) == 1 && row->weights == WEIGHTS_ONE;
  if (may && chance(&own, 2)) s->overlap.n |= OVERLAP_DP;
}

// ---- hybrids -------------------------------------------------------------------------------------------
// Any value of a row that can be chosen and planned; mbs says mb again.
static void random_value(strategy *s, choice_id id, bool train, u64 *rng, arena *a) {
  static const u32 degree[] = {1, 1, 2, 2, 3, 4};
  const choice_row *r = choice_get(id);
  if (!choice_applies(id, s, train) || id == CHOICE_mbs || id == CHOICE_group) return;
  if (id == CHOICE_replicas) {
    u64 own = *rng ^ 0x9E3779B97F4A7C15u;
    if (chance(&own, 10)) *s = random_grids(s, &own, a);
    return;
  }
  if (id == CHOICE_mb && s->replicas.nparts) {
    s->mb.n = strategy_replicas(s) * (1 + pick(rng, 2));
    return;
  }
  if (id == CHOICE_coshard) { // with or without parts, the rest is the same plan
    u64 own = *rng ^ 0xD1B54A32D192ED03u;
    if (chance(&own, 4)) s->coshard.n = 2 + pick(&own, 3);
    return;
  }
  if (id == CHOICE_attention) { // likewise; models without any refuse it
    u64 own = *rng ^ 0x589965CC75374CC3u;
    s->attention.n = chance(&own, 4);
    return;
  }
  if (id == CHOICE_offload || id == CHOICE_prefetch) { // likewise
    u64 own = *rng ^ 0xA0761D6478BD642Fu;
    if (id == CHOICE_offload && chance(&own, 4)) s->offload.n = train ? 1 + pick(&own, 15) : OFFLOAD_PARAMS;
    if (id == CHOICE_prefetch) s->prefetch.n = pick(&own, 4);
    return;
  }
  if (id == CHOICE_axial) { // most models have no tables and refuse it
    u64 own = *rng ^ 0xE7037ED1A0B428DBu;
    s->axial.n = chance(&own, 8);
    return;
  }
  if (id == CHOICE_materialise) {
    u64 own = *rng ^ 0x8EBC6AF09C88C6E3u;
    s->materialise.n = chance(&own, 3) ? 1 + pick(&own, MATERIALISE_WAYS - 1) : MATERIALISE_INTER;
    return;
  }
  if (id == CHOICE_places) {
    if (chance(rng, 3)) s->of[id] = random_order_of_places(s->pp.n, rng, a);
    return;
  }
  if (id == CHOICE_tp_stages) {
    if (chance(rng, 3)) s->of[id] = random_degrees(s, rng, a);
    return;
  }
  if (id == CHOICE_dp_shares || id == CHOICE_tp_shares) {
    const u32 n = strategy_shares_needed(s, id);
    const u32 *shares = chance(rng, 2) ? random_shares(n, rng, a) : NULL;
    if (s->replicas.nparts && shares) { // in parts of the microbatches
      s->mb.n = 0;
      for (u32 k = 0; k < n; k++) s->mb.n += shares[k];
      if (12 % s->mb.n) shares = NULL, s->mb.n = n;
    }
    if (shares) s->of[id] = (choice_value){.nparts = n, .part = shares};
    return;
  }
  if (id == CHOICE_overlap) {
    random_overlap(s, train, rng);
    return;
  }
  if (r->kind == CK_COUNT && r->most == CHOICE_MOST)
    s->of[id].n = degree[pick(rng, 6)];
  else if (r->kind == CK_COUNT)
    s->of[id].n = r->least + pick(rng, r->most - r->least + 1);
  else if (r->kind == CK_SET)
    s->of[id].n = pick(rng, 1u << choice_words(id));
  else
    s->of[id].n = pick(rng, choice_all(id));
  if (id == CHOICE_sync && s->replicas.nparts) s->sync = choice_default(id);
  if (id == CHOICE_sync && s->sync.n) s->zero = choice_default(CHOICE_zero); // servers have the states
  if (id != CHOICE_schedule) return;
  u64 own = *rng ^ 0x589965CC75374CC3u; // of the rows in two directions half are the plainest
  if (sched_replicas(sched_row_of(s->schedule.n)) > 1 && chance(&own, 2))
    (void)policy_schedule_named("chimera", &s->schedule.n);
  const sched_row *row = sched_row_of(s->schedule.n);
  if (row->multiple > 1 && s->mb.n % row->multiple && !chance(&own, 6)) s->mb.n = row->multiple;
  if (row->chunks && (row->chunks > 1 || chance(rng, 2))) s->v.n = row->chunks;
  if (sched_replicas(row) > 1 && !chance(rng, 3)) s->pp.n = 2 + 2 * pick(rng, 2);
  if (s->mb.n >= row->least * s->pp.n || chance(rng, 6)) return;
  if (s->pp.n == 2)
    s->mb.n = row->least * s->pp.n;
  else
    s->schedule = choice_default(id), s->v = choice_default(CHOICE_v);
}

// Its order is no longer that of the strategy that is its name.
static void own_order(ctx *c, plan *pn, arena *a) {
  pn->made.row = NULL;
  pn->name = sym_of(c, arena_printf(a, "reordered: %s", sym_str(c, pn->name)));
}

static plan *hybrid_of(plans_model *m, strategy say, bool train, u64 *rng, arena *a) {
  if (!(say.overlap.n & OVERLAP_PP)) say.channels = choice_default(CHOICE_channels);
  hybrid_opts o = {.s = say, .train = train, .optim = m->optim, .keep_gradients = true};
  plan *pn = policy_hybrid(m->pl, a, &o);
  if (!pn) return NULL;
  const bool stale = sched_is_asynchronous(pn->made.row);
  if (pn->train && chance(rng, 4) && !stale &&
      !policy_is_interlaced(&say)) { // weight gradients apart: each after its input gradient
    own_order(m->c, pn, a);
    for (u32 i = 0; i < pn->nseqs; i++) {
      sched_seq *s = &pn->seqs[i];
      sched_task *v = NEWN(a, sched_task, 2 * s->n);
      u32 n = 0, w = 0, late = pick(rng, 3);
      sched_task *wait = NEWN(a, sched_task, s->n);
      for (u32 k = 0; k < s->n; k++) {
        v[n] = s->v[k];
        if (v[n++].kind != TASK_B) continue;
        v[n - 1].kind = TASK_I;
        wait[w] = v[n - 1], wait[w++].kind = TASK_W;
        if (w > late) v[n++] = wait[0], memmove(wait, wait + 1, --w * sizeof *wait);
      }
      for (u32 k = 0; k < w; k++) v[n++] = wait[k];
      *s = (sched_seq){n, v};
    }
  }
  return pn;
}

plan *plans_hybrid(plans_model *m, u64 *rng, arena *a) {
  const bool train = !chance(rng, 6);
  strategy s = strategy_default();
  for (u32 id = 0; id < CHOICE_COUNT; id++) random_value(&s, (choice_id)id, train, rng, a);
  return hybrid_of(m, s, train, rng, a);
}

// Degrees by place, with sequence parallelism and shares more often than chance has them.
plan *plans_by_degree(plans_model *m, u64 *rng, arena *a) {
  static const u32 ways[][2] = {{1, 2}, {2, 1}, {2, 2}, {1, 4}, {4, 1}, {3, 2}};
  const u32 w = pick(rng, COUNT_OF(ways));
  const bool train = !chance(rng, 6);
  strategy s = strategy_default();
  s.dp.n = ways[w][0], s.tp.n = ways[w][1], s.pp.n = 2 + pick(rng, 2), s.mb.n = 1 + pick(rng, 2);
  s.tp_stages = random_degrees(&s, rng, a);
  for (u32 id = CHOICE_mb + 1; id < CHOICE_COUNT; id++)
    if (id != CHOICE_sp && id != CHOICE_bn && id != CHOICE_tp_stages &&
        (id == CHOICE_zero || id == CHOICE_tables || chance(rng, 3)))
      random_value(&s, (choice_id)id, train, rng, a);
  s.sp.n = choice_applies(CHOICE_sp, &s, train) && pick(rng, 2);
  for (choice_id id = CHOICE_dp_shares; id <= CHOICE_tp_shares; id++) {
    const u32 n = strategy_shares_needed(&s, id), *shares = random_shares(n, rng, a);
    s.of[id] = choice_default(id);
    if (choice_applies(id, &s, train) && shares && !chance(rng, 3))
      s.of[id] = (choice_value){.nparts = n, .part = shares};
  }
  return hybrid_of(m, s, train, rng, a);
}

// Pipelines with what lies on all places, or with passes.
plan *plans_placed(plans_model *m, u64 *rng, arena *a) {
  static const char *const rows[] = {"interlaced", "interlaced-block", "3f1b"};
  const bool train = !chance(rng, 6);
  strategy s = strategy_default();
  s.pp.n = 2 + pick(rng, 2), s.dp.n = 1 + pick(rng, 2), s.tp.n = 1 + pick(rng, 2), s.mb.n = 1 + pick(rng, 4);
  for (u32 id = CHOICE_v; id < CHOICE_COUNT; id++)
    if (id != CHOICE_v && id != CHOICE_group && id != CHOICE_tp_stages && chance(rng, 2))
      random_value(&s, (choice_id)id, train, rng, a);
  s.v = choice_default(CHOICE_v), s.schedule = choice_default(CHOICE_schedule);
  const u32 row = pick(rng, COUNT_OF(rows));
  const bool recycles = !strcmp(m->name, "evoformer");
  (void)policy_schedule_named(rows[recycles && pick(rng, 2) ? 2 : row], &s.schedule.n);
  if (recycles) s.pp.n = 2; // layers of a pass
  return hybrid_of(m, s, train, rng, a);
}

// What goes with updates between tasks, and a batch that divides.
plan *plans_stale(plans_model *m, u64 *rng, arena *a) {
  static const char *const rows[] = {"pipedream", "pipedream-2bw"};
  m->stale = NULL;
  strategy s = strategy_default();
  s.pp.n = 2 + pick(rng, 2), s.dp.n = 1 + pick(rng, 2), s.tp.n = 1 + pick(rng, 2);
  for (u32 id = CHOICE_v; id < CHOICE_COUNT; id++)
    if (id != CHOICE_v && id != CHOICE_group && chance(rng, 2)) random_value(&s, (choice_id)id, true, rng, a);
  (void)policy_schedule_named(rows[pick(rng, 2)], &s.schedule.n);
  s.v = choice_default(CHOICE_v), s.sync = choice_default(CHOICE_sync);
  s.offload = choice_default(CHOICE_offload), s.prefetch = choice_default(CHOICE_prefetch);
  s.buffers = choice_default(CHOICE_buffers), s.overlap.n &= OVERLAP_PP;
  s.zero.n = s.dp.n > 1 && chance(rng, 2);
  s.mb.n = 1 + pick(rng, 6);
  if (chance(rng, 4) && s.mb.n > s.pp.n) s.group.n = s.mb.n / 2;
  return hybrid_of(m, s, true, rng, a);
}

// Replicas of different make-up, with what they may have inside more often than chance has it.
plan *plans_made_up(plans_model *m, u64 *rng, arena *a) {
  static const char *const orders[] = {"1f1b", "gpipe", "interleaved", "bfs", "zb-h1"};
  const bool train = !chance(rng, 6);
  strategy s = strategy_default();
  s = random_grids(&s, rng, a);
  for (u32 id = CHOICE_mb; id < CHOICE_COUNT; id++)
    if (id != CHOICE_v && id != CHOICE_schedule && (id == CHOICE_mb || id == CHOICE_bn || chance(rng, 2)))
      random_value(&s, (choice_id)id, train, rng, a);
  if (choice_is(CHOICE_layers, s.layers, "auto")) s.layers = choice_default(CHOICE_layers); // needs a machine
  if (choice_applies(CHOICE_schedule, &s, train))
    (void)policy_schedule_named(orders[pick(rng, COUNT_OF(orders))], &s.schedule.n);
  if (choice_applies(CHOICE_v, &s, train) && sched_row_of(s.schedule.n)->chunks == CHUNKS_ANY)
    s.v.n = 1 + pick(rng, 2);
  s.group.n = choice_applies(CHOICE_group, &s, train) ? pick(rng, 3) : 0;
  if (choice_applies(CHOICE_zero, &s, train)) s.zero.n = pick(rng, 4);
  s.sp.n = choice_applies(CHOICE_sp, &s, train) && pick(rng, 2);
  return hybrid_of(m, s, train, rng, a);
}

// ---- random primitives ---------------------------------------------------------------------------------
static void random_axes(plans_model *m, plan *pn, u64 *rng, arena *a) {
  static const u32 sizes[] = {2, 2, 3, 4, 5};
  static const char *const names[] = {"a", "b", "c"};
  u32 n = 1 + pick(rng, 3), total = 1;
  pn->axes = ZNEWN(a, plan_axis, 4);
  pn->meshes = ZNEWN(a, plan_mesh, 2);
  for (u32 i = 0; i < n; i++) {
    u32 size = sizes[pick(rng, 5)];
    if (total * size > 12) size = 1;
    total *= size;
    pn->axes[pn->naxes++] = (plan_axis){.name = sym_of(m->c, names[i]), .size = size};
    if (chance(rng, 3)) pn->axes[i].shares = random_shares(size, rng, a);
  }
  plan_mesh *all = &pn->meshes[pn->nmeshes++];
  all->name = sym_of(m->c, "m");
  for (u32 i = 0; i < n; i++) all->axis[all->naxes++] = (u8)(i + 1);
  if (chance(rng, 3)) { // the ranks in another order
    u32 *ranks = NEWN(a, u32, total);
    for (u32 i = 0; i < total; i++) {
      u32 k = pick(rng, i + 1);
      ranks[i] = ranks[k], ranks[k] = i;
    }
    all->ranks = ranks, all->nranks = total;
  }
  if (n > 1 && chance(rng, 3)) { // some axes again as another mesh, over ranks of its own or the same ones
    plan_mesh *part = &pn->meshes[pn->nmeshes++];
    part->name = sym_of(m->c, "part");
    part->axis[part->naxes++] = (u8)(1 + pick(rng, n));
    part->first = chance(rng, 2) ? 0 : total;
  }
  if (chance(rng, 2)) {
    pn->axes[pn->naxes++] =
        (plan_axis){.name = sym_of(m->c, "mb"), .size = sizes[pick(rng, 4)], .temporal = true};
    pn->time = (u8)pn->naxes;
  }
}

static plan_submesh random_submesh(const plan *pn, u64 *rng) {
  plan_submesh on = {.mesh = pn->nmeshes > 1 && chance(rng, 3)};
  const plan_mesh *m = &pn->meshes[on.mesh];
  for (u32 k = 0; k < m->naxes; k++)
    if (chance(rng, 3)) on.fix[on.nfix++] = (plan_fix){m->axis[k], pick(rng, pn->axes[m->axis[k] - 1].size)};
  return on;
}

static void random_segments(plans_model *m, plan *pn, u64 *rng, arena *a) {
  u32 body = func_get(m->src, m->src->main)->body.n, n = 1 + pick(rng, 4), at = 1;
  pn->segments = ZNEWN(a, plan_segment, n);
  for (u32 i = 0; i < n && at <= body; i++) {
    plan_segment *s = &pn->segments[pn->nsegments++];
    u32 left = n - 1 - i, room = body - at + 1;
    s->from = at;
    s->to = !left || room == 1 ? body : at + pick(rng, MAX(2 * room / (left + 1), 1));
    if (s->to > body) s->to = body;
    at = s->to + 1;
    if (i && chance(rng, 3)) { // where another segment is
      s->on = pn->segments[pick(rng, i)].on;
      continue;
    }
    s->on = random_submesh(pn, rng);
  }
  pn->segments[pn->nsegments - 1].to = body;
}

// Two or three, each with some of the microbatches, on submeshes of their own but for some segments.
static void random_replicas(plan *pn, u64 *rng, arena *a) {
  u32 left = pn->time ? pn->axes[pn->time - 1].size : 1, n = MIN(2 + pick(rng, 2), left);
  if (n < 2) return;
  pn->replicas = ZNEWN(a, plan_replica, n);
  for (u32 r = 0; r < n; r++) {
    const u32 most = left - (n - 1 - r), micro = r + 1 == n ? left : 1 + pick(rng, most);
    plan_submesh *on = NEWN(a, plan_submesh, pn->nsegments);
    left -= micro;
    for (u32 k = 0; r && k < pn->nsegments; k++)
      on[k] = chance(rng, 4) ? *where(pn, pick(rng, (r - 1) * pn->nsegments + pn->nsegments))
                             : random_submesh(pn, rng);
    pn->replicas[pn->nreplicas++] = (plan_replica){.micro = micro, .on = r ? on : NULL};
  }
}

// One split: some dimension of an operand or result of some instruction, somewhere in one of its letters.
static bool random_trans(plans_model *m, const plan *pn, u64 *rng, plan_trans *t) {
  prog *p = planner_source(m->pl);
  func f = {1 + pick(rng, planner_funcs(m->pl) - 1)};
  const func_info *fi = func_get(p, f);
  if (!fi->body.n) return false;
  u32 at = pick(rng, fi->body.n);
  const instr *in = &fi->body.v[at];
  if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack) return false;
  const law *l = plan_law(m->pl, f, at);
  if (!l) return false;
  bool result = l->nopd == 0 || chance(rng, 3);
  u32 k = pick(rng, result ? l->nres : l->nopd);
  const law_term *term = result ? &l->res[k] : &l->opd[k];
  if (!term->nd) return false;
  u32 d = pick(rng, term->nd), axis = 1 + pick(rng, pn->naxes);
  if (!term->dim[d].n || (pn->axes[axis - 1].temporal && !chance(rng, 8))) return false;
  u32 j = pick(rng, term->dim[d].n), n = plan_parts(&pn->axes[axis - 1]);
  i64 inner = 1, e = l->letter[term->dim[d].f[j]].extent, stride;
  for (u32 x = j + 1; x < term->dim[d].n; x++) inner *= l->letter[term->dim[d].f[x]].extent;
  bool uneven = e % n != 0;
  if (n < 2 || l->letter[term->dim[d].f[j]].flags & LAW_WHOLE) return false;
  if (uneven && (term->dim[d].n > 1 || e < n || pn->axes[axis - 1].temporal || chance(rng, 2))) return false;
  stride = uneven ? 0 : e / n;
  for (i64 div = 2; div <= stride && chance(rng, 3); div++) // now and then a minor split
    if (stride % div == 0) stride /= div;
  *t = (plan_trans){.fn = f,
                    .instr = at + 1,
                    .result = result,
                    .index = k,
                    .dim = (u8)d,
                    .axis = (u8)axis,
                    .stride = stride * inner,
                    .weak = !chance(rng, 4),
                    .uneven = uneven};
  if (j == 0 && chance(rng, 4)) t->stride = 0;
  return true;
}

static void random_splits(plans_model *m, plan *pn, u64 *rng, arena *a) {
  u32 n = pick(rng, 12);
  plan_trans *v = NEWN(a, plan_trans, pn->ntrans + n + 1);
  if (pn->ntrans) memcpy(v, pn->trans, sizeof *v * pn->ntrans);
  pn->trans = v;
  for (u32 i = 0; i < n; i++)
    if (random_trans(m, pn, rng, &v[pn->ntrans])) pn->ntrans++;
}

static void random_storage(plan *pn, u64 *rng) {
  for (u32 w = 0; w < STORAGE_KINDS; w++)
    for (u32 x = 1; x <= pn->naxes; x++)
      if (!pn->axes[x - 1].temporal && chance(rng, 4)) pn->storage[w][pn->nstorage[w]++] = (u8)x;
}

static void random_recompute(plans_model *m, plan *pn, u64 *rng, arena *a) {
  u32 n = pick(rng, 6);
  if (pn->coshard && pick(rng, 4)) {
    policy_coshard_again(m->pl, a, pn);
    return;
  }
  prog *p = planner_source(m->pl);
  pn->recompute = arena_alloc(a, sizeof *pn->recompute * (n + 1));
  for (u32 i = 0; i < n; i++) {
    func f = {1 + pick(rng, planner_funcs(m->pl) - 1)};
    if (!func_get(p, f)->body.n) continue;
    pn->recompute[pn->nrecompute].fn = f;
    pn->recompute[pn->nrecompute++].instr = 1 + pick(rng, func_get(p, f)->body.n);
  }
}

static plan *random_plan(plans_model *m, const plan *form, u64 *rng, arena *a) {
  plan *pn = NEW(a, plan);
  pn->batchnorm_groups = form->batchnorm_groups, pn->coshard = form->coshard;
  pn->name = sym_of(m->c, "random");
  pn->train = !chance(rng, 5), pn->keep_gradients = true;
  pn->optim = m->optim;
  const bool split = pn->train && chance(rng, 4);
  random_axes(m, pn, rng, a);
  random_segments(m, pn, rng, a);
  u64 own = *rng ^ 0x9E3779B97F4A7C15u; // with or without them, the rest is the same plan
  if (chance(&own, 4)) random_replicas(pn, &own, a);
  if (chance(&own, 4)) pn->materialise = (materialise_way)(1 + pick(&own, MATERIALISE_WAYS - 1));
  if (pn->time && !policy_batch(m->pl, a, pn, pn->time)) return NULL;
  if (chance(rng, 2) && pn->axes[0].size > 1 && !policy_batch(m->pl, a, pn, 1)) return NULL;
  random_splits(m, pn, rng, a);
  random_storage(pn, rng);
  if (pn->train && chance(rng, 2)) random_recompute(m, pn, rng, a);
  pn->wide_gradients = pn->train && chance(rng, 2);
  if (chance(rng, 3)) pn->send_stream = sym_of(m->c, "link"), pn->send_channels = (u8)(1u << pick(rng, 3));
  random_order(m->src, pn, split, rng, a);
  pn->input_gradients = pn->train && chance(rng, 4);
  if (pn->train && chance(&own, 3)) pn->sum_stream = sym_of(m->c, "sums");
  return pn;
}

// Some backwards of a sequence in two parts, the weight gradients anywhere later.
static void split_some(sched_seq *s, u64 *rng, arena *a) {
  sched_task *v = NEWN(a, sched_task, 2 * s->n + 1);
  u32 n = 0;
  for (u32 k = s->n; k-- > 0;) { // from the end, so that what is later is known
    sched_task t = s->v[k];
    if (t.kind == TASK_B && chance(rng, 2)) {
      sched_task w = t;
      u32 at = n - pick(rng, n + 1);
      w.kind = TASK_W, t.kind = TASK_I;
      memmove(v + at + 1, v + at, (n - at) * sizeof *v);
      v[at] = w, n++;
    }
    v[n++] = t;
  }
  for (u32 i = 0; i < n / 2; i++) {
    sched_task t = v[i];
    v[i] = v[n - 1 - i], v[n - 1 - i] = t;
  }
  *s = (sched_seq){n, v};
}

plan *plans_ordered(plans_model *m, u64 *rng, arena *a) {
  plan *pn = NULL;
  for (u32 n = 0; n < 60; n++) {
    diag_clear(m->c);
    pn = plans_hybrid(m, rng, a);
    const bool one_each =
        pn && pn->nreplicas <= 1 && plan_has_probe(pn) && !(pn->made.row && plan_unrolls(pn->made.row));
    if (one_each && pn->nsegments > 1 && pn->time) break;
    pn = NULL;
  }
  if (!pn) return NULL;
  random_order(m->src, pn, pn->train && chance(rng, 3), rng, a);
  own_order(m->c, pn, a);
  for (u32 i = 0; i < pn->nseqs && pn->train && chance(rng, 2); i++) split_some(&pn->seqs[i], rng, a);
  pn->send_stream = chance(rng, 3) ? (sym){0} : sym_of(m->c, "link");
  pn->send_channels = pn->send_stream.i ? (u8)(1u << pick(rng, 3)) : 0;
  pn->rendezvous = pn->rendezvous && !pn->send_stream.i;
  return pn;
}

plan *plans_random(plans_model *m, u64 *rng, arena *a) {
  static const u32 groups[] = {0, 2, 4, 6, 8, 12, 24};
  u32 n = m->batchnorm ? groups[pick(rng, COUNT_OF(groups))] : 0;
  planner *pl = m->pl;
  u64 own = *rng ^ 0xD1B54A32D192ED03u;
  plan form = {.batchnorm_groups = n};
  const u32 before = diag_count(m->c);
  if (chance(&own, 4) && (form.coshard = 2 + pick(&own, 3), !planner_formed(pl, &form))) form.coshard = 0;
  diag_truncate(m->c, before);
  m->pl = planner_formed(pl, &form);
  plan *pn = random_plan(m, &form, rng, a);
  m->pl = pl;
  return pn;
}

// ---- other ranks ------------------------------------------------------------------------------------------
plan *plans_relabelled(const plan *pn, const u32 *to, arena *a) {
  plan *q = arena_dup(a, pn, sizeof *pn);
  q->meshes = arena_dup(a, pn->meshes, pn->nmeshes * sizeof *pn->meshes);
  for (u32 i = 0; i < q->nmeshes; i++) {
    plan_mesh *m = &q->meshes[i];
    u32 size = 1;
    for (u32 k = 0; k < m->naxes; k++) size *= pn->axes[m->axis[k] - 1].size;
    u32 *ranks = NEWN(a, u32, size);
    for (u32 k = 0; k < size; k++) ranks[k] = to[m->nranks ? m->ranks[k] : m->first + k];
    m->ranks = ranks, m->nranks = size, m->first = 0;
  }
  return q;
}
