// comm.c - times of communications: a program that communicates the same again and again, on as many processes as it has
// members.
//
// Idea: caches are as a step leaves them, where a communication comes layers after the one before: what it moves has just been made and the memory of
// what it gives has not been touched for long. So between two communications 8 MB are written, then the operand is made, and a matrix
// product runs. Between two processes an all-reduce of 512 KiB takes 115 us with the product alone, 121 to 150 so, and 136 to
// 165 in steps of T5; one of 2 KiB 5 to 8 with the product alone and 9 to 13 so. Who comes last does not wait, so the time is what the member saw that
// saw least. A send goes there and back, and what either side sees of the way is twice the time.
//
// On a slow link what caches hold makes no difference, and pauses do: a switch or a token bucket lets the first of what comes after a pause
// pass at once, where in a step one message follows the other. An all-reduce of 1 MiB at 500 Mbit/s takes 16.2 ms after a pause and 17.3 in
// steps; one of 32 KiB at 200 Mbit/s .05 and 1.3. There communications run in a row, sends all in one direction, and the figure is what the row takes over
// their number, without the first ones.
#include "profile/internal.h"

enum { WARM = 1, LEAST = 2, MOST = 60, TIMES = 4, MOST_BYTES = 8 << 20, SIDE = 384, PASSED = 2 << 20 };
enum { ROW_FIRST = 512 << 10, ROW_BYTES = 1 << 20, ROW_LEAST = 3, ROW_MOST = 64, ASKED = 256 << 10 };
static const u64 LONG_NS = 45000000;
static const double PART = 0.02; // of the time, as well as it is to be known
static const double SLOW_NS = 4; // a byte that comes: a quarter of a GB/s

// ---- the program ----------------------------------------------------------------------------------------------
typedef struct {
  const char *operand, *from, *result, *to, *attrs; // types and groups; attrs: without `over`
} moved;

// Of as many bytes as cost_comm counts.
static moved types_of(arena *a, const cost_event *e, u32 n, split_at at) {
  const char *t = dtype_name(e->t ? e->t : DT_F32);
  const i64 bytes = dtype_bytes(e->t ? e->t : DT_F32), elems = MAX((e->size + bytes - 1) / bytes, 1);
  const i64 each = (elems + n - 1) / n, beside = at.outer * at.inner;
  const bool fits = beside > 1 && elems % (beside * n) == 0;
  const char *const before = fits ? arena_printf(a, "%lld,", (long long)at.outer) : "",
                    *const after = fits ? arena_printf(a, ",%lld", (long long)at.inner) : "";
  const i64 rows = fits ? elems / beside : each * n;
#define TYPE(...) arena_printf(a, __VA_ARGS__)
  const char *const whole = TYPE("%s[%lld]", t, (long long)elems);
  const char *const parted = TYPE("%s[%s%lld{x}%s]", t, before, (long long)rows, after);
  const char *const all = TYPE("%s[%s%lld%s]", t, before, (long long)rows, after), *root = " @m[x=0]";
  switch (e->op) {
  case OP_all_reduce: return (moved){TYPE("%s+x", whole), "", whole, "", ""};
  case OP_reduce: return (moved){TYPE("%s+x", whole), "", whole, root, " {root=0}"};
  case OP_reduce_scatter: return (moved){TYPE("%s+x", all), "", parted, "", ""};
  case OP_all_gather: return (moved){parted, "", all, "", ""};
  case OP_gather_to: return (moved){parted, "", all, root, " {root=0}"};
  case OP_scatter_from: return (moved){all, root, parted, "", " {root=0}"};
  case OP_broadcast: return (moved){whole, root, whole, "", " {root=0}"};
  case OP_all_to_all:
  case OP_permute:
    return (moved){TYPE("%s[%u,%lld{x}]", t, n, (long long)(each * n)), "",
                   TYPE("%s[%u{x},%lld]", t, n, (long long)(each * n)), "", ""};
  case OP_exchange: { // each is sent the pieces of all others
    const i64 piece = (elems + n - 2) / MAX(n - 1, 1u) * n;
    return (moved){TYPE("%s[%lld{x}]", t, (long long)piece), "", TYPE("%s[%lld]", t, (long long)piece), "",
                   ""};
  }
  default: break;
  }
  const i64 halo = e->op == OP_halo_exchange && n > 2 ? (elems + 1) / 2 : elems; // both neighbours, or one
  strbuf in = {.a = a}, out = {.a = a};
  for (u32 k = 0; k < n; k++) {
    const i64 from = k * halo, to = from + halo;
    sb_fmt(&in, "%s%lld-%lld", k ? "|" : "", (long long)from, (long long)to);
    sb_fmt(&out, "%s%lld-%lld", k ? "|" : "", (long long)(k ? from - halo : 0),
           (long long)(k + 1 < n ? to + halo : to));
  }
  return (moved){TYPE("%s[%lld{x:%s}]", t, (long long)(halo * n), sb_str(&in)), "",
                 TYPE("%s[%lld{x:%s}]", t, (long long)(halo * n), sb_str(&out)), "", ""};
#undef TYPE
}

static void put_sends(strbuf *b, arena *a, const cost_event *e, u32 times) {
  const moved t =
      types_of(a, &(cost_event){.op = OP_broadcast, .t = e->t, .size = e->size}, 1, (split_at){1, 1});
  sb_fmt(b, "main @sends on @m(%%a0: %s @m[x=0] weight) -> (%s @m[x=0]) {\n", t.operand, t.operand);
  for (u32 k = 0; k < times; k++) {
    sb_fmt(b, "  %%b%u = send %%a%u @m[x=0] : %s @m[x=1]\n", k + 1, k, t.operand);
    sb_fmt(b, "  %%a%u = send %%b%u @m[x=1] : %s @m[x=0]\n", k + 1, k + 1, t.operand);
  }
  sb_fmt(b, "  return %%a%u\n}\n", times);
}

// The receiver takes each before the next, as it uses it; the last one goes back, so that both have ended together.
static void put_row_of_sends(strbuf *b, arena *a, const cost_event *e, u32 times) {
  const moved t =
      types_of(a, &(cost_event){.op = OP_broadcast, .t = e->t, .size = e->size}, 1, (split_at){1, 1});
  sb_fmt(b, "main @sends on @m(%%a: %s @m[x=0] weight) -> (%s @m[x=0]) {\n", t.operand, t.operand);
  for (u32 k = 0; k < times; k++) {
    sb_fmt(b, "  %%b%u = send %%a @m[x=0] : %s @m[x=1]\n", k, t.operand);
    sb_fmt(b, "  %%c%u = scale %%b%u {alpha=1} @m[x=1] : %s\n", k, k, t.operand);
  }
  sb_fmt(b, "  %%d = send %%c%u @m[x=1] : %s @m[x=0]\n  return %%d\n}\n", times - 1, t.operand);
}

prog *comm_program(ctx *c, arena *a, const cost_event *e, u32 n, u32 times, split_at at, bool row) {
  strbuf b = {.a = a};
  const bool pauses = !row;
  sb_fmt(&b, "mesh @m [x=%u]\n", n);
  if (e->op == OP_send && row)
    put_row_of_sends(&b, a, e, times);
  else if (e->op == OP_send)
    put_sends(&b, a, e, times);
  else {
    const moved t = types_of(a, e, n, at);
    const char *part = strchr(t.operand, '+'); // made here: only whole inputs can be given
    const size_t length = part ? (size_t)(part - t.operand) : strlen(t.operand);
    sb_fmt(&b, "main @moves on @m(%%w: %.*s%s weight, %%z: f32[%d,%d] weight) -> (%s%s) {\n", (int)length,
           t.operand, t.from, SIDE, SIDE, t.result, t.to);
    const bool made = !e->t || dtype_kind_of(e->t) != DK_BOOL; // `scale` is for numbers
    for (u32 k = 0; k < times; k++) {
      const char *const of = made ? arena_printf(a, "o%u", k) : "w";
      if (pauses)
        sb_fmt(&b, "  %%l%u = full {shape=[%d], dtype=f32, value=1} : f32[%d]\n", k, PASSED, PASSED);
      if (made) sb_fmt(&b, "  %%o%u = scale %%w {alpha=1}%s : %.*s\n", k, t.from, (int)length, t.operand);
      if (part) sb_fmt(&b, "  %%p%u = partial %%%s over x : %s\n", k, of, t.operand);
      if (pauses) sb_fmt(&b, "  %%z%u = matmul %%z, %%z : f32[%d,%d]\n", k + 1, SIDE, SIDE);
      sb_fmt(&b, "  %%r%u = %s %%%s%s over x : %s%s\n", k + 1, op_row_of(e->op)->name,
             part ? arena_printf(a, "p%u", k) : of, t.attrs, t.result, t.to);
    }
    sb_fmt(&b, "  return %%r%u\n}\n", times);
  }
  const char *text = sb_str(&b);
  return ir_parse(c, sym_of(c, op_row_of(e->op)->name), text, strlen(text));
}

// ---- measuring --------------------------------------------------------------------------------------------------
typedef struct { // the processes that take part, as ranks of the program
  const profile_job *j;
  const u32 *members;
} among;
static bool send_among(void *arg, u32 to, const void *data, i64 bytes) {
  const among *x = arg;
  return x->j->link.send(x->j->link.arg, x->members[to], data, bytes);
}
static bool receive_among(void *arg, u32 from, void *data, i64 bytes) {
  const among *x = arg;
  return x->j->link.receive(x->j->link.arg, x->members[from], data, bytes);
}

// What this process sees of every communication of a step: from the end of the instruction before it to its own, in v. Sends
// follow each other, and from the end of the first send back to the last one's is one figure; of a row it is what each took, without the first.
typedef struct {
  const profile_job *j;
  opcode op; // whose ends are watched
  bool row;
  u32 n, first, times;
  u64 last_ns;
  double *v;
} watching;
static void note(void *arg, const func_info *f, const instr *i, group g) {
  (void)f, (void)g;
  watching *w = arg;
  const u64 now = now_ns(w->j);
  if (w->row) {
    w->n += i->op == w->op;
    if (i->op == w->op && w->n == w->first) w->last_ns = now;
    if (i->op == w->op && w->n == w->first + w->times) w->v[0] = (double)(now - w->last_ns) / w->times;
    return;
  }
  if (i->op == w->op && w->op != OP_send)
    w->v[w->n++] = (double)(now - w->last_ns);
  else if (i->op == OP_send && ++w->n > 2)
    w->v[0] += (double)(now - w->last_ns);
  w->last_ns = now_ns(w->j);
}

static u32 at_most(i64 bytes, const cost_event *e, u32 least, u32 most) {
  return (u32)MIN(MAX(bytes / MAX(e->size, 1), least), most);
}
static u32 times_for(const cost_event *e, bool row) {
  return row ? at_most(ROW_BYTES, e, ROW_LEAST, ROW_MOST) : at_most(MOST_BYTES, e, 1, TIMES);
}
static u32 first_for(const cost_event *e, bool row) { return row ? at_most(ROW_FIRST, e, 1, ROW_MOST) : 0; }
static u32 figures_of(const cost_event *e, bool row) { // of a repeat
  return row || e->op == OP_send ? 1 : times_for(e, row);
}
// A send there and back: of both ways of all. A row says what one took.
static double ways_of(const cost_event *e, bool row) {
  return e->op == OP_send && !row ? 2.0 * times_for(e, row) : 1;
}

// Repeats, `each` figures of each in v, which has room for one more that does not count; how many. All processes of the job take part in the barriers.
static u32 repeat(const profile_job *j, ctx *c, eval_rank *r, const u32 *next, watching *w, u32 each,
                  double off_ns, double *v) {
  const u64 begin = now_ns(j);
  u32 n = 0;
  for (u32 k = 0;; k++) {
    bool go = n < LEAST || (r && n < MOST && now_ns(j) - begin < LONG_NS &&
                            profile_off(v, n * each) > MAX(off_ns, PART * profile_median(v, n * each)));
    if (!together(j, j->nprocs, &go)) return together_lost(c), 0;
    if (!go) return n;
    w->n = 0, w->v = v + (size_t)(k < WARM ? MOST : n) * each, w->v[0] = 0;
    w->last_ns = now_ns(j);
    if (r && !eval_rank_step(r, next)) return 0;
    n += k >= WARM;
  }
}

// What a communication took: what the member saw that waited least; of sends in a row, what their receiver saw.
static void settle(arena *a, const cost_event *e, bool row, const u32 *members, u32 n, const double *all,
                   u32 count, profile_figure *out) {
  double *v = NEWN(a, double, count);
  const size_t each = (size_t)MOST * figures_of(e, row);
  const u32 from = row && e->op == OP_send;
  for (u32 k = 0; k < count; k++) {
    v[k] = all[members[from] * each + k];
    for (u32 m = from + 1; m < n; m++) v[k] = MIN(v[k], all[members[m] * each + k]);
    v[k] /= ways_of(e, row);
  }
  *out = profile_settle(v, count);
}

bool comm_measure(const profile_job *j, ctx *c, const cost_event *e, split_at at, const u32 *members, u32 n,
                  double off_ns, bool row, profile_figure *out) {
  if (e->op == OP_send && dtype_kind_of(e->t ? e->t : DT_F32) == DK_BOOL)
    row = false; // `scale` is for numbers
  arena *a = arena_new();
  const u32 each = figures_of(e, row), nin = e->op == OP_send ? 1 : 2, times = times_for(e, row),
            first = first_for(e, row);
  prog *p = comm_program(c, a, e, n, first + times + (e->op == OP_send && !row), at, row);
  watching w = {
      .j = j, .op = row && e->op == OP_send ? OP_scale : e->op, .row = row, .first = first, .times = times};
  among x = {j, members};
  u32 own = 0, next[3] = {0};
  while (own < n && members[own] != j->link.rank) own++;
  const eval_link link = {.rank = own, .arg = &x, .send = send_among, .receive = receive_among};
  const eval_opts o = {.threads = j->threads};
  eval_array in[3];
  eval_rank *r = NULL;
  bool ok = p;
  if (ok && own < n) {
    r = eval_random(p, 0, in, nin, a) ? eval_rank_new(p, &o, &link, in, nin) : NULL;
    ok = r;
  }
  if (r) eval_rank_ring(r, EVAL_RING_AUTO), eval_rank_watch(r, note, &w); // as `heddle run` does
  double *v = ZNEWN(a, double, (MOST + 1) * each), *all = NEWN(a, double, (size_t)j->nprocs *MOST *each);
  const u32 repeats = ok ? repeat(j, c, r, next, &w, each, ways_of(e, row) * off_ns, v) : 0;
  eval_rank_free(r);
  ok = repeats;
  if (ok && !together_gather(j, j->nprocs, v, MOST * each, all)) ok = together_lost(c);
  if (ok && !j->link.rank) settle(a, e, row, members, n, all, repeats * each, out);
  prog_free(p);
  arena_free(a);
  return ok;
}

// By all-gathers, which add nothing up, so that the time is the link's.
bool comm_is_slow(const profile_job *j, ctx *c, const u32 *members, u32 n, bool *slow) {
  const cost_event e = {.op = OP_all_gather, .t = DT_F32, .size = ASKED};
  profile_figure x = {0};
  if (!comm_measure(j, c, &e, (split_at){1, 1}, members, n, ASKED, true, &x)) return false;
  *slow = !j->link.rank && x.median > SLOW_NS * ASKED * (n - 1) / n;
  return together(j, j->nprocs, slow) || together_lost(c);
}
