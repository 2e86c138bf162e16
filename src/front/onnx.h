// onnx.h - what the files of the ONNX importer share: the views of a model, the importer's state.
//
// Idea: a model is never copied. Names become symbols, structure becomes small arrays in an arena, and
// everything long (weights, strings) stays a span of the mapped file.
#ifndef HEDDLE_ONNX_H
#define HEDDLE_ONNX_H
#include "front/front.h"
#include "infer/infer.h"

typedef VEC(sym) sym_vec;

// ---- the model's parts (onnx_model.c) ------------------------------------------------------------------
typedef struct {
  sym name;
  i64 type; // TensorProto.DataType
  i64_vec dim;
  pb_span raw;       // raw_data
  VEC(pb_span) data; // typed data fields: packed runs
  i64_vec ints;      // typed data fields: 32 and 64 bit integers, decoded
  bool external;
  pb_span location;
  i64 offset, length; // external; length -1: to the end
} onnx_tensor;
typedef struct onnx_graph onnx_graph;
typedef struct {
  sym name, ref; // ref: the attribute of the surrounding function that it stands for
  i64 type;      // AttributeProto.AttributeType; 0 in old files
  i64 i;
  float f;
  pb_span s;
  onnx_tensor *t;
  onnx_graph *g;
  f32_vec floats;
  i64_vec ints;
  VEC(pb_span) strings;
  bool other; // has a part that nothing reads: sparse tensors, types, lists of graphs
} onnx_attr;
typedef struct {
  sym op, domain, overload;
  pb_span name;
  sym_vec in, out; // absent optional ones are sym 0
  VEC(onnx_attr) at;
} onnx_node;
typedef struct {
  i64 n;
  sym name;
} onnx_dim; // n >= 0: known
typedef struct {
  sym name;
  i64 type; // 0: not given
  bool tensor, ranked;
  VEC(onnx_dim) dim;
} onnx_value;
typedef struct {
  sym domain;
  i64 version;
} onnx_opset;
struct onnx_graph {
  sym name;
  VEC(onnx_node) node;
  VEC(onnx_tensor) init;
  VEC(onnx_value) in, out, info;
  bool sparse;
};
typedef struct {
  sym name, domain, overload;
  sym_vec in, out, attr;
  VEC(onnx_attr) defaults;
  VEC(onnx_node) node;
  VEC(onnx_opset) opset;
} onnx_function;
typedef struct {
  i64 ir_version;
  VEC(onnx_opset) opset;
  onnx_graph graph;
  bool has_graph;
  VEC(onnx_function) function;
} onnx_model;

bool onnx_model_read(pb_file *f, const u8 *bytes, size_t n, onnx_model *out);
bool onnx_tensor_read(pb_file *f, const u8 *bytes, size_t n, onnx_tensor *out);
dtype onnx_dtype(i64 code);           // of a TensorProto.DataType; DT_NONE: strings, complex numbers, ...
const char *onnx_type_name(i64 code); // for messages

// Elements of a tensor: a view of the file where it has them as they lie in memory, else decoded into f->a.
// External data is looked up beside the model; a missing file gives bytes == NULL ("absent"), which only
// weights may be.
typedef struct {
  pb_span name;
  bool absent;
  file_view view;
} onnx_file;
typedef struct {
  const char *dir; // of the model
  VEC(onnx_file) file;
  u32 missing; // files that are not there; the first of them and who wants it
  const char *first;
  loc where;
} onnx_store;
bool onnx_tensor_data(pb_file *f, onnx_store *st, const onnx_tensor *t, loc where, data_info *out);

// ---- the importer's state and its names (onnx_node.c) --------------------------------------------------
// One scope per graph or inlined function: names to mixed values. A graph sees the names of the graph around
// it.
typedef struct scope scope;
struct scope {
  u32 id, depth;
  const scope *up;           // NULL: a model, or the body of a function
  const onnx_function *f;    // the function whose body this is, or NULL
  const struct node *caller; // and the node that it replaces
};
typedef struct {
  sym op; // operator and reason: told once each
  char *reason;
  u32 count;
  loc first;
} onnx_refusal;
// An extent that the file leaves open, or that the user replaced, with the places where it stands.
typedef struct {
  sym name; // "batch", or its place "ids:0" where it has none
  bool named, first;
  i64 extent; // -1: open
  strbuf at;
} onnx_letter;
typedef struct {
  pb_file f;
  arena *a; // of the import; the program has its own
  const front_opts *o;
  onnx_model m;
  onnx_store store;
  mixer x;
  VEC(onnx_letter) letter;
  bool *dim_used; // by option --dim
  hmap name;      // scope and symbol to 1 + handle, or UNKNOWN
  hmap rows;      // symbols of domain and name to 1 + row of onnx.def
  hmap funcs;     // symbols of domain and name to 1 + model function
  u32 nscopes, nnodes;
  u32 errors;   // of the session before the import
  u32 nrefused; // calls of refuse
  VEC(u8) mark; // by symbol: what is known of a name before the walk
  VEC(onnx_refusal) refused;
  VEC(mixed) effects;
  struct {
    u8 *bytes;
    i64 n;
    u32 size;
  } fill;              // equal elements that filled weights share
  const onnx_node *at; // the node whose location the builder has
} imp;
enum { UNKNOWN = UINT32_MAX };
enum { MARK_SEEN = 1, MARK_NEEDED = 2, MARK_INIT = 4, MARK_BROKEN = 8 };
enum { ERRORS_MAX = 50 }; // then the import gives up

// ---- nodes in order (onnx_order.c) ----------------------------------------------------------------------
// Every list of nodes so that names are made before they are read; one that is so already stays as it is. A
// cycle: false and told with its nodes.
bool onnx_sort(imp *I);

// ---- what the user says about inputs (onnx_bind.c) ------------------------------------------------------
void onnx_bind(
    imp *I); // every open extent, from --dim and --batch; tells what is not bound and what is not there
bool onnx_input_shape(imp *I, const onnx_value *v, shape *s); // false: told
bool onnx_fixed(imp *I, const front_fixed *f, const onnx_value *v,
                data_info *out); // or f->data, if it suits v

static inline u32 onnx_errors(const imp *I) { return diag_errors(I->f.c) - I->errors; }
void onnx_index(imp *I);                                 // the tables above, once
u32 onnx_lookup(const imp *I, const scope *s, sym name); // 1 + handle, UNKNOWN, 0: not defined
// x 0: unknown. False, and told at `by` (NULL: an input or initializer), if the name is defined already.
bool onnx_define(imp *I, const scope *s, sym name, mixed x, const onnx_node *by);
u8 *onnx_mark(imp *I, sym name);
loc onnx_loc(imp *I, sym name); // of an input, initializer or output
loc onnx_node_loc(imp *I, const onnx_node *n, const char *part);
mixed onnx_known(imp *I, const data_info *d);
bool onnx_standard(ctx *c, sym domain);                            // ai.onnx, which may be left out
i64 onnx_opset_in(ctx *c, const onnx_opset *v, u32 n, sym domain); // 0: not imported
bool onnx_is_effect(imp *I, const onnx_node *n);                   // is it there for a side effect?
void onnx_walk(imp *I, const scope *s, const onnx_node *v, u32 n, const bool *live); // live NULL: all
void onnx_tell_refused(imp *I);

// ---- what maps are written with (onnx_node.c) ----------------------------------------------------------
typedef struct node node;
// Maps one node: reads operands, emits native instructions, sets outputs. False after a diagnostic.
typedef bool onnx_map(node *n);
typedef struct {
  const char *domain, *name;
  i64 since; // opset of its domain in which this form appeared
  onnx_map *map;
  int arg; // opcode or variant for maps that serve several operators
} onnx_row;
enum { ONNX_EFFECT = -1 }; // argument of operators that are there for a side effect
struct node {
  imp *I;
  mixer *x;
  const onnx_node *n;
  const scope *s;
  const onnx_row *row;
  i64 opset; // of the operator's domain
  mixed *in; // operands; 0 where absent
  u32 nin;
  mixed *out; // to be set; 0: not known
  u32 nout;
};

static inline mixed in_of(const node *n, u32 k) { return k < n->nin ? n->in[k] : 0; }
static inline const shape *shape_of(const node *n, mixed x) { return &mix_get(n->x, x)->s; }

// Attributes, with those of an inlined function's caller looked through.
const onnx_attr *at_find(const node *n, const char *name); // NULL: absent
i64 at_i(const node *n, const char *name, i64 absent);
double at_f(const node *n, const char *name, double absent);
const char *at_s(const node *n, const char *name, const char *absent);
u32 at_ints(const node *n, const char *name, const i64 **v); // 0: absent
// Instructions at the node's location.
mixed op1(node *n, opcode op, mixed x);
mixed op2(node *n, opcode op, mixed x, mixed y);
mixed op3(node *n, opcode op, mixed x, mixed y, mixed z);
mixed op_at(node *n, opcode op, mixed x, attr a);
mixed opn(node *n, opcode op, const mixed *x, u32 nx, const attr *at, u32 nat);
mixed opn_res(node *n, opcode op, const mixed *x, u32 nx, const attr *at, u32 nat, u32 nres);
mixed tensor_of(node *n, const onnx_tensor *t); // a known tensor; 0 after a diagnostic
mixed full_like(node *n, mixed x, double v);    // a scalar of x's element type
mixed to_shape(node *n, mixed x, const i64 *dim, u32 nd);
mixed to_perm(node *n, mixed x, const i64 *perm, u32 nd);
mixed to_type(node *n, mixed x, dtype t);
bool set(node *n, u32 k, mixed x); // output k; false if x is 0
bool known_in(node *n, u32 k);     // are the elements of operand k known? else E_DYNAMIC
// Known integers of operand k: how many, at most cap. -1 and E_DYNAMIC if its elements depend on data.
i64 ints_in(node *n, u32 k, i64 *v, u32 cap);
bool floats_in(node *n, u32 k, double *v); // known numbers, or a weight's elements; told if neither
static inline attr attr_fs(attr_key k, const double *v, u32 n) {
  return (attr){.key = (u16)k, .kind = AK_FLOATS, .n = n, .u.floats = v};
}
bool axis_of(node *n, i64 axis, u32 nd, u32 *out);            // negative counts from the end
bool refuse(node *n, const char *fmt, ...) PRINTF_LIKE(2, 3); // this form is not supported; always false
bool wrong(node *n, const char *fmt, ...) PRINTF_LIKE(2, 3);  // the model is wrong; always false
void effect(node *n, mixed x); // an update that the graph leaves to a side effect: main returns it too
// Operand k, if it is an input of the model, is a weight (only if its extents are fixed), a label, ...;
// running statistics (ROLE_CONST) are no weights even where the model stores them as such.
void is_weight(node *n, u32 k, role r);
bool map_graph(node *n, const onnx_graph *g); // a subgraph in place of the node
// Shared by the maps of several files.
mixed conv_of(node *n, mixed x, mixed w); // with the node's window; 0 after a diagnostic
mixed classes_last(node *n, mixed x);     // [n,classes,space] to [n,space,classes]
// What is reduced and which label is ignored (attribute, or operand `ignored` if not 0); how many, 0 if told.
u32 loss_attrs(node *n, u32 ignored, attr *at);
mixed add_bias(node *n, mixed x, mixed b); // along dimension 1; b may be 0

#define ONNX(domain, name, since, map, arg) onnx_map map_##map;
#include "front/onnx.def"
#undef ONNX
#endif
