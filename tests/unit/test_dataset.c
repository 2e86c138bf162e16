// test_dataset.c - training data: every sample once in every epoch, each row where it belongs, and nothing of a file that the
// model cannot look up.
#include "eval/eval.h"
#include "kernel/kernel.h"
#include "test.h"
#include <stdlib.h>
#include <unistd.h>

// ---- files ---------------------------------------------------------------------------------------------------
static const char *in_folder(arena *a, const char *name) {
  return arena_printf(a, "%s/tmp-dataset/%s", test_build(), name);
}
static void put_file(ctx *c, arena *a, const char *name, const void *data, size_t n) {
  REQUIRE(dir_make(c, in_folder(a, ".")) && file_write(c, in_folder(a, name), data, n));
}

// A model that looks tokens up in a table of 400 rows: sequences of `row` tokens, `batch` of them in a step.
typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} bed;

static bed open_bed(i64 batch, i64 row) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  const char *text = arena_printf(
      b.a,
      "func @main(%%tokens: i64[%lld,%lld], %%labels: i64[%lld,%lld] label, %%at: i64[3], %%w: "
      "f32[400,8] weight) -> (f32[%lld,%lld,8], f32[%lld,%lld,8], f32[3,8]) {\n"
      "  %%x = gather %%w, %%tokens {axis=0} : f32[%lld,%lld,8]\n"
      "  %%y = gather %%w, %%labels {axis=0} : f32[%lld,%lld,8]\n"
      "  %%z = gather %%w, %%at {axis=0} : f32[3,8]\n"
      "  return %%x, %%y, %%z\n}\n",
      (long long)batch, (long long)row, (long long)batch, (long long)row, (long long)batch, (long long)row,
      (long long)batch, (long long)row, (long long)batch, (long long)row, (long long)batch, (long long)row);
  b.p = ir_parse(b.c, sym_of(b.c, "model"), text, strlen(text));
  REQUIRE(b.p);
  return b;
}
static void close_bed(bed *b) {
  prog_free(b->p);
  arena_free(b->a), ctx_free(b->c);
}
enum { TOKENS, LABELS, AT }; // parameters

// A folder with tokens, labels and indices that stay the same; NULL, 0: no such file.
static const char *folder_of(bed *b, const eval_array *tokens, const eval_array *labels,
                             const eval_array *at) {
  static const char *const name[] = {"tokens.npy", "labels.npy", "at.npy"};
  const eval_array *x[] = {tokens, labels, at};
  REQUIRE(dir_make(b->c, in_folder(b->a, "some")));
  for (u32 k = 0; k < COUNT_OF(x); k++) {
    const char *path = in_folder(b->a, arena_printf(b->a, "some/%s", name[k]));
    unlink(path);
    if (x[k]) REQUIRE(npy_write(b->c, path, x[k]));
  }
  return in_folder(b->a, "some");
}
static eval_array ints(i64 *v, i64 rows, i64 row) {
  return (eval_array){{.t = DT_I64, .nd = row ? 2 : 1, .dim = {rows, row}}, v};
}
static bool said(bed *b, const char *text) {
  const bool ok =
      CHECK_MSG(strstr(diag_render(b->c, b->a), text), "no '%s' in: %s", text, diag_render(b->c, b->a));
  diag_clear(b->c);
  return ok;
}
static i64 same[3] = {0, 5, 399};

// ---- the order of samples ----------------------------------------------------------------------------------
// Samples of one token each, sample k is the token k + 1: of every epoch each comes once, whatever their number is.
static void is_permutation(bed *b, i64 n, u64 seed, i64 epochs, i64 *order) {
  i64 v[300], x[2];
  const eval_array at = ints(same, 3, 0);
  for (i64 k = 0; k < n; k++) v[k] = k + 1;
  const eval_array tokens = ints(v, n, 1);
  dataset *d = dataset_open(b->p, b->a, folder_of(b, &tokens, &tokens, &at),
                            &(dataset_opts){.shuffle = true, .seed = seed});
  REQUIRE(d);
  CHECK_EQ_I64(dataset_samples(d), n);
  for (i64 e = 0; e < epochs; e++) {
    bool seen[302] = {0};
    for (i64 k = 0; k < n; k++) {
      REQUIRE(dataset_read(d, TOKENS, e * n + k, NULL, x));
      const bool once = x[0] >= 1 && x[0] <= n && !seen[x[0]];
      CHECK_MSG(once, "%lld samples, seed %llu: %lld in epoch %lld", (long long)n, (unsigned long long)seed,
                (long long)x[0], (long long)e);
      if (once) seen[x[0]] = true;
      order[e * n + k] = x[0];
    }
  }
  dataset_close(d);
}

TEST(dataset_shuffles_every_epoch) {
  bed b = open_bed(2, 1);
  i64 order[2 * 300], other[2 * 300];
  for (i64 n = 1; n < 90; n++) is_permutation(&b, n, (u64)n % 3, 1, order);
  for (i64 n = 255; n < 259; n++) is_permutation(&b, n, 7, 1, order);
  is_permutation(&b, 100, 7, 2, order);
  is_permutation(&b, 100, 8, 2, other);
  u32 epochs = 0, seeds = 0, stay = 0;
  for (u32 k = 0; k < 100; k++) {
    epochs += order[k] != order[100 + k];
    seeds += order[k] != other[k];
    stay += order[k] == k + 1;
  }
  CHECK_MSG(epochs > 80 && seeds > 80 && stay < 20, "%u, %u, %u of 100", epochs, seeds, stay);
  is_permutation(&b, 100, 7, 2, other); // again
  CHECK(!memcmp(order, other, sizeof *order * 200));
  close_bed(&b);
}

// More samples than 16 bits count: each once, in no order, and the second epoch in another one.
TEST(dataset_shuffles_many) {
  enum { N = 70000, STEP = 1000, SIDE = 300 };
  bed b = open_bed(STEP, 2);
  i64 *v = NEWN(b.a, i64, 2 * N), *x = NEWN(b.a, i64, 2 * STEP), *order = NEWN(b.a, i64, 2 * N);
  for (i64 k = 0; k < N; k++) v[2 * k] = k / SIDE, v[2 * k + 1] = k % SIDE;
  const eval_array tokens = ints(v, N, 2), at = ints(same, 3, 0);
  dataset *d = dataset_open(b.p, b.a, folder_of(&b, &tokens, &tokens, &at),
                            &(dataset_opts){.shuffle = true, .seed = 5});
  REQUIRE(d);
  u8 *seen = ZNEWN(b.a, u8, 2 * N);
  for (i64 first = 0; first < 2 * N; first += STEP) {
    REQUIRE(dataset_read(d, TOKENS, first, NULL, x));
    for (i64 k = 0; k < STEP; k++) {
      order[first + k] = x[2 * k] * SIDE + x[2 * k + 1];
      seen[first / N * N + order[first + k]]++;
    }
  }
  u32 once = 0, again = 0, up = 0;
  for (u32 k = 0; k < 2 * N; k++) once += seen[k] == 1;
  for (u32 k = 0; k < N; k++) again += order[k] == order[N + k], up += k && order[k] > order[k - 1];
  CHECK_EQ_I64(once, 2 * N);
  CHECK_MSG(again < 10 && up > N / 2 - N / 50 && up < N / 2 + N / 50, "%u again, %u up", again, up);
  dataset_close(d);
  close_bed(&b);
}

// All parameters have the same sample in a row, and a step that a rank has only some rows of leaves the others alone.
TEST(dataset_rows_belong_together) {
  enum { N = 23, ROW = 4, BATCH = 8 };
  bed b = open_bed(BATCH, ROW);
  i64 v[N * ROW], w[N * ROW], x[BATCH * ROW], y[BATCH * ROW], z[3];
  for (i64 k = 0; k < N * ROW; k++) v[k] = k, w[k] = 399 - k;
  const eval_array tokens = ints(v, N, ROW), labels = ints(w, N, ROW), at = ints(same, 3, 0);
  dataset *d = dataset_open(b.p, b.a, folder_of(&b, &tokens, &labels, &at),
                            &(dataset_opts){.shuffle = true, .seed = 3});
  REQUIRE(d);
  const u8 row[BATCH] = {0, 1, 1, 0, 0, 0, 0, 1};
  for (i64 first = 0; first < 3 * N; first += BATCH) { // over the ends of epochs
    for (u32 k = 0; k < BATCH * ROW; k++) x[k] = -1;
    REQUIRE(dataset_read(d, TOKENS, first, row, x) && dataset_read(d, LABELS, first, NULL, y));
    for (u32 i = 0; i < BATCH; i++)
      for (u32 k = 0; k < ROW; k++) {
        const i64 tokens_too = 399 - y[i * ROW + k];
        CHECK_EQ_I64(x[i * ROW + k], row[i] ? tokens_too : -1);
        CHECK(tokens_too % ROW == k);
      }
    REQUIRE(dataset_read(d, AT, first, NULL, z));
    CHECK(!memcmp(z, same, sizeof z));
  }
  dataset_close(d);
  close_bed(&b);
}

// ---- what fits ---------------------------------------------------------------------------------------------
TEST(dataset_rows_with_the_next_token) {
  bed b = open_bed(2, 4);
  i64 v[15], x[8], y[8];
  for (i64 k = 0; k < 15; k++) v[k] = 10 + k;
  eval_array tokens = ints(v, 3, 5), at = ints(same, 3, 0);
  dataset *d = dataset_open(b.p, b.a, folder_of(&b, &tokens, NULL, &at), &(dataset_opts){.shuffle = false});
  REQUIRE(d && dataset_samples(d) == 3);
  REQUIRE(dataset_read(d, TOKENS, 1, NULL, x) && dataset_read(d, LABELS, 1, NULL, y));
  for (u32 k = 0; k < 8; k++) {
    CHECK_EQ_I64(x[k], 10 + 5 * (1 + k / 4) + k % 4);
    CHECK_EQ_I64(y[k], x[k] + 1);
  }
  dataset_close(d);
  // Two tokens more are no such rows, and neither are rows as they are, for then there is no next token.
  tokens = ints(v, 2, 6);
  CHECK(!dataset_open(b.p, b.a, folder_of(&b, &tokens, NULL, &at), &(dataset_opts){.shuffle = false}));
  said(&b, "the array is [2,6]; the model takes samples of [N,4]");
  tokens = ints(v, 3, 4);
  CHECK(!dataset_open(b.p, b.a, folder_of(&b, &tokens, NULL, &at), &(dataset_opts){.shuffle = false}));
  said(&b, "there are no data for the model's label labels");
  close_bed(&b);
}

static const char *samples_said(bed *b, i64 rows) {
  i64 v[40] = {0};
  const eval_array tokens = ints(v, 3, 4), labels = ints(v, rows, 4), at = ints(same, 3, 0);
  dataset *d =
      dataset_open(b->p, b->a, folder_of(b, &tokens, &labels, &at), &(dataset_opts){.shuffle = false});
  const char *about = d ? dataset_about(d, b->a) : "refused";
  dataset_close(d);
  return about;
}
TEST(dataset_has_as_many_of_all) {
  bed b = open_bed(2, 4);
  CHECK(strstr(samples_said(&b, 3), "3 samples in "));
  CHECK_STR(samples_said(&b, 4), "refused");
  said(&b, "4 samples; ");
  close_bed(&b);
}

// ---- what the model can look up ------------------------------------------------------------------------------
// Reads the first step of every parameter; the last element of one of them is v. Labels are the next tokens, or there is a file.
static bool reads(bed *b, u32 param, i64 v, bool own_labels) {
  i64 t[10] = {0}, l[8] = {0}, same_too[3] = {0}, out[8];
  *(param == AT ? &same_too[2] : param == LABELS ? &l[7] : own_labels ? &t[7] : &t[9]) = v;
  const eval_array tokens = ints(t, 2, own_labels ? 4 : 5), labels = ints(l, 2, 4), at = ints(same_too, 3, 0);
  dataset *d = dataset_open(b->p, b->a, folder_of(b, &tokens, own_labels ? &labels : NULL, &at),
                            &(dataset_opts){.shuffle = false});
  bool ok = d;
  for (u32 k = 0; k <= AT && ok; k++) ok = dataset_read(d, k, 0, NULL, out);
  dataset_close(d);
  return ok;
}

TEST(dataset_refuses_what_the_model_cannot_look_up) {
  bed b = open_bed(2, 4);
  for (u32 own = 0; own < 2; own++) {
    CHECK(reads(&b, TOKENS, 399, own) && reads(&b, TOKENS, 0, own) && reads(&b, AT, 0, own));
    CHECK(!reads(&b, TOKENS, 400, own) && said(&b, "is 400; the model takes indices from 0 to 399"));
    CHECK(!reads(&b, TOKENS, -1, own) && said(&b, own ? "element 7 is -1" : "element 9 is -1"));
    CHECK(!reads(&b, AT, 400, own) && said(&b, "at.npy: at"));
    CHECK(!reads(&b, AT, -100, own) && said(&b, "element 2 is -100; the model takes indices from 0 to 399"));
  }
  // Labels of their own may be negative only where the model leaves those out; this one looks them up.
  CHECK(!reads(&b, LABELS, -100, true) && said(&b, "is -100; the model takes labels from 0 to 399"));
  CHECK(!reads(&b, LABELS, 400, true) && said(&b, "element 7 is 400"));
  close_bed(&b);
}

// Every type of tokens, by the end of the name or as it is said.
TEST(dataset_types_of_tokens) {
  static const struct {
    const char *name;
    dtype t;
  } types[] = {{"t.u8", DT_U8}, {"t.u16", DT_U16}, {"t.u32", DT_U32}, {"t.i32", DT_I32}, {"t.i64", DT_I64}};
  ctx *c = ctx_new();
  arena *a = arena_new();
  static const char text[] =
      "func @main(%tokens: i64[2,4], %labels: i64[2,4] label, %w: f32[256,8] weight) -> (f32[2,4,8]) {\n"
      "  %x = gather %w, %tokens {axis=0} : f32[2,4,8]\n  return %x\n}\n";
  prog *p = ir_parse(c, sym_of(c, "model"), text, sizeof text - 1);
  i64 v[17], x[8], y[8];
  u8 bytes[sizeof v];
  for (i64 k = 0; k < 17; k++) v[k] = 15 * k;
  for (u32 k = 0; k < COUNT_OF(types); k++)
    for (u32 named = 0; named < 2; named++) {
      const char *name = named ? types[k].name : "t.bin";
      ker_convert(bytes, types[k].t, v, DT_I64, 17);
      put_file(c, a, name, bytes, 17 * dtype_bytes(types[k].t));
      dataset *d =
          dataset_open(p, a, in_folder(a, name), &(dataset_opts){.raw = named ? DT_NONE : types[k].t});
      REQUIRE(d && dataset_samples(d) == 4);
      REQUIRE(dataset_read(d, 0, 2, NULL, x) && dataset_read(d, 1, 2, NULL, y));
      for (u32 j = 0; j < 8; j++) CHECK(x[j] == v[8 + j] && y[j] == v[9 + j]);
      dataset_close(d);
    }
  // 16 tokens are three sequences of 4 with the token after each.
  put_file(c, a, "t.u8", v, 16);
  dataset *d = dataset_open(p, a, in_folder(a, "t.u8"), &(dataset_opts){.shuffle = false});
  REQUIRE(d && dataset_samples(d) == 3);
  dataset_close(d);
  prog_free(p);
  arena_free(a), ctx_free(c);
}
