// rank.c - one rank of a program in a process of its own, step after step: its pieces stay between steps. What moves
// pieces between ranks is in move.c.
//
// Idea: every rank walks the whole program in its one order, computes for itself alone and takes part in the movements
// that name it. Messages between two ranks come in order, so they need no names.
#include "eval/internal.h"
#include <errno.h>

struct eval_rank {
  interp m;
  eval_link link;
  arena *a;
  u32 nparams, nresults;
  held *param, *result;
  const bool *donated; // by parameter, from 1
  bool spent;          // out of memory: its pieces are gone
};

const eval_where *eval_rank_where(const eval_rank *r) { return &r->m.where; }

static bool has_node(const prog *p, loc at) {
  const loc_info *l = loc_get(p->c, at);
  return l && (l->node.i || l->line);
}

// A result of a function that main calls has the name that main has for it.
static const char *name_in(const prog *p, const func_info *f, const instr *i, const instr *top) {
  const func_info *m = func_get(p, p->main);
  if (!i->nres) return NULL;
  sym name = val(f, i->res)->name;
  for (u32 k = 0; top && !name.i && k < f->rets.n && k < top->nres; k++)
    if (f->rets.v[k] == i->res) name = val(m, top->res + k)->name;
  return name.i ? sym_str(p->c, name) : NULL;
}

static u32 next_use(const func_info *f, u32 index) { // 0: there is none
  const instr *i = &f->body.v[index];
  for (u32 k = index + 1; k < f->body.n && i->nres; k++)
    for (u32 j = 0; j < instr_nopd(f, &f->body.v[k]); j++)
      if (opd_of(f, &f->body.v[k], j) == i->res) return k;
  return 0;
}

// The node of what made an operand: of a call, the last one in the function.
static loc node_before(const prog *p, const func_info *f, u32 index, u32 depth) {
  const instr *i = &f->body.v[index];
  for (u32 j = 0; j < instr_nopd(f, i) && depth; j++) {
    const u32 def = val(f, opd_of(f, i, j))->def;
    if (!def) continue;
    const instr *from = &f->body.v[def - 1];
    if (has_node(p, from->where)) return from->where;
    const func_info *g = from->op == OP_call ? func_get(p, from->callee) : NULL;
    for (u32 k = g ? g->body.n : 0; k-- > 0;)
      if (has_node(p, g->body.v[k].where)) return g->body.v[k].where;
    const loc at = node_before(p, f, def - 1, depth - 1);
    if (has_node(p, at)) return at;
  }
  return (loc){0};
}

// What instructions of a plan have no name and no node for, those that use their results have: the gradient's
// all_reduce is for the update of a weight.
static const char *named_after(const prog *p, const func_info *f, u32 index, const instr *top, loc *where) {
  enum { FAR = 2 };
  *where = f->body.v[index].where;
  for (u32 hops = 0; hops <= FAR; hops++) {
    const instr *i = &f->body.v[index];
    const char *name = name_in(p, f, i, top);
    if (!has_node(p, *where) && has_node(p, i->where)) *where = i->where;
    if (name || has_node(p, *where) || !(index = next_use(f, index))) return name;
  }
  return NULL;
}

const char *eval_where_text(const prog *p, u64 at, u32 top, arena *a, loc *where) {
  const u32 fn = (u32)(at >> 32), index = (u32)at;
  const func_info *m = func_get(p, p->main);
  if (!index || fn >= p->funcs.n || index > func_get(p, (func){fn})->body.n) return NULL;
  const func_info *f = func_get(p, (func){fn});
  const instr *i = &f->body.v[index - 1], *call = top && top <= m->body.n ? &m->body.v[top - 1] : NULL;
  if (call && (call->op != OP_call || call->callee.i != fn)) call = NULL;
  const attr *over = attr_get(attrs_get(p, i->at), A_over);
  strbuf b = {.a = a};
  sb_put(&b, op_row_of(i->op)->name);
  for (u32 k = 0; over && k < over->n; k++)
    sb_fmt(&b, "%s%s", k ? ", " : " over ", sym_str(p->c, axis_get(p->sp, over->u.axes[k])->name));
  const char *name = named_after(p, f, index - 1, call, where);
  const loc before = has_node(p, *where) ? *where : node_before(p, f, index - 1, 3);
  if (before.i) *where = before;
  if (name) sb_fmt(&b, " (%s)", name);
  return sb_str(&b);
}

void eval_hint_memory(ctx *c) {
  diag_hint(c, "fewer ranks on this computer, a smaller --batch, or more microbatches (mb)");
}

// False, with E_PEER at `where`, or what the rank is at.
bool eval_gone(interp *m, u32 rank, loc where) {
  arena *a = arena_new();
  loc own = where;
  const char *what = eval_where_text(m->p, m->where.at, m->where.top, a, &own), *at = what ? ", at " : "";
  const bool memory = errno == ENOMEM;
  if (memory)
    diag(m->c, E_HOST_MEMORY, own, "rank %u is given no memory for a message to rank %u%s%s", m->link->rank,
         rank, at, what ? what : "");
  else
    diag(m->c, E_PEER, own, "rank %u does not hear rank %u any more%s%s", m->link->rank, rank, at,
         what ? what : "");
  if (memory) eval_hint_memory(m->c);
  arena_free(a);
  return false;
}

// As many bytes as b has; false, with E_PEER.
static bool message(interp *m, bool sends, u32 peer, const buf *b, loc where) {
  transfer t = {.a = m->scratch, .where = where};
  arena_mark_t mark = arena_mark(t.a);
  *vec_push(t.a, &t.step) = (transfer_step){.sends = sends, .peer = peer, .data = b->data, .bytes = b->bytes};
  const bool ok = transfer_run(m, &t);
  arena_release(t.a, mark);
  return ok;
}

// Pieces that pass as this rank's own; nobody writes to them.
static held shared(interp *m, type t, const held *from) {
  held h = eval_held_new(m, t, (group){0});
  eval_held_share(&h, from);
  return h;
}

// The parameter that a value of main is, or is a view of; 0: none.
static value param_of(const func_info *m, value v) {
  while (v > m->nparams) {
    const u32 def = m->values.v[v].def;
    const instr *i = def ? &m->body.v[def - 1] : NULL;
    if (!i || !(op_row_of(i->op)->flags & OPF_VIEW) || instr_nopd(m, i) != 1) return 0;
    v = opd_of(m, i, 0);
  }
  return v;
}

// By parameter: does main donate it? Others are there until the step has ended, whatever takes their place in the next.
static const bool *donated_params(const prog *p, arena *a) {
  const func_info *m = func_get(p, p->main);
  bool *is = ZNEWN(a, bool, m->nparams + 1);
  for (u32 k = 0; k < m->body.n; k++)
    for (u32 j = 0; j < instr_nopd(m, &m->body.v[k]); j++)
      if (opd_donated(m, &m->body.v[k], j)) is[param_of(m, opd_of(m, &m->body.v[k], j))] = true;
  return is;
}

static eval_rank *rank_new(const prog *p, const eval_opts *o, const eval_link *link, u32 nin) {
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
  if (link->beside) r->link.beside = arena_dup(a, link->beside, sizeof *link->beside);
  r->nparams = f->nparams, r->nresults = f->rets.n;
  r->donated = donated_params(p, a);
  eval_open(&r->m);
  storage_new(&r->m);
  r->param = ZNEWN(r->m.stack, held, r->nparams + 1), r->result = ZNEWN(r->m.stack, held, r->nresults + 1);
  for (u32 k = 0; k < r->nresults; k++)
    r->result[k] = eval_held_new(&r->m, f->values.v[f->rets.v[k]].ty, (group){0});
  return r;
}

eval_rank *eval_rank_new(const prog *p, const eval_opts *o, const eval_link *link, const eval_array *in,
                         u32 nin) {
  eval_rank *r = rank_new(p, o, link, nin);
  if (!r || eval_enter(&r->m, in, r->param)) return r;
  eval_rank_free(r);
  return NULL;
}

eval_rank *eval_rank_take(const prog *p, const eval_opts *o, const eval_link *link, eval_array *in, u32 nin) {
  eval_rank *r = rank_new(p, o, link, nin);
  bool ok = r;
  for (u32 k = 0; k < nin && ok; k++) {
    const u32 carried = func_get(p, p->main)->params.v[k].data;
    ok = eval_enter_one(&r->m, k, &in[k], &r->param[k]);
    if (in[k].data && !(carried && p->data.v[carried].bytes == in[k].data))
      base_zero(in[k].data, (size_t)shape_bytes(&in[k].s));
  }
  if (ok) return r;
  eval_rank_free(r);
  return NULL;
}

void eval_rank_free(eval_rank *r) {
  if (!r) return;
  if (!r->spent) eval_close(&r->m);
  arena_free(r->a);
}

void eval_rank_watch(eval_rank *r, void (*done)(void *arg, const func_info *f, const instr *i, group g),
                     void *arg) {
  r->m.watch = done, r->m.watcher = arg;
}

void eval_rank_next(const prog *p, u32 *next) {
  const func_info *m = func_get(p, p->main);
  arena *a = arena_new();
  hmap by_name = {0};
  for (u32 k = 0; k < m->rets.n; k++) {
    const sym name = val(m, m->rets.v[k])->name;
    if (name.i) hmap_add(a, &by_name, name.i, k + 1);
  }
  for (u32 k = 0; k < m->nparams; k++) {
    const sym name = val(m, k + 1)->name;
    next[k] = name.i ? hmap_get(&by_name, ir_new_name(p->c, name).i) : 0;
  }
  arena_free(a);
}

u32 eval_updates(const prog *p) {
  const func_info *m = func_get(p, p->main);
  i64 n = 1;
  for (u32 k = 0; k < m->body.n; k++) n = MAX(n, attr_int(attrs_get(p, m->body.v[k].at), A_update, 1));
  return (u32)n;
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

static bool one_step(eval_rank *r, const u32 *next) {
  interp *m = &r->m;
  const bool recorded = m->record && !eval_is_dry(m);
  if (recorded) record_step_begin(m->record);
  for (u32 k = 0; k < r->nresults; k++) eval_held_drop(m, &r->result[k]);
  arena_mark_t mark = arena_mark(m->stack);
  held *args = ZNEWN(m->stack, held, r->nparams + 1), *results = ZNEWN(m->stack, held, r->nresults + 1);
  for (u32 k = 0; k < r->nparams; k++) args[k] = shared(m, param_type(r, k), &r->param[k]);
  for (u32 k = 0; k < r->nparams; k++)
    if (next[k] && r->donated[k + 1])
      eval_held_drop(m, &r->param[k]); // whoever updates it may work in its storage
  const bool ok = eval_main(m, args, results) && beside_end_all(m);
  for (u32 k = 0; k < r->nparams; k++) eval_held_drop(m, &args[k]);
  for (u32 k = 0; ok && k < r->nresults; k++) {
    eval_held_share(&r->result[k], &results[k]);
    eval_held_drop(m, &results[k]);
  }
  arena_release(m->stack, mark);
  for (u32 k = 0; ok && k < r->nparams; k++)
    if (next[k]) eval_held_drop(m, &r->param[k]), eval_held_share(&r->param[k], &r->result[next[k] - 1]);
  if (ok && recorded) record_step_end(m->record);
  return ok;
}

static held likeness(interp *m, const held *h, bool host) {
  held x = *h;
  if (h->elem) {
    x.elem = NEWN(m->stack, held, h->n);
    for (u32 k = 0; k < h->n; k++) x.elem[k] = likeness(m, &h->elem[k], host);
    return x;
  }
  x.piece = ZNEWN(m->stack, buf *, h->n);
  for (u32 k = 0; k < h->n; k++) {
    x.piece[k] = h->piece[k] ? storage_like(m, h->piece[k]) : NULL;
    if (host && x.piece[k]) storage_on_host(m, x.piece[k]);
  }
  return x;
}

// A step without numbers, on likenesses of the parameters: what it asks for gets its places.
static bool plan_storage(eval_rank *r, const u32 *next) {
  interp *m = &r->m;
  arena_mark_t mark = arena_mark(m->stack);
  held *param = r->param, *result = r->result;
  r->param = NEWN(m->stack, held, r->nparams + 1), r->result = NEWN(m->stack, held, r->nresults + 1);
  storage_dry(m->storage);
  for (u32 k = 0; k < r->nparams; k++)
    r->param[k] = likeness(m, &param[k], func_get(m->p, m->p->main)->params.v[k].host);
  for (u32 k = 0; k < r->nresults; k++) r->result[k] = eval_held_new(m, result_type(r, k), (group){0});
  const bool ok = one_step(r, next);
  storage_plan(m->storage);
  for (u32 k = 0; k < r->nparams; k++) eval_held_drop(m, &r->param[k]);
  for (u32 k = 0; k < r->nresults; k++) eval_held_drop(m, &r->result[k]);
  r->param = param, r->result = result;
  arena_release(m->stack, mark);
  if (ok) storage_take(m->storage);
  return ok;
}

// The pieces go first, so that there is room to say so.
static bool out_of_memory(eval_rank *r, const char *doing) {
  loc where = {0};
  r->m.where.waits = r->m.where.sends = 0;
  eval_close(&r->m);
  r->spent = true;
  const char *at = doing ? NULL : eval_where_text(r->m.p, r->m.where.at, r->m.where.top, r->a, &where);
  diag(r->m.c, E_HOST_MEMORY, where, "rank %u is given no more memory, %s%s", r->link.rank, at ? "at " : "",
       at      ? at
       : doing ? doing
               : "in a step");
  eval_hint_memory(r->m.c);
  return false;
}

bool eval_rank_guard(eval_rank *r, bool (*job)(void *arg), void *arg, const char *doing) {
  jmp_buf here, *outer = base_oom;
  volatile bool ok = false, whole = false;
  if (r->spent) return false;
  if (setjmp(here) == 0) {
    base_oom = &here;
    ok = job(arg);
    whole = true;
  }
  base_oom = outer;
  return whole ? ok : out_of_memory(r, doing);
}

typedef struct {
  eval_rank *r;
  const u32 *next;
} stepping;
static bool run_step(void *arg) {
  const stepping *s = arg;
  storage_begin(s->r->m.storage);
  const bool ok = one_step(s->r, s->next);
  storage_end(s->r->m.storage);
  return ok;
}
static bool run_plan(void *arg) {
  const stepping *s = arg;
  return plan_storage(s->r, s->next);
}
static bool known_storage(stepping *s) {
  return replaces(s->r, s->next) && (storage_known(s->r->m.storage) ||
                                     eval_rank_guard(s->r, run_plan, s, "for what a step holds at once"));
}
bool eval_rank_memory(eval_rank *r, const u32 *next, eval_memory *out) {
  const bool ok = known_storage(&(stepping){r, next});
  if (ok) *out = storage_memory(r->m.storage);
  return ok;
}
bool eval_rank_step(eval_rank *r, const u32 *next) {
  stepping s = {r, next};
  const bool ok = known_storage(&s) && eval_rank_guard(r, run_step, &s, NULL);
  if (ok) r->m.where.at = 0;
  return ok;
}

bool eval_rank_set(eval_rank *r, u32 k, const eval_array *x) {
  eval_held_drop(&r->m, &r->param[k]);
  return eval_enter_one(&r->m, k, x, &r->param[k]);
}

bool eval_rank_rows(eval_rank *r, u32 k, u8 *row) {
  interp *m = &r->m;
  const point at = {0};
  const holdings *p = eval_holdings(m, param_type(r, k), (group){0}, &at, func_get(m->p, m->p->main)->where);
  for (u32 j = 0; p && j < p->n; j++) {
    const spot *s = &p->at[j];
    if (!eval_mine(m, r->param[k].g, j)) continue;
    for (i64 i = 0; i < s->dim[0]; i++) row[s->map[0] ? s->map[0]->index[i] : i] = 1;
  }
  return p;
}

u32 eval_rank_self(const eval_rank *r) { return r->link.rank; }
void eval_rank_number(eval_rank *r, i64 step) { r->m.o.step = step; }

void eval_rank_ring(eval_rank *r, i64 chunk_bytes) { r->m.o.ring_bytes = chunk_bytes; }

void eval_rank_record(eval_rank *r, u32 nranks, u64 most) {
  if (!r->m.record) record_new(r->a, &r->m, nranks, most);
}
struct trace_source *eval_rank_recorded(const eval_rank *r, arena *a, const eval_job *of,
                                        eval_recorded *about) {
  return r->m.record ? record_timeline(r->m.record, a, of, about) : NULL;
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
      ok = message(m, true, 0, h.piece[k], f->where);
    else if (m->link->rank == 0) {
      h.piece[k] = eval_buf(m, spot_bytes(p, k));
      ok = message(m, false, rank, h.piece[k], f->where);
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
