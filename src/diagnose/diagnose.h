// diagnose.h - from the recordings of a job to answers: what was slow, who was late, what would help. Layer 7.
// Not reading files (trace/), not how answers are printed (report/).
//
// Idea: a job is the files of one run, one for every process, each read when it is asked for and given back, so that
// a job of many ranks takes the memory of a few. What is known of several ranks at once (communications, clocks) is
// small and kept.
//
// Its parts, a header each. A job is opened (job.h), its processes are told apart by what they did (usage.h) or run again
// (replay.h; messages.h, straggler.h for jobs that were recorded otherwise); what takes several ranks begins with match.h.
#ifndef HEDDLE_DIAGNOSE_H
#define HEDDLE_DIAGNOSE_H
#include "diagnose/clocks.h"
#include "diagnose/compare.h"
#include "diagnose/diff.h"
#include "diagnose/hang.h"
#include "diagnose/info.h"
#include "diagnose/job.h"
#include "diagnose/match.h"
#include "diagnose/messages.h"
#include "diagnose/replay.h"
#include "diagnose/rescale.h"
#include "diagnose/straggler.h"
#include "diagnose/tuning.h"
#include "diagnose/usage.h"
#endif
