// sched.c - schedules at random: the merge against a clock that asks every place at every step, text that
// reads back equal, and text that was tampered with.
#include "sched/sched.h"
#include "test.h"
#include <stdlib.h>

static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

// ---- the merge, step by step --------------------------------------------------------------------------
// As sched.h defines it, with nothing remembered: whether something has happened is looked up in the
// sequences.
typedef struct {
  const sched *s;
  sched_buffers b;
  arena *a;
  u32 *at, *ran; // by place: the next task; how many of those before it ran together last
  bool *come;    // by place: the sends of what it ran last have ended
  i64 **step;    // by place and task: -1 not yet
} clockwork;

static const sched_places *places_of(const sched *s, const sched_task *t) {
  return &s->at[t->replica * s->nstages + t->stage];
}

static bool same_results(const sched_task *x, const sched_task *y) {
  bool fx = x->kind == TASK_F, fy = y->kind == TASK_F;
  return x->stage == y->stage && x->replica == y->replica && x->pass == y->pass && x->mb == y->mb &&
         fx == fy && (x->kind == TASK_W) == (y->kind == TASK_W);
}

// Does a gradient come back along the edge: does it have one, and do both ends run backward?
static bool comes_back(const sched *s, const sched_edge *e) {
  u32 backwards[2] = {0};
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      backwards[0] += t->kind != TASK_F && t->stage == e->from;
      backwards[1] += t->kind != TASK_F && t->stage == e->to;
    }
  return !e->no_gradient && backwards[0] && backwards[1];
}

// Where a task, or another part of its backward, stands at a place.
static u32 find_task(const sched *s, u32 place, const sched_task *t) {
  for (u32 i = 0; i < s->seq[place].n; i++)
    if (same_results(&s->seq[place].v[i], t)) return i;
  return UINT32_MAX;
}

static bool ran_before(const clockwork *w, const sched_task *t, i64 step) {
  u32 p = places_of(w->s, t)->v[0], i = find_task(w->s, p, t);
  return i != UINT32_MAX && w->step[p][i] >= 0 && w->step[p][i] < step;
}

static bool share(const sched *s, u32 replica, u32 x, u32 y) {
  const sched_places *a = &s->at[replica * s->nstages + x], *b = &s->at[replica * s->nstages + y];
  for (u32 i = 0; i < a->n; i++)
    for (u32 j = 0; j < b->n; j++)
      if (a->v[i] == b->v[j]) return true;
  return false;
}

// Had the message of t to stage `to` room before this step? Its number is found by counting.
static bool had_room(const clockwork *w, const sched_task *t, u32 to, i64 step) {
  const sched_seq *seq = &w->s->seq[places_of(w->s, t)->v[0]];
  u32 n = 0;
  for (u32 i = 0; i < seq->n && !same_results(&seq->v[i], t); i++) {
    sched_task x = seq->v[i];
    x.mb = t->mb, x.pass = t->pass;
    n += same_results(&x, t);
  }
  if (n < w->b.depth) return true;
  u32 k = 0;
  for (u32 i = 0; i < seq->n; i++) {
    sched_task x = seq->v[i], y = x;
    x.mb = t->mb, x.pass = t->pass;
    if (!same_results(&x, t) || k++ != n - w->b.depth) continue;
    y.stage = (u16)to;
    return ran_before(w, &y, step);
  }
  return false;
}

// Every task of the other end of an edge that t makes something for; stops at the first that is not `good`.
static bool all_receivers(const clockwork *w, const sched_task *t,
                          bool (*good)(const clockwork *w, const sched_task *t, const sched_task *to,
                                       i64 step),
                          i64 step) {
  if (t->kind == TASK_W) return true;
  for (u32 k = 0; k < w->s->nedges; k++) {
    const sched_edge *e = &w->s->edge[k];
    bool forward = t->kind == TASK_F;
    if ((forward ? e->from : e->to) != t->stage || share(w->s, t->replica, e->from, e->to)) continue;
    if (!forward && !comes_back(w->s, e)) continue;
    sched_task to = *t;
    to.stage = forward ? e->to : e->from;
    if (!good(w, t, &to, step)) return false;
  }
  return true;
}

static bool stands_at(const clockwork *w, const sched_task *t, const sched_task *to, i64 step) {
  (void)t, (void)step;
  const sched_places *on = places_of(w->s, to);
  for (u32 k = 0; k < on->n; k++) {
    u32 p = on->v[k], i = find_task(w->s, p, to);
    bool second = i && w->s->seq[p].v[i - 1].paired;
    if (w->at[p] <= i && !(w->come[p] && w->at[p] + second == i)) return false;
  }
  return true;
}

static bool has_room(const clockwork *w, const sched_task *t, const sched_task *to, i64 step) {
  return had_room(w, t, to->stage, step);
}

// Notes which places have come to their next task; those that send to each other have not.
static void come_along(clockwork *w, i64 step) {
  for (bool more = true; more;) {
    more = false;
    for (u32 p = 0; p < w->s->nplaces; p++) {
      if (w->come[p]) continue;
      bool sent = true, bounded = w->b.rendezvous || w->b.depth;
      for (u32 i = w->at[p] - w->ran[p]; bounded && i < w->at[p] && sent; i++)
        sent = all_receivers(w, &w->s->seq[p].v[i], w->b.rendezvous ? stands_at : has_room, step);
      if (sent) w->come[p] = more = true;
    }
  }
}

static bool met(const clockwork *w, const sched_task *t, const sched_task *need, bool sent, i64 step) {
  if (!ran_before(w, need, step)) return false;
  return !sent || w->b.rendezvous || !w->b.depth || share(w->s, t->replica, t->stage, need->stage) ||
         had_room(w, need, t->stage, step);
}

static bool needs_met(const clockwork *w, const sched_task *t, i64 step) {
  const sched *s = w->s;
  u32 last = MAX(s->npasses, 1) - 1;
  sched_task own = *t;
  own.kind = t->kind == TASK_W ? TASK_I : TASK_F;
  if (t->kind != TASK_W) own.pass = (u8)last;
  if (t->kind != TASK_F && !ran_before(w, &own, step)) return false;
  if (t->kind == TASK_W) return true;
  bool reads = false;
  for (u32 k = 0; k < s->nedges; k++) {
    sched_task need = *t;
    bool forward = t->kind == TASK_F;
    reads |= s->edge[k].to == t->stage;
    if ((forward ? s->edge[k].to : s->edge[k].from) != t->stage) continue;
    if (!forward && !comes_back(s, &s->edge[k])) continue;
    need.stage = forward ? s->edge[k].from : s->edge[k].to;
    if (!met(w, t, &need, true, step)) return false;
  }
  for (u32 x = 0; x < s->nstages && t->kind == TASK_F && t->pass && !reads; x++) {
    bool read = false;
    for (u32 k = 0; k < s->nedges; k++) read |= s->edge[k].from == x;
    sched_task need = *t;
    need.stage = (u16)x, need.pass--;
    if (!read && !met(w, t, &need, false, step)) return false;
  }
  return true;
}

static bool can_run(const clockwork *w, u32 p, i64 step) {
  const sched_seq *seq = &w->s->seq[p];
  u32 i = w->at[p];
  if (i == seq->n || !w->come[p]) return false;
  const sched_places *on = places_of(w->s, &seq->v[i]);
  for (u32 k = 0; k < on->n; k++) {
    u32 q = on->v[k];
    if (!w->come[q] || w->at[q] == w->s->seq[q].n || find_task(w->s, q, &seq->v[i]) != w->at[q]) return false;
  }
  return needs_met(w, &seq->v[i], step) && (!seq->v[i].paired || needs_met(w, &seq->v[i + 1], step));
}

// The line, or false: no place can go on.
static bool by_the_clock(clockwork *w, const sched *s, sched_buffers b, arena *a, sched_line *out) {
  *w = (clockwork){s,
                   b,
                   a,
                   ZNEWN(a, u32, s->nplaces),
                   ZNEWN(a, u32, s->nplaces),
                   NEWN(a, bool, s->nplaces),
                   NEWN(a, i64 *, s->nplaces)};
  VEC(sched_slot) v = {0};
  for (u32 p = 0; p < s->nplaces; p++) {
    w->come[p] = true, w->step[p] = NEWN(a, i64, s->seq[p].n);
    for (u32 i = 0; i < s->seq[p].n; i++) w->step[p][i] = -1;
  }
  bool *run = NEWN(a, bool, s->nplaces), left = true;
  for (i64 step = 0;; step++) {
    come_along(w, step);
    left = false;
    bool any = false;
    for (u32 p = 0; p < s->nplaces; p++) {
      left |= w->at[p] < s->seq[p].n || !w->come[p];
      any |= run[p] = can_run(w, p, step);
    }
    if (!left || !any) break;
    for (u32 p = 0; p < s->nplaces; p++) {
      if (!run[p]) continue;
      w->ran[p] = 1 + s->seq[p].v[w->at[p]].paired, w->come[p] = false;
      for (u32 i = 0; i < w->ran[p]; i++, w->at[p]++) {
        w->step[p][w->at[p]] = step;
        if (places_of(s, &s->seq[p].v[w->at[p]])->v[0] == p)
          *vec_push(a, &v) = (sched_slot){p, w->at[p], (u32)step};
      }
    }
  }
  *out = (sched_line){v.n, v.n ? v.v[v.n - 1].step + 1 : 0, v.v};
  return !left;
}

static void compare(ctx *c, arena *a, const sched *s, sched_buffers b, u32 *deadlocks) {
  clockwork w;
  sched_line want, got;
  bool ends = by_the_clock(&w, s, b, a, &want), merges = sched_merge(c, a, s, &b, (loc){0}, &got);
  strbuf text = {.a = a};
  sched_print(s, &text);
  CHECK_MSG(ends == merges, "depth %u%s: %s, but the merge %s:\n%s%s", b.depth,
            b.rendezvous ? " rendezvous" : "", ends ? "runs" : "deadlocks", merges ? "does not" : "does",
            sb_str(&text), diag_render(c, a));
  CHECK_EQ_I64(diag_errors(c), !merges);
  diag_clear(c);
  *deadlocks += !merges;
  if (!ends || !merges) return;
  bool same = want.n == got.n && want.nsteps == got.nsteps;
  for (u32 k = 0; k < want.n && same; k++)
    same = want.v[k].place == got.v[k].place && want.v[k].index == got.v[k].index &&
           want.v[k].step == got.v[k].step;
  CHECK_MSG(same, "depth %u%s: another line of\n%s", b.depth, b.rendezvous ? " rendezvous" : "",
            sb_str(&text));
}

// ---- schedules at random ------------------------------------------------------------------------------
typedef struct {
  u32 nstages, nplaces, nmicro, nreplicas, npasses;
  bool backward, splits;
  u64 *on; // by (replica, stage): the places, as bits
  VEC(sched_edge) edges;
  VEC(sched_task) all; // in an order in which they could run
} draft;

static void draft_sizes(arena *a, draft *d) {
  *d = (draft){.nstages = 1 + few(5),
               .nmicro = 1 + few(4),
               .nreplicas = 1 + (few(6) == 0),
               .npasses = 1 + (few(6) == 0)};
  d->nplaces = 1 + few(d->nstages), d->backward = few(4), d->splits = few(2);
  u32 n = d->nreplicas * d->nstages;
  d->on = ZNEWN(a, u64, n);
  for (u32 k = 0; k < n; k++) d->on[k] = 1ull << (k < d->nplaces ? k : few(d->nplaces));
  for (u32 k = 0; k < n && few(4) == 0; k++) d->on[few(n)] |= 1ull << few(d->nplaces);
  bool chain = few(3);
  for (u32 x = 0; x < d->nstages; x++)
    for (u32 y = x + 1; y < d->nstages; y++)
      if (chain ? y == x + 1 : few(2))
        *vec_push(a, &d->edges) = (sched_edge){.from = (u16)x, .to = (u16)y, .no_gradient = !few(8)};
}

// All tasks, forwards by stage, then backwards against it.
static void draft_tasks(arena *a, draft *d) {
  for (u32 r = 0; r < d->nreplicas; r++)
    for (u32 m = 0; m < d->nmicro; m++) {
      for (u32 k = 0; k < d->npasses * d->nstages; k++)
        *vec_push(a, &d->all) = (sched_task){
            .stage = (u16)(k % d->nstages), .pass = (u8)(k / d->nstages), .replica = (u8)r, .mb = m};
      for (u32 k = d->nstages; d->backward && k--;) {
        bool split = d->splits && few(2);
        sched_task t = {.stage = (u16)k, .kind = split ? TASK_I : TASK_B, .replica = (u8)r, .mb = m};
        *vec_push(a, &d->all) = t;
        if (split) t.kind = TASK_W, *vec_push(a, &d->all) = t;
      }
    }
}

// Several lists of one microbatch each, taken in turns at random: still an order in which the tasks could
// run. Then some neighbours change places, and it may be none any more.
static void draft_shuffle(arena *a, draft *d, u32 swaps) {
  u32 n = d->all.n, lists = d->nreplicas * d->nmicro, each = 0;
  sched_task *v = NEWN(a, sched_task, n);
  u32 *begin = ZNEWN(a, u32, lists + 1);
  for (u32 k = 0; k < n; k++) begin[d->all.v[k].replica * d->nmicro + d->all.v[k].mb + 1]++;
  for (u32 k = 0; k < lists; k++) begin[k + 1] += begin[k];
  u32 *at = arena_dup(a, begin, lists * sizeof *at);
  while (each < n) {
    u32 k = few(lists);
    if (at[k] < begin[k + 1]) v[each++] = d->all.v[at[k]++];
  }
  for (u32 k = 0; k < swaps && n > 1; k++) {
    u32 i = few(n - 1);
    sched_task t = v[i];
    v[i] = v[i + 1], v[i + 1] = t;
  }
  d->all.v = v;
}

static const sched *draft_read(ctx *c, arena *a, const draft *d, bool pairs) {
  strbuf out = {.a = a};
  sb_put(&out, "# edges");
  for (u32 k = 0; k < d->edges.n; k++)
    sb_fmt(&out, " %u%c%u", d->edges.v[k].from, d->edges.v[k].no_gradient ? '>' : '-', d->edges.v[k].to);
  for (u32 p = 0; p < d->nplaces; p++) {
    const char *before = "\n";
    bool open = false;
    for (u32 k = 0; k < d->all.n; k++) {
      const sched_task *t = &d->all.v[k];
      u64 on = d->on[t->replica * d->nstages + t->stage];
      if (!(on >> p & 1)) continue;
      const sched_task *next = NULL; // on this place
      for (u32 j = k + 1; j < d->all.n && !next; j++)
        if (d->on[d->all.v[j].replica * d->nstages + d->all.v[j].stage] >> p & 1) next = &d->all.v[j];
      bool pair = pairs && !open && next && !few(4) && !(on & (on - 1)) &&
                  d->on[next->replica * d->nstages + next->stage] == on;
      sb_fmt(&out, "%s%s%u%c%u", open ? ";" : before, pair ? "(" : "", t->stage, sched_letter(t->kind),
             t->mb);
      if (t->replica) sb_fmt(&out, "r%u", t->replica);
      if (t->pass) sb_fmt(&out, "p%u", t->pass);
      if (open) sb_put(&out, ")OVERLAP_F_B");
      open = pair, before = ",";
    }
  }
  sb_char(&out, '\n');
  const sched *s = sched_parse(c, a, sym_of(c, "random.csv"), sb_str(&out), out.n);
  CHECK_MSG(s != NULL, "%s%s", sb_str(&out), diag_render(c, a));
  REQUIRE(s != NULL);
  CHECK_EQ_I64(s->nplaces, d->nplaces);
  return s;
}

// The schedule, of which some stages run forward only, as those of a plan that no gradient comes to. NULL: all would.
static const sched *without_backwards(arena *a, const sched *s) {
  bool *forward = NEWN(a, bool, s->nstages), all = true;
  for (u32 k = 0; k < s->nstages; k++) forward[k] = few(2), all = all && forward[k];
  if (!s->backward || all) return NULL;
  sched x = *s;
  sched_seq *seq = NEWN(a, sched_seq, s->nplaces);
  for (u32 p = 0; p < s->nplaces; p++) {
    sched_task *v = NEWN(a, sched_task, s->seq[p].n);
    u32 n = 0;
    bool behind = false; // the one before it is another half of a pair that still stands
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *t = &s->seq[p].v[i];
      if (t->kind != TASK_F && forward[t->stage]) {
        if (behind) v[n - 1].paired = false;
        behind = false;
        continue;
      }
      const sched_task *next = t->paired ? t + 1 : NULL;
      v[n] = *t;
      if (next && next->kind != TASK_F && forward[next->stage]) v[n].paired = false;
      behind = v[n++].paired;
    }
    seq[p] = (sched_seq){n, v};
  }
  x.seq = seq, x.source = NULL;
  return sched_with(a, &x, s->nedges, s->edge, forward);
}

static void check_round_trip(ctx *c, arena *a, const sched *s) {
  strbuf one = {.a = a}, two = {.a = a};
  sched_print(s, &one);
  const sched *again = sched_parse(c, a, sym_of(c, "again.csv"), sb_str(&one), one.n);
  CHECK_MSG(again != NULL, "%s%s", sb_str(&one), diag_render(c, a));
  REQUIRE(again != NULL);
  CHECK(sched_equal(s, again) && s->key == again->key);
  sched_print(again, &two);
  CHECK_STR(sb_str(&two), sb_str(&one));
  CHECK(sched_check(c, again, (loc){0}, NULL));
}

// Schedules of one key have one text, and so are equal.
typedef struct {
  arena *a;
  hmap at;
  VEC(const char *) text;
  u32 again;
} keys;

static void check_key(keys *k, const sched *s) {
  strbuf out = {.a = k->a};
  sched_print(s, &out);
  for (u32 it = 0, i; hmap_next(&k->at, s->key, &it, &i);) {
    k->again++;
    CHECK_STR(sb_str(&out), k->text.v[i]);
    return;
  }
  hmap_add(k->a, &k->at, s->key, k->text.n);
  *vec_push(k->a, &k->text) = sb_str(&out);
}

// Where every task takes one unit and none are paired, it begins at its step of the merge.
static void check_times(ctx *c, arena *a, const sched *s, u32 *unpaired) {
  static const u32 unit[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 1, [TASK_I] = 1, [TASK_W] = 1};
  const u32 before = diag_count(c);
  sched_line line;
  sched_times t;
  bool runs = sched_merge(c, a, s, NULL, (loc){0}, &line), paired = false;
  CHECK(sched_time(c, a, s, unit, (loc){0}, &t) == runs);
  diag_truncate(c, before);
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++) paired |= s->seq[p].v[i].paired;
  if (!runs) return;
  for (u32 k = 0; k < line.n && !paired; k++) {
    sched_span x = t.at[line.v[k].place][line.v[k].index];
    CHECK(x.begin == line.v[k].step && x.end == x.begin + 1);
  }
  CHECK(paired || t.makespan == line.nsteps);
  *unpaired += !paired;
  for (u32 p = 0; p < s->nplaces; p++) CHECK(t.busy[p] == s->seq[p].n && t.live[p] <= s->seq[p].n);
  strbuf out = {.a = a};
  sched_picture(s, &t, &out);
  u32 lines = 0;
  for (u32 i = 0; i < out.n; i++) lines += sb_str(&out)[i] == '\n';
  CHECK_EQ_I64(lines, s->nplaces);
}

TEST(sched_merge_is_the_clock) {
  u32 deadlocks[4] = {0}, runs = 4000, timed = 0, ahead = 0, parted = 0;
  keys seen = {.a = arena_new()};
  for (u32 seed = 1; seed <= runs; seed++) {
    R = seed;
    ctx *c = ctx_new();
    arena *a = arena_new();
    draft d;
    draft_sizes(a, &d);
    draft_tasks(a, &d);
    draft_shuffle(a, &d, few(2) ? few(4) : 0);
    const sched *s = draft_read(c, a, &d, few(2));
    check_round_trip(c, a, s);
    check_key(&seen, s);
    compare(c, a, s, (sched_buffers){0}, &deadlocks[0]);
    compare(c, a, s, (sched_buffers){.depth = 1}, &deadlocks[1]);
    compare(c, a, s, (sched_buffers){.depth = 2}, &deadlocks[2]);
    compare(c, a, s, (sched_buffers){.rendezvous = true}, &deadlocks[3]);
    check_times(c, a, s, &timed);
    if (!few(3) && (s = without_backwards(a, s))) {
      compare(c, a, s, (sched_buffers){0}, &ahead);
      compare(c, a, s, (sched_buffers){.depth = 1}, &ahead);
      compare(c, a, s, (sched_buffers){.rendezvous = true}, &ahead);
      parted++;
    }
    arena_free(a);
    ctx_free(c);
  }
  CHECK_MSG(seen.again > 10 && seen.text.n > runs / 2, "%u texts, %u again", seen.text.n, seen.again);
  arena_free(seen.a);
  CHECK_MSG(timed > runs / 10, "%u timed", timed);
  CHECK_MSG(parted > runs / 10 && ahead > parted / 20 && ahead < 3 * parted / 2,
            "%u without all backwards, %u deadlocks", parted, ahead);
  for (u32 k = 0; k < 4; k++) // neither always nor never
    CHECK_MSG(deadlocks[k] > runs / 100 && deadlocks[k] < runs - runs / 100, "%u: %u", k, deadlocks[k]);
}

// ---- rows ---------------------------------------------------------------------------------------------
static void check_every_task_once(arena *a, const sched_row *r, const sched *s) {
  u32 each = s->backward ? s->split[0] ? 3 : 2 : 1, total = 0, whole = 0;
  const u32 cells = s->nreplicas * s->nstages * s->nmicro;
  u8 *seen = ZNEWN(a, u8, cells * s->nplaces * s->npasses); // what lies on all places by place
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++, total++) {
      const sched_task *t = &s->seq[p].v[i];
      const bool wide = sched_is_wide(r, s->nplaces, t->stage);
      u8 *x = &seen[(t->replica * s->nstages + t->stage) * s->nmicro + t->mb +
                    ((wide ? p : 0) * s->npasses + t->pass) * cells];
      CHECK((wide || sched_place(r, s->nplaces, t->replica, t->stage) == p) && !(*x >> t->kind & 1));
      whole += t->kind == TASK_B && s->split[0];
      *x |= (u8)(1u << t->kind);
    }
  const u32 again = r->placement == PLACED_WIDE ? 2 * (s->nplaces - 1) * s->nmicro : 0;
  CHECK_EQ_I64(total + whole, (cells + again) * (each + s->npasses - 1));
  CHECK((whole > 0) == (s->backward && r->split == SPLIT_SOME));
}

// A schedule of a random row, every task once, merges in the order of the clock.
static bool told_same(const sched_seq *x, const sched_seq *y) {
  for (u32 i = 0; i < x->n; i++)
    if (x->v[i].stage != y->v[i].stage || x->v[i].kind != y->v[i].kind || x->v[i].mb != y->v[i].mb ||
        x->v[i].pass != y->v[i].pass || x->v[i].replica != y->v[i].replica)
      return false;
  return x->n == y->n;
}

// The key alone is that of the schedule, with its sequences told in order.
typedef struct {
  const sched *of;
  u32 places;
  bool same;
} told;
static void tell(void *arg, const sched_seq *seq) {
  told *x = arg;
  x->same &= x->of && x->places < x->of->nplaces && told_same(seq, &x->of->seq[x->places]);
  x->places++;
}
static void check_key_alone(const char *name, const sched_shape *shape, const sched *s) {
  ctx *c = ctx_new();
  told x = {s, 0, true};
  const u64 key = sched_make_key(c, name, shape, (loc){0}, tell, &x);
  CHECK(key == (s ? s->key : 0) && x.same && x.places == (s ? s->nplaces : 0));
  CHECK_EQ_I64(diag_errors(c), !s);
  ctx_free(c);
}

TEST(sched_rows_at_random) {
  u32 nrows = 0, bounded = 0, refused = 0;
  while (sched_row_of(nrows)) nrows++;
  for (u32 seed = 1; seed <= 1000; seed++) {
    R = seed;
    ctx *c = ctx_new();
    arena *a = arena_new();
    const sched_row *r = sched_row_of(few(nrows));
    sched_shape shape = {.places = 1 + few(6),
                         .chunks = r->chunks == CHUNKS_ANY ? 1 + few(4) : r->chunks,
                         .micro = 1 + few(12),
                         .group = r->group ? few(8) : 0,
                         .backward = few(3),
                         .paired = few(2)};
    if (few(8)) shape.micro = MAX(shape.micro, r->least * shape.places);
    if (sched_replicas(r) > 1 && few(8)) {
      shape.places += shape.places % 2,
          shape.micro += (r->multiple - shape.micro % r->multiple) % r->multiple;
      shape.micro = MAX(shape.micro, r->least * shape.places);
    }
    const sched *s = sched_make(c, a, r->name, &shape, (loc){0});
    refused += !s;
    CHECK_EQ_I64(diag_errors(c), !s);
    check_key_alone(r->name, &shape, s);
    if (s) {
      CHECK_MSG(sched_check(c, s, (loc){0}, NULL), "%s", diag_render(c, a));
      const sched *on = sched_make_on(c, a, r->name, &shape, (loc){0}, s->nedges, s->edge);
      CHECK_MSG(on && sched_check(c, on, (loc){0}, NULL), "%s", diag_render(c, a));
      for (u32 p = 0; on && p < s->nplaces; p++)
        CHECK(on->seq[p].n == s->seq[p].n && told_same(&on->seq[p], &s->seq[p]));
      CHECK(s->nstages == sched_nstages(r, shape.places, shape.chunks) && s->nplaces == shape.places &&
            sched_first(s, s->nreplicas) == shape.micro);
      check_every_task_once(a, r, s);
      check_round_trip(c, a, s);
      u32 deadlocks = 0;
      compare(c, a, s, (sched_buffers){0}, &deadlocks);
      CHECK_EQ_I64(deadlocks, 0);
      compare(c, a, s, (sched_buffers){.depth = 1 + few(3)}, &bounded);
    }
    arena_free(a);
    ctx_free(c);
  }
  CHECK_MSG(refused > 0 && refused < 100, "%u refused", refused);
}

// ---- text that was tampered with ----------------------------------------------------------------------
static size_t tamper(char *text, size_t n, size_t cap) {
  static const char letters[] = "0123456789FBIW,;()\n\r #-rpv_OVERLAP";
  for (u32 k = 1 + few(3); k--;) {
    size_t at = n ? few((u32)n) : 0, len = n ? 1 + few((u32)MIN(n - at, (size_t)12)) : 0;
    switch (few(5)) {
    case 0:
    case 1:
      if (n) text[at] = letters[few(sizeof letters - 1)];
      break;
    case 2: memmove(text + at, text + at + len, n - at - len), n -= len; break;
    case 3:
      if (n + len > cap) break;
      memmove(text + at + len, text + at, n - at);
      n += len;
      break;
    case 4: {
      size_t to = n ? few((u32)n) : 0;
      for (size_t i = 0; i < len && to + i < n && at + i < n; i++) text[to + i] = text[at + i];
      break;
    }
    }
  }
  return n;
}

// Refused implies a diagnostic; accepted implies that it checks and reads back equal.
TEST(sched_text_tampered) {
  u32 accepted = 0, runs = 20000;
  char text[4096];
  for (u32 seed = 1; seed <= runs; seed++) {
    R = seed;
    ctx *c = ctx_new();
    arena *a = arena_new();
    static const char *const name[] = {"1f1b", "interleaved", "zb-h1"};
    u32 z = few(3);
    const sched *s = sched_make(c, a, name[z],
                                &(sched_shape){.places = 1 + few(3),
                                               .chunks = z ? 1 + few(2) : 1,
                                               .micro = 3,
                                               .group = z ? 3 : 0,
                                               .backward = true},
                                (loc){0});
    REQUIRE(s != NULL);
    strbuf out = {.a = a};
    sched_print(s, &out);
    memcpy(text, sb_str(&out), out.n);
    size_t n = tamper(text, out.n, sizeof text);
    s = sched_parse(c, a, sym_of(c, "tampered.csv"), text, n);
    CHECK_MSG((s != NULL) != (diag_errors(c) > 0), "%.*s", (int)n, text);
    accepted += s != NULL;
    u32 deadlocks = 0;
    if (s) {
      check_round_trip(c, a, s);
      compare(c, a, s, (sched_buffers){0}, &deadlocks);
    }
    arena_free(a);
    ctx_free(c);
  }
  CHECK_MSG(accepted > runs / 100, "%u accepted", accepted);
}
