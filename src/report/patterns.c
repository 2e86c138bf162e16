// patterns.c - the sharding patterns of one application (op.h), and what they cost on a machine (cost.h).
//
// Notation: a tensor is its letters by dimension, [m,k]; k/4 is split 4 ways, (g/4 c) is a dimension of two
// letters of which the major one is; "sum" behind it: every rank has a part of the sum.
#include "report/report.h"

typedef struct {
  arena *a;
  const report_pattern *of;
  const char *const *name; // of letters
} words;

static const func_info *main_of(const words *w) { return func_get(w->of->p, w->of->p->main); }
static const instr *applied(const words *w) { return &main_of(w)->body.v[0]; }

static const char *ways_text(const words *w) {
  return w->of->ways ? arena_printf(w->a, "%u", w->of->ways) : "ways";
}
static const char *pattern_name(const words *w, u32 i) { return arena_printf(w->a, "SP%u", i + 1); }

// ---- tensors -----------------------------------------------------------------------------------------

static void put_term(const words *w, strbuf *b, const law_term *t, u32 cut) {
  sb_char(b, '[');
  for (u32 d = 0; d < t->nd; d++) {
    const law_dim *x = &t->dim[d];
    if (d) sb_char(b, ',');
    if (!x->n) sb_char(b, '1');
    if (x->n > 1) sb_char(b, '(');
    for (u32 i = 0; i < x->n; i++) {
      sb_fmt(b, "%s%s", i ? " " : "", w->name[x->f[i]]);
      if (x->f[i] == cut) sb_fmt(b, "/%s", ways_text(w));
    }
    if (x->n > 1) sb_char(b, ')');
  }
  sb_char(b, ']');
}

static void put_piece(const words *w, strbuf *b, const law_term *t, const law_piece *x, u32 letter) {
  put_term(w, b, t, x->state == PIECE_SPLIT ? letter : ~0u);
  if (x->state == PIECE_PARTIAL) sb_fmt(b, " %s", red_name((reduction)x->red));
}

static const char *pieces_text(const words *w, const law_term *t, const law_piece *x, u32 n, u32 letter) {
  strbuf b = {.a = w->a};
  for (u32 k = 0; k < n; k++) {
    if (k) sb_put(&b, ", ");
    put_piece(w, &b, &t[k], &x[k], letter);
  }
  return sb_str(&b);
}

// Can a tensor be had in pieces?
static bool has_letters(const law_term *t) {
  for (u32 d = 0; d < t->nd; d++)
    if (t->dim[d].n) return true;
  return false;
}

static const char *completed_by(const words *w, const law_pattern *x) {
  const reduction red = op_row_of(w->of->op)->red;
  bool scatters = true;
  for (u32 k = 0; k < w->of->l->nres; k++)
    scatters = scatters && (x->res[k].state != PIECE_PARTIAL || has_letters(&w->of->l->res[k]));
  if (!x->sum) return "nothing";
  return arena_printf(w->a, "all_reduce%s%s%s", scatters ? " or reduce_scatter" : "",
                      red == RED_SUM ? "" : ", by ", red == RED_SUM ? "" : red_name(red));
}

// "all_reduce of operands 1, 3": those whose gradients are sums.
static const char *gradients_text(const words *w, const law_pattern *x) {
  strbuf b = {.a = w->a};
  u32 n = 0;
  for (u32 k = 0; k < w->of->l->nopd; k++)
    if (x->grad[k].state == PIECE_PARTIAL) sb_fmt(&b, "%s%u", n++ ? ", " : " ", k + 1);
  if (!n) return x->gradients ? "nothing" : "no gradient";
  return arena_printf(w->a, "all_reduce of operand%s%s", n > 1 ? "s" : "", sb_str(&b));
}

// ---- the application ---------------------------------------------------------------------------------

static const char *application_text_of(const words *w) {
  strbuf b = {.a = w->a};
  const prog *p = w->of->p;
  const instr *i = applied(w);
  for (u32 k = 0; k < i->nopd; k++)
    sb_fmt(&b, "%s%s", k ? ", " : "", ir_type_str(p, val(main_of(w), opd_of(main_of(w), i, k))->ty));
  sb_put(&b, i->nopd ? " -> " : "-> ");
  for (u32 k = 0; k < i->nres; k++)
    sb_fmt(&b, "%s%s", k ? ", " : "", ir_type_str(p, val(main_of(w), i->res + k)->ty));
  return sb_str(&b);
}

static const char *letters_text(const words *w) {
  strbuf b = {.a = w->a};
  const law *l = w->of->l;
  for (u32 k = 0; k < l->nopd + l->nres; k++) {
    sb_put(&b, k == l->nopd ? (k ? " -> " : "-> ") : k ? ", " : "");
    put_term(w, &b, k < l->nopd ? &l->opd[k] : &l->res[k - l->nopd], ~0u);
  }
  for (u32 i = 0; i < l->nletters; i++)
    sb_fmt(&b, "%s %s=%lld", i ? "" : ":", w->name[i], (long long)l->letter[i].extent);
  return sb_str(&b);
}

static void head(report *r, const words *w) {
  const report_pattern *of = w->of;
  const op_row *row = op_row_of(of->op);
  const char *text = op_law_text(of->op), *split = op_split_text(of->op);
  report_note(r, arena_printf(w->a, "%s: %s\n\n", row->name, row->doc));
  report_fact(r, "name", NULL, cell_text(row->name));
  report_fact(r, "about", NULL, cell_text(row->doc));
  if (text) report_fact(r, "law_text", "law", cell_text(text));
  if (split) report_fact(r, "split", "may be split", cell_text(split));
  if (!of->p) return;
  report_fact(r, "application", of->example ? "example" : "applied to", cell_text(application_text_of(w)));
  report_fact(r, "letters", "letters", cell_text(letters_text(w)));
  if (of->cost) {
    report_fact(r, "machine", "machine", cell_text(sym_str(of->m->c, of->m->name)));
    report_fact(r, "ways", NULL, cell_i(CELL_INT, of->ways));
    report_line(r, "ways", "%u: ranks 0 to %u", of->ways, of->ways - 1);
  }
  report_gap(r);
}

// ---- patterns ----------------------------------------------------------------------------------------

static void patterns_table(report *r, const words *w) {
  static const column cols[] = {{"pattern", "pattern"},   {"letter", "letter"},    {"extent", NULL},
                                {"operands", "operands"}, {"results", "results"},  {"reduction", NULL},
                                {NULL, "results need"},   {NULL, "gradients need"}};
  const report_pattern *of = w->of;
  const law *l = of->l;
  if (!of->n) report_line(r, NULL, "no letter may be split");
  report_table(r, "patterns", cols, COUNT_OF(cols));
  for (u32 i = 0; i < of->n; i++) {
    const law_pattern *x = &of->v[i];
    report_row(r, (cell[]){cell_text(pattern_name(w, i)), cell_text(w->name[x->letter]),
                           cell_i(CELL_INT, l->letter[x->letter].extent),
                           cell_text(pieces_text(w, l->opd, x->opd, l->nopd, x->letter)),
                           cell_text(pieces_text(w, l->res, x->res, l->nres, x->letter)),
                           cell_text(x->sum ? red_name(op_row_of(of->op)->red) : NULL),
                           cell_text(completed_by(w, x)), cell_text(gradients_text(w, x))});
  }
}

// For programs: the same tensor by tensor.
static void tensors_table(report *r, const words *w) {
  static const column cols[] = {
      {"pattern", NULL}, {"tensor", NULL}, {"piece", NULL}, {"split_dimension", NULL}, {"gradient", NULL}};
  static const char *const state[] = {
      [PIECE_NONE] = NULL, [PIECE_WHOLE] = "whole", [PIECE_SPLIT] = "split", [PIECE_PARTIAL] = "partial"};
  const report_pattern *of = w->of;
  report_table(r, "tensors", cols, COUNT_OF(cols));
  for (u32 i = 0; i < of->n; i++)
    for (u32 k = 0; k < of->l->nopd + of->l->nres; k++) {
      const bool result = k >= of->l->nopd;
      const u32 j = result ? k - of->l->nopd : k;
      const law_piece *x = result ? &of->v[i].res[j] : &of->v[i].opd[j];
      report_row(r, (cell[]){cell_text(pattern_name(w, i)),
                             cell_text(arena_printf(w->a, "%s %u", result ? "result" : "operand", j + 1)),
                             cell_text(state[x->state]),
                             x->state == PIECE_SPLIT ? cell_i(CELL_INT, x->dim) : cell_none(),
                             cell_text(result ? NULL : state[of->v[i].grad[j].state])});
    }
}

static const char *const reason_text[] = {
    [WHOLE_NO_SUM] = "a result lacks it, and its parts cannot be combined",
    [WHOLE_AT_ONCE] = "no result has it, and the result needs all of it at once",
    [WHOLE_TOGETHER] = "elements of the result along it depend on each other",
    [WHOLE_ADDRESSED] = "picked by value, in a way that cannot be masked",
    [WHOLE_FOLLOWS] = "its index follows from those of other letters",
    [WHOLE_TIED] = "its extent is tied to an attribute or to other extents",
    [WHOLE_INSIDE] = "iterated inside: no tensor has it"};

static void whole_table(report *r, const words *w) {
  static const column cols[] = {{"letter", "stays whole"}, {"extent", "extent"}, {"reason", "because"}};
  const law *l = w->of->l;
  bool any = false;
  for (u32 i = 0; i < l->nletters; i++) any |= law_whole_reason(w->of->op, l, i) != WHOLE_NOT;
  if (any) report_gap(r);
  report_table(r, "whole", cols, COUNT_OF(cols));
  for (u32 i = 0; i < l->nletters; i++) {
    const whole_reason why = law_whole_reason(w->of->op, l, i);
    if (why != WHOLE_NOT)
      report_row(r, (cell[]){cell_text(w->name[i]), cell_i(CELL_INT, l->letter[i].extent),
                             cell_text(reason_text[why])});
  }
}

static void legend(report *r, const words *w) {
  const report_pattern *of = w->of;
  bool sum = false, grad = false;
  for (u32 i = 0; i < of->n; i++) sum |= of->v[i].sum, grad |= of->v[i].grad_sum;
  if (!of->n) return;
  report_gap(r);
  report_line(r, NULL, "%s/%s: split %s", w->name[of->v[0].letter], ways_text(w),
              of->ways ? arena_printf(w->a, "%u ways", of->ways) : "so many ways");
  if (sum)
    report_line(r, NULL,
                "%s: every rank has that of its part; all_reduce makes it whole, reduce_scatter split",
                red_name(op_row_of(of->op)->red));
  if (grad) report_line(r, NULL, "the gradient of an operand that lacks the letter is a sum over the ranks");
}

// ---- costs -------------------------------------------------------------------------------------------

static i64 forward(const pattern_cost *x) { return x->compute_ps + x->comm_ps; }
static i64 with_gradients(const pattern_cost *x) { return forward(x) + x->grad_ps; }

static i64 least(const report_pattern *of, i64 (*ps)(const pattern_cost *)) {
  i64 best = INT64_MAX;
  for (u32 i = 0; i < of->n; i++)
    if (of->cost[i].divides) best = MIN(best, ps(&of->cost[i]));
  return best;
}

enum { COST_COLUMNS = 16 };

static cell if_any(bool any, i64 ps) { return any ? cell_i(CELL_PS, ps) : cell_none(); }

static const char *mark(bool forward, bool training, bool grads) {
  if (forward) return training || !grads ? "cheapest" : "cheapest forward";
  return training && grads ? "cheapest with gradients" : NULL;
}

// i: a pattern, or the row after them: whole.
static void priced_row(report *r, const words *w, u32 i, bool grads) {
  const report_pattern *of = w->of;
  const pattern_cost *x = &of->cost[i];
  const bool is = i < of->n, best = is && forward(x) == least(of, forward),
             training = is && with_gradients(x) == least(of, with_gradients);
  const double speedup = forward(x) ? (double)forward(&of->cost[of->n]) / (double)forward(x) : 1;
  const char *name = is ? pattern_name(w, i) : "whole", *letter = is ? w->name[of->v[i].letter] : NULL;
  report_row(r, (cell[COST_COLUMNS]){cell_text(name), cell_text(letter), cell_x(CELL_FLOP, x->flops),
                                     cell_i(CELL_BYTES, (i64)x->bytes), cell_i(CELL_PS, x->compute_ps),
                                     cell_i(CELL_BYTES, x->comm_bytes), cell_i(CELL_PS, x->comm_ps),
                                     if_any(x->scatter_ps >= 0, x->scatter_ps), cell_i(CELL_PS, forward(x)),
                                     cell_x(CELL_TIMES, speedup), if_any(grads, x->grad_ps),
                                     if_any(grads, with_gradients(x)), cell_i(CELL_BOOL, best),
                                     cell_i(CELL_BOOL, training), cell_none(),
                                     cell_text(mark(best, training, grads))});
}

static void unpriced_row(report *r, const words *w, u32 i) {
  const u32 letter = w->of->v[i].letter;
  const char *reason = arena_printf(w->a, "%s=%lld is not divisible by %u", w->name[letter],
                                    (long long)w->of->l->letter[letter].extent, w->of->ways);
  cell row[COST_COLUMNS];
  for (u32 k = 0; k < COST_COLUMNS; k++) row[k] = cell_none();
  row[0] = cell_text(pattern_name(w, i)), row[1] = cell_text(w->name[letter]);
  row[12] = row[13] = cell_i(CELL_BOOL, false);
  row[14] = row[15] = cell_text(reason);
  report_row(r, row);
}

static void costs_table(report *r, const words *w) {
  static const column all[COST_COLUMNS] = {{"pattern", "pattern"},
                                           {"letter", "letter"},
                                           {"flops", "arithmetic"},
                                           {"traffic_bytes", "memory traffic"},
                                           {"compute_ps", "computes"},
                                           {"sum_bytes", "sums"},
                                           {"communication_ps", "all_reduce"},
                                           {"reduce_scatter_ps", "(reduce_scatter)"},
                                           {"total_ps", "total"},
                                           {"speedup", "speedup"},
                                           {"gradients_ps", "gradient sums"},
                                           {"total_with_gradients_ps", "in all"},
                                           {"cheapest", NULL},
                                           {"cheapest_with_gradients", NULL},
                                           {"reason", NULL},
                                           {NULL, ""}};
  const report_pattern *of = w->of;
  column *cols = arena_dup(w->a, all, sizeof all);
  bool sums = false, grads = false;
  for (u32 i = 0; i < of->n; i++) sums |= of->v[i].sum, grads |= of->v[i].grad_sum;
  for (u32 k = 5; k < 8 && !sums; k++) cols[k].title = NULL;
  for (u32 k = 10; k < 12 && !grads; k++) cols[k].title = NULL;
  report_gap(r);
  report_table(r, "pattern_costs", cols, COST_COLUMNS);
  priced_row(r, w, of->n, grads);
  for (u32 i = 0; i < of->n; i++) {
    if (of->cost[i].divides)
      priced_row(r, w, i, grads);
    else
      unpriced_row(r, w, i);
  }
}

void report_patterns(report *r, arena *a, const report_pattern *of) {
  words w = {.a = a, .of = of};
  if (of->p) w.name = law_letter_names(a, of->l);
  head(r, &w);
  if (!of->p) {
    report_line(r, NULL, "It has no law of its own: what it holds is split, instruction by instruction.");
    return;
  }
  patterns_table(r, &w);
  tensors_table(r, &w);
  legend(r, &w);
  whole_table(r, &w);
  if (of->cost) costs_table(r, &w);
}
