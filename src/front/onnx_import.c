// onnx_import.c - from a model's graph to a program: which nodes count, what is defined where, main's
// parameters and results. What a node becomes is in onnx_node.c.
//
// Idea: nodes are walked once, in order, only those that an output or a side effect depends on. Weights
// become parameters whose elements stay where the file has them.
#include "front/onnx.h"
#include "kernel/kernel.h"

enum { OPSET_MAX = 21 };
enum { WEIGHT_CONSTANT = 64 }; // a float constant of this many elements is a weight
enum { FILL_MAX = 1 << 27 };   // larger filled weights stay instructions

// ---- the graph before the walk -------------------------------------------------------------------------
// Names that a node's subgraphs take from around them count as its operands (a superset: their own names
// too).
static void need_graph(imp *I, const onnx_graph *g);
static void need_node(imp *I, const onnx_node *n) {
  for (u32 k = 0; k < n->in.n; k++) *onnx_mark(I, n->in.v[k]) |= MARK_NEEDED;
  for (u32 k = 0; k < n->at.n; k++)
    if (n->at.v[k].g) need_graph(I, n->at.v[k].g);
}
static void need_graph(imp *I, const onnx_graph *g) {
  for (u32 k = 0; k < g->node.n; k++) need_node(I, &g->node.v[k]);
  for (u32 k = 0; k < g->out.n; k++) *onnx_mark(I, g->out.v[k].name) |= MARK_NEEDED;
}

// Every name must be defined, and once. broken[i]: node i reads, or depends on, a name that is not; that is
// an error if an output of the graph needs it (live_nodes tells).
static bool check_names(imp *I, bool *broken) {
  const onnx_graph *g = &I->m.graph;
  ctx *c = I->f.c;
  for (u32 k = 0; k < g->in.n; k++) *onnx_mark(I, g->in.v[k].name) |= MARK_SEEN;
  for (u32 k = 0; k < g->init.n; k++) *onnx_mark(I, g->init.v[k].name) |= MARK_SEEN | MARK_INIT;
  for (u32 k = 0; k < I->o->nfixed; k++) *onnx_mark(I, sym_of(c, I->o->fixed[k].name)) |= MARK_SEEN;
  *onnx_mark(I, (sym){0}) = MARK_SEEN;
  for (u32 i = 0; i < g->node.n && onnx_errors(I) < ERRORS_MAX; i++) {
    const onnx_node *n = &g->node.v[i];
    for (u32 k = 0; k < n->in.n; k++) broken[i] = broken[i] || !(*onnx_mark(I, n->in.v[k]) & MARK_SEEN);
    for (u32 k = 0; k < n->in.n; k++) broken[i] = broken[i] || *onnx_mark(I, n->in.v[k]) & MARK_BROKEN;
    for (u32 k = 0; k < n->out.n; k++) {
      u8 *m = onnx_mark(I, n->out.v[k]);
      if (*m & MARK_SEEN && n->out.v[k].i)
        diag(c, E_ONNX_MODEL, onnx_node_loc(I, n, ""), "`%s` is defined twice", sym_str(c, n->out.v[k]));
      if (n->out.v[k].i) *m |= broken[i] ? MARK_SEEN | MARK_BROKEN : MARK_SEEN;
    }
  }
  for (u32 k = 0; k < g->out.n; k++)
    if (!(*onnx_mark(I, g->out.v[k].name) & MARK_SEEN))
      diag(c, E_ONNX_MODEL, onnx_loc(I, g->out.v[k].name), "the output `%s` is defined nowhere",
           sym_str(c, g->out.v[k].name));
  return onnx_errors(I) == 0;
}

// Tells the names that live node i reads and no node, input or initializer defines.
static void tell_undefined(imp *I, u32 i) {
  const onnx_node *n = &I->m.graph.node.v[i];
  ctx *c = I->f.c;
  for (u32 k = 0; k < n->in.n && onnx_errors(I) < ERRORS_MAX; k++) {
    if (*onnx_mark(I, n->in.v[k]) & MARK_SEEN) continue;
    char part[32];
    snprintf(part, sizeof part, "input %u", k + 1);
    diag(c, E_ONNX_MODEL, onnx_node_loc(I, n, part), "%s: `%s` is defined nowhere", sym_str(c, n->op),
         sym_str(c, n->in.v[k]));
  }
}

// The nodes that an output of the graph or a side effect needs. NULL after a diagnostic.
static bool *live_nodes(imp *I) {
  const onnx_graph *g = &I->m.graph;
  bool *live = ZNEWN(I->a, bool, g->node.n + 1), *broken = ZNEWN(I->a, bool, g->node.n + 1);
  u32 dropped = 0, first = 0;
  if (!check_names(I, broken)) return NULL;
  for (u32 k = 0; k < g->out.n; k++) *onnx_mark(I, g->out.v[k].name) |= MARK_NEEDED;
  for (u32 i = g->node.n; i-- > 0;) {
    const onnx_node *n = &g->node.v[i];
    live[i] = !broken[i] && onnx_is_effect(I, n);
    for (u32 k = 0; k < n->out.n; k++) live[i] = live[i] || *onnx_mark(I, n->out.v[k]) & MARK_NEEDED;
    if (live[i]) need_node(I, n);
    if (!live[i] && broken[i]) dropped++, first = i;
  }
  for (u32 i = 0; i < g->node.n; i++)
    if (live[i] && broken[i]) tell_undefined(I, i);
  if (onnx_errors(I)) return NULL;
  if (dropped)
    diag(I->f.c, W_IGNORED, onnx_node_loc(I, &g->node.v[first], ""),
         "%u nodes are left out: they read names that nothing defines, and no output needs them", dropped);
  for (u32 i = 0; i < I->m.function.n; i++) {
    const onnx_function *f = &I->m.function.v[i];
    for (u32 k = 0; k < f->node.n; k++) need_node(I, &f->node.v[k]);
    for (u32 k = 0; k < f->out.n; k++) *onnx_mark(I, f->out.v[k]) |= MARK_NEEDED;
  }
  return live;
}

static bool check_model(imp *I) {
  ctx *c = I->f.c;
  loc where = loc_node(c, I->f.file, (sym){0}, (sym){0});
  if (!I->m.has_graph)
    diag(c, E_ONNX, where, "the file holds no graph");
  else if (!I->m.graph.out.n)
    diag(c, E_ONNX_MODEL, where, "the graph has no outputs");
  i64 version = onnx_opset_in(c, I->m.opset.v, I->m.opset.n, (sym){0});
  if (version > OPSET_MAX) {
    diag(c, E_ONNX_OP, where, "opset %lld of ai.onnx is newer than %d", (long long)version, OPSET_MAX);
    diag_hint(c, "export with opset %d, or convert with onnx.version_converter", OPSET_MAX);
  }
  if (I->m.graph.sparse) diag(c, E_ONNX_OP, where, "sparse initializers are not supported");
  return onnx_errors(I) == 0;
}

// ---- parameters ----------------------------------------------------------------------------------------
static value add_param(imp *I, const shape *s, sym name, role r, u32 data) {
  prog *p = I->x.b.p;
  value v = func_param(p, p->main, type_tensor(p, s, (layout){0}, (group){0}), name, r);
  func_info *f = func_get(p, p->main);
  f->params.v[f->nparams - 1].data = data;
  return v;
}

// Inputs whose elements are known are no parameters.
static void declare_inputs(imp *I, const scope *s) {
  for (u32 k = 0; k < I->m.graph.in.n; k++) {
    const onnx_value *v = &I->m.graph.in.v[k];
    shape sh;
    if (*onnx_mark(I, v->name) & MARK_INIT || onnx_lookup(I, s, v->name)) continue;
    if (!onnx_input_shape(I, v, &sh)) continue;
    onnx_define(I, s, v->name, mix_value(&I->x, add_param(I, &sh, v->name, ROLE_INPUT, 0)), NULL);
  }
}

static void declare_fixed(imp *I, const scope *s) {
  const onnx_graph *g = &I->m.graph;
  for (u32 k = 0; k < I->o->nfixed; k++) {
    const front_fixed *f = &I->o->fixed[k];
    sym name = sym_of(I->f.c, f->name);
    data_info d;
    u32 at = 0;
    while (at < g->in.n && g->in.v[at].name.i != name.i) at++;
    if (at < g->in.n ? !onnx_fixed(I, f, &g->in.v[at], &d) : !f->data) continue;
    onnx_define(I, s, name, onnx_known(I, at < g->in.n ? &d : f->data), NULL);
  }
}

// A float tensor with more than one element is a weight: a parameter whose elements stay where the file has
// them.
static bool declare_tensor(imp *I, const scope *s, const onnx_tensor *t, sym name, loc where, i64 least) {
  data_info d;
  if (!onnx_tensor_data(&I->f, &I->store, t, where, &d)) return false;
  i64 n = d.size / dtype_bytes(d.t);
  bool real = dtype_kind_of(d.t) == DK_FLOAT;
  if (real ? n >= least : n > 1 << 16) {
    shape sh = {.t = d.t, .nd = d.nd};
    memcpy(sh.dim, d.dim, sizeof sh.dim);
    bool in_file = t->raw.at || t->external || t->data.n == 1;
    u32 data = d.bytes ? data_add(I->x.b.p, &sh, d.bytes, !in_file) : 0;
    value param = add_param(I, &sh, name, real ? ROLE_WEIGHT : ROLE_CONST, data);
    return onnx_define(I, s, name, mix_value(&I->x, param), NULL);
  }
  if (!d.bytes) {
    diag(I->f.c, E_ONNX_DATA, where, "the elements of `%s` are needed but its external data is not there",
         sym_str(I->f.c, name));
    return false;
  }
  return onnx_define(I, s, name, onnx_known(I, &d), NULL);
}

// Weights that ConstantOfShape makes share one run of equal elements.
static bool declare_filled(imp *I, const scope *s, const onnx_node *n) {
  u32 v = n->in.n ? onnx_lookup(I, s, n->in.v[0]) : 0;
  const mixed_info *dims = v && v != UNKNOWN ? mix_get(&I->x, v - 1) : NULL;
  if (!dims || !dims->known || dims->s.nd != 1 || dims->s.dim[0] > DIMS_MAX) return true;
  shape sh = {.t = DT_F32, .nd = (u32)dims->s.dim[0]};
  data_info one = {.t = DT_F32, .bytes = &(float){0}, .size = 4};
  const onnx_attr *at = n->at.n ? &n->at.v[0] : NULL;
  if (at && (!at->t || !onnx_tensor_data(&I->f, &I->store, at->t, onnx_node_loc(I, n, ""), &one)))
    return false;
  sh.t = one.t;
  mix_read(&I->x, v - 1, sh.dim);
  i64 elems = 1;
  for (u32 d = 0; d < sh.nd; d++)
    if (sh.dim[d] < 0 || !mul_i64(elems, sh.dim[d], &elems) || elems > FILL_MAX) return true;
  u32 size = dtype_bytes(one.t);
  if (dtype_kind_of(one.t) != DK_FLOAT || one.size != size || elems < WEIGHT_CONSTANT) return true;
  if (!I->fill.bytes || I->fill.n < elems || I->fill.size != size || memcmp(I->fill.bytes, one.bytes, size)) {
    u8 *to = arena_alloc(I->x.b.p->a, (size_t)elems * size);
    memcpy(to, one.bytes, size);
    for (i64 have = 1; have < elems; have *= 2)
      memcpy(to + have * size, to, (size_t)(MIN(have, elems - have) * size));
    I->fill.bytes = to, I->fill.n = elems, I->fill.size = size;
  }
  value param = add_param(I, &sh, n->out.v[0], ROLE_WEIGHT, data_add(I->x.b.p, &sh, I->fill.bytes, false));
  return onnx_define(I, s, n->out.v[0], mix_value(&I->x, param), n);
}

// All of main's parameters, before its first instruction: inputs, then weights. Nodes that become weights are
// done.
static bool declare(imp *I, const scope *s, bool *live) {
  const onnx_graph *g = &I->m.graph;
  ctx *c = I->f.c;
  onnx_bind(I);
  declare_fixed(I, s);
  declare_inputs(I, s);
  for (u32 k = 0; k < g->init.n; k++) {
    sym name = g->init.v[k].name;
    if (*onnx_mark(I, name) & MARK_NEEDED) declare_tensor(I, s, &g->init.v[k], name, onnx_loc(I, name), 2);
  }
  for (u32 i = 0; i < g->node.n; i++) {
    const onnx_node *n = &g->node.v[i];
    if (!live[i] || n->out.n != 1 || !onnx_standard(c, n->domain)) continue;
    const char *op = sym_str(c, n->op);
    u32 had = I->name.n;
    if (strcmp(op, "Constant") == 0 && n->at.n == 1 && n->at.v[0].t)
      declare_tensor(I, s, n->at.v[0].t, n->out.v[0], onnx_node_loc(I, n, ""), WEIGHT_CONSTANT);
    else if (strcmp(op, "ConstantOfShape") == 0)
      declare_filled(I, s, n);
    live[i] = I->name.n == had;
  }
  return onnx_errors(I) == 0;
}

// ---- after the walk ------------------------------------------------------------------------------------
// Drops instructions that no result depends on and weights that nothing reads, and renumbers main's values.
static void sweep(prog *p, arena *a) {
  func_info *f = func_get(p, p->main);
  value *to = ZNEWN(a, value, f->values.n);
  for (u32 k = 0; k < f->rets.n; k++) to[f->rets.v[k]] = 1;
  for (u32 i = f->body.n; i-- > 0;) {
    const instr *in = &f->body.v[i];
    bool used = false;
    for (u32 k = 0; k < in->nres; k++) used = used || to[in->res + k];
    for (u32 k = 0; k < in->nres; k++) to[in->res + k] = used;
    for (u32 k = 0; k < in->nopd && used; k++) to[opd_of(f, in, k)] = 1;
  }
  value next = 1;
  u32 params = 0, body = 0, opds = 0;
  for (value v = 1; v <= f->nparams; v++) {
    role r = f->params.v[v - 1].r;
    if (!to[v] && (r == ROLE_WEIGHT || r == ROLE_CONST)) continue;
    f->params.v[params++] = f->params.v[v - 1];
    f->values.v[next] = f->values.v[v];
    to[v] = next++;
  }
  for (u32 i = 0; i < f->body.n; i++) {
    instr in = f->body.v[i];
    if (!to[in.res]) continue;
    for (u32 k = 0; k < in.nopd; k++) f->opds.v[opds + k] = to[f->opds.v[in.opd + k]];
    for (u32 k = 0; k < in.nres; k++) {
      f->values.v[next + k] = f->values.v[in.res + k];
      f->values.v[next + k].def = body + 1;
      to[in.res + k] = next + k;
    }
    in.opd = opds, in.res = next;
    opds += in.nopd, next += in.nres;
    f->body.v[body++] = in;
  }
  for (u32 k = 0; k < f->rets.n; k++) f->rets.v[k] = to[f->rets.v[k]];
  f->nparams = f->params.n = params;
  f->values.n = next, f->body.n = body, f->opds.n = opds;
}

// What becomes of a value, also after it has been moved, cut or spread.
enum { USE_DECIDES = 1 /* gives no floating-point number */, USE_ELEMENTWISE = 2, USE_OTHER = 4 };

static u8 use_by(const prog *p, const func_info *f, const instr *i, const u8 *use) {
  const op_row *row = op_row_of(i->op);
  if (dtype_kind_of(val_type(p, f, i->res)->s.t) != DK_FLOAT) return USE_DECIDES;
  if (i->op == OP_cast || (!row->flops && i->nres == 1 && i->op != OP_call)) return use[i->res];
  return i->nopd > 1 && !strncmp(row->law, "...,", 4) ? USE_ELEMENTWISE : USE_OTHER;
}

// 0, 1 and numbers that a softmax turns into 0 (-10,000 as bf16 rounds it), not all 0 and not all 1.
static bool looks_like_mask(const data_info *d) {
  enum { CHUNK = 256 };
  double x[CHUNK], raw[CHUNK]; // elements lie anywhere in the file, aligned to nothing
  bool zero = false, one = false, low = false;
  const i64 n = d->size / dtype_bytes(d->t);
  for (i64 at = 0; at < n; at += CHUNK) {
    i64 m = MIN(n - at, CHUNK);
    memcpy(raw, (const u8 *)d->bytes + at * dtype_bytes(d->t), (size_t)m * dtype_bytes(d->t));
    ker_load_f64(x, d->t, raw, m);
    for (i64 k = 0; k < m; k++) {
      if (x[k] != 0 && x[k] != 1 && !(x[k] <= -9984)) return false;
      zero |= x[k] == 0, one |= x[k] == 1, low |= x[k] < 0;
    }
  }
  return low || (zero && one);
}

// Masks are no weights, though files store both alike (front.h has the rule).
static void find_masks(prog *p, arena *a) {
  func_info *f = func_get(p, p->main);
  u8 *use = ZNEWN(a, u8, f->values.n);
  for (u32 k = 0; k < f->rets.n; k++) use[f->rets.v[k]] = USE_OTHER;
  for (u32 k = f->body.n; k-- > 0;) {
    const instr *i = &f->body.v[k];
    u8 u = i->nres ? use_by(p, f, i, use) : USE_OTHER;
    for (u32 j = 0; j < i->nopd; j++) use[opd_of(f, i, j)] |= u;
  }
  for (u32 k = 0; k < f->nparams; k++) {
    param_info *w = &f->params.v[k];
    const data_info *d = w->data ? &p->data.v[w->data] : NULL;
    if (w->r != ROLE_WEIGHT || use[k + 1] & USE_OTHER) continue;
    bool mask = d && d->bytes && val_type(p, f, k + 1)->s.nd > 1 && looks_like_mask(d);
    if (use[k + 1] == USE_DECIDES || mask) w->r = ROLE_CONST;
  }
}

// The value that output k of the graph is, under the output's name. An output that is an input or another
// output under a second name (Identity) is a value of its own, so that neither name is lost.
static value named_output(imp *I, const value *rets, u32 k) {
  prog *p = I->x.b.p;
  value v = rets[k];
  bool taken = !val(func_get(p, p->main), v)->def;
  for (u32 j = 0; j < k; j++) taken = taken || rets[j] == v;
  if (taken && val(func_get(p, p->main), v)->name.i == I->m.graph.out.v[k].name.i) return v;
  if (taken) v = build1(&I->x.b, OP_identity, v);
  value_name(p, p->main, v, I->m.graph.out.v[k].name);
  return v;
}

static bool returns(imp *I, const scope *s) {
  const onnx_graph *g = &I->m.graph;
  prog *p = I->x.b.p;
  u32 nrets = g->out.n;
  value *rets = NEWN(I->a, value, nrets + I->effects.n);
  for (u32 k = 0; k < g->out.n; k++) {
    u32 v = onnx_lookup(I, s, g->out.v[k].name);
    I->x.b.where = onnx_loc(I, g->out.v[k].name);
    rets[k] = v && v != UNKNOWN ? mix_emit(&I->x, v - 1) : 0;
    if (rets[k]) {
      rets[k] = named_output(I, rets, k);
      continue;
    }
    diag(I->f.c, E_ONNX_MODEL, I->x.b.where, "the output `%s` has no value",
         sym_str(I->f.c, g->out.v[k].name));
    return false;
  }
  for (u32 k = 0; k < I->effects.n; k++) {
    value v = mix_emit(&I->x, I->effects.v[k]);
    bool again = false;
    for (u32 j = 0; j < nrets; j++) again = again || rets[j] == v;
    if (!again) rets[nrets++] = v;
  }
  func_return(p, p->main, rets, nrets);
  return true;
}

static bool import(imp *I, const u8 *bytes, size_t n) {
  if (!onnx_model_read(&I->f, bytes, n, &I->m) || !check_model(I)) return false;
  if (!onnx_sort(I)) return false;
  onnx_index(I);
  bool *live = live_nodes(I);
  if (!live) return false;
  scope top = {.id = ++I->nscopes};
  if (!declare(I, &top, live)) return false;
  onnx_walk(I, &top, I->m.graph.node.v, I->m.graph.node.n, live);
  onnx_tell_refused(I);
  if (I->store.missing)
    diag(I->f.c, W_IGNORED, I->store.where,
         "external data: %u files are not there, `%s` first: weights have no elements", I->store.missing,
         I->store.first);
  return onnx_errors(I) == 0 && returns(I, &top);
}

static pb_file messages_of(ctx *c, arena *a, const char *path, const u8 *bytes) {
  return (pb_file){.c = c,
                   .a = a,
                   .id = E_ONNX,
                   .file = sym_of(c, path),
                   .base = bytes,
                   .hint = "is it an ONNX file, and whole?"};
}

prog *front_onnx_bytes(ctx *c, const char *path, const u8 *bytes, size_t n, const front_opts *o) {
  static const front_opts none;
  prog *p = prog_new(c);
  arena *a = arena_new();
  const char *slash = strrchr(path, '/');
  imp I = {.f = messages_of(c, a, path, bytes), .a = a, .o = o ? o : &none};
  I.errors = diag_errors(c);
  I.store.dir = slash ? arena_strndup(a, path, (size_t)MAX(slash - path, 1)) : ".";
  p->main = func_new(p, sym_of(c, "main"), loc_node(c, I.f.file, (sym){0}, (sym){0}));
  I.x = mix_at(p, p->main, a);
  bool ok = import(&I, bytes, n);
  if (ok) {
    sweep(p, a);
    find_masks(p, a);
  }
  for (u32 k = 0; k < I.store.file.n && !ok; k++) file_unmap(&I.store.file.v[k].view);
  arena_free(a);
  if (ok) return p;
  prog_free(p);
  return NULL;
}

prog *front_onnx(ctx *c, const char *path, const front_opts *o) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  prog *p = front_onnx_bytes(c, path, f.data, f.size, o);
  if (!p) file_unmap(&f);
  return p;
}

bool front_tensor(ctx *c, arena *a, const char *path, const u8 *bytes, size_t n, data_info *out, sym *name) {
  pb_file f = messages_of(c, a, path, bytes);
  onnx_store store = {.dir = "."};
  onnx_tensor t;
  if (!onnx_tensor_read(&f, bytes, n, &t)) return false;
  *name = t.name;
  return onnx_tensor_data(&f, &store, &t, loc_node(c, f.file, (sym){0}, (sym){0}), out);
}
