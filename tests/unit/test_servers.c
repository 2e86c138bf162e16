// test_servers.c - sync=ps: which rank serves which weight, what lies there, what a step takes by hand, and that a plan
// file says it.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p; // p NULL: refused
  planner *pl;
  plan *pn;
  cost_model *k;
} bed;

static bed open_with(const char *model, const char *on, const char *line) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = 16, .seq = 16, .loss = true});
  REQUIRE(b.src != NULL);
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, machine_load(b.c, b.a, on), NULL);
  const hybrid_opts h = {.s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM)};
  b.pn = policy_hybrid(b.pl, b.a, &h);
  b.p = b.pn ? plan_apply(b.pl, b.pn, b.k) : NULL;
  return b;
}

static void close_bed(bed *b) {
  if (b->p) prog_free(b->p);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

static i64 bytes_of(const bed *b, value v) {
  return shape_bytes(&val_type(b->p, func_get(b->p, b->p->main), v)->s);
}

// Every weight has its states on one rank alone, and no server has more than the mean and one weight.
TEST(servers_have_states_alone_and_are_balanced) {
  bed b = open_with("gpt2:layers=4,hidden=64,heads=4,vocab=128", "dgx-2", "dp=4 mb=2 sync=ps");
  REQUIRE(b.p != NULL);
  const func_info *m = func_get(b.p, b.p->main);
  i64 on[4] = {0}, all = 0, largest = 0;
  for (u32 k = 0; k < m->nparams; k++) {
    const group_info *g = group_get(b.p->sp, val_type(b.p, m, k + 1)->g);
    if (m->params.v[k].r == ROLE_WEIGHT) CHECK_EQ_I64(g->nranks, 4);
    if (m->params.v[k].r != ROLE_STATE) continue;
    if (!CHECK(g->nranks == 1)) continue;
    const i64 n = bytes_of(&b, k + 1);
    on[g->ranks[0]] += n, all += n, largest = MAX(largest, n);
  }
  for (u32 r = 0; r < 4; r++)
    CHECK_MSG(on[r] > 0 && on[r] <= all / 4 + 2 * largest, "server %u has %lld of %lld bytes", r,
              (long long)on[r], (long long)all);
  close_bed(&b);
}

// Eight weights of one size on four ranks: two for each server. When a rank has computed, two weights' gradients go to
// each server, the servers at once, so that each gets (n-1) S bytes for a weight and sends as many; it updates the first
// while the second comes, and the first goes back while it updates the second. An update takes less time than a message,
// so a step takes what the rank computes but for updates, and four messages; the loss is summed beside these.
TEST(servers_take_what_the_formula_says) {
  bed b = open_with("mlp-xs", "dgx-h100", "dp=4 sync=ps"), all = open_with("mlp-xs", "dgx-h100", "dp=4");
  sim_result r, sum;
  REQUIRE(b.p && sim_run(b.c, b.a, b.p, b.k, &(sim_opts){.mode = SIM_FOLDED}, &r));
  REQUIRE(all.p && sim_run(all.c, all.a, all.p, all.k, &(sim_opts){.mode = SIM_FOLDED}, &sum));
  const double in = 450e9 * 0.75, us = 1e6, S = 512 * 512 * 4; // as in cost_collectives_by_hand
  const double message = (4.7 + 3 * 0.8) * us + 3 * S / in * 1e12;
  const i64 eight_updates = sum.busy_ps[0] - sum.comm_ps[0], two_updates = r.busy_ps[0] - r.comm_ps[0],
            update = (eight_updates - two_updates) / 6;
  CHECK_EQ_I64(r.nstreams, 5);
  CHECK(update > 0 && (double)update < message);
  for (u32 k = 0; k < r.nclasses; k++) {
    const i64 *busy = r.busy_ps + k * r.nstreams;
    for (u32 s = 1; s < r.nstreams; s++) CHECK_CLOSE((double)busy[s], 4 * message, 1e-7);
    CHECK_EQ_I64(busy[0] - r.comm_ps[k * r.nstreams], two_updates);
    CHECK_EQ_I64(r.makespan_ps, two_updates - 2 * update + busy[1]);
  }
  close_bed(&b), close_bed(&all);
}

static bool share_ranks(const prog *p, group x, group y) {
  const group_info *a = group_get(p->sp, x), *b = group_get(p->sp, y);
  for (u32 i = 0; i < a->nranks; i++)
    for (u32 j = 0; j < b->nranks; j++)
      if (a->ranks[i] == b->ranks[j]) return true;
  return false;
}

// A gradient goes to its server when all tasks of its ranks have ended, those of their other stages, too: what makes it comes
// behind them on the same stream.
TEST(servers_wait_for_all_stages_of_a_rank) {
  static const char *const lines[] = {"dp=2 pp=2 mb=4 sync=ps",
                                      "dp=2 pp=2 mb=4 v=2 schedule=interleaved sync=ps", "dp=4 sync=ps",
                                      "dp=2 pp=2 mb=4 schedule=chimera sync=ps"};
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    bed b = open_with("gpt2:layers=4,hidden=64,heads=4,vocab=128", "dgx-2", lines[i]);
    REQUIRE(b.p != NULL);
    const func_info *m = func_get(b.p, b.p->main);
    u32 pushed = 0;
    for (u32 k = 0; k < m->body.n; k++) {
      const instr *in = &m->body.v[k];
      if (in->op != OP_reduce || !attr_int(attrs_get(b.p, in->at), A_server, 0)) continue;
      const u32 made = val(m, opd_of(m, in, 0))->def;
      u32 last = 0; // task that adds to gradients
      for (u32 t = 0; t < m->body.n; t++) {
        const instr *call = &m->body.v[t];
        const bool task =
            call->op == OP_call && call->flags & INSTR_BACKWARD && !(call->flags & INSTR_UPDATE);
        if (task && share_ranks(b.p, in->g, call->g)) last = t + 1;
      }
      CHECK_MSG(last && made > last && m->body.v[made - 1].strm == 0,
                "%s: %u is pushed as %u has made it, tasks to %u", lines[i], k + 1, made, last);
      pushed++;
    }
    CHECK(pushed > 10);
    close_bed(&b);
  }
}

// How long a step of n machines with a GPU each communicates, the longest of the streams.
static double communicates(u32 n, u32 layers, u32 hidden, const char *sync) {
  bed b;
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  sim_result r;
  i64 most = 0;
  b = open_with(arena_printf(a, "mlp-xs:layers=%u,hidden=%u", layers, hidden),
                arena_printf(a, "%ux1 v100 ib=100Gb/s", n), arena_printf(a, "dp=%u %s", n, sync));
  REQUIRE(b.p && sim_run(b.c, b.a, b.p, b.k, &(sim_opts){.mode = SIM_FOLDED}, &r));
  for (u32 k = 0; k < r.nclasses * r.nstreams; k++) most = MAX(most, r.comm_ps[k]);
  close_bed(&b);
  ctx_free(c);
  return (double)most / 1e12;
}

// BytePS (Jiang et al., OSDI 2020): n GPU machines and k machines of servers alone synchronise M bytes at bandwidth B in
// 2n(n-1)M / ((n^2 + kn - 2k) B) at best. Without such machines, k = 0, that is 2(n-1)M / nB, which is what a ring all-reduce takes: weights
// of equal size reach it. Of one weight, whose server is one machine, it is n times that. Start-up times go by taking the difference of two sizes.
TEST(servers_on_all_machines_take_what_byteps_says) {
  const double B = 100e9 / 8 * 0.92; // what large messages reach on the fabric (docs/machines.md)
  for (u32 n = 2; n <= 8; n *= 2) {
    const double k = 0, more = 8 * 4 * (1024. * 1024 - 512 * 512),
                 best = 2. * n * (n - 1) * more / ((n * n + k * n - 2 * k) * B);
    CHECK_CLOSE(communicates(n, 8, 1024, "sync=ps") - communicates(n, 8, 512, "sync=ps"), best, 1e-6);
    CHECK_CLOSE(communicates(n, 1, 1024, "sync=ps") - communicates(n, 1, 512, "sync=ps"), n * best / 8, 1e-6);
  }
}

// Numbers are the model's, and the plan file says servers and reads back.
TEST(servers_compute_what_the_model_does_and_print) {
  static const char *const lines[] = {"dp=2 sync=ps", "dp=2 tp=2 pp=2 mb=4 sync=ps",
                                      "dp=2 pp=2 mb=4 sync=ps schedule=chimera"};
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    bed b = open_with("gpt2:layers=4,hidden=64,heads=4,vocab=128", "dgx-2", lines[i]);
    verify_report v;
    if (!CHECK_MSG(b.p != NULL, "%s: %s", lines[i], diag_render(b.c, b.a))) continue;
    CHECK_MSG(plan_validate(b.p), "%s: %s", lines[i], diag_render(b.c, b.a));
    const bool ok = plan_verify(b.pl, b.pn, NULL, &(verify_opts){.seed = 5}, b.a, &v) && v.passed;
    CHECK_MSG(ok, "%s: %s", lines[i], diag_render(b.c, b.a));
    strbuf text = {.a = b.a};
    plan_print(b.src, b.pn, &text);
    CHECK(strstr(sb_str(&text), "servers: [dp"));
    const plan *back = plan_parse(b.a, b.src, NULL, sym_of(b.c, "plan"), sb_str(&text), text.n);
    strbuf again = {.a = b.a};
    if (CHECK_MSG(back != NULL, "%s: %s", lines[i], diag_render(b.c, b.a))) plan_print(b.src, back, &again);
    CHECK_STR(sb_str(&again), sb_str(&text));
    close_bed(&b);
  }
}
