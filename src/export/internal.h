// internal.h - what the files of export/ share: names and lines of Python, the function at hand, pieces of tensors.
#ifndef HEDDLE_EXPORT_INTERNAL_H
#define HEDDLE_EXPORT_INTERNAL_H
#include "export/export.h"
#include "live/live.h"

enum { PY_LINE = 110, PY_INDENT = 4 };

// ---- names of Python (python.c) -------------------------------------------------------------------------
typedef struct { // those of one scope, each once
  hmap map;
  VEC(const char *) used;
  VEC(u32) numbered; // beside used: the last number that made a name like it unique
} py_names;
typedef struct { // process groups: the ranks along some axes, or at some coordinates of these
  const char *name;
  u32 n;
  u8 axis[MESH_AXES];
  const group_axis *only[MESH_AXES]; // NULL: at all
} py_axes;

typedef struct { // ends of uneven pieces
  const char *name;
  u16 table;
} py_table;

typedef struct {
  const prog *p;
  ctx *c;
  arena *a;
  bool failed;
  bool sums;   // some are beside a backward, and in the step at hand not yet waited for
  strbuf text; // what is written
  py_names global;
  const char **funcs;   // names of the functions
  const u32 (*site)[2]; // by function: one that calls it, and by which instruction; 0: nobody does
  const u32 (*last)[2]; // the last that does
  uses *uses;           // by function; begin NULL: not yet known
  group *runs_on;       // by function: the group of its first call
  const bool
      *moves;   // by function: other calls are at other coordinates of an axis of which a group has a part
  group ranks;  // of the instruction at hand; 0: unknown
  u32 patience; // of the search for a value's weight
  u32 *ncalls;  // by function
  u64 *times;   // by function: bit x, it must be told where it is on the temporal axis x
  u64 told;     // of the function at hand
  u8 loop;      // the temporal axis whose coordinate is the variable of a loop; 0: none
  VEC(py_axes) axes;
  VEC(py_table) tables;
  VEC(const char *) channels;
  u8 channel_of[2 * 256]; // by stream, forward and backward: index in channels + 1
  const char **meshes;    // names
  const char **time;      // by axis: the name of a coordinate on it; NULL: it is no temporal axis
  mesh *mesh_of;          // by axis
  bool measures;          // it has measure.py too
  // One instruction at these coordinates is written (measure.c): extents and places are its numbers. NULL: what any rank
  // runs is.
  const coords *here;
  const char *why; // here: what cannot be written, in place of a diagnostic
} py;

// A name like that, of letters that Python takes, which is not yet used in the scope or globally.
const char *py_name(py *w, py_names *in, const char *like);
void py_quote(strbuf *b, const char *s);         // "..." with escapes
void py_float(strbuf *b, double x);              // the shortest text that is this number
const char *py_dtype(py *w, dtype t, loc where); // "f32", the alias of a torch type; NULL and a diagnostic
void py_ints(strbuf *b, const i64 *v, u32 n, bool list); // "(8, 16)", or "[8, 16]"
// `head` item, item, ... `tail`, in lines of PY_LINE columns at this indent.
void py_line(py *w, u32 indent, const char *head, const char *const *item, u32 n, const char *tail);
// "a, b = f(c, d)": left, head "f(", items, tail ")".
void py_assign(py *w, u32 indent, const char *const *left, u32 nleft, const char *head,
               const char *const *item, u32 n, const char *tail);
void py_put(py *w, u32 indent, const char *fmt, ...) PRINTF_LIKE(3, 4); // one line
void py_comment(py *w, u32 indent, const char *text);                   // in lines

// ---- where things lie (pieces.c) ------------------------------------------------------------------------
// Can Python say how a tensor lies? Pieces are even, or one interval for each rank. Otherwise a diagnostic and false.
bool py_local(py *w, const type_info *t, loc where);
void py_extent(py *w, const type_info *t, u32 dim, strbuf *b); // on this rank: "16", "extent(PIECES_33, TP)"
void py_extents(py *w, const type_info *t, strbuf *b);         // "(8, 16)"
void py_stride(py *w, const lay_split *s, i64 stride, strbuf *b); // the stride, or the name of the pieces
const char *py_axes_of(py *w, const u8 *axes, u32 n); // the name of the process group: "TP"; within w->ranks
// The part of an axis that a group has; NULL: all of it, or one coordinate.
const group_axis *py_part(const py *w, group g, u8 axis);
const char *py_mesh_of(py *w, u8 axis); // the name of its mesh
// The axes among `over` of more than one rank that split the tensor in `cut` but not in `whole`, or with cut NULL of
// more than one rank in the order of the mesh; in the order in which they are cut. Their number.
u32 py_order(py *w, const type_info *cut, const u8 *over, u32 n, u8 *axes);
// How axes cut what is whole over them: "0, (1, 8)".
void py_cuts(py *w, const type_info *cut, layout whole, const u8 *axes, u32 n, strbuf *b);
// The part of a dimension that is here: "[(TP.at, 2, 8)]"; "[]": all of it. point: coordinates in time that are fixed.
void py_here(py *w, const type_info *t, u32 dim, u32 point, strbuf *b);
bool py_is_split(const py *w, const type_info *t, u32 dim);

// ---- functions (function.c) -----------------------------------------------------------------------------
typedef struct {
  py *w;
  const func_info *f;
  py_names names;
  const char **name; // by value; NULL: not yet
  uses uses;
  const u32 *last; // of its lifetimes
  func id;
  u32 indent, rank; // rank: of main, one of those that run the text
  bool told_sums;   // that they run beside
  sym node;         // that the last comment named
} py_scope;
py_scope py_scope_of(py *w, func f, u32 indent);
const char *py_value(py_scope *s, value v); // its name, given where there is none
void py_instr(py_scope *s, const instr *i); // its lines
void py_function(py *w, func f);            // "def layer_fwd(x, ln1_g):" and its body
bool py_refuse(py *w, loc where, const char *fmt, ...) PRINTF_LIKE(3, 4); // false; the first one counts
void py_refuse_hint(py *w, bool first, const char *hint);                 // of the one before, if it is said
// Is a value of main on the rank? Tuples are where their elements are.
bool py_present(const py *w, type t, u32 rank);
// What a value is best called: its own name, or that of what it came from. In the session's arena.
const char *py_hint(py *w, func f, value v);

// Main for one place, where microbatches repeat the same tasks: a loop over them. False, and nothing is written, where
// they do not. taken: the n instructions that the place takes part in.
bool py_roll(py_scope *s, const u32 *taken, u32 n);

// ---- operators (operators.c) ----------------------------------------------------------------------------
// The expression of an instruction that has a row in operators.def. False and a diagnostic.
bool py_operator(py_scope *s, const instr *i, strbuf *b);
bool py_beside(const instr *i); // a sum of gradients that runs beside a backward
bool py_collective(py_scope *s, const instr *i, u32 k, const char *operand, strbuf *b); // of operand k
const char *py_collective_why(py_scope *s, const instr *i); // NULL: it is no collective

// ---- the program (step.c, parameters.c, pytorch.c) ------------------------------------------------------
void py_step(py *w);         // functions of every place
u32 py_ranks(const prog *p); // processes
// The name of a parameter of main, or its number.
const char *py_param(const py *w, const func_info *f, u32 param);
void py_parameters(py *w);                     // what is stored, where, and how it begins
void py_send(py_scope *s, const instr *i);     // what a rank does of it
void py_exchange(py_scope *s, const instr *i); // within a group, where it is no collective
const char *export_pytorch(const prog *p, arena *a, const export_about *about);
const char *export_measure(const prog *p, arena *a, const export_about *about);
py *py_open(const prog *p, arena *a, bool measures);
void py_tables(py *w);          // ends of uneven pieces, at the top
void py_reserve_helpers(py *w); // their names are taken
typedef struct {
  const char *entry;      // the function that runs it
  const char *constants;  // lines behind the imports
  const char *top, *body; // what runs when it is reached; the rest
  const char *typed;      // of these, what names element types
} py_parts;
// The program behind its first lines: imports, what these name of pytorch.py and measure.py and what that names, in order.
const char *py_helpers(py *w, const py_parts *t);
#endif
