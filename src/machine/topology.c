// topology.c - what a machine gives to a set of ranks: peaks of its devices, placements of subgroups.
//
// Idea: communication is costed from a handful of figures, not from routes. Inside a node the shape of the
// link says what a ring of neighbours and what a single pair get; between nodes the NICs of a node are shared
// evenly by the subgroups that leave it at the same time. Sharing is counted from the placement alone, so a
// cost never depends on simulated time.
#include "machine/machine.h"
#include <stdlib.h>

// ---- devices -----------------------------------------------------------------------------------------

bool machine_one_kind(const machine *m, u32 first, u32 n) {
  for (u32 r = 1; r < n; r++)
    if (m->dev[first + r].kind != m->dev[first].kind) return false;
  return true;
}

u32 machine_ranks_of_kind(const machine *m, u32 first, u32 n, u32 kind, u32 most, u32 *rank) {
  u32 found = 0;
  for (u32 r = first; r < first + n && found < most; r++)
    if (m->dev[r].kind == kind) rank[found++] = r;
  return found;
}

double curve_work(const eff_curve *k, double size) {
  if (!k->n) return size;
  if (size <= k->size[0]) return size / k->eff[0];
  u32 i = 1;
  while (i < k->n && size > k->size[i]) i++;
  if (i == k->n) return size / k->eff[k->n - 1];
  const double lo = k->size[i - 1] / k->eff[i - 1], hi = k->size[i] / k->eff[i];
  return lo + (hi - lo) * ((size - k->size[i - 1]) / (k->size[i] - k->size[i - 1]));
}

double curve_best(const eff_curve *k) {
  double best = k->n ? 0 : 1;
  for (u32 i = 0; i < k->n; i++) best = MAX(best, k->eff[i]);
  return best;
}

double machine_top_flops(const device_kind *k, dtype t) {
  return k->rate[t] * MAX(curve_best(&k->eff[EFF_GEMM]), curve_best(&k->eff[EFF_CONV]));
}

double machine_top_bw(const device_kind *k) {
  double best = 0;
  for (u32 i = EFF_MEMORY; i < EFF_KINDS; i++) best = MAX(best, curve_best(&k->eff[i]));
  return k->mem_bw * best;
}

machine *machine_twice(arena *a, const machine *m) {
  if (m->nranks > MACHINE_RANKS_MAX / 2) return NULL;
  machine *out = arena_dup(a, m, sizeof *m);
  node_kind *kinds = arena_dup(a, m->node_kind, m->nnode_kinds * sizeof *kinds);
  u16 *node = NEWN(a, u16, 2 * m->nnodes);
  machine_dev *dev = NEWN(a, machine_dev, 2 * m->nranks);
  u32 at = 0, rank = 0;
  for (u32 i = 0; i < m->nnode_kinds; i++) {
    kinds[i].count *= 2;
    for (u32 k = 0; k < kinds[i].count; k++, at++) {
      node[at] = (u16)i;
      for (u32 j = 0; j < kinds[i].ndevs; j++) dev[rank++] = (machine_dev){kinds[i].dev[j], (u16)j, at};
    }
  }
  out->name = sym_fmt(m->c, "twice %s", sym_str(m->c, m->name));
  out->node_kind = kinds, out->node = node, out->dev = dev;
  out->nnodes = at, out->nranks = rank;
  return out;
}

machine *machine_more_memory(arena *a, const machine *m, u32 percent) {
  machine *out = arena_dup(a, m, sizeof *m);
  out->kind = arena_dup(a, m->kind, m->nkinds * sizeof *m->kind);
  for (u32 k = 0; k < m->nkinds; k++)
    out->kind[k].usable_bytes = (i64)((double)m->kind[k].usable_bytes * (1 + percent / 100.0));
  return out;
}

machine *machine_without(arena *a, const machine *m, u32 kind) {
  machine *out = arena_dup(a, m, sizeof *m);
  node_kind *kinds = NEWN(a, node_kind, m->nnode_kinds);
  u16 *node = NEWN(a, u16, m->nnodes);
  machine_dev *dev = NEWN(a, machine_dev, m->nranks);
  u32 n = 0, at = 0, rank = 0;
  for (u32 i = 0; i < m->nnode_kinds; i++) {
    const node_kind *x = &m->node_kind[i];
    bool has = false;
    for (u32 j = 0; j < x->ndevs; j++) has |= x->dev[j] == kind;
    if (has) continue;
    for (u32 k = 0; k < x->count; k++, at++) {
      node[at] = (u16)n;
      for (u32 j = 0; j < x->ndevs; j++) dev[rank++] = (machine_dev){x->dev[j], (u16)j, at};
    }
    kinds[n++] = *x;
  }
  if (!rank) return NULL;
  out->name = sym_fmt(m->c, "%s without %s", sym_str(m->c, m->name), sym_str(m->c, m->kind[kind].name));
  out->node_kind = kinds, out->nnode_kinds = n, out->node = node, out->dev = dev;
  out->nnodes = at, out->nranks = rank;
  return out;
}

// ---- links inside a node -----------------------------------------------------------------------------

typedef struct {
  double ring, all, pair;
  i64 start_ps, step_ps;
} inside;

// Parts of the link's bandwidth.
static inside through(const machine_link *l, double ring, double all, double pair) {
  const double bw = l->bw * l->eff;
  return (inside){bw * ring, bw * all, bw * pair, l->start_ps, l->step_ps};
}

// What members at the positions at[0] < at[1] < ... of a node of kind nk get.
static inside inside_of(const node_kind *nk, const u16 *at, u32 n) {
  const machine_link *l = &nk->inside;
  const double peers = nk->ndevs - 1;
  switch (l->shape) {
  case LINK_SWITCH: return through(l, 1, 1, 1);
  case LINK_MESH: return through(l, (n - 1) / peers, (n - 1) / peers, 1 / peers);
  case LINK_RING: {
    // Strided members: the devices they step over run the same in their own subgroups, over the same links.
    // All around, both directions carry a ring each; else one ring goes there and back past all gaps but the
    // widest.
    u32 widest = 0, next = 0;
    for (u32 i = 0; i < n; i++) {
      u32 gap = i + 1 < n ? (u32)at[i + 1] - at[i] : nk->ndevs - at[n - 1] + at[0];
      if (gap > widest)
        next = widest, widest = gap;
      else if (gap > next)
        next = gap;
    }
    // Evenly to all: bytes travel n/4 links on average around, n/3 along a line.
    const double line = 0.5 / next, around = 1.0 / widest;
    return around > line ? through(l, around, around * MIN(1, 4.0 / n), line)
                         : through(l, line, line * MIN(1, 3.0 / n), line);
  }
  case LINK_PAIRS:
    if (n == 2 && at[0] / 2 == at[1] / 2) return through(l, 1, 1, 1);
    break;
  case LINK_NONE: break;
  }
  return through(&nk->host, 1, 1, 1);
}

// ---- between nodes -----------------------------------------------------------------------------------

// One device drives the NICs beside it: its even share, but at least one.
static double device_out(const node_kind *nk) {
  return nk->nic_bw * MAX(nk->nics / nk->ndevs, MIN(nk->nics, 1u));
}

static bool same_leaf(const machine *m, u32 a, u32 b) {
  return a == b || (m->fabric.leaf && a / m->fabric.leaf == b / m->fabric.leaf);
}

static u32 node_of(const machine *m, u32 rank) { return m->dev[rank].node; }

// Members of the ascending ranks r[0..n) on the node of the first.
static u32 run_of(const machine *m, const u32 *r, u32 n) {
  u32 k = 1;
  while (k < n && node_of(m, r[k]) == node_of(m, r[0])) k++;
  return k;
}

// sharing[node] subgroups leave the node at the same time.
static machine_placement placement_of(const machine *m, const u32 *r, u32 n, const u32 *sharing) {
  machine_placement p = {.n = n, .even = true};
  u16 at[MACHINE_NODE_MAX];
  u32 k, least = n;
  bool leaf = true;
  for (u32 i = 0; i < n; i += k) {
    const u32 node = node_of(m, r[i]);
    const node_kind *nk = &m->node_kind[m->node[node]];
    k = run_of(m, r + i, n - i);
    for (u32 j = 0; j < k; j++) at[j] = m->dev[r[i + j]].index;
    if (k > 1) {
      const inside in = inside_of(nk, at, k);
      const bool first = p.per_node < 2;
      p.in_bw = first ? in.ring : MIN(p.in_bw, in.ring);
      p.all_bw = first ? in.all : MIN(p.all_bw, in.all);
      p.pair_bw = first ? in.pair : MIN(p.pair_bw, in.pair);
      p.in_ps = MAX(p.in_ps, in.step_ps);
      p.start_ps = MAX(p.start_ps, in.start_ps);
    }
    if (k < n) {
      const double share = nk->nic_bw * nk->nics / MAX(sharing[node], 1u),
                   out = MIN(share, k * device_out(nk));
      const double dev = MIN(device_out(nk), share);
      p.out_bw = p.nodes ? MIN(p.out_bw, out) : out;
      p.dev_bw = p.nodes ? MIN(p.dev_bw, dev) : dev;
    }
    p.nodes++;
    p.per_node = MAX(p.per_node, k);
    least = MIN(least, k);
    leaf = leaf && same_leaf(m, node_of(m, r[0]), node);
  }
  p.even = least == p.per_node;
  if (p.nodes > 1) {
    const fabric_info *f = &m->fabric;
    p.out_bw *= f->eff / (leaf ? 1 : f->oversub);
    p.dev_bw *= f->eff / (leaf ? 1 : f->oversub);
    p.out_ps = f->step_ps;
    p.start_ps = MAX(p.start_ps, f->start_ps);
  }
  return p;
}

// ---- subgroups ---------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  const u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return x < y ? -1 : x > y;
}

void machine_placements(const machine *m, arena *scratch, const u32 *ranks, u32 nsub, u32 n,
                        machine_placement *out) {
  arena_mark_t mark = arena_mark(scratch);
  u32 *sorted = arena_dup(scratch, ranks, sizeof *ranks * nsub * n);
  u32 *sharing = ZNEWN(scratch, u32, m->nnodes);
  for (u32 s = 0; s < nsub; s++) {
    u32 *r = sorted + (size_t)s * n, i = 1, k;
    while (i < n && r[i - 1] < r[i]) i++;
    if (i < n) qsort(r, n, sizeof *r, by_value);
    if (run_of(m, r, n) == n) continue;
    for (i = 0; i < n; i += k) {
      k = run_of(m, r + i, n - i);
      sharing[node_of(m, r[i])]++;
    }
  }
  for (u32 s = 0; s < nsub; s++) out[s] = placement_of(m, sorted + (size_t)s * n, n, sharing);
  arena_release(scratch, mark);
}

void machine_pairs(const machine *m, arena *scratch, const u32 *from, const u32 *to, u32 n, u32 at_once,
                   machine_placement *out) {
  arena_mark_t mark = arena_mark(scratch);
  u32 *leaving = ZNEWN(scratch, u32, m->nnodes), *coming = ZNEWN(scratch, u32, m->nnodes);
  u32 *sharing = ZNEWN(scratch, u32, m->nnodes);
  for (u32 k = 0; k < n; k++) {
    if (node_of(m, from[k]) == node_of(m, to[k])) continue;
    leaving[node_of(m, from[k])]++; // NICs carry both directions at full speed
    coming[node_of(m, to[k])]++;
  }
  for (u32 k = 0; n && k < m->nnodes; k++) {
    leaving[k] = (u32)ceil_div((u64)leaving[k] * at_once, n);
    coming[k] = (u32)ceil_div((u64)coming[k] * at_once, n);
  }
  for (u32 k = 0; k < n; k++) {
    const u32 a = from[k], b = to[k], pair[2] = {MIN(a, b), MAX(a, b)};
    sharing[node_of(m, a)] = leaving[node_of(m, a)];
    sharing[node_of(m, b)] = coming[node_of(m, b)];
    out[k] = placement_of(m, pair, a == b ? 1 : 2, sharing);
  }
  arena_release(scratch, mark);
}

u32 machine_period(const machine *m) {
  if (m->nkinds != 1 || !m->nnodes || m->nranks % m->nnodes) return 0;
  const u32 per = m->nranks / m->nnodes;
  for (u32 r = 0; r < m->nranks; r++)
    if (m->dev[r].node != r / per || m->dev[r].index != r % per || m->node[r / per] != m->node[0]) return 0;
  return per * MAX(m->fabric.leaf, 1u);
}

const char *machine_apart(const machine *m, u32 kind) {
  const char *why = NULL;
  for (u32 i = 0; i < m->nnode_kinds; i++) {
    const node_kind *nk = &m->node_kind[i];
    bool has = false;
    for (u32 j = 0; j < nk->ndevs; j++) has |= nk->dev[j] == kind;
    if (has && !machine_joined(nk)) return "a node of them has neither `link` nor `host`";
    if (has && !nk->nics && m->nnodes > 1) why = "a node of them has no `nics`";
  }
  return why;
}

bool machine_has_rank(ctx *c, const machine *m, u32 rank, loc at) {
  if (rank < m->nranks) return true;
  const char *name = sym_str(m->c, m->name);
  diag(c, E_DEVICES, at, "rank %u is used; the machine %s has ranks 0 to %u", rank, name, m->nranks - 1);
  if (strpbrk(name, " *"))
    diag_hint(c, "plan for this machine, or use a larger one");
  else
    diag_hint(c, "plan for this machine, or use more of them: --machine '%s*%u'", name, rank / m->nranks + 1);
  return false;
}
