// test_base.c - the contracts of base.h.
#include "base/base.h"
#include "test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- memory -------------------------------------------------------------------------------------------

TEST(arena_aligns_and_keeps) {
  arena *a = arena_new();
  u8 *p[200];
  for (size_t i = 0; i < COUNT_OF(p); i++) {
    p[i] = arena_alloc(a, i * 13);
    CHECK((uintptr_t)p[i] % 16 == 0);
    memset(p[i], (int)i, i * 13);
  }
  bool same = true;
  for (size_t i = 0; i < COUNT_OF(p); i++)
    for (size_t k = 0; k < i * 13; k++) same &= p[i][k] == (u8)i;
  CHECK(same);
  u8 *z = arena_zalloc(a, 100000);
  for (size_t i = 0; i < 100000; i++) same &= z[i] == 0;
  CHECK(same);
  CHECK_STR(arena_strdup(a, "abc"), "abc");
  CHECK_STR(arena_strndup(a, "abc", 2), "ab");
  CHECK_STR(arena_printf(a, "%d-%s", 7, "x"), "7-x");
  char *longer = arena_printf(a, "%0400d", 1);
  CHECK_EQ_I64(strlen(longer), 400);
  CHECK(arena_dup(a, NULL, 0) != NULL);
  arena_free(a);
  arena_free(NULL);
}

TEST(arena_grows_by_doubling_to_8_mib) {
  arena *a = arena_new();
  CHECK_EQ_I64(arena_bytes(a), 64 << 10);
  for (int i = 0; i < 64 << 10; i++) arena_alloc(a, 1024 - 16);
  CHECK(arena_bytes(a) < 96u << 20); // 64 MiB asked for
  size_t before = arena_bytes(a);
  arena_alloc(a, 100u << 20);
  CHECK(arena_bytes(a) - before < (100u << 20) + 4096);
  arena_free(a);
}

TEST(arena_release_gives_back) {
  arena *a = arena_new();
  char *kept = arena_strdup(a, "kept");
  arena_mark_t m = arena_mark(a);
  void *first = arena_alloc(a, 100);
  arena_release(a, m);
  CHECK(arena_alloc(a, 100) == first);
  arena_release(a, m);
  for (int round = 0; round < 3; round++) {
    arena_mark_t outer = arena_mark(a);
    for (int i = 0; i < 100; i++) memset(arena_alloc(a, 100000), round, 100000);
    arena_mark_t inner = arena_mark(a);
    memset(arena_alloc(a, 20 << 20), round, 20 << 20);
    arena_release(a, inner);
    arena_release(a, outer);
    CHECK(arena_bytes(a) <= 9u << 20); // one spare block stays
  }
  CHECK_STR(kept, "kept");
  arena_free(a);
}

TEST(vec_keeps_its_elements) {
  arena *a = arena_new();
  VEC(u64) v = {0};
  for (u64 i = 0; i < 100000; i++) *vec_push(a, &v) = i * i;
  u64 *five = vec_push_n(a, &v, 5);
  memset(five, 0, 5 * sizeof *five);
  CHECK_EQ_I64(v.n, 100005);
  bool same = true;
  for (u64 i = 0; i < 100000; i++) same &= v.v[i] == i * i;
  CHECK(same);
  vec_reserve(a, &v, 300000);
  CHECK(v.cap >= 300000 && v.v[99999] == 99999ull * 99999);
  arena_free(a);
}

// Everything that allocates, so that the n-th allocation can fail for every n.
static void use_everything(ctx *c) {
  arena *a = ctx_arena(c);
  for (int i = 0; i < 3000; i++) sym_fmt(c, "name-%d", i);
  for (int i = 0; i < 2000; i++)
    diag(c, E_SHAPE, loc_text(c, sym_of(c, "f"), (u32)i + 1, 1, "text"), "n %d", i);
  const char yaml[] = "a: [1, 2, {b: c}]\nd: |\n  text\n";
  CHECK(yaml_parse(c, a, sym_of(c, "y"), yaml, sizeof yaml - 1) != NULL);
  CHECK(json_parse(c, a, sym_of(c, "j"), "{\"a\":[1,2]}", 11) != NULL);
}

TEST(every_allocation_may_fail) {
  jmp_buf here;
  volatile int failures = 0;
  base_oom = &here;
  for (volatile int n = 1;; n++) {
    ctx *volatile c = NULL;
    base_fail_after = n;
    if (!setjmp(here)) {
      c = ctx_new();
      use_everything(c);
      ctx_free(c);
      break;
    }
    failures++;
    ctx_free(c);
  }
  CHECK(base_fail_after > 0);
  CHECK(failures >= 4);
  base_fail_after = 0;
  if (!setjmp(here)) {
    arena_alloc(NULL, SIZE_MAX); // refused before anything is touched
    CHECK(!"reached");
  }
  base_oom = NULL;
}

// ---- hashing, numbers ---------------------------------------------------------------------------------

TEST(hash_tells_lengths_and_bytes_apart) {
  u8 zeros[64] = {0};
  arena *a = arena_new();
  hmap m = {0};
  u32 val;
  for (u32 n = 0; n <= 64; n++) {
    u64 h = hash_bytes(zeros, n, 0);
    u32 it = 0;
    CHECK(!hmap_next(&m, h, &it, &val));
    hmap_add(a, &m, h, n);
  }
  for (u32 i = 0; i < 64 * 8; i++) {
    zeros[i / 8] ^= (u8)(1 << i % 8);
    u64 h = hash_bytes(zeros, 64, 0);
    u32 it = 0;
    CHECK(!hmap_next(&m, h, &it, &val));
    zeros[i / 8] = 0;
  }
  CHECK(hash_bytes("a", 1, 0) != hash_bytes("a", 1, 1));
  arena_free(a);
}

// Two keys of one hash: the second word undoes what the first one did to the hash's state.
TEST(keys_of_one_hash_are_told_apart) {
  arena *a = arena_new();
  key_table t = {0};
  const u64 state = hash_u64(16, 1);
  u64 x[] = {1, 5}, y[] = {2, hash_step(state, 1) ^ hash_step(state, 2) ^ 5};
  const key_words of_x = {x, 2, 2}, of_y = {y, 2, 2}, shorter = {x, 1, 1};
  CHECK(hash_bytes(x, sizeof x, 0) == hash_bytes(y, sizeof y, 0));
  CHECK(!key_find(&t, &of_x));
  CHECK_EQ_I64(key_add(a, &t, &of_x), 1);
  CHECK(!key_find(&t, &of_y) && !key_find(&t, &shorter));
  CHECK_EQ_I64(key_add(a, &t, &of_y), 2);
  x[1] = 6; // copied
  CHECK(!key_find(&t, &of_x));
  x[1] = 5;
  CHECK(key_find(&t, &of_x) == 1 && key_find(&t, &of_y) == 2);
  key_words k = {0}, l = {0};
  key_put_bytes(a, &k, "abcdefghi", 9), key_put_bytes(a, &l, "abcdefgh", 8);
  CHECK_EQ_I64(k.n, 3);
  CHECK_EQ_I64(l.n, 2);
  CHECK(k.v[0] == 9 && k.v[1] == l.v[1] && k.v[2] == 'i');
  arena_free(a);
}

TEST(hmap_walks_all_values_of_a_hash) {
  arena *a = arena_new();
  hmap m = {0};
  CHECK_EQ_I64(hmap_get(&m, 5), 0);
  for (u32 i = 1; i <= 50000; i++) hmap_add(a, &m, i % 12500, i); // hash 0 included: four of each
  CHECK_EQ_I64(m.n, 50000);
  bool right = true;
  for (u32 h = 0; h < 12500; h += 97) {
    u32 n = 0, sum = 0, want = 0;
    for (u32 it = 0, v; hmap_next(&m, h, &it, &v);) right &= v % 12500 == h || h <= 1, n++, sum += v;
    for (u32 k = h ? h : 12500; k <= 50000; k += 12500) want += k;
    if (h > 1) CHECK_EQ_I64(n, 4), CHECK_EQ_I64(sum, want);
  }
  CHECK(right);
  CHECK(hmap_get(&m, 77) % 12500 == 77);
  CHECK_EQ_I64(hmap_get(&m, 12500), 0);
  arena_free(a);
}

TEST(integers) {
  i64 x = 0;
  CHECK_EQ_I64(gcd_i64(12, -18), 6);
  CHECK_EQ_I64(gcd_i64(0, 0), 0);
  CHECK_EQ_I64(gcd_i64(INT64_MIN, 6), 2);
  CHECK_EQ_I64(gcd_i64(0, 5), 5);
  CHECK(mul_i64(3037000499, 3037000499, &x) && x == 3037000499ll * 3037000499ll);
  CHECK(!mul_i64(INT64_MAX, 2, &x) && !mul_i64(INT64_MIN, -1, &x));
  CHECK_EQ_I64(ceil_div(7, 2), 4);
  u64 s = 1234567; // the first values of splitmix64 for this seed
  CHECK(rng_next(&s) == 6457827717110365317u && rng_next(&s) == 3203168211198807973u);
  double sum = 0;
  for (int i = 0; i < 10000; i++) {
    double u = rng_unit(&s);
    CHECK(u >= 0 && u < 1);
    sum += u;
  }
  CHECK_CLOSE(sum / 10000, 0.5, 0.03);
  u64 t = clock_ns();
  CHECK(clock_ns() >= t);
}

// ---- symbols, locations, diagnostics ------------------------------------------------------------------

TEST(symbols_are_equal_if_their_text_is) {
  ctx *c = ctx_new();
  CHECK_EQ_I64(sym_of(c, "").i, 0);
  CHECK_STR(sym_str(c, (sym){0}), "");
  for (u32 i = 1; i <= 5000; i++) CHECK_EQ_I64(sym_fmt(c, "s%u", i).i, i);
  for (u32 i = 1; i <= 5000; i++) CHECK_EQ_I64(sym_fmt(c, "s%u", i).i, i);
  sym s = sym_ofn(c, "s12345", 3);
  CHECK_EQ_I64(s.i, 12);
  CHECK_STR(sym_str(c, s), "s12");
  CHECK_EQ_I64(sym_len(c, s), 3);
  sym longer = sym_fmt(c, "%01000d", 5);
  CHECK_EQ_I64(sym_len(c, longer), 1000);
  CHECK(sym_of(c, sym_str(c, longer)).i == longer.i);
  ctx_free(c);
}

TEST(locations_keep_their_line) {
  ctx *c = ctx_new();
  char source[] = "first\r\nsecond\n";
  CHECK(loc_get(c, (loc){0}) == NULL);
  loc a = loc_text(c, sym_of(c, "f"), 1, 2, source), b = loc_text(c, sym_of(c, "f"), 1, 4, source);
  loc d = loc_text(c, sym_of(c, "f"), 2, 1, source + 7);
  memset(source, 'x', sizeof source - 1);
  CHECK_STR(loc_get(c, a)->text, "first");
  CHECK(loc_get(c, a)->text == loc_get(c, b)->text);
  CHECK_STR(loc_get(c, d)->text, "second");
  CHECK_EQ_I64(loc_get(c, b)->col, 4);
  loc n = loc_node(c, sym_of(c, "m.onnx"), sym_of(c, "g/n"), sym_of(c, "input 2"));
  CHECK_STR(sym_str(c, loc_get(c, n)->part), "input 2");
  CHECK(!loc_get(c, n)->line && !loc_get(c, n)->text);
  ctx_free(c);
}

TEST(diag_rows_are_complete) {
  for (int id = 1; id < DIAG_COUNT; id++) {
    const diag_row *r = diag_row_of((diag_id)id);
    CHECK_MSG(diag_find(r->code) == (diag_id)id, "%s: the code is not unique", r->name);
    CHECK_MSG(strlen(r->code) == 5 && r->code[0] == (r->severity == DIAG_ERROR ? 'E' : 'W'), "%s", r->name);
    CHECK_MSG(r->name[0] == r->code[0] && r->name[1] == '_', "%s", r->name);
    CHECK_MSG(r->title[0] && r->text[0] && r->title[strlen(r->title) - 1] != '.', "%s", r->name);
  }
  CHECK(diag_find("E9999") == DIAG_NONE && diag_find("") == DIAG_NONE);
}

TEST(diag_list_can_be_taken_back) {
  ctx *c = ctx_new();
  CHECK_STR(diag_render(c, ctx_arena(c)), "");
  diag(c, E_SHAPE, (loc){0}, "one %d", 1);
  diag_note(c, (loc){0}, "a");
  diag_hint(c, "b");
  diag_hint_number(c, 4, "tp=%u", 4);
  diag(c, W_IGNORED, (loc){0}, "two");
  CHECK_EQ_I64(diag_count(c), 2);
  CHECK_EQ_I64(diag_errors(c), 1);
  for (int i = 0; i < 10000; i++) {
    diag(c, E_PLAN, (loc){0}, "trial %d", i);
    diag_note(c, (loc){0}, "%0100d", i);
    diag_truncate(c, 2);
  }
  CHECK_EQ_I64(diag_errors(c), 1);
  diag_item d = diag_get(c, 0);
  CHECK_STR(d.message, "one 1");
  CHECK_EQ_I64(d.notes, 3);
  static const diag_part_item parts[] = {
      {.message = "a"}, {.message = "b", .hint = true}, {.message = "tp=4", .hint = true, .number = 4}};
  for (u32 k = 0; k < COUNT_OF(parts); k++) {
    const diag_part_item p = diag_part(c, 0, k);
    CHECK_STR(p.message, parts[k].message);
    CHECK(p.hint == parts[k].hint && p.number == parts[k].number);
  }
  CHECK_EQ_I64(diag_get(c, 1).notes, 0);
  diag_clear(c);
  CHECK_EQ_I64(diag_count(c), 0);
  CHECK_EQ_I64(diag_errors(c), 0);
  ctx_free(c);
}

TEST(diag_render_golden) {
  ctx *c = ctx_new();
  sym f = sym_of(c, "mlp.heddle"), m = sym_of(c, "gpt2.onnx");
  loc use = loc_text(c, f, 4, 8, "  %y = matmul %a, %v\n}");
  diag(c, E_SHAPE, use, "matmul: inner extents differ: %d against %d", 1024, 768);
  diag_note(c, loc_text(c, f, 2, 33, "func @f (%a: f16[256,1024], %v: \tf16[768,4096]) {"), "%%v has %d rows",
            768);
  diag_hint(c, "transpose %%v");
  diag(c, E_ONNX_OP, loc_node(c, m, sym_of(c, "main/Loop_7"), sym_of(c, "attribute body")),
       "no operator Loop");
  diag(c, E_ONNX_OP, loc_node(c, m, (sym){0}, (sym){0}), "the model uses 1 unsupported operator");
  diag(c, W_IGNORED, loc_node(c, (sym){0}, sym_of(c, "node"), (sym){0}), "ignored");
  diag(c, W_IGNORED, loc_text(c, f, 3, 0, "no column"), "line only");
  diag(c, W_IGNORED, loc_text(c, (sym){0}, 3, 2, NULL), "no file");
  diag(c, E_YAML, loc_text(c, sym_of(c, "m.yaml"), 12345, 5, "é: ü"), "columns are bytes; %s",
       "text \033[31mred");
  char line[400];
  memset(line, '.', sizeof line);
  memcpy(line + 300, "here", 5);
  diag(c, E_JSON, loc_text(c, sym_of(c, "long"), 1, 301, line), "a long line");
  line[300] = '.';
  memcpy(line + 10, "here", 4);
  line[304] = 0;
  diag(c, E_JSON, loc_text(c, sym_of(c, "long"), 2, 11, line), "its start");
  diag(c, E_JSON, loc_text(c, sym_of(c, "end"), 2, 99, "short"), "a column past the end");
  diag(c, E_JSON, loc_text(c, sym_of(c, "bits\xff"), 1, 8, "\xc3\xa9\xc2\x9b\xe4\033\x7f<"),
       "bytes that are no text");
  diag(c, E_JSON, loc_text(c, sym_of(c, "turns\xe2\x80\xaetxt"), 1, 1, "\xef\xbb\xbf\xd7\x90\xe2\x81\xa6<"),
       "a name that turns what follows: \xe2\x80\xae");
  CHECK_GOLDEN("base/diag.txt", diag_render(c, ctx_arena(c)));
  ctx_free(c);
}

// ---- text ---------------------------------------------------------------------------------------------

TEST(near_finds_what_was_meant) {
  static const char *const names[] = {"add", "sub", "matmul", "matmul_dx", "softmax", "softmin"};
  static const char *const cases[][2] = {{"matmul", "matmul"},
                                         {"mutmul", "matmul"},
                                         {"matmull", "matmul"},
                                         {"atmul", "matmul"},
                                         {"matmuldx", "matmul_dx"},
                                         {"softmaxx", "softmax"},
                                         {"softm", "softmax"},
                                         {"ad", "add"},
                                         {"dad", "add"},
                                         {"exp", NULL},
                                         {"", NULL},
                                         {"convolution", NULL}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    near_name x = near_to(cases[i][0], strlen(cases[i][0]));
    for (u32 k = 0; k < COUNT_OF(names); k++) near_try(&x, names[k]);
    CHECK_MSG(x.name == cases[i][1] || (x.name && cases[i][1] && !strcmp(x.name, cases[i][1])), "%s: %s",
              cases[i][0], x.name ? x.name : "nothing");
  }
  char word[200];
  memset(word, 'a', sizeof word);
  near_name x = near_to(word, sizeof word); // need not end in NUL
  near_try(&x, "add");
  CHECK(!x.name);
  x = near_to("addition", 3);
  near_try(&x, "add");
  CHECK(x.name != NULL);
}

// * stands for anything and ? for one letter, and neither counts.
TEST(near_finds_what_a_pattern_meant) {
  static const char *const names[] = {"layer/mlp", "/h.*/mlp/up/MatMul", "/h.*/attn/q/MatMul"};
  static const struct {
    const char *pattern;
    int name; // -1: none is near
  } cases[] = {{"*/mpl", 0},
               {"*/up/MatMul", 1},
               {"*/qq/MatMul", 2},
               {"/h.?/attn/k/*", 2},
               {"*h.*/mlq/*", 1},
               {"*zzzzz*", -1},
               {"*", 0}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    near_name x = near_to_pattern(cases[i].pattern, strlen(cases[i].pattern));
    for (u32 k = 0; k < COUNT_OF(names); k++) near_try(&x, names[k]);
    CHECK_MSG(cases[i].name < 0 ? !x.name : x.name == names[cases[i].name], "%s: %s", cases[i].pattern,
              x.name ? x.name : "nothing");
  }
}

TEST(strbuf_builds_text) {
  arena *a = arena_new();
  strbuf b = {.a = a};
  CHECK_STR(sb_str(&b), "");
  sb_put(&b, "ab");
  sb_putn(&b, "cdef", 2);
  sb_char(&b, ' ');
  sb_i64(&b, INT64_MIN), sb_char(&b, ' '), sb_i64(&b, INT64_MAX), sb_char(&b, ' '), sb_i64(&b, 0);
  sb_fmt(&b, " %s", "x");
  CHECK_STR(sb_str(&b), "abcd -9223372036854775808 9223372036854775807 0 x");
  strbuf n = {.a = a};
  for (int i = 0; i < 200; i++) sb_fmt(&n, "%0*d", i, 0);
  CHECK_EQ_I64(n.n, 1 + 199 * 200 / 2);
  CHECK_EQ_I64(strlen(sb_str(&n)), n.n);
  strbuf j = {.a = a};
  sb_json_str(&j, "a\"\\\n\t\001\177é\xff\xed\xa0\x80\xf0\x9f\x98\x80");
  CHECK_STR(sb_str(&j), "\"a\\\"\\\\\\n\\t\\u0001\\u007fé\\ufffd\\ufffd\\ufffd\\ufffd\xf0\x9f\x98\x80\"");
  arena_free(a);
}

// ---- files --------------------------------------------------------------------------------------------

static char *temp_folder(arena *a) {
  char *dir = arena_printf(a, "%s/test_base_XXXXXX", test_build());
  REQUIRE(mkdtemp(dir) != NULL);
  return dir;
}

static bool holds(ctx *c, const char *path, const char *want) {
  file_view f;
  if (!file_map(c, path, &f)) return false;
  bool same = f.size == strlen(want) && !memcmp(f.data, want, f.size);
  file_unmap(&f);
  return same;
}

TEST(files_come_whole) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  char *dir = temp_folder(a), *deep = arena_printf(a, "%s/x//y/", dir),
       *file = arena_printf(a, "%s/x/y/f", dir);
  char *link = arena_printf(a, "%s/link", dir);
  CHECK(!file_exists(deep) && dir_make(c, deep) && dir_make(c, deep) && file_exists(deep));
  CHECK(file_write(c, file, "one", 3) && holds(c, file, "one"));
  CHECK(file_write(c, file, "", 0) && holds(c, file, ""));
  CHECK(!chmod(file, 0751) && file_write(c, file, "two", 3) && holds(c, file, "two"));
  struct stat st;
  CHECK(!stat(file, &st) && (st.st_mode & 07777) == 0751);
  CHECK(!symlink("x/y/f", link) && file_write(c, link, "three", 5) && holds(c, file, "three"));
  CHECK(!lstat(link, &st) && S_ISLNK(st.st_mode));
  CHECK(file_write(c, "/dev/null", "gone", 4) && !stat("/dev/null", &st) && S_ISCHR(st.st_mode));
  CHECK(holds(c, "/dev/null", ""));
  CHECK_EQ_I64(diag_count(c), 0);

  struct rlimit old, tight;
  REQUIRE(!getrlimit(RLIMIT_FSIZE, &old));
  tight = old;
  tight.rlim_cur = 10;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  CHECK(!file_write(c, file, "more than fits", 14));
  setrlimit(RLIMIT_FSIZE, &old);
  CHECK(holds(c, file, "three"));
  CHECK_EQ_I64(diag_count(c), 1);
  diag_clear(c);

  file_view f;
  CHECK(!file_map(c, dir, &f) && !file_map(c, arena_printf(a, "%s/none", dir), &f));
  CHECK(!file_write(c, dir, "x", 1) && !file_write(c, arena_printf(a, "%s/none/f", dir), "x", 1));
  CHECK(!dir_make(c, arena_printf(a, "%s/z", file)) && !dir_make(c, file));
  CHECK_EQ_I64(diag_errors(c), 6);
  CHECK(diag_get(c, 0).id == E_FILE_OPEN && diag_get(c, 2).id == E_FILE_WRITE);
  CHECK_EQ_I64(diag_get(c, 3).notes, 1); // mkdir -p
  CHECK(!unlink(link) && !unlink(file) && !rmdir(deep));
  CHECK(!rmdir(arena_printf(a, "%s/x", dir)) && !rmdir(dir)); // nothing temporary was left
  ctx_free(c);
}

// ---- JSON ---------------------------------------------------------------------------------------------

static const json *parse_json(ctx *c, const char *text) {
  return json_parse(c, ctx_arena(c), sym_of(c, "t.json"), text, strlen(text));
}

TEST(json_reads_all_kinds) {
  ctx *c = ctx_new();
  const json *j =
      parse_json(c, " {\"a\": [1, -2.5e-3, 0, 1E+2], \"b\": {\"t\": true, \"f\": false, \"n\": null},\n"
                    "\"s\": \"x\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t é\", \"\": []}\n");
  REQUIRE(j && j->kind == JSON_OBJ && j->n == 4);
  const json *a = json_get(j, "a"), *b = json_get(j, "b");
  REQUIRE(a && a->kind == JSON_ARR && a->n == 4 && b && b->n == 3);
  CHECK(a->item[0].num == 1 && a->item[1].num == -2.5e-3 && a->item[2].num == 0 && a->item[3].num == 100);
  CHECK_STR(a->item[1].str, "-2.5e-3");
  CHECK(json_get(b, "t")->kind == JSON_BOOL && json_get(b, "t")->num == 1 && json_get(b, "f")->num == 0);
  CHECK(json_get(b, "f")->kind == JSON_BOOL && json_get(b, "n")->kind == JSON_NULL);
  CHECK_STR(json_get(j, "s")->str, "xé\xf0\x9f\x98\x80\"\\/\b\f\n\r\t é");
  CHECK(json_get(j, "")->n == 0 && !json_get(j, "c") && !json_get(a, "a") && !json_get(NULL, "a"));
  CHECK_EQ_I64(parse_json(c, "7")->num, 7);
  CHECK_STR(parse_json(c, "\"\"")->str, "");
  CHECK_EQ_I64(diag_count(c), 0);
  ctx_free(c);
}

static char *nested(arena *a, const char *open, const char *close, int depth) {
  strbuf b = {.a = a};
  for (int i = 0; i < depth; i++) sb_put(&b, open);
  for (int i = 0; i < depth; i++) sb_put(&b, close);
  return b.v;
}

TEST(json_refuses_golden) {
  static const char *const bad[] = {"",
                                    "  ",
                                    "{",
                                    "[1,]",
                                    "[1 2]",
                                    "{\"a\" 1}",
                                    "{a: 1}",
                                    "01",
                                    "-",
                                    "1.",
                                    "1e",
                                    "+1",
                                    ".5",
                                    "1e999",
                                    "NaN",
                                    "nul",
                                    "truex",
                                    "\"abc",
                                    "\"a\nb\"",
                                    "\"\\x\"",
                                    "\"\\u12g4\"",
                                    "\"\\u0000\"",
                                    "\"\\ud83d\"",
                                    "\"\\ude00\"",
                                    "\"\\ud83dx\"",
                                    "\"\xff\"",
                                    "\xff",
                                    "[1] x",
                                    "{\"k\": 1,\n \"k\": 2}",
                                    "[\n1,\n  oops]"};
  ctx *c = ctx_new();
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    CHECK_MSG(!parse_json(c, bad[i]) && diag_errors(c) == i + 1, "accepted or silent: %s", bad[i]);
  CHECK(parse_json(c, nested(ctx_arena(c), "[", "]", 64)) != NULL);
  CHECK(parse_json(c, nested(ctx_arena(c), "[", "]", 65)) == NULL);
  CHECK_GOLDEN("base/json.txt", diag_render(c, ctx_arena(c)));
  // The text need not end with a NUL: no byte past n is read.
  const char *half = "[12345]";
  for (size_t n = 0; n < 7; n++) {
    char *copy = base_malloc(n);
    memcpy(copy, half, n);
    CHECK(!json_parse(c, ctx_arena(c), (sym){0}, copy, n));
    free(copy);
  }
  ctx_free(c);
}

// ---- YAML ---------------------------------------------------------------------------------------------

static const ynode *parse_yaml(ctx *c, const char *text) {
  return yaml_parse(c, ctx_arena(c), sym_of(c, "t.yaml"), text, strlen(text));
}

static void check_at(ctx *c, const ynode *y, u32 line, u32 col, const char *text) {
  const loc_info *l = loc_get(c, y->at);
  CHECK_EQ_I64(l->line, line);
  CHECK_EQ_I64(l->col, col);
  CHECK_STR(l->text, text);
}

TEST(yaml_reads_with_places) {
  ctx *c = ctx_new();
  const ynode *y = parse_yaml(c, "\xEF\xBB\xBFname: dgx # comment\n"
                                 "ü: {ö: 'é', z: \"q\"}\r\n"
                                 "list:\n"
                                 "- 25 GB/s\n"
                                 "- [a, b]\n"
                                 "none:\n"
                                 "text: |\n  one\n  two\n");
  REQUIRE(y && y->kind == Y_MAP && y->n == 5);
  const ynode *u = yaml_get(y, "ü"), *list = yaml_get(y, "list");
  REQUIRE(u && u->kind == Y_MAP && u->n == 2 && list && list->kind == Y_SEQ && list->n == 2);
  CHECK_STR(yaml_get(y, "name")->str, "dgx");
  CHECK(!yaml_get(y, "name")->quoted && yaml_get(u, "ö")->quoted && yaml_get(u, "z")->quoted);
  check_at(c, yaml_get(y, "name"), 1, 7, "name: dgx # comment");
  check_at(c, yaml_get(u, "ö"), 2, 10, "ü: {ö: 'é', z: \"q\"}"); // in bytes
  check_at(c, yaml_get(u, "z"), 2, 19, "ü: {ö: 'é', z: \"q\"}");
  check_at(c, y->key[2], 3, 1, "list:");
  check_at(c, list->item[1]->item[1], 5, 7, "- [a, b]");
  CHECK_STR(list->item[0]->str, "25 GB/s");
  CHECK_STR(yaml_get(y, "none")->str, "");
  CHECK(!yaml_get(y, "none")->quoted);
  CHECK_STR(yaml_get(y, "text")->str, "one\ntwo\n");
  CHECK(!yaml_get(y, "other") && !yaml_get(list, "a") && !yaml_get(NULL, "a"));
  CHECK_EQ_I64(diag_count(c), 0);
  ctx_free(c);
}

TEST(yaml_refuses_golden) {
  static const char *const bad[] = {
      "",
      "# only a comment\n",
      "a: 1\nb: [1, 2\nc: 3\n",
      "a: 1\n b: 2\n",
      "a: &x 1\n",
      "a: &x [1]\n",
      "a: &x {b: 1}\n",
      "a: *x\n",
      "*x: 1\n",
      "a: !!str 1\n",
      "? [1]\n: 2\n",
      "a: 1\nb: 2\na: 3\n",
      "a: 1\n---\nb: 2\n",
      "a: \"x\\0y\"\n",
      "é: é\xff\n",
      "a: \x01\n",
      "a: 'open\n",
  };
  ctx *c = ctx_new();
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    CHECK_MSG(!parse_yaml(c, bad[i]) && diag_errors(c) == i + 1, "accepted or silent: %s", bad[i]);
  CHECK(parse_yaml(c, nested(ctx_arena(c), "[", "]", 32)) != NULL);
  CHECK(parse_yaml(c, nested(ctx_arena(c), "[", "]", 33)) == NULL);
  CHECK(parse_yaml(c, nested(ctx_arena(c), "- ", "", 33)) == NULL);
  CHECK_GOLDEN("base/yaml.txt", diag_render(c, ctx_arena(c)));
  ctx_free(c);
}

TEST(yaml_long_line_is_walked_once) {
  ctx *c = ctx_new();
  strbuf b = {.a = ctx_arena(c)};
  for (int i = 0; i < 100000; i++) sb_fmt(&b, "%sé", i ? ", " : "[");
  sb_char(&b, ']');
  u64 begin = clock_ns();
  const ynode *y = parse_yaml(c, b.v);
  CHECK(y && y->n == 100000);
  CHECK(clock_ns() - begin < 5000000000u);
  CHECK_EQ_I64(loc_get(c, y->item[99999]->at)->col, 1 + 99999 * 4 + 1);
  ctx_free(c);
}

// ---- threads ------------------------------------------------------------------------------------------

typedef struct {
  atomic_uint times[1000];
  atomic_uint bad_thread;
} tally;

static void count_job(void *arg, u32 i, int thread) {
  tally *t = arg;
  atomic_fetch_add(&t->times[i], 1);
  if (thread < 0 || thread >= 4) atomic_fetch_add(&t->bad_thread, 1);
}

TEST(parallel_for_does_every_job_once) {
  CHECK(cpu_count() >= 1);
  static const u32 sizes[] = {0, 1, 3, 1000};
  for (size_t k = 0; k < COUNT_OF(sizes); k++) {
    for (int threads = 0; threads <= 4; threads++) {
      tally t;
      memset(&t, 0, sizeof t);
      parallel_for(threads, sizes[k], count_job, &t);
      bool once = true;
      for (u32 i = 0; i < 1000; i++) once &= t.times[i] == (i < sizes[k]);
      CHECK(once && !t.bad_thread);
    }
  }
}

static void failing_job(void *arg, u32 i, int thread) {
  (void)thread;
  if (i == 50) base_out_of_memory(1);
  atomic_fetch_add((atomic_uint *)arg, 1);
}

TEST(parallel_for_runs_out_of_memory_in_its_caller) {
  jmp_buf here;
  atomic_uint done = 0;
  volatile bool jumped = false;
  base_oom = &here;
  if (!setjmp(here))
    parallel_for(4, 100000, failing_job, &done);
  else
    jumped = true;
  CHECK(jumped && base_oom == &here && done < 100000);
  base_oom = NULL;
}

TEST(progress_is_silent_without_a_terminal) {
  progress p;
  progress_begin(&p, "work", 10);
  if (p.on) SKIP("standard error is a terminal");
  progress_step(&p, 5);
  progress_end(&p);
  CHECK(!p.last_ns);
}

TEST(text_agrees) {
  static const struct {
    const char *many, *want;
  } of[] = {{"1 plans are impossible", "1 plan is impossible"},
            {"21 plans: 1 entries, 0.1 plans", "21 plans: 1 entry, 0.1 plans"},
            {"ranks 0 and 1 are equal", "ranks 0 and 1 are equal"},
            {"`1 plans` has 1 axes", "`1 plans` has 1 axis"},
            {"(1 nodes)", "(1 node)"},
            {"2 or 1 are for 1 places", "2 or 1 are for 1 place"},
            {"ZeRO 1 splits dimension 1 has", "ZeRO 1 splits dimension 1 has"}};
  for (u32 k = 0; k < COUNT_OF(of); k++) {
    char text[64];
    snprintf(text, sizeof text, "%s", of[k].many);
    CHECK_STR(text_agree(text), of[k].want);
  }
}

TEST(text_bytes_scale) {
  arena *a = arena_new();
  CHECK_STR(text_bytes(a, 0), "0 B");
  CHECK_STR(text_bytes(a, 1023), "1023 B");
  CHECK_STR(text_bytes(a, 1023.9 * 1024), "1.00 MiB");
  CHECK_STR(text_bytes(a, 20e6), "19.1 MiB");
  CHECK_STR(text_bytes(a, 0x1p40), "1.00 TiB");
  arena_free(a);
}

// In parts: nothing is to be seen before the end, and after a failure nothing at all.
TEST(base_file_in_parts) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *path = "build/parts.txt";
  remove(path);
  file_out *f = file_begin(c, a, path);
  REQUIRE(f);
  file_put(f, "one ", 4);
  CHECK(!file_exists(path));
  file_put(f, "two", 3);
  CHECK(file_end(f));
  file_view v;
  CHECK(file_map(c, path, &v) && v.size == 7 && !memcmp(v.data, "one two", 7));
  file_unmap(&v);
  remove(path);
  f = file_begin(c, a, "/dev/full");
  REQUIRE(f);
  file_put(f, "x", 1);
  file_put(f, "y", 1);
  CHECK(!file_end(f) && diag_count(c) == 1);
  CHECK_STR(diag_get(c, 0).message, "cannot write '/dev/full': No space left on device");
  CHECK(!file_begin(c, a, "build/no such folder/parts.txt"));
  arena_free(a);
  ctx_free(c);
}

// A name and a suffix are the symbol that their text is, however often and with however many suffixes.
TEST(base_symbols_with_suffixes) {
  ctx *c = ctx_new();
  char suffix[8], both[64];
  for (u32 round = 0; round < 2; round++)
    for (u32 k = 0; k < 40; k++) {
      if (k)
        snprintf(suffix, sizeof suffix, ".%u", k);
      else
        suffix[0] = 0;
      CHECK(sym_with(c, (sym){0}, suffix).i == sym_of(c, suffix).i);
      for (u32 n = 0; n < 50; n++) {
        sym name = sym_fmt(c, "name%u", n + 10 * k);
        snprintf(both, sizeof both, "%s%s", sym_str(c, name), suffix);
        sym got = sym_with(c, name, suffix);
        CHECK_STR(sym_str(c, got), both);
        CHECK(got.i == sym_of(c, both).i);
      }
    }
  ctx_free(c);
}

TEST(base_divisors) {
  for (i64 n = 1; n < 200; n++)
    for (i64 at = -1; at <= n + 2; at++) {
      i64 below = 1, above = n;
      for (i64 d = 1; d <= n; d++)
        if (n % d == 0 && d <= at) below = d;
      for (i64 d = n; d >= 1; d--)
        if (n % d == 0 && d >= at) above = d;
      CHECK_EQ_I64(divisor_below(n, at), below);
      CHECK_EQ_I64(divisor_above(n, at), above);
    }
  CHECK_EQ_I64(divisor_below(1000003, 1000002), 1);
  CHECK_EQ_I64(divisor_above(((i64)1 << 40) * 3, ((i64)1 << 39) + 1), ((i64)1 << 38) * 3);
}
