// storage.c - the memory of pieces. Not what they hold (holdings.c).
//
// Idea: a step of a rank asks for the same pieces in the same order every time, and what it asks for does not depend on
// numbers. So the first step is walked through once without numbers (dry): that tells which pieces there are, and from
// when to when. Those that end within a step get a place in one block each, packed (live/), and no step asks the system
// for memory. Pieces that outlive the step, such as updated weights that cannot lie where the old ones do, have memory of
// their own.
#include "eval/internal.h"
#include <stdlib.h>

// Without that, memory of pieces that ended is kept for pieces of their class, an eighth of an octave of sizes. What is
// kept and what is alive are together at most SPARE more than the most that was alive; beyond that all that is kept is
// given back.
enum { HEAD = (sizeof(buf) + 63) / 64 * 64, LEAST = 1 << 12, SPARE = 4, ALIGN = 64, PAGE = 1 << 12 };

struct storage {
  arena *a;
  bool dry, step;        // step: one is under way, with the block
  VEC(live_value) piece; // parameters, then by turn those of a step, in order; to 0: it outlives the step
  VEC(bool) host;        // beside: is it in host memory?
  u32 first;             // behind the parameters
  i64 *offset;           // -1: it has memory of its own
  buf *head;
  char *memory, *block; // block: aligned, in memory
  live_packed packed;
  eval_memory memory_of;
  u32 turn; // of the next piece
};

static u32 class_of(i64 *room) {
  const u32 octave = 63 - (u32)__builtin_clzll((u64)*room), shift = octave - 3;
  *room = (*room + ((i64)1 << shift) - 1) >> shift << shift;
  const u32 top = 63 - (u32)__builtin_clzll((u64)*room); // rounding may have reached the next octave
  return MIN(top * 8 + (u32)(*room >> (top - 3) & 7), (u32)BUF_CLASSES - 1);
}

static buf *alive(interp *m, buf *b) {
  b->prev = NULL, b->next = m->live, b->refs = 1;
  if (b->next) b->next->prev = b;
  m->live = b;
  return b;
}

void eval_drop_kept(interp *m) {
  for (u32 k = 0; k < BUF_CLASSES; k++)
    for (buf *b = m->kept[k], *next; b; b = next) next = b->next, free(b);
  memset(m->kept, 0, sizeof m->kept);
  m->kept_bytes = 0;
}

static buf *kept_or_new(interp *m, i64 bytes) {
  i64 room = MAX(bytes, LEAST);
  buf **kept = &m->kept[class_of(&room)], *b = bytes < LEAST ? NULL : *kept;
  if (b) {
    *kept = b->next;
    m->kept_bytes -= room;
  } else {
    m->most_bytes = MAX(m->most_bytes, m->live_bytes + room);
    if (m->live_bytes + m->kept_bytes + room > m->most_bytes + m->most_bytes / SPARE) eval_drop_kept(m);
    if (bytes < LEAST) room = bytes;
    b = base_malloc(HEAD + (size_t)room);
    *b = (buf){.room = room, .data = (char *)b + HEAD};
  }
  m->live_bytes += b->room;
  return b;
}

// A piece of a rank: of the step, or with memory of its own, of just its size.
static buf *stored(storage *x, i64 bytes) {
  if (x->dry) {
    buf *b = base_malloc(sizeof *b);
    const u32 turn = x->piece.n;
    *b = (buf){.turn = turn + 1};
    *vec_push(x->a, &x->piece) = (live_value){bytes, turn, 0};
    *vec_push(x->a, &x->host) = false;
    return b;
  }
  const u32 turn = x->step ? x->first + x->turn++ : 0;
  assert(!x->step || (turn < x->piece.n && x->piece.v[turn].bytes == bytes));
  if (x->step && x->offset[turn] >= 0) {
    buf *b = &x->head[turn];
    *b = (buf){.turn = turn + 1, .data = x->block + x->offset[turn]};
    return b;
  }
  buf *b = base_malloc(HEAD + (size_t)bytes);
  *b = (buf){.data = (char *)b + HEAD};
  return b;
}

buf *eval_buf(interp *m, i64 bytes) {
  buf *b = m->storage ? stored(m->storage, bytes) : kept_or_new(m, bytes);
  b->bytes = bytes;
  return alive(m, b);
}

buf *eval_borrow(interp *m, void *data, i64 bytes) {
  buf *b = base_malloc(sizeof *b);
  *b = (buf){.bytes = bytes, .data = data};
  alive(m, b)->refs = 2;
  return b;
}

buf *eval_within(interp *m, buf *of, i64 at, i64 bytes) {
  buf *b = eval_buf(m, 0);
  b->bytes = bytes, b->of = buf_share(of);
  if (!eval_is_dry(m)) b->data = of->data + at;
  return b;
}

void eval_drop(interp *m, buf *b) {
  if (!b || --b->refs) return;
  if (b->of) eval_drop(m, b->of);
  *(b->prev ? &b->prev->next : &m->live) = b->next;
  if (b->next) b->next->prev = b->prev;
  m->live_bytes -= b->room;
  storage *x = m->storage;
  if (x && x->dry && b->turn) x->piece.v[b->turn - 1].to = x->piece.n;
  if (x && !x->dry && b->turn) return; // a place in the block
  if (b->room < LEAST) {
    free(b);
    return;
  }
  i64 room = b->room;
  buf **kept = &m->kept[class_of(&room)];
  b->next = *kept, *kept = b;
  m->kept_bytes += room;
}

// ---- of the steps of a rank ---------------------------------------------------------------------------------
void storage_new(interp *m) {
  m->storage = ZNEWN(m->a, storage, 1);
  m->storage->a = arena_new();
}

void storage_free(storage *x) {
  if (!x) return;
  free(x->memory);
  arena_free(x->a);
}

bool eval_is_dry(const interp *m) { return m->storage && m->storage->dry; }
bool storage_known(const storage *x) { return x->memory; }

void storage_dry(storage *x) { x->dry = true, x->piece.n = x->host.n = x->first = 0; }

void storage_on_host(interp *m, const buf *b) {
  if (eval_is_dry(m) && b->turn) m->storage->host.v[b->turn - 1] = true;
}

buf *storage_like(interp *m, const buf *b) {
  buf *like = eval_buf(m, b->bytes);
  m->storage->first = m->storage->piece.n;
  return like;
}

// Of the pieces in one of the two memories.
static i64 peak_on(storage *x, const live_value *v, bool host) {
  live_value *in = NEWN(x->a, live_value, x->piece.n + 1);
  u32 n = 0;
  for (u32 k = 0; k < x->piece.n; k++)
    if (x->host.v[k] == host) in[n++] = v[k];
  return live_peak(x->a, in, n, 1);
}

void storage_plan(storage *x) {
  u32 n = 0;
  const u32 all = x->piece.n;
  x->head = ZNEWN(x->a, buf, all + 1), x->offset = NEWN(x->a, i64, all + 1);
  arena_mark_t mark = arena_mark(x->a);
  live_value *in = NEWN(x->a, live_value, all + 1);
  i64 *offset = NEWN(x->a, i64, all + 1);
  for (u32 k = x->first; k < all; k++)
    if (x->piece.v[k].to) in[n++] = x->piece.v[k];
  x->packed = live_pack(x->a, in, n, ALIGN, offset);
  for (u32 k = 0, q = 0; k < all; k++) x->offset[k] = k >= x->first && x->piece.v[k].to ? offset[q++] : -1;
  x->memory_of = (eval_memory){.block_bytes = x->packed.extent, .block_least_bytes = x->packed.peak};
  for (u32 k = 0; k < all; k++) {
    in[k] = x->piece.v[k];
    if (!in[k].to) in[k].to = all + 1;
    if (k < x->first) in[k].from = 0, x->memory_of.parameter_bytes += in[k].bytes;
    if (k >= x->first && !x->piece.v[k].to) x->memory_of.outliving_bytes += in[k].bytes;
  }
  x->memory_of.peak_bytes = live_peak(x->a, in, all, 1);
  x->memory_of.device_peak_bytes = peak_on(x, in, false);
  x->memory_of.host_peak_bytes = peak_on(x, in, true);
  n = 0;
  for (u32 k = 0; k < all; k++)
    if (x->offset[k] < 0) in[n++] = in[k];
  x->memory_of.place_bytes = x->packed.extent + live_peak(x->a, in, n, 1);
  arena_release(x->a, mark);
}

void storage_take(storage *x) {
  x->dry = false;
  base_trim();
  x->memory = base_malloc((size_t)x->packed.extent + PAGE);
  x->block = x->memory + (-(uintptr_t)x->memory & (PAGE - 1));
}

eval_memory storage_memory(const storage *x) { return x->memory_of; }
void storage_begin(storage *x) { x->step = true, x->turn = 0; }
void storage_end(storage *x) { x->step = false; }
