// reproduce.h - what the comparisons with published figures share: a model on a machine, the price of one
// plan, the rows of a table, and statistics.
#ifndef HEDDLE_REPRODUCE_H
#define HEDDLE_REPRODUCE_H
#include "front/front.h"
#include "search/search.h"
#include <math.h>
#include <stdlib.h>

// DistIR's conventions: its cost models of time and bytes, blocking sends, one 1F1B pipeline, SGD.
typedef struct {
  const char *model; // mlp-* is trained, as distir_mlp; gpt* infers 8 tokens, without the projection to the
                     // vocabulary
  i64 batch;
  dtype t;
} model_opts;

typedef struct {
  u32 d, t, p, k;
} degrees;

typedef struct {
  bool ok;
  double s;          // of one step
  double peak_bytes; // of the fullest rank
  double bytes[64];  // of every rank
} price;

// DistIR's MLP as its code has it, for SGD: y := f(y w) in every layer, the predictions returned beside the
// loss. f is abs and the loss a product with the labels: they stand for its Relu and Loss, whose gradients
// read what was given to them and have the same prices; Heddle's relu keeps its result only, and its loss
// takes more steps.
prog *distir_mlp(ctx *c, i64 layers, i64 width, i64 batch, dtype t);

// A planned program as its transforms would have written it: distir_program.c. Not to be evaluated.
void distir_rewrite(prog *p);

// Its GPT-2, distir_gpt.c.
prog *distir_gpt(ctx *c, i64 layers, i64 width, i64 nheads, i64 batch, dtype e);

// One model, planned again and again. `params` NULL: what the machine's file says.
typedef struct {
  ctx *c;
  arena *a;
  bool train;
  planner *pl;
  cost_model *k;
} bench_model;
bool model_open(bench_model *b, const machine *m, const model_opts *o, const distir_params *params);
void model_close(bench_model *b);
price model_price(bench_model *b, degrees d);

// Rows of a comma-separated file with one line of names. NULL if it is not there.
typedef struct {
  u32 rows, cols;
  const char **name;
  const char **cell; // rows x cols
} table;
table *table_read(arena *a, const char *file); // below $HEDDLE_DATA, by default ../shared/data
const char *table_text(const table *t, u32 row, const char *name); // "" if there is no such column
double table_number(const table *t, u32 row, const char *name);    // NAN if empty

const json *json_data(ctx *c, arena *a, const char *file); // NULL if it is not there

double median_of(arena *a, const double *x, u32 n);
double spearman(arena *a, const double *x, const double *y, u32 n);

// The comparisons; each prints itself and tells how many of its demands held.
typedef struct {
  u32 met, missed, skipped;
} verdict;
void require(verdict *v, bool met, const char *fmt, ...) PRINTF_LIKE(3, 4);
void reproduce_best(ctx *c, verdict *v);        // DistIR's best configurations
void reproduce_golden(ctx *c, verdict *v);      // latency and peak of DistIR's code
void reproduce_grids(ctx *c, verdict *v);       // throughput and peak of DistIR's calibrated simulator
void reproduce_distsim(ctx *c, verdict *v);     // DistSim's search
void reproduce_whale(ctx *c, verdict *v);       // Whale's micro-benchmarks, mixed machines, M6-10B
void reproduce_sailor(ctx *c, verdict *v);      // Sailor's measured runs
void reproduce_amp(ctx *c, verdict *v);         // AMP's ranking
void reproduce_dpro(ctx *c, verdict *v);        // dPRO's memory passes
void reproduce_materialise(ctx *c, verdict *v); // SuperScaler's ways of communicating
void reproduce_superscaler(ctx *c, verdict *v); // its models and systems
void reproduce_planners(ctx *c, verdict *v);    // plans of Metis and HARP
void reproduce_megatron(ctx *c, verdict *v);    // Megatron-LM's iteration times
#endif
