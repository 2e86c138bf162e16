// test_profiling.c - what measurements make of clock readings: processes in threads, each with a clock that goes on by what the
// test says, so that every figure is known in advance.
#include "mailbox.h"
#include "profile/internal.h"
#include "test.h"
#include <math.h>
#include <unistd.h>

// ---- a clock of every thread -------------------------------------------------------------------------------------
static _Thread_local struct {
  u64 now;
  double byte_ns;   // that a byte takes to come
  u64 tick;         // that passes between two readings
  u64 (*late)(u64); // by reading, from 0: what passes besides; NULL: nothing
  u64 readings;
  i64 burst; // bytes that come at once after a pause, which is more than two instructions
  u64 heard; // readings before the latest message
} own_clock;

static u64 read_clock(void) {
  own_clock.now += own_clock.tick;
  if (own_clock.late) own_clock.now += own_clock.late(own_clock.readings);
  own_clock.readings++;
  return own_clock.now;
}
static bool receive_timed(void *arg, u32 from, void *data, i64 bytes) {
  const bool rested = own_clock.readings - own_clock.heard > 6;
  own_clock.now += (u64)((double)MAX(bytes - (rested ? own_clock.burst : 0), 0) * own_clock.byte_ns);
  own_clock.heard = own_clock.readings;
  return receive_from(arg, from, data, bytes);
}

static profile_job job_of(mailbox *seat, u32 nprocs) {
  return (profile_job){.link = {.rank = seat->rank, .arg = seat, .send = send_to, .receive = receive_timed},
                       .nprocs = nprocs,
                       .threads = 1,
                       .now_ns = read_clock};
}

// ---- one communication -------------------------------------------------------------------------------------------
typedef struct {
  u32 nprocs, n, members[SEATS];
  cost_event e;
  double byte_ns[SEATS]; // by process
  double off_ns;
  u64 (*late)(u64); // of all
  i64 burst;        // of all
  bool asks;        // first, whether the link is slow
  profile_figure out;
} comm_case;
typedef struct {
  comm_case *of;
  mailbox box;
  bool ok;
} comm_process;

static void *measure_comm(void *arg) {
  comm_process *x = arg;
  comm_case *k = x->of;
  ctx *c = ctx_new();
  const profile_job j = job_of(&x->box, k->nprocs);
  profile_figure out = {0};
  own_clock.now = 0, own_clock.readings = 0;
  own_clock.byte_ns = k->byte_ns[x->box.rank], own_clock.late = k->late, own_clock.tick = 0;
  own_clock.burst = k->burst;
  bool slow = false;
  x->ok = (!k->asks || comm_is_slow(&j, c, k->members, k->n, &slow)) &&
          comm_measure(&j, c, &k->e, (split_at){1, 1}, k->members, k->n, k->off_ns, slow, &out);
  if (!x->box.rank) k->out = out;
  leave(x->box.p, x->box.rank);
  ctx_free(c);
  return NULL;
}

static const profile_figure *measured(comm_case *k) {
  pthread_t t[SEATS];
  comm_process x[SEATS];
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  for (u32 q = 0; q < k->nprocs; q++) x[q] = (comm_process){k, {&p, q}, false};
  for (u32 q = 0; q < k->nprocs; q++) pthread_create(&t[q], NULL, measure_comm, &x[q]);
  for (u32 q = 0; q < k->nprocs; q++) pthread_join(t[q], NULL);
  for (u32 q = 0; q < k->nprocs; q++) CHECK(x[q].ok);
  post_free(&p);
  return &k->out;
}

// Every member gets all but its own part. Who waits least has seen what the communication takes.
TEST(profiling_takes_who_waits_least) {
  comm_case k = {.nprocs = 4,
                 .n = 3,
                 .members = {3, 1, 2},
                 .e = {.op = OP_all_gather, .t = DT_F32, .size = 1200},
                 .byte_ns = {1, 30, 20, 40}};
  CHECK_CLOSE(measured(&k)->median, 800 * 20, 0); // process 0 takes no part
  CHECK(k.out.spread == 0 && k.out.count == 2 * 4);
  k.byte_ns[3] = 10;
  CHECK_CLOSE(measured(&k)->median, 800 * 10, 0);
  k.n = 2; // processes 3 and 1
  CHECK_CLOSE(measured(&k)->median, 600 * 10, 0);
}

// There and back: each side sees half of the messages.
TEST(profiling_halves_the_way_of_a_send) {
  comm_case k = {.nprocs = 3,
                 .n = 2,
                 .members = {2, 1},
                 .e = {.op = OP_send, .t = DT_F32, .size = 4096},
                 .byte_ns = {1, 10, 30}};
  CHECK_CLOSE(measured(&k)->median, 4096 * 10 / 2, 0);
  CHECK(k.out.count == 2);
  k.byte_ns[2] = 6;
  CHECK_CLOSE(measured(&k)->median, 4096 * 6 / 2, 0);
}

// Of large ones there are fewer in a step.
TEST(profiling_repeats_large_ones_less) {
  comm_case k = {.nprocs = 2,
                 .n = 2,
                 .members = {0, 1},
                 .e = {.op = OP_all_gather, .t = DT_F32, .size = 2 << 20},
                 .byte_ns = {1, 1}};
  CHECK_CLOSE(measured(&k)->median, 1 << 20, 0);
  CHECK_EQ_I64(k.out.count, 2 * 4);
}

// What a slow link lets pass at once after a pause is not its rate; of a fast one times are those with pauses. Half of 256 KiB comes
// to each, so links are slow from 4 ns a byte on.
TEST(profiling_measures_slow_links_in_rows) {
  comm_case k = {.nprocs = 3,
                 .n = 2,
                 .members = {2, 1},
                 .e = {.op = OP_all_gather, .t = DT_F32, .size = 1 << 20},
                 .byte_ns = {1, 16, 16},
                 .burst = 60000,
                 .asks = true};
  CHECK_CLOSE(measured(&k)->median, 16 << 19, 0);
  CHECK(k.out.count == 2 && k.out.spread == 0);
  k.byte_ns[1] = k.byte_ns[2] = 5;
  CHECK_CLOSE(measured(&k)->median, 5 << 19, 0);
  k.byte_ns[1] = k.byte_ns[2] = 3;
  CHECK_CLOSE(measured(&k)->median, 3 * ((1 << 19) - 60000), 0);
  k.e.size = 32 << 10, k.byte_ns[1] = k.byte_ns[2] = 16;
  CHECK_CLOSE(measured(&k)->median, 16 << 14, 0);
  k.e.op = OP_send; // what its receiver sees, although the sender sees next to nothing
  k.byte_ns[1] = k.byte_ns[2] = 32;
  CHECK_CLOSE(measured(&k)->median, 32 << 15, 0);
}

static u64 uneven(u64 reading) { return reading * 7919 % 13 * 10; }

// Times that differ are repeated until they are known well enough, or as well as they matter.
TEST(profiling_repeats_until_it_is_known) {
  comm_case k = {.nprocs = 2,
                 .n = 2,
                 .members = {0, 1},
                 .e = {.op = OP_all_gather, .t = DT_F32, .size = 80},
                 .byte_ns = {1, 1},
                 .late = uneven};
  const profile_figure known = *measured(&k);
  CHECK_MSG(known.count > 3 * 8 && known.spread > 0, "%u", known.count);
  CHECK(known.spread / sqrt(known.count) < 0.05);
  k.off_ns = 1e6;
  CHECK_EQ_I64(measured(&k)->count, 2 * 4);
}

// ---- computation ---------------------------------------------------------------------------------------------------
static prog *parsed(ctx *c, const char *text) {
  prog *p = ir_parse(c, sym_of(c, "program"), text, strlen(text));
  CHECK_MSG(p, "%s", diag_render(c, ctx_arena(c)));
  return p;
}
static const double *time_of(const profile_events *x, const double *v, const char *op) {
  for (u32 k = 0; k < x->v.n; k++)
    if (!strncmp(x->v.v[k].key, op, strlen(op)) && x->v.v[k].key[strlen(op)] == ' ')
      return v + (size_t)k * WALK_MOST;
  CHECK_MSG(false, "there is no %s", op);
  static const double none[WALK_MOST];
  return none;
}

// Of a process alone, rank 0 of the program, which has two ranks.
typedef struct {
  ctx *c;
  prog *p;
  machine *m;
  profile_events x;
  double *v;
  walk_steps steps;
  bool ok;
} walked;
// only: the operator that is wanted; NULL: all are.
static walked walk(const char *text, u32 rank, u64 tick, u64 (*late)(u64), const char *only) {
  walked w = {.c = ctx_new()};
  arena *a = ctx_arena(w.c);
  mailbox seat = {NULL, 0};
  const profile_job j = job_of(&seat, 1);
  w.m = machine_load(w.c, a, "1x2 cpu-core"), w.p = parsed(w.c, text);
  REQUIRE(w.m && w.p && profile_events_of(&w.x, w.c, a, w.p, w.m));
  bool *wanted = NEWN(a, bool, w.x.v.n);
  for (u32 k = 0; k < w.x.v.n; k++) wanted[k] = !only || !strcmp(op_row_of(w.x.v.v[k].e.op)->name, only);
  w.v = NEWN(a, double, (size_t)w.x.v.n *WALK_MOST);
  own_clock.now = 0, own_clock.readings = 0, own_clock.tick = tick, own_clock.late = late;
  w.ok = walk_rank(&j, w.c, &w.x, rank, wanted, w.v, &w.steps);
  return w;
}
static void walked_free(walked *w) { prog_free(w->p), ctx_free(w->c); }

static const char chain[] = "mesh @m [x=2]\n"
                            "main @f on @m(%x: f32[8{x},8] weight, %w: f32[8,8] weight) -> (f32[8,8]) {\n"
                            "  %a = matmul %x, %w : f32[8{x},8]\n"
                            "  %b = relu %a : f32[8{x},8]\n"
                            "  %c = relu %b : f32[8{x},8]\n"
                            "  %d = reshape %c {shape=[8,8]} : f32[8{x},8]\n"
                            "  %e = scale %d {alpha=2} : f32[8{x},8]\n"
                            "  %f = reshape %e {shape=[8,8]} : f32[8{x},8]\n"
                            "  %g = all_gather %f over x : f32[8,8]\n"
                            "  %h = tanh %g : f32[8,8]\n"
                            "  return %h\n}\n";
enum { TICK = 1200 };

// Each instruction takes one tick. A view is a part of the computation after it; before a communication, of the one before, as is
// what follows the last one. An event takes what its instructions take on average.
TEST(profiling_charges_all_of_a_step) {
  walked w = walk(chain, 0, TICK, NULL, NULL);
  REQUIRE(w.ok);
  for (u32 s = 0; s < 3; s++) {
    CHECK_CLOSE(time_of(&w.x, w.v, "matmul")[s], TICK, 1e-12);
    CHECK_CLOSE(time_of(&w.x, w.v, "relu")[s], TICK, 1e-12);
    CHECK_CLOSE(time_of(&w.x, w.v, "scale")[s], 3 * TICK, 1e-12);
    CHECK_CLOSE(time_of(&w.x, w.v, "tanh")[s], 2 * TICK, 1e-12);
  }
  CHECK(isnan(time_of(&w.x, w.v, "matmul")[5]) && isnan(time_of(&w.x, w.v, "all_gather")[0]));
  CHECK_CLOSE(w.steps.ns[0], 8 * TICK, 1e-12);
  walked_free(&w);
}

// The first step is warm-up, whatever it takes.
static u64 late_at_first(u64 reading) { return reading < 6 ? 1000000 : 0; }
TEST(profiling_leaves_out_the_first_step) {
  walked w = walk(chain, 0, TICK, late_at_first, NULL);
  REQUIRE(w.ok);
  CHECK_CLOSE(time_of(&w.x, w.v, "matmul")[0], TICK, 1e-12);
  CHECK_CLOSE(w.steps.ns[0], 8 * TICK, 1e-12);
  walked_free(&w);
}

// In every step another computation takes ten ticks more: no median sees it, and the step has it.
enum { READINGS = 18 }; // of a step: where it begins and ends, and two after each of 8 instructions
static u64 late_in_turn(u64 reading) {
  static const u64 at[3] = {1, 9, 15}; // matmul, scale, tanh
  return reading && (reading - 1) % READINGS == at[(reading - 1) / READINGS % 3] ? 10 * TICK : 0;
}
TEST(profiling_adds_up_to_the_step) {
  walked w = walk(chain, 0, TICK, late_in_turn, NULL);
  REQUIRE(w.ok);
  CHECK_CLOSE(w.steps.ns[0], 18 * TICK, 1e-12);
  CHECK_CLOSE(time_of(&w.x, w.v, "matmul")[1], TICK * 18. / 8, 1e-12);
  const double sum =
      profile_median(time_of(&w.x, w.v, "matmul"), 3) + 2 * profile_median(time_of(&w.x, w.v, "relu"), 3) +
      profile_median(time_of(&w.x, w.v, "scale"), 3) + profile_median(time_of(&w.x, w.v, "tanh"), 3);
  CHECK_CLOSE(sum, 18 * TICK, 1e-12);
  walked_free(&w);
}

// What is repeated until it is known is what was asked for: another computation may differ.
static u64 late_tanh(u64 reading) {
  return reading && (reading - 1) % READINGS == 15 ? reading * 7919 % 13 * TICK : 0;
}
TEST(profiling_asks_for_what_is_wanted) {
  walked w = walk(chain, 0, TICK, late_tanh, "matmul");
  REQUIRE(w.ok && isnan(time_of(&w.x, w.v, "matmul")[5]));
  walked_free(&w);
  w = walk(chain, 0, TICK, late_tanh, "tanh");
  REQUIRE(w.ok && !isnan(time_of(&w.x, w.v, "matmul")[3]));
  walked_free(&w);
}

// What rank 1 sends comes back to it, so that numbers are as large as in a step; but zeros where it might be taken for an index
// or is of another type. Rank 1 looks up a table of 4 rows at what it receives.
static bool hears(const char *number, const char *sent, const char *received, const char *cast) {
  char program[1200];
  snprintf(program, sizeof program,
           "mesh @m [x=2]\n"
           "main @f on @m(%%t: f32[4,2] @m[x=1] weight, %%z: %s @m[x=0] weight) -> (f32[2,2] @m[x=1]) {\n"
           "  %%s = full {shape=[2], dtype=%.3s, value=%s} @m[x=1] : %s\n"
           "  %%h = send %%s @m[x=1] : %s @m[x=0]\n"
           "  %%r = send %%z @m[x=0] : %s @m[x=1]\n"
           "%s"
           "  %%g = gather %%t, %%i {axis=0} @m[x=1] : f32[2,2]\n"
           "  return %%g\n}\n",
           received, sent, number, sent, sent, received, cast);
  walked w = walk(program, 1, TICK, NULL, NULL);
  if (!w.ok)
    CHECK_MSG(strstr(diag_render(w.c, ctx_arena(w.c)), "index"), "%s", diag_render(w.c, ctx_arena(w.c)));
  const bool ok = w.ok;
  walked_free(&w);
  return ok;
}
TEST(profiling_hears_what_it_sends) {
  static const char as_index[] = "  %i = cast %r {dtype=i64} @m[x=1] : i64[2]\n",
                    itself[] = "  %i = add %r, %r @m[x=1] : i64[2]\n";
  CHECK(hears("3", "f32[2]", "f32[2]", as_index) && !hears("5", "f32[2]", "f32[2]", as_index));
  CHECK(hears("5", "f32[2]", "i64[2]", itself) && hears("5", "i64[2]", "i64[2]", itself));
}

// ---- a session -----------------------------------------------------------------------------------------------------
typedef struct {
  const char *text, *then, *machine; // then: a second program; NULL: there is none
  u32 nprocs;
  double byte_ns[SEATS];
  u64 tick[SEATS];
  u64 (*late[SEATS])(u64);
  const char *db;
  profile_report report; // of process 0
} session_case;
typedef struct {
  session_case *of;
  mailbox box;
  bool ok;
  profile_report report;
} session_process;

static void *run_session(void *arg) {
  session_process *x = arg;
  const session_case *k = x->of;
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const profile_job j = job_of(&x->box, k->nprocs);
  const profile_opts o = {.path = k->db, .versions = "here"};
  own_clock.now = 0, own_clock.readings = 0, own_clock.late = k->late[x->box.rank];
  own_clock.byte_ns = k->byte_ns[x->box.rank], own_clock.tick = k->tick[x->box.rank];
  machine *m = machine_load(c, a, k->machine);
  prog *p = parsed(c, k->text), *then = k->then ? parsed(c, k->then) : NULL;
  profile_session *s = profile_begin(&j, c, a, m, &o, &x->report);
  x->ok = s && profile_programs(s, &(const prog *){p}, 1);
  x->ok = x->ok && (!then || profile_programs(s, &(const prog *){then}, 1));
  profile_end(s);
  prog_free(p), prog_free(then);
  leave(x->box.p, x->box.rank);
  ctx_free(c);
  return NULL;
}

// The rows of the database.
static u32 session(session_case *k, ctx *c, measured_event **row) {
  pthread_t t[SEATS];
  session_process x[SEATS];
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  k->db = arena_printf(ctx_arena(c), "/tmp/heddle-profiling-%d.db", (int)getpid());
  unlink(k->db);
  for (u32 q = 0; q < k->nprocs; q++) x[q] = (session_process){.of = k, .box = {&p, q}};
  for (u32 q = 0; q < k->nprocs; q++) pthread_create(&t[q], NULL, run_session, &x[q]);
  for (u32 q = 0; q < k->nprocs; q++) pthread_join(t[q], NULL);
  for (u32 q = 0; q < k->nprocs; q++) CHECK(x[q].ok);
  post_free(&p);
  k->report = x[0].report;
  u32 n = 0;
  event_db *db = event_db_open(c, ctx_arena(c), k->db, false);
  REQUIRE(db && event_db_get(db, ctx_arena(c), k->machine, "here", row, &n));
  event_db_close(db);
  unlink(k->db);
  return n;
}

// Eight processes measure what more would do, and a ring tells the rest; no more take part.
TEST(profiling_scales_from_eight_members) {
  session_case k = {.text = "mesh @m [x=12]\nmain @f on @m(%w: f32[96{x},8] weight) -> (f32[96,8]) {\n"
                            "  %r = all_gather %w over x : f32[96,8]\n  return %r\n}\n",
                    .machine = "1x12 cpu-core",
                    .nprocs = 10};
  for (u32 q = 0; q < SEATS; q++) k.byte_ns[q] = q < 8 ? 3 : 1;
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 1);
  const double eight = 3072 * 7 / 8 * 3;
  CHECK_EQ_I64(row->ps, (i64)(eight * (11. / 12) / (7. / 8) * 1e3 + 0.5));
  CHECK(row->source == EVENT_SCALED && row->spread == 0 && row->count == 2 * 4);
  CHECK(k.report.nscaled == 1 && !k.report.nmeasured && !k.report.nleft);
  ctx_free(c);
}

// A communication of ranks 0 and 2 is measured by processes 0 and 2.
TEST(profiling_takes_the_ranks_of_the_program) {
  session_case k = {.text = "mesh @m [x=2, y=2]\nmain @f on @m(%w: f32[8{x},8] weight) -> (f32[8,8]) {\n"
                            "  %r = all_gather %w over x : f32[8,8]\n  return %r\n}\n",
                    .machine = "1x4 cpu-core",
                    .nprocs = 4,
                    .byte_ns = {10, 1, 7, 1}};
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 1);
  CHECK_EQ_I64(row->ps, 128 * 7 * 1000);
  CHECK(row->source == EVENT_MEASURED && k.report.nmeasured == 1 && !k.report.nscaled);
  k.nprocs = 2; // rank 2 is not there: any two
  REQUIRE(session(&k, c, &row) == 1);
  CHECK_EQ_I64(row->ps, 128 * 1 * 1000);
  CHECK(row->source == EVENT_MEASURED);
  k.nprocs = 1;
  CHECK(session(&k, c, &row) == 0 && k.report.nleft == 1);
  ctx_free(c);
}

// Four processes, two parts: each is run by two of them, and the repeats of both count.
TEST(profiling_deals_parts_to_all) {
  session_case k = {
      .text = "mesh @m [x=2]\nmain @f on @m(%v: f32[8,8] @m[x=0] weight, %w: f32[8,8] @m[x=1] weight) "
              "-> (f32[8,8] @m[x=0], f32[8,8] @m[x=1]) {\n"
              "  %r = relu %v @m[x=0] : f32[8,8]\n  %t = tanh %w @m[x=1] : f32[8,8]\n"
              "  return %r, %t\n}\n",
      .machine = "1x4 cpu-core",
      .nprocs = 4,
      .tick = {100, 1000, 300, 3000}};
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 2);
  for (u32 e = 0; e < 2; e++) CHECK(row[e].count == 2 * 5 && row[e].source == EVENT_MEASURED);
  CHECK_EQ_I64(row[0].ps,
               3 * 200 * 1000); // what the other rank computes, and the end of the step, take a tick too
  CHECK_EQ_I64(row[1].ps, 3 * 2000 * 1000);
  ctx_free(c);
}

// The two ranks of a program wait for the slower one, in whichever step that is; a program of one rank for nobody.
TEST(profiling_waits_for_the_slowest) {
  static const char both[] = "mesh @m [x=2]\nmain @f on @m(%v: f32[8{x},8] weight) -> (f32[8{x},8]) {\n"
                             "  %r = relu %v : f32[8{x},8]\n  return %r\n}\n",
                    alone[] = "mesh @m [x=1]\nmain @f on @m(%v: f32[8,8] weight) -> (f32[8,8]) {\n"
                              "  %r = relu %v : f32[8,8]\n  return %r\n}\n";
  session_case k = {.text = both, .machine = "1x2 cpu-core", .nprocs = 2, .tick = {1000, 3000}};
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 1);
  CHECK_EQ_I64(row[0].ps, 2 * 3000 * 1000);
  k.text = alone;
  REQUIRE(session(&k, c, &row) == 1);
  CHECK_EQ_I64(row[0].ps, 2 * 2000 * 1000); // both run it: the middle
  ctx_free(c);
}
// What an earlier program had measured is a part of the step, too.
TEST(profiling_knows_the_whole_step_of_a_later_program) {
  session_case k = {.text = "mesh @m [x=2]\nmain @f on @m(%v: f32[8{x},8] weight) -> (f32[8{x},8]) {\n"
                            "  %r = relu %v : f32[8{x},8]\n  return %r\n}\n",
                    .then = "mesh @m [x=2]\nmain @f on @m(%v: f32[8{x},8] weight) -> (f32[8{x},8]) {\n"
                            "  %r = relu %v : f32[8{x},8]\n  %t = tanh %r : f32[8{x},8]\n  return %t\n}\n",
                    .machine = "1x2 cpu-core",
                    .nprocs = 2,
                    .tick = {1000, 1000}};
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 2);
  CHECK_EQ_I64(row[0].ps, 2 * 1000 * 1000);
  CHECK_EQ_I64(row[1].ps, 2 * 1000 * 1000);
  ctx_free(c);
}

// ---- waiting, of this process and of another one whose figures are given ------------------------------------------
typedef struct {
  const double *at, *end;
} script;
static bool told(void *arg, u32 from, void *data, i64 bytes) {
  script *x = arg;
  (void)from;
  REQUIRE((x->end - x->at) * 8 >= bytes);
  memcpy(data, x->at, (size_t)bytes), x->at += bytes / 8;
  return true;
}
static bool say_nothing(void *arg, u32 to, const void *data, i64 bytes) {
  (void)arg, (void)to, (void)data, (void)bytes;
  return true;
}
// other: what it computes by figures, its program, ranks of that, and its steps, as they are sent.
static double factor(const double *ns, u32 nsteps, double settled, u32 ranks, const double *other,
                     u32 nother) {
  double own[8] = {0}, by[2] = {0};
  memcpy(own, ns, nsteps * sizeof *ns);
  script x = {other, other + nother};
  const profile_job j = {
      .link = {.arg = &x, .send = say_nothing, .receive = told}, .nprocs = 2, .threads = 1};
  arena *a = arena_new();
  CHECK(slowest_of_all(&j, a, &(walk_steps){nsteps, own, NULL}, settled, 0, ranks, by));
  arena_free(a);
  return by[0];
}
#define D(...)                                                                                               \
  (const double[]) { __VA_ARGS__ }
TEST(profiling_waits_as_ranks_do) {
  // In every step for the slower one; the median of the steps.
  CHECK_CLOSE(factor(D(100, 110, 100), 3, 100, 2, D(100, 0, 2, 120, 100, 100), 6), 1.1, 1e-12);
  // Another program stands for a rank, as long as this one's longest part; a program of one rank waits for nobody.
  CHECK_CLOSE(factor(D(100), 1, 100, 2, D(300, 1, 2, 300), 4), 1, 1e-12);
  CHECK_CLOSE(factor(D(100), 1, 100, 2, D(300, 1, 2, 360), 4), 1.2, 1e-12);
  CHECK_CLOSE(factor(D(100), 1, 150, 1, D(150, 0, 1, 300), 4), 1, 1e-12);
  // One that computes nothing says nothing; of stages the longest counts.
  CHECK_CLOSE(factor(D(150), 1, 100, 2, D(0, 0, 2, 0), 4), 1, 1e-12);
  CHECK_CLOSE(factor(D(300), 1, 300, 2, D(100, 0, 2, 120), 4), 1, 1e-12);
}
#undef D

// Three stages on four processes: no window of neighbours makes prices shorter than what was measured. Nor does a rank that is skipped.
TEST(profiling_never_makes_a_step_shorter) {
  session_case k = {
      .text = "mesh @m [x=3]\nmain @f on @m(%u: f32[8,8] @m[x=0] weight, %v: f32[8,8] @m[x=1] weight, "
              "%w: f32[8,8] @m[x=2] weight) -> (f32[8,8] @m[x=0], f32[8,8] @m[x=1], f32[8,8] @m[x=2]) {\n"
              "  %r = relu %u @m[x=0] : f32[8,8]\n  %s = tanh %v @m[x=1] : f32[8,8]\n"
              "  %t = exp %w @m[x=2] : f32[8,8]\n  return %r, %s, %t\n}\n",
      .machine = "1x4 cpu-core",
      .nprocs = 4,
      .tick = {1000, 1000, 3000, 1000}};
  ctx *c = ctx_new();
  measured_event *row;
  REQUIRE(session(&k, c, &row) == 3);
  i64 most = 0, least = INT64_MAX;
  for (u32 e = 0; e < 3; e++) most = MAX(most, row[e].ps), least = MIN(least, row[e].ps);
  CHECK_EQ_I64(most, 3 * least);
  CHECK_EQ_I64(least, 4 * 1000 * 1000);
  k = (session_case){.text = "mesh @m [x=1] ranks 1..\nmain @f on @m(%v: f32[8,8] weight) -> (f32[8,8]) {\n"
                             "  %r = relu %v : f32[8,8]\n  return %r\n}\n",
                     .machine = "1x2 cpu-core",
                     .nprocs = 2,
                     .tick = {1000, 3000}};
  REQUIRE(session(&k, c, &row) == 1);
  CHECK_EQ_I64(row[0].ps, 2 * 2000 * 1000);
  ctx_free(c);
}

static u64 very_uneven(u64 reading) { return reading * 7919 % 13 * TICK; }
TEST(profiling_repeats_an_uneven_step) {
  walked w = walk(chain, 0, TICK, very_uneven, NULL);
  CHECK_MSG(w.ok && w.steps.nsteps > 5, "%u", w.steps.nsteps);
  walked_free(&w);
}

// Before each communication 8 MB are written and a product runs, but in a row.
TEST(profiling_leaves_caches_cold) {
  for (u32 row = 0; row < 2; row++) {
    ctx *c = ctx_new();
    const cost_event e = {.op = OP_all_reduce, .t = DT_F32, .size = 240};
    prog *p = comm_program(c, ctx_arena(c), &e, 2, 3, (split_at){1, 1}, row);
    REQUIRE(p);
    const func_info *f = func_get(p, p->main);
    u32 written = 0, products = 0;
    for (u32 k = 0; k < f->body.n; k++) {
      const instr *i = &f->body.v[k];
      written += i->op == OP_full && type_get(p, f->values.v[i->res].ty)->s.dim[0] >= 2 << 20;
      products += i->op == OP_matmul;
    }
    CHECK(written == 3 * !row && products == 3 * !row);
    prog_free(p), ctx_free(c);
  }
}

// All rows of a kind are fitted.
TEST(profiling_fits_all_rows) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *path = arena_printf(a, "/tmp/heddle-profiling-%d.db", (int)getpid());
  measured_event row[24];
  profile_report r = {0};
  machine *m = machine_load(c, a, "1x4 cpu-core");
  for (u32 k = 0; k < 24; k++)
    row[k] = (measured_event){
        arena_printf(a, "relu f32[%u,64] -> f32[%u,64] on cpu-core", 64 * (k + 1), 64 * (k + 1)),
        1000000 + 5000 * (k + 1), 0.01, 9, EVENT_MEASURED};
  unlink(path);
  event_db *db = event_db_open(c, a, path, true);
  REQUIRE(m && db && event_db_put(db, sym_str(c, m->name), "v", row, 24));
  event_db_close(db);
  CHECK(profile_fit(c, a, m, path, &r) && r.fits && r.nfits == 1 && !r.nthin);
  CHECK_EQ_I64(r.fit[0].count, 24);
  unlink(path);
  ctx_free(c);
}
