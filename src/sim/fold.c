// fold.c - ranks that cannot differ become one rank class: partition refinement. Not the simulation itself.
//
// Idea: ranks are equal at first if they take part in the same groups, at the same prices and with pieces of
// the same size; then, until nothing changes, ranks part whose communications meet different classes.
// Everything is computed on functions and groups, never on the unrolled program: a class of ranks executes
// the same instructions in the same order because a group's members do.
//
// A class is named by a 64-bit hash of what distinguishes it.
#include "sim/stages.h"

// Numbers classes by first occurrence. Returns how many. Few classes alternate: most are found where their
// like was found last.
static u32 number_classes(sim *s, const u64 *sig, u32 *class_of) {
  enum { RECENT = 64 };
  arena_mark_t m = arena_mark(s->tmp);
  hmap known = {0};
  u64 recent[RECENT] = {0};
  u32 recent_id[RECENT] = {0}, n = 0;
  for (u32 r = 0; r < s->nranks; r++) {
    u32 at = (u32)(sig[r] >> 58), id = recent[at] == sig[r] ? recent_id[at] : 0;
    if (!id) {
      id = hmap_get(&known, sig[r]);
      if (!id) hmap_add(s->tmp, &known, sig[r], id = ++n);
      recent[at] = sig[r];
      recent_id[at] = id;
    }
    class_of[r] = id - 1;
  }
  arena_release(s->tmp, m);
  return n;
}

static void split_by_group(sim *s, u64 *sig, u32 g) {
  const members *pl = s->members.v[g];
  const u64 name = hash_u64(g, 3);
  for (u32 k = 0; k < pl->n; k++) sig[pl->rank[k]] = hash_step(sig[pl->rank[k]], name);
}

// Members of a group that hold unlike pieces, by their coordinates on the axes that decide.
typedef struct {
  group g;
  u32 naxes, n;
  u8 axes[MESH_AXES];
  const u32
      *first; // n members, the first of each combination of coordinates: it stands for all that are alike
  u64 *sig;   // by member, of these only
} uneven_row;

typedef struct {
  sim *s;
  u64 *sig;
  u8 *group_seen; // by group
  u32 *seen_on;   // by type: the latest group that it was seen on, from 1
  bool sizes;     // pieces of different size are told apart
  hmap even;      // types and groups with uneven pieces that are done
  VEC(uneven_row) uneven;
} splitter;

static uneven_row *uneven_row_of(splitter *x, layout l, group g) {
  const space *sp = x->s->p->sp;
  uneven_row r = {.g = g};
  r.naxes = layout_uneven_axes(sp, l, g, r.axes, 0);
  for (u32 k = 0; k < x->uneven.n; k++) {
    uneven_row *old = &x->uneven.v[k];
    if (old->g.i == g.i && old->naxes == r.naxes && !memcmp(old->axes, r.axes, r.naxes)) return old;
  }
  r.n = group_offsets(sp, g, r.axes, r.naxes, NULL, 0);
  u32 *first = NEWN(x->s->tmp, u32, r.n);
  group_offsets(sp, g, r.axes, r.naxes, first, r.n);
  r.first = first;
  r.sig = ZNEWN(x->s->tmp, u64, x->s->members.v[g.i]->n);
  uneven_row *to = vec_push(x->s->tmp, &x->uneven);
  *to = r;
  return to;
}

static void split_by_uneven(splitter *x) {
  for (u32 k = 0; k < x->uneven.n; k++) {
    const uneven_row *r = &x->uneven.v[k];
    const members *pl = x->s->members.v[r->g.i];
    const u64 name = hash_u64(k, 5);
    u32 *like = NEWN(x->s->tmp, u32, pl->n);
    group_likes(x->s->p->sp, r->g, r->axes, r->naxes, NULL, like);
    for (u32 j = 0; j < pl->n; j++) {
      u64 *sig = &x->sig[pl->rank[j]];
      *sig = hash_step(*sig ^ name, r->sig[like[j]]);
    }
  }
}

// Of every combination of coordinates of a row: one not behind it with pieces of the same size.
static const u32 *same_sizes(const splitter *x, const uneven_row *r, layout l) {
  const space *sp = x->s->p->sp;
  u32 *like = ZNEWN(x->s->tmp, u32, r->n), n = 1;
  for (u32 i = r->naxes; i-- > 0;) { // the last varies fastest
    const u32 size = group_axis_size(sp, r->g, r->axes[i]);
    u32 *same = ZNEWN(x->s->tmp, u32, size);
    layout_same_sizes(sp, l, r->g, r->axes[i], same);
    for (u32 c = 1; c < size; c++)
      for (u32 j = 0; j < n; j++) like[c * n + j] = same[c] * n + like[j];
    n *= size;
  }
  assert(n == r->n);
  return like;
}

// Groups that values live on, and pieces of different size.
static void split_by_type(splitter *x, type t, group call) {
  sim *s = x->s;
  const type_info *ti = type_get(s->p, t);
  if (x->seen_on[t.i] == call.i + 1) return;
  x->seen_on[t.i] = call.i + 1;
  for (u32 k = 0; k < ti->n; k++) split_by_type(x, ti->elem[k], call);
  if (ti->tuple) return;
  group g = group_bind(ti->g, call);
  members_of(s, g);
  if (!x->group_seen[g.i]) split_by_group(s, x->sig, g.i);
  x->group_seen[g.i] = 1;
  if (!x->sizes || layout_is_even(s->p->sp, ti->lay)) return;
  u64 key = hash_u64((u64)t.i << 32 | g.i, 5);
  if (hmap_get(&x->even, key)) return;
  hmap_add(s->tmp, &x->even, key, 1);
  uneven_row *r = uneven_row_of(x, ti->lay, g);
  const u32 *like = same_sizes(x, r, ti->lay);
  i64 *bytes = NEWN(s->tmp, i64, r->n);
  for (u32 k = 0; k < r->n; k++) {
    u64 *sig = &r->sig[r->first[k]];
    bytes[k] = like[k] < k ? bytes[like[k]] : local_bytes(s, ti, g, r->first[k]);
    *sig = hash_step(*sig ^ key, (u64)bytes[k]);
  }
}

static void split_by_values(splitter *x, u32 row) {
  const priced *pr = &x->s->priced.v[row];
  const func_info *f = func_get(x->s->p, pr->f);
  for (u32 v = 1; v < f->values.n; v++)
    if (x->seen_on[f->values.v[v].ty.i] != pr->g.i + 1) split_by_type(x, f->values.v[v].ty, pr->g);
}

static void split_by_prices(sim *s, u64 *sig) {
  for (u32 k = 1; k < s->events.n; k++) {
    const event *e = &s->events.v[k];
    if (!e->per) continue;
    const members *pl = members_of(s, e->g);
    const u64 name = hash_u64(k, 5);
    for (u32 j = 0; j < pl->n; j++) sig[pl->rank[j]] = hash_step(sig[pl->rank[j]] ^ name, (u64)e->per[j]);
  }
}

// Do all nodes of a rendezvous consist of the same classes, listed alike? Then it tells no ranks apart: all
// members of its groups meet, and ranks of other groups are of other classes from the start.
static bool rendezvous_alike(const rendezvous *m, const u32 *class_of) {
  const u32 size = m->n ? m->begin[1] : 0;
  for (u32 j = 1; j < m->n; j++) {
    const u32 *rank = m->rank + m->begin[j];
    if (m->begin[j + 1] - m->begin[j] != size) return false;
    for (u32 q = 0; q < size; q++)
      if (class_of[rank[q]] != class_of[m->rank[q]]) return false;
  }
  return true;
}

static void split_by_peers(sim *s, u64 *sig, const u32 *class_of) {
  for (u32 k = 0; k < s->rendezvous.n; k++) {
    const rendezvous *m = s->rendezvous.v[k].m;
    if (s->rendezvous.v[k].again || rendezvous_alike(m, class_of)) continue;
    for (u32 j = 0; j < m->n; j++) {
      u64 who = 0; // of a set with repetitions: order does not matter
      for (u32 q = m->begin[j]; q < m->begin[j + 1]; q++) who += hash_u64(class_of[m->rank[q]], 7);
      for (u32 q = m->begin[j]; q < m->begin[j + 1]; q++)
        sig[m->rank[q]] = hash_u64(sig[m->rank[q]] ^ k, who);
    }
  }
}

// Places of a pipeline are parted alike: members of the same number are equal on all places or on none.
static void split_by_mirror(const sim *s, u64 *sig, const u32 *class_of) {
  const sim_pipeline *pl = s->pipeline;
  u32 n = s->members.v[pl->group[0].i]->n;
  for (u32 k = 0; k < n; k++) {
    u64 all = 0;
    for (u32 q = 0; q < pl->nplaces; q++)
      all = hash_u64(class_of[s->members.v[pl->group[q].i]->rank[k]], all);
    for (u32 q = 0; q < pl->nplaces; q++) {
      u64 *x = &sig[s->members.v[pl->group[q].i]->rank[k]];
      *x = hash_u64(*x, all);
    }
  }
}

// Ranks that what comes after all tasks tells apart, though it is not in the probe.
static void split_by_ending(const sim *s, u64 *sig) {
  const sim_pipeline *pl = s->pipeline;
  for (u32 q = 0; pl->ending && q < pl->nplaces; q++) {
    const members *m = s->members.v[pl->group[q].i];
    for (u32 k = 0; k < MIN(m->n, pl->ending->of.nmembers); k++)
      sig[m->rank[k]] = hash_step(sig[m->rank[k]], pl->ending->of.member_class[k]);
  }
}

// Ranks of no mesh are of no stage of their own: 0, like others.
static void drop_unused(sim *s, u32 *stage_of) {
  u32 *number = ZNEWN(s->tmp, u32, s->nstages + 1), n = 0; // + 1
  for (u32 r = 0; r < s->nranks; r++) {
    if (s->used[r] && !number[stage_of[r]]) number[stage_of[r]] = ++n;
    stage_of[r] = s->used[r] ? number[stage_of[r]] - 1 : 0;
  }
  s->nstages = n;
}

void fold_ranks(sim *s, bool fold) {
  arena_mark_t mark = arena_mark(s->tmp);
  u32 *class_of = NEWN(s->a, u32, s->nranks), *stage_of = NEWN(s->a, u32, s->nranks);
  splitter x = {.s = s, .sig = ZNEWN(s->tmp, u64, s->nranks)};
  x.group_seen = ZNEWN(s->tmp, u8, group_count(s->p->sp) + 1);
  x.seen_on = ZNEWN(s->tmp, u32, s->p->types.n);
  split_by_values(&x, 1);
  const func_info *f = func_get(s->p, s->p->main);
  for (u32 k = 0; k < f->body.n; k++) {
    group g = group_bind(f->body.v[k].g, (group){0});
    if (x.group_seen[g.i]) continue;
    members_of(s, g);
    split_by_group(s, x.sig, g.i);
    x.group_seen[g.i] = 1;
  }
  s->nstages = number_classes(s, x.sig, stage_of);
  if (s->nused < s->nranks) drop_unused(s, stage_of);
  s->stage_of_rank = stage_of;
  if (fold) {
    x.sizes = true;
    memset(x.seen_on, 0, s->p->types.n * sizeof *x.seen_on);
    for (u32 k = 1; k < s->priced.n; k++) split_by_values(&x, k);
    split_by_uneven(&x);
    for (u32 k = 0; k < s->members.n; k++)
      if (s->members.v[k] && !x.group_seen[k]) split_by_group(s, x.sig, k);
    split_by_prices(s, x.sig);
    u32 n = 0;
    for (u32 q = 0; s->pipeline && q < s->pipeline->nplaces; q++) {
      members_of(s, s->pipeline->group[q]);
      split_by_group(s, x.sig, s->pipeline->group[q].i);
    }
    if (s->pipeline) split_by_ending(s, x.sig);
    for (u32 now; (now = number_classes(s, x.sig, class_of)) != n; n = now) {
      split_by_peers(s, x.sig, class_of);
      if (s->pipeline && !s->pipeline->apart) split_by_mirror(s, x.sig, class_of);
    }
    s->nclasses = n;
  } else {
    for (u32 r = 0; r < s->nranks; r++) class_of[r] = r;
    s->nclasses = s->nranks;
  }
  u32 *weight = ZNEWN(s->a, u32, s->nclasses);
  for (u32 r = 0; r < s->nranks; r++) weight[class_of[r]]++;
  s->class_of_rank = class_of;
  s->weight = weight;
  arena_release(s->tmp, mark);
  members_set_all_classes(s);
}
