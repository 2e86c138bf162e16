// ir.h - the program: SSA, straight-line, functions and calls; what runs where is in types, groups and
// streams. Layer 3. Built through the builder below, which checks, infers and records; printed and parsed as
// text (docs/language.md); verified by ir_verify.
//
// Idea: everything is an index. A value id is local to its function; types, groups, layouts, attributes are
// interned in the program, so equality is equality of ids. A type's extents are always *global*; the layout
// says which piece a rank holds. Inside a function group 0 means "the group the function is called on".
#ifndef HEDDLE_IR_H
#define HEDDLE_IR_H
#include "op/op.h"

typedef struct {
  u32 i;
} type; // interned type; 0 = none
typedef struct {
  u32 i;
} func;            // function of a program; 0 = none
typedef u32 value; // value of a function; 0 = none
typedef struct {
  u32 i;
} attrset; // interned attributes; 0 = none
typedef struct {
  u32 i;
} stream; // 0 = the compute stream

typedef struct {
  bool tuple;
  shape s; // tensors: element type and global extents
  layout lay;
  group g; // where it lives; 0 = the function's own group
  u32 n;   // tuples: elements
  const type *elem;
} type_info;

enum { OPD_DONATED = 1u << 31, OPD_AFTER = 1u << 30, OPD_VALUE = ~(3u << 30) }; // marks in operand entries
typedef struct {
  u16 op;        // opcode
  u8 strm;       // stream id
  u8 flags;      // INSTR_...
  u32 opd, nopd; // into func.opds: value | marks; data operands first, then `after` operands
  u32 res, nres; // results are values res..res+nres-1
  attrset at;
  group g;     // where it runs; 0 = the function's own group. send: the source's group
  func callee; // OP_call
  u32 coord;   // temporal coordinates (id in prog.points; 0 = none fixed)
  loc where;
  u32 origin; // id shared by a forward instruction and all that is derived from it (0 = none)
  u32 scope;  // annotation that it stands in, of prog.scopes (0 = none)
} instr;
enum {
  INSTR_BACKWARD = 1,
  INSTR_RECOMPUTE = 2,
  INSTR_UPDATE = 4,
  INSTR_PLAN = 8, // inserted by a plan
  INSTR_HOST = 16 // runs on the host's processor, on what lies in host memory; a stream of its own
};

typedef struct {
  type ty;
  u32 def;
  sym name;
} value_info; // def: instruction index + 1; 0 = parameter
typedef enum { ROLE_INPUT, ROLE_WEIGHT, ROLE_STATE, ROLE_LABEL, ROLE_CONST } role; // of main's parameters
typedef struct {
  role r;
  u32 data;
  bool host;  // of main: it lies in host memory, and `copy` brings it to the device
} param_info; // data: constant elements (0: none, or absent weights)
typedef struct func_info {
  sym name;
  VEC(value_info) values; // values.v[0] is unused; parameters are values 1..nparams
  u32 nparams;
  VEC(instr) body;
  VEC(u32) opds;
  VEC(value) rets;
  VEC(param_info) params; // index: parameter number from 0
  loc where;
} func_info;

typedef struct {
  dtype t;
  u32 nd;
  i64 dim[DIMS_MAX];
  const void *bytes;
  i64 size;
} data_info; // bytes NULL: absent

// How measured times of layers change the prices of instructions (plan/measured.c): each is multiplied by a
// factor that depends on the part of the model that it comes from, on what it is of (forward, backward,
// update), and on the rank. Communication over axes that do not share operators keeps its price, as do sends.
enum { MEASURED_OF = 3 };
typedef struct func_info func_info;
typedef struct {
  u32 nparts;
  const u8 *part; // by origin: from 1; 0: none
  u32 nfuncs;
  const func_info *const *func; // what an operator became, whose instructions have no origin
  const u8 *func_part;          // theirs
  const u16 *row;               // by rank
  u64 axes;                     // bit x: axis x shares operators
  const double *factor;         // [(row * (nparts + 1) + part) * MEASURED_OF + of]
} measured_times;

// What a program says of its own parallelism (docs/annotations.md): scopes of instructions, and settings. It
// changes nothing about what the program computes; plan/annotations.c reads it, and distributed programs have
// none.
enum { SCOPE_ALL = UINT32_MAX }; // all devices
typedef struct {
  enum { SHARES_UNSAID, SHARES_EQUAL, SHARES_AUTO, SHARES_PARTS } how;
  u32 n; // SHARES_PARTS: what each gets, in parts of their sum
  const u32 *part;
  loc where;
} shares_info;
typedef enum {
#define SCOPE(id, ...) SCOPE_##id,
#include "ir/scopes.def"
#undef SCOPE
  SCOPE_KINDS
} scope_kind;
typedef struct {
  const char *word;
  bool split, inside, counted;
  const char *axis, *before, *after;
} scope_row; // columns of scopes.def
const scope_row *scope_row_of(scope_kind k);
typedef struct {
  u32 parent; // scope around it, a smaller number; 0: none
  scope_kind kind;
  u32 count; // devices; SCOPE_ALL; 0: not said
  shares_info shares;
  sym name; // {0}: none
  loc where;
} scope_info;
typedef struct {
  sym key, value;
  loc where;
} setting_info;

// Which instructions of main run which task of a pipeline (sched.h), where a plan made the program: those from
// `from`, from 0, to the next stretch.
typedef struct {
  u32 from, microbatch;
  u16 stage;
  char letter; // of the kind of task; 0: of none
  bool send;   // what the task has made is sent
} task_span;

// Layers of the model, of a program that a plan made: numbers + 1, 0: of none (layers.c).
typedef struct {
  u32 norigins, nstages, nparams;
  const u32 *const *of; // by stage of the pipeline (task_span.stage) and origin; a stage at least
  const u32 *param;     // by parameter of main, from 0
} layer_table;

typedef struct prog {
  ctx *c;
  arena *a;
  u64 serial; // like no other program's, not even of one that is gone
  space *sp;
  VEC(func_info *) funcs; // [0] unused
  func main;
  VEC(type_info) types; // [0] unused
  VEC(attrs) attrsets;  // [0] = no attributes
  VEC(sym) streams;     // [0] = "compute"
  VEC(data_info) data;  // [0] unused
  VEC(coords) points;   // [0] = no coordinate fixed: temporal coordinates of instructions; 0 where not fixed
  VEC(u64) fixed;       // beside points: bit x set where axis x is fixed
  u32 norigins;
  VEC(scope_info) scopes; // [0]: the default, of what stands in none, if there is one
  bool has_default;
  shares_info replicas;       // of the model: their shares of the batch
  VEC(setting_info) settings; // of its configuration
  VEC(task_span) tasks;       // not in the text
  u32 tasks_of;               // of a main of so many instructions: a pass may have made another one
  const layer_table *layers;  // NULL: of its own main. Not in the text
  // Updates are between tasks: the same program without those of the last update, of `updates` in all; it is freed with
  // this one. A longer program takes as much more for each update more. NULL: there is none. Not in the text, nor in a clone
  struct prog *shorter;
  u32 updates;
  const measured_times *measured; // NULL: prices are the cost model's. Not in the text, nor in a clone
  hmap type_map, attr_map, point_map;
  hmap regroup_map; // of type_on and type_bind: (type, group) to type
  // Functions 1 .. nmapped - 1 by name, some of which may be gone; and what a name was last made unique with.
  hmap func_map, copy_map;
  VEC(u32) copies;
  u32 nmapped;
} prog;

void prog_renumbered(prog *p); // ids of types, groups or functions mean something else now
prog *prog_new(ctx *c);        // own arena and space
void prog_free(prog *p);
prog *prog_clone(const prog *p, ctx *c); // same ids; constant bytes are shared
prog *prog_empty(const prog *p);         // the same without functions

// ---- interning -----------------------------------------------------------------------------------------
type type_tensor(prog *p, const shape *s, layout l, group g);
type type_tuple(prog *p, const type *elem, u32 n);
static inline const type_info *type_get(const prog *p, type t) { return &p->types.v[t.i]; }
u32 type_leaves(const prog *p, type t);             // tensors in it; 1 of a tensor
type type_with(prog *p, type t, layout l, group g); // same shape, elsewhere (tensors)
type type_on(prog *p, type t, group g);             // same layout on another group (tuples too)
type type_bind(prog *p, type t, group g);        // a callee's type as seen by a call on g: group 0 becomes g
attrset attrs_of(prog *p, const attr *v, u32 n); // any order; copied
static inline attrs attrs_get(const prog *p, attrset a) { return p->attrsets.v[a.i]; }
attr attr_i(attr_key k, i64 v);
attr attr_f(attr_key k, double v);
attr attr_s(attr_key k, sym s);
attr attr_t(attr_key k, dtype t);
attr attr_v(attr_key k, const i64 *v, u32 n);
attr attr_d(attr_key k, u32 data);
attr attr_x(attr_key k, const u8 *axes, u32 n);
stream stream_of(prog *p, sym name); // found or added; 255 at most
u32 data_add(prog *p, const shape *s, const void *bytes, bool copy);
u32 point_with(prog *p, u32 point, u8 axis, u16 at);
u32 point_merge(prog *p, u32 outer, u32 inner); // of an instruction in a call: the inner coordinate wins

u32 scope_add(prog *p, const scope_info *s);
bool scope_within(const prog *p, u32 inner, u32 outer); // is it that one or inside it? Everything is inside 0
bool scope_is_empty(const prog *p, func f, u32 scope);  // just after what it has, at the end of f
void prog_forget_scopes(prog *p);                       // what is made of a program is not what was annotated

// ---- access --------------------------------------------------------------------------------------------
static inline func_info *func_get(const prog *p, func f) { return p->funcs.v[f.i]; }
func func_find(const prog *p, sym name); // {0} if absent
void func_renumbered(prog *p); // call after functions were given other numbers, but by dropping the last ones
static inline const value_info *val(const func_info *f, value v) { return &f->values.v[v]; }
static inline const type_info *val_type(const prog *p, const func_info *f, value v) {
  return &p->types.v[f->values.v[v].ty.i];
}
static inline value opd_of(const func_info *f, const instr *i, u32 k) {
  return f->opds.v[i->opd + k] & OPD_VALUE;
}
static inline bool opd_donated(const func_info *f, const instr *i, u32 k) {
  return f->opds.v[i->opd + k] & OPD_DONATED;
}
u32 instr_nopd(const func_info *f, const instr *i); // data operands only (without `after`)
// Uses of every value: use[begin[v]..begin[v+1]) are instruction indices (+1; 0 = returned). Arrays in `a`.
typedef struct {
  u32 *begin, *use;
} uses;
uses func_uses(arena *a, const func_info *f);

// ---- building ------------------------------------------------------------------------------------------
func func_new(prog *p, sym name, loc where); // made unique with a suffix if the name exists
value func_param(prog *p, func f, type t, sym name, role r);
void func_return(prog *p, func f, const value *v, u32 n);
typedef struct { // what the next instructions get
  prog *p;
  func f;
  group g;
  u8 strm, flags;
  u32 coord, origin, scope;
  loc where;
  bool failed; // a checked build failed: results are 0 and further calls do nothing
} builder;
builder builder_at(prog *p, func f);
// Checked: applies the operator's law to the operands' shapes and infers results (layouts: replicated, group
// b->g). First result, or 0 and a diagnostic (b->failed is then set; building with 0 operands is a silent
// no-op).
value build(builder *b, opcode op, const value *opd, u32 n, const attr *at, u32 nat);
value build1(builder *b, opcode op, value x);
value build2(builder *b, opcode op, value x, value y);
value build_n(builder *b, opcode op, const value *opd, u32 n, const attr *at, u32 nat,
              u32 nres); // several results: res..res+nres-1
value build_call(builder *b, func callee, const value *opd,
                 u32 n); // checks parameter types; results from its returns
// Unchecked: result types given (plans, parsers). Operand entries may carry marks. Returns the instruction's
// index + 1.
u32 emit(builder *b, opcode op, attrset at, const u32 *opd, u32 n, const type *res, u32 nres);
// Copies an instruction of f, a function of the builder's program: operands as map has them, results noted
// there. Stream, flags, origin and location are its own, group and coordinates the builder's.
u32 emit_copy(builder *b, const func_info *f, const instr *i, value *map);
// Do two instructions do the same with the operands that they have, and make the same types? Where operands,
// results, coordinates, origin and location stand does not count, nor do the flags in `ignored`.
bool instr_alike(const func_info *f, const instr *i, const func_info *g, const instr *j, u8 ignored);
static inline value emit_res(const prog *p, func f, u32 index1) {
  return p->funcs.v[f.i]->body.v[index1 - 1].res;
}
void value_name(prog *p, func f, value v, sym name);
// What a weight or state of main is called after a step, "w.new" of w; and of which that is the name, {0} of none.
#define IR_NEW ".new"
sym ir_new_name(ctx *c, sym old);
sym ir_old_name(ctx *c, sym name);
// The functions that run: main, last, and what it calls, callees before their callers. In `a`.
u32 *ir_call_order(const prog *p, arena *a, u32 *n);
// Microbatch of what stands at a temporal coordinate (prog.points): the first axis that it fixes counts them; it fixes
// none: that of the call around.
u32 ir_microbatch(const prog *p, u32 coord, u32 around);
bool ir_has_tasks(const prog *p); // of a pipeline, and of this main
u32 ir_task_at(const prog *p,
               u32 index); // that instruction `index` of main, from 0, is of: tasks.v[n - 1]; 0: of none

// ---- layers (layers.c) ---------------------------------------------------------------------------------
// Layers are numbered as the names of their weights say ("h.3.attn.qkv"), else from 0 as main calls them. Numbers + 1,
// 0: of none. Of a program that no plan made: by instruction of main, of calls alone; by parameter, from 0. In `a`.
u32 *ir_layer_of_calls(arena *a, const prog *p);
u32 *ir_layer_of_params(arena *a, const prog *p, const u32 *call);
const layer_table *ir_layers_copy(arena *a, const layer_table *t);
// Of any program, for whoever walks through its calls.
typedef struct {
  const prog *p;              // NULL: nothing is known
  const u32 *main;            // by instruction of main
  const u32 **update, **root; // by instruction of main, by root; by function, of values
  const u32 **origin;         // by function and instruction
  const layer_table *of;
} ir_layers;
const ir_layers *ir_layers_of(arena *a, const prog *p);
typedef struct {
  u32 func, index; // the instruction, from 0
  u32 depth;       // calls around it
  u32 top;         // what it is in: the instruction of main, from 0; of a task, as ir_task_at says
  u32 task;
  u32 around; // the layer of the call around it
} ir_layer_place;
u32 ir_layer_at(const ir_layers *l, const ir_layer_place *x);

// ---- text ----------------------------------------------------------------------------------------------
void ir_print(const prog *p, strbuf *out);
void ir_print_func(const prog *p, func f, strbuf *out);
const char *ir_type_str(const prog *p, type t);               // for messages; in the session's arena
prog *ir_parse(ctx *c, sym file, const char *text, size_t n); // verified; NULL and diagnostics if bad

// ---- one application (application.c) -------------------------------------------------------------------
typedef struct {
  const char *shapes;     // "4096x1024,i64:4096": of the operands; "" for none
  const char *attributes; // "axes=[1], keepdims=0", as in program text; "" for none
  dtype usual;            // of operands of which neither the text nor the row says the type
} application_text;
// A program whose main applies one operator, which has a law, to its parameters. There is an axis "a" of 2,
// for communication. NULL and diagnostics at --shapes and --attributes.
prog *ir_application(ctx *c, opcode op, const application_text *t);

// The same parts for a program that is being built; `text` is what diagnostics show, at `file`. A type as program
// text has it, "f32[64,1024]"; attributes into v, which has room for A_COUNT, with their values in tmp.
bool ir_read_type(prog *p, sym file, const char *text, type *out);
bool ir_read_attributes(prog *p, arena *tmp, sym file, const char *text, attr *v, u32 *n);

// ---- gradients of operators from outside, as text (formula.c) --------------------------------------------
typedef struct formula formula;
// Reads the text that the row of `op` has (op_own.gradient). NULL and diagnostics at its places.
const formula *ir_read_formula(ctx *c, opcode op);
// Gradients of which results those of the operands in `want` depend on.
void ir_formula_needs(const formula *f, arena *tmp, const bool *want, bool *dy);
typedef struct {
  attrs at;         // of the application
  const value *x;   // operands
  value y;          // first result
  const value *dy;  // gradients of results; those that are needed are there
  const bool *want; // of operands
} formula_use;
// dx[k]: what the formula says, of whatever shape; 0: nothing, or not wanted.
void ir_build_formula(const formula *f, builder *b, arena *tmp, const formula_use *u, value *dx);

// ---- who gives what to whom (givers.c) -----------------------------------------------------------------
// One result of one communication, and the operand that it is of; of a join all of them.
typedef struct {
  group g; // never 0 for the function's own
  layout lay;
} giving_end;
typedef struct {
  const space *sp;
  opcode op;
  const u8 *over;
  u32 nover, root; // root: place in its subgroup
  bool adds;       // a member's piece is combined from what all its givers have
  u32 nfrom;
  const giving_end *from;
  giving_end to;
} giving;
giving giving_of(const prog *p, const instr *i); // of which adds, from and to are the caller's to say
typedef struct {
  u32 opd, member;
} giver;
typedef struct {
  u32 n;
  giver *v;
} givers;
// Who may give to member `to`, in the order in which they are asked. In `a`. The root must be one of its subgroup.
givers givers_of(const giving *x, arena *a, u32 to);

// Which elements of a tensor a piece has: a product of ranges. In the whole tensor or, where the caller has cut an axis
// in time out of the layout, in its piece at that time.
typedef struct {
  u32 n;
  i64 (*v)[2];
} ranges; // sorted, disjoint, half open
typedef struct {
  ranges d[DIMS_MAX];
} box;
ranges ranges_of(arena *a, i64 *index, i64 n); // of these indices, which it sorts
// Of a member of a group; of group 0 at coordinate 0 of every axis.
box box_of(const space *sp, arena *a, layout l, u32 nd, const i64 *dim, group g, u32 member);
i64 box_elems(const box *b, u32 nd);
typedef struct {
  giver from;
  box what; // the giver may share elements with those before it, which count
} gift;
typedef struct {
  u32 n;
  gift *v;
  i64 missing; // elements that nobody has
} gifts;
// Who gives to member `to` and what, if nothing is combined: every element from the first giver who has it. have: the
// pieces of the givers, by operand and member. In `a`.
gifts gifts_of(const giving *x, arena *a, u32 to, u32 nd, const box *want, const box *const *have);

// ---- layouts through an operator -------------------------------------------------------------------------
// Layouts of the results of a compute operator. A letter that one operand splits is split at the same stride
// over the same axis in every operand that has it; the result has it there, or is partial with the row's
// reduction where the letter is contracted. Sums that are still partial pass by linearity. Otherwise a
// diagnostic E_LAYOUT and false.
bool ir_layouts(prog *p, opcode op, const law *l, const layout *opd, layout *res, loc where);
// Is `declared` right for result k, given `derived` by ir_layouts? A letter that no operand has may be split
// at will.
bool ir_layout_allowed(const prog *p, const law *l, u32 k, layout declared, layout derived);
// How a split of a dimension cuts a letter of it: at a stride of the letter, or into pieces of it.
typedef struct {
  u8 letter;
  u16 table; // 0: at the stride
  i64 stride;
} letter_split;
// False if the split cuts several letters of the dimension.
bool ir_letter_at(const prog *p, const law *l, const law_dim *d, const lay_split *s, letter_split *out);
// The other way round: the split of the dimension that has the letter. False if the term has not.
bool ir_split_of(const prog *p, const law *l, const law_term *t, u8 axis, const letter_split *s,
                 lay_split *out);

// ---- checking ------------------------------------------------------------------------------------------
// Every invariant (docs/language.md lists them). A broken one is a diagnostic E_VERIFY (or the more specific
// one); false.
bool ir_verify(prog *p);
// The program of one rank (plan/lower.c) cannot run alone: E_RANK, naming what cannot be done with it, and
// false.
bool ir_check_whole(const prog *p, const char *what);
#ifdef HEDDLE_DEBUG
#define IR_VERIFY_PASS(p) assert(ir_verify(p))
#else
#define IR_VERIFY_PASS(p) ((void)0)
#endif
#endif
