// picture.c - a schedule drawn in characters: time to the right, a line for each place.
//
// Idea: a column for each unit of time. Microbatches are digits in forwards and letters in backwards, counted
// from the beginning again after ten; where places have several stages, or a forward several passes, a second character says which.
#include "sched/internal.h"

enum { MICROBATCHES = 10 }; // with signs of their own

// By the stage's number among those of its place.
static char mark(u32 ordinal) {
  static const char marks[] = " '\"*+~=:^%";
  return marks[ordinal % (sizeof marks - 1)];
}

// Of every (replica, stage): how many are before it on its places, where most are. Sets the most.
static u32 *ordinals(arena *a, const sched *s, u32 *most) {
  u32 *ordinal = NEWN(a, u32, (size_t)s->nreplicas * s->nstages);
  *most = 0;
  u32 *count = ZNEWN(a, u32, s->nplaces);
  for (u32 k = 0; k < s->nreplicas * s->nstages; k++) {
    ordinal[k] = 0;
    for (u32 i = 0; i < s->at[k].n; i++) ordinal[k] = MAX(ordinal[k], count[s->at[k].v[i]]);
    for (u32 i = 0; i < s->at[k].n; i++) count[s->at[k].v[i]] = ordinal[k] + 1;
    *most = MAX(*most, ordinal[k]);
  }
  return ordinal;
}

static char sign(const sched_task *t, u32 unit) {
  u32 m = t->mb % MICROBATCHES;
  if (t->kind == TASK_F) return (char)('0' + m);
  return (char)((t->kind == TASK_W || unit ? 'A' : 'a') + m);
}

void sched_picture(const sched *s, const sched_times *t, strbuf *out) {
  arena *a = arena_new();
  u32 most, units = (u32)MIN(t->makespan, PICTURE_MOST);
  const u32 *ordinal = ordinals(a, s, &most), passes = npasses_of(s), wide = most || passes > 1 ? 2 : 1;
  char *row = NEWN(a, char, (size_t)units *wide + 1);
  char last[16];
  int digits = snprintf(last, sizeof last, "%u", s->nplaces - 1);
  for (u32 p = 0; p < s->nplaces; p++) {
    for (u32 k = 0; k < units * wide; k++) row[k] = k % wide ? ' ' : '.';
    for (u32 i = 0; i < s->seq[p].n; i++) {
      const sched_task *task = &s->seq[p].v[i];
      for (u64 k = t->at[p][i].begin; k < t->at[p][i].end && k < units; k++) {
        row[k * wide] = sign(task, (u32)(k - t->at[p][i].begin));
        if (wide > 1)
          row[k * wide + 1] = mark(ordinal[task->replica * s->nstages + task->stage] * passes + task->pass);
      }
    }
    u32 n = units * wide;
    while (n && row[n - 1] == ' ') n--;
    sb_fmt(out, "place %-*u  %.*s%s\n", digits, p, (int)n, row, t->makespan > units ? " ..." : "");
  }
  arena_free(a);
}
