// step.c - what every rank does in one step: main, for the ranks that do the same.
//
// Idea: ranks that are in the same of the groups that main names run the same instructions of it; they share a
// function of Python. What differs among them is where they are in the mesh.
#include "export/internal.h"

typedef struct {
  py *w;
  const func_info *f;
  u32 nranks, ngroups;
  group *groups;
  u32 *place;          // by rank
  u32 nplaces, *first; // a rank of each
} places;

static bool takes_part(const py *w, const func_info *f, const instr *i, u32 rank) {
  if (i->op == OP_send)
    return py_present(w, val(f, opd_of(f, i, 0))->ty, rank) || py_present(w, val(f, i->res)->ty, rank);
  if (i->op == OP_part) return py_present(w, val(f, i->res)->ty, rank);
  return !i->g.i || group_member(w->p->sp, i->g, rank) >= 0;
}

static void note_group(places *x, group g) {
  for (u32 k = 0; k < x->ngroups; k++)
    if (x->groups[k].i == g.i) return;
  if (g.i) x->groups[x->ngroups++] = g;
}

static void note_type(places *x, type t) {
  const type_info *i = type_get(x->w->p, t);
  if (!i->tuple) note_group(x, i->g);
  for (u32 k = 0; i->tuple && k < i->n; k++) note_type(x, i->elem[k]);
}

static void find_places(places *x) {
  arena *a = x->w->a;
  const space *sp = x->w->p->sp;
  x->groups = NEWN(a, group, group_count(sp) + 1);
  for (u32 k = 0; k < x->f->body.n; k++) note_group(x, x->f->body.v[k].g);
  for (value v = 1; v < x->f->values.n; v++) note_type(x, val(x->f, v)->ty);
  u8 *in = ZNEWN(a, u8, (size_t)x->nranks * (x->ngroups + 1));
  x->place = ZNEWN(a, u32, x->nranks), x->first = ZNEWN(a, u32, x->nranks);
  hmap known = {0};
  for (u32 r = 0; r < x->nranks; r++) {
    u8 *own = in + (size_t)r * x->ngroups;
    for (u32 k = 0; k < x->ngroups; k++) own[k] = group_member(sp, x->groups[k], r) >= 0;
    const u64 h = hash_bytes(own, x->ngroups, 7);
    u32 place = x->nplaces;
    for (u32 it = 0, id; hmap_next(&known, h, &it, &id);)
      if (!memcmp(own, in + (size_t)x->first[id] * x->ngroups, x->ngroups)) place = id;
    if (place == x->nplaces) {
      hmap_add(a, &known, h, place);
      x->first[x->nplaces++] = r;
    }
    x->place[r] = place;
  }
}

// ---- one place -----------------------------------------------------------------------------------------
const char *py_param(const py *w, const func_info *f, u32 param) {
  const sym name = val(f, param + 1)->name;
  return sym_str(w->c, name.i ? name : sym_fmt(w->c, "%u", param));
}

static const char *stored(py *w, const func_info *f, u32 param) {
  strbuf b = {.a = w->a};
  const role r = f->params.v[param].r;
  sb_put(&b, r == ROLE_INPUT || r == ROLE_LABEL ? "data[" : "w[");
  py_quote(&b, py_param(w, f, param));
  sb_char(&b, ']');
  return sb_str(&b);
}

// Parameter that a result is of the next step; f->nparams: of none.
static u32 updates(py *w, const func_info *f, value v) {
  const sym old = ir_old_name(w->c, val(f, v)->name);
  for (u32 k = 0; old.i && k < f->nparams; k++)
    if (val(f, k + 1)->name.i == old.i) return k;
  return f->nparams;
}

// May the new value take the place of the old one at once? If nobody reads that later.
static bool at_once(const py_scope *s, value param, value new) {
  const u32 def = val(s->f, new)->def;
  return def && s->last[param] <= def;
}

static void name_stored(py_scope *s) {
  for (u32 k = 0; k < s->f->nparams; k++) s->name[k + 1] = stored(s->w, s->f, k);
  for (u32 k = 0; k < s->f->rets.n; k++) {
    const value v = s->f->rets.v[k];
    const u32 param = updates(s->w, s->f, v);
    if (param < s->f->nparams && at_once(s, param + 1, v)) s->name[v] = s->name[param + 1];
  }
}

// What a step gives beside new weights and states.
static void put_results(py_scope *s) {
  py *w = s->w;
  const char **item = NEWN(w->a, const char *, s->f->rets.n + 1);
  u32 n = 0, floats = 0;
  for (u32 k = 0; k < s->f->rets.n; k++) {
    const value v = s->f->rets.v[k];
    const type_info *t = val_type(w->p, s->f, v);
    const u32 param = updates(w, s->f, v);
    const bool here = py_present(w, val(s->f, v)->ty, s->rank);
    if (param < s->f->nparams) {
      if (here && strcmp(py_value(s, v), stored(w, s->f, param)))
        py_put(w, s->indent, "%s = %s", stored(w, s->f, param), py_value(s, v));
      continue;
    }
    strbuf b = {.a = w->a};
    if (!t->s.nd && dtype_kind_of(t->s.t) == DK_FLOAT && !floats++)
      sb_fmt(&b, "\"loss\"");
    else if (val(s->f, v)->name.i)
      py_quote(&b, sym_str(w->c, val(s->f, v)->name));
    else
      sb_fmt(&b, "\"%u\"", k);
    if (!here) continue;
    sb_fmt(&b, ": %s", py_value(s, v));
    item[n++] = sb_str(&b);
  }
  py_line(w, s->indent, "return {", item, n, "}");
}

// Values that nobody reads any more: activations that a backward has read.
static void put_dead(py_scope *s, const instr *i, u32 index) {
  strbuf b = {.a = s->w->a};
  for (u32 k = 0; k < instr_nopd(s->f, i); k++) {
    const value v = opd_of(s->f, i, k);
    if (s->last[v] != index + 1 || !val(s->f, v)->def || strchr(py_value(s, v), '[')) continue;
    if (s->f->body.v[val(s->f, v)->def - 1].op != OP_call || !val_type(s->w->p, s->f, v)->tuple) continue;
    sb_fmt(&b, "%s%s", b.n ? ", " : "", py_value(s, v));
  }
  if (b.n) py_put(s->w, s->indent, "del %s", sb_str(&b));
}

static void put_place(places *x, u32 place) {
  py *w = x->w;
  const bool sums = w->sums; // of functions, and so of every place
  py_scope s = py_scope_of(w, w->p->main, PY_INDENT);
  s.rank = x->first[place];
  py_name(w, &s.names, "w"), py_name(w, &s.names, "data"); // its parameters
  name_stored(&s);
  bool sends = false;
  u32 *taken = NEWN(w->a, u32, x->f->body.n + 1), n = 0;
  for (u32 k = 0; k < x->f->body.n; k++)
    if (takes_part(w, x->f, &x->f->body.v[k], s.rank)) {
      taken[n++] = k;
      sends = sends || x->f->body.v[k].op == OP_send;
    }
  const bool rolled = py_roll(&s, taken, n);
  for (u32 k = 0; k < n && !rolled && !w->failed; k++) {
    py_instr(&s, &x->f->body.v[taken[k]]);
    put_dead(&s, &x->f->body.v[taken[k]], taken[k]);
  }
  if (w->failed) return;
  if (sends) py_put(w, s.indent, "finish_sends()");
  w->sums = sums;
  put_results(&s);
}

static void put_ranks(places *x, u32 place, strbuf *b) {
  u32 from = 0;
  bool any = false;
  for (u32 r = 0; r <= x->nranks; r++) {
    const bool in = r < x->nranks && x->place[r] == place;
    const bool before = r && x->place[r - 1] == place;
    if (in && !before) from = r;
    if (in || !before) continue;
    sb_fmt(b, "%s%u", any ? ", " : "", from);
    if (r - 1 > from) sb_fmt(b, " to %u", r - 1);
    any = true;
  }
}

u32 py_ranks(const prog *p) { return MAX(mesh_ranks(p->sp), 1u); }

void py_step(py *w) {
  places x = {.w = w, .f = func_get(w->p, w->p->main), .nranks = py_ranks(w->p)};
  find_places(&x);
  for (u32 k = 0; k < x.nplaces && !w->failed; k++) {
    strbuf ranks = {.a = w->a};
    put_ranks(&x, k, &ranks);
    py_put(w, 0, "\n\ndef step_%u(w, data):", k);
    py_put(w, PY_INDENT, "\"\"\"One step of rank%s %s.\"\"\"", strpbrk(sb_str(&ranks), " ,") ? "s" : "",
           sb_str(&ranks));
    put_place(&x, k);
  }
  strbuf b = {.a = w->a};
  if (x.nplaces == 1) {
    py_put(w, 0, "\n\nstep = step_0");
    return;
  }
  sb_put(&b, "\n\nstep = [");
  for (u32 k = 0; k < x.nplaces; k++) sb_fmt(&b, "%sstep_%u", k ? ", " : "", k);
  sb_put(&b, "][[");
  const char **item = NEWN(w->a, const char *, x.nranks);
  for (u32 r = 0; r < x.nranks; r++) {
    strbuf n = {.a = w->a};
    sb_fmt(&n, "%u", x.place[r]);
    item[r] = sb_str(&n);
  }
  py_line(w, 0, sb_str(&b), item, x.nranks, "][RANK]]");
}
