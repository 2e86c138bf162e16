// batchnorm.c - over which samples batch normalisation takes its statistics. The one pass, beside
// pass_count_labels, that changes what a program computes: a plan asks for it by name.
//
// Idea: a data-parallel rank normalises each of its microbatches with what it sees itself. Said of the
// program that is an attribute, bn_groups: the batch is so many consecutive parts, each with statistics of
// its own. The number is then part of the model, for one device as for many.
#include "pass/internal.h"

static bool in_training(const instr *i) { return i->op == OP_batchnorm_train || i->op == OP_batchnorm_dx; }

static i64 samples_of(const prog *p, const func_info *f, const instr *i) {
  return val_type(p, f, opd_of(f, i, 0))->s.dim[0];
}

bool pass_batchnorm_of(const prog *p, batchnorm_stats *out) {
  *out = (batchnorm_stats){0};
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      const func_info *fi = p->funcs.v[f];
      const instr *i = &fi->body.v[k];
      if (i->op != OP_batchnorm_train) continue;
      i64 groups = attr_int(attrs_get(p, i->at), A_bn_groups, 1), n = samples_of(p, fi, i);
      if (out->groups && out->samples <= n) continue; // the smallest batch is what must divide
      *out = (batchnorm_stats){n, groups};
    }
  return out->groups > 0;
}

static attrset with_groups(prog *p, attrset old, i64 groups) {
  attrs at = attrs_get(p, old);
  attr v[4];
  u32 n = 0;
  for (u32 k = 0; k < at.n; k++)
    if (at.v[k].key != A_bn_groups) v[n++] = at.v[k];
  v[n++] = attr_i(A_bn_groups, groups);
  return attrs_of(p, v, n);
}

bool pass_batchnorm(prog *p, i64 groups, loc where) {
  u32 changed = 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      const func_info *fi = p->funcs.v[f];
      instr *i = &fi->body.v[k];
      if (!in_training(i)) continue;
      i64 n = samples_of(p, fi, i);
      if (n % groups) {
        diag(p->c, E_DIVIDE, where, "%lld groups of batch norm statistics, but %s has a batch of %lld",
             (long long)groups, op_row_of((opcode)i->op)->name, (long long)n);
        diag_note(p->c, i->where, "%lld / %lld is not a whole number", (long long)n, (long long)groups);
        diag_hint(p->c, "`batchnorm-groups` is the number of data ranks times that of microbatches");
        return false;
      }
      i->at = with_groups(p, i->at, groups);
      changed++;
    }
  if (!changed)
    diag(p->c, E_PLAN, where,
         "%lld groups of batch norm statistics, but no batch norm of the model takes any", (long long)groups);
  if (!changed) diag_hint(p->c, "leave `batchnorm-groups` out");
  return changed > 0;
}
