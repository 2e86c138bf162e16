// mxnet.c - the profiler of MXNet, 0.9 to 1.9: profile.json.
//
// A process of the file is a device ("gpu/0", "cpu/0", "cpu pinned/"), by its number in a list of all that there may
// be, or a category ("operator", "MXNET_C_API", "Custom Operator"). Operators are pairs of B and E; what the user or the
// engine marks as tasks is pairs of b and e, operators among them a second time. On a GPU the engine waits for an
// operator before its end is written, so its time is the device's. Not the counters of memory.
#include "trace/chrome.h"

bool trace_knows_mxnet(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  return *p == '{' && strstr(p, "\"traceEvents\"") &&
         (chrome_start_has(p, "\"name\"", "cpu/0", true) || chrome_start_has(p, "\"cat\"", "MXNET_", true));
}

// Copies between devices, also those of a parameter store.
static bool moves(const char *name) {
  static const char *const words[] = {"Copy", "_copyto", "KVStore"};
  for (u32 k = 0; k < COUNT_OF(words); k++)
    if (!strncmp(name, words[k], strlen(words[k]))) return true;
  return false;
}

static void put_event(chrome *k, const chrome_event *e, u32 process) {
  ctx *c = k->x->c;
  const chrome_track *t = &k->tracks.v[e->track];
  i64 gpu = -1, thread = -1;
  const bool device = chrome_number_after(sym_str(c, t->process), "gpu/", &gpu);
  if (!chrome_number(sym_str(c, t->tid), &thread)) thread = -1;
  const bool copies = device && moves(sym_str(c, e->name));
  const trace_is is = e->phase != 'X' || t->async ? TRACE_NOTE
                      : copies                    ? TRACE_COPY
                      : device                    ? TRACE_KERNEL
                                                  : TRACE_OP;
  const u32 n = chrome_put(k, e, is, process, device, gpu, thread);
  if (n != TRACE_NONE && device) k->x->t->lanes.v[k->x->t->lane[n]].name = t->process;
}

bool trace_read_mxnet(reading *x) {
  chrome k = {.x = x, .tmp = arena_new()};
  const u32 process = x->t->processes.n;
  const bool ok = chrome_read(&k);
  if (ok)
    *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1, .base_ns = k.base_ns};
  for (u32 i = 0; ok && i < k.events.n; i++) put_event(&k, &k.events.v[i], process);
  arena_free(k.tmp);
  return ok;
}
