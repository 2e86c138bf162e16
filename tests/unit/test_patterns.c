// test_patterns.c - sharding patterns: every operator has them, the rules of program text agree with them,
// gradients come out as they say, and their costs are those of a simulation of the same program.
#include "cost/cost.h"
#include "heddle.h"
#include "pass/pass.h"
#include "test.h"

// ---- the table -------------------------------------------------------------------------------------------

static bool has_law(u32 op) { return op_law_text((opcode)op) != NULL; }

TEST(patterns_of_every_operator) {
  heddle_session *s = heddle_session_new();
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const char *name = op_row_of((opcode)op)->name;
    const char *text = heddle_docs_patterns(s, name, NULL, HEDDLE_TEXT);
    const char *keys = heddle_docs_patterns(s, name, NULL, HEDDLE_JSON);
    if (!CHECK_MSG(text && keys, "%s: %s", name, heddle_session_messages(s))) continue;
    CHECK_MSG(!strncmp(text, name, strlen(name)), "%s", text);
    CHECK_MSG(!has_law(op) || strstr(text, "SP1") || strstr(text, "no letter may be split"), "%s", text);
    CHECK_MSG(has_law(op) || strstr(text, "no law of its own"), "%s", text);
    CHECK_MSG(has_law(op) == (strstr(keys, "\"patterns\": [") != NULL), "%s", keys);
  }
  CHECK_STR(heddle_session_messages(s), "");
  heddle_session_free(s);
}

TEST(patterns_cost_of_every_operator) {
  heddle_session *s = heddle_session_new();
  const heddle_pattern_options o = {.machine = heddle_machine_load(s, "2x8 h100 ib=8x400Gb/s"), .ways = 4};
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *row = op_row_of((opcode)op);
    if (!has_law(op) || row->flags & OPF_COMM) continue;
    const char *text = heddle_docs_patterns(s, row->name, &o, HEDDLE_TEXT);
    CHECK_MSG(text && strstr(text, "cheapest"), "%s: %s", row->name, heddle_session_messages(s));
  }
  CHECK_STR(heddle_session_messages(s), "");
  CHECK(!heddle_docs_patterns(s, "send", &o, HEDDLE_TEXT));
  CHECK(!heddle_docs_patterns(s, "call", &o, HEDDLE_TEXT));
  heddle_session_free(s);
}

// ---- one application -------------------------------------------------------------------------------------

enum { WAYS = 2 };
typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  const instr *i;
  const func_info *f;
  const law *l;
  shape opd[8];
  const law_pattern *v;
  u32 n;
  u8 axis;
  group g;
} bed;

static bool bed_open(bed *b, opcode op, const char *shapes, const char *attributes) {
  *b = (bed){.c = ctx_new(), .a = arena_new()};
  b->p = ir_application(b->c, op, &(application_text){shapes, attributes, DT_F32});
  if (!CHECK_MSG(b->p, "%s: %s", op_row_of(op)->name, diag_render(b->c, b->a))) return false;
  b->f = func_get(b->p, b->p->main);
  b->i = &b->f->body.v[0];
  shape res[OP_RES_MAX];
  u32 nres = b->i->nres;
  for (u32 k = 0; k < b->i->nopd; k++) b->opd[k] = val_type(b->p, b->f, opd_of(b->f, b->i, k))->s;
  b->l = op_law(b->c, b->a, op, attrs_get(b->p, b->i->at), b->i->nopd, b->opd, &nres, res, (loc){0});
  b->n = law_patterns(b->a, op, b->l, b->opd, &b->v);
  b->axis = axis_add(b->p->sp, sym_of(b->c, "w"), WAYS, false);
  b->g = group_all(b->p->sp, mesh_add(b->p->sp, sym_of(b->c, "m"), &b->axis, 1, 0, NULL));
  return true;
}

static bool bed_example(bed *b, u32 op) {
  arena *a = arena_new();
  const op_example e = op_example_of(a, (opcode)op);
  const bool ok = bed_open(b, (opcode)op, e.shapes, e.attributes);
  arena_free(a);
  return ok;
}

static void bed_close(bed *b) {
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static layout piece(const bed *b, const law_piece *x, i64 extent) {
  layout_info li = {0};
  if (x->state == PIECE_SPLIT)
    li.split[li.nsplit++] = (lay_split){b->axis, x->dim, 0, x->unit * extent / WAYS};
  if (x->state == PIECE_PARTIAL) li.part[li.npart++] = (lay_part){b->axis, x->red};
  return layout_of(b->p->sp, &li);
}

static const char *name_of(const bed *b) { return op_row_of((opcode)b->i->op)->name; }

// ---- the rules of program text ---------------------------------------------------------------------------

static void agrees(bed *b, u32 index) {
  const law_pattern *x = &b->v[index];
  const i64 extent = b->l->letter[x->letter].extent;
  layout opd[8], res[OP_RES_MAX];
  bool any = false;
  for (u32 k = 0; k < b->l->nopd; k++)
    opd[k] = piece(b, &x->opd[k], extent), any |= x->opd[k].state == PIECE_SPLIT;
  if (extent % WAYS || !any) return;
  if (!CHECK_MSG(ir_layouts(b->p, (opcode)b->i->op, b->l, opd, res, (loc){0}), "%s, SP%u: %s", name_of(b),
                 index + 1, diag_render(b->c, b->a)))
    return;
  for (u32 k = 0; k < b->l->nres; k++)
    CHECK_MSG(res[k].i == piece(b, &x->res[k], extent).i, "%s, SP%u: result %u", name_of(b), index + 1,
              k + 1);
}

// What stays whole is refused where an operand would split it.
static void refuses(bed *b, u32 letter) {
  const i64 extent = b->l->letter[letter].extent;
  for (u32 k = 0; k < b->l->nopd; k++)
    for (u32 d = 0; d < b->l->opd[k].nd; d++) {
      const law_dim *x = &b->l->opd[k].dim[d];
      layout opd[8] = {{0}}, res[OP_RES_MAX];
      if (!x->n || x->f[x->n - 1] != letter || extent % WAYS) continue;
      const law_piece own = {.state = PIECE_SPLIT, .dim = (u8)d, .unit = 1};
      opd[k] = piece(b, &own, extent);
      CHECK_MSG(!ir_layouts(b->p, (opcode)b->i->op, b->l, opd, res, (loc){0}), "%s: letter %u", name_of(b),
                letter);
    }
}

TEST(patterns_agree_with_program_text) {
  u32 compared = 0;
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    bed b;
    if (!has_law(op) || !bed_example(&b, op)) continue;
    for (u32 k = 0; k < b.n; k++) agrees(&b, k), compared++;
    for (u32 i = 0; i < b.l->nletters; i++)
      if (law_whole_reason((opcode)op, b.l, i) != WHOLE_NOT) refuses(&b, i);
    bed_close(&b);
  }
  CHECK(compared > 200);
}

// ---- the order and the names -----------------------------------------------------------------------------

TEST(patterns_of_a_product) {
  bed b;
  REQUIRE(bed_open(&b, OP_matmul, "6x8x10,10x12", ""));
  const char *const *name = law_letter_names(b.a, b.l);
  CHECK_EQ_I64(b.n, 4);
  CHECK_STR(name[b.v[0].letter], "n");
  CHECK(b.v[0].opd[0].state == PIECE_WHOLE && b.v[0].opd[1].dim == 1 && !b.v[0].sum);
  CHECK(b.v[0].grad[0].state == PIECE_PARTIAL && b.v[0].grad[1].state == PIECE_SPLIT);
  CHECK_STR(name[b.v[1].letter], "k");
  CHECK(b.v[1].sum && b.v[1].res[0].state == PIECE_PARTIAL && b.v[1].res[0].red == RED_SUM);
  CHECK(b.v[1].opd[0].dim == 2 && b.v[1].opd[1].dim == 0 && !b.v[1].grad_sum);
  CHECK_STR(name[b.v[2].letter], "a"); // the batch
  CHECK_STR(name[b.v[3].letter], "m");
  CHECK(b.v[3].grad[0].state == PIECE_SPLIT && b.v[3].grad[1].state == PIECE_PARTIAL);
  bed_close(&b);
}

// ---- gradients -------------------------------------------------------------------------------------------
// Layouts go forwards through the gradient function. Where an operand does not lie as the others need it, it
// is made so in the ways that cost nothing (a copy is cut), or by adding up a sum.
typedef struct {
  bed *b;
  layout *at; // by value
  bool added; // a sum was completed before the end
} walk;

static bool letter_of(const law *l, const law_term *t, const lay_split *s, u32 *letter, i64 *stride) {
  i64 unit = 1;
  for (u32 j = t->dim[s->dim].n; j-- > 0;) {
    const u32 f = t->dim[s->dim].f[j];
    if (s->stride < unit * l->letter[f].extent) {
      *letter = f, *stride = s->stride / unit;
      return !(l->letter[f].flags & LAW_WHOLE);
    }
    unit *= l->letter[f].extent;
  }
  return false;
}

static layout cut_at(const walk *w, const law *l, const law_term *t, u32 letter, i64 stride) {
  for (u32 d = 0; d < t->nd; d++) {
    i64 unit = 1;
    for (u32 j = t->dim[d].n; j-- > 0; unit *= l->letter[t->dim[d].f[j]].extent)
      if (t->dim[d].f[j] == letter)
        return layout_with_split(w->b->p->sp, (layout){0}, w->b->axis, (u8)d, stride * unit);
  }
  return (layout){0};
}

static bool fit(walk *w, const law *l, layout *opd) {
  u32 letter = ~0u;
  i64 stride = 0;
  for (u32 k = 0; k < l->nopd && letter == ~0u; k++) {
    const lay_split *s = layout_split_of(w->b->p->sp, opd[k], w->b->axis);
    if (s && !letter_of(l, &l->opd[k], s, &letter, &stride)) return false;
  }
  for (u32 k = 0; k < l->nopd; k++) {
    if (layout_part_of(w->b->p->sp, opd[k], w->b->axis)) {
      if (letter == ~0u) continue;
      opd[k] = (layout){0}, w->added = true;
    }
    if (letter != ~0u && !opd[k].i) opd[k] = cut_at(w, l, &l->opd[k], letter, stride);
  }
  return true;
}

static bool step(walk *w, const func_info *f, const instr *i) {
  prog *p = w->b->p;
  shape in[16], out[OP_RES_MAX];
  layout opd[16], res[OP_RES_MAX];
  u32 nres = i->nres;
  const u32 n = instr_nopd(f, i);
  for (u32 k = 0; k < n; k++) in[k] = val_type(p, f, opd_of(f, i, k))->s, opd[k] = w->at[opd_of(f, i, k)];
  const law *l = op_law(p->c, w->b->a, (opcode)i->op, attrs_get(p, i->at), n, in, &nres, out, (loc){0});
  const u32 before = diag_count(p->c);
  if (!l || !fit(w, l, opd)) return false;
  bool ok = ir_layouts(p, (opcode)i->op, l, opd, res, (loc){0});
  if (!ok) { // a sum that may not pass
    for (u32 k = 0; k < n; k++)
      if (layout_part_of(p->sp, opd[k], w->b->axis)) opd[k] = (layout){0}, w->added = true;
    ok = ir_layouts(p, (opcode)i->op, l, opd, res, (loc){0});
  }
  if (ok) diag_truncate(p->c, before);
  for (u32 k = 0; ok && k < nres; k++) w->at[i->res + k] = res[k];
  return ok;
}

static bool through(walk *w, const func_info *f) {
  for (u32 k = 0; k < f->body.n; k++)
    if (!step(w, f, &f->body.v[k])) return false;
  return true;
}

// The gradient function with operands, saved values and gradients of results as the pattern has them.
static u32 gradients_lie(bed *b, u32 index, const grad_pair *pair, const bool *has_dy) {
  const law_pattern *x = &b->v[index];
  const i64 extent = b->l->letter[x->letter].extent;
  const func_info *fwd = func_get(b->p, pair->fwd), *bwd = func_get(b->p, pair->bwd);
  walk w = {.b = b, .at = ZNEWN(b->a, layout, fwd->values.n + bwd->values.n)};
  u32 at = 1, same = 0;
  for (u32 k = 0; k < b->l->nopd; k++) w.at[k + 1] = piece(b, &x->opd[k], extent);
  if (extent % WAYS || !through(&w, fwd)) return 0;
  layout *own = w.at;
  w.at = ZNEWN(b->a, layout, bwd->values.n);
  for (u32 k = 0; k < pair->nneed; k++) w.at[at++] = own[pair->need[k] + 1];
  for (u32 k = 0; k < pair->nsaved; k++) w.at[at++] = own[fwd->rets.v[b->l->nres + k]];
  for (u32 k = 0; k < pair->nsaved; k++)
    if (layout_part_of(b->p->sp, w.at[at - 1 - k], b->axis)) w.at[at - 1 - k] = (layout){0};
  for (u32 k = 0; k < b->l->nres; k++)
    if (has_dy[k]) w.at[at++] = x->res[k].state == PIECE_SPLIT ? piece(b, &x->res[k], extent) : (layout){0};
  w.added = false;
  if (!through(&w, bwd)) return 0;
  for (u32 k = 0; k < pair->ndx; k++) {
    const law_piece *want = &x->grad[pair->dx[k]];
    const layout got = w.at[bwd->rets.v[k]];
    const bool free = want->state == PIECE_SPLIT && !got.i; // of zeros, or of one value: cut when needed
    const bool ok = got.i == piece(b, want, extent).i || free || (w.added && want->state == PIECE_PARTIAL);
    CHECK_MSG(ok, "%s, SP%u: gradient of operand %u", name_of(b), index + 1, pair->dx[k] + 1);
    same += ok;
  }
  return same;
}

TEST(patterns_gradients_lie_as_they_say) {
  u32 compared = 0, operators = 0;
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const char *rule = op_row_of((opcode)op)->grad;
    bed b;
    u8 mark[8];
    bool has_dy[OP_RES_MAX], any = false;
    if (!has_law(op) || !strcmp(rule, "no") || !strcmp(rule, "zero") || !bed_example(&b, op)) continue;
    for (u32 k = 0; k < b.l->nopd; k++)
      any |= mark[k] = dtype_kind_of(b.opd[k].t) == DK_FLOAT ? GRAD_INPUT : GRAD_NONE;
    for (u32 k = 0; k < b.l->nres; k++)
      has_dy[k] = k == 0 && dtype_kind_of(val_type(b.p, b.f, b.i->res + k)->s.t) == DK_FLOAT;
    grad_pair pair;
    const grad_opts o = {.mark = mark, .has_dy = has_dy};
    if (any && has_dy[0] && pass_grad(b.p, b.p->main, &o, &pair)) {
      u32 same = 0;
      for (u32 k = 0; k < b.n; k++) same += gradients_lie(&b, k, &pair, has_dy);
      compared += same, operators += same > 0;
    }
    bed_close(&b);
  }
  // Not followed: take, where its gradient needs data and indices whole, and the window of lrn.
  CHECK_MSG(operators >= 81 && compared >= 231, "%u operators, %u gradients", operators, compared);
}

// ---- costs -----------------------------------------------------------------------------------------------

// The program that a plan would make of a pattern, as text.
static const char *program_of(const bed *b, const law_pattern *x) {
  const i64 extent = b->l->letter[x->letter].extent;
  prog *q = prog_new(b->c);
  u8 axis = axis_add(q->sp, sym_of(b->c, "ways"), WAYS, false);
  builder e = builder_at(q, q->main = func_new(q, sym_of(b->c, "main"), (loc){0}));
  e.g = group_all(q->sp, mesh_add(q->sp, sym_of(b->c, "m"), &axis, 1, 0, NULL));
  const attrs own = attrs_get(b->p, b->i->at);
  const attr over = attr_x(A_over, &axis, 1);
  u32 opd[8];
  type res[OP_RES_MAX];
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 k = 0; k < (pass ? b->l->nres : b->l->nopd); k++) {
      const law_piece *y = pass ? &x->res[k] : &x->opd[k];
      const value v = pass ? b->i->res + k : opd_of(b->f, b->i, k);
      layout_info li = {0};
      if (y->state == PIECE_SPLIT)
        li.split[li.nsplit++] = (lay_split){axis, y->dim, 0, y->unit * extent / WAYS};
      if (y->state == PIECE_PARTIAL) li.part[li.npart++] = (lay_part){axis, y->red};
      const type t = type_tensor(q, &val_type(b->p, b->f, v)->s, layout_of(q->sp, &li), e.g);
      if (pass)
        res[k] = t;
      else
        opd[k] = func_param(q, q->main, t, (sym){0}, ROLE_INPUT);
    }
  const u32 nres = b->l->nres;
  const u32 at = emit(&e, (opcode)b->i->op, attrs_of(q, own.v, own.n), opd, b->l->nopd, res, nres);
  value out[OP_RES_MAX];
  for (u32 k = 0; k < nres; k++) {
    out[k] = emit_res(q, q->main, at) + k;
    if (x->res[k].state != PIECE_PARTIAL) continue;
    const type whole = type_with(q, res[k], (layout){0}, e.g);
    out[k] = emit_res(q, q->main, emit(&e, OP_all_reduce, attrs_of(q, &over, 1), &out[k], 1, &whole, 1));
  }
  func_return(q, q->main, out, nres);
  strbuf text = {.a = b->a};
  ir_print(q, &text);
  prog_free(q);
  return sb_str(&text);
}

static u32 costs_agree(bed *b, heddle_session *s, heddle_machine *hm, const machine *m) {
  pattern_cost *cost = NEWN(b->a, pattern_cost, b->n + 1);
  cost_model *k = cost_model_new(b->c, b->a, m, NULL);
  prog *own = prog_clone(b->p, b->c);
  func_get(own, own->main)->body.v[0].where = (loc){0};
  u32 same = 0;
  if (!CHECK_MSG(cost_patterns(k, own, b->l, b->v, b->n, WAYS, (loc){0}, cost), "%s: %s", name_of(b),
                 diag_render(b->c, b->a)))
    return 0;
  for (u32 i = 0; i < b->n; i++) {
    if (!cost[i].divides) continue;
    const char *text = program_of(b, &b->v[i]);
    heddle_program *p = heddle_program_parse(s, name_of(b), text, strlen(text));
    heddle_result *r = heddle_result_run(p, hm, NULL);
    if (CHECK_MSG(r, "%s, SP%u: %s\n%s", name_of(b), i + 1, heddle_session_messages(s), text))
      same += CHECK_EQ_I64(heddle_result_time_ps(r), cost[i].compute_ps + cost[i].comm_ps);
    heddle_result_free(r);
    heddle_program_free(p);
  }
  prog_free(own);
  return same;
}

// On unlike devices, so that the slowest decides.
TEST(patterns_cost_what_a_simulation_says) {
  static const char spec[] = "1x1 v100 + 1x1 p100 eth=50Gb/s";
  heddle_session *s = heddle_session_new();
  heddle_machine *hm = heddle_machine_load(s, spec);
  u32 same = 0;
  REQUIRE(hm);
  for (u32 op = OP_none + 1; op < OP_COUNT; op++) {
    const op_row *row = op_row_of((opcode)op);
    bed b;
    if (!has_law(op) || row->flags & (OPF_COMM | OPF_META) || !bed_example(&b, op)) continue;
    const machine *m = machine_load(b.c, b.a, spec);
    if (CHECK(m) && b.n) same += costs_agree(&b, s, hm, m);
    bed_close(&b);
  }
  CHECK_MSG(same > 200, "%u", same);
  heddle_session_free(s);
}
