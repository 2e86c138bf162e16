// subs.c - who communicates with whom at the same time: the subgroups of a group over some axes, the
// transfers between two groups, and the places they have on the machine. Known by group and axes for one
// program; equal places share one number for ever, which is what makes events of communication equal.
#include "cost/internal.h"

bool same_key(const coster *k, key_ref r, const u32 *key, u32 n) {
  return r.n == n && !memcmp(k->words.v + r.at, key, sizeof *key * n);
}

key_ref keep_key(coster *k, const u32 *key, u32 n) {
  key_ref r = {k->words.n, n};
  memcpy(vec_push_n(k->a, &k->words, n), key, sizeof *key * n);
  return r;
}

u32 place_id(coster *k, const machine_place *p) {
  const u64 h = hash_bytes(p, sizeof *p, 0);
  for (u32 it = 0, i; hmap_next(&k->place_map, h, &it, &i);)
    if (!memcmp(&k->places.v[i], p, sizeof *p)) return i;
  hmap_add(k->a, &k->place_map, h, k->places.n);
  *vec_push(k->a, &k->places) = *p;
  return k->places.n - 1;
}

bool on_machine(coster *k, u32 rank, loc at) {
  if (rank < k->m->nranks) return true;
  const char *name = sym_str(k->c, k->m->name);
  diag(k->c, E_DEVICES, at, "rank %u is used; the machine %s has ranks 0 to %u", rank, name,
       k->m->nranks - 1);
  if (strpbrk(name, " *"))
    diag_hint(k->c, "plan for this machine, or use a larger one");
  else
    diag_hint(k->c, "plan for this machine, or use more of them: --machine '%s*%u'", name,
              rank / k->m->nranks + 1);
  return false;
}

u16 group_kind(coster *k, group g, loc at) {
  while (k->kinds.n <= g.i) *vec_push(k->a, &k->kinds) = 0;
  if (k->kinds.v[g.i]) return k->kinds.v[g.i];
  const group_info *gi = group_get(k->p->sp, g);
  u16 kind = 0;
  for (u32 i = 0; i < gi->nranks; i++) {
    if (!on_machine(k, gi->ranks[i], at)) return 0;
    const u16 own = (u16)(k->m->dev[gi->ranks[i]].kind + 1);
    kind = !i || kind == own ? own : KINDS_MIXED;
  }
  return k->kinds.v[g.i] = kind;
}

static seen_subs *subs_find(coster *k, const u32 *key, u32 n, u64 *h) {
  *h = hash_bytes(key, sizeof *key * n, 1);
  for (u32 it = 0, i; hmap_next(&k->subs_map, *h, &it, &i);)
    if (same_key(k, k->subs.v[i].key, key, n)) return &k->subs.v[i];
  return NULL;
}

// The places of the subgroups are in k->found.
static seen_subs *subs_add(coster *k, const u32 *key, u32 n, u64 h, u32 nsub, u32 size, u32 sub) {
  seen_subs s = {keep_key(k, key, n), nsub, size, k->ids.n, sub, true};
  u32 *place = vec_push_n(k->a, &k->ids, nsub);
  const machine_place *found = k->found.v;
  for (u32 i = 0; i < nsub; i++) {
    place[i] = i && !memcmp(&found[i], &found[i - 1], sizeof *found) ? place[i - 1] : place_id(k, &found[i]);
    s.uniform = s.uniform && place[i] == place[0];
  }
  hmap_add(k->a, &k->subs_map, h, k->subs.n);
  *vec_push(k->a, &k->subs) = s;
  return &k->subs.v[k->subs.n - 1];
}

const seen_subs *subgroups(coster *k, group g, const u8 *axes, u32 naxes, loc at) {
  u32 key[1 + MESH_AXES] = {g.i}, n = 1;
  u64 h;
  assert(naxes <= MESH_AXES);
  for (u32 i = 0; i < naxes; i++) key[n++] = axes[i];
  const seen_subs *s = subs_find(k, key, n, &h);
  if (s || !group_kind(k, g, at)) return s;
  const space *sp = k->p->sp;
  const group_info *gi = group_get(sp, g);
  vec_reserve(k->a, &k->ranks, 2 * gi->nranks);
  u32 *offset = k->ranks.v, *ranks = offset + gi->nranks, nsub = 0;
  const u32 sub = k->ids.n, size = group_offsets(sp, g, axes, naxes, offset, gi->nranks);
  u32 *subs = vec_push_n(k->a, &k->ids, gi->nranks);
  memset(subs, 0xff, sizeof *subs * gi->nranks);
  for (u32 m = 0; m < gi->nranks; m++) {
    if (subs[m] != ~0u) continue; // no member of a subgroup comes before the one that all offsets are from
    for (u32 i = 0; i < size; i++) {
      ranks[nsub * size + i] = gi->ranks[m + offset[i]];
      subs[m + offset[i]] = nsub;
    }
    nsub++;
  }
  vec_reserve(k->a, &k->found, nsub);
  machine_places(k->m, k->a, ranks, nsub, size, k->found.v);
  return subs_add(k, key, n, h, nsub, size, sub);
}

static double pair_time(const machine_place *p) {
  return p->n < 2 ? 0 : p->nodes > 1 ? 1 / p->dev_bw : 1 / p->pair_bw;
}

// Member k to member k if they are equally many, else every member of the smaller group deals with its even
// share of the larger. Of the transfers of one source the slowest counts.
const seen_subs *transfers(coster *k, group from, group to, loc at) {
  const u32 key[3] = {from.i, to.i, ~0u};
  u64 h;
  const seen_subs *s = subs_find(k, key, 3, &h);
  if (s || !group_kind(k, from, at) || !group_kind(k, to, at)) return s;
  const group_info *f = group_get(k->p->sp, from), *t = group_get(k->p->sp, to);
  const u32 n = MAX(f->nranks, t->nranks), sub = k->ids.n;
  vec_reserve(k->a, &k->ranks, 2 * n);
  vec_reserve(k->a, &k->found, n);
  u32 *a = k->ranks.v, *b = a + n;
  machine_place *found = k->found.v;
  for (u32 i = 0; i < n; i++) {
    a[i] = f->ranks[(u64)i * f->nranks / n];
    b[i] = t->ranks[(u64)i * t->nranks / n];
  }
  machine_pairs(k->m, k->a, a, b, n, found);
  for (u32 i = 0, next = 0; i < n; i++) {
    const u32 source = (u32)((u64)i * f->nranks / n);
    if (source == next)
      found[next++] = found[i];
    else if (pair_time(&found[i]) > pair_time(&found[source]))
      found[source] = found[i];
  }
  u32 *subs = vec_push_n(k->a, &k->ids, f->nranks);
  for (u32 m = 0; m < f->nranks; m++) subs[m] = m;
  return subs_add(k, key, 3, h, f->nranks, 2, sub);
}
