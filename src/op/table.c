// table.c - the rows of ops.def, colls.def and laws.def: found by name, compiled once, and described to
// people.
//
// Idea: a row is text that a person can check. What op_law needs of it at every instruction - terms of
// letters, type tokens, which attributes it takes - is parsed on first use into row_code and never changes
// afterwards.
#include "op/internal.h"
#include <pthread.h>

static const op_row rows[OP_COUNT] = {
    [OP_none] = {"none", 0, 0, 0, "", "", "", "", RED_NONE, 0, 0, "no", ""},
#define OP(name, min, max, res, law, lin, types, attrs, red, flops, flags, kernel, grad, doc)                \
  [OP_##name] = {#name, min, max, res, law, lin, types, attrs, red, flops, flags, #grad, doc},
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

static row_code code[OP_COUNT];
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
  out->mark = *s++;
  out->value = s;
  out->value_len = (u32)strcspn(s, " ");
  *text = s + out->value_len;
  return true;
}

static void compile_attrs(row_code *rc, const char *text) {
  attr_spec a;
  while (attr_spec_next(&text, &a)) {
    attr_key k = attr_find(a.name, a.name_len);
    assert(k != A_NONE && rc->use[k] == USE_NO &&
           (a.mark == '=' || a.value_len == 0 || attr_kind_of(k) == AK_STR));
    rc->use[k] = a.mark == '!' ? USE_REQUIRED : USE_OPTIONAL;
    rc->required += a.mark == '!';
  }
}

static u8 type_token(const char *s, size_t n) {
  if (n == 1 && strchr("TUVFGHNMIJL", *s)) return (u8)*s;
  if (n == 4 && !memcmp(s, "attr", 4)) return TY_ATTR;
  if (n == 4 && !memcmp(s, "each", 4)) return TY_EACH;
  dtype t = dtype_find(s, n);
  assert(t != DT_NONE);
  return (u8)(TY_EXACT | t);
}

static void compile_types(row_code *rc, const char *s) {
  const char *arrow = strstr(s, "->");
  if (!arrow) arrow = s; // "each" and rows without a law: nothing before an arrow
  while (*s) {
    if (!strncmp(s, "->", 2)) s += 2;
    size_t n = strcspn(s, ",-");
    if (!n) break;
    assert(rc->type_opd + rc->type_res < TYPE_TOKENS);
    rc->type[rc->type_opd + rc->type_res] = type_token(s, n);
    *(s < arrow ? &rc->type_opd : &rc->type_res) += 1;
    s += n;
    s += *s == ',';
  }
}

static void compile_text(row_code *rc, const char *s) {
  const char *arrow = strstr(s, "->");
  assert(arrow);
  for (bool more = true; more;) {
    if (s == arrow) s += 2;
    text_term *t = &rc->term[rc->nopd + rc->nres];
    assert(rc->nopd + rc->nres < TEXT_TERMS);
    *(s < arrow ? &rc->nopd : &rc->nres) += 1;
    if ((t->dots = !strncmp(s, "...", 3))) s += 3;
    while (*s && *s != ',' && s != arrow) {
      assert(t->n < TEXT_LETTERS);
      t->letter[t->n++] = *s++;
    }
    more = *s != 0;
    s += *s == ',';
  }
}

static const law_row *law_find(const char *name) {
  for (u32 i = 0; i < COUNT_OF(laws); i++)
    if (!strcmp(laws[i].name, name)) return &laws[i];
  return NULL;
}

static u32 name_slot(const char *name, size_t n) { return (u32)hash_bytes(name, n, 1) % NAME_SLOTS; }

static void compile(void) {
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *r = &rows[op];
    row_code *rc = &code[op];
    u32 slot = name_slot(r->name, strlen(r->name));
    while (by_name[slot]) slot = (slot + 1) % NAME_SLOTS;
    by_name[slot] = (u16)op;
    compile_attrs(rc, r->attrs);
    compile_types(rc, r->types);
    if (*r->law != '=') {
      compile_text(rc, r->law);
      assert(rc->nopd == r->opd_min && rc->nopd == r->opd_max && rc->nres == r->res);
    } else {
      rc->law = law_find(r->law + 1);
      assert(rc->law || !rc->type_res); // calls and tuples have neither law nor types
    }
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

const char *op_near(const char *name, size_t n) {
  near_name near = near_to(name, n);
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) near_try(&near, rows[op].name);
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
  if (r->flops) sb_fmt(b, "  flops       %u per point of the iteration space\n", r->flops);
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
}
