// test_tensor.c - tensor parallelism is found from laws alone: on models of several makers it comes out as
// Megatron-LM has it, column then row, two sums a layer.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

typedef struct {
  u32 sums, gathers, others; // communication inside functions that main calls: all-reduces, all-gathers
  double work, whole;        // flops of products with weights on one rank, and of one device
} split;

static double products(const prog *p, bool local) {
  double sum = 0;
  arena *a = arena_new();
  for (u32 f = 1; f < p->funcs.n; f++) {
    const func_info *fi = p->funcs.v[f];
    for (u32 k = 0; k < fi->body.n; k++) {
      const instr *i = &fi->body.v[k];
      if (!(op_row_of(i->op)->flags & OPF_GEMM)) continue;
      u32 n = instr_nopd(fi, i), nres = i->nres;
      shape opd[4], res[OP_RES_MAX];
      bool weight = false;
      for (u32 j = 0; j < n && j < 4; j++) {
        value v = opd_of(fi, i, j);
        const type_info *t = val_type(p, fi, v);
        opd[j] = t->s;
        weight |= v <= fi->nparams && fi->params.v[v - 1].r == ROLE_WEIGHT;
        if (local) layout_local_dims(p->sp, t->lay, t->s.nd, t->s.dim, &(coords){0}, opd[j].dim);
      }
      const law *l = op_law(p->c, a, i->op, attrs_get(p, i->at), n, opd, &nres, res, i->where);
      if (weight && l) sum += op_flops(i->op, attrs_get(p, i->at), l);
    }
  }
  arena_free(a);
  return sum;
}

// The block of a model (the function that is called most) split over `ways` ranks, forward.
static bool split_model(const char *model, const front_opts *fo, u32 ways, split *out) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  hybrid_opts h = {.s = strategy_of("tp=%u", ways)};
  *out = (split){0};
  prog *src = front_load(c, model, fo);
  if (src && fo->ndims) pass_outline(src);
  planner *pl = src ? planner_new(src) : NULL;
  plan *pn = pl ? policy_hybrid(pl, a, &h) : NULL;
  prog *p = pn ? plan_apply(pl, pn, NULL) : NULL;
  if (p) {
    out->whole = products(planner_source(pl), false);
    out->work = products(p, true);
    u32 *calls = ZNEWN(a, u32, p->funcs.n), most = 1;
    for (u32 f = 1; f < p->funcs.n; f++)
      for (u32 k = 0; k < p->funcs.v[f]->body.n; k++)
        if (p->funcs.v[f]->body.v[k].op == OP_call) calls[p->funcs.v[f]->body.v[k].callee.i]++;
    for (u32 f = 1; f < p->funcs.n; f++)
      if (calls[f] > calls[most]) most = f;
    const func_info *fi = p->funcs.v[most];
    for (u32 k = 0; k < fi->body.n; k++) {
      u16 op = fi->body.v[k].op;
      if (op == OP_all_reduce)
        out->sums++;
      else if (op == OP_all_gather)
        out->gathers++;
      else if (op_row_of(op)->flags & OPF_COMM && op != OP_shard)
        out->others++;
    }
    prog_free(p);
  } else
    CHECK(diag_errors(c) > 0);
  planner_free(pl);
  if (src) prog_free(src);
  ctx_free(c);
  return p != NULL;
}

TEST(tensor_is_megatrons) {
  static const front_dim dims[] = {{"batch", 2}, {"sequence", 16}};
  const front_opts onnx = {.ndims = 2, .dims = dims}, family = {.batch = 2, .seq = 16};
  static const struct {
    const char *model;
    u32 ways;
  } cases[] = {{"examples/gpt2.onnx", 4}, // fused QKV, single steps as PyTorch exports them
               {"gpt2:layers=3,hidden=64,heads=8,vocab=512", 4},
               {"gpt2:layers=3,hidden=64,heads=8,vocab=509", 8}, // a vocabulary that does not divide
               {"llama2-7b:layers=3,hidden=64,heads=8,vocab=512", 4},
               {"bert-base:layers=3,hidden=64,heads=8,vocab=512", 2}};
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    split s;
    bool ok = split_model(cases[k].model, k ? &family : &onnx, cases[k].ways, &s);
    if (!CHECK_MSG(ok, "%s", cases[k].model)) continue;
    CHECK_MSG(s.sums == 2 && !s.gathers && !s.others, "%s: %u all-reduces, %u all-gathers, %u others a layer",
              cases[k].model, s.sums, s.gathers, s.others);
    CHECK_MSG(s.work < 1.03 * s.whole / cases[k].ways, "%s: %g of %g flops on each of %u ranks",
              cases[k].model, s.work, s.whole, cases[k].ways);
  }
}

// Nothing but a vocabulary could be split, unevenly: that is not what was asked for.
TEST(tensor_needs_products) {
  split s;
  CHECK(!split_model("gpt2:layers=2,hidden=64,heads=4,vocab=1001", &(front_opts){.batch = 2, .seq = 16}, 5,
                     &s));
}
