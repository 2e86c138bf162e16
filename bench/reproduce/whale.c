// whale.c - Whale's published figures (USENIX ATC 2022, section 5) beside ours: single strategies, nested
// pipelines, mixed machines, M6-10B. The hybrids of section 5.1.2 are in whale_hybrid.c.
//
// What the paper does not say is assumed, once and for all rows: f32 (its TensorFlow 1.12 without mixed
// precision); BERT and T5 with 128 tokens; Adam, but momentum for ResNet; the batch of a device, or the
// microbatch, is the largest power of two that fits the smallest device under the baseline; 8 microbatches,
// as in its example 1; the stages of a replica on one node, as its section 3.2 prefers.
#include "whale.h"

static const char *const mixed16 = "1x8 v100-32gb + 1x8 p100 eth=50Gb/s";
static const char *const mixed8 = "1x4 v100-32gb + 1x4 p100 eth=50Gb/s";

void row(verdict *v, const char *what, double low, double high, double ours, const char *note, ...) {
  char published[32];
  const bool met = high > 0 && ours >= 0.95 * low && ours <= 1.05 * high;
  if (high > low)
    snprintf(published, sizeof published, "%.3g to %.3g", low, high);
  else
    snprintf(published, sizeof published, high > 0 ? "%.3g" : "-", high);
  printf("%-7s %-62s %13s %7.3g  ", high <= 0 ? "" : met ? "met" : "MISSED", what, published, ours);
  va_list ap;
  va_start(ap, note);
  vprintf(note, ap);
  va_end(ap);
  printf("\n");
  if (high > 0) met ? v->met++ : v->missed++;
}

void row_text(const char *what, const char *published, const char *ours, const char *note) {
  printf("%-7s %-62s %13s %7s  %s\n", "", what, published, ours, note);
}

// The most that balancing can gain, from the speeds of the two kinds: sum F / (n min F).
static double bound_of(setting *x, strategy s) {
  arena *a = arena_new();
  double speed[RUN_KINDS] = {0}, sum = 0, least = INFINITY;
  hybrid_opts h = {.s = s, .train = true, .optim = x->optim, .k = x->k};
  if (!policy_speeds(x->pl, a, &h, speed)) least = NAN;
  for (u32 k = 0; k < x->m->nranks; k++) {
    const double f = speed[x->m->dev[k].kind];
    sum += f, least = fmin(least, f);
  }
  arena_free(a);
  return sum / (x->m->nranks * least);
}

// ---- 5.2: 8 V100 and 8 P100, data parallel ---------------------------------------------------------------
typedef struct {
  double low, high; // 0: not published
} range;
static void mixed_data(arena *a, verdict *v, const char *model, i64 seq, optimizer optim, range gain,
                       range computes) {
  setting_opts o = {.model = model, .machine = mixed16, .optim = optim, .seq = seq};
  const i64 each = largest_batch(o, 16, STAGE_FIRST, "dp=16");
  o.batch = 16 * each;
  setting x;
  setting_open(&x, &o);
  const outcome even = run_strategy(&x, STAGE_FIRST, "dp=16"),
                best = run_strategy(&x, STAGE_FIRST, "dp=16 dp.shares=auto");
  const double bound = bound_of(&x, strategy_of("dp=16")), slow = even.computes[1] * even.s,
               now = fmax(best.computes[0], best.computes[1]) * best.s;
  row(v, arena_printf(a, "%s, 8 V100 + 8 P100: balanced over even", model), gain.low, gain.high,
      even.s / best.s, "%lld samples a device, %s; all-reduces are %.0f %% of the balanced step",
      (long long)each, best.name, 100 * best.communicates[0]);
  row(v, "  V100 computes, balanced over even", computes.low, computes.high,
      best.computes[0] / even.computes[0], "%.0f %% to %.0f %% of the step", 100 * even.computes[0],
      100 * best.computes[0]);
  row(v, "  computation alone, balanced over even", 0, 0, slow / now, "bound from our prices: %.3f", bound);
  require(v, slow / now >= 0.98 * bound, "  %.1f %% of the bound, at least 98 %%", 100 * slow / now / bound);
  setting_close(&x);
}

// ---- 5.2: 4 V100 and 4 P100, pipelines of 4 stages, 2 replicas --------------------------------------------
static void mixed_pipeline(arena *a, verdict *v, const char *model) {
  setting_opts o = {.model = model, .machine = mixed8, .optim = OPTIM_ADAM, .seq = 128};
  const i64 micro = largest_batch(o, 16, STAGE_FIRST, "dp=2 pp=4 mb=8 layers=cost");
  o.batch = 16 * micro;
  setting x;
  setting_open(&x, &o);
  const outcome flops = run_strategy(&x, STAGE_FIRST, "dp=2 pp=4 mb=8 layers=cost"),
                equal = run_strategy(&x, STAGE_FIRST, "dp=2 pp=4 mb=8 layers=equal"),
                best = run_strategy(&x, STAGE_FIRST, "dp=2 pp=4 mb=8 layers=auto");
  row(v, arena_printf(a, "%s, 4 V100 + 4 P100, 4 stages: balanced over even", model), 1.2, 1.2,
      flops.s / best.s, "even: equal FLOP; %lld samples a microbatch; %s%s", (long long)micro, best.name,
      best.fits ? "" : "; DOES NOT FIT");
  row(v, "  the same over equal numbers of layers", 0, 0, equal.s / best.s,
      "the bound over an even split of the time is %.3f", bound_of(&x, strategy_of("dp=2 pp=4 mb=8")));
  row(v, "  V100 computes, balanced over even", 1.4, 1.4, best.computes[0] / flops.computes[0],
      "%.0f %% to %.0f %% of the step", 100 * flops.computes[0], 100 * best.computes[0]);
  setting_close(&x);
}

// ---- 5.1.1: data parallel, and pipelines beside GPipe ---------------------------------------------------
static const char *nodes_of_8(arena *a, u32 devices) {
  return devices < 8 ? arena_printf(a, "1x%u v100-32gb eth=50Gb/s", devices)
                     : arena_printf(a, "%ux8 v100-32gb eth=50Gb/s", devices / 8);
}

static void data_parallel(arena *a, verdict *v, const char *model, i64 seq, optimizer optim) {
  setting_opts o = {.model = model, .machine = nodes_of_8(a, 1), .optim = optim, .seq = seq};
  const i64 each = largest_batch(o, 1, STAGE_FIRST, "dp=1");
  o.batch = each;
  const double one = run_once(&o, STAGE_FIRST, "dp=1").s;
  for (u32 n = 8; n <= 32; n *= 2) {
    o.batch = each * n, o.machine = nodes_of_8(a, n);
    row(v, arena_printf(a, "%s, data parallel: speedup on %u V100", model, n), 0, 0,
        n * one / run_once(&o, STAGE_FIRST, arena_printf(a, "dp=%u", n)).s,
        "in a figure without numbers; %lld samples a device, nodes of 8", (long long)each);
  }
}

static void beside_gpipe(arena *a, verdict *v, u32 stages, double published) {
  setting_opts o = {.model = "bert-large", .machine = nodes_of_8(a, 8), .optim = OPTIM_ADAM, .seq = 128};
  const char *line = arena_printf(a, "dp=%u pp=%u mb=8", 8 / stages, stages);
  const i64 micro = largest_batch(o, 64 / stages, NODE_FIRST, line);
  o.batch = 64 / stages * micro;
  const double whale = run_once(&o, NODE_FIRST, line).s,
               again = run_once(&o, NODE_FIRST, arena_printf(a, "%s schedule=gpipe recompute=full", line)).s,
               keeps = run_once(&o, NODE_FIRST, arena_printf(a, "%s schedule=gpipe", line)).s;
  row(v, arena_printf(a, "bert-large, %u stages on 8 V100: 1F1B over GPipe", stages), published, published,
      again / whale, "GPipe recomputes, as its paper has it; %lld samples a microbatch", (long long)micro);
  row(v, "  the same, GPipe without recomputation", 0, 0, keeps / whale, "where it has the memory");
}

// ---- 5.1.2: nested pipelines ----------------------------------------------------------------------------
static double samples_a_second(arena *a, setting_opts o, u32 n, u32 stages, i64 micro, u32 parts) {
  o.machine = nodes_of_8(a, n), o.batch = n / stages * parts * micro;
  const char *line = arena_printf(a, "dp=%u pp=%u mb=%u", n / stages, stages, parts);
  return (double)o.batch / run_once(&o, NODE_FIRST, line).s;
}

static void nested(arena *a, verdict *v) {
  setting_opts o = {.model = "bert-large", .optim = OPTIM_ADAM, .seq = 128};
  o.machine = nodes_of_8(a, 8);
  const i64 micro = largest_batch(o, 32, NODE_FIRST, "dp=4 pp=2 mb=8");
  const double one = samples_a_second(a, o, 1, 1, micro, 8);
  for (u32 n = 8; n <= 32; n *= 2) {
    double speedup[3], more[3];
    for (u32 k = 0; k < 3; k++) {
      speedup[k] = samples_a_second(a, o, n, 2u << k, micro, 8) / one;
      more[k] = samples_a_second(a, o, n, 2u << k, micro, 35) / one;
    }
    row(v, arena_printf(a, "bert-large on %u V100: 4 stages over 2", n), 1, 1, speedup[1] / speedup[0],
        "published: similar; speedups %.1f, %.1f, %.1f with 2, 4, 8 stages; %lld samples a microbatch",
        speedup[0], speedup[1], speedup[2], (long long)micro);
    row(v, "  the same with 35 microbatches", 0, 0, more[1] / more[0], "speedups %.1f, %.1f, %.1f", more[0],
        more[1], more[2]);
    require(v, speedup[2] < 0.95 * speedup[1], "  8 stages over 4: %.2f, published as lower",
            speedup[2] / speedup[1]);
  }
}

// ---- 5.3.1: M6-10B --------------------------------------------------------------------------------------
static void m6_row(arena *a, verdict *v, placing where, i64 micro, const char *what, double published) {
  const char *line = "dp=%u pp=8 mb=35 recompute=full";
  setting_opts o = {.model = "m6-10b", .machine = "8x8 v100-32gb eth=50Gb/s", .optim = OPTIM_ADAFACTOR};
  if (!micro) micro = largest_batch(o, 8 * 35, where, arena_printf(a, line, 8u));
  o.batch = micro * 8 * 35;
  const outcome few = run_once(&o, where, arena_printf(a, line, 8u));
  o.machine = "32x8 v100-32gb eth=50Gb/s", o.batch = micro * 32 * 35;
  const outcome many = run_once(&o, where, arena_printf(a, line, 32u));
  row(v, what, published, published, few.s / many.s,
      "%lld samples a microbatch, %.1f GB; %.1f s and %.1f s a step", (long long)micro, few.peak_bytes / 1e9,
      few.s, many.s);
}

static void m6(arena *a, verdict *v) {
  m6_row(a, v, NODE_FIRST, 0, "M6-10B, 8 stages: scaling from 8 to 32 nodes", 0.91);
  m6_row(a, v, NODE_FIRST, 1, "  the same, one sample a microbatch", 0);
  m6_row(a, v, STAGE_FIRST, 1, "  the same, and replicas of a stage next to each other", 0);
}

// ---- 5.3.2: M6-MoE --------------------------------------------------------------------------------------
// The paper's Example 5: data parallel, with the experts of every layer split over all devices; and what is said beside it.
static outcome experts(arena *a, const char *model, u32 devices, i64 each, const char *beside,
                       const char *hosts) {
  static const char text[] = "heddle-annotate: 1\ndefault: {replicate: all}\n"
                             "scopes: [{match: \"*experts\", split: all}]\n";
  setting x;
  const setting_opts o = {.model = model,
                          .machine = arena_printf(a, "%ux8 v100-32gb eth=50Gb/s%s", devices / 8, hosts),
                          .half = true,
                          .optim = OPTIM_ADAFACTOR,
                          .batch = each * devices};
  setting_open(&x, &o);
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = true, .optim = x.optim, .k = x.k};
  const bool ok = strategy_parse(x.c, x.a, beside, &said) && strategy_one(x.c, &said, &h.s);
  plan *pn =
      !ok ? NULL : policy_annotated(x.pl, x.a, sym_of(x.c, "experts"), text, sizeof text - 1, &h, devices);
  const outcome y = pn ? run_plan(&x, pn) : (outcome){0};
  setting_close(&x);
  return y;
}

static void m6_moe(arena *a, verdict *v) {
  const char *full = "recompute=full";
  const outcome first = experts(a, "m6-moe-100b", 128, 4, full, ""),
                second = experts(a, "m6-moe-1t", 480, 1, full, ""),
                third = experts(a, "m6-moe-10t", 512, 1, full, ""),
                fourth = experts(a, "m6-moe-10t", 512, 1, "recompute=full offload=params+grads+states",
                                 " hostmem=1.5TiB");
  row(v, "M6-MoE 100B on 128 V100: days for 100 million samples", 0, 0, 1e8 / (128 * 4) * first.s / 86400,
      "published: 1.5. Its tokens a sample are not known (here 528), nor what overlaps; %.1f GB",
      first.peak_bytes / 1e9);
  require(v, first.ok && first.fits, "M6-MoE 100B fits 128 V100: %.1f GB a device", first.peak_bytes / 1e9);
  require(v, second.ok && second.fits,
          "M6-MoE 1T fits 480 V100: %.1f GB a device; %.1f s a step of 480 samples", second.peak_bytes / 1e9,
          second.s);
  require(v, third.ok && !third.fits,
          "M6-MoE 10T is refused on 512 V100 without offloading: %.1f GB a device of 34; its weights alone "
          "in f16 "
          "are 20 TB of 16.4",
          third.peak_bytes / 1e9);
  require(
      v, fourth.ok && fourth.fits,
      "M6-MoE 10T trains on them with offload=params+grads+states: %.1f GB a device, %.2f TiB of a host's "
      "assumed 1.5; %.1f s a step of 512 samples",
      fourth.peak_bytes / 1e9, fourth.host_bytes / 0x1p40, fourth.s);
}

void reproduce_whale(ctx *c, verdict *v) {
  arena *a = ctx_arena(c);
  printf("== Whale's section 5 (assumed throughout: bench/reproduce/whale.c); met: within 5 %%\n");
  printf("%-7s %-62s %13s %7s  %s\n", "", "what", "published", "ours", "note");
  const range gain = {1.3, 1.4}, computes = {1.39, 1.96}, none = {0, 0};
  mixed_data(a, v, "resnet50", 0, OPTIM_MOMENTUM, gain, computes);
  mixed_data(a, v, "bert-large", 128, OPTIM_ADAM, gain, computes);
  mixed_data(a, v, "gnmt", 0, OPTIM_ADAM, gain, computes);
  mixed_data(a, v, "t5-large", 128, OPTIM_ADAM, none, none);
  mixed_pipeline(a, v, "bert-large");
  mixed_pipeline(a, v, "t5-large");
  data_parallel(a, v, "resnet50", 0, OPTIM_MOMENTUM);
  data_parallel(a, v, "bert-large", 128, OPTIM_ADAM);
  beside_gpipe(a, v, 4, 1.45);
  beside_gpipe(a, v, 8, 1.14);
  nested(a, v);
  whale_hybrid(a, v);
  m6(a, v);
  m6_moe(a, v);
  printf("\n");
}
