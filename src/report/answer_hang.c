// answer_hang.c - why a job does not go on: the finding that came first, all findings, where each rank stands.
#include "report/report.h"

enum { MORE = 8 }; // findings said in full after the first

static const char *group_text(arena *a, ctx *c, sym name, sym desc) {
  const char *d = sym_str(c, desc);
  if (!name.i) return NULL;
  return *d && strcmp(d, "undefined") && name.i != desc.i ? arena_printf(a, "%s (%s)", sym_str(c, name), d)
                                                          : sym_str(c, name);
}
static cell cell_sym(ctx *c, sym s) { return cell_text(s.i ? sym_str(c, s) : NULL); }
static cell known(cell_kind k, i64 x) { return x < 0 ? cell_none() : cell_i(k, x); }

static cell ranks_list(arena *a, const hang_ranks *r) {
  i64 *v = NEWN(a, i64, r->n);
  for (u32 k = 0; k < r->n; k++) v[k] = r->v[k];
  return cell_dims(v, r->n);
}

static void add_facts(report *r, arena *a, const hang *h) {
  report_fact(r, "verdict", NULL,
              cell_text(h->nfound   ? h->found[0].text
                        : h->ncomms ? "no process is dead and no rank is behind"
                                    : "nothing is wrong in what the ranks recorded"));
  report_fact(r, "dumps", NULL, cell_i(CELL_INT, h->dumps));
  report_fact(r, "ranks", NULL, cell_i(CELL_INT, h->ranks));
  report_fact(r, "ranks_without_dump", NULL, ranks_list(a, &h->no_dump));
  report_fact(r, "groups", NULL, cell_i(CELL_INT, h->groups));
  report_fact(r, "collectives", NULL, cell_i(CELL_INT, h->collectives));
  report_fact(r, "collectives_matched", NULL, cell_i(CELL_INT, h->matched));
  report_fact(r, "messages", NULL, cell_i(CELL_INT, h->messages));
  report_fact(r, "entries_skipped", NULL, cell_i(CELL_INT, h->skipped));
}

static void add_counts(report *r, arena *a, const hang *h) {
  if (h->dumps) {
    report_line(r, "dumps", "%u of %u ranks%s%s", h->dumps, h->ranks,
                h->no_dump.n == 1 ? "; none of rank "
                : h->no_dump.n    ? "; none of ranks "
                                  : "",
                hang_ranks_text(a, &h->no_dump, 12));
    report_line(r, "recorded", "%u collectives in %u groups, %u of them alike on all ranks%s", h->collectives,
                h->groups, h->matched, h->messages ? arena_printf(a, "; %u messages", h->messages) : "");
  }
  if (h->ncomms) report_line(r, "RAS", "%u communicators", h->ncomms);
}

static void add_findings(report *r, ctx *c, arena *a, const hang *h, u32 top) {
  static const column cols[] = {{"kind", "finding"},   {"group", NULL},        {NULL, "group"},
                                {"description", NULL}, {"collective", "what"}, {"number", "number"},
                                {"ranks", NULL},       {NULL, "ranks"},        {"others", NULL},
                                {NULL, "others"},      {"size_bytes", "size"}, {"at", "last at"},
                                {"follows", NULL},     {"known_as", NULL},     {"text", NULL}};
  report_table(r, "findings", cols, COUNT_OF(cols));
  for (u32 k = 0; k < h->nfound; k++) {
    const hang_finding *x = &h->found[k];
    const hang_kind_row *kind = &hang_kind_rows[x->kind];
    report_row(r, (cell[]){cell_text(kind->name), cell_sym(c, x->group),
                           cell_text(group_text(a, c, x->group, x->desc)), cell_sym(c, x->desc),
                           cell_sym(c, x->op), known(CELL_INT, x->seq), ranks_list(a, &x->who),
                           cell_text(hang_ranks_text(a, &x->who, 6)), ranks_list(a, &x->wait),
                           cell_text(hang_ranks_text(a, &x->wait, 6)), known(CELL_BYTES, x->bytes),
                           cell_sym(c, x->at), cell_i(CELL_BOOL, x->follows),
                           cell_text(*kind->pytorch ? kind->pytorch : NULL), cell_text(x->text)});
  }
  report_top(r, top ? top : 20);
}

static void add_stands(report *r, ctx *c, arena *a, const hang *h, u32 top) {
  static const column cols[] = {{NULL, "ranks"},
                                {"ranks", NULL},
                                {"group", NULL},
                                {NULL, "group"},
                                {"description", NULL},
                                {"completed", "completed"},
                                {"started", "started"},
                                {"scheduled", "scheduled"},
                                {"collective", "in"},
                                {"number", NULL},
                                {"state", "state"},
                                {"size_bytes", "size"},
                                {"at", "at"}};
  report_table(r, "stands", cols, COUNT_OF(cols));
  for (u32 k = 0; k < h->nstands; k++) {
    const hang_stand *s = &h->stand[k];
    report_row(r, (cell[]){cell_text(hang_ranks_text(a, &s->ranks, 6)), ranks_list(a, &s->ranks),
                           cell_sym(c, s->group), cell_text(group_text(a, c, s->group, s->desc)),
                           cell_sym(c, s->desc), known(CELL_INT, s->completed), known(CELL_INT, s->started),
                           known(CELL_INT, s->scheduled), cell_sym(c, s->op), known(CELL_INT, s->seq),
                           cell_text(s->state), known(CELL_BYTES, s->bytes), cell_sym(c, s->at)});
  }
  report_top(r, top ? top : 20);
}

static void add_communicators(report *r, ctx *c, const hang *h, u32 top) {
  static const column cols[] = {
      {"communicator", "communicator"}, {"size", "ranks"},  {"answered", "answered"},
      {"missing", "missing"},           {"state", "state"}, {"file", NULL}};
  report_table(r, "communicators", cols, COUNT_OF(cols));
  for (u32 k = 0; k < h->ncomms; k++) {
    const hang_comm *x = &h->comm[k];
    report_row(r, (cell[]){cell_sym(c, x->hash), cell_i(CELL_INT, x->size), cell_i(CELL_INT, x->answered),
                           cell_i(CELL_INT, x->missing), cell_text(x->state), cell_sym(c, x->file)});
  }
  report_top(r, top ? top : 20);
}

bool answer_hang(report *r, ctx *c, arena *a, const trace_ask *q) {
  const hang *h = hang_find(c, a, q->npaths, q->path);
  if (!h) return false;
  add_facts(r, a, h);
  report_note(r, arena_printf(a, "%s\n",
                              h->nfound   ? h->found[0].text
                              : h->ncomms ? "no process is dead and no rank is behind"
                                          : "nothing is wrong in what the ranks recorded"));
  report_gap(r);
  add_counts(r, a, h);
  for (u32 k = 1; k < h->nfound && k <= MORE; k++)
    report_line(r, k == 1 ? "also" : "", "%s%s", h->found[k].text, h->found[k].follows ? " (follows)" : "");
  if (h->nfound > MORE + 1) report_line(r, "", "and %u more", h->nfound - MORE - 1);
  if (h->nfound) report_gap(r);
  add_findings(r, c, a, h, q->top);
  if (h->nstands) report_gap(r);
  add_stands(r, c, a, h, q->top);
  if (h->ncomms) report_gap(r);
  add_communicators(r, c, h, q->top);
  return true;
}
