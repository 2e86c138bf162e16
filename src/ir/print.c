// print.c - the program as text (docs/language.md). Reading it back gives the same program: print, parse and
// print again is the same text byte for byte.
//
// Idea: what has no name gets its number in order of definition, so that the text depends on what the program
// says and not on the ids that building it happened to give.
#include "ir/internal.h"

enum {
  LIST_ELEMS = 16,
  LINE = 100,
  BASE64_ROW = 72
}; // elements written as a list; columns; bytes of one row

typedef struct {
  const prog *p;
  strbuf *b;
  sym source;      // the file of the locations that do not name one
  u32 *label;      // data id -> number in the text, 0 = not mentioned yet
  VEC(u32) listed; // data ids in order of their numbers
  // the function
  const func_info *f;
  group dflt; // types and instructions without a group are here
  sym *name;  // per value; none: its number
  u32 *number;
} printer;

// ---- names, types, attributes -----------------------------------------------------------------------
static void put_quoted(strbuf *b, const char *s) {
  sb_char(b, '"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      sb_fmt(b, "\\%c", *s);
    else if (*s == '\n')
      sb_put(b, "\\n");
    else if (*s == '\t')
      sb_put(b, "\\t");
    else if ((u8)*s < ' ' || *s == 0x7f)
      sb_fmt(b, "\\x%02x", (u8)*s);
    else
      sb_char(b, *s);
  }
  sb_char(b, '"');
}

static void put_name(strbuf *b, const ctx *c, sym s) {
  if (lex_plain(sym_str(c, s), sym_len(c, s)))
    sb_put(b, sym_str(c, s));
  else
    put_quoted(b, sym_str(c, s));
}

static void put_value(printer *pr, value v) {
  sb_char(pr->b, '%');
  if (pr->name[v].i)
    put_name(pr->b, pr->p->c, pr->name[v]);
  else
    sb_i64(pr->b, pr->number[v]);
}

static void put_group(const prog *p, group g, strbuf *b) {
  if (g.i)
    group_print(p->sp, g, b);
  else
    sb_put(b, "@.");
}

// "8", a name, or a text in quotes.
static void put_word(strbuf *b, const ctx *c, sym s) {
  if (sym_len(c, s) && strspn(sym_str(c, s), "0123456789") == sym_len(c, s))
    sb_put(b, sym_str(c, s));
  else
    put_name(b, c, s);
}

// A group that equals `dflt` is left out.
static void put_type(const prog *p, type t, group dflt, strbuf *b) {
  const type_info *i = type_get(p, t);
  if (i->tuple) {
    sb_char(b, '(');
    for (u32 k = 0; k < i->n; k++) {
      if (k) sb_put(b, ", ");
      put_type(p, i->elem[k], dflt, b);
    }
    sb_char(b, ')');
    return;
  }
  sb_put(b, dtype_name(i->s.t));
  layout_print(p->sp, i->lay, i->s.nd, i->s.dim, b);
  if (i->g.i == dflt.i) return;
  sb_char(b, ' ');
  put_group(p, i->g, b);
}

const char *ir_type_str(const prog *p, type t) {
  strbuf b = {.a = ctx_arena(p->c)};
  put_type(p, t, (group){0}, &b);
  return sb_str(&b);
}

static void put_data(printer *pr, u32 id) {
  const data_info *d = &pr->p->data.v[id];
  i64 each = dtype_bytes(d->t), n = d->size / each;
  if (!d->bytes) {
    sb_put(pr->b, "absent");
  } else if (n > LIST_ELEMS) {
    if (!pr->label[id]) {
      *vec_push(pr->b->a, &pr->listed) = id;
      pr->label[id] = pr->listed.n;
    }
    sb_fmt(pr->b, "$%u", pr->label[id]);
  } else {
    sb_char(pr->b, '[');
    for (i64 k = 0; k < n; k++) {
      if (k) sb_put(pr->b, ", ");
      lit_put_elem(pr->b, d->t, (const char *)d->bytes + k * each);
    }
    sb_char(pr->b, ']');
  }
}

static void put_axes(const prog *p, const u8 *axis, u32 n, strbuf *b) {
  for (u32 k = 0; k < n; k++) {
    if (k) sb_put(b, ", ");
    put_name(b, p->c, axis_get(p->sp, axis[k])->name);
  }
}

static void put_attr(printer *pr, const attr *a) {
  strbuf *b = pr->b;
  const ctx *c = pr->p->c;
  sb_fmt(b, "%s=", attr_name((attr_key)a->key));
  switch ((attr_kind)a->kind) {
  case AK_INT: sb_i64(b, a->u.i); return;
  case AK_FLOAT: lit_put_float(b, a->u.f); return;
  case AK_STR: put_quoted(b, sym_str(c, a->u.s)); return;
  case AK_DTYPE: sb_put(b, dtype_name(a->u.t)); return;
  case AK_DATA: put_data(pr, a->u.data); return;
  default: break;
  }
  sb_char(b, '[');
  for (u32 k = 0; k < a->n && a->kind != AK_AXES; k++) {
    if (k) sb_put(b, ", ");
    if (a->kind == AK_INTS)
      sb_i64(b, a->u.ints[k]);
    else
      lit_put_float(b, a->u.floats[k]);
  }
  if (a->kind == AK_AXES) put_axes(pr->p, a->u.axes, a->n, b);
  sb_char(b, ']');
}

static void put_attrs(printer *pr, attrs at) {
  const attr *over = attr_get(at, A_over);
  if (at.n > (over ? 1u : 0u)) {
    const char *sep = " {";
    for (u32 k = 0; k < at.n; k++) {
      if (&at.v[k] == over) continue;
      sb_put(pr->b, sep);
      put_attr(pr, &at.v[k]);
      sep = ", ";
    }
    sb_char(pr->b, '}');
  }
  if (!over) return;
  sb_put(pr->b, " over ");
  put_axes(pr->p, over->u.axes, over->n, pr->b);
}

// Only places in a model are written; a place in a text is where it is read again.
static void put_loc(printer *pr, loc where) {
  const loc_info *l = loc_get(pr->p->c, where);
  if (!l || !l->node.i) return;
  const ctx *c = pr->p->c;
  sb_put(pr->b, " loc(");
  put_quoted(pr->b, sym_str(c, l->node));
  bool file = l->file.i != pr->source.i;
  if (l->part.i || file) {
    sb_put(pr->b, ", ");
    put_quoted(pr->b, sym_str(c, l->part));
  }
  if (file) {
    sb_put(pr->b, ", ");
    put_quoted(pr->b, sym_str(c, l->file));
  }
  sb_char(pr->b, ')');
}

// What the next copies of a repeated block call the same: of source programs, whose operators rules name.
static void put_alike(printer *pr, loc where) {
  const loc_info *l = loc_get(pr->p->c, where);
  if (!l || !l->node.i || !l->alike.i || mesh_count(pr->p->sp)) return;
  const char *sep = " alike(";
  for (l = loc_get(pr->p->c, l->alike); l; l = loc_get(pr->p->c, l->alike)) {
    sb_put(pr->b, sep);
    put_quoted(pr->b, sym_str(pr->p->c, l->node));
    sep = ", ";
  }
  sb_char(pr->b, ')');
}

// ---- functions --------------------------------------------------------------------------------------
static void put_values(printer *pr, const value *v, u32 n) {
  for (u32 k = 0; k < n; k++) {
    if (k) sb_put(pr->b, ", ");
    put_value(pr, v[k]);
  }
}

static void put_operands(printer *pr, const instr *i, u32 from, u32 to) {
  for (u32 k = from; k < to; k++) {
    if (k > from) sb_put(pr->b, ", ");
    if (opd_donated(pr->f, i, k)) sb_char(pr->b, '!');
    put_value(pr, opd_of(pr->f, i, k));
  }
}

static void put_marks(printer *pr, const instr *i) {
  static const char *const flag[] = {"backward", "recompute", "update", "plan", "host"};
  const prog *p = pr->p;
  if (i->g.i != pr->dflt.i) {
    sb_char(pr->b, ' ');
    put_group(p, i->g, pr->b);
  }
  for (u32 x = 1; i->coord && x < AXES_MAX; x++) {
    if (!(p->fixed.v[i->coord] >> x & 1)) continue;
    sb_put(pr->b, " @");
    put_name(pr->b, p->c, axis_get(p->sp, (u8)x)->name);
    sb_fmt(pr->b, "=%u", p->points.v[i->coord].at[x]);
  }
  if (i->strm) {
    sb_put(pr->b, " !");
    put_name(pr->b, p->c, p->streams.v[i->strm]);
  }
  for (u32 k = 0; k < COUNT_OF(flag); k++)
    if (i->flags >> k & 1) sb_fmt(pr->b, " %s", flag[k]);
  if (i->origin) sb_fmt(pr->b, " ^%u", i->origin);
}

static void indent(strbuf *b, u32 depth) {
  for (u32 k = 0; k <= depth; k++) sb_put(b, "  ");
}

static void put_shares(strbuf *b, const shares_info *s) {
  sb_put(b, s->how == SHARES_AUTO ? "auto" : s->how == SHARES_EQUAL ? "equal" : "[");
  for (u32 k = 0; k < s->n; k++) sb_fmt(b, "%s%u", k ? ", " : "", s->part[k]);
  if (s->how == SHARES_PARTS) sb_char(b, ']');
}

static void put_count(printer *pr, const scope_info *s) {
  sb_put(pr->b, scope_row_of(s->kind)->word);
  if (s->count == SCOPE_ALL)
    sb_put(pr->b, " all");
  else if (s->count)
    sb_fmt(pr->b, " %u", s->count);
  if (s->shares.how) {
    sb_put(pr->b, " shares ");
    put_shares(pr->b, &s->shares);
  }
  if (!s->name.i) return;
  sb_put(pr->b, " as ");
  put_name(pr->b, pr->p->c, s->name);
}

// From the scope of one line to that of the next.
static void put_scopes(printer *pr, u32 *at, u32 to, u32 *depth) {
  const scope_info *v = pr->p->scopes.v;
  for (; !scope_within(pr->p, to, *at); *at = v[*at].parent) {
    indent(pr->b, --*depth);
    sb_put(pr->b, "}\n");
  }
  while (*at != to) {
    u32 next = to;
    while (v[next].parent != *at) next = v[next].parent;
    indent(pr->b, (*depth)++);
    put_count(pr, &v[next]);
    sb_put(pr->b, " {\n");
    *at = next;
  }
}

static void put_instr(printer *pr, const instr *i, u32 depth) {
  const prog *p = pr->p;
  u32 nopd = instr_nopd(pr->f, i);
  indent(pr->b, depth);
  for (u32 k = 0; k < i->nres; k++) {
    if (k) sb_put(pr->b, ", ");
    put_value(pr, i->res + k);
  }
  sb_fmt(pr->b, "%s%s", i->nres ? " = " : "", op_row_of((opcode)i->op)->name);
  if (i->op == OP_call) {
    sb_put(pr->b, " @");
    put_name(pr->b, p->c, func_get(p, i->callee)->name);
    sb_char(pr->b, '(');
  } else if (nopd) {
    sb_char(pr->b, ' ');
  }
  put_operands(pr, i, 0, nopd);
  if (i->op == OP_call) sb_char(pr->b, ')');
  if (nopd < i->nopd) sb_put(pr->b, " after ");
  put_operands(pr, i, nopd, i->nopd);
  put_attrs(pr, attrs_get(p, i->at));
  put_marks(pr, i);
  for (u32 k = 0; k < i->nres; k++) {
    sb_put(pr->b, k ? ", " : " : ");
    put_type(p, val(pr->f, i->res + k)->ty, i->g, pr->b);
  }
  put_loc(pr, i->where);
  if (i->op != OP_call) put_alike(pr, i->where);
  sb_char(pr->b, '\n');
}

// Numbers values in order of definition and makes names unique: who has a name alone keeps it, of several the
// first one does and the others get a suffix.
static void name_values(printer *pr, arena *tmp) {
  const func_info *f = pr->f;
  ctx *c = pr->p->c;
  u32 n = 0, *order = NEWN(tmp, u32, f->values.n);
  pr->name = ZNEWN(tmp, sym, f->values.n);
  pr->number = ZNEWN(tmp, u32, f->values.n);
  for (value v = 1; v <= f->nparams; v++) order[n++] = v;
  for (u32 k = 0; k < f->body.n; k++)
    for (u32 r = 0; r < f->body.v[k].nres; r++) order[n++] = f->body.v[k].res + r;
  hmap taken = {0};
  for (u32 k = 0; k < n; k++) {
    sym s = f->values.v[order[k]].name;
    pr->number[order[k]] = k + 1;
    if (!s.i || hmap_get(&taken, s.i)) continue;
    hmap_add(tmp, &taken, s.i, 1);
    pr->name[order[k]] = s;
  }
  for (u32 k = 0; k < n; k++) {
    sym s = f->values.v[order[k]].name, own = s;
    if (!s.i || pr->name[order[k]].i) continue;
    for (u32 suffix = 1; hmap_get(&taken, own.i); suffix++) own = sym_fmt(c, "%s.%u", sym_str(c, s), suffix);
    hmap_add(tmp, &taken, own.i, 1);
    pr->name[order[k]] = own;
  }
}

static void put_params(printer *pr, const char *sep, const char *end) {
  static const char *const role_name[] = {"", " weight", " state", " label", " const"};
  const func_info *f = pr->f;
  for (u32 k = 0; k < f->nparams; k++) {
    if (k) sb_char(pr->b, ',');
    if (k || *sep == '\n') sb_put(pr->b, sep);
    put_value(pr, k + 1);
    sb_put(pr->b, ": ");
    put_type(pr->p, val(f, k + 1)->ty, pr->dflt, pr->b);
    sb_put(pr->b, role_name[f->params.v[k].r]);
    if (f->params.v[k].host) sb_put(pr->b, " host");
    if (!f->params.v[k].data) continue;
    sb_put(pr->b, " = ");
    put_data(pr, f->params.v[k].data);
  }
  sb_put(pr->b, end);
}

static void put_head(printer *pr, bool marked) {
  const prog *p = pr->p;
  const func_info *f = pr->f;
  sb_put(pr->b, marked ? "main @" : "func @");
  put_name(pr->b, p->c, f->name);
  if (pr->dflt.i) {
    sb_put(pr->b, " on ");
    put_group(p, pr->dflt, pr->b);
  }
  sb_char(pr->b, '(');
  size_t start = pr->b->n;
  put_params(pr, " ", "");
  if (pr->b->n - start > LINE) { // once more, one on a line: nothing else depends on the text so far
    pr->b->n = start;
    put_params(pr, "\n  ", "\n");
  }
  sb_put(pr->b, ") -> (");
  for (u32 k = 0; k < f->rets.n; k++) {
    if (k) sb_put(pr->b, ", ");
    put_type(p, val(f, f->rets.v[k])->ty, pr->dflt, pr->b);
  }
  sb_char(pr->b, ')');
  put_loc(pr, f->where);
  sb_put(pr->b, " {\n");
}

static void put_func(printer *pr, func f) {
  const prog *p = pr->p;
  arena *tmp = arena_new();
  pr->f = func_get(p, f);
  pr->dflt = pr->f->body.n ? pr->f->body.v[0].g : (group){0};
  for (u32 k = 0; k < pr->f->body.n; k++)
    if (pr->f->body.v[k].g.i != pr->dflt.i) pr->dflt.i = 0;
  name_values(pr, tmp);
  put_head(pr, p->main.i == f.i && strcmp(sym_str(p->c, pr->f->name), "main") != 0);
  u32 scope = 0, depth = 0;
  for (u32 k = 0; k < pr->f->body.n; k++) {
    put_scopes(pr, &scope, pr->f->body.v[k].scope, &depth);
    put_instr(pr, &pr->f->body.v[k], depth);
  }
  put_scopes(pr, &scope, 0, &depth);
  sb_put(pr->b, pr->f->rets.n ? "  return " : "  return");
  put_values(pr, pr->f->rets.v, pr->f->rets.n);
  sb_put(pr->b, "\n}\n");
  arena_free(tmp);
}

// ---- declarations -----------------------------------------------------------------------------------
static void put_axis(const prog *p, u8 axis, strbuf *b) {
  put_name(b, p->c, axis_get(p->sp, axis)->name);
  const axis_info *x = axis_get(p->sp, axis);
  if (!x->nparts) sb_fmt(b, "=%u", x->size);
  for (u32 k = 0; k < x->nparts; k++) sb_fmt(b, "%c%u", k ? '+' : '=', x->part[k]);
}

// Axes are declared in the order of their ids: by the mesh that needs them where it continues that order,
// else on a line of their own.
static void put_axes_upto(const prog *p, u8 *declared, u8 last, strbuf *b) {
  while (*declared < last) {
    u8 axis = ++*declared;
    sb_put(b, axis_get(p->sp, axis)->temporal ? "time [" : "axis [");
    put_axis(p, axis, b);
    sb_put(b, "]\n");
  }
}

static void put_mesh(const prog *p, mesh m, u8 *declared, strbuf *b) {
  const mesh_info *i = mesh_get(p->sp, m);
  while (*declared < axis_count(p->sp) && axis_get(p->sp, *declared + 1)->temporal)
    put_axes_upto(p, declared, *declared + 1, b);
  u8 next = *declared, last = 0;
  for (u32 k = 0; k < i->naxes; k++) {
    if (i->axis[k] == next + 1)
      next++;
    else if (i->axis[k] > next)
      last = MAX(last, i->axis[k]);
  }
  put_axes_upto(p, declared, last, b);
  *declared = MAX(*declared, next);
  sb_put(b, "mesh @");
  put_name(b, p->c, i->name);
  sb_put(b, " [");
  for (u32 k = 0; k < i->naxes; k++) {
    if (k) sb_put(b, ", ");
    put_axis(p, i->axis[k], b);
  }
  sb_char(b, ']');
  if (i->ranks) {
    sb_put(b, " ranks {");
    for (u32 k = 0; k < i->nranks; k++) sb_fmt(b, k ? ", %u" : "%u", i->ranks[k]);
    sb_char(b, '}');
  } else if (i->first) {
    sb_fmt(b, " ranks %u..", i->first);
  }
  sb_char(b, '\n');
}

static void put_declarations(printer *pr) {
  const prog *p = pr->p;
  strbuf *b = pr->b;
  u8 declared = 0;
  if (pr->source.i) {
    sb_put(b, "source ");
    put_quoted(b, sym_str(p->c, pr->source));
    sb_char(b, '\n');
  }
  for (u32 k = 1; k <= mesh_count(p->sp); k++) put_mesh(p, (mesh){k}, &declared, b);
  put_axes_upto(p, &declared, (u8)axis_count(p->sp), b);
  for (u32 k = 0; k < p->sp->aliases.n; k++) {
    sb_put(b, "alias ");
    put_name(b, p->c, p->sp->aliases.v[k].name);
    sb_put(b, " = [");
    put_axes(p, p->sp->aliases.v[k].axis, p->sp->aliases.v[k].n, b);
    sb_put(b, "]\n");
  }
  for (u32 k = 1; k < p->streams.n; k++) {
    sb_put(b, k == 1 ? "stream " : ", ");
    put_name(b, p->c, p->streams.v[k]);
  }
  if (p->streams.n > 1) sb_char(b, '\n');
  if (p->has_default) {
    sb_put(b, "default ");
    put_count(pr, &p->scopes.v[0]);
    sb_char(b, '\n');
  }
  if (p->replicas.how) {
    sb_put(b, "replicas ");
    put_shares(b, &p->replicas);
    sb_char(b, '\n');
  }
  for (u32 k = 0; k < p->settings.n; k++) {
    sb_put(b, k ? ", " : "config ");
    put_name(b, p->c, p->settings.v[k].key);
    sb_put(b, " = ");
    put_word(b, p->c, p->settings.v[k].value);
  }
  if (p->settings.n) sb_char(b, '\n');
}

static void put_blob(printer *pr, u32 number, u32 id) {
  const data_info *d = &pr->p->data.v[id];
  sb_fmt(pr->b, "\ndata $%u : %s", number, dtype_name(d->t));
  layout_print(pr->p->sp, (layout){0}, d->nd, d->dim, pr->b);
  sb_put(pr->b, " = base64\n");
  for (i64 at = 0; at < d->size; at += BASE64_ROW) {
    sb_put(pr->b, "  \"");
    lit_put_base64(pr->b, (const u8 *)d->bytes + at, (size_t)MIN(d->size - at, BASE64_ROW));
    sb_put(pr->b, "\"\n");
  }
}

// The file of the first place in a model.
static sym source_of(const prog *p) {
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      const loc_info *l = loc_get(p->c, p->funcs.v[f]->body.v[k].where);
      if (l && l->node.i) return l->file;
    }
  return (sym){0};
}

void ir_print(const prog *p, strbuf *out) {
  arena *tmp = arena_new();
  printer pr = {.p = p, .b = out, .source = source_of(p), .label = ZNEWN(tmp, u32, p->data.n)};
  put_declarations(&pr);
  for (u32 f = 1; f < p->funcs.n; f++) {
    if (out->n) sb_char(out, '\n');
    put_func(&pr, (func){f});
  }
  for (u32 k = 0; k < pr.listed.n; k++) put_blob(&pr, k + 1, pr.listed.v[k]);
  arena_free(tmp);
}

void ir_print_func(const prog *p, func f, strbuf *out) {
  arena *tmp = arena_new();
  printer pr = {.p = p, .b = out, .source = source_of(p), .label = ZNEWN(tmp, u32, p->data.n)};
  put_func(&pr, f);
  arena_free(tmp);
}
