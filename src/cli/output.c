// output.c - what ranks and their launcher print, on its way through this process.
//
// A launcher says nothing of output that it cannot write: it gets a pipe, and what comes out of that is written here. On standard
// error it also says at length that a job has failed, before Heddle says why. These paragraphs are known by their lines. They
// are held, and told only where nobody else says why. A line that is not known here is never held for long.
#include "cli/run.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { PARAGRAPH = 8192, LINE = 1024, RULE = 70 }; // bytes; dashes of a line around paragraphs
typedef struct {
  int from, to;
  _Atomic bool over; // the launcher has ended: what is in the pipe is all
  pthread_t thread;
  // of standard error:
  char line[LINE], paragraph[PARAGRAPH], held[PARAGRAPH];
  size_t nline, nparagraph, nheld;
  bool inside; // a paragraph
  bool other;  // ... that is not known: it passes until its end
} channel;
static channel out = {.from = -1}, err = {.from = -1};
bool output_lost;

static bool write_all(int to, const char *text, size_t n) {
  while (n) {
    const ssize_t k = write(to, text, n);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0 && errno == EAGAIN) { // a terminal that somebody else does not wait for
      poll(&(struct pollfd){.fd = to, .events = POLLOUT}, 1, -1);
      continue;
    }
    if (k <= 0) return false;
    text += k, n -= (size_t)k;
  }
  return true;
}

// ---- paragraphs of Open MPI ----------------------------------------------------------------------------------
// Has the line the words in this order? '*' stands for any text.
static bool is_like(const char *line, const char *words) {
  for (; *words && *words != '*'; words++, line++)
    if (*line != *words) return false;
  if (!*words) return !*line;
  for (words++;; line++) {
    if (is_like(line, words)) return true;
    if (!*line) return false;
  }
}
static bool is_known(const char *line) {
  static const char *const known[] = {
      "",
      "MPI_ABORT was invoked on rank * in communicator *",
      "with errorcode *.",
      "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.",
      "You may or may not see output from other processes, depending on",
      "exactly when Open MPI kills them.",
      "Primary job  terminated normally, but * process* returned",
      "a non-zero exit code. Per user-direction, the job has been aborted.",
      "* detected that one or more processes exited with non-zero status, thus causing",
      "the job to be terminated. The first process to do so was:",
      "  Process name: [*",
      "  Exit code:    *",
      "* noticed that process rank * with PID * on node * exited on signal *",
  };
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (is_like(line, known[k])) return true;
  return false;
}
static bool is_known_alone(const char *line) {
  return is_like(line, "[*] [[*],*] ORTE_ERROR_LOG: * in file * at line *") ||
         is_like(line, "[*] * more process* sent help message help-mpi-api.txt / mpi-abort") ||
         is_like(line,
                 "[*] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages");
}
static bool is_rule(const char *line) {
  const size_t n = strspn(line, "-");
  return n >= RULE && !line[n];
}

static void let_go(channel *c) { // the paragraph, which is another one or not complete
  write_all(c->to, c->paragraph, c->nparagraph);
  c->nparagraph = 0, c->inside = false;
}
static void hold(channel *c, const char *text, size_t n) {
  const size_t room = sizeof c->held - c->nheld;
  if (n > room) n = room;
  memcpy(c->held + c->nheld, text, n), c->nheld += n;
}

// c->line, with its newline.
static void take_line(channel *c) {
  char text[LINE];
  snprintf(text, sizeof text, "%.*s", (int)c->nline - 1, c->line);
  const bool rule = is_rule(text), fits = c->nparagraph + c->nline <= sizeof c->paragraph;
  if (c->inside && (!fits || !(rule || is_known(text)))) let_go(c), c->other = true;
  if (c->other) {
    write_all(c->to, c->line, c->nline);
    c->other = !rule;
  } else if (c->inside || rule) {
    memcpy(c->paragraph + c->nparagraph, c->line, c->nline), c->nparagraph += c->nline;
    if (c->inside && rule) hold(c, c->paragraph, c->nparagraph), c->nparagraph = 0;
    c->inside = !(c->inside && rule);
  } else if (is_known_alone(text)) {
    hold(c, c->line, c->nline);
  } else {
    write_all(c->to, c->line, c->nline);
  }
  c->nline = 0;
}

static void let_all_go(channel *c) { // nothing has come for some time
  c->other |= c->inside;
  let_go(c);
  write_all(c->to, c->line, c->nline);
  c->nline = 0;
}
static void take_text(channel *c, const char *text, size_t n) {
  for (size_t k = 0; k < n; k++) {
    c->line[c->nline++] = text[k];
    if (text[k] == '\n')
      take_line(c);
    else if (c->nline == sizeof c->line - 1)
      let_all_go(c);
  }
}

// ---- forwarding ----------------------------------------------------------------------------------------------
static void *forward(void *arg) {
  enum { WAIT_MS = 100 };
  channel *c = arg;
  char text[4096];
  for (;;) { // a process that the ranks have left behind may hold the other end
    struct pollfd p = {.fd = c->from, .events = POLLIN};
    const bool over = c->over;
    const bool none = !poll(&p, 1, over ? 0 : WAIT_MS);
    if (none && over) break;
    if (none && c == &err) let_all_go(c);
    if (!p.revents) continue;
    const ssize_t n = read(c->from, text, sizeof text);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (c == &err)
      take_text(c, text, (size_t)n);
    else
      output_lost = output_lost || !write_all(c->to, text, (size_t)n);
  }
  return NULL;
}

int output_begin(int to) {
  channel *c = to == STDERR_FILENO ? &err : &out;
  int ends[2];
  sigset_t all, before;
  if (pipe(ends)) return -1;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC), fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  *c = (channel){.from = ends[0], .to = to};
  sigfillset(&all); // of a reader that has gone a write tells
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool ok = !pthread_create(&c->thread, NULL, forward, c);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (ok) return ends[1];
  close(ends[0]), close(ends[1]);
  return c->from = -1;
}

static void end(channel *c) {
  if (c->from < 0) return;
  c->over = 1;
  pthread_join(c->thread, NULL);
  close(c->from);
  c->from = -1;
}
void output_end(bool tell_held) {
  end(&out), end(&err);
  let_all_go(&err);
  if (tell_held) write_all(err.to, err.held, err.nheld);
  err.nheld = 0;
}
