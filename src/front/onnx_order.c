// onnx_order.c - the nodes of a graph in an order in which every name is made before it is read.
//
// Idea: ONNX demands such an order, but writers that edit graphs break it. A node is put out once the makers
// of all that it reads are: depth first, in the order of the file, so that a list that is in order stays as
// it is and a late maker moves up to just before its first reader. A maker that is met again while it waits
// closes a cycle.
#include "front/onnx.h"

enum { CYCLE_TOLD = 8 }; // so many nodes of a cycle are named

// What a subgraph defines hides what the list around it makes.
typedef struct inner inner;
struct inner {
  const inner *up;
  hmap own;
};

typedef VEC(u32) u32_vec;
typedef struct {
  imp *I;
  const onnx_node *node;
  hmap maker; // name to 1 + node
} list;

static u64 key_of(sym name) { return hash_u64(name.i, 4); }

static void reads_name(const list *l, sym name, const inner *in, u32_vec *out) {
  u32 maker = name.i ? hmap_get(&l->maker, key_of(name)) : 0;
  for (; in && maker; in = in->up)
    if (hmap_get(&in->own, key_of(name))) return;
  if (maker) *vec_push(l->I->a, out) = maker - 1;
}

// The nodes of the list whose outputs node n reads, itself or in its subgraphs.
static void reads(const list *l, const onnx_node *n, const inner *in, u32_vec *out) {
  for (u32 k = 0; k < n->in.n; k++) reads_name(l, n->in.v[k], in, out);
  for (u32 k = 0; k < n->at.n; k++) {
    const onnx_graph *g = n->at.v[k].g;
    if (!g) continue;
    inner own = {.up = in};
    arena *a = l->I->a;
    for (u32 i = 0; i < g->in.n; i++) hmap_add(a, &own.own, key_of(g->in.v[i].name), 1);
    for (u32 i = 0; i < g->init.n; i++) hmap_add(a, &own.own, key_of(g->init.v[i].name), 1);
    for (u32 i = 0; i < g->node.n; i++)
      for (u32 o = 0; o < g->node.v[i].out.n; o++) hmap_add(a, &own.own, key_of(g->node.v[i].out.v[o]), 1);
    for (u32 i = 0; i < g->node.n; i++) reads(l, &g->node.v[i], &own, out);
    for (u32 i = 0; i < g->out.n; i++) reads_name(l, g->out.v[i].name, &own, out);
  }
}

// A node that waits for the makers dep[next..] of what it reads.
typedef struct {
  u32 node, next;
  u32_vec dep;
} visit;
typedef VEC(visit) visits;

static void tell_cycle(imp *I, const onnx_node *v, const visit *on, u32 n) {
  strbuf text = {.a = I->a};
  ctx *c = I->f.c;
  for (u32 i = 0; i < n && i < CYCLE_TOLD; i++) {
    const onnx_node *m = &v[on[i].node];
    sb_fmt(&text, "%s%s -> %s", i ? ", " : "", sym_str(c, m->op), m->out.n ? sym_str(c, m->out.v[0]) : "");
  }
  if (n > CYCLE_TOLD) sb_fmt(&text, ", and %u more", n - CYCLE_TOLD);
  diag(c, E_ONNX_MODEL, onnx_node_loc(I, &v[on[0].node], ""), "a cycle: %s %s", sb_str(&text),
       n == 1 ? "reads its own output" : "need each other's outputs");
}

enum { IS_NEW, IS_WAITING, IS_OUT };

// The nodes in order of `out`; false after a diagnostic.
static bool order(const list *l, u32 n, u32 *out) {
  arena *a = l->I->a;
  u8 *state = ZNEWN(a, u8, n);
  u32 nout = 0;
  visits on = {0};
  for (u32 first = 0; first < n; first++) {
    u32 next = first;
    while (state[first] != IS_OUT) {
      if (state[next] == IS_NEW) {
        visit v = {.node = next};
        reads(l, &l->node[next], NULL, &v.dep);
        state[next] = IS_WAITING;
        *vec_push(a, &on) = v;
      }
      assert(on.n && on.v);
      visit *top = &on.v[on.n - 1];
      while (top->next < top->dep.n && state[top->dep.v[top->next]] == IS_OUT) top->next++;
      if (top->next == top->dep.n) {
        state[top->node] = IS_OUT, out[nout++] = top->node, on.n--;
        next = on.n ? on.v[on.n - 1].node : 0;
        continue;
      }
      next = top->dep.v[top->next];
      if (state[next] == IS_NEW) continue;
      u32 from = on.n - 1;
      while (on.v[from].node != next) from--;
      tell_cycle(l->I, l->node, on.v + from, on.n - from);
      return false;
    }
  }
  return true;
}

static bool sort_graph(imp *I, onnx_graph *g);

// given: names that are there before; a node that makes one anew (the importer tells) is no reason to wait.
static bool sort_nodes(imp *I, onnx_node *v, u32 n, const sym *given, u32 ngiven) {
  arena *a = I->a;
  list l = {.I = I, .node = v};
  hmap before = {0};
  for (u32 k = 0; k < ngiven; k++) hmap_add(a, &before, key_of(given[k]), 1);
  for (u32 i = 0; i < n; i++) {
    for (u32 k = 0; k < v[i].at.n; k++)
      if (v[i].at.v[k].g && !sort_graph(I, v[i].at.v[k].g)) return false;
    for (u32 o = 0; o < v[i].out.n; o++) {
      u64 key = key_of(v[i].out.v[o]);
      if (!hmap_get(&before, key) && !hmap_get(&l.maker, key)) hmap_add(a, &l.maker, key, i + 1);
    }
  }
  u32 *at = NEWN(a, u32, n), same = 0;
  if (!order(&l, n, at)) return false;
  while (same < n && at[same] == same) same++;
  if (same == n) return true;
  onnx_node *was = arena_dup(a, v, n * sizeof *v);
  for (u32 i = same; i < n; i++) v[i] = was[at[i]];
  return true;
}

static bool sort_graph(imp *I, onnx_graph *g) {
  VEC(sym) given = {0};
  for (u32 k = 0; k < g->in.n; k++) *vec_push(I->a, &given) = g->in.v[k].name;
  for (u32 k = 0; k < g->init.n; k++) *vec_push(I->a, &given) = g->init.v[k].name;
  return sort_nodes(I, g->node.v, g->node.n, given.v, given.n);
}

bool onnx_sort(imp *I) {
  for (u32 i = 0; i < I->m.function.n; i++) {
    onnx_function *f = &I->m.function.v[i];
    if (!sort_nodes(I, f->node.v, f->node.n, f->in.v, f->in.n)) return false;
  }
  return sort_graph(I, &I->m.graph);
}
