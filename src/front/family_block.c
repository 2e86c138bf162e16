// family_block.c - what the layers of built-in transformers are made of: attention, feed-forward halves, the
// layer of a GPT, words and positions, scores and loss. Dropout is left out everywhere: it moves no data and
// changes no plan.
//
// Idea: written as the papers write them, one instruction per operator, heads as a dimension of their own, so
// that the split of attention over heads is visible in the letters and nothing needs a pattern.
#include "front/family.h"
#include <math.h>

// ---- attention -----------------------------------------------------------------------------------------
value fam_causal_mask(fam *m, value scores, i64 s) {
  value at = fam_iota(m, DT_I32, 0, 1, DIMS(s, 1)), of = fam_iota(m, DT_I32, 1, 1, DIMS(1, s));
  value seen = build2(&m->b, OP_ge, at, of), hidden = fam_full(m, m->t, -1e4);
  return build(&m->b, OP_where, (value[]){seen, scores, hidden}, 3, NULL, 0);
}

value fam_attend(fam *m, value q, value k, value v, i64 s, bool causal, value bias, double scale) {
  if (scale != 1) q = fam_op(m, OP_scale, q, attr_f(A_alpha, scale));
  value scores = fam_einsum(m, "bshd,bthd->bhst", q, k);
  if (bias) scores = build2(&m->b, OP_add, scores, bias);
  if (causal) scores = fam_causal_mask(m, scores, s);
  return fam_einsum(m, "bhst,bthd->bshd", build1(&m->b, OP_softmax, scores), v);
}

fam_self fam_self_declare(fam *m) {
  i64 d = m->v.hidden;
  value qkv = fam_w(m, "attn.qkv", DIMS(d, 3 * d)), qkv_b = fam_w(m, "attn.qkv.bias", DIMS(3 * d));
  value out = fam_w(m, "attn.out", DIMS(d, d)), out_b = fam_w(m, "attn.out.bias", DIMS(d));
  return (fam_self){qkv, qkv_b, out, out_b};
}

value fam_self_attention(fam *m, value x, fam_self w, i64 s, bool causal) {
  i64 n = m->batch, d = m->v.hidden, h = m->v.heads, dim = m->v.head_dim;
  value qkv = fam_linear(m, x, w.qkv, w.qkv_b);
  attr parts[] = {attr_i(A_axis, 2), attr_v(A_sizes, (const i64[]){d, d, d}, 3)};
  value q = build_n(&m->b, OP_split, &qkv, 1, parts, 2, 3), head[3] = {0};
  for (u32 i = 0; i < 3 && q; i++) head[i] = fam_reshape(m, q + i, DIMS(n, s, h, dim));
  value y = fam_attend(m, head[0], head[1], head[2], s, causal, 0, 1 / sqrt((double)dim));
  return fam_linear(m, fam_reshape(m, y, DIMS(n, s, d)), w.out, w.out_b);
}

// ---- feed-forward halves -------------------------------------------------------------------------------
fam_ffn fam_ffn_declare(fam *m) {
  i64 d = m->v.hidden, f = m->v.ffn, e = m->v.experts;
  if (e) {
    value gate = fam_w(m, "moe.gate", DIMS(d, e));
    value up = fam_w(m, "moe.up", DIMS(e, d, f)), down = fam_w(m, "moe.down", DIMS(e, f, d));
    return (fam_ffn){up, 0, down, 0, gate};
  }
  value up = fam_w(m, "mlp.up", DIMS(d, f)), up_b = fam_w(m, "mlp.up.bias", DIMS(f));
  value down = fam_w(m, "mlp.down", DIMS(f, d)), down_b = fam_w(m, "mlp.down.bias", DIMS(d));
  return (fam_ffn){up, up_b, down, down_b, 0};
}

value fam_gelu(fam *m, value x, bool tanh_form) { return fam_op(m, OP_gelu, x, attr_i(A_approx, tanh_form)); }

// Every sequence is a routing group: an expert takes at most 1.25 times its even share of the group's tokens.
static value experts(fam *m, value x, fam_ffn w, i64 s) {
  i64 cap = MAX((i64)ceil(1.25 * (double)(m->v.topk * s) / (double)m->v.experts), 1);
  attr places[] = {attr_i(A_k, m->v.topk), attr_i(A_capacity, cap)};
  attr slots[] = {attr_i(A_experts, m->v.experts), attr_i(A_capacity, cap)};
  value p = build1(&m->b, OP_softmax, fam_linear(m, x, w.gate, 0));
  value gate = build(&m->b, OP_moe_gate, &p, 1, places, 2);
  value in = gate ? build(&m->b, OP_moe_dispatch, (value[]){x, gate}, 2, slots, 2) : 0;
  value y =
      fam_einsum(m, "gecf,efd->gecd", fam_gelu(m, fam_einsum(m, "gecd,edf->gecf", in, w.up), true), w.down);
  return gate ? build(&m->b, OP_moe_combine, (value[]){y, gate, gate + 1}, 3, NULL, 0) : 0;
}

value fam_feed_forward(fam *m, value x, fam_ffn w, i64 s, bool tanh_form) {
  if (w.gate) return experts(m, x, w, s);
  return fam_linear(m, fam_gelu(m, fam_linear(m, x, w.up, w.up_b), tanh_form), w.down, w.down_b);
}

func fam_layer(fam *m, const char *name, i64 s, bool causal) {
  i64 d = m->v.hidden;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, s, d));
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  fam_self w = fam_self_declare(m);
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  fam_ffn u = fam_ffn_declare(m);
  fam_at(m, "layer/attention");
  value y = fam_self_attention(m, fam_layernorm(m, x, g1, b1, 1e-5), w, s, causal);
  x = build2(&m->b, OP_add, x, y);
  fam_at(m, u.gate ? "layer/experts" : "layer/mlp");
  y = fam_feed_forward(m, fam_layernorm(m, x, g2, b2, 1e-5), u, s, causal);
  fam_return(m, build2(&m->b, OP_add, x, y));
  return f;
}

// ---- the frame of a language model ---------------------------------------------------------------------
value fam_embed(fam *m, value table, value ids) { return build2(&m->b, OP_gather, table, ids); }

value fam_positions(fam *m, i64 s) { return fam_iota(m, DT_I64, 0, 1, DIMS(s)); }

void fam_scores(fam *m, value x, value tied, value head, value labels) {
  fam_at(m, "head");
  if (!m->o->headless) x = tied ? fam_einsum(m, "bsd,vd->bsv", x, tied) : fam_linear(m, x, head, 0);
  fam_return(m, labels ? fam_xent(m, x, labels) : x);
}

value fam_labels(fam *m, i64 s) {
  return m->o->loss && !m->o->headless ? fam_x(m, "labels", ROLE_LABEL, DT_I64, DIMS(m->batch, s)) : 0;
}

value *fam_layer_weights(fam *m, func f, const char *prefix) {
  value *w = NEWN(m->p->a, value, m->v.layers);
  for (i64 i = 0; i < m->v.layers; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.%lld", prefix, (long long)i);
    w[i] = fam_weights(m, f, name);
  }
  return w;
}
