// parts.c - a search in parts against the whole: every report of the merged parts is that of the whole
// search, byte for byte, as text and as JSON, for any number of parts and threads; and files of parts that
// are cut off or changed are refused or read the same.
#include "heddle.h"
#include "plan/plan.h"
#include "search/internal.h"
#include "test.h"
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  const char *model, *machine, *strategy;
  int64_t batch, seq, memory; // memory 0: what the machine has
  bool train;
} small;

#define GPT2  "gpt2:layers=4,hidden=64,heads=4,vocab=128"
#define MIXED "1x2 v100 + 1x2 a100 ib=100Gb/s"
// Limits leave most plans, few plans, and in the last no plan.
static const small searches[] = {
    {"mlp-xs", "laptop", "mb=1,4,16", 1024, 0, 0, true},
    {"mlp-xs", "laptop", "mb=1,4,16", 1024, 0, 14000000, true},
    {"mlp-xs", "laptop", "schedule=* zero=0 mb=1,2,8", 1024, 0, 0, false},
    {"mlp-xs", "laptop", NULL, 1024, 0, 6000000, false},
    {GPT2, "laptop", "mb=1,2,3 recompute=none", 12, 16, 0, true},
    {GPT2, "1x2 v100", "mb=1,2,4", 8, 16, 1500000, true},
    {"examples/batchnorm.heddle", "1x4 v100", "bn=*", 0, 0, 0, true},
    {GPT2, "1x4 v100", "schedule=* coshard=1,2 mb=2,4", 8, 16, 0, true},
    {GPT2, "1x2 v100", "mb=1,2", 8, 16, 1000, true},
    // replicas of different make-up: most too slow, some impossible, too large
    {GPT2, MIXED, "dp=1 tp=1 pp=1 replicas=* recompute=none mb=4,6 zero=*", 24, 16, 0, true},
    {GPT2, MIXED, "replicas=1x2+1x2,1x1+1x1,1x3+1x1 recompute=none mb=2,4", 24, 16, 0, true},
    {GPT2, MIXED, "dp=1 tp=1 pp=1 replicas=* layers=* mb=4 overlap=*", 24, 16, 2500000, true},
    {GPT2, MIXED, "dp=1 tp=1 pp=1 replicas=1x2+1x2,2x1+1x2 mb=4", 24, 16, 800000, true},
    {GPT2, "1x1 v100 + 8x1 a100 ib=100Gb/s", "dp=1 tp=1 pp=1 replicas=* mb=9 recompute=none", 36, 16, 0,
     true},
    {GPT2, MIXED, "mb=1,2 dp.shares=* layers=*", 8, 16, 2000000, true},
    {GPT2, MIXED, "layers=* schedule=1f1b,interlaced coshard=1,2 mb=2,4 recompute=none,full", 16, 16, 1500000,
     true},
    {GPT2, "1x4 v100", "mb=1,2,4 layers=* recompute=none", 8, 16, 1300000, true},
    // no plan can run
    {GPT2, "1x4 v100", "dp=4 mb=1,2 dp.shares=equal", 6, 16, 0, true},
    {GPT2, "1x4 v100", "dp=1 tp=1 pp=4 mb=1", 1, 16, 1000, true},
    {GPT2, "1x4 v100 host=16GB/s hostmem=1GiB", NULL, 8, 16, 1000, true},
    {GPT2, "1x4 v100 host=16GB/s hostmem=1GiB", "pp=4", 8, 16, 1000, false},
    {GPT2, "1x4 v100 host=16GB/s hostmem=1MiB", "offload=params", 8, 16, 200000, true},
    {GPT2, "2x2 v100", NULL, 8, 16, 0, true},
    {GPT2, "1x4 v100", "dp=4 dp.shares=3/1/1/2 mb=1", 20, 16, 0, true},
    {GPT2, "1x4 v100", "tp=4 sp dp=1 pp=1 mb=3", 8, 16, 0, true},
    {GPT2, MIXED, "dp=1 tp=1 pp=1 replicas=1x3+1x1 mb=4", 24, 16, 0, true},
    {GPT2, MIXED, "dp=1 tp=1 pp=1 replicas=* mb=5", 24, 16, 0, true}};

static heddle_search_options options(heddle_session *s, const small *x, uint32_t top, int threads) {
  heddle_search_options o = {
      .strategy = x->strategy, .train = x->train, .memory_bytes = x->memory, .top = top, .threads = threads};
  CHECK(heddle_optimizer_find(s, "adam", &o.optimizer));
  return o;
}

static heddle_program *load(heddle_session *s, const small *x) {
  heddle_program *p = heddle_program_load(
      s, x->model, &(heddle_load_options){.batch = x->batch, .seq = x->seq, .loss = x->train});
  CHECK_MSG(p, "%s", heddle_session_messages(s));
  return p;
}

// What a search prints: its reports, or its diagnostics.
typedef struct {
  char *text[2];
} printed;
// The machine warns when it is loaded, which a merge does not.
static const char *error_of(const char *messages) {
  const char *error = strstr(messages, "error[");
  return error ? error : messages;
}
static printed print(heddle_session *s, heddle_search *f) {
  printed x;
  if (f)
    for (int k = 0; k < 2; k++) x.text[k] = strdup(heddle_search_report(f, k ? HEDDLE_JSON : HEDDLE_TEXT));
  else
    x = (printed){{strdup(error_of(heddle_session_messages(s))), strdup("")}};
  heddle_session_clear(s);
  return x;
}
static bool same(const printed *x, const printed *y) {
  return !strcmp(x->text[0], y->text[0]) && !strcmp(x->text[1], y->text[1]);
}
static void done(printed *x) { free(x->text[0]), free(x->text[1]); }

static char *path_of(u32 i) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/heddle-part-%d-%u.json", (int)getpid(), i);
  return path;
}

static void write_parts(heddle_session *s, const small *x, heddle_search_options o, u32 n) {
  heddle_program *p = load(s, x);
  heddle_machine *m = heddle_machine_load(s, x->machine);
  for (u32 i = 1; i <= n; i++) {
    o.part = i, o.parts = n;
    o.threads = i % 2 ? o.threads : 3 - o.threads; // the other number now and then
    heddle_search *f = heddle_search_run(p, m, &o);
    CHECK_MSG(f && heddle_session_write(s, path_of(i), heddle_search_part(f)), "part %u of %u: %s", i, n,
              heddle_session_messages(s));
    heddle_search_free(f);
  }
  heddle_session_clear(s); // every part warns as the whole does
}

static heddle_search *merge(heddle_session *s, u32 n, u32 top) {
  const char *path[16] = {0};
  for (u32 i = 0; i < n; i++) path[i] = strdup(path_of((i + n / 2) % n + 1)); // in another order
  heddle_search *f = heddle_search_merge(s, n, path, top);
  for (u32 i = 0; i < n; i++) free((char *)(uintptr_t)path[i]);
  return f;
}

static void remove_parts(u32 n) {
  for (u32 i = 1; i <= n; i++) unlink(path_of(i));
}

TEST(parts_are_the_whole) {
  static const u32 tops[] = {1, 3, 10}, dealt[] = {1, 2, 3, 7};
  u32 compared = 0, slow = 0;
  for (u32 i = 0; i < COUNT_OF(searches); i += test_step()) {
    heddle_session *s = heddle_session_new();
    printed whole[COUNT_OF(tops)];
    for (u32 t = 0; t < COUNT_OF(tops); t++)
      for (int threads = 1; threads <= 2; threads++) {
        const heddle_search_options o = options(s, &searches[i], tops[t], threads);
        heddle_search *f =
            heddle_search_run(load(s, &searches[i]), heddle_machine_load(s, searches[i].machine), &o);
        printed x = print(s, f);
        if (threads == 1) {
          whole[t] = x;
          slow += f && !strstr(x.text[1], "\"ruled_out_by_time\": 0,");
          continue;
        }
        CHECK_MSG(same(&x, &whole[t]), "%s on 2 threads:\n%s%s", searches[i].model, x.text[0],
                  whole[t].text[0]);
        done(&x);
      }
    for (u32 t = 0; t < COUNT_OF(tops); t++)
      for (u32 d = 0; d < COUNT_OF(dealt); d++) {
        write_parts(s, &searches[i], options(s, &searches[i], tops[t], 1 + (int)(d % 2)), dealt[d]);
        for (u32 less = 0; less <= t; less++) { // fewer than the parts kept, too
          printed x = print(s, merge(s, dealt[d], less < t ? tops[less] : 0));
          CHECK_MSG(same(&x, &whole[less]), "%s, %u parts, top %u of %u:\n%s%s%s", searches[i].model,
                    dealt[d], tops[less], tops[t], x.text[0], whole[less].text[0], x.text[1]);
          compared++;
          done(&x);
        }
        remove_parts(dealt[d]);
      }
    for (u32 t = 0; t < COUNT_OF(tops); t++) done(&whole[t]);
    heddle_session_free(s);
  }
  printf("  %u merged searches, %u with plans that are too slow\n", compared, slow);
  CHECK(!test_all_cases() || slow >= 3);
}

// That a bound has failed in one part is told of the whole.
TEST(parts_tell_that_a_bound_failed) {
  heddle_session *s = heddle_session_new();
  const small x = {"mlp-xs:layers=3", "1x2 v100", "mb=1,3 zero=*", 8, 0, 9000000, true};
  write_parts(s, &x, options(s, &x, 5, 1), 2);
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  file_view text;
  REQUIRE(file_map(c, path_of(2), &text));
  search_part *p = search_part_parse(c, a, sym_of(c, "part.json"), (const char *)text.data, text.size);
  REQUIRE(p);
  p->r.bound_failed = true;
  strbuf b = {.a = a};
  search_part_print(p, &b);
  CHECK(heddle_session_write(s, path_of(2), sb_str(&b)));
  printed whole = print(s, merge(s, 2, 0));
  CHECK_MSG(strstr(whole.text[1], "\"bound_failed\": true"), "%s", whole.text[1]);
  done(&whole);
  remove_parts(2);
  ctx_free(c);
  heddle_session_free(s);
}

// ---- files that are not as they were written ------------------------------------------------------------
static const char *part_text(heddle_session *s) {
  const small x = {"mlp-xs:layers=3", "1x2 v100", "mb=1,3 zero=*", 8, 0, 9000000, true};
  heddle_search_options o = options(s, &x, 5, 1);
  o.part = 1, o.parts = 1;
  return heddle_search_part(heddle_search_run(load(s, &x), heddle_machine_load(s, x.machine), &o));
}

// As printed again; NULL: refused, with a diagnostic.
static const char *read_back(ctx *c, arena *a, const char *text, size_t n) {
  const u32 before = diag_errors(c);
  search_part *p = search_part_parse(c, a, sym_of(c, "part.json"), text, n);
  strbuf b = {.a = a};
  CHECK_MSG(p || diag_errors(c) > before, "refused without a word");
  if (p) search_part_print(p, &b);
  return p ? sb_str(&b) : NULL;
}

TEST(parts_that_were_changed_are_refused_or_read_the_same) {
  heddle_session *s = heddle_session_new();
  const char *text = part_text(s);
  REQUIRE(text && strstr(text, "too large") && strstr(text, "fits") && strstr(text, "impossible_reasons"));
  const size_t n = strlen(text);
  u64 rng = 1;
  for (size_t i = 0; i <= n; i++)
    for (u32 how = 0; how < 3; how++) { // cut off at i, one bit of byte i, any byte there
      ctx *c = ctx_new();
      arena *a = arena_new();
      char *copy = arena_strndup(a, text, n);
      if (how && i < n) copy[i] = how == 1 ? (char)(copy[i] ^ 1 << i % 8) : (char)rng_next(&rng);
      const char *read = read_back(c, a, copy, how ? n : i);
      CHECK_MSG(!read || !strcmp(read, text), "byte %zu, change %u: read as another part", i, how);
      CHECK_MSG((read != NULL) == (how ? !memcmp(copy, text, n) : i == n), "byte %zu, change %u", i, how);
      arena_free(a);
      ctx_free(c);
    }
  heddle_session_free(s);
}

// Changed, with a checksum that is right again: what is read can be printed and read.
TEST(parts_that_were_forged_are_refused_or_read) {
  static const char *const words[] = {"0",    "-1",  "null", "99999999999999999999", "[]", "{}",
                                      "\"\"", "nan", "dp=0"};
  heddle_session *s = heddle_session_new();
  const char *text = part_text(s);
  REQUIRE(text);
  const size_t n = (size_t)(strstr(text, ",\n  \"checksum\"") - text);
  u64 rng = 2;
  u32 accepted = 0;
  for (u32 i = 0; i < 3000; i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    strbuf b = {.a = a};
    const size_t at = 20 + rng_next(&rng) % (n - 20), some = rng_next(&rng) % 4 * (rng_next(&rng) % 30);
    const size_t skip = MIN(some, n - at);
    sb_putn(&b, text, at);
    if (i % 3) sb_put(&b, words[rng_next(&rng) % COUNT_OF(words)]);
    if (i % 3 == 2) sb_char(&b, (char)(rng_next(&rng) % 94 + 33));
    sb_putn(&b, text + at + skip, n - at - skip);
    const u64 sum = hash_bytes(b.v, b.n, 0);
    sb_fmt(&b, ",\n  \"checksum\": \"%016llx\"\n}\n", (unsigned long long)sum);
    const char *read = read_back(c, a, b.v, b.n);
    const char *again = read ? read_back(c, a, read, strlen(read)) : NULL;
    CHECK_MSG(!read || (again && !strcmp(read, again)), "%s", b.v);
    accepted += read != NULL;
    arena_free(a);
    ctx_free(c);
  }
  printf("  %u of 3000 forged parts were read\n", accepted);
  CHECK(accepted > 10 && accepted < 2000);
  heddle_session_free(s);
}
