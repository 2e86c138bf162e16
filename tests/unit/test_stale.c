// test_stale.c - asynchronous pipelines: which versions of weights tasks read, how many are kept, what comes of them by
// hand, what an update takes when the pipeline is full, and what is refused.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- schedules ------------------------------------------------------------------------------------------
static const sched *make(ctx *c, arena *a, const char *name, u32 places, u32 micro, u32 each) {
  const sched_shape x = {.places = places, .chunks = 1, .micro = micro, .group = each, .backward = true};
  return sched_make(c, a, name, &x, (loc){0});
}

// Tasks of a place in their order: a forward reads what updates before it have left, and its backward the same; what
// is still to be read is never more than the versions that a stage keeps.
static void check_versions(const sched *s, u32 place, u32 each, u32 keeps, bool stashed) {
  u32 *read = calloc(s->nmicro, sizeof *read), updates = 0, back = 0, most = 0, forwards = 0;
  for (u32 k = 0; k < s->seq[place].n; k++) {
    const sched_task *t = &s->seq[place].v[k];
    const sched_row *row = sched_row_find(s->name);
    const sched_shape x = {
        .places = s->nplaces, .chunks = 1, .micro = s->nmicro, .group = each, .backward = true};
    const u32 v = sched_version(row, &x, t->stage, t->mb);
    CHECK_EQ_I64(t->version, v % keeps);
    if (t->kind == TASK_F) {
      CHECK_MSG(stashed ? v == updates : v <= updates && v + 1 >= updates, "%s %u: F%u reads %u of %u",
                s->name, place, t->mb, v, updates);
      read[t->mb] = v, forwards++;
    } else {
      CHECK_EQ_I64(v, read[t->mb]);
      back = t->mb + 1;
      if (back % each == 0) updates++;
    }
    u32 oldest = updates; // the newest is there in any case
    for (u32 m = back; m < forwards; m++) oldest = MIN(oldest, read[m]);
    if (!stashed && back < s->nmicro) oldest = MIN(oldest, sched_version(row, &x, t->stage, back));
    most = MAX(most, updates - oldest + 1);
  }
  CHECK_MSG(most == keeps, "%s: place %u keeps %u versions, not %u", s->name, place, most, keeps);
  free(read);
}

TEST(stale_tasks_read_the_versions_of_the_formulas) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 P = 2; P <= 8; P++) {
    const sched *s = make(c, a, "pipedream", P, 4 * P, 0);
    for (u32 q = 0; s && q < P; q++) check_versions(s, q, 1, P - q, true);
    for (u32 each = P; each <= 2 * P; each++) {
      s = make(c, a, "pipedream-2bw", P, 4 * each, each);
      for (u32 q = 0; s && q < P; q++) check_versions(s, q, each, 2, false);
    }
    CHECK(!make(c, a, "2bw", P, 4 * P + 1, P) && !make(c, a, "2bw", P, 4 * P, P - 1));
  }
  CHECK(!make(c, a, "pipedream", 256, 4, 0) && make(c, a, "pipedream", 255, 4, 0));
  arena_free(a);
  ctx_free(c);
}

// Where F + B of each place is the same, every place is busy from one update to the next: K more microbatches take K (F + B).
TEST(stale_orders_have_no_bubble_when_the_pipeline_is_full) {
  static const char *const names[] = {"pipedream", "pipedream-2bw"};
  const u32 cost[TASK_KINDS] = {[TASK_F] = 10, [TASK_B] = 20};
  for (u32 i = 0; i < COUNT_OF(names); i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    sched_times t[2];
    const sched *s[2] = {make(c, a, names[i], 4, 16, 4), make(c, a, names[i], 4, 20, 4)};
    if (!i) s[0] = make(c, a, names[i], 4, 16, 0), s[1] = make(c, a, names[i], 4, 20, 0);
    for (u32 k = 0; k < 2; k++) REQUIRE(s[k] && sched_time(c, a, s[k], cost, (loc){0}, &t[k]));
    CHECK_EQ_I64(t[1].makespan - t[0].makespan, 4 * 30);
    arena_free(a);
    ctx_free(c);
  }
}

// As text and back, with groups and without versions that tell it from 1f1b.
static void check_text(ctx *c, arena *a, const char *name, u32 places, u32 micro, u32 each) {
  const sched *s = make(c, a, name, places, micro, each);
  REQUIRE(s);
  strbuf b = {.a = a};
  sched_print(s, &b);
  const sched *back = sched_parse(c, a, sym_of(c, "text"), sb_str(&b), b.n);
  sched_shape x = {.places = places, .chunks = 1, .micro = micro, .backward = true};
  if (!CHECK_MSG(back && sched_equal(back, s), "%s", diag_render(c, a))) return;
  const sched_row *r = sched_row_of_versions(c, back, "text", &x, (loc){0});
  CHECK_MSG(r && !strcmp(r->name, name) && x.group == each, "%s of %u places, %u: %s", name, places, micro,
            diag_render(c, a));
}

TEST(stale_schedules_read_back) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 P = 2; P <= 5; P++) {
    for (u32 K = 1; K <= 3 * P; K++) check_text(c, a, "pipedream", P, K, 0);
    for (u32 each = P; each <= P + 2; each++)
      for (u32 n = 1; n <= 4; n++) check_text(c, a, "pipedream-2bw", P, n * each, each);
  }
  arena_free(a);
  ctx_free(c);
}

// ---- plans ----------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p; // p NULL: refused
  planner *pl;
  plan *pn;
  cost_model *k;
} bed;

static bed open_with(const char *model, i64 batch, optimizer o, const char *line) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = batch, .seq = 16, .loss = true});
  REQUIRE(b.src != NULL);
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, machine_load(b.c, b.a, "dgx-2"), NULL);
  strategy_set set;
  hybrid_opts h = {.train = true, .optim = optim_default(o)};
  REQUIRE(strategy_parse(b.c, b.a, line, &set) && strategy_one(b.c, &set, &h.s));
  b.pn = policy_hybrid(b.pl, b.a, &h);
  b.p = b.pn ? plan_apply(b.pl, b.pn, b.k) : NULL;
  return b;
}

static void close_bed(bed *b) {
  prog_free(b->p);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

// One layer on each of P places, D x D weights, mean squares: microbatch after microbatch by hand, with the versions that
// the papers have. Of a weight on several places the gradients are summed, and the first of these says which version.
enum { P = 4, K = 12, D = 6, ROWS = 2 };
typedef struct {
  double w[K + 1][P][D][D]; // by version
  u32 of[P];                // which weight a place has
} history;

static void product(const double *x, const double *w, double *y) {
  for (u32 i = 0; i < ROWS; i++)
    for (u32 j = 0; j < D; j++) {
      y[i * D + j] = 0;
      for (u32 k = 0; k < D; k++) y[i * D + j] += x[i * D + k] * w[k * D + j];
    }
}

// Adds the gradient of one microbatch's part of the loss to g; returns that part.
static double one_microbatch(const history *h, const u32 *version, const double *x, const double *target,
                             double *g) {
  double in[P + 1][ROWS * D], made[P][ROWS * D], d[ROWS * D], loss = 0;
  memcpy(in[0], x, sizeof in[0]);
  for (u32 s = 0; s < P; s++) {
    product(in[s], &h->w[version[s]][h->of[s]][0][0], made[s]);
    for (u32 k = 0; k < ROWS * D; k++) in[s + 1][k] = made[s][k] > 0 ? made[s][k] : 0;
  }
  for (u32 k = 0; k < ROWS * D; k++) {
    const double off = in[P][k] - target[k];
    loss += off * off / (K * ROWS), d[k] = 2 * off / (K * ROWS);
  }
  for (u32 s = P; s-- > 0;) {
    double back[ROWS * D] = {0};
    for (u32 i = 0; i < ROWS; i++)
      for (u32 j = 0; j < D; j++) {
        if (made[s][i * D + j] <= 0) continue;
        for (u32 k = 0; k < D; k++) {
          g[(h->of[s] * D + k) * D + j] += in[s][i * D + k] * d[i * D + j];
          back[i * D + k] += h->w[version[s]][h->of[s]][k][j] * d[i * D + j];
        }
      }
    memcpy(d, back, sizeof d);
  }
  return loss;
}

static double by_hand(history *h, const double *x, const double *target, u32 each, double lr) {
  double loss = 0, g[P * D * D] = {0};
  for (u32 m = 0; m < K; m++) {
    u32 version[P];
    for (u32 s = 0; s < P; s++) {
      u32 first = 0; // place with the weight
      while (h->of[first] != h->of[s]) first++;
      const u32 late = each == 1 ? P - 1 - first : 1,
                turn = m / each; // PipeDream: as many as are under way; 2BW: one
      version[s] = turn > late ? turn - late : 0;
    }
    loss += one_microbatch(h, version, x + m * ROWS * D, target + m * ROWS * D, g);
    if ((m + 1) % each) continue;
    const u32 t = (m + 1) / each;
    for (u32 k = 0; k < P * D * D; k++)
      (&h->w[t][0][0][0])[k] = (&h->w[t - 1][0][0][0])[k] - lr * g[k], g[k] = 0;
  }
  return loss;
}

static void check_by_hand(const char *model, const u32 *of, const char *line, u32 each) {
  bed b = open_with(model, K * ROWS, OPTIM_SGD, line);
  plan_numbers got;
  eval_array in[P + 2] = {{.data = NULL}};
  if (!CHECK_MSG(b.p && plan_validate(b.p), "%s: %s", line, diag_render(b.c, b.a))) return;
  const func_info *m = func_get(b.src, b.src->main);
  REQUIRE(plan_evaluate(b.src, b.p, 7, b.a, &got) && eval_telling(b.src, 7, in, m->nparams, b.a));
  history *h = calloc(1, sizeof *h);
  memcpy(h->of, of, sizeof h->of);
  double x[K * ROWS * D], target[K * ROWS * D];
  u32 s = 0, weights = 0;
  for (u32 k = 0; k < P; k++) weights = MAX(weights, of[k] + 1);
  REQUIRE(m->nparams == weights + 2);
  for (u32 k = 0; k < m->nparams; k++) {
    const char *name = sym_str(b.c, m->values.v[k + 1].name);
    double *to = m->params.v[k].r == ROLE_WEIGHT ? &h->w[0][s++][0][0] : !strcmp(name, "x") ? x : target;
    const i64 n = shape_elems(&in[k].s);
    for (i64 e = 0; e < n; e++)
      to[e] = in[k].s.t == DT_F32 ? (double)((const float *)in[k].data)[e] : plan_element(&in[k], e);
  }
  const double loss = by_hand(h, x, target, each, optim_default(OPTIM_SGD).lr);
  CHECK_CLOSE(plan_element(&got.v[0], 0), loss, 1e-9);
  u32 seen = 0;
  for (u32 k = 0; k < got.n; k++) {
    u32 layer;
    if (sscanf(got.name[k], "h.%u.w.new", &layer) != 1 || plan_result_kind(got.name[k]) != RESULT_NEW)
      continue;
    seen++;
    for (u32 e = 0; e < D * D; e++) {
      const double want = (&h->w[K / each][layer][0][0])[e];
      CHECK_MSG(fabs(plan_element(&got.v[k], e) - want) < 1e-9 * fmax(1, fabs(want)),
                "%s: %s[%u] is %g, not %g", line, got.name[k], e, plan_element(&got.v[k], e), want);
    }
  }
  CHECK_EQ_I64(seen, weights);
  free(h);
  close_bed(&b);
}

TEST(stale_numbers_are_those_of_the_papers_by_hand) {
  static const struct {
    const char *model;
    u32 of[P];
  } model[] = {{"mlp-xs:layers=4,hidden=6", {0, 1, 2, 3}}, {"tests/tied.heddle", {0, 1, 1, 0}}};
  for (u32 k = 0; k < COUNT_OF(model); k++) {
    check_by_hand(model[k].model, model[k].of, "pp=4 mb=12 schedule=pipedream", 1);
    check_by_hand(model[k].model, model[k].of, "pp=4 mb=12 schedule=2bw", 4);
    check_by_hand(model[k].model, model[k].of, "pp=4 mb=12 schedule=2bw group=6", 6);
  }
}

static const char *const plans[] = {"pp=2 mb=8 schedule=pipedream",
                                    "pp=4 mb=8 schedule=pipedream",
                                    "pp=4 mb=8 schedule=2bw",
                                    "dp=2 pp=2 mb=8 schedule=pipedream",
                                    "tp=2 pp=2 mb=8 schedule=2bw group=4",
                                    "dp=2 pp=2 mb=4 schedule=2bw zero=1",
                                    "pp=2 mb=4 schedule=pipedream recompute=full",
                                    "pp=3 mb=4 schedule=pipedream overlap=none",
                                    "tp=2 pp=2 mb=8 schedule=pipedream tp.stages=2/1",
                                    "tp=2 pp=2 mb=4 schedule=2bw tp.stages=1/2"};

static void check_against_one_device(const char *model) {
  for (u32 i = 0; i < COUNT_OF(plans); i++) {
    bed b = open_with(model, 16, OPTIM_ADAM, plans[i]);
    verify_report r;
    if (CHECK_MSG(b.p != NULL, "%s: %s", plans[i], diag_render(b.c, b.a))) {
      CHECK_MSG(plan_validate(b.p), "%s: %s", plans[i], diag_render(b.c, b.a));
      const bool ok = plan_verify(b.pl, b.pn, NULL, &(verify_opts){.seed = 3}, b.a, &r) && r.passed;
      CHECK_MSG(ok, "%s: %s", plans[i], diag_render(b.c, b.a));
      strbuf text = {.a = b.a}, again = {.a = b.a};
      plan_print(b.src, b.pn, &text);
      const plan *back = plan_parse(b.a, b.src, NULL, sym_of(b.c, "plan"), sb_str(&text), text.n);
      if (CHECK_MSG(back != NULL, "%s: %s", plans[i], diag_render(b.c, b.a))) plan_print(b.src, back, &again);
      CHECK_STR(sb_str(&again), sb_str(&text));
    }
    close_bed(&b);
  }
}

TEST(stale_plans_compute_what_one_device_does_with_the_same_staleness) {
  check_against_one_device("llama2-7b:layers=4,hidden=32,heads=4,kv_heads=4,ffn=64,vocab=64");
}

// Embedding and head are one weight, on the first and the last place.
TEST(stale_plans_share_weights_between_their_ends) {
  check_against_one_device("gpt2:layers=4,hidden=32,heads=4,vocab=64");
}

// ---- what they cost -----------------------------------------------------------------------------------
// Two layers on each of four places. PipeDream's place s keeps P - s versions while a backward runs, and no other has any
// of them; of the first layer, whose weights no backward reads, there is the newest alone. 2BW keeps two.
TEST(stale_memory_is_the_versions_of_the_formulas) {
  static const char *const lines[] = {"pp=4 mb=16 schedule=pipedream", "pp=4 mb=16 schedule=2bw"};
  const i64 layer = 512 * 512 * 4;
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    bed b = open_with("mlp-xs", 16, OPTIM_ADAM, lines[i]);
    sim_result r;
    REQUIRE(b.p && sim_run(b.c, b.a, b.p, b.k, &(sim_opts){.mode = SIM_FLAT}, &r));
    for (u32 q = 1; q < 4; q++) {
      const i64 got = r.cls[r.class_of_rank[q]].peak_kind[MEM_PARAM], want = (i64)(i ? 2 : 4 - q) * 2 * layer;
      CHECK_MSG(got == want, "%s: place %u has %lld bytes of weights, not %lld", lines[i], q, (long long)got,
                (long long)want);
    }
    close_bed(&b);
  }
}

// Of an embedding that is the head as well place 0 updates both when it has run the backward; the last one of P places then
// has run (P-1)/2 more of them, where forwards and backwards take turns. So that many of the P versions under way are read
// no more there, and the first place, of whose weight no backward reads anything, has the newest alone.
TEST(stale_memory_of_a_shared_weight_is_that_of_the_formula) {
  const i64 table = 16384 * 32 * 4; // more than all the rest
  for (u32 places = 2; places <= 8; places *= 2)
    for (u32 two = 0; two < 2; two++) {
      char line[64];
      snprintf(line, sizeof line, "pp=%u mb=32 overlap=none schedule=%s", places, two ? "2bw" : "pipedream");
      bed b = open_with("gpt2:layers=8,hidden=32,heads=4,vocab=16384", 32, OPTIM_ADAM, line);
      sim_result r;
      REQUIRE(b.p && sim_run(b.c, b.a, b.p, b.k, &(sim_opts){.mode = SIM_FLAT}, &r));
      for (u32 q = 0; q < places; q += places - 1) {
        const i64 got = r.cls[r.class_of_rank[q]].peak_kind[MEM_PARAM] / table,
                  want = two ? 2
                         : q ? places - (places - 1) / 2
                             : 1;
        CHECK_MSG(got == want, "%s: place %u keeps %lld versions, not %lld", line, q, (long long)got,
                  (long long)want);
      }
      close_bed(&b);
    }
}

// In the steady state a microbatch takes what the busiest place does for it, with its update; a step alone takes longer.
TEST(stale_steps_take_what_the_busiest_place_does) {
  bed b = open_with("mlp-xs", 512, OPTIM_SGD, "pp=4 mb=16 schedule=pipedream");
  sim_result r;
  REQUIRE(b.p && sim_run(b.c, b.a, b.p, b.k, &(sim_opts){.mode = SIM_FOLDED, .steady = true}, &r));
  i64 busiest = 0;
  for (u32 k = 0; k < r.nclasses; k++) busiest = MAX(busiest, r.busy_ps[k * r.nstreams]);
  CHECK_EQ_I64(r.period_ps, busiest); // the last place copies no version
  CHECK(r.makespan_ps > r.period_ps);
  close_bed(&b);
}

// ---- refusals and mutations -------------------------------------------------------------------------------
// An update that takes other microbatches than its own, or a task that reads another version, is noticed.
TEST(stale_updates_of_other_microbatches_are_noticed) {
  bed b = open_with("mlp-xs:layers=4,hidden=6", 12, OPTIM_SGD, "pp=2 mb=6 schedule=pipedream");
  REQUIRE(b.p && plan_validate(b.p));
  const func_info *m = func_get(b.p, b.p->main);
  u32 tried = 0;
  for (u32 k = 0; k < m->body.n; k++) {
    instr *in = &func_get(b.p, b.p->main)->body.v[k];
    const attrs at = attrs_get(b.p, in->at);
    if (in->op != OP_join || !attr_get(at, A_count)) continue;
    attr v[3];
    REQUIRE(at.n <= 3);
    memcpy(v, at.v, at.n * sizeof *v);
    for (u32 j = 0; j < at.n; j++)
      if (v[j].key == A_at) v[j].u.i = (v[j].u.i + 1) % 6;
    const attrset kept = in->at;
    in->at = attrs_of(b.p, v, at.n);
    CHECK_MSG(!plan_validate(b.p), "instruction %u", k + 1);
    diag_clear(b.c);
    func_get(b.p, b.p->main)->body.v[k].at = kept, tried++;
  }
  CHECK(tried >= 12);
  CHECK(plan_validate(b.p));
  close_bed(&b);
}
