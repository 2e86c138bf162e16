// front.h - into the program: ONNX files, program text and built-in model families become a single-device
// program. Layer 5. What comes out has one function `main` whose parameters are the model's inputs, labels
// (with a loss) and weights; no mesh, every layout replicated, every instruction with a location in the
// user's model.
//
// It is not a pass: nothing is optimized here, except that arithmetic on shapes is evaluated and never
// emitted.
#ifndef HEDDLE_FRONT_H
#define HEDDLE_FRONT_H
#include "ir/ir.h"

typedef struct {
  const char *name;
  i64 extent;
} front_dim; // --dim batch=8
typedef struct {
  const char *name;
  const data_info *data; // NULL: the numbers in `text`, "1,2,3"; one number stands for all
  const char *text;
} front_fixed; // this input is a constant
typedef struct {
  const char *name, *at; // "batch", "ids:0, mask:0"
  i64 extent;            // -1: open
} front_extent;
typedef struct {
  u32 n;
  front_extent *v;
} front_extents;

typedef struct {
  u32 ndims;
  const front_dim
      *dims; // extents of an ONNX model's symbolic dimensions; "INPUT:2" is the third extent of an input
  u32 nfixed;
  const front_fixed
      *fixed; // inputs of an ONNX model whose elements are known, so that shapes may depend on them
  front_extents
      *extents;   // out: open extents of an ONNX model, now bound, in the session; NULL: not asked for
  i64 batch;      // of a built-in model, 0 = its own; of an ONNX model that leaves it open
  i64 seq, vocab; // built-in models; 0 = the model's own. seq: tokens, or pixels of an image's side
  dtype t;        // built-in models: element type of weights and activations; DT_NONE = f32
  bool loss; // built-in models: a scalar loss as main's only result, labels as a parameter (else: pass_loss)
  bool headless; // built-in language models: stop before the projection to the vocabulary
} front_opts;

typedef enum { FRONT_ONNX, FRONT_TEXT, FRONT_FAMILY } front_kind;
front_kind
front_kind_of(const char *path_or_name); // by the end of the name, and whether there is such a file

// Loads an .onnx file, a .heddle file or a built-in model ("gpt3-175b", "llama2-7b:layers=2,hidden=256").
// NULL and diagnostics on failure. Weights held in an ONNX file are views of the mapped file, which stays
// mapped until the process ends. `o` may be NULL.
//
// Which stored tensors of an ONNX file are weights (ROLE_WEIGHT, trained) the file does not say:
// floating-point ones are, except running statistics and masks (ROLE_CONST). A mask is only compared or
// indexed with, also after it has been moved or cut, so that no gradient could reach it; or has two
// dimensions at least, only takes part in elementwise operations with other operands, and consists of 0, 1
// and numbers of at most -10,000 (minus infinity), not of 0 or of 1 alone.
prog *front_load(ctx *c, const char *path_or_name, const front_opts *o);
prog *front_onnx(ctx *c, const char *path, const front_opts *o);
prog *front_onnx_bytes(ctx *c, const char *path, const u8 *bytes, size_t n,
                       const front_opts *o); // must outlive the program
prog *front_family(ctx *c, const char *name, const front_opts *o);
prog *front_text(ctx *c, sym file, const char *text, size_t n); // program text; must have a function @main

// Built-in models, in the order of families.def; NULL past the end. Columns that a kind does not use are 0.
typedef struct {
  const char *name, *kind, *source;
  i64 layers, hidden, heads, kv_heads, head_dim, ffn, vocab, positions, experts, topk, window, msa, pair,
      recycle;
} front_row;
const front_row *front_family_get(u32 index);
// Is that a built-in model whose authors train it with dropout? Built-in models have none.
bool front_lacks_dropout(const char *path_or_name);

// One serialized TensorProto (test data files); elements are viewed in `bytes` where possible, else copied to
// `a`.
bool front_tensor(ctx *c, arena *a, const char *path, const u8 *bytes, size_t n, data_info *out, sym *name);
#endif
