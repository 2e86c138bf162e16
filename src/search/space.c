// space.c - every strategy that a search looks at.
//
// Idea: row by row in the order of choices.def. A row that needs others stands after them, so when its turn
// comes it is known whether it can be chosen; where it cannot, it has its default and the point is the same
// whatever was said of the row.
#include "search/internal.h"

enum { POINTS_MOST = 1 << 21, SPACE_MOST = 1 << 24, MICRO_MOST = 128 };

// Strategies with the same rows up to `group`: how many where none is possible, else 0; the first, and why.
typedef struct {
  strategy_packed first;
  const char *why;
  u32 stands;
  u16 why_id;
} order_group;

typedef struct {
  ctx *c;
  arena *a, *tmp; // tmp: for groups
  const search_opts *o;
  const machine *on;
  u32 ranks, layers;       // layers: calls of main
  i64 heads;               // what heads and hidden units have in common; 0: there are none, or nobody asks
  const char *no_replicas; // search_result has it
  u32 most_micro;          // of mb=*, where the batch is not known
  bool mixed;              // devices of several kinds
  bool counting;           // how many points there are, for one array of all
  u32 count;
  u32 space;               // strategies so far
  bool below;              // rows that only order tasks are said
  bool alike;              // ... and so that no strategy with them is possible:
  u32 alike_from;          // those that `space` counted from here on,
  strategy first;          // and the first of them
  VEC(order_group) groups; // as they were counted
  u32 group;               // the next one
  VEC(search_point) v;
  const char *why;          // the latest reason
  u64 used[CHOICE_COUNT];   // which values that were said are in a point
  bool fixed[CHOICE_COUNT]; // rows that have their default in every point
  bool full;
} points;

static bool pow2(u32 x) { return (x & (x - 1)) == 0; }

// ---- one point ----------------------------------------------------------------------------------------
// The first diagnostic since `before` is the reason; often it is that of the point before.
static const char *reason(points *sp, u32 before, u16 *id) {
  const diag_item d = diag_get(sp->c, before);
  *id = (u16)d.id;
  if (!sp->why || strcmp(sp->why, d.message)) sp->why = arena_strdup(sp->a, d.message);
  return sp->why;
}

static bool settle(const points *sp, strategy *s) {
  return strategy_settle(sp->c, &sp->o->space, sp->o->batch, sp->o->train, s);
}

// why: it is impossible.
static void new_point(points *sp, strategy_packed s, u32 stands, const char *why, u16 why_id) {
  search_point *p = vec_push(sp->a, &sp->v);
  *p = (search_point){.packed = s, .stands = stands, .why = why, .why_id = why_id};
  if (why) p->state = SEARCH_IMPOSSIBLE;
}

static void count_point(points *sp) {
  if (sp->count == POINTS_MOST) sp->full = true;
  sp->count += !sp->full;
}

// Of strategies that are the same up to `group`.
static bool comes_before(const strategy *x, const strategy *y) {
  int order = 0;
  for (u32 i = CHOICE_group + 1; i < CHOICE_COUNT && !order; i++) order = choice_compare(x->of[i], y->of[i]);
  return order < 0;
}

static void add_point(points *sp, const strategy *s) {
  if (sp->space++ == SPACE_MOST) sp->full = true;
  if (sp->alike) {
    if (sp->space == sp->alike_from + 1 || comes_before(s, &sp->first)) sp->first = *s;
    return;
  }
  if (sp->counting) {
    count_point(sp);
    return;
  }
  strategy own = *s;
  const u32 before = diag_count(sp->c);
  u16 id = 0;
  const char *why = settle(sp, &own) ? NULL : reason(sp, before, &id);
  new_point(sp, strategy_pack(sp->a, &own), 1, why, id);
  diag_truncate(sp->c, before);
}

// On devices of one kind samples are dealt out where a microbatch has no equal parts of them: then `auto` is tried in
// place of equal shares.
static bool deals(const points *sp, const strategy *s) {
  const i64 batch = sp->o->batch, micro = batch / s->mb.n;
  return !sp->mixed && !sp->o->space.of[CHOICE_dp_shares].said && !s->replicas.nparts &&
         !s->tp_stages.nparts && !s->mbs.n && batch > 0 && batch % s->mb.n == 0 && micro % s->dp.n &&
         micro > s->dp.n;
}

static choice_value shares_tried(const points *sp, const strategy *s) {
  return deals(sp, s) ? choice_of_mixed(CHOICE_dp_shares) : choice_default(CHOICE_dp_shares);
}

// ---- points that are impossible together ----------------------------------------------------------------
static void next(points *sp, u32 row, strategy *s);

// Is there such a schedule, by the rows up to `group`? What follows them cannot mend it, as long as it does not say
// how samples are dealt.
static bool can_be_ordered(const points *sp, const strategy *s) {
  if (s->replicas.nparts || !sp->fixed[CHOICE_tp_stages] || !sp->fixed[CHOICE_dp_shares]) return true;
  strategy own = *s;
  for (u32 i = CHOICE_group + 1; i < CHOICE_COUNT; i++)
    if (i != CHOICE_skip) own.of[i] = choice_default((choice_id)i);
  own.dp_shares = shares_tried(sp, s);
  return settle(sp, &own) && policy_schedule_fits(sp->c, &own, sp->o->train);
}

// Every strategy with these rows up to `group`. Where none is possible the first of them stands for all.
static void count_below_order(points *sp, u32 row, strategy *s) {
  const u32 before = diag_count(sp->c), had = sp->space;
  order_group g = {.stands = 0};
  sp->alike_from = had, sp->alike = !can_be_ordered(sp, s);
  next(sp, row, s);
  if (sp->alike && sp->space > had) {
    count_point(sp);
    settle(sp, &sp->first);
    g.first = strategy_pack(sp->a, &sp->first), g.stands = sp->space - had;
    g.why = reason(sp, before, &g.why_id);
  }
  *vec_push(sp->tmp, &sp->groups) = g;
  diag_truncate(sp->c, before);
  sp->alike = false;
}

static void below_order(points *sp, u32 row, strategy *s) {
  const order_group *g = sp->counting ? NULL : &sp->groups.v[sp->group++];
  sp->below = true;
  if (!g)
    count_below_order(sp, row, s);
  else if (g->stands)
    sp->space += g->stands, new_point(sp, g->first, g->stands, g->why, g->why_id);
  else
    next(sp, row, s);
  sp->below = false;
}

// ---- every value of a row -----------------------------------------------------------------------------
static void with(points *sp, u32 row, strategy *s, u32 n) {
  s->of[row] = (choice_value){.n = n};
  next(sp, row + 1, s);
}

// What is left of the devices for a degree.
static u32 room(const points *sp, choice_id id, const strategy *s) {
  u32 n = sp->ranks;
  for (u32 i = 0; i < id && choice_is_degree((choice_id)i); i++) n = n % s->of[i].n ? 0 : n / s->of[i].n;
  return n;
}

static bool last_degree(choice_id id) { return !choice_is_degree((choice_id)(id + 1)); }

static void all_degrees(points *sp, choice_id id, strategy *s) {
  u32 n = room(sp, id, s);
  for (u32 x = last_degree(id) ? n : 1; x <= n && n; x++)
    if (n % x == 0 && (!sp->o->pow2 || pow2(x))) with(sp, id, s, x);
}

// Divisors of what a data rank has of the batch; where ranks have unequal parts of it, those of the batch that leave each a
// sample; where the batch is not known, powers of two.
static void all_micro(points *sp, strategy *s) {
  const search_opts *o = sp->o;
  const u32 most = o->batch > 0 ? (u32)MIN(o->batch / s->dp.n, CHOICE_MOST) : MICRO_MOST;
  const i64 of = o->batch > 0 && o->batch % s->dp.n ? o->batch : MAX(most, 1);
  if (o->batch <= 0) sp->most_micro = MICRO_MOST;
  for (u32 k = 1; k <= MAX(most, 1); k++)
    if (o->batch > 0 ? of % k == 0 && (!o->pow2 || pow2(k)) : pow2(k)) with(sp, CHOICE_mb, s, k);
}

// Samples that a data rank can have in a microbatch.
static void all_sizes(points *sp, strategy *s) {
  const u32 per = sp->o->batch > 0 ? (u32)MIN(sp->o->batch / s->dp.n, CHOICE_MOST) : 1;
  for (u32 k = 1; k <= MAX(per, 1); k++)
    if (MAX(per, 1) % k == 0) with(sp, CHOICE_mbs, s, k);
}

// So many that the layers can be dealt out evenly, over all stages or over all but the first and the last one, which have
// the embedding and the head (Llama-3 405B: 126 layers, 128 stages); and 1.
static void all_chunks(points *sp, strategy *s) {
  for (u32 k = 1; k == 1 || (u64)k * s->pp.n <= (u64)sp->layers + 2; k++) {
    const u32 stages = k * s->pp.n;
    if (k == 1 || (stages <= sp->layers && sp->layers % stages == 0) ||
        (stages > 2 && sp->layers && sp->layers % (stages - 2) == 0))
      with(sp, CHOICE_v, s, k);
  }
}

// `pp`, and divisors of the microbatches above it.
static void all_groups(points *sp, strategy *s) {
  const u32 size = s->mbs.n * s->dp.n, mb = size ? (u32)MIN(sp->o->batch / size, CHOICE_MOST) : s->mb.n;
  with(sp, CHOICE_group, s, 0);
  for (u32 k = s->pp.n + 1; k <= mb; k++)
    if (mb % k == 0) with(sp, CHOICE_group, s, k);
}

// Divisors of what a tensor rank has of all heads and hidden units.
static void all_parts(points *sp, strategy *s) {
  const u32 most = choice_get(CHOICE_coshard)->most;
  const i64 own = sp->heads % s->tp.n ? sp->heads : sp->heads / s->tp.n;
  for (u32 k = 1; k <= most; k++)
    if (k == 1 || (own && own % k == 0)) with(sp, CHOICE_coshard, s, k);
}

static i64 common_heads(const prog *src) {
  prog *p = prog_clone(src, src->c);
  arena *tmp = arena_new();
  coshard_index *v;
  i64 all = 0;
  for (u32 k = pass_coshard_of(p, tmp, &v); k-- > 0;) all = gcd_i64(all, v[k].extent);
  arena_free(tmp);
  prog_free(p);
  return all;
}

// Are these places alike: each of one kind of devices, and both of the same?
static bool same_kind(const points *sp, const strategy *s, u32 place, u32 other) {
  const u32 n = s->dp.n * s->tp.n, first = s->skip.n + place * n, second = s->skip.n + other * n;
  return sp->on->dev[first].kind == sp->on->dev[second].kind && machine_one_kind(sp->on, first, n) &&
         machine_one_kind(sp->on, second, n);
}

// Degrees of the places from `place` on, which divide a place's devices; neighbours that are alike have the same.
// tp is the highest one, so that no plan comes twice, and not all are equal, which is tp alone.
static void degrees_from(points *sp, strategy *s, u32 *v, u32 place) {
  const u32 block = s->dp.n * s->tp.n;
  if (sp->full) return;
  if (place == s->pp.n) {
    u32 most = 0, least = block;
    for (u32 q = 0; q < place; q++) most = MAX(most, v[q]), least = MIN(least, v[q]);
    if (most != s->tp.n || least == most) return;
    u32 *own = sp->counting ? v : arena_dup(sp->a, v, place * sizeof *v);
    s->tp_stages = (choice_value){.nparts = place, .part = own};
    next(sp, CHOICE_tp_stages + 1, s);
    return;
  }
  const bool follows = place && same_kind(sp, s, place - 1, place);
  for (u32 d = follows ? v[place - 1] : 1; d <= (follows ? v[place - 1] : s->tp.n); d++) {
    if (block % d || (sp->o->pow2 && !pow2(d))) continue;
    v[place] = d;
    degrees_from(sp, s, v, place + 1);
  }
}

static void all_tensor_degrees(points *sp, strategy *s) {
  with(sp, CHOICE_tp_stages, s, 0);
  if (!sp->mixed) return;
  u32 *v = NEWN(sp->a, u32, s->pp.n);
  degrees_from(sp, s, v, 0);
  s->tp_stages = choice_default(CHOICE_tp_stages);
}

static void all_values(points *sp, choice_id id, strategy *s) {
  const choice_row *r = choice_get(id);
  u32 first = 0, n = 0;
  if (choice_is_degree(id)) {
    all_degrees(sp, id, s);
    return;
  }
  switch (id) {
  case CHOICE_mb: all_micro(sp, s); return;
  case CHOICE_mbs: all_sizes(sp, s); return;
  case CHOICE_v: all_chunks(sp, s); return;
  case CHOICE_group: all_groups(sp, s); return;
  case CHOICE_tp_stages: all_tensor_degrees(sp, s); return;
  case CHOICE_coshard: all_parts(sp, s); return;
  default: break;
  }
  switch (r->kind) {
  case CK_COUNT:
    assert(r->most < CHOICE_MOST); // those without an end are above
    first = r->least, n = r->most - r->least + 1;
    break;
  case CK_SET:
    for (u32 k = 0; k < 1u << choice_words(id); k++) { // words that cannot be chosen make no other values
      s->of[id].n = k;
      if (choice_settled(id, s, sp->o->train).n == k) with(sp, id, s, k);
    }
    return;
  case CK_WORD:
  case CK_FLAG:
  case CK_GRIDS:
  case CK_LIST: n = choice_all(id); break;
  }
  for (u32 k = 0; k < n; k++) with(sp, id, s, first + k);
}

// A degree must divide the devices; the stages are what is left of them.
static bool degree_fits(const points *sp, choice_id id, const strategy *s, u32 x) {
  u32 n = room(sp, id, s);
  return n && (last_degree(id) ? x == n : n % x == 0);
}

static bool searched(const points *sp, choice_id id) {
  const choice_set *x = &sp->o->space.of[id];
  if (id == CHOICE_mb && sp->o->space.of[CHOICE_mbs].said) return false; // mbs says it
  return x->said ? x->all : *choice_get(id)->search == '*';
}

// A value that was said, as it can be here: without the words that cannot be chosen, with those of them that are default.
static choice_value can_be(const points *sp, choice_id id, choice_value x, const strategy *s) {
  if (!choice_get(id)->where) return x;
  strategy own = *s;
  own.of[id] = x;
  return choice_settled(id, &own, sp->o->train);
}

// Does it lose a word there? A search of plans that have what was said leaves it out then.
static bool loses(choice_id id, choice_value x, choice_value as) {
  return choice_get(id)->where && x.n & ~as.n;
}

// Every value that was said: once, where several can be but one here.
static bool only(const points *sp, choice_id id) { return sp->o->only >> id & 1; }

static void said_values(points *sp, choice_id id, strategy *s) {
  const choice_set *x = &sp->o->space.of[id];
  u64 in_space = 0;
  for (u32 k = 0; k < x->n; k++) {
    const choice_value as = can_be(sp, id, x->v[k], s);
    u32 first = k; // that is the same here
    if (only(sp, id) && loses(id, x->v[k], as)) continue;
    if (choice_is_degree(id) && !degree_fits(sp, id, s, as.n)) continue;
    for (u32 j = k; choice_get(id)->where && j-- > 0;) {
      const choice_value other = can_be(sp, id, x->v[j], s);
      if (choice_same(other, as) && !(only(sp, id) && loses(id, x->v[j], other))) first = j;
    }
    const u32 have = sp->space;
    s->of[id] = as;
    if (first == k) next(sp, id + 1, s);
    if (sp->space > have) in_space |= (u64)1 << k;
    if (in_space >> first & 1 && !loses(id, x->v[k], as)) sp->used[id] |= (u64)1 << k;
  }
}

// Or nothing.
static bool says_default(const choice_set *x, choice_id id) {
  for (u32 k = 0; k < x->n; k++)
    if (choice_same(x->v[k], choice_default(id))) return true;
  return !x->n;
}

// ---- replicas of different make-up ----------------------------------------------------------------------
// Rows of the window's devices that one replica may have: of one node, or of neighbouring nodes of one kind.
enum { REPLICAS_MOST = 8 };
// How many there are; sizes of the first of them.
static u32 groups_of(const points *sp, u32 first, bool by_node, u32 *size) {
  u32 n = 0;
  for (u32 r = first; r < first + sp->ranks; r++) {
    const machine_dev *d = &sp->on->dev[r];
    const bool follows = r > first && (by_node ? d[-1].node == d->node : d[-1].kind == d->kind);
    if (!follows && n++ < REPLICAS_MOST) size[n - 1] = 0;
    if (n <= REPLICAS_MOST) size[n - 1]++;
  }
  return n;
}

// Of every group a pipeline, or data ranks, of so many tensor ranks (fewer where it has not as many). NULL: they do not
// divide it.
static const u32 *grids_of(const points *sp, const u32 *size, u32 n, u32 tensor, bool data) {
  u32 *v = NEWN(sp->a, u32, 3 * n);
  for (u32 k = 0; k < n; k++) {
    const u32 t = MIN(tensor, size[k]), rest = size[k] / t;
    if (size[k] % t) return NULL;
    v[3 * k] = data ? 1 : rest, v[3 * k + 1] = t, v[3 * k + 2] = data ? rest : 1;
  }
  return v;
}

static u32 tried_replicas(points *sp, u32 first, choice_value *out) {
  u32 n = 0, largest = 0;
  for (u32 by = 0; by < 2 && sp->mixed; by++) {
    u32 size[REPLICAS_MOST], groups = groups_of(sp, first, by, size);
    if (groups > REPLICAS_MOST) {
      if (!sp->no_replicas) // of all devices first
        sp->no_replicas = arena_printf(sp->a, "one for each of %u %s: at most %d replicas are tried", groups,
                                       by ? "nodes" : "rows of nodes of one kind", REPLICAS_MOST);
      continue;
    }
    for (u32 k = 0; k < groups; k++) largest = MAX(largest, size[k]);
    for (u32 t = 1; groups > 1 && t <= MIN(largest, 8u); t *= 2)
      for (u32 data = 0; data < 2; data++) {
        const u32 *v = grids_of(sp, size, groups, t, data);
        const choice_value x = {.nparts = 3 * groups, .part = v};
        bool again = !v;
        for (u32 j = 0; j < n && !again; j++) again = choice_same(out[j], x);
        if (!again) out[n++] = x;
      }
  }
  return n;
}

static bool may_be_one(const choice_set *x) {
  bool one = !x->said || x->all || !x->n;
  for (u32 k = 0; k < x->n; k++) one |= x->v[k].n == 1;
  return one;
}

// Replicas need not fill a window: is the strategy in one of the n before? One of several kinds has all that others have.
static bool in_window_before(const points *sp, const rank_window *v, u32 n, const strategy *s) {
  for (u32 w = 0; w < n; w++)
    if (v[w].first == s->skip.n && v[w].n >= strategy_ranks(s) &&
        (!sp->mixed || !machine_one_kind(sp->on, v[w].first, v[w].n)))
      return true;
  return false;
}

// Strategies of replicas, whose degrees are their own, that are not in the first `before` windows.
static void all_replicas(points *sp, const strategy *of, const rank_window *window, u32 before) {
  const choice_set *x = &sp->o->space.of[CHOICE_replicas];
  choice_value tried[2 * 2 * 4];
  const u32 n = x->all ? tried_replicas(sp, of->skip.n, tried) : x->n;
  for (choice_id id = 0; choice_is_degree(id); id++)
    if (!may_be_one(&sp->o->space.of[id])) return;
  for (u32 k = 0; k < n; k++) {
    strategy s = *of;
    s.replicas = x->all ? tried[k] : x->v[k];
    if (!s.replicas.nparts || strategy_ranks(&s) > sp->ranks) continue;
    if (!x->all && in_window_before(sp, window, before, &s)) continue;
    const u32 have = sp->space;
    next(sp, CHOICE_replicas + 1, &s);
    if (!x->all && sp->space > have) sp->used[CHOICE_replicas] |= (u64)1 << k;
  }
}

static void next(points *sp, u32 row, strategy *s) {
  if (sp->full) return;
  while (row < CHOICE_COUNT && sp->fixed[row] && !(row == CHOICE_dp_shares && deals(sp, s))) row++;
  if (row > CHOICE_group && !sp->below) {
    below_order(sp, row, s);
    return;
  }
  const choice_id id = (choice_id)row;
  if (row == CHOICE_COUNT) {
    add_point(sp, s);
    return;
  }
  if (id == CHOICE_skip) { // of the window
    next(sp, row + 1, s);
    return;
  }
  const choice_set *x = &sp->o->space.of[row];
  if (id == CHOICE_replicas) { // others are apart: all_replicas
    if (x->all || says_default(x, id)) next(sp, row + 1, s);
    return;
  }
  const bool applies = choice_applies(id, s, sp->o->train);
  if (applies && searched(sp, id)) {
    all_values(sp, id, s);
    return;
  }
  if (!applies && only(sp, id) && !says_default(x, id)) return;
  if (!applies || !x->n) {
    // Shares and degrees by place do not go together; layers of replicas are by time anyway.
    const bool alone =
        (id == CHOICE_dp_shares && s->tp_stages.nparts) || (id == CHOICE_layers && s->replicas.nparts);
    const bool may = applies && !alone && !x->said && sp->mixed;
    const choice_value word = may ? choice_of_mixed(id) : choice_default(id);
    s->of[row] = id == CHOICE_dp_shares && applies ? shares_tried(sp, s) : choice_default(id);
    if (!choice_is_degree(id) || degree_fits(sp, id, s, s->of[row].n)) next(sp, row + 1, s);
    if (!choice_same(word, choice_default(id))) s->of[row] = word, next(sp, row + 1, s);
    if (sp->fixed[row]) s->of[row] = choice_default(id); // rows that are passed over have it
    return;
  }
  said_values(sp, id, s);
}

// Rows that a walk need not look at: nothing was said of them, and nothing is tried.
static void fix_rows(points *sp) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const bool tried = sp->mixed && !choice_same(choice_of_mixed(id), choice_default(id));
    sp->fixed[i] = !sp->o->space.of[i].said && !choice_is_degree(id) && !searched(sp, id) && !tried;
  }
}

// ---- nothing is dropped in silence --------------------------------------------------------------------
// So many devices the degrees that are said can be of: the most up to n. 0: there are none.
static u32 devices_below(const points *sp, u32 n) {
  u64 all = 1;
  bool other = false;
  for (choice_id id = 0; choice_is_degree(id); id++) {
    const choice_set *x = &sp->o->space.of[id];
    other |= x->n != 1;
    if (x->n == 1) all *= x->v[0].n;
  }
  return all > n ? 0 : other ? (u32)(n - n % all) : (u32)all;
}

// What is left after the ranks that are skipped is no multiple of the degrees.
static bool skipped(points *sp, const char *what) {
  const choice_set *x = &sp->o->space.of[CHOICE_skip];
  const u32 all = sp->on->nranks, skip = x->n == 1 ? x->v[0].n : 0;
  if (!skip || sp->o->ranks) return false;
  diag(sp->c, E_STRATEGY, x->at, "skip=%u leaves %u of the machine's %u devices: %s is impossible on them",
       skip, sp->ranks, all, what);
  for (u32 d = 1; d < all; d++) // the nearest
    for (u32 more = 0; more < 2; more++) {
      const u32 left = more ? sp->ranks - MIN(d, sp->ranks) : sp->ranks + d;
      if (!left || left > all || devices_below(sp, left) != left) continue;
      diag_hint(sp->c, "skip=%u leaves %u; or other degrees", all - left, left);
      return true;
    }
  diag_hint(sp->c, "leave out %s", what);
  return true;
}

static bool unused(points *sp, choice_id id, choice_value x) {
  strbuf b = {.a = sp->a};
  const choice_row *r = choice_get(id);
  const loc at = sp->o->space.of[id].at;
  choice_say(id, x, &b);
  if (choice_is_degree(id) && skipped(sp, sb_str(&b))) return false;
  if (choice_is_degree(id)) {
    const u32 below = devices_below(sp, sp->ranks), fewer = below < sp->ranks ? below : 0;
    diag(sp->c, E_STRATEGY, at, "%s is impossible on %u devices: dp x tp x pp must be %u", sb_str(&b),
         sp->ranks, sp->ranks);
    if (fewer)
      diag_hint(sp->c, "leave it out, or --devices %u", fewer);
    else
      diag_hint(sp->c, below ? "leave it out" : "leave it out, or use more devices");
    return false;
  }
  if (id == CHOICE_replicas) {
    strategy s = strategy_default();
    s.replicas = x;
    for (choice_id k = 0; choice_is_degree(k) && strategy_ranks(&s) <= sp->ranks; k++) {
      const choice_set *own = &sp->o->space.of[k];
      if (own->n != 1 || own->v[0].n == 1) continue;
      diag(sp->c, E_STRATEGY, own->at, "%s=%u does not go with %s, which has degrees of its own",
           choice_get(k)->name, own->v[0].n, sb_str(&b));
      diag_hint(sp->c, "leave one of them out");
      return false;
    }
    diag(sp->c, E_STRATEGY, at, "%s has %llu ranks, with dp, tp and pp 1; there are %u devices", sb_str(&b),
         (unsigned long long)strategy_ranks(&s), sp->ranks);
    diag_hint(sp->c, "replicas of %u ranks together at most", sp->ranks);
    return false;
  }
  if (r->needs & CHOICE_TRAINING && !sp->o->train) {
    diag(sp->c, E_STRATEGY, at, "%s applies to training only; this is inference", sb_str(&b));
    diag_hint(sp->c, "add --train, or leave out %s", r->name);
    return false;
  }
  const u32 words = x.n & ~choice_default(id).n;
  const char *needs = choice_needs(sp->a, id, words ? words : UINT32_MAX);
  if (*needs)
    diag(sp->c, E_STRATEGY, at, "%s needs %s; no plan of this search has that", sb_str(&b), needs);
  else
    diag(sp->c, E_STRATEGY, at, "no plan of this search has %s", sb_str(&b));
  diag_hint(sp->c, "leave out %s", r->name);
  return false;
}

static bool all_used(points *sp) {
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_set *x = &sp->o->space.of[i];
    for (u32 k = 0; k < x->n; k++)
      if (!(sp->used[i] >> k & 1) && !choice_same(x->v[k], choice_default((choice_id)i)))
        return unused(sp, (choice_id)i, x->v[k]);
  }
  return true;
}

// ---- which ranks --------------------------------------------------------------------------------------
// Where runs of one kind begin, and one past the last rank. More runs than are told apart are one with the last.
enum { RUNS_MOST = 5 };
static u32 runs_of(const machine *m, u32 ranks, u32 at[RUNS_MOST + 1]) {
  u32 n = 0;
  for (u32 r = 0; r < ranks && n < RUNS_MOST; r++)
    if (!r || m->dev[r].kind != m->dev[r - 1].kind) at[n++] = r;
  at[n] = ranks;
  return n;
}

// What is tried of n devices of a run at an end of a window besides all: the next smaller multiple of a higher power of
// two, so of 13: 12, then 8. Degrees of few factors are slow, and one device more shall not make the best plan slower.
enum { RUN_MOST = 64 }; // larger runs are tried whole alone
static u32 fewer(u32 n) { return n > RUN_MOST ? 0 : n & (n - 1); }

static u32 add_window(rank_window *out, u32 n, u32 first, u32 end) {
  for (u32 k = 0; k < n; k++)
    if (out[k].first == first && out[k].n == end - first) return n;
  if (n < WINDOWS_MOST) out[n++] = (rank_window){first, end - first, 0};
  return n;
}

// Runs [from, to), with fewer devices of the first and of the last one. Of one run the last devices go.
static u32 add_fewer(const u32 *at, u32 from, u32 to, rank_window *out, u32 n) {
  const u32 first = to - from > 1 ? at[from + 1] - at[from] : 0, last = at[to] - at[to - 1];
  for (u32 x = first; x || !first; x = fewer(x)) {
    for (u32 y = last; y; y = fewer(y)) n = add_window(out, n, at[from] + first - x, at[to] - last + y);
    if (!first) break;
  }
  return n;
}

// All of the devices, and of those of several kinds what leaves out some at either end.
static u32 windows_of_runs(const machine *m, const search_opts *o, u32 ranks, rank_window out[WINDOWS_MOST]) {
  u32 n = 0, at[RUNS_MOST + 1];
  out[n++] = (rank_window){0, ranks, 0};
  const u32 runs = o->ranks ? 1 : runs_of(m, ranks, at);
  for (u32 from = 0; runs > 1 && from < runs; from++)
    for (u32 to = runs; to > from; to--)
      if (to - from < runs) n = add_window(out, n, at[from], at[to]);
  for (u32 from = 0; runs > 1 && from < runs; from++)
    for (u32 to = runs; to > from; to--) n = add_fewer(at, from, to, out, n);
  return n;
}

u32 space_windows(const machine *m, const search_opts *o, u32 ranks, rank_window out[WINDOWS_MOST]) {
  const choice_set *said = &o->space.of[CHOICE_skip];
  if (!said->said || said->all) return windows_of_runs(m, o, ranks, out);
  rank_window run[WINDOWS_MOST];
  const u32 nrun = o->ranks ? 0 : windows_of_runs(m, o, ranks, run);
  u32 n = 0;
  for (u32 k = 0; k < said->n && n < WINDOWS_MOST; k++) {
    const u32 skip = said->v[k].n;
    if (skip < m->nranks) n = add_window(out, n, skip, o->ranks ? skip + o->ranks : m->nranks);
  }
  for (u32 k = 0; k < said->n; k++) // a winner that a search names is one of these
    for (u32 w = 0; w < nrun; w++)
      if (run[w].first == said->v[k].n) n = add_window(out, n, run[w].first, run[w].first + run[w].n);
  return n;
}

rank_window space_within(const machine *m, const search_opts *o, u32 ranks) {
  rank_window window[WINDOWS_MOST];
  const u32 n = space_windows(m, o, ranks, window);
  u32 first = m->nranks, end = 0;
  for (u32 w = 0; w < n; w++)
    first = MIN(first, window[w].first), end = MAX(end, window[w].first + window[w].n);
  return (rank_window){first, end - first, 0};
}

// False: not so many.
static bool windows_fit(points *sp, const machine *m, u32 ranks) {
  const choice_set *x = &sp->o->space.of[CHOICE_skip];
  for (u32 k = 0; k < x->n; k++) {
    const u32 skip = x->v[k].n;
    if (sp->o->ranks ? (u64)skip + ranks <= m->nranks : skip < m->nranks) continue;
    diag(sp->c, E_STRATEGY, x->at, "skip=%u leaves %u of the machine's %u devices", skip,
         m->nranks - MIN(skip, m->nranks), m->nranks);
    diag_hint(sp->c, sp->o->ranks ? "a smaller skip, or --devices" : "a smaller skip");
    return false;
  }
  return true;
}

static void all_windows(points *sp, const machine *m, u32 ranks) {
  rank_window window[WINDOWS_MOST];
  const u32 n = space_windows(m, sp->o, ranks, window);
  for (u32 w = 0; w < n; w++) {
    const rank_window *x = &window[w];
    strategy s = strategy_default();
    sp->ranks = x->n, sp->mixed = !machine_one_kind(m, x->first, x->n), s.skip.n = x->first;
    fix_rows(sp);
    const u32 have = sp->space;
    next(sp, 0, &s);
    s = strategy_default(), s.skip.n = x->first;
    all_replicas(sp, &s, window, w);
    const choice_set *skip = &sp->o->space.of[CHOICE_skip];
    for (u32 k = 0; k < skip->n && sp->space > have; k++)
      if (choice_same(skip->v[k], s.skip)) sp->used[CHOICE_skip] |= (u64)1 << k;
  }
  sp->ranks = n == 1 ? window[0].n : ranks;
}

const char *space_devices(arena *a, const bounds *b, u32 ranks) {
  strbuf t = {.a = a};
  if (b->nwindows < 2) return NULL;
  for (u32 w = 0; w < b->nwindows; w++) {
    const rank_window *x = &b->window[w];
    if (x->n == ranks)
      sb_fmt(&t, "%sall", w ? ", " : "");
    else
      sb_fmt(&t, "%s%u to %u", w ? ", " : "", x->first, x->first + x->n - 1);
  }
  return sb_str(&t);
}

// Were replicas alone left, and is there nothing that would tell them apart?
static bool no_replicas_here(points *sp) {
  const choice_set *x = &sp->o->space.of[CHOICE_replicas];
  bool one = x->all && machine_one_kind(sp->on, 0, sp->on->nranks);
  for (choice_id id = 0; choice_is_degree(id); id++) one = one && may_be_one(&sp->o->space.of[id]);
  if (!one) return false;
  diag(sp->c, E_STRATEGY, x->at, "replicas=* is tried on devices of several kinds; the %u here are of one",
       sp->ranks);
  diag_hint(sp->c, "leave it out, or say which replicas: replicas=1x1+1x1");
  return true;
}

// No degrees make the devices.
static void no_degrees(const points *sp, u32 ranks) {
  strbuf b = {.a = sp->a};
  u64 made = 1;
  u32 said = 0;
  for (choice_id id = 0; choice_is_degree(id); id++) {
    const choice_set *x = &sp->o->space.of[id];
    if (x->n != 1) continue;
    sb_put(&b, said++ ? " " : ""), choice_say(id, x->v[0], &b);
    made *= x->v[0].n;
  }
  const bool all = said == CHOICE_pp + 1, many = all || (said && ranks % made),
             odd = !many && sp->o->pow2 && !pow2(ranks);
  if (many)
    diag(sp->c, E_NO_PLAN, (loc){0}, "%s needs %s%llu devices; there are %u", sb_str(&b),
         all ? "" : "a multiple of ", (unsigned long long)made, ranks);
  else
    diag(sp->c, E_NO_PLAN, (loc){0}, "no dp x tp x pp makes %u devices%s", ranks,
         odd ? ": that is no power of two" : "");
  if (all && made <= sp->on->nranks)
    diag_hint(sp->c, "--devices %llu, or leave one of dp, tp and pp to the search", (unsigned long long)made);
  else
    diag_hint(sp->c, "leave %s, or set --devices N",
              odd ? "out --powers-of-two" : "one of dp, tp and pp to the search");
}

bool space_make(ctx *c, arena *a, const prog *src, const machine *on, const search_opts *o, u32 ranks,
                search_result *r, schedule_files *files) {
  search_opts own = *o;
  points sp = {.c = c, .a = a, .o = &own, .on = on};
  const func_info *m = func_get(src, src->main);
  for (u32 i = 0; i < m->body.n; i++) sp.layers += m->body.v[i].op == OP_call;
  if (o->space.of[CHOICE_coshard].all) sp.heads = common_heads(src);
  if (!policy_schedule_files(c, a, &own.space, files)) return false;
  if (!windows_fit(&sp, on, ranks)) return false;
  sp.tmp = arena_new();
  sp.counting = true, all_windows(&sp, on, ranks), sp.counting = false;
  vec_reserve(a, &sp.v, sp.count);
  sp.space = 0;
  if (!sp.full) all_windows(&sp, on, ranks);
  arena_free(sp.tmp);
  r->space = sp.space, r->npoints = sp.v.n, r->point = sp.v.v;
  r->most_microbatches = sp.most_micro, r->no_replicas = sp.no_replicas;
  if (sp.full) {
    diag(c, E_LIMIT, (loc){0}, "more than %d plans to search",
         sp.count == POINTS_MOST ? POINTS_MOST : SPACE_MOST);
    diag_hint(c, "fix more choices, such as dp=8%s", o->pow2 ? "" : ", or add --powers-of-two");
    return false;
  }
  if (r->npoints) return o->only != 0 || all_used(&sp);
  const choice_set *grids = &o->space.of[CHOICE_replicas];
  for (u32 k = 0; k < grids->n; k++)
    if (grids->v[k].nparts) return unused(&sp, CHOICE_replicas, grids->v[k]);
  for (choice_id id = 0; choice_is_degree(id); id++)
    for (u32 k = 0; k < o->space.of[id].n; k++)
      if (sp.ranks % o->space.of[id].v[k].n) return unused(&sp, id, o->space.of[id].v[k]);
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (only(&sp, (choice_id)i) && !choice_is_degree((choice_id)i) && o->space.of[i].said &&
        choice_get((choice_id)i)->needs && !says_default(&o->space.of[i], (choice_id)i))
      return unused(&sp, (choice_id)i, o->space.of[i].v[0]);
  if (no_replicas_here(&sp)) return false;
  no_degrees(&sp, ranks);
  return false;
}
