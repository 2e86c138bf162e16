// host_update.c - an update of weights whose states lie in host memory, as the host computes it. Gradients are copied there
// and new weights back, which takes 4 bytes for each parameter in f16, where states that are updated on the device take
// 24 (ZeRO-Offload, Ren and others, 2021). What lies in host memory its caller says (plan/finish.c).
//
// Idea: what reads something in host memory runs on the host, but for communication, which devices do. So sums of gradients
// over ranks come before the copy, and gathers of weights after it. A weight on the device that an update takes over does
// not leave it: what the host has made comes and is assigned to it, in the weight's type, so that an f16 weight with a
// master copy takes 2 bytes. Without a master copy the weight itself goes to the host and comes back.
//
// Instructions become *jobs* of one of the two, which run in turns: all of the device that can run, one copy of what the
// host is to read, all of the host that can run, one copy back, and so on.
#include "pass/internal.h"

typedef struct {
  const instr *i; // that it comes from
  opcode op;
  attrset at;
  bool host, done;
  u32 n, *opd;    // places with marks
  u32 nres, *res; // places
} job;
// A place is an old value, or one that a job makes beside them.
typedef struct {
  type ty;
  bool host;         // where it is made
  u32 job;           // that makes it, if it is no parameter
  value here, there; // on the device, in host memory; 0: not there
} place;
typedef struct {
  prog *p;
  const func_info *f; // as it was
  const host_update_opts *o;
  arena *a;
  builder b;
  VEC(job) jobs;
  VEC(place) places;
  u32 *as;      // by old value: the place it is
  bool *wanted; // by place: a job reads it or f returns it
} updating;

static bool is_comm(const instr *i) { return op_row_of((opcode)i->op)->flags & OPF_COMM; }

static u32 place_like(updating *x, type ty, bool host) {
  *vec_push(x->a, &x->places) = (place){ty, host, x->jobs.n - 1, 0, 0};
  return x->places.n - 1;
}

static u32 read_at(const updating *x, const instr *i, u32 o) {
  const u32 entry = x->f->opds.v[i->opd + o];
  return x->as[entry & OPD_VALUE] | (entry & ~(u32)OPD_VALUE);
}

static bool on_host(const updating *x, const instr *i, u32 o) {
  return x->places.v[read_at(x, i, o) & OPD_VALUE].host;
}

static job *job_new(updating *x, const instr *i, opcode op, attrset at, bool host, u32 n, u32 nres) {
  job *j = vec_push(x->a, &x->jobs);
  *j = (job){i, op, at, host, false, n, NEWN(x->a, u32, n + 1), nres, NEWN(x->a, u32, nres + 1)};
  return j;
}

// ---- jobs ---------------------------------------------------------------------------------------------------
// `made`, in host memory, in the element type of `like`, which it is of otherwise.
static u32 converted(updating *x, const instr *i, u32 made, type like) {
  const type own = x->places.v[made].ty;
  const attr to = attr_t(A_dtype, type_get(x->p, like)->s.t);
  if (own.i == like.i) return made;
  job *j = job_new(x, i, OP_cast, attrs_of(x->p, &to, 1), true, 1, 1);
  j->opd[0] = made;
  return j->res[0] = place_like(x, like, true);
}

// What the host has made in the place of a weight on the device.
static u32 assigned(updating *x, const instr *i, u32 weight, u32 made) {
  const type ty = x->places.v[weight & OPD_VALUE].ty;
  job *j = job_new(x, i, OP_assign, (attrset){0}, false, 2, 1);
  j->opd[0] = weight, j->opd[1] = made;
  return j->res[0] = place_like(x, ty, false);
}

// assign w, y with y in host memory and w on the device: a weight, or a piece of one for a moment.
static void put_assign(updating *x, const instr *i) {
  const u32 w = read_at(x, i, 0), y = read_at(x, i, 1) & OPD_VALUE;
  const u32 made = converted(x, i, y, x->f->values.v[i->res].ty);
  x->as[i->res] = assigned(x, i, w | OPD_DONATED, made);
}

static void put_job(updating *x, const instr *i, bool host) {
  const u32 n = instr_nopd(x->f, i);
  u32 *opd = NEWN(x->a, u32, n + 1);
  const bool in_place = op_row_of((opcode)i->op)->flags & OPF_INPLACE;
  for (u32 k = 0; k < n; k++) opd[k] = read_at(x, i, k);
  job *j = job_new(x, i, (opcode)i->op, i->at, host, n, i->nres);
  memcpy(j->opd, opd, n * sizeof *opd);
  const u32 at = x->jobs.n - 1;
  for (u32 r = 0; r < i->nres; r++)
    x->as[i->res + r] = x->jobs.v[at].res[r] = place_like(x, x->f->values.v[i->res + r].ty, host);
  for (u32 r = 0; host && in_place && r < i->nres; r++) {
    const u32 o = op_continues((opcode)i->op, r);
    if (o < i->nopd && opd[o] & OPD_DONATED && !x->places.v[opd[o] & OPD_VALUE].host)
      x->as[i->res + r] = assigned(x, i, opd[o], x->as[i->res + r]);
  }
}

static void make_jobs(updating *x) {
  for (u32 k = 0; k < x->f->body.n; k++) {
    const instr *i = &x->f->body.v[k];
    bool host = false;
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) host |= on_host(x, i, o);
    assert(i->op != OP_call && i->op != OP_pack && i->op != OP_unpack); // updates have none
    if (host && i->op == OP_assign && on_host(x, i, 1) && !on_host(x, i, 0))
      put_assign(x, i);
    else
      put_job(x, i, host && !is_comm(i));
  }
}

// What nobody reads is left out.
static void find_wanted(updating *x) {
  x->wanted = ZNEWN(x->a, bool, x->places.n);
  for (u32 r = 0; r < x->f->rets.n; r++) x->wanted[x->as[x->f->rets.v[r]]] = true;
  for (u32 k = x->jobs.n; k-- > 0;) {
    job *j = &x->jobs.v[k];
    bool any = false;
    for (u32 r = 0; r < j->nres; r++) any |= x->wanted[j->res[r]];
    j->done = !any;
    for (u32 o = 0; any && o < j->n; o++) x->wanted[j->opd[o] & OPD_VALUE] = true;
  }
}

// ---- turns --------------------------------------------------------------------------------------------------
static value at_side(const updating *x, u32 p, bool host) {
  return host ? x->places.v[p].there : x->places.v[p].here;
}

static bool ready(const updating *x, const job *j) {
  bool all = !j->done;
  for (u32 o = 0; o < j->n; o++) all &= at_side(x, j->opd[o] & OPD_VALUE, j->host) > 0;
  return all;
}

static void put(updating *x, job *j) {
  u32 *opd = NEWN(x->a, u32, j->n + 1);
  type *res = NEWN(x->a, type, j->nres + 1);
  for (u32 o = 0; o < j->n; o++)
    opd[o] = at_side(x, j->opd[o] & OPD_VALUE, j->host) | (j->opd[o] & ~(u32)OPD_VALUE);
  for (u32 r = 0; r < j->nres; r++) res[r] = x->places.v[j->res[r]].ty;
  x->b.strm = j->host ? x->o->host : j->i->strm, x->b.where = j->i->where, x->b.origin = j->i->origin;
  x->b.flags = (u8)(j->i->flags | (j->host ? INSTR_HOST : 0)), x->b.g = j->i->g, x->b.coord = j->i->coord;
  const u32 at = emit(&x->b, j->op, j->at, opd, j->n, res, j->nres);
  for (u32 r = 0; r < j->nres; r++) {
    place *p = &x->places.v[j->res[r]];
    *(j->host ? &p->there : &p->here) = emit_res(x->p, x->b.f, at) + r;
  }
  j->done = true;
}

static bool run(updating *x, bool host) {
  bool any = false;
  for (u32 k = 0; k < x->jobs.n; k++) {
    job *j = &x->jobs.v[k];
    if (j->host != host || !ready(x, j)) continue;
    put(x, j);
    any = true;
  }
  return any;
}

static void copy_some(updating *x, const u32 *which, u32 n, bool to_host, const instr *i) {
  const attr to = attr_s(A_to, sym_of(x->p->c, to_host ? "host" : "device"));
  u32 opd[COPIES_AT_ONCE];
  type t[COPIES_AT_ONCE];
  for (u32 k = 0; k < n; k++) opd[k] = at_side(x, which[k], !to_host), t[k] = x->places.v[which[k]].ty;
  x->b.strm = to_host ? x->o->out : x->o->in, x->b.flags = INSTR_PLAN | INSTR_UPDATE, x->b.origin = 0;
  x->b.where = i ? i->where : x->f->where, x->b.g = i ? i->g : (group){0}, x->b.coord = i ? i->coord : 0;
  const u32 at = emit(&x->b, OP_copy, attrs_of(x->p, &to, 1), opd, n, t, n);
  for (u32 k = 0; k < n; k++) {
    place *p = &x->places.v[which[k]];
    *(to_host ? &p->there : &p->here) = emit_res(x->p, x->b.f, at) + k;
  }
}

// Of a parameter, or what follows from one alone; places from 1 are those of the parameters.
static u32 maker_of(const updating *x, u32 p) {
  while (p > x->f->nparams) {
    const job *j = &x->jobs.v[x->places.v[p].job];
    if (j->host || !pass_is_alone(j->i)) return 0;
    p = j->opd[0] & OPD_VALUE;
  }
  return x->o->maker[p - 1];
}

// What is made on one side and wanted on the other: by a job that is left, or by whoever called. What was made together goes
// together.
static bool copy(updating *x, bool to_host) {
  bool *want = ZNEWN(x->a, bool, x->places.n);
  u32 which[COPIES_AT_ONCE], n = 0;
  bool any = false;
  const instr *i = NULL;
  for (u32 k = 0; k < x->jobs.n; k++)
    for (u32 o = 0; !x->jobs.v[k].done && x->jobs.v[k].host == to_host && o < x->jobs.v[k].n; o++)
      want[x->jobs.v[k].opd[o] & OPD_VALUE] = true, i = x->jobs.v[k].i;
  for (u32 r = 0; r < x->f->rets.n; r++)
    if (x->o->ret[r] == to_host) want[x->as[x->f->rets.v[r]]] = true;
  for (u32 p = 1; p < x->places.n; p++) want[p] &= !at_side(x, p, to_host) && at_side(x, p, !to_host);
  for (u32 p = 1; p < x->places.n; p++, n = 0) {
    for (u32 q = p; want[p] && q < x->places.n; q++) {
      if (q > p && (!want[q] || maker_of(x, q) != maker_of(x, p))) continue;
      if (n == COPIES_AT_ONCE) copy_some(x, which, n, to_host, i), n = 0;
      which[n++] = q, want[q] = q == p, any = true;
    }
    if (n) copy_some(x, which, n, to_host, i);
  }
  return any;
}

// Whoever calls gives the weights away: after their last reader they are gone.
static void give_weights(updating *x, func made) {
  func_info *f = func_get(x->p, made);
  bool *seen = ZNEWN(x->a, bool, f->values.n);
  for (u32 k = f->body.n; k-- > 0;)
    for (u32 o = instr_nopd(f, &f->body.v[k]); o-- > 0;) {
      u32 *entry = &f->opds.v[f->body.v[k].opd + o];
      const value v = *entry & OPD_VALUE;
      if (v <= f->nparams && f->params.v[v - 1].r == ROLE_WEIGHT && !seen[v]) *entry |= OPD_DONATED;
      seen[v] = true;
    }
}

func pass_host_update(prog *p, func fn, const host_update_opts *o) {
  const func_info *f = func_get(p, fn);
  updating x = {.p = p, .f = f, .o = o, .a = arena_new()};
  const func made = func_new(p, f->name, f->where);
  x.b = builder_at(p, made);
  x.as = ZNEWN(x.a, u32, f->values.n);
  place_like(&x, (type){0}, false); // place 0 is none
  for (u32 k = 0; k < f->nparams; k++) {
    const value v = pass_param_like(p, made, f, k);
    const u32 at = x.as[k + 1] = place_like(&x, f->values.v[k + 1].ty, o->param[k]);
    *(o->param[k] ? &x.places.v[at].there : &x.places.v[at].here) = v;
  }
  make_jobs(&x), find_wanted(&x);
  for (bool any = true; any;) {
    any = run(&x, false), any |= copy(&x, true);
    any |= run(&x, true), any |= copy(&x, false);
  }
  value *ret = NEWN(x.a, value, f->rets.n + 1);
  for (u32 r = 0; r < f->rets.n; r++) ret[r] = at_side(&x, x.as[f->rets.v[r]], o->ret[r]);
  func_return(p, made, ret, f->rets.n);
  give_weights(&x, made);
  arena_free(x.a);
  return made;
}
