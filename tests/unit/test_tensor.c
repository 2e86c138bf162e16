// test_tensor.c - tensor parallelism is found from laws alone: on models of several makers it comes out as
// Megatron-LM has it, column then row, two sums a layer and pass; what cannot be divided is refused.
#include "split_model.h"

typedef struct {
  const char *model, *block; // block: how its function is called
  u32 dims, sums;            // sums of activations a layer and pass
} family;
static const family families[] = {
    {"gpt2:layers=3,hidden=64,heads=8,vocab=512", "layer", 0, 2},
    {"gpt2:layers=3,hidden=64,heads=8,vocab=509", "layer", 0, 2}, // a vocabulary that does not divide
    {"bert-base:layers=3,hidden=64,heads=8,vocab=512", "layer", 0, 2},
    {"llama2-7b:layers=3,hidden=64,heads=8,ffn=176,vocab=512", "layer", 0, 2},
    {"llama3-8b:layers=3,hidden=128,heads=16,kv_heads=8,ffn=176,vocab=512", "layer", 0, 2}, // grouped queries
    {"t5-small:layers=3,hidden=64,heads=8,vocab=512", "encoder", 0, 2},
    {"t5-small:layers=3,hidden=64,heads=8,vocab=512", "decoder", 0, 3}, // attention to the encoder
    {"moe-8x125m:layers=4,hidden=64,heads=8,vocab=512", "layer", 0, 2},
    {"moe-8x125m:layers=2,hidden=768,heads=16,vocab=512", "layer", 0, 2},
    {"vit-base:layers=3,hidden=64,heads=8", "layer", 0, 2},
    {"mbart-large:layers=3,hidden=64,heads=8,vocab=512", "encoder", 0, 2},
    {"mbart-large:layers=3,hidden=64,heads=8,vocab=512", "decoder", 0, 3},
    {"swin-t:layers=12,hidden=64,heads=8", "stage1", 0, 2}, // a bias of every head from a table of distances
    {"swin-t:layers=12,hidden=64,heads=8", "stage3.moved", 0, 2},
    {"examples/gpt2.onnx", "block", 2, 2},             // fused QKV, single steps as PyTorch exports them
    {"tests/golden/onnx/encoder.onnx", "block", 1, 2}, // nn.TransformerEncoderLayer
};

TEST(tensor_is_megatrons) {
  for (u32 k = 0; k < COUNT_OF(families); k++)
    for (u32 ways = 2; ways <= 8; ways *= 2) {
      const family *f = &families[k];
      if (ways == 8 && !strcmp(f->block, "block") && f->dims == 2) continue; // 12 heads
      hybrid_opts h = {.s = strategy_of("tp=%u", ways), .train = true};
      split_model m = split_open(f->model, f->dims, &h);
      CHECK_MSG(m.p != NULL, "%s: %s", f->model, diag_render(m.c, m.a));
      bool moe = strstr(f->model, "moe") != NULL;
      for (u32 pass = 0; m.p && pass < 2; pass++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%s", f->block, pass ? "bwd" : "fwd");
        u32 block = split_block(&m, name);
        traffic t = split_traffic(&m, block, ways);
        double unit = 2.0 * (ways - 1) / ways * local_bytes(m.p, m.p->funcs.v[block], 1);
        // The gradient of the router's weights is one number a token and choice, summed over the experts.
        CHECK_MSG(t.n[OP_all_reduce] == f->sums + (moe && pass) &&
                      t.n[OP_all_gather] + t.n[OP_all_to_all] == 0,
                  "%s over %u, %s: %u sums, %u gathers", f->model, ways, name, t.n[OP_all_reduce],
                  t.n[OP_all_gather]);
        if (!pass) CHECK_CLOSE(t.all, f->sums * unit, 1e-9);
        double work = split_work(&m, block, false), whole = split_work(&m, block, true);
        CHECK_MSG(work < whole / ways * (moe ? 1.05 : 1.001), "%s over %u, %s: %g of %g flops", f->model,
                  ways, name, work, whole);
      }
      split_close(&m);
    }
}

// An Evoformer block takes a sum for each of its attentions and transitions; the outer product mean has two operands
// whose channels would both be split over the axis, so it gathers one. Triangle updates normalise the channels
// that they multiply along, and stay whole where they are small.
TEST(tensor_splits_evoformers) {
  static const u32 want[2][3] = {{7, 1, 0}, {8, 1, 2}}; // pass: sums, gathers and exchanges, sums into pieces
  hybrid_opts h = {.s = strategy_of("tp=2"), .train = true};
  split_model m = split_open("alphafold2:layers=3,hidden=64,heads=8,pair=64,msa=8", 0, &h);
  REQUIRE(m.p != NULL);
  for (u32 pass = 0; pass < 2; pass++) {
    traffic t = split_traffic(&m, split_block(&m, pass ? "evoformer.bwd" : "evoformer.fwd"), 2);
    CHECK_EQ_I64(t.n[OP_all_reduce], want[pass][0]);
    CHECK_EQ_I64(t.n[OP_all_gather] + t.n[OP_all_to_all], want[pass][1]);
    CHECK_EQ_I64(t.n[OP_reduce_scatter], want[pass][2]);
  }
  split_close(&m);
}

// What is refused names the weight, the extent and the degree.
TEST(tensor_refuses) {
  static const struct {
    const char *model;
    u32 ways;
    const char *why;
  } cases[] = {
      {"gpt2-xl:layers=2", 8,
       "attn.qkv of 1600 x 4800 cannot be split 8 ways: 4800 = 3 x 25 x 64, and 25 is not"},
      {"gpt2:layers=2,hidden=64,heads=4,vocab=1001", 5,
       "64 x 192 cannot be split 5 ways: 192 = 3 x 4 x 16, and 4"},
      {"gpt2:layers=2,hidden=48,heads=4,ffn=30,vocab=64", 4,
       "mlp.up of 48 x 30 cannot be split 4 ways: 30 is not"},
      {"llama2-7b:layers=2,hidden=64,heads=8,kv_heads=2,ffn=64,vocab=64", 4, "and 2 is not divisible by 4"},
      {"gpt2:layers=2,hidden=48,heads=6,vocab=64", 3, NULL}, // 3 is no index of heads, but 6 heads divide
  };
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    hybrid_opts h = {.s = strategy_of("tp=%u", cases[k].ways)};
    split_model m = split_open(cases[k].model, 0, &h);
    const char *said = diag_render(m.c, m.a);
    if (cases[k].why)
      CHECK_MSG(!m.p && strstr(said, cases[k].why), "%s: %s", cases[k].model, m.p ? "not refused" : said);
    else
      CHECK_MSG(m.p != NULL, "%s: %s", cases[k].model, said);
    split_close(&m);
  }
}

// By rule: a small vocabulary is split over what it sums over, one that is large unevenly, and what is small
// beside a rank's share stays whole.
TEST(tensor_leaves_by_rule) {
  static const struct {
    const char *model;
    u32 ways;
    double most; // of the work of all matmuls, times ways
  } cases[] = {
      {"gpt2:layers=2,hidden=64,heads=4,vocab=517", 4, 1.01}, // uneven
      {"gpt2:layers=2,hidden=64,heads=4,vocab=101", 4, 1.01}, // by what it sums over
      {"resnet50:hidden=16,vocab=16", 4, 1.01},               // blocks whose channels arrive whole, or split
      {"vit-base:layers=4,hidden=64,heads=4,vocab=7", 4, 0},  // patches and the head stay whole
  };
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    hybrid_opts h = {.s = strategy_of("tp=%u", cases[k].ways)};
    split_model m = split_open(cases[k].model, 0, &h);
    CHECK_MSG(m.p != NULL, "%s: %s", cases[k].model, diag_render(m.c, m.a));
    double work = m.p ? split_work(&m, 0, false) : 0, whole = m.p ? split_work(&m, 0, true) : 0;
    if (m.p && !cases[k].most) {
      u32 main = split_block(&m, "stage");
      CHECK_CLOSE(split_work(&m, main, false), split_work(&m, main, true), 1e-9);
      whole -= split_work(&m, main, true), work -= split_work(&m, main, true);
    }
    CHECK_MSG(work < MAX(cases[k].most, 1.001) * whole / cases[k].ways, "%s: %g of %g flops on a rank",
              cases[k].model, work, whole);
    split_close(&m);
  }
}
