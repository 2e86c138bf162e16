// loaded.h - a built-in model with its loss, as the tests of shrinking load it.
#ifndef HEDDLE_TEST_LOADED_H
#define HEDDLE_TEST_LOADED_H
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} model;

static model open_model(const char *name, i64 batch, i64 seq) {
  model m = {ctx_new(), arena_new(), NULL};
  front_opts o = {.batch = batch, .seq = seq, .loss = true};
  m.p = front_load(m.c, name, &o);
  CHECK_MSG(m.p && pass_loss(m.p), "%s", diag_render(m.c, m.a));
  REQUIRE(m.p);
  return m;
}

static void close_model(model *m) {
  prog_free(m->p);
  arena_free(m->a);
  ctx_free(m->c);
}
#endif
