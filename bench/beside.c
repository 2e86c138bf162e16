// beside.c - how much of the sums of gradients over two data ranks goes on beside the backward: a perceptron's step without
// sums, with sums that the rank waits for, and with sums on a stream of their own. Over MPI: on this machine, or on the link that
// the launcher gives (`mpirun -n 2 ... build/bench/beside`).
#include "bench.h"
#include "heddle.h"
#include <dlfcn.h>
#include <unistd.h>

enum { LAYERS = 6, HIDDEN = 512, BATCH = 512, WARM = 2, TURNS = 9, KINDS = 3 };

// Weight gradients, last layer first, and their sums: on the first stream (1), on one of their own (2), or none (0).
static const char *program(arena *a, u32 sums) {
  strbuf b = {.a = a};
  sb_fmt(&b, "mesh @m [d=2]\nstream dp\n\nfunc @main(%%a0: f32[%d{d},%d] @m", BATCH, HIDDEN);
  for (u32 k = 0; k < LAYERS; k++) sb_fmt(&b, ", %%w%u: f32[%d,%d] @m weight", k, HIDDEN, HIDDEN);
  sb_put(&b, ") -> (");
  for (u32 k = 0; k < LAYERS; k++)
    sb_fmt(&b, "%sf32[%d,%d]%s @m", k ? ", " : "", HIDDEN, HIDDEN, sums ? "" : "+d");
  sb_put(&b, ") {\n");
  for (u32 k = 0; k < LAYERS; k++) sb_fmt(&b, "  %%a%u = matmul %%a%u, %%w%u @m\n", k + 1, k, k);
  sb_fmt(&b, "  %%d%d = scale %%a%d {alpha=0.5} @m\n", LAYERS, LAYERS);
  for (u32 k = LAYERS; k-- > 0;) {
    sb_fmt(&b, "  %%p%u = einsum %%a%u, %%d%u {law=\"bi,bo->io\"} @m backward\n", k, k, k + 1);
    if (sums) sb_fmt(&b, "  %%g%u = all_reduce %%p%u over d @m%s backward\n", k, k, sums > 1 ? " !dp" : "");
    if (k) sb_fmt(&b, "  %%d%u = einsum %%d%u, %%w%u {law=\"bo,io->bi\"} @m backward\n", k, k + 1, k);
  }
  for (u32 k = 0; k < LAYERS; k++) sb_fmt(&b, "%s%%%c%u", k ? ", " : "  return ", sums ? 'g' : 'p', k);
  sb_put(&b, "\n}\n");
  return sb_str(&b);
}

static bool joined(heddle_transport *t) {
  char error[256] = "";
  heddle_transport_opener *open = NULL;
  void *so = dlopen("build/heddle-mpi.so", RTLD_NOW | RTLD_GLOBAL);
  if (so) *(void **)&open = dlsym(so, "heddle_transport_open");
  return open && open(t, error, sizeof error) && t->ranks == 2;
}

static heddle_run *run_of(heddle_session *s, const heddle_transport *t, u32 sums) {
  arena *a = arena_new();
  char path[64];
  snprintf(path, sizeof path, "/tmp/beside-%d.heddle", (int)getpid());
  FILE *f = fopen(path, "w");
  if (!f || fputs(program(a, sums), f) < 0 || fclose(f)) exit(1);
  heddle_program *p = heddle_program_load(s, path, NULL);
  heddle_run *r = p ? heddle_run_new(p, &t->link, heddle_tensors_random(p, 7)) : NULL;
  unlink(path);
  arena_free(a);
  if (!r) fputs(heddle_session_messages(s), stderr), exit(1);
  return r;
}

static double wall_ms(void) { // waiting counts
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *x, const void *y) {
  const double *a = x, *b = y;
  return *a < *b ? -1 : *a > *b;
}

int main(void) {
  heddle_transport t;
  double took[KINDS][TURNS];
  if (!getenv("OMPI_COMM_WORLD_SIZE")) {
    puts("skipped: beside: mpirun -n 2 build/bench/beside");
    return 0;
  }
  if (!joined(&t)) return 1;
  heddle_session *s = heddle_session_new();
  heddle_run *r[KINDS];
  for (u32 k = 0; k < KINDS; k++) r[k] = run_of(s, &t, k);
  for (u32 turn = 0; turn < WARM + TURNS; turn++)
    for (u32 k = 0; k < KINDS; k++) {
      char all = 0; // both begin together
      t.link.send(t.link.arg, !t.link.rank, &all, 1), t.link.receive(t.link.arg, !t.link.rank, &all, 1);
      const double since = wall_ms();
      if (!heddle_run_step(r[k])) return 1;
      if (turn >= WARM) took[k][turn - WARM] = wall_ms() - since;
    }
  for (u32 k = 0; k < KINDS; k++) qsort(took[k], TURNS, sizeof *took[k], by_size);
  if (!t.link.rank) {
    const double none = took[0][TURNS / 2], waits = took[1][TURNS / 2], beside = took[2][TURNS / 2];
    printf("%.1f ms without sums; %.1f ms waiting for %.1f MiB of them, %.1f ms beside\n", none, waits,
           LAYERS * 4.0 * HIDDEN * HIDDEN / (1 << 20), beside);
    const double backward = none * (2 * LAYERS - 1) / (3 * LAYERS); // but what comes before the first sum
    bench_add((bench_row){.name = "sums of gradients beside the backward: hidden, of what it can hide",
                          .unit = "%",
                          .value = (waits - beside) / fmin(waits - none, backward) * 100,
                          .more = true,
                          .required = 0,
                          .anchor = ""});
  }
  t.close(t.link.arg, false);
  return t.link.rank ? 0 : bench_end();
}
