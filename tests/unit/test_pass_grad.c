// test_pass_grad.c - gradients by structure: what is saved, recomputed, carried and accumulated. The numbers
// are tested in tests/prop/grad.c.
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"

static const char *const models[] = {
    "mlp-xs:layers=3,hidden=16",
    "gpt2:layers=2,hidden=32,heads=4,vocab=64,positions=16",
    "bert-base:layers=2,hidden=32,heads=4,vocab=64,positions=16",
    "llama2-70b:layers=2,hidden=32,heads=4,kv_heads=2,ffn=48,vocab=64,positions=16",
    "moe-8x125m:layers=2,hidden=32,heads=4,vocab=64,positions=16,experts=4",
    "t5-small:layers=2,hidden=32,heads=4,head_dim=8,vocab=64,positions=16",
    "vit-base:layers=2,hidden=32,heads=4,positions=32",
    "resnet50:hidden=8,positions=32",
    "vgg16:hidden=4,positions=64,ffn=16",
};

static prog *model(ctx *c, const char *name, bool loss) {
  front_opts o = {.batch = 2, .loss = loss};
  return front_family(c, name, &o);
}

static void show(ctx *c) {
  if (!diag_count(c)) return;
  arena *a = arena_new();
  CHECK_MSG(false, "%s", diag_render(c, a));
  arena_free(a);
}

TEST(train_verifies) {
  for (u32 k = 0; k < COUNT_OF(models); k++)
    for (u32 loss = 0; loss < 2; loss++) {
      ctx *c = ctx_new();
      prog *p = model(c, models[k], loss);
      if (CHECK(p != NULL)) {
        optim_opts o = optim_default(k % 2 ? OPTIM_ADAM : OPTIM_SGD);
        CHECK(pass_train(p, &o, true));
        CHECK(ir_verify(p));
        prog_free(p);
      }
      show(c);
      ctx_free(c);
    }
}
