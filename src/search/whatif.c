// whatif.c - other machines: the same search with more memory, and with twice the devices.
#include "search/internal.h"

static void again(ctx *c, arena *keep, const prog *src, const machine *m, const cost_opts *costs,
                  const search_opts *o, search_what_if *out) {
  arena *a = arena_new();
  search_result r;
  search_opts one = *o;
  const u32 before = diag_count(c);
  one.top = 1, one.ranks = out->ranks, one.memory_bytes = out->memory_bytes;
  out->found = search_run(c, a, src, m, costs, &one, &r);
  if (out->found) {
    out->s = r.point[0].s;
    out->time_ps = r.point[0].time_ps, out->peak_bytes = r.point[0].peak_bytes;
  }
  const char *why = r.nreasons ? r.reason[0].why : diag_count(c) > before ? diag_get(c, before).message : "";
  if (!out->found) out->why = arena_strdup(keep, why);
  diag_truncate(c, before);
  arena_free(a);
}

u32 search_what_ifs(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, search_what_if out[WHAT_IF_MOST]) {
  static const struct {
    const char *what;
    u32 percent;
  } more[] = {{"memory limit +25 %", 25}, {"memory limit +50 %", 50}};
  const u32 ranks = o->ranks ? o->ranks : m->nranks;
  u32 n = 0;
  for (u32 i = 0; i < COUNT_OF(more) && r->memory_bytes > 0; i++) {
    const i64 bytes = (i64)((double)r->memory_bytes * (1 + more[i].percent / 100.0));
    out[n] = (search_what_if){.what = more[i].what, .ranks = ranks, .memory_bytes = bytes};
    again(c, a, src, m, costs, o, &out[n++]);
  }
  const machine *twice = 2 * (u64)ranks <= m->nranks ? m : machine_twice(a, m);
  if (!twice) return n;
  out[n] = (search_what_if){.what = "twice the devices", .ranks = 2 * ranks, .memory_bytes = r->memory_bytes};
  again(c, a, src, twice, costs, o, &out[n++]);
  return n;
}
