// measure.c - a PyTorch program that measures the events of a plan, for `heddle profile --import`.
//
// Idea: an event is one instruction on one rank's pieces, and operators.def says what that is in PyTorch. So a row of the
// program is the key of an event, which has the shapes, and an expression of its operands, with this rank's extents and
// places as numbers. How it is measured is measure.py.
#include "export/internal.h"
#include "eval/eval.h"
#include "profile/profile.h"

typedef struct {
  py *w;
  profile_events x;
  strbuf rows, typed, left; // left: of what cannot be measured
  u32 ncomputed, nmoved, nleft;
  VEC(const char *) left_ops;
} measuring;

static const char *operand_name(arena *a, u32 k) {
  return k < 26 ? arena_printf(a, "%c", 'a' + (int)k) : arena_printf(a, "x%u", k);
}

// In single quotes where that is plainer, for equations of einsum have double ones.
static void put_key(strbuf *b, const char *key) {
  if (strpbrk(key, "'\\") || !strchr(key, '"'))
    py_quote(b, key);
  else
    sb_fmt(b, "'%s'", key);
}

// ---- computations --------------------------------------------------------------------------------------
static bool over_time(const py *w, const instr *i) {
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  for (u32 k = 0; over && k < over->n; k++)
    if (axis_get(w->p->sp, over->u.axes[k])->temporal) return true;
  return false;
}

// What a rank does by itself of `shard` and `partial`. A part of a sum over microbatches is all of it in one of them.
static bool put_own_part(py_scope *s, const instr *i, strbuf *b) {
  for (u32 k = 0; k < i->nres; k++) {
    const char *x = py_value(s, opd_of(s->f, i, k));
    if (k) sb_put(b, ", ");
    if (over_time(s->w, i))
      sb_fmt(b, "torch.zeros_like(%s)", x);
    else if (!py_collective(s, i, k, x, b))
      return py_refuse(s->w, i->where, "%s cannot be written in PyTorch", op_row_of((opcode)i->op)->name);
  }
  return true;
}

// The expression of an event, behind "lambda a, b: ". False, and w->why.
static bool put_expression(py *w, const profile_event *e, const char **params, i64 *below, strbuf *b) {
  const u32 nopd = instr_nopd(e->f, e->i);
  py_scope s = {.w = w, .f = e->f, .name = ZNEWN(w->a, const char *, e->f->values.n)};
  strbuf names = {.a = w->a};
  for (u32 k = 0; k < nopd; k++) {
    const value v = opd_of(e->f, e->i, k);
    const char *name = operand_name(w->a, k);
    const dtype t = val_type(w->p, e->f, v)->s.t;
    if (!py_dtype(w, t, e->i->where)) return false;
    if (!s.name[v]) s.name[v] = name;
    sb_fmt(&names, "%s%s", k ? ", " : " ", name);
    if (dtype_kind_of(t) == DK_INT && !*below) *below = eval_operand_bound(w->p, e->f, e->i, k);
  }
  *params = sb_str(&names);
  return op_row_of(e->e.op)->flags & OPF_COMM ? put_own_part(&s, e->i, b) : py_operator(&s, e->i, b);
}

static void leave(measuring *m, const profile_event *e, const char *why) {
  const char *op = op_row_of(e->e.op)->name;
  m->nleft++;
  sb_put(&m->left, "    ");
  put_key(&m->left, e->key);
  sb_put(&m->left, ": ");
  py_quote(&m->left, why);
  sb_put(&m->left, ",\n");
  for (u32 k = 0; k < m->left_ops.n; k++)
    if (!strcmp(m->left_ops.v[k], op)) return;
  *vec_push(m->w->a, &m->left_ops) = op;
}

static void put_computation(measuring *m, const profile_event *e) {
  py *w = m->w;
  strbuf b = {.a = w->a};
  coords at;
  i64 below = 0;
  const char *params = "";
  coords_of(w->p->sp, e->on, e->member, NULL, &at);
  w->here = &at, w->why = NULL;
  const bool ok = put_expression(w, e, &params, &below, &b);
  w->here = NULL;
  if (!ok) {
    leave(m, e, w->why);
    return;
  }
  m->ncomputed++;
  sb_put(&m->rows, "    Event(");
  put_key(&m->rows, e->key);
  sb_fmt(&m->rows, ",\n          lambda%s: %s", params, sb_str(&b));
  if (below) sb_fmt(&m->rows, ", below=%lld", (long long)below);
  sb_put(&m->rows, "),\n");
  sb_fmt(&m->typed, "%s\n", sb_str(&b));
}

static void put_rows(measuring *m) {
  for (u32 k = 0; k < m->x.v.n; k++)
    if (!m->x.v.v[k].e.where) put_computation(m, &m->x.v.v[k]);
  for (u32 k = 0; k < m->x.v.n; k++) {
    const profile_event *e = &m->x.v.v[k];
    if (!e->e.where) continue;
    m->nmoved++;
    sb_put(&m->rows, "    Event(");
    put_key(&m->rows, e->key);
    sb_put(&m->rows, "),\n");
  }
}

// ---- the program ---------------------------------------------------------------------------------------
static void put_about(const measuring *m, const export_about *about, strbuf *b) {
  sb_fmt(b,
         "#!/usr/bin/env python3\n\"\"\"Measures what the instructions of a plan take in PyTorch.\n\n"
         "model    %s\nplan     %s\nmachine  %s\n",
         about->model, about->plan && *about->plan ? about->plan : "that of the program", about->machine);
  sb_fmt(b,
         "events   %u of computation, each on one device; %u of communication, each among its members or as "
         "many as there are",
         m->ncomputed, m->nmoved);
  if (m->nleft) sb_fmt(b, "; %u that PyTorch cannot do", m->nleft);
  sb_put(
      b,
      "\nstart    torchrun --nproc_per_node GPUS THIS_FILE -o times.jsonl\n"
      "         on two nodes, on each of them: torchrun --nnodes 2 --nproc_per_node GPUS --rdzv_backend c10d "
      "--rdzv_endpoint HOST:29500 \\\n           THIS_FILE -o times.jsonl\n"
      "then     heddle profile --import times.jsonl -o times.db\n\n"
      "GPUs are joined by NCCL; without one, processes by gloo. Begun again it goes on from what its file "
      "has.\n"
      "\"\"\"\n\n");
}

static void warn_of_left(const measuring *m) {
  strbuf b = {.a = m->w->a};
  if (!m->nleft) return;
  for (u32 k = 0; k < m->left_ops.n; k++) sb_fmt(&b, "%s%s", k ? ", " : "", m->left_ops.v[k]);
  diag(m->w->c, W_IGNORED, (loc){0},
       "%u of %u events cannot be measured in PyTorch (%s): the machine prices them", m->nleft, m->x.v.n,
       sb_str(&b));
}

const char *export_measure(const prog *p, arena *a, const export_about *about) {
  measuring m = {.w = py_open(p, a, true)};
  m.rows.a = m.typed.a = m.left.a = a;
  if (!about->on || !mesh_count(p->sp)) {
    diag(p->c, E_EXPORT, (loc){0},
         about->on ? "%s runs on one device without a plan: it has no events"
                   : "%s: events are of a machine, and none is named",
         about->model);
    diag_hint(p->c, about->on ? "--train --strategy dp=1" : "--machine M, as `heddle sim` has it");
    return NULL;
  }
  if (!profile_events_of(&m.x, p->c, a, p, about->on)) return NULL;
  put_rows(&m);
  strbuf out = {.a = a}, constants = {.a = a}, body = {.a = a};
  sb_put(&constants, "MACHINE = ");
  py_quote(&constants, sym_str(about->on->c, about->on->name));
  sb_put(&constants, "\nRANK = DEVICE = WORDS = KIND = None  # of this process: `measure` says\n");
  sb_fmt(&body, "\n\nEVENTS = [\n%s]\n", sb_str(&m.rows));
  sb_fmt(&body, m.nleft ? "NOT_MEASURED = {\n%s}\n" : "NOT_MEASURED = {%s}\n", sb_str(&m.left));
  m.w->text = (strbuf){.a = a};
  if (m.w->tables.n) py_put(m.w, 0, "\n");
  py_tables(m.w);
  put_about(&m, about, &out);
  const py_parts parts = {.entry = "measure",
                          .constants = sb_str(&constants),
                          .top = sb_str(&m.w->text),
                          .body = sb_str(&body),
                          .typed = sb_str(&m.typed)};
  sb_put(&out, py_helpers(m.w, &parts));
  warn_of_left(&m);
  return sb_str(&out);
}
