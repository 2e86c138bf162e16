// watch.c - sees that the ranks of `heddle run` live and get on.
//
// Idea: every rank has a connection to one process, which the kernel closes when the rank's process ends, however it
// does; and a thread that reports where the rank is, which goes on while the rank computes and stops when its process
// is stopped. So long computations are told from stopped processes without a guess at how long they take.
#define _GNU_SOURCE // accept4, pipe2
#include "cli/run.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 3000 };
static const uint32_t MAGIC = 0x48444c31;
static const double DEFAULT_LIMIT_S = 20;

typedef struct { // as it travels; ranks are of one build
  uint32_t magic, rank;
  uint64_t token;
  uint32_t kind, pid;
  heddle_where where;
} report;

typedef struct {
  int fd; // -1: not connected
  size_t have;
  report in;
  bool joined, told, done, terminated, starved, gone;
  pid_t pid;
  double heard_ms, moved_ms; // the latest report; the latest that showed it getting on
} watched_rank;

struct watch {
  heddle_program *d;
  uint32_t ranks;
  int listener;
  uint64_t token;
  double limit_s;
  char address[ADDRESS_SPACE];
  const char *saved; // folder of checkpoints; NULL: none
  watched_rank *of;
  heddle_where *where;
  int *strangers; // connections that have not said who they are
  uint32_t nstrangers;
  bool fault, local; // local: all ranks are on this computer
  bool why;          // a rank says why it failed, or will
  uint32_t first;    // which
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double beat_s(double limit_s) { return limit_s <= 0 ? 0.05 : fmin(0.05, limit_s / 8); }

// ---- a rank's end --------------------------------------------------------------------------------------------
static struct {
  watched w;
  const heddle_run *r;
  pthread_mutex_t lock;
  _Atomic char answer; // to REPORT_TOLD: FIRST, or LATER
} self = {.w = {.fd = -1}, .lock = PTHREAD_MUTEX_INITIALIZER};

static bool put_report(const watched *w, uint32_t kind, const heddle_run *r) {
  report p = {.magic = MAGIC, .rank = w->rank, .token = w->token, .kind = kind, .pid = (uint32_t)getpid()};
  if (r) heddle_run_where(r, &p.where);
  return send(w->fd, &p, sizeof p, MSG_NOSIGNAL) == (ssize_t)sizeof p;
}

void watch_tell(const watched *w, report_kind k) {
  if (w->fd < 0) return;
  pthread_mutex_lock(&self.lock);
  put_report(w, k, self.r);
  pthread_mutex_unlock(&self.lock);
}

// Whoever watches is gone or says so: this rank ends too, and leaves no orphan.
static const char END = 'q', FIRST = 'f', LATER = 'l';
static bool told_to_end(int fd, double wait_s) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  char c = END;
  if (poll(&p, 1, (int)(wait_s * 1e3)) <= 0 || recv(fd, &c, 1, MSG_DONTWAIT) == -1) return false;
  if (c == END) return true;
  self.answer = c;
  return false;
}

// A later one lets the first write and end the job, by which it ends itself; if that does not come, it says why as well.
bool watch_says_why(const watched *w) {
  enum { PAUSE_MS = 5, ANSWER_MS = 1000 };
  if (w->fd < 0) return true;
  watch_tell(w, REPORT_TOLD);
  for (int ms = 0; ms < (self.answer == LATER ? GRACE_MS : ANSWER_MS) && self.answer != FIRST; ms += PAUSE_MS)
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000}, NULL);
  return true;
}

static void *report_on(void *arg) {
  const watched *w = arg;
  for (;;) {
    watch_tell(w, REPORT_BEAT);
    if (told_to_end(w->fd, w->every_s)) _exit(EXIT_USER);
  }
  return NULL;
}

// A launcher, the parent of its ranks, ends them by this signal; they are not the ones that died. From anybody else it
// is what the job fails by.
static void terminated(int sig, siginfo_t *info, void *context) {
  (void)context;
  if (self.w.fd >= 0)
    put_report(&self.w, info->si_pid == getppid() ? REPORT_ENDED : REPORT_TERMINATED, self.r);
  signal(sig, SIG_DFL);
  raise(sig);
}
static void catch_termination(void) {
  struct sigaction a = {.sa_sigaction = terminated, .sa_flags = SA_SIGINFO};
  sigemptyset(&a.sa_mask);
  sigaction(SIGTERM, &a, NULL);
}

// Open MPI does not check whether it was given memory, and crashes where it was not. If the system gives none now, that is why.
static struct sigaction before_error[NSIG];
static void met_error(int sig, siginfo_t *info, void *context) {
  (void)context;
  const size_t little = 16 << 20;
  void *p = mmap(NULL, little, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != MAP_FAILED) {
    munmap(p, little);
    sigaction(sig, &before_error[sig], NULL); // an access comes again
    if (info->si_code <= 0) raise(sig);
    return;
  }
  if (self.w.fd >= 0) put_report(&self.w, REPORT_STARVED, self.r);
  signal(sig, SIG_DFL);
  if (info->si_code <= 0) raise(sig);
}
static void catch_errors(void) {
  static const int errors[] = {SIGSEGV, SIGBUS};
  struct sigaction a = {.sa_sigaction = met_error, .sa_flags = SA_SIGINFO};
  sigemptyset(&a.sa_mask);
  for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
    sigaction(errors[k], &a, &before_error[errors[k]]);
}

static int connect_to(const char *host, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  int fd = -1;
  if (getaddrinfo(host, port, &hints, &found)) return -1;
  for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) close(fd), fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

static void start_reports(void) {
  pthread_t t;
  sigset_t all, before;
  sigfillset(&all); // signals are the training thread's
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!pthread_create(&t, NULL, report_on, &self.w)) pthread_detach(t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

watched watch_join(const char *address, uint32_t rank) {
  watched w = {.fd = -1, .rank = rank};
  char host[256], port[16];
  unsigned long long token;
  if (!address || sscanf(address, "%255[^/]/%15[^/]/%llx/%lf", host, port, &token, &w.every_s) != 4) return w;
  w.token = token;
  w.fd = connect_to(host, port);
  if (w.fd < 0) {
    fprintf(stderr, "warning: rank %u cannot reach %s port %s: nobody will notice if it hangs\n", rank, host,
            port);
    return w;
  }
  setsockopt(w.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  self.w = w;
  catch_termination(), catch_errors();
  start_reports();
  return w;
}

void watch_follow(const watched *w, const heddle_run *r) {
  if (w->fd < 0) return;
  pthread_mutex_lock(&self.lock);
  self.r = r;
  pthread_mutex_unlock(&self.lock);
}

// ---- who watches ---------------------------------------------------------------------------------------------
static int ended_pipe[2] = {-1, -1}; // SIGCHLD wakes the poll
static void child_ended(int sig) {
  const int err = errno;
  if (write(ended_pipe[1], "c", 1) < 0) (void)sig;
  errno = err;
}

static bool listen_at(watch *w, bool remote) {
  struct sockaddr_in a = {.sin_family = AF_INET,
                          .sin_addr.s_addr = htonl(remote ? INADDR_ANY : INADDR_LOOPBACK)};
  socklen_t n = sizeof a;
  char host[256] = "127.0.0.1";
  w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (w->listener < 0 || bind(w->listener, (struct sockaddr *)&a, n) || listen(w->listener, 128) ||
      getsockname(w->listener, (struct sockaddr *)&a, &n) || (remote && gethostname(host, sizeof host)))
    return false;
  snprintf(w->address, sizeof w->address, "%s/%u/%llx/%g", host, ntohs(a.sin_port),
           (unsigned long long)w->token, beat_s(w->limit_s));
  return true;
}

watch *watch_open(const cli *x, heddle_program *d, bool remote) {
  watch *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *w = (watch){.d = d,
               .ranks = heddle_program_ranks(d),
               .local = !remote,
               .listener = -1,
               .token = (uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)getpid() << 16,
               .limit_s = x->run_hang.given ? x->run_hang.x : DEFAULT_LIMIT_S,
               .saved = x->run_save ? x->run_save : x->run_resume};
  w->of = calloc(w->ranks, sizeof *w->of), w->where = calloc(w->ranks, sizeof *w->where);
  w->strangers = calloc(w->ranks, sizeof *w->strangers);
  for (uint32_t k = 0; w->of && k < w->ranks; k++) w->of[k].fd = -1;
  if (ended_pipe[0] < 0 && !pipe2(ended_pipe, O_NONBLOCK | O_CLOEXEC)) signal(SIGCHLD, child_ended);
  if (w->of && w->where && w->strangers && listen_at(w, remote)) return w;
  watch_close(w);
  return NULL;
}

const char *watch_address(const watch *w) { return w->address; }

void watch_close(watch *w) {
  if (!w) return;
  for (uint32_t k = 0; w->of && k < w->ranks; k++)
    if (w->of[k].fd >= 0) close(w->of[k].fd);
  for (uint32_t k = 0; k < w->nstrangers; k++) close(w->strangers[k]);
  if (w->listener >= 0) close(w->listener);
  free(w->of), free(w->where), free(w->strangers), free(w);
}

// The computer that a rank's connection comes from; NULL: this one, or not known.
static const char *host_of(const watch *w, uint32_t rank, char *host, socklen_t size) {
  struct sockaddr_in a = {0}, own = {0};
  socklen_t n = sizeof a, m = sizeof own;
  const int fd = w->of[rank].fd;
  if (getpeername(fd, (struct sockaddr *)&a, &n) || getsockname(fd, (struct sockaddr *)&own, &m) ||
      a.sin_family != AF_INET || a.sin_addr.s_addr == own.sin_addr.s_addr ||
      getnameinfo((struct sockaddr *)&a, n, host, size, NULL, 0, 0))
    return NULL;
  return host;
}

static void tell(watch *w, heddle_fault_kind kind, uint32_t rank) {
  char host[256];
  if (w->fault) return;
  w->fault = true;
  const heddle_fault f = {.kind = kind,
                          .rank = rank,
                          .ranks = w->ranks,
                          .seconds = w->limit_s,
                          .where = w->where,
                          .saved = w->saved,
                          .host = host_of(w, rank, host, sizeof host)};
  heddle_run_fault(w->d, &f);
}

static void take(watch *w, watched_rank *r, const report *p, double now) {
  heddle_where *at = &w->where[p->rank];
  r->heard_ms = now;
  if (!r->joined || p->where.count != at->count || p->where.phase != at->phase || p->where.step != at->step)
    r->moved_ms = now;
  r->joined = true;
  r->pid = (pid_t)p->pid;
  *at = p->where;
  r->told = r->told || p->kind == REPORT_SAID || p->kind == REPORT_ENDED;
  if (p->kind == REPORT_TOLD) { // what fails on several ranks is told once
    send(r->fd, w->why ? &LATER : &FIRST, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!w->why) w->why = true, w->first = p->rank;
  }
  r->terminated = r->terminated || p->kind == REPORT_TERMINATED;
  r->starved = r->starved || p->kind == REPORT_STARVED;
  if (p->kind == REPORT_DONE && !r->done) r->done = true, r->moved_ms = now;
}

// False: the connection is closed.
static bool hear(watch *w, uint32_t rank, double now) {
  watched_rank *r = &w->of[rank];
  for (;;) {
    const ssize_t n = recv(r->fd, (char *)&r->in + r->have, sizeof r->in - r->have, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    r->have += (size_t)n;
    if (r->have < sizeof r->in) continue;
    r->have = 0;
    if (r->in.magic == MAGIC && r->in.token == w->token && r->in.rank == rank) take(w, r, &r->in, now);
  }
}

// A connection becomes a rank's by its first report.
static void introduce(watch *w, uint32_t k, double now) {
  report p;
  const int fd = w->strangers[k];
  const ssize_t n = recv(fd, &p, sizeof p, MSG_DONTWAIT | MSG_PEEK);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (n > 0 && n < (ssize_t)sizeof p) return;
  w->strangers[k] = w->strangers[--w->nstrangers];
  if (n != (ssize_t)sizeof p || p.magic != MAGIC || p.token != w->token || p.rank >= w->ranks ||
      w->of[p.rank].fd >= 0) {
    close(fd);
    return;
  }
  w->of[p.rank].fd = fd;
  w->of[p.rank].heard_ms = w->of[p.rank].moved_ms = now;
}

bool watch_knows_why(const watch *w) { return w && (w->why || w->fault); }

static volatile sig_atomic_t told;
void watch_told(void) { told = 1; }

static void left(watch *w, uint32_t rank) {
  watched_rank *r = &w->of[rank];
  if (told) r->told = true;                       // so is this process: all of the job were meant
  if (w->why && w->first != rank) r->told = true; // the job ends because of the first
  if (!r->told && !r->done)
    tell(w, r->terminated ? HEDDLE_TERMINATED : r->starved ? HEDDLE_STARVED : HEDDLE_DIED, rank);
  close(r->fd);
  r->fd = -1;
}

static void look(watch *w, int wait_ms) {
  struct pollfd *p = calloc((size_t)w->ranks + w->nstrangers + 2, sizeof *p);
  uint32_t n = 0;
  if (!p) return;
  p[n++] = (struct pollfd){.fd = ended_pipe[0], .events = POLLIN};
  p[n++] = (struct pollfd){.fd = w->nstrangers < w->ranks ? w->listener : -1, .events = POLLIN};
  for (uint32_t k = 0; k < w->nstrangers; k++)
    p[n++] = (struct pollfd){.fd = w->strangers[k], .events = POLLIN};
  for (uint32_t k = 0; k < w->ranks; k++) p[n++] = (struct pollfd){.fd = w->of[k].fd, .events = POLLIN};
  poll(p, n, wait_ms);
  free(p);
  char c[64];
  const double now = now_ms();
  while (ended_pipe[0] >= 0 && read(ended_pipe[0], c, sizeof c) == sizeof c) continue;
  for (int fd; w->nstrangers < w->ranks &&
               (fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
    w->strangers[w->nstrangers++] = fd;
  for (uint32_t k = w->nstrangers; k-- > 0;) introduce(w, k, now);
  for (uint32_t k = 0; k < w->ranks; k++) // all that ranks say, before what their ends mean
    w->of[k].gone = w->of[k].fd >= 0 && !hear(w, k, now);
  for (uint32_t k = 0; k < w->ranks; k++)
    if (w->of[k].gone) left(w, k);
}

// Ranks that wait for each other in a circle, or for one that has ended, and none gets on.
static bool stuck(const watch *w, uint32_t rank, double now) {
  uint32_t r = rank;
  for (uint32_t k = 0; k < w->ranks; k++) {
    const watched_rank *s = &w->of[r];
    if (s->done && r != rank) return now - s->moved_ms >= w->limit_s * 1e3; // it sends no more
    if (!s->joined || s->done || !w->where[r].waits || w->where[r].waits > w->ranks) return false;
    if (now - s->moved_ms < w->limit_s * 1e3) return false;
    r = w->where[r].waits - 1;
    if (r == rank) return true;
  }
  return false;
}

static void judge(watch *w, double now) {
  if (w->limit_s <= 0 || w->fault) return;
  for (uint32_t k = 0; k < w->ranks; k++)
    if (w->of[k].fd >= 0 && w->of[k].joined && now - w->of[k].heard_ms > w->limit_s * 1e3)
      tell(w, HEDDLE_SILENT, k);
  for (uint32_t k = 0; k < w->ranks && !w->fault; k++)
    if (w->where[k].sends && now - w->of[k].moved_ms > w->limit_s * 1e3) tell(w, HEDDLE_SENDING, k);
  for (uint32_t k = 0; k < w->ranks && !w->fault; k++)
    if (stuck(w, k, now)) tell(w, HEDDLE_STUCK, k);
}

// This process was stopped itself, or has slept: nobody is to blame for that time.
static void forgive(watch *w, double gap_ms) {
  for (uint32_t k = 0; k < w->ranks; k++) w->of[k].heard_ms += gap_ms, w->of[k].moved_ms += gap_ms;
}

// Of ranks that no launcher of ours has started: all have come and gone, or the parent, rank 0, has before they came.
static bool all_gone(const watch *w, pid_t parent) {
  bool any = false, missing = false;
  for (uint32_t k = 0; k < w->ranks; k++)
    any = any || w->of[k].fd >= 0, missing = missing || !w->of[k].joined;
  return !any && (!missing || getppid() != parent);
}

// Ranks are asked first: their launcher ends by itself when they have, and one that is told while it does so crashes. Then
// ranks are killed, at last the launcher.
typedef enum { ASK, KILL_RANKS, KILL_ALL } ending;
static void end_all(watch *w, pid_t launcher, ending how) {
  for (uint32_t k = 0; k < w->ranks; k++)
    if (w->of[k].fd >= 0) send(w->of[k].fd, &END, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  for (uint32_t k = 0; k < w->ranks && how >= KILL_RANKS && w->local;
       k++) // what is stopped hears nothing else
    if (w->of[k].fd >= 0 && w->of[k].joined) kill(w->of[k].pid, SIGKILL);
  if (launcher > 0 && how == KILL_RANKS && !w->local) kill(launcher, SIGTERM);
  if (launcher > 0 && how == KILL_ALL) kill(launcher, SIGKILL);
}

int watch_ranks(watch *w, pid_t launcher) {
  int status = 0;
  double last = now_ms(), since = 0;
  const pid_t parent = getppid();
  const int wait_ms = 50;
  bool asked = false;
  for (ending how = ASK;;) {
    look(w, wait_ms);
    const double now = now_ms();
    if (now - last > 4 * wait_ms + 500) forgive(w, now - last);
    last = now;
    judge(w, now);
    if (launcher > 0 && waitpid(launcher, &status, WNOHANG) == launcher) break;
    if (launcher <= 0 && all_gone(w, parent)) break;
    if (told && !asked)
      asked = true, since = now; // the launcher has heard of it, and may have been too young to act
    if (w->fault && !asked) asked = true, since = now, end_all(w, launcher, ASK);
    if (asked && how < KILL_ALL && now - since > GRACE_MS) since = now, end_all(w, launcher, ++how);
    if (how > ASK && launcher <= 0) break;
  }
  look(w, 0); // what ranks said last
  return status;
}

void watch_fork(const cli *x, heddle_program *d, char *address, size_t size) {
  watch *w = watch_open(x, d, true);
  *address = 0;
  if (!w) return;
  snprintf(address, size, "%s", watch_address(w));
  fflush(stdout), fflush(stderr);
  const pid_t child = fork();
  if (!child) {
    setsid(); // a launcher that ends its ranks must not end who tells why
    heddle_session_clear(x->s);
    watch_ranks(w, 0);
    fputs(heddle_session_messages(x->s), stderr);
    _exit(EXIT_OK);
  }
  watch_close(w);
  if (child < 0) *address = 0;
}
