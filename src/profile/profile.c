// profile.c - all events of a program that a database does not have: measured, and put there as soon as they are known.
#include "profile/internal.h"

typedef struct {
  const profile_job *j;
  ctx *c;
  arena *a;
  profile_events x;
  const machine *m;
  const profile_opts *o;
  event_db *db; // of process 0
  hmap *seen;   // events of the programs before
  bool *wanted; // by event
  u32 nwanted;
  progress bar;
  u64 done;
  profile_report *out;
} profiling;

static const char *machine_name(const machine *m) { return sym_str(m->c, m->name); }

// Process 0 looks into the database, all hear what is missing.
static bool find_wanted(profiling *p) {
  measured_event *row = NULL;
  u32 n = 0;
  p->wanted = ZNEWN(p->a, bool, p->x.v.n + 1);
  if (!p->j->link.rank) {
    p->db = event_db_open(p->c, p->a, p->o->path, true);
    if (!p->db || !event_db_get(p->db, p->a, machine_name(p->m), p->o->versions, &row, &n)) return false;
    machine_events has = {.n = n, .row = row};
    for (u32 k = 0; k < n; k++) hmap_add(p->a, &has.by_key, hash_bytes(row[k].key, strlen(row[k].key), 0), k);
    for (u32 k = 0; k < p->x.v.n; k++) p->wanted[k] = !machine_events_find(&has, p->x.v.v[k].key);
  }
  if (!together_tell(p->j, p->wanted, p->x.v.n)) return together_lost(p->c);
  for (u32 k = 0; k < p->x.v.n; k++) p->nwanted += p->wanted[k];
  for (u32 k = 0; k < p->x.v.n; k++) {
    const u64 h = hash_bytes(p->x.v.v[k].key, strlen(p->x.v.v[k].key), 4);
    if (hmap_get(p->seen, h)) continue; // of a program before this one
    hmap_add(p->a, p->seen, h, 1);
    p->out->nevents++;
    p->out->nknown += !p->wanted[k];
  }
  return true;
}

static measured_event row_of(const char *key, const profile_figure *x, double factor, event_source source) {
  return (measured_event){.key = key,
                          .ps = (i64)(x->median * factor * 1e3 + 0.5), // of nanoseconds
                          .spread = x->spread,
                          .count = x->count,
                          .source = source};
}

static void advance(profiling *p, u32 n) {
  p->done += n;
  if (!p->j->link.rank) progress_step(&p->bar, p->done);
}

// ---- computation ----------------------------------------------------------------------------------------------
// The ranks whose parts have what is missing, as many a round as there are processes; who is left over runs some part
// too, for the ranks of a real step have no idle neighbours.
static bool compute_round(profiling *p, bool *left) {
  u32 *rank = NEWN(p->a, u32, p->j->nprocs), n = 0;
  *left = false;
  for (u32 k = 0; k < p->x.v.n; k++) {
    const profile_event *e = &p->x.v.v[k];
    u32 q = 0;
    if (!p->wanted[k] || e->e.where) continue;
    while (q < n && rank[q] != e->rank) q++;
    if (q == n && n < p->j->nprocs) rank[n++] = e->rank;
  }
  if (!n) return true;
  for (u32 q = n; q < p->j->nprocs; q++) rank[q] = rank[q % n];
  const u32 events = p->x.v.n;
  profile_figure *of = ZNEWN(p->a, profile_figure, events + 1);
  if (!walk_ranks(p->j, p->c, &p->x, rank, of, &p->bar)) return false;
  u8 *has = ZNEWN(p->a, u8, events + 1);
  for (u32 k = 0; k < events; k++) has[k] = of[k].count > 0;
  if (!together_tell(p->j, has, events)) return together_lost(p->c);
  measured_event *row = NEWN(p->a, measured_event, events + 1);
  u32 nrows = 0;
  for (u32 k = 0; k < events; k++) {
    const profile_event *e = &p->x.v.v[k];
    if (!p->wanted[k] || e->e.where) continue;
    if (has[k]) row[nrows++] = row_of(e->key, &of[k], 1, EVENT_MEASURED);
    bool ran = has[k];
    for (u32 q = 0; q < n; q++) ran |= rank[q] == e->rank;
    p->wanted[k] = !ran;
    if (ran && !has[k]) p->out->nleft++;
  }
  p->out->nmeasured += nrows;
  advance(p, nrows);
  *left = true;
  return p->j->link.rank || event_db_put(p->db, machine_name(p->m), p->o->versions, row, nrows);
}

// ---- communication ----------------------------------------------------------------------------------------------
static bool one_comm(profiling *p, const profile_event *e) {
  const u32 most = e->e.op == OP_send ? PROFILE_SEND_RANKS : PROFILE_GROUP_RANKS;
  const u32 n = MIN(MIN(e->e.where->n, most), p->j->nprocs);
  u32 *members = NEWN(p->a, u32, n + 1);
  profile_figure got;
  if (n < 2) {
    p->out->nleft++;
    return true;
  }
  bool own = e->e.where->n == n; // its own ranks, where they are there
  for (u32 k = 0; k < n; k++) own = own && k < e->nmembers && e->members[k] < p->j->nprocs;
  for (u32 k = 0; k < n; k++) members[k] = own ? e->members[k] : k;
  if (!comm_measure(p->j, p->c, &e->e, e->at, members, n, &got)) return false;
  const bool scaled = e->e.where->n != n;
  p->out->nscaled += scaled, p->out->nmeasured += !scaled;
  if (p->j->link.rank) return true;
  const measured_event row = row_of(e->key, &got, scaled ? profile_ring(e->e.op, n, e->e.where->n) : 1,
                                    scaled ? EVENT_SCALED : EVENT_MEASURED);
  return event_db_put(p->db, machine_name(p->m), p->o->versions, &row, 1);
}

static bool comms(profiling *p) {
  for (u32 k = 0; k < p->x.v.n; k++) {
    if (!p->wanted[k] || !p->x.v.v[k].e.where) continue;
    if (!one_comm(p, &p->x.v.v[k])) return false;
    advance(p, 1);
  }
  return true;
}

static bool one_program(profiling *x, const prog *p) {
  if (!profile_events_of(&x->x, x->c, x->a, p, x->m)) return false;
  bool ok = find_wanted(x), left = true;
  if (!x->j->link.rank) progress_begin(&x->bar, "measuring", x->nwanted);
  while (ok && left) ok = compute_round(x, &left);
  ok = ok && comms(x);
  if (!x->j->link.rank) progress_end(&x->bar);
  event_db_close(x->db);
  return ok;
}

bool profile_programs(const profile_job *j, ctx *c, arena *a, const prog *const *p, u32 n, const machine *m,
                      const profile_opts *o, profile_report *out) {
  hmap seen = {0};
  const u64 begin = clock_ns();
  bool ok = true;
  *out =
      (profile_report){.machine = machine_name(m), .versions = o->versions, .path = o->path, .nprograms = n};
  for (u32 k = 0; k < n && ok; k++) {
    profiling x = {.j = j, .c = c, .a = a, .m = m, .o = o, .out = out, .seen = &seen};
    ok = one_program(&x, p[k]);
  }
  out->seconds = (double)(clock_ns() - begin) * 1e-9;
  return ok;
}

bool profile_fit(ctx *c, arena *a, const machine *m, const char *path, profile_report *out) {
  measured_event *row;
  event_fit *fit;
  u32 n;
  event_db *db = event_db_open(c, a, path, true);
  bool ok = db && event_db_get(db, a, machine_name(m), NULL, &row, &n);
  if (ok) {
    out->fits = true;
    out->nfits = cost_fit(c, a, row, n, &fit, &out->nthin);
    out->fit = fit;
    ok = event_db_put_fits(db, machine_name(m), fit, out->nfits);
  }
  event_db_close(db);
  return ok;
}
