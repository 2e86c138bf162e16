// run.c - one rank of a distributed program behind heddle.h.
#include "api/internal.h"

struct heddle_run {
  object o;
  heddle_program *p;
  eval_rank *r;
  u32 nparams, *next; // by parameter: its result of a step, from 1; 0: it stays
  u32 loss;           // result, from 1; 0: none
};

static void run_fini(object *o) {
  heddle_run *r = (heddle_run *)o;
  eval_rank_free(r->r);
  object_drop(r->p);
}

// "wte.new" is what "wte" will be.
static void find_next(heddle_run *r, const prog *p) {
  const func_info *m = func_get(p, p->main);
  hmap by_name = {0};
  r->nparams = m->nparams;
  r->next = ZNEWN(r->o.a, u32, m->nparams + 1);
  for (u32 k = 0; k < m->rets.n; k++) {
    const sym name = val(m, m->rets.v[k])->name;
    if (name.i) hmap_add(r->o.a, &by_name, name.i, k + 1);
    const shape s = eval_result_shape(p, k);
    if (!r->loss && !s.nd && dtype_kind_of(s.t) == DK_FLOAT) r->loss = k + 1;
  }
  for (u32 k = 0; k < m->nparams; k++) {
    const sym name = val(m, k + 1)->name;
    if (name.i) r->next[k] = hmap_get(&by_name, sym_fmt(p->c, "%s.new", sym_str(p->c, name)).i);
  }
}

static heddle_run *begin(heddle_program *p, const heddle_link *link, const heddle_tensors *inputs) {
  if (!heddle_program_ranks(p)) {
    diag(p->p->c, E_PLAN, (loc){0}, "%s runs on one device: only a distributed program has ranks", p->name);
    diag_hint(p->p->c, "heddle_plan_apply makes one");
    return NULL;
  }
  heddle_run *r = object_new(p->o.s, sizeof *r, run_fini);
  const eval_link to = {.rank = link->rank, .arg = link->arg, .send = link->send, .receive = link->receive};
  const eval_opts o = {0};
  r->p = object_hold(p);
  find_next(r, p->p);
  r->r = eval_rank_new(p->p, &o, &to, inputs->x, inputs->n);
  if (r->r) return r;
  object_drop(r);
  return NULL;
}
heddle_run *heddle_run_new(heddle_program *distributed, const heddle_link *link,
                           const heddle_tensors *inputs) {
  if (!distributed || !link || !inputs) return NULL;
  API_RETURN(heddle_run *, NULL, distributed->o.s, begin(distributed, link, inputs));
}
void heddle_run_free(heddle_run *r) { object_drop(r); }

bool heddle_run_step(heddle_run *r) {
  if (!r) return false;
  API_RETURN(bool, false, r->o.s, eval_rank_step(r->r, r->next));
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
