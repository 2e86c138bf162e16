// coll.c - how long a collective takes: latency and bandwidth by placement. Not contention in time: the
// placement says what the subgroup gets while its siblings run.
//
// n members on N nodes, k on the fullest; S bytes as cost_comm defines them. A ring passes every node once,
// so its bytes leave a node at the node's bandwidth. In rounds over the members:
//
//   ring           f (n-1) steps, f (n-1)/n S bytes through the slowest link; f = 2 for all_reduce, else 1
//   hierarchical   a ring inside every node, then one between nodes for each of its members: fewer slow
//                  steps, but the two follow each other
//   tree           all_reduce: up a chain in every node and a binary tree of nodes, and down: 2 S bytes;
//                  of two nodes S bytes leave each
//   one by one     exchange: n-1 messages into every member, inside nodes at the rate of a pair
//   pipelined tree broadcast, reduce: the depth of a binary tree in steps, S bytes
//
// and the fastest is taken, as communication libraries do. Sources: Chan, Heimlich, Purkayastha, van de
// Geijn, "Collective communication: theory, practice, and experience", 2007; bandwidth terms as nccl-tests
// define them.
#include "cost/internal.h"

typedef struct {
  double n, nodes, k;   // members, nodes, members on the fullest node
  double in, out;       // ps of a step
  double in_ps, out_ps; // ps of a byte: of a member inside its node, of a node
  double all_ps;        // ... of a member that sends evenly to all
} net;

static u32 log2_up(u32 n) {
  u32 d = 0;
  while ((1ull << d) < n) d++;
  return d;
}

// The ps of one algorithm: its steps, its bytes inside nodes and between them, where both are equally slow.
typedef struct {
  double steps, in, out, both;
} made;
static double total(made x) { return x.steps + (x.in + x.out + x.both); }
static made faster(made x, made y) { return total(y) < total(x) ? y : x; }
// Bytes that pass both at once: the slower counts.
static made slower(double steps, double in, double out) {
  return (made){steps, in > out ? in : 0, out > in ? out : 0, in == out ? in : 0};
}

static made ring(const net *t, double f, double S) {
  const double steps = f * ((t->n - t->nodes) * t->in + (t->nodes - 1) * t->out);
  const double part = f * (t->n - 1) / t->n * S;
  return slower(steps, part * t->in_ps, part * t->out_ps);
}

static made hierarchical(const net *t, double f, double S) {
  const double steps = f * ((t->k - 1) * t->in + (t->nodes - 1) * t->out);
  return (made){steps, f * S * (t->k - 1) / t->k * t->in_ps, f * S * (t->nodes - 1) / t->nodes * t->out_ps,
                0};
}

// Of two nodes each sends once; of more, those within send up what they got and down what comes back.
static made tree(const net *t, u32 nodes, double S) {
  const double steps = 2 * ((t->k - 1) * t->in + log2_up(nodes) * t->out);
  return slower(steps, S * 2 * t->in_ps, S * (nodes > 2 ? 2 : 1) * t->out_ps);
}

// Every member keeps 1/n of its bytes, k/n stay in its node.
static made exchange(const net *t, double S) {
  const double stay = S * (t->k - 1) / t->n * t->all_ps, leave = t->k * S * (t->n - t->k) / t->n * t->out_ps;
  return slower((t->n - 1) * t->in + (t->nodes > 1 ? t->out : 0), stay, leave);
}

// Every member is sent S bytes, an equal part by each of the others, one message after the other. What comes from other
// nodes shares their cards with what their other members send.
static made one_by_one(const net *t, double S, double pair_ps, double dev_ps) {
  const double part = S / (t->n - 1), away = t->n - t->k;
  return (made){(t->k - 1) * t->in + away * t->out, part * (t->k - 1) * pair_ps,
                part * away * MAX(dev_ps, t->k * t->out_ps), 0};
}

// False: a link is missing.
static bool coll(opcode op, i64 bytes, const machine_placement *p, made *out) {
  *out = (made){0};
  if (p->n < 2) return true;
  const bool inside = p->per_node > 1, between = p->nodes > 1;
  if ((inside && (p->in_bw <= 0 || p->pair_bw <= 0)) || (between && p->out_bw <= 0)) return false;
  const double S = (double)bytes, pair = inside ? 1e12 / p->pair_bw : 0, dev = between ? 1e12 / p->dev_bw : 0;
  const net t = {p->n,
                 p->nodes,
                 p->per_node,
                 (double)p->in_ps,
                 (double)p->out_ps,
                 inside ? 1e12 / p->in_bw : 0,
                 between ? 1e12 / p->out_bw : 0,
                 inside ? 1e12 / p->all_bw : 0};
  switch (op) {
  case OP_all_reduce:
  case OP_all_gather:
  case OP_reduce_scatter: {
    const double f = op == OP_all_reduce ? 2 : 1;
    *out = ring(&t, f, S);
    if (p->even && inside && between) *out = faster(*out, hierarchical(&t, f, S));
    if (op == OP_all_reduce && between) *out = faster(*out, tree(&t, p->nodes, S));
    break;
  }
  case OP_broadcast:
  case OP_reduce:
    *out = slower(log2_up(p->per_node) * t.in + log2_up(p->nodes) * t.out, S * t.in_ps, S * t.out_ps);
    break;
  case OP_gather_to: // everything passes the root's own links
  case OP_scatter_from:
    *out = slower((t.n - 1) * t.in + (between ? t.out : 0), S * (t.k - 1) / t.n * pair,
                  S * (t.n - t.k) / t.n * dev);
    break;
  case OP_exchange: *out = one_by_one(&t, S, pair, dev); break;
  case OP_all_to_all:
  case OP_permute: *out = exchange(&t, S); break; // a permutation: what it is on average over all of them
  default:                                        // send, halo_exchange: between neighbours
    *out = between ? (made){t.out, 0, S * dev, 0} : (made){t.in, S * pair, 0, 0};
    break;
  }
  return true;
}

i64 coll_ps(opcode op, i64 bytes, const machine_placement *p) {
  made x;
  if (!coll(op, bytes, p, &x)) return -1;
  return p->n < 2 ? 0 : round_ps(total(x)) + p->start_ps;
}

void coll_parts(opcode op, i64 bytes, const machine_placement *p, cost_parts *out) {
  made x;
  if (!coll(op, bytes, p, &x) || p->n < 2) return;
  out->ps[COST_BY_LATENCY] = x.steps + (double)p->start_ps;
  out->ps[COST_BY_INSIDE] = x.in;
  out->ps[COST_BY_BETWEEN] = x.out;
  out->ps[COST_BY_SEVERAL] = x.both;
}
