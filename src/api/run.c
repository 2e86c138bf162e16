// run.c - one rank of a distributed program behind heddle.h.
#include "api/internal.h"
#include "kernel/kernel.h"

static void run_fini(object *o) {
  heddle_run *r = (heddle_run *)o;
  eval_rank_free(r->r);
  object_drop(r->p);
}

u32 *program_next(const prog *p, arena *a) {
  u32 *next = ZNEWN(a, u32, func_get(p, p->main)->nparams + 1);
  eval_rank_next(p, next);
  return next;
}

u32 program_loss(const prog *p) {
  for (u32 k = 0; k < func_get(p, p->main)->rets.n; k++) {
    const shape s = eval_result_shape(p, k);
    if (!s.nd && dtype_kind_of(s.t) == DK_FLOAT) return k + 1;
  }
  return 0;
}

static eval_link link_of(const heddle_link *l) {
  return (eval_link){
      .rank = l->rank, .arg = l->arg, .send = l->send, .receive = l->receive, .all_reduce = l->all_reduce};
}

int link_threads(const heddle_link *l) { return l->threads ? (int)l->threads : cpu_count(); }

bool heddle_run_warm(const heddle_link *link) { // without memory for it the run itself will say so
  jmp_buf here, *outer = base_oom;
  volatile bool room = true;
  if (setjmp(here) == 0) {
    base_oom = &here;
    room = kernel_warm(link_threads(link));
  }
  base_oom = outer;
  base_trim();
  return room;
}

static heddle_run *begin(heddle_program *p, const heddle_link *link, const heddle_tensors *inputs,
                         bool take) {
  if (!heddle_program_ranks(p)) {
    diag(p->p->c, E_PLAN, (loc){0}, "%s runs on one device: only a distributed program has ranks", p->name);
    diag_hint(p->p->c, "heddle_plan_apply makes one");
    return NULL;
  }
  heddle_run *r = object_new(p->o.s, sizeof *r, run_fini);
  eval_link to = link_of(link);
  const eval_link beside = link->beside ? link_of(link->beside) : to;
  if (link->beside) to.beside = &beside;
  const eval_opts o = {.threads = link_threads(link)};
  r->p = object_hold(p);
  r->nparams = func_get(p->p, p->p->main)->nparams;
  r->older = inputs->updates;
  r->next = program_next(p->p, r->o.a), r->loss = program_loss(p->p);
  r->r = take ? eval_rank_take(p->p, &o, &to, inputs->x, inputs->n)
              : eval_rank_new(p->p, &o, &to, inputs->x, inputs->n);
  if (r->r) return r;
  object_drop(r);
  return NULL;
}
heddle_run *heddle_run_new(heddle_program *distributed, const heddle_link *link,
                           const heddle_tensors *inputs) {
  if (!distributed || !link || !inputs) return NULL;
  API_RETURN(heddle_run *, NULL, distributed->o.s, begin(distributed, link, inputs, false));
}
heddle_run *heddle_run_take(heddle_program *distributed, const heddle_link *link, heddle_tensors *inputs) {
  if (!distributed || !link || !inputs) return NULL;
  API_RETURN(heddle_run *, NULL, distributed->o.s, begin(distributed, link, inputs, true));
}
void heddle_run_free(heddle_run *r) { object_drop(r); }
_Static_assert((int)HEDDLE_RING_BYTES == (int)EVAL_RING_BYTES, "one size of chunks");
_Static_assert((int)HEDDLE_RING_LIBRARY == (int)EVAL_RING_LIBRARY, "one number for it");
void heddle_run_ring(heddle_run *r, int64_t chunk_bytes) {
  if (r)
    eval_rank_ring(r->r,
                   chunk_bytes < 0 && chunk_bytes != HEDDLE_RING_LIBRARY ? EVAL_RING_AUTO : chunk_bytes);
}

static bool step(heddle_run *r) {
  r->phase = HEDDLE_STEPPING;
  eval_rank_number(r->r, (i64)r->updates + 1);
  if (!eval_rank_step(r->r, r->next)) return false;
  r->steps++;
  r->updates += eval_updates(r->p->p);
  return true;
}
bool heddle_run_step(heddle_run *r) {
  if (!r) return false;
  API_RETURN(bool, false, r->o.s, step(r));
}
static bool memory(heddle_run *r, heddle_run_bytes *out) {
  eval_memory m;
  if (!eval_rank_memory(r->r, r->next, &m)) return false;
  *out = (heddle_run_bytes){m.peak_bytes, m.parameter_bytes, m.block_bytes, m.place_bytes};
  return true;
}
bool heddle_run_memory(heddle_run *r, heddle_run_bytes *out) {
  if (!r || !out) return false;
  API_RETURN(bool, false, r->o.s, memory(r, out));
}
void heddle_run_begin_at(heddle_run *r, uint64_t step) {
  if (!r) return;
  r->steps = step;
  r->updates = r->older ? r->older : step * eval_updates(r->p->p);
  r->phase = HEDDLE_STEPPING;
}

eval_rank *run_rank(heddle_run *r) { return r->r; }
u32 run_ranks(const heddle_run *r) { return heddle_program_ranks(r->p); }

static bool loss_of(heddle_run *r, double *loss) {
  eval_array x;
  *loss = 0;
  if (!r->loss || !eval_rank_result(r->r, r->loss - 1, &x, r->o.a)) return false;
  if (x.data) *loss = eval_element(&x, 0);
  return true;
}
bool heddle_run_loss(heddle_run *r, double *loss) {
  if (!r) return false;
  API_RETURN(bool, false, r->o.s, loss_of(r, loss));
}

static heddle_tensors *parameters(heddle_run *r) {
  heddle_tensors *t = tensors_of_parameters(r->p);
  t->updates = r->updates;
  for (u32 k = 0; k < r->nparams; k++)
    if (!eval_rank_parameter(r->r, k, &t->x[k], t->o.a)) {
      object_drop(t);
      return NULL;
    }
  return t;
}
heddle_tensors *heddle_run_parameters(heddle_run *r) {
  if (!r) return NULL;
  API_RETURN(heddle_tensors *, NULL, r->o.s, parameters(r));
}

// ---- where ranks are -----------------------------------------------------------------------------------------
void heddle_run_where(const heddle_run *r, heddle_where *out) {
  const eval_where *w = eval_rank_where(r->r);
  *out = (heddle_where){.step = r->steps + 1,
                        .place = w->at,
                        .top = w->top,
                        .count = w->count,
                        .waits = w->waits,
                        .sends = w->sends,
                        .phase = r->phase};
}

// "in step 3, at matmul (h.0.mlp.up)", or what it does outside a step.
static const char *doing(const heddle_program *p, const heddle_where *w, arena *a, loc *at) {
  *at = (loc){0};
  if (w->phase == HEDDLE_STARTING) return "before its first step";
  if (w->phase == HEDDLE_ENDING) return "after its last step";
  if (w->phase == HEDDLE_SAVING)
    return arena_printf(a, "saving a checkpoint after step %llu", (unsigned long long)w->step - 1);
  if (w->phase == HEDDLE_READING)
    return arena_printf(a, "reading the data of step %llu", (unsigned long long)w->step);
  const char *what = eval_where_text(p->p, w->place, w->top, a, at);
  return arena_printf(a, "in step %llu%s%s", (unsigned long long)w->step, what ? ", at " : "",
                      what ? what : "");
}

static void note_waiting(const heddle_program *p, const heddle_fault *f, u32 rank, arena *a) {
  loc at;
  const char *does = doing(p, &f->where[rank], a, &at);
  if (f->where[rank].waits)
    diag_note(p->p->c, at, "rank %u waits for rank %u %s", rank, f->where[rank].waits - 1, does);
  else
    diag_note(p->p->c, (loc){0}, "rank %u has taken its last step and sends nothing more", rank);
}

// Ranks that wait for one that waits for them, or the rank itself and who waits for it.
static void fault(heddle_program *p, const heddle_fault *f) {
  enum { TOLD_MOST = 4 };
  ctx *c = p->p->c;
  loc at;
  arena *a = arena_new();
  const char *does = doing(p, &f->where[f->rank], a, &at),
             *on = f->host ? arena_printf(a, " on %s", f->host) : "";
  if (f->kind == HEDDLE_DIED)
    diag(c, E_PEER, at, "rank %u%s has died; it was last heard of %s", f->rank, on, does);
  else if (f->kind == HEDDLE_TERMINATED)
    diag(c, E_PEER, at, "rank %u%s was ended by SIGTERM, which its launcher did not send; it was %s", f->rank,
         on, does);
  else if (f->kind == HEDDLE_STARVED)
    diag(c, E_HOST_MEMORY, at,
         "rank %u%s is given no more memory, at or before what it was last heard of: %s", f->rank, on, does);
  else if (f->kind == HEDDLE_SILENT)
    diag(c, E_HANG, at,
         "nothing was heard of rank %u%s for %g s: its process is stopped or its computer out of reach; it "
         "was "
         "%s",
         f->rank, on, f->seconds, does);
  else if (f->kind == HEDDLE_SENDING)
    diag(c, E_HANG, at,
         "rank %u has been sending to rank %u for %g s, %s: the transport gets no further (out of memory, or "
         "the "
         "connection is lost)",
         f->rank, f->where[f->rank].sends - 1, f->seconds, does);
  else
    diag(c, E_HANG, at, "ranks wait for messages that have not come for %g s: rank %u waits for rank %u %s",
         f->seconds, f->rank, f->where[f->rank].waits - 1, does);
  u32 told = 0;
  if (f->kind == HEDDLE_STUCK) {
    for (u32 r = f->where[f->rank].waits - 1; r != f->rank && told < TOLD_MOST; told++) {
      note_waiting(p, f, r, a);
      if (!f->where[r].waits) break;
      r = f->where[r].waits - 1;
    }
  } else {
    for (u32 r = 0; r < f->ranks && told < TOLD_MOST; r++)
      if (r != f->rank && f->where[r].waits == f->rank + 1) note_waiting(p, f, r, a), told++;
  }
  if (f->kind == HEDDLE_STARVED) eval_hint_memory(c);
  const char *last = f->saved ? checkpoint_newest(a, f->saved) : NULL;
  if (last) diag_hint(c, "the same command with --resume %s goes on from %s", f->saved, last);
  arena_free(a);
}
void heddle_run_fault(heddle_program *distributed, const heddle_fault *f) {
  heddle_session *s = distributed ? distributed->o.s : NULL;
  jmp_buf here, *outer = base_oom;
  if (!s || s->dead) return;
  if (setjmp(here) == 0) {
    base_oom = &here;
    fault(distributed, f);
  } else
    s->dead = true;
  base_oom = outer;
}
