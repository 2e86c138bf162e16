// hang_colls.c - collectives of the flight recorder, matched by group and number over ranks: who calls something else,
// who did not come, who is not done. Messages: hang_pairs.c. What follows from what: hang_order.c.
//
// Idea: in a group all ranks call the same collectives in the same order, so the k-th of one is the k-th of all. The
// first number at which that fails is where the group went wrong; what comes after it follows. A number that a rank's
// ring has lost says nothing, one above its latest says that it has not come.
#include "diagnose/flight.h"

typedef struct {
  const flight *f;
  arena *a;
  hang_findings *found;
  u32 group;
  const flight_group *g;
  const flight_entry *first, *end; // collectives of the group, by number and rank
  bool mismatch, told;             // a mismatch, a number that is not done: has one been found in this group?
  bool past;                       // a mismatch in a collective that is done
} scan;

// ---- what of two entries must be equal -----------------------------------------------------------------------
// 1 << COMM_.. of an operation; of several that were recorded as one, "all_gather + reduce_scatter", of all of them.
static u32 kinds_of(const char *op) {
  u32 kinds = 0;
  for (const char *end; (end = strstr(op, " + ")); op = end + 3)
    kinds |= 1u << comm_kind_of_word(op, (u32)(end - op));
  return kinds | 1u << comm_kind_of_word(op, (u32)strlen(op));
}
static bool is_gather(const char *op) { return kinds_of(op) >> COMM_ALL_GATHER & 1; }
static bool is_scatter(const char *op) { return kinds_of(op) >> COMM_REDUCE_SCATTER & 1; }
static bool in_differs(const char *op) { return kinds_of(op) & (1u << COMM_ALL_TO_ALL | 1u << COMM_SCATTER); }
static bool out_differs(const char *op) { return kinds_of(op) & (1u << COMM_ALL_TO_ALL | 1u << COMM_GATHER); }

static u64 type_key(const scan *s, const flight_entry *e) { return (void)s, e->op.i; }
static u64 size_key(const scan *s, const flight_entry *e) {
  const char *op = sym_str(s->f->c, e->op);
  return (u64)(in_differs(op) ? 0 : e->in.i) << 32 | (out_differs(op) ? 0 : e->out.i);
}
static u64 dtype_key(const scan *s, const flight_entry *e) {
  const char *op = sym_str(s->f->c, e->op);
  return (u64)(in_differs(op) || !e->nin ? 0 : e->in_type.i) << 32 |
         (out_differs(op) || !e->nout ? 0 : e->out_type.i);
}

// all_gather and reduce_scatter of unequal parts: the parts of all ranks make the whole that each has.
static bool uneven_parts(const scan *s, const flight_entry *e, u32 n) {
  const char *op = sym_str(s->f->c, e->op);
  const bool gather = is_gather(op);
  if ((!gather && !is_scatter(op)) || n != s->g->size) return false;
  i64 sum = 0;
  for (u32 k = 0; k < n; k++) {
    if ((gather ? e[k].nout : e[k].nin) != (gather ? e->nout : e->nin)) return false;
    sum = add_sat(sum, gather ? e[k].nin : e[k].nout);
  }
  return sum == (gather ? e->nout : e->nin);
}

// The value that most ranks have; of as many, that of the lowest rank. False: all have it.
typedef u64 key_of(const scan *s, const flight_entry *e);
static bool differs(const scan *s, const flight_entry *e, u32 n, key_of *key, const flight_entry **like) {
  hmap seen = {0};
  u32 most = 0, *count = ZNEWN(s->a, u32, n);
  bool other = false;
  for (u32 k = 0; k < n; k++) other |= key(s, &e[k]) != key(s, e);
  if (!other) return false;
  for (u32 k = 0; k < n; k++) {
    const u64 x = key(s, &e[k]);
    u32 to = k;
    for (u32 it = 0, i; to == k && hmap_next(&seen, hash_u64(x, 3), &it, &i);)
      if (key(s, &e[i]) == x) to = i;
    if (to == k) hmap_add(s->a, &seen, hash_u64(x, 3), k);
    most = MAX(most, ++count[to]);
  }
  u32 k = 0;
  while (count[k] != most) k++;
  *like = &e[k];
  return true;
}

// ---- findings --------------------------------------------------------------------------------------------------
static hang_finding *tell(scan *s, hang_kind kind, const flight_entry *like, const char *text) {
  hang_finding *x = vec_push(s->a, s->found);
  *x = (hang_finding){.kind = kind,
                      .group = s->g->name,
                      .desc = s->g->desc,
                      .op = like->op,
                      .seq = like->seq,
                      .bytes = like->bytes,
                      .when_ns = like->created_ns};
  x->text = arena_printf(s->a, "%s: %s", hang_group_name(s->a, s->f->c, s->g->name, s->g->desc), text);
  return x;
}

static const char *op_number(const scan *s, const flight_entry *e) {
  return arena_printf(s->a, "%s number %lld", sym_str(s->f->c, e->op), (long long)e->seq);
}

static const flight_entry *entry_at(const scan *s, i64 seq, u32 rank) {
  size_t lo = 0, hi = (size_t)(s->end - s->first);
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    const flight_entry *e = &s->first[mid];
    if (e->seq < seq || (e->seq == seq && e->rank < rank))
      lo = mid + 1;
    else
      hi = mid;
  }
  const flight_entry *e = &s->first[lo];
  return e < s->end && e->seq == seq && e->rank == rank ? e : NULL;
}

static bool alike(const scan *s, const flight_entry *x, const flight_entry *y) {
  return x && y && x->op.i == y->op.i && size_key(s, x) == size_key(s, y);
}

// Do the next numbers tell how the orders differ? x: of a rank that differs from y.
static const char *order_of(const scan *s, const flight_entry *x, const flight_entry *y) {
  const flight_entry *x1 = entry_at(s, x->seq + 1, x->rank), *y1 = entry_at(s, y->seq + 1, y->rank);
  const flight_entry *x2 = entry_at(s, x->seq + 2, x->rank), *y2 = entry_at(s, y->seq + 2, y->rank);
  const char *xop = sym_str(s->f->c, x->op), *yop = sym_str(s->f->c, y->op);
  if (alike(s, x, y1) && alike(s, x1, y))
    return arena_printf(s->a, "it calls %s %s and %s %s in the other order", yop, sym_str(s->f->c, y->in),
                        xop, sym_str(s->f->c, x->in));
  if (alike(s, x, y1) && (!x1 || !y2 || alike(s, x1, y2)))
    return arena_printf(s->a, "it has left out %s %s", yop, sym_str(s->f->c, y->in));
  if (alike(s, x1, y) && (!x2 || !y1 || alike(s, x2, y1)))
    return arena_printf(s->a, "it calls %s %s once more", xop, sym_str(s->f->c, x->in));
  return NULL;
}

static const char *sizes(const scan *s, const flight_entry *e, bool in) {
  const char *t = sym_str(s->f->c, in ? e->in : e->out);
  if (!*t) return "none";
  return strlen(t) > 60 ? arena_printf(s->a, "%.57s..", t) : t;
}

// What a rank does, in the words of what differs; like: what most do.
static const char *does(const scan *s, hang_kind kind, const flight_entry *e, const flight_entry *like) {
  ctx *c = s->f->c;
  switch (kind) {
  case HANG_TYPE: return arena_printf(s->a, "%s", sym_str(c, e->op));
  case HANG_SIZE: {
    const bool in = e->in.i != like->in.i && !in_differs(sym_str(c, e->op));
    const bool both = in && e->out.i != like->out.i && e->in.i != e->out.i;
    if (e == like || !both) return sizes(s, e, in || e == like);
    return arena_printf(s->a, "%s to %s", sizes(s, e, true), sizes(s, e, false));
  }
  case HANG_DTYPE: return sym_str(c, e->in_type.i != like->in_type.i || e == like ? e->in_type : e->out_type);
  default: return flight_state_name(e->state);
  }
}

// Ranks differ in what key says. e: n entries of one number.
static void tell_mismatch(scan *s, hang_kind kind, key_of *key, const flight_entry *e, u32 n,
                          const flight_entry *like, bool done) {
  u32 *who = NEWN(s->a, u32, n), *rest = NEWN(s->a, u32, n), nwho = 0, nrest = 0;
  const flight_entry *odd = NULL;
  strbuf b = {.a = s->a};
  for (u32 k = 0; k < n; k++) {
    if (key(s, &e[k]) == key(s, like)) {
      rest[nrest++] = e[k].rank;
      continue;
    }
    who[nwho++] = e[k].rank;
    if (!odd) odd = &e[k];
  }
  const hang_ranks w = hang_ranks_of(s->a, nwho, who), r = hang_ranks_of(s->a, nrest, rest);
  assert(odd); // differs() has found one
  const char *order = kind == HANG_DTYPE ? NULL : order_of(s, odd, like);
  if (kind == HANG_TYPE) {
    bool one = true;
    for (u32 k = 0; k < n; k++) one &= !hang_has(&w, e[k].rank) || key(s, &e[k]) == key(s, odd);
    sb_fmt(&b, "%s %s %s as number %lld, where %s %s %s", hang_who(s->a, &w), w.n == 1 ? "calls" : "call",
           one ? does(s, kind, odd, like) : "other collectives", (long long)like->seq, hang_who(s->a, &r),
           r.n == 1 ? "calls" : "call", does(s, kind, like, like));
  } else {
    const char *of = does(s, kind, odd, like);
    const bool in = odd->in.i != like->in.i && !in_differs(sym_str(s->f->c, like->op));
    const char *than =
        kind == HANG_SIZE
            ? sizes(s, like, in)
            : sym_str(s->f->c, odd->in_type.i != like->in_type.i ? like->in_type : like->out_type);
    sb_fmt(&b, "%s %s %s %s for %s, where %s %s %s", hang_who(s->a, &w), w.n == 1 ? "has" : "have",
           kind == HANG_SIZE ? (in ? "input" : "output") : "type", of, op_number(s, like), hang_who(s->a, &r),
           r.n == 1 ? "has" : "have", than);
    if (kind == HANG_SIZE && odd->nin == like->nin && odd->nout == like->nout)
      sb_put(&b, "; it is as many elements, so NCCL does not notice");
  }
  if (order) sb_fmt(&b, "; %s: %s", w.n == 1 ? "the order differs" : "the orders differ", order);
  if (done) sb_put(&b, "; it was done all the same");
  hang_finding *x = tell(s, order ? HANG_ORDER : kind, like, sb_str(&b));
  x->who = w, x->wait = r, x->at = odd->at, x->done = done;
  s->mismatch = true;
}

static bool done_there(const scan *s, const flight_entry *e) {
  const flight_stand *x = flight_stand_of(s->f, s->group, e->rank);
  return e->state == FLIGHT_COMPLETED || (x && x->completed >= e->seq);
}

static void tell_state(scan *s, const flight_entry *e, u32 n) {
  u32 *who = NEWN(s->a, u32, n), *rest = NEWN(s->a, u32, n), nwho = 0, nrest = 0;
  const flight_entry *late = NULL, *done = NULL;
  for (u32 k = 0; k < n; k++) {
    if (done_there(s, &e[k])) {
      rest[nrest++] = e[k].rank;
      if (!done) done = &e[k];
    } else {
      who[nwho++] = e[k].rank;
      if (!late) late = &e[k];
    }
  }
  if (!late || !done) return;
  const hang_ranks w = hang_ranks_of(s->a, nwho, who), r = hang_ranks_of(s->a, nrest, rest);
  hang_finding *x =
      tell(s, HANG_STATE, late,
           arena_printf(s->a, "%s %s not done with %s (%s), which %s %s completed", hang_who(s->a, &w),
                        w.n == 1 ? "is" : "are", op_number(s, late), flight_state_name(late->state),
                        hang_who(s->a, &r), r.n == 1 ? "has" : "have"));
  x->who = w, x->wait = r, x->at = late->at;
  s->mismatch = true;
}

// ---- who did not come ------------------------------------------------------------------------------------------
// The latest number that a rank came to, in words.
static const char *latest_of(const scan *s, const hang_ranks *w) {
  i64 seq = -2;
  for (u32 k = 0; k < w->n; k++) {
    const flight_stand *x = flight_stand_of(s->f, s->group, w->v[k]);
    const i64 last = x ? x->enqueued : -1;
    if (k && last != seq) return "";
    seq = last;
  }
  const char *its = w->n == 1 ? "its" : "their";
  return seq < 0 ? arena_printf(s->a, "; %s dump%s no collective of this group", its,
                                w->n == 1 ? " has" : "s have")
                 : arena_printf(s->a, "; %s last one there is number %lld", its, (long long)seq);
}

static void tell_waiting(scan *s, hang_kind kind, const flight_entry *like, hang_ranks who, hang_ranks wait) {
  const char *op = op_number(s, like), *text;
  if (kind == HANG_MISSING)
    text = arena_printf(s->a, "%s did not come to %s, which %s %s in%s", hang_who(s->a, &who), op,
                        hang_who(s->a, &wait), wait.n == 1 ? "waits" : "wait", latest_of(s, &who));
  else if (kind == HANG_NO_DUMP)
    text = arena_printf(s->a, "%s %s in %s; of %s, which must come to it, there is no dump",
                        hang_who(s->a, &wait), wait.n == 1 ? "waits" : "wait", op, hang_who(s->a, &who));
  else
    text = arena_printf(
        s->a, "%s came to %s and it is not done%s", hang_who(s->a, &wait), op,
        who.n ? arena_printf(s->a, "; %s may have come: the ring has lost it", hang_who(s->a, &who)) : "");
  hang_finding *x = tell(s, kind, like, text);
  x->who = kind == HANG_STUCK ? wait : who, x->wait = wait;
  x->at = kind == HANG_MISSING ? flight_dump_of(s->f, who.v[0])->last_at
          : kind == HANG_STUCK ? like->at
                               : (sym){0};
}

// Ranks of the group that are not among e, the n that came.
typedef struct {
  hang_ranks missing; // did not come
  hang_ranks no_dump;
  hang_ranks unknown; // may have come: the ring has lost all of this group
} absence;
static absence absent(const scan *s, const flight_entry *e, u32 n) {
  const u32 size = s->g->size, most = size - MIN(n, size);
  u32 *m = NEWN(s->a, u32, most), *d = NEWN(s->a, u32, most), *u = NEWN(s->a, u32, most), nm = 0, nd = 0,
      nu = 0;
  for (u32 k = 0, i = 0; k < size && nm + nd + nu < most; k++) {
    const u32 rank = s->g->sorted[k];
    while (i < n && e[i].rank < rank) i++;
    if (i < n && e[i].rank == rank) continue;
    const flight_dump *dump = flight_dump_of(s->f, rank);
    const flight_stand *x = flight_stand_of(s->f, s->group, rank);
    if (!dump)
      d[nd++] = rank;
    else if (x && x->enqueued >= e->seq)
      continue; // it came, and the ring has lost it
    else if ((!x || x->enqueued < 0) && dump->lost)
      u[nu++] = rank;
    else
      m[nm++] = rank;
  }
  return (absence){{nm, m}, {nd, d}, {nu, u}};
}

// One number of the group: e, the n entries of it. True: it matches on all ranks that there are dumps of.
static bool scan_number(scan *s, const flight_entry *e, u32 n) {
  static const struct {
    hang_kind kind;
    key_of *key;
  } rule[] = {{HANG_TYPE, type_key}, {HANG_SIZE, size_key}, {HANG_DTYPE, dtype_key}};
  const flight_entry *like, *first = NULL;
  u32 *wait = NEWN(s->a, u32, n), nwait = 0;
  for (u32 k = 0; k < n; k++)
    if (!done_there(s, &e[k])) {
      wait[nwait++] = e[k].rank;
      if (!first) first = &e[k];
    }
  bool ok = true;
  for (u32 k = 0; k < COUNT_OF(rule) && ok; k++) {
    if (!differs(s, e, n, rule[k].key, &like) || (rule[k].kind == HANG_SIZE && uneven_parts(s, e, n)))
      continue;
    ok = false;
    if (s->mismatch || (!nwait && s->past)) continue;
    tell_mismatch(s, rule[k].kind, rule[k].key, e, n, like, !nwait);
    if (!nwait) s->mismatch = false, s->past = true;
  }
  if (s->mismatch || s->told || !nwait) return ok;
  const absence x = n < s->g->size ? absent(s, e, n) : (absence){0};
  const hang_ranks w = hang_ranks_of(s->a, nwait, wait);
  s->told = true; // what comes after the first number that is not done follows from it
  if (x.missing.n) {
    tell_waiting(s, HANG_MISSING, first, x.missing, w);
  } else if (x.no_dump.n) {
    tell_waiting(s, HANG_NO_DUMP, first, x.no_dump, w);
  } else if (nwait < n) {
    tell_state(s, e, n);
    return false;
  } else {
    tell_waiting(s, HANG_STUCK, first, x.unknown, w);
  }
  return ok && !x.missing.n;
}

void hang_collectives(const flight *f, arena *a, hang_findings *found, u32 *numbers, u32 *matched) {
  *numbers = *matched = 0;
  for (u32 k = 0, end; k < f->entries.n; k = end) {
    const flight_entry *v = f->entries.v;
    scan s = {.f = f, .a = a, .found = found, .group = v[k].group, .g = &f->groups.v[v[k].group]};
    for (end = k; end < f->entries.n && v[end].group == s.group && v[end].p2p == v[k].p2p;) end++;
    if (v[k].p2p) continue;
    s.first = v + k, s.end = v + end;
    for (u32 i = k, n; i < end; i += n) {
      for (n = 1; i + n < end && v[i + n].seq == v[i].seq;) n++;
      arena_mark_t m = arena_mark(a);
      const u32 before = found->n;
      ++*numbers;
      *matched += scan_number(&s, v + i, n);
      if (found->n == before) arena_release(a, m);
    }
  }
}
