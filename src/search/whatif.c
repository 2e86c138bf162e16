// whatif.c - the same search on other machines: with more memory, with twice the devices; and with choices that it left out.
#include "search/internal.h"

// May it hold somewhere? The search may have been told that it cannot.
static bool may_hold(const search_opts *o, u64 needs) {
  bool may = o->train || !(needs & CHOICE_TRAINING);
  for (u32 k = 0; may && k < CHOICE_COUNT; k++) {
    const choice_set *x = &o->space.of[k];
    bool many = !x->said || x->all;
    for (u32 j = 0; j < x->n; j++) many |= x->v[j].n > 1;
    may = many || !(needs >> k & 1);
  }
  return may;
}

// Of a set: may one of the words that it has not by default be chosen?
static bool may_be_other(const search_opts *o, choice_id id) {
  const choice_row *row = choice_get(id);
  bool may = !row->where && may_hold(o, row->needs);
  for (u32 k = 0; row->where && row->words[k]; k++)
    may |= !(choice_default(id).n >> k & 1) && may_hold(o, row->where[k]);
  return may;
}

u32 search_left_out(const search_opts *o, u32 ranks, bool several, choice_id out[CHOICE_COUNT]) {
  u32 n = 0;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const choice_row *row = choice_get((choice_id)i);
    if (ranks == 1 && search_needs_axis((choice_id)i)) continue;
    const bool other = *row->search == '?' && !o->space.of[i].said && !(row->search[1] && several);
    if (i == CHOICE_attention && !o->fusible) continue;
    if (other && may_be_other(o, (choice_id)i)) out[n++] = (choice_id)i;
  }
  return n;
}

// ---- searches -----------------------------------------------------------------------------------------------
static void again(ctx *c, arena *keep, const prog *src, const machine *m, const cost_opts *costs,
                  const search_opts *o, search_what_if *out) {
  arena *a = arena_new();
  search_result r;
  search_opts one = *o;
  const u32 before = diag_count(c);
  one.top = 1, one.plain = true, one.memory_bytes = out->memory_bytes;
  one.ranks = o->ranks ? out->ranks : 0; // 0: all, or without slow ones
  out->found = search_run(c, a, src, m, costs, &one, &r);
  if (out->found) {
    out->s = search_strategy(&r.point[0]);
    out->time_ps = r.point[0].time_ps, out->alone_ps = r.point[0].alone_ps;
    out->peak_bytes = r.point[0].peak_bytes;
  }
  const char *why = r.nreasons ? r.reason[0].why : diag_count(c) > before ? diag_get(c, before).message : "";
  if (!out->found) out->why = arena_strdup(keep, why);
  diag_truncate(c, before);
  arena_free(a);
}

// The plan that there was leaves out what is new.
static void keep_if_faster(const search_result *r, search_what_if *out) {
  const search_point *was = &r->point[0];
  if (!r->nfit || !out->found || out->time_ps <= was->time_ps) return;
  out->s = search_strategy(was), out->time_ps = was->time_ps, out->alone_ps = was->alone_ps,
  out->peak_bytes = was->peak_bytes;
}

// The same search without the nodes of one kind of device after the other.
static u32 fewer_kinds(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                       const search_opts *o, search_what_if *out, u32 most) {
  u32 n = 0;
  for (u32 k = 0; k < m->nkinds && n < most; k++) {
    const machine *less = machine_without(a, m, k);
    if (!less || less->nranks == m->nranks) continue;
    out[n] = (search_what_if){.what = arena_printf(a, "without %s", sym_str(m->c, m->kind[k].name)),
                              .ranks = less->nranks,
                              .memory_bytes = o->memory_bytes};
    again(c, a, src, less, costs, o, &out[n]);
    for (u32 r = 0; !o->memory_bytes && r < less->nranks; r++)
      out[n].memory_bytes = MAX(out[n].memory_bytes, machine_kind_of(less, r)->usable_bytes);
    n++;
  }
  return n;
}

// Each by itself, as together they are many plans; but chunks with schedules that have some.
static u32 left_out(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, u32 ranks, search_what_if *out, u32 most) {
  choice_id id[CHOICE_COUNT];
  const u32 all = search_left_out(o, ranks, r->nkinds > 0, id);
  const choice_set any = {.said = true, .all = true};
  u32 n = 0;
  bool chunks = false;
  for (u32 k = 0; k < all; k++) chunks |= id[k] == CHOICE_v;
  for (u32 k = 0; k < all && n < most; k++) {
    const bool both = chunks && id[k] == CHOICE_schedule;
    search_opts with = *o;
    if (id[k] == CHOICE_v && !o->space.of[CHOICE_schedule].said) continue;
    with.space.of[id[k]] = any;
    if (both) with.space.of[CHOICE_v] = any;
    out[n] = (search_what_if){.what = arena_printf(a, "%s%s=*", both ? "v=* " : "", choice_get(id[k])->name),
                              .ranks = ranks,
                              .memory_bytes = o->memory_bytes};
    again(c, a, src, m, costs, &with, &out[n]);
    keep_if_faster(r, &out[n]);
    out[n++].memory_bytes = r->memory_bytes;
  }
  return n;
}

u32 search_what_ifs(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, search_what_if out[WHAT_IF_MOST]) {
  static const struct {
    const char *what;
    u32 percent;
  } more[] = {{"memory limit +25 %", 25}, {"memory limit +50 %", 50}};
  const u32 ranks = o->ranks ? o->ranks : m->nranks;
  const bool own = !o->memory_bytes; // every device has its own limit
  u32 n = left_out(c, a, src, m, costs, o, r, ranks, out, CHOICE_COUNT);
  for (u32 i = 0; i < COUNT_OF(more) && r->memory_bytes > 0; i++) {
    const i64 bytes = (i64)((double)r->memory_bytes * (1 + more[i].percent / 100.0));
    const machine *larger = own ? machine_more_memory(a, m, more[i].percent) : m;
    out[n] = (search_what_if){.what = more[i].what, .ranks = ranks, .memory_bytes = own ? 0 : bytes};
    again(c, a, src, larger, costs, o, &out[n]);
    out[n++].memory_bytes = bytes;
  }
  const rank_window in = space_within(m, o, ranks); // of a machine twice as large others would be skipped
  const bool has = (u64)in.first + in.n + ranks <= m->nranks;
  const machine *twice = has ? m : in.first ? NULL : machine_twice(a, m);
  if (twice) {
    out[n] =
        (search_what_if){.what = "twice the devices", .ranks = 2 * ranks, .memory_bytes = o->memory_bytes};
    again(c, a, src, twice, costs, o, &out[n]);
    keep_if_faster(r, &out[n]);
    out[n++].memory_bytes = r->memory_bytes;
  }
  if (ranks == m->nranks) n += fewer_kinds(c, a, src, m, costs, o, out + n, WHAT_IF_MOST - n);
  return n;
}
