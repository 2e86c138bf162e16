// mutants.c - every communication of a plan matters: lost, misdirected or out of order, it must be noticed,
// by the verifier, by validation or in numbers.
//
// A mutant is the distributed program with one instruction changed. All communication instructions, joins and
// parts of a sample of plans are changed in every way that applies:
//   lost      replaced by identity, the result's type kept as it is declared
//   zero      replaced by zeros of the result's type: a message that never arrives in a buffer that was
//   cleared axis      over another axis that its group has at        another coordinate or root place     a
//   send to, or from, another place operand   another value of the operand's type: the wrong buffer is sent
//   order     one rank issues it before the instruction that it should follow
// Not made, because they are equal by construction: what does not reach a result; zeros instead of zeros; an
// operand that is the same value (computed again, or the same in other pieces); an order that no other rank
// can see and that no value contradicts. A mutant that is not noticed must compute the same on other inputs
// as well; few may (two biases that are added up have one gradient). SEED=n MODEL=name runs one plan and
// prints the fate of every mutant.
#include "plans.h"
#include "test.h"
#include <stdlib.h>

enum { PLANS = 2, MOST = 20 }; // plans of a model and kind; communications of one plan

typedef enum { MUT_LOST, MUT_ZERO, MUT_AXIS, MUT_AT, MUT_PLACE, MUT_OPERAND, MUT_ORDER, MUT_COUNT } mutation;
static const char *const mut_name[] = {"lost", "zero", "axis", "at", "place", "operand", "order"};
typedef struct {
  u32 made, proved, numbers;
} tally;
static tally tallies[MUT_COUNT];
static u32 equal; // mutants that compute the same

typedef struct {
  plans_model *m;
  const plan *pn;
  prog *p;
  arena *a;
  u64 rng;
  u64 seed;
  bool **live;  // per function and value: reaches a result of main
  u64 **number; // per function and value: equal numbers are equal values
  func f;       // the instruction at hand
  u32 index;
} world;

static bool is_comm(opcode op) { return coll_find(op) || op == OP_join || op == OP_part; }

// ---- what can be told from the program -----------------------------------------------------------------
static bool raise_to(bool *to, bool by) {
  bool more = by && !*to;
  *to |= by;
  return more;
}

static bool live_in(world *w, u32 f) {
  const func_info *fi = w->p->funcs.v[f];
  bool more = false;
  for (u32 i = fi->body.n; i-- > 0;) {
    const instr *in = &fi->body.v[i];
    const func_info *g = in->op == OP_call ? func_get(w->p, in->callee) : NULL;
    bool any = false;
    for (u32 r = 0; r < in->nres; r++) {
      bool l = w->live[f][in->res + r];
      any |= l;
      if (g) more |= raise_to(&w->live[in->callee.i][g->rets.v[r]], l);
    }
    for (u32 k = 0; k < in->nopd; k++)
      more |=
          raise_to(&w->live[f][opd_of(fi, in, k)], g && k < g->nparams ? w->live[in->callee.i][k + 1] : any);
  }
  return more;
}

// Number of a result: by what makes it and of which numbers. Moving a value does not change it; nor does
// computing it again. In main, a result of a call that does not vary over the microbatches is the same for
// all of them.
static u64 number_of(const world *w, const func_info *fi, const u64 *number, const instr *in, u32 r) {
  opcode op = (opcode)in->op;
  if (op == OP_unpack || op == OP_pack) return hash_u64(in->res + r, 11);
  bool moved = (is_comm(op) && op != OP_join && op != OP_part) || op == OP_identity;
  if (moved) return number[opd_of(fi, in, r < instr_nopd(fi, in) ? r : 0)];
  u64 h = hash_u64(op, hash_u64(in->at.i, hash_u64(r, in->callee.i)));
  if (op == OP_call && in->coord && !val_type(w->p, fi, in->res + r)->tuple) {
    const layout_info *l = layout_get(w->p->sp, val_type(w->p, fi, in->res + r)->lay);
    bool varies = false;
    for (u32 k = 0; k < l->nsplit; k++) varies |= axis_get(w->p->sp, l->split[k].axis)->temporal;
    for (u32 k = 0; k < l->npart; k++) varies |= axis_get(w->p->sp, l->part[k].axis)->temporal;
    if (!varies) return h;
  }
  for (u32 k = 0; k < instr_nopd(fi, in); k++) h = hash_u64(number[opd_of(fi, in, k)], h);
  return h;
}

// Is an element of a value nothing but zeros? Through tuples and calls, back to where it is made.
static bool is_zero(const world *w, u32 f, value v, u32 elem) {
  const func_info *fi = w->p->funcs.v[f];
  u32 def = fi->values.v[v].def;
  if (!def) return false;
  const instr *in = &fi->body.v[def - 1];
  switch (in->op) {
  case OP_full: return attr_float(attrs_get(w->p, in->at), A_value, 0) == 0;
  case OP_pack: return is_zero(w, f, opd_of(fi, in, elem), 0);
  case OP_unpack: return is_zero(w, f, opd_of(fi, in, 0), v - in->res);
  case OP_call: return is_zero(w, in->callee.i, func_get(w->p, in->callee)->rets.v[v - in->res], elem);
  default: break;
  }
  if (!is_comm((opcode)in->op) && in->op != OP_reshape) return false;
  for (u32 k = 0; k < instr_nopd(fi, in); k++)
    if (!is_zero(w, f, opd_of(fi, in, k), 0)) return false;
  return true;
}

static void look_at(world *w) {
  u32 n = w->p->funcs.n;
  w->live = NEWN(w->a, bool *, n), w->number = NEWN(w->a, u64 *, n);
  for (u32 f = 1; f < n; f++) {
    const func_info *fi = w->p->funcs.v[f];
    w->live[f] = ZNEWN(w->a, bool, fi->values.n), w->number[f] = ZNEWN(w->a, u64, fi->values.n);
    for (value v = 1; v <= fi->nparams; v++) w->number[f][v] = hash_u64(v, 7);
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      for (u32 r = 0; r < in->nres; r++) w->number[f][in->res + r] = number_of(w, fi, w->number[f], in, r);
    }
  }
  const func_info *m = func_get(w->p, w->p->main);
  for (u32 k = 0; k < m->rets.n; k++) w->live[w->p->main.i][m->rets.v[k]] = true;
  for (bool more = true; more;) {
    more = false;
    for (u32 f = 1; f < n; f++) more |= live_in(w, f);
  }
}

// ---- one mutant ----------------------------------------------------------------------------------------
static instr *at_hand(const world *w, prog *q) { return &func_get(q, w->f)->body.v[w->index]; }

static void report(world *w, mutation how, const char *fate) {
  const instr *in = at_hand(w, w->p);
  strbuf b = {.a = w->a};
  ir_print_func(w->p, w->f, &b);
  printf("%s, seed %llu, %s: @%s instruction %u, %s: %s\n", w->m->name, (unsigned long long)w->seed,
         mut_name[how], sym_str(w->m->c, func_get(w->p, w->f)->name), w->index + 1,
         op_row_of((opcode)in->op)->name, fate);
  if (getenv("SEED")) puts(sb_str(&b));
}

static bool differs(world *w, prog *q, u64 seed, const plan_numbers *want, arena *a) {
  plan_numbers got;
  verify_report r = {0};
  return !plan_evaluate(w->m->src, q, seed, a, &got) || !plan_compare(w->m->c, want, &got, 0, a, &r) ||
         !r.passed;
}

// Does it compute the same on other inputs too? Then it is the same function, by an identity of the model.
static bool is_equal(world *w, prog *q, arena *a) {
  for (u64 seed = PLANS_SEED + 1; seed < PLANS_SEED + 4; seed++) {
    plan_numbers want;
    if (!plan_evaluate(w->m->src, w->p, seed, a, &want) || differs(w, q, seed, &want, a)) return false;
  }
  return true;
}

// Is it noticed? Takes q.
static void judge(world *w, prog *q, mutation how) {
  u32 had = diag_count(w->m->c);
  arena *a = arena_new();
  tallies[how].made++;
  bool proved = !ir_verify(q) || !plan_validate(q),
       seen = proved || differs(w, q, PLANS_SEED, plans_want(w->m, w->pn), a),
       same = !seen && is_equal(w, q, a);
  tallies[how].proved += proved, tallies[how].numbers += seen && !proved, equal += same;
  if ((!seen && !same) || getenv("SEED") || getenv("VERBOSE"))
    report(w, how,
           proved ? diag_get(w->m->c, had).message
           : seen ? "numbers"
           : same ? "computes the same"
                  : "NOT NOTICED");
  if (!seen && !same) {
    strbuf b = {.a = a};
    plan_print(planner_source(w->m->pl), w->pn, &b);
    CHECK_MSG(false, "a mutant was not noticed; the plan:\n%s", sb_str(&b));
  }
  diag_truncate(w->m->c, had);
  arena_free(a);
  prog_free(q);
}

static prog *copy(const world *w) { return prog_clone(w->p, w->m->c); }

static void mutate_lost(world *w) {
  prog *q = copy(w);
  instr *in = at_hand(w, q);
  if (in->nres == 1 && instr_nopd(func_get(q, w->f), in) == 1) {
    in->op = OP_identity, in->at = (attrset){0};
    judge(w, q, MUT_LOST);
    return;
  }
  prog_free(q);
}

static void mutate_zero(world *w) {
  const func_info *fi = func_get(w->p, w->f);
  const instr *in = at_hand(w, w->p);
  if (in->nres != 1 || is_zero(w, w->f.i, in->res, 0)) return;
  if (dtype_kind_of(val_type(w->p, fi, in->res)->s.t) != DK_FLOAT) return; // the index of one sample may be 0
  prog *q = copy(w);
  instr *to = at_hand(w, q);
  const shape *s = &val_type(w->p, fi, in->res)->s;
  group lies = val_type(w->p, fi, in->res)->g;
  attr at[] = {attr_t(A_dtype, s->t), attr_v(A_shape, s->dim, s->nd)};
  to->op = OP_full, to->at = attrs_of(q, at, 2), to->nopd = 0, to->g = lies;
  judge(w, q, MUT_ZERO);
}

static void mutate_axis(world *w) {
  const attr *over = attr_get(attrs_get(w->p, at_hand(w, w->p)->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    for (u8 x = 1; x <= axis_count(w->p->sp); x++) {
      bool named = false;
      for (u32 j = 0; j < over->n; j++) named |= over->u.axes[j] == x;
      if (named || axis_size(w->p->sp, x) < 2) continue;
      u8 axes[MESH_AXES];
      memcpy(axes, over->u.axes, over->n);
      axes[k] = x;
      prog *q = copy(w);
      attrs old = attrs_get(q, at_hand(w, q)->at);
      attr *v = arena_dup(w->a, old.v, sizeof *v * old.n);
      for (u32 j = 0; j < old.n; j++)
        if (v[j].key == A_over) v[j] = attr_x(A_over, axes, over->n);
      at_hand(w, q)->at = attrs_of(q, v, old.n);
      judge(w, q, MUT_AXIS);
    }
}

// Another coordinate of a part; another place of a join's operands.
static void mutate_at(world *w) {
  const instr *in = at_hand(w, w->p);
  const func_info *fi = func_get(w->p, w->f);
  attrs at = attrs_get(w->p, in->at);
  const attr *over = attr_get(at, A_over);
  if (in->op == OP_part) {
    u32 n = axis_size(w->p->sp, over->u.axes[0]), now = (u32)attr_int(at, A_at, 0);
    if (n < 2) return;
    prog *q = copy(w);
    attr v[] = {attr_x(A_over, over->u.axes, 1), attr_i(A_at, (now + 1) % n)};
    at_hand(w, q)->at = attrs_of(q, v, 2);
    judge(w, q, MUT_AT);
  }
  if (in->op != OP_join || instr_nopd(fi, in) < 2) return;
  bool sum =
      layout_part_of(w->p->sp, val_type(w->p, fi, opd_of(fi, in, 0))->lay, over->u.axes[0]) != RED_NONE ||
      !axis_get(w->p->sp, over->u.axes[0])->temporal;
  for (int twice = 0; twice < 2; twice++) {
    u32 x = opd_of(fi, in, 0), y = opd_of(fi, in, 1);
    if ((sum && !twice) || w->number[w->f.i][x] == w->number[w->f.i][y])
      continue; // in a sum their order is no matter
    prog *q = copy(w);
    u32 *opd = func_get(q, w->f)->opds.v + in->opd;
    opd[1] = x;
    if (!twice) opd[0] = y;
    judge(w, q, MUT_AT);
  }
}

static void mutate_place(world *w) {
  const instr *in = at_hand(w, w->p);
  if (in->op != OP_send) return;
  const func_info *fi = func_get(w->p, w->f);
  const type_info *t = val_type(w->p, fi, in->res);
  for (u32 g = 1; g <= group_count(w->p->sp); g++) {
    if (g == t->g.i || g == in->g.i ||
        group_get(w->p->sp, (group){g})->nranks != group_get(w->p->sp, t->g)->nranks)
      continue;
    prog *q = copy(w);
    func_get(q, w->f)->values.v[in->res].ty = type_on(q, fi->values.v[in->res].ty, (group){g});
    judge(w, q, MUT_PLACE);
    q = copy(w);
    at_hand(w, q)->g = (group){g};
    judge(w, q, MUT_PLACE);
    return;
  }
}

static void mutate_operand(world *w) {
  const func_info *fi = func_get(w->p, w->f);
  const instr *in = at_hand(w, w->p);
  for (u32 k = 0; k < instr_nopd(fi, in); k++) {
    value v = opd_of(fi, in, k), pick = 0;
    for (value u = 1; u < in->res && !pick; u++)
      if (u != v && fi->values.v[u].ty.i == fi->values.v[v].ty.i &&
          w->number[w->f.i][u] != w->number[w->f.i][v] &&
          !(is_zero(w, w->f.i, u, 0) && is_zero(w, w->f.i, v, 0)))
        pick = u;
    if (!pick) continue;
    prog *q = copy(w);
    u32 *e = &func_get(q, w->f)->opds.v[in->opd + k];
    *e = pick | (*e & ~(u32)OPD_VALUE);
    judge(w, q, MUT_OPERAND);
  }
}

// ---- orders --------------------------------------------------------------------------------------------
static bool reads(const func_info *f, const instr *in, const instr *of) {
  for (u32 k = 0; k < in->nopd; k++) {
    value v = opd_of(f, in, k);
    if (v >= of->res && v < of->res + of->nres) return true;
  }
  return false;
}

static bool communicates(const prog *p, const instr *in) {
  if (in->op != OP_call) return coll_find((opcode)in->op) && in->op != OP_shard && in->op != OP_partial;
  const func_info *f = func_get(p, in->callee);
  for (u32 k = 0; k < f->body.n; k++)
    if (communicates(p, &f->body.v[k])) return true;
  return false;
}

// One rank issues a communication of main just before the last instruction that it shares with it: a stream,
// and another rank or a value.
static void mutate_order(world *w) {
  if (w->f.i != w->p->main.i) return;
  const func_info *m = func_get(w->p, w->p->main);
  u32 n = plan_ranks(w->p), number = w->index + 1;
  const instr *in = at_hand(w, w->p);
  if (!communicates(w->p, in)) return;
  plan_order *of_rank = NEWN(w->a, plan_order, n);
  plan_projections(w->p, w->a, of_rank);
  for (u32 r = 0; r < n; r++) {
    u32 at = 0, to;
    while (at < of_rank[r].n && of_rank[r].instr[at] != number) at++;
    if (at == of_rank[r].n) continue;
    for (to = at; to-- > 0;) {
      const instr *x = &m->body.v[of_rank[r].instr[to] - 1];
      bool met = false; // does another rank issue both?
      for (u32 q = 0; q < n && !met; q++) {
        u32 both = 0;
        for (u32 k = 0; k < of_rank[q].n; k++)
          both += of_rank[q].instr[k] == number || of_rank[q].instr[k] == of_rank[r].instr[to];
        met = q != r && both == 2;
      }
      if (reads(m, in, x) || (met && x->strm == in->strm && communicates(w->p, x))) break;
    }
    if (to == ~0u) continue;
    u32 *v = arena_dup(w->a, of_rank[r].instr, sizeof *v * of_rank[r].n);
    memmove(v + to + 1, v + to, (at - to) * sizeof *v);
    v[to] = number;
    plan_order *q = arena_dup(w->a, of_rank, sizeof *q * n);
    q[r].instr = v;
    u32 had = diag_count(w->m->c);
    bool noticed = !plan_check_orders(w->p, q, n);
    tallies[MUT_ORDER].made++, tallies[MUT_ORDER].proved += noticed;
    if (!noticed || getenv("SEED"))
      report(w, MUT_ORDER, noticed ? diag_get(w->m->c, had).message : "NOT NOTICED");
    CHECK_MSG(noticed, "rank %u may issue instruction %u before %u", r, number, of_rank[r].instr[to]);
    diag_truncate(w->m->c, had);
    return;
  }
}

// ---- plans ---------------------------------------------------------------------------------------------
static void mutate(world *w) {
  mutate_lost(w);
  mutate_zero(w);
  mutate_axis(w);
  mutate_at(w);
  mutate_place(w);
  mutate_operand(w);
  mutate_order(w);
}

static bool check_plan(plans_model *m, const plan *pn, u64 seed, arena *a) {
  world w = {.m = m, .pn = pn, .a = a, .rng = seed, .seed = seed, .p = plan_apply(m->pl, pn, NULL)};
  if (!w.p) return false;
  look_at(&w);
  u32 n = 0, left = test_cases(MOST);
  for (int pass = 0; pass < 2; pass++) { // count, then take so many of them at random
    for (w.f.i = 1; w.f.i < w.p->funcs.n; w.f.i++)
      for (w.index = 0; w.index < func_get(w.p, w.f)->body.n; w.index++) {
        const instr *in = at_hand(&w, w.p);
        bool live = false;
        for (u32 r = 0; r < in->nres; r++) live |= w.live[w.f.i][in->res + r];
        if (!live || !is_comm((opcode)in->op)) continue;
        if (!pass)
          n++;
        else if (rng_next(&w.rng) % n-- < left)
          left--, mutate(&w);
      }
  }
  prog_free(w.p);
  return left < test_cases(MOST);
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);

TEST(mutants_are_noticed) {
  static maker *const make[] = {plans_hybrid, plans_random, plans_placed, plans_stale};
  const char *only = getenv("MODEL"), *one = getenv("SEED");
  for (u32 i = 0; i < plans_count(); i++) {
    plans_model m;
    plans_open(&m, i);
    for (u32 kind = 0; kind < COUNT_OF(make); kind++) {
      u64 from = one ? strtoull(one, NULL, 0) : 1001;
      u32 left = one ? 1 : PLANS;
      for (u64 seed = from; left && seed < from + (one ? 1 : 60) && (!only || !strcmp(only, m.name));
           seed++) {
        arena *a = arena_new();
        u64 rng = hash_u64(seed, 2 * i + kind + 1 + (kind > 1) * 1000);
        diag_clear(m.c);
        plan *pn = make[kind](&m, &rng, a);
        if (pn && check_plan(&m, pn, seed, a)) left--;
        arena_free(a);
      }
    }
    plans_close(&m);
  }
  u32 all = 0;
  for (u32 k = 0; k < MUT_COUNT; k++) all += tallies[k].made;
  CHECK_MSG(equal * 100 <= all || one || !test_all_cases(), "%u of %u mutants compute the same", equal, all);
  for (u32 k = 0; k < MUT_COUNT; k++) {
    if (getenv("VERBOSE"))
      printf("%s: %u made, %u proved wrong, %u by numbers\n", mut_name[k], tallies[k].made, tallies[k].proved,
             tallies[k].numbers);
    CHECK_MSG(one || only || !test_all_cases() || tallies[k].made >= 20, "only %u mutants of kind %s",
              tallies[k].made, mut_name[k]);
  }
}
