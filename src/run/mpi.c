// mpi.c - ranks joined by MPI: heddle-mpi.so, which `heddle run` loads. The only file that knows MPI; nothing else
// needs it to be built.
//
// Idea: a send copies and leaves, so that no rank waits for another one to come to its receive; what is under way is
// looked at whenever this rank communicates, for MPI moves nothing by itself. So a message must not need its sender any
// more once it has left: it goes in chunks that MPI puts down in the memory both ends share, where the other end finds
// them while this one computes. Larger ones would wait until the sender communicates again. Where MPI lets several threads
// call it, there are two lines: the second one is for a thread that communicates beside computation, and sleeps while it
// waits, for the core is the computation's.
#define _GNU_SOURCE // sched_getaffinity
#include <heddle.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_TAG = 1, EAGER = 64 << 10, HEADER = 1 << 10, CHUNK = EAGER - HEADER, LOOK_AT = 16 };
typedef struct parcel parcel;
struct parcel {
  parcel *next;
  MPI_Request request;
  int room;
  char data[];
};
typedef struct {
  MPI_Comm comm;
  parcel *under_way;
  parcel *spare;       // the largest of those that have left; NULL: none has
  uint32_t n, look_at; // parcels under way; at so many it is looked which have arrived
  bool sleeps;
  int64_t pause_ns; // of one that sleeps
} line;
static line first, second = {.sleeps = true};

static void give_back(line *l, parcel *p) {
  parcel *other = l->spare;
  const bool larger = !other || p->room > other->room;
  if (larger) l->spare = p;
  free(larger ? other : p);
}

static bool sent(line *l) { // Is nothing under way any more? Frees what has arrived.
  for (parcel **at = &l->under_way; *at;) {
    parcel *p = *at;
    int done = 0;
    MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
    if (!done) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    l->n--;
    give_back(l, p);
  }
  l->look_at = 2 * l->n + LOOK_AT;
  return !l->under_way;
}

static bool send_chunk(line *l, uint32_t to, const char *data, int bytes) {
  const bool fits = l->spare && l->spare->room >= bytes;
  parcel *p = fits ? l->spare : malloc(sizeof *p + (size_t)bytes);
  int done = 0;
  if (!p) return false; // with ENOMEM
  if (fits)
    l->spare = NULL;
  else
    p->room = bytes;
  memcpy(p->data, data, (size_t)bytes);
  if (MPI_Isend(p->data, bytes, MPI_BYTE, (int)to, MESSAGE_TAG, l->comm, &p->request) != MPI_SUCCESS) {
    free(p);
    return false;
  }
  MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
  if (done) { // MPI has put it down
    give_back(l, p);
    return true;
  }
  p->next = l->under_way;
  l->under_way = p;
  if (++l->n > l->look_at) sent(l); // what was copied at once needs its parcel no longer
  return true;
}

static bool send_to(void *arg, uint32_t to, const void *data, int64_t bytes) {
  line *l = arg;
  for (int64_t at = 0; at < bytes; at += CHUNK)
    if (!send_chunk(l, to, (const char *)data + at, (int)(bytes - at < CHUNK ? bytes - at : CHUNK)))
      return false;
  sent(l);
  return true;
}

static void sleep_for(int64_t ns) { nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL); }

// What comes after some tries. A thread that communicates sleeps half as long as it waited for the chunk before, since each time
// that it wakes is taken from the rank's computation; several chunks are under way, so the link goes on meanwhile.
static void pause_after(line *l, int tries) {
  enum { SPIN = 100, LOOK = 2 };
  if (!l->sleeps && tries >= SPIN) sched_yield(); // another rank may have this core
  if (l->sleeps && tries >= LOOK) sleep_for(l->pause_ns);
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void learn_pause(line *l, int64_t waited_ns) {
  enum { LEAST_NS = 20000, MOST_NS = 500000 };
  const int64_t half = waited_ns / 2, least = l->pause_ns / 2 > LEAST_NS ? l->pause_ns / 2 : LEAST_NS;
  l->pause_ns = half < least ? least : half > MOST_NS ? MOST_NS : half;
}

static bool receive_chunk(line *l, uint32_t from, char *data, int bytes) {
  MPI_Request request;
  MPI_Status status;
  if (MPI_Irecv(data, bytes, MPI_BYTE, (int)from, MESSAGE_TAG, l->comm, &request) != MPI_SUCCESS)
    return false;
  const int64_t since = l->sleeps ? now_ns() : 0;
  for (int done = 0, tries = 0; !done; tries++) {
    if (MPI_Test(&request, &done, &status) != MPI_SUCCESS) return false;
    if (!done) sent(l), pause_after(l, tries);
  }
  if (l->sleeps) learn_pause(l, now_ns() - since);
  int came = 0;
  MPI_Get_count(&status, MPI_BYTE, &came);
  return came == bytes;
}

static bool receive_from(void *arg, uint32_t from, void *data, int64_t bytes) {
  line *l = arg;
  for (int64_t at = 0; at < bytes; at += CHUNK)
    if (!receive_chunk(l, from, (char *)data + at, (int)(bytes - at < CHUNK ? bytes - at : CHUNK)))
      return false;
  return true;
}

// ---- all-reduces by MPI's own ---------------------------------------------------------------------------------
typedef struct among among;
struct among {
  among *next;
  MPI_Comm comm;
  uint32_t n, rank[];
};
static among *groups;

// A communicator of these ranks, made when they first meet.
static MPI_Comm comm_among(const uint32_t *ranks, uint32_t n) {
  for (among *g = groups; g; g = g->next)
    if (g->n == n && !memcmp(g->rank, ranks, n * sizeof *ranks)) return g->comm;
  among *g = malloc(sizeof *g + n * sizeof *ranks);
  MPI_Group all, some;
  if (!g) return MPI_COMM_NULL;
  *g = (among){.next = groups, .n = n, .comm = MPI_COMM_NULL};
  memcpy(g->rank, ranks, n * sizeof *ranks);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, (int)n, (const int *)ranks, &some);
  MPI_Comm_create_group(MPI_COMM_WORLD, some, MESSAGE_TAG, &g->comm);
  MPI_Group_free(&some), MPI_Group_free(&all);
  groups = g;
  return g->comm;
}

static bool all_reduce_some(line *l, MPI_Comm comm, void *data, int count, int bytes, bool largest) {
  MPI_Request request;
  if (MPI_Iallreduce(MPI_IN_PLACE, data, count, bytes == 8 ? MPI_DOUBLE : MPI_FLOAT,
                     largest ? MPI_MAX : MPI_SUM, comm, &request) != MPI_SUCCESS)
    return false;
  for (int done = 0, tries = 0; !done; tries++) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (!done) sent(l), pause_after(l, tries);
  }
  return true;
}

static bool all_reduce(void *arg, const uint32_t *ranks, uint32_t n, void *data, int64_t count, int bytes,
                       bool largest) {
  enum { MOST = 1 << 28 }; // MPI counts in int
  const MPI_Comm comm = comm_among(ranks, n);
  if (comm == MPI_COMM_NULL) return false;
  for (int64_t at = 0; at < count; at += MOST)
    if (!all_reduce_some(arg, comm, (char *)data + at * bytes, (int)(count - at < MOST ? count - at : MOST),
                         bytes, largest))
      return false;
  return true;
}

static void close_all(void *arg, bool failed) {
  (void)arg;
  if (failed) MPI_Abort(MPI_COMM_WORLD, 1);
  while (!sent(&first) || (second.comm != MPI_COMM_NULL && !sent(&second))) sched_yield();
  MPI_Finalize();
}

// The cores that this rank may use, shared with the ranks of this machine that may use them too. 0: not known.
static uint32_t cores(void) {
  MPI_Comm here;
  cpu_set_t own, both;
  int n = 0, sharing = 0;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own)) CPU_ZERO(&own);
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS)
    return 0;
  MPI_Comm_size(here, &n);
  cpu_set_t *all = calloc((size_t)n, sizeof *all);
  if (!all) abort();
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, here);
  for (int k = 0; k < n; k++) {
    CPU_AND(&both, &own, &all[k]);
    sharing += CPU_COUNT(&both) > 0;
  }
  free(all);
  MPI_Comm_free(&here);
  const int each = sharing ? CPU_COUNT(&own) / sharing : 0;
  return (uint32_t)(sharing && each < 1 ? 1 : each);
}

// Open MPI's words for it, of version 4 and of version 5; the room that a rank's chunks under way may take, where there
// is so much.
static void share_memory(void) {
  static const int64_t ROOM = 64 << 20, RANKS = 8;
  static const char *const words[] = {"OMPI_MCA_btl_vader", "OMPI_MCA_btl_sm"};
  struct statvfs there;
  char word[64], bytes[24];
  if (statvfs("/dev/shm", &there) || (int64_t)there.f_bavail * (int64_t)there.f_frsize < RANKS * ROOM) return;
  for (int k = 0; k < 2; k++) {
    snprintf(word, sizeof word, "%s_eager_limit", words[k]);
    snprintf(bytes, sizeof bytes, "%d", EAGER);
    setenv(word, bytes, 0);
    snprintf(word, sizeof word, "%s_segment_size", words[k]);
    snprintf(bytes, sizeof bytes, "%lld", (long long)ROOM);
    setenv(word, bytes, 0);
  }
}

const int heddle_transport_form = HEDDLE_TRANSPORT_FORM;
bool heddle_transport_open(heddle_transport *out, char *error, size_t size);
bool heddle_transport_open(heddle_transport *out, char *error, size_t size) {
  int rank, ranks, threads = MPI_THREAD_SINGLE;
  share_memory();
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS) {
    strncpy(error, "MPI_Init failed", size);
    return false;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static char about[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(about, &length);
  about[strcspn(about, ",\n")] = 0;
  first.comm = MPI_COMM_WORLD, second.comm = MPI_COMM_NULL;
  if (threads == MPI_THREAD_MULTIPLE) MPI_Comm_dup(MPI_COMM_WORLD, &second.comm);
  static heddle_link beside;
  beside = (heddle_link){.rank = (uint32_t)rank, .arg = &second, .send = send_to, .receive = receive_from};
  *out = (heddle_transport){.ranks = (uint32_t)ranks,
                            .link = {.rank = (uint32_t)rank,
                                     .send = send_to,
                                     .arg = &first,
                                     .receive = receive_from,
                                     .all_reduce = all_reduce,
                                     .threads = cores(),
                                     .beside = second.comm != MPI_COMM_NULL ? &beside : NULL},
                            .close = close_all,
                            .about = about};
  return true;
}
