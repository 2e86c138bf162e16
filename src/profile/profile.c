// profile.c - all events of programs that a database does not have: measured, and put there as soon as they are known.
#include "profile/internal.h"
#include <math.h>

typedef struct {
  profile_events x;
  u32 *of; // by event of it: of the session's
  u32 ranks;
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
  hmap links;     // by processes: whether what joins them is slow
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

// How many take part, of which a program with `skip` has fewer than its last one says.
static u32 ranks_of(const profile_session *p, const space *sp) {
  bool *takes = ZNEWN(p->a, bool, mesh_ranks(sp) + 1);
  u32 n = 0;
  for (u32 k = 1; k <= mesh_count(sp); k++) {
    const mesh_info *m = mesh_get(sp, (mesh){k});
    for (u32 i = 0; i < m->nranks; i++) {
      const u32 rank = m->ranks ? m->ranks[i] : m->first + i;
      n += !takes[rank], takes[rank] = true;
    }
  }
  return n;
}

static bool add_subject(profile_session *p, const prog *program, subject *s) {
  if (!profile_events_of(&s->x, p->c, p->a, program, p->m)) return false;
  s->of = NEWN(p->a, u32, s->x.v.n + 1), s->ranks = ranks_of(p, program->sp);
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

// A rank's part of a program, which a process runs.
typedef struct {
  subject *s;
  u32 rank;
} part;

// The ranks of a program whose parts have what is missing and not taken, up to `most`; how many events these are.
static u32 ranks_for(const profile_session *p, const subject *s, const bool *taken, u32 most, u32 *rank,
                     u32 *nranks) {
  u32 events = 0;
  *nranks = 0;
  for (u32 k = 0; k < s->x.v.n; k++) {
    u32 q = 0;
    if (!is_wanted(p, s, k) || taken[s->of[k]]) continue;
    while (q < *nranks && rank[q] != s->x.v.v[k].rank) q++;
    if (q == *nranks && q < most) rank[(*nranks)++] = s->x.v.v[k].rank;
    events += q < *nranks;
  }
  return events;
}

// A part for every process: of the program of which most is missing, then of the one of which most is missing besides. A process
// that is left over runs some part too, for the ranks of a real step have no idle neighbours. False: nothing is missing.
static bool deal(const profile_session *p, subject *s, u32 n, part *to) {
  const u32 nprocs = p->j->nprocs;
  bool *taken = ZNEWN(p->a, bool, p->v.n + 1);
  u32 *rank = NEWN(p->a, u32, nprocs), have = 0;
  while (have < nprocs) {
    subject *of = NULL;
    u32 most = 0, nranks;
    for (u32 k = 0; k < n; k++) {
      const u32 events = ranks_for(p, &s[k], taken, nprocs - have, rank, &nranks);
      if (events > most) of = &s[k], most = events;
    }
    if (!of) break;
    ranks_for(p, of, taken, nprocs - have, rank, &nranks);
    for (u32 k = 0; k < of->x.v.n; k++) taken[of->of[k]] |= is_wanted(p, of, k);
    for (u32 q = 0; q < nranks; q++) to[have++] = (part){of, rank[q]};
  }
  for (u32 q = have; have && q < nprocs; q++) to[q] = to[q % have];
  return have;
}

// Of process 0: what the processes' events took, by number of the session; count 0: none ran it.
static void settle_parts(const profile_session *p, const part *of, const double *all, u32 most,
                         profile_figure *out) {
  double *v = NEWN(p->a, double, p->j->nprocs *WALK_MOST);
  u32 **at = NEWN(p->a, u32 *, p->j->nprocs); // by process: an event's number -> its own + 1
  for (u32 q = 0; q < p->j->nprocs; q++) {
    at[q] = ZNEWN(p->a, u32, p->v.n + 1);
    for (u32 k = 0; k < of[q].s->x.v.n; k++) at[q][of[q].s->of[k]] = k + 1;
  }
  for (u32 e = 0; e < p->v.n; e++) {
    u32 n = 0;
    for (u32 q = 0; q < p->j->nprocs; q++)
      for (u32 step = 0; step < WALK_MOST && at[q][e]; step++) {
        const double x = all[((size_t)q * most + at[q][e] - 1) * WALK_MOST + step];
        if (!isnan(x)) v[n++] = x;
      }
    if (n) out[e] = profile_settle(v, n);
  }
}

static bool run_parts(profile_session *p, const part *of) {
  const profile_job *j = p->j;
  const part mine = of[j->link.rank];
  u32 most = 0, nrows = 0, program = 0;
  for (u32 q = 0; q < j->nprocs; q++) most = MAX(most, of[q].s->x.v.n);
  while (of[program].s != mine.s) program++;
  const size_t each = (size_t)most * WALK_MOST;
  bool *wanted = NEWN(p->a, bool, most + 1);
  double *own = ZNEWN(p->a, double, each), *by = NEWN(p->a, double, j->nprocs),
         *all = j->link.rank ? own : NEWN(p->a, double, each * j->nprocs), step_ns = 0;
  walk_steps steps;
  for (u32 k = 0; k < mine.s->x.v.n; k++) wanted[k] = is_wanted(p, mine.s, k);
  if (!walk_rank(j, p->c, &mine.s->x, mine.rank, wanted, own, &steps)) return false;
  if (!together_gather(j, j->nprocs, own, (u32)each, all)) return together_lost(p->c);
  profile_figure *got = ZNEWN(p->a, profile_figure, p->v.n + 1);
  if (!j->link.rank) settle_parts(p, of, all, most, got);
  if (!profile_tell(j, got, (i64)(p->v.n * sizeof *got))) return together_lost(p->c);
  for (u32 k = 0; k < mine.s->x.v.n; k++) step_ns += got[mine.s->of[k]].median * steps.count[k];
  if (step_ns > 0 && (!p->step_ns || step_ns < p->step_ns)) p->step_ns = step_ns;
  if (!slowest_of_all(j, p->a, &steps, step_ns, program, mine.s->ranks, by)) return together_lost(p->c);
  measured_event *row = NEWN(p->a, measured_event, p->v.n + 1);
  for (u32 q = 0; q < j->nprocs; q++)
    for (u32 k = 0; k < of[q].s->x.v.n; k++) {
      const profile_event *e = &of[q].s->x.v.v[k];
      const u32 at = of[q].s->of[k];
      if (!is_wanted(p, of[q].s, k) || (!got[at].count && e->rank != of[q].rank)) continue;
      if (got[at].count) row[nrows++] = row_of(e->key, &got[at], j->link.rank ? 1 : by[q], EVENT_MEASURED);
      p->out->nleft += !got[at].count;
      p->v.v[at].wanted = false;
    }
  p->out->nmeasured += nrows;
  advance(p, nrows);
  return j->link.rank || event_db_put(p->db, machine_name(p->m), p->o->versions, row, nrows);
}

static bool computations(profile_session *p, subject *s, u32 n) {
  part *of = NEWN(p->a, part, p->j->nprocs);
  while (deal(p, s, n, of))
    if (!run_parts(p, of)) return false;
  return true;
}

// ---- communication ----------------------------------------------------------------------------------------------
static const double PART = 0.003; // of a step, as well as what it spends in one event is to be known

// Asked once for every set of processes.
static bool link_is_slow(profile_session *p, const u32 *members, u32 n, bool *slow) {
  enum { FAST = 1, SLOW };
  const u64 key = hash_bytes(members, n * sizeof *members, n);
  const u32 known = hmap_get(&p->links, key);
  *slow = known == SLOW;
  if (known) return true;
  if (!comm_is_slow(p->j, p->c, members, n, slow)) return false;
  hmap_add(p->a, &p->links, key, *slow ? SLOW : FAST);
  return true;
}

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
  bool slow = false;
  if (!link_is_slow(p, members, n, &slow)) return false;
  if (!comm_measure(p->j, p->c, &e->e, e->at, members, n, PART * p->step_ns / (double)MAX(w->times, 1), slow,
                    &got))
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

// What is stored as times of the machine's devices is what cores take.
static void tell_processor(ctx *c, const machine *m) {
  if (machine_has_cores(m)) return;
  diag(c, W_PROCESSOR, (loc){0}, "devices of %s are no processor cores, and cores are what is measured here",
       machine_name(m));
  diag_hint(c, "`cores: 1` in the machine's file if they are, or --machine '1x2 cpu-core'; for GPUs `heddle "
               "export MODEL --to profile-pytorch` and --import");
}

// ---- a job --------------------------------------------------------------------------------------------------
profile_session *profile_begin(const profile_job *j, ctx *c, arena *a, const machine *m,
                               const profile_opts *o, profile_report *out) {
  profile_session *p = ZNEWN(a, profile_session, 1);
  *p = (profile_session){.j = j, .c = c, .a = a, .m = m, .o = o, .out = out};
  *out = (profile_report){.machine = machine_name(m), .versions = o->versions, .path = o->path};
  if (!j->link.rank && !(p->db = event_db_open(c, a, o->path, true))) return NULL;
  if (!j->link.rank) tell_processor(c, m);
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
