// own.c - operators from outside with random laws: products of operands, summed over the letters that the result lacks, by a kernel
// that knows nothing but the law. Every split that the law allows must compute what the whole computes; with a law that is
// wrong, or parts that combine otherwise than they do, it must not; and a letter that stays whole must be refused.
#include "base/base.h"
#include "heddle.h"
#include "test.h"
#include <stdlib.h>

static u64 R = 7;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

enum { TERMS = 4, DIMS = 3, LETTERS = 5 };
typedef struct {
  u32 n, nd[TERMS];       // terms: operands, then the result
  char term[TERMS][DIMS]; // letters a to e
  i64 extent[LETTERS];
  bool whole[LETTERS];
  char law[64], operands[16];
} made;

// Nested loops over all letters, which have the extents that this rank holds.
static bool kernel(void *arg, const heddle_application *x) {
  const made *m = arg;
  i64 extent[LETTERS] = {1, 1, 1, 1, 1}, points = 1, n = 1;
  for (u32 k = 0; k + 1 < m->n; k++)
    for (u32 d = 0; d < m->nd[k]; d++) extent[m->term[k][d] - 'a'] = x->operands[k].dims[d];
  for (u32 l = 0; l < LETTERS; l++) points *= extent[l];
  double *y = x->results[0].data;
  for (u32 d = 0; d < x->results[0].ndims; d++) n *= x->results[0].dims[d];
  for (i64 i = 0; i < n; i++) y[i] = 0;
  for (i64 p = 0; p < points; p++) {
    i64 at[LETTERS], left = p, off[TERMS] = {0};
    for (u32 l = 0; l < LETTERS; l++) at[l] = left % extent[l], left /= extent[l];
    for (u32 k = 0; k < m->n; k++)
      for (u32 d = 0; d < m->nd[k]; d++)
        off[k] = off[k] * extent[m->term[k][d] - 'a'] + at[m->term[k][d] - 'a'];
    double product = 1;
    for (u32 k = 0; k + 1 < m->n; k++) product *= ((const double *)x->operands[k].data)[off[k]];
    y[off[m->n - 1]] += product;
  }
  return true;
}

static bool term_has(const made *m, u32 k, u32 letter) {
  for (u32 d = 0; d < m->nd[k]; d++)
    if (m->term[k][d] == (char)('a' + letter)) return true;
  return false;
}
static bool operands_have(const made *m, u32 letter) {
  bool any = false;
  for (u32 k = 0; k + 1 < m->n; k++) any |= term_has(m, k, letter);
  return any;
}

static void make(made *m) {
  *m = (made){.n = 2 + few(TERMS - 1)};
  for (u32 l = 0; l < LETTERS; l++) m->extent[l] = 2 * (1 + few(3)), m->whole[l] = !few(4);
  for (u32 k = 0; k < m->n; k++) {
    const u32 want = 1 + few(DIMS);
    for (u32 tries = 0; m->nd[k] < want && tries < 20; tries++) {
      const u32 l = few(LETTERS);
      if (!term_has(m, k, l) && (k + 1 < m->n || operands_have(m, l)))
        m->term[k][m->nd[k]++] = (char)('a' + l);
    }
    if (k) strcat(m->law, k + 1 < m->n ? "," : "->");
    for (u32 d = 0; d < m->nd[k]; d++) {
      const char c = m->term[k][d], text[2] = {m->whole[c - 'a'] ? (char)(c - 32) : c, 0};
      strcat(m->law, text);
    }
    if (k + 1 < m->n)
      strcat(m->operands, k ? ",p" : "p"), m->operands[strlen(m->operands) - 1] = (char)('p' + k);
  }
}

static heddle_program *program(heddle_session *s, const made *m) {
  char text[512] = "main @main(", more[64];
  for (u32 k = 0; k < m->n; k++) {
    if (k + 1 < m->n)
      snprintf(more, sizeof more, "%s%%p%u: f32[", k ? ", " : "", k);
    else
      snprintf(more, sizeof more, ") -> (f32[");
    strcat(text, more);
    for (u32 d = 0; d < m->nd[k]; d++) {
      snprintf(more, sizeof more, "%s%d", d ? "," : "", (int)m->extent[m->term[k][d] - 'a']);
      strcat(text, more);
    }
    strcat(text, "]");
  }
  strcat(text, ") {\n  %y = own ");
  for (u32 k = 0; k + 1 < m->n; k++) {
    snprintf(more, sizeof more, "%s%%p%u", k ? ", " : "", k);
    strcat(text, more);
  }
  strcat(text, "\n  return %y\n}\n");
  return heddle_program_parse(s, "own.heddle", text, strlen(text));
}

// The application split over two ranks by a letter; NULL: refused.
static heddle_check *split(heddle_session *s, const made *m, heddle_program *p, u32 letter) {
  heddle_draft *d = heddle_draft_new(p, "split", NULL);
  heddle_operator op;
  heddle_draft_axis(d, "x", 2);
  heddle_draft_mesh(d, "all", 0, 1, (const char *[]){"x"});
  heddle_draft_assign(d, 1, 1, "all", NULL, 0);
  heddle_draft_order(d, 0, 'F', 0, 0);
  for (u32 k = 0; k + 1 < m->n; k++)
    for (u32 i = 0; i < m->nd[k] && heddle_program_operator(p, NULL, 1, &op); i++)
      if (m->term[k][i] == (char)('a' + letter)) {
        heddle_draft_trans(d, &op, k, i, "x");
        return heddle_check_run(heddle_draft_plan(d), NULL);
      }
  (void)s;
  return NULL;
}

typedef struct {
  u32 equal, sums, refused, noticed;
} counts;

static void one(counts *n, const char *reduction, bool lie) {
  made m;
  make(&m);
  heddle_session *s = heddle_session_new();
  heddle_operator_row row = {.name = "own",
                             .operands = m.operands,
                             .law = m.law,
                             .linear = "e",
                             .reduction = reduction,
                             .flops = 1,
                             .kernel = kernel,
                             .arg = &m};
  CHECK_MSG(heddle_operator_register(s, &row), "%s: %s", m.law, heddle_session_messages(s));
  heddle_program *p = program(s, &m);
  CHECK_MSG(p, "%s: %s", m.law, heddle_session_messages(s));
  for (u32 l = 0; l < LETTERS && p; l++) {
    if (!operands_have(&m, l)) continue;
    const bool sum = !term_has(&m, m.n - 1, l), allowed = !m.whole[l] && (!sum || reduction);
    heddle_check *c = split(s, &m, p, l);
    if (!allowed) {
      CHECK_MSG(!c && heddle_session_errors(s), "%s: %c is split, and stays whole", m.law, 'a' + l);
      n->refused++;
    } else if (CHECK_MSG(c, "%s: %c: %s", m.law, 'a' + l, heddle_session_messages(s))) {
      CHECK_MSG(heddle_check_passed(c) == !(lie && sum), "%s: %c is split%s: %s", m.law, 'a' + l,
                lie && sum ? ", and wrong parts are not noticed" : "", heddle_session_messages(s));
      n->equal += !(lie && sum), n->sums += sum && !lie, n->noticed += lie && sum;
    }
    heddle_session_clear(s);
  }
  heddle_session_free(s);
}

TEST(own_laws_are_split_as_they_say) {
  counts n = {0};
  for (u32 k = 0; k < 150; k++) one(&n, k % 3 ? "sum" : NULL, false);
  CHECK(n.equal > 100 && n.sums > 20 && n.refused > 50);
}

// Sums that are combined by their maximum.
TEST(own_laws_that_combine_otherwise_are_noticed) {
  counts n = {0};
  for (u32 k = 0; k < 60; k++) one(&n, k % 2 ? "max" : "min", true);
  CHECK(n.noticed > 20 && n.equal > 20);
}
