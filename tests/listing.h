// listing.h - the strategies of a random search, listed by what docs/strategy.md says of them. Included by tests only.
#ifndef HEDDLE_TEST_LISTING_H
#define HEDDLE_TEST_LISTING_H
#include "search/search.h"
#include "setting.h"

// ---- the space, by docs/strategy.md ---------------------------------------------------------------------
typedef struct {
  strategy said, s; // as listed; settled, where that is possible
  bool settled;
} listed;
typedef struct {
  setting *w;
  search_opts o;
  const char *line;
  u32 ranks, most; // points
  u32 first, n;    // the ranks that plans are listed for
  bool fits;       // every part of the machine that was said has the devices
  bool too_many;
  VEC(listed) v;
} listing;

static bool power(u32 x) { return (x & (x - 1)) == 0; }

static u32 layers(const listing *l) {
  const func_info *m = func_get(l->w->src, l->w->src->main);
  u32 n = 0;
  for (u32 i = 0; i < m->body.n; i++) n += m->body.v[i].op == OP_call;
  return n;
}

// Every value that `*` may have somewhere; `allowed` knows where.
static u32 highest(const listing *l, choice_id id) {
  const choice_row *r = choice_get(id);
  if (id <= CHOICE_pp) return l->n;
  if (id == CHOICE_mb) return (u32)MAX(l->o.batch, 128);
  if (id == CHOICE_v) return layers(l) + 2;
  if (id == CHOICE_group || id == CHOICE_mbs) return (u32)MAX(l->o.batch, 128);
  if (r->kind == CK_COUNT) return r->most;
  return r->kind == CK_SET ? (1u << choice_words(id)) - 1 : choice_all(id) - 1;
}

static bool splits_in(const listing *l, u32 parts) {
  prog *p = prog_clone(l->w->src, l->w->src->c);
  arena *a = arena_new();
  coshard_index *v;
  const u32 n = pass_coshard_of(p, a, &v);
  bool yes = n > 0;
  for (u32 k = 0; k < n; k++) yes = yes && v[k].extent % parts == 0;
  arena_free(a);
  prog_free(p);
  return yes;
}

static bool in_star(const listing *l, choice_id id, const strategy *s) {
  const u32 x = s->of[id].n, degree = s->dp.n * s->tp.n * s->pp.n;
  if (s->of[id].nparts) return false;
  if (id == CHOICE_overlap) // what cannot be is as it is by default: sends beside, sums not
    return (x & OVERLAP_PP || strategy_most(s, CHOICE_pp) > 1) &&
           (!(x & OVERLAP_DP) || (l->o.train && strategy_most(s, CHOICE_dp) > 1));
  if (id <= CHOICE_pp) return x && l->n % x == 0 && degree == l->n && (!l->o.pow2 || power(x));
  if (id == CHOICE_mb) {
    const u32 per = MAX((u32)(l->o.batch / s->dp.n), 1),
              of = l->o.batch > 0 && l->o.batch % s->dp.n ? (u32)l->o.batch : per;
    return x >= 1 &&
           (l->o.batch > 0 ? x <= per && of % x == 0 && (!l->o.pow2 || power(x)) : x <= 128 && power(x));
  }
  const u32 per = MAX((u32)(l->o.batch / s->dp.n), 1), size = s->mbs.n * s->dp.n,
            mb = size ? (u32)(l->o.batch / size) : s->mb.n;
  if (id == CHOICE_mbs) return x && per % x == 0;
  if (id == CHOICE_coshard)
    return x == 1 || (x && x <= 64 && splits_in(l, splits_in(l, s->tp.n) ? x * s->tp.n : x));
  if (id == CHOICE_v) { // dealt out evenly, over all stages or all but the first and the last one
    const u32 n = layers(l), stages = x * s->pp.n;
    bool even = false;
    for (u32 each = 1; each <= n && x; each++)
      even = even || (n % each == 0 && (stages == n / each || stages == n / each + 2));
    return x == 1 || even;
  }
  if (id == CHOICE_group) return !x || (x > s->pp.n && mb && mb % x == 0);
  return x >= choice_get(id)->least && x <= highest(l, id);
}

// What the words of a set that cannot be chosen make of a value that was said: sends are beside, sums are not.
static choice_value here(const listing *l, choice_id id, choice_value x, const strategy *s) {
  if (id != CHOICE_overlap) return x;
  if (strategy_most(s, CHOICE_pp) == 1) x.n |= OVERLAP_PP;
  if (!l->o.train || strategy_most(s, CHOICE_dp) == 1) x.n &= ~(u32)OVERLAP_DP;
  return x;
}

static bool is_said(const choice_set *x, choice_value v) {
  for (u32 k = 0; k < x->n; k++)
    if (choice_same(x->v[k], v)) return true;
  return false;
}

static bool several_kinds(const listing *l) {
  bool several = false;
  const machine_dev *d = l->w->m->dev + l->first;
  for (u32 k = 1; k < l->n; k++) several |= d[k].kind != d[0].kind;
  return several;
}

// On devices of one kind `auto` stands in place of equal shares where a microbatch has a sample for every data rank, but
// not as many for each.
static bool dealt(const listing *l, const strategy *s) {
  const i64 all = (i64)s->mb.n * s->dp.n;
  return !l->o.space.of[CHOICE_dp_shares].said && !several_kinds(l) && s->dp.n > 1 && !s->mbs.n &&
         !s->tp_stages.nparts && l->o.batch > all && l->o.batch % s->mb.n == 0 && l->o.batch % all;
}

// Of the rows after pp what those before it say decides; dp, tp and pp are looked at together.
static bool legal(const listing *l, choice_id id, const strategy *s) {
  const choice_set *x = &l->o.space.of[id];
  const bool other_words = id == CHOICE_mb && l->o.space.of[CHOICE_mbs].said;
  const bool star = !other_words && (x->said ? x->all : *choice_get(id)->search == '*');
  if (!choice_applies(id, s, l->o.train)) return choice_same(s->of[id], choice_default(id));
  if (star) return in_star(l, id, s);
  if (id == CHOICE_dp_shares && dealt(l, s)) return choice_same(s->of[id], choice_of_mixed(id));
  if (!x->said && several_kinds(l) && !(id == CHOICE_dp_shares && s->tp_stages.nparts) &&
      !(id == CHOICE_layers && s->replicas.nparts) && choice_same(s->of[id], choice_of_mixed(id)))
    return true;
  for (u32 k = 0; k < x->n; k++)
    if (choice_same(here(l, id, x->v[k], s), s->of[id])) return true;
  return !x->n && choice_same(s->of[id], choice_default(id));
}

static void list_point(listing *l, const strategy *s) {
  for (u32 k = 0; s->replicas.nparts && k < l->v.n; k++) // which may be fewer ranks than there are
    if (!strategy_compare(&l->v.v[k].said, s)) return;
  l->too_many = l->v.n == l->most;
  if (l->too_many) return;
  listed *p = vec_push(l->w->a, &l->v);
  const u32 before = diag_count(l->w->c);
  *p = (listed){.said = *s, .s = *s};
  p->settled = strategy_settle(l->w->c, &l->o.space, l->o.batch, l->o.train, &p->s);
  diag_truncate(l->w->c, before);
}

static void list_from(listing *l, u32 row, strategy *s);
static void list_value(listing *l, u32 row, strategy *s, choice_value x) {
  s->of[row] = x;
  bool ok = row != CHOICE_pp || s->dp.n * s->tp.n * s->pp.n == l->n;
  for (choice_id id = CHOICE_dp; row == CHOICE_pp && id < CHOICE_pp; id++) ok = ok && legal(l, id, s);
  if (ok && (row < CHOICE_pp || legal(l, (choice_id)row, s))) list_from(l, row + 1, s);
}

// Degrees by place that `*` has on a machine of several kinds: divisors of a place's devices, the highest is tp, not
// all are equal, and two places next to each other that have devices of one kind alone have the same.
static bool degrees_wanted(const listing *l, const strategy *s, const u32 *v) {
  const u32 n = s->dp.n * s->tp.n;
  u32 most = 0;
  bool equal = true;
  for (u32 q = 0; q < s->pp.n; q++) {
    if (n % v[q] || (l->o.pow2 && !power(v[q]))) return false;
    most = MAX(most, v[q]), equal = equal && v[q] == v[0];
    bool one = q > 0; // all devices of this place and of the one before
    for (u32 i = 0; one && i < 2 * n; i++)
      one = l->w->m->dev[l->first + (q - 1) * n + i].kind == l->w->m->dev[l->first + q * n].kind;
    if (one && v[q] != v[q - 1]) return false;
  }
  return most == s->tp.n && !equal;
}

static void list_degrees(listing *l, strategy *s) {
  u32 *v = NEWN(l->w->a, u32, s->pp.n), q = 0;
  for (u32 i = 0; i < s->pp.n; i++) v[i] = 1;
  while (q < s->pp.n && !l->too_many) { // as the digits of a number
    if (degrees_wanted(l, s, v)) {
      s->tp_stages = (choice_value){.nparts = s->pp.n, .part = arena_dup(l->w->a, v, s->pp.n * sizeof *v)};
      list_from(l, CHOICE_tp_stages + 1, s);
    }
    for (q = 0; q < s->pp.n && v[q] == s->tp.n; q++) v[q] = 1;
    if (q < s->pp.n) v[q]++;
  }
  s->tp_stages = choice_default(CHOICE_tp_stages);
}

static void list_from(listing *l, u32 row, strategy *s) {
  if (l->too_many) return;
  if (row == CHOICE_COUNT) {
    list_point(l, s);
    return;
  }
  const choice_id id = (choice_id)row;
  if (id == CHOICE_skip) { // list_all
    list_from(l, row + 1, s);
    return;
  }
  const choice_set *x = &l->o.space.of[row];
  if (id == CHOICE_replicas) { // others: list_replicas
    if (!x->n || is_said(x, choice_default(id))) list_from(l, row + 1, s);
    return;
  }
  const bool star = x->said ? x->all : *choice_get(id)->search == '*';
  const u32 most = star ? highest(l, id) : 0;
  const choice_value dflt = choice_default(id);
  for (u32 k = 0; star && k <= most; k++) list_value(l, row, s, (choice_value){.n = k});
  if (star && id == CHOICE_tp_stages && several_kinds(l) && choice_applies(id, s, l->o.train))
    list_degrees(l, s);
  bool has_default = star && dflt.n <= most;
  for (u32 k = 0; k < x->n; k++) {
    const choice_value v = here(l, id, x->v[k], s);
    bool again = false;
    for (u32 j = 0; j < k; j++) again |= choice_same(here(l, id, x->v[j], s), v);
    has_default |= choice_same(v, dflt);
    if (!again) list_value(l, row, s, v);
  }
  if (!has_default) list_value(l, row, s, dflt); // once
  const choice_value word = choice_of_mixed(id);
  if (id == CHOICE_dp_shares && dealt(l, s)) list_value(l, row, s, word);
  if (!x->said && !star && several_kinds(l) && !(id == CHOICE_dp_shares && s->tp_stages.nparts) &&
      !(id == CHOICE_layers && s->replicas.nparts) && !choice_same(word, dflt) &&
      choice_applies(id, s, l->o.train))
    list_value(l, row, s, word);
}

// Replicas of different make-up, with dp, tp and pp 1 whatever the devices are.
static void list_replicas(listing *l, u32 first) {
  const choice_set *x = &l->o.space.of[CHOICE_replicas];
  for (u32 k = 0; k < x->n; k++) {
    strategy s = strategy_default();
    s.skip.n = first, s.replicas = x->v[k];
    bool ok = s.replicas.nparts && strategy_ranks(&s) <= l->n;
    for (choice_id id = CHOICE_dp; ok && id <= CHOICE_pp; id++) {
      const choice_set *of = &l->o.space.of[id];
      ok = !of->n || is_said(of, (choice_value){.n = 1});
    }
    if (ok) list_from(l, CHOICE_replicas + 1, &s);
  }
}

// All ranks that were asked for; where that is the whole machine and nothing was said of skip, every range of
// ranks besides that begins and ends where the kind changes. Else what was said.
static bool list_all(listing *l) {
  const choice_set *x = &l->o.space.of[CHOICE_skip];
  const machine *m = l->w->m;
  const bool said = x->said && !x->all;
  u32 first[64], end[64], n = 0;
  for (u32 k = 0; said && k < x->n; k++)
    first[n] = x->v[k].n, end[n] = l->o.ranks ? first[n] + l->o.ranks : m->nranks, n++;
  for (u32 a = 0; !said && a < l->ranks; a++)
    for (u32 b = a + 1; b <= l->ranks; b++) {
      const bool whole = !a && b == l->ranks, begins = !a || m->dev[a].kind != m->dev[a - 1].kind,
                 ends = b == l->ranks || m->dev[b].kind != m->dev[b - 1].kind;
      if (whole || (!l->o.ranks && begins && ends)) first[n] = a, end[n++] = b;
    }
  for (u32 k = 0; k < n; k++) {
    if (first[k] >= end[k] || end[k] > m->nranks) return false;
    strategy s = strategy_default();
    s.skip.n = l->first = first[k], l->n = end[k] - first[k];
    list_from(l, 0, &s);
    list_replicas(l, first[k]);
  }
  l->first = 0, l->n = l->ranks;
  return true;
}

// Does the plan have the value, all of its words?
static bool has_value(const listing *l, const strategy *s, choice_id id, choice_value x) {
  const choice_value v = here(l, id, x, s);
  return choice_same(s->of[id], v) &&
         (id != CHOICE_overlap || (choice_applies(id, s, l->o.train) && !(x.n & ~v.n)));
}

// Is every value that was said in some plan?
static bool all_used(const listing *l) {
  if (!l->fits) return false;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    for (u32 k = 0; k < l->o.space.of[i].n; k++) {
      const choice_value x = l->o.space.of[i].v[k];
      bool used = choice_same(x, choice_default((choice_id)i));
      for (u32 p = 0; p < l->v.n && !used; p++) used = has_value(l, &l->v.v[p].said, (choice_id)i, x);
      if (!used) return false;
    }
  return l->v.n > 0;
}

// ---- a random search --------------------------------------------------------------------------------------
static void say_value(u64 *rng, choice_id id, strbuf *out) {
  static const u32 degree[] = {1, 1, 2, 2, 3, 4, 6};
  static const char *const layers[] = {"1/1", "2/2", "1/2", "2/1", "1/1/1", "1/1/1/1", "3/1"};
  const choice_row *r = choice_get(id);
  choice_value x = {0};
  static const char *const stages[] = {"2/1", "1/2", "1/1", "2/2", "1/2/1"};
  if (id == CHOICE_tp_stages && !chance(rng, 3)) {
    sb_put(out, stages[pick(rng, COUNT_OF(stages))]);
    return;
  }
  static const char *const replicas[] = {"none", "1x1+1x1", "2x1+1x1", "1x1+1x2", "1x1x2+1x1", "1x1+1x1+1x1"};
  if (id == CHOICE_replicas) {
    sb_put(out, replicas[pick(rng, COUNT_OF(replicas))]);
    return;
  }
  static const char *const places[] = {"2/1", "1/2", "3/1/2", "2/3/1"};
  if (id == CHOICE_places && !chance(rng, 4)) {
    sb_put(out, places[pick(rng, COUNT_OF(places))]);
    return;
  }
  if (id == CHOICE_skip) {
    sb_fmt(out, "%u", pick(rng, 3));
    return;
  }
  static const char *const shares[] = {"2/1", "1/3", "2/1/1", "1/1/2/2"};
  if (id == CHOICE_layers && chance(rng, 3)) {
    sb_put(out, layers[pick(rng, COUNT_OF(layers))]);
    return;
  }
  if ((id == CHOICE_dp_shares || id == CHOICE_tp_shares) && chance(rng, 3)) {
    sb_put(out, shares[pick(rng, COUNT_OF(shares))]);
    return;
  }
  if (r->kind == CK_COUNT)
    x.n = r->most == CHOICE_MOST ? degree[pick(rng, COUNT_OF(degree))]
                                 : r->least + pick(rng, r->most - r->least + 1);
  else
    x.n = pick(rng, r->kind == CK_SET ? 1u << choice_words(id) : choice_all(id));
  choice_print(id, x, out);
}

// Values of a row; repeated ones are refused by the parser, so those lines are drawn again.
static void say_row(setting *w, choice_id id, u32 most, strbuf *out) {
  const bool searched = *choice_get(id)->search == '*';
  sb_fmt(out, "%s%s=", out->n ? " " : "", choice_get(id)->name);
  if (id != CHOICE_mbs && id != CHOICE_replicas && id != CHOICE_prefetch && most > 1 &&
      chance(&w->rng, searched ? 3 : 2)) {
    sb_char(out, '*');
    return;
  }
  for (u32 k = 0, n = 1 + pick(&w->rng, most); k < n; k++) {
    if (k) sb_char(out, ',');
    say_value(&w->rng, id, out);
  }
}

// Rows that are seldom said, from numbers of their own, so that the rest of the line is what it is without them: what is
// in host memory (such plans are simulated whole), tables (most models have none), how values move.
static bool is_apart(setting *w, choice_id id, strbuf *line) {
  const u64 was = w->rng;
  w->rng ^= 0xA0761D6478BD642Fu + id / 8;
  if (id == CHOICE_offload && chance(&w->rng, 10)) say_row(w, id, 2, line);
  const bool offloads = line->n && strstr(sb_str(line), "offload=");
  if ((id == CHOICE_prefetch || id == CHOICE_update) && offloads) say_row(w, id, 1, line);
  if (id == CHOICE_axial && plans_has_tables(w->model) && chance(&w->rng, 2)) say_row(w, id, 1, line);
  if (id == CHOICE_materialise && chance(&w->rng, 6)) say_row(w, id, 2, line);
  w->rng = was;
  return id == CHOICE_sync || id == CHOICE_offload || id == CHOICE_prefetch || id == CHOICE_update ||
         id == CHOICE_axial || id == CHOICE_materialise;
}

// Some rows.
static void any_line(setting *w, strbuf *out) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const bool rare = (id >= CHOICE_v && id <= CHOICE_group) || id == CHOICE_tp_shares || id == CHOICE_skip ||
                      id == CHOICE_replicas;
    if (is_apart(w, id, out)) continue;
    if (id == CHOICE_mbs ? !chance(&w->rng, 6) : rare ? !chance(&w->rng, 4) : chance(&w->rng, 2)) continue;
    say_row(w, id, 2, out);
  }
}

// Several stages on a place, which seldom come of saying any rows.
static void chunked_line(setting *w, strbuf *out) {
  static const char *const stages[] = {"pp=2 v=2", "pp=2 v=1,2", "pp=2,3 v=2", "pp=3 v=1,2", "pp=2 v=2,3"};
  static const char *const orders[] = {"interleaved", "interleaved,zb-h1", "bfs,interleaved", "zb-h1", "*"};
  static const char *const groups[] = {"", " group=0,2", " group=2,3", " group=3,4", " group=4"};
  const u32 n = pick(&w->rng, COUNT_OF(orders));
  sb_fmt(out, "%s schedule=%s%s", stages[pick(&w->rng, COUNT_OF(stages))], orders[n],
         groups[pick(&w->rng, COUNT_OF(groups))]);
  for (u32 i = CHOICE_mb; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const bool searched = *choice_get(id)->search == '*';
    if (is_apart(w, id, out)) continue;
    if ((id >= CHOICE_mbs && id <= CHOICE_group) || chance(&w->rng, searched ? 6 : 2)) continue;
    if (id == CHOICE_skip && !chance(&w->rng, 6)) continue;
    say_row(w, id, searched && id != CHOICE_mb ? 1 : 2, out);
  }
}

// From numbers of its own, so the rest of the line is what it is without. Alone it does not go with every zero.
static void say_sync(const setting *w, strbuf *out) {
  u64 own = hash_u64(w->rng, 1);
  if (!chance(&own, 3)) return;
  const bool alone = !strstr(sb_str(out), "zero=") && !strstr(sb_str(out), "replicas=") && chance(&own, 2);
  sb_fmt(out, "%ssync=%s", out->n ? " " : "", alone ? "allreduce,ps" : "*");
}

// Likewise updates between tasks, which `*` leaves out.
static void say_stale(const setting *w, strbuf *out) {
  static const char *const rows[] = {"pipedream", "1f1b,pipedream", "pipedream-2bw,gpipe", "pipedream,2bw"};
  u64 own = hash_u64(w->rng, 2);
  if (!w->train || strstr(sb_str(out), "schedule=") || strstr(sb_str(out), "replicas=") || !chance(&own, 3))
    return;
  sb_fmt(out, "%sschedule=%s", out->n ? " " : "", rows[pick(&own, COUNT_OF(rows))]);
}

// And orders of places, of plans that have two.
static void say_places(const setting *w, strbuf *out) {
  u64 own = hash_u64(w->rng, 3);
  if (strstr(sb_str(out), "pp=2 ") && !strstr(sb_str(out), "places=") && chance(&own, 4))
    sb_put(out, " places=2/1");
}

static bool random_line(setting *w, listing *l) {
  strbuf b = {.a = w->a};
  (chance(&w->rng, 3) ? chunked_line : any_line)(w, &b);
  say_sync(w, &b), say_stale(w, &b), say_places(w, &b);
  l->line = sb_str(&b);
  const bool ok = strategy_parse(w->c, w->a, l->line, &l->o.space);
  diag_clear(w->c);
  return ok;
}

static bool random_search(setting *w, listing *l) {
  const u32 tops[] = {1, 2, 3, 5, 0};
  *l = (listing){.w = w};
  l->o = (search_opts){.train = w->train, .optim = w->optim, .batch = w->batch, .bytes = w->bytes};
  if (!random_line(w, l)) return false;
  l->o.ranks = chance(&w->rng, 3) ? 0 : 1 + pick(&w->rng, w->m->nranks);
  l->ranks = l->o.ranks ? l->o.ranks : w->m->nranks;
  l->o.pow2 = chance(&w->rng, 3);
  l->o.top = tops[pick(&w->rng, COUNT_OF(tops))];
  l->o.threads = 1 + (int)pick(&w->rng, 2);
  l->o.memory_bytes = l->w->memory = -1;
  l->most = chance(&w->rng, 4) ? 60 : 16; // a bound can only rule out what comes after the first wave of 16
  l->n = l->ranks;
  l->fits = list_all(l);
  return !l->too_many;
}
#endif
