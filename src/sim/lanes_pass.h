// lanes_pass.h - the pass of lanes.c, written once: lanes.c includes it for every instruction set, with
//   PASS(name)   what a function is called there
//   TARGET       the attribute of its functions
//   VECTOR       a vector of doubles, `VECTORS` of which are SIM_LANES
//   LATEST(x, y) the greater one, lane by lane
#define EACH TARGET static inline __attribute__((always_inline))

// Vector h of a value in memory; the same, later by what another has there.
EACH VECTOR PASS(at)(const lanes *x, u32 h) { return ((const VECTOR *)x->of)[h]; }
EACH void PASS(put)(lanes *x, u32 h, VECTOR t) { ((VECTOR *)x->of)[h] = t; }
EACH VECTOR PASS(after)(const lanes *x, const lanes *by, u32 h) { return PASS(at)(x, h) + PASS(at)(by, h); }

EACH void PASS(run_full)(const lane_task *m, lanes *clock, const lanes *in, lanes *out, const u32 C, u32 h) {
  VECTOR y[2 * SIMPLE_CLASSES];
  for (u32 o = 0, k = 0; o < 2 * C; o++) {
    VECTOR t = {0};
    for (; k < m->end[o]; k++) {
      const u32 i = m->in[k];
      const VECTOR by = PASS(after)(i < C ? &clock[i] : &in[i - C], &m->full[k], h);
      t = LATEST(t, by);
    }
    y[o] = t;
  }
  for (u32 c = 0; c < C; c++) PASS(put)(&clock[c], h, y[c]), PASS(put)(&out[c], h, y[C + c]);
}

EACH void PASS(run_one)(const lane_task *m, lanes *clock, const lanes *in, lanes *out, const u32 C, u32 h) {
  const VECTOR zero = {0};
  VECTOR t = PASS(after)(&clock[0], &m->clock_in[0], h);
  for (u32 c = 0; c < C; c++) {
    const VECTOR came = PASS(after)(&in[c], &m->value_in[c], h);
    t = LATEST(t, came);
    if (!c) continue;
    const VECTOR free = PASS(after)(&clock[c], &m->clock_in[c], h);
    t = LATEST(t, free);
  }
  for (u32 c = 0; c < C; c++) { // values that nobody waits for may be negative
    const VECTOR ends = t + PASS(at)(&m->clock_out[c], h);
    PASS(put)(&clock[c], h, LATEST(ends, zero));
    PASS(put)(&out[c], h, t + PASS(at)(&m->value_out[c], h));
  }
}

EACH void PASS(run_task)(const lane_pass *x, const sim_op *o, const u32 C) {
  const lane_task *m = x->task[o->what];
  lanes *clock = x->clock + o->place * C, *in = x->value + (size_t)o->in * C,
        *out = x->value + (size_t)o->out * C;
  if (m->full)
    for (u32 h = 0; h < VECTORS; h++) PASS(run_full)(m, clock, in, out, C, h);
  else
    UNROLL for (u32 h = 0; h < VECTORS; h++) PASS(run_one)(m, clock, in, out, C, h);
}

EACH void PASS(run_send)(const lane_pass *x, const sim_op *o, const u32 C) {
  const u32 strm = x->strm[o->what];
  lanes *at = strm ? x->channel + strm : x->clock, *from = at + o->place * C, *to = at + o->out * C;
  lanes *slot = x->value + (size_t)o->in * C;
  const lanes *dur = x->dur + o->what * C;
  for (u32 c = 0; c < C; c++) UNROLL for (u32 h = 0; h < VECTORS; h++) {
      VECTOR t = LATEST(PASS(at)(&from[c], h), PASS(at)(&to[c], h));
      if (strm) t = LATEST(t, PASS(at)(&slot[c], h));
      t += PASS(at)(&dur[c], h);
      PASS(put)(&from[c], h, t), PASS(put)(&to[c], h, t);
      if (strm) PASS(put)(&slot[c], h, t);
    }
}

EACH void PASS(run_of)(const lane_pass *x, const u32 C) {
  for (const sim_op *o = x->l->op, *end = o + x->l->n; o < end; o++)
    if (o->kind == OP_TASK)
      PASS(run_task)(x, o, C);
    else
      PASS(run_send)(x, o, C);
}

TARGET static void PASS(run)(const lane_pass *x, u32 C) {
  switch (C) {
  case 1: PASS(run_of)(x, 1); break;
  case 2: PASS(run_of)(x, 2); break;
  case 3: PASS(run_of)(x, 3); break;
  case 4: PASS(run_of)(x, 4); break;
  default: PASS(run_of)(x, C);
  }
}
#undef EACH
#undef PASS
#undef TARGET
#undef VECTOR
#undef VECTORS
#undef LATEST
