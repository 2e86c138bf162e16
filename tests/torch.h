// torch.h - a Python program of tests/ that needs torch, and says "torch" first where there is one. Included by tests only.
#ifndef HEDDLE_TESTS_TORCH_H
#define HEDDLE_TESTS_TORCH_H
#include <stdio.h>
#include <string.h>

// What it prints of these folders, after its first line; NULL: there is no torch, which `line` says. Debian's python3 has
// the torch that Debian packages; another one may come first.
static inline FILE *torch_driver(const char *program, const char *folders, char *line, size_t size) {
  static const char *const names[] = {"/usr/bin/python3", "python3"};
  char command[20480];
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    snprintf(command, sizeof command, "%s -B -W ignore tests/%s %s 2>&1", names[k], program, folders);
    FILE *f = popen(command, "r");
    if (f && fgets(line, (int)size, f) && !strcmp(line, "torch\n")) return f;
    if (f) pclose(f);
  }
  return NULL;
}
#endif
