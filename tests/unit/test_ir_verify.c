// test_ir_verify.c - every invariant is broken once, in a program that is right otherwise, and the verifier
// says which.
#include "infer/infer.h"
#include "test.h"

// One of everything: two groups, a call on a group, coordinates in time, donation, a tuple, a constant, a
// root.
static const char right[] =
    "mesh @m [pp=2, tp=2]\n"
    "time [mb=2]\n"
    "stream net\n"
    "func @layer(%x: f32[8{mb},4], %w: f32[4,4{tp}], %acc: f32[4,4{tp}]+mb) -> (f32[8{mb},4], "
    "f32[4,4{tp}]+mb) {\n"
    "  %h = matmul %x, %w : f32[8{mb},4{tp}]\n"
    "  %y = all_gather %h over tp !net : f32[8{mb},4]\n"
    "  %g = einsum %x, %h {law=\"bi,bo->io\"} : f32[4,4{tp}]+mb\n"
    "  %sum = add !%acc, !%g : f32[4,4{tp}]+mb\n"
    "  return %y, %sum\n"
    "}\n"
    "func @main(%x: f32[8,4] @m[pp=0], %w: f32[4,4{tp}] @m[pp=0] weight, %k: f32[2] @m[pp=1] const = [1, 2]) "
    "-> () {\n"
    "  %zero = full {shape=[4, 4], dtype=f32} @m[pp=0] : f32[4,4{tp}]+mb\n"
    "  %x0 = part %x {at=0} over mb @m[pp=0] : f32[8{mb},4]\n"
    "  %x1 = part %x {at=1} over mb @m[pp=0] : f32[8{mb},4]\n"
    "  %y0, %g0 = call @layer(%x0, %w, !%zero) @m[pp=0] @mb=0 ^1 : f32[8{mb},4], f32[4,4{tp}]+mb\n"
    "  %y1, %g1 = call @layer(%x1, %w, !%g0) @m[pp=0] @mb=1 ^1 : f32[8{mb},4], f32[4,4{tp}]+mb\n"
    "  %y = join %y0, %y1 over mb @m[pp=0] : f32[8,4]\n"
    "  %g = join %g1 over mb @m[pp=0] : f32[4,4{tp}]\n"
    "  %s = send %y after %g @m[pp=0] : f32[8,4] @m[pp=1]\n"
    "  %c = constant {shape=[2], dtype=f32, data=[3, 4]} @m[pp=1] : f32[2]\n"
    "  %t = pack %s, %c @m[pp=1] : (f32[8,4], f32[2])\n"
    "  %u, %v = unpack %t @m[pp=1] : f32[8,4], f32[2]\n"
    "  %r = gather_to %w over tp @m[pp=0] : f32[4,4] @m[pp=0,tp=0]\n"
    "  return\n"
    "}\n";

enum { FULL, PART0, PART1, CALL0, CALL1, JOIN_Y, JOIN_G, SEND, CONST, PACK, UNPACK, GATHER }; // in main
enum { MATMUL, ALL_GATHER, EINSUM, ADD };                                                     // in layer

typedef struct {
  ctx *c;
  prog *p;
  func_info *layer, *main;
} subject;

static subject fresh(void) {
  subject s = {.c = ctx_new()};
  s.p = ir_parse(s.c, sym_of(s.c, "right"), right, sizeof right - 1);
  if (!s.p) CHECK_STR(diag_render(s.c, ctx_arena(s.c)), "");
  REQUIRE(s.p);
  s.layer = s.p->funcs.v[1];
  s.main = s.p->funcs.v[2];
  return s;
}

// The program must be refused, and this must be among the reasons.
static void refused(subject *s, const char *message) {
  CHECK_MSG(!ir_verify(s->p), "accepted: %s", message);
  bool said = false;
  for (u32 k = 0; k < diag_count(s->c); k++) said |= strcmp(diag_get(s->c, k).message, message) == 0;
  CHECK_MSG(said, "not said: %s\n%s", message, diag_render(s->c, ctx_arena(s->c)));
  prog_free(s->p);
  ctx_free(s->c);
}

#define BREAK(change, message)                                                                               \
  do {                                                                                                       \
    subject s = fresh();                                                                                     \
    prog *p = s.p;                                                                                           \
    func_info *f = s.main, *g = s.layer;                                                                     \
    instr *i = f->body.v, *j = g->body.v;                                                                    \
    (void)p, (void)f, (void)g, (void)i, (void)j;                                                             \
    change;                                                                                                  \
    refused(&s, message);                                                                                    \
  } while (0)

static type retype(subject *s, func_info *f, value v, layout l, group g) {
  return f->values.v[v].ty = type_with(s->p, f->values.v[v].ty, l, g);
}

TEST(ir_verify_records) {
  subject as_is = fresh();
  CHECK(ir_verify(as_is.p) && infer_verify(as_is.p) && diag_count(as_is.c) == 0);
  prog_free(as_is.p);
  ctx_free(as_is.c);
  BREAK(i[SEND].op = 0, "there is no operator 0");
  BREAK(i[SEND].op = OP_COUNT, arena_printf(ctx_arena(s.c), "there is no operator %u", OP_COUNT));
  BREAK(i[SEND].opd = f->opds.n, "instruction 8 of @main: operands out of range");
  BREAK(i[SEND].res = f->values.n, "send: results out of range");
  BREAK(i[SEND].res = 1, "send: results out of range");
  BREAK(i[SEND].res--, "%g is the result of two instructions");
  BREAK(i[SEND].strm = 2, "send: attributes, stream, coordinates or group that do not exist");
  BREAK(i[SEND].at.i = p->attrsets.n, "send: attributes, stream, coordinates or group that do not exist");
  BREAK(i[SEND].g.i = 99, "send: attributes, stream, coordinates or group that do not exist");
  BREAK(i[SEND].coord = p->points.n, "send: attributes, stream, coordinates or group that do not exist");
  BREAK(i[SEND].origin = 2, "send: origin 2 of 1");
  BREAK(i[SEND].callee.i = 1, "send: a call needs a callee, nothing else has one");
  BREAK(i[CALL0].callee.i = 0, "call: a call needs a callee, nothing else has one");
  BREAK(i[CALL0].callee.i = 3, "call: a call needs a callee, nothing else has one");
  BREAK(f->values.v[i[SEND].res].ty.i = 0, "%s has no type");
  BREAK(f->params.n--, "@main: 3 parameters, 2 descriptions");
  BREAK(f->values.v[1].def = 1, "@main: parameter 1 is a result, or has no type");
  BREAK(g->rets.v[0] = 99, "@layer returns value 99, which does not exist");
  BREAK(p->main.i = 3, "function 3 is main and does not exist");
}

TEST(ir_verify_order_and_donation) {
  BREAK(f->opds.v[i[CALL0].opd] = i[JOIN_Y].res, "call uses %y before its definition");
  BREAK(f->opds.v[i[CALL0].opd] = i[CALL0].res, "call uses %y0 before its definition");
  BREAK(f->opds.v[i[CALL0].opd] = 99, "call uses value 99 before its definition");
  BREAK(g->rets.v[0] = 0, "@layer returns value 0, which does not exist");
  BREAK(value_info v = f->values.v[1]; *vec_push(p->a, &f->values) = v;
        f->opds.v[i[CALL0].opd] = f->values.n - 1,
        "call uses %x before its definition"); // a value that nothing defines
  BREAK(f->opds.v[i[SEND].opd] |= OPD_AFTER;
        f->opds.v[i[SEND].opd + 1] &= OPD_VALUE, "send: an operand follows `after`");
  BREAK(f->opds.v[i[SEND].opd + 1] |= OPD_DONATED, "send: `after` cannot donate %g");
  BREAK(f->opds.v[i[JOIN_Y].opd] |= OPD_DONATED;
        f->opds.v[i[JOIN_Y].opd + 1] = f->opds.v[i[JOIN_Y].opd], "join: %y0 is donated and used as well");
  BREAK(f->opds.v[i[CALL0].opd] |= OPD_DONATED;
        f->opds.v[i[CALL1].opd] = f->opds.v[i[CALL0].opd], "call uses %x0, which was donated");
  BREAK(f->opds.v[i[CALL0].opd + 2] &= OPD_VALUE, "@layer takes argument 3 over: the call must donate it");
  BREAK(g->rets.v[1] = 3, "@layer returns %acc, which was donated");
  subject after = fresh(); // being ordered after a donated value is no use of it
  after.main->opds.v[after.main->body.v[SEND].opd + 1] = (after.main->body.v[CALL0].res + 1) | OPD_AFTER;
  CHECK_MSG(ir_verify(after.p), "%s", diag_render(after.c, ctx_arena(after.c)));
  prog_free(after.p);
  ctx_free(after.c);
}

TEST(ir_verify_shapes) {
  BREAK(i[SEND].nopd = 0, "send: 0 operands given, it takes 1");
  BREAK(j[ADD].nopd = 1, "add: 1 operand given, it takes 2");
  BREAK(j[MATMUL].op = OP_topk, "topk: 2 operands given, it takes 1");
  BREAK(i[CALL1].nopd = 2, "@layer: 2 arguments given, it takes 3");
  BREAK(i[CALL1].nres = 1, "@layer: 1 result declared, it has 2");
  BREAK(f->opds.v[i[CALL1].opd + 1] = f->opds.v[i[CALL1].opd],
        "@layer: argument 2 is f32[8{mb},4] @m[pp=0], the parameter is f32[4,4{tp}] @m[pp=0]");
  BREAK(g->rets.v[0] = j[MATMUL].res,
        "@layer: result 1 is declared f32[8{mb},4] @m[pp=0], it is f32[8{mb},4{tp}] @m[pp=0]");
  BREAK(g->values.v[j[EINSUM].res].ty = g->values.v[j[MATMUL].res].ty,
        "einsum: result 1 is declared f32[8{mb},4{tp}], it is f32[4,4]");
  BREAK(f->opds.v[i[SEND].opd] = i[PACK].res; i[SEND].op = OP_relu, "relu uses %t before its definition");
  BREAK(f->opds.v[i[GATHER].opd] = i[PACK].res; i[GATHER].op = OP_relu, "relu: operand 1 is a tuple");
  BREAK(i[PACK].nopd = 1, "pack: 1 value and (f32[8,4] @m[pp=1], f32[2] @m[pp=1])");
  BREAK(f->values.v[i[UNPACK].res].ty = f->values.v[1].ty,
        "unpack: value 1 is f32[8,4] @m[pp=0], the tuple has f32[8,4] @m[pp=1]");
  BREAK(f->params.v[0].data = 1, "%x: the elements are f32[2], the type is f32[8,4]");
  BREAK(f->params.v[0].data = 9, "%x: elements 9 do not exist");
  BREAK(p->data.v[2].dim[0] = 3, "constant: the elements are f32[3], the type is f32[2]");
}

TEST(ir_verify_groups) {
  BREAK(retype(&s, g, j[EINSUM].res, val_type(p, g, j[EINSUM].res)->lay, i[SEND].g),
        "einsum: result 1 is f32[4,4{tp}]+mb @m[pp=0], the instruction runs on the function's group");
  BREAK(i[CONST].g = i[SEND].g, "constant: result 1 is f32[2] @m[pp=1], the instruction runs on @m[pp=0]");
  BREAK(i[SEND].g = i[CONST].g, "send: operand 1 is f32[8,4] @m[pp=0], it must be on @m[pp=1]");
  BREAK(retype(&s, f, i[SEND].res, (layout){0}, i[SEND].g), "send: from @m[pp=0] to itself");
  BREAK(i[CALL0].g = i[CONST].g,
        "@layer: argument 1 is f32[8{mb},4] @m[pp=0], the parameter is f32[8{mb},4] @m[pp=1]");
  BREAK(retype(&s, f, i[GATHER].res, (layout){0}, i[SEND].g),
        "gather_to: result 1 is f32[4,4] @m[pp=0], it must be on @m[pp=0,tp=0]");
  BREAK(i[GATHER].g.i = 0, "gather_to: a root needs a group that is named: write it behind the operands");
}

TEST(ir_verify_layouts) {
  u8 mb = 3, tp = 2;
  BREAK(layout l = layout_with_split(p->sp, (layout){0}, tp, 0, 3);
        retype(&s, f, 1, l, i[SEND].g),
        "part: f32[8{tp:3},4] @m[pp=0] to f32[8{mb},4] @m[pp=0]: only mb may change");
  BREAK(layout l = layout_with_split(p->sp, (layout){0}, tp, 0, 3);
        retype(&s, f, i[UNPACK].res, l, i[CONST].g),
        "unpack: value 1 is f32[8{tp:3},4] @m[pp=1], the tuple has f32[8,4] @m[pp=1]");
  BREAK(layout l = layout_with_split(p->sp, (layout){0}, 1, 0, 1);
        retype(&s, f, i[CONST].res, l, i[CONST].g),
        "pack: value 2 is f32[2{pp}] @m[pp=1], the tuple has f32[2] @m[pp=1]");
  BREAK(layout l = layout_with_split(p->sp, (layout){0}, 1, 0, 1);
        retype(&s, f, 3, l, i[CONST].g), "axis 'pp' is not free in @m[pp=1]");
  BREAK(layout l = layout_with_part(p->sp, val_type(p, g, j[ALL_GATHER].res)->lay, tp, RED_SUM);
        retype(&s, g, j[ALL_GATHER].res, l, (group){0}),
        "all_gather: result 1 is f32[8{mb},4]+tp, it must be replicated over tp");
  BREAK(layout l = layout_without(p->sp, val_type(p, g, j[ALL_GATHER].res)->lay, mb);
        retype(&s, g, j[ALL_GATHER].res, l, (group){0}),
        "all_gather: f32[8{mb},4{tp}] to f32[8,4]: only the named axes may change");
  BREAK(layout l = layout_with_part(p->sp, (layout){0}, tp, RED_SUM);
        retype(&s, f, i[SEND].res, l, i[CONST].g),
        "send: operand f32[8,4] @m[pp=0], result f32[8,4]+tp "
        "@m[pp=1]: partial sums and coordinates in time must stay");
  BREAK(layout l = layout_with_split(p->sp, (layout){0}, tp, 1, 2);
        retype(&s, f, i[JOIN_Y].res, l, i[SEND].g),
        "join: operands are f32[8{mb},4] @m[pp=0], the result f32[8,4{tp}] @m[pp=0]");
}

TEST(ir_verify_time) {
  BREAK(i[CALL1].coord = i[CALL0].coord, "call: %x1 lies at mb=1, the instruction at mb=0");
  BREAK(i[CALL1].coord = 0, "call: %x1 lies at mb=1, the instruction at no coordinate of mb");
  BREAK(f->opds.v[i[JOIN_Y].opd] = f->opds.v[i[JOIN_Y].opd + 1], "join: operand 1 is at mb=1, not 0");
  BREAK(i[JOIN_Y].nopd = 1, "join: 1 operand, the axes have 2 coordinates");
  BREAK(i[PART0].coord = i[CALL1].coord, "part: coordinate 0, the instruction is at 1");
  BREAK(p->points.v[1].at[3] = 2, "call: a coordinate outside its temporal axis");
  BREAK(p->fixed.v[1] |= 4, "call: a coordinate outside its temporal axis");
  BREAK(f->opds.v[i[PART1].opd] = i[PART0].res, "part: %x0 is at mb=0 already");
}

TEST(ir_verify_calls) {
  BREAK(j[MATMUL].op = OP_call; j[MATMUL].callee.i = 1; (void)0, "@layer: 2 arguments given, it takes 3");
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  shape s = {.t = DT_F32};
  type t = type_tensor(p, &s, (layout){0}, (group){0});
  func next = {0};
  for (u32 k = 0; k < 200; k++) { // deeper than interpreters should recurse
    func f = func_new(p, sym_fmt(c, "f%u", k), (loc){0});
    value x = func_param(p, f, t, (sym){0}, ROLE_INPUT);
    builder b = builder_at(p, f);
    if (next.i) x = build_call(&b, next, &x, 1);
    func_return(p, f, &x, 1);
    next = f;
  }
  p->main = next;
  CHECK(!ir_verify(p));
  CHECK_STR(diag_get(c, 0).message, "calls nested deeper than 128");
  diag_clear(c);
  p->main.i = 100;
  for (u32 k = 101; k < p->funcs.n; k++) p->funcs.v[k]->body.n = 0, p->funcs.v[k]->rets.v[0] = 1;
  CHECK(ir_verify(p));
  builder b = builder_at(p, (func){1}); // the first calls the last: a ring
  b.f.i = 1;
  value x = 1;
  REQUIRE(build_call(&b, (func){100}, &x, 1));
  CHECK(!ir_verify(p));
  CHECK_STR(diag_get(c, 0).message, "@f0 calls itself, directly or through others");
  prog_free(p);
  ctx_free(c);
}

// The cost of an instruction grows with its operands, not with their square: 1.6e11 comparisons took minutes.
TEST(ir_verify_many_donated) {
  enum { MANY = 400000 };
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  shape s = {.t = DT_F32};
  type t = type_tensor(p, &s, (layout){0}, (group){0});
  func f = func_new(p, sym_of(c, "main"), (loc){0});
  for (u32 k = 0; k < MANY; k++) func_param(p, f, t, (sym){0}, ROLE_INPUT);
  type *elem = NEWN(p->a, type, MANY);
  u32 *opd = NEWN(p->a, u32, MANY);
  for (u32 k = 0; k < MANY; k++) elem[k] = t, opd[k] = (k + 1) | OPD_DONATED;
  type all = type_tuple(p, elem, MANY);
  builder b = builder_at(p, f);
  emit(&b, OP_pack, (attrset){0}, opd, MANY, &all, 1);
  p->main = f;
  CHECK(ir_verify(p));
  func_info *fi = func_get(p, f);
  fi->opds.v[0] = MANY; // the first is the last: donated there, used here
  CHECK(!ir_verify(p));
  CHECK_STR(diag_get(c, 0).message, "pack: value 400000 is donated and used as well");
  prog_free(p);
  ctx_free(c);
}

// Checking a program again adds nothing to it: calls with large tuples are bound to their group once.
TEST(ir_verify_keeps_nothing) {
  ctx *c = ctx_new();
  strbuf b = {.a = ctx_arena(c)};
  sb_put(&b, "mesh @m [d=2]\nfunc @f(%t: (f32[2]");
  for (u32 k = 1; k < 100; k++) sb_put(&b, ", f32[2]");
  sb_put(&b, ")) -> () {\n  return\n}\nfunc @main(%t: (f32[2] @m");
  for (u32 k = 1; k < 100; k++) sb_put(&b, ", f32[2] @m");
  sb_put(&b, ")) -> () {\n  call @f(%t) @m\n  return\n}\n");
  prog *p = ir_parse(c, sym_of(c, "text"), b.v, b.n);
  CHECK_MSG(p != NULL, "%s", diag_render(c, ctx_arena(c)));
  REQUIRE(p);
  size_t before = arena_bytes(p->a);
  for (u32 k = 0; k < 1000; k++) CHECK(ir_verify(p));
  CHECK_EQ_I64((i64)arena_bytes(p->a), (i64)before);
  prog_free(p);
  ctx_free(c);
}
