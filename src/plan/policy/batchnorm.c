// batchnorm.c - over which samples batch normalisation takes its statistics under a plan.
//
// Idea: as frameworks do. A data rank normalises each microbatch with that microbatch's own statistics, so D
// ranks and K microbatches are D K groups and nothing is communicated. Synchronised over the ranks there are
// K groups, each a whole microbatch: the batch is then dealt out over time first, and the sums of a group's
// statistics are communicated.
#include "plan/plan.h"

u32 policy_batchnorm(const batchnorm_stats *has, const strategy *s) {
  const i64 dp =
      MAX(strategy_data_ranks(s), 1); // replicas of different numbers: policy/replicas.c refuses or sync
  const i64 groups = choice_is(CHOICE_bn, s->bn, "sync") ? s->mb.n : dp * s->mb.n;
  if (has->groups != 1) return 0; // the model has none, or its own groups stay
  return groups > 1 && has->samples % groups == 0 ? (u32)groups : 0; // else policy_batch refuses
}
