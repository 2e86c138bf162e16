// test_live.c - when values of a function are alive, and offsets for values that are alive for a time each.
#include "live/live.h"
#include "test.h"

// What live_pack promises, looked at value by value.
static void check(const live_value *v, u32 n, i64 align, live_packed r, const i64 *offset) {
  i64 end = 0, peak = 0;
  for (u32 i = 0; i < n; i++) {
    const i64 bytes = (v[i].bytes + align - 1) / align * align;
    CHECK(offset[i] >= 0 && offset[i] % align == 0);
    end = MAX(end, offset[i] + bytes);
    for (u32 j = 0; j < i; j++) {
      const bool together = v[i].from < v[j].to && v[j].from < v[i].to;
      const i64 other = (v[j].bytes + align - 1) / align * align;
      CHECK(!together || offset[i] + bytes <= offset[j] || offset[j] + other <= offset[i]);
    }
  }
  for (u32 i = 0; i < n; i++) { // the most is alive when something begins
    i64 alive = 0;
    for (u32 j = 0; j < n; j++)
      if (v[j].from <= v[i].from && v[i].from < v[j].to) alive += (v[j].bytes + align - 1) / align * align;
    peak = MAX(peak, alive);
  }
  CHECK(r.extent == end && r.peak == peak && r.extent >= r.peak);
}

TEST(live_packs_what_follows_each_other) {
  arena *a = arena_new();
  const live_value v[] = {{100, 0, 2}, {50, 1, 3}, {100, 2, 4}, {0, 1, 2}}; // the third where the first was
  i64 offset[4];
  const live_packed r = live_pack(a, v, 4, 1, offset);
  check(v, 4, 1, r, offset);
  CHECK(r.extent == 150 && offset[0] == offset[2]);
  CHECK(live_peak(a, v, 4, 64) == 128 + 64 && live_pack(a, v, 4, 64, offset).extent == 192);
  CHECK(live_pack(a, v, 0, 64, offset).extent == 0);
  arena_free(a);
}

// Sizes and lifetimes at random, and as a training step has them: what a forward leaves ends in the opposite order.
TEST(live_packs_without_overlap) {
  u64 rng = 1;
  double waste = 0, steps = 0;
  for (u32 k = 0; k < 300; k++) {
    arena *a = arena_new();
    const u32 n = 1 + (u32)(rng = hash_u64(rng, k)) % 120;
    const i64 align = (i64)1 << (rng >> 40) % 8;
    live_value *v = NEWN(a, live_value, n);
    i64 *offset = NEWN(a, i64, n);
    for (u32 i = 0; i < n; i++) {
      rng = hash_u64(rng, i);
      const u32 left = n - i, len = 1 + (u32)(rng >> 8) % (k % 2 ? MIN(left, 4u) : left);
      v[i] = (live_value){(i64)(rng >> 32) % 4000, i, i + len};
      if (k % 2 && i < n / 2 && rng % 3) v[i].to = n - i;
    }
    const live_packed r = live_pack(a, v, n, align, offset);
    check(v, n, align, r, offset);
    const double more = r.peak ? (double)r.extent / (double)r.peak - 1 : 0;
    waste = MAX(waste, more), steps += k % 2 ? more / 150 : 0;
    arena_free(a);
  }
  CHECK_MSG(waste < 0.12 && steps < 0.002, "at most %.1f %% more than the peak, of steps %.2f %% on average",
            100 * waste, 100 * steps);
}

// A pipeline's stage: what is summed up stays, microbatch after microbatch leaves activations that the next one still
// meets, and in between comes something large. That must lie now here, now there for all to fit into the peak.
TEST(live_packs_microbatches_into_their_peak) {
  enum { KEPT = 20, LEFT = 30, MICROBATCHES = 4, LARGE = 49152 };
  arena *a = arena_new();
  live_value v[KEPT + MICROBATCHES * (LEFT + 1)];
  i64 offset[COUNT_OF(v)];
  u32 n = 0;
  for (u32 k = 0; k < KEPT; k++) v[n++] = (live_value){9216 - 256 * (i64)(k % 3), 0, 1000};
  for (u32 m = 0; m < MICROBATCHES; m++) {
    const u32 begin = 10 + 100 * m;
    for (u32 k = 0; k < LEFT; k++) // the first to come is the last to go
      v[n++] = (live_value){k % 5 ? 384 : 1536, begin + k, begin + 180 - k};
    v[n++] = (live_value){LARGE, begin + 90, begin + 91};
  }
  const live_packed r = live_pack(a, v, n, 64, offset);
  check(v, n, 64, r, offset);
  CHECK_MSG(r.extent == r.peak, "%lld, the peak %lld", (long long)r.extent, (long long)r.peak);
  arena_free(a);
}

// ---- values of a function --------------------------------------------------------------------------------
static prog *program(ctx *c, const char *text) {
  prog *p = ir_parse(c, sym_of(c, "program"), text, strlen(text));
  CHECK_MSG(p, "%s", diag_render(c, ctx_arena(c)));
  REQUIRE(p);
  return p;
}

TEST(live_values_end_where_they_are_read_last) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = program(c, "func @two(%x: f32[4], %y: f32[4]) -> (f32[4], f32[4]) {\n"
                       "  %s = add %x, %y : f32[4]\n  return %s, %y\n}\n"
                       "func @main(%x: f32[4], %y: f32[4], %unread: f32[4], %back: f32[4]) -> (f32[4], "
                       "f32[4], f32[4], f32[4]) {\n"
                       "  %a = add %x, %x : f32[4]\n"                    // 1: %5
                       "  %nobody = neg %x : f32[4]\n"                   // 2: %6
                       "  %b = mul %a, %y : f32[4]\n"                    // 3: %7
                       "  %d, %e = call @two(%b, %b) : f32[4], f32[4]\n" // 4: %8, %9
                       "  %g = relu %d after %a : f32[4]\n"              // 5: %10
                       "  %h = neg %g : f32[4]\n"                        // 6: %11
                       "  return %h, %g, %back, %h\n}\n");
  static const u32 last[] = {0, 2, 3, 0, LIVE_RETURNED, 3, 2, 4, 5, 4, LIVE_RETURNED, LIVE_RETURNED},
                   inside[] = {0, 2, 3, 0, 0, 3, 2, 4, 5, 4, 6, 6};
  const func_info *f = func_get(p, p->main);
  const lifetimes l = live_of(a, f);
  REQUIRE(f->values.n == COUNT_OF(last));
  for (value v = 1; v < f->values.n; v++) {
    CHECK_MSG(l.last[v] == last[v], "value %u: %u, not %u", v, l.last[v], last[v]);
    CHECK_MSG(l.inside[v] == inside[v], "value %u inside: %u, not %u", v, l.inside[v], inside[v]);
  }
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

// In place only what is donated; a sum among ranks also where its operand ends, of several each its own.
TEST(live_results_take_places) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = program(c, "mesh @m [d=2]\n"
                       "func @main on @m(%x: f32[4]+d, %y: f32[4]+d, %w: f32[4], %g: f32[4], %m: "
                       "f32[4], %v: f32[4]) -> (f32[4], f32[4], f32[4], "
                       "f32[4], f32[4], f32[4], f32[4], f32[4]) {\n"
                       "  %a, %b = all_reduce %x, %y over d : f32[4], f32[4]\n"
                       "  %c = all_reduce %x over d : f32[4]\n"
                       "  %e = relu %a : f32[4]\n"
                       "  %h = relu !%b : f32[4]\n"
                       "  %w1, %m1, %v1 = adam !%w, %g, !%m, %v : f32[4], f32[4], f32[4]\n"
                       "  %eq = isnan %g : bool[4]\n"
                       "  return %a, %c, %e, %h, %w1, %m1, %v1, %c\n}\n");
  static const u32 taken[][3] = {{LIVE_NOWHERE, 1},    {0},           {LIVE_NOWHERE}, {0},
                                 {0, 2, LIVE_NOWHERE}, {LIVE_NOWHERE}};
  const func_info *f = func_get(p, p->main);
  const u32 *last = live_of(a, f).last;
  REQUIRE(f->body.n == COUNT_OF(taken));
  for (u32 k = 0; k < f->body.n; k++)
    for (u32 r = 0; r < f->body.v[k].nres; r++) {
      const u32 is = live_taken(f, &f->body.v[k], last, r);
      CHECK_MSG(is == taken[k][r], "instruction %u, result %u: %u, not %u", k + 1, r, is, taken[k][r]);
    }
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}
