// compose.c - whole backwards of stages that have them in two parts: the map and the bytes of I, then W, from those of
// either. Not where a stage has one of them only.
#include "sim/digest.h"

// I, then W. What leaves is sent when both have ended.
static void compose(digest *d, u32 stage, bool sums) {
  const stage_task *i = &d->st->task[TASK_I][stage], *w = &d->st->task[TASK_W][stage];
  stage_task *b = (stage_task *)&d->st->task[TASK_B][stage];
  const u32 C = d->C, left = i->nout - d->st->carried[stage], ni = (1 + i->nin) * C, nw = (1 + w->nin) * C;
  i64 *a = NEWN(d->a, i64, (1 + left) * C * ni), *busy = NEWN(d->a, i64, C), *comm = NEWN(d->a, i64, C);
  for (u32 c = 0; c < C; c++) {
    busy[c] = i->busy[c] + w->busy[c], comm[c] = i->comm[c] + w->comm[c];
    for (u32 k = 0; k < ni; k++) {
      i64 *to = &a[c * ni + k];
      *to = STAGE_NEVER;
      for (u32 j = 0; j < nw; j++) { // W reads clocks, then what is carried, which I has behind what leaves
        const i64 at = w->a[c * nw + j], before = i->a[(j < C ? j : j + left * C) * ni + k];
        if (at != STAGE_NEVER && before != STAGE_NEVER) *to = MAX(*to, at + before);
      }
      for (u32 o = 1; o <= left; o++)
        a[(o * C + c) * ni + k] = sums ? MAX(i->a[(o * C + c) * ni + k], *to) : i->a[(o * C + c) * ni + k];
    }
  }
  b->nin = i->nin, b->nout = left, b->a = a, b->busy = busy, b->comm = comm;
}

static void compose_bytes(digest *d, u32 stage) {
  const stage_task *i = &d->st->task[TASK_I][stage], *w = &d->st->task[TASK_W][stage];
  stage_task *b = (stage_task *)&d->st->task[TASK_B][stage];
  for (u32 turn = 0; turn < 3; turn++) {
    if (!i->bytes[turn] || !w->bytes[turn]) continue;
    stage_bytes *both = NEWN(d->a, stage_bytes, d->C);
    for (u32 c = 0; c < d->C; c++) {
      const stage_bytes x = i->bytes[turn][c], y = w->bytes[turn][c];
      both[c] = (stage_bytes){x.net + y.net, MAX(x.peak, x.net + y.peak)};
    }
    b->bytes[turn] = both;
  }
}

static bool in_parts(const digest *d, u32 stage) {
  return d->st->task[TASK_I][stage].a && d->st->task[TASK_W][stage].a;
}

void digest_compose(digest *d) {
  bool *sums = ZNEWN(d->s->tmp, bool, d->pl->nstages); // has gradients of weights, which a send waits for
  for (u32 k = 0; k < d->pl->nleft; k++)
    if (!d->pl->left[k].what) sums[d->pl->left[k].stage] = true;
  for (u32 i = 0; i < d->pl->nstages; i++)
    if (in_parts(d, i)) compose(d, i, sums[i]), compose_bytes(d, i);
}
