// bytes.c - memory of every unit along its issue order: peak, net, and what the peak is made of. Not time: an
// allocator sees the order of instructions, not the clock.
//
// Idea: a step is (peak, net), and (p1,n1) then (p2,n2) is (max(p1, n1+p2), n1+n2). So a function at a place
// is one such pair for every unit, kept by which arguments die in it and which results are used. A buffer is
// what an instruction allocates; values hold buffers, and a buffer is free when the last value that holds it
// is used last. What the peak is made of is found by walking again to the place where it is, into one call
// after the other.
#include "sim/internal.h"
#include <stdlib.h>

typedef struct {
  const uset *us;
  i64 even;
  const i64 *per;
} msize; // bytes on every unit of us; per beside us->unit
typedef struct {
  func f;
  value v;
  mem_kind kind;
} origin;
typedef struct {
  const msize *size;
  origin from;
  u32 refs;        // live values that hold it
  u32 live;        // position in walk.live + 1; 0 = gone
  bool owned;      // freed here when nothing holds it
  bool lent;       // a parameter of main: freed or taken over only where it is donated
  bool given;      // to the call at hand
  u32 seen, times; // at instruction `seen`, how often operands used last there held it
} buffer;

// A function at a place as seen by a call: one pair (peak, net) for every unit it touches.
typedef struct {
  bool own;
  u32 k;
} held_by; // a buffer made inside, or leaf k of the parameters
typedef struct mbody {
  u32 row;
  const u8 *die, *used; // per parameter leaf, per result
  const uset *us;
  const i64 *peak, *net; // beside us->unit
  const u32 *at;         // instruction during which the peak is; 0 = at the start
  const u32 *res_begin;  // leaves of result k: res_begin[k]..
  const u32 *held_begin; // of every such leaf
  const held_by *held;
  u32 nown;
  const buffer *own; // buffers made inside that results hold
} mbody;

typedef struct {
  u32 begin, n;
} span;
typedef struct {       // what the call that is being expanded knows
  const origin *param; // of every parameter leaf
  const mem_kind *ret; // of every result
} context;
enum { GONE_TWICE = ~0u }; // that instruction took it twice
typedef struct mem mem;
typedef struct { // one pass over a function at a place
  mem *m;
  func fn;
  const func_info *f;
  group g;
  const u32 *rows; // of callees, by instruction
  const life *l;
  const u32 *last; // as in life; results that the caller does not use die inside
  const context *cx;
  VEC(buffer) buf;     // parameter leaves first
  VEC(u32) live, pool; // buffers that are there; buffers that leaves hold
  VEC(span) leaf;      // in pool
  span *val;           // the leaves of every value
  i64 *cur, *peak;     // by unit
  u32 *at;
  u8 *touched;
  u32 *gone;      // of every value: the instruction that used it last
  VEC(u32) dying; // of the instruction at hand
  VEC(u8) die;
  u8 *used;
  const u32 *ask, *ask_next; // units + 1 to tell about at an instruction, as a list; NULL: none
} walk;

typedef struct { // the tensors that a function takes, tuples opened
  u32 nparam, nleaf;
  const type *leaf;
  const u32 *begin; // leaves of parameter k: begin[k]..
  const u32 *param; // of a leaf
} param_leaves;

struct mem {
  sim *s;
  i64 round;
  bool distir;
  VEC(msize *) sizes;
  hmap size_map;
  VEC(mbody *) bodies;
  hmap body_map;
  const mbody **latest; // by row
  param_leaves *params; // by function
  const msize **near;   // by type: the latest size asked for
  group *near_g;
  arena *ta; // of the tally: what is alive on one unit at its peak
  i64 kind[MEM_KINDS];
  VEC(mem_item) item;
  hmap item_map;
  sim_unit *out;
};

// ---- sizes ------------------------------------------------------------------------------------------
static const msize *size_of(mem *m, type t, group call) {
  sim *s = m->s;
  const type_info *ti = type_get(s->p, t);
  group g = resolve(ti->g, call);
  if (m->near[t.i] && m->near_g[t.i].i == g.i) return m->near[t.i];
  m->near_g[t.i] = g;
  u64 h = hash_u64((u64)t.i << 32 | g.i, 11);
  u32 known = hmap_get(&m->size_map, h);
  if (known) return m->near[t.i] = m->sizes.v[known - 1];
  const place *pl = place_of(s, g);
  msize *z = NEW(s->a, msize);
  z->us = pl->us;
  z->even = ceil_div(local_bytes(s, ti, g, 0), m->round) * m->round;
  if (!layout_is_even(s->p->sp, ti->lay)) {
    i64 *per = NEWN(s->a, i64, pl->us->n);
    for (u32 k = 0; k < pl->us->n; k++)
      per[k] = ceil_div(local_bytes(s, ti, g, pl->member[k]), m->round) * m->round;
    z->per = per;
  }
  *vec_push(s->a, &m->sizes) = z;
  hmap_add(s->a, &m->size_map, h, m->sizes.n);
  return m->near[t.i] = z;
}

static i64 size_on(const msize *z, u32 unit) {
  u32 pos = z->us->pos[unit];
  return !pos ? 0 : z->per ? z->per[pos - 1] : z->even;
}

static bool size_same(const msize *x, const msize *y) {
  if (x == y) return true;
  if (x->us != y->us || !x->per != !y->per) return false;
  return x->per ? memcmp(x->per, y->per, x->us->n * sizeof *x->per) == 0 : x->even == y->even;
}

// Tensors in a type, those of tuples in order; puts them in leaf if it is not NULL.
static u32 leaves_of(const prog *p, type t, type *leaf) {
  const type_info *ti = type_get(p, t);
  u32 n = 0;
  if (!ti->tuple) {
    if (leaf) *leaf = t;
    return 1;
  }
  for (u32 k = 0; k < ti->n; k++) n += leaves_of(p, ti->elem[k], leaf ? leaf + n : NULL);
  return n;
}

// ---- buffers and values -----------------------------------------------------------------------------
static void add_bytes(walk *w, const msize *z, bool up) {
  for (u32 k = 0; k < z->us->n; k++) {
    u32 u = z->us->unit[k];
    i64 n = z->per ? z->per[k] : z->even;
    w->cur[u] += up ? n : -n;
    w->touched[u] = 1;
  }
}
static void see_peak(walk *w, const msize *z, u32 at) {
  for (u32 k = 0; k < z->us->n; k++) {
    u32 u = z->us->unit[k];
    if (w->cur[u] <= w->peak[u]) continue;
    w->peak[u] = w->cur[u];
    w->at[u] = at;
  }
}

static u32 buffer_new(walk *w, const msize *z, origin from) {
  arena *a = w->m->s->tmp;
  *vec_push(a, &w->buf) = (buffer){.size = z, .from = from, .owned = true, .live = w->live.n + 1};
  *vec_push(a, &w->live) = w->buf.n - 1;
  return w->buf.n - 1;
}
static void buffer_gone(walk *w, u32 b) {
  u32 at = w->buf.v[b].live - 1, last = w->live.v[--w->live.n];
  w->live.v[at] = last;
  w->buf.v[last].live = at + 1;
  w->buf.v[b].live = 0;
}

// Value v gets leaves; each is filled with `hold`.
static void leaf_open(walk *w) { *vec_push(w->m->s->tmp, &w->leaf) = (span){w->pool.n, 0}; }
static void hold(walk *w, u32 b) {
  *vec_push(w->m->s->tmp, &w->pool) = b;
  w->leaf.v[w->leaf.n - 1].n++;
}
static void value_open(walk *w, value v) { w->val[v] = (span){w->leaf.n, 0}; }
static void value_close(walk *w, value v) {
  span *x = &w->val[v];
  x->n = w->leaf.n - x->begin;
  for (u32 k = x->begin; k < w->leaf.n; k++)
    for (u32 j = 0; j < w->leaf.v[k].n; j++) w->buf.v[w->pool.v[w->leaf.v[k].begin + j]].refs++;
}
static void copy_leaf(walk *w, u32 from) {
  leaf_open(w);
  span x = w->leaf.v[from];
  for (u32 j = 0; j < x.n; j++) hold(w, w->pool.v[x.begin + j]);
}
// The one buffer of a leaf; ~0 if it has none or several.
static u32 only_buffer(walk *w, u32 leaf) {
  span x = w->leaf.v[leaf];
  return x.n == 1 ? w->pool.v[x.begin] : ~0u;
}

// Values whose last use this is let go of their buffers; those that nothing holds any more are in w->dying.
static void let_go(walk *w, value v, u32 num) {
  span x = w->val[v];
  for (u32 k = x.begin; k < x.begin + x.n; k++)
    for (u32 j = 0; j < w->leaf.v[k].n; j++) {
      u32 b = w->pool.v[w->leaf.v[k].begin + j];
      buffer *z = &w->buf.v[b];
      z->times = z->seen == num ? z->times + 1 : 1;
      z->seen = num;
      if (!--z->refs) *vec_push(w->m->s->tmp, &w->dying) = b;
    }
}
static void let_operands_go(walk *w, const instr *i, u32 n, u32 num) {
  w->dying.n = 0;
  for (u32 k = 0; k < n; k++) {
    value v = opd_of(w->f, i, k);
    if (w->last[v] != num) continue;
    if (w->gone[v] == num) w->gone[v] = GONE_TWICE; // passed twice
    if (w->gone[v]) continue;
    w->gone[v] = num;
    let_go(w, v, num);
  }
}
static void free_dying(walk *w) {
  for (u32 k = 0; k < w->dying.n; k++) {
    buffer *b = &w->buf.v[w->dying.v[k]];
    if (b->refs || !b->live || !b->owned || b->lent) continue;
    add_bytes(w, b->size, false);
    buffer_gone(w, w->dying.v[k]);
  }
}

// The caller knows better what a result is, unless it is nothing special there.
static mem_kind kind_of(walk *w, value v, bool is_call) {
  u32 ret = w->l->ret[v];
  mem_kind k = ret && w->cx ? w->cx->ret[ret - 1] : MEM_TEMP;
  return k != MEM_TEMP ? k : life_kind(w->l, v, is_call);
}

// ---- instructions -----------------------------------------------------------------------------------
// Where it is donated, a parameter of main may go.
static void unlend_donated(walk *w, const instr *i, u32 n) {
  for (u32 k = 0; k < n; k++) {
    if (!opd_donated(w->f, i, k)) continue;
    span x = w->val[opd_of(w->f, i, k)];
    for (u32 q = x.begin; q < x.begin + x.n; q++)
      for (u32 j = 0; j < w->leaf.v[q].n; j++) w->buf.v[w->pool.v[w->leaf.v[q].begin + j]].lent = false;
  }
}

// Views share; joins hold everything they are made of.
static void step_view(walk *w, const instr *i, u32 n, u32 num) {
  u32 from = 0;
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    u32 leaves = leaves_of(w->m->s->p, w->f->values.v[v].ty, NULL);
    value_open(w, v);
    if (i->op == OP_pack)
      for (u32 k = 0; k < n; k++)
        for (u32 q = 0, o = opd_of(w->f, i, k); q < w->val[o].n; q++) copy_leaf(w, w->val[o].begin + q);
    else if (i->op == OP_unpack) {
      span x = w->val[opd_of(w->f, i, 0)];
      for (u32 q = 0; q < leaves && from < x.n; q++) copy_leaf(w, x.begin + from++);
    } else
      for (u32 q = 0; q < leaves; q++) {
        leaf_open(w);
        for (u32 k = 0; k < n; k++) {
          span x = w->val[opd_of(w->f, i, k)];
          if (q >= x.n) continue;
          span l = w->leaf.v[x.begin + q];
          for (u32 j = 0; j < l.n; j++) hold(w, w->pool.v[l.begin + j]);
        }
      }
    value_close(w, v);
  }
  if (!w->m->distir) unlend_donated(w, i, n);
  let_operands_go(w, i, n, num);
  for (u32 r = 0; r < i->nres; r++)
    if (w->last[i->res + r] == num) let_go(w, i->res + r, num);
  free_dying(w);
}

// The buffer that result r takes over: that of the operand it continues, if it is donated and nothing else
// holds it.
static u32 taken_over(walk *w, const instr *i, u32 n, u32 r) {
  const op_row *row = op_row_of(i->op);
  u32 k = row->flags & OPF_MANY_RES ? r : r ? r + 1 : 0; // optimisers: new states after the gradient
  if (!(row->flags & OPF_INPLACE) || k >= n || !opd_donated(w->f, i, k)) return ~0u;
  span x = w->val[opd_of(w->f, i, k)];
  u32 b = x.n == 1 ? only_buffer(w, x.begin) : ~0u;
  if (b == ~0u || w->buf.v[b].refs || !w->buf.v[b].live || !(w->buf.v[b].owned || w->buf.v[b].lent))
    return ~0u;
  return size_same(w->buf.v[b].size, size_of(w->m, w->f->values.v[i->res + r].ty, w->g)) ? b : ~0u;
}

static bool takes_no_room(const walk *w, const instr *i) {
  if (w->m->distir && i->flags & INSTR_UPDATE) return true;
  if (i->op != OP_copy) return false;
  const attr *to = attr_get(attrs_get(w->m->s->p, i->at), A_to);
  return to && strcmp(sym_str(w->m->s->c, to->u.s), "host") == 0;
}

static void make_results(walk *w, const instr *i, u32 n, u32 num) {
  mem *m = w->m;
  bool nothing = takes_no_room(w, i);
  if (!m->distir) unlend_donated(w, i, n);
  let_operands_go(w, i, n, num);
  u32 first_new = w->buf.n;
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    u32 b = m->distir ? ~0u : taken_over(w, i, n, r);
    origin from = {w->fn, v, kind_of(w, v, false)};
    value_open(w, v);
    if (b != ~0u)
      w->buf.v[b].from = from;
    else if (!nothing) {
      const msize *z = size_of(m, w->f->values.v[v].ty, w->g);
      b = buffer_new(w, z, from);
      add_bytes(w, z, true);
    }
    leaf_open(w);
    if (b != ~0u) hold(w, b);
    value_close(w, v);
  }
  for (u32 b = first_new; b < w->buf.n; b++) see_peak(w, w->buf.v[b].size, num);
}

// ---- calls ------------------------------------------------------------------------------------------
static const mbody *body_of(mem *m, u32 row, const u8 *die, const u8 *used);

// Which parameter leaves die in the call: donated, whole, held by nothing else and not passed twice. Needs
// what let_operands_go has done.
static void die_pattern(walk *w, const instr *i, group g, u32 num) {
  const param_leaves *sp = &w->m->params[i->callee.i];
  memset(w->die.v, 0, sp->nleaf);
  for (u32 k = 0; k < sp->nparam; k++) {
    value v = opd_of(w->f, i, k);
    if (w->gone[v] != num || !(w->m->distir || opd_donated(w->f, i, k))) continue;
    for (u32 q = 0; q < w->val[v].n; q++) {
      u32 b = only_buffer(w, w->val[v].begin + q);
      if (b == ~0u) continue;
      const buffer *x = &w->buf.v[b];
      w->die.v[sp->begin[k] + q] = x->owned && !x->lent && x->live && !x->refs && x->times == 1 &&
                                   size_same(x->size, size_of(w->m, sp->leaf[sp->begin[k] + q], g));
    }
  }
}

// The leaf that was passed as leaf q of the parameters.
static u32 passed(const walk *w, const instr *i, u32 q) {
  const param_leaves *sp = &w->m->params[i->callee.i];
  u32 k = sp->param[q];
  return w->val[opd_of(w->f, i, k)].begin + q - sp->begin[k];
}
static void call_results(walk *w, const instr *i, const mbody *b) {
  arena_mark_t mark = arena_mark(w->m->ta);
  u32 *made = NEWN(w->m->ta, u32, b->nown); // of this call
  for (u32 k = 0; k < b->nown; k++) made[k] = ~0u;
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    value_open(w, v);
    for (u32 q = b->res_begin[r]; q < b->res_begin[r + 1]; q++) {
      leaf_open(w);
      for (u32 j = b->held_begin[q]; j < b->held_begin[q + 1]; j++) {
        held_by h = b->held[j];
        if (!h.own) {
          span x = w->leaf.v[passed(w, i, h.k)];
          for (u32 y = 0; y < x.n; y++) hold(w, w->pool.v[x.begin + y]);
          continue;
        }
        if (made[h.k] == ~0u) {
          origin from = b->own[h.k].from;
          mem_kind kind = kind_of(w, v, true);
          if (kind != MEM_TEMP) from.kind = kind;
          made[h.k] = buffer_new(w, b->own[h.k].size, from);
        }
        hold(w, made[h.k]);
      }
    }
    value_close(w, v);
  }
  arena_release(w->m->ta, mark);
}

static void add_body(walk *w, const mbody *b, u32 num) {
  for (u32 k = 0; k < b->us->n; k++) {
    u32 u = b->us->unit[k];
    if (w->cur[u] + b->peak[k] > w->peak[u]) {
      w->peak[u] = w->cur[u] + b->peak[k];
      w->at[u] = num;
    }
    w->cur[u] += b->net[k];
    w->touched[u] = 1;
  }
}

static void tell(walk *w, u32 num, const mbody *callee, const instr *i);

static void step_call(walk *w, const instr *i, u32 num) {
  mem *m = w->m;
  sim *s = m->s;
  const func_info *callee = func_get(s->p, i->callee);
  u32 row = w->rows[num - 1], nl = m->params[i->callee.i].nleaf;
  vec_reserve(s->tmp, &w->die, nl);
  if (!m->distir) unlend_donated(w, i, callee->nparams);
  let_operands_go(w, i, callee->nparams, num);
  die_pattern(w, i, s->priced.v[row].g, num);
  for (u32 r = 0; r < i->nres; r++) w->used[r] = m->distir || w->last[i->res + r] != num;
  const mbody *b = m->latest[row];
  if (!b || memcmp(b->die, w->die.v, nl) != 0 || memcmp(b->used, w->used, i->nres) != 0)
    b = m->latest[row] = body_of(m, row, w->die.v, w->used);
  for (u32 q = 0; q < nl; q++)
    if (b->die[q]) w->buf.v[only_buffer(w, passed(w, i, q))].given = true;
  tell(w, num, b, i);
  add_body(w, b, num);
  call_results(w, i, b);
  for (u32 q = 0; q < nl; q++) {
    if (!b->die[q]) continue;
    u32 k = only_buffer(w, passed(w, i, q));
    w->buf.v[k].given = false;
    if (!w->buf.v[k].refs) buffer_gone(w, k); // freed inside
  }
  free_dying(w);
}

// ---- walks ------------------------------------------------------------------------------------------
static void add_params(walk *w, const u8 *die, bool is_main) {
  mem *m = w->m;
  u32 leaf = 0;
  for (u32 k = 1; k <= w->f->nparams; k++) {
    u32 n = leaves_of(m->s->p, w->f->values.v[k].ty, NULL);
    value_open(w, k);
    for (u32 q = 0; q < n; q++, leaf++) {
      const msize *z = size_of(m, m->params[w->fn.i].leaf[leaf], w->g);
      origin from = w->cx ? w->cx->param[leaf] : (origin){w->fn, k, MEM_ACT};
      if (is_main) {
        role r = w->f->params.v[k - 1].r;
        from.kind = r == ROLE_WEIGHT || r == ROLE_CONST ? MEM_PARAM : r == ROLE_STATE ? MEM_STATE : MEM_ACT;
      }
      u32 b = buffer_new(w, z, from);
      if (!is_main && !die[leaf]) { // the caller's
        w->buf.v[b].owned = false;
        buffer_gone(w, b);
      }
      if (is_main) {
        w->buf.v[b].lent = true;
        add_bytes(w, z, true);
      }
      leaf_open(w);
      hold(w, b);
    }
    value_close(w, k);
  }
  for (u32 b = 0; is_main && b < w->buf.n; b++) see_peak(w, w->buf.v[b].size, 0);
}

// Walks the function of a row. Results: w->cur (net), peak, at, and the leaves of what is returned.
static void walk_init(walk *w, mem *m, u32 row, const u8 *used, const context *cx) {
  sim *s = m->s;
  const priced *pr = &s->priced.v[row];
  const func_info *f = func_get(s->p, pr->f);
  *w = (walk){.m = m, .fn = pr->f, .f = f, .g = pr->g, .rows = pr->ev, .l = life_of(s, pr->f), .cx = cx};
  w->last = w->l->last;
  u32 most = 0, nv = f->values.n;
  for (u32 k = 0; k < f->body.n; k++) most = MAX(most, f->body.v[k].nres);
  w->used = NEWN(s->tmp, u8, most);
  w->val = NEWN(s->tmp, span, nv);
  w->gone = ZNEWN(s->tmp, u32, nv);
  w->cur = ZNEWN(s->tmp, i64, s->nunits);
  w->peak = ZNEWN(s->tmp, i64, s->nunits);
  w->at = ZNEWN(s->tmp, u32, s->nunits);
  w->touched = ZNEWN(s->tmp, u8, s->nunits);
  vec_reserve(s->tmp, &w->buf, nv);
  vec_reserve(s->tmp, &w->live, nv);
  vec_reserve(s->tmp, &w->pool, nv);
  vec_reserve(s->tmp, &w->leaf, nv);
  u32 *last = NULL;
  for (u32 k = 0; used && k < f->rets.n; k++) {
    if (used[k]) continue;
    if (!last) w->last = last = arena_dup(s->tmp, w->l->last, nv * sizeof *last);
    last[f->rets.v[k]] = w->l->inside[f->rets.v[k]];
  }
  for (u32 k = 0; last && k < f->rets.n; k++) // returned twice, used once
    if (used[k]) last[f->rets.v[k]] = LIFE_END;
}

static void walk_run(walk *w, const u8 *die, bool is_main) {
  const func_info *f = w->f;
  add_params(w, die, is_main);
  tell(w, 0, NULL, NULL);
  w->dying.n = 0;
  for (u32 k = 1; k <= f->nparams; k++)
    if (!w->last[k]) let_go(w, k, 0);
  free_dying(w);
  for (u32 num = 1; num <= f->body.n; num++) {
    const instr *i = &f->body.v[num - 1];
    u32 n = instr_nopd(f, i);
    u32 row = op_row_of(i->op)->flags;
    if (i->op == OP_call)
      step_call(w, i, num);
    else if (row & OPF_META || (row & OPF_VIEW && !w->m->distir))
      step_view(w, i, n, num);
    else {
      make_results(w, i, n, num);
      tell(w, num, NULL, NULL);
      for (u32 r = 0; r < i->nres && !w->m->distir; r++) // distir: what is not used is never freed
        if (w->last[i->res + r] == num) let_go(w, i->res + r, num);
      free_dying(w);
    }
  }
}

// What the results hold, for callers.
static void keep_results(walk *w, mbody *b) {
  arena *a = w->m->s->a;
  const func_info *f = w->f;
  VEC(u32) held_begin = {0};
  VEC(held_by) held = {0};
  VEC(buffer) own = {0};
  u32 *res = NEWN(a, u32, f->rets.n + 1), nparam = w->m->params[w->fn.i].nleaf;
  u32 *number = ZNEWN(w->m->s->tmp, u32, w->buf.n);
  for (u32 k = 0; k < f->rets.n; k++) {
    span x = w->val[f->rets.v[k]];
    res[k] = held_begin.n;
    for (u32 q = x.begin; b->used[k] && q < x.begin + x.n; q++) {
      *vec_push(a, &held_begin) = held.n;
      for (u32 j = 0; j < w->leaf.v[q].n; j++) {
        u32 id = w->pool.v[w->leaf.v[q].begin + j];
        if (id >= nparam && !number[id]) {
          *vec_push(a, &own) = w->buf.v[id];
          number[id] = own.n;
        }
        *vec_push(a, &held) = (held_by){id >= nparam, id >= nparam ? number[id] - 1 : id};
      }
    }
  }
  res[f->rets.n] = held_begin.n;
  *vec_push(a, &held_begin) = held.n;
  b->res_begin = res;
  b->held_begin = held_begin.v;
  b->held = held.v;
  b->own = own.v;
  b->nown = own.n;
}

static const mbody *body_of(mem *m, u32 row, const u8 *die, const u8 *used) {
  sim *s = m->s;
  func fn = s->priced.v[row].f;
  u32 nl = m->params[fn.i].nleaf, nr = func_get(s->p, fn)->rets.n, n = 0;
  u64 h = hash_bytes(used, nr, hash_bytes(die, nl, row));
  for (u32 it = 0, id; hmap_next(&m->body_map, h, &it, &id);) {
    const mbody *b = m->bodies.v[id];
    if (b->row == row && memcmp(b->die, die, nl) == 0 && memcmp(b->used, used, nr) == 0) return b;
  }
  mbody *b = NEW(s->a, mbody);
  *b = (mbody){.row = row, .die = arena_dup(s->a, die, nl), .used = arena_dup(s->a, used, nr)};
  arena_mark_t mark = arena_mark(s->tmp);
  walk w;
  walk_init(&w, m, row, b->used, NULL);
  walk_run(&w, b->die, false);
  u32 *unit = NEWN(s->tmp, u32, s->nunits);
  for (u32 u = 0; u < s->nunits; u++)
    if (w.touched[u]) unit[n++] = u;
  i64 *peak = NEWN(s->a, i64, n), *net = NEWN(s->a, i64, n);
  u32 *at = NEWN(s->a, u32, n);
  for (u32 k = 0; k < n; k++) {
    peak[k] = w.peak[unit[k]];
    net[k] = w.cur[unit[k]];
    at[k] = w.at[unit[k]];
  }
  b->us = uset_of_units(s, unit, n);
  b->peak = peak;
  b->net = net;
  b->at = at;
  keep_results(&w, b);
  arena_release(s->tmp, mark);
  hmap_add(s->a, &m->body_map, h, m->bodies.n);
  *vec_push(s->a, &m->bodies) = b;
  return b;
}

// ---- what the peak is made of -----------------------------------------------------------------------
static void tally(mem *m, origin from, i64 bytes) {
  if (!bytes) return;
  m->kind[from.kind] += bytes;
  u64 h = hash_u64((u64)from.f.i << 32 | from.v, from.kind);
  u32 id = hmap_get(&m->item_map, h);
  if (!id) {
    *vec_push(m->ta, &m->item) = (mem_item){from.f, from.v, from.kind, 0, 0};
    hmap_add(m->ta, &m->item_map, h, id = m->item.n);
  }
  m->item.v[id - 1].bytes += bytes;
  m->item.v[id - 1].count++;
}

// Everything alive on a unit: here, and in the call at hand down to where its peak is.
static void tally_unit(walk *w, u32 unit, const mbody *callee, const instr *i) {
  mem *m = w->m;
  sim *s = m->s;
  for (u32 k = 0; k < w->live.n; k++) {
    const buffer *b = &w->buf.v[w->live.v[k]];
    if (!b->given) tally(m, b->from, size_on(b->size, unit));
  }
  if (!callee) return;
  u32 pos = callee->us->pos[unit], nl = m->params[i->callee.i].nleaf;
  arena_mark_t mark = arena_mark(s->tmp);
  origin *param = ZNEWN(s->tmp, origin, nl);
  mem_kind *ret = NEWN(s->tmp, mem_kind, i->nres);
  for (u32 q = 0; q < nl; q++)
    if (callee->die[q]) param[q] = w->buf.v[only_buffer(w, passed(w, i, q))].from;
  for (u32 r = 0; r < i->nres; r++) ret[r] = kind_of(w, i->res + r, true);
  context cx = {param, ret};
  u32 *ask = ZNEWN(s->tmp, u32, func_get(s->p, i->callee)->body.n + 1),
      *next = ZNEWN(s->tmp, u32, s->nunits + 1);
  ask[pos ? callee->at[pos - 1] : 0] = unit + 1;
  walk sub;
  walk_init(&sub, m, callee->row, callee->used, &cx);
  sub.ask = ask;
  sub.ask_next = next;
  walk_run(&sub, callee->die, false);
  arena_release(s->tmp, mark);
}

static int by_bytes(const void *x, const void *y) {
  const mem_item *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return a->f.i != b->f.i ? (a->f.i < b->f.i ? -1 : 1) : a->v < b->v ? -1 : a->v > b->v;
}

static void tell(walk *w, u32 num, const mbody *callee, const instr *i) {
  mem *m = w->m;
  for (u32 u = w->ask ? w->ask[num] : 0; u; u = w->ask_next[u]) {
    sim_unit *out = m->out ? &m->out[u - 1] : NULL;
    if (w->cx) { // inside a call: one unit, which the caller finishes
      tally_unit(w, u - 1, callee, i);
      continue;
    }
    memset(m->kind, 0, sizeof m->kind);
    m->item.n = 0;
    m->item_map = (hmap){0};
    tally_unit(w, u - 1, callee, i);
    memcpy(out->peak_kind, m->kind, sizeof m->kind);
    if (m->item.n) qsort(m->item.v, m->item.n, sizeof *m->item.v, by_bytes);
    out->ntop = MIN(m->item.n, m->s->o->top ? m->s->o->top : 10);
    out->top = arena_dup(m->s->a, m->item.v, out->ntop * sizeof *out->top);
    i64 sum = 0;
    for (u32 k = 0; k < MEM_KINDS; k++) sum += m->kind[k];
    assert(sum == out->peak_bytes);
  }
}

// ---- the whole --------------------------------------------------------------------------------------
static void open_params(mem *m) {
  sim *s = m->s;
  m->params = ZNEWN(s->a, param_leaves, s->p->funcs.n);
  for (u32 k = 1; k < s->priced.n; k++) {
    const func_info *f = func_get(s->p, s->priced.v[k].f);
    param_leaves *x = &m->params[s->priced.v[k].f.i];
    if (x->begin) continue;
    u32 *begin = ZNEWN(s->a, u32, f->nparams + 1);
    for (u32 j = 0; j < f->nparams; j++)
      begin[j + 1] = begin[j] + leaves_of(s->p, f->values.v[j + 1].ty, NULL);
    u32 n = begin[f->nparams], *param = NEWN(s->a, u32, n);
    type *leaf = NEWN(s->a, type, n);
    for (u32 j = 0; j < f->nparams; j++) {
      leaves_of(s->p, f->values.v[j + 1].ty, leaf + begin[j]);
      for (u32 q = begin[j]; q < begin[j + 1]; q++) param[q] = j;
    }
    *x = (param_leaves){f->nparams, n, leaf, begin, param};
  }
}

void bytes_run(sim *s, sim_result *r) {
  mem m = {.s = s, .distir = s->o->bytes == SIM_BYTES_DISTIR, .ta = arena_new(), .out = r->unit};
  m.round = m.distir ? 1 : s->round;
  m.latest = ZNEWN(s->a, const mbody *, s->priced.n);
  s->lives = ZNEWN(s->a, const life *, s->p->funcs.n);
  s->life_flags = ZNEWN(s->a, u8, s->p->funcs.n);
  m.near = ZNEWN(s->a, const msize *, s->p->types.n);
  m.near_g = ZNEWN(s->a, group, s->p->types.n);
  open_params(&m);
  arena_mark_t mark = arena_mark(s->tmp);
  walk w;
  walk_init(&w, &m, 1, NULL, NULL);
  u32 n = w.f->body.n, *ask = ZNEWN(s->tmp, u32, n + 1), *next = ZNEWN(s->tmp, u32, s->nunits + 1);
  walk_run(&w, NULL, true);
  for (u32 u = 0; u < s->nunits; u++) {
    r->unit[u].peak_bytes = w.peak[u];
    r->unit[u].peak_at = w.at[u];
    next[u + 1] = ask[w.at[u]];
    ask[w.at[u]] = u + 1;
  }
  if (!s->o->peak_only) {
    walk again;
    walk_init(&again, &m, 1, NULL, NULL);
    again.ask = ask;
    again.ask_next = next;
    walk_run(&again, NULL, true);
  }
  arena_release(s->tmp, mark);
  arena_free(m.ta);
}
