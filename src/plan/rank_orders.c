// rank_orders.c - can the ranks, each in its own order, run to the end? Not who makes the orders (schedule.c
// merges those of a plan; main's own are one sequence cut up by rank).
//
// Idea: a node is what starts and ends at one moment: a local instruction on one rank, or communication on
// all of its ranks at once (a call that communicates inside counts as that). Two nodes that a rank issues one
// after the other on one stream are an edge, so is a value from its maker to its user. A topological walk
// that does not reach every node has found a cycle: the deadlock, which is then read off node by node.
#include "plan/internal.h"

typedef struct {
  u64 w[4];
} streams; // that an instruction occupies

typedef struct {
  bool communicates;
  streams on;
} nature;

typedef struct {
  const prog *p;
  arena *a;
  const func_info *m;
  nature *func; // per function
  bool *known;
  nature *nat; // per instruction of main
} orders;

static bool moves(opcode op) {
  const coll_row *row = coll_find(op);
  return row && op != OP_shard && op != OP_partial;
}

static nature nature_of(orders *o, const instr *i) {
  nature n = {.communicates = moves((opcode)i->op)};
  n.on.w[i->strm >> 6] |= (u64)1 << (i->strm & 63);
  if (i->op != OP_call) return n;
  u32 f = i->callee.i;
  if (!o->known[f]) {
    const func_info *fi = func_get(o->p, i->callee);
    o->known[f] = true;
    for (u32 k = 0; k < fi->body.n; k++) {
      nature x = nature_of(o, &fi->body.v[k]);
      o->func[f].communicates |= x.communicates;
      for (u32 w = 0; w < 4; w++) o->func[f].on.w[w] |= x.on.w[w];
    }
  }
  n.communicates = o->func[f].communicates;
  for (u32 w = 0; w < 4; w++) n.on.w[w] |= o->func[f].on.w[w];
  return n;
}

static void orders_open(orders *o, const prog *p) {
  *o = (orders){.p = p, .a = arena_new(), .m = func_get(p, p->main)};
  o->func = ZNEWN(o->a, nature, p->funcs.n);
  o->known = ZNEWN(o->a, bool, p->funcs.n);
  o->nat = NEWN(o->a, nature, o->m->body.n + 1);
  for (u32 k = 0; k < o->m->body.n; k++) o->nat[k + 1] = nature_of(o, &o->m->body.v[k]);
}

// The groups that take part in an instruction: where it runs and, where that is elsewhere, its results.
static u32 groups_of(const orders *o, const instr *i, group *g) {
  u32 n = 0;
  g[n++] = i->g;
  for (u32 k = 0; k < i->nres; k++) {
    const type_info *t = val_type(o->p, o->m, i->res + k);
    if (!t->tuple && t->g.i && t->g.i != i->g.i && n < 2) g[n++] = t->g;
  }
  return n;
}

static bool takes_part(const orders *o, const instr *i, u32 rank) {
  group g[2];
  u32 n = groups_of(o, i, g);
  for (u32 k = 0; k < n; k++)
    if (!g[k].i ? rank == 0 : group_member(o->p->sp, g[k], rank) >= 0) return true;
  return false;
}

u32 plan_ranks(const prog *p) {
  u32 n = 1;
  for (u32 g = 1; g <= group_count(p->sp); g++) {
    const group_info *gi = group_get(p->sp, (group){g});
    for (u32 k = 0; k < gi->nranks; k++) n = MAX(n, gi->ranks[k] + 1);
  }
  return n;
}

// ---- main's own orders -----------------------------------------------------------------------------------
static void project(const orders *o, arena *a, u32 nranks, const bool *wanted, plan_order *out) {
  u32 *n = ZNEWN(o->a, u32, nranks), **v = NEWN(o->a, u32 *, nranks);
  u32 *last = NEWN(o->a, u32, nranks); // an instruction on two groups that share ranks counts once
  for (int pass = 0; pass < 2; pass++) {
    memset(last, 0, nranks * sizeof *last);
    for (u32 k = 1; k <= o->m->body.n; k++) {
      group g[2];
      u32 ng = groups_of(o, &o->m->body.v[k - 1], g);
      for (u32 j = 0; j < ng; j++) {
        const group_info *gi = group_get(o->p->sp, g[j]);
        for (u32 q = 0; q < (g[j].i ? gi->nranks : 1); q++) {
          u32 r = g[j].i ? gi->ranks[q] : 0;
          if (last[r] == k || (wanted && !wanted[r])) continue;
          last[r] = k;
          if (pass) v[r][n[r]] = k;
          n[r]++;
        }
      }
    }
    for (u32 r = 0; r < nranks; r++) {
      if (pass)
        out[r] = (plan_order){n[r], v[r]};
      else
        v[r] = NEWN(a, u32, n[r] + 1), n[r] = 0;
    }
  }
}

void plan_projections(const prog *p, arena *a, plan_order *of_rank) {
  orders o;
  orders_open(&o, p);
  project(&o, a, plan_ranks(p), NULL, of_rank);
  arena_free(o.a);
}

// Ranks of the same groups issue the same; one of each kind stands for the others.
bool plan_check_projections(const prog *p) {
  orders o;
  orders_open(&o, p);
  u32 nranks = plan_ranks(p);
  u64 *key = ZNEWN(o.a, u64, nranks);
  bool *wanted = ZNEWN(o.a, bool, nranks);
  for (u32 g = 1; g <= group_count(p->sp); g++) {
    const group_info *gi = group_get(p->sp, (group){g});
    for (u32 k = 0; k < gi->nranks; k++) key[gi->ranks[k]] = hash_u64(g, key[gi->ranks[k]] + 1);
  }
  hmap seen = {0};
  for (u32 r = 0; r < nranks; r++) {
    if (hmap_get(&seen, key[r])) continue;
    hmap_add(o.a, &seen, key[r], 1);
    wanted[r] = true;
  }
  plan_order *of_rank = ZNEWN(o.a, plan_order, nranks);
  project(&o, o.a, nranks, wanted, of_rank);
  for (u32 r = 0; r < nranks; r++)
    if (!wanted[r]) of_rank[r] = (plan_order){0};
  bool ok = plan_check_orders(p, of_rank, nranks);
  arena_free(o.a);
  return ok;
}

// ---- one order of communication ------------------------------------------------------------------------
static const char *instr_str(const orders *o, u32 number) {
  const instr *i = &o->m->body.v[number - 1];
  const char *what =
      i->op == OP_call ? sym_str(o->p->c, func_get(o->p, i->callee)->name) : op_row_of((opcode)i->op)->name;
  return arena_printf(ctx_arena(o->p->c), "%s%s (instruction %u of main)",
                      i->op == OP_call ? "the call of @" : "", what, number);
}

static loc where_of(const orders *o, u32 number) { return o->m->body.v[number - 1].where; }

// What meets must meet in one order: the ranks, the axes and the stream of a communication.
static u64 rendezvous_of(const orders *o, u32 number) {
  const instr *i = &o->m->body.v[number - 1];
  const attr *over = attr_get(attrs_get(o->p, i->at), A_over);
  group g[2];
  u32 n = groups_of(o, i, g);
  u64 key = hash_u64((u64)i->strm << 32 | n, i->op == OP_call);
  for (u32 k = 0; k < n; k++) key = hash_u64(g[k].i, key);
  return over ? hash_bytes(over->u.axes, over->n, key) : key;
}

typedef struct {
  u32 rank, n; // the first that issues them; how many
  u32 *v;
} rendezvous;

// An operand that the rank itself makes but has not issued yet: who makes it; else 0.
static u32 made_later(const orders *o, u32 number, u32 rank, const u32 *seen) {
  const instr *i = &o->m->body.v[number - 1];
  for (u32 k = 0; k < i->nopd; k++) {
    u32 def = o->m->values.v[opd_of(o->m, i, k)].def;
    if (def && seen[def] != rank + 1 && takes_part(o, &o->m->body.v[def - 1], rank)) return def;
  }
  return 0;
}

// Does every rank issue what it takes part in, once, after its operands, and the rendezvous of equal ranks in
// equal order?
static bool check_issue(orders *o, const plan_order *of_rank, u32 nranks) {
  u32 n = o->m->body.n;
  VEC(rendezvous) met = {0};
  hmap at = {0};
  u32 *seen = ZNEWN(o->a, u32, n + 1);
  for (u32 r = 0; r < nranks; r++) {
    if (!of_rank[r].n) continue;
    u32 *done = ZNEWN(o->a, u32, met.n + 1), known = met.n;
    for (u32 k = 0; k < of_rank[r].n; k++) {
      u32 x = of_rank[r].instr[k];
      if (x < 1 || x > n || seen[x] == r + 1 || !takes_part(o, &o->m->body.v[x - 1], r)) {
        diag(o->p->c, E_DEADLOCK, x >= 1 && x <= n ? where_of(o, x) : (loc){0},
             "rank %u issues instruction %u of main, which %s", r, x,
             x < 1 || x > n     ? "does not exist"
             : seen[x] == r + 1 ? "it has issued before"
                                : "is not its own");
        return false;
      }
      seen[x] = r + 1;
      u32 early = made_later(o, x, r, seen);
      if (early) {
        diag(o->p->c, E_DEADLOCK, where_of(o, x), "rank %u issues %s before %s, whose result it needs", r,
             instr_str(o, x), instr_str(o, early));
        return false;
      }
      if (!o->nat[x].communicates) continue;
      u64 key = rendezvous_of(o, x);
      u32 j = hmap_get(&at, key);
      if (!j) {
        *vec_push(o->a, &met) = (rendezvous){r, 0, NEWN(o->a, u32, of_rank[r].n)};
        hmap_add(o->a, &at, key, j = met.n);
      }
      assert(met.v && j <= met.n);
      rendezvous *m = &met.v[j - 1];
      if (m->rank == r) {
        m->v[m->n++] = x;
        continue;
      }
      u32 turn = j <= known ? done[j - 1]++ : 0;
      if (turn < m->n && m->v[turn] == x) continue;
      diag(o->p->c, E_COLLECTIVE_ORDER, where_of(o, x), "rank %u issues %s where rank %u has %s", r,
           instr_str(o, x), m->rank, turn < m->n ? instr_str(o, m->v[turn]) : "no more of its kind");
      return false;
    }
    for (u32 x = 1; x <= n; x++) {
      if (seen[x] == r + 1 || !takes_part(o, &o->m->body.v[x - 1], r)) continue;
      diag(o->p->c, E_DEADLOCK, where_of(o, x), "rank %u never issues %s", r, instr_str(o, x));
      return false;
    }
  }
  return true;
}

// ---- the merge -----------------------------------------------------------------------------------------
typedef struct {
  u32 instr, rank; // rank of the first that issued it
} node;
typedef struct {
  VEC(node) nodes; // [0] unused
  VEC(u64) edges;  // from << 32 | to
  u32 *shared;     // per instruction that communicates: its node
} graph;

static void add_edge(orders *o, graph *g, u32 from, u32 to) {
  if (from && from != to) *vec_push(o->a, &g->edges) = (u64)from << 32 | to;
}

static void add_rank(orders *o, graph *g, u32 rank, const plan_order *order, u32 *made) {
  u32 last[256] = {0}, nstreams = o->p->streams.n;
  for (u32 k = 0; k < order->n; k++) {
    u32 x = order->instr[k], self = o->nat[x].communicates ? g->shared[x] : 0;
    if (!self) {
      *vec_push(o->a, &g->nodes) = (node){x, rank};
      self = g->nodes.n - 1;
      if (o->nat[x].communicates) g->shared[x] = self;
    }
    made[x] = self;
    for (u32 s = 0; s < MAX(nstreams, 1); s++)
      if (o->nat[x].on.w[s >> 6] >> (s & 63) & 1) add_edge(o, g, last[s], self), last[s] = self;
  }
  for (u32 k = 0; k < order->n; k++) { // values
    u32 x = order->instr[k];
    const instr *i = &o->m->body.v[x - 1];
    for (u32 j = 0; j < i->nopd; j++) {
      u32 def = o->m->values.v[opd_of(o->m, i, j)].def;
      if (def) add_edge(o, g, made[def], made[x]);
    }
  }
  for (u32 k = 0; k < order->n; k++) made[order->instr[k]] = 0;
}

// A cycle among the nodes that were not reached: every one of them waits for another one.
static void report_cycle(orders *o, const graph *g, const u32 *waits, const u32 *begin, const u32 *to) {
  u32 *before = ZNEWN(o->a, u32, g->nodes.n), *seen = ZNEWN(o->a, u32, g->nodes.n), x = 0, step = 0;
  for (u32 v = 1; v < g->nodes.n; v++)
    for (u32 k = begin[v]; waits[v] && k < begin[v + 1]; k++) before[to[k]] = v;
  for (u32 v = 1; v < g->nodes.n && !x; v++)
    if (waits[v]) x = v;
  for (; !seen[x]; x = before[x]) seen[x] = ++step;
  diag(o->p->c, E_DEADLOCK, where_of(o, g->nodes.v[x].instr),
       "deadlock: ranks wait for each other in a cycle");
  u32 first = x, shown = 0;
  do {
    u32 by = before[x];
    if (shown++ < 8)
      diag_note(o->p->c, where_of(o, g->nodes.v[x].instr), "%s on rank %u waits for %s on rank %u",
                instr_str(o, g->nodes.v[x].instr), g->nodes.v[x].rank, instr_str(o, g->nodes.v[by].instr),
                g->nodes.v[by].rank);
    x = by;
  } while (x != first);
}

static bool check_merge(orders *o, const plan_order *of_rank, u32 nranks) {
  graph g = {.shared = ZNEWN(o->a, u32, o->m->body.n + 1)};
  vec_push(o->a, &g.nodes)->instr = 0;
  u32 *made = ZNEWN(o->a, u32, o->m->body.n + 1);
  for (u32 r = 0; r < nranks; r++) add_rank(o, &g, r, &of_rank[r], made);
  u32 n = g.nodes.n, ne = g.edges.n;
  u32 *begin = ZNEWN(o->a, u32, n + 2), *to = NEWN(o->a, u32, ne + 1), *waits = ZNEWN(o->a, u32, n + 1),
      *queue = NEWN(o->a, u32, n + 1);
  for (u32 k = 0; k < ne; k++) begin[(g.edges.v[k] >> 32) + 1]++, waits[(u32)g.edges.v[k]]++;
  for (u32 v = 1; v <= n; v++) begin[v] += begin[v - 1];
  u32 *at = arena_dup(o->a, begin, (n + 1) * sizeof *begin);
  for (u32 k = 0; k < ne; k++) to[at[g.edges.v[k] >> 32]++] = (u32)g.edges.v[k];
  u32 head = 0, tail = 0;
  for (u32 v = 1; v < n; v++)
    if (!waits[v]) queue[tail++] = v;
  while (head < tail) {
    u32 v = queue[head++];
    for (u32 k = begin[v]; k < begin[v + 1]; k++)
      if (!--waits[to[k]]) queue[tail++] = to[k];
  }
  if (tail + 1 == n) return true;
  report_cycle(o, &g, waits, begin, to);
  return false;
}

bool plan_check_orders(const prog *p, const plan_order *of_rank, u32 nranks) {
  orders o;
  orders_open(&o, p);
  bool ok = check_issue(&o, of_rank, nranks) && check_merge(&o, of_rank, nranks);
  arena_free(o.a);
  return ok;
}
