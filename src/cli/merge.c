// merge.c - heddle merge PART...: what `heddle plan` would have printed of the whole search.
#include "cli/cli.h"

bool cmd_merge(cli *x) {
  heddle_search *f =
      heddle_search_merge(x->s, x->noperands, x->operands, x->top.given ? (uint32_t)x->top.i : 0);
  return put(x, heddle_search_report(f, format_of(x)));
}
