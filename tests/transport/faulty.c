// faulty.c - a transport that does what goes wrong: heddle-mpi.so, but one rank does something at one of its messages.
//
// HEDDLE_FAULT=RANK:MESSAGE:WHAT, messages counted from 1, sent and received:
//   kill, stop, term   this signal to itself
//   exit         ends as if all were well
//   lose         what it sends is sent nowhere
//   deaf         what it receives never comes
//   memory       it is given no more memory
//   crash        it reads where nothing is
//   starve       the same, without memory
//   disk         it cannot write more than 1000 bytes to a file
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <heddle.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static heddle_link real;
static unsigned faulty_rank, message, at;
static char what[16];

static void limit_memory(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%lu", &pages) != 1) exit(70);
  fclose(f);
  const struct rlimit l = {pages * (unsigned long)sysconf(_SC_PAGESIZE), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &l);
  for (size_t n = 1 << 20; n >= 1 << 12; n /= 2) // what was freed before is used up as well
    for (volatile char *p; (p = malloc(n)); *p = 1) continue;
}

// Is this the message at which it happens?
static bool strikes(const char *kind) {
  if (at != message || strcmp(what, kind) != 0) return false;
  fprintf(stderr, "injected: %s at message %u of rank %u, at second %lld\n", what, message, real.rank,
          (long long)time(NULL));
  return true;
}

static void next_message(void) {
  if (real.rank != faulty_rank || ++at != message) return;
  if (strikes("kill")) raise(SIGKILL);
  if (strikes("stop")) raise(SIGSTOP);
  if (strikes("term")) raise(SIGTERM);
  if (strikes("exit")) _exit(0);
  const bool starves = strikes("starve");
  if (starves || strikes("memory")) limit_memory();
  volatile uintptr_t nowhere = 8;
  if (starves || strikes("crash")) *(volatile char *)nowhere = 1;
  if (strikes("disk")) setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY});
}

static bool send_to(void *arg, uint32_t to, const void *data, int64_t bytes) {
  next_message();
  if (real.rank == faulty_rank && strikes("lose")) return true;
  return real.send(arg, to, data, bytes);
}

static bool receive_from(void *arg, uint32_t from, void *data, int64_t bytes) {
  next_message();
  if (real.rank == faulty_rank && strikes("deaf"))
    for (;;) sleep(1);
  return real.receive(arg, from, data, bytes);
}

const int heddle_transport_form = HEDDLE_TRANSPORT_FORM;
bool heddle_transport_open(heddle_transport *out, char *error, size_t size);
bool heddle_transport_open(heddle_transport *out, char *error, size_t size) {
  Dl_info own;
  char path[4096];
  heddle_transport_opener *open = NULL;
  const char *fault = getenv("HEDDLE_FAULT");
  if (!fault || sscanf(fault, "%u:%u:%15s", &faulty_rank, &message, what) != 3 || !dladdr(&real, &own)) {
    snprintf(error, size, "HEDDLE_FAULT=RANK:MESSAGE:WHAT");
    return false;
  }
  const char *slash = strrchr(own.dli_fname, '/');
  snprintf(path, sizeof path, "%.*s/../heddle-mpi.so", (int)(slash ? slash - own.dli_fname : 0),
           own.dli_fname);
  void *so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (so) *(void **)&open = dlsym(so, "heddle_transport_open");
  if (!open || !open(out, error, size)) return false;
  real = out->link;
  out->link.send = send_to, out->link.receive = receive_from;
  return true;
}
