// model.h - the part of heddle.h about models: programs that are loaded or built, their numbers, operators of your own.
#ifndef HEDDLE_MODEL_H
#define HEDDLE_MODEL_H
#ifndef HEDDLE_H
#error "include heddle.h, which includes this"
#endif

// ---- programs: models, training steps, distributed programs ---------------------------------------------
typedef struct {
  const char *name;
  int64_t extent;
} heddle_dim;
typedef struct {
  const char *name;
  const char
      *value; // "1,2,3" in the input's shape and type, "0" for all elements, or the path of a .npy file
} heddle_fix;
typedef struct {
  int64_t
      batch; // of a built-in model, 0: its own; of an ONNX model, where that is plainly what it leaves open
  int64_t seq, vocab;     // of built-in models; 0: the model's own. seq: tokens, or pixels of an image's side
  const char *dtype;      // of built-in models: "f16", "bf16", "f32"; NULL: f32
  bool headless;          // built-in language models: without the projection to the vocabulary
  bool loss;              // end in a scalar loss, as training needs it
  uint32_t ndims;         // extents of the symbolic dimensions of an ONNX model; "INPUT:2" is the third
  const heddle_dim *dims; // ... extent of an input
  uint32_t nfix;          // inputs of an ONNX model that are constants
  const heddle_fix *fix;
} heddle_load_options;
// An .onnx file, a .heddle file, or a built-in model: "gpt3-175b", "llama2-7b:layers=2,hidden=256".
heddle_program *heddle_program_load(heddle_session *s, const char *model, const heddle_load_options *o);
// Program text (docs/language.md). `name` is what diagnostics call it.
heddle_program *heddle_program_parse(heddle_session *s, const char *name, const char *text, size_t n);
void heddle_program_free(heddle_program *p);
const char *heddle_program_print(heddle_program *p); // as text that reads back the same
const char *heddle_program_report(heddle_program *p, heddle_format f);
uint32_t heddle_program_ranks(const heddle_program *p); // 0: a single-device program without a mesh

typedef struct {
  const char *name; // "sgd", "momentum", "adam", "adamw", "adafactor"; NULL: sgd
  double lr, momentum, beta1, beta2, eps, weight_decay;
  bool no_master_weights; // weights in f16 and bf16 are updated as they are, not through a copy in f32
  bool figures;           // the figures are meant, be they all 0; else all 0 are the optimizer's defaults
} heddle_optimizer;
// The defaults of an optimizer, to be changed, with `figures`; false and a diagnostic if there is none of that name.
bool heddle_optimizer_find(heddle_session *s, const char *name, heddle_optimizer *out);
bool heddle_program_annotated(
    const heddle_program *p); // has it annotations of its own (docs/annotations.md)?
// One training step on a single device: loss, gradients, update. The gradients are results too if asked for.
heddle_program *heddle_program_train(heddle_program *p, const heddle_optimizer *o, bool gradients);
// Is every element there where it is needed, every sum complete, every rank in the same order of collectives,
// and nobody waiting for each other for ever? Programs from heddle_plan_apply and from files alike.
bool heddle_program_validate(heddle_program *p);
// What one rank of a distributed program runs, as a program: pieces instead of tensors, peers instead of groups.
const char *heddle_program_lower(heddle_program *p, uint32_t rank, heddle_format f);

// A distributed program as a program of another framework, to run on GPUs (docs/export.md): format "pytorch", whose
// first lines say what machine it is for, or nothing where that is NULL; or "profile-pytorch", which measures the events that it
// has on this machine. NULL and diagnostics at what the framework cannot say.
const char *heddle_program_export(heddle_program *p, const char *format, heddle_machine *machine);
// What was exported, as JSON (docs/json.md). output, arrays: the file and the folder that were written; output NULL: the text of the
// program is in it.
const char *heddle_program_exported(heddle_program *p, const char *format, heddle_machine *machine,
                                    const char *output, const char *arrays);
typedef struct {
  const char *name, *about;
} heddle_export_format;
bool heddle_export_format_get(uint32_t index, heddle_export_format *out); // from 0; false past the end

// ---- programs, built ------------------------------------------------------------------------------------
// A model instruction by instruction, with annotations around them as in program text (docs/language.md,
// docs/annotations.md):
//
//   heddle_builder *b = heddle_builder_new(s, "classifier");
//   heddle_value x = heddle_builder_parameter(b, "input", "x", "f32[256,2048]");
//   heddle_builder_replicate(b, HEDDLE_ALL, "features");
//   heddle_value w = heddle_builder_parameter(b, "weight", "w", "f32[2048,2048]");
//   heddle_value h = heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){x, w});
//   heddle_builder_end(b);
//   heddle_program *p = heddle_builder_program(b, 1, &h);
//
// After a call that fails all others do nothing and return 0, false or NULL, so checking the last one is enough.
typedef struct heddle_builder heddle_builder;
typedef uint32_t heddle_value; // of a builder; 0: none
#define HEDDLE_ALL UINT32_MAX  // all devices
heddle_builder *heddle_builder_new(heddle_session *s,
                                   const char *name); // name: what diagnostics call the model
void heddle_builder_free(heddle_builder *b);
// A parameter of the function that is open, or of the model: role "input" (also NULL), "weight", "state", "label" or
// "const"; type as
// program text has it. At any time; parameters keep the order of these calls.
heddle_value heddle_builder_parameter(heddle_builder *b, const char *role, const char *name,
                                      const char *type);
// Applies an operator (`heddle ops`). attributes: "axes=[1], keepdims=0", or NULL. The first result; further
// ones are heddle_builder_result(b, it, 1) and so on.
heddle_value heddle_builder_op(heddle_builder *b, const char *op, const char *attributes, uint32_t n,
                               const heddle_value *operands);
heddle_value heddle_builder_result(heddle_builder *b, heddle_value v, uint32_t index);
bool heddle_builder_name(heddle_builder *b, heddle_value v, const char *name); // of a result or a parameter
// A repeated block: what is built until heddle_builder_return goes into a function, which may then be called as
// often as the model has the block. Inside a function no other one, and no scope that began outside.
bool heddle_builder_function(heddle_builder *b, const char *name);
bool heddle_builder_return(heddle_builder *b, uint32_t n, const heddle_value *results);
heddle_value heddle_builder_call(heddle_builder *b, const char *function, uint32_t n,
                                 const heddle_value *operands);
// Scopes: what is built until heddle_builder_end is replicated, or split, over so many devices (1 to 65535; HEDDLE_ALL;
// 0: not said). name: what reports call it; NULL: its number. Scopes of one name, kind and size are one task graph. A split may be inside a replicate.
bool heddle_builder_replicate(heddle_builder *b, uint32_t devices, const char *name);
bool heddle_builder_split(heddle_builder *b, uint32_t devices, const char *name);
bool heddle_builder_end(heddle_builder *b);
// What the devices of the scope that is open get, or where none is open replicas of the model, in parts of their
// sum, which are copied. n 0: equal shares. Where this is not said shares are found (docs/annotations.md).
bool heddle_builder_shares(heddle_builder *b, uint32_t n, const uint32_t *parts);
bool heddle_builder_default(heddle_builder *b, uint32_t devices); // what stands in no scope: replicated
// "num_micro_batch", "8"; what it says is looked at when a plan is made.
bool heddle_builder_setting(heddle_builder *b, const char *key, const char *value);
// The model, which returns these values. The builder is then of no more use.
heddle_program *heddle_builder_program(heddle_builder *b, uint32_t n, const heddle_value *results);

// ---- numbers --------------------------------------------------------------------------------------------
typedef struct {
  const char *name, *dtype; // dtype: "f32", "i64", ...
  uint32_t ndims;
  const int64_t *dims;
  const void *data; // last dimension fastest
} heddle_tensor;
uint32_t heddle_tensors_count(const heddle_tensors *t);
bool heddle_tensors_get(const heddle_tensors *t, uint32_t index, heddle_tensor *out);
void heddle_tensors_free(heddle_tensors *t);
// Inputs for a program: random ones that are the same for the same seed; NAME.npy files of a folder, or a file .safetensors or .npz.
heddle_tensors *heddle_tensors_random(heddle_program *p, uint64_t seed);
heddle_tensors *heddle_tensors_read(heddle_program *p, const char *path);
// NAME.npy each in a folder ('/' is %2F, '%' is %25), or one file whose name ends in .safetensors.
bool heddle_tensors_write(heddle_tensors *t, const char *path);
// As training begins: random weights and inputs, states of the optimizer at zero.
heddle_tensors *heddle_tensors_initial(heddle_program *p, uint64_t seed);
// Weights by their names, from what heddle_tensors_read reads, in place of those of t, which are p's. Each must be there, and
// no name that p does not have; the states of a checkpoint are left. False and diagnostics.
bool heddle_tensors_weights(heddle_tensors *t, heddle_program *p, const char *path);
const char *heddle_tensors_report(heddle_tensors *t, heddle_format f);
// The results of a program, distributed or not, all ranks in this process. wide: every floating-point value in float64 instead of its own type.
heddle_tensors *heddle_tensors_eval(heddle_program *p, const heddle_tensors *in, bool wide);

// ---- operators of your own ----------------------------------------------------------------------------------
// A row beside those of `heddle ops`, for one session: program text, builders, plans, simulation and verification take
// the operator as they take Heddle's own (docs/operators.md; examples/operators.c has two).
//
// What an operator is, is said by texts and three functions. The functions get all that they need and call nothing of
// this header, so a shared object that has them need not be linked with the library.
typedef struct {
  const char *dtype;      // "bf16"; NULL: not told (flops)
  uint32_t element_bytes; // of it; 0: not told
  uint32_t ndims;         // 8 at most
  const int64_t *dims;    // extents of what this rank holds
  const int64_t *whole;   // extents of the tensor that it is a part of; NULL: not told (flops, bytes)
  const int64_t *const
      *index; // index[d][i]: where element i along dimension d is in the whole; index[d] NULL: at i
  void *data; // kernel: double for floats, int64_t for integers and bool; the last dimension fastest
} heddle_piece;
typedef struct {
  const char *name;
  double number; // integers, too
  uint32_t n;    // elements of a list; 0: it is a number
  const int64_t *list;
} heddle_attribute;
typedef struct {
  uint32_t noperands, nresults, nattributes;
  const heddle_piece *operands, *results;
  const heddle_attribute
      *attributes; // as the application has them, else as the row has them; others are not there
} heddle_application;
// The number of an attribute; `absent` where there is none.
static inline double heddle_application_number(const heddle_application *x, const char *name, double absent) {
  for (uint32_t k = 0; k < x->nattributes; k++)
    if (!strcmp(x->attributes[k].name, name)) return x->attributes[k].number;
  return absent;
}

typedef struct {
  const char *name; // small letters, digits, _: no operator of Heddle's, nor of this session
  const char
      *operands;       // their names, "gate, up": the gradient calls them so; 16 operands and results at most
  const char *results; // NULL: "y"
  // A term for every operand and result, letters for dimensions: "...mk,...kn->...mn". Equal letters are one index. Small
  // letters may be split, capitals stay whole. "...": leading dimensions, which broadcast. (2h): a dimension of two
  // factors, the first one outermost; a number is an index of that extent and stays whole.
  const char *law;
  const char *types; // NULL: "F->F", one type of floats; `heddle ops NAME` has those of others
  const char *
      attributes; // "eps=1e-5 k! axes?": default, required, optional, of those that `heddle ops` knows; NULL: none
  // A mark for every operand, the last one for all that follow: e, linear in it alone; j, linear jointly with the other
  // j; -, not. Sums that are not complete pass where it is linear, others are completed before. NULL: "-"
  const char *linear;
  // How parts combine where a letter that a result lacks is split: "sum", "max", "min", "prod". NULL: such letters stay whole.
  const char *reduction;
  // Lines "%a = operator %x, %y {attribute, other=2}": %d_NAME is the gradient of an operand or a result, an attribute
  // without a value is the application's. Operators are Heddle's, this one, or registered before. What is larger than its
  // operand is summed over the dimensions that broadcast. "%d_x = none": the result does not change with x. "zero": none
  // of them. NULL: it has no gradient, and a training step in which one has to pass is refused.
  const char *gradient;
  const char *about; // one line
  bool product;      // priced as a matrix product, and what tensor parallelism splits first
  bool positions;    // the kernel reads `whole` or `index`
  uint32_t flops; // floating-point operations for every point of the law: the product of its letters' extents
  // The numbers of a rank's part: fills in the results, which do not overlap operands. False: it cannot. It may run on
  // several threads at once. NULL: the operator is planned and priced, and refused where numbers are asked for.
  bool (*kernel)(void *arg, const heddle_application *x);
  // Instead of `flops`: of the whole application; a rank that computes a part of the points does that part of them.
  double (*flops_of)(void *arg, const heddle_application *x);
  // Bytes of device memory that a rank reads and writes. NULL: every operand once and every result once.
  double (*bytes_of)(void *arg, const heddle_application *x);
  void *arg;           // of these functions; it must be there as long as the session
  const char *pytorch; // an expression for `heddle export`: "F.silu($0) * $1"; NULL: exports are refused
} heddle_operator_row;
// From now on the session knows the operator, and until it ends. Texts are copied. False and a diagnostic at the place of
// the text that is wrong. 256 operators in all sessions of a process. Register before programs of the session are made
// on other threads, which heddle_search_run waits for anyhow.
bool heddle_operator_register(heddle_session *s, const heddle_operator_row *row);
// What a shared object exports under the name "heddle_operators", for --operators: rows, and how many.
typedef const heddle_operator_row *heddle_operator_rows(uint32_t *n);
// Registers the rows of a shared object. It stays loaded. False and diagnostics.
bool heddle_operators_load(heddle_session *s, const char *path);

#endif
