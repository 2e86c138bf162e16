// run.c - heddle run MODEL: trains for real, one process a rank.
//
// The process that the user starts makes the plan, so that what is wrong is told once, and starts the ranks by mpirun
// as this same command. Where a launcher has started it already (mpirun, srun), it is a rank.
#include "cli/run.h"
#include <dirent.h>
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *run_trace_of(const cli *x) {
  const char *dir = x->trace ? x->trace : getenv("HEDDLE_TRACE");
  return dir && *dir ? dir : NULL;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// ---- one rank ----------------------------------------------------------------------------------------------
// --transport, or heddle-mpi.so beside this program or in ../lib. False, said: there is none.
static bool find_transport(const cli *x, char *path, size_t size) {
  static const char *const where[] = {"", "../lib/"};
  char self[4096] = "";
  if (x->transport) return snprintf(path, size, "%s", x->transport) > 0;
  char *slash = own_path(self, sizeof self) ? strrchr(self, '/') : NULL;
  if (slash) slash[1] = 0;
  for (int k = 0; k < 2; k++) {
    snprintf(path, size, "%s%sheddle-mpi.so", self, where[k]);
    if (access(path, R_OK) == 0) return true;
  }
  fputs("error: ranks cannot be joined: there was no MPI when this program was built\n"
        "  hint: install one with its mpicc (Debian: libopenmpi-dev openmpi-bin) and run `make` again, or "
        "--transport FILE\n",
        stderr);
  return false;
}

static bool not_joined(const char *path, const char *error) {
  const size_t n = strlen(path);
  if (!strncmp(error, path, n) && error[n] == ':') error += n + 1 + strspn(error + n + 1, " "); // once
  fprintf(stderr, "error: %s: ranks cannot be joined: %s\n", path, error);
  return false;
}

// A structure of another size has another form.
static_assert(sizeof(void *) != 8 || HEDDLE_TRANSPORT_FORM != 1 ||
                  (sizeof(heddle_link) == 56 && sizeof(heddle_transport) == 80),
              "raise HEDDLE_TRANSPORT_FORM");
// NULL, said: it is no transport.
static heddle_transport_opener *opener_of(const cli *x, const char *path, int how) {
  heddle_transport_opener *open = NULL;
  const int *form = NULL;
  void *so = dlopen(path, how);
  if (so) *(void **)&open = dlsym(so, "heddle_transport_open"), form = dlsym(so, "heddle_transport_form");
  if (open && form && *form == HEDDLE_TRANSPORT_FORM) return open;
  if (!open) {
    not_joined(path, so ? "it has no heddle_transport_open" : dlerror());
    return NULL;
  }
  not_joined(path, form ? "it was built for another version of heddle" : "it has no heddle_transport_form");
  fputs(x->transport ? "  hint: build it again with the heddle.h of this version\n"
                     : "  hint: run `make` again, which builds it beside heddle\n",
        stderr);
  return NULL;
}

// Before ranks are started, each of which would say what is wrong.
static bool transport_fits(const cli *x) {
  char path[PATH_SPACE];
  return find_transport(x, path, sizeof path) && opener_of(x, path, RTLD_LAZY | RTLD_LOCAL);
}

bool ranks_join(cli *x, const heddle_machine *m, heddle_transport *t) {
  char path[PATH_SPACE], error[512] = "";
  heddle_transport_opener *open =
      find_transport(x, path, sizeof path) ? opener_of(x, path, RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (!open) return false;
  if (open(t, error, sizeof error)) {
    const uint32_t cores = heddle_machine_cores(m, t->link.rank);
    if (cores && (!t->link.threads || t->link.threads > cores)) t->link.threads = cores;
    warnings_tell(x, t->link.rank);
    return true;
  }
  return not_joined(path, error);
}

typedef struct {
  double loss, ms;
} step_taken;

static int by_ms(const void *x, const void *y) {
  const step_taken *a = x, *b = y;
  return a->ms < b->ms ? -1 : a->ms > b->ms;
}

static void put_json_text(const char *s) {
  putchar('"');
  for (; *s; s++) {
    if ((unsigned char)*s < ' ')
      printf("\\u%04x", (unsigned)*s);
    else
      printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  }
  putchar('"');
}

// JSON has no word for what is not finite.
static void put_json_loss(double x) {
  if (isfinite(x))
    printf("%.9g", x);
  else
    fputs("null", stdout);
}

static void tell_step(const cli *x, bool first, uint64_t step, const step_taken *s) {
  if (x->json || x->quiet) return;
  if (first) puts("step         loss       time");
  printf("%4llu  %11.6g  %6.2f ms\n", (unsigned long long)step, isnan(s->loss) ? NAN : s->loss, s->ms);
  fflush(stdout);
}

// Of all ranks, on rank 0. Every rank calls it.
static bool tell_held(heddle_run *r, const heddle_transport *t, const resident *start, held_bytes *all) {
  heddle_run_bytes own;
  if (!heddle_run_memory(r, &own)) return false;
  const resident end = resident_now();
  *all = held_of(&own, start, &end);
  if (t->link.rank) return t->link.send(t->link.arg, 0, all, sizeof *all);
  for (uint32_t k = 1; k < t->ranks; k++)
    if (!t->link.receive(t->link.arg, k, &all[k], sizeof *all)) return false;
  return true;
}

// Training goes on: it may be meant. Checkpoints of now are of no use.
static void tell_not_finite(uint64_t before, uint64_t n, const step_taken *s) {
  uint64_t k = 0;
  while (k < n && isfinite(s[k].loss)) k++;
  if (k == n) return;
  fprintf(stderr, "warning: the loss is not finite from step %llu on\n  hint: a smaller --lr\n",
          (unsigned long long)(before + k + 1));
}

// The first step makes what the others find: it is no part of the median.
static void tell_all(const cli *x, const heddle_transport *t, const char *plan, uint64_t before, uint64_t n,
                     const step_taken *s, const held_bytes *all) {
  const uint32_t ranks = t->ranks;
  const held_bytes most = held_most(all, ranks), *h = &most;
  step_taken *sorted = malloc(sizeof *s * n);
  const uint64_t first = n > 1;
  if (!sorted) {
    fputs("error: out of memory\n", stderr);
    abort();
  }
  memcpy(sorted, s + first, sizeof *s * (n - first));
  qsort(sorted, n - first, sizeof *s, by_ms);
  const uint64_t m = n - first;
  const double median = (sorted[(m - 1) / 2].ms + sorted[m / 2].ms) / 2;
  free(sorted);
  if (!x->json) {
    printf("\n%s on %u rank%s: %.2f ms a step (median)\n", plan, ranks, ranks > 1 ? "s" : "", median);
    printf("%.1f MiB of tensors on a rank at most, %.0f MiB its process\n", (double)h->tensors / (1 << 20),
           (double)h->process / (1 << 20));
    return;
  }
  fputs("{\"plan\": ", stdout);
  put_json_text(plan);
  int64_t chunk;
  if (run_collectives_of(x, &chunk) && chunk > 0)
    printf(", \"collectives\": \"ring\", \"chunk_bytes\": %lld", (long long)chunk);
  if (x->run_collectives && !strcmp(x->run_collectives, "mpi")) printf(", \"collectives\": \"mpi\"");
  if (t->link.threads) printf(", \"threads\": %u", t->link.threads);
  printf(", \"ranks\": %u, \"step_ms\": %.6g, \"tensor_bytes\": %lld, \"process_bytes\": %lld", ranks, median,
         (long long)h->tensors, (long long)h->process);
  held_json(all, ranks);
  fputs(", \"steps\": [", stdout);
  for (uint64_t k = 0; k < n; k++) {
    printf("%s{\"step\": %llu, \"loss\": ", k ? ", " : "", (unsigned long long)(before + k + 1));
    put_json_loss(s[k].loss);
    printf(", \"ms\": %.6g}", s[k].ms);
  }
  puts("]}");
}

// ---- what training begins with -------------------------------------------------------------------------------
typedef struct {
  heddle_tensors *t;
  heddle_data *data; // NULL: random, the same in every step
  heddle_checkpoint at;
  uint64_t steps; // to take
} beginning;

static heddle_tensors *resumed(cli *x, heddle_program *d, heddle_checkpoint *at) {
  const char *path = heddle_checkpoint_find(x->s, x->run_resume);
  uint64_t seed = (uint64_t)x->seed.i;
  for (int again = 0; path && again < 2; again++) { // random data are those of the seed in the checkpoint
    heddle_tensors *t = heddle_tensors_initial(d, seed);
    if (!heddle_tensors_resume(t, d, path, at)) return NULL;
    if (x->seed.given || at->seed == seed) return t;
    heddle_tensors_free(t);
    seed = at->seed;
  }
  return NULL;
}

static heddle_tensors *begun(cli *x, heddle_program *d, heddle_checkpoint *at) {
  if (x->run_resume) return resumed(x, d, at);
  heddle_tensors *t = heddle_tensors_initial(d, (uint64_t)x->seed.i);
  return !x->run_weights || heddle_tensors_weights(t, d, x->run_weights) ? t : NULL;
}

// Training goes on, but not as the job would have that left the checkpoint.
static void tell_other_samples(const cli *x, const heddle_checkpoint *at) {
  const bool starter_told = is_rank() && !is_rank_of_others();
  if (!x->run_resume || !at->sample || starter_told || (is_rank() && !is_first_rank())) return;
  if (!x->run_data)
    fprintf(stderr,
            "warning: the checkpoint is of training on data, of which %lld samples were read, and this goes "
            "on with random "
            "data\n  hint: --data with that file\n",
            (long long)at->sample);
  else if (x->run_shuffle && !at->shuffle)
    fputs("warning: the checkpoint is of training without --shuffle: samples come in another order now\n",
          stderr);
  else if (at->shuffle && x->seed.given && (uint64_t)x->seed.i != at->seed)
    fprintf(stderr,
            "warning: the checkpoint is of training with --seed %llu: samples come in another order now\n",
            (unsigned long long)at->seed);
}

// False: a diagnostic or an error message says why.
static bool begin(cli *x, heddle_program *d, const char *plan, beginning *b) {
  *b = (beginning){.steps = x->run_steps.given ? (uint64_t)x->run_steps.i : 10};
  if (!(b->t = begun(x, d, &b->at))) return false;
  tell_other_samples(x, &b->at);
  if (x->seed.given || !x->run_resume) b->at.seed = (uint64_t)x->seed.i;
  b->at.shuffle = b->at.shuffle || x->run_shuffle;
  b->at.plan = plan;
  if (b->steps <= b->at.step) {
    if (!is_rank_of_others() || is_first_rank())
      fprintf(
          stderr,
          "error: the checkpoint is of step %llu; nothing is left of --steps %llu\n  hint: --steps %llu\n",
          (unsigned long long)b->at.step, (unsigned long long)b->steps, (unsigned long long)b->at.step + 10);
    return false;
  }
  b->steps -= b->at.step;
  if (!x->run_data) return true;
  b->data =
      heddle_data_open(d, x->run_data, &(heddle_data_options){x->run_data_type, b->at.shuffle, b->at.seed});
  return b->data;
}

// How collectives move: *chunk -1, by a ring where more than two take part; -2, by MPI's own; 0, directly; or the bytes of a ring's chunks. False:
// the options do not say.
bool run_collectives_of(const cli *x, int64_t *chunk) {
  const char *how = x->run_collectives ? x->run_collectives : "auto";
  const bool ring = !strcmp(how, "ring"), chosen = !strcmp(how, "auto");
  const bool library = !strcmp(how, "mpi");
  *chunk = ring ? HEDDLE_RING_BYTES : library ? HEDDLE_RING_LIBRARY : chosen ? -1 : 0;
  if (!ring && !chosen && !library && strcmp(how, "direct") != 0)
    return usage_error("--collectives ring", "--collectives takes auto, direct, ring or mpi; got '%s'", how);
  if (x->run_chunk && !ring) return usage_error("--collectives ring", "--chunk needs --collectives ring");
  if (x->run_chunk && !heddle_session_bytes(x->s, "--chunk", x->run_chunk, chunk)) return false;
  return true;
}

// ---- training ------------------------------------------------------------------------------------------------
static bool save(cli *x, heddle_run *r, beginning *b, uint32_t rank) {
  if (!heddle_run_save(r, x->run_save, &b->at, (uint32_t)x->run_keep.i)) return false;
  if (!rank && !x->json)
    printf("      saved %s/step-%06llu.safetensors\n", x->run_save, (unsigned long long)b->at.step);
  fflush(stdout);
  return true;
}

static bool one_step(heddle_run *r, beginning *b, step_taken *s) {
  const double start = now_ms();
  if (b->data && !heddle_run_feed(r, b->data, b->at.sample)) return false;
  if (!heddle_run_step(r) || !heddle_run_loss(r, &s->loss)) return false;
  s->ms = now_ms() - start;
  b->at.step++;
  if (b->data) b->at.sample += heddle_data_batch(b->data);
  return true;
}

static bool save_is_due(const cli *x, const beginning *b, bool last) {
  return x->run_save &&
         (last || (x->run_save_every.given && b->at.step % (uint64_t)x->run_save_every.i == 0));
}

static bool train(cli *x, heddle_program *d, const heddle_transport *t, const watched *w, const char *plan) {
  if (!heddle_run_warm(&t->link))
    fprintf(stderr,
            "warning: rank %u has no room for OpenBLAS (ulimit -v, ulimit -d): its products are Heddle's "
            "own, which are "
            "slower\n",
            t->link.rank);
  const resident start = resident_now();
  beginning b;
  if (!begin(x, d, plan, &b)) return false;
  warnings_tell(x, t->link.rank);
  const uint64_t before = b.at.step;
  heddle_run *r = heddle_run_take(d, &t->link, b.t); // its pieces are what this rank needs
  heddle_tensors_free(b.t);
  step_taken *taken = r ? calloc(b.steps, sizeof *taken) : NULL;
  int64_t chunk;
  bool ok = taken && run_collectives_of(x, &chunk) && (!run_trace_of(x) || heddle_run_record(r, 0));
  if (ok) heddle_run_ring(r, chunk);
  if (r) heddle_run_begin_at(r, before), heddle_run_number(r, w->token), watch_follow(w, r);
  if (ok && !t->link.rank && !x->json && !x->quiet)
    printf("%s\n\n", b.data ? heddle_data_about(b.data)
                            : "random data, the same in every step: --data PATH trains on yours");
  for (uint64_t k = 0; k < b.steps && ok; k++) {
    watch_tell(w, REPORT_BEAT);
    ok = one_step(r, &b, &taken[k]);
    if (ok && !t->link.rank) tell_step(x, !k, b.at.step, &taken[k]);
    if (ok && save_is_due(x, &b, k + 1 == b.steps)) ok = save(x, r, &b, t->link.rank);
  }
  held_bytes *held = calloc(t->ranks, sizeof *held);
  ok = ok && held && tell_held(r, t, &start, held);
  if (ok && !t->link.rank) tell_not_finite(before, b.steps, taken);
  if (ok && !t->link.rank && !x->quiet) tell_all(x, t, plan, before, b.steps, taken, held);
  free(held);
  if (r && run_trace_of(x)) ok = heddle_run_recorded(r, run_trace_of(x)) && ok; // of a job that failed, too
  heddle_tensors *after = ok && x->output && !x->quiet ? heddle_run_parameters(r) : NULL;
  if (ok && x->output && !x->quiet) ok = after && (t->link.rank || heddle_tensors_write(after, x->output));
  free(taken);
  return ok;
}

// Ranks that this program has not started learn from rank 0 who watches.
static void share_address(const heddle_transport *t, char *address) {
  for (uint32_t r = 1; r < t->ranks && !t->link.rank; r++)
    t->link.send(t->link.arg, r, address, ADDRESS_SPACE);
  if (t->link.rank && !t->link.receive(t->link.arg, 0, address, ADDRESS_SPACE)) *address = 0;
}

bool run_one_rank(cli *x, const heddle_machine *m, heddle_program *d, const char *plan) {
  heddle_transport t;
  char address[ADDRESS_SPACE] = "";
  const char *given = getenv(WATCH_WORD);
  if (!given && is_first_rank()) watch_fork(x, d, address, sizeof address);
  if (!ranks_join(x, m, &t)) return false;
  bool ok = t.ranks == heddle_program_ranks(d);
  if (ok && !given) share_address(&t, address);
  const watched w = watch_join(given ? given : address, t.link.rank);
  if (!ok && !t.link.rank)
    fprintf(stderr,
            "error: the plan is for %u ranks, and %u were started\n  hint: mpirun -n %u, or --strategy of %u "
            "ranks\n",
            heddle_program_ranks(d), t.ranks, heddle_program_ranks(d), t.ranks);
  ok = ok && train(x, d, &t, &w, plan);
  if (!ok && watch_says_why(&w)) {
    if (t.ranks > 1 && heddle_session_errors(x->s)) fprintf(stderr, "rank %u ends the job:\n", t.link.rank);
    fputs(heddle_session_messages(x->s), stderr);
    watch_tell(&w, REPORT_SAID);
  }
  if (!ok) heddle_session_clear(x->s);
  fflush(stdout);
  if (ok) watch_tell(&w, REPORT_DONE);
  t.close(t.link.arg, !ok);
  watch_follow(&w, NULL); // the run goes with its session
  return ok;
}

// ---- the command ---------------------------------------------------------------------------------------------
// --data 2 is the data-parallel degree, as everywhere else.
static bool data_is_degree(cli *x) {
  const char *s = x->run_data;
  if (!s || !*s || s[strspn(s, "0123456789")]) return true;
  const size_t n = strlen(s) + (x->choices ? strlen(x->choices) : 0) + 8;
  char *line = malloc(n);
  if (!line) return false;
  snprintf(line, n, "%s%sdp=%s", x->choices ? x->choices : "", x->choices ? " " : "", s);
  free(x->choices);
  x->choices = line, x->choice = "data", x->run_data = NULL;
  return options_agree(x);
}

static bool agree(cli *x) {
  if (x->run_weights && x->run_resume)
    return usage_error("give one of them",
                       "--resume cannot be combined with --weights: a checkpoint has its own");
  if (x->run_save_every.given && !x->run_save)
    return usage_error("--save ckpt", "--save-every needs --save DIR");
  if (x->run_keep.given && !x->run_save) return usage_error("--save ckpt", "--keep needs --save DIR");
  if (x->run_shuffle && !x->run_data) return usage_error("--data tokens.u16", "--shuffle needs --data");
  if (x->run_data_type && !x->run_data) return usage_error("--data tokens.bin", "--data-type needs --data");
  if (x->run_hang.given && x->run_hang.x < 0) return usage_error(NULL, "--hang-timeout must not be negative");
  int64_t chunk;
  return run_collectives_of(x, &chunk) && data_is_degree(x);
}

bool ranks_are_here(void) { return is_rank(); }

bool ranks_start(cli *x, uint32_t n) {
  if (is_lone_task() || !transport_fits(x)) return false;
  if (isatty(STDERR_FILENO))
    setenv("HEDDLE_TERMINAL", "1", 1); // the ranks' progress is drawn through the launcher
  return launch_unwatched(x, n);
}

// A folder with recordings of more ranks is of another job: what is asked of it would mix both.
static bool folder_fits(const char *dir, uint32_t ranks) {
  unsigned rank, most = 0;
  int n = 0;
  DIR *d = dir ? opendir(dir) : NULL;
  for (struct dirent *e; d && (e = readdir(d));)
    if (sscanf(e->d_name, "rank%u.json%n", &rank, &n) == 1 && n && !e->d_name[n] && rank > most) most = rank;
  if (d) closedir(d);
  if (most < ranks) return true;
  fprintf(stderr,
          "error: %s has rank%u.json, and the plan has %u rank%s: it is of another job\n  hint: name another "
          "folder\n",
          dir, most, ranks, ranks > 1 ? "s" : "");
  return false;
}

bool run_start(cli *x, heddle_program *d) {
  fputs(heddle_session_messages(x->s), stderr), heddle_session_clear(x->s); // warnings of the plan
  return !is_lone_task() && folder_fits(run_trace_of(x), heddle_program_ranks(d)) && transport_fits(x) &&
         launch(x, d);
}

void warnings_tell(cli *x, uint32_t rank) {
  if (!rank && is_rank_of_others()) fputs(heddle_session_messages(x->s), stderr);
  heddle_session_clear(x->s);
}

// What is written after the last step: that it cannot be is told before the first one.
static bool can_write(cli *x, const char *path) {
  static const char tail[] = ".safetensors";
  const size_t n = path ? strlen(path) : 0, m = sizeof tail - 1;
  return !n || heddle_session_can_write(x->s, path, n < m || strcmp(path + n - m, tail) != 0);
}

// Folders that can_write has made are removed again where nothing came into them: of a job that was ended.
typedef struct {
  const char *path;
  size_t kept; // so much of the path was there
} folder;
static folder folder_of(const char *path) {
  folder f = {.path = path};
  for (size_t n = path ? strlen(path) : 0; n && !f.kept; n--) {
    char *part = path[n] && path[n] != '/' ? NULL : strndup(path, n);
    if (part && !access(part, F_OK)) f.kept = n;
    free(part);
  }
  return f;
}
static void remove_empty(const folder *f) {
  char *path = f->path ? strdup(f->path) : NULL;
  for (size_t n = path ? strlen(path) : 0; n > f->kept; n--) {
    if (path[n] && path[n] != '/') continue;
    path[n] = 0;
    if (rmdir(path) && errno != ENOENT) break;
  }
  free(path);
}

static bool start_with_folders(cli *x, heddle_program *d) {
  const folder made[] = {folder_of(x->output), folder_of(x->run_save), folder_of(run_trace_of(x))};
  const bool ok = can_write(x, x->output) && can_write(x, x->run_save) && can_write(x, run_trace_of(x)) &&
                  run_start(x, d);
  for (size_t k = 0; k < sizeof made / sizeof *made && !ok; k++) remove_empty(&made[k]);
  return ok;
}

bool cmd_run(cli *x) {
  heddle_plan *b;
  heddle_program *d;
  beginning check;
  if (!agree(x)) return false;
  heddle_machine *m =
      x->machine ? machine_of(x) : NULL; // whose costs choose communication, as in a simulation
  if ((x->machine && !m) || !plan_of(x, m, &b, &d)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2'", "`heddle run` needs a plan");
  d = heddle_plan_apply(b);
  if (!heddle_program_validate(d)) return false;
  const char *plan = heddle_plan_name(b);
  if (is_rank()) return run_one_rank(x, m, d, plan);
  if (!slots_suffice(x, heddle_program_ranks(d)) || !begin(x, d, plan, &check))
    return false; // told once, not by each rank
  heddle_tensors_free(check.t), heddle_data_free(check.data);
  return start_with_folders(x, d);
}
