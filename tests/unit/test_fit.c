// test_fit.c - times that are fitted: what comes out of a line is that line, what is left out tells how good it is, sizes far
// from all that was measured stay the machine's, and a database keeps it.
#include "cost_bed.h"
#include "machine/machine.h"
#include <unistd.h>

// 3 us, 0.05 ps a byte, 0.02 ps a FLOP.
static i64 line(i64 m, i64 k, i64 n) {
  return (i64)(3e6 + 0.05 * (double)(4 * (m * k + k * n + m * n)) + 0.02 * (double)(2 * m * k * n));
}
static measured_event product(arena *a, i64 m, i64 k, i64 n, i64 ps) {
  return (measured_event){arena_printf(a, "matmul f32[%lld,%lld] f32[%lld,%lld] -> f32[%lld,%lld] on a100",
                                       (long long)m, (long long)k, (long long)k, (long long)n, (long long)m,
                                       (long long)n),
                          ps, 0.01, 9, EVENT_MEASURED};
}
enum { ROWS = 24 };
static u32 products(arena *a, measured_event *row, double noise) {
  u64 state = 7;
  for (u32 i = 0; i < ROWS; i++) {
    const i64 m = 64 << i % 4, k = 64 << i / 4 % 3, n = 96 << i / 12;
    row[i] = product(
        a, m, k, n,
        (i64)((double)line(m, k, n) * (1 + noise * ((double)(rng_next(&state) >> 11) * 0x1p-52 - 1))));
  }
  return ROWS;
}

TEST(fit_finds_the_line) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  measured_event row[ROWS + 6];
  event_fit *f;
  u32 left, n = products(a, row, 0);
  for (u32 i = 0; i < 6; i++) // a collective: 5 us, 10 ps a byte, 2 us a member
    row[n++] = (measured_event){
        arena_printf(a, "all_reduce f32 %u B among %u on 1 node, %u each", 1024u << i, 2 + i % 3, 2 + i % 3),
        5000000 + 10 * (1024 << i) + 2000000 * (2 + i % 3), 0, 9, EVENT_MEASURED};
  REQUIRE(cost_fit(c, a, row, n, &f, &left) == 2 && !left);
  CHECK_STR(f[0].kind, "all_reduce f32 on 1 node");
  CHECK_CLOSE(f[0].ps[0], 5e6, 1e-6), CHECK_CLOSE(f[0].ps[1], 10, 1e-6), CHECK_CLOSE(f[0].ps[3], 2e6, 1e-6);
  CHECK_STR(f[1].kind, "matmul f32 on a100");
  CHECK_CLOSE(f[1].ps[0], 3e6, 1e-4), CHECK_CLOSE(f[1].ps[1], 0.05, 1e-3),
      CHECK_CLOSE(f[1].ps[2], 0.02, 1e-3);
  CHECK(f[1].worst < 1e-4 && f[0].worst < 1e-4 && f[1].count == ROWS);
  ctx_free(c);
}

// Times that are up to 10 % off: events that were left out are off by as much, and no term is negative.
TEST(fit_says_how_far_it_is_off) {
  ctx *c = ctx_new();
  measured_event row[ROWS];
  event_fit *f;
  u32 left;
  const u32 n = products(ctx_arena(c), row, 0.1);
  REQUIRE(cost_fit(c, ctx_arena(c), row, n, &f, &left) == 1);
  CHECK_MSG(f->spread > 0.02 && f->spread < 0.12 && f->worst < 0.25 && f->mean <= f->worst, "%g %g",
            f->spread, f->worst);
  for (u32 t = 0; t < FIT_TERMS; t++) CHECK(f->ps[t] >= 0);
  for (u32 i = 0; i < n; i++) row[i].ps = 1000000000 / (i + 1); // falls as sizes grow
  REQUIRE(cost_fit(c, ctx_arena(c), row, n, &f, &left) <= 1);
  for (u32 t = 0; t < FIT_TERMS; t++) CHECK(f->ps[t] >= 0);
  ctx_free(c);
}

TEST(fit_needs_five_events_of_three_sizes) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  measured_event row[6];
  event_fit *f;
  u32 left;
  for (u32 i = 0; i < 6; i++) row[i] = product(a, 64, 64, i < 3 ? 64 : 128, 1000000);
  CHECK(!cost_fit(c, a, row, 6, &f, &left) && left == 1); // two sizes
  for (u32 i = 0; i < 6; i++) row[i] = product(a, 64, 64, 64 + 8 * i, 1000000);
  CHECK(!cost_fit(c, a, row, 4, &f, &left) && left == 1);
  CHECK(cost_fit(c, a, row, 6, &f, &left) == 1);
  for (u32 i = 0; i < 6; i++) row[i].source = EVENT_FITTED; // nothing is made of what was made
  CHECK(!cost_fit(c, a, row, 6, &f, &left) && !left);
  row[0].key = "matmul f32[2,3] f32[4,5] -> f32[2,5] on a100", row[0].source = EVENT_MEASURED; // no product
  CHECK(!cost_fit(c, a, row, 1, &f, &left) && !diag_count(c));
  ctx_free(c);
}

static cost_info price(bed *b, i64 m, i64 k, i64 n) {
  const group g = group_all(b->p->sp, b->mesh);
  const layout none = {0};
  const type opd[] = {matrix(b, DT_F32, m, k, none, g), matrix(b, DT_F32, k, n, none, g)},
             res = matrix(b, DT_F32, m, n, none, g);
  func f = func_new(b->p, sym_fmt(b->c, "f%u", b->p->funcs.n), (loc){0});
  builder at = builder_at(b->p, f);
  at.g = g;
  value v[2];
  for (u32 i = 0; i < 2; i++) v[i] = func_param(b->p, f, opd[i], sym_fmt(b->c, "x%u", i), ROLE_INPUT);
  const u32 i = emit(&at, OP_matmul, (attrset){0}, v, 2, &res, 1);
  cost_info out = {.ps = -1};
  cost_event made_of;
  CHECK(cost_explain(b->k, b->p, func_get(b->p, f), &func_get(b->p, f)->body.v[i - 1], g, 0, &out, &made_of));
  return out;
}

// ---- another program ------------------------------------------------------------------------------------------
TEST(predictor_is_asked_once_and_has_time) {
  bed b = bed_new("1x2 a100", NULL, 1, 1);
  REQUIRE(machine_predictor_start(b.m, b.a, "n=0; while read key; do n=$((n + 1)); echo $n; done", 0));
  i64 ps = 0;
  CHECK(machine_predict(b.m, b.c, "first", &ps) == PREDICTION_KNOWN && ps == 1000000);
  CHECK(machine_predict(b.m, b.c, "second", &ps) == PREDICTION_KNOWN && ps == 2000000);
  CHECK(machine_predict(b.m, b.c, "first", &ps) == PREDICTION_KNOWN && ps == 1000000);
  const cost_info x = price(&b, 64, 64, 96);
  CHECK(x.source == COST_PREDICTED && x.ps == 3000000);
  machine_predictor_stop(b.m);
  REQUIRE(machine_predictor_start(b.m, b.a, "read key; echo -; exec sleep 5", 1000));
  CHECK(machine_predict(b.m, b.c, "first", &ps) == PREDICTION_NONE);
  CHECK(machine_predict(b.m, b.c, "second", &ps) == PREDICTION_FAILED);
  CHECK_MSG(diag_count(b.c) == 1 && strstr(diag_get(b.c, 0).message, "no answer within 1 s"), "%s",
            diag_render(b.c, b.a));
  CHECK(machine_predict(b.m, b.c, "third", &ps) == PREDICTION_FAILED); // told again, not asked again
  CHECK(strstr(diag_get(b.c, 1).message, "no answer within 1 s"));
  machine_predictor_stop(b.m);
  bed_free(&b);
}

TEST(fit_answers_what_was_not_measured) {
  bed b = bed_new("1x2 a100", NULL, 1, 1), plain = bed_new("1x2 a100", NULL, 1, 1);
  const char *path = arena_printf(b.a, "%s/fit-%d.db", test_build(), (int)getpid());
  measured_event row[ROWS];
  event_fit *f;
  u32 left;
  products(b.a, row, 0);
  unlink(path);
  event_db *db = event_db_open(b.c, b.a, path, true);
  REQUIRE(db && event_db_put(db, "1x2 a100", "v", row, ROWS));
  REQUIRE(cost_fit(b.c, b.a, row, ROWS, &f, &left) == 1 && event_db_put_fits(db, "1x2 a100", f, 1));
  REQUIRE(event_db_put_fits(db, "1x2 a100", f, 1)); // in place of that
  event_db_close(db);
  CHECK_MSG(machine_events_read(b.m, b.a, path), "%s", diag_render(b.c, b.a));
  REQUIRE(b.m->events && b.m->events->nfits == 1);
  cost_info x = price(&b, 64, 64, 96);
  CHECK(x.source == COST_EVENT && x.ps == line(64, 64, 96));
  x = price(&b, 80, 72, 100);
  CHECK(x.source == COST_FITTED && x.spread == f->spread);
  CHECK_CLOSE((double)x.ps, (double)line(80, 72, 100), 1e-3);
  CHECK_STR(cost_model_row(b.k, x.row)->figure, "fitted: matmul f32 on a100");
  CHECK_EQ_I64(cost_model_row(b.k, x.row)->count, ROWS);
  x = price(&b, 4096, 4096, 4096); // more than twice the largest
  CHECK(x.source < COST_EVENT && x.ps == price(&plain, 4096, 4096, 4096).ps);
  unlink(path);
  bed_free(&b), bed_free(&plain);
}
