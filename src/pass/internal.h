// internal.h - rewriting a function by building its successor. Inside src/pass only.
#ifndef HEDDLE_PASS_INTERNAL_H
#define HEDDLE_PASS_INTERNAL_H
#include "pass/pass.h"

// A parameter of `to` that is like parameter k (from 0) of f: type, name, role, constant elements.
value pass_param_like(prog *p, func to, const func_info *f, u32 k);
// `made`, the latest function of the program, takes the place of `old`, with its id and name.
void pass_replace(prog *p, func old, func made);
// Spans of tasks t.. that begin at or before instruction k of main, from 0, begin at `to` from now on. The next one.
u32 pass_tasks_move(prog *p, u32 t, u32 k, u32 to);
// Instructions of main in the order in which updates on the host are the shortest, with `ahead` as pass_prefetch has it.
void pass_host_order(prog *p, u32 ahead);
// Of an update on a device: what needs one value and no other rank, so that it may stand behind what makes that.
bool pass_is_alone(const instr *i);
#endif
