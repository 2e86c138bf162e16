// probe.c - what this machine gives: cores, memory, matrix products, what an instruction costs, messages.
//
// Idea: everything is measured through the evaluator that runs plans, as a program of a few lines, so that the figures
// are of what `heddle run` does: its kernels, its memory, its messages. All processes compute at once while one of them
// is asked, as ranks do. The machine file says of every figure how it was found.
#include "profile/internal.h"
#include <math.h>
#include <unistd.h>

enum { WARM = 1, LEAST = 7, MOST = 41 };
static const u64 LONG_NS = 250000000;

typedef struct {
  char name[56];
  double cores;
} host;
typedef struct {
  const profile_job *j;
  ctx *c;
  arena *a;
  strbuf out;       // of process 0
  double bandwidth; // bytes/ns
  host *host;       // of process 0: where the processes are
  u32 nhosts;
} probing;

// ---- programs of a few lines ----------------------------------------------------------------------------------
typedef struct {
  u32 n, last; // instructions that have ended; the one after which the time is taken
  u64 first_ns, last_ns;
} span;
static void note(void *arg, const func_info *f, const instr *i, group g) {
  (void)f, (void)i, (void)g;
  span *s = arg;
  s->last_ns = clock_ns();
  if (++s->n == s->last) s->first_ns = s->last_ns;
}

// ns from the end of instruction `first` of main to its last one, on all processes at once; that of process 0 counts.
static bool time_text(probing *x, const char *text, u32 first, profile_figure *out) {
  const profile_job *j = x->j;
  arena *a = arena_new();
  const eval_link alone = {0};
  prog *p = ir_parse(x->c, sym_of(x->c, "probe"), text, strlen(text));
  const u32 nin = p ? func_get(p, p->main)->nparams : 0;
  eval_array *in = NEWN(a, eval_array, nin + 1);
  u32 *next = ZNEWN(a, u32, nin + 1), n = 0;
  span s = {.last = first};
  double v[MOST];
  eval_rank *r =
      p && eval_random(p, 0, in, nin, a) ? eval_rank_new(p, &(eval_opts){0}, &alone, in, nin) : NULL;
  bool ok = r;
  if (r) eval_rank_watch(r, note, &s);
  const u64 begin = clock_ns();
  for (u32 k = 0; ok; k++) {
    bool go = n < LEAST || (n < MOST && clock_ns() - begin < LONG_NS);
    if (!together(j, j->nprocs, &go)) ok = together_lost(x->c);
    if (!ok || !go) break;
    s.n = 0, s.first_ns = clock_ns();
    ok = eval_rank_step(r, next);
    if (k >= WARM) v[n++] = (double)(s.last_ns - s.first_ns);
  }
  eval_rank_free(r);
  prog_free(p);
  arena_free(a);
  if (ok) *out = profile_settle(v, n);
  return ok;
}

static void put_source(probing *x, const profile_figure *f, const char *what) {
  sb_fmt(&x->out, "   # measured: %s, median of %u, +-%.1f %%\n", what, f->count, f->spread * 100);
}

// ---- launch: many instructions of one element -------------------------------------------------------------------
static bool probe_launch(probing *x, double *ns) {
  enum { CHAIN = 200 };
  strbuf b = {.a = x->a};
  profile_figure f;
  sb_put(&b, "mesh @m [x=1]\nmain @chain on @m(%v0: f32[1] weight) -> (f32[1]) {\n");
  for (u32 k = 1; k <= CHAIN; k++) sb_fmt(&b, "  %%v%u = neg %%v%u\n", k, k - 1);
  sb_fmt(&b, "  return %%v%u\n}\n", CHAIN);
  if (!time_text(x, sb_str(&b), 1, &f)) return false;
  *ns = f.median / (CHAIN - 1);
  sb_fmt(&x->out, "    launch: %.0f ps", *ns * 1e3);
  put_source(x, &f,
             arena_printf(x->a, "%u instructions of one element in a row, over their number", CHAIN - 1));
  return true;
}

// ---- memory: a large copy, and what instructions reach of it -----------------------------------------------------
enum { COPIED = 64 << 20 };
static bool probe_memory(probing *x, double launch_ns) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE),
             cores = sysconf(_SC_NPROCESSORS_ONLN);
  const double mib = 1 << 20, all = (double)pages * (double)page / mib;
  double v[LEAST];
  arena *a = arena_new();
  char *from = arena_zalloc(a, COPIED), *to = arena_zalloc(a, COPIED);
  (void)launch_ns;
  sb_fmt(&x->out, "    memory: %.0f MiB   # of the operating system: %.0f MiB over %ld cores\n",
         floor(all / (double)MAX(cores, 1)), all, cores);
  for (u32 k = 0; k < LEAST; k++) {
    bool go = true;
    if (!together(x->j, x->j->nprocs, &go)) return arena_free(a), together_lost(x->c);
    const u64 start = clock_ns();
    memcpy(k % 2 ? from : to, k % 2 ? to : from, COPIED);
    v[k] = (double)(clock_ns() - start);
  }
  arena_free(a);
  const profile_figure f = profile_settle(v, LEAST);
  x->bandwidth = 2.0 * COPIED / f.median;
  sb_fmt(&x->out, "    bandwidth: %.3f GB/s", x->bandwidth);
  put_source(x, &f,
             arena_printf(x->a, "a copy of %.0f MiB, read and written, %u process%s at once", COPIED / mib,
                          x->j->nprocs, x->j->nprocs == 1 ? "" : "es"));
  return true;
}

// Instructions that are no products, as fractions of the bandwidth. Nothing that they make is a result: those of a step lie in
// memory that is the rank's from the first step on, while that of results is taken anew, and its pages cost more than the work.
static bool probe_others(probing *x, double launch_ns) {
  static const struct {
    const char *kind, *line;
    u32 wide; // of the result
  } of[] = {{"elementwise", "neg %v", 1024},
            {"reduction", "softmax %v", 1024},
            {"move", "concat %v, %v {axis=1}", 2048}};
  static const u32 rows[] = {16, 4096};
  for (u32 k = 0; k < COUNT_OF(of); k++) {
    profile_figure f[COUNT_OF(rows)];
    const char *line = of[k].line;
    const u32 wide = of[k].wide;
    double bytes[COUNT_OF(rows)];
    for (u32 r = 0; r < COUNT_OF(rows); r++) {
      const char *text = arena_printf(
          x->a,
          "mesh @m [x=1]\nmain @one on @m(%%v: f32[%u,1024] weight) -> (f32[%u,1024]) {\n  %%a = %s\n  %%b = "
          "%s\n  return %%v\n}\n",
          rows[r], rows[r], line, line);
      if (!time_text(x, text, 1, &f[r])) return false;
      bytes[r] = 2.0 * 4 * wide * rows[r]; // what moves reads what it writes
    }
    sb_fmt(&x->out, "      %s:", of[k].kind);
    put_source(x, &f[1],
               arena_printf(x->a, "`%.*s` of 16 and 4096 rows of 1024, of the bandwidth above",
                            (int)strcspn(line, " "), line));
    for (u32 r = 0; r < COUNT_OF(rows); r++)
      sb_fmt(&x->out, "        %.0f B: %.4g\n", bytes[r],
             MIN(bytes[r] / MAX(f[r].median - launch_ns, 1) / x->bandwidth, 1));
  }
  return true;
}

// ---- rates: matrix products by element type and size -------------------------------------------------------------
enum { SIZES = 4 };
static const u32 side[SIZES] = {32, 96, 256, 512};
static bool probe_products(probing *x, double launch_ns) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16"};
  profile_figure f[COUNT_OF(types)][SIZES];
  double rate[COUNT_OF(types)][SIZES], best[COUNT_OF(types)] = {0}, best_ns = 0;
  for (u32 t = 0; t < COUNT_OF(types); t++)
    for (u32 k = 0; k < SIZES; k++) {
      const char *sq = arena_printf(x->a, "%s[%u,%u]", types[t], side[k], side[k]);
      const char *text =
          arena_printf(x->a,
                       "mesh @m [x=1]\nmain @product on @m(%%v: %s weight, %%w: %s weight) -> (%s) {\n  "
                       "%%a = matmul %%v, %%w\n  %%b = matmul %%v, %%w\n  return %%b\n}\n",
                       sq, sq, sq);
      if (!time_text(x, text, 1, &f[t][k])) return false;
      best_ns = MAX(f[t][k].median - launch_ns, 1);
      rate[t][k] = 2 * pow(side[k], 3) / best_ns; // GFLOP/s
      best[t] = MAX(best[t], rate[t][k]);
    }
  sb_put(&x->out, "    rate:\n");
  for (u32 t = 0; t < COUNT_OF(types); t++) {
    u32 at = 0;
    while (rate[t][at] < best[t]) at++;
    sb_fmt(&x->out, "      %s: %.4f GFLOP/s", types[t], best[t]);
    put_source(x, &f[t][at],
               arena_printf(x->a, "matmul of %u x %u x %u, the fastest of four sizes", side[at], side[at],
                            side[at]));
  }
  sb_put(&x->out, "    efficiency:\n      gemm:   # measured: f32 matmul of 32, 96, 256 and 512 on a side, "
                  "of the rate above\n");
  for (u32 k = 0; k < SIZES; k++)
    sb_fmt(&x->out, "        %.0f FLOP: %.4f\n", 2 * pow(side[k], 3), rate[0][k] / best[0]);
  return true;
}

// Everything else: one operation an element, on data that fit into a cache.
static bool probe_vector(probing *x, double launch_ns) {
  enum { ELEMS = 1 << 14 };
  profile_figure f;
  const char *text =
      arena_printf(x->a,
                   "mesh @m [x=1]\nmain @sum on @m(%%v: f32[%u] weight, %%w: f32[%u] weight) -> (f32[%u]) "
                   "{\n  %%a = add %%v, %%w\n  %%b = add %%v, %%w\n  return %%b\n}\n",
                   ELEMS, ELEMS, ELEMS);
  if (!time_text(x, text, 1, &f)) return false;
  sb_fmt(&x->out, "    vector: %.4f GFLOP/s", ELEMS / MAX(f.median - launch_ns, 1));
  put_source(x, &f, "the sum of two vectors of 16384");
  return true;
}

// ---- where the processes are ---------------------------------------------------------------------------------------
enum { HOST_DOUBLES = sizeof(host) / sizeof(double) };

// Whom process 0 sends to: beside it, and on another host; 0: nobody is there.
typedef struct {
  u32 beside, away;
} peers;

static bool find_hosts(probing *x, const char *name, u32 cores, peers *to) {
  host own = {.cores = cores};
  double words[HOST_DOUBLES];
  snprintf(own.name, sizeof own.name, "%s", name);
  memcpy(words, &own, sizeof own);
  const u32 n = x->j->nprocs;
  double *all = NEWN(x->a, double, (size_t)n *HOST_DOUBLES);
  if (!together_gather(x->j, n, words, HOST_DOUBLES, all)) return together_lost(x->c);
  *to = (peers){0};
  x->host = ZNEWN(x->a, host, n);
  for (u32 q = 0; q < n && !x->j->link.rank; q++) {
    host h;
    u32 k = 0;
    memcpy(&h, all + (size_t)q * HOST_DOUBLES, sizeof h);
    while (k < x->nhosts && strcmp(x->host[k].name, h.name)) k++;
    if (k == x->nhosts) x->host[x->nhosts++] = h;
    u32 *whom = k ? &to->away : &to->beside;
    if (!*whom) *whom = q;
  }
  return profile_tell(x->j, to, sizeof *to) || together_lost(x->c);
}

// ---- messages ----------------------------------------------------------------------------------------------------
// What messages between process 0 and another take: of 4 B, and bytes a nanosecond beyond that.
typedef struct {
  profile_figure least, most;
  double rate;
} message;
static bool time_messages(probing *x, u32 other, message *out) {
  static const i64 size[2] = {4, 4 << 20};
  const u32 pair[2] = {0, other};
  profile_figure f[2];
  for (u32 k = 0; k < 2; k++) {
    const cost_event e = {.op = OP_send, .t = DT_F32, .size = size[k]};
    if (!comm_measure(x->j, x->c, &e, (split_at){1, 1}, pair, 2, 0, false, &f[k])) return false;
  }
  *out = (message){f[0], f[1], (double)(size[1] - size[0]) / MAX(f[1].median - f[0].median, 1)};
  return true;
}
static const char LARGE[] =
    "sends of 4 MiB there and back between two processes%s, half the time, less that of 4 B",
                  SMALL[] = "sends of 4 B there and back%s, half the time";

static bool probe_link(probing *x, u32 other) {
  message m;
  if (!other) {
    sb_fmt(&x->out, "    link: none   # one process%s: no messages\n", x->nhosts > 1 ? " of this node" : "");
    return true;
  }
  if (!time_messages(x, other, &m)) return false;
  sb_fmt(&x->out, "    link:\n      kind: switch\n      bandwidth: %.4f GB/s", m.rate);
  put_source(x, &m.most, arena_printf(x->a, LARGE, ""));
  sb_fmt(&x->out, "      start: %.0f ps", m.least.median * 1e3);
  put_source(x, &m.least, arena_printf(x->a, SMALL, ""));
  sb_put(&x->out, "      step: 0 ps   # in start\n");
  return true;
}

// Nodes with as many cores stand together, as process 0 met the first of them.
static bool put_nodes(probing *x, u32 cores, u32 other) {
  static const char between[] = " of two nodes";
  message m;
  if (!other) {
    sb_fmt(&x->out, "nodes: {devices: %u core}\n", MAX(cores, x->j->nprocs));
    return true;
  }
  if (!time_messages(x, other, &m)) return false;
  sb_put(&x->out, "nodes:\n");
  for (u32 k = 0, n; k < x->nhosts; k += n) {
    for (n = 1; k + n < x->nhosts && x->host[k + n].cores == x->host[k].cores; n++) continue;
    sb_fmt(&x->out, "  - count: %u\n    devices: %.0f core\n    nics: %.4f Gb/s", n, x->host[k].cores,
           8 * m.rate);
    put_source(x, &m.most, arena_printf(x->a, LARGE, between));
  }
  sb_fmt(&x->out, "fabric:\n  efficiency: 1\n  start: %.0f ps", m.least.median * 1e3);
  put_source(x, &m.least, arena_printf(x->a, SMALL, between));
  sb_put(&x->out, "  step: 0 ps   # in start\n");
  return true;
}

const char *profile_machine(const profile_job *j, ctx *c, arena *a, const char *name, const char *versions) {
  probing x = {.j = j, .c = c, .a = a, .out = {.a = a}};
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  double launch_ns = 0;
  progress bar;
  if (!j->link.rank) progress_begin(&bar, "measuring", 5);
  sb_fmt(&x.out, "# Made by `heddle machines probe`, %s, %u process%s.\n", versions, j->nprocs,
         j->nprocs == 1 ? "" : "es");
  sb_put(&x.out, "name: ");
  sb_json_str(&x.out, name);
  sb_fmt(&x.out, "\nabout: %ld processor cores, one rank each\n", cores);
  sb_put(&x.out, "devices:\n  core:\n");
  bool (*const part[])(probing * x, double launch_ns) = {probe_memory, probe_products, probe_others,
                                                         probe_vector};
  peers to;
  bool ok = find_hosts(&x, name, (u32)MAX(cores, 1), &to) && probe_launch(&x, &launch_ns);
  for (u32 k = 0; k < COUNT_OF(part) && ok; k++) {
    if (!j->link.rank) progress_step(&bar, k + 1);
    ok = part[k](&x, launch_ns);
  }
  ok = ok && probe_link(&x, to.beside);
  sb_put(&x.out, "    host: 10 GB/s   # not measured: its own memory\n");
  sb_put(&x.out, "    cores: 1\n");
  if (!j->link.rank) progress_end(&bar);
  ok = ok && put_nodes(&x, (u32)MAX(cores, 1), to.away);
  return !ok ? NULL : j->link.rank ? "" : sb_str(&x.out);
}
