// test_run.c - ranks that run in threads of their own, joined by messages: after some steps every parameter and state is
// what the evaluator of all ranks has, and so is the loss; and what happens when a rank is gone.
#include "mailbox.h"
#include "test.h"

enum { STEPS = 3 };

// ---- one rank ----------------------------------------------------------------------------------------------
typedef struct {
  mailbox box;
  const char *model, *strategy, *optimizer;
  heddle_load_options load;
  u32 leaves_after;      // steps; 0: it stays
  heddle_session *s;     // of rank 0, kept: with the answers
  heddle_tensors *after; // parameters
  double loss[STEPS];
  bool ok;
  char why[256];
} rank_job;

static heddle_program *distributed(heddle_session *s, const rank_job *j) {
  heddle_program *p = heddle_program_load(s, j->model, &j->load);
  const heddle_plan_options o = {.train = true, .optimizer = {.name = j->optimizer}};
  return heddle_plan_apply(heddle_plan_make(p, j->strategy, &o));
}

static void *run_rank(void *arg) {
  rank_job *j = arg;
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  const heddle_link link = {.rank = j->box.rank, .arg = &j->box, .send = send_to, .receive = receive_from};
  heddle_run *r = heddle_run_new(d, &link, heddle_tensors_random(d, 7));
  j->ok = r != NULL;
  for (u32 k = 0; k < STEPS && j->ok && !(j->leaves_after && k == j->leaves_after); k++)
    j->ok = heddle_run_step(r) && heddle_run_loss(r, &j->loss[k]);
  if (!j->leaves_after && j->ok) j->after = heddle_run_parameters(r), j->ok = j->after;
  snprintf(j->why, sizeof j->why, "%s", heddle_session_messages(s));
  leave(j->box.p, j->box.rank);
  if (j->box.rank)
    heddle_session_free(s);
  else
    j->s = s;
  return NULL;
}

static void run_all(rank_job *j, post *p, u32 ranks) {
  pthread_t t[RANKS];
  *p = (post){.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  for (u32 k = 1; k < ranks; k++) {
    const u32 leaves = j[k].leaves_after;
    j[k] = j[0], j[k].leaves_after = leaves;
  }
  for (u32 k = 0; k < ranks; k++) j[k].box = (mailbox){p, k};
  for (u32 k = 0; k < ranks; k++) pthread_create(&t[k], NULL, run_rank, &j[k]);
  for (u32 k = 0; k < ranks; k++) pthread_join(t[k], NULL);
  post_free(p);
}

// ---- the reference: all ranks in one evaluator ---------------------------------------------------------------
static float *elements(const heddle_tensor *t, int64_t *n) {
  *n = 1;
  for (u32 d = 0; d < t->ndims; d++) *n *= t->dims[d];
  return (float *)(uintptr_t)t->data;
}

static void equals_evaluator(const rank_job *j, const char *what) {
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  heddle_tensors *in = heddle_tensors_random(d, 7);
  heddle_tensor x, y;
  int64_t n;
  double loss[STEPS];
  REQUIRE(heddle_tensors_train(in, d, NULL, STEPS, loss));
  for (u32 k = 0; k < STEPS; k++)
    CHECK_MSG(j->loss[k] == loss[k], "%s: loss %.9g in step %u, the evaluator's is %.9g", what, j->loss[k], k,
              loss[k]);
  u32 floats = 0;
  for (u32 k = 0; heddle_tensors_get(in, k, &x); k++) {
    REQUIRE(heddle_tensors_get(j->after, k, &y));
    CHECK_STR(x.name, y.name);
    if (strcmp(x.dtype, "f32") != 0) continue;
    const float *a = elements(&x, &n), *b = elements(&y, &n);
    for (int64_t i = 0; i < n; i++, floats++)
      if (a[i] != b[i]) {
        CHECK_MSG(false, "%s: %s[%lld] is %.9g, the evaluator has %.9g", what, x.name, (long long)i,
                  (double)b[i], (double)a[i]);
        break;
      }
  }
  CHECK(floats > 1000 && j->loss[STEPS - 1] < j->loss[0]);
  heddle_session_free(s);
}

// To the bit, whatever the plan does: the same sums in the same order.
TEST(run_equals_the_evaluator) {
  static const char mlp[] = "mlp-xs:layers=4,hidden=32";
  static const char *const gpt = "gpt2:layers=4,hidden=32,heads=4,vocab=64";
  static const struct {
    const char *model, *strategy, *optimizer;
    u32 ranks;
  } cases[] = {
      {mlp, "dp=2", "sgd", 2},
      {gpt, "dp=2 zero=1", "adam", 2},
      {gpt, "tp=2 sp", "adam", 2},
      {gpt, "pp=2 mb=4", "adamw", 2},
      {gpt, "pp=2 v=2 mb=4 schedule=interleaved recompute=full", "adam", 2},
      {gpt, "dp=2 tp=2 zero=3 recompute=selective", "momentum", 4},
      {gpt, "dp=2 pp=2 mb=2 zero=2 schedule=zb-h1", "adam", 4},
      {gpt, "pp=4 mb=4 schedule=chimera", "adam", 4},
      {gpt, "dp=2 dp.shares=3/1 pp=2 mb=2", "adam", 4},
      {"bert-large:layers=2,hidden=32,heads=2,vocab=64", "tp=2 pp=2 mb=2", "adafactor", 4},
  };
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    post p;
    rank_job j[RANKS] = {{.model = cases[k].model,
                          .strategy = cases[k].strategy,
                          .optimizer = cases[k].optimizer,
                          .load = {.batch = 8, .seq = cases[k].model == mlp ? 0 : 8, .loss = true}}};
    run_all(j, &p, cases[k].ranks);
    bool ok = true;
    for (u32 r = 0; r < cases[k].ranks; r++) {
      ok = ok && j[r].ok;
      CHECK_MSG(j[r].ok, "%s: rank %u: %s", cases[k].strategy, r, j[r].why);
    }
    if (ok) equals_evaluator(&j[0], cases[k].strategy);
    heddle_session_free(j[0].s);
  }
}

TEST(run_tells_who_is_gone) {
  post p;
  rank_job j[RANKS] = {
      {.model = "mlp-xs:layers=4,hidden=32", .strategy = "pp=2 mb=2", .load = {.batch = 8, .loss = true}}};
  j[1].leaves_after = 1;
  run_all(j, &p, 2);
  CHECK(!j[0].ok && strstr(j[0].why, "error[E0703]: rank 0 does not hear rank 1 any more"));
  heddle_session_free(j[0].s);
}

TEST(run_needs_ranks) {
  heddle_session *s = heddle_session_new();
  heddle_program *m = heddle_program_load(s, "mlp-xs:layers=2,hidden=16", &(heddle_load_options){.batch = 4});
  const heddle_link none = {.rank = 0};
  heddle_tensors *in = heddle_tensors_random(m, 1);
  CHECK(in && !heddle_run_new(m, &none, in) && heddle_session_errors(s) == 1);
  CHECK(!heddle_run_new(NULL, &none, in) && !heddle_run_step(NULL) && !heddle_run_parameters(NULL));
  heddle_session_free(s);
}
