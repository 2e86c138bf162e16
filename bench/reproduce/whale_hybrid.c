// whale_hybrid.c - ResNet-50 with 100,000 and 1,000,000 classes on V100 of 8 a node: data parallel, and
// Whale's hybrid, features data parallel and the classifier split over the same devices (section 5.1.2 to
// 5.1.4). The hybrids are plan files of two meshes over the same ranks.
#include "whale.h"

typedef enum { SP1, SP2 } sharding; // the classifier's weight split by columns; by rows, its products summed

static const char *const plan_text = "heddle-plan: 1\n"
                                     "name: \"features by samples, classifier by %s\"\n"
                                     "train: {optimizer: momentum}\n"
                                     "axes: {dp: %u, tp: %u}\n"
                                     "meshes:\n"
                                     "  data: {axes: [dp]}\n"
                                     "  classes: {axes: [tp]}\n"
                                     "segments:\n"
                                     "  - {from: 1, to: %u, on: data}\n"
                                     "  - {from: %u, to: %u, on: classes}\n"
                                     "trans:\n"
                                     "  - {input: image, dim: 0, axis: dp}\n"
                                     "  - {in: main, instr: %u, op: matmul, operand: 1, dim: %u, axis: tp}\n"
                                     "order:\n"
                                     "  - \"F0.0 B0.0\"\n"
                                     "  - \"F1.0 B1.0\"\n";

static outcome hybrid(arena *a, const setting_opts *o, u32 n, sharding by) {
  setting x;
  setting_open(&x, o);
  const prog *src = planner_source(x.pl);
  const func_info *f = func_get(src, src->main);
  u32 head = 0;
  while (f->body.v[head].op != OP_matmul) head++; // the classifier begins there
  const char *text = arena_printf(a, plan_text, by == SP1 ? "columns" : "rows", n, n, head, head + 1,
                                  f->body.n, head + 1, by == SP1 ? 1u : 0u);
  plan *pn = plan_parse(x.a, src, NULL, sym_of(x.c, "hybrid"), text, strlen(text));
  const outcome out = run_plan(&x, pn);
  setting_close(&x);
  return out;
}

typedef struct {
  outcome data, sp1, sp2;
  double forward; // of data
} point;

// The step if its communication ran beside the backward.
static double beside_backward(const outcome *x, double forward) {
  const double computes = x->computes[0] * x->s, communicates = x->communicates[0] * x->s;
  return forward + fmax(computes - forward, communicates);
}

static setting_opts opts_of(arena *a, u32 n, i64 each, i64 nclasses) {
  return (setting_opts){.model = "resnet50",
                        .machine = arena_printf(a, "%ux8 v100-32gb eth=50Gb/s", n / 8),
                        .optim = OPTIM_MOMENTUM,
                        .batch = each * n,
                        .classes = nclasses};
}

static outcome data_only(arena *a, const setting_opts *o, u32 n) {
  return run_once(o, STAGE_FIRST, arena_printf(a, "dp=%u", n));
}

// The batch of a device with which the first point, 8 devices, is as published: the one free assumption.
static i64 batch_of_first_point(arena *a, double published) {
  i64 best = 0;
  double off = INFINITY;
  for (i64 each = 8; each <= 128; each += 8) {
    const setting_opts o = opts_of(a, 8, each, 100000);
    const double gain = data_only(a, &o, 8).s / hybrid(a, &o, 8, SP1).s;
    if (fabs(gain - published) < off) off = fabs(gain - published), best = each;
  }
  return best;
}

static void classes_1m(arena *a, verdict *v, i64 each, double forward) {
  const setting_opts few = opts_of(a, 8, each, 1000000), many = opts_of(a, 32, each, 1000000);
  const outcome data = data_only(a, &few, 8), eight = hybrid(a, &few, 8, SP1),
                all = hybrid(a, &many, 32, SP1);
  row_text("  1,000,000 classes, data parallel on 8 V100", "no memory", data.fits ? "fits" : "too big",
           arena_printf(a, "%.1f GB on each", data.peak_bytes / 1e9));
  require(v, data.ok && !data.fits, "  data parallel does not fit");
  row(v, "  1,000,000 classes, hybrid: scaling from 8 to 32 V100", 0.95, 0.95, eight.s / all.s,
      "%.0f ms and %.0f ms a step; %.1f GB on each of 8; %.3f were communication hidden", 1e3 * eight.s,
      1e3 * all.s, eight.peak_bytes / 1e9, beside_backward(&eight, forward) / beside_backward(&all, forward));
  require(v, eight.fits && all.fits, "  the hybrid fits");
}

void whale_hybrid(arena *a, verdict *v) {
  static const double gain[] = {1.13, 1.66, 2.43}, pattern[] = {1.6, 0, 3.75};
  const i64 each = batch_of_first_point(a, gain[0]);
  point at[3];
  for (u32 k = 0; k < 3; k++) {
    const u32 n = 8u << k;
    const setting_opts o = opts_of(a, n, each, 100000);
    setting_opts forward = o;
    forward.infer = true;
    at[k] = (point){data_only(a, &o, n), hybrid(a, &o, n, SP1), hybrid(a, &o, n, SP2),
                    data_only(a, &forward, n).s};
    const point *x = &at[k];
    row(v, arena_printf(a, "resnet50, 100,000 classes, %u V100: hybrid over data parallel", n),
        k ? gain[k] : 0, k ? gain[k] : 0, x->data.s / x->sp1.s,
        "%s%lld samples a device; %.0f ms and %.0f ms a step",
        k ? "" : "1.13 published, by which the batch was chosen: ", (long long)each, 1e3 * x->data.s,
        1e3 * x->sp1.s);
    row(v, "  the same, were communication hidden behind the backward", 0, 0,
        beside_backward(&x->data, x->forward) / beside_backward(&x->sp1, x->forward),
        "by arithmetic: %.0f ms of communication, %.0f ms forward", 1e3 * x->data.communicates[0] * x->data.s,
        1e3 * x->forward);
    row(v, "  SP1 over SP2", pattern[k], pattern[k], x->sp2.s / x->sp1.s, "%.0f ms a step with SP2",
        1e3 * x->sp2.s);
  }
  for (u32 k = 0; k < 3; k += 2)
    row(v, arena_printf(a, "  the bridge between the two parts, of the step on %u V100", 8u << k),
        k ? 0.1 : 0.06, k ? 0.1 : 0.06, at[k].sp1.bridge,
        "%.2f ms; all-reduces are %.0f %% of the step of data parallel", 1e3 * at[k].sp1.bridge * at[k].sp1.s,
        100 * at[k].data.communicates[0]);
  row(v, "  hybrid: scaling from 8 to 32 V100", 0, 0, at[0].sp1.s / at[2].sp1.s,
      "published: near-linear; %.3f were communication hidden",
      beside_backward(&at[0].sp1, at[0].forward) / beside_backward(&at[2].sp1, at[2].forward));
  classes_1m(a, v, each, at[0].forward);
}
