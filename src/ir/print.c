// print.c - the program as text (docs/language.md). Reading it back gives the same program: print, parse and
// print again is the same text byte for byte.
#include "ir/ir.h"

// A group that equals `dflt` is left out.
static void put_type(const prog *p, type t, group dflt, strbuf *b) {
  const type_info *i = type_get(p, t);
  if (i->tuple) {
    sb_char(b, '(');
    for (u32 k = 0; k < i->n; k++) {
      if (k) sb_put(b, ", ");
      put_type(p, i->elem[k], dflt, b);
    }
    sb_char(b, ')');
    return;
  }
  sb_put(b, dtype_name(i->s.t));
  layout_print(p->sp, i->lay, i->s.nd, i->s.dim, b);
  if (i->g.i == dflt.i) return;
  sb_char(b, ' ');
  if (i->g.i) group_print(p->sp, i->g, b);
  else sb_put(b, "@.");
}

const char *ir_type_str(const prog *p, type t) {
  strbuf b = {.a = ctx_arena(p->c)};
  put_type(p, t, (group){0}, &b);
  return sb_str(&b);
}
