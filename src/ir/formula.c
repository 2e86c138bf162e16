// formula.c - gradients of operators from outside, as text: operators applied one after the other.
//
//   %s = silu %gate
//   %d_up = mul %d_y, %s
//   %t = mul %d_y, %up
//   %d_gate = silu_dx %t, %gate
//
// Idea: lines of program text without types, since these follow from the operands of every application. What stands in
// them is looked at once, when the operator is registered; a gradient then builds the lines that it needs. The names of
// operands and results are those of the row, and d_NAME is the gradient of NAME.
#include "ir/internal.h"

typedef struct {
  opcode op;
  u32 nopd, nres, first; // slots of the operands; the results are slots from `first` on
  const u32 *opd;
  u32 nat, nown;
  const attr *at;      // as written
  const attr_key *own; // as the application has them
  loc where;
} formula_line;
struct formula {
  ctx *c; // of places and words
  opcode op;
  u32 nopd, nres, nslots; // slots: operands, results, gradients of results, then what lines make
  u32 nlines;
  const formula_line *line;
  const u32 *grad; // of every operand, its slot; 0: none
};

typedef struct {
  parser ps;
  arena *a;
  const op_row *row;
  formula *f;
  VEC(const char *) slot;
  VEC(formula_line) line;
  u32 *grad; // the slot; 0: not said; NONE
} reader;
enum { NONE = UINT32_MAX };

static bool wrong(reader *r, loc where, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool wrong(reader *r, loc where, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(r->ps.c, E_OPERATOR, where, "%s", text);
  return false;
}

// ---- names -----------------------------------------------------------------------------------------------
static const char *token(reader *r) { return arena_strndup(r->a, r->ps.l.name, r->ps.l.len); }

static u32 slot_find(const reader *r, const char *name) {
  u32 s = 0;
  while (s < r->slot.n && strcmp(r->slot.v[s], name)) s++;
  return s < r->slot.n ? s : NONE;
}

// "d_gate": operand `gate`; nopd: it is no such name.
static u32 gradient_of(const reader *r, const char *name) {
  u32 k = 0;
  while (k < r->f->nopd && (strncmp(name, "d_", 2) || strcmp(r->row->own->operand[k], name + 2))) k++;
  return k;
}

static bool operand(reader *r, u32 *slot) {
  parser *ps = &r->ps;
  if (ps->l.kind != TOK_VALUE) return parse_error(ps, "a value");
  *slot = slot_find(r, token(r));
  if (*slot == NONE)
    return wrong(r, lex_loc(&ps->l),
                 "%%%s is neither an operand, a result, the gradient of one, nor made above", token(r));
  lex_next(&ps->l);
  return true;
}

static bool results(reader *r, formula_line *l) {
  parser *ps = &r->ps;
  l->first = r->slot.n;
  do {
    if (ps->l.kind != TOK_VALUE) return parse_error(ps, "a value");
    const char *name = token(r);
    const u32 of = gradient_of(r, name);
    if (slot_find(r, name) != NONE || (of < r->f->nopd && r->grad[of]))
      return wrong(r, lex_loc(&ps->l), "there is a %%%s already", name);
    if (of < r->f->nopd) r->grad[of] = r->slot.n;
    *vec_push(r->a, &r->slot) = name;
    l->nres++;
    lex_next(&ps->l);
  } while (parse_take(ps, ','));
  return parse_expect(ps, '=');
}

// ---- lines -----------------------------------------------------------------------------------------------
static bool may_stand(opcode op) {
  return op_law_text(op) && !(op_row_of(op)->flags & OPF_COMM) && op != OP_constant && op != OP_join &&
         op != OP_part && op != OP_copy;
}

static bool operator(reader *r, formula_line *l) {
  parser *ps = &r->ps;
  if (ps->l.kind != TOK_NAME) return parse_error(ps, "an operator");
  l->op = op_named(ps->c, ps->l.name, ps->l.len);
  const char *name = token(r), *near = op_near(ps->c, ps->l.name, ps->l.len);
  if (l->op == OP_none) {
    wrong(r, lex_loc(&ps->l), "unknown operator '%s'", name);
    if (near) diag_hint(ps->c, "did you mean '%s'? An operator of your own is registered before", near);
    return false;
  }
  if (!may_stand(l->op)) return wrong(r, lex_loc(&ps->l), "%s cannot stand in a gradient", name);
  lex_next(&ps->l);
  return true;
}

// "{eps, alpha=2}": a name alone is the application's attribute.
static bool attributes(reader *r, formula_line *l) {
  parser *ps = &r->ps;
  attr at[A_COUNT] = {0};
  attr_key own[A_COUNT];
  if (!parse_take(ps, '{')) return true;
  do {
    const attr_key k = ps->l.kind == TOK_NAME ? attr_find(ps->l.name, ps->l.len) : A_NONE;
    const loc where = lex_loc(&ps->l);
    const char *rest = ps->l.at + strspn(ps->l.at, " \t");
    if (k != A_NONE && !op_takes(l->op, k))
      return wrong(r, where, "%s has no attribute %s", op_row_of(l->op)->name, attr_name(k));
    if (k == A_NONE || *rest == '=') {
      if (!parse_attr(ps, at, &l->nat)) return false;
      continue;
    }
    if (!op_takes(r->f->op, k))
      return wrong(r, where, "%s itself has no attribute %s: write its value, %s=..", r->row->name,
                   attr_name(k), attr_name(k));
    if (l->nown == A_COUNT) return wrong(r, where, "more than %d attributes", A_COUNT);
    own[l->nown++] = k;
    lex_next(&ps->l);
  } while (parse_take(ps, ','));
  for (u32 k = 0; k < l->nat; k++)
    if (at[k].kind == AK_INTS || at[k].kind == AK_FLOATS)
      at[k].u.ints = arena_dup(r->a, at[k].u.ints, 8 * (size_t)at[k].n);
  l->at = arena_dup(r->a, at, l->nat * sizeof *at);
  l->own = arena_dup(r->a, own, l->nown * sizeof *own);
  return parse_expect(ps, '}');
}

static bool arity(reader *r, const formula_line *l) {
  const op_row *row = op_row_of(l->op);
  if (l->nopd < row->opd_min || (row->opd_max != 255 && l->nopd > row->opd_max))
    return wrong(r, l->where, "%s has %u operands here, it takes %u%s", row->name, l->nopd, row->opd_min,
                 row->opd_max == row->opd_min ? "" : " or more");
  if (!(row->flags & OPF_MANY_RES) && l->nres != row->res)
    return wrong(r, l->where, "%s has %u results here, it makes %u", row->name, l->nres, row->res);
  return true;
}

// "%d_mask = none": no gradient goes there.
static bool takes_none(reader *r, const formula_line *l) {
  parser *ps = &r->ps;
  const u32 of = gradient_of(r, r->slot.v[l->first]);
  if (l->nres != 1 || of == r->f->nopd || !parse_word(ps, "none")) return false;
  r->grad[of] = NONE;
  return true;
}

static bool line(reader *r) {
  parser *ps = &r->ps;
  formula_line l = {.where = lex_loc(&ps->l)};
  VEC(u32) opd = {0};
  if (!results(r, &l)) return false;
  const bool none = takes_none(r, &l);
  if (!none && !operator(r, &l)) return false;
  bool more = !none && ps->l.kind == TOK_VALUE && !ps->l.first;
  for (; more; more = parse_take(ps, ','))
    if (!operand(r, vec_push(r->a, &opd))) return false;
  l.opd = opd.v, l.nopd = opd.n;
  for (u32 k = 0; k < l.nopd; k++)
    if (opd.v[k] >= l.first) return wrong(r, l.where, "%%%s is made by this line", r->slot.v[opd.v[k]]);
  if (!none && (!attributes(r, &l) || !arity(r, &l))) return false;
  if (!ps->l.first && ps->l.kind != TOK_END) return parse_error(ps, "the end of the line");
  if (!none) *vec_push(r->a, &r->line) = l;
  return true;
}

static void name_slots(reader *r) {
  const op_own *o = r->row->own;
  for (u32 k = 0; k < r->f->nopd; k++) *vec_push(r->a, &r->slot) = o->operand[k];
  for (u32 k = 0; k < r->f->nres; k++) *vec_push(r->a, &r->slot) = o->result[k];
  for (u32 k = 0; k < r->f->nres; k++) *vec_push(r->a, &r->slot) = arena_printf(r->a, "d_%s", o->result[k]);
}

static bool complete(reader *r) {
  for (u32 k = 0; k < r->f->nopd; k++) {
    const bool real = dtype_kind_of(op_operand_type(r->f->op, k, DT_F32)) == DK_FLOAT;
    const char *name = r->row->own->operand[k];
    if (real && !r->grad[k]) {
      wrong(r, lex_loc(&r->ps.l), "the gradient does not say %%d_%s", name);
      diag_hint(r->ps.c, "%%d_%s = none, if the result does not change with %s", name, name);
      return false;
    }
    if (r->grad[k] == NONE) r->grad[k] = 0;
  }
  return true;
}

const formula *ir_read_formula(ctx *c, opcode op) {
  const op_row *row = op_row_of(op);
  arena *a = ctx_arena(c), *tmp = arena_new();
  const char *text = row->own->gradient;
  formula *f = NEW(a, formula);
  const sym file = sym_fmt(c, "%s.gradient", row->name);
  reader r = {.ps = {.c = c, .p = prog_new(c), .tmp = tmp, .source = file}, .a = a, .row = row, .f = f};
  *f = (formula){.c = c, .op = op, .nopd = row->opd_max, .nres = row->res};
  r.grad = ZNEWN(a, u32, f->nopd);
  name_slots(&r);
  lex_open(&r.ps.l, c, tmp, file, text, strlen(text));
  bool ok = true;
  while (ok && r.ps.l.kind != TOK_END) ok = line(&r);
  ok = ok && complete(&r);
  prog_free(r.ps.p);
  arena_free(tmp);
  f->nslots = r.slot.n, f->nlines = r.line.n, f->line = r.line.v, f->grad = r.grad;
  return ok ? f : NULL;
}

// ---- an application --------------------------------------------------------------------------------------
// Slots that the gradients of `want` depend on, and results of lines that make one of them.
static bool *slots_needed(const formula *f, arena *tmp, const bool *want) {
  bool *needed = ZNEWN(tmp, bool, f->nslots);
  for (u32 k = 0; k < f->nopd; k++)
    if (want[k] && f->grad[k]) needed[f->grad[k]] = true;
  for (u32 i = f->nlines; i-- > 0;) {
    const formula_line *l = &f->line[i];
    for (u32 k = 0; k < l->nres; k++) needed[l->first] |= needed[l->first + k];
    for (u32 k = 0; needed[l->first] && k < l->nopd; k++) needed[l->opd[k]] = true;
  }
  return needed;
}

void ir_formula_needs(const formula *f, arena *tmp, const bool *want, bool *dy) {
  memcpy(dy, slots_needed(f, tmp, want) + f->nopd + f->nres, f->nres * sizeof *dy);
}

// As written in the line, then as the application has them, written there or by the row.
static u32 line_attrs(const formula *f, const formula_line *l, ctx *c, attrs at, attr *out, double *list) {
  u32 n = l->nat;
  if (n) memcpy(out, l->at, n * sizeof *out);
  for (u32 k = 0; k < n; k++) // words of this program's session
    if (out[k].kind == AK_STR && c != f->c) out[k].u.s = sym_of(c, sym_str(f->c, out[k].u.s));
  for (u32 k = 0; k < l->nown; k++) {
    const attr *given = attr_get(at, l->own[k]);
    if (given)
      out[n++] = *given;
    else if (op_default(f->op, l->own[k], list, 1))
      out[n++] = attr_kind_of(l->own[k]) == AK_INT ? attr_i(l->own[k], (i64)*list) : attr_f(l->own[k], *list);
  }
  return n;
}

static void build_line(const formula *f, const formula_line *l, builder *b, attrs at, value *slot) {
  attr own[2 * A_COUNT];
  value x[OP_RES_MAX];
  double list;
  const u32 n = line_attrs(f, l, b->p->c, at, own, &list), before = diag_count(b->p->c);
  for (u32 k = 0; k < l->nopd; k++) x[k] = slot[l->opd[k]];
  const value y = build_n(b, l->op, x, l->nopd, own, n, l->nres);
  for (u32 k = 0; k < l->nres; k++) slot[l->first + k] = y ? y + k : 0;
  if (diag_count(b->p->c) > before)
    diag_note(b->p->c, b->p->c == f->c ? l->where : (loc){0}, "in the gradient of %s",
              op_row_of(f->op)->name);
}

void ir_build_formula(const formula *f, builder *b, arena *tmp, const formula_use *u, value *dx) {
  value *slot = ZNEWN(tmp, value, f->nslots);
  const bool *needed = slots_needed(f, tmp, u->want);
  memcpy(slot, u->x, f->nopd * sizeof *slot);
  for (u32 k = 0; k < f->nres; k++) slot[f->nopd + k] = u->y + k, slot[f->nopd + f->nres + k] = u->dy[k];
  for (u32 i = 0; i < f->nlines && !b->failed; i++)
    if (needed[f->line[i].first]) build_line(f, &f->line[i], b, u->at, slot);
  for (u32 k = 0; k < f->nopd; k++) dx[k] = u->want[k] && f->grad[k] ? slot[f->grad[k]] : 0;
}
