// family_text.c - built-in language models of one stack of layers: GPT, mixture of experts, BERT and Llama.
#include "front/family.h"
#include <math.h>

// ---- GPT, with a mixture of experts in every layer or without ----------------------------------------------
void fam_gpt(fam *m) {
  i64 d = m->v.hidden, s = m->seq;
  func layer = fam_layer(m, "layer", s, true);
  m->p->main = fam_func(m, "main");
  value ids = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(m->batch, s)), want = fam_labels(m, s);
  value wte = fam_w(m, "wte", DIMS(m->v.vocab, d)), wpe = fam_w(m, "wpe", DIMS(m->v.positions, d));
  value *w = fam_layer_weights(m, layer, "h");
  value g = fam_w(m, "ln_f.g", DIMS(d)), b = fam_w(m, "ln_f.b", DIMS(d));
  fam_at(m, "embedding");
  value x = build2(&m->b, OP_add, fam_embed(m, wte, ids), fam_embed(m, wpe, fam_positions(m, s)));
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "norm");
  fam_scores(m, fam_layernorm(m, x, g, b, 1e-5), wte, 0, want);
}

void fam_moe(fam *m) { fam_gpt(m); }

// ---- BERT: normalised after each half; masked-word head ------------------------------------------------
static func bert_layer(fam *m) {
  i64 d = m->v.hidden, s = m->seq;
  func f = fam_func(m, "layer");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, s, d));
  fam_self w = fam_self_declare(m);
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  fam_ffn u = fam_ffn_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  fam_at(m, "layer/attention");
  value y = fam_self_attention(m, x, w, s, false);
  x = fam_layernorm(m, build2(&m->b, OP_add, x, y), g1, b1, 1e-12);
  fam_at(m, "layer/mlp");
  y = fam_feed_forward(m, x, u, s, false);
  fam_return(m, fam_layernorm(m, build2(&m->b, OP_add, x, y), g2, b2, 1e-12));
  return f;
}

void fam_bert(fam *m) {
  i64 d = m->v.hidden, s = m->seq, v = m->v.vocab;
  func layer = bert_layer(m);
  m->p->main = fam_func(m, "main");
  value ids = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(m->batch, s));
  value kinds = fam_x(m, "segments", ROLE_INPUT, DT_I64, DIMS(m->batch, s)), want = fam_labels(m, s);
  value word = fam_w(m, "word", DIMS(v, d)), pos = fam_w(m, "position", DIMS(m->v.positions, d));
  value seg = fam_w(m, "segment", DIMS(2, d)), g = fam_w(m, "ln.g", DIMS(d)), b = fam_w(m, "ln.b", DIMS(d));
  value *w = fam_layer_weights(m, layer, "h");
  value hw = 0, hb = 0, hg = 0, hc = 0, bias = 0;
  if (!m->o->headless) {
    hw = fam_w(m, "head", DIMS(d, d)), hb = fam_w(m, "head.bias", DIMS(d));
    hg = fam_w(m, "head.ln.g", DIMS(d)), hc = fam_w(m, "head.ln.b", DIMS(d));
    bias = fam_w(m, "vocab.bias", DIMS(v));
  }
  fam_at(m, "embedding");
  value x = build2(&m->b, OP_add, fam_embed(m, word, ids), fam_embed(m, pos, fam_positions(m, s)));
  x = fam_layernorm(m, build2(&m->b, OP_add, x, fam_embed(m, seg, kinds)), g, b, 1e-12);
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "head");
  if (hw) {
    x = fam_layernorm(m, fam_gelu(m, fam_linear(m, x, hw, hb), false), hg, hc, 1e-12);
    x = build2(&m->b, OP_add, fam_einsum(m, "bsd,vd->bsv", x, word), bias);
  }
  fam_return(m, want ? fam_xent(m, x, want) : x);
}

// ---- Llama: rotary positions, grouped queries, gated feed-forward --------------------------------------
// Turns the pairs (x[i], x[i + dim/2]) of every head by position * base^(-2i/dim).
static value rotate(fam *m, value x, value cos, value sin) {
  i64 half = m->v.head_dim / 2;
  attr parts[] = {attr_i(A_axis, 3), attr_v(A_sizes, (const i64[]){half, half}, 2)};
  value a = build_n(&m->b, OP_split, &x, 1, parts, 2, 2), b = a ? a + 1 : 0;
  value u = build2(&m->b, OP_sub, build2(&m->b, OP_mul, a, cos), build2(&m->b, OP_mul, b, sin));
  value v = build2(&m->b, OP_add, build2(&m->b, OP_mul, b, cos), build2(&m->b, OP_mul, a, sin));
  attr axis = attr_i(A_axis, 3);
  return build(&m->b, OP_concat, (value[]){u, v}, 2, &axis, 1);
}

// Attention of q[b,s,h,d] with fewer heads of k and v[b,t,g,d]: heads h = g * r are seen as (g, r).
static value grouped(fam *m, value q, value k, value v) {
  i64 n = m->batch, s = m->seq, g = m->v.kv_heads, r = m->v.heads / g, dim = m->v.head_dim;
  double scale = 1 / sqrt((double)dim);
  if (r == 1) return fam_attend(m, q, k, v, s, true, 0, scale);
  q = fam_reshape(m, fam_op(m, OP_scale, q, attr_f(A_alpha, scale)), DIMS(n, s, g, r, dim));
  value scores = fam_causal_mask(m, fam_einsum(m, "bsgrd,btgd->bgrst", q, k), s);
  return fam_einsum(m, "bgrst,btgd->bsgrd", build1(&m->b, OP_softmax, scores), v);
}

static func llama_layer(fam *m, double base) {
  i64 n = m->batch, s = m->seq, d = m->v.hidden, h = m->v.heads, g = m->v.kv_heads, dim = m->v.head_dim,
      f = m->v.ffn;
  func layer = fam_func(m, "layer");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, d)), g1 = fam_w(m, "norm1", DIMS(d));
  value wq = fam_w(m, "attn.q", DIMS(d, h * dim)), wk = fam_w(m, "attn.k", DIMS(d, g * dim));
  value wv = fam_w(m, "attn.v", DIMS(d, g * dim)), wo = fam_w(m, "attn.out", DIMS(h * dim, d));
  value g2 = fam_w(m, "norm2", DIMS(d)), gate = fam_w(m, "mlp.gate", DIMS(d, f));
  value up = fam_w(m, "mlp.up", DIMS(d, f)), down = fam_w(m, "mlp.down", DIMS(f, d));
  fam_at(m, "layer/rotary");
  value at = fam_iota(m, DT_F32, 0, 1, DIMS(s, 1, 1));
  value freq = build1(&m->b, OP_exp, fam_iota(m, DT_F32, 0, -2 * log(base) / (double)dim, DIMS(dim / 2)));
  value angle = build2(&m->b, OP_mul, at, freq);
  value cos = fam_cast(m, build1(&m->b, OP_cos, angle), m->t),
        sin = fam_cast(m, build1(&m->b, OP_sin, angle), m->t);
  fam_at(m, "layer/attention");
  value y = fam_rmsnorm(m, x, g1, 1e-5);
  value q = rotate(m, fam_reshape(m, fam_linear(m, y, wq, 0), DIMS(n, s, h, dim)), cos, sin);
  value k = rotate(m, fam_reshape(m, fam_linear(m, y, wk, 0), DIMS(n, s, g, dim)), cos, sin);
  value v = fam_reshape(m, fam_linear(m, y, wv, 0), DIMS(n, s, g, dim));
  y = fam_reshape(m, grouped(m, q, k, v), DIMS(n, s, h * dim));
  x = build2(&m->b, OP_add, x, fam_linear(m, y, wo, 0));
  fam_at(m, "layer/mlp");
  y = fam_rmsnorm(m, x, g2, 1e-5);
  y = build2(&m->b, OP_mul, build1(&m->b, OP_silu, fam_linear(m, y, gate, 0)), fam_linear(m, y, up, 0));
  fam_return(m, build2(&m->b, OP_add, x, fam_linear(m, y, down, 0)));
  return layer;
}

void fam_llama(fam *m) {
  i64 d = m->v.hidden, s = m->seq;
  func layer = llama_layer(m, strcmp(m->v.kind, "llama3") == 0 ? 5e5 : 1e4);
  m->p->main = fam_func(m, "main");
  value ids = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(m->batch, s)), want = fam_labels(m, s);
  value table = fam_w(m, "embedding", DIMS(m->v.vocab, d));
  value *w = fam_layer_weights(m, layer, "h");
  value g = fam_w(m, "norm", DIMS(d)), head = m->o->headless ? 0 : fam_w(m, "head", DIMS(d, m->v.vocab));
  fam_at(m, "embedding");
  value x = fam_embed(m, table, ids);
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "norm");
  fam_scores(m, fam_rmsnorm(m, x, g, 1e-5), 0, head, want);
}
