// op.h - what operators mean: element types, attributes, and one row per operator with its law. Layer 2:
// pure.
//
// Idea: the law of an operator is its sharding rule: it names the dimensions of operands and results with
// letters, which others call factors. From it follow shapes, flops, what may be split, what a split needs of
// each operand, and where a split leaves a partial result. Plans read laws, never names of operators.
#ifndef HEDDLE_OP_H
#define HEDDLE_OP_H
#include "layout/layout.h"

// ---- element types -------------------------------------------------------------------------------------
typedef enum {
  DT_NONE,
#define DTYPE(name, text, bytes, kind) name,
#include "op/dtypes.def"
#undef DTYPE
  DT_COUNT
} dtype;
typedef enum { DK_NONE, DK_FLOAT, DK_INT, DK_UINT, DK_BOOL } dtype_kind;
u32 dtype_bytes(dtype t);
const char *dtype_name(dtype t); // "f16"
dtype dtype_find(const char *name, size_t n);
dtype_kind dtype_kind_of(dtype t);

// ---- attributes ----------------------------------------------------------------------------------------
typedef enum {
  A_NONE,
#define ATTR(name, kind, doc) A_##name,
#include "op/attrs.def"
#undef ATTR
  A_COUNT
} attr_key;
typedef enum { AK_INT, AK_FLOAT, AK_INTS, AK_FLOATS, AK_STR, AK_DTYPE, AK_DATA, AK_AXES } attr_kind;
typedef struct {
  u16 key; // attr_key
  u8 kind; // attr_kind, as attrs.def says
  u8 pad;
  u32 n; // elements of ints/floats/axes
  union {
    i64 i;
    double f;
    const i64 *ints;
    const double *floats;
    sym s;
    dtype t;
    u32 data;
    const u8 *axes;
  } u;
} attr;
typedef struct {
  u32 n;
  const attr *v;
} attrs; // sorted by key
const char *attr_name(attr_key k);
attr_kind attr_kind_of(attr_key k);
attr_key attr_find(const char *name, size_t n); // A_NONE if unknown
const attr *attr_get(attrs a, attr_key k);      // NULL if absent
i64 attr_int(attrs a, attr_key k, i64 absent);
double attr_float(attrs a, attr_key k, double absent);
u32 attr_ints(attrs a, attr_key k, const i64 **v); // 0 if absent

// ---- operators -----------------------------------------------------------------------------------------
typedef enum {
  OP_none,
#define OP(name, ...) OP_##name,
#include "op/ops.def"
#undef OP
  OP_COUNT,
  OP_ROWS = OP_COUNT + 256 // beyond the table: rows that sessions have of their own (own.c)
} opcode;

enum {          // row flags
  OPF_VIEW = 1, // no work: the result shares the first operand's storage
  OPF_INPLACE =
      2,        // results may take over the storage of the operands that they continue when those are donated
  OPF_COMM = 4, // communication: layouts of operand and result say what moves
  OPF_RANDOM = 8,    // draws counter-based random numbers by global element index
  OPF_META = 16,     // neither time nor bytes (constants, packs)
  OPF_POS = 32,      // the kernel needs global extents and piece offsets
  OPF_GEMM = 64,     // costed as a matrix product
  OPF_MANY_RES = 128 // number of results is not fixed by the row
};
typedef struct {
  const char *name;
  u8 opd_min, opd_max; // 255 = any number
  u8 res;              // results (OPF_MANY_RES: at least)
  const char *law;     // text, or "=fn": computed by law_fn
  const char *lin;     // one mark per operand, the last repeats: e, j or -
  const char *types;   // dtype rule, see ops.def
  const char *attrs;   // accepted attributes: "axis=-1 axes? perm!" (=default, ? optional, ! required)
  reduction red;       // how contracted letters combine
  u32 flops;           // per point of the iteration space
  u32 flags;
  const char
      *grad; // name of its gradient's rule; "zero": zero almost everywhere, "no": none; "own": a formula
  const char *doc;
  const struct op_own
      *own; // what an operator from outside the table has beside its row; NULL: it is in the table
} op_row;
const op_row *op_row_of(opcode op);
// The operand whose storage result r takes over, if the row is OPF_INPLACE and that is donated. Of an optimizer its states
// follow the gradient, which none of its results continues.
static inline u32 op_continues(opcode op, u32 r) {
  return op_row_of(op)->flags & OPF_MANY_RES ? r : r ? r + 1 : 0;
}
const char *op_law_text(opcode op);   // the law in letters; NULL: it has none (call)
const char *op_split_text(opcode op); // what may be split, in words; NULL: its letters say it
bool op_takes(opcode op, attr_key k); // has its row the attribute?
dtype op_operand_type(opcode op, u32 operand, dtype usual); // by its types; `usual` where they leave it open
opcode op_find(const char *name, size_t n);                 // of the table; OP_none if unknown
opcode op_named(const ctx *c, const char *name, size_t n);  // of the table or of the session's own
const char *op_near(const ctx *c, const char *name,
                    size_t n);       // what was meant, of all of these; NULL: none is near
void op_doc(opcode op, strbuf *out); // the row as a manual page

// ---- shapes and laws -----------------------------------------------------------------------------------
typedef struct {
  dtype t;
  u32 nd;
  i64 dim[DIMS_MAX];
} shape; // global extents
i64 shape_elems(const shape *s);
i64 shape_bytes(const shape *s);
bool shape_same(const shape *a, const shape *b);

enum { LAW_FACTORS = 7, LAW_WHOLE = 1, LAW_ADDRESSED = 2, LAW_FIXED = 4, LAW_DERIVED = 8 };
typedef struct {
  u8 n;
  u8 f[LAW_FACTORS];
} law_dim; // letters of one dimension, major first; none: extent 1
typedef struct {
  u32 nd;
  law_dim dim[DIMS_MAX];
} law_term;
static inline bool law_term_has(const law_term *t, u32 letter) {
  for (u32 d = 0; d < t->nd; d++)
    for (u32 j = 0; j < t->dim[d].n; j++)
      if (t->dim[d].f[j] == letter) return true;
  return false;
}
typedef struct {
  i64 extent;
  u8 flags;  // WHOLE: may not be split; ADDRESSED: picked by value, not iterated; FIXED: shrinking must keep
             // it (an attribute, or arithmetic that letters cannot express, ties the extent); DERIVED: the
             // index follows from other letters, not iterated (input of a window, source of a slice; always
             // WHOLE)
  char name; // for messages; 0 if computed
} law_letter;
typedef struct {
  u32 nletters, nopd, nres;
  law_letter *letter;
  law_term *opd, *res;
  const char *lin; // the row's linearity, or "-" where an attribute or the element type breaks it (cast to an
                   // integer)
} law;
static inline char law_lin(const law *l, u32 operand) {
  size_t n = strlen(l->lin);
  return n == 0 ? '-' : l->lin[operand < n ? operand : n - 1];
}
// The law of one application: checks operands and attributes, gives result shapes and letters. All in `a`.
// Result shapes that the operands do not determine (reshape, expand, constant) come from the attribute
// `shape`. Failure: located diagnostic (E_SHAPE, E_DTYPE, E_ATTR, E_ARITY, E_LIMIT) and NULL. *nres: results
// (in, for MANY_RES: how many are wanted, 0 = as many as there are). Not for call, opaque, pack, unpack:
// their types are the program's.
const law *op_law(ctx *c, arena *a, opcode op, attrs at, u32 nopd, const shape *opd, u32 *nres, shape *res,
                  loc where);
enum { OP_RES_MAX = 64 }; // room callers give for res
// Points of the iteration space: product of extents of all letters that are iterated (not ADDRESSED).
double law_points(const law *l);
double op_flops(opcode op, attrs at, const law *l);
// The attributes of the same application when letter i has extent[i] (FIXED letters keep theirs, others are 2
// at least): with operands of these extents its law has the same letters. In `a`.
attrs law_rescale(arena *a, opcode op, attrs at, const law *l, const i64 *extent);

// ---- attention (attention.c): its law as text, "bshd,bthd,bthe,hst->bshe", taken apart ---------------------
enum { ATTENTION_OPDS = 5 };
typedef struct {
  u32 nopd; // 3 to 5: q, k, v, and what is added to scores, a mask, or both
  char opd[ATTENTION_OPDS][DIMS_MAX + 1], y[DIMS_MAX + 1], rows[DIMS_MAX + 1]; // rows: of y without `wide`
  char key, deep, wide; // the letters of keys; summed over between q and k; that v brings to y
} attention_law;
const char *attention_read(const char *text, attention_law *l); // NULL, or what is wrong with it

// ---- sharding patterns (pattern.c) -----------------------------------------------------------------------
// A pattern is one way to split an application over one axis: a letter that is split, and what that makes of
// the tensors that a rank holds.
typedef enum {
  PIECE_NONE,   // there is no such tensor: the gradient of an integer
  PIECE_WHOLE,  // every rank has all of it
  PIECE_SPLIT,  // every rank has a piece of dimension `dim`: of n ways at stride unit * extent / n
  PIECE_PARTIAL // the ranks' tensors together make it, by `red`
} piece_state;
typedef struct {
  u8 state, dim, red;
  i64 unit; // elements of the dimension for one of the letter
} law_piece;
typedef struct {
  u32 letter;
  const law_piece *opd, *res;    // how operands must lie, and how results come out
  const law_piece *grad;         // how gradients of operands come out, if those of the results are complete
  bool sum, gradients, grad_sum; // is a result partial; is there a gradient; is one partial
} law_pattern;
// All patterns of an application with operands `opd`, in this order: letters that all results have and the
// first operand lacks (columns of a weight); letters that a result lacks (a sum); the others (rows, samples).
// Of each kind in the order of the law. Their number; arrays in `a`.
u32 law_patterns(arena *a, opcode op, const law *l, const shape *opd, const law_pattern **out);
typedef enum {
  WHOLE_NOT,       // it may be split
  WHOLE_NO_SUM,    // a result lacks it, and the row says no way to combine the parts
  WHOLE_AT_ONCE,   // a result lacks it, and needs all of it at once
  WHOLE_TOGETHER,  // elements of the result along it depend on each other
  WHOLE_ADDRESSED, // picked by value, and cannot be masked
  WHOLE_FOLLOWS,   // its index follows from those of other letters
  WHOLE_TIED,      // its extent is tied to an attribute or to other extents
  WHOLE_INSIDE     // no tensor has it
} whole_reason;
whole_reason law_whole_reason(opcode op, const law *l, u32 letter);
// Different names for all letters: the law's own where it has one, else a, b, c ...; capitals are WHOLE. In
// `a`.
const char *const *law_letter_names(arena *a, const law *l);
// An application of a row that has a law, as text: "64x128,128x256" and "axes=[1]", "" for none.
typedef struct {
  const char *shapes, *attributes;
} op_example;
op_example op_example_of(arena *a, opcode op);

// ---- operators from outside the table (own.c) ------------------------------------------------------------
// A row like those of ops.def, which belongs to one session: programs of others do not know its name. It stays until
// the session ends. Only numbers are common to the process: an opcode names a row whoever asks, on any thread, so that
// nothing but names has to know the session. Numbers differ between runs of several sessions: nothing prints, hashes or
// sorts by them but in the order in which one session registered.
struct ker_tensor;
typedef struct op_own op_own;
struct op_own {
  const char *const *operand, *const *result; // names of operands and results
  const char *gradient;                       // text of the formula; NULL: none
  const struct formula *formula;              // of it, read (ir.h)
  const char *pytorch;                        // expression, as in export/operators.def; NULL: none
  // Its numbers: elements are f64 or i64. False: it cannot. NULL: there is none.
  bool (*kernel)(const op_own *o, attrs at, u32 nopd, const struct ker_tensor *opd, u32 nres,
                 struct ker_tensor *res);
  // Floating-point operations of the whole application, whose element types are not told; bytes that a rank moves for the
  // extents that it has. NULL: by the row, operands read and results written once.
  double (*flops)(const op_own *o, attrs at, u32 nopd, const shape *opd, u32 nres, const shape *res);
  double (*bytes)(const op_own *o, attrs at, u32 nopd, const shape *opd, u32 nres, const shape *res);
  const void *of; // for these functions
};
// Of `row` the law (in letters), lin, types, attrs, red, flops, flags and doc; names of operands and results with commas
// between say how many there are. Texts are copied. OP_none and a diagnostic E_OPERATOR where something is wrong.
opcode op_register(ctx *c, const op_row *row, const char *operands, const char *results, const op_own *own);
void op_unregister(ctx *c, opcode op);                   // the latest of the session, which no program has
void op_set_formula(opcode op, const struct formula *f); // read after the row, whose name it may have
void op_share(ctx *to, const ctx *from); // names of `from` are known in `to`, which ends before it
u32 op_own_count(const ctx *c);
u32 op_limit(const ctx *c);                // one past the largest opcode that the session knows
void op_names(ctx *c, sym *name);          // by opcode, of op_limit(c); cleared before
opcode op_own_at(const ctx *c, u32 index); // in the order in which they were registered
// The value of an attribute that the application leaves out, by the row "name=value". In `list` at most `most`; their
// number, 0: there is no such value.
u32 op_default(opcode op, attr_key k, double *list, u32 most);

// ---- collectives: one row each (docs, cost, evaluation read it) -----------------------------------------
// in/out: what the named axes do in the operand's and the result's layout: R replicated, V partial, D split,
// O on one member only (rooted), X another group, * either of R and D.
typedef struct {
  opcode op;
  char in, out;
  const char *doc;
} coll_row;
const coll_row *coll_find(opcode op); // NULL if not a collective
#endif
