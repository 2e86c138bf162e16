// command.h - what measurements ask `heddle` itself, as a user would: a line, and a number in its JSON. And the models that they
// take, of steps of 20 to 200 ms on an idle machine of two cores.
#ifndef HEDDLE_BENCH_COMMAND_H
#define HEDDLE_BENCH_COMMAND_H
#include "bench.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MLP    "mlp-xs:layers=6,hidden=512 --batch 512"
#define GPT    "gpt2:layers=4,hidden=256,heads=8,vocab=2048 --batch 8 --seq 64"
#define BERT   "bert-base:layers=4,hidden=256,heads=8,vocab=2048 --batch 8 --seq 64"
#define T5     "t5-small:layers=3,hidden=256,heads=8,vocab=2048 --batch 8 --seq 64"
#define RESNET "resnet50 --batch 4 --seq 32"
#define MOE    "moe-8x125m:layers=4,hidden=256,heads=8,vocab=2048,experts=4 --batch 8 --seq 32"

// What the line prints, until the next one is asked; NULL: it failed.
static const char *answer(const char *fmt, ...) PRINTF_LIKE(1, 2);
static const char *answer_of(const char *program, const char *fmt, va_list ap) {
  static char out[1 << 20];
  char line[2048];
  const int n = snprintf(line, sizeof line, "%s ", program);
  vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
  FILE *f = popen(line, "r");
  if (!f) return NULL;
  const size_t got = fread(out, 1, sizeof out - 1, f);
  out[got] = 0;
  return pclose(f) ? NULL : out;
}
static const char *answer(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *program = getenv("HEDDLE"), *text = answer_of(program ? program : "build/heddle", fmt, ap);
  va_end(ap);
  return text;
}

// Behind the next "key": in text.
static const char *behind(const char *text, const char *key) {
  char word[64];
  snprintf(word, sizeof word, "\"%s\": ", key);
  const char *at = text ? strstr(text, word) : NULL;
  return at ? at + strlen(word) : NULL;
}
static inline double number(const char *text, const char *key) { // below 0: there is none
  const char *at = behind(text, key);
  return at ? atof(at) : -1;
}
// Of an answer that has to have it.
static inline double known(const char *text, const char *key) {
  const char *at = behind(text, key);
  if (at) return atof(at);
  fprintf(stderr, "a measurement failed: no \"%s\"\n", key);
  exit(1);
}
#endif
