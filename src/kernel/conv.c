// conv.c - what slides a window over the spatial dimensions: convolution, its two gradients, pooling.
//
// Idea: once the windows are written out as columns of a matrix, convolution and its gradients are products. That is done for
// a block of the output and some channels at a time, so that all of it lies in a cache and takes little memory. How they are
// cut depends on extents alone, so that no result depends on the threads.
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

// ---- convolution -----------------------------------------------------------------------------------------
// Of some images, or of some rows of one, and of some channels at a time the windows become columns: a matrix with a row for
// every channel and tap and a column for every place of the output. What lies in a border is 0 there: no image is copied.
typedef struct {
  run *r;
  window win;
  i64 xdim[DIMS_MAX];         // of x
  i64 images, groups, cw, fg; // channels and filters of a group
  i64 taps, places, turn;     // of the window; of the output of one image; images of a turn
  i64 row, rows;              // places of a row of the output, its first spatial dimension; rows of a block
  i64 wdim[DIMS_MAX], out[DIMS_MAX]; // spatial extents
  const void *x, *w, *dy;
  void *to;
  dtype t, result; // of elements
  bool as_it_is;   // columns are x itself
  arena **temp;    // by thread
  int inner;       // threads of the products of a part: 1 where parts are dealt to threads
} conv;

// Images from n, of their output rows from..to-1; channels c..end-1 of group g.
typedef struct {
  i64 n, images, from, to, g, c, end;
} block;

static i64 product_of(const i64 *n, u32 count) {
  i64 p = 1;
  for (u32 k = 0; k < count; k++) p *= n[k];
  return p;
}

static bool covers(const conv *v) { // is every window one element of x, each in its turn?
  bool is = v->turn == 1 && v->taps == 1;
  for (u32 i = 0; i < v->win.n; i++)
    is = is && v->win.stride[i] == 1 && !v->win.before[i] && v->out[i] == v->xdim[2 + i];
  return is;
}

static bool conv_of(run *r, conv *v, const ker_tensor *x, const ker_tensor *w, const ker_tensor *y) {
  enum { PLACES = 256, BLOCK = 1024 }; // of a turn: products with fewer columns are slow; of a block of rows
  *v = (conv){.r = r, .win = window_of(r, w->nd - 2, w->dim + 2), .t = r->opd[0].t, .result = ker_result(r)};
  memcpy(v->xdim, x->dim, sizeof(i64) * x->nd);
  v->cw = w->dim[1], v->groups = v->cw ? x->dim[1] / v->cw : 1, v->images = x->dim[0];
  if (v->cw && x->dim[1] % v->cw) return ker_misfit(r, "channels", x->dim[1], v->cw);
  if (y->dim[0] != x->dim[0]) return ker_misfit(r, "batch", y->dim[0], x->dim[0]);
  if (y->dim[1] != w->dim[0] || (v->groups && w->dim[0] % v->groups))
    return ker_misfit(r, "filters", w->dim[0], y->dim[1]);
  v->fg = v->groups ? w->dim[0] / v->groups : 0;
  memcpy(v->wdim, w->dim + 2, sizeof(i64) * v->win.n), memcpy(v->out, y->dim + 2, sizeof(i64) * v->win.n);
  if (!v->win.n) v->out[0] = 1;
  v->taps = product_of(v->wdim, v->win.n), v->places = product_of(v->out, v->win.n);
  v->turn = v->places ? MAX(MIN(PLACES / v->places, v->images), 1) : 1;
  v->row = v->out[0] ? v->places / v->out[0] : 0;
  v->as_it_is = covers(v);
  v->rows = MAX(v->as_it_is ? v->out[0] : MIN(BLOCK / MAX(v->row, 1), v->out[0]), 1);
  return true;
}

static i64 turns_of(const conv *v) {
  assert(v->turn > 0);
  return (v->images + v->turn - 1) / v->turn;
}
static i64 blocks_of(const conv *v) { return (v->out[0] + v->rows - 1) / v->rows; }

// A turn of images, and in it a block of rows.
static block block_of(const conv *v, i64 turn, i64 k) {
  const i64 n = turn * v->turn;
  return (block){.n = n,
                 .images = MIN(v->turn, v->images - n),
                 .from = k * v->rows,
                 .to = MIN((k + 1) * v->rows, v->out[0]),
                 .end = v->cw};
}

static i64 places_of(const conv *v, const block *b) { return b->images * (b->to - b->from) * v->row; }

// Channels whose columns are made at a time.
static i64 some_channels(const conv *v, const block *b) {
  enum { COLUMNS = 1 << 18 }; // elements of a matrix of columns
  if (v->as_it_is) return MAX(v->cw, 1);
  return MAX(MIN(COLUMNS / MAX(v->taps * places_of(v, b), 1), v->cw), 1);
}

static i64 floor_div(i64 x, i64 y) { return x / y - (x % y < 0); }

// Of one tap the copy between columns (first), from their row of it, and x: what lies in x. Is that all that there is of it?
static bool tap_walk(const conv *v, const block *b, i64 tap, walk *w, i64 *col_from, i64 *x_from) {
  const u32 k = v->win.n;
  const i64 p = places_of(v, b);
  i64 extent[2 + DIMS_MAX], all[2 + DIMS_MAX], col[2 + DIMS_MAX], x[2 + DIMS_MAX], xs[DIMS_MAX], t = tap;
  bool whole = true;
  ker_strides(k + 2, v->xdim, xs);
  all[0] = b->end - b->c, all[1] = b->images;
  for (u32 i = 0; i < k; i++) all[2 + i] = i ? v->out[i] : b->to - b->from;
  ker_strides(2 + k, all, col);
  extent[0] = all[0], extent[1] = all[1], col[0] = v->taps * p, x[0] = xs[1], x[1] = xs[0];
  *col_from = tap * p, *x_from = b->n * xs[0] + (b->g * v->cw + b->c) * xs[1];
  for (u32 i = k; i-- > 0; t /= v->wdim[i]) { // output places lo .. hi - 1 see x at s o + at
    const i64 s = v->win.stride[i], at = t % v->wdim[i] * v->win.dilation[i] - v->win.before[i],
              first = i ? 0 : b->from, end = first + all[2 + i];
    const i64 lo = MAX(first, -floor_div(at, s)), hi = MIN(end, floor_div(v->xdim[2 + i] - 1 - at, s) + 1);
    extent[2 + i] = MAX(hi - lo, 0), x[2 + i] = s * xs[2 + i];
    *col_from += (lo - first) * col[2 + i], *x_from += (lo * s + at) * xs[2 + i];
    whole = whole && hi - lo == all[2 + i];
  }
  ker_walk_init(w, 2 + k, extent);
  ker_walk_add(w, col);
  ker_walk_add(w, x);
  return whole;
}

static const void *columns(const conv *v, arena *a, const block *b) {
  const i64 bytes = dtype_bytes(v->t), p = places_of(v, b);
  if (v->as_it_is)
    return (const char *)v->x + (b->n * v->groups * v->cw + b->g * v->cw + b->c) * v->places * bytes;
  char *col = arena_alloc(a, (size_t)((b->end - b->c) * v->taps * p * bytes));
  for (i64 tap = 0; tap < v->taps; tap++) {
    walk w;
    i64 to, from;
    if (!tap_walk(v, b, tap, &w, &to, &from))
      for (i64 c = 0; c < b->end - b->c; c++)
        memset(col + (c * v->taps + tap) * p * bytes, 0, (size_t)(p * bytes));
    ker_walk_copy(&w, (size_t)bytes, col + to * bytes, (const char *)v->x + from * bytes);
  }
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
static i64 filter_place(const conv *v, const block *b) {
  return (b->n * v->groups + b->g) * v->fg * v->places + b->from * v->row;
}
// How far apart filters lie in that matrix: several images are put together, of one it lies where it is.
static i64 filter_stride(const conv *v, const block *b) {
  return b->images > 1 ? places_of(v, b) : v->places;
}

static const void *gradient_of(const conv *v, arena *a, const block *b) {
  const size_t bytes = dtype_bytes(v->t);
  const char *dy = (const char *)v->dy + (size_t)filter_place(v, b) * bytes;
  if (b->images == 1) return dy;
  void *m = arena_alloc(a, (size_t)(v->fg * places_of(v, b)) * bytes);
  walk w = filter_walk(v, b->images);
  ker_walk_copy(&w, bytes, m, dy);
  return m;
}

static run inside(const conv *v, int thread) {
  run r = *v->r;
  r.a = v->temp[thread], r.threads = v->inner;
  return r;
}

static void deal_parts(conv *v, i64 parts, void (*job)(void *arg, u32 i, int thread)) {
  const int threads = v->r->threads > 1 && parts >= v->r->threads ? v->r->threads : 1;
  v->temp = ker_scratches(v->r, threads), v->inner = threads > 1 ? 1 : v->r->threads;
  assert(parts <= INT32_MAX);
  parallel_for(threads, (u32)parts, job, v);
  ker_scratches_free(v->r, v->temp, threads);
}

static void forward_part(void *arg, u32 i, int thread) { // y = w columns, some channels after the other
  const conv *v = arg;
  run r = inside(v, thread);
  const i64 per = blocks_of(v) * v->groups;
  block b = block_of(v, i / per, i % per / v->groups);
  b.g = i % v->groups;
  const arena_mark_t mark = arena_mark(r.a);
  const i64 p = places_of(v, &b), deep = v->cw * v->taps, size = dtype_bytes(v->result),
            some = some_channels(v, &b);
  char *y = (char *)v->to + filter_place(v, &b) * size;
  void *c = b.images > 1 ? arena_alloc(r.a, (size_t)(v->fg * p * size)) : y;
  for (i64 from = 0; from < v->cw; from += some) {
    const arena_mark_t round = arena_mark(r.a);
    b.c = from, b.end = MIN(from + some, v->cw);
    ker_contract(&r, &(contraction){.t = v->t,
                                    .to = v->result,
                                    .a = (const char *)v->w +
                                         (b.g * v->fg * deep + from * v->taps) * (i64)dtype_bytes(v->t),
                                    .b = columns(v, r.a, &b),
                                    .c = c,
                                    .add = from > 0,
                                    .n = 3,
                                    .l = {{v->fg, deep, 0, filter_stride(v, &b), IN_A | IN_C},
                                          {p, 0, 1, 1, IN_B | IN_C},
                                          {(b.end - b.c) * v->taps, 1, p, 0, IN_A | IN_B}}});
    arena_release(r.a, round);
  }
  if (b.images > 1) {
    walk own = filter_walk(v, b.images), back;
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
  v.x = x->data, v.w = w->data, v.to = y->data;
  if (!v.cw || !v.taps) memset(y->data, 0, (size_t)ker_elems(y) * dtype_bytes(v.result));
  if (v.cw && v.taps) deal_parts(&v, turns_of(&v) * blocks_of(&v) * v.groups, forward_part);
  if (r->nopd > 2) add_bias(r, y, &r->opd[2]);
  return true;
}

// A part of a gradient: some channels of a group, so that no two threads add to the same elements.
static u32 channel_parts(const conv *v) {
  enum { ROWS = 128, MOST = 8 };
  return (u32)MAX(MIN(MIN(v->cw * v->taps / ROWS, (i64)MOST), v->cw), 1);
}
static void channels_of(const conv *v, u32 i, i64 *c, i64 *end) {
  const u32 parts = channel_parts(v), part = i % parts;
  *c = v->cw * part / parts, *end = v->cw * (part + 1) / parts;
}

// dw = dy columns^T, block after block.
static void weight_block(const conv *v, run *r, block *b, i64 from, i64 end) {
  const i64 p = places_of(v, b), deep = v->cw * v->taps, some = some_channels(v, b),
            size = dtype_bytes(v->result);
  const arena_mark_t mark = arena_mark(r->a);
  const void *dy = gradient_of(v, r->a, b);
  for (i64 c = from; c < end; c += some) {
    const arena_mark_t round = arena_mark(r->a);
    b->c = c, b->end = MIN(c + some, end);
    ker_contract(r, &(contraction){.t = v->t,
                                   .to = v->result,
                                   .a = dy,
                                   .b = columns(v, r->a, b),
                                   .c = (char *)v->to + (b->g * v->fg * deep + c * v->taps) * size,
                                   .add = b->n > 0 || b->from > 0,
                                   .n = 3,
                                   .l = {{v->fg, filter_stride(v, b), 0, deep, IN_A | IN_C},
                                         {(b->end - c) * v->taps, 0, p, 1, IN_B | IN_C},
                                         {p, 1, 1, 0, IN_A | IN_B}}});
    arena_release(r->a, round);
  }
  arena_release(r->a, mark);
}

static void weight_part(void *arg, u32 i, int thread) {
  const conv *v = arg;
  run r = inside(v, thread);
  i64 from, end;
  channels_of(v, i, &from, &end);
  for (i64 turn = 0; turn < turns_of(v); turn++)
    for (i64 k = 0; k < blocks_of(v); k++) {
      block b = block_of(v, turn, k);
      b.g = i / channel_parts(v);
      weight_block(v, &r, &b, from, end);
    }
}

bool ker_conv_dw(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dw = &r->res[0];
  conv v;
  if (!conv_of(r, &v, x, dw, dy)) return false;
  v.x = x->data, v.dy = dy->data, v.to = dw->data;
  if (!v.images || !v.places) memset(dw->data, 0, (size_t)ker_elems(dw) * dtype_bytes(v.result));
  deal_parts(&v, v.groups * channel_parts(&v), weight_part);
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

// Columns of dx = w^T dy, of a block.
static void image_block(const conv *v, run *r, block *b, i64 from, i64 end) {
  const i64 p = places_of(v, b), deep = v->cw * v->taps, some = some_channels(v, b),
            size = dtype_bytes(v->result);
  const arena_mark_t mark = arena_mark(r->a);
  const void *dy = gradient_of(v, r->a, b);
  for (i64 c = from; c < end; c += some) {
    const arena_mark_t round = arena_mark(r->a);
    b->c = c, b->end = MIN(c + some, end);
    const i64 rows = (b->end - c) * v->taps;
    char *col = v->as_it_is ? (char *)v->to + ((b->n * v->groups + b->g) * v->cw + c) * v->places * size
                            : arena_alloc(r->a, (size_t)(rows * p * size));
    ker_contract(r, &(contraction){.t = v->t,
                                   .to = v->result,
                                   .a = (const char *)v->w +
                                        (b->g * v->fg * deep + c * v->taps) * (i64)dtype_bytes(v->t),
                                   .b = dy,
                                   .c = col,
                                   .n = 3,
                                   .l = {{rows, 1, 0, p, IN_A | IN_C},
                                         {p, 0, 1, 1, IN_B | IN_C},
                                         {v->fg, deep, filter_stride(v, b), 0, IN_A | IN_B}}});
    for (i64 tap = 0; tap < v->taps && !v->as_it_is; tap++) {
      walk w;
      i64 at, x;
      tap_walk(v, b, tap, &w, &at, &x);
      add_columns(r, v->result, &w, (char *)v->to + x * size, col + at * size);
    }
    arena_release(r->a, round);
  }
  arena_release(r->a, mark);
}

static void image_part(void *arg, u32 i, int thread) {
  const conv *v = arg;
  run r = inside(v, thread);
  const u32 parts = channel_parts(v);
  const i64 turn = i / parts / v->groups,
            span = product_of(v->xdim + 2, v->win.n) * (i64)dtype_bytes(v->result);
  i64 from, end;
  channels_of(v, i, &from, &end);
  for (i64 k = 0; k < blocks_of(v); k++) {
    block b = block_of(v, turn, k);
    b.g = i / parts % v->groups;
    for (i64 n = b.n; n < b.n + b.images && !k; n++)
      memset((char *)v->to + ((n * v->groups + b.g) * v->cw + from) * span, 0, (size_t)((end - from) * span));
    image_block(v, &r, &b, from, end);
  }
}

bool ker_conv_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *w = &r->opd[1], *dx = &r->res[0];
  conv v;
  if (!conv_of(r, &v, dx, w, dy)) return false;
  v.w = w->data, v.dy = dy->data, v.to = dx->data;
  if (!v.places) memset(dx->data, 0, (size_t)ker_elems(dx) * dtype_bytes(v.result));
  deal_parts(&v, turns_of(&v) * v.groups * channel_parts(&v), image_part);
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
static i64 planes_at_once(i64 size) { return MAX(((i64)1 << 16) / MAX(size, 1), 1); }

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
