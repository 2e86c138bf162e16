// text.c - plans read from YAML, docs/plans.md: every mistake in a plan written by hand is located. print.c writes
// them.
#include "plan/internal.h"
#include <errno.h>
#include <stdlib.h>

#define STRIDE_MOST (1ll << 32) // times the parts of an axis, which INT32_MAX is above, it is still a number

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

// MESH, and coordinates on it.
static void read_submesh(reader *r, const ynode *y, plan_submesh *to) {
  const ynode *on = want(r, y, "on", Y_SCALAR), *at = yaml_get(y, "at");
  if (!on) return;
  while (to->mesh < r->pn->nmeshes && strcmp(sym_str(r->c, r->pn->meshes[to->mesh].name), on->str))
    to->mesh++;
  if (to->mesh == r->pn->nmeshes) {
    bad(r, on, "unknown mesh `%s`", on->str);
    to->mesh = 0;
  }
  if (!at) return;
  if (at->kind != Y_MAP || at->n > MESH_AXES) {
    bad(r, at, "`at` must be a map from axes to coordinates");
    return;
  }
  for (u32 k = 0; k < at->n && r->pn->naxes; k++) {
    u8 ax = axis_of(r, at->key[k]);
    to->fix[to->nfix++] = (plan_fix){ax, (u32)number(r, at->item[k], 0, r->pn->axes[ax - 1].size - 1)};
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
    read_submesh(r, y->item[i], &s->on);
  }
}

static void read_replicas(reader *r, const ynode *top) {
  static const char *const keys[] = {"microbatches", "segments", NULL}, *const on[] = {"on", "at", NULL};
  const ynode *y = yaml_get(top, "replicas");
  if (!y) return;
  if (y->kind != Y_SEQ || !y->n || y->n >= UINT8_MAX) {
    bad(r, y, "`replicas` must be a list of 1 to %d replicas", UINT8_MAX - 1);
    return;
  }
  r->pn->nreplicas = y->n;
  r->pn->replicas = ZNEWN(r->a, plan_replica, y->n);
  for (u32 i = 0; i < y->n; i++) {
    plan_replica *x = &r->pn->replicas[i];
    known_keys(r, y->item[i], keys);
    x->at = y->item[i]->at;
    x->micro = (u32)number_at(r, y->item[i], "microbatches", 1, UINT16_MAX, 0);
    const ynode *s = yaml_get(y->item[i], "segments");
    if (!i && s) bad(r, s, "the first replica lies where the plan's `segments` say");
    if (!i) continue;
    s = want(r, y->item[i], "segments", Y_SEQ);
    if (s && s->n != r->pn->nsegments)
      bad(r, s, "a replica says where each of the %u segments lies, found %u", r->pn->nsegments, s->n),
          s = NULL;
    plan_submesh *v = ZNEWN(r->a, plan_submesh, r->pn->nsegments + 1);
    x->on = v;
    for (u32 k = 0; s && k < s->n; k++) known_keys(r, s->item[k], on), read_submesh(r, s->item[k], &v[k]);
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

// `whole: true` or `sum: true`: no dimension is split. False: neither is said.
static bool read_unsplit(reader *r, const ynode *e, plan_trans *t) {
  static const char *const other[] = {"operand", "result", "dim", "stride", "weak", "uneven"};
  const bool whole = truth(r, yaml_get(e, "whole")), sum = truth(r, yaml_get(e, "sum"));
  if (!whole && !sum) return false;
  const char *word = whole ? "whole" : "sum";
  if (whole && sum) bad(r, yaml_get(e, "sum"), "an instruction is `whole` over an axis or passes a `sum`");
  for (u32 k = 0; k < COUNT_OF(other); k++)
    if (yaml_get(e, other[k]))
      bad(r, yaml_get(e, other[k]), "`%s` splits no dimension: it takes no `%s`", word, other[k]);
  t->dim = whole ? TRANS_WHOLE : TRANS_SUM;
  t->axis = axis_of(r, want(r, e, "axis", Y_SCALAR));
  if (!r->failed) r->pn->trans[r->pn->ntrans++] = *t;
  return true;
}

static void read_trans(reader *r, const ynode *top) {
  static const char *const keys[] = {"input", "in",     "instr", "op",     "operand", "result", "dim",
                                     "axis",  "stride", "weak",  "uneven", "whole",   "sum",    NULL};
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
      if (read_unsplit(r, e, &t)) continue;
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

// Where it is that something else was expected.
static const char *here(reader *r, const tasks *t) {
  return *t->at ? arena_printf(r->a, "at `%.12s`", t->at) : "where the text ends";
}

static u32 digits(reader *r, tasks *t, u32 most) {
  u32 v = 0, n = 0;
  for (; *t->at >= '0' && *t->at <= '9'; t->at++, n++) v = v > most ? v : v * 10 + (u32)(*t->at - '0');
  if (!n || v > most) bad(r, t->y, "expected a number up to %u %s", most, here(r, t));
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
      bad(r, t->y, "expected a task like F0.3, B0.3, I0.3 or W0.3 %s", here(r, t));
      return;
    }
    t->at++;
    u32 sg = digits(r, t, 4095);
    if (*t->at != '.') {
      bad(r, t->y, "expected `.` and a microbatch %s", here(r, t));
      return;
    }
    t->at++;
    u32 mb = digits(r, t, 1 << 20);
    u32 replica = 0;
    if (*t->at == 'r') t->at++, replica = digits(r, t, UINT8_MAX - 1);
    *vec_push(r->a, &t->out) =
        (sched_task){.stage = (u16)sg, .kind = (u8)kind, .replica = (u8)replica, .mb = mb};
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

// What the order is called, where it is that.
static void name_order(reader *r, const ynode *y, const sched_row *row, u32 grouped) {
  loc at = y->at;
  const char *why = plan_name_schedule(r->c, r->a, r->pn, row, grouped, &at);
  if (!why) return;
  if (sched_is_asynchronous(row) && r->pn->train) { // versions are the row's: without it they are not known
    diag(r->c, E_PLAN, at, "the order is not that of schedule %s, which says when weights are updated: %s",
         row->name, why);
    diag_hint(r->c, "leave out `schedule` to update them when all tasks have ended");
    r->failed = true;
    return;
  }
  diag(r->c, W_SCHEDULE, at, "the order is not that of schedule %s: %s", row->name, why);
  if (at.i != y->at.i) diag_note(r->c, y->at, "the plan says so here");
  diag_hint(r->c, "leave out `schedule` if the order is the plan's own");
}

// The name is a label and decides nothing. But who reads in it that the plan is asynchronous is told that it is not.
static void warn_of_name(reader *r, const ynode *top) {
  strategy_set set;
  strategy s;
  const u32 before = diag_count(r->c);
  const ynode *name = yaml_get(top, "name");
  const bool named = r->pn->train && name && strategy_parse(r->c, r->a, sym_str(r->c, r->pn->name), &set) &&
                     strategy_one(r->c, &set, &s);
  diag_truncate(r->c, before);
  if (!named || choice_file(s.schedule) || !sched_is_asynchronous(sched_row_of(s.schedule.n))) return;
  diag(
      r->c, W_SCHEDULE, name->at,
      "the plan has no `schedule`, so weights are updated when all tasks have ended, whatever its name says");
  if (s.group.n)
    diag_hint(r->c, "schedule: %s, and group: %u", sched_row_of(s.schedule.n)->name, s.group.n);
  else
    diag_hint(r->c, "schedule: %s", sched_row_of(s.schedule.n)->name);
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
    const char *near = y->kind == Y_SCALAR ? sched_row_near(r->a, y->str) : NULL;
    if (near) diag_hint(r->c, "did you mean `schedule: %s`?", near);
    diag_hint(r->c, "known schedules: %s", sb_str(&names));
  }
  if (r->failed) return;
  if (row)
    name_order(r, y, row, of);
  else
    warn_of_name(r, top);
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
  const char *wrong = optim_wrong(o, r->a);
  if (wrong) bad(r, y, "%s", wrong);
  r->pn->train = true;
}

static void read_storage(reader *r, const ynode *top) {
  static const char *const keys[] = {"weights", "gradients", "states", "servers", NULL};
  const ynode *y = yaml_get(top, "rest");
  if (!y) return;
  if (y->kind != Y_MAP)
    bad(r, y, "`rest` must be a map from weights, gradients, states and servers to lists of axes");
  known_keys(r, y, keys);
  for (u32 w = 0; w < STORAGE_KINDS; w++) {
    const ynode *v = yaml_get(y, plan_storage_name[w]);
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

static void read_host_update(reader *r, const ynode *top) {
  const ynode *y = yaml_get(top, "update");
  choice_value where = {0};
  if (!y) return;
  if (y->kind != Y_SCALAR || !choice_read(CHOICE_update, r->a, y->str, strlen(y->str), &where))
    bad(r, y, "`update` is device or host");
  r->pn->host_update = choice_is(CHOICE_update, where, "host");
  if (r->pn->host_update && !(r->pn->offload & OFFLOAD_STATES))
    bad(r, y, "the host updates weights whose states lie there: `update: host` goes with `offload: states`");
}

static void read_offload(reader *r, const ynode *top) {
  const ynode *y = yaml_get(top, "offload"), *ahead = yaml_get(top, "prefetch");
  choice_value what = {0};
  if (y && (y->kind != Y_SCALAR || !choice_read(CHOICE_offload, r->a, y->str, strlen(y->str), &what))) {
    strbuf b = {.a = r->a};
    choice_print(CHOICE_offload, (choice_value){.n = (1u << choice_words(CHOICE_offload)) - 1}, &b);
    bad(r, y, "`offload` is any of %s", sb_str(&b));
  }
  if (ahead && !y) bad(r, ahead, "`prefetch` is of what is in host memory: without `offload` there is none");
  r->pn->offload = (u8)what.n;
  for (u32 k = 0; !r->failed && choice_word(CHOICE_offload, k); k++) {
    const char *why = what.n >> k & 1 ? plan_offload_absent(r->src, r->pn, k) : NULL;
    if (!why) continue;
    bad(r, y, "`offload` of %s: %s", choice_word(CHOICE_offload, k), why);
    diag_hint(r->c, "leave out %s", choice_word(CHOICE_offload, k));
  }
  r->pn->prefetch = (u8)number_at(r, top, "prefetch", 0, choice_get(CHOICE_prefetch)->most, what.n ? 1 : 0);
  read_host_update(r, top);
}

// Instructions are named as they are in the form that the plan asks for.
static bool read_form(reader *r, const ynode *top, prog **own) {
  const ynode *y = yaml_get(top, "coshard"), *attention = yaml_get(top, "attention");
  choice_value how = {0};
  *own = NULL;
  if (!y && !attention) return true;
  if (attention && (attention->kind != Y_SCALAR ||
                    !choice_read(CHOICE_attention, r->a, attention->str, strlen(attention->str), &how)))
    bad(r, attention, "`attention` is scores or fused");
  r->pn->fused_attention = choice_is(CHOICE_attention, how, "fused");
  if (attention) r->pn->attention_at = attention->at;
  if (y) r->pn->coshard = (u32)number(r, y, 1, OP_RES_MAX), r->pn->coshard_at = y->at;
  if (!r->failed) r->src = plan_program(r->src, r->pn, own);
  return !r->failed && r->src;
}

static bool read_plan(reader *r, const ynode *y) {
  read_axes(r, y, "axes", false);
  read_axes(r, y, "time", true);
  if (!r->pn->naxes) bad(r, y, "`axes` is missing");
  if (r->failed) return false;
  read_train(r, y);
  read_meshes(r, y);
  if (!r->failed) read_segments(r, y);
  if (!r->failed) r->failed = !plan_covers(r->src, r->pn);
  if (!r->failed) read_replicas(r, y);
  if (!r->failed) read_trans(r, y);
  read_storage(r, y);
  read_offload(r, y);
  read_recompute(r, y);
  read_order(r, y);
  read_schedule(r, y);
  return !r->failed;
}

static materialise_way read_materialise(reader *r, const ynode *y) {
  u32 k = 0;
  while (k < MATERIALISE_WAYS && (!y || y->kind != Y_SCALAR || strcmp(y->str, plan_materialise_name[k]) != 0))
    k++;
  if (y && k == MATERIALISE_WAYS) bad(r, y, "`materialise` is inter, intra or p2p");
  return k < MATERIALISE_WAYS ? (materialise_way)k : MATERIALISE_INTER;
}

static void read_sum_stream(reader *r, const ynode *y) {
  const ynode *sums = yaml_get(y, "sum-stream");
  if (!sums) return;
  r->pn->sum_stream = word(r, sums, "sum-stream"), r->pn->sum_at = sums->at;
  if (!yaml_get(y, "train")) bad(r, sums, "`sum-stream` is of gradients, and this plan has none");
  if (sums->kind != Y_SCALAR || strcmp(sums->str, "compute") != 0) return;
  bad(r, sums, "`sum-stream: compute`: sums cannot run beside the backward on the stream of the backward");
  diag_hint(r->c, "sum-stream: dp, or leave it out: updates sum the gradients");
}

plan *plan_parse(arena *a, const prog *src, const char *model, sym file, const char *text, size_t n) {
  static const char *const keys[] = {"heddle-plan",     "name",           "model",
                                     "train",           "axes",           "time",
                                     "meshes",          "segments",       "replicas",
                                     "trans",           "rest",           "batchnorm-groups",
                                     "coshard",         "attention",      "offload",
                                     "prefetch",        "gradient-type",  "recompute",
                                     "input-gradients", "keep-gradients", "send-stream",
                                     "send-channels",   "sum-stream",     "buffers",
                                     "schedule",        "group",          "order",
                                     "materialise",     "update",         NULL};
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
  read_sum_stream(&r, y);
  r.pn->send_channels = (u8)number_at(&r, y, "send-channels", 0, 4, 0);
  if (r.pn->send_channels == 3) bad(&r, yaml_get(y, "send-channels"), "`send-channels` is 1, 2 or 4");
  const ynode *buffers = yaml_get(y, "buffers");
  r.pn->rendezvous = buffers && buffers->kind == Y_SCALAR && !strcmp(buffers->str, "rendezvous");
  if (buffers && !r.pn->rendezvous) bad(&r, buffers, "`buffers` is rendezvous; without it no sender waits");
  if (r.pn->rendezvous && send)
    bad(&r, buffers, "`buffers: rendezvous` is of sends that block: without `send-stream`");
  r.pn->input_gradients = truth(&r, yaml_get(y, "input-gradients"));
  r.pn->keep_gradients = truth(&r, yaml_get(y, "keep-gradients"));
  r.pn->materialise = read_materialise(&r, yaml_get(y, "materialise"));
  const ynode *wide = yaml_get(y, "gradient-type");
  r.pn->wide_gradients = wide && wide->kind == Y_SCALAR && !strcmp(wide->str, "f32");
  if (wide && !r.pn->wide_gradients) bad(&r, wide, "`gradient-type` is f32; without it that of each weight");
  const ynode *groups = yaml_get(y, "batchnorm-groups");
  if (groups) r.pn->batchnorm_groups = (u32)number(&r, groups, 1, 1 << 20), r.pn->groups_at = groups->at;
  prog *own;
  const bool ok = read_form(&r, y, &own) && read_plan(&r, y);
  prog_free(own);
  return ok ? r.pn : NULL;
}
