// splits_rules.h - rules about splits, from a YAML file (docs/auto.md).
#ifndef HEDDLE_PLAN_SPLITS_RULES_H
#define HEDDLE_PLAN_SPLITS_RULES_H
#include "plan/splits_ops.h"

bool splits_rules_allow(void *rules, const splits_instr *x, const splits_way *w,
                        u32 ways); // a splits_allowed
// Says (E_RULES) why an operator has no way under the rules, at the rule, with what it could be without them.
void splits_rules_tell(const splits_rules *r, const splits_refusal *f);
u32 splits_rules_again(const splits_rules *r, arena *a,
                       const struct plan_again **out); // what is computed again

// The name that a pattern was most likely meant to be: one that has its parts, between / . : and *, in the same order, each but for a third of
// its letters, or the function of what is named as the first of them; else the one that is the fewest letters away. Offer all names that there are.
typedef struct {
  near_name near;
  const char *function; // of what is named; NULL: none
  const char *name;     // with all parts, the fewest letters apart
  u32 apart;
} splits_meant;
splits_meant splits_meant_by(const char *pattern);
bool splits_offer(void *meant, const char *name);      // false
const char *splits_nearest(const splits_meant *meant); // NULL: there is none
#endif
