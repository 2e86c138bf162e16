// replay_change.c - what a user would change, done to the durations of a replay. The words are changes.c's.
//
// Idea: a change names ranks and things. `host` is the host's own time; a name is a kernel's, or a communication's
// ("all_reduce"), whose transfer it is then. Without a name it is all that the ranks do.
#include "diagnose/diagnose.h"
#include <math.h>

static bool is_host(const change_term *t) { return t->what == WHAT_NAME && !strcmp(t->name, "host"); }

// Does the change say anything of hosts, of this op?
static bool says_rank(const job_change *x, u32 rank) {
  for (u32 k = 0; k < x->nterms; k++)
    if (x->term[k].what == WHAT_RANK && (rank == TRACE_NONE || !number_set_has(&x->term[k].is, rank)))
      return false;
  return true;
}
static bool says_host(const job_change *x) {
  for (u32 k = 0; k < x->nterms; k++)
    if (x->term[k].what == WHAT_NAME && !is_host(&x->term[k])) return false;
  return true;
}
static bool says_op(ctx *c, const job_change *x, const work_op *o) {
  for (u32 k = 0; k < x->nterms; k++) {
    const change_term *t = &x->term[k];
    if (t->what != WHAT_NAME) continue;
    if (is_host(t)) return false;
    if (!change_name_matches(t->name, sym_str(c, o->name)) &&
        !(o->comm_op.i && change_name_matches(t->name, sym_str(c, o->comm_op))))
      return false;
  }
  return true;
}

static i64 changed(const job_change *x, i64 was, i64 median) {
  switch (x->how) {
  case CHANGE_TIME: return x->ps;
  case CHANGE_SCALE:
    return (double)was * x->scale < 9e18 ? (i64)llround((double)was * x->scale) : INT64_MAX / 2;
  case CHANGE_MEDIAN:
  case CHANGE_IDEAL: break;
  }
  return median;
}

static bool can(ctx *c, const replay_input *in, const job_change *x) {
  for (u32 k = 0; k < x->nterms; k++) {
    const change_term *t = &x->term[k];
    if (t->what == WHAT_NAME) continue;
    if (t->what != WHAT_RANK) {
      diag(c, E_USAGE, t->at,
           "recordings of kernels know ranks, not workers, stages, data ranks or microbatches");
      diag_hint(c, "say rank N, host, or the name of a kernel or communication");
      return false;
    }
    bool any = false;
    for (u32 p = 0; p < in->n; p++)
      any |= in->w[p]->rank != TRACE_NONE && number_set_has(&t->is, in->w[p]->rank);
    if (any) continue;
    diag(c, E_USAGE, t->at, "no such rank is in the recordings");
    diag_hint(c, "`heddle trace info` lists them; the name of a file may say its rank: rank1.json");
    return false;
  }
  if (x->how == CHANGE_IDEAL) {
    diag(c, E_USAGE, x->at, "`ideal` is for pipelined jobs, which repeat an operation for every microbatch");
    diag_hint(c, "use median: over the ranks that do the same");
    return false;
  }
  return true;
}

// No time may be so long that the sum of all does not fit.
static i64 longest(const replay_input *in) {
  u64 n = 1;
  for (u32 p = 0; p < in->n; p++) n += in->w[p]->nitems + in->w[p]->nops;
  return (i64)(INT64_MAX / 8 / n);
}

u32 replay_apply(ctx *c, const replay *r, const replay_times *median, const job_change *x, replay_times *t) {
  const replay_input *in = replay_input_of(r);
  if (!can(c, in, x)) return 0;
  const i64 most = longest(in);
  u32 touched = 0, alone = 0;
  bool fits = true;
  for (u32 p = 0; p < in->n; p++) {
    const job_work *w = in->w[p];
    const bool none = x->how == CHANGE_MEDIAN && !median->host[p];
    if (!says_rank(x, w->rank)) continue;
    alone += none;
    for (u32 i = 0; i < w->nitems && says_host(x) && !none; i++, touched++)
      t->host[p][i] = changed(x, t->host[p][i], median->host[p] ? median->host[p][i] : 0),
      fits &= t->host[p][i] <= most;
    for (u32 k = 0; k < w->nops && !none; k++)
      if (says_op(c, x, &w->op[k]))
        t->op[p][k] = changed(x, t->op[p][k], median->op[p] ? median->op[p][k] : 0), touched++,
        fits &= t->op[p][k] <= most;
  }
  if (!fits) {
    diag(c, E_LIMIT, x->at, "times become too long to be added up: at most %lld s each here",
         (long long)(most / 1000000000000));
    return 0;
  }
  if (touched) return touched;
  if (alone)
    diag(c, E_USAGE, x->at, "no other rank does the same: there is no median");
  else
    diag(c, E_USAGE, x->at, "nothing is changed by '%s': no kernel or communication has that name", x->text);
  if (!alone) diag_hint(c, "`heddle trace summary` lists kernels; '*' stands for anything: '*gemm* x 0.5'");
  return 0;
}
