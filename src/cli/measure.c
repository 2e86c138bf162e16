// measure.c - heddle plan --measure N: runs the best N plans of a search here, and ranks them by what they took.
//
// Idea: a plan is run by `heddle run` of this program, as the user would run it, so that what is measured is what he
// gets; what it prints goes to a file. A plan that cannot be run keeps no other from being run.
#include "cli/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// What else runs on the machine only adds, and comes and goes: each plan is run in two rounds, and its fastest counts; those
// that are CLOSE to the fastest so far, and the first by prediction, in three more.
enum { STEPS = 12, ROUNDS = 5, OF_ALL = 2 };
static const double CLOSE = 1.05;

// Standard output goes to the file, errors to the user.
static bool run_to(const char *const *argv, const char *path) {
  char program[4096];
  int status = -1;
  if (!own_path(program, sizeof program)) return false;
  fflush(stdout);
  const pid_t child = fork();
  if (!child) {
    const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666), in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(in, STDIN_FILENO) < 0) _exit(127);
    execv(program, (char *const *)argv);
    _exit(127);
  }
  ends_catch(child);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  ends_catch(0);
  return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

// The figure behind "step_ms": in ps; 0: there is none.
static int64_t step_of(const char *path) {
  static const char key[] = "\"step_ms\": ";
  char text[4096];
  FILE *f = fopen(path, "r");
  int64_t ps = 0;
  while (f && !ps && fgets(text, sizeof text, f)) {
    const char *at = strstr(text, key);
    if (at) ps = (int64_t)(atof(at + strlen(key)) * 1e9);
  }
  if (f) fclose(f);
  return ps;
}

// Runs plan number k, of which nothing stays in the folder.
static int64_t measure(cli *x, heddle_search *f, uint32_t k, const char *folder) {
  char plan[4352], out[4352], steps[16];
  const char *text = heddle_plan_print(heddle_search_plan(f, k));
  const char **argv = calloc((size_t)x->argc + 16, sizeof *argv);
  snprintf(plan, sizeof plan, "%s/%u.plan", folder, k);
  snprintf(out, sizeof out, "%s/%u.json", folder, k);
  snprintf(steps, sizeof steps, "%d", STEPS);
  bool ok = argv && text && heddle_session_write(x->s, plan, text);
  if (ok) {
    const char *const with[] = {"--plan", plan, "--machine", x->machine, "--steps", steps, "--json"};
    int n = 0;
    argv[n++] = "heddle", argv[n++] = "run";
    n += options_of_model(x, argv + n);
    for (size_t j = 0; j < sizeof with / sizeof *with; j++) argv[n++] = with[j];
    ok = run_to(argv, out);
  }
  const int64_t ps = ok ? step_of(out) : 0;
  unlink(plan), unlink(out);
  free(argv);
  return ps;
}

static int64_t least_of(const int64_t *ps, uint32_t n) {
  int64_t least = 0;
  for (uint32_t k = 0; k < n; k++)
    if (ps[k] && (!least || ps[k] < least)) least = ps[k];
  return least;
}

bool plans_measure(cli *x, heddle_search *f, uint32_t *best) {
  const char *tmp = getenv("TMPDIR");
  char folder[4200];
  if (is_rank())
    return usage_error("the command without the launcher",
                       "--measure starts ranks itself: not under mpirun or srun");
  uint32_t n = heddle_search_count(f);
  if (n > (uint32_t)x->measure.i) n = (uint32_t)x->measure.i;
  snprintf(folder, sizeof folder, "%s/heddle-measure-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  int64_t *ps = calloc((size_t)n + 1, sizeof *ps);
  if (!ps) return usage_error(NULL, "out of memory");
  ends_catch(0);
  if (!mkdtemp(folder)) {
    free(ps);
    fprintf(stderr, "error: %s: the folder cannot be made: %s\n", folder, strerror(errno));
    return false;
  }
  for (uint32_t i = 0; i < (n > 1 ? ROUNDS : OF_ALL) * n && !ends_came(); i++) {
    const uint32_t k = i % n;
    if (i >= n && !ps[k]) continue; // it has said why
    if (i >= OF_ALL * n && k && (double)ps[k] > CLOSE * (double)least_of(ps, n)) continue;
    const int64_t now = measure(x, f, k, folder);
    if (i < n || (now && now < ps[k])) ps[k] = now;
  }
  rmdir(folder);
  ends_repeat();
  const bool ok = heddle_search_measured(f, n, ps, best);
  free(ps);
  return ok;
}
