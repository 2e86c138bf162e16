// host_order.c - in which order main does what updates on the host need: before copies are placed (prefetch.c), whose slots
// follow it.
//
// Idea: what a device does before an update must not stand behind what it does after another, for that waits for the host.
// Updates next to each other are a *run*, which is a row of turns: what the device does for gradients (sums over ranks,
// casts), then copies and the host's work, then what the device makes of new weights. The first of a turn run `ahead` turns
// before the second, and the third when all of the first have run. New weights then lie in the room of gradients that have
// gone: of a parameter as many bytes come as went at least.
//
// What needs one gradient alone, and no other rank, stands behind what makes the gradient: so this leaves in the backward.
#include "pass/internal.h"

typedef VEC(u32) numbers;
typedef struct {
  numbers first, host, rest;
} turn;
typedef struct {
  prog *p;
  func_info *f; // main
  arena *a;
  u32 n;        // instructions
  bool *leads;  // by instruction: it runs on the device, and the host reads what comes of it
  bool *behind; // by instruction: it reads what the host has made, or what comes of that
  u32 *order;   // instructions, from 0
} ordering;

static bool on_host(const instr *i) { return i->flags & INSTR_HOST; }

static bool on_device(const instr *i) { return !on_host(i) && i->op != OP_copy; }

static bool is_update(const instr *i) { return i->flags & INSTR_UPDATE; }

static instr *maker_of(const ordering *x, value v) {
  const u32 def = x->f->values.v[v].def;
  return def ? &x->f->body.v[def - 1] : NULL;
}

// What it is, without packing and unpacking.
static value root_of(const ordering *x, value v) {
  for (const instr *i = maker_of(x, v); i && i->op == OP_unpack; i = maker_of(x, v)) {
    const instr *all = maker_of(x, opd_of(x->f, i, 0));
    if (!all || all->op != OP_pack) break;
    v = opd_of(x->f, all, v - i->res);
  }
  return v;
}

// ---- what there is ------------------------------------------------------------------------------------------
static void find_behind(ordering *x) {
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    x->behind[k] = on_host(i);
    for (u32 o = 0; o < i->nopd && is_update(i); o++) {
      const u32 def = x->f->values.v[opd_of(x->f, i, o)].def;
      x->behind[k] |= def && x->behind[def - 1] && is_update(&x->f->body.v[def - 1]);
    }
  }
}

static void find_leads(ordering *x) {
  bool *read = ZNEWN(x->a, bool, x->f->values.n); // by the host
  for (u32 k = x->n; k-- > 0;) {
    const instr *i = &x->f->body.v[k];
    bool any = on_host(i);
    for (u32 r = 0; r < i->nres; r++) any |= read[i->res + r];
    if (!any || !is_update(i)) continue;
    x->leads[k] = on_device(i);
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) read[opd_of(x->f, i, o)] = true;
  }
}

// ---- behind gradients -----------------------------------------------------------------------------------------
// A cast, or a join of one: no other rank has to come, and nothing else has to be there.
bool pass_is_alone(const instr *i) {
  return is_update(i) && on_device(i) && i->nopd == 1 && (i->op == OP_cast || i->op == OP_join);
}

// Where what is copied is made of one gradient alone, so that it may stand behind that: the number of its instruction + 1.
static u32 gradient_behind(const ordering *x, value v) {
  u32 at = x->f->values.v[root_of(x, v)].def;
  while (at && pass_is_alone(&x->f->body.v[at - 1]))
    at = x->f->values.v[root_of(x, opd_of(x->f, &x->f->body.v[at - 1], 0))].def;
  return at;
}

// By instruction: that it is to stand behind, + 1; 0: it stays.
static bool find_places(const ordering *x, u32 *behind) {
  bool any = false;
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->f->body.v[k];
    if (i->op != OP_copy || !is_update(i)) continue;
    for (u32 o = 0; o < instr_nopd(x->f, i); o++) {
      u32 at = x->f->values.v[root_of(x, opd_of(x->f, i, o))].def;
      const u32 to = gradient_behind(x, opd_of(x->f, i, o));
      while (to && at != to) {
        instr *j = &x->f->body.v[at - 1];
        u32 *entry = &x->f->opds.v[j->opd];
        *entry = root_of(x, *entry & OPD_VALUE) | (*entry & ~(u32)OPD_VALUE);
        any |= behind[at - 1] = to, at = x->f->values.v[*entry & OPD_VALUE].def;
      }
    }
  }
  return any;
}

static bool put_behind(ordering *x) {
  u32 *behind = ZNEWN(x->a, u32, x->n + 1), *first = ZNEWN(x->a, u32, x->n + 1),
      *next = ZNEWN(x->a, u32, x->n + 1), n = 0;
  if (!find_places(x, behind)) return false;
  for (u32 k = x->n; k-- > 0;)
    if (behind[k]) next[k] = first[behind[k] - 1], first[behind[k] - 1] = k + 1;
  for (u32 k = 0; k < x->n; k++) {
    if (!behind[k]) x->order[n++] = k;
    for (u32 j = first[k]; j; j = next[j - 1]) x->order[n++] = j - 1;
  }
  return true;
}

// ---- runs -----------------------------------------------------------------------------------------------------
static void put_all(u32 *order, u32 *n, const numbers *list) {
  for (u32 k = 0; k < list->n; k++) order[(*n)++] = list->v[k];
}

// Does an order of instructions from .. from + n have each behind what makes its operands, and readers of what it takes
// over before it?
static bool is_valid(const ordering *x, const u32 *order, u32 from, u32 n) {
  u32 *at = NEWN(x->a, u32, n + 1), *last = ZNEWN(x->a, u32, x->f->values.n);
  bool ok = true;
  for (u32 k = 0; k < n; k++) at[order[k] - from] = k;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 k = 0; k < n; k++) {
      const instr *i = &x->f->body.v[order[k]];
      for (u32 o = 0; o < i->nopd; o++) {
        const u32 entry = x->f->opds.v[i->opd + o], v = entry & OPD_VALUE, def = x->f->values.v[v].def;
        if (pass)
          ok &= !(entry & OPD_DONATED) || last[v] <= k + 1;
        else
          last[v] = MAX(last[v], k + 1), ok &= def <= from || at[def - 1 - from] < k;
      }
    }
  return ok;
}

// Turns from .. to, of which the last has all that follows it.
static u32 find_turns(const ordering *x, u32 from, u32 to, turn *t) {
  u32 n = 1;
  for (u32 k = from; k < to; k++) {
    const bool first = x->leads[k] && !x->behind[k], device = on_device(&x->f->body.v[k]) && !x->leads[k];
    turn *at = &t[n - 1];
    if (first && at->host.n) at = &t[n++];
    *vec_push(x->a, first ? &at->first : device ? &at->rest : &at->host) = k;
  }
  return n;
}

static void order_run(ordering *x, u32 from, u32 to, u32 ahead) {
  turn *t = ZNEWN(x->a, turn, to - from + 1);
  u32 *order = NEWN(x->a, u32, to - from + 1), n = 0;
  const u32 turns = find_turns(x, from, to, t);
  ahead = MIN(ahead, turns);
  for (u32 k = from; k < to; k++) // the device works between what the host does, as for Adafactor
    if (x->leads[k] && x->behind[k]) ahead = turns;
  for (u32 k = 0; k < turns + ahead; k++) {
    if (k < turns) put_all(order, &n, &t[k].first);
    if (k >= ahead && k - ahead + 1 < turns) put_all(order, &n, &t[k - ahead].host);
  }
  for (u32 k = 0; k + 1 < turns; k++) put_all(order, &n, &t[k].rest);
  for (u32 k = from; k < to; k++) // the last turn as it is
    if (k >= (t[turns - 1].first.n ? t[turns - 1].first.v[0] : from) && !(x->leads[k] && !x->behind[k]))
      order[n++] = k;
  if (n == to - from && is_valid(x, order, from, n)) memcpy(&x->order[from], order, n * sizeof *order);
}

static bool order_runs(ordering *x, u32 ahead) {
  bool any = false;
  memset(x->leads, 0, x->n * sizeof *x->leads);
  find_behind(x), find_leads(x);
  for (u32 k = 0; k < x->n; k++) x->order[k] = k;
  for (u32 from = 0, to; from < x->n; from = to + 1) {
    bool own = false;
    for (to = from; to < x->n && is_update(&x->f->body.v[to]); to++) own |= x->leads[to] && !x->behind[to];
    if (own) order_run(x, from, to, ahead), any = true;
  }
  return any;
}

// ---- main -----------------------------------------------------------------------------------------------------
static void set_order(ordering *x) {
  instr *was = arena_dup(x->a, x->f->body.v, x->n * sizeof *was);
  u32 *at = NEWN(x->a, u32, x->n + 1);
  for (u32 k = 0; k < x->n; k++) {
    x->f->body.v[k] = was[x->order[k]], at[x->order[k]] = k;
    for (u32 r = 0; r < was[x->order[k]].nres; r++) x->f->values.v[was[x->order[k]].res + r].def = k + 1;
  }
  for (u32 t = 0; x->p->tasks_of == x->n && t < x->p->tasks.n; t++)
    if (x->p->tasks.v[t].from < x->n) x->p->tasks.v[t].from = at[x->p->tasks.v[t].from];
}

void pass_host_order(prog *p, u32 ahead) {
  func_info *f = func_get(p, p->main);
  bool any = false;
  for (u32 k = 0; k < f->body.n; k++) any |= on_host(&f->body.v[k]);
  if (!any) return;
  ordering x = {.p = p, .f = f, .a = arena_new(), .n = f->body.n};
  x.leads = ZNEWN(x.a, bool, x.n + 1), x.behind = ZNEWN(x.a, bool, x.n + 1);
  x.order = NEWN(x.a, u32, x.n + 1);
  if (put_behind(&x)) set_order(&x);
  if (order_runs(&x, ahead)) set_order(&x);
  arena_free(x.a);
}
