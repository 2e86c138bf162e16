// file.c - schedules from files, and whether they have the figures that somebody says they have.
#include "sched/internal.h"

const sched *sched_read(ctx *c, arena *a, const char *path, loc where) {
  file_view f;
  if (!file_map(c, path, &f)) {
    if (where.i) diag_note(c, where, "named here");
    return NULL;
  }
  const sched *s = sched_parse(c, a, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  return s;
}

// Stages of every place, of the first replica; a stage on several counts on each.
static u32 stages_on(const sched *s, u32 place) {
  u32 n = 0;
  for (u32 k = 0; k < s->nstages; k++)
    for (u32 i = 0; i < s->at[k].n; i++) n += s->at[k].v[i] == place;
  return n;
}

bool sched_ends_wide(const sched *s) {
  const u32 last = s->nstages - 1;
  if (s->nreplicas > 1 || s->nplaces < 2 || s->nstages != s->nplaces + 2) return false;
  if (s->at[0].n != s->nplaces || s->at[last].n != s->nplaces) return false;
  for (u32 k = 1; k < last; k++)
    if (s->at[k].n > 1) return false;
  for (u32 p = 0; p < s->nplaces; p++)
    if (stages_on(s, p) != 3) return false;
  return true;
}

static bool fits_chunks(ctx *c, const sched *s, const char *name, u32 chunks, loc where) {
  u64 due = (u64)s->nplaces * chunks;
  if (sched_ends_wide(s)) {
    if (chunks == 1) return true;
    diag(c, E_PLAN, where, "%s has one stage on every place between those on all places, but v=%u", name,
         chunks);
    diag_hint(c, "v=1");
    return false;
  }
  if (s->nstages != due) {
    diag(c, E_PLAN, where, "%s has %u stages, but %u places x v=%u are %llu", name, s->nstages, s->nplaces,
         chunks, (unsigned long long)due);
    if (s->nstages % s->nplaces == 0) diag_hint(c, "v=%u", s->nstages / s->nplaces);
    return false;
  }
  for (u32 p = 0; p < s->nplaces; p++) {
    u32 n = stages_on(s, p);
    if (n == chunks) continue;
    diag(c, E_PLAN, where, "%s has %u stages on place %u, but v=%u", name, n, p, chunks);
    diag_hint(c, "a schedule with as many stages on every place as on any other");
    return false;
  }
  return true;
}

const char *sched_choices(arena *a, const sched *s) {
  const u32 v = s->nplaces && s->nstages % s->nplaces == 0 ? s->nstages / s->nplaces : 1;
  const char *line = arena_printf(a, "pp=%u mb=%u", s->nplaces, sched_first(s, s->nreplicas));
  return v > 1 ? arena_printf(a, "%s v=%u", line, v) : line;
}

bool sched_fits(ctx *c, const sched *s, const char *name, const sched_shape *shape, loc where) {
  if (shape->group) {
    diag(c, E_PLAN, where, "%s has its own order, without groups; got group=%u", name, shape->group);
    diag_hint(c, "leave out group");
    return false;
  }
  const struct {
    u32 want, has;
    const char *what, *choice;
  } row[] = {{shape->places, s->nplaces, "places", "pp"},
             {shape->micro, sched_first(s, s->nreplicas), "microbatches", "mb"}};
  for (u32 i = 0; i < COUNT_OF(row); i++) {
    if (!row[i].want || row[i].want == row[i].has) continue;
    diag(c, E_PLAN, where, "%s has %u %s, but %s=%u", name, row[i].has, row[i].what, row[i].choice,
         row[i].want);
    arena *a = arena_new();
    diag_hint(c, "%s", sched_choices(a, s));
    arena_free(a);
    return false;
  }
  return !shape->chunks || fits_chunks(c, s, name, shape->chunks, where);
}
