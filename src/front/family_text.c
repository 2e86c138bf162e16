// family_text.c - built-in language models: GPT, mixture of experts, BERT, Llama, T5 and M6. Dropout is left
// out everywhere: it moves no data and changes no plan.
//
// Idea: written as the papers write them, one instruction per operator, heads as a dimension of their own, so
// that the split of attention over heads is visible in the letters and nothing needs a pattern.
#include "front/family.h"
#include <math.h>

// ---- attention -----------------------------------------------------------------------------------------
// Hides what lies ahead. Finite, because half precision meets -inf - -inf where all is hidden; exp makes it
// 0.
static value causal_mask(fam *m, value scores, i64 s) {
  value at = fam_iota(m, DT_I32, 0, 1, DIMS(s, 1)), of = fam_iota(m, DT_I32, 1, 1, DIMS(1, s));
  value seen = build2(&m->b, OP_ge, at, of), hidden = fam_full(m, m->t, -1e4);
  return build(&m->b, OP_where, (value[]){seen, scores, hidden}, 3, NULL, 0);
}

value fam_attend(fam *m, value q, value k, value v, i64 s, bool causal, value bias, double scale) {
  if (scale != 1) q = fam_op(m, OP_scale, q, attr_f(A_alpha, scale));
  value scores = fam_einsum(m, "bshd,bthd->bhst", q, k);
  if (bias) scores = build2(&m->b, OP_add, scores, bias);
  if (causal) scores = causal_mask(m, scores, s);
  return fam_einsum(m, "bhst,bthd->bshd", build1(&m->b, OP_softmax, scores), v);
}

// Self-attention with a fused product for queries, keys and values, as GPT-2 and BERT have it.
typedef struct {
  value qkv, qkv_b, out, out_b;
} self_weights;

static self_weights self_declare(fam *m) {
  i64 d = m->v.hidden;
  value qkv = fam_w(m, "attn.qkv", DIMS(d, 3 * d)), qkv_b = fam_w(m, "attn.qkv.bias", DIMS(3 * d));
  value out = fam_w(m, "attn.out", DIMS(d, d)), out_b = fam_w(m, "attn.out.bias", DIMS(d));
  return (self_weights){qkv, qkv_b, out, out_b};
}

static value self_attention(fam *m, value x, self_weights w, i64 s, bool causal) {
  i64 n = m->batch, d = m->v.hidden, h = m->v.heads, dim = m->v.head_dim;
  value qkv = fam_linear(m, x, w.qkv, w.qkv_b);
  attr parts[] = {attr_i(A_axis, 2), attr_v(A_sizes, (const i64[]){d, d, d}, 3)};
  value q = build_n(&m->b, OP_split, &qkv, 1, parts, 2, 3), head[3] = {0};
  for (u32 i = 0; i < 3 && q; i++) head[i] = fam_reshape(m, q + i, DIMS(n, s, h, dim));
  value y = fam_attend(m, head[0], head[1], head[2], s, causal, 0, 1 / sqrt((double)dim));
  return fam_linear(m, fam_reshape(m, y, DIMS(n, s, d)), w.out, w.out_b);
}

// ---- feed-forward halves -------------------------------------------------------------------------------
typedef struct {
  value up, up_b, down, down_b, gate;
} ffn_weights;

static ffn_weights ffn_declare(fam *m) {
  i64 d = m->v.hidden, f = m->v.ffn, e = m->v.experts;
  if (e) {
    value gate = fam_w(m, "moe.gate", DIMS(d, e));
    value up = fam_w(m, "moe.up", DIMS(e, d, f)), down = fam_w(m, "moe.down", DIMS(e, f, d));
    return (ffn_weights){up, 0, down, 0, gate};
  }
  value up = fam_w(m, "mlp.up", DIMS(d, f)), up_b = fam_w(m, "mlp.up.bias", DIMS(f));
  value down = fam_w(m, "mlp.down", DIMS(f, d)), down_b = fam_w(m, "mlp.down.bias", DIMS(d));
  return (ffn_weights){up, up_b, down, down_b, 0};
}

static value gelu(fam *m, value x, bool tanh_form) {
  return fam_op(m, OP_gelu, x, attr_i(A_approx, tanh_form));
}

// Every sequence is a routing group: an expert takes at most 1.25 times its even share of the group's tokens.
static value experts(fam *m, value x, ffn_weights w, i64 s) {
  i64 cap = MAX((i64)ceil(1.25 * (double)(m->v.topk * s) / (double)m->v.experts), 1);
  attr places[] = {attr_i(A_k, m->v.topk), attr_i(A_capacity, cap)};
  attr slots[] = {attr_i(A_experts, m->v.experts), attr_i(A_capacity, cap)};
  value p = build1(&m->b, OP_softmax, fam_linear(m, x, w.gate, 0));
  value gate = build(&m->b, OP_moe_gate, &p, 1, places, 2);
  value in = gate ? build(&m->b, OP_moe_dispatch, (value[]){x, gate}, 2, slots, 2) : 0;
  value y = fam_einsum(m, "gecf,efd->gecd", gelu(m, fam_einsum(m, "gecd,edf->gecf", in, w.up), true), w.down);
  return gate ? build(&m->b, OP_moe_combine, (value[]){y, gate, gate + 1}, 3, NULL, 0) : 0;
}

static value feed_forward(fam *m, value x, ffn_weights w, i64 s, bool tanh_form) {
  if (w.gate) return experts(m, x, w, s);
  return fam_linear(m, gelu(m, fam_linear(m, x, w.up, w.up_b), tanh_form), w.down, w.down_b);
}

func fam_layer(fam *m, const char *name, i64 s, bool causal) {
  i64 d = m->v.hidden;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, s, d));
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  self_weights w = self_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  ffn_weights u = ffn_declare(m);
  fam_at(m, "layer/attention");
  value y = self_attention(m, fam_layernorm(m, x, g1, b1, 1e-5), w, s, causal);
  x = build2(&m->b, OP_add, x, y);
  fam_at(m, u.gate ? "layer/experts" : "layer/mlp");
  y = feed_forward(m, fam_layernorm(m, x, g2, b2, 1e-5), u, s, causal);
  fam_return(m, build2(&m->b, OP_add, x, y));
  return f;
}

// ---- the frame of a language model ---------------------------------------------------------------------
static value embed(fam *m, value table, value ids) { return build2(&m->b, OP_gather, table, ids); }

static value positions(fam *m, i64 s) { return fam_iota(m, DT_I64, 0, 1, DIMS(s)); }

void fam_scores(fam *m, value x, value tied, value head, value labels) {
  fam_at(m, "head");
  if (!m->o->headless) x = tied ? fam_einsum(m, "bsd,vd->bsv", x, tied) : fam_linear(m, x, head, 0);
  fam_return(m, labels ? fam_xent(m, x, labels) : x);
}

value fam_labels(fam *m, i64 s) {
  return m->o->loss && !m->o->headless ? fam_x(m, "labels", ROLE_LABEL, DT_I64, DIMS(m->batch, s)) : 0;
}

static value *layer_weights(fam *m, func f, const char *prefix) {
  value *w = NEWN(m->p->a, value, m->v.layers);
  for (i64 i = 0; i < m->v.layers; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.%lld", prefix, (long long)i);
    w[i] = fam_weights(m, f, name);
  }
  return w;
}

void fam_gpt(fam *m) {
  i64 d = m->v.hidden, s = m->seq;
  func layer = fam_layer(m, "layer", s, true);
  m->p->main = fam_func(m, "main");
  value ids = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(m->batch, s)), want = fam_labels(m, s);
  value wte = fam_w(m, "wte", DIMS(m->v.vocab, d)), wpe = fam_w(m, "wpe", DIMS(m->v.positions, d));
  value *w = layer_weights(m, layer, "h");
  value g = fam_w(m, "ln_f.g", DIMS(d)), b = fam_w(m, "ln_f.b", DIMS(d));
  fam_at(m, "embedding");
  value x = build2(&m->b, OP_add, embed(m, wte, ids), embed(m, wpe, positions(m, s)));
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
  self_weights w = self_declare(m);
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  ffn_weights u = ffn_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  fam_at(m, "layer/attention");
  value y = self_attention(m, x, w, s, false);
  x = fam_layernorm(m, build2(&m->b, OP_add, x, y), g1, b1, 1e-12);
  fam_at(m, "layer/mlp");
  y = feed_forward(m, x, u, s, false);
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
  value *w = layer_weights(m, layer, "h");
  value hw = 0, hb = 0, hg = 0, hc = 0, bias = 0;
  if (!m->o->headless) {
    hw = fam_w(m, "head", DIMS(d, d)), hb = fam_w(m, "head.bias", DIMS(d));
    hg = fam_w(m, "head.ln.g", DIMS(d)), hc = fam_w(m, "head.ln.b", DIMS(d));
    bias = fam_w(m, "vocab.bias", DIMS(v));
  }
  fam_at(m, "embedding");
  value x = build2(&m->b, OP_add, embed(m, word, ids), embed(m, pos, positions(m, s)));
  x = fam_layernorm(m, build2(&m->b, OP_add, x, embed(m, seg, kinds)), g, b, 1e-12);
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "head");
  if (hw) {
    x = fam_layernorm(m, gelu(m, fam_linear(m, x, hw, hb), false), hg, hc, 1e-12);
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
  value scores = causal_mask(m, fam_einsum(m, "bsgrd,btgd->bgrst", q, k), s);
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
  value *w = layer_weights(m, layer, "h");
  value g = fam_w(m, "norm", DIMS(d)), head = m->o->headless ? 0 : fam_w(m, "head", DIMS(d, m->v.vocab));
  fam_at(m, "embedding");
  value x = embed(m, table, ids);
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "norm");
  fam_scores(m, fam_rmsnorm(m, x, g, 1e-5), 0, head, want);
}

// ---- T5: encoder and decoder, bucketed relative positions, unscaled scores -----------------------------
// Scores' bias [heads, s, t] from a table [32, heads]: distances below half of the buckets have one each,
// larger ones share buckets logarithmically up to 128. An encoder spends half of the buckets on each
// direction.
static func t5_bias(fam *m, const char *name, bool both_ways) {
  i64 s = m->seq, buckets = both_ways ? 16 : 32, exact = buckets / 2;
  func f = fam_func(m, name);
  value table = fam_w(m, "table", DIMS(32, m->v.heads));
  value at = fam_iota(m, DT_I64, 0, 1, DIMS(s, 1)), of = fam_iota(m, DT_I64, 1, 1, DIMS(1, s));
  value back = build2(&m->b, OP_sub, at, of), zero = fam_full(m, DT_I64, 0);
  value far = both_ways ? build1(&m->b, OP_abs, back) : build2(&m->b, OP_max, back, zero);
  value x = fam_cast(m, build2(&m->b, OP_max, far, fam_full(m, DT_I64, 1)), DT_F32);
  x = build1(&m->b, OP_log, fam_op(m, OP_scale, x, attr_f(A_alpha, 1 / (double)exact)));
  x = fam_op(m, OP_scale, x, attr_f(A_alpha, (double)exact / log(128.0 / (double)exact)));
  value large = build2(&m->b, OP_add, fam_cast(m, x, DT_I64), fam_full(m, DT_I64, (double)exact));
  large = build2(&m->b, OP_min, large, fam_full(m, DT_I64, (double)(buckets - 1)));
  value small = build2(&m->b, OP_lt, far, fam_full(m, DT_I64, (double)exact));
  value bucket = build(&m->b, OP_where, (value[]){small, far, large}, 3, NULL, 0);
  if (both_ways) {
    value ahead = build2(&m->b, OP_lt, back, zero);
    value second =
        build(&m->b, OP_where, (value[]){ahead, fam_full(m, DT_I64, (double)buckets), zero}, 3, NULL, 0);
    bucket = build2(&m->b, OP_add, bucket, second);
  }
  fam_return(m, fam_transpose(m, embed(m, table, bucket), DIMS(2, 0, 1)));
  return f;
}

typedef struct {
  value norm, q, k, v, out;
} t5_weights;

static t5_weights t5_declare(fam *m, const char *what) {
  i64 d = m->v.hidden, e = m->v.heads * m->v.head_dim;
  const char *name[] = {"norm", "q", "k", "v", "out"};
  for (u32 i = 0; i < COUNT_OF(name); i++) name[i] = arena_printf(m->p->a, "%s.%s", what, name[i]);
  t5_weights w = {.norm = fam_w(m, name[0], DIMS(d))};
  w.q = fam_w(m, name[1], DIMS(d, e)), w.k = fam_w(m, name[2], DIMS(d, e)),
  w.v = fam_w(m, name[3], DIMS(d, e));
  w.out = fam_w(m, name[4], DIMS(e, d));
  return w;
}

// x + attention of x over `from` (0: over itself).
static value t5_attention(fam *m, value x, value from, t5_weights w, bool causal, value bias) {
  i64 n = m->batch, s = m->seq, h = m->v.heads, dim = m->v.head_dim;
  value y = fam_rmsnorm(m, x, w.norm, 1e-6), z = from ? from : y;
  value q = fam_reshape(m, fam_linear(m, y, w.q, 0), DIMS(n, s, h, dim));
  value k = fam_reshape(m, fam_linear(m, z, w.k, 0), DIMS(n, s, h, dim));
  value v = fam_reshape(m, fam_linear(m, z, w.v, 0), DIMS(n, s, h, dim));
  y = fam_reshape(m, fam_attend(m, q, k, v, s, causal, bias, 1), DIMS(n, s, h * dim));
  return build2(&m->b, OP_add, x, fam_linear(m, y, w.out, 0));
}

static func t5_layer(fam *m, const char *name, bool decoder) {
  i64 n = m->batch, s = m->seq, d = m->v.hidden;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, d));
  value bias = fam_x(m, "bias", ROLE_INPUT, m->t, DIMS(m->v.heads, s, s));
  value memory = decoder ? fam_x(m, "memory", ROLE_INPUT, m->t, DIMS(n, s, d)) : 0;
  t5_weights own = t5_declare(m, "self"), cross = {0};
  if (decoder) cross = t5_declare(m, "cross");
  value norm = fam_w(m, "mlp.norm", DIMS(d));
  value up = fam_w(m, "mlp.up", DIMS(d, m->v.ffn)), down = fam_w(m, "mlp.down", DIMS(m->v.ffn, d));
  fam_at(m, decoder ? "decoder/attention" : "encoder/attention");
  x = t5_attention(m, x, 0, own, decoder, bias);
  fam_at(m, "decoder/cross");
  if (decoder) x = t5_attention(m, x, memory, cross, false, 0);
  fam_at(m, decoder ? "decoder/mlp" : "encoder/mlp");
  value y = build1(&m->b, OP_relu, fam_linear(m, fam_rmsnorm(m, x, norm, 1e-6), up, 0));
  fam_return(m, build2(&m->b, OP_add, x, fam_linear(m, y, down, 0)));
  return f;
}

void fam_t5(fam *m) {
  i64 n = m->batch, s = m->seq, d = m->v.hidden;
  fam_at(m, "bias");
  func ebias = t5_bias(m, "bias.encoder", true), dbias = t5_bias(m, "bias.decoder", false);
  func enc = t5_layer(m, "encoder", false), dec = t5_layer(m, "decoder", true);
  m->p->main = fam_func(m, "main");
  value src = fam_x(m, "source", ROLE_INPUT, DT_I64, DIMS(n, s)),
        dst = fam_x(m, "target", ROLE_INPUT, DT_I64, DIMS(n, s));
  value want = fam_labels(m, s), table = fam_w(m, "embedding", DIMS(m->v.vocab, d));
  value eb = fam_weights(m, ebias, "encoder.bias"), db = fam_weights(m, dbias, "decoder.bias");
  value *we = layer_weights(m, enc, "encoder"), *wd = layer_weights(m, dec, "decoder");
  value eg = fam_w(m, "encoder.norm", DIMS(d)), dg = fam_w(m, "decoder.norm", DIMS(d));
  fam_at(m, "encoder");
  value x[3] = {embed(m, table, src), fam_call(m, ebias, NULL, 0, eb)};
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, enc, x, 2, we[i]);
  x[2] = fam_rmsnorm(m, x[0], eg, 1e-6);
  fam_at(m, "decoder");
  x[0] = embed(m, table, dst);
  x[1] = fam_call(m, dbias, NULL, 0, db);
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, dec, x, 3, wd[i]);
  value y = fam_rmsnorm(m, x[0], dg, 1e-6);
  if (!m->o->headless) y = fam_op(m, OP_scale, y, attr_f(A_alpha, 1 / sqrt((double)d)));
  fam_scores(m, y, table, 0, want);
}

// ---- M6: image patches and words as one sequence, a decoder over both ------------------------------------
// What is published at length are the numbers of layers and of parameters. The rest is chosen: widths to meet
// those numbers, 21,128 words as in BERT for Chinese, 512 of them in a text, layers as GPT has them. Features
// of an image's patches come from a model that is not trained here.
enum { PATCHES = 16, FEATURES = 2048 };

// A layer of the decoder, normalised before each part; memory[b,t,hidden] is what the encoder made.
static func m6_decoder(fam *m, i64 t) {
  const i64 n = m->batch, s = m->seq, d = m->v.hidden, h = m->v.heads, dim = m->v.head_dim;
  func f = fam_func(m, "decoder");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, d)),
        memory = fam_x(m, "memory", ROLE_INPUT, m->t, DIMS(n, t, d));
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  self_weights w = self_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  value wq = fam_w(m, "cross.q", DIMS(d, d)), bq = fam_w(m, "cross.q.bias", DIMS(d));
  value wk = fam_w(m, "cross.k", DIMS(d, d)); // a bias of all keys changes no softmax
  value wv = fam_w(m, "cross.v", DIMS(d, d)), bv = fam_w(m, "cross.v.bias", DIMS(d));
  value wo = fam_w(m, "cross.out", DIMS(d, d)), bo = fam_w(m, "cross.out.bias", DIMS(d));
  value g3 = fam_w(m, "ln3.g", DIMS(d)), b3 = fam_w(m, "ln3.b", DIMS(d));
  ffn_weights u = ffn_declare(m);
  fam_at(m, "decoder/attention");
  value y = self_attention(m, fam_layernorm(m, x, g1, b1, 1e-5), w, s, true);
  x = build2(&m->b, OP_add, x, y);
  fam_at(m, "decoder/cross");
  value q = fam_linear(m, fam_layernorm(m, x, g2, b2, 1e-5), wq, bq), k = fam_linear(m, memory, wk, 0),
        v = fam_linear(m, memory, wv, bv);
  q = fam_reshape(m, q, DIMS(n, s, h, dim)), k = fam_reshape(m, k, DIMS(n, t, h, dim));
  v = fam_reshape(m, v, DIMS(n, t, h, dim));
  y = fam_reshape(m, fam_attend(m, q, k, v, s, false, 0, 1 / sqrt((double)dim)), DIMS(n, s, d));
  x = build2(&m->b, OP_add, x, fam_linear(m, y, wo, bo));
  fam_at(m, u.gate ? "decoder/experts" : "decoder/mlp");
  y = feed_forward(m, fam_layernorm(m, x, g3, b3, 1e-5), u, s, false);
  fam_return(m, build2(&m->b, OP_add, x, y));
  return f;
}

void fam_m6(fam *m) {
  const i64 n = m->batch, s = m->seq, t = PATCHES + s, d = m->v.hidden;
  func enc = fam_layer(m, "encoder", t, false), dec = m6_decoder(m, t);
  m->p->main = fam_func(m, "main");
  value image = fam_x(m, "patches", ROLE_INPUT, m->t, DIMS(n, PATCHES, FEATURES));
  value text = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(n, s)),
        dst = fam_x(m, "target", ROLE_INPUT, DT_I64, DIMS(n, s));
  value want = fam_labels(m, s), word = fam_w(m, "word", DIMS(m->v.vocab, d));
  value pw = fam_w(m, "patch", DIMS(FEATURES, d)), pb = fam_w(m, "patch.bias", DIMS(d));
  value epos = fam_w(m, "encoder.position", DIMS(PATCHES + m->v.positions, d)),
        dpos = fam_w(m, "decoder.position", DIMS(m->v.positions, d));
  value *we = layer_weights(m, enc, "encoder"), *wd = layer_weights(m, dec, "decoder");
  value eg = fam_w(m, "encoder.ln.g", DIMS(d)), eb = fam_w(m, "encoder.ln.b", DIMS(d));
  value dg = fam_w(m, "decoder.ln.g", DIMS(d)), db = fam_w(m, "decoder.ln.b", DIMS(d));
  fam_at(m, "embedding");
  attr axis = attr_i(A_axis, 1);
  value x[2] = {fam_linear(m, image, pw, pb), embed(m, word, text)};
  x[0] = build(&m->b, OP_concat, x, 2, &axis, 1);
  x[0] = build2(&m->b, OP_add, x[0], embed(m, epos, positions(m, t)));
  fam_at(m, "encoder");
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, enc, x, 1, we[i]);
  x[1] = fam_layernorm(m, x[0], eg, eb, 1e-5);
  fam_at(m, "decoder");
  x[0] = build2(&m->b, OP_add, embed(m, word, dst), embed(m, dpos, positions(m, s)));
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, dec, x, 2, wd[i]);
  fam_scores(m, fam_layernorm(m, x[0], dg, db, 1e-5), word, 0, want);
}
