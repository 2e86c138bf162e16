// job.h - the part of heddle.h about jobs on real machines: traces of them, ranks that train, what instructions take.
#ifndef HEDDLE_JOB_H
#define HEDDLE_JOB_H
#ifndef HEDDLE_H
#error "include heddle.h, which includes this"
#endif

// ---- traces of real jobs --------------------------------------------------------------------------------
// A graph pass of yours, tried by the question `optimize` beside its own (examples/pass.c). Of one worker's step a pass
// sees the kernels in the order they run, and proposes changes one after the other; those that make the step shorter
// are kept. Indices of kernels stay.
typedef struct heddle_tuning heddle_tuning; // a step as it is now; lives as long as the call
typedef struct {
  const char *name;
  enum { HEDDLE_FORWARD, HEDDLE_BACKWARD, HEDDLE_UPDATE } phase;
  int64_t time_ps;        // before fusing
  int64_t gradient_bytes; // that are communicated once it has ended; 0: none
  bool critical;          // on the critical path when the pass began
  bool fused;             // with the kernel before
} heddle_kernel;
uint32_t heddle_tuning_kernels(const heddle_tuning *t);
bool heddle_tuning_kernel(const heddle_tuning *t, uint32_t k,
                          heddle_kernel *out);                         // false: there is no such kernel
bool heddle_tuning_set_time(heddle_tuning *t, uint32_t k, int64_t ps); // false: no such kernel, or below 0
// Of the gradients that the kernel makes together. False: it makes none, or below 0.
bool heddle_tuning_set_gradient(heddle_tuning *t, uint32_t k, int64_t bytes);
bool heddle_tuning_fuse(heddle_tuning *t, uint32_t k); // false: it cannot be fused with the kernel before
typedef struct {
  const char *name;
  bool (*propose)(void *arg, uint32_t number,
                  heddle_tuning *t); // false: there is no such proposal, nor later ones
  void *arg;
} heddle_pass;

// What can be asked of the traces of a job (docs/diagnosis.md).
typedef struct {
  const char *name, *operands; // "info", "PATH..."
  const char *options; // of heddle_trace_options that it takes, as the command line calls them, by commas
  const char *about, *example; // example: command lines, one a line
  const char *answers;         // what its help says of it, in lines
} heddle_question;
bool heddle_question_get(uint32_t index, heddle_question *out); // false past the end
typedef struct {
  const char *output; // file to write; NULL: none
  uint32_t top;       // rows of tables; 0: as the table has it
  const char *steps;  // of training, "3" or "3-5,8"; NULL: all
  uint32_t nset;      // changes, "rank 3 = median"
  const char *const *set;
  const char *to;       // format to convert to; NULL: not said
  int64_t memory_bytes; // of a device; 0: not said
  uint32_t npasses;     // of `optimize`
  const heddle_pass *passes;
  uint32_t ranks;           // that the job is to have; 0: not said
  heddle_machine *machine;  // whose model extrapolates; NULL: none
  const char *timeline;     // file for a timeline of measured and predicted; NULL: none
  heddle_result *predicted; // simulated with options.timeline: what questions with the option "plan" need
  const char *use_passes;   // of `optimize`: its own graph passes, "op_fusion,half"; NULL: the usual ones
} heddle_trace_options;
// The answer, from files and folders with one file for each rank. The string lives as long as the session. NULL and
// diagnostics if nothing can be made of the files.
const char *heddle_trace_ask(heddle_session *s, const char *question, uint32_t n, const char *const *paths,
                             const heddle_trace_options *o, heddle_format f);

// ---- running ----------------------------------------------------------------------------------------------
// One rank of a distributed program in this process, the others in processes (or threads) of their own. What joins them
// is the caller's: MPI, sockets. Messages between two ranks arrive in the order in which they were sent.
typedef struct heddle_link heddle_link;
struct heddle_link {
  uint32_t rank; // this one
  void *arg;
  // Returns at once; the data is the caller's again. False: the other end is gone.
  bool (*send)(void *arg, uint32_t to, const void *data, int64_t bytes);
  bool (*receive)(void *arg, uint32_t from, void *data, int64_t bytes); // waits for exactly so many bytes
  // The sum of `data` over n ranks, this one among them, in its place on each of them; largest: the maximum. bytes: of an
  // element, f32 or f64. All of them call it with the same list. NULL: the link has none. False: the other end is gone.
  bool (*all_reduce)(void *arg, const uint32_t *ranks, uint32_t n, void *data, int64_t count, int bytes,
                     bool largest);
  uint32_t
      threads; // that this rank computes with; 0: one for each core that the process may use. Results do not depend on it
  // Connections of their own between the same ranks, which another thread may use at the same time; good as long as these. Over
  // them goes what the program puts on other streams than its first, while this rank computes. NULL: there are none, and
  // this rank waits for it.
  const heddle_link *beside;
};
// What `heddle run` loads to join its ranks: a shared object with a function `heddle_transport_open` of the type below, and
// `const int heddle_transport_form = HEDDLE_TRANSPORT_FORM;`, by which one that was built for other structures is refused.
// heddle-mpi.so is one. False: it could not, and `error` says why.
enum { HEDDLE_TRANSPORT_FORM = 1 }; // of heddle_link and heddle_transport: raised when one of them changes
extern const int heddle_transport_form; // of a transport; the library has none
typedef struct {
  uint32_t ranks;
  heddle_link link;
  void (*close)(void *arg,
                bool failed); // waits for what is still under way; failed: ends the job on all ranks
  const char *about;          // "Open MPI v4.1.4": what joins them; NULL: not said
} heddle_transport;
typedef bool heddle_transport_opener(heddle_transport *out, char *error, size_t size);
typedef struct heddle_run heddle_run;
// inputs: of the distributed program, whole; this rank takes its pieces of them. All ranks make the same calls.
heddle_run *heddle_run_new(heddle_program *distributed, const heddle_link *link,
                           const heddle_tensors *inputs);
// The same, and the inputs are spent, so that both are never held at once: free them.
heddle_run *heddle_run_take(heddle_program *distributed, const heddle_link *link, heddle_tensors *inputs);
// Before either, by whoever measures what a run takes: the library of matrix products is loaded and has its own memory for
// every thread of the link, and what was freed so far is the system's again. Changes no result. False: limits of the process leave no
// room for that library, and products are Heddle's own, which are slower.
bool heddle_run_warm(const heddle_link *link);
void heddle_run_free(heddle_run *r);
// One step. Updated weights and states are those of the next one.
bool heddle_run_step(heddle_run *r);
// What a step of this rank holds, known before the first one: the steps' memory is taken then, once.
typedef struct {
  int64_t peak_bytes;      // of all its tensors at once, weights and states among them
  int64_t parameter_bytes; // of them, what it holds before a step: weights, states, data
  int64_t block_bytes;     // of the block in which tensors lie that begin and end within a step
  int64_t place_bytes; // of the places of all: the block, and at most so much at once of those that lie apart
} heddle_run_bytes;
bool heddle_run_memory(heddle_run *r, heddle_run_bytes *out);
// Of the latest step; on rank 0, and 0 on others. False: it has none, or another rank is gone.
bool heddle_run_loss(heddle_run *r, double *loss);
// How all-reduces, reduce-scatters and all-gathers move from now on, the same on all ranks, before the first step: from each
// member to each (chunk_bytes 0, the default), or around a ring in chunks of so many bytes, each of which is recorded as a
// message; HEDDLE_RING_LIBRARY: all-reduces of f32 and f64 that no computation runs beside by the link's own, all others as by
// -1; another number below 0: around a ring in chunks of HEDDLE_RING_BYTES where more than two ranks take part, as `heddle run`
// does and simulations assume. Around a ring sums are of another order, the same on all ranks and in every run.
enum { HEDDLE_RING_BYTES = 256000, HEDDLE_RING_LIBRARY = -2 };
void heddle_run_ring(heddle_run *r, int64_t chunk_bytes);
// What this rank executes is recorded from now on: computation, communication, steps. most: events that are kept, 64
// bytes each (0: 4,194,304, 256 MiB); a step for which there is no room is left out, as are all after it.
bool heddle_run_record(heddle_run *r, uint64_t most);
void heddle_run_number(heddle_run *r, uint64_t number); // that recordings say: one for all ranks of a job
// Writes what was recorded to DIR/rank3.json, for `heddle trace`; the folder is made if need be. The file appears whole
// or not at all. All ranks of a job write to one folder. False and diagnostics: it cannot be written.
bool heddle_run_recorded(heddle_run *r, const char *dir);
// All parameters as they are now, whole, on rank 0; without elements on others.
heddle_tensors *heddle_run_parameters(heddle_run *r);
// N steps of training in this process, with all ranks' pieces, of the parameters t: what a run on ranks is to compute. data: NULL,
// or where the samples of each step come from. Every step's loss in `loss`. False and diagnostics.
typedef struct heddle_data heddle_data;
bool heddle_tensors_train(heddle_tensors *t, heddle_program *p, heddle_data *data, uint64_t steps,
                          double *loss);

// Training data: a folder with a file for every input and label (NAME.npy, or NAME.u16 and the like for tokens), or one
// file of tokens, whose next tokens are the labels (docs/running.md). NULL and diagnostics if they do not fit.
typedef struct {
  const char *type; // of tokens in a file whose name does not tell: "u16"; NULL: none
  bool shuffle;     // every epoch anew, by the seed
  uint64_t seed;
} heddle_data_options;
heddle_data *heddle_data_open(heddle_program *p, const char *path, const heddle_data_options *o);
void heddle_data_free(heddle_data *d);
int64_t heddle_data_samples(const heddle_data *d); // of an epoch
int64_t heddle_data_batch(const heddle_data *d);   // of a step
const char *heddle_data_about(heddle_data *d);     // in one line
// Samples `first` and those that follow it are the next step's, as many as the batch. This rank reads what it holds.
bool heddle_run_feed(heddle_run *r, heddle_data *d, int64_t first);

// Checkpoints: one safetensors file with every weight and every state of the optimizer under its name, whole, whatever the
// plan was. It appears when it is complete and on the disk, or not at all.
typedef struct {
  uint64_t step;  // steps that were taken
  int64_t sample; // the next one of the data
  uint64_t seed;  // of weights and of the order of samples
  bool shuffle;
  const char *plan; // in one line
} heddle_checkpoint;
// FOLDER/step-NNNNNN.safetensors. All ranks make the same call; rank 0 writes. It sets the step. keep: so many of the folder's
// checkpoints stay, the newest; 0: all. False and diagnostics: what was there is there.
bool heddle_run_save(heddle_run *r, const char *folder, const heddle_checkpoint *at, uint32_t keep);
// Weights and states of t, which are p's, from a checkpoint, under any plan. heddle_run_begin_at then tells the run, which
// knows of t how many updates they have had; of other tensors it takes as many as its program has in these steps.
bool heddle_tensors_resume(heddle_tensors *t, heddle_program *p, const char *path, heddle_checkpoint *out);
void heddle_run_begin_at(heddle_run *r, uint64_t step);
// The checkpoint of a folder after the most steps: step-NNNNNN.safetensors; or the file itself. The string lives as long as the
// session. NULL and a diagnostic: there is none.
const char *heddle_checkpoint_find(heddle_session *s, const char *path);

// Where a rank is, as any thread may ask at any time; and what is said of ranks that died or hang.
typedef enum { HEDDLE_STARTING, HEDDLE_STEPPING, HEDDLE_READING, HEDDLE_SAVING, HEDDLE_ENDING } heddle_phase;
typedef struct {
  uint64_t step;  // from 1
  uint64_t place; // an instruction, of the program that all ranks run; 0: none
  uint64_t count; // goes up as long as it gets on
  uint32_t top;   // the instruction of main that place is in
  uint32_t waits; // for a message of this rank + 1; 0: it waits for none
  uint32_t sends; // to this rank + 1, just now
  uint32_t phase; // heddle_phase
} heddle_where;
void heddle_run_where(const heddle_run *r, heddle_where *out);
typedef enum {
  HEDDLE_DIED,       // the process of `rank` ended without a word
  HEDDLE_SILENT,     // nothing came from it for `seconds`
  HEDDLE_STUCK,      // `rank` waits for a rank that waits ..., and none of them got on for `seconds`
  HEDDLE_SENDING,    // `rank` has been sending one message for `seconds`, which is to take no time
  HEDDLE_TERMINATED, // SIGTERM has ended `rank`, not from its launcher
  HEDDLE_STARVED     // a signal that tells of an error has ended `rank`, when it was given no more memory
} heddle_fault_kind;
typedef struct {
  heddle_fault_kind kind;
  uint32_t rank, ranks;
  double seconds;
  const heddle_where *where; // by rank, the latest that is known
  const char *saved;         // folder of checkpoints, for the hint; NULL: none
  const char *host;          // of `rank`; NULL: this computer
} heddle_fault;
void heddle_run_fault(heddle_program *distributed, const heddle_fault *f); // as a diagnostic

// ---- measuring ----------------------------------------------------------------------------------------------
// How long the instructions of n distributed programs of one session take where this process runs: every distinct event once, a
// database keeps it (docs/profiles.md). Every process of the transport makes the same calls; they may be fewer than a program
// has ranks. m: what ranks are on; its name is what the times are of. path: of the database, which need not be there;
// what it has of this machine and these versions is not measured again.
typedef struct heddle_profile heddle_profile;
heddle_profile *heddle_profile_run(heddle_program *const *distributed, uint32_t n, heddle_machine *m,
                                   const heddle_transport *t, const char *path);
// The same of the best o->top plans of a search (0: 10), which is searched again with what was measured until all of its best plans are
// known. Rank 0 searches; only there is the database.
heddle_profile *heddle_profile_best(heddle_program *model, heddle_machine *m, const heddle_search_options *o,
                                    const heddle_transport *t, const char *path);
// For rank 0: fits every kind of event that the database has of the machine, so that heddle_machine_profiles answers events
// that were not measured too, and says so (source "fitted"). What it was and how far off it is, is in p's report.
bool heddle_profile_fit(heddle_profile *p, heddle_machine *m, const char *path);
bool heddle_profile_may_keep(heddle_session *s, const char *path); // false: it is there, and no database
// Times that a program of heddle_program_export (format "profile-pytorch") has written, into the database at `path`: all of
// them, or NULL and diagnostics at the lines that are wrong. m: the machine that they must be of; NULL: any. distributed: the
// report says how many of its events have times; NULL: it does not.
heddle_profile *heddle_profile_import(heddle_session *s, const char *file, const char *path,
                                      heddle_machine *m, heddle_program *distributed);
void heddle_profile_free(heddle_profile *p);
const char *heddle_profile_report(heddle_profile *p, heddle_format f); // on rank 0
// A machine file of the machine that this process runs on, as heddle_machine_load takes it, every figure with how it was
// measured. On rank 0; "" on others. The string lives as long as the session. heddle_machine_parse takes it.
const char *heddle_machine_probe(heddle_session *s, const heddle_transport *t, const char *name);

#endif
