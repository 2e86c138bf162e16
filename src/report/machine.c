// machine.c - a machine as a person would describe it. Its exact text is machine_print's.
#include "report/report.h"

static cell rate(cell_kind kind, double x) { return x > 0 ? cell_x(kind, x) : cell_none(); }

void report_machine(report *r, arena *a, const machine *m) {
  (void)a;
  static const column nodes[] = {{"nodes", "nodes"},
                                 {"devices", "devices"},
                                 {"link", "link"},
                                 {"link_bytes_per_s", "each way"},
                                 {"host_bytes_per_s", "host"},
                                 {"host_memory_bytes", "host memory"},
                                 {"host_memory_bytes_per_s", "bandwidth"},
                                 {"nics", "NICs"},
                                 {"nic_bytes_per_s", "each"}};
  static const column devices[] = {{"device", "device"},
                                   {"count", "count"},
                                   {"memory_bytes", "memory"},
                                   {"usable_bytes", "usable"},
                                   {"memory_bytes_per_s", "bandwidth"},
                                   {"f16_flop_per_s", "f16"},
                                   {"bf16_flop_per_s", "bf16"},
                                   {"f32_flop_per_s", "f32"},
                                   {"f64_flop_per_s", "f64"}};
  report_fact(r, "machine", "machine", cell_text(sym_str(m->c, m->name)));
  report_fact(r, "about", "about", cell_text(sym_str(m->c, m->about)));
  report_fact(r, "ranks", "devices", cell_i(CELL_INT, m->nranks));
  report_gap(r);
  report_table(r, "nodes", nodes, COUNT_OF(nodes));
  for (u32 i = 0; i < m->nnode_kinds; i++) {
    const node_kind *k = &m->node_kind[i];
    const bool many = k->ndevs > 1, host = k->host.shape != LINK_NONE;
    const char *link = !many                          ? "none"
                       : !machine_joined(k)           ? "none: cannot communicate"
                       : k->inside.shape == LINK_NONE ? "through the host"
                                                      : link_name(k->inside.shape);
    report_row(r, (cell[]){cell_i(CELL_INT, k->count), cell_i(CELL_INT, k->ndevs), cell_text(link),
                           rate(CELL_RATE, many ? k->inside.bw : 0), rate(CELL_RATE, host ? k->host.bw : 0),
                           k->host_bytes ? cell_i(CELL_BYTES, k->host_bytes) : cell_none(),
                           rate(CELL_RATE, k->host_mem_bw), cell_i(CELL_INT, k->nics),
                           rate(CELL_RATE, k->nics ? k->nic_bw : 0)});
  }
  report_gap(r);
  report_table(r, "devices", devices, COUNT_OF(devices));
  for (u32 i = 0; i < m->nkinds; i++) {
    const device_kind *k = &m->kind[i];
    u32 count = 0;
    for (u32 d = 0; d < m->nranks; d++) count += m->dev[d].kind == i;
    report_row(r, (cell[]){cell_text(sym_str(m->c, k->name)), cell_i(CELL_INT, count),
                           cell_i(CELL_BYTES, k->mem_bytes), cell_i(CELL_BYTES, k->usable_bytes),
                           rate(CELL_RATE, k->mem_bw), rate(CELL_FLOPS, k->rate[DT_F16]),
                           rate(CELL_FLOPS, k->rate[DT_BF16]), rate(CELL_FLOPS, k->rate[DT_F32]),
                           rate(CELL_FLOPS, k->rate[DT_F64])});
  }
}

void report_machines(report *r, ctx *c, arena *a) {
  static const column cols[] = {{"name", "machine"}, {"ranks", "devices"},       {"nodes", "nodes"},
                                {"device", NULL},    {"memory_bytes", "memory"}, {"about", "about"}};
  const char *const *names;
  u32 n = machine_presets(a, &names);
  report_table(r, "machines", cols, COUNT_OF(cols));
  for (u32 i = 0; i < n; i++) {
    const u32 before = diag_count(c);
    const machine *m = machine_load(c, a, names[i]);
    if (!m) { // somebody's own
      const char *why = diag_count(c) > before ? diag_get(c, before).message : "it cannot be read";
      report_row(r, (cell[]){cell_text(names[i]), cell_none(), cell_none(), cell_none(), cell_none(),
                             cell_text(arena_printf(a, "error: %s", why))});
    }
    diag_truncate(c, before); // `heddle machines NAME` says it
    if (!m) continue;
    report_row(r, (cell[]){cell_text(names[i]), cell_i(CELL_INT, m->nranks), cell_i(CELL_INT, m->nnodes),
                           cell_text(sym_str(c, m->kind[0].name)), cell_i(CELL_BYTES, m->kind[0].mem_bytes),
                           cell_text(sym_str(c, m->about))});
  }
}
