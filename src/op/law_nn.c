// law_nn.c - laws of neural-network layers: windows, normalisation, losses and mixture of experts.
//
// Idea: a window ties input and output positions by arithmetic, so space stays whole (a window of 1 does not
// slide and leaves it free). Groups of a convolution are a factor of its channels. A normalisation is whole
// where its statistics are taken. Experts are addressed by value, as the rows of an embedding are.
#include "op/internal.h"

enum { TIED = LAW_WHOLE | LAW_FIXED, SOURCE = LAW_WHOLE | LAW_FIXED | LAW_DERIVED };

static law_dim pair(law_dim major, law_dim minor) {
  law_dim_push(&major, &minor);
  return major;
}

// ---- windows -----------------------------------------------------------------------------------------

typedef struct {
  i64 stride[DIMS_MAX], dilation[DIMS_MAX], before[DIMS_MAX], after[DIMS_MAX];
  bool ceil;
} sliding;

static bool sliding_list(law_job *j, attr_key k, u32 n, i64 least, i64 absent, i64 *out) {
  const i64 *v = NULL;
  u32 have = attr_ints(j->at, k, &v);
  if (have && have != n)
    return law_fail(j, E_ATTR, "%s has %u entries, %u are needed", attr_name(k), have, n);
  for (u32 i = 0; i < n; i++) {
    out[i] = have ? v[i] : absent;
    if (out[i] < least || out[i] > INT32_MAX)
      return law_fail(j, E_ATTR, "%s: %lld", attr_name(k), (long long)out[i]);
  }
  return true;
}

static bool sliding_of(law_job *j, u32 n, sliding *w) {
  i64 pads[2 * DIMS_MAX];
  *w = (sliding){.ceil = attr_int(j->at, A_ceil, 0)};
  if (!sliding_list(j, A_strides, n, 1, 1, w->stride) || !sliding_list(j, A_dilations, n, 1, 1, w->dilation))
    return false;
  if (!sliding_list(j, A_pads, 2 * n, INT32_MIN, 0, pads)) return false;
  memcpy(w->before, pads, n * sizeof *pads);
  memcpy(w->after, pads + n, n * sizeof *pads);
  return true;
}

// Positions of a window of k elements over x elements. With `ceil` the last one may hang over the end, but
// begins inside x or the padding before it.
static bool positions(law_job *j, const sliding *w, u32 i, i64 x, i64 k, i64 *out) {
  if (k < 1)
    return law_fail(j, E_SHAPE, "the window has extent %lld in spatial dimension %u", (long long)k, i);
  if (k > INT32_MAX) return law_fail(j, E_LIMIT, "the window has extent %lld", (long long)k);
  assert(w->stride[i] > 0);
  i64 room = x + w->before[i] + w->after[i] - (w->dilation[i] * (k - 1) + 1);
  if (room < 0)
    return law_fail(
        j, E_SHAPE,
        "spatial dimension %u: a window over %lld elements does not fit %lld padded by %lld and %lld", i,
        (long long)(w->dilation[i] * (k - 1) + 1), (long long)x, (long long)w->before[i],
        (long long)w->after[i]);
  *out = room / w->stride[i] + 1;
  if (w->ceil && room % w->stride[i] && *out * w->stride[i] < x + w->before[i]) ++*out;
  return true;
}

// ---- convolution -------------------------------------------------------------------------------------

// Letters of y[n,(g f),Y] = sum over c, W of x[n,(g c),X] w[(g f),c,W], from the extents of x and w.
static bool conv_terms(law_job *j, u32 nd, const i64 *x, const i64 *w, law_term *tx, law_term *tw,
                       law_term *ty) {
  sliding slide;
  i64 g = attr_int(j->at, A_group, 1), filters = w[0], channels = x[1];
  if (!sliding_of(j, nd - 2, &slide)) return false;
  if (g < 1 || channels % g || filters % g)
    return law_fail(j, E_SHAPE, "%lld channels and %lld filters do not divide into %lld groups",
                    (long long)channels, (long long)filters, (long long)g);
  if (channels / g != w[1])
    return law_fail(j, E_SHAPE, "%lld channels in %lld groups need filters of %lld channels, they have %lld",
                    (long long)channels, (long long)g, (long long)(channels / g), (long long)w[1]);
  law_dim n = law_letter_new(j, x[0], 0, 'n'), gr = law_letter_new(j, g, LAW_FIXED, 'g');
  law_dim f = law_letter_new(j, filters / g, 0, 'f'), c = law_letter_new(j, w[1], 0, 'c');
  law_term_push(tx, n), law_term_push(tx, pair(gr, c));
  law_term_push(tw, pair(gr, f)), law_term_push(tw, c);
  law_term_push(ty, n), law_term_push(ty, pair(gr, f));
  double padded = (double)x[0] * (double)x[1];
  for (u32 i = 0; i < nd - 2; i++) {
    i64 out = 0;
    if (!positions(j, &slide, i, x[i + 2], w[i + 2], &out)) return false;
    padded *= (double)(x[i + 2] + slide.before[i] + slide.after[i]);
    bool still = w[i + 2] == 1 && slide.stride[i] == 1 && slide.before[i] == 0 && slide.after[i] == 0;
    law_dim in = law_letter_new(j, x[i + 2], still ? 0 : SOURCE, 0);
    law_term_push(tx, in);
    law_term_push(tw, law_letter_new(j, w[i + 2], TIED, 0));
    law_term_push(ty, still ? in : law_letter_new(j, out, TIED, 0));
  }
  return padded < 0x1p60 || law_fail(j, E_LIMIT, "the padded operand has %.3g elements", padded);
}

bool law_conv(law_job *j) {
  law_term *x = &j->l->opd[0], *w = &j->l->opd[1], *y = &j->l->res[0];
  u32 nd = j->opd[0].nd;
  if (!law_rank(j, 0, 3, DIMS_MAX) || !law_rank(j, 1, nd, nd)) return false;
  if (!conv_terms(j, nd, j->opd[0].dim, j->opd[1].dim, x, w, y)) return false;
  if (j->nopd < 3) return true;
  for (u32 i = 0; i < w->dim[1].n; i++)
    j->letter[w->dim[1].f[i]].flags |= LAW_WHOLE; // or every part would add the bias
  law_term_push(&j->l->opd[2], y->dim[1]);
  return law_matches(j, &j->l->opd[2], 2);
}

// The extents of the result of a gradient: its `shape`.
static bool conv_shape(law_job *j, i64 *dim) {
  u32 nd = j->opd[0].nd, n;
  if (!law_rank(j, 0, 3, DIMS_MAX) || !law_rank(j, 1, nd, nd) || !law_extents(j, A_shape, dim, &n))
    return false;
  return n == nd || law_fail(j, E_ATTR, "shape has %u extents, operands have %u dimensions", n, nd);
}

bool law_conv_dx(law_job *j) {
  law_term *dy = &j->l->opd[0], *w = &j->l->opd[1], *x = &j->l->res[0];
  i64 dim[DIMS_MAX];
  return conv_shape(j, dim) && conv_terms(j, j->opd[0].nd, dim, j->opd[1].dim, x, w, dy) &&
         law_matches(j, dy, 0);
}

bool law_conv_dw(law_job *j) {
  law_term *dy = &j->l->opd[0], *x = &j->l->opd[1], *w = &j->l->res[0];
  i64 dim[DIMS_MAX];
  return conv_shape(j, dim) && conv_terms(j, j->opd[0].nd, j->opd[1].dim, dim, x, w, dy) &&
         law_matches(j, dy, 0);
}

// ---- pooling -----------------------------------------------------------------------------------------

static bool pool_terms(law_job *j, const shape *x, law_term *tx, law_term *ty) {
  sliding slide;
  i64 window[DIMS_MAX] = {0};
  u32 n = x->nd - 2;
  double taps = 1;
  if (!attr_get(j->at, A_window)->n) return law_fail(j, E_ATTR, "window is empty, %u extents are needed", n);
  if (!sliding_of(j, n, &slide) || !sliding_list(j, A_window, n, 1, 1, window)) return false;
  for (u32 d = 0; d < 2; d++) {
    law_term_push(tx, law_letter_new(j, x->dim[d], 0, "nc"[d]));
    law_term_push(ty, tx->dim[d]);
  }
  for (u32 i = 0; i < n; i++) {
    i64 out = 0, seen = slide.dilation[i] * (window[i] - 1) + 1, pad = MAX(slide.before[i], slide.after[i]);
    if (pad >= seen)
      return law_fail(j, E_ATTR,
                      "spatial dimension %u: a window over %lld elements lies in the padding of %lld", i,
                      (long long)seen, (long long)pad);
    if (!positions(j, &slide, i, x->dim[i + 2], window[i], &out)) return false;
    law_term_push(tx, law_letter_new(j, x->dim[i + 2], SOURCE, 0));
    law_term_push(ty, law_letter_new(j, out, TIED, 0));
    law_letter_new(j, window[i], TIED, 0); // iterated, but no tensor's dimension
    taps *= (double)window[i];
  }
  return taps < 0x1p40 || law_fail(j, E_LIMIT, "the window has %.3g elements", taps);
}

bool law_pool(law_job *j) {
  return law_rank(j, 0, 3, DIMS_MAX) && pool_terms(j, &j->opd[0], &j->l->opd[0], &j->l->res[0]);
}

bool law_pool_dx(law_job *j) {
  law_term *dy = &j->l->opd[0], *x = &j->l->opd[1];
  if (!law_rank(j, 1, 3, DIMS_MAX) || !pool_terms(j, &j->opd[1], x, dy)) return false;
  j->l->res[0] = *x;
  return law_matches(j, dy, 0);
}

// ---- normalisation -----------------------------------------------------------------------------------

// x: operand that is normalised over the dimensions from `axis` on; those are whole.
static bool norm_terms(law_job *j, u32 x, u32 *axis) {
  if (!law_rank(j, x, 1, DIMS_MAX) || !law_axis(j, A_axis, -1, j->opd[x].nd, axis)) return false;
  for (u32 d = 0; d < j->opd[x].nd; d++)
    law_term_push(&j->l->opd[x], law_letter_new(j, j->opd[x].dim[d], d >= *axis ? LAW_WHOLE : 0, 0));
  return true;
}

static void norm_weight(const law_term *x, u32 axis, law_term *out) {
  for (u32 d = axis; d < x->nd; d++) law_term_push(out, x->dim[d]);
}

bool law_norm(law_job *j) {
  u32 axis;
  if (!norm_terms(j, 0, &axis)) return false;
  for (u32 k = 1; k < j->nopd; k++) {
    norm_weight(&j->l->opd[0], axis, &j->l->opd[k]);
    if (!law_matches(j, &j->l->opd[k], k)) return false;
  }
  j->l->res[0] = j->l->opd[0];
  return true;
}

bool law_norm_dx(law_job *j) {
  u32 axis;
  if (!law_same_dims(j, 0, 1) || !norm_terms(j, 0, &axis)) return false;
  j->l->opd[1] = j->l->res[0] = j->l->opd[0];
  norm_weight(&j->l->opd[0], axis, &j->l->opd[2]);
  return law_matches(j, &j->l->opd[2], 2);
}

bool law_norm_dg(law_job *j) {
  u32 axis;
  if (!law_same_dims(j, 0, 1) || !norm_terms(j, 0, &axis)) return false;
  j->l->opd[1] = j->l->opd[0];
  norm_weight(&j->l->opd[0], axis, &j->l->res[0]);
  return true;
}

// Operand x as batch, c, X with the given flags, operands from `first` on as c.
static bool channel_terms(law_job *j, u32 x, law_dim batch, u32 flags, u32 first) {
  law_term *t = &j->l->opd[x];
  law_term_push(t, batch);
  for (u32 d = 1; d < j->opd[x].nd; d++)
    law_term_push(t, law_letter_new(j, j->opd[x].dim[d], d == 1 ? 0 : flags, d == 1 ? 'c' : 0));
  for (u32 k = first; k < j->nopd; k++) {
    law_term_push(&j->l->opd[k], t->dim[1]);
    if (!law_matches(j, &j->l->opd[k], k)) return false;
  }
  j->l->res[0] = *t;
  for (u32 r = 1; r < j->nres; r++) law_term_push(&j->l->res[r], t->dim[1]);
  return true;
}

bool law_channel(law_job *j) {
  if (!law_rank(j, 0, 2, DIMS_MAX)) return false;
  return channel_terms(j, 0, law_letter_new(j, j->opd[0].dim[0], 0, 0), 0, 1);
}

// The batch is (g n): bn_groups groups of n samples. Statistics are taken over n and space.
static bool channel_groups(law_job *j, u32 x, u32 first) {
  i64 samples = j->opd[x].dim[0], groups = attr_int(j->at, A_bn_groups, 1);
  if (!law_rank(j, x, 2, DIMS_MAX)) return false;
  if (groups < 1) return law_fail(j, E_ATTR, "bn_groups is %lld", (long long)groups);
  if (samples % groups)
    return law_fail(j, E_SHAPE, "a batch of %lld does not divide into %lld groups", (long long)samples,
                    (long long)groups);
  law_dim g = law_letter_new(j, groups, 0, 'g'),
          n = law_letter_new(j, samples / groups, LAW_WHOLE, groups > 1 ? 'n' : 0);
  return channel_terms(j, x, pair(g, n), LAW_WHOLE, first);
}

bool law_bn_train(law_job *j) { return channel_groups(j, 0, 1); }

bool law_bn_dx(law_job *j) {
  if (!law_same_dims(j, 0, 1) || !channel_groups(j, 0, 2)) return false;
  j->l->opd[1] = j->l->opd[0];
  return true;
}

// Operand x as n c X: channels are whole if they are normalised in groups.
static bool groupnorm_terms(law_job *j, u32 x) {
  const shape *s = &j->opd[x];
  i64 groups = attr_int(j->at, A_groups, 0);
  if (!law_rank(j, x, 3, DIMS_MAX)) return false;
  if (groups < 0 || (groups && s->dim[1] % groups))
    return law_fail(j, E_SHAPE, "%lld channels do not divide into %lld groups", (long long)s->dim[1],
                    (long long)groups);
  law_term *t = &j->l->opd[x];
  law_term_push(t, law_letter_new(j, s->dim[0], 0, 'n'));
  law_term_push(t, law_letter_new(j, s->dim[1], groups ? TIED : 0, 'c'));
  for (u32 d = 2; d < s->nd; d++) law_term_push(t, law_letter_new(j, s->dim[d], LAW_WHOLE, 0));
  return true;
}

static bool groupnorm_weights(law_job *j, u32 first) {
  for (u32 k = first; k < j->nopd; k++) {
    law_term_push(&j->l->opd[k], j->l->opd[0].dim[1]);
    if (!law_matches(j, &j->l->opd[k], k)) return false;
  }
  return true;
}

bool law_groupnorm(law_job *j) {
  if (!groupnorm_terms(j, 0) || !groupnorm_weights(j, 1)) return false;
  j->l->res[0] = j->l->opd[0];
  return true;
}

bool law_groupnorm_dx(law_job *j) {
  if (!law_same_dims(j, 0, 1) || !groupnorm_terms(j, 0) || !groupnorm_weights(j, 2)) return false;
  j->l->opd[1] = j->l->res[0] = j->l->opd[0];
  return true;
}

bool law_groupnorm_dg(law_job *j) {
  if (!law_same_dims(j, 0, 1) || !groupnorm_terms(j, 0)) return false;
  j->l->opd[1] = j->l->opd[0];
  law_term_push(&j->l->res[0], j->l->opd[0].dim[1]);
  return true;
}

bool law_lrn(law_job *j) {
  const shape *x = &j->opd[0];
  if (!law_rank(j, 0, 2, DIMS_MAX)) return false;
  if (attr_int(j->at, A_size, 1) < 1)
    return law_fail(j, E_ATTR, "size is %lld", (long long)attr_int(j->at, A_size, 1));
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(&j->l->opd[0], law_letter_new(j, x->dim[d], d == 1 ? LAW_WHOLE : 0, 0));
  j->l->res[0] = j->l->opd[0];
  return true;
}

// ---- losses ------------------------------------------------------------------------------------------

// Terms of logits x with the classes (flags of their letter: `classes`) in dimension `axis` and of labels.
// Positions are whole if the loss divides by a sum over all labels that the labels themselves decide
// (`weighted`, or `ignore`).
static bool loss_terms(law_job *j, u32 x, u32 label, u32 axis, u32 classes, bool weighted) {
  const shape *s = &j->opd[x];
  bool mean = !law_is(j, A_reduce, "sum") && !law_is(j, A_reduce, "none");
  u32 flags = mean && (weighted || attr_get(j->at, A_ignore)) ? LAW_WHOLE : 0;
  for (u32 d = 0; d < s->nd; d++) {
    law_dim l = law_letter_new(j, s->dim[d], d == axis ? classes : flags, 0);
    law_term_push(&j->l->opd[x], l);
    if (d != axis) law_term_push(&j->l->opd[label], l);
  }
  return law_matches(j, &j->l->opd[label], label);
}

bool law_xent(law_job *j) {
  if (!law_rank(j, 0, 1, DIMS_MAX) || !loss_terms(j, 0, 1, j->opd[0].nd - 1, LAW_WHOLE, false)) return false;
  if (law_is(j, A_reduce, "none")) j->l->res[0] = j->l->opd[1];
  return true;
}

bool law_xent_dx(law_job *j) {
  if (!law_rank(j, 1, 1, DIMS_MAX)) return false;
  if (!loss_terms(j, 1, 2, j->opd[1].nd - 1, j->nopd > 3 ? 0 : LAW_WHOLE, false)) return false;
  if (j->nopd > 3) {
    j->l->opd[3] = j->l->opd[2];
    if (!law_matches(j, &j->l->opd[3], 3)) return false;
  }
  if (law_is(j, A_reduce, "none")) j->l->opd[0] = j->l->opd[2];
  j->l->res[0] = j->l->opd[1];
  return law_matches(j, &j->l->opd[0], 0);
}

bool law_pick(law_job *j) {
  if (!law_rank(j, 0, 1, DIMS_MAX) || !loss_terms(j, 0, 1, j->opd[0].nd - 1, LAW_ADDRESSED, false))
    return false;
  j->l->res[0] = j->l->opd[1];
  return true;
}

bool law_nll(law_job *j) {
  if (!law_rank(j, 0, 2, DIMS_MAX) || !loss_terms(j, 0, 1, 1, LAW_WHOLE, j->nopd == 3)) return false;
  if (law_is(j, A_reduce, "none")) j->l->res[0] = j->l->opd[1];
  if (j->nopd < 3) return true;
  law_term_push(&j->l->opd[2], j->l->opd[0].dim[1]);
  return law_matches(j, &j->l->opd[2], 2);
}

// ---- mixture of experts ------------------------------------------------------------------------------

static bool positive(law_job *j, attr_key k, i64 *out) {
  *out = attr_int(j->at, k, 0);
  return *out > 0 || law_fail(j, E_ATTR, "%s is %lld", attr_name(k), (long long)*out);
}

bool law_moe_gate(law_job *j) {
  const shape *x = &j->opd[0];
  i64 k, capacity;
  if (!law_rank(j, 0, 3, 3) || !positive(j, A_k, &k) || !positive(j, A_capacity, &capacity)) return false;
  if (k > x->dim[2])
    return law_fail(j, E_ATTR, "k is %lld, there are %lld experts", (long long)k, (long long)x->dim[2]);
  if (capacity > INT32_MAX)
    return law_fail(j, E_LIMIT, "capacity is %lld, the limit is %d", (long long)capacity, INT32_MAX);
  law_term *t = &j->l->opd[0];
  law_term_push(t, law_letter_new(j, x->dim[0], 0, 'g'));
  law_term_push(t,
                law_letter_new(j, x->dim[1], LAW_WHOLE, 't')); // a token's place depends on those before it
  law_term_push(t, law_letter_new(j, x->dim[2], TIED, 'e'));
  j->l->res[0] = *t;
  j->l->res[0].dim[2] = law_letter_new(j, k, SOURCE, 'k');
  j->l->res[1] = j->l->res[0];
  return true;
}

// Tokens [g,t,d], slots [g,t,k] and expert slots [g,e,c,d]: e and c are addressed by the slots.
static bool moe_terms(law_job *j, const i64 *tokens, i64 k, const i64 *experts, law_term *x, law_term *slots,
                      law_term *y) {
  law_dim g = law_letter_new(j, tokens[0], 0, 'g'), t = law_letter_new(j, tokens[1], 0, 't');
  law_dim d = law_letter_new(j, tokens[2], 0, 'd'), each = law_letter_new(j, k, TIED, 'k');
  law_term_push(x, g), law_term_push(x, t), law_term_push(x, d);
  law_term_push(slots, g), law_term_push(slots, t), law_term_push(slots, each);
  law_term_push(y, g);
  law_term_push(y, law_letter_new(j, experts[0], LAW_ADDRESSED | LAW_FIXED, 'e'));
  law_term_push(y, law_letter_new(j, experts[1], LAW_ADDRESSED | LAW_WHOLE | LAW_FIXED, 'c'));
  law_term_push(y, d);
  return true;
}

bool law_moe_dispatch(law_job *j) {
  i64 experts[2];
  law_term *x = &j->l->opd[0], *slots = &j->l->opd[1];
  if (!law_rank(j, 0, 3, 3) || !law_rank(j, 1, 3, 3)) return false;
  if (!positive(j, A_experts, &experts[0]) || !positive(j, A_capacity, &experts[1])) return false;
  return moe_terms(j, j->opd[0].dim, j->opd[1].dim[2], experts, x, slots, &j->l->res[0]) &&
         law_matches(j, slots, 1);
}

bool law_moe_combine(law_job *j) {
  law_term *y = &j->l->opd[0], *slots = &j->l->opd[1], *x = &j->l->res[0];
  if (!law_rank(j, 0, 4, 4) || !law_rank(j, 1, 3, 3) || !law_same_dims(j, 1, 2)) return false;
  const i64 *e = j->opd[0].dim, *s = j->opd[1].dim, tokens[3] = {s[0], s[1], e[3]};
  moe_terms(j, tokens, s[2], e + 1, x, slots, y);
  j->l->opd[2] = *slots;
  return law_matches(j, y, 0);
}

bool law_moe_combine_dw(law_job *j) {
  law_term *x = &j->l->opd[0], *slots = &j->l->opd[1], *y = &j->l->opd[2];
  if (!law_rank(j, 0, 3, 3) || !law_rank(j, 1, 3, 3) || !law_rank(j, 2, 4, 4)) return false;
  moe_terms(j, j->opd[0].dim, j->opd[1].dim[2], j->opd[2].dim + 1, x, slots, y);
  j->l->res[0] = *slots;
  return law_matches(j, slots, 1) && law_matches(j, y, 2);
}
