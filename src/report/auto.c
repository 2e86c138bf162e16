// auto.c - which operator is split how, and the best hybrid beside it.
#include "report/internal.h"

static const char *text_of(arena *a, cell x) {
  strbuf b = {.a = a};
  cell_print(&x, &b);
  return sb_str(&b);
}

static const char *name_of(const prog *src, const func_info *f, value v) {
  return sym_str(src->c, f->values.v[v].name);
}

// What an instruction reads that has a name: its weight, before anything else.
static const char *reads(arena *a, const prog *src, const auto_row *row) {
  const func_info *f = func_get(src, row->fn);
  const instr *in = &f->body.v[row->instr - 1];
  strbuf b = {.a = a};
  for (u32 k = 0; k < instr_nopd(f, in); k++) {
    const value v = opd_of(f, in, k);
    if (v > f->nparams || f->params.v[v - 1].r != ROLE_WEIGHT) continue;
    if (*name_of(src, f, v)) sb_fmt(&b, "%s%s", b.n ? ", " : "", name_of(src, f, v));
  }
  return sb_str(&b);
}

static const char *how(arena *a, const auto_row *row) {
  if (row->whole) return "whole";
  if (row->sum) return "sum passes";
  if (row->follows) return "as its operand";
  return arena_printf(a, "%s, dimension %u of %s %u", row->letter, row->dim,
                      row->result ? "result" : "operand", row->operand);
}

static void put_rows(report *r, arena *a, const prog *src, const search_auto *s) {
  static const column cols[] = {{"function", "function"}, {"instr", "instr"},   {"operator", "operator"},
                                {"node", "node"},         {"reads", "weights"}, {"split", "split"},
                                {"letter", NULL},         {"extent", "extent"}, {"dim", NULL},
                                {"operand", NULL}};
  report_table(r, "operators", cols, COUNT_OF(cols));
  for (u32 k = 0; k < s->plan.nrows; k++) {
    const auto_row *row = &s->plan.row[k];
    const func_info *f = func_get(src, row->fn);
    const bool split = row->letter != NULL;
    report_row(r, (cell[]){cell_text(sym_str(src->c, f->name)), cell_i(CELL_INT, row->instr),
                           cell_text(op_row_of((opcode)f->body.v[row->instr - 1].op)->name),
                           cell_text(splits_node(a, src, row->fn, row->instr - 1)),
                           cell_text(reads(a, src, row)), cell_text(how(a, row)), cell_text(row->letter),
                           split ? cell_i(CELL_INT, row->extent) : cell_none(),
                           split ? cell_i(CELL_INT, row->dim) : cell_none(),
                           split && !row->result ? cell_i(CELL_INT, row->operand) : cell_none()});
  }
}

// The ranks of its tensor axis all do the same.
static bool splits_nothing(const search_auto *s) {
  bool any = !s->automatic || !s->plan.nrows || s->s.tp.n < 2;
  for (u32 k = 0; k < s->plan.nrows && !any; k++) any = s->plan.row[k].letter || s->plan.row[k].follows;
  return !any;
}

static void put_plans(report *r, arena *a, const search_opts *o, const search_auto *s) {
  static const column cols[] = {{"plan", ""},       {"strategy", "strategy"},     STEP_COLUMNS("time"),
                                {"times_best", ""}, {"samples_per_s", "samples"}, {"peak_bytes", "memory"}};
  report_table(r, "plans", cols, COUNT_OF(cols));
  const double best = (double)s->time_ps;
  const search_point *hybrid = s->hybrids.nfit ? &s->hybrids.point[0] : NULL;
  const strategy same = search_strategy(&s->same), any = hybrid ? search_strategy(hybrid) : same;
  const struct {
    const char *what;
    const strategy *s;
    i64 ps, alone_ps, bytes;
    bool there;
  } v[] = {
      {s->automatic ? "automatic" : "answer", &s->s, s->time_ps, s->alone_ps, s->peak_bytes, true},
      {"hybrid, same degrees", &same, s->same.time_ps, s->same.alone_ps, s->same.peak_bytes, s->has_same},
      {"hybrid, any degrees", &any, hybrid ? hybrid->time_ps : 0, hybrid ? hybrid->alone_ps : 0,
       hybrid ? hybrid->peak_bytes : 0, hybrid != NULL}};
  for (u32 k = 0; k < COUNT_OF(v); k++) {
    if (!v[k].there) continue;
    report_row(
        r, (cell[]){cell_text(v[k].what), cell_text(strategy_str(a, v[k].s)),
                    STEP_CELLS(o->train, v[k].ps, v[k].alone_ps), cell_x(CELL_TIMES, (double)v[k].ps / best),
                    o->batch ? cell_x(CELL_PER_S, (double)o->batch / ((double)v[k].ps * 1e-12)) : cell_none(),
                    cell_i(CELL_BYTES, v[k].bytes)});
  }
}

// How the splits were found.
static const char *found(arena *a, const search_auto *s) {
  strbuf b = {.a = a};
  const char *chains =
      arena_printf(a, "%s proposals a function, seed %llu",
                   text_of(a, cell_i(CELL_INT, (i64)s->how.proposals)), (unsigned long long)s->how.seed);
  if (s->how.method == SPLITS_MCMC)
    sb_fmt(&b, "degrees split by Markov chains: %u (%s)", s->degrees, chains);
  else
    sb_fmt(&b, "degrees split by dynamic programming: %u", s->degrees);
  if (s->equal) sb_fmt(&b, ", of them equal to another: %u", s->equal);
  if (s->ruled_out) sb_fmt(&b, ", ruled out as slower by the estimate: %u", s->ruled_out);
  if (s->how.method == SPLITS_MCMC || !s->inexact) return sb_str(&b);
  sb_fmt(&b, " (not exact, for too many states: %u", s->inexact);
  if (s->walked) sb_fmt(&b, "; by Markov chains too: %u, better: %u, %s", s->walked, s->better, chains);
  sb_fmt(&b, ")");
  return sb_str(&b);
}

// Why the answer is a hybrid.
static const char *no_automatic(arena *a, const search_auto *s) {
  const char *bytes = text_of(a, cell_i(CELL_BYTES, s->host_least_bytes)),
             *most = text_of(a, cell_i(CELL_BYTES, s->host_usable_bytes));
  const u32 large = s->too_large + s->host_too_large;
  strbuf b = {.a = a};
  if (!s->fit && !large) return "a hybrid: no automatic plan was simulated";
  if (s->fit == 1)
    return arena_printf(a, "a hybrid: the automatic plan that was simulated%s is not faster",
                        large ? " and fits" : "");
  if (s->fit)
    return arena_printf(a, "a hybrid: none of the %u automatic plans that were simulated%s is faster", s->fit,
                        large ? " and fit" : "");
  sb_fmt(&b, "a hybrid: no automatic plan fits; of %u simulated", large);
  if (s->too_large) sb_fmt(&b, ", too large for the devices: %u", s->too_large);
  if (s->host_too_large)
    sb_fmt(&b, ", too large for host memory: %u (a node has %s, the smallest needs %s)", s->host_too_large,
           most, bytes);
  return sb_str(&b);
}

// Of n ranks those beside [first, first + used).
static const char *ranks_outside(arena *a, u32 first, u32 used, u32 n) {
  strbuf b = {.a = a};
  const u32 from[] = {0, first + used}, to[] = {first, n};
  for (u32 k = 0; k < 2; k++) {
    if (from[k] >= to[k]) continue;
    sb_fmt(&b, b.n ? ", %u" : "%u", from[k]);
    if (to[k] - from[k] > 1) sb_fmt(&b, "-%u", to[k] - 1);
  }
  return sb_str(&b);
}

void report_auto(report *r, arena *a, const prog *src, const search_about *about, const search_opts *o,
                 const search_auto *s) {
  report_fact(r, "model", "model", cell_text(about->model));
  report_fact(r, "parameter_dtypes", "weights", cell_text(about->types));
  report_dropout(r, about->model, o->train);
  report_fact(r, "machine", "machine", cell_text(about->machine));
  report_fact(r, "ranks", "ranks", cell_i(CELL_INT, about->ranks));
  report_fact(r, "batch", "batch", o->batch ? cell_i(CELL_INT, o->batch) : cell_none());
  report_line(r, "step", "%s", o->train ? "training" : "inference; --train plans a training step");
  report_fact(r, "train", NULL, cell_i(CELL_BOOL, o->train));
  report_fact(r, "automatic", NULL, cell_i(CELL_BOOL, s->automatic));
  report_gap(r);
  if (s->automatic && s->plan.nrows) {
    put_rows(r, a, src, s);
    report_gap(r);
  }
  put_plans(r, a, o, s);
  report_gap(r);
  const bool chains = s->automatic && (s->plan.better || s->how.method == SPLITS_MCMC);
  if (s->automatic && s->plan.walked)
    report_line(r, "answer", "%s",
                chains ? "its split is of Markov chains"
                       : "its split is of the dynamic program: Markov chains found none that is better");
  report_fact(r, "split_by", NULL,
              s->automatic && s->plan.nrows
                  ? cell_text(splits_method_names[chains ? SPLITS_MCMC : SPLITS_EXACT])
                  : cell_text(NULL));
  if (!s->automatic) report_line(r, "answer", "%s", no_automatic(a, s));
  if (s->automatic && !s->plan.nrows)
    report_line(r, "answer",
                "without a tensor axis: the rules allow that nothing is split, and no split is faster");
  if (splits_nothing(s))
    report_line(r, "",
                "nothing is split over tp=%u: its ranks all do the same work, so --devices %u does as much",
                s->s.tp.n, (u32)(strategy_ranks(&s->s) / s->s.tp.n));
  const u32 used = (u32)strategy_ranks(&s->s);
  if (used < about->ranks)
    report_line(r, "", "uses %u of the machine's %u ranks: %s %s not used", used, about->ranks,
                ranks_outside(a, s->s.skip.n, used, about->ranks), about->ranks - used == 1 ? "is" : "are");
  if (s->how.rules && s->hybrids.nfit)
    report_line(r, "",
                "rules are of automatic plans: hybrids do not ask them, and are shown to compare with");
  report_line(r, "", "computes %s of the time, communicates %s, idles %s",
              text_of(a, cell_x(CELL_SHARE, s->utilisation)), text_of(a, cell_x(CELL_SHARE, s->comm)),
              text_of(a, cell_x(CELL_SHARE, s->bubble)));
  report_line(r, "certificate", "hybrids searched: %u; %s; of them simulated, by their estimates: %u",
              s->hybrids.space, found(a, s), s->simulated);
  report_fact(r, "hybrids", NULL, cell_i(CELL_INT, s->hybrids.space));
  report_fact(r, "degrees", NULL, cell_i(CELL_INT, s->degrees));
  report_fact(r, "degrees_equal", NULL, cell_i(CELL_INT, s->equal));
  report_fact(r, "simulated", NULL, cell_i(CELL_INT, s->simulated));
  report_fact(r, "too_large", NULL, cell_i(CELL_INT, s->too_large));
  report_fact(r, "host_too_large", NULL, cell_i(CELL_INT, s->host_too_large));
  report_fact(r, "ruled_out", NULL, cell_i(CELL_INT, s->ruled_out));
  report_fact(r, "inexact", NULL, cell_i(CELL_INT, s->inexact));
  report_fact(r, "method", NULL, cell_text(splits_method_names[s->how.method]));
  report_fact(r, "chains", NULL, cell_i(CELL_INT, s->walked));
  report_fact(r, "chains_better", NULL, cell_i(CELL_INT, s->better));
  if (s->walked) {
    report_fact(r, "proposals", NULL, cell_i(CELL_INT, (i64)s->how.proposals));
    report_fact(r, "seed", NULL, cell_i(CELL_INT, (i64)s->how.seed));
  }
}
