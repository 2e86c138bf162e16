// roll.c - the tasks of one place as a loop: the schedule is a line of text, and each kind of task stands once.
//
// Idea: main has every task of every microbatch, as the schedule orders them. Tasks of one kind (a stage's forward, its
// sends) do the same with other values. A value that another task of the same microbatch reads is kept by microbatch;
// one that the next task of its kind takes over, such as the sum of gradients so far, has one name. Where values go
// any other way there is no loop.
#include "export/internal.h"

typedef struct {
  u32 kind, mb;
  u32 n, *at; // its instructions
} item;
typedef struct {
  u32 stage, first; // item
  char letter;
  bool send, gone; // gone: part of another kind
} kind;

enum { NOWHERE = UINT32_MAX };
typedef struct {
  py_scope *s;
  py *w;
  const func_info *f;
  u32 nitems, nkinds, before, after; // instructions before the first task, and from the first behind the last
  item *items;
  kind *kinds;
  u32 *item_of, *place; // by instruction: its item, and its place among that one's instructions
  u8 *kept;             // by value: it is read by another task of its microbatch
  value *takes;         // by value: the one whose name it has
} rolling;

// ---- tasks ---------------------------------------------------------------------------------------------
static const task_span *span_of(const prog *p, u32 index) {
  u32 lo = 0, hi = p->tasks.n;
  while (lo + 1 < hi) {
    const u32 mid = (lo + hi) / 2;
    if (p->tasks.v[mid].from <= index)
      lo = mid;
    else
      hi = mid;
  }
  return p->tasks.n && p->tasks.v[lo].from <= index ? &p->tasks.v[lo] : NULL;
}

static u32 kind_of(rolling *x, const task_span *t, u32 first) {
  for (u32 k = 0; k < x->nkinds; k++)
    if (x->kinds[k].stage == t->stage && x->kinds[k].letter == t->letter && x->kinds[k].send == t->send)
      return k;
  x->kinds[x->nkinds++] = (kind){.stage = t->stage, .letter = t->letter, .send = t->send, .first = first};
  return x->nkinds - 1;
}

static bool find_items(rolling *x, const u32 *taken, u32 n) {
  const prog *p = x->w->p;
  x->before = n, x->after = 0;
  for (u32 k = 0; k < n; k++) {
    const task_span *t = span_of(p, taken[k]);
    if (!t || !t->letter) continue;
    x->before = MIN(x->before, k), x->after = k + 1;
  }
  for (u32 k = x->before; k < x->after; k++) {
    const task_span *t = span_of(p, taken[k]);
    if (!t || !t->letter) return false;
    item *last = x->nitems ? &x->items[x->nitems - 1] : NULL;
    const u32 kd = kind_of(x, t, x->nitems);
    if (!last || last->kind != kd || last->mb != t->microbatch)
      x->items[x->nitems++] = (item){.kind = kd, .mb = t->microbatch, .at = NEWN(x->w->a, u32, n)};
    last = &x->items[x->nitems - 1];
    last->at[last->n++] = taken[k];
  }
  return x->nitems;
}

// Kinds that always follow each other at once are one.
static bool join_kinds(rolling *x) {
  for (u32 a = 0; a < x->nkinds; a++) {
    u32 b = NOWHERE, na = 0, nb = 0;
    if (x->kinds[a].gone) continue;
    for (u32 k = 0; k < x->nitems; k++) {
      if (x->items[k].kind != a) continue;
      na++;
      const item *next = k + 1 < x->nitems ? &x->items[k + 1] : NULL;
      if (!next || next->kind == a || next->mb != x->items[k].mb || (b != NOWHERE && next->kind != b)) {
        b = NOWHERE;
        break;
      }
      b = next->kind;
    }
    for (u32 k = 0; k < x->nitems; k++) nb += b != NOWHERE && x->items[k].kind == b;
    if (b == NOWHERE || na != nb) continue;
    if (x->kinds[a].send) x->kinds[a].stage = x->kinds[b].stage, x->kinds[a].letter = x->kinds[b].letter;
    x->kinds[a].send = x->kinds[a].send && x->kinds[b].send;
    x->kinds[b].gone = true;
    u32 m = 0;
    for (u32 k = 0; k < x->nitems; k++) {
      if (x->items[k].kind == b && m) {
        memcpy(x->items[m - 1].at + x->items[m - 1].n, x->items[k].at, sizeof(u32) * x->items[k].n);
        x->items[m - 1].n += x->items[k].n;
      } else
        x->items[m++] = x->items[k];
    }
    x->nitems = m;
    for (u32 k = x->nitems; k-- > 0;) x->kinds[x->items[k].kind].first = k;
    return true;
  }
  return false;
}

// ---- are the tasks of a kind alike? --------------------------------------------------------------------
static bool at_microbatch(const rolling *x, const instr *i, u32 mb) {
  const py *w = x->w;
  return (w->p->fixed.v[i->coord] >> w->loop & 1) && w->p->points.v[i->coord].at[w->loop] == mb;
}

static bool alike(const rolling *x, const item *p, const item *q) {
  if (p->n != q->n) return false;
  for (u32 k = 0; k < p->n; k++) {
    const instr *i = &x->f->body.v[p->at[k]], *j = &x->f->body.v[q->at[k]];
    if (i->op != j->op || i->g.i != j->g.i || i->strm != j->strm || i->callee.i != j->callee.i ||
        i->nopd != j->nopd || i->nres != j->nres || !at_microbatch(x, i, p->mb) ||
        !at_microbatch(x, j, q->mb))
      return false;
    if (i->op == OP_part) {
      const attrs a = attrs_get(x->w->p, i->at), b = attrs_get(x->w->p, j->at);
      const u8 axis = attr_get(a, A_over)->u.axes[0];
      if (axis != attr_get(b, A_over)->u.axes[0]) return false;
      if (axis == x->w->loop && (attr_int(a, A_at, 0) != p->mb || attr_int(b, A_at, 0) != q->mb))
        return false;
      if (axis != x->w->loop && i->at.i != j->at.i) return false;
    } else if (i->at.i != j->at.i)
      return false;
    for (u32 r = 0; r < i->nres; r++)
      if (val(x->f, i->res + r)->ty.i != val(x->f, j->res + r)->ty.i) return false;
  }
  return true;
}

static u32 def_item(const rolling *x, value v) {
  const u32 def = val(x->f, v)->def;
  return def ? x->item_of[def - 1] : NOWHERE;
}
static u32 def_place(const rolling *x, value v) { return x->place[val(x->f, v)->def - 1]; }
static u32 def_result(const rolling *x, value v) { return v - x->f->body.v[val(x->f, v)->def - 1].res; }

// The same result of the same instruction, of tasks of one kind?
static bool same_spot(const rolling *x, value v, value u) {
  const u32 a = def_item(x, v), b = def_item(x, u);
  return a != NOWHERE && b != NOWHERE && x->items[a].kind == x->items[b].kind &&
         def_place(x, v) == def_place(x, u) && def_result(x, v) == def_result(x, u);
}

// Those that read it, not those that only come after it.
static u32 nuses(const rolling *x, value v) {
  u32 n = 0;
  for (u32 u = x->s->uses.begin[v]; u < x->s->uses.begin[v + 1]; u++) {
    const u32 use = x->s->uses.use[u];
    const instr *i = use ? &x->f->body.v[use - 1] : NULL;
    n += !i;
    for (u32 k = 0; i && k < instr_nopd(x->f, i); k++)
      if (opd_of(x->f, i, k) == v) {
        n++;
        break;
      }
  }
  return n;
}

// One operand of one instruction over all tasks of a kind.
static bool operand_goes(rolling *x, u32 kd, u32 place, u32 k) {
  value first = 0, before = 0;
  enum { UNKNOWN, SAME, KEPT, TAKEN } how = UNKNOWN;
  for (u32 t = 0; t < x->nitems; t++) {
    const item *it = &x->items[t];
    if (it->kind != kd) continue;
    const instr *i = &x->f->body.v[it->at[place]];
    const value v = opd_of(x->f, i, k);
    const u32 from = def_item(x, v);
    if (!py_present(x->w, val(x->f, v)->ty, x->s->rank)) continue; // what is received
    if (from != NOWHERE && x->items[from].mb == it->mb && (how == UNKNOWN || how == KEPT)) {
      if (first && !same_spot(x, first, v)) return false;
      how = KEPT;
      if (from != t) x->kept[v] = 1;
    } else if (from == NOWHERE && !first)
      how = SAME;
    else if (from == NOWHERE && how == SAME && v == before)
      ;
    else if (from != NOWHERE && (how == SAME || how == TAKEN) && x->items[from].kind == kd) {
      // taken over from the task before: from the second one on
      if (how == SAME && before != first) return false;
      if (nuses(x, v) != 1 || (how == SAME && nuses(x, first) != 1)) return false;
      if (how == TAKEN && !same_spot(x, before, v)) return false;
      how = TAKEN;
      x->takes[v] = first;
    } else
      return false;
    if (!first) first = v;
    before = v;
  }
  return true;
}

// The last sum of a chain is like those before it.
static void end_chains(rolling *x) {
  for (u32 t = 0; t < x->nitems; t++)
    for (u32 k = 0; k < x->items[t].n; k++) {
      const instr *i = &x->f->body.v[x->items[t].at[k]];
      for (u32 r = 0; r < i->nres; r++) {
        const instr *one = &x->f->body.v[x->items[x->kinds[x->items[t].kind].first].at[k]];
        if (x->takes[one->res + r]) x->takes[i->res + r] = x->takes[one->res + r];
      }
    }
}

static bool goes_well(rolling *x) {
  for (u32 t = 0; t < x->nitems; t++)
    if (!alike(x, &x->items[x->kinds[x->items[t].kind].first], &x->items[t])) return false;
  for (u32 kd = 0; kd < x->nkinds; kd++) {
    if (x->kinds[kd].gone) continue;
    const item *it = &x->items[x->kinds[kd].first];
    for (u32 p = 0; p < it->n; p++)
      for (u32 k = 0; k < instr_nopd(x->f, &x->f->body.v[it->at[p]]); k++)
        if (!operand_goes(x, kd, p, k)) return false;
  }
  end_chains(x);
  return true;
}

// ---- names ---------------------------------------------------------------------------------------------
// What tasks of a microbatch keep for others, or for what follows the loop.
static void name_kept(rolling *x, const u32 *taken, u32 n) {
  py *w = x->w;
  for (u32 k = x->after; k < n; k++)
    for (u32 j = 0; j < instr_nopd(x->f, &x->f->body.v[taken[k]]); j++) {
      const value v = opd_of(x->f, &x->f->body.v[taken[k]], j);
      if (def_item(x, v) != NOWHERE && !x->takes[v]) x->kept[v] = 1;
    }
  for (u32 k = 0; k < x->f->rets.n; k++)
    if (def_item(x, x->f->rets.v[k]) != NOWHERE && !x->takes[x->f->rets.v[k]]) x->kept[x->f->rets.v[k]] = 1;
  for (u32 kd = 0; kd < x->nkinds; kd++) {
    if (x->kinds[kd].gone) continue;
    const item *one = &x->items[x->kinds[kd].first];
    for (u32 p = 0; p < one->n; p++)
      for (u32 r = 0; r < x->f->body.v[one->at[p]].nres; r++) {
        const char *name = NULL;
        bool kept = false;
        for (u32 t = 0; t < x->nitems; t++)
          if (x->items[t].kind == kd) kept = kept || x->kept[x->f->body.v[x->items[t].at[p]].res + r];
        for (u32 t = 0; t < x->nitems && kept; t++) {
          if (x->items[t].kind != kd) continue;
          const value v = x->f->body.v[x->items[t].at[p]].res + r;
          if (x->takes[v]) continue;
          strbuf b = {.a = w->a};
          if (!name) {
            name = py_name(w, &x->s->names, py_hint(w, x->s->id, v));
            py_put(w, x->s->indent, "%s = {}", name);
          }
          sb_fmt(&b, "%s[%u]", name, x->items[t].mb);
          x->s->name[v] = sb_str(&b);
          x->kept[v] = 1;
        }
      }
  }
}

// In the text of a kind, what is kept of its microbatch is at the variable of the loop.
static void name_at_variable(rolling *x, u32 mb) {
  py *w = x->w;
  for (u32 t = 0; t < x->nitems; t++)
    for (u32 k = 0; x->items[t].mb == mb && k < x->items[t].n; k++) {
      const instr *i = &x->f->body.v[x->items[t].at[k]];
      for (u32 r = 0; r < i->nres; r++) {
        const value v = i->res + r;
        if (!x->kept[v] || !x->s->name[v]) continue;
        const char *name = x->s->name[v];
        x->s->name[v] =
            sym_str(w->c, sym_fmt(w->c, "%.*s[%s]", (int)strcspn(name, "["), name, w->time[w->loop]));
      }
    }
}

static void name_takers(rolling *x) {
  for (value v = 1; v < x->f->values.n; v++)
    if (x->takes[v]) x->s->name[v] = py_value(x->s, x->takes[v]);
}

// ---- text ----------------------------------------------------------------------------------------------
static const char *label(const rolling *x, u32 kd) {
  const kind *k = &x->kinds[kd];
  return sym_str(x->w->c, sym_fmt(x->w->c, "%c%u%s", k->letter, k->stage, k->send ? ">" : ""));
}

static const char *told(const rolling *x, u32 kd) {
  const kind *k = &x->kinds[kd];
  const char *what = k->letter == 'F'   ? "forward"
                     : k->letter == 'B' ? "backward"
                     : k->letter == 'I' ? "backward for the input"
                     : k->letter == 'W' ? "backward for the weights"
                                        : "task";
  return sym_str(x->w->c,
                 sym_fmt(x->w->c, "%s%s of stage %u", k->send ? "what is sent of the " : "", what, k->stage));
}

// What no later task of the microbatch reads is dropped.
static void put_drops(rolling *x, u32 t) {
  strbuf b = {.a = x->w->a};
  const item *it = &x->items[t];
  for (u32 k = 0; k < it->n; k++) {
    const instr *i = &x->f->body.v[it->at[k]];
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
      const value v = opd_of(x->f, i, o);
      if (!x->kept[v] || def_item(x, v) == NOWHERE) continue;
      const bool later = x->s->last[v] > it->at[it->n - 1] + 1;
      const char *name = py_value(x->s, v);
      const char *seen = b.n ? strstr(sb_str(&b), name) : NULL;
      if (!later && !seen && strchr(name, '[')) sb_fmt(&b, "%s%s", b.n ? ", " : "", name);
    }
  }
  if (b.n) py_put(x->w, x->s->indent, "del %s", sb_str(&b));
}

static void put_order(py *w, u32 indent, const char *s) {
  if (strlen(s) + indent + 10 <= PY_LINE) {
    py_put(w, indent, "order = \"%s\"", s);
    return;
  }
  py_put(w, indent, "order = (");
  while (*s) {
    size_t n = strlen(s), most = PY_LINE - indent - PY_INDENT - 3;
    if (n > most)
      for (n = most; s[n] != ' ';) n--;
    py_put(w, indent + PY_INDENT, "\"%.*s%s\"", (int)n, s, s[n] ? " " : "");
    s += n + (s[n] == ' ');
  }
  py_put(w, indent, ")");
}

static void put_loop(rolling *x) {
  py *w = x->w;
  const u32 indent = x->s->indent;
  strbuf text = {.a = w->a};
  for (u32 t = 0; t < x->nitems; t++)
    sb_fmt(&text, "%s%s.%u", t ? " " : "", label(x, x->items[t].kind), x->items[t].mb);
  put_order(w, indent, sb_str(&text));
  py_put(w, indent, "for task, %s in tasks(order):", w->time[w->loop]);
  bool any = false;
  for (u32 t = 0; t < x->nitems && !w->failed; t++) {
    const u32 kd = x->items[t].kind;
    if (x->kinds[kd].first != t) continue;
    name_at_variable(x, x->items[t].mb);
    py_put(w, indent + PY_INDENT, "%s task == \"%s\":  # %s", any ? "elif" : "if", label(x, kd), told(x, kd));
    any = true;
    x->s->indent = indent + 2 * PY_INDENT;
    for (u32 k = 0; k < x->items[t].n && !w->failed; k++) py_instr(x->s, &x->f->body.v[x->items[t].at[k]]);
    put_drops(x, t);
    x->s->indent = indent;
  }
}

// Names at the numbers of microbatches again, for what follows the loop.
static void name_at_numbers(rolling *x) {
  py *w = x->w;
  for (u32 t = 0; t < x->nitems; t++)
    for (u32 k = 0; k < x->items[t].n; k++) {
      const instr *i = &x->f->body.v[x->items[t].at[k]];
      for (u32 r = 0; r < i->nres; r++) {
        const char *name = x->s->name[i->res + r];
        if (x->kept[i->res + r] && name && strchr(name, '['))
          x->s->name[i->res + r] =
              sym_str(w->c, sym_fmt(w->c, "%.*s[%u]", (int)strcspn(name, "["), name, x->items[t].mb));
      }
    }
}

static u8 microbatch_axis(const prog *p) {
  u8 axis = 0;
  for (u8 x = 1; x <= axis_count(p->sp); x++)
    if (axis_get(p->sp, x)->temporal && !strcmp(sym_str(p->c, axis_get(p->sp, x)->name), "mb")) axis = x;
  return axis;
}

bool py_roll(py_scope *s, const u32 *taken, u32 n) {
  py *w = s->w;
  const prog *p = w->p;
  const u32 size = s->f->body.n;
  w->loop = microbatch_axis(p);
  if (!w->loop || p->tasks_of != size || !n) return w->loop = 0, false;
  rolling x = {.s = s,
               .w = w,
               .f = s->f,
               .items = NEWN(w->a, item, n + 1),
               .kinds = NEWN(w->a, kind, n + 1),
               .item_of = NEWN(w->a, u32, size),
               .place = ZNEWN(w->a, u32, size),
               .kept = ZNEWN(w->a, u8, s->f->values.n),
               .takes = ZNEWN(w->a, value, s->f->values.n)};
  bool ok = find_items(&x, taken, n);
  while (ok && join_kinds(&x)) continue;
  u32 kinds = 0;
  for (u32 k = 0; k < x.nkinds; k++) kinds += !x.kinds[k].gone;
  for (u32 k = 0; k < size; k++) x.item_of[k] = NOWHERE;
  for (u32 t = 0; t < x.nitems; t++)
    for (u32 k = 0; k < x.items[t].n; k++) x.item_of[x.items[t].at[k]] = t, x.place[x.items[t].at[k]] = k;
  if (!ok || x.nitems <= kinds || !goes_well(&x)) return w->loop = 0, false;
  const u8 loop = w->loop;
  w->loop = 0;
  for (u32 k = 0; k < x.before && !w->failed; k++) py_instr(s, &s->f->body.v[taken[k]]);
  name_takers(&x);
  name_kept(&x, taken, n);
  w->loop = loop;
  put_loop(&x);
  w->loop = 0;
  name_at_numbers(&x);
  for (u32 k = x.after; k < n && !w->failed; k++) py_instr(s, &s->f->body.v[taken[k]]);
  return true;
}
