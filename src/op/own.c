// own.c - operators from outside the table: a session's own rows.
//
// Idea: a row that is registered goes through the same compiler as a row of ops.def and into the same array, beyond
// the table's end. What reads rows by opcode does not know the difference. Names are the session's: two sessions may
// have different operators of one name. The array is common to the process, and a slot is written once before the
// session that owns it has its number, so readers need no lock.
#include "op/internal.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { OWN_MOST = OP_ROWS - OP_COUNT, NAME_MOST = 63 };
typedef struct {
  u32 n;
  u16 op[OWN_MOST];
} own_rows;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool taken[OWN_MOST];

// ---- slots -----------------------------------------------------------------------------------------------
// Behind the session's latest, so that their numbers are in the order of registration. OP_none: all are taken.
static opcode take_slot(const own_rows *r) {
  opcode op = OP_none;
  pthread_mutex_lock(&lock);
  for (u32 k = r->n ? r->op[r->n - 1] - OP_COUNT + 1u : 0; k < OWN_MOST && op == OP_none; k++)
    if (!taken[k]) taken[k] = true, op = (opcode)(OP_COUNT + k);
  pthread_mutex_unlock(&lock);
  return op;
}

static void give_slot(u32 op) {
  static const op_row gone = {"", 0, 0, 0, "", "", "", "", RED_NONE, 0, 0, "no", "", NULL};
  static const row_code none;
  pthread_mutex_lock(&lock);
  row_put((opcode)op, &gone, &none);
  taken[op - OP_COUNT] = false;
  pthread_mutex_unlock(&lock);
}

static void end_rows(void *kept) {
  own_rows *r = kept;
  for (u32 k = 0; k < r->n; k++) give_slot(r->op[k]);
}

u32 op_own_count(const ctx *c) {
  const own_rows *r = c ? ctx_kept(c) : NULL;
  return r ? r->n : 0;
}
u32 op_limit(const ctx *c) {
  const u32 n = op_own_count(c);
  return n ? op_own_at(c, n - 1) + 1u : OP_COUNT;
}
opcode op_own_at(const ctx *c, u32 index) { return (opcode)((const own_rows *)ctx_kept(c))->op[index]; }

void op_share(ctx *to, const ctx *from) {
  if (to != from && !ctx_kept(to) && ctx_kept(from)) ctx_keep(to, ctx_kept(from), NULL);
}

// ---- what a row may say ----------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  const char *name;
} registering;

// At a place of one of the row's texts, which is called as the member of the row.
static bool wrong_at(const registering *r, const char *member, const char *text, const char *at,
                     const char *fmt, ...) PRINTF_LIKE(5, 6);
static bool wrong_at(const registering *r, const char *member, const char *text, const char *at,
                     const char *fmt, ...) {
  char message[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  const sym file = sym_fmt(r->c, "%s.%s", r->name, member);
  diag(r->c, E_OPERATOR, loc_text(r->c, file, 1, (u32)(at - text) + 1, text), "%s", message);
  return false;
}

static size_t word_length(const char *s) {
  size_t n = 0;
  while (s[n] == '_' || (s[n] >= 'a' && s[n] <= 'z') || (n && s[n] >= '0' && s[n] <= '9')) n++;
  return n;
}

// "gate, up": names that differ among each other and from those before.
static bool read_names(const registering *r, const char *member, const char *text, const char **name,
                       u32 from, u32 *n) {
  const char *s = text;
  for (*n = 0;; s++) {
    s += strspn(s, " ");
    const size_t len = word_length(s);
    if (!len || len > NAME_MOST)
      return wrong_at(r, member, text, s, "the name of %s is missing: small letters, digits and _",
                      from ? "a result" : "an operand");
    if (!strncmp(s, "d_", 2))
      return wrong_at(r, member, text, s, "a name that begins with d_ is the gradient of another");
    if (from + *n == TEXT_TERMS) return wrong_at(r, member, text, s, "more than 16 operands and results");
    name[from + *n] = arena_strndup(ctx_arena(r->c), s, len);
    for (u32 k = 0; k < from + *n; k++)
      if (!strcmp(name[k], name[from + *n]))
        return wrong_at(r, member, text, s, "two operands or results are called %s", name[k]);
    ++*n;
    s += len;
    s += strspn(s, " ");
    if (!*s) return true;
    if (*s != ',') return wrong_at(r, member, text, s, "a comma is missing between two names");
  }
}

static bool check_name(const registering *r) {
  const size_t n = word_length(r->name);
  if (!n || r->name[n] || n > NAME_MOST)
    return wrong_at(r, "name", r->name, r->name + n,
                    "the name of an operator has small letters, digits and _, 63 at most");
  const opcode same = op_named(r->c, r->name, n);
  if (same == OP_none) return true;
  return wrong_at(r, "name", r->name, r->name, "there is an operator %s %s", r->name,
                  same < OP_COUNT ? "in Heddle's table" : "already: this session has registered it");
}

static bool in_operands(const row_code *rc, u8 name, bool alone) {
  for (u32 k = 0; k < rc->nopd; k++)
    for (u32 i = 0; i < rc->term[k].n; i++)
      for (u32 j = 0; j < rc->term[k].dim[i].n; j++)
        if (rc->term[k].dim[i].f[j] == name && (!alone || rc->term[k].dim[i].n == 1)) return true;
  return false;
}

// Every extent follows from those of operands: letters of results are there, and of a group's factors all but one are
// known by other means or from a group before.
static bool check_letters(const registering *r, const row_code *rc, const char *text) {
  bool known[256] = {false}, dots = false;
  for (u32 k = 0; k < rc->nopd; k++) dots |= rc->term[k].dots;
  for (u32 k = 0; k < rc->nopd + rc->nres; k++) {
    const text_term *t = &rc->term[k];
    if (t->dots && !dots)
      return wrong_at(r, "law", text, text, "no operand has the ... of result %u", k - rc->nopd + 1);
    for (u32 i = 0; i < t->n; i++) {
      u32 open = 0;
      for (u32 j = 0; j < t->dim[i].n; j++) {
        const u8 f = t->dim[i].f[j];
        if (f >= TEXT_NUMBER) continue;
        const char swapped = (char)(f ^ 32);
        if (in_operands(rc, (u8)swapped, false))
          return wrong_at(r, "law", text, strchr(text, f),
                          "%c and %c are one letter, which may be split or not", f, swapped);
        if (!in_operands(rc, f, false))
          return wrong_at(r, "law", text, strrchr(text, f), "no operand has the letter %c of a result", f);
        open += !known[f] && !in_operands(rc, f, true);
        known[f] = true;
      }
      if (open > 1)
        return wrong_at(r, "law", text, text,
                        "the extents of (...) do not follow: of dimension %u of operand %u one factor "
                        "may be open, not %u",
                        i, k + 1, open);
    }
  }
  return true;
}

static bool check_types(const registering *r, const row_code *rc, const char *types) {
  if (!rc->type_opd || !rc->type_res)
    return wrong_at(r, "types", types, types + strlen(types),
                    "types are those of operands -> those of results");
  if (rc->type_opd > rc->nopd || rc->type_res > rc->nres)
    return wrong_at(r, "types", types, types, "more types than %s",
                    rc->type_opd > rc->nopd ? "operands" : "results");
  for (u32 k = 0; k < rc->type_opd + rc->type_res; k++) {
    const u8 t = rc->type[k];
    bool bound = t & TY_EXACT || k < rc->type_opd;
    for (u32 j = 0; j < rc->type_opd && !bound; j++) bound = rc->type[j] == t;
    if (t == TY_ATTR || t == TY_EACH || t == TY_WIDE)
      return wrong_at(r, "types", types, types, "attr and each are for rows of Heddle's table");
    if (!bound)
      return wrong_at(r, "types", types, strrchr(types, t), "no operand has the type %c of a result", t);
  }
  return true;
}

// Numbers and lists of integers: what a cost is asked about has no words.
static bool check_attrs(const registering *r, const op_row *row) {
  const char *text = row->attrs;
  attr_spec a;
  while (attr_spec_next(&text, &a)) {
    const attr_key k = attr_find(a.name, a.name_len);
    const attr_kind kind = attr_kind_of(k);
    char *end;
    if ((kind != AK_INT && kind != AK_FLOAT && kind != AK_INTS) || k == A_shape || k == A_peers ||
        k == A_server)
      return wrong_at(r, "attributes", row->attrs, a.name,
                      "%s is %s: an operator of your own takes integers, numbers "
                      "and lists of integers",
                      attr_name(k), attr_kind_name(kind));
    if (a.mark != '=') continue;
    if (kind == AK_INTS)
      return wrong_at(r, "attributes", row->attrs, a.value, "a list has no default: %s? or %s!", attr_name(k),
                      attr_name(k));
    const double x = strtod(a.value, &end);
    if (end != a.value + a.value_len || !isfinite(x) || (kind == AK_INT && x != (double)(i64)x))
      return wrong_at(r, "attributes", row->attrs, a.value, "the default is %s", attr_kind_name(kind));
  }
  return true;
}

static bool check_lin(const registering *r, const op_row *row) {
  const size_t n = strspn(row->lin, "ej-");
  if (row->lin[n]) return wrong_at(r, "linear", row->lin, row->lin + n, "a mark is e, j or -");
  if (!n || n > row->opd_max)
    return wrong_at(r, "linear", row->lin, row->lin, "%u marks for %u operands", (u32)n, row->opd_max);
  return true;
}

static bool check_row(const registering *r, op_row *row, row_code *rc) {
  const char *text, *at, *wrong = row_compile(rc, row, &text, &at);
  const char *member = text == row->law ? "law" : text == row->types ? "types" : "attributes";
  if (wrong) return wrong_at(r, member, text, at, "%s", wrong);
  if (rc->nopd != row->opd_min || rc->nres != row->res)
    return wrong_at(r, "law", row->law, row->law,
                    "the law has %u terms before -> and %u terms after, there are %u operands and %u results",
                    rc->nopd, rc->nres, row->opd_min, row->res);
  return check_letters(r, rc, row->law) && check_types(r, rc, row->types) && check_attrs(r, row) &&
         check_lin(r, row);
}

// ---- registration ----------------------------------------------------------------------------------------
static own_rows *rows_of(ctx *c) {
  own_rows *r = ctx_kept(c);
  if (r) return r;
  r = NEW(ctx_arena(c), own_rows);
  ctx_keep(c, r, end_rows);
  return r;
}

static const char *kept(ctx *c, const char *s, const char *absent) {
  return arena_strdup(ctx_arena(c), s && *s ? s : absent);
}

opcode op_register(ctx *c, const op_row *given, const char *operands, const char *results,
                   const op_own *own) {
  arena *a = ctx_arena(c);
  op_row row = *given;
  row.name = kept(c, given->name, "");
  row.law = kept(c, given->law, ""), row.lin = kept(c, given->lin, "-");
  row.types = kept(c, given->types, "F->F"), row.attrs = kept(c, given->attrs, "");
  row.doc = kept(c, given->doc, "an operator from outside Heddle's table");
  const registering r = {c, *row.name ? row.name : "operator"};
  const char **name = ZNEWN(a, const char *, TEXT_TERMS);
  u32 nopd, nres;
  row_code rc = {0};
  if (!check_name(&(registering){c, row.name})) return OP_none;
  if (!read_names(&r, "operands", kept(c, operands, ""), name, 0, &nopd)) return OP_none;
  if (!read_names(&r, "results", kept(c, results, "y"), name, nopd, &nres)) return OP_none;
  row.opd_min = row.opd_max = (u8)nopd, row.res = (u8)nres;
  if (!check_row(&r, &row, &rc)) return OP_none;
  op_own *o = arena_dup(a, own, sizeof *own);
  o->operand = name, o->result = name + nopd, o->formula = NULL;
  if (own->gradient) o->gradient = arena_strdup(a, own->gradient);
  if (own->pytorch) o->pytorch = arena_strdup(a, own->pytorch);
  if (own->flops && !row.flops) row.flops = 1; // it has arithmetic
  row.own = o;
  own_rows *rows = rows_of(c);
  const opcode op = take_slot(rows);
  if (op == OP_none) {
    diag(c, E_LIMIT, (loc){0}, "%s: more than %d operators from outside in one process", row.name, OWN_MOST);
    return OP_none;
  }
  row_put(op, &row, &rc);
  rows->op[rows->n++] = (u16)op;
  return op;
}

void op_unregister(ctx *c, opcode op) {
  own_rows *r = ctx_kept(c);
  assert(r && r->n && r->op[r->n - 1] == op);
  r->n--;
  give_slot(op);
}

void op_set_formula(opcode op, const struct formula *f) { ((op_own *)op_row_of(op)->own)->formula = f; }

u32 op_default(opcode op, attr_key k, double *list, u32 most) {
  const char *text = op_row_of(op)->attrs, *name = attr_name(k);
  attr_spec a;
  while (attr_spec_next(&text, &a))
    if (a.mark == '=' && most && !strncmp(a.name, name, a.name_len) && !name[a.name_len])
      return list[0] = strtod(a.value, NULL), 1;
  return 0;
}

// ---- cost ------------------------------------------------------------------------------------------------
static shape term_shape(const law *l, const law_term *t) {
  shape s = {.nd = t->nd};
  for (u32 d = 0; d < t->nd; d++) {
    s.dim[d] = 1;
    for (u32 i = 0; i < t->dim[d].n; i++) s.dim[d] *= l->letter[t->dim[d].f[i]].extent;
  }
  return s;
}

double op_own_flops(const op_own *o, attrs at, const law *l) {
  shape s[TEXT_TERMS];
  for (u32 k = 0; k < l->nopd + l->nres; k++)
    s[k] = term_shape(l, k < l->nopd ? &l->opd[k] : &l->res[k - l->nopd]);
  return o->flops(o, at, l->nopd, s, l->nres, s + l->nopd);
}
