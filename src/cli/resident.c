// resident.c - what the process of a rank has in memory, and what of it the run's tensors do not explain.
#include "cli/run.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

// Of /proc/self/status, where the system has it; else nothing but the most that it has ever been.
resident resident_now(void) {
  static const char *const words[] = {"VmRSS:", "RssFile:", "RssShmem:"};
  struct rusage u = {0};
  char row[256];
  int64_t kib[3] = {0};
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(row, sizeof row, f))
    for (int k = 0; k < 3; k++)
      if (!strncmp(row, words[k], strlen(words[k]))) kib[k] = strtoll(row + strlen(words[k]), NULL, 10);
  if (f) fclose(f);
  const int64_t most = getrusage(RUSAGE_SELF, &u) ? 0 : (int64_t)u.ru_maxrss; // KiB on Linux
  return (resident){.bytes = (kib[0] ? kib[0] : most) * 1024,
                    .most = most * 1024,
                    .library = kib[1] * 1024,
                    .shared = kib[2] * 1024};
}

held_bytes held_of(const heddle_run_bytes *own, const resident *start, const resident *end) {
  held_bytes h = {
      .tensors = own->peak_bytes, .places = own->place_bytes, .start = start->bytes, .process = end->most};
  h.library = end->library - start->library, h.shared = end->shared - start->shared;
  h.other = h.process - h.start - h.places - h.library - h.shared;
  return h;
}

held_bytes held_most(const held_bytes *all, uint32_t ranks) {
  held_bytes most = *all;
  for (uint32_t k = 1; k < ranks; k++) {
    if (all[k].tensors > most.tensors) most.tensors = all[k].tensors;
    if (all[k].process > most.process) most.process = all[k].process;
  }
  return most;
}

void held_json(const held_bytes *all, uint32_t ranks) {
  fputs(", \"memory\": [", stdout);
  for (uint32_t k = 0; k < ranks; k++) {
    const held_bytes *h = &all[k];
    printf("%s{\"tensor_bytes\": %lld, \"place_bytes\": %lld, \"start_bytes\": %lld, \"process_bytes\": %lld",
           k ? ", " : "", (long long)h->tensors, (long long)h->places, (long long)h->start,
           (long long)h->process);
    printf(", \"library_bytes\": %lld, \"shared_bytes\": %lld, \"other_bytes\": %lld}", (long long)h->library,
           (long long)h->shared, (long long)h->other);
  }
  putchar(']');
}
