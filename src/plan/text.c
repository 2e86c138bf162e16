// text.c - plans as YAML, docs/plans.md. What is printed reads back as the same plan; every mistake in a plan
// written by hand is located.
#include "plan/internal.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define STRIDE_MOST (1ll << 32) // times the parts of an axis, which INT32_MAX is above, it is still a number
static const char *const storage_name[STORAGE_KINDS] = {"weights", "gradients", "states"};

// ---- printing ---------------------------------------------------------------------------------------------
static bool follows(const sched_task *a, const sched_task *b, u32 by) { // b is a, `by` microbatches later
  return a->stage == b->stage && a->kind == b->kind && a->mb + by == b->mb;
}

// The longest repetition at v of a unit of `len` tasks whose microbatches grow by one each time.
static u32 repeats(const sched_task *v, u32 n, u32 len) {
  u32 r = 1;
  for (; (r + 1) * len <= n; r++)
    for (u32 k = 0; k < len; k++)
      if (!follows(&v[(r - 1) * len + k], &v[r * len + k], 1)) return r;
  return r;
}

static void put_task(strbuf *b, const sched_task *t) {
  sb_fmt(b, "%c%u.%u", sched_letter((task_kind)t->kind), t->stage, t->mb);
}

static void put_sequence(strbuf *b, const sched_seq *s) {
  for (u32 i = 0; i < s->n;) {
    u32 best = 1, times = 1;
    for (u32 len = 1; len <= 16 && i + len <= s->n; len++) {
      u32 r = repeats(s->v + i, s->n - i, len);
      if (r > 1 && r * len > best * times) best = len, times = r;
    }
    if (i) sb_char(b, ' ');
    if (times == 1) best = 1;
    if (best > 1) sb_char(b, '(');
    for (u32 k = 0; k < best; k++) {
      if (k) sb_char(b, ' ');
      put_task(b, &s->v[i + k]);
    }
    if (best > 1) sb_char(b, ')');
    if (times > 1) sb_fmt(b, "*%u", times);
    i += best * times;
  }
}

// A name as it is, or quoted where YAML would read something else.
static void put_name(const prog *src, sym name, strbuf *b) {
  const char *s = sym_str(src->c, name);
  bool plain = *s && !strchr("-.", *s);
  for (const char *c = s; *c && plain; c++) plain = isalnum((u8)*c) || strchr("_-.", *c);
  if (plain)
    sb_put(b, s);
  else
    sb_json_str(b, s);
}

static void put_instr(const prog *src, func f, u32 number_of, strbuf *b) {
  const func_info *fi = func_get(src, f);
  sb_put(b, "in: ");
  put_name(src, fi->name, b);
  sb_fmt(b, ", instr: %u, op: %s", number_of, op_row_of(fi->body.v[number_of - 1].op)->name);
}

static void put_size(const plan_axis *x, strbuf *b) {
  if (!x->shares) sb_fmt(b, "%u", x->size);
  for (u32 k = 0; x->shares && k < x->size; k++)
    sb_fmt(b, "%s%u%s", k ? ", " : "[", x->shares[k], k + 1 == x->size ? "]" : "");
}

static void put_axes(const prog *src, const plan *pn, bool temporal, strbuf *b) {
  bool any = false;
  for (u32 i = 0; i < pn->naxes; i++) {
    if (pn->axes[i].temporal != temporal) continue;
    sb_put(b, any ? ", " : temporal ? "time: {" : "axes: {");
    put_name(src, pn->axes[i].name, b);
    sb_put(b, ": ");
    put_size(&pn->axes[i], b);
    any = true;
  }
  if (any) sb_put(b, "}\n");
}

static void put_trans(const prog *src, const plan *pn, strbuf *b) {
  if (pn->ntrans) sb_put(b, "trans:\n");
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    sb_put(b, "  - {");
    if (t->instr) {
      put_instr(src, t->fn, t->instr, b);
      sb_fmt(b, ", %s: %u", t->result ? "result" : "operand", t->index);
    } else {
      sb_put(b, "input: ");
      sb_json_str(b, sym_str(src->c, func_get(src, t->fn)->values.v[t->index + 1].name));
    }
    sb_fmt(b, ", dim: %u, axis: ", t->dim);
    put_name(src, pn->axes[t->axis - 1].name, b);
    if (t->stride) sb_fmt(b, ", stride: %lld", (long long)t->stride);
    if (t->uneven) sb_put(b, ", uneven: true");
    sb_put(b, t->weak ? ", weak: true}\n" : "}\n");
  }
}

static void put_meshes(const prog *src, const plan *pn, strbuf *b) {
  sb_put(b, "meshes:\n");
  for (u32 i = 0; i < pn->nmeshes; i++) {
    const plan_mesh *m = &pn->meshes[i];
    sb_put(b, "  ");
    put_name(src, m->name, b);
    sb_put(b, ": {axes: [");
    for (u32 k = 0; k < m->naxes; k++) {
      if (k) sb_put(b, ", ");
      put_name(src, pn->axes[m->axis[k] - 1].name, b);
    }
    sb_put(b, "]");
    if (m->first) sb_fmt(b, ", first: %u", m->first);
    for (u32 k = 0; k < m->nranks; k++) sb_fmt(b, "%s%u", k ? ", " : ", ranks: [", m->ranks[k]);
    sb_put(b, m->nranks ? "]}\n" : "}\n");
  }
}

static void put_segments(const prog *src, const plan *pn, strbuf *b) {
  sb_put(b, "segments:\n");
  for (u32 i = 0; i < pn->nsegments; i++) {
    const plan_segment *s = &pn->segments[i];
    sb_fmt(b, "  - {from: %u, to: %u, on: ", s->from, s->to);
    put_name(src, pn->meshes[s->on.mesh].name, b);
    for (u32 k = 0; k < s->on.nfix; k++) {
      sb_put(b, k ? ", " : ", at: {");
      put_name(src, pn->axes[s->on.fix[k].axis - 1].name, b);
      sb_fmt(b, ": %u", s->on.fix[k].at);
    }
    sb_put(b, s->on.nfix ? "}}\n" : "}\n");
  }
}

void plan_print(const prog *src, const plan *pn, strbuf *b) {
  sb_put(b, "heddle-plan: 1\nname: ");
  sb_json_str(b, sym_str(src->c, pn->name));
  sb_char(b, '\n');
  if (pn->model) plan_model_print(src, pn->model, b);
  if (pn->train) {
    const optim_opts *o = &pn->optim;
    bool masters = false;
    const func_info *m = func_get(src, src->main);
    for (u32 k = 0; k < m->nparams; k++)
      masters |= m->params.v[k].r == ROLE_WEIGHT && optim_has_master(o, val_type(src, m, k + 1)->s.t);
    sb_fmt(b,
           "train: {optimizer: %s, lr: %.17g, momentum: %.17g, beta1: %.17g, beta2: %.17g, eps: %.17g, "
           "weight-decay: %.17g%s}\n",
           optim_name(o->kind), o->lr, o->momentum, o->beta1, o->beta2, o->eps, o->weight_decay,
           masters ? ", master-weights: true" : "");
  }
  put_axes(src, pn, false, b);
  put_axes(src, pn, true, b);
  put_meshes(src, pn, b);
  put_segments(src, pn, b);
  put_trans(src, pn, b);
  for (u32 w = 0, any = 0; w < STORAGE_KINDS; w++) {
    for (u32 k = 0; k < pn->nstorage[w]; k++) {
      if (!k) sb_fmt(b, "%s%s: [", any++ ? ", " : "rest: {", storage_name[w]);
      if (k) sb_put(b, ", ");
      put_name(src, pn->axes[pn->storage[w][k] - 1].name, b);
      if (k + 1 == pn->nstorage[w]) sb_put(b, "]");
    }
    if (w + 1 == STORAGE_KINDS && any) sb_put(b, "}\n");
  }
  if (pn->wide_gradients) sb_put(b, "gradient-type: f32\n");
  if (pn->batchnorm_groups) sb_fmt(b, "batchnorm-groups: %u\n", pn->batchnorm_groups);
  if (pn->nrecompute) sb_put(b, "recompute:\n");
  for (u32 i = 0; i < pn->nrecompute; i++) {
    sb_put(b, "  - {");
    put_instr(src, pn->recompute[i].fn, pn->recompute[i].instr, b);
    sb_put(b, "}\n");
  }
  if (pn->input_gradients) sb_put(b, "input-gradients: true\n");
  if (pn->keep_gradients) sb_put(b, "keep-gradients: true\n");
  if (pn->send_stream.i) {
    sb_put(b, "send-stream: ");
    put_name(src, pn->send_stream, b);
    sb_char(b, '\n');
    if (pn->send_channels) sb_fmt(b, "send-channels: %u\n", pn->send_channels);
  }
  if (pn->rendezvous) sb_put(b, "buffers: rendezvous\n");
  if (plan_schedule(pn)) sb_fmt(b, "schedule: %s\n", plan_schedule(pn));
  if (plan_schedule(pn) && pn->made.shape.group) sb_fmt(b, "group: %u\n", pn->made.shape.group);
  sb_put(b, "order:\n");
  for (u32 i = 0; i < pn->nseqs; i++) {
    sb_put(b, "  - \"");
    put_sequence(b, &pn->seqs[i]);
    sb_put(b, "\"\n");
  }
}

// ---- reading ----------------------------------------------------------------------------------------------
typedef struct {
  arena *a;
  const prog *src;
  ctx *c;
  plan *pn;
  bool failed;
} reader;

static void bad(reader *r, const ynode *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void bad(reader *r, const ynode *at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char text[512];
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(r->c, E_PLAN, at ? at->at : (loc){0}, "%s", text);
  r->failed = true;
}

static const ynode *want(reader *r, const ynode *y, const char *key, int kind) {
  const ynode *v = yaml_get(y, key);
  static const char *const kinds[] = {"a scalar", "a list", "a map"};
  if (!v)
    bad(r, y, "`%s` is missing", key);
  else if ((int)v->kind != kind)
    bad(r, v, "`%s` must be %s", key, kinds[kind]), v = NULL;
  return v;
}

static i64 number(reader *r, const ynode *y, i64 least, i64 most) {
  char *end;
  errno = 0;
  long long v = y && y->kind == Y_SCALAR ? strtoll(y->str, &end, 10) : 0;
  if (!y || y->kind != Y_SCALAR || end == y->str || *end || errno || v < least || v > most) {
    if (y)
      bad(r, y, "expected a number from %lld to %lld, found `%s`", (long long)least, (long long)most,
          y->kind == Y_SCALAR ? y->str : "...");
    r->failed = true;
    return least;
  }
  return v;
}
static i64 number_at(reader *r, const ynode *y, const char *key, i64 least, i64 most, i64 absent) {
  const ynode *v = yaml_get(y, key);
  if (v) return number(r, v, least, most);
  if (absent < least) bad(r, y, "`%s` is missing", key);
  return absent < least ? least : absent;
}

static u8 axis_of(reader *r, const ynode *y) {
  if (!y || y->kind != Y_SCALAR) {
    if (y) bad(r, y, "expected the name of an axis");
    r->failed = true;
    return 1;
  }
  for (u32 i = 0; i < r->pn->naxes; i++)
    if (!strcmp(sym_str(r->c, r->pn->axes[i].name), y->str)) return (u8)(i + 1);
  bad(r, y, "unknown axis `%s`", y->str);
  return 1;
}

static void known_keys(reader *r, const ynode *y, const char *const *keys) {
  for (u32 i = 0; y && y->kind == Y_MAP && i < y->n; i++) {
    u32 k = 0;
    while (keys[k] && strcmp(keys[k], y->key[i]->str)) k++;
    if (keys[k]) continue;
    bad(r, y->key[i], "unknown key `%s`", y->key[i]->str);
    strbuf names = {.a = r->a};
    for (k = 0; keys[k]; k++) sb_fmt(&names, "%s%s", k ? " " : "", keys[k]);
    diag_hint(r->c, "known keys: %s", sb_str(&names));
  }
}

// Its size, or a list of shares, one for each coordinate.
static plan_axis read_size(reader *r, const ynode *y, sym name, bool temporal) {
  if (y->kind != Y_SEQ || temporal || !y->n)
    return (plan_axis){.name = name, .size = (u32)number(r, y, 1, UINT16_MAX), .temporal = temporal};
  u32 *shares = NEWN(r->a, u32, y->n);
  bool equal = true;
  u64 sum = 0;
  for (u32 k = 0; k < y->n; k++) {
    shares[k] = (u32)number(r, y->item[k], 1, CHOICE_MOST);
    equal = equal && shares[k] == shares[0];
    sum += shares[k];
  }
  if (y->n > UINT16_MAX || sum > INT32_MAX) bad(r, y, "shares add up to more than %d", INT32_MAX);
  return (plan_axis){.name = name, .size = y->n, .shares = equal ? NULL : shares};
}

static void read_axes(reader *r, const ynode *top, const char *key, bool temporal) {
  const ynode *y = yaml_get(top, key);
  if (!y) return;
  if (y->kind != Y_MAP) {
    bad(r, y, "`%s` must be a map from names to sizes", key);
    return;
  }
  plan_axis *v = NEWN(r->a, plan_axis, r->pn->naxes + y->n + 1);
  if (r->pn->naxes) memcpy(v, r->pn->axes, sizeof *v * r->pn->naxes);
  r->pn->axes = v;
  for (u32 i = 0; i < y->n; i++) {
    if (r->pn->naxes >= AXES_MAX - 1) {
      bad(r, y, "more than %d axes", AXES_MAX - 1);
      return;
    }
    sym name = sym_of(r->c, y->key[i]->str);
    for (u32 k = 0; k < r->pn->naxes; k++)
      if (v[k].name.i == name.i) bad(r, y->key[i], "axis `%s` is defined twice", y->key[i]->str);
    v[r->pn->naxes++] = read_size(r, y->item[i], name, temporal);
    if (temporal) r->pn->time = (u8)r->pn->naxes;
  }
  if (temporal && y->n > 1) bad(r, y, "at most one axis in time (microbatches)");
}

static void read_meshes(reader *r, const ynode *top) {
  static const char *const keys[] = {"axes", "first", "ranks", NULL};
  const ynode *y = want(r, top, "meshes", Y_MAP);
  if (!y) return;
  r->pn->nmeshes = y->n;
  r->pn->meshes = ZNEWN(r->a, plan_mesh, y->n + 1);
  for (u32 i = 0; i < y->n; i++) {
    plan_mesh *m = &r->pn->meshes[i];
    m->name = sym_of(r->c, y->key[i]->str);
    m->at = y->key[i]->at;
    known_keys(r, y->item[i], keys);
    const ynode *ax = want(r, y->item[i], "axes", Y_SEQ), *ranks = yaml_get(y->item[i], "ranks");
    if (!ax) continue;
    if (ax->n > MESH_AXES) {
      bad(r, ax, "more than %d axes in one mesh", MESH_AXES);
      continue;
    }
    u64 size = 1;
    for (u32 k = 0; k < ax->n; k++) {
      m->axis[k] = axis_of(r, ax->item[k]);
      size *= r->pn->naxes ? r->pn->axes[m->axis[k] - 1].size : 1;
      if (size > 1u << 24) size = 1u << 24;
      if (r->pn->naxes && r->pn->axes[m->axis[k] - 1].temporal)
        bad(r, ax->item[k], "an axis in time cannot be part of a mesh");
    }
    m->naxes = ax->n;
    m->first = (u32)number_at(r, y->item[i], "first", 0, 1 << 24, 0);
    if (!ranks) continue;
    if (ranks->kind != Y_SEQ || ranks->n != size) {
      bad(r, ranks, "expected a list of %llu ranks", (unsigned long long)size);
      continue;
    }
    u32 *v = NEWN(r->a, u32, ranks->n);
    for (u32 k = 0; k < ranks->n; k++) v[k] = (u32)number(r, ranks->item[k], 0, 1 << 24);
    m->ranks = v, m->nranks = ranks->n;
  }
}

static void read_segments(reader *r, const ynode *top) {
  static const char *const keys[] = {"from", "to", "on", "at", NULL};
  const ynode *y = want(r, top, "segments", Y_SEQ);
  u32 nbody = func_get(r->src, r->src->main)->body.n;
  if (!y) return;
  if (!y->n || y->n > 4096) {
    bad(r, y, "from 1 to 4096 segments, found %u", y->n);
    return;
  }
  r->pn->nsegments = y->n;
  r->pn->segments = ZNEWN(r->a, plan_segment, y->n);
  for (u32 i = 0; i < y->n; i++) {
    plan_segment *s = &r->pn->segments[i];
    s->at = y->item[i]->at;
    known_keys(r, y->item[i], keys);
    s->from = (u32)number_at(r, y->item[i], "from", 1, nbody, 0);
    s->to = (u32)number_at(r, y->item[i], "to", 1, nbody, 0);
    const ynode *on = want(r, y->item[i], "on", Y_SCALAR), *at = yaml_get(y->item[i], "at");
    if (!on) continue;
    while (s->on.mesh < r->pn->nmeshes && strcmp(sym_str(r->c, r->pn->meshes[s->on.mesh].name), on->str))
      s->on.mesh++;
    if (s->on.mesh == r->pn->nmeshes) {
      bad(r, on, "unknown mesh `%s`", on->str);
      s->on.mesh = 0;
    }
    if (!at) continue;
    if (at->kind != Y_MAP || at->n > MESH_AXES) {
      bad(r, at, "`at` must be a map from axes to coordinates");
      continue;
    }
    for (u32 k = 0; k < at->n && r->pn->naxes; k++) {
      u8 ax = axis_of(r, at->key[k]);
      s->on.fix[s->on.nfix++] = (plan_fix){ax, (u32)number(r, at->item[k], 0, r->pn->axes[ax - 1].size - 1)};
    }
  }
}

// {in: FUNCTION, instr: N, op: NAME}: an instruction of the model; op guards against a plan made for another
// model.
static bool read_instr(reader *r, const ynode *y, func *f, u32 *no) {
  const ynode *in = want(r, y, "in", Y_SCALAR), *op = yaml_get(y, "op");
  if (!in) return false;
  *f = func_find(r->src, sym_of(r->c, in->str));
  if (!f->i) {
    bad(r, in, "the model has no function `%s`: the plan was made for another model", in->str);
    diag_hint(r->c, "the first line names that model if `heddle plan -o` wrote the plan");
    return false;
  }
  const func_info *fi = func_get(r->src, *f);
  *no = (u32)number_at(r, y, "instr", 1, fi->body.n, 0);
  if (r->failed) return false;
  const char *name = op_row_of(fi->body.v[*no - 1].op)->name;
  if (op && (op->kind != Y_SCALAR || strcmp(op->str, name))) {
    bad(r, op, "instruction %u of %s is %s, not %s: the plan was made for another model", *no, in->str, name,
        op->kind == Y_SCALAR ? op->str : "...");
    diag_hint(r->c, "the first line names that model if `heddle plan -o` wrote the plan");
    return false;
  }
  return true;
}

static bool truth(reader *r, const ynode *y) {
  if (!y) return false;
  if (y->kind == Y_SCALAR && !strcmp(y->str, "true")) return true;
  if (y->kind != Y_SCALAR || strcmp(y->str, "false")) bad(r, y, "expected true or false");
  return false;
}

static value trans_value(const reader *r, const plan_trans *t) {
  const func_info *f = func_get(r->src, t->fn);
  const instr *in = t->instr ? &f->body.v[t->instr - 1] : NULL;
  return !in ? t->index + 1 : t->result ? in->res + t->index : opd_of(f, in, t->index);
}

static const char *trans_name(const reader *r, const plan_trans *t) {
  const func_info *f = func_get(r->src, t->fn);
  if (!t->instr) return arena_printf(r->a, "input %s", sym_str(r->c, f->values.v[t->index + 1].name));
  return arena_printf(r->a, "%s %u of %s", t->result ? "result" : "operand", t->index,
                      op_row_of((opcode)f->body.v[t->instr - 1].op)->name);
}

// Is there such an operand or result, and is it a tensor?
static bool names_tensor(reader *r, const plan_trans *t, const ynode *at) {
  const func_info *f = func_get(r->src, t->fn);
  const instr *in = &f->body.v[t->instr - 1];
  const char *name = op_row_of((opcode)in->op)->name;
  u32 n = t->result ? in->nres : instr_nopd(f, in);
  if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack)
    bad(r, at, "%s itself cannot be split: name instructions of the function it calls", name);
  else if (t->index >= n)
    bad(r, at, "%s: %u, but %s has %u (from 0)", t->result ? "result" : "operand", t->index, name, n);
  return !r->failed;
}

static void read_trans(reader *r, const ynode *top) {
  static const char *const keys[] = {"input", "in",   "instr",  "op",   "operand", "result",
                                     "dim",   "axis", "stride", "weak", "uneven",  NULL};
  const ynode *y = yaml_get(top, "trans");
  if (!y) return;
  if (y->kind != Y_SEQ) {
    bad(r, y, "`trans` must be a list");
    return;
  }
  const func_info *m = func_get(r->src, r->src->main);
  r->pn->trans = ZNEWN(r->a, plan_trans, y->n + 1);
  for (u32 i = 0; i < y->n; i++) {
    const ynode *e = y->item[i], *input = yaml_get(e, "input");
    plan_trans t = {
        .weak = truth(r, yaml_get(e, "weak")), .uneven = truth(r, yaml_get(e, "uneven")), .at = e->at};
    known_keys(r, e, keys);
    if (input) {
      if (input->kind != Y_SCALAR) {
        bad(r, input, "`input` must be a scalar");
        continue;
      }
      t.fn = r->src->main;
      while (t.index < m->nparams && strcmp(sym_str(r->c, m->values.v[t.index + 1].name), input->str))
        t.index++;
      if (t.index == m->nparams) {
        bad(r, input, "the model has no input `%s`", input->str);
        continue;
      }
    } else {
      if (!read_instr(r, e, &t.fn, &t.instr)) continue;
      t.result = yaml_get(e, "result") != NULL;
      const char *key = t.result ? "result" : "operand";
      t.index = (u32)number_at(r, e, key, 0, 255, -1);
      if (!r->failed && !names_tensor(r, &t, yaml_get(e, key))) continue;
    }
    t.dim = (u8)number_at(r, e, "dim", 0, DIMS_MAX - 1, -1);
    t.axis = axis_of(r, want(r, e, "axis", Y_SCALAR));
    t.stride = number_at(r, e, "stride", 0, STRIDE_MOST, 0);
    if (t.uneven && (t.stride || !t.instr))
      bad(r, e, "`uneven` is for instructions and takes no stride: pieces are as large as they can be");
    if (r->failed) continue;
    const shape *s = &val_type(r->src, func_get(r->src, t.fn), trans_value(r, &t))->s;
    if (t.dim >= s->nd)
      bad(r, yaml_get(e, "dim"), "dim: %u, but %s has %u dimensions", t.dim, trans_name(r, &t), s->nd);
    r->pn->trans[r->pn->ntrans++] = t;
  }
}

// F0.0*4 (F0.4 B0.0)*28 B0.28*4
typedef struct {
  const char *at;
  const ynode *y;
  VEC(sched_task) out;
  u32 total;
} tasks;

static u32 digits(reader *r, tasks *t, u32 most) {
  u32 v = 0, n = 0;
  for (; *t->at >= '0' && *t->at <= '9'; t->at++, n++) v = v > most ? v : v * 10 + (u32)(*t->at - '0');
  if (!n || v > most) bad(r, t->y, "expected a number up to %u at `%.12s`", most, t->at);
  return v;
}

static void read_unit(reader *r, tasks *t) {
  bool paren = *t->at == '(';
  if (paren) t->at++;
  u32 first = t->out.n;
  do {
    while (*t->at == ' ') t->at++;
    u32 kind = 0;
    while (kind < TASK_KINDS && sched_letter((task_kind)kind) != *t->at) kind++;
    if (kind == TASK_KINDS) {
      bad(r, t->y, "expected a task like F0.3, B0.3, I0.3 or W0.3 at `%.12s`", t->at);
      return;
    }
    t->at++;
    u32 sg = digits(r, t, 4095);
    if (*t->at != '.') {
      bad(r, t->y, "expected `.` and a microbatch at `%.12s`", t->at);
      return;
    }
    t->at++;
    u32 mb = digits(r, t, 1 << 20);
    *vec_push(r->a, &t->out) = (sched_task){.stage = (u16)sg, .kind = (u8)kind, .mb = mb};
    while (*t->at == ' ' && paren) t->at++;
  } while (!r->failed && paren && *t->at != ')');
  if (paren && *t->at == ')') t->at++;
  u32 len = t->out.n - first, times = 1;
  if (*t->at == '*') {
    t->at++;
    times = digits(r, t, 1 << 20);
  }
  if (r->failed) return;
  if ((u64)len * times + t->out.n > 1u << 24) {
    bad(r, t->y, "more than %u tasks", 1u << 24);
    return;
  }
  for (u32 i = 1; i < times; i++)
    for (u32 k = 0; k < len; k++) {
      sched_task u = t->out.v[first + (i - 1) * len + k];
      u.mb++;
      *vec_push(r->a, &t->out) = u;
    }
}

static void read_order(reader *r, const ynode *top) {
  const ynode *y = want(r, top, "order", Y_SEQ);
  if (!y) return;
  r->pn->order_at = y->at;
  r->pn->nseqs = y->n;
  r->pn->seqs = ZNEWN(r->a, sched_seq, y->n + 1);
  loc *at = NEWN(r->a, loc, y->n + 1);
  r->pn->seq_at = at;
  for (u32 i = 0; i < y->n && !r->failed; i++) {
    at[i] = y->item[i]->at;
    if (y->item[i]->kind != Y_SCALAR) {
      bad(r, y->item[i], "expected the tasks of one place as text");
      return;
    }
    tasks t = {.at = y->item[i]->str, .y = y->item[i]};
    for (;;) {
      while (*t.at == ' ') t.at++;
      if (!*t.at || r->failed) break;
      read_unit(r, &t);
    }
    r->pn->seqs[i] = (sched_seq){t.out.n, t.out.v};
  }
}

// What the order is called, where it is that: by `schedule`, or by a strategy that is the plan's name. Such a name
// keeps nothing of the order if it is another one.
static void name_order(reader *r, const ynode *y, const sched_row *row, u32 grouped) {
  strategy_set set;
  strategy s;
  const u32 before = diag_count(r->c);
  const bool named = r->pn->name.i && strategy_parse(r->c, r->a, sym_str(r->c, r->pn->name), &set) &&
                     strategy_one(r->c, &set, &s);
  diag_truncate(r->c, before);
  if (!y && named) row = sched_row_of(s.schedule.n), grouped = s.group.n; // NULL: of a file
  if (!row) return;
  loc at = y ? y->at : (loc){0};
  const char *why = plan_name_schedule(r->c, r->a, r->pn, row, grouped, &at);
  if (!why) return;
  if (y) {
    diag(r->c, W_SCHEDULE, at, "the order is not that of schedule %s: %s", row->name, why);
    if (at.i != y->at.i) diag_note(r->c, y->at, "the plan says so here");
    diag_hint(r->c, "leave out `schedule` if the order is the plan's own");
  }
  strbuf b = {.a = r->a};
  if (!named) return;
  s = strategy_without(&s, CHOICE_OF_ORDER);
  strategy_print(&s, &b);
  sb_put(&b, ", an order of its own");
  r->pn->name = sym_of(r->c, sb_str(&b));
}

static void read_schedule(reader *r, const ynode *top) {
  const ynode *y = yaml_get(top, "schedule"), *grouped = yaml_get(top, "group");
  if (grouped && !y) bad(r, grouped, "`group` is for a `schedule`");
  const u32 of = (u32)number_at(r, top, "group", 0, 1 << 20, 0);
  const sched_row *row = y && y->kind == Y_SCALAR ? sched_row_find(y->str) : NULL;
  if (y && !row) {
    bad(r, y, "unknown schedule `%s`", y->kind == Y_SCALAR ? y->str : "...");
    strbuf names = {.a = r->a};
    for (u32 k = 0; sched_row_of(k); k++) sb_fmt(&names, "%s%s", k ? " " : "", sched_row_of(k)->name);
    diag_hint(r->c, "known schedules: %s", sb_str(&names));
  }
  if (!r->failed) name_order(r, y, row, of);
}

static double real_at(reader *r, const ynode *y, const char *key, double absent) {
  const ynode *v = yaml_get(y, key);
  if (!v) return absent;
  char *end;
  double d = v->kind == Y_SCALAR ? strtod(v->str, &end) : 0;
  if (v->kind != Y_SCALAR || end == v->str || *end || d != d) bad(r, v, "`%s` must be a number", key);
  return d;
}

static void read_train(reader *r, const ynode *top) {
  static const char *const keys[] = {"optimizer", "lr",           "momentum",       "beta1", "beta2",
                                     "eps",       "weight-decay", "master-weights", NULL};
  const ynode *y = yaml_get(top, "train");
  if (!y) return;
  known_keys(r, y, keys);
  const ynode *kind = y->kind == Y_MAP ? want(r, y, "optimizer", Y_SCALAR) : NULL;
  optimizer k;
  if (!kind || !optim_find(kind->str, &k)) {
    bad(r, kind ? kind : y, "`train` names an optimizer: sgd, momentum, adam, adamw or adafactor");
    return;
  }
  optim_opts *o = &r->pn->optim, d = optim_default(k);
  *o = (optim_opts){k,
                    truth(r, yaml_get(y, "master-weights")),
                    real_at(r, y, "lr", d.lr),
                    real_at(r, y, "momentum", d.momentum),
                    real_at(r, y, "beta1", d.beta1),
                    real_at(r, y, "beta2", d.beta2),
                    real_at(r, y, "eps", d.eps),
                    real_at(r, y, "weight-decay", d.weight_decay)};
  r->pn->train = true;
}

static void read_storage(reader *r, const ynode *top) {
  static const char *const keys[] = {"weights", "gradients", "states", NULL};
  const ynode *y = yaml_get(top, "rest");
  if (!y) return;
  if (y->kind != Y_MAP) bad(r, y, "`rest` must be a map from weights, gradients and states to lists of axes");
  known_keys(r, y, keys);
  for (u32 w = 0; w < STORAGE_KINDS; w++) {
    const ynode *v = yaml_get(y, storage_name[w]);
    if (!v) continue;
    if (v->kind != Y_SEQ || v->n > PLAN_STORED) {
      bad(r, v, "expected a list of up to %d axes", PLAN_STORED);
      continue;
    }
    for (u32 k = 0; k < v->n; k++) {
      u8 axis = axis_of(r, v->item[k]);
      if (r->failed) return;
      const char *name = sym_str(r->c, r->pn->axes[axis - 1].name);
      if (r->pn->axes[axis - 1].temporal)
        bad(r, v->item[k], "axis `%s` is in time (microbatches): storage cannot be sharded over it", name);
      for (u32 j = 0; j < k; j++)
        if (r->pn->storage[w][j] == axis) bad(r, v->item[k], "axis `%s` is listed twice", name);
      r->pn->storage[w][r->pn->nstorage[w]++] = axis;
    }
  }
}

static void read_recompute(reader *r, const ynode *top) {
  const ynode *y = yaml_get(top, "recompute");
  if (!y) return;
  if (y->kind != Y_SEQ) {
    bad(r, y, "`recompute` must be a list of instructions");
    return;
  }
  r->pn->recompute = arena_alloc(r->a, sizeof *r->pn->recompute * (y->n + 1));
  for (u32 i = 0; i < y->n; i++) {
    func f;
    u32 instr_no;
    if (!read_instr(r, y->item[i], &f, &instr_no)) continue;
    r->pn->recompute[r->pn->nrecompute].fn = f;
    r->pn->recompute[r->pn->nrecompute++].instr = instr_no;
  }
}

static sym word(reader *r, const ynode *y, const char *key) {
  if (y->kind == Y_SCALAR) return sym_of(r->c, y->str);
  bad(r, y, "`%s` must be a scalar", key);
  return (sym){0};
}

// Without a fingerprint any model will do.
static bool read_model(reader *r, const ynode *top, const char *model, const char *text, size_t n) {
  static const char *const keys[] = {"name", "instructions", "weights", "input", "program", NULL};
  const ynode *y = yaml_get(top, "model");
  if (!y) return true;
  if (y->kind != Y_MAP) {
    bad(r, y, "`model` must be a map");
    return false;
  }
  known_keys(r, y, keys);
  if (r->failed) return false;
  if (!yaml_get(y, "program")) return true;
  const ynode *name = want(r, y, "name", Y_SCALAR);
  if (!name || !plan_model_check(r->a, r->src, model, y, text, n)) return !(r->failed = true);
  r->pn->model = name->str;
  return true;
}

plan *plan_parse(arena *a, const prog *src, const char *model, sym file, const char *text, size_t n) {
  static const char *const keys[] = {"heddle-plan",
                                     "name",
                                     "model",
                                     "train",
                                     "axes",
                                     "time",
                                     "meshes",
                                     "segments",
                                     "trans",
                                     "rest",
                                     "batchnorm-groups",
                                     "gradient-type",
                                     "recompute",
                                     "input-gradients",
                                     "keep-gradients",
                                     "send-stream",
                                     "send-channels",
                                     "buffers",
                                     "schedule",
                                     "group",
                                     "order",
                                     NULL};
  reader r = {a, src, src->c, NEW(a, plan), false};
  const ynode *y = yaml_parse(src->c, a, file, text, n);
  if (!y) return NULL;
  if (y->kind != Y_MAP) {
    bad(&r, y, "a plan is a map that starts with `heddle-plan: 1`");
    return NULL;
  }
  r.pn->at = y->at;
  known_keys(&r, y, keys);
  if (number_at(&r, y, "heddle-plan", 1, INT64_MAX, 0) > 1)
    bad(&r, yaml_get(y, "heddle-plan"), "this version reads `heddle-plan: 1`");
  if (!read_model(&r, y, model, text, n)) return NULL;
  const ynode *name = yaml_get(y, "name"), *send = yaml_get(y, "send-stream");
  if (name) r.pn->name = word(&r, name, "name");
  if (send) r.pn->send_stream = word(&r, send, "send-stream");
  r.pn->send_channels = (u8)number_at(&r, y, "send-channels", 0, 4, 0);
  if (r.pn->send_channels == 3) bad(&r, yaml_get(y, "send-channels"), "`send-channels` is 1, 2 or 4");
  const ynode *buffers = yaml_get(y, "buffers");
  r.pn->rendezvous = buffers && buffers->kind == Y_SCALAR && !strcmp(buffers->str, "rendezvous");
  if (buffers && !r.pn->rendezvous) bad(&r, buffers, "`buffers` is rendezvous; without it no sender waits");
  if (r.pn->rendezvous && send)
    bad(&r, buffers, "`buffers: rendezvous` is of sends that block: without `send-stream`");
  r.pn->input_gradients = truth(&r, yaml_get(y, "input-gradients"));
  r.pn->keep_gradients = truth(&r, yaml_get(y, "keep-gradients"));
  const ynode *wide = yaml_get(y, "gradient-type");
  r.pn->wide_gradients = wide && wide->kind == Y_SCALAR && !strcmp(wide->str, "f32");
  if (wide && !r.pn->wide_gradients) bad(&r, wide, "`gradient-type` is f32; without it that of each weight");
  const ynode *groups = yaml_get(y, "batchnorm-groups");
  if (groups) r.pn->batchnorm_groups = (u32)number(&r, groups, 1, 1 << 20), r.pn->groups_at = groups->at;
  read_axes(&r, y, "axes", false);
  read_axes(&r, y, "time", true);
  if (!r.pn->naxes) bad(&r, y, "`axes` is missing");
  if (r.failed) return NULL;
  read_train(&r, y);
  read_meshes(&r, y);
  if (!r.failed) read_segments(&r, y);
  if (!r.failed) read_trans(&r, y);
  read_storage(&r, y);
  read_recompute(&r, y);
  read_order(&r, y);
  read_schedule(&r, y);
  return r.failed ? NULL : r.pn;
}
