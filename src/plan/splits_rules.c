// splits_rules.c - rules about splits, read from YAML: which operators they are about, and what they allow. Every rule must
// match something, and every letter and dimension must be one of what it matches: mistakes are located.
#include "plan/splits_rules.h"
#include <errno.h>
#include <stdlib.h>

typedef enum { WHOLE_MAY, WHOLE_NEVER, WHOLE_ONLY } whole_rule;
typedef struct {
  bool **match; // by function and instruction, from 0
  u32 nletters, ndims, ndegrees;
  const char **letter;
  u32 (*dim)[2]; // operand and dimension
  u32 *degree;
  bool has_letters, has_dims, has_degrees, again;
  whole_rule whole;
  bool says_again; // whether it is computed again
  loc at, at_letters, at_dims, at_degrees, at_whole, at_again;
} rule;
struct splits_rules {
  u32 n;
  rule *v;
  planner *pl;
};
typedef struct {
  planner *pl;
  ctx *c;
  arena *a;
  bool failed;
} reader;

static void bad(reader *r, const ynode *y, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void bad(reader *r, const ynode *y, const char *fmt, ...) {
  va_list ap;
  char text[512];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(r->c, E_RULES, y->at, "%s", text);
  r->failed = true;
}

// ---- what a rule is about -----------------------------------------------------------------------------------
static bool globs(const char *pattern, const char *text) {
  for (; *pattern && *pattern != '*'; pattern++, text++)
    if (!*text || (*pattern != '?' && *pattern != *text)) return false;
  if (!*pattern) return !*text;
  for (;; text++) {
    if (globs(pattern + 1, text)) return true;
    if (!*text) return false;
  }
}

typedef bool each_name(void *arg, const char *name);

// All names that an instruction goes by, whichever call of its function it is in: its function, FUNCTION:NUMBER, its node unless every
// call has one of its own, parameters that it reads, its results. Ends, and returns true, at the first that `each` takes.
static bool names_of(const reader *r, func f, u32 index, each_name *each, void *arg) {
  const prog *p = planner_source(r->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  const loc_info *at = loc_get(r->c, in->where);
  const char *fn = sym_str(r->c, fi->name);
  if (at && at->node.i && !at->alike.i && each(arg, sym_str(r->c, at->node))) return true;
  if (each(arg, fn) || each(arg, arena_printf(r->a, "%s:%u", fn, index + 1))) return true;
  for (u32 k = 0; k < instr_nopd(fi, in); k++) {
    const value v = opd_of(fi, in, k);
    const char *name = sym_str(r->c, fi->values.v[v].name);
    if (!val(fi, v)->def && *name && each(arg, name)) return true;
  }
  for (u32 k = 0; k < in->nres; k++) {
    const char *name = sym_str(r->c, fi->values.v[in->res + k].name);
    if (*name && each(arg, name)) return true;
  }
  return false;
}

// The calls of a function in main, and how many of them there are.
static u32 calls_of(const reader *r, func f, const instr **v) {
  const prog *p = planner_source(r->pl);
  const func_info *m = func_get(p, p->main);
  u32 n = 0;
  for (u32 i = 0; i < m->body.n; i++)
    if (m->body.v[i].op == OP_call && m->body.v[i].callee.i == f.i) v[n++] = &m->body.v[i];
  return n;
}

// The names that an instruction has in one call of its function alone: its node in the model, weights that it reads.
static bool names_in_call(const reader *r, func f, u32 index, u32 call, const instr *const *calls, u32 ncalls,
                          each_name *each, void *arg) {
  const prog *p = planner_source(r->pl);
  const func_info *fi = func_get(p, f), *m = func_get(p, p->main);
  const instr *in = &fi->body.v[index];
  const loc_info *at = loc_get(r->c, in->where);
  if (at && at->alike.i) {
    for (u32 k = 0; at && k < call; k++) at = loc_get(r->c, at->alike);
    if (at && at->node.i && each(arg, sym_str(r->c, at->node))) return true;
  }
  if (call >= ncalls) return false;
  for (u32 k = 0; k < instr_nopd(fi, in); k++) {
    const value v = opd_of(fi, in, k);
    if (val(fi, v)->def) continue;
    const value w = opd_of(m, calls[call], v - 1);
    const char *name = sym_str(r->c, m->values.v[w].name);
    if (!val(m, w)->def && *name && each(arg, name)) return true;
  }
  return false;
}

static bool matches(void *arg, const char *name) { return globs(arg, name); }

// All names that a rule may have for it.
static void offer_names(const reader *r, func f, u32 index, splits_meant *meant) {
  const char *node = splits_node(r->a, planner_source(r->pl), f, index);
  meant->function = sym_str(r->c, func_get(planner_source(r->pl), f)->name);
  if (node) splits_offer(meant, node);
  names_of(r, f, index, splits_offer, meant);
}

static bool is_operator(const prog *p, func f, u32 index) {
  const u16 op = func_get(p, f)->body.v[index].op;
  return op != OP_call && op != OP_pack && op != OP_unpack && !(op_row_of((opcode)op)->flags & OPF_META);
}

// In how many calls the instruction is called so, of how many.
typedef struct {
  func f;
  u32 index, n, of;
  const char *one,
      *other; // a name that matches in one call, the name of the same in a call where it does not
} partly;

typedef struct {
  const char *pattern, *name; // the name that matches, or the one at this position
  u32 n, at;                  // names so far, the position
} match_arg;

static bool matches_name(void *arg, const char *name) {
  match_arg *x = arg;
  const bool is = x->pattern ? globs(x->pattern, name) : x->n == x->at;
  if (is) x->name = name, x->at = x->n;
  x->n++;
  return is;
}

static partly match_calls(const reader *r, func f, u32 index, const char *pattern, const instr **calls) {
  const prog *p = planner_source(r->pl);
  const u32 ncalls = f.i == p->main.i ? 0 : calls_of(r, f, calls);
  partly x = {.f = f, .index = index, .of = MAX(ncalls, 1)};
  u32 copies = 0;
  for (loc l = func_get(p, f)->body.v[index].where; l.i; l = loc_get(r->c, l)->alike) copies++;
  if (copies > 1 && copies != ncalls) x.of = copies; // what stands for which call is not known: nodes alone
  const u32 known = x.of == ncalls ? ncalls : 0;
  match_arg one = {.pattern = pattern}, other = {0};
  u32 but = 0; // a call where it does not match
  for (u32 k = 0; k < x.of; k++) {
    match_arg arg = {.pattern = pattern};
    const bool is = names_in_call(r, f, index, k, calls, known, matches_name, &arg);
    x.n += is;
    if (is && !one.name) one = arg;
    if (!is) but = k;
  }
  if (!x.n || x.n == x.of) return x;
  other.at = one.at;
  names_in_call(r, f, index, but, calls, known, matches_name, &other);
  x.one = one.name, x.other = other.name ? other.name : "";
  return x;
}

// The pattern with * for what differs between two names: for "*.0/*" of ".0/up" and ".3/up", "*.*/*". NULL: it has no such part.
static const char *widened(arena *a, const char *pattern, const char *one, const char *other) {
  size_t from = 0, to = strlen(one), rest = strlen(other);
  while (from < to && from < rest && one[from] == other[from]) from++;
  while (to > from && rest > from && one[to - 1] == other[rest - 1]) to--, rest--;
  const char digits[] = "0123456789";
  while (from > 0 && strchr(digits, one[from - 1])) from--;
  while (one[to] && strchr(digits, one[to])) to++;
  const size_t n = to - from;
  for (const char *at = pattern; n && (at = strstr(at, arena_strndup(a, one + from, n))); at++) {
    if (at > pattern && from && at[-1] != '*' && at[-1] != '?' && at[-1] != one[from - 1]) continue;
    if (at[n] && strchr(digits, at[n])) continue;
    return arena_printf(a, "%.*s*%s", (int)(at - pattern), pattern, at + n);
  }
  return NULL;
}

static void tell_partly(reader *r, const ynode *node, const partly *x, const instr **calls) {
  const func_info *fi = func_get(planner_source(r->pl), x->f);
  const char *fn = sym_str(r->c, fi->name);
  bad(r, node, "`%s` matches %s in %u of %u calls of %s, which are split alike: a rule holds for all of them",
      node->str, op_row_of((opcode)fi->body.v[x->index].op)->name, x->n, x->of, fn);
  const char *wide = widened(r->a, node->str, x->one, x->other);
  if (wide && match_calls(r, x->f, x->index, wide, calls).n == x->of)
    diag_hint(r->c, "node: \"%s\"", wide);
  else
    diag_hint(r->c, "node: \"%s:%u\"", fn, x->index + 1);
}

static void find_matches(reader *r, const ynode *y, rule *out) {
  const ynode *op = yaml_get(y, "op"), *node = yaml_get(y, "node");
  const prog *p = planner_source(r->pl);
  const u32 nf = planner_funcs(r->pl);
  const char *what = op && op->kind == Y_SCALAR ? op->str : NULL,
             *where = node && node->kind == Y_SCALAR ? node->str : NULL;
  if (op && !what) bad(r, op, "`op` must be the name of an operator");
  if (node && !where) bad(r, node, "`node` must be a name or a pattern");
  if (!op && !node) bad(r, y, "a rule says what it is about: `op` or `node`");
  if (what && op_named(r->c, what, strlen(what)) == OP_none) {
    const char *near = op_near(r->c, what, strlen(what));
    bad(r, op, "unknown operator `%s`", what);
    if (near) diag_hint(r->c, "did you mean `%s`?", near);
  }
  if (r->failed) return;
  assert(where || what); // else it has failed
  u32 n = 0;
  splits_meant near = splits_meant_by(where ? where : what);
  out->match = ZNEWN(r->a, bool *, nf + 1);
  const instr **calls = NEWN(r->a, const instr *, func_get(p, p->main)->body.n + 1);
  partly part = {0};
  for (u32 f = 1; f < nf; f++) {
    const func_info *fi = func_get(p, (func){f});
    out->match[f] = ZNEWN(r->a, bool, fi->body.n + 1);
    for (u32 i = 0; i < fi->body.n; i++) {
      if (!is_operator(p, (func){f}, i)) continue;
      const char *name = op_row_of((opcode)fi->body.v[i].op)->name;
      if (what && strcmp(what, name)) {
        if (!where) splits_offer(&near, name);
        continue;
      }
      if (where && !names_of(r, (func){f}, i, matches, (void *)where)) {
        const partly x = match_calls(r, (func){f}, i, where, calls);
        if (!x.n) offer_names(r, (func){f}, i, &near);
        if (x.n && x.n < x.of && !part.n) part = x;
        if (x.n < x.of) continue;
      }
      out->match[f][i] = true, n++;
    }
  }
  if (part.n) tell_partly(r, node, &part, calls);
  if (n || part.n) return;
  if (where && what)
    bad(r, node, "no %s of the model is called `%s`", what, where);
  else if (where)
    bad(r, node, "no operator of the model is called `%s`", where);
  else
    bad(r, op, "the model has no %s", what);
  if (splits_nearest(&near))
    diag_hint(r->c, "the nearest is `%s`", splits_nearest(&near));
  else
    diag_hint(r->c,
              "`heddle plan --auto` without --constraints lists the operators with their functions, nodes "
              "and weights; * stands for anything");
}

// ---- what it allows -----------------------------------------------------------------------------------------
// Does a matched operator have a letter of that name that may be split? The letters that there are, and which is nearest.
static void check_letter(reader *r, const ynode *y, const rule *w) {
  const prog *p = planner_source(r->pl);
  near_name near = near_to(y->str, strlen(y->str));
  strbuf all = {.a = r->a};
  const char *of = "";
  bool whole = false;
  for (u32 f = 1; f < planner_funcs(r->pl); f++) {
    const func_info *fi = func_get(p, (func){f});
    for (u32 i = 0; i < fi->body.n; i++) {
      if (!w->match[f][i]) continue;
      const law *l = plan_law(r->pl, (func){f}, i);
      const char *const *name = l ? law_letter_names(r->a, l) : NULL;
      const bool first = !all.n;
      for (u32 k = 0; l && k < l->nletters; k++) {
        const bool may = law_whole_reason((opcode)fi->body.v[i].op, l, k) == WHOLE_NOT;
        if (!strcmp(name[k], y->str) && may) return;
        whole |= !may && (name[k][0] | 32) == (y->str[0] | 32) && !strcmp(name[k] + 1, y->str + 1);
        if (may) near_try(&near, name[k]);
        if (may && first) sb_fmt(&all, "%s%s", all.n ? " " : "", name[k]);
      }
      if (first) of = op_row_of((opcode)fi->body.v[i].op)->name;
    }
  }
  bad(r, y, whole ? "%s must have %s whole" : "%s has no letter `%s`", of, y->str);
  if (all.n)
    diag_hint(r->c, near.name && strlen(y->str) > 1 ? "did you mean `%s`?" : "letters that may be split: %s",
              near.name && strlen(y->str) > 1 ? near.name : sb_str(&all));
  else
    diag_hint(r->c, "whole: only");
}

static bool is_list(reader *r, const ynode *y, const char *key) {
  if (y->kind != Y_SEQ) bad(r, y, "`%s` must be a list", key);
  return y->kind == Y_SEQ;
}

static void read_letters(reader *r, const ynode *y, rule *w) {
  if (!y || !is_list(r, y, "letters")) return;
  w->has_letters = true, w->at_letters = y->at;
  w->letter = NEWN(r->a, const char *, y->n + 1);
  for (u32 k = 0; k < y->n && !r->failed; k++) {
    if (y->item[k]->kind != Y_SCALAR || !*y->item[k]->str) {
      bad(r, y->item[k], "a letter is a name, such as `n`");
      return;
    }
    check_letter(r, y->item[k], w);
    w->letter[w->nletters++] = y->item[k]->str;
  }
}

static bool read_number(reader *r, const ynode *y, u32 least, u32 *out) {
  char *end = NULL;
  errno = 0;
  const long long v = y->kind == Y_SCALAR ? strtoll(y->str, &end, 10) : -1;
  if (y->kind != Y_SCALAR || end == y->str || *end || errno || v < least || v > CHOICE_MOST) {
    bad(r, y, "expected an integer, %u or more", least);
    return false;
  }
  *out = (u32)v;
  return true;
}

static void read_dims(reader *r, const ynode *y, rule *w) {
  const prog *p = planner_source(r->pl);
  if (!y || !is_list(r, y, "dims")) return;
  w->has_dims = true, w->at_dims = y->at;
  w->dim = arena_alloc(r->a, sizeof *w->dim * (y->n + 1));
  for (u32 k = 0; k < y->n && !r->failed; k++) {
    const ynode *e = y->item[k];
    u32 *d = w->dim[w->ndims];
    if (e->kind != Y_SEQ || e->n != 2) {
      bad(r, e, "a dimension is [OPERAND, DIMENSION], both from 0");
      diag_hint(r->c, "dims: [[1, 0], [1, 1]]");
      return;
    }
    if (!read_number(r, e->item[0], 0, &d[0]) || !read_number(r, e->item[1], 0, &d[1])) return;
    bool any = false;
    u32 most[2] = {0, 0};
    const char *of = "";
    for (u32 f = 1; f < planner_funcs(r->pl); f++)
      for (u32 i = 0; i < func_get(p, (func){f})->body.n; i++) {
        const law *l = w->match[f][i] ? plan_law(r->pl, (func){f}, i) : NULL;
        if (!l) continue;
        of = op_row_of((opcode)func_get(p, (func){f})->body.v[i].op)->name;
        most[0] = MAX(most[0], l->nopd);
        if (d[0] < l->nopd) most[1] = MAX(most[1], l->opd[d[0]].nd);
        any |= d[0] < l->nopd && d[1] < l->opd[d[0]].nd;
      }
    if (!any && d[0] >= most[0])
      bad(r, e->item[0], "operand %u: %s has %u operands, from 0", d[0], of, most[0]);
    else if (!any)
      bad(r, e->item[1], "dimension %u: operand %u of %s has %u dimensions, from 0", d[1], d[0], of, most[1]);
    w->ndims++;
  }
}

static void read_degrees(reader *r, const ynode *y, rule *w) {
  if (!y || !is_list(r, y, "degrees")) return;
  w->has_degrees = true, w->at_degrees = y->at;
  w->degree = NEWN(r->a, u32, y->n + 1);
  for (u32 k = 0; k < y->n; k++)
    if (read_number(r, y->item[k], 1, &w->degree[w->ndegrees])) w->ndegrees++;
}

// One of several words; 0 if it is none of them.
static u32 read_word(reader *r, const ynode *y, const char *key, const char *const *words) {
  near_name near = near_to(y->kind == Y_SCALAR ? y->str : "", y->kind == Y_SCALAR ? strlen(y->str) : 0);
  strbuf all = {.a = r->a};
  for (u32 k = 0; words[k]; k++) {
    if (y->kind == Y_SCALAR && !strcmp(words[k], y->str)) return k;
    near_try(&near, words[k]);
    sb_fmt(&all, "%s%s", k ? ", " : "", words[k]);
  }
  bad(r, y, "`%s` is one of: %s", key, sb_str(&all));
  if (near.name) diag_hint(r->c, "did you mean `%s`?", near.name);
  return 0;
}

// One list of numbers is known: `degrees`.
static bool lists_numbers(const ynode *y) {
  bool all = y->kind == Y_SEQ && y->n;
  for (u32 k = 0; all && k < y->n; k++)
    all = y->item[k]->kind == Y_SCALAR && y->item[k]->str[strspn(y->item[k]->str, "0123456789")] == 0;
  return all;
}

static void known_keys(reader *r, const ynode *y, const char *const *keys) {
  for (u32 i = 0; i < y->n; i++) {
    near_name near = near_to(y->key[i]->str, strlen(y->key[i]->str));
    strbuf all = {.a = r->a};
    u32 k = 0;
    for (; keys[k] && strcmp(keys[k], y->key[i]->str); k++) {
      near_try(&near, keys[k]);
      sb_fmt(&all, "%s%s", k ? ", " : "", keys[k]);
      if (!strcmp(keys[k], "degrees") && lists_numbers(y->item[i])) near.name = keys[k], near.limit = 0;
    }
    if (keys[k]) continue;
    bad(r, y->key[i], "unknown key `%s`", y->key[i]->str);
    if (near.name)
      diag_hint(r->c, "did you mean `%s`?", near.name);
    else
      diag_hint(r->c, "known keys: %s", sb_str(&all));
  }
}

static void read_rule(reader *r, const ynode *y, rule *w) {
  static const char *const keys[] = {"op", "node", "letters", "dims", "whole", "degrees", "recompute", NULL},
                           *const wholes[] = {"may", "never", "only", NULL},
                           *const truths[] = {"false", "true", NULL};
  *w = (rule){.at = y->at};
  if (y->kind != Y_MAP) {
    bad(r, y, "a rule is a map");
    diag_hint(r->c, "- {op: matmul, letters: [n]}");
    return;
  }
  known_keys(r, y, keys);
  find_matches(r, y, w);
  if (r->failed) return;
  read_letters(r, yaml_get(y, "letters"), w);
  read_dims(r, yaml_get(y, "dims"), w);
  read_degrees(r, yaml_get(y, "degrees"), w);
  const ynode *whole = yaml_get(y, "whole"), *again = yaml_get(y, "recompute");
  if (whole) w->whole = (whole_rule)read_word(r, whole, "whole", wholes), w->at_whole = whole->at;
  if (again)
    w->again = read_word(r, again, "recompute", truths), w->says_again = true, w->at_again = again->at;
  if (!w->has_letters && !w->has_dims && !w->has_degrees && !whole && !again)
    bad(r, y, "the rule allows everything: it says neither letters, dims, degrees, whole nor recompute");
}

// ---- what cannot hold at once -------------------------------------------------------------------------------
// Of the rules for one operator. `letters`, `dims` and `degrees` say what may be split, so any of them hold at once, and with
// `whole: only`. `whole: never` says that it is split, at every degree and over some letter that the others leave.
typedef struct {
  loc at, with; // of what is wrong: the later one first
  const char *what, *hint;
} contradiction;

static void found_both(contradiction *out, loc x, loc y, const char *what, const char *hint) {
  if (out->what) return;
  const bool later = x.i > y.i; // locations are numbered as they are read
  *out = (contradiction){later ? x : y, later ? y : x, what, hint};
}

static bool has_letter(const rule *w, const char *name);
static bool has_dim(const rule *w, const law *l, u32 letter);

// Is there a letter that the rule, and `with` (or NULL), leave?
static bool leave_letters(arena *a, opcode op, const law *l, const rule *x, const rule *with) {
  const rule *of[] = {x, with};
  const char *const *name = law_letter_names(a, l);
  for (u32 i = 0; i < l->nletters; i++) {
    bool may = law_whole_reason(op, l, i) == WHOLE_NOT;
    for (u32 k = 0; k < COUNT_OF(of) && of[k]; k++) {
      if (of[k]->has_letters) may = may && has_letter(of[k], name[i]);
      if (of[k]->has_dims) may = may && has_dim(of[k], l, i);
    }
    if (may) return true;
  }
  return false;
}

static loc at_letters_of(const rule *w) { return w->has_letters ? w->at_letters : w->at_dims; }

// Two rules for one operator, or one by itself.
static contradiction contradict(reader *r, const splits_rules *all, func f, u32 index, const rule *x,
                                const rule *y) {
  static const char
      again[] = "one rule has it computed again, another one not",
      whole[] = "`whole: never` and `whole: only` cannot both hold",
      degrees[] = "`degrees` leaves it whole at other degrees, but `whole: never` says that it is split",
      none[] = "`whole: never` says that it is split, but no letter is left to split it over",
      one[] = "leave out one of both", may[] = "whole: may";
  const opcode op = (opcode)func_get(planner_source(r->pl), f)->body.v[index].op;
  const law *l = plan_law(r->pl, f, index);
  contradiction out = {0};
  if (x->says_again && y->says_again && x->again != y->again)
    found_both(&out, x->at_again, y->at_again, again, one);
  if (x->whole + y->whole == WHOLE_NEVER + WHOLE_ONLY && x->whole && y->whole)
    found_both(&out, x->at_whole, y->at_whole, whole, one);
  for (u32 k = 0; k < 2; k++) {
    const rule *p = k ? y : x, *q = k ? x : y;
    if (p->whole == WHOLE_NEVER && q->has_degrees) found_both(&out, p->at_whole, q->at_degrees, degrees, may);
  }
  if (!l || (!x->has_letters && !x->has_dims) || (!y->has_letters && !y->has_dims)) return out;
  for (u32 k = 0; k < all->n; k++) { // whichever says that it is split
    const rule *w = &all->v[k];
    if (w->whole != WHOLE_NEVER || !w->match[f.i][index] || leave_letters(r->a, op, l, x, y)) continue;
    if (x != y)
      found_both(&out, at_letters_of(x), at_letters_of(y), none, may);
    else
      found_both(&out, w->at_whole, at_letters_of(x), none, may);
  }
  return out;
}

// Each pair of rules once, at the first operator of which it is true. False: there are such.
static bool check_pairs(reader *r, const splits_rules *x) {
  const prog *p = planner_source(r->pl);
  bool *told = ZNEWN(r->a, bool, x->n * x->n + 1), ok = true;
  for (u32 f = 1; f < planner_funcs(r->pl); f++)
    for (u32 i = 0; i < func_get(p, (func){f})->body.n; i++)
      for (u32 j = 0; j < x->n; j++)
        for (u32 k = 0; k <= j; k++) {
          if (told[j * x->n + k] || !x->v[j].match[f][i] || !x->v[k].match[f][i]) continue;
          if (k != j && (told[j * x->n + j] || told[k * x->n + k])) continue; // wrong by themselves
          const contradiction c = contradict(r, x, (func){f}, i, &x->v[j], &x->v[k]);
          if (!c.what) continue;
          const func_info *fi = func_get(p, (func){f});
          told[j * x->n + k] = true, ok = false;
          diag(r->c, E_RULES, c.at, "%s, %s:%u: %s", op_row_of((opcode)fi->body.v[i].op)->name,
               sym_str(r->c, fi->name), i + 1, c.what);
          diag_note(r->c, c.with, "the other one");
          diag_hint(r->c, "%s", c.hint);
        }
  return ok;
}

splits_rules *splits_rules_read(planner *pl, arena *a, sym file, const char *text, size_t n) {
  static const char *const keys[] = {"rules", NULL};
  ctx *c = planner_source(pl)->c;
  reader r = {pl, c, a, false};
  const ynode *top = yaml_parse(c, a, file, text, n);
  if (!top) return NULL;
  if (top->kind == Y_MAP) known_keys(&r, top, keys);
  const ynode *y = top->kind == Y_MAP ? yaml_get(top, "rules") : NULL;
  if (!r.failed && (!y || y->kind != Y_SEQ)) {
    bad(&r, y ? y : top, "`rules` must be a list of rules");
    diag_hint(c, "rules:\n  - {op: matmul, letters: [n]}");
  }
  if (r.failed || !y) return NULL;
  splits_rules *x = NEW(a, splits_rules);
  *x = (splits_rules){.n = y->n, .v = NEWN(a, rule, y->n + 1), .pl = pl};
  bool failed = false;
  for (u32 k = 0; k < y->n; k++) {
    read_rule(&r, y->item[k], &x->v[k]);
    failed |= r.failed, r.failed = false;
  }
  return failed || !check_pairs(&r, x) ? NULL : x;
}

// ---- degrees that there are -----------------------------------------------------------------------------------
static bool is_degree(u32 n, u32 devices, bool some) {
  return n > 1 && (some ? n <= devices : devices % n == 0);
}

static void tell_degrees(ctx *c, const rule *w, u32 devices, bool some) {
  strbuf have = {.a = ctx_arena(c)}, said = {.a = ctx_arena(c)};
  for (u32 n = 2; n <= devices && !some; n++)
    if (is_degree(n, devices, some)) sb_fmt(&have, "%s%u", have.n ? ", " : "", n);
  for (u32 k = 0; k < w->ndegrees; k++) sb_fmt(&said, "%s%u", k ? ", " : "", w->degree[k]);
  if (w->ndegrees)
    diag(c, E_RULES, w->at_degrees, "no plan of %u devices has a tensor degree of %s", devices,
         sb_str(&said));
  else
    diag(c, E_RULES, w->at_degrees, "`degrees` lists none, so nothing may be split");
  if (some && devices > 1)
    diag_hint(c, "degrees: any from 2 to %u, or to leave it unsplit whole: only", devices);
  else if (have.n)
    diag_hint(c, "degrees: [%s], or to leave it unsplit whole: only", sb_str(&have));
  else
    diag_hint(c, "whole: only");
}

bool splits_rules_fit(const splits_rules *x, u32 devices, bool some) {
  bool all = true;
  for (u32 k = 0; k < x->n; k++) {
    const rule *w = &x->v[k];
    bool any = !w->has_degrees;
    for (u32 i = 0; i < w->ndegrees; i++) any |= is_degree(w->degree[i], devices, some);
    if (!any) tell_degrees(planner_source(x->pl)->c, w, devices, some);
    all &= any;
  }
  return all;
}

// ---- questions ----------------------------------------------------------------------------------------------
static bool among(const rule *w, u32 ways) {
  for (u32 k = 0; k < w->ndegrees; k++)
    if (w->degree[k] == ways) return true;
  return false;
}

static bool has_letter(const rule *w, const char *name) {
  for (u32 k = 0; k < w->nletters; k++)
    if (!strcmp(w->letter[k], name)) return true;
  return false;
}

static bool has_dim(const rule *w, const law *l, u32 letter) {
  for (u32 k = 0; k < w->ndims; k++) {
    if (w->dim[k][0] >= l->nopd || w->dim[k][1] >= l->opd[w->dim[k][0]].nd) continue;
    const law_dim *d = &l->opd[w->dim[k][0]].dim[w->dim[k][1]];
    for (u32 j = 0; j < d->n; j++)
      if (d->f[j] == letter) return true;
  }
  return false;
}

static bool allows(const rule *y, const splits_instr *x, const splits_way *w, u32 ways) {
  const bool splits = w->kind == WAY_INDEX || w->kind == WAY_APART;
  if (!y->match[x->fn.i][x->index]) return true;
  if (splits && y->has_degrees && !among(y, ways)) return false; // at this degree it stays whole
  if (y->whole != WHOLE_MAY && splits != (y->whole == WHOLE_NEVER)) return false;
  if (splits && y->has_letters && !has_letter(y, x->letter[w->letter])) return false;
  return !splits || !y->has_dims || has_dim(y, x->l, w->letter);
}

bool splits_rules_allow(void *rules, const splits_instr *x, const splits_way *w, u32 ways) {
  const splits_rules *r = rules;
  for (u32 k = 0; k < r->n; k++)
    if (!allows(&r->v[k], x, w, ways)) return false;
  return true;
}

// Do all rules but one allow it?
static bool others_allow(const splits_rules *r, u32 but, const splits_refusal *f, u32 k) {
  for (u32 j = 0; j < r->n; j++)
    if (j != but && !allows(&r->v[j], f->x, &f->x->way[f->way[k]], f->ways)) return false;
  return true;
}

// The letters of ways that only this rule leaves out; of all ways if there are none such. *whole: is one of them no split?
static const char *left_out(const splits_rules *r, u32 by, const splits_refusal *f, bool *whole) {
  strbuf b = {.a = ctx_arena(r->pl->src->c)};
  bool any = false, had[256] = {false}; // by letter
  for (u32 k = 0; k < f->nways; k++) any |= others_allow(r, by, f, k);
  for (u32 k = 0; k < f->nways; k++) {
    const splits_way *w = &f->x->way[f->way[k]];
    if (any && !others_allow(r, by, f, k)) continue;
    *whole |= w->kind == WAY_WHOLE || w->kind == WAY_UNSAID;
    if ((w->kind != WAY_INDEX && w->kind != WAY_APART) || had[w->letter]) continue;
    had[w->letter] = true;
    sb_fmt(&b, "%s%s", b.n ? ", " : "", f->x->letter[w->letter]);
  }
  return b.n ? sb_str(&b) : NULL;
}

void splits_rules_tell(const splits_rules *r, const splits_refusal *f) {
  ctx *c = r->pl->src->c;
  const func_info *fi = func_get(r->pl->src, f->x->fn);
  u32 last = 0; // of the rules that leave out a way
  for (u32 k = 0; k < f->nways; k++)
    for (u32 j = last; j < r->n; j++)
      if (!allows(&r->v[j], f->x, &f->x->way[f->way[k]], f->ways)) last = j;
  bool whole = false;
  const char *letters = left_out(r, last, f, &whole);
  diag(c, E_RULES, r->v[last].at, "the rules leave %s, %s:%u, no way to be computed by %u ranks",
       op_row_of((opcode)fi->body.v[f->x->index].op)->name, sym_str(c, fi->name), f->x->index + 1, f->ways);
  if (letters)
    diag_hint(c, "letters: [%s]%s", letters, whole ? ", or whole: may" : "");
  else
    diag_hint(c, "whole: may; nothing of it can be split %u ways", f->ways);
}

u32 splits_rules_again(const splits_rules *r, arena *a, const struct plan_again **out) {
  const prog *p = planner_source(r->pl);
  VEC(struct plan_again) v = {0};
  for (u32 k = 0; k < r->n; k++)
    for (u32 f = 1; r->v[k].again && f < planner_funcs(r->pl); f++)
      for (u32 i = 0; i < func_get(p, (func){f})->body.n; i++)
        if (r->v[k].match[f][i]) *vec_push(a, &v) = (struct plan_again){{f}, i + 1};
  *out = v.v;
  return v.n;
}
