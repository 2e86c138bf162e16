// sync.c - how gradients of data ranks meet: summed on all of them, or on a server of each weight. Not how they are
// stored (policy_zero).
#include "plan/plan.h"

void policy_sync(plan *pn, u8 axis, const strategy *s) {
  if (choice_is(CHOICE_sync, s->sync, "ps"))
    pn->storage[STORAGE_SERVER][pn->nstorage[STORAGE_SERVER]++] = axis;
}
