// internal.h - handles behind heddle.h: what they have in common and how a call enters the library. Private
// to api/.
#ifndef HEDDLE_API_INTERNAL_H
#define HEDDLE_API_INTERNAL_H
#include "heddle.h"
#include "report/report.h"

// Every handle is an object with an arena of its own, in a list of the session. Handles that need another one
// hold it, so that users may free them in any order.
typedef struct object object;
struct object {
  heddle_session *s;
  object *prev, *next;
  arena *a;
  u32 holds;              // the user's and those of other objects
  void (*fini)(object *); // gives back what is not in `a`; NULL: nothing
};
struct heddle_session {
  ctx *c;
  arena *a;     // messages
  object *live; // all objects
  bool dead;    // out of memory: nothing in it can be relied on
};
struct heddle_program {
  object o;
  prog *p;
  planner *pl;                  // made when first asked for
  heddle_plan *by;              // that it was made by, which holds the model and its constants; NULL: none
  const char *name, *plan;      // plan: of a distributed program; NULL: of none
  const char *machine, *digest; // whose costs that plan was made with; program_digest
  const eval_uses *uses;        // of the parameters of the model it was made from; NULL: its own
  batchnorm_stats batchnorm;    // under that plan
  const char *layers;           // of its stages; NULL: there is one, or no plan
  const char *schedule;         // of its plan; NULL: none with a name
  const sched_stages *times;    // of its stages, where the plan was asked for them
  const plan_task_graphs *task_graphs; // of that plan; NULL: it was not made from annotations
  const plan_given *given;             // by that plan, where devices are of several kinds; NULL: not known
  front_extents extents;               // that an ONNX file leaves open
  bool told;                           // what a plan takes for granted
  bool told_eights;                    // W0508
  bool default_batch, default_dtype;   // of a built-in model, not the user's choice
};
// Of model and plan (trace_ran), made when first asked for. NULL: of no plan.
const char *program_digest(heddle_program *p);
struct heddle_machine {
  object o;
  machine *m;
};
struct heddle_plan {
  object o;
  heddle_program *p;
  plan *pn;
  heddle_machine *m; // whose costs choose communication; NULL: amounts do
  const char *costs; // cost model
  bool times;        // its program has times of stages
};
cost_model *plan_cost_model(
    heddle_plan *b); // NULL without a machine; and, with a diagnostic, if there is no such cost model
struct heddle_result {
  object o;
  heddle_program *p;
  heddle_machine *m;
  sim_result r;
  cost_parts *path; // of the critical path; NULL: the cost model does not tell
  i64 batch;
};
struct heddle_schedule {
  object o;
  const sched *s;
  sched_times t; // by REPORT_COSTS
  const char *name;
  bool found; // for stages, within aims
  sched_stages stages;
  sched_aims aims;
  sched_synthesis of;
};
struct heddle_search {
  object o;
  heddle_program *p; // NULL where parts were merged
  heddle_machine *m;
  const char *costs;
  search_about about;
  search_opts so;
  search_result r;
};
struct heddle_check {
  object o;
  heddle_plan *b;
  verify_report r;
};
struct heddle_run {
  object o;
  heddle_program *p;
  eval_rank *r;
  u32 nparams, *next; // by parameter: its result of a step, from 1; 0: it stays
  u32 loss;           // result, from 1; 0: none
  _Atomic u64 steps;  // taken
  u64 updates, older; // of every weight: in all, and those that its first states have had
  _Atomic u32 phase;  // heddle_phase
  u64 number;         // of the run, for recordings; 0: not said
};
struct heddle_data {
  object o;
  heddle_program *p;
  dataset *d;
};
struct heddle_tensors {
  object o;
  u32 n;
  eval_array *x;
  const char **name;
  u64 updates; // that the states have had; 0: not known
};

// A new object of `size` bytes, cleared, held once. hold and drop take NULL.
void *object_new(heddle_session *s, size_t size, void (*fini)(object *));
void *object_hold(void *o);
void object_drop(void *o);

// The boundary that out of memory jumps to: `call` yields `r` of type T, or the session is dead and r is
// `none`. Objects that were being made stay in the session's list; arenas of inner layers in flight are lost.
#define API_RETURN(T, none, session, call)                                                                   \
  do {                                                                                                       \
    T volatile r_ = none;                                                                                    \
    heddle_session *s_ = (session);                                                                          \
    jmp_buf here_, *volatile outer_ = base_oom;                                                              \
    if (s_->dead) return none;                                                                               \
    if (setjmp(here_) == 0) {                                                                                \
      base_oom = &here_;                                                                                     \
      r_ = (call);                                                                                           \
    } else                                                                                                   \
      s_->dead = true;                                                                                       \
    base_oom = outer_;                                                                                       \
    return r_;                                                                                               \
  } while (0)

static inline const char *rendered(arena *a, const report *r, heddle_format f) {
  strbuf b = {.a = a};
  report_print(r, f == HEDDLE_JSON, &b);
  return sb_str(&b);
}
// How the cost model of that name counts bytes.
static inline sim_bytes bytes_by(const char *costs) {
  return costs && !strcmp(costs, "distir") ? SIM_BYTES_DISTIR : SIM_BYTES_HEDDLE;
}
opcode operator_find(heddle_session *s, const char *name); // OP_none and a diagnostic
planner *program_planner(heddle_program *p);               // shared by all plans of p
bool program_to_plan(heddle_program *p);           // a model, not yet distributed; otherwise a diagnostic
void program_leave_annotations(heddle_program *p); // warns where a strategy decides, not they
void program_tell_batchnorm(const heddle_program *p,
                            const strategy_set *said); // warns where bn=sync is nothing
bool program_has_fusible(const heddle_program *p);     // attention that attention=fused changes
void program_tell_attention(const heddle_program *p,
                            const strategy_set *said); // attention=fused that leaves some
bool program_has_work(const prog *p);                  // and inputs with elements; otherwise a diagnostic
heddle_program *program_wrap(heddle_session *s, prog *p, const char *name); // takes p over; NULL for NULL
i64 program_batch(const prog *p);          // samples a step; 0: no input says
heddle_plan *plan_open(heddle_program *p); // without its plan
heddle_plan *plan_read_text(heddle_program *p, const char *name, const char *text, size_t n);
heddle_tensors *tensors_of_parameters(heddle_program *p); // without elements
heddle_tensors *
tensors_open(heddle_program *p); // of its parameters, without elements. NULL and a diagnostic: too many
u32 *program_next(const prog *p,
                  arena *a); // by parameter: the result that it is after a step, from 1; 0: it stays
const char *checkpoint_newest(arena *a, const char *folder); // NULL: there is none
int link_threads(const heddle_link *l);                      // that the rank computes with
u32 program_loss(const prog *p);                             // result, from 1; 0: none
void search_tell_mfu(heddle_search *f);                      // before a report
bool optimizer_read(ctx *c, const heddle_optimizer *o, optim_opts *out);

bool search_options_read(ctx *c, arena *a, const heddle_search_options *o, search_opts *s);
// Simulating a plan tells; a search prices thousands, on threads.
void search_quiet(void *arg, const cost_event *e, double factor);
void program_tell_eights(heddle_program *p, const machine *m); // a warning, once of a model
void search_tell_dtype(const heddle_program *p, const machine *m, const search_opts *o); // a warning

// ---- run.c ----------------------------------------------------------------------------------------------
eval_rank *run_rank(heddle_run *r);
u32 run_ranks(const heddle_run *r); // of the job

// ---- tuning.c -------------------------------------------------------------------------------------------
// The caller's graph passes for tune/; in a, which refers to theirs.
const struct tune_pass *tuning_passes(ctx *c, arena *a, u32 n, const heddle_pass *passes);
#endif
