// search.c - the search against brute force. A random small search is done twice: by search_run, and here by
// listing every strategy that docs/strategy.md allows, making each plan alone (settled, planned, applied,
// simulated) and sorting. Winner, ranking, every time and peak, every bound and every count must agree. Of a
// plan that fits, devices that are alike change places, and prices double. SEED=n runs one setting and tells
// its searches.
#include "plans.h"
#include "profiles.h"
#include "search/search.h"
#include "test.h"
#include <stdlib.h>

enum { SETTINGS = 88, EACH = 4 };

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }

// ---- one setting: a model, a machine, what the step is ----------------------------------------------------
typedef struct {
  strategy s;
  bool possible;
  i64 time_ps, alone_ps, peak_bytes;
  i64 memory; // of `auto`: under this limit
} truth;      // of one strategy

typedef struct {
  i64 memory; // limit of the search that is looked at
  u64 rng, seed;
  ctx *c;
  arena *a;
  u32 model;
  prog *src;
  planner *pl;
  machine *m;
  const char *machine_text;
  cost_opts costs;
  cost_model *k;
  bool train;
  i64 batch;
  sim_bytes bytes;
  optim_opts optim;
  VEC(truth) known;
} setting;

static const char *const machines[] = {
    "1x4 v100",
    "1x6 v100",
    "2x2 v100 nvlink=100GB/s ib=100Gb/s",
    "1x3 v100 ib=100Gb/s + 1x1 v100 ib=25Gb/s",
    "3x2 a40 eth=100Gb/s",
    "1x2 v100 ib=100Gb/s + 2x1 t4 eth=25Gb/s",
    "1x2 a10 eth=10Gb/s + 1x4 a10 eth=40Gb/s",
    "2x4 v100 nvlink=20GB/s ib=2x50Gb/s",
};

// Tiny programs last as long as their launches. Slow devices, where products decide, let bounds bite.
static void slow_down(setting *s) {
  const u32 how = pick(&s->rng, 3);
  for (u32 k = 0; k < s->m->nkinds && how; k++) {
    device_kind *d = &s->m->kind[k];
    const double by = how == 1 ? 1e5 : 1e8;
    for (u32 t = 0; t < DT_COUNT; t++) d->rate[t] /= by;
    if (how == 2) memset(d->eff, 0, sizeof d->eff), d->launch_ps = 0;
  }
  s->machine_text = arena_printf(s->a, "%s, %s", s->machine_text,
                                 how == 2   ? "rates / 1e8, no launches, all efficiencies 1"
                                 : how == 1 ? "rates / 1e5"
                                            : "as it is");
}

static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }

static u32 profiled;

static void open_setting(setting *s, u64 seed) {
  static const i64 batches[] = {0, 0, 1, 4, 6, 8, 12};
  static const optimizer optims[] = {OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAFACTOR};
  *s = (setting){.rng = hash_u64(seed, 77), .seed = seed, .c = ctx_new(), .a = arena_new()};
  s->model = (u32)(seed % plans_count());
  s->batch = batches[pick(&s->rng, COUNT_OF(batches))];
  s->src = plans_load(s->c, s->model, s->batch);
  REQUIRE(s->src && pass_loss(s->src));
  const func_info *f = func_get(s->src, s->src->main);
  s->batch = val_type(s->src, f, 1)->s.dim[0];
  s->train = !chance(&s->rng, 4);
  s->optim = optim_default(optims[pick(&s->rng, COUNT_OF(optims))]);
  s->machine_text = machines[pick(&s->rng, COUNT_OF(machines))];
  s->m = machine_load(s->c, s->a, s->machine_text);
  REQUIRE(s->m);
  slow_down(s);
  s->costs.extrapolated = quiet;
  if (chance(&s->rng, 5) && profile_made_up(s->m, s->a, s->src, &s->rng))
    s->machine_text = arena_printf(s->a, "%s, times of layers", s->machine_text), profiled++;
  diag_clear(s->c);
  if (chance(&s->rng, 8)) s->costs.model = "distir", s->bytes = SIM_BYTES_DISTIR;
  s->k = cost_model_new(s->c, s->a, s->m, &s->costs);
  s->pl = planner_new(s->src);
}

static void close_setting(setting *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

static const char *named(arena *a, const strategy *s) {
  strbuf b = {.a = a};
  strategy_print(s, &b);
  return sb_str(&b);
}

// ---- one plan, alone ----------------------------------------------------------------------------------
static u64 text_hash(const strbuf *b) { return hash_bytes(b->v, b->n, 0); }

static prog *apply(setting *s, const strategy *x, arena *a, u64 *plan_text) {
  hybrid_opts h = {.s = *x, .train = s->train, .optim = s->optim, .k = s->k, .memory_bytes = s->memory};
  plan *pn = policy_hybrid(s->pl, a, &h);
  if (!pn) return NULL;
  if (plan_text) {
    strbuf b = {.a = a};
    pn->name = sym_of(s->c, "nameless");
    plan_print(planner_source(s->pl), pn, &b);
    *plan_text = text_hash(&b);
  }
  return plan_apply(s->pl, pn, s->k);
}

// DistIR's simulator knows one step only, and of inference each is alone.
static bool is_steady(const setting *s) { return s->train && s->bytes == SIM_BYTES_HEDDLE; }

static void work_out(setting *s, truth *t) {
  arena *a = arena_new();
  sim_opts so = {.mode = SIM_FOLDED, .bytes = s->bytes, .steady = is_steady(s)};
  sim_result r;
  const u32 before = diag_count(s->c);
  prog *d = apply(s, &t->s, a, NULL);
  if (d) {
    t->possible = sim_run(s->c, a, d, s->k, &so, &r);
    if (t->possible) t->time_ps = r.period_ps, t->alone_ps = r.makespan_ps, t->peak_bytes = r.peak_bytes;
    prog_free(d);
  }
  diag_truncate(s->c, before);
  arena_free(a);
}

// Are the programs of two strategies the same, letter by letter? plans: are the plans?
static bool same_program(setting *s, const truth *x, const truth *y, bool *plans) {
  if (x->time_ps != y->time_ps || x->alone_ps != y->alone_ps || x->peak_bytes != y->peak_bytes) return false;
  u64 plan_text[2], text[2];
  for (u32 k = 0; k < 2; k++) {
    arena *a = arena_new();
    strbuf b = {.a = a};
    prog *d = apply(s, k ? &y->s : &x->s, a, &plan_text[k]);
    ir_print(d, &b);
    text[k] = text_hash(&b);
    prog_free(d);
    arena_free(a);
  }
  if (plans) *plans = plan_text[0] == plan_text[1];
  return text[0] == text[1];
}

static const truth *truth_of(setting *s, const strategy *x);
static const truth *find_truth(setting *s, const strategy *x) {
  const bool fits = choice_is(CHOICE_dp_shares, x->dp_shares, "auto") ||
                    choice_is(CHOICE_dp_shares, x->dp_shares, "whale") ||
                    choice_is(CHOICE_layers, x->layers, "auto"); // they depend on the limit
  bool any = false;
  for (u32 i = 0; i < s->known.n; i++) {
    const truth *t = &s->known.v[i];
    if (strategy_compare(&t->s, x)) continue;
    if (!fits || t->memory == s->memory) return t;
    any = true;
  }
  return any ? truth_of(s, x) : NULL;
}

static const truth *truth_of(setting *s, const strategy *x) {
  for (u32 i = 0; i < s->known.n; i++)
    if (s->known.v[i].memory == s->memory && !strategy_compare(&s->known.v[i].s, x)) return &s->known.v[i];
  truth *t = vec_push(s->a, &s->known);
  *t = (truth){.s = *x, .memory = s->memory};
  if (getenv("PLANS")) fprintf(stderr, "%s\n", named(s->a, x));
  work_out(s, t);
  return t;
}

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
  if (id == CHOICE_v) return MAX(layers(l), 1);
  if (id == CHOICE_group || id == CHOICE_mbs) return (u32)MAX(l->o.batch, 128);
  if (r->kind == CK_COUNT) return r->most;
  return r->kind == CK_SET ? (1u << choice_words(id)) - 1 : choice_words(id) - 1;
}

static bool in_star(const listing *l, choice_id id, const strategy *s) {
  const u32 x = s->of[id].n, degree = s->dp.n * s->tp.n * s->pp.n;
  if (s->of[id].nparts) return false;
  if (id <= CHOICE_pp) return x && l->n % x == 0 && degree == l->n && (!l->o.pow2 || power(x));
  if (id == CHOICE_mb) {
    const u32 per = MAX((u32)(l->o.batch / s->dp.n), 1);
    return x >= 1 && (l->o.batch > 0 ? per % x == 0 && (!l->o.pow2 || power(x)) : x <= 128 && power(x));
  }
  const u32 per = MAX((u32)(l->o.batch / s->dp.n), 1), size = s->mbs.n * s->dp.n,
            mb = size ? (u32)(l->o.batch / size) : s->mb.n;
  if (id == CHOICE_mbs) return x && per % x == 0;
  if (id == CHOICE_v) return x == 1 || (x && x * s->pp.n <= layers(l) && layers(l) % (x * s->pp.n) == 0);
  if (id == CHOICE_group) return !x || (x > s->pp.n && mb && mb % x == 0);
  return x >= choice_get(id)->least && x <= highest(l, id);
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

// Of the rows after pp what those before it say decides; dp, tp and pp are looked at together.
static bool legal(const listing *l, choice_id id, const strategy *s) {
  const choice_set *x = &l->o.space.of[id];
  const bool other_words = id == CHOICE_mb && l->o.space.of[CHOICE_mbs].said;
  const bool star = !other_words && (x->said ? x->all : *choice_get(id)->search == '*');
  if (!choice_applies(id, s, l->o.train)) return choice_same(s->of[id], choice_default(id));
  if (star) return in_star(l, id, s);
  if (!x->said && several_kinds(l) && !(id == CHOICE_dp_shares && s->tp_stages.nparts) &&
      choice_same(s->of[id], choice_of_mixed(id)))
    return true;
  return x->n ? is_said(x, s->of[id]) : choice_same(s->of[id], choice_default(id));
}

static void list_point(listing *l, const strategy *s) {
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
  for (u32 k = 0; k < x->n; k++) list_value(l, row, s, x->v[k]);
  if (!is_said(x, dflt) && (!star || dflt.n > most)) list_value(l, row, s, dflt); // once
  const choice_value word = choice_of_mixed(id);
  if (!x->said && !star && several_kinds(l) && !(id == CHOICE_dp_shares && s->tp_stages.nparts) &&
      !choice_same(word, dflt) && choice_applies(id, s, l->o.train))
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

// Is every value that was said in some plan?
static bool all_used(const listing *l) {
  if (!l->fits) return false;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    for (u32 k = 0; k < l->o.space.of[i].n; k++) {
      const choice_value x = l->o.space.of[i].v[k];
      bool used = choice_same(x, choice_default((choice_id)i));
      for (u32 p = 0; p < l->v.n && !used; p++) used = choice_same(l->v.v[p].said.of[i], x);
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
    x.n = pick(rng, r->kind == CK_SET ? 1u << choice_words(id) : choice_words(id));
  choice_print(id, x, out);
}

// Values of a row; repeated ones are refused by the parser, so those lines are drawn again.
static void say_row(setting *w, choice_id id, u32 most, strbuf *out) {
  const bool searched = *choice_get(id)->search == '*';
  sb_fmt(out, "%s%s=", out->n ? " " : "", choice_get(id)->name);
  if (id != CHOICE_mbs && id != CHOICE_replicas && most > 1 && chance(&w->rng, searched ? 3 : 2)) {
    sb_char(out, '*');
    return;
  }
  for (u32 k = 0, n = 1 + pick(&w->rng, most); k < n; k++) {
    if (k) sb_char(out, ',');
    say_value(&w->rng, id, out);
  }
}

// Some rows.
static void any_line(setting *w, strbuf *out) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const bool rare = (id >= CHOICE_v && id <= CHOICE_group) || id == CHOICE_tp_shares || id == CHOICE_skip ||
                      id == CHOICE_replicas;
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
    if ((id >= CHOICE_mbs && id <= CHOICE_group) || chance(&w->rng, searched ? 6 : 2)) continue;
    if (id == CHOICE_skip && !chance(&w->rng, 6)) continue;
    say_row(w, id, searched && id != CHOICE_mb ? 1 : 2, out);
  }
}

static bool random_line(setting *w, listing *l) {
  strbuf b = {.a = w->a};
  (chance(&w->rng, 3) ? chunked_line : any_line)(w, &b);
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

// ---- agreement ------------------------------------------------------------------------------------------
static double tightness;
static u32 by_work, searches, refusals, points, cut_time, cut_memory, over, equal, twins, dear_devices;
static u32 chosen[CHOICE_COUNT]; // simulated plans in which the row is not at its default

static const char *told(const listing *l) {
  return arena_printf(l->w->a,
                      "seed %llu: %s batch %lld, %s%s, machine %s, %u ranks%s, top %u, memory %lld: '%s'",
                      (unsigned long long)l->w->seed, plans_name(l->w->model), (long long)l->w->batch,
                      l->w->train ? optim_name(l->w->optim.kind) : "inference",
                      l->w->costs.model ? " (distir)" : "", l->w->machine_text, l->ranks,
                      l->o.pow2 ? " pow2" : "", l->o.top, (long long)l->o.memory_bytes, l->line);
}

#define AGREE(l, p, cond)                                                                                    \
  CHECK_MSG(cond, "%s\n  %s: %s (state %u, time %lld, peak %lld, bounds %lld, %lld; %s)", told(l),           \
            named((l)->w->a, &(p)->s), #cond, (p)->state, (long long)(p)->time_ps,                           \
            (long long)(p)->peak_bytes, (long long)(p)->bound_ps, (long long)(p)->bound_bytes,               \
            (p)->why ? (p)->why : "")

// The point that another says it is the program of.
static const search_point *same_as(const listing *l, const search_result *r, const search_point *p) {
  static const char before[] = "the same program as ";
  strategy_set set;
  strategy s;
  if (strncmp(p->why, before, strlen(before))) return NULL;
  char *line = arena_strdup(l->w->a, p->why + strlen(before)), *colon = strchr(line, ':');
  if (colon) *colon = 0;
  if (!strategy_parse(l->w->c, l->w->a, line, &set) || !strategy_one(l->w->c, &set, &s)) return NULL;
  for (u32 i = 0; i < r->npoints; i++)
    if (!strategy_compare(&r->point[i].s, &s)) return &r->point[i];
  return NULL;
}

static void check_equal(const listing *l, const search_result *r, const search_point *p) {
  const search_point *to = p;
  for (u32 n = 0; n < 5 && to && to->state == SEARCH_EQUAL; n++) to = same_as(l, r, to);
  AGREE(l, p, to && to->state != SEARCH_EQUAL && to->state != SEARCH_IMPOSSIBLE);
  const truth *x = find_truth(l->w, &p->s), *y = to ? find_truth(l->w, &to->s) : NULL;
  AGREE(l, p,
        x && y && x->possible && y->possible && x->time_ps == y->time_ps && x->peak_bytes == y->peak_bytes);
  if (equal++ % 8 == 0 && x && y && x->possible && y->possible) // dear
    AGREE(l, p, same_program(l->w, x, y, NULL));
}

// Is the state the first that is true of the point? kth: the time of the last plan that is kept, by brute
// force.
static void check_state(const listing *l, const search_result *r, const search_point *p, i64 kth) {
  const truth *t = find_truth(l->w, &p->s);
  const i64 limit = l->o.memory_bytes;
  const bool large = t && t->possible && limit >= 0 && t->peak_bytes > limit;
  switch (p->state) {
  case SEARCH_IMPOSSIBLE: AGREE(l, p, (!t || !t->possible) && p->why && *p->why); break;
  case SEARCH_EQUAL: check_equal(l, r, p); break;
  case SEARCH_BOUND_MEMORY:
    AGREE(l, p, !l->o.no_bounds && t && (!t->possible || large));
    cut_memory++;
    break;
  case SEARCH_BOUND_TIME:
    AGREE(l, p, !l->o.no_bounds && t && (!t->possible || (l->o.top && t->time_ps > kth)));
    cut_time++;
    break;
  case SEARCH_OVER_MEMORY:
  case SEARCH_RAN:
    AGREE(l, p, t && t->possible && large == (p->state == SEARCH_OVER_MEMORY));
    if (!t) break;
    AGREE(l, p, t->time_ps == p->time_ps && t->alone_ps == p->alone_ps && t->peak_bytes == p->peak_bytes);
    for (u32 i = 0; i < CHOICE_COUNT; i++)
      chosen[i] += !choice_same(p->s.of[i], choice_default((choice_id)i));
    over += p->state == SEARCH_OVER_MEMORY;
    break;
  default: AGREE(l, p, !"an open point");
  }
  if (p->state == SEARCH_BOUND_TIME) AGREE(l, p, p->bound_ps > kth && !p->time_ps && !p->peak_bytes);
  if (p->applied && p->state != SEARCH_BOUND_TIME) AGREE(l, p, l->o.no_bounds || p->bound_ps <= kth);
  if (p->applied && !l->o.no_bounds && limit >= 0) AGREE(l, p, p->bound_bytes <= limit);
  if (t && t->possible && p->bound_ps) AGREE(l, p, p->bound_ps <= t->time_ps);
  if (t && t->possible && p->bound_work) by_work++, tightness += (double)p->bound_ps / (double)t->time_ps;
  if (t && t->possible && p->bound_ps) AGREE(l, p, p->bound_bytes <= t->peak_bytes);
}

static int by_time(const void *x, const void *y) {
  const truth *a = *(const truth *const *)x, *b = *(const truth *const *)y;
  if (a->time_ps != b->time_ps) return a->time_ps < b->time_ps ? -1 : 1;
  if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
  return strategy_compare(&a->s, &b->s);
}

// What fits by brute force, best first, of equal programs only those that the search kept apart.
static u32 ranked(const listing *l, const search_result *r, const truth **v) {
  u32 n = 0;
  for (u32 i = 0; i < l->v.n; i++) {
    const truth *t = l->v.v[i].settled ? find_truth(l->w, &l->v.v[i].s) : NULL;
    if (!t || !t->possible || (l->o.memory_bytes >= 0 && t->peak_bytes > l->o.memory_bytes)) continue;
    bool other = false;
    for (u32 k = 0; k < r->npoints && !other; k++)
      other = r->point[k].state == SEARCH_EQUAL && !strategy_compare(&r->point[k].s, &t->s);
    if (!other) v[n++] = t;
  }
  qsort(v, n, sizeof *v, by_time);
  return n;
}

static void check_space(const listing *l, const search_result *r) {
  CHECK_MSG(r->npoints == l->v.n, "%s: %u points, should be %u", told(l), r->npoints, l->v.n);
  for (u32 i = 0; i < l->v.n; i++) {
    u32 found = 0;
    for (u32 k = 0; k < r->npoints; k++) found += !strategy_compare(&r->point[k].s, &l->v.v[i].s);
    CHECK_MSG(found == 1 || !l->v.v[i].settled, "%s: %s is %u times in the space", told(l),
              named(l->w->a, &l->v.v[i].s), found);
  }
}

static void check_counts(const listing *l, const search_result *r) {
  u32 count[SEARCH_STATES] = {0}, sum = 0, reasons = 0;
  for (u32 i = 0; i < r->npoints; i++) count[r->point[i].state]++;
  for (u32 k = 0; k < SEARCH_STATES; k++) sum += r->count[k];
  for (u32 k = 0; k < r->nreasons; k++) reasons += r->reason[k].count;
  CHECK_MSG(!memcmp(count, r->count, sizeof count) && sum == r->npoints && !count[SEARCH_OPEN], "%s",
            told(l));
  CHECK_MSG(reasons == count[SEARCH_IMPOSSIBLE] && r->nfit == count[SEARCH_RAN], "%s", told(l));
}

// Programs that are the same though the search ran both: never of the same plan.
static void count_twins(const listing *l, const search_result *r) {
  for (u32 i = 0; i < r->npoints; i++)
    for (u32 k = 0; k < i; k++) {
      const truth *x = find_truth(l->w, &r->point[i].s), *y = find_truth(l->w, &r->point[k].s);
      bool plans;
      if (!r->point[i].time_ps || !r->point[k].time_ps || !x || !y || !same_program(l->w, x, y, &plans))
        continue;
      twins++;
      AGREE(l, &r->point[i], !plans);
      if (getenv("TWINS"))
        printf("%s: twins %s, %s\n", told(l), named(l->w->a, &x->s), named(l->w->a, &y->s));
      break;
    }
}

// ---- physics of a plan that was found -------------------------------------------------------------------
static u32 moved, scaled;

static void shuffle(u64 *rng, u32 *v, u32 n) {
  for (u32 i = n; i-- > 1;) {
    const u32 k = pick(rng, i + 1), x = v[i];
    v[i] = v[k], v[k] = x;
  }
}

// Nodes of a kind change places, and the devices of every node.
static void permute(setting *w, u32 *to) {
  u32 rank = 0;
  for (u32 k = 0; k < w->m->nnode_kinds; k++) {
    const u32 nodes = w->m->node_kind[k].count, per = w->m->node_kind[k].ndevs;
    u32 *node = NEWN(w->a, u32, nodes), *dev = NEWN(w->a, u32, per);
    for (u32 i = 0; i < nodes; i++) node[i] = i;
    for (u32 i = 0; i < per; i++) dev[i] = i;
    shuffle(&w->rng, node, nodes);
    for (u32 i = 0; i < nodes; i++) {
      shuffle(&w->rng, dev, per);
      for (u32 d = 0; d < per; d++) to[rank + i * per + d] = rank + node[i] * per + dev[d];
    }
    rank += nodes * per;
  }
}

static u32 twice(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  const u32 n = cost_instr(arg, p, f, i, g, ps);
  for (u32 k = 0; k < n; k++) ps[k] *= 2;
  return n;
}

static void check_moved(const listing *l, const search_point *p, const plan *pn, arena *a) {
  setting *w = l->w;
  const sim_opts o = {.mode = SIM_FOLDED, .bytes = w->bytes, .steady = is_steady(w)};
  u32 *to = NEWN(a, u32, w->m->nranks);
  sim_result r;
  permute(w, to);
  prog *d = plan_apply(w->pl, plans_relabelled(pn, to, a), w->k);
  AGREE(l, p,
        d && sim_run(w->c, a, d, w->k, &o, &r) && r.makespan_ps == p->alone_ps && r.period_ps == p->time_ps &&
            r.peak_bytes == p->peak_bytes);
  prog_free(d);
  moved++;
}

// The path is as long as the step, and no resource has more work than that.
static void check_step(const listing *l, const search_point *p, const prog *d, arena *a) {
  setting *w = l->w;
  const sim_opts one = {.mode = SIM_FOLDED, .bytes = w->bytes, .critical = true, .steps = true},
                 two = {.mode = SIM_FLAT, .bytes = w->bytes, .cost = twice, .cost_arg = w->k};
  sim_result r, s;
  i64 path = 0;
  if (!AGREE(l, p, sim_run(w->c, a, d, w->k, &one, &r) && sim_run(w->c, a, d, NULL, &two, &s))) return;
  for (u32 k = 0; k < r.ncritical; k++) path += r.critical[k].dur_ps;
  AGREE(l, p, path == p->alone_ps && r.makespan_ps == p->alone_ps && r.peak_bytes == p->peak_bytes);
  AGREE(l, p, s.makespan_ps == 2 * p->alone_ps && s.peak_bytes == p->peak_bytes);
  for (u32 k = 0; k < r.nclasses * r.nstreams; k++)
    AGREE(l, p, r.comm_ps[k] <= r.busy_ps[k] && r.busy_ps[k] <= r.end_ps[k] && r.end_ps[k] <= p->alone_ps);
  scaled++;
}

static void check_physics(const listing *l, const search_point *p) {
  setting *w = l->w;
  arena *a = arena_new();
  const hybrid_opts h = {
      .s = p->s, .train = w->train, .optim = w->optim, .k = w->k, .memory_bytes = w->memory};
  const plan *pn = policy_hybrid(w->pl, a, &h);
  prog *d = pn ? plan_apply(w->pl, pn, w->k) : NULL;
  if (AGREE(l, p, d)) {
    check_step(l, p, d, a);
    check_moved(l, p, pn, a);
  }
  prog_free(d);
  diag_clear(w->c);
  arena_free(a);
}

static void check_one_device(const listing *l, const search_result *r) {
  strategy one = strategy_default();
  const truth *t = truth_of(l->w, &one);
  const strategy *w = &r->point[0].s;
  bool faster = t->possible && t->time_ps < r->point[0].time_ps && strategy_ranks(w) > 1 &&
                (l->o.memory_bytes < 0 || t->peak_bytes <= l->o.memory_bytes);
  CHECK_MSG(r->one_device_ps == (faster ? t->time_ps : 0), "%s: one device takes %lld, the search says %lld",
            told(l), (long long)t->time_ps, (long long)r->one_device_ps);
  dear_devices += faster;
}

static void check_result(const listing *l, const search_result *r) {
  const truth **v = NEWN(l->w->a, const truth *, l->v.n + 1);
  const u32 n = ranked(l, r, v), top = l->o.top && !l->o.no_bounds ? MIN(l->o.top, n) : n;
  const i64 kth = l->o.top && n >= l->o.top ? v[l->o.top - 1]->time_ps : INT64_MAX;
  check_space(l, r);
  check_counts(l, r);
  CHECK_MSG(r->last_ps == (l->o.no_bounds ? INT64_MAX : kth), "%s: the last kept takes %lld, not %lld",
            told(l), (long long)r->last_ps, (long long)kth);
  for (u32 i = 0; i < r->npoints; i++) check_state(l, r, &r->point[i], kth);
  CHECK_MSG(r->nfit >= top && (l->o.no_bounds ? r->nfit == n : r->nfit <= n), "%s: %u fit, should be %u",
            told(l), r->nfit, n);
  for (u32 i = 0; i < top && i < r->nfit; i++)
    AGREE(l, &r->point[i], !strategy_compare(&r->point[i].s, &v[i]->s));
  if (r->nfit) check_one_device(l, r);
  if (r->nfit) check_physics(l, &r->point[0]), check_physics(l, &r->point[pick(&l->w->rng, r->nfit)]);
  points += r->npoints;
}

static bool search(listing *l, search_result *r) {
  bool ok = search_run(l->w->c, l->w->a, l->w->src, l->w->m, &l->w->costs, &l->o, r);
  CHECK_MSG(ok == !diag_errors(l->w->c), "%s: %s", told(l), diag_render(l->w->c, l->w->a));
  CHECK_MSG(ok || diag_get(l->w->c, 0).id == E_NO_PLAN, "%s: %s", told(l), diag_render(l->w->c, l->w->a));
  diag_clear(l->w->c);
  return ok;
}

// A limit near the peak of one of the plans.
static void random_limit(listing *l) {
  const truth **v = NEWN(l->w->a, const truth *, l->v.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < l->v.n; i++) {
    const truth *t = l->v.v[i].settled ? find_truth(l->w, &l->v.v[i].s) : NULL;
    if (t && t->possible) v[n++] = t;
  }
  if (n) l->o.memory_bytes = l->w->memory = v[pick(&l->w->rng, n)]->peak_bytes - pick(&l->w->rng, 2);
}

static void check_search(setting *w) {
  listing l;
  search_result r;
  do { diag_clear(w->c); } while (!random_search(w, &l) || (!all_used(&l) && !chance(&w->rng, 40)));
  if (getenv("SEED")) printf("%s: %u points\n", told(&l), l.v.n);
  if (!all_used(&l)) {
    CHECK_MSG(!search_run(w->c, w->a, w->src, w->m, &w->costs, &l.o, &r), "%s", told(&l));
    CHECK_MSG(diag_count(w->c) && (diag_get(w->c, 0).id == E_STRATEGY || !l.v.n), "%s: %s", told(&l),
              diag_render(w->c, w->a));
    diag_clear(w->c);
    refusals++;
    return;
  }
  for (u32 i = 0; i < l.v.n; i++)
    if (l.v.v[i].settled) truth_of(w, &l.v.v[i].s);
  searches++;
  if (chance(&w->rng, 2)) { // everything, without a limit
    l.o.no_bounds = true;
    search(&l, &r);
    check_result(&l, &r);
    CHECK(!r.bound_failed);
    count_twins(&l, &r);
    l.o.no_bounds = false;
  }
  if (!chance(&w->rng, 3)) random_limit(&l);
  search(&l, &r);
  check_result(&l, &r);
}

TEST(search_is_brute_force) {
  const char *one = getenv("SEED"), *many = getenv("SETTINGS");
  u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : many ? strtoull(many, NULL, 0) : SETTINGS;
  for (u64 seed = from; seed <= to; seed++) {
    setting s;
    open_setting(&s, seed);
    for (u32 i = 0; i < EACH; i++) check_search(&s);
    close_setting(&s);
  }
  printf("  %u searches of %u points, %u refused; %u too slow, %u + %u too large, %u equal, %u twins, %u "
         "faster on "
         "one device\n",
         searches, points, refusals, cut_time, cut_memory, over, equal, twins, dear_devices);
  printf("  %u bounds from work, on average %.2f of the time\n", by_work, tightness / by_work);
  printf(
      "  %u plans on devices that changed places, %u at twice the prices, %u settings with measured times\n",
      moved, scaled, profiled);
  printf("  simulated with");
  for (u32 i = CHOICE_v; i < CHOICE_COUNT; i++) printf(" %s %u", choice_get((choice_id)i)->name, chosen[i]);
  printf("\n");
  if (one || many) return;
  CHECK(by_work >= 300);
  CHECK_MSG(searches >= 200 && refusals >= 10, "%u searches, %u refused", searches, refusals);
  CHECK(moved >= 300 && scaled >= 300 && profiled >= 10);
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    CHECK_MSG(chosen[i] >= 10 || i == CHOICE_mbs, "%s: %u", choice_get((choice_id)i)->name, chosen[i]);
  CHECK_MSG(cut_time >= 20 && cut_memory >= 3 && over >= 50 && equal >= 100 && dear_devices >= 10,
            "%u too slow, %u and %u too large, %u equal, %u faster on one device", cut_time, cut_memory, over,
            equal, dear_devices);
}
