// main.c - how far published measurements lie from the prices of the presets, by the figure that decides the
// price: the sections `spread` of machines/devices.yaml and the rows of src/machine/spreads.def. `make
// spreads`; the tables are sought in $HEDDLE_DATA.
//
// The spread of a class is the value that 68.3 % of |measured / price - 1| do not exceed: what lies to one
// side counts as much as what scatters. Classes of fewer than MIN_COUNT measurements are unknown. With
// SPREADS_BIAS=1 the median of measured / price stands beside every class.
#include "cost/cost.h"
#include <math.h>
#include <stdlib.h>

enum { MIN_COUNT = 8, CLASSES = 64 };
typedef struct {
  const char *name;
  VEC(double) ratio, weight;
} class;
typedef struct {
  arena *a;
  class v[CLASSES];
  u32 n;
} classes;

static void add(classes *k, const char *name, double ps, double measured_us, double weight) {
  u32 i = 0;
  if (ps <= 0 || measured_us <= 0) return;
  while (i < k->n && strcmp(k->v[i].name, name)) i++;
  if (i == CLASSES) return;
  if (i == k->n) k->v[k->n++].name = arena_strdup(k->a, name);
  *vec_push(k->a, &k->v[i].ratio) = measured_us * 1e6 / ps;
  *vec_push(k->a, &k->v[i].weight) = weight;
}

typedef struct {
  double x, w;
} weighed;
static int by_x(const void *a, const void *b) {
  const weighed *x = a, *y = b;
  return x->x < y->x ? -1 : x->x > y->x;
}
// What this part of the weight does not exceed.
static double quantile(arena *a, const class *k, bool off, double part) {
  weighed *v = NEWN(a, weighed, k->ratio.n);
  double all = 0, sum = 0;
  for (u32 i = 0; i < k->ratio.n; i++) {
    v[i] = (weighed){off ? fabs(k->ratio.v[i] - 1) : k->ratio.v[i], k->weight.v[i]};
    all += v[i].w;
  }
  qsort(v, k->ratio.n, sizeof *v, by_x);
  u32 i = 0;
  while (i + 1 < k->ratio.n && (sum += v[i].w) < part * all) i++;
  return v[i].x;
}

// "1 GFLOP" of "a100: f16 gemm from 100 MFLOP to 1 GFLOP" and of "... up to 1 GFLOP"; else "more".
static const char *upper(const char *name) {
  const char *to = strstr(name, " to ");
  return to ? to + 4 : "more";
}
// "100 MFLOP" of the first, and of "... above 100 MFLOP"; else NULL.
static const char *lower(arena *a, const char *name) {
  const char *from = strstr(name, " from "), *above = strstr(name, " above ");
  return from    ? arena_strndup(a, from + 6, (size_t)(strstr(from, " to ") - from - 6))
         : above ? above + 7
                 : NULL;
}
static double size_of(const class *c) {
  double x;
  unit_kind unit;
  return unit_read(upper(c->name), &x, &unit) ? x : HUGE_VAL;
}
static int by_size(const void *a, const void *b) {
  const double x = size_of(a), y = size_of(b);
  return x < y ? -1 : x > y;
}

// The classes whose names begin so, as one key of a section `spread`.
static void print(classes *k, const char *begin, const char *key) {
  const bool bias = getenv("SPREADS_BIAS") != NULL;
  const char *before = "";
  qsort(k->v, k->n, sizeof *k->v, by_size);
  for (u32 i = 0; i < k->n; i++) {
    class *c = &k->v[i];
    if (strncmp(c->name, begin, strlen(begin))) continue;
    const bool sizes = strstr(c->name, " to ") || strstr(c->name, " above ") || strstr(c->name, " in ");
    printf(*before ? ", " : sizes ? "        %s: {" : "        %s: ", key);
    if (!*before && lower(k->a, c->name)) printf("%s: unknown, ", lower(k->a, c->name));
    if (sizes) printf("%s: ", upper(c->name));
    if (c->ratio.n < MIN_COUNT)
      printf("unknown");
    else
      printf("%.3g %% of %u", 100 * quantile(k->a, c, true, 0.683), c->ratio.n);
    if (bias && c->ratio.n >= MIN_COUNT) printf(" (median %.2f)", quantile(k->a, c, false, 0.5));
    before = sizes ? "}" : " ";
  }
  if (*before) puts(before);
}

static void print_products(classes *k, const char *kind) {
  print(k, arena_printf(k->a, "%s: launch of f16 gemm", kind), "launch");
  print(k, arena_printf(k->a, "%s: f16 gemm", kind), "gemm");
  print(k, arena_printf(k->a, "%s: memory of f16 gemm", kind), "memory");
}

// ---- tables ------------------------------------------------------------------------------------------

static FILE *table(const char *name) {
  const char *folder = getenv("HEDDLE_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/calibration/%s", folder ? folder : "data", name);
  FILE *in = fopen(path, "r");
  if (!in) fprintf(stderr, "%s is not there: HEDDLE_DATA=FOLDER make spreads\n", path);
  return in;
}

// Fields of one line, in place; a quoted one may hold commas.
static u32 fields(char *line, char **f, u32 max) {
  u32 n = 0;
  line[strcspn(line, "\r\n")] = 0;
  for (char *s = line; s && n < max;) {
    const char *end = *s == '"' ? strchr(s + 1, '"') : s;
    f[n++] = s;
    s = end ? strchr(end, ',') : NULL;
    if (s) *s++ = 0;
  }
  return n;
}

// ---- products ----------------------------------------------------------------------------------------

typedef struct {
  ctx *c;
  arena *a;
  machine *m;
  cost_model *k;
  prog *p;
  group g;
} bed;

// Without the spreads that the machine has: they would divide the classes.
static bed bed_new(const char *spec) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.m = machine_load(b.c, b.a, spec);
  if (!b.m) fprintf(stderr, "%s", diag_render(b.c, b.a)), exit(1);
  for (u32 i = 0; i < b.m->nkinds; i++) b.m->kind[i].spread.n = 0;
  b.k = cost_model_new(b.c, b.a, b.m, NULL);
  b.p = prog_new(b.c);
  const u8 axis = axis_add(b.p->sp, sym_of(b.c, "one"), 1, false);
  b.g = group_all(b.p->sp, mesh_add(b.p->sp, sym_of(b.c, "m"), &axis, 1, 0, NULL));
  return b;
}
static void bed_free(bed *b) {
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static void add_product(bed *b, classes *k, i64 m, i64 n, i64 depth, double us) {
  const shape s[3] = {{DT_F16, 2, {m, depth}}, {DT_F16, 2, {depth, n}}, {DT_F16, 2, {m, n}}};
  type t[3];
  u32 o[2];
  for (u32 i = 0; i < 3; i++) t[i] = type_tensor(b->p, &s[i], (layout){0}, b->g);
  func f = func_new(b->p, sym_fmt(b->c, "f%u", b->p->funcs.n), (loc){0});
  for (u32 i = 0; i < 2; i++) o[i] = func_param(b->p, f, t[i], (sym){0}, ROLE_INPUT);
  builder bl = builder_at(b->p, f);
  bl.g = b->g;
  const u32 i = emit(&bl, OP_matmul, (attrset){0}, o, 2, &t[2], 1);
  const func_info *fi = func_get(b->p, f);
  cost_info cost;
  cost_event e;
  if (cost_explain(b->k, b->p, fi, &fi->body.v[i - 1], b->g, 0, &cost, &e))
    add(k, cost_model_row(b->k, cost.row)->figure, (double)cost.ps, us, 1);
}

static void products(const char *gpu, const char *spec) {
  FILE *in = table("gemm.csv");
  bed b = bed_new(spec);
  classes k = {.a = b.a};
  char line[2048], *f[9];
  while (in && fgets(line, sizeof line, in)) {
    if (fields(line, f, 9) < 9 || strcmp(f[1], gpu) || (strcmp(f[0], "gemm") && strncmp(f[0], "gemm:", 5)) ||
        (strcmp(f[2], "bf16") && strcmp(f[2], "fp16")))
      continue;
    add_product(&b, &k, atoll(f[3]), atoll(f[4]), atoll(f[5]), atof(f[8]));
  }
  printf("%s: products\n", gpu);
  print_products(&k, sym_str(b.c, b.m->kind[0].name));
  if (in) fclose(in);
  bed_free(&b);
}

// ---- communication -----------------------------------------------------------------------------------

static const char *size_class(opcode op, i64 bytes) {
  if (op == OP_send) return bytes <= 1 << 20 ? " to 1 MiB" : "";
  return bytes <= 64 << 10   ? " to 64 KiB"
         : bytes <= 1 << 20  ? " to 1 MiB"
         : bytes <= 16 << 20 ? " to 16 MiB"
                             : "";
}

static const struct {
  const char *name;
  opcode op;
} ops[] = {{"all_reduce", OP_all_reduce},
           {"all_gather", OP_all_gather},
           {"reduce_scatter", OP_reduce_scatter},
           {"alltoall", OP_all_to_all},
           {"send_recv", OP_send}};

typedef struct {
  const char *gpu, *wire; // wire: how the interconnect begins
  u32 nodes;
  const char *spec;
  double weight;
} source;

// n ranks, evenly on the nodes.
static void add_comm(classes *k, cost_model *c, opcode op, i64 bytes, u32 n, u32 nodes, u32 per_node,
                     double us, double w) {
  u32 *ranks = NEWN(k->a, u32, n);
  for (u32 i = 0; i < n; i++) ranks[i] = i / (n / nodes) * per_node + i % (n / nodes);
  add(k, arena_printf(k->a, "%s in bytes%s", op_row_of(op)->name, size_class(op, bytes)),
      (double)cost_comm(c, op, bytes, ranks, n, DT_F16), us, w);
}

static void collectives(classes *k, const source *s) {
  FILE *in = table("collectives.csv");
  ctx *c = ctx_new();
  const machine *m = machine_load(c, k->a, s->spec);
  cost_model *cost = cost_model_new(c, k->a, m, NULL);
  char line[2048], *f[11];
  while (in && fgets(line, sizeof line, in)) {
    if (fields(line, f, 11) < 11 || strcmp(f[1], s->gpu) || strncmp(f[5], s->wire, strlen(s->wire)) ||
        (u32)atoi(f[3]) != s->nodes || (u32)atoi(f[2]) < 2 || !*f[10])
      continue;
    for (u32 i = 0; i < COUNT_OF(ops); i++)
      if (!strcmp(ops[i].name, f[0]))
        add_comm(k, cost, ops[i].op, atoll(f[8]), (u32)atoi(f[2]), s->nodes, m->nranks / m->nnodes,
                 atof(f[10]), s->weight);
  }
  if (in) fclose(in);
  ctx_free(c);
}

// Logs of nccl-tests on 2 to 512 nodes of four devices: "  0:  size count type redop root time ...".
static void logs(classes *k, const char *folder, u32 first_job, u32 nodes, double weight) {
  FILE *in =
      table(arena_printf(k->a, "alps/%s/job-n-%05u-N-%04u-%u.out", folder, 4 * nodes, nodes, first_job));
  ctx *c = ctx_new();
  const machine *m = machine_load(c, k->a, arena_printf(k->a, "%ux4 h100 mesh=450GB/s ib=4x200Gb/s", nodes));
  cost_model *cost = cost_model_new(c, k->a, m, NULL);
  char line[2048];
  long long bytes;
  double us;
  while (in && fgets(line, sizeof line, in))
    if (sscanf(line, " 0: %lld %*d float sum -1 %lf", &bytes, &us) == 2 && bytes >= 512)
      add_comm(k, cost, OP_all_reduce, bytes, 4 * nodes, nodes, 4, us, weight);
  if (in) fclose(in);
  ctx_free(c);
}

static void print_ops(classes *k) {
  for (u32 i = 0; i < COUNT_OF(ops); i++)
    print(k, arena_printf(k->a, "%s in bytes", op_row_of(ops[i].op)->name), op_row_of(ops[i].op)->name);
}

int main(void) {
  static const char *const gpus[][2] = {{"A100-SXM-80GB", "1x1 a100"},
                                        {"H100-SXM-80GB", "1x1 h100"},
                                        {"H200-SXM-141GB", "1x1 h200"},
                                        {"B200-SXM", "1x1 b200"},
                                        {"A40", "1x1 a40"}};
  // Not of A40: it is not said whether a bridge joins the two that were measured.
  static const source inside[] = {{"A100-SXM-80GB", "NV", 1, "dgx-a100-80", 1},
                                  {"H100-SXM-80GB", "NV", 1, "dgx-h100", 1},
                                  {"H200-SXM-141GB", "NV", 1, "1x8 h200", 1},
                                  {"B200-SXM", "NV", 1, "1x8 b200", 1}};
  // Every system counts the same, however often it was measured.
  static const source between[] = {{"A100-SXM-80GB", "AWS", 2, "2x8 a100 ib=4x100Gb/s", 1.0 / 22},
                                   {"H100-SXM-80GB", "AWS p5.48", 2, "2x8 h100 ib=8x400Gb/s", 1.0 / 25},
                                   {"A100-SXM-80GB", "NVSwitch", 2, "dgx-a100-80*2", 1.0 / 80},
                                   {"H100-SXM-80GB", "NVSwitch", 2, "dgx-h100*2", 1.0 / 80}};
  for (u32 i = 0; i < COUNT_OF(gpus); i++) products(gpus[i][0], gpus[i][1]);
  for (u32 i = 0; i < COUNT_OF(inside); i++) {
    classes k = {.a = arena_new()};
    collectives(&k, &inside[i]);
    printf("%s: inside a node\n", inside[i].gpu);
    print_ops(&k);
    arena_free(k.a);
  }
  classes k = {.a = arena_new()};
  for (u32 i = 0; i < COUNT_OF(between); i++) collectives(&k, &between[i]);
  static const u32 job[2][9] = {{142996, 142997, 142998, 142999, 143000, 143004, 143005, 143006, 143007},
                                {142909, 142910, 142911, 142912, 142913, 142945, 142946, 142947, 142948}};
  for (u32 n = 0; n < 9; n++)
    for (u32 v = 0; v < 2; v++)
      logs(&k, v ? "nccl-tests_nccl-2.23.4-1-aws-1.9.2-v0" : "nccl-tests_nccl-2.23.4-1-aws-1.13.0-v0",
           job[v][n], 2u << n, 1.0 / 432);
  printf("between nodes\n");
  print_ops(&k);
  arena_free(k.a);
  return 0;
}
