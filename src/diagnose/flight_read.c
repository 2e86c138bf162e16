// flight_read.c - one dump of PyTorch's flight recorder, from the tree of its JSON or pickle into the model. Versions
// 2.0 to 2.10. Not what follows from it.
//
// Idea: nothing is taken for granted but that an entry has a group, a name and a state; what lacks these is counted and
// passed over. Operations that were issued as one (coalesced) become one entry, as they have one number.
#include "diagnose/flight.h"
#include <errno.h>
#include <stdlib.h>

enum { RANK_LIMIT = 1 << 24 };

typedef struct {
  i64 id; // the process's own number of a group
  u32 group;
} process_group;
typedef struct {
  flight *f;
  arena *tmp;
  sym file;
  u32 rank;
  VEC(u32) group;  // of the configuration and of entries, by their names
  VEC(u32) latest; // by group: the rank's last collective there, + 1; 0: none
  VEC(process_group) ids;
  u32 first; // of its entries
} reading;

// ---- values -----------------------------------------------------------------------------------------------------
i64 flight_int(const json *j, i64 dflt) {
  if (!j || (j->kind != JSON_NUM && j->kind != JSON_STR)) return dflt;
  char *end;
  errno = 0;
  const long long x = strtoll(j->str, &end, 10);
  return end == j->str || *end || errno ? dflt : (i64)x;
}

sym flight_text(ctx *c, const json *j) {
  if (!j || (j->kind != JSON_STR && j->kind != JSON_NUM)) return (sym){0};
  const size_t n = strlen(j->str);
  char small[256], *s = n < sizeof small ? small : base_malloc(n + 1);
  for (size_t k = 0; k < n; k++) s[k] = (u8)j->str[k] < 0x20 || j->str[k] == 0x7F ? '?' : j->str[k];
  const sym out = n ? sym_ofn(c, s, n) : (sym){0};
  if (s != small) free(s);
  return out;
}

// Ranks of a group: a list, or text such as "[0, 1]". None: not said, cut short, or one is named twice.
typedef VEC(u32) numbers;
static numbers ranks_of(reading *r, const json *j) {
  numbers v = {0};
  bool ok = j && (j->kind == JSON_ARR || j->kind == JSON_STR);
  for (u32 k = 0; ok && j->kind == JSON_ARR && k < j->n; k++) {
    const i64 x = flight_int(&j->item[k], -1);
    ok &= x >= 0 && x < RANK_LIMIT;
    *vec_push(r->tmp, &v) = (u32)x;
  }
  for (const char *s = ok && j->kind == JSON_STR ? j->str : ""; *s && ok;) {
    if (*s >= '0' && *s <= '9') {
      char *end;
      const unsigned long x = strtoul(s, &end, 10);
      ok &= x < RANK_LIMIT;
      *vec_push(r->tmp, &v) = (u32)x;
      s = end;
    } else {
      ok &= strchr("[](), ", *s) != NULL;
      s++;
    }
  }
  const hang_ranks once = hang_ranks_of(r->tmp, v.n, v.v);
  if (!ok || once.n < v.n) v.n = 0;
  return v;
}

// ---- groups -----------------------------------------------------------------------------------------------------
static u32 group_named(reading *r, sym name, sym desc) {
  for (u32 k = 0; k < r->group.n; k++)
    if (r->f->groups.v[r->group.v[k]].name.i == name.i) return r->group.v[k];
  const u32 g = flight_group_of(r->f, name, desc, 0, NULL);
  *vec_push(r->tmp, &r->group) = g;
  return g;
}

static void read_groups(reading *r, const json *config) {
  ctx *c = r->f->c;
  for (u32 k = 0; config && config->kind == JSON_OBJ && k < config->n; k++) {
    const json *g = &config->item[k];
    const sym name = sym_of(c, config->key[k]);
    const numbers v = ranks_of(r, json_get(g, "ranks"));
    *vec_push(r->tmp, &r->group) = flight_group_of(r->f, name, flight_text(c, json_get(g, "desc")), v.n, v.v);
    bool in = false;
    for (u32 i = 0; i < v.n; i++) in |= v.v[i] == r->rank;
    if (in) flight_stand_add(r->f, r->group.v[r->group.n - 1], r->rank);
  }
}

static u32 group_numbered(const reading *r, i64 id) {
  for (u32 k = 0; k < r->ids.n; k++)
    if (r->ids.v[k].id == id) return r->ids.v[k].group;
  for (u32 k = 0; k < r->group.n && !id; k++) // the first group of a process is that of all ranks
    if (!strcmp(sym_str(r->f->c, r->f->groups.v[r->group.v[k]].name), "0")) return r->group.v[k];
  return TRACE_NONE;
}

// Highest numbers, by the process's own numbers of groups: entries have said which these are.
static void read_status(reading *r, const json *status) {
  for (u32 k = 0; status && status->kind == JSON_OBJ && k < status->n; k++) {
    const u32 group = group_numbered(r, flight_int(&(json){.kind = JSON_STR, .str = status->key[k]}, -1));
    if (group == TRACE_NONE) continue;
    flight_stand *s = flight_stand_add(r->f, group, r->rank);
    const json *x = &status->item[k];
    s->enqueued = MAX(s->enqueued, flight_int(json_get(x, "last_enqueued_collective"), -1));
    s->started = MAX(s->started, flight_int(json_get(x, "last_started_collective"), -1));
    s->completed = MAX(s->completed, flight_int(json_get(x, "last_completed_collective"), -1));
  }
}

// ---- entries ------------------------------------------------------------------------------------------------------
// "[4, 4] [8]" and the elements of all.
static sym sizes_of(reading *r, const json *j, i64 *elements) {
  strbuf b = {.a = r->tmp};
  *elements = 0;
  for (u32 k = 0; j && j->kind == JSON_ARR && k < j->n; k++) {
    const json *t = &j->item[k];
    i64 n = 1;
    sb_put(&b, k ? " [" : "[");
    for (u32 d = 0; t->kind == JSON_ARR && d < t->n; d++) {
      const i64 x = MAX(flight_int(&t->item[d], 0), 0);
      sb_fmt(&b, "%s%lld", d ? ", " : "", (long long)x);
      n = mul_sat(n, x);
    }
    sb_char(&b, ']');
    *elements = add_sat(*elements, n);
  }
  return b.n ? sym_ofn(r->f->c, b.v, b.n) : (sym){0};
}

// Each type once: "float32, int64".
static sym types_of(reading *r, const json *j) {
  strbuf b = {.a = r->tmp};
  for (u32 k = 0; j && j->kind == JSON_ARR && k < j->n; k++) {
    bool seen = false;
    const sym t = flight_text(r->f->c, &j->item[k]);
    for (u32 i = 0; i < k && !seen; i++) seen = flight_text(r->f->c, &j->item[i]).i == t.i;
    if (!seen) sb_fmt(&b, "%s%s", b.n ? ", " : "", sym_str(r->f->c, t));
    if (k == 64) break;
  }
  return b.n ? sym_ofn(r->f->c, b.v, b.n) : (sym){0};
}

static i64 type_bytes(const char *type) {
  static const struct {
    const char *name;
    i64 bytes;
  } t[] = {{"float32", 4},       {"float", 4},      {"float16", 2}, {"half", 2},      {"bfloat16", 2},
           {"float64", 8},       {"double", 8},     {"int64", 8},   {"long", 8},      {"int32", 4},
           {"int", 4},           {"int16", 2},      {"short", 2},   {"int8", 1},      {"char", 1},
           {"uint8", 1},         {"byte", 1},       {"bool", 1},    {"complex64", 8}, {"complexfloat", 8},
           {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
  for (u32 k = 0; k < COUNT_OF(t); k++)
    if (!strcasecmp(t[k].name, type)) return t[k].bytes;
  return -1;
}

// The caller: the innermost frame that is not the framework's own, "train.py:41 train_step".
static sym frame_of(reading *r, const json *frames) {
  const json *best = NULL;
  for (u32 k = 0; frames && frames->kind == JSON_ARR && k < frames->n && k < 256; k++) {
    const json *file = json_get(&frames->item[k], "filename");
    if (!file || file->kind != JSON_STR) continue;
    const bool own = strstr(file->str, "/torch/") || !strncmp(file->str, "torch/", 6);
    if (!best || !own) best = &frames->item[k];
    if (!own) break;
  }
  if (!best) return (sym){0};
  const sym name = flight_text(r->f->c, json_get(best, "name"));
  return sym_fmt(r->f->c, "%s:%lld%s%s", sym_str(r->f->c, flight_text(r->f->c, json_get(best, "filename"))),
                 (long long)flight_int(json_get(best, "line"), 0), name.i ? " " : "", sym_str(r->f->c, name));
}

// "nccl:send 0->1", "nccl:recv 1<-0": ranks in the group.
static bool read_peers(reading *r, const char *name, flight_entry *e) {
  const flight_group *g = &r->f->groups.v[e->group];
  unsigned own, other;
  const bool send = sscanf(name, "send %u->%u", &own, &other) == 2;
  if (!send && sscanf(name, "recv %u<-%u", &own, &other) != 2) return false;
  if (g->size && (own >= g->size || other >= g->size)) return false;
  if (g->size) own = g->member[own], other = g->member[other];
  e->src = send ? own : other, e->dst = send ? other : own;
  return e->rank == own && own != other;
}

// What was issued as one: the operations before it, of the same numbers, have its state.
static void settle(reading *r, u32 group, i64 seq, i64 p2p_seq, u8 state) {
  flight *f = r->f;
  for (u32 k = f->entries.n, others = 0; k-- > r->first && others < 64;) {
    flight_entry *e = &f->entries.v[k];
    if (e->group != group || e->seq != (e->p2p ? p2p_seq : seq)) {
      others++;
      continue;
    }
    e->state = state;
  }
}

// One more operation under a number that the rank has already: they are one entry.
static void merge(reading *r, flight_entry *to, const flight_entry *e) {
  enum { LONG = 1024 }; // of text that is shown and compared
  ctx *c = r->f->c;
  if (to->op.i != e->op.i && sym_len(c, to->op) < LONG)
    to->op = sym_fmt(c, "%s + %s", sym_str(c, to->op), sym_str(c, e->op));
  if (sym_len(c, to->in) < LONG) to->in = sym_fmt(c, "%s %s", sym_str(c, to->in), sym_str(c, e->in));
  if (sym_len(c, to->out) < LONG) to->out = sym_fmt(c, "%s %s", sym_str(c, to->out), sym_str(c, e->out));
  to->nin = add_sat(to->nin, e->nin), to->nout = add_sat(to->nout, e->nout);
  to->bytes = to->bytes < 0 || e->bytes < 0 ? -1 : add_sat(to->bytes, e->bytes);
  to->state = MIN(to->state, e->state);
}

static void add_entry(reading *r, const flight_entry *e) {
  flight *f = r->f;
  if (e->p2p) {
    *vec_push(f->a, &f->entries) = *e;
    return;
  }
  while (r->latest.n <= e->group) *vec_push(r->tmp, &r->latest) = 0;
  const u32 latest = r->latest.v[e->group];
  if (latest && f->entries.v[latest - 1].seq == e->seq) {
    merge(r, &f->entries.v[latest - 1], e);
    return;
  }
  *vec_push(f->a, &f->entries) = *e;
  r->latest.v[e->group] = f->entries.n;
}

static bool read_entry(reading *r, const json *j, u32 order) {
  ctx *c = r->f->c;
  const json *g = json_get(j, "process_group"), *name = json_get(j, "profiling_name"),
             *state = json_get(j, "state"), *p2p = json_get(j, "is_p2p");
  if (!g || !name || name->kind != JSON_STR || !state || state->kind != JSON_STR) return false;
  const bool pair = g->kind == JSON_ARR && g->n;
  const sym group = flight_text(c, pair ? &g->item[0] : g);
  if (!group.i) return false;
  flight_entry e = {.rank = r->rank, .order = order, .src = TRACE_NONE, .dst = TRACE_NONE};
  e.group = group_named(r, group, pair && g->n > 1 ? flight_text(c, &g->item[1]) : (sym){0});
  e.state = !strcmp(state->str, "completed") ? FLIGHT_COMPLETED
            : !strcmp(state->str, "started") ? FLIGHT_STARTED
                                             : FLIGHT_SCHEDULED;
  const i64 seq = flight_int(json_get(j, "collective_seq_id"), flight_int(json_get(j, "seq_id"), -1));
  const i64 p2p_seq = flight_int(json_get(j, "p2p_seq_id"), 0);
  const i64 id = flight_int(json_get(j, "pg_id"), -1);
  if (id >= 0 && group_numbered(r, id) != e.group) *vec_push(r->tmp, &r->ids) = (process_group){id, e.group};
  const char *colon = strchr(name->str, ':'), *op = colon ? colon + 1 : name->str;
  if (!strcmp(op, "coalesced")) {
    settle(r, e.group, seq, p2p_seq, e.state);
    return true;
  }
  e.p2p = !strncmp(op, "send ", 5) || !strncmp(op, "recv ", 5) ||
          (p2p && p2p->kind == JSON_BOOL && p2p->num != 0);
  e.seq = e.p2p ? p2p_seq : seq;
  if (e.seq < 0 || (e.p2p && !read_peers(r, op, &e))) return false;
  op += *op == '_'; // "_allgather_base"
  const size_t n = strcspn(op, " ");
  e.op = flight_text(c, &(json){.kind = JSON_STR, .str = arena_strndup(r->tmp, op, n)});
  e.in = sizes_of(r, json_get(j, "input_sizes"), &e.nin);
  e.out = sizes_of(r, json_get(j, "output_sizes"), &e.nout);
  e.in_type = types_of(r, json_get(j, "input_dtypes")),
  e.out_type = types_of(r, json_get(j, "output_dtypes"));
  const i64 in_bytes = type_bytes(sym_str(c, e.in_type)), out_bytes = type_bytes(sym_str(c, e.out_type));
  e.bytes =
      MAX(in_bytes < 0 ? -1 : mul_sat(e.nin, in_bytes), out_bytes < 0 ? -1 : mul_sat(e.nout, out_bytes));
  e.at = frame_of(r, json_get(j, "frames"));
  e.created_ns = flight_int(json_get(j, "time_created_ns"), 0);
  flight_stand_add(r->f, e.group, r->rank);
  add_entry(r, &e);
  return true;
}

// ---- dumps --------------------------------------------------------------------------------------------------------
static bool is_dump(const json *j) {
  return json_get(j, "pg_config") || json_get(j, "pg_status") || json_get(j, "entries");
}

static void take_numbers(reading *r) {
  flight *f = r->f;
  for (u32 k = r->first; k < f->entries.n; k++) {
    const flight_entry *e = &f->entries.v[k];
    if (e->p2p) continue;
    flight_stand *s = flight_stand_add(f, e->group, e->rank);
    s->first = s->first < 0 ? e->seq : MIN(s->first, e->seq);
    s->last = MAX(s->last, e->seq);
    s->enqueued = MAX(s->enqueued, e->seq);
    if (e->state >= FLIGHT_STARTED) s->started = MAX(s->started, e->seq);
    if (e->state == FLIGHT_COMPLETED) s->completed = MAX(s->completed, e->seq);
  }
}

bool flight_add(flight *f, sym file, u32 rank, const json *dump) {
  const json *entries = json_get(dump, "entries");
  const loc at = loc_node(f->c, file, (sym){0}, (sym){0});
  const i64 said = flight_int(json_get(dump, "rank"), -1);
  if (said >= 0 && said < RANK_LIMIT) rank = (u32)said;
  if (!is_dump(dump) || (entries && entries->kind != JSON_ARR)) {
    diag(f->c, E_TRACE, at, "this is no dump of PyTorch's flight recorder: it has no %s",
         entries ? "list of entries" : "pg_config and no entries");
    return false;
  }
  if (rank == TRACE_NONE) {
    diag(f->c, E_TRACE, at, "neither the dump nor the name of its file says which rank it is of");
    diag_hint(f->c, "rename it so that the rank is the last number of its name: nccl_trace_rank_3");
    return false;
  }
  reading r = {.f = f, .tmp = arena_new(), .file = file, .rank = rank, .first = f->entries.n};
  flight_dump d = {.rank = rank, .path = file};
  u32 skipped = 0;
  read_groups(&r, json_get(dump, "pg_config"));
  for (u32 k = 0; entries && k < entries->n; k++) {
    if (!read_entry(&r, &entries->item[k], k)) skipped++;
    if (k + 1 == entries->n) d.last_at = frame_of(&r, json_get(&entries->item[k], "frames"));
    if (!k) d.lost = flight_int(json_get(&entries->item[k], "record_id"), 0) > 0;
  }
  read_status(&r, json_get(dump, "pg_status"));
  take_numbers(&r);
  *vec_push(f->a, &f->dumps) = d;
  f->skipped += skipped;
  if (skipped)
    diag(f->c, W_IGNORED, at, "%u of %u entries have no group, no name, no state or no number", skipped,
         entries->n);
  arena_free(r.tmp);
  return true;
}
