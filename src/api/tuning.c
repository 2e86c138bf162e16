// tuning.c - graph passes of the caller's behind heddle.h: what they see of a job and its plan, and what they may change.
#include "api/internal.h"
#include "tune/tune.h"

struct heddle_tuning {
  const tune_look *look;
  tune_plan *plan;
  ctx *c;
};
typedef struct {
  ctx *c;
  const heddle_pass *pass;
} own_pass;

static tune_verdict propose(const tune_look *x, u32 k, tune_plan *p) {
  const own_pass *own = x->arg;
  heddle_tuning t = {x, p, own->c};
  return own->pass->propose(own->pass->arg, k, &t) ? TUNE_TRY : TUNE_END;
}

const tune_pass *tuning_passes(ctx *c, arena *a, u32 n, const heddle_pass *passes) {
  tune_pass *v = NEWN(a, tune_pass, n + 1);
  own_pass *own = NEWN(a, own_pass, n + 1);
  for (u32 k = 0; k < n; k++) {
    own[k] = (own_pass){c, &passes[k]};
    v[k] = (tune_pass){.id = passes[k].name, .about = "", .propose = propose, .arg = &own[k]};
  }
  return v;
}

// Gradients that kernel k makes: their number, the first one.
static u32 gradients(const heddle_tuning *t, u32 k, u32 *first) {
  const tune_job *j = t->look->job;
  u32 n = 0;
  for (u32 i = 0; i < j->ntensors; i++)
    if (j->tensor[i].op == k && !n++) *first = i;
  return n;
}

uint32_t heddle_tuning_kernels(const heddle_tuning *t) { return t ? t->look->job->nops : 0; }

bool heddle_tuning_kernel(const heddle_tuning *t, uint32_t k, heddle_kernel *out) {
  if (!t || !out || k >= t->look->job->nops) return false;
  const tune_job *j = t->look->job;
  u32 first = 0;
  const u32 n = gradients(t, k, &first);
  *out = (heddle_kernel){.name = sym_str(t->c, j->op[k].name),
                         .time_ps = t->plan->ps[k] >= 0 ? t->plan->ps[k] : j->op[k].ps,
                         .fused = t->plan->joined[k]};
  out->phase = j->op[k].phase == TUNE_FORWARD    ? HEDDLE_FORWARD
               : j->op[k].phase == TUNE_BACKWARD ? HEDDLE_BACKWARD
                                                 : HEDDLE_UPDATE;
  for (u32 i = first; i < first + n; i++)
    out->gradient_bytes += t->plan->bytes[i] >= 0 ? t->plan->bytes[i] : j->tensor[i].bytes;
  u32 begins = k;
  while (t->look->plan->joined[begins]) begins--;
  for (u32 i = 0; i < t->look->step->nops; i++) out->critical |= t->look->step->op[i] == begins;
  return true;
}

bool heddle_tuning_set_time(heddle_tuning *t, uint32_t k, int64_t ps) {
  if (!t || k >= t->look->job->nops || ps < 0) return false;
  t->plan->ps[k] = ps;
  return true;
}

bool heddle_tuning_set_gradient(heddle_tuning *t, uint32_t k, int64_t bytes) {
  u32 first = 0;
  const u32 n = t ? gradients(t, k, &first) : 0;
  if (!n || bytes < 0) return false;
  for (u32 i = 0; i < n; i++) t->plan->bytes[first + i] = bytes / n + (i < bytes % n);
  return true;
}

bool heddle_tuning_fuse(heddle_tuning *t, uint32_t k) {
  if (!t || k >= t->look->job->nops || !tune_may_join(t->look->job, k)) return false;
  t->plan->joined[k] = 1;
  return true;
}
