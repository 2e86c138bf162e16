// test_checkpoint.c - folders of checkpoints: which of them a save leaves, and which files a run goes on from. That a save is
// there whole or not at all is tested in tests/prop/crash.c.
#include "eval/eval.h"
#include "heddle.h"
#include "test.h"
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- a run of one rank -----------------------------------------------------------------------------------------
typedef struct {
  heddle_session *s;
  heddle_program *p;
  heddle_run *r;
  ctx *c;
  arena *a;
  const char *dir;
} bed;

static bool no_send(void *arg, uint32_t to, const void *data, int64_t n) {
  return (void)arg, (void)to, (void)data, n < 0;
}
static bool no_receive(void *arg, uint32_t from, void *data, int64_t n) {
  return (void)arg, (void)from, (void)data, n < 0;
}

// Its folder is empty.
static bed open_bed(const char *elements) {
  bed b = {.s = heddle_session_new(), .c = ctx_new(), .a = arena_new()};
  const heddle_plan_options o = {.train = true, .optimizer = {.name = "adam"}};
  const heddle_link alone = {.rank = 0, .send = no_send, .receive = no_receive};
  heddle_program *m = heddle_program_load(
      b.s, "mlp-xs:layers=2,hidden=16", &(heddle_load_options){.batch = 4, .loss = true, .dtype = elements});
  b.p = heddle_plan_apply(heddle_plan_make(m, "dp=1", &o));
  b.r = heddle_run_new(b.p, &alone, heddle_tensors_initial(b.p, 1));
  b.dir = arena_printf(b.a, "%s/tmp-checkpoint", test_build());
  REQUIRE(b.r && dir_make(b.c, b.dir));
  DIR *d = opendir(b.dir);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') REQUIRE(!remove(arena_printf(b.a, "%s/%s", b.dir, e->d_name)));
  closedir(d);
  return b;
}
static void close_bed(bed *b) { heddle_session_free(b->s), arena_free(b->a), ctx_free(b->c); }

static const char *path_of(bed *b, const char *name) { return arena_printf(b->a, "%s/%s", b->dir, name); }

static int by_text(const void *x, const void *y) {
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}
// The names in the folder, in order.
static const char *names(bed *b) {
  enum { MOST = 32 };
  const char *name[MOST];
  u32 n = 0;
  DIR *d = opendir(b->dir);
  for (struct dirent *e; (e = readdir(d)) && n < MOST;)
    if (e->d_name[0] != '.') name[n++] = arena_strdup(b->a, e->d_name);
  closedir(d);
  qsort(name, n, sizeof *name, by_text);
  strbuf text = {.a = b->a};
  for (u32 k = 0; k < n; k++) sb_fmt(&text, "%s%s", k ? " " : "", name[k]);
  return sb_str(&text);
}

static void save_at(bed *b, u64 step, u32 keep) {
  const heddle_checkpoint at = {.sample = (i64)step * 4, .seed = 1, .plan = "dp=1"};
  heddle_run_begin_at(b->r, step);
  CHECK_MSG(heddle_run_save(b->r, b->dir, &at, keep), "%s", heddle_session_messages(b->s));
}

// ---- what stays ------------------------------------------------------------------------------------------------
TEST(checkpoint_keeps_the_newest) {
  bed b = open_bed(NULL);
  for (u64 k = 1; k <= 5; k++) save_at(&b, k * k, 3);
  CHECK_STR(names(&b), "step-000009.safetensors step-000016.safetensors step-000025.safetensors");
  save_at(&b, 1000000, 2); // one digit more
  CHECK_STR(names(&b), "step-000025.safetensors step-1000000.safetensors");
  save_at(&b, 1000001, 0);
  CHECK_STR(names(&b), "step-000025.safetensors step-1000000.safetensors step-1000001.safetensors");
  CHECK_STR(heddle_checkpoint_find(b.s, b.dir), path_of(&b, "step-1000001.safetensors"));
  close_bed(&b);
}

// A job that begins again behind one that went further: what is later stays, and what was just saved.
TEST(checkpoint_keeps_later_steps) {
  bed b = open_bed(NULL);
  save_at(&b, 40, 0), save_at(&b, 50, 0);
  for (u64 k = 1; k <= 3; k++) save_at(&b, k, 1);
  CHECK_STR(names(&b), "step-000003.safetensors step-000040.safetensors step-000050.safetensors");
  save_at(&b, 40, 1);
  CHECK_STR(names(&b), "step-000040.safetensors step-000050.safetensors");
  close_bed(&b);
}

// What was cut short goes; what only looks like a checkpoint is somebody's, and counts for none.
TEST(checkpoint_leaves_files_of_others) {
  static const char *const own[] = {
      "best.safetensors",   "notes.tmp",          "step-000001.safetensors.bak", "step-000001.txt",
      "step-2.safetensors", "step-3.safetensors", "step-0000003.safetensors"};
  bed b = open_bed(NULL);
  for (u32 k = 0; k < COUNT_OF(own); k++) REQUIRE(file_write(b.c, path_of(&b, own[k]), "mine", 4));
  REQUIRE(file_write(b.c, path_of(&b, "step-000002.safetensors.0123abcd.tmp"), "part", 4));
  for (u64 k = 1; k <= 3; k++) save_at(&b, k, 1);
  CHECK_STR(names(&b), "best.safetensors notes.tmp step-0000003.safetensors step-000001.safetensors.bak "
                       "step-000001.txt step-000003.safetensors step-2.safetensors step-3.safetensors");
  close_bed(&b);
}

TEST(checkpoint_that_fails_takes_none_away) {
  bed b = open_bed(NULL);
  for (u64 k = 1; k <= 3; k++) save_at(&b, k, 0);
  const char *before = names(&b);
  const heddle_checkpoint at = {.plan = "dp=1"};
  heddle_run_begin_at(b.r, 4);
  for (i64 n = 1; n <= 3; n++) {
    base_io_fail_after = n;
    CHECK(!heddle_run_save(b.r, b.dir, &at, 1));
    base_io_fail_after = 0;
    CHECK_STR(names(&b), before);
  }
  REQUIRE(!mkdir(path_of(&b, "step-000004.safetensors"), 0777));
  CHECK(!heddle_run_save(b.r, b.dir, &at, 1));
  REQUIRE(!rmdir(path_of(&b, "step-000004.safetensors")));
  CHECK_STR(names(&b), before);
  close_bed(&b);
}

// ---- what a run goes on from -------------------------------------------------------------------------------------
static bool resumes(bed *b, const char *path, heddle_checkpoint *at) {
  heddle_tensors *t = heddle_tensors_initial(b->p, 2);
  const bool ok = heddle_tensors_resume(t, b->p, path, at);
  heddle_tensors_free(t);
  return ok;
}
static void said(bed *b, const char *text) {
  CHECK_MSG(strstr(heddle_session_messages(b->s), text), "no '%s' in: %s", text,
            heddle_session_messages(b->s));
  heddle_session_clear(b->s);
}

// The checkpoint of step 7 with one note changed; text NULL: it is left out.
static const char *with_note(bed *b, const char *key, const char *text) {
  const char *path = path_of(b, "changed.safetensors");
  safetensors f;
  REQUIRE(safetensors_open(b->c, b->a, path_of(b, "step-000007.safetensors"), &f));
  safetensors_entry *e = NEWN(b->a, safetensors_entry, f.n);
  safetensors_note *note = NEWN(b->a, safetensors_note, f.nnotes);
  u32 n = 0;
  for (u32 k = 0; k < f.n; k++) e[k] = (safetensors_entry){f.item[k].name, f.item[k].x.s};
  for (u32 k = 0; k < f.nnotes; k++) {
    if (!strcmp(f.note[k].key, "heddle.crc32") || (!strcmp(f.note[k].key, key) && !text)) continue;
    note[n] = f.note[k];
    if (!strcmp(note[n].key, key)) note[n].value = text;
    n++;
  }
  safetensors_out *o = safetensors_begin(b->c, b->a, path, e, f.n, note, n);
  REQUIRE(o);
  for (u32 k = 0; k < f.n; k++) safetensors_put(o, f.item[k].x.data);
  REQUIRE(safetensors_end(o));
  safetensors_close(&f);
  return path;
}

TEST(checkpoint_says_where_it_was) {
  static const struct {
    const char *key, *value;
    bool ok;
  } notes[] = {{"none", NULL, true},
               {"heddle.updates", NULL, true}, // of an older version
               {"heddle.plan", NULL, true},
               {"heddle.sample", "9223372036854775807", true},
               {"heddle.sample", "9223372036854775808", false},
               {"heddle.sample", "-1", false},
               {"heddle.sample", "28.", false},
               {"heddle.sample", "", false},
               {"heddle.sample", NULL, false},
               {"heddle.step", NULL, false},
               {"heddle.step", "seven", false},
               {"heddle.seed", NULL, false},
               {"heddle.shuffle", NULL, false}};
  bed b = open_bed(NULL);
  save_at(&b, 7, 0);
  for (u32 k = 0; k < COUNT_OF(notes); k++) {
    heddle_checkpoint at;
    const bool ok = resumes(&b, with_note(&b, notes[k].key, notes[k].value), &at);
    CHECK_MSG(ok == notes[k].ok, "%s %s: %s", notes[k].key, notes[k].value ? notes[k].value : "left out",
              heddle_session_messages(b.s));
    if (!ok) said(&b, "not a checkpoint of `heddle run --save`");
    if (ok) CHECK(at.step == 7 && at.seed == 1 && !at.shuffle);
  }
  close_bed(&b);
}

// What a run says of itself when it saves is what it hears when it goes on.
TEST(checkpoint_keeps_what_it_is_told) {
  bed b = open_bed(NULL);
  const heddle_checkpoint all[] = {
      {.sample = 5, .seed = 18446744073709551615u, .shuffle = true, .plan = "dp=1 \"quoted\""},
      {.sample = INT64_MAX, .seed = 0, .shuffle = false, .plan = NULL}};
  for (u32 k = 0; k < COUNT_OF(all); k++) {
    heddle_checkpoint at;
    heddle_run_begin_at(b.r, 3 + k);
    REQUIRE(heddle_run_save(b.r, b.dir, &all[k], 1));
    heddle_tensors *t = heddle_tensors_initial(b.p, 2);
    CHECK(heddle_tensors_resume(t, b.p, heddle_checkpoint_find(b.s, b.dir), &at));
    CHECK(at.step == 3 + k && at.sample == all[k].sample && at.seed == all[k].seed &&
          at.shuffle == all[k].shuffle);
    CHECK_STR(at.plan, all[k].plan ? all[k].plan : "");
    heddle_tensors_free(t);
  }
  close_bed(&b);
}

// Its weights alone are for any optimizer.
TEST(checkpoint_gives_weights_to_others) {
  bed b = open_bed(NULL);
  save_at(&b, 7, 0);
  const heddle_plan_options o = {.train = true, .optimizer = {.name = "sgd"}};
  heddle_program *m =
      heddle_program_load(b.s, "mlp-xs:layers=2,hidden=16", &(heddle_load_options){.batch = 4, .loss = true});
  heddle_program *p = heddle_plan_apply(heddle_plan_make(m, "dp=1", &o));
  heddle_tensors *t = heddle_tensors_initial(p, 2);
  heddle_checkpoint at;
  CHECK(heddle_tensors_weights(t, p, path_of(&b, "step-000007.safetensors")));
  CHECK(!heddle_tensors_resume(t, p, path_of(&b, "step-000007.safetensors"), &at));
  said(&b, "the model has not its 4: h.0.w.m");
  close_bed(&b);
}

// One that has no checksums was not written by a run, or somebody has rewritten it.
TEST(checkpoint_has_checksums) {
  bed b = open_bed(NULL);
  heddle_checkpoint at;
  file_view f;
  save_at(&b, 7, 0);
  REQUIRE(file_map(b.c, path_of(&b, "step-000007.safetensors"), &f));
  char *copy = arena_dup(b.a, f.data, f.size);
  for (size_t k = 0; k + 12 <= f.size; k++)
    if (!memcmp(copy + k, "heddle.crc32", 12)) copy[k + 11] = '3';
  REQUIRE(file_write(b.c, path_of(&b, "changed.safetensors"), copy, f.size));
  file_unmap(&f);
  CHECK(resumes(&b, path_of(&b, "step-000007.safetensors"), &at));
  CHECK(!resumes(&b, path_of(&b, "changed.safetensors"), &at));
  said(&b, "takes its weights alone");
  heddle_tensors *t = heddle_tensors_initial(b.p, 2);
  CHECK(heddle_tensors_weights(t, b.p, path_of(&b, "changed.safetensors")));
  close_bed(&b);
}

// ---- master weights --------------------------------------------------------------------------------------------
static bool find(const heddle_tensors *t, const char *name, heddle_tensor *out) {
  for (u32 k = 0; heddle_tensors_get(t, k, out); k++)
    if (!strcmp(out->name, name)) return true;
  return false;
}

// Weights from a file are what their masters begin with: else the first update would put the old ones back.
TEST(checkpoint_weights_become_masters) {
  bed b = open_bed("bf16");
  heddle_tensors *t = heddle_tensors_initial(b.p, 1);
  heddle_tensor w, m;
  float v[256];
  for (u32 k = 0; k < 256; k++) v[k] = (float)k;
  const eval_named item[] = {{"h.0.w", {{.t = DT_F32, .nd = 2, .dim = {16, 16}}, v}},
                             {"h.1.w", {{.t = DT_F32, .nd = 2, .dim = {16, 16}}, v}}};
  REQUIRE(t && find(t, "h.0.w", &w) && find(t, "h.0.w.master", &m) && !strcmp(m.dtype, "f32"));
  REQUIRE(safetensors_write(b.c, path_of(&b, "w.safetensors"), item, 2));
  CHECK(heddle_tensors_weights(t, b.p, path_of(&b, "w.safetensors")));
  CHECK(!memcmp(m.data, v, sizeof v));
  close_bed(&b);
}
