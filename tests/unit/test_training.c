// test_training.c - training that one can trust: the data of every step, weights by name, checkpoints that any plan goes
// on from; all held against training on one device, and against what was there before.
#include "eval/eval.h"
#include "mailbox.h"
#include "test.h"
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS_MOST = 24 };
static const char gpt[] = "gpt2:layers=4,hidden=32,heads=4,vocab=64";

// ---- a job -----------------------------------------------------------------------------------------------------
typedef struct {
  const char *model, *strategy, *optimizer;
  const char *data, *resume, *save; // files; NULL: none
  bool shuffle;
  u32 ranks, steps; // steps: of this run
  bool seq;
} job;
typedef struct {
  const job *j;
  mailbox box;
  heddle_session *s; // of rank 0, kept
  heddle_tensors *after;
  double loss[STEPS_MOST];
  bool ok;
  char why[512];
} runner;

static heddle_program *loaded(heddle_session *s, const job *j) {
  return heddle_program_load(
      s, j->model,
      &(heddle_load_options){.batch = 8, .seq = strncmp(j->model, "mlp", 3) ? 8 : 0, .loss = true});
}

static heddle_program *distributed(heddle_session *s, const job *j) {
  const heddle_plan_options o = {.train = true, .optimizer = {.name = j->optimizer}};
  return heddle_plan_apply(heddle_plan_make(loaded(s, j), j->strategy, &o));
}

static bool run_steps(runner *w, heddle_program *d, heddle_run *r, heddle_data *data, heddle_checkpoint *at) {
  const job *j = w->j;
  bool ok = r && (data || !j->data);
  for (u32 k = 0; k < j->steps && ok; k++) {
    if (data) ok = heddle_run_feed(r, data, at->sample), at->sample += heddle_data_batch(data);
    ok = ok && heddle_run_step(r) && heddle_run_loss(r, &w->loss[k]);
  }
  at->plan = j->strategy;
  if (ok && j->save) ok = heddle_run_save(r, j->save, at, 0);
  if (ok) w->after = heddle_run_parameters(r), ok = w->after;
  (void)d;
  return ok;
}

static void *run_rank(void *arg) {
  runner *w = arg;
  const job *j = w->j;
  heddle_session *s = heddle_session_new();
  heddle_program *d = distributed(s, j);
  heddle_tensors *t = heddle_tensors_initial(d, 7);
  heddle_checkpoint at = {.step = 0};
  const heddle_link link = {.rank = w->box.rank, .arg = &w->box, .send = send_to, .receive = receive_from};
  w->ok = t && (!j->resume || heddle_tensors_resume(t, d, j->resume, &at));
  heddle_data *data =
      j->data && w->ok
          ? heddle_data_open(d, j->data, &(heddle_data_options){.shuffle = j->shuffle, .seed = 3})
          : NULL;
  heddle_run *r = w->ok ? heddle_run_new(d, &link, t) : NULL;
  heddle_run_begin_at(r, at.step);
  w->ok = w->ok && run_steps(w, d, r, data, &at);
  snprintf(w->why, sizeof w->why, "%s", heddle_session_messages(s));
  leave(w->box.p, w->box.rank);
  if (w->box.rank)
    heddle_session_free(s);
  else
    w->s = s;
  return NULL;
}

// The parameters after it, on rank 0; the session is the caller's to free.
static bool run_job(const job *j, runner *w) {
  pthread_t t[RANKS];
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  runner all[RANKS];
  for (u32 k = 0; k < j->ranks; k++) all[k] = (runner){.j = j, .box = {&p, k}};
  for (u32 k = 0; k < j->ranks; k++) pthread_create(&t[k], NULL, run_rank, &all[k]);
  for (u32 k = 0; k < j->ranks; k++) pthread_join(t[k], NULL);
  post_free(&p);
  bool ok = true;
  for (u32 k = 0; k < j->ranks; k++)
    ok = CHECK_MSG(all[k].ok, "%s: rank %u: %s", j->strategy, k, all[k].why) && ok;
  *w = all[0];
  return ok;
}

static int64_t elements_of(const heddle_tensor *t) {
  int64_t n = 1;
  for (u32 d = 0; d < t->ndims; d++) n *= t->dims[d];
  return n;
}

static bool find(const heddle_tensors *t, const char *name, heddle_tensor *out) {
  for (u32 k = 0; heddle_tensors_get(t, k, out); k++)
    if (!strcmp(out->name, name)) return true;
  return false;
}

// Adam divides a gradient by its size, so of one that is nothing but rounding (zero in exact arithmetic, as that of a key's
// bias, or nearly) it takes a step of up to its learning rate. m: the gradients' moving average; NULL: there is none.
static bool is_rounding(const heddle_tensor *m, double largest, int64_t i) {
  return m && fabs((double)((const float *)m->data)[i]) < 1e-4 * largest;
}

static double largest_of(const heddle_tensor *t) {
  double most = 0;
  for (int64_t i = 0; i < elements_of(t); i++) most = fmax(most, fabs((double)((const float *)t->data)[i]));
  return most;
}

// The largest difference of two sets, over the largest element of each tensor; 0: the same bits. NaN is a difference.
static double difference(const heddle_tensors *a, const heddle_tensors *b, bool exact, u32 *compared) {
  heddle_tensor x, y;
  double worst = 0;
  *compared = 0;
  for (u32 k = 0; heddle_tensors_get(a, k, &x); k++) {
    if (strcmp(x.dtype, "f32") != 0) continue;
    if (!find(b, x.name, &y) || elements_of(&x) != elements_of(&y)) return INFINITY;
    const float *p = x.data, *q = y.data;
    char name[256];
    heddle_tensor m;
    snprintf(name, sizeof name, "%s.m", x.name);
    const bool has_m = !exact && find(b, name, &m);
    const double largest = has_m ? largest_of(&m) : 0;
    double most = 0, off = 0;
    for (int64_t i = 0; i < elements_of(&x); i++) {
      most = fmax(most, fabs((double)q[i]));
      if (is_rounding(has_m ? &m : NULL, largest, i) &&
          fabs((double)p[i] - (double)q[i]) <= STEPS_MOST * 2e-3)
        continue;
      if (isnan(p[i]) || isnan(q[i])) return INFINITY;
      off = fmax(off, fabs((double)p[i] - (double)q[i]));
    }
    if (off > 0) worst = fmax(worst, off / fmax(most, 1e-30));
    ++*compared;
  }
  return worst;
}

// ---- files -----------------------------------------------------------------------------------------------------
static const char *folder(void) {
  static char path[256];
  snprintf(path, sizeof path, "%s/tmp-training", test_build());
  return path;
}
static const char *in_folder(const char *name) {
  static char path[4][512];
  static u32 k;
  char *p = path[k++ % 4];
  snprintf(p, sizeof path[0], "%s/%s", folder(), name);
  return p;
}

static void put_file(const char *name, const void *data, size_t n) {
  ctx *c = ctx_new();
  CHECK(dir_make(c, folder()) && file_write(c, in_folder(name), data, n));
  ctx_free(c);
}

static const char *tokens_file(void) {
  enum { N = 900 };
  u16 t[N] = {3};
  u64 state = 5;
  for (u32 k = 1; k < N; k++) t[k] = (u16)((t[k - 1] * 5u + 1 + rng_next(&state) % 2) % 64);
  put_file("tokens.u16", t, sizeof t);
  return in_folder("tokens.u16");
}

// ---- equal to training on one device ---------------------------------------------------------------------------
static const struct {
  const char *model, *strategy, *optimizer;
  u32 ranks;
} strategies[] = {
    {"mlp-xs:layers=4,hidden=32", "dp=4", "momentum", 4},
    {gpt, "dp=2 zero=1", "adam", 2},
    {gpt, "tp=2 sp", "adamw", 2},
    {gpt, "dp=2 pp=2 mb=2 zero=2 schedule=zb-h1", "adam", 4},
    {gpt, "dp=2 tp=2 zero=3 recompute=full", "sgd", 4},
    {gpt, "dp=2 dp.shares=3/1 pp=2 mb=2", "adam", 4},
    {"llama2-7b:layers=2,hidden=32,heads=2,vocab=64", "pp=2 v=1 mb=4", "adam", 2},
};

static void equals_one_device(u32 k, u32 steps, double limit) {
  heddle_session *s = heddle_session_new();
  const bool lm = strncmp(strategies[k].model, "mlp", 3) != 0;
  const job j = {.model = strategies[k].model,
                 .strategy = strategies[k].strategy,
                 .optimizer = strategies[k].optimizer,
                 .ranks = strategies[k].ranks,
                 .data = lm ? tokens_file() : NULL,
                 .shuffle = true,
                 .steps = steps};
  runner w;
  heddle_optimizer o;
  REQUIRE(heddle_optimizer_find(s, j.optimizer, &o));
  heddle_program *one = heddle_program_train(loaded(s, &j), &o, false);
  heddle_tensors *t = heddle_tensors_initial(one, 7);
  heddle_data *data =
      lm ? heddle_data_open(one, j.data, &(heddle_data_options){.shuffle = true, .seed = 3}) : NULL;
  double loss[STEPS_MOST] = {0};
  REQUIRE(heddle_tensors_train(t, one, data, steps, loss));
  if (run_job(&j, &w)) {
    u32 n;
    const double d = difference(w.after, t, false, &n);
    CHECK_MSG(d <= limit && n > 4, "%s %s: %u tensors differ by %.3g after %u steps", j.model, j.strategy, n,
              d, steps);
    for (u32 i = 0; i < steps; i++) CHECK_CLOSE(w.loss[i], loss[i], limit);
  }
  heddle_session_free(w.s), heddle_session_free(s);
}

TEST(training_equals_one_device_after_a_step) {
  for (u32 k = 0; k < COUNT_OF(strategies); k++) equals_one_device(k, 1, 1e-5);
}
TEST(training_equals_one_device_after_twenty_steps) {
  for (u32 k = 0; k < COUNT_OF(strategies); k++) equals_one_device(k, 20, 1e-3);
}

// Adam in closed form: with a gradient that is always 1, the bias-corrected step is lr / (1 + eps), every time.
TEST(training_counts_the_steps_of_adam) {
  static const char text[] =
      "func @main(%w: f32[1] weight, %w.m: f32[1] state, %w.v: f32[1] state) -> (f32[1], f32[1], f32[1]) {\n"
      "  %g = full {shape=[1], dtype=f32, value=1} : f32[1]\n"
      "  %w.new, %w.m.new, %w.v.new = adam %w, %g, %w.m, %w.v {eps=1e-08, lr=0.125, beta1=0.9, beta2=0.999, "
      "weight_decay=0} update : f32[1], f32[1], f32[1]\n"
      "  return %w.new, %w.m.new, %w.v.new\n}\n";
  put_file("adam.heddle", text, sizeof text - 1);
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, in_folder("adam.heddle"), NULL);
  heddle_tensors *t = heddle_tensors_initial(p, 1);
  heddle_tensor w, m;
  double loss[8];
  REQUIRE(t && find(t, "w", &w) && find(t, "w.m", &m));
  const double before = (double)*(const float *)w.data;
  CHECK(*(const float *)m.data == 0);
  CHECK(heddle_tensors_train(t, p, NULL, 8, loss));
  CHECK_CLOSE(before - (double)*(const float *)w.data, 1.0, 1e-5);
  heddle_session_free(s);
}

// ---- checkpoints -----------------------------------------------------------------------------------------------
static const char *step_file(const char *dir, u32 step) {
  static char path[2][600];
  static u32 k;
  char *p = path[k++ % 2];
  snprintf(p, sizeof path[0], "%s/step-%06u.safetensors", dir, step);
  return p;
}

TEST(checkpoint_resumes_to_the_bit) {
  const char *data = tokens_file();
  char first[512], whole[512];
  snprintf(first, sizeof first, "%s", in_folder("first")),
      snprintf(whole, sizeof whole, "%s", in_folder("whole"));
  job j = {.model = gpt,
           .strategy = "dp=2 zero=2",
           .optimizer = "adam",
           .ranks = 2,
           .data = data,
           .shuffle = true};
  runner six, three, rest;
  u32 n;
  j.steps = 6, j.save = whole;
  REQUIRE(run_job(&j, &six));
  j.steps = 3, j.save = first;
  REQUIRE(run_job(&j, &three));
  j.resume = step_file(first, 3), j.save = NULL;
  REQUIRE(run_job(&j, &rest));
  CHECK(difference(rest.after, six.after, true, &n) == 0 && n > 40);
  for (u32 k = 0; k < 3; k++) CHECK(rest.loss[k] == six.loss[k + 3] && three.loss[k] == six.loss[k]);
  heddle_session_free(six.s), heddle_session_free(three.s), heddle_session_free(rest.s);
}

TEST(checkpoint_goes_on_under_any_plan) {
  static const struct {
    const char *strategy;
    u32 ranks;
  } to[] = {{"dp=2 zero=2", 2},
            {"pp=2 mb=2", 2},
            {"tp=2 sp", 2},
            {"dp=2 tp=2 zero=3", 4},
            {"pp=4 mb=4 schedule=chimera", 4}};
  const char *data = tokens_file();
  char dir[512];
  snprintf(dir, sizeof dir, "%s", in_folder("any"));
  job j = {.model = gpt,
           .strategy = "dp=2 zero=2",
           .optimizer = "adam",
           .ranks = 2,
           .data = data,
           .steps = 2,
           .save = dir};
  runner saved, by[2][COUNT_OF(to)];
  u32 n;
  REQUIRE(run_job(&j, &saved));
  j.save = NULL, j.resume = step_file(dir, 2);
  for (u32 k = 0; k < COUNT_OF(to); k++) {
    j.strategy = to[k].strategy, j.ranks = to[k].ranks;
    j.steps = 0; // what is loaded
    runner w;
    REQUIRE(run_job(&j, &w));
    CHECK_MSG(difference(w.after, saved.after, true, &n) == 0 && n > 40, "%s loads other weights",
              j.strategy);
    heddle_session_free(w.s);
    for (u32 late = 0; late < 2; late++) {
      j.steps = late ? 20 : 1;
      REQUIRE(run_job(&j, &by[late][k]));
      const double d = difference(by[late][k].after, by[late][0].after, false, &n);
      CHECK_MSG(d <= (late ? 1e-3 : 1e-5), "%s: %.3g after %u steps", j.strategy, d, j.steps);
    }
  }
  for (u32 k = 0; k < COUNT_OF(to); k++) heddle_session_free(by[0][k].s), heddle_session_free(by[1][k].s);
  heddle_session_free(saved.s);
}

// ---- Adam's corrections ------------------------------------------------------------------------------------------
// Two layers of SIDE x SIDE, a mean square of BATCH rows: what Adam makes of them, in doubles. It corrects its moments by how
// many updates they have had.
enum { SIDE = 6, BATCH = 8 };
typedef struct {
  double w[2][SIDE][SIDE], m[2][SIDE][SIDE], v[2][SIDE][SIDE];
  u32 updates;
} by_hand;

static void one_layer(const double *in, const double w[SIDE][SIDE], double *out) {
  for (u32 j = 0; j < SIDE; j++) {
    out[j] = 0;
    for (u32 k = 0; k < SIDE; k++) out[j] += in[k] * w[k][j];
    out[j] = fmax(out[j], 0);
  }
}

static void add_gradient(const double w[2][SIDE][SIDE], const float *x, const float *z,
                         double g[2][SIDE][SIDE]) {
  double in[3][SIDE], d[SIDE], back[SIDE];
  for (u32 k = 0; k < SIDE; k++) in[0][k] = (double)x[k];
  for (u32 l = 0; l < 2; l++) one_layer(in[l], w[l], in[l + 1]);
  for (u32 k = 0; k < SIDE; k++) d[k] = 2 * (in[2][k] - (double)z[k]) / BATCH;
  for (u32 l = 2; l-- > 0;) {
    memset(back, 0, sizeof back);
    for (u32 j = 0; j < SIDE; j++)
      for (u32 k = 0; k < SIDE && in[l + 1][j] > 0; k++)
        g[l][k][j] += in[l][k] * d[j], back[k] += w[l][k][j] * d[j];
    memcpy(d, back, sizeof d);
  }
}

// A step of n updates, each by its part of the rows; all of them read the weights that the step begins with.
static void step_by_hand(by_hand *h, const float *x, const float *z, u32 n) {
  const by_hand begin = *h;
  for (u32 u = 0; u < n; u++) {
    double g[2][SIDE][SIDE] = {0};
    for (u32 row = u * BATCH / n; row < (u + 1) * BATCH / n; row++)
      add_gradient(begin.w, x + row * SIDE, z + row * SIDE, g);
    const double t = ++h->updates, c1 = 1 - pow(0.9, t), c2 = 1 - pow(0.999, t);
    for (u32 e = 0; e < 2 * SIDE * SIDE; e++) {
      double *w = &h->w[0][0][0] + e, *m = &h->m[0][0][0] + e, *v = &h->v[0][0][0] + e;
      const double by = (&g[0][0][0])[e];
      *m = 0.9 * *m + 0.1 * by, *v = 0.999 * *v + 0.001 * by * by;
      *w -= 0.001 * (*m / c1) / (sqrt(*v / c2) + 1e-8);
    }
  }
}

static void is_by_hand(const char *what, const runner *w, const by_hand *h) {
  for (u32 l = 0; l < 2; l++) {
    heddle_tensor t;
    REQUIRE(find(w->after, l ? "h.1.w" : "h.0.w", &t) && elements_of(&t) == SIDE * SIDE);
    for (u32 e = 0; e < SIDE * SIDE; e++) {
      const double got = (double)((const float *)t.data)[e], want = (&h->w[l][0][0])[e];
      CHECK_MSG(fabs(got - want) < 1e-6, "%s: element %u of layer %u is %.8g, not %.8g", what, e, l, got,
                want);
    }
  }
}

TEST(adam_counts_the_updates_of_a_step_and_of_a_checkpoint) {
  char dir[512];
  snprintf(dir, sizeof dir, "%s", in_folder("updates"));
  job j = {.model = "mlp-xs:layers=2,hidden=6",
           .strategy = "pp=2 mb=4 schedule=pipedream-2bw",
           .optimizer = "adam",
           .ranks = 2,
           .steps = 2};
  heddle_session *s = heddle_session_new();
  heddle_tensors *first = heddle_tensors_initial(distributed(s, &j), 7);
  by_hand h = {.updates = 0}, one;
  heddle_tensor t, x, z;
  REQUIRE(first && find(first, "x", &x) && find(first, "z", &z));
  for (u32 l = 0; l < 2; l++) {
    REQUIRE(find(first, l ? "h.1.w" : "h.0.w", &t));
    for (u32 e = 0; e < SIDE * SIDE; e++) (&h.w[l][0][0])[e] = (double)((const float *)t.data)[e];
  }
  runner two, begun, rest, other;
  u32 n;
  step_by_hand(&h, x.data, z.data, 2), one = h, step_by_hand(&h, x.data, z.data, 2);
  REQUIRE(run_job(&j, &two));
  is_by_hand("two steps of two updates", &two, &h);
  j.steps = 1, j.save = dir;
  REQUIRE(run_job(&j, &begun));
  j.save = NULL, j.resume = step_file(dir, 1);
  REQUIRE(run_job(&j, &rest));
  CHECK(difference(rest.after, two.after, true, &n) == 0 && n > 5);
  j.strategy = "dp=2"; // one update a step: the third one
  REQUIRE(run_job(&j, &other));
  step_by_hand(&one, x.data, z.data, 1);
  is_by_hand("a step of one update after a step of two", &other, &one);
  heddle_session_free(two.s), heddle_session_free(begun.s), heddle_session_free(rest.s);
  heddle_session_free(other.s), heddle_session_free(s);
}

// One of a version that counted steps alone: its states have had that many updates, however many a step has now.
TEST(adam_counts_the_steps_of_an_older_checkpoint) {
  char dir[512], again[512];
  snprintf(dir, sizeof dir, "%s", in_folder("steps")),
      snprintf(again, sizeof again, "%s", in_folder("again"));
  job j = {.model = "mlp-xs:layers=2,hidden=6",
           .strategy = "pp=2 mb=4 schedule=pipedream-2bw",
           .optimizer = "adam",
           .ranks = 2,
           .steps = 3,
           .save = dir};
  runner w;
  safetensors f;
  ctx *c = ctx_new();
  arena *a = arena_new();
  REQUIRE(run_job(&j, &w));
  heddle_session_free(w.s);
  REQUIRE(safetensors_open(c, a, step_file(dir, 3), &f));
  CHECK_STR(safetensors_find(&f, "heddle.updates"), "6");
  safetensors_entry *e = NEWN(a, safetensors_entry, f.n);
  safetensors_note note[16];
  u32 n = 0;
  for (u32 k = 0; k < f.n; k++) e[k] = (safetensors_entry){f.item[k].name, f.item[k].x.s};
  for (u32 k = 0; k < f.nnotes && n < COUNT_OF(note); k++)
    if (strcmp(f.note[k].key, "heddle.updates") && strcmp(f.note[k].key, "heddle.crc32"))
      note[n++] = f.note[k];
  safetensors_out *o = safetensors_begin(c, a, in_folder("older.safetensors"), e, f.n, note, n);
  REQUIRE(o);
  for (u32 k = 0; k < f.n; k++) safetensors_put(o, f.item[k].x.data);
  REQUIRE(safetensors_end(o));
  safetensors_close(&f);
  j.resume = in_folder("older.safetensors"), j.steps = 0, j.save = again;
  REQUIRE(run_job(&j, &w));
  heddle_session_free(w.s);
  REQUIRE(safetensors_open(c, a, step_file(again, 3), &f));
  CHECK_STR(safetensors_find(&f, "heddle.updates"), "3");
  safetensors_close(&f);
  arena_free(a), ctx_free(c);
}

// ---- safetensors -----------------------------------------------------------------------------------------------
static bool opens(const void *data, size_t n, bool *diagnosed) {
  put_file("damaged.safetensors", data, n);
  ctx *c = ctx_new();
  arena *a = arena_new();
  safetensors f;
  const bool ok = safetensors_open(c, a, in_folder("damaged.safetensors"), &f) && f.checked;
  *diagnosed = diag_errors(c) > 0;
  if (f.f.data) safetensors_close(&f);
  arena_free(a), ctx_free(c);
  return ok;
}

// Every bit of the header and of the elements counts, and so does every length.
TEST(safetensors_tells_damage) {
  float x[6] = {1, 2, 3, 4, 5, 6};
  i64 y[2] = {7, -8};
  const eval_named item[] = {{"a.b", {{.t = DT_F32, .nd = 2, .dim = {2, 3}}, x}},
                             {"none", {{.t = DT_F32, .nd = 1, .dim = {0}}, x}},
                             {"\"quoted\\", {{.t = DT_I64, .nd = 1, .dim = {2}}, y}}};
  ctx *c = ctx_new();
  file_view f;
  bool told;
  CHECK(dir_make(c, folder()) && safetensors_write(c, in_folder("whole.safetensors"), item, 3));
  REQUIRE(file_map(c, in_folder("whole.safetensors"), &f));
  u8 *copy = malloc(f.size);
  REQUIRE(opens(f.data, f.size, &told) && !told);
  for (size_t n = 0; n < f.size; n += n < 80 ? 1 : 7)
    CHECK_MSG(!opens(f.data, n, &told) && told, "%zu bytes of it", n);
  for (size_t k = 0; k < f.size; k++) {
    memcpy(copy, f.data, f.size);
    copy[k] ^= 1u << k % 8;
    CHECK_MSG(!opens(copy, f.size, &told), "bit %zu of byte %zu", k % 8, k);
  }
  free(copy), file_unmap(&f), ctx_free(c);
}

// Of other programs: the header's order is not that of the elements, and they lie at any byte.
static bool opens_text(const char *header, const void *data, size_t ndata, arena *a, safetensors *f,
                       char *why, size_t nwhy) {
  const size_t n = strlen(header);
  char *file = arena_zalloc(a, 8 + n + ndata);
  for (u32 k = 0; k < 8; k++) file[k] = (char)(n >> 8 * k & 255);
  memcpy(file + 8, header, n), memcpy(file + 8 + n, data, ndata);
  put_file("other.safetensors", file, 8 + n + ndata);
  ctx *c = ctx_new();
  const bool ok = safetensors_open(c, a, in_folder("other.safetensors"), f);
  snprintf(why, nwhy, "%s", diag_render(c, a));
  CHECK(ok == !diag_errors(c));
  ctx_free(c);
  return ok;
}

TEST(safetensors_of_others) {
  static const float v[3] = {1.5f, -2, 3};
  static const struct {
    const char *first, *second, *why; // offsets; why: NULL, it opens
  } cases[] = {
      {"4,12", "0,4", NULL},
      {"0,8", "8,12", NULL},
      {"4,16", "0,4", "the file is cut off: elements end at byte 16, and 12 bytes are there"},
      {"12,20", "0,4", "the file is cut off: elements end at byte 20, and 12 bytes are there"},
      {"4,12", "4,8", "elements overlap, or leave a gap before this tensor"},
      {"4,12", "8,12", "elements overlap, or leave a gap before this tensor"},
      {"0,8", "0,4", "elements overlap, or leave a gap before this tensor"},
      {"4,8", "0,4", "2 elements take 8 bytes; data_offsets have 4"},
      {"12,4", "0,4", "data_offsets of a tensor cannot be read"},
      {"-8,0", "0,4", "data_offsets of a tensor cannot be read"},
      {"4,12.5", "0,4", "data_offsets of a tensor cannot be read"},
      {"4,1e300", "0,4", "data_offsets of a tensor cannot be read"},
  };
  char why[1024];
  safetensors f;
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(cases); k++)
    for (u32 pad = 0; pad < 4; pad++) { // spaces: so that the elements begin at every byte of a word
      const char *header = arena_printf(a,
                                        "{\"two\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%s]},"
                                        "\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[%s]}}%*s",
                                        cases[k].first, cases[k].second, (int)pad, "");
      const bool ok = opens_text(header, v, sizeof v, a, &f, why, sizeof why);
      CHECK_MSG(cases[k].why ? !ok && strstr(why, cases[k].why) : ok, "%s %s: %s", cases[k].first,
                cases[k].second, why);
      if (!ok) continue;
      const u32 two = k == 0;
      CHECK(f.n == 2 && !f.checked && !strcmp(f.item[two].name, "two") && !strcmp(f.item[!two].name, "one"));
      for (u32 j = 0; j < 2; j++) CHECK((uintptr_t)f.item[j].x.data % sizeof(float) == 0);
      CHECK(!memcmp(f.item[two].x.data, v + two, 8) && !memcmp(f.item[!two].x.data, two ? v : v + 2, 4));
      safetensors_close(&f);
    }
  const char *one = "{\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}} ";
  CHECK(!opens_text(one, v, 8, a, &f, why, sizeof why) &&
        strstr(why, "elements of tensors take 4 bytes; behind the header are 8"));
  arena_free(a);
}

// What is written is read: any names, types and shapes; and the first element lies where any type and any vector may.
TEST(safetensors_reads_back) {
  static const dtype types[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_I64, DT_I32, DT_I16,
                                DT_I8,  DT_U64, DT_U32, DT_U16,  DT_U8,  DT_BOOL};
  ctx *c = ctx_new();
  put_file("any.safetensors", "", 0);
  u64 state = 3;
  for (u32 turn = 0; turn < 60; turn++) {
    arena *a = arena_new();
    eval_named item[8];
    const u32 n = (u32)(rng_next(&state) % (COUNT_OF(item) + 1));
    for (u32 k = 0; k < n; k++) {
      shape s = {.t = types[rng_next(&state) % COUNT_OF(types)], .nd = (u32)(rng_next(&state) % 4)};
      for (u32 d = 0; d < s.nd; d++) s.dim[d] = (i64)(rng_next(&state) % 5);
      u8 *data = arena_alloc(a, (size_t)shape_bytes(&s) + 1);
      for (i64 i = 0; i < shape_bytes(&s); i++) data[i] = (u8)rng_next(&state);
      item[k] = (eval_named){arena_printf(a, "%u/%*s\"\\%%\n\xc3\xa9", k, (int)(rng_next(&state) % 70), ""),
                             {s, data}};
    }
    safetensors f;
    REQUIRE(safetensors_write(c, in_folder("any.safetensors"), item, n));
    REQUIRE(safetensors_open(c, a, in_folder("any.safetensors"), &f));
    CHECK(f.checked && f.n == n);
    const u8 *end = f.f.data + f.f.size;
    for (u32 k = n; k-- > 0;) end -= shape_bytes(&item[k].x.s);
    CHECK((end - f.f.data) % 64 == 0);
    for (u32 k = 0; k < n && k < f.n; k++) {
      const shape *s = &item[k].x.s, *got = &f.item[k].x.s;
      CHECK_STR(f.item[k].name, item[k].name);
      CHECK(got->t == s->t && got->nd == s->nd && !memcmp(got->dim, s->dim, sizeof(i64) * s->nd));
      CHECK(!memcmp(f.item[k].x.data, item[k].x.data, (size_t)shape_bytes(s)));
    }
    safetensors_close(&f);
    arena_free(a);
  }
  CHECK(!diag_errors(c));
  ctx_free(c);
}

// ---- data ------------------------------------------------------------------------------------------------------
static bool says(heddle_session *s, const char *text) {
  const bool ok =
      CHECK_MSG(strstr(heddle_session_messages(s), text), "no '%s' in: %s", text, heddle_session_messages(s));
  heddle_session_clear(s);
  return ok;
}

static i64 *read_step(dataset *d, u32 param, i64 first, i64 *to) {
  return dataset_read(d, param, first, NULL, to) ? to : NULL;
}

TEST(data_are_sequences_and_the_next_tokens) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  static const char text[] = "func @main(%tokens: i64[2,4], %labels: i64[2,4] label, %w: f32[64,8] weight) "
                             "-> (f32[2,4,8], f32[2,4,8]) {\n"
                             "  %x = gather %w, %tokens {axis=0} : f32[2,4,8]\n"
                             "  %y = gather %w, %labels {axis=0} : f32[2,4,8]\n  return %x, %y\n}\n";
  prog *p = ir_parse(c, sym_of(c, "tokens"), text, sizeof text - 1);
  u16 t[40];
  i64 x[8], y[8];
  for (u32 k = 0; k < 40; k++) t[k] = (u16)k;
  put_file("count.u16", t, sizeof t);
  dataset *d = p ? dataset_open(p, a, in_folder("count.u16"), &(dataset_opts){.shuffle = false}) : NULL;
  REQUIRE(d);
  CHECK_EQ_I64(dataset_samples(d), 9); // 39 / 4: the last token has no next one
  CHECK_EQ_I64(dataset_batch(d), 2);
  REQUIRE(read_step(d, 0, 8, x) && read_step(d, 1, 8, y));
  for (u32 k = 0; k < 4; k++) CHECK(x[k] == 32 + k && y[k] == 33 + k && x[4 + k] == k && y[4 + k] == 1 + k);
  dataset_close(d);
  d = dataset_open(p, a, in_folder("count.u16"), &(dataset_opts){.shuffle = true, .seed = 4});
  REQUIRE(d);
  u32 moved = 0;
  for (i64 epoch = 0; epoch < 2; epoch++) { // each sample once in every epoch
    bool seen[9] = {0};
    for (i64 k = 0; k < 9; k++) {
      REQUIRE(read_step(d, 0, epoch * 9 + k, x));
      CHECK(x[0] % 4 == 0 && !seen[x[0] / 4]);
      seen[x[0] / 4] = true, moved += x[0] / 4 != k;
    }
  }
  CHECK(moved > 9);
  dataset_close(d);
  t[5] = 64;
  put_file("count.u16", t, sizeof t);
  d = dataset_open(p, a, in_folder("count.u16"), &(dataset_opts){.shuffle = false});
  REQUIRE(d && !read_step(d, 0, 0, x));
  CHECK(strstr(diag_render(c, a), "element 5 is 64; the model takes indices from 0 to 63"));
  REQUIRE(!read_step(d, 1, 0, x));
  CHECK(strstr(diag_render(c, a), "labels are the next tokens of tokens"));
  dataset_close(d);
  prog_free(p);
  arena_free(a), ctx_free(c);
}

// A label that is no class, above or below; what is ignored is none.
TEST(labels_are_told_with_their_place) {
  static const i64 label[3][4] = {{0, -100, 3, 1}, {0, 4, 3, 1}, {0, 1, -1, 1}};
  static const char *const said[3] = {"", "element 1 is 4; the model takes labels from 0 to 3",
                                      "element 2 is -1; the model takes labels from 0 to 3"};
  static const char text[] = "func @main(%w: f32[4,4] weight, %z: i64[4] label) -> (f32[]) {\n"
                             "  %l = cross_entropy %w, %z {ignore=-100, reduce=\"mean\"}\n  return %l\n}\n";
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "labels"), text, sizeof text - 1);
  i64 x[4];
  REQUIRE(p);
  mkdir(in_folder("labels"), 0777);
  for (u32 k = 0; k < 3; k++) {
    put_file("labels/z.i64", label[k], sizeof label[k]);
    dataset *d = dataset_open(p, a, in_folder("labels"), &(dataset_opts){.shuffle = false});
    REQUIRE(d);
    CHECK((read_step(d, 1, 0, x) != NULL) == !k);
    CHECK(strstr(diag_render(c, a), said[k]) && (!k || strstr(diag_render(c, a), "labels/z.i64: z")));
    diag_clear(c);
    dataset_close(d);
  }
  // A plan counts all labels: what its program does not leave out is none, whatever the model does.
  static const char counted[] = "func @main(%w: f32[4,4] weight, %z: i64[4] label) -> (f32[]) {\n"
                                "  %l = cross_entropy %w, %z {reduce=\"mean\"}\n  return %l\n}\n";
  prog *all = ir_parse(c, sym_of(c, "counted"), counted, sizeof counted - 1);
  put_file("labels/z.i64", label[0], sizeof label[0]);
  dataset *d =
      all ? dataset_open(all, a, in_folder("labels"), &(dataset_opts){.uses = eval_uses_of(p, a)}) : NULL;
  REQUIRE(d);
  CHECK(!read_step(d, 1, 0, x) && strstr(diag_render(c, a), "element 1 is -100"));
  dataset_close(d);
  prog_free(all), prog_free(p);
  arena_free(a), ctx_free(c);
}

TEST(data_say_what_they_are) {
  heddle_session *s = heddle_session_new();
  const job lm = {.model = gpt};
  heddle_data *d =
      heddle_data_open(loaded(s, &lm), tokens_file(), &(heddle_data_options){.shuffle = true, .seed = 4});
  const char *about = heddle_data_about(d);
  CHECK_MSG(about && strstr(about, "112 sequences of 8 tokens in ") &&
                strstr(about, ", labels are the next of tokens, shuffled by seed 4"),
            "%s", about ? about : "none");
  heddle_session_free(s);
}

TEST(data_that_do_not_fit_are_told) {
  heddle_session *s = heddle_session_new();
  const job bert = {.model = "bert-large:layers=1,hidden=32,heads=2,vocab=64"}, lm = {.model = gpt};
  heddle_program *p = loaded(s, &lm), *b = loaded(s, &bert);
  put_file("odd.u16", "abc", 3), put_file("short.u16", "abcdefgh", 8), put_file("tokens.bin", "abcdefgh", 8);
  CHECK(!heddle_data_open(p, in_folder("odd.u16"), NULL) &&
        says(s, "3 bytes are no whole number of u16 tokens"));
  CHECK(!heddle_data_open(p, in_folder("short.u16"), NULL) &&
        says(s, "4 tokens are fewer than one sequence of 8 and the token after it"));
  CHECK(!heddle_data_open(p, in_folder("tokens.bin"), NULL) && says(s, "--data-type u16"));
  CHECK(!heddle_data_open(p, in_folder("nowhere"), NULL) && says(s, "E0101"));
  CHECK(!heddle_data_open(b, tokens_file(), NULL) &&
        says(s, "there are no data for the model's input segments, i64 [N,8]"));
  heddle_session_free(s);
}

// ---- weights ---------------------------------------------------------------------------------------------------
TEST(weights_come_by_name) {
  heddle_session *s = heddle_session_new();
  const job j = {.model = "mlp-xs:layers=2,hidden=16", .strategy = "dp=2", .optimizer = "adam"};
  heddle_program *d = distributed(s, &j);
  heddle_tensors *t = heddle_tensors_initial(d, 1), *other = heddle_tensors_initial(d, 2);
  heddle_tensor x, y;
  ctx *c = ctx_new();
  REQUIRE(t && find(t, "h.0.w", &x) && find(other, "h.0.w", &y));
  float w[256];
  for (u32 k = 0; k < 256; k++) w[k] = (float)k;
  eval_named item[] = {{"h.0.w", {{.t = DT_F32, .nd = 2, .dim = {16, 16}}, w}},
                       {"h.1.w", {{.t = DT_F32, .nd = 2, .dim = {16, 16}}, w}},
                       {"extra", {{.t = DT_F32, .nd = 1, .dim = {4}}, w}}};
  CHECK(safetensors_write(c, in_folder("w.safetensors"), item, 2) &&
        npz_write(c, in_folder("w.npz"), item, 2));
  CHECK(heddle_tensors_weights(t, d, in_folder("w.safetensors")) && !memcmp(x.data, w, sizeof w));
  CHECK(heddle_tensors_weights(other, d, in_folder("w.npz")) && !memcmp(y.data, w, sizeof w));
  item[0].name = "h.0.v";
  CHECK(safetensors_write(c, in_folder("w.safetensors"), item, 3));
  CHECK(!heddle_tensors_weights(t, d, in_folder("w.safetensors")) && heddle_session_errors(s) == 3);
  says(s, "hint: is 'h.0.w' meant?");
  item[0] = (eval_named){"h.0.w", {{.t = DT_F32, .nd = 2, .dim = {8, 32}}, w}};
  CHECK(safetensors_write(c, in_folder("w.safetensors"), item, 2));
  CHECK(!heddle_tensors_weights(t, d, in_folder("w.safetensors")));
  says(s, "'h.0.w' is f32[8,32]; in the model it is f32[16,16]");
  ctx_free(c), heddle_session_free(s);
}
