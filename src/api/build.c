// build.c - programs behind heddle.h that are built instruction by instruction.
//
// Idea: a value that users hold is a row of a table, so that a parameter may come late: parameters are the first
// values of a function, and those behind it move up.
#include "api/internal.h"

typedef struct {
  func f;
  value v;
} held_value;
struct heddle_builder {
  object o;
  prog *p;
  const char *name;
  builder b;  // its function is the one that is open
  u32 made;   // instructions, for places
  bool ended; // its program has been made
  VEC(held_value) held;
};

static void builder_fini(object *o) { prog_free(((heddle_builder *)o)->p); }

static heddle_builder *open_builder(heddle_session *s, const char *name) {
  heddle_builder *b = object_new(s, sizeof *b, builder_fini);
  b->p = prog_new(s->c);
  b->name = arena_strdup(b->o.a, name && *name ? name : "model");
  b->p->main = func_new(b->p, sym_of(s->c, "main"), (loc){0});
  b->b = builder_at(b->p, b->p->main);
  return b;
}
heddle_builder *heddle_builder_new(heddle_session *s, const char *name) {
  API_RETURN(heddle_builder *, NULL, s, open_builder(s, name));
}
void heddle_builder_free(heddle_builder *b) { object_drop(b); }

// ---- failures -------------------------------------------------------------------------------------------
// "matmul.3": the third instruction.
static loc place(heddle_builder *b, const char *what) {
  ctx *c = b->p->c;
  return loc_node(c, sym_of(c, b->name), sym_fmt(c, "%s.%u", what, b->made + 1), (sym){0});
}
static sym file_of(const heddle_builder *b) { return sym_of(b->p->c, b->name); }

static bool fail(heddle_builder *b, diag_id id, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool fail(heddle_builder *b, diag_id id, const char *fmt, ...) {
  va_list ap;
  char text[512];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(b->p->c, id, b->b.where, "%s", text);
  b->b.failed = true;
  return false;
}

static bool going(heddle_builder *b, const char *what) {
  if (b->b.failed || b->ended) return false;
  b->b.where = place(b, what);
  return true;
}

static const char *func_name(const heddle_builder *b, func f) {
  return sym_str(b->p->c, func_get(b->p, f)->name);
}

// ---- values ---------------------------------------------------------------------------------------------
static heddle_value hold(heddle_builder *b, value v) {
  *vec_push(b->o.a, &b->held) = (held_value){b->b.f, v};
  return b->held.n;
}

static bool values_of(heddle_builder *b, arena *tmp, uint32_t n, const heddle_value *held, value **out) {
  *out = NEWN(tmp, value, n + 1);
  for (u32 k = 0; k < n; k++) {
    if (!held[k] || held[k] > b->held.n)
      return fail(b, E_NAME, "operand %u is no value of this builder", k + 1);
    const held_value *h = &b->held.v[held[k] - 1];
    if (h->f.i != b->b.f.i)
      return fail(b, E_NAME, "operand %u is a value of @%s, and this is @%s", k + 1, func_name(b, h->f),
                  func_name(b, b->b.f));
    (*out)[k] = h->v;
  }
  return true;
}

// Room for one more parameter before what was made so far.
static void move_up(heddle_builder *b, func_info *f) {
  const u32 from = f->nparams;
  *vec_push(b->p->a, &f->values) = (value_info){0};
  memmove(f->values.v + from + 2, f->values.v + from + 1, (f->values.n - from - 2) * sizeof *f->values.v);
  for (u32 i = 0; i < f->body.n; i++) f->body.v[i].res += f->body.v[i].nres > 0;
  for (u32 k = 0; k < f->opds.n; k++) f->opds.v[k] += (f->opds.v[k] & OPD_VALUE) > from;
  for (u32 k = 0; k < b->held.n; k++) b->held.v[k].v += b->held.v[k].f.i == b->b.f.i && b->held.v[k].v > from;
}

static heddle_value parameter(heddle_builder *b, const char *role_name, const char *name, const char *text) {
  static const char *const word[] = {"input", "weight", "state", "label", "const"};
  prog *p = b->p;
  func_info *f = func_get(p, b->b.f);
  type t;
  u32 r = 0;
  while (role_name && r < COUNT_OF(word) && strcmp(word[r], role_name)) r++;
  if (r == COUNT_OF(word)) {
    fail(b, E_USAGE, "`%s` is no role of a parameter", role_name);
    diag_hint(p->c, "input, weight, state, label or const");
    return 0;
  }
  if (!ir_read_type(p, file_of(b), text, &t)) {
    b->b.failed = true;
    return 0;
  }
  for (value v = 1; v <= f->nparams; v++)
    if (name && val(f, v)->name.i && !strcmp(sym_str(p->c, val(f, v)->name), name)) {
      fail(b, E_NAME, "two parameters of @%s are called %%%s", func_name(b, b->b.f), name);
      return 0;
    }
  const sym called = name ? sym_of(p->c, name) : (sym){0};
  if (f->values.n == f->nparams + 1) return hold(b, func_param(p, b->b.f, t, called, (role)r));
  move_up(b, f);
  f->values.v[f->nparams + 1] = (value_info){.ty = t, .name = called};
  *vec_push(p->a, &f->params) = (param_info){.r = (role)r};
  return hold(b, ++f->nparams);
}
heddle_value heddle_builder_parameter(heddle_builder *b, const char *role_name, const char *name,
                                      const char *text) {
  if (!b) return 0;
  API_RETURN(heddle_value, 0, b->o.s, going(b, "parameter") ? parameter(b, role_name, name, text) : 0);
}

static bool name_value(heddle_builder *b, heddle_value v, const char *name) {
  value *x;
  if (!values_of(b, b->o.a, 1, &v, &x)) return false;
  value_name(b->p, b->b.f, *x, sym_of(b->p->c, name));
  return true;
}
bool heddle_builder_name(heddle_builder *b, heddle_value v, const char *name) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "name") ? name_value(b, v, name) : false);
}

// ---- instructions ---------------------------------------------------------------------------------------
static heddle_value apply(heddle_builder *b, opcode op, const char *attributes, uint32_t n,
                          const heddle_value *operands) {
  const op_row *row = op_row_of(op);
  attr at[A_COUNT];
  u32 nat = 0;
  value *opd;
  if (row->flags & OPF_COMM || op == OP_call || op == OP_opaque || op == OP_join || op == OP_part ||
      op == OP_copy) {
    fail(b, E_USAGE, "`%s` is for distributed programs, calls and imports; a builder makes a model",
         row->name);
    return 0;
  }
  if (attributes && !ir_read_attributes(b->p, b->o.a, file_of(b), attributes, at, &nat)) {
    b->b.failed = true;
    return 0;
  }
  if (!values_of(b, b->o.a, n, operands, &opd)) return 0;
  const value v = build_n(&b->b, op, opd, n, at, nat, row->flags & OPF_MANY_RES ? 0 : row->res);
  b->made++;
  return b->b.failed ? 0 : hold(b, v);
}
static heddle_value apply_named(heddle_builder *b, const char *name, const char *attributes, uint32_t n,
                                const heddle_value *operands) {
  const opcode op = operator_find(b->o.s, name);
  b->b.failed |= op == OP_none;
  return op == OP_none ? 0 : apply(b, op, attributes, n, operands);
}
heddle_value heddle_builder_op(heddle_builder *b, const char *op, const char *attributes, uint32_t n,
                               const heddle_value *operands) {
  if (!b) return 0;
  API_RETURN(heddle_value, 0, b->o.s, going(b, op) ? apply_named(b, op, attributes, n, operands) : 0);
}

static heddle_value result_of(heddle_builder *b, heddle_value v, uint32_t index) {
  value *x;
  if (!values_of(b, b->o.a, 1, &v, &x)) return 0;
  const func_info *f = func_get(b->p, b->b.f);
  const u32 def = val(f, *x)->def;
  if (def && f->body.v[def - 1].res == *x && index < f->body.v[def - 1].nres) return hold(b, *x + index);
  fail(b, E_NAME, "the value is not the first result of an instruction that has %u", index + 1);
  return 0;
}
heddle_value heddle_builder_result(heddle_builder *b, heddle_value v, uint32_t index) {
  if (!b) return 0;
  API_RETURN(heddle_value, 0, b->o.s, going(b, "result") ? result_of(b, v, index) : 0);
}

// ---- functions ------------------------------------------------------------------------------------------
static bool open_function(heddle_builder *b, const char *name) {
  const sym s = sym_of(b->p->c, name);
  if (b->b.f.i != b->p->main.i)
    return fail(b, E_USAGE, "@%s is still open: heddle_builder_return ends it", func_name(b, b->b.f));
  if (b->b.scope)
    return fail(b, E_USAGE, "a function cannot begin inside a scope: heddle_builder_end ends that");
  if (func_find(b->p, s).i) return fail(b, E_NAME, "two functions are called @%s", name);
  b->b.f = func_new(b->p, s, b->b.where);
  return true;
}
bool heddle_builder_function(heddle_builder *b, const char *name) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, name) ? open_function(b, name) : false);
}

static bool end_function(heddle_builder *b, uint32_t n, const heddle_value *results) {
  value *v;
  if (b->b.scope) return fail(b, E_USAGE, "a scope is still open: heddle_builder_end ends it");
  if (!values_of(b, b->o.a, n, results, &v)) return false;
  func_return(b->p, b->b.f, v, n);
  b->b.f = b->p->main;
  return true;
}
static bool end_block(heddle_builder *b, uint32_t n, const heddle_value *results) {
  if (b->b.f.i == b->p->main.i)
    return fail(b, E_USAGE, "no function is open; heddle_builder_program says what the model returns");
  return end_function(b, n, results);
}
bool heddle_builder_return(heddle_builder *b, uint32_t n, const heddle_value *results) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "return") ? end_block(b, n, results) : false);
}

static heddle_value call(heddle_builder *b, const char *name, uint32_t n, const heddle_value *operands) {
  const func f = func_find(b->p, sym_of(b->p->c, name));
  value *opd;
  if (!f.i || f.i == b->p->main.i || f.i == b->b.f.i) {
    fail(b, E_NAME, f.i ? "@%s cannot be called here" : "unknown function @%s", name);
    return 0;
  }
  if (!values_of(b, b->o.a, n, operands, &opd)) return 0;
  if (!func_get(b->p, f)->rets.n) {
    fail(b, E_ARITY, "@%s returns nothing", name);
    return 0;
  }
  const value v = build_call(&b->b, f, opd, n);
  b->made++;
  return b->b.failed ? 0 : hold(b, v);
}
heddle_value heddle_builder_call(heddle_builder *b, const char *function, uint32_t n,
                                 const heddle_value *operands) {
  if (!b) return 0;
  API_RETURN(heddle_value, 0, b->o.s, going(b, function) ? call(b, function, n, operands) : 0);
}

// ---- annotations ----------------------------------------------------------------------------------------
static bool is_count(heddle_builder *b, uint32_t devices) {
  return devices <= UINT16_MAX || devices == HEDDLE_ALL ||
         fail(b, E_LIMIT, "%u devices; at most %u, or HEDDLE_ALL", devices, UINT16_MAX);
}

static bool open_scope(heddle_builder *b, scope_kind kind, uint32_t devices, const char *name) {
  prog *p = b->p;
  if (!is_count(b, devices)) return false;
  b->b.scope = scope_add(p, &(scope_info){.parent = b->b.scope,
                                          .kind = kind,
                                          .count = devices,
                                          .name = name ? sym_of(p->c, name) : (sym){0},
                                          .where = b->b.where});
  return true;
}
bool heddle_builder_replicate(heddle_builder *b, uint32_t devices, const char *name) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s,
             going(b, "replicate") ? open_scope(b, SCOPE_replicate, devices, name) : false);
}
bool heddle_builder_split(heddle_builder *b, uint32_t devices, const char *name) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "split") ? open_scope(b, SCOPE_split, devices, name) : false);
}

static bool end_scope(heddle_builder *b) {
  const u32 id = b->b.scope;
  if (!id) return fail(b, E_USAGE, "no scope is open");
  if (scope_is_empty(b->p, b->b.f, id)) return fail(b, E_ANNOTATE, "a scope without instructions");
  b->b.scope = b->p->scopes.v[id].parent;
  return true;
}
bool heddle_builder_end(heddle_builder *b) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "end") ? end_scope(b) : false);
}

static bool set_shares(heddle_builder *b, uint32_t n, const uint32_t *parts) {
  prog *p = b->p;
  shares_info *s = b->b.scope ? &p->scopes.v[b->b.scope].shares : &p->replicas;
  for (u32 k = 0; k < n; k++)
    if (!parts[k] || parts[k] > UINT16_MAX)
      return fail(b, E_USAGE, "a share is 1 to %u; got %u", UINT16_MAX, parts[k]);
  *s = (shares_info){.how = n ? SHARES_PARTS : SHARES_EQUAL, .n = n, .where = b->b.where};
  if (n) s->part = arena_dup(p->a, parts, n * sizeof *parts);
  return true;
}
bool heddle_builder_shares(heddle_builder *b, uint32_t n, const uint32_t *parts) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "shares") ? set_shares(b, n, parts) : false);
}

static bool set_default(heddle_builder *b, uint32_t devices) {
  if (!is_count(b, devices)) return false;
  b->p->scopes.v[0] = (scope_info){.count = devices, .where = b->b.where};
  return b->p->has_default = true;
}
bool heddle_builder_default(heddle_builder *b, uint32_t devices) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "default") ? set_default(b, devices) : false);
}

static bool add_setting(heddle_builder *b, const char *key, const char *text) {
  prog *p = b->p;
  *vec_push(p->a, &p->settings) = (setting_info){sym_of(p->c, key), sym_of(p->c, text), b->b.where};
  return true;
}
bool heddle_builder_setting(heddle_builder *b, const char *key, const char *text) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, going(b, "setting") ? add_setting(b, key, text) : false);
}

// ---- the program ----------------------------------------------------------------------------------------
static heddle_program *finish(heddle_builder *b, uint32_t n, const heddle_value *results) {
  if (b->b.f.i != b->p->main.i) {
    fail(b, E_USAGE, "@%s is still open: heddle_builder_return ends it", func_name(b, b->b.f));
    return NULL;
  }
  if (!end_function(b, n, results)) return NULL;
  if (!ir_verify(b->p)) {
    b->b.failed = true;
    return NULL;
  }
  heddle_program *p = program_wrap(b->o.s, b->p, b->name);
  b->p = NULL, b->ended = true;
  return p;
}
heddle_program *heddle_builder_program(heddle_builder *b, uint32_t n, const heddle_value *results) {
  if (!b) return NULL;
  API_RETURN(heddle_program *, NULL, b->o.s, going(b, "program") ? finish(b, n, results) : NULL);
}
