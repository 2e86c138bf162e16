// transfer.c - does what a communication has put together: sends, receives and combines, one after the other. Takes no memory:
// it may run in a thread of its own.
#include "eval/internal.h"
#include "eval/ticks.h"
#include <errno.h>

static bool go(const eval_link *l, eval_where *w, const transfer_step *s) {
  _Atomic u32 *at = s->sends ? &w->sends : &w->waits;
  *at = s->peer + 1;
  w->count++;
  errno = 0;
  const bool ok =
      s->sends ? l->send(l->arg, s->peer, s->data, s->bytes) : l->receive(l->arg, s->peer, s->data, s->bytes);
  *at = 0;
  w->count++;
  return ok;
}

static void add_up(const summing *s, u32 portion) {
  for (u32 k = 0; k < s->n; k++) {
    const i64 at = s->piece[k] ? portion_offset(s->part[k], portion, false) : -1;
    if (s->piece[k] && at < 0) portion_pick(s->part[k], portion, s->piece[k], s->slot[k]);
    s->at[k] = at < 0 ? s->slot[k] : s->piece[k] + at;
  }
  eval_sum(s->to + portion_offset(*s->part, portion, true), s->at, s->n, s->t,
           portion_bytes(*s->part, portion) / (i64)dtype_bytes(s->t), s->red);
}

static bool do_step(const eval_link *l, eval_where *w, const transfer *t, transfer_step *s, u32 *gone) {
  if (t->timed) s->start = ticks_now();
  if (s->sends && s->part) portion_pick(s->part, s->portion, s->piece, s->data);
  if (!go(l, w, s)) return *gone = s->peer, false;
  if (t->timed && !s->sends) s->waited = MAX(ticks_now() - s->start, 1);
  if (s->into) eval_fold_stored(s->into, s->data, t->t, s->bytes / (i64)dtype_bytes(t->t), t->red);
  if (!s->sends && s->part) portion_put(s->part, s->portion, s->piece, s->data);
  if (s->sum) add_up(s->sum, s->portion);
  if (t->timed) s->dur = ticks_now() - s->start;
  return true;
}

static u32 behind_sends(const transfer *t) {
  u32 n = t->step.n;
  while (n > t->at && !t->step.v[n - 1].sends) n--;
  return n;
}

bool transfer_go(const eval_link *l, eval_where *w, transfer *t, transfer_idle *idle, void *arg, u32 *gone) {
  for (const u32 sent = behind_sends(t); t->at < t->step.n; t->at++) {
    if (idle && t->at >= sent && !idle(arg, gone)) return false;
    if (!do_step(l, w, t, &t->step.v[t->at], gone)) return false;
  }
  return true;
}

bool transfer_early(const eval_link *l, eval_where *w, transfer *t, i64 most, i64 *bytes, u32 *gone) {
  for (; t->at < t->step.n && *bytes < most; t->at++) {
    transfer_step *s = &t->step.v[t->at];
    if (!s->sends || s->part) break;
    s->early = true;
    if (!do_step(l, w, t, s, gone)) return false;
    *bytes += s->bytes;
  }
  return true;
}

bool transfer_sends(const transfer *t) { return behind_sends(t) > t->at; }

bool transfer_run(interp *m, transfer *t) {
  u32 gone;
  return eval_is_dry(m) || transfer_go(m->link, &m->where, t, NULL, NULL, &gone) ||
         eval_gone(m, gone, t->where);
}
