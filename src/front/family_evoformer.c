// family_evoformer.c - the trunk of AlphaFold 2: Evoformer blocks over a multiple sequence alignment (MSA) and a
// table of residue pairs, with what embeds both and the head that predicts distances of pairs. Left out are
// templates, unaligned sequences (the extra MSA) and the structure module.
//
// Idea: rows and columns of both tables are attended along by the same code, which is told the letters. A block is one
// function of two results.
#include "front/family.h"
#include <math.h>

enum {
  MSA_FEATURES = 49,
  RESIDUES = 22,
  REACH = 32
}; // of an aligned residue; kinds of a residue; distances told apart
static const double eps = 1e-5;

// ---- attention along one dimension of a table ------------------------------------------------------------
typedef struct {
  value g, b, q, k, v, pair, gate, gate_b, out, out_b; // pair: from pairs to heads; 0: no bias
  i64 heads, channels;
} axial;

static value named(fam *m, const char *what, const char *part, u32 nd, const i64 *dim) {
  return fam_w(m, arena_printf(m->p->a, "%s.%s", what, part), nd, dim);
}

static axial axial_declare(fam *m, const char *what, i64 channels, bool pair) {
  const i64 e = m->v.head_dim, h = channels / e, d = channels;
  axial w = {.heads = h, .channels = channels};
  w.g = named(m, what, "ln.g", DIMS(d)), w.b = named(m, what, "ln.b", DIMS(d));
  w.q = named(m, what, "q", DIMS(d, d)), w.k = named(m, what, "k", DIMS(d, d)),
  w.v = named(m, what, "v", DIMS(d, d));
  if (pair) w.pair = named(m, what, "pair", DIMS(m->v.pair, h));
  w.gate = named(m, what, "gate", DIMS(d, d)), w.gate_b = named(m, what, "gate.bias", DIMS(d));
  w.out = named(m, what, "out", DIMS(d, d)), w.out_b = named(m, what, "out.bias", DIMS(d));
  return w;
}

static value sigmoid(fam *m, value x) { return build1(&m->b, OP_sigmoid, x); }

// Along rows: element (i,j) sees all (i,k). Along columns: it sees all (k,j).
typedef struct {
  const char *scores, *sums; // of queries and keys; of softmaxed scores and values
  i64 bias[4];               // a pair's dimensions in the order batch, head, who sees, who is seen
} direction;
static const direction along_row = {"bijhd,bikhd->bihjk", "bihjk,bikhd->bijhd", {0, 3, 1, 2}},
                       along_column = {"bijhd,bkjhd->bjhik", "bjhik,bkjhd->bijhd", {0, 3, 2, 1}};

// Of x[b,n,l,channels], normalised already; pairs[b,r,r,pair], normalised already, or 0.
static value axial_attention(fam *m, value x, i64 n, i64 l, value pairs, const axial *w, const direction *d) {
  const i64 b = m->batch, h = w->heads, e = m->v.head_dim, r = m->seq;
  value q = fam_reshape(m, fam_linear(m, x, w->q, 0), DIMS(b, n, l, h, e));
  value k = fam_reshape(m, fam_linear(m, x, w->k, 0), DIMS(b, n, l, h, e));
  value v = fam_reshape(m, fam_linear(m, x, w->v, 0), DIMS(b, n, l, h, e));
  value scores = fam_einsum(m, d->scores, fam_op(m, OP_scale, q, attr_f(A_alpha, 1 / sqrt((double)e))), k);
  if (pairs) {
    value bias = fam_transpose(m, fam_linear(m, pairs, w->pair, 0), 4, d->bias);
    scores = build2(&m->b, OP_add, scores, fam_reshape(m, bias, DIMS(b, 1, h, r, r)));
  }
  value y = fam_einsum(m, d->sums, build1(&m->b, OP_softmax, scores), v);
  value gate = sigmoid(m, fam_linear(m, x, w->gate, w->gate_b));
  y = build2(&m->b, OP_mul, gate, fam_reshape(m, y, DIMS(b, n, l, w->channels)));
  return fam_linear(m, y, w->out, w->out_b);
}

// ---- transitions -----------------------------------------------------------------------------------------
typedef struct {
  value g, b, up, up_b, down, down_b;
} transition;

static transition transition_declare(fam *m, const char *what, i64 d) {
  const i64 f = m->v.ffn * d / m->v.hidden;
  transition w = {.g = named(m, what, "ln.g", DIMS(d)), .b = named(m, what, "ln.b", DIMS(d))};
  w.up = named(m, what, "up", DIMS(d, f)), w.up_b = named(m, what, "up.bias", DIMS(f));
  w.down = named(m, what, "down", DIMS(f, d)), w.down_b = named(m, what, "down.bias", DIMS(d));
  return w;
}

static value transit(fam *m, value x, const transition *w) {
  value y = build1(&m->b, OP_relu, fam_linear(m, fam_layernorm(m, x, w->g, w->b, eps), w->up, w->up_b));
  return build2(&m->b, OP_add, x, fam_linear(m, y, w->down, w->down_b));
}

// ---- from the alignment to pairs -------------------------------------------------------------------------
typedef struct {
  value g, b, left, left_b, right, right_b, out, out_b;
} outer;

static outer outer_declare(fam *m) {
  const i64 d = m->v.hidden, e = m->v.head_dim, p = m->v.pair;
  outer w = {.g = fam_w(m, "outer.ln.g", DIMS(d)), .b = fam_w(m, "outer.ln.b", DIMS(d))};
  w.left = fam_w(m, "outer.left", DIMS(d, e)), w.left_b = fam_w(m, "outer.left.bias", DIMS(e));
  w.right = fam_w(m, "outer.right", DIMS(d, e)), w.right_b = fam_w(m, "outer.right.bias", DIMS(e));
  w.out = fam_w(m, "outer.out", DIMS(e * e, p)), w.out_b = fam_w(m, "outer.out.bias", DIMS(p));
  return w;
}

// z + the mean over sequences of the outer products of what residues i and j have in them.
static value outer_mean(fam *m, value z, value x, const outer *w) {
  const i64 e = m->v.head_dim, r = m->seq;
  x = fam_layernorm(m, x, w->g, w->b, eps);
  value left =
      fam_op(m, OP_scale, fam_linear(m, x, w->left, w->left_b), attr_f(A_alpha, 1 / (double)m->v.msa));
  value y = fam_einsum(m, "bsic,bsjd->bijcd", left, fam_linear(m, x, w->right, w->right_b));
  return build2(&m->b, OP_add, z,
                fam_linear(m, fam_reshape(m, y, DIMS(m->batch, r, r, e * e)), w->out, w->out_b));
}

// ---- triangles -------------------------------------------------------------------------------------------
typedef struct {
  value g, b, left, left_b, left_gate, left_gate_b, right, right_b, right_gate, right_gate_b;
  value mid_g, mid_b, gate, gate_b, out, out_b;
} triangle;

static triangle triangle_declare(fam *m, const char *what) {
  const i64 p = m->v.pair;
  triangle w = {.g = named(m, what, "ln.g", DIMS(p)), .b = named(m, what, "ln.b", DIMS(p))};
  w.left = named(m, what, "left", DIMS(p, p)), w.left_b = named(m, what, "left.bias", DIMS(p));
  w.left_gate = named(m, what, "left.gate", DIMS(p, p)),
  w.left_gate_b = named(m, what, "left.gate.bias", DIMS(p));
  w.right = named(m, what, "right", DIMS(p, p)), w.right_b = named(m, what, "right.bias", DIMS(p));
  w.right_gate = named(m, what, "right.gate", DIMS(p, p)),
  w.right_gate_b = named(m, what, "right.gate.bias", DIMS(p));
  w.mid_g = named(m, what, "mid.ln.g", DIMS(p)), w.mid_b = named(m, what, "mid.ln.b", DIMS(p));
  w.gate = named(m, what, "gate", DIMS(p, p)), w.gate_b = named(m, what, "gate.bias", DIMS(p));
  w.out = named(m, what, "out", DIMS(p, p)), w.out_b = named(m, what, "out.bias", DIMS(p));
  return w;
}

// z + for every pair a sum over the third residue, of the edges that leave both or of those that enter both.
static value triangles(fam *m, value z, const triangle *w, const char *letters) {
  value x = fam_layernorm(m, z, w->g, w->b, eps);
  value left = build2(&m->b, OP_mul, sigmoid(m, fam_linear(m, x, w->left_gate, w->left_gate_b)),
                      fam_linear(m, x, w->left, w->left_b));
  value right = build2(&m->b, OP_mul, sigmoid(m, fam_linear(m, x, w->right_gate, w->right_gate_b)),
                       fam_linear(m, x, w->right, w->right_b));
  value y = fam_layernorm(m, fam_einsum(m, letters, left, right), w->mid_g, w->mid_b, eps);
  y = build2(&m->b, OP_mul, sigmoid(m, fam_linear(m, x, w->gate, w->gate_b)),
             fam_linear(m, y, w->out, w->out_b));
  return build2(&m->b, OP_add, z, y);
}

// ---- a block ---------------------------------------------------------------------------------------------
static value normed(fam *m, value x, const axial *w) { return fam_layernorm(m, x, w->g, w->b, eps); }

static func block(fam *m) {
  const i64 n = m->batch, s = m->v.msa, r = m->seq, d = m->v.hidden, p = m->v.pair;
  func f = fam_func(m, "evoformer");
  value x = fam_x(m, "msa", ROLE_INPUT, m->t, DIMS(n, s, r, d)),
        z = fam_x(m, "pairs", ROLE_INPUT, m->t, DIMS(n, r, r, p));
  const axial row = axial_declare(m, "row", d, true);
  value pg = fam_w(m, "row.pair.ln.g", DIMS(p)), pb = fam_w(m, "row.pair.ln.b", DIMS(p));
  const axial column = axial_declare(m, "column", d, false);
  const transition wide = transition_declare(m, "transition", d);
  const outer o = outer_declare(m);
  const triangle out = triangle_declare(m, "outgoing"), in = triangle_declare(m, "incoming");
  const axial start = axial_declare(m, "start", p, true), end = axial_declare(m, "end", p, true);
  const transition pairs = transition_declare(m, "pair.transition", p);
  fam_at(m, "evoformer/row");
  value bias = fam_layernorm(m, z, pg, pb, eps);
  x = build2(&m->b, OP_add, x, axial_attention(m, normed(m, x, &row), s, r, bias, &row, &along_row));
  fam_at(m, "evoformer/column");
  x = build2(&m->b, OP_add, x, axial_attention(m, normed(m, x, &column), s, r, 0, &column, &along_column));
  fam_at(m, "evoformer/transition");
  x = transit(m, x, &wide);
  fam_at(m, "evoformer/outer");
  z = outer_mean(m, z, x, &o);
  fam_at(m, "evoformer/outgoing");
  z = triangles(m, z, &out, "bikc,bjkc->bijc");
  fam_at(m, "evoformer/incoming");
  z = triangles(m, z, &in, "bkic,bkjc->bijc");
  fam_at(m, "evoformer/start");
  value y = normed(m, z, &start);
  z = build2(&m->b, OP_add, z, axial_attention(m, y, r, r, y, &start, &along_row));
  fam_at(m, "evoformer/end");
  y = normed(m, z, &end);
  z = build2(&m->b, OP_add, z, axial_attention(m, y, r, r, y, &end, &along_column));
  fam_at(m, "evoformer/pair.transition");
  z = transit(m, z, &pairs);
  if (!m->b.failed) func_return(m->p, f, (value[]){x, z}, 2);
  return f;
}

// ---- the trunk -------------------------------------------------------------------------------------------
typedef struct {
  value msa, pairs;
} tables;

// Distances along the chain, those beyond REACH as one: a row of a table for each pair.
static value chain_distance(fam *m, value table) {
  const i64 r = m->seq;
  value far =
      build2(&m->b, OP_sub, fam_iota(m, DT_I64, 0, 1, DIMS(r, 1)), fam_iota(m, DT_I64, 1, 1, DIMS(1, r)));
  far = build2(&m->b, OP_max, far, fam_full(m, DT_I64, -REACH));
  far = build2(&m->b, OP_min, far, fam_full(m, DT_I64, REACH));
  return fam_embed(m, table, build2(&m->b, OP_add, far, fam_full(m, DT_I64, REACH)));
}

typedef struct {
  value msa, msa_b, target, target_b, left, left_b, right, right_b, distance;
} embedding;

static embedding embedding_declare(fam *m) {
  const i64 d = m->v.hidden, p = m->v.pair;
  embedding w = {.msa = fam_w(m, "embed.msa", DIMS(MSA_FEATURES, d)),
                 .msa_b = fam_w(m, "embed.msa.bias", DIMS(d))};
  w.target = fam_w(m, "embed.target", DIMS(RESIDUES, d)), w.target_b = fam_w(m, "embed.target.bias", DIMS(d));
  w.left = fam_w(m, "embed.left", DIMS(RESIDUES, p)), w.left_b = fam_w(m, "embed.left.bias", DIMS(p));
  w.right = fam_w(m, "embed.right", DIMS(RESIDUES, p)), w.right_b = fam_w(m, "embed.right.bias", DIMS(p));
  w.distance = fam_w(m, "embed.distance", DIMS(2 * REACH + 1, p));
  return w;
}

static tables embed(fam *m, value msa, value target, const embedding *w) {
  const i64 n = m->batch, r = m->seq, d = m->v.hidden, p = m->v.pair;
  value t = fam_reshape(m, fam_linear(m, target, w->target, w->target_b), DIMS(n, 1, r, d));
  value i = fam_reshape(m, fam_linear(m, target, w->left, w->left_b), DIMS(n, r, 1, p));
  value j = fam_reshape(m, fam_linear(m, target, w->right, w->right_b), DIMS(n, 1, r, p));
  value z = build2(&m->b, OP_add, build2(&m->b, OP_add, i, j), chain_distance(m, w->distance));
  return (tables){build2(&m->b, OP_add, fam_linear(m, msa, w->msa, w->msa_b), t), z};
}

// The target's own sequence, which is the first row, and all pairs, normalised and added to what went in. What made
// them gets no gradient.
static tables recycle(fam *m, tables in, tables out, const value *norm) {
  attr first[] = {attr_v(A_starts, (const i64[]){0}, 1), attr_v(A_ends, (const i64[]){1}, 1),
                  attr_v(A_axes, (const i64[]){1}, 1)};
  value x = build(&m->b, OP_slice, &out.msa, 1, first, COUNT_OF(first));
  x = fam_layernorm(m, build1(&m->b, OP_stop_gradient, x), norm[0], norm[1], eps);
  x = fam_op(m, OP_pad, x, attr_v(A_pads, (const i64[]){0, 0, 0, 0, 0, m->v.msa - 1, 0, 0}, 8));
  value z = fam_layernorm(m, build1(&m->b, OP_stop_gradient, out.pairs), norm[2], norm[3], eps);
  return (tables){build2(&m->b, OP_add, in.msa, x), build2(&m->b, OP_add, in.pairs, z)};
}

static bool row_fits(fam *m) {
  const front_row *v = &m->v;
  if (v->pair % v->head_dim) {
    diag(m->p->c, E_DIVIDE, m->b.where, "pair=%lld channels are no whole heads of %lld", (long long)v->pair,
         (long long)v->head_dim);
    diag_hint(m->p->c, "%s:pair=%lld", v->name, (long long)(ceil_div(v->pair, v->head_dim) * v->head_dim));
  } else if (v->layers * v->recycle > 10000) {
    diag(m->p->c, E_LIMIT, m->b.where,
         "recycle=%lld passes through layers=%lld; at most 10000 calls are possible", (long long)v->recycle,
         (long long)v->layers);
    diag_hint(m->p->c, "%s:recycle=%lld", v->name, (long long)MAX(10000 / v->layers, 1));
  } else {
    return true;
  }
  m->b.failed = true;
  return false;
}

void fam_evoformer(fam *m) {
  const i64 n = m->batch, s = m->v.msa, r = m->seq, d = m->v.hidden, p = m->v.pair;
  if (!row_fits(m)) return;
  func f = block(m);
  m->p->main = fam_func(m, "main");
  value msa = fam_x(m, "msa", ROLE_INPUT, m->t, DIMS(n, s, r, MSA_FEATURES));
  value target = fam_x(m, "target", ROLE_INPUT, m->t, DIMS(n, r, RESIDUES));
  value want = m->o->loss ? fam_x(m, "labels", ROLE_LABEL, DT_I64, DIMS(n, r, r)) : 0;
  const embedding e = embedding_declare(m);
  value *w = fam_layer_weights(m, f, "h"), norm[4] = {0};
  if (m->v.recycle > 1) {
    norm[0] = fam_w(m, "recycle.msa.ln.g", DIMS(d)), norm[1] = fam_w(m, "recycle.msa.ln.b", DIMS(d));
    norm[2] = fam_w(m, "recycle.pair.ln.g", DIMS(p)), norm[3] = fam_w(m, "recycle.pair.ln.b", DIMS(p));
  }
  value hw = fam_w(m, "head", DIMS(p, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "embedding");
  const tables in = embed(m, msa, target, &e);
  tables x = in;
  for (i64 pass = 0; pass < m->v.recycle; pass++) {
    fam_at(m, "recycle");
    if (pass) x = recycle(m, in, x, norm);
    fam_at(m, "evoformer");
    for (i64 i = 0; i < m->v.layers; i++) {
      value y = fam_call(m, f, (value[]){x.msa, x.pairs}, 2, w[i]);
      x = (tables){y, y ? y + 1 : 0};
    }
  }
  fam_at(m, "head"); // a distance is the same from both ends
  value y = fam_linear(m, x.pairs, hw, hb);
  y = build2(&m->b, OP_add, y, fam_transpose(m, y, DIMS(0, 2, 1, 3)));
  fam_return(m, want ? fam_xent(m, y, want) : y);
}
