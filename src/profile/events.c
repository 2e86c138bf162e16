// events.c - the distinct events of a program, and which ranks run them.
//
// Idea: functions are looked at once for every group that they are called on. Members of a group that hold equal pieces
// have equal events, so one member speaks for all of them unless pieces, devices or places differ.
#include "profile/internal.h"

// Who takes something from a member of a send's source, as a run does (ir/givers.c); where nobody does, who is at its part of
// the target.
static u32 send_taker(const profile_events *x, const instr *i, const func_info *f, group g, u32 member) {
  const space *sp = x->p->sp;
  const type_info *from = val_type(x->p, f, opd_of(f, i, 0)), *to = val_type(x->p, f, i->res);
  const giving_end source = {g, from->lay};
  giving send = giving_of(x->p, i);
  send.from = &source, send.to = (giving_end){group_bind(to->g, g), to->lay};
  const u32 nf = group_size(sp, g), nt = group_size(sp, send.to.g);
  assert(nf);
  arena *a = arena_new();
  box *have = NEWN(a, box, nf);
  u32 taker = nt;
  for (u32 k = 0; k < nf; k++) have[k] = box_of(sp, a, from->lay, from->s.nd, from->s.dim, g, k);
  for (u32 k = 0; k < nt && taker == nt; k++) {
    const box want = box_of(sp, a, to->lay, to->s.nd, to->s.dim, send.to.g, k), *const all = have;
    const gifts m = gifts_of(&send, a, k, from->s.nd, &want, &all);
    for (u32 j = 0; j < m.n; j++)
      if (m.v[j].from.member == member) taker = k;
  }
  arena_free(a);
  return taker < nt ? taker : (u32)((u64)member * nt / nf);
}

static void put_members(profile_events *x, const instr *i, const func_info *f, group g, u32 member,
                        profile_event *e) {
  const space *sp = x->p->sp;
  const group_info *gi = group_get(sp, g);
  u8 axes[MESH_AXES];
  u32 *v = NEWN(x->a, u32, MAX(e->e.where->n, 2u)), n = 0;
  if (i->op == OP_send) {
    const type_info *t = val_type(x->p, f, i->res);
    const group_info *to = group_get(sp, group_bind(t->g, g));
    v[n++] = gi->ranks[member];
    v[n++] = to->ranks[send_taker(x, i, f, g, member)];
  } else {
    const u32 naxes = cost_axes(x->p, i, g, axes), lead = group_lead(sp, g, member, axes, naxes);
    for (u32 m = 0; m < gi->nranks && n < e->e.where->n; m++)
      if (group_lead(sp, g, m, axes, naxes) == lead) v[n++] = gi->ranks[m];
  }
  e->members = v, e->nmembers = n;
}

// What lies before and behind the dimension that the communication splits, or joins again: of its first operand and result, as
// a rank has it.
static split_at split_of(const profile_events *x, const instr *i, const func_info *f, group g) {
  u8 axes[MESH_AXES];
  const u32 naxes = i->op == OP_send ? 0 : cost_axes(x->p, i, g, axes), nopd = instr_nopd(f, i);
  split_at at = {1, 1};
  for (u32 side = 0; side < 2; side++) {
    if (side ? !i->nres : !nopd) continue;
    const type_info *t = val_type(x->p, f, side ? i->res : opd_of(f, i, 0));
    const layout_info *l = layout_get(x->p->sp, t->lay);
    i64 dim[DIMS_MAX];
    if (t->tuple || !layout_is_even(x->p->sp, t->lay)) continue;
    layout_local_dims(x->p->sp, t->lay, t->s.nd, t->s.dim, NULL, dim);
    for (u32 k = 0; k < l->nsplit; k++)
      for (u32 j = 0; j < naxes; j++) {
        if (l->split[k].axis != axes[j]) continue;
        at = (split_at){1, 1};
        for (u32 d = 0; d < t->s.nd; d++)
          if (d != l->split[k].dim) *(d < l->split[k].dim ? &at.outer : &at.inner) *= dim[d];
      }
  }
  return at;
}

static u32 found(const profile_events *x, const char *key) {
  for (u32 it = 0, k; hmap_next(&x->by_key, hash_bytes(key, strlen(key), 0), &it, &k);) {
    assert(k < x->v.n && x->v.v);
    if (!strcmp(x->v.v[k].key, key)) return k + 1;
  }
  return 0;
}

// The event's number, from 1; 0: it has no price; -1: it cannot be priced, and a diagnostic.
static int event_at(profile_events *x, const func_info *f, const instr *i, group g, u32 member) {
  cost_info cost;
  cost_event e;
  if (!cost_explain(x->k, x->p, f, i, g, member, &cost, &e)) return -1;
  if (cost.source == COST_FREE || i->op == OP_copy || e.host || i->op == OP_opaque ||
      (e.where && e.where->n < 2))
    return 0;
  strbuf text = {.a = x->a};
  cost_event_print(x->p->c, cost_model_machine(x->k), &e, &text);
  const char *key = sb_str(&text);
  const u32 known = found(x, key);
  if (known) return (int)known;
  profile_event made = {.key = key,
                        .e = e,
                        .f = f,
                        .i = i,
                        .on = g,
                        .member = member,
                        .rank = group_get(x->p->sp, g)->ranks[member]};
  if (e.where) {
    made.e.where = arena_dup(x->a, e.where, sizeof *e.where);
    put_members(x, i, f, g, member, &made);
    made.at = split_of(x, i, f, g);
  } else {
    shape *s = arena_dup(x->a, e.opd, sizeof *s * (e.nopd + e.nres));
    made.e.opd = s, made.e.res = s + e.nopd;
  }
  hmap_add(x->a, &x->by_key, hash_bytes(key, strlen(key), 0), x->v.n);
  *vec_push(x->a, &x->v) = made;
  return (int)x->v.n;
}

u32 profile_event_of(profile_events *x, const func_info *f, const instr *i, group g, u32 member) {
  if (i->op == OP_call) return 0;
  const int k = event_at(x, f, i, g, member);
  return k > 0 ? (u32)k : 0;
}

// ---- the whole program ----------------------------------------------------------------------------------
static bool members_differ(const profile_events *x, const func_info *f, const instr *i) {
  const machine *m = cost_model_machine(x->k);
  if (m->nkinds > 1 || (m->nnodes > 1 && cost_op_moves((opcode)i->op))) return true;
  const u32 nopd = instr_nopd(f, i);
  for (u32 k = 0; k < nopd + i->nres; k++) {
    const type_info *t = val_type(x->p, f, k < nopd ? opd_of(f, i, k) : i->res + k - nopd);
    if (!t->tuple && !layout_is_even(x->p->sp, t->lay)) return true;
  }
  return false;
}

// How often a function runs in a step on each group.
typedef struct {
  hmap at;   // function and group -> number + 1
  hmap leaf; // function -> 1: it calls nothing
  VEC(u64) runs;
  u64 instrs; // so far
} tallies;
static u64 call_key(func fn, group g) { return hash_u64((u64)fn.i << 32 | g.i, 7); }

static u64 *runs_of(const profile_events *x, tallies *t, func fn, group g) {
  const u64 at = call_key(fn, g);
  u32 k = hmap_get(&t->at, at);
  if (!k) {
    *vec_push(x->a, &t->runs) = 0;
    hmap_add(x->a, &t->at, at, k = t->runs.n);
  }
  assert(k <= t->runs.n && t->runs.v);
  return &t->runs.v[k - 1];
}

static void count_runs(const profile_events *x, tallies *t, func fn, group g) {
  const func_info *f = func_get(x->p, fn);
  bool leaf = true;
  ++*runs_of(x, t, fn, g);
  if (hmap_get(&t->leaf, hash_u64(fn.i, 8))) return;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->op != OP_call) continue;
    count_runs(x, t, i->callee, group_bind(i->g, g));
    leaf = false;
  }
  if (leaf) hmap_add(x->a, &t->leaf, hash_u64(fn.i, 8), 1);
}

static bool look(profile_events *x, tallies *t, func fn, group g, hmap *seen) {
  const func_info *f = func_get(x->p, fn);
  const u64 at = call_key(fn, g), runs = *runs_of(x, t, fn, g);
  if (hmap_get(seen, at)) return true;
  hmap_add(x->a, seen, at, 1);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    const group on = group_bind(i->g, g);
    if (i->op == OP_call) {
      if (!look(x, t, i->callee, on, seen)) return false;
      continue;
    }
    const u32 n = members_differ(x, f, i) ? group_get(x->p->sp, on)->nranks : 1;
    t->instrs++;
    for (u32 m = 0; m < n; m++) {
      const int event = event_at(x, f, i, on, m);
      if (event < 0) return false;
      assert(!event || ((u32)event <= x->v.n && x->v.v));
      if (!event || x->v.v[event - 1].counted == t->instrs) continue;
      x->v.v[event - 1].times += runs, x->v.v[event - 1].counted = t->instrs;
    }
  }
  return true;
}

bool profile_events_of(profile_events *x, ctx *c, arena *a, const prog *p, const machine *m) {
  machine *plain = arena_dup(a, m, sizeof *m);
  hmap seen = {0};
  tallies t = {0};
  plain->events = NULL, plain->profile = NULL;
  *x = (profile_events){.p = p, .a = a};
  x->k = cost_model_new(c, a, plain, NULL);
  if (!x->k) return false;
  count_runs(x, &t, p->main, (group){0});
  return look(x, &t, p->main, (group){0}, &seen);
}

bool profile_missing(profile_events *x, ctx *c, arena *a, const prog *p, const machine *m, u32 *nevents,
                     u32 *nmissing) {
  if (!profile_events_of(x, c, a, p, m)) return false;
  *nevents = x->v.n, *nmissing = 0;
  for (u32 k = 0; k < x->v.n; k++) *nmissing += !machine_events_find(m->events, x->v.v[k].key);
  return true;
}
