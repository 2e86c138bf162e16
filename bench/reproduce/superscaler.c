// superscaler.c - SuperScaler's figures (2023) beside ours: its four models on 32 V100, each system at its own best plan by
// search; what interlacing gains; the longest sequence on one device. Its communication is in materialise.c.
//
// We have a summary of the paper alone: it gives neither sizes nor lengths nor precision. Assumed: the built-in models, f16 with Adam
// and f32 masters, attention that writes its scores, `v100` with 28.8 GiB. Of the hosts, which baselines with offload need, a DGX-1's
// memory, 512 GiB a node, and PCIe 3.0 x16: 16 GB/s each way, of which copies reach the 0.8 of devices.yaml; every device has a
// way of its own, which is more than a DGX-1 has (two share one). Their memory moves 136.5 GB/s, of which an update on the host reaches 0.49
// (machines/dgx-1.yaml): 67 GB/s a node. Baselines with offload update on the host or on the devices, whichever is faster. Models that read long inputs are compared at their usual
// length and at a long one, since what its plans save is activations.
#include "run.h"

static const char *const cluster = "4x8 v100 ib=100Gb/s pcie=16GB/s hostmem=512GiB hostbw=67GB/s",
                         *const one = "1x1 v100 pcie=16GB/s hostmem=512GiB hostbw=67GB/s";

// A system is a space of strategies. own: SuperScaler's new plan for the model.
typedef struct {
  const char *name, *space;
  bool own;
} contender;
// Sums of gradients beside the last backward, which goes with ZeRO 0 and 1: all of them may.
#define BESIDE "overlap=pp,pp+dp"
#define MEGATRON                                                                                             \
  { "Megatron-LM", "dp=* tp=* pp=* mb=* zero=0 schedule=1f1b recompute=* layers=equal " BESIDE, false }
#define ALPA                                                                                                 \
  { "Alpa: hybrids", "dp=* tp=* pp=* mb=* zero=0,1 schedule=1f1b recompute=* layers=cost " BESIDE, false }
#define DEEPSPEED                                                                                            \
  { "DeepSpeed ZeRO-3", "dp=32 tp=1 pp=1 mb=* zero=3 recompute=*", false }
#define OFFLOAD                                                                                              \
  { "ZeRO-Offload", "dp=32 tp=1 pp=1 mb=* zero=2 recompute=* offload=states,grads+states update=*", false }
#define OFFLOAD3                                                                                             \
  {                                                                                                          \
    "ZeRO-3-Offload",                                                                                        \
        "dp=32 tp=1 pp=1 mb=* zero=3 recompute=* offload=states,grads+states,params+grads+states update=*",  \
        false                                                                                                \
  }
#define COSHARD                                                                                              \
  { "co-shard", "dp=* tp=* pp=* mb=* zero=0,1 recompute=* coshard=2,4,8 " BESIDE, true }
static const contender
    long_input[] = {MEGATRON, ALPA, DEEPSPEED, OFFLOAD, OFFLOAD3, COSHARD},
    words[] = {MEGATRON,
               ALPA,
               DEEPSPEED,
               OFFLOAD,
               OFFLOAD3,
               {"interlaced", "dp=* tp=* pp=2,4,8,16 mb=* zero=0,1 schedule=interlaced recompute=* " BESIDE,
                true}},
    fold[] = {MEGATRON,
              ALPA,
              DEEPSPEED,
              OFFLOAD,
              OFFLOAD3,
              {"DAP + DP", "dp=* tp=* pp=1 mb=* zero=0 axial recompute=* " BESIDE, false},
              {"3F1B", "dp=* tp=* pp=2,4,8,16 mb=* zero=0,1 schedule=3f1b recompute=* " BESIDE, true}};

typedef struct {
  bool ok;
  double s, bytes, computes, idles, communicates;
  char name[160];     // of the plan
  double least_bytes; // none fits: what the smallest needs at least
  char refused[160];  // none was tried: why
} answer;

static answer best_of(const prog *src, const machine *m, i64 batch, const char *within) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  search_opts o = {.pow2 = true,
                   .train = true,
                   .batch = batch,
                   .top = 1,
                   .plain = true,
                   .optim = optim_default(OPTIM_ADAM)};
  search_result r;
  answer x = {0};
  const bool said = strategy_parse(c, a, within, &o.space);
  if (said && search_run(c, a, src, m, NULL, &o, &r)) {
    const search_point *p = &r.point[0];
    x.ok = true, x.s = (double)p->time_ps * 1e-12, x.bytes = (double)p->peak_bytes;
    x.computes = p->utilisation, x.idles = p->bubble, x.communicates = p->comm;
    snprintf(x.name, sizeof x.name, "%s", search_str(a, p));
  } else if (said && r.count[SEARCH_BOUND_MEMORY] + r.count[SEARCH_OVER_MEMORY])
    x.least_bytes = (double)r.least_bytes;
  else
    snprintf(x.refused, sizeof x.refused, "%s",
             said && r.nreasons ? r.reason[0].why : diag_get(c, 0).message);
  arena_free(a);
  ctx_free(c);
  return x;
}

static prog *model_of(ctx *c, const char *model, i64 batch, i64 seq) {
  prog *src = front_load(c, model, &(front_opts){.batch = batch, .seq = seq, .t = DT_F16, .loss = true});
  if (src) return src;
  fputs(diag_render(c, ctx_arena(c)), stderr);
  exit(1);
}

static double weights_of(const prog *p) {
  const func_info *m = func_get(p, p->main);
  double n = 0;
  for (u32 k = 0; k < m->nparams; k++)
    if (m->params.v[k].r == ROLE_WEIGHT) n += (double)shape_elems(&val_type(p, m, k + 1)->s);
  return n;
}

static void put_answer(verdict *v, const char *name, const answer *x, i64 batch, double own) {
  if (*x->refused)
    printf("skipped %-12s refused: %s\n", name, x->refused), v->skipped++;
  else if (!x->ok)
    printf("  %-18s no plan fits: a device would need %.1f GiB at least\n", name, x->least_bytes / (1 << 30));
  else
    printf("  %-18s %9.3f %9.2f %6.1f   %3.0f %3.0f %3.0f %7.2f   %s\n", name, x->s, (double)batch / x->s,
           x->bytes / (1 << 30), 100 * x->computes, 100 * x->communicates, 100 * x->idles,
           own > 0 ? x->s / own : 1, x->name);
}

// Over the baselines that have a plan, the most that the new plan gains; over the best of them what it gains or loses.
static void compare(ctx *c, verdict *v, const char *title, const char *model, i64 batch, i64 seq,
                    const contender *k, u32 n, double published) {
  const machine *m = machine_load(c, ctx_arena(c), cluster);
  prog *src = model_of(c, model, batch, seq);
  printf("%s: %s, %.2fB weights, batch %lld\n  %-18s %9s %9s %6s   %s %7s   %s\n", title, model,
         weights_of(src) / 1e9, (long long)batch, "", "s", "samples/s", "GiB",
         "% computing, communicating, idle", "gain", "plan");
  answer *x = NEWN(ctx_arena(c), answer, n);
  double own = 0, best = INFINITY, worst = 0;
  for (u32 i = 0; i < n; i++) {
    x[i] = best_of(src, m, batch, k[i].space);
    if (!x[i].ok) continue;
    if (k[i].own)
      own = x[i].s;
    else
      best = fmin(best, x[i].s), worst = fmax(worst, x[i].s);
  }
  for (u32 i = 0; i < n; i++) put_answer(v, k[i].name, &x[i], batch, own);
  if (own > 0)
    require(v, own <= best,
            "the new plan over the fastest baseline: %.2f; over the slowest %.2f, %.1f in the paper",
            best / own, worst / own, published);
  else
    require(v, false, "the new plan does not fit; %.1f in the paper", published);
  prog_free(src);
}

static void interlacing(ctx *c, verdict *v) {
  static const struct {
    const char *name, *space;
  } way[] = {
      {"Megatron-LM", "dp=* tp=* pp=4,8,16 mb=* zero=0 schedule=1f1b recompute=* layers=equal " BESIDE},
      {"interlaced-block", "dp=* tp=* pp=4,8,16 mb=* zero=0 schedule=interlaced-block recompute=* " BESIDE},
      {"interlaced", "dp=* tp=* pp=4,8,16 mb=* zero=0 schedule=interlaced recompute=* " BESIDE}};
  enum { BATCH = 512 };
  const machine *m = machine_load(c, ctx_arena(c), cluster);
  prog *src = model_of(c, "mbart-4.7b", BATCH, 0);
  answer x[COUNT_OF(way)];
  printf("mBART in pipelines of 4 places and more\n");
  for (u32 k = 0; k < COUNT_OF(way); k++) {
    x[k] = best_of(src, m, BATCH, way[k].space);
    put_answer(v, way[k].name, &x[k], BATCH, x[k].s);
  }
  const bool all = x[0].ok && x[1].ok && x[2].ok;
  require(v, all && x[1].s < x[0].s && x[2].s < x[1].s,
          "order: interlaced-block over Megatron-LM %.2f, interlaced over interlaced-block %.2f; 1.9 and 1.5 "
          "in the paper",
          all ? x[0].s / x[1].s : NAN, all ? x[1].s / x[2].s : NAN);
  prog_free(src);
}

// ---- one device ----------------------------------------------------------------------------------------------
static outcome at_length(i64 seq, const char *line) {
  return run_once(
      &(setting_opts){
          .model = "gpt3-1.3b", .machine = one, .half = true, .optim = OPTIM_ADAM, .batch = 1, .seq = seq},
      STAGE_FIRST, line);
}

// In steps of 128; longer sequences take more memory. -1: there is no such plan.
static i64 longest(const char *line) {
  i64 fits = 0, large = 512;
  if (!at_length(128, line).ok) return -1;
  while (fits + 1 < large) {
    const i64 mid = fits + (large - fits) / 2;
    if (at_length(128 * mid, line).fits)
      fits = mid;
    else
      large = mid;
  }
  return 128 * fits;
}

static void one_device(verdict *v) {
  static const char *const way[] = {"recompute=full",
                                    "recompute=none",
                                    "recompute=selective",
                                    "coshard=2",
                                    "coshard=4",
                                    "coshard=8",
                                    "coshard=16",
                                    "coshard=4 recompute=full",
                                    "coshard=8 recompute=full",
                                    "coshard=16 recompute=full",
                                    "offload=params+grads+states",
                                    "offload=params+grads+states recompute=full",
                                    "offload=params+grads+states recompute=full update=host"};
  i64 base = 0, most = 0, offload = 0;
  printf("GPT-3 1.3B on one V100-32GB (%s), batch 1: the longest sequence\n  %-44s %8s %6s %8s\n", one, "",
         "tokens", "over", "step s");
  for (u32 k = 0; k < COUNT_OF(way); k++) {
    const i64 n = longest(way[k]);
    if (n < 0) {
      printf("skipped %-44s refused\n", way[k]), v->skipped++;
      continue;
    }
    if (!k) base = n;
    if (strstr(way[k], "coshard")) most = MAX(most, n);
    if (strstr(way[k], "offload")) offload = MAX(offload, n);
    printf("  %-44s %8lld %6.2f %8.2f\n", way[k], (long long)n, (double)n / (double)base,
           n ? at_length(n, way[k]).s : 0);
  }
  require(v, most > base, "co-shard trains it: %.2f times the sequence of recompute=full, 1.7 in the paper",
          (double)most / (double)base);
  require(v, offload && most > offload, "%.2f times that of ZeRO-3 with offload, 1.2 in the paper",
          (double)most / (double)offload);
}

void reproduce_superscaler(ctx *c, verdict *v) {
  printf("== SuperScaler: 32 V100 (%s), each system at its own best plan; gain: of SuperScaler's new plan "
         "over it\n"
         "Hosts are assumed: 512 GiB a node, PCIe 3.0 x16 for each device, of which copies reach 0.8: 12.8 "
         "GB/s each way; updates on the host at 67 GB/s of memory a node\n",
         cluster);
  compare(c, v, "Swin", "swin-1.8b", 512, 0, long_input, COUNT_OF(long_input), 3.5);
  compare(c, v, "Swin, images of 1344", "swin-1.8b", 512, 1344, long_input, COUNT_OF(long_input), 3.5);
  compare(c, v, "GPT-3", "gpt3-1.3b", 512, 0, long_input, COUNT_OF(long_input), 1.5);
  compare(c, v, "GPT-3, 16384 tokens", "gpt3-1.3b", 512, 16384, long_input, COUNT_OF(long_input), 1.5);
  compare(c, v, "mBART", "mbart-4.7b", 512, 0, words, COUNT_OF(words), 2.8);
  compare(c, v, "AlphaFold2", "alphafold2:recycle=3", 128, 0, fold, COUNT_OF(fold), 1.4);
  compare(c, v, "AlphaFold2, wider", "alphafold2:recycle=3,hidden=1536,heads=48,pair=768,ffn=6144", 128, 0,
          fold, COUNT_OF(fold), 1.4);
  interlacing(c, v);
  one_device(v);
  printf("\n");
}
