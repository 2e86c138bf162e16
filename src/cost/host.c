// host.c - what the host's processor takes for an instruction that runs there (INSTR_HOST): an update of weights whose
// states lie in host memory.
//
// Idea: it takes the longer of its memory traffic and its arithmetic. Ranks of the program that are on one node share
// what the node has, and all of them update at once. Bytes and operations are those of the instruction's law, as for
// devices.
#include "cost/internal.h"

// By node, how many ranks the program has there.
static const u32 *ranks_of_nodes(cost_model *k, const prog *p) {
  if (k->host_ranks.n) return k->host_ranks.v;
  u32 *n = vec_push_n(k->a, &k->host_ranks, k->m->nnodes);
  memset(n, 0, k->m->nnodes * sizeof *n);
  arena *a = arena_new();
  bool *seen = ZNEWN(a, bool, k->m->nranks + 1);
  for (u32 j = 1; j <= mesh_count(p->sp); j++) {
    const mesh_info *m = mesh_get(p->sp, (mesh){j});
    for (u32 i = 0; i < m->nranks; i++) {
      const u32 rank = m->ranks ? m->ranks[i] : m->first + i;
      if (rank < k->m->nranks && !seen[rank]) seen[rank] = true, n[k->m->dev[rank].node]++;
    }
  }
  arena_free(a);
  return n;
}

static const node_kind *node_of(const cost_model *k, u32 rank) {
  return &k->m->node_kind[k->m->node[k->m->dev[rank].node]];
}

bool host_event(cost_model *k, const site *s, const coords *c, u32 rank, cost_info *out, cost_event *e) {
  const node_kind *nk = node_of(k, rank);
  if (nk->host_mem_bw <= 0) {
    diag(k->c, E_RATE, s->i->where, "%s on the host: the machine does not say the bandwidth of host memory",
         op_row_of(s->i->op)->name);
    diag_hint(k->c, "add `host: {memory-bandwidth: 200 GB/s}` to its nodes, or `hostbw=200GB/s` in one line");
    return false;
  }
  if (!compute_event(k, s, c, k->m->dev[rank].kind, out, e)) return false;
  e->host = true;
  const double ranks = MAX(ranks_of_nodes(k, s->p)[k->m->dev[rank].node], 1u);
  const double moved = e->bytes / (nk->host_mem_bw * nk->host_mem_eff),
               made = nk->host_rate > 0 ? e->flops / nk->host_rate : 0;
  *out = (cost_info){.ps = round_ps(MAX(moved, made) * ranks * 1e12), .source = COST_ROOFLINE, .spread = -1};
  return true;
}

u32 host_costs(cost_model *k, const site *s, bool uneven, i64 *ps) {
  const group_info *gi = group_get(s->p->sp, s->g);
  coords room;
  if (!group_kind(k, s->g, s->i->where)) return 0;
  for (u32 m = 0; m < gi->nranks; m++) {
    cost_info cost;
    cost_event e;
    if (!host_event(k, s, coords_at(s, s->g, m, uneven, &room), gi->ranks[m], &cost, &e)) return 0;
    ps[m] = cost.ps;
  }
  return fold(ps, gi->nranks);
}

void host_row(cost_model *k, const cost_event *e, u32 rank, cost_row *out) {
  const node_kind *nk = node_of(k, rank);
  const bool memory =
      nk->host_rate <= 0 || e->bytes / (nk->host_mem_bw * nk->host_mem_eff) >= e->flops / nk->host_rate;
  out->source = COST_ROOFLINE;
  out->at = nk->host.at;
  out->figure = arena_printf(k->a, "host of %s: %s, %s", sym_str(k->m->c, machine_kind_of(k->m, rank)->name),
                             memory ? "memory bandwidth" : "rate", op_row_of(e->op)->name);
}
