// horovod.c - Horovod's timeline: what the coordinator knows of every tensor, from its negotiation to its end.
//
// The file is an array that is never closed. A "process" is a tensor; what is done with it nests: B and E events. While
// it is negotiated every rank that is ready ticks: an event whose name is the rank.
//
// Idea: one lane for a tensor. Negotiation and operation are operators with their phases inside; a tick is a note.
#include "trace/chrome.h"

bool trace_knows_horovod(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  if (*p != '[' || strstr(start, "\"traceEvents\"")) return false;
  return strstr(start, "NEGOTIATE_") || strstr(start, "CYCLE_START") || strstr(start, "HorovodAllreduce");
}

// The operation that a phase of that name is: "ALLREDUCE", "NEGOTIATE_ALLGATHER"; NULL: none.
static const char *op_of(const char *name) {
  static const struct {
    const char *theirs, *op;
  } ops[] = {{"ALLREDUCE", "all_reduce"}, {"ADASUM", "all_reduce"},   {"ALLGATHER", "all_gather"},
             {"BROADCAST", "broadcast"},  {"ALLTOALL", "all_to_all"}, {"REDUCESCATTER", "reduce_scatter"}};
  for (size_t k = 0; k < COUNT_OF(ops); k++)
    if (!strcmp(name, ops[k].theirs)) return ops[k].op;
  return NULL;
}

static void put_event(chrome *k, const chrome_event *e, u32 process) {
  reading *x = k->x;
  const chrome_track *t = &k->tracks.v[e->track];
  const bool tick = e->phase == 'i' || e->dur_ps == 0;
  i64 id;
  if (!chrome_number(sym_str(x->c, t->pid), &id)) id = -1;
  const u32 n = chrome_put(k, e, tick ? TRACE_NOTE : TRACE_OP, process, false, -1, id);
  if (n == TRACE_NONE) return;
  x->t->lanes.v[x->t->lane[n]].name = t->process;
  const char *op = op_of(sym_str(x->c, e->name));
  if (!op) return;
  trace_add_comm(x->a, x->t, n, trace_comm_of(sym_of(x->c, op)));
}

bool trace_read_horovod(reading *x) {
  chrome k = {.x = x, .tmp = arena_new(), .endless = true};
  const u32 process = x->t->processes.n;
  const bool ok = chrome_read(&k);
  if (ok)
    *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1, .base_ns = k.base_ns};
  for (u32 i = 0; ok && i < k.events.n; i++) put_event(&k, &k.events.v[i], process);
  arena_free(k.tmp);
  return ok;
}
