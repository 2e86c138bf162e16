// lex.c - the tokens of the program text. Not the grammar (parse.c).
//
// Idea: a token is looked at where it stands; nothing is copied but names with escapes. Blanks, line ends and
// comments (# to the end of the line) only separate.
#include "ir/internal.h"

static bool is_alpha(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_'; }
static bool is_digit(char ch) { return ch >= '0' && ch <= '9'; }
static bool is_hex(char ch) { return is_digit(ch) || (ch >= 'a' && ch <= 'f') || (ch >= 'A' && ch <= 'F'); }

// A dot belongs to a name when a name character follows: "block.fwd", but "a..b" is a range.
static const char *name_end(const char *s) {
  while (is_alpha(*s) || is_digit(*s) || (*s == '.' && (is_alpha(s[1]) || is_digit(s[1])))) s++;
  return s;
}

bool lex_plain(const char *s, size_t n) { // a lone _ names nothing
  return n && is_alpha(*s) && name_end(s) == s + n && !(n == 1 && *s == '_');
}

void lex_open(lexer *l, ctx *c, arena *a, sym file, const char *text, size_t n) {
  *l = (lexer){
      .c = c, .file = file, .a = a, .at = text, .end = text + n, .line = text, .line_no = 1, .first = true};
  assert(*l->end == 0);
  lex_next(l);
}

static u32 column(const lexer *l, const char *at) {
  return (u32)MIN(at - l->line + 1, (ptrdiff_t)UINT32_MAX);
}

loc lex_loc(lexer *l) { return loc_text(l->c, l->file, l->line_no, column(l, l->start), l->line); }
sym lex_sym(lexer *l) { return sym_ofn(l->c, l->name, l->len); }

static void bad(lexer *l, const char *what) {
  diag(l->c, E_SYNTAX, lex_loc(l), "%s", what);
  l->kind = TOK_BAD;
}

static void newline(lexer *l, const char *after) {
  l->line = after;
  l->line_no++;
  l->first = true;
}

static u32 hex(char ch) { return (u32)(is_digit(ch) ? ch - '0' : (ch | 32) - 'a' + 10); }

// \" \\ \n \t, and \xNN for bytes that are no text. NULL if it is none of these.
static const char *escape(const char *s, char *out) {
  switch (*s) {
  case '"':
  case '\\': *out = *s; return s + 1;
  case 'n': *out = '\n'; return s + 1;
  case 't': *out = '\t'; return s + 1;
  case 'x':
    if (!is_hex(s[1]) || !is_hex(s[2])) return NULL;
    *out = (char)(hex(s[1]) << 4 | hex(s[2]));
    return *out ? s + 3 : NULL;
  default: return NULL;
  }
}

// l->at is behind the opening quote.
static void string(lexer *l) {
  const char *s = l->at;
  l->name = s;
  while (*s && *s != '"' && *s != '\\' && *s != '\n') s++;
  l->len = (size_t)(s - l->name);
  if (*s == '\\') {
    const char *close = s;
    while (*close && *close != '"' && *close != '\n') close += *close == '\\' && close[1] ? 2 : 1;
    char *out = arena_alloc(l->a, (size_t)(close - l->name) + 1), *to = out;
    memcpy(to, l->name, l->len);
    for (to += l->len; *s && *s != '"' && *s != '\n';) {
      if (*s != '\\') {
        *to++ = *s++;
        continue;
      }
      const char *next = escape(s + 1, to);
      if (!next) {
        l->at = s + 1;
        bad(l, "unknown escape in a string");
        diag_hint(l->c, "escapes are \\\" \\\\ \\n \\t and \\xNN for any byte but 0");
        return;
      }
      s = next;
      to++;
    }
    l->name = out;
    l->len = (size_t)(to - out);
  }
  l->at = s;
  if (*s != '"') {
    bad(l, "the string does not end on its line");
    return;
  }
  l->at++;
}

static void number(lexer *l) {
  const char *s = l->start;
  if (*s == '-') s++;
  if (is_alpha(*s))
    s = name_end(s); // -inf
  else if (*s == '0' && s[1] == 'x')
    for (s += 2; is_hex(*s);) s++;
  else {
    while (is_digit(*s)) s++;
    if (*s == '.' && s[1] != '.')
      for (s++; is_digit(*s);) s++;
    if ((*s | 32) == 'e') {
      const char *e = s + 1;
      if (*e == '+' || *e == '-') e++;
      if (is_digit(*e))
        for (s = e; is_digit(*s);) s++;
    }
  }
  l->kind = TOK_NUMBER;
  l->name = l->start;
  l->at = s;
  l->len = (size_t)(s - l->start);
}

// A name behind % @ $: plain, quoted, or digits.
static void sigil(lexer *l, tok_kind kind) {
  l->kind = kind;
  if (*l->at == '"' && kind != TOK_DATA) {
    l->at++;
    l->quoted = true;
    string(l);
    if (l->kind != TOK_BAD && !l->len) bad(l, "an empty name");
    return;
  }
  l->name = l->at;
  if (is_digit(*l->at))
    while (is_digit(*l->at)) l->at++;
  else if (kind == TOK_AT && *l->at == '.')
    l->at++;
  else if (kind != TOK_DATA)
    l->at = name_end(l->at);
  l->len = (size_t)(l->at - l->name);
  if (!l->len) bad(l, "a name must follow");
}

void lex_next(lexer *l) {
  l->first = l->at == l->line;
  for (;; l->at++) {
    if (*l->at == '#')
      while (*l->at && *l->at != '\n') l->at++;
    if (*l->at == '\n')
      newline(l, l->at + 1);
    else if (*l->at != ' ' && *l->at != '\t' && *l->at != '\r')
      break;
  }
  const char *s = l->start = l->at++;
  l->quoted = false;
  l->kind = TOK_PUNCT;
  l->punct = *s;
  l->len = 0;
  switch (*s) {
  case 0:
    l->at = s;
    l->kind = TOK_END;
    if (s == l->end) return;
    bad(l, "a zero byte in the text");
    l->at = s + 1;
    return;
  case '%': sigil(l, TOK_VALUE); return;
  case '@': sigil(l, TOK_AT); return;
  case '$': sigil(l, TOK_DATA); return;
  case '"':
    l->kind = TOK_STRING;
    string(l);
    return;
  case '-':
    if (*l->at == '>') {
      l->at++;
      l->kind = TOK_ARROW;
    } else if (is_digit(*l->at) || is_alpha(*l->at)) {
      number(l);
    } else {
      bad(l, "unexpected '-'");
    }
    return;
  case '.':
    if (*l->at == '.') {
      l->at++;
      l->kind = TOK_RANGE;
    } else {
      bad(l, "unexpected '.'");
    }
    return;
  default: break;
  }
  if (is_digit(*s)) {
    number(l);
  } else if (is_alpha(*s)) {
    l->kind = TOK_NAME;
    l->name = s;
    l->at = name_end(s);
    l->len = (size_t)(l->at - s);
  } else if (!strchr("()[]{},:=!^+*", *s)) {
    bad(l, "unexpected character");
  }
}

void lex_from(lexer *l, const char *at) {
  for (const char *s = l->start; s < at; s++)
    if (*s == '\n') newline(l, s + 1);
  l->at = at;
  lex_next(l);
}

const char *lex_found(lexer *l) {
  if (l->kind == TOK_END) return "the end of the text";
  return arena_printf(ctx_arena(l->c), "'%.*s'", (int)MIN(l->at - l->start, 40), l->start);
}
