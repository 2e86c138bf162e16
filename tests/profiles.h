// profiles.h - made-up times of the layers of any model, for tests.
#ifndef HEDDLE_TEST_PROFILES_H
#define HEDDLE_TEST_PROFILES_H
#include "ir/ir.h"
#include "machine/machine.h"
#include "test.h"

static inline void profile_line(strbuf *b, u64 *rng, const machine *m, const char *layer, u32 tensor) {
  for (u32 k = 0; k < m->nkinds; k++) {
    const u64 us = 20 + rng_next(rng) % 500, more = us / 2 + rng_next(rng) % 900;
    for (u32 s = 1; s <= 64; s *= 64)
      sb_fmt(b, "%s,%s,%u,%u,%llu,%llu,%llu\n", layer, sym_str(m->c, m->kind[k].name), s, tensor,
             (unsigned long long)(us + s * more), (unsigned long long)(us + s * more * 2),
             (unsigned long long)us);
  }
}

// For every part of src, which may have blocks, on every kind of device of the machine, over 1 to 8 of them,
// with 1 to 64 samples: becomes the profile of m. False: src has no blocks.
static inline bool profile_made_up(machine *m, arena *a, const prog *src, u64 *rng) {
  const func_info *f = func_get(src, src->main);
  strbuf b = {.a = a};
  sb_put(&b, "layer,device,samples,tensor,forward_us,backward_us,update_us\n");
  bool any = false;
  for (u32 i = 0; i < f->body.n; i++) {
    bool seen = f->body.v[i].op != OP_call;
    for (u32 j = 0; j < i && !seen; j++)
      seen = f->body.v[j].op == OP_call && f->body.v[j].callee.i == f->body.v[i].callee.i;
    if (seen) continue;
    any = true;
    for (u32 t = 1; t <= 8; t++)
      profile_line(&b, rng, m, sym_str(src->c, func_get(src, f->body.v[i].callee)->name), t);
  }
  const u32 n = f->body.n;
  for (u32 t = 1; t <= 8 && any; t++) {
    if (f->body.v[0].op != OP_call) profile_line(&b, rng, m, "first", t);
    if (f->body.v[n - 1].op != OP_call) profile_line(&b, rng, m, "last", t);
  }
  return any && machine_profile_parse(m, a, sym_of(m->c, "made up"), sb_str(&b), b.n);
}
#endif
