// split.c - what the time of all ranks consists of: by kind of work, by collective and axes.
//
// Idea: how often the event graph of a function runs follows from those that call it; within one run every
// node counts once. So a program of a million executed instructions costs its distinct event graphs. A call
// that is the update, or computes again, makes that of all that it calls.
#include "sim/internal.h"

enum { PASSED_ON = INSTR_UPDATE | INSTR_RECOMPUTE };

typedef struct {
  const sim_graph *c;
  u8 flags; // of the calls around
  double runs;
} visit;
typedef struct {
  sim *s;
  sim_result *r;
  VEC(visit) visits; // callees before callers
  hmap map;
  VEC(sim_split) rows;
  VEC(cost_work) work; // by function and instruction, WORK_KINDS: not known yet
  u32 *first;          // of a function, in work, + 1
} splitter;

static const instr *instr_at(const splitter *x, const sim_graph *c, u32 node) {
  return &func_get(x->s->p, (func){c->tag})->body.v[c->what[node] - 1];
}

static visit *find(splitter *x, const sim_graph *c, u8 flags) {
  const u64 h = hash_u64((u64)c->tag << 32 | c->priced, flags);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);) {
    assert(x->visits.v);
    if (x->visits.v[i].c == c && x->visits.v[i].flags == flags) return &x->visits.v[i];
  }
  return NULL;
}

static u8 flags_inside(const splitter *x, const sim_graph *c, u32 node, u8 flags) {
  return (u8)((flags | instr_at(x, c, node)->flags) & PASSED_ON);
}

static void order(splitter *x, const sim_graph *c, u8 flags) {
  if (find(x, c, flags)) return;
  for (u32 i = 0; i < c->n; i++)
    if (c->dur[i] < 0) order(x, c->site[~c->dur[i]].sub, flags_inside(x, c, i, flags));
  hmap_add(x->s->tmp, &x->map, hash_u64((u64)c->tag << 32 | c->priced, flags), x->visits.n);
  *vec_push(x->s->tmp, &x->visits) = (visit){c, flags, 0};
}

// ---- rows ---------------------------------------------------------------------------------------------
static cost_work work_at(splitter *x, func f, u32 num) {
  const func_info *fi = func_get(x->s->p, f);
  if (!x->first[f.i]) {
    x->first[f.i] = x->work.n + 1;
    cost_work *w = vec_push_n(x->s->tmp, &x->work, fi->body.n);
    for (u32 k = 0; k < fi->body.n; k++) w[k] = WORK_KINDS;
  }
  cost_work *w = &x->work.v[x->first[f.i] - 1 + num - 1];
  if (*w == WORK_KINDS) *w = cost_work_of(x->s->c, x->s->tmp, x->s->p, fi, &fi->body.v[num - 1]);
  return *w;
}

static const char *axes_text(splitter *x, const instr *i, group g) {
  u8 axes[MESH_AXES];
  strbuf b = {.a = x->s->a};
  const u32 n = i->op == OP_send ? 0 : cost_axes(x->s->p, i, g, axes);
  for (u32 k = 0; k < n; k++)
    sb_fmt(&b, "%s%s", k ? "," : "", sym_str(x->s->c, axis_get(x->s->p->sp, axes[k])->name));
  return sb_str(&b);
}

static sim_split *row_of(splitter *x, const sim_graph *c, u32 node, u8 flags) {
  const instr *i = instr_at(x, c, node);
  sim_split want = {.kind = SPLIT_COMPUTE, .over = "", .beside = i->strm != 0};
  flags |= i->flags;
  if (op_row_of(i->op)->flags & OPF_COMM) {
    want.kind = SPLIT_COMM, want.op = i->op;
    want.over = axes_text(x, i, group_bind(i->g, x->s->priced.v[c->priced].g));
  } else if (flags & INSTR_UPDATE)
    want.kind = SPLIT_UPDATE;
  else if (flags & INSTR_RECOMPUTE)
    want.kind = SPLIT_RECOMPUTE;
  else
    want.work = work_at(x, (func){c->tag}, c->what[node]);
  for (u32 k = 0; k < x->rows.n; k++) {
    sim_split *r = &x->rows.v[k];
    if (r->kind == want.kind && r->work == want.work && r->op == want.op && r->beside == want.beside &&
        !strcmp(r->over, want.over))
      return r;
  }
  sim_split *made = vec_push(x->s->a, &x->rows);
  *made = want;
  return made;
}

static void add_node(splitter *x, const visit *v, u32 node) {
  const sim_graph *c = v->c;
  double ranks = 0;
  if (!c->what[node] || !c->dur[node]) return;
  for (u32 k = c->occ[node]; k < c->in[node]; k++)
    ranks += x->r->cls[c->clock_class[c->slot_clock[c->ref[k]] - 1]].nranks;
  row_of(x, c, node, v->flags)->ps += v->runs * ranks * (double)c->dur[node] / x->s->nranks;
}

void split_time(sim *s, const sim_graph *main, sim_result *r) {
  splitter x = {.s = s, .r = r};
  x.first = ZNEWN(s->tmp, u32, s->p->funcs.n);
  order(&x, main, 0);
  x.visits.v[x.visits.n - 1].runs = 1;
  for (u32 k = x.visits.n; k-- > 0;) {
    const visit v = x.visits.v[k];
    for (u32 i = 0; i < v.c->n; i++)
      if (v.c->dur[i] < 0)
        find(&x, v.c->site[~v.c->dur[i]].sub, flags_inside(&x, v.c, i, v.flags))->runs += v.runs;
      else
        add_node(&x, &v, i);
  }
  r->split = x.rows.v;
  r->nsplit = x.rows.n;
}
