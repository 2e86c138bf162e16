// test_lower.c - programs of one rank: together they are the distributed program, every instruction once on
// each of its ranks; what one rank gives is what another gets, and it is what the layouts say; equal ranks
// look alike.
#include "plan/plan.h"
#include "front/front.h"
#include "test.h"
#include <stdlib.h>

static ctx *C;
static arena *A;

static const choice_value THREE_ONE = {.nparts = 2, .part = (const u32[]){3, 1}};
static const choice_value TWO_ONE = {.nparts = 2, .part = (const u32[]){2, 1}};
static choice_value data_shares, tensor_shares; // of the next plan

static prog *planned(const char *model, u32 d, u32 t, u32 p, u32 k, u32 zero, bool train) {
  C = ctx_new(), A = arena_new();
  front_opts fo = {.batch = d == 3 ? 12 : 8, .seq = 4, .vocab = 8};
  prog *s = front_load(C, model, &fo), *out = NULL;
  if (s) {
    planner *pl = planner_new(s);
    hybrid_opts h = {.s = strategy_of("dp=%u tp=%u pp=%u mb=%u zero=%u", d, t, p, k, zero), .train = train};
    h.s.dp_shares = data_shares, h.s.tp_shares = tensor_shares;
    plan *pn = policy_hybrid(pl, A, &h);
    out = pn ? plan_apply(pl, pn, NULL) : NULL;
    planner_free(pl);
    prog_free(s);
  }
  CHECK_MSG(out != NULL, "%s: %s", model, diag_render(C, A));
  return out;
}

static prog *text_of(const char *path) {
  file_view f;
  C = ctx_new(), A = arena_new();
  if (!file_map(C, path, &f)) return NULL;
  prog *p = ir_parse(C, sym_of(C, path), (const char *)f.data, f.size);
  file_unmap(&f);
  CHECK_MSG(p != NULL, "%s: %s", path, diag_render(C, A));
  return p;
}

static void done(prog *p) {
  if (p) prog_free(p);
  arena_free(A);
  ctx_free(C);
}

static char *printed(const prog *p) {
  strbuf b = {.a = A};
  ir_print(p, &b);
  return b.v;
}

static u32 ranks_of(const prog *p) {
  u32 n = 1;
  for (u32 m = 1; m <= mesh_count(p->sp); m++) {
    const mesh_info *mi = mesh_get(p->sp, (mesh){m});
    for (u32 k = 0; k < mi->nranks; k++) n = MAX(n, (mi->ranks ? mi->ranks[k] : mi->first + k) + 1);
  }
  return n;
}

static bool exists(const prog *p, u32 rank) {
  for (u32 m = 1; m <= mesh_count(p->sp); m++)
    if (group_member(p->sp, group_all(p->sp, (mesh){m}), rank) >= 0) return true;
  return !mesh_count(p->sp) && !rank;
}

// ---- every instruction with its calls opened, in order -------------------------------------------------
typedef struct {
  const func_info *f;
  const instr *i;
  group g;
  u32 coord;
} step;
typedef VEC(step) steps;

static void opened(const prog *p, func f, group g, u32 coord, steps *out) {
  const func_info *fi = func_get(p, f);
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *i = &fi->body.v[k];
    group at = i->g.i ? i->g : g;
    u32 point = point_merge((prog *)(uintptr_t)p, coord, i->coord);
    if (i->op == OP_call)
      opened(p, i->callee, at, point, out);
    else
      *vec_push(A, out) = (step){fi, i, at, point};
  }
}

static bool on(const prog *p, group own, group g, u32 rank) {
  if (own.i) g = own;
  return g.i ? group_member(p->sp, g, rank) >= 0 : rank == 0;
}

static bool holds(const prog *p, type t, group g, u32 rank) {
  const type_info *i = type_get(p, t);
  for (u32 k = 0; i->tuple && k < i->n; k++)
    if (holds(p, i->elem[k], g, rank)) return true;
  return i->tuple ? false : on(p, i->g, g, rank);
}

// Does a rank take part? Who has an operand or a result does; of what was picked out only who has that.
static bool takes_part(const prog *p, const step *s, u32 rank) {
  bool some = false;
  for (u32 k = 0; k < s->i->nres; k++) some |= holds(p, val(s->f, s->i->res + k)->ty, s->g, rank);
  for (u32 k = 0; k < instr_nopd(s->f, s->i) && s->i->op != OP_part; k++)
    some |= holds(p, val(s->f, opd_of(s->f, s->i, k))->ty, s->g, rank);
  return some;
}

static bool same_kind(const prog *p, const instr *a, const instr *b) {
  if (a->origin != b->origin || a->strm != b->strm || a->flags != b->flags || a->where.i != b->where.i)
    return false;
  if (a->op == b->op) return true;
  const attr *over = attr_get(attrs_get(p, a->at), A_over);
  return b->op == OP_identity && (a->op == OP_part || a->op == OP_join) &&
         !axis_get(p->sp, over->u.axes[0])->temporal;
}

// "12 [0-4,*], 13 [4-8,*]": the box behind `rank`, NULL if there is none; the number of messages in *n.
static const char *message_of(const char *text, u32 rank, size_t *len, u32 *n) {
  const char *found = NULL;
  *n = 0;
  for (const char *s = text; s && *s; s = strchr(s, ']') ? strchr(s, ']') + 1 : NULL) {
    if (*s == ',') s += 2;
    if (!*s) break;
    u32 r = (u32)strtoul(s, NULL, 10);
    ++*n;
    if (r == rank && !found) found = strchr(s, '['), *len = (size_t)(strchr(s, ']') - found + 1);
  }
  return found;
}

static const char *text_attr(const prog *p, const instr *i, attr_key k) {
  const attr *a = i ? attr_get(attrs_get(p, i->at), k) : NULL;
  return a ? sym_str(p->c, a->u.s) : "";
}

// here[r]: the instruction on rank r in its program one[r], NULL where it takes no part.
static void check_ends(const char *what, prog *const *one, const instr *const *here, u32 n) {
  u32 given = 0, got = 0;
  for (u32 r = 0; r < n; r++) {
    u32 m;
    size_t x = 0, y = 0;
    message_of(text_attr(one[r], here[r], A_gives), ~0u, &x, &m);
    given += m;
    message_of(text_attr(one[r], here[r], A_gets), ~0u, &x, &m);
    got += m;
    for (u32 q = 0; q < n; q++) {
      const char *a = message_of(text_attr(one[r], here[r], A_gives), q, &x, &m),
                 *b = message_of(text_attr(one[q], here[q], A_gets), r, &y, &m);
      CHECK_MSG(!a == !b && (!a || (x == y && !memcmp(a, b, x))),
                "%s: what rank %u gives rank %u is not what that gets", what, r, q);
    }
    const attr *peers = here[r] ? attr_get(attrs_get(one[r], here[r]->at), A_peers) : NULL;
    bool me = !peers;
    for (u32 k = 0; peers && k < peers->n; k++) {
      u32 q = (u32)peers->u.ints[k];
      me |= q == r;
      const attr *theirs = q < n && here[q] ? attr_get(attrs_get(one[q], here[q]->at), A_peers) : NULL;
      CHECK_MSG(theirs && theirs->n == peers->n &&
                    !memcmp(theirs->u.ints, peers->u.ints, sizeof(i64) * peers->n),
                "%s: ranks %u and %u name different peers", what, r, q);
    }
    CHECK_MSG(me, "%s: rank %u is not among its peers", what, r);
  }
  CHECK_MSG(given == got, "%s: %u messages given, %u got", what, given, got);
}

static void check_program(const char *what, const prog *p) {
  u32 n = ranks_of(p);
  prog **one = NEWN(A, prog *, n);
  steps all = {0}, *own = ZNEWN(A, steps, n);
  u32 *at = ZNEWN(A, u32, n);
  const instr **here = NEWN(A, const instr *, n);
  opened(p, p->main, (group){0}, 0, &all);
  for (u32 r = 0; r < n; r++) {
    one[r] = NULL;
    if (!exists(p, r)) continue;
    one[r] = plan_lower(p, r);
    REQUIRE(one[r] != NULL);
    CHECK_MSG(ir_verify(one[r]), "%s, rank %u: %s", what, r, diag_render(C, A));
    const char *text = printed(one[r]);
    prog *again = ir_parse(C, sym_of(C, "rank"), text, strlen(text));
    CHECK_MSG(again && !strcmp(text, printed(again)), "%s, rank %u: not read back as written: %s", what, r,
              diag_render(C, A));
    if (again) prog_free(again);
    opened(one[r], one[r]->main, (group){0}, 0, &own[r]);
  }
  for (u32 k = 0; k < all.n; k++) {
    for (u32 r = 0; r < n; r++) {
      here[r] = NULL;
      if (!takes_part(p, &all.v[k], r)) continue;
      bool is = at[r] < own[r].n && same_kind(p, all.v[k].i, own[r].v[at[r]].i);
      CHECK_MSG(is, "%s: instruction %u (%s) is not next on rank %u", what, k,
                op_row_of((opcode)all.v[k].i->op)->name, r);
      REQUIRE(is);
      here[r] = own[r].v[at[r]++].i;
    }
    if (op_row_of((opcode)all.v[k].i->op)->flags & OPF_COMM) check_ends(what, one, here, n);
  }
  for (u32 r = 0; r < n; r++) {
    CHECK_MSG(at[r] == own[r].n, "%s: rank %u has %u instructions more", what, r, own[r].n - at[r]);
    if (one[r]) prog_free(one[r]);
  }
}

TEST(lower_plans_are_dealt_out) {
  static const struct {
    const char *model;
    u32 d, t, p, k, zero;
    bool train;
  } plans[] = {{"mlp-xs:layers=4,hidden=8", 1, 1, 1, 1, 0, true},
               {"mlp-xs:layers=4,hidden=8", 2, 2, 2, 2, 0, true},
               {"gpt2:layers=2,hidden=8,heads=2", 2, 2, 2, 2, 0, true},
               {"gpt2:layers=2,hidden=8,heads=2", 2, 2, 1, 2, 3, true},
               {"gpt2:layers=2,hidden=8,heads=2", 1, 2, 2, 4, 0, false},
               {"llama2-7b:layers=2,hidden=8,heads=2,ffn=16", 2, 2, 2, 2, 1, true},
               {"moe-8x125m:layers=2,hidden=8,heads=2", 2, 2, 1, 1, 2, true},
               {"mlp-xs:layers=4,hidden=8", 3, 1, 2, 2, 1, true}, // pieces in storage that differ by one
               {"gpt2:layers=2,hidden=8,heads=2", 3, 2, 1, 2, 3, true}};
  for (u32 k = 0; k < COUNT_OF(plans); k++) {
    prog *p = planned(plans[k].model, plans[k].d, plans[k].t, plans[k].p, plans[k].k, plans[k].zero,
                      plans[k].train);
    if (p) check_program(plans[k].model, p);
    done(p);
  }
}

TEST(lower_shares_are_dealt_out) {
  data_shares = THREE_ONE, tensor_shares = TWO_ONE;
  for (u32 k = 1; k <= 2; k++)
    for (u32 zero = 0; zero <= 3; zero += 3) {
      prog *p = planned("gpt2:layers=2,hidden=12,heads=3", 2, 2, 1, k, zero, true);
      if (p) check_program("shares", p);
      done(p);
    }
  data_shares = tensor_shares = (choice_value){0};
}

TEST(lower_written_programs_are_dealt_out) {
  static const char *const path[] = {
      "examples/distir/fig2_pipeline.heddle", "examples/distir/fig8_checkpointing.heddle",
      "examples/distir/fig9_zero.heddle", "examples/gpt_block_tensor.heddle", "examples/uneven_data.heddle"};
  for (u32 k = 0; k < COUNT_OF(path); k++) {
    prog *p = text_of(path[k]);
    if (p) check_program(path[k], p);
    done(p);
  }
}

// ---- equal ranks ---------------------------------------------------------------------------------------
static char *alike(const prog *p) { // the text without coordinates and peers
  char *s = printed(p), *to = s;
  for (char *from = s; *from;) {
    if (!strncmp(from, "@m[", 3))
      from = strchr(from, ']') + 1;
    else if (!strncmp(from, "peers=[", 7))
      from = strchr(from, ']') + 1;
    else if (!strncmp(from, "gives=\"", 7) || !strncmp(from, "gets=\"", 6))
      from = strchr(strchr(from, '"') + 1, '"') + 1;
    else
      *to++ = *from++;
  }
  *to = 0;
  return s;
}

TEST(lower_equal_ranks_look_alike) {
  prog *p = planned("gpt2:layers=2,hidden=8,heads=2", 2, 2, 2, 2, 0, true);
  REQUIRE(p != NULL);
  const char *stage[2] = {NULL, NULL};
  for (u32 r = 0; r < 8; r++) {
    prog *q = plan_lower(p, r);
    const char *text = alike(q);
    if (!stage[r / 4]) stage[r / 4] = text;
    CHECK_MSG(!strcmp(text, stage[r / 4]), "rank %u does not look like rank %u", r, r / 4 * 4);
    prog_free(q);
  }
  CHECK(strcmp(stage[0], stage[1]) != 0);
  done(p);
}

static const char *text_of_rank(const prog *p, u32 rank) {
  prog *one = plan_lower(p, rank);
  REQUIRE(one != NULL);
  const char *text = printed(one);
  prog_free(one);
  return text;
}

TEST(lower_goldens) {
  prog *p = planned("mlp-xs:layers=2,hidden=8", 1, 2, 2, 2, 0, true);
  REQUIRE(p != NULL);
  CHECK_GOLDEN("lower/mlp_rank1.heddle", text_of_rank(p, 1));
  CHECK_GOLDEN("lower/mlp_rank2.heddle", text_of_rank(p, 2));
  done(p);
  p = text_of("examples/distir/fig9_zero.heddle");
  REQUIRE(p != NULL);
  CHECK_GOLDEN("lower/fig9_zero_rank1.heddle", text_of_rank(p, 1));
  CHECK(plan_lower(p, 2) == NULL);
  CHECK_GOLDEN("lower/no_rank.txt", diag_render(C, A));
  done(p);
}

// ---- sends between any two layouts ---------------------------------------------------------------------
enum { DIM = 24 };
static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

static group some_group(prog *p, const char *name, u32 first) {
  static const u32 sizes[] = {2, 3, 2, 4};
  u8 axes[3];
  u32 n = 1 + few(3);
  for (u32 k = 0; k < n; k++) axes[k] = axis_add(p->sp, sym_fmt(C, "%s%u", name, k), sizes[few(4)], false);
  return group_all(p->sp, mesh_add(p->sp, sym_of(C, name), axes, n, first, NULL));
}

static layout some_layout(prog *p, group g) {
  const group_info *gi = group_get(p->sp, g);
  i64 dims[] = {DIM, DIM};
  layout l = {0};
  for (u32 k = 0; k < gi->naxes; k++) {
    u8 a = gi->axis[k].axis, d = (u8)few(3);
    i64 stride = d < 2 ? layout_next_stride(p->sp, l, d, DIM, axis_size(p->sp, a)) : 0;
    layout minor = d < 2 ? layout_with_split(p->sp, l, a, d, 1) : l;
    if (stride)
      l = few(3) == 0 && layout_fits(p->sp, minor, 2, dims) ? minor
                                                            : layout_with_split(p->sp, l, a, d, stride);
  }
  return l;
}

static bool within(const char *text, i64 row, i64 col) { // "[0-4+8-12,*]", regular ones with ".."
  const char *s = text + 1;
  for (u32 d = 0; d < 2; d++, s += *s == ',') {
    i64 x = d ? col : row;
    bool in = *s == '*';
    i64 lo[2] = {0, 0}, hi = 0;
    for (u32 k = 0; *s != ',' && *s != ']'; k++) {
      if (*s == '*' && s++) continue;
      if (!strncmp(s, "..", 2)) { // goes on as the first two begin, up to the last
        s += 3;
        i64 last = strtoll(s, NULL, 10), period = lo[1] - lo[0], width = hi - lo[1];
        in = in || (x >= lo[0] && x < last && (x - lo[0]) % period < width);
      }
      i64 from = strtoll(s, (char **)(uintptr_t)&s, 10);
      if (k < 2) lo[k] = from;
      hi = strtoll(s + 1, (char **)(uintptr_t)&s, 10);
      in = in || (x >= from && x < hi);
      if (*s == '+') s++;
    }
    if (!in) return false;
  }
  return true;
}

static bool has(prog *p, group g, u32 rank, layout l, i64 row, i64 col) {
  coords c;
  i64 index[DIM], at[2] = {row, col};
  coords_of(p->sp, g, (u32)group_member(p->sp, g, rank), NULL, &c);
  for (u8 d = 0; d < 2; d++) {
    i64 n = layout_index(p->sp, l, d, DIM, &c, index), k = 0;
    while (k < n && index[k] != at[d]) k++;
    if (k == n) return false;
  }
  return true;
}

// Every element of a target comes from the first who is listed with it, and that one has it.
static void check_send(prog *p, u64 seed, group g, group h, layout lg, layout lh) {
  const group_info *hi = group_get(p->sp, h);
  for (u32 m = 0; m < hi->nranks; m++) {
    u32 r = hi->ranks[m];
    prog *q = plan_lower(p, r);
    REQUIRE(q != NULL);
    const func_info *f = func_get(q, q->main);
    const char *gets = text_attr(q, &f->body.v[0], A_gets);
    for (i64 e = 0; e < DIM * DIM; e++) {
      const char *s = gets, *from = NULL;
      for (; *s && !from; s = strchr(s, ']') + 1) {
        if (*s == ',') s += 2;
        if (within(strchr(s, '['), e / DIM, e % DIM)) from = s;
      }
      bool want = has(p, h, r, lh, e / DIM, e % DIM);
      bool ok =
          want == (from != NULL) && (!from || has(p, g, (u32)strtoul(from, NULL, 10), lg, e / DIM, e % DIM));
      CHECK_MSG(ok, "seed %llu: element %lld of rank %u in %s", (unsigned long long)seed, (long long)e, r,
                gets);
      if (!ok) e = DIM * DIM;
    }
    prog_free(q);
  }
}

TEST(lower_sends_are_element_exact) {
  for (u64 seed = 1; seed <= 60; seed++) {
    R = seed;
    C = ctx_new(), A = arena_new();
    prog *p = prog_new(C);
    group g = some_group(p, "a", 0), h = some_group(p, "b", few(2) ? 0 : 40);
    layout lg = some_layout(p, g), lh = some_layout(p, h);
    shape s = {.t = DT_F32, .nd = 2, .dim = {DIM, DIM}};
    p->main = func_new(p, sym_of(C, "main"), (loc){0});
    value x = func_param(p, p->main, type_tensor(p, &s, lg, g), sym_of(C, "x"), ROLE_INPUT);
    builder b = builder_at(p, p->main);
    b.g = g;
    type to = type_tensor(p, &s, lh, h);
    value y = emit_res(p, p->main, emit(&b, OP_send, (attrset){0}, &x, 1, &to, 1));
    func_return(p, p->main, &y, 1);
    check_send(p, seed, g, h, lg, lh);
    check_program("send", p);
    done(p);
  }
}
