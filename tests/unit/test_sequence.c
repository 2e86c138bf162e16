// test_sequence.c - sequence parallelism beside tensor parallelism, held against Korthikanti et al. 2022
// (section 4.2): weights lie as without it, an all_reduce is a reduce_scatter and an all_gather, and what is
// saved between the matmuls is a piece of the sequence.
#include "split_model.h"
#include <math.h>

enum { WAYS = 4 };

static split_model open_with(const char *name, u32 dims, bool sequence, u32 ways) {
  hybrid_opts h = {.s = strategy_of("tp=%u%s", ways, sequence ? " sp" : ""), .train = true};
  return split_open(name, dims, &h);
}

// What the forward of a block returns: its result and all that is saved for the backward.
static double saved_bytes(const split_model *m, u32 block) {
  const func_info *f = m->p->funcs.v[block];
  double sum = 0;
  for (u32 k = 0; k < f->rets.n; k++) sum += local_bytes(m->p, f, f->rets.v[k]);
  return sum;
}

typedef struct {
  const char *model, *block;
  u32 dims;
  u32 again; // gathers of the backward: the input of every column (of experts: their tokens are saved split)
  u32 saved; // activations of sequence x hidden that a layer saves between matmuls; 0: more than 4
} family;
static const family families[] = {
    {"gpt2:layers=3,hidden=64,heads=8,vocab=512", "layer", 0, 2, 4},
    {"gpt2:layers=3,hidden=64,heads=8,vocab=509", "layer", 0, 2, 4},
    {"llama2-7b:layers=3,hidden=64,heads=8,vocab=512", "layer", 0, 2, 4},
    {"llama3-8b:layers=3,hidden=128,heads=16,kv_heads=8,ffn=176,vocab=512", "layer", 0, 2, 4},
    {"bert-base:layers=3,hidden=64,heads=8,vocab=512", "layer", 0, 2, 4},
    {"t5-small:layers=3,hidden=64,heads=8,vocab=512", "encoder", 0, 2, 4},
    // what the encoder made is gathered in every layer, forward and backward, as Megatron does
    {"t5-small:layers=3,hidden=64,heads=8,vocab=512", "decoder", 0, 3 + 2, 6},
    {"moe-8x125m:layers=4,hidden=64,heads=8,vocab=512", "layer", 0, 1,
     0}, // and of the tokens sent to experts
    {"tests/golden/plan/parallel_block.heddle", "layer", 0, 1, 2},
    {"examples/gpt2.onnx", "block", 2, 2, 4},
};

// Weights are split as without the option, one by one.
static void same_weights(const family *f, const split_model *tp, const split_model *sp) {
  const func_info *a = func_get(tp->p, tp->p->main), *b = func_get(sp->p, sp->p->main);
  CHECK_EQ_I64(a->nparams, b->nparams);
  for (u32 i = 0; i < a->nparams; i++)
    if (a->params.v[i].r == ROLE_WEIGHT)
      CHECK_MSG(local_bytes(tp->p, a, i + 1) == local_bytes(sp->p, b, i + 1), "%s: %s has %g bytes, not %g",
                f->model, sym_str(tp->c, val(a, i + 1)->name), local_bytes(sp->p, b, i + 1),
                local_bytes(tp->p, a, i + 1));
}

static void check_block(const family *f, const split_model *tp, const split_model *sp) {
  char fwd[32], bwd[32];
  snprintf(fwd, sizeof fwd, "%s.fwd", f->block), snprintf(bwd, sizeof bwd, "%s.bwd", f->block);
  u32 tf = split_block(tp, fwd), tb = split_block(tp, bwd), sf = split_block(sp, fwd),
      sb = split_block(sp, bwd);
  double whole = local_bytes(tp->p, tp->p->funcs.v[tf], 1); // sequence x hidden
  double gather = whole * (WAYS - 1) / WAYS;
  traffic t = split_traffic(tp, tf, WAYS), tr = split_traffic(tp, tb, WAYS);
  traffic s = split_traffic(sp, sf, WAYS), sr = split_traffic(sp, sb, WAYS);
  // experts: probabilities are gathered and the gradient of the router is summed, a few numbers a token
  double few = strstr(f->model, "moe") ? 0.2 * gather : 0;
  CHECK_MSG(s.bytes[OP_all_reduce] + sr.bytes[OP_all_reduce] <= few, "%s: %u + %u all_reduces left", f->model,
            s.n[OP_all_reduce], sr.n[OP_all_reduce]);
  CHECK_MSG(s.n[OP_reduce_scatter] == t.n[OP_all_reduce], "%s: %u reduce_scatters for %u all_reduces",
            f->model, s.n[OP_reduce_scatter], t.n[OP_all_reduce]);
  double more = s.all + sr.all - t.all - tr.all - f->again * gather;
  CHECK_MSG(more >= -1 && more <= few + 1, "%s: %g bytes instead of %g and %u gathers of %g", f->model,
            s.all + sr.all, t.all + tr.all, f->again, gather);
  double less = saved_bytes(tp, tf) - saved_bytes(sp, sf);
  CHECK_MSG(f->saved ? fabs(less - f->saved * gather) < 1 : less > 4 * gather,
            "%s: saves %g bytes less, not %u of %g", f->model, less, f->saved, gather);
}

TEST(sequence_is_megatrons) {
  for (u32 k = 0; k < COUNT_OF(families); k++) {
    const family *f = &families[k];
    split_model tp = open_with(f->model, f->dims, false, WAYS), sp = open_with(f->model, f->dims, true, WAYS);
    CHECK_MSG(tp.p && sp.p, "%s: %s", f->model, diag_render(sp.c, sp.a));
    if (tp.p && sp.p) {
      same_weights(f, &tp, &sp);
      check_block(f, &tp, &sp);
    }
    split_close(&tp), split_close(&sp);
  }
}

// What Korthikanti et al. count for a layer of a GPT, s b h (34 + 5 a s / h) bytes in half precision, without the two masks
// of s b h, and the mask of scores and what it leaves of them: s b h (32 + 2 a s / h). Here in f32. What is selected is
// computed again from queries, keys and values to the input of the projection.
TEST(sequence_layer_keeps_what_is_published_but_for_dropout) {
  static const struct {
    const char *line;
    double kept, scores; // in units of s b h and of s b h a s / h bytes, in half precision
  } cases[] = {{"recompute=none", 32, 2}, {"recompute=selective", 30, 0}, {"recompute=full", 2, 0}};
  enum { B = 4, S = 16, H = 64, HEADS = 8, F32 = 2 }; // F32: over the bytes of half precision
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    hybrid_opts h = {.s = strategy_of("%s", cases[k].line), .train = true};
    split_model m = split_open("gpt2:layers=3,hidden=64,heads=8,vocab=512", 0, &h);
    REQUIRE(m.p != NULL);
    const double unit = (double)S * B * H, scores = (double)HEADS * S / H;
    // its input, which the layer before returns, in place of its result, which is of the same size
    const double kept = saved_bytes(&m, split_block(&m, cases[k].line[10] == 'f' ? "layer" : "layer.fwd"));
    CHECK_CLOSE(kept, F32 * unit * (cases[k].kept + cases[k].scores * scores), 0);
    split_close(&m);
  }
}

TEST(sequence_refuses) {
  static const struct {
    const char *model;
    u32 ways;
    const char *why;
  } cases[] = {
      {"gpt2:layers=2,hidden=96,heads=6,vocab=96", 3, "sequence length 16 is not divisible by tp=3"},
      {"vit-base:layers=2,hidden=64,heads=8", 4, "no input has a sequence dimension that every layer keeps"},
  };
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    split_model m = open_with(cases[k].model, 0, true, cases[k].ways);
    CHECK_MSG(!m.p && strstr(diag_render(m.c, m.a), cases[k].why), "%s: %s", cases[k].model,
              m.p ? "not refused" : diag_render(m.c, m.a));
    split_close(&m);
  }
}
