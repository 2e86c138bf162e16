// patterns.c - sharding patterns of one application behind heddle.h.
#include "api/internal.h"

static loc ways_at(ctx *c, u32 ways) {
  if (!ways) return (loc){0};
  const sym text = sym_fmt(c, "%u", ways);
  return loc_text(c, sym_of(c, "--ways"), 1, 1, sym_str(c, text));
}

static bool type_of(ctx *c, const char *name, dtype *out) {
  *out = name ? dtype_find(name, strlen(name)) : DT_F32;
  if (*out != DT_NONE) return true;
  diag(c, E_USAGE, (loc){0}, "--type: '%s' is not an element type", name);
  diag_hint(c, "f16, bf16, f32 or f64");
  return false;
}

// The law of the instruction that p consists of.
static const law *law_of(const prog *p, arena *a, const shape **opd) {
  const func_info *f = func_get(p, p->main);
  const instr *i = &f->body.v[0];
  shape *s = NEWN(a, shape, i->nopd + 1), res[OP_RES_MAX];
  u32 nres = i->nres;
  for (u32 k = 0; k < i->nopd; k++) s[k] = val_type(p, f, opd_of(f, i, k))->s;
  *opd = s;
  return op_law(p->c, a, (opcode)i->op, attrs_get(p, i->at), i->nopd, s, &nres, res, i->where);
}

static const char *about_program(heddle_session *s, prog *p, report_pattern *of,
                                 const heddle_pattern_options *o, heddle_format f) {
  arena *a = ctx_arena(s->c);
  const shape *opd;
  of->p = p, of->l = law_of(p, a, &opd);
  of->n = law_patterns(a, of->op, of->l, opd, &of->v);
  if (o->machine) {
    of->m = o->machine->m, of->ways = o->ways ? o->ways : of->m->nranks;
    pattern_cost *cost = ZNEWN(a, pattern_cost, of->n + 1);
    cost_model *k = cost_model_new(s->c, p->a, of->m, &(cost_opts){.model = o->costs});
    if (!k || !cost_patterns(k, p, of->l, of->v, of->n, of->ways, ways_at(s->c, o->ways), cost)) return NULL;
    of->cost = cost;
  }
  report *r = report_new(a);
  report_patterns(r, a, of);
  return rendered(a, r, f);
}

static const char *patterns(heddle_session *s, const char *name, const heddle_pattern_options *o,
                            heddle_format f) {
  arena *a = ctx_arena(s->c);
  report_pattern of = {.op = operator_find(s, name), .example = !o->shapes};
  application_text text = {.shapes = o->shapes, .attributes = o->attributes ? o->attributes : ""};
  if (of.op == OP_none || !type_of(s->c, o->type, &text.usual)) return NULL;
  if (!op_law_text(of.op)) {
    if (o->shapes || o->machine) {
      diag(s->c, E_USAGE, (loc){0}, "%s has no law of its own: it has no shapes and no costs", name);
      return NULL;
    }
    report *r = report_new(a);
    report_patterns(r, a, &of);
    return rendered(a, r, f);
  }
  if (of.example) {
    const op_example e = op_example_of(a, of.op);
    text.shapes = e.shapes, text.attributes = e.attributes;
  }
  prog *p = ir_application(s->c, of.op, &text);
  const char *out = p ? about_program(s, p, &of, o, f) : NULL;
  prog_free(p);
  return out;
}
const char *heddle_docs_patterns(heddle_session *s, const char *name, const heddle_pattern_options *o,
                                 heddle_format f) {
  static const heddle_pattern_options none;
  API_RETURN(const char *, NULL, s, patterns(s, name, o ? o : &none, f));
}
