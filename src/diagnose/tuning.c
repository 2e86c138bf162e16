// tuning.c - the data-parallel job that a recording shows: what one worker computes in a step, and the gradients that
// all of them add up. Not what would make it faster (tune/).
//
// Idea: kernels of one rank are one row; those that another thread than the first launched are the backward, what comes
// after them is the update. An all-reduce that is launched in the backward has gradients, which were ready with the
// last kernel before it. How a recorded bucket was made up of gradients no recording says: its bytes are spread over the
// kernels since the one before, by their time. What a communication takes is a line over its bytes, fitted.
#include "diagnose/internal.h"
#include <stdlib.h>

typedef struct {
  job *j;
  job_input *in;
  arena *a, *tmp;
  u32 process;
  const trace *t;
  const job_work *w;
  const i64 *transfer; // of every op: without waiting for peers
  VEC(tune_op) ops;
  VEC(i64) launch; // of ops
  VEC(u8) reads;   // of ops: it may read a parameter, as copies and fills do not
  VEC(tune_tensor) tensors;
  VEC(u8) bucketed;    // of tensors, as recorded
  VEC(i64) size, took; // of every gradient communication
  u32 other;           // communications that carry no gradients
  sym type;            // of gradients, as first said
  u32 unseen;          // communications that stand alone as other members were not recorded
  u32 thread[2];       // of the forward, of the backward
  u32 beside, size_of_group;
  tuning_peak peak; // of memory
} reader;

static u32 thread_of(const reader *x, u32 op) {
  const u32 call = x->t->cause[x->w->op[op].event];
  return call == TRACE_NONE ? TUNE_NONE : x->t->lane[call];
}

// The thread that launches the backward: PyTorch's engine says so itself; else the first that is not the first op's.
static u32 backward_thread(const reader *x) {
  static const char engine[] = "autograd::engine";
  const trace *t = x->t;
  const i64 from = x->w->start_ps;
  for (u32 e = 0; e < t->n; e++)
    if (t->is[e] == TRACE_OP && t->start_ps[e] >= from &&
        !strncmp(sym_str(x->j->c, trace_name(t, e)), engine, sizeof engine - 1))
      for (u32 k = 0; k < x->w->nops; k++)
        if (!x->w->op[k].comm && thread_of(x, k) == t->lane[e]) return t->lane[e];
  for (u32 k = 0; k < x->w->nops; k++)
    if (!x->w->op[k].comm && thread_of(x, k) != thread_of(x, 0)) return thread_of(x, k);
  return TUNE_NONE;
}

// Gradients are summed up for the update: what the backward itself waits for, as batch norm over all ranks does, has none.
static bool is_gradient(const reader *x, u32 op, u32 last) {
  const work_op *o = &x->w->op[op];
  if (!o->comm_op.i || strcmp(sym_str(x->j->c, o->comm_op), "all_reduce")) return false;
  for (u32 k = op + 1; k <= last; k++)
    for (u32 i = x->w->op[k].first_after; i < x->w->op[k + 1].first_after && !x->w->op[k].comm; i++)
      if (x->w->after[i] == op) return false;
  return true;
}

static bool fusable(const reader *x, u32 op) {
  const char *name = sym_str(x->j->c, x->w->op[op].name);
  return strstr(name, "elementwise") || strstr(name, "Elementwise");
}

static bool is_heavy(const reader *x, u32 op) {
  const kernel_class c = kernel_class_of(sym_str(x->j->c, x->w->op[op].name));
  return c == KERNEL_MATMUL || c == KERNEL_CONV || c == KERNEL_ATTENTION;
}

static bool refuse(reader *x, const char *why, const char *hint) {
  ctx *c = x->j->c;
  diag(c, E_TRACE, loc_text(c, sym_of(c, x->j->file[x->in->file[x->process]].path), 0, 0, NULL), "%s", why);
  diag_hint(c, "%s", hint);
  return false;
}

// Of the threads but this one, that which launches most.
static u32 forward_thread(const reader *x, u32 backward) {
  u32 *n = ZNEWN(x->tmp, u32, x->t->lanes.n + 1), best = TUNE_NONE;
  for (u32 k = 0; k < x->w->nops; k++) {
    const u32 l = thread_of(x, k);
    if (!x->w->op[k].comm && l != TUNE_NONE && l != backward && (++n[l] > 0) &&
        (best == TUNE_NONE || n[l] > n[best]))
      best = l;
  }
  return best;
}

// Where the backward begins and ends. More than one, as with accumulation or in several steps, is refused.
static bool find_phases(reader *x, u32 *first, u32 *last) {
  const u32 backward = backward_thread(x), forward = forward_thread(x, backward);
  if (backward == TUNE_NONE || forward == TUNE_NONE)
    return refuse(
        x, "forward and backward of this recording cannot be told apart: one thread launches everything",
        "PyTorch's autograd launches the backward from a thread of its own; a forward alone has no "
        "gradients");
  x->thread[0] = forward, x->thread[1] = backward;
  *first = TUNE_NONE;
  for (u32 k = 0; k < x->w->nops; k++) {
    if (x->w->op[k].comm || thread_of(x, k) != backward) continue;
    *first = MIN(*first, k);
    // Copies behind its last kernel bring sums from buckets to gradients, when these have been added up.
    if (*last < *first || x->w->op[k].kind == LAUNCH_KERNEL) *last = k;
  }
  for (u32 k = *first; k < *last; k++)
    if (!x->w->op[k].comm && thread_of(x, k) == forward)
      return refuse(x,
                    "it has several backwards, as accumulation of gradients or several steps have: which one "
                    "communicates "
                    "is not planned",
                    "--steps N, of a step with one backward");
  return true;
}

// The gradients of an all-reduce: its bytes over the backward's kernels since the one before, by their time.
static void put_gradients(reader *x, sym name, u32 filled, u32 compute, i64 bytes) {
  i64 time = 0, given = 0, so_far = 0;
  const u32 begin = x->tensors.n;
  for (u32 i = filled; i <= compute; i++) time += x->ops.v[i].phase == TUNE_BACKWARD ? x->ops.v[i].ps : 0;
  for (u32 i = filled; i <= compute && time; i++) {
    if (x->ops.v[i].phase != TUNE_BACKWARD) continue;
    so_far += x->ops.v[i].ps;
    const i64 upto = (i64)((double)bytes * ((double)so_far / (double)time) + 0.5);
    *vec_push(x->a, &x->tensors) = (tune_tensor){.name = name, .bytes = upto - given, .op = i};
    *vec_push(x->a, &x->bucketed) = x->tensors.n - 1 > begin;
    given = upto;
  }
  if (time) return;
  // Behind one that was launched after the same kernel.
  *vec_push(x->a, &x->tensors) = (tune_tensor){.name = name, .bytes = bytes, .op = compute};
  *vec_push(x->a, &x->bucketed) = false;
}

static bool recorded(const reader *x, u32 rank) {
  for (u32 p = 0; p < x->in->replay.n; p++)
    if (x->in->replay.w[p]->rank == rank) return true;
  return false;
}

// Has its group members that are in no file? Those that it names, or so many as there are no files.
static bool lacks_members(const reader *x, const trace_comm *m) {
  const char *s = sym_str(x->j->c, m->members);
  if (!m->members.i || strstr(s, ".."))
    return MAX(m->size, m->size ? 0 : x->t->processes.v[0].world_size) > x->in->replay.n;
  for (char *end; *s; s = *end == ',' ? end + 1 : end) {
    const unsigned long rank = strtoul(s, &end, 10);
    if (end == s || (*end && *end != ',')) return m->size > x->in->replay.n; // not a list of ranks
    if (!recorded(x, (u32)rank)) return true;
  }
  return false;
}

// The row of kernels of both threads, and the gradients between them.
static bool put_ops(reader *x, i64 gap_ps) {
  enum { BYTES_MOST_LOG = 44 };
  u32 first = 0, last = 0, compute = TUNE_NONE, filled = 0, unsized = 0;
  if (!find_phases(x, &first, &last)) return false;
  for (u32 k = 0; k < x->w->nops; k++) {
    const work_op *o = &x->w->op[k];
    const tune_phase phase = k < first ? TUNE_FORWARD : k <= last ? TUNE_BACKWARD : TUNE_UPDATE;
    if (!o->comm) {
      const u32 thread = thread_of(x, k);
      if (thread != x->thread[0] && thread != x->thread[1]) {
        x->beside++;
        continue;
      }
      compute = x->ops.n;
      *vec_push(x->tmp, &x->launch) = x->w->item[o->item].start_ps;
      *vec_push(x->tmp, &x->reads) = o->kind == LAUNCH_KERNEL;
      *vec_push(x->a, &x->ops) = (tune_op){.name = o->name,
                                           .phase = phase,
                                           .heavy = is_heavy(x, k),
                                           .ps = o->dur_ps + gap_ps,
                                           .saved_ps = fusable(x, k) ? MIN(gap_ps, o->dur_ps) : 0};
      if (phase < TUNE_BACKWARD) filled = x->ops.n;
      continue;
    }
    const u32 comm = x->t->comm[o->event];
    if (comm != TRACE_NONE && !x->in->replay.coll[x->process][k])
      x->unseen += lacks_members(x, &x->t->comms.v[comm]);
    if (compute == TUNE_NONE || x->ops.v[compute].phase != TUNE_BACKWARD || !is_gradient(x, k, last)) {
      x->other++;
      continue;
    }
    const i64 bytes = comm == TRACE_NONE ? -1 : x->t->comms.v[comm].bytes;
    if (comm != TRACE_NONE) x->size_of_group = MAX(x->size_of_group, x->t->comms.v[comm].size);
    if (bytes <= 0 || bytes >> BYTES_MOST_LOG) {
      unsized++;
      continue;
    }
    if (!x->type.i) x->type = x->t->comms.v[comm].type;
    put_gradients(x, o->name, filled, compute, bytes);
    filled = compute + 1;
    *vec_push(x->tmp, &x->size) = bytes, *vec_push(x->tmp, &x->took) = x->transfer[k];
  }
  if (unsized)
    return refuse(x, "all-reduces in its backward do not say how many bytes they have, or say too many",
                  "PyTorch's profiler of 2023 and later records the elements of a communication");
  return true;
}

// Which kernel of the forward reads a parameter first no recording says: layers run in the backward in the opposite order,
// so it is taken to be as far from the start of the forward as its gradient's kernel is from the end of the backward.
static void put_readers(const reader *x) {
  i64 all[2] = {0}, done = 0;
  u32 last = 0; // of the forward
  for (u32 k = 0; k < x->ops.n && x->ops.v[k].phase < TUNE_UPDATE; k++)
    if (x->reads.v[k]) all[x->ops.v[k].phase] += x->ops.v[k].ps;
  while (last + 1 < x->ops.n && x->ops.v[last + 1].phase == TUNE_FORWARD) last++;
  for (u32 k = last + 1, t = 0; k < x->ops.n && t < x->tensors.n && all[0] && all[1]; k++) {
    if (x->reads.v[k]) done += x->ops.v[k].ps;
    i64 left = (i64)((double)all[0] * ((double)(all[1] - done) / (double)all[1]));
    u32 op = 0;
    for (; op < last && (!x->reads.v[op] || left >= x->ops.v[op].ps); op++)
      if (x->reads.v[op]) left -= x->ops.v[op].ps;
    for (; t < x->tensors.n && x->tensors.v[t].op == k; t++) x->tensors.v[t].read_by = op;
  }
}

// Passes that change numbers, where gradients have 32 bits.
static void put_half(const reader *x, tune_job *t, tuning *out) {
  const char *type = sym_str(x->j->c, x->type);
  if (!x->type.i)
    out->no_half = "the recording does not say of which type gradients are";
  else if (strcmp(type, "f32"))
    out->no_half = "gradients are not of 32 bits";
  if (out->no_half) return;
  for (u32 k = 0; k < t->nops; k++)
    if (t->op[k].heavy) t->op[k].half_ps = (i64)((double)t->op[k].ps * TUNING_HALF_TIME);
  t->compressed = TUNING_COMPRESSED, t->compress_ps_per_byte = TUNING_COMPRESS_PS_PER_BYTE;
}

void line_fit_add(line_fit *f, double x, double y) {
  f->n++, f->s += x, f->t += y, f->ss += x * x, f->st += x * y;
}

bool line_fit_of(const line_fit *f, double *start, double *slope) {
  const double n = f->n, s = f->s, t = f->t, spread = n * f->ss - s * s;
  *slope = spread > 0 ? (n * f->st - s * t) / spread : t / s, *start = spread > 0 ? (t - *slope * s) / n : 0;
  if (*slope < 0) *slope = 0, *start = t / n;
  if (*start < 0) *start = 0, *slope = f->st / f->ss;
  return spread > 0;
}

static void fit(const reader *x, tune_link *l, tuning *out) {
  line_fit f = {0};
  double slope, start;
  for (u32 k = 0; k < x->size.n; k++) line_fit_add(&f, (double)x->size.v[k], (double)x->took.v[k]);
  out->one_size = !line_fit_of(&f, &start, &slope);
  const double parts = 2. * (l->workers - 1) / l->workers; // of a ring
  l->start_ps = (i64)(start + 0.5), l->ps_per_byte = slope / parts;
  for (u32 k = 0; k < x->size.n; k++) {
    const double off = start + slope * (double)x->size.v[k] - (double)x->took.v[k];
    out->fit_error_ps += (off < 0 ? -off : off) / f.n;
  }
}

static bool fill(reader *x, const replay *r, tuning *out) {
  const i64 gap = replay_latencies(r)->queue_ps;
  if (!put_ops(x, gap)) return false;
  if (!x->tensors.n)
    return refuse(
        x, "no all-reduce in its backward that the backward does not wait for: it is not a data-parallel job",
        "`heddle trace summary` says what it communicates");
  put_readers(x);
  tune_job *t = &out->job;
  *t = (tune_job){.nops = x->ops.n,
                  .op = x->ops.v,
                  .ntensors = x->tensors.n,
                  .tensor = x->tensors.v,
                  .nblocks = 1,
                  .kind = ZNEWN(x->a, u32, 1),
                  .input_bytes = ZNEWN(x->a, i64, 1)};
  const u32 world = x->t->processes.v[0].world_size;
  enum { WORKERS_MOST = 1 << 16 };
  t->link.workers = MAX(2, x->size_of_group ? x->size_of_group : MAX(world, x->in->replay.n));
  if (t->link.workers > WORKERS_MOST)
    return refuse(x, "its group of workers is said to be larger than 65,536",
                  "`heddle trace info` says what it has");
  fit(x, &t->link, out);
  double sum = 0;
  for (u32 k = 0; k < x->size.n; k++) sum += (double)x->size.v[k];
  if (sum * t->link.ps_per_byte + (double)x->tensors.n * (double)t->link.start_ps > 1e17) // a day
    return refuse(x, "its communications take longer than a day by what the recorded ones take",
                  "`heddle trace summary` says what it communicates");
  put_half(x, t, out);
  out->recorded = tune_plan_new(x->a, t);
  memcpy(out->recorded.bucketed, x->bucketed.v, x->tensors.n);
  const trace_lane *lane = &x->t->lanes.v[x->t->lane[x->w->op[0].event]];
  const tuning_recorded in = {.t = x->t,
                              .process = lane->process,
                              .device = lane->of,
                              .from_ps = x->w->start_ps,
                              .to_ps = x->w->item[x->w->nitems - 1].end_ps,
                              .launch_ps = x->launch.v,
                              .peak = x->peak};
  out->memory = tuning_memory_of(x->a, &in, &out->recorded, t);
  out->nbuckets = x->size.n, out->other = x->other, out->beside = x->beside,
  out->partial = x->in->partial + x->unseen;
  return true;
}

// The step of median length of the first process that has steps; NULL: all there is.
static const char *a_step(job *j) {
  arena *tmp = arena_new();
  const char *text = NULL;
  const trace *t = NULL;
  u32 f = 0;
  for (; f < j->n && !t; f++)
    if (trace_format_rows[j->file[f].format].kernels) t = job_load(j, f, 0);
  const job_steps *s = t && t->processes.n ? steps_of(tmp, t, 0) : NULL;
  for (u32 k = 0; s && k < s->n; k++) {
    u32 shorter = 0, same = 0; // the last may have been cut off
    const u32 n = s->n > 1 ? s->n - 1 : 1;
    const i64 d = s->step[k].end_ps - s->step[k].start_ps;
    for (u32 i = 0; i < n; i++) {
      const i64 e = s->step[i].end_ps - s->step[i].start_ps;
      shorter += e < d, same += e == d && i < k;
    }
    if (k < n && shorter + same == (n - 1) / 2) text = sym_str(j->c, sym_fmt(j->c, "%u", s->step[k].number));
  }
  if (t) job_unload(j, f - 1);
  arena_free(tmp);
  return text;
}

bool tuning_of(job *j, const char *steps, arena *a, tuning *out) {
  if (message_job(j)) return tuning_of_messages(j, steps, a, out);
  *out = (tuning){.steps = steps ? steps : a_step(j)};
  job_input in;
  if (!job_input_of(j, out->steps, &in)) return false;
  replay *r = replay_new(j->c, a, &in.replay);
  if (!r) return false;
  const replay_times times = replay_recorded(r, a);
  // The slowest rank: the others wait for it.
  reader x = {.j = j, .in = &in, .a = a};
  i64 most = -1;
  for (u32 p = 0; p < in.replay.n; p++) {
    i64 sum = 0;
    for (u32 k = 0; k < in.replay.w[p]->nops; k++)
      sum += in.replay.w[p]->op[k].comm ? 0 : in.replay.w[p]->op[k].dur_ps;
    if (sum > most) most = sum, x.process = p;
  }
  x.w = in.replay.w[x.process], x.transfer = times.op[x.process];
  const u32 kinds = (TRACE_ALL & ~(1u << TRACE_STACK)) | TRACE_MEMORY, file = in.file[x.process];
  if (!(x.t = job_load(j, file, kinds))) return false;
  if (x.t->memory.n) { // then others may tell more; this one is among them
    job_unload(j, file);
    if (!tuning_peak_of(j, &x.peak) || !(x.t = job_load(j, file, kinds))) return false;
  }
  x.tmp = arena_new();
  out->rank = x.w->rank, out->recorded_ps = replay_run(r, &times, NULL, NULL);
  const bool ok = fill(&x, r, out);
  if (ok) out->modelled_ps = tune_time(&out->job, &out->recorded, TUNE_ONE_WORKER);
  arena_free(x.tmp);
  job_unload(j, file);
  return ok;
}
