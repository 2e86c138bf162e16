// work.c - a tighter lower bound on time, from measured work: how long one microbatch occupies a rank when
// the model is one stage, by instruction of main, and the stages of the plan as they are.
//
// Idea: a stage does what its instructions do in a plan of one stage, with the same tensor parallelism,
// samples in a microbatch and recomputation. Neither data ranks nor places nor the order change that, so a
// few hundred such plans bound all of a space. A place computes for every microbatch what its stages do.
// Where products form a chain (bound.c), the stages before its first one pass a microbatch on before it
// begins, and have a backward left when it has ended (passing).
//
// What is left out, since it need not take that long:
// - A rank does one thing after the other, so all calls of a stage wait for what arrives but the first, which may begin
//   with something else (weights gathered or cast); and what leaves waits for all calls but the last. Of these two
//   products alone are counted where stages pass a microbatch on, and where the first forward of a place begins.
// - What crosses the border of a stage may be summed and gathered in another way than inside one. So of several stages
//   the communication of the first and the last call that communicate is not counted but for what lies between
//   products of the call, nor that outside of calls.
// - What several layers read (the encoder's output, a table of positions) has gradients from each, and of several stages
//   that of the maker adds up what came from the others. So of several stages these sums are not counted.
// - Groups of ranks lie alike only if all nodes do and group and node divide one another. Else no communication is
//   counted (lies_alike).
// - ZeRO 2 and 3 communicate in every microbatch and accumulate pieces. What that adds to ZeRO 0 does not depend on
//   microbatches, so it is measured once for each (dp, tp), at one sample in a microbatch. Where groups do not lie alike,
//   what sync.c says of it counts.
//
// On a machine with several kinds of devices such a plan is measured on ranks of each kind, and the slowest rank
// of every place counts. Of shares that are not equal, what the largest number of samples takes that divides the
// batch and is no more than a rank's: a computation takes no less time for more samples where cost_rises. What was
// measured accumulates gradients, all of them. Where a plan has one microbatch, or shards gradients, it accumulates
// less, and what follows on a gradient may be done on a shard: there of backwards products count, and what a product of
// the same call needs. Parts of tensors that are not equal, or on devices of which there are too few to measure equal ones:
// that part of all of the work on one rank, as far as cost_splits.
//
// What tensor groups send that no node holds whole is measured on the group's own ranks, at one sample and at the whole
// batch, of each placement once. A collective takes the least of several times, each a start and so much a byte, so
// between two sizes it takes no less than the straight line between them. Their computation is not counted there, so the
// parts that ranks have of tensors do not matter: what they sum is whole. Of pieces (sp) that is not so.
//
// A rank sums gradients besides (sync.c).
//
// Every plan that is simulated is held against its bound (search.c).
#include "search/internal.h"
#include <math.h>

enum { ON_GROUP = 1 << 20 };
struct work {
  strategy of;
  u32 kind; // of devices that it is measured on; ON_GROUP: on the ranks that `of` has, for their communication
  bool split; // backwards in two parts
  bool tried, known;
  double *compute[2], *comm[2]; // ps of instructions of main before number i, forward and backward
  double *inner[2];             // ... of comm, between products of one call
  double *needed;               // ... of compute[1], products and what they need
  double *joined;               // ... of compute[1], sums of gradients from several readers
};
struct works {
  arena *a;
  const search *s;
  u32 nbody;
  const bool *call; // is that instruction of main a call?
  bool off;         // no bound is given
  bool mixed;       // devices of several kinds
  bool rises;       // cost_rises
  double *splits;   // cost_splits, by kind
  u32 even;         // devices of one kind alone are on every node, a multiple of so many; 0: they are not
  syncs *sync;
  u32 *have; // how many of each
  VEC(work *) v;
  hmap map;
};

// The largest number that divides the devices of every node, if nodes have devices of one kind and those of one
// kind have the same links; else 0.
static u32 even_nodes(const machine *m) {
  i64 all = 0;
  for (u32 r = 0; r < m->nranks;) {
    u32 n = 1;
    while (r + n < m->nranks && m->dev[r + n].node == m->dev[r].node && m->dev[r + n].kind == m->dev[r].kind)
      n++;
    if (r + n < m->nranks && m->dev[r + n].node == m->dev[r].node) return 0;
    for (u32 k = 0; k < r; k++)
      if (m->dev[k].kind == m->dev[r].kind && m->node[m->dev[k].node] != m->node[m->dev[r].node]) return 0;
    all = gcd_i64(all, n), r += n;
  }
  return (u32)all;
}

_Static_assert(WORKS_MOST <= 64, "sets of works are bits of a word");
works *works_new(arena *a, const search *s) {
  works *x = ZNEWN(a, works, 1);
  const prog *p = planner_source(s->w[0].pl);
  const func_info *m = func_get(p, p->main);
  bool *call = NEWN(a, bool, m->body.n + 1);
  for (u32 i = 0; i < m->body.n; i++) call[i] = m->body.v[i].op == OP_call;
  x->a = a, x->s = s, x->nbody = m->body.n, x->call = call;
  x->have = ZNEWN(a, u32, s->m->nkinds);
  for (u32 k = 0; k < s->within.n; k++) x->have[s->m->dev[s->within.first + k].kind]++;
  x->mixed = s->several;
  x->rises = cost_rises(s->w[0].k);
  x->splits = NEWN(a, double, s->m->nkinds);
  for (u32 k = 0; k < s->m->nkinds; k++) x->splits[k] = cost_splits(s->w[0].k, k);
  x->even = x->mixed ? even_nodes(s->m) : 0;
  x->sync = s->o->train && x->rises ? syncs_make(a, p) : NULL;
  x->off = x->mixed ? s->m->nkinds > WORKS_MOST : !machine_period(s->m);
  return x;
}

void works_off(works *x) { x->off = true; }

// Do consecutive groups of n ranks lie on the machine as the first one does?
static bool lies_alike(const machine *m, u32 n) {
  const u32 node = m->nranks / m->nnodes, leaf = node * MAX(m->fabric.leaf, 1u);
  return (n % node == 0 || node % n == 0) && (n <= node || n % leaf == 0 || leaf % n == 0);
}

// add false: NULL if it is not there, and several threads may ask.
static work *work_of(works *x, const strategy *of, u32 kind, bool split, bool add) {
  const u64 h = hash_u64(strategy_hash(of), (u64)kind << 1 | split);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);)
    if (x->v.v[i]->split == split && x->v.v[i]->kind == kind && !strategy_compare(&x->v.v[i]->of, of))
      return x->v.v[i];
  if (!add) return NULL;
  work *v = ZNEWN(x->a, work, 1);
  v->of = *of, v->kind = kind, v->split = split;
  for (u32 k = 0; k < 2; k++)
    v->compute[k] = ZNEWN(x->a, double, x->nbody + 1), v->comm[k] = ZNEWN(x->a, double, x->nbody + 1),
    v->inner[k] = ZNEWN(x->a, double, x->nbody + 1);
  v->needed = ZNEWN(x->a, double, x->nbody + 1), v->joined = ZNEWN(x->a, double, x->nbody + 1);
  hmap_add(x->a, &x->map, h, x->v.n);
  return *vec_push(x->a, &x->v) = v;
}

// The strategy with one stage, whose samples in a microbatch are the same. Of layers in parts, some that keep their input
// alone are made again two at a time, from the first of a stage on: which these are depends on the stages.
static strategy one_stage(const strategy *s, u32 dp, u32 mb, u32 zero) {
  strategy x = strategy_of_stages(s);
  x.schedule = choice_default(CHOICE_schedule), x.layers = choice_default(CHOICE_layers);
  x.pp.n = x.v.n = 1, x.skip = choice_default(CHOICE_skip);
  x.dp.n = dp, x.mb.n = mb, x.zero.n = zero, x.sync = choice_default(CHOICE_sync);
  if (x.coshard.n > 1) x.recompute = choice_default(CHOICE_recompute);
  return x;
}

// Of every kind that has so many devices.
static bool add_kinds(works *x, const strategy *at, bool split, bool add, work *v[WORKS_MOST], u32 *n) {
  for (u32 k = 0; k < x->s->m->nkinds; k++) {
    if (x->have[k] < at->tp.n) continue;
    if (*n == WORKS_MOST) return false;
    if ((v[*n] = work_of(x, at, k, split, add))) ++*n;
  }
  return true;
}

// ---- tensor groups that span nodes ------------------------------------------------------------------------
// Does a group of n ranks from `b` lie on the machine as that from `a` does?
static bool groups_alike(const machine *m, u32 a, u32 b, u32 n) {
  for (u32 j = 0; j < n; j++) {
    const machine_dev *x = &m->dev[a + j], *y = &m->dev[b + j];
    if (x->kind != y->kind || x->index != y->index || m->node[x->node] != m->node[y->node]) return false;
    if (j && (x->node == x[-1].node) != (y->node == y[-1].node)) return false;
  }
  return a == b || m->fabric.oversub <= 1; // else nodes below one switch are nearer
}

// The first group of n ranks that lies as this one does. 0 and more; UINT32_MAX: one node has all of it.
static u32 group_like(const works *x, u32 first, u32 n) {
  const machine *m = x->s->m;
  if (m->dev[first].node == m->dev[first + n - 1].node) return UINT32_MAX;
  u32 a = x->s->within.first;
  while (!groups_alike(m, a, first, n)) a++;
  return a;
}

static bool spans_nodes(const works *x, const strategy *s) {
  return s->tp.n > 1 && x->rises && !(x->even && x->even % s->tp.n == 0) && !s->sp.n && x->s->o->batch > 1 &&
         x->s->o->batch <= CHOICE_MOST;
}

// One sample, and the whole batch.
static strategy on_group(const works *x, const strategy *of, u32 first, bool whole) {
  strategy at = *of;
  at.skip.n = first, at.mb.n = whole ? 1 : (u32)x->s->o->batch,
  at.dp_shares = choice_default(CHOICE_dp_shares);
  return at;
}

// Of all groups of the plan that span nodes, one for each placement; where they are too many none.
static void add_groups(works *x, const strategy *s, const strategy *of, bool split, bool add,
                       work *v[WORKS_MOST], u32 *n) {
  const u32 before = *n;
  if (!spans_nodes(x, s)) return;
  for (u32 g = 0; g < s->dp.n * s->pp.n; g++) {
    const u32 first = s->skip.n + g * s->tp.n;
    if (first + s->tp.n > x->s->m->nranks) break;
    const u32 like = group_like(x, first, s->tp.n);
    u32 j = before;
    while (j < *n && v[j]->of.skip.n != like) j++;
    if (like == UINT32_MAX || j < *n) continue;
    for (u32 whole = 0; whole < 2; whole++) {
      const strategy at = on_group(x, of, like, whole);
      if (*n == WORKS_MOST || !(v[*n] = work_of(x, &at, ON_GROUP, split, add))) {
        *n = before;
        return;
      }
      ++*n;
    }
  }
}

// ---- which works a plan has -------------------------------------------------------------------------------
// Has the plan devices of a kind of which there are fewer than that?
static bool too_few(const works *x, const strategy *s, u32 n) {
  const search *of = x->s;
  const u32 ranks = MIN(strategy_ranks(s), of->m->nranks - s->skip.n);
  for (u32 r = s->skip.n; r < s->skip.n + ranks; r++)
    if (x->have[of->m->dev[r].kind] < n) return true;
  return false;
}

// With the samples of a microbatch that every data rank has; where shares are not equal, with all numbers of
// samples that a rank may have and that divide the batch. Where tensor ranks may have unequal parts, or be of kinds that
// have fewer devices, on one rank besides.
static u32 find_mixed(works *x, const strategy *s, const strategy *of, bool split, bool add,
                      work *v[WORKS_MOST]) {
  const i64 batch = x->s->o->batch;
  const bool equal = choice_same(s->dp_shares, choice_default(CHOICE_dp_shares)),
             parts = !choice_same(s->tp_shares, choice_default(CHOICE_tp_shares)),
             alone = s->tp.n > 1 && (parts || too_few(x, s, s->tp.n));
  strategy at = *of;
  u32 n = 0;
  add_groups(x, s, of, split, add, v, &n);
  at.dp_shares = choice_default(CHOICE_dp_shares), at.tp_shares = choice_default(CHOICE_tp_shares);
  if (!equal && (!x->rises || batch <= 0 || batch % s->mb.n)) return 0;
  const i64 most = equal ? 1 : MAX(batch / s->mb.n - s->dp.n + 1, 1);
  for (u32 one = 0; one <= alone; one++) {
    if (one) at.tp.n = 1, at.sp = choice_default(CHOICE_sp), at.tables = choice_default(CHOICE_tables);
    i64 samples = equal ? 1 : divisor_above(batch, ceil_div(batch, CHOICE_MOST));
    for (i64 before = 0; samples > before && samples <= most;) {
      if (!equal) at.mb.n = (u32)(batch / samples);
      if (!add_kinds(x, &at, split, add, v, &n)) return one ? n : 0;
      before = samples; // the batch comes after itself
      samples = equal ? most + 1 : divisor_above(batch, samples + 1);
    }
  }
  return n;
}

static u32 find_works(works *x, const strategy *s, bool add, work *v[WORKS_MOST]);

// Those of every replica alone.
static u32 find_replicas(works *x, const strategy *s, bool add, work *v[WORKS_MOST]) {
  u32 n = 0;
  for (u32 r = 0; r < strategy_replicas(s); r++) {
    const strategy own = strategy_of_replica(s, r, x->s->o->train);
    work *of[WORKS_MOST];
    const u32 more = find_works(x, &own, add, of);
    if (!more) return 0;
    for (u32 k = 0; k < more; k++) {
      u32 j = 0;
      while (j < n && v[j] != of[k]) j++;
      if (j == WORKS_MOST) return 0;
      if (j == n) v[n++] = of[k];
    }
  }
  return n;
}

static u32 find_works(works *x, const strategy *s, bool add, work *v[WORKS_MOST]) {
  const search_opts *o = x->s->o;
  if (s->replicas.nparts) return x->mixed && !x->off ? find_replicas(x, s, add, v) : 0;
  const bool split = o->train && policy_splits_backward(s, false);
  const u64 all = (u64)s->dp.n * s->mb.n;
  if (x->off || !bound_places(s) || s->tp_stages.nparts || all > CHOICE_MOST) return 0;
  if (x->mixed && policy_is_interlaced(s)) return 0;
  // Of one data rank with more microbatches other pieces are sent, and at times more.
  if (x->mixed && choice_is(CHOICE_materialise, s->materialise, "p2p")) return 0;
  strategy of = one_stage(s, 1, (u32)all, 0);
  if (x->mixed) return find_mixed(x, s, &of, split, add, v);
  if (s->mb.n == 1) of = one_stage(s, s->dp.n, 1, 0); // nothing is accumulated
  v[0] = work_of(x, &of, 0, split, add);
  if (s->zero.n < 2 || s->mb.n == 1) return v[0] != NULL;
  const i64 own = o->batch / s->dp.n; // samples of a data rank
  if (o->batch <= 0 || own < 2 || own > CHOICE_MOST || o->batch % s->dp.n) return 0;
  for (u32 k = 1; k < 3; k++) {
    of = one_stage(s, s->dp.n, (u32)own, k == 1 ? s->zero.n : 0);
    of.recompute = choice_default(CHOICE_recompute);
    v[k] = work_of(x, &of, 0, split, add);
  }
  return v[0] && v[1] && v[2] ? 3 : 0;
}

u32 works_of(works *x, const strategy *s, work *v[WORKS_MOST]) {
  if (x->sync) sync_prepare(x->sync, x->a, x->nbody, s->dp.n, s->tp.n);
  return find_works(x, s, true, v);
}

bool work_known(const work *v) { return v->tried; }

// Any will do: of a schedule stages know only whether backwards are in two parts.
static const sched_row *row_that_splits(void) {
  u32 i = 0;
  while (sched_row_of(i) && !sched_row_of(i)->split) i++;
  return sched_row_of(i);
}

void work_measure(works *x, worker *w, work *v) {
  if (v->tried) return;
  v->tried = true;
  arena *tmp = arena_new();
  const u32 before = diag_count(w->c);
  hybrid_opts h = search_hybrid(x->s->o, &v->of);
  sim_busy *busy = ZNEWN(tmp, sim_busy, x->nbody + 1);
  u32 *ranks = x->mixed && v->kind != ON_GROUP ? NEWN(tmp, u32, v->of.tp.n) : NULL;
  const rank_window in = x->s->within;
  h.k = w->k;
  if (ranks) machine_ranks_of_kind(x->s->m, in.first, in.n, v->kind, v->of.tp.n, ranks);
  v->known = !policy_batchnorm(planner_batchnorm(w->pl), &v->of) &&
             policy_busy(w->pl, tmp, &h, ranks, v->split ? row_that_splits() : NULL, busy);
  for (u32 i = 0; v->known && i < x->nbody; i++)
    for (u32 k = 0; k < 2; k++) {
      v->compute[k][i + 1] = v->compute[k][i] + busy[i].compute[k];
      v->comm[k][i + 1] = v->comm[k][i] + busy[i].comm[k];
      v->inner[k][i + 1] = v->inner[k][i] + busy[i].inner[k];
    }
  for (u32 i = 0; v->known && i < x->nbody; i++) {
    v->needed[i + 1] = v->needed[i] + busy[i].needed;
    v->joined[i + 1] = v->joined[i] + busy[i].joined;
  }
  diag_truncate(w->c, before);
  arena_free(tmp);
}

// One strategy: its works, and which of their communication counts.
typedef struct {
  const works *x;
  const strategy *s;
  u32 n;
  work *v[WORKS_MOST];
  bool tensor, data;    // communication of tensor groups, of data groups
  bool several, splits; // stages; backwards in two parts
  bool part;            // of backwards products and what they need alone count
  // Of devices of several kinds
  const plan_axis *dp, *tp;
  bool exact;  // tensor ranks have just their parts of whatever is split
  u32 micro;   // microbatches that each place runs
  u32 replica; // of different make-up: which it is
} measure;

// ps of instructions [from, to) in the first so many passes: forward, backward.
static double sum_of(double *const *of, u32 passes, u32 from, u32 to) {
  double t = 0;
  for (u32 k = 0; k < passes; k++) t += of[k][to] - of[k][from];
  return t;
}

static double comm_of(const work *v, u32 passes, u32 from, u32 to) {
  return sum_of(v->comm, passes, from, to);
}

static double compute_of(const measure *m, const work *v, u32 passes, u32 from, u32 to) {
  double t = v->compute[0][to] - v->compute[0][from];
  const double *back = m->part ? v->needed : v->compute[1];
  if (passes == 1) return t;
  if (m->several && !m->part) t -= v->joined[to] - v->joined[from];
  return t + back[to] - back[from];
}

static double tensor_comm(const measure *m, u32 passes, u32 from, u32 to) {
  const work *v = m->v[0];
  if (!m->part || passes == 1) return comm_of(v, passes, from, to);
  return comm_of(v, 1, from, to) + v->inner[1][to] - v->inner[1][from];
}

static double all_of(const measure *m, u32 passes, u32 from, u32 to) {
  double t = compute_of(m, m->v[0], passes, from, to);
  if (m->tensor) t += tensor_comm(m, passes, from, to);
  if (m->n == 1) return t;
  t += compute_of(m, m->v[1], passes, from, to) - compute_of(m, m->v[2], passes, from, to);
  return m->data ? t + comm_of(m->v[1], passes, from, to) - comm_of(m->v[2], passes, from, to) : t;
}

// Communication of tensor groups that may be done in another way if the instructions are a stage of several.
static double at_borders(const measure *m, u32 from, u32 to) {
  const u32 passes = m->part ? 1 : 2;
  double sum = comm_of(m->v[0], passes, from, to), last = 0;
  bool first = true;
  for (u32 i = from; i < to; i++) {
    const double comm = comm_of(m->v[0], passes, i, i + 1);
    if (!m->x->call[i] || comm <= 0) continue;
    const double inner = MIN(sum_of(m->v[0]->inner, passes, i, i + 1), comm);
    sum -= first ? inner : comm, last = first ? 0 : comm - inner;
    first = false;
  }
  return sum + last;
}

// ps of the stage for one microbatch.
static double work_in(const measure *m, u32 from, u32 to) {
  return all_of(m, 2, from, to) - (m->tensor && m->several ? at_borders(m, from, to) : 0);
}

// ... of its communication alone.
static double comm_in(const measure *m, u32 from, u32 to) {
  return tensor_comm(m, 2, from, to) - (m->several ? at_borders(m, from, to) : 0);
}

// The first and the last call with products in [from, to); false: there is none.
static bool product_calls(const measure *m, u32 from, u32 to, u32 *first, u32 *last) {
  const double *forward = m->x->s->bounds.forward;
  *first = from, *last = to;
  while (*first < to && (!m->x->call[*first] || forward[*first + 1] <= forward[*first])) ++*first;
  while (*last > from && (!m->x->call[*last - 1] || forward[*last] <= forward[*last - 1])) --*last;
  --*last;
  return *first < to;
}

static double products_of(const measure *m, bool forward, u32 from, u32 to) {
  return bound_products(&m->x->s->bounds, m->s, m->splits || forward, from, to);
}

// ps that pass between the arrival of a microbatch at the stage and its leaving it, there and back, where
// backwards are in one part.
static double passing(const measure *m, u32 from, u32 to) {
  const double products = products_of(m, false, from, to);
  u32 first, last;
  if (!product_calls(m, from, to, &first, &last) || first == last) return products;
  double t = products_of(m, false, first, first + 1) + products_of(m, false, last, last + 1);
  const double *forward = m->x->s->bounds.forward;
  for (u32 i = first + 1; i < last; i++)
    if (m->x->call[i] && forward[i + 1] > forward[i]) t += all_of(m, 2, i, i + 1);
  return MAX(t, products);
}

// ps of the first forward of a place that may be over before its microbatch arrives.
static double ahead(const measure *m, u32 from, u32 to) {
  u32 first, last;
  if (!product_calls(m, from, to, &first, &last)) return all_of(m, 1, from, to);
  return MAX(all_of(m, 1, from, first + 1) - products_of(m, true, first, first + 1), 0);
}

// ---- places -----------------------------------------------------------------------------------------------
// Each of the replicas has as many microbatches; 0: what places run is not known.
static u32 bound_form(const strategy *s) { return bound_places(s) ? bound_replicas(s) : 0; }

// The next stage lies there: is it the first of its replica? What a place waits for at both ends of a step, *passed,
// is the work before the first stage on it: that before stages of other replicas has all of that in it.
static bool begins_at(bool *met, u32 places, u32 replicas, u32 replica, u32 at, double *passed,
                      double before) {
  bool *own = &met[replica * places + at], *any = &met[replicas * places + at];
  const bool first = !*own;
  if (!*any) *passed = before;
  *own = *any = true;
  return first;
}

// ---- devices of several kinds -----------------------------------------------------------------------------
// What was measured on tp ranks of the kind with the most samples that are no more than these; from 1, 0:
// nothing was. samples 0: all that was measured had as many.
static u32 measured_with(const measure *m, u32 kind, u32 tp, i64 samples) {
  const i64 batch = m->x->s->o->batch;
  u32 best = 0;
  for (u32 k = 0; k < m->n; k++) {
    const work *v = m->v[k];
    if (!v->known || v->kind != kind || v->of.tp.n != tp) continue;
    if (samples && batch / v->of.mb.n > samples) continue;
    if (!best || v->of.mb.n < m->v[best - 1]->of.mb.n) best = k + 1;
  }
  return best;
}

// As if everything had been measured on the ranks of one work.
static measure of_one(const measure *m, u32 k) {
  measure one = *m;
  one.n = 1, one.v[0] = m->v[k];
  return one;
}

static u32 kind_of(const measure *m, u32 block, u32 index) {
  return m->x->s->m->dev[m->s->skip.n + block * m->s->dp.n * m->s->tp.n + index].kind;
}

// Which work rank `index` of block `block` has, measured on so many tensor ranks; from 1.
static u32 measured_at(const measure *m, u32 tp, u32 block, u32 index) {
  const plan_axis *dp = m->dp;
  const u32 kind = kind_of(m, block, index);
  const i64 all = m->x->s->o->batch / m->s->mb.n;
  if (choice_same(m->s->dp_shares, choice_default(CHOICE_dp_shares))) return measured_with(m, kind, tp, 0);
  return measured_with(m, kind, tp,
                       dp->shares ? all * dp->shares[index / m->s->tp.n] / plan_parts(dp) : all / m->s->dp.n);
}

// With its own part of tensors; else, *alone, without any split.
static u32 work_at(const measure *m, u32 block, u32 index, bool *alone) {
  const u32 of = m->tp->shares ? 0 : measured_at(m, m->s->tp.n, block, index);
  *alone = !of;
  return of ? of : measured_at(m, 1, block, index);
}

// What the tensor group of data rank i of the block sends: its work at one sample, and the next at the whole batch. From 1;
// 0: nothing was measured.
static u32 group_at(const measure *m, u32 block, u32 i) {
  const u32 tp = m->s->tp.n;
  if (!spans_nodes(m->x, m->s)) return 0;
  const u32 like = group_like(m->x, m->s->skip.n + (block * m->s->dp.n + i) * tp, tp);
  for (u32 k = 0; k + 1 < m->n && like != UINT32_MAX; k++)
    if (m->v[k]->kind == ON_GROUP && m->v[k]->of.skip.n == like)
      return m->v[k]->known && m->v[k + 1]->known ? k + 1 : 0;
  return 0;
}

// ps of a microbatch, where takes has those of every work.
static double sends(const measure *m, u32 block, u32 i, const double *takes) {
  const u32 of = group_at(m, block, i);
  if (!of) return 0;
  const double batch = (double)m->x->s->o->batch, all = batch / m->s->mb.n,
               own = m->dp->shares ? all * m->dp->shares[i] / plan_parts(m->dp) : all / m->s->dp.n;
  return takes[of - 1] + (takes[of] - takes[of - 1]) * MAX(own - 1, 0) / (batch - 1);
}

// Does the axis split extents that the sum of its parts does not divide?
static bool rounds(const prog *p, const plan *pn, const plan_axis *axis) {
  for (u32 k = 0; k < pn->ntrans; k++) {
    const plan_trans *t = &pn->trans[k];
    if (&pn->axes[t->axis - 1] != axis || !t->uneven || !trans_splits(t->dim)) continue;
    const func_info *f = func_get(p, t->fn);
    const instr *in = t->instr ? &f->body.v[t->instr - 1] : NULL;
    const value v = !in ? t->index + 1 : t->result ? in->res + t->index : opd_of(f, in, t->index);
    if (val_type(p, f, v)->s.dim[t->dim] % plan_parts(axis)) return true;
  }
  return false;
}

// ps of a microbatch on the slowest rank of the block, where takes has those of every work. Of what was measured without
// a split each rank has its part, or where parts are rounded the mean of all at least, were all of the fastest kind.
static double slowest(const measure *m, u32 block, const double *takes) {
  const u32 tp = m->s->tp.n, parts = plan_parts(m->tp), *part = m->tp->shares;
  double most = 0;
  for (u32 i = 0; i < m->s->dp.n; i++) {
    double least = INFINITY, own = 0;
    for (u32 j = 0; j < tp; j++) {
      bool alone;
      double t = takes[work_at(m, block, i * tp + j, &alone) - 1];
      if (alone) t *= m->x->splits[kind_of(m, block, i * tp + j)];
      least = alone ? MIN(least, t) : 0;
      if (!alone || m->exact) own = MAX(own, alone ? t * (part ? part[j] : 1) / parts : t);
    }
    most = MAX(most, MAX(own, least / tp) + sends(m, block, i, takes));
  }
  return most;
}

// Every place by itself: its slowest rank for all microbatches, and beside it the first one's way through the
// stages before and the last one's back, or the sum of gradients, which may run beside that.
static void bound_blocks(const measure *m, const search *s, worker *w, arena *tmp, const plan *pn,
                         double *most, double *fill) {
  const u32 places = m->s->pp.n, ranks = m->s->dp.n * m->s->tp.n;
  const plan_axis *dp = m->dp, *tp = m->tp;
  const u32 replicas = bound_replicas(m->s);
  double *takes = ZNEWN(tmp, double, places * m->n), *passed = ZNEWN(tmp, double, places),
         *early = ZNEWN(tmp, double, places), before = 0;
  sync_bytes *bytes = ZNEWN(tmp, sync_bytes, places);
  u64 *has = ZNEWN(tmp, u64, places); // works of its ranks
  bool *met = ZNEWN(tmp, bool, (replicas + 1) * places);
  bool chain = bound_fills(&s->bounds, m->s) && !dp->shares && !tp->shares;
  for (u32 r = 0; r < places * ranks; r++) {
    bool alone;
    const u32 of = work_at(m, r / ranks, r % ranks, &alone);
    if (!of) return;
    has[r / ranks] |= 1ull << (of - 1);
    chain = chain && !alone;
    const u32 spans = r % m->s->tp.n ? 0 : group_at(m, r / ranks, r % ranks / m->s->tp.n);
    if (spans) has[r / ranks] |= 3ull << (spans - 1);
  }
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *seg = &pn->segments[k];
    const u32 from = seg->from - 1, to = seg->to;
    double way = INFINITY;
    for (u32 r = 0; r < replicas; r++) {
      const u32 at = search_block(m->s, pn, m->replica + r, k);
      const bool begins = begins_at(met, places, replicas, r, at, &passed[at], before) && before > 0;
      for (u32 j = 0; j < m->n; j++) {
        if (!(has[at] >> j & 1)) continue;
        const measure one = of_one(m, j);
        const bool on_group = m->v[j]->kind == ON_GROUP;
        takes[at * m->n + j] += (on_group ? comm_in(&one, from, to) : work_in(&one, from, to)) / replicas;
        if (on_group) continue;
        if (chain && begins) early[at] = MAX(early[at], ahead(&one, from, to));
        if (chain && k + 1 < pn->nsegments) way = MIN(way, passing(&one, from, to));
      }
      if (m->x->sync && !tp->shares && pn->nreplicas < 2)
        sync_add(m->x->sync, from, to, m->s->dp.n, m->s->tp.n, &bytes[at]);
    }
    if (chain && k + 1 < pn->nsegments) before += way;
  }
  for (u32 q = 0; q < places; q++) passed[q] = MAX(passed[q] - early[q], 0);
  for (u32 q = 0; q < places; q++) {
    const sync_time sum = sync_ps(w, tmp, m->s->skip.n + q * ranks, m->s, &bytes[q]);
    const double t = m->micro * (slowest(m, q, takes + q * m->n) + sum.micro) + MAX(passed[q], sum.step);
    if (t > *most) *most = t, *fill = passed[q];
  }
}

static void bound_places_of(measure *m, const search *s, worker *w, arena *tmp, const plan *pn, double *most,
                            double *fill) {
  const plan_mesh *on = &pn->meshes[search_stage_on(pn, m->replica, 0)->mesh];
  const u32 tp = m->s->tp.n;
  m->dp = &pn->axes[mesh_axis(on, AXIS_DATA) - 1], m->tp = &pn->axes[mesh_axis(on, AXIS_TENSOR) - 1];
  m->exact = !rounds(planner_source(w->pl), pn, m->tp);
  m->part = m->s->dp.n > 1 && (m->s->mb.n == 1 || m->s->zero.n >= 2);
  m->several = pn->nsegments > 1;
  m->tensor = m->x->even && m->x->even % tp == 0 && !m->dp->shares && !m->tp->shares;
  bound_blocks(m, s, w, tmp, pn, most, fill);
}

// No step is shorter than that of one replica with its own microbatches.
static void bound_make_up(const measure *all, const search *s, worker *w, arena *tmp, const plan *pn,
                          double *most, double *fill) {
  for (u32 r = 0; r < pn->nreplicas; r++) {
    const strategy own = strategy_of_replica(all->s, r, s->o->train);
    measure m = {.x = all->x,
                 .s = &own,
                 .splits = bound_splits(&s->bounds, &own),
                 .micro = pn->replicas[r].micro,
                 .replica = r};
    m.n = find_works((works *)(uintptr_t)all->x, &own, false, m.v);
    if (m.n) bound_places_of(&m, s, w, tmp, pn, most, fill);
  }
}

static void work_bound_mixed(measure *m, const search *s, worker *w, limit *of) {
  const search_point *p = of->of;
  arena *tmp = arena_new();
  const plan *pn = m->n ? search_plan(s, w, tmp, p).pn : NULL;
  double most = 0, fill = 0;
  if (pn && m->s->replicas.nparts) {
    bound_make_up(m, s, w, tmp, pn, &most, &fill);
  } else if (pn) {
    m->micro = m->s->mb.n;
    bound_places_of(m, s, w, tmp, pn, &most, &fill);
  }
  of->ps = most * 0.999999, of->fill_ps = fill * 0.999999;
  diag_clear(w->c);
  arena_free(tmp);
}

// What a bound reads of a row: are backwards in two parts, where do stages lie?
static u32 row_form(const strategy *s) {
  const u32 placement = bound_places(s) ? 1 + (u32)sched_row_of(s->schedule.n)->placement : 0;
  const bool beside = s->overlap.n & OVERLAP_DP; // sums of gradients
  return policy_splits_backward(s, false) + 2 * beside + 4 * placement;
}

// Which layers a stage has where `auto` cuts them depends on the order and on sends; so may what else it stands for on
// devices of several kinds.
static bool has_own_cuts(const works *x, const strategy *s) {
  return x->mixed || choice_is(CHOICE_layers, s->layers, "auto");
}

bool work_alike(const works *x, const search_point *p, const search_point *q) {
  const strategy s = search_strategy(p), t = search_strategy(q);
  if (p == q || has_own_cuts(x, &s)) return p == q;
  return row_form(&s) == row_form(&t) && strategy_same_but(&s, &t, CHOICES_OF_LINE);
}

u64 work_key(const works *x, const search_point *p) {
  const strategy s = search_strategy(p);
  if (has_own_cuts(x, &s)) return p->plan;
  return hash_u64(strategy_hash_but(&s, CHOICES_OF_LINE), row_form(&s));
}

// What a place of an interlaced pipeline does besides, in ps of a rank for one microbatch: parts of what lies on all
// places. Outer: of all but the last segment.
typedef struct {
  double outer, last;
} wide_work;

static void add_wide(const measure *m, wide_work *to, const plan *pn, u32 segment) {
  const plan_segment *seg = &pn->segments[segment];
  const double t = m->x->splits[0] * compute_of(m, m->v[0], 2, seg->from - 1, seg->to) / m->s->pp.n;
  *(segment + 1 == pn->nsegments ? &to->last : &to->outer) += t;
}

// Of it, what lies between the first forward of place q and its last backward: all of the last segment, and of the others
// what belongs to all but the first q + 1 forwards and the last q + 2 backwards (sched/interlaced.c).
static double wide_between(const wide_work *x, u32 q, u32 micro) {
  return micro * x->last + (micro > q + 2 ? micro - q - 2 : 0) * x->outer;
}

void work_bound(works *x, const search *s, worker *w, limit *of) {
  const search_point *p = of->of;
  const strategy strategy_is = search_strategy(p), *is = &strategy_is;
  measure m = {.x = x, .s = is, .splits = bound_splits(&s->bounds, is)};
  m.n = find_works(x, is, false, m.v);
  if (x->mixed) {
    work_bound_mixed(&m, s, w, of);
    return;
  }
  for (u32 k = 0; k < m.n; k++)
    if (!m.v[k]->known) return;
  arena *tmp = arena_new();
  const plan *pn = m.n ? search_plan(s, w, tmp, p).pn : NULL;
  const u32 places = is->pp.n, replicas = bound_form(is);                     // 0: nothing was measured
  bool *met = ZNEWN(tmp, bool, (replicas + 1) * places);                      // by replica, then all
  double *takes = ZNEWN(tmp, double, places), before = 0, most = 0, fill = 0; // takes: for one microbatch
  double *passed = ZNEWN(tmp, double, places); // until a microbatch has come to the place, there and back
  double *early = ZNEWN(tmp, double, places);  // of that, what the first forward may do before
  sync_bytes *bytes =
      ZNEWN(tmp, sync_bytes, places); // of gradients; 0 where their sum is in what was measured
  sync_time *synced = ZNEWN(tmp, sync_time, places);
  m.tensor = lies_alike(s->m, is->tp.n), m.data = m.tensor && lies_alike(s->m, is->dp.n * is->tp.n);
  m.several = pn && pn->nsegments > 1;
  const bool fills = bound_fills(&s->bounds, is), interlaced = policy_is_interlaced(is);
  wide_work wide = {0};
  for (u32 k = 0; pn && k < pn->nsegments; k++) {
    const plan_segment *seg = &pn->segments[k];
    const u32 from = seg->from - 1, to = seg->to;
    if (interlaced && !seg->on.nfix && m.n) add_wide(&m, &wide, pn, k);
    for (u32 r = 0; r < replicas && (!interlaced || seg->on.nfix); r++) {
      const u32 at = search_place(pn, r, k);
      assert(at < places);
      if (begins_at(met, places, replicas, r, at, &passed[at], before) && before > 0)
        early[at] = MAX(early[at], ahead(&m, from, to));
      takes[at] += work_in(&m, from, to) / replicas;
      if (x->sync && (m.n == 1 || !m.data) && is->mb.n > 1 && replicas == 1)
        sync_add(x->sync, from, to, is->dp.n, is->tp.n, &bytes[at]);
    }
    if (fills && k + 1 < pn->nsegments && (!interlaced || seg->on.nfix)) before += passing(&m, from, to);
  }
  for (u32 q = 0; q < places; q++) passed[q] = MAX(passed[q] - early[q], 0);
  const u32 dp = is->dp.n, tp = is->tp.n;
  for (u32 q = 0; pn && q < places; q++) {
    const double own = is->mb.n * takes[q], t = own + is->mb.n * (wide.last + wide.outer),
                 filled = own + wide_between(&wide, q, is->mb.n) + passed[q];
    if (filled > most) most = filled, fill = passed[q];
    u32 j = 0; // of places that lie alike the gradients of one are summed as those of another
    while (j < q && !(m.data && bytes[j].all == bytes[q].all)) j++;
    synced[q] = j < q ? synced[j] : sync_ps(w, tmp, is->skip.n + q * dp * tp, is, &bytes[q]);
    const double all = t + is->mb.n * synced[q].micro + synced[q].step;
    if (all > most) most = all, fill = 0;
  }
  of->ps = most * 0.999999, of->fill_ps = fill * 0.999999;
  diag_clear(w->c);
  arena_free(tmp);
}
