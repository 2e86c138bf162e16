// onnx_rnn.c - recurrent ONNX operators (RNN, GRU, LSTM), written out step by step.
//
// Idea: a program has no loops, so a sequence of s steps becomes s copies of the cell. The product of all
// steps' inputs with the input weights is one instruction before them; a step is one product with the state
// and a few sums.
#include "front/onnx.h"

enum { RNN, GRU, LSTM };
enum { STEPS_MAX = 4096 };
static const i64 gates_of[] = {1, 3, 4};

typedef struct {
  node *n;
  int kind;
  i64 seq, batch, hidden;
  opcode act[3];
  bool linear; // GRU: the reset gate is applied behind the product
} cell;

// Elements lo..hi of dimension d.
static mixed part(node *n, mixed x, i64 d, i64 lo, i64 hi) {
  attr at[] = {attr_v(A_starts, &lo, 1), attr_v(A_ends, &hi, 1), attr_v(A_axes, &d, 1)};
  return opn(n, OP_slice, &x, 1, at, 3);
}

static mixed transposed_product(node *n, mixed x, mixed w, const char *letters) {
  attr a = attr_s(A_law, sym_of(n->x->b.p->c, letters));
  return opn(n, OP_einsum, (mixed[]){x, w}, 2, &a, 1);
}

static mixed zeros(node *n, dtype t, const i64 *dim, u32 nd) {
  attr at[] = {attr_t(A_dtype, t), attr_v(A_shape, dim, nd), attr_f(A_value, 0)};
  return opn(n, OP_full, NULL, 0, at, 3);
}

static bool activations_of(cell *k, u32 dir) {
  static const struct {
    const char *name;
    opcode op;
  } known[] = {{"Sigmoid", OP_sigmoid}, {"Tanh", OP_tanh}, {"Relu", OP_relu}};
  static const opcode usual[][3] = {{OP_tanh}, {OP_sigmoid, OP_tanh}, {OP_sigmoid, OP_tanh, OP_tanh}};
  const onnx_attr *a = at_find(k->n, "activations");
  u32 each = (u32)k->kind + 1;
  memcpy(k->act, usual[k->kind], sizeof k->act);
  for (u32 i = 0; a && i < each && a->strings.n; i++) {
    if (dir * each + i >= a->strings.n) return wrong(k->n, "%u activations", a->strings.n);
    pb_span s = a->strings.v[dir * each + i];
    u32 j = 0;
    while (j < COUNT_OF(known) && (strlen(known[j].name) != (size_t)(s.end - s.at) ||
                                   memcmp(known[j].name, s.at, strlen(known[j].name))))
      j++;
    if (j == COUNT_OF(known))
      return refuse(k->n, "with activation %.*s", (int)MIN(s.end - s.at, 40), (const char *)s.at);
    k->act[i] = known[j].op;
  }
  return true;
}

typedef struct {
  mixed r, rb, peep[3];
} dir_weights; // rb: GRU only, elsewhere part of the input's bias

static mixed gate(node *n, const cell *k, mixed all, i64 i) {
  return part(n, all, 1, i * k->hidden, (i + 1) * k->hidden);
}

static mixed plus_peep(node *n, mixed x, mixed peep, mixed c) {
  return peep ? op2(n, OP_add, x, op2(n, OP_mul, peep, c)) : x;
}

// One step: xt [batch, gates * hidden] and the state h (and c) to the next state.
static void step(const cell *k, dir_weights w, mixed xt, mixed *h, mixed *c) {
  node *n = k->n;
  mixed r = transposed_product(n, *h, w.r, "bk,nk->bn");
  if (k->kind == RNN) {
    *h = op1(n, k->act[0], op2(n, OP_add, xt, r));
  } else if (k->kind == LSTM) {
    mixed all = op2(n, OP_add, xt, r);
    mixed in = op1(n, k->act[0], plus_peep(n, gate(n, k, all, 0), w.peep[0], *c));
    mixed forget = op1(n, k->act[0], plus_peep(n, gate(n, k, all, 2), w.peep[2], *c));
    mixed now = op2(n, OP_mul, in, op1(n, k->act[1], gate(n, k, all, 3)));
    *c = op2(n, OP_add, op2(n, OP_mul, forget, *c), now);
    mixed out = op1(n, k->act[0], plus_peep(n, gate(n, k, all, 1), w.peep[1], *c));
    *h = op2(n, OP_mul, out, op1(n, k->act[2], *c));
  } else {
    if (w.rb) r = op2(n, OP_add, r, w.rb);
    mixed keep = op1(n, k->act[0], op2(n, OP_add, gate(n, k, xt, 0), gate(n, k, r, 0)));
    mixed reset = op1(n, k->act[0], op2(n, OP_add, gate(n, k, xt, 1), gate(n, k, r, 1)));
    mixed seen;
    if (k->linear) {
      seen = op2(n, OP_mul, reset, gate(n, k, r, 2));
    } else {
      seen = transposed_product(n, op2(n, OP_mul, reset, *h), part(n, w.r, 0, 2 * k->hidden, 3 * k->hidden),
                                "bk,nk->bn");
      if (w.rb) seen = op2(n, OP_add, seen, part(n, w.rb, 0, 2 * k->hidden, 3 * k->hidden));
    }
    mixed now = op1(n, k->act[1], op2(n, OP_add, gate(n, k, xt, 2), seen));
    *h = op2(n, OP_add, now, op2(n, OP_mul, keep, op2(n, OP_sub, *h, now)));
  }
}

// The slice of operand `in` for direction d, as [rest of its extents]; 0 if the operand is absent.
static mixed of_dir(node *n, u32 in, i64 d) {
  mixed x = in_of(n, in);
  if (!x) return 0;
  const shape s = *shape_of(n, x);
  mixed y = s.dim[0] == 1 ? x : part(n, x, 0, d, d + 1);
  return to_shape(n, y, s.dim + 1, s.nd - 1);
}

// One direction: outputs of all steps, joined to [seq, 1, batch, hidden], and the last state.
static mixed run_dir(cell *k, i64 d, bool backwards, mixed x, mixed *h, mixed *c) {
  assert(k->kind >= RNN && k->kind <= LSTM);
  node *n = k->n;
  i64 g = gates_of[k->kind] * k->hidden;
  dir_weights w = {.r = of_dir(n, 2, d)};
  mixed b = of_dir(n, 3, d), p = k->kind == LSTM ? of_dir(n, 7, d) : 0, lens = in_of(n, 4);
  mixed xw = transposed_product(n, x, of_dir(n, 1, d), "sbk,nk->sbn");
  if (b) {
    mixed rb = part(n, b, 0, g, 2 * g);
    xw = op2(n, OP_add, xw, part(n, b, 0, 0, g));
    if (k->kind == GRU)
      w.rb = rb;
    else
      xw = op2(n, OP_add, xw, rb);
  }
  for (i64 i = 0; i < 3 && p; i++) w.peep[i] = part(n, p, 0, i * k->hidden, (i + 1) * k->hidden);
  mixed *y = NEWN(n->I->a, mixed, k->seq), zero = zeros(n, shape_of(n, x)->t, NULL, 0);
  for (i64 i = 0; i < k->seq; i++) {
    i64 t = backwards ? k->seq - 1 - i : i;
    mixed h0 = *h, c0 = *c;
    step(k, w, to_shape(n, part(n, xw, 0, t, t + 1), (const i64[]){k->batch, g}, 2), h, c);
    mixed out = *h;
    if (lens && out) { // a sequence that is over keeps its state and yields 0
      mixed on =
          op2(n, OP_gt, to_shape(n, lens, (const i64[]){k->batch, 1}, 2), full_like(n, lens, (double)t));
      *h = op3(n, OP_where, on, *h, h0);
      if (*c) *c = op3(n, OP_where, on, *c, c0);
      out = op3(n, OP_where, on, out, zero);
    }
    y[t] = to_shape(n, out, (const i64[]){1, 1, k->batch, k->hidden}, 4);
  }
  attr axis = attr_i(A_axis, 0);
  return opn(n, OP_concat, y, (u32)k->seq, &axis, 1);
}

bool map_rnn(node *n) {
  cell k = {.n = n, .kind = n->row->arg, .linear = at_i(n, "linear_before_reset", 0)};
  const char *direction = at_s(n, "direction", "forward");
  bool batch_first = at_i(n, "layout", 0);
  mixed x = in_of(n, 0);
  for (u32 i = 0; i < 3; i++)
    if (!in_of(n, i) || shape_of(n, in_of(n, i))->nd != 3)
      return wrong(n, "input %u must have 3 dimensions", i + 1);
  if (at_find(n, "clip") || at_i(n, "input_forget", 0)) return refuse(n, "with clip or input_forget");
  for (u32 i = 1; i < 4; i++) is_weight(n, i, ROLE_WEIGHT);
  if (batch_first) x = to_perm(n, x, (const i64[]){1, 0, 2}, 3);
  if (!x) return false;
  const shape s = *shape_of(n, x), sr = *shape_of(n, in_of(n, 2));
  i64 dirs = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  k.seq = s.dim[0], k.batch = s.dim[1], k.hidden = sr.dim[2];
  if (sr.dim[0] != dirs || sr.dim[1] != gates_of[k.kind] * k.hidden)
    return wrong(n, "the recurrent weight does not fit");
  if (k.seq < 1 || k.seq > STEPS_MAX) return refuse(n, "with %lld steps", (long long)k.seq);
  mixed y[2], last[2][2] = {{0}};
  for (i64 d = 0; d < dirs; d++) {
    i64 state[] = {k.batch, k.hidden};
    if (!activations_of(&k, (u32)d)) return false;
    for (u32 i = 0; i < 2 && (i == 0 || k.kind == LSTM); i++) {
      mixed first = in_of(n, 5 + i);
      if (first && batch_first)
        first = part(n, first, 1, d, d + 1);
      else if (first)
        first = part(n, first, 0, d, d + 1);
      last[i][d] = first ? to_shape(n, first, state, 2) : zeros(n, s.t, state, 2);
    }
    y[d] = run_dir(&k, d, d == 1 || strcmp(direction, "reverse") == 0, x, &last[0][d], &last[1][d]);
  }
  attr dir_axis = attr_i(A_axis, 1);
  mixed all = dirs == 1 ? y[0] : opn(n, OP_concat, y, 2, &dir_axis, 1);
  if (batch_first) all = to_perm(n, all, (const i64[]){2, 0, 1, 3}, 4);
  set(n, 0, all);
  for (u32 i = 0; i < 2; i++) { // [dirs, batch, hidden], or [batch, dirs, hidden]
    attr axis = attr_i(A_axis, batch_first);
    i64 dim[] = {1, k.batch, k.hidden}, swapped[] = {k.batch, 1, k.hidden};
    for (i64 d = 0; d < dirs && last[i][d]; d++)
      last[i][d] = to_shape(n, last[i][d], batch_first ? swapped : dim, 3);
    if (last[i][0]) set(n, 1 + i, dirs == 1 ? last[i][0] : opn(n, OP_concat, last[i], 2, &axis, 1));
  }
  return all != 0;
}
