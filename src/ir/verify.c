// verify.c - every invariant of a program, in one linear pass. Not whether layouts fit through compute
// operators (infer/), nor whether a plan covers what it must (plan/): a program that is not materialised yet
// verifies.
//
// Idea: first each function by itself (order of definitions, arity, shapes by the law, groups, coordinates in
// time, donation), then the call graph (no recursion), then every function on every group that it is called
// on: the axes of its layouts and communications must be there. The invariants are numbered in
// docs/language.md.
#include "ir/internal.h"

enum { ERRORS_MAX = 20, CALL_DEPTH_MAX = 128 };

typedef struct {
  type t;
  u32 at;
} own_type; // a type on the function's own group; at: instruction index + 1
typedef struct {
  func callee;
  group g;
  u32 at;
} own_call;
typedef struct {
  bool *takes;         // per parameter: is it donated in the body?
  VEC(own_type) types; // distinct
  VEC(u32) moves;      // communications on the function's own group
  VEC(own_call) calls; // distinct
} summary;

typedef struct {
  prog *p;
  arena *tmp, *own; // own: of the function at hand
  u32 errors;
  bool temporal; // are there temporal axes at all?
  summary *sum;  // per function
  // the function and instruction at hand
  func f;
  const func_info *fi;
  const instr *i;
  u32 index;
  u32 *gone;  // per value: the instruction it was donated to, + 1
  u32 *point; // per value: its temporal coordinates
  u32 *used;  // per value: the latest instruction that donates operands and has it as one, + 1 ...
  u32 *again; // ... and that has it twice
  u32 *seen;  // per type: the latest function that has it
  u32 ntypes;
  hmap placed; // types checked on a group
} verifier;

static bool full(const verifier *w) { return diag_errors(w->p->c) - w->errors >= ERRORS_MAX; }

static bool broken(verifier *w, diag_id id, const char *fmt, ...) PRINTF_LIKE(3, 4); // always false
static bool broken(verifier *w, diag_id id, const char *fmt, ...) {
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(w->p->c, id, w->i ? w->i->where : w->fi->where, "%s", text);
  return false;
}

static const char *func_name(const verifier *w, func f) { return sym_str(w->p->c, func_get(w->p, f)->name); }
static const char *op_name(const verifier *w) { return op_row_of((opcode)w->i->op)->name; }

static const char *value_str(const verifier *w, value v) {
  sym s = v < w->fi->values.n ? w->fi->values.v[v].name : (sym){0};
  return s.i ? arena_printf(w->tmp, "%%%s", sym_str(w->p->c, s)) : arena_printf(w->tmp, "value %u", v);
}

// ---- records ----------------------------------------------------------------------------------------
// Signatures first: calls look at them whichever function comes first.
static bool check_signature(verifier *w) {
  const func_info *f = w->fi;
  const char *name = func_name(w, w->f);
  if (f->values.n <= f->nparams || f->params.n != f->nparams)
    return broken(w, E_VERIFY, "@%s: %u parameters, %u descriptions", name, f->nparams, f->params.n);
  for (u32 k = 0; k < f->nparams; k++) {
    const value_info *v = val(f, k + 1);
    if (v->def || !v->ty.i || v->ty.i >= w->p->types.n)
      return broken(w, E_VERIFY, "@%s: parameter %u is a result, or has no type", name, k + 1);
  }
  for (u32 k = 0; k < f->rets.n; k++)
    if (!f->rets.v[k] || f->rets.v[k] >= f->values.n)
      return broken(w, E_VERIFY, "@%s returns value %u, which does not exist", name, f->rets.v[k]);
  bool *takes = w->sum[w->f.i].takes = ZNEWN(w->tmp, bool, f->nparams + 1);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->opd > f->opds.n || i->nopd > f->opds.n - i->opd)
      return broken(w, E_VERIFY, "instruction %u of @%s: operands out of range", k + 1, name);
    for (u32 o = 0; o < i->nopd; o++)
      if (opd_donated(f, i, o) && opd_of(f, i, o) <= f->nparams) takes[opd_of(f, i, o)] = true;
  }
  return true;
}

static bool check_record(verifier *w) {
  const prog *p = w->p;
  const func_info *f = w->fi;
  const instr *i = w->i;
  if (i->op == OP_none || i->op >= OP_ROWS || (i->op >= OP_COUNT && !op_row_of((opcode)i->op)->own))
    return broken(w, E_VERIFY, "there is no operator %u", i->op);
  const op_row *row = op_row_of((opcode)i->op);
  if (i->res > f->values.n || i->nres > f->values.n - i->res || (i->nres && i->res <= f->nparams))
    return broken(w, E_VERIFY, "%s: results out of range", row->name);
  if (i->at.i >= p->attrsets.n || i->strm >= p->streams.n || i->coord >= p->points.n ||
      i->g.i > group_count(p->sp))
    return broken(w, E_VERIFY, "%s: attributes, stream, coordinates or group that do not exist", row->name);
  if (i->origin > p->norigins)
    return broken(w, E_VERIFY, "%s: origin %u of %u", row->name, i->origin, p->norigins);
  if ((i->op == OP_call) != (i->callee.i != 0) || i->callee.i >= p->funcs.n)
    return broken(w, E_VERIFY, "%s: a call needs a callee, nothing else has one", row->name);
  for (u32 k = 0; k < i->nres; k++) {
    const value_info *v = val(f, i->res + k);
    if (v->def != w->index + 1)
      return broken(w, E_VERIFY, "%s is the result of two instructions", value_str(w, i->res + k));
    if (!v->ty.i || v->ty.i >= p->types.n)
      return broken(w, E_VERIFY, "%s has no type", value_str(w, i->res + k));
  }
  return true;
}

static bool is_defined(const verifier *w, value v) {
  const func_info *f = w->fi;
  if (!v || v >= f->values.n) return false;
  if (v <= f->nparams) return true;
  u32 def = f->values.v[v].def;
  if (!def || def > w->index) return false;
  const instr *d = &f->body.v[def - 1];
  return v >= d->res && v - d->res < d->nres;
}

// Marks the data operands of an instruction that donates some, and those that it has more than once.
static void mark_operands(verifier *w) {
  const func_info *f = w->fi;
  const u32 *entry = f->opds.v + w->i->opd, n = w->i->nopd, self = w->index + 1;
  u32 k = 0;
  while (k < n && !(entry[k] & OPD_DONATED)) k++;
  if (k == n) return;
  for (k = 0; k < n; k++) {
    value v = entry[k] & OPD_VALUE;
    if (v >= f->values.n || entry[k] & OPD_AFTER) continue;
    if (w->used[v] == self) w->again[v] = self;
    w->used[v] = self;
  }
}

// A donated value may not be used any more; being ordered after it is no use.
static bool check_operands(verifier *w) {
  const func_info *f = w->fi;
  const instr *i = w->i;
  bool after = false;
  mark_operands(w);
  for (u32 k = 0; k < i->nopd; k++) {
    u32 entry = f->opds.v[i->opd + k];
    value v = entry & OPD_VALUE;
    if (!is_defined(w, v))
      return broken(w, E_VERIFY, "%s uses %s before its definition", op_name(w), value_str(w, v));
    if (after && !(entry & OPD_AFTER))
      return broken(w, E_VERIFY, "%s: an operand follows `after`", op_name(w));
    after = entry & OPD_AFTER;
    if (after && entry & OPD_DONATED)
      return broken(w, E_VERIFY, "%s: `after` cannot donate %s", op_name(w), value_str(w, v));
    if (after) continue;
    if (w->gone[v]) {
      broken(w, E_VERIFY, "%s uses %s, which was donated", op_name(w), value_str(w, v));
      diag_note(w->p->c, f->body.v[w->gone[v] - 1].where, "donated here");
      return false;
    }
    if (entry & OPD_DONATED && w->again[v] == w->index + 1)
      return broken(w, E_VERIFY, "%s: %s is donated and used as well", op_name(w), value_str(w, v));
  }
  for (u32 k = 0; k < i->nopd; k++)
    if (opd_donated(f, i, k)) w->gone[opd_of(f, i, k)] = w->index + 1;
  return true;
}

// ---- shapes -----------------------------------------------------------------------------------------
static const type_info *opd_type(const verifier *w, u32 k) {
  return val_type(w->p, w->fi, opd_of(w->fi, w->i, k));
}
static type res_type(const verifier *w, u32 k) { return val(w->fi, w->i->res + k)->ty; }

static bool check_arity(verifier *w, u32 nopd) {
  const op_row *row = op_row_of((opcode)w->i->op);
  if (nopd < row->opd_min || (row->opd_max != 255 && nopd > row->opd_max)) {
    if (row->opd_min == row->opd_max)
      return broken(w, E_ARITY, "%s: %u operands given, it takes %u", row->name, nopd, row->opd_min);
    return broken(w, E_ARITY, "%s: %u operands given, it takes %u to %u", row->name, nopd, row->opd_min,
                  row->opd_max);
  }
  if (row->flags & OPF_MANY_RES ? w->i->nres < row->res : w->i->nres != row->res)
    return broken(w, E_ARITY, "%s: %u results declared, it has %u", row->name, w->i->nres, row->res);
  return true;
}

static bool same_submesh(verifier *w, type t, const char *what, u32 k) {
  const type_info *i = type_get(w->p, t);
  if (i->tuple) {
    for (u32 e = 0; e < i->n; e++)
      if (!same_submesh(w, i->elem[e], what, k)) return false;
    return true;
  }
  if (i->g.i == w->i->g.i) return true;
  strbuf b = {.a = w->tmp};
  group_print(w->p->sp, w->i->g, &b);
  return broken(w, E_VERIFY, "%s: %s %u is %s, the instruction runs on %s", op_name(w), what, k + 1,
                ir_type_str(w->p, t), w->i->g.i ? sb_str(&b) : "the function's group");
}

static bool check_places(verifier *w, u32 nopd) {
  for (u32 k = 0; k < nopd; k++)
    if (!same_submesh(w, val(w->fi, opd_of(w->fi, w->i, k))->ty, "operand", k)) return false;
  for (u32 k = 0; k < w->i->nres; k++)
    if (!same_submesh(w, res_type(w, k), "result", k)) return false;
  return true;
}

static bool check_move(verifier *w, u32 nopd) {
  type few[8], *t = nopd + w->i->nres <= COUNT_OF(few) ? few : NEWN(w->tmp, type, nopd + w->i->nres);
  application x = {(opcode)w->i->op, w->i->at, nopd, w->i->g, NULL, 0, w->i->where};
  for (u32 k = 0; k < nopd; k++) t[k] = val(w->fi, opd_of(w->fi, w->i, k))->ty;
  for (u32 k = 0; k < w->i->nres; k++) t[nopd + k] = res_type(w, k);
  return move_check(w->p, &x, t, t + nopd, w->i->nres);
}

static bool data_fits(verifier *w, u32 data, const shape *s, const char *what) {
  if (data >= w->p->data.n) return broken(w, E_VERIFY, "%s: elements %u do not exist", what, data);
  const data_info *d = &w->p->data.v[data];
  shape have = {.t = d->t, .nd = d->nd};
  memcpy(have.dim, d->dim, d->nd * sizeof *d->dim);
  if (shape_same(&have, s)) return true;
  return broken(w, E_SHAPE, "%s: the elements are %s, the type is %s", what,
                ir_type_str(w->p, type_tensor(w->p, &have, (layout){0}, (group){0})),
                ir_type_str(w->p, type_tensor(w->p, s, (layout){0}, (group){0})));
}

static bool check_law(verifier *w, u32 nopd) {
  shape few[8], out[OP_RES_MAX], *in = nopd <= COUNT_OF(few) ? few : NEWN(w->tmp, shape, nopd);
  opcode op = (opcode)w->i->op;
  u32 nres = w->i->nres;
  if (nres > OP_RES_MAX) return broken(w, E_LIMIT, "%s: more than %d results", op_name(w), OP_RES_MAX);
  for (u32 k = 0; k < nopd; k++) {
    if (opd_type(w, k)->tuple) return broken(w, E_SHAPE, "%s: operand %u is a tuple", op_name(w), k + 1);
    in[k] = opd_type(w, k)->s;
  }
  attrs at = attrs_get(w->p, w->i->at);
  if (!op_law(w->p->c, w->tmp, op, at, nopd, in, &nres, out, w->i->where)) return false;
  if (nres != w->i->nres)
    return broken(w, E_ARITY, "%s: %u results declared, it has %u", op_name(w), w->i->nres, nres);
  for (u32 k = 0; k < nres; k++) {
    const type_info *t = type_get(w->p, res_type(w, k));
    if (!t->tuple && shape_same(&t->s, &out[k])) continue;
    return broken(w, E_SHAPE, "%s: result %u is declared %s, it is %s", op_name(w), k + 1,
                  ir_type_str(w->p, res_type(w, k)),
                  ir_type_str(w->p, type_tensor(w->p, &out[k], (layout){0}, (group){0})));
  }
  const attr *data = attr_get(at, A_data);
  if (data && !data_fits(w, data->u.data, &out[0], op_name(w))) return false;
  return is_move(op) ? check_move(w, nopd) : check_places(w, nopd);
}

// In the program of one rank (plan/lower.c) attributes say what layouts no longer do: who takes part, or what
// the whole is like. Such a communication may lack the end that lies elsewhere.
static bool has_local(attrs at) {
  static const attr_key key[] = {A_peers, A_gives, A_gets, A_whole};
  for (u32 k = 0; at.n && k < COUNT_OF(key); k++)
    if (attr_get(at, key[k])) return true;
  return false;
}

static bool is_local(const prog *p, const instr *i) { return has_local(attrs_get(p, i->at)); }

bool ir_check_whole(const prog *p, const char *what) {
  for (u32 k = 1; k < p->attrsets.n; k++)
    if (has_local(p->attrsets.v[k])) {
      diag(p->c, E_RANK, (loc){0}, "the program of one rank cannot be %s alone", what);
      diag_hint(p->c, "use the distributed program that it was lowered from");
      return false;
    }
  return true;
}

static bool alone(verifier *w, group g) {
  if (g.i && group_get(w->p->sp, g)->nranks == 1) return true;
  strbuf b = {.a = w->tmp};
  group_print(w->p->sp, g, &b);
  return broken(w, E_VERIFY, "%s: peers, gives, gets and whole belong to programs of one rank, not to %s",
                op_name(w), g.i ? sb_str(&b) : "one without a mesh");
}

static bool check_local(verifier *w, u32 nopd) {
  const op_row *row = op_row_of((opcode)w->i->op);
  if (w->i->g.i && !alone(w, w->i->g)) return false;
  if (!(row->flags & OPF_COMM)) return check_arity(w, nopd) && check_places(w, nopd);
  bool many = row->flags & OPF_MANY_RES;
  if (nopd + w->i->nres == 0 || (many ? nopd != w->i->nres : nopd > 1 || w->i->nres > 1))
    return broken(w, E_ARITY, "%s: %u operands, %u results", row->name, nopd, w->i->nres);
  for (u32 k = 0; k < MIN(nopd, w->i->nres); k++) {
    const type_info *a = opd_type(w, k), *b = type_get(w->p, res_type(w, k));
    if (!a->tuple && !b->tuple && a->s.t == b->s.t && a->s.nd == b->s.nd) continue;
    return broken(w, E_SHAPE, "%s: operand %u is %s, its result %s", row->name, k + 1,
                  ir_type_str(w->p, val(w->fi, opd_of(w->fi, w->i, k))->ty),
                  ir_type_str(w->p, res_type(w, k)));
  }
  return true;
}

static bool check_tuple(verifier *w, u32 nopd) {
  bool pack = w->i->op == OP_pack;
  type whole = pack ? res_type(w, 0) : val(w->fi, opd_of(w->fi, w->i, 0))->ty;
  u32 n = pack ? nopd : w->i->nres;
  const type_info *t = type_get(w->p, whole);
  if (!t->tuple || t->n != n)
    return broken(w, E_SHAPE, "%s: %u values and %s", op_name(w), n, ir_type_str(w->p, whole));
  for (u32 k = 0; k < n; k++) {
    type one = pack ? val(w->fi, opd_of(w->fi, w->i, k))->ty : res_type(w, k);
    if (one.i != t->elem[k].i)
      return broken(w, E_SHAPE, "%s: value %u is %s, the tuple has %s", op_name(w), k + 1,
                    ir_type_str(w->p, one), ir_type_str(w->p, t->elem[k]));
  }
  return true;
}

static bool check_call(verifier *w, u32 nopd) {
  prog *p = w->p;
  const func_info *g = func_get(p, w->i->callee);
  const char *name = func_name(w, w->i->callee);
  if (nopd != g->nparams)
    return broken(w, E_ARITY, "@%s: %u arguments given, it takes %u", name, nopd, g->nparams);
  if (w->i->nres != g->rets.n)
    return broken(w, E_ARITY, "@%s: %u results declared, it has %u", name, w->i->nres, g->rets.n);
  for (u32 k = 0; k < nopd; k++) {
    type have = val(w->fi, opd_of(w->fi, w->i, k))->ty, want = type_bind(p, val(g, k + 1)->ty, w->i->g);
    if (have.i != want.i)
      return broken(w, E_SHAPE, "@%s: argument %u is %s, the parameter is %s", name, k + 1,
                    ir_type_str(p, have), ir_type_str(p, want));
    if (w->sum[w->i->callee.i].takes[k + 1] && !opd_donated(w->fi, w->i, k)) {
      broken(w, E_VERIFY, "@%s takes argument %u over: the call must donate it", name, k + 1);
      diag_hint(p->c, "write !%s", value_str(w, opd_of(w->fi, w->i, k)));
      return false;
    }
  }
  for (u32 k = 0; k < g->rets.n; k++) {
    type want = type_bind(p, val(g, g->rets.v[k])->ty, w->i->g);
    if (res_type(w, k).i != want.i)
      return broken(w, E_SHAPE, "@%s: result %u is declared %s, it is %s", name, k + 1,
                    ir_type_str(p, res_type(w, k)), ir_type_str(p, want));
  }
  return true;
}

// ---- coordinates in time ----------------------------------------------------------------------------
static bool fixed_in(const verifier *w, u32 point, u8 axis) { return w->p->fixed.v[point] >> axis & 1; }

static bool named(const attr *over, u8 axis) {
  for (u32 k = 0; k < over->n; k++)
    if (over->u.axes[k] == axis) return true;
  return false;
}

// Operand k of a part or join over this axis, itself a piece at coordinate `at`.
static bool check_piece(verifier *w, u32 k, u8 axis, u32 at, const attr *over) {
  const space *sp = w->p->sp;
  const char *name = sym_str(w->p->c, axis_get(sp, axis)->name);
  if (w->i->op == OP_part)
    return broken(w, E_VERIFY, "part: %s is at %s=%u already", value_str(w, opd_of(w->fi, w->i, k)), name,
                  at);
  u32 minor = 1; // pieces come in row-major order of the joined axes
  for (u32 j = over->n; over->u.axes[j - 1] != axis; j--) minor *= axis_size(sp, over->u.axes[j - 1]);
  u32 place = k / minor % axis_size(sp, axis);
  return at == place || broken(w, E_VERIFY, "join: operand %u is at %s=%u, not %u", k + 1, name, at, place);
}

// A value that is split over a temporal axis is one piece of it, known by where it was made: its user must be
// there too. Parameters of functions are whatever piece the call gives; those of main are whole.
static bool check_point(verifier *w, u32 k, const attr *over) {
  const prog *p = w->p;
  value v = opd_of(w->fi, w->i, k);
  const type_info *t = val_type(p, w->fi, v);
  if (t->tuple || !t->lay.i) return true;
  const layout_info *l = layout_get(p->sp, t->lay);
  for (u32 s = 0; s < l->nsplit; s++) {
    u8 axis = l->split[s].axis;
    if (!axis_get(p->sp, axis)->temporal) continue;
    bool have = fixed_in(w, w->point[v], axis), want = fixed_in(w, w->i->coord, axis);
    u32 at = p->points.v[w->point[v]].at[axis], to = p->points.v[w->i->coord].at[axis];
    const char *name = sym_str(p->c, axis_get(p->sp, axis)->name);
    if (!have && v <= w->fi->nparams && w->f.i != p->main.i) continue;
    if (over && named(over, axis)) {
      if (have && !check_piece(w, k, axis, at, over)) return false;
      continue;
    }
    if (have == want && (!have || at == to)) continue;
    broken(w, E_VERIFY, "%s: %s lies at %s%s, the instruction at %s%s", op_name(w), value_str(w, v),
           have ? arena_printf(w->tmp, "%s=%u", name, at) : "no coordinate of ", have ? "" : name,
           want ? arena_printf(w->tmp, "%s=%u", name, to) : "no coordinate of ", want ? "" : name);
    if (!have) diag_hint(p->c, "take one piece first: part %s {at=%u} over %s", value_str(w, v), to, name);
    return false;
  }
  return true;
}

static bool check_time(verifier *w, u32 nopd) {
  prog *p = w->p;
  const attr *over =
      w->i->op == OP_join || w->i->op == OP_part ? attr_get(attrs_get(p, w->i->at), A_over) : NULL;
  u32 point = w->i->coord;
  for (u64 rest = p->fixed.v[point]; rest; rest &= rest - 1) {
    u32 x = (u32)__builtin_ctzll(rest);
    if (x > axis_count(p->sp) || !axis_get(p->sp, (u8)x)->temporal ||
        p->points.v[point].at[x] >= axis_size(p->sp, (u8)x))
      return broken(w, E_VERIFY, "%s: a coordinate outside its temporal axis", op_name(w));
  }
  for (u32 k = 0; k < nopd; k++)
    if (!check_point(w, k, over)) return false;
  if (w->i->op == OP_part && over && axis_get(p->sp, over->u.axes[0])->temporal) {
    u16 at = (u16)attr_int(attrs_get(p, w->i->at), A_at, 0);
    if (fixed_in(w, point, over->u.axes[0]) && p->points.v[point].at[over->u.axes[0]] != at)
      return broken(w, E_VERIFY, "part: coordinate %u, the instruction is at %u", at,
                    p->points.v[point].at[over->u.axes[0]]);
    point = point_with(p, point, over->u.axes[0], at);
  }
  for (u32 k = 0; k < w->i->nres; k++) w->point[w->i->res + k] = point;
  return true;
}

// ---- one function -----------------------------------------------------------------------------------
static bool check_instr(verifier *w) {
  u32 nopd;
  if (!check_record(w) || !check_operands(w)) return false;
  nopd = instr_nopd(w->fi, w->i);
  bool ok;
  if (is_local(w->p, w->i)) return check_local(w, nopd) && (!w->temporal || check_time(w, nopd));
  if (!check_arity(w, nopd)) return false;
  switch (w->i->op) {
  case OP_call: ok = check_call(w, nopd); break;
  case OP_opaque: ok = check_places(w, nopd); break;
  case OP_pack:
  case OP_unpack: ok = check_tuple(w, nopd); break;
  default: ok = check_law(w, nopd);
  }
  return ok && (!w->temporal || check_time(w, nopd));
}

static void note_type(verifier *w, type t, u32 at) {
  assert(t.i < w->ntypes); // types that checking makes belong to no value
  if (w->seen[t.i] == w->f.i) return;
  w->seen[t.i] = w->f.i;
  const type_info *i = type_get(w->p, t);
  for (u32 k = 0; k < i->n; k++) note_type(w, i->elem[k], at);
  if (i->lay.i) *vec_push(w->tmp, &w->sum[w->f.i].types) = (own_type){t, at};
}

// What must be checked again on every group that the function is called on.
static void summarise(verifier *w, hmap *calls) {
  summary *s = &w->sum[w->f.i];
  const instr *i = w->i;
  for (u32 k = 0; k < i->nres; k++) note_type(w, res_type(w, k), w->index + 1);
  if (i->op == OP_call) {
    u64 key = (u64)i->callee.i << 32 | i->g.i;
    if (hmap_get(calls, key)) return;
    hmap_add(w->tmp, calls, key, 1);
    *vec_push(w->tmp, &s->calls) = (own_call){i->callee, i->g, w->index + 1};
  } else if (!i->g.i && is_local(w->p, i)) {
    *vec_push(w->tmp, &s->moves) = w->index;
  } else if (!i->g.i && is_move((opcode)i->op) && attr_get(attrs_get(w->p, i->at), A_over)) {
    *vec_push(w->tmp, &s->moves) = w->index;
  }
}

static bool check_returns(verifier *w) {
  for (u32 k = 0; k < w->fi->rets.n; k++) {
    value v = w->fi->rets.v[k];
    if (!is_defined(w, v))
      return broken(w, E_VERIFY, "@%s returns %s, which is not defined", func_name(w, w->f), value_str(w, v));
    if (!w->gone[v]) continue;
    broken(w, E_VERIFY, "@%s returns %s, which was donated", func_name(w, w->f), value_str(w, v));
    diag_note(w->p->c, w->fi->body.v[w->gone[v] - 1].where, "donated here");
    return false;
  }
  return true;
}

static void verify_func(verifier *w, func f) {
  w->f = f;
  w->fi = func_get(w->p, f);
  w->i = NULL;
  arena_mark_t values = arena_mark(w->own);
  w->gone = ZNEWN(w->own, u32, w->fi->values.n);
  w->used = ZNEWN(w->own, u32, w->fi->values.n);
  w->again = ZNEWN(w->own, u32, w->fi->values.n);
  w->point = ZNEWN(w->own, u32, w->fi->values.n);
  hmap calls = {0};
  for (u32 k = 0; k < w->fi->nparams; k++) {
    shape s = val_type(w->p, w->fi, k + 1)->s;
    u32 data = w->fi->params.v[k].data;
    if (data) data_fits(w, data, &s, value_str(w, k + 1));
    note_type(w, val(w->fi, k + 1)->ty, 0);
  }
  for (w->index = 0; w->index < w->fi->body.n && !full(w); w->index++) {
    w->i = &w->fi->body.v[w->index];
    arena_mark_t m = arena_mark(w->tmp); // laws and messages
    bool ok = check_instr(w);
    arena_release(w->tmp, m);
    if (ok) summarise(w, &calls);
  }
  w->i = NULL;
  w->index = w->fi->body.n;
  check_returns(w);
  arena_release(w->own, values);
}

// ---- the call graph ---------------------------------------------------------------------------------
// Functions without
// callers first; what never loses its last caller calls itself.
static bool check_calls(verifier *w) {
  u32 n = w->p->funcs.n, head = 0, tail = 0;
  u32 *callers = ZNEWN(w->tmp, u32, n), *depth = ZNEWN(w->tmp, u32, n), *queue = NEWN(w->tmp, u32, n);
  for (u32 f = 1; f < n; f++)
    for (u32 k = 0; k < w->sum[f].calls.n; k++) callers[w->sum[f].calls.v[k].callee.i]++;
  for (u32 f = 1; f < n; f++)
    if (!callers[f]) queue[tail++] = f;
  while (head < tail) {
    const summary *s = &w->sum[queue[head]];
    u32 d = depth[queue[head++]] + 1;
    for (u32 k = 0; k < s->calls.n; k++) {
      u32 g = s->calls.v[k].callee.i;
      depth[g] = MAX(depth[g], d);
      if (--callers[g] == 0) queue[tail++] = g;
    }
  }
  for (u32 f = 1; f < n; f++) {
    w->fi = w->p->funcs.v[f];
    w->i = NULL;
    if (callers[f])
      return broken(w, E_VERIFY, "@%s calls itself, directly or through others",
                    sym_str(w->p->c, w->fi->name));
    if (depth[f] > CALL_DEPTH_MAX) return broken(w, E_LIMIT, "calls nested deeper than %d", CALL_DEPTH_MAX);
  }
  return true;
}

// ---- functions on groups ----------------------------------------------------------------------------
typedef struct {
  func f;
  group g;
  bool open;
} binding; // open: never called, on any group

// The program itself has no group: what is spread must say over which.
static bool spread(const verifier *w, layout l) {
  const layout_info *i = layout_get(w->p->sp, l);
  for (u32 k = 0; k < i->nsplit; k++)
    if (!axis_get(w->p->sp, i->split[k].axis)->temporal) return true;
  for (u32 k = 0; k < i->npart; k++)
    if (!axis_get(w->p->sp, i->part[k].axis)->temporal) return true;
  return false;
}

static bool check_binding(verifier *w, const binding *b) {
  prog *p = w->p;
  const summary *s = &w->sum[b->f.i];
  w->f = b->f;
  w->fi = func_get(p, b->f);
  for (u32 k = 0; k < s->types.n && !full(w); k++) {
    const type_info *t = type_get(p, s->types.v[k].t);
    w->i = s->types.v[k].at ? &w->fi->body.v[s->types.v[k].at - 1] : NULL;
    group g = group_bind(t->g, b->g);
    u64 key = (u64)s->types.v[k].t.i << 32 | g.i;
    if (!t->g.i && !b->g.i && !b->open && spread(w, t->lay))
      return broken(w, E_VERIFY, "%s is spread over axes, but @%s runs on no group",
                    ir_type_str(p, s->types.v[k].t), func_name(w, b->f));
    if (hmap_get(&w->placed, key)) continue;
    hmap_add(w->tmp, &w->placed, key, 1);
    layout_check(p->sp, t->lay, g, t->s.nd, t->s.dim, w->i ? w->i->where : w->fi->where);
  }
  for (u32 k = 0; k < s->moves.n && !full(w); k++) {
    w->i = &w->fi->body.v[s->moves.v[k]];
    const attr *over = attr_get(attrs_get(p, w->i->at), A_over);
    if (is_local(p, w->i)) {
      if (!b->open && !alone(w, b->g)) return false;
      continue;
    }
    for (u32 x = 0; x < over->n && !b->open; x++)
      if (!axis_get(p->sp, over->u.axes[x])->temporal &&
          (!b->g.i || !group_has_axis(p->sp, b->g, over->u.axes[x]))) {
        strbuf g = {.a = w->tmp};
        group_print(p->sp, b->g, &g);
        return broken(w, E_VERIFY, "%s over %s: @%s runs on %s, which has no such axis", op_name(w),
                      sym_str(p->c, axis_get(p->sp, over->u.axes[x])->name), func_name(w, b->f),
                      b->g.i ? sb_str(&g) : "no group");
      }
  }
  return true;
}

static void check_bindings(verifier *w) {
  VEC(binding) todo = {0};
  hmap done = {0};
  bool *called = ZNEWN(w->tmp, bool, w->p->funcs.n);
  if (w->p->main.i) *vec_push(w->tmp, &todo) = (binding){w->p->main, {0}, false};
  if (w->p->main.i) called[w->p->main.i] = true;
  for (u32 next = 0, f = 1; !full(w); next++) {
    while (next == todo.n && f < w->p->funcs.n) { // then what main does not reach, on any group
      if (!called[f]) *vec_push(w->tmp, &todo) = (binding){{f}, {0}, true};
      f++;
    }
    if (next == todo.n) return;
    binding b = todo.v[next];
    called[b.f.i] = true;
    if (!check_binding(w, &b)) continue;
    for (u32 k = 0; k < w->sum[b.f.i].calls.n; k++) {
      const own_call *call = &w->sum[b.f.i].calls.v[k];
      group g = group_bind(call->g, b.g);
      bool open = b.open && !g.i;
      u64 key = (u64)call->callee.i << 33 | (u64)open << 32 | g.i;
      if (hmap_get(&done, key)) continue;
      hmap_add(w->tmp, &done, key, 1);
      *vec_push(w->tmp, &todo) = (binding){call->callee, g, open};
    }
  }
}

bool ir_verify(prog *p) {
  verifier w = {.p = p, .tmp = arena_new(), .own = arena_new(), .errors = diag_errors(p->c)};
  w.sum = ZNEWN(w.tmp, summary, p->funcs.n);
  w.seen = ZNEWN(w.tmp, u32, p->types.n);
  w.ntypes = p->types.n;
  for (u32 x = 1; x <= axis_count(p->sp); x++) w.temporal |= axis_get(p->sp, (u8)x)->temporal;
  if (p->main.i >= p->funcs.n)
    diag(p->c, E_VERIFY, (loc){0}, "function %u is main and does not exist", p->main.i);
  for (w.f.i = 1; w.f.i < p->funcs.n; w.f.i++) {
    w.fi = func_get(p, w.f);
    check_signature(&w);
  }
  bool ok = diag_errors(p->c) == w.errors;
  for (u32 f = 1; ok && f < p->funcs.n && !full(&w); f++) verify_func(&w, (func){f});
  if (diag_errors(p->c) == w.errors && check_calls(&w)) check_bindings(&w);
  arena_free(w.own);
  arena_free(w.tmp);
  return diag_errors(p->c) == w.errors;
}
