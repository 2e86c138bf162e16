// launch.c - starts the ranks of `heddle run` by mpirun, as this same command, and waits for them.
#include "cli/run.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char RANK_WORD[] = "HEDDLE_RUN_RANK"; // in the environment: this is a rank

bool is_rank(void) {
  static const char *const words[] = {RANK_WORD, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++)
    if (getenv(words[k])) return true;
  return false;
}

bool is_rank_of_others(void) { return is_rank() && !getenv(RANK_WORD); }

bool is_first_rank(void) {
  static const char *const words[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
  const char *rank = NULL;
  for (size_t k = 0; k < sizeof words / sizeof *words && !rank; k++) rank = getenv(words[k]);
  return rank && !strcmp(rank, "0");
}

bool own_path(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  if (n >= 0) path[n] = 0;
  return n >= 0;
}

// As root, and on fewer cores than ranks, Open MPI runs only if it is told so. Others do not read these words. A host
// file says how many ranks a computer takes.
static void say_to_mpi(const cli *x) {
  setenv(RANK_WORD, "1", 1);
  if (geteuid() == 0)
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  if (!x->run_hostfile) setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0); // ranks share the cores among themselves
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
}

// ---- memory that ranks share -----------------------------------------------------------------------------------
// A rank that a signal ends leaves its segment, and mpirun, which is ended as well, forgets it. So the segments of a job on this
// computer are in a folder of its own, which goes when all have ended.
static char shared[] = "/dev/shm/heddle-run-XXXXXX";
static const char *const shared_words[] = {"OMPI_MCA_btl_vader_backing_directory",
                                           "OMPI_MCA_btl_sm_backing_directory"};
static bool share_in_folder(const cli *x) {
  if (x->run_hostfile || x->launcher) return false;
  for (int k = 0; k < 2; k++)
    if (getenv(shared_words[k])) return false;
  memcpy(shared + sizeof shared - sizeof "XXXXXX", "XXXXXX", sizeof "XXXXXX");
  if (!mkdtemp(shared)) return false;
  for (int k = 0; k < 2; k++) setenv(shared_words[k], shared, 1);
  return true;
}
void folder_remove(const char *dir) {
  char path[4600];
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (d) closedir(d);
  rmdir(dir);
}
static void remove_shared(void) {
  folder_remove(shared);
  for (int k = 0; k < 2; k++) unsetenv(shared_words[k]);
}

// The ranks end with this process. A terminal tells the launcher itself, and one told twice leaves ranks behind.
static volatile sig_atomic_t launcher, end_came;
static void pass_on(int sig, siginfo_t *info, void *context) {
  (void)context;
  watch_told();
  end_came = sig;
  if (info->si_code <= 0 && launcher > 0) kill((pid_t)launcher, SIGTERM);
}
void ends_catch(pid_t child) {
  launcher = child;
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction a = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
  sigemptyset(&a.sa_mask);
  for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
    struct sigaction before; // what nohup or a shell ignores is ignored
    if (!sigaction(ends[k], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(ends[k], &a, NULL);
  }
}
bool ends_came(void) { return end_came; }
void ends_repeat(void) {
  if (!end_came) return;
  signal(end_came, SIG_DFL);
  raise(end_came);
}

// ---- the host file -------------------------------------------------------------------------------------------
// Where a line does not say how many it has, the launcher knows.
bool slots_suffice(const cli *x, uint32_t ranks) {
  FILE *f = x->run_hostfile ? fopen(x->run_hostfile, "r") : NULL;
  char line[1024];
  if (!x->run_hostfile) return true;
  unsigned long slots = 0, hosts = 0;
  bool all = true;
  if (!f) {
    fprintf(stderr, "error[E0101]: cannot read '%s': %s\n", x->run_hostfile, strerror(errno));
    return false;
  }
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "#\n")] = 0;
    if (!line[strspn(line, " \t\r")]) continue;
    const char *n = strstr(line, "slots=");
    hosts++, all = all && n;
    if (n) slots += strtoul(n + 6, NULL, 10);
  }
  fclose(f);
  if (hosts && (!all || slots >= ranks)) return true;
  fprintf(stderr,
          "error: %s has %lu slots on %lu hosts, and the plan has %u ranks\n  hint: more slots=N, or a plan "
          "for at "
          "most %lu ranks\n",
          x->run_hostfile, slots, hosts, ranks, slots);
  return false;
}

// ---- the command line ----------------------------------------------------------------------------------------
typedef struct {
  char **v;
  int n;
  char self[4096], count[16], rank[32], watch[400], *line;
} words;

// `env` carries words to other computers as well; a launcher hands on few of its own environment.
static bool words_of(words *w, const cli *x, uint32_t ranks, const watch *watcher) {
  enum { LAUNCHER = 64, OWN = 20 };
  w->line = strdup(x->launcher ? x->launcher : "mpirun");
  w->v = calloc((size_t)x->argc + LAUNCHER + OWN, sizeof *w->v);
  if (!own_path(w->self, sizeof w->self) || !w->line || !w->v) return false;
  for (char *s = strtok(w->line, " "); s && w->n < LAUNCHER; s = strtok(NULL, " ")) w->v[w->n++] = s;
  const char *const options[][2] = {
      {"--hostfile", x->run_hostfile}, {"--bind-to", x->run_bind}, {"--output-filename", x->run_outputs}};
  for (int k = 0; k < 3; k++)
    if (options[k][1])
      w->v[w->n++] = (char *)(uintptr_t)options[k][0], w->v[w->n++] = (char *)(uintptr_t)options[k][1];
  if (x->run_tag) w->v[w->n++] = "--tag-output";
  snprintf(w->count, sizeof w->count, "%u", ranks);
  w->v[w->n++] = "-n", w->v[w->n++] = w->count;
  if (watcher) {
    snprintf(w->rank, sizeof w->rank, "%s=1", RANK_WORD);
    snprintf(w->watch, sizeof w->watch, "%s=%s", WATCH_WORD, watch_address(watcher));
    w->v[w->n++] = "env", w->v[w->n++] = w->rank, w->v[w->n++] = w->watch;
  }
  w->v[w->n++] = w->self;
  for (int i = 0; i < x->argc; i++) w->v[w->n++] = x->argv[i];
  return true;
}

enum { NO_LAUNCHER = 127 };
// held: what the launcher itself says of a job that failed waits until it is known who else does (output.c).
static pid_t start(const cli *x, const words *w, bool held) {
  fflush(stdout), fflush(stderr);
  const int out = output_begin(STDOUT_FILENO), err = held ? output_begin(STDERR_FILENO) : -1;
  const pid_t child = fork();
  if (child > 0) ends_catch(child);
  if (child && out >= 0) close(out);
  if (child && err >= 0) close(err);
  if (child) return child;
  if (out >= 0) dup2(out, STDOUT_FILENO);
  if (err >= 0) dup2(err, STDERR_FILENO);
  say_to_mpi(x);
  signal(SIGXFSZ, SIG_DFL); // mpirun would wait for ever for what it cannot write; ranks ignore it again
  execvp(w->v[0], w->v);
  fprintf(stderr,
          "error: cannot start `%s`: %s\n  hint: install an MPI (Debian: openmpi-bin), or --launcher\n",
          w->v[0], strerror(errno));
  _exit(NO_LAUNCHER);
}

static int wait_for(pid_t child) {
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

// srun without PMI starts tasks that know nothing of each other: each would start the whole job.
bool is_lone_task(void) {
  const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
  if (!tasks || atoi(tasks) < 2) return false;
  if (is_first_rank())
    fprintf(stderr,
            "error: srun has started %s tasks that do not know each other: it gave them no PMI\n"
            "  hint: srun --mpi=pmix (`srun --mpi=list` shows what there is), or the command without srun\n",
            tasks);
  return true;
}

// Where its files cannot be as large Open MPI's daemons wait for ever for ranks that have ended.
static bool files_may_be_large(void) {
  enum { SHARED = 5 << 20 }; // of what processes of a node share: 4 MiB and a little
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur >= SHARED) return true;
  fprintf(stderr,
          "error: files may have %llu KiB at most (ulimit -f): ranks of Open MPI share files of 4 MiB\n"
          "  hint: ulimit -f unlimited\n",
          (unsigned long long)most.rlim_cur >> 10);
  return false;
}

static int start_and_wait(const cli *x, uint32_t ranks, watch *w) {
  words line = {0};
  int status = -1;
  const bool apart = share_in_folder(x);
  if (words_of(&line, x, ranks, w)) {
    const pid_t child = start(x, &line, w != NULL);
    status = w && child > 0 ? watch_ranks(w, child) : wait_for(child);
    launcher = 0;
    output_end(!watch_knows_why(w) && !ends_came());
  }
  if (apart) remove_shared();
  free(line.v), free(line.line);
  return status;
}

static void put_early_end(const char *what, int status) {
  fprintf(stderr, "error: the job has ended before %s", what);
  if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
    fputs(": its launcher met the limit on the size of files (ulimit -f)", stderr);
  else if (status >= 0 && WIFSIGNALED(status))
    fprintf(stderr, ": its launcher got signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  fputc('\n', stderr);
}

bool launch_unwatched(const cli *x, uint32_t ranks) {
  if (!files_may_be_large()) return false;
  const int status = start_and_wait(x, ranks, NULL), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (status >= 0 && (!code || code == NO_LAUNCHER)) return !code;
  put_early_end("its end", status);
  return false;
}

// A checkpoint that was there before the job is another's, unless the job went on from it.
static bool is_of_job(const cli *x, const char *path, time_t began) {
  struct stat is;
  return !x->run_save || x->run_resume || (!stat(path, &is) && is.st_mtime >= began);
}

bool launch(cli *x, heddle_program *d) {
  if (!files_may_be_large()) return false;
  const time_t began = time(NULL);
  watch *w = watch_open(x, d, x->run_hostfile || x->launcher);
  const int status = start_and_wait(x, heddle_program_ranks(d), w);
  watch_close(w);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const bool told = heddle_session_errors(x->s);
  if (status >= 0 && (!code || code == NO_LAUNCHER) && !told) return !code;
  fputs(heddle_session_messages(x->s), stderr), heddle_session_clear(x->s);
  put_early_end("its last step", status);
  const char *saved = x->run_save ? x->run_save : x->run_resume;
  const char *last = saved && !told ? heddle_checkpoint_find(x->s, saved) : NULL;
  if (last && is_of_job(x, last, began))
    fprintf(stderr, "  hint: the same command with --resume %s goes on from %s\n", saved, last);
  heddle_session_clear(x->s);
  return false;
}
