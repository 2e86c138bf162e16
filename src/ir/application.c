// application.c - one application of an operator from what a user types: shapes and attributes as text.
#include "ir/internal.h"
#include <errno.h>
#include <stdlib.h>

typedef struct {
  ctx *c;
  const char *text, *at; // text lives as long as the session: locations point into it
  sym file;
} shapes_reader;

static loc here(const shapes_reader *r, const char *at) {
  return loc_text(r->c, r->file, 1, (u32)(at - r->text) + 1, r->text);
}

static bool bad_shape(const shapes_reader *r, const char *at, const char *expected) {
  diag(r->c, E_USAGE, here(r, at), "expected %s", expected);
  diag_hint(r->c, "--shapes 4096x1024,i64:4096: operands with commas between, extents with x between; a type "
                  "before a colon; `scalar` has no extents");
  return false;
}

static void blanks(shapes_reader *r) { r->at += strspn(r->at, " \t\n"); }

// "i64:" before the extents.
static bool shape_type(shapes_reader *r, shape *s) {
  const size_t n = strcspn(r->at, ":,");
  if (r->at[n] != ':') return true;
  s->t = dtype_find(r->at, n);
  if (s->t == DT_NONE) {
    diag(r->c, E_DTYPE, here(r, r->at), "unknown element type '%.*s'", (int)n, r->at);
    diag_hint(r->c, "f16, bf16, f32, f64, i32, i64, bool, ...");
    return false;
  }
  r->at += n + 1;
  blanks(r);
  return true;
}

static bool extent(shapes_reader *r, shape *s, i64 *bytes) {
  const char *from = r->at;
  char *end;
  if (*from < '0' || *from > '9') return bad_shape(r, from, "an extent, an integer above 0");
  errno = 0;
  const long long n = strtoll(from, &end, 10);
  if (n < 1 && !errno) return bad_shape(r, from, "an extent, an integer above 0");
  if (errno || !mul_i64(*bytes, n, bytes) || *bytes > (i64)1 << 60) {
    diag(r->c, E_LIMIT, here(r, from), "a tensor of more than 2^60 bytes");
    return false;
  }
  if (s->nd == DIMS_MAX) {
    diag(r->c, E_LIMIT, here(r, from), "more than %d dimensions", DIMS_MAX);
    return false;
  }
  s->dim[s->nd++] = n;
  r->at = end;
  return true;
}

static bool one_shape(shapes_reader *r, shape *s) {
  if (!shape_type(r, s)) return false;
  i64 bytes = dtype_bytes(s->t);
  if (!strncmp(r->at, "scalar", 6)) {
    r->at += 6;
    return true;
  }
  do {
    if (*r->at == 'x') r->at++;
    if (!extent(r, s, &bytes)) return false;
  } while (*r->at == 'x');
  return true;
}

// Adds a parameter to f for every shape.
static bool read_shapes(shapes_reader *r, prog *p, func f, opcode op, dtype usual) {
  blanks(r);
  for (u32 k = 0; *r->at; k++) {
    shape s = {.t = op_operand_type(op, k, usual)};
    blanks(r);
    if (!one_shape(r, &s)) return false;
    blanks(r);
    func_param(p, f, type_tensor(p, &s, (layout){0}, (group){0}), (sym){0}, ROLE_INPUT);
    if (!*r->at) return true;
    if (*r->at != ',') return bad_shape(r, r->at, "',' or the end");
    r->at++;
    blanks(r);
    if (!*r->at) return bad_shape(r, r->at, "the shape of an operand");
  }
  return true;
}

bool ir_read_type(prog *p, sym file, const char *text, type *out) {
  arena *tmp = arena_new();
  parser ps = {.c = p->c, .p = p, .tmp = tmp, .source = file};
  const char *kept = sym_str(p->c, sym_of(p->c, text));
  lex_open(&ps.l, p->c, tmp, file, kept, strlen(kept));
  const bool ok = parse_type(&ps, (group){0}, out) && (ps.l.kind == TOK_END || parse_error(&ps, "the end"));
  arena_free(tmp);
  return ok;
}

bool ir_read_attributes(prog *p, arena *tmp, sym file, const char *text, attr *v, u32 *n) {
  parser ps = {.c = p->c, .p = p, .tmp = tmp, .source = file};
  const char *kept = sym_str(p->c, sym_of(p->c, text));
  *n = 0;
  lex_open(&ps.l, p->c, tmp, file, kept, strlen(kept));
  if (ps.l.kind == TOK_END) return true;
  return parse_attr_list(&ps, v, n) && (ps.l.kind == TOK_END || parse_error(&ps, "',' or the end"));
}

static bool build_main(prog *p, arena *tmp, opcode op, const application_text *t) {
  ctx *c = p->c;
  const char *shapes = sym_str(c, sym_of(c, t->shapes)), *attributes = sym_str(c, sym_of(c, t->attributes));
  shapes_reader r = {.c = c, .text = shapes, .at = shapes, .file = sym_of(c, "--shapes")};
  attr at[A_COUNT];
  u32 nat;
  p->main = func_new(p, sym_of(c, "main"), (loc){0});
  if (!read_shapes(&r, p, p->main, op, t->usual)) return false;
  if (!ir_read_attributes(p, tmp, sym_of(c, "--attributes"), attributes, at, &nat)) return false;
  const u32 n = func_get(p, p->main)->nparams;
  value *opd = NEWN(tmp, value, n + 1);
  for (u32 k = 0; k < n; k++) opd[k] = k + 1;
  builder b = builder_at(p, p->main);
  const op_row *row = op_row_of(op);
  const u32 from = diag_count(c);
  const value first = build_n(&b, op, opd, n, at, nat, row->flags & OPF_MANY_RES ? 0 : row->res);
  if (b.failed) {
    const bool attribute = nat && diag_get(c, from).id == E_ATTR;
    diag_locate(c, from,
                attribute ? loc_text(c, sym_of(c, "--attributes"), 1, 1, attributes) : here(&r, shapes));
    return false;
  }
  func_get(p, p->main)->body.v[0].where = here(&r, shapes);
  const u32 nres = func_get(p, p->main)->body.v[0].nres;
  value *ret = NEWN(tmp, value, nres + 1);
  for (u32 k = 0; k < nres; k++) ret[k] = first + k;
  func_return(p, p->main, ret, nres);
  return true;
}

prog *ir_application(ctx *c, opcode op, const application_text *t) {
  prog *p = prog_new(c);
  arena *tmp = arena_new();
  axis_add(p->sp, sym_of(c, "a"), 2, false);
  const bool ok = build_main(p, tmp, op, t);
  const op_example e = op_example_of(tmp, op);
  if (!ok && !*t->attributes && *e.attributes && diag_get(c, diag_count(c) - 1).id == E_ATTR)
    diag_hint(c, "such as --attributes '%s', with --shapes %s", e.attributes, e.shapes);
  arena_free(tmp);
  if (ok) return p;
  prog_free(p);
  return NULL;
}
