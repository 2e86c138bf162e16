// server.c - parameter servers: which rank a weight has as its server, its gradient on the way there, and what the
// update makes on the way back. Not the update (finish.c).
//
// Idea: an axis of STORAGE_SERVER has as many servers as coordinates, each of which serves a share of the weights.
// Weights are dealt out whole, the largest first, each to the server that has least so far: every rank has about as
// many bytes. Each server has a stream, so messages of different servers pass at once, and those of one follow each
// other.
#include "plan/main.h"
#include <stdlib.h>

typedef struct {
  u32 param;
  i64 bytes;
} served;

static int by_bytes(const void *x, const void *y) {
  const served *a = x, *b = y;
  return a->bytes != b->bytes  ? (a->bytes < b->bytes ? 1 : -1)
         : a->param < b->param ? -1
                               : a->param > b->param;
}

static bool over_axis_too(const main_build *mb, storage_kind what, u8 axis) {
  const plan *pn = mb->x->pn;
  for (u32 k = 0; k < pn->nstorage[what]; k++)
    if (mb->x->axis[pn->storage[what][k]] == axis) return true;
  return false;
}

// The first axis of servers that has all of the weight at every coordinate; 0: there is none. Weights and gradients in
// pieces have no server.
static u8 serving_axis(const main_build *mb, const mesh_param *w) {
  const plan *pn = mb->x->pn;
  const space *sp = mb->p->sp;
  const group_info *g = group_get(sp, w->g);
  for (u32 k = 0; k < pn->nstorage[STORAGE_SERVER]; k++) {
    const u8 axis = mb->x->axis[pn->storage[STORAGE_SERVER][k]];
    bool free = false;
    for (u32 i = 0; i < g->naxes; i++) free |= g->axis[i].axis == axis && g->axis[i].at == -1;
    if (!free || axis_size(sp, axis) < 2 || layout_split_of(sp, w->lay, axis)) continue;
    if (over_axis_too(mb, STORAGE_GRAD, axis) || over_axis_too(mb, STORAGE_WEIGHT, axis)) continue;
    return axis;
  }
  return 0;
}

static i64 most_load(const group_info *g, const i64 *load) {
  i64 most = 0;
  for (u32 k = 0; k < g->nranks; k++) most = MAX(most, load[g->ranks[k]]);
  return most;
}

void main_servers(main_build *mb) {
  const u32 np = mb->m->nparams;
  arena *a = mb->x->a;
  space *sp = mb->p->sp;
  mb->server = ZNEWN(a, server_of, np + 1);
  if (!mb->x->pn->nstorage[STORAGE_SERVER]) return;
  served *v = NEWN(a, served, np + 1);
  u32 n = 0, ranks = 0;
  for (u32 i = 0; i < np; i++) {
    if (mb->skip[i] || !main_trains(mb, i + 1)) continue;
    mb->server[i].axis = serving_axis(mb, &mb->home[i]);
    if (!mb->server[i].axis) continue;
    const group_info *g = group_get(sp, mb->home[i].g);
    for (u32 k = 0; k < g->nranks; k++) ranks = MAX(ranks, g->ranks[k] + 1);
    v[n++] = (served){i, shape_bytes(&val_type(mb->s, mb->m, i + 1)->s)};
  }
  qsort(v, n, sizeof *v, by_bytes);
  i64 *load = ZNEWN(a, i64, ranks + 1);
  for (u32 j = 0; j < n; j++) {
    server_of *s = &mb->server[v[j].param];
    const group all = mb->home[v[j].param].g;
    i64 least = -1;
    for (u32 at = 0; at < axis_size(sp, s->axis); at++) {
      const group g = group_fix(sp, all, s->axis, at);
      const i64 has = most_load(group_get(sp, g), load);
      if (least < 0 || has < least) least = has, s->g = g, s->at = at;
    }
    const group_info *g = group_get(sp, s->g);
    for (u32 k = 0; k < g->nranks; k++) load[g->ranks[k]] += v[j].bytes;
  }
}

// A rank pushes when its tasks have ended, as it sums over data ranks without servers: what it pushes is taken from the sums of its tasks on the
// compute stream, behind them.
static value rooted(main_build *mb, opcode op, const server_of *s, group g, value v, type to) {
  prog *p = mb->p;
  const attr at[3] = {attr_x(A_over, &s->axis, 1), attr_i(A_root, s->at), attr_i(A_server, 1)};
  const u8 strm = mb->b.strm;
  mb->b.g = g, mb->b.coord = 0, mb->b.flags = INSTR_PLAN;
  mb->b.strm = (u8)stream_of(p, sym_of(mb->s->c, arena_printf(mb->x->a, "server%u", s->at % SERVERS_MOST))).i;
  const value r = emit_res(p, mb->b.f, emit(&mb->b, op, attrs_of(p, at, 3), &v, 1, &to, 1));
  mb->b.strm = strm, mb->b.flags = 0;
  return r;
}

value main_push(main_build *mb, value w, value grad) {
  prog *p = mb->p;
  const server_of *s = &mb->server[w - 1];
  const mesh_param *home = &mb->home[w - 1];
  if (!s->axis) return grad;
  type_info t = *val_type(p, func_get(p, mb->b.f), grad);
  if (layout_split_of(p->sp, t.lay, s->axis)) { // in pieces, where nothing else wanted it whole
    mb->b.g = home->g, mb->b.coord = 0;
    grad = shard_convert(mb->x, &mb->b, grad, layout_without(p->sp, t.lay, s->axis), home->g);
    t = *val_type(p, func_get(p, mb->b.f), grad);
  }
  if (layout_part_of(p->sp, t.lay, s->axis) == RED_NONE)
    return main_on_group(mb, grad, s->g); // the same everywhere
  const type to = type_tensor(p, &t.s, layout_without(p->sp, t.lay, s->axis), s->g);
  return rooted(mb, OP_reduce, s, home->g, grad, to);
}

value main_pull(main_build *mb, value w, value updated) {
  prog *p = mb->p;
  const server_of *s = &mb->server[w - 1];
  const mesh_param *home = &mb->home[w - 1];
  if (!s->axis) return updated;
  const shape sh = val_type(mb->s, mb->m, w)->s;
  return rooted(mb, OP_broadcast, s, home->g, updated, type_tensor(p, &sh, home->lay, home->g));
}
