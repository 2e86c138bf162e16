// test_flight.c - flight recorder dumps and RAS output with known findings: every case of the shared data comes out with
// its kind, group, number and ranks, as JSON and as pickle.
#include "diagnose/diagnose.h"
#include "../test.h"
#include <stdlib.h>
#include <unistd.h>

// ---- a tree as JSON and as the pickle that PyTorch would write -------------------------------------------------
static void put_json(strbuf *b, const json *j) {
  switch (j->kind) {
  case JSON_NULL: sb_put(b, "null"); break;
  case JSON_BOOL: sb_put(b, j->num != 0 ? "true" : "false"); break;
  case JSON_NUM: sb_put(b, j->str); break;
  case JSON_STR: sb_json_str(b, j->str); break;
  default:
    sb_char(b, j->kind == JSON_ARR ? '[' : '{');
    for (u32 k = 0; k < j->n; k++) {
      if (k) sb_put(b, ", ");
      if (j->kind == JSON_OBJ) sb_json_str(b, j->key[k]), sb_put(b, ": ");
      put_json(b, &j->item[k]);
    }
    sb_char(b, j->kind == JSON_ARR ? ']' : '}');
  }
}

static void put_length(strbuf *b, u64 n, int bytes) {
  for (int k = 0; k < bytes; k++) sb_char(b, (char)(n >> 8 * k));
}
static void put_text(strbuf *b, const char *s) { sb_char(b, 'X'), put_length(b, strlen(s), 4), sb_put(b, s); }
static void put_pickle(strbuf *b, const json *j) {
  switch (j->kind) {
  case JSON_NULL: sb_char(b, 'N'); break;
  case JSON_BOOL: sb_char(b, j->num != 0 ? '\x88' : '\x89'); break;
  case JSON_NUM: sb_put(b, "\x8a\x08"), put_length(b, (u64)atoll(j->str), 8); break;
  case JSON_STR: put_text(b, j->str); break;
  default:
    sb_put(b, j->kind == JSON_ARR ? "](" : "}(");
    for (u32 k = 0; k < j->n; k++) {
      if (j->kind == JSON_OBJ) put_text(b, j->key[k]);
      put_pickle(b, &j->item[k]);
    }
    sb_char(b, j->kind == JSON_ARR ? 'e' : 'u');
  }
}

typedef struct {
  ctx *c;
  arena *a;
  char dir[64];
  u32 n;
  const char *path[64];
} bed;

static bed open_bed(void) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  snprintf(b.dir, sizeof b.dir, "%s/flight.XXXXXX", test_build());
  REQUIRE(mkdtemp(b.dir));
  return b;
}

static void add_file(bed *b, const char *name, const strbuf *text) {
  b->path[b->n] = arena_printf(b->a, "%s/%s", b->dir, name);
  REQUIRE(file_write(b->c, b->path[b->n], text->v, text->n));
  b->n++;
}

static void empty_bed(bed *b) {
  while (b->n) unlink(b->path[--b->n]);
}

static void close_bed(bed *b) {
  empty_bed(b);
  rmdir(b->dir);
  arena_free(b->a);
  ctx_free(b->c);
}

static const json *load(bed *b, const char *path) {
  file_view f;
  REQUIRE(file_map(b->c, path, &f));
  const json *j = json_parse(b->c, b->a, sym_of(b->c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  REQUIRE(j);
  return j;
}

// ---- what is expected ---------------------------------------------------------------------------------------------
static bool same_ranks(const hang_ranks *r, u32 n, const u32 *v) {
  return r->n == n && !memcmp(r->v, v, n * sizeof *v);
}

// "rank 0 all_reduce, rank 1 all_gather": ranks and what follows each.
static void check_mismatch(bed *b, const hang_finding *x, const char *said) {
  u32 n = 0;
  for (const char *p = said; (p = strstr(p, "rank ")); n++) {
    char word[64];
    unsigned rank;
    REQUIRE(sscanf(p, "rank %u %63[a-z_]", &rank, word) == 2);
    const bool who = x->who.n && x->who.v[0] == rank, other = x->wait.n && x->wait.v[0] == rank;
    CHECK_MSG(who || other, "rank %u is not in: %s", rank, x->text);
    CHECK_MSG(strstr(x->text, word), "no %s in: %s", word, x->text);
    p += 5;
  }
  CHECK_EQ_I64(x->who.n + x->wait.n, n);
  (void)b;
}

static void check_case(bed *b, const char *name, const char *expected, const hang *h) {
  char group[16], kind[64], from[32], to[32];
  unsigned rank, last;
  long long seq;
  int at = 0;
  if (!strncmp(expected, "ok, ", 4)) {
    CHECK_EQ_I64(h->nfound, 0);
    CHECK_EQ_I64(h->collectives, atoi(expected + 4));
    CHECK_EQ_I64(h->matched, h->collectives);
    return;
  }
  REQUIRE(sscanf(expected, "group %15s seq %lld: %n", group, &seq, &at) == 2 && at);
  CHECK_MSG(h->nfound == 1, "%s: %u findings", name, h->nfound);
  REQUIRE(h->nfound);
  const hang_finding *x = &h->found[0];
  CHECK_STR(sym_str(b->c, x->group), group);
  CHECK_EQ_I64(x->seq, seq);
  CHECK_STR(sym_str(b->c, x->op), "all_reduce");
  if (sscanf(expected + at, "rank %u did not join; last seq of rank %u is %u", &rank, &rank, &last) == 3) {
    CHECK_EQ_I64(x->kind, HANG_MISSING);
    CHECK(same_ranks(&x->who, 1, (u32[]){rank}));
    CHECK(same_ranks(&x->wait, 3, (u32[]){0, 1, 3}));
    bool seen = false;
    for (u32 k = 0; k < h->nstands; k++)
      if (same_ranks(&h->stand[k].ranks, 1, &rank))
        seen = h->stand[k].scheduled == last && h->stand[k].completed == last;
    CHECK(seen);
    return;
  }
  REQUIRE(sscanf(expected + at, "%63[A-Z_]", kind) == 1);
  CHECK_STR(hang_kind_rows[x->kind].pytorch, kind);
  if (sscanf(expected + at, "%*s [%31[0-9,]] against [%31[0-9,]]", from, to) == 2) {
    for (u32 k = 0; k < 2; k++) {
      char *s = k ? to : from, *comma = strchr(s, ',');
      CHECK(strstr(x->text, arena_printf(b->a, "[%.*s, %s]", (int)(comma - s), s, comma + 1)));
    }
    CHECK(same_ranks(&x->who, 1, (u32[]){1}) && same_ranks(&x->wait, 1, (u32[]){0}));
    return;
  }
  check_mismatch(b, x, expected + at);
}

TEST(flight_cases) {
  const char *path = test_data("traces/expected/flight_recorder/cases.json");
  bed b = open_bed();
  const json *cases = load(&b, path);
  CHECK(cases->n >= 5);
  for (u32 k = 0; k < cases->n; k++) {
    const json *dumps = json_get(&cases->item[k], "dumps"), *expected = json_get(&cases->item[k], "expected");
    REQUIRE(dumps && expected);
    for (u32 as_pickle = 0; as_pickle < 2; as_pickle++) {
      for (u32 r = 0; r < dumps->n; r++) {
        strbuf text = {.a = b.a};
        if (as_pickle) sb_put(&text, "\x80\x02");
        (as_pickle ? put_pickle : put_json)(&text, &dumps->item[r]);
        if (as_pickle) sb_char(&text, '.');
        add_file(&b, arena_printf(b.a, "nccl_trace_rank_%u", r), &text);
      }
      const char *dir = b.dir;
      const hang *h = hang_find(b.c, b.a, 1, &dir);
      CHECK_MSG(h, "%s", diag_render(b.c, b.a));
      if (h) check_case(&b, cases->key[k], expected->str, h);
      if (h) CHECK_EQ_I64(h->dumps, dumps->n);
      empty_bed(&b);
    }
  }
  CHECK_EQ_I64(diag_count(b.c), 0);
  close_bed(&b);
}

// "communicator 0x27a0: INCOMPLETE,MISMATCH; rank 5 of 10.0.0.2 dead; ranks 2,3 behind (AllReduce 6649 against 6650)"
TEST(flight_ras) {
  const char *path = test_data("traces/expected/flight_recorder/ras.json");
  bed b = open_bed();
  const json *j = load(&b, path);
  char hash[32], state[64], host[32], op[32], low[32], high[32];
  unsigned dead, behind[2];
  REQUIRE(sscanf(json_get(j, "expected")->str,
                 "communicator %31[0-9a-fx]: %63[A-Z,]; rank %u of %31s dead; ranks %u,%u behind "
                 "(%31[A-Za-z] %31[0-9] "
                 "against %31[0-9])",
                 hash, state, &dead, host, &behind[0], &behind[1], op, low, high) == 9);
  strbuf text = {.a = b.a};
  put_json(&text, json_get(j, "ras"));
  add_file(&b, "ras.json", &text);
  const hang *h = hang_find(b.c, b.a, 1, b.path);
  REQUIRE(h && h->ncomms == 1 && h->nfound == 2);
  CHECK_STR(sym_str(b.c, h->comm[0].hash), hash);
  CHECK_STR(h->comm[0].state, state);
  CHECK_EQ_I64(h->found[0].kind, HANG_DEAD);
  CHECK(same_ranks(&h->found[0].who, 1, &dead) && strstr(h->found[0].text, host));
  CHECK_EQ_I64(h->found[1].kind, HANG_BEHIND);
  CHECK(same_ranks(&h->found[1].who, 2, behind));
  CHECK_STR(sym_str(b.c, h->found[1].op), op);
  CHECK(strstr(h->found[1].text, low) && strstr(h->found[1].text, high));
  close_bed(&b);
}
