// ras.c - what NCCL's RAS (`ncclras -f json`, NCCL 2.28 and later) says of communicators: processes that are dead or
// silent, errors, ranks that have called collectives less often than others.
//
// Idea: RAS asks all processes of a job at nearly one moment how often each rank of each communicator has called each
// collective. In a job that hangs the counts stand still, and ranks below the others are those that did not come.
#include "diagnose/flight.h"
#include <ctype.h>
#include <stdlib.h>

enum { RANK_LIMIT = 1 << 24, LISTED = 1024 };

bool ras_is(const json *j) { return json_get(j, "communicators") != NULL; }

// NCCL 2.28 writes no comma between "nvml_dev" and "status" of ranks that are missing.
const json *ras_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  static const char before[] = "\"nvml_dev\"";
  strbuf b = {.a = a};
  const char *end = text + n, *from = text;
  for (const char *p = text; p < end && (p = strstr(p, before));) {
    p += sizeof before - 1;
    while (p < end && (isspace((unsigned char)*p) || *p == ':')) p++;
    while (p < end && (isdigit((unsigned char)*p) || *p == '-')) p++;
    const char *value_end = p;
    while (p < end && isspace((unsigned char)*p)) p++;
    if (p == end || *p != '"') continue;
    sb_putn(&b, from, (size_t)(value_end - from));
    sb_char(&b, ',');
    from = value_end;
  }
  sb_putn(&b, from, (size_t)(end - from));
  return json_parse(c, a, file, sb_str(&b), b.n);
}

typedef struct {
  u32 rank;
  const json *j;
} member;
typedef VEC(member) members;
typedef struct {
  ctx *c;
  arena *a;
  sym hash;
  members here, gone;
  hang_findings *found;
  bool incomplete, mismatch, error;
} comm;

static int by_rank(const void *x, const void *y) {
  const member *a = x, *b = y;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void read_members(comm *m, const json *list, members *to) {
  for (u32 k = 0; list && list->kind == JSON_ARR && k < list->n; k++) {
    const i64 rank = flight_int(json_get(&list->item[k], "rank"), -1);
    if (rank >= 0 && rank < RANK_LIMIT) *vec_push(m->a, to) = (member){(u32)rank, &list->item[k]};
  }
  if (to->n) qsort(to->v, to->n, sizeof *to->v, by_rank);
}

static void tell(comm *m, hang_kind kind, sym op, u32 n, const u32 *who, hang_ranks wait, const char *text) {
  *vec_push(m->a, m->found) =
      (hang_finding){.kind = kind,
                     .text = arena_printf(m->a, "communicator %s: %s", sym_str(m->c, m->hash), text),
                     .group = m->hash,
                     .op = op,
                     .seq = -1,
                     .who = hang_ranks_of(m->a, n, who),
                     .wait = wait,
                     .bytes = -1};
}

// "rank 5 of 10.0.0.2 (process 1005, GPU 1)"
static const char *place(const comm *m, const member *x) {
  return arena_printf(m->a, "rank %u of %s (process %lld, GPU %lld)", x->rank,
                      sym_str(m->c, flight_text(m->c, json_get(x->j, "host"))),
                      (long long)flight_int(json_get(x->j, "pid"), -1),
                      (long long)flight_int(json_get(x->j, "cuda_dev"), -1));
}

static bool flag(const json *status, const char *name) {
  const json *x = json_get(status, name);
  return x && (x->kind == JSON_BOOL || x->kind == JSON_NUM) && x->num != 0;
}

static void tell_gone(comm *m, u32 size) {
  const hang_ranks none = {0};
  for (u32 k = 0; k < m->gone.n; k++) {
    const member *x = &m->gone.v[k];
    const bool dead = flag(json_get(x->j, "status"), "considered_dead");
    tell(m, dead ? HANG_DEAD : HANG_SILENT, (sym){0}, 1, &x->rank, none,
         arena_printf(m->a, "%s %s", place(m, x), dead ? "is dead" : "does not answer"));
  }
  const u64 known = (u64)m->here.n + m->gone.n;
  m->incomplete = m->gone.n || known < size;
  if (known >= size) return;
  u32 n = 0, *who = NEWN(m->a, u32, LISTED);
  for (u32 r = 0, i = 0, k = 0; r < size && n < LISTED; r++) {
    while (i < m->here.n && m->here.v[i].rank < r) i++;
    while (k < m->gone.n && m->gone.v[k].rank < r) k++;
    const bool seen = (i < m->here.n && m->here.v[i].rank == r) || (k < m->gone.n && m->gone.v[k].rank == r);
    if (!seen) who[n++] = r;
  }
  const hang_ranks w = hang_ranks_of(m->a, n, who);
  tell(m, HANG_UNHEARD, (sym){0}, n, who, none,
       arena_printf(m->a, "nothing has been heard of %llu of %u ranks: %s",
                    (unsigned long long)(size - known), size, hang_ranks_text(m->a, &w, 12)));
}

static void tell_errors(comm *m) {
  for (u32 k = 0; k < m->here.n; k++) {
    const member *x = &m->here.v[k];
    const json *s = json_get(x->j, "status");
    const i64 start = flight_int(json_get(s, "init_state"), 0),
              async = flight_int(json_get(s, "async_error"), 0);
    const bool abort = flag(s, "abort_flag");
    if (!start && !async && !abort) continue;
    strbuf b = {.a = m->a};
    if (start) sb_fmt(&b, "has not started (state %lld)", (long long)start);
    if (async) sb_fmt(&b, "%shas error %lld", b.n ? ", " : "", (long long)async);
    if (abort) sb_fmt(&b, "%sis being aborted", b.n ? ", " : "");
    m->error = true;
    tell(m, HANG_ERROR, (sym){0}, 1, &x->rank, (hang_ranks){0},
         arena_printf(m->a, "%s %s", place(m, x), sb_str(&b)));
  }
}

// Ranks whose count of one collective is below the highest.
static void tell_behind(comm *m, const char *op) {
  i64 most = -1, least = INT64_MAX;
  u32 n = 0, nwait = 0, *who = NEWN(m->a, u32, m->here.n), *wait = NEWN(m->a, u32, m->here.n);
  i64 *count = NEWN(m->a, i64, m->here.n);
  for (u32 k = 0; k < m->here.n; k++) {
    count[k] = flight_int(json_get(json_get(m->here.v[k].j, "collective_counts"), op), -1);
    if (count[k] < 0) continue;
    most = MAX(most, count[k]), least = MIN(least, count[k]);
  }
  if (least >= most) return;
  for (u32 k = 0; k < m->here.n; k++) {
    if (count[k] >= 0 && count[k] < most) who[n++] = m->here.v[k].rank;
    if (count[k] == most) wait[nwait++] = m->here.v[k].rank;
  }
  const hang_ranks w = hang_ranks_of(m->a, n, who), r = hang_ranks_of(m->a, nwait, wait);
  bool one = true;
  for (u32 k = 0; k < m->here.n; k++) one &= count[k] < 0 || count[k] == least || count[k] == most;
  m->mismatch = true;
  const sym name = flight_text(m->c, &(json){.kind = JSON_STR, .str = op});
  const member *first = m->here.v;
  while (n == 1 && first->rank != who[0]) first++;
  tell(m, HANG_BEHIND, name, n, who, r,
       arena_printf(m->a, "%s %s behind: %s called %s%lld times, by %s %lld times",
                    n == 1 ? place(m, first) : hang_who(m->a, &w), n == 1 ? "is" : "are", sym_str(m->c, name),
                    one ? "" : "at least ", (long long)least, hang_who(m->a, &r), (long long)most));
}

static bool add_comm(ctx *c, arena *a, sym file, const json *j, hang_findings *found, hang_comms *comms) {
  comm m = {.c = c, .a = a, .found = found, .hash = flight_text(c, json_get(j, "hash"))};
  const i64 size = flight_int(json_get(j, "size"), -1);
  if (j->kind != JSON_OBJ || !m.hash.i || size < 0 || size > RANK_LIMIT) {
    diag(c, E_TRACE, loc_node(c, file, sym_of(c, "communicators"), (sym){0}),
         "a communicator without a hash, or without its size");
    return false;
  }
  read_members(&m, json_get(j, "ranks"), &m.here);
  read_members(&m, json_get(j, "missing_ranks"), &m.gone);
  tell_gone(&m, (u32)size);
  tell_errors(&m);
  hmap seen = {0};
  for (u32 k = 0; k < m.here.n; k++) { // every collective that any rank counts
    const json *counts = json_get(m.here.v[k].j, "collective_counts");
    for (u32 i = 0; counts && counts->kind == JSON_OBJ && i < counts->n; i++) {
      const u64 h = hash_bytes(counts->key[i], strlen(counts->key[i]), 5);
      u32 it = 0, x;
      if (hmap_next(&seen, h, &it, &x)) continue;
      hmap_add(a, &seen, h, 1);
      tell_behind(&m, counts->key[i]);
    }
  }
  const char *state = arena_printf(a, "%s%s%s", m.error ? ",ERROR" : "", m.incomplete ? ",INCOMPLETE" : "",
                                   m.mismatch ? ",MISMATCH" : "");
  *vec_push(a, comms) = (hang_comm){.file = file,
                                    .hash = m.hash,
                                    .size = (u32)size,
                                    .answered = m.here.n,
                                    .missing = (u32)size - MIN(m.here.n, (u32)size),
                                    .state = *state ? state + 1 : "ok"};
  return true;
}

bool ras_add(ctx *c, arena *a, sym file, const json *ras, hang_findings *found, hang_comms *comms) {
  const json *list = json_get(ras, "communicators");
  if (!list || list->kind != JSON_ARR) {
    diag(c, E_TRACE, loc_node(c, file, sym_of(c, "communicators"), (sym){0}), "this is no list");
    return false;
  }
  const u32 nfound = found->n, ncomms = comms->n;
  for (u32 k = 0; k < list->n; k++)
    if (!add_comm(c, a, file, &list->item[k], found, comms)) {
      found->n = nfound, comms->n = ncomms; // the file counts whole or not at all
      return false;
    }
  return true;
}
