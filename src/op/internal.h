// internal.h - what the files of op/ share: the rows as compiled from their text, and the workbench on which
// the law of one application is put together.
//
// In messages operands count from 1 as people do, dimensions from 0 as the attribute `axis` does.
#ifndef HEDDLE_OP_INTERNAL_H
#define HEDDLE_OP_INTERNAL_H
#include "op/op.h"

// ---- rows, compiled (table.c) ----------------------------------------------------------------------------
typedef struct law_job law_job;
typedef struct {
  const char *name;  // "=matmul"
  const char *text;  // the law in letters, for people
  const char *split; // what may be split and what that leaves, for people
  bool (*fn)(law_job *);
} law_row;

enum { TEXT_TERMS = 16, TEXT_DIMS = DIMS_MAX, TEXT_FACTORS = 4, TEXT_NUMBER = 128, TYPE_TOKENS = 16 };
typedef struct {
  u8 n;
  u8 f[TEXT_FACTORS]; // major first: a letter, or TEXT_NUMBER + an extent
} text_dim;
typedef struct {
  bool dots; // leading dimensions, aligned at the right, broadcasting
  u8 n;      // dimensions after them
  text_dim dim[TEXT_DIMS];
} text_term;

// Tokens of a dtype rule: a capital letter is a variable of a class, the rest are exact. See ops.def.
enum { TY_ATTR = 1, TY_EACH = 2, TY_WIDE = 3, TY_EXACT = 128 };
enum { USE_NO, USE_OPTIONAL, USE_REQUIRED };

typedef struct {
  const law_row *law; // computed law; NULL: the terms below; both absent: not applicable (call, tuples)
  u8 nopd, nres;      // terms of operands, then of results
  text_term term[TEXT_TERMS];
  u8 type_opd, type_res; // tokens of operands, then of results; the last of each repeats
  u8 type[TYPE_TOKENS];
  u8 required;     // attributes that must be there
  u8 use[A_COUNT]; // USE_... of every attribute
} row_code;
const row_code *row_code_of(opcode op);
// Compiles a row's texts. NULL, or what is wrong, at which place of which text ("law", "types", "attributes").
const char *row_compile(row_code *rc, const op_row *r, const char **text, const char **at);
// The slot of an opcode beyond the table, for own.c.
void row_put(opcode op, const op_row *r, const row_code *rc);

// The next word of an attribute specification "axis=-1 axes? perm!". False at the end.
typedef struct {
  const char *name, *value;
  u32 name_len, value_len;
  char mark;
} attr_spec; // mark: = ? !
bool attr_spec_next(const char **text, attr_spec *out);
const char *attr_doc(attr_key k);
const char *attr_kind_name(attr_kind k); // "a list of integers"

const char *
attention_flops_text(opcode op); // attention.c: in words; NULL: they are as the row says, by points
double attention_flops(opcode op, const law *l);
double op_own_flops(const op_own *o, attrs at, const law *l); // that has a function for them

// ---- the workbench (law.c) -------------------------------------------------------------------------------
// A law function checks operands and attributes, gives every operand's dimensions their letters (l->opd) and
// every result its (l->res, nd included); result extents are the products of their letters.
enum { LETTERS_MAX = 256 };
struct law_job {
  ctx *c;
  arena *a;
  const op_row *row;
  attrs at;
  u32 nopd, nres;
  const shape *opd;
  loc where;
  law *l;
  u32 nletters;
  law_letter letter[LETTERS_MAX];
};

bool law_fail(law_job *j, diag_id id, const char *fmt, ...) PRINTF_LIKE(3, 4); // always false

// A new letter as a dimension; none if the extent is 1. Flags LAW_...; name 0 for unnamed.
law_dim law_letter_new(law_job *j, i64 extent, u32 flags, char name);
bool law_dim_push(law_dim *to, const law_dim *minor); // appends; false if there is no room
static inline void law_term_push(law_term *t, law_dim d) { t->dim[t->nd++] = d; }

// Axis attribute, counted from the end if negative; nd: dimensions it may name.
bool law_axis(law_job *j, attr_key k, i64 absent, u32 nd, u32 *axis);
bool law_rank(law_job *j, u32 operand, u32 least, u32 most);  // E_SHAPE unless within
bool law_equal(law_job *j, u32 p, u32 pd, u32 q, u32 qd);     // extents of two operands' dimensions
bool law_same_dims(law_job *j, u32 p, u32 q);                 // all extents of two operands
bool law_result_rank(law_job *j, u32 nd);                     // E_LIMIT above DIMS_MAX
bool law_extents(law_job *j, attr_key k, i64 *out, u32 *n);   // the attribute as extents of a tensor
bool law_matches(law_job *j, const law_term *t, u32 operand); // operand has the extents of the term
bool law_is(const law_job *j, attr_key k, const char *word);  // word attribute present and equal

#define LAW(name, text, split) bool law_##name(law_job *);
#include "op/laws.def"
#undef LAW
#endif
