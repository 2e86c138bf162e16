// test_ring.c - collectives around a ring: what every rank gets is the sum, the largest or the whole, whatever the sizes,
// shares and chunks; the same bits on all ranks and in every run; and both ends of a message have one transaction.
#include "eval/eval.h"
#include "mailbox.h"
#include "test.h"
#include "trace/trace.h"
#include <math.h>
#include <time.h>

enum { RESULTS = 4, LANES_MOST = 64 };
typedef struct {
  trace_comm m;
  bool sends;
} message_end;
typedef struct {
  mailbox box, aside; // aside: of what goes on beside computation
  bool beside;
  const char *text;
  u32 ranks;
  i64 chunk;
  bool wild, record, ok; // wild: any numbers, not small whole ones
  u64 sent;              // hash of the latest message
  u64 bits[RESULTS];     // of a result as the rank has it, which it sends to rank 0
  double *out[RESULTS];  // on rank 0
  i64 n[RESULTS];
  ctx *c;
  VEC(message_end) ends; // of messages that are parts of collectives
  i64 last[LANES_MOST];  // by lane: when the last event told began
  bool disordered;
  arena *a;
} member;

static bool noting(void *arg, uint32_t to, const void *data, int64_t bytes) {
  member *m = arg;
  m->sent = hash_bytes(data, (size_t)bytes, 3);
  return send_to(&m->box, to, data, bytes);
}
static bool hearing(void *arg, uint32_t from, void *data, int64_t bytes) {
  return receive_from(&((member *)arg)->box, from, data, bytes);
}

// Small whole numbers, of which sums are exact; or with `wild` any.
static void fill(float *x, i64 n, u64 seed, bool wild) {
  for (i64 k = 0; k < n; k++)
    x[k] = wild ? (float)(rng_unit(&seed) - 0.5) : (float)((i64)(rng_next(&seed) % 17) - 8);
}

static void take_comm(void *arg, const trace_event *e) {
  member *m = arg;
  m->disordered |= e->lane >= LANES_MOST || e->start_ps < m->last[e->lane];
  if (e->lane < LANES_MOST) m->last[e->lane] = e->start_ps;
  if (e->comm && e->comm->of)
    *vec_push(m->a, &m->ends) = (message_end){*e->comm, !strcmp(sym_str(m->c, e->comm->op), "send")};
}

static bool results(member *m, eval_rank *r) {
  bool ok = true;
  for (u32 k = 0; k < RESULTS && ok; k++) {
    eval_array x;
    ok = eval_rank_result(r, k, &x, m->a);
    m->bits[k] = m->sent;
    if (!ok || m->box.rank) continue;
    m->n[k] = shape_elems(&x.s), m->out[k] = NEWN(m->a, double, m->n[k] + 1);
    for (i64 i = 0; i < m->n[k]; i++) m->out[k][i] = eval_element(&x, i);
    m->bits[k] = hash_bytes(x.data, (size_t)shape_bytes(&x.s), 3);
  }
  return ok;
}

static void *run_member(void *arg) {
  member *m = arg;
  ctx *c = m->c = ctx_new();
  prog *p = ir_parse(c, sym_of(c, "ring.heddle"), m->text, strlen(m->text));
  const eval_link beside = {.rank = m->box.rank, .arg = &m->aside, .send = send_to, .receive = receive_from},
                  link = {.rank = m->box.rank,
                          .arg = m,
                          .send = noting,
                          .receive = hearing,
                          .beside = m->beside ? &beside : NULL};
  eval_array in[2] = {{.data = NULL}};
  eval_recorded about;
  for (u32 k = 0; p && k < 2; k++) {
    in[k].s = eval_param_shape(p, k);
    in[k].data = NEWN(m->a, float, shape_elems(&in[k].s) + 1);
    fill(in[k].data, shape_elems(&in[k].s), k + 1, m->wild);
  }
  const u32 next[2] = {0};
  eval_rank *r = p ? eval_rank_new(p, &(eval_opts){.threads = 1}, &link, in, 2) : NULL;
  if (r) eval_rank_ring(r, m->chunk);
  if (r && m->record) eval_rank_record(r, m->ranks, 1 << 20);
  m->ok = r && eval_rank_step(r, next) && results(m, r);
  const trace_source *t = m->ok ? eval_rank_recorded(r, m->a, &(eval_job){.taken = 1}, &about) : NULL;
  arena *tmp = arena_new();
  if (t) t->play(t, tmp, 0, t->nranks * t->nstreams, take_comm, m);
  arena_free(tmp);
  leave(m->box.p, m->box.rank), leave(m->aside.p, m->box.rank);
  eval_rank_free(r);
  if (p) prog_free(p);
  ctx_free(c);
  return NULL;
}

static void run_members(member *m, const char *text, u32 ranks, i64 chunk, bool wild, bool record,
                        bool beside) {
  pthread_t t[RANKS];
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER}, aside = p;
  for (u32 k = 0; k < ranks; k++)
    m[k] = (member){.box = {&p, k},
                    .aside = {&aside, k},
                    .beside = beside,
                    .text = text,
                    .ranks = ranks,
                    .chunk = chunk,
                    .wild = wild,
                    .record = record,
                    .a = arena_new()};
  for (u32 k = 0; k < ranks; k++) pthread_create(&t[k], NULL, run_member, &m[k]);
  for (u32 k = 0; k < ranks; k++) pthread_join(t[k], NULL);
  post_free(&p), post_free(&aside);
}
static void drop_members(member *m, u32 ranks) {
  for (u32 k = 0; k < ranks; k++) arena_free(m[k].a);
}

// "0-2|-|2-7": shares of n for so many ranks, some of them none.
static const char *shares(arena *a, i64 n, u32 ranks, u64 *seed) {
  strbuf b = {.a = a};
  i64 from = 0;
  for (u32 k = 0; k < ranks; k++) {
    const i64 to = k + 1 == ranks ? n : from + (i64)(rng_next(seed) % (u64)(n - from + 1));
    sb_fmt(&b, k ? "|" : "");
    if (to > from)
      sb_fmt(&b, "%lld-%lld", (long long)from, (long long)to);
    else
      sb_put(&b, "-");
    from = to;
  }
  return sb_str(&b);
}

// x w as a sum of parts, over all ranks and dealt out; x put together; the largest of every row of x.
static const char *program(arena *a, i64 rows, i64 deep, i64 cols, u32 ranks, u64 *seed) {
  const char *of_deep = shares(a, deep, ranks, seed), *of_rows = shares(a, rows, ranks, seed);
  const long long R = rows, K = deep, N = cols;
  return arena_printf(
      a,
      "mesh @m [d=%u]\nstream dp\n"
      "func @main(%%x: f32[%lld,%lld{d:%s}] @m, %%w: f32[%lld{d:%s},%lld] @m)\n"
      "    -> (f32[%lld,%lld] @m, f32[%lld{d:%s},%lld] @m, f32[%lld,%lld] @m, f32[%lld] @m) {\n"
      "  %%p = matmul %%x, %%w @m\n"
      "  %%s = all_reduce %%p over d @m !dp\n"
      "  %%q = reduce_scatter %%p over d @m !dp : f32[%lld{d:%s},%lld]\n"
      "  %%g = all_gather %%x over d @m !dp : f32[%lld,%lld]\n"
      "  %%t = reduce_max %%x {axes=[1], keepdims=0} @m\n"
      "  %%u = all_reduce %%t over d @m !dp\n"
      "  return %%s, %%q, %%g, %%u\n}\n",
      ranks, R, K, of_deep, K, of_deep, N, R, N, R, of_rows, N, R, K, R, R, of_rows, N, R, K);
}

static void check_results(const member *m, i64 rows, i64 deep, i64 cols, const char *what) {
  arena *a = arena_new();
  float *x = NEWN(a, float, rows *deep + 1), *w = NEWN(a, float, deep *cols + 1);
  fill(x, rows * deep, 1, false), fill(w, deep * cols, 2, false);
  CHECK(m->n[0] == rows * cols && m->n[1] == rows * cols && m->n[2] == rows * deep && m->n[3] == rows);
  u32 bad = 0;
  for (i64 i = 0; i < rows; i++) {
    double most = -INFINITY;
    for (i64 k = 0; k < deep; k++) {
      bad += m->out[2][i * deep + k] != (double)x[i * deep + k];
      most = fmax(most, (double)x[i * deep + k]);
    }
    bad += m->out[3][i] != most;
    for (i64 j = 0; j < cols; j++) {
      double sum = 0;
      for (i64 k = 0; k < deep; k++) sum += (double)x[i * deep + k] * (double)w[k * cols + j];
      bad += m->out[0][i * cols + j] != sum, bad += m->out[1][i * cols + j] != sum;
    }
  }
  CHECK_MSG(!bad, "%s: %u elements are wrong", what, bad);
  arena_free(a);
}

// And the same bits beside computation, over other connections.
// 1 row of 1 column for 4 ranks leaves most segments empty; chunks of 1 byte are one element.
TEST(ring_gives_every_rank_the_sum) {
  static const i64 sizes[][3] = {{1, 2, 1}, {1, 4, 1},   {2, 3, 1},   {5, 7, 3},
                                 {8, 8, 8}, {13, 5, 17}, {1, 2, 257}, {0, 4, 4}};
  static const i64 chunks[] = {1, 12, 100, 1 << 20};
  u64 seed = 11;
  for (u32 ranks = 2; ranks <= RANKS; ranks++)
    for (u32 k = 0; k < COUNT_OF(sizes); k++)
      for (u32 j = 0; j < COUNT_OF(chunks); j++) {
        arena *a = arena_new();
        const i64 *z = sizes[k];
        const char *text = program(a, z[0], z[1], z[2], ranks, &seed);
        const char *what =
            arena_printf(a, "%u ranks, %lld x %lld x %lld, chunks of %lld\n%s", ranks, (long long)z[0],
                         (long long)z[1], (long long)z[2], (long long)chunks[j], text);
        member m[RANKS], same[RANKS];
        run_members(m, text, ranks, chunks[j], false, false, false);
        bool ok = true;
        for (u32 r = 0; r < ranks; r++) ok = ok && m[r].ok;
        CHECK_MSG(ok, "%s: a rank failed", what);
        if (ok) check_results(m, z[0], z[1], z[2], what);
        run_members(same, text, ranks, chunks[j], false, false, true);
        for (u32 r = 0; r < ranks; r++)
          for (u32 i = 0; i < RESULTS; i++) CHECK(m[r].bits[i] == same[r].bits[i]);
        for (u32 r = 1; r < ranks && ok; r++)
          CHECK_MSG(m[r].bits[0] == m[0].bits[0] && m[r].bits[2] == m[0].bits[2] &&
                        m[r].bits[3] == m[0].bits[3],
                    "%s: rank %u has other bits", what, r);
        drop_members(m, ranks), drop_members(same, ranks);
        arena_free(a);
      }
}

// Any numbers: next to the sum in f64, and the same bits on all ranks, which add in one order.
TEST(ring_rounds_alike_on_all_ranks) {
  enum { ROWS = 37, DEEP = 96, COLS = 29 };
  float x[ROWS * DEEP], w[DEEP * COLS];
  u64 seed = 5;
  fill(x, ROWS * DEEP, 1, true), fill(w, DEEP * COLS, 2, true);
  for (u32 ranks = 2; ranks <= RANKS; ranks++) {
    arena *a = arena_new();
    member m[RANKS];
    run_members(m, program(a, ROWS, DEEP, COLS, ranks, &seed), ranks, 1000, true, false, true);
    double worst = 0;
    for (u32 r = 0; r < ranks; r++) REQUIRE(m[r].ok);
    for (i64 i = 0; i < ROWS * COLS; i++) {
      double sum = 0;
      for (i64 k = 0; k < DEEP; k++) sum += (double)x[i / COLS * DEEP + k] * (double)w[k * COLS + i % COLS];
      worst = fmax(worst, fmax(fabs(m->out[0][i] - sum), fabs(m->out[1][i] - sum)));
    }
    CHECK_MSG(worst < 1e-5, "%u ranks: off by %g", ranks, worst);
    for (u32 r = 1; r < ranks; r++) CHECK(m[r].bits[0] == m[0].bits[0] && m[r].bits[3] == m[0].bits[3]);
    drop_members(m, ranks);
    arena_free(a);
  }
}

static bool one_transaction(const trace_comm *x, const trace_comm *y) {
  return y->of == x->of && y->hop == x->hop && y->chunk == x->chunk;
}

// Every message has its other end, of the same number, bytes and transaction; no transaction is there twice.
static u32 untied(const member *m, u32 ranks) {
  u32 bad = 0;
  for (u32 r = 0; r < ranks; r++)
    for (u32 k = 0; k < m[r].ends.n; k++) {
      const message_end *x = &m[r].ends.v[k];
      const member *other = &m[x->m.peer];
      u32 ends = 0, same = 0;
      for (u32 j = 0; j < other->ends.n; j++) {
        const message_end *y = &other->ends.v[j];
        ends += y->m.peer == r && y->sends != x->sends && one_transaction(&x->m, &y->m) &&
                y->m.seq == x->m.seq && y->m.bytes == x->m.bytes;
      }
      for (u32 j = 0; j < m[r].ends.n; j++) {
        const message_end *y = &m[r].ends.v[j];
        same += y->m.peer == x->m.peer && y->sends == x->sends && one_transaction(&x->m, &y->m);
      }
      bad += ends != 1 || same != 1;
    }
  return bad;
}

TEST(ring_messages_have_both_ends) {
  u64 seed = 3;
  for (u32 k = 0; k < 2 * (RANKS - 1); k++) { // beside computation, too
    const u32 ranks = 2 + k / 2;
    arena *a = arena_new();
    member m[RANKS];
    run_members(m, program(a, 13, 24, 11, ranks, &seed), ranks, 40, false, true, k % 2);
    u32 messages = 0;
    for (u32 r = 0; r < ranks; r++) {
      REQUIRE(m[r].ok);
      CHECK(!m[r].disordered);
      messages += m[r].ends.n;
    }
    CHECK_MSG(!untied(m, ranks) && messages > 100, "%u ranks: %u of %u messages are not tied", ranks,
              untied(m, ranks), messages);
    drop_members(m, ranks);
    arena_free(a);
  }
}

// ---- beside computation --------------------------------------------------------------------------------------
// Messages of the second connections come only once the rank has computed all layers: who waits for one before waits for
// ever. So it is seen that a rank goes on, whatever the machine does meanwhile.
enum { SIDE = 24, WIDE = 256, LAYERS = 6, LAST = 3 * LAYERS }; // LAST: instructions of main
typedef struct {
  mailbox box, aside;
  eval_rank *r;
  const char *text;
  bool ok, late;
  u32 sent, waits, early, late_early; // on the second connections; early: sent before the second wait
  u32 nth;                            // ... late_early: before this one
} worker;

static bool held_back(void *arg, uint32_t from, void *data, int64_t bytes) {
  enum { TRIES = 10000 };
  worker *w = arg;
  if (++w->waits == 2) w->early = w->sent;
  if (w->waits == w->nth) w->late_early = w->sent;
  for (u32 k = 0; k < TRIES && eval_rank_where(w->r)->top < LAST; k++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  w->late |= eval_rank_where(w->r)->top < LAST;
  return receive_from(&w->aside, from, data, bytes);
}
static bool send_aside(void *arg, uint32_t to, const void *data, int64_t bytes) {
  worker *w = arg;
  w->sent++;
  return send_to(&w->aside, to, data, bytes);
}

static void *work(void *arg) {
  worker *w = arg;
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "layers.heddle"), w->text, strlen(w->text));
  const eval_link beside = {.rank = w->box.rank, .arg = w, .send = send_aside, .receive = held_back},
                  link = {.rank = w->box.rank,
                          .arg = &w->box,
                          .send = send_to,
                          .receive = receive_from,
                          .beside = &beside};
  eval_array in[2], out;
  for (u32 k = 0; p && k < 2; k++) {
    in[k].s = eval_param_shape(p, k), in[k].data = NEWN(a, float, shape_elems(&in[k].s));
    fill(in[k].data, shape_elems(&in[k].s), k + 1, true);
  }
  const u32 next[2] = {0};
  w->r = p ? eval_rank_new(p, &(eval_opts){.threads = 1}, &link, in, 2) : NULL;
  w->ok = w->r && eval_rank_step(w->r, next);
  for (u32 k = 1; k <= LAYERS && w->ok; k++) {
    w->ok = eval_rank_result(w->r, k, &out, a);
    if (!w->box.rank) w->ok = w->ok && !memcmp(out.data, in[1].data, (size_t)shape_bytes(&in[1].s));
  }
  leave(w->box.p, w->box.rank), leave(w->aside.p, w->box.rank);
  eval_rank_free(w->r);
  if (p) prog_free(p);
  arena_free(a);
  ctx_free(c);
  return NULL;
}

// Layers one after the other, and a gather beside each, which nobody needs before the end.
static const char *layers(arena *a, u32 ranks, u32 side) {
  strbuf b = {.a = a};
  sb_fmt(
      &b,
      "mesh @m [d=%u]\nstream dp\nfunc @main(%%x0: f32[%d,%d] @m, %%w: f32[%d,%d{d}] @m) -> (f32[%d,%d] @m",
      ranks, side, side, side, side, side, side);
  for (u32 k = 0; k < LAYERS; k++) sb_fmt(&b, ", f32[%d,%d] @m", side, side);
  sb_put(&b, ") {\n");
  for (u32 k = 0; k < LAYERS; k++) {
    sb_fmt(&b, "  %%g%u = all_gather %%w over d @m !dp : f32[%d,%d]\n", k, side, side);
    sb_fmt(&b, "  %%y%u = matmul %%x%u, %%x0 @m\n  %%x%u = tanh %%y%u @m\n", k, k, k + 1, k);
  }
  sb_fmt(&b, "  return %%x%d", LAYERS);
  for (u32 k = 0; k < LAYERS; k++) sb_fmt(&b, ", %%g%u", k);
  sb_put(&b, "\n}\n");
  return sb_str(&b);
}

TEST(beside_computation_goes_on) {
  for (u32 ranks = 2; ranks <= 3; ranks++) {
    arena *a = arena_new();
    post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER}, aside = p;
    pthread_t t[RANKS];
    worker w[RANKS];
    const char *text = layers(a, ranks, SIDE);
    for (u32 k = 0; k < ranks; k++) w[k] = (worker){.box = {&p, k}, .aside = {&aside, k}, .text = text};
    for (u32 k = 0; k < ranks; k++) pthread_create(&t[k], NULL, work, &w[k]);
    for (u32 k = 0; k < ranks; k++) pthread_join(t[k], NULL);
    for (u32 k = 0; k < ranks; k++)
      CHECK_MSG(w[k].ok && !w[k].late, "rank %u of %u waited, or has other numbers", k, ranks);
    // All gathers had begun when the first had come: the link is not idle until it is their turn.
    for (u32 k = 0; k < ranks && ranks == 2; k++) CHECK_EQ_I64(w[k].early, LAYERS);
    post_free(&p), post_free(&aside);
    arena_free(a);
  }
}

// A piece of 128 KiB goes in three messages. What is sent before its turn is limited: of six gathers the first and some of the
// others when the second message is waited for, and some of the sixth when the last of the fifth is.
TEST(beside_computation_sends_early_within_limits) {
  enum { MESSAGES = 3 };
  arena *a = arena_new();
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER}, aside = p;
  pthread_t t[2];
  worker w[2];
  const char *text = layers(a, 2, WIDE);
  for (u32 k = 0; k < 2; k++)
    w[k] = (worker){.box = {&p, k}, .aside = {&aside, k}, .text = text, .nth = MESSAGES * (LAYERS - 1)};
  for (u32 k = 0; k < 2; k++) pthread_create(&t[k], NULL, work, &w[k]);
  for (u32 k = 0; k < 2; k++) pthread_join(t[k], NULL);
  for (u32 k = 0; k < 2; k++) {
    CHECK(w[k].ok);
    CHECK_EQ_I64(w[k].sent, MESSAGES * LAYERS);
    CHECK_MSG(w[k].early > MESSAGES && w[k].early < 2 * MESSAGES, "%u messages early", w[k].early);
    CHECK(w[k].late_early > MESSAGES * (LAYERS - 1));
  }
  post_free(&p), post_free(&aside);
  arena_free(a);
}
