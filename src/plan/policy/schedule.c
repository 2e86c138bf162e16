// schedule.c - the order in which every place runs its tasks: a row of sched/schedules.def, or a file.
#include "plan/plan.h"

const char *policy_schedule_name(u32 i) {
  const sched_row *r = sched_row_of(i);
  return r ? r->name : NULL;
}

bool policy_splits_backward(const strategy *s, bool file) {
  return choice_file(s->schedule) ? file : sched_row_of(s->schedule.n)->split != SPLIT_NO;
}

bool policy_schedule_named(const char *name, u32 *word) {
  const sched_row *r = sched_row_find(name);
  for (*word = 0; r && sched_row_of(*word) != r;) ++*word;
  return r;
}

// What a file may say that plans cannot do, or that this one is not for.
static bool can_plan(ctx *c, const sched *s, const char *name, bool train, loc at) {
  if (s->npasses > 1) {
    diag(c, E_PLAN, at, "%s has several passes of the forward (p1), which plans do not support", name);
    diag_hint(c, "use a schedule with one pass, or schedule=3f1b");
    return false;
  }
  const bool wide = sched_ends_wide(s);
  for (u32 k = 0; k < s->nreplicas * s->nstages && !wide; k++) {
    if (s->at[k].n < 2) continue;
    diag(
        c, E_PLAN, at,
        "%s: stage %u of %u lies on %u of %u places; plans have a stage on one, or the first and the last on "
        "all and one more on each",
        name, k % s->nstages, s->nstages, s->at[k].n, s->nplaces);
    diag_hint(c, "%u stages, of which 0 and %u lie on all places and the others on one each", s->nplaces + 2,
              s->nplaces + 1);
    return false;
  }
  if (s->backward == train) return true;
  if (train)
    diag(c, E_PLAN, at, "%s runs no backward, but this is training", name);
  else
    diag(c, E_PLAN, at, "%s runs backward, but this is inference", name);
  diag_hint(c, train ? "use a schedule with backwards (B, or I and W)"
                     : "add --train, or use a schedule of forwards (F) only");
  return false;
}

// The same schedule as plans have it: places in the order in which stages first use them, replica after replica, those on all
// aside; and one task after the other on each, those of a pair too.
static const sched *as_planned(arena *a, const sched *s) {
  const u32 all = s->nreplicas * s->nstages;
  u16 *place = NEWN(a, u16, all), *number = ZNEWN(a, u16, s->nplaces); // number: from 1
  sched_seq *seq = NEWN(a, sched_seq, s->nplaces);
  u32 *micro = NEWN(a, u32, s->nreplicas);
  u16 n = 0;
  for (u32 r = 0; r < s->nreplicas; r++) micro[r] = sched_micro(s, r);
  sched_places *at = arena_dup(a, s->at, all * sizeof *at);
  for (u32 k = 0; k < all; k++) {
    const u32 p = s->at[k].v[0];
    if (s->at[k].n > 1) { // all, and so in any numbers
      place[k] = 0;
      continue;
    }
    if (!number[p]) {
      sched_task *t = arena_dup(a, s->seq[p].v, s->seq[p].n * sizeof *t);
      for (u32 i = 0; i < s->seq[p].n; i++) t[i].paired = false;
      seq[n] = (sched_seq){s->seq[p].n, t};
      number[p] = ++n;
    }
    place[k] = (u16)(number[p] - 1);
    at[k] = (sched_places){1, &place[k]};
  }
  return sched_of_replicas(a, s->nstages, s->nplaces, s->nreplicas, micro, place, at, seq);
}

typedef struct schedule_file {
  const char *path;
  const sched *file, *planned; // as it is; as plans have it, NULL: not at all
} schedule_file;

static bool runs(ctx *c, const sched *s, loc at) {
  arena *tmp = arena_new();
  sched_line line;
  const bool ok = sched_merge(c, tmp, s, NULL, at, &line);
  arena_free(tmp);
  return ok;
}

static bool on_one_place_each(const sched *s) {
  for (u32 k = 0; k < s->nreplicas * s->nstages; k++)
    if (s->at[k].n > 1) return false;
  return true;
}

// An empty I is a wait that the plan has not.
static void warn_no_wait(ctx *c, const sched *s, const char *path) {
  u32 p, i;
  if (!sched_waits_in_vain(c, s, &p, &i)) return;
  const sched_source *from = s->source;
  const sched_task *t = &s->seq[p].v[i];
  diag(c, W_NO_WAIT, loc_text(c, from->file, from->line[p], from->column[p][i], from->text[p]),
       "place %u waits at %uI%u, which is empty, before %u%c%u; the plan does not, and may be simulated "
       "shorter than "
       "it runs",
       p, t->stage, t->mb, t[1].stage, sched_letter((task_kind)t[1].kind), t[1].mb);
  diag_hint(
      c, "put %uW%u right behind it, or ask `heddle schedule %s --stages FILE` for the time with that wait",
      t->stage, t->mb, path);
}

static bool read_file(ctx *c, arena *a, const char *path, loc at, schedule_file *out) {
  const sched *s = sched_read(c, a, path, at);
  if (!s || !runs(c, s, at)) return false;
  warn_no_wait(c, s, path);
  *out = (schedule_file){path, s, on_one_place_each(s) || sched_ends_wide(s) ? as_planned(a, s) : NULL};
  return true;
}

// The value with what is known of a schedule that was read.
static choice_value value_of(const schedule_file *f) {
  return (choice_value){
      .n = choice_words(CHOICE_schedule), .wide = sched_ends_wide(f->file), .path = f->path};
}

bool policy_schedule_files(ctx *c, arena *a, strategy_set *set, schedule_files *out) {
  choice_set *x = &set->of[CHOICE_schedule];
  schedule_file *v = NEWN(a, schedule_file, x->n + 1);
  choice_value *read = x->n ? arena_dup(a, x->v, x->n * sizeof *read) : NULL;
  *out = (schedule_files){.v = v};
  for (u32 k = 0; k < x->n; k++) {
    if (!x->v[k].path) continue;
    if (!read_file(c, a, x->v[k].path, x->at, &v[out->n])) return false;
    read[k] = value_of(&v[out->n++]);
  }
  if (x->n) x->v = read;
  return true;
}

static const schedule_file *file_known(const schedule_files *files, const char *path) {
  for (u32 k = 0; files && k < files->n; k++)
    if (!strcmp(files->v[k].path, path)) return &files->v[k];
  return NULL;
}

bool policy_schedule_read(ctx *c, arena *a, hybrid_opts *o) {
  const char *path = choice_file(o->s.schedule);
  if (!path) return true;
  const schedule_file *known = file_known(o->files, path);
  if (!known) {
    schedule_file *f = NEW(a, schedule_file);
    schedule_files *files = NEW(a, schedule_files);
    const loc at = o->said ? o->said->of[CHOICE_schedule].at : (loc){0};
    if (!read_file(c, a, path, at, f)) return false;
    *files = (schedule_files){1, f};
    o->files = files, known = f;
  }
  o->s.schedule = value_of(known);
  return true;
}

// The schedule of a file that goes with `form`.
static bool from_file(ctx *c, arena *a, const schedule_files *files, const char *path,
                      const sched_shape *form, loc at, schedule_file *out) {
  const schedule_file *known = file_known(files, path);
  if (known)
    *out = *known;
  else if (!read_file(c, a, path, at, out))
    return false;
  return can_plan(c, out->file, path, form->backward, at) && sched_fits(c, out->file, path, form, at);
}

static sched_shape shape_of(const strategy *s, bool backward) {
  return (sched_shape){
      .places = s->pp.n, .chunks = s->v.n, .micro = s->mb.n, .group = s->group.n, .backward = backward};
}

bool policy_schedule_fits(ctx *c, const strategy *s, bool train) {
  if (choice_file(s->schedule) || !choice_applies(CHOICE_schedule, s, train)) return true;
  const sched_shape form = shape_of(s, train);
  return sched_possible(c, sched_row_of(s->schedule.n), &form, (loc){0});
}

bool policy_schedule_runs(planner *pl, const strategy *s, bool train) {
  const sched_shape form = shape_of(s, train);
  return choice_file(s->schedule) || planner_schedule_fits(pl, sched_row_of(s->schedule.n), &form, (loc){0});
}

const u32 *policy_alive(planner *pl, arena *a, const hybrid_opts *o, const strategy *s) {
  ctx *c = planner_source(pl)->c;
  const u32 before = diag_count(c), n = s->pp.n;
  const sched_shape form = shape_of(s, true);
  const sched_row *row = s->schedule.path ? NULL : sched_row_of(s->schedule.n);
  const u32 *live = NULL;
  schedule_file from = {0};
  u32 *alive = ZNEWN(a, u32, n + 1), *stages = ZNEWN(a, u32, n + 1), replicas = 1, nstages = n;
  if (!o->train || n == 1) {
    for (u32 q = 0; q < n; q++) alive[q] = o->train;
    return alive;
  }
  if (row) {
    if (planner_schedule_key(pl, row, &form, (loc){0}, &live))
      replicas = sched_replicas(row), nstages = (u32)sched_nstages(row, n, s->v.n);
  } else if (from_file(c, a, o->files, s->schedule.path, &form, (loc){0}, &from) && from.planned)
    live = plan_live(a, from.planned), replicas = from.planned->nreplicas, nstages = from.planned->nstages;
  diag_truncate(c, before);
  assert(nstages);
  for (u32 k = 0; live && k < replicas * nstages; k++) {
    if (row && sched_is_wide(row, n, k % nstages)) continue;
    const u32 q = row ? sched_place(row, n, k / nstages, k % nstages) : from.planned->at[k].v[0];
    alive[q] += live[k], stages[q] += k < nstages;
  }
  for (u32 q = 0; q < n; q++) alive[q] = (u32)ceil_div(alive[q], MAX(stages[q], 1));
  return live ? alive : NULL;
}

// A file with versions of weights is the schedule of a row, which says when they are updated.
static bool says_updates(ctx *c, plan *pn, const sched *s, const strategy *of, sched_shape *form, loc at) {
  const char *path = of->schedule.path;
  if (!sched_has_versions(s)) return true;
  pn->made.row = sched_row_of_versions(c, s, path, form, at);
  return pn->made.row && strategy_updates_between(c, of, path);
}

bool policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s, const hybrid_opts *o, loc at,
                     const sched **file) {
  ctx *c = planner_source(pl)->c;
  sched_shape form = shape_of(s, pn->train);
  const char *path = s->schedule.path;
  const sched *made = NULL;
  schedule_file from = {0};
  if (!path)
    pn->made.row = sched_row_of(s->schedule.n);
  else if (!from_file(c, a, o->files, path, &form, at, &from) ||
           !says_updates(c, pn, from.file, s, &form, at))
    return false;
  if (!pn->made.row) {
    pn->made.file = made = from.planned;
    assert(made); // from_file: it can be planned
    pn->made.key = made->key, pn->made.live = plan_live(a, made);
  } else {
    pn->made.key = planner_schedule_key(pl, pn->made.row, &form, at, &pn->made.live);
    if (!pn->made.key) return false;
  }
  *file = from.file;
  pn->made.shape = form, pn->nseqs = form.places;
  if (o->no_order || plan_is_unrolled(pn)) return true; // policy_unrolled
  if (pn->made.row) made = sched_make(c, a, pn->made.row->name, &form, at);
  pn->seqs = made ? arena_dup(a, made->seq, made->nplaces * sizeof *made->seq) : NULL;
  return made != NULL;
}

bool policy_unrolled(ctx *c, arena *a, plan *pn, const hybrid_opts *o) {
  const sched *made = pn->made.file;
  if (!plan_is_unrolled(pn) || pn->nseqs < 2) return true;
  pn->made.live = plan_unroll_live(a, pn, made ? 1 : sched_passes(pn->made.row), pn->made.live);
  if (o->no_order) return true;
  if (!made) made = sched_make(c, a, pn->made.row->name, &pn->made.shape, (loc){0});
  pn->seqs = made ? arena_dup(a, plan_unroll(a, pn, made), pn->nseqs * sizeof *pn->seqs) : NULL;
  return made != NULL;
}
