// helpers.c - what the text of a program uses of pytorch.py, and the order of the whole.
//
// Idea: pytorch.py is a list of blocks, each a function, a class or a value at its top level, in sections that begin
// with "# ---- ". A program has the blocks that it names, and those that these name. The section of processes comes
// first, for the lines that follow it run when they are reached; the others behind the model.
#include "export/internal.h"
#include <ctype.h>

// Copies of the files in the library; paths are relative to the root of the repository, where the build runs.
__asm__(".pushsection .rodata\n"
        ".globl pytorch_py\n.hidden pytorch_py\n"
        "pytorch_py:\n.incbin \"src/export/pytorch.py\"\n.byte 0\n"
        ".globl measure_py\n.hidden measure_py\n"
        "measure_py:\n.incbin \"src/export/measure.py\"\n.byte 0\n.popsection\n");
extern const char pytorch_py[] __attribute__((visibility("hidden")));
extern const char measure_py[] __attribute__((visibility("hidden")));

typedef struct {
  const char *text; // from its first line
  size_t n;
  const char *name; // that it defines; of a section NULL
  size_t nname;
  bool used;
} block;

typedef struct {
  arena *a;
  VEC(block) b;
} blocks;

static bool is_word(char c) { return isalnum((u8)c) || c == '_'; }

static void name_block(block *b) {
  const char *s = b->text;
  if (*s == '#') return;
  if (!strncmp(s, "def ", 4)) s += 4;
  if (!strncmp(s, "class ", 6)) s += 6;
  b->name = s;
  while (is_word(s[b->nname])) b->nname++;
}

// Blocks begin in the first column behind an empty line, or behind the line of a section.
static void read_file(blocks *x, const char *text) {
  bool fresh = true;
  for (const char *s = text; *s;) {
    const size_t n = strcspn(s, "\n");
    if (fresh && n && *s != ' ') {
      *vec_push(x->a, &x->b) = (block){.text = s};
      name_block(&x->b.v[x->b.n - 1]);
    }
    fresh = !n || (*s == '#' && fresh);
    assert(!n || x->b.n); // the first line that is not empty begins a block
    if (n) x->b.v[x->b.n - 1].n = (size_t)(s + n - x->b.v[x->b.n - 1].text);
    s += n + (s[n] == '\n');
  }
}

static void read_blocks(const py *w, blocks *x) {
  if (w->measures) read_file(x, measure_py);
  read_file(x, pytorch_py);
}

// Length of a comment or of a string that begins there; 0: none does.
static size_t aside(const char *s, size_t n) {
  size_t k = 1;
  if (*s == '#') {
    while (k < n && s[k] != '\n') k++;
    return k;
  }
  if (*s != '"' && *s != '\'') return 0;
  const char q = *s;
  const bool three = n > 5 && s[1] == q && s[2] == q;
  for (k = three ? 3 : 1; k < n; k++)
    if (s[k] == '\\')
      k++;
    else if (s[k] == q && (!three || (s[k + 1] == q && s[k + 2] == q)))
      return k + (three ? 3 : 1);
  return n;
}

// Marks what the text names, and what that names. Texts in braces, f"{name}", are none of it.
static void use(blocks *x, const char *text, size_t n) {
  for (size_t k = 0; k < n;) {
    if (aside(text + k, n - k)) {
      k += aside(text + k, n - k);
      continue;
    }
    if (!is_word(text[k]) || isdigit((u8)text[k])) {
      k++;
      while (k < n && k && isdigit((u8)text[k - 1]) && is_word(text[k])) k++;
      continue;
    }
    size_t m = 1;
    while (k + m < n && is_word(text[k + m])) m++;
    for (u32 j = 0; j < x->b.n; j++) {
      block *b = &x->b.v[j];
      if (b->used || b->nname != m || strncmp(b->name, text + k, m) || (k && text[k - 1] == '.')) continue;
      b->used = true;
      use(x, b->text, b->n);
    }
    k += m;
  }
}

static bool is_section(const block *b) { return !b->name; }

// The blocks from number `k` to the end of its section that are used; where it ends.
static u32 put_section(const blocks *x, u32 k, strbuf *out) {
  bool titled = false;
  const u32 title = k;
  for (k++; k < x->b.n && !is_section(&x->b.v[k]); k++) {
    const block *b = &x->b.v[k];
    if (!b->used) continue;
    sb_put(out, "\n\n");
    if (!titled) sb_putn(out, x->b.v[title].text, x->b.v[title].n), sb_char(out, '\n');
    titled = true;
    sb_putn(out, b->text, b->n);
    sb_char(out, '\n');
  }
  return k;
}

// Does the text have the word?
static bool names(const char *text, const char *word) {
  const size_t n = strlen(word);
  for (const char *s = strstr(text, word); s; s = strstr(s + 1, word))
    if ((s == text || !is_word(s[-1])) && !is_word(s[n])) return true;
  return false;
}
static bool imports(const char *text, const char *module) { // "math.pi"
  const size_t n = strlen(module);
  for (const char *s = strstr(text, module); s; s = strstr(s + 1, module))
    if ((s == text || (!is_word(s[-1]) && s[-1] != '.')) && s[n] == '.' && is_word(s[n + 1])) return true;
  return false;
}

static void put_imports(const char *text, strbuf *out) {
  static const char *const modules[] = {"argparse", "base64",     "json", "math", "os",  "re",
                                        "socket",   "statistics", "sys",  "time", "zlib"};
  for (u32 k = 0; k < COUNT_OF(modules); k++)
    if (imports(text, modules[k])) sb_fmt(out, "import %s\n", modules[k]);
  sb_put(out, imports(text, "numpy") ? "\nimport numpy\n" : "\n");
  sb_put(out, "import torch\nimport torch.distributed as dist\n");
  if (imports(text, "F")) sb_put(out, "import torch.nn.functional as F\n");
  sb_char(out, '\n');
}

static void put_types(const char *text, strbuf *out) {
  static const char *const types[][2] = {
      {"f16", "float16"}, {"bf16", "bfloat16"}, {"f32", "float32"}, {"f64", "float64"}, {"i8", "int8"},
      {"i16", "int16"},   {"i32", "int32"},     {"i64", "int64"},   {"u8", "uint8"},    {"boolean", "bool"}};
  for (u32 k = 0; k < COUNT_OF(types); k++)
    if (names(text, types[k][0])) sb_fmt(out, "%s = torch.%s\n", types[k][0], types[k][1]);
}

void py_reserve_helpers(py *w) {
  blocks x = {.a = w->a};
  read_blocks(w, &x);
  for (u32 k = 0; k < x.b.n; k++)
    if (!is_section(&x.b.v[k]))
      py_name(w, &w->global, sym_str(w->c, sym_ofn(w->c, x.b.v[k].name, x.b.v[k].nname)));
}

const char *py_helpers(py *w, const py_parts *t) {
  blocks x = {.a = w->a};
  strbuf first = {.a = w->a}, last = first, out = first, all = first;
  read_blocks(w, &x);
  use(&x, t->top, strlen(t->top));
  use(&x, t->body, strlen(t->body));
  use(&x, t->entry, strlen(t->entry));
  u32 k = put_section(&x, 0, &first);
  while (k < x.b.n) k = put_section(&x, k, &last);
  sb_fmt(&all, "%s%s%s%s", sb_str(&first), t->top, t->body, sb_str(&last));
  put_imports(sb_str(&all), &out);
  put_types(t->typed, &out);
  sb_put(&out, t->constants);
  if (names(sb_str(&all), "adam"))
    sb_put(&out, "STEP = 1  # update of Adam's corrections: as in the program, until main counts\n");
  if (names(sb_str(&all), "begin_update")) sb_put(&out, "FIRST = 1  # update of the step\n");
  sb_put(&out, sb_str(&all));
  sb_fmt(&out, "\n\nif __name__ == \"__main__\":\n    %s()\n", t->entry);
  return sb_str(&out);
}
