// bridges.c - what moves between the task graphs of an annotated plan, counted in the distributed program:
// sends, and the conversions before and after them in main. Bytes that a rank has already do not count, nor do
// copies of weights that several task graphs read, nor their gradients on the way home.
#include "plan/plan.h"

typedef struct {
  prog *p;
  const func_info *m;
  const plan_task_graphs *t;
  plan_bridge *v;
  u32 n;
} bridges;

// The task graph that lies on a group; n: none does, or several do.
static u32 graph_on(const bridges *b, group g) {
  const space *sp = b->p->sp;
  u32 found = b->t->n;
  if (!g.i) return found;
  const group_info *gi = group_get(sp, g);
  const sym name = mesh_get(sp, gi->m)->name;
  for (u32 k = 0; k < b->t->n; k++) {
    const plan_task_graph *t = &b->t->v[k];
    bool is = t->mesh.i == name.i;
    for (u32 x = 0; is && t->axis.i && x < gi->naxes; x++)
      is = axis_get(sp, gi->axis[x].axis)->name.i != t->axis.i || gi->axis[x].at == (int)t->at;
    if (is && found < b->t->n) return b->t->n;
    if (is) found = k;
  }
  return found;
}

static plan_bridge *bridge_of(bridges *b, u32 from, u32 to) {
  for (u32 k = 0; k < b->n; k++)
    if (b->v[k].from == from && b->v[k].to == to) return &b->v[k];
  b->v[b->n] = (plan_bridge){.from = from, .to = to};
  return &b->v[b->n++];
}

// What a conversion on one group moves, by the usual rings.
static double converted(const bridges *b, const instr *in) {
  const type_info *t = val_type(b->p, b->m, opd_of(b->m, in, 0)), *to = val_type(b->p, b->m, in->res);
  const double from = (double)(layout_local_elems(b->p->sp, t->lay, t->s.nd, t->s.dim) * dtype_bytes(t->s.t)),
               into =
                   (double)(layout_local_elems(b->p->sp, to->lay, t->s.nd, t->s.dim) * dtype_bytes(t->s.t));
  const u32 ranks = group_get(b->p->sp, t->g)->nranks;
  switch (in->op) {
  case OP_all_gather: return (into - from) * ranks;
  case OP_reduce_scatter: return (from - into) * ranks;
  case OP_all_reduce: return 2 * from * (ranks - 1);
  case OP_all_to_all: return from * (ranks - 1);
  case OP_shard:
  case OP_partial: return 0; // every rank takes what it has
  default: return op_row_of(in->op)->flags & OPF_COMM ? from * ranks : 0;
  }
}

// Of conversions that lead to a send, or on from one.
static double around(const bridges *b, const u32 *reader, const instr *send) {
  double bytes = 0;
  for (value v = opd_of(b->m, send, 0); val(b->m, v)->def;
       v = opd_of(b->m, &b->m->body.v[val(b->m, v)->def - 1], 0)) {
    const instr *in = &b->m->body.v[val(b->m, v)->def - 1];
    if (!(in->flags & INSTR_PLAN) || in->op == OP_send || instr_nopd(b->m, in) != 1) break;
    bytes += converted(b, in);
  }
  for (u32 i = reader[send->res]; i; i = reader[b->m->body.v[i - 1].res]) {
    const instr *in = &b->m->body.v[i - 1];
    if (!(in->flags & INSTR_PLAN) || in->op == OP_send || instr_nopd(b->m, in) != 1 || in->nres != 1) break;
    bytes += converted(b, in);
  }
  return bytes;
}

// A copy comes from a parameter; a gradient on its way home was made in the backward, and is sent after it.
static bool of_weight(const bridges *b, const instr *send) {
  for (value v = opd_of(b->m, send, 0);;) {
    const u32 def = val(b->m, v)->def;
    if (!def) return true;
    const instr *in = &b->m->body.v[def - 1];
    const bool same = in->flags & INSTR_PLAN || in->op == OP_unpack || in->op == OP_join;
    if (!same || instr_nopd(b->m, in) != 1)
      return in->flags & INSTR_BACKWARD && !(send->flags & INSTR_BACKWARD);
    v = opd_of(b->m, in, 0);
  }
}

plan_task_graphs *plan_bridges(prog *p, arena *a, const plan_task_graphs *t) {
  plan_task_graphs *out = NEW(a, plan_task_graphs);
  plan_task_graph *v = arena_dup(a, t->v, (t->n + t->ninside) * sizeof *v);
  bridges b = {.p = p, .m = func_get(p, p->main), .t = t, .n = t->nbridges};
  b.v = ZNEWN(a, plan_bridge, t->nbridges + t->n * t->n + 1);
  for (u32 k = 0; k < t->nbridges; k++) b.v[k] = t->bridge[k];
  u32 *reader = ZNEWN(a, u32, b.m->values.n); // the first
  for (u32 i = b.m->body.n; i-- > 0;)
    for (u32 k = 0; k < b.m->body.v[i].nopd; k++) reader[opd_of(b.m, &b.m->body.v[i], k)] = i + 1;
  for (u32 i = 0; i < b.m->body.n; i++) {
    const instr *in = &b.m->body.v[i];
    if (in->op != OP_send || of_weight(&b, in)) continue;
    const u32 from = graph_on(&b, val_type(p, b.m, opd_of(b.m, in, 0))->g),
              to = graph_on(&b, val_type(p, b.m, in->res)->g);
    if (from == t->n || to == t->n || from == to) continue;
    const bool back = in->flags & INSTR_BACKWARD;
    bridge_of(&b, back ? to : from, back ? from : to)->bytes[back] +=
        plan_send_bytes(p, b.m, in) + around(&b, reader, in);
  }
  for (u32 k = 0; k < t->n + t->ninside; k++) {
    v[k].name = arena_strdup(a, v[k].name), v[k].strategy = arena_strdup(a, v[k].strategy);
    v[k].covers = arena_strdup(a, v[k].covers), v[k].devices = arena_strdup(a, v[k].devices);
  }
  *out = (plan_task_graphs){
      .n = t->n, .ninside = t->ninside, .nbridges = b.n, .v = v, .bridge = b.v, .nkinds = t->nkinds};
  out->nranks = t->nranks, out->of_rank = arena_dup(a, t->of_rank, t->nranks * sizeof *t->of_rank);
  out->less = arena_strdup(a, t->less);
  if (t->speed) out->speed = arena_dup(a, t->speed, t->nkinds * sizeof *t->speed);
  return out;
}
