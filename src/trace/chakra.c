// chakra.c - Chakra execution traces in protobuf: a message about the file, then one for every node, each after its
// length.
//
// Idea: a message is read whole into a buffer and its fields are walked once; a field of an unknown number is passed
// over, as protobuf has it. Dependencies name nodes by id, also ones that come later, so they are resolved at the end.
#include "trace/node_graph.h"
#include <stdlib.h>

enum { MESSAGE_MOST = 64 << 20 };

// ---- nodes ----------------------------------------------------------------------------------------------
typedef struct {
  reading *x;
  arena *tmp;
  u32 process;
  node_graph graph;
} chakra;
typedef struct {
  u64 id, type, start, dur;
  pb_span name;
  bool host;
  i64 start_ps, dur_ps; // what is below a microsecond, as Heddle writes it
  i64 stream, tid, comm, size, src, dst;
  pb_span group;
  i64_vec ctrl, data;
} node;

static void read_attr(node *n, pb_reader r) {
  pb_span name = {0}, string = {0};
  u64 v = 0;
  bool number = false;
  while (pb_next(&r)) {
    if (r.field == 1 && r.wire == PB_BYTES)
      name = r.bytes;
    else if (r.wire == PB_BYTES)
      string = r.bytes;
    else
      v = r.num, number = true;
  }
  if (number && pb_is(&name, "is_cpu_op")) n->host = v;
  if (number && pb_is(&name, "stream")) n->stream = (i64)v;
  if (number && pb_is(&name, "start_ps") && v < 1000000) n->start_ps = (i64)v;
  if (number && pb_is(&name, "duration_ps") && v < 1000000) n->dur_ps = (i64)v;
  if (number && pb_is(&name, "tid")) n->tid = (i64)v;
  if (number && pb_is(&name, "comm_type")) n->comm = (i64)v;
  if (number && pb_is(&name, "comm_size")) n->size = (i64)v;
  if (number && pb_is(&name, "comm_src")) n->src = (i64)v;
  if (number && pb_is(&name, "comm_dst")) n->dst = (i64)v;
  if (!number && pb_is(&name, "pg_name")) n->group = string;
}

static u64 number(const pb_reader *r) { return r->wire == PB_BYTES ? 0 : r->num; }

static bool read_node(const chakra *k, const u8 *at, size_t size, node *n) {
  pb_file file = {.c = k->x->c, .a = k->tmp, .file = k->x->file, .base = at, .silent = true};
  pb_reader r = pb_of(&file, at, size);
  *n = (node){.host = false, .stream = -1, .tid = -1, .comm = -1, .size = -1, .src = -1, .dst = -1};
  bool id = false;
  while (pb_next(&r)) {
    switch (r.field) {
    case 1: n->id = number(&r), id = r.wire == PB_VARINT; break;
    case 2: n->name = r.wire == PB_BYTES ? r.bytes : (pb_span){0}; break;
    case 3: n->type = number(&r); break;
    case 4: pb_i64s(&r, &n->ctrl, "ctrl_deps"); break;
    case 5: pb_i64s(&r, &n->data, "data_deps"); break;
    case 6: n->start = number(&r); break;
    case 7: n->dur = number(&r); break;
    case 10: read_attr(n, pb_message(&r)); break;
    default: break;
    }
  }
  return id && !file.bad;
}

static sym text(const reading *x, const pb_span *b) {
  return b->at < b->end ? sym_ofn(x->c, (const char *)b->at, (size_t)(b->end - b->at)) : (sym){0};
}

// What a node communicates, by its type or, on a host, by the collective that it says.
static void put_comm(chakra *k, const node *n, u32 e) {
  enum { BLOCKS = 8 }; // reduce_scatter, too
  reading *x = k->x;
  const bool coll = n->type == NODE_COLL;
  const i64 type = n->comm == BLOCKS ? comm_kind_rows[COMM_REDUCE_SCATTER].chakra : n->comm;
  u32 kind = 0;
  while (kind < COMM_OTHER && (type < 0 || comm_kind_rows[kind].chakra != type)) kind++;
  const char *name = n->type == NODE_SEND   ? "send"
                     : n->type == NODE_RECV ? "recv"
                     : kind < COMM_OTHER    ? comm_kind_rows[kind].name
                                            : "communication";
  if (!coll && n->type != NODE_SEND && n->type != NODE_RECV) return;
  const i64 peer = n->type == NODE_SEND ? n->dst : n->type == NODE_RECV ? n->src : -1;
  trace_comm m = trace_comm_of(sym_of(x->c, name));
  m.group = text(x, &n->group), m.bytes = n->size;
  if (peer >= 0 && peer < TRACE_NONE) m.peer = (u32)peer;
  trace_add_comm(x->a, x->t, e, m);
}

static void put_node(chakra *k, const node *n) {
  reading *x = k->x;
  const u64 most = INT64_MAX / 4000000;
  x->about->events++;
  if (n->start > most || n->dur > most) {
    x->about->skipped++;
    return;
  }
  const bool comm = n->type >= NODE_SEND && n->type <= NODE_COLL,
             memory = n->type == NODE_LOAD || n->type == NODE_STORE;
  const trace_is is_a = n->host && !comm ? TRACE_OP : memory ? TRACE_COPY : TRACE_KERNEL;
  if (!wanted(x, is_a)) return;
  const u32 lane = trace_lane_of(x->a, x->t, k->process, is_a != TRACE_OP, is_a == TRACE_OP ? -1 : 0,
                                 is_a == TRACE_OP ? n->tid : n->stream);
  const sym name = text(x, &n->name);
  const u32 e = trace_add(x->a, x->t, is_a, lane, name.i ? name : sym_of(x->c, "node"),
                          (i64)n->start * 1000000 + n->start_ps, (i64)n->dur * 1000000 + n->dur_ps);
  put_comm(k, n, e);
  node_graph_put(&k->graph, n->id, e);
  for (u32 i = 0; i < n->ctrl.n; i++) node_graph_wait(&k->graph, e, (u64)n->ctrl.v[i], false);
  for (u32 i = 0; i < n->data.n; i++) node_graph_wait(&k->graph, e, (u64)n->data.v[i], true);
}

// ---- the file -------------------------------------------------------------------------------------------
// The length before a message. False: the end of the file.
static bool read_length(reading *x, u64 *n) {
  enum { LONGEST = 10 };
  u8 c[LONGEST];
  u32 k = 0;
  do
    if (!input_read(x->in, &c[k], 1)) {
      x->about->truncated |= k > 0;
      return false;
    }
  while (c[k++] & 128 && k < LONGEST);
  pb_file f = {.silent = true};
  pb_reader r = pb_of(&f, c, k);
  x->about->truncated |= !pb_varint(&r, n);
  return !f.bad;
}

// The first message has attributes or a version, the second begins with an id.
bool trace_knows_chakra(const char *start, size_t n) {
  pb_file f = {.silent = true};
  pb_reader r = pb_of(&f, (const u8 *)start, n);
  u64 len;
  if (!pb_varint(&r, &len) || len > (u64)(r.end - r.at)) return false;
  pb_reader head = pb_of(&f, r.at, len);
  while (pb_next(&head))
    if (head.field > 2 || head.wire != PB_BYTES) return false;
  r.at += len;
  if (f.bad) return false;
  if (r.at == r.end) return len > 0 && n < 1 << 16;
  return pb_varint(&r, &len) && len > 0 && r.at < r.end && *r.at == 0x08;
}

bool trace_read_chakra(reading *x) {
  chakra k = {.x = x, .tmp = arena_new(), .process = x->t->processes.n};
  k.graph.tmp = k.tmp;
  *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1};
  u8 *buf = NULL;
  size_t room = 0;
  u64 n, bad = 0;
  for (bool first = true; read_length(x, &n); first = false) {
    if (n > MESSAGE_MOST) {
      x->about->truncated = true;
      break;
    }
    if (n >= room) free(buf), room = n * 2 + 64, buf = base_malloc(room); // never NULL
    if (input_read(x->in, buf, n) < n) {
      x->about->truncated = true;
      break;
    }
    node own;
    if (first) continue; // about the file
    if (read_node(&k, buf, n, &own))
      put_node(&k, &own);
    else
      x->about->events++, bad++;
  }
  free(buf);
  node_graph_finish(&k.graph, x->a, x->t);
  x->about->skipped += bad;
  if (bad)
    diag(x->c, W_IGNORED, loc_node(x->c, x->file, (sym){0}, (sym){0}),
         "%llu nodes are malformed and left out", (unsigned long long)bad);
  arena_free(k.tmp);
  return true;
}
