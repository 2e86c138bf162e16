// profile.c - all events of programs that a database does not have: measured, and put there as soon as they are known.
#include "profile/internal.h"

typedef struct {
  profile_events x;
  u32 *of; // by event of it: of the session's
} subject;
typedef struct {
  const profile_event *e; // of the first program that has it, while that is at hand
  const char *key;
  u64 times; // that a rank runs it in a step of any program, at most
  bool wanted;
} wanting;
struct profile_session {
  const profile_job *j;
  ctx *c;
  arena *a;
  const machine *m;
  const profile_opts *o;
  profile_report *out;
  event_db *db; // of process 0
  hmap by_key;
  VEC(wanting) v; // the events of all programs so far
  u32 nbefore;    // of programs that are done
  double step_ns; // the shortest part of a step that this process ran; 0: none yet
  progress bar;
  u64 done;
};

static const char *machine_name(const machine *m) { return sym_str(m->c, m->name); }

// ---- what is missing ----------------------------------------------------------------------------------------
static u32 number_of(profile_session *p, const profile_event *e) {
  const u64 h = hash_bytes(e->key, strlen(e->key), 0);
  for (u32 it = 0, k; hmap_next(&p->by_key, h, &it, &k);)
    if (!strcmp(p->v.v[k].key, e->key)) {
      p->v.v[k].times = MAX(p->v.v[k].times, e->times);
      return k;
    }
  hmap_add(p->a, &p->by_key, h, p->v.n);
  *vec_push(p->a, &p->v) = (wanting){.e = e, .key = e->key, .times = e->times};
  return p->v.n - 1;
}

static bool add_subject(profile_session *p, const prog *program, subject *s) {
  if (!profile_events_of(&s->x, p->c, p->a, program, p->m)) return false;
  s->of = NEWN(p->a, u32, s->x.v.n + 1);
  for (u32 k = 0; k < s->x.v.n; k++) s->of[k] = number_of(p, &s->x.v.v[k]);
  return true;
}

// Process 0 looks into the database, all hear what is missing.
static bool find_wanted(profile_session *p) {
  measured_event *row = NULL;
  const u32 first = p->nbefore, count = p->v.n - first;
  u32 n = 0, nwanted = 0;
  bool *wanted = ZNEWN(p->a, bool, count + 1);
  if (!p->j->link.rank) {
    if (!event_db_get(p->db, p->a, machine_name(p->m), p->o->versions, &row, &n)) return false;
    machine_events has = {.n = n, .row = row};
    for (u32 k = 0; k < n; k++) hmap_add(p->a, &has.by_key, hash_bytes(row[k].key, strlen(row[k].key), 0), k);
    for (u32 k = 0; k < count; k++) wanted[k] = !machine_events_find(&has, p->v.v[first + k].key);
  }
  if (!profile_tell(p->j, wanted, count)) return together_lost(p->c);
  for (u32 k = 0; k < count; k++) nwanted += p->v.v[first + k].wanted = wanted[k];
  p->out->nevents += count, p->out->nknown += count - nwanted;
  p->done = 0;
  if (!p->j->link.rank) progress_begin(&p->bar, "measuring", nwanted);
  return true;
}

static measured_event row_of(const char *key, const profile_figure *x, double factor, event_source source) {
  return (measured_event){.key = key,
                          .ps = (i64)(x->median * factor * 1e3 + 0.5), // of nanoseconds
                          .spread = x->spread,
                          .count = x->count,
                          .source = source};
}

static void advance(profile_session *p, u32 n) {
  p->done += n;
  if (!p->j->link.rank) progress_step(&p->bar, p->done);
}

// ---- computation ----------------------------------------------------------------------------------------------
static bool is_wanted(const profile_session *p, const subject *s, u32 event) {
  return p->v.v[s->of[event]].wanted && !s->x.v.v[event].e.where;
}

// The ranks of a program whose parts have what is missing, as many as there are processes; how many events these are.
static u32 ranks_for(const profile_session *p, const subject *s, u32 *rank, u32 *nranks) {
  u32 events = 0;
  *nranks = 0;
  for (u32 k = 0; k < s->x.v.n; k++) {
    u32 q = 0;
    if (!is_wanted(p, s, k)) continue;
    while (q < *nranks && rank[q] != s->x.v.v[k].rank) q++;
    if (q == *nranks && q < p->j->nprocs) rank[(*nranks)++] = s->x.v.v[k].rank;
    events += q < *nranks;
  }
  return events;
}

static bool walk_subject(profile_session *p, subject *s, const u32 *rank, u32 n) {
  const u32 events = s->x.v.n;
  profile_figure *of = ZNEWN(p->a, profile_figure, events + 1);
  bool *wanted = NEWN(p->a, bool, events + 1);
  for (u32 k = 0; k < events; k++) wanted[k] = is_wanted(p, s, k);
  double step_ns = 0;
  if (!walk_ranks(p->j, p->c, &s->x, rank, wanted, of, &step_ns)) return false;
  if (!p->step_ns || step_ns < p->step_ns) p->step_ns = step_ns;
  u8 *has = ZNEWN(p->a, u8, events + 1);
  for (u32 k = 0; k < events; k++) has[k] = of[k].count > 0;
  if (!profile_tell(p->j, has, events)) return together_lost(p->c);
  measured_event *row = NEWN(p->a, measured_event, events + 1);
  u32 nrows = 0;
  for (u32 k = 0; k < events; k++) {
    const profile_event *e = &s->x.v.v[k];
    if (!wanted[k]) continue;
    if (has[k]) row[nrows++] = row_of(e->key, &of[k], 1, EVENT_MEASURED);
    bool ran = has[k];
    for (u32 q = 0; q < n; q++) ran |= rank[q] == e->rank;
    p->v.v[s->of[k]].wanted = !ran;
    if (ran && !has[k]) p->out->nleft++;
  }
  p->out->nmeasured += nrows;
  advance(p, nrows);
  return p->j->link.rank || event_db_put(p->db, machine_name(p->m), p->o->versions, row, nrows);
}

// The program of which most is missing, until nothing is: what it has, others need not run for. A process that is left over runs
// some part too, for the ranks of a real step have no idle neighbours.
static bool computations(profile_session *p, subject *s, u32 n) {
  u32 *rank = NEWN(p->a, u32, p->j->nprocs), *best = NEWN(p->a, u32, p->j->nprocs);
  for (;;) {
    subject *of = NULL;
    u32 most = 0, nbest = 0;
    for (u32 k = 0; k < n; k++) {
      u32 nranks;
      const u32 events = ranks_for(p, &s[k], rank, &nranks);
      if (events <= most) continue;
      of = &s[k], most = events, nbest = nranks;
      memcpy(best, rank, nranks * sizeof *rank);
    }
    if (!of) return true;
    for (u32 q = nbest; q < p->j->nprocs; q++) best[q] = best[q % nbest];
    if (!walk_subject(p, of, best, nbest)) return false;
  }
}

// ---- communication ----------------------------------------------------------------------------------------------
static const double PART = 0.002; // of a step, as well as what it spends in one event is to be known

static bool one_comm(profile_session *p, const wanting *w) {
  const profile_event *e = w->e;
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
  if (!comm_measure(p->j, p->c, &e->e, e->at, members, n, PART * p->step_ns / (double)MAX(w->times, 1), &got))
    return false;
  const bool scaled = e->e.where->n != n;
  p->out->nscaled += scaled, p->out->nmeasured += !scaled;
  if (p->j->link.rank) return true;
  const measured_event row = row_of(e->key, &got, scaled ? profile_ring(e->e.op, n, e->e.where->n) : 1,
                                    scaled ? EVENT_SCALED : EVENT_MEASURED);
  return event_db_put(p->db, machine_name(p->m), p->o->versions, &row, 1);
}

static bool communications(profile_session *p) {
  for (u32 k = p->nbefore; k < p->v.n; k++) {
    wanting *w = &p->v.v[k];
    if (!w->wanted) continue;
    if (!one_comm(p, w)) return false;
    w->wanted = false;
    advance(p, 1);
  }
  return true;
}

// ---- a job --------------------------------------------------------------------------------------------------
profile_session *profile_begin(const profile_job *j, ctx *c, arena *a, const machine *m,
                               const profile_opts *o, profile_report *out) {
  profile_session *p = ZNEWN(a, profile_session, 1);
  *p = (profile_session){.j = j, .c = c, .a = a, .m = m, .o = o, .out = out};
  *out = (profile_report){.machine = machine_name(m), .versions = o->versions, .path = o->path};
  if (!j->link.rank && !(p->db = event_db_open(c, a, o->path, true))) return NULL;
  return p;
}

bool profile_programs(profile_session *p, const prog *const *of, u32 n) {
  const u64 begin = clock_ns();
  subject *s = ZNEWN(p->a, subject, n + 1);
  bool ok = true;
  p->nbefore = p->v.n;
  for (u32 k = 0; k < n && ok; k++) ok = add_subject(p, of[k], &s[k]);
  ok = ok && find_wanted(p) && computations(p, s, n) && communications(p);
  if (!p->j->link.rank) progress_end(&p->bar);
  p->out->nprograms += n;
  p->out->seconds += (double)(clock_ns() - begin) * 1e-9;
  return ok;
}

void profile_end(profile_session *p) {
  if (p) event_db_close(p->db);
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
