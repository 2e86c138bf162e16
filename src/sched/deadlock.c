// deadlock.c - words for a merge that came to a halt: at which task every place waits, and for what; first
// the places that wait for each other in a circle.
#include "sched/internal.h"

enum { SHOWN = 16 };

static bool is_left(const merge *m, u32 place) {
  return m->cur[place].at < m->s->seq[place].n || (m->bounded && merge_want(m, place).cell);
}

// Where a task stands in the sequence of a place; NO_TASK if nowhere. A backward is found whole or in parts.
static u32 index_of(const merge *m, u32 place, const sched_task *t) {
  const sched_seq *seq = &m->s->seq[place];
  for (u32 i = 0; i < seq->n; i++) {
    const sched_task *x = &seq->v[i];
    if (x->stage == t->stage && x->mb == t->mb && x->replica == t->replica && x->pass == t->pass &&
        direction_of(x->kind) == direction_of(t->kind))
      return i;
  }
  return NO_TASK;
}

// The place that does not do what this one waits for.
static u32 culprit(const merge *m, u32 place) {
  want w = merge_want(m, place);
  const sched_places *on = places_of(m->s, &w.task);
  for (u32 k = 0; k < on->n; k++) {
    const cursor *cur = &m->cur[on->v[k]];
    u32 i = index_of(m, on->v[k], &w.task);
    if (cur->at < i || (cur->at == i && cur->phase != GATHERING)) return on->v[k];
  }
  return on->v[0];
}

// "place 0 waits at 0B0 (task 2 of 8) for 1B0, task 3 of place 1"
static void say(ctx *c, const merge *m, u32 place) {
  const cursor *cur = &m->cur[place];
  const sched_seq *seq = &m->s->seq[place];
  want w = merge_want(m, place);
  u32 by = culprit(m, place), i = index_of(m, by, &w.task), sent = cur->phase == SENDING;
  const sched_task *other = i == NO_TASK ? &w.task : &m->s->seq[by].v[i];
  task_name self = name_of(&seq->v[cur->at - sent]);
  u32 number = cur->at - sent + 1;
  char begin[160], end[96], pair[112];
  const char *at = self.s;
  if (!sent && seq->v[cur->at].paired) {
    snprintf(pair, sizeof pair, "(%s;%s)", self.s, name_of(&seq->v[cur->at + 1]).s);
    at = pair;
  }
  snprintf(begin, sizeof begin, "place %u waits %s %s (task %u of %u)", place, sent ? "after" : "at", at,
           number, seq->n);
  snprintf(end, sizeof end, "%s, task %u of place %u", name_of(other).s, i + 1, by);
  if (cur->phase == GATHERING)
    diag_note(c, (loc){0}, "%s for place %u, which runs it too", begin, by);
  else if (w.room && sent)
    diag_note(c, (loc){0}, "%s for room to send, until a message is used by %s", begin, end);
  else if (w.room)
    diag_note(c, (loc){0}, "%s for a message that has no room, until one is used by %s", begin, end);
  else if (sent)
    diag_note(c, (loc){0}, "%s to be received by %s", begin, end);
  else
    diag_note(c, (loc){0}, "%s for %s", begin, end);
}

// Where the text has the task at which a place waits.
static loc waits_at(ctx *c, const merge *m, u32 place) {
  const sched_source *from = m->s->source;
  const cursor *cur = &m->cur[place];
  return loc_text(c, from->file, from->line[place], from->column[place][cur->at - (cur->phase == SENDING)],
                  from->text[place]);
}

// The fewest microbatches in a buffer with which a schedule runs that runs with buffers that are large enough.
static u32 enough(const sched *s) {
  u32 low = 1, high = MAX(1, s->nmicro * npasses_of(s));
  while (low < high) {
    u32 mid = low + (high - low) / 2;
    if (sched_runs(s, &(sched_buffers){.depth = mid}))
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

void deadlock_report(ctx *c, const merge *m, loc where) {
  u32 n = m->s->nplaces, shown = 0, p = 0;
  bool *seen = ZNEWN(m->a, bool, n), *said = ZNEWN(m->a, bool, n);
  while (!is_left(m, p)) p++;
  for (; !seen[p]; p = culprit(m, p)) seen[p] = true;
  diag(c, E_DEADLOCK, m->s->source ? waits_at(c, m, p) : where, "deadlock: no place can run its next task");
  for (; !said[p] && shown < SHOWN; p = culprit(m, p), shown++) say(c, m, p), said[p] = true;
  for (p = 0; p < n; p++) {
    if (said[p] || !is_left(m, p)) continue;
    if (shown++ < SHOWN) say(c, m, p);
  }
  if (shown > SHOWN) diag_note(c, (loc){0}, "%u more places wait", shown - SHOWN);
  if (m->s->source && where.i) diag_note(c, where, "named here");
  const bool runs = m->bounded && sched_runs(m->s, NULL);
  if (runs && m->buffers.rendezvous)
    diag_hint(c, "buffers=unbounded lets senders go on; room for %u messages in every buffer is enough",
              enough(m->s));
  else if (runs)
    diag_hint(c, "it runs with room for %u messages in every buffer", enough(m->s));
  else
    diag_hint(c, "put each task after the tasks that it waits for; schedule=1f1b and schedule=gpipe run "
                 "with any pp and mb");
}
