// moe.c - mixture of experts: who goes where, there, and back.
//
// Idea: a slot is expert * capacity + place within its group; -1 is a token dropped for want of a place,
// whose weight is 0. Places are dealt token by token, and within a token from its best expert on. The expert
// dimension may be split: a slot of an expert that is elsewhere is not written, and reads as zero.
#include "kernel/internal.h"

bool ker_moe_gate(run *r) {
  const ker_tensor *p = &r->opd[0], *slot = &r->res[0], *weight = &r->res[1];
  i64 groups = p->dim[0], tokens = p->dim[1], experts = p->dim[2], k = slot->dim[2];
  i64 capacity = attr_int(r->at, A_capacity, 0), *used = NEWN(r->a, i64, experts);
  bool *taken = NEWN(r->a, bool, experts);
  if (k > experts) return ker_misfit(r, "k", k, experts);
  for (i64 g = 0; g < groups; g++) {
    memset(used, 0, sizeof *used * (size_t)experts);
    for (i64 t = 0; t < tokens; t++) {
      const double *in = F(p) + (g * tokens + t) * experts;
      i64 to = (g * tokens + t) * k;
      memset(taken, 0, sizeof *taken * (size_t)experts);
      for (i64 j = 0; j < k; j++) {
        i64 best = -1;
        for (i64 e = 0; e < experts; e++)
          if (!taken[e] && (best < 0 || in[e] > in[best])) best = e;
        taken[best] = true;
        bool fits = used[best] < capacity;
        I(slot)[to + j] = fits ? best * capacity + used[best]++ : -1;
        F(weight)[to + j] = fits ? in[best] : 0;
      }
    }
  }
  return true;
}

// Row of an expert tensor [g, expert, place, d] that a slot names, or -1.
typedef struct {
  const i64 *inv;
  i64 groups, experts, whole, capacity, d;
} bank;

static bool bank_of(run *r, const ker_tensor *y, const ker_tensor *slot, bank *b) {
  *b = (bank){ker_inverse(r, y, 1), y->dim[0], y->dim[1], y->whole[1], y->dim[2], y->dim[3]};
  if (slot->dim[0] != b->groups) return ker_misfit(r, "groups", slot->dim[0], b->groups);
  i64 n = ker_elems(slot), limit = b->whole * b->capacity;
  for (i64 i = 0; i < n; i++)
    if (I(slot)[i] < -1 || I(slot)[i] >= limit) return ker_bad_value(r, "slot", I(slot)[i], limit);
  return true;
}

static i64 row_of(const bank *b, i64 g, i64 slot) {
  if (slot < 0) return -1;
  i64 e = slot / b->capacity, at = b->inv ? b->inv[e] : e;
  return at < 0 ? -1 : (g * b->experts + at) * b->capacity + slot % b->capacity;
}

static void clear(const run *r, const ker_tensor *y) {
  const size_t bytes = is_float(y) && r->real == DT_F32 ? sizeof(float) : sizeof(double);
  memset(y->data, 0, bytes * (size_t)ker_elems(y));
}

static void add_row(const run *r, void *to, double w, const void *x, i64 n) {
  r->v->affine_of(to, w, x, 0, 1, to, 0, n);
}

bool ker_moe_dispatch(run *r) {
  const ker_tensor *x = &r->opd[0], *slot = &r->opd[1], *y = &r->res[0];
  bank b;
  if (!bank_of(r, y, slot, &b)) return false;
  i64 tokens = x->dim[1], k = slot->dim[2];
  if (tokens != slot->dim[1]) return ker_misfit(r, "tokens", tokens, slot->dim[1]);
  if (x->dim[2] != b.d) return ker_misfit(r, "extents", x->dim[2], b.d);
  clear(r, y);
  for (i64 i = 0, n = ker_elems(slot); i < n; i++) {
    i64 row = row_of(&b, i / (tokens * k), I(slot)[i]);
    if (row < 0) continue;
    if (is_float(y))
      add_row(r, ker_at(r, y, row * b.d), 1, ker_at(r, x, i / k * b.d), b.d);
    else
      for (i64 d = 0; d < b.d; d++) I(y)[row * b.d + d] += I(x)[i / k * b.d + d];
  }
  return true;
}

bool ker_moe_combine(run *r) {
  const ker_tensor *x = &r->opd[0], *slot = &r->opd[1], *weight = &r->opd[2], *y = &r->res[0];
  bank b;
  if (!bank_of(r, x, slot, &b)) return false;
  i64 tokens = slot->dim[1], k = slot->dim[2];
  if (ker_elems(weight) != ker_elems(slot))
    return ker_misfit(r, "weights", ker_elems(weight), ker_elems(slot));
  if (ker_elems(y) != b.groups * tokens * b.d)
    return ker_misfit(r, "elements", ker_elems(y), b.groups * tokens * b.d);
  clear(r, y);
  for (i64 i = 0, n = ker_elems(slot); i < n; i++) {
    i64 row = row_of(&b, i / (tokens * k), I(slot)[i]);
    const double w = r->real == DT_F32 ? (double)((const float *)weight->data)[i] : F(weight)[i];
    if (row >= 0) add_row(r, ker_at(r, y, i / k * b.d), w, ker_at(r, x, row * b.d), b.d);
  }
  return true;
}

bool ker_moe_combine_dw(run *r) {
  const ker_tensor *dy = &r->opd[0], *slot = &r->opd[1], *x = &r->opd[2], *dw = &r->res[0];
  bank b;
  if (!bank_of(r, x, slot, &b)) return false;
  i64 tokens = slot->dim[1], k = slot->dim[2];
  if (ker_elems(dw) != ker_elems(slot)) return ker_misfit(r, "weights", ker_elems(dw), ker_elems(slot));
  if (ker_elems(dy) != b.groups * tokens * b.d)
    return ker_misfit(r, "elements", ker_elems(dy), b.groups * tokens * b.d);
  for (i64 i = 0, n = ker_elems(slot); i < n; i++) {
    i64 row = row_of(&b, i / (tokens * k), I(slot)[i]);
    const double dot = row < 0 ? 0 : r->v->dot(ker_at(r, dy, i / k * b.d), ker_at(r, x, row * b.d), 0, b.d);
    r->v->store(ker_at(r, dw, i), &dot, 1, 1);
  }
  return true;
}
