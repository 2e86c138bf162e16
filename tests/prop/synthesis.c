// synthesis.c - schedules found for random stages: against all schedules that there are, in small cases, and against
// the words of sched.h, in all.
#include "sched/sched.h"
#include "test.h"
#include <stdlib.h>

static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

// ---- random stages --------------------------------------------------------------------------------------
enum { STAGES = 8, UNIT = 1000000 };
static void put_stages(strbuf *b, u32 n, u32 places, u32 longest, bool graph) {
  sb_put(b, "stage,forward_us,input_us,weight_us,memory,place,after,send_us,no_gradient\n");
  const bool whole = !few(3), even = !few(3);
  const u32 f = 1 + few(longest), i = 1 + few(longest), w = whole ? 0 : 1 + few(longest);
  for (u32 k = 0; k < n; k++) {
    const bool some = few(8) == 0;
    sb_fmt(b, "%u,%u,%u,%u,%u,", k, even ? f : few(longest + 1) + !k, even ? i : few(longest + 1),
           even    ? w
           : whole ? 0
                   : few(longest + 1),
           some ? 0 : 1 + few(2));
    if (k < places)
      sb_fmt(b, "%u", k);
    else if (places > 1 && !few(4))
      sb_fmt(b, "%u+%u", 0u, places - 1);
    else
      sb_fmt(b, "%u", few(places));
    sb_put(b, ",");
    bool any = false, none[STAGES] = {false};
    for (u32 from = 0; from < k; from++)
      if (graph ? few(2) : from + 1 == k)
        sb_fmt(b, "%s%u", any ? "+" : "", from), any = true, none[from] = !few(16);
    sb_fmt(b, ",%u,", few(3) ? 0 : few(3));
    any = false;
    for (u32 from = 0; from < k; from++)
      if (none[from]) sb_fmt(b, "%s%u", any ? "+" : "", from), any = true;
    sb_put(b, "\n");
  }
}

// The most that a place may hold, from what one microbatch takes on.
static u64 random_limit(const sched_stages *s) {
  u64 least = 0;
  if (!few(5)) return SCHED_NO_LIMIT;
  for (u32 p = 0; p < s->nplaces; p++) {
    u64 need = 0;
    for (u32 k = 0; k < s->nstages; k++)
      for (u32 i = 0; i < s->at[k].n; i++) need += s->at[k].v[i] == p ? s->cost.memory[k] : 0;
    least = MAX(least, need);
  }
  return least + few(4) * UNIT;
}

// ---- what a schedule must keep ----------------------------------------------------------------------------
typedef struct {
  const sched_stages *s;
  u32 micro;
  sched_span *at[TASK_KINDS]; // [stage * micro + microbatch]; end 0 and begin 1: it does not run
} runs;

static bool ran(const sched_span *x) { return x->end >= x->begin; }

static runs runs_of(arena *a, const sched_stages *of, u32 micro, const sched *s, const sched_times *t) {
  runs r = {of, micro, {NULL}};
  for (u32 k = 0; k < TASK_KINDS; k++) {
    r.at[k] = NEWN(a, sched_span, of->nstages * micro);
    for (u32 i = 0; i < of->nstages * micro; i++) r.at[k][i] = (sched_span){1, 0};
  }
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *x = &s->seq[p].v[i];
      r.at[x->kind][x->stage * micro + x->mb] = t->at[p][i];
      CHECK(t->at[p][i].end - t->at[p][i].begin == of->cost.task[x->kind][x->stage]);
    }
  return r;
}

// Does every place of b have what one of a makes?
static bool has_all(const sched_places *a, const sched_places *b) {
  for (u32 k = 0; k < b->n; k++) {
    u32 i = 0;
    while (i < a->n && a->v[i] != b->v[k]) i++;
    if (i == a->n) return false;
  }
  return true;
}

static const sched_span *back_of(const runs *r, u32 at) {
  return ran(&r->at[TASK_B][at]) ? &r->at[TASK_B][at] : &r->at[TASK_I][at];
}

static void check_needs(const runs *r) {
  const sched_stages *s = r->s;
  for (u32 m = 0; m < r->micro; m++) {
    for (u32 i = 0; i < s->nedges; i++) {
      const u32 from = s->edge[i].from, to = s->edge[i].to, x = from * r->micro + m, y = to * r->micro + m;
      const u64 there = has_all(&s->at[from], &s->at[to]) ? 0 : s->cost.send[from];
      const u64 back = has_all(&s->at[to], &s->at[from]) ? 0 : s->cost.send[from];
      CHECK(r->at[TASK_F][x].end + there <= r->at[TASK_F][y].begin);
      CHECK(s->edge[i].no_gradient || back_of(r, y)->end + back <= back_of(r, x)->begin);
    }
    for (u32 k = 0; k < s->nstages; k++) {
      const u32 x = k * r->micro + m;
      CHECK(r->at[TASK_F][x].end <= back_of(r, x)->begin);
      if (ran(&r->at[TASK_W][x])) CHECK(r->at[TASK_I][x].end <= r->at[TASK_W][x].begin);
    }
  }
}

// Of every place: is it ever at two tasks, and what is the most that it holds at any time? Where a task of no time
// stands between others, the sequence says what is first.
static void check_place(const runs *r, const sched *s, const sched_times *t, u32 p, u64 limit) {
  const sched_seq *q = &s->seq[p];
  for (u32 i = 1; i < q->n; i++) CHECK(t->at[p][i - 1].end <= t->at[p][i].begin);
  for (u32 i = 0; i < q->n; i++) {
    u64 held = 0;
    for (u32 x = 0; x <= i; x++) {
      if (q->v[x].kind != TASK_F) continue;
      bool gone = false;
      for (u32 y = x; y < i; y++)
        gone |= q->v[y].stage == q->v[x].stage && q->v[y].mb == q->v[x].mb &&
                (q->v[y].kind == TASK_B || q->v[y].kind == TASK_W);
      if (!gone) held += r->s->cost.memory[q->v[x].stage];
    }
    CHECK_MSG(held <= limit, "place %u holds %llu at task %u", p, (unsigned long long)held, i);
    CHECK(held <= t->memory[p]);
  }
}

static void check_found(ctx *c, arena *a, const sched_stages *of, const sched_aims *aims,
                        const sched_synthesis *x) {
  sched_line line;
  CHECK(sched_check(c, x->s, (loc){0}, NULL) && sched_merge(c, a, x->s, NULL, (loc){0}, &line));
  const runs r = runs_of(a, of, aims->micro, x->s, &x->t);
  check_needs(&r);
  for (u32 p = 0; p < of->nplaces; p++) check_place(&r, x->s, &x->t, p, aims->memory);
  CHECK(x->bound <= x->t.makespan);
  for (u32 i = 0; i < x->nrivals; i++)
    CHECK(!x->rival[i].s || !x->rival[i].fits || x->rival[i].t.makespan >= x->t.makespan);
  strbuf text = {.a = a};
  sched_print(x->s, &text);
  const sched *again = sched_parse(c, a, sym_of(c, "again.csv"), sb_str(&text), text.n);
  CHECK(again && sched_equal(again, x->s));
}

// ---- all schedules ----------------------------------------------------------------------------------------
// Tasks one after the other in every order, whatever the microbatch; a state is the set of those that ran, with their
// ends. One that is later than another of the same set in nothing is not looked at.
enum { TASKS = 48, VISITS = 100000 };
typedef struct {
  u32 stage, kind, mb;
  u64 dur, tail, need; // need: bits of the tasks before it
  u32 give;            // memory goes
} one;
typedef struct {
  u64 done, end[TASKS], clock[STAGES];
} state;
typedef struct {
  const sched_stages *s;
  u64 limit, before;
  u32 n, visits;
  bool
      in_order; // microbatches of a part one after the other: checked against the same without in the smallest cases
  one t[TASKS];
  arena *a;
  hmap seen;
  VEC(state *) states;
} all;

static u64 delay_of(const all *x, const one *from, const one *to) {
  if (from->stage == to->stage || has_all(&x->s->at[from->stage], &x->s->at[to->stage])) return 0;
  return x->s->cost.send[MIN(from->stage, to->stage)];
}

static bool is_needed(const all *x, const one *from, const one *to) {
  if (from->mb != to->mb)
    return x->in_order && from->stage == to->stage && from->kind == to->kind && from->mb < to->mb;
  if (from->stage == to->stage)
    return (from->kind == TASK_F && (to->kind == TASK_B || to->kind == TASK_I)) ||
           (from->kind == TASK_I && to->kind == TASK_W);
  if (from->kind == TASK_W || to->kind == TASK_W || (from->kind == TASK_F) != (to->kind == TASK_F))
    return false;
  for (u32 i = 0; i < x->s->nedges; i++) {
    const u32 e = x->s->edge[i].from, f = x->s->edge[i].to;
    if (x->s->edge[i].no_gradient && from->kind != TASK_F) continue;
    if (from->kind == TASK_F ? from->stage == e && to->stage == f : from->stage == f && to->stage == e)
      return true;
  }
  return false;
}

static u64 tail_of(const all *x, u32 i) {
  u64 t = 0;
  for (u32 k = 0; k < x->n; k++)
    if (x->t[k].need >> i & 1) t = MAX(t, delay_of(x, &x->t[i], &x->t[k]) + tail_of(x, k));
  return t + x->t[i].dur;
}

static void all_open(all *x, u32 micro) {
  const sched_stages *s = x->s;
  for (u32 m = 0; m < micro; m++)
    for (u32 k = 0; k < s->nstages; k++)
      for (u32 kind = 0; kind < TASK_KINDS; kind++) {
        const bool whole = !s->cost.task[TASK_W][k];
        if (kind == TASK_B ? !whole : kind != TASK_F && whole) continue;
        x->t[x->n++] = (one){.stage = k,
                             .kind = kind,
                             .mb = m,
                             .dur = s->cost.task[kind][k],
                             .give = kind == TASK_B || kind == TASK_W};
      }
  for (u32 i = 0; i < x->n; i++)
    for (u32 k = 0; k < x->n; k++)
      if (is_needed(x, &x->t[k], &x->t[i])) x->t[i].need |= 1ull << k;
}

static bool has_room(const all *x, const state *v, u32 i) {
  const sched_places *at = &x->s->at[x->t[i].stage];
  for (u32 q = 0; q < at->n && x->t[i].kind == TASK_F; q++) {
    u64 held = x->s->cost.memory[x->t[i].stage];
    for (u32 k = 0; k < x->n; k++) {
      if (!(v->done >> k & 1)) continue;
      const sched_places *on = &x->s->at[x->t[k].stage];
      for (u32 z = 0; z < on->n; z++) {
        if (on->v[z] != at->v[q]) continue;
        if (x->t[k].kind == TASK_F) held += x->s->cost.memory[x->t[k].stage];
        if (x->t[k].give) held -= x->s->cost.memory[x->t[k].stage];
      }
    }
    if (held > x->limit) return false;
  }
  return true;
}

static bool was_seen(all *x, const state *v) {
  const u64 h = hash_u64(v->done, 1);
  for (u32 it = 0, id; hmap_next(&x->seen, h, &it, &id);) {
    const state *o = x->states.v[id];
    if (o->done != v->done) continue;
    bool earlier = true;
    for (u32 i = 0; i < x->n; i++) earlier &= !(v->done >> i & 1) || o->end[i] <= v->end[i];
    for (u32 p = 0; p < x->s->nplaces; p++) earlier &= o->clock[p] <= v->clock[p];
    if (earlier) return true;
  }
  hmap_add(x->a, &x->seen, h, x->states.n);
  *vec_push(x->a, &x->states) = arena_dup(x->a, v, sizeof *v);
  return false;
}

static bool place_too_late(const all *x, const state *v) {
  u64 left[STAGES] = {0};
  for (u32 i = 0; i < x->n; i++)
    for (u32 q = 0; q < x->s->at[x->t[i].stage].n && !(v->done >> i & 1); q++)
      left[x->s->at[x->t[i].stage].v[q]] += x->t[i].dur;
  for (u32 p = 0; p < x->s->nplaces; p++)
    if (v->clock[p] + left[p] >= x->before) return true;
  return false;
}

// Does any order end before `before`?
static bool any_ends(all *x, const state *v) {
  if (v->done == (1ull << x->n) - 1) return true;
  if (place_too_late(x, v) || was_seen(x, v)) return false;
  if (++x->visits > VISITS) return false;
  for (u32 i = 0; i < x->n; i++) {
    const one *t = &x->t[i];
    if (v->done >> i & 1 || (v->done & t->need) != t->need || !has_room(x, v, i)) continue;
    const sched_places *at = &x->s->at[t->stage];
    u64 begin = 0;
    for (u32 q = 0; q < at->n; q++) begin = MAX(begin, v->clock[at->v[q]]);
    for (u32 k = 0; k < x->n; k++)
      if (t->need >> k & 1) begin = MAX(begin, v->end[k] + delay_of(x, &x->t[k], t));
    if (begin + t->tail >= x->before) continue;
    state next = *v;
    next.done |= 1ull << i, next.end[i] = begin + t->dur;
    for (u32 q = 0; q < at->n; q++) next.clock[at->v[q]] = begin + t->dur;
    if (any_ends(x, &next)) return true;
  }
  return false;
}

// 1: the found one is the best; 0: it is not; -1: too many to look at.
static int is_best(const sched_stages *s, const sched_aims *aims, u64 found, bool in_order) {
  all x = {.s = s, .limit = aims->memory, .before = found, .in_order = in_order, .a = arena_new()};
  u32 each = 0;
  for (u32 k = 0; k < s->nstages; k++) each += s->cost.task[TASK_W][k] ? 3 : 2;
  int r = -1;
  if (each * aims->micro <= TASKS) {
    all_open(&x, aims->micro);
    for (u32 i = 0; i < x.n; i++) x.t[i].tail = tail_of(&x, i);
    const state none = {0};
    r = any_ends(&x, &none) ? 0 : x.visits > VISITS ? -1 : 1;
  }
  arena_free(x.a);
  return r;
}

// ---- tests ------------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  sched_stages s;
  sched_aims aims;
  sched_synthesis x;
  const char *text;
} found;

static bool find(found *f, u32 seed, u32 stages, u32 micro, u32 longest) {
  R = seed;
  *f = (found){.c = ctx_new(), .a = arena_new()};
  strbuf b = {.a = f->a};
  const u32 n = 1 + few(stages);
  put_stages(&b, n, 1 + few(n), longest, few(2));
  f->text = sb_str(&b);
  REQUIRE(sched_stages_parse(f->c, f->a, sym_of(f->c, "stages.csv"), f->text, b.n, &f->s));
  f->aims = (sched_aims){.micro = 1 + few(micro), .memory = random_limit(&f->s), .seconds = 1};
  return CHECK_MSG(sched_synthesize(f->c, f->a, &f->s, &f->aims, &f->x), "%s", diag_render(f->c, f->a));
}
static void found_free(found *f) {
  arena_free(f->a);
  ctx_free(f->c);
}

static void check_best(const found *f, u32 seed, bool in_order, u32 *known, u32 *not_at_bound) {
  const int best = is_best(&f->s, &f->aims, f->x.t.makespan, in_order);
  CHECK_MSG(best != 0, "seed %u: a schedule of %u microbatches within %llu ends before %llu:\n%s", seed,
            f->aims.micro, (unsigned long long)f->aims.memory, (unsigned long long)f->x.t.makespan, f->text);
  if (best < 0) return;
  ++*known;
  *not_at_bound += f->x.bound_of == BOUND_SEARCH;
  CHECK_MSG(f->x.bound == f->x.t.makespan, "seed %u: the best, but the bound is %llu", seed,
            (unsigned long long)f->x.bound);
}

TEST(found_is_the_best_of_all_orders) {
  u32 known = 0, hard = 0, all_of = 800;
  for (u32 seed = 1; seed <= all_of; seed++) {
    found f;
    if (find(&f, seed, 3, 2, 4)) check_best(&f, seed, false, &known, &hard);
    found_free(&f);
  }
  CHECK_MSG(known > all_of * 9 / 10 && hard > 8, "%u known, %u by the search", known, hard);
}

// Graphs of several ends, or of parts that have nothing to do with each other, need less than all activations of a
// microbatch at once. At every limit: is there an order? Then one is found, and it is the best.
TEST(found_wherever_there_is_one) {
  u32 none = 0, below_all = 0;
  for (u32 seed = 1; seed <= 60; seed += test_step()) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    strbuf b = {.a = a};
    sched_stages s;
    R = seed;
    put_stages(&b, 3 + few(3), 2, 4, true);
    REQUIRE(sched_stages_parse(c, a, sym_of(c, "stages.csv"), sb_str(&b), b.n, &s));
    u64 total = 0;
    for (u32 k = 0; k < s.nstages; k++) total += s.cost.memory[k];
    for (u64 limit = 0; limit < total; limit += UNIT) {
      sched_synthesis x;
      const sched_aims aims = {.micro = 1 + few(2), .memory = limit, .seconds = 1};
      const u32 said = diag_count(c);
      const bool ok = sched_synthesize(c, a, &s, &aims, &x);
      const int best = is_best(&s, &aims, ok ? x.t.makespan : UINT64_MAX / 2, true);
      diag_truncate(c, said);
      CHECK_MSG(best != 0, "seed %u, limit %llu: %s:\n%s", seed, (unsigned long long)limit,
                ok ? "not the best" : "refused", sb_str(&b));
      none += !ok && best == 1;
      u64 most = 0;
      for (u32 p = 0; p < s.nplaces; p++) {
        u64 here = 0;
        for (u32 k = 0; k < s.nstages; k++)
          for (u32 i = 0; i < s.at[k].n; i++) here += s.at[k].v[i] == p ? s.cost.memory[k] : 0;
        most = MAX(most, here);
      }
      below_all += ok && limit < most;
    }
    arena_free(a), ctx_free(c);
  }
  CHECK_MSG(!test_all_cases() || (none > 20 && below_all > 20), "%u without, %u below", none, below_all);
}

TEST(found_is_the_best_of_four_stages) {
  u32 known = 0, hard = 0, first = 81, last = 150;
  for (u32 seed = first; seed <= last; seed++) {
    found f;
    if (find(&f, seed, 4, 4, 5)) check_best(&f, seed, true, &known, &hard);
    found_free(&f);
  }
  CHECK_MSG(known > 60 && hard > 0, "%u known, %u by the search", known, hard);
}

TEST(found_keeps_to_places_needs_and_memory) {
  for (u32 seed = 1; seed <= 60; seed++) {
    found f;
    if (find(&f, seed, 6, 9, 9)) check_found(f.c, f.a, &f.s, &f.aims, &f.x);
    found_free(&f);
  }
}

// ---- against the rows of schedules.def --------------------------------------------------------------------
typedef enum { CHAIN, ROUNDS, FOLDED, WIDE, SHAPES } form;

// Stages that lie as those of some rows do, or with all places counted from the other end.
static void put_shape(strbuf *b, form f, u32 places, bool mirrored) {
  const u32 n = f == CHAIN ? places : f == WIDE ? places + 2 : 2 * places;
  const bool whole = few(2), even = few(2), free = few(2);
  u32 t[3] = {1 + few(9), 1 + few(9), 1 + few(9)};
  sb_put(b, "stage,forward_us,input_us,weight_us,memory,places,send_us\n");
  for (u32 k = 0; k < n; k++) {
    const bool wide = f == WIDE && k % (places + 1) == 0;
    for (u32 i = 0; i < 3 && (!even || wide); i++) t[i] = 1 + few(9);
    sb_fmt(b, "%u,%u,%u,%u,%u,", k, t[0], t[1], whole || wide ? 0 : t[2], !wide);
    for (u32 p = 0; p < (wide ? places : 1); p++) {
      u32 at = wide ? p : f == WIDE ? k - 1 : f == FOLDED && k >= places ? 2 * places - 1 - k : k % places;
      sb_fmt(b, "%s%u", p ? "+" : "", mirrored ? places - 1 - at : at);
    }
    sb_fmt(b, ",%u\n", free ? 0 : few(3));
  }
}

static bool find_shape(found *f, u32 seed, form of, u32 places, u32 micro, u64 memory, bool mirrored) {
  R = seed;
  *f = (found){.c = ctx_new(), .a = arena_new()};
  strbuf b = {.a = f->a};
  put_shape(&b, of, places, mirrored);
  f->text = sb_str(&b);
  f->aims = (sched_aims){.micro = micro, .memory = memory, .seconds = 1};
  REQUIRE(sched_stages_parse(f->c, f->a, sym_of(f->c, "stages.csv"), f->text, b.n, &f->s));
  return CHECK_MSG(sched_synthesize(f->c, f->a, &f->s, &f->aims, &f->x), "%s", diag_render(f->c, f->a));
}

static u32 rows_of(const found *f) {
  u32 n = 0;
  for (u32 i = 0; i < f->x.nrivals; i++) {
    const sched_rival *r = &f->x.rival[i];
    n += r->s != NULL;
    CHECK_MSG(!r->s || !r->fits || r->t.makespan >= f->x.t.makespan, "%s is faster:\n%s", r->name, f->text);
  }
  return n;
}

// Every row competes where the stages lie as its own do. Seen in a mirror no row does, except those of chains of which
// there is one on each place; what is found then is as good.
TEST(found_is_never_worse_than_a_row) {
  static const u32 rows[SHAPES] = {8, 3, 4,
                                   2}; // with 4 places and 8 microbatches, those of two replicas aside
  for (form of = 0; of < SHAPES; of++)
    for (u32 seed = 1; seed <= 2; seed++) {
      const u32 places = 4, micro = 8;
      const u64 memory = seed % 2 ? SCHED_NO_LIMIT : (2 * places - 1) * UNIT;
      found f, g;
      if (find_shape(&f, seed, of, places, micro, memory, false)) CHECK_EQ_I64(rows_of(&f), rows[of]);
      if (find_shape(&g, seed, of, places, micro, memory, true)) CHECK_EQ_I64(rows_of(&g), 0);
      for (u32 i = 0; i < f.x.nrivals; i++) {
        const sched_rival *r = &f.x.rival[i];
        CHECK_MSG(!r->s || !r->fits || r->t.makespan >= g.x.t.makespan,
                  "%s takes %llu, without it %llu is found:\n%s", r->name, (unsigned long long)r->t.makespan,
                  (unsigned long long)g.x.t.makespan, g.text);
      }
      found_free(&f), found_free(&g);
    }
}

// In the memory of interlaced, of eight stages between two on all places.
TEST(found_on_all_places_is_as_good_as_interlaced) {
  enum { P = 8, MICRO = 32 };
  const u64 period = 10 + 20 + 5 + 5 + 10 + 20,
            alone = period * MICRO + (P - 1) * 30; // schedules.md: (P-1)(F+B) idle
  ctx *c = ctx_new();
  arena *a = arena_new();
  strbuf b = {.a = a};
  sb_put(&b, "stage,forward_us,input_us,weight_us,memory,places\n0,5,5,0,0,0+1+2+3+4+5+6+7\n");
  for (u32 k = P; k-- > 0;) sb_fmt(&b, "%u,10,20,0,1,%u\n", P - k, k);
  sb_put(&b, "9,10,20,0,0,0+1+2+3+4+5+6+7\n");
  sched_stages s;
  sched_synthesis x;
  const sched_aims aims = {.micro = MICRO, .memory = (2 * P - 1) * UNIT, .seconds = 2};
  REQUIRE(sched_stages_parse(c, a, sym_of(c, "stages.csv"), sb_str(&b), b.n, &s));
  REQUIRE(sched_synthesize(c, a, &s, &aims, &x));
  CHECK_MSG(x.t.makespan <= alone * UNIT, "%llu", (unsigned long long)x.t.makespan);
  arena_free(a), ctx_free(c);
}

TEST(found_is_the_same_again) {
  for (u32 seed = 1; seed <= 6; seed++) {
    found f, g;
    if (find(&f, seed, 6, 9, 9) && find(&g, seed, 6, 9, 9))
      CHECK(sched_equal(f.x.s, g.x.s) && f.x.bound == g.x.bound);
    found_free(&f), found_free(&g);
  }
}
