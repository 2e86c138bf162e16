// test_onnx.c - the ONNX importer: models made here byte by byte, and real ones against their reference
// outputs.
#include "front/onnx.h"
#include "eval/eval.h"
#include "onnx_writer.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// x[2,3] -> Add(x, w) -> y
static msg add_graph(void) {
  static const float w[] = {1, 2, 3};
  msg g = m_new();
  m_str(&g, 2, "g");
  m_msg(&g, 1, node_of("Add", "x,w", "y"));
  m_msg(&g, 5, tensor("w", 1, "3", w, sizeof w));
  m_msg(&g, 11, value_of("x", 1, "2,3"));
  m_msg(&g, 12, value_of("y", 1, "2,3"));
  return g;
}

// ---- the wire ------------------------------------------------------------------------------------------
TEST(onnx_weights_are_views) {
  BEGIN
  msg m = model_of(add_graph(), 17);
  prog *p = load(c, m, NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    const func_info *f = func_get(p, p->main);
    CHECK_EQ_I64(f->nparams, 2);
    CHECK_EQ_I64(f->params.v[0].r, ROLE_INPUT);
    CHECK_EQ_I64(f->params.v[1].r, ROLE_WEIGHT);
    CHECK_STR(sym_str(c, f->values.v[2].name), "w");
    const char *bytes = p->data.v[f->params.v[1].data].bytes;
    CHECK(bytes >= m.v && bytes < m.v + m.n);
    const loc_info *where = loc_get(c, f->body.v[0].where);
    CHECK(where && strcmp(sym_str(c, where->node), "g/Add -> y") == 0);
    prog_free(p);
  }
  END
}

// What is stored beside weights and is none: told by its use and its elements.
TEST(onnx_masks) {
  static const struct {
    const char *op, *extents;
    float v[4];
    role r;
  } cases[] = {
      {"Add", "2,2", {0, -INFINITY, 0, 0}, ROLE_CONST}, {"Add", "2,2", {-10000, 0, 0, 0}, ROLE_CONST},
      {"Mul", "2,2", {1, 0, 1, 1}, ROLE_CONST},         {"Add", "4", {1, 0, 1, 1}, ROLE_WEIGHT},
      {"Mul", "2,2", {1, 1, 1, 1}, ROLE_WEIGHT},        {"Add", "2,2", {0, 0, 0, 0}, ROLE_WEIGHT},
      {"Add", "2,2", {0, 0, -1, 0}, ROLE_WEIGHT},       {"MatMul", "2,2", {1, 0, 0, 1}, ROLE_WEIGHT},
      {"Less", "2,2", {1, 2, 3, 4}, ROLE_CONST},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    BEGIN
    bool flat = !strchr(cases[i].extents, ',');
    msg g = m_new();
    m_str(&g, 2, "g");
    m_msg(&g, 1, node_of("Transpose", "w", "t"));
    m_msg(&g, 1, node_of(cases[i].op, "x,t", "y"));
    m_msg(&g, 5, tensor("w", 1, cases[i].extents, cases[i].v, sizeof cases[i].v));
    m_msg(&g, 11, value_of("x", 1, flat ? "4" : "2,2"));
    m_msg(&g, 12, value_of("y", strcmp(cases[i].op, "Less") ? 1 : 9, flat ? "4" : "2,2"));
    prog *p = load(c, model_of(g, 17), NULL);
    CHECK_MSG(p, "%s", errors(c));
    if (p) {
      CHECK_MSG(func_get(p, p->main)->params.v[1].r == cases[i].r, "case %u", i);
      prog_free(p);
    }
    END
  }
}

// A prefix of a model is either a malformed file, or a model that lacks something; never a crash, never
// silent.
TEST(onnx_truncated) {
  BEGIN
  msg m = model_of(add_graph(), 17);
  for (size_t n = 0; n < m.n; n++) {
    u8 *copy = arena_dup(mem, m.v, n); // exactly as long as it is, for the sanitizer
    diag_clear(c);
    prog *p = front_onnx_bytes(c, "test.onnx", copy, n, NULL);
    CHECK_MSG(!p && diag_errors(c), "%zu of %zu bytes", n, m.n);
    if (p) prog_free(p);
  }
  END
}

TEST(onnx_fields_merge) { // a graph in two messages, a tensor type in two, an unknown field and a group
                          // between
  BEGIN
  msg g = m_new(), h = m_new(), m = m_new(), o = m_new();
  m_msg(&g, 11, value_of("x", 1, "4"));
  m_msg(&g, 1, node_of("Relu", "x", "t"));
  m_msg(&h, 1, node_of("Neg", "t", "y"));
  msg y = m_new(), a = m_new(), b = m_new(), t = m_new();
  m_int(&a, 1, 7), m_msg(&t, 1, a), m_int(&b, 1, 1), m_msg(&t, 1, b);
  m_str(&y, 1, "y"), m_msg(&y, 2, t), m_msg(&h, 12, y);
  m_int(&o, 2, 13);
  m_msg(&m, 7, g);
  m_varint(&m, 1000 << 3 | 3), m_int(&m, 3, 5), m_varint(&m, 1000 << 3 | 4);
  m_str(&m, 999, "unknown"), m_msg(&m, 8, o), m_msg(&m, 7, h);
  prog *p = load(c, m, NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(func_get(p, p->main)->body.n, 2);
  if (p) prog_free(p);
  END
}

TEST(onnx_typed_data) { // float_data packed and one by one, int64_data, half precision in int32_data
  BEGIN
  msg g = m_new();
  msg w = dims(m_new(), "4", 1), v = dims(m_new(), "2", 1), h = dims(m_new(), "2", 1);
  static const float run[] = {1, 2, 3};
  m_int(&w, 2, 1), m_str(&w, 8, "w"), m_bytes(&w, 4, run, sizeof run);
  m_varint(&w, 4 << 3 | 5), sb_putn(&w, "\0\0\x80\x40", 4); // 4.0
  m_int(&v, 2, 7), m_str(&v, 8, "v"), m_int(&v, 7, 2), m_int(&v, 7, -1);
  m_int(&h, 2, 10), m_str(&h, 8, "h"), m_bytes(&h, 5, "\x80\x78\x80\x7c", 4); // 1.0, -nothing of note
  m_msg(&g, 5, w), m_msg(&g, 5, v), m_msg(&g, 5, h);
  m_msg(&g, 1, node_of("Reshape", "w,v", "y"));
  m_msg(&g, 1, node_of("Neg", "h", "z"));
  m_msg(&g, 12, value_of("y", 1, "2,2")), m_msg(&g, 12, value_of("z", 10, "2"));
  prog *p = load(c, model_of(g, 17), NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    const func_info *f = func_get(p, p->main);
    const float *x = p->data.v[f->params.v[0].data].bytes;
    CHECK(memcmp(x, (float[]){1, 2, 3, 4}, 16) == 0);
    shape s = eval_result_shape(p, 0);
    CHECK(s.nd == 2 && s.dim[0] == 2 && s.dim[1] == 2);
    CHECK_EQ_I64(((const u16 *)p->data.v[f->params.v[1].data].bytes)[0], 0x3c00);
    prog_free(p);
  }
  END
}

TEST(onnx_hostile) {
  BEGIN
  msg deep = m_new(); // graphs in attributes in nodes in graphs
  for (u32 i = 0; i < 60; i++) {
    msg g = m_new();
    m_msg(&g, 1, with_graph(node_of("If", "x", "y"), "then_branch", deep));
    deep = g;
  }
  CHECK(!load(c, model_of(deep, 17), NULL) && told(c, "nest deeper than"));
  static const struct {
    const char *bytes;
    size_t n;
    const char *says;
  } bad[] = {
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "byte 0"},            // a length of 2^63
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "ten bytes"}, // a number without end
      {"\x0f", 1, "wire type 7"},
      {"\x3d\0\0\0\0", 5, "wire type 5, not 2"}, // a graph that is a number
      {"\x02\x00", 2, "field number 0"},
      {"\x0b\x0b", 2, "group does not end"},
      {"\x0c", 1, "ends that did not begin"},
      {"\x89PNG\r\n\x1a\n", 8, "E0110"},
  };
  for (u32 i = 0; i < COUNT_OF(bad); i++) {
    diag_clear(c);
    prog *p = front_onnx_bytes(c, "bad.onnx", (const u8 *)bad[i].bytes, bad[i].n, NULL);
    CHECK_MSG(!p && told(c, bad[i].says), "%u: %s", i, errors(c));
  }
  END
}

// ---- the model -----------------------------------------------------------------------------------------
TEST(onnx_names) {
  BEGIN
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "4"));
  m_msg(&g, 1, node_of("Add", "x,x", "a"));
  m_msg(&g, 1, node_of("Add", "x,nowhere", "b"));
  m_msg(&g, 1, node_of("Add", "a,b", "y"));
  m_msg(&g, 12, value_of("y", 1, "4"));
  CHECK(!load(c, model_of(g, 17), NULL));
  CHECK_EQ_I64(diag_errors(c), 1);
  CHECK_GOLDEN("onnx/names.txt", errors(c));
  diag_clear(c);
  m_msg(&g, 1, node_of("Relu", "x", "y"));
  CHECK(!load(c, model_of(g, 17), NULL) && told(c, "`y` is defined twice"));
  END
}

TEST(onnx_unsupported_all_at_once) {
  BEGIN
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "4"));
  m_msg(&g, 1, node_of("Wonder", "x", "a"));
  m_msg(&g, 1, node_of("Relu", "a", "b"));
  m_msg(&g, 1, node_of("Loop", "b", "d"));
  m_msg(&g, 1, node_of("Wonder", "x", "e"));
  m_msg(&g, 1, with_int(node_of("LpNormalization", "x", "f"), "p", 3));
  m_msg(&g, 1, node_of("Sum", "a,b,d,e,f", "y"));
  m_msg(&g, 12, value_of("y", 1, "4"));
  CHECK(!load(c, model_of(g, 17), NULL));
  CHECK_EQ_I64(diag_errors(c), 3);
  CHECK_GOLDEN("onnx/unsupported.txt", errors(c));
  diag_clear(c);
  CHECK(!load(c, model_of(g, 22), NULL) && told(c, "opset 22"));
  END
}

TEST(onnx_dimensions) {
  BEGIN
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "batch,0,4"));
  m_msg(&g, 11, value_of("z", 1, "batch,seq,4"));
  m_msg(&g, 1, node_of("Add", "x,z", "y"));
  m_msg(&g, 12, value_of("y", 1, "batch,seq,4"));
  msg m = model_of(g, 17);
  CHECK(!load(c, m, NULL));
  CHECK_GOLDEN("onnx/dimensions.txt", errors(c));
  front_dim d[] = {{"batch", 2}, {"seq", 3}, {"x:1", 3}};
  prog *p = load(c, m, &(front_opts){.dims = d, .ndims = 3});
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(eval_result_shape(p, 0).dim[1], 3);
  if (p) prog_free(p);
  END
}

// What the user names must be in the model; one open first extent is plainly the batch; numbers for an input.
TEST(onnx_bound_by_the_user) {
  BEGIN
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "batch,0,4"));
  m_msg(&g, 11, value_of("z", 1, "batch,seq,4"));
  m_msg(&g, 11, value_of("k", 7, "2"));
  m_msg(&g, 1, node_of("Add", "x,z", "y"));
  m_msg(&g, 1, node_of("Tile", "k,k", "t")); // only there to be fixed
  m_msg(&g, 12, value_of("y", 1, "batch,seq,4"));
  msg m = model_of(g, 17);
  front_dim wrong[] = {{"bacth", 2}, {"seq", 3}, {"x:1", 3}, {"x:7", 3}}, right[] = {{"seq", 3}, {"x:1", 3}};
  CHECK(!load(c, m, &(front_opts){.dims = wrong, .ndims = 4}));
  front_fixed k[] = {{"k", NULL, "1,2,3"}, {"w", NULL, "1"}};
  CHECK(!load(c, m, &(front_opts){.dims = right, .ndims = 2, .batch = 8, .fixed = k, .nfixed = 2}));
  CHECK_GOLDEN("onnx/bound.txt", errors(c));
  diag_clear(c);
  for (u32 i = 0; i < 2; i++) {
    front_extents open;
    k[0].text = i ? "1" : "1,2";
    front_opts o = {.dims = right, .ndims = 2, .batch = 8, .fixed = k, .nfixed = 1, .extents = &open};
    prog *p = load(c, m, &o);
    CHECK_MSG(p, "%s", errors(c));
    if (!p) continue;
    CHECK_EQ_I64(eval_result_shape(p, 0).dim[0], 8);
    CHECK(open.n == 3 && !strcmp(open.v[0].name, "batch") && !strcmp(open.v[0].at, "x:0, z:0"));
    CHECK_EQ_I64(func_get(p, p->main)->nparams, 2); // k is none
    prog_free(p);
  }
  END
}

// A shape that hangs on an input's elements is refused, and accepted when the input is given.
TEST(onnx_shapes_from_values) {
  BEGIN
  static const i64 minus[] = {-1}, zero[] = {0};
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "2,6")), m_msg(&g, 11, value_of("n", 7, "1"));
  m_msg(&g, 5, tensor("minus", 7, "1", minus, 8)), m_msg(&g, 5, tensor("zero", 7, "", zero, 8));
  m_msg(&g, 1, node_of("Shape", "x", "s"));
  m_msg(&g, 1, with_int(node_of("Gather", "s,zero", "b"), "axis", 0));
  m_msg(&g, 1, node_of("Unsqueeze", "b,axes", "bb"));
  m_msg(&g, 5, tensor("axes", 7, "1", zero, 8));
  m_msg(&g, 1, with_int(node_of("Concat", "bb,n,minus", "to"), "axis", 0));
  m_msg(&g, 1, node_of("Reshape", "x,to", "y"));
  m_msg(&g, 12, value_of("y", 1, "2,3,2"));
  msg m = model_of(g, 17);
  CHECK(!load(c, m, NULL));
  CHECK_GOLDEN("onnx/dynamic.txt", errors(c));
  diag_clear(c);
  static const i64 three[] = {3};
  data_info d = {.t = DT_I64, .nd = 1, .dim = {1}, .bytes = three, .size = 8};
  front_fixed f = {"n", &d, NULL};
  prog *p = load(c, m, &(front_opts){.fixed = &f, .nfixed = 1});
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    const func_info *fn = func_get(p, p->main);
    shape s = eval_result_shape(p, 0);
    CHECK(s.nd == 3 && s.dim[1] == 3 && s.dim[2] == 2);
    CHECK_EQ_I64(fn->body.n, 1); // the arithmetic on extents left nothing behind
    CHECK_EQ_I64(fn->nparams, 1);
    prog_free(p);
  }
  END
}

TEST(onnx_if_and_functions) {
  BEGIN
  static const u8 yes = 1;
  msg then = m_new(), other = m_new(), g = m_new(), f = m_new(), m, o = m_new();
  m_msg(&then, 1, node_of("Twice", "x", "t")), m_msg(&then, 12, value_of("t", 1, "4"));
  m_msg(&other, 1, node_of("Relu", "x", "t")), m_msg(&other, 12, value_of("t", 1, "4"));
  m_msg(&g, 11, value_of("x", 1, "4"));
  m_msg(&g, 5, tensor("cond", 9, "", &yes, 1));
  msg n = with_graph(with_graph(node_of("If", "cond", "y"), "then_branch", then), "else_branch", other);
  m_msg(&g, 1, n), m_msg(&g, 12, value_of("y", 1, "4"));
  m_int(&o, 2, 17);
  m_str(&f, 1, "Twice"), m_str(&f, 4, "a"), m_str(&f, 5, "b"), m_msg(&f, 9, o);
  m_msg(&f, 7, node_of("Add", "a,a", "b"));
  m = model_of(g, 17);
  CHECK(!load(c, m, NULL) && told(c, "Twice of domain ai.onnx is not supported"));
  CHECK_EQ_I64(diag_errors(c), 1); // once, not again for the If around it
  diag_clear(c);
  m_msg(&m, 25, f);
  prog *p = load(c, m, NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(func_get(p, p->main)->body.v[0].op, OP_add);
  if (p) prog_free(p);
  msg loop = m_new(); // a function that calls itself
  m_str(&loop, 1, "Self"), m_str(&loop, 4, "a"), m_str(&loop, 5, "b"), m_msg(&loop, 9, o);
  m_msg(&loop, 7, node_of("Self", "a", "b1")), m_msg(&loop, 7, node_of("Self", "b1", "b"));
  msg h = m_new();
  m_msg(&h, 11, value_of("x", 1, "4")), m_msg(&h, 1, node_of("Self", "x", "y")),
      m_msg(&h, 12, value_of("y", 1, "4"));
  m = model_of(h, 17);
  m_msg(&m, 25, loop);
  diag_clear(c);
  CHECK(!load(c, m, NULL) && told(c, "deeper than"));
  END
}

// ---- external data -------------------------------------------------------------------------------------
static msg external(const char *location, i64 offset, i64 length) {
  msg t = tensor("w", 1, "3", NULL, 0);
  char number[32];
  const char *pairs[][2] = {{"location", location}, {"offset", NULL}, {"length", NULL}};
  for (u32 k = 0; k < 3; k++) {
    msg e = m_new();
    i64 v = k == 1 ? offset : length;
    if (k && v < 0) continue;
    snprintf(number, sizeof number, "%lld", (long long)v);
    m_str(&e, 1, pairs[k][0]), m_str(&e, 2, pairs[k][1] ? pairs[k][1] : number), m_msg(&t, 13, e);
  }
  m_int(&t, 14, 1);
  msg g = m_new();
  m_msg(&g, 11, value_of("x", 1, "2,3")), m_msg(&g, 5, t);
  m_msg(&g, 1, node_of("Add", "x,w", "y")), m_msg(&g, 12, value_of("y", 1, "2,3"));
  return model_of(g, 17);
}

TEST(onnx_external_data) {
  BEGIN
  char *dir = arena_printf(mem, "%s/test_onnx", test_build()), *path = arena_printf(mem, "%s/m.onnx", dir);
  static const float data[] = {0, 1, 2, 3};
  REQUIRE(dir_make(c, dir) && file_write(c, arena_printf(mem, "%s/w.bin", dir), data, sizeof data));
  REQUIRE(file_write(c, arena_printf(mem, "%s/outside.bin", test_build()), data, sizeof data));
  REQUIRE(file_write(c, arena_printf(mem, "%s/empty.bin", dir), data, 0));
  unlink(arena_printf(mem, "%s/link.bin", dir));
  REQUIRE(symlink("../outside.bin", arena_printf(mem, "%s/link.bin", dir)) == 0);
  static const struct {
    const char *location;
    i64 offset, length;
    const char *says;
  } cases[] = {
      {"w.bin", 4, 12, NULL},
      {"w.bin", 4, -1, NULL},
      {"./w.bin", 4, 12, NULL},
      {"w.bin", 8, 12, "offset 8 of 16"},
      {"w.bin", 4, 8, "has 8"},
      {"w.bin", 1 << 30, -1, "needs 12 bytes"},
      {"../outside.bin", 0, 12, "outside the model's folder"},
      {"link.bin", 0, 12, "outside the model's folder"},
      {"/etc/passwd", 0, 12, "outside the model's folder"},
      {"a/../../outside.bin", 0, 12, "outside"},
      {"empty.bin", 0, 12, "of 0"},
      {"gone.bin", 0, 12, NULL},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    msg m = external(cases[i].location, cases[i].offset, cases[i].length);
    REQUIRE(file_write(c, path, m.v, m.n));
    diag_clear(c);
    prog *p = front_onnx(c, path, NULL);
    CHECK_MSG(!p == (cases[i].says != NULL), "%s: %s", cases[i].location, errors(c));
    if (cases[i].says) CHECK_MSG(told(c, cases[i].says), "%s: %s", cases[i].location, errors(c));
    if (!p) continue;
    u32 id = func_get(p, p->main)->params.v[1].data;
    if (i < 3)
      CHECK(memcmp(p->data.v[id].bytes, data + 1, 12) == 0);
    else
      CHECK(id == 0 && told(c, "not there")); // absent weights
    prog_free(p);
  }
  END
}

// A file of more than 2 GiB, nearly all of it a hole.
TEST(onnx_large_file) {
  BEGIN
  char *path = arena_printf(mem, "%s/large.onnx", test_build());
  const i64 n = ((i64)1 << 31) + 64;
  msg t = tensor("w", 2, arena_printf(mem, "%lld", (long long)n), NULL, 0), g = m_new(), m = m_new(),
      o = m_new();
  m_varint(&t, 9 << 3 | 2), m_varint(&t, (u64)n);
  m_int(&o, 2, 17), m_int(&m, 1, 8), m_msg(&m, 8, o);
  m_msg(&g, 1, node_of("Identity", "w", "y")), m_msg(&g, 12, value_of("y", 2, "1"));
  m_varint(&g, 5 << 3 | 2), m_varint(&g, t.n + (u64)n), sb_putn(&g, t.v, t.n);
  m_varint(&m, 7 << 3 | 2), m_varint(&m, g.n + (u64)n), sb_putn(&m, g.v, g.n);
  REQUIRE(file_write(c, path, m.v, m.n));
  if (truncate(path, (off_t)m.n + n) != 0) SKIP("no sparse files of %lld bytes here", (long long)n);
  prog *p = front_onnx(c, path, NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p) CHECK_EQ_I64(eval_param_shape(p, 0).dim[0], n);
  if (p) prog_free(p);
  unlink(path);
  END
}

// ---- real models ---------------------------------------------------------------------------------------
static eval_array *items_named(const eval_named *v, u32 n, const char *name) {
  for (u32 i = 0; i < n; i++)
    if (strcmp(v[i].name, name) == 0) return (eval_array *)&v[i].x;
  return NULL;
}

// Runs main with the inputs that the file of arrays names; weights are the model's.
static bool run(prog *p, const eval_named *v, u32 n, eval_array *out) {
  const func_info *f = func_get(p, p->main);
  eval_array *in = ZNEWN(mem, eval_array, f->nparams);
  for (u32 k = 0; k < f->nparams; k++) {
    const eval_array *given = items_named(v, n, sym_str(p->c, f->values.v[k + 1].name));
    u32 data = f->params.v[k].data;
    in[k].s = eval_param_shape(p, k);
    if (given)
      in[k] = *given;
    else if (data)
      in[k].data = arena_dup(mem, p->data.v[data].bytes, (size_t)p->data.v[data].size);
  }
  return eval_run(p, &(eval_opts){0}, in, f->nparams, out, f->rets.n, mem);
}

TEST(onnx_gpt_reference) {
  const char *model = test_data("reference/gpt_small_op17.onnx"),
             *io = test_data("reference/gpt_small_io.npz");
  BEGIN
  eval_named *v;
  u32 n;
  REQUIRE(npz_read(c, mem, io, &v, &n));
  const eval_array *ids = items_named(v, n, "ids"), *want = items_named(v, n, "logits");
  REQUIRE(ids && want);
  front_dim b = {"B", ids->s.dim[0]};
  prog *p = front_load(c, model, &(front_opts){.dims = &b, .ndims = 1});
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    eval_array y;
    REQUIRE(run(p, v, n, &y));
    double worst = 0, square = 0; // the reference itself is rounded: errors count against the typical logit
    i64 elems = shape_elems(&want->s);
    for (i64 i = 0; i < elems; i++) {
      double w = ((float *)want->data)[i];
      worst = fmax(worst, fabs(((float *)y.data)[i] - w));
      square += w * w;
    }
    CHECK_MSG(worst < 1e-5 * sqrt(square / (double)elems), "logits differ by up to %g", worst);
    prog_free(p);
  }
  END
}

TEST(onnx_gpt_loss) {
  const char *model = test_data("reference/gpt_small_loss_train.onnx");
  const char *grads = test_data("reference/gpt_small_loss_grads.npz");
  BEGIN
  eval_named *v;
  u32 n;
  REQUIRE(npz_read(c, mem, grads, &v, &n));
  prog *p = front_load(c, model, NULL);
  CHECK_MSG(p, "%s", errors(c));
  if (p && items_named(v, n, "ids") && items_named(v, n, "loss")) {
    eval_array y;
    const func_info *f = func_get(p, p->main);
    u32 masks = 0;
    for (u32 k = 0; k < f->nparams; k++) { // of the layers' attention; all else is a weight, biases of 0 too
      const char *grad = arena_printf(mem, "grad/%s", sym_str(p->c, f->values.v[k + 1].name));
      CHECK((f->params.v[k].r == ROLE_WEIGHT) == (items_named(v, n, grad) != NULL));
      masks += f->params.v[k].r == ROLE_CONST;
    }
    CHECK_EQ_I64(masks, 4);
    REQUIRE(run(p, v, n, &y));
    CHECK_CLOSE(*(float *)y.data, *(float *)items_named(v, n, "loss")->data, 1e-5);
  }
  if (p) prog_free(p);
  END
}

// DistIR's training graph names constants that it does not hold: given, all 32 nodes become a program with
// updates.
TEST(onnx_distir) {
  const char *model = test_data("onnx/distir__mnist_gemm_bw_running.onnx");
  BEGIN
  static const i64 ten = 10, wide[] = {128, 32};
  static const float one = 1, zero = 0;
  const data_info scalar = {.t = DT_F32, .bytes = &one, .size = 4},
                  none = {.t = DT_F32, .bytes = &zero, .size = 4};
  data_info b[3];
  for (u32 k = 0; k < 3; k++)
    b[k] = (data_info){.t = DT_I64, .nd = 1, .dim = {1}, .bytes = k ? &wide[2 - k] : &ten, .size = 8};
  front_fixed fixed[] = {{"loss_grad", &scalar, NULL},
                         {"ZeroConstant", &none, NULL},
                         {"Gemm_token_2_Grad/Shape_B3", &b[0], NULL},
                         {"Gemm_token_0_Grad/Shape_B2", &b[1], NULL},
                         {"Gemm_Grad/Shape_B1", &b[2], NULL}};
  front_dim d[] = {{"X:0", 8}, {"labels:0", 8}};
  prog *p = front_load(c, model, &(front_opts){.dims = d, .ndims = 2, .fixed = fixed, .nfixed = 5});
  CHECK_MSG(p, "%s", errors(c));
  if (p) {
    const func_info *f = func_get(p, p->main);
    CHECK_EQ_I64(f->rets.n, 2 + 6); // predictions, loss, six updates
    eval_array in[16], out[8];
    CHECK(eval_random(p, 3, in, f->nparams, mem) &&
          eval_run(p, &(eval_opts){0}, in, f->nparams, out, 8, mem));
    prog_free(p);
  }
  diag_clear(c);
  p = front_load(c, model, &(front_opts){.dims = d, .ndims = 2});
  CHECK_MSG(p && told(c, "26 nodes are left out"), "%s", errors(c));
  if (p) prog_free(p);
  END
}

TEST(onnx_real_models) {
  static const struct {
    const char *path, *dim;
    i64 n;
    i64 weights;
    bool run;
  } models[] = {
      {"onnx/onnxmlir__mnist.onnx", "", 0, 26506, true},
      {"onnx/onnx_light_squeezenet.onnx", "", 0, 1235496, true},
      {"onnx/onnx_light_resnet50.onnx", "", 0, 25557032, false},
      {"onnx/izan_resnet50_ort__training_model.onnx", "N", 2, 25575912, false},
      {"onnx/jobulisamy_ort__training_model.onnx", "", 0, 61326, true},
      {"onnx/srijanie_ortgraphs__torchtune_llama2_forward.onnx", "batch_size", 2, 6738939904, false},
  };
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    const char *path = test_data(models[i].path);
    BEGIN
    front_dim d = {models[i].dim, models[i].n};
    prog *p = front_load(c, path, &(front_opts){.dims = &d, .ndims = *d.name != 0});
    CHECK_MSG(p, "%s", errors(c));
    if (p) {
      const func_info *f = func_get(p, p->main);
      i64 n = 0;
      for (u32 k = 0; k < f->nparams; k++)
        if (f->params.v[k].r == ROLE_WEIGHT) n += shape_elems(&val_type(p, f, k + 1)->s);
      CHECK_MSG(n == models[i].weights, "%s: %lld weights", path, (long long)n);
      CHECK_MSG(ir_verify(p), "%s", errors(c));
      eval_array *in = ZNEWN(mem, eval_array, f->nparams), *out = ZNEWN(mem, eval_array, f->rets.n);
      if (models[i].run)
        CHECK_MSG(eval_random(p, 1, in, f->nparams, mem) &&
                      eval_run(p, &(eval_opts){0}, in, f->nparams, out, f->rets.n, mem),
                  "%s", errors(c));
      prog_free(p);
    }
    END
  }
}

// Outputs that are inputs, or other outputs under a second name, keep their names.
TEST(onnx_output_names) {
  mem = arena_new();
  ctx *c = ctx_new();
  static const char *const want[] = {"y", "again", "same", "z"};
  msg g = m_new();
  m_msg(&g, 1, node_of("Relu", "x", "mid")), m_msg(&g, 1, node_of("Identity", "mid", "y"));
  m_msg(&g, 1, node_of("Identity", "mid", "again")), m_msg(&g, 1, node_of("Identity", "x", "same"));
  m_msg(&g, 1, node_of("Neg", "x", "n")), m_msg(&g, 1, node_of("Identity", "n", "z"));
  m_msg(&g, 11, value_of("x", 1, "4"));
  for (u32 k = 0; k < COUNT_OF(want); k++) m_msg(&g, 12, value_of(want[k], 1, "4"));
  prog *p = load(c, model_of(g, 17), NULL);
  CHECK_MSG(p != NULL, "%s", diag_render(c, mem));
  REQUIRE(p);
  const func_info *f = func_get(p, p->main);
  CHECK_EQ_I64(f->rets.n, COUNT_OF(want));
  for (u32 k = 0; k < f->rets.n; k++) CHECK_STR(sym_str(c, val(f, f->rets.v[k])->name), want[k]);
  prog_free(p);
  ctx_free(c);
  arena_free(mem);
}
