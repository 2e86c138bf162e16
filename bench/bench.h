// bench.h - what the measurements share: a clock, the table and its file. Included by programs only.
//
// A figure is one row: printed beside its anchor and what is required, and merged by name into
// $BUILD/bench.json, an array of objects with name, value, unit, required, anchor, better. Times are those of
// the calling thread, so that a busy machine does not count; nothing measured here starts another thread.
#ifndef HEDDLE_BENCH_H
#define HEDDLE_BENCH_H
#include "base/base.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
  const char *name, *unit;
  double value, required; // required 0: nothing is
  const char *anchor;     // what others take; "" if nothing is known
  bool more;              // more is better
} bench_row;
enum { BENCH_ROWS = 64 };
static bench_row bench_rows[BENCH_ROWS];
static u32 bench_nrows;

static inline double bench_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// The work is the same every time; what a run takes more than the fastest is the machine's.
static inline int bench_ascending(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}
static inline double bench_median(double *v, u32 n) { // sorts them
  qsort(v, n, sizeof *v, bench_ascending);
  return (v[(n - 1) / 2] + v[n / 2]) / 2;
}
static inline double bench_fastest(const double *v, u32 n) {
  double least = v[0];
  for (u32 k = 1; k < n; k++) least = fmin(least, v[k]);
  return least;
}

// Strings must live until bench_end.
static inline void bench_add(bench_row r) {
  if (!bench_nrows) printf("%-78s %-28s %12s %12s\n", "work", "anchor", "required", "measured");
  char need[32] = "";
  if (r.required != 0) snprintf(need, sizeof need, "%s %g", r.more ? ">=" : "<=", r.required);
  bool met = r.required == 0 || (r.more ? r.value >= r.required : r.value <= r.required);
  printf("%-78s %-28s %12s %12.4g %s%s\n", r.name, r.anchor, need, r.value, r.unit, met ? "" : "  MISSED");
  fflush(stdout);
  assert(bench_nrows < BENCH_ROWS);
  bench_rows[bench_nrows++] = r;
}

static inline void bench_put(strbuf *s, const bench_row *r) {
  sb_put(s, s->n ? ",\n  {\"name\": " : "[\n  {\"name\": ");
  sb_json_str(s, r->name);
  sb_fmt(s, ", \"value\": %.6g, \"unit\": ", r->value);
  sb_json_str(s, r->unit);
  if (r->required != 0)
    sb_fmt(s, ", \"required\": %.6g, \"anchor\": ", r->required);
  else
    sb_put(s, ", \"required\": null, \"anchor\": ");
  sb_json_str(s, r->anchor);
  sb_fmt(s, ", \"better\": \"%s\"}", r->more ? "more" : "less");
}

// Rows that other programs left in the file stay; those of the same name are replaced. Returns the exit
// status.
static inline int bench_end(void) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *build = getenv("BUILD");
  const char *path = arena_printf(a, "%s/bench.json", build && *build ? build : "build");
  strbuf s = {.a = a};
  file_view f;
  if (file_exists(path) && file_map(c, path, &f)) {
    const json *old = json_parse(c, a, sym_of(c, path), (const char *)f.data, f.size);
    for (u32 i = 0; old && old->kind == JSON_ARR && i < old->n; i++) {
      const json *o = &old->item[i], *name = json_get(o, "name"), *value = json_get(o, "value"),
                 *unit = json_get(o, "unit"), *required = json_get(o, "required"),
                 *anchor = json_get(o, "anchor"), *better = json_get(o, "better");
      if (!name || !value || !unit || !required || !anchor || !better) continue;
      bool mine = false;
      for (u32 k = 0; k < bench_nrows; k++) mine |= !strcmp(bench_rows[k].name, name->str);
      if (mine) continue;
      bench_put(&s,
                &(bench_row){name->str, unit->str, value->num, required->kind == JSON_NUM ? required->num : 0,
                             anchor->str, !strcmp(better->str, "more")});
    }
    file_unmap(&f);
  }
  for (u32 k = 0; k < bench_nrows; k++) bench_put(&s, &bench_rows[k]);
  sb_put(&s, s.n ? "\n]\n" : "[]\n");
  diag_clear(c);
  bool ok = file_write(c, path, s.v, s.n);
  if (!ok) fputs(diag_render(c, a), stderr);
  ctx_free(c);
  return ok ? 0 : 1;
}
#endif
