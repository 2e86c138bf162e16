// internal.h - what the files of ir/ share: tokens of the program text, and constant elements as text.
#ifndef HEDDLE_IR_INTERNAL_H
#define HEDDLE_IR_INTERNAL_H
#include "ir/ir.h"

// ---- tokens (lex.c) ---------------------------------------------------------------------------------
typedef enum {
  TOK_END,
  TOK_NAME,   // matmul
  TOK_VALUE,  // %x  %"any text"  %12
  TOK_AT,     // @m  @"any text"; "@." has the name "."
  TOK_DATA,   // $3
  TOK_NUMBER, // 12  -0.5  1e-8  0x7fc0  inf  nan
  TOK_STRING, // "any text"
  TOK_ARROW,  // ->
  TOK_RANGE,  // ..
  TOK_PUNCT,  // one character
  TOK_BAD,    // no token: already reported
} tok_kind;

typedef struct {
  ctx *c;
  sym file;
  arena *a;             // unescaped names
  const char *at, *end; // the rest behind the current token; *end is 0
  const char *line;     // start of the current line
  u32 line_no;
  // the current token
  tok_kind kind;
  bool quoted;       // VALUE, AT: the name was written in quotes
  bool first;        // first of its line
  const char *start; // in the text
  const char *name;  // NAME, VALUE, AT, DATA, NUMBER, STRING: its text, unescaped, not terminated
  size_t len;
  char punct;
} lexer;

void lex_open(lexer *l, ctx *c, arena *a, sym file, const char *text, size_t n); // text[n] must be 0
void lex_next(lexer *l);
void lex_from(lexer *l, const char *at); // goes on at this place in the text (others have read up to there)
loc lex_loc(lexer *l);                   // of the current token
sym lex_sym(lexer *l);                   // of the current token
const char *lex_found(lexer *l);         // the current token for "expected ..., found ..."
bool lex_plain(const char *s, size_t n); // may this name be written without quotes?

// ---- constant elements (literal.c) ------------------------------------------------------------------
void lit_put_float(strbuf *b, double x);                         // shortest decimal that reads back as x
void lit_put_elem(strbuf *b, dtype t, const void *elem);         // one element
bool lit_get_elem(dtype t, const char *s, size_t n, void *elem); // false: not an element of this type
void lit_put_base64(strbuf *b, const u8 *bytes, size_t n);
// Decodes n characters into *out, which moves; false on a foreign character or beyond `end`.
bool lit_get_base64(const char *s, size_t n, u8 **out, const u8 *end);

// ---- reading (parse.c; parse_term.c) ----------------------------------------------------------------
// Every parse_ function reports what is wrong and returns false; the lexer then stands at the culprit.
typedef struct {
  u32 number, id;
  bool defined;
  loc where;
} blob_label;
typedef struct {
  lexer l;
  ctx *c;
  prog *p;
  arena *tmp;
  sym source; // the file of locations that do not name one
  hmap label; // number of a constant in the text + 1 -> data id
  VEC(blob_label) labels;
} parser;

bool parse_error(parser *ps, const char *expected); // "expected ..., found ..."
bool parse_is(const parser *ps, char punct);        // looks only
bool parse_take(parser *ps, char punct);            // takes it if it is there
bool parse_expect(parser *ps, char punct);
bool parse_is_word(const parser *ps, const char *word);
bool parse_word(parser *ps, const char *word); // takes it if it is there
bool parse_int(parser *ps, i64 least, i64 most, i64 *out);
bool parse_name(parser *ps, const char *what, sym *out); // a name or a string
bool parse_group(parser *ps, group *out);                // "@m[pp=0]" or "@."
bool parse_type(parser *ps, group dflt, type *out);      // on dflt where the text names no group
bool parse_axes(parser *ps, u8 *axis, u32 cap, u32 *n);  // names with commas between, products expanded
bool parse_attrs(parser *ps, attr *v, u32 *n);           // "{key=value, ...}"; v has room for A_COUNT
bool parse_attr(parser *ps, attr *v, u32 *n);            // "key=value": one more of n
bool parse_attr_list(parser *ps, attr *v, u32 *n);       // "key=value, ...", one at least
bool parse_data(parser *ps, const shape *s, u32 *id);    // "[1, 2]", "$3" or "absent"
bool parse_blob(parser *ps);                             // "$3 : type = elements"
bool parse_loc(parser *ps, loc *out);                    // behind "loc"
bool parse_scope(parser *ps,
                 scope_info *out); // behind "replicate" or "split": "4", "all", "as name", up to "{"
bool parse_shares(parser *ps, shares_info *out); // "auto", "equal", "[5, 3]"
bool parse_default(parser *ps);                  // behind "default"
bool parse_settings(parser *ps);                 // behind "config": "key = value, ..."

// ---- what results are where the text does not say (flow.c) ------------------------------------------
typedef struct {
  opcode op;
  attrset at;
  u32 nopd; // data operands
  group g;
  const type *rets; // call: results of the callee
  u32 nrets;
  loc where;
} application;
bool infer_results(prog *p, arena *tmp, const application *x, const type *opd, u32 nres, type *res);

// ---- communication, join and part (move.c) ----------------------------------------------------------
bool is_move(opcode op); // do operand and result layouts differ by what the operator does?
// The result where operand and attributes leave no choice; else a diagnostic that asks for it.
bool move_result(prog *p, const application *x, const type *opd, type *res, u32 nres);
// May these operands become these results? Diagnostics E_LAYOUT.
bool move_check(prog *p, const application *x, const type *opd, const type *res, u32 nres);
#endif
