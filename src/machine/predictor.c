// predictor.c - a program of the user's that says what events take: lines in, lines out. What an event's line is:
// cost/key.c.
//
// Idea: the program is started once and asked one event at a time; it answers before it is asked again. Answers are kept, so
// equal events cost one question. Whatever it does instead of answering ends the pricing with what it did, and it is not
// asked again.
#include "machine/machine.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { LINE = 4096 };
#define TWO_LINES "more than one line for one event"
typedef struct {
  const char *key;
  i64 ps; // below 0: it does not know
} answered;
struct machine_predictor {
  arena *a; // answers
  const char *command;
  pid_t pid;
  int fd;      // its input and output
  int wait_ms; // for an answer
  u32 asked;
  const char *why;  // it is not asked again; NULL: it answers
  const char *last; // the event then
  pthread_mutex_t lock;
  hmap by_key;
  VEC(answered) answers;
};

bool machine_predictor_start(machine *m, arena *a, const char *command, int wait_ms) {
  machine_predictor *p = ZNEWN(a, machine_predictor, 1);
  char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, arena_strdup(a, command), NULL};
  posix_spawn_file_actions_t act;
  posix_spawnattr_t own; // of its own, so that what the shell starts is ended with it
  int ends[2], err;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
    diag(m->c, E_PREDICTOR, loc_text(m->c, sym_of(m->c, command), 0, 0, NULL), "it cannot be started: %s",
         strerror(errno));
    return false;
  }
  posix_spawn_file_actions_init(&act);
  posix_spawn_file_actions_adddup2(&act, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&act, ends[1], STDOUT_FILENO);
  posix_spawnattr_init(&own);
  posix_spawnattr_setflags(&own, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&own, 0);
  err = posix_spawn(&p->pid, "/bin/sh", &act, &own, argv, environ);
  posix_spawnattr_destroy(&own);
  posix_spawn_file_actions_destroy(&act);
  close(ends[1]);
  if (err) {
    close(ends[0]);
    diag(m->c, E_PREDICTOR, loc_text(m->c, sym_of(m->c, command), 0, 0, NULL), "it cannot be started: %s",
         strerror(err));
    return false;
  }
  p->a = arena_new(), p->command = argv[2], p->fd = ends[0],
  p->wait_ms = wait_ms ? wait_ms : PREDICTOR_WAIT_MS;
  pthread_mutex_init(&p->lock, NULL);
  m->predictor = p;
  return true;
}

// It ends when nothing more comes; else it is ended.
void machine_predictor_stop(machine *m) {
  machine_predictor *p = m->predictor;
  if (!p) return;
  close(p->fd);
  for (u32 k = 0; k < 200 && !waitpid(p->pid, NULL, WNOHANG); k++)
    if (k == 199)
      kill(-p->pid, SIGKILL), waitpid(p->pid, NULL, 0);
    else
      nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  kill(-p->pid, SIGKILL); // what the shell has left
  pthread_mutex_destroy(&p->lock);
  arena_free(p->a);
  m->predictor = NULL;
}

const char *machine_predictor_command(const machine *m) {
  return m->predictor ? m->predictor->command : NULL;
}

// ---- one question -------------------------------------------------------------------------------------------------
static predicted_how failed(machine_predictor *p, ctx *c, const char *key, const char *what) {
  if (!p->why) p->why = arena_strdup(p->a, what), p->last = arena_strdup(p->a, key);
  diag(c, E_PREDICTOR, loc_text(c, sym_of(c, p->command), p->asked, 1, key), "%s", what);
  diag_hint(c, "echo '%s' | %s", key, p->command);
  return PREDICTION_FAILED;
}

static const char *how_it_ended(machine_predictor *p, char *text, size_t size) {
  siginfo_t info = {0};
  for (u32 k = 0; k < 200 && !info.si_pid; k++) {
    if (k) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
  }
  if (info.si_code == CLD_EXITED)
    snprintf(text, size, "the predictor has ended with status %d instead of an answer", info.si_status);
  else if (info.si_pid)
    snprintf(text, size, "the predictor was ended by signal %d", info.si_status);
  else
    snprintf(text, size, "the predictor has closed its output");
  return text;
}

static bool tell(machine_predictor *p, const char *key) {
  char line[2 * LINE];
  const int n = snprintf(line, sizeof line, "%s\n", key);
  for (int at = 0; at < n && n < (int)sizeof line;) {
    const ssize_t put = send(p->fd, line + at, (size_t)(n - at), MSG_NOSIGNAL);
    if (put < 0 && errno != EINTR) return false;
    at += put > 0 ? (int)put : 0;
  }
  return n < (int)sizeof line;
}

// One line, without its end. 0: time is up; below 0: nothing more comes; above LINE: it is too long.
static int hear(machine_predictor *p, char *line) {
  const u64 until = clock_ns() + (u64)p->wait_ms * 1000000;
  for (int n = 0;;) {
    const u64 now = clock_ns();
    struct pollfd f = {.fd = p->fd, .events = POLLIN};
    const int r = now < until ? poll(&f, 1, (int)((until - now) / 1000000) + 1) : 0;
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return 0;
    const ssize_t got = recv(p->fd, line + n, (size_t)(LINE - n), 0);
    if (got <= 0) return -1;
    n += (int)got;
    const char *end = memchr(line, '\n', (size_t)n);
    if (end) return end == line + n - 1 ? n : LINE + 1; // more than one line
    if (n == LINE) return LINE + 2;
  }
}

// "12.5", microseconds, or "-".
static bool parse(char *line, int n, i64 *ps) {
  char *end = line;
  if (memchr(line, 0, (size_t)n)) return false;
  line[strcspn(line, "\r\n")] = 0;
  if (!strcmp(line, "-")) return *ps = -1, true;
  const double us = strtod(line, &end);
  if (end == line || *end || line[strspn(line, "0123456789.eE+-")] || !(us >= 0 && us < 1e12)) return false;
  *ps = (i64)(us * 1e6 + 0.5);
  return true;
}

static predicted_how ask(machine_predictor *p, ctx *c, const char *key, i64 *ps) {
  char line[LINE + 1], what[LINE + 128];
  p->asked++;
  if (recv(p->fd, line, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return failed(p, c, key, TWO_LINES);
  if (!tell(p, key)) return failed(p, c, key, how_it_ended(p, what, sizeof what));
  const int n = hear(p, line);
  if (n < 0) return failed(p, c, key, how_it_ended(p, what, sizeof what));
  if (!n)
    snprintf(what, sizeof what, "no answer within %g s: is its output flushed after every line?",
             p->wait_ms / 1e3);
  if (n == LINE + 1) return failed(p, c, key, TWO_LINES);
  if (n == LINE + 2) snprintf(what, sizeof what, "an answer of more than %d bytes", LINE);
  if (n <= 0 || n > LINE) return failed(p, c, key, what);
  line[n] = 0;
  if (parse(line, n, ps)) return *ps < 0 ? PREDICTION_NONE : PREDICTION_KNOWN;
  snprintf(what, sizeof what, "'%.80s' is no time: microseconds, such as 12.5, or - where it is not known",
           line);
  return failed(p, c, key, what);
}

predicted_how machine_predict(const machine *m, ctx *c, const char *key, i64 *ps) {
  machine_predictor *p = m->predictor;
  const u64 h = hash_bytes(key, strlen(key), 5);
  predicted_how r = PREDICTION_FAILED;
  bool seen = false;
  pthread_mutex_lock(&p->lock);
  for (u32 it = 0, i; !seen && hmap_next(&p->by_key, h, &it, &i);) {
    if (strcmp(p->answers.v[i].key, key)) continue;
    seen = true, *ps = p->answers.v[i].ps;
    r = *ps < 0 ? PREDICTION_NONE : PREDICTION_KNOWN;
  }
  if (!seen && p->why) {
    failed(p, c, p->last, p->why);
  } else if (!seen && (r = ask(p, c, key, ps)) != PREDICTION_FAILED) {
    hmap_add(p->a, &p->by_key, h, p->answers.n);
    *vec_push(p->a, &p->answers) = (answered){arena_strdup(p->a, key), r == PREDICTION_NONE ? -1 : *ps};
  }
  pthread_mutex_unlock(&p->lock);
  return r;
}
