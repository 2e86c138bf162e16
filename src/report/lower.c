// lower.c - what one rank of a distributed program runs, as a listing: pieces instead of tensors, ranks
// instead of groups, both ends of a message instead of one instruction. For reading; it is not program text.
//
// Idea: a rank's program is the projection of the whole one on it. A function is listed once for every group
// on which the rank calls it, since pieces depend on the place in the group and on nothing else.
#include "report/report.h"

typedef struct {
  func f;
  group g;
  const char *name;
} variant;
typedef struct {
  type from, to; // of a send: every type has its own place
  u32 n;
  const u32 *from_rank, *to_rank; // pairs of ranks
} pairing;
typedef struct {
  const prog *p;
  arena *a, *tmp;
  strbuf *b;
  u32 rank, instructions;
  VEC(variant) todo;
  VEC(pairing) sends;
  // of the function at hand
  const func_info *f;
  group g;
  u32 *number; // of values, in order of definition
  bool *named; // the first of its name
} lowering;

static group resolve(const lowering *l, group g) { return g.i ? g : l->g; }
static bool on_rank(const lowering *l, group g) { return group_member(l->p->sp, g, l->rank) >= 0; }

static bool held(const lowering *l, type t) {
  const type_info *ti = type_get(l->p, t);
  for (u32 k = 0; ti->tuple && k < ti->n; k++)
    if (held(l, ti->elem[k])) return true;
  return ti->tuple ? ti->n == 0 : on_rank(l, resolve(l, ti->g));
}

// ---- types and values ---------------------------------------------------------------------------------
static void local_dims(const lowering *l, const type_info *t, i64 *dims) {
  coords at;
  group g = resolve(l, t->g);
  int member = group_member(l->p->sp, g, l->rank);
  coords_of(l->p->sp, g, member < 0 ? 0 : (u32)member, NULL, &at);
  layout_local_dims(l->p->sp, t->lay, t->s.nd, t->s.dim, &at, dims);
}

static void put_type(lowering *l, type t) {
  const type_info *ti = type_get(l->p, t);
  if (ti->tuple) {
    const char *between = "";
    sb_char(l->b, '(');
    for (u32 k = 0; k < ti->n; k++) {
      if (!held(l, ti->elem[k])) continue;
      sb_put(l->b, between);
      put_type(l, ti->elem[k]);
      between = ", ";
    }
    sb_char(l->b, ')');
    return;
  }
  i64 dims[DIMS_MAX];
  local_dims(l, ti, dims);
  sb_fmt(l->b, "%s[", dtype_name(ti->s.t));
  for (u32 d = 0; d < ti->s.nd; d++) sb_fmt(l->b, d ? ",%lld" : "%lld", (long long)dims[d]);
  sb_char(l->b, ']');
}

static void put_value(lowering *l, value v) {
  if (l->named[v])
    sb_fmt(l->b, "%%%s", sym_str(l->p->c, val(l->f, v)->name));
  else
    sb_fmt(l->b, "%%%u", l->number[v]);
}

// Numbers as program text has them. Of several values of one name the first keeps it.
static void number_values(lowering *l) {
  u32 n = 0, nv = l->f->values.n;
  hmap taken = {0};
  value *order = NEWN(l->tmp, value, nv);
  for (value v = 1; v <= l->f->nparams; v++) order[n++] = v;
  for (u32 i = 0; i < l->f->body.n; i++)
    for (u32 k = 0; k < l->f->body.v[i].nres; k++) order[n++] = l->f->body.v[i].res + k;
  l->number = ZNEWN(l->tmp, u32, nv);
  l->named = ZNEWN(l->tmp, bool, nv);
  for (u32 k = 0; k < n; k++) {
    sym name = val(l->f, order[k])->name;
    l->number[order[k]] = k + 1;
    if (!name.i || hmap_get(&taken, name.i)) continue;
    hmap_add(l->tmp, &taken, name.i, 1);
    l->named[order[k]] = true;
  }
}

// ---- peers --------------------------------------------------------------------------------------------
static void put_ranks(strbuf *b, const char *word, const u32 *rank, u32 n) {
  sb_fmt(b, " %s ", word);
  for (u32 k = 0; k < n && k < 16; k++) sb_fmt(b, k ? ", %u" : "%u", rank[k]);
  if (n > 16) sb_fmt(b, ", ... (%u ranks)", n);
}

static void put_subgroup(lowering *l, group g, const attr *over) {
  const space *sp = l->p->sp;
  u32 n = group_offsets(sp, g, over->u.axes, over->n, NULL, 0), *at = NEWN(l->tmp, u32, n);
  group_offsets(sp, g, over->u.axes, over->n, at, n);
  u32 lead = group_lead(sp, g, (u32)group_member(sp, g, l->rank), over->u.axes, over->n);
  for (u32 k = 0; k < n; k++) at[k] = group_get(sp, g)->ranks[lead + at[k]];
  put_ranks(l->b, "with", at, n);
}

// The pieces of a tensor on a group: for every member and dimension the indices it holds.
typedef struct {
  u32 n;
  i64 *len, **index; // [member * DIMS_MAX + dim]
  coords *at;
} pieces_on;
static pieces_on pieces_get_all(lowering *l, const type_info *t, group g) {
  space *sp = l->p->sp;
  pieces_on p = {.n = group_get(sp, g)->nranks};
  p.len = NEWN(l->tmp, i64, p.n * DIMS_MAX);
  p.index = NEWN(l->tmp, i64 *, p.n * DIMS_MAX);
  p.at = NEWN(l->tmp, coords, p.n);
  for (u32 m = 0; m < p.n; m++) {
    coords_of(sp, g, m, NULL, &p.at[m]);
    for (u32 d = 0; d < t->s.nd; d++) {
      i64 *v = NEWN(l->tmp, i64, t->s.dim[d] + 1);
      p.index[m * DIMS_MAX + d] = v;
      p.len[m * DIMS_MAX + d] = layout_index(sp, t->lay, (u8)d, t->s.dim[d], &p.at[m], v);
    }
  }
  return p;
}

static bool same_indices(const pieces_on *a, u32 x, const pieces_on *b, u32 y, u32 nd) {
  for (u32 d = 0; d < nd; d++) {
    u32 i = x * DIMS_MAX + d, j = y * DIMS_MAX + d;
    if (a->len[i] != b->len[j] || memcmp(a->index[i], b->index[j], (size_t)a->len[i] * sizeof(i64)))
      return false;
  }
  return true;
}

static bool overlap(lowering *l, const pieces_on *a, u32 x, const pieces_on *b, u32 y, const shape *s) {
  for (u32 d = 0; d < s->nd; d++) {
    u32 i = x * DIMS_MAX + d, j = y * DIMS_MAX + d;
    arena_mark_t mark = arena_mark(l->tmp);
    u8 *has = ZNEWN(l->tmp, u8, s->dim[d] + 1);
    bool any = false;
    for (i64 k = 0; k < a->len[i]; k++) has[a->index[i][k]] = 1;
    for (i64 k = 0; k < b->len[j] && !any; k++) any = has[b->index[j][k]];
    arena_release(l->tmp, mark);
    if (!any) return false;
  }
  return true;
}

// A member of the source gives a summand to those that hold the same one.
static bool same_summand(const space *sp, layout from, const coords *a, const coords *b) {
  const layout_info *li = layout_get(sp, from);
  for (u32 k = 0; k < li->npart; k++)
    if (!axis_get(sp, li->part[k].axis)->temporal && a->at[li->part[k].axis] != b->at[li->part[k].axis])
      return false;
  return true;
}

// Who sends to whom: member k to member k where that suffices, else the first holders of what is needed.
static pairing pair_up(lowering *l, type from, group gs, type to, group gt) {
  space *sp = l->p->sp;
  const type_info *a = type_get(l->p, from), *b = type_get(l->p, to);
  const group_info *s = group_get(sp, gs), *t = group_get(sp, gt);
  VEC(u32) give = {0}, take = {0};
  arena_mark_t mark = arena_mark(l->tmp);
  bool straight = a->lay.i == b->lay.i && s->nranks == t->nranks;
  pieces_on x = straight ? (pieces_on){0} : pieces_get_all(l, a, gs),
            y = straight ? x : pieces_get_all(l, b, gt);
  for (u32 k = 0; k < t->nranks; k++) {
    if (straight || (s->nranks == t->nranks && same_indices(&x, k, &y, k, a->s.nd))) {
      *vec_push(l->a, &give) = s->ranks[k], *vec_push(l->a, &take) = t->ranks[k];
      continue;
    }
    for (u32 m = 0; m < s->nranks; m++) {
      if (!same_summand(sp, a->lay, &x.at[m], &y.at[k]) || !overlap(l, &x, m, &y, k, &a->s)) continue;
      bool again = false; // an earlier member gave this piece
      for (u32 e = 0; e < m && !again; e++)
        again = same_indices(&x, e, &x, m, a->s.nd) && same_summand(sp, a->lay, &x.at[e], &y.at[k]);
      if (!again) *vec_push(l->a, &give) = s->ranks[m], *vec_push(l->a, &take) = t->ranks[k];
    }
  }
  arena_release(l->tmp, mark);
  return (pairing){from, to, give.n, give.v, take.v};
}

static const pairing *pairing_of(lowering *l, const instr *i) {
  type from = val(l->f, opd_of(l->f, i, 0))->ty, to = val(l->f, i->res)->ty;
  group gs = resolve(l, type_get(l->p, from)->g), gt = resolve(l, type_get(l->p, to)->g);
  for (u32 k = 0; k < l->sends.n; k++)
    if (l->sends.v[k].from.i == from.i && l->sends.v[k].to.i == to.i) return &l->sends.v[k];
  pairing *made = vec_push(l->a, &l->sends);
  *made = pair_up(l, from, gs, to, gt);
  return made;
}

// ---- instructions -------------------------------------------------------------------------------------
// The extent of result k of a split along its dimension.
static i64 split_size(const lowering *l, const instr *i, u32 k) {
  const type_info *t = val_type(l->p, l->f, i->res + k);
  i64 dims[DIMS_MAX], axis = attr_int(attrs_get(l->p, i->at), A_axis, 0);
  local_dims(l, t, dims);
  return dims[axis < 0 ? axis + t->s.nd : axis];
}

static void put_attr(lowering *l, const instr *i, const attr *x) {
  sb_fmt(l->b, "%s=", attr_name((attr_key)x->key));
  switch ((attr_kind)x->kind) {
  case AK_INT: sb_i64(l->b, x->u.i); return;
  case AK_FLOAT: sb_fmt(l->b, "%.9g", x->u.f); return;
  case AK_STR: sb_fmt(l->b, "\"%s\"", sym_str(l->p->c, x->u.s)); return;
  case AK_DTYPE: sb_put(l->b, dtype_name(x->u.t)); return;
  case AK_DATA: sb_fmt(l->b, "$%u", x->u.data); return;
  default: break;
  }
  i64 local[DIMS_MAX];
  const i64 *ints = x->u.ints;
  u32 n = x->n;
  if (x->key == A_shape && i->nres == 1) { // extents of the piece
    local_dims(l, val_type(l->p, l->f, i->res), local);
    ints = local;
  }
  if (x->key == A_sizes && i->op == OP_split && n <= COUNT_OF(local))
    for (u32 k = 0; k < n; k++) local[k] = split_size(l, i, k), ints = local;
  sb_char(l->b, '[');
  for (u32 k = 0; k < n; k++) {
    if (k) sb_put(l->b, ", ");
    if (x->kind == AK_INTS)
      sb_i64(l->b, ints[k]);
    else
      sb_fmt(l->b, "%.9g", x->u.floats[k]);
  }
  sb_char(l->b, ']');
}

static void put_attrs(lowering *l, const instr *i) {
  attrs at = attrs_get(l->p, i->at);
  const char *between = " {";
  for (u32 k = 0; k < at.n; k++) {
    if (at.v[k].kind == AK_AXES) continue;
    sb_put(l->b, between);
    put_attr(l, i, &at.v[k]);
    between = ", ";
  }
  if (*between == ',') sb_char(l->b, '}');
}

static const char *variant_name(lowering *l, func f, group g) {
  u32 others = 0;
  for (u32 k = 0; k < l->todo.n; k++) {
    variant *v = &l->todo.v[k];
    if (v->f.i == f.i && v->g.i == g.i) return v->name;
    others += v->f.i == f.i;
  }
  const char *name = sym_str(l->p->c, func_get(l->p, f)->name);
  if (others) name = arena_printf(l->a, "%s.on.%u", name, others + 1);
  *vec_push(l->a, &l->todo) = (variant){f, g, name};
  return name;
}

static void put_results(lowering *l, const instr *i) {
  const char *between = "  ";
  for (u32 k = 0; k < i->nres; k++) {
    if (!held(l, val(l->f, i->res + k)->ty)) continue;
    sb_put(l->b, between);
    put_value(l, i->res + k);
    between = ", ";
  }
  sb_put(l->b, *between == ',' ? " = " : "  ");
}

static void put_operands(lowering *l, const instr *i, u32 from, u32 to, const char *between) {
  for (u32 k = from; k < to; k++) {
    value v = opd_of(l->f, i, k);
    if (!held(l, val(l->f, v)->ty)) continue;
    sb_put(l->b, between);
    if (opd_donated(l->f, i, k)) sb_char(l->b, '!');
    put_value(l, v);
    between = ", ";
  }
}

static void put_marks(lowering *l, const instr *i) {
  const prog *p = l->p;
  for (u32 x = 1; i->coord && x < AXES_MAX; x++)
    if (p->fixed.v[i->coord] >> x & 1)
      sb_fmt(l->b, " @%s=%u", sym_str(p->c, axis_get(p->sp, (u8)x)->name), p->points.v[i->coord].at[x]);
  if (i->strm) sb_fmt(l->b, " !%s", sym_str(p->c, p->streams.v[i->strm]));
}

static void put_result_types(lowering *l, const instr *i) {
  const char *between = " : ";
  for (u32 k = 0; k < i->nres; k++) {
    type t = val(l->f, i->res + k)->ty;
    if (!held(l, t)) continue;
    sb_put(l->b, between);
    put_type(l, t);
    between = ", ";
  }
  sb_char(l->b, '\n');
}

// Both ends of a message, if this rank is one of them.
static void put_send(lowering *l, const instr *i) {
  const pairing *pair = pairing_of(l, i);
  u32 *peer = NEWN(l->tmp, u32, pair->n + 1);
  for (u32 end = 0; end < 2; end++) {
    const u32 *me = end ? pair->to_rank : pair->from_rank, *other = end ? pair->from_rank : pair->to_rank;
    u32 n = 0;
    for (u32 k = 0; k < pair->n; k++)
      if (me[k] == l->rank) peer[n++] = other[k];
    if (!n) continue;
    l->instructions++;
    if (end) {
      put_results(l, i);
      sb_put(l->b, "recv");
      put_ranks(l->b, "from", peer, n);
    } else {
      sb_put(l->b, "  send");
      put_operands(l, i, 0, 1, " ");
      put_ranks(l->b, "to", peer, n);
    }
    put_marks(l, i);
    if (end)
      put_result_types(l, i);
    else
      sb_char(l->b, '\n');
  }
}

static void put_instr(lowering *l, const instr *i) {
  group g = resolve(l, i->g);
  if (i->op == OP_send) {
    put_send(l, i);
    return;
  }
  if (!on_rank(l, g)) return;
  u32 n = instr_nopd(l->f, i);
  const attr *over = attr_get(attrs_get(l->p, i->at), A_over);
  bool call = i->op == OP_call;
  l->instructions++;
  put_results(l, i);
  sb_put(l->b, op_row_of(i->op)->name);
  if (call) sb_fmt(l->b, " @%s(", variant_name(l, i->callee, g));
  put_operands(l, i, 0, n, call ? "" : " ");
  if (call) sb_char(l->b, ')');
  put_operands(l, i, n, i->nopd, " after ");
  put_attrs(l, i);
  if (over && coll_find(i->op) && !axis_get(l->p->sp, over->u.axes[0])->temporal) put_subgroup(l, g, over);
  put_marks(l, i);
  put_result_types(l, i);
}

static void put_function(lowering *l, const variant *v) {
  static const char *const role_name[] = {"", " weight", " state", " label", " const"};
  arena_mark_t mark = arena_mark(l->tmp);
  l->f = func_get(l->p, v->f);
  l->g = v->g;
  number_values(l);
  sb_fmt(l->b, "\nfunc @%s(", v->name);
  const char *between = "";
  for (value x = 1; x <= l->f->nparams; x++) {
    if (!held(l, val(l->f, x)->ty)) continue;
    sb_put(l->b, between);
    put_value(l, x);
    sb_put(l->b, ": ");
    put_type(l, val(l->f, x)->ty);
    sb_put(l->b, role_name[l->f->params.v[x - 1].r]);
    between = ", ";
  }
  sb_put(l->b, ") {\n");
  for (u32 k = 0; k < l->f->body.n; k++) {
    arena_mark_t here = arena_mark(l->tmp);
    put_instr(l, &l->f->body.v[k]);
    arena_release(l->tmp, here);
  }
  between = "  return ";
  for (u32 k = 0; k < l->f->rets.n; k++) {
    if (!held(l, val(l->f, l->f->rets.v[k])->ty)) continue;
    sb_put(l->b, between);
    put_value(l, l->f->rets.v[k]);
    between = ", ";
  }
  sb_put(l->b, *between == ',' ? "\n}\n" : "}\n");
  arena_release(l->tmp, mark);
}

// Where the rank lies on every mesh; false if on none.
static bool put_place(lowering *l, u32 nranks) {
  const space *sp = l->p->sp;
  bool any = false;
  sb_fmt(l->b, "rank %u of %u:", l->rank, nranks);
  for (u32 k = 1; k <= mesh_count(sp); k++) {
    const mesh_info *m = mesh_get(sp, (mesh){k});
    group g = group_all(l->p->sp, (mesh){k});
    int member = group_member(sp, g, l->rank);
    if (member < 0) continue;
    any = true;
    sb_fmt(l->b, " @%s", sym_str(l->p->c, m->name));
    for (u32 x = 0; x < m->naxes; x++)
      sb_fmt(l->b, "%s%s=%u", x ? ", " : " ", sym_str(l->p->c, axis_get(sp, m->axis[x])->name),
             group_coord(sp, g, (u32)member, m->axis[x]));
  }
  sb_char(l->b, '\n');
  return any;
}

bool report_lower(report *r, arena *a, const prog *p, u32 rank, u32 nranks) {
  strbuf text = {.a = a};
  lowering l = {.p = p, .a = a, .tmp = arena_new(), .b = &text, .rank = rank};
  bool ok = rank < nranks && put_place(&l, nranks);
  if (ok) {
    variant_name(&l, p->main, group_all(p->sp, (mesh){1}));
    for (u32 k = 0; k < l.todo.n; k++) {
      variant v = l.todo.v[k];
      put_function(&l, &v);
    }
    report_fact(r, "rank", NULL, cell_i(CELL_INT, rank));
    report_fact(r, "ranks", NULL, cell_i(CELL_INT, nranks));
    report_fact(r, "functions", NULL, cell_i(CELL_INT, l.todo.n));
    report_fact(r, "instructions", NULL, cell_i(CELL_INT, l.instructions));
    report_fact(r, "text", NULL, cell_text(sb_str(&text)));
    report_note(r, sb_str(&text));
  } else if (!nranks) {
    diag(p->c, E_USAGE, (loc){0}, "the program is not distributed: it has no mesh");
    diag_hint(p->c, "give it a plan, such as --plan best.plan or --data 2");
  } else {
    diag(p->c, E_USAGE, (loc){0}, "rank %u does not exist: the program runs on %u", rank, nranks);
  }
  arena_free(l.tmp);
  return ok;
}
