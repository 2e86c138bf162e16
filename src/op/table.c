// table.c - the rows of ops.def, colls.def and laws.def: found by name, compiled once, and described to
// people.
//
// Idea: a row is text that a person can check. What op_law needs of it at every instruction - terms of
// letters, type tokens, which attributes it takes - is parsed on first use into row_code and never changes
// afterwards.
#include "op/internal.h"
#include <pthread.h>

// Rows beyond OP_COUNT are put in by own.c: so looking up a row is the same for all of them.
static op_row rows[OP_ROWS] = {
    [OP_none] = {"none", 0, 0, 0, "", "", "", "", RED_NONE, 0, 0, "no", "", NULL},
#define OP(name, min, max, res, law, lin, types, attrs, red, flops, flags, kernel, grad, doc)                \
  [OP_##name] = {#name, min, max, res, law, lin, types, attrs, red, flops, flags, #grad, doc, NULL},
#include "op/ops.def"
#undef OP
};

static const law_row laws[] = {
#define LAW(name, text, split) {#name, text, split, law_##name},
#include "op/laws.def"
#undef LAW
};

static const coll_row colls[] = {
#define COLL(name, in, out, doc) {OP_##name, in, out, doc},
#include "op/colls.def"
#undef COLL
};

static row_code code[OP_ROWS];
enum { NAME_SLOTS = 512 };
static u16 by_name[NAME_SLOTS]; // open addressing; 0 = free
static_assert(OP_COUNT * 2 < NAME_SLOTS, "the table of names stays at most half full");

const op_row *op_row_of(opcode op) { return &rows[op]; }

const coll_row *coll_find(opcode op) {
  for (u32 i = 0; i < COUNT_OF(colls); i++)
    if (colls[i].op == op) return &colls[i];
  return NULL;
}

// ---- compiling ---------------------------------------------------------------------------------------

bool attr_spec_next(const char **text, attr_spec *out) {
  const char *s = *text + strspn(*text, " ");
  if (!*s) return false;
  out->name = s;
  out->name_len = (u32)strcspn(s, "=?!");
  s += out->name_len;
  out->mark = *s;
  s += *s != 0;
  out->value = s;
  out->value_len = (u32)strcspn(s, " ");
  *text = s + out->value_len;
  return true;
}

static const char *compile_attrs(row_code *rc, const char *text, const char **at) {
  attr_spec a;
  while (*at = text, attr_spec_next(&text, &a)) {
    *at = a.name;
    const attr_key k = attr_find(a.name, a.name_len);
    if (!a.name_len || k == A_NONE) return "no such attribute: `heddle ops` has pages that list them";
    if (!a.mark || (a.mark != '=' && a.value_len && attr_kind_of(k) != AK_STR))
      return "an attribute is name=value, name? (optional) or name! (required)";
    if (a.mark == '=' && !a.value_len) return "the value is missing";
    if (rc->use[k] != USE_NO) return "the attribute is there twice";
    rc->use[k] = a.mark == '!' ? USE_REQUIRED : USE_OPTIONAL;
    rc->required += a.mark == '!';
  }
  return NULL;
}

static bool type_token(const char *s, size_t n, u8 *out) {
  if (n == 1 && strchr("TUVFGHNMIJL", *s)) return *out = (u8)*s, true;
  if (n == 4 && !memcmp(s, "attr", 4)) return *out = TY_ATTR, true;
  if (n == 4 && !memcmp(s, "each", 4)) return *out = TY_EACH, true;
  if (n == 4 && !memcmp(s, "wide", 4)) return *out = TY_WIDE, true;
  const dtype t = dtype_find(s, n);
  *out = (u8)(TY_EXACT | t);
  return t != DT_NONE;
}

static const char *compile_types(row_code *rc, const char *s, const char **at) {
  const char *arrow = strstr(s, "->");
  if (!arrow) arrow = s; // "each" and rows without a law: nothing before an arrow
  while (*s) {
    if (!strncmp(s, "->", 2)) s += 2;
    size_t n = strcspn(s, ",-");
    *at = s;
    if (!n) break;
    if (rc->type_opd + rc->type_res == TYPE_TOKENS) return "more than 16 types";
    if (!type_token(s, n, &rc->type[rc->type_opd + rc->type_res]))
      return "neither an element type nor one of F G H (floats), N M (numbers), I J (integers), T U V (any)";
    *(s < arrow ? &rc->type_opd : &rc->type_res) += 1;
    s += n;
    s += *s == ',';
  }
  return NULL;
}

// One dimension: a letter, or factors in parentheses.
static const char *compile_dim(text_dim *x, const char **s) {
  const bool several = **s == '(';
  *s += several;
  do {
    u32 number = 0;
    *s += strspn(*s, " ");
    while (several && **s >= '0' && **s <= '9' && number < TEXT_NUMBER)
      number = number * 10 + (u32)(*(*s)++ - '0');
    const bool letter = !number && ((**s >= 'a' && **s <= 'z') || (**s >= 'A' && **s <= 'Z'));
    if (!letter && !number) return several ? "a letter or a number is missing" : "a letter is missing";
    if (number == 1 || number >= TEXT_NUMBER) return "a number is 2 to 127";
    if (x->n == TEXT_FACTORS) return "more than 4 factors in one dimension";
    x->f[x->n++] = letter ? (u8) * (*s)++ : (u8)(TEXT_NUMBER + number);
    *s += several ? strspn(*s, " ") : 0;
  } while (several && **s && **s != ')');
  if (several && *(*s)++ != ')') return "the ) is missing";
  return NULL;
}

static const char *compile_text(row_code *rc, const char *s, const char **at) {
  const char *arrow = strstr(s, "->"), *wrong = NULL;
  *at = s + strlen(s);
  if (!arrow) return "-> and the results are missing";
  for (bool more = true; more;) {
    if (s == arrow) s += 2;
    text_term *t = &rc->term[rc->nopd + rc->nres];
    *at = s;
    if (rc->nopd + rc->nres == TEXT_TERMS) return "more than 16 operands and results";
    *(s < arrow ? &rc->nopd : &rc->nres) += 1;
    if ((t->dots = !strncmp(s, "...", 3))) s += 3;
    for (; *s && *s != ',' && s != arrow; *at = s) {
      if (t->n == TEXT_DIMS) return "more than 8 dimensions";
      if ((wrong = compile_dim(&t->dim[t->n++], &s))) return *at = s, wrong;
    }
    more = *s != 0;
    s += *s == ',';
  }
  return NULL;
}

static const law_row *law_find(const char *name) {
  for (u32 i = 0; i < COUNT_OF(laws); i++)
    if (!strcmp(laws[i].name, name)) return &laws[i];
  return NULL;
}

static u32 name_slot(const char *name, size_t n) { return (u32)hash_bytes(name, n, 1) % NAME_SLOTS; }

const char *row_compile(row_code *rc, const op_row *r, const char **text, const char **at) {
  const char *wrong;
  if ((wrong = compile_attrs(rc, *text = r->attrs, at))) return wrong;
  if ((wrong = compile_types(rc, *text = r->types, at))) return wrong;
  if (*r->law != '=') return compile_text(rc, *text = r->law, at);
  rc->law = law_find(r->law + 1);
  return NULL;
}

static void compile(void) {
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *r = &rows[op];
    row_code *rc = &code[op];
    const char *text, *at;
    u32 slot = name_slot(r->name, strlen(r->name));
    while (by_name[slot]) slot = (slot + 1) % NAME_SLOTS;
    by_name[slot] = (u16)op;
    const char *wrong = row_compile(rc, r, &text, &at);
    assert(!wrong);
    (void)wrong;
    if (*r->law == '=')
      assert(rc->law || !rc->type_res); // calls and tuples have neither law nor types
    else
      assert(rc->nopd == r->opd_min && rc->nopd == r->opd_max && rc->nres == r->res);
  }
}

static void compile_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, compile);
}

const row_code *row_code_of(opcode op) {
  compile_once();
  return &code[op];
}

opcode op_find(const char *name, size_t n) {
  compile_once();
  for (u32 slot = name_slot(name, n); by_name[slot]; slot = (slot + 1) % NAME_SLOTS)
    if (!strncmp(rows[by_name[slot]].name, name, n) && !rows[by_name[slot]].name[n])
      return (opcode)by_name[slot];
  return OP_none;
}

void row_put(opcode op, const op_row *r, const row_code *rc) {
  assert(op >= OP_COUNT && op < OP_ROWS);
  rows[op] = *r, code[op] = *rc;
}

opcode op_named(const ctx *c, const char *name, size_t n) {
  opcode op = op_find(name, n);
  for (u32 k = 0; op == OP_none && k < op_own_count(c); k++) {
    const opcode own = op_own_at(c, k);
    if (!strncmp(rows[own].name, name, n) && !rows[own].name[n]) op = own;
  }
  return op;
}

void op_names(ctx *c, sym *name) {
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) name[op] = sym_of(c, rows[op].name);
  for (u32 k = 0; k < op_own_count(c); k++) name[op_own_at(c, k)] = sym_of(c, rows[op_own_at(c, k)].name);
}

const char *op_near(const ctx *c, const char *name, size_t n) {
  near_name near = near_to(name, n);
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) near_try(&near, rows[op].name);
  for (u32 k = 0; k < op_own_count(c); k++) near_try(&near, rows[op_own_at(c, k)].name);
  return near.name;
}

const char *op_law_text(opcode op) {
  const law_row *l = row_code_of(op)->law;
  return l ? l->text : *rows[op].law != '=' ? rows[op].law : NULL;
}

const char *op_split_text(opcode op) {
  const law_row *l = row_code_of(op)->law;
  return l ? l->split : NULL;
}

bool op_takes(opcode op, attr_key k) { return row_code_of(op)->use[k] != USE_NO; }

dtype op_operand_type(opcode op, u32 operand, dtype usual) {
  const row_code *rc = row_code_of(op);
  if (!rc->type_opd) return usual;
  const u8 token = rc->type[MIN(operand, rc->type_opd - 1u)];
  if (token & TY_EXACT) return (dtype)(token & ~TY_EXACT);
  return token == 'L' ? DT_BOOL : token == 'I' || token == 'J' ? DT_I64 : usual;
}

// ---- for people --------------------------------------------------------------------------------------

static void doc_linear(const op_row *r, strbuf *b) {
  static const char *const word[] = {"not linear", "linear in it alone",
                                     "linear jointly with the other such operands"};
  sb_put(b, "  linearity   ");
  u32 n = (u32)strlen(r->lin);
  for (u32 i = 0; i < n; i++) {
    u32 same = i;
    while (same + 1 < n && r->lin[same + 1] == r->lin[i]) same++;
    const char *w = word[r->lin[i] == 'e' ? 1 : r->lin[i] == 'j' ? 2 : 0];
    if (i) sb_put(b, "; ");
    if (same + 1 == n && i == 0)
      sb_fmt(b, r->opd_max == 1 ? "%s" : "every operand: %s", w);
    else if (same == i)
      sb_fmt(b, same + 1 == n && r->opd_max > n ? "operand %u and on: %s" : "operand %u: %s", i + 1, w);
    else
      sb_fmt(b, "operands %u to %u: %s", i + 1, same + 1, w);
    i = same;
  }
  sb_put(b, "\n");
}

static void doc_split(const op_row *r, strbuf *b) {
  const law_row *l = code[r - rows].law;
  sb_put(b, "  split       ");
  if (l)
    sb_put(b, l->split);
  else if (strpbrk(r->law, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    sb_put(b, "lower-case letters");
  else
    sb_put(b, "every dimension");
  static const char *const combine[] = {"", "added", "joined by the larger", "joined by the smaller",
                                        "multiplied"};
  if (r->red != RED_NONE && r->red != RED_SUM) sb_fmt(b, "; partial results are %s", combine[r->red]);
  sb_put(b, "\n");
}

static void doc_attrs(const op_row *r, strbuf *b) {
  const char *text = r->attrs, *head = "  attributes  ";
  attr_spec a;
  while (attr_spec_next(&text, &a)) {
    attr_key k = attr_find(a.name, a.name_len);
    sb_fmt(b, "%s%-12s %s (%s", head, attr_name(k), attr_doc(k), attr_kind_name(attr_kind_of(k)));
    if (memchr(a.value, '|', a.value_len)) sb_fmt(b, ": %.*s", (int)a.value_len, a.value);
    if (a.mark == '!')
      sb_put(b, ", required)\n");
    else if (a.mark == '?')
      sb_put(b, ", optional)\n");
    else
      sb_fmt(b, ", default %.*s)\n", (int)strcspn(a.value, "| "), a.value);
    head = "              ";
  }
}

// The gradient line by line, and what is not there.
static void doc_own(const op_own *o, strbuf *b) {
  const char *head = "  gradient    ";
  for (const char *s = o->gradient; s && *s; head = "              ") {
    const size_t n = strcspn(s, "\n");
    if (n) sb_fmt(b, "%s%.*s\n", head, (int)n, s);
    s += n + (s[n] != 0);
  }
  sb_fmt(b, "  kernel      %s\n", o->kernel ? "registered" : "none: it cannot be computed");
  if (o->pytorch) sb_fmt(b, "  PyTorch     %s\n", o->pytorch);
}

void op_doc(opcode op, strbuf *b) {
  compile_once();
  const op_row *r = &rows[op];
  const law_row *l = code[op].law;
  const coll_row *coll = coll_find(op);
  sb_fmt(b, "%s: %s\n", r->name, r->doc);
  if (r->opd_max == 255)
    sb_fmt(b, "  operands    %u or more\n", r->opd_min);
  else if (r->opd_max != r->opd_min)
    sb_fmt(b, "  operands    %u to %u\n", r->opd_min, r->opd_max);
  else
    sb_fmt(b, "  operands    %u\n", r->opd_min);
  if (r->flags & OPF_MANY_RES)
    sb_put(b, "  results     any number\n");
  else
    sb_fmt(b, "  results     %u\n", r->res);
  if (l || *r->law != '=') {
    sb_fmt(b, "  law         %s\n", l ? l->text : r->law);
    sb_fmt(b, "  types       %s\n", r->types);
    if (coll)
      sb_fmt(b, "  axes        from %c to %c: %s\n", coll->in, coll->out, coll->doc);
    else
      doc_split(r, b);
  }
  if (*r->lin && r->opd_max) doc_linear(r, b);
  doc_attrs(r, b);
  if (r->own && r->own->flops)
    sb_put(b, "  flops       as its function says\n");
  else if (attention_flops_text(op))
    sb_fmt(b, "  flops       %s\n", attention_flops_text(op));
  else if (r->flops)
    sb_fmt(b, "  flops       %u per point of the iteration space\n", r->flops);
  static const struct {
    u32 flag;
    const char *text;
  } notes[] = {
      {OPF_VIEW, "the result shares the operand's storage"},
      {OPF_INPLACE, "the result may take over the storage of a donated first operand"},
      {OPF_RANDOM, "random numbers depend on the seed and the global element index only"},
      {OPF_META, "takes neither time nor memory"},
  };
  for (u32 i = 0; i < COUNT_OF(notes); i++)
    if (r->flags & notes[i].flag) sb_fmt(b, "  note        %s\n", notes[i].text);
  if (r->own) doc_own(r->own, b);
}
