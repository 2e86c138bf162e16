// family_rnn.c - GNMT: LSTM layers of an encoder and a decoder, with attention, written out step by step.
//
// Idea: one layer after the other, each over the whole sequence, as its authors lay the layers on devices:
// attention looks from the decoder's first layer alone, so a layer has all of its inputs before it begins. A
// layer is a function that calls its step once for every position. The product of all positions' inputs with
// the input weights is one instruction before the steps.
//
// As Wu et al. (2016) have it: the first layer of the encoder runs both ways, from the third layer on layers
// add their input to their output, and every layer of the decoder reads what the attention gives at its
// position.
#include "front/family.h"

// An instruction has so many results at most, so longer sequences are cut and put together in two goes.
enum { PIECES = 64 };

// x[n,s,d] as s values [n,d].
static void each_step(fam *m, value x, i64 s, i64 d, value *out) {
  i64 sizes[PIECES], ones[PIECES], parts = ceil_div(s, PIECES);
  const i64 n = m->batch, most = ceil_div(s, parts);
  value part[PIECES] = {x};
  for (i64 i = 0; i < most; i++) ones[i] = 1;
  for (i64 i = 0; i < parts; i++) sizes[i] = MIN(most, s - i * most);
  attr at[] = {attr_i(A_axis, 1), attr_v(A_sizes, sizes, (u32)parts)};
  const value first = parts > 1 ? build_n(&m->b, OP_split, &x, 1, at, 2, (u32)parts) : x;
  for (i64 i = 0; i < parts && first; i++) {
    part[i] = first + (value)i;
    at[1] = attr_v(A_sizes, ones, (u32)sizes[i]);
    const value y = sizes[i] > 1 ? build_n(&m->b, OP_split, &part[i], 1, at, 2, (u32)sizes[i]) : part[i];
    for (i64 t = 0; t < sizes[i]; t++) out[i * most + t] = y ? fam_reshape(m, y + (value)t, DIMS(n, d)) : 0;
  }
}

static value join(fam *m, const value *x, i64 n) {
  attr axis = attr_i(A_axis, 1);
  return n == 1 ? x[0] : build(&m->b, OP_concat, x, (u32)n, &axis, 1);
}

// The inverse.
static value all_steps(fam *m, value *x, i64 s, i64 d) {
  value part[PIECES];
  const i64 parts = ceil_div(s, PIECES), most = ceil_div(s, parts);
  for (i64 t = 0; t < s; t++) x[t] = fam_reshape(m, x[t], DIMS(m->batch, 1, d));
  for (i64 i = 0; i < parts; i++) part[i] = join(m, x + i * most, MIN(most, s - i * most));
  return join(m, part, parts);
}

static value zeros(fam *m) {
  const i64 dim[] = {m->batch, m->v.hidden};
  attr at[] = {attr_t(A_dtype, m->t), attr_v(A_shape, dim, 2), attr_f(A_value, 0)};
  return build(&m->b, OP_full, NULL, 0, at, 3);
}

// ---- LSTM -----------------------------------------------------------------------------------------------
// state: h, c. z[n,4h]: what the inputs give to the gates; u: weights of the state.
static void lstm_cell(fam *m, value z, value u, value state[2]) {
  const i64 h = m->v.hidden;
  z = build2(&m->b, OP_add, z, fam_linear(m, state[0], u, 0));
  attr gates[] = {attr_i(A_axis, 1), attr_v(A_sizes, (const i64[]){h, h, h, h}, 4)};
  const value gate = z ? build_n(&m->b, OP_split, &z, 1, gates, 2, 4) : 0;
  if (!gate) return;
  value in = build1(&m->b, OP_sigmoid, gate), forget = build1(&m->b, OP_sigmoid, gate + 1),
        now = build1(&m->b, OP_tanh, gate + 2), out = build1(&m->b, OP_sigmoid, gate + 3);
  state[1] = build2(&m->b, OP_add, build2(&m->b, OP_mul, forget, state[1]), build2(&m->b, OP_mul, in, now));
  state[0] = build2(&m->b, OP_mul, out, build1(&m->b, OP_tanh, state[1]));
}

static func lstm_step(fam *m) {
  const i64 n = m->batch, h = m->v.hidden;
  func f = fam_func(m, "step");
  value z = fam_x(m, "z", ROLE_INPUT, m->t, DIMS(n, 4 * h)), state[2];
  state[0] = fam_x(m, "h", ROLE_INPUT, m->t, DIMS(n, h)),
  state[1] = fam_x(m, "c", ROLE_INPUT, m->t, DIMS(n, h));
  value u = fam_w(m, "u", DIMS(h, 4 * h));
  fam_at(m, "step");
  lstm_cell(m, z, u, state);
  if (!m->b.failed) func_return(m->p, f, state, 2);
  return f;
}

typedef struct {
  i64 in; // width of x[n,s,in]
  bool backwards, context,
      add; // context: reads the decoder's context too; add: the layer's input to its output
} lstm;

static func lstm_layer(fam *m, const char *name, func step, lstm k) {
  const i64 n = m->batch, s = m->seq, h = m->v.hidden;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, k.in));
  value context = k.context ? fam_x(m, "context", ROLE_INPUT, m->t, DIMS(n, s, h)) : 0;
  value w = fam_w(m, "w", DIMS(k.in, 4 * h)), bias = fam_w(m, "bias", DIMS(4 * h));
  value v = context ? fam_w(m, "v", DIMS(h, 4 * h)) : 0, u = fam_w(m, "u", DIMS(h, 4 * h));
  value *each = NEWN(m->p->a, value, s), state[3];
  fam_at(m, name);
  value z = fam_linear(m, x, w, bias);
  if (context) z = build2(&m->b, OP_add, z, fam_linear(m, context, v, 0));
  each_step(m, z, s, 4 * h, each);
  state[1] = state[2] = zeros(m);
  for (i64 i = 0; i < s && !m->b.failed; i++) {
    const i64 t = k.backwards ? s - 1 - i : i;
    state[0] = each[t];
    each[t] = state[1] = fam_call(m, step, state, 3, u);
    state[2] = state[1] + 1;
  }
  value y = all_steps(m, each, s, h);
  fam_return(m, k.add ? build2(&m->b, OP_add, y, x) : y);
  return f;
}

// ---- the decoder's first layer --------------------------------------------------------------------------
// A step with attention: which positions of the memory are like the state before, by a layer of tanh.
static func attention_step(fam *m) {
  const i64 n = m->batch, s = m->seq, h = m->v.hidden;
  func f = fam_func(m, "attention");
  value z = fam_x(m, "z", ROLE_INPUT, m->t, DIMS(n, 4 * h)), out[3];
  out[0] = fam_x(m, "h", ROLE_INPUT, m->t, DIMS(n, h)), out[1] = fam_x(m, "c", ROLE_INPUT, m->t, DIMS(n, h));
  value keys = fam_x(m, "keys", ROLE_INPUT, m->t, DIMS(n, s, h)),
        memory = fam_x(m, "memory", ROLE_INPUT, m->t, DIMS(n, s, h));
  value query = fam_w(m, "query", DIMS(h, h)), score = fam_w(m, "score", DIMS(h));
  value v = fam_w(m, "v", DIMS(h, 4 * h)), u = fam_w(m, "u", DIMS(h, 4 * h));
  fam_at(m, "attention");
  value q = fam_reshape(m, fam_linear(m, out[0], query, 0), DIMS(n, 1, h));
  value like = build1(&m->b, OP_tanh, build2(&m->b, OP_add, keys, q));
  like = build1(&m->b, OP_softmax, fam_einsum(m, "bsh,h->bs", like, score));
  out[2] = fam_einsum(m, "bs,bsh->bh", like, memory);
  lstm_cell(m, build2(&m->b, OP_add, z, fam_linear(m, out[2], v, 0)), u, out);
  if (!m->b.failed) func_return(m->p, f, out, 3);
  return f;
}

// Its outputs and the contexts that it saw.
static func attention_layer(fam *m, func step) {
  const i64 n = m->batch, s = m->seq, h = m->v.hidden;
  func f = fam_func(m, "decoder.first");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, s, h)),
        memory = fam_x(m, "memory", ROLE_INPUT, m->t, DIMS(n, s, h));
  value w = fam_w(m, "w", DIMS(h, 4 * h)), bias = fam_w(m, "bias", DIMS(4 * h)),
        key = fam_w(m, "key", DIMS(h, h));
  value own = fam_weights(m, step, "step"), out[2];
  value *each = NEWN(m->p->a, value, s), *seen = NEWN(m->p->a, value, s), arg[5];
  fam_at(m, "decoder.first");
  each_step(m, fam_linear(m, x, w, bias), s, 4 * h, each);
  arg[1] = arg[2] = zeros(m);
  arg[3] = fam_linear(m, memory, key, 0), arg[4] = memory;
  for (i64 t = 0; t < s && !m->b.failed; t++) {
    arg[0] = each[t];
    each[t] = arg[1] = fam_call(m, step, arg, 5, own);
    arg[2] = arg[1] + 1, seen[t] = arg[1] + 2;
  }
  out[0] = all_steps(m, each, s, h), out[1] = all_steps(m, seen, s, h);
  if (!m->b.failed) func_return(m->p, f, out, 2);
  return f;
}

// ---- GNMT -----------------------------------------------------------------------------------------------
static bool can_be(fam *m) {
  if (m->v.layers >= 2 && m->seq <= PIECES * PIECES) return true;
  if (m->v.layers < 2) {
    diag(m->p->c, E_MODEL, m->b.where, "layers=%lld, but the first layer of GNMT has another one above",
         (long long)m->v.layers);
    diag_hint(m->p->c, "%s:layers=2", m->v.name);
  } else {
    diag(m->p->c, E_LIMIT, m->b.where, "a sequence of %lld steps; at most %d are written out",
         (long long)m->seq, PIECES * PIECES);
    diag_hint(m->p->c, "--seq %d", PIECES * PIECES);
  }
  m->b.failed = true;
  return false;
}

static value weights_of(fam *m, func f, const char *what, i64 layer, const char *way) {
  return fam_weights(m, f, arena_printf(m->p->a, "%s.%lld%s", what, (long long)layer, way));
}

void fam_gnmt(fam *m) {
  const i64 n = m->batch, s = m->seq, h = m->v.hidden, vocab = m->v.vocab, layers = m->v.layers;
  if (!can_be(m)) return;
  func step = lstm_step(m), attend = attention_step(m);
  func ahead = lstm_layer(m, "encoder.forward", step, (lstm){.in = h}),
       back = lstm_layer(m, "encoder.backward", step, (lstm){.in = h, .backwards = true}),
       both = lstm_layer(m, "encoder.second", step, (lstm){.in = 2 * h}),
       enc = layers > 2 ? lstm_layer(m, "encoder", step, (lstm){.in = h, .add = true}) : (func){0};
  func first = attention_layer(m, attend),
       second = lstm_layer(m, "decoder.second", step, (lstm){.in = h, .context = true}),
       dec = layers > 2 ? lstm_layer(m, "decoder", step, (lstm){.in = h, .context = true, .add = true})
                        : (func){0};
  m->p->main = fam_func(m, "main");
  value src = fam_x(m, "source", ROLE_INPUT, DT_I64, DIMS(n, s)),
        dst = fam_x(m, "target", ROLE_INPUT, DT_I64, DIMS(n, s));
  value want = fam_labels(m, s), from = fam_w(m, "source.word", DIMS(vocab, h)),
        to = fam_w(m, "target.word", DIMS(vocab, h));
  value *we = NEWN(m->p->a, value, layers + 1), *wd = NEWN(m->p->a, value, layers);
  we[layers] = weights_of(m, ahead, "encoder", 0, ".forward"),
  we[0] = weights_of(m, back, "encoder", 0, ".backward");
  for (i64 i = 1; i < layers; i++) we[i] = weights_of(m, i == 1 ? both : enc, "encoder", i, "");
  for (i64 i = 0; i < layers; i++)
    wd[i] = weights_of(m, !i ? first : i == 1 ? second : dec, "decoder", i, "");
  value head = m->o->headless ? 0 : fam_w(m, "head", DIMS(h, vocab));
  fam_at(m, "encoder");
  attr axis = attr_i(A_axis, 2);
  value x = build2(&m->b, OP_gather, from, src), ways[2], y[2];
  ways[0] = fam_call(m, ahead, &x, 1, we[layers]), ways[1] = fam_call(m, back, &x, 1, we[0]);
  x = build(&m->b, OP_concat, ways, 2, &axis, 1);
  for (i64 i = 1; i < layers; i++) x = fam_call(m, i == 1 ? both : enc, &x, 1, we[i]);
  fam_at(m, "decoder");
  y[0] = build2(&m->b, OP_gather, to, dst), y[1] = x;
  y[0] = fam_call(m, first, y, 2, wd[0]), y[1] = y[0] + 1;
  for (i64 i = 1; i < layers; i++) y[0] = fam_call(m, i == 1 ? second : dec, y, 2, wd[i]);
  fam_scores(m, y[0], 0, head, want);
}
