// operators.c - the expression of one instruction, from the rows of operators.def and collectives.def.
#include "export/internal.h"
#include <ctype.h>
#include <stdlib.h>
#include <zlib.h>

typedef struct {
  u16 op;
  const char *where, *dims, *text, *in_pieces;
} op_text;
static const op_text operators[] = {
#define PT(op, where, dims, text, in_pieces) {OP_##op, where, dims, text, in_pieces},
#include "export/operators.def"
#undef PT
};

typedef struct {
  u16 op;
  const char *text, *why;
} coll_text;
static const coll_text collectives[] = {
#define CT(op, text, why) {OP_##op, text, why},
#include "export/collectives.def"
#undef CT
};

typedef struct {
  py_scope *s;
  const instr *i;
  attrs at;
  const op_text *row;
  const type_info *of;      // whose dimensions the row names; NULL: none
  u32 ndims, dim[DIMS_MAX]; // those
} writing;

// ---- attributes ----------------------------------------------------------------------------------------
// The text behind NAME in the row's list of attributes, "=-1", "?", "!", "=mean|sum|none"; NULL: it is not there.
static const char *in_row(opcode op, const char *name, size_t n) {
  for (const char *s = op_row_of(op)->attrs; *s; s += strspn(s, " ")) {
    const size_t m = strcspn(s, " ");
    if (m > n && !strncmp(s, name, n) && strchr("=?!", s[n])) return s + n;
    s += m;
  }
  return NULL;
}

static void put_default(strbuf *b, const char *said, attr_kind kind) {
  if (!said || *said != '=') {
    sb_put(b, "None");
    return;
  }
  const size_t n = strcspn(said + 1, " |");
  if (kind == AK_STR)
    sb_fmt(b, "\"%.*s\"", (int)n, said + 1);
  else if (kind == AK_FLOAT)
    py_float(b, strtod(said + 1, NULL));
  else
    sb_putn(b, said + 1, n);
}

// Elements as they lie in memory, packed.
static bool put_data(writing *x, u32 data, strbuf *b) {
  py *w = x->s->w;
  const data_info *d = &w->p->data.v[data];
  if (!d->bytes) return py_refuse(w, x->i->where, "the elements of a constant are absent");
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uLongf n = compressBound((uLong)d->size);
  u8 *packed = arena_alloc(w->a, n + 3);
  if (compress2(packed, &n, d->bytes, (uLong)d->size, 9) != Z_OK)
    return py_refuse(w, x->i->where, "the elements of a constant cannot be packed");
  packed[n] = packed[n + 1] = 0;
  sb_char(b, '"');
  for (uLongf k = 0; k < n; k += 3) {
    const u32 v = (u32)packed[k] << 16 | (u32)packed[k + 1] << 8 | packed[k + 2];
    for (int j = 0; j < 4; j++) sb_char(b, k + (uLongf)j > n ? '=' : digits[v >> (18 - 6 * j) & 63]);
  }
  sb_char(b, '"');
  return true;
}

static bool put_attr(writing *x, const char *name, size_t n, strbuf *b) {
  py *w = x->s->w;
  const attr_key key = attr_find(name, n);
  const attr *a = attr_get(x->at, key);
  assert(key != A_NONE);
  if (!a && key == A_axes) { // all of them
    i64 all[DIMS_MAX];
    const u32 nd = val_type(w->p, x->s->f, opd_of(x->s->f, x->i, 0))->s.nd;
    for (u32 k = 0; k < nd; k++) all[k] = k;
    py_ints(b, all, nd, false);
    return true;
  }
  if (!a) {
    put_default(b, in_row((opcode)x->i->op, name, n), attr_kind_of(key));
    return true;
  }
  switch (a->kind) {
  case AK_INT: sb_i64(b, a->u.i); return true;
  case AK_FLOAT: py_float(b, a->u.f); return true;
  case AK_INTS: py_ints(b, a->u.ints, a->n, false); return true;
  case AK_STR: py_quote(b, sym_str(w->c, a->u.s)); return true;
  case AK_DATA: return put_data(x, a->u.data, b);
  default:
    return py_refuse(w, x->i->where, "%s: attribute %s cannot be exported", op_row_of((opcode)x->i->op)->name,
                     attr_name(key));
  }
}

// Word number k of "'none','tanh'".
static void put_word(strbuf *b, const char *words, i64 k) {
  for (; k > 0 && strchr(words, ','); k--) words = strchr(words, ',') + 1;
  sb_putn(b, words, strcspn(words, ",}"));
}

// ---- dimensions that count -----------------------------------------------------------------------------
static const type_info *opd_type(const writing *x, u32 k) {
  return val_type(x->s->w->p, x->s->f, opd_of(x->s->f, x->i, k));
}
static const type_info *res_type(const writing *x, u32 k) {
  return val_type(x->s->w->p, x->s->f, x->i->res + k);
}

static void find_dims(writing *x) {
  const char *d = x->row->dims;
  if (!*d) return;
  x->of = *d == 'r' ? res_type(x, 0) : opd_type(x, (u32)(*d - '0'));
  const u32 nd = x->of->s.nd;
  const i64 *axes;
  d += 2;
  if (!strcmp(d, "causal")) {
    const attr *a = attr_get(x->at, A_causal);
    attention_law l;
    if (a && !attention_read(sym_str(x->s->w->c, attr_get(x->at, A_law)->u.s), &l))
      x->dim[x->ndims++] = (u32)(strchr(l.opd[0], sym_str(x->s->w->c, a->u.s)[0]) - l.opd[0]);
  } else if (!strcmp(d, "axis")) {
    const char *said = in_row((opcode)x->i->op, "axis", 4);
    const i64 axis = attr_int(x->at, A_axis, said && *said == '=' ? strtol(said + 1, NULL, 10) : 0);
    if (nd) x->dim[x->ndims++] = (u32)(axis < 0 ? axis + nd : axis);
  } else if (!strcmp(d, "axes")) {
    const u32 n = attr_ints(x->at, A_axes, &axes);
    for (u32 k = 0; k < n; k++) x->dim[x->ndims++] = (u32)(axes[k] < 0 ? axes[k] + nd : axes[k]);
  } else if (isdigit((u8)*d)) {
    if ((u32)(*d - '0') < nd) x->dim[x->ndims++] = (u32)(*d - '0');
  } else {
    const u32 from = !strcmp(d, "last") ? nd - 1 : !strcmp(d, "last2") ? nd - 2 : 0;
    const u32 to = !strcmp(d, "first") ? 1 : nd;
    for (u32 k = from; k < to; k++) x->dim[x->ndims++] = k;
  }
}

static bool any_split(const writing *x) {
  for (u32 k = 0; k < x->ndims; k++)
    if (py_is_split(x->s->w, x->of, x->dim[k])) return true;
  return false;
}

static void put_here(writing *x, strbuf *b) {
  const bool one = x->ndims == 1;
  if (!one) sb_char(b, '(');
  for (u32 k = 0; k < x->ndims; k++) {
    if (k) sb_put(b, ", ");
    py_here(x->s->w, x->of, x->dim[k], x->i->coord, b);
  }
  if (!one) sb_char(b, ')');
}

static void put_extent(writing *x, strbuf *b) {
  i64 extent[DIMS_MAX];
  for (u32 k = 0; k < x->ndims; k++) extent[k] = x->of->s.dim[x->dim[k]];
  if (x->ndims == 1)
    sb_i64(b, extent[0]);
  else
    py_ints(b, extent, x->ndims, false);
}

// ---- texts ---------------------------------------------------------------------------------------------
// What losses and means divide by: labels, or elements of the operand for one of the result.
static i64 count_of(const writing *x) {
  static const u16 of_labels[][2] = {{OP_cross_entropy, 1}, {OP_cross_entropy_dx, 2}, {OP_nll, 1}};
  for (u32 k = 0; k < COUNT_OF(of_labels); k++)
    if (of_labels[k][0] == x->i->op) return shape_elems(&opd_type(x, of_labels[k][1])->s);
  const i64 n = shape_elems(&res_type(x, 0)->s);
  return n ? shape_elems(&opd_type(x, 0)->s) / n : 0;
}

static bool put_shape(writing *x, strbuf *b) {
  const type_info *t = res_type(x, 0);
  if (!x->s->w->here && !py_local(x->s->w, t, x->i->where)) return false;
  py_extents(x->s->w, t, b);
  return true;
}

static bool put_parts(writing *x, strbuf *b) {
  const i64 axis = attr_int(x->at, A_axis, 0);
  for (u32 k = 0; k < x->i->nres; k++) {
    const type_info *t = res_type(x, k);
    if (!x->s->w->here && !py_local(x->s->w, t, x->i->where)) return false;
    sb_put(b, k ? ", " : "[");
    py_extent(x->s->w, t, (u32)(axis < 0 ? axis + t->s.nd : axis), b);
  }
  sb_char(b, ']');
  return true;
}

static bool put_dtype(writing *x, strbuf *b) {
  const char *t = py_dtype(x->s->w, res_type(x, 0)->s.t, x->i->where);
  if (t) sb_put(b, t);
  return t;
}

// An index, or a number of elements, along a dimension as it is in a rank's piece. It must not cut one.
static bool in_piece(writing *x, const type_info *t, u32 dim, i64 *k) {
  const space *sp = x->s->w->p->sp;
  const layout_info *l = layout_get(sp, t->lay);
  for (u32 j = 0; j < l->nsplit && *k; j++) {
    if (l->split[j].dim != dim) continue;
    const i64 ways = axis_size(sp, l->split[j].axis);
    if (l->split[j].table || *k % (ways * l->split[j].stride))
      return py_refuse(x->s->w, x->i->where, "%s: ends that cut the pieces of ranks cannot be exported",
                       op_row_of((opcode)x->i->op)->name);
    *k /= ways;
  }
  return true;
}

static bool put_ends(writing *x, attr_key which, strbuf *b) {
  const i64 *end, *step;
  i64 here[DIMS_MAX];
  const u32 n = attr_ints(x->at, which, &end), nsteps = attr_ints(x->at, A_steps, &step);
  for (u32 k = 0; k < n; k++) {
    here[k] = end[k];
    if (nsteps && step[k] != 1 && py_is_split(x->s->w, x->of, x->dim[k]))
      return py_refuse(x->s->w, x->i->where,
                       "a slice with steps along a dimension that is split cannot be exported");
    if (!in_piece(x, x->of, x->dim[k], &here[k])) return false;
  }
  py_ints(b, here, n, false);
  return true;
}

static bool put_border(writing *x, strbuf *b) {
  const i64 *pad;
  i64 here[2 * DIMS_MAX];
  const u32 n = attr_ints(x->at, A_pads, &pad);
  for (u32 k = 0; k < n; k++) {
    here[k] = pad[k];
    if (!in_piece(x, opd_type(x, 0), k % (n / 2), &here[k])) return false;
  }
  py_ints(b, here, n, false);
  return true;
}

static bool put_step(writing *x, strbuf *b) {
  if (attr_float(x->at, A_alpha, 1) == 1 && attr_float(x->at, A_beta, 0) == 0) return true;
  sb_put(b, ", ");
  if (!put_attr(x, "alpha", 5, b)) return false;
  sb_put(b, ", ");
  return put_attr(x, "beta", 4, b);
}

// One word behind a $.
static bool put_placeholder(writing *x, const char *s, size_t n, strbuf *b) {
#define IS(word) (n == sizeof(word) - 1 && !strncmp(s, word, n))
  const func_info *f = x->s->f;
  const u32 nopd = instr_nopd(f, x->i);
  if (isdigit((u8)*s)) {
    sb_put(b, py_value(x->s, opd_of(f, x->i, (u32)(*s - '0'))));
    return true;
  }
  if (*s == '*') {
    for (u32 k = 0; k < nopd; k++) sb_fmt(b, "%s%s", k ? ", " : "", py_value(x->s, opd_of(f, x->i, k)));
    return true;
  }
  if (IS("shape")) return put_shape(x, b);
  if (IS("parts")) return put_parts(x, b);
  if (IS("dtype")) return put_dtype(x, b);
  if (IS("from")) return put_ends(x, A_starts, b);
  if (IS("to")) return put_ends(x, A_ends, b);
  if (IS("border")) return put_border(x, b);
  if (IS("step")) return put_step(x, b);
  if (IS("cuts")) return put_here(x, b), true;
  if (IS("extent")) return put_extent(x, b), true;
  if (IS("count")) return sb_i64(b, count_of(x)), true;
  if (IS("all0")) return sb_i64(b, shape_elems(&opd_type(x, 0)->s)), true;
  if (IS("samples")) {
    const u32 k = x->i->op == OP_batchnorm_dx;
    return sb_i64(b, opd_type(x, k)->s.dim[0] / attr_int(x->at, A_bn_groups, 1)), true;
  }
  return put_attr(x, s, n, b);
#undef IS
}

static bool expand(writing *x, const char *s, strbuf *b) {
  while (*s) {
    if (*s != '$') {
      sb_char(b, *s++);
      continue;
    }
    size_t n = 1;
    s++;
    if (isalpha((u8)*s))
      while (isalnum((u8)s[n]) || s[n] == '_') n++;
    if (s[n] == '{') {
      put_word(b, s + n + 1,
               attr_int(x->at, attr_find(s, n), strtol(in_row((opcode)x->i->op, s, n) + 1, NULL, 10)));
      s = strchr(s, '}') + 1;
      continue;
    }
    if (!put_placeholder(x, s, n, b)) return false;
    s += n;
  }
  return true;
}

// "axis=0" of a row that is only for that.
static bool is_for(const writing *x, const char *where) {
  if (!*where) return true;
  if (!strcmp(where, "of integers")) return dtype_kind_of(res_type(x, 0)->s.t) != DK_FLOAT;
  const size_t n = strcspn(where, "=");
  const char *said = in_row((opcode)x->i->op, where, n), *want = where + n + 1;
  const attr *a = attr_get(x->at, attr_find(where, n));
  if (a && a->kind == AK_INT) return a->u.i == strtol(want, NULL, 10);
  if (a && a->kind == AK_FLOAT) return a->u.f == strtod(want, NULL);
  if (a && a->kind == AK_STR) return !strcmp(sym_str(x->s->w->c, a->u.s), want);
  return said && *said == '=' && !strncmp(said + 1, want, strlen(want)) &&
         strchr(" |", said[1 + strlen(want)]);
}

// What choices of a plan put in that has no row.
static const struct {
  u16 op;
  const char *with, *what, *instead; // with: an attribute
} unwritten[] = {
    {OP_reduce, "server", "gradients that one rank sums (sync=ps) cannot be exported", "sync=allreduce"},
    {OP_broadcast, "server", "weights that one rank has (sync=ps) cannot be exported", "sync=allreduce"},
};

static bool no_row(writing *x) {
  py *w = x->s->w;
  const bool first = !w->failed;
  for (u32 k = 0; k < COUNT_OF(unwritten); k++) {
    const char *with = unwritten[k].with;
    if (unwritten[k].op != x->i->op || !attr_get(x->at, attr_find(with, strlen(with)))) continue;
    py_refuse(w, x->i->where, "%s", unwritten[k].what);
    py_refuse_hint(w, first, unwritten[k].instead);
    return false;
  }
  py_refuse(w, x->i->where, "%s cannot be written in PyTorch", op_row_of((opcode)x->i->op)->name);
  const bool own = op_row_of((opcode)x->i->op)->own != NULL;
  py_refuse_hint(w, first,
                 own ? "register it with an expression: its member `pytorch` (docs/operators.md)"
                     : "operators that can: docs/export.md");
  return false;
}

bool py_operator(py_scope *s, const instr *i, strbuf *b) {
  writing x = {.s = s, .i = i, .at = attrs_get(s->w->p, i->at)};
  for (u32 k = 0; k < COUNT_OF(operators) && !x.row; k++)
    if (operators[k].op == i->op && is_for(&x, operators[k].where)) x.row = &operators[k];
  const op_own *own = op_row_of((opcode)i->op)->own;
  const op_text text = {
      .op = i->op, .where = "", .dims = "", .text = own ? own->pytorch : NULL, .in_pieces = ""};
  if (text.text) x.row = &text;
  if (!x.row) return no_row(&x);
  find_dims(&x);
  const bool split = any_split(&x);
  if (split && s->w->here && !py_local(s->w, x.of, i->where)) return false;
  if (split && !*x.row->in_pieces)
    return py_refuse(s->w, i->where, "%s cannot be written in PyTorch along a dimension that is split",
                     op_row_of((opcode)i->op)->name);
  return expand(&x, split ? x.row->in_pieces : x.row->text, b);
}

// ---- collectives ---------------------------------------------------------------------------------------
static const coll_text *collective_of(const instr *i) {
  for (u32 k = 0; k < COUNT_OF(collectives); k++)
    if (collectives[k].op == i->op) return &collectives[k];
  return NULL;
}

const char *py_collective_why(py_scope *s, const instr *i) {
  const coll_text *row = collective_of(i);
  const attr *over = attr_get(attrs_get(s->w->p, i->at), A_over);
  if (!row || !over) return NULL;
  strbuf b = {.a = s->w->a};
  const char *at = strstr(row->why, "$over");
  sb_putn(&b, row->why, (size_t)(at - row->why));
  for (u32 k = 0; k < over->n; k++)
    sb_fmt(&b, "%s%s", k ? ", " : "", sym_str(s->w->c, axis_get(s->w->p->sp, over->u.axes[k])->name));
  sb_put(&b, at + 5);
  return sb_str(&b);
}

// Do the axes take digits of the index that they also give? Then it is no exchange of pieces.
static bool meet(const space *sp, const type_info *in, const type_info *out, const u8 *axes, u32 n) {
  for (u32 k = 0; k < n; k++)
    for (u32 j = 0; j < n; j++) {
      const lay_split *x = layout_split_of(sp, in->lay, axes[k]), *y = layout_split_of(sp, out->lay, axes[j]);
      if (x && y && (x->table || y->table)) return true;
      if (x && y && x->dim == y->dim && x->stride < y->stride * axis_size(sp, axes[j]) &&
          y->stride < x->stride * axis_size(sp, axes[k]))
        return true;
    }
  return false;
}

typedef struct {
  u8 axes[MESH_AXES];
  u32 n;
  strbuf give, take;
} way;

static layout without(const py *w, layout l, const u8 *axes, u32 n) {
  space *sp = w->p->sp;
  for (u32 k = 0; k < n; k++) l = layout_without(sp, l, axes[k]);
  return l;
}

// Which axes, and how they split result and operand. False and a diagnostic.
static bool find_way(py_scope *s, const instr *i, const type_info *in, const type_info *out, way *x) {
  py *w = s->w;
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  const coll_row *row = coll_find((opcode)i->op);
  x->give = x->take = (strbuf){.a = w->a};
  if (!py_local(w, in, i->where) || !py_local(w, out, i->where)) return false;
  const type_info *cut = row->out == 'D' ? out : row->in == 'D' ? in : NULL;
  x->n = py_order(w, cut, over->u.axes, over->n, x->axes);
  if (row->in == 'D' && row->out == 'D') {
    u8 same[MESH_AXES];
    bool fits =
        py_order(w, in, over->u.axes, over->n, same) == x->n && !meet(w->p->sp, in, out, x->axes, x->n);
    for (u32 k = 0; k < x->n && fits; k++) fits = layout_split_of(w->p->sp, in->lay, x->axes[k]) != NULL;
    if (!fits) return false;
  }
  if (row->in == 'D' && row->out == 'R' && x->n > 1) // uneven pieces along one axis only
    for (u32 k = 0; k < x->n; k++)
      if (layout_split_of(w->p->sp, in->lay, x->axes[k])->table) return false;
  if (row->out == 'D')
    py_cuts(w, out, row->in == 'D' ? in->lay : without(w, out->lay, x->axes, x->n), x->axes, x->n, &x->give);
  if (row->in == 'D')
    py_cuts(w, in, row->out == 'D' ? out->lay : without(w, in->lay, x->axes, x->n), x->axes, x->n, &x->take);
  return true;
}

bool py_beside(const instr *i) {
  return i->strm && i->flags & INSTR_UPDATE && (i->op == OP_all_reduce || i->op == OP_reduce_scatter);
}

bool py_collective(py_scope *s, const instr *i, u32 k, const char *operand, strbuf *b) {
  py *w = s->w;
  const coll_text *row = collective_of(i);
  const type_info *in = val_type(w->p, s->f, opd_of(s->f, i, k)), *out = val_type(w->p, s->f, i->res + k);
  way x;
  if (!find_way(s, i, in, out, &x)) return false;
  if (!x.n) {
    sb_put(b, operand);
    return true;
  }
  for (const char *t = row->text; *t; t++) {
    if (*t != '$') {
      if (*t == '(' && py_beside(i)) sb_put(b, "_beside"), w->sums = true;
      sb_char(b, *t);
      continue;
    }
    const size_t n = strcspn(++t, ",). ($");
    if (*t == '0')
      sb_put(b, operand);
    else if (!strncmp(t, "axes", 4))
      sb_put(b, py_axes_of(w, x.axes, x.n)), t += 3;
    else if (!strncmp(t, "red", 3)) {
      const reduction r = layout_part_of(w->p->sp, in->lay, x.axes[0]);
      if (r != RED_SUM) sb_fmt(b, ", \"%s\"", red_name(r));
      t += 2;
    } else {
      sb_put(b, sb_str(*t == 'g' ? &x.give : &x.take));
      t += 3;
    }
    (void)n;
  }
  return true;
}
