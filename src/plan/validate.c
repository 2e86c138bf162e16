// validate.c - does a distributed program cover what it must? Layouts and shapes are invariants (ir_verify,
// infer_verify); here is what they leave open: coordinates in time, the order of communication, memory.
// Nothing is evaluated: that the numbers are right is for compare.c.
//
// Idea: space is in the types, time is not. A value split over a temporal axis is the piece of one
// coordinate, and whoever reads it must be at that coordinate. A value partial over it is a sum, so far, of
// some coordinates: `set` says of which ones, as a tree of contributions. A function is walked once; what it
// adds to a sum it was given is an expression over its parameters and "the coordinate it is called at", which
// every call instantiates. Where a sum is taken to be complete (join), each contribution must be there from
// every coordinate, as often as from the others and by one call. Where replicas of the model have microbatches of their
// own, stages of each make a contribution from its coordinates, and all replicas together from every one. Linear in the instructions of all functions, and of main in contributions to sums.
//
// Main calls a few functions very often, with tuples of hundreds of elements. So what a call of main yields
// is not written down: it is what the callee returns, and the call. Sums are followed through calls when they
// are counted.
#include "plan/internal.h"

// ---- sums over time ----------------------------------------------------------------------------------
// A contribution is known by its site: instruction of the function that makes it, through the calls that lead
// there.
typedef enum { SET_EMPTY, SET_AT, SET_CURRENT, SET_ALL, SET_PARAM, SET_BOTH, SET_CALL } set_kind;
typedef struct {
  u8 kind;
  u32 a, b; // AT: coordinate; PARAM: slot; BOTH: two sets; CALL: a set of the callee, the instruction + 1
  u64 site; // AT, CURRENT, ALL
} set;

// What an element of a value is, over the axis at hand. In functions, COORD_CURRENT is where they are called.
typedef enum { IN_NONE, IN_PIECE, IN_SUM } in_kind;
enum { COORD_CURRENT = 0xffff, COORD_NONE = 0xfffe };
typedef struct {
  u8 kind;
  u32 x; // PIECE: coordinate; SUM: set
} in_time;
enum { PIECES_NONE = ~0u, PIECES_MANY = ~0u - 1 };
typedef struct {
  u32 n;       // elements of a tuple, nested ones one after the other; 1 for a tensor
  u32 call;    // in main: the instruction + 1 that calls the function whose elements these are; else 0
  u32 pieces;  // the coordinate of all elements that are pieces, call's put in; or PIECES_...
  in_time one; // the only element, if v is NULL
  const in_time *v;
} state;

typedef struct {
  u32 set;
  u32 instr; // that takes it to be complete
} claim;
// A result that is a parameter, all of whose elements are sums, and one more contribution to each.
typedef struct {
  u8 known; // 1: it is such a result, of parameter k; 2: it is not
  u32 k;
} link;
typedef struct {
  bool done;
  u32 nslots;         // elements of all parameters
  u32 *first, *param; // the first slot of a parameter; the parameter of a slot
  u32 nrets;
  state *ret;
  link *link; // beside ret
  VEC(claim) claims;
} summary;

typedef struct {
  prog *p;
  arena *a, *tmp;
  u8 axis;
  u32 size;
  summary *sum; // per function
  VEC(set) sets;
  VEC(u32) memo; // per set: what it has become in this instantiation
  VEC(u32) memo_of;
  u32 instantiation;
  u32 errors;
  // the function at hand
  func f;
  const func_info *fi;
  bool main;
  bool versions; // updates of main are between tasks, so a stage has several versions of its weights
  state *val;
  u32 *like;   // per function: the one that does all that it does but for sums behind it, or itself
  u8 *chain;   // of main's values: 1: all elements are complete sums; 2: it takes a closer look
  value *sums; // of main's values: the sum that they continue, as it began; 0: not known yet
} coverage;

enum { ERRORS_MAX = 20 };

static u32 set_new(coverage *w, set s) {
  *vec_push(w->a, &w->sets) = s;
  return w->sets.n - 1;
}
static u32 set_both(coverage *w, u32 x, u32 y) {
  if (w->sets.v[x].kind == SET_EMPTY) return y;
  if (w->sets.v[y].kind == SET_EMPTY) return x;
  return set_new(w, (set){.kind = SET_BOTH, .a = x, .b = y});
}

static char role_of(const coverage *w, type t) { // of a tensor over the axis: R, D or V
  layout l = type_get(w->p, t)->lay;
  if (!l.i) return 'R';
  if (layout_split_of(w->p->sp, l, w->axis)) return 'D';
  return layout_part_of(w->p->sp, l, w->axis) != RED_NONE ? 'V' : 'R';
}

// The coordinate of an instruction: fixed by itself, or that of the call.
static u32 coord_of(const coverage *w, const instr *i) {
  if (w->p->fixed.v[i->coord] >> w->axis & 1) return w->p->points.v[i->coord].at[w->axis];
  return w->main ? COORD_NONE : COORD_CURRENT;
}

static const char *axis_name(const coverage *w) {
  return sym_str(w->p->c, axis_get(w->p->sp, w->axis)->name);
}

static bool full(const coverage *w) { return diag_errors(w->p->c) - w->errors >= ERRORS_MAX; }

// ---- elements ------------------------------------------------------------------------------------------
static const in_time *elements_of(const state *s) { return s->v ? s->v : &s->one; }

static in_time element(const coverage *w, const state *s, u32 e) {
  in_time t = elements_of(s)[e];
  if (s->call && t.kind == IN_PIECE && t.x == COORD_CURRENT) t.x = coord_of(w, &w->fi->body.v[s->call - 1]);
  return t;
}

// The set of an element that is a sum.
static u32 sum_of(coverage *w, const state *s, u32 e) {
  u32 x = elements_of(s)[e].x;
  return s->call && x ? set_new(w, (set){.kind = SET_CALL, .a = x, .b = s->call}) : x;
}

static u32 pieces_at(const in_time *v, u32 n) {
  u32 all = PIECES_NONE;
  for (u32 k = 0; k < n; k++)
    if (v[k].kind == IN_PIECE) all = all == PIECES_NONE || all == v[k].x ? v[k].x : PIECES_MANY;
  return all;
}

static state state_of(const in_time *v, u32 n) {
  state s = {.n = n, .pieces = pieces_at(v, n)};
  if (n == 1)
    s.one = v[0];
  else
    s.v = v;
  return s;
}

// Elements v of a callee, as a call of main makes them.
static state state_called(const coverage *w, const in_time *v, u32 n, u32 call) {
  state s = {.n = n, .call = call, .pieces = pieces_at(v, n), .v = v};
  if (s.pieces == COORD_CURRENT) s.pieces = coord_of(w, &w->fi->body.v[call - 1]);
  return s;
}

// ---- is a sum complete? --------------------------------------------------------------------------------
// One call may contribute a value several times (b + b, or where(c, g, g + h)): what the model says, so each
// coordinate must come as often as every other one. Two calls at one coordinate are a microbatch that counts
// twice. In main itself, whose "call" is 0, the two cannot be told apart.
enum { CALLS_MANY = ~0u };
typedef struct {
  u64 site, stage;   // stage: stage_of_call; 0: main itself
  u32 *count, *call; // per coordinate: how often it is there; from which call
} tally;
typedef struct {
  VEC(tally) v;
  hmap at;
  u32 last; // the site looked for last, + 1: contributions to a sum mostly are of one
} tallies;

// A weight that may be brought to the device, gathered or reshaped, as it is for every microbatch anew.
static u64 weight_of(const coverage *w, value v) {
  u64 h = 0;
  for (u32 def; (def = w->fi->values.v[v].def);) {
    const instr *i = &w->fi->body.v[def - 1];
    const u32 k = i->op == OP_copy ? v - i->res : 0;
    if (i->op == OP_call || (i->op != OP_copy && (i->nres != 1 || instr_nopd(w->fi, i) != 1))) break;
    if (i->op != OP_copy) h = hash_u64(i->op, hash_u64(i->at.i, h));
    v = opd_of(w->fi, i, k);
  }
  return hash_step(h, v);
}

// Operand k of an instruction of main, of whose element at e the element at e of result r is a continuation; false: of none.
static bool continues(const coverage *w, const instr *i, u32 r, u32 *k, u32 *e) {
  const summary *callee = i->op == OP_call ? &w->sum[i->callee.i] : NULL;
  if (i->op == OP_copy || i->op == OP_unpack) {
    *k = i->op == OP_copy ? r : 0;
    for (u32 j = 0; i->op == OP_unpack && j < r; j++) *e += w->val[i->res + j].n;
    return true;
  }
  if (i->op == OP_pack) {
    for (*k = 0; *e >= w->val[opd_of(w->fi, i, *k)].n; ++*k) *e -= w->val[opd_of(w->fi, i, *k)].n;
    return true;
  }
  for (*k = 0; !callee && *k < instr_nopd(w->fi, i); ++*k)
    if (opd_donated(w->fi, i, *k)) return *e == 0;
  const in_time *t = callee ? &elements_of(&callee->ret[r])[*e] : NULL;
  const set *s = t && t->kind == IN_SUM ? &w->sets.v[t->x] : NULL;
  while (s && s->kind == SET_BOTH) s = &w->sets.v[s->a]; // a chain of sums hangs on the first
  if (!s || s->kind != SET_PARAM) return false;
  *k = callee->param[s->a], *e = s->a - callee->first[*k];
  return true;
}

// Where the sum began that calls, and what adds to it, take over and pass on: of a tuple, its first.
static value first_sum(const coverage *w, value v) {
  value began = 0, next;
  for (u32 all = 0; all < 2; all++) { // to find it, and to note it for all on the way
    u32 e = 0, k;
    for (value at = v; at && (e || !w->sums[at]); at = next) {
      const u32 def = w->fi->values.v[at].def, first = e;
      const instr *i = def ? &w->fi->body.v[def - 1] : NULL;
      next = i && continues(w, i, at - i->res, &k, &e) ? opd_of(w->fi, i, k) : 0;
      if (!next) began = at;
      if (next && !e && w->sums[next]) began = w->sums[next];
      if (all && !first) w->sums[at] = began;
    }
  }
  return w->sums[v];
}

// The parameter of main that a weight is a version of: updates between tasks make the k-th of their results of the k-th of
// their operands, which may be a copy.
static value first_version(const coverage *w, value v) {
  for (u32 def; (def = w->fi->values.v[v].def);) {
    const instr *i = &w->fi->body.v[def - 1];
    const u32 k = i->op == OP_call ? v - i->res : 0;
    if (k >= instr_nopd(w->fi, i)) break;
    v = opd_of(w->fi, i, k);
  }
  return v;
}

// Stages may share a function, and layers and stages weights whose gradients they sum: calls of one layer of a stage are
// of one call of the model, on one group, with one tuple of weights, and add to sums that began as one.
static u64 stage_of_call(const coverage *w, u32 call) {
  const instr *i = &w->fi->body.v[call - 1];
  const func_info *f = func_get(w->p, i->callee);
  u64 h = hash_u64(i->origin, hash_u64(w->like[i->callee.i], i->g.i));
  bool weight = false, sum = false;
  for (u32 k = 0; k < f->nparams; k++) {
    const value v = opd_of(w->fi, i, k);
    const state *s = &w->val[v];
    if (!weight && f->params.v[k].r == ROLE_WEIGHT)
      weight = true, h = hash_step(h, w->versions ? first_version(w, v) : weight_of(w, v));
    else if (!sum && opd_donated(w->fi, i, k) && s->n && elements_of(s)->kind == IN_SUM)
      sum = true, h = hash_step(h, first_sum(w, v));
  }
  return h;
}

static tally *tally_of(coverage *w, tallies *t, const set *s, u32 call) {
  const u64 stage = call ? stage_of_call(w, call) : 0, site = call ? hash_u64(stage, s->site) : s->site;
  assert(!t->last || t->v.v);
  if (t->last && t->v.v[t->last - 1].site == site) return &t->v.v[t->last - 1];
  t->last = hmap_get(&t->at, site);
  if (!t->last) {
    *vec_push(w->tmp, &t->v) = (tally){site, stage, ZNEWN(w->tmp, u32, w->size), ZNEWN(w->tmp, u32, w->size)};
    hmap_add(w->tmp, &t->at, site, t->last = t->v.n);
  }
  assert(t->v.v);
  return &t->v.v[t->last - 1];
}

static void count_one(tally *t, u32 coordinate, u32 call) {
  if (t->count[coordinate]++ && t->call[coordinate] != call)
    t->call[coordinate] = CALLS_MANY;
  else
    t->call[coordinate] = call;
}

// What a call of main was given for a slot of its callee: the set, and the call that this is a set of.
static u32 argument(const coverage *w, u32 slot, u32 *call) {
  const instr *i = &w->fi->body.v[*call - 1];
  const summary *callee = &w->sum[i->callee.i];
  u32 k = callee->param[slot];
  const state *s = &w->val[opd_of(w->fi, i, k)];
  in_time t = elements_of(s)[slot - callee->first[k]];
  *call = s->call;
  return t.kind == IN_SUM ? t.x : 0;
}

// Of main, or of what an instruction of main calls.
static void count_set(coverage *w, tallies *t, u32 x, u32 call) {
  for (;;) {
    const set *s = &w->sets.v[x];
    u32 at = s->kind == SET_CURRENT ? coord_of(w, &w->fi->body.v[call - 1]) : s->a;
    switch (s->kind) {
    case SET_BOTH: // a chain of sums hangs on the first
      count_set(w, t, s->b, call);
      x = s->a;
      continue;
    case SET_CALL: x = s->a, call = s->b; continue;
    case SET_PARAM: // what hangs on a parameter of main does not exist
      assert(call);
      x = argument(w, s->a, &call);
      continue;
    case SET_EMPTY: return;
    default: break;
    }
    tally *of = tally_of(w, t, s, call);
    const bool one = s->kind != SET_ALL && at != COORD_NONE;
    for (u32 k = one ? at : 0; k < (one ? at + 1 : w->size); k++) count_one(of, k, call);
    return;
  }
}

// ---- chains of sums -------------------------------------------------------------------------------------
// What is summed over microbatches goes from call to call as tuples of hundreds of sums. If every call does
// no more than add one contribution to each, at the coordinate where it is called, they are complete or not
// all together.
static bool adds_one(const coverage *w, const in_time *t, u32 slot) {
  const set *s = &w->sets.v[t->x], *a, *b;
  if (t->kind != IN_SUM || s->kind != SET_BOTH) return false;
  a = &w->sets.v[s->a], b = &w->sets.v[s->b];
  return a->kind == SET_PARAM && a->a == slot && b->kind == SET_CURRENT;
}

// The parameter that result r continues; false if it is no link of a chain.
static bool find_link(coverage *w, summary *callee, u32 r, u32 *k) {
  const state *ret = &callee->ret[r];
  if (!callee->link) callee->link = ZNEWN(w->a, link, callee->nrets);
  link *l = &callee->link[r];
  *k = l->k;
  if (l->known) return l->known == 1;
  l->known = 2;
  const in_time *v = elements_of(ret);
  const set *s = ret->n && v->kind == IN_SUM ? &w->sets.v[v->x] : NULL;
  if (!s || s->kind != SET_BOTH || w->sets.v[s->a].kind != SET_PARAM) return false;
  const u32 slot = w->sets.v[s->a].a;
  *k = l->k = callee->param[slot];
  if (callee->first[*k] != slot || slot + ret->n > callee->nslots) return false;
  for (u32 e = 0; e < ret->n; e++)
    if (!adds_one(w, &v[e], slot + e) || callee->param[slot + e] != *k) return false;
  l->known = 1;
  return true;
}

// Follows value v of main back to where there is no sum yet. True if every function on the way has added to
// it once at every coordinate.
static bool chain_is_complete(coverage *w, value v) {
  arena_mark_t m = arena_mark(w->tmp);
  u32 **count = ZNEWN(w->tmp, u32 *, w->p->funcs.n), k, open = 0;
  u32 *result = NEWN(w->tmp, u32, w->p->funcs.n);
  bool ok = true;
  for (const state *s = &w->val[v]; ok && s->call; s = &w->val[v]) {
    const instr *i = &w->fi->body.v[s->call - 1];
    const u32 r = v - i->res, c = coord_of(w, i), f = i->callee.i;
    if (v < i->res || r >= i->nres || c == COORD_NONE || !find_link(w, &w->sum[f], r, &k)) break;
    if (!count[f]) count[f] = ZNEWN(w->tmp, u32, w->size), result[f] = r, open += w->size;
    ok = result[f] == r && !count[f][c]++;
    open--;
    v = opd_of(w->fi, i, k);
  }
  const state *s = &w->val[v];
  ok = ok && !open && !s->call;
  for (u32 e = 0; ok && e < s->n; e++) ok = elements_of(s)[e].kind != IN_SUM || !elements_of(s)[e].x;
  arena_release(w->tmp, m);
  return ok;
}

// Is what a call of main claims to be complete a parameter that is?
static bool in_complete_chain(coverage *w, u32 x, u32 call) {
  if (!call || w->sets.v[x].kind != SET_PARAM) return false;
  const instr *i = &w->fi->body.v[call - 1];
  value v = opd_of(w->fi, i, w->sum[i->callee.i].param[w->sets.v[x].a]);
  for (u32 def; (def = w->fi->values.v[v].def) && w->fi->body.v[def - 1].op == OP_unpack;) // all of the tuple
    v = opd_of(w->fi, &w->fi->body.v[def - 1], 0);
  if (!w->chain[v]) w->chain[v] = chain_is_complete(w, v) ? 1 : 2;
  return w->chain[v] == 1;
}

// Those that are not there, or, if all are, those that count more than once. fewer: of those that are not there, if
// any.
static void put_coordinates(const coverage *w, strbuf *b, const tally *t, u32 least, const bool *fewer) {
  u32 n = 0;
  bool some = false;
  for (u32 k = 0; k < w->size; k++) some |= fewer[k] && !t->count[k];
  for (u32 k = 0; k < w->size; k++) {
    if (least ? t->count[k] == least && t->call[k] != CALLS_MANY : t->count[k] > 0 || (some && !fewer[k]))
      continue;
    if (n++ == 8) {
      sb_put(b, ", ...");
      return;
    }
    sb_fmt(b, "%s%s=%u", n > 1 ? ", " : "", axis_name(w), k);
  }
}

// Where time is in parts, those of replicas of the model: is it there from all coordinates of some parts, and from none
// of the others?
static bool has_parts(const coverage *w, const tally *t) {
  const axis_info *x = axis_get(w->p->sp, w->axis);
  bool all = x->nparts > 0;
  for (u32 k = 0, c = 0; all && k < x->nparts; k++)
    for (u32 i = 0; i < x->part[k]; i++, c++) all &= !t->count[c] == !t->count[c - i];
  return all;
}

static bool lacks_some(const coverage *w, const tally *t) {
  for (u32 c = 0; c < w->size; c++)
    if (!t->count[c]) return true;
  return false;
}

// Every replica has the stages that the others have: of contributions that lack coordinates, marks those from which
// fewer stages contribute than from others. True if there are none.
static bool replicas_cover(const coverage *w, const tallies *t, bool *fewer) {
  u32 *stages = ZNEWN(w->tmp, u32, w->size), most = 0;
  bool all = true;
  for (u32 k = 0; k < t->v.n; k++) {
    const tally *x = &t->v.v[k];
    for (u32 c = 0; lacks_some(w, x) && c < w->size; c++) {
      bool counts = x->count[c] > 0;
      for (u32 j = 0; j < k && counts; j++)
        counts = t->v.v[j].stage != x->stage || !t->v.v[j].count[c] || !lacks_some(w, &t->v.v[j]);
      stages[c] += counts;
      most = MAX(most, stages[c]);
    }
  }
  for (u32 c = 0; c < w->size; c++) all &= !(fewer[c] = stages[c] < most);
  return all;
}

// Every contribution equally often from every coordinate, and by one call. call: as of count_set.
static bool is_complete(coverage *w, u32 x, u32 call, const instr *i, const func_info *f) {
  if (in_complete_chain(w, x, call)) return true;
  arena_mark_t m = arena_mark(w->tmp);
  tallies t = {0};
  bool ok = true;
  const attrs at = attrs_get(w->p, i->at); // an update between tasks takes the sum of some microbatches
  const u32 first = (u32)attr_int(at, A_at, 0),
            end = MIN(w->size, first + (u32)attr_int(at, A_count, w->size));
  count_set(w, &t, x, call);
  for (u32 k = 0; ok && k < t.v.n; k++) {
    const tally *y = &t.v.v[k];
    u32 least = ~0u, most = 0, there = ~0u;
    bool again = false;
    for (u32 c = first; c < end; c++) {
      least = MIN(least, y->count[c]), most = MAX(most, y->count[c]);
      if (y->count[c]) there = MIN(there, y->count[c]);
      again |= y->call[c] == CALLS_MANY;
    }
    u32 others = 0;
    for (u32 c = 0; c < w->size; c++) others += (c < first || c >= end) && y->count[c];
    if (least == most && !again && !others) continue;
    bool *fewer = ZNEWN(w->tmp, bool, w->size);
    const bool cover = axis_get(w->p->sp, w->axis)->nparts && !least && replicas_cover(w, &t, fewer);
    if (cover && there == most && !again && has_parts(w, y)) continue;
    ok = false;
    strbuf b = {.a = w->tmp};
    put_coordinates(w, &b, y, least, fewer);
    diag(w->p->c, E_COVERAGE, i->where, "%s in @%s: a sum over %s %s %s%s", op_row_of((opcode)i->op)->name,
         sym_str(w->p->c, f->name), axis_name(w), least == 0 ? "lacks" : "counts", sb_str(&b),
         least == 0 ? "" : " twice");
  }
  arena_release(w->tmp, m);
  return ok;
}

static void claim_complete(coverage *w, u32 x, const instr *i) {
  if (w->main)
    is_complete(w, x, 0, i, w->fi);
  else
    *vec_push(w->a, &w->sum[w->f.i].claims) = (claim){x, (u32)(i - w->fi->body.v)};
}

// ---- instructions -------------------------------------------------------------------------------------
// Which instruction of its function it is, but for sums of gradients on a stream.
static u32 number_of(const coverage *w, const instr *i) {
  u32 n = 0;
  for (const instr *j = w->fi->body.v; w->like[w->f.i] != w->f.i && j < i; j++) n += plan_is_sum_beside(j);
  return (u32)(i - w->fi->body.v) - n;
}

// A result that no operand accounts for: a piece, or a sum of what is made here.
static in_time made_here(coverage *w, const instr *i, type t, bool zero) {
  char now = role_of(w, t);
  if (now == 'R') return (in_time){IN_NONE, 0};
  u32 c = coord_of(w, i);
  if (now == 'D') return (in_time){IN_PIECE, c};
  if (zero) return (in_time){IN_SUM, 0};
  u64 site = w->main ? hash_u64(i->op, hash_u64(i->at.i, i->origin))
                     : hash_u64((u64)w->like[w->f.i] << 32 | number_of(w, i), 1);
  if (c == COORD_CURRENT) return (in_time){IN_SUM, set_new(w, (set){.kind = SET_CURRENT, .site = site})};
  if (c == COORD_NONE) return (in_time){IN_SUM, set_new(w, (set){.kind = SET_ALL, .site = site})};
  return (in_time){IN_SUM, set_new(w, (set){.kind = SET_AT, .a = c, .site = site})};
}

static void read_elsewhere(coverage *w, const instr *i, u32 opd, u32 from, u32 at) {
  strbuf b = {.a = ctx_arena(w->p->c)};
  if (from == COORD_NONE)
    sb_put(&b, "no coordinate");
  else
    sb_fmt(&b, "%s=%u", axis_name(w), from);
  const func_info *g = i->op == OP_call ? func_get(w->p, i->callee) : NULL;
  diag(w->p->c, E_COVERAGE, i->where, "%s%s at %s=%u reads operand %u, which was made at %s",
       op_row_of((opcode)i->op)->name,
       g ? arena_printf(ctx_arena(w->p->c), " of @%s", sym_str(w->p->c, g->name)) : "", axis_name(w), at,
       opd + 1, sb_str(&b));
}

// Pieces must be of the coordinate where they are read.
static void check_pieces(coverage *w, const instr *i, u32 nopd) {
  u32 at = coord_of(w, i);
  for (u32 k = 0; k < nopd && !full(w); k++) {
    const state *s = &w->val[opd_of(w->fi, i, k)];
    if (s->pieces == PIECES_NONE || s->pieces == at) continue;
    for (u32 e = 0; e < s->n; e++) {
      in_time t = element(w, s, e);
      if (t.kind != IN_PIECE || t.x == at || at == COORD_CURRENT || t.x == COORD_CURRENT) continue;
      if (at != COORD_NONE)
        read_elsewhere(w, i, k, t.x, at);
      else
        diag(w->p->c, E_COVERAGE, i->where, "%s reads one piece of operand %u along %s, but none is selected",
             op_row_of((opcode)i->op)->name, k + 1, axis_name(w));
      break;
    }
  }
}

// The callee's set as a call outside main makes it: its parameters are the arguments, its coordinate is the
// call's.
static u32 instantiate(coverage *w, u32 x, const instr *i, const u32 *arg, u32 c) {
  if (w->memo_of.n < w->sets.n) {
    u32 n = w->sets.n - w->memo_of.n;
    memset(vec_push_n(w->a, &w->memo_of, n), 0, n * sizeof *w->memo_of.v);
    (void)vec_push_n(w->a, &w->memo, n);
  }
  if (w->memo_of.v[x] == w->instantiation) return w->memo.v[x];
  set s = w->sets.v[x];
  u32 y = x;
  switch (s.kind) {
  case SET_PARAM: y = arg[s.a]; break;
  case SET_BOTH: y = set_both(w, instantiate(w, s.a, i, arg, c), instantiate(w, s.b, i, arg, c)); break;
  case SET_CURRENT:
  case SET_AT:
    s.site = hash_u64(hash_u64((u64)w->like[w->f.i] << 32 | number_of(w, i), 2), s.site);
    if (s.kind == SET_CURRENT && c != COORD_CURRENT) s.kind = SET_AT, s.a = c;
    y = set_new(w, s);
    break;
  default: break;
  }
  w->memo_of.v[x] = w->instantiation;
  return w->memo.v[x] = y;
}

static summary *summary_of(coverage *w, func f);

static void call_of_main(coverage *w, const instr *i, const summary *s) {
  u32 call = (u32)(i - w->fi->body.v) + 1;
  const func_info *g = func_get(w->p, i->callee);
  for (u32 r = 0; r < s->nrets; r++)
    w->val[i->res + r] = state_called(w, elements_of(&s->ret[r]), s->ret[r].n, call);
  for (u32 k = 0; k < s->claims.n && !full(w); k++)
    if (!is_complete(w, s->claims.v[k].set, call, &g->body.v[s->claims.v[k].instr], g))
      diag_note(w->p->c, i->where, "called here");
}

static void do_call(coverage *w, const instr *i, u32 nopd) {
  summary *s = summary_of(w, i->callee);
  if (w->main) {
    call_of_main(w, i, s);
    return;
  }
  arena_mark_t m = arena_mark(w->tmp);
  u32 c = coord_of(w, i), n = 0;
  u32 *arg = NEWN(w->tmp, u32, s->nslots + 1);
  for (u32 k = 0; k < nopd; k++) {
    const state *x = &w->val[opd_of(w->fi, i, k)];
    for (u32 e = 0; e < x->n; e++) arg[n++] = elements_of(x)[e].kind == IN_SUM ? elements_of(x)[e].x : 0;
  }
  w->instantiation++;
  for (u32 r = 0; r < s->nrets; r++) {
    const u32 ne = s->ret[r].n;
    in_time *v = NEWN(w->a, in_time, ne);
    for (u32 e = 0; e < ne; e++) {
      v[e] = elements_of(&s->ret[r])[e];
      if (v[e].kind == IN_PIECE && v[e].x == COORD_CURRENT) v[e].x = c;
      if (v[e].kind == IN_SUM) v[e].x = instantiate(w, v[e].x, i, arg, c);
    }
    w->val[i->res + r] = state_of(v, ne);
  }
  for (u32 k = 0; k < s->claims.n; k++) {
    u32 x = instantiate(w, s->claims.v[k].set, i, arg, c);
    *vec_push(w->a, &w->sum[w->f.i].claims) = (claim){x, (u32)(i - w->fi->body.v)};
  }
  arena_release(w->tmp, m);
}

static void do_tuple(coverage *w, const instr *i, u32 nopd) {
  if (i->op == OP_pack) {
    u32 n = 0;
    for (u32 k = 0; k < nopd; k++) n += w->val[opd_of(w->fi, i, k)].n;
    in_time *v = NEWN(w->a, in_time, n);
    n = 0;
    for (u32 k = 0; k < nopd; k++) {
      const state *x = &w->val[opd_of(w->fi, i, k)];
      for (u32 e = 0; e < x->n; e++, n++) {
        v[n] = element(w, x, e);
        if (v[n].kind == IN_SUM) v[n].x = sum_of(w, x, e);
      }
    }
    w->val[i->res] = state_of(v, n);
    return;
  }
  const state whole = w->val[opd_of(w->fi, i, 0)];
  const in_time *at = elements_of(&w->val[opd_of(w->fi, i, 0)]);
  for (u32 k = 0; k < i->nres; k++) {
    u32 n = type_leaves(w->p, val(w->fi, i->res + k)->ty);
    w->val[i->res + k] = whole.call ? state_called(w, at, n, whole.call) : state_of(at, n);
    at += n;
  }
}

static bool over_axis(const coverage *w, const instr *i) {
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    if (over->u.axes[k] == w->axis) return true;
  return false;
}

static bool is_zero(const coverage *w, const instr *i) {
  return i->op == OP_full && attr_float(attrs_get(w->p, i->at), A_value, 0) == 0;
}

// Sums pass through what is linear in them: the result is the sum of all that was summed in the operands.
static void do_instr(coverage *w, const instr *i) {
  u32 nopd = instr_nopd(w->fi, i);
  bool time = (i->op == OP_join || i->op == OP_part) && over_axis(w, i);
  if (i->op != OP_pack && i->op != OP_unpack && !time) check_pieces(w, i, nopd);
  if (i->op == OP_call) {
    do_call(w, i, nopd);
    return;
  }
  if (i->op == OP_pack || i->op == OP_unpack) {
    do_tuple(w, i, nopd);
    return;
  }
  u32 sum = 0;
  bool any = false;
  for (u32 k = 0; k < nopd; k++) {
    const state *s = &w->val[opd_of(w->fi, i, k)];
    if (s->n == 1 && elements_of(s)->kind == IN_SUM) sum = set_both(w, sum, sum_of(w, s, 0)), any = true;
  }
  if (time && i->op == OP_join && any && role_of(w, val(w->fi, i->res)->ty) != 'V') claim_complete(w, sum, i);
  const bool each =
      (op_row_of((opcode)i->op)->flags & (OPF_COMM | OPF_MANY_RES)) == (OPF_COMM | OPF_MANY_RES);
  for (u32 k = 0; k < i->nres; k++) {
    const state *own = each ? &w->val[opd_of(w->fi, i, k)] : NULL; // result k is of operand k alone
    if (own) any = own->n == 1 && elements_of(own)->kind == IN_SUM, sum = any ? sum_of(w, own, 0) : 0;
    type t = val(w->fi, i->res + k)->ty;
    if (type_get(w->p, t)->tuple) { // opaque: a tuple of nobody knows what
      u32 n = type_leaves(w->p, t);
      w->val[i->res + k] = state_of(ZNEWN(w->a, in_time, n), n);
      continue;
    }
    in_time out = made_here(w, i, t, is_zero(w, i));
    if (time && i->op == OP_part && out.kind == IN_PIECE)
      out.x = (u32)attr_int(attrs_get(w->p, i->at), A_at, 0);
    if (out.kind == IN_SUM && any) out.x = sum;
    w->val[i->res + k] = state_of(&out, 1);
  }
}

// ---- functions ----------------------------------------------------------------------------------------
static void param_states(coverage *w, type t, in_time *v, u32 *n) {
  const type_info *ti = type_get(w->p, t);
  for (u32 k = 0; ti->tuple && k < ti->n; k++) param_states(w, ti->elem[k], v, n);
  if (ti->tuple) return;
  char now = role_of(w, t);
  u32 slot = (*n)++;
  if (now == 'D') v[slot] = (in_time){IN_PIECE, w->main ? COORD_NONE : COORD_CURRENT};
  if (now == 'V') v[slot] = (in_time){IN_SUM, w->main ? 0 : set_new(w, (set){.kind = SET_PARAM, .a = slot})};
}

static void walk(coverage *w, func f, summary *s) {
  w->f = f, w->fi = func_get(w->p, f), w->main = f.i == w->p->main.i;
  w->val = ZNEWN(w->a, state, w->fi->values.n);
  u32 n = 0, used = 0;
  for (u32 k = 1; k <= w->fi->nparams; k++) n += type_leaves(w->p, val(w->fi, k)->ty);
  in_time *slots = ZNEWN(w->a, in_time, n + 1);
  s->first = NEWN(w->a, u32, w->fi->nparams);
  s->param = NEWN(w->a, u32, n);
  for (u32 k = 1; k <= w->fi->nparams; k++) {
    u32 from = s->first[k - 1] = used;
    param_states(w, val(w->fi, k)->ty, slots, &used);
    for (u32 e = from; e < used; e++) s->param[e] = k - 1;
    w->val[k] = state_of(slots + from, used - from);
  }
  s->nslots = n;
  for (u32 k = 0; k < w->fi->body.n && !full(w); k++) do_instr(w, &w->fi->body.v[k]);
  s->nrets = w->fi->rets.n;
  s->ret = NEWN(w->a, state, s->nrets + 1);
  for (u32 k = 0; k < s->nrets; k++) s->ret[k] = w->val[w->fi->rets.v[k]];
}

static summary *summary_of(coverage *w, func f) {
  summary *s = &w->sum[f.i];
  if (s->done) return s;
  s->done = true; // ir_verify has ruled out recursion
  coverage outer = *w;
  walk(w, f, s);
  w->f = outer.f, w->fi = outer.fi, w->main = outer.main, w->val = outer.val;
  return s;
}

// What main returns is complete.
static void check_results(coverage *w) {
  const func_info *m = func_get(w->p, w->p->main);
  for (u32 k = 0; k < m->rets.n; k++) {
    value v = m->rets.v[k];
    if (type_get(w->p, m->values.v[v].ty)->tuple || role_of(w, m->values.v[v].ty) == 'R') continue;
    diag(w->p->c, E_COVERAGE, m->where, "result %u of main, %s, is %s of %s", k + 1,
         ir_type_str(w->p, m->values.v[v].ty),
         role_of(w, m->values.v[v].ty) == 'D' ? "one piece" : "a sum over some coordinates", axis_name(w));
  }
}

static bool has_versions(const prog *p) {
  const func_info *m = func_get(p, p->main);
  for (u32 k = 0; k < m->body.n; k++)
    if (m->body.v[k].op == OP_join && attr_get(attrs_get(p, m->body.v[k].at), A_count)) return true;
  return false;
}

static bool check_time(prog *p) {
  u32 errors = diag_errors(p->c);
  for (u32 x = 1; x <= axis_count(p->sp); x++) {
    if (!axis_get(p->sp, (u8)x)->temporal) continue;
    coverage w = {.p = p,
                  .a = arena_new(),
                  .tmp = arena_new(),
                  .axis = (u8)x,
                  .size = axis_size(p->sp, (u8)x),
                  .errors = errors};
    w.sum = ZNEWN(w.a, summary, p->funcs.n);
    w.chain = ZNEWN(w.a, u8, func_get(p, p->main)->values.n);
    w.like = plan_alike_but_sums(p, w.a);
    w.sums = ZNEWN(w.a, value, func_get(p, p->main)->values.n);
    set_new(&w, (set){.kind = SET_EMPTY});
    w.versions = has_versions(p);
    walk(&w, p->main, &w.sum[p->main.i]);
    check_results(&w);
    arena_free(w.tmp);
    arena_free(w.a);
  }
  return diag_errors(p->c) == errors;
}

// That no rank waits for ever needs no check: main is one order of all instructions in which every value is
// made before it is used, and what each rank issues is a part of it (rank_orders.c is for other orders).
bool plan_validate(prog *p) {
  bool ok = ir_verify(p) && infer_verify(p) && check_time(p) && plan_check_host(p);
#ifdef HEDDLE_DEBUG
  assert(!ok || plan_check_projections(p));
#endif
  return ok;
}
