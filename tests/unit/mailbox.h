// mailbox.h - ranks in threads, joined by messages: a transport without MPI.
#ifndef HEDDLE_TESTS_MAILBOX_H
#define HEDDLE_TESTS_MAILBOX_H
#include "base/base.h"
#include "heddle.h"
#include <pthread.h>
#include <stdlib.h>

enum { RANKS = 4, SEATS = 12 }; // that a test runs; that a post has room for

typedef struct message message;
struct message {
  message *next;
  int64_t bytes;
  char data[];
};
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t came;
  message *first[SEATS][SEATS], *last[SEATS][SEATS]; // [from][to]
  uint64_t bytes[SEATS];                             // sent by rank
  bool gone[SEATS];
} post;
typedef struct {
  post *p;
  u32 rank;
} mailbox;

static inline bool send_to(void *arg, uint32_t to, const void *data, int64_t bytes) {
  const mailbox *b = arg;
  message *m = malloc(sizeof *m + (size_t)bytes);
  *m = (message){.bytes = bytes};
  memcpy(m->data, data, (size_t)bytes);
  pthread_mutex_lock(&b->p->lock);
  message **last = &b->p->last[b->rank][to];
  *(*last ? &(*last)->next : &b->p->first[b->rank][to]) = m;
  *last = m;
  b->p->bytes[b->rank] += (u64)bytes;
  pthread_cond_broadcast(&b->p->came);
  pthread_mutex_unlock(&b->p->lock);
  return true;
}

static inline bool receive_from(void *arg, uint32_t from, void *data, int64_t bytes) {
  const mailbox *b = arg;
  post *p = b->p;
  pthread_mutex_lock(&p->lock);
  while (!p->first[from][b->rank] && !p->gone[from]) pthread_cond_wait(&p->came, &p->lock);
  message *m = p->first[from][b->rank];
  if (m && !(p->first[from][b->rank] = m->next)) p->last[from][b->rank] = NULL;
  pthread_mutex_unlock(&p->lock);
  const bool right = m && m->bytes == bytes;
  if (right) memcpy(data, m->data, (size_t)bytes);
  free(m);
  return right;
}

static inline void leave(post *p, u32 rank) {
  pthread_mutex_lock(&p->lock);
  p->gone[rank] = true;
  pthread_cond_broadcast(&p->came);
  pthread_mutex_unlock(&p->lock);
}

static inline void post_free(post *p) {
  for (u32 a = 0; a < SEATS; a++)
    for (u32 b = 0; b < SEATS; b++)
      for (message *m = p->first[a][b], *next; m; m = next) next = m->next, free(m);
}
#endif
