// test_ranks.c - small programs whose ranks run in threads of their own: to the bit what the evaluator of all ranks has, where
// messages are taken late, and where pieces lie within others.
#include "eval/eval.h"
#include "mailbox.h"
#include "test.h"

enum { RESULTS = 4 };
typedef struct {
  mailbox box;
  const char *text;
  bool ok;
  arena *a;
  u32 n;
  eval_array out[RESULTS]; // of rank 0
  char why[512];
} rank_job;

static prog *parsed(ctx *c, arena *a, const char *text, eval_array **in, u32 *nin, u32 *nout) {
  prog *p = ir_parse(c, sym_of(c, "ranks.heddle"), text, strlen(text));
  if (!p) return NULL;
  const func_info *f = func_get(p, p->main);
  *nin = f->nparams, *nout = f->rets.n;
  *in = NEWN(a, eval_array, *nin + 1);
  return eval_random(p, 3, *in, *nin, a) && *nout <= RESULTS ? p : NULL;
}

static void *run_rank(void *arg) {
  rank_job *j = arg;
  ctx *c = ctx_new();
  eval_array *in;
  u32 nin;
  prog *p = parsed(c, j->a, j->text, &in, &nin, &j->n);
  const eval_link link = {.rank = j->box.rank, .arg = &j->box, .send = send_to, .receive = receive_from};
  u32 *next = p ? ZNEWN(j->a, u32, nin + 1) : NULL;
  eval_rank *r = p ? eval_rank_new(p, &(eval_opts){.threads = 1}, &link, in, nin) : NULL;
  j->ok = r;
  for (u32 step = 0; step < 2 && j->ok; step++)
    j->ok = eval_rank_step(r, next); // the second in the places of the first
  for (u32 k = 0; k < j->n && j->ok; k++) j->ok = eval_rank_result(r, k, &j->out[k], j->a);
  leave(j->box.p, j->box.rank);
  snprintf(j->why, sizeof j->why, "%s", diag_render(c, j->a));
  eval_rank_free(r);
  if (p) prog_free(p);
  ctx_free(c);
  return NULL;
}

// Every result, as rank 0 puts it together. zero: the result that is nothing but zeros; RESULTS: none.
static void equals_evaluator(const char *text, u32 ranks, u32 zero) {
  pthread_t t[RANKS];
  rank_job j[RANKS];
  post p = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  eval_array *in, out[RESULTS];
  u32 nin, nout;
  prog *whole = parsed(c, a, text, &in, &nin, &nout);
  CHECK_MSG(whole, "%s", diag_render(c, a));
  REQUIRE(whole && eval_run(whole, &(eval_opts){.threads = 1}, in, nin, out, nout, a));
  for (u32 k = 0; k < ranks; k++) j[k] = (rank_job){.box = {&p, k}, .text = text, .a = arena_new()};
  for (u32 k = 0; k < ranks; k++) pthread_create(&t[k], NULL, run_rank, &j[k]);
  for (u32 k = 0; k < ranks; k++) pthread_join(t[k], NULL);
  for (u32 k = 0; k < ranks; k++) CHECK_MSG(j[k].ok, "rank %u: %s", k, j[k].why);
  for (u32 k = 0; k < nout && j[0].ok; k++) {
    i64 at;
    const double off = eval_difference(&j[0].out[k], &out[k], &at);
    CHECK_MSG(off == 0, "result %u is off by %g at %lld", k, off, (long long)at);
    for (i64 i = 0; k == zero && i < shape_elems(&out[k].s); i++) CHECK_CLOSE(eval_element(&out[k], i), 0, 0);
  }
  for (u32 k = 0; k < ranks; k++) arena_free(j[k].a);
  post_free(&p);
  prog_free(whole);
  ctx_free(c);
}

// Rank 1 uses what it was sent first only at the end. Before that it gives and gets in one send, from the same rank as many bytes.
TEST(ranks_take_messages_in_order) {
  equals_evaluator("mesh @m [x=2, y=2]\n"
                   "main @f on @m(%a: f32[4] @m[x=0,y=0] weight, %b: f32[8{y}] @m[x=0] weight) -> "
                   "(f32[4] @m[x=0,y=1], f32[8{x}] @m[y=1]) {\n"
                   "  %s = send %a @m[x=0,y=0] : f32[4] @m[x=0,y=1]\n"
                   "  %t = send %b @m[x=0] : f32[8{x}] @m[y=1]\n"
                   "  %u = neg %s @m[x=0,y=1] : f32[4]\n"
                   "  return %u, %t\n}\n",
                   4, RESULTS);
}

// A microbatch lies within the batch: what is made in its place must leave the batch as it is.
TEST(ranks_leave_the_batch_of_a_microbatch) {
  equals_evaluator("mesh @m [x=2]\ntime [mb=2]\n"
                   "main @f on @m(%w: f32[8,8{x}] weight) -> (f32[8,8{x}], f32[8,8{x}]) {\n"
                   "  %v = neg %w : f32[8,8{x}]\n"
                   "  %s0 = part %v {at=0} over mb @m @mb=0 : f32[8{mb},8{x}]\n"
                   "  %s1 = part %v {at=1} over mb @m @mb=1 : f32[8{mb},8{x}]\n"
                   "  %r = neg !%s1 @m @mb=1 : f32[8{mb},8{x}]\n"
                   "  %j = join %s0, %r over mb @m : f32[8,8{x}]\n"
                   "  %z = add %v, %w : f32[8,8{x}]\n"
                   "  return %j, %z\n}\n",
                   2, 1);
}
TEST(ranks_leave_the_batch_of_a_sum) {
  equals_evaluator("mesh @m [x=2]\ntime [mb=2]\n"
                   "main @f on @m(%w: f32[8,8] weight) -> (f32[8,8], f32[8,8]) {\n"
                   "  %v = partial %w over x : f32[8,8]+x\n"
                   "  %s0 = part %v {at=0} over mb @m @mb=0 : f32[8{mb},8]+x\n"
                   "  %s1 = part %v {at=1} over mb @m @mb=1 : f32[8{mb},8]+x\n"
                   "  %r0 = all_reduce %s0 over x @m @mb=0 : f32[8{mb},8]\n"
                   "  %r1 = all_reduce %s1 over x @m @mb=1 : f32[8{mb},8]\n"
                   "  %j = join %r0, %r1 over mb @m : f32[8,8]\n"
                   "  %y = all_reduce %v over x : f32[8,8]\n"
                   "  %z = sub %y, %w : f32[8,8]\n"
                   "  return %j, %z\n}\n",
                   2, 1);
}
