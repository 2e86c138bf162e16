// heap.h - what the values of one function hold while it is walked: buffers, and who holds them. Shared by
// heap.c, bytes.c, peak.c, stages.c, stage_bytes.c and ending.c only.
//
// A buffer is what an instruction allocates. Most values are one buffer; a value that joins or packs others
// has leaves (a tensor one, a tuple one for each of its tensors), each of which holds any number of buffers.
// A tuple that a call returns in buffers of its own is one bundle of them until somebody looks inside: main
// passes such tuples on by the hundred.
#ifndef HEDDLE_SIM_HEAP_H
#define HEDDLE_SIM_HEAP_H
#include "sim/internal.h"

enum { NO_BUFFER = ~0u };
typedef struct {
  const class_set *cs;
  i64 even;
  const i64 *per;
} msize; // bytes on every rank class of cs; per beside cs->cls. Interned
typedef struct {
  func f;
  value v;
  mem_kind kind;
} origin;
typedef struct {
  const msize *size;
  origin from;
  u32 more;
} part;
typedef struct {
  const msize *size; // of a bundle: of all parts
  origin from;       // of a bundle the kind only: that of its parts if it is MEM_TEMP
  const part *parts; // of a bundle
  u32 nparts;
  u32 opened;      // a bundle's leaves + 1, once they are apart; it is gone then
  u32 refs;        // leaves of live values that hold it
  u32 live;        // position in heap.live + 1; 0 = gone
  bool owned;      // freed here when nothing holds it
  bool lent;       // a parameter of main: freed or taken over only where it is donated
  bool given;      // to the call at hand
  u32 more;        // stands for as many others like it as well; size is that of one
  bool old;        // it was there when the stretch at hand began
  u8 by;           // 1: a span made it, 2: its like
  u32 seen, times; // at instruction `seen`, how often operands used last there held it
} buffer;

typedef struct {
  u32 begin, n;
} span;
enum { HEAP_CHUNK = 64 };
typedef struct { // what one walk has
  arena *a;
  const func_info *f;
  VEC(buffer *) chunk; // buffers, HEAP_CHUNK in each
  u32 nbuf;
  VEC(u32) live, pool; // buffers that are there; buffers that leaves hold
  VEC(u32) spare;      // numbers of buffers that are gone and that no live value knows
  u32 nparam;          // buffers of parameters come first and keep their numbers
  VEC(span) leaf;      // in pool
  span *val;           // leaves of every value
  u32 *whole;          // the buffer + 1 that a value is; 0: see val
  u32 *gone;           // the instruction that used it last; GONE_TWICE: that took it twice
  VEC(u32) dying;      // buffers that nothing holds since the instruction at hand
  i64 *cur, *peak;     // by rank class
  u32 *at;             // the instruction at which the peak is
  u8 *touched;
  bool inside; // of a stretch that stands for others, or its like: what goes there is one
  i64 *freed;  // by class: of parameters, that went inside
  // Of a function with stretches, by class; else NULL. A parameter goes alone there, for a layer's values go with its own stretch
  // or the one next to it, which comes as often. So what parameters that are gone stand for, less what went with the others of a
  // stretch, is 0 in the end.
  i64 *owed;
} heap;
enum { GONE_TWICE = ~0u };
static inline buffer *heap_at(const heap *h, u32 b) { return &h->chunk.v[b / HEAP_CHUNK][b % HEAP_CHUNK]; }

void heap_init(heap *h, arena *a, const func_info *f, u32 nclasses);
u32 heap_new(heap *h, const msize *z, origin from); // a live, owned buffer that nothing holds
void heap_gone(heap *h, u32 b);                     // not live any more
// Gone, and held by no live value: the number may be used again.
static inline void heap_recycle(heap *h, u32 b) {
  if (b >= h->nparam && !heap_at(h, b)->opened) *vec_push(h->a, &h->spare) = b;
}
span heap_leaves(heap *h, value v);     // of any value; opens a bundle
u32 heap_only(const heap *h, u32 leaf); // the one buffer of a leaf, or NO_BUFFER
// The buffer or unopened bundle that v is, or NO_BUFFER.
static inline u32 heap_whole(heap *h, value v) {
  u32 b = h->whole[v];
  if (!b) return NO_BUFFER;
  if (!heap_at(h, b - 1)->opened) return b - 1;
  h->val[v] = (span){heap_at(h, b - 1)->opened - 1, heap_at(h, b - 1)->nparts};
  h->whole[v] = 0;
  return NO_BUFFER;
}
// A value gets its leaves one after the other: begin, {leaf, hold...}..., end.
void heap_begin(heap *h, value v);
void heap_leaf(heap *h);
void heap_hold(heap *h, u32 b);
void heap_copy_leaf(heap *h, u32 leaf);
void heap_end(heap *h, value v);
static inline void heap_be(heap *h, value v, u32 b) { // v is buffer b
  h->whole[v] = b + 1;
  heap_at(h, b)->refs++;
}
void heap_share(heap *h, value v, value of); // v holds what `of` holds

// Uses. Instruction number num uses operands for the last time where last[v] = num. donate: parameters of
// main that it donates are lent no more.
void heap_let_go(heap *h, value v, u32 num);
void heap_let_operands_go(heap *h, const instr *i, u32 n, const u32 *last, u32 num, bool donate);
void heap_free_dying(heap *h);
void heap_note_freed(heap *h, u32 b); // b goes: of a parameter, in a function with stretches, that is counted
// May a call or instruction that took operand v for the last time have buffer b for itself?
static inline bool heap_free_to_give(const heap *h, u32 b) {
  const buffer *x = heap_at(h, b);
  return (x->owned || x->lent) && x->live && !x->refs;
}
void heap_take_uneven(heap *h, const msize *z, u32 times);
static inline void heap_take(heap *h, const msize *z, u32 times) {
  const class_set *cs = z->cs;
  if (z->per) heap_take_uneven(h, z, times);
  for (u32 k = 0; !z->per && k < cs->n; k++) {
    h->cur[cs->cls[k]] += z->even * times;
    h->touched[cs->cls[k]] = 1;
  }
}
void heap_give_back(heap *h, const msize *z, u32 times);
static inline void heap_see_peak(heap *h, const msize *z, u32 num) {
  const class_set *cs = z->cs;
  for (u32 k = 0; k < cs->n; k++) {
    u32 u = cs->cls[k];
    if (h->cur[u] <= h->peak[u]) continue;
    h->peak[u] = h->cur[u];
    h->at[u] = num;
  }
}

static inline i64 size_on(const msize *z, u32 cls) {
  u32 pos = z->cs->pos[cls];
  return !pos ? 0 : z->per ? z->per[pos - 1] : z->even;
}
static inline u32 heap_parts(const buffer *b) { return b->parts ? b->nparts : 1; }
static inline const msize *heap_part_size(const buffer *b, u32 k) {
  return b->parts ? b->parts[k].size : b->size;
}
static inline u32 heap_part_more(const buffer *b, u32 k) { return b->parts ? b->parts[k].more : b->more; }
static inline origin heap_part_origin(const buffer *b, u32 k) {
  if (!b->parts) return b->from;
  origin from = b->parts[k].from;
  if (b->from.kind != MEM_TEMP) from.kind = b->from.kind;
  return from;
}
// A leaf of several buffers joins groups: of every rank it is one of them. Are they together as large as `want`?
bool heap_leaf_is(const heap *h, span l, const msize *want);
void heap_continue(heap *h, value v, span l, origin from); // v is what leaf l is, made by `from` now

// ---- walks over functions (bytes.c) -----------------------------------------------------------------
typedef struct {
  bool own;
  u32 k;
} held_by; // a buffer made inside, or leaf k of the parameters
typedef enum { RES_MIXED, RES_OWN, RES_PARAM } res_form;
typedef struct {
  res_form form;
  u32 k;             // own: the first of them; param: its number
  u32 leaf0, nleaf;  // in mbody.held_begin
  const msize *size; // own: of all
} mres;
// A function on a group as seen by a call: one pair (peak, net) for every rank class it touches.
typedef struct mbody {
  u32 row;              // in sim.priced
  const u8 *die, *used; // per parameter leaf (2 + k: it stands for mem.more[k] others), per result
  const class_set *cs;
  const i64 *peak, *net; // beside cs->cls
  const u32 *at;         // instruction during which the peak is; 0 = at the start
  const mres *res;
  const u32 *held_begin;
  const held_by *held;
  u32 nown;
  const part *own; // buffers made inside that results hold
  bool mixed;      // a result is RES_MIXED
} mbody;

typedef struct {       // what the call that is being expanded knows
  const origin *param; // of every parameter leaf
  const mem_kind *ret; // of every result
} context;
typedef struct { // the tensors that a function takes, tuples opened
  u32 nparam, nleaf;
  const type *leaf;
  const u32 *begin; // leaves of parameter k: begin[k]..
  const u32 *param; // of a leaf
} param_leaves;

typedef struct {
  sim *s;
  bool distir;
  bool host; // counts what lies in host memory, and nothing else
  VEC(msize *) sizes;
  hmap size_map, size_by_type;
  struct {
    const part *parts;
    const msize *const *want;
  } fitted[64]; // bundles that fit a parameter
  VEC(mbody *) bodies;
  hmap body_map;
  const mbody **latest;      // by row
  u8 *portable;              // by function: 1 the same bytes everywhere, 2 not, 0 not known yet
  const mbody **first;       // by portable function: some body of it
  param_leaves *params;      // by function
  const msize ***param_size; // by row: of every leaf
  const msize **near;        // by type: the latest size asked for
  group *near_g;             // and for which group of the call
  struct tally *tally;       // peak.c
  VEC(u32) more;             // that leaves which die in calls stand for
  bool odd;                  // what a span stands for is not what it does
} mem;

typedef struct walk { // one pass over a function on a group
  mem *m;
  func fn;
  const func_info *f;
  group g;
  const u32 *rows; // of callees, by instruction
  const life *l;
  const u32 *last; // as in life; results that the caller does not use die inside
  const context *cx;
  heap h;
  const i64 *start; // of main: bytes of its parameters, by rank class
  u32 more;         // the instruction at hand comes so many times more
  VEC(u8) die;
  VEC(u32) given; // buffers
  u8 *used;
  const u32 *ask, *ask_next; // rank classes + 1 to tell about at an instruction, as a list; NULL: none
  u32 until;                 // the last of these instructions
} walk;

void mem_init(mem *m, sim *s);
bool mem_uses_host(const sim *s); // does the program put anything in host memory?
void walk_init(walk *w, mem *m, u32 row, const u8 *used, const context *cx);
void walk_run(walk *w, const u8 *die, bool is_main);
void walk_open_main(walk *w); // the parameters of main; then one instruction after the other, from 0
void walk_step(walk *w, u32 instr);
mem_kind walk_kind(const walk *w, value v, bool is_call);
u32 walk_passed(walk *w, const instr *i, u32 q); // the leaf passed as leaf q of the callee's parameters
// peak.c: called, if w->ask, before instruction num frees anything; callee: it is that call.
void walk_tell(walk *w, u32 num, const mbody *callee, const instr *i);
#endif
