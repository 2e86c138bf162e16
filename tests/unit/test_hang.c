// test_hang.c - what follows from dumps that are made here: rings that have lost their beginning, ranks without a dump,
// orders, parts, messages, cycles; and which files are taken for dumps.
#include "diagnose/flight.h"
#include "../test.h"
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  hang_input in;
  strbuf b; // the dump that is being written
  u32 rank, record;
  const char *between;
} bed;

static bed open_bed(void) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.in.f.c = b.c, b.in.f.a = b.a;
  return b;
}
static void close_bed(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

// groups: members of "0", "1", .. such as "0,1|0,2".
static void begin(bed *b, u32 rank, const char *groups) {
  b->b = (strbuf){.a = b->a}, b->rank = rank, b->record = 0, b->between = "";
  sb_put(&b->b, "{\"version\": \"2.10\", \"pg_config\": {");
  for (u32 k = 0; *groups; k++) {
    const size_t n = strcspn(groups, "|");
    sb_fmt(&b->b, "%s\"%u\": {\"name\": \"%u\", \"desc\": \"g%u\", \"ranks\": \"[%.*s]\"}", k ? ", " : "", k,
           k, k, (int)n, groups);
    groups += n + (groups[n] == '|');
  }
  sb_put(&b->b, "}, \"entries\": [");
}

// state: "s", "r" (started) or "c".
static void entry(bed *b, u32 group, const char *op, i64 seq, const char *in, const char *out,
                  const char *type, const char *state) {
  const char *s = *state == 's' ? "scheduled" : *state == 'r' ? "started" : "completed";
  const bool p2p = !strncmp(op, "send", 4) || !strncmp(op, "recv", 4);
  sb_fmt(
      &b->b,
      "%s{\"record_id\": %u, \"pg_id\": %u, \"process_group\": [\"%u\", \"g%u\"], \"%s\": %lld, "
      "\"profiling_name\": \"nccl:%s\", \"time_created_ns\": %u, \"input_sizes\": [%s], \"input_dtypes\": "
      "[\"%s\"], "
      "\"output_sizes\": [%s], \"output_dtypes\": [\"%s\"], \"state\": \"%s\", \"is_p2p\": %s, \"frames\": "
      "[{\"name\": \"f\", \"filename\": \"t.py\", \"line\": %u}]}",
      b->between, b->record, group, group, group, p2p ? "p2p_seq_id" : "collective_seq_id", (long long)seq,
      op, 1000 + b->record, in, type, out, type, s, p2p ? "true" : "false", b->record);
  b->record++, b->between = ", ";
}
static void reduce(bed *b, u32 group, i64 seq, const char *state) {
  entry(b, group, "all_reduce", seq, "[4]", "[4]", "float32", state);
}

static void end(bed *b) {
  sb_put(&b->b, "]}");
  CHECK_MSG(hang_take(&b->in, sym_fmt(b->c, "dump%u", b->rank), b->rank, b->b.v, b->b.n), "%s",
            diag_render(b->c, b->a));
}

static const hang *answer(bed *b) {
  const hang *h = hang_of(&b->in);
  CHECK_MSG(h, "%s", diag_render(b->c, b->a));
  REQUIRE(h);
  return h;
}

static void check(const hang *h, u32 k, hang_kind kind, i64 seq, const char *who, const char *wait) {
  arena *a = arena_new();
  REQUIRE(k < h->nfound);
  const hang_finding *x = &h->found[k];
  CHECK_STR(hang_kind_rows[x->kind].name, hang_kind_rows[kind].name);
  CHECK_EQ_I64(x->seq, seq);
  CHECK_STR(hang_ranks_text(a, &x->who, 0), who);
  CHECK_STR(hang_ranks_text(a, &x->wait, 0), wait);
  arena_free(a);
}

// Rank 0's ring holds numbers 5 to 7 only, rank 1's 1 to 7: nothing is missing.
TEST(hang_ring) {
  bed b = open_bed();
  begin(&b, 0, "0,1"), b.record = 4;
  for (i64 k = 5; k <= 7; k++) reduce(&b, 0, k, "c");
  end(&b), begin(&b, 1, "0,1");
  for (i64 k = 1; k <= 7; k++) reduce(&b, 0, k, "c");
  end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 0);
  CHECK_EQ_I64(h->collectives, 7);
  close_bed(&b);
}

// Rank 1 came to number 3, which its ring has lost: nobody is missing.
TEST(hang_ring_waiting) {
  bed b = open_bed();
  begin(&b, 0, "0,1");
  for (i64 k = 1; k <= 7; k++) reduce(&b, 0, k, k < 3 ? "c" : "s");
  end(&b), begin(&b, 1, "0,1"), b.record = 4;
  for (i64 k = 5; k <= 7; k++) reduce(&b, 0, k, "s");
  end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_STUCK, 3, "0", "0");
  close_bed(&b);
}

// A rank whose ring has lost everything of a group may have come; one that has lost nothing has not.
TEST(hang_ring_of_other_groups) {
  for (u32 lost = 0; lost < 2; lost++) {
    bed b = open_bed();
    begin(&b, 0, "0,1|0,2"), reduce(&b, 0, 1, "r"), end(&b);
    begin(&b, 1, "0,1|1,3"), b.record = lost ? 100 : 0;
    for (i64 k = 50; k <= 52; k++) reduce(&b, 1, k, "c");
    end(&b);
    const hang *h = answer(&b);
    CHECK_EQ_I64(h->nfound, 1);
    check(h, 0, lost ? HANG_STUCK : HANG_MISSING, 1, lost ? "0" : "1", "0");
    CHECK(!strstr(h->found[0].text, "rank 1 may have come") == !lost);
    close_bed(&b);
  }
}

TEST(hang_no_dump) {
  bed b = open_bed();
  for (u32 r = 0; r < 3; r++) begin(&b, r, "0,1,2,3"), reduce(&b, 0, 1, "c"), reduce(&b, 0, 2, "r"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_NO_DUMP, 2, "3", "0-2");
  CHECK_EQ_I64(h->no_dump.n, 1);
  CHECK_EQ_I64(h->ranks, 4);
  close_bed(&b);
}

// Ranks 2 and 3 stop one after the other: the first number is the finding, and rank 3 waits there like the others.
TEST(hang_first_number) {
  bed b = open_bed();
  for (u32 r = 0; r < 4; r++) {
    begin(&b, r, "0,1,2,3");
    for (i64 k = 1; k <= (r == 2 ? 5 : r == 3 ? 6 : 8); k++) reduce(&b, 0, k, k < 6 ? "c" : "s");
    end(&b);
  }
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_MISSING, 6, "2", "0, 1, 3");
  CHECK_STR(sym_str(b.c, h->found[0].at), "t.py:4 f"); // its fifth call
  close_bed(&b);
}

TEST(hang_all_came) {
  bed b = open_bed();
  for (u32 r = 0; r < 2; r++) begin(&b, r, "0,1"), reduce(&b, 0, 1, "c"), reduce(&b, 0, 2, "r"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_STUCK, 2, "0, 1", "0, 1");
  close_bed(&b);
}

// A rank that is behind in another group explains why this one is not done.
TEST(hang_all_came_behind_another) {
  bed b = open_bed();
  begin(&b, 0, "0,1|0,2"), reduce(&b, 1, 1, "r"), reduce(&b, 0, 1, "s"), end(&b);
  begin(&b, 1, "0,1|0,2"), reduce(&b, 0, 1, "s"), end(&b);
  begin(&b, 2, "0,1|0,2"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_MISSING, 1, "2", "0");
  close_bed(&b);
}

// The first number that is not done counts: that a rank's program is further behind in later ones follows from it.
TEST(hang_ahead) {
  bed b = open_bed();
  for (u32 r = 0; r < 2; r++) {
    begin(&b, r, "0,1");
    for (i64 k = 1; k <= (r ? 6 : 9); k++) reduce(&b, 0, k, k < 5 ? "c" : "s");
    end(&b);
  }
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_STUCK, 5, "0, 1", "0, 1");
  close_bed(&b);
}

// Rank 2 waits in group 1 for rank 0, which is in a collective of group 0 that all came to: that is the cause.
TEST(hang_behind_all_came) {
  bed b = open_bed();
  for (u32 r = 0; r < 2; r++) begin(&b, r, "0,1|0,2"), reduce(&b, 0, 1, "r"), end(&b);
  begin(&b, 2, "0,1|0,2"), reduce(&b, 1, 1, "r"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 2);
  check(h, 0, HANG_STUCK, 1, "0, 1", "0, 1");
  check(h, 1, HANG_MISSING, 1, "0", "2");
  CHECK(h->found[1].follows);
  close_bed(&b);
}

// Rank 1 waits in group 1 for rank 0, which is only in a collective that both came to: device 1 runs the other first.
TEST(hang_device_order) {
  bed b = open_bed();
  begin(&b, 0, "0,1|0,1"), reduce(&b, 0, 1, "s"), end(&b);
  begin(&b, 1, "0,1|0,1"), reduce(&b, 1, 1, "r"), reduce(&b, 0, 1, "s"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 2);
  check(h, 0, HANG_STUCK, 1, "0, 1", "0, 1");
  check(h, 1, HANG_MISSING, 1, "0", "1");
  close_bed(&b);
}

TEST(hang_orders) {
  static const struct {
    const char *of0, *of1, *says;
  } row[] = {
      {"abc", "acb", "in the other order"}, {"abcd", "acd", "has left out"}, {"acd", "abcd", "once more"}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    bed b = open_bed();
    for (u32 r = 0; r < 2; r++) {
      begin(&b, r, "0,1");
      const char *ops = r ? row[k].of1 : row[k].of0;
      for (u32 i = 0; ops[i]; i++) {
        const char *op = ops[i] == 'a'   ? "broadcast"
                         : ops[i] == 'b' ? "all_reduce"
                         : ops[i] == 'c' ? "reduce"
                                         : "barrier";
        entry(&b, 0, op, i + 1, "[4]", "[4]", "float32", i ? "s" : "c");
      }
      end(&b);
    }
    const hang *h = answer(&b);
    CHECK_EQ_I64(h->nfound, 1);
    check(h, 0, HANG_ORDER, 2, "1", "0");
    CHECK_MSG(strstr(h->found[0].text, row[k].says), "%s", h->found[0].text);
    close_bed(&b);
  }
}

TEST(hang_types_of_elements) {
  bed b = open_bed();
  for (u32 r = 0; r < 3; r++)
    begin(&b, r, "0,1,2"), entry(&b, 0, "all_reduce", 1, "[4]", "[4]", r == 0 ? "bfloat16" : "float32", "s"),
        end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_DTYPE, 1, "0", "1, 2"); // most ranks are right
  CHECK(strstr(h->found[0].text, "bfloat16") && strstr(h->found[0].text, "float32"));
  close_bed(&b);
}

// Unequal parts that make the whole are no mismatch; others are. all_to_all may differ in any way.
TEST(hang_parts) {
  static const struct {
    const char *op, *in[2], *out[2];
    u32 found;
  } row[] = {{"all_gather", {"[4]", "[6]"}, {"[10]", "[10]"}, 0},
             {"all_gather", {"[4]", "[6]"}, {"[8]", "[8]"}, 1},
             {"reduce_scatter", {"[9]", "[9]"}, {"[4]", "[5]"}, 0},
             {"_reduce_scatter_base", {"[8]", "[10]"}, {"[4]", "[5]"}, 1},
             {"all_to_all", {"[3]", "[5]"}, {"[5]", "[3]"}, 0},
             {"ALLTOALL_BASE", {"[3]", "[5]"}, {"[5]", "[3]"}, 0},
             {"gather", {"[3]", "[3]"}, {"[6]", ""}, 0},
             {"scatter", {"[6]", ""}, {"[3]", "[3]"}, 0},
             {"broadcast", {"[6]", "[7]"}, {"[6]", "[7]"}, 1}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    bed b = open_bed();
    for (u32 r = 0; r < 2; r++)
      begin(&b, r, "0,1"), entry(&b, 0, row[k].op, 1, row[k].in[r], row[k].out[r], "float32", "c"), end(&b);
    const hang *h = answer(&b);
    CHECK_MSG(h->nfound == row[k].found, "%s %u: %u findings", row[k].op, k, h->nfound);
    if (row[k].found) check(h, 0, HANG_SIZE, 1, "1", "0");
    close_bed(&b);
  }
}

// Operations that were issued as one have one number and the state of what closes them.
TEST(hang_coalesced) {
  for (u32 more = 0; more < 2; more++) {
    bed b = open_bed();
    for (u32 r = 0; r < 2; r++) {
      begin(&b, r, "0,1");
      for (u32 k = 0; k < (r && more ? 3u : 2u); k++)
        entry(&b, 0, "broadcast", 1, "[4]", "[4]", "float32", "s");
      entry(&b, 0, "coalesced", 1, "", "", "float32", "c");
      end(&b);
    }
    const hang *h = answer(&b);
    CHECK_EQ_I64(h->collectives, 1);
    CHECK_EQ_I64(h->nfound, more);
    if (more) check(h, 0, HANG_SIZE, 1, "1", "0");
    CHECK_STR(h->stand[0].state, "completed");
    close_bed(&b);
  }
}

// What was done all the same is told once, and blocks nobody.
TEST(hang_done_all_the_same) {
  bed b = open_bed();
  for (u32 r = 0; r < 2; r++) {
    begin(&b, r, "0,1");
    for (i64 k = 1; k <= 3; k++)
      entry(&b, 0, "all_reduce", k, r ? "[2, 2]" : "[4]", r ? "[2, 2]" : "[4]", "float32", "c");
    if (!r) reduce(&b, 0, 4, "s");
    end(&b);
  }
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 2);
  check(h, 0, HANG_SIZE, 1, "1", "0");
  CHECK(h->found[0].done && strstr(h->found[0].text, "as many elements"));
  check(h, 1, HANG_MISSING, 4, "1", "0");
  CHECK(!h->found[1].follows);
  close_bed(&b);
}

TEST(hang_messages) {
  bed b = open_bed(); // group 0 is ranks 4 and 5: messages name ranks of the group
  begin(&b, 4, "4,5");
  entry(&b, 0, "send 0->1", 1, "[4]", "[4]", "float32", "c");
  entry(&b, 0, "send 0->1", 2, "[4]", "[4]", "float32", "s");
  end(&b), begin(&b, 5, "4,5");
  entry(&b, 0, "recv 1<-0", 1, "[4]", "[4]", "float32", "c");
  end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->messages, 2);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_MISSING, 2, "5", "4");
  CHECK_STR(sym_str(b.c, h->stand[0].op), "send to 5");
  close_bed(&b);
}

TEST(hang_message_sizes) {
  bed b = open_bed();
  begin(&b, 0, "0,1"), entry(&b, 0, "send 0->1", 1, "[4]", "[4]", "float32", "s"), end(&b);
  begin(&b, 1, "0,1"), entry(&b, 0, "recv 1<-0", 7, "[5]", "[5]", "float32", "s"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_SIZE, 1, "1", "0");
  close_bed(&b);
}

// Of rings that have lost their beginnings, the latest messages that are done on both sides are one.
TEST(hang_message_rings) {
  bed b = open_bed();
  begin(&b, 0, "0,1"), b.record = 50;
  for (u32 k = 0; k < 3; k++) entry(&b, 0, "send 0->1", 60 + k, "[4]", "[4]", "float32", k < 2 ? "c" : "s");
  end(&b), begin(&b, 1, "0,1");
  for (u32 k = 0; k < 9; k++) entry(&b, 0, "recv 1<-0", k, "[4]", "[4]", "float32", "c");
  end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 1);
  check(h, 0, HANG_MISSING, 10, "1", "0");
  close_bed(&b);
}

// Rank 0 waits in group 0 for rank 1, it in group 1 for rank 2, it in group 2 for rank 0. What waits for one of them
// follows.
TEST(hang_cycle) {
  static const char groups[] = "0,1|1,2|0,2|2,3";
  bed b = open_bed();
  for (u32 r = 0; r < 3; r++) begin(&b, r, groups), reduce(&b, r, 1, "r"), end(&b);
  begin(&b, 3, groups), reduce(&b, 3, 1, "s"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 5);
  check(h, 0, HANG_CYCLE, -1, "0-2", "0-2");
  for (u32 k = 1; k < h->nfound; k++) CHECK(h->found[k].kind == HANG_MISSING && h->found[k].follows);
  close_bed(&b);
}

// The one that nobody waits for comes first, whatever the clocks say.
TEST(hang_cause_first) {
  static const char groups[] = "0,1|1,2";
  bed b = open_bed();
  begin(&b, 0, groups), reduce(&b, 0, 1, "r"), end(&b); // waits for rank 1
  begin(&b, 1, groups), b.record = 0, reduce(&b, 1, 1, "c"), reduce(&b, 1, 2, "r"),
                        end(&b); // waits for rank 2
  begin(&b, 2, groups), reduce(&b, 1, 1, "c"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->nfound, 2);
  check(h, 0, HANG_MISSING, 2, "2", "1");
  check(h, 1, HANG_MISSING, 1, "1", "0");
  CHECK(!h->found[0].follows && h->found[1].follows);
  close_bed(&b);
}

// Groups of one name and other members are others.
TEST(hang_names_of_groups) {
  bed b = open_bed();
  for (u32 r = 0; r < 4; r++)
    begin(&b, r, r < 2 ? "0,1" : "2,3"),
        entry(&b, 0, r < 2 ? "all_reduce" : "reduce", 1, "[4]", "[4]", "float32", "c"), end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->groups, 2);
  CHECK_EQ_I64(h->nfound, 0);
  close_bed(&b);
}

// A group that names a rank twice has no members but those that have been there; what a status says to be done has begun.
TEST(hang_odd_dumps) {
  bed b = open_bed();
  begin(&b, 0, "1,1"), reduce(&b, 0, 2, "s"), reduce(&b, 0, 3, "s"), reduce(&b, 0, 2, "s");
  sb_put(&b.b, "], \"pg_status\": {\"0\": {\"last_completed_collective\": 9, \"last_started_collective\": "
               "\"-1\"}}, \"x\": [");
  end(&b);
  const hang *h = answer(&b);
  CHECK_EQ_I64(h->ranks, 1);
  CHECK_EQ_I64(h->nfound, 0); // all are done
  CHECK_EQ_I64(h->stand[0].started, 9);
  CHECK_EQ_I64(h->stand[0].scheduled, 9);
  close_bed(&b);
}

// ---- files ---------------------------------------------------------------------------------------------------------
static void put_file(bed *b, const char *dir, const char *name, const char *text) {
  REQUIRE(file_write(b->c, arena_printf(b->a, "%s/%s", dir, name), text, strlen(text)));
}

TEST(hang_files) {
  static const char dump[] = "{\"pg_config\": {\"0\": {\"ranks\": [0, 3]}}, \"entries\": []}";
  bed b = open_bed();
  char dir[64];
  snprintf(dir, sizeof dir, "%s/hang.XXXXXX", test_build());
  REQUIRE(mkdtemp(dir));
  put_file(&b, dir, "nccl_trace_rank_0", dump), put_file(&b, dir, "prefix3", dump);
  put_file(&b, dir, "trace.json", "{\"schemaVersion\": 1, \"distributedInfo\": {\"pg_config\": []}}");
  put_file(&b, dir, "notes.txt", "entries");
  const char *path = dir;
  const hang *h = hang_find(b.c, b.a, 1, &path);
  CHECK_MSG(h && h->dumps == 2 && !h->no_dump.n, "%s", diag_render(b.c, b.a));
  CHECK_EQ_I64(diag_count(b.c), 0);

  put_file(&b, dir, "nccl_trace_rank_1", "{\"pg_config\": {}, \"entries\": [{"); // cut off: left out
  h = hang_find(b.c, b.a, 1, &path);
  CHECK(h && h->dumps == 2);
  CHECK_EQ_I64(diag_errors(b.c), 0);
  CHECK_EQ_I64(diag_count(b.c), 1);
  diag_clear(b.c);

  put_file(&b, dir, "again_rank_3", dump); // a second dump of rank 3
  CHECK(!hang_find(b.c, b.a, 1, &path));
  CHECK(strstr(diag_render(b.c, b.a), "a second dump of rank 3"));
  diag_clear(b.c);

  const char *one = arena_printf(b.a, "%s/nccl_trace_rank_1", dir);
  CHECK(!hang_find(b.c, b.a, 1, &one));
  CHECK_EQ_I64(diag_get(b.c, 0).id, E_JSON);
  diag_clear(b.c);
  put_file(&b, dir, "dump", dump); // no rank anywhere
  one = arena_printf(b.a, "%s/dump", dir);
  CHECK(!hang_find(b.c, b.a, 1, &one));
  CHECK(strstr(diag_render(b.c, b.a), "which rank it is of"));
  static const char *const name[] = {"nccl_trace_rank_0", "prefix3",      "trace.json", "notes.txt",
                                     "nccl_trace_rank_1", "again_rank_3", "dump"};
  for (u32 k = 0; k < COUNT_OF(name); k++) unlink(arena_printf(b.a, "%s/%s", dir, name[k]));
  rmdir(dir);
  close_bed(&b);
}
