// problem.c - clock alignment as unknowns and rows: which processes share a clock, which clocks are tied together, whole
// offsets that bring all readings near each other, and for every link the messages that can bind.
#include "diagnose/align.h"
#include <math.h>
#include <stdlib.h>

// ---- clocks and components ----------------------------------------------------------------------------------
static void find_clocks(problem *p) {
  hmap by_machine = {0};
  for (u32 k = 0; k < p->in->nprocesses; k++) {
    u32 clock = 0;
    if (p->in->machine) clock = hmap_get(&by_machine, hash_u64(p->in->machine[k], 1));
    if (!clock) {
      clock = ++p->nclocks;
      if (p->in->machine) hmap_add(p->a, &by_machine, hash_u64(p->in->machine[k], 1), clock);
    }
    p->clock_of[k] = clock - 1;
  }
}

typedef struct {
  u32 from, to; // clocks
  i64 ahead;    // what to shows more than from, about
} near_tie;
typedef struct {
  problem *p;
  u32 *root;
  VEC(near_tie) tree;
} forest;

static u32 root_of(u32 *root, u32 k) {
  while (root[k] != k) k = root[k] = root[root[k]];
  return k;
}
static void join(forest *f, u32 from, u32 to, i64 ahead) {
  const u32 x = root_of(f->root, from), y = root_of(f->root, to);
  if (x == y) return;
  f->root[MAX(x, y)] = MIN(x, y);
  *vec_push(f->p->a, &f->tree) = (near_tie){from, to, ahead};
}

typedef struct {
  u64 n;
  i64 least;                // received less sent
  i64 sent[2], received[2]; // first and last
} link_sums;

static link_sums *sum_links(problem *p) {
  link_sums *s = ZNEWN(p->a, link_sums, p->in->nlinks + 1);
  for (u32 k = 0; k < p->in->nmessages; k++) {
    const align_message *m = &p->in->message[k];
    link_sums *l = &s[m->link];
    const i64 d = m->recv_ps - m->send_ps;
    if (!l->n++) {
      *l = (link_sums){1, d, {m->send_ps, m->send_ps}, {m->recv_ps, m->recv_ps}};
      continue;
    }
    l->least = MIN(l->least, d);
    l->sent[0] = MIN(l->sent[0], m->send_ps), l->sent[1] = MAX(l->sent[1], m->send_ps);
    l->received[0] = MIN(l->received[0], m->recv_ps), l->received[1] = MAX(l->received[1], m->recv_ps);
  }
  return s;
}

static u64 pair_hash(u32 from, u32 to) { return hash_u64((u64)from << 32 | to, 7); }

static void tie_clocks(problem *p, forest *f, const link_sums *s) {
  const align_seen *in = p->in;
  hmap back = {0};
  for (u32 k = 0; k < in->nlinks; k++)
    if (s[k].n) hmap_add(p->a, &back, pair_hash(in->link[k].from, in->link[k].to), k + 1);
  for (u32 k = 0; k < in->nlinks; k++) {
    if (!s[k].n) continue;
    const u32 from = p->clock_of[in->link[k].from], to = p->clock_of[in->link[k].to];
    const u32 b = hmap_get(&back, pair_hash(in->link[k].to, in->link[k].from));
    p->used[in->link[k].from] += s[k].n, p->used[in->link[k].to] += s[k].n;
    if (from != to) p->by_message[from] = p->by_message[to] = true;
    join(f, from, to, b ? s[k].least / 2 - s[b - 1].least / 2 : s[k].least);
  }
  for (u32 q = 0; q < in->ncollectives; q++) {
    const align_member *m = in->member + in->collective[q].first;
    for (u32 k = 0; k < in->collective[q].n; k++) {
      p->used[m[k].process]++;
      join(f, p->clock_of[m[0].process], p->clock_of[m[k].process], m[k].end_ps - m[0].end_ps);
    }
  }
}

// Offsets along the trees, from the reference (its lowest clock) of every component.
static void find_coarse(problem *p, const forest *f) {
  p->reference = NEWN(p->a, u32, p->nclocks);
  for (u32 k = 0; k < p->nclocks; k++) {
    p->component[k] = TRACE_NONE;
    if (root_of(f->root, k) == k) p->reference[p->ncomponents] = k, p->component[k] = p->ncomponents++;
  }
  u32 *head = ZNEWN(p->a, u32, p->nclocks + 2), *queue = NEWN(p->a, u32, p->nclocks + 1), n = 0;
  u32 *next = NEWN(p->a, u32, 2 * f->tree.n + 2);
  for (u32 k = 0; k < 2 * f->tree.n; k++) {
    const u32 at = k & 1 ? f->tree.v[k / 2].to : f->tree.v[k / 2].from;
    next[k + 1] = head[at], head[at] = k + 1;
  }
  for (u32 k = 0; k < p->ncomponents; k++) queue[n++] = p->reference[k];
  for (u32 i = 0; i < n; i++)
    for (u32 e = head[queue[i]]; e; e = next[e]) {
      assert(f->tree.v);
      const near_tie *t = &f->tree.v[(e - 1) / 2];
      const bool forwards = t->from == queue[i];
      const u32 to = forwards ? t->to : t->from;
      if (p->component[to] != TRACE_NONE) continue;
      p->component[to] = p->component[queue[i]];
      const i64 c = p->coarse[queue[i]] + (forwards ? t->ahead : -t->ahead);
      p->coarse[to] = MAX(-ALIGN_FAR, MIN(ALIGN_FAR, c));
      queue[n++] = to;
    }
}

static void find_span(problem *p, const link_sums *s) {
  i64 least = INT64_MAX, most = INT64_MIN;
  for (u32 k = 0; k < p->in->nlinks; k++) {
    if (!s[k].n) continue;
    const i64 from = p->coarse[p->clock_of[p->in->link[k].from]],
              to = p->coarse[p->clock_of[p->in->link[k].to]];
    least = MIN(least, MIN(s[k].sent[0] - from, s[k].received[0] - to));
    most = MAX(most, MAX(s[k].sent[1] - from, s[k].received[1] - to));
  }
  for (u32 k = 0; k < p->in->nmembers; k++) {
    const align_member *m = &p->in->member[k];
    const i64 c = p->coarse[p->clock_of[m->process]];
    least = MIN(least, m->start_ps - c), most = MAX(most, m->end_ps - c);
  }
  p->origin = most < least ? 0 : least;
  p->span = most <= least ? ALIGN_UNIT : (double)(most - least);
}

// ---- the order of unknowns ------------------------------------------------------------------------------------
typedef struct {
  u32 *head, *next, *to, n;
} neighbours;

static void neighbour(neighbours *g, u32 x, u32 y) {
  if (x == y) return;
  g->n++, g->to[g->n] = y, g->next[g->n] = g->head[x], g->head[x] = g->n;
  g->n++, g->to[g->n] = x, g->next[g->n] = g->head[y], g->head[y] = g->n;
}

// Clocks as a walk in breadth from the references meets them: those of a message are near each other. Members of a
// collective are neighbours of its first member here; first[] knows that they are all of each other.
static void find_order(problem *p) {
  const align_seen *in = p->in;
  neighbours g = {.head = ZNEWN(p->a, u32, p->nclocks + 1)};
  const size_t most = 2 * ((size_t)in->nlinks + in->nmembers) + 1;
  g.next = NEWN(p->a, u32, most), g.to = NEWN(p->a, u32, most);
  for (u32 k = 0; k < in->nlinks; k++)
    neighbour(&g, p->clock_of[in->link[k].from], p->clock_of[in->link[k].to]);
  for (u32 q = 0; q < in->ncollectives; q++)
    for (u32 k = 1; k < in->collective[q].n; k++) {
      const align_member *m = in->member + in->collective[q].first;
      neighbour(&g, p->clock_of[m[0].process], p->clock_of[m[k].process]);
    }
  bool *met = ZNEWN(p->a, bool, p->nclocks + 1);
  u32 n = 0;
  for (u32 k = 0; k < p->ncomponents; k++) {
    met[p->reference[k]] = true;
    p->order[n++] = p->reference[k];
  }
  for (u32 i = 0; i < n; i++)
    for (u32 e = g.head[p->order[i]]; e; e = g.next[e])
      if (!met[g.to[e]]) met[g.to[e]] = true, p->order[n++] = g.to[e];
}

static void lower_first(problem *p, u32 clock, u32 to) {
  if (p->var[clock] == TRACE_NONE) return;
  for (u32 k = 0; k < p->nk; k++) p->first[p->var[clock] + k] = MIN(p->first[p->var[clock] + k], to);
}

static void find_first(problem *p) {
  const align_seen *in = p->in;
  for (u32 k = 0; k < p->nx + in->nfamilies + 1; k++) p->first[k] = k < p->nx ? k - k % p->nk : 0;
  for (u32 k = 0; k < in->nlinks; k++) {
    const u32 x = p->clock_of[in->link[k].from], y = p->clock_of[in->link[k].to];
    lower_first(p, x, p->var[y]), lower_first(p, y, p->var[x]);
  }
  for (u32 q = 0; q < in->ncollectives; q++) {
    const align_member *m = in->member + in->collective[q].first;
    u32 low = TRACE_NONE;
    for (u32 k = 0; k < in->collective[q].n; k++) low = MIN(low, p->var[p->clock_of[m[k].process]]);
    for (u32 k = 0; k < in->collective[q].n; k++) lower_first(p, p->clock_of[m[k].process], low);
  }
}

// ---- hulls ------------------------------------------------------------------------------------------------------
static u32 piece_of(const problem *p, double t) {
  const double k = t / p->span * p->pieces;
  return k <= 0 ? 0 : k >= p->pieces ? p->pieces - 1 : (u32)k;
}

static void find_hulls(problem *p) {
  const align_seen *in = p->in;
  const u32 n = in->nlinks * p->pieces;
  p->hull = ZNEWN(p->a, points, n + 1);
  bool *unordered = ZNEWN(p->a, bool, n + 1), any = false;
  for (u32 k = 0; k < in->nmessages; k++) {
    const align_message *m = &in->message[k];
    const align_link *l = &in->link[m->link];
    const double s = problem_local(p, l->from, m->send_ps);
    const u32 h = m->link * p->pieces + (p->pieces > 1 ? piece_of(p, s) : 0);
    if (unordered[h]) continue;
    points *hull = &p->hull[h];
    if (hull->n && hull->v[hull->n - 1].s > s)
      unordered[h] = any = true;
    else
      hull_add(p->a, hull, (point){s, problem_local(p, l->to, m->recv_ps) - s});
  }
  if (!any) return;
  for (u32 h = 0; h < n; h++)
    if (unordered[h]) p->hull[h].n = 0;
  for (u32 k = 0; k < in->nmessages; k++) {
    const align_message *m = &in->message[k];
    const align_link *l = &in->link[m->link];
    const double s = problem_local(p, l->from, m->send_ps);
    const u32 h = m->link * p->pieces + (p->pieces > 1 ? piece_of(p, s) : 0);
    if (unordered[h]) *vec_push(p->a, &p->hull[h]) = (point){s, problem_local(p, l->to, m->recv_ps) - s};
  }
  for (u32 h = 0; h < n; h++)
    if (unordered[h]) hull_sort(p->a, &p->hull[h]);
}

// ---- the problem ---------------------------------------------------------------------------------------------------
problem *problem_new(arena *a, const align_seen *in) {
  problem *p = NEW(a, problem);
  p->in = in, p->a = a;
  p->clock_of = NEWN(a, u32, in->nprocesses + 1);
  find_clocks(p);
  const u32 n = p->nclocks;
  p->component = NEWN(a, u32, n + 1), p->coarse = ZNEWN(a, i64, n + 1);
  p->used = ZNEWN(a, u64, in->nprocesses + 1), p->by_message = ZNEWN(a, bool, n + 1);
  p->var = NEWN(a, u32, n + 1), p->order = NEWN(a, u32, n + 1);
  forest f = {.p = p, .root = NEWN(a, u32, n + 1)};
  for (u32 k = 0; k < n; k++) f.root[k] = k;
  const link_sums *s = sum_links(p);
  tie_clocks(p, &f, s);
  find_coarse(p, &f);
  find_span(p, s);
  find_order(p);
  return p;
}

void problem_set_knots(problem *p, u32 nk) {
  const u32 pieces = nk > 2 ? nk - 1 : 1;
  p->nk = nk;
  p->knot = NEWN(p->a, double, nk);
  for (u32 k = 0; k < nk; k++) p->knot[k] = nk == 1 ? p->span / 2 : p->span * k / (nk - 1);
  p->nx = 0;
  for (u32 k = 0; k < p->nclocks; k++) {
    const u32 clock = p->order[k];
    const bool is_reference = p->reference[p->component[clock]] == clock;
    p->var[clock] = is_reference ? TRACE_NONE : p->nx;
    if (!is_reference) p->nx += nk;
  }
  p->first = NEWN(p->a, u32, p->nx + p->in->nfamilies + 1);
  p->tables = ZNEWN(p->a, double, (size_t)p->nclocks *nk + 1);
  find_first(p);
  if (p->hull && p->pieces == pieces) return;
  p->pieces = pieces;
  find_hulls(p);
}

const double *problem_table(const problem *p, const double *x) {
  for (u32 c = 0; c < p->nclocks; c++)
    for (u32 k = 0; p->var[c] != TRACE_NONE && k < p->nk; k++)
      p->tables[(size_t)c * p->nk + k] = x[p->var[c] + k] * ALIGN_UNIT;
  return p->tables;
}

static void add_reading(const problem *p, row *r, u32 clock, double t, double sign) {
  if (p->var[clock] == TRACE_NONE) return;
  if (p->nk == 1) {
    row_add(r, p->var[clock], -sign);
    return;
  }
  const double step = p->knot[1] - p->knot[0];
  u32 k = 0;
  if (p->nk > 2 && t > 0) k = (u32)(t / step) < p->nk - 2 ? (u32)(t / step) : p->nk - 2;
  const double share = (t - p->knot[k]) / step;
  row_add(r, p->var[clock] + k, -sign * (1 - share));
  row_add(r, p->var[clock] + k + 1, -sign * share);
}

row problem_row(const problem *p, const tie *t) {
  row r = {.c = t->d / ALIGN_UNIT};
  add_reading(p, &r, p->clock_of[t->to], t->sent + t->d, 1);
  add_reading(p, &r, p->clock_of[t->from], t->sent, -1);
  return r;
}

bool problem_tie_of(const problem *p, const double *table, u32 collective, tie *out) {
  const align_collective *q = &p->in->collective[collective];
  const align_member *m = p->in->member + q->first;
  u32 late = 0, early = 0;
  double latest = -INFINITY, earliest = INFINITY;
  for (u32 k = 0; k < q->n; k++) {
    const double start = problem_local(p, m[k].process, m[k].start_ps);
    const double s = start - problem_correction(p, table, p->clock_of[m[k].process], start);
    if (s > latest) latest = s, late = k;
  }
  for (u32 k = 0; k < q->n; k++) {
    const double end = problem_local(p, m[k].process, m[k].end_ps);
    const double e = end - problem_correction(p, table, p->clock_of[m[k].process], end);
    if (e < earliest && p->clock_of[m[k].process] != p->clock_of[m[late].process]) earliest = e, early = k;
  }
  if (earliest == INFINITY) return false;
  const double start = problem_local(p, m[late].process, m[late].start_ps);
  *out = (tie){m[late].process, m[early].process, start,
               problem_local(p, m[early].process, m[early].end_ps) - start, true};
  return true;
}
