// parse_term.c - the parts of the program text that stand inside an instruction or a head: groups, types,
// axes, attributes, constants, locations. Statements are in parse.c.
#include "ir/internal.h"
#include <errno.h>
#include <stdlib.h>

bool parse_error(parser *ps, const char *expected) {
  if (ps->l.kind == TOK_BAD) return false; // the lexer has said it
  diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "expected %s, found %s", expected, lex_found(&ps->l));
  return false;
}

bool parse_is(const parser *ps, char punct) { return ps->l.kind == TOK_PUNCT && ps->l.punct == punct; }

bool parse_take(parser *ps, char punct) {
  if (!parse_is(ps, punct)) return false;
  lex_next(&ps->l);
  return true;
}

bool parse_expect(parser *ps, char punct) {
  return parse_take(ps, punct) || parse_error(ps, (char[]){'\'', punct, '\'', 0});
}

bool parse_is_word(const parser *ps, const char *word) {
  return ps->l.kind == TOK_NAME && ps->l.len == strlen(word) && memcmp(ps->l.name, word, ps->l.len) == 0;
}

bool parse_word(parser *ps, const char *word) {
  if (!parse_is_word(ps, word)) return false;
  lex_next(&ps->l);
  return true;
}

// The current token is the sign of a number or a name with the digits.
static bool read_int(parser *ps, i64 least, i64 most, i64 *out) {
  char text[24], *end;
  size_t n = MIN(ps->l.len, sizeof text - 1);
  memcpy(text, ps->l.name, n);
  text[n] = 0;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (*end || n != ps->l.len) return parse_error(ps, "an integer");
  if (errno == 0 && *out >= least && *out <= most) return true;
  diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "%s is outside %lld to %lld", text, (long long)least,
       (long long)most);
  return false;
}

bool parse_int(parser *ps, i64 least, i64 most, i64 *out) {
  if (ps->l.kind != TOK_NUMBER) return parse_error(ps, "an integer");
  if (!read_int(ps, least, most, out)) return false;
  lex_next(&ps->l);
  return true;
}

bool parse_name(parser *ps, const char *what, sym *out) {
  if ((ps->l.kind != TOK_NAME && ps->l.kind != TOK_STRING) || !ps->l.len) return parse_error(ps, what);
  *out = lex_sym(&ps->l);
  lex_next(&ps->l);
  return true;
}

// ---- groups and types -------------------------------------------------------------------------------
// Reports what layout/
// found wrong at `at` and goes on there.
static bool foreign_error(parser *ps, diag_id id, const char *at, const char *error) {
  lex_from(&ps->l, at);
  if (ps->l.kind != TOK_BAD) diag(ps->c, id, lex_loc(&ps->l), "%s", error);
  return false;
}

bool parse_group(parser *ps, group *out) {
  lexer *l = &ps->l;
  if (l->kind != TOK_AT) return parse_error(ps, "a group like @m[pp=0]");
  if (l->len == 1 && *l->name == '.' && !l->quoted) {
    *out = (group){0};
    lex_next(l);
    return true;
  }
  const char *at = l->start, *error;
  u32 errors = diag_errors(ps->c);
  if (group_parse(ps->p->sp, &at, out, &error)) {
    lex_from(l, at);
    return true;
  }
  if (diag_errors(ps->c) > errors) return false;
  return foreign_error(ps, E_NAME, at, error);
}

// Extents whose product is no number of bytes are nobody's tensor.
static bool sane_size(parser *ps, const shape *s, loc where) {
  i64 n = dtype_bytes(s->t);
  for (u32 d = 0; d < s->nd; d++)
    if (s->dim[d] < 0 || !mul_i64(n, MAX(s->dim[d], 1), &n)) {
      diag(ps->c, E_LIMIT, where, "a tensor of more than 2^63 bytes");
      return false;
    }
  return true;
}

static bool tensor_type(parser *ps, group dflt, type *out) {
  lexer *l = &ps->l;
  shape s = {.t = l->kind == TOK_NAME ? dtype_find(l->name, l->len) : DT_NONE};
  loc where = lex_loc(l);
  layout lay;
  const char *at = l->at, *error;
  if (s.t == DT_NONE) {
    parse_error(ps, "a type");
    if (l->kind == TOK_NAME) diag_hint(ps->c, "a type is an element type and extents: f16[256,1024{tp}]+dp");
    return false;
  }
  if (*at != '[') {
    lex_next(l);
    return parse_error(ps, "'[' and the extents");
  }
  if (!layout_parse(ps->p->sp, &at, &s.nd, s.dim, &lay, &error))
    return foreign_error(ps, E_LAYOUT, at, error);
  lex_from(l, at);
  if (!sane_size(ps, &s, where)) return false;
  group g = dflt;
  if (l->kind == TOK_AT && !parse_group(ps, &g)) return false;
  *out = type_tensor(ps->p, &s, lay, g);
  return true;
}

static bool any_type(parser *ps, group dflt, u32 depth, type *out) {
  if (!parse_is(ps, '(')) return tensor_type(ps, dflt, out);
  if (depth == 16) {
    diag(ps->c, E_LIMIT, lex_loc(&ps->l), "tuples nested deeper than 16");
    return false;
  }
  VEC(type) elem = {0};
  lex_next(&ps->l);
  while (!parse_is(ps, ')')) {
    type t;
    if ((elem.n && !parse_expect(ps, ',')) || !any_type(ps, dflt, depth + 1, &t)) return false;
    *vec_push(ps->tmp, &elem) = t;
  }
  lex_next(&ps->l);
  *out = type_tuple(ps->p, elem.v, elem.n);
  return true;
}

bool parse_type(parser *ps, group dflt, type *out) { return any_type(ps, dflt, 0, out); }

bool parse_axes(parser *ps, u8 *axis, u32 cap, u32 *n) {
  *n = 0;
  do {
    sym name = {0};
    loc where = lex_loc(&ps->l);
    if (!parse_name(ps, "an axis", &name)) return false;
    u8 atom[AXES_MAX];
    u32 got = axis_expand(ps->p->sp, name, atom, COUNT_OF(atom));
    if (!got)
      diag(ps->c, E_NAME, where, "unknown axis '%s'", sym_str(ps->c, name));
    else if (*n + got > cap)
      diag(ps->c, E_LIMIT, where, "more than %u axes", cap);
    if (!got || *n + got > cap) return false;
    memcpy(axis + *n, atom, got);
    *n += got;
  } while (parse_take(ps, ','));
  return true;
}

// ---- constants --------------------------------------------------------------------------------------
static u32 label_id(parser *ps, u32 number) {
  u32 k = hmap_get(&ps->label, number + 1);
  if (k) return k - 1;
  *vec_push(ps->tmp, &ps->labels) = (blob_label){number, 0, false, lex_loc(&ps->l)};
  shape none = {.t = DT_U8, .nd = 1};
  ps->labels.v[ps->labels.n - 1].id = data_add(ps->p, &none, NULL, false);
  hmap_add(ps->tmp, &ps->label, number + 1, ps->labels.n);
  return ps->labels.n - 1;
}

// Is there enough text left for so many elements? What is not there must not be allocated.
static bool enough_text(parser *ps, const shape *s) {
  if (shape_elems(s) <= ps->l.end - ps->l.start) return true;
  diag(ps->c, E_SHAPE, lex_loc(&ps->l), "%lld elements are needed, but the text ends before",
       (long long)shape_elems(s));
  return false;
}

static bool elements(parser *ps, const shape *s, u8 *bytes) {
  i64 n = shape_elems(s), each = dtype_bytes(s->t), k = 0;
  for (; k < n && !parse_is(ps, ']'); k++) {
    if (k && !parse_expect(ps, ',')) return false;
    if ((ps->l.kind != TOK_NUMBER && ps->l.kind != TOK_NAME) ||
        !lit_get_elem(s->t, ps->l.name, ps->l.len, bytes + k * each))
      return parse_error(ps, arena_printf(ps->tmp, "an element of type %s", dtype_name(s->t)));
    lex_next(&ps->l);
  }
  if (k == n && parse_take(ps, ']')) return true;
  if (k == n && !parse_is(ps, ',')) return parse_error(ps, "']'");
  if (k == n)
    diag(ps->c, E_SHAPE, lex_loc(&ps->l), "more than %lld elements", (long long)n);
  else
    diag(ps->c, E_SHAPE, lex_loc(&ps->l), "%lld elements; %lld are needed", (long long)k, (long long)n);
  return false;
}

// Behind "base64": strings, together the bytes of s.
static bool base64(parser *ps, const shape *s, u8 *bytes) {
  u8 *to = bytes, *end = bytes + shape_bytes(s);
  for (; ps->l.kind == TOK_STRING; lex_next(&ps->l))
    if (!lit_get_base64(ps->l.name, ps->l.len, &to, end)) {
      diag(ps->c, E_SYNTAX, lex_loc(&ps->l), to == end ? "more bytes than the type has" : "not base64");
      return false;
    }
  if (to == end) return true;
  diag(ps->c, E_SHAPE, lex_loc(&ps->l), "%lld bytes, the type has %lld", (long long)(to - bytes),
       (long long)(end - bytes));
  return false;
}

bool parse_data(parser *ps, const shape *s, u32 *id) {
  if (ps->l.kind == TOK_DATA) {
    i64 number;
    if (!read_int(ps, 0, UINT32_MAX - 1, &number)) return false;
    u32 k = label_id(ps, (u32)number); // may move the labels
    *id = ps->labels.v[k].id;
    lex_next(&ps->l);
    return true;
  }
  if (parse_word(ps, "absent")) {
    *id = data_add(ps->p, s, NULL, false);
    return true;
  }
  if (!parse_take(ps, '[')) return parse_error(ps, "elements: [1, 2], $1 or absent");
  if (!enough_text(ps, s)) return false;
  u8 *bytes = arena_alloc(ps->p->a, (size_t)shape_bytes(s));
  if (!elements(ps, s, bytes)) return false;
  *id = data_add(ps->p, s, bytes, false);
  return true;
}

bool parse_blob(parser *ps) {
  i64 number;
  type t;
  loc where = lex_loc(&ps->l);
  if (ps->l.kind != TOK_DATA) return parse_error(ps, "a number like $1");
  if (!read_int(ps, 0, UINT32_MAX - 1, &number)) return false;
  u32 k = label_id(ps, (u32)number);
  if (ps->labels.v[k].defined) {
    diag(ps->c, E_NAME, where, "$%u is defined twice", (u32)number);
    diag_note(ps->c, ps->labels.v[k].where, "here first");
    return false;
  }
  lex_next(&ps->l);
  if (!parse_expect(ps, ':') || !parse_type(ps, (group){0}, &t) || !parse_expect(ps, '=')) return false;
  const type_info *i = type_get(ps->p, t);
  if (i->tuple || i->lay.i || i->g.i) {
    diag(ps->c, E_SYNTAX, where, "the type of a constant has extents only");
    return false;
  }
  shape s = i->s;
  u8 *bytes = NULL;
  ps->labels.v[k].defined = true;
  ps->labels.v[k].where = where;
  bool list = parse_is(ps, '[');
  if (list || parse_is_word(ps, "base64")) {
    lex_next(&ps->l);
    if (!enough_text(ps, &s)) return false;
    bytes = arena_alloc(ps->p->a, (size_t)shape_bytes(&s));
    if (!(list ? elements(ps, &s, bytes) : base64(ps, &s, bytes))) return false;
  } else if (!parse_word(ps, "absent")) {
    return parse_error(ps, "base64, [elements] or absent");
  }
  data_info *d = &ps->p->data.v[ps->labels.v[k].id];
  *d = (data_info){.t = s.t, .nd = s.nd, .bytes = bytes, .size = shape_bytes(&s)};
  memcpy(d->dim, s.dim, s.nd * sizeof *s.dim);
  return true;
}

// ---- attributes -------------------------------------------------------------------------------------
static bool number(parser *ps, double *out) {
  if ((ps->l.kind != TOK_NUMBER && ps->l.kind != TOK_NAME) ||
      !lit_get_elem(DT_F64, ps->l.name, ps->l.len, out))
    return parse_error(ps, "a number");
  lex_next(&ps->l);
  return true;
}

static bool list(parser *ps, attr *a) {
  VEC(i64) ints = {0};
  VEC(double) floats = {0};
  if (!parse_expect(ps, '[')) return false;
  while (!parse_is(ps, ']')) {
    if (ints.n + floats.n && !parse_expect(ps, ',')) return false;
    if (a->kind == AK_INTS ? !parse_int(ps, INT64_MIN, INT64_MAX, vec_push(ps->tmp, &ints))
                           : !number(ps, vec_push(ps->tmp, &floats)))
      return false;
  }
  lex_next(&ps->l);
  a->n = ints.n + floats.n;
  if (a->kind == AK_INTS)
    a->u.ints = ints.v;
  else
    a->u.floats = floats.v;
  return true;
}

// The elements of a constant are read by the type and the extents that stand before them.
static bool data_attr(parser *ps, const attr *v, u32 n, attr *a) {
  shape s = {0};
  for (u32 k = 0; k < n; k++) {
    if (v[k].key == A_dtype) s.t = v[k].u.t;
    if (v[k].key != A_shape || v[k].n > DIMS_MAX) continue;
    s.nd = v[k].n;
    if (s.nd) memcpy(s.dim, v[k].u.ints, s.nd * sizeof *s.dim);
  }
  if (s.t == DT_NONE) {
    diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "shape and dtype must stand before data");
    return false;
  }
  return sane_size(ps, &s, lex_loc(&ps->l)) && parse_data(ps, &s, &a->u.data);
}

static bool attr_value(parser *ps, const attr *v, u32 n, attr *a) {
  switch ((attr_kind)a->kind) {
  case AK_INT: return parse_int(ps, INT64_MIN, INT64_MAX, &a->u.i);
  case AK_FLOAT: return number(ps, &a->u.f);
  case AK_INTS:
  case AK_FLOATS: return list(ps, a);
  case AK_DATA: return data_attr(ps, v, n, a);
  case AK_STR:
    if (ps->l.kind != TOK_STRING) return parse_error(ps, "a string");
    a->u.s = lex_sym(&ps->l);
    lex_next(&ps->l);
    return true;
  case AK_DTYPE:
    a->u.t = ps->l.kind == TOK_NAME ? dtype_find(ps->l.name, ps->l.len) : DT_NONE;
    if (a->u.t == DT_NONE) return parse_error(ps, "an element type");
    lex_next(&ps->l);
    return true;
  case AK_AXES: break;
  }
  u8 *axis = NEWN(ps->tmp, u8, MESH_AXES);
  a->u.axes = axis;
  return parse_expect(ps, '[') && parse_axes(ps, axis, MESH_AXES, &a->n) && parse_expect(ps, ']');
}

static bool unknown_attr(parser *ps) {
  near_name near = near_to(ps->l.name, ps->l.len);
  for (u32 k = A_NONE + 1; k < A_COUNT; k++) near_try(&near, attr_name((attr_key)k));
  diag(ps->c, E_ATTR, lex_loc(&ps->l), "unknown attribute '%.*s'", (int)ps->l.len, ps->l.name);
  if (near.name)
    diag_hint(ps->c, "did you mean '%s'?", near.name);
  else
    diag_hint(ps->c, "`heddle ops OPERATOR` lists the attributes of an operator");
  return false;
}

bool parse_attr(parser *ps, attr *v, u32 *n) {
  attr_key key = ps->l.kind == TOK_NAME ? attr_find(ps->l.name, ps->l.len) : A_NONE;
  if (key == A_NONE && ps->l.kind == TOK_NAME) return unknown_attr(ps);
  if (key == A_NONE) return parse_error(ps, "the name of an attribute");
  for (u32 k = 0; k < *n; k++)
    if (v[k].key == key) {
      diag(ps->c, E_ATTR, lex_loc(&ps->l), "%s is given twice", attr_name(key));
      return false;
    }
  lex_next(&ps->l);
  attr a = {.key = (u16)key, .kind = (u8)attr_kind_of(key)};
  a.u.i = 0;
  if (!parse_expect(ps, '=') || !attr_value(ps, v, *n, &a)) return false;
  v[(*n)++] = a;
  return true;
}

bool parse_attr_list(parser *ps, attr *v, u32 *n) {
  *n = 0;
  do {
    if (!parse_attr(ps, v, n)) return false;
  } while (parse_take(ps, ','));
  return true;
}

bool parse_attrs(parser *ps, attr *v, u32 *n) {
  *n = 0;
  if (!parse_expect(ps, '{')) return false;
  return (parse_is(ps, '}') || parse_attr_list(ps, v, n)) && parse_expect(ps, '}');
}

// ---- locations --------------------------------------------------------------------------------------
// What the next copies of a repeated block call the same.
static bool parse_alike(parser *ps, loc at, const sym *part) {
  if (!parse_expect(ps, '(')) return false;
  do {
    if (ps->l.kind != TOK_STRING || !ps->l.len) return parse_error(ps, "the name of a node");
    const loc next = loc_node(ps->c, part[2], lex_sym(&ps->l), part[1]);
    loc_set_alike(ps->c, at, next);
    at = next;
    lex_next(&ps->l);
  } while (parse_take(ps, ','));
  return parse_expect(ps, ')');
}

bool parse_loc(parser *ps, loc *out) {
  sym part[3] = {{0}, {0}, ps->source};
  if (!parse_expect(ps, '(')) return false;
  for (u32 k = 0; k < 3; k++) {
    if (k && !parse_take(ps, ',')) break;
    if (ps->l.kind != TOK_STRING || (k == 0 && !ps->l.len)) return parse_error(ps, "a string");
    part[k] = lex_sym(&ps->l);
    lex_next(&ps->l);
  }
  *out = loc_node(ps->c, part[2], part[0], part[1]);
  return parse_expect(ps, ')') && (!parse_word(ps, "alike") || parse_alike(ps, *out, part));
}

// ---- annotations ------------------------------------------------------------------------------------
bool parse_shares(parser *ps, shares_info *out) {
  VEC(u32) part = {0};
  *out = (shares_info){.where = lex_loc(&ps->l)};
  out->how = parse_word(ps, "auto") ? SHARES_AUTO : parse_word(ps, "equal") ? SHARES_EQUAL : SHARES_PARTS;
  if (out->how != SHARES_PARTS) return true;
  if (!parse_is(ps, '[')) return parse_error(ps, "`auto`, `equal`, or shares such as [5, 3]");
  do {
    i64 n;
    lex_next(&ps->l);
    if (!parse_int(ps, 1, UINT16_MAX, &n)) return false;
    *vec_push(ps->p->a, &part) = (u32)n;
  } while (parse_is(ps, ','));
  out->n = part.n, out->part = part.v;
  return parse_expect(ps, ']');
}

// "4", "all" or nothing; "shares" and what they are, or nothing; "as" and a name, or nothing.
static bool scope_words(parser *ps, scope_info *out) {
  i64 n = 0;
  if (parse_word(ps, "all"))
    out->count = SCOPE_ALL;
  else if (ps->l.kind == TOK_NUMBER && !parse_int(ps, 1, UINT16_MAX, &n))
    return false;
  else
    out->count = (u32)n;
  if (parse_word(ps, "shares") && !parse_shares(ps, &out->shares)) return false;
  return !parse_word(ps, "as") || parse_name(ps, "the name of the scope", &out->name);
}

bool parse_scope(parser *ps, scope_info *out) {
  if (!scope_words(ps, out)) return false;
  if (!parse_is(ps, '{')) return parse_error(ps, "a number of devices, `all`, or '{'");
  lex_next(&ps->l);
  return true;
}

bool parse_default(parser *ps) {
  scope_info s = {.where = lex_loc(&ps->l)};
  if (ps->p->has_default) {
    diag(ps->c, E_NAME, s.where, "a second default");
    return false;
  }
  if (!parse_word(ps, scope_row_of(s.kind)->word))
    return parse_error(ps, "`replicate`: what stands in no scope is replicated");
  if (!scope_words(ps, &s)) return false;
  if (!ps->l.first && ps->l.kind != TOK_END) return parse_error(ps, "a number of devices or `all`");
  ps->p->scopes.v[0] = s, ps->p->has_default = true;
  return true;
}

bool parse_settings(parser *ps) {
  do {
    setting_info s = {.where = lex_loc(&ps->l)};
    if (!parse_name(ps, "a key such as pipeline.num_micro_batch", &s.key) || !parse_expect(ps, '='))
      return false;
    if (ps->l.kind != TOK_NAME && ps->l.kind != TOK_NUMBER && ps->l.kind != TOK_STRING)
      return parse_error(ps, "a value");
    s.value = lex_sym(&ps->l);
    lex_next(&ps->l);
    *vec_push(ps->p->a, &ps->p->settings) = s;
  } while (parse_take(ps, ','));
  return true;
}
