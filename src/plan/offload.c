// offload.c - what a plan puts in host memory, in the distributed main: weights, gradients, optimizer states, and
// what forwards keep for backwards.
//
// Idea: a value is on the host or on the device by what made it: a parameter of main that is marked, or a copy. Functions
// of stages take weights, saved values and accumulators as tuples, each wholly in one of the two, and copy what they
// use themselves (pass_offload); main passes the tuples on. What else reads such values is the end of a step, which
// fetches them for each update (finish.c). When all is there, copies are put where they run beside computation (pass_prefetch).
// With update=host the updates are functions that do what they can on the host (pass_host_update), and fetch nothing.
// Sharding knows nothing of it: a copy is the identity, and its layout that of its operand.
#include "plan/main.h"

static bool has_states(const prog *src, const optim_opts *o) {
  const func_info *m = func_get(src, src->main);
  optim_state st;
  for (u32 k = 0; k < m->nparams; k++)
    if (m->params.v[k].r == ROLE_WEIGHT && optim_state_find(o, &val_type(src, m, k + 1)->s, 0, &st))
      return true;
  return false;
}

const char *plan_offload_absent(const prog *src, const plan *pn, u32 word) {
  const u32 bit = 1u << word;
  if (bit == OFFLOAD_PARAMS) return NULL;
  if (!pn->train) return "this is inference";
  if (bit == OFFLOAD_STATES && !has_states(src, &pn->optim))
    return arena_printf(ctx_arena(src->c), "the optimizer, %s, has none", optim_name(pn->optim.kind));
  return NULL;
}

// v[0..n), which are on one group, copied in one go, or in as many as it takes. opd: v with marks; the copies come there.
static void copied(main_build *mb, u32 *opd, u32 n, u8 strm, const char *to) {
  prog *p = mb->p;
  const attr at = attr_s(A_to, sym_of(mb->s->c, to));
  const u8 flags = mb->b.flags, was = mb->b.strm;
  const func_info *f = func_get(p, mb->b.f);
  mb->b.flags |= INSTR_PLAN, mb->b.strm = strm;
  for (u32 from = 0; from < n; from += COPIES_AT_ONCE) {
    const u32 some = MIN(n - from, (u32)COPIES_AT_ONCE);
    u32 in[COPIES_AT_ONCE];
    type t[COPIES_AT_ONCE];
    for (u32 k = 0; k < some; k++) in[k] = opd[from + k], t[k] = f->values.v[in[k] & OPD_VALUE].ty;
    mb->b.g = type_get(p, t[0])->g, mb->b.coord = 0;
    const u32 i = emit(&mb->b, OP_copy, attrs_of(p, &at, 1), in, some, t, some);
    const value made = emit_res(p, mb->b.f, i);
    for (u32 k = 0; k < some; k++) opd[from + k] = made + k;
  }
  mb->b.flags = flags, mb->b.strm = was;
}

void main_fetch(main_build *mb, u32 *opd, u32 n) { copied(mb, opd, n, mb->from_host, "device"); }

void main_store(main_build *mb, value *v, u32 n) { copied(mb, v, n, mb->to_host, "host"); }

func main_host_update(main_build *mb, func f, const bool *host, const bool *ret, const u32 *maker) {
  const u32 n = func_get(mb->p, f)->nparams;
  for (u32 k = 0; k < mb->host_updates.n; k++) {
    const host_update *u = &mb->host_updates.v[k];
    if (u->of.i == f.i && !memcmp(u->host, host, n * sizeof *host) &&
        !memcmp(u->maker, maker, n * sizeof *maker))
      return u->made;
  }
  const host_update_opts o = {host, ret, maker, mb->from_host, mb->to_host, mb->on_host};
  const func made = pass_host_update(mb->p, f, &o);
  *vec_push(mb->x->a, &mb->host_updates) = (host_update){f, made, arena_dup(mb->x->a, host, n * sizeof *host),
                                                         arena_dup(mb->x->a, maker, n * sizeof *maker)};
  return made;
}

// Parameters of a stage's function, in its order: weights packed, `plain` tensors, a tuple of each kind.
typedef struct {
  bool *param, *ret;
  u32 n;
} places;

static void add(places *x, u32 count, bool host) {
  for (u32 k = 0; k < count; k++) x->param[x->n++] = host;
}

static void offload(main_build *mb, bool *done, func f, const places *x, bool last_result) {
  const func_info *fi = func_get(mb->p, f);
  if (done[f.i]) return;
  done[f.i] = true;
  assert(x->n == fi->nparams);
  if (fi->rets.n) x->ret[fi->rets.n - 1] = last_result;
  const offload_opts o = {.param = x->param,
                          .ret = x->ret,
                          .ahead = mb->x->pn->prefetch,
                          .in = mb->from_host,
                          .out = mb->to_host};
  pass_offload(mb->p, f, &o);
}

static places places_new(const main_build *mb, func f) {
  const func_info *fi = func_get(mb->p, f);
  return (places){ZNEWN(mb->x->a, bool, fi->nparams + 1), ZNEWN(mb->x->a, bool, fi->rets.n + 1), 0};
}

static void offload_forward(main_build *mb, const stage_build *s, bool *done) {
  places x = places_new(mb, s->fwd.dst);
  add(&x, s->src->nweights > 0, main_on_host(mb, OFFLOAD_PARAMS));
  add(&x, s->src->ninputs, false);
  offload(mb, done, s->fwd.dst, &x, s->gp && s->gp->nsaved && main_on_host(mb, OFFLOAD_ACTS));
}

static void offload_backward(main_build *mb, const stage_build *s, bool *done) {
  const grad_pair *gp = s->gp;
  const bool params = main_on_host(mb, OFFLOAD_PARAMS), grads = main_on_host(mb, OFFLOAD_GRADS);
  places x = places_new(mb, s->bwd.dst);
  add(&x, s->nneed_weights > 0, params);
  add(&x, gp->nneed - s->nneed_weights, false);
  add(&x, gp->nsaved > 0, main_on_host(mb, OFFLOAD_ACTS));
  add(&x, gp->ndy, false);
  add(&x, !gp->wgt.i && s->acc && gp->nacc, grads);
  offload(mb, done, s->bwd.dst, &x, !gp->wgt.i && gp->nacc && grads);
  if (!gp->wgt.i) return;
  u32 weights = 0;
  while (weights < gp->nneed_w && gp->need_w[weights] < s->src->nweights) weights++;
  x = places_new(mb, s->wgt.dst);
  add(&x, weights > 0, params);
  add(&x, gp->nneed_w - weights, false);
  add(&x, gp->ncarry > 0, false);
  add(&x, s->acc && gp->nacc, grads);
  offload(mb, done, s->wgt.dst, &x, gp->nacc && grads);
}

void main_offload_stages(main_build *mb) {
  if (!mb->offload) return;
  bool *done = ZNEWN(mb->x->a, bool, mb->p->funcs.n);
  mb->from_host = (u8)stream_of(mb->p, sym_of(mb->s->c, "h2d")).i;
  mb->to_host = (u8)stream_of(mb->p, sym_of(mb->s->c, "d2h")).i;
  if (mb->host_update) mb->on_host = (u8)stream_of(mb->p, sym_of(mb->s->c, "host")).i;
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_build *s = &mb->stage[i];
    offload_forward(mb, s, done);
    if (s->gp) offload_backward(mb, s, done);
  }
}
