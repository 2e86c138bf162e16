// test_pickle.c - Python's pickles as trees: the same data from every protocol, and what is refused. The files are made
// by tests/golden/pickle/make.py.
#include "diagnose/flight.h"
#include "../test.h"

static const json *load(ctx *c, arena *a, const char *name) {
  file_view f;
  const char *path = arena_printf(a, "tests/golden/pickle/%s.pkl", name);
  REQUIRE(file_map(c, path, &f));
  const json *j = pickle_parse(c, a, sym_of(c, arena_printf(a, "%s.pkl", name)), f.data, f.size);
  file_unmap(&f);
  return j;
}

static void put(strbuf *b, const json *j) {
  switch (j->kind) {
  case JSON_NULL: sb_put(b, "null"); break;
  case JSON_BOOL: sb_put(b, j->num != 0 ? "true" : "false"); break;
  case JSON_NUM: sb_put(b, j->str); break;
  case JSON_STR: sb_json_str(b, j->str); break;
  default:
    sb_char(b, j->kind == JSON_ARR ? '[' : '{');
    for (u32 k = 0; k < j->n; k++) {
      if (k) sb_put(b, j->kind == JSON_ARR ? ", " : ",\n ");
      if (j->kind == JSON_OBJ) sb_json_str(b, j->key[k]), sb_put(b, ": ");
      put(b, &j->item[k]);
    }
    sb_char(b, j->kind == JSON_ARR ? ']' : '}');
  }
}

TEST(pickle_protocols) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 k = 0; k < 6; k++) {
    const json *j = load(c, a, arena_printf(a, "data%u", k));
    CHECK_MSG(j, "%s", diag_render(c, a));
    if (!j) continue;
    strbuf b = {.a = a};
    put(&b, j), sb_char(&b, '\n');
    CHECK_GOLDEN("pickle/data.txt", sb_str(&b)); // one file for all of them
    const json *shared = json_get(j, "shared");
    CHECK(shared && shared->n == 2 && shared->item[0].item == shared->item[1].item);
  }
  CHECK_EQ_I64(diag_count(c), 0);
  arena_free(a);
  ctx_free(c);
}

TEST(pickle_kinds) {
  static const char *const name[] = {"bytes3", "sets4", "bytearray5", "python2", "framework"};
  ctx *c = ctx_new();
  arena *a = arena_new();
  strbuf b = {.a = a};
  for (u32 k = 0; k < COUNT_OF(name); k++) {
    const json *j = load(c, a, name[k]);
    CHECK_MSG(j, "%s", diag_render(c, a));
    sb_fmt(&b, "%s\n", name[k]);
    if (j) put(&b, j);
    sb_char(&b, '\n');
  }
  CHECK_GOLDEN("pickle/kinds.txt", sb_str(&b));
  arena_free(a);
  ctx_free(c);
}

// Every file that must be refused is, where the diagnostic says; none of them yields a tree.
TEST(pickle_refused) {
  static const char *const name[] = {
      "bad_reduce0", "bad_reduce2",  "bad_reduce4",  "bad_inst", "bad_inside", "bad_deep", "bad_text",
      "bad_int",     "bad_negative", "bad_frame",    "bad_memo", "bad_shared", "bad_own",  "bad_cut",
      "bad_end",     "bad_nothing",  "bad_mark",     "bad_key",  "bad_pair",   "bad_get",  "bad_gap",
      "bad_list",    "bad_opcode",   "bad_protocol", "bad_line"};
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(name); k++) {
    const u32 before = diag_errors(c);
    CHECK_MSG(!load(c, a, name[k]), "%s was read", name[k]);
    CHECK_MSG(diag_errors(c) == before + 1, "%s has no diagnostic", name[k]);
  }
  CHECK_GOLDEN("pickle/refused.txt", diag_render(c, a));
  arena_free(a);
  ctx_free(c);
}

// All opcodes that name, call or change objects, behind what they would find on the stack.
TEST(pickle_code) {
  static const u8 refused[] = {'c',  0x93, 'R',  'b', 'i', 'o',  0x81, 0x92,
                               0x82, 0x83, 0x84, 'P', 'Q', 0x97, 0x98};
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(refused); k++) {
    u8 text[] = "\x80\x05U\x02osU\x06system)}(?os\nsystem\n.";
    u8 *at = (u8 *)strchr((char *)text, '?');
    *at = refused[k];
    CHECK(!pickle_parse(c, a, sym_of(c, "code.pkl"), text, sizeof text - 1));
    const diag_item d = diag_get(c, diag_count(c) - 1);
    CHECK_EQ_I64(d.id, E_PICKLE);
    CHECK(strstr(d.message, "refused"));
    CHECK_STR(sym_str(c, loc_get(c, d.at)->node), arena_printf(a, "offset %d", (int)(at - text)));
  }
  arena_free(a);
  ctx_free(c);
}

// No byte beyond the table is taken for an opcode, whatever lies on the stack.
TEST(pickle_opcodes) {
  static const char known[] = "\x80\x95.(012N\x88\x89ILKMJ\x8a\x8b"
                              "FGSVTUX\x8c\x8d"
                              "BC\x8e\x96])\x8f}lt\x91"
                              "d\x85\x86\x87"
                              "ase\x90upqr\x94ghjc\x93Rbio\x81\x92\x82\x83\x84PQ\x97\x98";
  ctx *c = ctx_new();
  arena *a = arena_new();
  u32 unknown = 0;
  for (u32 k = 1; k < 256; k++) {
    if (strchr(known, (char)k)) continue;
    const u8 text[] = {0x80, 4, 'N', (u8)k, '.'};
    CHECK(!pickle_parse(c, a, sym_of(c, "byte.pkl"), text, sizeof text));
    CHECK(strstr(diag_get(c, diag_count(c) - 1).message, "is no opcode"));
    unknown++;
  }
  CHECK_EQ_I64(unknown + strlen(known), 255);
  arena_free(a);
  ctx_free(c);
}
