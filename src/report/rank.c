// rank.c - what one rank of a distributed program runs: its program (plan/lower.c), with a comment that says
// where the rank is and how much it does.
#include "report/report.h"

enum { COMPUTES, COMMUNICATES, STRUCTURE, KINDS };

// Instructions that one run executes, by kind. Callees stand before their callers.
static void count_executed(const prog *p, arena *a, i64 total[KINDS]) {
  i64(*of)[KINDS] = (i64(*)[KINDS])ZNEWN(a, i64, KINDS * p->funcs.n);
  for (u32 f = 1; f < p->funcs.n; f++) {
    const func_info *fi = func_get(p, (func){f});
    for (u32 k = 0; k < fi->body.n; k++) {
      const instr *i = &fi->body.v[k];
      u32 flags = op_row_of((opcode)i->op)->flags;
      if (i->op != OP_call)
        of[f][flags & OPF_COMM ? COMMUNICATES : flags & OPF_META ? STRUCTURE : COMPUTES]++;
      for (u32 j = 0; j < KINDS && i->op == OP_call; j++) of[f][j] = add_sat(of[f][j], of[i->callee.i][j]);
    }
  }
  memcpy(total, of[p->main.i], sizeof of[0]);
}

// "@m[pp=0,dp=1,tp=1]", of every mesh that the rank is on.
static const char *place_of(arena *a, const prog *p, u32 rank) {
  const space *sp = p->sp;
  strbuf b = {.a = a};
  for (u32 k = 1; k <= mesh_count(sp); k++) {
    const mesh_info *m = mesh_get(sp, (mesh){k});
    group g = group_all(p->sp, (mesh){k});
    int member = group_member(sp, g, rank);
    if (member < 0) continue;
    sb_fmt(&b, "%s@%s", b.n ? " " : "", sym_str(p->c, m->name));
    for (u32 x = 0; x < m->naxes; x++)
      sb_fmt(&b, "%s%s=%u", x ? "," : "[", sym_str(p->c, axis_get(sp, m->axis[x])->name),
             group_coord(sp, g, (u32)member, m->axis[x]));
    if (m->naxes) sb_char(&b, ']');
  }
  return sb_str(&b);
}

bool report_rank(report *r, arena *a, const prog *p, u32 rank, u32 nranks) {
  if (!nranks) {
    diag(p->c, E_USAGE, (loc){0}, "the program is not distributed: it has no mesh");
    diag_hint(p->c, "give it a plan, such as --plan best.plan or --strategy dp=2");
    return false;
  }
  prog *one = plan_lower(p, rank);
  if (!one) return false;
  u32 functions = one->funcs.n - 1, instructions = 0;
  for (u32 f = 1; f < one->funcs.n; f++) instructions += func_get(one, (func){f})->body.n;
  static const char *const kind[KINDS] = {"computation", "communication", "structure"};
  i64 n[KINDS];
  count_executed(one, a, n);
  const char *place = place_of(a, one, rank);
  strbuf text = {.a = a};
  sb_fmt(&text, "# rank %u of %u: %s\n# %s; one run executes ", rank, nranks, place,
         text_agree(arena_printf(a, "%u instructions in %u functions", instructions, functions)));
  for (u32 k = 0; k < KINDS; k++)
    sb_fmt(&text, "%s of %s%s",
           n[k] == INT64_MAX ? "more than 9.2e18" : arena_printf(a, "%lld", (long long)n[k]), kind[k],
           k + 1 < KINDS ? ", " : "\n");
  ir_print(one, &text);
  prog_free(one);
  report_fact(r, "rank", NULL, cell_i(CELL_INT, rank));
  report_fact(r, "ranks", NULL, cell_i(CELL_INT, nranks));
  report_fact(r, "place", NULL, cell_text(place));
  report_fact(r, "functions", NULL, cell_i(CELL_INT, functions));
  report_fact(r, "instructions", NULL, cell_i(CELL_INT, instructions));
  report_fact(r, "computations", NULL, cell_i(CELL_INT, n[COMPUTES]));
  report_fact(r, "communications", NULL, cell_i(CELL_INT, n[COMMUNICATES]));
  report_fact(r, "structural", NULL, cell_i(CELL_INT, n[STRUCTURE]));
  report_fact(r, "text", NULL, cell_text(sb_str(&text)));
  report_note(r, sb_str(&text));
  return true;
}
