// test_named.c - arrays by name, from files and folders: each goes where its name says, what does not fit is told, and then nothing
// has been taken.
#include "eval/eval.h"
#include "test.h"
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  const char *dir;
} bed;

// Its folder is empty.
static bed open_bed(void) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.dir = arena_printf(b.a, "%s/tmp-named", test_build());
  REQUIRE(dir_make(b.c, b.dir));
  DIR *d = opendir(b.dir);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') REQUIRE(!remove(arena_printf(b.a, "%s/%s", b.dir, e->d_name)));
  closedir(d);
  return b;
}
static void close_bed(bed *b) { arena_free(b->a), ctx_free(b->c); }
static const char *path_of(bed *b, const char *name) { return arena_printf(b->a, "%s/%s", b->dir, name); }

static eval_array two(bed *b, float first, float second) {
  float *v = NEWN(b->a, float, 2);
  v[0] = first, v[1] = second;
  return (eval_array){{.t = DT_F32, .nd = 1, .dim = {2}}, v};
}

enum { MOST = 16 };
// The targets of these names, of two floats each, from a file or folder; said: what is told, "": nothing, and all are taken.
static void takes(bed *b, const char *path, bool states, const char *const *name, u32 n, const float *want,
                  const char *says) {
  eval_array x[MOST];
  named_target t[MOST];
  named_arrays s;
  for (u32 k = 0; k < n; k++) x[k] = two(b, -1, -1), t[k] = (named_target){name[k], true, &x[k]};
  bool ok = named_open(b->c, b->a, path, states, &s);
  if (ok) ok = named_take(&s, t, n), named_close(&s);
  const char *told = diag_render(b->c, b->a);
  CHECK(ok == !*says && ok == !diag_errors(b->c));
  CHECK_MSG(strstr(told, says), "no '%s' in: %s", says, told);
  for (u32 k = 0; k < n; k++) {
    const float *v = x[k].data, got = ok ? want[k] : -1;
    CHECK_MSG(v[0] == got && v[1] == (ok ? got + 1 : -1), "%s is %g, %g", name[k], (double)v[0],
              (double)v[1]);
  }
  diag_clear(b->c);
}

// ---- files of a folder ---------------------------------------------------------------------------------------
TEST(named_files_have_names_of_any_kind) {
  static const char *const name[] = {"a", "layer/a", "layer%2Fa", "50%", "50%25", "%", "a.npy", "\xc3\xa9 b"};
  static const float want[] = {1, 2, 3, 4, 5, 6, 7, 8};
  bed b = open_bed();
  for (u32 k = 0; k < COUNT_OF(name); k++) {
    const eval_array x = two(&b, want[k], want[k] + 1);
    REQUIRE(npy_write(b.c, npy_path(b.a, b.dir, name[k]), &x));
  }
  takes(&b, b.dir, false, name, COUNT_OF(name), want, "");
  // Those of arrays are looked for alone.
  const eval_named other = {"b", two(&b, 9, 9)};
  REQUIRE(safetensors_write(b.c, path_of(&b, "b.safetensors"), &other, 1));
  takes(&b, b.dir, false, name, COUNT_OF(name), want, "");
  close_bed(&b);
}

TEST(named_files_are_one_set) {
  static const char *const name[] = {"a", "b", "c"};
  static const float want[] = {1, 3, 5};
  bed b = open_bed();
  takes(&b, b.dir, false, name, 3, want, "has no .npy and no .safetensors file");
  const eval_named item[] = {{"c", two(&b, 5, 6)}, {"a", two(&b, 1, 2)}, {"b", two(&b, 3, 4)}};
  REQUIRE(safetensors_write(b.c, path_of(&b, "1.safetensors"), item, 2));
  takes(&b, b.dir, false, name, 3, want, "there is no array 'b'");
  REQUIRE(safetensors_write(b.c, path_of(&b, "2.safetensors"), item + 2, 1));
  takes(&b, b.dir, false, name, 3, want, "");
  REQUIRE(safetensors_write(b.c, path_of(&b, "3.safetensors"), item + 1, 1));
  takes(&b, b.dir, false, name, 3, want, "'a' is in ");
  takes(&b, path_of(&b, "1.safetensors"), false, (const char *const[]){"a", "c"}, 2, (const float[]){1, 5},
        "");
  REQUIRE(npz_write(b.c, path_of(&b, "all.npz"), item, 3));
  takes(&b, path_of(&b, "all.npz"), false, name, 3, want, "");
  close_bed(&b);
}

// A checkpoint says how many of its tensors are weights.
TEST(named_weights_of_a_checkpoint) {
  static const char *const name[] = {"w", "w.m"};
  static const float want[] = {1, 3};
  bed b = open_bed();
  const eval_array x[] = {two(&b, 1, 2), two(&b, 3, 4)};
  const safetensors_entry e[] = {{"w", x[0].s}, {"w.m", x[1].s}};
  const safetensors_note note[] = {{CHECKPOINT_WEIGHTS, "1"}};
  safetensors_out *o = safetensors_begin(b.c, b.a, path_of(&b, "s.safetensors"), e, 2, note, 1);
  REQUIRE(o);
  for (u32 k = 0; k < 2; k++) safetensors_put(o, x[k].data);
  REQUIRE(safetensors_end(o));
  takes(&b, b.dir, true, name, 2, want, "");
  takes(&b, b.dir, false, name, 1, want, "");
  takes(&b, b.dir, true, name, 1, want, "the model has no 'w.m'");
  takes(&b, b.dir, false, name, 2, want, "there is no array 'w.m'");
  close_bed(&b);
}

// ---- what does not fit -----------------------------------------------------------------------------------------
TEST(named_arrays_must_fit) {
  static const char *const name[] = {"a", "w"};
  static const float want[] = {1, 3};
  static const i64 whole[4] = {3, 4, 5, 6};
  static const u16 half[2] = {0x4200, 0x4400};
  const struct {
    shape s;
    const void *data;
    const char *says;
  } cases[] = {{{.t = DT_F16, .nd = 1, .dim = {2}}, half, ""},
               {{.t = DT_I64, .nd = 1, .dim = {2}}, whole, "'w' is i64[2]; in the model it is f32[2]"},
               {{.t = DT_F16, .nd = 2, .dim = {2, 1}}, half, "'w' is f16[2,1]; in the model it is f32[2]"},
               {{.t = DT_F16, .nd = 0}, half, "'w' is f16[]; in the model it is f32[2]"},
               {{.t = DT_F64, .nd = 1, .dim = {3}}, whole, "'w' is f64[3]; in the model it is f32[2]"}};
  bed b = open_bed();
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    const eval_named item[] = {{"a", two(&b, 1, 2)}, {"w", {cases[k].s, (void *)(uintptr_t)cases[k].data}}};
    REQUIRE(safetensors_write(b.c, path_of(&b, "x.safetensors"), item, 2));
    takes(&b, path_of(&b, "x.safetensors"), false, name, 2, want, cases[k].says);
  }
  close_bed(&b);
}

// Some are told, of the others how many there are.
TEST(named_arrays_that_are_absent) {
  static const char *const name[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "only"};
  static const float want[11] = {0};
  bed b = open_bed();
  const eval_named item = {"only", two(&b, 0, 1)};
  REQUIRE(safetensors_write(b.c, path_of(&b, "x.safetensors"), &item, 1));
  takes(&b, path_of(&b, "x.safetensors"), false, name, 11, want, "and 2 more of ");
  takes(&b, path_of(&b, "x.safetensors"), false, name + 10, 1, want, "");
  takes(&b, path_of(&b, "none.safetensors"), false, name, 1, want, "No such file");
  close_bed(&b);
}

// Cut off anywhere, a file is told and nothing of it taken.
static void cut_everywhere(bed *b, const char *file, const char *const *name, u32 n, const float *want,
                           bool folder) {
  file_view f;
  const char *path = folder ? b->dir : path_of(b, file);
  takes(b, path, false, name, n, want, "");
  REQUIRE(file_map(b->c, path_of(b, file), &f));
  const size_t size = f.size;
  const char *copy = arena_dup(b->a, f.data, f.size);
  file_unmap(&f);
  for (size_t k = 0; k < size; k++) {
    REQUIRE(file_write(b->c, path_of(b, file), copy, k));
    takes(b, path, false, name, n, want, "error");
  }
  REQUIRE(!unlink(path_of(b, file)));
}
TEST(named_files_that_are_cut_off) {
  static const char *const name[] = {"a", "b"};
  static const float want[] = {1, 3};
  bed b = open_bed();
  const eval_named item[] = {{"a", two(&b, 1, 2)}, {"b", two(&b, 3, 4)}};
  REQUIRE(npz_write(b.c, path_of(&b, "x.npz"), item, 2));
  cut_everywhere(&b, "x.npz", name, 2, want, false);
  REQUIRE(safetensors_write(b.c, path_of(&b, "x.safetensors"), item, 2));
  cut_everywhere(&b, "x.safetensors", name, 2, want, false);
  REQUIRE(npy_write(b.c, path_of(&b, "a.npy"), &item[0].x) &&
          npy_write(b.c, path_of(&b, "b.npy"), &item[1].x));
  cut_everywhere(&b, "b.npy", name, 2, want, true);
  close_bed(&b);
}
