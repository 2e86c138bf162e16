// lifetimes.c - when the values of a function are alive.
#include "live/live.h"

lifetimes live_of(arena *a, const func_info *f) {
  u32 *last = ZNEWN(a, u32, f->values.n), *inside = ZNEWN(a, u32, f->values.n);
  for (u32 k = 0; k < f->rets.n; k++) last[f->rets.v[k]] = LIVE_RETURNED;
  for (u32 k = f->body.n; k-- > 0;) { // from the end: whoever comes first is last
    const instr *i = &f->body.v[k];
    for (u32 r = i->res; r < i->res + i->nres; r++) {
      if (!inside[r]) inside[r] = k + 1;
      if (!last[r]) last[r] = k + 1;
    }
    for (u32 j = 0; j < i->nopd; j++) {
      u32 o = f->opds.v[i->opd + j];
      if (o & OPD_AFTER) break;
      o &= OPD_VALUE;
      if (inside[o]) continue;
      inside[o] = k + 1;
      if (!last[o]) last[o] = k + 1;
    }
  }
  return (lifetimes){last, inside};
}

u32 live_taken(const func_info *f, const instr *i, const u32 *last, u32 r) {
  const u32 flags = op_row_of((opcode)i->op)->flags, k = op_continues((opcode)i->op, r);
  if (!(flags & OPF_INPLACE) || k >= instr_nopd(f, i)) return LIVE_NOWHERE;
  const bool ends = flags & OPF_COMM && last[opd_of(f, i, k)] == (u32)(i - f->body.v) + 1;
  return ends || opd_donated(f, i, k) ? k : LIVE_NOWHERE;
}
