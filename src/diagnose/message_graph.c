// message_graph.c - the global graph of a job recorded as operators and messages (dPRO, MLSys 2022, 4.1). Not its replay
// (message_replay.c), not which two events are one message (match.c) and what it waits for (trace/gtrace_link.c).
#include "diagnose/internal.h"
#include <stdlib.h>

typedef struct {
  u32 file, event, place, step;
  i64 start_ps, end_ps; // on the place's clock
  sym name, tensor;
  i64 bytes;
  bool taken; // it is in a node
} message_end;
typedef struct {
  message_graph *g;
  job *j;
  arena *a, *tmp;
  match *m;
  const align_clocks *clocks; // NULL: as recorded
  VEC(message_node) node;
  VEC(message_edge) edge;
  VEC(message_end) end;
  VEC(u32) from, to;     // of resources
  VEC(trace_edge) after; // of events: file of both in file
  VEC(u32) after_file;
  hmap by_event; // messages: node + 1
  hmap by_res;
  u32 *
      team; // of a place: which worker's operators and links; of operators their own, of links by the name of the link
  bool *works; // of a place: it has operators
} building;

static i64 on_one_clock(const building *b, u32 place, i64 ps) {
  return b->clocks ? align_time(b->clocks, place, ps) : ps;
}

static u32 resource(building *b, u32 from, u32 to, u64 lane) {
  const u64 h = hash_u64(hash_step(hash_step(hash_step(23, from), to), lane), 1);
  u32 at = hmap_get(&b->by_res, h);
  if (!at) {
    *vec_push(b->a, &b->from) = from, *vec_push(b->a, &b->to) = to;
    hmap_add(b->tmp, &b->by_res, h, at = b->from.n);
  }
  return at - 1;
}

static void wait_for(building *b, u32 node, u32 after) {
  if (after != TRACE_NONE && node != after) *vec_push(b->a, &b->edge) = (message_edge){after, node};
}

// ---- reading ------------------------------------------------------------------------------------------------
static bool wanted(const job *j, u32 step) {
  return !j->steps || (step != TRACE_NONE && number_set_has(j->steps, step));
}

static void add_operator(building *b, const trace *t, u32 e, u32 place) {
  const i64 start = b->m->places.v[place].base_ps + t->start_ps[e];
  const u8 f = t->flags[e];
  *vec_push(b->a, &b->node) = (message_node){.is = MESSAGE_OPERATOR,
                                             .phase = f & TRACE_BACKWARD ? TUNE_BACKWARD
                                                      : f & TRACE_UPDATE ? TUNE_UPDATE
                                                                         : TUNE_FORWARD,
                                             .place = place,
                                             .to = place,
                                             .res = resource(b, place, place, t->lane[e] + 1),
                                             .step = t->step[e],
                                             .name = trace_name(t, e),
                                             .start_ps = start,
                                             .end_ps = start + MAX(t->dur_ps[e], 0),
                                             .bytes = -1};
}

// The tensor of a message is the first word of its group, the part of it the last but who has this end.
static void add_end(building *b, const trace *t, u32 file, u32 e, u32 place) {
  const trace_comm *c = &t->comms.v[t->comm[e]];
  const char *group = sym_str(b->j->c, c->group);
  const i64 start = b->m->places.v[place].base_ps + t->start_ps[e];
  *vec_push(b->tmp, &b->end) = (message_end){.file = file,
                                             .event = e,
                                             .place = place,
                                             .step = t->step[e] != TRACE_NONE ? t->step[e]
                                                     : c->seq >= 0            ? (u32)c->seq
                                                                              : TRACE_NONE,
                                             .start_ps = start,
                                             .end_ps = start + MAX(t->dur_ps[e], 0),
                                             .name = trace_name(t, e),
                                             .tensor = sym_ofn(b->j->c, group, strcspn(group, " ")),
                                             .bytes = c->bytes};
}

static bool read_file(building *b, u32 file) {
  const u32 first = b->m->places.n;
  const trace *t = job_load(b->j, file, 0);
  if (!t) return false;
  match_add(b->m, t, file, job_rank(b->j, file));
  for (u32 e = 0; e < t->n; e++) {
    const trace_lane *l = &t->lanes.v[t->lane[e]];
    const bool comm = t->comm[e] != TRACE_NONE;
    if (!wanted(b->j, t->step[e]) || t->is[e] != TRACE_KERNEL) continue;
    if (!comm && b->m->places.v[first + l->process].rank != TRACE_NONE)
      add_operator(b, t, e, first + l->process);
    else if (comm && comm_who_of(b->j->c, t->comms.v[t->comm[e]].op) == COMM_WHO_MESSAGE)
      add_end(b, t, file, e, first + l->process);
  }
  for (u32 k = 0; k < t->edges.n; k++)
    if (t->edges.v[k].after != TRACE_NONE)
      *vec_push(b->tmp, &b->after) = t->edges.v[k], *vec_push(b->tmp, &b->after_file) = file;
  job_unload(b->j, file);
  return true;
}

// ---- messages -------------------------------------------------------------------------------------------------
// A message of one event has both ends there (BytePS): its process is the link.
static void add_message(building *b, message_end *x, message_end *y) {
  const i64 sent = on_one_clock(b, x->place, x->start_ps), posted = on_one_clock(b, y->place, y->start_ps);
  const i64 end = on_one_clock(b, y->place, y->end_ps), both = end - MAX(sent, posted);
  const i64 least = MIN(x->end_ps - x->start_ps, y->end_ps - y->start_ps);
  const u32 node = b->node.n;
  hmap_add(b->tmp, &b->by_event, event_hash(x->file, x->event), node + 1);
  if (x != y) hmap_add(b->tmp, &b->by_event, event_hash(y->file, y->event), node + 1);
  x->taken = y->taken = true;
  *vec_push(b->a, &b->node) = (message_node){.is = MESSAGE_SENT,
                                             .place = x->place,
                                             .to = y->place,
                                             .res = resource(b, x->place, y->place, 0),
                                             .step = x->step,
                                             .name = x->name,
                                             .tensor = x->tensor,
                                             .start_ps = sent,
                                             .end_ps = MAX(end, sent),
                                             .dur_ps = both > 0 ? both : least, // clocks are not that exact
                                             .bytes = x->bytes,
                                             .first = true};
}

static bool refuse(const building *b, const char *why, const char *hint) {
  ctx *c = b->j->c;
  diag(c, E_TRACE, loc_text(c, sym_of(c, b->j->file[0].path), 0, 0, NULL), "%s", why);
  diag_hint(c, "%s", hint);
  return false;
}

static bool add_messages(building *b) {
  hmap at = {0};
  u32 alone = 0;
  const message_end *odd = NULL;
  for (u32 k = 0; k < b->end.n; k++)
    hmap_add(b->tmp, &at, event_hash(b->end.v[k].file, b->end.v[k].event), k + 1);
  for (u32 k = 0; k < b->m->row.n; k++) {
    const match_row *r = &b->m->row.v[k];
    const match_member *v = &b->m->member.v[r->first];
    u32 of[2] = {0};
    if (r->n < 1 || r->n > 2 || (r->n == 1 && r->by != MATCH_BY_FILE)) continue;
    for (u32 i = 0; i < r->n; i++) of[i] = hmap_get(&at, event_hash(v[i].file, v[i].event));
    if (!of[0] || (r->n == 2 && !of[1])) continue;
    add_message(b, &b->end.v[of[0] - 1], &b->end.v[of[r->n - 1] - 1]);
    b->g->ring |= r->n == 2, b->g->servers |= r->n == 1;
  }
  for (u32 k = 0; k < b->end.n; k++) {
    if (b->end.v[k].taken) continue;
    alone++;
    if (!odd) odd = &b->end.v[k];
  }
  if (!b->end.n)
    return refuse(b,
                  "it has no messages: of communications their SEND and RECV, or PUSH and PULL, are needed",
                  "NCCL_ENABLE_TIMELINE of dPRO's NCCL records those of rings, BytePS's servers theirs");
  if (!alone) return true;
  const bool servers = b->g->servers && !b->g->ring;
  return refuse(b,
                arena_printf(b->a, "of %u ends of messages %u %s no other end, such as %s of tensor %s: %s",
                             b->end.n, alone, alone == 1 ? "has" : "have", sym_str(b->j->c, odd->name),
                             sym_str(b->j->c, odd->tensor),
                             servers ? "it was not recorded, or is there twice"
                                     : "who is next in a ring is not said, or they were not recorded"),
                servers
                    ? "a recording of workers and servers from the same steps has both ends of every message"
                    : "nccl_rank_graph.json of every worker in HOST/GPU/ beside the file says who is next");
}

// ---- what waits for what ------------------------------------------------------------------------------------
static int by_edge(const void *x, const void *y) {
  const message_edge *a = x, *b = y;
  if (a->node != b->node) return a->node < b->node ? -1 : 1;
  return a->after < b->after ? -1 : a->after > b->after;
}

static void add_file_edges(building *b) {
  for (u32 k = 0; k < b->after.n; k++) {
    const trace_edge *e = &b->after.v[k];
    const u32 node = hmap_get(&b->by_event, event_hash(b->after_file.v[k], e->event)),
              on = hmap_get(&b->by_event, event_hash(b->after_file.v[k], e->after));
    if (!node || !on) continue;
    b->node.v[node - 1].first = false;
    wait_for(b, node - 1, on - 1);
  }
}

// Operators, sorted by place and thread: each waits for the one before it on its thread.
static int by_thread(const void *x, const void *y) {
  const message_node *a = x, *b = y;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  if (a->res != b->res) return a->res < b->res ? -1 : 1;
  if (a->start_ps != b->start_ps) return a->start_ps < b->start_ps ? -1 : 1;
  if (a->end_ps != b->end_ps) return a->end_ps < b->end_ps ? -1 : 1;
  return a->name.i < b->name.i ? -1 : a->name.i > b->name.i;
}

static void order_operators(building *b) {
  for (u32 k = 0; k < b->node.n; k++) {
    message_node *x = &b->node.v[k];
    x->dur_ps = x->end_ps - x->start_ps;
    x->start_ps = on_one_clock(b, x->place, x->start_ps), x->end_ps = x->start_ps + x->dur_ps;
    b->works[x->place] = true;
  }
  if (b->node.n) qsort(b->node.v, b->node.n, sizeof *b->node.v, by_thread);
  for (u32 k = 1; k < b->node.n; k++)
    if (b->node.v[k].res == b->node.v[k - 1].res) wait_for(b, k, k - 1);
}

// A team is a worker of communication and what computes for it: in a ring one place, with servers the GPUs of a host and the links
// of that host's worker, which have its number in their names. Hosts are numbered by their lowest rank.
static bool find_teams(building *b) {
  if (b->g->ring && b->g->servers)
    return refuse(b, "it has messages of rings and of servers: which operators wait for which is not known",
                  "a job has one of both");
  const match *m = b->m;
  u32 hosts = 0, numbers = 0;
  b->team = NEWN(b->tmp, u32, m->places.n + 1);
  for (u32 k = 0; k < m->places.n; k++) b->team[k] = b->g->ring ? k : TRACE_NONE;
  if (b->g->ring) return true;
  for (u32 k = 0; k < m->places.n; k++) {
    const char *link = strstr(sym_str(m->c, m->places.v[k].host), "worker_");
    if (b->works[k] || !link) continue;
    b->team[k] = (u32)strtoul(link + 7, NULL, 10), numbers = MAX(numbers, b->team[k] + 1);
  }
  for (;; hosts++) { // the host of the lowest rank that has no team yet
    u32 low = TRACE_NONE;
    for (u32 k = 0; k < m->places.n; k++)
      if (b->works[k] && b->team[k] == TRACE_NONE &&
          (low == TRACE_NONE || m->places.v[k].rank < m->places.v[low].rank))
        low = k;
    if (low == TRACE_NONE) break;
    const sym host = m->places.v[low].host;
    for (u32 k = 0; k < m->places.n; k++)
      if (b->works[k] && m->places.v[k].host.i == host.i) b->team[k] = hosts;
  }
  if (hosts == numbers) return true;
  return refuse(
      b,
      arena_printf(b->a,
                   "its operators are of %u host%s, its messages of %u worker%s: which operators wait for "
                   "which messages is not known",
                   hosts, hosts == 1 ? "" : "s", numbers, numbers == 1 ? "" : "s"),
      "bps_trace_final.json of all workers has both");
}

static int by_tensor(const void *x, const void *y) {
  const message_node *a = *(message_node *const *)x, *b = *(message_node *const *)y;
  if (a->tensor.i != b->tensor.i) return a->tensor.i < b->tensor.i ? -1 : 1;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  return a < b ? -1 : a > b;
}

// The last operator of the backward that had ended by then; the first that is no backward and began then or later.
static u32 made_by(const building *b, u32 nops, u32 place, i64 ps) {
  u32 best = TRACE_NONE;
  for (u32 k = 0; k < nops; k++) {
    const message_node *x = &b->node.v[k];
    if (x->place == place && x->phase == TUNE_BACKWARD && x->end_ps <= ps &&
        (best == TRACE_NONE || x->end_ps > b->node.v[best].end_ps))
      best = k;
  }
  return best;
}
static u32 used_by(const building *b, u32 nops, u32 place, i64 ps) {
  u32 best = TRACE_NONE;
  for (u32 k = 0; k < nops; k++) {
    const message_node *x = &b->node.v[k];
    if (x->place == place && x->phase != TUNE_BACKWARD && x->start_ps >= ps &&
        (best == TRACE_NONE || x->start_ps < b->node.v[best].start_ps))
      best = k;
  }
  return best;
}

// Ties the messages of a tensor in a step to operators. A ring begins when all of its workers are ready, a worker's requests
// to servers when that worker is.
static void tie_tensor(building *b, u32 nops, message_node *const *v, u32 n) {
  const u32 places = b->m->places.n;
  i64 *from = NEWN(b->tmp, i64, places + 1), *to = NEWN(b->tmp, i64, places + 1);
  for (u32 k = 0; k < places; k++) from[k] = INT64_MAX, to[k] = INT64_MIN;
  u32 *last = NEWN(b->tmp, u32, places + 1);
  for (u32 k = 0; k < n; k++) {
    const u32 sends = b->team[v[k]->place], gets = b->team[v[k]->to];
    if (sends < places && v[k]->first) from[sends] = MIN(from[sends], v[k]->start_ps);
    if (gets < places && v[k]->end_ps > to[gets])
      to[gets] = v[k]->end_ps, last[gets] = (u32)(v[k] - b->node.v);
  }
  for (u32 p = 0; p < places; p++) {
    const u32 team = b->works[p] ? b->team[p] : places;
    if (team >= places) continue;
    const u32 made = from[team] < INT64_MAX ? made_by(b, nops, p, from[team]) : TRACE_NONE;
    const u32 used = to[team] > INT64_MIN ? used_by(b, nops, p, to[team]) : TRACE_NONE;
    for (u32 k = 0; k < n; k++)
      if (v[k]->first && (b->g->ring || b->team[v[k]->place] == team))
        wait_for(b, (u32)(v[k] - b->node.v), made);
    if (used != TRACE_NONE) wait_for(b, used, last[team]);
  }
}

static void tie_tensors(building *b, u32 nops) {
  const u32 n = b->node.n - nops;
  message_node **v = NEWN(b->tmp, message_node *, n + 1);
  for (u32 k = 0; k < n; k++) v[k] = &b->node.v[nops + k];
  if (n) qsort(v, n, sizeof *v, by_tensor);
  for (u32 k = 0, end; k < n; k = end) {
    for (end = k; end < n && v[end]->tensor.i == v[k]->tensor.i && v[end]->step == v[k]->step;) end++;
    tie_tensor(b, nops, v + k, end - k);
  }
}

// ---- all of it ------------------------------------------------------------------------------------------------
bool message_job(const job *j) {
  u32 k = 0;
  while (k < j->n && j->file[k].format == TRACE_FORMAT_gtrace) k++;
  return k == j->n;
}

static bool fill(building *b) {
  message_graph *g = b->g;
  for (u32 k = 0; k < b->j->n; k++)
    if (!read_file(b, k)) return false;
  const u32 nops = b->node.n;
  if (!nops)
    return refuse(b, "it has messages alone: without operators nothing says what waits for them",
                  "bps_trace_final.json of all workers has both");
  match_finish(b->m);
  b->clocks = clocks_apart(b->a, b->m, true, &g->clocks_by_ps, &(i64){0});
  b->works = ZNEWN(b->tmp, bool, b->m->places.n + 1);
  order_operators(b);
  if (!add_messages(b) || !find_teams(b)) return false;
  add_file_edges(b);
  tie_tensors(b, nops);
  if (b->edge.n) qsort(b->edge.v, b->edge.n, sizeof *b->edge.v, by_edge);
  u32 n = 0;
  for (u32 k = 0; k < b->edge.n; k++)
    if (!n || by_edge(&b->edge.v[n - 1], &b->edge.v[k])) b->edge.v[n++] = b->edge.v[k];
  g->n = b->node.n, g->node = b->node.v, g->nmessages = g->n - nops;
  g->nedges = n, g->edge = b->edge.v;
  g->nres = b->from.n, g->link_from = b->from.v, g->link_to = b->to.v;
  for (u32 k = 0; k < b->m->places.n; k++) g->workers += b->works[k];
  return true;
}

message_graph *message_graph_of(job *j, const char *steps) {
  message_graph *g = NEW(j->a, message_graph);
  *g = (message_graph){.j = j, .m = match_new(j->c, j->a)};
  if (!job_want_steps(j, steps)) return NULL;
  building b = {.g = g, .j = j, .a = j->a, .tmp = arena_new(), .m = g->m};
  const bool ok = fill(&b);
  arena_free(b.tmp);
  return ok ? g : NULL;
}
