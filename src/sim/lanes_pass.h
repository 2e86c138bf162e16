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

// The channel takes a value that is there at t: when it has come.
EACH VECTOR PASS(send)(const lane_send *s, VECTOR t, u32 c, u32 h) {
  if (s->to != s->from) t = LATEST(t, PASS(at)(&s->to[c], h));
  t = LATEST(t, PASS(at)(&s->from[c], h)) + PASS(at)(&s->dur[c], h);
  PASS(put)(&s->from[c], h, t);
  if (s->to != s->from) PASS(put)(&s->to[c], h, t);
  return t;
}

// ---- classes one by one ------------------------------------------------------------------------------------
EACH void PASS(run_one)(const lane_pass *x, const sim_op *o, const lane_task *m, const u32 C, u32 h) {
  lanes *clock = x->clock + o->place * C, *out = x->value + (size_t)o->out * C;
  const lanes *in = x->value + (size_t)o->in * C;
  const VECTOR never = {0};
  VECTOR t = PASS(after)(&clock[0], &m->from[0], h);
  for (u32 c = 1; c < C; c++) t = LATEST(t, PASS(after)(&clock[c], &m->from[c], h));
  for (u32 c = 0; o->in != SLOT_NEVER && c < C; c++) t = LATEST(t, PASS(after)(&in[c], &m->from[C + c], h));
  for (u32 c = 0; c < C; c++) PASS(put)(&clock[c], h, LATEST(t + PASS(at)(&m->to[c], h), never));
  for (u32 c = 0; o->out != SLOT_NOBODY && c < C; c++) {
    const VECTOR y = LATEST(t + PASS(at)(&m->to[C + c], h), never);
    PASS(put)(&out[c], h, o->send ? PASS(send)(&x->send[o->send - 1], y, c, h) : y);
  }
}

EACH void PASS(run_task)(const lane_pass *x, const sim_op *o, const u32 C, u32 h) {
  const lane_task *m = x->task[o->what];
  if (m->from) {
    PASS(run_one)(x, o, m, C, h);
    return;
  }
  lanes *clock = x->clock + o->place * C, *out = x->value + (size_t)o->out * C;
  const lanes *in = x->value + (size_t)o->in * C;
  VECTOR y[2 * SIMPLE_CLASSES];
  for (u32 q = 0, k = 0; q < 2 * C; q++) {
    VECTOR t = {0};
    for (; k < m->end[q]; k++) {
      const u32 i = m->in[k];
      const VECTOR by = PASS(after)(i < C ? &clock[i] : &in[i - C], &m->full[k], h);
      t = LATEST(t, by);
    }
    y[q] = t;
  }
  for (u32 c = 0; c < C; c++) PASS(put)(&clock[c], h, y[c]);
  for (u32 c = 0; c < C; c++)
    PASS(put)(&out[c], h, o->send ? PASS(send)(&x->send[o->send - 1], y[C + c], c, h) : y[C + c]);
}

EACH void PASS(run_many)(const lane_pass *x, const sim_op *o, const u32 C, u32 h) {
  const lane_task *m = x->task[o->what];
  const u32 *in = x->l->many + o->in, *out = in + 1 + *in, no = (1 + *out) * C;
  const u32 *from = in + 1, *to = out + 1;
  lanes *clock = x->clock + o->place * C;
  VECTOR y[LANE_PORTS];
  if (m->from) {
    VECTOR t = PASS(after)(&clock[0], &m->from[0], h);
    for (u32 i = 1; i < (1 + *in) * C; i++) {
      const lanes *of = i < C ? &clock[i] : &x->value[(size_t)from[i / C - 1] * C + i % C];
      t = LATEST(t, PASS(after)(of, &m->from[i], h));
    }
    const VECTOR never = {0};
    for (u32 q = 0; q < no; q++) y[q] = LATEST(t + PASS(at)(&m->to[q], h), never);
  } else {
    for (u32 q = 0, k = 0; q < no; q++) {
      VECTOR t = {0};
      for (; k < m->end[q]; k++) {
        const u32 i = m->in[k];
        const lanes *of = i < C ? &clock[i] : &x->value[(size_t)from[i / C - 1] * C + i % C];
        t = LATEST(t, PASS(after)(of, &m->full[k], h));
      }
      y[q] = t;
    }
  }
  for (u32 q = 0; q < no; q++)
    PASS(put)(q < C ? &clock[q] : &x->value[(size_t)to[q / C - 1] * C + q % C], h, y[q]);
}

EACH void PASS(run_send)(const lane_pass *x, const sim_op *o, const u32 C, u32 h) {
  const lane_send *s = &x->send[o->what];
  lanes *there = x->value + (size_t)o->in * C;
  for (u32 c = 0; c < C; c++) {
    VECTOR t = {0};
    if (s->streams) t = PASS(at)(&there[c], h);
    t = PASS(send)(s, t, c, h);
    if (s->streams) PASS(put)(&there[c], h, t);
  }
}

EACH void PASS(run_classes)(const lane_pass *x, const u32 C) {
  for (const sim_op *o = x->l->op, *end = o + x->l->n; o < end; o++)
    if (o->kind == OP_TASK)
      for (u32 h = 0; h < VECTORS; h++) PASS(run_task)(x, o, C, h);
    else if (o->kind == OP_TASK_MANY)
      for (u32 h = 0; h < VECTORS; h++) PASS(run_many)(x, o, C, h);
    else
      for (u32 h = 0; h < VECTORS; h++) PASS(run_send)(x, o, C, h);
}

// ---- one moment a task -------------------------------------------------------------------------------------
EACH void PASS(run_moment)(const lane_pass *x, const sim_op *o, const u32 C, u32 h) {
  VECTOR t = PASS(after)(&x->clock[o->place], &x->pair[o->pair], h);
  t = LATEST(t, PASS(at)(&x->value[o->in], h));
  PASS(put)(&x->clock[o->place], h, t);
  if (!o->send) return;
  const lane_send s = x->send[o->send - 1];
  const lanes *made = x->made + (size_t)o->what * C, *taken = x->taken + (size_t)o->next * C;
  VECTOR all = {0};
  UNROLL_CLASSES for (u32 c = 0; c < C; c++) {
    const VECTOR comes = PASS(send)(&s, t + PASS(at)(&made[c], h), c, h);
    const VECTOR by = comes + PASS(at)(&taken[c], h);
    all = c ? LATEST(all, by) : by;
  }
  PASS(put)(&x->value[o->out], h, all);
}

EACH void PASS(run_moments)(const lane_pass *pass, const u32 C) {
  const lane_pass x = *pass; // which nothing that is written can be
  for (const sim_op *o = x.l->op, *end = o + x.l->n; o < end; o++)
    UNROLL for (u32 h = 0; h < VECTORS; h++) PASS(run_moment)(&x, o, C, h);
}

TARGET static void PASS(run)(const lane_pass *x, u32 C) {
  const bool moments = x->pair;
  switch (moments ? C : C + SIMPLE_CLASSES) {
  case 1: PASS(run_moments)(x, 1); break;
  case 2: PASS(run_moments)(x, 2); break;
  case 4: PASS(run_moments)(x, 4); break;
  case SIMPLE_CLASSES + 1: PASS(run_classes)(x, 1); break;
  case SIMPLE_CLASSES + 2: PASS(run_classes)(x, 2); break;
  case SIMPLE_CLASSES + 4: PASS(run_classes)(x, 4); break;
  default: moments ? PASS(run_moments)(x, C) : PASS(run_classes)(x, C);
  }
}
#undef EACH
#undef PASS
#undef TARGET
#undef VECTOR
#undef VECTORS
#undef LATEST
