// family.h - what the files of the built-in models share.
#ifndef HEDDLE_FAMILY_H
#define HEDDLE_FAMILY_H
#include "front/front.h"

// One model under construction. Blocks are functions: their weights are declared with fam_w before their
// first instruction; fam_weights gives main its own copy for one call and fam_call passes it behind the
// activations.
typedef struct {
  prog *p;
  const front_opts *o;
  front_row v; // the row, with the user's overrides
  i64 batch, seq;
  dtype t;
  builder b; // of the function being built
} fam;

#define DIMS(...)                                                                                            \
  (u32) COUNT_OF(((i64[]){__VA_ARGS__})), (const i64[]) { __VA_ARGS__ }
func fam_func(fam *m, const char *name); // begins a function
value fam_x(fam *m, const char *name, role r, dtype t, u32 nd, const i64 *dim);
value fam_w(fam *m, const char *name, u32 nd, const i64 *dim);
value fam_stat(fam *m, const char *name, i64 n, bool one); // constant zeros or ones, not trained
void fam_at(fam *m, const char *node);                     // location of what follows
value fam_weights(fam *m, func block, const char *prefix); // main's copies: the first of them
value fam_call(fam *m, func block, const value *x, u32 nx,
               value weights); // first result of block(x..., weights...)
void fam_return(fam *m, value v);

value fam_op(fam *m, opcode op, value x, attr a);
value fam_reshape(fam *m, value x, u32 nd, const i64 *dim);
value fam_transpose(fam *m, value x, u32 nd, const i64 *perm);
value fam_einsum(fam *m, const char *letters, value x, value y);
value fam_linear(fam *m, value x, value w, value bias); // x w + bias; bias 0: none
value fam_full(fam *m, dtype t, double v);              // a scalar
value fam_iota(fam *m, dtype t, i64 axis, double step, u32 nd, const i64 *dim);
value fam_layernorm(fam *m, value x, value g, value b, double eps);
value fam_rmsnorm(fam *m, value x, value g, double eps);
value fam_cast(fam *m, value x, dtype t); // x itself if it is a t already
value fam_xent(fam *m, value logits, value labels);
// Softmax attention of q[b,s,h,d] over k, v[b,t,h,d]: [b,s,h,d]. bias 0: none; causal: s sees t <= s (s = t).
value fam_attend(fam *m, value q, value k, value v, i64 s, bool causal, value bias, double scale);
// A layer of a GPT (causal) or of an image encoder, normalised before each half: x[b,s,hidden] to the same.
// With experts in the row its second half is a mixture of experts.
func fam_layer(fam *m, const char *name, i64 s, bool causal);

// A loss needs the words [b,s]; 0: there is no loss.
value fam_labels(fam *m, i64 s);
// Returns scores of all words, by the embedding table itself (tied) or by a weight of its own [hidden,
// vocab]; or the loss against labels.
void fam_scores(fam *m, value x, value tied, value head, value labels);

void fam_gpt(fam *m); // every one of these builds main
void fam_moe(fam *m);
void fam_bert(fam *m);
void fam_llama(fam *m);
void fam_t5(fam *m);
void fam_m6(fam *m);
void fam_gnmt(fam *m);
void fam_vit(fam *m);
void fam_resnet(fam *m);
void fam_vgg(fam *m);
void fam_inception(fam *m);
#endif
