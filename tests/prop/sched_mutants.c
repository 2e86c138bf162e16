// sched_mutants.c - every task of every schedule matters: a schedule in which one task is lost, doubled, moved or
// another one must be noticed.
//
// A mutant is a schedule of a row with the sequence of one place changed, as a value and as text. Whether it is still a
// schedule is found in schedmut.h; Heddle must say the same. What it refuses it refuses at a place, with a deadlock as
// one reason. What it takes is told from the row by its text and its key, and where weights have versions it is not
// taken for the asynchronous row. VERBOSE=1 prints what became of mutants.
#include "schedmut.h"
#include "test.h"
#include <stdlib.h>

// What became of it. SIZES: a schedule of other figures, which none of the row is taken for.
typedef enum { REFUSED, DEADLOCK, VERSIONS, SIZES, LEGAL, FATES } fate;
static const char *const fate_name[] = {"refused", "deadlock", "versions", "sizes", "legal"};

// ---- what schedules say ---------------------------------------------------------------------------------------
static u64 *on_of(arena *a, const sched *s) {
  u64 *on = ZNEWN(a, u64, s->nreplicas * s->nstages);
  for (u32 x = 0; x < s->nreplicas * s->nstages; x++)
    for (u32 i = 0; i < s->at[x].n; i++) on[x] |= 1ull << s->at[x].v[i];
  return on;
}

// Of a value: its sizes and places are said.
static figures as_said(arena *a, const sched *s) {
  figures f = {.nstages = s->nstages,
               .nplaces = s->nplaces,
               .nreplicas = s->nreplicas,
               .npasses = MAX(s->npasses, 1),
               .most = s->nmicro,
               .backward = s->backward,
               .split = s->split,
               .on = on_of(a, s),
               .nedges = s->nedges,
               .edge = s->edge,
               .seq = s->seq};
  for (u32 r = 0; r < s->nreplicas; r++) f.micro[r] = sched_micro(s, r);
  return f;
}

// A task that is in no schedule of these figures, whatever the others are.
static bool cannot_be(const figures *f, const sched_task *t) {
  if (t->stage >= f->nstages || t->replica >= f->nreplicas || t->pass >= f->npasses) return true;
  return t->mb >= f->micro[t->replica] || (t->pass && t->kind != TASK_F) ||
         (t->kind != TASK_F && !f->backward) || (t->kind > TASK_B && !f->split[t->stage]);
}

// ---- what Heddle says of one ----------------------------------------------------------------------------------
static u32 tally[MUT_COUNT][FATES];
typedef struct {
  ctx *c;
  arena *a; // of one mutant
  const sched *row;
  const sched_row *of;
  sched_shape form;
  const char *text; // of the row's
  mutation how;
  bool alone; // one task was changed, no place has a task more or less
} trial;

static const char *told(const trial *x, const sched_seq *seq) {
  sched m = *x->row;
  m.seq = seq;
  return arena_printf(x->a, "%s, %u places, %u chunks, %u microbatches, %s:\n%s%s", x->of->name,
                      x->form.places, x->form.chunks, x->form.micro, mut_name[x->how], text_of(x->a, &m),
                      diag_render(x->c, x->a));
}

// One error, of this kind, at a place that is known.
static void check_told(const trial *x, diag_id id, sym file, const sched_seq *seq) {
  if (!CHECK_MSG(diag_errors(x->c) == 1, "%s", told(x, seq))) return;
  const diag_item d = diag_get(x->c, diag_count(x->c) - 1);
  const loc_info *at = loc_get(x->c, d.at);
  CHECK_MSG(d.id == id && *d.message && at && at->file.i == file.i, "%s", told(x, seq));
}

static bool same_figures(const sched *x, const sched *y) {
  bool same = x->nstages == y->nstages && x->nplaces == y->nplaces && x->nreplicas == y->nreplicas &&
              x->backward == y->backward && x->npasses == y->npasses;
  for (u32 k = 0; same && k < x->nreplicas * x->nstages; k++) same = x->at[k].n == y->at[k].n;
  for (u32 r = 0; same && r < x->nreplicas; r++) same = sched_micro(x, r) == sched_micro(y, r);
  return same;
}

// If a task of a place cannot be, the first such is named. Places are checked one after the other, so faults of others may
// come first.
static void check_named(const trial *x, const figures *f) {
  if (!diag_count(x->c)) return; // told above
  const diag_item d = diag_get(x->c, 0);
  for (u32 p = 0; p < f->nplaces; p++)
    for (u32 i = 0; i < f->seq[p].n; i++) {
      const sched_task *t = &f->seq[p].v[i];
      if (!cannot_be(f, t)) continue;
      const char *name = arena_printf(x->a, "%u%c%u", t->stage, sched_letter((task_kind)t->kind), t->mb);
      const bool said = strstr(d.message, name), line = loc_get(x->c, d.at)->line > p;
      CHECK_MSG((said && line) || !x->alone, "%s is not named: %s", name, told(x, f->seq));
      return;
    }
}

// Of a text: a version where nothing says when weights are updated, or another one in the backward than in the forward.
static bool refused_for_versions(const trial *x) {
  return x->how == MUT_VERSION && diag_errors(x->c) == 1 && strstr(diag_get(x->c, 0).message, " version");
}

// A schedule: not to be taken for the row's, neither by its text, its key, nor its versions.
static fate check_legal(const trial *x, const sched *m, u64 makespan, loc where) {
  const char *text = text_of(x->a, m);
  sched_times t;
  bool paired = false;
  CHECK_MSG(strcmp(text, x->text) != 0 && m->key != x->row->key && !sched_equal(m, x->row), "%s",
            told(x, m->seq));
  const sched *again = sched_parse(x->c, x->a, sym_of(x->c, "again.csv"), text, strlen(text));
  if (!again && refused_for_versions(x)) {
    diag_clear(x->c);
    return VERSIONS;
  }
  CHECK_MSG(again && !strcmp(text_of(x->a, again), text) && !sched_equal(again, x->row), "%s",
            told(x, m->seq));
  for (u32 p = 0; p < m->nplaces; p++)
    for (u32 i = 0; i < m->seq[p].n; i++) paired |= m->seq[p].v[i].paired;
  if (CHECK(sched_time(x->c, x->a, m, takes, where, &t)) && !paired)
    CHECK_MSG(t.makespan == makespan, "%llu, not %llu: %s", (unsigned long long)t.makespan,
              (unsigned long long)makespan, told(x, m->seq));
  if (sched_has_versions(m)) {
    sched_shape form = x->form;
    const bool named = sched_row_of_versions(x->c, m, "mutant.csv", &form, where);
    CHECK_MSG(!named, "is taken for the asynchronous row: %s", told(x, m->seq));
    check_told(x, E_PLAN, loc_get(x->c, where)->file, m->seq);
    return VERSIONS;
  }
  CHECK_MSG(x->how != MUT_VERSION && !x->row->updates, "%s", told(x, m->seq));
  if (same_figures(m, x->row)) return LEGAL;
  if (m->backward == x->row->backward && m->npasses == x->row->npasses)
    CHECK_MSG(!sched_fits(x->c, m, "mutant.csv", &x->form, where), "%s", told(x, m->seq));
  return SIZES;
}

// As a value (text false) or as text: Heddle's word on it against the one of this file.
static void judge(const trial *x, const sched_seq *seq, bool text) {
  ctx *c = x->c;
  sched as = *x->row;
  as.seq = seq;
  const sched *m = sched_with(x->a, &as, as.nedges, as.edge, NULL);
  const sym file = sym_of(c, "mutant.csv");
  const loc where = loc_text(c, file, 1, 1, NULL);
  const figures f = text ? as_listed(x->a, as.nplaces, seq) : as_said(x->a, &as);
  const bool whole = is_whole(&f) && pairs_well(&f);
  u64 makespan = 0;
  const bool runs = whole && simulate(x->a, &f, &makespan);
  loc *seq_at = NEWN(x->a, loc, as.nplaces);
  for (u32 p = 0; p < as.nplaces; p++) seq_at[p] = loc_text(c, file, p + 1, 1, NULL);
  diag_clear(c);
  if (text) {
    const char *csv = text_of(x->a, &as);
    m = sched_parse(c, x->a, file, csv, strlen(csv));
  } else if (!sched_check(c, m, where, seq_at)) {
    m = NULL;
  }
  if (!m && whole && text && refused_for_versions(x)) {
    check_told(x, E_PLAN, file, seq);
    tally[x->how][VERSIONS]++;
    diag_clear(c);
    return;
  }
  CHECK_MSG((m != NULL) == whole, "%s but is %s: %s", m ? "taken" : "refused", whole ? "whole" : "not whole",
            told(x, seq));
  fate got = REFUSED;
  sched_line line;
  if (!m) {
    check_told(x, E_PLAN, file, seq);
    check_named(x, &f);
  } else if (!sched_merge(c, x->a, m, NULL, where, &line)) {
    CHECK_MSG(!runs, "deadlocks, but runs: %s", told(x, seq));
    check_told(x, E_DEADLOCK, file, seq);
    got = DEADLOCK;
  } else {
    CHECK_MSG(runs, "runs, but deadlocks: %s", told(x, seq));
    got = runs ? check_legal(x, m, makespan, where) : LEGAL;
  }
  tally[x->how][got]++;
  diag_clear(c);
}

// What a value says beside its sequences: two parts where there are none, a backward that is not there or is, a place
// without tasks, a stage on no place or on one that there is not, edges out of order.
enum { FORMS = 8 };
static bool other_form(arena *a, const sched *s, u32 how, sched *m) {
  const u32 k = few(s->nstages), n = s->nreplicas * s->nstages;
  bool *split = arena_dup(a, s->split, s->nstages * sizeof *split), *forward = ZNEWN(a, bool, s->nstages);
  sched_places *at = arena_dup(a, s->at, n * sizeof *at);
  sched_edge *edge = arena_dup(a, s->edge, (s->nedges + 1) * sizeof *edge);
  sched_seq *seq = NEWN(a, sched_seq, s->nplaces + 1);
  u16 *beyond = NEW(a, u16);
  memcpy(seq, s->seq, s->nplaces * sizeof *seq);
  seq[s->nplaces] = (sched_seq){0}, *beyond = (u16)s->nplaces;
  *m = *s;
  m->split = split, m->at = at, m->edge = edge, m->seq = seq;
  switch (how) {
  case 0: split[k] = !split[k]; return true;
  case 1: // without backward: one is said to be there, but of no stage
    memset(forward, 1, s->nstages);
    m->backward = !m->backward, m->forward = s->backward ? NULL : forward;
    return true;
  case 2: m->nplaces++; return true;
  case 3: at[few(n)].n = 0; return true;
  case 4: at[few(n)] = (sched_places){1, beyond}; return true;
  case 5: m->nmicro++; return true;
  case 6: m->nreplicas = 0; return true;
  default:
    if (s->nedges) edge[few(s->nedges)].to = few(2) ? (u16)s->nstages : 0;
    return s->nedges > 0;
  }
}

static void judge_forms(const trial *x) {
  const loc where = loc_text(x->c, sym_of(x->c, "mutant.csv"), 1, 1, NULL);
  for (u32 how = 0; how < FORMS; how++) {
    sched m;
    if (!other_form(x->a, x->row, how, &m)) continue;
    CHECK_MSG(!sched_check(x->c, &m, where, NULL), "form %u is taken: %s", how, told(x, x->row->seq));
    check_told(x, E_PLAN, loc_get(x->c, where)->file, x->row->seq);
    diag_clear(x->c);
  }
}

// ---- every row ------------------------------------------------------------------------------------------------
enum { EACH = 8 }; // mutants of one kind and schedule
static void mutants_of(const sched_row *r, const sched_shape *form) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const sched *s = sched_make(c, a, r->name, form, (loc){0});
  const char *text = s ? text_of(a, s) : NULL;
  const trial whole = {c, a, s, r, *form, text, MUT_COUNT, false};
  if (s) judge_forms(&whole);
  for (u32 how = 0; s && how < MUT_COUNT; how++)
    for (u32 k = 0; k < EACH; k++) {
      const u32 p = few(s->nplaces), i = few(s->seq[p].n);
      arena *tmp = arena_new();
      const trial x = {c, tmp, s, r, *form, text, (mutation)how, how >= MUT_KIND && how <= MUT_PASS};
      sched_seq *seq = copy_seqs(tmp, s->nplaces, s->seq);
      if (mutate(seq, p, i, (mutation)how, s)) judge(&x, seq, k % 2);
      arena_free(tmp);
    }
  arena_free(a);
  ctx_free(c);
}

static void print_tally(void) {
  for (u32 how = 0; how < MUT_COUNT; how++) {
    printf("%-10s", mut_name[how]);
    for (u32 k = 0; k < FATES; k++) printf("  %s %u", fate_name[k], tally[how][k]);
    puts("");
  }
}

TEST(mutation_of_every_schedule_is_noticed) {
  R = 1;
  memset(tally, 0, sizeof tally);
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++)
    for (u32 places = 1; places <= 4; places++)
      for (u32 k = 0; k < 12; k++) {
        const u32 chunks = r->chunks == CHUNKS_ANY ? 1 + k % 3 : r->chunks;
        const sched_shape form = {.places = places,
                                  .chunks = chunks,
                                  .micro = 1 + k / 2 + (k % 3) * (r->least ? 2 * places : places),
                                  .group = r->group && k % 4 == 3 ? places : 0,
                                  .backward = k % 5 != 4,
                                  .paired = k & 1};
        mutants_of(r, &form);
      }
  if (getenv("VERBOSE")) print_tally();
  for (u32 how = 0; how < MUT_COUNT; how++) {
    u32 n = 0;
    for (u32 k = 0; k < FATES; k++) n += tally[how][k];
    CHECK_MSG(n > 2000, "%u mutants of kind %s", n, mut_name[how]);
  }
}
