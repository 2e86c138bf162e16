// memory_file.h - the input of a fuzzer as a file that has a path and is on no disk.
#ifndef HEDDLE_FUZZ_MEMORY_FILE_H
#define HEDDLE_FUZZ_MEMORY_FILE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void must(_Bool ok) {
  if (!ok) abort();
}

// The file is the same at every call, with these bytes.
static inline const char *memory_file(const uint8_t *data, size_t size) {
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
  return path;
}
#endif
