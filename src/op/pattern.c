// pattern.c - sharding patterns: every way to split one application over one axis, from its law alone.
//
// Idea: a pattern is a letter. Who has the letter is cut by it; a result that lacks it is a sum of what the
// ranks have; and the gradient of an operand that lacks it is one too, since every rank sees its own part of
// the work.
#include "op/op.h"

static u32 terms_with(const law_term *t, u32 n, u32 letter) {
  u32 count = 0;
  for (u32 k = 0; k < n; k++) count += law_term_has(&t[k], letter);
  return count;
}

whole_reason law_whole_reason(opcode op, const law *l, u32 letter) {
  const u8 flags = l->letter[letter].flags;
  const u32 opds = terms_with(l->opd, l->nopd, letter), ress = terms_with(l->res, l->nres, letter);
  const bool no_sum = op_row_of(op)->red == RED_NONE && ress < l->nres;
  if (!(flags & LAW_WHOLE)) return no_sum ? WHOLE_NO_SUM : WHOLE_NOT;
  if (!opds && !ress) return WHOLE_INSIDE;
  if (flags & LAW_DERIVED) return WHOLE_FOLLOWS;
  if (flags & LAW_ADDRESSED) return WHOLE_ADDRESSED;
  if (flags & LAW_FIXED) return WHOLE_TIED;
  if (!ress) return op_row_of(op)->red == RED_NONE ? WHOLE_NO_SUM : WHOLE_AT_ONCE;
  return WHOLE_TOGETHER;
}

// ---- names -------------------------------------------------------------------------------------------

static char with_case(char name, bool whole) {
  return whole && name >= 'a' && name <= 'z' ? (char)(name - 'a' + 'A') : name;
}

static bool taken(const char *const *name, u32 n, char ch) {
  for (u32 i = 0; i < n; i++)
    if (name[i] && !name[i][1] && (name[i][0] | 32) == (ch | 32)) return true;
  return false;
}

const char *const *law_letter_names(arena *a, const law *l) {
  const char **name = ZNEWN(a, const char *, l->nletters + 1);
  char next = 'a';
  for (u32 i = 0; i < l->nletters; i++) {
    const char own = l->letter[i].name;
    const char ch = with_case(own, l->letter[i].flags & LAW_WHOLE);
    bool used = !own;
    for (u32 j = 0; j < i && !used; j++) used = name[j] && name[j][0] == ch;
    if (!used) name[i] = arena_printf(a, "%c", ch);
  }
  for (u32 i = 0; i < l->nletters; i++) {
    if (name[i]) continue;
    const bool whole = l->letter[i].flags & LAW_WHOLE;
    while (next <= 'z' && taken(name, l->nletters, next)) next++;
    if (next <= 'z')
      name[i] = arena_printf(a, "%c", with_case(next++, whole));
    else
      name[i] = arena_printf(a, "%c%u", whole ? 'X' : 'x', i);
  }
  return name;
}

// ---- patterns ----------------------------------------------------------------------------------------

// What a split letter makes of a tensor that has it.
static bool cut(const law *l, const law_term *t, u32 letter, law_piece *out) {
  for (u32 d = 0; d < t->nd; d++) {
    i64 unit = 1;
    for (u32 i = t->dim[d].n; i-- > 0; unit *= l->letter[t->dim[d].f[i]].extent)
      if (t->dim[d].f[i] == letter) {
        *out = (law_piece){.state = PIECE_SPLIT, .dim = (u8)d, .unit = unit};
        return true;
      }
  }
  *out = (law_piece){.state = PIECE_WHOLE};
  return false;
}

// 0: cuts what the first operand does not have; 1: leaves a sum; 2: others.
static u32 order_of(const law *l, u32 letter) {
  if (terms_with(l->res, l->nres, letter) < l->nres) return 1;
  return l->nopd > 1 && !law_term_has(&l->opd[0], letter) && terms_with(l->opd, l->nopd, letter) ? 0 : 2;
}

static law_pattern pattern_of(arena *a, opcode op, const law *l, const shape *opd, u32 letter) {
  const op_row *row = op_row_of(op);
  law_piece *p = NEWN(a, law_piece, 2 * l->nopd + l->nres);
  law_pattern x = {.letter = letter, .opd = p, .grad = p + l->nopd, .res = p + 2 * l->nopd};
  const bool gradient = strcmp(row->grad, "no") && strcmp(row->grad, "zero");
  for (u32 k = 0; k < l->nres; k++)
    if (!cut(l, &l->res[k], letter, &p[2 * l->nopd + k]))
      p[2 * l->nopd + k] = (law_piece){.state = PIECE_PARTIAL, .red = row->red}, x.sum = true;
  for (u32 k = 0; k < l->nopd; k++) {
    law_piece *own = &p[k], *grad = &p[l->nopd + k];
    const bool has = cut(l, &l->opd[k], letter, own);
    // Added once, not on every rank; then every rank has the whole gradient of its part.
    const bool once = !has && x.sum && row->red == RED_SUM && law_lin(l, k) == 'j';
    if (once) *own = (law_piece){.state = PIECE_PARTIAL, .red = RED_SUM};
    *grad = *own;
    if (!has) *grad = (law_piece){.state = PIECE_PARTIAL, .red = RED_SUM};
    if (once) *grad = (law_piece){.state = PIECE_WHOLE};
    if (!gradient || dtype_kind_of(opd[k].t) != DK_FLOAT) *grad = (law_piece){.state = PIECE_NONE};
    x.gradients |= grad->state != PIECE_NONE;
    x.grad_sum |= grad->state == PIECE_PARTIAL;
  }
  return x;
}

u32 law_patterns(arena *a, opcode op, const law *l, const shape *opd, const law_pattern **out) {
  law_pattern *v = NEWN(a, law_pattern, l->nletters + 1);
  u32 n = 0;
  for (u32 order = 0; order < 3; order++)
    for (u32 i = 0; i < l->nletters; i++)
      if (law_whole_reason(op, l, i) == WHOLE_NOT && order_of(l, i) == order)
        v[n++] = pattern_of(a, op, l, opd, i);
  *out = v;
  return n;
}

// ---- examples ----------------------------------------------------------------------------------------

static const struct {
  opcode op;
  const char *shapes, *attributes;
} examples[] = {
#define EXAMPLE(op, shapes, attributes) {OP_##op, shapes, attributes},
#include "op/examples.def"
#undef EXAMPLE
};

op_example op_example_of(arena *a, opcode op) {
  for (u32 i = 0; i < COUNT_OF(examples); i++)
    if (examples[i].op == op) return (op_example){examples[i].shapes, examples[i].attributes};
  strbuf b = {.a = a};
  for (u32 k = 0; k < op_row_of(op)->opd_min; k++) sb_put(&b, k ? ",64x128" : "64x128");
  return (op_example){sb_str(&b), ""};
}
