// path.c - the cheapest chain of communication steps from one layout to another, within a group. Costs are
// the caller's; which instructions carry the steps out is the planner's.
//
// Idea: a state gives every axis a role: replicated, partial, or one split. One step moves a set of axes that
// have the same role (all partial, or all splitting one dimension) to a common new role. Dijkstra over these
// states, made as they are reached, ends at the first cheapest way. What keeps the search small is that most
// axes cannot help: an axis that keeps a split stays put, and so does one that has arrived; one that stays
// replicated or partial is lent to the others, to hold pieces while they communicate, only if some step
// costs; strides are chosen, not searched. docs/design/layouts.md counts what this misses.
#include "layout/internal.h"
#include <math.h>

enum { REPLICATED, PARTIAL, SPLIT };
typedef struct {
  u8 kind, dim, red;
  u16 table;
  i64 stride;
} role;

enum { SLOT_BITS = 5, SLOTS = 1 << SLOT_BITS, NO_ROLE = SLOTS };
enum { LEND_BELOW = 4, STEPS_MAX = 1 << 14 }; // axes are lent while fewer move; steps of one search

// An axis that may change its role. Slots are the roles it can have; slot 0 is replicated.
typedef struct {
  u8 axis;
  u8 from, to, nslots;
  bool divides; // may split by a stride: all its positions are in the group
  bool lent;    // has the same role, replicated or partial, on both sides
  u32 size;
  role slot[SLOTS];
} mover;

typedef struct {
  u64 key; // slot of every mover, SLOT_BITS each
  double cost;
  u32 hops, prev;
  u16 moved; // movers of the step that arrived here
  u8 kind;   // its step_kind
  bool done;
} node;

typedef struct {
  u64 key;
  u32 round, node;
} cell;

// Kept in the space from call to call. A cell counts only in the round that wrote it, so nothing is cleared.
struct path_work {
  VEC(node) nodes;
  VEC(u32) heap;
  cell *cells;
  u32 ncells, round;
};

typedef struct {
  space *s;
  struct path_work *w;
  u32 nd;
  const i64 *dims;
  step_cost *cost_fn;
  void *arg;
  u32 n;
  mover m[MESH_AXES];
  layout_info fixed; // what keeps its role
  i64 elems;         // of a piece while no mover splits
  bool uneven;       // a table somewhere: pieces are measured, not divided
  bool crowded;      // a state may have more splits or parts than a layout can
  u64 target;
  double best; // cost and steps of the best way to the target so far
  u32 best_hops;
  u32 steps_left;
  // the state being expanded
  u32 at;
  u8 cur[MESH_AXES];
  u32 ways; // into which its movers split
  i64 in;   // its local elements
} search;

double step_cost_elements(void *arg, step_kind kind, const u8 *axes, u32 naxes, u32 n, i64 in_elems,
                          i64 out_elems) {
  (void)arg, (void)axes, (void)naxes;
  double in = (double)in_elems, moved = 0;
  switch (kind) {
  case STEP_SHARD:
  case STEP_PARTIAL: break;
  case STEP_ALL_GATHER: moved = in * (n - 1); break;
  case STEP_ALL_REDUCE: moved = 2 * in * (n - 1) / n; break;
  case STEP_REDUCE_SCATTER:
  case STEP_ALL_TO_ALL: moved = in * (n - 1) / n; break;
  case STEP_PERMUTE: moved = in; break;
  case STEP_EXCHANGE: moved = (double)out_elems; break;
  }
  return moved + 1;
}

// ---- roles -------------------------------------------------------------------------------------------

static bool same_role(role x, role y) {
  return x.kind == y.kind && x.dim == y.dim && x.red == y.red && x.table == y.table && x.stride == y.stride;
}

static u8 slot_for(mover *m, role r) {
  for (u8 i = 0; i < m->nslots; i++)
    if (same_role(m->slot[i], r)) return i;
  if (m->nslots == SLOTS) return NO_ROLE;
  m->slot[m->nslots] = r;
  return m->nslots++;
}

static role role_in(const space *s, layout l, u8 axis) {
  const lay_split *p = layout_split_of(s, l, axis);
  if (p) return (role){.kind = SPLIT, .dim = p->dim, .table = p->table, .stride = p->stride};
  reduction r = layout_part_of(s, l, axis);
  return r ? (role){.kind = PARTIAL, .red = (u8)r} : (role){.kind = REPLICATED};
}

static const role *role_of(const search *q, u32 i) { return &q->m[i].slot[q->cur[i]]; }

// Axes move together if this is the same: replicated, partial with one reduction, split of one dimension.
// Below 32, so that a word is a set of classes.
static u32 class_of(const role *r) { return r->kind | (u32)(r->kind == PARTIAL ? r->red : r->dim) << 2; }

#define REPLICATED_CLASS 1u
#define SPLIT_CLASSES    0x44444444u

static u64 key_with(u64 key, u32 i, u8 slot) {
  u32 at = i * SLOT_BITS;
  return (key & ~((u64)(SLOTS - 1) << at)) | (u64)slot << at;
}

static void decode(search *q, u64 key) {
  q->ways = 1;
  for (u32 i = 0; i < q->n; i++) {
    q->cur[i] = (u8)(key >> (i * SLOT_BITS) & (SLOTS - 1));
    if (role_of(q, i)->kind == SPLIT) q->ways *= q->m[i].size;
  }
}

static layout layout_at(search *q, u64 key) {
  layout_info x = q->fixed;
  decode(q, key);
  for (u32 i = 0; i < q->n; i++) {
    const role *r = role_of(q, i);
    if (r->kind == SPLIT)
      x.split[x.nsplit++] =
          (lay_split){.axis = q->m[i].axis, .dim = r->dim, .table = r->table, .stride = r->stride};
    else if (r->kind == PARTIAL)
      x.part[x.npart++] = (lay_part){q->m[i].axis, r->red};
  }
  return layout_of(q->s, &x);
}

// Has the state no more splits and parts than a layout can have?
static bool has_room(const search *q, u64 key) {
  u32 nsplit = q->fixed.nsplit, npart = q->fixed.npart;
  for (u32 i = 0; i < q->n; i++) {
    const role *r = &q->m[i].slot[key >> (i * SLOT_BITS) & (SLOTS - 1)];
    nsplit += r->kind == SPLIT;
    npart += r->kind == PARTIAL;
  }
  return nsplit <= LAY_SPLITS && npart <= LAY_PARTS;
}

// Elements of a piece, the largest if they differ, when the movers split into so many ways.
static i64 elems_at(const search *q, u64 key, u32 ways) {
  if (!q->uneven) return q->elems / ways;
  i64 ext[DIMS_MAX], n = 1;
  u32 share[DIMS_MAX];
  for (u32 d = 0; d < q->nd; d++) ext[d] = q->dims[d], share[d] = 1;
  for (u32 i = 0; i < q->fixed.nsplit; i++) {
    const lay_split *p = &q->fixed.split[i];
    if (p->table)
      ext[p->dim] = q->s->tables.v[p->table].longest;
    else
      share[p->dim] *= axis_size(q->s, p->axis);
  }
  for (u32 i = 0; i < q->n; i++) {
    const role *r = &q->m[i].slot[key >> (i * SLOT_BITS) & (SLOTS - 1)];
    if (r->kind != SPLIT) continue;
    if (r->table)
      ext[r->dim] = q->s->tables.v[r->table].longest;
    else
      share[r->dim] *= q->m[i].size;
  }
  for (u32 d = 0; d < q->nd; d++) n *= ceil_div(ext[d], share[d]);
  return n;
}

// ---- places for a split ------------------------------------------------------------------------------

typedef struct {
  u32 n;
  bool table;
  digit d[LAY_SPLITS + MESH_AXES];
} taken; // of one dimension

static bool take(taken *t, digit x) {
  u32 k = t->n;
  for (u32 i = 0; i < t->n; i++)
    if (!digits_nest(t->d[i], x)) return false;
  for (; k && t->d[k - 1].stride < x.stride; k--) t->d[k] = t->d[k - 1];
  t->d[k] = x;
  t->n++;
  return true;
}

static bool take_role(taken *t, const role *r, u32 size) {
  if (!r->table) return take(t, (digit){r->stride, size});
  bool first = !t->table;
  t->table = true;
  return first;
}

// The key of the state with the movers of `sub` splitting dimension d, or 0 if there is no place. With
// `final` a mover that ends there takes its final place; others take the most major one that is free, with
// `ahead` one that is not needed by others later. Strides and uneven pieces share a dimension only where both
// stay: what a rank holds would be very uneven.
static u64 place(search *q, u32 sub, u32 d, u64 key, bool final, bool ahead) {
  taken t = {.n = 0};
  u32 strangers = 0;
  bool passing = false; // something that will not stay is there
  for (u32 i = 0; i < q->fixed.nsplit; i++) {
    const lay_split *p = &q->fixed.split[i];
    if (p->dim != d) continue;
    const role r = {.table = p->table, .stride = p->stride};
    if (!take_role(&t, &r, axis_size(q->s, p->axis))) return 0;
  }
  for (u32 i = 0; i < q->n; i++) {
    const role *r = role_of(q, i);
    if (sub >> i & 1 || r->kind != SPLIT || r->dim != d) continue;
    if (!take_role(&t, r, q->m[i].size)) return 0;
    passing = passing || q->cur[i] != q->m[i].to;
  }
  for (u32 i = 0; i < q->n; i++) {
    const mover *m = &q->m[i];
    const role *r = &m->slot[m->to];
    bool ends_here = final && r->kind == SPLIT && r->dim == d;
    if (sub >> i & 1) {
      if (!ends_here)
        strangers |= 1u << i;
      else if (!take_role(&t, r, m->size))
        return 0;
      else
        key = key_with(key, i, m->to);
    }
  }
  if (t.table && t.n && passing) return 0;
  if (!strangers) return key;
  for (u32 i = 0; i < q->n; i++) { // nor beside pieces that are yet to come
    const mover *m = &q->m[i];
    const role *r = &m->slot[m->to];
    if (!(sub >> i & 1) && q->cur[i] != m->to && r->kind == SPLIT && r->dim == d && (ahead || r->table) &&
        !take_role(&t, r, m->size))
      return 0;
  }
  if (t.table) return 0;
  for (u32 i = 0; i < q->n; i++) {
    mover *m = &q->m[i];
    if (!(strangers >> i & 1)) continue;
    i64 stride = m->divides ? digits_next(t.d, t.n, q->dims[d], m->size) : 0;
    if (!stride || !take(&t, (digit){stride, m->size})) return 0;
    u8 slot = slot_for(m, (role){.kind = SPLIT, .dim = (u8)d, .stride = stride});
    if (slot == NO_ROLE) return 0;
    key = key_with(key, i, slot);
  }
  return key;
}

// ---- the queue ---------------------------------------------------------------------------------------

static bool nearer(const struct path_work *w, u32 x, u32 y) {
  const node *a = &w->nodes.v[x], *b = &w->nodes.v[y];
  if (a->cost != b->cost) return a->cost < b->cost;
  return a->hops != b->hops ? a->hops < b->hops : x < y;
}

// A node that got nearer is pushed again; it counts the first time it comes out.
static void queue_push(search *q, u32 x) {
  struct path_work *w = q->w;
  u32 i = w->heap.n;
  *vec_push(q->s->a, &w->heap) = x;
  for (; i && nearer(w, x, w->heap.v[(i - 1) / 2]); i = (i - 1) / 2) w->heap.v[i] = w->heap.v[(i - 1) / 2];
  w->heap.v[i] = x;
}

static u32 queue_pop(struct path_work *w) {
  u32 top = w->heap.v[0], last = w->heap.v[--w->heap.n], i = 0;
  for (u32 k; (k = 2 * i + 1) < w->heap.n; i = k) {
    if (k + 1 < w->heap.n && nearer(w, w->heap.v[k + 1], w->heap.v[k])) k++;
    if (!nearer(w, w->heap.v[k], last)) break;
    w->heap.v[i] = w->heap.v[k];
  }
  w->heap.v[i] = last;
  return top;
}

static cell *cell_for(struct path_work *w, u64 key) {
  u32 i = (u32)(hash_u64(key, 0) & (w->ncells - 1));
  while (w->cells[i].round == w->round && w->cells[i].key != key) i = (i + 1) & (w->ncells - 1);
  return &w->cells[i];
}

static void more_cells(search *q) {
  struct path_work *w = q->w;
  w->ncells = w->ncells ? 2 * w->ncells : 256;
  w->cells = ZNEWN(q->s->a, cell, w->ncells);
  w->round = 1;
  for (u32 i = 0; i < w->nodes.n; i++) *cell_for(w, w->nodes.v[i].key) = (cell){w->nodes.v[i].key, 1, i};
}

// The node of a state, new (cost INFINITY) if need be.
static node *node_for(search *q, u64 key) {
  struct path_work *w = q->w;
  cell *c = cell_for(w, key);
  if (c->round == w->round) return &w->nodes.v[c->node];
  if (2 * w->nodes.n >= w->ncells) {
    more_cells(q);
    c = cell_for(w, key);
  }
  *c = (cell){key, w->round, w->nodes.n};
  node *x = vec_push(q->s->a, &w->nodes);
  *x = (node){.key = key, .cost = INFINITY, .hops = UINT32_MAX};
  return x;
}

// ---- steps -------------------------------------------------------------------------------------------

// One step from the state being expanded: movers of `sub` go to the roles they have in `key`.
static void step(search *q, step_kind kind, u32 sub, u64 key) {
  u8 axes[MESH_AXES];
  u32 naxes = 0, n = 1, ways = 1;
  for (u32 i = 0; i < q->n; i++) {
    const mover *m = &q->m[i];
    if (sub >> i & 1) {
      axes[naxes++] = m->axis;
      n *= m->size;
    }
    if (m->slot[key >> (i * SLOT_BITS) & (SLOTS - 1)].kind == SPLIT) ways *= m->size;
  }
  q->steps_left -= q->steps_left > 0;
  if (q->crowded && !has_room(q, key)) return;
  const node *from = &q->w->nodes.v[q->at];
  double cost = q->cost_fn(q->arg, kind, axes, naxes, n, q->in, elems_at(q, key, ways));
  u32 hops = from->hops + 1;
  assert(cost >= 0);
  cost += from->cost;
  if (cost == INFINITY || cost > q->best || (cost == q->best && hops >= q->best_hops)) return;
  node *to = node_for(q, key);
  if (cost > to->cost || (cost == to->cost && hops >= to->hops)) return;
  to->cost = cost;
  to->hops = hops;
  to->prev = q->at;
  to->moved = (u16)sub;
  to->kind = (u8)kind;
  queue_push(q, (u32)(to - q->w->nodes.v));
  if (key == q->target) q->best = cost, q->best_hops = hops;
}

static u64 replicated(u64 key, u32 sub) {
  for (u32 i = 0; sub >> i; i++)
    if (sub >> i & 1) key = key_with(key, i, 0);
  return key;
}

// The classes in which the movers of `sub` end.
static u32 ends_of(const search *q, u32 sub) {
  u32 ends = 0;
  for (u32 i = 0; i < q->n; i++)
    if (sub >> i & 1) ends |= 1u << class_of(&q->m[i].slot[q->m[i].to]);
  return ends;
}

static u64 final_roles(const search *q, u32 sub, u64 key) {
  for (u32 i = 0; i < q->n; i++)
    if (sub >> i & 1) key = key_with(key, i, q->m[i].to);
  return key;
}

// Steps of `sub`, now in one class, to splits of the dimension in which its movers end (some may end
// replicated or partial). If none end in a split, or what others hold is in the way, then to somewhere else
// in that dimension and to the first other one that has room.
static void split_steps(search *q, step_kind kind, u32 sub, u32 class, u64 key) {
  u32 ends = ends_of(q, sub) & SPLIT_CLASSES;
  u64 to;
  if (ends & (ends - 1)) return;
  if (ends) {
    u32 d = (u32)__builtin_ctz(ends) >> 2;
    to = place(q, sub, d, key, true, false);
    if (to) {
      step(q, kind, sub, to);
      return;
    }
    to = place(q, sub, d, key, false, false);
    if (to && to != key) step(q, kind, sub, to);
  }
  for (int ahead = 1; ahead >= 0; ahead--)
    for (u32 d = 0; d < q->nd; d++)
      if (class != (SPLIT | d << 2) && (to = place(q, sub, d, key, false, ahead))) {
        step(q, kind, sub, to);
        return;
      }
}

// All steps of one set of movers in one class. `wrong`: the movers that have not arrived.
static void steps_of(search *q, u32 sub, u32 wrong, u32 class, u64 key) {
  u32 ends = ends_of(q, sub);
  switch (class & 3) {
  case REPLICATED:
    if (!(ends & (ends - 1)) && !(ends & (SPLIT_CLASSES | REPLICATED_CLASS)))
      step(q, STEP_PARTIAL, sub, final_roles(q, sub, key));
    split_steps(q, STEP_SHARD, sub, class, key);
    break;
  case PARTIAL:
    step(q, STEP_ALL_REDUCE, sub, replicated(key, sub));
    split_steps(q, STEP_REDUCE_SCATTER, sub, class, key);
    break;
  default: // a split that will be gathered goes elsewhere only to make room
    step(q, STEP_ALL_GATHER, sub, replicated(key, sub));
    if (ends & SPLIT_CLASSES || ends_of(q, wrong & ~sub) >> class & 1)
      split_steps(q, STEP_ALL_TO_ALL, sub, class, key);
  }
}

// Pieces change ranks, whole, where the roles that are wrong are the right ones of other movers.
static void permute_step(search *q, u64 key) {
  u32 set = 0, matched = 0, nset = 0;
  for (u32 i = 0; i < q->n; i++) {
    const mover *m = &q->m[i];
    if (q->cur[i] == m->to || role_of(q, i)->kind == PARTIAL || m->slot[m->to].kind == PARTIAL) continue;
    set |= 1u << i;
    nset++;
    key = key_with(key, i, m->to);
  }
  if (nset < 2) return;
  for (u32 i = 0; i < q->n; i++) {
    if (!(set >> i & 1)) continue;
    u32 k = 0;
    while (k < q->n && (!((set & ~matched) >> k & 1) || q->m[k].size != q->m[i].size ||
                        !same_role(*role_of(q, i), q->m[k].slot[q->m[k].to])))
      k++;
    if (k == q->n) return;
    matched |= 1u << k;
  }
  step(q, STEP_PERMUTE, set, key);
}

static void expand(search *q, u32 at) {
  u64 key = q->w->nodes.v[at].key;
  q->at = at;
  decode(q, key);
  q->in = elems_at(q, key, q->ways);
  u32 wrong = 0, lent = 0;
  for (u32 i = 0; i < q->n; i++) {
    wrong |= (u32)(q->cur[i] != q->m[i].to) << i;
    lent |= (u32)q->m[i].lent << i;
  }
  for (u32 left = wrong | lent; left;) {
    u32 class = class_of(role_of(q, (u32)__builtin_ctz(left))), set = 0;
    for (u32 i = 0; i < q->n; i++)
      if (left >> i & 1 && class_of(role_of(q, i)) == class) set |= 1u << i;
    left &= ~set;
    for (u32 sub = -set & set; sub; sub = (sub - set) & set) steps_of(q, sub, wrong, class, key);
  }
  permute_step(q, key);
}

// ---- the search --------------------------------------------------------------------------------------

static void start(search *q, u64 from) {
  struct path_work *w = q->w;
  w->nodes.n = w->heap.n = 0;
  if (!++w->round || !w->ncells) more_cells(q);
  q->best = INFINITY;
  q->best_hops = UINT32_MAX;
  q->steps_left = STEPS_MAX;
  node *x = node_for(q, from);
  x->cost = 0;
  x->hops = 0;
}

// The node of the target, or 0. It is at the end of the cheapest way unless steps_left is 0.
static u32 dijkstra(search *q, u64 from) {
  struct path_work *w = q->w;
  start(q, from);
  queue_push(q, 0);
  while (w->heap.n && q->steps_left) {
    u32 x = queue_pop(w);
    if (w->nodes.v[x].done) continue;
    w->nodes.v[x].done = true;
    if (w->nodes.v[x].key == q->target) return x;
    expand(q, x);
  }
  return q->best < INFINITY ? (u32)(node_for(q, q->target) - w->nodes.v) : 0;
}

// Movers with a wrong role that are not replicated (now, or in the end): the first, and all of its class.
static u32 wrong_class(const search *q, bool now, u32 *class) {
  u32 set = 0;
  for (u32 i = 0; i < q->n; i++) {
    const role *r = now ? role_of(q, i) : &q->m[i].slot[q->m[i].to];
    if (q->cur[i] == q->m[i].to || r->kind == REPLICATED || (set && class_of(r) != *class)) continue;
    *class = class_of(r);
    set |= 1u << i;
  }
  return set;
}

// The way through replication, class by class: no way that a search has to give up on may be dearer.
static u32 plain_way(search *q, u64 from) {
  start(q, from);
  for (u32 x = 0; x < q->w->nodes.n; x++) {
    u64 key = q->w->nodes.v[x].key;
    if (key == q->target) return x;
    q->at = x;
    decode(q, key);
    q->in = elems_at(q, key, q->ways);
    u32 class = 0, set = wrong_class(q, true, &class);
    if (set) {
      step(q, (class & 3) == PARTIAL ? STEP_ALL_REDUCE : STEP_ALL_GATHER, set, replicated(key, set));
      continue;
    }
    set = wrong_class(q, false, &class);
    assert(set); // else it were the target
    step(q, (class & 3) == PARTIAL ? STEP_PARTIAL : STEP_SHARD, set, final_roles(q, set, key));
  }
  return 0;
}

// ---- from layouts to states and back -----------------------------------------------------------------

static u64 axes_of(const layout_info *x) {
  u64 set = 0;
  for (u32 i = 0; i < x->nsplit; i++) set |= 1ull << x->split[i].axis;
  for (u32 i = 0; i < x->npart; i++) set |= 1ull << x->part[i].axis;
  return set;
}

static void add_mover(search *q, group g, u8 axis, role from, role to) {
  mover *m = &q->m[q->n++];
  m->axis = axis;
  m->size = group_axis_size(q->s, g, axis);
  m->divides = m->size == axis_size(q->s, axis);
  m->nslots = 0;
  slot_for(m, (role){.kind = REPLICATED});
  m->from = slot_for(m, from);
  m->to = slot_for(m, to);
  m->lent = m->from == m->to;
}

// The axes that steps can move: free in the group, in mesh order; in group 0 those that the layouts name.
static u32 free_axes(const space *s, group g, u64 named, u8 *axis) {
  const group_info *gi = group_get(s, g);
  u32 n = 0;
  for (u32 i = 0; i < gi->naxes; i++)
    if (group_axis_size(s, g, gi->axis[i].axis) > 1) axis[n++] = gi->axis[i].axis;
  for (u64 rest = g.i ? 0 : named; rest; rest &= rest - 1)
    if (group_has_axis(s, g, (u8)__builtin_ctzll(rest))) axis[n++] = (u8)__builtin_ctzll(rest);
  return n;
}

// Fills q->m and q->fixed. False if an axis changes that no step can move, or too many do (in group 0 only).
static bool find_movers(search *q, group g, layout from, layout to) {
  const space *s = q->s;
  const layout_info *x = layout_get(s, from), *y = layout_get(s, to);
  u64 named = axes_of(x) | axes_of(y), change = 0, move;
  u8 axis[AXES_MAX];
  u32 n = free_axes(s, g, named, axis), movers = 0;
  bool paid = false; // some step costs: only then is it worth to lend axes
  for (u64 rest = named; rest; rest &= rest - 1) {
    u8 a = (u8)__builtin_ctzll(rest);
    role was = role_in(s, from, a);
    if (same_role(was, role_in(s, to, a))) continue;
    if (!group_has_axis(s, g, a) || ++movers > MESH_AXES) return false;
    change |= 1ull << a;
    paid = paid || was.kind != REPLICATED;
  }
  move = change;
  for (u32 k = n; k-- > 0 && paid && movers < LEND_BELOW;) { // minor axes first: they join neighbours
    role r = role_in(s, from, axis[k]);
    bool divides = group_axis_size(s, g, axis[k]) == axis_size(s, axis[k]);
    if (change >> axis[k] & 1 || r.kind == SPLIT || !divides) continue;
    move |= 1ull << axis[k];
    movers++;
  }
  for (u32 k = 0; k < n; k++)
    if (move >> axis[k] & 1) add_mover(q, g, axis[k], role_in(s, from, axis[k]), role_in(s, to, axis[k]));
  q->fixed.nsplit = q->fixed.npart = 0;
  for (u32 i = 0; i < x->nsplit; i++)
    if (!(move >> x->split[i].axis & 1)) q->fixed.split[q->fixed.nsplit++] = x->split[i];
  for (u32 i = 0; i < x->npart; i++)
    if (!(move >> x->part[i].axis & 1)) q->fixed.part[q->fixed.npart++] = x->part[i];
  return true;
}

// The step that arrived at node x, which comes from the state `before`.
static void write_step(search *q, u64 before, const node *x, layout_step *to) {
  i64 stride[MESH_AXES];
  to->kind = (step_kind)x->kind;
  to->to = layout_at(q, x->key);
  to->naxes = 0;
  for (u32 i = 0; i < q->n; i++) {
    if (!(x->moved >> i & 1)) continue;
    const role *old = &q->m[i].slot[before >> (i * SLOT_BITS) & (SLOTS - 1)], *new = role_of(q, i);
    i64 mine = x->kind == STEP_PERMUTE ? 0 : old->kind == SPLIT ? old->stride : new->stride;
    u32 k = to->naxes++;
    for (; k && stride[k - 1] < mine; k--) stride[k] = stride[k - 1], to->axis[k] = to->axis[k - 1];
    stride[k] = mine;
    to->axis[k] = q->m[i].axis;
  }
}

int layout_path(space *s, group g, u32 nd, const i64 *dims, layout from, layout to, step_cost *cost_fn,
                void *arg, layout_step *steps, u32 cap, double *cost) {
  *cost = 0;
  if (from.i == to.i) return 0;
  if (!layout_fits(s, from, nd, dims) || !layout_fits(s, to, nd, dims)) return -1;
  if (!s->path) s->path = NEW(s->a, struct path_work);
  search q;
  q.s = s, q.w = s->path, q.nd = nd, q.dims = dims, q.cost_fn = cost_fn, q.arg = arg, q.n = 0;
  if (!find_movers(&q, g, from, to)) return -1;
  q.uneven = !layout_is_even(s, from) || !layout_is_even(s, to);
  q.crowded = q.fixed.nsplit + q.n > LAY_SPLITS || q.fixed.npart + q.n > LAY_PARTS;
  q.elems = 1;
  for (u32 d = 0; d < nd; d++) q.elems *= dims[d];
  for (u32 i = 0; i < q.fixed.nsplit; i++) q.elems /= axis_size(s, q.fixed.split[i].axis);
  u64 key = 0;
  q.target = 0;
  for (u32 i = 0; i < q.n; i++) {
    key = key_with(key, i, q.m[i].from);
    q.target = key_with(q.target, i, q.m[i].to);
  }
  u32 end = dijkstra(&q, key);
  if (!q.steps_left) {
    double found = q.best;
    end = plain_way(&q, key);
    if (!end || found <= q.best) end = dijkstra(&q, key);
  }
  if (!end) return -1;
  const node *v = q.w->nodes.v;
  u32 n = v[end].hops;
  if (n > cap) return -1;
  *cost = v[end].cost;
  for (u32 i = n, x = end; i-- > 0; x = v[x].prev) write_step(&q, v[v[x].prev].key, &v[x], &steps[i]);
  return (int)n;
}
