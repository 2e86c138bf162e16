// splits.c - both solvers of splits.h, the dynamic program and the stochastic one, against all assignments of random problems, each costed
// by the definition in the header (not by the program's own steps); and automatic plans against hybrids of the same degrees, both simulated.
#include "plan/plan.h"
#include "search/search.h"
#include "front/front.h"
#include "cost/cost.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static u64 R;
static i64 few(i64 n) { return (i64)(rng_next(&R) % (u64)n); }

// ---- random problems ------------------------------------------------------------------------------------------
// FEW: operators with several options each; the dynamic program goes over more than 9 twice.
enum { FEW = 8, OPS = 12, TENSORS = 3 * OPS, STATES = 4, OPTIONS = 4, OPERANDS = 3 };
typedef struct {
  splits_problem p;
  splits_op op[OPS];
  splits_tensor tensor[TENSORS];
  splits_option option[OPS][OPTIONS];
  u32 opd[OPS][OPERANDS], res[OPS][2];
  bool again[OPS][OPERANDS];
  u8 state[OPS][OPTIONS][3][OPERANDS];
  i64 convert[TENSORS][STATES * STATES], bytes[TENSORS][STATES], settle[TENSORS][(STATES + 1) * STATES];
} problem;

static void make_tensor(problem *x, u32 t, bool weight) {
  const u32 n = 2 + (u32)few(STATES - 1);
  for (u32 i = 0; i < n; i++) {
    for (u32 j = 0; j < n; j++) {
      x->convert[t][i * n + j] = i == j ? 0 : few(12) ? few(30) : -1;
      x->settle[t][i * n + j] = i == j || i == LIES_SUM || few(12) ? few(40) : -1;
    }
    x->bytes[t][i] = few(20), x->settle[t][n * n + i] = few(8) ? few(10) : -1;
  }
  x->tensor[t] = (splits_tensor){.nstates = n,
                                 .convert = x->convert[t],
                                 .bytes = few(3) ? x->bytes[t] : NULL,
                                 .gradient = few(3) > 0,
                                 .weight = weight,
                                 .settle = weight ? x->settle[t] : NULL};
}

static void make_op(problem *x, u32 i, bool ties, u32 options) {
  splits_op *op = &x->op[i];
  const u32 made = x->p.ntensors; // of operators before
  op->nopd = 0, op->nres = 1 + (few(4) == 0);
  for (u32 k = 0; k < OPERANDS - 1 && made; k++)
    if (few(3)) x->opd[i][op->nopd++] = few(2) ? made - 1 : (u32)few(made);
  if (few(2)) { // a weight, sometimes one that was read before
    x->opd[i][op->nopd++] = x->p.ntensors;
    make_tensor(x, x->p.ntensors++, true);
  }
  for (u32 k = 0; k < op->nres; k++) {
    x->res[i][k] = x->p.ntensors;
    make_tensor(x, x->p.ntensors++, false);
  }
  op->opd = x->opd[i], op->res = x->res[i], op->again = x->again[i], op->option = x->option[i];
  for (u32 k = 0; k < op->nopd; k++) x->again[i][k] = few(2);
  op->noptions = 1 + (u32)few(options);
  for (u32 o = 0; o < op->noptions; o++) {
    u8(*s)[OPERANDS] = x->state[i][o];
    for (u32 k = 0; k < op->nopd; k++) {
      s[0][k] = (u8)few(x->tensor[x->opd[i][k]].nstates);
      s[1][k] = few(5) ? (u8)few(x->tensor[x->opd[i][k]].nstates) : LIES_NONE;
    }
    for (u32 k = 0; k < op->nres; k++) s[2][k] = (u8)few(x->tensor[x->res[i][k]].nstates);
    x->option[i][o] = (splits_option){few(40), few(10), s[0], s[1], s[2], o && few(8) == 0, o && few(8) == 0};
  }
  op->named = few(5) == 0;
  if (!ties || i == 0 || few(3)) return;
  const u32 with = (u32)few(i); // both have as many options then
  if (x->op[with].tie || x->op[with].noptions != op->noptions) return;
  x->op[with].tie = op->tie = i + 1;
}

// least .. most operators.
static void make_ops(problem *x, u32 least, u32 most, u32 options) {
  memset(x, 0, sizeof *x);
  x->p = (splits_problem){.op = x->op, .tensor = x->tensor, .forwards = 1 + (u32)few(2)};
  x->p.nops = least + (u32)few(most - least + 1);
  const bool ties = few(2);
  for (u32 i = 0; i < x->p.nops; i++) make_op(x, i, ties, options);
}
static void make_problem(problem *x) { make_ops(x, 2, FEW, OPTIONS - 1); }
// One in three has more operators, and fewer options each.
static void make_longer(problem *x) {
  if (few(3))
    make_problem(x);
  else
    make_ops(x, FEW + 2, OPS, 2);
}

// ---- costs, from the definition ---------------------------------------------------------------------------------
// By tensor: the readers in order. Everything about one tensor is looked at by itself.
static i64 ways(const splits_tensor *t, u32 from, u32 to, bool *ok) {
  const i64 ps = from == to ? 0 : t->convert[from * t->nstates + to];
  if (ps < 0) *ok = false;
  return ps;
}

static bool cost_of_tensor(const problem *x, u32 t, const u16 *pick, i64 *ps, i64 *bytes) {
  const splits_tensor *y = &x->tensor[t];
  u32 need[64], grad[64], n = 0, made = LIES_NONE;
  bool again[64], as_comes[64], back_comes = false, ok = true, there[2][STATES] = {{false}};
  for (u32 i = 0; i < x->p.nops; i++) {
    const splits_op *op = &x->op[i];
    const splits_option *o = &op->option[pick[i]];
    for (u32 k = 0; k < op->nopd; k++)
      if (op->opd[k] == t)
        need[n] = o->need[k], as_comes[n] = o->as_comes, grad[n] = o->grad[k], again[n++] = op->again[k];
    for (u32 k = 0; k < op->nres; k++)
      if (op->res[k] == t) made = o->made[k], back_comes = o->grads_come;
  }
  if (y->weight && n) made = need[0] == LIES_SUM ? (u32)LIES_WHOLE : need[0];
  if (made == LIES_NONE) return true;
  u32 first = made; // what later conversions begin from, and what is kept
  bool summed = made != LIES_SUM || y->weight;
  there[0][made] = true;
  // in the order of readers; the backward's conversions begin where the sum lies by then
  for (u32 k = 0; k < n; k++) {
    const bool comes = need[k] == made && (made != LIES_SUM || !summed);
    ok = ok && (!as_comes[k] || comes || (y->weight && !k)); // a weight lies as its first reader has it
    if (!there[0][need[k]]) {
      *ps += x->p.forwards * ways(y, first, need[k], &ok);
      there[0][need[k]] = true;
      if (!summed) first = need[k], summed = true;
    }
    if (again[k] && need[k] != LIES_SUM && need[k] != first && !there[1][need[k]]) {
      *ps += ways(y, first, need[k], &ok);
      there[1][need[k]] = true;
    }
  }
  if (y->bytes) *bytes += y->bytes[first];
  u32 sum = LIES_NONE;
  for (u32 k = 0; k < n && y->gradient; k++) {
    if (grad[k] == LIES_NONE) continue;
    if (sum == LIES_NONE || sum == grad[k]) {
      sum = grad[k];
      continue;
    }
    const u32 both = sum >= LIES_PIECES ? sum : grad[k] >= LIES_PIECES ? grad[k] : (u32)LIES_WHOLE;
    *ps += ways(y, sum, both, &ok) + ways(y, grad[k], both, &ok);
    sum = both;
  }
  if (y->settle) {
    const i64 settled = y->settle[(sum == LIES_NONE ? y->nstates : sum) * y->nstates + made];
    *ps += MAX(settled, 0);
    return ok && settled >= 0;
  }
  if (sum == LIES_NONE) return ok;
  if (back_comes) return ok && sum == LIES_SUM;
  *ps += ways(y, sum, made == LIES_SUM ? (u32)LIES_WHOLE : made, &ok);
  return ok;
}

static bool cost_of(const problem *x, const u16 *pick, i64 *ps, i64 *bytes) {
  bool ok = true;
  *ps = *bytes = 0;
  for (u32 i = 0; i < x->p.nops; i++)
    *ps += x->op[i].option[pick[i]].time_ps, *bytes += x->op[i].option[pick[i]].bytes;
  for (u32 t = 0; t < x->p.ntensors; t++) ok = cost_of_tensor(x, t, pick, ps, bytes) && ok;
  return ok;
}

// ---- all assignments ----------------------------------------------------------------------------------------------
typedef struct {
  i64 ps, bytes;
  u16 pick[OPS];
} found;

static bool agree(const problem *x, const u16 *pick) { // ties
  for (u32 i = 0; i < x->p.nops; i++)
    for (u32 j = 0; j < i; j++)
      if (x->op[i].tie && x->op[i].tie == x->op[j].tie && pick[i] != pick[j]) return false;
  return true;
}

static u32 enumerate(const problem *x, found *all) {
  u16 pick[OPS] = {0};
  u32 n = 0;
  for (;;) {
    found f;
    if (agree(x, pick) && cost_of(x, pick, &f.ps, &f.bytes)) {
      memcpy(f.pick, pick, sizeof pick);
      all[n++] = f;
    }
    u32 i = 0;
    while (i < x->p.nops && ++pick[i] == x->op[i].noptions) pick[i++] = 0;
    if (i == x->p.nops) return n;
  }
}

static bool same_named(const problem *x, const u16 *a, const u16 *b) {
  for (u32 i = 0; i < x->p.nops; i++)
    if (x->op[i].named && a[i] != b[i]) return false;
  return true;
}

static bool beaten(const problem *x, const found *f, const found *all, u32 n) {
  for (u32 k = 0; k < n; k++)
    if (same_named(x, f->pick, all[k].pick) && all[k].ps <= f->ps && all[k].bytes <= f->bytes &&
        (all[k].ps < f->ps || all[k].bytes < f->bytes))
      return true;
  return false;
}

TEST(fronts_are_those_of_all_assignments) {
  static found all[1 << 14];
  R = 11;
  u32 solved = 0, several = 0;
  for (u32 round = 0; round < test_cases(1500); round++) {
    problem x;
    make_problem(&x);
    const u32 n = enumerate(&x, all);
    arena *a = arena_new();
    splits_solution s;
    const bool any = splits_solve(a, &x.p, &(splits_limits){.points = 1 << 14}, &s);
    if (!CHECK(any == (n > 0))) break;
    solved += any, several += s.n > 1;
    CHECK(s.exact);
    bool right = true;
    for (u32 k = 0; k < s.n; k++) { // every point has its cost, and is not beaten
      found f = {s.v[k].time_ps, s.v[k].bytes, {0}};
      i64 ps, bytes;
      memcpy(f.pick, s.v[k].option, sizeof *f.pick * x.p.nops);
      right =
          right && agree(&x, f.pick) && cost_of(&x, f.pick, &ps, &bytes) && ps == f.ps && bytes == f.bytes;
      right = right && !beaten(&x, &f, all, n);
    }
    for (u32 k = 0; k < n; k++) { // and every assignment that is not beaten has a point
      bool there = beaten(&x, &all[k], all, n);
      for (u32 j = 0; j < s.n && !there; j++)
        there = s.v[j].time_ps == all[k].ps && s.v[j].bytes == all[k].bytes &&
                same_named(&x, s.v[j].option, all[k].pick);
      right = right && there;
    }
    arena_free(a);
    if (!CHECK_MSG(right, "round %u of seed 11", round)) break;
  }
  CHECK(!test_all_cases() || (solved > 1000 && several > 500));
}

// The least time, and the least of time and bytes at a price; with a pass before that gives up states.
TEST(the_least_is_that_of_all_assignments) {
  static found all[1 << 14];
  R = 12;
  for (u32 round = 0; round < test_cases(1500); round++) {
    problem x;
    make_problem(&x);
    const u32 n = enumerate(&x, all);
    const double price = few(2) ? 0 : (double)few(100) / 16;
    if (!n) continue;
    double best = INFINITY, got = INFINITY;
    for (u32 k = 0; k < n; k++)
      best = fmin(best, (double)all[k].ps + floor(price * 16) / 16 * (double)all[k].bytes);
    arena *a = arena_new();
    splits_solution s;
    const splits_limits l = {.fastest = true, .ps_per_byte = price};
    if (!CHECK(splits_solve(a, &x.p, &l, &s) && s.exact)) break;
    for (u32 k = 0; k < s.n; k++) got = fmin(got, (double)s.v[k].time_ps + price * (double)s.v[k].bytes);
    arena_free(a);
    // a price is taken in whole ps a step of the program
    if (!CHECK_MSG(got <= best + (price > 0 ? OPS : 0) && got >= best, "round %u of seed 12: %g, %g", round,
                   got, best))
      break;
  }
}

// A tensor at a named operator may be converted by whoever asks: so much more than the least is still of use.
static i64 slack(const problem *x) {
  i64 sum = 0;
  for (u32 i = 0; i < x->p.nops; i++)
    for (u32 k = 0; x->op[i].named && k < x->op[i].nopd + x->op[i].nres; k++) {
      const splits_op *op = &x->op[i];
      const splits_tensor *t = &x->tensor[k < op->nopd ? op->opd[k] : op->res[k - op->nopd]];
      i64 most = 0;
      for (u32 q = 0; q < t->nstates * t->nstates; q++) most = MAX(most, t->convert[q]);
      sum += (x->p.forwards + 2) * most;
    }
  return sum;
}

// For every choice of named options that may be of use the least is told.
TEST(named_options_have_their_least) {
  static found all[1 << 14];
  R = 15;
  u32 told = 0;
  for (u32 round = 0; round < test_cases(1500); round++) {
    problem x;
    make_longer(&x);
    const u32 n = enumerate(&x, all);
    if (!n) continue;
    arena *a = arena_new();
    splits_solution s;
    if (!CHECK(splits_solve(a, &x.p, &(splits_limits){.fastest = true}, &s) && s.exact)) break;
    i64 least = all[0].ps;
    bool right = true;
    for (u32 k = 0; k < n; k++) least = MIN(least, all[k].ps);
    for (u32 k = 0; k < n; k++) {
      bool there = all[k].ps > least + slack(&x);
      for (u32 j = 0; j < s.n && !there; j++)
        there = same_named(&x, s.v[j].option, all[k].pick) && s.v[j].time_ps <= all[k].ps;
      right = right && there;
    }
    told += s.n > 1;
    arena_free(a);
    if (!CHECK_MSG(right, "round %u of seed 15", round)) break;
  }
  CHECK(!test_all_cases() || told > 300);
}

// What limits leave has its own cost, and is exact if it says so. A front of few points has the fastest and the smallest; `all` is all of it
// or nothing.
TEST(limits_say_what_they_leave) {
  static found all[1 << 14];
  R = 16;
  u32 inexact = 0, exact = 0, none = 0;
  for (u32 round = 0; round < test_cases(1500); round++) {
    problem x;
    make_longer(&x);
    const u32 n = enumerate(&x, all);
    if (!n) continue;
    arena *a = arena_new();
    splits_solution s, full;
    i64 least = all[0].ps, bytes = all[0].bytes, got = INT64_MAX, small = INT64_MAX;
    for (u32 k = 0; k < n; k++) least = MIN(least, all[k].ps), bytes = MIN(bytes, all[k].bytes);
    if (!CHECK(splits_solve(a, &x.p, &(splits_limits){.points = 1 << 14}, &full))) break;
    if (!CHECK(splits_solve(a, &x.p, &(splits_limits){.points = 2}, &s))) break;
    for (u32 k = 0; k < s.n; k++) got = MIN(got, s.v[k].time_ps), small = MIN(small, s.v[k].bytes);
    bool right = got == least && small == bytes && (!s.exact || s.n == full.n);
    inexact += !s.exact;
    const splits_limits thin = {.fastest = true, .states = 1 + (u32)few(3)};
    if (splits_solve(a, &x.p, &thin, &s)) {
      for (u32 k = 0; k < s.n; k++) {
        found f = {0};
        memcpy(f.pick, s.v[k].option, sizeof *f.pick * x.p.nops);
        right = right && cost_of(&x, f.pick, &f.ps, &f.bytes) && f.ps == s.v[k].time_ps;
      }
      right = right && (!s.exact || s.v[0].time_ps == least);
    } else
      right = right && !s.exact;
    inexact += !s.exact, exact += s.exact;
    const splits_limits whole = {.points = 2, .steps = 1 + (u64)few(40), .all = true};
    if (splits_solve(a, &x.p, &whole, &s))
      right = right && s.exact && s.n == full.n;
    else
      none++;
    arena_free(a);
    if (!CHECK_MSG(right, "round %u of seed 16", round)) break;
  }
  CHECK_MSG(!test_all_cases() || (inexact > 300 && exact > 100 && none > 300), "%u %u %u", inexact, exact,
            none);
}

// Several tensors at once, each made by one operator and read by another: so many states that they are compared with the fastest all at once.
// The least is the sum of the least of each.
TEST(wide_cuts_have_the_least_of_each) {
  enum { WIDE = 6 };
  R = 17;
  for (u32 round = 0; round < test_cases(60); round++) {
    problem x = {.p = {.nops = 2 * WIDE, .ntensors = WIDE, .forwards = 1 + (u32)few(2)}};
    const double price = few(2) ? 0 : (double)few(100) / 16;
    const i64 far = 1 + few(400);
    double least = 0, got = INFINITY;
    x.p.op = x.op, x.p.tensor = x.tensor;
    for (u32 t = 0; t < WIDE; t++) {
      double best = INFINITY;
      for (u32 q = 0; q < STATES * STATES; q++) x.convert[t][q] = q % (STATES + 1) ? few(far) : 0;
      for (u32 q = 0; q < STATES; q++) x.bytes[t][q] = few(20);
      x.tensor[t] = (splits_tensor){.nstates = STATES, .convert = x.convert[t], .bytes = x.bytes[t]};
      x.opd[WIDE + t][0] = x.res[t][0] = t;
      x.op[t] = (splits_op){.nres = 1, .noptions = STATES, .res = x.res[t], .option = x.option[t]};
      x.op[WIDE + t] = (splits_op){.nopd = 1,
                                   .noptions = STATES,
                                   .opd = x.opd[WIDE + t],
                                   .again = x.again[WIDE + t],
                                   .option = x.option[WIDE + t]};
      for (u32 i = t; i < 2 * WIDE; i += WIDE)
        for (u32 o = 0; o < STATES; o++) {
          u8(*y)[OPERANDS] = x.state[i][o];
          y[0][0] = y[2][0] = (u8)o, y[1][0] = LIES_NONE;
          x.option[i][o] = (splits_option){.time_ps = few(100), .need = y[0], .grad = y[1], .made = y[2]};
        }
      for (u32 i = 0; i < STATES; i++)
        for (u32 j = 0; j < STATES; j++) {
          u16 pick[OPS] = {0};
          i64 ps = x.option[t][i].time_ps + x.option[WIDE + t][j].time_ps, bytes = 0;
          pick[t] = (u16)i, pick[WIDE + t] = (u16)j;
          if (cost_of_tensor(&x, t, pick, &ps, &bytes)) best = fmin(best, (double)ps + price * (double)bytes);
        }
      least += best;
    }
    arena *a = arena_new();
    splits_solution s;
    if (!CHECK(splits_solve(a, &x.p, &(splits_limits){.fastest = true, .ps_per_byte = price}, &s) && s.exact))
      break;
    for (u32 k = 0; k < s.n; k++) got = fmin(got, (double)s.v[k].time_ps + price * (double)s.v[k].bytes);
    arena_free(a);
    if (!CHECK_MSG(got <= least + (price > 0 ? 2 * WIDE : 0) && got >= least - 1e-6,
                   "round %u of seed 17: %g, %g", round, got, least))
      break;
  }
}

// ---- the stochastic solver --------------------------------------------------------------------------------------
// Of all changes that were accepted: has every one the cost that the definition gives it?
typedef struct {
  const problem *x;
  u32 moves, wrong;
} witness;

static void watch(void *arg, const u16 *option, i64 time_ps, i64 bytes, bool possible) {
  witness *w = arg;
  i64 ps, held;
  const bool ok = cost_of(w->x, option, &ps, &held);
  w->moves++;
  w->wrong += ok != possible || !agree(w->x, option) || (ok && (ps != time_ps || held != bytes));
}

// With proposals enough it finds the best of all assignments, and of named options the best for each choice that matters: what it
// tells is no worse than what a front of the fastest has. Incremental costs are the costs of the definition.
TEST(markov_chains_find_the_least) {
  static found all[1 << 14];
  R = 13;
  u32 solved = 0, moves = 0;
  for (u32 round = 0; round < test_cases(700); round++) {
    problem x;
    make_problem(&x);
    const u32 n = enumerate(&x, all);
    const double price = few(2) ? 0 : (double)few(100) / 16;
    double best = INFINITY, got = INFINITY;
    for (u32 k = 0; k < n; k++) best = fmin(best, (double)all[k].ps + price * (double)all[k].bytes);
    if (!n) continue;
    const found *from = &all[few(n)]; // a start at random, in place of what the dynamic program would give
    arena *a = arena_new();
    splits_solution s;
    witness w = {.x = &x};
    const splits_solution start = {.n = 1, .v = &(splits_choice){from->ps, from->bytes, from->pick}};
    const splits_limits l = {
        .ps_per_byte = price, .seed = round, .proposals = 6000, .known = &start, .moved = watch, .arg = &w};
    const bool any = splits_walk(a, &x.p, &l, &s);
    bool right = any;
    for (u32 k = 0; right && k < s.n; k++) {
      i64 ps = 0, bytes = 0;
      right = agree(&x, s.v[k].option) && cost_of(&x, s.v[k].option, &ps, &bytes) && ps == s.v[k].time_ps &&
              bytes == s.v[k].bytes;
      const double told = (double)ps + price * (double)bytes;
      got = fmin(got, told);
      for (u32 j = 0; right && j < n; j++) // the least of those with its named options
        right = !same_named(&x, all[j].pick, s.v[k].option) ||
                told <= (double)all[j].ps + price * (double)all[j].bytes;
    }
    solved += any, moves += w.moves;
    CHECK_EQ_I64(w.wrong, 0);
    arena_free(a);
    if (!CHECK_MSG(right && got <= best, "round %u of seed 13: %g, %g", round, got, best)) break;
  }
  CHECK_MSG(!test_all_cases() || (solved > 400 && moves > 100000), "%u solved, %llu moves", solved,
            (unsigned long long)moves);
}

static u64 digest(const problem *x, const splits_solution *s) {
  u64 h = hash_bytes(&s->points, sizeof s->points, s->n);
  for (u32 k = 0; k < s->n; k++) h = hash_bytes(s->v[k].option, sizeof *s->v[k].option * x->p.nops, h);
  return h;
}

// The same seed gives the same; no start is better than the answer, whatever there is of proposals.
TEST(markov_chains_keep_their_starts) {
  R = 14;
  u32 differ = 0;
  for (u32 round = 0; round < test_cases(300); round++) {
    problem x;
    make_problem(&x);
    arena *a = arena_new();
    splits_solution known, s, t;
    u16 prefer[OPS];
    for (u32 i = 0; i < x.p.nops; i++) prefer[i] = (u16)few(x.op[i].noptions + 1);
    const splits_limits thin = {.fastest = true, .states = 1 + (u32)few(3)};
    const bool has = splits_solve(a, &x.p, &thin, &known);
    const splits_limits l = {
        .seed = round % 7, .proposals = 1 + (u64)few(40), .prefer = prefer, .known = has ? &known : NULL};
    const bool any = splits_walk(a, &x.p, &l, &s), again = splits_walk(a, &x.p, &l, &t);
    CHECK(any == again && (!any || digest(&x, &s) == digest(&x, &t)));
    CHECK(any || !has);
    if (any && has) CHECK(s.v[0].time_ps <= known.v[0].time_ps);
    splits_limits other = l;
    other.seed += 100;
    if (any && splits_walk(a, &x.p, &other, &t)) differ += digest(&x, &s) != digest(&x, &t);
    arena_free(a);
  }
  CHECK_MSG(!test_all_cases() || differ > 20, "%u answers of another seed differ", differ);
}

// ---- plans of models ----------------------------------------------------------------------------------------------
// Simulated, an automatic answer is no slower than any hybrid of the same degrees; it is what the whole program says, and
// computes what the model computes.
static void hold_model(const char *model, i64 batch, i64 seq, const char *spec, const char *line,
                       splits_method method) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, model, &(front_opts){.batch = batch, .seq = seq, .loss = true});
  machine *m = machine_load(c, a, spec);
  REQUIRE(src && m);
  planner *pl = planner_new(src);
  search_opts o = {.train = true, .batch = batch, .optim = optim_default(OPTIM_ADAM), .top = 1, .threads = 1};
  search_auto r;
  REQUIRE(strategy_parse(c, a, line, &o.space));
  const cost_opts costs = {0};
  const auto_opts how = {.method = method, .proposals = 2000};
  if (CHECK_MSG(search_auto_run(pl, a, m, &costs, &o, &how, &r), "%s: %s", model, diag_render(c, a))) {
    CHECK_MSG(!r.has_same || r.time_ps <= r.same.time_ps, "%s: slower than a hybrid of its degrees", model);
    CHECK_MSG(!r.hybrids.nfit || r.time_ps <= r.hybrids.point[0].time_ps, "%s: slower than a hybrid", model);
    hybrid_opts h = search_hybrid(&o, &r.s);
    h.k = cost_model_new(c, a, m, &costs);
    if (r.automatic) h.splits = &r.plan.splits;
    const plan *pn = policy_hybrid(pl, a, &h);
    prog *d = pn ? plan_apply(pl, pn, h.k) : NULL;
    sim_result s;
    const sim_opts so = {.mode = SIM_FOLDED, .steady = true};
    if (CHECK_MSG(d && plan_validate(d) && sim_run(c, a, d, h.k, &so, &s), "%s: %s", model,
                  diag_render(c, a))) {
      CHECK_EQ_I64(r.time_ps, s.period_ps);
      CHECK_EQ_I64(r.peak_bytes, s.peak_bytes);
    }
    prog_free(d);
    verify_report v;
    if (r.automatic)
      CHECK_MSG(plan_verify(pl, pn, h.k, &(verify_opts){.seed = 3, .points = 2e7}, a, &v) && v.passed,
                "%s: %s", model, diag_render(c, a));
    strbuf text = {.a = a}; // as a file, too
    if (pn) plan_print(planner_source(pl), pn, &text);
    const plan *again =
        pn ? plan_parse(a, planner_source(pl), NULL, sym_of(c, "p"), sb_str(&text), text.n) : NULL;
    strbuf twice = {.a = a};
    if (again) plan_print(planner_source(pl), again, &twice);
    CHECK_MSG(again && !strcmp(sb_str(&text), sb_str(&twice)), "%s: the plan does not read back", model);
  }
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
}

TEST(no_hybrid_is_faster) {
  static const char one[] = "1x4 v100 pcie=16GB/s hostmem=64GiB",
                    two[] = "2x2 v100 nvlink=100GB/s ib=100Gb/s";
  const struct {
    const char *model;
    i64 batch, seq;
    const char *on, *line;
    splits_method method;
  } all[] = {
      {"gpt2:layers=2,hidden=64,heads=4,vocab=256", 8, 16, one, "dp=1,2 tp=2,4 recompute=none", SPLITS_BOTH},
      {"gpt2:layers=2,hidden=64,heads=4,vocab=255", 8, 16, two, "tp=2,4 zero=0 recompute=none", SPLITS_BOTH},
      {"llama2-7b:layers=2,hidden=64,heads=4,vocab=256", 8, 16, one, "tp=2,4 mb=1,2 zero=0", SPLITS_BOTH},
      {"bert-base:layers=2,hidden=64,heads=4,vocab=256", 8, 16, one, "tp=4 zero=0", SPLITS_BOTH},
      {"t5-small:layers=2,hidden=64,heads=4,vocab=256", 4, 16, one, "tp=2,4 mb=1,2 zero=0", SPLITS_BOTH},
      {"mlp-xs", 64, 0, two, "tp=2,4 zero=0 recompute=none", SPLITS_BOTH},
      {"gpt2:layers=2,hidden=64,heads=4,vocab=256", 8, 16, one,
       "tp=2,4 mb=1 zero=0 materialise=p2p offload=acts+states", SPLITS_BOTH},
      {"gpt2:layers=2,hidden=64,heads=4,vocab=256", 8, 16, two, "tp=2,4 zero=0", SPLITS_MCMC},
      {"t5-small:layers=2,hidden=64,heads=4,vocab=256", 4, 16, one, "tp=4 mb=1,2 zero=0", SPLITS_MCMC}};
  for (u32 k = 0; k < COUNT_OF(all); k += test_step())
    hold_model(all[k].model, all[k].batch, all[k].seq, all[k].on, all[k].line, all[k].method);
}

// Which degrees are split does not depend on which bounds threads happen to know of points.
TEST(threads_change_nothing) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, "gpt2:layers=4,hidden=64,heads=4,vocab=256",
                         &(front_opts){.batch = 16, .seq = 16, .loss = true});
  machine *m = machine_load(c, a, "2x4 v100 nvlink=100GB/s ib=100Gb/s");
  REQUIRE(src && m);
  search_auto r[4];
  for (u32 k = 0; k < COUNT_OF(r); k++) {
    planner *pl = planner_new(src);
    const search_opts o = {
        .train = true, .batch = 16, .optim = optim_default(OPTIM_ADAM), .top = 1, .threads = (int)k + 1};
    const bool ok = search_auto_run(pl, a, m, &(cost_opts){0}, &o, &(auto_opts){.proposals = 500}, &r[k]);
    planner_free(pl);
    if (!CHECK_MSG(ok, "%s", diag_render(c, a))) break;
    CHECK_EQ_I64(r[k].degrees, r[0].degrees);
    CHECK_EQ_I64(r[k].simulated, r[0].simulated);
    CHECK_EQ_I64(r[k].time_ps, r[0].time_ps);
    CHECK_EQ_I64(r[k].inexact, r[0].inexact);
  }
  prog_free(src);
  arena_free(a);
  ctx_free(c);
}
