// profile.h - times of layers that somebody measured, by kind of device: text that a person or a script writes
// (docs/profiles.md). Layer 3: a layer is a name here; which instructions it is, src/plan/measured.c says.
#ifndef HEDDLE_PROFILE_H
#define HEDDLE_PROFILE_H
#include "machine/machine.h"

typedef enum { PROFILE_FORWARD, PROFILE_BACKWARD, PROFILE_UPDATE, PROFILE_TIMES } profile_time;
// One line: what one device of the kind takes for one layer on a microbatch of so many samples, when so many devices
// share every operator (tensor parallelism), their communication with each other included.
typedef struct {
  const char *layer; // a block of the model by the name of its function, "first" or "last"
  sym device;
  u32 tensor;
  i64 samples;
  double ps[PROFILE_TIMES]; // below 0: not said
} profile_row;
typedef struct machine_profile {
  const char *file;
  u32 n;
  const profile_row *row; // by device, layer, tensor, samples
} machine_profile;

// CSV with a header: layer, device, samples, tensor and any of forward_us, backward_us, update_us, in any order; '#' begins
// a comment line. Becomes the profile of the machine; lines about other kinds of device are left out. False and
// diagnostics (E_PROFILE) at the line: unknown or missing columns, numbers that are none, a line twice, or a kind of
// device of the machine without any. In the machine's arena `a`.
bool machine_profile_parse(machine *m, arena *a, sym file, const char *text, size_t n);
const char *machine_title(arena *a, const machine *m); // its name, and where times of layers come from
u64 machine_profile_hash(const machine *m);            // of all that the file says; 0: there is none
#endif
