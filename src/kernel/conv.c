// conv.c - what slides a window over the spatial dimensions: convolution, its two gradients, pooling.
//
// Idea: once the borders are padded and the windows written out as columns of a matrix, convolution and its gradients are
// products. How they are cut depends on extents alone, so that no result depends on the threads. Pooling clips its
// windows instead of padding, because the borders do not take part.
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

// ---- convolution -----------------------------------------------------------------------------------------
// Images are taken in turns, several where they are small. Of each the windows become columns: a matrix with a row for
// every channel and tap and a column for every place of the output.
typedef struct {
  run *r;
  window win;
  i64 dim[DIMS_MAX];                 // of x with its borders
  i64 images, groups, cw, fg;        // channels and filters of a group
  i64 taps, places, turn;            // of the window; of the output of one image; images of a turn
  i64 wdim[DIMS_MAX], out[DIMS_MAX]; // spatial extents
  const void *x, *w, *dy;            // x: with borders
  void *to;
  dtype t, result; // of elements
  bool as_it_is;   // columns are x itself
  arena **temp;    // by thread
  int inner;       // threads of the products of a part: 1 where parts are dealt to threads
} conv;

static i64 product_of(const i64 *n, u32 count) {
  i64 p = 1;
  for (u32 k = 0; k < count; k++) p *= n[k];
  return p;
}

static bool conv_of(run *r, conv *v, const ker_tensor *x, const ker_tensor *w, const ker_tensor *y) {
  enum { PLACES = 256 }; // of a turn: products with fewer columns are slow
  *v = (conv){.r = r, .win = window_of(r, w->nd - 2, w->dim + 2), .t = r->opd[0].t, .result = ker_result(r)};
  padded_dims(x, &v->win, y->dim + 2, v->dim);
  v->cw = w->dim[1], v->groups = v->cw ? x->dim[1] / v->cw : 1, v->images = x->dim[0];
  if (v->cw && x->dim[1] % v->cw) return ker_misfit(r, "channels", x->dim[1], v->cw);
  if (y->dim[0] != x->dim[0]) return ker_misfit(r, "batch", y->dim[0], x->dim[0]);
  if (y->dim[1] != w->dim[0] || (v->groups && w->dim[0] % v->groups))
    return ker_misfit(r, "filters", w->dim[0], y->dim[1]);
  v->fg = v->groups ? w->dim[0] / v->groups : 0;
  memcpy(v->wdim, w->dim + 2, sizeof(i64) * v->win.n), memcpy(v->out, y->dim + 2, sizeof(i64) * v->win.n);
  v->taps = product_of(v->wdim, v->win.n), v->places = product_of(v->out, v->win.n);
  v->turn = v->places ? MAX(MIN(PLACES / v->places, v->images), 1) : 1;
  bool steps = false;
  for (u32 i = 0; i < v->win.n; i++) steps = steps || v->win.stride[i] != 1;
  v->as_it_is = v->turn == 1 && v->taps == 1 && !steps && !any_border(x, v->dim);
  return true;
}

// The copy between columns (first) and x of `images` images from n: channels [c, end) of group g. NULL: where x begins.
static walk column_walk(const conv *v, i64 n, i64 images, i64 g, i64 c, i64 end, i64 *from) {
  const u32 k = v->win.n;
  i64 extent[WALK_DIMS], col[WALK_DIMS], x[WALK_DIMS], xs[DIMS_MAX];
  ker_strides(k + 2, v->dim, xs);
  extent[0] = end - c, x[0] = xs[1];
  extent[1 + k] = images, x[1 + k] = xs[0];
  for (u32 i = 0; i < k; i++) {
    extent[1 + i] = v->wdim[i], x[1 + i] = v->win.dilation[i] * xs[2 + i];
    extent[2 + k + i] = v->out[i], x[2 + k + i] = v->win.stride[i] * xs[2 + i];
  }
  ker_strides(2 + 2 * k, extent, col);
  walk w;
  ker_walk_init(&w, 2 + 2 * k, extent);
  ker_walk_add(&w, col);
  ker_walk_add(&w, x);
  *from = n * xs[0] + (g * v->cw + c) * xs[1];
  return w;
}

static const void *columns(const conv *v, arena *a, i64 n, i64 images, i64 g, i64 c, i64 end) {
  const size_t bytes = dtype_bytes(v->t);
  i64 from;
  walk w = column_walk(v, n, images, g, c, end, &from);
  const char *x = (const char *)v->x + (size_t)from * bytes;
  if (v->as_it_is) return x;
  void *col = arena_alloc(a, (size_t)((end - c) * v->taps * images * v->places) * bytes);
  ker_walk_copy(&w, bytes, col, x);
  return col;
}

// y as a matrix of filters and places, of several images: the copy between it (first) and y.
static walk filter_walk(const conv *v, i64 images) {
  const i64 extent[3] = {v->fg, images, v->places}, y[3] = {v->places, v->groups * v->fg * v->places, 1};
  i64 own[3];
  ker_strides(3, extent, own);
  walk w;
  ker_walk_init(&w, 3, extent);
  ker_walk_add(&w, own);
  ker_walk_add(&w, y);
  return w;
}
static i64 filter_place(const conv *v, i64 n, i64 g) { return (n * v->groups + g) * v->fg * v->places; }

static const void *gradient_of(const conv *v, arena *a, i64 n, i64 images, i64 g) {
  const size_t bytes = dtype_bytes(v->t);
  const char *dy = (const char *)v->dy + (size_t)filter_place(v, n, g) * bytes;
  if (images == 1) return dy;
  void *m = arena_alloc(a, (size_t)(v->fg * images * v->places) * bytes);
  walk w = filter_walk(v, images);
  ker_walk_copy(&w, bytes, m, dy);
  return m;
}

static run inside(const conv *v, int thread) {
  run r = *v->r;
  r.a = v->temp[thread], r.threads = v->inner;
  return r;
}

// A part: a turn of images of one group.
static void part_of(const conv *v, u32 i, i64 *n, i64 *images, i64 *g) {
  *n = i / v->groups * v->turn, *g = i % v->groups;
  *images = MIN(v->turn, v->images - *n);
}

static void deal_turns(conv *v, void (*job)(void *arg, u32 i, int thread)) {
  assert(v->turn > 0);
  const i64 parts = (v->images + v->turn - 1) / v->turn * v->groups;
  const int threads = v->r->threads > 1 && parts >= v->r->threads ? v->r->threads : 1;
  v->temp = ker_scratches(v->r, threads), v->inner = threads > 1 ? 1 : v->r->threads;
  assert(parts <= INT32_MAX);
  parallel_for(threads, (u32)parts, job, v);
  ker_scratches_free(v->temp, threads);
}

static void forward_part(void *arg, u32 i, int thread) { // y = w columns
  const conv *v = arg;
  run r = inside(v, thread);
  i64 n, images, g;
  part_of(v, i, &n, &images, &g);
  const arena_mark_t mark = arena_mark(r.a);
  const i64 p = images * v->places, deep = v->cw * v->taps, size = dtype_bytes(v->result);
  char *y = (char *)v->to + filter_place(v, n, g) * size;
  void *c = images > 1 ? arena_alloc(r.a, (size_t)(v->fg * p * size)) : y;
  ker_contract(&r, &(contraction){.t = v->t,
                                  .to = v->result,
                                  .a = (const char *)v->w + g * v->fg * deep * (i64)dtype_bytes(v->t),
                                  .b = columns(v, r.a, n, images, g, 0, v->cw),
                                  .c = c,
                                  .n = 3,
                                  .l = {{v->fg, deep, 0, p, IN_A | IN_C},
                                        {p, 0, 1, 1, IN_B | IN_C},
                                        {deep, 1, p, 0, IN_A | IN_B}}});
  if (images > 1) {
    walk own = filter_walk(v, images), back;
    ker_walk_init(&back, own.nd, own.n);
    ker_walk_add(&back, own.stride[1]), ker_walk_add(&back, own.stride[0]);
    ker_walk_copy(&back, (size_t)size, y, c);
  }
  arena_release(r.a, mark);
}

static void add_bias(run *r, const ker_tensor *y, const ker_tensor *b) {
  const i64 inner = ker_span(y, 2, y->nd), f = y->dim[1];
  u64 *wide = NEWN(r->a, u64, f);
  if (is_float(b))
    ker_load_f64((double *)wide, b->t, b->data, f);
  else
    ker_load_i64((i64 *)wide, b->t, b->data, f);
  for (i64 p = 0; p < y->dim[0] * f; p++)
    if (is_float(b))
      r->v->affine(ker_at(r, y, p * inner), 1, ker_at(r, y, p * inner), 0, ((double *)wide)[p % f], inner);
    else
      for (i64 i = p * inner; i < (p + 1) * inner; i++) I(y)[i] += ((i64 *)wide)[p % f];
}

bool ker_conv(run *r) {
  const ker_tensor *x = &r->opd[0], *w = &r->opd[1], *y = &r->res[0];
  conv v;
  if (!conv_of(r, &v, x, w, y)) return false;
  if (r->nopd > 2 && ker_elems(&r->opd[2]) != y->dim[1])
    return ker_misfit(r, "bias", ker_elems(&r->opd[2]), y->dim[1]);
  v.x = pad_borders(r, x, &v.win, v.dim), v.w = w->data, v.to = y->data;
  deal_turns(&v, forward_part);
  if (r->nopd > 2) add_bias(r, y, &r->opd[2]);
  return true;
}

// dw = dy columns^T, image after image, for some channels.
static u32 channel_parts(const conv *v) {
  enum { ROWS = 128, MOST = 8 };
  return (u32)MAX(MIN(MIN(v->cw * v->taps / ROWS, (i64)MOST), v->cw), 1);
}

static void weight_part(void *arg, u32 i, int thread) {
  const conv *v = arg;
  run r = inside(v, thread);
  const u32 parts = channel_parts(v), part = i % parts;
  const i64 g = i / parts, c = v->cw * part / parts, end = v->cw * (part + 1) / parts,
            size = dtype_bytes(v->result);
  const i64 rows = (end - c) * v->taps, deep = v->cw * v->taps;
  for (i64 n = 0; n < v->images; n += v->turn) {
    const arena_mark_t mark = arena_mark(r.a);
    const i64 images = MIN(v->turn, v->images - n), p = images * v->places;
    ker_contract(&r, &(contraction){.t = v->t,
                                    .to = v->result,
                                    .a = gradient_of(v, r.a, n, images, g),
                                    .b = columns(v, r.a, n, images, g, c, end),
                                    .c = (char *)v->to + (g * v->fg * deep + c * v->taps) * size,
                                    .add = n > 0,
                                    .n = 3,
                                    .l = {{v->fg, p, 0, deep, IN_A | IN_C},
                                          {rows, 0, p, 1, IN_B | IN_C},
                                          {p, 1, 1, 0, IN_A | IN_B}}});
    arena_release(r.a, mark);
  }
}

bool ker_conv_dw(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dw = &r->res[0];
  conv v;
  if (!conv_of(r, &v, x, dw, dy)) return false;
  v.x = pad_borders(r, x, &v.win, v.dim), v.dy = dy->data, v.to = dw->data;
  const u32 parts = (u32)v.groups * channel_parts(&v);
  const int threads = MAX(MIN(r->threads, (int)parts), 1);
  if (!v.images) memset(dw->data, 0, (size_t)ker_elems(dw) * dtype_bytes(v.result));
  v.temp = ker_scratches(r, threads), v.inner = threads > 1 ? 1 : r->threads;
  parallel_for(threads, parts, weight_part, &v);
  ker_scratches_free(v.temp, threads);
  return true;
}

// Adds columns to the places that they were taken from.
static void add_columns(const run *r, dtype t, walk *w, void *x, const void *col) {
  const elementwise add = {.op = OP_add};
  const i64 size = dtype_bytes(t);
  EACH_RUN(w) {
    const i64 n = walk_inner(w), sx = step(w, 1), sc = step(w, 0);
    char *to = (char *)x + w->off[1] * size;
    const char *from = (const char *)col + w->off[0] * size;
    if (t == DT_I64)
      for (i64 i = 0; i < n; i++) ((i64 *)to)[i * sx] += ((const i64 *)from)[i * sc];
    else if (sx == 1 && sc == 1)
      r->v->binary(&add, to, to, 1, from, 1, n);
    else if (t == DT_F32)
      for (i64 i = 0; i < n; i++) ((float *)to)[i * sx] += ((const float *)from)[i * sc];
    else
      for (i64 i = 0; i < n; i++) ((double *)to)[i * sx] += ((const double *)from)[i * sc];
  }
}

static void image_part(void *arg, u32 i, int thread) { // columns of dx = w^T dy
  const conv *v = arg;
  run r = inside(v, thread);
  i64 n, images, g, from;
  part_of(v, i, &n, &images, &g);
  const arena_mark_t mark = arena_mark(r.a);
  const i64 p = images * v->places, deep = v->cw * v->taps, size = dtype_bytes(v->result);
  walk w = column_walk(v, n, images, g, 0, v->cw, &from);
  char *x = (char *)v->to + from * size;
  void *col = v->as_it_is ? x : arena_alloc(r.a, (size_t)(deep * p * size));
  ker_contract(&r, &(contraction){.t = v->t,
                                  .to = v->result,
                                  .a = (const char *)v->w + g * v->fg * deep * (i64)dtype_bytes(v->t),
                                  .b = gradient_of(v, r.a, n, images, g),
                                  .c = col,
                                  .n = 3,
                                  .l = {{deep, 1, 0, p, IN_A | IN_C},
                                        {p, 0, 1, 1, IN_B | IN_C},
                                        {v->fg, deep, p, 0, IN_A | IN_B}}});
  if (!v->as_it_is) add_columns(&r, v->result, &w, x, col);
  arena_release(r.a, mark);
}

bool ker_conv_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *w = &r->opd[1], *dx = &r->res[0];
  conv v;
  if (!conv_of(r, &v, dx, w, dy)) return false;
  const size_t bytes = dtype_bytes(v.result);
  v.w = w->data, v.dy = dy->data, v.to = dx->data;
  if (!v.as_it_is) v.to = arena_zalloc(r->a, (size_t)product_of(v.dim, dx->nd) * bytes);
  deal_turns(&v, image_part);
  if (v.as_it_is) return true;
  memset(dx->data, 0, bytes * (size_t)ker_elems(dx)); // negative pads leave elements that no window saw
  frame_copy(r, dx, &v.win, v.dim, v.to, bytes, false);
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

// So many planes at a time, as f64: no copy of the whole tensor is made.
static i64 planes_at_once(i64 size) { return MAX(((i64)1 << 17) / MAX(size, 1), 1); }

static const char *at_plane(const ker_tensor *t, i64 plane, i64 size) {
  return (const char *)t->data + (size_t)(plane * size) * dtype_bytes(t->t);
}

static double pooled(const run *r, const double *in, const i64 *off, i64 n, i64 of) {
  double sum = 0;
  if (r->op != OP_avgpool) return n ? in[largest(in, off, n)] : is_float(&r->res[0]) ? -INFINITY : 0;
  for (i64 t = 0; t < n; t++) sum += in[off[t]];
  return sum / (double)of;
}

bool ker_pool(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  if (x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1]) return ker_misfit(r, "planes", x->dim[1], y->dim[1]);
  const pooling p = pooling_of(r, x, y);
  const bool columns = !strcmp(ker_mode(r, A_mode, ""), "column"),
             include = attr_int(r->at, A_include_pad, 0);
  const i64 planes = x->dim[0] * x->dim[1], size = ker_span(x, 2, x->nd),
            some = MIN(planes_at_once(size), planes);
  double *in = NEWN(r->a, double, some *size), *out = NEWN(r->a, double, some *p.points);
  i64 *whole = NEWN(r->a, i64, some * p.points), *off = NEWN(r->a, i64, p.taps), bordered;
  for (i64 first = 0; first < planes; first += some) {
    const i64 m = MIN(some, planes - first);
    ker_load_f64(in, x->t, at_plane(x, first, size), m * size);
    for (i64 o = 0; o < p.points; o++) {
      const i64 n = taps_of(&p, o, off, &bordered);
      for (i64 c = 0; c < m; c++) {
        const double *v = in + c * size;
        if (r->op == OP_maxpool_arg)
          whole[c * p.points + o] = n ? flat_index(x, first + c, largest(v, off, n), columns) : -1;
        else
          out[c * p.points + o] = pooled(r, v, off, n, include ? bordered : n);
      }
    }
    char *to = (char *)(uintptr_t)at_plane(y, first, p.points);
    for (i64 k = 0; !is_float(y) && r->op != OP_maxpool_arg && k < m * p.points; k++) whole[k] = (i64)out[k];
    if (is_float(y))
      ker_store_f64(to, y->t, out, m * p.points);
    else
      ker_store_i64(to, y->t, whole, m * p.points);
  }
  return true;
}

bool ker_pool_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dx = &r->res[0];
  if (x->dim[0] != dy->dim[0] || x->dim[1] != dy->dim[1])
    return ker_misfit(r, "planes", x->dim[1], dy->dim[1]);
  const pooling p = pooling_of(r, x, dy);
  const bool include = attr_int(r->at, A_include_pad, 0), most = r->op == OP_maxpool_dx;
  const i64 planes = x->dim[0] * x->dim[1], size = ker_span(x, 2, x->nd),
            some = MIN(planes_at_once(size), planes);
  double *in = NEWN(r->a, double, most ? some *size : 1), *g = NEWN(r->a, double, some *p.points),
         *out = NEWN(r->a, double, some *size);
  i64 *off = NEWN(r->a, i64, p.taps), bordered;
  for (i64 first = 0; first < planes; first += some) {
    const i64 m = MIN(some, planes - first);
    if (most) ker_load_f64(in, x->t, at_plane(x, first, size), m * size);
    ker_load_f64(g, dy->t, at_plane(dy, first, p.points), m * p.points);
    memset(out, 0, sizeof *out * (size_t)(m * size));
    for (i64 o = 0; o < p.points; o++) {
      const i64 n = taps_of(&p, o, off, &bordered);
      for (i64 c = 0; c < m && n; c++) {
        if (most)
          out[c * size + largest(in + c * size, off, n)] += g[c * p.points + o];
        else
          for (i64 t = 0; t < n; t++)
            out[c * size + off[t]] += g[c * p.points + o] / (double)(include ? bordered : n);
      }
    }
    ker_store_f64((char *)(uintptr_t)at_plane(dx, first, size), dx->t, out, m * size);
  }
  return true;
}
