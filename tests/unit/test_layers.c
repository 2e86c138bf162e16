// test_layers.c - which layer of the model instructions and weights are of, as names, order and origins say.
#include "ir/ir.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} bed;

// A function of one weight, its gradient of none, one that joins two weights and the body of main.
static bed bed_new(const char *meshes, const char *params, const char *body, const char *result) {
  bed b = {ctx_new(), arena_new(), NULL};
  const char *text = arena_printf(
      b.a,
      "%sfunc @f(%%x: f32[4], %%w: f32[4] weight) -> (f32[4]) {\n  %%y = mul %%x, %%w : f32[4]\n  return "
      "%%y\n}\n"
      "func @g(%%x: f32[4]) -> (f32[4]) {\n  %%y = neg %%x : f32[4]\n  return %%y\n}\n"
      "func @h(%%x: f32[4], %%w: f32[4] weight, %%u: f32[4] weight) -> (f32[4]) {\n  %%y = mul %%x, %%w : "
      "f32[4]\n"
      "  %%z = mul %%y, %%u : f32[4]\n  return %%z\n}\n"
      "func @sgd(%%w: f32[4], %%u: f32[4], %%dw: f32[4], %%du: f32[4]) -> (f32[4], f32[4]) {\n"
      "  %%w1 = sgd !%%w, %%dw : f32[4]\n  %%u1 = sgd !%%u, %%du : f32[4]\n  return %%w1, %%u1\n}\n"
      "func @main%s(%%x: f32[4]%s) -> (f32[4]) {\n%s  return %s\n}\n",
      meshes, *meshes ? " on @m" : "", params, body, result);
  b.p = ir_parse(b.c, sym_of(b.c, "program"), text, strlen(text));
  CHECK_MSG(b.p, "%s\n%s", diag_render(b.c, b.a), text);
  REQUIRE(b.p);
  return b;
}

static void bed_free(bed *b) {
  prog_free(b->p);
  arena_free(b->a), ctx_free(b->c);
}

static const char *numbers(arena *a, const u32 *v, u32 n) {
  strbuf s = {.a = a};
  for (u32 k = 0; k < n; k++) sb_fmt(&s, "%s%u", k ? " " : "", v[k]);
  return sb_str(&s);
}

#define WEIGHT(name)          ", %" name ": f32[4] weight"
#define CALL(res, of, weight) "  %" res " = call @f(%" of ", %" weight ") : f32[4]\n"

// By instruction of main, and by its parameters: numbers + 1.
static void says(const char *meshes, const char *params, const char *body, const char *result,
                 const char *calls, const char *weights) {
  bed b = bed_new(meshes, params, body, result);
  const func_info *m = func_get(b.p, b.p->main);
  const u32 *call = ir_layer_of_calls(b.a, b.p);
  CHECK_STR(numbers(b.a, call, m->body.n), calls);
  CHECK_STR(numbers(b.a, ir_layer_of_params(b.a, b.p, call), m->nparams), weights);
  bed_free(&b);
}

TEST(layers_are_numbered_as_weights_are_called) {
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w") WEIGHT("h.10.w"),
       CALL("a", "x", "h.2.w") CALL("b", "a", "h.0.w") CALL("c", "b", "h.10.w"), "%c", "3 1 11", "0 3 1 11");
  // the first column in which they differ
  says("", WEIGHT("s.7.h.1.w") WEIGHT("s.7.h.0.w"), CALL("a", "x", "s.7.h.1.w") CALL("b", "a", "s.7.h.0.w"),
       "%b", "2 1", "0 2 1");
  says("", WEIGHT("\"s/7/h/1/w\"") WEIGHT("\"s/7/h/0/w\""),
       CALL("a", "x", "\"s/7/h/1/w\"") CALL("b", "a", "\"s/7/h/0/w\""), "%b", "2 1", "0 2 1");
  // one call says it alone
  says("", WEIGHT("h.5.w"), CALL("a", "x", "h.5.w"), "%a", "6", "0 6");
  says("", WEIGHT("w"), CALL("a", "x", "w"), "%a", "0", "0 0");
  says("", WEIGHT("h.5x.w") WEIGHT("h.4x.w"), CALL("a", "x", "h.5x.w") CALL("b", "a", "h.4x.w"), "%b", "1 2",
       "0 1 2");
  // an update is no layer
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w") WEIGHT("h.9.w"),
       CALL("a", "x", "h.2.w") CALL("b", "a", "h.0.w") "  %c = call @f(%b, %h.9.w) update : f32[4]\n", "%c",
       "3 1 0", "0 3 1 0");
  // no numbers: letters between, more than nine digits. So they are counted
  says("", WEIGHT("h5.w") WEIGHT("h4.w"), CALL("a", "x", "h5.w") CALL("b", "a", "h4.w"), "%b", "1 2",
       "0 1 2");
  says("", WEIGHT("h.5000000000.w") WEIGHT("h.4000000000.w"),
       CALL("a", "x", "h.5000000000.w") CALL("b", "a", "h.4000000000.w"), "%b", "1 2", "0 1 2");
  says("", WEIGHT("h.999999999.w") WEIGHT("h.4.w"), CALL("a", "x", "h.999999999.w") CALL("b", "a", "h.4.w"),
       "%b", "1000000000 5", "0 1000000000 5");
}

#define BOTH(res, of, w, u) "  %" res " = call @h(%" of ", %" w ", %" u ") : f32[4]\n"
TEST(layers_whose_weights_do_not_agree_are_counted) {
  // what all calls take says nothing
  says("", WEIGHT("h.4.w") WEIGHT("h.3.w") WEIGHT("e.9.w"),
       BOTH("a", "x", "h.4.w", "e.9.w") BOTH("b", "a", "h.3.w", "e.9.w"), "%b", "5 4", "0 5 4 0");
  // of one call it does: both must agree
  says("", WEIGHT("h.4.w") WEIGHT("h.4.u"), BOTH("a", "x", "h.4.w", "h.4.u"), "%a", "5", "0 5 5");
  says("", WEIGHT("h.4.w") WEIGHT("e.9.w"), BOTH("a", "x", "h.4.w", "e.9.w"), "%a", "0", "0 0 0");
  says("", WEIGHT("h.4.w") WEIGHT("h.3.w") WEIGHT("h.5.w"),
       BOTH("a", "x", "h.4.w", "h.3.w") BOTH("b", "a", "h.5.w", "h.5.w"), "%b", "1 2", "0 1 1 2");
  // taken twice by one call is not taken by all
  says("", WEIGHT("h.4.w") WEIGHT("h.3.w"), BOTH("a", "x", "h.4.w", "h.4.w") BOTH("b", "a", "h.3.w", "h.3.w"),
       "%b", "5 4", "0 5 4");
  // all alike: no column tells them apart
  says("", WEIGHT("h.4.w") WEIGHT("h.4.u"), CALL("a", "x", "h.4.w") CALL("b", "a", "h.4.u"), "%b", "1 2",
       "0 1 2");
  // a plan's calls, and those of a backward, are not counted
  says("mesh @m [d=1]\n", WEIGHT("w") WEIGHT("u"), CALL("a", "x", "w") CALL("b", "a", "u"), "%b", "0 0",
       "0 0 0");
  says("", "", "  %a = call @g(%x) backward : f32[4]\n  %b = call @g(%a) backward : f32[4]\n", "%b", "0 0",
       "0");
  // inputs have no number that counts, though they have names
  says("", ", %h.8.x: f32[4]" WEIGHT("h.4.w") WEIGHT("h.3.w"),
       CALL("a", "h.8.x", "h.4.w") CALL("b", "a", "h.3.w"), "%b", "5 4", "0 0 5 4");
}

TEST(layers_of_gradients_follow_from_origins) {
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w"),
       "  %a = call @f(%x, %h.2.w) ^7 : f32[4]\n  %b = call @f(%a, %h.0.w) ^8 : f32[4]\n"
       "  %c = call @g(%b) backward ^8 : f32[4]\n  %d = call @g(%c) backward ^7 : f32[4]\n  %e = call @g(%d) "
       "backward ^9 : f32[4]\n"
       "  %k = neg %e ^7 : f32[4]\n",
       "%k", "3 1 1 3 0 0", "0 3 1");
  // of one origin the first counts
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w"),
       "  %a = call @f(%x, %h.2.w) ^7 : f32[4]\n  %b = call @f(%a, %h.0.w) ^7 : f32[4]\n", "%b", "3 3",
       "0 3 3");
}

TEST(layers_of_weights_that_two_take) {
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w") WEIGHT("e.1.w"),
       BOTH("a", "x", "h.2.w", "e.1.w") BOTH("b", "a", "h.0.w", "e.1.w") "  %c = call @g(%b) : f32[4]\n",
       "%c", "3 1 0", "0 3 1 0");
  // once in a layer and once in none
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w"),
       CALL("a", "x", "h.2.w") CALL("b", "a", "h.0.w") BOTH("c", "b", "h.2.w", "h.0.w"), "%c", "3 1 0",
       "0 0 0");
  // and in the layer again
  says("", WEIGHT("h.2.w") WEIGHT("h.0.w"),
       CALL("a", "x", "h.2.w") CALL("b", "a", "h.0.w") BOTH("c", "b", "h.2.w", "h.0.w")
           CALL("d", "c", "h.2.w"),
       "%d", "3 1 0 3", "0 0 0");
}

// Updates are of their weights' layer: in main, and inside functions by what their instructions join.
TEST(layers_of_updates) {
  bed b = bed_new("", WEIGHT("h.2.w") WEIGHT("h.0.w"),
                  CALL("a", "x", "h.2.w") CALL("b", "a", "h.0.w") //
                  "  %n, %o = call @sgd(!%h.2.w, !%h.0.w, %a, %b) update : f32[4], f32[4]\n"
                  "  %p = sgd !%n, %a update : f32[4]\n"
                  "  %q = mul %p, %o : f32[4]\n  %r = mul %q, %x : f32[4]\n"
                  "  %s = pack %p : (f32[4])\n  %t = call @h(%x, %p, %o) update : f32[4]\n",
                  "%t");
  const ir_layers *l = ir_layers_of(b.a, b.p);
  u32 own[7], inside[2], calls[2];
  for (u32 k = 0; k < 7; k++) own[k] = ir_layer_at(l, &(ir_layer_place){.index = k, .top = k});
  CHECK_STR(numbers(b.a, own, 7), "3 1 0 3 0 0 0");
  const u32 sgd = func_find(b.p, sym_of(b.c, "sgd")).i, f = func_find(b.p, sym_of(b.c, "f")).i;
  for (u32 k = 0; k < 2; k++) {
    inside[k] = ir_layer_at(l, &(ir_layer_place){.func = sgd, .index = k, .depth = 1, .top = 2});
    calls[k] = ir_layer_at(l, &(ir_layer_place){.func = f, .depth = 1, .top = k, .around = k ? 0 : 3});
  }
  CHECK_STR(numbers(b.a, inside, 2), "3 1");
  CHECK_STR(numbers(b.a, calls, 2), "3 0");         // what is around says it
  const u32 h = func_find(b.p, sym_of(b.c, "h")).i; // weights of two layers
  CHECK_EQ_I64(ir_layer_at(l, &(ir_layer_place){.func = h, .depth = 1, .top = 7}), 0);
  bed_free(&b);
}
