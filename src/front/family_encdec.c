// family_encdec.c - built-in models with an encoder and a decoder: T5, M6 and mBART.
#include "front/family.h"
#include <math.h>

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
  fam_return(m, fam_transpose(m, fam_embed(m, table, bucket), DIMS(2, 0, 1)));
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
  value *we = fam_layer_weights(m, enc, "encoder"), *wd = fam_layer_weights(m, dec, "decoder");
  value eg = fam_w(m, "encoder.norm", DIMS(d)), dg = fam_w(m, "decoder.norm", DIMS(d));
  fam_at(m, "encoder");
  value x[3] = {fam_embed(m, table, src), fam_call(m, ebias, NULL, 0, eb)};
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, enc, x, 2, we[i]);
  x[2] = fam_rmsnorm(m, x[0], eg, 1e-6);
  fam_at(m, "decoder");
  x[0] = fam_embed(m, table, dst);
  x[1] = fam_call(m, dbias, NULL, 0, db);
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, dec, x, 3, wd[i]);
  value y = fam_rmsnorm(m, x[0], dg, 1e-6);
  if (!m->o->headless) y = fam_op(m, OP_scale, y, attr_f(A_alpha, 1 / sqrt((double)d)));
  fam_scores(m, y, table, 0, want);
}

// ---- M6 and mBART: a decoder of a GPT's layers with attention to the encoder ----------------------------
// A layer of the decoder, normalised before each part; memory[b,t,hidden] is what the encoder made. A bias of all keys
// changes no softmax: not all models have one.
static func decoder_layer(fam *m, i64 t, bool key_bias) {
  const i64 n = m->batch, s = m->seq, d = m->v.hidden, h = m->v.heads, dim = m->v.head_dim;
  func f = fam_func(m, "decoder");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, d)),
        memory = fam_x(m, "memory", ROLE_INPUT, m->t, DIMS(n, t, d));
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  fam_self w = fam_self_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  value wq = fam_w(m, "cross.q", DIMS(d, d)), bq = fam_w(m, "cross.q.bias", DIMS(d));
  value wk = fam_w(m, "cross.k", DIMS(d, d)), bk = key_bias ? fam_w(m, "cross.k.bias", DIMS(d)) : 0;
  value wv = fam_w(m, "cross.v", DIMS(d, d)), bv = fam_w(m, "cross.v.bias", DIMS(d));
  value wo = fam_w(m, "cross.out", DIMS(d, d)), bo = fam_w(m, "cross.out.bias", DIMS(d));
  value g3 = fam_w(m, "ln3.g", DIMS(d)), b3 = fam_w(m, "ln3.b", DIMS(d));
  fam_ffn u = fam_ffn_declare(m);
  fam_at(m, "decoder/attention");
  value y = fam_self_attention(m, fam_layernorm(m, x, g1, b1, 1e-5), w, s, true);
  x = build2(&m->b, OP_add, x, y);
  fam_at(m, "decoder/cross");
  value q = fam_linear(m, fam_layernorm(m, x, g2, b2, 1e-5), wq, bq), k = fam_linear(m, memory, wk, bk),
        v = fam_linear(m, memory, wv, bv);
  q = fam_reshape(m, q, DIMS(n, s, h, dim)), k = fam_reshape(m, k, DIMS(n, t, h, dim));
  v = fam_reshape(m, v, DIMS(n, t, h, dim));
  y = fam_reshape(m, fam_attend(m, q, k, v, s, false, 0, 1 / sqrt((double)dim)), DIMS(n, s, d));
  x = build2(&m->b, OP_add, x, fam_linear(m, y, wo, bo));
  fam_at(m, u.gate ? "decoder/experts" : "decoder/mlp");
  y = fam_feed_forward(m, fam_layernorm(m, x, g3, b3, 1e-5), u, s, false);
  fam_return(m, build2(&m->b, OP_add, x, y));
  return f;
}

// ---- M6: image patches and words as one sequence, a decoder over both ------------------------------------
// What is published at length are the numbers of layers and of parameters. The rest is chosen: widths to meet
// those numbers, 21,128 words as in BERT for Chinese, 512 of them in a text, layers as GPT has them. Features
// of an image's patches come from a model that is not trained here.
enum { PATCHES = 16, FEATURES = 2048 };

void fam_m6(fam *m) {
  const i64 n = m->batch, s = m->seq, t = PATCHES + s, d = m->v.hidden;
  func enc = fam_layer(m, "encoder", t, false), dec = decoder_layer(m, t, false);
  m->p->main = fam_func(m, "main");
  value image = fam_x(m, "patches", ROLE_INPUT, m->t, DIMS(n, PATCHES, FEATURES));
  value text = fam_x(m, "tokens", ROLE_INPUT, DT_I64, DIMS(n, s)),
        dst = fam_x(m, "target", ROLE_INPUT, DT_I64, DIMS(n, s));
  value want = fam_labels(m, s), word = fam_w(m, "word", DIMS(m->v.vocab, d));
  value pw = fam_w(m, "patch", DIMS(FEATURES, d)), pb = fam_w(m, "patch.bias", DIMS(d));
  value epos = fam_w(m, "encoder.position", DIMS(PATCHES + m->v.positions, d)),
        dpos = fam_w(m, "decoder.position", DIMS(m->v.positions, d));
  value *we = fam_layer_weights(m, enc, "encoder"), *wd = fam_layer_weights(m, dec, "decoder");
  value eg = fam_w(m, "encoder.ln.g", DIMS(d)), eb = fam_w(m, "encoder.ln.b", DIMS(d));
  value dg = fam_w(m, "decoder.ln.g", DIMS(d)), db = fam_w(m, "decoder.ln.b", DIMS(d));
  fam_at(m, "embedding");
  attr axis = attr_i(A_axis, 1);
  value x[2] = {fam_linear(m, image, pw, pb), fam_embed(m, word, text)};
  x[0] = build(&m->b, OP_concat, x, 2, &axis, 1);
  x[0] = build2(&m->b, OP_add, x[0], fam_embed(m, epos, fam_positions(m, t)));
  fam_at(m, "encoder");
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, enc, x, 1, we[i]);
  x[1] = fam_layernorm(m, x[0], eg, eb, 1e-5);
  fam_at(m, "decoder");
  x[0] = build2(&m->b, OP_add, fam_embed(m, word, dst), fam_embed(m, dpos, fam_positions(m, s)));
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, dec, x, 2, wd[i]);
  fam_scores(m, fam_layernorm(m, x[0], dg, db, 1e-5), word, 0, want);
}

// ---- mBART: words of all languages in one table, learned positions -----------------------------------------
// Two rows of the tables of positions, before the first one, are for padding.
enum { PADDING = 2 };
typedef struct {
  value pos, g, b;
} mbart_words;

static mbart_words mbart_declare(fam *m, const char *side) {
  const i64 d = m->v.hidden;
  mbart_words w = {
      .pos = fam_w(m, arena_printf(m->p->a, "%s.position", side), DIMS(m->v.positions + PADDING, d))};
  w.g = fam_w(m, arena_printf(m->p->a, "%s.words.ln.g", side), DIMS(d));
  w.b = fam_w(m, arena_printf(m->p->a, "%s.words.ln.b", side), DIMS(d));
  return w;
}

static value mbart_embed(fam *m, value word, value ids, const mbart_words *w) {
  value x = fam_op(m, OP_scale, fam_embed(m, word, ids), attr_f(A_alpha, sqrt((double)m->v.hidden)));
  value at = build2(&m->b, OP_add, fam_positions(m, m->seq), fam_full(m, DT_I64, PADDING));
  return fam_layernorm(m, build2(&m->b, OP_add, x, fam_embed(m, w->pos, at)), w->g, w->b, 1e-5);
}

void fam_mbart(fam *m) {
  const i64 n = m->batch, s = m->seq, d = m->v.hidden;
  func enc = fam_layer(m, "encoder", s, false), dec = decoder_layer(m, s, true);
  m->p->main = fam_func(m, "main");
  value src = fam_x(m, "source", ROLE_INPUT, DT_I64, DIMS(n, s)),
        dst = fam_x(m, "target", ROLE_INPUT, DT_I64, DIMS(n, s));
  value want = fam_labels(m, s), word = fam_w(m, "word", DIMS(m->v.vocab, d));
  const mbart_words from = mbart_declare(m, "encoder"), to = mbart_declare(m, "decoder");
  value *we = fam_layer_weights(m, enc, "encoder"), *wd = fam_layer_weights(m, dec, "decoder");
  value eg = fam_w(m, "encoder.ln.g", DIMS(d)), eb = fam_w(m, "encoder.ln.b", DIMS(d));
  value dg = fam_w(m, "decoder.ln.g", DIMS(d)), db = fam_w(m, "decoder.ln.b", DIMS(d));
  fam_at(m, "encoder");
  value x[2] = {mbart_embed(m, word, src, &from)};
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, enc, x, 1, we[i]);
  x[1] = fam_layernorm(m, x[0], eg, eb, 1e-5);
  fam_at(m, "decoder");
  x[0] = mbart_embed(m, word, dst, &to);
  for (i64 i = 0; i < m->v.layers; i++) x[0] = fam_call(m, dec, x, 2, wd[i]);
  fam_scores(m, fam_layernorm(m, x[0], dg, db, 1e-5), word, 0, want);
}
