// busy.c - how long the tasks of a probe keep the ranks of a place busy, by the instruction of the source
// that the work comes from; how long the busiest rank works in all. Not when (stages.c).
#include "sim/internal.h"

typedef struct {
  const sim_graph *of;
  double *needed, *inner; // ps by clock
} known_parts;
typedef struct {
  const sim *s;
  sim_busy *out;
  bool backward;
  VEC(known_parts *) parts;
} counting;

// Ranks of the class that a clock of the event graph is of; 0: it is not a compute stream.
static u32 ranks_of_clock(const counting *x, const sim_graph *c, u32 slot) {
  for (u32 k = 0; k < c->nclock; k++)
    if (c->port_in[k] == slot) return c->clock_stream[k] ? 0 : x->s->weight[c->clock_class[k]];
  return 0;
}

static bool has_products(const prog *p, func f) {
  const func_info *fi = func_get(p, f);
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call ? has_products(p, in->callee) : op_row_of(in->op)->flags & OPF_GEMM) return true;
  }
  return false;
}

// By number of the instruction from 1: does a product of the function need it? Does it read what a product has made,
// besides?
typedef struct {
  bool *before, *between;
} around_products;

static around_products products_in(const counting *x, func f) {
  const prog *p = x->s->p;
  const func_info *fi = func_get(p, f);
  arena *a = x->s->tmp;
  around_products is = {ZNEWN(a, bool, fi->body.n + 1), ZNEWN(a, bool, fi->body.n + 1)};
  bool *product = ZNEWN(a, bool, fi->body.n + 1), *made = ZNEWN(a, bool, fi->values.n + 1),
       *needed = ZNEWN(a, bool, fi->values.n + 1);
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    product[i] = in->op == OP_call ? has_products(p, in->callee) : op_row_of(in->op)->flags & OPF_GEMM;
    for (u32 k = 0; k < instr_nopd(fi, in); k++) is.between[i + 1] |= made[opd_of(fi, in, k)];
    for (u32 k = 0; k < in->nres; k++) made[in->res + k] = product[i] || is.between[i + 1];
  }
  for (u32 i = fi->body.n; i-- > 0;) {
    const instr *in = &fi->body.v[i];
    for (u32 k = 0; k < in->nres; k++) is.before[i + 1] |= needed[in->res + k];
    for (u32 k = 0; k < instr_nopd(fi, in); k++) needed[opd_of(fi, in, k)] |= is.before[i + 1] || product[i];
    is.between[i + 1] &= is.before[i + 1];
  }
  return is;
}

// Kept, for most calls are of few event graphs.
static const known_parts *parts_of(counting *x, const sim_graph *c) {
  for (u32 k = 0; k < x->parts.n; k++)
    if (x->parts.v[k]->of == c) return x->parts.v[k];
  arena *a = x->s->tmp;
  const func_info *f = func_get(x->s->p, (func){c->tag});
  const around_products is = products_in(x, (func){c->tag});
  double *needed = ZNEWN(a, double, c->nslot + 1), *inner = ZNEWN(a, double, c->nslot + 1); // by slot
  known_parts *own = NEW(a, known_parts);
  *own = (known_parts){c, ZNEWN(a, double, c->nclock + 1), ZNEWN(a, double, c->nclock + 1)};
  for (u32 node = 0; node < c->n; node++) {
    const u32 what = c->what[node];
    const sim_site *site = c->dur[node] < 0 ? &c->site[~c->dur[node]] : NULL;
    const known_parts *sub = site ? parts_of(x, site->sub) : NULL;
    for (u32 k = 0; site && k < site->sub->nclock; k++) {
      needed[site->clock[k]] += sub->needed[k];
      inner[site->clock[k]] += is.between[what] ? (double)site->sub->comm[k] : sub->inner[k];
    }
    if (site || !what) continue;
    const u32 flags = op_row_of(f->body.v[what - 1].op)->flags;
    double *to = flags & OPF_COMM                      ? is.between[what] ? inner : NULL
                 : flags & OPF_GEMM || is.before[what] ? needed
                                                       : NULL;
    for (u32 k = c->occ[node]; to && k < c->in[node]; k++) to[c->ref[k]] += (double)c->dur[node];
  }
  for (u32 k = 0; k < c->nclock; k++)
    own->needed[k] = needed[c->port_in[k]], own->inner[k] = inner[c->port_in[k]];
  return *vec_push(a, &x->parts) = own;
}

static void count_call(counting *x, const sim_graph *c, const sim_site *site, sim_busy *to) {
  const known_parts *parts = parts_of(x, site->sub);
  for (u32 k = 0; k < site->sub->nclock; k++) {
    const double ranks = ranks_of_clock(x, c, site->clock[k]);
    to->compute[x->backward] += ranks * (double)(site->sub->busy[k] - site->sub->comm[k]);
    to->comm[x->backward] += ranks * (double)site->sub->comm[k];
    to->inner[x->backward] += ranks * parts->inner[k];
    if (x->backward) to->needed += ranks * parts->needed[k];
  }
}

// Does it add a gradient to that of another reader of the value? Those of weights are added to accumulators.
static bool joins(const func_info *f, const instr *i) {
  return (i->op == OP_add || i->op == OP_accumulate) && !(i->flags & INSTR_RECOMPUTE) &&
         !opd_donated(f, i, 0);
}

static void count_node(counting *x, const sim_graph *c, const func_info *f, u32 node) {
  if (!c->what[node]) return;
  const instr *i = &f->body.v[c->what[node] - 1];
  sim_busy *to = &x->out[i->origin];
  if (c->dur[node] < 0) {
    count_call(x, c, &c->site[~c->dur[node]], to);
    return;
  }
  const bool comm = op_row_of(i->op)->flags & OPF_COMM, product = op_row_of(i->op)->flags & OPF_GEMM;
  for (u32 k = c->occ[node]; k < c->in[node]; k++) {
    const double ps = ranks_of_clock(x, c, c->ref[k]) * (double)c->dur[node];
    (comm ? to->comm : to->compute)[x->backward] += ps;
    if (product && x->backward) to->needed += ps;
    if (x->backward && joins(f, i)) to->joined += ps;
  }
}

bool sim_busy_of(ctx *c, const prog *probe, cost_model *k, const sim_pipeline *pl, sim_busy *out) {
  sim s;
  arena *a = arena_new();
  const sim_opts so = {.mode = SIM_FOLDED, .no_bytes = true};
  const sim_graph *main = sim_open(&s, c, a, probe, k, &so, false) ? sim_probe_graph(&s, pl) : NULL;
  counting x = {.s = &s, .out = out};
  for (u32 q = 0; main && q < pl->npieces; q++) {
    const sim_piece *p = &pl->piece[q];
    if (p->kind != PIECE_TASK || p->mb != (sim_micro(pl, p->stage) > 1)) continue;
    x.backward = p->task != TASK_F;
    for (u32 n = s.node_of[p->first]; n < s.node_of[p->end]; n++) {
      const sim_graph *sub = main->dur[n] < 0 ? main->site[~main->dur[n]].sub : NULL;
      for (u32 j = 0; sub && j < sub->n; j++) count_node(&x, sub, func_get(probe, (func){sub->tag}), j);
    }
  }
  const double ranks = group_get(probe->sp, pl->group[0])->nranks;
  for (u32 o = 0; o <= probe->norigins; o++) {
    for (u32 d = 0; d < 2; d++) out[o].compute[d] /= ranks, out[o].comm[d] /= ranks, out[o].inner[d] /= ranks;
    out[o].needed /= ranks, out[o].joined /= ranks;
  }
  arena_free(s.tmp);
  arena_free(a);
  return main;
}

// ---- the busiest rank -------------------------------------------------------------------------------------
typedef struct {
  sim *s;
  i64 **of; // by row of priced functions: ps on the compute stream by rank; NULL: not asked for yet
} by_rank;

static i64 times_of(const sim *s, func f, u32 at) {
  const sim_spans *x = s->spans ? &s->spans[f.i] : NULL;
  for (u32 k = 0; x && k < x->n; k++)
    if (at >= x->v[k].from && at < x->v[k].from + x->v[k].len) return 1 + (i64)x->v[k].more;
  return 1;
}

static const i64 *row_of(by_rank *x, u32 row);

static void add_instr(by_rank *x, const func_info *f, u32 ev, u32 instr_no, i64 times, i64 *to) {
  sim *s = x->s;
  const instr *i = &f->body.v[instr_no];
  if (!ev || times <= 0) return;
  if (i->op == OP_call) {
    const i64 *of = row_of(x, ev);
    for (u32 r = 0; r < s->nranks; r++) to[r] += of[r] * times;
    return;
  }
  if (i->strm) return;
  const event *e = &s->events.v[ev];
  const members *m = members_of(s, e->g);
  for (u32 k = 0; k < m->n; k++) to[m->rank[k]] += (e->per ? e->per[k] : e->dur) * times;
}

static const i64 *row_of(by_rank *x, u32 row) {
  if (x->of[row]) return x->of[row];
  const priced *pr = &x->s->priced.v[row];
  const func_info *f = func_get(x->s->p, pr->f);
  i64 *ps = ZNEWN(x->s->tmp, i64, x->s->nranks);
  for (u32 k = 0; k < f->body.n; k++) add_instr(x, f, pr->ev[k], k, times_of(x->s, pr->f, k), ps);
  return x->of[row] = ps;
}

// The tasks of the first microbatch, those of the second for all others, and what comes after all tasks; where
// a stage or a place is like another one, that of the other.
i64 sim_busiest(sim *s, const sim_pipeline *pl) {
  by_rank x = {s, ZNEWN(s->tmp, i64 *, s->priced.n)};
  i64 *task = ZNEWN(s->tmp, i64, pl->nstages * s->nranks), *after = ZNEWN(s->tmp, i64, s->nranks), most = 0;
  const priced *main = &s->priced.v[1];
  for (u32 q = 0; q < pl->npieces; q++) {
    const sim_piece *p = &pl->piece[q];
    i64 *to = p->kind == PIECE_TASK ? task + p->stage * s->nranks : p->kind == PIECE_AFTER ? after : NULL;
    const i64 times = p->kind != PIECE_TASK || !p->mb ? 1 : p->mb == 1 ? (i64)sim_micro(pl, p->stage) - 1 : 0;
    for (u32 k = p->first; to && k < p->end; k++)
      add_instr(&x, s->main, main->ev[k], k, times * (1 + (pl->nspans ? (i64)pl->main_more[k] : 0)), to);
  }
  for (u32 q = 0; q < pl->nplaces; q++) {
    const members *own = members_of(s, pl->group[pl->alike[q]]);
    for (u32 j = 0; j < own->n; j++) {
      i64 sum = after[own->rank[j]];
      for (u32 k = 0; k < pl->nstages; k++) {
        const u32 like = pl->like[k];
        if (pl->wide && pl->wide[k])
          sum += task[like * s->nranks + own->rank[j]];
        else if (pl->place[k] == q)
          sum += task[like * s->nranks + members_of(s, pl->group[pl->place[like]])->rank[j]];
      }
      most = MAX(most, sum);
    }
  }
  return most;
}
