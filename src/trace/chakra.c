// chakra.c - Chakra execution traces in protobuf: a message about the file, then one for every node, each after its
// length.
//
// Idea: a message is read whole into a buffer and its fields are walked once; a field of an unknown number is passed
// over, as protobuf has it. Dependencies name nodes by id, also ones that come later, so they are resolved at the end.
#include "trace/internal.h"
#include <stdlib.h>

enum { MESSAGE_MOST = 64 << 20 };
enum { NODE_LOAD = 2, NODE_STORE, NODE_COMP, NODE_SEND, NODE_RECV, NODE_COLL }; // et_def.proto, NodeType

typedef struct {
  const u8 *p, *end;
} bytes;
typedef struct {
  u32 number, wire;
  u64 v;     // of varints and fixed widths
  bytes sub; // of what has a length
} field;

static bool varint(bytes *b, u64 *v) {
  *v = 0;
  for (u32 shift = 0; shift < 64 && b->p < b->end; shift += 7) {
    const u8 c = *b->p++;
    *v |= (u64)(c & 127) << shift;
    if (c < 128) return true;
  }
  return false;
}
static bool fixed(bytes *b, u32 n, u64 *v) {
  if ((size_t)(b->end - b->p) < n) return false;
  *v = 0;
  for (u32 k = 0; k < n; k++) *v |= (u64)*b->p++ << 8 * k;
  return true;
}
// The next field. False: there is none, or the rest is damaged (then b->p < b->end).
static bool next_field(bytes *b, field *f) {
  const u8 *start = b->p;
  u64 tag;
  if (b->p == b->end) return false;
  bool ok = varint(b, &tag);
  f->number = (u32)(tag >> 3), f->wire = (u32)(tag & 7), f->sub = (bytes){0};
  if (ok && f->wire == 0)
    ok = varint(b, &f->v);
  else if (ok && f->wire == 1)
    ok = fixed(b, 8, &f->v);
  else if (ok && f->wire == 5)
    ok = fixed(b, 4, &f->v);
  else if (ok && f->wire == 2) {
    ok = varint(b, &f->v) && f->v <= (u64)(b->end - b->p);
    if (ok) f->sub = (bytes){b->p, b->p + f->v}, b->p += f->v;
  } else
    ok = false;
  if (!ok) b->p = start;
  return ok;
}

// ---- nodes ----------------------------------------------------------------------------------------------
typedef struct {
  u32 event;
  u64 on;
  bool data;
} depends;
typedef struct {
  reading *x;
  arena *tmp;
  u32 process;
  hmap by_id;
  VEC(u64) id;
  VEC(u32) event;
  VEC(depends) deps;
} chakra;
typedef struct {
  u64 id, type, start, dur;
  bytes name;
  bool host;
  i64 start_ps, dur_ps; // what is below a microsecond, as Heddle writes it
  i64 stream, tid, comm, size, src, dst;
  bytes group;
  VEC(u64) ctrl, data;
} node;

static bool is(const bytes *b, const char *s) {
  return (size_t)(b->end - b->p) == strlen(s) && !memcmp(b->p, s, strlen(s));
}

static bool read_attr(node *n, bytes b) {
  field f;
  bytes name = {0}, string = {0};
  u64 v = 0;
  bool number = false;
  while (next_field(&b, &f)) {
    if (f.number == 1 && f.wire == 2)
      name = f.sub;
    else if (f.wire == 2)
      string = f.sub;
    else
      v = f.v, number = true;
  }
  if (number && is(&name, "is_cpu_op")) n->host = v;
  if (number && is(&name, "stream")) n->stream = (i64)v;
  if (number && is(&name, "start_ps") && v < 1000000) n->start_ps = (i64)v;
  if (number && is(&name, "duration_ps") && v < 1000000) n->dur_ps = (i64)v;
  if (number && is(&name, "tid")) n->tid = (i64)v;
  if (number && is(&name, "comm_type")) n->comm = (i64)v;
  if (number && is(&name, "comm_size")) n->size = (i64)v;
  if (number && is(&name, "comm_src")) n->src = (i64)v;
  if (number && is(&name, "comm_dst")) n->dst = (i64)v;
  if (!number && is(&name, "pg_name")) n->group = string;
  return b.p == b.end;
}

// Packed or one by one.
static bool read_ids(arena *a, const field *f, void *ids) {
  VEC(u64) *v = ids;
  bytes b = f->sub;
  u64 id;
  if (f->wire == 0) return *vec_push(a, v) = f->v, true;
  while (b.p < b.end) {
    if (!varint(&b, &id)) return false;
    *vec_push(a, v) = id;
  }
  return f->wire == 2;
}

static bool read_node(chakra *k, bytes b, node *n) {
  field f;
  *n = (node){.host = false, .stream = -1, .tid = -1, .comm = -1, .size = -1, .src = -1, .dst = -1};
  bool ok = true, id = false;
  while (ok && next_field(&b, &f)) {
    switch (f.number) {
    case 1: n->id = f.v, id = f.wire == 0; break;
    case 2: n->name = f.sub; break;
    case 3: n->type = f.v; break;
    case 4: ok = read_ids(k->tmp, &f, &n->ctrl); break;
    case 5: ok = read_ids(k->tmp, &f, &n->data); break;
    case 6: n->start = f.v; break;
    case 7: n->dur = f.v; break;
    case 10: ok = f.wire == 2 && read_attr(n, f.sub); break;
    default: break;
    }
  }
  return ok && id && b.p == b.end;
}

static sym text(const reading *x, const bytes *b) {
  return b->p < b->end ? sym_ofn(x->c, (const char *)b->p, (size_t)(b->end - b->p)) : (sym){0};
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
  hmap_add(k->tmp, &k->by_id, hash_u64(n->id, 1), k->id.n);
  *vec_push(k->tmp, &k->id) = n->id, *vec_push(k->tmp, &k->event) = e;
  for (u32 i = 0; i < n->ctrl.n; i++) *vec_push(k->tmp, &k->deps) = (depends){e, n->ctrl.v[i], false};
  for (u32 i = 0; i < n->data.n; i++) *vec_push(k->tmp, &k->deps) = (depends){e, n->data.v[i], true};
}

static u32 event_of(const chakra *k, u64 id) {
  for (u32 it = 0, i; hmap_next(&k->by_id, hash_u64(id, 1), &it, &i);)
    if (k->id.v[i] == id) return k->event.v[i];
  return TRACE_NONE;
}

// ---- the file -------------------------------------------------------------------------------------------
// The length before a message. False: the end of the file.
static bool read_length(reading *x, u64 *n) {
  u8 c;
  *n = 0;
  for (u32 shift = 0; shift < 64; shift += 7) {
    if (!input_read(x->in, &c, 1)) {
      x->about->truncated |= shift > 0;
      return false;
    }
    *n |= (u64)(c & 127) << shift;
    if (c < 128) return true;
  }
  x->about->truncated = true;
  return false;
}

// The first message has attributes or a version, the second begins with an id.
bool trace_knows_chakra(const char *start, size_t n) {
  bytes b = {(const u8 *)start, (const u8 *)start + n};
  field f;
  u64 len;
  if (!varint(&b, &len) || len > (u64)(b.end - b.p)) return false;
  bytes head = {b.p, b.p + len};
  for (bytes h = head; h.p < h.end;)
    if (!next_field(&h, &f) || f.number < 1 || f.number > 2 || f.wire != 2) return false;
  b.p += len;
  if (b.p == b.end) return len > 0 && n < 1 << 16;
  return varint(&b, &len) && len > 0 && b.p < b.end && *b.p == 0x08;
}

bool trace_read_chakra(reading *x) {
  chakra k = {.x = x, .tmp = arena_new(), .process = x->t->processes.n};
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
    if (read_node(&k, (bytes){buf, buf + n}, &own))
      put_node(&k, &own);
    else
      x->about->events++, bad++;
  }
  free(buf);
  x->t->graph = true;
  for (u32 i = 0; i < k.deps.n; i++) {
    const u32 on = event_of(&k, k.deps.v[i].on);
    *vec_push(x->a, &x->t->edges) = (trace_edge){k.deps.v[i].event, on, k.deps.v[i].data};
  }
  x->about->skipped += bad;
  if (bad)
    diag(x->c, W_IGNORED, loc_node(x->c, x->file, (sym){0}, (sym){0}),
         "%llu nodes are malformed and left out", (unsigned long long)bad);
  arena_free(k.tmp);
  return true;
}
