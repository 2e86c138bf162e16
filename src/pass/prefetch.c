// prefetch.c - when copies between device and host memory run. They stand in main just before what reads them and
// just after what made them (offload.c, plan/offload.c); here they move away from it, and are held there.
//
// Idea: what a rank computes is a list of *steps*: calls of main, and other instructions that read or make what is copied.
// What step j reads is fetched when step j - ahead - 1 has ended, so it comes beside `ahead` steps. What step j makes
// may be on its way beside the next `ahead` steps: step j + 1 + ahead waits until it has gone. Fetches are issued right after
// the step that they wait for, and stores right before the step that waits for them. So at any time a rank holds no more
// than it does at the step that it runs in the order of issue, in which memory is counted, whatever the link is like.
//
// Gradients that an update on the host reads leave when the layer's backward has made them, though the update stands at the
// end: so calls whose results such an update sends away become their bodies, too.
//
// What is read again before it would have gone stays on the device, and neither goes nor comes. Nor do zeros that accumulators
// begin with: they are made where they are read.
//
// Tasks of a pipeline are no borders: main has the steps of all of them in a row. So calls of functions that copy become
// their bodies first.
//
// An instruction on several places is a step of each. Ranks that are in the same groups of main are one *atom*, which has
// one list.
#include "pass/internal.h"
#include <stdlib.h>

typedef VEC(u32) numbers;
typedef struct {
  numbers step,
      work;        // instructions of main, from 0, by number; work: steps, and all else on the compute stream
  u32 last, store; // latest slot of its fetches so far; moved.store of the latest one there
  u32 next;        // earliest slot of the stores to come, + 1; 0: there are none
  u32 leaving; // the latest store for an update that no step has waited for, by its instruction + 1; 0: none
  u32 made;    // the last instruction that makes what such a store takes, + 1; 0: none
} atom;

// A copy, which is issued in slot `at`: before instruction `at` of main.
typedef struct {
  u32 instr, at;
  // Stores are counted from 1 as what they take is made. Its own; of a fetch, that in the same slot that it, or a fetch before
  // it, reads; 0: none.
  u32 store;
  bool to_host;
} moved;
typedef struct {
  prog *p;
  const func_info *f; // as it was
  arena *a;
  u32 ahead, n;    // n: instructions
  value *root;     // by value: what it is, without packing and unpacking
  bool *dead;      // by instruction: it packs or unpacks, and what it makes is not needed
  bool *is_step;   // likewise
  u32 *read;       // by value: the first that reads it + 1; n + 1: main returns it; 0: nobody
  u32 *given;      // by value: the first that takes it over + 1; 0: nobody
  u32 *final;      // by value: the last that reads it + 1; n + 1: main returns it; 0: nobody
  bool *stays;     // by value in host memory: it stays on the device instead
  bool *by_reader; // by instruction: what it makes is made anew before each reader
  u32 *latest;     // by value: the latest so far that reads it and is no copy + 1; 0: nobody
  u32 only;        // of copies, what this instruction reads first, + 1, is put alone; 0: all
  u32 *slot;       // by instruction: of a store, where it is issued + 1
  u32 *number;     // likewise: as moved.store has it
  u32 natoms;
  atom *atom;
  numbers *on; // atoms by group
  VEC(moved) copies;
  numbers *waits; // by instruction: stores that it waits for, by their instructions
  builder b;
  value *map; // old value to new
} mover;

// ---- what main does -----------------------------------------------------------------------------------------
static bool goes_to(const mover *x, u32 k, const char *to) {
  const instr *i = &x->f->body.v[k];
  const attr *a = i->op == OP_copy ? attr_get(attrs_get(x->p, i->at), A_to) : NULL;
  return a && !strcmp(sym_str(x->p->c, a->u.s), to);
}

static bool is_view(const instr *i) { return i->op == OP_pack || i->op == OP_unpack || i->op == OP_part; }

// Some functions of tasks only pass on what they are given.
static bool works(const prog *p, const instr *i) {
  const func_info *f = i->op == OP_call ? func_get(p, i->callee) : NULL;
  bool any = !f && !(i->flags & INSTR_HOST) && !(op_row_of((opcode)i->op)->flags & (OPF_META | OPF_VIEW));
  for (u32 k = 0; f && !any && k < f->body.n; k++) any = works(p, &f->body.v[k]);
  return any;
}

static const instr *maker_of(const mover *x, value v) {
  const u32 def = x->f->values.v[v].def;
  return def ? &x->f->body.v[def - 1] : NULL;
}

static void find_roots(mover *x) {
  for (u32 v = 0; v < x->f->values.n; v++) x->root[v] = v;
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k],
                *all = i->op == OP_unpack ? maker_of(x, x->root[opd_of(x->f, i, 0)]) : NULL;
    if (!all || all->op != OP_pack) continue;
    for (u32 r = 0; r < i->nres; r++) x->root[i->res + r] = x->root[opd_of(x->f, all, r)];
    x->dead[k] = true;
  }
}

// What an `after` waits for: of what is packed, what was made last, and not until that is in host memory. 0: nothing.
static value waited_for(const mover *x, value v) {
  const instr *i = maker_of(x, v = x->root[v]);
  value last = 0;
  for (u32 o = 0; i && i->op == OP_pack && o < i->nopd; o++) {
    value e = x->root[opd_of(x->f, i, o)];
    const instr *made = maker_of(x, e);
    if (made && goes_to(x, (u32)(made - x->f->body.v), "host"))
      e = x->root[opd_of(x->f, made, e - made->res)];
    if (x->f->values.v[e].def >= x->f->values.v[last].def) last = e;
  }
  return i && i->op == OP_pack ? last : v;
}

// Operand o of an instruction, with its marks. 0: there is nothing to wait for.
static u32 operand(const mover *x, const instr *i, u32 o) {
  const u32 entry = x->f->opds.v[i->opd + o], marks = entry & ~(u32)OPD_VALUE;
  const value v = entry & OPD_AFTER ? waited_for(x, entry & OPD_VALUE) : x->root[entry & OPD_VALUE];
  return v ? v | marks : 0;
}

// Operand o of copy k goes nowhere.
static bool is_left_out(const mover *x, u32 k, u32 o) {
  const instr *i = &x->f->body.v[k];
  if (i->op == OP_copy && o < i->nres && x->only && x->read[i->res + o] != x->only) return true;
  return i->op == OP_copy && o < i->nres &&
         x->stays[goes_to(x, k, "host") ? i->res + o : x->root[opd_of(x->f, i, o)]];
}

// The first result of a copy that is not left out; 0: there is none.
static value first_moved(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  for (u32 r = 0; r < i->nres; r++)
    if (!is_left_out(x, k, r)) return i->res + r;
  return 0;
}

static void find_readers(mover *x) {
  memset(x->read, 0, x->f->values.n * sizeof *x->read),
      memset(x->given, 0, x->f->values.n * sizeof *x->given);
  memset(x->final, 0, x->f->values.n * sizeof *x->final);
  for (u32 r = 0; r < x->f->rets.n; r++)
    x->final[x->root[x->f->rets.v[r]]] = x->read[x->root[x->f->rets.v[r]]] = x->n + 1;
  for (u32 k = x->n; k-- > 0;) {
    const instr *i = &x->f->body.v[k];
    bool read = !is_view(i);
    for (u32 r = 0; r < i->nres; r++) read |= x->read[i->res + r] > 0;
    x->dead[k] |= !read;
    for (u32 o = 0; o < i->nopd && !x->dead[k]; o++) {
      const u32 entry = operand(x, i, o);
      const value v = entry & OPD_VALUE;
      if (is_left_out(x, k, o)) continue;
      x->read[v] = k + 1;
      if (!x->final[v]) x->final[v] = k + 1;
      if (entry & OPD_DONATED) x->given[v] = k + 1;
    }
  }
}

// The instruction that makes what is stored, from 0: a join of one makes nothing. x->n: there is none.
static u32 works_for(const mover *x, value v) {
  const instr *i = maker_of(x, x->root[v]);
  while (i && i->op == OP_join && pass_is_alone(i)) i = maker_of(x, x->root[opd_of(x->f, i, 0)]);
  return i ? (u32)(i - x->f->body.v) : x->n;
}

static void find_steps(mover *x) {
  memset(x->is_step, 0, x->n * sizeof *x->is_step);
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    if (x->dead[k]) continue;
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
      if (is_left_out(x, k, o)) continue;
      const instr *made = maker_of(x, x->root[opd_of(x->f, i, o)]);
      const u32 m = made ? (u32)(made - x->f->body.v) : 0;
      if (i->op != OP_copy && !is_view(i)) x->is_step[k] |= made && goes_to(x, m, "device");
      if (i->op == OP_copy && made && made->op != OP_copy && !is_view(made) && goes_to(x, k, "host")) {
        const u32 own = works_for(x, opd_of(x->f, i, o));
        if (own < x->n) x->is_step[own] = true;
      }
    }
    x->is_step[k] |= i->op == OP_call && works(x->p, i);
  }
}

// ---- atoms --------------------------------------------------------------------------------------------------
// Where an instruction runs: a send on two groups.
static u32 groups_of(const mover *x, u32 k, group g[2]) {
  const instr *i = &x->f->body.v[k];
  g[0] = i->g, g[1] = i->op == OP_send ? val_type(x->p, x->f, i->res)->g : i->g;
  return g[0].i == g[1].i ? 1 : 2;
}

static u32 ranks_of(const mover *x) {
  u32 n = 0;
  for (u32 g = 1; g <= group_count(x->p->sp); g++) {
    const group_info *of = group_get(x->p->sp, (group){g});
    for (u32 k = 0; k < of->nranks; k++) n = MAX(n, of->ranks[k] + 1);
  }
  return n;
}

static void find_atoms(mover *x) {
  const u32 ngroups = group_count(x->p->sp), nranks = ranks_of(x);
  bool *used = ZNEWN(x->a, bool, ngroups + 1);
  u32 *of = ZNEWN(x->a, u32, nranks + 1), natoms = 1;
  for (u32 k = 0; k < x->n; k++) {
    group g[2];
    for (u32 j = groups_of(x, k, g); j-- > 0;) used[g[j].i] = true;
  }
  for (u32 g = 1; g <= ngroups; g++) { // ranks of this group leave the atoms of the others
    const group_info *in = group_get(x->p->sp, (group){g});
    if (!used[g]) continue;
    u32 *fresh = ZNEWN(x->a, u32, natoms + in->nranks);
    for (u32 k = 0; k < in->nranks; k++) {
      u32 *own = &of[in->ranks[k]], *to = &fresh[*own];
      if (!*to) *to = natoms++;
      *own = *to;
    }
  }
  x->natoms = natoms, x->atom = ZNEWN(x->a, atom, natoms), x->on = ZNEWN(x->a, numbers, ngroups + 1);
  for (u32 g = 1; g <= ngroups; g++) {
    const group_info *in = group_get(x->p->sp, (group){g});
    bool *seen = used[g] ? ZNEWN(x->a, bool, natoms) : NULL;
    for (u32 k = 0; used[g] && k < in->nranks; k++) {
      const u32 own = of[in->ranks[k]];
      if (!seen[own]) seen[own] = true, *vec_push(x->a, &x->on[g]) = own;
    }
  }
}

static void list_steps(mover *x) {
  for (u32 q = 0; q < x->natoms; q++) x->atom[q] = (atom){0};
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    group g[2];
    if (x->dead[k] || is_view(i) || i->op == OP_copy || !i->nres) continue;
    for (u32 j = groups_of(x, k, g); j-- > 0;)
      for (u32 q = 0; q < x->on[g[j].i].n; q++) {
        atom *on = &x->atom[x->on[g[j].i].v[q]];
        if (x->is_step[k]) *vec_push(x->a, &on->step) = k;
        if (g[j].i != val_type(x->p, x->f, i->res)->g.i && i->op == OP_send)
          continue; // the sender has no result
        // What is received lets go of nothing here, so a fetch need not wait until the sender has come to it.
        if (x->is_step[k] || (!i->strm && i->op != OP_send && works(x->p, i))) *vec_push(x->a, &on->work) = k;
      }
  }
}

// How many of the list are before instruction k.
static u32 before(const numbers *list, u32 k) {
  u32 from = 0, to = list->n;
  while (from < to) {
    const u32 mid = from + (to - from) / 2;
    if (list->v[mid] < k)
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

// ---- what stays -----------------------------------------------------------------------------------------------
// Are at most `ahead` steps of every rank of the group between what made it and its reader?
static bool soon(const mover *x, group g, u32 made, u32 reader) {
  for (u32 q = 0; q < x->on[g.i].n; q++) {
    const numbers *step = &x->atom[x->on[g.i].v[q]].step;
    if (before(step, reader) > before(step, made) + 1 + x->ahead) return false;
  }
  return true;
}

// Of a fetch, operand o: what made it is so near that it would still be on its way to the host.
static bool may_stay(const mover *x, u32 k, u32 o) {
  const instr *i = &x->f->body.v[k];
  const value there = x->root[opd_of(x->f, i, o)], here = i->res + o;
  const u32 store = x->f->values.v[there].def;
  if (!store || !goes_to(x, store - 1, "host")) return false;
  if (x->read[there] != k + 1 || x->final[there] != k + 1 || !x->read[here]) return false;
  const instr *out = &x->f->body.v[store - 1];
  const value v = x->root[opd_of(x->f, out, there - out->res)];
  const u32 made = x->f->values.v[v].def;
  if (!made || x->read[here] > x->n) return false;
  // What is stored is read from there (plan/offload.c): nobody takes it over before, nor reads it after who takes over `here`.
  assert(!x->given[v] && (!x->given[here] || x->final[v] <= x->given[here]));
  return x->is_step[made - 1] && soon(x, i->g, made - 1, x->read[here] - 1);
}

// Of what stays, all that it is called is one, and copies of it alone are none.
static void settle_stays(mover *x) {
  for (u32 v = 0; v < x->f->values.n; v++) x->root[v] = x->root[x->root[v]];
  for (u32 k = 0; k < x->n; k++)
    if (x->f->body.v[k].op == OP_copy) x->dead[k] = !first_moved(x, k);
}

// Is there any that did not stay before?
static bool find_stays(mover *x) {
  bool any = false;
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    for (u32 o = 0; goes_to(x, k, "device") && o < i->nres; o++) {
      const value there = x->root[opd_of(x->f, i, o)];
      if (x->stays[there] || !may_stay(x, k, o)) continue;
      const instr *out = maker_of(x, there);
      any = x->stays[there] = true, x->root[i->res + o] = x->root[opd_of(x->f, out, there - out->res)];
    }
  }
  settle_stays(x);
  return any;
}

// ---- where copies go ----------------------------------------------------------------------------------------
// The first instruction that reads what is fetched of a value in host memory; x->n: there is none.
static u32 reader_behind(const mover *x, value there) {
  const u32 k = x->read[there] ? x->read[there] - 1 : x->n;
  const instr *i = k < x->n && goes_to(x, k, "device") ? &x->f->body.v[k] : NULL;
  for (u32 o = 0; i && o < i->nres; o++)
    if (x->root[opd_of(x->f, i, o)] == there && x->read[i->res + o]) return x->read[i->res + o] - 1;
  return x->n;
}

// Is the store one of gradients for an update on the host? These stand where the update is, and may leave as soon as they are
// made.
static bool is_for_update(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  bool all = true;
  for (u32 r = 0; r < i->nres; r++) {
    const u32 reader = x->read[i->res + r];
    all &= reader && reader <= x->n && x->f->body.v[reader - 1].flags & INSTR_HOST;
  }
  return all;
}

// Where it stands, or would if it stood behind what it takes: before that instruction.
static u32 place_of_store(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  u32 made = 0;
  for (u32 o = 0; o < instr_nopd(x->f, i); o++)
    if (!is_left_out(x, k, o)) made = MAX(made, x->f->values.v[x->root[opd_of(x->f, i, o)]].def);
  return made && is_for_update(x, k) ? made : k;
}

// Is it a sum over microbatches? That was there before the last backward, so it lets go of what is counted already, and no
// step waits until it has gone.
static bool is_sum(const mover *x, u32 made) {
  const instr *i = &x->f->body.v[made];
  while (i && pass_is_alone(i) && i->op != OP_join) i = maker_of(x, x->root[opd_of(x->f, i, 0)]);
  return i && i->op == OP_join;
}

// The host's work behind the instruction that makes a gradient in a backward, from 0: no step of updates holds up what leaves,
// so it is there before the host has used up what came before it. x->n: that is made by the update.
static u32 host_work_behind(const mover *x, u32 made) {
  const instr *i = &x->f->body.v[made];
  while (i && pass_is_alone(i)) i = maker_of(x, x->root[opd_of(x->f, i, 0)]);
  if (!i || i->flags & INSTR_UPDATE) return x->n;
  while (made < x->n && !(x->f->body.v[made].flags & INSTR_HOST)) made++;
  return made;
}

static bool makes_at_step(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  const u32 own = i->op == OP_join && pass_is_alone(i) ? works_for(x, i->res) : k;
  return own < x->n && x->is_step[own];
}

// Right before the step that waits for it, or whoever reads it before; not behind the stores after it. Where it comes back
// so soon that it has less than `ahead` steps for each way, either way has half of them.
static u32 slot_of_store(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  u32 made = 0, slot = x->n, reader = x->n;
  for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
    const value v = x->root[opd_of(x->f, i, o)];
    if (is_left_out(x, k, o)) continue;
    made = MAX(made, x->f->values.v[v].def);
    if (x->given[v] > k) slot = MIN(slot, x->given[v] - 1);
  }
  if (!made || !makes_at_step(x, made - 1)) return place_of_store(x, k);
  for (u32 r = 0; r < i->nres; r++) {
    if (x->read[i->res + r]) slot = MIN(slot, x->read[i->res + r] - 1);
    reader = MIN(reader, reader_behind(x, i->res + r));
  }
  const bool sum = is_for_update(x, k) && is_sum(x, made - 1);
  for (u32 q = 0; q < x->on[i->g.i].n; q++) {
    const atom *on = &x->atom[x->on[i->g.i].v[q]];
    const u32 first = before(&on->step, made), between = before(&on->step, MAX(reader, made)) - first;
    const u32 next = first + MIN(x->ahead, reader < x->n ? between / 2 : x->ahead);
    if (next < on->step.n && !sum) slot = MIN(slot, on->step.v[next]);
    if (on->next) slot = MIN(slot, on->next - 1);
  }
  if (is_for_update(x, k) && !sum) slot = MIN(slot, host_work_behind(x, made - 1));
  return MAX(slot, place_of_store(x, k));
}

// The first slot in which all that it reads is there, and what it takes over is not needed; *store: the latest store in that slot that it reads, + 1, or 0.
static u32 source_of(const mover *x, u32 k, u32 *store) {
  const instr *i = &x->f->body.v[k];
  u32 slot = 0;
  *store = 0;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
      const value v = x->root[opd_of(x->f, i, o)];
      if (is_left_out(x, k, o)) continue;
      const u32 def = x->f->values.v[v].def, at = def ? x->slot[def - 1] : 0;
      if (!pass)
        slot = MAX(slot, MAX(at ? at - 1 : def, opd_donated(x->f, i, o) ? x->latest[v] : 0));
      else if (at == slot + 1)
        *store = MAX(*store, x->number[def - 1]);
    }
  return slot;
}

// Is it a fetch of what the host has made in an update (the instruction before slot `there`), and between that and its
// reader is what makes other gradients that leave? Then it comes at once, into the room of those that have left
// (host_order.c), and what makes these does not wait for its reader.
static bool comes_at_once(const mover *x, u32 k, u32 there, u32 reader) {
  const numbers *on = &x->on[x->f->body.v[k].g.i];
  bool all = there && x->f->body.v[there - 1].flags & INSTR_HOST;
  for (u32 q = 0; q < on->n; q++) {
    const u32 made = x->atom[on->v[q]].made;
    all = all && made > there && made <= reader;
  }
  return all;
}

// Right after the step that it waits for, behind the fetches before it, and not before what it reads is there.
static moved fetch_of(mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  const numbers *on = &x->on[i->g.i];
  moved c = {.instr = k};
  u32 reader = x->n, store;
  for (u32 r = 0; r < i->nres; r++)
    if (x->read[i->res + r]) reader = MIN(reader, x->read[i->res + r] - 1);
  const u32 there = source_of(x, k, &store);
  const bool at_once = comes_at_once(x, k, there, reader);
  for (u32 q = 0; q < on->n; q++) {
    const atom *at = &x->atom[on->v[q]];
    if (at_once) c.at = MAX(c.at, at->last);
    if (at_once) continue;
    const u32 j = before(&at->step, reader), wait = j > x->ahead ? at->step.v[j - x->ahead - 1] + 1 : 0;
    const u32 first = at->step.n ? MIN(at->step.v[0], k) : k;
    c.at = MAX(c.at, MAX(at->last, wait ? wait : first));
  }
  c.at = MIN(c.at, reader);
  if (there >= c.at) c.at = there, c.store = store;
  for (u32 q = 0; q < on->n; q++)
    if (x->atom[on->v[q]].last == c.at) c.store = MAX(c.store, x->atom[on->v[q]].store);
  for (u32 q = 0; q < on->n; q++)
    if (x->atom[on->v[q]].last <= c.at) x->atom[on->v[q]].last = c.at, x->atom[on->v[q]].store = c.store;
  return c;
}

static moved store_of(mover *x, u32 k) {
  const numbers *on = &x->on[x->f->body.v[k].g.i];
  const moved c = {.instr = k, .at = slot_of_store(x, k), .store = x->number[k], .to_host = true};
  x->slot[k] = c.at + 1;
  for (u32 q = 0; q < on->n; q++) { // the first step of every rank from there on waits
    atom *at = &x->atom[on->v[q]];
    const u32 j = before(&at->step, c.at);
    numbers *w = j < at->step.n ? &x->waits[at->step.v[j]] : NULL;
    if (w && (!w->n || w->v[w->n - 1] != k)) *vec_push(x->a, w) = k;
    at->next = c.at + 1;
    if (is_for_update(x, k)) at->made = MAX(at->made, place_of_store(x, k));
  }
  return c;
}

// In a slot: what reads nothing that is stored there, as it need not wait for that; then stores, each with what reads it.
static int in_order(const void *p, const void *q) {
  const moved *x = p, *y = q;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->store != y->store) return x->store < y->store ? -1 : 1;
  if (x->to_host != y->to_host) return x->to_host ? -1 : 1;
  return x->instr < y->instr ? -1 : x->instr > y->instr;
}

// In the order in which what they take is made.
static int by_place(const void *p, const void *q) {
  const moved *a = p, *b = q;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return a->instr < b->instr ? -1 : a->instr > b->instr;
}

static void place_stores(mover *x) {
  VEC(moved) stores = {0};
  for (u32 k = 0; k < x->n; k++)
    if (goes_to(x, k, "host") && !x->dead[k])
      *vec_push(x->a, &stores) = (moved){.instr = k, .at = place_of_store(x, k)};
  if (stores.n) qsort(stores.v, stores.n, sizeof *stores.v, by_place);
  for (u32 k = 0; k < stores.n; k++) x->number[stores.v[k].instr] = k + 1;
  for (u32 k = stores.n; k-- > 0;) *vec_push(x->a, &x->copies) = store_of(x, stores.v[k].instr);
}

static void place_copies(mover *x) {
  place_stores(x);
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    if (goes_to(x, k, "device") && !x->dead[k]) *vec_push(x->a, &x->copies) = fetch_of(x, k);
    for (u32 o = 0; o < i->nopd && i->op != OP_copy && !x->dead[k]; o++)
      x->latest[operand(x, i, o) & OPD_VALUE] = k + 1;
  }
  if (x->copies.n) qsort(x->copies.v, x->copies.n, sizeof *x->copies.v, in_order);
}

// ---- main again -----------------------------------------------------------------------------------------------
// A result that is there when all that the instruction does has ended: of a call what its function makes last.
static value end_of(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  const func_info *f = i->op == OP_call ? func_get(x->p, i->callee) : NULL;
  u32 last = 0;
  for (u32 r = 1; f && r < i->nres; r++)
    if (f->values.v[f->rets.v[r]].def > f->values.v[f->rets.v[last]].def) last = r;
  return x->map[i->res + last];
}

static void put(mover *x, u32 k, const numbers *after) {
  const instr *i = &x->f->body.v[k];
  u32 n = 0, *opd = NEWN(x->a, u32, i->nopd + after->n + 1);
  type *res = NEWN(x->a, type, i->nres + 1);
  u32 nres = 0, *from = NEWN(x->a, u32, i->nres + 1);
  for (u32 r = 0; r < i->nres; r++)
    if (!is_left_out(x, k, r)) from[nres] = r, res[nres++] = x->f->values.v[i->res + r].ty;
  for (u32 o = 0; o < (i->op == OP_copy ? instr_nopd(x->f, i) : i->nopd); o++) {
    const u32 entry = is_left_out(x, k, o) ? 0 : operand(x, i, o);
    if (entry) opd[n++] = x->map[entry & OPD_VALUE] | (entry & ~(u32)OPD_VALUE);
  }
  for (u32 j = 0; j < after->n; j++) opd[n++] = after->v[j] | OPD_AFTER;
  x->b.strm = i->strm, x->b.flags = i->flags, x->b.origin = i->origin, x->b.where = i->where;
  x->b.g = i->g, x->b.coord = i->coord, x->b.scope = i->scope;
  const u32 made = emit(&x->b, (opcode)i->op, i->at, opd, n, res, nres);
  func_get(x->p, x->b.f)->body.v[made - 1].callee = i->callee;
  for (u32 r = 0; r < nres; r++) {
    x->map[i->res + from[r]] = emit_res(x->p, x->b.f, made) + r;
    value_name(x->p, x->b.f, x->map[i->res + from[r]], x->f->values.v[i->res + from[r]].name);
  }
}

static void add_once(const mover *x, numbers *to, value v) {
  u32 same = 0;
  while (same < to->n && to->v[same] != v) same++;
  if (v && same == to->n) *vec_push(x->a, to) = v;
}

static void put_copy(mover *x, const moved *c) {
  const numbers *on = &x->on[x->f->body.v[c->instr].g.i];
  const bool for_update = c->to_host && is_for_update(x, c->instr);
  numbers after = {0};
  for (u32 q = 0; q < on->n && !c->to_host; q++) {
    const numbers *work = &x->atom[on->v[q]].work;
    const u32 j = before(work, c->at);
    const u32 leaving = x->atom[on->v[q]].leaving; // what the host is to make of it may come while it goes
    add_once(x, &after, j ? end_of(x, work->v[j - 1]) : 0);
    add_once(x, &after, leaving ? x->map[first_moved(x, leaving - 1)] : 0);
  }
  put(x, c->instr, &after);
  for (u32 q = 0; q < on->n && for_update; q++) x->atom[on->v[q]].leaving = c->instr + 1;
}

static void put_instr(mover *x, u32 k) {
  numbers after = {0};
  if (x->dead[k] || x->f->body.v[k].op == OP_copy) return;
  for (u32 j = 0; j < x->waits[k].n; j++) *vec_push(x->a, &after) = x->map[first_moved(x, x->waits[k].v[j])];
  put(x, k, &after);
  group g[2];
  for (u32 j = x->is_step[k] ? groups_of(x, k, g) : 0; j-- > 0;)
    for (u32 q = 0; q < x->on[g[j].i].n; q++) x->atom[x->on[g[j].i].v[q]].leaving = 0;
}

// What was made of main returns what main did, by the same names, and is main from here on.
static void take_place(mover *x, func made, bool spans) {
  prog *p = x->p;
  const func_info *f = x->f;
  value *ret = NEWN(x->a, value, f->rets.n + 1);
  for (u32 r = 0; r < f->rets.n; r++) {
    const sym name = val(f, f->rets.v[r])->name;
    ret[r] = x->map[x->root[f->rets.v[r]]];
    if (*sym_str(p->c, name)) value_name(p, made, ret[r], name);
  }
  func_return(p, made, ret, f->rets.n);
  if (spans) p->tasks_of = func_get(p, made)->body.n;
  pass_replace(p, p->main, made);
}

static void move_copies(prog *p, u32 ahead) {
  const func_info *f = func_get(p, p->main);
  const bool spans = p->tasks_of == f->body.n;
  mover x = {.p = p, .f = f, .a = arena_new(), .ahead = ahead, .n = f->body.n};
  const u32 nv = f->values.n, n = x.n + 1;
  x.root = NEWN(x.a, value, nv), x.map = ZNEWN(x.a, value, nv);
  x.read = ZNEWN(x.a, u32, nv), x.given = ZNEWN(x.a, u32, nv), x.slot = ZNEWN(x.a, u32, n);
  x.number = ZNEWN(x.a, u32, n);
  x.latest = ZNEWN(x.a, u32, nv);
  x.dead = ZNEWN(x.a, bool, n), x.is_step = ZNEWN(x.a, bool, n), x.waits = ZNEWN(x.a, numbers, n);
  x.final = ZNEWN(x.a, u32, nv), x.stays = ZNEWN(x.a, bool, nv);
  find_roots(&x), find_atoms(&x);
  do // what reads nothing that comes is no step, so others are nearer to each other
    find_readers(&x), find_steps(&x), list_steps(&x);
  while (find_stays(&x));
  place_copies(&x);
  const func made = func_new(p, f->name, f->where);
  x.b = builder_at(p, made);
  for (u32 k = 0; k < f->nparams; k++) x.map[k + 1] = pass_param_like(p, made, f, k);
  for (u32 k = 0, c = 0, t = 0; k <= x.n; k++) {
    while (c < x.copies.n && x.copies.v[c].at == k) put_copy(&x, &x.copies.v[c++]);
    if (spans) t = pass_tasks_move(p, t, k, func_get(p, made)->body.n);
    if (k < x.n) put_instr(&x, k);
  }
  take_place(&x, made, spans);
  arena_free(x.a);
}

// ---- fetches by reader ------------------------------------------------------------------------------------------
// Is it a fetch of what several instructions read first? What a backward carries on to a W is fetched in one go. What an update
// on the host has made may come so, for a layer.
static bool is_for_several(const mover *x, u32 k) {
  const instr *i = &x->f->body.v[k];
  u32 reader = 0;
  if (!goes_to(x, k, "device") || i->flags & INSTR_UPDATE) return false;
  for (u32 r = 0; r < i->nres; r++) {
    const u32 own = x->read[i->res + r];
    if (reader && own && own != reader) return true;
    if (own) reader = own;
  }
  return false;
}

// Of a fetch, operand o: the `full` that was stored for it alone; 0: it is another value. Accumulators begin so.
static value fetched_full(const mover *x, u32 k, u32 o) {
  const instr *i = &x->f->body.v[k];
  const value there = x->root[opd_of(x->f, i, o)], here = i->res + o;
  const instr *out = maker_of(x, there);
  if (!out || !goes_to(x, (u32)(out - x->f->body.v), "host") || x->final[there] != k + 1) return 0;
  const value v = x->root[opd_of(x->f, out, there - out->res)];
  const instr *made = maker_of(x, v);
  if (!made || made->op != OP_full || x->final[v] != (u32)(out - x->f->body.v) + 1) return 0;
  return x->read[there] == k + 1 && x->read[here] && x->read[here] <= x->n ? v : 0;
}

// These neither go nor come: they are made where they are read. Is there any?
static bool find_fulls(mover *x) {
  bool any = false;
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    for (u32 o = 0; goes_to(x, k, "device") && o < i->nres; o++) {
      const value v = fetched_full(x, k, o);
      if (!v) continue;
      any = x->stays[x->root[opd_of(x->f, i, o)]] = true, x->root[i->res + o] = v;
      x->by_reader[x->f->values.v[v].def - 1] = true;
    }
  }
  return any;
}

static void put_by_reader(mover *x, const numbers *list, u32 reader) {
  const numbers none = {0};
  x->only = reader;
  for (u32 j = 0; j < list->n; j++) put(x, list->v[j], &none);
  x->only = 0;
}

// What stands before each of its readers: an instruction for every one of them.
static bool find_by_reader(mover *x, numbers *of) {
  bool any = false;
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    any |= x->by_reader[k] |= !x->dead[k] && is_for_several(x, k);
    for (u32 r = 0; x->by_reader[k] && r < i->nres; r++) {
      numbers *to = &of[x->read[i->res + r]];
      if (!to->n || to->v[to->n - 1] != k) *vec_push(x->a, to) = k;
    }
  }
  return any;
}

// Copies of what several read first become one for each reader, which stands before it.
static void split_fetches(prog *p) {
  const func_info *f = func_get(p, p->main);
  const bool spans = p->tasks_of == f->body.n;
  mover x = {.p = p, .f = f, .a = arena_new(), .n = f->body.n};
  const u32 nv = f->values.n, n = x.n + 2;
  x.root = NEWN(x.a, value, nv), x.map = ZNEWN(x.a, value, nv), x.read = ZNEWN(x.a, u32, nv);
  x.given = ZNEWN(x.a, u32, nv), x.final = ZNEWN(x.a, u32, nv), x.stays = ZNEWN(x.a, bool, nv);
  x.dead = ZNEWN(x.a, bool, n), x.by_reader = ZNEWN(x.a, bool, n);
  numbers *of = ZNEWN(x.a, numbers, n); // by reader + 1
  find_roots(&x), find_readers(&x);
  if (find_fulls(&x)) settle_stays(&x), find_readers(&x);
  if (find_by_reader(&x, of)) {
    const numbers none = {0};
    const func made = func_new(p, f->name, f->where);
    x.b = builder_at(p, made);
    for (u32 k = 0; k < f->nparams; k++) x.map[k + 1] = pass_param_like(p, made, f, k);
    for (u32 k = 0, t = 0; k < x.n; k++) {
      if (spans) t = pass_tasks_move(p, t, k, func_get(p, made)->body.n);
      put_by_reader(&x, &of[k + 1], k + 1);
      if (!x.dead[k] && !x.by_reader[k]) put(&x, k, &none);
    }
    put_by_reader(&x, &of[x.n + 1], x.n + 1);
    take_place(&x, made, spans);
  }
  arena_free(x.a);
}

// ---- which calls become their bodies ----------------------------------------------------------------------------
static bool copies(const func_info *f) {
  for (u32 k = 0; k < f->body.n; k++)
    if (f->body.v[k].op == OP_copy) return true;
  return false;
}

// The call of main that makes a value, as a result or in a tuple that is one; 0: none does, else its instruction + 1.
static u32 call_that_makes(const func_info *f, value v) {
  u32 def = f->values.v[v].def;
  if (def && f->body.v[def - 1].op == OP_unpack) def = f->values.v[opd_of(f, &f->body.v[def - 1], 0)].def;
  return def && f->body.v[def - 1].op == OP_call ? def : 0;
}

// A call that makes what is sent to the host, and those before it that have added to the same: main has the layers of all or
// of none, as contributions to a sum are counted (plan/validate.c).
static void mark_maker(const func_info *f, u32 maker, bool *which) {
  if (!maker || which[maker - 1]) return;
  const instr *i = &f->body.v[maker - 1];
  which[maker - 1] = true;
  for (u32 o = 0; o < i->nopd; o++) {
    const u32 made = opd_donated(f, i, o) ? call_that_makes(f, opd_of(f, i, o)) : 0;
    if (made && f->body.v[made - 1].flags & INSTR_BACKWARD) mark_maker(f, made, which);
  }
}

// A call to a function that sends what it is given to the host, or a cast of it, or what it is the last sum of: calls that
// make that.
static void mark_makers(const prog *p, const instr *call, bool *which) {
  const func_info *f = func_get(p, p->main), *g = func_get(p, call->callee);
  for (u32 k = 0; k < g->body.n; k++)
    for (u32 o = 0; g->body.v[k].op == OP_copy && o < instr_nopd(g, &g->body.v[k]); o++) {
      value v = opd_of(g, &g->body.v[k], o);
      while (v > g->nparams && pass_is_alone(&g->body.v[val(g, v)->def - 1]))
        v = opd_of(g, &g->body.v[val(g, v)->def - 1], 0);
      if (v <= g->nparams) mark_maker(f, call_that_makes(f, opd_of(f, call, v - 1)), which);
    }
}

void pass_prefetch(prog *p, u32 ahead) {
  const func_info *f = func_get(p, p->main);
  arena *a = arena_new();
  bool *which = ZNEWN(a, bool, f->body.n + 1);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->op != OP_call || !copies(func_get(p, i->callee))) continue;
    which[k] = true;
    mark_makers(p, i, which);
  }
  pass_inline_calls(p, which);
  bool any = false;
  f = func_get(p, p->main);
  which = ZNEWN(a, bool, f->body.n + 1);
  for (u32 k = 0; k < f->body.n; k++) // what does nothing cannot wait for what leaves
    any |= which[k] = f->body.v[k].op == OP_call && !works(p, &f->body.v[k]);
  if (any) pass_inline_calls(p, which);
  arena_free(a);
  pass_host_order(p, ahead);
  split_fetches(p);
  move_copies(p, ahead);
}
