// machine.h - the hardware a program is to run on: kinds of devices, nodes, links, the fabric between nodes.
// Layer 3: knows nothing of programs; what work costs on it is src/cost's.
//
// Idea: a machine is text (docs/machines.md) and nothing is built in: presets are files in machines/, of
// which the library carries copies so that it works from anywhere. Ranks are numbered node by node.
// Collectives see the machine through a `machine_placement`: how many members a subgroup has on how many
// nodes and what its slowest link gives while all subgroups of the instruction run at once. Equal placements
// cost equally, wherever they are.
//
// Units: bytes, bytes/s, FLOP/s as double; picoseconds as i64. Every bandwidth is per direction.
#ifndef HEDDLE_MACHINE_H
#define HEDDLE_MACHINE_H
#include "op/op.h"

// ---- quantities with units (units.c) ---------------------------------------------------------------------
// Decimal prefixes k M G T P E, binary Ki Mi Gi Ti Pi; B is bytes, b or bit is bits; times s ms us ns ps.
typedef enum {
  UNIT_NUMBER,
  UNIT_BYTES,
  UNIT_BITS,
  UNIT_BYTES_PER_S,
  UNIT_FLOP,
  UNIT_FLOP_PER_S,
  UNIT_PS,
  UNIT_KINDS
} unit_kind;
// "25 GB/s", "8 us", "75 %". Anything else than a quantity of kind `want` is E_UNIT naming `what`, and false.
bool unit_parse(ctx *c, loc at, const char *what, const char *text, unit_kind want, double *out);
bool unit_read(const char *text, double *out, unit_kind *kind); // the same without diagnostics
void unit_print(strbuf *b, double x, unit_kind kind);           // shortest text that reads back as x

// ---- how far prices are off (spread.c) -------------------------------------------------------------------
// What comparisons of measurements with prices have shown: two in three lie within price * (1 +- spread),
// whether prices are too low or scatter. A row holds for sizes up to `to` that no row of the same name before
// it holds for.
typedef struct {
  const char *of; // what was measured: "gemm", "launch", "all_reduce", ...
  double to;      // bytes or FLOP; HUGE_VAL: any
  double spread;
  u32 count; // measurements; 0: the spread is not known
} spread_row;
typedef struct {
  u32 n;
  const spread_row *row;
  const char *source; // of the measurements
  u64 types;          // element types that products were measured in, as bits; 0: all
  loc at;
} spread_table;
const spread_row *spread_find(const spread_table *t, const char *of, double size); // NULL: not known

// ---- what a machine is made of ---------------------------------------------------------------------------
// Fraction of a peak that is reached, by size of the work. Between two sizes the *time* is linear in the
// size; outside the table the fraction stays. n = 0: 1 everywhere; n = 1: the same at every size.
enum { CURVE_MAX = 12 };
typedef struct {
  u32 n;
  double size[CURVE_MAX], eff[CURVE_MAX];
  loc at;
} eff_curve;
double curve_work(const eff_curve *k, double size); // size over efficiency: the work it amounts to at peak
double curve_best(const eff_curve *k);              // largest fraction reached at any size

typedef enum { EFF_GEMM, EFF_CONV, EFF_MEMORY, EFF_ELEMENTWISE, EFF_REDUCTION, EFF_MOVE, EFF_KINDS } eff_kind;
const char *eff_name(eff_kind k);
typedef struct {
  sym name;
  double rate[DT_COUNT];    // FLOP/s of matrix products by element type; 0: none
  double vector;            // FLOP/s of everything else
  double mem_bw;            // bytes/s
  i64 mem_bytes;            // on the device
  i64 usable_bytes;         // left to a program: without context, communication buffers, fragmentation
  i64 alloc_bytes;          // allocations are rounded up to this
  i64 launch_ps;            // what a kernel takes beyond its work
  u32 cores;                // of a host's processor, which a rank on it computes with; 0: it is no processor
  eff_curve eff[EFF_KINDS]; // gemm, conv: of `rate`, by FLOP; the others: of `mem_bw`, by bytes
  loc at, vector_at, launch_at; // where they are said
  spread_table spread;          // by kind of work; products also "memory" and "launch", by what decides
} device_kind;

// switch: every device reaches every other at its full bandwidth. mesh: one link per pair, each
// bandwidth/(n-1). ring: two neighbours, bandwidth/2 each way. pairs: devices 2k and 2k+1 only; others meet
// through the host.
typedef enum { LINK_NONE, LINK_SWITCH, LINK_MESH, LINK_RING, LINK_PAIRS } link_shape;
const char *link_name(link_shape s);
typedef struct {
  link_shape shape;
  double bw, eff;        // of one device, in all; the fraction of it that large transfers reach
  i64 start_ps, step_ps; // of a transfer or collective once; of every step of it
  loc at;
  spread_table spread; // by operator
} machine_link;
typedef struct {
  u32 count; // nodes of this kind
  u32 ndevs;
  const u16 *dev;      // device kinds, in order
  machine_link inside; // between the devices of a node
  machine_link host;   // between a device and host memory
  u32 host_shared;     // so many devices share the bandwidth of one such link: they are behind one switch
  i64 host_bytes;      // host memory of the node; 0: not said
  double host_mem_bw;  // of it, bytes/s, reads and writes together; 0: not said
  double host_mem_eff; // the fraction of it that an update on the host reaches
  double host_rate;    // FLOP/s of the node's processors; 0: only memory counts
  u32 nics;
  double nic_bw; // of one
  loc at;        // where it is said
} node_kind;
typedef struct {
  double eff;     // fraction of the NICs' bandwidth that large transfers reach
  double oversub; // 2: the spine carries half of what the nodes can send
  u32 leaf;       // nodes below one switch, among which there is no oversubscription; 0: every node alone
  i64 start_ps, step_ps;
  loc at;              // none: the usual figures
  spread_table spread; // by operator
} fabric_info;

// DistIR's cost model on this machine (cost/distir.c). Where a file says nothing: its published defaults.
enum { DISTIR_FITS = 8 };
typedef struct {
  i64 launch_ps;
  double mem_bw, rate; // bytes/s, FLOP/s
  double network;      // bytes/s between any two devices
  u32 nfits;           // all_reduce over n members: a * bytes + b * n + c seconds
  struct {
    u32 n;
    double a, b, c;
  } fit[DISTIR_FITS];
} distir_params;

// ---- times of layers that somebody measured (profile.c; docs/profiles.md) -------------------------------
typedef enum { PROFILE_FORWARD, PROFILE_BACKWARD, PROFILE_UPDATE, PROFILE_TIMES } profile_time;
// What one device of the kind takes for one layer on a microbatch of so many samples, where so many devices
// share every operator (tensor parallelism), their communication with each other included. Layers are names
// here; which instructions they are, src/plan/measured.c says.
typedef struct {
  const char *layer; // a block of the model by the name of its function, "first" or "last"
  sym device;
  u32 tensor;
  i64 samples;
  double ps[PROFILE_TIMES]; // below 0: not said
  u32 line;                 // of the file
} profile_row;
typedef struct {
  const char *file;
  u32 n;
  const profile_row *row; // by device, layer, tensor, samples
} machine_profile;

// ---- times of events that somebody measured (events.c; docs/profiles.md) ---------------------------------
// How long one instruction takes, by what it is: a line of text, which cost/key.c writes and reads.
typedef enum { EVENT_MEASURED, EVENT_SCALED, EVENT_FITTED, EVENT_SOURCES } event_source;
typedef struct {
  const char *key;
  i64 ps;        // median
  double spread; // two repeats in three lie within ps * (1 +- spread)
  u32 count;     // repeats
  event_source source;
} measured_event;
// What events of one kind take, by their size: the sum of terms, 1, bytes, FLOP and members, each times ps of it (cost/fit.c).
enum { FIT_TERMS = 4 };
typedef struct {
  const char *kind; // "matmul f32 on cpu-core", "all_reduce f32 on 1 node"
  double ps[FIT_TERMS];
  double least[FIT_TERMS], most[FIT_TERMS]; // of the events that it was made of
  // Of events that it was not made of: two in three lie within ps * (1 +- spread); the furthest; on average. The last is not
  // kept in a database.
  double spread, worst, mean;
  u32 count; // events
} event_fit;
typedef struct {
  const char *file;
  u32 n;
  const measured_event *row; // by key
  hmap by_key;               // hash -> number
  u32 nfits;
  event_fit *fit; // by kind
} machine_events;

typedef struct {
  u16 kind, index;
  u32 node;
} machine_dev; // device kind, position in its node, node
typedef struct machine {
  ctx *c;
  sym name, about;
  u32 nkinds, nnode_kinds, nnodes, nranks;
  device_kind *kind;
  const node_kind *node_kind;
  fabric_info fabric;
  distir_params distir;
  const machine_dev *dev;              // [rank]
  const u16 *node;                     // [node] -> node kind
  const machine_profile *profile;      // NULL: none
  const machine_events *events;        // NULL: none
  struct machine_predictor *predictor; // NULL: none
} machine;
enum { MACHINE_RANKS_MAX = 1 << 20, MACHINE_NODE_MAX = 256 }; // ranks; devices of one node
enum { DEVICE_CORES_MAX = 4096 };

// ---- reading and printing (load.c, parse.c, print.c) -----------------------------------------------------
// A spec is a preset ("dgx-h100"), a file ("my.yaml"), either of them a number of times ("dgx-h100*128": that
// many times the nodes) and with changes ("dgx-2 usable=28GB"), or a machine in one line
// ("2x8 h100 nvlink=450GB/s ib=8x400Gb/s", segments joined by +). Presets are sought in ./machines, the
// folders of HEDDLE_MACHINES (joined by :), the installation, and the library. NULL and a diagnostic
// (E_MACHINE, E_UNIT) if bad. The result belongs to `a`.
machine *machine_load(ctx *c, arena *a, const char *spec);
machine *machine_parse(ctx *c, arena *a, sym file, const char *text, size_t n); // the text of a machine file
void machine_print(const machine *m, strbuf *out);        // as a file that reads back the same
u32 machine_presets(arena *a, const char *const **names); // of all of these places, sorted

// Times of layers from CSV with a header (layer, device, samples, tensor, and any of forward_us, backward_us,
// update_us, in any order; '#' begins a comment line) become m->profile; lines about other kinds of device
// are left out. False and diagnostics (E_PROFILE) at the line: unknown or missing columns, numbers that are
// none, a line twice, or a kind of device of the machine without any. In the machine's arena `a`.
bool machine_profile_parse(machine *m, arena *a, sym file, const char *text, size_t n);
const char *machine_title(arena *a, const machine *m); // its name, and where measured times come from
const char *machine_command(arena *a,
                            const machine *m); // as words behind --machine: "here --profiles events.db"
u64 machine_profile_hash(const machine *m);    // of all measured times; 0: there are none
static inline bool machine_is_measured(const machine *m) { return m->profile || m->events || m->predictor; }

// A database of times of events: an SQLite file with one table, `events`, of (key, machine, versions, median_ps, spread,
// count, source). What is put is there as a whole or not at all, whenever the process ends.
typedef struct event_db event_db;
bool event_db_is(const void *start, size_t n); // does a file that begins so hold one?
// create: a file that is not there, or empty, becomes one. NULL and a diagnostic (E_PROFILE): it is damaged, or no such
// database.
event_db *event_db_open(ctx *c, arena *a, const char *path, bool create);
void event_db_close(event_db *db); // NULL is fine
// Rows of one machine, by its name, by key. versions: only of these; NULL: of each key those of this Heddle, else the last.
bool event_db_get(event_db *db, arena *a, const char *name, const char *versions, measured_event **rows,
                  u32 *n);
bool event_db_put(event_db *db, const char *name, const char *versions, const measured_event *rows, u32 n);
bool event_source_find(const char *name, event_source *out); // "measured", "scaled" or "fitted"
// The fits of one machine, which replace those that there are, and reading them: none where nobody has made any.
bool event_db_put_fits(event_db *db, const char *name, const event_fit *f, u32 n);
bool event_db_get_fits(event_db *db, arena *a, const char *name, event_fit **fits, u32 *n);
// The times of the machine of this name become m->events. False and diagnostics: there are none, or the file is damaged.
bool machine_events_read(machine *m, arena *a, const char *path);
const measured_event *machine_events_find(const machine_events *e, const char *key); // NULL: not measured

// A program of the user's that is asked for times of events (predictor.c; docs/profiles.md): started by the shell, it gets one
// event a line and answers each with a line, microseconds, or "-". wait_ms: for an answer; 0: PREDICTOR_WAIT_MS. False and a
// diagnostic: it cannot be started.
enum { PREDICTOR_WAIT_MS = 10000 };
typedef struct machine_predictor machine_predictor;
bool machine_predictor_start(machine *m, arena *a, const char *command, int wait_ms);
void machine_predictor_stop(machine *m);                 // there need be none
const char *machine_predictor_command(const machine *m); // NULL: there is none
typedef enum {
  PREDICTION_KNOWN,
  PREDICTION_NONE,
  PREDICTION_FAILED
} predicted_how; // FAILED: with a diagnostic
predicted_how machine_predict(const machine *m, ctx *c, const char *key, i64 *ps); // from any thread

// ---- questions (topology.c) ------------------------------------------------------------------------------
static inline const device_kind *machine_kind_of(const machine *m, u32 rank) {
  return &m->kind[m->dev[rank].kind];
}
// Host memory of a node that programs may use: nine tenths, in whole MiB.
i64 machine_host_usable(const node_kind *nk);
bool machine_has_host(const machine *m); // does every node say how much, and how its devices reach it?
bool machine_one_kind(const machine *m, u32 first,
                      u32 n); // are all devices of ranks [first, first + n) of one?
// The first `most` of these ranks whose devices are of the kind. Returns how many there are.
u32 machine_ranks_of_kind(const machine *m, u32 first, u32 n, u32 kind, u32 most, u32 *rank);
// For lower bounds: the most that a product of any size reaches, 0 if there is no rate; bytes/s of memory.
static inline bool machine_has_cores(const machine *m) { // are any of its devices processor cores?
  for (u32 k = 0; k < m->nkinds; k++)
    if (m->kind[k].cores) return true;
  return false;
}
double machine_top_flops(const device_kind *k, dtype t);
double machine_top_bw(const device_kind *k);
// Where all devices and nodes are alike: ranks lie as others do so many ranks further on (devices of a node,
// times nodes below a switch). 0: they are not.
u32 machine_period(const machine *m);
// Can the devices of a node communicate, over its link or its host?
static inline bool machine_joined(const node_kind *nk) {
  return nk->ndevs < 2 || nk->inside.shape != LINK_NONE || nk->host.shape != LINK_NONE;
}
// Why devices of the kind cannot communicate with those beside them, or with other nodes. NULL: they can.
const char *machine_apart(const machine *m, u32 kind);
// Does it have this rank? Else a diagnostic at `at`.
bool machine_has_rank(ctx *c, const machine *m, u32 rank, loc at);
machine *machine_twice(arena *a,
                       const machine *m); // with twice the nodes; NULL: more devices than there may be

machine *machine_more_memory(arena *a, const machine *m, u32 percent); // usable of every device
// Without the nodes that have a device of the kind; NULL: none is left. Ranks are numbered anew.
machine *machine_without(arena *a, const machine *m, u32 kind);

// A subgroup of ranks on the machine, without padding (it is hashed and compared as bytes). Bandwidths are
// what its slowest member or node gets; 0: there is no link.
typedef struct {
  u32 n, nodes, per_node; // members; nodes they lie on; members on the fullest of them
  u32 even;               // 1: equally many on every node
  double in_bw;           // of one member, inside its node, when each sends to the next in a ring
  double all_bw;          // ... when each sends evenly to all others
  double pair_bw;         // ... when one sends to any one other
  double out_bw;     // of a node: to and from other nodes, for this subgroup while all its siblings run too
  double dev_bw;     // of one member, likewise
  i64 start_ps;      // once
  i64 in_ps, out_ps; // of a step inside a node, between nodes
} machine_placement;
// The placements of `nsub` subgroups of n ranks that run at once: ranks[s*n .. s*n+n) are the members of
// subgroup s.
void machine_placements(const machine *m, arena *scratch, const u32 *ranks, u32 nsub, u32 n,
                        machine_placement *out);
// The placements of n transfers from[k] -> to[k], at_once of which run at a time, on all nodes in the same proportion; `n` of
// a placement is 1 where both are the same rank.
void machine_pairs(const machine *m, arena *scratch, const u32 *from, const u32 *to, u32 n, u32 at_once,
                   machine_placement *out);
#endif
