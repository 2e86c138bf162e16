// sailor.c - measured steps of OPT-350M (Sailor, SOSP 2025), on nodes of one kind and on mixed ones, beside
// what a plan takes when its layers have Sailor's measured times.
//
// From its files: the layers of every stage, replicas, tensor degrees and microbatches of every run; seconds of
// every layer by kind of device, microbatch and tensor degree; hidden 1024, 24 layers, 2,048 tokens, vocabulary
// 50,272, Adam; memory of the devices; bandwidth between nodes as its tables give it for large messages:
// 0.1157 GB/s from a node of RTX 3090, 2.857 GB/s from the other RTX nodes, 22.9 GB/s from each of the four
// NICs of a GH200 node. Assumed: f32, since the memory of its runs is f32's; sends between stages wait for
// their receiver, as its pipeline's blocking sends do; the rows under "overlapped" are without that.
#include "run.h"

static const char *const kinds = "name: nodes\n"
                                 "about: nodes of one run\n"
                                 "devices:\n"
                                 "  rtx-3090: {like: v100, memory: 25769803776 B, usable: 25769803776 B}\n"
                                 "  rtx-2080: {like: v100, memory: 11811160064 B, usable: 11811160064 B}\n"
                                 "  titan-rtx: {like: v100, memory: 25769803776 B, usable: 25769803776 B}\n"
                                 "  gh-96: {like: h100, memory: 102625181696 B, usable: 102625181696 B}\n"
                                 "fabric: {efficiency: 1}\n"
                                 "nodes:\n";
static const struct {
  const char *name, *device, *link, *nics;
} node_of[] = {{"RTX-3090", "rtx-3090", "5.3 GB/s", "0.1157 GB/s"},
               {"RTX-2080", "rtx-2080", "24 GB/s", "2.857 GB/s"},
               {"Titan-RTX", "titan-rtx", "24 GB/s", "2.857 GB/s"},
               {"GH-96", "gh-96", "250 GB/s", "4 x 22.9 GB/s"}};

static u32 kind_of(const char *name) {
  for (u32 i = 0; i < COUNT_OF(node_of); i++)
    if (!strncmp(name, node_of[i].name, strlen(node_of[i].name))) return i;
  return COUNT_OF(node_of);
}

// Its layers are the embedding, 24 blocks and the head; of blocks the mean.
static const char *times_of(arena *a, const table *t) {
  enum { BLOCKS = 24 };
  static const char *const what[] = {"fwd_s", "bwd_s", "update_s"};
  strbuf b = {.a = a};
  sb_fmt(&b, "layer,device,samples,tensor,forward_us,backward_us,update_us\n");
  for (u32 i = 0; i < t->rows; i++) {
    const u32 kind = kind_of(table_text(t, i, "device"));
    if (strcmp(table_text(t, i, "model"), "OPT-350") || kind == COUNT_OF(node_of)) continue;
    if (table_number(t, i, "first_layer") > 0) continue; // a profile begins at its layer 0
    double us[3][3] = {{0}};
    for (u32 k = i; k < t->rows && (k == i || table_number(t, k, "first_layer") > 0); k++)
      for (u32 n = 0; n < (u32)table_number(t, k, "count"); n++) {
        const u32 layer = (u32)table_number(t, k, "first_layer") + n, part = !layer            ? 0
                                                                             : layer <= BLOCKS ? 1
                                                                                               : 2;
        for (u32 d = 0; d < 3; d++)
          us[part][d] += table_number(t, k, what[d]) * 1e6 / (part == 1 ? BLOCKS : 1);
      }
    for (u32 part = 0; part < 3; part++)
      sb_fmt(&b, "%s,%s,%s,%s,%.3f,%.3f,%.3f\n",
             part == 0   ? "first"
             : part == 1 ? "layer"
                         : "last",
             node_of[kind].device, table_text(t, i, "micro_batch"), table_text(t, i, "tp"), us[part][0],
             us[part][1], us[part][2]);
  }
  return sb_str(&b);
}

typedef struct {
  const char *machine; // nodes in the order of stages and their replicas
  u32 dp, tp, pp;
  const char *layers; // blocks of every stage
  bool mixed;
} run;

static run run_of(arena *a, const table *t, u32 row) {
  strbuf m = {.a = a}, layers = {.a = a};
  run r = {.pp = 1};
  const char *stages = table_text(t, row, "stages(replica kindxcount:tp)"),
             *each = table_text(t, row, "layers_per_stage");
  u32 first = COUNT_OF(node_of), replicas = 0;
  sb_fmt(&m, "%s", kinds);
  for (const char *s = stages; *s;) {
    const u32 kind = kind_of(s);
    if (kind == COUNT_OF(node_of)) break;
    const char *x = s + strlen(node_of[kind].name) + 1; // x4:tp4
    char *end;
    const unsigned long count = strtoul(x, &end, 10);
    r.tp = (u32)strtoul(end + strlen(":tp"), &end, 10);
    sb_fmt(&m, "  - {count: 1, devices: %lu %s, link: switch %s, nics: %s}\n", count, node_of[kind].device,
           node_of[kind].link, node_of[kind].nics);
    if (first == COUNT_OF(node_of)) first = kind;
    r.mixed |= kind != first, replicas++;
    r.pp += *end == ' ';
    s = end + strspn(end, "; |");
  }
  r.dp = replicas / r.pp;
  for (u32 i = 0; i < r.pp; i++) {
    char *end;
    sb_fmt(&layers, "%s%lu", i ? "/" : "", strtoul(each, &end, 10) - (i == 0) - (i + 1 == r.pp));
    each = end + (*end == '|');
  }
  r.layers = sb_str(&layers), r.machine = sb_str(&m);
  return r;
}

// What the data's own notes doubt: a step that repeats another run's or its own reduction, and steps that are
// faster than the layers that make them.
static bool suspect(const table *t, u32 row) {
  const char *file = table_text(t, row, "file"), *cluster = table_text(t, row, "cluster");
  const bool gh = !strcmp(cluster, "clariden");
  return gh ? strstr(file, "_N1_") || strstr(file, "_N4_") : strstr(file, "N6_D2") != NULL;
}

void reproduce_sailor(ctx *c, verdict *v) {
  arena *a = ctx_arena(c);
  printf("== Sailor's runs of OPT-350M, its measured times of layers as prices\n");
  table *runs = table_read(a, "hetero/sailor_measured_runs.csv"),
        *layers = table_read(a, "hetero/sailor_layer_profiles.csv");
  if (!runs || !layers) {
    printf("skipped: no data (HEDDLE_DATA says where it is)\n\n");
    v->skipped++;
    return;
  }
  const char *times = times_of(a, layers);
  double sum[2] = {0}; // of errors: all, mixed
  u32 n[2] = {0};
  printf("%-20s %-32s %9s %9s %7s %10s %9s %8s\n", "run", "plan", "measured", "ours", "error", "overlapped",
         "peak GB", "ours");
  for (u32 i = 0; i < runs->rows; i++) {
    if (strcmp(table_text(runs, i, "model"), "OPT-350")) continue;
    const run r = run_of(a, runs, i);
    const setting_opts o = {.model = "gpt2-medium:vocab=50272,positions=2048",
                            .machine = "nodes",
                            .machine_text = r.machine,
                            .times = times,
                            .optim = OPTIM_ADAM,
                            .batch = (i64)table_number(runs, i, "global_batch"),
                            .seq = 2048};
    const char *line =
        arena_printf(a, "dp=%u tp=%u pp=%u mbs=%s%s", r.dp, r.tp, r.pp, table_text(runs, i, "micro_batch"),
                     r.pp > 1 ? arena_printf(a, " layers=%s", r.layers) : "");
    const outcome free = run_once(&o, STAGE_FIRST, line),
                  wait =
                      r.pp == 1 ? free : run_once(&o, STAGE_FIRST, arena_printf(a, "%s overlap=none", line));
    const double measured = table_number(runs, i, "iteration_s"), error = wait.s / measured - 1;
    const bool doubt = suspect(runs, i);
    printf("%-20s %-32s %9.3f %9.3f %+6.1f%% %+9.1f%% %9.2f %8.2f%s\n",
           arena_printf(a, "%s %s nodes", table_text(runs, i, "cluster"), table_text(runs, i, "N_nodes")),
           line, measured, wait.s, 100 * error, 100 * (free.s / measured - 1),
           table_number(runs, i, "peak_mem_bytes") / 1e9, wait.peak_bytes / 1e9, doubt ? "  suspect" : "");
    for (u32 k = 0; k < 2; k++)
      if (!doubt && wait.ok && (!k || r.mixed)) sum[k] += fabs(error), n[k]++;
    if (!wait.ok) require(v, false, "a plan that ran is refused");
  }
  require(v, n[0] && sum[0] / n[0] <= 0.10, "mean error of %u runs %.1f %%, at most 10 %%", n[0],
          100 * sum[0] / n[0]);
  printf("mean error of the %u mixed ones %.1f %%; a formula without communication errs by 30 %%\n\n", n[1],
         100 * sum[1] / n[1]);
}
