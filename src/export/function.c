// function.c - functions and their instructions: one function of Python for each, one statement for an instruction.
#include "export/internal.h"

py_scope py_scope_of(py *w, func f, u32 indent) {
  const func_info *fi = func_get(w->p, f);
  return (py_scope){.w = w,
                    .f = fi,
                    .id = f,
                    .name = ZNEWN(w->a, const char *, fi->values.n),
                    .uses = func_uses(w->a, fi),
                    .last = live_of(w->a, fi).last,
                    .indent = indent};
}

const char *py_value(py_scope *s, value v) {
  if (!s->name[v]) s->name[v] = py_name(s->w, &s->names, py_hint(s->w, s->id, v));
  return s->name[v];
}

static u32 nuses(const py_scope *s, value v) { return s->uses.begin[v + 1] - s->uses.begin[v]; }

bool py_present(const py *w, type t, u32 rank) {
  const type_info *i = type_get(w->p, t);
  if (!i->tuple) return i->g.i ? group_member(w->p->sp, i->g, rank) >= 0 : true;
  for (u32 k = 0; k < i->n; k++)
    if (py_present(w, i->elem[k], rank)) return true;
  return !i->n;
}

// The operand whose place a result takes: of an update that of the weight, then, behind the gradient, its states.
static value taken_over(const py_scope *s, const instr *i, u32 k, bool passes) {
  const u32 n = instr_nopd(s->f, i);
  if (i->flags & INSTR_UPDATE && n > 1 && s->id.i != s->w->p->main.i && i->op != OP_call)
    k += k > 0;
  else if (!passes)
    return 0;
  if (k >= n) return 0;
  const value v = opd_of(s->f, i, k);
  return type_get(s->w->p, val(s->f, v)->ty)->s.nd == type_get(s->w->p, val(s->f, i->res)->ty)->s.nd ? v : 0;
}

// A result that takes the place of what nobody else reads keeps its name.
static void name_results(py_scope *s, const instr *i, bool passes) {
  for (u32 k = 0; k < i->nres; k++) {
    const value v = i->res + k, from = taken_over(s, i, k, passes);
    if (from && !s->name[v] && !val(s->f, v)->name.i && s->name[from] && nuses(s, from) == 1 &&
        !strchr(s->name[from], '['))
      s->name[v] = s->name[from];
    py_value(s, v);
  }
}

static const char **results(py_scope *s, const instr *i) {
  const char **name = NEWN(s->w->a, const char *, i->nres + 1);
  for (u32 k = 0; k < i->nres; k++) name[k] = py_value(s, i->res + k);
  return name;
}

static const char **operands(py_scope *s, const instr *i) {
  const u32 n = instr_nopd(s->f, i);
  const char **name = NEWN(s->w->a, const char *, n + 2);
  for (u32 k = 0; k < n; k++) name[k] = py_value(s, opd_of(s->f, i, k));
  return name;
}

// "f(a, (b, c))" in its parts, f( and a and (b, c); false: it is no call.
static bool split_call(py *w, const char *text, const char **head, const char ***item, u32 *n) {
  const char *open = strchr(text, '(');
  const size_t size = strlen(text);
  i64 depth = 0;
  if (!open || text[size - 1] != ')') return false;
  VEC(const char *) parts = {0};
  const char *from = open + 1;
  for (const char *s = open; *s; s++) {
    depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
    if (!depth && s[1]) return false;
    if ((*s != ',' || depth != 1) && depth) continue;
    *vec_push(w->a, &parts) = sym_str(w->c, sym_ofn(w->c, from, (size_t)(s - from)));
    from = s + 1 + (s[1] == ' ');
  }
  *head = sym_str(w->c, sym_ofn(w->c, text, (size_t)(open + 1 - text)));
  *item = parts.v, *n = parts.n;
  return true;
}

static void put_expression(py_scope *s, const instr *i, const char *expression) {
  py *w = s->w;
  const char *head, **item, **left;
  u32 n;
  name_results(s, i,
               i->nres == 1 && instr_nopd(s->f, i) && i->flags & INSTR_BACKWARD && opd_donated(s->f, i, 0));
  left = results(s, i);
  size_t width = s->indent + strlen(expression) + 3;
  for (u32 k = 0; k < i->nres; k++) width += strlen(left[k]) + 2;
  if (width > PY_LINE && split_call(w, expression, &head, &item, &n))
    py_assign(w, s->indent, left, i->nres, head, item, n, ")");
  else
    py_assign(w, s->indent, left, i->nres, expression, NULL, 0, "");
}

// The value is there already, under another name.
static void alias(py_scope *s, value v, const char *name) {
  if (!s->name[v])
    s->name[v] = name;
  else if (strcmp(s->name[v], name))
    py_put(s->w, s->indent, "%s = %s", s->name[v], name);
}

// ---- calls and tuples ----------------------------------------------------------------------------------
static bool fixed(const py *w, const instr *i, u8 axis) { return w->p->fixed.v[i->coord] >> axis & 1; }

// Where an instruction is on a temporal axis: a number, or what the function was told.
static const char *coordinate(py *w, const instr *i, u8 axis) {
  if (axis == w->loop) return w->time[axis];
  if (!fixed(w, i, axis)) {
    w->told |= 1ull << axis;
    return w->time[axis];
  }
  strbuf b = {.a = w->a};
  sb_fmt(&b, "%u", w->p->points.v[i->coord].at[axis]);
  return sb_str(&b);
}

// Does it correct moments by the number of the update?
static bool counts(const py *w, func f) {
  const func_info *g = func_get(w->p, f);
  for (u32 k = 0; k < g->body.n; k++)
    if (g->body.v[k].op == OP_adam || g->body.v[k].op == OP_adamw) return true;
  return false;
}

static void put_call(py_scope *s, const instr *i) {
  py *w = s->w;
  u32 n = instr_nopd(s->f, i);
  const char **item = NEWN(w->a, const char *, n + AXES_MAX), **opd = operands(s, i);
  memcpy(item, opd, sizeof *item * n);
  for (u8 x = 1; x <= axis_count(w->p->sp); x++)
    if (w->times[i->callee.i] >> x & 1) item[n++] = coordinate(w, i, x);
  strbuf head = {.a = w->a};
  const i64 update = attr_int(attrs_get(w->p, i->at), A_update, 0);
  if (update && counts(w, i->callee)) py_put(w, s->indent, "begin_update(%lld)", (long long)update);
  sb_fmt(&head, "%s(", w->funcs[i->callee.i]);
  name_results(s, i, false);
  py_assign(w, s->indent, results(s, i), i->nres, sb_str(&head), item, n, ")");
}

static void put_pack(py_scope *s, const instr *i) {
  name_results(s, i, false);
  const u32 n = instr_nopd(s->f, i);
  py_assign(s->w, s->indent, results(s, i), 1, "(", operands(s, i), n, n == 1 ? ",)" : ")");
}

static void put_unpack(py_scope *s, const instr *i) {
  name_results(s, i, false);
  strbuf from = {.a = s->w->a};
  sb_fmt(&from, "%s%s", py_value(s, opd_of(s->f, i, 0)), i->nres == 1 ? "[0]" : "");
  if (i->nres) py_assign(s->w, s->indent, results(s, i), i->nres, sb_str(&from), NULL, 0, "");
}

// ---- coordinates ---------------------------------------------------------------------------------------
static u8 axis_over(const py *w, const instr *i) {
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  return over->u.axes[0];
}

static void put_part(py_scope *s, const instr *i) {
  py *w = s->w;
  const u8 axis = axis_over(w, i);
  const value from = opd_of(s->f, i, 0);
  const type_info *in = val_type(w->p, s->f, from), *out = val_type(w->p, s->f, i->res);
  const lay_split *cut = layout_split_of(w->p->sp, out->lay, axis);
  if (!axis_get(w->p->sp, axis)->temporal || axis_size(w->p->sp, axis) == 1 || !cut) {
    alias(s, i->res, py_value(s, from));
    return;
  }
  if (!py_local(w, in, i->where) || !py_local(w, out, i->where)) return;
  strbuf b = {.a = w->a}, how = {.a = w->a};
  py_cuts(w, out, in->lay, &axis, 1, &how);
  const bool strided = how.v[0] == '(';
  if (strided) how.v[how.n - 1] = 0;
  const char *stride = strided ? strchr(how.v, ',') : "";
  sb_fmt(&b, "cut(%s, %u, ", py_value(s, from), cut->dim);
  if (axis == w->loop)
    sb_put(&b, w->time[axis]);
  else
    sb_i64(&b, attr_int(attrs_get(w->p, i->at), A_at, 0));
  sb_fmt(&b, ", %u%s)", axis_size(w->p->sp, axis), stride);
  put_expression(s, i, sb_str(&b));
}

// Values at the coordinates of an axis in time: pieces are put together, parts of a sum are added.
static void put_join_in_time(py_scope *s, const instr *i, u8 axis) {
  py *w = s->w;
  const u32 n = instr_nopd(s->f, i);
  const type_info *in = val_type(w->p, s->f, opd_of(s->f, i, 0)), *out = val_type(w->p, s->f, i->res);
  const reduction r = layout_part_of(w->p->sp, in->lay, axis);
  const char **opd = operands(s, i);
  strbuf tail = {.a = w->a};
  if (!py_local(w, in, i->where) || !py_local(w, out, i->where)) return;
  if (n == 1) {
    alias(s, i->res, opd[0]);
    return;
  }
  name_results(s, i, false);
  if (r != RED_NONE) {
    if (r != RED_SUM) {
      py_refuse(w, i->where, "microbatches that are joined by %s cannot be exported", red_name(r));
      return;
    }
    py_assign(w, s->indent, results(s, i), 1, "sum([", opd, n, "])");
    return;
  }
  if (!layout_split_of(w->p->sp, in->lay, axis)) {
    alias(s, i->res, opd[0]);
    return;
  }
  strbuf how = {.a = w->a};
  py_cuts(w, in, out->lay, &axis, 1, &how);
  sb_fmt(&tail, "], *cut_of(%s))", sb_str(&how));
  py_assign(w, s->indent, results(s, i), 1, "uncut([", opd, n, sb_str(&tail));
}

static void put_join(py_scope *s, const instr *i) {
  const u8 axis = axis_over(s->w, i);
  if (axis_get(s->w->p->sp, axis)->temporal) {
    put_join_in_time(s, i, axis);
    return;
  }
  for (u32 k = 0; k < instr_nopd(s->f, i); k++)
    if (py_present(s->w, val(s->f, opd_of(s->f, i, k))->ty, s->rank)) {
      alias(s, i->res, py_value(s, opd_of(s->f, i, k)));
      return;
    }
  py_refuse(s->w, i->where, "a join of values that are on none of the ranks cannot be exported");
}

// ---- collectives ---------------------------------------------------------------------------------------
// May a communication write into the operand? If it was just computed, and nobody else reads it.
static bool is_own(const py_scope *s, value v) {
  static const u16 views[] = {OP_transpose, OP_expand,   OP_split, OP_slice,  OP_cast, OP_accumulate,
                              OP_assign,    OP_gather,   OP_call,  OP_unpack, OP_pack, OP_join,
                              OP_part,      OP_constant, OP_iota,  OP_full};
  const u32 def = val(s->f, v)->def;
  if (!def || nuses(s, v) > 1) return false;
  const u16 op = s->f->body.v[def - 1].op;
  for (u32 k = 0; k < COUNT_OF(views); k++)
    if (views[k] == op) return false;
  return !(op_row_of((opcode)op)->flags & (OPF_VIEW | OPF_COMM)) || op == OP_all_reduce;
}

// Over axes in time a value is a part of a sum where it is at the first coordinate.
static void put_partial_in_time(py_scope *s, const instr *i) {
  py *w = s->w;
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  strbuf when = {.a = w->a}, b = {.a = w->a};
  u8 axes[MESH_AXES];
  u32 n = 0;
  for (u32 k = 0; k < over->n; k++)
    if (axis_get(w->p->sp, over->u.axes[k])->temporal)
      sb_fmt(&when, "%s%s == 0", when.n ? " and " : "", coordinate(w, i, over->u.axes[k]));
    else if (axis_size(w->p->sp, over->u.axes[k]) > 1)
      axes[n++] = over->u.axes[k];
  u8 order[MESH_AXES];
  n = py_order(w, NULL, axes, n, order);
  if (n) sb_fmt(&when, "%s%s.at == 0", when.n ? " and " : "", py_axes_of(w, order, n));
  const char *x = py_value(s, opd_of(s->f, i, 0));
  if (when.n)
    sb_fmt(&b, "%s if %s else torch.zeros_like(%s)", x, sb_str(&when), x);
  else
    sb_put(&b, x);
  put_expression(s, i, sb_str(&b));
}

static bool over_time(const py *w, const instr *i) {
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    if (axis_get(w->p->sp, over->u.axes[k])->temporal) return true;
  return false;
}

static bool over_part(const py *w, const instr *i) {
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    if (py_part(w, w->ranks, over->u.axes[k])) return true;
  return false;
}

static void put_collective(py_scope *s, const instr *i) {
  py *w = s->w;
  if (over_time(w, i)) {
    if (i->op == OP_partial)
      put_partial_in_time(s, i);
    else
      py_refuse(w, i->where, "%s over microbatches cannot be exported", op_row_of((opcode)i->op)->name);
    return;
  }
  if (w->moves[s->id.i] && over_part(w, i)) {
    py_refuse(w, i->where, "%s over a part of an axis, another from call to call, cannot be exported",
              op_row_of((opcode)i->op)->name);
    py_refuse_hint(w, true, "a function for each group that it is called on");
    return;
  }
  name_results(s, i, true);
  for (u32 k = 0; k < i->nres; k++) {
    const value from = opd_of(s->f, i, k);
    strbuf x = {.a = w->a}, b = {.a = w->a};
    sb_fmt(&x, "%s%s", py_value(s, from), i->op == OP_all_reduce && !is_own(s, from) ? ".clone()" : "");
    if (!py_collective(s, i, k, sb_str(&x), &b)) {
      if (!w->failed) py_exchange(s, i);
      return;
    }
    if (strcmp(py_value(s, i->res + k), sb_str(&b)))
      py_put(w, s->indent, "%s = %s", py_value(s, i->res + k), sb_str(&b));
  }
}

// ---- host memory ---------------------------------------------------------------------------------------
// To host memory or from there: each operand by itself.
static void put_copy(py_scope *s, const instr *i) {
  const attr *to = attr_get(attrs_get(s->w->p, i->at), A_to);
  for (u32 k = 0; k < i->nres; k++)
    py_put(s->w, s->indent, "%s = to_%s(%s)", py_value(s, i->res + k), sym_str(s->w->c, to->u.s),
           py_value(s, opd_of(s->f, i, k)));
}

// ---- instructions --------------------------------------------------------------------------------------
static void tell_node(py_scope *s, const instr *i) {
  const loc_info *l = loc_get(s->w->c, i->where);
  const sym node = l ? l->node : (sym){0};
  if (node.i == s->node.i || !node.i || i->op == OP_pack || i->op == OP_unpack) return;
  s->node = node;
  py_comment(s->w, s->indent, sym_str(s->w->c, node));
}

static void tell_choice(py_scope *s, const instr *i) {
  const char *why = i->flags & INSTR_PLAN ? py_collective_why(s, i) : NULL;
  if (!why || (py_beside(i) && s->told_sums)) return;
  strbuf b = {.a = s->w->a};
  sb_fmt(&b, "the plan: %s%s", why, py_beside(i) ? ", beside what follows" : "");
  s->told_sums |= py_beside(i);
  py_comment(s->w, s->indent, sb_str(&b));
}

static bool in_own_group(py_scope *s, const instr *i) {
  if (s->id.i == s->w->p->main.i || !i->g.i) return true;
  return py_refuse(s->w, i->where, "an instruction of a function on ranks of its own cannot be exported");
}

void py_instr(py_scope *s, const instr *i) {
  if (s->w->failed || !in_own_group(s, i)) return;
  s->w->ranks = s->id.i == s->w->p->main.i ? i->g : s->w->runs_on[s->id.i];
  if (s->id.i == s->w->p->main.i && i->flags & INSTR_UPDATE && s->w->sums) {
    py_put(s->w, s->indent, "finish_sums()");
    s->w->sums = false;
  }
  tell_node(s, i);
  tell_choice(s, i);
  switch (i->op) {
  case OP_call: put_call(s, i); return;
  case OP_pack: put_pack(s, i); return;
  case OP_unpack: put_unpack(s, i); return;
  case OP_part: put_part(s, i); return;
  case OP_join: put_join(s, i); return;
  case OP_send: py_send(s, i); return;
  case OP_copy: put_copy(s, i); return;
  case OP_permute:
  case OP_exchange: py_exchange(s, i); return;
  default: break;
  }
  if (py_collective_why(s, i)) {
    put_collective(s, i);
    return;
  }
  strbuf b = {.a = s->w->a};
  if (py_operator(s, i, &b)) put_expression(s, i, sb_str(&b));
}

// What the plan splits of the parameters: "x 8{dp,mb} x 16".
static void tell_splits(py_scope *s) {
  py *w = s->w;
  strbuf b = {.a = w->a};
  for (u32 k = 0; k < s->f->body.n; k++)
    if (s->f->body.v[k].flags & (INSTR_BACKWARD | INSTR_UPDATE)) return;
  for (value v = 1; v <= s->f->nparams; v++) {
    const type_info *t = val_type(w->p, s->f, v);
    if (t->tuple || !t->lay.i) continue;
    sb_fmt(&b, "%s%s ", b.n ? ", " : "", py_value(s, v));
    layout_print(w->p->sp, t->lay, t->s.nd, t->s.dim, &b);
  }
  if (!b.n) return;
  strbuf line = {.a = w->a};
  sb_fmt(&line, "Whole extents, and {axes} that split them: %s.", sb_str(&b));
  py_comment(w, s->indent, sb_str(&line));
}

// ---- what is dropped ---------------------------------------------------------------------------------
// Its statement stands, and makes a tensor of its own.
static bool droppable(const instr *i) {
  static const u16 others[] = {OP_pack, OP_unpack, OP_part,    OP_join,
                               OP_send, OP_copy,   OP_permute, OP_exchange};
  for (u32 k = 0; k < COUNT_OF(others); k++)
    if (others[k] == i->op) return false;
  return i->op == OP_call || !(op_row_of((opcode)i->op)->flags & OPF_COMM);
}

// In parentheses where it is more than a line.
static void put_list(py_scope *s, const char *word, const char *const *item, u32 n) {
  strbuf head = {.a = s->w->a};
  size_t width = s->indent + strlen(word) + 2;
  for (u32 k = 0; k < n; k++) width += strlen(item[k]) + 2;
  sb_fmt(&head, "%s %s", word, width > PY_LINE ? "(" : "");
  py_line(s->w, s->indent, sb_str(&head), item, n, width > PY_LINE ? ")" : "");
}

// Of one of the values that are still there.
static bool is_name_of(const py_scope *s, const char *name, const value *v, u32 n) {
  for (value k = 1; k <= s->f->nparams; k++)
    if (s->name[k] == name) return true;
  for (u32 k = 0; k < n; k++)
    if (s->name[v[k]] == name) return true;
  return false;
}

// After a call, tensors that nobody reads any more: Python would keep them until the function returns, such as all layers'
// activations that a backward makes again. there: values that the function has made and not dropped.
static void put_drops(py_scope *s, u32 index, value *there, u32 *n) {
  const char **item = NEWN(s->w->a, const char *, *n + 1);
  value *gone = NEWN(s->w->a, value, *n + 1);
  u32 left = 0, ngone = 0, nitems = 0;
  for (u32 k = 0; k < *n; k++)
    if (s->last[there[k]] > index + 1)
      there[left++] = there[k];
    else
      gone[ngone++] = there[k];
  *n = left;
  for (u32 k = 0; k < ngone; k++) {
    const char *name = s->name[gone[k]];
    if (!name || strchr(name, '[') || !droppable(&s->f->body.v[val(s->f, gone[k])->def - 1])) continue;
    if (!is_name_of(s, name, there, left) && !is_name_of(s, name, gone + k + 1, ngone - k - 1))
      item[nitems++] = name;
  }
  if (nitems) put_list(s, "del", item, nitems);
}

void py_function(py *w, func f) {
  py_scope s = py_scope_of(w, f, PY_INDENT);
  const strbuf before = w->text;
  strbuf params = {.a = w->a};
  w->text = (strbuf){.a = w->a};
  w->told = 0, w->ranks = w->runs_on[f.i];
  const char **item = NEWN(w->a, const char *, s.f->nparams + AXES_MAX);
  u32 n = 0;
  for (value v = 1; v <= s.f->nparams; v++) item[n++] = py_value(&s, v);
  tell_splits(&s);
  value *there = NEWN(w->a, value, s.f->values.n);
  u32 nthere = 0;
  for (u32 k = 0; k < s.f->body.n && !w->failed; k++) {
    const instr *i = &s.f->body.v[k];
    py_instr(&s, i);
    for (u32 j = 0; j < i->nres; j++) there[nthere++] = i->res + j;
    if (i->op == OP_call && !w->failed) put_drops(&s, k, there, &nthere);
  }
  const char **ret = NEWN(w->a, const char *, s.f->rets.n + 1);
  for (u32 k = 0; k < s.f->rets.n && !w->failed; k++) ret[k] = py_value(&s, s.f->rets.v[k]);
  if (!w->failed) put_list(&s, "return", ret, s.f->rets.n);
  const strbuf body = w->text;
  w->text = before;
  w->times[f.i] = w->told;
  for (u8 x = 1; x <= axis_count(w->p->sp); x++)
    if (w->told >> x & 1) item[n++] = w->time[x];
  sb_fmt(&params, "def %s(", w->funcs[f.i]);
  sb_put(&w->text, "\n\n");
  py_line(w, 0, sb_str(&params), item, n, "):");
  sb_put(&w->text, sb_str((strbuf *)(uintptr_t)&body));
}
