// test_sched_text.c - schedules as text: what is read, what is refused and in which words, and which task
// every place of a deadlock waits at.
#include "sched/sched.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  strbuf out; // diagnostics of all cases
} bed;
static bed bed_new(void) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.out.a = b.a;
  return b;
}
static void bed_free(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

// "## TITLE", then what is told.
static void told(bed *b, const char *title) {
  sb_fmt(&b->out, "## %s\n%s\n", title, diag_render(b->c, b->a));
  CHECK_MSG(diag_errors(b->c) == 1, "%s: %u errors", title, diag_errors(b->c));
  diag_clear(b->c);
}

static const sched *parsed(bed *b, const char *text) {
  return sched_parse(b->c, b->a, sym_of(b->c, "schedule.csv"), text, strlen(text));
}

static const char *printed(bed *b, const sched *s) {
  strbuf out = {.a = b->a};
  sched_print(s, &out);
  return sb_str(&out);
}

// ---- reading ------------------------------------------------------------------------------------------
static void check_text(const char *text, const char *want) {
  bed b = bed_new();
  const sched *s = parsed(&b, text);
  CHECK_MSG(s != NULL, "%s", diag_render(b.c, b.a));
  if (s) {
    CHECK_STR(printed(&b, s), want);
    CHECK(sched_check(b.c, s, (loc){0}, NULL));
    CHECK(sched_equal(s, parsed(&b, want)));
  }
  bed_free(&b);
}

TEST(sched_text_reads) {
  check_text("0F0,0B0", "0F0,0B0\n");
  check_text("0F0,0SEND_F0,,,0RECV_B0,0B0,0REDUCE_GRAD\r\n0UNSHARD,1RECV_F0, 1F0 ,1B0,1SEND_B0,\r\n\r\n\n",
             "0F0,0B0\n1F0,1B0\n");
  check_text("0F0,1F0,1I0,1W0,0B0,(0F1;1F1)OVERLAP_F_B,1B1,0B1\n",
             "0F0,1F0,1I0,1W0,0B0,(0F1;1F1)OVERLAP_F_B,1B1,0B1\n");
  check_text("# a comment\n0F0,0F1\n#\n1F1,1F0\n", "0F0,0F1\n1F1,1F0\n");
  check_text("# edges 0-2 1-2\n0F0,1F0\n2F0\n", "# edges 0-2 1-2\n0F0,1F0\n2F0\n");
  check_text("# edges 0>1\n0F0,0B0\n1F0,1B0\n", "# edges 0>1\n0F0,0B0\n1F0,1B0\n");
  check_text("# edges\n0F0\n1F0\n", "# edges\n0F0\n1F0\n");
  check_text("# edges 0-1 1-2\n0F0,1F0\n2F0\n", "0F0,1F0\n2F0\n");
  check_text("# updates 1\n0F0,1F0r1\n1F0,0F0r1v3\n", "# updates 1\n0F0,1F0r1\n1F0,0F0r1v3\n");
  check_text("0F0,0F0p1,0B0\n1F0,1F0p1,1B0\n", "0F0,0F0p1,0B0\n1F0,1F0p1,1B0\n");
  check_text("0F0,1F0\n0F0,2F0\n", "0F0,1F0\n0F0,2F0\n");
}

// What is read is what the text says.
TEST(sched_text_means) {
  bed b = bed_new();
  const sched *s = parsed(&b, "0F0,(0F1;1F0)OVERLAP_F_B,1I0,1W0,1F1,1B1,0B0,0B1\n2F0,2F1,2B0,2B1\n");
  REQUIRE(s != NULL);
  CHECK(s->nstages == 3 && s->nplaces == 2 && s->nmicro == 2 && s->nreplicas == 1 && s->backward);
  CHECK(s->nedges == 2 && s->edge[1].from == 1 && s->edge[1].to == 2);
  CHECK(s->split[1] && !s->split[0] && !s->split[2]);
  CHECK(s->at[1].n == 1 && s->at[1].v[0] == 0 && s->at[2].v[0] == 1);
  CHECK(s->seq[0].n == 9 && s->seq[0].v[1].paired && !s->seq[0].v[2].paired && s->seq[0].v[1].mb == 1);
  CHECK_STR(s->name, "csv");
  s = parsed(&b, "0F0,1F0\n0F0,2F0\n0F0\n");
  REQUIRE(s != NULL);
  CHECK(s->at[0].n == 3 && s->at[0].v[2] == 2 && s->at[2].v[0] == 1 && !s->backward);
  bed_free(&b);
}

// A schedule of a row equals what its text reads back as; and no two of these are equal.
TEST(sched_text_equality) {
  bed b = bed_new();
  static const char *const text[] = {"0F0,0F1\n1F0,1F1\n",
                                     "0F0,0F1\n1F1,1F0\n",
                                     "1F0,1F1\n0F0,0F1\n",
                                     "0F0,0F1,1F0,1F1\n",
                                     "# edges\n0F0,0F1\n1F0,1F1\n",
                                     "0F0,0F1\n(1F0;1F1)OVERLAP_F_B\n",
                                     "# updates 1\n0F0,0F1\n1F0,1F1v1\n",
                                     "0F0,0F0p1\n1F0,1F0p1\n",
                                     "0F0,0F0r1\n1F0,1F0r1\n",
                                     "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n",
                                     "0F0,0F1,0B0,0I1,0W1\n1F0,1F1,1B0,1B1\n"};
  const sched *s[COUNT_OF(text)];
  for (u32 i = 0; i < COUNT_OF(text); i++) {
    REQUIRE((s[i] = parsed(&b, text[i])) != NULL);
    for (u32 j = 0; j < i; j++) CHECK_MSG(!sched_equal(s[i], s[j]) && s[i]->key != s[j]->key, "%u %u", i, j);
  }
  const sched *row =
      sched_make(b.c, b.a, "gpipe", &(sched_shape){.places = 2, .chunks = 1, .micro = 2}, (loc){0});
  REQUIRE(row != NULL);
  CHECK(sched_equal(row, s[0]) && row->key == s[0]->key && !sched_equal(row, s[1]));
  bed_free(&b);
}

// ---- what is refused ----------------------------------------------------------------------------------
TEST(sched_text_mistakes) {
  static const char *const text[][2] = {
      {"nothing", ""},
      {"only a comment", "# edges\n"},
      {"no such kind", "0F0,0X0\n"},
      {"no microbatch", "0F0,0B\n"},
      {"no stage", "F0\n"},
      {"something behind", "0F0,0B0x\n"},
      {"an empty suffix", "0F0r\n"},
      {"half a pair", "(0F0)OVERLAP_F_B\n"},
      {"a transfer in a pair", "0F0,(0F1;0SEND_F0)OVERLAP_F_B\n"},
      {"a stage too large", "0F0\n65535F0\n"},
      {"a microbatch too large", "0F0\n1F99999999999\n"},
      {"a gap in the stages", "0F0\n9F0\n"},
      {"a gap in the microbatches", "0F0,0F2\n1F0,1F2\n"},
      {"a replica too large", "0F0,0F0r65535\n"},
      {"a pass too large", "0F0,0F0p255\n"},
      {"a version too large", "0F0v256\n"},
      {"a version without updates", "0F0,0F1v1,0B0,0B1v1\n"},
      {"a backward of another version", "# updates 1\n0F0,0B0,0F1v1,0I1v1,0W1\n"},
      {"an empty line inside", "0F0\n\n1F0\n"},
      {"empty lines before", "# edges 0-1\n\n \n0F0\n1F0\n"},
      {"a byte order mark", "\xEF\xBB\xBF"
                            "0F0\n"},
      {"a place without tasks", "0F0\n,,0RECV_B0\n1F0\n"},
      {"twice", "0F0,0F1,0F0\n1F0,1F1\n"},
      {"no backward", "0F0,0B0\n1F0\n"},
      {"no weight gradients", "0F0,0I0\n"},
      {"whole and in parts", "0F0,0B0,0W0\n"},
      {"on one of its places only", "0F0,0F1\n0F0\n"},
      {"three at once", "0F0,(0F1;0F2)OVERLAP_F_B,(0F3;0F4)OVERLAP_F_B,0F9\n"},
      {"a pair on two places", "(0F0;1F0)OVERLAP_F_B\n0F0\n"},
      {"a backward with a pass", "0F0,0B0p1,0F0p1\n"},
      {"an edge back", "# edges 1-0\n0F0\n1F0\n"},
      {"an edge out", "# edges 0-1 1-2\n0F0\n1F0\n"},
      {"an edge twice", "# edges 0-1 0-1\n0F0\n1F0\n"},
      {"no edge", "# edges 0-1 1\n0F0\n1F0\n"}};
  bed b = bed_new();
  for (u32 i = 0; i < COUNT_OF(text); i++) {
    CHECK_MSG(!parsed(&b, text[i][1]), "%s", text[i][0]);
    told(&b, text[i][0]);
  }
  static const char nul[] = "0F0\n1F0,\0001B0\n";
  CHECK(!sched_parse(b.c, b.a, sym_of(b.c, "schedule.csv"), nul, sizeof nul - 1));
  told(&b, "a NUL byte");
  CHECK_GOLDEN("sched/mistakes.txt", sb_str(&b.out));
  bed_free(&b);
}

TEST(sched_text_refused) {
  static const sched_edge loop[] = {{.from = 1, .to = 1}};
  static const struct {
    const char *title, *name;
    sched_shape shape;
  } make[] = {
      {"unknown", "interleave", {.places = 2, .chunks = 1, .micro = 2}},
      {"nothing near", "x", {.places = 2, .chunks = 1, .micro = 2}},
      {"no places", "1f1b", {.chunks = 1, .micro = 2}},
      {"no microbatches", "1f1b", {.places = 1, .chunks = 1}},
      {"chunks", "1f1b", {.places = 2, .chunks = 3, .micro = 2}},
      {"stages", "bfs", {.places = 40000, .chunks = 2, .micro = 1}},
      {"tasks", "zb-h1", {.places = 1024, .chunks = 1, .micro = 100000, .backward = true}},
      {"small groups", "interleaved", {.places = 3, .chunks = 2, .micro = 3, .group = 1, .backward = true}},
      {"a short group", "interleaved", {.places = 4, .chunks = 3, .micro = 5, .backward = true}},
      {"small groups, backward in parts",
       "zb-h1",
       {.places = 4, .chunks = 3, .micro = 2, .group = 1, .backward = true}},
      {"edges back", "bfs", {.places = 2, .chunks = 1, .micro = 1, .nedges = 1, .edge = loop}}};
  bed b = bed_new();
  for (u32 i = 0; i < COUNT_OF(make); i++) {
    CHECK_MSG(!sched_make(b.c, b.a, make[i].name, &make[i].shape, (loc){0}), "%s", make[i].title);
    told(&b, make[i].title);
  }
  CHECK_GOLDEN("sched/refused.txt", sb_str(&b.out));
  bed_free(&b);
}

// What only a program can get wrong: each fault on its own, in an else good schedule.
TEST(sched_text_checked) {
  bed b = bed_new();
  const u16 place[] = {0, 1, 7};
  const bool split[2] = {false, true};
  for (u32 i = 0; i < 9; i++) {
    sched s = *parsed(&b, "0F0,0B0\n1F0,1B0\n");
    sched_seq seq[2] = {s.seq[0], s.seq[1]};
    sched_places at[2] = {s.at[0], s.at[1]};
    sched_task t[2] = {seq[1].v[0], seq[1].v[1]};
    s.seq = seq, s.at = at, seq[1].v = t;
    static const char *const title[] = {"kind",     "stage",       "microbatch", "pair",   "no such place",
                                        "no place", "no backward", "not split",  "replica"};
    if (i == 0) t[1].kind = 9;
    if (i == 1) t[1].stage = 2;
    if (i == 2) t[1].mb = 1;
    if (i == 3) t[1].paired = true;
    if (i == 4) at[1].v = place + 2;
    if (i == 5) at[1].n = 0;
    if (i == 6) s.backward = false;
    if (i == 7) s.split = split;
    if (i == 8) t[1].replica = 1;
    CHECK_MSG(!sched_check(b.c, &s, (loc){0}, NULL), "%s", title[i]);
    told(&b, title[i]);
  }
  CHECK_GOLDEN("sched/checked.txt", sb_str(&b.out));
  bed_free(&b);
}

// ---- deadlocks ----------------------------------------------------------------------------------------
TEST(sched_text_deadlocks) {
  static const struct {
    const char *title, *text;
    sched_buffers buffers;
  } at[] = {
      {"a backward before its forward", "0B0,0F0\n", {0}},
      {"two places in opposite orders", "0F0,0F1\n1F1,1F0\n", {.depth = 1}},
      {"a backward before the next forward", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", {0}},
      {"two behind a circle of two",
       "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B0,2B1\n3F0,3F1,3B0,3B1\n",
       {0}},
      {"a pair that needs itself", "(0F0;0B0)OVERLAP_F_B\n", {0}},
      {"two stages on both places", "0F0,1F0\n1F0,0F0\n", {0}},
      {"both send at once", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", {.rendezvous = true}},
      {"no room for the second", "# edges 0-2 1-2\n0F0,0F1,1F0,1F1\n2F0,2F1\n", {.depth = 1}},
  };
  bed b = bed_new();
  for (u32 i = 0; i < COUNT_OF(at); i++) {
    const sched *s = parsed(&b, at[i].text);
    REQUIRE(s != NULL);
    sched_line line;
    CHECK_MSG(!sched_merge(b.c, b.a, s, &at[i].buffers, (loc){0}, &line), "%s", at[i].title);
    told(&b, at[i].title);
  }
  CHECK_GOLDEN("sched/deadlocks.txt", sb_str(&b.out));
  bed_free(&b);
}
