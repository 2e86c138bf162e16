// test_host_main.c - main of a plan that offloads: communication stays on the devices, and what comes back is fetched for one step
// at a time.
#include "split_model.h"

static split_model offloaded(const char *model, dtype t, optimizer of, const char *line) {
  hybrid_opts h = {.s = strategy_of("%s", line), .train = true, .optim = optim_default(of)};
  h.optim.master = true;
  split_model m = {.c = ctx_new(), .a = arena_new()};
  m.src = front_load(m.c, model, &(front_opts){.batch = 8, .seq = 16, .loss = true, .t = t});
  REQUIRE(m.src && pass_loss(m.src));
  m.pl = planner_new(m.src);
  m.pn = policy_hybrid(m.pl, m.a, &h);
  m.p = m.pn ? plan_apply(m.pl, m.pn, NULL) : NULL;
  CHECK_MSG(m.p != NULL, "%s: %s", line, diag_render(m.c, m.a));
  REQUIRE(m.p != NULL);
  return m;
}

// Adafactor sums over rows and columns, of which ranks have pieces, between what the host computes.
TEST(host_main_communicates_on_the_devices) {
  static const char *const lines[] = {"dp=2 zero=1 offload=states update=host",
                                      "dp=2 zero=2 mb=2 offload=grads+states update=host"};
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    split_model m = offloaded("mlp-xs:layers=2,hidden=8", DT_F16, OPTIM_ADAFACTOR, lines[k]);
    const func_info *f = func_get(m.p, m.p->main);
    u32 sums = 0, hosts = 0;
    for (u32 j = 0; j < f->body.n; j++) {
      const instr *i = &f->body.v[j];
      const bool comm = op_row_of(i->op)->flags & OPF_COMM;
      sums += i->op == OP_all_reduce && i->flags & INSTR_UPDATE;
      hosts += !!(i->flags & INSTR_HOST);
      CHECK_MSG(!comm || !(i->flags & INSTR_HOST), "%s: %s on the host", lines[k], op_row_of(i->op)->name);
    }
    CHECK(sums >= 6 && hosts >= 8); // three a weight; its statistics, norm, update and cast
    split_close(&m);
  }
}

// Of what an I leaves to its W each layer's part comes for that layer.
TEST(host_main_fetches_for_one_step) {
  static const char *const lines[] = {"pp=2 schedule=zb-h1 overlap=none prefetch=1 offload=params+acts",
                                      "pp=2 mb=2 schedule=zb-h1 prefetch=2 offload=params+acts"};
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    split_model m =
        offloaded("gpt2:layers=8,hidden=32,heads=4,vocab=64,positions=16", DT_F32, OPTIM_SGD, lines[k]);
    const func_info *f = func_get(m.p, m.p->main);
    u32 *first = ZNEWN(m.a, u32, f->values.n), fetches = 0;
    for (u32 j = f->body.n; j-- > 0;)
      for (u32 o = 0; o < instr_nopd(f, &f->body.v[j]); o++) first[opd_of(f, &f->body.v[j], o)] = j + 1;
    for (u32 j = 0; j < f->body.n; j++) {
      const instr *i = &f->body.v[j];
      if (i->op != OP_copy || strcmp(sym_str(m.c, attr_get(attrs_get(m.p, i->at), A_to)->u.s), "device"))
        continue;
      fetches++;
      for (u32 r = 1; r < i->nres; r++)
        CHECK_MSG(first[i->res + r] == first[i->res], "%s: a fetch for instructions %u and %u", lines[k],
                  first[i->res], first[i->res + r]);
    }
    CHECK_MSG(fetches > 8, "%u", fetches);
    split_close(&m);
  }
}
