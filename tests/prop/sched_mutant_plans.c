// sched_mutant_plans.c - plans whose order is a mutant of a schedule (schedmut.h): as a file that a strategy names, and as
// the text of a plan, each is refused, or computes what one device computes and bears the name of no row. Where a row
// is asynchronous no other versions of weights are taken for its own. In a search each takes as long as it does alone.
// VERBOSE=1 prints what became of them.
#include "schedmut.h"
#include "plans.h"
#include "search/search.h"
#include "test.h"
#include <stdlib.h>

// ---- plans of mutants -----------------------------------------------------------------------------------------
// Every row has a model and a strategy that it can be planned for.
enum { MLP = 0, GPT = 1, PLANS_EACH = 24 };
typedef struct {
  plans_model *m;
  arena *a; // of one mutant
  const sched_row *of;
  const sched *row; // what the row makes for this strategy
  const char *choices;
  mutation how;
} planned;
static u32 plan_fate[2][3]; // from a file, from a plan's text: refused, equal, with versions
enum { PLAN_REFUSED, PLAN_EQUAL, PLAN_VERSIONS };

static u32 model_of(const sched_row *r) {
  u32 k = 0;
  while (sched_passes(r) > 1 && !plans_has_tables(k)) k++;
  return sched_passes(r) > 1 ? k : sched_nwide(r) ? GPT : MLP;
}

static plan *plan_of(const planned *x, const char *schedule) {
  ctx *c = x->m->c;
  strategy_set set;
  strategy s;
  const char *line = arena_printf(x->a, "%s schedule=%s", x->choices, schedule);
  if (!strategy_parse(c, x->a, line, &set) || !strategy_one(c, &set, &s)) return NULL;
  const hybrid_opts o = {.s = s, .said = &set, .train = true, .optim = x->m->optim, .keep_gradients = true};
  return policy_hybrid(x->m->pl, x->a, &o);
}

static const char *told_plan(const planned *x, const char *what, const char *text) {
  return arena_printf(x->a, "%s, %s, %s, %s: %s:\n%s%s", x->m->name, x->choices, x->of->name,
                      mut_name[x->how], what, text, diag_render(x->m->c, x->a));
}

// Refused, with an error, or computes what it must.
static u32 check_plan(const planned *x, const plan *pn, const char *text) {
  ctx *c = x->m->c;
  plan_numbers got;
  verify_report r = {0};
  prog *p = pn ? plan_apply(x->m->pl, pn, NULL) : NULL;
  if (!p) {
    CHECK_MSG(diag_errors(c) > 0, "%s", told_plan(x, "is refused without a word", text));
    return PLAN_REFUSED;
  }
  CHECK_MSG(ir_verify(p) && plan_validate(p) && plan_evaluate(x->m->src, p, PLANS_SEED, x->a, &got) &&
                plan_compare(c, plans_want(x->m, pn), &got, 0, x->a, &r) && r.passed,
            "%s", told_plan(x, "computes something else", text));
  prog_free(p);
  return PLAN_EQUAL;
}

static const char *path_of(arena *a, u32 k) {
  return arena_printf(a, "%s/tests/mutant%u.csv", test_build(), k);
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  REQUIRE(f != NULL);
  fputs(text, f);
  fclose(f);
}

// As users have it: the mutant is a file that a strategy names.
static void judge_file(const planned *x, const sched_seq *seq) {
  ctx *c = x->m->c;
  sched as = *x->row;
  as.seq = seq;
  const char *text = text_of(x->a, &as), *path = path_of(x->a, 0);
  figures f = as_listed(x->a, as.nplaces, seq);
  u64 makespan;
  const bool legal = is_whole(&f) && pairs_well(&f) && simulate(x->a, &f, &makespan);
  write_file(path, text);
  diag_clear(c);
  plan *pn = plan_of(x, path);
  const bool versions = x->row->updates || x->how == MUT_VERSION;
  if (versions) {
    CHECK_MSG(!pn, "%s", told_plan(x, "is planned with these versions of weights", text));
  } else {
    CHECK_MSG(legal || !pn, "%s", told_plan(x, "is planned", text));
    CHECK_MSG(!pn || (!pn->made.row && pn->made.key != x->row->key), "%s", told_plan(x, "is the row", text));
  }
  const u32 end = check_plan(x, pn, text);
  if (legal && !versions && x->row->npasses == 1)
    CHECK_MSG(end == PLAN_EQUAL, "%s", told_plan(x, "is refused, but it is one", text));
  plan_fate[0][versions && end == PLAN_REFUSED ? PLAN_VERSIONS : end]++;
}

// As a plan's text, which says the schedule that it had.
static void judge_text(const planned *x, u32 place, u32 index) {
  ctx *c = x->m->c;
  diag_clear(c);
  plan *pn = plan_of(x, x->of->name);
  REQUIRE(pn && place < pn->nseqs);
  const u64 before = plan_hash(c, pn);
  sched as = *x->row;
  as.seq = pn->seqs, as.nstages = pn->nsegments;
  pn->seqs = copy_seqs(x->a, pn->nseqs, pn->seqs);
  if (!mutate(pn->seqs, place, index % pn->seqs[place].n, x->how, &as)) return;
  strbuf text = {.a = x->a};
  plan_print(x->m->src, pn, &text);
  CHECK_MSG(plan_hash(c, pn) != before, "%s", told_plan(x, "has the hash of the row", sb_str(&text)));
  const plan *again = plan_parse(x->a, x->m->src, NULL, sym_of(c, "mutant.yaml"), sb_str(&text), text.n);
  CHECK_MSG(again || diag_errors(c), "%s", told_plan(x, "is refused without a word", sb_str(&text)));
  CHECK_MSG(!again || (!again->made.row && diag_count(c) == 1 && diag_get(c, 0).id == W_SCHEDULE), "%s",
            told_plan(x, "keeps the name", sb_str(&text)));
  CHECK_MSG(!again || x->of->weights == WEIGHTS_ONE, "%s",
            told_plan(x, "is planned with these versions of weights", sb_str(&text)));
  const u32 end = check_plan(x, again, sb_str(&text));
  plan_fate[1][x->of->weights != WEIGHTS_ONE && end == PLAN_REFUSED ? PLAN_VERSIONS : end]++;
}

// When weights are updated, said otherwise: another number of microbatches, or nothing.
static void judge_updates(planned *x) {
  const char *text = text_of(x->a, x->row), *rest = strchr(text, '\n'), *path = path_of(x->a, 0);
  if (!x->row->updates) return;
  for (u32 k = 0; k <= 5; k++) {
    if (k == x->row->updates) continue;
    const char *said = k ? arena_printf(x->a, "# updates %u%s", k, rest) : rest + 1;
    write_file(path, said);
    diag_clear(x->m->c);
    const plan *pn = plan_of(x, path);
    // Without versions it may be the row with that group, or, where nothing is said, of updates at the end of a step.
    const bool other = !strchr(rest, 'v') && (!k || (pn && pn->made.row && pn->made.shape.group == k));
    CHECK_MSG(!pn || other, "%s", told_plan(x, "is planned with other updates", said));
    CHECK_MSG(!pn || pn->made.key != x->row->key, "%s", told_plan(x, "is the row", said));
    plan_fate[0][check_plan(x, pn, said) == PLAN_REFUSED ? PLAN_VERSIONS : PLAN_EQUAL]++;
  }
}

static void plans_of_row(plans_model *m, const sched_row *r) {
  arena *a = arena_new();
  const u32 chunks = r->chunks == CHUNKS_ANY ? 2 : r->chunks, passes = sched_passes(r);
  const sched_shape form = {.places = 2, .chunks = chunks, .micro = 4, .backward = true};
  const sched *row = sched_make(m->c, a, r->name, &form, (loc){0});
  REQUIRE(row != NULL);
  const char *v = passes > 1 ? "" : arena_printf(a, " v=%u", chunks);
  planned x = {m, a, r, row, arena_printf(a, "dp=1 tp=1 pp=2 mb=4%s", v), MUT_COUNT};
  const char *text = text_of(a, row);
  write_file(path_of(a, 0), text);
  diag_clear(m->c);
  const plan *pn = plan_of(&x, path_of(a, 0)); // the row itself, as a file
  CHECK_MSG(check_plan(&x, pn, text) == (passes > 1 ? PLAN_REFUSED : PLAN_EQUAL), "%s",
            told_plan(&x, "as a file", text));
  judge_updates(&x);
  for (u32 k = 0; k < PLANS_EACH; k++) {
    static const mutation how[] = {MUT_SWAP, MUT_MOVE, MUT_SWAP, MUT_VERSION};
    arena *tmp = arena_new();
    const u32 p = few(row->nplaces), i = few(row->seq[p].n);
    x.a = tmp;
    x.how = k % 2 ? how[few(COUNT_OF(how))] : (mutation)few(MUT_PAIR);
    sched_seq *seq = copy_seqs(tmp, row->nplaces, row->seq);
    if (mutate(seq, p, i, x.how, row)) judge_file(&x, seq);
    if (x.how < MUT_PASS) judge_text(&x, p, i);
    arena_free(tmp);
  }
  arena_free(a);
}

TEST(plans_of_mutants) {
  R = 2;
  memset(plan_fate, 0, sizeof plan_fate);
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++) {
    plans_model m;
    plans_open(&m, model_of(r));
    plans_of_row(&m, r);
    plans_close(&m);
  }
  for (u32 k = 0; k < 2; k++) {
    const u32 *n = plan_fate[k];
    if (getenv("VERBOSE"))
      printf("%s: refused %u, equal %u, versions %u\n", k ? "text" : "file", n[0], n[1], n[2]);
    CHECK_MSG(n[0] > 50 && n[1] > 50 && n[2] > 5, "%u, %u, %u", n[0], n[1], n[2]);
  }
}

// ---- mutants in a search --------------------------------------------------------------------------------------
// A search keeps lines of tasks, also from one plan to the next: beside the row and other mutants each takes as long as
// it takes alone.
enum { SEARCHED = 3 };
static bool run_search(plans_model *m, arena *a, const machine *on, const char *line, search_result *r) {
  search_opts o = {.train = true, .optim = m->optim, .no_bounds = true, .threads = 1};
  diag_clear(m->c);
  const bool ok =
      strategy_parse(m->c, a, line, &o.space) && search_run(m->c, a, m->src, on, &(cost_opts){0}, &o, r);
  CHECK_MSG(ok, "%s: %s", line, diag_render(m->c, a));
  return ok;
}

// Legal swaps of a row, each another one, as files; how many there are.
static u32 write_swaps(arena *a, const sched *row) {
  const char *texts[SEARCHED];
  u32 n = 0;
  for (u32 k = 0; k < 100 && n < SEARCHED; k++) {
    sched_seq *seq = copy_seqs(a, row->nplaces, row->seq);
    const u32 p = few(row->nplaces), i = few(row->seq[p].n);
    sched as = *row;
    as.seq = seq;
    u64 makespan;
    if (!mutate(seq, p, i, MUT_SWAP, row)) continue;
    const figures f = as_listed(a, row->nplaces, seq);
    if (!is_whole(&f) || !pairs_well(&f) || !simulate(a, &f, &makespan)) continue;
    const char *text = text_of(a, &as);
    u32 same = 0;
    while (same < n && strcmp(texts[same], text)) same++;
    if (same < n) continue; // one of two equal plans is not simulated
    texts[n] = text;
    write_file(path_of(a, n++), text);
  }
  return n;
}

static void search_mutants(const sched_row *r, u32 *others) {
  arena *a = arena_new();
  plans_model m;
  plans_open(&m, model_of(r));
  const u32 chunks = r->chunks == CHUNKS_ANY ? 2 : r->chunks;
  const sched_shape form = {.places = 2, .chunks = chunks, .micro = 4, .backward = true};
  const sched *row = sched_make(m.c, a, r->name, &form, (loc){0});
  const machine *on = machine_load(m.c, a, "1x2 v100");
  const char *fixed =
      arena_printf(a, "dp=1 tp=1 pp=2 mb=4 v=%u recompute=none zero=0 overlap=none schedule=", chunks);
  REQUIRE(row && on);
  const u32 n = write_swaps(a, row);
  CHECK_MSG(n > 0, "%s: no swap is legal", r->name);
  strbuf line = {.a = a};
  sb_fmt(&line, "%s%s", fixed, r->name);
  for (u32 k = 0; k < n; k++) sb_fmt(&line, ",%s", path_of(a, k));
  search_result all = {0}, one = {0};
  run_search(&m, a, on, sb_str(&line), &all);
  i64 row_ps = 0;
  for (u32 i = 0; i < all.npoints; i++)
    if (!search_value(&all.point[i], CHOICE_schedule).path) row_ps = all.point[i].time_ps;
  for (u32 i = 0; i < all.npoints; i++) {
    const search_point *p = &all.point[i];
    const char *path = search_value(p, CHOICE_schedule).path, *name = path ? path : r->name;
    if (!run_search(&m, a, on, arena_printf(a, "%s%s", fixed, name), &one)) continue;
    CHECK_MSG(p->state == SEARCH_RAN && p->time_ps > 0 && p->time_ps == one.point[0].time_ps,
              "%s, %s: %lld, not %lld", sb_str(&line), name, (long long)p->time_ps,
              (long long)one.point[0].time_ps);
    *others += p->time_ps != row_ps;
  }
  CHECK_EQ_I64(all.npoints, n + 1);
  plans_close(&m);
  arena_free(a);
}

TEST(mutants_beside_their_row_in_a_search) {
  R = 3;
  u32 others = 0;
  const sched_row *r;
  for (u32 i = 0; (r = sched_row_of(i)); i++)
    if (r->weights == WEIGHTS_ONE && sched_passes(r) == 1) search_mutants(r, &others);
  CHECK_MSG(others > 10, "%u take another time than the row", others);
}
