// hang_order.c - which finding follows from which, cycles of waiting, and the order in which findings are told.
//
// Idea: a rank that did not come to one communication and waits in another makes the first a consequence of the second.
// So findings are the nodes of a graph; an edge leads from a communication to one in which a rank that it lacks waits.
// Where edges form a cycle, the ranks wait for each other, and that is the cause of all of them. A communication that
// all came to and that is not done (STUCK) is told if others follow from it, or if none of its ranks waits elsewhere.
#include "diagnose/flight.h"
#include <stdlib.h>

typedef struct {
  const flight *f;
  arena *a;
  hang_findings *found;
  VEC(u32) * waits; // by rank, as far as found: findings that it waits in
  hmap by_rank;     // rank + 1 as hash -> index into waits
  u8 *colour;       // 0 not seen, 1 on the path, 2 done
  bool *cause;      // does another follow from it?
  u32 *path, *edge; // findings of the path; which edge of each is next
  u32 npath;
} graph;

static bool lacks(const hang_finding *x) { return x->kind == HANG_MISSING; }

// The k-th finding in which a rank that x lacks waits; NULL: no more. rank: it.
static hang_finding *next_of(const graph *g, const hang_finding *x, u32 *at, u32 *rank) {
  u32 k = 0;
  for (u32 i = 0; i < x->who.n; i++) {
    u32 list;
    u32 it = 0;
    if (!hmap_next(&g->by_rank, hash_u64(x->who.v[i], 7), &it, &list)) continue;
    for (u32 n = 0; n < g->waits[list].n; n++, k++) {
      hang_finding *y = &g->found->v[g->waits[list].v[n]];
      if (k < *at || y == x) continue;
      *at = k + 1, *rank = x->who.v[i];
      return y;
    }
  }
  return NULL;
}

static void index_waits(graph *g) {
  u32 n = 0;
  for (u32 k = 0; k < g->found->n; k++) n += g->found->v[k].wait.n + g->found->v[k].who.n;
  g->waits = arena_zalloc(g->a, (n + 1) * sizeof *g->waits);
  u32 lists = 0;
  for (u32 k = 0; k < g->found->n; k++) {
    const hang_finding *x = &g->found->v[k];
    const bool all = x->kind >= HANG_ORDER && x->kind <= HANG_DTYPE; // those who differ wait, too
    for (u32 i = 0; !x->done && i < x->wait.n + (all ? x->who.n : 0); i++) {
      const u64 h = hash_u64(i < x->wait.n ? x->wait.v[i] : x->who.v[i - x->wait.n], 7); // one to one
      u32 it = 0, list;
      if (!hmap_next(&g->by_rank, h, &it, &list)) hmap_add(g->a, &g->by_rank, h, list = lists++);
      *vec_push(g->a, &g->waits[list]) = k;
    }
  }
}

// The findings of the path from `from` on wait for each other.
static void tell_cycle(graph *g, u32 from) {
  enum { SHOWN = 8 };
  strbuf b = {.a = g->a};
  VEC(u32) ranks = {0};
  i64 when = INT64_MAX;
  const u32 n = g->npath - from;
  assert(n); // the finding that the walk came back to
  for (u32 k = from; k < g->npath; k++) {
    const hang_finding *x = &g->found->v[g->path[k]],
                       *y = &g->found->v[g->path[k + 1 < g->npath ? k + 1 : from]];
    u32 both = x->who.v[0];
    for (u32 i = 0; i < x->who.n; i++) // x lacks it, and it waits in y
      if (hang_has(&y->wait, x->who.v[i])) {
        both = x->who.v[i];
        break;
      }
    *vec_push(g->a, &ranks) = both;
    when = MIN(when, x->when_ns);
    if (k - from < SHOWN)
      sb_fmt(&b, "%s rank %u in %s number %lld of %s", k > from ? ", which waits for" : "", both,
             sym_str(g->f->c, y->op), (long long)y->seq, hang_group_name(g->a, g->f->c, y->group, y->desc));
  }
  assert(ranks.n == n);
  const hang_ranks who = hang_ranks_of(g->a, ranks.n, ranks.v);
  const hang_finding *first = &g->found->v[g->path[from]];
  const char *more = n > SHOWN ? ", .." : "";
  hang_finding x = {.kind = HANG_CYCLE, .seq = -1, .who = who, .wait = who, .bytes = -1, .when_ns = when};
  x.text = arena_printf(g->a, "%s wait for each other:%s%s, which waits for rank %u", hang_who(g->a, &who),
                        sb_str(&b), more, ranks.v[0]);
  x.at = first->at;
  *vec_push(g->a, g->found) = x;
}

static void walk(graph *g, u32 root) {
  g->npath = 0;
  g->path[g->npath] = root, g->edge[g->npath++] = 0, g->colour[root] = 1;
  while (g->npath) {
    const u32 k = g->path[g->npath - 1];
    u32 rank;
    hang_finding *y = next_of(g, &g->found->v[k], &g->edge[g->npath - 1], &rank);
    if (!y) {
      g->colour[k] = 2;
      g->npath--;
      continue;
    }
    g->found->v[k].follows = true;
    const u32 to = (u32)(y - g->found->v);
    g->cause[to] = true;
    if (!lacks(y) || g->colour[to] == 2) continue;
    if (g->colour[to] == 0) {
      g->path[g->npath] = to, g->edge[g->npath++] = 0, g->colour[to] = 1;
      continue;
    }
    u32 from = g->npath - 1;
    while (g->path[from] != to) from--;
    tell_cycle(g, from);
    for (u32 i = 0; i < g->npath; i++) g->colour[g->path[i]] = 2; // told once
    g->npath = 0;
  }
}

static int by_cause(const void *p, const void *q) {
  const hang_finding *x = p, *y = q;
  if (x->follows != y->follows) return x->follows - y->follows;
  if (x->when_ns != y->when_ns) return x->when_ns < y->when_ns ? -1 : 1;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->group.i != y->group.i) return x->group.i < y->group.i ? -1 : 1;
  if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
  return strcmp(x->text, y->text);
}

// Does a rank that waits in x wait in something that is told otherwise?
static bool behind(const graph *g, const hang_finding *x) {
  for (u32 i = 0; i < x->wait.n; i++) {
    u32 it = 0, list;
    if (!hmap_next(&g->by_rank, hash_u64(x->wait.v[i], 7), &it, &list)) continue;
    for (u32 n = 0; n < g->waits[list].n; n++)
      if (g->found->v[g->waits[list].v[n]].kind != HANG_STUCK) return true;
  }
  return false;
}

void hang_arrange(const flight *f, arena *a, hang_findings *found) {
  graph g = {.f = f, .a = a, .found = found};
  const u32 n = found->n;
  index_waits(&g);
  g.colour = ZNEWN(a, u8, n + 1), g.cause = ZNEWN(a, bool, n + 1);
  g.path = NEWN(a, u32, n + 1), g.edge = NEWN(a, u32, n + 1);
  vec_reserve(a, found, 2 * n + 1); // cycles are added while the others are pointed to
  for (u32 k = 0; k < n; k++)
    if (lacks(&found->v[k]) && !g.colour[k]) walk(&g, k);
  u32 kept = 0;
  bool *drop = ZNEWN(a, bool, found->n + 1);
  for (u32 k = 0; k < n; k++)
    drop[k] = found->v[k].kind == HANG_STUCK && !g.cause[k] && behind(&g, &found->v[k]);
  for (u32 k = 0; k < found->n; k++)
    if (!drop[k]) found->v[kept++] = found->v[k];
  found->n = kept;
  if (kept) qsort(found->v, kept, sizeof *found->v, by_cause);
}
