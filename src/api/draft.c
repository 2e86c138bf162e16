// draft.c - plans written by a program behind heddle.h: a walk over the operators of a model, and the lines of a plan
// file one call after the other.
//
// Idea: a draft is text. So whatever a plan file can say a program can, and what is wrong is found by who reads plan
// files and shown with its line.
#include "api/internal.h"

// ---- the walk ---------------------------------------------------------------------------------------------
static const prog *source_of(heddle_program *p) {
  return program_to_plan(p) ? planner_source(program_planner(p)) : NULL;
}

// NULL: there is none, or it has no such instruction (number 0 asks for none).
static const func_info *function_of(heddle_program *p, const prog *src, const char *name, uint32_t number) {
  const func f = !src ? (func){0} : name ? func_find(src, sym_of(p->o.s->c, name)) : src->main;
  const func_info *i = f.i ? func_get(src, f) : NULL;
  return i && number <= i->body.n ? i : NULL;
}

static uint32_t count(heddle_program *p, const char *function) {
  const func_info *f = function_of(p, source_of(p), function, 0);
  return f ? f->body.n : 0;
}
uint32_t heddle_program_operators(heddle_program *p, const char *function) {
  if (!p) return 0;
  API_RETURN(uint32_t, 0, p->o.s, count(p, function));
}

static bool operator_at(heddle_program *p, const char *function, uint32_t number, heddle_operator *out) {
  const prog *src = source_of(p);
  const func_info *f = function_of(p, src, function, number);
  if (!f || !number) return false;
  const instr *in = &f->body.v[number - 1];
  *out = (heddle_operator){.op = op_row_of((opcode)in->op)->name,
                           .function = sym_str(src->c, f->name),
                           .number = number,
                           .noperands = instr_nopd(f, in),
                           .nresults = in->nres};
  if (in->op == OP_call) out->calls = sym_str(src->c, func_get(src, in->callee)->name);
  return true;
}
bool heddle_program_operator(heddle_program *p, const char *function, uint32_t number, heddle_operator *out) {
  if (!p) return false;
  API_RETURN(bool, false, p->o.s, operator_at(p, function, number, out));
}

static bool value_at(heddle_program *p, const char *function, uint32_t number, bool result, uint32_t index,
                     heddle_operand *out) {
  static const char *const role_name[] = {"input", "weight", "state", "label", "const"};
  const prog *src = source_of(p);
  const func_info *f = function_of(p, src, function, number);
  if (!f || !number) return false;
  const instr *in = &f->body.v[number - 1];
  if (index >= (result ? in->nres : instr_nopd(f, in))) return false;
  const value v = result ? in->res + index : opd_of(f, in, index);
  const type_info *t = val_type(src, f, v);
  const u32 def = f->values.v[v].def;
  *out = (heddle_operand){.name = def ? "" : sym_str(src->c, f->values.v[v].name), .made_by = def};
  if (!def && f == func_get(src, src->main)) out->role = role_name[f->params.v[v - 1].r];
  if (t->tuple) return true;
  out->dtype = dtype_name(t->s.t), out->ndims = t->s.nd;
  _Static_assert(COUNT_OF(out->dims) >= DIMS_MAX, "all dimensions of a tensor");
  memcpy(out->dims, t->s.dim, t->s.nd * sizeof *out->dims);
  return true;
}
bool heddle_program_operand(heddle_program *p, const char *function, uint32_t number, uint32_t index,
                            heddle_operand *out) {
  if (!p) return false;
  API_RETURN(bool, false, p->o.s, value_at(p, function, number, false, index, out));
}
bool heddle_program_result(heddle_program *p, const char *function, uint32_t number, uint32_t index,
                           heddle_operand *out) {
  if (!p) return false;
  API_RETURN(bool, false, p->o.s, value_at(p, function, number, true, index, out));
}

// ---- the text ---------------------------------------------------------------------------------------------
enum { PLACES_MOST = 1 << 16 };
typedef struct {
  bool any;
  strbuf text;
} place_tasks;
struct heddle_draft {
  object o;
  heddle_program *p;
  const char *name;
  optim_opts optim;
  bool train, failed, rewritten, numbers; // numbers: operators are split by their numbers in functions
  strbuf axes, time, meshes, segments, trans, rest;
  VEC(place_tasks) place;
};

static void draft_fini(object *o) { object_drop(((heddle_draft *)o)->p); }

static heddle_draft *open_draft(heddle_program *p, const char *name, const heddle_plan_options *o) {
  heddle_draft *d = object_new(p->o.s, sizeof *d, draft_fini);
  d->p = object_hold(p);
  strbuf *const text[] = {&d->axes, &d->time, &d->meshes, &d->segments, &d->trans, &d->rest};
  for (u32 k = 0; k < COUNT_OF(text); k++) text[k]->a = d->o.a;
  d->name = arena_strdup(d->o.a, name && *name ? name : "plan");
  d->train = o->train;
  if (optimizer_read(p->o.s->c, &o->optimizer, &d->optim)) return d;
  object_drop(d);
  return NULL;
}
heddle_draft *heddle_draft_new(heddle_program *p, const char *name, const heddle_plan_options *o) {
  static const heddle_plan_options none;
  if (!p) return NULL;
  API_RETURN(heddle_draft *, NULL, p->o.s, open_draft(p, name, o ? o : &none));
}
void heddle_draft_free(heddle_draft *d) { object_drop(d); }

static bool fail(heddle_draft *d, const char *what) {
  diag(d->o.s->c, E_PLAN, (loc){0}, "%s: %s", d->name, what);
  d->failed = true;
  return false;
}

static bool put_size(heddle_draft *d, strbuf *b, const char *name, uint32_t size) {
  if (d->failed) return false;
  if (!name || !*name) return fail(d, "an axis needs a name");
  if (b->n) sb_put(b, ", ");
  sb_json_str(b, name);
  sb_fmt(b, ": %u", size);
  return true;
}
bool heddle_draft_axis(heddle_draft *d, const char *axis, uint32_t size) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_size(d, &d->axes, axis, size));
}
bool heddle_draft_time(heddle_draft *d, const char *axis, uint32_t size) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_size(d, &d->time, axis, size));
}

static bool put_mesh(heddle_draft *d, const char *on, uint32_t first, uint32_t n, const char *const *axes) {
  if (d->failed) return false;
  if (!on || !*on) return fail(d, "a mesh needs a name");
  sb_put(&d->meshes, "  ");
  sb_json_str(&d->meshes, on);
  sb_put(&d->meshes, ": {axes: [");
  for (u32 k = 0; k < n; k++) {
    if (k) sb_put(&d->meshes, ", ");
    sb_json_str(&d->meshes, axes[k]);
  }
  sb_fmt(&d->meshes, "], first: %u}\n", first);
  return true;
}
bool heddle_draft_mesh(heddle_draft *d, const char *on, uint32_t first, uint32_t naxes,
                       const char *const *axes) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_mesh(d, on, first, naxes, axes));
}

static bool put_split(heddle_draft *d, uint32_t dim, const char *axis) {
  sb_fmt(&d->trans, ", dim: %u, axis: ", dim);
  sb_json_str(&d->trans, axis);
  sb_put(&d->trans, "}\n");
  return true;
}

static bool put_input(heddle_draft *d, const char *input, uint32_t dim, const char *axis) {
  if (d->failed) return false;
  if (!input || !axis) return fail(d, "a split needs an input and an axis");
  sb_put(&d->trans, "  - {input: ");
  sb_json_str(&d->trans, input);
  return put_split(d, dim, axis);
}
bool heddle_draft_trans_input(heddle_draft *d, const char *input, uint32_t dim, const char *axis) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_input(d, input, dim, axis));
}

static bool put_trans(heddle_draft *d, const heddle_operator *o, const char *what, uint32_t index,
                      uint32_t dim, const char *axis) {
  if (d->failed) return false;
  if (!o || !o->op || !axis) return fail(d, "a split needs an operator and an axis");
  sb_put(&d->trans, "  - {in: ");
  sb_json_str(&d->trans, o->function);
  d->numbers = true;
  sb_fmt(&d->trans, ", instr: %u, op: %s, %s: %u", o->number, o->op, what, index);
  return put_split(d, dim, axis);
}
bool heddle_draft_trans(heddle_draft *d, const heddle_operator *o, uint32_t operand, uint32_t dim,
                        const char *axis) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_trans(d, o, "operand", operand, dim, axis));
}
bool heddle_draft_trans_result(heddle_draft *d, const heddle_operator *o, uint32_t result, uint32_t dim,
                               const char *axis) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_trans(d, o, "result", result, dim, axis));
}

static bool put_segment(heddle_draft *d, uint32_t from, uint32_t to, const char *on, const char *axis,
                        uint32_t at) {
  if (d->failed) return false;
  if (!on) return fail(d, "a segment needs a mesh");
  sb_fmt(&d->segments, "  - {from: %u, to: %u, on: ", from, to);
  sb_json_str(&d->segments, on);
  if (axis) {
    sb_put(&d->segments, ", at: {");
    sb_json_str(&d->segments, axis);
    sb_fmt(&d->segments, ": %u}", at);
  }
  sb_put(&d->segments, "}\n");
  return true;
}
bool heddle_draft_assign(heddle_draft *d, uint32_t from, uint32_t to, const char *on, const char *axis,
                         uint32_t at) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_segment(d, from, to, on, axis, at));
}

static bool put_task(heddle_draft *d, uint32_t place, char kind, uint32_t segment, uint32_t microbatch) {
  if (d->failed) return false;
  if (place >= PLACES_MOST) return fail(d, "more than 65,536 places");
  if (!strchr("FBIW", kind) || !kind) return fail(d, "a task is 'F', 'B', 'I' or 'W'");
  while (d->place.n <= place) *vec_push(d->o.a, &d->place) = (place_tasks){.text = {.a = d->o.a}};
  strbuf *b = &d->place.v[place].text;
  sb_fmt(b, "%s%c%u.%u", b->n ? " " : "", kind, segment, microbatch);
  return true;
}
bool heddle_draft_order(heddle_draft *d, uint32_t place, char kind, uint32_t segment, uint32_t microbatch) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_task(d, place, kind, segment, microbatch));
}

static bool put_key(heddle_draft *d, const char *key, const char *text) {
  if (d->failed) return false;
  if (!key || !text || strchr(text, '\n')) return fail(d, "a key needs a value, on one line");
  d->rewritten |=
      (!strcmp(key, "coshard") && strcmp(text, "1")) || (!strcmp(key, "attention") && strcmp(text, "scores"));
  sb_fmt(&d->rest, "%s: %s\n", key, text);
  return true;
}
bool heddle_draft_set(heddle_draft *d, const char *key, const char *text) {
  if (!d) return false;
  API_RETURN(bool, false, d->o.s, put_key(d, key, text));
}

static const char *text_of(heddle_draft *d) {
  strbuf b = {.a = d->o.a};
  sb_put(&b, "heddle-plan: 1\nname: ");
  sb_json_str(&b, d->name);
  sb_char(&b, '\n');
  if (d->train) plan_put_train(&d->optim, d->optim.master, &b);
  sb_fmt(&b, "axes: {%s}\n", sb_str(&d->axes));
  if (d->time.n) sb_fmt(&b, "time: {%s}\n", sb_str(&d->time));
  const struct {
    const char *key;
    strbuf *of;
  } list[] = {{"meshes", &d->meshes}, {"segments", &d->segments}, {"trans", &d->trans}};
  for (u32 k = 0; k < COUNT_OF(list); k++)
    if (list[k].of->n) sb_fmt(&b, "%s:\n%s", list[k].key, sb_str(list[k].of));
  sb_put(&b, sb_str(&d->rest));
  if (d->place.n) sb_put(&b, "order:\n");
  for (u32 k = 0; k < d->place.n; k++) sb_fmt(&b, "  - \"%s\"\n", sb_str(&d->place.v[k].text));
  return sb_str(&b);
}

static heddle_plan *plan_of(heddle_draft *d) {
  if (d->failed) return NULL;
  if (d->rewritten && d->numbers) {
    fail(d, "coshard and attention=fused rewrite the functions, so operators no longer have the numbers by "
            "which they are split");
    diag_hint(d->o.s->c, "split inputs alone, leave them out, or take a strategy: coshard=2 tp=2");
    return NULL;
  }
  const char *text = text_of(d);
  heddle_plan *b = plan_read_text(d->p, d->name, text, strlen(text));
  if (b) b->pn->model = d->p->name;
  return b;
}
heddle_plan *heddle_draft_plan(heddle_draft *d) {
  if (!d) return NULL;
  API_RETURN(heddle_plan *, NULL, d->o.s, plan_of(d));
}
