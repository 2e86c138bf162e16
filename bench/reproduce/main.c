// main.c - published figures beside ours. Arguments choose: best, golden, grids, distsim, whale, sailor, amp,
// planners, dpro, materialise, superscaler, megatron; none: all. What needs data that is not there is skipped and says so. The last line sums up; the
// exit status is 0 also where a demand is missed: these are findings, not tests.
#include "reproduce.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(ctx *c, verdict *v);
  } part[] = {{"best", reproduce_best},
              {"grids", reproduce_grids},
              {"golden", reproduce_golden},
              {"distsim", reproduce_distsim},
              {"whale", reproduce_whale},
              {"sailor", reproduce_sailor},
              {"amp", reproduce_amp},
              {"planners", reproduce_planners},
              {"dpro", reproduce_dpro},
              {"materialise", reproduce_materialise},
              {"superscaler", reproduce_superscaler},
              {"megatron", reproduce_megatron}};
  ctx *c = ctx_new();
  verdict v = {0};
  for (u32 i = 0; i < COUNT_OF(part); i++) {
    bool chosen = argc < 2;
    for (int k = 1; k < argc; k++) chosen |= !strcmp(argv[k], part[i].name);
    if (chosen) part[i].run(c, &v);
  }
  ctx_free(c);
  printf("%u demands met, %u missed, %u comparisons skipped\n", v.met, v.missed, v.skipped);
}
