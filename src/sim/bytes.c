// bytes.c - memory of every rank class along its issue order: a function on a group as (peak, net), one walk over a
// function. Not time: an allocator sees the order of instructions, not the clock. Nor what the peak is made of (peak.c).
//
// Idea: a step is (peak, net), and (p1,n1) then (p2,n2) is (max(p1, n1+p2), n1+n2). So a function on a group
// is one such pair for every rank class, kept by which arguments die in it and which results are used.
#include "sim/heap.h"

// ---- sizes ------------------------------------------------------------------------------------------
static u32 size_intern(mem *m, msize z) {              // its number + 1
  u64 h = hash_u64((u64)z.even, (u64)(uintptr_t)z.cs); // for looking up only: results do not depend on it
  if (z.per) h = hash_bytes(z.per, z.cs->n * sizeof *z.per, h);
  for (u32 it = 0, id; hmap_next(&m->size_map, h, &it, &id);) {
    const msize *x = m->sizes.v[id];
    if (x->cs != z.cs || x->even != z.even || !x->per != !z.per) continue;
    if (!z.per || memcmp(x->per, z.per, z.cs->n * sizeof *z.per) == 0) return id + 1;
  }
  hmap_add(m->s->a, &m->size_map, h, m->sizes.n);
  *vec_push(m->s->a, &m->sizes) = arena_dup(m->s->a, &z, sizeof z);
  return m->sizes.n;
}

static const msize *size_of(mem *m, type t, group call) {
  sim *s = m->s;
  if (m->near[t.i] && m->near_g[t.i].i == call.i) return m->near[t.i];
  const type_info *ti = type_get(s->p, t);
  group g = group_bind(ti->g, call);
  m->near_g[t.i] = call;
  u64 h = hash_u64((u64)t.i << 32 | g.i, 11);
  u32 known = hmap_get(&m->size_by_type, h);
  if (known) return m->near[t.i] = m->sizes.v[known - 1];
  const members *pl = members_of(s, g);
  msize z = {.cs = pl->cs};
  if (layout_is_even(s->p->sp, ti->lay))
    z.even = ceil_div(local_bytes(s, ti, g, 0), s->round) * s->round;
  else {
    i64 *per = NEWN(s->a, i64, pl->cs->n);
    for (u32 k = 0; k < pl->cs->n; k++)
      per[k] = ceil_div(local_bytes(s, ti, g, pl->member[k]), s->round) * s->round;
    z.per = per;
  }
  hmap_add(s->a, &m->size_by_type, h, known = size_intern(m, z));
  return m->near[t.i] = m->sizes.v[known - 1];
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

static const msize *sum_of(arena *a, const part *own, u32 n) {
  if (n == 1) return own->size;
  msize *z = NEW(a, msize);
  i64 *per = NULL;
  z->cs = own->size->cs;
  for (u32 k = 0; k < n; k++) {
    const msize *x = own[k].size;
    if (x->per && !per) z->per = per = ZNEWN(a, i64, z->cs->n);
    if (!x->per) z->even += x->even * (1 + own[k].more);
    for (u32 u = 0; x->per && u < z->cs->n; u++) per[u] += x->per[u] * (1 + own[k].more);
  }
  for (u32 u = 0; per && u < z->cs->n; u++) per[u] += z->even;
  return z;
}

// ---- instructions -----------------------------------------------------------------------------------
// The caller knows better what a result is, unless it is nothing special there.
mem_kind walk_kind(const walk *w, value v, bool is_call) {
  if (!w->l->flags) return MEM_TEMP; // nobody asks for kinds
  u32 ret = w->l->ret[v];
  mem_kind k = ret && w->cx ? w->cx->ret[ret - 1] : MEM_TEMP;
  return k != MEM_TEMP ? k : life_kind(w->l, v, is_call);
}

// Values that are packed for good become one bundle: each a buffer that nothing else holds, used for the last
// time.
static bool bundle_operands(walk *w, const instr *i, u32 n, u32 num) {
  heap *h = &w->h;
  const class_set *cs = NULL;
  for (u32 k = 0; k < n; k++) {
    value v = opd_of(w->f, i, k);
    u32 b = heap_whole(h, v);
    buffer *x = b == NO_BUFFER ? NULL : heap_at(h, b);
    if (!x || x->parts || x->refs != 1 || !x->owned || x->lent || !x->live) return false;
    if (w->last[v] != num || x->seen == num || (cs && cs != x->size->cs)) return false;
    cs = x->size->cs;
    x->seen = num; // a value that is packed twice is found here
    x->times = 0;
  }
  return n > 1;
}

static void hold_bundle(walk *w, const instr *i, u32 n) {
  heap *h = &w->h;
  part *parts = NEWN(w->m->s->a, part, n); // stays: mem.fitted knows it by its address
  for (u32 k = 0; k < n; k++) {
    u32 b = heap_whole(h, opd_of(w->f, i, k));
    parts[k] = (part){heap_at(h, b)->size, heap_at(h, b)->from, heap_at(h, b)->more};
    heap_gone(h, b); // the bundle stands for it
  }
  u32 x = heap_new(h, sum_of(w->m->s->a, parts, n), (origin){.kind = MEM_TEMP});
  heap_at(h, x)->parts = parts;
  heap_at(h, x)->nparts = n;
  heap_be(h, i->res, x);
}

// Views share; joins hold everything they are made of.
static void hold_view(walk *w, const instr *i, u32 n, u32 num) {
  heap *h = &w->h;
  u32 from = 0;
  if (i->op == OP_pack && bundle_operands(w, i, n, num)) {
    hold_bundle(w, i, n);
    return;
  }
  if (n == 1 && i->op != OP_pack && i->op != OP_unpack) {
    heap_share(h, i->res, opd_of(w->f, i, 0));
    return;
  }
  for (u32 k = 0; k < n; k++) heap_leaves(h, opd_of(w->f, i, k));
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    u32 leaves = leaves_of(w->m->s->p, w->f->values.v[v].ty, NULL);
    heap_begin(h, v);
    if (i->op == OP_pack)
      for (u32 k = 0; k < n; k++) {
        span x = h->val[opd_of(w->f, i, k)];
        for (u32 q = 0; q < x.n; q++) heap_copy_leaf(h, x.begin + q);
      }
    else if (i->op == OP_unpack) {
      span x = h->val[opd_of(w->f, i, 0)];
      for (u32 q = 0; q < leaves && from < x.n; q++) heap_copy_leaf(h, x.begin + from++);
    } else
      for (u32 q = 0; q < leaves; q++) {
        heap_leaf(h);
        for (u32 k = 0; k < n; k++) {
          span x = h->val[opd_of(w->f, i, k)];
          if (q >= x.n) continue;
          span l = h->leaf.v[x.begin + q];
          for (u32 j = 0; j < l.n; j++) heap_hold(h, h->pool.v[l.begin + j]);
        }
      }
    heap_end(h, v);
  }
}

// Does what the instruction makes lie in host memory?
static bool is_to_host(const sim *s, const instr *i) {
  if (i->flags & INSTR_HOST) return true;
  const attr *to = i->op == OP_copy ? attr_get(attrs_get(s->p, i->at), A_to) : NULL;
  return to && strcmp(sym_str(s->c, to->u.s), "host") == 0;
}

static bool takes_no_room(const walk *w, const instr *i) {
  const bool there = is_to_host(w->m->s, i);
  if (w->m->host || there) return w->m->host != there;
  // distir: updates are in place; the first gradient is the accumulator, where a plan has a zero.
  bool update = i->flags & INSTR_UPDATE && !(op_row_of(i->op)->flags & OPF_COMM);
  return w->m->distir && (update || (i->op == OP_full && i->flags & INSTR_BACKWARD));
}

// Does result r take operand k over? Nothing else must hold that. What is not donated must not be a parameter of main.
static bool takes_over(walk *w, const instr *i, u32 r, u32 k) {
  heap *h = &w->h;
  const bool donated = opd_donated(w->f, i, k);
  const u32 whole = heap_whole(h, opd_of(w->f, i, k));
  if (whole != NO_BUFFER && heap_at(h, whole)->parts) return false;
  const span x = heap_leaves(h, opd_of(w->f, i, k)), l = x.n == 1 ? h->leaf.v[x.begin] : (span){0};
  for (u32 j = 0; j < l.n; j++) {
    const u32 b = h->pool.v[l.begin + j];
    if (heap_at(h, b)->parts || !heap_free_to_give(h, b) || (!donated && heap_at(h, b)->lent)) return false;
  }
  return l.n && heap_leaf_is(h, l, size_of(w->m, w->f->values.v[i->res + r].ty, w->g));
}

static void take_over(walk *w, const instr *i, u32 r, u32 k, origin from) {
  heap *h = &w->h;
  const span x = heap_leaves(h, opd_of(w->f, i, k));
  heap_continue(h, i->res + r, h->leaf.v[x.begin], from);
}

bool mem_uses_host(const sim *s) {
  for (u32 k = 0; k < s->main->nparams; k++)
    if (s->main->params.v[k].host) return true;
  for (u32 k = 1; k < s->priced.n; k++) {
    const func_info *f = func_get(s->p, s->priced.v[k].f);
    for (u32 j = 0; j < f->body.n; j++)
      if (is_to_host(s, &f->body.v[j])) return true;
  }
  return false;
}

static void make_results(walk *w, const instr *i, u32 num) {
  heap *h = &w->h;
  bool nothing = takes_no_room(w, i);
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    u32 b = NO_BUFFER;
    origin from = {w->fn, v, walk_kind(w, v, false)};
    const u32 k = nothing || w->m->distir ? LIVE_NOWHERE : live_taken(w->f, i, w->last, r);
    if (k != LIVE_NOWHERE && takes_over(w, i, r, k)) {
      take_over(w, i, r, k, from);
      continue;
    }
    if (!nothing) {
      const msize *z = size_of(w->m, w->f->values.v[v].ty, w->g);
      b = heap_new(h, z, from);
      heap_at(h, b)->more = w->more;
      heap_take(h, z, 1 + w->more);
    }
    if (b != NO_BUFFER)
      heap_be(h, v, b);
    else {
      heap_begin(h, v);
      heap_leaf(h);
      heap_end(h, v);
    }
  }
  for (u32 r = 0; r < i->nres; r++) {
    u32 b = heap_whole(h, i->res + r);
    if (b != NO_BUFFER) heap_see_peak(h, heap_at(h, b)->size, num);
  }
}

static void step(walk *w, const instr *i, u32 num) {
  heap *h = &w->h;
  u32 n = instr_nopd(w->f, i), flags = op_row_of(i->op)->flags;
  bool view = flags & (OPF_META | OPF_VIEW);
  if (w->m->distir) view = flags & OPF_META && i->op != OP_join; // its Concat copies
  if (view) hold_view(w, i, n, num);                             // before anything is let go: a view keeps it
  heap_let_operands_go(h, i, n, w->last, num, !w->m->distir);
  if (!view) {
    make_results(w, i, num);
    if (w->ask) walk_tell(w, num, NULL, NULL);
  }
  for (u32 r = 0; r < i->nres && (view || !w->m->distir); r++) // distir: what is not used is never freed
    if (w->last[i->res + r] == num) heap_let_go(h, i->res + r, num);
  heap_free_dying(h);
}

// ---- calls ------------------------------------------------------------------------------------------
static const mbody *body_of(mem *m, u32 row, const u8 *die, const u8 *used);

// May the callee have buffer b? Nothing else may hold it, and it must not be passed twice.
static bool may_give(const walk *w, u32 b) {
  const buffer *x = heap_at(&w->h, b);
  return x->owned && !x->lent && x->live && !x->refs && x->times == 1 && (!x->more || w->m->s->spans);
}

// Is it as large as the parameter leaves that it is passed as?
static bool size_fits(mem *m, const buffer *b, const msize *const *want) {
  if (!b->parts) return b->size == *want;
  u64 slot = hash_u64((u64)(uintptr_t)b->parts, (u64)(uintptr_t)want) % COUNT_OF(m->fitted);
  if (m->fitted[slot].parts == b->parts && m->fitted[slot].want == want) return true;
  for (u32 k = 0; k < b->nparts; k++)
    if (b->parts[k].size != want[k]) return false;
  m->fitted[slot].parts = b->parts;
  m->fitted[slot].want = want;
  return true;
}

static const msize *const *param_sizes(mem *m, u32 row) {
  const msize **z = m->param_size[row];
  if (z) return z;
  const param_leaves *sp = &m->params[m->s->priced.v[row].f.i];
  z = m->param_size[row] = NEWN(m->s->a, const msize *, sp->nleaf);
  for (u32 q = 0; q < sp->nleaf; q++) z[q] = size_of(m, sp->leaf[q], m->s->priced.v[row].g);
  return z;
}

// How a leaf that stands for `more` others dies in a call: 1 alone, 2 + k with mem.more[k] others. Alone where each of the
// others has a call like this one: in a stretch, and in a function with stretches (heap.owed). Updates free as much as
// there is: one that begins in a layer which stands for others comes as often, with the end of that layer and the
// beginning of the next (updated_alike in plan/probe.c sees to it).
static u8 die_as(walk *w, const instr *i, u32 more) {
  mem *m = w->m;
  u32 k = 0;
  if (!more || w->h.owed || (i->flags & INSTR_UPDATE && !m->s->spans[i->callee.i].n)) return 1;
  while (k < m->more.n && m->more.v[k] != more) k++;
  if (k == m->more.n) *vec_push(m->s->a, &m->more) = more;
  m->odd |= 2 + k > UINT8_MAX;
  return (u8)(2 + k);
}

static bool leaf_fits(const walk *w, span l, const msize *want) {
  const u32 *b = w->h.pool.v + l.begin;
  for (u32 j = 0; j < l.n; j++)
    if (!may_give(w, b[j]) || heap_at(&w->h, b[j])->parts ||
        heap_at(&w->h, b[j])->more != heap_at(&w->h, *b)->more)
      return false;
  return heap_leaf_is(&w->h, l, want);
}

static void give_leaf(walk *w, const instr *i, span l, const msize *const *want, u32 q) {
  heap *h = &w->h;
  if (!leaf_fits(w, l, want[q])) return;
  w->die.v[q] = die_as(w, i, heap_at(h, h->pool.v[l.begin])->more);
  for (u32 j = 0; j < l.n; j++) *vec_push(h->a, &w->given) = h->pool.v[l.begin + j];
}

// Which parameter leaves die in the call; their buffers are marked as given.
static void give(walk *w, const instr *i, u32 row, u32 num) {
  heap *h = &w->h;
  const param_leaves *sp = &w->m->params[i->callee.i];
  const msize *const *want = param_sizes(w->m, row);
  memset(w->die.v, 0, sp->nleaf);
  w->given.n = 0;
  for (u32 k = 0; k < sp->nparam; k++) {
    value v = opd_of(w->f, i, k);
    if (h->gone[v] != num) continue;
    u32 b = heap_whole(h, v), q = sp->begin[k];
    if (b != NO_BUFFER && !may_give(w, b)) continue; // nor any part of it
    if (b != NO_BUFFER && size_fits(w->m, heap_at(h, b), want + q)) {
      for (u32 j = 0; j < heap_parts(heap_at(h, b)); j++)
        w->die.v[q + j] = die_as(w, i, heap_part_more(heap_at(h, b), j));
      *vec_push(h->a, &w->given) = b;
      continue;
    }
    span x = heap_leaves(h, v);
    for (u32 j = 0; j < x.n; j++) give_leaf(w, i, h->leaf.v[x.begin + j], want, q + j);
  }
  for (u32 k = 0; k < w->given.n; k++) heap_at(h, w->given.v[k])->given = true;
}

u32 walk_passed(walk *w, const instr *i, u32 q) {
  const param_leaves *sp = &w->m->params[i->callee.i];
  u32 k = sp->param[q];
  return heap_leaves(&w->h, opd_of(w->f, i, k)).begin + q - sp->begin[k];
}

static void hold_results(walk *w, const instr *i, const mbody *b) {
  heap *h = &w->h;
  u32 few[64], *made = b->nown <= COUNT_OF(few) ? few : NEWN(h->a, u32, b->nown); // of this call
  for (u32 k = 0; b->mixed && k < b->nown; k++) made[k] = NO_BUFFER;
  for (u32 r = 0; r < i->nres; r++) {
    value v = i->res + r;
    const mres *res = &b->res[r];
    mem_kind kind = walk_kind(w, v, true);
    if (res->form == RES_PARAM) heap_share(h, v, opd_of(w->f, i, res->k));
    if (res->form == RES_OWN) {
      origin from = res->nleaf == 1 ? b->own[res->k].from : (origin){.kind = MEM_TEMP};
      if (kind != MEM_TEMP) from.kind = kind;
      u32 x = heap_new(h, res->size, from);
      heap_at(h, x)->parts = res->nleaf == 1 ? NULL : b->own + res->k;
      heap_at(h, x)->nparts = res->nleaf;
      if (res->nleaf == 1)
        heap_at(h, x)->more = (1 + b->own[res->k].more) * (1 + w->more) - 1;
      else if (w->more)
        w->m->odd = true;
      heap_be(h, v, x);
    }
    if (res->form != RES_MIXED) continue;
    for (u32 q = res->leaf0; q < res->leaf0 + res->nleaf; q++) // opens bundles, before leaves are added
      for (u32 j = b->held_begin[q]; j < b->held_begin[q + 1]; j++)
        if (!b->held[j].own) walk_passed(w, i, b->held[j].k);
    heap_begin(h, v);
    for (u32 q = res->leaf0; q < res->leaf0 + res->nleaf; q++) {
      heap_leaf(h);
      for (u32 j = b->held_begin[q]; j < b->held_begin[q + 1]; j++) {
        held_by x = b->held[j];
        if (!x.own) {
          span l = h->leaf.v[walk_passed(w, i, x.k)];
          for (u32 y = 0; y < l.n; y++) heap_hold(h, h->pool.v[l.begin + y]);
          continue;
        }
        if (made[x.k] == NO_BUFFER) {
          origin from = b->own[x.k].from;
          if (kind != MEM_TEMP) from.kind = kind;
          made[x.k] = heap_new(h, b->own[x.k].size, from);
          heap_at(h, made[x.k])->more = (1 + b->own[x.k].more) * (1 + w->more) - 1;
        }
        heap_hold(h, made[x.k]);
      }
    }
    heap_end(h, v);
  }
}

// more: so many times more, one after the other.
static void add_body(heap *h, const mbody *b, u32 num, u32 more) {
  for (u32 k = 0; k < b->cs->n; k++) {
    u32 u = b->cs->cls[k];
    const i64 rise = MAX(b->net[k], 0) * more; // before the one with the highest peak
    if (h->cur[u] + rise + b->peak[k] > h->peak[u]) {
      h->peak[u] = h->cur[u] + rise + b->peak[k];
      h->at[u] = num;
    }
    h->cur[u] += b->net[k] * (1 + more);
    h->touched[u] = 1;
  }
}

static void drop_given(heap *h, u32 b) { // after the call, which has freed it unless a result holds it
  heap_at(h, b)->given = false;
  if (heap_at(h, b)->refs || !heap_at(h, b)->live) return;
  heap_note_freed(h, b);
  heap_gone(h, b);
  heap_recycle(h, b);
}

static void step_call(walk *w, const instr *i, u32 num) {
  mem *m = w->m;
  heap *h = &w->h;
  const param_leaves *sp = &m->params[i->callee.i];
  u32 row = w->rows[num - 1];
  vec_reserve(h->a, &w->die, sp->nleaf + 1);
  heap_let_operands_go(h, i, sp->nparam, w->last, num, !m->distir);
  give(w, i, row, num);
  for (u32 r = 0; r < i->nres; r++) w->used[r] = m->distir || w->last[i->res + r] != num;
  const mbody *b = m->latest[row];
  if (!b || memcmp(b->die, w->die.v, sp->nleaf) != 0 || memcmp(b->used, w->used, i->nres) != 0)
    b = m->latest[row] = body_of(m, row, w->die.v, w->used);
  if (w->ask) walk_tell(w, num, b, i);
  add_body(h, b, num, w->more);
  hold_results(w, i, b);
  for (u32 k = 0; k < w->given.n; k++) {
    u32 x = w->given.v[k], n = heap_at(h, x)->opened ? heap_at(h, x)->nparts : 0;
    drop_given(h, x);
    for (u32 j = 0; j < n; j++) drop_given(h, heap_only(h, heap_at(h, x)->opened - 1 + j));
  }
  heap_free_dying(h);
}

// ---- results that callers hold ----------------------------------------------------------------------
// The result is all leaves of parameter p as they came: p + 1; else 0.
static u32 whole_param(const param_leaves *sp, const mres *r, const u32 *held_begin, const held_by *held) {
  if (!r->nleaf || !sp->nleaf || !held) return 0;
  for (u32 q = 0, first = held_begin[r->leaf0]; q < r->nleaf; q++) {
    u32 at = held_begin[r->leaf0 + q];
    if (held_begin[r->leaf0 + q + 1] != at + 1 || held[at].own || held[at].k != held[first].k + q) return 0;
  }
  u32 k = held[held_begin[r->leaf0]].k, p = sp->param[k];
  return sp->begin[p] == k && sp->begin[p + 1] == k + r->nleaf ? p + 1 : 0;
}

// All leaves of the result are new buffers, next to each other, that nothing else holds.
static bool is_own(const mres *r, const u32 *held_begin, const held_by *held, const part *own,
                   const u32 *holds) {
  u32 first = held_begin[r->leaf0];
  if (!held) return false;
  for (u32 q = 0; q < r->nleaf; q++) {
    u32 at = held_begin[r->leaf0 + q];
    if (held_begin[r->leaf0 + q + 1] != at + 1 || !held[at].own || held[at].k != held[first].k + q)
      return false;
    if (holds[held[at].k] != 1 || own[held[at].k].size->cs != own[held[first].k].size->cs) return false;
  }
  return r->nleaf > 0;
}

static void keep_results(walk *w, mbody *b) {
  arena *a = w->m->s->a, *tmp = w->m->s->tmp;
  heap *h = &w->h;
  const func_info *f = w->f;
  const param_leaves *sp = &w->m->params[w->fn.i];
  VEC(u32) begin = {0}, holds = {0};
  VEC(held_by) held = {0};
  VEC(part) own = {0};
  mres *res = ZNEWN(a, mres, f->rets.n);
  for (u32 k = 0; k < f->rets.n; k++)
    if (b->used[k]) heap_leaves(h, f->rets.v[k]);
  u32 *number = ZNEWN(tmp, u32, h->nbuf);
  for (u32 k = 0; k < f->rets.n; k++) {
    span x = h->val[f->rets.v[k]];
    res[k].leaf0 = begin.n;
    res[k].nleaf = b->used[k] ? x.n : 0;
    for (u32 q = x.begin; q < x.begin + res[k].nleaf; q++) {
      *vec_push(a, &begin) = held.n;
      for (u32 j = 0; j < h->leaf.v[q].n; j++) {
        u32 id = h->pool.v[h->leaf.v[q].begin + j];
        bool mine = id >= sp->nleaf;
        if (mine && !number[id]) {
          *vec_push(a, &own) = (part){heap_at(h, id)->size, heap_at(h, id)->from, heap_at(h, id)->more};
          *vec_push(tmp, &holds) = 0;
          number[id] = own.n;
        }
        *vec_push(a, &held) = (held_by){mine, mine ? number[id] - 1 : id};
        if (mine) holds.v[number[id] - 1]++;
      }
    }
  }
  *vec_push(a, &begin) = held.n;
  for (u32 k = 0; k < f->rets.n; k++) {
    u32 p = whole_param(sp, &res[k], begin.v, held.v);
    if (p)
      res[k] = (mres){.form = RES_PARAM, .k = p - 1};
    else if (is_own(&res[k], begin.v, held.v, own.v, holds.v)) {
      res[k].form = RES_OWN;
      res[k].k = held.v[begin.v[res[k].leaf0]].k;
      res[k].size = sum_of(a, own.v + res[k].k, res[k].nleaf);
    }
  }
  for (u32 k = 0; k < f->rets.n; k++) b->mixed |= res[k].form == RES_MIXED;
  b->res = res;
  b->held_begin = begin.v;
  b->held = held.v;
  b->own = own.v;
  b->nown = own.n;
}

// ---- walks ------------------------------------------------------------------------------------------
static void add_params(walk *w, const u8 *die, bool is_main) {
  mem *m = w->m;
  heap *h = &w->h;
  const param_leaves *sp = &m->params[w->fn.i];
  for (u32 k = 0, leaf = 0; k < sp->nparam; k++) {
    bool whole = sp->begin[k + 1] == sp->begin[k] + 1;
    if (!whole) heap_begin(h, k + 1);
    for (; leaf < sp->begin[k + 1]; leaf++) {
      const msize *z = size_of(m, sp->leaf[leaf], w->g);
      origin from = w->cx ? w->cx->param[leaf] : (origin){w->fn, k + 1, MEM_ACT};
      if (is_main) {
        role r = w->f->params.v[k].r;
        from.kind = r == ROLE_WEIGHT || r == ROLE_CONST ? MEM_PARAM : r == ROLE_STATE ? MEM_STATE : MEM_ACT;
      }
      u32 b = heap_new(h, z, from);
      const bool there = is_main && w->f->params.v[k].host;
      if (is_main ? there != m->host : !die[leaf]) { // the caller's, or in the other memory
        heap_at(h, b)->owned = false;
        heap_gone(h, b);
      } else if (!is_main && die[leaf] > 1) {
        heap_at(h, b)->more = m->more.v[die[leaf] - 2];
      }
      if (is_main && there == m->host) {
        heap_at(h, b)->lent = true;
        if (m->s->spans) heap_at(h, b)->more = m->s->pipeline->param_more[k];
        heap_take(h, z, 1 + heap_at(h, b)->more);
      }
      if (whole)
        heap_be(h, k + 1, b);
      else {
        heap_leaf(h);
        heap_hold(h, b);
      }
    }
    if (!whole) heap_end(h, k + 1);
  }
  h->nparam = h->nbuf;
  for (u32 b = 0; is_main && b < h->nbuf; b++)
    if (heap_at(h, b)->live) heap_see_peak(h, heap_at(h, b)->size, 0);
}

void walk_init(walk *w, mem *m, u32 row, const u8 *used, const context *cx) {
  sim *s = m->s;
  const priced *pr = &s->priced.v[row];
  const func_info *f = func_get(s->p, pr->f);
  *w = (walk){.m = m, .fn = pr->f, .f = f, .g = pr->g, .rows = pr->ev, .l = life_of(s, pr->f), .cx = cx};
  w->last = w->l->when.last;
  heap_init(&w->h, s->tmp, f, s->nclasses);
  u32 most = 0, *last = NULL;
  for (u32 k = 0; k < f->body.n; k++) most = MAX(most, f->body.v[k].nres);
  w->used = NEWN(s->tmp, u8, most);
  for (u32 k = 0; used && k < f->rets.n; k++) {
    if (used[k]) continue;
    if (!last) w->last = last = arena_dup(s->tmp, w->l->when.last, f->values.n * sizeof *last);
    last[f->rets.v[k]] = w->l->when.inside[f->rets.v[k]];
  }
  for (u32 k = 0; last && k < f->rets.n; k++) // returned twice, used once
    if (used[k]) last[f->rets.v[k]] = LIVE_RETURNED;
}

static void walk_begin(walk *w, const u8 *die, bool is_main) {
  add_params(w, die, is_main);
  if (is_main) w->start = arena_dup(w->h.a, w->h.cur, w->m->s->nclasses * sizeof *w->start);
  if (w->ask) walk_tell(w, 0, NULL, NULL);
  for (u32 k = 1; k <= w->f->nparams; k++)
    if (!w->last[k]) heap_let_go(&w->h, k, 0);
  heap_free_dying(&w->h);
}

void walk_open_main(walk *w) { walk_begin(w, NULL, true); }

void walk_step(walk *w, u32 k) {
  w->more = w->m->s->spans && w->fn.i == w->m->s->p->main.i ? w->m->s->pipeline->main_more[k] : 0;
  if (w->f->body.v[k].op == OP_call)
    step_call(w, &w->f->body.v[k], k + 1);
  else
    step(w, &w->f->body.v[k], k + 1);
}

// ---- stretches that stand for others ------------------------------------------------------------------
typedef struct {
  i64 *cur, *peak; // by rank class: when it began, then what it added and how high it rose
  i64 *kept;       // bytes of what it leaves behind for more than the next stretch
  i64 *freed;      // of parameters that went in it
} stretch;

static void stretch_begin(walk *w, stretch *x) {
  heap *h = &w->h;
  const size_t n = w->m->s->nclasses * sizeof *h->cur;
  *x = (stretch){arena_dup(h->a, h->cur, n), arena_dup(h->a, h->peak, n), ZNEWN(h->a, i64, w->m->s->nclasses),
                 ZNEWN(h->a, i64, w->m->s->nclasses)};
  h->freed = x->freed;
  memcpy(h->peak, h->cur, n);
  h->inside = true;
  for (u32 k = 0; k < h->live.n; k++) heap_at(h, h->live.v[k])->old = true;
}

static void stretch_end(walk *w, stretch *x, u8 by, u32 more) {
  heap *h = &w->h;
  assert(x->cur && x->peak); // it has begun
  h->inside = false;
  for (u32 k = 0; k < h->live.n; k++) {
    buffer *b = heap_at(h, h->live.v[k]);
    if (!b->old) b->by = by;
  }
  for (u32 u = 0; u < w->m->s->nclasses; u++) {
    h->owed[u] -= x->freed[u] * more;
    const i64 net = h->cur[u] - x->cur[u], rise = h->peak[u] - x->cur[u];
    h->peak[u] = MAX(x->peak[u], h->peak[u] + MAX(net, 0) * more);
    h->cur[u] += net * more;
    x->cur[u] = net, x->peak[u] = rise;
  }
}

// What it made and is still there when the next one has ended is there once for every other one, too.
static void stretch_keep(walk *w, stretch *x, u8 by, u32 more) {
  heap *h = &w->h;
  assert(x->kept);
  for (u32 k = 0; k < h->live.n; k++) {
    buffer *b = heap_at(h, h->live.v[k]);
    if (b->by != by) continue;
    b->by = 0, b->more = more;
    for (u32 u = 0; u < b->size->cs->n; u++)
      x->kept[b->size->cs->cls[u]] += b->size->per ? b->size->per[u] : b->size->even;
  }
}

// And nothing goes through more than the next one: all that a stretch adds is what it leaves behind.
static bool same_bytes(const mem *m, const stretch *x, const stretch *y) {
  const size_t n = m->s->nclasses * sizeof *x->cur;
  assert(x->cur && y->cur);
  for (u32 u = 0; u < m->s->nclasses; u++)
    if (x->cur[u] != x->kept[u] - x->freed[u]) return false;
  return !memcmp(x->cur, y->cur, n) && !memcmp(x->peak, y->peak, n) && !memcmp(x->kept, y->kept, n);
}

static void run_spans(walk *w, const sim_spans *all) {
  const sim_span *x = all->v, *end = all->v + all->n;
  stretch own = {0}, like = {0};
  for (u32 k = 0; k <= w->f->body.n; k++) {
    if (x < end && k == x->from + x->len) stretch_end(w, &own, 1, x->more);
    if (x < end && k == x->like + x->len) stretch_end(w, &like, 2, 0);
    if (x < end && k == x->from + 2 * x->len) stretch_keep(w, &own, 1, x->more);
    if (x < end && k == x->like + 2 * x->len) stretch_keep(w, &like, 2, 0);
    if (x < end && k == MAX(x->from, x->like) + 2 * x->len) w->m->odd |= !same_bytes(w->m, &own, &like), x++;
    if (x < end && k == x->from) stretch_begin(w, &own);
    if (x < end && k == x->like) stretch_begin(w, &like);
    if (k < w->f->body.n) walk_step(w, k);
  }
  w->m->odd |= x < end; // the next one has no end
  for (u32 u = 0; u < w->m->s->nclasses; u++) w->m->odd |= w->h.owed[u] != 0;
}

void walk_run(walk *w, const u8 *die, bool is_main) {
  const sim_spans *all = w->m->s->spans ? &w->m->s->spans[w->fn.i] : NULL;
  if (all && all->n) w->h.owed = ZNEWN(w->h.a, i64, w->m->s->nclasses);
  walk_begin(w, die, is_main);
  u32 n = w->ask ? w->until : w->f->body.n;
  if (all && all->n) {
    run_spans(w, all);
    return;
  }
  for (u32 k = 0; k < n; k++) walk_step(w, k);
}

// Does all of a function live on the group that it is called on, in even pieces? Then it takes the same bytes
// everywhere.
static bool is_portable(mem *m, func fn) {
  u8 *known = &m->portable[fn.i];
  if (*known) return *known == 1;
  const func_info *f = func_get(m->s->p, fn);
  bool is = true;
  for (u32 v = 1; v < f->values.n && is; v++) {
    const type_info *t = type_get(m->s->p, f->values.v[v].ty);
    is = t->tuple ||
         (!t->g.i && layout_is_even(m->s->p->sp, t->lay)); // a tuple's elements are values elsewhere
  }
  for (u32 k = 0; k < m->params[fn.i].nleaf && is; k++) {
    const type_info *t = type_get(m->s->p, m->params[fn.i].leaf[k]);
    is = !t->g.i && layout_is_even(m->s->p->sp, t->lay);
  }
  for (u32 k = 0; k < f->body.n && is; k++)
    is = !f->body.v[k].g.i && (f->body.v[k].op != OP_call || is_portable(m, f->body.v[k].callee));
  *known = is ? 1 : 2;
  return is;
}

// The body of a row made from that of the same function elsewhere; NULL if there is none.
static mbody *body_elsewhere(mem *m, u32 row, const u8 *die, const u8 *used) {
  sim *s = m->s;
  func fn = s->priced.v[row].f;
  u32 nl = m->params[fn.i].nleaf, nr = func_get(s->p, fn)->rets.n, n;
  const mbody *like = m->first[fn.i];
  if (!like || memcmp(like->die, die, nl) != 0 || memcmp(like->used, used, nr) != 0) return NULL;
  mbody *b = arena_dup(s->a, like, sizeof *like);
  b->row = row;
  b->cs = members_of(s, s->priced.v[row].g)->cs;
  n = b->cs->n;
  i64 *peak = NEWN(s->a, i64, n), *net = NEWN(s->a, i64, n);
  u32 *at = NEWN(s->a, u32, n);
  for (u32 k = 0; k < n; k++) {
    peak[k] = like->peak[0];
    net[k] = like->net[0];
    at[k] = like->at[0];
  }
  part *own = NEWN(s->a, part, b->nown);
  for (u32 k = 0; k < b->nown; k++) {
    u32 id = size_intern(m, (msize){b->cs, like->own[k].size->even, NULL}); // may move m->sizes
    own[k] = (part){m->sizes.v[id - 1], like->own[k].from, like->own[k].more};
  }
  mres *res = arena_dup(s->a, like->res, nr * sizeof *res);
  for (u32 k = 0; k < nr; k++)
    if (res[k].form == RES_OWN) res[k].size = sum_of(s->a, own + res[k].k, res[k].nleaf);
  b->peak = peak;
  b->net = net;
  b->at = at;
  b->own = own;
  b->res = res;
  return b;
}

static const mbody *body_of(mem *m, u32 row, const u8 *die, const u8 *used) {
  sim *s = m->s;
  func fn = s->priced.v[row].f;
  u32 nl = m->params[fn.i].nleaf, nr = func_get(s->p, fn)->rets.n, n = 0;
  u64 hash = hash_bytes(used, nr, hash_bytes(die, nl, row));
  for (u32 it = 0, id; hmap_next(&m->body_map, hash, &it, &id);) {
    const mbody *b = m->bodies.v[id];
    if (b->row == row && memcmp(b->die, die, nl) == 0 && memcmp(b->used, used, nr) == 0) return b;
  }
  mbody *b = body_elsewhere(m, row, die, used);
  if (b) {
    hmap_add(s->a, &m->body_map, hash, m->bodies.n);
    return *vec_push(s->a, &m->bodies) = b;
  }
  b = NEW(s->a, mbody);
  *b = (mbody){.row = row, .die = arena_dup(s->a, die, nl), .used = arena_dup(s->a, used, nr)};
  arena_mark_t mark = arena_mark(s->tmp);
  walk w;
  walk_init(&w, m, row, b->used, NULL);
  walk_run(&w, b->die, false);
  u32 *cls = NEWN(s->tmp, u32, s->nclasses);
  for (u32 u = 0; u < s->nclasses; u++)
    if (w.h.touched[u]) cls[n++] = u;
  i64 *peak = NEWN(s->a, i64, n), *net = NEWN(s->a, i64, n);
  u32 *at = NEWN(s->a, u32, n);
  for (u32 k = 0; k < n; k++) {
    peak[k] = w.h.peak[cls[k]];
    net[k] = w.h.cur[cls[k]];
    at[k] = w.h.at[cls[k]];
  }
  b->cs = class_set_of(s, cls, n);
  b->peak = peak;
  b->net = net;
  b->at = at;
  keep_results(&w, b);
  arena_release(s->tmp, mark);
  hmap_add(s->a, &m->body_map, hash, m->bodies.n);
  *vec_push(s->a, &m->bodies) = b;
  if (b->cs == members_of(s, s->priced.v[row].g)->cs && n && is_portable(m, fn)) m->first[fn.i] = b;
  return b;
}

void mem_init(mem *m, sim *s) {
  *m = (mem){.s = s, .distir = s->o->bytes == SIM_BYTES_DISTIR};
  if (m->distir) s->round = 1;
  m->latest = ZNEWN(s->a, const mbody *, s->priced.n);
  m->near = ZNEWN(s->a, const msize *, s->p->types.n);
  m->near_g = ZNEWN(s->a, group, s->p->types.n);
  m->params = ZNEWN(s->a, param_leaves, s->p->funcs.n);
  m->portable = ZNEWN(s->a, u8, s->p->funcs.n);
  m->first = ZNEWN(s->a, const mbody *, s->p->funcs.n);
  m->param_size = ZNEWN(s->a, const msize **, s->priced.n);
  s->lives = ZNEWN(s->a, const life *, s->p->funcs.n);
  s->life_flags = ZNEWN(s->a, u8, s->p->funcs.n);
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
