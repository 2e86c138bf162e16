// memory.c - what `heddle run` holds beside what `heddle sim` says: of every rank the largest resident set of its process less that
// at start-up, and the tensors that its steps hold at once. Without MPI nothing is measured. HEDDLE is the program.
#include "bench.h"
#define MIB (double)(1 << 20)

typedef struct {
  const char *model, *load, *strategy;
  int ranks;
} job;
#define MLP    "mlp-xs:layers=8,hidden=2048", "--batch 64"
#define GPT    "gpt2:layers=6,vocab=16384", "--batch 4 --seq 128"
#define BERT   "bert-base:layers=6,vocab=16384", "--batch 4 --seq 128"
#define T5     "t5-small", "--batch 4 --seq 128"
#define MOE    "moe-8x125m:layers=2,hidden=512,heads=8,ffn=2048,vocab=8192", "--batch 4 --seq 128"
#define RESNET "resnet50", "--batch 4"
static const job jobs[] = {{MLP, "dp=1", 1},
                           {MLP, "dp=2", 2},
                           {MLP, "tp=2", 2},
                           {MLP, "pp=2 mb=2", 2},
                           {MLP, "dp=2 zero=3", 2},
                           {GPT, "dp=1", 1},
                           {GPT, "dp=2 overlap=dp", 2},
                           {GPT, "tp=2", 2},
                           {GPT, "pp=2 mb=4 schedule=1f1b", 2},
                           {BERT, "dp=1 recompute=full", 1},
                           {BERT, "dp=2 zero=1", 2},
                           {BERT, "pp=2 mb=2 schedule=zb-h1", 2},
                           {T5, "dp=1", 1},
                           {T5, "tp=2", 2},
                           {T5, "pp=2 mb=2", 2},
                           {MOE, "dp=1", 1},
                           {MOE, "dp=2", 2},
                           {MOE, "tp=2", 2},
                           {RESNET, "dp=1", 1},
                           {RESNET, "dp=2", 2}};

typedef struct {
  double process, tensors; // off from what is simulated, in %: the worst rank
  u32 plans;
} worst;

static const json *output_of(ctx *c, const char *line) {
  arena *a = ctx_arena(c);
  FILE *f = popen(line, "r");
  strbuf s = {.a = a};
  char text[4096];
  for (size_t n; f && (n = fread(text, 1, sizeof text, f)) > 0;)
    for (size_t k = 0; k < n; k++) sb_char(&s, text[k]);
  const int status = f ? pclose(f) : -1;
  return status || !s.n ? NULL : json_parse(c, a, sym_of(c, "output"), sb_str(&s), s.n);
}

static double number(const json *of, const char *key) {
  const json *x = of ? json_get(of, key) : NULL;
  return x && x->kind == JSON_NUM ? x->num : 0;
}

// Of the rank class that the rank is in: two ranks are one class, or each its own.
static double simulated(const json *memory, u32 rank) {
  const json *of = &memory->item[0];
  for (u32 k = 0; k < memory->n; k++)
    if (number(&memory->item[k], "first_rank") <= rank) of = &memory->item[k];
  return number(of, "peak_bytes");
}

static void note(double *most, double is, double should) { *most = fmax(*most, fabs(is / should - 1) * 100); }

// EACH=1: where a rank's bytes are.
static void tell(const json *rank, u32 number_of, double should) {
  static const char *const parts[] = {"place_bytes", "library_bytes", "shared_bytes", "other_bytes"};
  const double grown = number(rank, "process_bytes") - number(rank, "start_bytes");
  printf("    rank %u: simulated %.1f MiB, resident %.1f (%+.2f %%):", number_of, should / MIB, grown / MIB,
         (grown / should - 1) * 100);
  for (u32 k = 0; k < COUNT_OF(parts); k++)
    printf(" %s %.1f", parts[k], (number(rank, parts[k]) - (k ? 0 : should)) / MIB);
  puts("");
}

// False: ranks cannot be started here.
static bool measure(const job *j, worst *of) {
  const char *given = getenv("HEDDLE"), *heddle = given ? given : "build/heddle";
  char what[512], line[768];
  ctx *c = ctx_new();
  snprintf(what, sizeof what, "%s %s --train --optimizer adam --strategy '%s' --json", j->model, j->load,
           j->strategy);
  snprintf(line, sizeof line, "%s run %s --steps 2 2>/dev/null", heddle, what);
  const json *run = output_of(c, line), *held = run ? json_get(run, "memory") : NULL;
  snprintf(line, sizeof line, "%s sim %s --machine '1x%d cpu-core'", heddle, what, j->ranks);
  const json *sim = held ? output_of(c, line) : NULL, *said = sim ? json_get(sim, "memory") : NULL;
  worst own = {0};
  for (u32 k = 0; said && k < held->n; k++) {
    const json *rank = &held->item[k];
    if (getenv("EACH")) tell(rank, k, simulated(said, k));
    note(&own.process, number(rank, "process_bytes") - number(rank, "start_bytes"), simulated(said, k));
    note(&own.tensors, number(rank, "tensor_bytes"), simulated(said, k));
  }
  if (said) {
    printf("  %s %s: %.0f MiB simulated, process %.1f %% off, tensors %.2f %%\n", j->model, j->strategy,
           simulated(said, 0) / MIB, own.process, own.tensors);
    of->process = fmax(of->process, own.process), of->tensors = fmax(of->tensors, own.tensors), of->plans++;
  }
  ctx_free(c);
  return said;
}

int main(void) {
  static char name[3][128];
  worst products = {0}, images = {0};
  for (u32 k = 0; k < COUNT_OF(jobs); k++)
    if (!measure(&jobs[k], strcmp(jobs[k].model, "resnet50") ? &products : &images)) {
      if (k) return 1;
      puts("memory: ranks cannot be started here: nothing is measured");
      return bench_end();
    }
  snprintf(name[0], sizeof name[0],
           "resident less at start-up, off from simulated: without images, %u plans, worst rank",
           products.plans);
  snprintf(name[1], sizeof name[1], "the same of ResNet-50, %u plans", images.plans);
  snprintf(name[2], sizeof name[2],
           "tensors that ranks plan for a step, off from simulated: %u plans, worst rank",
           products.plans + images.plans);
  bench_add((bench_row){name[0], "%", products.process, 2, "equal", false});
  bench_add((bench_row){name[1], "%", images.process, 2, "equal", false});
  bench_add((bench_row){name[2], "%", fmax(products.tensors, images.tensors), 2, "equal", false});
  return bench_end();
}
