// patterns.c - what the sharding patterns of one application cost on a machine.
//
// Idea: a pattern is written as the program that a plan would make of it: the instruction on pieces, then the
// communication that completes its results. So its prices are those of `heddle sim`.
#include "cost/internal.h"

typedef struct {
  cost_model *k;
  prog *p;
  const func_info *main;
  const instr *what; // of main
  group all, one;    // the ranks; rank 0
  u8 axis;
  u32 ways;
  loc at;
  i64 *ps; // room for a cost of every rank
} bench;

// ---- may it be asked? --------------------------------------------------------------------------------

// A note that says into how many pieces a letter can be cut on this machine, the smallest numbers.
static void note_ways(const bench *b, const char *name, i64 extent) {
  enum { MOST = 6 };
  ctx *c = b->p->c;
  u32 v[MOST], n = 0;
  strbuf text = {.a = b->p->a};
  for (u32 w = 2; w <= extent && w <= b->k->m->nranks && n < MOST; w++)
    if (extent % w == 0) v[n++] = w;
  for (u32 i = 0; i < n; i++) sb_fmt(&text, "%s%u", !i ? "" : i + 1 < n ? ", " : " or ", v[i]);
  if (n)
    diag_note(c, (loc){0}, "%s=%lld can be split %s ways", name, (long long)extent, sb_str(&text));
  else
    diag_note(c, (loc){0}, "%s=%lld cannot be split over up to %u devices", name, (long long)extent,
              b->k->m->nranks);
}

static bool some_divides(const bench *b, const law *l, const law_pattern *v, u32 n) {
  ctx *c = b->p->c;
  for (u32 i = 0; i < n; i++)
    if (l->letter[v[i].letter].extent % b->ways == 0) return true;
  const char *name = op_row_of(b->what->op)->name;
  if (!n) {
    diag(c, E_DIVIDE, b->at, "%s: no letter may be split", name);
    return false;
  }
  diag(c, E_DIVIDE, b->at, "%s: no letter can be split %u ways", name, b->ways);
  arena_mark_t mark = arena_mark(b->p->a);
  const char *const *letter = law_letter_names(b->p->a, l);
  for (u32 i = 0; i < n; i++) note_ways(b, letter[v[i].letter], l->letter[v[i].letter].extent);
  arena_release(b->p->a, mark);
  return false;
}

static bool possible(const bench *b, const law *l, const law_pattern *v, u32 n) {
  ctx *c = b->p->c;
  const machine *m = b->k->m;
  const op_row *row = op_row_of(b->what->op);
  if (row->flags & OPF_COMM) {
    diag(c, E_USAGE, b->at, "%s is communication: what it costs depends on the layouts around it", row->name);
    diag_hint(c, "`heddle sim` prices it in a program");
    return false;
  }
  if (b->ways > m->nranks) {
    diag(c, E_DEVICES, b->at, "%u ways need %u devices; %s has %u", b->ways, b->ways, sym_str(c, m->name),
         m->nranks);
    if (m->nranks > 1) diag_hint(c, "--ways %u, or a larger machine", m->nranks);
    return false;
  }
  if (b->ways < 2) {
    diag(c, E_DEVICES, b->at, "%u way is no split", b->ways);
    diag_hint(c, m->nranks > 1 ? "--ways 2, or more" : "a machine with several devices");
    return false;
  }
  return some_divides(b, l, v, n);
}

// ---- the program of a pattern ------------------------------------------------------------------------

static type piece_type(const bench *b, const shape *s, const law_piece *x, i64 extent) {
  layout_info li = {0};
  if (x->state == PIECE_SPLIT)
    li.split[li.nsplit++] = (lay_split){b->axis, x->dim, 0, x->unit * (extent / b->ways)};
  if (x->state == PIECE_PARTIAL) li.part[li.npart++] = (lay_part){b->axis, x->red};
  return type_tensor(b->p, s, layout_of(b->p->sp, &li), (group){0});
}

static i64 slowest(const i64 *ps, u32 n) {
  i64 most = 0;
  for (u32 i = 0; i < n; i++) most = MAX(most, ps[i]);
  return most;
}

static bool price(const bench *b, func f, u32 index1, group g, i64 *ps) {
  const func_info *fi = func_get(b->p, f);
  const u32 n = cost_instr(b->k, b->p, fi, &fi->body.v[index1 - 1], g, b->ps);
  if (n) *ps = slowest(b->ps, n);
  return n;
}

// The instruction on operands and results of these types. x NULL: whole.
static bool compute(const bench *b, const law_pattern *x, i64 extent, pattern_cost *out) {
  static const law_piece whole = {.state = PIECE_WHOLE};
  prog *p = b->p;
  const u32 nopd = b->what->nopd, nres = b->what->nres;
  const instr what = *b->what;
  const func f = func_new(p, sym_of(p->c, "pattern"), (loc){0});
  type *res = NEWN(p->a, type, nres + 1);
  u32 *opd = NEWN(p->a, u32, nopd + 1);
  for (u32 k = 0; k < nopd; k++) {
    const shape s = val_type(p, b->main, opd_of(b->main, b->what, k))->s;
    opd[k] = func_param(p, f, piece_type(b, &s, x ? &x->opd[k] : &whole, extent), (sym){0}, ROLE_INPUT);
  }
  for (u32 k = 0; k < nres; k++) {
    const shape s = val_type(p, b->main, what.res + k)->s;
    res[k] = piece_type(b, &s, x ? &x->res[k] : &whole, extent);
  }
  builder at = builder_at(p, f);
  at.where = what.where;
  const u32 index1 = emit(&at, what.op, what.at, opd, nopd, res, nres);
  const func_info *fi = func_get(p, f);
  const group g = x ? b->all : b->one;
  cost_info info;
  cost_event event;
  if (!price(b, f, index1, g, &out->compute_ps)) return false;
  if (!cost_explain(b->k, p, fi, &fi->body.v[index1 - 1], g, 0, &info, &event)) return false;
  out->flops = event.flops, out->bytes = event.bytes;
  return true;
}

// A partial tensor becomes complete: op is all_reduce or reduce_scatter. Adds to *ps. False: no price, said.
static bool complete(const bench *b, opcode op, const shape *s, const law_piece *from, u32 dim, i64 *ps) {
  prog *p = b->p;
  const law_piece to = {.state = op == OP_all_reduce ? PIECE_WHOLE : PIECE_SPLIT, .dim = (u8)dim, .unit = 1};
  const func f = func_new(p, sym_of(p->c, "complete"), (loc){0});
  const type t = piece_type(b, s, &to, to.state == PIECE_SPLIT ? s->dim[dim] : 0);
  const u32 opd = func_param(p, f, piece_type(b, s, from, 0), (sym){0}, ROLE_INPUT);
  const attr over = attr_x(A_over, &b->axis, 1);
  builder at = builder_at(p, f);
  i64 own;
  at.where = b->at;
  if (!price(b, f, emit(&at, op, attrs_of(p, &over, 1), &opd, 1, &t, 1), b->all, &own)) return false;
  *ps += own;
  return true;
}

// The results of a pattern that are sums, added on every rank or each in pieces.
static bool complete_results(const bench *b, const law_pattern *x, pattern_cost *out) {
  bool scatters = x->sum;
  for (u32 k = 0; k < b->what->nres; k++) {
    const shape s = val_type(b->p, b->main, b->what->res + k)->s;
    if (x->res[k].state != PIECE_PARTIAL) continue;
    if (!complete(b, OP_all_reduce, &s, &x->res[k], 0, &out->comm_ps)) return false;
    out->comm_bytes += shape_bytes(&s);
    u32 d = 0;
    while (d < s.nd && s.dim[d] % b->ways) d++;
    scatters = scatters && d < s.nd;
    if (scatters && !complete(b, OP_reduce_scatter, &s, &x->res[k], d, &out->scatter_ps)) return false;
  }
  if (!scatters) out->scatter_ps = -1;
  return true;
}

static bool complete_gradients(const bench *b, const law_pattern *x, pattern_cost *out) {
  for (u32 k = 0; k < b->what->nopd; k++) {
    const shape s = val_type(b->p, b->main, opd_of(b->main, b->what, k))->s;
    if (x->grad[k].state != PIECE_PARTIAL) continue;
    if (!complete(b, OP_all_reduce, &s, &x->grad[k], 0, &out->grad_ps)) return false;
  }
  return true;
}

bool cost_patterns(cost_model *k, prog *p, const law *l, const law_pattern *v, u32 n, u32 ways, loc at,
                   pattern_cost *out) {
  const func_info *main = func_get(p, p->main);
  bench b = {.k = k, .p = p, .main = main, .what = &main->body.v[0], .ways = ways, .at = at};
  if (!possible(&b, l, v, n)) return false;
  b.axis = axis_add(p->sp, sym_of(p->c, "ways"), ways, false);
  if (!b.axis) return false;
  b.all = group_all(p->sp, mesh_add(p->sp, sym_of(p->c, "ways"), &b.axis, 1, 0, NULL));
  b.one = group_fix(p->sp, b.all, b.axis, 0);
  b.ps = NEWN(p->a, i64, ways);
  for (u32 i = 0; i < n; i++) {
    const i64 extent = l->letter[v[i].letter].extent;
    out[i] = (pattern_cost){.divides = extent % ways == 0};
    if (!out[i].divides) continue;
    if (!compute(&b, &v[i], extent, &out[i]) || !complete_results(&b, &v[i], &out[i]) ||
        !complete_gradients(&b, &v[i], &out[i]))
      return false;
  }
  out[n] = (pattern_cost){.divides = true, .scatter_ps = -1};
  return compute(&b, NULL, 0, &out[n]);
}
