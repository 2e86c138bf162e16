// internal.h - the inside of a report. Private to report/.
#ifndef HEDDLE_REPORT_INTERNAL_H
#define HEDDLE_REPORT_INTERNAL_H
#include "report/report.h"

typedef enum { PART_FACT, PART_LINE, PART_GAP, PART_TABLE, PART_NOTE } part_kind;
typedef struct {
  part_kind kind;
  const char *key, *text; // text: the label; of a note and of a line without label what it says
  cell x;                 // of a line what it says
  u32 ncols, nrows, top;  // top: rows that text shows; 0: all
  const column *col;
  VEC(cell) cells; // nrows x ncols
} part;
struct report {
  arena *a;
  VEC(part) parts;
};

// "WHO 12.3 % more", or of twice and above "WHO 175 times that"; times: of what was told before.
const char *report_beyond(arena *a, const char *who, double times);
// kinds.c: what the devices of each kind get and do
void report_kinds(report *r, const plan_kind *v, u32 n);

// schedule.c: "0 7", the stages that run something on a place, and how many
const char *stages_on(arena *a, const sched *s, u32 place, u32 *count);

// A step: `time_ps`, of one alone, `period_ps`, of training, of steps that follow each other, and a column of text: the one by
// which plans are ranked, time_ps of a search_point.
#define STEP_COLUMNS(title)                                                                                  \
  {"time_ps", NULL}, {"period_ps", NULL}, { NULL, title }
#define STEP_CELLS(train, ranked_ps, alone_ps)                                                               \
  cell_some(alone_ps), cell_some((train) ? (ranked_ps) : 0), cell_some(ranked_ps)
static inline cell cell_some(i64 ps) { return ps ? cell_i(CELL_PS, ps) : cell_none(); }

// replicas.c: which replicas of different make-up a search tried
void report_replicas_tried(report *r, arena *a, const search_opts *o, const search_result *s);

// origin.c: where the figures come from, how far the time of the step may be off
void report_error(report *r, arena *a, const sim_result *s);
void report_origins(report *r, arena *a, ctx *c, const sim_result *s);

// straggler.c: what a pipelined job is, for every answer about it
void report_straggler(report *r, const straggler *s, const char *path);
const char *straggler_worker_name(arena *a, const straggler *s, u32 worker); // "worker 3 (rank 12: ..)"
static inline cell cell_ps(double ps) { return cell_i(CELL_PS, (i64)(ps < 0 ? ps - 0.5 : ps + 0.5)); }

// names.c: n names of one column, each of at most so many characters unless that makes two of them alike.
void names_cut(arena *a, u32 n, const char *const *name, u32 most, const char **out);

void report_json(const report *r, strbuf *b);

// ---- convert.c: timelines of recorded jobs ------------------------------------------------------------------
typedef struct {
  arena *a;
  const char *output;
  u32 processes, arrows; // what was written
  u64 events;
  i64 clocks_by_ps; // clocks of hosts were apart by up to this, and are put on one; 0: they are as recorded
} conversion;
bool convert_chrome(conversion *v, job *j); // Kineto's categories and arguments
bool convert_heddle(conversion *v, job *j); // those of Heddle's own timelines
// Would writing there overwrite a file of the job? Then a diagnostic. answer_convert.c
bool convert_overwrites(ctx *c, const job *j, const char *output);
// Members of "args" as Heddle's own timelines have them, each with a comma before it: of a process, of a communication.
const char *process_args(const ctx *c, arena *a, const trace_process *p);
void put_own_comm(strbuf *out, const ctx *c, const trace_comm *m);
void put_us(strbuf *out, i64 ps);      // picoseconds as microseconds, exactly (chrome.c)
const char *chrome_category(u8 flags); // of an instruction: "communication" .. "forward" (chrome.c)

// Measured and predicted as one timeline. False and a diagnostic: the file cannot be written (compare_timeline.c)
bool compare_timeline(ctx *c, arena *a, const job_compare *d, const char *path);

// ---- cells.c ----------------------------------------------------------------------------------------------
const char *time_text(arena *a, i64 ps); // "1.234 ms"

// ---- late.c -----------------------------------------------------------------------------------------------
void report_late(report *r, arena *a, const late_report *l);
void report_replayed(report *r, arena *a, const replay_errors *x); // how good the replay is, in a line
void report_left_out(report *r, arena *a,
                     const job_input *in); // of a replay, and what stands for something else
void report_late_comms(report *r, ctx *c, arena *a, const replay *x, const late_report *l, u32 top);
#endif
