// info.c - what the recordings of a job are, and what is missing in them for answers to other questions. Not those.
#include "diagnose/diagnose.h"
#include <stdlib.h>

const char *number_list(arena *a, const u32 *number, u32 n) {
  enum { WORDS = 8 };
  strbuf b = {.a = a};
  u32 words = 0;
  for (u32 k = 0; k < n; words++) {
    u32 to = k;
    while (to + 1 < n && number[to + 1] == number[to] + 1) to++;
    if (words == WORDS) {
      sb_put(&b, ",..");
      break;
    }
    sb_fmt(&b, "%s%u", words ? "," : "", number[k]);
    if (to > k) sb_fmt(&b, "%s%u", to > k + 1 ? "-" : ",", number[to]);
    k = to + 1;
  }
  return sb_str(&b);
}

static clock_kind clock_of(i64 base_ns) {
  return trace_dated(base_ns) ? CLOCK_WORLD : base_ns > 0 ? CLOCK_HOST : CLOCK_NONE;
}

static void count_events(arena *tmp, const trace *t, file_info *x) {
  bool *has_lane = ZNEWN(tmp, bool, t->lanes.n + 1);
  x->first_ps = INT64_MAX, x->last_ps = 0, x->first_step = UINT32_MAX;
  for (u32 e = 0; e < t->n; e++) {
    const bool on_device = TRACE_ON_DEVICE >> t->is[e] & 1;
    x->device_events += on_device, x->launches += on_device && t->cause[e] != TRACE_NONE;
    if (on_device || t->is[e] == TRACE_OP || t->is[e] == TRACE_CALL) has_lane[t->lane[e]] = true;
    x->first_ps = MIN(x->first_ps, t->start_ps[e]);
    x->last_ps = MAX(x->last_ps, t->start_ps[e] + MAX(t->dur_ps[e], 0));
    if (t->is[e] == TRACE_STEP && t->step[e] != TRACE_NONE) {
      x->nsteps++;
      x->first_step = MIN(x->first_step, t->step[e]), x->last_step = MAX(x->last_step, t->step[e]);
    }
    if (t->is[e] != TRACE_KERNEL || t->comm[e] == TRACE_NONE) continue;
    x->comms++, x->sized += t->comms.v[t->comm[e]].bytes >= 0;
  }
  for (u32 l = 0; l < t->lanes.n; l++) *(t->lanes.v[l].device ? &x->streams : &x->threads) += has_lane[l];
}

static void file_of(const job *j, arena *tmp, u32 k, const trace *t, file_info *x) {
  const job_file *f = &j->file[k];
  const trace_process none = {.rank = TRACE_NONE}, *p = t->processes.n ? t->processes.v : &none;
  *x = (file_info){.path = f->path,
                   .format = f->format,
                   .rank = job_rank(j, k),
                   .world_size = p->world_size,
                   .host = p->host,
                   .device = p->device,
                   .processes = t->processes.n,
                   .events = f->about.events,
                   .skipped = f->about.skipped,
                   .truncated = f->about.truncated,
                   .base_ns = p->base_ns,
                   .clock = clock_of(p->base_ns)};
  count_events(tmp, t, x);
}

// ---- what is missing ----------------------------------------------------------------------------------------
static void miss(job_info *i, arena *a, u32 rank, const char *what) {
  *vec_push(a, &i->missing) = (missing_info){rank, text_agree(arena_strdup(a, what))};
}

static void miss_of_file(job_info *i, arena *a, const file_info *x) {
  const u64 events = x->events;
  if (x->truncated) miss(i, a, x->rank, "the file ends early");
  if (x->skipped)
    miss(i, a, x->rank,
         arena_printf(a, "%llu of %llu events could not be understood or are there twice",
                      (unsigned long long)x->skipped, (unsigned long long)events));
  if (!x->device_events)
    miss(i, a, x->rank, "no events of a device: was the profiler told to record it?");
  else if (!x->launches)
    miss(i, a, x->rank, "no launches: why a device is idle cannot be told");
  if (!x->nsteps)
    miss(i, a, x->rank, "no steps: nothing says where one begins, such as calls of the profiler's step()");
  if (x->device_events && !x->world_size && x->processes < 2)
    miss(i, a, x->rank, "nothing about the job: how many ranks it has is not known");
  if (x->comms > x->sized)
    miss(i, a, x->rank,
         arena_printf(a, "the sizes of %u of %u communications: bandwidths cannot be told",
                      x->comms - x->sized, x->comms));
}

static void miss_ranks(job_info *i, arena *a) {
  u32 *rank = NEWN(a, u32, i->n + 1), n = 0, world = 0, unknown = 0;
  for (u32 k = 0; k < i->n; k++) {
    world = MAX(world, i->file[k].world_size);
    if (i->file[k].processes > 1) return; // a file of several ranks
    if (i->file[k].rank == TRACE_NONE)
      unknown++;
    else
      rank[n++] = i->file[k].rank;
  }
  if (n) qsort(rank, n, sizeof *rank, ascending_u32);
  u32 *absent = NEWN(a, u32, MIN(world, 1 << 20) + 1), m = 0, at = 0;
  for (u32 r = 0; r < MIN(world, 1u << 20); r++) {
    while (at < n && rank[at] < r) at++;
    if (at == n || rank[at] != r) absent[m++] = r;
  }
  if (m) miss(i, a, TRACE_NONE, arena_printf(a, "%u of %u ranks: %s", m, world, number_list(a, absent, m)));
  for (u32 k = 1; k < n; k++)
    if (rank[k] == rank[k - 1] && (k < 2 || rank[k] != rank[k - 2]))
      miss(i, a, rank[k], "the rank is there more than once: are these files of one run?");
  if (unknown && i->n > 1)
    miss(i, a, TRACE_NONE,
         arena_printf(a, "the rank of %u of %u files: their names may say it, as rank0.json does", unknown,
                      i->n));
  for (u32 k = 0; k < i->n; k++)
    if (i->file[k].world_size && world != i->file[k].world_size)
      miss(i, a, i->file[k].rank,
           arena_printf(a, "the job has %u ranks here and %u elsewhere: are these files of one run?",
                        i->file[k].world_size, world));
}

static void miss_clocks(job_info *i, arena *a) {
  const file_info *first = i->file;
  i64 begin = INT64_MIN, end = INT64_MAX;
  if (i->n < 2) return;
  for (u32 k = 0; k < i->n; k++) {
    const file_info *x = &i->file[k];
    if (x->clock == CLOCK_NONE) {
      miss(i, a, x->rank,
           "its clock starts with the recording: times of ranks cannot be compared before they are aligned");
      return;
    }
    if (x->clock != first->clock) {
      miss(i, a, x->rank,
           "its clock is of another kind than that of the first file: times cannot be compared");
      return;
    }
    if (x->first_ps > x->last_ps) continue;
    begin = MAX(begin, x->base_ns + x->first_ps / 1000), end = MIN(end, x->base_ns + x->last_ps / 1000);
  }
  if (begin > end)
    miss(i, a, TRACE_NONE, "an instant that all files have recorded: are these files of one run?");
  else if (first->clock == CLOCK_HOST)
    miss(i, a, TRACE_NONE, "a common clock: times count since each host started");
}

job_info *job_info_of(job *j, arena *a) {
  job_info *i = NEW(a, job_info);
  i->n = j->n, i->file = NEWN(a, file_info, j->n);
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    if (!t) return NULL;
    file_of(j, a, k, t, &i->file[k]);
    job_unload(j, k);
  }
  miss_ranks(i, a);
  miss_clocks(i, a);
  for (u32 k = 0; k < i->n; k++) miss_of_file(i, a, &i->file[k]);
  return i;
}
