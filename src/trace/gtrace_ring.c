// gtrace_ring.c - who sends to whom in NCCL's rings: nccl_rank_graph.json, which every worker of dPRO writes beside its own
// comm_detail.json. Not the messages themselves (gtrace_link.c).
//
//   {"RealRing": {"0": "3[3000] -> 0[2000] [receive] via NET/Socket/0,0[2000] -> 1[3000] via direct shared memory"}, ..}
//
// by channel: the connections of one worker, as ranks of NCCL. Older versions call it "Ring" and may have connections there that
// no ring uses; then the next is not known where there are two.
#include "trace/gtrace.h"
#include <stdlib.h>

enum { LONGEST = 1 << 20, RANKS_MOST = 1 << 20 };

// One connection, "3[3000] -> 0[2000] [receive] via ..".
static bool connection(const char *s, size_t n, gtrace_hop *to, bool *receives) {
  char part[256];
  char *end;
  if (n >= sizeof part) return false;
  memcpy(part, s, n), part[n] = 0;
  const char *arrow = strstr(part, "->");
  const long from = strtol(part, &end, 10);
  if (end == part || !arrow) return false;
  const long next = strtol(arrow + 2, &end, 10);
  if (end == arrow + 2 || from < 0 || next < 0 || from >= RANKS_MOST || next >= RANKS_MOST) return false;
  to->from = (u32)from, to->to = (u32)next, *receives = strstr(part, "[receive]") != NULL;
  return true;
}

static bool channel(gtrace_rings *r, arena *tmp, const char *number, const json *list, u32 *own) {
  i64 n;
  if (list->kind != JSON_STR || !chrome_number(number, &n) || n < 0 || n >= RANKS_MOST) return false;
  for (const char *p = list->str; *p;) {
    const size_t len = strcspn(p, ",");
    gtrace_hop hop = {.channel = (u32)n};
    bool receives;
    if (!connection(p, len, &hop, &receives)) return false;
    if (*own == TRACE_NONE) *own = receives ? hop.to : hop.from;
    *vec_push(tmp, &r->hops) = hop;
    p += len + (p[len] == ',');
  }
  return true;
}

bool gtrace_rings_add(reading *x, arena *tmp, const char *path, gtrace_rings *r, u32 *rank) {
  const char *text;
  size_t n;
  bool cut;
  *rank = TRACE_NONE;
  if (!file_exists(path)) return true;
  if (!trace_whole(x->c, tmp, path, LONGEST, &text, &n, &cut)) return false;
  const json *j = json_parse(x->c, tmp, sym_of(x->c, path), text, n);
  if (!j) return false;
  const json *ring = json_get(j, "RealRing");
  if (!ring) ring = json_get(j, "Ring");
  bool ok = ring && ring->kind == JSON_OBJ && ring->n;
  for (u32 k = 0; ok && k < ring->n; k++) ok = channel(r, tmp, ring->key[k], &ring->item[k], rank);
  if (ok) return true;
  *rank = TRACE_NONE;
  diag(x->c, W_TRACE_ODD, loc_text(x->c, sym_of(x->c, path), 0, 0, NULL),
       "it does not say which rank is next in NCCL's rings: messages are not tied by it");
  return true;
}

u32 gtrace_peer(const gtrace_rings *r, u32 channel, u32 rank, bool sends) {
  u32 peer = TRACE_NONE;
  for (u32 k = 0; k < r->hops.n; k++) {
    const gtrace_hop *h = &r->hops.v[k];
    if (h->channel != channel || (sends ? h->from : h->to) != rank) continue;
    const u32 other = sends ? h->to : h->from;
    if (peer != TRACE_NONE && peer != other) return TRACE_NONE;
    peer = other;
  }
  return peer;
}
