// splits_kinds.c - kinds of tensors (splits_kinds.h): what becomes of them, and how much more one takes than another from there on.
#include "plan/splits_kinds.h"

// MORE_KINDS: of a gap that are compared.
enum { COMBINATIONS = 4096, MORE_KINDS = 1024 };
static const i64 NEVER = INT64_MAX / 4, UNKNOWN = INT64_MIN;
static const live nowhere = {.made = LIES_NONE, .base = LIES_NONE, .grad = LIES_NONE};

void splits_kinds_of(arena *a, const splits_problem *p, double ps_per_byte, splits_kinds *out) {
  *out = (splits_kinds){.a = a, .p = p, .ps_per_byte = ps_per_byte};
  splits_readers *r = &out->readers;
  splits_readers_of(a, p, r);
  out->gap = ZNEWN(a, splits_gap, r->begin[p->ntensors] + p->ntensors + 1);
  out->made = ZNEWN(a, splits_passed *, p->ntensors + 1);
  for (u32 t = 0; t < p->ntensors; t++) {
    const u32 end = r->begin[t + 1];
    u64 all = 1;
    for (u32 q = end + 1; q-- > r->begin[t];) {
      splits_gap *g = &out->gap[q + t];
      g->tensor = t;
      if (q < end) {
        g->operand = r->operand[q], g->next = &p->op[r->reader[q]];
        if (all <= COMBINATIONS) all *= g->next->noptions;
      }
      g->many = all > COMBINATIONS;
    }
    if (!r->maker[t]) *vec_push(a, &out->gap[r->begin[t] + t].v) = nowhere;
  }
}

static bool same_live(const live *x, const live *y) {
  return x->made == y->made && x->base == y->base && x->grad == y->grad && x->back == y->back &&
         x->has[0] == y->has[0] && x->has[1] == y->has[1];
}

static u32 kind_of(splits_kinds *k, u32 gap, const live *l) {
  splits_gap *g = &k->gap[gap];
  u32 i = 0;
  while (i < g->v.n && !same_live(&g->v.v[i], l)) i++;
  if (i == g->v.n) *vec_push(k->a, &g->v) = *l;
  return i;
}

const splits_passed *splits_make(splits_kinds *k, u32 tensor, u32 option) {
  const splits_op *op = &k->p->op[k->readers.maker[tensor] - 1];
  if (!k->made[tensor]) k->made[tensor] = ZNEWN(k->a, splits_passed, op->noptions + 1);
  splits_passed *x = &k->made[tensor][option];
  if (x->known) return x;
  step s = {.possible = true};
  const live l = splits_begin(&k->p->tensor[tensor], &op->option[option], k->readers.result[tensor], &s);
  *x = (splits_passed){s.time_ps, s.bytes, kind_of(k, k->readers.begin[tensor] + tensor, &l), true,
                       s.possible};
  return x;
}

const splits_passed *splits_find_passed(splits_kinds *k, u32 gap, u32 kind, u32 option) {
  splits_gap *g = &k->gap[gap];
  const u32 each = g->next ? g->next->noptions : 1;
  if (kind >= g->npassed) {
    const u32 most = MAX(2 * g->v.n, 8);
    splits_passed *more = ZNEWN(k->a, splits_passed, (size_t)most * each);
    if (g->npassed) memcpy(more, g->passed, sizeof *more * g->npassed * each);
    g->passed = more, g->npassed = most;
  }
  splits_passed *x = &g->passed[g->next ? kind * each + option : kind];
  if (x->known) return x;
  step s = {.possible = true};
  live l = g->v.v[kind];
  u32 then = 0;
  if (g->next) {
    splits_read(k->p, &k->p->tensor[g->tensor], &l, g->next, g->operand, &g->next->option[option], &s);
    then = kind_of(k, gap + 1, &l);
  } else if (l.made != LIES_NONE)
    splits_end(&k->p->tensor[g->tensor], &l, &s);
  *x = (splits_passed){s.time_ps, s.bytes, then, true, s.possible};
  return x;
}

// ---- how much more one kind takes than another -----------------------------------------------------------------
// What a step costs more than another; NEVER: it is not possible, below: the other one is not.
static i64 step_more(const splits_kinds *k, const splits_passed *fast, const splits_passed *slow) {
  if (!slow->possible) return -NEVER;
  if (!fast->possible) return NEVER;
  const i64 rounding = k->ps_per_byte > 0;
  return fast->time_ps - slow->time_ps + rounding +
         (i64)(k->ps_per_byte * (double)(fast->bytes - slow->bytes));
}

// Room for what is known of pairs of kinds. NULL: there are too many.
static i64 *more_of(splits_kinds *k, u32 gap, u32 fast, u32 slow) {
  splits_gap *g = &k->gap[gap];
  const u32 n = MAX(fast, slow) + 1, had = g->nmore;
  if (n > MORE_KINDS) return NULL;
  if (n > had) {
    const u32 most = MIN(MAX(2 * n, 8), MORE_KINDS);
    i64 *more = NEWN(k->a, i64, (size_t)most * most);
    for (u32 i = 0; i < most; i++)
      for (u32 j = 0; j < most; j++)
        more[(size_t)i * most + j] = i < had && j < had ? g->more[(size_t)i * had + j] : UNKNOWN;
    g->more = more, g->nmore = most;
  }
  return &g->more[(size_t)fast * g->nmore + slow];
}

static i64 most_more(splits_kinds *k, u32 gap, u32 fast, u32 slow) {
  i64 *kept = more_of(k, gap, fast, slow);
  if (!kept) return NEVER;
  if (*kept != UNKNOWN) return *kept;
  const splits_op *next = k->gap[gap].next;
  i64 most = -NEVER;
  for (u32 i = 0; i < (next ? next->noptions : 1); i++) {
    const splits_passed f = *splits_pass(k, gap, fast, i), s = *splits_pass(k, gap, slow, i);
    i64 ps = step_more(k, &f, &s);
    if (next && ps > -NEVER && ps < NEVER) ps += most_more(k, gap + 1, f.kind, s.kind);
    most = next ? MAX(most, MIN(ps, NEVER)) : ps;
  }
  *more_of(k, gap, fast, slow) = most;
  return most;
}

i64 splits_find_more(splits_kinds *k, u32 gap, u32 fast, u32 slow) {
  return k->gap[gap].many ? NEVER : MAX(most_more(k, gap, fast, slow), 0);
}
