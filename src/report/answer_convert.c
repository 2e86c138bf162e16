// answer_convert.c - the traces of a job in another format: which there are, and what must not happen. How each is
// written: convert.c (timelines), trace/chakra_write.c.
#include "report/internal.h"
#include <sys/stat.h>

// The files of the job are still to be read when the first output is written.
bool convert_overwrites(ctx *c, const job *j, const char *output) {
  struct stat to, from;
  if (!strcmp(output, "-") || stat(output, &to)) return false;
  for (u32 k = 0; k < j->n; k++) {
    const char *path = j->file[k].path;
    if (stat(path, &from) || from.st_dev != to.st_dev || from.st_ino != to.st_ino) continue;
    diag(c, E_FILE_WRITE, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}),
         "%s is one of the recordings: it would be overwritten", output);
    diag_hint(c, "name another file");
    return true;
  }
  return false;
}

static const char *chakra_path(arena *a, const char *output, u32 rank) {
  return arena_printf(a, "%s.%u.et", output, rank);
}

// A file for every process: PREFIX.RANK.et, as ASTRA-sim looks for them.
static bool convert_chakra(conversion *v, job *j) {
  u32 next = 0;
  if (!strcmp(v->output, "-")) {
    diag(j->c, E_USAGE, (loc){0}, "Chakra has a file for every rank: they cannot go to standard output");
    diag_hint(j->c, "-o trace writes trace.0.et, trace.1.et ..");
    return false;
  }
  for (u32 f = 0; f < j->n; f++) {
    const trace *t = job_load(j, f, 0);
    bool ok = t;
    for (u32 p = 0; ok && p < t->processes.n; p++) {
      const u32 said = t->processes.n == 1 ? job_rank(j, f) : t->processes.v[p].rank,
                rank = said == TRACE_NONE ? next : said;
      const char *path = chakra_path(v->a, v->output, rank);
      u64 nodes = 0;
      ok = !convert_overwrites(j->c, j, path) && trace_write_chakra(j->c, t, p, path, &nodes);
      v->processes++, v->events += nodes, next = MAX(next, rank + 1);
    }
    if (t) job_unload(j, f);
    if (!ok) return false;
  }
  return true;
}

static const struct {
  const char *name;
  bool (*convert)(conversion *v, job *j);
} targets[] = {{"chrome", convert_chrome}, {"heddle", convert_heddle}, {"chakra", convert_chakra}};

bool answer_convert(report *r, ctx *c, arena *a, const trace_ask *q) {
  const char *to = q->to ? q->to : targets[0].name;
  u32 k = 0;
  while (k < COUNT_OF(targets) && strcmp(to, targets[k].name)) k++;
  if (k == COUNT_OF(targets)) {
    diag(c, E_USAGE, (loc){0}, "traces are not converted to '%s'", to);
    diag_hint(c, "--to chrome, heddle or chakra");
    return false;
  }
  if (!q->output) {
    diag(c, E_USAGE, (loc){0}, "no file to write was named");
    diag_hint(c, "-o trace.json");
    return false;
  }
  job *j = job_open(c, a, q->npaths, q->path);
  conversion v = {.a = a, .output = q->output};
  if (!j || convert_overwrites(c, j, q->output)) return false;
  const bool ok = targets[k].convert(&v, j), chakra = targets[k].convert == convert_chakra;
  job_close(j);
  if (!ok) return false;
  const bool tell = strcmp(q->output, "-");
  report_fact(r, "output", tell ? "file" : NULL,
              cell_text(chakra ? arena_printf(a, "%s.RANK.et", q->output) : q->output));
  report_fact(r, "processes", tell ? "processes" : NULL, cell_i(CELL_INT, v.processes));
  report_fact(r, "events", tell ? "events" : NULL, cell_i(CELL_INT, (i64)v.events));
  if (!chakra) report_fact(r, "clocks_corrected_ps", NULL, cell_i(CELL_PS, v.clocks_by_ps));
  if (v.clocks_by_ps && tell)
    report_line(r, "clocks", "of hosts are up to %s apart: put on that of the first",
                time_text(a, v.clocks_by_ps));
  if (!chakra) report_fact(r, "arrows", tell ? "arrows" : NULL, cell_i(CELL_INT, v.arrows));
  return true;
}
