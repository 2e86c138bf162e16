// test_ir_text.c - programs as text: exact round trips, constants, and what is said about bad text.
#include "infer/infer.h"
#include "test.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>

static const char *printed(const prog *p, ctx *c) {
  strbuf b = {.a = ctx_arena(c)};
  ir_print(p, &b);
  return sb_str(&b);
}

static const char *rendered(ctx *c) { return diag_render(c, ctx_arena(c)); }

static prog *parse(ctx *c, const char *text) { return ir_parse(c, sym_of(c, "text"), text, strlen(text)); }

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Files of a folder with this ending, sorted, without the ending.
static u32 files_in(ctx *c, const char *dir, const char *ending, char ***out) {
  VEC(char *) names = {0};
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    size_t n = strlen(e->d_name), m = strlen(ending);
    if (n > m && strcmp(e->d_name + n - m, ending) == 0)
      *vec_push(ctx_arena(c), &names) = arena_strndup(ctx_arena(c), e->d_name, n - m);
  }
  if (d) closedir(d);
  if (names.n) qsort(names.v, names.n, sizeof *names.v, by_name);
  *out = names.v;
  return names.n;
}

static const char *file_text(ctx *c, const char *path) {
  file_view f;
  if (!file_map(c, path, &f)) return NULL;
  char *text = arena_strndup(ctx_arena(c), (const char *)f.data, f.size);
  file_unmap(&f);
  return text;
}

// print(parse(print(p))) == print(p), and everything that the text says has the same ids.
static void check_round_trip(ctx *c, const prog *p) {
  const char *text = printed(p, c);
  prog *q = ir_parse(c, sym_of(c, "again"), text, strlen(text));
  if (!CHECK_MSG(q != NULL, "%s\n%s", rendered(c), text)) return;
  CHECK_STR(printed(q, c), text);
  prog *r = ir_parse(c, sym_of(c, "again"), text, strlen(text));
  REQUIRE(r && q->funcs.n == r->funcs.n && q->main.i == r->main.i && q->types.n == r->types.n);
  for (u32 f = 1; f < q->funcs.n; f++) {
    const func_info *a = q->funcs.v[f], *b = r->funcs.v[f];
    CHECK(a->values.n == b->values.n && a->body.n == b->body.n && a->opds.n == b->opds.n);
    CHECK(!a->opds.n || memcmp(a->opds.v, b->opds.v, a->opds.n * sizeof *a->opds.v) == 0);
  }
  prog_free(q);
  prog_free(r);
}

static void check_example(ctx *c, const char *path, const char *golden, const char *text) {
  prog *p = ir_parse(c, sym_of(c, path), text, strlen(text));
  if (!CHECK_MSG(p && infer_verify(p), "%s", rendered(c))) return;
  CHECK_GOLDEN(arena_printf(ctx_arena(c), "ir/%s.heddle", golden), printed(p, c));
  check_round_trip(c, p);
  prog_free(p);
}

TEST(ir_examples_round_trip) {
  static const char *const dir[] = {"examples", "examples/distir"};
  ctx *c = ctx_new();
  for (u32 d = 0, all = 0; d < COUNT_OF(dir); d++) {
    char **name;
    u32 n = files_in(c, dir[d], ".heddle", &name);
    CHECK(all += n);
    for (u32 k = 0; k < n; k++) {
      const char *path = arena_printf(ctx_arena(c), "%s/%s.heddle", dir[d], name[k]);
      check_example(c, path, name[k], file_text(c, path));
    }
  }
  ctx_free(c);
}

// The program that the manual of the language begins with.
TEST(ir_manual_is_right) {
  ctx *c = ctx_new();
  char *text = (char *)file_text(c, "docs/language.md"), *start = strstr(text, "```\n");
  REQUIRE(start);
  char *end = strstr(start + 4, "```");
  REQUIRE(end);
  *end = 0;
  check_example(c, "docs/language.md", "manual", start + 4);
  ctx_free(c);
}

TEST(ir_diagnostics) {
  ctx *c = ctx_new();
  char **name;
  u32 n = files_in(c, "tests/golden/diag", ".heddle", &name);
  CHECK(n >= 8);
  for (u32 k = 0; k < n; k++) {
    ctx *d = ctx_new();
    const char *path = arena_printf(ctx_arena(c), "tests/golden/diag/%s.heddle", name[k]),
               *text = file_text(c, path);
    prog *p = ir_parse(d, sym_fmt(d, "%s.heddle", name[k]), text, strlen(text));
    CHECK_MSG(!p && diag_errors(d), "%s is accepted", path);
    CHECK_GOLDEN(arena_printf(ctx_arena(c), "diag/%s.expected", name[k]), rendered(d));
    prog_free(p);
    ctx_free(d);
  }
  ctx_free(c);
}

// Every construct once, as it is written by the printer.
static const char all[] = "source \"model.onnx\"\n"
                          "time [mb=4]\n"
                          "mesh @m [pp=2, tp=4]\n"
                          "axis [x=3]\n"
                          "time [late=2]\n"
                          "mesh @n [y=2, pp=2] ranks 8..\n"
                          "mesh @list [x=3] ranks {5, 1, 2}\n"
                          "alias wide = [pp, tp]\n"
                          "stream tp, \"a b\"\n"
                          "default replicate all shares auto as rest\n"
                          "replicas equal\n"
                          "config zero.level = v1, \"odd key\" = 8, k = \"4 5\"\n"
                          "\n"
                          "func @f(%1: f32[8{tp},4], %k: f32[4]) -> (f32[8,4], (f32[4], ())) {\n"
                          "  replicate shares [5, 3] as \"all\" { split 4 {\n"
                          "  %3 = all_gather %1 over tp : f32[8,4]\n"
                          "  } split all { %4 = pack : ()\n"
                          "  } } split {\n"
                          "  %5 = pack %k, %4 : (f32[4], ())\n"
                          "  }\n"
                          "  return %3, %5\n"
                          "}\n"
                          "\n"
                          "func @\"a \\\"b\\\"\\n\\x01\" on @m[pp=0]() -> () loc(\"fn\") {\n"
                          "  %1 = full {shape=[], dtype=bf16, value=nan} : bf16[]\n"
                          "  %2 = full {shape=[4], dtype=f32, value=-1e-300} @. : f32[4]\n"
                          "  return\n"
                          "}\n"
                          "\n"
                          "main @step(\n"
                          "  %x: f32[8{tp},4] @m[pp=0],\n"
                          "  %x.1: f32[8{mb},4]+tp @m[pp=1] weight,\n"
                          "  %\"12\": f32[4] @m[pp=0] label = absent,\n"
                          "  %c: u8[3] state = [0, 1, 255],\n"
                          "  %d: u8[2,9] const = $1\n"
                          ") -> (f32[8,4]) {\n"
                          "  %\"/h.0/Add\", %2 = call @f(!%x, %\"12\") @m[pp=0] @mb=3 !\"a b\" backward "
                          "recompute update plan ^9 : f32[8,4], "
                          "(f32[4], ()) loc(\"/h.0/Add\")\n"
                          "  %7 = opaque %\"/h.0/Add\" after %x.1, %c {bytes=12, flops=-9000000000} @m[pp=0] "
                          ": f32[8,4] loc(\"n\", \"in 2\")\n"
                          "  %s = send %7 @m[pp=0] : f32[8,4] @. loc(\"n\", \"\", \"other\")\n"
                          "  return %s\n"
                          "}\n"
                          "\n"
                          "data $1 : u8[2,9] = base64\n"
                          "  \"AAECAwQFBgcICQoLDA0ODxAR\"\n";

// What the copies of a block are called, in the order of its calls.
TEST(ir_names_of_all_copies) {
  static const char copies[] =
      "source \"x.onnx\"\n\n"
      "func @block(%1: f32[4]) -> (f32[4]) loc(\"h.0/relu\") {\n"
      "  %2 = relu %1 : f32[4] loc(\"h.0/relu\") alike(\"h.1/relu\", \"h.2/\\\"r\\\"\")\n"
      "  return %2\n"
      "}\n\n"
      "func @main(%1: f32[4]) -> (f32[4]) {\n"
      "  %2 = call @block(%1) : f32[4] loc(\"h.0/relu\")\n"
      "  %3 = call @block(%2) : f32[4] loc(\"h.1/relu\")\n"
      "  %4 = call @block(%3) : f32[4] loc(\"h.2/\\\"r\\\"\")\n"
      "  return %4\n"
      "}\n",
                    *const bad[] = {"relu %1 loc(\"a\") alike()", "relu %1 loc(\"a\") alike(\"\")",
                                    "relu %1 loc(\"a\") alike \"b\"", "relu %1 alike(\"b\")"};
  ctx *c = ctx_new();
  prog *p = parse(c, copies);
  CHECK_STR(rendered(c), "");
  REQUIRE(p);
  CHECK_STR(printed(p, c), copies);
  loc at = p->funcs.v[1]->body.v[0].where;
  u32 n = 0;
  for (; at.i; at = loc_get(c, at)->alike) n++;
  CHECK(n == 3);
  prog_free(p);
  for (u32 k = 0; k < COUNT_OF(bad); k++) {
    diag_clear(c);
    CHECK(!parse(
        c, arena_printf(ctx_arena(c), "func @main(%%1: f32[4] input) -> () {\n  %%2 = %s\n}\n", bad[k])));
    CHECK_MSG(diag_errors(c) > 0, "%s", bad[k]);
  }
  ctx_free(c);
}

TEST(ir_every_construct) {
  ctx *c = ctx_new();
  // %2 and %7 stand where 6 and 7, 8 are counted: numbers in a text are only names.
  prog *p = parse(c, all);
  if (!p) CHECK_STR(rendered(c), "");
  REQUIRE(p);
  CHECK_GOLDEN("ir/every_construct.heddle", printed(p, c));
  check_round_trip(c, p);
  prog_free(p);
  ctx_free(c);
}

// Elements of every type, all bits: 16 or fewer as a list, more in base64.
TEST(ir_constants_are_exact) {
  ctx *c = ctx_new();
  u64 rng = 7;
  for (int t = DT_NONE + 1; t < DT_COUNT; t++)
    for (i64 n = 0; n <= 40; n += n < 17 ? 1 : 7) {
      prog *p = prog_new(c);
      shape s = {.t = (dtype)t, .nd = 1, .dim = {n}};
      u8 *bytes = arena_alloc(p->a, (size_t)shape_bytes(&s));
      for (i64 k = 0; k < shape_bytes(&s); k++) bytes[k] = (u8)rng_next(&rng);
      for (i64 k = 0; k + dtype_bytes(s.t) <= shape_bytes(&s) && n % 3;
           k += dtype_bytes(s.t) * 2) { // NaN, infinity, -0
        static const u8 high[] = {0x7f, 0xff, 0x7f, 0x80, 0x7e}, next[] = {0xc0, 0xf8, 0x80, 0x00, 0x00};
        u64 pick = rng_next(&rng) % COUNT_OF(high);
        memset(bytes + k, 0, dtype_bytes(s.t));
        bytes[k + dtype_bytes(s.t) - 1] = high[pick];
        if (dtype_bytes(s.t) > 1) bytes[k + dtype_bytes(s.t) - 2] = next[pick];
      }
      func f = func_new(p, sym_of(c, "main"), (loc){0});
      func_param(p, f, type_tensor(p, &s, (layout){0}, (group){0}), sym_of(c, "k"), ROLE_CONST);
      func_get(p, f)->params.v[0].data = data_add(p, &s, bytes, false);
      const char *text = printed(p, c);
      prog *q = parse(c, text);
      if (!CHECK_MSG(q != NULL, "%s\n%s", rendered(c), text)) continue;
      const data_info *d = &q->data.v[func_get(q, q->main)->params.v[0].data];
      CHECK_MSG(d->size == shape_bytes(&s) && memcmp(d->bytes, bytes, (size_t)d->size) == 0, "%s", text);
      CHECK_STR(printed(q, c), text);
      prog_free(p);
      prog_free(q);
    }
  ctx_free(c);
}

TEST(ir_numbers_are_shortest) {
  ctx *c = ctx_new();
  prog *p =
      parse(c, "func @main(%a: f16[4] const = [0.1, 65504, 6e-8, 65520], %b: bf16[2] const = [0.1, 3e38], "
               "%c: f32[4] const = [0.1, 16777217, 1e-45, -0], %d: f64[2] const = [0.1, 0x7ff0000000000001])"
               " -> () {\n  return\n}\n");
  if (!p) CHECK_STR(rendered(c), "");
  REQUIRE(p);
  CHECK_STR(printed(p, c),
            "func @main(\n  %a: f16[4] const = [0.1, 6.55e+04, 6e-08, inf],\n"
            "  %b: bf16[2] const = [0.1, 3e+38],\n  %c: f32[4] const = [0.1, 16777216, 1e-45, -0],\n"
            "  %d: f64[2] const = [0.1, 0x7ff0000000000001]\n) -> () {\n  return\n}\n");
  prog_free(p);
  ctx_free(c);
}

TEST(ir_text_is_read_to_its_end) {
  ctx *c = ctx_new();
  CHECK(!ir_parse(c, sym_of(c, "z"), "func @main() -> () {\n  return\n}\n\0x", 33));
  CHECK_STR(diag_get(c, 0).message, "a zero byte in the text");
  diag_clear(c);
  prog *p = parse(c, ""); // an empty program is one
  CHECK(p && p->main.i == 0);
  prog_free(p);
  p = parse(c, "# only a comment");
  CHECK(p != NULL);
  prog_free(p);
  char deep[4096] = "func @main(%x: ";
  memset(deep + strlen(deep), '(', 3000);
  CHECK(!parse(c, deep));
  ctx_free(c);
}

// Bytes that are no UTF-8, quotes and control characters survive in every kind of name.
TEST(ir_any_name) {
  ctx *c = ctx_new();
  char name[256];
  for (int k = 1; k < 256; k++) name[k - 1] = (char)k;
  name[255] = 0;
  prog *p = prog_new(c);
  func f = func_new(p, sym_of(c, name), loc_node(c, sym_of(c, name), sym_of(c, name), sym_of(c, name)));
  shape s = {.t = DT_F32};
  value x = func_param(p, f, type_tensor(p, &s, (layout){0}, (group){0}), sym_of(c, name), ROLE_INPUT);
  builder b = builder_at(p, f);
  b.strm = (u8)stream_of(p, sym_of(c, name)).i;
  b.where = loc_node(c, sym_of(c, name), sym_of(c, name), (sym){0});
  value y = build1(&b, OP_relu, x), z = build1(&b, OP_relu, y);
  value_name(p, f, y, sym_of(c, name)); // the same name twice
  value_name(p, f, z, sym_of(c, "7"));
  func_return(p, f, &z, 1);
  check_round_trip(c, p);
  prog_free(p);
  ctx_free(c);
}
