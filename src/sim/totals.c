// totals.c - what a pass over a line comes to besides times: bytes, and how long ranks are busy. Not the pass (pipe.c).
//
// Idea: neither depends on times. Bytes are a sum and a maximum along the word of every place, where what repeats is
// added up at once; busy times are counts times constants.
#include "sim/pipe.h"

// What each type does to the memory of a class; NULL: there is no such task.
static const stage_bytes **bytes_of_types(const pipe *p, arena *tmp) {
  const sim_pipeline *pl = &p->st->pl;
  const stage_bytes **v = ZNEWN(tmp, const stage_bytes *, line_types(pl) + p->st->nothers);
  for (u32 k = 0; k < p->st->nothers; k++) v[line_other_type(pl, k)] = p->st->others[k].bytes;
  for (u32 turn = 0; turn < 3; turn++) {
    for (u32 k = 0; k < TASK_KINDS; k++)
      for (u32 i = 0; i < pl->nstages; i++)
        v[line_task_type(pl, k * pl->nstages + i, turn)] = p->st->task[k][pl->like[i]].bytes[turn];
    for (u32 back = 0; back < 2; back++)
      for (u32 k = 0; k < pl->nlinks; k++) {
        const sim_link *l = &pl->link[k];
        const u32 what = back * pl->nlinks + k;
        v[line_send_type(pl, what, false, turn)] = p->send[what].x->sender[turn];
        v[line_send_type(pl, what, true, turn)] =
            p->st->send[back][back ? l->like_from : l->like_to].receiver[turn];
      }
  }
  return v;
}

static void add_bytes(pipe *p, u32 at, const stage_bytes *b) {
  for (u32 c = 0; c < p->C; c++) {
    const u32 k = at * p->C + c;
    p->peak[k] = MAX(p->peak[k], p->cur[k] + b[c].peak);
    p->cur[k] += b[c].net;
  }
}

// Of the N classes from c on.
static inline __attribute__((always_inline)) void add_word(pipe *p, u32 at, u32 c,
                                                           const stage_bytes *const *of, const u32 N) {
  const sim_word *w = &p->l->word[at];
  i64 *cur = p->cur + at * p->C + c, *peak = p->peak + at * p->C + c;
  i64 cur0 = cur[0], peak0 = peak[0], cur1 = N > 1 ? cur[1] : 0, peak1 = N > 1 ? peak[1] : 0;
  for (const sim_stretch *x = w->v, *end = x + w->n; x < end; x++) {
    i64 net0 = 0, most0 = 0, net1 = 0, most1 = 0;
    for (u32 i = x->first; i < x->first + x->len; i++) {
      const stage_bytes *b = of[w->type[i]] + c;
      most0 = MAX(most0, net0 + b[0].peak), net0 += b[0].net;
      if (N > 1) most1 = MAX(most1, net1 + b[1].peak), net1 += b[1].net;
    }
    peak0 = MAX(peak0, cur0 + MAX(net0, 0) * (x->times - 1) + most0), cur0 += net0 * x->times;
    if (N > 1) peak1 = MAX(peak1, cur1 + MAX(net1, 0) * (x->times - 1) + most1), cur1 += net1 * x->times;
  }
  cur[0] = cur0, peak[0] = peak0;
  if (N > 1) cur[1] = cur1, peak[1] = peak1;
}

static void add_words(pipe *p, const stage_bytes *const *of) {
  for (u32 q = 0; q < p->st->pl.nplaces; q++) {
    u32 c = 0;
    for (; c + 2 <= p->C; c += 2) add_word(p, q, c, of, 2);
    if (c < p->C) add_word(p, q, c, of, 1);
  }
}

static void add_busy(pipe *p, u32 at, const stage_task *t, i64 times) {
  for (u32 c = 0; c < p->C; c++)
    p->busy[at * p->C + c] += t->busy[c] * times, p->comm[at * p->C + c] += t->comm[c] * times;
}

// Sends on the compute stream; the others keep it free. Those that are not simple were added as they ran.
static void add_blocking(pipe *p) {
  const sim_pipeline *pl = &p->st->pl;
  for (u32 w = 0; w < 2 * pl->nlinks; w++) {
    const send_map *s = &p->send[w];
    const sim_link *l = &pl->link[w % pl->nlinks];
    if (s->strm || !s->simple) continue;
    const u32 *n = &p->l->count[line_send_type(pl, w, false, 0)], times = n[0] + n[1] + n[2];
    for (u32 side = 0; side < 2; side++)
      for (u32 c = 0; c < p->C; c++) {
        const u32 at = pl->place[side ? l->to : l->from] * p->C + c;
        p->busy[at] += s->dur[c] * times, p->comm[at] += s->dur[c] * times;
      }
  }
}

static void add_tasks(pipe *p) {
  const sim_pipeline *pl = &p->st->pl;
  for (u32 k = 0; k < TASK_KINDS; k++)
    for (u32 i = 0; i < pl->nstages; i++) {
      const u32 *n = &p->l->count[line_task_type(pl, k * pl->nstages + i, 0)], times = n[0] + n[1] + n[2];
      if (pl->wide && pl->wide[i])
        wide_add_busy(p->st, k * pl->nstages + i, times, p->busy, p->comm);
      else if (times)
        add_busy(p, pl->place[i], &p->st->task[k][pl->like[i]], times);
    }
}

static void add_before(pipe *p) {
  const sim_stages *st = p->st;
  const u32 C = p->C;
  for (u32 q = 0; q < st->pl.nplaces; q++)
    for (u32 c = 0; c < C; c++) p->cur[q * C + c] = p->peak[q * C + c] = st->start[st->rep_no[q] * C + c];
  for (u32 q = 0; st->ends && q < st->pl.nplaces; q++) {
    add_bytes(p, q, st->ends->begin[q].bytes[0]);
    add_busy(p, q, &st->ends->begin[q], 1);
  }
  for (u32 i = 0; !st->ends && i < st->pl.nstages; i++) {
    const stage_task *t = &st->before[st->pl.like[i]];
    add_bytes(p, st->pl.place[i], t->bytes[0]);
    add_busy(p, st->pl.place[i], t, 1);
  }
}

static void add_after(pipe *p) {
  const sim_stages *st = p->st;
  for (u32 q = 0; q < st->pl.nplaces; q++) {
    const u32 r = st->rep_no[q];
    for (u32 k = 0; k < st->nafter; k++) {
      const stage_after *part = &st->after_bytes[k * st->nreps + r];
      add_bytes(p, q, part->bytes);
      for (u32 c = 0; c < p->C; c++) p->cur[q * p->C + c] -= part->freed[c] * (MAX(st->micro[q], 3u) - 3);
    }
    add_busy(p, q, &st->tail[r], 1);
  }
}

// Of the sends on the compute stream, which every rank of either end is in as long as they last.
static void add_sends_of(i64 *busy, const sim_stages *st, u32 link, bool back) {
  const sim_pipeline *pl = &st->pl;
  const sim_link *l = &pl->link[link];
  const stage_send *x = &st->send[back][back ? l->like_to : l->like_from];
  if (l->strm[back] || (back && !l->back)) return;
  if (pl->wide && (pl->wide[l->from] || pl->wide[l->to])) {
    const i64 *own = st->wide_send[back][link].busy;
    for (u32 k = 0; k < pl->nplaces * st->nclass; k++) busy[k] += own[k];
    return;
  }
  for (u32 k = 0; k < x->n; k++)
    for (u32 c = 0; c < st->nclass; c++) {
      if (x->v[k].from >> c & 1) busy[pl->place[back ? l->to : l->from] * st->nclass + c] += x->v[k].dur;
      if (x->v[k].to >> c & 1) busy[pl->place[back ? l->from : l->to] * st->nclass + c] += x->v[k].dur;
    }
}

u32 sim_stages_classes(const sim_stages *st) { return st->nclass; }

i64 sim_stages_busiest(const sim_stages *st, arena *tmp, bool after) {
  const sim_pipeline *pl = &st->pl;
  const u32 C = st->nclass;
  arena_mark_t mark = arena_mark(tmp);
  i64 *busy = ZNEWN(tmp, i64, pl->nplaces * C), most = 0; // of one microbatch
  for (u32 k = 0; k < TASK_KINDS; k++)
    for (u32 i = 0; i < pl->nstages; i++) {
      const stage_task *t = &st->task[k][pl->like[i]];
      if (k == TASK_B && st->task[TASK_I][pl->like[i]].a) continue; // that is I and W
      if (pl->wide && pl->wide[i]) wide_add_busy(st, k * pl->nstages + i, 1, busy, NULL);
      for (u32 c = 0; t->a && c < C; c++) busy[pl->place[i] * C + c] += t->busy[c];
    }
  for (u32 k = 0; k < 2 * pl->nlinks; k++) add_sends_of(busy, st, k / 2, k & 1);
  for (u32 k = 0; k < pl->nplaces * C; k++) busy[k] *= st->micro[k / C];
  for (u32 i = 0; !st->ends && i < pl->nstages; i++)
    for (u32 c = 0; c < C; c++) busy[pl->place[i] * C + c] += st->before[pl->like[i]].busy[c];
  for (u32 k = 0; st->ends && k < pl->nplaces * C; k++) busy[k] += st->ends->begin[k / C].busy[k % C];
  for (u32 q = 0; q < pl->nplaces; q++)
    for (u32 c = 0; c < C; c++)
      most = MAX(most, busy[q * C + c] + (after ? st->tail[st->rep_no[q]].busy[c] : 0));
  arena_release(tmp, mark);
  return most;
}

// ---- of a pass ------------------------------------------------------------------------------------------
static void sum_up(const pipe *p, sim_pipe_result *r) {
  const sim_stages *st = p->st;
  const u32 n = st->pl.nplaces * p->C;
  u64 ranks = 0;
  *r = (sim_pipe_result){.over_bytes = INT64_MIN};
  for (u32 k = 0; k < n; k++) {
    r->makespan_ps = MAX(r->makespan_ps, p->clock[k]);
    r->peak_bytes = MAX(r->peak_bytes, p->peak[k]);
    r->over_bytes = MAX(r->over_bytes, p->peak[k] - st->usable[st->rep_no[k / p->C] * p->C + k % p->C]);
  }
  for (u32 k = 0; k < n * st->nstreams; k++) r->makespan_ps = MAX(r->makespan_ps, p->channel[k]);
  const i64 span = r->makespan_ps;
  sim_sum busy = 0, comm = 0, idle = 0;
  for (u32 k = 0; k < n; k++) {
    const u32 w = st->weight[k];
    busy += (sim_sum)w * (p->busy[k] - p->comm[k]);
    comm += (sim_sum)w * p->comm[k];
    idle += (sim_sum)w * (span - p->busy[k]);
    ranks += w;
  }
  if (ranks < st->nranks) idle += (sim_sum)(st->nranks - ranks) * span, ranks = st->nranks; // on no place
  r->utilisation = sim_mean_share(busy, span, ranks);
  r->comm = sim_mean_share(comm, span, ranks);
  r->bubble = sim_mean_share(idle, span, ranks);
}

static bool all_on_streams(const sim_pipeline *pl) {
  for (u32 k = 0; k < pl->nlinks; k++)
    if (!pl->link[k].strm[0] || (pl->link[k].back && !pl->link[k].strm[1])) return false;
  return true;
}

void sim_totals_forget(sim_totals *x, const sim_line *l) {
  if (x->line == l) x->line = NULL;
}

static void keep_totals(const pipe *p, sim_totals *x) {
  const size_t bytes = p->st->pl.nplaces * p->C * sizeof *x->peak;
  memcpy(x->peak, p->peak, bytes), memcpy(x->busy, p->busy, bytes), memcpy(x->comm, p->comm, bytes);
  x->line = p->l;
}

void totals_add(pipe *p, arena *tmp, sim_totals *totals, sim_pipe_result *r) {
  const bool shared = totals && all_on_streams(&p->st->pl);
  if (shared && totals->line == p->l) {
    p->peak = totals->peak, p->busy = totals->busy, p->comm = totals->comm;
  } else {
    const stage_bytes *const *bytes = bytes_of_types(p, tmp);
    add_before(p);
    add_words(p, bytes);
    add_tasks(p);
    add_blocking(p);
    add_after(p);
    if (shared) keep_totals(p, totals);
  }
  sum_up(p, r);
}
