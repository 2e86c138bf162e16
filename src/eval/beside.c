// beside.c - communication that goes on while the rank computes.
//
// Idea: what a communication sends, receives and adds is put together when it begins (transfer.c); a thread does it, one after
// the other in the order of the program, over connections that it has for itself. All ranks begin them in one order, so
// none waits for one that comes later. The rank waits where a result is used. The thread takes no memory and says nothing:
// results are made, recorded and diagnosed by the rank. Before it waits for what comes last of one communication, the thread
// sends what the next ones begin with: a link that carried one after the other would be idle between them.
#include "eval/internal.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct beside {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t more, ended;
  eval_link link;
  eval_where where;     // of the thread
  errand *first, *last; // that have begun and are not yet finished by the rank
  errand *next;         // of the thread
  errand *early;        // the last of which something was sent before its turn; NULL: that has come
  i64 early_bytes;      // sent for errands behind `next`
  char **room; // where what one of them puts together lies for a moment: the thread runs one at a time
  u32 nrooms;
  bool stop;
};

bool beside_takes(const interp *m, const instr *i) {
  if (!m->link->beside || !i->strm || i->nres != 1) return false;
  switch (i->op) {
  case OP_all_reduce:
  case OP_reduce_scatter:
  case OP_all_gather:
  case OP_all_to_all:
  case OP_reduce:
  case OP_broadcast: return true;
  default: return false;
  }
}

// The core computes whenever the thread wakes. Since 6.12 Linux lets a thread that wakes go first if its slice is shorter than that of
// the running one; else it waits for the end of that slice, some milliseconds. Older kernels ignore it.
static void ask_for_short_slices(void) {
#ifdef SYS_sched_setattr
  enum { SLICE_NS = 100000 }; // the least
  struct {
    u32 size, policy;
    u64 flags;
    int nice;
    u32 priority;
    u64 runtime, deadline, period;
  } how = {.size = sizeof how};
  if (!syscall(SYS_sched_getattr, 0, &how, sizeof how, 0) && how.policy == SCHED_OTHER) {
    how.runtime = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &how, 0);
  }
#endif
}

enum { EARLY_MOST = 96 << 10 }; // bytes

// The errand behind those of which all is sent that they begin with; NULL: none, or enough is under way.
static errand *next_early(struct beside *b) {
  errand *e = b->early ? b->early : b->next;
  if (b->early_bytes >= EARLY_MOST || (b->early && transfer_sends(&b->early->t))) return NULL;
  pthread_mutex_lock(&b->lock);
  e = e->next;
  pthread_mutex_unlock(&b->lock);
  return e;
}

// Messages between two ranks keep their order: of the errand that runs nothing is left to send.
static bool send_early(void *arg, u32 *gone) {
  struct beside *b = arg;
  for (errand *e; (e = next_early(b));) {
    const i64 before = b->early_bytes;
    if (!transfer_early(&b->link, &b->where, &e->t, EARLY_MOST, &b->early_bytes, gone)) return false;
    e->early_bytes = b->early_bytes - before;
    b->early = e;
  }
  return true;
}

static void *run(void *arg) {
  struct beside *b = arg;
  ask_for_short_slices();
  pthread_mutex_lock(&b->lock);
  for (;;) {
    while (!b->next && !b->stop) pthread_cond_wait(&b->more, &b->lock);
    errand *e = b->next;
    if (!e) break;
    pthread_mutex_unlock(&b->lock);
    b->early_bytes -= e->early_bytes;
    if (b->early == e) b->early = NULL;
    const bool ok = transfer_go(&b->link, &b->where, &e->t, send_early, b, &e->gone);
    const int error = errno;
    pthread_mutex_lock(&b->lock);
    e->ok = ok, e->error = error, e->ended = true;
    b->next = e->next;
    pthread_cond_signal(&b->ended);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

static struct beside *started(interp *m) {
  if (m->beside) return m->beside;
  struct beside *b = base_malloc(sizeof *b);
  *b = (struct beside){.link = *m->link->beside};
  pthread_mutex_init(&b->lock, NULL), pthread_cond_init(&b->more, NULL), pthread_cond_init(&b->ended, NULL);
  if (pthread_create(&b->thread, NULL, run, b)) {
    free(b);
    base_out_of_memory(0);
  }
  return m->beside = b;
}

char *beside_room(interp *m, u32 k, i64 bytes) {
  struct beside *b = started(m);
  assert(k <= b->nrooms);
  if (k == b->nrooms) {
    char **all = realloc(b->room, (k + 1) * sizeof *all);
    if (!all) base_out_of_memory(0);
    b->room = all;
    b->room[k] = base_malloc((size_t)bytes);
    b->nrooms++;
  }
  return b->room[k];
}

errand *beside_new(interp *m) {
  (void)m;
  arena *a = arena_new();
  errand *e = ZNEWN(a, errand, 1);
  e->a = a, e->t.a = a;
  return e;
}

void beside_begin(interp *m, errand *e) {
  struct beside *b = started(m);
  if (e->out) e->out->until = e;
  if (recorder_of(m)) record_begun(m->record, e);
  pthread_mutex_lock(&b->lock);
  *(b->first ? &b->last->next : &b->first) = e;
  b->last = e;
  e->ended = e->ok = eval_is_dry(m);
  if (!b->next && !e->ended) b->next = e;
  pthread_cond_signal(&b->more);
  pthread_mutex_unlock(&b->lock);
}

// Who is waited for is said as if the rank itself did, and that it gets on.
static void wait_for(interp *m, struct beside *b, const errand *e) {
  enum { LOOK_NS = 20000000, SECOND = 1000000000 };
  u64 seen = b->where.count;
  while (!e->ended) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= SECOND) until.tv_nsec -= SECOND, until.tv_sec++;
    pthread_cond_timedwait(&b->ended, &b->lock, &until);
    m->where.waits = b->where.waits;
    m->where.sends = b->where.sends;
    const u64 now = b->where.count;
    m->where.count += now != seen;
    seen = now;
  }
  m->where.waits = 0;
  m->where.sends = 0;
}

static bool finish_first(interp *m) {
  struct beside *b = m->beside;
  errand *e = b->first;
  if (recorder_of(m)) record_waits(m->record);
  pthread_mutex_lock(&b->lock);
  wait_for(m, b, e);
  b->first = e->next;
  pthread_mutex_unlock(&b->lock);
  if (e->out) e->out->until = NULL;
  errno = e->error; // which eval_gone asks, of this thread
  if (!e->ok) eval_gone(m, e->gone, e->t.where);
  const bool ok = e->finish(m, e->arg, e->ok);
  if (recorder_of(m)) record_ended(m->record, e);
  arena_free(e->a);
  return ok;
}

bool beside_end(interp *m, errand *e) {
  bool ok = true;
  for (bool last = false; !last && ok;) {
    last = m->beside->first == e;
    ok = finish_first(m);
  }
  return ok;
}

bool beside_end_all(interp *m) {
  bool ok = true;
  while (ok && m->beside && m->beside->first) ok = finish_first(m);
  return ok;
}

void beside_close(interp *m) {
  struct beside *b = m->beside;
  if (!b) return;
  pthread_mutex_lock(&b->lock);
  const bool busy = b->next;
  b->stop = true;
  pthread_cond_signal(&b->more);
  pthread_mutex_unlock(&b->lock);
  m->beside = NULL;
  if (busy) { // it waits for a rank that may never come: the process is about to end
    pthread_detach(b->thread);
    m->live = NULL, m->storage = NULL;
    return;
  }
  pthread_join(b->thread, NULL);
  for (errand *e = b->first, *next; e; e = next) next = e->next, arena_free(e->a);
  for (u32 k = 0; k < b->nrooms; k++) free(b->room[k]);
  free(b->room);
  pthread_mutex_destroy(&b->lock), pthread_cond_destroy(&b->more), pthread_cond_destroy(&b->ended);
  free(b);
}
