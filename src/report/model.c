// model.c - what is in a program: inputs and outputs, parameters, work, repeated blocks, operators. Reads the
// program as it is; only the figure of a training step needs one to be made.
#include "report/report.h"
#include <stdlib.h>

typedef struct {
  double flops, again; // again: of them, recomputation
  i64 bytes;           // of weights among the parameters
  i64 elements;        // of them
  i64 calls;           // executions in one run of main
  double runs;         // the same, beyond what an i64 holds
  u32 id;
} func_sum;
typedef struct {
  u16 op;
  i64 count;
  double flops;
} op_sum;
typedef struct {
  prog *p;
  arena *a, *tmp;
  func_sum *f;
  op_sum op[OP_ROWS];
  i64 instructions; // with calls expanded, calls not counted
} survey;

// What is split over time is done in parts: one execution does one of them.
static double parts_in_time(const survey *s, const func_info *f, const instr *i) {
  const space *sp = s->p->sp;
  u64 seen = 0;
  double parts = 1;
  u32 n = instr_nopd(f, i);
  for (u32 k = 0; k < n + i->nres; k++) {
    const type_info *t = val_type(s->p, f, k < n ? opd_of(f, i, k) : i->res + k - n);
    const layout_info *l = layout_get(sp, t->lay);
    for (u32 j = 0; !t->tuple && j < l->nsplit; j++) {
      u8 axis = l->split[j].axis;
      if (!axis_get(sp, axis)->temporal || seen >> axis & 1) continue;
      seen |= (u64)1 << axis;
      parts *= axis_size(sp, axis);
    }
  }
  return parts;
}

static double instr_flops(survey *s, const func_info *f, const instr *i) {
  const op_row *row = op_row_of(i->op);
  attrs at = attrs_get(s->p, i->at);
  if (i->op == OP_opaque) return (double)attr_int(at, A_flops, 0);
  if (!row->flops || row->flags & (OPF_COMM | OPF_META)) return 0;
  u32 n = instr_nopd(f, i), nres = i->nres;
  shape *in = NEWN(s->tmp, shape, n + 1), res[OP_RES_MAX];
  for (u32 k = 0; k < n; k++) in[k] = val_type(s->p, f, opd_of(f, i, k))->s;
  const law *l = op_law(s->p->c, s->tmp, i->op, at, n, in, &nres, res, i->where);
  return l ? op_flops(i->op, at, l) / parts_in_time(s, f, i) : 0;
}

static u32 survey_funcs(survey *s) {
  const prog *p = s->p;
  u32 n, *order = ir_call_order(p, s->tmp, &n);
  s->f = ZNEWN(s->a, func_sum, p->funcs.n);
  s->f[p->main.i].calls = 1, s->f[p->main.i].runs = 1;
  for (u32 k = n; k-- > 0;) {
    const func_info *f = p->funcs.v[order[k]];
    for (u32 i = 0; i < f->body.n; i++)
      if (f->body.v[i].op == OP_call) {
        func_sum *of = &s->f[f->body.v[i].callee.i];
        of->calls = add_sat(of->calls, s->f[order[k]].calls), of->runs += s->f[order[k]].runs;
      }
  }
  for (u32 k = 0; k < n; k++) {
    const func_info *f = p->funcs.v[order[k]];
    func_sum *sum = &s->f[order[k]];
    sum->id = order[k];
    for (u32 i = 0; i < f->nparams; i++)
      if (f->params.v[i].r == ROLE_WEIGHT) {
        const type_info *t = val_type(p, f, i + 1);
        sum->bytes += shape_bytes(&t->s), sum->elements += shape_elems(&t->s);
      }
    for (u32 i = 0; i < f->body.n; i++) {
      const instr *in = &f->body.v[i];
      if (in->op == OP_call) {
        const func_sum *of = &s->f[in->callee.i];
        sum->flops += of->flops, sum->again += in->flags & INSTR_RECOMPUTE ? of->flops : of->again;
        continue;
      }
      arena_mark_t mark = arena_mark(s->tmp);
      double flops = instr_flops(s, f, in);
      arena_release(s->tmp, mark);
      sum->flops += flops, sum->again += in->flags & INSTR_RECOMPUTE ? flops : 0;
      s->instructions = add_sat(s->instructions, sum->calls);
      s->op[in->op].op = in->op;
      s->op[in->op].count = add_sat(s->op[in->op].count, sum->calls);
      s->op[in->op].flops += flops * sum->runs;
    }
  }
  return n;
}

// ---- parts of the report ------------------------------------------------------------------------------
static void put_values(report *r, arena *a, const prog *p) {
  static const column cols[] = {{NULL, ""}, {"name", ""}, {"dtype", ""}, {"shape", ""}, {"bytes", ""}};
  const func_info *m = func_get(p, p->main);
  for (u32 out = 0; out < 2; out++) {
    report_table(r, out ? "outputs" : "inputs", cols, COUNT_OF(cols));
    u32 n = out ? m->rets.n : m->nparams, rows = 0;
    for (u32 i = 0; i < n; i++) {
      role as = out ? ROLE_INPUT : m->params.v[i].r;
      if (as != ROLE_INPUT && as != ROLE_LABEL) continue;
      value v = out ? m->rets.v[i] : i + 1;
      const type_info *t = val_type(p, m, v);
      const char *name = sym_str(p->c, val(m, v)->name), *head = out                ? "output"
                                                                 : as == ROLE_LABEL ? "label"
                                                                                    : "input";
      if (!*name) name = arena_printf(a, "%u", i);
      cell row[] = {
          cell_text(rows++ ? "" : head), cell_text(name), cell_text(t->tuple ? "tuple" : dtype_name(t->s.t)),
          cell_dims(t->s.dim, t->tuple ? 0 : t->s.nd), cell_i(CELL_BYTES, t->tuple ? 0 : shape_bytes(&t->s))};
      if (!out && as == ROLE_LABEL) row[0] = cell_text(head);
      report_row(r, row);
    }
    report_top(r, 8);
  }
}

void report_dropout(report *r, const char *model, bool train) {
  if (train && model && front_lacks_dropout(model))
    report_line(r, "dropout", "none; with it more activations are kept (docs/commands.md)");
}

const char *report_types(arena *a, const prog *p, role of) {
  const func_info *m = func_get(p, p->main);
  bool used[DT_COUNT] = {0};
  strbuf types = {.a = a};
  for (u32 i = 0; i < m->nparams; i++)
    if (m->params.v[i].r == of && !val_type(p, m, i + 1)->tuple) used[val_type(p, m, i + 1)->s.t] = true;
  for (u32 t = 1; t < DT_COUNT; t++)
    if (used[t]) sb_fmt(&types, "%s%s", types.n ? ", " : "", dtype_name(t));
  return types.n ? sb_str(&types) : NULL;
}

static void put_parameters(report *r, arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  i64 elements = 0, bytes = 0, states = 0;
  u32 tensors = 0, absent = 0;
  for (u32 i = 0; i < m->nparams; i++) {
    const type_info *t = val_type(p, m, i + 1);
    if (t->tuple) continue;
    if (m->params.v[i].r == ROLE_STATE) states += shape_bytes(&t->s);
    if (m->params.v[i].r != ROLE_WEIGHT) continue;
    elements += shape_elems(&t->s), bytes += shape_bytes(&t->s), tensors++;
    u32 data = m->params.v[i].data;
    absent += !data || !p->data.v[data].bytes;
  }
  const char *types = report_types(a, p, ROLE_WEIGHT);
  strbuf line = {.a = a};
  cell count = cell_i(CELL_COUNT, elements), size = cell_i(CELL_BYTES, bytes);
  cell_print(&count, &line);
  if (tensors)
    sb_fmt(&line, "%s, %s, ", text_agree(arena_printf(a, " in %u tensors", tensors)), types),
        cell_print(&size, &line);
  report_line(r, "parameters", "%s", sb_str(&line));
  report_fact(r, "parameters", NULL, count);
  report_fact(r, "parameter_tensors", NULL, cell_i(CELL_INT, tensors));
  report_fact(r, "parameter_tensors_without_data", NULL, cell_i(CELL_INT, absent));
  report_fact(r, "parameter_bytes", NULL, size);
  report_fact(r, "parameter_dtypes", NULL, cell_text(types ? types : ""));
  report_fact(r, "state_bytes", states ? "optimizer state" : NULL, cell_i(CELL_BYTES, states));
}

static void put_extents(report *r, const front_extents *open) {
  static const column cols[] = {{"name", "extent"}, {"extent", "is"}, {"at", "at"}};
  report_table(r, "extents", cols, COUNT_OF(cols));
  for (u32 k = 0; open && k < open->n; k++)
    report_row(r, (cell[]){cell_text(open->v[k].name), cell_i(CELL_INT, open->v[k].extent),
                           cell_text(open->v[k].at)});
  if (open && open->n) report_gap(r);
}

// One step of plain gradient descent, by making it. A program that cannot be trained has no such figure.
static double training_flops(const prog *p, arena *tmp) {
  const func_info *m = func_get(p, p->main);
  if (mesh_count(p->sp)) return 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++)
      if (p->funcs.v[f]->body.v[i].flags & (INSTR_BACKWARD | INSTR_UPDATE)) return 0;
  if (!m->rets.n) return 0;
  u32 before = diag_count(p->c);
  prog *t = prog_clone(p, p->c);
  optim_opts o = optim_default(OPTIM_SGD);
  double flops = 0;
  if (pass_loss(t) && pass_train(t, &o, false)) {
    survey s = {.p = t, .a = tmp, .tmp = tmp};
    survey_funcs(&s);
    flops = s.f[t->main.i].flops;
  }
  prog_free(t);
  diag_truncate(p->c, before);
  return flops;
}

static int by_share(const void *x, const void *y) {
  const func_sum *a = x, *b = y;
  double s = a->flops * a->runs, t = b->flops * b->runs;
  return s != t ? (s > t ? -1 : 1) : a->id < b->id ? -1 : a->id > b->id;
}

static void put_blocks(report *r, const survey *s) {
  static const column cols[] = {
      {"block", "block"},           {"calls", "calls"},      {"instructions", "instructions"},
      {"parameters", "parameters"}, {"flops", "FLOPs each"}, {"share", "share of FLOPs"}};
  const prog *p = s->p;
  double total = s->f[p->main.i].flops;
  func_sum *block = arena_dup(s->a, s->f, sizeof *block * p->funcs.n);
  qsort(block, p->funcs.n, sizeof *block, by_share);
  report_table(r, "blocks", cols, COUNT_OF(cols));
  for (u32 k = 0; k < p->funcs.n; k++) {
    const func_sum *b = &block[k];
    const func_info *f = p->funcs.v[b->id];
    if (!b->calls || b->id == p->main.i) continue;
    double share = total > 0 ? b->flops * b->runs / total : 0;
    report_row(r,
               (cell[]){cell_text(sym_str(p->c, f->name)), cell_i(CELL_INT, b->calls),
                        cell_i(CELL_INT, f->body.n), cell_i(CELL_COUNT, b->elements),
                        b->flops > 0 ? cell_x(CELL_FLOP, b->flops) : cell_none(), cell_x(CELL_SHARE, share)});
  }
  report_top(r, 16);
}

static int by_work(const void *x, const void *y) {
  const op_sum *a = x, *b = y;
  if (a->flops != b->flops) return a->flops > b->flops ? -1 : 1;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return a->op < b->op ? -1 : a->op > b->op;
}

static void put_operators(report *r, survey *s) {
  static const column cols[] = {
      {"op", "operator"}, {"count", "count"}, {"flops", "FLOPs"}, {"share", "share"}};
  double total = s->f[s->p->main.i].flops;
  report_table(r, "operators", cols, COUNT_OF(cols));
  qsort(s->op, OP_ROWS, sizeof *s->op, by_work);
  for (u32 k = 0; k < OP_ROWS; k++) {
    const op_sum *o = &s->op[k];
    if (!o->count) continue;
    double share = total > 0 ? o->flops / total : 0;
    report_row(r, (cell[]){cell_text(op_row_of(o->op)->name), cell_i(CELL_INT, o->count),
                           o->flops > 0 ? cell_x(CELL_FLOP, o->flops) : cell_none(),
                           o->flops > 0 ? cell_x(CELL_SHARE, share) : cell_none()});
  }
  report_top(r, 12);
}

double report_flops(const prog *p, double *again) {
  arena *tmp = arena_new();
  survey s = {.p = (prog *)(uintptr_t)p, .a = tmp, .tmp = tmp};
  survey_funcs(&s);
  double flops = s.f[p->main.i].flops;
  *again = s.f[p->main.i].again;
  arena_free(tmp);
  return flops;
}

void report_model(report *r, arena *a, const prog *p, const char *name, const front_extents *open) {
  arena *tmp = arena_new();
  survey s = {.p = (prog *)(uintptr_t)p, .a = a, .tmp = tmp};
  u32 n = survey_funcs(&s), ranks = 0;
  for (u32 k = 1; k <= mesh_count(p->sp); k++) ranks += mesh_get(p->sp, (mesh){k})->nranks;
  report_fact(r, "model", "model", cell_text(name));
  put_parameters(r, a, p);
  double once = s.f[p->main.i].flops, train = training_flops(p, tmp);
  strbuf line = {.a = a};
  cell forward = cell_x(CELL_FLOP, once), step = train > 0 ? cell_x(CELL_FLOP, train) : cell_none();
  cell_print(&forward, &line);
  if (train > 0)
    sb_put(&line, ", "), cell_print(&step, &line), sb_put(&line, " with loss, gradients and update");
  report_line(r, "work", "%s", sb_str(&line));
  report_fact(r, "flops", NULL, forward);
  report_fact(r, "training_flops", NULL, step);
  report_fact(r, "instructions", "instructions", cell_i(CELL_INT, s.instructions));
  if (ranks) report_fact(r, "ranks", "ranks", cell_i(CELL_INT, ranks));
  report_gap(r);
  put_extents(r, open);
  put_values(r, a, p);
  if (n > 1) report_gap(r);
  put_blocks(r, &s);
  report_gap(r);
  put_operators(r, &s);
  arena_free(tmp);
}
