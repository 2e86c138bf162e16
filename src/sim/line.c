// line.c - a schedule's line as operations on few slots: compiled once for all stages that it may run. Not
// what they cost (pipe.c).
//
// Idea: a value under way has a slot from the task that makes it to the task that takes it; slots are used
// again, so that they stay in the cache. What a place does to its memory does not depend on time: it is a
// word of types (task or end of a send, and whether of the first or last microbatch), in which stretches
// repeat.
#include "sim/stages.h"

typedef struct {
  arena *a;
  const sim_stages *st;
  const sim_pipeline *pl;
  sim_line *l;
  u32 *in_begin, *in_link, *out_begin, *out_link; // per stage
  u32 *slot[2];                                   // per (link, microbatch): of the value there, back
  u32 *carried_begin, *carried;                   // per (stage, microbatch): the first of its slots; those
  VEC(u32) spare;
  VEC(sim_op) op;
  VEC(u32) many;
  VEC(u32) * word; // per place
} compiler;

static void list_links(compiler *x) {
  const sim_pipeline *pl = x->pl;
  x->in_begin = ZNEWN(x->a, u32, pl->nstages + 2), x->out_begin = ZNEWN(x->a, u32, pl->nstages + 2);
  x->in_link = NEWN(x->a, u32, pl->nlinks + 1), x->out_link = NEWN(x->a, u32, pl->nlinks + 1);
  for (u32 k = 0; k < pl->nlinks; k++)
    x->in_begin[pl->link[k].to + 2]++, x->out_begin[pl->link[k].from + 2]++;
  for (u32 i = 2; i < pl->nstages + 2; i++)
    x->in_begin[i] += x->in_begin[i - 1], x->out_begin[i] += x->out_begin[i - 1];
  for (u32 k = 0; k < pl->nlinks; k++) {
    x->in_link[x->in_begin[pl->link[k].to + 1]++] = k;
    x->out_link[x->out_begin[pl->link[k].from + 1]++] = k;
  }
}

static void list_carried(compiler *x) {
  const sim_pipeline *pl = x->pl;
  u32 n = 0, *own = NEWN(x->a, u32, pl->nstages);
  x->carried_begin = NEWN(x->a, u32, pl->nstages);
  for (u32 i = 0; i < pl->nstages; i++) {
    x->carried_begin[i] = n;
    n += (own[i] = x->st->carried[pl->like[i]]) * pl->nmicro;
  }
  x->carried = NEWN(x->a, u32, n + 1);
  x->l->carried = own;
}

static u32 slot_new(compiler *x) { return x->spare.n ? x->spare.v[--x->spare.n] : x->l->nslots++; }

static bool has_slot(const sim_pipeline *pl, u32 link, bool back) {
  const sim_link *l = &pl->link[link];
  return l->strm[back] && (!back || l->back);
}

static void note(compiler *x, u32 at, u32 does) { *vec_push(x->a, &x->word[at]) = does; }

static void put_task(compiler *x, u32 stage, task_kind kind, u32 mb) {
  const sim_pipeline *pl = x->pl;
  const bool back = kind == TASK_B || kind == TASK_I;
  const u32 *from = back ? x->out_link + x->out_begin[stage] : x->in_link + x->in_begin[stage];
  const u32 *to = back ? x->in_link + x->in_begin[stage] : x->out_link + x->out_begin[stage];
  u32 nfrom =
      back ? x->out_begin[stage + 1] - x->out_begin[stage] : x->in_begin[stage + 1] - x->in_begin[stage];
  u32 nto =
      back ? x->in_begin[stage + 1] - x->in_begin[stage] : x->out_begin[stage + 1] - x->out_begin[stage];
  u32 in[VALUES_MAX], out[VALUES_MAX], nin = 0, nout = 0;
  const u32 own = x->st->carried[pl->like[stage]];
  u32 *carried = x->carried + x->carried_begin[stage] + (size_t)own * mb;
  if (kind == TASK_W) nfrom = nto = 0;
  for (u32 k = 0; k < nfrom && nin < COUNT_OF(in); k++)
    if (has_slot(pl, from[k], back)) in[nin++] = x->slot[back][(size_t)from[k] * pl->nmicro + mb];
  for (u32 k = 0; kind == TASK_W && k < own && nin < COUNT_OF(in); k++) in[nin++] = carried[k];
  for (u32 k = 0; k < nin; k++) *vec_push(x->a, &x->spare) = in[k]; // it is used here and nowhere else
  for (u32 k = 0; k < nto && nout < COUNT_OF(out); k++)
    if (has_slot(pl, to[k], back)) out[nout++] = x->slot[back][(size_t)to[k] * pl->nmicro + mb] = slot_new(x);
  for (u32 k = 0; kind == TASK_I && k < own && nout < COUNT_OF(out); k++)
    out[nout++] = carried[k] = slot_new(x);
  sim_op op = {.kind = OP_TASK, .place = pl->place[stage], .what = kind * pl->nstages + stage};
  if (nin <= 1 && nout <= 1) {
    op.in = nin ? in[0] : SLOT_NEVER, op.out = nout ? out[0] : SLOT_NOBODY;
  } else {
    op.kind = OP_TASK_MANY, op.in = x->many.n;
    *vec_push(x->a, &x->many) = nin;
    for (u32 k = 0; k < nin; k++) *vec_push(x->a, &x->many) = in[k];
    *vec_push(x->a, &x->many) = nout;
    for (u32 k = 0; k < nout; k++) *vec_push(x->a, &x->many) = out[k];
  }
  *vec_push(x->a, &x->op) = op;
  note(x, op.place, line_task_type(pl, op.what, stage_turn(mb, pl->nmicro)));
}

static void put_send(compiler *x, u32 link, bool back, u32 mb) {
  const sim_pipeline *pl = x->pl;
  const sim_link *l = &pl->link[link];
  const u32 from = pl->place[back ? l->to : l->from], to = pl->place[back ? l->from : l->to];
  const u32 what = back * pl->nlinks + link, turn = stage_turn(mb, pl->nmicro);
  const u32 slot = l->strm[back] ? x->slot[back][(size_t)link * pl->nmicro + mb] : SLOT_NOBODY;
  *vec_push(x->a, &x->op) = (sim_op){OP_SEND, (u16)from, what, slot, to};
  note(x, from, line_send_type(pl, what, false, turn));
  note(x, to, line_send_type(pl, what, true, turn));
}

static void put_sends(compiler *x, u32 stage, task_kind kind, u32 mb) {
  if (kind == TASK_F)
    for (u32 k = x->out_begin[stage]; k < x->out_begin[stage + 1]; k++)
      put_send(x, x->out_link[k], false, mb);
  else if (kind != TASK_W)
    for (u32 k = x->in_begin[stage]; k < x->in_begin[stage + 1]; k++)
      if (x->pl->link[x->in_link[k]].back) put_send(x, x->in_link[k], true, mb);
}

// ---- words ----------------------------------------------------------------------------------------------
// As stretches that come several times one after the other; what does not repeat comes once.
static void compress(compiler *x, u32 at) {
  enum { FAR_MOST = 64 };
  const u32 *w = x->word[at].v, n = x->word[at].n;
  VEC(sim_stretch) v = {0};
  for (u32 i = 0, loose = 0; i < n;) {
    u32 p = 1, times = 1;
    while (p <= FAR_MOST && i + p < n && w[i + p] != w[i]) p++;
    if (p <= FAR_MOST && i + 2 * p <= n && !memcmp(w + i, w + i + p, p * sizeof *w))
      for (times = 2; i + (times + 1) * p <= n && !memcmp(w + i, w + i + times * p, p * sizeof *w);) times++;
    if (times == 1 && loose) {
      v.v[v.n - 1].len++, i++;
    } else {
      *vec_push(x->a, &v) = (sim_stretch){i, times == 1 ? 1 : p, times};
      i += times == 1 ? 1 : times * p;
      loose = times == 1;
    }
  }
  x->l->word[at] = (sim_word){w, v.n, v.v};
}

static void count_types(compiler *x) {
  u32 *count = ZNEWN(x->a, u32, line_types(x->pl));
  for (u32 q = 0; q < x->pl->nplaces; q++)
    for (u32 k = 0; k < x->word[q].n; k++) count[x->word[q].v[k]]++;
  x->l->count = count;
}

const sim_line *sim_line_new(arena *a, const sim_stages *st, const sim_order *order, u32 n) {
  const sim_pipeline *pl = &st->pl;
  compiler x = {.a = a, .st = st, .pl = pl, .l = ZNEWN(a, sim_line, 1)};
  list_links(&x);
  list_carried(&x);
  x.l->nslots = SLOT_FIRST;
  for (u32 k = 0; k < 2; k++) x.slot[k] = ZNEWN(a, u32, (size_t)(pl->nlinks + 1) * pl->nmicro);
  x.word = arena_alloc(a, sizeof *x.word * pl->nplaces);
  memset(x.word, 0, sizeof *x.word * pl->nplaces);
  x.l->word = NEWN(a, sim_word, pl->nplaces);
  vec_reserve(a, &x.op, 2 * n);
  for (u32 k = 0; k < n; k++) {
    const sim_order *o = &order[k];
    if (o->send)
      put_sends(&x, o->stage, (task_kind)o->task, o->mb);
    else
      put_task(&x, o->stage, (task_kind)o->task, o->mb);
  }
  for (u32 q = 0; q < pl->nplaces; q++) compress(&x, q);
  count_types(&x);
  x.l->n = x.op.n, x.l->op = x.op.v, x.l->many = x.many.v, x.l->nmany = x.many.n;
  x.l->nmicro = pl->nmicro, x.l->nplaces = pl->nplaces, x.l->nstages = pl->nstages, x.l->nlinks = pl->nlinks;
  x.l->place = arena_dup(a, pl->place, pl->nstages * sizeof *pl->place);
  x.l->link = arena_dup(a, pl->link, pl->nlinks * sizeof *pl->link);
  return x.l;
}

bool sim_line_fits(const sim_line *l, const sim_stages *st) {
  const sim_pipeline *pl = &st->pl;
  if (l->nmicro != pl->nmicro || l->nplaces != pl->nplaces || l->nstages != pl->nstages ||
      l->nlinks != pl->nlinks || memcmp(l->place, pl->place, pl->nstages * sizeof *pl->place) != 0)
    return false;
  for (u32 i = 0; i < pl->nstages; i++)
    if (l->carried[i] != st->carried[pl->like[i]]) return false;
  for (u32 k = 0; k < pl->nlinks; k++) {
    const sim_link *x = &l->link[k], *y = &pl->link[k];
    if (x->from != y->from || x->to != y->to || x->back != y->back || !x->strm[0] != !y->strm[0] ||
        !x->strm[1] != !y->strm[1])
      return false;
  }
  return true;
}
