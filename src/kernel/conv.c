// conv.c - what slides a window over the spatial dimensions: convolution, its two gradients, pooling.
//
// Idea: once the borders are padded, convolution is a plain sum of products whose spatial address is
// stride * output + dilation * tap, so ker_contract() does all of it; the gradient for x writes overlapping
// places and therefore goes tap by tap. Pooling clips its windows instead of padding, because the borders do
// not take part.
#include "kernel/internal.h"

typedef struct {
  u32 n; // spatial dimensions
  i64 window[DIMS_MAX], stride[DIMS_MAX], dilation[DIMS_MAX], before[DIMS_MAX], after[DIMS_MAX];
} window;

static window window_of(const run *r, u32 nspatial, const i64 *extent) {
  window w = {.n = nspatial};
  const i64 *s = NULL, *d = NULL, *p = NULL;
  u32 ns = attr_ints(r->at, A_strides, &s), nd = attr_ints(r->at, A_dilations, &d),
      np = attr_ints(r->at, A_pads, &p);
  for (u32 i = 0; i < nspatial; i++) {
    w.window[i] = extent[i];
    w.stride[i] = ns ? s[i] : 1;
    w.dilation[i] = nd ? d[i] : 1;
    w.before[i] = np ? p[i] : 0;
    w.after[i] = np ? p[nspatial + i] : 0;
  }
  return w;
}

// Extents of x[n,c,spatial] with its borders: at least what the windows reach.
static void padded_dims(const ker_tensor *x, const window *w, const i64 *out, i64 *dim) {
  dim[0] = x->dim[0];
  dim[1] = x->dim[1];
  for (u32 i = 0; i < w->n; i++) {
    i64 reach = (out[i] - 1) * w->stride[i] + (w->window[i] - 1) * w->dilation[i] + 1;
    dim[2 + i] = MAX(x->dim[2 + i] + w->before[i] + w->after[i], reach);
  }
}

// Moves x into the padded frame, or out of it. Tables: place in the frame, -1 outside (negative pads).
static void frame_copy(run *r, const ker_tensor *x, const window *w, const i64 *dim, void *frame,
                       size_t bytes, bool in) {
  ker_box b = {.nd = x->nd};
  for (u32 d = 0; d < x->nd; d++) {
    i64 *at = d < 2 ? NULL : NEWN(r->a, i64, x->dim[d]);
    for (i64 k = 0; d >= 2 && k < x->dim[d]; k++) {
      i64 p = k + w->before[d - 2];
      at[k] = p >= 0 && p < dim[d] ? p : -1;
    }
    b.n[d] = x->dim[d];
    (in ? b.dat : b.sat)[d] = at;
    (in ? b.ddim : b.sdim)[d] = dim[d];
    (in ? b.sdim : b.ddim)[d] = x->dim[d];
  }
  ker_pick(&b, bytes, in ? frame : x->data, in ? x->data : frame, r->a);
}

static bool any_border(const ker_tensor *x, const i64 *dim) {
  return memcmp(dim, x->dim, sizeof(i64) * x->nd) != 0;
}

static const void *pad_borders(run *r, const ker_tensor *x, const window *w, const i64 *dim) {
  if (!any_border(x, dim)) return x->data;
  size_t bytes = dtype_bytes(x->t), n = bytes;
  for (u32 d = 0; d < x->nd; d++) n *= (size_t)dim[d];
  void *frame = arena_zalloc(r->a, n);
  frame_copy(r, x, w, dim, frame, bytes, true);
  return frame;
}

// The letters of a convolution y[n,f,o] = x[n,c,p] w[f,c,k]. `role`: which of a, b, c are x, w and y.
typedef struct {
  i64 *x, *w, *y;
} place;
static place place_of(letter *l, const char *role) {
  i64 *at[3] = {&l->a, &l->b, &l->c};
  return (place){at[role[0] - 'a'], at[role[1] - 'a'], at[role[2] - 'a']};
}
static u8 mark(const char *role, const char *of) {
  u8 in = 0;
  for (; *of; of++) {
    char at = role[*of == 'x' ? 0 : *of == 'w' ? 1 : 2];
    in |= (u8)(at == 'a' ? IN_A : at == 'b' ? IN_B : IN_C);
  }
  return in;
}

static bool conv_letters(run *r, contraction *k, const char *role, const i64 *xdim, const ker_tensor *w,
                         const ker_tensor *y, const window *win, bool taps) {
  i64 xs[DIMS_MAX], ws[DIMS_MAX], ys[DIMS_MAX], cw = w->dim[1], f = w->dim[0];
  ker_strides(w->nd, xdim, xs);
  ker_strides(w->nd, w->dim, ws);
  ker_strides(w->nd, y->dim, ys);
  i64 groups = cw ? xdim[1] / cw : 1;
  if (cw && xdim[1] % cw) return ker_misfit(r, "channels", xdim[1], cw);
  if (y->dim[0] != xdim[0]) return ker_misfit(r, "batch", y->dim[0], xdim[0]);
  if (y->dim[1] != f || (groups && f % groups)) return ker_misfit(r, "filters", f, y->dim[1]);
  i64 fg = groups ? f / groups : 0;
#define LETTER(count, of, sx, sw, sy)                                                                        \
  {                                                                                                          \
    letter *l = &k->l[k->n++];                                                                               \
    *l = (letter){.n = (count), .in = mark(role, of)};                                                       \
    place p = place_of(l, role);                                                                             \
    *p.x = (sx), *p.w = (sw), *p.y = (sy);                                                                   \
  }
  LETTER(groups, "xwy", cw * xs[1], fg * ws[0], fg * ys[1])
  LETTER(xdim[0], "xy", xs[0], 0, ys[0])
  LETTER(fg, "wy", 0, ws[0], ys[1])
  LETTER(cw, "xw", xs[1], ws[1], 0)
  for (u32 i = 0; i < win->n; i++) LETTER(y->dim[2 + i], "xy", win->stride[i] * xs[2 + i], 0, ys[2 + i])
  for (u32 i = 0; i < win->n && taps; i++)
    LETTER(w->dim[2 + i], "xw", win->dilation[i] * xs[2 + i], ws[2 + i], 0)
#undef LETTER
  return true;
}

static bool add_bias(run *r, const ker_tensor *y, const ker_tensor *b) {
  i64 inner = ker_span(y, 2, y->nd), f = y->dim[1], planes = y->dim[0] * f;
  if (ker_elems(b) != f) return ker_misfit(r, "bias", ker_elems(b), f);
  u64 *wide = NEWN(r->a, u64, f);
  if (is_float(b))
    ker_load_f64((double *)wide, b->t, b->data, f);
  else
    ker_load_i64((i64 *)wide, b->t, b->data, f);
  for (i64 p = 0; p < planes; p++)
    for (i64 i = p * inner; i < (p + 1) * inner; i++)
      if (is_float(b))
        F(y)[i] += ((double *)wide)[p % f];
      else
        I(y)[i] += ((i64 *)wide)[p % f];
  return true;
}

bool ker_conv(run *r) {
  const ker_tensor *x = &r->opd[0], *w = &r->opd[1], *y = &r->res[0];
  window win = window_of(r, x->nd - 2, w->dim + 2);
  i64 dim[DIMS_MAX] = {0};
  padded_dims(x, &win, y->dim + 2, dim);
  contraction k = {.t = x->t, .to = is_float(&r->res[0]) ? DT_F64 : DT_I64, .b = w->data, .c = y->data};
  if (!conv_letters(r, &k, "abc", dim, w, y, &win, true)) return false;
  k.a = pad_borders(r, x, &win, dim);
  ker_contract(r, &k);
  return r->nopd < 3 || add_bias(r, y, &r->opd[2]);
}

bool ker_conv_dw(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dw = &r->res[0];
  window win = window_of(r, x->nd - 2, dw->dim + 2);
  i64 dim[DIMS_MAX] = {0};
  padded_dims(x, &win, dy->dim + 2, dim);
  contraction k = {.t = x->t, .to = is_float(&r->res[0]) ? DT_F64 : DT_I64, .a = dy->data, .c = dw->data};
  if (!conv_letters(r, &k, "bca", dim, dw, dy, &win, true)) return false;
  k.b = pad_borders(r, x, &win, dim);
  ker_contract(r, &k);
  return true;
}

bool ker_conv_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *w = &r->opd[1], *dx = &r->res[0];
  window win = window_of(r, w->nd - 2, w->dim + 2);
  i64 dim[DIMS_MAX] = {0}, n = 1, xs[DIMS_MAX], ws[DIMS_MAX];
  padded_dims(dx, &win, dy->dim + 2, dim);
  for (u32 d = 0; d < dx->nd; d++) n *= dim[d];
  ker_strides(dx->nd, dim, xs);
  ker_strides(w->nd, w->dim, ws);
  u64 *frame = ZNEWN(r->a, u64, n);
  contraction k = {.t = dy->t, .to = is_float(&r->res[0]) ? DT_F64 : DT_I64, .a = dy->data, .add = true};
  if (!conv_letters(r, &k, "cba", dim, w, dy, &win, false)) return false;
  walk taps; // one product for every tap: its outputs are distinct places
  ker_walk_init(&taps, win.n, w->dim + 2);
  i64 sx[DIMS_MAX];
  for (u32 i = 0; i < win.n; i++) sx[i] = xs[2 + i] * win.dilation[i];
  ker_walk_add(&taps, sx);
  ker_walk_add(&taps, ws + 2);
  EACH_RUN(&taps) {
    for (i64 i = 0; i < walk_inner(&taps); i++) {
      k.c = frame + taps.off[0] + i * step(&taps, 0);
      k.b = (const char *)w->data + (size_t)(taps.off[1] + i * step(&taps, 1)) * dtype_bytes(w->t);
      ker_contract(r, &k);
    }
  }
  memset(dx->data, 0, 8 * (size_t)ker_elems(dx)); // negative pads leave elements that no window saw
  frame_copy(r, dx, &win, dim, frame, 8, false);
  return true;
}

// ---- pooling -------------------------------------------------------------------------------------------

// The taps of every output position along one dimension: input index, -1 in the border, -2 beyond it.
static i64 *tap_table(run *r, const window *w, u32 i, i64 nin, i64 nout) {
  i64 *at = NEWN(r->a, i64, nout * w->window[i]);
  for (i64 o = 0; o < nout; o++)
    for (i64 k = 0; k < w->window[i]; k++) {
      i64 p = o * w->stride[i] - w->before[i] + k * w->dilation[i];
      at[o * w->window[i] + k] = p >= 0 && p < nin ? p : p < nin + w->after[i] ? -1 : -2;
    }
  return at;
}

typedef struct {
  u32 n;
  i64 in[DIMS_MAX], out[DIMS_MAX], window[DIMS_MAX], stride[DIMS_MAX], points, taps;
  const i64 *at[DIMS_MAX];
} pooling;

static pooling pooling_of(run *r, const ker_tensor *x, const ker_tensor *y) {
  const i64 *extent = NULL;
  attr_ints(r->at, A_window, &extent);
  window w = window_of(r, x->nd - 2, extent);
  pooling p = {.n = w.n, .points = 1, .taps = 1};
  for (u32 i = 0; i < w.n; i++) {
    p.in[i] = x->dim[2 + i];
    p.out[i] = y->dim[2 + i];
    p.window[i] = w.window[i];
    p.points *= p.out[i];
    p.taps *= p.window[i];
    p.at[i] = tap_table(r, &w, i, p.in[i], p.out[i]);
  }
  ker_strides(p.n, p.in, p.stride);
  return p;
}

// Writes the plane offsets of the taps of output point o that lie inside; counts those inside the border too.
static i64 taps_of(const pooling *p, i64 o, i64 *off, i64 *bordered) {
  i64 pos[DIMS_MAX], k[DIMS_MAX] = {0}, n = 0;
  for (u32 i = p->n; i-- > 0; o /= p->out[i]) pos[i] = o % p->out[i] * p->window[i];
  *bordered = 0;
  for (i64 t = 0; t < p->taps; t++) {
    i64 sum = 0, worst = 0;
    for (u32 i = 0; i < p->n; i++) {
      i64 at = p->at[i][pos[i] + k[i]];
      worst = MIN(worst, at);
      sum += at * p->stride[i];
    }
    if (worst == 0) off[n++] = sum;
    *bordered += worst >= -1;
    for (u32 i = p->n; i-- > 0;) {
      if (++k[i] < p->window[i]) break;
      k[i] = 0;
    }
  }
  return n;
}

static i64 largest(const double *x, const i64 *off, i64 n) {
  i64 best = off[0];
  for (i64 t = 1; t < n; t++)
    if (x[off[t]] > x[best] || x[off[t]] != x[off[t]]) best = off[t];
  return best;
}

// The index of a plane's element in the whole tensor; column-major within the plane if asked.
static i64 flat_index(const ker_tensor *x, i64 plane, i64 off, bool columns) {
  i64 n = whole_or_map(x, 0, plane / x->dim[1]), c = whole_or_map(x, 1, plane % x->dim[1]), size = 1,
      in = off;
  for (u32 d = 2; d < x->nd; d++) size *= x->dim[d];
  if (columns) {
    i64 pos[DIMS_MAX];
    for (u32 d = x->nd; d-- > 2; off /= x->dim[d]) pos[d] = off % x->dim[d];
    in = 0;
    for (u32 d = x->nd; d-- > 2;) in = in * x->dim[d] + pos[d];
  }
  return (n * x->whole[1] + c) * size + in;
}

static const double *as_f64(run *r, const ker_tensor *x) {
  if (is_float(x)) return x->data;
  double *v = NEWN(r->a, double, ker_elems(x));
  ker_load_f64(v, DT_I64, x->data, ker_elems(x));
  return v;
}

bool ker_pool(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  if (x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1]) return ker_misfit(r, "planes", x->dim[1], y->dim[1]);
  pooling p = pooling_of(r, x, y);
  bool columns = !strcmp(ker_mode(r, A_mode, ""), "column"), include = attr_int(r->at, A_include_pad, 0);
  i64 planes = x->dim[0] * x->dim[1], size = ker_span(x, 2, x->nd), *off = NEWN(r->a, i64, p.taps), bordered;
  const double *v = as_f64(r, x);
  for (i64 o = 0; o < p.points; o++) {
    i64 n = taps_of(&p, o, off, &bordered);
    for (i64 c = 0; c < planes; c++) {
      const double *in = v + c * size;
      i64 to = c * p.points + o;
      if (r->op == OP_avgpool) {
        double sum = 0;
        for (i64 t = 0; t < n; t++) sum += in[off[t]];
        F(y)[to] = sum / (double)(include ? bordered : n);
      } else if (r->op == OP_maxpool_arg)
        I(y)[to] = n ? flat_index(x, c, largest(in, off, n), columns) : -1;
      else if (is_float(y))
        F(y)[to] = n ? in[largest(in, off, n)] : -INFINITY;
      else
        I(y)[to] = n ? (i64)in[largest(in, off, n)] : 0;
    }
  }
  return true;
}

bool ker_pool_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dx = &r->res[0];
  if (x->dim[0] != dy->dim[0] || x->dim[1] != dy->dim[1])
    return ker_misfit(r, "planes", x->dim[1], dy->dim[1]);
  pooling p = pooling_of(r, x, dy);
  bool include = attr_int(r->at, A_include_pad, 0);
  i64 planes = x->dim[0] * x->dim[1], size = ker_span(x, 2, x->nd), *off = NEWN(r->a, i64, p.taps), bordered;
  memset(dx->data, 0, sizeof(double) * (size_t)ker_elems(dx));
  for (i64 o = 0; o < p.points; o++) {
    i64 n = taps_of(&p, o, off, &bordered);
    for (i64 c = 0; c < planes && n; c++) {
      double g = F(dy)[c * p.points + o];
      if (r->op == OP_maxpool_dx)
        F(dx)[c * size + largest(F(x) + c * size, off, n)] += g;
      else
        for (i64 t = 0; t < n; t++) F(dx)[c * size + off[t]] += g / (double)(include ? bordered : n);
    }
  }
  return true;
}
