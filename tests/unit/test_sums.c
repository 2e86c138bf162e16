// test_sums.c - gradients that are summed beside the last backward: the function that does so ends with the gradient that is
// made last, which is when its task has ended.
#include "split_model.h"

static const instr *maker(const func_info *f, value v) {
  return val(f, v)->def ? &f->body.v[val(f, v)->def - 1] : NULL;
}

// How many gradients a function sums: its result before the last packs all of them, and the last is the one made last, as
// it is before it is summed.
static u32 sums_of(const func_info *f, u8 on) {
  u32 n = 0, latest = 0;
  for (u32 k = 0; k < f->body.n; k++) n += f->body.v[k].strm == on;
  if (!n) return 0;
  const instr *all = maker(f, f->rets.v[f->rets.n - 2]);
  REQUIRE(all && all->op == OP_pack);
  for (u32 k = 0; k < all->nopd; k++) {
    value v = opd_of(f, all, k);
    while (maker(f, v) && maker(f, v)->strm == on) v = opd_of(f, maker(f, v), 0);
    latest = MAX(latest, val(f, v)->def);
  }
  CHECK_EQ_I64(val(f, f->rets.v[f->rets.n - 1])->def, latest);
  return n;
}

TEST(sums_end_with_the_last_gradient) {
  static const char *const lines[] = {"dp=2 mb=2 overlap=dp", "dp=2 pp=2 mb=2 overlap=pp+dp",
                                      "dp=2 pp=2 mb=2 schedule=zb-h1 overlap=pp+dp",
                                      "dp=2 zero=1 overlap=dp"};
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    const hybrid_opts h = {
        .s = strategy_of("%s", lines[i]), .train = true, .optim = optim_default(OPTIM_ADAM)};
    split_model m = split_open("gpt2:layers=4,hidden=32,heads=4,vocab=64", 0, &h);
    CHECK_MSG(m.p != NULL, "%s: %s", lines[i], diag_render(m.c, m.a));
    REQUIRE(m.p != NULL);
    const u8 on = (u8)stream_of(m.p, m.pn->sum_stream).i;
    u32 n = 0, functions = 0;
    for (u32 f = 1; f < m.p->funcs.n; f++) {
      const u32 sums = f == m.p->main.i ? 0 : sums_of(m.p->funcs.v[f], on);
      n += sums, functions += sums > 0;
    }
    CHECK_MSG(n >= 4 && functions, "%s: %u sums in %u functions", lines[i], n, functions);
    split_close(&m);
  }
}
