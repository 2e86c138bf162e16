// parse.c - the statements of the program text (docs/language.md): declarations, functions, instructions.
// What stands inside them is in parse_term.c, the tokens are in lex.c.
//
// Idea: heads first, bodies second, so that a call may stand before its callee and still know its types. An
// error costs one instruction: its results are remembered as spoilt, what uses them is skipped in silence,
// and the next line goes on.
#include "ir/internal.h"

enum { ERRORS_MAX = 20, RANKS_MAX = 1 << 20 };
static const value SPOILT = UINT32_MAX;

typedef struct {
  lexer body; // at the opening brace; none if the head is bad
  group dflt;
  VEC(type) rets;
  VEC(u64) params; // what they are called in the text
} head;

typedef struct {
  parser ps;
  VEC(head) heads; // [i]: function i + 1
  u32 errors;      // there were before
  const head *in;  // the function whose body is read
  func f;
  hmap values;   // key -> value
  VEC(u32) open; // scopes around the line, from the outside
  // the instruction that is read
  bool spoilt; // it uses something spoilt
  VEC(u64) results;
  VEC(u32) opds;
  VEC(type) types;
} reader;

static bool too_many(const reader *r) { return diag_errors(r->ps.c) - r->errors >= ERRORS_MAX; }

// ---- names ------------------------------------------------------------------------------------------
// %12 is a number that stands for a value without a name, %"12" is a name, %_ is nothing.
static u64 value_key(parser *ps) {
  bool number = !ps->l.quoted && ps->l.name[0] >= '0' && ps->l.name[0] <= '9';
  if (!ps->l.quoted && ps->l.len == 1 && *ps->l.name == '_') return 0;
  return lex_sym(&ps->l).i | (u64)number << 40;
}

static sym key_sym(u64 key) { return (sym){(u32)key}; }
static sym key_name(u64 key) { return (sym){key >> 40 ? 0 : (u32)key}; }

static bool unknown_op(parser *ps) {
  const char *near = op_near(ps->c, ps->l.name, ps->l.len);
  diag(ps->c, E_NAME, lex_loc(&ps->l), "unknown operator '%s'", sym_str(ps->c, lex_sym(&ps->l)));
  if (near)
    diag_hint(ps->c, "did you mean '%s'?", near);
  else
    diag_hint(ps->c, "`heddle ops` lists the operators");
  return false;
}

// ---- declarations -----------------------------------------------------------------------------------
// "2+3": a size in parts. How many; 0 and a diagnostic: it is none.
enum { PARTS_MOST = UINT8_MAX };
static u32 parts_decl(parser *ps, u32 *part, i64 *size) {
  u32 n = 0;
  *size = 0;
  do {
    i64 x;
    if (!parse_int(ps, 1, UINT16_MAX, &x)) return 0;
    if (n == PARTS_MOST) return parse_error(ps, "no more parts"), 0;
    part[n++] = (u32)x, *size += x;
  } while (parse_take(ps, '+'));
  return n;
}

// "[pp=2, tp=4]": new axes; spatial ones may be known already, with the same size. One in time may be in parts.
static bool axes_decl(parser *ps, bool temporal, u8 *axis, u32 *n) {
  *n = 0;
  if (!parse_expect(ps, '[')) return false;
  for (bool more = !parse_is(ps, ']'); more; more = parse_take(ps, ',')) {
    i64 size;
    loc where = lex_loc(&ps->l);
    if (ps->l.kind != TOK_NAME) return parse_error(ps, "the name of an axis");
    sym name = lex_sym(&ps->l);
    lex_next(&ps->l);
    u32 part[PARTS_MOST], nparts = 0;
    if (!parse_expect(ps, '=')) return false;
    if (temporal ? !(nparts = parts_decl(ps, part, &size)) : !parse_int(ps, 1, UINT16_MAX, &size))
      return false;
    u8 a = axis_find(ps->p->sp, name);
    if (a && (temporal || axis_get(ps->p->sp, a)->temporal || axis_size(ps->p->sp, a) != size)) {
      diag(ps->c, E_NAME, where, "the axis %s exists already, with size %u", sym_str(ps->c, name),
           axis_size(ps->p->sp, a));
      return false;
    }
    if (*n == MESH_AXES) {
      diag(ps->c, E_LIMIT, where, "more than %d axes", MESH_AXES);
      return false;
    }
    if (!a && !(a = axis_add(ps->p->sp, name, (u32)size, temporal))) return false;
    if (nparts > 1) axis_in_parts(ps->p->sp, a, part, nparts);
    axis[(*n)++] = a;
  }
  return parse_expect(ps, ']');
}

// "ranks 8.." or "ranks {0, 3, 5}"
static bool ranks_decl(parser *ps, i64 *first, u32 *rank, u32 nranks) {
  if (!parse_take(ps, '{')) {
    if (!parse_int(ps, 0, INT32_MAX, first)) return false;
    if (ps->l.kind != TOK_RANGE) return parse_error(ps, "'..'");
    lex_next(&ps->l);
    return true;
  }
  for (u32 k = 0; k < nranks; k++) {
    i64 x;
    if ((k && !parse_expect(ps, ',')) || !parse_int(ps, 0, INT32_MAX, &x)) return false;
    rank[k] = (u32)x;
  }
  *first = -1;
  return parse_expect(ps, '}');
}

static bool mesh_decl(parser *ps) {
  u8 axis[MESH_AXES];
  u32 n;
  i64 first = 0, nranks = 1;
  loc where = lex_loc(&ps->l);
  if (ps->l.kind != TOK_AT || !lex_plain(ps->l.name, ps->l.len))
    return parse_error(ps, "the name of a mesh: @m");
  sym name = lex_sym(&ps->l);
  lex_next(&ps->l);
  if (mesh_find(ps->p->sp, name).i) {
    diag(ps->c, E_NAME, where, "the mesh @%s exists already", sym_str(ps->c, name));
    return false;
  }
  if (!axes_decl(ps, false, axis, &n)) return false;
  for (u32 k = 0; k < n && nranks <= RANKS_MAX; k++) nranks *= axis_size(ps->p->sp, axis[k]);
  if (nranks > RANKS_MAX) {
    diag(ps->c, E_LIMIT, where, "a mesh of more than %d ranks", RANKS_MAX);
    return false;
  }
  u32 *rank = NEWN(ps->tmp, u32, nranks);
  if (parse_word(ps, "ranks") && !ranks_decl(ps, &first, rank, (u32)nranks)) return false;
  return mesh_add(ps->p->sp, name, axis, n, first < 0 ? 0 : (u32)first, first < 0 ? rank : NULL).i != 0;
}

static bool alias_decl(parser *ps) {
  sym name;
  u8 axis[MESH_AXES];
  u32 n;
  loc where = lex_loc(&ps->l);
  if (!parse_name(ps, "a name", &name) || !parse_expect(ps, '=') || !parse_expect(ps, '[')) return false;
  if (!parse_axes(ps, axis, MESH_AXES, &n) || !parse_expect(ps, ']')) return false;
  u8 atom[AXES_MAX];
  if (axis_expand(ps->p->sp, name, atom, COUNT_OF(atom))) {
    diag(ps->c, E_NAME, where, "%s is already an axis", sym_str(ps->c, name));
    return false;
  }
  return axis_alias(ps->p->sp, name, axis, n);
}

static bool stream_decl(parser *ps) {
  do {
    sym name;
    loc where = lex_loc(&ps->l);
    if (!parse_name(ps, "the name of a stream", &name)) return false;
    if (ps->p->streams.n == 255) {
      diag(ps->c, E_LIMIT, where, "more than 254 streams");
      return false;
    }
    u32 n = ps->p->streams.n;
    if (stream_of(ps->p, name).i == n) continue;
    diag(ps->c, E_NAME, where, "the stream %s exists already", sym_str(ps->c, name));
    return false;
  } while (parse_take(ps, ','));
  return true;
}

// ---- heads ------------------------------------------------------------------------------------------
static bool param_decl(reader *r, func f, head *h, hmap *seen) {
  static const char *const word[] = {"input", "weight", "state", "label", "const"};
  parser *ps = &r->ps;
  type t;
  role rl = ROLE_INPUT;
  u32 data = 0;
  loc where = lex_loc(&ps->l);
  if (ps->l.kind != TOK_VALUE) return parse_error(ps, "a parameter: %name: type");
  u64 key = value_key(ps);
  if (key && hmap_get(seen, key)) {
    diag(ps->c, E_NAME, where, "two parameters are called %%%s", sym_str(ps->c, key_sym(key)));
    return false;
  }
  if (key) hmap_add(ps->tmp, seen, key, 1);
  lex_next(&ps->l);
  if (!parse_expect(ps, ':') || !parse_type(ps, h->dflt, &t)) return false;
  for (u32 k = 0; k < COUNT_OF(word); k++)
    if (parse_word(ps, word[k])) {
      rl = (role)k;
      break;
    }
  const bool host = parse_word(ps, "host");
  if (parse_is(ps, '=') && type_get(ps->p, t)->tuple) {
    diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "a tuple has no elements of its own");
    return false;
  }
  shape s = type_get(ps->p, t)->s;
  if (parse_take(ps, '=') && !parse_data(ps, &s, &data)) return false;
  value v = func_param(ps->p, f, t, key_name(key), rl);
  func_get(ps->p, f)->params.v[v - 1].data = data, func_get(ps->p, f)->params.v[v - 1].host = host;
  *vec_push(ps->tmp, &h->params) = key;
  return true;
}

// From the opening to behind the closing brace, whatever is between.
static bool skip_body(parser *ps) {
  const char *s = ps->l.start, *end = ps->l.end;
  for (u32 depth = 0; s < end; s++) {
    if (*s == '#') {
      while (s + 1 < end && s[1] != '\n') s++;
    } else if (*s == '"') {
      while (++s < end && *s != '"' && *s != '\n') s += *s == '\\' && s + 1 < end;
    } else if (*s == '{') {
      depth++;
    } else if (*s == '}' && --depth == 0) {
      lex_from(&ps->l, s + 1);
      return true;
    }
  }
  diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "the function has no end: its '}' is missing");
  lex_from(&ps->l, end);
  return false;
}

static bool func_decl(reader *r, bool is_main) {
  parser *ps = &r->ps;
  hmap seen = {0};
  loc where = lex_loc(&ps->l);
  if (ps->l.kind != TOK_AT || (ps->l.len == 1 && *ps->l.name == '.'))
    return parse_error(ps, "the name of a function: @f");
  sym name = lex_sym(&ps->l);
  func same = func_find(ps->p, name);
  if (same.i || (is_main && ps->p->main.i)) {
    if (!same.i) same = ps->p->main;
    diag(ps->c, E_NAME, where, same.i && is_main ? "a second main function" : "two functions are called @%s",
         sym_str(ps->c, name));
    diag_note(ps->c, func_get(ps->p, same)->where, "here is the other");
    return false;
  }
  func f = func_new(ps->p, name, where);
  if (is_main) ps->p->main = f;
  *vec_push(ps->tmp, &r->heads) = (head){0};
  head *h = &r->heads.v[f.i - 1];
  lex_next(&ps->l);
  if (parse_word(ps, "on") && !parse_group(ps, &h->dflt)) return false;
  if (!parse_expect(ps, '(')) return false;
  for (bool more = !parse_is(ps, ')'); more; more = parse_take(ps, ','))
    if (!param_decl(r, f, h, &seen)) return false;
  if (!parse_expect(ps, ')')) return false;
  if (ps->l.kind != TOK_ARROW) return parse_error(ps, "'-> (types)'");
  lex_next(&ps->l);
  if (!parse_expect(ps, '(')) return false;
  for (bool more = !parse_is(ps, ')'); more; more = parse_take(ps, ','))
    if (!parse_type(ps, h->dflt, vec_push(ps->tmp, &h->rets))) return false;
  if (!parse_expect(ps, ')')) return false;
  if (parse_word(ps, "loc") && !parse_loc(ps, &func_get(ps->p, f)->where)) return false;
  if (!parse_is(ps, '{')) return parse_error(ps, "'{'");
  lexer body = ps->l;
  if (!skip_body(ps)) return false;
  h->body = body;
  return true;
}

static const char *const keyword[] = {"source", "axis", "time", "mesh",    "alias",  "stream",
                                      "func",   "main", "data", "default", "config", "replicas"};

static bool statement(reader *r) {
  parser *ps = &r->ps;
  u8 axis[MESH_AXES];
  u32 n, k = 0;
  while (k < COUNT_OF(keyword) && !parse_word(ps, keyword[k])) k++;
  switch (k) {
  case 0:
    if (ps->l.kind != TOK_STRING) return parse_error(ps, "the name of a file in quotes");
    ps->source = lex_sym(&ps->l);
    lex_next(&ps->l);
    return true;
  case 1: return axes_decl(ps, false, axis, &n);
  case 2: return axes_decl(ps, true, axis, &n);
  case 3: return mesh_decl(ps);
  case 4: return alias_decl(ps);
  case 5: return stream_decl(ps);
  case 6: return func_decl(r, false);
  case 7: return func_decl(r, true);
  case 8: return parse_blob(ps);
  case 9: return parse_default(ps);
  case 10: return parse_settings(ps);
  case 11:
    if (!ps->p->replicas.how) return parse_shares(ps, &ps->p->replicas);
    diag(ps->c, E_NAME, lex_loc(&ps->l), "a second line of replicas");
    return false;
  default: return parse_error(ps, "a declaration or a function");
  }
}

static void skip_line(parser *ps) {
  const char *s = ps->l.kind == TOK_END ? ps->l.end : memchr(ps->l.at, '\n', (size_t)(ps->l.end - ps->l.at));
  lex_from(&ps->l, s ? s : ps->l.end);
}

static bool at_statement(const parser *ps) {
  for (u32 k = 0; k < COUNT_OF(keyword); k++)
    if (ps->l.first && parse_is_word(ps, keyword[k])) return true;
  return ps->l.kind == TOK_END;
}

// ---- instructions -----------------------------------------------------------------------------------
static bool define(reader *r, u64 key, value v, loc where) {
  parser *ps = &r->ps;
  if (!key) return true;
  value old = hmap_get(&r->values, key);
  if (!old) {
    hmap_add(ps->tmp, &r->values, key, v);
    return true;
  }
  if (v == SPOILT || old == SPOILT) return true;
  const func_info *f = func_get(ps->p, r->f);
  u32 def = f->values.v[old].def;
  diag(ps->c, E_NAME, where, "%%%s is defined twice", sym_str(ps->c, key_sym(key)));
  diag_note(ps->c, def ? f->body.v[def - 1].where : f->where, "here first");
  return false;
}

// One operand: *v is 0 when it is spoilt.
static bool operand(reader *r, value *v) {
  parser *ps = &r->ps;
  if (ps->l.kind != TOK_VALUE) return parse_error(ps, "a value");
  u64 key = value_key(ps);
  *v = key ? hmap_get(&r->values, key) : 0;
  if (!*v) {
    diag(ps->c, E_NAME, lex_loc(&ps->l), "%%%s is not defined here",
         key ? sym_str(ps->c, key_sym(key)) : "_");
    return false;
  }
  if (*v == SPOILT) {
    r->spoilt = true;
    *v = 0;
  }
  lex_next(&ps->l);
  return true;
}

static bool at_value(const parser *ps) {
  return ps->l.kind == TOK_VALUE || (parse_is(ps, '!') && *ps->l.at == '%');
}

static bool operands(reader *r, u32 mark) {
  do {
    value v = 0;
    u32 donated = parse_take(&r->ps, '!') ? OPD_DONATED : 0;
    if (!operand(r, &v)) return false;
    *vec_push(r->ps.tmp, &r->opds) = v | mark | donated;
  } while (parse_take(&r->ps, ','));
  return true;
}

static bool callee(reader *r, func *out) {
  parser *ps = &r->ps;
  if (ps->l.kind != TOK_AT) return parse_error(ps, "a function: @f");
  *out = func_find(ps->p, lex_sym(&ps->l));
  if (!out->i) {
    diag(ps->c, E_NAME, lex_loc(&ps->l), "unknown function @%s", sym_str(ps->c, lex_sym(&ps->l)));
    return false;
  }
  lex_next(&ps->l);
  if (!parse_expect(ps, '(')) return false;
  if (at_value(ps) && !operands(r, 0)) return false;
  return parse_expect(ps, ')');
}

// "@mb=3": the coordinate of a temporal axis.
static bool coordinate(parser *ps, u32 *point) {
  sym name = lex_sym(&ps->l);
  u8 axis = axis_find(ps->p->sp, name);
  i64 at;
  if (!axis || !axis_get(ps->p->sp, axis)->temporal) {
    diag(ps->c, E_NAME, lex_loc(&ps->l), "unknown temporal axis '%s'", sym_str(ps->c, name));
    return false;
  }
  lex_next(&ps->l);
  if (!parse_expect(ps, '=') || !parse_int(ps, 0, axis_size(ps->p->sp, axis) - 1, &at)) return false;
  *point = point_with(ps->p, *point, axis, (u16)at);
  return true;
}

static bool stream_mark(parser *ps, u8 *strm) {
  sym name;
  loc where = lex_loc(&ps->l);
  if (!parse_name(ps, "a stream", &name)) return false;
  for (u32 k = 0; k < ps->p->streams.n; k++)
    if (ps->p->streams.v[k].i == name.i) {
      *strm = (u8)k;
      return true;
    }
  diag(ps->c, E_NAME, where, "unknown stream '%s'", sym_str(ps->c, name));
  diag_hint(ps->c, "declare it: stream %s", sym_str(ps->c, name));
  return false;
}

// Group, coordinates, stream, flags, origin: in any order.
static bool marks(parser *ps, builder *b) {
  static const char *const flag[] = {"backward", "recompute", "update", "plan", "host"};
  for (;;) {
    i64 n;
    u32 k = 0;
    if (ps->l.kind == TOK_AT) {
      if (*ps->l.at == '=' ? !coordinate(ps, &b->coord) : !parse_group(ps, &b->g)) return false;
    } else if (parse_take(ps, '!')) {
      if (!stream_mark(ps, &b->strm)) return false;
    } else if (parse_take(ps, '^')) {
      if (!parse_int(ps, 1, UINT32_MAX, &n)) return false;
      b->origin = (u32)n;
      ps->p->norigins = MAX(ps->p->norigins, b->origin);
    } else {
      while (k < COUNT_OF(flag) && !parse_word(ps, flag[k])) k++;
      if (k == COUNT_OF(flag)) return true;
      b->flags |= (u8)(1u << k);
    }
  }
}

static bool result_types(reader *r, group dflt) {
  parser *ps = &r->ps;
  loc where = lex_loc(&ps->l);
  do {
    if (!parse_type(ps, dflt, vec_push(ps->tmp, &r->types))) return false;
  } while (parse_take(ps, ','));
  if (r->types.n == r->results.n) return true;
  diag(ps->c, E_ARITY, where, "%u types for %u results", r->types.n, r->results.n);
  return false;
}

// Behind the results and '='.
static bool instruction(reader *r) {
  parser *ps = &r->ps;
  builder b = builder_at(ps->p, r->f);
  attr at[A_COUNT];
  u32 nat = 0;
  func to = {0};
  b.g = r->in->dflt;
  b.scope = r->open.n ? r->open.v[r->open.n - 1] : 0;
  b.where = lex_loc(&ps->l);
  opcode op = ps->l.kind == TOK_NAME ? op_named(ps->c, ps->l.name, ps->l.len) : OP_none;
  if (op == OP_none) return ps->l.kind == TOK_NAME ? unknown_op(ps) : parse_error(ps, "an operator");
  lex_next(&ps->l);
  if (op == OP_call ? !callee(r, &to) : at_value(ps) && !operands(r, 0)) return false;
  u32 nopd = r->opds.n;
  if (parse_word(ps, "after") && !operands(r, OPD_AFTER)) return false;
  if (parse_is(ps, '{') && !parse_attrs(ps, at, &nat)) return false;
  for (u32 k = 0; k < nat; k++)
    if (at[k].key == A_over && parse_is_word(ps, "over")) return parse_error(ps, "the axes once");
  if (parse_word(ps, "over")) {
    u8 *axis = NEWN(ps->tmp, u8, MESH_AXES);
    u32 n;
    if (!parse_axes(ps, axis, MESH_AXES, &n)) return false;
    at[nat++] = attr_x(A_over, axis, n);
  }
  if (!marks(ps, &b)) return false;
  bool typed = parse_take(ps, ':');
  if (typed && !result_types(r, b.g)) return false;
  loc node = b.where;
  if (parse_word(ps, "loc") && !parse_loc(ps, &node)) return false;
  if (!ps->l.first && ps->l.kind != TOK_END) return parse_error(ps, "the end of the instruction");
  if (r->spoilt) return false;

  attrset as = attrs_of(ps->p, at, nat);
  const head *h = to.i ? &r->heads.v[to.i - 1] : NULL;
  u32 nres = r->results.n;
  if (!typed && nres) {
    if (h && h->body.at == NULL) return false; // the callee's head is bad: that has been said
    type *opd = NEWN(ps->tmp, type, nopd);
    for (u32 k = 0; k < nopd; k++) opd[k] = val(func_get(ps->p, r->f), r->opds.v[k] & OPD_VALUE)->ty;
    application x = {op, as, nopd, b.g, h ? h->rets.v : NULL, h ? h->rets.n : 0, b.where};
    if (!infer_results(ps->p, ps->tmp, &x, opd, nres, vec_push_n(ps->tmp, &r->types, nres))) return false;
  }
  loc defined = b.where;
  b.where = node;
  u32 index = emit(&b, op, as, r->opds.v, r->opds.n, r->types.v, nres);
  func_info *f = func_get(ps->p, r->f);
  f->body.v[index - 1].callee = to;
  for (u32 k = 0; k < nres; k++) {
    value v = f->body.v[index - 1].res + k;
    if (!define(r, r->results.v[k], v, defined)) return false;
    f->values.v[v].name = key_name(r->results.v[k]);
  }
  return true;
}

static bool line(reader *r) {
  parser *ps = &r->ps;
  r->spoilt = false;
  r->results.n = r->opds.n = r->types.n = 0;
  if (ps->l.kind == TOK_VALUE) {
    do {
      if (ps->l.kind != TOK_VALUE) return parse_error(ps, "a value");
      *vec_push(ps->tmp, &r->results) = value_key(ps);
      lex_next(&ps->l);
    } while (parse_take(ps, ','));
    if (!parse_expect(ps, '=')) return false;
  }
  return instruction(r);
}

// ---- scopes -----------------------------------------------------------------------------------------
// An operator may have the same name; then a value comes next.
static bool at_scope(parser *ps, scope_kind *kind) {
  scope_kind k = SCOPE_default + 1;
  while (k < SCOPE_KINDS && !parse_is_word(ps, scope_row_of(k)->word)) k++;
  *kind = k;
  if (k == SCOPE_KINDS) return false;
  const char *s = ps->l.at + strspn(ps->l.at, " \t");
  return *s != '%' && *s != '!';
}

static void open_scope(reader *r, scope_kind kind) {
  parser *ps = &r->ps;
  const u32 outer = r->open.n ? r->open.v[r->open.n - 1] : 0;
  scope_info s = {.parent = outer, .where = lex_loc(&ps->l), .kind = kind};
  lex_next(&ps->l);
  const bool ok = parse_scope(ps, &s);
  *vec_push(ps->tmp, &r->open) = ok ? scope_add(ps->p, &s) : outer;
  if (!ok) skip_line(ps);
}

// At its end. What stands in it has its number, or one of a scope inside.
static void close_scope(reader *r) {
  parser *ps = &r->ps;
  const u32 id = r->open.v[--r->open.n];
  if (ps->p->scopes.v[id].where.i && scope_is_empty(ps->p, r->f, id))
    diag(ps->c, E_SYNTAX, ps->p->scopes.v[id].where, "a scope without instructions");
  lex_next(&ps->l);
}

static bool scopes_closed(reader *r) {
  if (!r->open.n) return true;
  parser *ps = &r->ps;
  diag(ps->c, E_SYNTAX, lex_loc(&ps->l), "a scope is open here: its '}' is missing");
  diag_note(ps->c, ps->p->scopes.v[r->open.v[r->open.n - 1]].where, "it begins here");
  return false;
}

static bool read_return(reader *r) {
  parser *ps = &r->ps;
  loc where = lex_loc(&ps->l);
  r->spoilt = false;
  r->opds.n = 0;
  bool more = parse_word(ps, "return") && !parse_is(ps, '}');
  for (; more; more = parse_take(ps, ','))
    if (!operand(r, vec_push(ps->tmp, &r->opds))) return false;
  if (r->spoilt) return false;
  if (r->opds.n != r->in->rets.n) {
    diag(ps->c, E_ARITY, where, "%u values are returned, the head declares %u", r->opds.n, r->in->rets.n);
    return false;
  }
  func_return(ps->p, r->f, r->opds.v, r->opds.n);
  for (u32 k = 0; k < r->opds.n; k++) {
    type got = val(func_get(ps->p, r->f), r->opds.v[k])->ty, want = r->in->rets.v[k];
    if (got.i == want.i) continue;
    diag(ps->c, E_SHAPE, where, "result %u is %s, the head declares %s", k + 1, ir_type_str(ps->p, got),
         ir_type_str(ps->p, want));
    return false;
  }
  return true;
}

// After a bad line, which began at `start`.
static void spoil(reader *r, const char *start) {
  for (u32 k = 0; k < r->results.n; k++) define(r, r->results.v[k], SPOILT, (loc){0});
  if (!r->ps.l.first || r->ps.l.start == start) skip_line(&r->ps);
}

static void read_body(reader *r, func f) {
  parser *ps = &r->ps;
  r->f = f;
  r->in = &r->heads.v[f.i - 1];
  r->values = (hmap){0};
  if (!r->in->body.at) return;
  ps->l = r->in->body;
  for (u32 k = 0; k < r->in->params.n; k++) define(r, r->in->params.v[k], k + 1, (loc){0});
  lex_next(&ps->l);
  r->open.n = 0;
  while ((r->open.n || !parse_is(ps, '}')) && !parse_is_word(ps, "return") && ps->l.kind != TOK_END &&
         !too_many(r)) {
    const char *start = ps->l.start;
    scope_kind kind;
    if (parse_is(ps, '}'))
      close_scope(r);
    else if (at_scope(ps, &kind))
      open_scope(r, kind);
    else if (line(r))
      continue;
    else
      spoil(r, start);
  }
  if (!too_many(r) && scopes_closed(r) && read_return(r)) parse_expect(ps, '}');
}

static void read_program(reader *r) {
  parser *ps = &r->ps;
  while (ps->l.kind != TOK_END && !too_many(r)) {
    if (statement(r)) continue;
    while (!at_statement(ps)) skip_line(ps);
  }
  for (u32 k = 0; k < ps->labels.n; k++)
    if (!ps->labels.v[k].defined)
      diag(ps->c, E_NAME, ps->labels.v[k].where, "$%u is not defined", ps->labels.v[k].number);
  for (u32 f = 1; f < ps->p->funcs.n && !too_many(r); f++) read_body(r, (func){f});
  if (!ps->p->main.i) ps->p->main = func_find(ps->p, sym_of(ps->c, "main"));
}

prog *ir_parse(ctx *c, sym file, const char *text, size_t n) {
  arena *tmp = arena_new();
  reader r = {.ps = {.c = c, .p = prog_new(c), .tmp = tmp, .source = file}, .errors = diag_errors(c)};
  lex_open(&r.ps.l, c, tmp, file, arena_strndup(tmp, text, n), n);
  read_program(&r);
  prog *p = r.ps.p;
  arena_free(tmp);
  if (diag_errors(c) == r.errors && ir_verify(p)) return p;
  assert(diag_errors(c) > r.errors);
  prog_free(p);
  return NULL;
}
