// space.c - axes, meshes and groups: which ranks there are and what they are called. Knows no tensors.
//
// Idea: the members of a group are numbered like the cells of an array, one dimension per axis of the mesh,
// so coordinates, subgroups and leads are sums of position * step, without tables. Groups are interned: equal
// restrictions of one mesh have equal ids.
#include "layout/internal.h"
#include <stdlib.h>

enum { RANKS_MAX = 1 << 22 };

space *space_new(ctx *c, arena *a) {
  space *s = NEW(a, space);
  s->c = c;
  s->a = a;
  *vec_push(a, &s->meshes) = (mesh_info){0};
  *vec_push(a, &s->mesh_order) = NULL;
  *vec_push(a, &s->groups) = (group_info){0};
  memset(vec_push(a, &s->group_dims), 0, sizeof(struct group_dims));
  *vec_push(a, &s->layouts) = (layout_info){0};
  *vec_push(a, &s->tables) = (pieces_info){0};
  return s;
}

// ---- copies ------------------------------------------------------------------------------------------

static hmap map_clone(const hmap *m, arena *a) {
  hmap q = *m;
  q.hash = arena_dup(a, m->hash, m->cap * sizeof *m->hash);
  q.val = arena_dup(a, m->val, m->cap * sizeof *m->val);
  return q;
}

#define VEC_CLONE(a, to, from)                                                                               \
  ((to)->v = arena_dup(a, (from)->v, (from)->n * sizeof *(from)->v), (to)->n = (to)->cap = (from)->n)

// Symbols are of one session: in another one they have other ids.
static sym moved(const space *s, ctx *c, sym x) { return c == s->c ? x : sym_of(c, sym_str(s->c, x)); }

space *space_clone(const space *s, ctx *c, arena *a) {
  space *q = NEW(a, space);
  *q = *s;
  q->c = c;
  q->a = a;
  q->path = NULL;
  for (u32 i = 1; i <= q->naxes; i++) q->axis[i].name = moved(s, c, s->axis[i].name);
  VEC_CLONE(a, &q->aliases, &s->aliases);
  for (u32 i = 0; i < q->aliases.n; i++) q->aliases.v[i].name = moved(s, c, s->aliases.v[i].name);
  VEC_CLONE(a, &q->meshes, &s->meshes);
  VEC_CLONE(a, &q->mesh_order, &s->mesh_order);
  for (u32 i = 0; i < q->meshes.n; i++) {
    mesh_info *m = &q->meshes.v[i];
    size_t bytes = m->nranks * sizeof(u32);
    m->name = moved(s, c, m->name);
    if (m->ranks) m->ranks = arena_dup(a, m->ranks, bytes);
    if (q->mesh_order.v[i]) q->mesh_order.v[i] = arena_dup(a, q->mesh_order.v[i], bytes);
  }
  VEC_CLONE(a, &q->groups, &s->groups);
  VEC_CLONE(a, &q->group_dims, &s->group_dims);
  for (u32 i = 0; i < q->groups.n; i++) {
    group_info *g = &q->groups.v[i];
    g->ranks = arena_dup(a, g->ranks, g->nranks * sizeof(u32));
    for (u32 k = 0; k < g->naxes; k++)
      g->axis[k].only = arena_dup(a, g->axis[k].only, g->axis[k].nonly * sizeof(u32));
  }
  for (u32 i = 1; i <= q->naxes; i++)
    q->axis[i].part = arena_dup(a, s->axis[i].part, s->axis[i].nparts * sizeof(u32));
  VEC_CLONE(a, &q->layouts, &s->layouts);
  VEC_CLONE(a, &q->tables, &s->tables);
  for (u32 i = 1; i < q->tables.n; i++) {
    pieces_info *t = &q->tables.v[i];
    t->bound = arena_dup(a, t->bound, 2 * t->begin[t->npieces] * sizeof(i64));
    t->begin = arena_dup(a, t->begin, (t->npieces + 1) * sizeof(u32));
  }
  q->group_map = map_clone(&s->group_map, a);
  q->layout_map = map_clone(&s->layout_map, a);
  q->table_map = map_clone(&s->table_map, a);
  q->spread_map = map_clone(&s->spread_map, a);
  q->tile_map = map_clone(&s->tile_map, a);
  VEC_CLONE(a, &q->tiles, &s->tiles);
  return q;
}

// ---- axes --------------------------------------------------------------------------------------------

static bool name_taken(const space *s, sym name) {
  u8 one[MESH_AXES];
  return axis_expand(s, name, one, MESH_AXES) > 0;
}

u8 axis_add(space *s, sym name, u32 size, bool temporal) {
  if (name_taken(s, name)) {
    diag(s->c, E_NAME, (loc){0}, "axis '%s' is defined twice", sym_str(s->c, name));
    return 0;
  }
  if (size == 0 || size > UINT16_MAX) {
    diag(s->c, E_LIMIT, (loc){0}, "axis '%s' has %u positions; 1 to %u are possible", sym_str(s->c, name),
         size, UINT16_MAX);
    return 0;
  }
  if (s->naxes + 1 == AXES_MAX) {
    diag(s->c, E_LIMIT, (loc){0}, "axis '%s' is one too many: a program has at most %u axes",
         sym_str(s->c, name), AXES_MAX - 1);
    return 0;
  }
  s->axis[++s->naxes] = (axis_info){.name = name, .size = size, .temporal = temporal};
  return (u8)s->naxes;
}

void axis_in_parts(space *s, u8 axis, const u32 *part, u32 n) {
  s->axis[axis].nparts = n;
  s->axis[axis].part = arena_dup(s->a, part, n * sizeof *part);
}

u8 axis_find(const space *s, sym name) {
  for (u32 i = 1; i <= s->naxes; i++)
    if (s->axis[i].name.i == name.i) return (u8)i;
  return 0;
}

const axis_info *axis_get(const space *s, u8 axis) {
  assert(axis && axis <= s->naxes);
  return &s->axis[axis];
}

u32 axis_count(const space *s) { return s->naxes; }

bool axis_alias(space *s, sym name, const u8 *axes, u32 n) {
  if (name_taken(s, name)) {
    diag(s->c, E_NAME, (loc){0}, "axis '%s' is defined twice", sym_str(s->c, name));
    return false;
  }
  if (n == 0 || n > MESH_AXES) {
    diag(s->c, E_LIMIT, (loc){0}, "axis '%s' is a product of %u axes; 1 to %u are possible",
         sym_str(s->c, name), n, MESH_AXES);
    return false;
  }
  u64 seen = 0;
  for (u32 i = 0; i < n; seen |= 1ull << axes[i++])
    if (seen >> axes[i] & 1) {
      diag(s->c, E_NAME, (loc){0}, "axis '%s' has '%s' as a factor twice", sym_str(s->c, name),
           sym_str(s->c, axis_get(s, axes[i])->name));
      return false;
    }
  vec_reserve(s->a, &s->aliases, s->aliases.n + 1);
  s->aliases.v[s->aliases.n].name = name;
  s->aliases.v[s->aliases.n].n = n;
  memcpy(s->aliases.v[s->aliases.n++].axis, axes, n);
  return true;
}

u32 axis_expand(const space *s, sym name, u8 *axes, u32 cap) {
  u8 one = axis_find(s, name);
  if (one) {
    if (cap) axes[0] = one;
    return 1;
  }
  for (u32 i = 0; i < s->aliases.n; i++)
    if (s->aliases.v[i].name.i == name.i) {
      memcpy(axes, s->aliases.v[i].axis, MIN(cap, s->aliases.v[i].n));
      return s->aliases.v[i].n;
    }
  return 0;
}

// ---- meshes ------------------------------------------------------------------------------------------

static int by_value(const void *x, const void *y) {
  u64 a = *(const u64 *)x, b = *(const u64 *)y;
  return (a > b) - (a < b);
}

// Positions of a mesh by ascending rank. NULL and a diagnostic if a rank occurs twice.
static u32 *rank_order(space *s, sym name, const u32 *ranks, u32 n) {
  u32 *order = NEWN(s->a, u32, n), twice = 0;
  arena_mark_t mark = arena_mark(s->a);
  u64 *key = NEWN(s->a, u64, n);
  for (u32 i = 0; i < n; i++) key[i] = (u64)ranks[i] << 32 | i;
  qsort(key, n, sizeof *key, by_value);
  for (u32 i = 0; i < n; i++) {
    order[i] = (u32)key[i];
    if (i && ranks[order[i]] == ranks[order[i - 1]]) twice = i;
  }
  arena_release(s->a, mark);
  if (!twice) return order;
  diag(s->c, E_GROUP, (loc){0}, "mesh @%s: rank %u is at position %u and at position %u", sym_str(s->c, name),
       ranks[order[twice]], order[twice - 1], order[twice]);
  return NULL;
}

static bool mesh_axes_ok(space *s, sym name, const u8 *axes, u32 naxes, u32 *nranks) {
  const char *mesh_name = sym_str(s->c, name);
  if (naxes > MESH_AXES) {
    diag(s->c, E_LIMIT, (loc){0}, "mesh @%s has %u axes; at most %u are possible", mesh_name, naxes,
         MESH_AXES);
    return false;
  }
  u64 seen = 0, n = 1;
  for (u32 i = 0; i < naxes; seen |= 1ull << axes[i++]) {
    const axis_info *x = axis_get(s, axes[i]);
    const char *axis_name = sym_str(s->c, x->name);
    if (seen >> axes[i] & 1) {
      diag(s->c, E_NAME, (loc){0}, "mesh @%s has axis '%s' twice", mesh_name, axis_name);
      return false;
    }
    if (x->temporal) {
      diag(s->c, E_GROUP, (loc){0}, "mesh @%s: axis '%s' lies in time, not across ranks", mesh_name,
           axis_name);
      return false;
    }
    n *= x->size;
    if (n > RANKS_MAX) {
      diag(s->c, E_LIMIT, (loc){0}, "mesh @%s has more than %u ranks", mesh_name, RANKS_MAX);
      return false;
    }
  }
  *nranks = (u32)n;
  return true;
}

mesh mesh_add(space *s, sym name, const u8 *axes, u32 naxes, u32 first, const u32 *ranks) {
  mesh_info m = {.name = name, .naxes = naxes, .first = first};
  u32 *order = NULL;
  if (mesh_find(s, name).i) {
    diag(s->c, E_NAME, (loc){0}, "mesh @%s is defined twice", sym_str(s->c, name));
    return (mesh){0};
  }
  if (!mesh_axes_ok(s, name, axes, naxes, &m.nranks)) return (mesh){0};
  if (ranks) {
    m.first = ranks[0];
    for (u32 i = 0; i < m.nranks && !m.ranks; i++)
      if (ranks[i] != m.first + i) m.ranks = arena_dup(s->a, ranks, m.nranks * sizeof *ranks);
    if (m.ranks && !(order = rank_order(s, name, ranks, m.nranks))) return (mesh){0};
  }
  if (naxes) memcpy(m.axis, axes, naxes);
  *vec_push(s->a, &s->meshes) = m;
  *vec_push(s->a, &s->mesh_order) = order;
  return (mesh){s->meshes.n - 1};
}

mesh mesh_find(const space *s, sym name) {
  for (u32 i = 1; i < s->meshes.n; i++)
    if (s->meshes.v[i].name.i == name.i) return (mesh){i};
  return (mesh){0};
}

const mesh_info *mesh_get(const space *s, mesh m) {
  assert(m.i < s->meshes.n);
  return &s->meshes.v[m.i];
}

u32 mesh_count(const space *s) { return s->meshes.n - 1; }
u32 mesh_ranks(const space *s) {
  u32 n = 0;
  for (u32 k = 1; k <= mesh_count(s); k++) {
    const mesh_info *m = mesh_get(s, (mesh){k});
    for (u32 j = 0; m->ranks && j < m->nranks; j++) n = MAX(n, m->ranks[j] + 1);
    if (!m->ranks) n = MAX(n, m->first + m->nranks);
  }
  return n;
}

// The position of a rank in its mesh, -1 if it is not there.
static i64 mesh_position(const space *s, mesh m, u32 rank) {
  const mesh_info *x = mesh_get(s, m);
  if (!x->ranks) return rank >= x->first && rank - x->first < x->nranks ? (i64)(rank - x->first) : -1;
  const u32 *order = s->mesh_order.v[m.i];
  u32 lo = 0, hi = x->nranks;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (x->ranks[order[mid]] < rank)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < x->nranks && x->ranks[order[lo]] == rank ? (i64)order[lo] : -1;
}

// ---- groups: interning -------------------------------------------------------------------------------

// The first of these positions that occurs twice, or -1. All are below size.
static i64 listed_twice(space *s, const u32 *only, u32 n, u32 size) {
  i64 twice = -1;
  arena_mark_t mark = arena_mark(s->a);
  bool *seen = ZNEWN(s->a, bool, size);
  for (u32 i = 0; i < n && twice < 0; i++) {
    if (seen[only[i]]) twice = only[i];
    seen[only[i]] = true;
  }
  arena_release(s->a, mark);
  return twice;
}

// One entry of the caller's list into the canonical form: one position is fixed, all in order are free.
static bool restrict_axis(space *s, mesh m, group_axis *to, const group_axis *by) {
  u32 size = s->axis[by->axis].size, n = by->at == -2 ? by->nonly : 0;
  i64 past = by->at >= (int)size ? by->at : -1, twice = -1;
  bool in_order = n == size;
  for (u32 i = 0; i < n; i++) {
    if (by->only[i] >= size) past = by->only[i];
    in_order = in_order && by->only[i] == i;
  }
  if (n > 1 && past < 0 && !in_order) twice = listed_twice(s, by->only, n, size);
  if (past < 0 && twice < 0 && (by->at != -2 || n)) {
    *to = (group_axis){.axis = by->axis, .at = -1};
    if (n == 1 || by->at >= 0)
      to->at = n ? (int)by->only[0] : by->at;
    else if (n && !in_order)
      *to = *by;
    return true;
  }
  const char *axis_name = sym_str(s->c, s->axis[by->axis].name),
             *mesh_name = sym_str(s->c, mesh_get(s, m)->name);
  if (past >= 0)
    diag(s->c, E_GROUP, (loc){0}, "group of @%s: axis '%s' has positions 0 to %u, not %lld", mesh_name,
         axis_name, size - 1, (long long)past);
  else if (twice >= 0)
    diag(s->c, E_GROUP, (loc){0}, "group of @%s: position %lld of axis '%s' is listed twice", mesh_name,
         (long long)twice, axis_name);
  else
    diag(s->c, E_GROUP, (loc){0}, "group of @%s: no position of axis '%s' is left", mesh_name, axis_name);
  return false;
}

static bool same_axes(const group_axis *x, const group_axis *y, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (x[i].at != y[i].at || x[i].nonly != y[i].nonly) return false;
    if (x[i].nonly && memcmp(x[i].only, y[i].only, x[i].nonly * sizeof(u32)) != 0) return false;
  }
  return true;
}

static group group_insert(space *s, mesh m, const group_axis *axis, u32 naxes, u64 hash) {
  const mesh_info *x = mesh_get(s, m);
  group_info g = {.m = m, .naxes = naxes, .nranks = 1};
  struct group_dims d;
  u32 mesh_step[MESH_AXES];
  memset(&d, 0, sizeof d);
  memset(d.slot, NO_SLOT, sizeof d.slot);
  for (u32 i = naxes, ms = 1; i-- > 0; ms *= s->axis[x->axis[i]].size) {
    g.axis[i] = axis[i];
    if (axis[i].nonly) g.axis[i].only = arena_dup(s->a, axis[i].only, axis[i].nonly * sizeof(u32));
    d.slot[axis[i].axis] = (u8)i;
    d.size[i] = axis[i].at >= 0 ? 1 : axis[i].nonly ? axis[i].nonly : s->axis[axis[i].axis].size;
    d.step[i] = g.nranks;
    mesh_step[i] = ms;
    g.nranks *= d.size[i];
  }
  u32 *ranks = NEWN(s->a, u32, g.nranks);
  ranks[0] = x->ranks ? 0 : x->first;
  for (u32 i = naxes;
       i-- > 0;) // minor first: what is there so far is repeated at every position of the next axis
    for (u32 p = d.size[i]; p-- > 0;) {
      u32 at = mesh_step[i] * (axis[i].at >= 0 ? (u32)axis[i].at : axis[i].nonly ? axis[i].only[p] : p);
      for (u32 k = 0; k < d.step[i]; k++) ranks[p * d.step[i] + k] = ranks[k] + at;
    }
  for (u32 k = 0; x->ranks && k < g.nranks; k++) ranks[k] = x->ranks[ranks[k]];
  g.ranks = ranks;
  *vec_push(s->a, &s->groups) = g;
  *vec_push(s->a, &s->group_dims) = d;
  hmap_add(s->a, &s->group_map, hash, s->groups.n - 1);
  return (group){s->groups.n - 1};
}

static group group_intern(space *s, mesh m, const group_axis *axis, u32 naxes) {
  u64 h = m.i;
  for (u32 i = 0; i < naxes; i++) {
    h = hash_u64((u32)axis[i].at, h);
    if (axis[i].nonly) h = hash_bytes(axis[i].only, axis[i].nonly * sizeof(u32), h);
  }
  for (u32 it = 0, id; hmap_next(&s->group_map, h, &it, &id);)
    if (s->groups.v[id].m.i == m.i && same_axes(s->groups.v[id].axis, axis, naxes)) return (group){id};
  return group_insert(s, m, axis, naxes, h);
}

group group_of(space *s, mesh m, const group_axis *fix, u32 nfix) {
  assert(m.i);
  const mesh_info *x = mesh_get(s, m);
  group_axis axis[MESH_AXES];
  u64 seen = 0;
  for (u32 i = 0; i < x->naxes; i++) axis[i] = (group_axis){.axis = x->axis[i], .at = -1};
  for (u32 i = 0; i < nfix; seen |= 1ull << fix[i++].axis) {
    u32 k = 0;
    while (k < x->naxes && x->axis[k] != fix[i].axis) k++;
    const char *mesh_name = sym_str(s->c, x->name),
               *axis_name = sym_str(s->c, axis_get(s, fix[i].axis)->name);
    if (k == x->naxes) {
      diag(s->c, E_GROUP, (loc){0}, "mesh @%s has no axis '%s'", mesh_name, axis_name);
      return (group){0};
    }
    if (seen >> fix[i].axis & 1) {
      diag(s->c, E_GROUP, (loc){0}, "group of @%s: axis '%s' is restricted twice", mesh_name, axis_name);
      return (group){0};
    }
    if (!restrict_axis(s, m, &axis[k], &fix[i])) return (group){0};
  }
  return group_intern(s, m, axis, x->naxes);
}

group group_all(space *s, mesh m) { return group_of(s, m, NULL, 0); }

group group_fix(space *s, group g, u8 axis, u32 at) {
  const group_info *x = group_get(s, g);
  u8 k = s->group_dims.v[g.i].slot[axis];
  assert(g.i);
  group_axis all[MESH_AXES], by = {.axis = axis, .at = (int)at};
  memcpy(all, x->axis, sizeof all);
  const char *mesh_name = sym_str(s->c, mesh_get(s, x->m)->name),
             *axis_name = sym_str(s->c, axis_get(s, axis)->name);
  if (k == NO_SLOT) {
    diag(s->c, E_GROUP, (loc){0}, "mesh @%s has no axis '%s'", mesh_name, axis_name);
    return (group){0};
  }
  bool there = all[k].at == -1 || all[k].at == (int)at;
  for (u32 i = 0; i < all[k].nonly; i++) there = there || all[k].only[i] == at;
  if (!there) {
    diag(s->c, E_GROUP, (loc){0}, "a group of @%s does not reach position %u of axis '%s'", mesh_name, at,
         axis_name);
    return (group){0};
  }
  if (!restrict_axis(s, x->m, &all[k], &by)) return (group){0};
  return group_intern(s, x->m, all, x->naxes);
}

// ---- groups: members ---------------------------------------------------------------------------------

const group_info *group_get(const space *s, group g) {
  assert(g.i < s->groups.n);
  return &s->groups.v[g.i];
}

u32 group_count(const space *s) { return s->groups.n - 1; }

bool group_has_axis(const space *s, group g, u8 axis) {
  if (!g.i) return !axis_get(s, axis)->temporal;
  u8 k = s->group_dims.v[g.i].slot[axis];
  return k != NO_SLOT && s->groups.v[g.i].axis[k].at < 0;
}

u32 group_axis_size(const space *s, group g, u8 axis) {
  if (!g.i) return s->axis[axis].temporal ? 1 : s->axis[axis].size;
  u8 k = s->group_dims.v[g.i].slot[axis];
  return k == NO_SLOT ? 1 : s->group_dims.v[g.i].size[k];
}

int group_member(const space *s, group g, u32 rank) {
  const group_info *x = group_get(s, g);
  i64 at = g.i ? mesh_position(s, x->m, rank) : -1;
  if (at < 0) return -1;
  const struct group_dims *d = &s->group_dims.v[g.i];
  u32 member = 0;
  for (u32 i = x->naxes; i-- > 0;) {
    u32 size = s->axis[x->axis[i].axis].size, p = (u32)(at % size);
    at /= size;
    if (x->axis[i].at >= 0) {
      if (p != (u32)x->axis[i].at) return -1;
      continue;
    }
    if (x->axis[i].nonly) {
      u32 k = 0;
      while (k < x->axis[i].nonly && x->axis[i].only[k] != p) k++;
      if (k == x->axis[i].nonly) return -1;
      p = k;
    }
    member += p * d->step[i];
  }
  return (int)member;
}

u32 group_coord(const space *s, group g, u32 member, u8 axis) {
  const struct group_dims *d = &s->group_dims.v[g.i];
  u8 k = g.i ? d->slot[axis] : NO_SLOT;
  return k == NO_SLOT ? 0 : member / d->step[k] % d->size[k];
}

u32 group_offsets(const space *s, group g, const u8 *axes, u32 naxes, u32 *offset, u32 cap) {
  const struct group_dims *d = &s->group_dims.v[g.i];
  u32 n = 1;
  if (cap) offset[0] = 0;
  for (u32 i = naxes;
       i-- > 0;) { // minor first: what is there so far is repeated at every step of the next axis
    u8 k = g.i ? d->slot[axes[i]] : NO_SLOT;
    if (k == NO_SLOT) continue;
    for (u32 j = n; j < n * d->size[k] && j < cap; j++) offset[j] = offset[j % n] + j / n * d->step[k];
    n *= d->size[k];
    assert(n);
  }
  return n;
}

u32 group_lead(const space *s, group g, u32 member, const u8 *axes, u32 naxes) {
  const struct group_dims *d = &s->group_dims.v[g.i];
  u32 lead = member;
  for (u32 i = 0; i < naxes; i++) {
    u8 k = g.i ? d->slot[axes[i]] : NO_SLOT;
    if (k != NO_SLOT) lead -= member / d->step[k] % d->size[k] * d->step[k];
  }
  return lead;
}

void group_likes(const space *s, group g, const u8 *axes, u32 naxes, const u32 *const *same, u32 *like) {
  const struct group_dims *d = &s->group_dims.v[g.i];
  u32 n = 1;
  like[0] = 0;
  for (u32 i = s->groups.v[g.i].naxes; i-- > 0; n *= d->size[i]) { // as in group_offsets
    u32 k = 0;
    while (k < naxes && axes[k] != s->groups.v[g.i].axis[i].axis) k++;
    for (u32 c = 1; c < d->size[i]; c++) {
      const u32 base = k == naxes ? 0 : same ? same[k][c] * n : c * n;
      for (u32 j = 0; j < n; j++) like[c * n + j] = base + like[j];
    }
  }
}

void coords_of(const space *s, group g, u32 member, const coords *temporal, coords *out) {
  const struct group_dims *d = &s->group_dims.v[g.i];
  const group_info *x = group_get(s, g);
  if (temporal)
    *out = *temporal;
  else
    memset(out, 0, sizeof *out);
  for (u32 i = 0; i < x->naxes; i++)
    out->at[x->axis[i].axis] =
        (u16)(x->axis[i].at >= 0 ? (u32)x->axis[i].at : member / d->step[i] % d->size[i]);
}
