// run.c - heddle run MODEL: trains for real, one process a rank.
//
// The process that the user starts makes the plan, so that what is wrong is told once, and starts the ranks by mpirun
// as this same command. Where a launcher has started it already (mpirun, srun), it is a rank.
#include "cli/cli.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char RANK_WORD[] = "HEDDLE_RUN_RANK"; // in the environment: this is a rank

bool run_is_rank(void) {
  static const char *const words[] = {RANK_WORD, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (getenv(words[k])) return true;
  return false;
}

const char *run_trace_of(const cli *x) {
  const char *dir = x->trace ? x->trace : getenv("HEDDLE_TRACE");
  return dir && *dir ? dir : NULL;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// ---- one rank ----------------------------------------------------------------------------------------------
static bool own_path(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  if (n >= 0) path[n] = 0;
  return n >= 0;
}

// --transport, or heddle-mpi.so beside this program or in ../lib. False, said: there is none.
static bool find_transport(const cli *x, char *path, size_t size) {
  static const char *const where[] = {"", "../lib/"};
  char self[4096] = "";
  if (x->transport) return snprintf(path, size, "%s", x->transport) > 0;
  char *slash = own_path(self, sizeof self) ? strrchr(self, '/') : NULL;
  if (slash) slash[1] = 0;
  for (int k = 0; k < 2; k++) {
    snprintf(path, size, "%s%sheddle-mpi.so", self, where[k]);
    if (access(path, R_OK) == 0) return true;
  }
  fputs("error: ranks cannot be joined: there was no MPI when this program was built\n"
        "  hint: install one with its mpicc (Debian: libopenmpi-dev openmpi-bin) and run `make` again, or "
        "--transport FILE\n",
        stderr);
  return false;
}

static bool open_transport(const cli *x, heddle_transport *t) {
  char path[4400], error[512] = "it has no heddle_transport_open";
  heddle_transport_opener *open = NULL;
  if (!find_transport(x, path, sizeof path)) return false;
  void *so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!so)
    snprintf(error, sizeof error, "%s", dlerror());
  else
    *(void **)&open = dlsym(so, "heddle_transport_open");
  if (open && open(t, error, sizeof error)) return true;
  fprintf(stderr, "error: %s: ranks cannot be joined: %s\n", path, error);
  return false;
}

typedef struct {
  double loss, ms;
} step_taken;

static int by_ms(const void *x, const void *y) {
  const step_taken *a = x, *b = y;
  return a->ms < b->ms ? -1 : a->ms > b->ms;
}

static void put_json_text(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if ((unsigned char)*s < ' ')
      printf("\\u%04x", (unsigned)*s);
    else
      printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  }
  putchar('"');
}

// JSON has no word for what is not finite.
static void put_json_loss(double x) {
  if (isfinite(x))
    printf("%.9g", x);
  else
    fputs("null", stdout);
}

static void tell_step(const cli *x, uint64_t k, const step_taken *s) {
  if (x->json || x->quiet) return;
  if (!k) puts("step         loss       time");
  printf("%4llu  %11.6g  %6.2f ms\n", (unsigned long long)k + 1, s->loss, s->ms);
  fflush(stdout);
}

// The first step makes what the others find: it is no part of the median.
static void tell_all(const cli *x, uint32_t ranks, const char *plan, uint64_t n, const step_taken *s) {
  step_taken *sorted = malloc(sizeof *s * n);
  const uint64_t first = n > 1;
  if (!sorted) return;
  memcpy(sorted, s + first, sizeof *s * (n - first));
  qsort(sorted, n - first, sizeof *s, by_ms);
  const double median = sorted[(n - first) / 2].ms;
  free(sorted);
  if (!x->json) {
    printf("\n%s on %u rank%s: %.2f ms a step (median)\n", plan, ranks, ranks > 1 ? "s" : "", median);
    return;
  }
  fputs("{\"plan\": ", stdout);
  put_json_text(plan);
  printf(", \"ranks\": %u, \"step_ms\": %.6g, \"steps\": [", ranks, median);
  for (uint64_t k = 0; k < n; k++) {
    printf("%s{\"loss\": ", k ? ", " : "");
    put_json_loss(s[k].loss);
    printf(", \"ms\": %.6g}", s[k].ms);
  }
  puts("]}");
}

static bool train(cli *x, heddle_program *d, const char *plan, const heddle_transport *t) {
  const uint64_t n = x->run_steps.given ? (uint64_t)x->run_steps.i : 10;
  heddle_run *r = heddle_run_new(d, &t->link, heddle_tensors_random(d, (uint64_t)x->seed.i));
  step_taken *taken = r ? calloc(n, sizeof *taken) : NULL;
  bool ok = taken && (!run_trace_of(x) || heddle_run_record(r, 0));
  for (uint64_t k = 0; k < n && ok; k++) {
    const double start = now_ms();
    ok = heddle_run_step(r) && heddle_run_loss(r, &taken[k].loss);
    taken[k].ms = now_ms() - start;
    if (ok && !t->link.rank) tell_step(x, k, &taken[k]);
  }
  if (ok && !t->link.rank && !x->quiet) tell_all(x, t->ranks, plan, n, taken);
  if (r && run_trace_of(x)) ok = heddle_run_recorded(r, run_trace_of(x)) && ok; // of a job that failed, too
  heddle_tensors *after = ok && x->output && !x->quiet ? heddle_run_parameters(r) : NULL;
  if (ok && x->output && !x->quiet) ok = after && (t->link.rank || heddle_tensors_write(after, x->output));
  free(taken);
  return ok;
}

bool run_one_rank(cli *x, heddle_program *d, const char *plan) {
  heddle_transport t;
  if (!open_transport(x, &t)) return false;
  bool ok = t.ranks == heddle_program_ranks(d);
  if (!ok && !t.link.rank)
    fprintf(stderr,
            "error: the plan is for %u ranks, and %u were started\n  hint: mpirun -n %u, or --strategy of %u "
            "ranks\n",
            heddle_program_ranks(d), t.ranks, heddle_program_ranks(d), t.ranks);
  ok = ok && train(x, d, plan, &t);
  if (!ok) fputs(heddle_session_messages(x->s), stderr), heddle_session_clear(x->s);
  fflush(stdout);
  t.close(t.link.arg, !ok);
  return ok;
}

// ---- who starts them ---------------------------------------------------------------------------------------
// As root, and on fewer cores than ranks, Open MPI runs only if it is told so. Others do not read these words.
static void say_to_mpi(void) {
  setenv(RANK_WORD, "1", 1);
  if (geteuid() == 0)
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
}

// The ranks end with this process. A terminal tells the launcher itself, and one told twice leaves ranks behind.
static volatile sig_atomic_t launcher;
static void pass_on(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)context;
  if (info->si_code <= 0 && launcher > 0) kill((pid_t)launcher, SIGTERM);
}
static void catch_ends(void) {
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction a = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
  sigemptyset(&a.sa_mask);
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) sigaction(ends[k], &a, NULL);
}

// A folder with recordings of more ranks is of another job: what is asked of it would mix both.
static bool folder_fits(const char *dir, uint32_t ranks) {
  unsigned rank, most = 0;
  int n = 0;
  DIR *d = dir ? opendir(dir) : NULL;
  for (struct dirent *e; d && (e = readdir(d));)
    if (sscanf(e->d_name, "rank%u.json%n", &rank, &n) == 1 && n && !e->d_name[n] && rank > most) most = rank;
  if (d) closedir(d);
  if (most < ranks) return true;
  fprintf(stderr,
          "error: %s has rank%u.json, and the plan has %u rank%s: it is of another job\n  hint: name another "
          "folder\n",
          dir, most, ranks, ranks > 1 ? "s" : "");
  return false;
}

enum { NO_LAUNCHER = 127 };
static int start(cli *x, uint32_t ranks) {
  enum { WORDS = 64 };
  char self[4096], count[16], *line = strdup(x->launcher ? x->launcher : "mpirun");
  char **argv = calloc((size_t)x->argc + WORDS + 8, sizeof *argv);
  int status = -1;
  int k = 0;
  if (!own_path(self, sizeof self) || !line || !argv) {
    free(argv), free(line);
    return status;
  }
  snprintf(count, sizeof count, "%u", ranks);
  for (char *w = strtok(line, " "); w && k < WORDS; w = strtok(NULL, " ")) argv[k++] = w;
  argv[k++] = "-n", argv[k++] = count, argv[k++] = self;
  for (int i = 0; i < x->argc; i++) argv[k++] = x->argv[i];
  fflush(stdout), fflush(stderr);
  const pid_t child = fork();
  if (child > 0) launcher = child, catch_ends();
  if (!child) {
    say_to_mpi();
    execvp(argv[0], argv);
    fprintf(stderr,
            "error: cannot start `%s`: %s\n  hint: install an MPI (Debian: openmpi-bin), or --launcher\n",
            argv[0], strerror(errno));
    _exit(NO_LAUNCHER);
  }
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  free(argv), free(line);
  return status;
}

bool run_start(cli *x, heddle_program *d) {
  char path[4400];
  if (!folder_fits(run_trace_of(x), heddle_program_ranks(d))) return false;
  if (!find_transport(x, path, sizeof path)) return false;
  const int status = start(x, heddle_program_ranks(d)), left = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (status >= 0 && (!left || left == NO_LAUNCHER)) return !left;
  fprintf(stderr, "error: the job has ended before its last step%s\n",
          status >= 0 && WIFSIGNALED(status) ? ", by a signal" : "");
  return false;
}

bool cmd_run(cli *x) {
  heddle_plan *b;
  heddle_program *d;
  if (!plan_of(x, NULL, &b, &d)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2'", "`heddle run` needs a plan");
  d = heddle_plan_apply(b);
  if (!heddle_program_validate(d)) return false;
  const char *plan = heddle_plan_name(b);
  return run_is_rank() ? run_one_rank(x, d, plan) : run_start(x, d);
}
