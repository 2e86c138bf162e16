// tables.c - the tables that Heddle is made of, for people: built-in models, operators, diagnostics. Printed
// from the rows themselves, so they cannot be out of date.
#include "report/report.h"

static cell positive(i64 x) { return x > 0 ? cell_i(CELL_INT, x) : cell_none(); }

void report_families(report *r, arena *a) {
  (void)a;
  static const column cols[] = {{"name", "model"},          {"kind", "kind"},       {"layers", "layers"},
                                {"hidden", "hidden"},       {"heads", "heads"},     {"kv_heads", NULL},
                                {"head_dim", NULL},         {"ffn", "ffn"},         {"vocab", "vocab"},
                                {"positions", "positions"}, {"experts", "experts"}, {"topk", NULL},
                                {"window", NULL},           {"msa", NULL},          {"pair", NULL},
                                {"recycle", NULL},          {"source", NULL}};
  report_table(r, "models", cols, COUNT_OF(cols));
  const front_row *f;
  for (u32 i = 0; (f = front_family_get(i)); i++)
    report_row(r, (cell[]){cell_text(f->name), cell_text(f->kind), positive(f->layers), positive(f->hidden),
                           positive(f->heads), positive(f->kv_heads), positive(f->head_dim), positive(f->ffn),
                           positive(f->vocab), positive(f->positions), positive(f->experts),
                           positive(f->topk), positive(f->window), positive(f->msa), positive(f->pair),
                           positive(f->recycle), cell_text(f->source)});
}

void report_ops(report *r, const ctx *c, arena *a) {
  static const column cols[] = {{"name", "operator"},   {NULL, "operands"},     {"operands_min", NULL},
                                {"operands_max", NULL}, {"results", "results"}, {"kind", NULL},
                                {"about", "about"}};
  report_table(r, "operators", cols, COUNT_OF(cols));
  const u32 own = op_own_count(c);
  for (u32 k = OP_none + 1; k < OP_COUNT + own; k++) {
    const op_row *o = op_row_of(k < OP_COUNT ? (opcode)k : op_own_at(c, k - OP_COUNT));
    const char *n = o->opd_max == 255          ? arena_printf(a, "%u..", o->opd_min)
                    : o->opd_max == o->opd_min ? arena_printf(a, "%u", o->opd_min)
                                               : arena_printf(a, "%u..%u", o->opd_min, o->opd_max);
    report_row(r, (cell[]){cell_text(o->name), cell_text(n), cell_i(CELL_INT, o->opd_min),
                           o->opd_max == 255 ? cell_none() : cell_i(CELL_INT, o->opd_max),
                           o->flags & OPF_MANY_RES ? cell_text("any") : cell_i(CELL_INT, o->res),
                           cell_text(o->flags & OPF_COMM   ? "communication"
                                     : o->flags & OPF_META ? "structure"
                                                           : "compute"),
                           cell_text(o->doc)});
  }
}

void report_op(report *r, arena *a, opcode op) {
  const op_row *o = op_row_of(op);
  strbuf page = {.a = a};
  op_doc(op, &page);
  report_note(r, sb_str(&page));
  report_fact(r, "name", NULL, cell_text(o->name));
  report_fact(r, "about", NULL, cell_text(o->doc));
  report_fact(r, "operands_min", NULL, cell_i(CELL_INT, o->opd_min));
  report_fact(r, "operands_max", NULL, o->opd_max == 255 ? cell_none() : cell_i(CELL_INT, o->opd_max));
  report_fact(r, "results", NULL, o->flags & OPF_MANY_RES ? cell_none() : cell_i(CELL_INT, o->res));
  report_fact(r, "law", NULL, cell_text(o->law));
  report_fact(r, "linear", NULL, cell_text(o->lin));
  report_fact(r, "types", NULL, cell_text(o->types));
  report_fact(r, "attributes", NULL, cell_text(o->attrs));
  report_fact(r, "flops_per_point", NULL, cell_i(CELL_INT, o->flops));
}

// What a choice takes: "1 or more", "gpipe 1f1b".
static const char *choice_values(arena *a, choice_id id) {
  const choice_row *row = choice_get(id);
  strbuf b = {.a = a};
  if (row->kind == CK_COUNT && row->most == CHOICE_MOST)
    return arena_printf(a, "N, %u or more", choice_least(id));
  if (row->kind == CK_COUNT) return arena_printf(a, "N, %u to %u", row->least, row->most);
  if (row->kind == CK_SET) sb_put(&b, "none, ");
  for (u32 i = 0; i < choice_words(id); i++) sb_fmt(&b, "%s%s", i ? ", " : "", choice_word(id, i));
  if (row->kind == CK_LIST) sb_put(&b, ", N/N/..");
  if (row->kind == CK_GRIDS) sb_put(&b, ", NxN+NxN..");
  if (row->suffix) sb_fmt(&b, ", FILE%s", row->suffix);
  return sb_str(&b);
}

void report_choices(report *r, arena *a) {
  static const column cols[] = {{"name", "choice"},     {"option", "option"}, {"values", "values"},
                                {"default", "default"}, {"searched", NULL},   {"needs", "needs"},
                                {"about", "about"}};
  report_table(r, "choices", cols, COUNT_OF(cols));
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const choice_row *row = choice_get(id);
    const char *needs = choice_needs(a, id, UINT32_MAX);
    report_row(r, (cell[]){cell_text(row->name), cell_text(arena_printf(a, "--%s", choice_option(id))),
                           cell_wrapped(choice_values(a, id), 24),
                           cell_text(id == CHOICE_mbs ? NULL : row->dflt),
                           cell_i(CELL_BOOL, *row->search == '*'), cell_wrapped(*needs ? needs : NULL, 16),
                           cell_wrapped(choice_about((choice_id)i), 48)});
  }
  strbuf note = {.a = a};
  sb_put(
      &note,
      "\nA strategy is a line of them, \"dp=2 tp=4 pp=2 mb=32 zero=1\". `heddle plan` takes several values,\n"
      "\"tp=1,2,4 zero=*\", and searches those that are not given of");
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (*choice_get((choice_id)i)->search == '*') sb_fmt(&note, " %s", choice_get((choice_id)i)->name);
  sb_put(&note, ". docs/strategy.md has the rules.\n");
  report_note(r, sb_str(&note));
}

void report_diagnostic(report *r, arena *a, diag_id id) {
  const diag_row *d = diag_row_of(id);
  bool error = d->severity == DIAG_ERROR;
  report_note(
      r, arena_printf(a, "%s (%s): %s\n\n%s\n", d->code, error ? "error" : "warning", d->title, d->text));
  report_fact(r, "code", NULL, cell_text(d->code));
  report_fact(r, "severity", NULL, cell_text(error ? "error" : "warning"));
  report_fact(r, "title", NULL, cell_text(d->title));
  report_fact(r, "explanation", NULL, cell_text(d->text));
}

void report_diagnostics(report *r, arena *a) {
  (void)a;
  static const column cols[] = {
      {"code", "code"}, {"severity", NULL}, {"title", "meaning"}, {"explanation", NULL}};
  report_table(r, "diagnostics", cols, COUNT_OF(cols));
  for (int id = DIAG_NONE + 1; id < DIAG_COUNT; id++) {
    const diag_row *d = diag_row_of((diag_id)id);
    report_row(r, (cell[]){cell_text(d->code), cell_text(d->severity == DIAG_ERROR ? "error" : "warning"),
                           cell_text(d->title), cell_text(d->text)});
  }
}
