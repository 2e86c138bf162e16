// test_layout.c - axes, meshes, groups, layouts, pieces and their text, against their definitions read
// literally.
#include "layout/layout.h"
#include "test.h"
#include <stdlib.h>

static struct {
  ctx *c;
  space *s;
  u64 seed;
} t;

static void open_space(void) {
  t.c = ctx_new();
  t.s = space_new(t.c, ctx_arena(t.c));
  t.seed = 1;
}

static void close_space(void) { ctx_free(t.c); }

static u8 axis(const char *name, u32 size) { return axis_add(t.s, sym_of(t.c, name), size, false); }

static mesh mesh_over(const char *name, const u8 *axes, u32 n) {
  return mesh_add(t.s, sym_of(t.c, name), axes, n, 0, NULL);
}

static u32 pick(u32 n) { return (u32)(rng_next(&t.seed) % n); }

static const char *printed(layout l, u32 nd, const i64 *dims) {
  strbuf b = {.a = ctx_arena(t.c)};
  layout_print(t.s, l, nd, dims, &b);
  return sb_str(&b);
}

static const char *group_text(group g) {
  strbuf b = {.a = ctx_arena(t.c)};
  group_print(t.s, g, &b);
  return sb_str(&b);
}

// The layout of a text, which must be read to its end.
static layout parsed(const char *text, u32 *nd, i64 *dims) {
  layout l = {0};
  const char *error;
  bool ok = layout_parse(t.s, &text, nd, dims, &l, &error);
  CHECK_MSG(ok && *text == 0, "%s at '%s'", ok ? "read too little" : error, text);
  return l;
}

static const char *last_message(void) {
  return diag_count(t.c) ? diag_get(t.c, diag_count(t.c) - 1).message : "";
}

// ---- axes, meshes, groups ----------------------------------------------------------------------------

TEST(layout_axes) {
  open_space();
  u8 kv = axis("kv", 4), rep = axis("rep", 2), got[4];
  u8 mb = axis_add(t.s, sym_of(t.c, "mb"), 8, true);
  CHECK_EQ_I64(axis_count(t.s), 3);
  CHECK(axis_get(t.s, mb)->temporal && !axis_get(t.s, kv)->temporal);
  CHECK(axis_alias(t.s, sym_of(t.c, "tp"), (u8[]){kv, rep}, 2));
  CHECK_EQ_I64(axis_expand(t.s, sym_of(t.c, "tp"), got, 4), 2);
  CHECK(got[0] == kv && got[1] == rep);
  CHECK_EQ_I64(axis_expand(t.s, sym_of(t.c, "rep"), got, 4), 1);
  CHECK_EQ_I64(axis_expand(t.s, sym_of(t.c, "none"), got, 4), 0);
  CHECK_EQ_I64(axis("tp", 3), 0);
  CHECK_STR(last_message(), "axis 'tp' is defined twice");
  CHECK_EQ_I64(axis("zero", 0), 0);
  CHECK_EQ_I64(axis("huge", 65536), 0);
  CHECK(!axis_alias(t.s, sym_of(t.c, "twice"), (u8[]){kv, kv}, 2));
  CHECK_EQ_I64(diag_errors(t.c), 4);
  while (axis_count(t.s) < AXES_MAX - 1) axis(arena_printf(ctx_arena(t.c), "x%u", axis_count(t.s)), 2);
  CHECK_EQ_I64(axis("more", 2), 0);
  close_space();
}

TEST(layout_meshes) {
  open_space();
  u8 pp = axis("pp", 2), tp = axis("tp", 3), mb = axis_add(t.s, sym_of(t.c, "mb"), 8, true);
  mesh m = mesh_over("m", (u8[]){pp, tp}, 2);
  CHECK_EQ_I64(mesh_get(t.s, m)->nranks, 6);
  CHECK_EQ_I64(mesh_find(t.s, sym_of(t.c, "m")).i, m.i);
  CHECK_EQ_I64(mesh_over("m", &pp, 1).i, 0);
  CHECK_EQ_I64(mesh_over("time", &mb, 1).i, 0);
  CHECK_EQ_I64(mesh_over("twice", (u8[]){pp, pp}, 2).i, 0);
  CHECK_EQ_I64(mesh_add(t.s, sym_of(t.c, "same"), &tp, 1, 0, (u32[]){4, 9, 4}).i, 0);
  CHECK_STR(last_message(), "mesh @same: rank 4 is at position 0 and at position 2");
  mesh next = mesh_add(t.s, sym_of(t.c, "next"), &tp, 1, 0, (u32[]){4, 5, 6});
  CHECK(mesh_get(t.s, next)->ranks == NULL && mesh_get(t.s, next)->first == 4);
  CHECK_EQ_I64(mesh_count(t.s), 2);
  u8 big[13] = {0};
  for (u32 i = 0; i < 13; i++) big[i] = axis(arena_printf(ctx_arena(t.c), "big%u", i), 512);
  CHECK_EQ_I64(mesh_over("big", big, 3).i, 0);
  CHECK_STR(last_message(), "mesh @big has more than 4194304 ranks");
  CHECK_EQ_I64(mesh_over("many", big, 13).i, 0);
  CHECK_STR(last_message(), "mesh @many has 13 axes; at most 12 are possible");
  CHECK(!axis_alias(t.s, sym_of(t.c, "product"), big, 13) && !axis_alias(t.s, sym_of(t.c, "tp"), big, 2));
  coords time = {{0}}, at;
  time.at[mb] = 5;
  coords_of(t.s, group_all(t.s, m), 4, &time, &at);
  CHECK(at.at[mb] == 5 && at.at[pp] == 1 && at.at[tp] == 1);
  mesh one = mesh_over("one", NULL, 0);
  CHECK_EQ_I64(group_get(t.s, group_all(t.s, one))->nranks, 1);
  close_space();
}

// Numbering of members, coordinates and subgroups of random groups, cell by cell.
static void check_group(mesh m, const group_axis *fix, u32 nfix) {
  const mesh_info *mi = mesh_get(t.s, m);
  group g = group_of(t.s, m, fix, nfix);
  REQUIRE(g.i);
  CHECK_EQ_I64(group_of(t.s, m, fix, nfix).i, g.i);
  const group_info *gi = group_get(t.s, g);
  u32 at[MESH_AXES] = {0}, member = 0;
  for (u32 cell = 0; cell < mi->nranks; cell++) {
    u32 rest = cell;
    bool in = true;
    u16 coord[MESH_AXES], want[MESH_AXES];
    for (u32 i = mi->naxes; i-- > 0; rest /= axis_size(t.s, mi->axis[i]))
      at[i] = rest % axis_size(t.s, mi->axis[i]);
    for (u32 i = 0; i < mi->naxes; i++) {
      coord[i] = (u16)at[i];
      want[i] = (u16)at[i];
      for (u32 k = 0; k < nfix; k++) {
        if (fix[k].axis != mi->axis[i]) continue;
        if (fix[k].at >= 0) in = in && (u32)fix[k].at == at[i], coord[i] = 0;
        if (fix[k].at != -2) continue;
        u32 p = 0;
        while (p < fix[k].nonly && fix[k].only[p] != at[i]) p++;
        in = in && p < fix[k].nonly;
        coord[i] = (u16)p;
        want[i] = fix[k].nonly > 1 ? (u16)p : want[i];
      }
    }
    u32 rank = mi->ranks ? mi->ranks[cell] : mi->first + cell;
    int found = group_member(t.s, g, rank);
    CHECK((found >= 0) == in);
    if (found < 0) continue;
    CHECK_EQ_I64(gi->ranks[found], rank);
    coords c;
    coords_of(t.s, g, (u32)found, NULL, &c);
    for (u32 i = 0; i < mi->naxes; i++) {
      CHECK_EQ_I64(group_coord(t.s, g, (u32)found, mi->axis[i]), coord[i]);
      CHECK_EQ_I64(c.at[mi->axis[i]], want[i]);
    }
    member++;
  }
  CHECK_EQ_I64(member, gi->nranks);
  u8 over[MESH_AXES];
  u32 nover = 0, offset[64];
  for (u32 i = mi->naxes; i-- > 0;)
    if (pick(2)) over[nover++] = mi->axis[i];
  u32 n = group_offsets(t.s, g, over, nover, offset, 64);
  for (u32 k = 0; k < gi->nranks; k++) {
    u32 lead = group_lead(t.s, g, k, over, nover), inside = 0;
    for (u32 e = 0; e < n; e++) {
      u32 x = lead + offset[e], row = 0;
      inside += x == k;
      for (u32 i = 0; i < nover; i++)
        row = row * group_axis_size(t.s, g, over[i]) + group_coord(t.s, g, x, over[i]);
      CHECK_EQ_I64(row, e);
    }
    CHECK_EQ_I64(inside, 1);
  }
  const char *text = group_text(g), *error;
  group back;
  REQUIRE(group_parse(t.s, &text, &back, &error));
  CHECK(*text == 0 && back.i == g.i);
}

TEST(layout_ranks_of_all_meshes) {
  open_space();
  CHECK_EQ_I64(mesh_ranks(t.s), 0);
  const u8 x = axis("x", 2);
  mesh_add(t.s, sym_of(t.c, "list"), &x, 1, 0, (u32[]){0, 5});
  CHECK_EQ_I64(mesh_ranks(t.s), 6);
  mesh_add(t.s, sym_of(t.c, "far"), &x, 1, 8, NULL);
  mesh_add(t.s, sym_of(t.c, "near"), &x, 1, 2, NULL);
  CHECK_EQ_I64(mesh_ranks(t.s), 10);
  close_space();
}

TEST(layout_groups) {
  open_space();
  u8 x[3] = {axis("a", 3), axis("b", 4), axis("c", 2)};
  u32 shuffled[24], only[4];
  for (u32 i = 0; i < 24; i++) shuffled[i] = 100 + i * 7 % 24;
  mesh plain = mesh_over("plain", x, 3), listed = mesh_add(t.s, sym_of(t.c, "listed"), x, 3, 0, shuffled);
  for (u32 round = 0; round < 200; round++) {
    group_axis fix[3];
    u32 n = 0;
    for (u32 i = 0; i < 3; i++) {
      u32 size = axis_size(t.s, x[i]), kind = pick(3);
      if (kind == 1) fix[n++] = (group_axis){.axis = x[i], .at = (int)pick(size)};
      if (kind == 2 && i == 1) {
        for (u32 k = 0; k < 4; k++) only[k] = (k + round) % 4;
        fix[n++] = (group_axis){.axis = x[i], .at = -2, .nonly = 1 + pick(4), .only = only};
      }
    }
    check_group(round % 2 ? plain : listed, fix, n);
  }
  CHECK_EQ_I64(group_member(t.s, group_all(t.s, plain), 24), -1);
  CHECK_EQ_I64(group_member(t.s, group_all(t.s, listed), 99), -1);
  close_space();
}

TEST(layout_group_forms) {
  open_space();
  u8 pp = axis("pp", 4), dp = axis("dp", 3), tp = axis("tp", 2),
     mb = axis_add(t.s, sym_of(t.c, "mb"), 2, true);
  mesh m = mesh_over("m", (u8[]){pp, dp}, 2);
  group g = group_of(t.s, m, (group_axis[]){{.axis = pp, .at = -2, .nonly = 2, .only = (u32[]){0, 3}}}, 1);
  CHECK_STR(group_text(g), "@m[pp={0,3}]");
  CHECK_EQ_I64(group_axis_size(t.s, g, pp), 2);
  CHECK_STR(group_text(group_fix(t.s, g, dp, 1)), "@m[pp={0,3},dp=1]");
  CHECK_STR(group_text(group_fix(t.s, g, pp, 3)), "@m[pp=3]");
  CHECK_EQ_I64(group_fix(t.s, g, pp, 3).i, group_fix(t.s, group_all(t.s, m), pp, 3).i);
  CHECK_EQ_I64(diag_count(t.c), 0);
  CHECK_EQ_I64(group_fix(t.s, g, pp, 1).i, 0);
  CHECK_STR(last_message(), "a group of @m does not reach position 1 of axis 'pp'");
  CHECK_EQ_I64(group_fix(t.s, g, tp, 0).i, 0);
  CHECK_STR(last_message(), "mesh @m has no axis 'tp'");
  CHECK_EQ_I64(group_of(t.s, m, (group_axis[]){{.axis = dp, .at = -2}}, 1).i, 0);
  CHECK_STR(last_message(), "group of @m: no position of axis 'dp' is left");
  CHECK_EQ_I64(group_of(t.s, m, (group_axis[]){{.axis = dp, .at = 3}}, 1).i, 0);
  CHECK_STR(last_message(), "group of @m: axis 'dp' has positions 0 to 2, not 3");
  group all =
      group_of(t.s, m, (group_axis[]){{.axis = dp, .at = -2, .nonly = 3, .only = (u32[]){0, 1, 2}}}, 1);
  CHECK_EQ_I64(all.i, group_all(t.s, m).i);
  CHECK(group_has_axis(t.s, g, pp) && !group_has_axis(t.s, g, tp) && !group_has_axis(t.s, g, mb));
  CHECK(group_has_axis(t.s, (group){0}, tp) && !group_has_axis(t.s, (group){0}, mb));
  static const char *const bad[][2] = {
      {"m", "'@' is missing"},
      {"@n", "unknown mesh @n"},
      {"@m[tp=0]", "mesh @m has no axis 'tp'"},
      {"@m[zz=0]", "unknown axis 'zz'"},
      {"@m[pp=4]", "group of @m: axis 'pp' has positions 0 to 3, not 4"},
      {"@m[pp={1,1}]", "group of @m: position 1 of axis 'pp' is listed twice"},
      {"@m[pp=0,pp=1]", "group of @m: axis 'pp' is restricted twice"},
      {"@m[pp=0", "']' is missing"},
      {"@m[pp=99999999999999999999]", "the number is too large"}};
  for (u32 i = 0; i < COUNT_OF(bad); i++) {
    const char *text = bad[i][0], *error = "";
    u32 before = diag_count(t.c);
    CHECK(!group_parse(t.s, &text, &g, &error));
    CHECK_STR(error, bad[i][1]);
    CHECK_EQ_I64(diag_count(t.c), before);
  }
  CHECK(axis_alias(t.s, sym_of(t.c, "both"), (u8[]){pp, dp}, 2));
  const char *text = "@m[ both = 7 ] rest", *error;
  CHECK(group_parse(t.s, &text, &g, &error));
  CHECK_STR(text, " rest");
  CHECK_STR(group_text(g), "@m[pp=2,dp=1]");
  text = "@m[pp=*]";
  CHECK(group_parse(t.s, &text, &g, &error) && g.i == group_all(t.s, m).i);
  close_space();
}

// ---- layouts -----------------------------------------------------------------------------------------

TEST(layout_interning) {
  open_space();
  u8 a = axis("a", 2), b = axis("b", 3), one = axis("one", 1);
  layout_info x = {.nsplit = 2, .npart = 1, .split = {{b, 1, 0, 1}, {a, 0, 0, 6}}, .part = {{one, RED_SUM}}};
  layout l = layout_of(t.s, &x);
  CHECK_EQ_I64(layout_with_split(t.s, layout_with_split(t.s, (layout){0}, a, 0, 6), b, 1, 1).i, l.i);
  CHECK_EQ_I64(layout_with_split(t.s, l, one, 0, 1).i, l.i);
  CHECK_EQ_I64(layout_without(t.s, layout_without(t.s, l, a), b).i, 0);
  layout p = layout_with_part(t.s, l, a, RED_MAX);
  CHECK(p.i != l.i && layout_part_of(t.s, p, a) == RED_MAX && layout_split_of(t.s, p, a) == NULL);
  CHECK_EQ_I64(layout_split_of(t.s, p, b)->dim, 1);
  CHECK_EQ_I64(layout_with_split(t.s, p, a, 0, 6).i, l.i);
  pieces whole = pieces_of(t.s, 2, (u32[]){0, 1, 2}, (i64[]){0, 6, 6, 12}, 12);
  x = (layout_info){.nsplit = 1, .split = {{.axis = a, .dim = 0, .table = (u16)whole.i}}};
  CHECK_EQ_I64(layout_of(t.s, &x).i, layout_with_split(t.s, (layout){0}, a, 0, 6).i);
  pieces uneven = pieces_of(t.s, 2, (u32[]){0, 1, 2}, (i64[]){0, 5, 5, 12}, 12);
  CHECK_EQ_I64(pieces_spread(t.s, 2, 12).i, whole.i);
  CHECK_EQ_I64(pieces_spread(t.s, 3, 8).i,
               pieces_of(t.s, 3, (u32[]){0, 1, 2, 3}, (i64[]){0, 3, 3, 6, 6, 8}, 8).i);
  CHECK_EQ_I64(pieces_of(t.s, 2, (u32[]){0, 1, 2}, (i64[]){0, 5, 5, 12}, 12).i, uneven.i);
  CHECK(pieces_get(t.s, uneven)->covers && !pieces_get(t.s, uneven)->each);
  CHECK_EQ_I64(pieces_get(t.s, uneven)->longest, 7);
  mesh m = mesh_add(t.s, sym_of(t.c, "m"), &b, 1, 0, (u32[]){9, 8, 7});
  group g = group_of(t.s, m, (group_axis[]){{.axis = b, .at = -2, .nonly = 2, .only = (u32[]){0, 2}}}, 1);
  ctx *other = ctx_new();
  sym_of(other, "shifts the symbols");
  space *q = space_clone(t.s, other, ctx_arena(other));
  strbuf text = {.a = ctx_arena(other)};
  layout_print(q, p, 2, (i64[]){12, 3}, &text);
  CHECK_STR(sb_str(&text), printed(p, 2, (i64[]){12, 3}));
  CHECK_EQ_I64(layout_with_part(q, l, a, RED_MAX).i, p.i);
  const char *name = group_text(g), *error;
  group same;
  CHECK(group_parse(q, &name, &same, &error) && same.i == g.i && group_count(q) == 1);
  CHECK_EQ_I64(group_get(q, same)->ranks[1], 7);
  ctx_free(other);
  close_space();
}

// A random layout that fits: digits of random extents are dealt out to axes.
static layout random_layout(const u8 *axes, u32 n, u32 nd, i64 *dims) {
  layout l = {0};
  for (u32 d = 0; d < nd; d++) dims[d] = 1;
  for (u32 i = 0; i < n; i++) { // strides grow from the minor end, so that they nest
    u8 d = (u8)pick(nd);
    dims[d] *= 1 + pick(3);
    switch (pick(5)) {
    case 0: break;
    case 1: l = layout_with_part(t.s, l, axes[i], (reduction)(RED_SUM + pick(4))); break;
    default: l = layout_with_split(t.s, l, axes[i], d, dims[d]); dims[d] *= axis_size(t.s, axes[i]);
    }
  }
  return l;
}

TEST(layout_index_is_its_definition) {
  open_space();
  u8 x[5] = {axis("a", 2), axis("b", 3), axis("c", 2), axis("d", 4), axis("e", 1)};
  for (u32 round = 0; round < 2000; round++) {
    i64 dims[3], out[3], index[4096];
    u32 nd = 1 + pick(3);
    layout l = random_layout(x, 5, nd, dims);
    CHECK(layout_fits(t.s, l, nd, dims) && layout_is_even(t.s, l));
    CHECK(layout_check(t.s, l, (group){0}, nd, dims, (loc){0}));
    coords c = {{0}};
    for (u32 i = 0; i < 5; i++) c.at[x[i]] = (u16)pick(axis_size(t.s, x[i]));
    layout_local_dims(t.s, l, nd, dims, NULL, out);
    i64 elems = 1;
    for (u8 d = 0; d < nd; d++) {
      i64 n = layout_index(t.s, l, d, dims[d], &c, index), k = 0;
      for (i64 i = 0; i < dims[d]; i++) {
        bool mine = true;
        const layout_info *li = layout_get(t.s, l);
        for (u32 j = 0; j < li->nsplit; j++)
          if (li->split[j].dim == d)
            mine = mine &&
                   i / li->split[j].stride % axis_size(t.s, li->split[j].axis) == c.at[li->split[j].axis];
        if (!mine) continue;
        CHECK(k < n && index[k] == i);
        k++;
      }
      CHECK_EQ_I64(n, k);
      CHECK_EQ_I64(out[d], n);
      CHECK_EQ_I64(layout_local_extent(t.s, l, d, dims[d], NULL), n);
      elems *= n;
    }
    CHECK_EQ_I64(layout_local_elems(t.s, l, nd, dims), elems);
    u32 nd2;
    i64 dims2[DIMS_MAX];
    CHECK_EQ_I64(parsed(printed(l, nd, dims), &nd2, dims2).i, l.i);
    CHECK(nd2 == nd && memcmp(dims, dims2, nd * sizeof *dims) == 0);
  }
  close_space();
}

// Whatever fits gives every combination of coordinates equally many indices.
TEST(layout_fits_means_equal_shares) {
  open_space();
  u8 x[3] = {axis("a", 2), axis("b", 3), axis("c", 2)};
  u32 fit = 0;
  for (u32 round = 0; round < 20000; round++) {
    i64 extent = 1 + pick(48);
    layout l = {0};
    for (u32 i = 0; i < 3; i++)
      if (pick(3)) l = layout_with_split(t.s, l, x[i], 0, 1 + pick(24));
    if (!layout_fits(t.s, l, 1, &extent)) continue;
    fit++;
    for (u32 k = 0; k < 12; k++) {
      coords c = {{0}};
      c.at[x[0]] = k % 2, c.at[x[1]] = k / 2 % 3, c.at[x[2]] = (u16)(k / 6);
      i64 n = 0;
      for (i64 i = 0; i < extent; i++) {
        bool mine = true;
        for (u32 j = 0; j < 3; j++) {
          const lay_split *p = layout_split_of(t.s, l, x[j]);
          mine = mine && (!p || i / p->stride % axis_size(t.s, x[j]) == c.at[x[j]]);
        }
        n += mine;
      }
      CHECK_EQ_I64(layout_local_extent(t.s, l, 0, extent, NULL), n);
    }
  }
  CHECK(fit > 1000);
  close_space();
}

TEST(layout_next_stride_is_as_major_as_can_be) {
  open_space();
  u8 x[3] = {axis("a", 2), axis("b", 3), axis("c", 4)};
  for (u32 round = 0; round < 5000; round++) {
    i64 extent = 1 + pick(96), best = 0;
    layout l = {0};
    for (u32 i = 0; i < 2; i++) {
      layout more = layout_with_split(t.s, l, x[i], 0, 1 + pick(48));
      if (layout_fits(t.s, more, 1, &extent)) l = more;
    }
    for (i64 stride = 1; stride <= extent; stride++)
      if (layout_fits(t.s, layout_with_split(t.s, l, x[2], 0, stride), 1, &extent)) best = stride;
    CHECK_EQ_I64(layout_next_stride(t.s, l, 0, extent, 4), best);
  }
  CHECK_EQ_I64(layout_next_stride(t.s, layout_with_split(t.s, (layout){0}, x[2], 0, 256), 0, 3072, 3), 1024);
  close_space();
}

// Uneven pieces beside strides, element by element.
TEST(layout_pieces) {
  open_space();
  u8 dp = axis("dp", 3), mb = axis("mb", 2);
  static const char *const text[] = {"[12{dp:0-5|5-7|7-12}]",           // uneven
                                     "[12{dp:0-5|-|5-12}]",             // empty
                                     "[12{dp:0-5|4-9|8-12}]",           // overlapping
                                     "[12{dp:0-2+10-12|2-4+8-10|4-8}]", // zig-zag
                                     "[12{mb,dp:0-2+6-8|-|2-6+8-12}]",  // beside a stride
                                     "[12{mb:1,dp:8-12|3-8|0-3}]"};
  static const i64 longest[] = {5, 7, 5, 4, 4, 3};
  for (u32 i = 0; i < COUNT_OF(text); i++) {
    u32 nd, covered = 0;
    i64 dims[DIMS_MAX], out;
    layout l = parsed(text[i], &nd, dims);
    REQUIRE(l.i);
    CHECK_STR(printed(l, nd, dims), text[i]);
    CHECK(layout_check(t.s, l, (group){0}, nd, dims, (loc){0}) && !layout_is_even(t.s, l));
    CHECK_EQ_I64(layout_local_elems(t.s, l, nd, dims), longest[i]);
    CHECK_EQ_I64(layout_next_stride(t.s, l, 0, 12, 2), 0);
    const lay_split *even = layout_split_of(t.s, l, mb), *uneven = layout_split_of(t.s, l, dp);
    const pieces_info *p = pieces_get(t.s, (pieces){uneven->table});
    for (u16 k = 0; k < 6; k++) {
      coords c = {{0}};
      c.at[dp] = k % 3, c.at[mb] = k / 3;
      i64 index[12], n = layout_index(t.s, l, 0, 12, &c, index), want = 0;
      for (u32 j = p->begin[c.at[dp]]; j < p->begin[c.at[dp] + 1]; j++)
        for (i64 e = p->bound[2 * j]; e < p->bound[2 * j + 1]; e++) {
          if (even && e / even->stride % 2 != c.at[mb]) continue;
          CHECK(want < n && index[want] == e);
          want++;
          covered |= 1u << e;
        }
      CHECK_EQ_I64(n, want);
      CHECK_EQ_I64(layout_local_extent(t.s, l, 0, 12, &c), n);
      layout_local_dims(t.s, l, 1, dims, &c, &out);
      CHECK_EQ_I64(out, n);
    }
    CHECK_EQ_I64(covered, 4095);
  }
  close_space();
}

// Members that are equal on these axes hold pieces of the same extents, and the first of them is named.
TEST(layout_uneven_axes) {
  open_space();
  u8 x[] = {axis("pp", 2), axis("dp", 3), axis("tp", 4)};
  mesh m = mesh_add(t.s, sym_of(t.c, "m"), x, 3, 0, NULL);
  group all = group_all(t.s, m), part = group_fix(t.s, all, x[2], 1);
  static const struct {
    const char *text;
    u32 all, part; // kinds of members
  } row[] = {{"[12]", 1, 1},
             {"[12{tp}]", 1, 1},
             {"[12{dp:0-5|5-7|7-12}]", 3, 3},
             {"[12{dp:0-5|5-7|7-12},8{tp}]", 3, 3},
             {"[12{pp:0-5|5-12}]", 2, 2},
             {"[12{tp,dp:0-2+6-8|-|2-6+8-12}]", 12, 3}};
  for (u32 i = 0; i < COUNT_OF(row); i++)
    for (u32 q = 0; q < 2; q++) {
      group g = q ? part : all;
      u32 nd, kinds = 0, like[24];
      u8 axes[MESH_AXES];
      i64 dims[DIMS_MAX], own[DIMS_MAX], first[DIMS_MAX];
      layout l = parsed(row[i].text, &nd, dims);
      REQUIRE(l.i || !i);
      u32 n = layout_uneven_axes(t.s, l, g, axes, 0);
      CHECK_EQ_I64(layout_uneven_axes(t.s, l, g, axes, n), n); // each once
      group_likes(t.s, g, axes, n, NULL, like);
      for (u32 k = 0; k < group_get(t.s, g)->nranks; k++) {
        coords c;
        CHECK(like[k] <= k && like[like[k]] == like[k]);
        CHECK_EQ_I64(like[k], k - group_lead(t.s, g, k, axes, n));
        kinds += like[k] == k;
        coords_of(t.s, g, k, NULL, &c);
        layout_local_dims(t.s, l, nd, dims, &c, own);
        coords_of(t.s, g, like[k], NULL, &c);
        layout_local_dims(t.s, l, nd, dims, &c, first);
        CHECK(memcmp(own, first, nd * sizeof *own) == 0);
      }
      CHECK_EQ_I64(kinds, q ? row[i].part : row[i].all);
    }
  close_space();
}

// Members that differ only in coordinates of pieces of one size are told apart no more, of one layout or two.
TEST(layout_same_sizes) {
  open_space();
  u8 x[] = {axis("dp", 6), axis("tp", 4)};
  mesh m = mesh_add(t.s, sym_of(t.c, "m"), x, 2, 0, NULL);
  group all = group_all(t.s, m);
  static const struct {
    const char *text[2];
    u32 kinds;
  } row[] = {{{"[24]", "[24]"}, 1},
             {{"[32{dp:0-6|6-12|12-17|17-22|22-27|27-32}]", "[24{tp}]"}, 2},
             {{"[32{dp:0-6|6-11|11-17|17-22|22-27|27-32}]", "[24]"}, 2},
             {{"[32{dp:0-6|6-12|12-17|17-22|22-27|27-32}]", "[34{dp:0-6|6-12|12-18|18-24|24-29|29-34}]"}, 3},
             {{"[32{dp:0-6|6-12|12-17|17-22|22-27|27-32}]", "[32{dp:0-1|1-4|4-10|10-16|16-26|26-32}]"}, 4},
             {{"[24{dp:0-5|5-7|7-24|-|-|-}]", "[6{tp:0-1|1-2|2-4|4-6}]"}, 8},
             {{"[24{tp,dp:0-2+6-8|2-6+8-12|12-24|-|-|-}]", "[24]"}, 24}}; // two cuts of one dimension
  for (u32 i = 0; i < COUNT_OF(row); i++) {
    u32 nd[2], kinds = 0, like[24], same[2][6] = {{0}}, n = 0;
    u8 axes[MESH_AXES];
    i64 dims[2][DIMS_MAX], own[DIMS_MAX], first[DIMS_MAX];
    layout l[2];
    for (u32 q = 0; q < 2; q++) {
      l[q] = parsed(row[i].text[q], &nd[q], dims[q]);
      REQUIRE(l[q].i || !strchr(row[i].text[q], '{'));
      n = layout_uneven_axes(t.s, l[q], all, axes, n);
    }
    for (u32 k = 0; k < n; k++)
      for (u32 q = 0; q < 2; q++) layout_same_sizes(t.s, l[q], all, axes[k], same[k]);
    group_likes(t.s, all, axes, n, (const u32 *const[]){same[0], same[1]}, like);
    for (u32 k = 0; k < 24; k++) {
      CHECK(like[k] <= k && like[like[k]] == like[k]);
      kinds += like[k] == k;
      for (u32 q = 0; q < 2; q++) {
        coords c;
        coords_of(t.s, all, k, NULL, &c);
        layout_local_dims(t.s, l[q], nd[q], dims[q], &c, own);
        coords_of(t.s, all, like[k], NULL, &c);
        layout_local_dims(t.s, l[q], nd[q], dims[q], &c, first);
        CHECK(memcmp(own, first, nd[q] * sizeof *own) == 0);
      }
    }
    CHECK_EQ_I64(kinds, row[i].kinds);
  }
  close_space();
}

TEST(layout_text) {
  open_space();
  u8 dp = axis("dp", 2), kv = axis("kv", 4), rep = axis("rep", 2);
  axis("pp", 4);
  axis("one", 1);
  axis_alias(t.s, sym_of(t.c, "tp"), (u8[]){kv, rep}, 2);
  static const char *const same[] = {"[]",
                                     "[2048{dp},3072{kv:256},64]+rep,max pp",
                                     "[8{dp,kv}] max pp",
                                     "[8{kv,dp}]",
                                     "[8{dp:1}]+kv,+rep",
                                     "[7,9] prod dp",
                                     "[24{pp,dp:1}]",
                                     "[8{dp:4611686018427387904,kv}]"};
  for (u32 i = 0; i < COUNT_OF(same); i++) {
    u32 nd;
    i64 dims[DIMS_MAX];
    layout l = parsed(same[i], &nd, dims);
    CHECK_STR(printed(l, nd, dims), same[i]);
  }
  static const char *const other[][2] = {
      {"[64{tp}]", "[64{kv,rep}]"},
      {"[64{tp:2}]", "[64{kv:4,rep:2}]"},
      {"[64]+tp", "[64]+kv,+rep"},
      {"[ 8 { dp : 4 , kv } , 3 ] + rep , max pp", "[8{dp,kv},3]+rep,max pp"},
      {"[8{one},5{dp:0-2| 2-5}]", "[8,5{dp:0-2|2-5}]"},
      {"[8{dp: 0-4|4-8}]", "[8{dp}]"},
      {"[8{dp},8]sum one", "[8{dp},8]"}};
  for (u32 i = 0; i < COUNT_OF(other); i++) {
    u32 nd;
    i64 dims[DIMS_MAX];
    layout l = parsed(other[i][0], &nd, dims);
    CHECK_STR(printed(l, nd, dims), other[i][1]);
  }
  static const char *const rest[][2] = {{"[8]+dp, %x: f32[8]", ", %x: f32[8]"},
                                        {"[8], max", ", max"},
                                        {"[8] over dp", " over dp"},
                                        {"[8]+dp,+kv -> x", " -> x"},
                                        {"[8], [8]", ", [8]"}};
  for (u32 i = 0; i < COUNT_OF(rest); i++) {
    const char *text = rest[i][0], *error;
    u32 nd;
    i64 dims[DIMS_MAX];
    layout l;
    CHECK(layout_parse(t.s, &text, &nd, dims, &l, &error));
    CHECK_STR(text, rest[i][1]);
  }
  static const char *const bad[][3] = {
      {"8]", "'[' is missing", "8]"},
      {"[8", "']' is missing", ""},
      {"[8,]", "a number is missing", "]"},
      {"[8{zz}]", "unknown axis 'zz'", "zz}]"},
      {"[8{}]", "a name is missing", "}]"},
      {"[8{dp},8{dp}]", "axis 'dp' has two places in one layout", "dp}]"},
      {"[8{dp}]+dp", "axis 'dp' has two places in one layout", "dp"},
      {"[9{dp}]", "axis 'dp' of size 2 does not divide what is left of extent 9", "dp}]"},
      {"[8{dp,kv,rep}]", "axis 'rep' of size 2 does not divide what is left of extent 8", "rep}]"},
      {"[8{dp:0}]", "a stride is at least 1", "}]"},
      {"[8{dp:0-9|9-9}]", "piece 0 overlaps itself or leaves the extent 8", "0-9|9-9}]"},
      {"[8{dp:0-4|4-8+5-6}]", "piece 1 overlaps itself or leaves the extent 8", "0-4|4-8+5-6}]"},
      {"[8{tp:0-4|4-8}]", "uneven pieces go to one axis, not to a product", "0-4|4-8}]"},
      {"[1,1,1,1,1,1,1,1,1]", "a tensor has at most 8 dimensions", "1]"},
      {"[99999999999999999999]", "the number is too large", "99999999999999999999]"}};
  for (u32 i = 0; i < COUNT_OF(bad); i++) {
    const char *text = bad[i][0], *error = "";
    u32 nd;
    i64 dims[DIMS_MAX];
    layout l;
    CHECK_MSG(!layout_parse(t.s, &text, &nd, dims, &l, &error), "accepted %s", bad[i][0]);
    CHECK_STR(error, bad[i][1]);
    CHECK_STR(text, bad[i][2]);
  }
  CHECK_EQ_I64(dp, 1);
  close_space();
}

// Every way not to fit is refused in its own words.
TEST(layout_check_says_why) {
  open_space();
  u8 pp = axis("pp", 4), dp = axis("dp", 2), tp = axis("tp", 2);
  axis_add(t.s, sym_of(t.c, "mb"), 2, true);
  mesh m = mesh_over("m", (u8[]){pp, dp, tp}, 3);
  group first = group_fix(t.s, group_all(t.s, m), pp, 0);
  group ends = group_of(t.s, m, (group_axis[]){{.axis = pp, .at = -2, .nonly = 2, .only = (u32[]){0, 3}}}, 1);
  static const struct {
    const char *text, *message;
    int group; // 0 none, 1 pp=0, 2 pp={0,3}
  } row[] = {
      {"[8{dp:3}]", "axis 'dp' splits extent 8 of dimension 0 into 2 parts at stride 3: not whole", 0},
      {"[24{dp:6,tp:4}]", "axes 'dp' (2 at stride 6) and 'tp' (2 at stride 4) overlap in dimension 0", 0},
      {"[24{dp:6,tp:6}]", "axes 'dp' (2 at stride 6) and 'tp' (2 at stride 6) overlap in dimension 0", 0},
      {"[9{dp:0-5|5-9,tp:0-4|4-9}]", "axes 'dp' and 'tp' both cut dimension 0 into uneven pieces", 0},
      {"[9{dp:0-3|3-6|6-9}]", "3 pieces for the 2 positions of axis 'dp'", 0},
      {"[9{pp:0-4|4-9}]", "2 pieces for the 4 positions of axis 'pp'", -1},
      {"[9{dp:0-5|6-9}]", "no piece of axis 'dp' contains index 5 of dimension 0", 0},
      {"[8{pp}]", "axis 'pp' is not free in @m[pp=0]", 1},
      {"[8]+pp", "axis 'pp' is not free in @m[pp=0]", 1},
      {"[8{pp}]", "axis 'pp' has 2 of its 4 positions in @m[pp={0,3}], so a stride cannot split over it", 2},
      {"[8{pp:0-3|3-8}]", NULL, 2},
      {"[8]+pp", NULL, 2},
      {"[8{mb}]+dp", NULL, 1},
      {"[8{dp,tp}]", NULL, 1},
  };
  for (u32 i = 0; i < COUNT_OF(row); i++) {
    u32 nd, before = diag_count(t.c);
    i64 dims[DIMS_MAX];
    layout l = parsed(row[i].text, &nd, dims);
    group g = row[i].group == 1   ? first
              : row[i].group == 2 ? ends
              : row[i].group      ? group_all(t.s, m)
                                  : (group){0};
    CHECK(layout_check(t.s, l, g, nd, dims, (loc){0}) == !row[i].message);
    CHECK_EQ_I64(diag_count(t.c), before + (row[i].message != NULL));
    if (row[i].message) CHECK_STR(last_message(), row[i].message);
  }
  layout l = layout_with_split(t.s, (layout){0}, dp, 2, 1);
  CHECK(!layout_check(t.s, l, first, 1, (i64[]){8}, (loc){0}));
  CHECK_STR(last_message(), "axis 'dp' splits dimension 2 of a tensor that has 1");
  u32 nd;
  i64 dims[DIMS_MAX];
  l = parsed("[9{dp:0-5|5-9}]", &nd, dims);
  CHECK(!layout_check(t.s, l, first, 1, (i64[]){8}, (loc){0}));
  CHECK_STR(last_message(), "the pieces of axis 'dp' are cut from extent 9, but dimension 0 has 8");
  l = layout_with_split(t.s, (layout){0}, dp, 0, 4);
  CHECK(!layout_check(t.s, l, first, 1, (i64[]){7}, (loc){0}));
  REQUIRE(diag_get(t.c, diag_count(t.c) - 1).notes == 1);
  const diag_part_item hint = diag_part(t.c, diag_count(t.c) - 1, 0);
  CHECK(hint.hint);
  CHECK_STR(hint.message, "uneven pieces are written {dp:0-3|3-7}");
  close_space();
}

// Damaged texts are refused with a reason, or read as something that prints and reads back the same.
TEST(layout_text_damaged) {
  static const char *const good[] = {"[2048{dp},3072{kv:256},64]+rep,max pp", "[64{tp:2},7]",
                                     "[12{dp:0-5|-|5-8+9-12}]", "[8{dp:1}]+kv,+rep", "[] min pp"};
  static const char letters[] = "[]{}:,|-+0123456789 dptkvrexmaxsumin\t@*";
  open_space();
  axis("dp", 3), axis("pp", 4);
  u8 kv = axis("kv", 4), rep = axis("rep", 2);
  axis_alias(t.s, sym_of(t.c, "tp"), (u8[]){kv, rep}, 2);
  u32 accepted = 0;
  for (u32 round = 0; round < 20000; round++) {
    char text[64];
    strcpy(text, good[pick(COUNT_OF(good))]);
    u32 n = (u32)strlen(text);
    for (u32 k = 1 + pick(2); k--;) text[pick(n)] = letters[pick(sizeof letters)];
    const char *at = text, *error = NULL;
    u32 nd, nd2;
    i64 dims[DIMS_MAX], dims2[DIMS_MAX];
    layout l, back;
    bool ok = layout_parse(t.s, &at, &nd, dims, &l, &error);
    CHECK(ok ? !error : error && *error);
    CHECK(at >= text && at <= text + strlen(text));
    if (!ok) continue;
    accepted++;
    at = printed(l, nd, dims);
    CHECK_MSG(layout_parse(t.s, &at, &nd2, dims2, &back, &error) && *at == 0 && back.i == l.i && nd == nd2,
              "%s reads back as %s", text, printed(l, nd, dims));
  }
  CHECK(accepted > 1000);
  close_space();
}
