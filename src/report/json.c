// json.c - a report as one JSON object: exact quantities, keys in the order in which they were reported.
#include "report/internal.h"
#include <math.h>
#include <stdlib.h>

// The shortest of the decimal numbers that read back as x. JSON has no infinity: what is not finite is null.
static void put_real(strbuf *b, double x) {
  char s[32];
  if (!isfinite(x)) {
    sb_put(b, "null");
    return;
  }
  if (x == floor(x) && fabs(x) < 0x1p53) {
    sb_fmt(b, "%.0f", x);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(s, sizeof s, "%.*g", digits, x);
    if (strtod(s, NULL) == x) break;
  }
  sb_put(b, s);
}

static void put_cell(strbuf *b, const cell *x) {
  switch (x->kind) {
  case CELL_NONE: sb_put(b, "null"); break;
  case CELL_TEXT:
  case CELL_NAME: sb_json_str(b, x->u.s); break;
  case CELL_INT:
  case CELL_COUNT:
  case CELL_BYTES:
  case CELL_PS: sb_i64(b, x->u.i); break;
  case CELL_BOOL: sb_put(b, x->u.i ? "true" : "false"); break;
  case CELL_FLOP:
  case CELL_FLOPS:
  case CELL_RATE:
  case CELL_PER_S:
  case CELL_SHARE:
  case CELL_TIMES:
  case CELL_REAL: put_real(b, x->u.x); break;
  case CELL_DIMS:
    sb_char(b, '[');
    for (u32 i = 0; i < x->n; i++) {
      if (i) sb_put(b, ", ");
      sb_i64(b, x->u.v[i]);
    }
    sb_char(b, ']');
    break;
  }
}

// One row a line: easy to read, and a change of one row is a change of one line.
static void put_rows(strbuf *b, const part *p) {
  sb_char(b, '[');
  for (u32 i = 0; i < p->nrows; i++) {
    sb_put(b, i ? ",\n    {" : "\n    {");
    const char *between = "";
    for (u32 k = 0; k < p->ncols; k++) {
      if (!p->col[k].key) continue;
      sb_put(b, between);
      sb_json_str(b, p->col[k].key);
      sb_put(b, ": ");
      put_cell(b, &p->cells.v[i * p->ncols + k]);
      between = ", ";
    }
    sb_char(b, '}');
  }
  sb_put(b, p->nrows ? "\n  ]" : "]");
}

void report_json(const report *r, strbuf *b) {
  const char *between = "";
  sb_char(b, '{');
  for (u32 i = 0; i < r->parts.n; i++) {
    const part *p = &r->parts.v[i];
    if (!p->key) continue;
    sb_fmt(b, "%s\n  ", between);
    sb_json_str(b, p->key);
    sb_put(b, ": ");
    if (p->kind == PART_TABLE)
      put_rows(b, p);
    else
      put_cell(b, &p->x);
    between = ",";
  }
  sb_put(b, "\n}\n");
}
