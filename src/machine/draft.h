// draft.h - a machine under construction: what the readers of machine files and of one-line machines share.
#ifndef HEDDLE_MACHINE_DRAFT_H
#define HEDDLE_MACHINE_DRAFT_H
#include "machine/machine.h"

typedef struct {
  device_kind k;
  machine_link link, host; // what a node of these devices has unless it says otherwise
} kind_draft;

typedef struct {
  ctx *c;
  arena *a;
  bool ok;      // every reader goes on after an error; a draft that is not ok has no machine
  bool library; // this is the library of device kinds itself
  sym name, about;
  VEC(kind_draft) kinds;
  VEC(node_kind) nodes;
  fabric_info fabric;
  distir_params distir;
} draft;

draft draft_new(ctx *c, arena *a);
void draft_read(draft *d, const ynode *doc);                               // a machine file
machine *draft_finish(draft *d, loc at);                                   // NULL if the draft is not ok
bool draft_fail(draft *d, loc at, const char *fmt, ...) PRINTF_LIKE(3, 4); // E_MACHINE; false

// Pieces of text that both forms have. False and a diagnostic if bad.
bool draft_devices(draft *d, loc at, const char *text, node_kind *out); // "8 h100", "4 a100 + 4 v100"
bool draft_link(draft *d, loc at, const char *key, const char *text,
                machine_link *io); // "switch 450 GB/s"; without a shape: io's
bool draft_nics(draft *d, loc at, const char *text, node_kind *io);     // "8 x 400 Gb/s"
bool draft_usable(draft *d, loc at, const char *text, device_kind *io); // "28 GB", "0.9", "90 %"
bool draft_count(draft *d, loc at, const char *what, const char *text, u32 max, u32 *out);
int draft_kind(draft *d, loc at,
               const char *name);     // index in d->kinds, taken from the library if need be; -1
const ynode *draft_library(draft *d); // a map of kinds of devices; NULL: it cannot be read, or this is it

// meant.c: what a name was meant to be. The device, NULL: none is near; and as a hint, false: there is none.
// times: as in NAME*TIMES.
const char *meant_device(draft *d, const char *name);
bool meant_machine(draft *d, const char *name, u32 times);

// spread.c: a section `spread`, of a device or of a link; and as the value of such a key, not of an empty
// one.
void spread_read(draft *d, const ynode *y, bool device, spread_table *out);
void spread_print(const spread_table *t, strbuf *b);

// A file of the search path, else the copy in the library. NULL if there is none; *from says which it was.
const char *preset_text(ctx *c, arena *a, const char *name, size_t *n, sym *from);

enum { ALLOCATION_BYTES = 512 }; // what CUDA's caching allocators round to
#endif
