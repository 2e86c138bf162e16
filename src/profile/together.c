// together.c - processes that measure the same thing at the same time.
#include "profile/internal.h"

bool together_lost(ctx *c) {
  diag(c, E_PEER, (loc){0}, "another process of the measurement is gone");
  return false;
}

bool together(const profile_job *j, u32 n, bool *go) {
  const eval_link *l = &j->link;
  char word = *go;
  bool ok = true;
  if (l->rank) {
    ok = l->send(l->arg, 0, &word, 1) && l->receive(l->arg, 0, &word, 1);
    *go = word;
    return ok;
  }
  for (u32 q = 1; q < n && ok; q++) {
    char there = 0;
    ok = l->receive(l->arg, q, &there, 1);
    word |= there;
  }
  for (u32 q = 1; q < n && ok; q++) ok = l->send(l->arg, q, &word, 1);
  *go = word;
  return ok;
}

bool together_gather(const profile_job *j, u32 n, const double *v, u32 count, double *out) {
  const eval_link *l = &j->link;
  const i64 bytes = (i64)count * (i64)sizeof *v;
  bool ok = true;
  if (l->rank) return l->send(l->arg, 0, v, bytes);
  memcpy(out, v, (size_t)bytes);
  for (u32 q = 1; q < n && ok; q++) ok = l->receive(l->arg, q, out + (size_t)q * count, bytes);
  return ok;
}

bool profile_tell(const profile_job *j, void *bytes, i64 n) {
  const eval_link *l = &j->link;
  bool ok = true;
  if (l->rank) return l->receive(l->arg, 0, bytes, n);
  for (u32 q = 1; q < j->nprocs && ok; q++) ok = l->send(l->arg, q, bytes, n);
  return ok;
}
