// families.c - built-in models by name: the table, the overrides, what all kinds share, and the MLP.
//
// Idea: every repeated layer is one function, called once per layer with weights of its own, so a model of 96
// layers is as short a program as one of 2. "NAME:key=value,..." changes any column of the row.
#include "front/family.h"
#include <strings.h>
#include <stdlib.h>

static const front_row rows[] = {
#define FAMILY(name, kind, lay, hid, heads, kv, dim, ffn, vocab, pos, exp, top, win, msa, pair, rec, src)    \
  {name, #kind, src, lay, hid, heads, kv, dim, ffn, vocab, pos, exp, top, win, msa, pair, rec},
#include "front/families.def"
};

const front_row *front_family_get(u32 index) { return index < COUNT_OF(rows) ? &rows[index] : NULL; }

// ---- what all kinds share ------------------------------------------------------------------------------
// main is the model, every other function is where fam_at was.
func fam_func(fam *m, const char *name) {
  bool failed = m->b.failed;
  if (!strcmp(name, "main")) fam_at(m, "");
  loc where = m->b.where;
  func f = func_new(m->p, sym_of(m->p->c, name), where);
  m->b = builder_at(m->p, f);
  m->b.where = where;
  m->b.failed = failed;
  return f;
}

value fam_x(fam *m, const char *name, role r, dtype t, u32 nd, const i64 *dim) {
  shape s = {.t = t, .nd = nd};
  memcpy(s.dim, dim, nd * sizeof *dim);
  return func_param(m->p, m->b.f, type_tensor(m->p, &s, (layout){0}, (group){0}), sym_of(m->p->c, name), r);
}

value fam_w(fam *m, const char *name, u32 nd, const i64 *dim) {
  return fam_x(m, name, ROLE_WEIGHT, m->t, nd, dim);
}

// Statistics are constants, so their elements exist: here is where they could fill the memory.
enum { CHANNELS_MAX = 1 << 20 };

// n elements 0 or 1 (all that running statistics start with, and all that is needed of half precision here).
static u32 stat_data(fam *m, i64 n, bool one) {
  static const u64 ones[DT_COUNT] = {
      [DT_F16] = 0x3c00, [DT_BF16] = 0x3f80, [DT_F32] = 0x3f800000, [DT_F64] = 0x3ff0000000000000};
  shape s = {.t = m->t, .nd = 1, .dim = {n}};
  u32 size = dtype_bytes(m->t);
  u8 *bytes = arena_zalloc(m->p->a, (size_t)n * size);
  for (i64 i = 0; one && i < n; i++)
    for (u32 k = 0; k < size; k++) bytes[i * size + k] = (u8)(ones[m->t] >> 8 * k);
  return data_add(m->p, &s, bytes, false);
}

value fam_stat(fam *m, const char *name, i64 n, bool one) {
  if (n > CHANNELS_MAX) {
    if (!m->b.failed)
      diag(m->p->c, E_LIMIT, m->b.where, "%s: %lld channels; at most %d are possible", name, (long long)n,
           CHANNELS_MAX);
    m->b.failed = true, n = 1;
  }
  value x = fam_x(m, name, ROLE_CONST, m->t, 1, &n);
  func_info *f = func_get(m->p, m->b.f);
  f->params.v[f->nparams - 1].data = stat_data(m, n, one);
  return x;
}

void fam_at(fam *m, const char *node) {
  m->b.where = loc_node(m->p->c, sym_of(m->p->c, m->v.name), sym_of(m->p->c, node), (sym){0});
}

value fam_weights(fam *m, func block, const char *prefix) {
  value first = 0;
  for (u32 i = 0; i < func_get(m->p, block)->nparams; i++) {
    const func_info *f = func_get(m->p, block);
    param_info param = f->params.v[i];
    if (param.r != ROLE_WEIGHT && param.r != ROLE_CONST) continue;
    sym name = sym_fmt(m->p->c, "%s.%s", prefix, sym_str(m->p->c, f->values.v[i + 1].name));
    value w = func_param(m->p, m->b.f, f->values.v[i + 1].ty, name, param.r);
    func_info *g = func_get(m->p, m->b.f);
    g->params.v[g->nparams - 1].data = param.data;
    if (!first) first = w;
  }
  return first;
}

value fam_call(fam *m, func block, const value *x, u32 nx, value weights) {
  u32 n = func_get(m->p, block)->nparams;
  value opd[128];
  assert(n <= COUNT_OF(opd) && nx <= n);
  for (u32 i = 0; i < n; i++) opd[i] = i < nx ? x[i] : weights + i - nx;
  return build_call(&m->b, block, opd, n);
}

void fam_return(fam *m, value v) {
  if (!m->b.failed) func_return(m->p, m->b.f, &v, 1);
}

value fam_op(fam *m, opcode op, value x, attr a) { return build(&m->b, op, &x, 1, &a, 1); }

value fam_reshape(fam *m, value x, u32 nd, const i64 *dim) {
  return fam_op(m, OP_reshape, x, attr_v(A_shape, dim, nd));
}

value fam_transpose(fam *m, value x, u32 nd, const i64 *perm) {
  return fam_op(m, OP_transpose, x, attr_v(A_perm, perm, nd));
}

value fam_einsum(fam *m, const char *letters, value x, value y) {
  attr a = attr_s(A_law, sym_of(m->p->c, letters));
  return build(&m->b, OP_einsum, (value[]){x, y}, 2, &a, 1);
}

value fam_linear(fam *m, value x, value w, value bias) {
  value y = build2(&m->b, OP_matmul, x, w);
  return bias ? build2(&m->b, OP_add, y, bias) : y;
}

value fam_full(fam *m, dtype t, double v) {
  attr a[] = {attr_t(A_dtype, t), attr_v(A_shape, NULL, 0), attr_f(A_value, v)};
  return build(&m->b, OP_full, NULL, 0, a, COUNT_OF(a));
}

value fam_iota(fam *m, dtype t, i64 axis, double step, u32 nd, const i64 *dim) {
  attr a[] = {attr_t(A_dtype, t), attr_v(A_shape, dim, nd), attr_i(A_axis, axis), attr_f(A_alpha, step)};
  return build(&m->b, OP_iota, NULL, 0, a, COUNT_OF(a));
}

value fam_layernorm(fam *m, value x, value g, value b, double eps) {
  attr a = attr_f(A_eps, eps);
  return build(&m->b, OP_layernorm, (value[]){x, g, b}, 3, &a, 1);
}

value fam_rmsnorm(fam *m, value x, value g, double eps) {
  attr a = attr_f(A_eps, eps);
  return build(&m->b, OP_rmsnorm, (value[]){x, g}, 2, &a, 1);
}

value fam_cast(fam *m, value x, dtype t) {
  if (m->b.failed || val_type(m->p, func_get(m->p, m->b.f), x)->s.t == t) return x;
  return fam_op(m, OP_cast, x, attr_t(A_dtype, t));
}

// Half precision holds the logits but not their sum of exponentials.
value fam_xent(fam *m, value logits, value labels) {
  attr a = attr_s(A_reduce, sym_of(m->p->c, "mean"));
  value x = fam_cast(m, logits, m->t == DT_F64 ? DT_F64 : DT_F32);
  return build(&m->b, OP_cross_entropy, (value[]){x, labels}, 2, &a, 1);
}

// ---- mlp -----------------------------------------------------------------------------------------------
// DistIR's model: x := relu(x w) for every layer, all of one width; loss: squared differences summed, per
// sample.
static void fam_mlp(fam *m) {
  i64 d = m->v.hidden, n = m->batch;
  func layer = fam_func(m, "layer");
  value x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, d)), w = fam_w(m, "w", DIMS(d, d));
  fam_return(m, build1(&m->b, OP_relu, build2(&m->b, OP_matmul, x, w)));

  m->p->main = fam_func(m, "main");
  x = fam_x(m, "x", ROLE_INPUT, m->t, DIMS(n, d));
  value z = m->o->loss ? fam_x(m, "z", ROLE_LABEL, m->t, DIMS(n, d)) : 0;
  value first = 0;
  for (i64 i = 0; i < m->v.layers; i++) {
    value wi = fam_weights(m, layer, arena_printf(m->p->a, "h.%d", (int)i));
    if (!i) first = wi;
  }
  for (i64 i = 0; i < m->v.layers; i++) x = fam_call(m, layer, &x, 1, first + (value)i);
  if (z) {
    value diff = build2(&m->b, OP_sub, x, z), sq = build2(&m->b, OP_mul, diff, diff);
    x = fam_op(m, OP_scale, fam_op(m, OP_reduce_sum, sq, attr_i(A_keepdims, 0)),
               attr_f(A_alpha, 1.0 / (double)n));
  }
  fam_return(m, x);
}

// ---- from a name to a program --------------------------------------------------------------------------
static const struct {
  const char *kind;
  void (*make)(fam *m);
  i64 batch;
  bool dropout; // trained with dropout by its authors, between layers at least
  bool learned; // a vector for each position is a weight
} kinds[] = {
    {"mlp", fam_mlp, 512, false, false},
    {"gpt", fam_gpt, 8, true, true},
    {"moe", fam_moe, 8, true, true},
    {"bert", fam_bert, 8, true, true},
    {"llama", fam_llama, 8, false, false},
    {"llama3", fam_llama, 8, false, false},
    {"t5", fam_t5, 8, true, false},
    {"m6", fam_m6, 8, true, true},
    {"m6moe", fam_m6, 8, true, true},
    {"gnmt", fam_gnmt, 8, true, false},
    {"vit", fam_vit, 8, true, false},
    {"resnet", fam_resnet, 8, false, false},
    {"vgg", fam_vgg, 8, false, false},
    {"inception", fam_inception, 8, false, false},
    {"mbart", fam_mbart, 8, true, true},
    {"swin", fam_swin, 8, false, false},
    {"evoformer", fam_evoformer, 8, true, false},
};

static const front_row *row_find(ctx *c, const char *name, size_t n) {
  near_name near = near_to(name, n);
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    if (strlen(rows[i].name) == n && !memcmp(rows[i].name, name, n)) return &rows[i];
    near_try(&near, rows[i].name);
  }
  diag(c, E_MODEL, (loc){0}, "`%.*s` is neither a file nor a built-in model", (int)MIN(n, 200), name);
  strbuf begin = {.a = ctx_arena(c)};
  u32 nbegin = 0;
  for (u32 i = 0; i < COUNT_OF(rows); i++)
    if (n && !strncasecmp(rows[i].name, name, n)) sb_fmt(&begin, "%s%s", nbegin++ ? ", " : "", rows[i].name);
  if (nbegin > 1 || (nbegin && !near.name))
    diag_hint(c, "built-in models whose names begin so: %s", sb_str(&begin));
  if (near.name) diag_hint(c, "did you mean `%s`?", near.name);
  if (!near.name && !begin.n)
    diag_hint(c, "`heddle show --list` lists the built-in models; files end in .onnx or .heddle");
  return NULL;
}

// Every layer is written out in main, so their number bounds the time that all else takes.
enum { LAYERS_MAX = 10000, COLUMN_MAX = INT32_MAX };

static bool override(ctx *c, front_row *r, const char *name, const char *text) {
  const struct {
    const char *key;
    i64 *to;
  } keys[] = {{"layers", &r->layers},     {"hidden", &r->hidden},       {"heads", &r->heads},
              {"kv_heads", &r->kv_heads}, {"head_dim", &r->head_dim},   {"ffn", &r->ffn},
              {"vocab", &r->vocab},       {"positions", &r->positions}, {"experts", &r->experts},
              {"topk", &r->topk},         {"window", &r->window},       {"msa", &r->msa},
              {"pair", &r->pair},         {"recycle", &r->recycle}};
  const i64 *given[COUNT_OF(keys)];
  u32 ngiven = 0;
  for (const char *s = text; *s;) {
    size_t n = strcspn(s, "=");
    char *end = NULL;
    i64 v = s[n] ? strtoll(s + n + 1, &end, 10) : 0;
    u32 k = 0;
    while (k < COUNT_OF(keys) && !(strlen(keys[k].key) == n && memcmp(keys[k].key, s, n) == 0)) k++;
    bool unused = k < COUNT_OF(keys) && *keys[k].to == 0;
    if (k == COUNT_OF(keys) || unused || v < 1 || (*end && *end != ',')) {
      diag(c, E_MODEL, (loc){0}, "`%s`: cannot use `%.*s`", name, (int)strcspn(s, ","), s);
      if (unused) diag_note(c, (loc){0}, "models of kind %s have no %s", r->kind, keys[k].key);
      strbuf names = {.a = ctx_arena(c)};
      for (u32 i = 0; i < COUNT_OF(keys); i++)
        if (*keys[i].to) sb_fmt(&names, "%s%s", names.n ? ", " : "", keys[i].key);
      diag_note(c, (loc){0}, "%s has %s", r->name, sb_str(&names));
      diag_hint(c, "give each field an integer above 0, such as `%s:%shidden=%d`", r->name,
                !r->layers || *r->kind == 'r' || *r->kind == 'v' || *r->kind == 's' ? "" : "layers=2,",
                r->heads ? 256 : 64);
      return false;
    }
    for (u32 i = 0; i < ngiven; i++)
      if (given[i] == keys[k].to) {
        diag(c, E_MODEL, (loc){0}, "`%s`: %s is given twice", name, keys[k].key);
        return false;
      }
    i64 most = keys[k].to == &r->layers ? LAYERS_MAX : COLUMN_MAX;
    if (v > most) {
      diag(c, E_LIMIT, loc_node(c, sym_of(c, r->name), (sym){0}, (sym){0}), "%s=%lld, but %s is at most %lld",
           keys[k].key, (long long)v, keys[k].key, (long long)most);
      diag_hint(c, "%s:%s=%lld", r->name, keys[k].key, (long long)most);
      return false;
    }
    *keys[k].to = v;
    given[ngiven++] = keys[k].to;
    s = *end ? end + 1 : end;
    if (ngiven == COUNT_OF(keys)) break;
  }
  // What follows from other columns follows them unless it was given itself.
  bool dim = false, ffn = false, kv = false, hidden = false;
  for (u32 i = 0; i < ngiven; i++) {
    dim |= given[i] == &r->head_dim;
    ffn |= given[i] == &r->ffn;
    kv |= given[i] == &r->kv_heads;
    hidden |= given[i] == &r->hidden;
  }
  const front_row was = *row_find(c, r->name, strlen(r->name));
  if (!kv && r->kv_heads)
    r->kv_heads = was.kv_heads == was.heads ? r->heads : gcd_i64(was.kv_heads, r->heads);
  if (!dim && r->heads && (hidden || r->heads != was.heads)) r->head_dim = r->hidden / r->heads;
  if (!ffn && r->ffn && hidden && was.hidden) r->ffn = MAX(was.ffn * r->hidden / was.hidden, 1);
  return true;
}

static bool row_check(ctx *c, const front_row *r) {
  if (!r->heads) return true;
  bool square = strcmp(r->kind, "llama") != 0 && strcmp(r->kind, "t5") != 0;
  if (square && r->heads * r->head_dim != r->hidden) {
    diag(c, E_DIVIDE, (loc){0}, "%s: hidden=%lld, but heads %lld x head_dim %lld = %lld", r->name,
         (long long)r->hidden, (long long)r->heads, (long long)r->head_dim,
         (long long)(r->heads * r->head_dim));
    diag_hint(c, "a multiple of the heads: %s:hidden=%lld", r->name,
              (long long)(MAX(r->hidden / r->heads, 1) * r->heads));
    return false;
  }
  if (r->kv_heads && r->heads % r->kv_heads) {
    diag(c, E_DIVIDE, (loc){0}, "%s: %lld query heads cannot share %lld key and value heads", r->name,
         (long long)r->heads, (long long)r->kv_heads);
    return false;
  }
  if (r->topk > r->experts) {
    diag(c, E_MODEL, (loc){0}, "%s: topk=%lld is more than experts=%lld", r->name, (long long)r->topk,
         (long long)r->experts);
    return false;
  }
  return true;
}

bool front_lacks_dropout(const char *name) {
  const size_t n = strcspn(name, ":");
  if (front_kind_of(name) != FRONT_FAMILY) return false;
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    if (strlen(rows[i].name) != n || memcmp(rows[i].name, name, n)) continue;
    u32 k = 0;
    while (strcmp(kinds[k].kind, rows[i].kind)) k++;
    return kinds[k].dropout;
  }
  return false;
}

static bool seq_check(ctx *c, const front_row *r, i64 seq) {
  if (seq <= COLUMN_MAX) return true;
  diag(c, E_LIMIT, loc_node(c, sym_of(c, r->name), (sym){0}, (sym){0}),
       "a sequence of %lld; at most %lld are possible", (long long)seq, (long long)COLUMN_MAX);
  return false;
}

// What main is given, in bytes: a sum that no i64 holds would make every figure after it wrong.
static bool size_check(fam *m) {
  const func_info *f = func_get(m->p, m->p->main);
  double bytes = 0;
  for (u32 i = 0; i < f->nparams; i++) {
    const shape *s = &val_type(m->p, f, i + 1)->s;
    double n = dtype_bytes(s->t);
    for (u32 d = 0; d < s->nd; d++) n *= (double)s->dim[d];
    bytes += n;
  }
  if (bytes < 0x1p60) return true;
  diag(m->p->c, E_LIMIT, m->b.where, "the parameters and inputs take %.3g bytes; at most %.3g are possible",
       bytes, 0x1p60);
  return false;
}

// Families with a vector for each position have as many of them as the sequence is long.
static void say_longer(ctx *c, const front_row *row, bool learned, i64 seq) {
  if (!learned || seq <= row->positions) return;
  diag(c, W_POSITIONS, loc_node(c, sym_of(c, row->name), (sym){0}, (sym){0}),
       "%s has %lld positions; for a sequence of %lld its table has as many", row->name,
       (long long)row->positions, (long long)seq);
  diag_hint(c, "%s:positions=%lld says that it is meant; --seq %lld is the longest that the model has",
            row->name, (long long)seq, (long long)row->positions);
}

prog *front_family(ctx *c, const char *name, const front_opts *o) {
  static const front_opts none;
  size_t n = strcspn(name, ":");
  const front_row *row = row_find(c, name, n);
  if (!row) return NULL;
  fam m = {.o = o ? o : &none, .v = *row};
  if (name[n] && !override(c, &m.v, name, name + n + 1)) return NULL;
  if (m.o->vocab && m.v.vocab) m.v.vocab = m.o->vocab;
  if (!row_check(c, &m.v) || !seq_check(c, row, m.o->seq)) return NULL;

  u32 k = 0;
  while (strcmp(kinds[k].kind, row->kind)) k++;
  m.batch = m.o->batch ? m.o->batch : kinds[k].batch;
  m.seq = m.o->seq ? m.o->seq : m.v.positions;
  say_longer(c, &m.v, kinds[k].learned, m.seq);
  m.v.positions = MAX(m.v.positions, m.seq);
  m.t = m.o->t ? m.o->t : DT_F32;
  m.p = prog_new(c);
  m.b.where = loc_node(c, sym_of(c, row->name), (sym){0}, (sym){0});
  kinds[k].make(&m);
  if (!m.b.failed && size_check(&m)) return m.p;
  prog_free(m.p);
  return NULL;
}
