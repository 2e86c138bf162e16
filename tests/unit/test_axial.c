// test_axial.c - rows and columns of tables over a tensor axis: what a block of an Evoformer moves, what a rank computes and
// stores, that it computes the same, what is refused.
#include "split_model.h"

#define FOLD "alphafold2:layers=2,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=16"

static hybrid_opts with(const char *line, bool train) {
  return (hybrid_opts){.s = strategy_of("%s", line),
                       .train = train,
                       .optim = optim_default(OPTIM_ADAM),
                       .keep_gradients = train};
}

static u32 count(const split_model *m, func f, opcode op) {
  const func_info *fi = func_get(m->p, f);
  u32 n = 0;
  for (u32 i = 0; i < fi->body.n; i++) n += fi->body.v[i].op == op;
  return n;
}

// FastFold's communications of a block: exchanges between rows and columns, biases of pairs, one side of the outer product and of
// each triangle gathered or summed. Nothing is summed on all ranks.
TEST(axial_blocks_exchange_rows_for_columns) {
  const hybrid_opts h = with("tp=4 axial", false);
  split_model m = split_open(FOLD, 0, &h);
  REQUIRE(m.p != NULL);
  const func f = {split_block(&m, "evoformer")};
  CHECK_EQ_I64(count(&m, f, OP_all_reduce), 0);
  CHECK(count(&m, f, OP_all_to_all) >= 4 && count(&m, f, OP_all_to_all) <= 6);
  CHECK_EQ_I64(count(&m, f, OP_all_gather), 5);
  CHECK(count(&m, f, OP_reduce_scatter) <= 1);
  split_close(&m);
}

// Every rank computes a quarter of a block and stores all of its weights.
TEST(axial_divides_work_and_no_weights) {
  const hybrid_opts h = with("tp=4 axial", false);
  split_model m = split_open(FOLD, 0, &h);
  REQUIRE(m.p != NULL);
  const func_info *fi = func_get(m.p, (func){split_block(&m, "evoformer")});
  u32 products = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op != OP_matmul && in->op != OP_einsum) continue;
    const layout_info *l = layout_get(m.p->sp, val_type(m.p, fi, in->res)->lay);
    CHECK_MSG(l->nsplit + l->npart > 0, "a product is whole on every rank");
    products++;
  }
  CHECK(products > 20);
  const func_info *main = func_get(m.p, m.p->main);
  for (u32 k = 0; k < main->nparams; k++)
    if (main->params.v[k].r == ROLE_WEIGHT)
      CHECK(!layout_get(m.p->sp, val_type(m.p, main, k + 1)->lay)->nsplit);
  split_close(&m);
}

// Of functions that differ every one exchanges rows for columns. The second one: half of the blocks have a name of their own.
TEST(axial_changes_every_function) {
  const hybrid_opts h = with("tp=4 axial", false);
  split_model m = split_open(FOLD, 0, &h);
  strbuf text = {.a = m.a}, two = {.a = m.a};
  ir_print(m.src, &text);
  const char *from = strstr(sb_str(&text), "func @evoformer"), *to = from ? strstr(from, "\n}\n") : NULL,
             *first = to ? strstr(to, "call @evoformer") : NULL,
             *call = first ? strstr(first + 1, "call @evoformer") : NULL;
  REQUIRE(call != NULL);
  sb_fmt(&two, "%.*scall @other%s\nfunc @other%.*s\n}\n", (int)(call - sb_str(&text)), sb_str(&text),
         call + strlen("call @evoformer"), (int)(to - from - (i64)strlen("func @evoformer")),
         from + strlen("func @evoformer"));
  prog *p = ir_parse(m.c, sym_of(m.c, "two"), sb_str(&two), two.n);
  CHECK_MSG(p != NULL, "%s", diag_render(m.c, m.a));
  REQUIRE(p != NULL);
  planner *pl = planner_new(p);
  const plan *pn = policy_hybrid(pl, m.a, &h);
  REQUIRE(pn != NULL);
  u32 splits[2] = {0};
  for (u32 k = 0; k < pn->ntrans; k++) {
    const char *name = pn->trans[k].fn.i ? sym_str(m.c, func_get(p, pn->trans[k].fn)->name) : "";
    splits[0] += !strcmp(name, "evoformer"), splits[1] += !strcmp(name, "other");
  }
  CHECK(splits[0] > 4 && splits[0] == splits[1]);
  planner_free(pl);
  prog_free(p);
  split_close(&m);
}

TEST(axial_computes_what_the_model_computes) {
  static const char *const lines[] = {"tp=4 axial", "dp=2 tp=2 axial zero=3 mb=2",
                                      "tp=2 pp=2 mb=2 axial recompute=full", "tp=4 axial materialise=p2p",
                                      "dp=2 tp=2 axial zero=1 grads=f32 recompute=selective"};
  for (u32 i = 0; i < COUNT_OF(lines); i += test_step()) {
    const hybrid_opts h = with(lines[i], true);
    split_model m = split_open(FOLD, 0, &h);
    verify_report r = {0};
    CHECK_MSG(m.p && plan_validate(m.p) &&
                  plan_verify(m.pl, m.pn, NULL, &(verify_opts){.seed = 3}, m.a, &r) && r.passed,
              "%s: %s", lines[i], diag_render(m.c, m.a));
    split_close(&m);
  }
}

static void refused(const char *model, const char *line, const char *why, const char *hint) {
  const hybrid_opts h = with(line, false);
  split_model m = split_open(model, 0, &h);
  const char *text = diag_render(m.c, m.a);
  CHECK_MSG(!m.p && strstr(text, why) && strstr(text, hint), "%s", text);
  split_close(&m);
}

TEST(axial_refusals_say_what_works) {
  refused("gpt2:layers=2,hidden=32,heads=4,vocab=64", "tp=2 axial", "normalises a table of rows and columns",
          "hint: leave out axial");
  refused("alphafold2:layers=1,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=16", "tp=3 axial",
          "neither 16 rows nor 16 columns are divisible by tp=3", "hint: tp=2");
}
