// family_image.c - built-in image models: ViT, ResNet, VGG and Inception, channels before pixels.
//
// Idea: blocks of equal shape are one function. Batch normalisation uses its running statistics in training
// too: statistics of the batch tie all samples together, which is a choice for the user's own model, not for
// a default.
#include "front/family.h"

value fam_classes(fam *m) { return m->o->loss ? fam_x(m, "labels", ROLE_LABEL, DT_I64, DIMS(m->batch)) : 0; }

void fam_classify(fam *m, value logits, value labels) {
  fam_return(m, labels ? fam_xent(m, logits, labels) : logits);
}

typedef struct {
  i64 h, w, stride, pad_h, pad_w;
} window;

static window square(i64 n, i64 stride, i64 pad) { return (window){n, n, stride, pad, pad}; }

static value conv(fam *m, value x, value w, value bias, window k) {
  attr a[] = {attr_v(A_strides, (const i64[]){k.stride, k.stride}, 2),
              attr_v(A_pads, (const i64[]){k.pad_h, k.pad_w, k.pad_h, k.pad_w}, 4)};
  value y = build(&m->b, OP_conv, (value[]){x, w}, 2, a, 2);
  if (!bias || !y) return y;
  i64 n = val_type(m->p, func_get(m->p, m->b.f), bias)->s.dim[0];
  return build2(&m->b, OP_add, y, fam_reshape(m, bias, DIMS(n, 1, 1)));
}

value fam_patches(fam *m, value image, value w, value bias, i64 n) {
  return conv(m, image, w, bias, square(n, n, 0));
}

static value pool(fam *m, opcode op, value x, window k) {
  attr a[] = {attr_v(A_window, (const i64[]){k.h, k.w}, 2),
              attr_v(A_strides, (const i64[]){k.stride, k.stride}, 2),
              attr_v(A_pads, (const i64[]){k.pad_h, k.pad_w, k.pad_h, k.pad_w}, 4), attr_i(A_include_pad, 1)};
  return build(&m->b, op, &x, 1, a, op == OP_avgpool ? 4 : 3);
}

// ---- ViT: patches of 16 x 16, a class token, encoder layers --------------------------------------------
void fam_vit(fam *m) {
  i64 n = m->batch, d = m->v.hidden, side = m->seq / 16, s = side * side + 1;
  if (m->seq % 16) {
    diag(m->p->c, E_DIVIDE, m->b.where, "an image of %lld pixels a side has no whole patches of 16",
         (long long)m->seq);
    diag_hint(m->p->c, "--seq %lld", (long long)(m->seq / 16 * 16 + 16));
    m->b.failed = true;
    return;
  }
  func layer = fam_layer(m, "layer", s, false);
  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = fam_classes(m);
  value pw = fam_w(m, "patch", DIMS(d, 3, 16, 16)), pb = fam_w(m, "patch.bias", DIMS(d));
  value token = fam_w(m, "class", DIMS(1, 1, d)), pos = fam_w(m, "position", DIMS(1, s, d));
  value *w = NEWN(m->p->a, value, m->v.layers);
  for (i64 i = 0; i < m->v.layers; i++) w[i] = fam_weights(m, layer, arena_printf(m->p->a, "h.%d", (int)i));
  value g = fam_w(m, "ln.g", DIMS(d)), b = fam_w(m, "ln.b", DIMS(d));
  value hw = fam_w(m, "head", DIMS(d, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "embedding");
  x = fam_reshape(m, fam_patches(m, x, pw, pb, 16), DIMS(n, d, s - 1));
  x = fam_transpose(m, x, DIMS(0, 2, 1));
  attr whole = attr_v(A_shape, (const i64[]){n, 1, d}, 3), axis = attr_i(A_axis, 1);
  x = build(&m->b, OP_concat, (value[]){fam_op(m, OP_expand, token, whole), x}, 2, &axis, 1);
  x = build2(&m->b, OP_add, x, pos);
  fam_at(m, "layer");
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, w[i]);
  fam_at(m, "head");
  attr first[] = {attr_v(A_starts, (const i64[]){0}, 1), attr_v(A_ends, (const i64[]){1}, 1),
                  attr_v(A_axes, (const i64[]){1}, 1)};
  x = build(&m->b, OP_slice, &x, 1, first, 3);
  x = fam_layernorm(m, fam_reshape(m, x, DIMS(n, d)), g, b, 1e-6);
  fam_classify(m, fam_linear(m, x, hw, hb), want);
}

// ---- convolution and batch normalisation ---------------------------------------------------------------
typedef struct {
  value w, g, b, mean, var;
  window k;
} conv_bn;

static conv_bn conv_bn_declare(fam *m, const char *name, i64 from, i64 to, window k) {
  ctx *c = m->p->c;
  conv_bn u = {.k = k, .w = fam_w(m, name, DIMS(to, from, k.h, k.w))};
  u.g = fam_w(m, sym_str(c, sym_fmt(c, "%s.g", name)), DIMS(to));
  u.b = fam_w(m, sym_str(c, sym_fmt(c, "%s.b", name)), DIMS(to));
  u.mean = fam_stat(m, sym_str(c, sym_fmt(c, "%s.mean", name)), to, false);
  u.var = fam_stat(m, sym_str(c, sym_fmt(c, "%s.var", name)), to, true);
  return u;
}

static value conv_bn_apply(fam *m, value x, conv_bn u, double eps) {
  attr a = attr_f(A_eps, eps);
  x = conv(m, x, u.w, 0, u.k);
  return build(&m->b, OP_batchnorm, (value[]){x, u.g, u.b, u.mean, u.var}, 5, &a, 1);
}

static value conv_bn_relu(fam *m, value x, conv_bn u, double eps) {
  return build1(&m->b, OP_relu, conv_bn_apply(m, x, u, eps));
}

static value classify(fam *m, value x, value w, value bias) {
  attr mean[] = {attr_v(A_axes, (const i64[]){2, 3}, 2), attr_i(A_keepdims, 0)};
  return fam_linear(m, build(&m->b, OP_reduce_mean, &x, 1, mean, 2), w, bias);
}

// ---- ResNet --------------------------------------------------------------------------------------------
static const double resnet_eps = 1e-5;

// x + 1x1, 3x3, 1x1; the shortcut has a product of its own where the extents change.
static func bottleneck(fam *m, const char *name, i64 side, i64 from, i64 width, i64 stride) {
  i64 to = 4 * width;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, from, side, side));
  conv_bn a = conv_bn_declare(m, "conv1", from, width, square(1, 1, 0)),
          b = conv_bn_declare(m, "conv2", width, width, square(3, stride, 1));
  conv_bn c = conv_bn_declare(m, "conv3", width, to, square(1, 1, 0)), s = {0};
  bool project = from != to || stride != 1;
  if (project) s = conv_bn_declare(m, "shortcut", from, to, square(1, stride, 0));
  fam_at(m, name);
  value y = conv_bn_relu(m, x, a, resnet_eps);
  y = conv_bn_relu(m, y, b, resnet_eps);
  y = conv_bn_apply(m, y, c, resnet_eps);
  if (project) x = conv_bn_apply(m, x, s, resnet_eps);
  fam_return(m, build1(&m->b, OP_relu, build2(&m->b, OP_add, y, x)));
  return f;
}

void fam_resnet(fam *m) {
  static const struct {
    i64 layers;
    i64 blocks[4];
  } depths[] = {{50, {3, 4, 6, 3}}, {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}};
  u32 v = 0;
  while (v < COUNT_OF(depths) && depths[v].layers != m->v.layers) v++;
  if (v == COUNT_OF(depths)) {
    diag(m->p->c, E_MODEL, m->b.where, "no ResNet with bottlenecks has %lld layers", (long long)m->v.layers);
    diag_hint(m->p->c, "layers=50, layers=101 or layers=152");
    m->b.failed = true;
    return;
  }
  i64 n = m->batch, side = (m->seq + 1) / 2, base = m->v.hidden, from = base;
  side = (side + 1) / 2;
  func stage[4][2]; // the first block of a stage, and its others
  char name[64];
  for (u32 k = 0; k < 4; k++) {
    i64 width = base << k, stride = k ? 2 : 1;
    snprintf(name, sizeof name, "stage%u.first", k + 1);
    stage[k][0] = bottleneck(m, name, side, from, width, stride);
    from = 4 * width, side = (side + stride - 1) / stride;
    snprintf(name, sizeof name, "stage%u", k + 1);
    stage[k][1] = bottleneck(m, name, side, from, width, 1);
  }

  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = fam_classes(m);
  conv_bn stem = conv_bn_declare(m, "stem", 3, base, square(7, 2, 3));
  value w[4][64];
  for (u32 k = 0; k < 4; k++)
    for (i64 i = 0; i < depths[v].blocks[k]; i++) {
      snprintf(name, sizeof name, "stage%u.%d", k + 1, (int)i);
      w[k][i] = fam_weights(m, stage[k][i > 0], name);
    }
  value hw = fam_w(m, "head", DIMS(from, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "stem");
  x = pool(m, OP_maxpool, conv_bn_relu(m, x, stem, resnet_eps), square(3, 2, 1));
  for (u32 k = 0; k < 4; k++) {
    snprintf(name, sizeof name, "stage%u", k + 1);
    fam_at(m, name);
    for (i64 i = 0; i < depths[v].blocks[k]; i++) x = fam_call(m, stage[k][i > 0], &x, 1, w[k][i]);
  }
  fam_at(m, "head");
  fam_classify(m, classify(m, x, hw, hb), want);
}

// ---- VGG -----------------------------------------------------------------------------------------------
static func conv_relu(fam *m, const char *name, i64 side, i64 from, i64 to) {
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, from, side, side));
  value w = fam_w(m, "conv", DIMS(to, from, 3, 3)), b = fam_w(m, "conv.bias", DIMS(to));
  fam_at(m, name);
  fam_return(m, build1(&m->b, OP_relu, conv(m, x, w, b, square(3, 1, 1))));
  return f;
}

void fam_vgg(fam *m) {
  i64 n = m->batch, side = m->seq, from = 3, per = m->v.layers == 16 ? 3 : 4;
  if (m->v.layers != 16 && m->v.layers != 19) {
    diag(m->p->c, E_MODEL, m->b.where, "no VGG has %lld layers", (long long)m->v.layers);
    diag_hint(m->p->c, "layers=16 or layers=19");
    m->b.failed = true;
    return;
  }
  func stage[5][2];
  char name[64];
  for (u32 k = 0; k < 5; k++, side /= 2) {
    i64 to = m->v.hidden << MIN(k, 3);
    snprintf(name, sizeof name, "stage%u.first", k + 1);
    stage[k][0] = conv_relu(m, name, side, from, to);
    snprintf(name, sizeof name, "stage%u", k + 1);
    stage[k][1] = conv_relu(m, name, side, to, to);
    from = to;
  }
  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = fam_classes(m), w[5][4];
  for (u32 k = 0; k < 5; k++)
    for (i64 i = 0; i < (k < 2 ? 2 : per); i++) {
      snprintf(name, sizeof name, "stage%u.%d", k + 1, (int)i);
      w[k][i] = fam_weights(m, stage[k][i > 0], name);
    }
  i64 flat = from * side * side, f = m->v.ffn;
  value w1 = fam_w(m, "fc1", DIMS(flat, f)), b1 = fam_w(m, "fc1.bias", DIMS(f));
  value w2 = fam_w(m, "fc2", DIMS(f, f)), b2 = fam_w(m, "fc2.bias", DIMS(f));
  value w3 = fam_w(m, "head", DIMS(f, m->v.vocab)), b3 = fam_w(m, "head.bias", DIMS(m->v.vocab));
  for (u32 k = 0; k < 5; k++) {
    snprintf(name, sizeof name, "stage%u", k + 1);
    fam_at(m, name);
    for (i64 i = 0; i < (k < 2 ? 2 : per); i++) x = fam_call(m, stage[k][i > 0], &x, 1, w[k][i]);
    x = pool(m, OP_maxpool, x, square(2, 2, 0));
  }
  fam_at(m, "head");
  x = build1(&m->b, OP_relu, fam_linear(m, fam_reshape(m, x, DIMS(n, flat)), w1, b1));
  x = build1(&m->b, OP_relu, fam_linear(m, x, w2, b2));
  fam_classify(m, fam_linear(m, x, w3, b3), want);
}

// ---- Inception v3 --------------------------------------------------------------------------------------
// A block is a list of steps, a step convolution, batch normalisation and relu, or a pool, over the block's
// input (back 0) or an earlier step; the block's result is those with `out`, one after the other in channels.
// Steps of stride 1 keep the pixels of a side, those of stride 2 take no padding. The auxiliary head, which
// only training has, is left out.
typedef struct {
  const char *name; // NULL: a pool, of stride 1 the mean, of stride 2 the largest
  u8 back, h, w, stride;
  i64 to; // channels; 0: the extent that the block gives
  bool out;
} step;

static const step inception5[] = {
    {"branch1x1", 0, 1, 1, 1, 64, true},
    {"branch5x5_1", 0, 1, 1, 1, 48, false},
    {"branch5x5_2", 1, 5, 5, 1, 64, true},
    {"branch3x3dbl_1", 0, 1, 1, 1, 64, false},
    {"branch3x3dbl_2", 1, 3, 3, 1, 96, false},
    {"branch3x3dbl_3", 1, 3, 3, 1, 96, true},
    {NULL, 0, 3, 3, 1, 0, false},
    {"branch_pool", 1, 1, 1, 1, 0, true},
};
static const step inception6a[] = {
    {"branch3x3", 0, 3, 3, 2, 384, true},
    {"branch3x3dbl_1", 0, 1, 1, 1, 64, false},
    {"branch3x3dbl_2", 1, 3, 3, 1, 96, false},
    {"branch3x3dbl_3", 1, 3, 3, 2, 96, true},
    {NULL, 0, 3, 3, 2, 0, true},
};
static const step inception6[] = {
    {"branch1x1", 0, 1, 1, 1, 192, true},      {"branch7x7_1", 0, 1, 1, 1, 0, false},
    {"branch7x7_2", 1, 1, 7, 1, 0, false},     {"branch7x7_3", 1, 7, 1, 1, 192, true},
    {"branch7x7dbl_1", 0, 1, 1, 1, 0, false},  {"branch7x7dbl_2", 1, 7, 1, 1, 0, false},
    {"branch7x7dbl_3", 1, 1, 7, 1, 0, false},  {"branch7x7dbl_4", 1, 7, 1, 1, 0, false},
    {"branch7x7dbl_5", 1, 1, 7, 1, 192, true}, {NULL, 0, 3, 3, 1, 0, false},
    {"branch_pool", 1, 1, 1, 1, 192, true},
};
static const step inception7a[] = {
    {"branch3x3_1", 0, 1, 1, 1, 192, false},
    {"branch3x3_2", 1, 3, 3, 2, 320, true},
    {"branch7x7x3_1", 0, 1, 1, 1, 192, false},
    {"branch7x7x3_2", 1, 1, 7, 1, 192, false},
    {"branch7x7x3_3", 1, 7, 1, 1, 192, false},
    {"branch7x7x3_4", 1, 3, 3, 2, 192, true},
    {NULL, 0, 3, 3, 2, 0, true},
};
static const step inception7[] = {
    {"branch1x1", 0, 1, 1, 1, 320, true},
    {"branch3x3_1", 0, 1, 1, 1, 384, false},
    {"branch3x3_2a", 1, 1, 3, 1, 384, true},
    {"branch3x3_2b", 2, 3, 1, 1, 384, true},
    {"branch3x3dbl_1", 0, 1, 1, 1, 448, false},
    {"branch3x3dbl_2", 1, 3, 3, 1, 384, false},
    {"branch3x3dbl_3a", 1, 1, 3, 1, 384, true},
    {"branch3x3dbl_3b", 2, 3, 1, 1, 384, true},
    {NULL, 0, 3, 3, 1, 0, false},
    {"branch_pool", 1, 1, 1, 1, 192, true},
};

#define STEPS(t) t, COUNT_OF(t)
static const struct {
  const char *name;
  const step *s;
  u32 n;
  i64 own; // channels of steps that name none
} inception[] = {
    {"mixed5b", STEPS(inception5), 32},  {"mixed5c", STEPS(inception5), 64},
    {"mixed5d", STEPS(inception5), 64},  {"mixed6a", STEPS(inception6a), 0},
    {"mixed6b", STEPS(inception6), 128}, {"mixed6c", STEPS(inception6), 160},
    {"mixed6d", STEPS(inception6), 160}, {"mixed6e", STEPS(inception6), 192},
    {"mixed7a", STEPS(inception7a), 0},  {"mixed7b", STEPS(inception7), 0},
    {"mixed7c", STEPS(inception7), 0},
};
#undef STEPS

static const double inception_eps = 1e-3;
enum { STEPS_MAX = 16 };

// The tables are of a first stage of 32 channels; another width has proportionally as many everywhere.
static i64 scaled(const fam *m, i64 channels) { return MAX(channels * m->v.hidden / 32, 1); }

static i64 halved(i64 side) { return (side - 3) / 2 + 1; } // a window of 3, stride 2, no padding

static window step_window(const step *s) {
  bool same = s->stride == 1;
  return (window){s->h, s->w, s->stride, same ? s->h / 2 : 0, same ? s->w / 2 : 0};
}

// Extents of what block b takes become those of its result.
static func inception_block(fam *m, u32 b, i64 *side, i64 *channels) {
  const step *s = inception[b].s;
  u32 n = inception[b].n, nout = 0;
  i64 to[STEPS_MAX], total = 0;
  conv_bn u[STEPS_MAX];
  value y[STEPS_MAX], out[STEPS_MAX];
  assert(n <= STEPS_MAX);
  func f = fam_func(m, inception[b].name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, *channels, *side, *side));
  for (u32 i = 0; i < n; i++) {
    i64 from = s[i].back ? to[i - s[i].back] : *channels;
    to[i] = s[i].name ? scaled(m, s[i].to ? s[i].to : inception[b].own) : from;
    if (s[i].name) u[i] = conv_bn_declare(m, s[i].name, from, to[i], step_window(&s[i]));
    if (s[i].out) total += to[i];
  }
  fam_at(m, inception[b].name);
  for (u32 i = 0; i < n; i++) {
    value of = s[i].back ? y[i - s[i].back] : x;
    if (s[i].name)
      y[i] = conv_bn_relu(m, of, u[i], inception_eps);
    else
      y[i] = pool(m, s[i].stride == 1 ? OP_avgpool : OP_maxpool, of, step_window(&s[i]));
    if (s[i].out) out[nout++] = y[i];
  }
  attr axis = attr_i(A_axis, 1);
  fam_return(m, build(&m->b, OP_concat, out, nout, &axis, 1));
  *channels = total;
  if (s[n - 1].stride == 2) *side = halved(*side); // a block's last step has the block's stride
  return f;
}

void fam_inception(fam *m) {
  enum { BLOCKS = COUNT_OF(inception), UNITS = 5 };
  const struct {
    const char *name;
    i64 to;
    window k;
  } stem[UNITS] = {{"conv1a", 32, square(3, 2, 0)},
                   {"conv2a", 32, square(3, 1, 0)},
                   {"conv2b", 64, square(3, 1, 1)},
                   {"conv3b", 80, square(1, 1, 0)},
                   {"conv4a", 192, square(3, 1, 0)}};
  if (m->seq < 75) {
    diag(m->p->c, E_SHAPE, m->b.where,
         "an image of %lld pixels a side is reduced to nothing, 75 are the least", (long long)m->seq);
    diag_hint(m->p->c, "--seq 75");
    m->b.failed = true;
    return;
  }
  i64 n = m->batch, channels = scaled(m, 192), taken = 0, side = halved(halved(halved(m->seq) - 2) - 2);
  func block[BLOCKS];
  for (u32 b = 0; b < BLOCKS; b++) {
    bool same = b && inception[b].s == inception[b - 1].s && inception[b].own == inception[b - 1].own;
    i64 from = channels;
    block[b] = same && from == taken ? block[b - 1] : inception_block(m, b, &side, &channels);
    taken = from;
  }

  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = fam_classes(m);
  conv_bn u[UNITS];
  for (u32 i = 0; i < UNITS; i++)
    u[i] =
        conv_bn_declare(m, stem[i].name, i ? scaled(m, stem[i - 1].to) : 3, scaled(m, stem[i].to), stem[i].k);
  value w[BLOCKS];
  for (u32 b = 0; b < BLOCKS; b++) w[b] = fam_weights(m, block[b], inception[b].name);
  value hw = fam_w(m, "head", DIMS(channels, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "stem");
  for (u32 i = 0; i < UNITS; i++) {
    x = conv_bn_relu(m, x, u[i], inception_eps);
    if (i == 2 || i == 4) x = pool(m, OP_maxpool, x, square(3, 2, 0));
  }
  for (u32 b = 0; b < BLOCKS; b++) {
    fam_at(m, inception[b].name);
    x = fam_call(m, block[b], &x, 1, w[b]);
  }
  fam_at(m, "head");
  fam_classify(m, classify(m, x, hw, hb), want);
}
