// comm_words.h - communications in words of profilers and of kernels' names: what they are in ours. Private to trace/.
#ifndef HEDDLE_TRACE_COMM_WORDS_H
#define HEDDLE_TRACE_COMM_WORDS_H
#include "trace/trace.h"

// Is the name of a kernel that of a communication? op and type of elements as far as the name has them.
bool comm_of_kernel(ctx *c, const char *name, u32 n, trace_comm *out);
sym comm_op_of(ctx *c, const char *name, u32 n);   // "_allgather_base" is all_gather; 0: none ("wait")
sym comm_type_of(ctx *c, const char *name, u32 n); // "c10::Half" is f16; unknown: as it is
u32 comm_type_bytes(const char *type);             // of ours; 0: not known
// "[0, 1]" is "0,1"; 0: it was cut off.
sym comm_members_of(ctx *c, const char *list, u32 n);
#endif
