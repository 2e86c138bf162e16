// family_image.c - built-in image models: ViT, ResNet and VGG, channels before pixels.
//
// Idea: blocks of equal shape are one function. Batch normalisation uses its running statistics in training
// too: statistics of the batch tie all samples together, which is a choice for the user's own model, not for
// a default.
#include "front/family.h"

static value labels(fam *m) {
  return m->o->loss ? fam_x(m, "labels", ROLE_LABEL, DT_I64, DIMS(m->batch)) : 0;
}

static void finish(fam *m, value logits, value want) {
  fam_return(m, want ? fam_xent(m, logits, want) : logits);
}

static value conv(fam *m, value x, value w, value bias, i64 stride, i64 pad) {
  attr a[] = {attr_v(A_strides, (const i64[]){stride, stride}, 2),
              attr_v(A_pads, (const i64[]){pad, pad, pad, pad}, 4)};
  value y = build(&m->b, OP_conv, (value[]){x, w}, 2, a, 2);
  if (!bias || !y) return y;
  i64 n = val_type(m->p, func_get(m->p, m->b.f), bias)->s.dim[0];
  return build2(&m->b, OP_add, y, fam_reshape(m, bias, DIMS(n, 1, 1)));
}

static value maxpool(fam *m, value x, i64 window, i64 stride, i64 pad) {
  attr a[] = {attr_v(A_window, (const i64[]){window, window}, 2),
              attr_v(A_strides, (const i64[]){stride, stride}, 2),
              attr_v(A_pads, (const i64[]){pad, pad, pad, pad}, 4)};
  return build(&m->b, OP_maxpool, &x, 1, a, 3);
}

// ---- ViT: patches of 16 x 16, a class token, encoder layers --------------------------------------------
void fam_vit(fam *m) {
  i64 n = m->batch, d = m->v.hidden, side = m->seq / 16, s = side * side + 1;
  if (m->seq % 16) {
    diag(m->p->c, E_DIVIDE, m->b.where, "an image of %d pixels a side has no whole patches of 16",
         (int)m->seq);
    diag_hint(m->p->c, "--seq %d", (int)(m->seq / 16 * 16 + 16));
    m->b.failed = true;
    return;
  }
  func layer = fam_layer(m, "layer", s, false);
  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = labels(m);
  value pw = fam_w(m, "patch", DIMS(d, 3, 16, 16)), pb = fam_w(m, "patch.bias", DIMS(d));
  value token = fam_w(m, "class", DIMS(1, 1, d)), pos = fam_w(m, "position", DIMS(1, s, d));
  value *w = NEWN(m->p->a, value, m->v.layers);
  for (i64 i = 0; i < m->v.layers; i++) w[i] = fam_weights(m, layer, arena_printf(m->p->a, "h.%d", (int)i));
  value g = fam_w(m, "ln.g", DIMS(d)), b = fam_w(m, "ln.b", DIMS(d));
  value hw = fam_w(m, "head", DIMS(d, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "embedding");
  x = fam_reshape(m, conv(m, x, pw, pb, 16, 0), DIMS(n, d, s - 1));
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
  finish(m, fam_linear(m, x, hw, hb), want);
}

// ---- ResNet --------------------------------------------------------------------------------------------
typedef struct {
  value w, g, b, mean, var;
  i64 stride, pad;
} conv_bn;

static conv_bn conv_bn_declare(fam *m, const char *name, i64 from, i64 to, i64 window, i64 stride) {
  ctx *c = m->p->c;
  conv_bn k = {.stride = stride, .pad = window / 2, .w = fam_w(m, name, DIMS(to, from, window, window))};
  k.g = fam_w(m, sym_str(c, sym_fmt(c, "%s.g", name)), DIMS(to));
  k.b = fam_w(m, sym_str(c, sym_fmt(c, "%s.b", name)), DIMS(to));
  k.mean = fam_stat(m, sym_str(c, sym_fmt(c, "%s.mean", name)), to, false);
  k.var = fam_stat(m, sym_str(c, sym_fmt(c, "%s.var", name)), to, true);
  return k;
}

static value conv_bn_apply(fam *m, value x, conv_bn k) {
  attr eps = attr_f(A_eps, 1e-5);
  x = conv(m, x, k.w, 0, k.stride, k.pad);
  return build(&m->b, OP_batchnorm, (value[]){x, k.g, k.b, k.mean, k.var}, 5, &eps, 1);
}

// x + 1x1, 3x3, 1x1; the shortcut has a product of its own where the extents change.
static func bottleneck(fam *m, const char *name, i64 side, i64 from, i64 width, i64 stride) {
  i64 to = 4 * width;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, from, side, side));
  conv_bn a = conv_bn_declare(m, "conv1", from, width, 1, 1),
          b = conv_bn_declare(m, "conv2", width, width, 3, stride);
  conv_bn c = conv_bn_declare(m, "conv3", width, to, 1, 1), s = {0};
  bool project = from != to || stride != 1;
  if (project) s = conv_bn_declare(m, "shortcut", from, to, 1, stride);
  fam_at(m, name);
  value y = build1(&m->b, OP_relu, conv_bn_apply(m, x, a));
  y = build1(&m->b, OP_relu, conv_bn_apply(m, y, b));
  y = conv_bn_apply(m, y, c);
  fam_return(m, build1(&m->b, OP_relu, build2(&m->b, OP_add, y, project ? conv_bn_apply(m, x, s) : x)));
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
    diag(m->p->c, E_MODEL, m->b.where, "no ResNet with bottlenecks has %d layers", (int)m->v.layers);
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
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = labels(m);
  conv_bn stem = conv_bn_declare(m, "stem", 3, base, 7, 2);
  value w[4][64];
  for (u32 k = 0; k < 4; k++)
    for (i64 i = 0; i < depths[v].blocks[k]; i++) {
      snprintf(name, sizeof name, "stage%u.%d", k + 1, (int)i);
      w[k][i] = fam_weights(m, stage[k][i > 0], name);
    }
  value hw = fam_w(m, "head", DIMS(from, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "stem");
  x = maxpool(m, build1(&m->b, OP_relu, conv_bn_apply(m, x, stem)), 3, 2, 1);
  for (u32 k = 0; k < 4; k++) {
    snprintf(name, sizeof name, "stage%u", k + 1);
    fam_at(m, name);
    for (i64 i = 0; i < depths[v].blocks[k]; i++) x = fam_call(m, stage[k][i > 0], &x, 1, w[k][i]);
  }
  fam_at(m, "head");
  attr mean[] = {attr_v(A_axes, (const i64[]){2, 3}, 2), attr_i(A_keepdims, 0)};
  x = build(&m->b, OP_reduce_mean, &x, 1, mean, 2);
  finish(m, fam_linear(m, x, hw, hb), want);
}

// ---- VGG -----------------------------------------------------------------------------------------------
static func conv_relu(fam *m, const char *name, i64 side, i64 from, i64 to) {
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(m->batch, from, side, side));
  value w = fam_w(m, "conv", DIMS(to, from, 3, 3)), b = fam_w(m, "conv.bias", DIMS(to));
  fam_at(m, name);
  fam_return(m, build1(&m->b, OP_relu, conv(m, x, w, b, 1, 1)));
  return f;
}

void fam_vgg(fam *m) {
  i64 n = m->batch, side = m->seq, from = 3, per = m->v.layers == 16 ? 3 : 4;
  if (m->v.layers != 16 && m->v.layers != 19) {
    diag(m->p->c, E_MODEL, m->b.where, "no VGG has %d layers", (int)m->v.layers);
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
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = labels(m), w[5][4];
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
    x = maxpool(m, x, 2, 2, 0);
  }
  fam_at(m, "head");
  x = build1(&m->b, OP_relu, fam_linear(m, fam_reshape(m, x, DIMS(n, flat)), w1, b1));
  x = build1(&m->b, OP_relu, fam_linear(m, x, w2, b2));
  finish(m, fam_linear(m, x, w3, b3), want);
}
