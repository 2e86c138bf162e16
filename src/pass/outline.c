// outline.c - repeated stretches of main become functions: a model of 96 layers that was imported flat is a
// short program again. It looks at structure only, never at names. The inverse of inline.c.
//
// Idea: an instruction's token says everything about it but which values it reads; layers are then repeats in
// a string of tokens. A pair of tokens seen before, p places ago, is grown both ways; if it covers p places
// or more, the string repeats itself there every p. Where such a run is cut into copies is free: where the
// fewest values pass. Copies that read alike inside become calls, the longest first. Constants have no place
// in the string; a block takes along those that all its copies agree on.
#include "pass/internal.h"
#include <stdlib.h>

enum { LEAST_SAVED = 4, LEAST_LONE = 8, SAME_BYTES = 4096, SCANS = 256, RETURNED = UINT32_MAX };

typedef struct {
  u32 at, len, period; // tokens [at, at+len) equal those `period` places before
} repeat;

struct result {
  u32 instr, res; // offset in the stretch, which result
};
typedef struct {   // a stretch that has copies
  u32 len, n, *at; // where the copies begin
  func f;          // what it becomes
  u32 narg;
  value **arg; // parameter from 0 -> value of main in every copy
  VEC(struct result) rets;
} block;

typedef struct {
  prog *p;
  const func_info *f;
  arena *a;
  u64 *konst;    // instruction without operands -> what it makes; 0: not such an instruction
  u32 n, *order; // the string: instructions that are no constants
  u32 *place;    // instruction -> its place in the string
  u64 *token, *prefix, *power;
  u32 *last;    // value -> place of its last use, or RETURNED
  u32 *passing; // place -> values made before and used there or later
  VEC(repeat) repeats;
  VEC(block) blocks;
  bool *taken; // place -> is it in a block
  u32 scans;   // of the whole string so far: bounded, so that no input makes this quadratic
} outliner;

// ---- the string ------------------------------------------------------------------------------------------
static u64 constant_of(const prog *p, const func_info *f, const instr *in) {
  if (in->nopd || in->nres != 1) return 0;
  const attr *d = attr_get(attrs_get(p, in->at), A_data);
  u64 h = hash_u64(val(f, in->res)->ty.i, in->op);
  if (!d) return hash_u64(in->at.i, h) | 1;
  const data_info *di = &p->data.v[d->u.data];
  if (!di->bytes || di->size > SAME_BYTES) return hash_u64(d->u.data, h) | 1;
  return hash_bytes(di->bytes, (size_t)di->size, h) | 1;
}

static bool is_weight(const func_info *f, value v) {
  return v <= f->nparams && f->params.v[v - 1].r != ROLE_INPUT && f->params.v[v - 1].r != ROLE_LABEL;
}

static const instr *def_of(const func_info *f, value v) {
  u32 def = val(f, v)->def;
  return def ? &f->body.v[def - 1] : NULL;
}

// What is made elsewhere is alike whether it is an input of the model or not, so that the first layer is a
// layer.
static u64 token_of(const outliner *o, u32 index) {
  const func_info *f = o->f;
  const instr *in = &f->body.v[index];
  u64 h = hash_u64((u64)in->op << 32 | in->at.i, (u64)in->callee.i << 32 | in->g.i);
  h = hash_u64((u64)in->coord << 32 | (u64)in->nres << 16 | (u64)in->strm << 8 | in->flags, h);
  for (u32 r = 0; r < in->nres; r++) h = hash_u64(val(f, in->res + r)->ty.i, h);
  for (u32 k = 0; k < in->nopd; k++) {
    u32 e = f->opds.v[in->opd + k], v = e & OPD_VALUE, def = val(f, v)->def;
    u32 kind = is_weight(f, v) ? 1 : def && o->konst[def - 1] ? 2 : 3;
    if (e != v) h = hash_u64(index, h); // donated or control operands: like no other
    h = hash_u64((u64)val(f, v)->ty.i << 2 | kind, h);
  }
  return h;
}

static void make_string(outliner *o) {
  const func_info *f = o->f;
  o->token = NEWN(o->a, u64, o->n), o->prefix = NEWN(o->a, u64, o->n + 1),
  o->power = NEWN(o->a, u64, o->n + 1);
  o->last = ZNEWN(o->a, u32, f->values.n), o->passing = ZNEWN(o->a, u32, o->n + 2);
  o->taken = ZNEWN(o->a, bool, o->n);
  o->prefix[0] = 0, o->power[0] = 1;
  for (u32 i = 0; i < o->n; i++) {
    const instr *in = &f->body.v[o->order[i]];
    o->place[o->order[i]] = i;
    o->token[i] = token_of(o, o->order[i]);
    o->prefix[i + 1] = o->prefix[i] * 0x9E3779B97F4A7C15u + o->token[i];
    o->power[i + 1] = o->power[i] * 0x9E3779B97F4A7C15u;
    for (u32 k = 0; k < in->nopd; k++) o->last[opd_of(f, in, k)] = i;
  }
  for (u32 k = 0; k < f->rets.n; k++) o->last[f->rets.v[k]] = RETURNED;
  for (u32 i = 0; i < o->n; i++) {
    const instr *in = &f->body.v[o->order[i]];
    for (u32 r = 0; r < in->nres; r++) {
      u32 last = o->last[in->res + r];
      if (last <= i) continue; // never used
      o->passing[i + 1]++, o->passing[MIN(last, o->n) + 1]--;
    }
  }
  for (u32 i = 1; i <= o->n; i++) o->passing[i] += o->passing[i - 1];
}

static u64 stretch(const outliner *o, u32 at, u32 len) { // hash
  return o->prefix[at + len] - o->prefix[at] * o->power[len];
}

// ---- repeats ---------------------------------------------------------------------------------------------
// Every stretch of two tokens against its latest equal; each period is followed once.
static void find_repeats(outliner *o) {
  enum { W = 2 };
  u32 size = 16;
  while (size < 2 * o->n) size *= 2;
  u32 *seen = ZNEWN(o->a, u32, size), *done = ZNEWN(o->a, u32, o->n + 1);
  for (u32 i = 0; i + W <= o->n; i++) {
    u64 h = stretch(o, i, W);
    u32 slot = (u32)(h >> 32) & (size - 1);
    while (seen[slot] && stretch(o, seen[slot] - 1, W) != h) slot = (slot + 1) & (size - 1);
    u32 before = seen[slot], p = i + 1 - before;
    seen[slot] = i + 1;
    if (!before || p < 2 || done[p] > i) continue;
    u32 lo = i, hi = i + W;
    while (lo > p && lo > done[p] && o->token[lo - 1] == o->token[lo - 1 - p]) lo--;
    while (hi < o->n && o->token[hi] == o->token[hi - p]) hi++;
    done[p] = hi;
    *vec_push(o->a, &o->repeats) = (repeat){lo, hi - lo, p};
  }
}

static u32 worth(const repeat *r) { // instructions saved, at most
  return r->len < r->period ? r->len : r->len / r->period * r->period;
}
static int by_worth(const void *x, const void *y) {
  const repeat *a = x, *b = y;
  u32 wa = worth(a), wb = worth(b);
  if (wa != wb) return wa < wb ? 1 : -1;
  return a->at != b->at ? (a->at < b->at ? -1 : 1) : a->period < b->period ? -1 : a->period > b->period;
}

// ---- copies ----------------------------------------------------------------------------------------------
// Offset of an operand's maker in the copy at `at`, plus 1; 0: from outside.
static u32 inside(const outliner *o, u32 at, u32 len, value v) {
  u32 def = val(o->f, v)->def;
  if (!def || o->konst[def - 1]) return 0;
  u32 place = o->place[def - 1];
  return place >= at && place < at + len ? place - at + 1 : 0;
}

static u64 wiring(const outliner *o, u32 at, u32 len) {
  u64 h = len;
  for (u32 i = 0; i < len; i++) {
    const instr *in = &o->f->body.v[o->order[at + i]];
    for (u32 k = 0; k < in->nopd; k++) {
      value v = opd_of(o->f, in, k);
      u32 from = inside(o, at, len, v);
      h = hash_u64((u64)from << 8 | (from ? v - def_of(o->f, v)->res : 0), h);
    }
  }
  return h;
}

// The same instructions, read alike: what the hashes promise, checked.
static bool same_copy(const outliner *o, u32 x, u32 y, u32 len) {
  const func_info *f = o->f;
  for (u32 i = 0; i < len; i++) {
    const instr *a = &f->body.v[o->order[x + i]], *b = &f->body.v[o->order[y + i]];
    if (a->op != b->op || a->at.i != b->at.i || a->callee.i != b->callee.i || a->g.i != b->g.i) return false;
    if (a->nopd != b->nopd || a->nres != b->nres || a->strm != b->strm || a->coord != b->coord) return false;
    for (u32 r = 0; r < a->nres; r++)
      if (val(f, a->res + r)->ty.i != val(f, b->res + r)->ty.i) return false;
    for (u32 k = 0; k < a->nopd; k++) {
      value v = opd_of(f, a, k), w = opd_of(f, b, k);
      u32 from = inside(o, x, len, v);
      if (from != inside(o, y, len, w) || val(f, v)->ty.i != val(f, w)->ty.i) return false;
      if (is_weight(f, v) != is_weight(f, w)) return false;
      if (from && v - def_of(f, v)->res != w - def_of(f, w)->res) return false;
    }
  }
  return true;
}

static bool has_product(const outliner *o, u32 at, u32 len) {
  for (u32 i = 0; i < len; i++) {
    const instr *in = &o->f->body.v[o->order[at + i]];
    if (op_row_of(in->op)->flags & OPF_GEMM || in->op == OP_call) return true;
  }
  return false;
}

// All free copies of the stretch, wherever they are; those that are not wired as most are stay as they are.
static void take_block(outliner *o, u32 at, u32 len) {
  u32 cap = o->n / len, n = 0, kept = 0, votes = 0, *copy = NEWN(o->a, u32, cap);
  u64 h = stretch(o, at, len), most = 0;
  if (len < 2 || !has_product(o, at, len) || o->scans++ >= SCANS) return;
  for (u32 i = 0, clear = 0; i + len <= o->n;
       i++) { // clear: free places up to and with the last of the window
    if (i == 0)
      for (u32 k = 0; k + 1 < len; k++) clear = o->taken[k] ? 0 : clear + 1;
    clear = o->taken[i + len - 1] ? 0 : clear + 1;
    if (clear < len || (n && copy[n - 1] + len > i) || stretch(o, i, len) != h) continue;
    copy[n++] = i;
    u64 w = wiring(o, i, len);
    if (votes == 0) most = w;
    votes += w == most ? 1 : -1u;
  }
  u32 ref = 0;
  while (ref < n && wiring(o, copy[ref], len) != most) ref++;
  for (u32 k = ref, first = ref < n ? copy[ref] : 0; k < n; k++)
    if (same_copy(o, first, copy[k], len)) copy[kept++] = copy[k];
  if (kept < 2 || (kept - 1) * len < LEAST_SAVED) return;
  for (u32 k = 0; k < kept; k++) memset(o->taken + copy[k], true, len);
  *vec_push(o->a, &o->blocks) = (block){.len = len, .n = kept, .at = copy};
}

// A stretch that occurs in several places that do not adjoin, cut where few values pass.
static void cut_lone(outliner *o, u32 lo, u32 hi) {
  u32 slack = (hi - lo) / 4, from = lo, to = hi;
  if (hi - lo < LEAST_LONE) return;
  for (u32 i = lo; i <= lo + slack; i++)
    if (o->passing[i] < o->passing[from]) from = i;
  for (u32 i = hi; i >= hi - slack; i--)
    if (o->passing[i] < o->passing[to]) to = i;
  take_block(o, from, to - from);
}

// The free part [lo, hi) of a run that repeats every p.
static void cut_run(outliner *o, u32 lo, u32 hi, u32 p) {
  u32 best = lo;
  if (hi - lo < 2 * p) return;
  for (u32 at = lo; at <= lo + (hi - lo) % p; at++) // as many copies as from anywhere
    if (o->passing[at + p] < o->passing[best + p]) best = at;
  take_block(o, best, p);
}

static void find_blocks(outliner *o) {
  make_string(o);
  find_repeats(o);
  if (o->repeats.n) qsort(o->repeats.v, o->repeats.n, sizeof *o->repeats.v, by_worth);
  for (u32 k = 0; k < o->repeats.n; k++) {
    repeat r = o->repeats.v[k];
    if (worth(&r) < LEAST_SAVED) break;
    bool run = r.len >= r.period;
    for (u32 i = run ? r.at - r.period : r.at, lo = i, end = r.at + r.len; i <= end; i++) {
      if (i < end && !o->taken[i] && (run || !o->taken[i - r.period])) continue;
      if (run)
        cut_run(o, lo, i, r.period);
      else
        cut_lone(o, lo, i);
      lo = i + 1;
    }
  }
}

// ---- orders ----------------------------------------------------------------------------------------------
static void order_program(outliner *o) {
  for (u32 k = 0; k < o->f->body.n; k++)
    if (!o->konst[k]) o->order[o->n++] = k;
}

// Longest way from the parameters to every value, and operands by that, the nearest first.
static value *by_depth(const outliner *o) {
  const func_info *f = o->f;
  u32 *depth = ZNEWN(o->a, u32, f->values.n);
  value *opd = NEWN(o->a, value, f->opds.n + 1);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    u32 d = 0;
    for (u32 i = 0, at; i < in->nopd; i++) {
      value v = opd_of(f, in, i);
      for (at = in->opd + i; at > in->opd && depth[opd[at - 1]] > depth[v]; at--) opd[at] = opd[at - 1];
      opd[at] = v;
      d = MAX(d, depth[v] + 1);
    }
    for (u32 r = 0; r < in->nres; r++) depth[in->res + r] = d;
  }
  return opd;
}

typedef struct {
  u32 index, next; // instruction; which of its operands is looked at next
} frame;

// Everything that v needs and that has no place yet, then v.
static void order_for(outliner *o, value v, const value *opd, bool *seen, frame *stack) {
  const func_info *f = o->f;
  for (u32 depth = 0;;) {
    u32 def = v ? val(f, v)->def : 0;
    if (def && !seen[def - 1]) seen[def - 1] = true, stack[depth++] = (frame){def - 1, 0};
    v = 0;
    for (; depth; depth--) {
      frame *top = &stack[depth - 1];
      const instr *in = &f->body.v[top->index];
      if (top->next < in->nopd) {
        v = opd[in->opd + top->next++];
        break;
      }
      if (!o->konst[top->index]) o->order[o->n++] = top->index;
    }
    if (!depth) return;
  }
}

// From the results backwards, so that whatever order a file lists its nodes in, equal layers come out alike.
// What many read comes first, or it would stand in the middle of the layer that reads it first: what hangs on
// weights alone (the bias of all layers), the memory of a decoder.
static void order_by_results(outliner *o) {
  enum { MANY = 4, INPUT = 1, WEIGHT = 2 };
  const func_info *f = o->f;
  const value *opd = by_depth(o);
  frame *stack = NEWN(o->a, frame, f->body.n + 1);
  bool *seen = ZNEWN(o->a, bool, f->body.n);
  u8 *by = ZNEWN(o->a, u8, f->values.n);
  uses u = func_uses(o->a, f);
  for (value v = 1; v <= f->nparams; v++) by[v] = is_weight(f, v) ? WEIGHT : INPUT;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    u32 any = 0;
    for (u32 i = 0; i < in->nopd; i++) any |= by[opd_of(f, in, i)];
    for (u32 r = 0; r < in->nres; r++) by[in->res + r] = (u8)any;
  }
  for (value v = f->nparams + 1; v < f->values.n; v++)
    if (by[v] == WEIGHT && u.begin[v + 1] - u.begin[v] > 1) order_for(o, v, opd, seen, stack);
  for (value v = f->nparams + 1; v < f->values.n; v++)
    if (by[v] && u.begin[v + 1] - u.begin[v] >= MANY) order_for(o, v, opd, seen, stack);
  for (u32 k = 0; k < f->rets.n; k++) order_for(o, f->rets.v[k], opd, seen, stack);
}

static outliner outliner_at(prog *p, arena *a) {
  const func_info *f = func_get(p, p->main);
  outliner o = {.p = p, .f = f, .a = a};
  o.konst = NEWN(a, u64, f->body.n + 1);
  o.order = NEWN(a, u32, f->body.n + 1), o.place = ZNEWN(a, u32, f->body.n + 1);
  for (u32 k = 0; k < f->body.n; k++) o.konst[k] = constant_of(p, f, &f->body.v[k]);
  return o;
}

// ---- one block as a function -----------------------------------------------------------------------------
typedef struct {
  outliner *o;
  block *b;
  value *id;    // value of main, in the first copy -> value of the block; 0 = none yet
  value *slot;  // operands of all instructions -> parameter; 0 = made inside
  hmap columns; // of b->arg
} maker;

static const instr *instr_at(const maker *m, u32 copy, u32 i) {
  return &m->o->f->body.v[m->o->order[m->b->at[copy] + i]];
}
static value opd_at(const maker *m, u32 copy, u32 i, u32 k) {
  return opd_of(m->o->f, instr_at(m, copy, i), k);
}
static u64 constant_at(const maker *m, u32 copy, u32 i, u32 k) {
  u32 def = val(m->o->f, opd_at(m, copy, i, k))->def;
  return def ? m->o->konst[def - 1] : 0;
}

// A constant that all copies agree on.
static bool agreed(const maker *m, u32 i, u32 k) {
  u64 first = constant_at(m, 0, i, k);
  for (u32 c = 1; c < m->b->n; c++)
    if (constant_at(m, c, i, k) != first) return false;
  return first != 0;
}

// The parameter that brings operand k of instruction i to every copy. Those that bring the same are one.
static value find_arg(maker *m, u32 i, u32 k) {
  arena *a = m->o->a;
  size_t bytes = m->b->n * sizeof(value);
  value *column = NEWN(a, value, m->b->n);
  for (u32 c = 0; c < m->b->n; c++) column[c] = opd_at(m, c, i, k);
  u64 h = hash_bytes(column, bytes, 0);
  for (u32 it = 0, at; hmap_next(&m->columns, h, &it, &at);)
    if (!memcmp(m->b->arg[at], column, bytes)) return at + 1;
  hmap_add(a, &m->columns, h, m->b->narg);
  m->b->arg[m->b->narg++] = column;
  return m->b->narg;
}

// Weights come behind what the model computes.
static void find_args(maker *m) {
  const func_info *f = m->o->f;
  u32 n = 0;
  for (u32 i = 0; i < m->b->len; i++) n += instr_at(m, 0, i)->nopd;
  m->slot = ZNEWN(m->o->a, value, n);
  m->b->arg = NEWN(m->o->a, value *, n);
  for (u32 weights = 0; weights < 2; weights++)
    for (u32 i = 0, s = 0; i < m->b->len; i++)
      for (u32 k = 0; k < instr_at(m, 0, i)->nopd; k++, s++) {
        value v = opd_at(m, 0, i, k);
        if (is_weight(f, v) != weights || inside(m->o, m->b->at[0], m->b->len, v) || agreed(m, i, k))
          continue;
        m->slot[s] = find_arg(m, i, k);
      }
}

// What the names of one weight in two copies end in: "h.0.ln.weight", "h.1.ln.weight": "ln.weight".
static sym common_name(ctx *c, sym x, sym y) {
  const char *a = sym_str(c, x), *b = sym_str(c, y), *end = a + strlen(a), *p = end, *q = b + strlen(b);
  if (x.i == y.i) return x;
  while (p > a && q > b && p[-1] == q[-1]) p--, q--;
  while (p < end && p[0] != '.' && p[0] != '/') p++;
  while (p < end && (p[0] == '.' || p[0] == '/' || p[0] == '_')) p++;
  return p < end ? sym_ofn(c, p, (size_t)(end - p)) : (sym){0};
}

static void make_params(maker *m) {
  prog *p = m->o->p;
  const func_info *f = m->o->f;
  hmap names = {0};
  for (u32 k = 0; k < m->b->narg; k++) {
    value v = m->b->arg[k][0];
    sym name = common_name(p->c, val(f, v)->name, val(f, m->b->arg[k][1])->name);
    if (name.i && hmap_get(&names, name.i)) name = (sym){0};
    if (name.i) hmap_add(m->o->a, &names, name.i, 1);
    func_param(p, m->b->f, val(f, v)->ty, name, v <= f->nparams ? f->params.v[v - 1].r : ROLE_INPUT);
  }
}

// Copies one instruction of main; operands are values of the function being built.
static value put(builder *b, const func_info *f, const instr *in, const u32 *opd) {
  type few[8], *res = in->nres <= COUNT_OF(few) ? few : NEWN(b->p->a, type, in->nres);
  for (u32 r = 0; r < in->nres; r++) res[r] = val(f, in->res + r)->ty;
  b->g = in->g, b->strm = in->strm, b->flags = in->flags, b->coord = in->coord;
  b->where = in->where, b->origin = in->origin;
  u32 at = emit(b, in->op, in->at, opd, in->nopd, res, in->nres);
  func_get(b->p, b->f)->body.v[at - 1].callee = in->callee;
  return emit_res(b->p, b->f, at);
}

static value put_constant(builder *b, const func_info *f, value v, value *id) {
  if (!id[v]) id[v] = put(b, f, def_of(f, v), NULL);
  return id[v];
}

static void make_body(maker *m, u32 *opd) {
  builder b = builder_at(m->o->p, m->b->f);
  for (u32 i = 0, s = 0; i < m->b->len; i++) {
    const instr *in = instr_at(m, 0, i);
    for (u32 k = 0; k < in->nopd; k++, s++) {
      value v = opd_of(m->o->f, in, k);
      opd[k] = m->slot[s] ? m->slot[s] : m->id[v] ? m->id[v] : put_constant(&b, m->o->f, v, m->id);
    }
    value y = put(&b, m->o->f, in, opd);
    for (u32 r = 0; r < in->nres; r++) m->id[in->res + r] = y + r;
  }
}

// Results that any copy uses outside.
static void make_returns(maker *m) {
  const outliner *o = m->o;
  for (u32 i = 0; i < m->b->len; i++)
    for (u32 r = 0; r < instr_at(m, 0, i)->nres; r++) {
      bool used = false;
      for (u32 c = 0; c < m->b->n; c++) {
        u32 last = o->last[instr_at(m, c, i)->res + r];
        used |= last == RETURNED || last >= m->b->at[c] + m->b->len;
      }
      if (!used) continue;
      *vec_push(o->a, &m->b->rets) = (struct result){i, r};
      *vec_push(o->p->a, &func_get(o->p, m->b->f)->rets) = m->id[instr_at(m, 0, i)->res + r];
    }
}

// What the copies were called stays with the instructions of the function, in the order of its calls.
static void keep_places(const maker *m) {
  ctx *c = m->o->p->c;
  for (u32 i = 0; i < m->b->len; i++)
    for (u32 k = 0; k + 1 < m->b->n; k++) {
      const loc at = instr_at(m, k, i)->where, next = instr_at(m, k + 1, i)->where;
      if (at.i && next.i > at.i && !loc_get(c, at)->alike.i) loc_set_alike(c, at, next);
    }
}

static void make_block(outliner *o, block *b, value *id, u32 *opd) {
  maker m = {.o = o, .b = b, .id = id};
  memset(id, 0, o->f->values.n * sizeof *id);
  find_args(&m);
  b->f = func_new(o->p, sym_of(o->p->c, "block"), instr_at(&m, 0, 0)->where);
  make_params(&m);
  make_body(&m, opd);
  keep_places(&m);
  make_returns(&m);
}

// ---- main again, shorter ---------------------------------------------------------------------------------
static value carried(builder *b, const outliner *o, value v, value *id) {
  const instr *in = def_of(o->f, v);
  return in && o->konst[in - o->f->body.v] ? put_constant(b, o->f, v, id) : id[v];
}

static void put_site(builder *b, outliner *o, const block *k, u32 copy, value *id, u32 *opd) {
  for (u32 i = 0; i < k->narg; i++) opd[i] = carried(b, o, k->arg[i][copy], id);
  b->where = o->f->body.v[o->order[k->at[copy]]].where;
  b->g = (group){0}, b->strm = b->flags = 0, b->coord = b->origin = 0;
  value y = build_call(b, k->f, opd, k->narg);
  for (u32 i = 0; i < k->rets.n; i++)
    id[o->f->body.v[o->order[k->at[copy] + k->rets.v[i].instr]].res + k->rets.v[i].res] = y + i;
}

static void make_main(outliner *o, value *id, u32 *opd) {
  prog *p = o->p;
  const func_info *f = o->f;
  typedef struct {
    u32 block, copy;
  } begin;
  begin *site = ZNEWN(o->a, begin, o->n + 1); // place -> 1 + block that begins there, and which copy of it
  for (u32 k = 0; k < o->blocks.n; k++)
    for (u32 c = 0; c < o->blocks.v[k].n; c++) site[o->blocks.v[k].at[c]] = (begin){k + 1, c};
  func made = func_new(p, f->name, f->where);
  builder b = builder_at(p, made);
  memset(id, 0, f->values.n * sizeof *id);
  for (u32 k = 0; k < f->nparams; k++) id[k + 1] = pass_param_like(p, made, f, k);
  for (u32 i = 0; i < o->n;) {
    const instr *in = &f->body.v[o->order[i]];
    if (site[i].block) {
      const block *k = &o->blocks.v[site[i].block - 1];
      put_site(&b, o, k, site[i].copy, id, opd);
      i += k->len;
      continue;
    }
    for (u32 k = 0; k < in->nopd; k++) {
      u32 e = f->opds.v[in->opd + k];
      opd[k] = carried(&b, o, e & OPD_VALUE, id) | (e & ~(u32)OPD_VALUE);
    }
    value y = put(&b, f, in, opd);
    for (u32 r = 0; r < in->nres; r++) {
      id[in->res + r] = y + r;
      value_name(p, made, y + r, val(f, in->res + r)->name);
    }
    i++;
  }
  for (u32 k = 0; k < f->rets.n; k++)
    *vec_push(p->a, &func_get(p, made)->rets) = carried(&b, o, f->rets.v[k], id);
  assert(!b.failed);
  pass_replace(p, p->main, made);
}

// Instructions of the program if these blocks are made.
static u32 total(const outliner *o) {
  u32 n = o->n;
  for (u32 k = 0; k < o->blocks.n; k++) n -= (o->blocks.v[k].n - 1) * o->blocks.v[k].len - o->blocks.v[k].n;
  return n;
}

u32 pass_outline(prog *p) {
  arena *tmp = arena_new();
  outliner o = outliner_at(p, tmp);
  order_program(&o);
  find_blocks(&o);
  if (total(&o) > o.n / 8) { // is it the order that hides the layers?
    outliner q = outliner_at(p, tmp);
    order_by_results(&q);
    find_blocks(&q);
    if (total(&q) < total(&o)) o = q;
  }
  u32 most = 1; // operands of one instruction or call
  for (u32 k = 0; k < o.f->body.n; k++) most = MAX(most, o.f->body.v[k].nopd);
  value *id = NEWN(tmp, value, o.f->values.n);
  for (u32 k = 0; k < o.blocks.n; k++) {
    u32 n = 0;
    for (u32 i = 0; i < o.blocks.v[k].len; i++) n += o.f->body.v[o.order[o.blocks.v[k].at[0] + i]].nopd;
    most = MAX(most, n);
  }
  u32 *opd = NEWN(tmp, u32, most), nblocks = o.blocks.n;
  for (u32 k = 0; k < nblocks; k++) make_block(&o, &o.blocks.v[k], id, opd);
  if (nblocks) make_main(&o, id, opd);
  arena_free(tmp);
  IR_VERIFY_PASS(p);
  return nblocks;
}
