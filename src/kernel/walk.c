// walk.c - visiting the elements of several tensors together, and copying parts of one into another.
//
// Idea: every regular access is an offset that is linear in the loop indices, so dimensions that follow each
// other in all tensors merge into one; what stays irregular (pieces, windows, wrapped borders) is still a
// product of per-dimension tables. Two copies cover both: ker_walk_copy by strides, ker_pick by tables.
#include "kernel/internal.h"

void ker_walk_init(walk *w, u32 nd, const i64 *n) {
  w->nd = nd;
  w->nt = 0;
  for (u32 d = 0; d < nd; d++) w->n[d] = n[d];
}

void ker_walk_add(walk *w, const i64 *stride) {
  assert(w->nt < WALK_TENSORS);
  memcpy(w->stride[w->nt++], stride, sizeof(i64) * w->nd);
}

void ker_strides(u32 nd, const i64 *dim, i64 *stride) {
  i64 s = 1;
  for (u32 d = nd; d-- > 0; s *= dim[d]) stride[d] = s;
}

void ker_walk_add_dense(walk *w, const ker_tensor *t) {
  i64 stride[DIMS_MAX];
  ker_strides(t->nd, t->dim, stride);
  ker_walk_add(w, stride);
}

bool ker_walk_add_broadcast(walk *w, const ker_tensor *t) {
  if (t->nd > w->nd) return false;
  i64 own[DIMS_MAX], stride[WALK_DIMS] = {0};
  ker_strides(t->nd, t->dim, own);
  u32 lead = w->nd - t->nd;
  for (u32 d = 0; d < t->nd; d++) {
    if (t->dim[d] == w->n[lead + d])
      stride[lead + d] = own[d];
    else if (t->dim[d] != 1 || t->whole[d] != 1)
      return false;
  }
  ker_walk_add(w, stride);
  return true;
}

bool ker_walk_begin(walk *w) {
  u32 nd = 0;
  for (u32 d = 0; d < w->nd; d++) {
    if (w->n[d] == 0) return false;
    if (w->n[d] == 1) continue;
    bool joins = nd > 0;
    for (u32 j = 0; j < w->nt && joins; j++) joins = w->stride[j][nd - 1] == w->stride[j][d] * w->n[d];
    u32 to = joins ? nd - 1 : nd++;
    w->n[to] = joins ? w->n[to] * w->n[d] : w->n[d];
    for (u32 j = 0; j < w->nt; j++) w->stride[j][to] = w->stride[j][d];
  }
  if (nd == 0) {
    w->n[nd++] = 1;
    for (u32 j = 0; j < w->nt; j++) w->stride[j][0] = 0;
  }
  w->nd = nd;
  memset(w->at, 0, sizeof w->at);
  memset(w->off, 0, sizeof w->off);
  return true;
}

bool ker_walk_next(walk *w) {
  for (u32 d = w->nd - 1; d-- > 0;) {
    if (++w->at[d] < w->n[d]) {
      for (u32 j = 0; j < w->nt; j++) w->off[j] += w->stride[j][d];
      return true;
    }
    for (u32 j = 0; j < w->nt; j++) w->off[j] -= w->stride[j][d] * (w->n[d] - 1);
    w->at[d] = 0;
  }
  return false;
}

typedef struct {
  const walk *w;
  void (*job)(const void *arg, walk *w);
  const void *arg;
} walk_deal;

static void deal_walk(const void *arg, i64 from, i64 end) {
  const walk_deal *d = arg;
  walk w = *d->w;
  if (from == end) return;
  w.n[0] = end - from;
  for (u32 j = 0; j < w.nt; j++) w.off[j] = from * w.stride[j][0];
  d->job(d->arg, &w);
}

void ker_walk_deal(const run *r, walk *w, void (*job)(const void *arg, walk *w), const void *arg) {
  if (!ker_walk_begin(w)) return;
  i64 each = 1;
  for (u32 d = 1; d < w->nd; d++) each *= w->n[d];
  ker_deal(r, w->n[0], each, deal_walk, &(walk_deal){w, job, arg});
}

// One run of n elements, strides in elements.
static void copy_run(size_t bytes, char *d, i64 sd, const char *s, i64 ss, i64 n) {
  if (sd == 1 && ss == 1) {
    memcpy(d, s, bytes * (size_t)n);
    return;
  }
#define RUN(T)                                                                                               \
  for (i64 i = 0; i < n; i++) ((T *)(void *)d)[i * sd] = ((const T *)(const void *)s)[i * ss];               \
  break
  switch (bytes) {
  case 1: RUN(u8);
  case 2: RUN(u16);
  case 4: RUN(u32);
  case 8: RUN(u64);
  default:
    for (i64 i = 0; i < n; i++) memcpy(d + (size_t)(i * sd) * bytes, s + i * ss * (i64)bytes, bytes);
  }
#undef RUN
}

void ker_walk_copy(walk *w, size_t bytes, void *dst, const void *src) {
  EACH_RUN(w) {
    copy_run(bytes, (char *)dst + w->off[0] * (i64)bytes, step(w, 0),
             (const char *)src + w->off[1] * (i64)bytes, step(w, 1), walk_inner(w));
  }
}

typedef struct {
  i64 d, s, n;
} stretch; // n elements that follow each other on both sides

// The last dimension as stretches; returns how many.
static i64 stretches(const ker_box *b, u32 d, stretch *out) {
  i64 k = 0;
  for (i64 i = 0; i < b->n[d]; i++) {
    i64 to = b->dat[d] ? b->dat[d][i] : i, from = b->sat[d] ? b->sat[d][i] : i;
    if (to < 0 || from < 0) continue;
    if (k && to == out[k - 1].d + out[k - 1].n && from == out[k - 1].s + out[k - 1].n)
      out[k - 1].n++;
    else
      out[k++] = (stretch){to, from, 1};
  }
  return k;
}

void ker_pick(const ker_box *b, size_t bytes, void *dst, const void *src, arena *scratch) {
  u32 nd = b->nd;
  for (u32 d = 0; d < nd; d++)
    if (b->n[d] == 0) return;
  // Whole dimensions at the end are one large element.
  while (nd && !b->dat[nd - 1] && !b->sat[nd - 1] && b->n[nd - 1] == b->ddim[nd - 1] &&
         b->n[nd - 1] == b->sdim[nd - 1])
    bytes *= (size_t)b->n[--nd];
  if (nd == 0) {
    memcpy(dst, src, bytes);
    return;
  }
  arena_mark_t mark = arena_mark(scratch);
  stretch *st = NEWN(scratch, stretch, b->n[nd - 1]);
  i64 nst = stretches(b, nd - 1, st), at[DIMS_MAX] = {0}, sd[DIMS_MAX], ss[DIMS_MAX];
  ker_strides(nd, b->ddim, sd);
  ker_strides(nd, b->sdim, ss);
  for (u32 d = 0; nst;) {
    i64 to = 0, from = 0;
    for (d = 0; d + 1 < nd; d++) {
      i64 dk = b->dat[d] ? b->dat[d][at[d]] : at[d], sk = b->sat[d] ? b->sat[d][at[d]] : at[d];
      if (dk < 0 || sk < 0) break;
      to += dk * sd[d];
      from += sk * ss[d];
    }
    if (d + 1 == nd)
      for (i64 i = 0; i < nst; i++)
        copy_run(bytes, (char *)dst + (size_t)(to + st[i].d) * bytes, 1,
                 (const char *)src + (size_t)(from + st[i].s) * bytes, 1, st[i].n);
    else
      for (u32 e = d + 1; e + 1 < nd; e++) at[e] = b->n[e] - 1; // nothing below an index that is left out
    for (d = nd - 1; d-- > 0;) {
      if (++at[d] < b->n[d]) break;
      at[d] = 0;
    }
    if (d == (u32)-1) break;
  }
  arena_release(scratch, mark);
}
