// infer.h - the types interpreter: what can be known of a program without its numbers. Layer 4.
#ifndef HEDDLE_INFER_H
#define HEDDLE_INFER_H
#include "ir/ir.h"

// ---- layouts of results (layouts.c) ---------------------------------------------------------------------

// ---- values that shapes depend on (concrete.c) -----------------------------------------------------------

// ---- index classes (classes.c) ---------------------------------------------------------------------------
// Which dimensions are the same index? Every dimension of every value of every function is a list of atoms, major
// first; the laws say which atoms are equal, a reshape refines them (3072 = 3 * 16 * 64), calls equate arguments
// with parameters. A class is a set of equal atoms: the batch, the heads, the hidden dimension, ...
typedef struct { i64 extent; bool fixed; u32 uses; } class_info; // fixed: a constant or attribute pins the extent
typedef struct classes classes;
classes *classes_of(arena *a, const prog *p);            // all functions reachable from main
u32 classes_count(const classes *k);                     // ids 1..count
const class_info *classes_get(const classes *k, u32 id);
// Atoms of one dimension, major first: class ids; the stride of atom j is the product of extents after it. Returns n.
u32 classes_dim(const classes *k, func f, value v, u32 dim, u32 *id, u32 cap);
#endif
