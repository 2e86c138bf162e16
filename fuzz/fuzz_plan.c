// fuzz_plan.c - plan files: rejected implies a diagnostic; accepted implies that the plan prints, reads back
// as the same text, and either applies to a verified program or is refused with a diagnostic.
// Every refusal points into the file.
#include "plan/plan.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char model[] =
    "func @layer(%x: f32[8,16], %w: f32[16,16] weight) -> (f32[8,16]) {\n"
    "  %3 = matmul %x, %w : f32[8,16]\n  %4 = relu %3 : f32[8,16]\n  return %4\n}\n"
    "func @main(%x: f32[8,16], %a: f32[16,16] weight, %b: f32[16,16] weight) -> (f32[]) {\n"
    "  %4 = call @layer(%x, %a) : f32[8,16]\n  %5 = call @layer(%4, %b) : f32[8,16]\n"
    "  %6 = reduce_sum %5 {keepdims=0} : f32[]\n  return %6\n}\n";

// Every refusal has a place in the plan's text: its own, or that of a note.
static bool is_located(ctx *c, const char *file) {
  diag_item d = diag_get(c, diag_count(c) - 1);
  for (u32 k = 0; k <= d.notes; k++) {
    const loc at = k ? diag_part(c, diag_count(c) - 1, k - 1).at : d.at;
    const loc_info *l = loc_get(c, at);
    if (l && l->line && !strcmp(sym_str(c, l->file), file)) return true;
  }
  fputs(diag_render(c, ctx_arena(c)), stderr);
  return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "model.heddle"), model, sizeof model - 1);
  if (!p) abort();
  planner *pl = planner_new(p);
  plan *pn = plan_parse(a, planner_source(pl), NULL, sym_of(c, "fuzz.plan"), (const char *)data, size);
  if (!pn != (diag_errors(c) > 0)) abort();
  if (!pn && !is_located(c, "fuzz.plan")) abort();
  u64 ranks = 1;
  for (u32 i = 0; pn && i < pn->naxes; i++) ranks *= pn->axes[i].size < 4096 ? pn->axes[i].size : 4096;
  if (pn && ranks <= 4096) {
    strbuf one = {.a = a}, two = {.a = a};
    plan_print(planner_source(pl), pn, &one);
    plan *again = plan_parse(a, planner_source(pl), NULL, sym_of(c, "again.plan"), sb_str(&one), one.n);
    if (!again) abort();
    plan_print(planner_source(pl), again, &two);
    if (strcmp(sb_str(&one), sb_str(&two))) abort();
    prog *d = plan_apply(pl, pn, NULL);
    if (!d != (diag_errors(c) > 0)) abort();
    if (!d && !is_located(c, "fuzz.plan")) abort();
    if (d && !ir_verify(d)) abort();
    prog_free(d);
  }
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
  return 0;
}
