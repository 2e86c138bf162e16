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
value fam_gelu(fam *m, value x, bool tanh_form);
// What lies ahead of position s of scores[..,s,s] is hidden. Finite, because half precision meets -inf - -inf where
// all is hidden; exp makes it 0.
value fam_causal_mask(fam *m, value scores, i64 s);
// Softmax attention of q[b,s,h,d] over k, v[b,t,h,d]: [b,s,h,d]. bias 0: none; causal: s sees t <= s (s = t).
value fam_attend(fam *m, value q, value k, value v, i64 s, bool causal, value bias, double scale);
// Self-attention with a fused product for queries, keys and values, as GPT-2 and BERT have it.
typedef struct {
  value qkv, qkv_b, out, out_b;
} fam_self;
fam_self fam_self_declare(fam *m);
value fam_self_attention(fam *m, value x, fam_self w, i64 s, bool causal);
// The feed-forward half of a layer, or experts where the row has any.
typedef struct {
  value up, up_b, down, down_b, gate;
} fam_ffn;
fam_ffn fam_ffn_declare(fam *m);
value fam_feed_forward(fam *m, value x, fam_ffn w, i64 s, bool tanh_form);
// A layer of a GPT (causal) or of an image encoder, normalised before each half: x[b,s,hidden] to the same.
// With experts in the row its second half is a mixture of experts.
func fam_layer(fam *m, const char *name, i64 s, bool causal);

value fam_embed(fam *m, value table, value ids);
value fam_positions(fam *m, i64 s);                           // 0 .. s-1
value *fam_layer_weights(fam *m, func f, const char *prefix); // main's copies for every layer: "prefix.0", ..
// A loss needs the words [b,s]; 0: there is no loss.
value fam_labels(fam *m, i64 s);
// Returns scores of all words, by the embedding table itself (tied) or by a weight of its own [hidden,
// vocab]; or the loss against labels.
void fam_scores(fam *m, value x, value tied, value head, value labels);

// Of image models: a class for every image (0: there is no loss); scores of classes, or the loss against them.
value fam_classes(fam *m);
void fam_classify(fam *m, value logits, value labels);
// Patches of n x n pixels of an image[b,3,h,w] as vectors: [b,d,h/n,w/n] from w[d,3,n,n].
value fam_patches(fam *m, value image, value w, value bias, i64 n);

void fam_gpt(fam *m); // every one of these builds main
void fam_moe(fam *m);
void fam_bert(fam *m);
void fam_llama(fam *m);
void fam_t5(fam *m);
void fam_m6(fam *m);
void fam_mbart(fam *m);
void fam_gnmt(fam *m);
void fam_vit(fam *m);
void fam_swin(fam *m);
void fam_resnet(fam *m);
void fam_vgg(fam *m);
void fam_inception(fam *m);
void fam_evoformer(fam *m);
#endif
