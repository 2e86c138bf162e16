// run.h - what the files of `heddle run` share: run.c trains as one rank, launch.c starts the ranks, watch.c sees that
// they live.
#ifndef HEDDLE_CLI_RUN_H
#define HEDDLE_CLI_RUN_H
#include "cli/cli.h"
#include <sys/types.h>

enum { PATH_SPACE = 4400 };
bool own_path(char *path, size_t size); // of this program
// The words of the command line that say what the model is, for another command; returns how many (options.c).
int options_of_model(const cli *x, const char **out);
// The best x->measure plans, run one after the other; *best: which was the fastest, 0 the one that the search has first.
// False, and said: none could be run (measure.c).
bool plans_measure(cli *x, heddle_search *f, uint32_t *best);

// ---- resident.c ----------------------------------------------------------------------------------------------
// What a process has in memory now, and the most that it has been. Of it: pages of the program and its libraries; what it
// shares with other processes, through which messages go. 0: the system does not tell.
typedef struct {
  int64_t bytes, most, library, shared;
} resident;
resident resident_now(void);
// What a rank holds in a step; what the places of that take; its process when training began and at its largest; what came
// to that in between beside the places: pages of libraries, memory that is shared, all other.
typedef struct {
  int64_t tensors, places, start, process, library, shared, other;
} held_bytes;
held_bytes held_of(const heddle_run_bytes *own, const resident *start, const resident *end);
held_bytes held_most(const held_bytes *all, uint32_t ranks); // of tensors and processes
void held_json(const held_bytes *all, uint32_t ranks);       // the member "memory"

// ---- output.c ------------------------------------------------------------------------------------------------
// The end of a pipe whose other end is written to `to`, standard output or standard error; -1: none.
int output_begin(int to);
// After the launcher has ended: all is written, and of what Open MPI says of jobs that failed only with tell_held.
void output_end(bool tell_held);

// ---- launch.c ------------------------------------------------------------------------------------------------
bool is_rank(void);                               // a launcher has started this process as one
bool is_rank_of_others(void);                     // ... and not by this program: the user's mpirun or srun
bool is_lone_task(void);                          // of several of srun that do not know each other: told
bool is_first_rank(void);                         // and as rank 0
bool slots_suffice(const cli *x, uint32_t ranks); // of --hostfile; false: said
// Starts as many ranks of this same command as the program has and waits for them. False: the job failed, and is told.
bool launch(cli *x, heddle_program *d);
bool launch_unwatched(const cli *x, uint32_t ranks); // so many, for as long as they take
// From here on SIGINT, SIGTERM and SIGHUP end the child, if there is one, and not this process, which has to tidy up.
void folder_remove(const char *dir); // with the files in it
void ends_catch(pid_t child);
bool ends_came(void);
void ends_repeat(void); // ends this process, if one came
void warnings_tell(cli *x,
                   uint32_t rank); // of what every rank has planned: rank 0 tells, unless the launcher has

// ---- watch.c -------------------------------------------------------------------------------------------------
// Ranks report to one process where they are, over TCP. Whose connection closes has died; of whom nothing comes for the
// time of --hang-timeout is stopped; ranks that wait for each other for so long are stuck. A rank that computes reports,
// however long it takes, so that it never counts.
static const char WATCH_WORD[] = "HEDDLE_RUN_WATCH"; // in the environment of ranks: the address
typedef struct watch watch;
watch *watch_open(const cli *x, heddle_program *d, bool remote); // NULL: no watch, for reasons of the system
const char *watch_address(const watch *w); // that ranks report to, as watch_join takes it
// Until the launcher ends (its wait status), or without one until all ranks have: then 0. What happened to ranks is a
// diagnostic of the program's session.
int watch_ranks(watch *w, pid_t launcher);
void watch_told(
    void); // a signal has ended the job: it is over some seconds later, whatever its launcher does
void watch_close(watch *w);
bool watch_knows_why(const watch *w); // the job has failed, and it or a rank has said why

enum { ADDRESS_SPACE = 320 };
// The same in a process of its own, for ranks that another launcher has started. address: of ADDRESS_SPACE bytes; "": nobody
// watches.
void watch_fork(const cli *x, heddle_program *d, char *address, size_t size);

typedef struct {
  int fd;
  uint32_t rank;
  uint64_t token; // one for each run
  double every_s;
} watched; // a rank's end; fd -1: nobody watches
watched watch_join(const char *address,
                   uint32_t rank); // where nobody can be reached, this is said and no error
void watch_follow(const watched *w,
                  const heddle_run *r); // whose place its reports, which begin with watch_join, tell
// TOLD: this rank failed and asks whether it says why; SAID: it has; ENDED: by its launcher; TERMINATED: by a signal from elsewhere; STARVED: by an error, with no
// memory left.
typedef enum {
  REPORT_BEAT,
  REPORT_TOLD,
  REPORT_SAID,
  REPORT_ENDED,
  REPORT_TERMINATED,
  REPORT_STARVED,
  REPORT_DONE
} report_kind;
void watch_tell(const watched *w, report_kind k);
// This rank has failed: is it the one that says why? Another one may have been first. Tells REPORT_TOLD.
bool watch_says_why(const watched *w);
#endif
