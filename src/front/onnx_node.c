// onnx_node.c - one node of an ONNX graph: the names it reads, its attributes, the row of onnx.def that maps
// it, and what the maps are written with. Not the graph around it (onnx_import.c), not the operators
// (onnx_math.c and others).
//
// Idea: a node's map writes native instructions on mixed values (infer/concrete.c), so shape arithmetic
// evaluates itself. A node that cannot be mapped leaves its outputs unknown; what depends on them is passed
// over silently, so one run lists every reason.
#include "front/onnx.h"
#include "kernel/kernel.h"

enum { SCOPES_MAX = 64, NODES_MAX = 4000000 };

static const onnx_row rows[] = {
#define ONNX(domain, name, since, map, arg) {domain, #name, since, map_##map, arg},
#include "front/onnx.def"
#undef ONNX
};

// ---- names ---------------------------------------------------------------------------------------------
static u64 key_of(const scope *s, sym name) { return hash_u64((u64)s->id << 32 | name.i, 1); }

u32 onnx_lookup(const imp *I, const scope *s, sym name) { // 0: not defined
  for (u32 v; s; s = s->up)
    if ((v = hmap_get(&I->name, key_of(s, name)))) return v;
  return 0;
}

loc onnx_loc(imp *I, sym name) { return loc_node(I->f.c, I->f.file, name, (sym){0}); }

loc onnx_node_loc(imp *I, const onnx_node *n, const char *part) {
  const char *graph = sym_str(I->f.c, I->m.graph.name), *slash = *graph ? "/" : "",
             *op = sym_str(I->f.c, n->op);
  int len = (int)MIN(n->name.end - n->name.at, 500);
  sym path =
      len ? sym_fmt(I->f.c, "%s%s%.*s", graph, slash, len, (const char *)n->name.at)
          : sym_fmt(I->f.c, "%s%s%s -> %s", graph, slash, op, n->out.n ? sym_str(I->f.c, n->out.v[0]) : "");
  return loc_node(I->f.c, I->f.file, path, sym_of(I->f.c, part));
}

bool onnx_define(imp *I, const scope *s, sym name, mixed x, const onnx_node *by) {
  u64 key = key_of(s, name);
  if (hmap_get(&I->name, key)) {
    diag(I->f.c, E_ONNX_MODEL, by ? onnx_node_loc(I, by, "") : onnx_loc(I, name), "`%s` is defined twice",
         sym_str(I->f.c, name));
    return false;
  }
  hmap_add(I->a, &I->name, key, x ? x + 1 : UNKNOWN);
  return true;
}

u8 *onnx_mark(imp *I, sym name) {
  if (name.i >= I->mark.n) {
    u32 had = I->mark.n;
    u8 *more = vec_push_n(I->a, &I->mark, name.i + 1 - had);
    memset(more, 0, name.i + 1 - had);
  }
  return &I->mark.v[name.i];
}

// The kernels read elements in place, so they must lie as their type demands; a file may put them anywhere.
mixed onnx_known(imp *I, const data_info *d) {
  shape s = {.t = d->t, .nd = d->nd};
  memcpy(s.dim, d->dim, sizeof s.dim);
  bool aligned = (uintptr_t)d->bytes % dtype_bytes(d->t) == 0;
  return mix_known(&I->x, &s, aligned ? d->bytes : arena_dup(I->a, d->bytes, (size_t)d->size));
}

// ---- what the maps call --------------------------------------------------------------------------------
static void at_node(node *n) {
  imp *I = n->I;
  if (I->at == n->n) return;
  I->x.b.where = onnx_node_loc(I, n->n, "");
  I->at = n->n;
}

const onnx_attr *at_find(const node *n, const char *name) {
  ctx *c = n->I->f.c;
  for (u32 i = 0; i < n->n->at.n; i++) {
    const onnx_attr *a = &n->n->at.v[i];
    if (strcmp(sym_str(c, a->name), name)) continue;
    if (!a->ref.i || !n->s->f) return a;
    const onnx_attr *given = at_find(n->s->caller, sym_str(c, a->ref));
    for (u32 k = 0; k < n->s->f->defaults.n && !given; k++)
      if (n->s->f->defaults.v[k].name.i == a->ref.i) given = &n->s->f->defaults.v[k];
    return given;
  }
  return NULL;
}

i64 at_i(const node *n, const char *name, i64 absent) {
  const onnx_attr *a = at_find(n, name);
  return a ? a->i : absent;
}

double at_f(const node *n, const char *name, double absent) {
  const onnx_attr *a = at_find(n, name);
  return a ? a->f : absent;
}

const char *at_s(const node *n, const char *name, const char *absent) {
  const onnx_attr *a = at_find(n, name);
  return a ? arena_strndup(n->I->a, (const char *)a->s.at, (size_t)(a->s.end - a->s.at)) : absent;
}

u32 at_ints(const node *n, const char *name, const i64 **v) {
  const onnx_attr *a = at_find(n, name);
  *v = a ? a->ints.v : NULL;
  return a ? a->ints.n : 0;
}

mixed opn(node *n, opcode op, const mixed *x, u32 nx, const attr *at, u32 nat) {
  return opn_res(n, op, x, nx, at, nat, op_row_of(op)->res);
}
mixed opn_res(node *n, opcode op, const mixed *x, u32 nx, const attr *at, u32 nat, u32 nres) {
  at_node(n);
  return mix_op(n->x, op, x, nx, at, nat, nres);
}
mixed op1(node *n, opcode op, mixed x) { return opn(n, op, &x, 1, NULL, 0); }
mixed op2(node *n, opcode op, mixed x, mixed y) { return opn(n, op, (mixed[]){x, y}, 2, NULL, 0); }
mixed op3(node *n, opcode op, mixed x, mixed y, mixed z) {
  return opn(n, op, (mixed[]){x, y, z}, 3, NULL, 0);
}
mixed op_at(node *n, opcode op, mixed x, attr a) { return opn(n, op, &x, 1, &a, 1); }

mixed tensor_of(node *n, const onnx_tensor *t) {
  data_info d;
  loc where = onnx_node_loc(n->I, n->n, "");
  if (!onnx_tensor_data(&n->I->f, &n->I->store, t, where, &d)) return 0;
  if (d.bytes) return onnx_known(n->I, &d);
  diag(n->I->f.c, E_ONNX_DATA, where,
       "the elements of this constant are needed but its external data is not there");
  return 0;
}

mixed full_like(node *n, mixed x, double v) { return x ? mix_full(n->x, shape_of(n, x)->t, v) : 0; }

mixed to_shape(node *n, mixed x, const i64 *dim, u32 nd) {
  if (x && shape_of(n, x)->nd == nd && (nd == 0 || memcmp(shape_of(n, x)->dim, dim, nd * sizeof *dim) == 0))
    return x;
  return op_at(n, OP_reshape, x, attr_v(A_shape, dim, nd));
}

mixed to_perm(node *n, mixed x, const i64 *perm, u32 nd) {
  bool same = true;
  for (u32 d = 0; d < nd; d++) same = same && perm[d] == d;
  return same ? x : op_at(n, OP_transpose, x, attr_v(A_perm, perm, nd));
}

mixed to_type(node *n, mixed x, dtype t) {
  return !x || shape_of(n, x)->t == t ? x : op_at(n, OP_cast, x, attr_t(A_dtype, t));
}

bool set(node *n, u32 k, mixed x) {
  if (k < n->nout) n->out[k] = x;
  return x != 0;
}

// An input of the model that value v hangs on: the first one found. 0: none.
static value source_of(imp *I, value v) {
  const func_info *f = func_get(I->x.b.p, I->x.b.f);
  bool *seen = ZNEWN(I->a, bool, f->values.n);
  VEC(value) stack = {0};
  *vec_push(I->a, &stack) = v;
  while (stack.n) {
    v = stack.v[--stack.n];
    u32 def = f->values.v[v].def;
    if (!def && f->params.v[v - 1].r == ROLE_INPUT) return v;
    const instr *i = def && !seen[v] ? &f->body.v[def - 1] : NULL;
    seen[v] = true;
    for (u32 k = 0; i && k < i->nopd; k++) *vec_push(I->a, &stack) = opd_of(f, i, k);
  }
  return 0;
}

bool known_in(node *n, u32 k) {
  char part[32];
  mixed x = in_of(n, k);
  if (!x) return wrong(n, "input %u is missing", k + 1);
  if (mix_get(n->x, x)->known) return true;
  snprintf(part, sizeof part, "input %u", k + 1);
  diag(n->I->f.c, E_DYNAMIC, onnx_node_loc(n->I, n->n, part),
       "%s: what it does depends on the elements of `%s`", sym_str(n->I->f.c, n->n->op),
       sym_str(n->I->f.c, n->n->in.v[k]));
  value from = source_of(n->I, mix_get(n->x, x)->v);
  sym name = from ? func_get(n->x->b.p, n->x->b.f)->values.v[from].name : (sym){0};
  if (from)
    diag_note(n->I->f.c, onnx_loc(n->I, name), "they come from the input `%s`", sym_str(n->I->f.c, name));
  return false;
}

i64 ints_in(node *n, u32 k, i64 *v, u32 cap) {
  mixed x = in_of(n, k);
  if (!known_in(n, k)) return -1;
  i64 count = shape_elems(shape_of(n, x));
  if (count > cap) {
    wrong(n, "input %u has %lld elements; at most %u make sense", k + 1, (long long)count, cap);
    return -1;
  }
  mix_read(n->x, x, v);
  return count;
}

bool floats_in(node *n, u32 k, double *v) {
  mixed x = in_of(n, k);
  if (mix_read_f64(n->x, x, v)) return true;
  prog *p = n->I->x.b.p;
  const func_info *f = func_get(p, p->main);
  value w = x ? mix_get(n->x, x)->v : 0;
  u32 data = w && w <= f->nparams ? f->params.v[w - 1].data : 0;
  if (!data) return known_in(n, k);
  const data_info *d = &p->data.v[data];
  ker_load_f64(v, d->t, arena_dup(n->I->a, d->bytes, (size_t)d->size), d->size / dtype_bytes(d->t));
  return true;
}

bool axis_of(node *n, i64 axis, u32 nd, u32 *out) {
  i64 d = axis < 0 ? axis + nd : axis;
  if (d < 0 || d >= MAX(nd, 1))
    return wrong(n, "axis %lld of a tensor with %u dimensions", (long long)axis, nd);
  *out = (u32)d;
  return true;
}

bool refuse(node *n, const char *fmt, ...) {
  imp *I = n->I;
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  I->nrefused++;
  for (u32 i = 0; i < I->refused.n; i++)
    if (I->refused.v[i].op.i == n->n->op.i && strcmp(I->refused.v[i].reason, text) == 0) {
      I->refused.v[i].count++;
      return false;
    }
  *vec_push(I->a, &I->refused) =
      (onnx_refusal){n->n->op, arena_strdup(I->a, text), 1, onnx_node_loc(I, n->n, "")};
  return false;
}

bool wrong(node *n, const char *fmt, ...) {
  char text[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(n->I->f.c, E_ONNX_MODEL, onnx_node_loc(n->I, n->n, ""), "%s: %s", sym_str(n->I->f.c, n->n->op), text);
  return false;
}

void effect(node *n, mixed x) {
  if (x && n->s->id == 1) *vec_push(n->I->a, &n->I->effects) = x;
}

void is_weight(node *n, u32 k, role r) {
  imp *I = n->I;
  func_info *f = func_get(I->x.b.p, I->x.b.p->main);
  value v = in_of(n, k) ? mix_get(n->x, in_of(n, k))->v : 0;
  if (!v || v > f->nparams) return;
  role had = f->params.v[v - 1].r;
  if (had == ROLE_WEIGHT && r == ROLE_CONST) f->params.v[v - 1].r = r;
  if (had != ROLE_INPUT) return;
  for (u32 i = 0; i < I->m.graph.in.n; i++) {
    const onnx_value *in = &I->m.graph.in.v[i];
    if (in->name.i != f->values.v[v].name.i) continue;
    for (u32 d = 0; d < in->dim.n && r == ROLE_WEIGHT; d++)
      if (in->dim.v[d].n <= 0) return;
  }
  f->params.v[v - 1].r = r;
}

// ---- one node ------------------------------------------------------------------------------------------
bool onnx_standard(ctx *c, sym domain) { return !domain.i || strcmp(sym_str(c, domain), "ai.onnx") == 0; }

i64 onnx_opset_in(ctx *c, const onnx_opset *v, u32 n, sym domain) {
  for (u32 i = 0; i < n; i++)
    if (v[i].domain.i == domain.i || (onnx_standard(c, v[i].domain) && onnx_standard(c, domain)))
      return v[i].version;
  return 0;
}

static i64 opset_of(const imp *I, const scope *s, sym domain) {
  while (s->up) s = s->up;
  i64 v = s->f ? onnx_opset_in(I->f.c, s->f->opset.v, s->f->opset.n, domain) : 0;
  return v ? v : onnx_opset_in(I->f.c, I->m.opset.v, I->m.opset.n, domain);
}

// The newest form of an operator that this opset has.
static const onnx_row *row_of(node *n) {
  imp *I = n->I;
  sym domain = onnx_standard(I->f.c, n->n->domain) ? (sym){0} : n->n->domain;
  const onnx_row *best = NULL;
  i64 oldest = INT64_MAX;
  u64 h = hash_u64((u64)domain.i << 32 | n->n->op.i, 2);
  for (u32 it = 0, i; hmap_next(&I->rows, h, &it, &i);) {
    const onnx_row *r = &rows[i - 1];
    if (r->since <= n->opset && (!best || r->since > best->since)) best = r;
    oldest = MIN(oldest, r->since);
  }
  if (best) return best;
  const char *d = domain.i ? sym_str(I->f.c, domain) : "ai.onnx";
  if (oldest == INT64_MAX)
    refuse(n, "of domain %s", d);
  else if (!n->opset)
    wrong(n, "the model does not say which opset of domain %s it uses", d);
  else
    refuse(n, "in its form of opset %lld (%s; known from %lld on)", (long long)n->opset, d,
           (long long)oldest);
  return NULL;
}

static const onnx_function *function_of(const imp *I, const onnx_node *n) {
  u64 h = hash_u64((u64)n->domain.i << 32 | n->op.i, 3);
  for (u32 it = 0, i; hmap_next(&I->funcs, h, &it, &i);)
    if (I->m.function.v[i - 1].overload.i == n->overload.i) return &I->m.function.v[i - 1];
  return NULL;
}

// A function of the model: its body in place of the node.
static bool inline_function(node *n, const onnx_function *f) {
  imp *I = n->I;
  scope s = {.id = ++I->nscopes, .depth = n->s->depth + 1, .f = f, .caller = n};
  if (s.depth > SCOPES_MAX) return wrong(n, "functions call each other deeper than %d", SCOPES_MAX);
  if (n->nin > f->in.n) return wrong(n, "%u inputs for a function of %u", n->nin, f->in.n);
  hmap_add(I->a, &I->name, key_of(&s, (sym){0}), 1);
  for (u32 k = 0; k < f->in.n; k++) {
    if (!in_of(n, k))
      hmap_add(I->a, &I->name, key_of(&s, f->in.v[k]), 1);
    else if (!onnx_define(I, &s, f->in.v[k], n->in[k], n->n))
      return false;
  }
  onnx_walk(I, &s, f->node.v, f->node.n, NULL);
  for (u32 k = 0; k < MIN(f->out.n, n->nout); k++) {
    u32 v = onnx_lookup(I, &s, f->out.v[k]);
    n->out[k] = v == UNKNOWN || v == 0 ? 0 : v - 1;
  }
  return true;
}

bool map_graph(node *n, const onnx_graph *g) {
  imp *I = n->I;
  scope s = {.id = ++I->nscopes, .depth = n->s->depth + 1, .up = n->s, .f = n->s->f, .caller = n->s->caller};
  if (s.depth > SCOPES_MAX) return wrong(n, "graphs nest deeper than %d", SCOPES_MAX);
  for (u32 k = 0; k < g->init.n; k++) {
    data_info d;
    loc where = onnx_node_loc(I, n->n, sym_str(I->f.c, g->init.v[k].name));
    if (!onnx_tensor_data(&I->f, &I->store, &g->init.v[k], where, &d)) return false;
    if (!onnx_define(I, &s, g->init.v[k].name, onnx_known(I, &d), n->n)) return false;
  }
  onnx_walk(I, &s, g->node.v, g->node.n, NULL);
  for (u32 k = 0; k < MIN(g->out.n, n->nout); k++) {
    u32 v = onnx_lookup(I, &s, g->out.v[k].name);
    if (!v) return wrong(n, "a branch does not define its output `%s`", sym_str(I->f.c, g->out.v[k].name));
    n->out[k] = v == UNKNOWN ? 0 : v - 1;
  }
  return true;
}

// Operands of a node. False: one of them is unknown (its reason was told), or not defined (told here).
static bool operands(node *n) {
  imp *I = n->I;
  bool ok = true;
  for (u32 k = 0; k < n->nin; k++) {
    sym name = n->n->in.v[k];
    u32 v = name.i ? onnx_lookup(I, n->s, name) : 1;
    if (!v)
      ok = wrong(n, "input %u, `%s`, is not defined", k + 1, sym_str(I->f.c, name));
    else if (v == UNKNOWN)
      ok = false;
    else
      n->in[k] = v - 1;
  }
  while (n->nin && !n->n->in.v[n->nin - 1].i) n->nin--;
  return ok;
}

static void map_node(imp *I, const scope *s, const onnx_node *v) {
  mixed few[32] = {0}, *room = few;
  if (v->in.n + v->out.n > COUNT_OF(few)) room = ZNEWN(I->a, mixed, v->in.n + v->out.n);
  node n = {.I = I,
            .x = &I->x,
            .n = v,
            .s = s,
            .in = room,
            .nin = v->in.n,
            .out = room + v->in.n,
            .nout = v->out.n};
  n.opset = opset_of(I, s, v->domain);
  const onnx_function *f = I->m.function.n ? function_of(I, v) : NULL;
  n.row = f ? NULL : row_of(&n);
  u32 told = onnx_errors(I) + I->nrefused;
  bool ready = (f || n.row) && operands(&n), ok = ready;
  if (ready) ok = f ? inline_function(&n, f) : n.row->map(&n);
  if (ready && !ok && told == onnx_errors(I) + I->nrefused) refuse(&n, "in this form");
  told = onnx_errors(I) + I->nrefused - told;
  I->at = NULL;
  I->x.b.failed = false;
  prog *p = I->x.b.p;
  for (u32 k = 0; k < n.nout; k++) {
    if (!v->out.v[k].i) continue;
    mixed x = ok ? n.out[k] : 0;
    if (ok && !x && !told && (*onnx_mark(I, v->out.v[k]) & MARK_NEEDED))
      refuse(&n, "with its output %u", k + 1);
    if (!onnx_define(I, s, v->out.v[k], x, v)) continue;
    value made = x && s->id == 1 ? I->x.v.v[x].v : 0;
    const value_info *info = val(func_get(p, p->main), made);
    if (made && info->def && !info->name.i) value_name(p, p->main, made, v->out.v[k]);
  }
}

void onnx_walk(imp *I, const scope *s, const onnx_node *v, u32 n, const bool *live) {
  for (u32 i = 0; i < n && onnx_errors(I) < ERRORS_MAX; i++) {
    if (live && !live[i]) continue;
    if (I->nnodes++ == NODES_MAX)
      diag(I->f.c, E_LIMIT, onnx_node_loc(I, &v[i], ""), "more than %d nodes after inlining", NODES_MAX);
    if (I->nnodes > NODES_MAX) return;
    map_node(I, s, &v[i]);
  }
}

bool onnx_is_effect(imp *I, const onnx_node *v) {
  u64 h = hash_u64((u64)v->domain.i << 32 | v->op.i, 2);
  for (u32 it = 0, i; hmap_next(&I->rows, h, &it, &i);)
    if (rows[i - 1].arg == ONNX_EFFECT) return true;
  return false;
}

void onnx_tell_refused(imp *I) {
  ctx *c = I->f.c;
  for (u32 i = 0; i < I->refused.n; i++) {
    const onnx_refusal *r = &I->refused.v[i];
    if (r->count == 1)
      diag(c, E_ONNX_OP, r->first, "%s %s is not supported", sym_str(c, r->op), r->reason);
    else
      diag(c, E_ONNX_OP, r->first, "%s %s is not supported (%u nodes)", sym_str(c, r->op), r->reason,
           r->count);
  }
}

void onnx_index(imp *I) {
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    sym domain = sym_of(I->f.c, rows[i].domain), name = sym_of(I->f.c, rows[i].name);
    hmap_add(I->a, &I->rows, hash_u64((u64)domain.i << 32 | name.i, 2), i + 1);
  }
  for (u32 i = 0; i < I->m.function.n; i++) {
    const onnx_function *f = &I->m.function.v[i];
    hmap_add(I->a, &I->funcs, hash_u64((u64)f->domain.i << 32 | f->name.i, 3), i + 1);
  }
}
