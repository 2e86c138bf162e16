// sim.c - random programs: flat = composed = folded = an interpreter that knows no trick, to the picosecond
// and to the byte; and what is said of a run (path, slack, timeline, period) holds.
//
// The interpreter inlines every call, keeps one clock per (rank, stream) and one ready time per (value,
// rank), finds out who meets whom element by element, and counts who holds every buffer.
#include "randprog.h"
#include "sim/sim.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

// Prices from a hash: some zero, some unlike on the members.
static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  world *w = arg;
  u64 h = hash_u64(hash_u64((u64)(i - f->body.v), f->name.i), g.i);
  const group_info *gi = group_get(p->sp, g);
  bool uneven = w->uneven && h % w->uneven == 0;
  for (u32 k = 0; k < (uneven ? gi->nranks : 1); k++) {
    u64 x = hash_u64(h, uneven ? 1 + gi->ranks[k] % 3 : 0);
    ps[k] = x % 7 == 0 ? 0 : (i64)(x % w->range);
    if (w->bump.i && f == func_get(p, w->bump) && i == &f->body.v[w->bump_num - 1]) ps[k] += w->bump_by;
  }
  return uneven ? gi->nranks : 1;
}

// ---- the interpreter that knows no trick ------------------------------------------------------------
typedef struct {
  i64 at[RANKS];
} moment; // per rank
typedef struct {
  world *w;
  i64 clock[RANKS][STREAMS], busy[RANKS][STREAMS], comm[RANKS][STREAMS];
  u64 count;
} naive;

static void raise_to(moment *m, const moment *by) {
  for (u32 r = 0; r < RANKS; r++) m->at[r] = MAX(m->at[r], by->at[r]);
}

static i64 price_on(naive *z, const func_info *f, const instr *i, group g, u32 member) {
  i64 ps[RANKS];
  return ps[price(z->w, z->w->p, f, i, g, ps) == 1 ? 0 : member];
}

// Elements that a member holds, as a bitmap.
static u64 elements(space *sp, const type_info *t, group g, u32 member) {
  coords c;
  i64 row[EXTENT], col[EXTENT];
  coords_of(sp, g, member, NULL, &c);
  i64 nr = layout_index(sp, t->lay, 0, EXTENT, &c, row), nc = layout_index(sp, t->lay, 1, EXTENT, &c, col);
  u64 bits = 0;
  for (i64 x = 0; x < nr; x++)
    for (i64 y = 0; y < nc; y++) bits |= (u64)1 << (row[x] * EXTENT + col[y]);
  return bits;
}

typedef struct {
  u32 meet[RANKS];   // the rendezvous that a rank is in, named by its lowest rank; ~0 = none
  bool gives[RANKS]; // whose price counts
  bool linked[RANKS][RANKS];
} gathering;

static void link_send(naive *z, const func_info *f, const instr *i, group g, group call, gathering *m) {
  space *sp = z->w->p->sp;
  const type_info *x = val_type(z->w->p, f, opd_of(f, i, 0)), *y = val_type(z->w->p, f, i->res);
  group gt = y->g.i ? y->g : call;
  const group_info *from = group_get(sp, g), *to = group_get(sp, gt);
  bool pair = from->nranks == to->nranks;
  for (u32 k = 0; pair && k < from->nranks; k++)
    pair = !(elements(sp, y, gt, k) & ~elements(sp, x, g, k)); // it suffices
  for (u32 k = 0; k < to->nranks; k++) m->meet[to->ranks[k]] = to->ranks[k];
  for (u32 k = 0; k < from->nranks; k++) {
    u32 r = from->ranks[k];
    m->meet[r] = r;
    for (u32 j = 0; j < to->nranks; j++) {
      if (pair ? j != k : !(elements(sp, x, g, k) & elements(sp, y, gt, j))) continue;
      m->linked[r][to->ranks[j]] = m->linked[to->ranks[j]][r] = m->gives[r] = true;
    }
  }
}

static void link_over(naive *z, const instr *i, group g, gathering *m) {
  space *sp = z->w->p->sp;
  const group_info *gi = group_get(sp, g);
  const attr *over = attr_get(attrs_get(z->w->p, i->at), A_over);
  for (u32 k = 0; k < gi->nranks; k++) {
    u32 r = gi->ranks[k];
    m->meet[r] = r;
    m->gives[r] = true;
    for (u32 j = 0; j < gi->nranks; j++) {
      bool same = true;
      for (u32 q = 0; q < gi->naxes; q++) {
        u8 axis = gi->axis[q].axis;
        bool named = false;
        for (u32 n = 0; n < over->n; n++) named |= over->u.axes[n] == axis;
        same &= named || group_coord(sp, g, k, axis) == group_coord(sp, g, j, axis);
      }
      m->linked[r][gi->ranks[j]] = same;
    }
  }
}

static void gather(naive *z, const func_info *f, const instr *i, group g, group call, gathering *m) {
  *m = (gathering){.gives = {false}};
  for (u32 r = 0; r < RANKS; r++) {
    bool in = group_member(z->w->p->sp, g, r) >= 0;
    m->meet[r] = in ? r : ~0u;
    m->gives[r] = in && i->op != OP_send;
  }
  if (i->op == OP_send)
    link_send(z, f, i, g, call, m);
  else if (op_row_of(i->op)->flags & OPF_COMM)
    link_over(z, i, g, m);
  for (bool again = true; again;) {
    again = false;
    for (u32 r = 0; r < RANKS; r++)
      for (u32 q = 0; q < RANKS; q++)
        if (m->linked[r][q] && m->meet[q] < m->meet[r]) m->meet[r] = m->meet[q], again = true;
  }
}

static void naive_func(naive *z, const func_info *f, group call, const moment *args, const moment *floor,
                       moment *rets);

static void naive_call(naive *z, const func_info *f, const instr *i, group g, const moment *floor,
                       moment *val) {
  const func_info *callee = func_get(z->w->p, i->callee);
  moment args[16], rets[8], inner = *floor;
  for (u32 k = 0; k < i->nopd; k++)
    if (k < callee->nparams)
      args[k] = val[opd_of(f, i, k)];
    else
      raise_to(&inner, &val[opd_of(f, i, k)]);
  naive_func(z, callee, g, args, &inner, rets);
  for (u32 k = 0; k < i->nres; k++) val[i->res + k] = rets[k];
}

// floor: before this nothing may start, because of control operands of calls around.
static void naive_instr(naive *z, const func_info *f, const instr *i, group call, const moment *floor,
                        moment *val) {
  world *w = z->w;
  group g = i->g.i ? i->g : call;
  moment ready = {{0}}, end = {{0}};
  if (i->op == OP_call) {
    naive_call(z, f, i, g, floor, val);
    return;
  }
  for (u32 k = 0; k < i->nopd; k++) raise_to(&ready, &val[opd_of(f, i, k)]);
  if (op_row_of(i->op)->flags & (OPF_VIEW | OPF_META)) {
    for (u32 k = 0; k < i->nres; k++) val[i->res + k] = ready;
    return;
  }
  raise_to(&ready, floor);
  gathering m;
  gather(z, f, i, g, call, &m);
  for (u32 r = 0; r < RANKS; r++) {
    if (m.meet[r] == ~0u) continue;
    i64 start = 0, dur = 0;
    for (u32 q = 0; q < RANKS; q++) {
      if (m.meet[q] != m.meet[r]) continue;
      start = MAX(start, MAX(ready.at[q], z->clock[q][i->strm]));
      if (m.gives[q]) dur = MAX(dur, price_on(z, f, i, g, (u32)group_member(w->p->sp, g, q)));
    }
    end.at[r] = start + dur;
    z->busy[r][i->strm] += dur;
    if (op_row_of(i->op)->flags & OPF_COMM) z->comm[r][i->strm] += dur;
    z->count++;
  }
  for (u32 r = 0; r < RANKS; r++)
    if (m.meet[r] != ~0u) z->clock[r][i->strm] = end.at[r];
  for (u32 k = 0; k < i->nres; k++) {
    const type_info *t = val_type(w->p, f, i->res + k);
    for (u32 r = 0; r < RANKS; r++)
      val[i->res + k].at[r] = group_member(w->p->sp, t->g.i ? t->g : call, r) < 0 ? 0 : end.at[r];
  }
}

static void naive_func(naive *z, const func_info *f, group call, const moment *args, const moment *floor,
                       moment *rets) {
  moment *val = calloc(f->values.n, sizeof *val);
  memcpy(val + 1, args, f->nparams * sizeof *val);
  for (u32 k = 0; k < f->body.n; k++) naive_instr(z, f, &f->body.v[k], call, floor, val);
  for (u32 k = 0; k < f->rets.n; k++) rets[k] = val[f->rets.v[k]];
  free(val);
}

// ---- memory: who holds every buffer -----------------------------------------------------------------
typedef struct {
  i64 bytes[RANKS];
  u32 holders;
  bool kept; // a parameter of main that was not donated
} block;
typedef struct {
  u32 n, block[24];
} leaf_of; // blocks of one tensor
typedef struct {
  u32 n;
  leaf_of *leaf;
} holding; // of one value
typedef struct {
  world *w;
  block block[20000];
  u32 n;
  i64 now[RANKS], peak[RANKS];
} heap;

static void bytes_on(world *w, type t, group call, i64 *bytes) {
  const type_info *ti = type_get(w->p, t);
  group g = ti->g.i ? ti->g : call;
  for (u32 r = 0; r < RANKS; r++) {
    int m = group_member(w->p->sp, g, r);
    bytes[r] = m < 0 ? 0 : (__builtin_popcountll(elements(w->p->sp, ti, g, (u32)m)) * 4 + 63) / 64 * 64;
  }
}

static u32 tensors_in(world *w, type t, type *leaf) { // at most 64
  const type_info *ti = type_get(w->p, t);
  u32 n = !ti->tuple;
  if (n) leaf[0] = t;
  for (u32 k = 0; k < ti->n && n < 32; k++) n += tensors_in(w, ti->elem[k], leaf + n);
  return n;
}

static u32 allocate(heap *h, const i64 *bytes) {
  block *b = &h->block[h->n];
  *b = (block){.holders = 0};
  for (u32 r = 0; r < RANKS; r++) h->now[r] += b->bytes[r] = bytes[r];
  return h->n++;
}
static void take(heap *h, const holding *v) {
  for (u32 k = 0; k < v->n; k++)
    for (u32 j = 0; j < v->leaf[k].n; j++) h->block[v->leaf[k].block[j]].holders++;
}
static void drop_leaf(heap *h, const leaf_of *l) {
  for (u32 j = 0; j < l->n; j++) {
    block *b = &h->block[l->block[j]];
    if (--b->holders || b->kept) continue;
    for (u32 r = 0; r < RANKS; r++) h->now[r] -= b->bytes[r];
  }
}
static void drop(heap *h, const holding *v) {
  for (u32 k = 0; k < v->n; k++) drop_leaf(h, &v->leaf[k]);
}
static holding holding_new(heap *h, u32 n) { return (holding){n, ZNEWN(h->w->a, leaf_of, n)}; }

static bool reads(const func_info *f, u32 at, value v) {
  for (u32 j = 0; j < instr_nopd(f, &f->body.v[at]); j++)
    if (opd_of(f, &f->body.v[at], j) == v) return true;
  return false;
}
static bool last_use(const func_info *f, u32 at, value v,
                     const bool *used) { // nobody reads v after instruction `at`
  for (u32 k = at + 1; k < f->body.n; k++)
    if (reads(f, k, v)) return false;
  for (u32 k = 0; k < f->rets.n; k++)
    if (f->rets.v[k] == v && used[k]) return false;
  return true;
}
static bool repeated(const func_info *f, const instr *i, u32 k,
                     u32 n) { // is operand k among the first n others?
  for (u32 j = 0; j < n; j++)
    if (j != k && opd_of(f, i, j) == opd_of(f, i, k)) return true;
  return false;
}

// Does nothing else hold the blocks of a tensor, and are they together what the callee's parameter is?
static bool ends_whole(heap *h, const leaf_of *l, u32 holders, const i64 *bytes) {
  i64 sum[RANKS] = {0};
  for (u32 j = 0; j < l->n; j++) {
    const block *b = &h->block[l->block[j]];
    if (b->holders != holders || b->kept) return false;
    for (u32 r = 0; r < RANKS; r++) sum[r] += b->bytes[r];
  }
  return l->n && memcmp(bytes, sum, sizeof sum) == 0;
}

// The blocks of a tensor, which only the callee holds now, as its one.
static leaf_of as_one(heap *h, const leaf_of *l) {
  i64 sum[RANKS] = {0};
  for (u32 j = 0; j < l->n; j++)
    for (u32 r = 0; r < RANKS; r++) sum[r] += h->block[l->block[j]].bytes[r];
  const leaf_of one = {1, {allocate(h, sum)}};
  for (u32 j = 0; j < l->n; j++) drop_leaf(h, &(leaf_of){1, {l->block[j]}});
  h->block[one.block[0]].holders = 1;
  return one;
}

static void heap_func(heap *h, const func_info *f, group call, holding *args, const bool *used,
                      holding *rets);

static void heap_call(heap *h, const func_info *f, u32 at, group g, const bool *used, holding *val) {
  const instr *i = &f->body.v[at];
  const func_info *callee = func_get(h->w->p, i->callee);
  holding args[16], rets[8];
  bool want[8], given[16][64] = {{false}};
  for (u32 k = 0; k < i->nres; k++) want[k] = !last_use(f, at, i->res + k, used);
  for (u32 k = 0; k < callee->nparams; k++) {
    value v = opd_of(f, i, k);
    args[k] = val[v];
    if (!last_use(f, at, v, used) || repeated(f, i, k, callee->nparams)) continue;
    type leaf[64];
    u32 nl = tensors_in(h->w, callee->values.v[k + 1].ty, leaf);
    for (u32 q = 0; q < nl; q++) {
      i64 bytes[RANKS];
      bytes_on(h->w, leaf[q], g, bytes);
      given[k][q] = ends_whole(h, &args[k].leaf[q], 1, bytes);
    }
  }
  for (u32 k = 0; k < callee->nparams; k++) take(h, &args[k]);
  for (u32 k = 0; k < callee->nparams; k++) {
    leaf_of *own = arena_dup(h->w->a, args[k].leaf, sizeof *own * args[k].n);
    for (u32 q = 0; q < args[k].n; q++)
      if (given[k][q]) { // the callee's from here on
        drop_leaf(h, &own[q]);
        if (own[q].n > 1) own[q] = as_one(h, &own[q]);
      }
    args[k].leaf = own;
  }
  heap_func(h, callee, g, args, want, rets);
  for (u32 k = 0; k < i->nres; k++) val[i->res + k] = want[k] ? rets[k] : holding_new(h, 0);
  for (u32 k = 0; k < callee->nparams; k++)
    for (u32 q = 0; q < args[k].n; q++)
      if (!given[k][q] && !repeated(f, i, k, k) && last_use(f, at, opd_of(f, i, k), used))
        drop_leaf(h, &args[k].leaf[q]);
}

static void heap_view(heap *h, const func_info *f, const instr *i, holding *val) {
  u32 from = 0, n = instr_nopd(f, i);
  for (u32 k = 0; k < i->nres; k++) {
    holding *v = &val[i->res + k];
    type leaf[64];
    *v = holding_new(h, tensors_in(h->w, f->values.v[i->res + k].ty, leaf));
    for (u32 q = 0; q < v->n; q++)
      if (i->op == OP_unpack)
        v->leaf[q] = val[opd_of(f, i, 0)].leaf[from++];
      else if (i->op == OP_pack) {
        u32 skip = q, o = 0;
        while (skip >= val[opd_of(f, i, o)].n) skip -= val[opd_of(f, i, o++)].n;
        v->leaf[q] = val[opd_of(f, i, o)].leaf[skip];
      } else
        for (u32 o = 0; o < n; o++) {
          leaf_of l = val[opd_of(f, i, o)].leaf[q];
          for (u32 j = 0; j < l.n && CHECK(v->leaf[q].n < 24); j++)
            v->leaf[q].block[v->leaf[q].n++] = l.block[j];
        }
    take(h, v);
  }
}

static void heap_work(heap *h, const func_info *f, u32 at, group call, const bool *used, holding *val) {
  const instr *i = &f->body.v[at];
  u32 n = instr_nopd(f, i);
  for (u32 k = 0; k < i->nres; k++) {
    i64 bytes[RANKS];
    bytes_on(h->w, f->values.v[i->res + k].ty, call, bytes);
    holding *v = &val[i->res + k], *x = k < n ? &val[opd_of(f, i, k)] : NULL;
    *v = holding_new(h, 1);
    const bool may = op_row_of(i->op)->flags & OPF_INPLACE && x && x->n == 1 && x->leaf[0].n &&
                     (opd_donated(f, i, k) || op_row_of(i->op)->flags & OPF_COMM);
    u32 going = 0; // how often operands that are not read again hold it
    for (u32 j = 0; j < n && may; j++) {
      const holding *y = &val[opd_of(f, i, j)];
      if (repeated(f, i, j, j) || !last_use(f, at, opd_of(f, i, j), used)) continue;
      for (u32 q = 0; q < y->n; q++)
        for (u32 m = 0; m < y->leaf[q].n; m++) going += y->leaf[q].block[m] == x->leaf[0].block[0];
    }
    if (may && going && ends_whole(h, &x->leaf[0], going, bytes))
      v->leaf[0] = x->leaf[0];
    else
      v->leaf[0] = (leaf_of){1, {allocate(h, bytes)}};
    take(h, v);
  }
  for (u32 r = 0; r < RANKS; r++) h->peak[r] = MAX(h->peak[r], h->now[r]);
}

// The callee's frame holds args already.
static void heap_func(heap *h, const func_info *f, group call, holding *args, const bool *used,
                      holding *rets) {
  holding *val = calloc(f->values.n, sizeof *val);
  memcpy(val + 1, args, f->nparams * sizeof *val);
  for (u32 k = 1; k <= f->nparams; k++) // without a reader it goes at once
    if (last_use(f, ~0u, k, used)) drop(h, &val[k]);
  for (u32 at = 0; at < f->body.n; at++) {
    const instr *i = &f->body.v[at];
    u32 n = instr_nopd(f, i);
    for (u32 k = 0; f == func_get(h->w->p, h->w->p->main) && k < n;
         k++) { // what main donates it no longer keeps
      holding *x = &val[opd_of(f, i, k)];
      for (u32 q = 0; opd_donated(f, i, k) && q < x->n; q++)
        for (u32 j = 0; j < x->leaf[q].n; j++) h->block[x->leaf[q].block[j]].kept = false;
    }
    if (i->op == OP_call)
      heap_call(h, f, at, i->g.i ? i->g : call, used, val);
    else {
      if (op_row_of(i->op)->flags & (OPF_VIEW | OPF_META))
        heap_view(h, f, i, val);
      else
        heap_work(h, f, at, call, used, val);
      for (u32 k = 0; k < n; k++)
        if (!repeated(f, i, k, k) && last_use(f, at, opd_of(f, i, k), used)) drop(h, &val[opd_of(f, i, k)]);
    }
    for (u32 k = 0; k < i->nres; k++)
      if (last_use(f, at, i->res + k, used)) drop(h, &val[i->res + k]);
  }
  for (u32 k = 0; k < f->rets.n; k++) {
    rets[k] = val[f->rets.v[k]];
    for (u32 j = 0; used[k] && j < k; j++)
      if (used[j] && f->rets.v[j] == f->rets.v[k]) { // two values of the caller hold it
        take(h, &rets[k]);
        break;
      }
  }
  free(val);
}

static void heap_main(heap *h) {
  world *w = h->w;
  const func_info *f = func_get(w->p, w->p->main);
  holding args[8], rets[8];
  bool used[8] = {true, true, true, true, true, true, true, true};
  for (u32 k = 0; k < f->nparams; k++) {
    i64 bytes[RANKS];
    bytes_on(w, f->values.v[k + 1].ty, w->groups[0], bytes);
    args[k] = holding_new(h, 1);
    args[k].leaf[0].n = 1;
    u32 b = args[k].leaf[0].block[0] = allocate(h, bytes);
    h->block[b].kept = true;
    take(h, &args[k]);
  }
  memcpy(h->peak, h->now, sizeof h->peak);
  heap_func(h, f, w->groups[0], args, used, rets);
}

// ---- agreement --------------------------------------------------------------------------------------
static void check_mode(world *w, const naive *z, const heap *h, sim_mode mode, unsigned long long seed) {
  static const char *const name[] = {"flat", "composed", "flat folded", "folded"};
  sim_opts o = {.mode = mode, .cost = price, .cost_arg = w, .round_bytes = 64};
  sim_result r;
  if (!CHECK(sim_run(w->c, w->a, w->p, NULL, &o, &r))) return;
  for (u32 k = 0; k < r.nranks; k++) {
    const sim_class *u = &r.cls[r.class_of_rank[k]];
    CHECK_MSG(u->peak_bytes == h->peak[k], "seed %llu: %s: rank %u takes %lld bytes, should %lld", seed,
              name[mode], k, (long long)u->peak_bytes, (long long)h->peak[k]);
    CHECK_MSG(u->end_bytes == h->now[k], "seed %llu: %s: rank %u is left with %lld bytes, should %lld", seed,
              name[mode], k, (long long)u->end_bytes, (long long)h->now[k]);
    for (u32 s = 0; s < r.nstreams; s++) {
      u32 cell = r.class_of_rank[k] * r.nstreams + s;
      CHECK_MSG(r.end_ps[cell] == z->clock[k][s],
                "seed %llu: %s: rank %u stream %u ends at %lld, should at %lld", seed, name[mode], k, s,
                (long long)r.end_ps[cell], (long long)z->clock[k][s]);
      CHECK_MSG(r.busy_ps[cell] == z->busy[k][s],
                "seed %llu: %s: rank %u stream %u is busy for %lld, should be %lld", seed, name[mode], k, s,
                (long long)r.busy_ps[cell], (long long)z->busy[k][s]);
      CHECK_MSG(r.comm_ps[cell] == z->comm[k][s],
                "seed %llu: %s: rank %u stream %u communicates for %lld, should for %lld", seed, name[mode],
                k, s, (long long)r.comm_ps[cell], (long long)z->comm[k][s]);
    }
    double all = (double)r.stage[u->stage].busy + r.stage[u->stage].comm + r.stage[u->stage].bubble;
    CHECK_MSG(fabs(all - 1) < 1e-12, "seed %llu: %s: the shares of stage %u add up to %g", seed, name[mode],
              u->stage, all);
  }
  CHECK_MSG(r.instructions == z->count, "seed %llu: %s: %llu instructions, should be %llu", seed, name[mode],
            (unsigned long long)r.instructions, (unsigned long long)z->count);
}

static i64 makespan_with(world *w, func f, u32 num, i64 more) {
  sim_opts o = {.mode = SIM_FOLDED, .cost = price, .cost_arg = w, .no_bytes = true};
  sim_result r;
  w->bump = f;
  w->bump_num = num;
  w->bump_by = more;
  CHECK(sim_run(w->c, w->a, w->p, NULL, &o, &r));
  w->bump = (func){0};
  return r.makespan_ps;
}

// What the ranks' time consists of: of the compute stream what the result says, of all streams what they are
// in use.
static void check_split(const sim_result *r, unsigned long long seed) {
  double compute = 0, comm = 0, all = 0, used = 0, span = (double)r->makespan_ps;
  for (u32 k = 0; k < r->nsplit; k++) {
    const sim_split *x = &r->split[k];
    if (!x->beside) *(x->kind == SPLIT_COMM ? &comm : &compute) += x->ps;
    all += x->ps;
  }
  for (u32 u = 0; u < r->nclasses; u++)
    for (u32 k = 0; k < r->nstreams; k++)
      used += (double)r->busy_ps[u * r->nstreams + k] * r->cls[u].nranks / r->nranks;
  CHECK_MSG(fabs(compute - r->utilisation * span) <= 1e-9 * span, "seed %llu: computing %.3f, not %.3f", seed,
            compute, r->utilisation * span);
  CHECK_MSG(fabs(comm - r->comm * span) <= 1e-9 * span, "seed %llu: communicating %.3f, not %.3f", seed, comm,
            r->comm * span);
  CHECK_MSG(fabs(all - used) <= 1e-9 * used, "seed %llu: %.3f of all streams, not %.3f", seed, all, used);
}

// The path has no gap and lasts as long as the whole; each of its weights is a derivative.
static void check_path(world *w, sim_mode mode, unsigned long long seed) {
  sim_opts o = {.mode = mode,
                .cost = price,
                .cost_arg = w,
                .no_bytes = true,
                .critical = true,
                .steps = true,
                .split = true};
  sim_result r;
  if (!CHECK(sim_run(w->c, w->a, w->p, NULL, &o, &r))) return;
  check_split(&r, seed);
  i64 at = 0, total = 0;
  for (u32 k = 0; k < r.ncritical; k++) {
    CHECK_MSG(r.critical[k].start_ps == at, "seed %llu: the path waits before its step %u", seed, k);
    at += r.critical[k].dur_ps;
  }
  CHECK_MSG(at == r.makespan_ps, "seed %llu: the path lasts %lld of %lld", seed, (long long)at,
            (long long)r.makespan_ps);
  for (u32 k = 0; k < r.nweights; k++) total += r.weight[k].total_ps;
  CHECK_EQ_I64(total, r.makespan_ps);
  for (u32 k = 0; k < r.nweights && k < 3; k++) {
    const sim_weight *x = &r.weight[k];
    i64 more = makespan_with(w, x->f, x->instr, 1);
    CHECK_MSG(more >= r.makespan_ps + (i64)x->count,
              "seed %llu: one more ps of a step %llu times on the path adds %lld", seed,
              (unsigned long long)x->count, (long long)(more - r.makespan_ps));
  }
}

// Events of one stream of one rank follow each other and add up to what is busy.
static void check_timeline(world *w, const naive *z, unsigned long long seed) {
  sim_opts o = {.cost = price, .cost_arg = w, .no_bytes = true, .timeline = true};
  sim_result r;
  if (!CHECK(sim_run(w->c, w->a, w->p, NULL, &o, &r))) return;
  const trace *t = trace_collect(w->a, r.timeline);
  u32 *order = trace_order(w->a, t);
  i64 busy[RANKS][STREAMS] = {{0}}, end[RANKS][STREAMS] = {{0}}, last = 0;
  for (u32 k = 0; k < t->n; k++) {
    const trace_lane *l = &t->lanes.v[t->lane[order[k]]];
    u32 e = order[k], rank = l->process, s = (u32)l->id;
    CHECK_MSG(t->start_ps[e] >= end[rank][s], "seed %llu: events of rank %u stream %u overlap", seed, rank,
              s);
    end[rank][s] = t->start_ps[e] + t->dur_ps[e];
    last = MAX(last, end[rank][s]);
    busy[rank][s] += t->dur_ps[e];
  }
  CHECK(t->n == r.instructions && memcmp(busy, z->busy, sizeof busy) == 0);
  CHECK(t->n == 0 || last == r.makespan_ps);
}

// Steps that follow each other, by running them one after the other.
static void check_period(world *w, u64 seed) {
  sim_opts o = {.mode = SIM_FOLDED, .cost = price, .cost_arg = w, .no_bytes = true, .steady = true};
  sim_result r;
  if (!CHECK(sim_run(w->c, w->a, w->p, NULL, &o, &r))) return;
  naive z = {.w = w};
  i64 half = 0, end = 0;
  for (u32 step = 1; step <= 500; step++) {
    moment args[8] = {{{0}}}, rets[8], floor = {{0}};
    naive_func(&z, func_get(w->p, w->p->main), w->groups[0], args, &floor, rets);
    for (u32 k = 0; k < RANKS * STREAMS; k++) end = MAX(end, z.clock[k / STREAMS][k % STREAMS]);
    if (step == 480) half = end;
  }
  i64 got = r.period_ps * 20, want = end - half;
  CHECK_MSG(got - want <= 20 && want - got <= 20, "seed %llu: period %lld, should be %lld / 20",
            (unsigned long long)seed, (long long)r.period_ps, (long long)want);
}

static u32 folded_away, programs;

static void check_seed(u64 seed) {
  world w = {.rng = seed,
             .c = ctx_new(),
             .a = arena_new(),
             .uneven = seed % 3 ? 0 : 5,
             .range = seed % 2 ? 6 : 1000};
  world_program(&w);
  naive z = {.w = &w};
  moment args[8] = {{{0}}}, rets[8], floor = {{0}};
  naive_func(&z, func_get(w.p, w.p->main), w.groups[0], args, &floor, rets);
  static heap h;
  h = (heap){.w = &w};
  heap_main(&h);
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) check_mode(&w, &z, &h, m, seed);
  if (seed % 8 == 0) {
    check_path(&w, seed % 16 ? SIM_FLAT : SIM_FOLDED, seed);
    check_timeline(&w, &z, seed);
    if (seed % 64 == 0) check_period(&w, seed);
  }
  sim_opts o = {.mode = SIM_FOLDED, .cost = price, .cost_arg = &w, .no_bytes = true};
  sim_result r;
  if (sim_run(w.c, w.a, w.p, NULL, &o, &r)) folded_away += r.nclasses < r.nranks;
  programs++;
  prog_free(w.p);
  arena_free(w.a);
  ctx_free(w.c);
}

TEST(times_and_bytes_agree) {
  const char *one = getenv("SEED");
  u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : 1000;
  for (u64 seed = from; seed <= to; seed++) check_seed(seed);
  if (!one) CHECK_MSG(folded_away > programs / 4, "only %u of %u programs fold", folded_away, programs);
}
