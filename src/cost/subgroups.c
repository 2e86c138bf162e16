// subgroups.c - who communicates with whom at the same time: the subgroups of a group over some axes, the
// transfers between two groups, and their placements on the machine. Known by group and axes for one
// program; equal placements share one number for ever, which is what makes events of communication equal.
//
// Idea: the ranks of nearly every group are a pattern: a first rank, and a size and a step for every axis. On
// a machine of equal nodes the placements follow from the pattern, wherever it begins in a node or, where
// nodes share switches, below one. So what was found for one stage of a pipeline holds for the others, and
// for the stages of other plans.
#include "cost/internal.h"

bool same_key(const u32_list *words, key_ref r, const u32 *key, u32 n) {
  return r.n == n && !memcmp(words->v + r.at, key, sizeof *key * n);
}

key_ref keep_key(cost_model *k, u32_list *words, const u32 *key, u32 n) {
  key_ref r = {words->n, n};
  memcpy(vec_push_n(k->a, words, n), key, sizeof *key * n);
  return r;
}

// ---- patterns ----------------------------------------------------------------------------------------

void find_period(cost_model *k) {
  const machine *m = k->m;
  const u32 ndevs = m->node_kind[m->node[0]].ndevs;
  k->one_kind = (u16)(m->dev[0].kind + 1);
  k->period = ndevs * MAX(m->fabric.leaf, 1u);
  for (u32 i = 0; i < m->nnodes; i++)
    if (m->node[i] != m->node[0]) k->period = 0;
  for (u32 r = 0; r < m->nranks; r++) {
    const machine_dev *d = &m->dev[r], *like = &m->dev[r % ndevs];
    if (d->kind != m->dev[0].kind) k->one_kind = 0;
    if (d->node != r / ndevs || d->index != r % ndevs || d->kind != like->kind) k->period = 0;
  }
}

enum { PATTERN = 3 * MESH_AXES + 1 };
// The first rank of a group, then axis, size and step of every axis along which there are several. Number of
// words; 0: its ranks are no pattern.
static u32 pattern_of(const space *sp, group g, u32 *w) {
  const group_info *gi = group_get(sp, g);
  const mesh_info *mi = mesh_get(sp, gi->m);
  u32 n = 1, step = 1;
  w[0] = mi->first;
  for (u32 i = gi->naxes; i-- > 0;) {
    const u32 size = axis_size(sp, gi->axis[i].axis);
    if (mi->ranks || gi->axis[i].nonly) return 0;
    if (gi->axis[i].at >= 0)
      w[0] += (u32)gi->axis[i].at * step;
    else if (size > 1)
      w[n++] = gi->axis[i].axis, w[n++] = size, w[n++] = step;
    step *= size;
  }
  return n;
}

static u32 pattern_of_subgroups(const cost_model *k, group g, const u8 *axes, u32 naxes, u32 *w) {
  const u32 n = k->period ? pattern_of(k->p->sp, g, w) : 0;
  if (!n) return 0;
  w[0] %= k->period;
  for (u32 i = 1; i < n; i += 3) { // an axis matters as one of those given, or as another one
    u32 q = 0;
    while (q < naxes && axes[q] != w[i]) q++;
    w[i] = q;
  }
  w[n] = naxes;
  return n + 1;
}

static u32 pattern_of_transfers(const cost_model *k, group from, group to, u32 *w) {
  const u32 n = k->period ? pattern_of(k->p->sp, from, w) : 0;
  const u32 m = n ? pattern_of(k->p->sp, to, w + n) : 0;
  if (!m) return 0;
  w[n] -= w[0]; // how far, and then the steps, but not which axes these are
  w[0] %= k->period;
  for (u32 i = 1; i < n; i += 3) w[i] = 0;
  for (u32 i = n + 1; i < n + m; i += 3) w[i] = 0;
  w[n + m] = n;
  w[n + m + 1] = ~0u;
  return n + m + 2;
}

// ---- placements --------------------------------------------------------------------------------------

u32 placement_id(cost_model *k, const machine_placement *p) {
  const u64 h = hash_bytes(p, sizeof *p, 0);
  for (u32 it = 0, i; hmap_next(&k->placement_map, h, &it, &i);)
    if (!memcmp(&k->placements.v[i], p, sizeof *p)) return i;
  hmap_add(k->a, &k->placement_map, h, k->placements.n);
  *vec_push(k->a, &k->placements) = *p;
  return k->placements.n - 1;
}

bool on_machine(cost_model *k, u32 rank, loc at) { return machine_has_rank(k->c, k->m, rank, at); }

u16 group_kind(cost_model *k, group g, loc at) {
  while (k->kinds.n <= g.i) *vec_push(k->a, &k->kinds) = 0;
  if (k->kinds.v[g.i]) return k->kinds.v[g.i];
  const group_info *gi = group_get(k->p->sp, g);
  u32 pattern[PATTERN];
  u16 kind = 0;
  // The last rank of a pattern is its highest.
  if (k->one_kind && g.i && gi->ranks[gi->nranks - 1] < k->m->nranks && pattern_of(k->p->sp, g, pattern))
    return k->kinds.v[g.i] = k->one_kind;
  for (u32 i = 0; i < gi->nranks; i++) {
    if (!on_machine(k, gi->ranks[i], at)) return 0;
    const u16 own = (u16)(k->m->dev[gi->ranks[i]].kind + 1);
    kind = !i || kind == own ? own : KINDS_MIXED;
  }
  return k->kinds.v[g.i] = kind;
}

static const seen_subgroups *subgroups_find(cost_model *k, const u32 *key, u32 n, u64 *h) {
  *h = hash_bytes(key, sizeof *key * n, 1);
  for (u32 it = 0, i; hmap_next(&k->subgroups_map, *h, &it, &i);)
    if (same_key(&k->words, k->subgroups.v[i].key, key, n)) return &k->subgroups.v[i];
  return NULL;
}

static const seen_subgroups *subgroups_add(cost_model *k, const u32 *key, u32 n, u64 h, seen_subgroups s) {
  s.key = keep_key(k, &k->words, key, n);
  hmap_add(k->a, &k->subgroups_map, h, k->subgroups.n);
  *vec_push(k->a, &k->subgroups) = s;
  return &k->subgroups.v[k->subgroups.n - 1];
}

static const seen_subgroups *pattern_find(cost_model *k, const u32 *w, u32 n, u64 *h) {
  *h = hash_bytes(w, sizeof *w * n, 2);
  for (u32 it = 0, i; n && hmap_next(&k->pattern_map, *h, &it, &i);)
    if (same_key(&k->pattern_words, k->patterns.v[i].key, w, n)) return &k->patterns.v[i];
  return NULL;
}

static void pattern_add(cost_model *k, const u32 *w, u32 n, u64 h, seen_subgroups s) {
  s.key = keep_key(k, &k->pattern_words, w, n);
  hmap_add(k->a, &k->pattern_map, h, k->patterns.n);
  *vec_push(k->a, &k->patterns) = s;
}

// Lists the placements of the subgroups, which are in k->found.
static void list_placements(cost_model *k, u32_list *list, seen_subgroups *s) {
  const machine_placement *found = k->found.v;
  s->placement = list->n;
  u32 *placement = vec_push_n(k->a, list, s->nsub);
  s->uniform = true;
  for (u32 i = 0; i < s->nsub; i++) {
    placement[i] =
        i && !memcmp(&found[i], &found[i - 1], sizeof *found) ? placement[i - 1] : placement_id(k, &found[i]);
    s->uniform = s->uniform && placement[i] == placement[0];
  }
  if (s->uniform && s->nsub) list->n = s->placement + 1;
}

static seen_subgroups find_subgroups(cost_model *k, group g, const u8 *axes, u32 naxes, bool keep) {
  const space *sp = k->p->sp;
  const group_info *gi = group_get(sp, g);
  u32_list *list = keep ? &k->kept_ids : &k->ids;
  vec_reserve(k->a, &k->ranks, 2 * gi->nranks);
  u32 *offset = k->ranks.v, *ranks = offset + gi->nranks;
  seen_subgroups s = {.sub = list->n, .kept = keep};
  s.size = group_offsets(sp, g, axes, naxes, offset, gi->nranks);
  u32 *subgroups = vec_push_n(k->a, list, gi->nranks);
  memset(subgroups, 0xff, sizeof *subgroups * gi->nranks);
  for (u32 m = 0; m < gi->nranks; m++) {
    // No member of a subgroup comes before the one that all offsets are from
    if (subgroups[m] != ~0u) continue;
    for (u32 i = 0; i < s.size; i++) {
      ranks[s.nsub * s.size + i] = gi->ranks[m + offset[i]];
      subgroups[m + offset[i]] = s.nsub;
    }
    s.nsub++;
  }
  vec_reserve(k->a, &k->found, s.nsub);
  machine_placements(k->m, k->a, ranks, s.nsub, s.size, k->found.v);
  list_placements(k, list, &s);
  return s;
}

const seen_subgroups *subgroups_over(cost_model *k, group g, const u8 *axes, u32 naxes, loc at) {
  u32 key[1 + MESH_AXES] = {g.i}, n = 1, w[PATTERN + 1];
  u64 h, hw;
  assert(naxes <= MESH_AXES);
  for (u32 i = 0; i < naxes; i++) key[n++] = axes[i];
  const seen_subgroups *s = subgroups_find(k, key, n, &h);
  if (s || !group_kind(k, g, at)) return s;
  const u32 nw = pattern_of_subgroups(k, g, axes, naxes, w);
  s = pattern_find(k, w, nw, &hw);
  if (s) return subgroups_add(k, key, n, h, *s);
  const seen_subgroups found = find_subgroups(k, g, axes, naxes, nw > 0);
  if (nw) pattern_add(k, w, nw, hw, found);
  return subgroups_add(k, key, n, h, found);
}

static double pair_time(const machine_placement *p) {
  return p->n < 2 ? 0 : p->nodes > 1 ? 1 / p->dev_bw : 1 / p->pair_bw;
}

// Member k to member k if they are equally many, else every member of the smaller group deals with its even share of the
// larger, one after the other: so as many are under way at a time as the smaller has members. Of the transfers of one
// source the slowest counts.
static seen_subgroups find_transfers(cost_model *k, group from, group to, bool keep) {
  const group_info *f = group_get(k->p->sp, from), *t = group_get(k->p->sp, to);
  const u32 n = MAX(f->nranks, t->nranks);
  vec_reserve(k->a, &k->ranks, 2 * n);
  vec_reserve(k->a, &k->found, n);
  u32 *a = k->ranks.v, *b = a + n;
  machine_placement *found = k->found.v;
  for (u32 i = 0; i < n; i++) {
    a[i] = f->ranks[(u64)i * f->nranks / n];
    b[i] = t->ranks[(u64)i * t->nranks / n];
  }
  machine_pairs(k->m, k->a, a, b, n, MIN(f->nranks, t->nranks), found);
  for (u32 i = 0, next = 0; i < n; i++) {
    const u32 source = (u32)((u64)i * f->nranks / n);
    if (source == next)
      found[next++] = found[i];
    else if (pair_time(&found[i]) > pair_time(&found[source]))
      found[source] = found[i];
  }
  seen_subgroups s = {.nsub = f->nranks, .size = 2, .sub = SUB_IS_MEMBER, .kept = keep};
  list_placements(k, keep ? &k->kept_ids : &k->ids, &s);
  return s;
}

const seen_subgroups *transfers(cost_model *k, group from, group to, loc at) {
  const u32 key[3] = {from.i, to.i, ~0u};
  u32 w[2 * PATTERN + 2];
  u64 h, hw;
  const seen_subgroups *s = subgroups_find(k, key, 3, &h);
  if (s || !group_kind(k, from, at) || !group_kind(k, to, at)) return s;
  const u32 nw = pattern_of_transfers(k, from, to, w);
  s = pattern_find(k, w, nw, &hw);
  if (s) return subgroups_add(k, key, 3, h, *s);
  const seen_subgroups found = find_transfers(k, from, to, nw > 0);
  if (nw) pattern_add(k, w, nw, hw, found);
  return subgroups_add(k, key, 3, h, found);
}
