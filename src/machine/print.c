// print.c - a machine as a machine file. Everything is written out: nothing of it depends on the library of
// device kinds or on defaults, and reading it gives the same machine.
#include "machine/draft.h"

static void put_qty(strbuf *b, const char *key, double x, unit_kind unit) {
  sb_put(b, key);
  unit_print(b, x, unit);
}

static void put_curve(strbuf *b, const char *name, const eff_curve *k, unit_kind unit) {
  sb_fmt(b, "      %s: ", name);
  if (k->n < 2) {
    unit_print(b, k->n ? k->eff[0] : 1, UNIT_NUMBER);
  } else {
    for (u32 i = 0; i < k->n; i++) {
      put_qty(b, i ? ", " : "{", k->size[i], unit);
      put_qty(b, ": ", k->eff[i], UNIT_NUMBER);
    }
    sb_char(b, '}');
  }
  sb_char(b, '\n');
}

static void put_kind(const machine *m, const device_kind *k, strbuf *b) {
  const char *sep = "    rate: {";
  sb_fmt(b, "  %s:\n", sym_str(m->c, k->name));
  for (u32 t = 0; t < DT_COUNT; t++)
    if (k->rate[t] > 0) {
      sb_fmt(b, "%s%s: ", sep, dtype_name((dtype)t));
      unit_print(b, k->rate[t], UNIT_FLOP_PER_S);
      sep = ", ";
    }
  sb_put(b, *sep == ',' ? "}\n" : "");
  put_qty(b, "    vector: ", k->vector, UNIT_FLOP_PER_S);
  put_qty(b, "\n    memory: ", (double)k->mem_bytes, UNIT_BYTES);
  put_qty(b, "\n    usable: ", (double)k->usable_bytes, UNIT_BYTES);
  put_qty(b, "\n    bandwidth: ", k->mem_bw, UNIT_BYTES_PER_S);
  put_qty(b, "\n    launch: ", (double)k->launch_ps, UNIT_PS);
  put_qty(b, "\n    allocation: ", (double)k->alloc_bytes, UNIT_BYTES);
  if (k->cores) sb_fmt(b, "\n    cores: %u", k->cores);
  sb_put(b, "\n    efficiency:\n");
  for (u32 i = 0; i < EFF_KINDS; i++)
    put_curve(b, eff_name((eff_kind)i), &k->eff[i], i < EFF_MEMORY ? UNIT_FLOP : UNIT_BYTES);
  if (!k->spread.n) return;
  sb_put(b, "    spread: ");
  spread_print(&k->spread, b);
  sb_char(b, '\n');
}

static void put_spread(const spread_table *t, strbuf *b) {
  if (!t->n) return;
  sb_put(b, ", spread: ");
  spread_print(t, b);
}

// host: of the node whose host link it is; NULL: another link.
static void put_link(strbuf *b, const char *key, const machine_link *l, const node_kind *host) {
  const bool with_shape = !host;
  if (l->shape == LINK_NONE) return;
  sb_fmt(b, "    %s: {", key);
  if (with_shape) sb_fmt(b, "kind: %s, ", link_name(l->shape));
  put_qty(b, "bandwidth: ", l->bw, UNIT_BYTES_PER_S);
  put_qty(b, ", efficiency: ", l->eff, UNIT_NUMBER);
  put_qty(b, ", start: ", (double)l->start_ps, UNIT_PS);
  put_qty(b, ", step: ", (double)l->step_ps, UNIT_PS);
  if (host && host->host_shared > 1) sb_fmt(b, ", shared: %u", host->host_shared);
  if (host && host->host_bytes) put_qty(b, ", memory: ", (double)host->host_bytes, UNIT_BYTES);
  if (host && host->host_mem_bw > 0) {
    put_qty(b, ", memory-bandwidth: ", host->host_mem_bw, UNIT_BYTES_PER_S);
    put_qty(b, ", memory-efficiency: ", host->host_mem_eff, UNIT_NUMBER);
  }
  if (host && host->host_rate > 0) put_qty(b, ", rate: ", host->host_rate, UNIT_FLOP_PER_S);
  put_spread(&l->spread, b);
  sb_put(b, "}\n");
}

static void put_node(const machine *m, const node_kind *nk, strbuf *b) {
  sb_fmt(b, "  - count: %u\n    devices: ", nk->count);
  for (u32 i = 0, run; i < nk->ndevs; i += run) {
    for (run = 1; i + run < nk->ndevs && nk->dev[i + run] == nk->dev[i]; run++) continue;
    sb_fmt(b, "%s%u %s", i ? " + " : "", run, sym_str(m->c, m->kind[nk->dev[i]].name));
  }
  sb_char(b, '\n');
  if (nk->inside.shape == LINK_NONE) sb_put(b, "    link: none\n");
  put_link(b, "link", &nk->inside, NULL);
  put_link(b, "host", &nk->host, nk);
  if (nk->nics) {
    sb_fmt(b, "    nics: %u x ", nk->nics);
    put_qty(b, "", nk->nic_bw, UNIT_BYTES_PER_S);
    sb_char(b, '\n');
  }
}

static void put_distir(const distir_params *p, strbuf *b) {
  put_qty(b, "distir:\n  launch: ", (double)p->launch_ps, UNIT_PS);
  put_qty(b, "\n  bandwidth: ", p->mem_bw, UNIT_BYTES_PER_S);
  put_qty(b, "\n  rate: ", p->rate, UNIT_FLOP_PER_S);
  put_qty(b, "\n  network: ", p->network, UNIT_BYTES_PER_S);
  sb_put(b, p->nfits ? "\n  all_reduce:\n" : "\n");
  for (u32 i = 0; i < p->nfits; i++) {
    sb_fmt(b, "    %u: [", p->fit[i].n);
    put_qty(b, "", p->fit[i].a, UNIT_NUMBER);
    put_qty(b, ", ", p->fit[i].b, UNIT_NUMBER);
    put_qty(b, ", ", p->fit[i].c, UNIT_NUMBER);
    sb_put(b, "]\n");
  }
}

void machine_print(const machine *m, strbuf *b) {
  sb_put(b, "name: ");
  sb_json_str(b, sym_str(m->c, m->name)); // a JSON string is a quoted YAML scalar
  sb_char(b, '\n');
  if (m->about.i) {
    sb_put(b, "about: ");
    sb_json_str(b, sym_str(m->c, m->about));
    sb_char(b, '\n');
  }
  sb_put(b, "devices:\n");
  for (u32 i = 0; i < m->nkinds; i++) put_kind(m, &m->kind[i], b);
  sb_put(b, "nodes:\n");
  for (u32 i = 0; i < m->nnode_kinds; i++) put_node(m, &m->node_kind[i], b);
  const fabric_info *f = &m->fabric;
  put_qty(b, "fabric: {efficiency: ", f->eff, UNIT_NUMBER);
  put_qty(b, ", oversubscription: ", f->oversub, UNIT_NUMBER);
  if (f->leaf) sb_fmt(b, ", leaf: %u", f->leaf);
  put_qty(b, ", start: ", (double)f->start_ps, UNIT_PS);
  put_qty(b, ", step: ", (double)f->step_ps, UNIT_PS);
  put_spread(&f->spread, b);
  sb_put(b, "}\n");
  put_distir(&m->distir, b);
}
