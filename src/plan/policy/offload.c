// offload.c - what lies in host memory, as a strategy says it. What becomes of it in the program: plan/offload.c.
#include "plan/plan.h"

static bool is_there(const prog *src, const plan *pn, loc at) {
  for (u32 k = 0; choice_word(CHOICE_offload, k); k++) {
    const char *why = pn->offload >> k & 1 ? plan_offload_absent(src, pn, k) : NULL;
    if (!why) continue;
    diag(src->c, E_STRATEGY, at, "offload=%s: %s", choice_word(CHOICE_offload, k), why);
    diag_hint(src->c, pn->train ? "leave out %s, or use --optimizer adam" : "leave out %s, or use --train",
              choice_word(CHOICE_offload, k));
    return false;
  }
  return true;
}

// Every node has memory that is said, and a link to it.
static bool has_host(ctx *c, const machine *m, loc at) {
  for (u32 k = 0; k < m->nnode_kinds; k++) {
    const node_kind *nk = &m->node_kind[k];
    if (nk->host_bytes && nk->host.shape != LINK_NONE) continue;
    u32 node = 0, rank = 0;
    while (node < m->nnodes && m->node[node] != k) node++;
    while (rank + 1 < m->nranks && m->dev[rank].node != node) rank++;
    diag(c, E_STRATEGY, at, "offload: the machine %s does not say %s (node %u, %u x %s)",
         sym_str(m->c, m->name),
         nk->host_bytes ? "how its devices reach host memory" : "how much host memory its nodes have", node,
         nk->ndevs, sym_str(m->c, machine_kind_of(m, rank)->name));
    diag_hint(c, "add `host: {bandwidth: 16 GB/s, memory: 512 GiB}` to its nodes, or `pcie=16GB/s "
                 "hostmem=512GiB` to --machine");
    return false;
  }
  return true;
}

// Somebody must say how fast the host is: its memory decides.
static bool has_processor(ctx *c, const machine *m, loc at) {
  for (u32 k = 0; k < m->nnode_kinds; k++) {
    const node_kind *nk = &m->node_kind[k];
    if (nk->host_mem_bw > 0) continue;
    u32 node = 0;
    while (node < m->nnodes && m->node[node] != k) node++;
    diag(c, E_STRATEGY, at, "update=host: the machine %s does not say the bandwidth of host memory (node %u)",
         sym_str(m->c, m->name), node);
    diag_hint(c, "add `host: {memory-bandwidth: 200 GB/s}` to its nodes, or `hostbw=200GB/s` to --machine");
    return false;
  }
  return true;
}

static bool may_update(const prog *src, const plan *pn, const hybrid_opts *o, loc at) {
  if (!(pn->offload & OFFLOAD_STATES)) {
    diag(src->c, E_STRATEGY, at, "update=host: the host updates weights whose optimizer states lie there");
    diag_hint(src->c, "add states to offload, or leave out update");
    return false;
  }
  return !o->k || has_processor(src->c, cost_model_machine(o->k), at);
}

bool policy_offload(const prog *src, plan *pn, const hybrid_opts *o) {
  const loc at = o->said ? o->said->of[CHOICE_offload].at : (loc){0};
  pn->offload = (u8)o->s.offload.n, pn->prefetch = pn->offload ? (u8)o->s.prefetch.n : 0;
  if (!pn->offload) return true;
  if (!is_there(src, pn, at) || (o->k && !has_host(src->c, cost_model_machine(o->k), at))) return false;
  pn->host_update = choice_is(CHOICE_update, o->s.update, "host");
  return !pn->host_update || may_update(src, pn, o, o->said ? o->said->of[CHOICE_update].at : (loc){0});
}
