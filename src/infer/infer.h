// infer.h - the types interpreter: what can be known of a program without its numbers. Layer 4.
#ifndef HEDDLE_INFER_H
#define HEDDLE_INFER_H
#include "ir/ir.h"

// ---- layouts of results (layouts.c) ---------------------------------------------------------------------
// Does every compute instruction of a verified program get the operands that its declared results need?
// E_LAYOUT.
bool infer_verify(prog *p);

// ---- values that shapes depend on (concrete.c) -----------------------------------------------------------
// A mixer is a builder for importers. A mixed value is known (its elements), abstract (a value of the
// program), or both. An operation whose operands are all known and whose result is shape-like (at most one
// extent above 1, or a few integers) is evaluated with the reference kernels and never emitted; a known value
// that an emitted instruction needs becomes full, iota or constant, once.
typedef u32 mixed; // handle of a mixer's value; 0 = none
typedef struct {
  shape s;
  const void *known; // elements, row-major; NULL: not known
  value v;           // 0: not in the program (yet)
} mixed_info;
typedef struct {
  builder b;
  arena *a; // known elements and scratch; outlives the mixer's values
  VEC(mixed_info) v;
} mixer;
mixer mix_at(prog *p, func f, arena *a);
static inline const mixed_info *mix_get(const mixer *m, mixed x) { return &m->v.v[x]; }
mixed mix_value(mixer *m, value v);                           // an abstract value of the function
mixed mix_known(mixer *m, const shape *s, const void *elems); // elements are not copied
mixed mix_full(mixer *m, dtype t, double x);                  // a known scalar
mixed mix_i64s(mixer *m, const i64 *x, u32 n);                // known [n]; copied
// As build and build_n; a failed operation (diagnostic given, b.failed set) and one with a missing operand
// give 0.
mixed mix_op(mixer *m, opcode op, const mixed *opd, u32 n, const attr *at, u32 nat, u32 nres);
value mix_emit(mixer *m, mixed x);                // its value in the function; 0 for 0
bool mix_read(const mixer *m, mixed x, i64 *out); // elements as integers; false if not known
bool mix_read_f64(const mixer *m, mixed x, double *out);

// ---- index classes (classes.c) ---------------------------------------------------------------------------
// Which dimensions are the same index? Every dimension of every value of every function is a list of atoms,
// major first; the laws say which atoms are equal, a reshape refines them (3072 = 3 * 16 * 64), calls equate
// arguments with parameters. A class is a set of equal atoms: the batch, the heads, the hidden dimension, ...
typedef struct {
  i64 extent;
  bool fixed;
  u32 uses;
} class_info; // fixed: a constant or attribute pins the extent
typedef struct classes classes;
classes *classes_of(arena *a, const prog *p); // all functions reachable from main
u32 classes_count(const classes *k);          // ids 1..count
const class_info *classes_get(const classes *k, u32 id);
// Atoms of one dimension, major first: class ids; the stride of atom j is the product of extents after it.
// Returns n.
u32 classes_dim(const classes *k, func f, value v, u32 dim, u32 *id, u32 cap);

// ---- the same program at smaller extents (shrink.c) -------------------------------------------------------
// Every class of a program may get a smaller extent, except where something pins it: a law or an attribute
// (fixed), an index that is computed and not given (rows of a table that must exist). A cut is a split that
// must remain possible: `ways` pieces at `stride` within the class. keep: what an extent has in common with
// this number it shall keep (axes that may split it without a cut). many: an extent that has so many elements
// shall keep as many (ranks that they may be dealt out to). copies: that there are of main's parameters, gradients and
// states among them. The program must have been verified and is only read; k is of this very program.
typedef struct {
  u32 id;
  i64 stride;
  u32 ways;
} class_cut;
typedef struct shrinking shrinking;
shrinking *shrink_new(arena *a, prog *p, const classes *k, const class_cut *cut, u32 ncuts, i64 keep,
                      i64 many, double copies);
void shrink_pin(shrinking *s, u32 id); // this class keeps its extent
// Elements of all values with calls expanded (parameters of main as often as there are copies) and points
// of all iteration spaces, at the extents as they are now.
void shrink_cost(const shrinking *s, double *elems, double *points);
// Shrinks class by class to the least extents, always the one that helps most, until neither is more. False if all that
// is left is pinned.
bool shrink_until(shrinking *s, double elems, double points);
void shrink_grow(shrinking *s, double elems, double points); // then: gives back what there is room for
i64 shrink_extent(const shrinking *s, u32 id);               // as it is now
i64 shrink_stride(const shrinking *s, u32 id, i64 stride);   // what a cut's stride has become
// A copy with these extents, same functions, instructions and values; constant elements become the corner of
// what they were. Of its functions the first `nfuncs` (their ids are below that). NULL and diagnostics if it does
// not verify.
prog *shrink_program(const shrinking *s, u32 nfuncs);
void shrink_print(const shrinking *s,
                  strbuf *out); // "1024 -> 8 (tokens[1]), 50257 -> 5 (wte[0])"; "" if nothing
#endif
