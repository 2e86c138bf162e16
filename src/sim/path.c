// path.c - the critical path by instruction: what every one of them has to do with the makespan. How the path
// is found is in critical.c.
#include "sim/internal.h"
#include <stdlib.h>

enum { RECENT = 1024 };
typedef struct {
  const sim_graph *c;
  u32 node, cls, like, weight;
} recent_visit;

typedef struct {
  sim *s;
  recent_visit *recent; // by hash: a path visits the nodes of a layer again and again
  VEC(sim_step) step;   // last first
  VEC(sim_weight) weight;
  u32 **of; // by function and instruction, from 0: weight + 1; NULL: not on the path so far
  VEC(sim_like) like;
  hmap likes;
} path;

// Its number.
static u32 add_like(path *x, const sim_graph *c, u32 num, u32 cls, i64 dur) {
  sim *s = x->s;
  const func f = {c->tag};
  const priced *at = &s->priced.v[c->priced];
  const u32 ev = at->ev[num - 1];
  const u64 h = hash_step(hash_u64((u64)ev << 32 | cls, 13), (u64)dur);
  for (u32 it = 0, k; hmap_next(&x->likes, h, &it, &k);) {
    sim_like *l = &x->like.v[k];
    if (l->event != ev || l->cls != cls || l->dur_ps != dur) continue;
    l->count++;
    return k;
  }
  hmap_add(s->tmp, &x->likes, h, x->like.n);
  const group g = group_bind(func_get(s->p, f)->body.v[num - 1].g, at->g);
  *vec_push(s->a, &x->like) = (sim_like){f, num, cls, ev, g, dur, 1};
  return x->like.n - 1;
}

static u32 add_weight(path *x, func f, u32 num, u16 op, i64 dur) {
  u32 **of = &x->of[f.i];
  if (!*of) *of = ZNEWN(x->s->tmp, u32, func_get(x->s->p, f)->body.n);
  u32 *id = &(*of)[num - 1];
  if (!*id) {
    *vec_push(x->s->a, &x->weight) = (sim_weight){.op = op, .f = f, .instr = num};
    *id = x->weight.n;
  }
  x->weight.v[*id - 1].count++;
  x->weight.v[*id - 1].total_ps += dur;
  return *id - 1;
}

static void add_visit(void *arg, const sim_graph *c, u32 node, u32 cls, i64 start) {
  path *x = arg;
  sim *s = x->s;
  const func f = {c->tag};
  const u32 num = c->what[node];
  if (!num) return;
  if (s->o->steps) *vec_push(s->a, &x->step) = (sim_step){f, num, cls, start, c->dur[node]};
  recent_visit *known = &x->recent[(node * 31u + c->priced * 7u + cls) % RECENT];
  if (known->c == c && known->node == node && known->cls == cls) {
    if (s->intern) x->like.v[known->like].count++;
    x->weight.v[known->weight].count++, x->weight.v[known->weight].total_ps += c->dur[node];
    return;
  }
  *known = (recent_visit){.c = c, .node = node, .cls = cls};
  if (s->intern) known->like = add_like(x, c, num, cls, c->dur[node]);
  known->weight = add_weight(x, f, num, func_get(s->p, f)->body.v[num - 1].op, c->dur[node]);
}

static int by_total(const void *a, const void *b) {
  const sim_weight *x = a, *y = b;
  if (x->total_ps != y->total_ps) return x->total_ps < y->total_ps ? 1 : -1;
  if (x->f.i != y->f.i) return x->f.i < y->f.i ? -1 : 1;
  return x->instr < y->instr ? -1 : x->instr > y->instr;
}

void path_of(sim *s, const sim_graph *c, const i64 *x, sim_result *r) {
  arena_mark_t mark = arena_mark(s->tmp);
  path p = {.s = s, .of = ZNEWN(s->tmp, u32 *, s->p->funcs.n)};
  p.recent = ZNEWN(s->tmp, recent_visit, RECENT);
  arena *scratch = arena_new(); // the rows of p.of are made in between
  u32 port = 0;
  for (u32 k = 0; k < c->nclock; k++)
    if (x[c->port_out[k]] > x[c->port_out[port]]) port = k;
  i64 *in = ZNEWN(s->tmp, i64, c->nin);
  if (c->nclock) sim_critical(scratch, c, in, port, add_visit, &p);
  for (u32 k = 0; k < p.step.n / 2; k++) {
    sim_step t = p.step.v[k];
    p.step.v[k] = p.step.v[p.step.n - 1 - k];
    p.step.v[p.step.n - 1 - k] = t;
  }
  if (p.weight.n) qsort(p.weight.v, p.weight.n, sizeof *p.weight.v, by_total);
  r->critical = p.step.v;
  r->ncritical = p.step.n;
  r->weight = p.weight.v;
  r->nweights = p.weight.n;
  r->like = p.like.v;
  r->nlikes = p.like.n;
  if (s->intern) sum_up_origins(s, r);
  arena_free(scratch);
  arena_release(s->tmp, mark);
}
