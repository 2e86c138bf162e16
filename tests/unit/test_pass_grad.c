// test_pass_grad.c - gradients by structure: what is saved, recomputed, carried and accumulated. The numbers
// are tested in tests/prop/grad.c.
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"

static const char *const models[] = {
    "mlp-xs:layers=3,hidden=16",
    "gpt2:layers=2,hidden=32,heads=4,vocab=64,positions=16",
    "bert-base:layers=2,hidden=32,heads=4,vocab=64,positions=16",
    "llama2-70b:layers=2,hidden=32,heads=4,kv_heads=2,ffn=48,vocab=64,positions=16",
    "moe-8x125m:layers=2,hidden=32,heads=4,vocab=64,positions=16,experts=4",
    "t5-small:layers=2,hidden=32,heads=4,head_dim=8,vocab=64,positions=16",
    "vit-base:layers=2,hidden=32,heads=4,positions=32",
    "mbart-large:layers=2,hidden=32,heads=4,vocab=64,positions=16",
    "swin-t:layers=7,hidden=16,heads=2,window=2,positions=64",
    "alphafold2:layers=2,hidden=16,heads=2,msa=3,pair=16,positions=6,recycle=2",
    "resnet50:hidden=8,positions=32",
    "vgg16:hidden=4,positions=64,ffn=16",
    "inception-v3:hidden=4,positions=75",
};

static prog *model(ctx *c, const char *name, bool loss) {
  front_opts o = {.batch = 2, .loss = loss};
  return front_family(c, name, &o);
}

static void show(ctx *c) {
  if (!diag_count(c)) return;
  arena *a = arena_new();
  CHECK_MSG(false, "%s", diag_render(c, a));
  arena_free(a);
}

TEST(train_verifies) {
  for (u32 k = 0; k < COUNT_OF(models); k++)
    for (u32 loss = 0; loss < 2; loss++) {
      ctx *c = ctx_new();
      prog *p = model(c, models[k], loss);
      if (CHECK(p != NULL)) {
        optim_opts o = optim_default(k % 2 ? OPTIM_ADAM : OPTIM_SGD);
        CHECK(pass_train(p, &o, true));
        CHECK(ir_verify(p));
        prog_free(p);
      }
      show(c);
      ctx_free(c);
    }
}

static prog *parse(ctx *c, const char *text) {
  prog *p = ir_parse(c, sym_of(c, "test"), text, strlen(text));
  show(c);
  REQUIRE(p != NULL);
  return p;
}

static void golden(prog *p, const char *path) {
  pass_compact(p);
  CHECK(ir_verify(p));
  strbuf b = {.a = ctx_arena(p->c)};
  ir_print(p, &b);
  CHECK_GOLDEN(path, sb_str(&b));
}

// Gradients of function f for all floating-point parameters: inputs GRAD_INPUT, weights `weight`.
static bool grad(prog *p, func f, grad_mark weight, bool split, grad_memo *m, grad_pair *out) {
  const func_info *fi = func_get(p, f);
  u8 *mark = ZNEWN(p->a, u8, fi->nparams);
  bool *has_dy = ZNEWN(p->a, bool, fi->rets.n);
  for (u32 k = 0; k < fi->nparams; k++)
    if (dtype_kind_of(val_type(p, fi, k + 1)->s.t) == DK_FLOAT)
      mark[k] = fi->params.v[k].r == ROLE_WEIGHT ? weight : GRAD_INPUT;
  has_dy[0] = true;
  return pass_grad_shared(m ? m : grad_memo_new(p), f, &(grad_opts){mark, has_dy, split}, out);
}

// main calls fwd and bwd of what was main, so that a print shows all.
static void show_pair(prog *p, const grad_pair *g) {
  func all[] = {g->fwd, g->bwd, g->wgt}, made = func_new(p, sym_of(p->c, "all"), (loc){0});
  builder b = builder_at(p, made);
  value ret[64];
  u32 n = 0;
  for (u32 k = 0; k < 3 && all[k].i; k++) {
    const func_info *f = func_get(p, all[k]);
    u32 opd[64];
    for (u32 i = 0; i < f->nparams; i++) {
      shape s = val_type(p, f, i + 1)->s;
      attr at[] = {attr_t(A_dtype, s.t), attr_v(A_shape, s.dim, s.nd)};
      opd[i] = build(&b, OP_full, NULL, 0, at, 2);
    }
    value y = build_call(&b, all[k], opd, f->nparams);
    func_info *m = func_get(p, made);
    for (u32 i = 0; i < f->nparams; i++)
      if (f->params.v[i].r == ROLE_STATE) m->opds.v[m->body.v[m->body.n - 1].opd + i] |= OPD_DONATED;
    ret[n++] = y;
  }
  func_return(p, made, ret, n);
  p->main = made;
}

static const char *const two_layers =
    "func @main(%x: f32[4,8], %v: f32[8,8] weight, %w: f32[8,8] weight) -> (f32[4,8]) {\n"
    "  %a = call @layer(%x, %v) : f32[4,8]\n"
    "  %b = call @layer(%a, %w) : f32[4,8]\n"
    "  return %b\n}\n"
    "func @layer(%x: f32[4,8], %w: f32[8,8] weight) -> (f32[4,8]) {\n"
    "  %h = matmul %x, %w\n"
    "  %y = tanh %h\n"
    "  return %y\n}\n";

TEST(grad_accumulates) {
  ctx *c = ctx_new();
  prog *p = parse(c, two_layers);
  grad_pair g;
  CHECK(grad(p, p->main, GRAD_ACC, false, NULL, &g));
  show_pair(p, &g);
  golden(p, "pass/accumulate.heddle");
  prog_free(p);
  ctx_free(c);
}

TEST(grad_splits) {
  ctx *c = ctx_new();
  prog *p = parse(c, two_layers);
  grad_pair g;
  CHECK(grad(p, p->main, GRAD_PLAIN, true, NULL, &g));
  CHECK_EQ_I64(g.ncarry, func_get(p, g.bwd)->rets.n - g.ndx);
  show_pair(p, &g);
  golden(p, "pass/split.heddle");
  prog_free(p);
  ctx_free(c);
}

// Every layer again: the inputs of the calls are kept, nothing else.
TEST(grad_recomputes) {
  ctx *c = ctx_new();
  prog *p = parse(c, two_layers);
  for (u32 k = 0; k < 2; k++) func_get(p, p->main)->body.v[k].flags |= INSTR_RECOMPUTE;
  grad_pair g;
  CHECK(grad(p, p->main, GRAD_PLAIN, false, NULL, &g));
  CHECK_EQ_I64(g.nsaved, 1);
  show_pair(p, &g);
  golden(p, "pass/recompute.heddle");
  prog_free(p);
  ctx_free(c);
}

TEST(grad_shares) {
  ctx *c = ctx_new();
  prog *p = parse(c, two_layers);
  grad_memo *m = grad_memo_new(p);
  grad_pair g, h;
  CHECK(grad(p, p->main, GRAD_ACC, false, m, &g));
  u32 n = p->funcs.n;
  CHECK(grad(p, p->main, GRAD_ACC, false, m, &h));
  CHECK_EQ_I64(p->funcs.n, n);
  CHECK_EQ_I64(h.bwd.i, g.bwd.i);
  CHECK(grad(p, func_find(p, sym_of(c, "layer")), GRAD_ACC, false, m, &h)); // as the second call has it
  CHECK_EQ_I64(p->funcs.n, n);
  prog_free(p);
  ctx_free(c);
}

// Saved is what cannot be had otherwise: no parameter, no view, no mask, nothing twice.
TEST(grad_saves_little) {
  ctx *c = ctx_new();
  prog *p = parse(c, "func @main(%x: f32[4,8], %w: f32[8,8] weight) -> (f32[8,4]) {\n"
                     "  %h = matmul %x, %w\n"
                     "  %v = reshape %h {shape=[8,4]}\n"
                     "  %s = full {shape=[4,4], dtype=f32, value=2}\n"
                     "  %t = trilu %s\n"
                     "  %p = matmul %v, %t\n"
                     "  %q = mul %v, %p\n"
                     "  %r = exp %q\n"
                     "  return %r\n}\n");
  grad_pair g;
  CHECK(grad(p, p->main, GRAD_PLAIN, false, NULL, &g));
  CHECK_EQ_I64(g.nsaved, 3); // h, p, r
  CHECK_EQ_I64(g.nneed, 2);
  const func_info *b = func_get(p, g.bwd);
  for (u32 k = 0; k < b->body.n; k++) {
    const instr *in = &b->body.v[k];
    CHECK(in->flags & INSTR_BACKWARD && in->origin);
    bool again = in->op == OP_reshape || in->op == OP_full || in->op == OP_trilu;
    CHECK(again || !(in->flags & INSTR_RECOMPUTE));
  }
  prog_free(p);
  ctx_free(c);
}

TEST(grad_refuses) {
  static const char *const texts[] = {
      "func @main(%x: f32[4]) -> (f32[4]) {\n  %y = exp %x\n  %z = tanh_dx %y, %y\n  return %z\n}\n",
      "func @main(%x: f32[4], %i: i64[4]) -> (f32[4]) {\n"
      "  %y = put %x, %i, %x {axis=0, scatter=\"mul\"}\n  return %y\n}\n",
      "func @main(%x: f32[2,4], %i: i64[2,1]) -> (f32[2]) {\n"
      "  %y = gather_nd %x, %i {batch_dims=1}\n  return %y\n}\n",
      "func @main(%x: f32[4,3], %l: i64[4], %w: f32[3]) -> (f32[]) {\n  %y = nll %x, %l, %w\n  return "
      "%y\n}\n",
      "func @main(%x: f32[4]) -> (f32[4]) {\n"
      "  %t = pack %x, %x\n  %y = call @f(%t) : f32[4]\n  return %y\n}\n"
      "func @f(%t: (f32[4], f32[4])) -> (f32[4]) {\n  %a, %b = unpack %t\n  return %b\n}\n",
  };
  strbuf b = {0};
  arena *a = arena_new();
  b.a = a;
  for (u32 k = 0; k < COUNT_OF(texts); k++) {
    ctx *c = ctx_new();
    prog *p = parse(c, texts[k]);
    u32 n = p->funcs.n;
    grad_pair g;
    CHECK(!grad(p, p->main, GRAD_PLAIN, false, NULL, &g));
    CHECK_EQ_I64(p->funcs.n, n);
    sb_put(&b, diag_render(c, a));
    prog_free(p);
    ctx_free(c);
  }
  CHECK_GOLDEN("pass/refused.txt", sb_str(&b));
  arena_free(a);
}

// What a gradient cannot pass, or comes to nothing, is not asked for one.
TEST(grad_stops) {
  ctx *c = ctx_new();
  prog *p = parse(c, "func @main(%x: f32[4] , %w: f32[4] weight, %i: i64[4]) -> (f32[4]) {\n"
                     "  %a = tan %w\n"
                     "  %f = floor %a\n" // constant almost everywhere
                     "  %j = cast %x {dtype=i64}\n"
                     "  %k = cast %j {dtype=f32}\n"
                     "  %y = mul %x, %f\n"
                     "  %z = add %y, %k\n"
                     "  return %z\n}\n");
  grad_pair g;
  CHECK(grad(p, p->main, GRAD_PLAIN, false, NULL, &g));
  const func_info *b = func_get(p, g.bwd);
  CHECK_EQ_I64(g.ndx, 1);
  CHECK_EQ_I64(g.nacc, 0);
  CHECK_EQ_I64(b->body.n, 1); // dy f, and nothing for w
  show(c);
  prog_free(p);
  ctx_free(c);
}

// A callee has accumulators for the weights whose gradients it makes, in one part and in two.
TEST(grad_no_idle_accumulators) {
  for (u32 split = 0; split < 2; split++) {
    ctx *c = ctx_new();
    prog *p = parse(
        c, "func @f(%x: f32[4,4], %w: f32[4,4] weight, %v: f32[4,4] weight) -> (f32[4,4], f32[4,4]) {\n"
           "  %y = matmul %x, %w\n  %z = matmul %x, %v\n  return %y, %z\n}\n"
           "func @main(%x: f32[4,4], %w: f32[4,4] weight, %v: f32[4,4] weight) -> (f32[4,4], f32[4,4]) {\n"
           "  %y, %z = call @f(%x, %w, %v)\n  return %y, %z\n}\n");
    grad_pair g;
    u8 mark[] = {GRAD_INPUT, GRAD_ACC, GRAD_ACC};
    bool has_dy[] = {true, false};
    CHECK(pass_grad(p, p->main, &(grad_opts){.mark = mark, .has_dy = has_dy, .split = split}, &g));
    REQUIRE(g.nacc == 1 && g.ndx == 1);
    CHECK_EQ_I64(g.acc[0], 1);
    const func_info *b = func_get(p, split ? g.wgt : g.bwd);
    u32 states = 0;
    for (u32 k = 0; k < b->nparams; k++) states += b->params.v[k].r == ROLE_STATE;
    CHECK_EQ_I64(states, 1);
    CHECK_EQ_I64(b->rets.n, split ? 1 : 2);
    show(c);
    prog_free(p);
    ctx_free(c);
  }
}

TEST(loss) {
  static const struct {
    const char *text, *ops;
  } rows[] = {
      {"func @main(%x: f32[4,8]) -> (f32[4,3]) {\n  %w = full {shape=[8,3], dtype=f32}\n  %y = matmul %x, "
       "%w\n"
       "  %p = softmax %y\n  return %p\n}\n",
       "full matmul cross_entropy"},
      {"func @main(%x: f16[4,8]) -> (f16[4,3]) {\n  %w = full {shape=[8,3], dtype=f16}\n  %y = matmul %x, "
       "%w\n"
       "  return %y\n}\n",
       "full matmul cast cross_entropy"},
      {"func @main(%x: f32[4,8]) -> (f32[4,8]) {\n  %y = exp %x\n  return %y\n}\n",
       "exp sub mul reduce_mean"},
      {"func @main(%x: f32[8]) -> (f32[8], f32[8]) {\n  %y = exp %x\n  %z = neg %x\n  return %y, %z\n}\n",
       "exp neg sub mul reduce_mean"},
      {"func @main(%x: f32[8]) -> (f32[]) {\n  %y = reduce_sum %x {keepdims=0}\n  return %y\n}\n",
       "reduce_sum"},
      // Scores of an image of one pixel are those of its channels; of one class there are none.
      {"func @main(%x: f32[4,8,2,2]) -> (f32[4,3,1,1]) {\n  %w = full {shape=[3,8,2,2], dtype=f32}\n"
       "  %y = conv %x, %w\n  %p = softmax %y {axis=1}\n  return %p\n}\n",
       "full conv reshape cross_entropy"},
      {"func @main(%x: f32[4,8]) -> (f32[4,1]) {\n  %w = full {shape=[8,1], dtype=f32}\n  %y = matmul %x, "
       "%w\n  return %y\n}\n",
       "full matmul sub mul reduce_mean"},
  };
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    ctx *c = ctx_new();
    prog *p = parse(c, rows[k].text);
    REQUIRE(p);
    CHECK(pass_loss(p) && ir_verify(p));
    const func_info *f = func_get(p, p->main);
    strbuf b = {.a = ctx_arena(c)};
    for (u32 i = 0; i < f->body.n; i++) sb_fmt(&b, "%s%s", i ? " " : "", op_row_of(f->body.v[i].op)->name);
    CHECK_STR(sb_str(&b), rows[k].ops);
    CHECK_EQ_I64(val_type(p, f, f->rets.v[0])->s.nd, 0);
    prog_free(p);
    ctx_free(c);
  }
  ctx *c = ctx_new();
  prog *p = parse(c, "func @main(%x: i64[8]) -> (i64[8]) {\n  return %x\n}\n");
  CHECK(!pass_loss(p) && diag_errors(c) == 1);
  prog_free(p);
  ctx_free(c);
}
