// kineto_steps.c - reading no more of a Kineto file than some steps of training, so that memory follows from the steps
// and not from the file. Not which steps an answer takes (diagnose/steps.c).
//
// Idea: the file is read more than once. The first time only for its steps, which say where the windows of time are that
// matter. Then for what hosts did in them, and for what devices did from then on until one length of the window later:
// what a call launches starts after it, but nobody knows when. Last, if calls are left whose kind launches work and
// whose work was not seen, for what has their ids. Members may be in any order in the file, so nothing can be known
// sooner.
#include "trace/kineto.h"
#include <stdlib.h>

// ---- windows ----------------------------------------------------------------------------------------------
typedef struct {
  u32 number;
  i64 start; // ns of the file
} step_start;
static int by_number(const void *x, const void *y) {
  const step_start *a = x, *b = y;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return a->start < b->start ? -1 : a->start > b->start;
}
static int by_start(const void *x, const void *y) {
  const step_start *a = x, *b = y;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

// A step lasts until the next one starts; of a step that several threads have, the first start counts.
static void put_windows(kineto *k, step_start *step, u32 found) {
  const trace_want *want = k->x->want;
  u32 n = 0, wanted = 0;
  if (found) qsort(step, found, sizeof *step, by_number);
  for (u32 i = 0; i < found; i++)
    if (!n || step[n - 1].number != step[i].number) step[n++] = step[i];
  if (n) qsort(step, n, sizeof *step, by_start);
  for (u32 i = 0; i < n; i++) wanted += want->step(want->steps, step[i].number);
  if (!wanted || wanted == n) return; // that there are none is for others to say
  for (u32 i = 0; i < n; i++) {
    if (!want->step(want->steps, step[i].number)) continue;
    const i64 to = i + 1 < n ? step[i + 1].start : INT64_MAX;
    if (k->windows.n && k->windows.v[k->windows.n - 1].to == step[i].start)
      k->windows.v[k->windows.n - 1].to = to;
    else
      *vec_push(k->tmp, &k->windows) = (kineto_window){.from = step[i].start, .to = to};
  }
  enum { LEAST_NS = 100000 };
  const i64 last =
      MAX(step[n - 1].start - step[n - 2].start, LEAST_NS); // the last step has no end: as long as before
  for (u32 i = 0; i < k->windows.n; i++) {
    kineto_window *w = &k->windows.v[i]; // times are below 2^62
    w->early = w->from - (w->to == INT64_MAX ? last : MAX(w->to - w->from, LEAST_NS));
    w->late = w->to == INT64_MAX ? w->to : w->to + MAX(w->to - w->from, LEAST_NS);
  }
}

bool kineto_find_windows(kineto *k) {
  const u32 told = diag_count(k->x->c);
  const trace_want only = {.kinds = 1 << TRACE_STEP};
  trace t = {0};
  trace_read_about about = {0};
  reading x = *k->x;
  arena *tmp = arena_new();
  x.in = input_open(x.c, x.path);
  x.a = tmp, x.want = &only, x.t = &t, x.about = &about;
  if (!x.in) return arena_free(tmp), false;
  kineto first = {.x = &x, .tmp = tmp, .pid = -1};
  *vec_push(tmp, &t.processes) = (trace_process){.pid = -1};
  first.s = scan_new(tmp, x.in);
  scan_mark(first.s);
  kineto_document(&first);
  input_close(x.in);
  diag_truncate(x.c, told); // the next reading tells the same
  step_start *step = NEWN(tmp, step_start, t.n + 1);
  u32 n = 0;
  for (u32 e = 0; e < t.n; e++)
    if (t.is[e] == TRACE_STEP && t.step[e] != TRACE_NONE)
      step[n++] = (step_start){t.step[e], first.at_ns.v[e]};
  put_windows(k, step, n);
  arena_free(tmp);
  return true;
}

// ---- what is in them --------------------------------------------------------------------------------------
static bool may_be_launched(const kineto *k, i64 correlation) {
  return !k->correlated || correlation == ABSENT || kineto_call_of(k, &k->launched, correlation);
}

bool kineto_inside(const kineto *k, i64 ns) {
  bool in = !k->windows.n;
  for (u32 i = 0; i < k->windows.n && !in; i++) in = ns >= k->windows.v[i].from && ns <= k->windows.v[i].to;
  return in;
}

bool kineto_outside(const kineto *k, kineto_side side, i64 from_ns, i64 to_ns, i64 correlation) {
  for (u32 i = 0; i < k->windows.n; i++) {
    const kineto_window *w = &k->windows.v[i];
    const i64 next = i + 1 < k->windows.n ? k->windows.v[i + 1].from : INT64_MAX;
    if (k->again) { // what was not taken before
      if (side == KINETO_DEVICE && from_ns > w->late && from_ns < next)
        return !may_be_launched(k, correlation);
    } else if (from_ns <= (side == KINETO_DEVICE ? w->late : w->to) &&
               to_ns >= (side == KINETO_CALL ? w->early : w->from)) {
      return false;
    }
  }
  return true;
}

// Launched by a call of another step, or not known by whom and not started in a window.
u32 kineto_mark_outside(kineto *k, bool *gone) {
  u32 n = 0;
  if (!k->windows.n) return 0;
  const hmap calls = kineto_calls_by_id(k);
  for (u32 i = 0; i < k->work.n; i++) {
    const kineto_work *w = &k->work.v[i];
    const kineto_call *c = kineto_call_of(k, &calls, w->correlation);
    if (gone[w->event - k->first] || kineto_inside(k, c ? c->start_ns : kineto_ns(k, w->event))) continue;
    gone[w->event - k->first] = true;
    n++;
  }
  return n;
}

// ---- what starts late -------------------------------------------------------------------------------------
// What launches, by its name in all runtimes: cudaLaunchKernel, hipExtModuleLaunchKernel, cuMemcpyAsync, hipMemsetAsync.
static bool may_launch(const char *name) {
  return strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset");
}

// Is there a call whose work was not seen, of a name of which others have launched or that says so itself? A device may
// be so far behind that no work of the window was seen at all.
static bool something_is_missing(kineto *k) {
  const trace *t = k->x->t;
  bool *launches = ZNEWN(k->tmp, bool, t->names.n + 1), *seen = ZNEWN(k->tmp, bool, k->calls.n + 1);
  if (!k->correlated) return k->flows.n;
  for (u32 i = 0; i < t->names.n; i++) launches[i] = may_launch(sym_str(k->x->c, t->names.v[i]));
  for (u32 i = 0; i < k->work.n; i++) {
    const kineto_call *c = kineto_call_of(k, &k->launched, k->work.v[i].correlation);
    if (!c) continue;
    seen[c - k->calls.v] = true;
    if (c->event != TRACE_NONE) launches[t->name[c->event]] = true;
  }
  for (u32 i = 0; i < k->calls.n; i++) {
    const kineto_call *c = &k->calls.v[i];
    if (!seen[i] && c->correlation != ABSENT && kineto_inside(k, c->start_ns) &&
        (c->event == TRACE_NONE || launches[t->name[c->event]]))
      return true;
  }
  return false;
}

bool kineto_read_late(kineto *k) {
  bool ends = false;
  for (u32 i = 0; i < k->windows.n; i++) ends |= k->windows.v[i].late < INT64_MAX;
  k->launched = kineto_calls_by_id(k);
  if (!ends || !something_is_missing(k)) return true;
  const u32 told = diag_count(k->x->c);
  const u64 odd = k->odd;
  const trace_read_about about = *k->x->about;
  input *in = input_open(k->x->c, k->x->path);
  if (!in) return false;
  scan *first = k->s;
  k->s = scan_new(k->tmp, in), k->again = true;
  scan_mark(k->s);
  kineto_document(k);
  k->s = first, k->again = false, k->odd = odd;
  *k->x->about = about;
  diag_truncate(k->x->c, told);
  input_close(in);
  return true;
}
