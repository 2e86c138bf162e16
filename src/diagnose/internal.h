// internal.h - what parts of the breakdown share. Private to diagnose/.
#ifndef HEDDLE_DIAGNOSE_INTERNAL_H
#define HEDDLE_DIAGNOSE_INTERNAL_H
#include "diagnose/diagnose.h"

// Why nothing ran from since_ps until the event began.
idle_kind idle_reason(const trace *t, u32 event, i64 since_ps);
#endif
