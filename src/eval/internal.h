// internal.h - what the files of eval/ share: pieces, where they lie, and the values of a running function.
#ifndef HEDDLE_EVAL_INTERNAL_H
#define HEDDLE_EVAL_INTERNAL_H
#include "eval/eval.h"
#include "kernel/kernel.h"
#include "live/live.h"

// ---- pieces --------------------------------------------------------------------------------------------
// Ranks whose pieces are equal by construction (an all-gather's) share one; nobody writes to a shared one.
typedef struct buf buf;
struct buf {
  buf *prev, *next;     // all that are alive, so that a failed run leaves none behind; or that are kept
  i64 bytes, room;      // of the piece; of the memory, 0: not ours
  u32 refs, turn;       // turn: storage's number of it + 1; 0: none
  struct errand *until; // whose result it is, which is not yet there (beside.c); NULL: it is
  buf *of;              // the piece that it is a part of, in whose memory it lies; NULL: it has its own
  char *data;           // behind the header, an input's own, or in storage's block
};

typedef VEC(buf *) buf_list;

// ---- holdings: which elements the members hold (holdings.c) --------------------------------------------
// Equal index maps are one object, so comparing pieces is comparing pointers.
typedef struct {
  i64 n, extent;
  i64 *index;   // in the piece -> in the tensor
  i64 *inverse; // in the tensor -> in the piece or -1
  ranges has;   // of the tensor
} imap;
typedef struct {
  i64 dim[DIMS_MAX], elems;
  const imap *map[DIMS_MAX]; // NULL: whole
} spot;
typedef struct { // of one type on one group at one temporal point
  const type_info *t;
  dtype stored;
  bool even;
  u32 n; // members
  spot *at;
} holdings;

typedef struct {
  coords at;
  u64 fixed; // bit x: temporal axis x is fixed
} point;

typedef struct held held;
struct held { // a value of a running function
  group g;
  u32 n;       // members; elements of a tuple
  buf **piece; // by member
  held *elem;  // of a tuple
};

enum { BUF_CLASSES = 64 * 8 };

typedef struct {
  const prog *p;
  ctx *c;
  eval_opts o;
  arena *a, *stack, *scratch; // the run's; frames; one instruction's
  arena **temps;              // one instruction's, of other threads
  buf *live;                  // list head
  buf *kept[BUF_CLASSES];     // memory of pieces that ended, by class of size
  i64 live_bytes, kept_bytes, most_bytes;
  const eval_link *link;                                                 // NULL: all ranks are here
  eval_where where;                                                      // with a link
  void (*watch)(void *arg, const func_info *f, const instr *i, group g); // eval_rank_watch; NULL: nobody
  void *watcher;
  struct recorder *record; // NULL: nobody wants to know what runs
  struct beside *beside;   // communication that is under way beside computation; NULL: none was
  struct storage *storage; // of the steps of a rank; NULL: pieces have memory as they come
  VEC(imap *) maps;
  VEC(holdings *) holdings;
  VEC(u64) holdings_key; // three words each
  hmap map_index, holdings_index;
  const u32 **last; // by function: of its lifetimes; NULL: not yet known
  hmap part_map;    // of a rank: function and group that it is called on -> number in parts + 1
  VEC(struct own_part **) parts;
  progress bar;
  u64 done;   // executions
  i64 update; // of the call that runs: which update of its step it is, from 1; 0: it does not say
} interp;

typedef struct {
  u32 index, number; // in the function; that record_number gave it
} waiting;
typedef struct {
  func fn;
  const func_info *f;
  group g;
  point at;
  held *v;
  const u32 *last;         // of its lifetimes
  VEC(waiting) waiting;    // instructions that this rank will receive something by, in order (late.c)
  struct own_part **parts; // by instruction, of a rank (linked.c); NULL: all ranks are here
} frame;

buf *eval_buf(interp *m, i64 bytes);
buf *eval_borrow(interp *m, void *data, i64 bytes); // shared from the start, so nobody writes to it
static inline buf *buf_share(buf *b) { return b->refs++, b; }
buf *eval_within(interp *m, buf *of, i64 at,
                 i64 bytes);       // a part of a piece, from byte `at` on; nobody writes to it
void eval_drop(interp *m, buf *b); // NULL is fine
void eval_drop_kept(interp *m);    // gives memory that is kept for later pieces back

// The memory of a rank's steps (storage.c). A dry step has pieces without memory: what copies, computes or communicates
// does nothing. storage_plan gives the pieces that it has seen their places, in which steps between storage_begin and
// storage_end put them: these must ask for the same ones.
typedef struct storage storage;
void storage_new(interp *m); // m->storage
void storage_free(storage *x);
buf *storage_like(interp *m, const buf *b);    // a parameter's: first of all, in a dry step
void storage_on_host(interp *m, const buf *b); // in a dry step: it lies there
void storage_dry(storage *x);
void storage_plan(storage *x);
void storage_take(storage *x);        // the memory; steps are no longer dry
bool storage_known(const storage *x); // was it taken?
void storage_begin(storage *x);
void storage_end(storage *x);
eval_memory storage_memory(const storage *x);
bool eval_is_dry(const interp *m);

// NULL and a diagnostic at `where` if the layout has a temporal axis that the point does not fix.
const holdings *eval_holdings(interp *m, type t, group bound, const point *at, loc where);
bool eval_same(const spot *x, const spot *y, u32 nd);
ker_tensor eval_tensor(const holdings *p, u32 member, void *data);
static inline i64 spot_bytes(const holdings *p, u32 member) {
  return p->at[member].elems * dtype_bytes(p->stored);
}
static inline u32 eval_members(const interp *m, group g) { return group_size(m->p->sp, g); }
static inline u32 eval_rank_of(const interp *m, group g, u32 member) {
  return group_rank(m->p->sp, g, member);
}
static inline int eval_member(const interp *m, group g, u32 rank) { return group_place(m->p->sp, g, rank); }
// Is the member run by this process?
static inline bool eval_mine(const interp *m, group g, u32 member) {
  return !m->link || eval_rank_of(m, g, member) == m->link->rank;
}
bool eval_gone(interp *m, u32 rank, loc where); // false, with E_PEER

// Copies into the piece d of dp what the piece s of sp holds of it; returns how many elements. `done`, if
// given, has a byte per element of d: elements marked are left alone, those written are marked.
i64 eval_copy(interp *m, const holdings *dp, u32 d, void *dst, const holdings *sp, u32 s, const void *src,
              u8 *done);

// Whole arrays (whole.c): an input into the pieces of a value, an output from them.
bool eval_cut(interp *m, const holdings *p, const eval_array *x, held *v, loc where);
bool eval_assemble(interp *m, const holdings *p, const held *v, eval_array *out, arena *a, loc where);

// ---- running (eval.c) -----------------------------------------------------------------------------------
held eval_held_new(interp *m, type t, group bound); // room for a value of this type; pieces not yet there
void eval_held_share(held *to, const held *from);
void eval_held_drop(interp *m, held *h);
bool eval_enter(interp *m, const eval_array *in, held *args); // the pieces of main's parameters
bool eval_enter_one(interp *m, u32 k, const eval_array *x, held *arg);
// Takes the pieces of the arguments; what is left of them is the caller's to drop. Makes the results.
bool eval_main(interp *m, held *args, held *results);
bool eval_exec(interp *m, frame *f, u32 index); // instruction `index` of the function, from 0
void eval_open(interp *m);                      // its arenas
void eval_close(interp *m);                     // and all pieces

// ---- recording (record.c) ---------------------------------------------------------------------------------
typedef struct recorder recorder;
// Of this rank, from now on: interp's link and record become the recorder's. most: events that are kept.
recorder *record_new(arena *a, interp *m, u32 nranks, u64 most);
// eval_exec, noted. number: that record_number gave it where it stands; 0: it runs there.
bool record_exec(recorder *r, interp *m, frame *f, u32 index, u32 number);
u32 record_number(recorder *r);
void record_step_begin(recorder *r);
void record_step_end(recorder *r);
struct trace_source *record_timeline(const recorder *r, arena *a, const eval_job *of,
                                     eval_recorded *about); // recorded.c
// NULL: nothing is recorded now.
static inline recorder *recorder_of(const interp *m) { return eval_is_dry(m) ? NULL : m->record; }
// While a send runs, of one target: gives only the member of the same number to it?
void record_pairs(recorder *r, bool only);
struct transfer;
// The communication that runs consists of these messages, which get their numbers now; record_messages once they are done.
void record_number_messages(recorder *r, struct transfer *t);
void record_messages(recorder *r, const struct transfer *t);
struct errand;
void record_begun(recorder *r, struct errand *e); // the communication that runs goes on beside computation
void record_waits(recorder *r);                   // the rank waits for the first of those
void record_ended(recorder *r, struct errand *e); // which has ended

// ---- receiving late (late.c) ------------------------------------------------------------------------------
// Is it a send by which this rank only receives? It may come when its value is used: the sender waits for nobody.
bool eval_receives_only(const interp *m, const frame *f, const instr *i);
// How many of f->waiting must have come before the instruction runs (NULL: before the function ends).
u32 eval_due(const interp *m, const frame *f, const instr *i);

// ---- portions (portions.c) ---------------------------------------------------------------------------------
// What the piece of a target and that of a giver have in common, in portions whose elements are in the target's order.
typedef struct {
  u32 nd, at;   // a portion: one index of each dimension before `at`, some of that, all of those behind
  size_t bytes; // of an element
  i64 n[DIMS_MAX], to_dim[DIMS_MAX], from_dim[DIMS_MAX]; // common; of the pieces
  const i64 *to[DIMS_MAX], *from[DIMS_MAX];              // where these lie in each; NULL: the same
  i64 elems, some, behind;
  u32 each, portions; // of dimension `at`; altogether, 0: they have nothing in common
} meeting;
// most: bytes of a portion, if one element is not more.
meeting *meeting_of(arena *a, const spot *to, const spot *from, u32 nd, size_t bytes, i64 most);
i64 portion_bytes(const meeting *x, u32 portion); // no portion has more than number 0
// Where its elements lie in a piece, one after the other; -1: they do not.
i64 portion_offset(const meeting *x, u32 portion, bool of_target);
void portion_pick(const meeting *x, u32 portion, const char *from, char *together); // of the giver's piece
void portion_put(const meeting *x, u32 portion, char *to, const char *together);    // into the target's
void portion_copy(const meeting *x, char *to, const char *from, char *space); // all; space: for a portion

// What a piece is combined from, a portion at a time.
typedef struct {
  u32 n; // givers
  dtype t;
  reduction red;
  const meeting **part;
  const char **piece; // by giver: its piece, where it is here
  char **slot;        // where its portion comes, or is picked to; NULL: it lies together in the piece
  const char **at;    // room for where the portions at hand lie
  char *to;           // the piece; may be that of a giver with just these elements
} summing;

// ---- transfers (transfer.c) --------------------------------------------------------------------------------
// What this rank sends and receives for one communication, in order, put together before anything moves.
typedef struct {
  bool sends;
  u32 peer, hop, chunk; // the other rank; step of the ring, part of what moves in it
  u32 seq;              // number of the message among those of sender and receiver; 0: nothing is recorded
  char *data;           // what leaves, or where it comes
  char *into;           // what comes is combined into this; NULL: it stays where it came
  i64 bytes;
  const meeting
      *part; // it is picked from `piece` before it leaves, or put there when it has come; NULL: it is not
  u32 portion;
  char *piece;
  const summing *sum;     // all of this portion has come now; NULL: not all, or it is no sum
  i64 start, dur, waited; // of what is recorded, in ticks (ticks.h)
  bool early;             // it has been sent before the transfer's turn
} transfer_step;
typedef struct transfer {
  arena *a;
  dtype t; // of elements
  reduction red;
  bool timed, messages; // steps get their times; each is recorded
  loc where;
  u32 at; // the next step
  VEC(transfer_step) step;
} transfer;
bool transfer_run(interp *m, transfer *t); // false, with E_PEER
// What the link can do meanwhile: called before a receive with nothing left to send. False: *gone is not there any more.
typedef bool transfer_idle(void *arg, u32 *gone);
// The same without diagnostics, in any thread. False: *gone, the other end, is not there any more. idle: may be NULL.
bool transfer_go(const eval_link *l, eval_where *w, transfer *t, transfer_idle *idle, void *arg, u32 *gone);
// Sends what it begins with, as far as that needs no memory that another transfer may be using, and until so much is under
// way. bytes: adds how much.
bool transfer_early(const eval_link *l, eval_where *w, transfer *t, i64 most, i64 *bytes, u32 *gone);
bool transfer_sends(const transfer *t); // is anything left to send?

// ---- beside computation (beside.c) ---------------------------------------------------------------------------
// A communication that has begun and goes on in a thread of its own, over the link's second connections.
typedef struct errand errand;
struct errand {
  errand *next;
  arena *a; // its own, in which all of it is
  transfer t;
  bool (*finish)(interp *m, void *arg,
                 bool came); // makes the result of what has come, and drops what it keeps
  void *arg;
  buf *out;           // the result; NULL: other ranks have it
  struct noted *note; // of the recorder; NULL: none
  bool ended, ok;
  u32 gone;
  int error;       // errno where that was seen
  i64 early_bytes; // of the thread: sent before its turn
};
// Does the instruction run beside computation? Its stream is not the first one, and the link can.
bool beside_takes(const interp *m, const instr *i);
char *beside_room(interp *m, u32 k,
                  i64 bytes);  // k-th room of so many bytes, always the same, of all that goes on beside
errand *beside_new(interp *m); // to be filled in
void beside_begin(interp *m, errand *e);
bool beside_end(interp *m, errand *e); // waits for it and all before it. False and a diagnostic
bool beside_end_all(interp *m);
void beside_close(interp *m); // what cannot end is left behind, with its pieces
static inline bool eval_ready(interp *m, const buf *b) { return !b || !b->until || beside_end(m, b->until); }

// ---- rings (ring.c) ----------------------------------------------------------------------------------------
// A collective of a subgroup whose members stand in a ring: each sends to the next and hears the one before.
typedef struct {
  interp *m;
  const struct end *in, *out;
  reduction red;
  u32 n, at;           // members; this rank's place
  const giver *member; // by place, of the group
} ring;
// Can it go around a ring? The same on all members.
bool ring_takes(const ring *r, opcode op);
// Puts the transfer together that fills the own piece of the result, and for an all-gather the pieces of all members in
// r->in, which the caller puts together. kept: what can be dropped once it has run.
void ring_put(const ring *r, opcode op, transfer *t, buf_list *kept);

// ---- movement (move.c) ---------------------------------------------------------------------------------
typedef struct end { // one end
  group g;
  const holdings *p;
  held *v;
} end;
// What this rank has to do in an instruction's movements: found out when they run first, in the dry step, and kept.
typedef struct own_part own_part;
own_part **parts_of(interp *m, func fn, group g); // by instruction of the function as called on g
// of: of the instruction; NULL: nothing is kept.
bool eval_move(interp *m, const instr *i, const point *when, const end *in, u32 nin, const end *out, u32 nout,
               own_part **of);
// acc[k] = acc[k] (+) x[k]; acc in f64 (t a float type) or i64. fold_begin sets it to what changes nothing.
void eval_fold_begin(void *acc, dtype t, i64 n, reduction r);
void eval_store(void *dst, dtype t, const void *acc, i64 n); // rounded
void eval_fold(arena *scratch, void *acc, const void *x, dtype t, i64 n, reduction r);
// to[k] = x[0][k] (+) x[1][k] .., rounded once. to may be one of them. Takes no memory.
void eval_sum(void *to, const char *const *x, u32 n, dtype t, i64 elems, reduction r);
// to[k] = to[k] (+) x[k], both of type t, rounded.
void eval_fold_stored(void *to, const void *x, dtype t, i64 n, reduction r);
bool eval_holds_all(const spot *x, const spot *of, u32 nd); // has the piece x every element of the other?
#endif
