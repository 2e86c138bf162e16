// answer_info.c - what the traces of a job are: ranks, events, lanes, clocks, and what is missing.
#include "report/report.h"
#include <time.h>

static const char *steps_text(arena *a, const file_info *x) {
  if (!x->nsteps) return NULL;
  if (x->first_step == x->last_step) return arena_printf(a, "%u", x->first_step);
  return arena_printf(a, "%u-%u", x->first_step, x->last_step);
}

// "2024-05-23 00:15:22.388068751 UTC"
static const char *clock_text(arena *a, const file_info *x) {
  if (x->clock == CLOCK_NONE) return "of its own";
  if (x->clock == CLOCK_HOST)
    return arena_printf(a, "%lld.%09lld s since its host started", (long long)(x->base_ns / 1000000000),
                        (long long)(x->base_ns % 1000000000));
  const time_t s = (time_t)(x->base_ns / 1000000000);
  struct tm tm;
  gmtime_r(&s, &tm);
  return arena_printf(a, "%04d-%02d-%02d %02d:%02d:%02d.%09lld UTC", tm.tm_year + 1900, tm.tm_mon + 1,
                      tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (long long)(x->base_ns % 1000000000));
}

static cell rank_cell(u32 rank) { return rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, rank); }
static cell name_cell(const ctx *c, sym s) { return cell_text(s.i ? sym_str(c, s) : NULL); }

bool answer_info(report *r, ctx *c, arena *a, const trace_ask *q) {
  static const column cols[] = {{"rank", "rank"},
                                {"world_size", NULL},
                                {"file", "file"},
                                {"format", "format"},
                                {"bytes", NULL},
                                {"host", "host"},
                                {"device", "device"},
                                {"steps", "steps"},
                                {"streams", "streams"},
                                {"threads", "threads"},
                                {"events", "events"},
                                {"device_events", NULL},
                                {"skipped_events", NULL},
                                {"communications", NULL},
                                {"span_ps", "span"},
                                {"clock_base_ns", NULL},
                                {"clock", "clock starts at"},
                                {"truncated", NULL}};
  static const column absent[] = {{"rank", "rank"}, {"missing", "missing"}};
  job *j = job_open(c, a, q->npaths, q->path);
  const job_info *i = j ? job_info_of(j, a) : NULL;
  if (!i) return job_close(j), false;
  report_table(r, "files", cols, COUNT_OF(cols));
  for (u32 k = 0; k < i->n; k++) {
    const file_info *x = &i->file[k];
    report_row(r, (cell[]){rank_cell(x->rank), x->world_size ? cell_i(CELL_INT, x->world_size) : cell_none(),
                           cell_text(x->path), cell_text(trace_format_rows[x->format].name),
                           cell_i(CELL_INT, (i64)j->file[k].about.bytes), name_cell(c, x->host),
                           name_cell(c, x->device), cell_text(steps_text(a, x)), cell_i(CELL_INT, x->streams),
                           cell_i(CELL_INT, x->threads), cell_i(CELL_INT, (i64)x->events),
                           cell_i(CELL_INT, (i64)x->device_events), cell_i(CELL_INT, (i64)x->skipped),
                           cell_i(CELL_INT, x->comms),
                           cell_i(CELL_PS, x->first_ps <= x->last_ps ? x->last_ps - x->first_ps : 0),
                           x->clock == CLOCK_NONE ? cell_none() : cell_i(CELL_INT, x->base_ns),
                           cell_text(clock_text(a, x)), cell_i(CELL_BOOL, x->truncated)});
  }
  if (i->missing.n) report_gap(r);
  report_table(r, "missing", absent, COUNT_OF(absent));
  for (u32 k = 0; k < i->missing.n; k++)
    report_row(r, (cell[]){rank_cell(i->missing.v[k].rank), cell_text(i->missing.v[k].what)});
  job_close(j);
  return true;
}
