// line.c - a schedule's line as operations on few slots: compiled once for all stages that it may run. Not
// what they cost (pipe.c).
//
// Idea: a value under way has a slot from the task that makes it to the task that takes it; slots are used
// again, so that they stay in the cache. What a place does to its memory does not depend on time: it is a
// word of types (task or end of a send, and whether of the first or last microbatch), in which stretches
// repeat.
#include "sim/stages.h"

// Links whose value has a slot, by stage: list[begin[stage]] to list[begin[stage + 1] - 1].
typedef struct {
  u32 *begin, *list;
} link_lists;
typedef struct {        // what of it does not depend on the microbatch
  u16 from, to;         // places
  u32 micro;            // microbatches of its replica
  const u32 *slot;      // by microbatch; NULL: it has none
  u32 sender, receiver; // types, of the first microbatch
} line_send;
typedef struct {
  arena *a, *tmp; // of the line; of what is not kept
  const sim_stages *st;
  const sim_pipeline *pl;
  sim_line *l;
  link_lists sends[2];          // after a forward, after a backward: what of all that leaves the stage
  line_send *send;              // by what
  link_lists from[2], to[2];    // of a forward, of a backward: what comes to it, what leaves it
  u32 *slot[2];                 // per (link, microbatch): of the value there, back
  u32 *carried_begin, *carried; // per (stage, microbatch): the first of its slots; those
  VEC(u32) spare[2];            // of one slot, of as many as there are places
  u32 *other, *next; // per type: the first of st->others that is of it, + 1; the next of its type, + 1
  u32 *last_sum;     // per stage: the step that sums its gradients + 1; 0: none does
  u32 *nsums;        // per stage: tasks so far that make gradients
  bool odd;          // what a whole backward does to memory is not known
  u32 *ran;          // per kind and stage: tasks so far. Where places are apart the last one, whatever its
                     // microbatch, gives back what was sent before the tasks
  u32 most;          // microbatches that a replica has
  u32 *micro;        // per stage: those of its replica
  VEC(sim_op) op;
  VEC(u32) maker; // per slot: number from 1 of the task whose only value is there
  u32 sent;       // likewise: where the latest send is
  u32 *pair_of;   // per what: the first of its pairs + 1
  VEC(sim_pair) pair;
  VEC(u32) pair_after; // per pair: the next one of its what + 1
  u32 *last;
  VEC(u32) many;
  u32 *nword, **word; // per place: types of what it does
} compiler;

static bool has_slot(const sim_pipeline *pl, u32 link, bool back) {
  const sim_link *l = &pl->link[link];
  return l->strm[back] && (!back || l->back);
}

// Of links with a slot in the direction (all: of all) by the stage at their end or beginning.
static link_lists list_links(const compiler *x, bool ends, bool all, bool back) {
  const sim_pipeline *pl = x->pl;
  link_lists l = {ZNEWN(x->tmp, u32, pl->nstages + 2), NEWN(x->tmp, u32, pl->nlinks + 1)};
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 k = 0; k < pl->nlinks; k++) {
      const u32 stage = ends ? pl->link[k].to : pl->link[k].from;
      if (!all && !has_slot(pl, k, back)) continue;
      if (pass) l.list[l.begin[stage + 1]] = k;
      l.begin[stage + 1 + !pass]++;
    }
    for (u32 i = 2; !pass && i < pl->nstages + 2; i++) l.begin[i] += l.begin[i - 1];
  }
  return l;
}

static void list_carried(compiler *x) {
  const sim_pipeline *pl = x->pl;
  u32 n = 0, *own = NEWN(x->a, u32, pl->nstages);
  x->carried_begin = NEWN(x->tmp, u32, pl->nstages);
  for (u32 i = 0; i < pl->nstages; i++) {
    x->carried_begin[i] = n;
    n += (own[i] = x->st->carried[pl->like[i]]) * sim_micro(pl, i);
  }
  x->carried = NEWN(x->tmp, u32, n + 1);
  x->l->carried = own;
}

// Values of stages on several places have a slot for each place.
static bool is_wide(const sim_pipeline *pl, u32 link) {
  return pl->wide && (pl->wide[pl->link[link].from] || pl->wide[pl->link[link].to]);
}

static u32 slot_new(compiler *x, bool wide) {
  if (x->spare[wide].n) return x->spare[wide].v[--x->spare[wide].n];
  const u32 slot = x->maker.n, n = wide ? x->pl->nplaces : 1;
  memset(vec_push_n(x->tmp, &x->maker, n), 0, n * sizeof(u32));
  return slot;
}

static void slot_free(compiler *x, bool wide, u32 slot) { *vec_push(x->tmp, &x->spare[wide]) = slot; }

static void note(compiler *x, u32 at, u32 does) { x->word[at][x->nword[at]++] = does; }

// A type, and what it does on other places.
static void note_all(compiler *x, u32 at, u32 does) {
  note(x, at, does);
  for (u32 k = x->other[does]; k; k = x->next[k - 1])
    note(x, x->st->others[k - 1].place, line_other_type(x->pl, k - 1));
}

// ends: STAGE_BEGINS, STAGE_ENDS, which only the line of stages with ends of their own needs to know, and STAGE_SUMS.
static void put_many(compiler *x, sim_op *op, const u32 *in, u32 nin, const u32 *out, u32 nout, u32 ends) {
  const u32 n = x->pl->nstages;
  op->kind = x->pl->wide && x->pl->wide[op->what % n] ? OP_TASK_WIDE : ends ? OP_TASK_END : OP_TASK_MANY;
  op->in = x->many.n;
  u32 *v = vec_push_n(x->a, &x->many, nin + nout + 3);
  *v++ = nin;
  for (u32 k = 0; k < nin; k++) *v++ = in[k];
  *v++ = nout;
  for (u32 k = 0; k < nout; k++) *v++ = out[k];
  *v = ends;
}

// Which pair the task makes with the one before it on its place.
static u32 pair_with(compiler *x, u32 place, u32 what) {
  const u32 before = x->last[place];
  x->last[place] = what + 1;
  u32 *at = &x->pair_of[what];
  while (*at && x->pair.v[*at - 1].before != before) at = &x->pair_after.v[*at - 1];
  if (*at) return *at - 1;
  *at = x->pair.n + 1;
  *vec_push(x->a, &x->pair) = (sim_pair){before, what}, *vec_push(x->tmp, &x->pair_after) = 0;
  return x->pair.n - 1;
}

// whole: of a stage that has backwards in two parts as well.
static void put_task(compiler *x, u32 stage, task_kind kind, u32 mb, u32 ends, bool whole) {
  const sim_pipeline *pl = x->pl;
  const bool back = kind == TASK_B || kind == TASK_I;
  const link_lists *from = &x->from[back], *to = &x->to[back];
  const size_t K = x->most;
  u32 in[VALUES_MAX], out[VALUES_MAX], nin = 0, nout = 0;
  const u32 own = x->l->carried[stage];
  u32 *carried = x->carried + x->carried_begin[stage] + (size_t)own * mb;
  for (u32 k = from->begin[stage]; kind != TASK_W && k < from->begin[stage + 1] && nin < COUNT_OF(in); k++)
    in[nin++] = x->slot[back][from->list[k] * K + mb];
  for (u32 k = 0; kind == TASK_W && k < own && nin < COUNT_OF(in); k++) in[nin++] = carried[k];
  for (u32 k = 0; k < nin; k++) // it is used here and nowhere else
    slot_free(x, pl->wide && kind != TASK_W && is_wide(pl, from->list[from->begin[stage] + k]), in[k]);
  for (u32 k = to->begin[stage]; kind != TASK_W && k < to->begin[stage + 1] && nout < COUNT_OF(out); k++)
    out[nout++] = x->slot[back][to->list[k] * K + mb] = slot_new(x, is_wide(pl, to->list[k]));
  for (u32 k = 0; kind == TASK_I && k < own && nout < COUNT_OF(out); k++)
    out[nout++] = carried[k] = slot_new(x, false);
  sim_op *op = vec_push(x->a, &x->op);
  *op = (sim_op){.kind = OP_TASK,
                 .place = pl->place[stage],
                 .what = (u16)(kind * pl->nstages + stage),
                 .in = nin ? in[0] : SLOT_NEVER,
                 .out = nout ? out[0] : SLOT_NOBODY,
                 .next = (u16)(TASK_KINDS * pl->nstages)};
  const u32 pair = pair_with(x, op->place, op->what);
  op->pair = (u16)MIN(pair, (u32)UINT16_MAX);
  for (u32 k = 0; k < nin; k++) {
    u32 *maker = &x->maker.v[in[k]];
    if (*maker) x->op.v[*maker - 1].next = op->what;
    *maker = 0;
  }
  if (nout == 1) x->maker.v[out[0]] = x->op.n;
  if (nin > 1 || nout > 1 || ends || (pl->wide && pl->wide[stage]))
    x->maker.v[op->out] = 0, put_many(x, op, in, nin, out, nout, ends);
  u32 turn = stage_turn(x->st->ends ? x->ran[op->what]++ : mb, x->micro[stage]);
  if (x->last_sum && (kind == TASK_B || kind == TASK_W) &&
      x->last_sum[stage]) { // the last one is another, whatever its microbatch
    const u32 in_order = stage_turn(x->nsums[stage]++, x->micro[stage]);
    x->odd |= whole && in_order != turn;
    turn = in_order;
  }
  note_all(x, op->place, line_task_type(pl, op->what, turn));
}

static void put_send(compiler *x, u32 what, u32 mb) {
  const line_send *s = &x->send[what];
  const u32 turn = stage_turn(mb, s->micro), slot = s->slot ? s->slot[mb] : SLOT_NOBODY;
  // Sends stay in their order: of those on one channel the first one goes first.
  const u32 made = s->slot ? x->maker.v[slot] : 0;
  if (made > x->sent) {
    x->op.v[made - 1].send = (u16)(what + 1), x->sent = made;
  } else {
    *vec_push(x->a, &x->op) = (sim_op){.kind = OP_SEND, .what = (u16)what, .in = slot};
    x->sent = x->op.n;
  }
  note_all(x, s->from, s->sender + turn);
  note(x, s->to, s->receiver + turn);
}

static void put_sends(compiler *x, const sim_order *o) {
  const bool back = o->task != TASK_F;
  const link_lists *of = &x->sends[back];
  for (u32 k = of->begin[o->stage]; o->task != TASK_W && k < of->begin[o->stage + 1]; k++) {
    const sim_link *l = &x->pl->link[of->list[k]];
    const u32 to = back ? l->from : l->to;
    if ((!back || l->back) && (!o->to || to + 1 == o->to))
      put_send(x, back * x->pl->nlinks + of->list[k], o->mb);
  }
}

static void list_sends(compiler *x) {
  const sim_pipeline *pl = x->pl;
  x->sends[0] = list_links(x, false, true, false), x->sends[1] = list_links(x, true, true, false);
  x->send = NEWN(x->tmp, line_send, 2 * pl->nlinks + 1), x->micro = NEWN(x->tmp, u32, pl->nstages + 1);
  for (u32 i = 0; i < pl->nstages; i++) x->micro[i] = sim_micro(pl, i);
  for (u32 what = 0; what < 2 * pl->nlinks; what++) {
    const bool back = what >= pl->nlinks;
    const u32 link = what % pl->nlinks;
    const sim_link *l = &pl->link[link];
    x->send[what] = (line_send){.from = pl->place[back ? l->to : l->from],
                                .to = pl->place[back ? l->from : l->to],
                                .micro = x->micro[l->from],
                                .slot = l->strm[back] ? x->slot[back] + (size_t)link * x->most : NULL,
                                .sender = line_send_type(pl, what, false, 0),
                                .receiver = line_send_type(pl, what, true, 0)};
  }
}

// Room for all tasks, and for the words of all places.
static void make_room(compiler *x, const sim_order *order, u32 n) {
  const sim_pipeline *pl = x->pl;
  u32 *tasks = ZNEWN(x->tmp, u32, pl->nstages), *sends[2], nop = 0;
  for (u32 k = 0; k < 2; k++) sends[k] = ZNEWN(x->tmp, u32, pl->nstages);
  for (u32 k = 0; k < n; k++) {
    if (!order[k].send)
      tasks[order[k].stage]++;
    else if (order[k].task != TASK_W)
      sends[order[k].task != TASK_F][order[k].stage]++;
  }
  u32 *room = ZNEWN(x->tmp, u32, pl->nplaces);
  for (u32 i = 0; i < pl->nstages; i++) nop += tasks[i], room[pl->place[i]] += tasks[i];
  for (u32 k = 0; k < pl->nlinks; k++) {
    const sim_link *l = &pl->link[k];
    const u32 times = sends[0][l->from] + (l->back ? sends[1][l->to] : 0);
    // With streams most go with the task that makes their value.
    if (!l->strm[0])
      nop += times;
    else if (l->back && x->l->carried[l->to])
      nop += sends[1][l->to];
    room[pl->place[l->from]] += times, room[pl->place[l->to]] += times;
  }
  vec_reserve(x->a, &x->op, nop + 1);
  x->nword = ZNEWN(x->tmp, u32, pl->nplaces), x->word = NEWN(x->tmp, u32 *, pl->nplaces);
  for (u32 k = 0; k < x->st->nothers; k++) {
    const u32 what = x->st->others[k].type / 3, link = (what - TASK_KINDS * pl->nstages) / 2;
    const sim_link *l = what < TASK_KINDS * pl->nstages ? NULL : &pl->link[link % pl->nlinks];
    room[x->st->others[k].place] += !l                  ? tasks[what % pl->nstages]
                                    : link < pl->nlinks ? sends[0][l->from]
                                                        : sends[1][l->to];
  }
  for (u32 q = 0; q < pl->nplaces; q++) x->word[q] = NEWN(x->tmp, u32, room[q] + 1);
}

// ---- words ----------------------------------------------------------------------------------------------
// As stretches that come several times one after the other; what does not repeat comes once. Each is kept once.
static void compress(compiler *x, u32 at) {
  enum { FAR_MOST = 64 };
  const u32 *w = x->word[at], n = x->nword[at];
  u32 kept = 0;
  VEC(sim_stretch) v = {0};
  for (u32 i = 0, loose = 0; i < n;) {
    u32 p = 1, times = 1, same = 0;
    while (p <= FAR_MOST && i + p < n && w[i + p] != w[i]) p++;
    if (p <= FAR_MOST)
      while (i + p + same < n && w[i + p + same] == w[i + same]) same++;
    if (same >= p) times += same / p;
    if (times == 1 && loose) {
      v.v[v.n - 1].len++, i++, kept++;
    } else {
      const u32 len = times == 1 ? 1 : p;
      *vec_push(x->tmp, &v) = (sim_stretch){i, len, times};
      i += len * times, kept += len;
      loose = times == 1;
    }
  }
  u32 *types = NEWN(x->a, u32, kept + 1), to = 0;
  for (u32 k = 0; k < v.n; k++) {
    memcpy(types + to, w + v.v[k].first, v.v[k].len * sizeof *w);
    v.v[k].first = to, to += v.v[k].len;
  }
  x->l->word[at] = (sim_word){types, v.n, v.n ? arena_dup(x->a, v.v, v.n * sizeof *v.v) : NULL};
}

static void list_others(compiler *x) {
  x->other = ZNEWN(x->tmp, u32, line_types(x->pl)), x->next = NEWN(x->tmp, u32, x->st->nothers + 1);
  for (u32 k = x->st->nothers; k-- > 0;) {
    u32 *first = &x->other[x->st->others[k].type];
    x->next[k] = *first, *first = k + 1;
  }
}

static void count_types(compiler *x) {
  u32 *count = ZNEWN(x->a, u32, line_types(x->pl) + x->st->nothers);
  for (u32 q = 0; q < x->pl->nplaces; q++) {
    const sim_word *w = &x->l->word[q];
    for (const sim_stretch *v = w->v, *end = v + w->n; v < end; v++)
      for (u32 i = v->first; i < v->first + v->len; i++) count[w->type[i]] += v->times;
  }
  x->l->count = count;
}

// By stage: the first microbatch of its replica.
static const u32 *first_of_replicas(const compiler *x) {
  const sim_pipeline *pl = x->pl;
  assert(pl->nreplicas); // a pipeline has one at least
  const u32 each = MAX(pl->nstages / pl->nreplicas, 1u);
  u32 *first = ZNEWN(x->tmp, u32, pl->nstages + 1);
  for (u32 i = each; i < pl->nstages; i++) first[i] = first[i - each] + pl->micro[i / each - 1];
  return first;
}

// Of every step: is it the first, the last task of its kind of its stage?
static const u8 *find_ends(const compiler *x, const sim_order *order, u32 n) {
  u8 *ends = ZNEWN(x->tmp, u8, n + 1);
  u32 *last = ZNEWN(x->tmp, u32, TASK_KINDS * x->pl->nstages + 1);
  for (u32 k = 0; k < n; k++) {
    if (order[k].send) continue;
    u32 *to = &last[order[k].task * x->pl->nstages + order[k].stage];
    if (!*to) ends[k] |= STAGE_BEGINS;
    *to = k + 1;
  }
  for (u32 k = 0; k < TASK_KINDS * x->pl->nstages; k++)
    if (last[k]) ends[last[k] - 1] |= STAGE_ENDS;
  return ends;
}

static bool makes_gradients(const sim_order *o) { // the I of a whole backward stands for all of it
  return o->whole ? o->task == TASK_I : o->task == TASK_B || o->task == TASK_W;
}

// By stage the step, + 1, that sums its gradients: the last one that makes some.
static void find_sums(compiler *x, const sim_order *order, u32 n) {
  const stage_beside *b = x->st->beside;
  const u32 ns = x->pl->nstages;
  bool *sums = ZNEWN(x->a, bool, ns + 1);
  if (!b) return;
  x->last_sum = ZNEWN(x->tmp, u32, ns + 1), x->nsums = ZNEWN(x->tmp, u32, ns + 1);
  for (u32 i = 0; i < ns; i++) sums[i] = b->sums[0][b->own[i]].a;
  x->l->sums = sums;
  for (u32 k = 0; k < n; k++)
    if (!order[k].send && sums[order[k].stage] && makes_gradients(&order[k]))
      x->last_sum[order[k].stage] = k + 1;
}

static u32 sums_at(const compiler *x, u32 stage, u32 step) {
  return x->last_sum && x->last_sum[stage] == step + 1 ? STAGE_SUMS : 0;
}

// By stage whose next one is on the same place: what of it is early, as sim_line says.
static const u8 *find_early(const compiler *x, const sim_order *order, u32 n, const u32 *first) {
  const sim_pipeline *pl = x->pl;
  u8 *early = ZNEWN(x->a, u8, pl->nstages + 1);
  bool *weights = NULL; // per (stage, microbatch): has the weight part run?
  for (u32 i = 0; i + 1 < pl->nstages && !weights; i++)
    if (pl->place[i] == pl->place[i + 1]) weights = ZNEWN(x->tmp, bool, (size_t)pl->nstages * x->most);
  for (u32 k = 0; weights && k < n; k++) {
    const sim_order *o = &order[k];
    if (o->send || o->task == TASK_F) continue;
    const u32 i = o->stage, m = o->mb - first[i];
    if (o->task == TASK_W || o->whole) weights[(size_t)i * x->most + m] = true;
    if (i + 1 < pl->nstages && pl->place[i] == pl->place[i + 1] && !weights[(size_t)(i + 1) * x->most + m])
      early[i] |= o->task == TASK_W ? STAGE_FREES_W : STAGE_FREES_I;
  }
  return early;
}

static bool frees_in_time(const sim_stages *st, const u8 *early) {
  for (u32 i = 0; i < st->pl.nstages; i++)
    if (st->frees[st->pl.like[i]] & early[i]) return false;
  return true;
}

const sim_line *sim_line_new(arena *a, const sim_stages *st, const sim_order *order, u32 n) {
  const sim_pipeline *pl = &st->pl;
  if (TASK_KINDS * pl->nstages >= UINT16_MAX || 2 * pl->nlinks >= UINT16_MAX) return NULL;
  for (u32 k = 0; st->ends && k < n; k++)
    if (order[k].whole) return NULL;
  arena *tmp = arena_new();
  compiler x = {.a = a, .tmp = tmp, .st = st, .pl = pl, .l = ZNEWN(a, sim_line, 1)};
  for (u32 k = 0; k < 2; k++) x.from[k] = list_links(&x, !k, false, k), x.to[k] = list_links(&x, k, false, k);
  list_carried(&x);
  for (u32 r = 0; r < pl->nreplicas; r++) x.most = MAX(x.most, pl->micro[r]);
  for (u32 k = 0; k < 2; k++) x.slot[k] = ZNEWN(tmp, u32, (size_t)(pl->nlinks + 1) * x.most);
  memset(vec_push_n(tmp, &x.maker, SLOT_FIRST), 0, SLOT_FIRST * sizeof(u32));
  list_sends(&x);
  list_others(&x);
  x.ran = ZNEWN(tmp, u32, TASK_KINDS * pl->nstages + 1),
  x.pair_of = ZNEWN(tmp, u32, TASK_KINDS * pl->nstages);
  x.last = ZNEWN(a, u32, pl->nplaces);
  make_room(&x, order, n);
  x.l->word = NEWN(a, sim_word, pl->nplaces);
  const u8 *ends = st->ends ? find_ends(&x, order, n) : NULL;
  const u32 *first = first_of_replicas(&x);
  x.l->early = find_early(&x, order, n, first);
  if (!frees_in_time(st, x.l->early)) {
    arena_free(tmp);
    return NULL;
  }
  find_sums(&x, order, n);
  for (u32 k = 0; k < n; k++) {
    sim_order o = order[k];
    o.mb -= first[o.stage]; // of its replica
    if (o.send)
      put_sends(&x, &o);
    else if (!o.whole)
      put_task(&x, o.stage, (task_kind)o.task, o.mb, ends ? ends[k] : sums_at(&x, o.stage, k), false);
    else if (o.task == TASK_I)
      put_task(&x, o.stage, TASK_B, o.mb, sums_at(&x, o.stage, k), true); // with the W that follows
  }
  for (u32 q = 0; q < pl->nplaces; q++) compress(&x, q);
  count_types(&x);
  x.l->many = x.many.v;
  x.l->pair = x.pair.v, x.l->npairs = x.pair.n, x.l->last = x.last;
  x.l->op = x.op.v, x.l->n = x.op.n, x.l->nslots = x.maker.n;
  x.l->at_once = x.pair.n <= UINT16_MAX;
  for (u32 k = 0; k < x.l->n; k++)
    x.l->at_once &= x.op.v[k].kind == OP_TASK && (x.op.v[k].send || x.op.v[k].out == SLOT_NOBODY);
  x.l->nreplicas = pl->nreplicas, x.l->micro = arena_dup(a, pl->micro, pl->nreplicas * sizeof *pl->micro);
  x.l->nplaces = pl->nplaces, x.l->nstages = pl->nstages, x.l->nlinks = pl->nlinks, x.l->ends = st->ends;
  x.l->nothers = st->nothers, x.l->others = arena_dup(a, st->others, st->nothers * sizeof *st->others);
  x.l->place = arena_dup(a, pl->place, pl->nstages * sizeof *pl->place);
  if (pl->wide) x.l->wide = arena_dup(a, pl->wide, pl->nstages * sizeof *pl->wide);
  x.l->link = arena_dup(a, pl->link, pl->nlinks * sizeof *pl->link);
  arena_free(tmp);
  return x.odd ? NULL : x.l;
}

bool sim_line_fits(const sim_line *l, const sim_stages *st) {
  const sim_pipeline *pl = &st->pl;
  if (l->nreplicas != pl->nreplicas || l->nplaces != pl->nplaces || l->nstages != pl->nstages ||
      l->nlinks != pl->nlinks || l->ends != (st->ends != NULL) || l->nothers != st->nothers ||
      !l->sums != !st->beside || memcmp(l->micro, pl->micro, pl->nreplicas * sizeof *pl->micro) != 0 ||
      memcmp(l->place, pl->place, pl->nstages * sizeof *pl->place) != 0 || !l->wide != !pl->wide ||
      (l->wide && memcmp(l->wide, pl->wide, pl->nstages * sizeof *pl->wide) != 0))
    return false;
  for (u32 k = 0; k < l->nothers; k++)
    if (l->others[k].type != st->others[k].type || l->others[k].place != st->others[k].place) return false;
  for (u32 i = 0; i < pl->nstages; i++)
    if (l->carried[i] != st->carried[pl->like[i]] ||
        (l->sums && l->sums[i] != !!st->beside->sums[0][st->beside->own[i]].a))
      return false;
  for (u32 k = 0; k < pl->nlinks; k++) {
    const sim_link *x = &l->link[k], *y = &pl->link[k];
    if (x->from != y->from || x->to != y->to || x->back != y->back || !x->strm[0] != !y->strm[0] ||
        !x->strm[1] != !y->strm[1])
      return false;
  }
  return frees_in_time(st, l->early);
}
