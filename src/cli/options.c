// options.c - reads the command line by the table of options, and explains it.
//
// --name VALUE and --name=VALUE are the same; -o is --output. Everything wrong is said in the form of the
// library's diagnostics, before anything is done.
#include "cli/run.h"
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

typedef enum { FLAG, TEXT, COUNT, FEW, SEED, INDEX, REAL, ABOVE, PART, DIMS, FIXES, TEXTS, CHOICE } kind;
typedef struct {
  const char *name, *arg, *help;
  kind kind;
  unsigned groups;
  size_t field;
} option;
static const option table[] = {
#define OPT(name, field, kind, groups, arg, help) {name, arg, help, kind, groups, offsetof(cli, field)},
#define ALSO                                      OPT
#include "cli/options.def"
#undef OPT
#undef ALSO
};
enum { NTABLE = sizeof table / sizeof *table, CHOICES_MOST = 64 };
static option options[NTABLE + CHOICES_MOST];
static int noptions;
static bool given[NTABLE + CHOICES_MOST]; // by options_parse

// The table with the choices after --strategy.
static void options_list(void) {
  heddle_choice c;
  for (int k = 0; k < NTABLE && noptions < NTABLE + CHOICES_MOST; k++) {
    options[noptions++] = table[k];
    if (strcmp(table[k].name, "strategy")) continue;
    for (uint32_t i = 0; i < CHOICES_MOST && heddle_choice_get(i, &c); i++)
      options[noptions++] = (option){c.option, c.argument, c.about, CHOICE, G_CHOICE, 0};
  }
}

int usage_errors;

bool usage_error(const char *hint, const char *fmt, ...) {
  va_list ap;
  usage_errors++;
  va_start(ap, fmt);
  fputs("error[E0801]: ", stderr);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  if (hint) fprintf(stderr, "  hint: %s\n", hint);
  return false;
}

// ---- did you mean -------------------------------------------------------------------------------------
// Of commands and options, which the library knows nothing of; its own (base/near.c) is not for users of
// heddle.h.
static unsigned distance(const char *a, const char *b) {
  unsigned row[32];
  size_t n = strlen(b);
  if (n >= sizeof row / sizeof *row) return ~0u;
  for (unsigned j = 0; j <= n; j++) row[j] = j;
  for (unsigned i = 1; *a; a++, i++) {
    unsigned diagonal = row[0];
    row[0] = i;
    for (unsigned j = 1; j <= n; j++) {
      unsigned change = diagonal + (*a != b[j - 1]);
      diagonal = row[j];
      unsigned least = row[j] < row[j - 1] ? row[j] : row[j - 1];
      row[j] = change < least + 1 ? change : least + 1;
    }
  }
  return row[n];
}

const char *nearest(const char *word, const char *(*name)(int i)) {
  const char *best = NULL;
  unsigned least = 1 + (unsigned)strlen(word) / 3;
  for (int i = 0; name(i); i++) {
    unsigned d = distance(word, name(i));
    if (d < least || (d == least && !best)) least = d, best = name(i);
  }
  return best;
}

static const command *now; // of which option_name tells the options
static const char *option_name(int i) {
  for (int k = 0; k < noptions; k++)
    if ((options[k].groups & (now->groups | G_ALL)) && i-- == 0) return options[k].name;
  return NULL;
}

// What to type for an option of another system; NULL: it is none that we know.
static const char *called_here(const char *word) {
  static const char *const names[][2] = {
#define ELSEWHERE(theirs, ours) {theirs, ours},
#include "cli/elsewhere.def"
#undef ELSEWHERE
  };
  char own[64];
  size_t n = 0;
  for (; word[n] && n + 1 < sizeof own; n++) own[n] = word[n] == '_' ? '-' : word[n];
  own[n] = 0;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (!strcmp(names[k][0], own)) return names[k][1];
  return NULL;
}

static bool unknown_option(const command *c, const char *name, int n) {
  char word[64], hint[160];
  snprintf(word, sizeof word, "%.*s", n, name);
  now = c;
  const char *ours = called_here(word);
  if (ours) {
    snprintf(hint, sizeof hint, "in Heddle: %s", ours);
    return usage_error(hint, "`heddle %s` has no option --%s", c->name, word);
  }
  const char *near = nearest(word, option_name);
  snprintf(hint, sizeof hint, near ? "did you mean --%s?" : "`heddle %s --help` lists the options",
           near ? near : c->name);
  for (int k = 0; !near && k < noptions; k++) {
    if (strcmp(options[k].name, word)) continue;
    return usage_error(hint, "--%s does not apply to `heddle %s`", word, c->name);
  }
  return usage_error(hint, "`heddle %s` has no option --%s", c->name, word);
}

// ---- values -------------------------------------------------------------------------------------------
static bool read_whole(const option *o, const char *text, size_t n, int64_t least, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  const bool whole = n && end == text + n && *text != '+' && *text != ' ';
  if (whole && !errno && v >= least && v <= (int64_t)1 << 62) {
    *out = v;
    return true;
  }
  if (whole && v > (int64_t)1 << 62)
    return usage_error(NULL, "--%s must be at most 2^62; got %.*s", o->name, (int)n, text);
  return usage_error(NULL, "--%s must be an integer, %lld or more; got '%.*s'", o->name, (long long)least,
                     (int)n, text);
}

static bool few(const option *o, int64_t v) {
  return v <= 1 << 20 ||
         usage_error(NULL, "--%s must be at most %d; got %lld", o->name, 1 << 20, (long long)v);
}

static bool read_real(const option *o, const char *text, bool above, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (*text && !*end && *out - *out == 0 && (!above || *out > 0)) return true;
  return usage_error(NULL, "--%s must be a number%s; got '%s'", o->name, above ? " above 0" : "", text);
}

static bool read_part(const option *o, const char *text, CLI_PART *out) {
  const char *slash = strchr(text, '/');
  int64_t i = 0, n = 0;
  char *end[2] = {NULL, NULL};
  if (slash) i = strtoll(text, &end[0], 10), n = strtoll(slash + 1, &end[1], 10);
  if (!slash || end[0] != slash || end[1] == slash + 1 || *end[1] || i < 1 || n < 1)
    return usage_error("--part 1/2", "--%s must be I/N, part I of N; got '%s'", o->name, text);
  if (!few(o, n)) return false;
  *out = (CLI_PART){(uint32_t)i, (uint32_t)n};
  if (i <= n) return true;
  return usage_error(NULL, "--%s must be at most %lld/%lld; got %lld/%lld", o->name, (long long)n,
                     (long long)n, (long long)i, (long long)n);
}

// " name=text" after the choices so far; text NULL: the name alone. What is wrong with it the library says.
static bool read_choice(cli *x, const option *o, const char *text) {
  size_t n = x->choices ? strlen(x->choices) : 0, size = n + strlen(o->name) + (text ? strlen(text) : 0) + 3;
  char *line = realloc(x->choices, size);
  if (!line) return usage_error(NULL, "--%s: out of memory", o->name);
  x->choices = line;
  if (!x->choice) x->choice = o->name;
  snprintf(line + n, size - n, "%s%s%s%s", n ? " " : "", o->name, text ? "=" : "", text ? text : "");
  return !text || !strpbrk(text, " \t\n") ||
         usage_error(NULL, "--%s: '%s' must not contain a space", o->name, text);
}

// The name before the last '=' of a word that stays as it is, since plan files quote the command. NULL: said.
static const char *read_name(const option *o, const char *text, uint32_t n, const char *example) {
  const char *eq = strrchr(text, '=');
  if (!eq || eq == text || !eq[1]) {
    usage_error(example, "--%s: '%s' is not %s", o->name, text, o->arg);
    return NULL;
  }
  char *name = n < DIMS_LIMIT ? strndup(text, (size_t)(eq - text)) : NULL;
  if (!name) usage_error(NULL, "--%s: given more than %d times", o->name, DIMS_LIMIT);
  return name;
}

static bool twice(const option *o, const char *name) {
  return usage_error(NULL, "--%s %s: given twice", o->name, name);
}

static bool read_dim(const option *o, const char *text, CLI_DIMS *out) {
  const char *name = read_name(o, text, out->n, "--dim batch=8"), *n = strrchr(text, '=') + 1;
  if (!name) return false;
  heddle_dim *d = &out->v[out->n++];
  d->name = name;
  for (heddle_dim *e = out->v; e < d; e++)
    if (!strcmp(e->name, name)) return twice(o, name);
  return read_whole(o, n, strlen(n), 1, &d->extent);
}

static bool read_fix(const option *o, const char *text, CLI_FIXES *out) {
  const char *name = read_name(o, text, out->n, "--fix lengths=4,7");
  if (!name) return false;
  heddle_fix *f = &out->v[out->n++];
  *f = (heddle_fix){name, strrchr(text, '=') + 1};
  for (heddle_fix *e = out->v; e < f; e++)
    if (!strcmp(e->name, name)) return twice(o, name);
  return true;
}

static bool read_text(const option *o, const char *text, CLI_TEXTS *out) {
  if (out->n == DIMS_LIMIT) return usage_error(NULL, "--%s: given more than %d times", o->name, DIMS_LIMIT);
  out->v[out->n++] = text;
  return true;
}

static bool read_value(cli *x, const option *o, char *text) {
  void *field = (char *)x + o->field;
  CLI_COUNT *count = field;
  CLI_REAL *real = field;
  switch (o->kind) {
  case FLAG: return *(CLI_FLAG *)field = true;
  case TEXT: *(CLI_TEXT *)field = text; return true;
  case COUNT:
  case FEW:
  case SEED:
  case INDEX:
    count->given = read_whole(o, text, strlen(text), o->kind == COUNT || o->kind == FEW, &count->i);
    return count->given && (o->kind == COUNT || o->kind == SEED || few(o, count->i));
  case REAL:
  case ABOVE: return real->given = read_real(o, text, o->kind == ABOVE, &real->x);
  case PART: return read_part(o, text, field);
  case DIMS: return read_dim(o, text, field);
  case FIXES: return read_fix(o, text, field);
  case TEXTS: return read_text(o, text, field);
  case CHOICE: return read_choice(x, o, text);
  }
  return false;
}

// ---- the command line ---------------------------------------------------------------------------------
static const option *option_find(const command *c, const char *name, size_t n) {
  for (int k = 0; k < noptions; k++)
    if (options[k].groups & (c->groups | G_ALL) && strlen(options[k].name) == n &&
        !memcmp(options[k].name, name, n))
      return &options[k];
  return NULL;
}

bool options_parse(cli *x, const command *c, int argc, char **argv) {
  char hint[96];
  bool only_operands = false;
  snprintf(hint, sizeof hint, "`heddle %s --help` explains it", c->name);
  options_list();
  x->operands = calloc((size_t)argc + 1, sizeof *x->operands);
  if (!x->operands) return usage_error(NULL, "out of memory");
  for (int i = 0; i < argc; i++) {
    char *word = argv[i], *eq = strchr(word, '=');
    if (only_operands || *word != '-' || !word[1]) {
      if ((int)x->noperands == c->most)
        return usage_error(hint, "`heddle %s`: unexpected argument '%s'", c->name, word);
      x->operand = x->operands[x->noperands++] = word;
      continue;
    }
    if (!strcmp(word, "--")) {
      only_operands = true;
      continue;
    }
    if (!strcmp(word, "-h")) word = "--help";
    if (!strcmp(word, "-o")) word = "--output";
    if (word[1] != '-') return usage_error(hint, "`heddle %s` has no option %s", c->name, word);
    size_t n = eq ? (size_t)(eq - word - 2) : strlen(word + 2);
    const option *o = option_find(c, word + 2, n);
    if (!o) return unknown_option(c, word + 2, (int)n);
    bool bare = o->kind == FLAG || (o->kind == CHOICE && !*o->arg);
    if (o->kind == FLAG && eq) return usage_error(NULL, "--%s takes no value", o->name);
    if (!bare && !eq && ++i == argc)
      return usage_error(NULL, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
    // Of names a check of their own tells, of choices the library
    const bool once =
        o->kind != DIMS && o->kind != FIXES && o->kind != TEXTS && o->kind != CHOICE && o->kind != FLAG;
    if (once && given[o - options]) return usage_error(NULL, "--%s is given twice", o->name);
    given[o - options] = true;
    if (!read_value(x, o, eq ? eq + 1 : bare ? NULL : argv[i])) return false;
  }
  if ((int)x->noperands < c->least && !x->help)
    return usage_error(hint, "`heddle %s` needs %s", c->name, c->operands);
  return true;
}

int options_of_model(const cli *x, const char **out) {
  int n = 0;
  if (x->operand) out[n++] = x->operand;
  for (int i = 1; i < x->argc; i++) {
    const char *word = x->argv[i], *eq = strchr(word, '=');
    if (word[0] != '-' || word[1] != '-') continue;
    const size_t len = eq ? (size_t)(eq - word - 2) : strlen(word + 2);
    for (int k = 0; k < noptions; k++) {
      const option *o = &options[k];
      if (!(o->groups & G_MODEL) || strlen(o->name) != len || memcmp(o->name, word + 2, len)) continue;
      out[n++] = word;
      if (o->kind != FLAG && !eq && i + 1 < x->argc) out[n++] = x->argv[++i];
      break;
    }
  }
  return n;
}

// ---- questions of `heddle trace` ------------------------------------------------------------------------
bool question_takes(const heddle_question *q, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = q->options; (p = strstr(p, name)); p += n)
    if ((p == q->options || p[-1] == ',') && (!p[n] || p[n] == ',')) return true;
  return false;
}

static bool question_has(const heddle_question *q, const option *o) {
  const unsigned planning = G_MODEL | G_TRAIN | G_CHOICE | G_PLAN | G_MACHINE;
  return o->groups & G_ALL || question_takes(q, o->name) ||
         (o->groups & planning && question_takes(q, "plan"));
}

// "summary, diff, blame".
static const char *questions_with(const option *o) {
  static char list[256];
  heddle_question q;
  size_t n = 0;
  list[0] = 0;
  for (uint32_t k = 0; heddle_question_get(k, &q) && n < sizeof list; k++)
    if (question_has(&q, o)) n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", q.name);
  return list;
}

bool question_agrees(const heddle_question *q) {
  char hint[320];
  for (int k = 0; k < noptions; k++) {
    if (!given[k] || question_has(q, &options[k])) continue;
    snprintf(hint, sizeof hint, "leave it out; questions that take it: %s", questions_with(&options[k]));
    return usage_error(hint, "`heddle trace %s` has no option --%s", q->name, options[k].name);
  }
  return true;
}

// A command may take the name of a choice for something else, such as --data of `heddle run`.
static bool is_hidden(const command *c, const option *o) {
  return o->kind == CHOICE && option_find(c, o->name, strlen(o->name)) != o;
}

// ---- help ---------------------------------------------------------------------------------------------
typedef struct {
  const command *c;
  const heddle_question *q; // whose options alone are shown; NULL: the command's
  FILE *to;
  unsigned shown; // groups that stand above. An option of several stands once
} helping;

static bool shows(const helping *h, const option *o, unsigned group) {
  return !is_hidden(h->c, o) && o->groups & group & (h->c->groups | G_ALL) &&
         (!h->q || question_has(h->q, o));
}

static void put_option(const helping *h, const option *o, const char *questions) {
  char left[64];
  snprintf(left, sizeof left, "--%s %s", o->name, o->arg);
  fprintf(h->to, "  %-22s %s%s%s\n", left, o->help, questions ? "; of " : "", questions ? questions : "");
}

static void put_group(helping *h, unsigned group, const char *title) {
  const unsigned before = h->shown;
  bool any = false;
  h->shown |= group;
  for (int k = 0; k < noptions; k++) {
    const option *o = &options[k];
    if (!shows(h, o, group) || o->groups & before & h->c->groups) continue;
    if (!any) fprintf(h->to, "\n%s\n", title);
    any = true, put_option(h, o, NULL);
  }
}

static void put_lines(FILE *to, const char *indent, const char *text) {
  for (const char *e = text; *e; e += *e == '\n') {
    const int n = (int)strcspn(e, "\n");
    fprintf(to, "%s%.*s\n", indent, n, e);
    e += n;
  }
}

// "choices (one value or several, ...; dp tp pp are searched)".
static const char *choices_title(void) {
  static char title[256];
  heddle_choice c;
  size_t n = (size_t)snprintf(title, sizeof title,
                              "choices: one value, several (N,N) or all ('*'); searched when not given:");
  for (uint32_t i = 0; heddle_choice_get(i, &c) && n < sizeof title; i++)
    if (c.searched) n += (size_t)snprintf(title + n, sizeof title - n, " %s", c.name);
  return title;
}

static void put_model(const helping *h) {
  fputs("\nMODEL is an .onnx file, a .heddle file, or a built-in model such as gpt3-175b or\n"
        "llama2-7b:layers=2,hidden=256 (`heddle show --list` lists them).\n",
        h->to);
}

static void put_groups(helping *h) {
  const command *c = h->c;
  put_group(h, G_MODEL | G_LIST, "the model");
  put_group(h, G_TRAIN | G_IMPORT, "training");
  put_group(h, G_PLAN | G_CHOICE, c->groups & G_SEARCH ? choices_title() : "the plan");
  put_group(h, G_SHAPE, "the schedule");
  put_group(h, G_PATTERN, "sharding patterns");
  put_group(h, G_MACHINE, "the machine");
  put_group(h, G_SEARCH | G_RANKING, "the search");
  const char *does = c->groups & G_EVAL     ? "evaluation"
                     : c->groups & G_VERIFY ? "verification"
                     : c->groups & G_RANK   ? "the rank"
                     : c->groups & G_EXPORT ? "the program"
                                            : "simulation";
  put_group(h, G_RUN | G_JOIN | G_PROFILE | G_COMPARE, "ranks");
  put_group(h, G_EVAL | G_VERIFY | G_RANK | G_TIME | G_EXPORT, does);
  put_group(h, G_OUTPUT | G_ALL, "output");
}

static void put_not_modelled(const helping *h) {
  fputs("\nnot modelled\n"
        "  fused kernels other than attention=fused; dropout in built-in models; overlap of tensor-parallel\n"
        "  communication, and of what ZeRO gathers, with computation (docs/commands.md)\n",
        h->to);
}

static void put_questions(helping *h) {
  heddle_question q;
  fputs("\nPATH is a recorded file, or the folder with the files of a job, one for every rank; .gz too.\n"
        "\nquestions\n",
        h->to);
  for (uint32_t i = 0; heddle_question_get(i, &q); i++) {
    char left[40];
    snprintf(left, sizeof left, "%s %s", q.name, q.operands);
    fprintf(h->to, "  %-22s %s\n", left, q.about);
  }
  fputs("\noptions of questions (compare takes those of `heddle sim` too: model, training, plan, machine)\n",
        h->to);
  for (int k = 0; k < noptions; k++)
    if (options[k].groups & G_TRACE) put_option(h, &options[k], questions_with(&options[k]));
  put_group(h, G_ALL, "options of every question");
  fputs("\n`heddle trace QUESTION --help` says what a question answers and which options it takes, with "
        "examples.\n"
        "docs/diagnosis.md has the formats that are read, and which question to ask when.\n",
        h->to);
}

void options_help(const command *c, FILE *to) {
  helping h = {.c = c, .to = to};
  fprintf(to, "heddle %s%s%s - %s\n", c->name, *c->operands ? " " : "", c->operands, c->summary);
  if (strstr(c->operands, "MODEL")) put_model(&h);
  if (c->groups & G_TRACE) {
    put_questions(&h);
  } else {
    put_groups(&h);
    if (c->groups & G_MACHINE) put_not_modelled(&h);
  }
  fputs("\nexample\n", to);
  put_lines(to, "  ", c->example);
}

void question_help(const command *c, const heddle_question *q, FILE *to) {
  helping h = {.c = c, .q = q, .to = to};
  fprintf(to, "heddle trace %s %s - %s\n\n", q->name, q->operands, q->about);
  put_lines(to, "", q->answers);
  if (question_takes(q, "plan")) put_model(&h);
  put_group(&h, G_TRACE, "the question");
  put_groups(&h);
  if (question_takes(q, "plan")) put_not_modelled(&h);
  fprintf(to,
          "\nExit status 0: answered, whatever the answer is; others: docs/commands.md. More: "
          "docs/diagnosis.md.\n"
          "\nexample%s\n",
          strchr(q->example, '\n') ? "s" : "");
  put_lines(to, "  ", q->example);
}

void options_json(const command *c, FILE *to) {
  fprintf(to, "{\n  \"name\": \"%s\",\n  \"operand\": \"%s\",\n  \"about\": \"%s\",\n  \"options\": [",
          c->name, c->operands, c->summary);
  const char *between = "";
  for (int k = 0; k < noptions; k++) {
    const option *o = &options[k];
    if (!(o->groups & (c->groups | G_ALL)) || is_hidden(c, o)) continue;
    fprintf(to, "%s\n    {\"name\": \"--%s\", \"argument\": \"%s\", \"about\": \"%s\"}", between, o->name,
            o->arg, o->help);
    between = ",";
  }
  fputs("\n  ]\n}\n", to);
}
