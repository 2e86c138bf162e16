// whale.h - what the comparisons with Whale share: the rows of the table.
#ifndef HEDDLE_REPRODUCE_WHALE_H
#define HEDDLE_REPRODUCE_WHALE_H
#include "run.h"

// A row: what Whale published as numbers from `low` to `high`, and ours, which meets it within 5 %. high 0:
// not judged.
void row(verdict *v, const char *what, double low, double high, double ours, const char *note, ...)
    PRINTF_LIKE(6, 7);
void row_text(const char *what, const char *published, const char *ours, const char *note);

void whale_hybrid(arena *a, verdict *v); // whale_hybrid.c: a classifier of 100,000 and of 1,000,000 classes
#endif
