// rank.c - one rank of a program in a process of its own, step after step: its pieces stay between steps. What moves
// pieces between ranks is in move.c.
//
// Idea: every rank walks the whole program in its one order, computes for itself alone and takes part in the movements
// that name it. Messages between two ranks come in order, so they need no names.
#include "eval/internal.h"

struct eval_rank {
  interp m;
  eval_link link;
  arena *a;
  u32 nparams, nresults;
  held *param, *result;
};

bool eval_gone(interp *m, u32 rank, loc where) {
  diag(m->c, E_PEER, where, "rank %u does not hear rank %u any more", m->link->rank, rank);
  return false;
}

// Pieces that pass as this rank's own; nobody writes to them.
static held shared(interp *m, type t, const held *from) {
  held h = eval_held_new(m, t, (group){0});
  eval_held_share(&h, from);
  return h;
}

eval_rank *eval_rank_new(const prog *p, const eval_opts *o, const eval_link *link, const eval_array *in,
                         u32 nin) {
  const func_info *f = func_get(p, p->main);
  if (!ir_check_whole(p, "run")) return NULL;
  if (nin != f->nparams) {
    diag(p->c, E_ARITY, f->where, "main takes %u inputs; %u were given", f->nparams, nin);
    return NULL;
  }
  arena *a = arena_new();
  eval_rank *r = ZNEWN(a, eval_rank, 1);
  *r = (eval_rank){.m = {.p = p, .c = p->c, .o = *o}, .link = *link, .a = a};
  r->m.link = &r->link;
  r->nparams = f->nparams, r->nresults = f->rets.n;
  eval_open(&r->m);
  r->param = ZNEWN(r->m.stack, held, r->nparams + 1), r->result = ZNEWN(r->m.stack, held, r->nresults + 1);
  for (u32 k = 0; k < r->nresults; k++)
    r->result[k] = eval_held_new(&r->m, f->values.v[f->rets.v[k]].ty, (group){0});
  if (eval_enter(&r->m, in, r->param)) return r;
  eval_rank_free(r);
  return NULL;
}

void eval_rank_free(eval_rank *r) {
  if (!r) return;
  eval_close(&r->m);
  arena_free(r->a);
}

static type param_type(const eval_rank *r, u32 k) {
  return func_get(r->m.p, r->m.p->main)->values.v[k + 1].ty;
}
static type result_type(const eval_rank *r, u32 k) {
  const func_info *f = func_get(r->m.p, r->m.p->main);
  return f->values.v[f->rets.v[k]].ty;
}

static bool replaces(const eval_rank *r, const u32 *next) {
  for (u32 k = 0; k < r->nparams; k++) {
    if (!next[k] || (next[k] <= r->nresults && result_type(r, next[k] - 1).i == param_type(r, k).i)) continue;
    const func_info *f = func_get(r->m.p, r->m.p->main);
    diag(r->m.c, E_SHAPE, f->where, "parameter %s of main cannot become result %u of it: their types differ",
         sym_str(r->m.c, f->values.v[k + 1].name), next[k] - 1);
    return false;
  }
  return true;
}

bool eval_rank_step(eval_rank *r, const u32 *next) {
  interp *m = &r->m;
  if (!replaces(r, next)) return false;
  if (m->record) record_step_begin(m->record);
  for (u32 k = 0; k < r->nresults; k++) eval_held_drop(m, &r->result[k]);
  arena_mark_t mark = arena_mark(m->stack);
  held *args = ZNEWN(m->stack, held, r->nparams + 1), *results = ZNEWN(m->stack, held, r->nresults + 1);
  for (u32 k = 0; k < r->nparams; k++) args[k] = shared(m, param_type(r, k), &r->param[k]);
  for (u32 k = 0; k < r->nparams; k++)
    if (next[k]) eval_held_drop(m, &r->param[k]); // whoever updates it may work in its storage
  const bool ok = eval_main(m, args, results);
  for (u32 k = 0; k < r->nparams; k++) eval_held_drop(m, &args[k]);
  for (u32 k = 0; ok && k < r->nresults; k++) {
    eval_held_share(&r->result[k], &results[k]);
    eval_held_drop(m, &results[k]);
  }
  arena_release(m->stack, mark);
  for (u32 k = 0; ok && k < r->nparams; k++)
    if (next[k]) eval_held_share(&r->param[k], &r->result[next[k] - 1]);
  if (ok && m->record) record_step_end(m->record);
  return ok;
}

void eval_rank_record(eval_rank *r, u32 nranks, u64 most) {
  if (!r->m.record) record_new(r->a, &r->m, nranks, most);
}
struct trace_source *eval_rank_recorded(const eval_rank *r, arena *a, eval_recorded *about) {
  return r->m.record ? record_timeline(r->m.record, a, about) : NULL;
}

// To rank 0, where it is put together.
static bool whole(eval_rank *r, type t, const held *own, eval_array *out, arena *a) {
  interp *m = &r->m;
  const func_info *f = func_get(m->p, m->p->main);
  const point at = {0};
  *out = (eval_array){.data = NULL};
  const holdings *p = eval_holdings(m, t, (group){0}, &at, f->where);
  if (!p) return false;
  arena_mark_t mark = arena_mark(m->stack);
  held h = shared(m, t, own);
  bool ok = true;
  for (u32 k = 0; k < p->n && ok; k++) {
    const u32 rank = eval_rank_of(m, own->g, k);
    if (rank == 0 && m->link->rank == 0) continue;
    if (rank == m->link->rank)
      ok = m->link->send(m->link->arg, 0, h.piece[k]->data, h.piece[k]->bytes) || eval_gone(m, 0, f->where);
    else if (m->link->rank == 0) {
      h.piece[k] = eval_buf(m, spot_bytes(p, k));
      ok = m->link->receive(m->link->arg, rank, h.piece[k]->data, h.piece[k]->bytes) ||
           eval_gone(m, rank, f->where);
    }
  }
  ok = ok && (m->link->rank != 0 || eval_assemble(m, p, &h, out, a, f->where));
  eval_held_drop(m, &h);
  arena_release(m->stack, mark);
  return ok;
}

bool eval_rank_result(eval_rank *r, u32 k, eval_array *out, arena *a) {
  return whole(r, result_type(r, k), &r->result[k], out, a);
}
bool eval_rank_parameter(eval_rank *r, u32 k, eval_array *out, arena *a) {
  return whole(r, param_type(r, k), &r->param[k], out, a);
}
