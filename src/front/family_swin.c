// family_swin.c - built-in Swin transformers: attention inside windows of an image, every second block with the
// windows moved by half of their side, a quarter of the positions from stage to stage.
//
// Idea: an image stays [batch, side, side, channels] between blocks. Inside a block windows are a dimension of their
// own behind the batch, so that what splits the batch, the heads or the feed-forward needs nothing here.
#include "front/family.h"
#include <math.h>

enum { STAGES = 4, PATCH = 4 };
static const double eps = 1e-5;

// One stage: as many positions a side, windows of that many (an image that fits into one has one).
typedef struct {
  i64 side, hidden, heads, ffn, window, blocks;
} stage;

// x[b,side,side,d] as windows [b, side/w * side/w, w * w, d].
static value windows_of(fam *m, value x, i64 n, i64 side, i64 w, i64 d) {
  const i64 k = side / w;
  x = fam_transpose(m, fam_reshape(m, x, DIMS(n, k, w, k, w, d)), DIMS(0, 1, 3, 2, 4, 5));
  return fam_reshape(m, x, DIMS(n, k * k, w * w, d));
}

static value image_of(fam *m, value x, i64 n, i64 side, i64 w, i64 d) {
  const i64 k = side / w;
  x = fam_transpose(m, fam_reshape(m, x, DIMS(n, k, k, w, w, d)), DIMS(0, 1, 3, 2, 4, 5));
  return fam_reshape(m, x, DIMS(n, side, side, d));
}

// Positions of an axis moved towards 0 by `by`; the first ones come to the end.
static value roll(fam *m, value x, i64 axis, i64 side, i64 by) {
  attr parts[] = {attr_i(A_axis, axis), attr_v(A_sizes, (const i64[]){by, side - by}, 2)},
       at = attr_i(A_axis, axis);
  value a = build_n(&m->b, OP_split, &x, 1, parts, 2, 2);
  return a ? build(&m->b, OP_concat, (value[]){a + 1, a}, 2, &at, 1) : 0;
}

static value roll_image(fam *m, value x, i64 side, i64 by) {
  return roll(m, roll(m, x, 1, side, by), 2, side, by);
}

// What moving has brought together from two ends of an image does not see each other: [windows,1,w*w,w*w].
static value moved_mask(fam *m, i64 side, i64 w, i64 by) {
  value y = fam_iota(m, DT_I32, 1, 1, DIMS(1, side, 1, 1)),
        x = fam_iota(m, DT_I32, 2, 1, DIMS(1, 1, side, 1));
  value end = fam_full(m, DT_I32, (double)(side - by));
  y = fam_cast(m, build2(&m->b, OP_ge, y, end), DT_I32),
  x = fam_cast(m, build2(&m->b, OP_ge, x, end), DT_I32);
  value part = build2(&m->b, OP_add, fam_op(m, OP_scale, y, attr_f(A_alpha, 2)), x);
  const i64 t = w * w, k = side / w * (side / w);
  part = windows_of(m, part, 1, side, w, 1);
  return build2(&m->b, OP_eq, fam_reshape(m, part, DIMS(k, 1, t, 1)), fam_reshape(m, part, DIMS(k, 1, 1, t)));
}

// Scores' bias [heads, w*w, w*w] from a table [(2w-1)^2, heads]: a row for every distance in y and x.
static value window_bias(fam *m, value table, i64 w) {
  const i64 t = w * w, side = 2 * w - 1;
  value y = fam_reshape(m, fam_iota(m, DT_I64, 0, 1, DIMS(w, w)), DIMS(t));
  value x = fam_reshape(m, fam_iota(m, DT_I64, 1, 1, DIMS(w, w)), DIMS(t));
  value at = build2(&m->b, OP_add, fam_op(m, OP_scale, y, attr_f(A_alpha, (double)side)), x);
  value row = build2(&m->b, OP_sub, fam_reshape(m, at, DIMS(t, 1)), fam_reshape(m, at, DIMS(1, t)));
  row = build2(&m->b, OP_add, row, fam_full(m, DT_I64, (double)((w - 1) * side + w - 1)));
  return fam_transpose(m, fam_embed(m, table, row), DIMS(2, 0, 1));
}

// x + attention inside windows, x + feed-forward.
static func block(fam *m, const char *name, const stage *s, bool moved) {
  const i64 n = m->batch, side = s->side, d = s->hidden, h = s->heads, e = d / h, w = s->window;
  const i64 k = side / w * (side / w), t = w * w, by = moved ? w / 2 : 0;
  func f = fam_func(m, name);
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, side, side, d));
  value g1 = fam_w(m, "ln1.g", DIMS(d)), b1 = fam_w(m, "ln1.b", DIMS(d));
  value qkv = fam_w(m, "attn.qkv", DIMS(d, 3 * d)), qkv_b = fam_w(m, "attn.qkv.bias", DIMS(3 * d));
  value table = fam_w(m, "attn.position", DIMS((2 * w - 1) * (2 * w - 1), h));
  value out = fam_w(m, "attn.out", DIMS(d, d)), out_b = fam_w(m, "attn.out.bias", DIMS(d));
  value g2 = fam_w(m, "ln2.g", DIMS(d)), b2 = fam_w(m, "ln2.b", DIMS(d));
  value up = fam_w(m, "mlp.up", DIMS(d, s->ffn)), up_b = fam_w(m, "mlp.up.bias", DIMS(s->ffn));
  value down = fam_w(m, "mlp.down", DIMS(s->ffn, d)), down_b = fam_w(m, "mlp.down.bias", DIMS(d));
  fam_at(m, arena_printf(m->p->a, "%s/attention", name));
  value y = fam_layernorm(m, x, g1, b1, eps);
  if (by) y = roll_image(m, y, side, by);
  y = fam_linear(m, windows_of(m, y, n, side, w, d), qkv, qkv_b);
  attr parts[] = {attr_i(A_axis, 3), attr_v(A_sizes, (const i64[]){d, d, d}, 3)};
  value q = build_n(&m->b, OP_split, &y, 1, parts, 2, 3), head[3] = {0};
  for (u32 i = 0; i < COUNT_OF(head) && q; i++) head[i] = fam_reshape(m, q + i, DIMS(n, k, t, h, e));
  head[0] = fam_op(m, OP_scale, head[0], attr_f(A_alpha, 1 / sqrt((double)e)));
  value scores = fam_einsum(m, "bwshd,bwthd->bwhst", head[0], head[1]);
  scores = build2(&m->b, OP_add, scores, window_bias(m, table, w));
  if (by) {
    value seen = moved_mask(m, side, w, by), hidden = fam_full(m, m->t, -1e4);
    scores = build(&m->b, OP_where, (value[]){seen, scores, hidden}, 3, NULL, 0);
  }
  y = fam_einsum(m, "bwhst,bwthd->bwshd", build1(&m->b, OP_softmax, scores), head[2]);
  y = fam_linear(m, fam_reshape(m, y, DIMS(n, k, t, d)), out, out_b);
  y = image_of(m, y, n, side, w, d);
  if (by) y = roll_image(m, y, side, side - by);
  x = build2(&m->b, OP_add, x, y);
  fam_at(m, arena_printf(m->p->a, "%s/mlp", name));
  y = fam_linear(m, fam_layernorm(m, x, g2, b2, eps), up, up_b);
  fam_return(m, build2(&m->b, OP_add, x, fam_linear(m, fam_gelu(m, y, false), down, down_b)));
  return f;
}

// Four neighbours' channels as one vector, column by column: [b,side,side,d] to [b,side/2,side/2,4d].
static value neighbours(fam *m, value x, i64 n, i64 side, i64 d) {
  const i64 half = side / 2;
  x = fam_transpose(m, fam_reshape(m, x, DIMS(n, half, 2, half, 2, d)), DIMS(0, 1, 3, 4, 2, 5));
  return fam_reshape(m, x, DIMS(n, half, half, 4 * d));
}

static bool refuse(fam *m, diag_id id, const char *why, const char *hint) {
  diag(m->p->c, id, m->b.where, "%s", why);
  diag_hint(m->p->c, "%s", hint);
  m->b.failed = true;
  return false;
}

// Stages of 2, 2, all other layers and 2 blocks, channels and heads doubled from one to the next.
static bool stages_of(fam *m, stage *s) {
  const front_row *r = &m->v;
  arena *a = m->p->a;
  const i64 others = r->layers - 6, whole = PATCH << (STAGES - 1), unit = whole * r->window;
  if (others < 1)
    return refuse(m, E_MODEL,
                  arena_printf(a, "layers=%lld, but the stages of a Swin have 2, 2, layers - 6 and 2 of them",
                               (long long)r->layers),
                  arena_printf(a, "%s:layers=7", r->name));
  for (u32 k = 0; k < STAGES; k++) {
    const i64 side = m->seq / (PATCH << k), w = MIN(r->window, MAX(side, 1));
    if (m->seq % whole || side % w)
      return refuse(m, E_DIVIDE,
                    m->seq % whole
                        ? arena_printf(a,
                                       "an image of %lld pixels a side cannot be halved %d times "
                                       "in patches of %d",
                                       (long long)m->seq, STAGES - 1, PATCH)
                        : arena_printf(a, "stage %u has %lld positions a side, no whole windows of %lld",
                                       k + 1, (long long)side, (long long)w),
                    arena_printf(a, "--seq %lld", (long long)(ceil_div(m->seq, unit) * unit)));
    s[k] = (stage){side, r->hidden << k, r->heads << k, r->ffn << k, w, k == 2 ? others : 2};
  }
  return true;
}

void fam_swin(fam *m) {
  const i64 n = m->batch, d = m->v.hidden, last = d << (STAGES - 1);
  stage s[STAGES];
  func blocks[STAGES][2];
  value *w[STAGES], norm[STAGES][2], merge[STAGES];
  if (!stages_of(m, s)) return;
  for (u32 k = 0; k < STAGES; k++)
    for (u32 moved = 0; moved < 2; moved++)
      blocks[k][moved] =
          moved && s[k].side == s[k].window
              ? blocks[k][0]
              : block(m, arena_printf(m->p->a, moved ? "stage%u.moved" : "stage%u", k + 1), &s[k], moved);
  m->p->main = fam_func(m, "main");
  value x = fam_x(m, "image", ROLE_INPUT, m->t, DIMS(n, 3, m->seq, m->seq)), want = fam_classes(m);
  value pw = fam_w(m, "patch", DIMS(d, 3, PATCH, PATCH)), pb = fam_w(m, "patch.bias", DIMS(d));
  value pg = fam_w(m, "patch.ln.g", DIMS(d)), pc = fam_w(m, "patch.ln.b", DIMS(d));
  for (u32 k = 0; k < STAGES; k++) {
    const i64 four = 4 * s[k].hidden;
    w[k] = NEWN(m->p->a, value, s[k].blocks);
    for (i64 i = 0; i < s[k].blocks; i++)
      w[k][i] = fam_weights(m, blocks[k][i % 2], arena_printf(m->p->a, "stage%u.%d", k + 1, (int)i));
    if (k == STAGES - 1) break;
    norm[k][0] = fam_w(m, arena_printf(m->p->a, "merge%u.ln.g", k + 1), DIMS(four));
    norm[k][1] = fam_w(m, arena_printf(m->p->a, "merge%u.ln.b", k + 1), DIMS(four));
    merge[k] = fam_w(m, arena_printf(m->p->a, "merge%u", k + 1), DIMS(four, four / 2));
  }
  value g = fam_w(m, "ln.g", DIMS(last)), b = fam_w(m, "ln.b", DIMS(last));
  value hw = fam_w(m, "head", DIMS(last, m->v.vocab)), hb = fam_w(m, "head.bias", DIMS(m->v.vocab));
  fam_at(m, "embedding");
  x = fam_transpose(m, fam_patches(m, x, pw, pb, PATCH), DIMS(0, 2, 3, 1));
  x = fam_layernorm(m, x, pg, pc, eps);
  for (u32 k = 0; k < STAGES; k++) {
    fam_at(m, arena_printf(m->p->a, "stage%u", k + 1));
    for (i64 i = 0; i < s[k].blocks; i++) x = fam_call(m, blocks[k][i % 2], &x, 1, w[k][i]);
    if (k == STAGES - 1) break;
    x = fam_layernorm(m, neighbours(m, x, n, s[k].side, s[k].hidden), norm[k][0], norm[k][1], eps);
    x = fam_linear(m, x, merge[k], 0);
  }
  fam_at(m, "head");
  attr mean[] = {attr_v(A_axes, (const i64[]){1, 2}, 2), attr_i(A_keepdims, 0)};
  x = build(&m->b, OP_reduce_mean, (value[]){fam_layernorm(m, x, g, b, eps)}, 1, mean, 2);
  fam_classify(m, fam_linear(m, x, hw, hb), want);
}
