// chakra_write.c - a process's events as a Chakra execution trace in protobuf: a message about the file, then one for
// every node, each after its length (mlcommons/chakra, schema/protobuf/et_def.proto). Reading is chakra.c's.
//
// Idea: what of a timeline is work becomes a node: operators and calls of the host, kernels, copies, communications.
// Dependencies are those that the recorded file states; where it states none, a node waits for what was before it on
// its stream or thread, and what is on a device also for the call that launched it.
#include "trace/node_graph.h"

enum { FIELD_INT64 = 9, FIELD_UINT64 = 13, FIELD_BOOL = 27, FIELD_STRING = 29 }; // AttributeProto
enum { WRITTEN = TRACE_ON_DEVICE | 1 << TRACE_OP | 1 << TRACE_CALL, FLUSHED = 1 << 18 };

typedef struct {
  strbuf node, attr; // of the node that is made
  strbuf out;
  file_out *file;
  const ctx *c;
  const trace *t;
  u32 *previous; // of every event: what was before it on its lane; TRACE_NONE
  u32 *edge_at;  // of every event: its edges are edge[edge_at[e]..edge_at[e + 1])
  const trace_edge **edge;
} writer;

static void put_attr(writer *w, const char *name, u32 field, u64 v, const char *text) {
  w->attr.n = 0;
  pb_put_bytes(&w->attr, 1, name, strlen(name));
  if (text)
    pb_put_bytes(&w->attr, field, text, strlen(text));
  else
    pb_put_uint(&w->attr, field, v);
  pb_put_bytes(&w->node, 10, w->attr.v, w->attr.n);
}

static u32 type_of(const writer *w, u32 e) {
  const trace *t = w->t;
  if (t->comm[e] != TRACE_NONE) {
    const char *op = sym_str(w->c, t->comms.v[t->comm[e]].op);
    return !strcmp(op, "send") ? NODE_SEND : !strcmp(op, "recv") ? NODE_RECV : NODE_COLL;
  }
  if (t->flags[e] & TRACE_COMM) return NODE_COLL;
  return t->is[e] == TRACE_COPY ? NODE_LOAD : t->is[e] == TRACE_FILL ? NODE_STORE : NODE_COMP;
}

static void put_comm(writer *w, u32 e, u32 type) {
  const trace *t = w->t;
  if (t->comm[e] == TRACE_NONE) return;
  const trace_comm *m = &t->comms.v[t->comm[e]];
  const i64 chakra = comm_kind_rows[comm_kind_named(sym_str(w->c, m->op))].chakra;
  if (type == NODE_COLL && chakra >= 0) put_attr(w, "comm_type", FIELD_INT64, (u64)chakra, NULL);
  if (m->bytes >= 0) put_attr(w, "comm_size", FIELD_INT64, (u64)m->bytes, NULL);
  if (m->peer != TRACE_NONE && type != NODE_COLL)
    put_attr(w, type == NODE_SEND ? "comm_dst" : "comm_src", FIELD_INT64, m->peer, NULL);
  if (m->group.i) put_attr(w, "pg_name", FIELD_STRING, 0, sym_str(w->c, m->group));
}

static bool written(const trace *t, u32 e, u32 process) {
  return e != TRACE_NONE && WRITTEN >> t->is[e] & 1 && t->lanes.v[t->lane[e]].process == process;
}

// Fields 4 (control) and 5 (data).
static void put_waits(writer *w, u32 e, u32 process) {
  const trace *t = w->t;
  for (u32 k = w->edge_at[e]; k < w->edge_at[e + 1]; k++)
    if (written(t, w->edge[k]->after, process))
      pb_put_uint(&w->node, w->edge[k]->data ? 5 : 4, w->edge[k]->after);
  if (t->graph) return;
  if (w->previous[e] != TRACE_NONE) pb_put_uint(&w->node, 4, w->previous[e]);
  if (TRACE_ON_DEVICE >> t->is[e] & 1 && t->cause[e] != e && written(t, t->cause[e], process))
    pb_put_uint(&w->node, 5, t->cause[e]);
}

static void put_message(writer *w, const strbuf *b) {
  pb_put_varint(&w->out, b->n);
  sb_putn(&w->out, b->v, b->n);
  if (w->out.n < FLUSHED) return;
  file_put(w->file, w->out.v, w->out.n);
  w->out.n = 0;
}

static void put_node(writer *w, u32 e, u32 process, i64 zero_ps) {
  const trace *t = w->t;
  const trace_lane *l = &t->lanes.v[t->lane[e]];
  const u64 start = (u64)(t->start_ps[e] - zero_ps), dur = (u64)MAX(t->dur_ps[e], 0);
  const char *name = sym_str(w->c, trace_name(t, e));
  const u32 type = type_of(w, e);
  w->node.n = 0;
  pb_put_uint(&w->node, 1, e);
  pb_put_bytes(&w->node, 2, name, strlen(name));
  pb_put_uint(&w->node, 3, type);
  put_waits(w, e, process);
  pb_put_uint(&w->node, 6, start / 1000000), pb_put_uint(&w->node, 7, dur / 1000000);
  put_attr(w, "is_cpu_op", FIELD_BOOL, !l->device, NULL);
  put_attr(w, l->device ? "stream" : "tid", FIELD_INT64, (u64)l->id, NULL);
  if (start % 1000000) put_attr(w, "start_ps", FIELD_INT64, start % 1000000, NULL);
  if (dur % 1000000) put_attr(w, "duration_ps", FIELD_INT64, dur % 1000000, NULL);
  put_comm(w, e, type);
  put_message(w, &w->node);
}

static void sort_edges(writer *w, arena *a) {
  const trace *t = w->t;
  w->edge_at = ZNEWN(a, u32, (size_t)t->n + 2), w->edge = NEWN(a, const trace_edge *, t->edges.n + 1);
  for (u32 k = 0; k < t->edges.n; k++) w->edge_at[t->edges.v[k].event + 2]++;
  for (u32 k = 0; k < t->n; k++) w->edge_at[k + 2] += w->edge_at[k + 1];
  for (u32 k = 0; k < t->edges.n; k++) w->edge[w->edge_at[t->edges.v[k].event + 1]++] = &t->edges.v[k];
}

bool trace_write_chakra(ctx *c, const trace *t, u32 process, const char *path, u64 *nodes) {
  static const char version[] = "0.0.4", by[] = "schema", schema[] = "Heddle";
  arena *a = arena_new();
  writer w = {.node = {.a = a}, .attr = {.a = a}, .out = {.a = a}, .c = c, .t = t};
  const u32 *order = trace_order(a, t);
  i64 zero = 0; // times have no sign there
  w.previous = NEWN(a, u32, (size_t)t->n + 1);
  sort_edges(&w, a);
  for (u32 k = 0, last = TRACE_NONE; k < t->n; k++) {
    const u32 e = order[k];
    if (k && t->lane[e] != t->lane[order[k - 1]]) last = TRACE_NONE;
    w.previous[e] = last;
    if (!written(t, e, process)) continue;
    last = e, zero = MIN(zero, t->start_ps[e]);
  }
  *nodes = 0;
  if ((w.file = file_begin(c, a, path))) {
    pb_put_bytes(&w.node, 1, version, strlen(version));
    pb_put_bytes(&w.attr, 1, by, strlen(by)), pb_put_bytes(&w.attr, FIELD_STRING, schema, strlen(schema));
    pb_put_bytes(&w.node, 2, w.attr.v, w.attr.n);
    put_message(&w, &w.node);
    for (u32 e = 0; e < t->n; e++)
      if (written(t, e, process)) put_node(&w, e, process, zero), ++*nodes;
    file_put(w.file, w.out.v, w.out.n);
  }
  const bool ok = w.file && file_end(w.file);
  arena_free(a);
  return ok;
}
