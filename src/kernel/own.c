// own.c - kernels of operators from outside the table.
#include "kernel/internal.h"

bool ker_own(run *r) {
  const op_row *row = op_row_of(r->op);
  if (!row->own->kernel) {
    diag(r->c, E_NO_KERNEL, r->where, "%s has no kernel, so its numbers cannot be computed", row->name);
    diag_hint(r->c, "register it with one: its member `kernel` (docs/operators.md)");
    return false;
  }
  if (row->own->kernel(row->own, r->at, r->nopd, r->opd, r->nres, r->res)) return true;
  diag(r->c, E_VALUE, r->where, "%s: its kernel failed", row->name);
  return false;
}
