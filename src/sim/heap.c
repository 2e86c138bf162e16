// heap.c - buffers and who holds them, within one function. Knows neither operators nor calls (bytes.c).
//
// Idea: a buffer counts the leaves that hold it. Whoever uses a value for the last time lets go of its
// leaves; a buffer that nothing holds is first only marked, because the instruction at hand may take it over
// or give it to a call.
#include "sim/heap.h"

void heap_init(heap *h, arena *a, const func_info *f, u32 nclasses) {
  u32 nv = f->values.n;
  *h = (heap){.a = a, .f = f};
  h->val = NEWN(a, span, nv);
  h->whole = ZNEWN(a, u32, nv);
  h->gone = ZNEWN(a, u32, nv);
  h->cur = ZNEWN(a, i64, nclasses);
  h->peak = ZNEWN(a, i64, nclasses);
  h->at = ZNEWN(a, u32, nclasses);
  h->touched = ZNEWN(a, u8, nclasses);
}

u32 heap_new(heap *h, const msize *z, origin from) {
  u32 b = h->spare.n ? h->spare.v[--h->spare.n] : h->nbuf;
  if (b == h->nbuf && h->nbuf++ % HEAP_CHUNK == 0)
    *vec_push(h->a, &h->chunk) = NEWN(h->a, buffer, HEAP_CHUNK); // never moved: main has ten thousands
  *heap_at(h, b) = (buffer){.size = z, .from = from, .owned = true, .live = h->live.n + 1};
  *vec_push(h->a, &h->live) = b;
  return b;
}

void heap_gone(heap *h, u32 b) {
  u32 at = heap_at(h, b)->live - 1, last = h->live.v[--h->live.n];
  h->live.v[at] = last;
  heap_at(h, last)->live = at + 1;
  heap_at(h, b)->live = 0;
}

// ---- values -----------------------------------------------------------------------------------------
void heap_leaf(heap *h) { *vec_push(h->a, &h->leaf) = (span){h->pool.n, 0}; }
void heap_hold(heap *h, u32 b) {
  *vec_push(h->a, &h->pool) = b;
  h->leaf.v[h->leaf.n - 1].n++;
}
void heap_copy_leaf(heap *h, u32 leaf) {
  span x = h->leaf.v[leaf];
  heap_leaf(h);
  for (u32 j = 0; j < x.n; j++) heap_hold(h, h->pool.v[x.begin + j]);
}
u32 heap_only(const heap *h, u32 leaf) {
  span x = h->leaf.v[leaf];
  return x.n == 1 ? h->pool.v[x.begin] : NO_BUFFER;
}

static void add_refs(heap *h, span x) {
  for (u32 k = x.begin; k < x.begin + x.n; k++)
    for (u32 j = 0; j < h->leaf.v[k].n; j++) heap_at(h, h->pool.v[h->leaf.v[k].begin + j])->refs++;
}
void heap_begin(heap *h, value v) { h->val[v] = (span){h->leaf.n, 0}; }
void heap_end(heap *h, value v) {
  h->val[v].n = h->leaf.n - h->val[v].begin;
  add_refs(h, h->val[v]);
}

// A bundle becomes its parts, each held as often as the bundle was.
static void open_bundle(heap *h, u32 b) {
  u32 first = h->leaf.n;
  for (u32 k = 0; k < heap_at(h, b)->nparts; k++) {
    buffer old = *heap_at(h, b);
    u32 x = heap_new(h, old.parts[k].size, heap_part_origin(&old, k));
    heap_at(h, x)->refs = old.refs;
    heap_at(h, x)->seen = old.seen;
    heap_at(h, x)->times = old.times;
    heap_at(h, x)->given = old.given;
    heap_at(h, x)->more = old.parts[k].more;
    heap_at(h, x)->old = old.old, heap_at(h, x)->by = old.by;
    if (!old.refs) *vec_push(h->a, &h->dying) = x; // opened at its last use
    heap_leaf(h);
    heap_hold(h, x);
  }
  if (heap_at(h, b)->live) heap_gone(h, b);
  heap_at(h, b)->opened = first + 1;
}

span heap_leaves(heap *h, value v) {
  u32 b = heap_whole(h, v);
  if (b == NO_BUFFER) return h->val[v];
  if (heap_at(h, b)->parts) {
    open_bundle(h, b);
    heap_whole(h, v);
  } else {
    h->val[v] = (span){h->leaf.n, 1};
    h->whole[v] = 0;
    heap_leaf(h);
    heap_hold(h, b);
  }
  return h->val[v];
}

void heap_share(heap *h, value v, value of) {
  u32 b = heap_whole(h, of);
  if (b != NO_BUFFER)
    heap_be(h, v, b);
  else
    add_refs(h, h->val[v] = h->val[of]);
}

bool heap_leaf_is(const heap *h, span l, const msize *want) {
  const u32 *b = h->pool.v + l.begin;
  if (l.n == 1) return heap_at(h, *b)->size == want;
  for (u32 k = 0; k < want->cs->n; k++) {
    i64 bytes = 0;
    for (u32 j = 0; j < l.n; j++) bytes += size_on(heap_at(h, b[j])->size, want->cs->cls[k]);
    if (bytes != size_on(want, want->cs->cls[k])) return false;
  }
  return l.n;
}

void heap_continue(heap *h, value v, span l, origin from) {
  for (u32 j = 0; j < l.n; j++) heap_at(h, h->pool.v[l.begin + j])->from = from;
  if (l.n == 1) {
    heap_be(h, v, h->pool.v[l.begin]);
    return;
  }
  heap_begin(h, v);
  heap_leaf(h);
  for (u32 j = 0; j < l.n; j++) heap_hold(h, h->pool.v[l.begin + j]);
  heap_end(h, v);
}

// ---- uses -------------------------------------------------------------------------------------------
static void release(heap *h, u32 b, u32 num) {
  buffer *x = heap_at(h, b);
  x->times = x->seen == num ? x->times + 1 : 1;
  x->seen = num;
  if (!--x->refs) *vec_push(h->a, &h->dying) = b;
}

void heap_let_go(heap *h, value v, u32 num) {
  u32 b = heap_whole(h, v);
  if (b != NO_BUFFER) {
    release(h, b, num);
    return;
  }
  span x = h->val[v];
  for (u32 k = x.begin; k < x.begin + x.n; k++)
    for (u32 j = 0; j < h->leaf.v[k].n; j++) release(h, h->pool.v[h->leaf.v[k].begin + j], num);
}

static void unlend(heap *h, value v) {
  u32 b = heap_whole(h, v);
  if (b != NO_BUFFER) {
    heap_at(h, b)->lent = false;
    return;
  }
  span x = h->val[v];
  for (u32 q = x.begin; q < x.begin + x.n; q++)
    for (u32 j = 0; j < h->leaf.v[q].n; j++) heap_at(h, h->pool.v[h->leaf.v[q].begin + j])->lent = false;
}

void heap_let_operands_go(heap *h, const instr *i, u32 n, const u32 *last, u32 num, bool donate) {
  const u32 *opd = &h->f->opds.v[i->opd];
  h->dying.n = 0;
  for (u32 k = 0; k < n; k++) {
    value v = opd[k] & OPD_VALUE;
    if (donate && opd[k] & OPD_DONATED) unlend(h, v);
    if (last[v] != num) continue;
    if (h->gone[v])
      h->gone[v] = GONE_TWICE;
    else {
      h->gone[v] = num;
      heap_let_go(h, v, num);
    }
  }
}

void heap_note_freed(heap *h, u32 b) {
  const buffer *x = heap_at(h, b);
  const class_set *cs = x->size->cs;
  if (!h->owed || b >= h->nparam) return;
  for (u32 k = 0; k < cs->n; k++) {
    const i64 bytes = x->size->per ? x->size->per[k] : x->size->even;
    h->owed[cs->cls[k]] += bytes * x->more;
    if (h->inside) h->freed[cs->cls[k]] += bytes;
  }
}

void heap_free_dying(heap *h) {
  for (u32 k = 0; k < h->dying.n; k++) {
    const u32 id = h->dying.v[k];
    const buffer *b = heap_at(h, id);
    if (b->refs || !b->live || !b->owned || b->lent) continue;
    const bool alone = h->inside || (h->owed && id < h->nparam);
    heap_give_back(h, b->size, alone ? 1 : 1 + b->more);
    heap_note_freed(h, id);
    heap_gone(h, id);
    heap_recycle(h, id);
  }
}

// ---- bytes ------------------------------------------------------------------------------------------
void heap_take_uneven(heap *h, const msize *z, u32 times) {
  for (u32 k = 0; k < z->cs->n; k++) {
    h->cur[z->cs->cls[k]] += z->per[k] * times;
    h->touched[z->cs->cls[k]] = 1;
  }
}

void heap_give_back(heap *h, const msize *z, u32 times) {
  const class_set *cs = z->cs;
  for (u32 k = 0; k < cs->n; k++) {
    h->cur[cs->cls[k]] -= (z->per ? z->per[k] : z->even) * times;
    h->touched[cs->cls[k]] = 1; // what was given may be freed here
  }
}
