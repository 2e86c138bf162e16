// comm.c - times of communications: a program that communicates the same again and again, on as many processes as it has
// members.
//
// Idea: once the first communication has ended its members are together, so what passes until the last one of the row
// has ended is the time of the others; the slowest member says it. A send goes there and back, and what either side sees
// of the way is twice the time; the smaller of both is free of waiting.
#include "profile/internal.h"

enum { WARM = 2, LEAST = 9, MOST = 60, TIMES = 16, MOST_BYTES = 8 << 20 };
static const u64 LONG_NS = 300000000;

// ---- the program ----------------------------------------------------------------------------------------------
typedef struct {
  const char *operand, *from, *result, *to, *attrs; // types and groups; attrs: without `over`
} moved;

// Of as many bytes as cost_comm counts.
static moved types_of(arena *a, const cost_event *e, u32 n, i64 inner) {
  const char *t = dtype_name(e->t ? e->t : DT_F32);
  const i64 bytes = dtype_bytes(e->t ? e->t : DT_F32), elems = MAX((e->size + bytes - 1) / bytes, 1);
  const i64 each = (elems + n - 1) / n;
  const i64 row = inner > 1 && elems % (inner * n) == 0 ? inner : 1,
            all_rows = row > 1 ? elems / row : each * n;
  const char *const after = row > 1 ? arena_printf(a, ",%lld", (long long)row) : "";
#define TYPE(...) arena_printf(a, __VA_ARGS__)
  const char *const whole = TYPE("%s[%lld]", t, (long long)elems);
  const char *const parted = TYPE("%s[%lld{x}%s]", t, (long long)all_rows, after);
  const char *const all = TYPE("%s[%lld%s]", t, (long long)all_rows, after), *root = " @m[x=0]";
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
  const moved t = types_of(a, &(cost_event){.op = OP_broadcast, .t = e->t, .size = e->size}, 1, 1);
  sb_fmt(b, "main @sends on @m(%%a0: %s @m[x=0] weight) -> (%s @m[x=0]) {\n", t.operand, t.operand);
  for (u32 k = 0; k < times; k++) {
    sb_fmt(b, "  %%b%u = send %%a%u @m[x=0] : %s @m[x=1]\n", k + 1, k, t.operand);
    sb_fmt(b, "  %%a%u = send %%b%u @m[x=1] : %s @m[x=0]\n", k + 1, k + 1, t.operand);
  }
  sb_fmt(b, "  return %%a%u\n}\n", times);
}

prog *comm_program(ctx *c, arena *a, const cost_event *e, u32 n, u32 times, i64 inner) {
  strbuf b = {.a = a};
  sb_fmt(&b, "mesh @m [x=%u]\n", n);
  if (e->op == OP_send)
    put_sends(&b, a, e, times);
  else {
    const moved t = types_of(a, e, n, inner);
    const char *part = strchr(t.operand, '+'); // made here: only whole inputs can be given
    const size_t length = part ? (size_t)(part - t.operand) : strlen(t.operand);
    sb_fmt(&b, "main @moves on @m(%%w: %.*s%s weight) -> (%s%s) {\n", (int)length, t.operand, t.from,
           t.result, t.to);
    if (part) sb_fmt(&b, "  %%p = partial %%w over x : %s\n", t.operand);
    for (u32 k = 0; k < times; k++)
      sb_fmt(&b, "  %%r%u = %s %%%s%s over x : %s%s\n", k + 1, op_row_of(e->op)->name, part ? "p" : "w",
             t.attrs, t.result, t.to);
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

// The ends of the first and the last communication of a step. A send there and one back are one.
typedef struct {
  opcode op;
  u32 n, skip;
  u64 first_ns, last_ns;
} span;
static void note(void *arg, const func_info *f, const instr *i, group g) {
  (void)f, (void)g;
  span *s = arg;
  if (i->op != s->op) return;
  s->last_ns = clock_ns();
  if (++s->n == s->skip) s->first_ns = s->last_ns;
}

static u32 times_for(const cost_event *e) { return (u32)MIN(MAX(MOST_BYTES / MAX(e->size, 1), 1), TIMES); }

// ns of a repeat, in v; how many. All processes of the job take part in the barriers.
static u32 repeat(const profile_job *j, ctx *c, eval_rank *r, const u32 *next, span *s, double *v) {
  const u64 begin = clock_ns();
  u32 n = 0;
  for (u32 k = 0;; k++) {
    bool go = n < LEAST || (n < MOST && clock_ns() - begin < LONG_NS);
    if (!together(j, j->nprocs, &go)) return together_lost(c), 0;
    if (!go) return n;
    s->n = 0;
    if (r && !eval_rank_step(r, next)) return 0;
    if (k >= WARM) v[n++] = (double)(s->last_ns - s->first_ns);
  }
}

// What one repeat took: of a send what the side saw that waited least, of others what the last one saw.
static void settle(const cost_event *e, const u32 *members, u32 n, const double *all, u32 repeats,
                   profile_figure *out) {
  double v[MOST];
  const u32 times = times_for(e) * (e->op == OP_send ? 2 : 1);
  for (u32 k = 0; k < repeats; k++) {
    v[k] = all[(size_t)members[0] * MOST + k];
    for (u32 m = 1; m < n; m++) {
      const double x = all[(size_t)members[m] * MOST + k];
      v[k] = e->op == OP_send ? MIN(v[k], x) : MAX(v[k], x);
    }
    v[k] /= times;
  }
  *out = profile_settle(v, repeats);
}

bool comm_measure(const profile_job *j, ctx *c, const cost_event *e, i64 inner, const u32 *members, u32 n,
                  profile_figure *out) {
  arena *a = arena_new();
  prog *p = comm_program(c, a, e, n, times_for(e) + 1, inner);
  span s = {.op = e->op, .skip = e->op == OP_send ? 2 : 1};
  among x = {j, members};
  u32 own = 0, next[2] = {0};
  while (own < n && members[own] != j->link.rank) own++;
  const eval_link link = {.rank = own, .arg = &x, .send = send_among, .receive = receive_among};
  eval_array in[2];
  eval_rank *r = NULL;
  bool ok = p;
  if (ok && own < n) {
    r = eval_random(p, 0, in, 1, a) ? eval_rank_new(p, &(eval_opts){0}, &link, in, 1) : NULL;
    ok = r;
  }
  if (r) eval_rank_watch(r, note, &s);
  double v[MOST] = {0}, *all = NEWN(a, double, j->nprocs *MOST);
  const u32 repeats = ok ? repeat(j, c, r, next, &s, v) : 0;
  eval_rank_free(r);
  ok = repeats;
  if (ok && !together_gather(j, j->nprocs, v, MOST, all)) ok = together_lost(c);
  if (ok && !j->link.rank) settle(e, members, n, all, repeats, out);
  prog_free(p);
  arena_free(a);
  return ok;
}
